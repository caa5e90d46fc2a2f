//! One trainer per folder: a lock that ends with its process, however that ends.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clock::utc_now;
use crate::error::RunError;

/// Its name in the folder. The file stays; what counts is whether a process holds it locked.
pub(crate) const NAME: &str = "lock";
/// Longer ones are none of ours.
const MAX_HOLDER: u64 = 4096;

/// A locked folder; free again when dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// Who holds a lock.
#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    host: String,
    since: String,
}

impl Lock {
    /// Locks `folder`.
    ///
    /// # Errors
    /// When another process holds it, who is then named as far as is known, or the lock's file cannot be made.
    pub(crate) fn take(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(NAME);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(RunError::io("write", &path))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let why = match holder(&mut file) {
                    Some(Holder { pid, host, since }) => format!(
                        "process {pid} on {host} has trained in this folder since {since}; wait for it, or stop it \
                         safely with `kill -INT {pid}`"
                    ),
                    None => "another process trains in this folder; wait for it or stop it first".into(),
                };
                return Err(RunError::BadRun { folder: folder.to_path_buf(), why });
            }
            // Some file systems have no locks; training without one beats not training.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let holder = Holder { pid: std::process::id(), host: host(), since: utc_now() };
        let text = serde_json::to_string(&holder).unwrap_or_default();
        // It locks without a name too, as on a full disk.
        let _ = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        Ok(Lock(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody trains here any more; the lock itself goes with the file.
        let _ = self.0.set_len(0);
    }
}

/// What stands in the file: nothing of ours for a moment, while another process takes the lock.
fn holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.take(MAX_HOLDER).read_to_string(&mut text).ok()?;
    let holder: Holder = serde_json::from_str(&text).ok()?;
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    Some(holder).filter(|h| plain(&h.host) && plain(&h.since))
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let first = Lock::take(dir.path()).expect("free");
        let said = Lock::take(dir.path()).expect_err("taken").to_string();
        for part in [&format!("process {} on {} ", std::process::id(), host()), "since 20", "; wait for it"] {
            assert!(said.contains(part), "{said}");
        }
        // Whatever stands there.
        for text in [&b""[..], b"{", b"\xff\xfe", br#"{"pid":1,"host":"a\nb","since":"x"}"#] {
            std::fs::write(dir.path().join(NAME), text).expect("writable");
            let said = Lock::take(dir.path()).expect_err("taken").to_string();
            assert!(said.contains("another process trains in this folder;"), "{said}");
        }
        drop(first);
        drop(Lock::take(dir.path()).expect("free again"));
        assert_eq!(std::fs::read(dir.path().join(NAME)).expect("it stays"), b"");
    }
}
