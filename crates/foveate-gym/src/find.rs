//! Finds the Python interpreter that hosts environments.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::GymError;

/// A Python interpreter, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// Path of the interpreter.
    pub path: PathBuf,
    /// Source of the path: `FOVEATE_PYTHON`, `the running Python`, `VIRTUAL_ENV` or `PATH`.
    pub named_by: &'static str,
}

/// The interpreter that runs this program, if one does; see [`runs_in`].
static RUNNING: OnceLock<PathBuf> = OnceLock::new();
const RUNNING_NAME: &str = "the running Python";

/// Makes `python`, the interpreter that runs this program, the default of [`find_python`]. A program that embeds Python may report
/// itself as the interpreter, so a file whose name is not that of one is ignored; so is every call but the first.
pub fn runs_in(python: &Path) {
    let name = python.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
    if ["python", "pypy"].iter().any(|start| name.starts_with(start)) {
        let _ = RUNNING.set(python.to_owned());
    }
}

/// Returns the interpreter named by `FOVEATE_PYTHON`; otherwise the one that runs this program, if [`runs_in`] was told; otherwise
/// that of the active virtual environment (`VIRTUAL_ENV`); otherwise the first `python3` on the `PATH`.
///
/// # Errors
/// When there is none. If a variable names a file that does not exist, the error says so and the search stops
/// there.
pub fn find_python() -> Result<Python, GymError> {
    find(RUNNING.get().map(PathBuf::as_path), |name| env::var_os(name))
}

fn find(running: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Python, GymError> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = [
        ("FOVEATE_PYTHON", set("FOVEATE_PYTHON")),
        (RUNNING_NAME, running.map(Path::to_owned)),
        ("VIRTUAL_ENV", set("VIRTUAL_ENV").map(|folder| folder.join("bin/python"))),
    ];
    for (named_by, path) in named {
        let Some(path) = path else { continue };
        if path.is_file() {
            return Ok(Python { path, named_by });
        }
        // A bare name is looked up on the PATH when the process starts.
        if named_by == "FOVEATE_PYTHON"
            && path.components().count() == 1
            && let Some(path) = on_path(variable("PATH"), path.as_os_str())
        {
            return Ok(Python { path, named_by });
        }
        return Err(GymError::NoPython { why: format!("{named_by}: there is no {}", path.display()) });
    }
    on_path(variable("PATH"), "python3".as_ref())
        .map(|path| Python { path, named_by: "PATH" })
        .ok_or_else(|| GymError::NoPython { why: "no python3 on the PATH".into() })
}

fn on_path(path: Option<OsString>, name: &std::ffi::OsStr) -> Option<PathBuf> {
    // An empty entry means the current folder, which is rarely intended.
    let path = path?;
    let mut folders = env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_named_counts() {
        let here = env::current_exe().expect("a test runs");
        let folder = here.parent().expect("in a folder").to_owned();
        let (here, folder) = (here.to_str().expect("text"), folder.to_str().expect("text"));
        let check = |vars: &[(&str, &str)], expect: Result<&str, &str>| {
            let running =
                vars.iter().find(|(name, _)| *name == RUNNING_NAME).map(|(_, path)| Path::new(path));
            let found = find(running, |name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).into()));
            match (found, expect) {
                (Ok(python), Ok(named_by)) => assert_eq!(python.named_by, named_by, "{vars:?}"),
                (Err(error), Err(part)) => {
                    let said = error.to_string();
                    assert!(said.contains(part) && said.contains("FOVEATE_PYTHON=/"), "{said}");
                }
                (found, _) => panic!("{vars:?} gave {found:?}"),
            }
        };
        check(&[("FOVEATE_PYTHON", here), ("VIRTUAL_ENV", "/nowhere")], Ok("FOVEATE_PYTHON"));
        check(
            &[("FOVEATE_PYTHON", here), (RUNNING_NAME, here), ("VIRTUAL_ENV", "/nowhere")],
            Ok("FOVEATE_PYTHON"),
        );
        check(&[(RUNNING_NAME, here), ("VIRTUAL_ENV", "/nowhere"), ("PATH", folder)], Ok(RUNNING_NAME));
        check(&[("FOVEATE_PYTHON", ""), ("VIRTUAL_ENV", "/nowhere")], Err("there is no /nowhere/bin/python"));
        check(&[("FOVEATE_PYTHON", "/nowhere/python3")], Err("there is no /nowhere/python3"));
        check(&[("PATH", folder)], Err("no python3 on the PATH"));
        check(&[], Err("no python3 on the PATH"));
        let name = PathBuf::from(here).file_name().expect("a name").to_owned();
        check(&[("FOVEATE_PYTHON", name.to_str().expect("text")), ("PATH", folder)], Ok("FOVEATE_PYTHON"));
    }
}
