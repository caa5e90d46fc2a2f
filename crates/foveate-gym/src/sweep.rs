//! Removes the remains of workers whose keeper was killed, at the next start.
//!
//! Each worker has a folder for temporary files, and every process that it starts inherits the folder's name
//! as an environment variable. The keeper holds a lock on the record in that folder as long as it lives
//! (`worker/keeper.py`). A folder whose record is not locked has no keeper any more. Then the following are
//! removed, and nothing else:
//! * processes that have the variable with this folder's name,
//! * names in `/dev/shm` that the record lists, if they still refer to the same file, which belongs to this
//!   user and which no process has open,
//! * the folder.
//!
//! Processes and shared memory are handled on Linux only, and only if the machine has not been restarted
//! since.

use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

use rustix::fs::{FlockOperation, OFlags, flock};

/// The environment variable with the name of the worker's folder.
pub(crate) const MARK: &str = "FOVEATE_WORLD";
/// Prefix of folder names, followed by twelve digits. Short, because socket paths inside the folder are
/// limited in length.
const PREFIX: &str = "foveate-";
const DIGITS: usize = 12;
/// The record in a folder.
const RECORD: &str = ".foveate";
/// Longest record that is read, in bytes.
const MAX_RECORD: u64 = 1 << 20;

/// Creates a name for a worker's folder; the keeper makes the folder.
pub(crate) fn new_folder() -> PathBuf {
    let chance = RandomState::new().build_hasher().finish();
    std::env::temp_dir().join(format!("{PREFIX}{:0DIGITS$x}", chance >> 16))
}

/// Removes remains, the first time that this process starts a worker.
pub(crate) fn once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| all(&std::env::temp_dir()));
}

/// Removes the remains that belong to the folders in `place`.
fn all(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if digits.is_some_and(|d| d.len() == DIGITS && d.bytes().all(|b| b.is_ascii_hexdigit())) {
            folder(&entry.path());
        }
    }
}

/// Removes this folder and what its record names, if it has no keeper any more.
pub(crate) fn folder(folder: &Path) {
    let ours = fs::symlink_metadata(folder).is_ok_and(|data| data.is_dir() && data.uid() == user());
    if !ours {
        return;
    }
    // A folder without a record is empty: it is just being made, or almost removed.
    let _ = fs::remove_dir(folder);
    let Some((_locked, text)) = left_over(&folder.join(RECORD)) else { return };
    #[cfg(target_os = "linux")]
    linux::sweep(folder, &text);
    #[cfg(not(target_os = "linux"))]
    let _ = text;
    remove(folder);
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The record, locked, and its content; `None` if a keeper holds the lock.
fn left_over(record: &Path) -> Option<(File, String)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).write(true).custom_flags(flags).open(record).ok()?;
    let data = file.metadata().ok()?;
    if !data.is_file() || data.uid() != user() {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    // The previous owner of the lock may have removed the record.
    if fs::symlink_metadata(record).ok()?.ino() != data.ino() {
        return None;
    }
    let mut text = String::new();
    (&file).take(MAX_RECORD).read_to_string(&mut text).ok()?;
    Some((file, text))
}

/// Removes the folder, its record last: a folder with files in it always has a record.
fn remove(folder: &Path) {
    // The second pass changes permissions of folders that the owner could not modify.
    for open in [false, true] {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_name() != RECORD) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if open {
                    allow(&path, 0);
                }
                let _ = fs::remove_dir_all(&path);
            } else {
                let _ = fs::remove_file(&path);
            }
        }
    }
    let empty = |folder| fs::read_dir(folder).is_ok_and(|mut entries| entries.nth(1).is_none());
    if empty(folder) {
        let _ = fs::remove_file(folder.join(RECORD));
        let _ = fs::remove_dir(folder);
    }
}

