//! The report's folder, which is whole or absent.

use std::fs;
use std::path::{Path, PathBuf};

use crate::RunError;
use crate::atomic::{SUFFIX, write};

/// The file by which a folder is known to be a report of ours.
pub(super) const MARK: &str = "report.json";

/// A folder being written under a hidden name.
pub(super) struct Folder {
    hidden: PathBuf,
    target: PathBuf,
}

impl Folder {
    /// Makes the hidden folder beside `target`.
    ///
    /// # Errors
    /// When there is something at `target` that is no report of ours, or nothing can be made beside it.
    pub(super) fn create(target: &Path) -> Result<Self, RunError> {
        let refused = |what: &str| {
            Err(RunError::BadRequest {
                why: format!("{} {what}; choose another --out or move it away", target.display()),
            })
        };
        let Some(name) = target.file_name() else { return refused("is no name for a folder") };
        if target.is_dir() {
            let empty = fs::read_dir(target).map_err(RunError::io("read", target))?.next().is_none();
            if !empty && !target.join(MARK).is_file() {
                return refused("is a folder with other things in it");
            }
        } else if target.exists() {
            return refused("is a file");
        }
        let hidden = beside(target, name, "new");
        fs::create_dir(&hidden).map_err(RunError::io("create", target))?;
        Ok(Folder { hidden, target: target.to_path_buf() })
    }

    /// Adds a file; `name` may have one folder in it.
    pub(super) fn add(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        let path = self.hidden.join(name);
        if let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) {
            fs::create_dir(parent).map_err(RunError::io("create", parent))?;
        }
        write(&path, bytes)
    }

    /// Gives the folder its name; an older report makes way.
    pub(super) fn commit(self) -> Result<(), RunError> {
        let failed = || RunError::io("write", &self.target);
        let name = self.target.file_name().unwrap_or_default();
        let old = beside(&self.target, name, "old");
        let replaces = self.target.is_dir();
        if replaces {
            fs::rename(&self.target, &old).map_err(failed())?;
        }
        if let Err(error) = fs::rename(&self.hidden, &self.target) {
            if replaces {
                // Back to how it was; if even that fails, the error below says where to look.
                let _ = fs::rename(&old, &self.target);
            }
            return Err(failed()(error));
        }
        if replaces {
            fs::remove_dir_all(&old).map_err(RunError::io("remove", &old))?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // After a commit there is nothing of this name any more.
        let _ = fs::remove_dir_all(&self.hidden);
    }
}

fn beside(target: &Path, name: &std::ffi::OsStr, what: &str) -> PathBuf {
    target.with_file_name(format!(".{}.{}-{what}{SUFFIX}", name.to_string_lossy(), std::process::id()))
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
        for (name, wants) in
            [("file", "is a file"), ("mine", "other things in it"), ("no/where", "create the folder")]
        {
            let Err(error) = Folder::create(&dir.path().join(name)) else { panic!("{name} was taken") };
            assert!(error.to_string().contains(wants), "{error}");
        }
        assert_eq!(names(dir.path()), ["file", "mine", "report"]);
    }
}
