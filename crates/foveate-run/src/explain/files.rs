//! The report's folder, which is complete or absent.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::RunError;
use crate::folder::{FolderHandle, parent};
use foveate_core::hint::Setting;

/// The file that identifies a folder as a report of this program.
const MARK: &str = foveate_explain::study::REPORT_FILE;
/// Suffix of the name of an older report while it is being replaced.
const OLD: &str = ".foveate-old";

/// A folder being written under a hidden name.
pub(super) struct Folder {
    /// The parent folder.
    beside: FolderHandle,
    handle: FolderHandle,
    hidden: OsString,
    name: OsString,
    target: PathBuf,
}

impl Folder {
    /// Creates the hidden folder beside `target`, with the folders above it, and removes hidden folders that killed processes
    /// left there.
    ///
    /// # Errors
    /// When `target` exists and is not a report of this program, or nothing can be created beside it.
    pub(super) fn create(target: &Path) -> Result<Self, RunError> {
        let refused = |what: &str| {
            Err(RunError::BadRequest {
                why: format!(
                    "{} {what}; move it away, or choose another place with {}",
                    target.display(),
                    Setting::Out
                ),
            })
        };
        // The user may name a link to the folder.
        let whole = fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
        let (Some(name), true) = (whole.file_name(), target.file_name().is_some()) else {
            return refused("is no name for a folder");
        };
        let beside = FolderHandle::open_or_create(parent(&whole))?;
        restore(&beside, name).map_err(RunError::io("create", target))?;
        beside.sweep();
        if target.is_dir() {
            let folder = FolderHandle::open(target)?;
            let mark = |entry: &crate::folder::Entry| entry.is_file && entry.name == MARK;
            let entries = folder.entries()?;
            if !entries.is_empty() && !entries.iter().any(mark) {
                return refused("is a folder with other things in it");
            }
        } else if target.symlink_metadata().is_ok() {
            return refused("is a file");
        }
        let made = beside.make_hidden_folder(&name.to_string_lossy());
        let (handle, hidden) = made.map_err(RunError::io("create", target))?;
        Ok(Folder { beside, handle, hidden, name: name.to_owned(), target: target.to_path_buf() })
    }

    /// Adds a file; `name` may contain folders.
    pub(super) fn add(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        let mut folders = name.split('/');
        let name = folders.next_back().unwrap_or(name);
        let mut inner: Option<FolderHandle> = None;
        for folder in folders {
            inner = Some(inner.as_ref().unwrap_or(&self.handle).make_folder(folder)?);
        }
        inner.as_ref().unwrap_or(&self.handle).write(name, bytes)
    }

    /// Renames the folder to its name; an older report is replaced.
    pub(super) fn commit(self) -> Result<(), RunError> {
        let Folder { beside, hidden, name, target, .. } = &self;
        let done = if beside.has(&name.to_string_lossy()) {
            beside.exchange(hidden, name).or_else(|_| replace(beside, hidden, name))
        } else {
            beside.rename(hidden, name)
        };
        done.map_err(RunError::io("write", target))
        // The older report has the hidden name now, and is removed with it.
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // After a first commit nothing has this name.
        let _ = self.beside.remove_tree(&self.hidden);
    }
}

/// Replaces `name` by `hidden` where the file system cannot exchange the two: neither exists for a moment,
/// which [`restore`] handles.
fn replace(beside: &FolderHandle, hidden: &OsStr, name: &OsStr) -> io::Result<()> {
    let old = old_name(name);
    beside.rename(name, &old)?;
    if let Err(error) = beside.rename(hidden, name) {
        // Undoes the first rename; if that fails too, the next call does it.
        let _ = beside.rename(&old, name);
        return Err(error);
    }
    beside.remove_tree(&old)
}

/// Restores the name of an older report if the replacing process was killed.
fn restore(beside: &FolderHandle, name: &OsStr) -> io::Result<()> {
    let old = old_name(name);
    if beside.has(&old.to_string_lossy()) && !beside.rename_folder(&old, name)? {
        return beside.remove_tree(&old);
    }
    Ok(())
}

fn old_name(name: &OsStr) -> OsString {
    let mut old = OsString::from(".");
    old.push(name);
    old.push(OLD);
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the test's own folder");
        let mut names: Vec<_> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_report_replaces_a_report_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let target = dir.path().join("report");
        for text in ["one", "two"] {
            let folder = Folder::create(&target).expect("free, or a report");
            folder.add(MARK, text.as_bytes()).expect("writable");
            folder.add("figures/a.svg", b"<svg/>").expect("writable");
            folder.commit().expect("writable");
            assert_eq!(fs::read_to_string(target.join(MARK)).expect("there"), text);
            assert_eq!(names(dir.path()), ["report"]);
            assert_eq!(names(&target), ["figures", MARK]);
        }
        let folder = Folder::create(&target).expect("a report");
        folder.add(MARK, b"three").expect("writable");
        drop(folder);
        assert_eq!(fs::read_to_string(target.join(MARK)).expect("there"), "two", "abandoned");
        assert_eq!(names(dir.path()), ["report"]);

        fs::write(dir.path().join("file"), "x").expect("writable");
        fs::create_dir_all(dir.path().join("mine/things")).expect("writable");
        for (name, wants) in [("file", "is a file"), ("mine", "other things in it"), ("file/where", "create")]
        {
            let Err(error) = Folder::create(&dir.path().join(name)) else { panic!("{name} was taken") };
            assert!(error.to_string().contains(wants), "{error}");
        }
        drop(Folder::create(&dir.path().join("no/where")).expect("the folders above it are made"));
        assert_eq!(names(dir.path()), ["file", "mine", "no", "report"]);
    }

    #[test]
    fn a_kill_while_a_report_is_replaced_loses_none() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let target = dir.path().join("report");
        let (name, old) = (OsStr::new("report"), dir.path().join(".report.foveate-old"));
        let report = |text: &str| {
            let folder = Folder::create(&target).expect("free, or a report");
            folder.add(MARK, text.as_bytes()).expect("writable");
            folder
        };
        let read = || fs::read_to_string(target.join(MARK)).expect("there");
        report("one").commit().expect("writable");
        // Without an atomic exchange.
        let folder = report("two");
        replace(&folder.beside, &folder.hidden, name).expect("writable");
        drop(folder);
        assert_eq!((read().as_str(), names(dir.path())), ("two", vec!["report".to_owned()]));
        // Killed between the two steps, or after them.
        fs::rename(&target, &old).expect("writable");
        drop(Folder::create(&target).expect("a report"));
        assert_eq!((read().as_str(), names(dir.path())), ("two", vec!["report".to_owned()]));
        fs::create_dir_all(old.join("figures")).expect("writable");
        drop(Folder::create(&target).expect("a report"));
        assert_eq!((read().as_str(), names(dir.path())), ("two", vec!["report".to_owned()]));
        // Killed earlier: a locked folder stays, an abandoned one is removed.
        let under_way = report("three");
        fs::create_dir(dir.path().join(".report.1-new.foveate-tmp")).expect("writable");
        fs::write(dir.path().join(".report.1-new.foveate-tmp/index.html"), "x").expect("writable");
        drop(Folder::create(&target).expect("a report"));
        assert_eq!(names(dir.path()).len(), 2);
        drop(under_way);
        assert_eq!(names(dir.path()), ["report"]);
    }
}
