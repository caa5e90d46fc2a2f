//! Files that are whole or absent.
//!
//! What is written goes to a hidden file beside its target, is flushed to the disk, and takes the target's name only
//! then: a reader, a crash or a full disk never meets half a file, and the old one stays until the new one is safe.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::RunError;

/// How the hidden files end. A crash may leave some behind; [`clean`] removes them.
pub(crate) const SUFFIX: &str = ".foveate-tmp";

/// Writes `bytes` to `path`, whole or not at all.
///
/// # Errors
/// When the folder is missing or not writable, the disk is full, or `path` is a folder. The old file is then untouched.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), RunError> {
    let path = path.as_ref();
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes.as_ref()).map_err(RunError::io("write", path))?;
    file.commit()
}

/// A file being written: it gets its name with [`AtomicFile::commit`] and vanishes when dropped before.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    path: PathBuf,
    /// The hidden file and the name that it will take; `None` for a pipe or a device, which is written straight to.
    pending: Option<(PathBuf, PathBuf)>,
}

impl AtomicFile {
    /// Opens a hidden file beside `path`. A link is followed; a pipe or a device is written straight to.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RunError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = path.as_ref();
        let failed = || RunError::io("write", path);

        // Renaming onto a link would replace the link, so its target is what counts.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if let Ok(about) = fs::metadata(&target) {
            if about.is_dir() {
                return Err(failed()(io::ErrorKind::IsADirectory.into()));
            }
            if !about.is_file() {
                let file = File::options().write(true).open(&target).map_err(failed())?;
                return Ok(AtomicFile { file, path: path.to_path_buf(), pending: None });
            }
        }
        let Some(name) = target.file_name() else {
            return Err(failed()(io::ErrorKind::InvalidFilename.into()));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        hidden.push(format!(".{}-{count}{SUFFIX}", std::process::id()));
        let hidden = folder_of(&target).join(hidden);
        let file = File::options().write(true).create_new(true).open(&hidden).map_err(failed())?;
        Ok(AtomicFile { file, path: path.to_path_buf(), pending: Some((hidden, target)) })
    }

    /// Flushes to the disk and takes the final name.
    ///
    /// # Errors
    /// When the disk refuses; the old file is then untouched.
    pub fn commit(mut self) -> Result<(), RunError> {
        let failed = RunError::io("write", &self.path);
        self.finish().map_err(failed)
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some((hidden, target)) = &self.pending else {
            return self.file.flush();
        };
        self.file.sync_all()?;
        fs::rename(hidden, target)?;
        let folder = folder_of(target).to_path_buf();
        self.pending = None;
        // The rename itself is on the disk once the folder is.
        File::open(folder)?.sync_all()
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((hidden, _)) = &self.pending {
            // Nothing more can be done about a file that does not go away; `clean` tries again.
            let _ = fs::remove_file(hidden);
        }
    }
}

/// Removes what a crash left behind in `folder`. Call it only on a folder that no other process writes to.
///
/// # Errors
/// When the folder cannot be listed or a leftover cannot be removed.
pub fn clean(folder: impl AsRef<Path>) -> Result<(), RunError> {
    let folder = folder.as_ref();
    for entry in fs::read_dir(folder).map_err(RunError::io("read", folder))? {
        let entry = entry.map_err(RunError::io("read", folder))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(SUFFIX) {
            fs::remove_file(entry.path()).map_err(RunError::io("remove", &entry.path()))?;
        }
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let list = fs::read_dir(folder).expect("the test's own folder");
        let mut names: Vec<_> =
            list.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_whole_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.txt");
        write(&path, "one").expect("writable");
        write(&path, "two, longer").expect("writable");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "two, longer");
        assert_eq!(names(dir.path()), ["a.txt"]);
    }

    #[test]
    fn an_abandoned_file_vanishes_and_the_old_one_stays() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.txt");
        write(&path, "old").expect("writable");
        let mut file = AtomicFile::create(&path).expect("writable");
        file.write_all(b"half of the n").expect("writable");
        assert_eq!(names(dir.path()).len(), 2, "the hidden file is there while it is written");
        drop(file);
        assert_eq!(names(dir.path()), ["a.txt"]);
        assert_eq!(fs::read_to_string(&path).expect("readable"), "old");
    }

    #[test]
    fn clean_removes_leftovers_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        write(dir.path().join("kept.txt"), "x").expect("writable");
        std::mem::forget(AtomicFile::create(dir.path().join("crashed.txt")).expect("writable"));
        fs::write(dir.path().join("not-ours.foveate-tmp"), "x").expect("writable");
        assert_eq!(names(dir.path()).len(), 3);
        clean(dir.path()).expect("listable");
        assert_eq!(names(dir.path()), ["kept.txt", "not-ours.foveate-tmp"]);
    }

    #[cfg(unix)]
    #[test]
    fn follows_links_and_writes_to_devices() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (real, link) = (dir.path().join("real.txt"), dir.path().join("link.txt"));
        write(&real, "old").expect("writable");
        std::os::unix::fs::symlink(&real, &link).expect("links exist here");
        write(&link, "new").expect("writable");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).expect("readable"), "new");
        write("/dev/null", "gone").expect("devices take bytes");
    }

    #[test]
    fn errors_name_path_and_remedy() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::write(dir.path().join("file"), "x").expect("writable");
        for (path, wants) in [
            ("missing/a.txt", "create the folder first"),
            ("", "this is a folder"),
            ("file/a.txt", "part of the path is a file"),
        ] {
            let path = dir.path().join(path);
            let said = write(&path, "x").expect_err("must fail").to_string();
            assert!(said.contains(wants), "{said}");
            assert!(said.contains(&*dir.path().to_string_lossy()), "{said}");
            assert_eq!(said.lines().count(), 1);
        }
        assert_eq!(names(dir.path()), ["file"]);
    }
}
