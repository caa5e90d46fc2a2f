//! One trainer per folder: a lock that ends with its process, however the process ends.
//!
//! The lock is on the folder itself, so no change to the files in it admits a second trainer. The file `lock`
//! names the process that trains; it is locked too, for file systems that only lock files.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};

use serde::{Deserialize, Serialize};

use crate::clock::utc_now;
use crate::error::RunError;
use crate::folder::FolderHandle;

/// The file that names the holder. It is not removed; only the lock on the folder counts.
pub(crate) const NAME: &str = "lock";
/// Longer files are not lock files of this program.
const MAX_HOLDER: u64 = 4096;

/// A locked folder; the lock is released on drop.
#[derive(Debug)]
pub struct Lock {
    folder: FolderHandle,
    file: Option<File>,
}

/// The process that holds a lock.
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
    /// When another process holds it (the error names it as far as known), or the file `lock` cannot be
    /// created.
    pub fn take(folder: &FolderHandle) -> Result<Self, RunError> {
        let taken = || {
            let holder = folder.open_to_read(NAME).ok().and_then(|file| holder(&file));
            let why = match holder {
                Some(Holder { pid, host, since }) => format!(
                    "process {pid} on {host} has trained in this folder since {since}; wait for it, or stop it \
                     safely with `kill -INT {pid}`"
                ),
                None => "another process trains in this folder; wait for it or stop it first".into(),
            };
            RunError::BadRun { folder: folder.path().to_path_buf(), why }
        };
        // Some file systems have no locks; training without a lock is better than no training.
        if let Err(TryLockError::WouldBlock) = folder.try_lock() {
            return Err(taken());
        }
        let mut lock = Lock { folder: folder.clone(), file: None };
        let mut file = folder.open_to_append(NAME)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(taken());
        }
        let holder = Holder { pid: std::process::id(), host: host(), since: utc_now() };
        let text = serde_json::to_string(&holder).unwrap_or_default();
        // The lock works without the holder's name, too, for example on a full disk.
        let _ = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        lock.file = Some(file);
        Ok(lock)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Training has ended here; the lock of the file ends with it.
            let _ = file.set_len(0);
        }
        self.folder.unlock();
    }
}

/// The contents of the file: invalid for a moment while another process takes the lock.
fn holder(file: &File) -> Option<Holder> {
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
        let take = || Lock::take(&FolderHandle::open(dir.path()).expect("ours"));
        let first = take().expect("free");
        let said = take().expect_err("taken").to_string();
        for part in [&format!("process {} on {} ", std::process::id(), host()), "since 20", "; wait for it"] {
            assert!(said.contains(part), "{said}");
        }
        // Any contents of the file are handled.
        for text in [&b""[..], b"{", b"\xff\xfe", br#"{"pid":1,"host":"a\nb","since":"x"}"#] {
            std::fs::write(dir.path().join(NAME), text).expect("writable");
            let said = take().expect_err("taken").to_string();
            assert!(said.contains("another process trains in this folder;"), "{said}");
        }
        // Changes to the file have no effect: the lock is on the folder.
        std::fs::remove_file(dir.path().join(NAME)).expect("ours");
        take().expect_err("taken");
        std::fs::write(dir.path().join("other"), "").expect("writable");
        std::fs::rename(dir.path().join("other"), dir.path().join(NAME)).expect("writable");
        take().expect_err("taken");
        drop(first);
        drop(take().expect("free again"));
        assert_eq!(std::fs::read(dir.path().join(NAME)).expect("it stays"), b"");
        // A trainer that only locks the file, as on a file system that only locks files.
        let older = File::options().append(true).open(dir.path().join(NAME)).expect("there");
        older.lock().expect("free");
        take().expect_err("taken");
        drop(older);
        take().expect("free again");
    }
}
