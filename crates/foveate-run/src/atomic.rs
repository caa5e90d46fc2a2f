//! Atomic file writes: a file is complete or absent.
//!
//! Bytes go to a hidden file beside the target, which is flushed to disk and then renamed to the target's
//! name. A reader, a crash or a full disk never leaves half a file, and the old file stays until the new one
//! is safe.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::RunError;
use crate::folder::{FolderHandle, parent};

/// Writes `bytes` to `path` atomically: completely or not at all.
///
/// # Errors
/// When the folder is missing or not writable, the disk is full, or `path` is a folder. The old file is then
/// untouched.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), RunError> {
    let path = path.as_ref();
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes.as_ref()).map_err(RunError::io("write", path))?;
    file.commit()
}

/// A file being written: [`AtomicFile::commit`] gives it its name; it is removed if it is dropped before
/// that.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// Path for messages.
    path: PathBuf,
    /// `None` for a pipe or a device, which is written to directly.
    pending: Option<Pending>,
}

/// A file under a hidden name and its final name, both in `folder`.
#[derive(Debug)]
struct Pending {
    folder: FolderHandle,
    hidden: OsString,
    target: OsString,
}

impl AtomicFile {
    /// Opens a hidden file beside `path`, which the user named: a link is followed, a pipe or a device is
    /// written to directly. Removes hidden files that killed processes left beside it.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let path = path.as_ref();
        let mut file = Self::create_io(path).map_err(RunError::io("write", path))?;
        file.path = path.to_path_buf();
        Ok(file)
    }

    fn create_io(path: &Path) -> io::Result<Self> {
        // Renaming onto a link would replace the link, so the link's target is used.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if let Ok(about) = fs::metadata(&target) {
            if about.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if !about.is_file() {
                let file = File::options().write(true).open(&target)?;
                return Ok(AtomicFile { file, path: target, pending: None });
            }
        }
        let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let folder = FolderHandle::open_io(parent(&target))?;
        folder.sweep();
        Self::create_in(&folder, name)
    }

    /// Opens a hidden file in `folder` that becomes `name` and replaces any file of that name.
    pub(crate) fn create_in(folder: &FolderHandle, name: &OsStr) -> io::Result<Self> {
        let (file, hidden) = folder.create_hidden(name)?;
        let path = folder.path().join(name);
        let pending = Pending { folder: folder.clone(), hidden, target: name.to_owned() };
        Ok(AtomicFile { file, path, pending: Some(pending) })
    }

    /// The final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An unnamed temporary file on the same disk; for a pipe or a device, in the system's folder for
    /// temporary files.
    ///
    /// # Errors
    /// When it can be created in neither place.
    pub(crate) fn scratch(&self) -> io::Result<File> {
        match &self.pending {
            Some(Pending { folder, .. }) => folder.scratch(),
            None => FolderHandle::open_io(&std::env::temp_dir())?.scratch(),
        }
    }

    /// Flushes to disk and renames to the final name.
    ///
    /// # Errors
    /// When the disk rejects it; the old file is then untouched.
    pub fn commit(mut self) -> Result<(), RunError> {
        let failed = RunError::io("write", &self.path);
        self.finish().map_err(failed)
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(Pending { folder, hidden, target }) = &self.pending else {
            return self.file.flush();
        };
        self.file.sync_all()?;
        let renamed = folder.rename(hidden, target);
        if renamed.is_ok() {
            self.pending = None;
        }
        renamed
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
        if let Some(Pending { folder, hidden, .. }) = &self.pending {
            // A file that cannot be removed now is removed by a later sweep.
            let _ = folder.remove_io(hidden);
        }
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
    fn what_a_killed_process_left_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        // Not hidden files of this program: no process in the name, a link, a file with another suffix.
        for name in ["not-ours.foveate-tmp", ".mine.foveate-tmp", ".a.12-x", ".a.12.foveate-tmp"] {
            fs::write(dir.path().join(name), "x").expect("writable");
        }
        std::os::unix::fs::symlink("not-ours.foveate-tmp", dir.path().join(".l.1-0.foveate-tmp"))
            .expect("links exist here");
        let before = names(dir.path());
        for name in [".crashed.txt.1-0.foveate-tmp", ".film.mp4.77-12-body.foveate-tmp"] {
            fs::write(dir.path().join(name), "x").expect("writable");
        }
        let under_way = AtomicFile::create(dir.path().join("under-way")).expect("writable");
        assert_eq!(names(dir.path()).len(), before.len() + 1, "a file that is being written stays");
        drop(under_way);
        assert_eq!(names(dir.path()), before);
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