/// Lets the owner change this folder and its subfolders.
fn allow(folder: &Path, depth: u32) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    if depth < 64 {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                allow(&entry.path(), depth + 1);
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::Duration;

    use rustix::fs::makedev;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{MARK, user};

    const SHARED: &str = "/dev/shm";

    /// A file by its device and inode.
    type Identity = (u64, u64);

    /// Ends processes that have the folder's mark, and removes the entries of the record.
    pub(super) fn sweep(folder: &Path, record: &str) {
        let mut lines = record.lines();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        if lines.next() != Some("foveate 1") || lines.next() != Some(boot.trim()) {
            return;
        }
        end_marked(folder);
        let listed = lines.filter_map(|line| {
            let mut parts = line.splitn(3, ' ');
            let identity = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let name =
                parts.next().filter(|name| !name.contains('/') && !matches!(*name, "" | "." | ".."))?;
            let path = Path::new(SHARED).join(name);
            let data = fs::symlink_metadata(&path).ok()?;
            let same = data.is_file() && data.uid() == user() && (data.dev(), data.ino()) == identity;
            same.then_some((identity, path))
        });
        let listed: Vec<_> = listed.collect();
        if listed.is_empty() {
            return;
        }
        let in_use: BTreeSet<Identity> = processes().flat_map(opened).collect();
        for (identity, path) in listed {
            if !in_use.contains(&identity) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Ends processes that have the folder's mark. Python's resource trackers come last: they remove the
    /// names that they track once no other process can use them.
    fn end_marked(folder: &Path) {
        let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
        // Number of waits of 10 ms; whether trackers are ended; whether all others are ended.
        for (turns, trackers, others) in [(200, false, true), (100, false, false), (100, true, true)] {
            for _ in 0..turns {
                let mut left = 0;
                for pid in processes() {
                    let Some((process, is_tracker)) = marked(pid, &mark) else { continue };
                    let victim = if is_tracker { trackers } else { others };
                    if victim {
                        let _ = pidfd_send_signal(&process, Signal::KILL);
                    }
                    left += u32::from(victim || (!trackers && !others));
                }
                if left == 0 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// A living process with this mark other than this one, and whether it is a resource tracker.
    fn marked(pid: u32, mark: &[u8]) -> Option<(rustix::fd::OwnedFd, bool)> {
        if pid == std::process::id() {
            return None;
        }
        // Opened first, so that all queries concern the same process.
        let process = pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|&byte| byte == 0).find(|entry| *entry == mark)?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let tracker = b"multiprocessing.resource_tracker";
        Some((process, command.windows(tracker.len()).any(|part| part == tracker)))
    }

    fn processes() -> impl Iterator<Item = u32> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// Files of shared memory that a process has open or mapped, as far as permissions allow to see.
    fn opened(pid: u32) -> Vec<Identity> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mapped = maps.lines().filter(|line| line.contains(SHARED)).filter_map(|line| {
            let mut words = line.split_whitespace().skip(3);
            let (major, minor) = words.next()?.split_once(':')?;
            let number = |text| u32::from_str_radix(text, 16).ok();
            Some((makedev(number(major)?, number(minor)?), words.next()?.parse().ok()?))
        });
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let open = files.filter_map(|entry| {
            fs::read_link(entry.path()).ok().filter(|to| to.starts_with(SHARED))?;
            let data = fs::metadata(entry.path()).ok()?;
            Some((data.dev(), data.ino()))
        });
        mapped.chain(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    /// A folder as a keeper makes it, with a file in it.
    fn worker_folder(place: &Path, name: &str) -> (PathBuf, File) {
        let folder = place.join(name);
        fs::create_dir(&folder).expect("new");
        fs::create_dir(folder.join("files")).expect("new");
        fs::write(folder.join("files/a"), "a").expect("writable");
        let record = File::create_new(folder.join(RECORD)).expect("new");
        (folder, record)
    }

    #[test]
    fn only_what_is_left_over_is_removed() {
        let place = place();
        let (alive, record) = worker_folder(place.path(), "foveate-0123456789ab");
        flock(&record, FlockOperation::NonBlockingLockExclusive).expect("no one else has it");
        let (dead, _) = worker_folder(place.path(), "foveate-00000000000a");
        fs::set_permissions(dead.join("files"), Permissions::from_mode(0o500)).expect("ours");
        let others = ["foveate-0123", "foveate-zzzzzzzzzzzz", "other-0123456789ab"];
        for name in others {
            worker_folder(place.path(), name);
        }
        // A foreign folder with this kind of name, without a record; and a link to a folder without a keeper.
        let (bare, _) = worker_folder(place.path(), "foveate-bbbbbbbbbbbb");
        fs::remove_file(bare.join(RECORD)).expect("it is there");
        let (elsewhere, _) = worker_folder(place.path(), "elsewhere");
        std::os::unix::fs::symlink(&elsewhere, place.path().join("foveate-cccccccccccc")).expect("new");
        let empty = place.path().join("foveate-dddddddddddd");
        fs::create_dir(&empty).expect("new");

        all(place.path());
        assert!(!dead.exists() && !empty.exists());
        assert!(alive.join("files/a").exists() && bare.join("files/a").exists());
        assert!(elsewhere.join("files/a").exists());
        assert!(others.iter().all(|name| place.path().join(name).join("files/a").exists()));
        drop(record);
        all(place.path());
        assert!(!alive.exists());
    }

    #[test]
    fn a_record_that_is_a_link_is_left_alone() {
        let place = place();
        let (folder, _) = worker_folder(place.path(), "foveate-00000000000a");
        let target = place.path().join("target");
        fs::write(&target, "text").expect("writable");
        fs::remove_file(folder.join(RECORD)).expect("it is there");
        std::os::unix::fs::symlink(&target, folder.join(RECORD)).expect("new");
        all(place.path());
        assert!(folder.join("files/a").exists());
        assert_eq!(fs::read_to_string(&target).expect("untouched"), "text");
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<PathBuf> = (0..100).map(|_| new_folder()).collect();
        assert_eq!(names.len(), 100);
    }

    /// Entries of the record are removed if they refer to the same file and no process has it open.
    #[test]
    #[cfg(target_os = "linux")]
    fn shared_memory_is_removed_if_it_is_the_same_and_free() {
        use std::fmt::Write;

        let place = place();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
        let name = |what: &str| format!("foveate-test-{}-{what}", std::process::id());
        let path = |what: &str| Path::new("/dev/shm").join(name(what));
        let make = |what: &str| {
            let file = File::create_new(path(what)).expect("new");
            let data = file.metadata().expect("there");
            (file, data.dev(), data.ino())
        };
        let mut record = format!("foveate 1\n{}\n", boot.trim());
        let (_, dev, ino) = make("free");
        let _ = writeln!(record, "{dev} {ino} {}", name("free"));
        let (_open, dev, ino) = make("open");
        let _ = writeln!(record, "{dev} {ino} {}", name("open"));
        let (_, dev, ino) = make("other");
        let _ = writeln!(record, "{dev} {} {}", ino + 1_000_000, name("other"));
        let (_, _, _) = make("unlisted");
        let _ = writeln!(record, "{dev} {ino} ../shm/{}", name("unlisted"));
        let (folder, _) = worker_folder(place.path(), "foveate-00000000000a");

        // A record from before a restart of the machine is ignored.
        fs::write(folder.join(RECORD), record.replace(boot.trim(), "another")).expect("writable");
        all(place.path());
        assert!(path("free").exists() && !folder.exists());

        let (folder, _) = worker_folder(place.path(), "foveate-00000000000a");
        fs::write(folder.join(RECORD), record).expect("writable");
        all(place.path());
        assert!(!folder.exists());
        let left: Vec<&str> =
            ["free", "open", "other", "unlisted"].into_iter().filter(|w| path(w).exists()).collect();
        for what in &left {
            fs::remove_file(path(what)).expect("ours");
        }
        assert_eq!(left, ["open", "other", "unlisted"]);
    }
}
