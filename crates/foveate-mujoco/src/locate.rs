//! Where MuJoCo's library is.
//!
//! Opening a library runs its code. All places that are searched are chosen by the user or by the system's administrator; no file
//! that Foveate reads may add one: docs/trust.md.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::MujocoError;
use crate::versions::{self, VERSIONS};

/// The variable that names the library's file, or a folder that contains it.
pub const VARIABLE: &str = "FOVEATE_MUJOCO";

/// How a library was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its file.
    pub path: PathBuf,
    /// What led to it: the option `library`, an environment variable, or a folder.
    pub by: String,
}

/// What the search starts from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// A file or folder that the user names; the search then stops there.
    pub library: Option<PathBuf>,
    /// The Python interpreter that hosts other worlds; only folders beside it are searched, it is not run.
    pub python: Option<PathBuf>,
}

impl Search {
    /// Finds the library: where the user says; in `FOVEATE_MUJOCO`; in the environment of the Python interpreter; in the active
    /// virtual environment; in the user's packages; in the folders of the system.
    ///
    /// # Errors
    /// [`MujocoError::NotFound`], which says where it was looked for. When the user or `FOVEATE_MUJOCO` names a place, the search
    /// stops there.
    pub fn find(&self) -> Result<Found, MujocoError> {
        self.find_with(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn find_with(&self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Found, MujocoError> {
        let path = |name| variable(name).map(PathBuf::from);
        let named = [("the option library", self.library.clone()), (VARIABLE, path(VARIABLE))];
        if let Some((by, place)) = named.into_iter().find_map(|(by, place)| Some((by, place?))) {
            let found = if place.is_file() { Some(place.clone()) } else { in_environment(&place) };
            return found.map(|path| Found { path, by: by.to_owned() }).ok_or_else(|| {
                MujocoError::NotFound { looked: format!("{by}: there is none at {}", place.display()) }
            });
        }
        let mut looked = Vec::new();
        let environments = [
            ("the environment of Python", self.python.as_deref().and_then(environment_of)),
            ("VIRTUAL_ENV", path("VIRTUAL_ENV")),
            ("the user's packages", path("HOME").map(|home| home.join(".local"))),
            ("the user's packages", path("HOME").map(|home| home.join("Library/Python"))),
            ("MuJoCo's folder", path("HOME").map(|home| home.join(".mujoco"))),
        ];
        let system = ["/usr/local", "/usr", "/opt/mujoco", "/opt/homebrew"];
        let system = system.map(|folder| ("the system's folders", Some(PathBuf::from(folder))));
        for (by, folder) in environments.into_iter().chain(system) {
            let Some(folder) = folder.filter(|folder| !looked.contains(folder)) else { continue };
            if let Some(path) = in_environment(&folder) {
                return Ok(Found { path, by: by.to_owned() });
            }
            looked.push(folder);
        }
        let looked: Vec<String> = looked.iter().map(|folder| folder.display().to_string()).collect();
        Err(MujocoError::NotFound { looked: format!("looked below {}", looked.join(", ")) })
    }
}

/// The name of the recommended version's file on this system.
pub(crate) fn file_name() -> String {
    let version = VERSIONS[0].name;
    if cfg!(target_os = "macos") {
        format!("libmujoco.{version}.dylib")
    } else if cfg!(windows) {
        "mujoco.dll".to_owned()
    } else {
        format!("libmujoco.so.{version}")
    }
}

/// `folder/bin/python3` belongs to the environment `folder`. Links are not followed: a virtual environment's interpreter is often
/// a link to the system's.
fn environment_of(python: &Path) -> Option<PathBuf> {
    Some(python.parent()?.parent()?.to_owned())
}

/// The library in the folder of an environment or of the system, or in `folder` itself.
fn in_environment(folder: &Path) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned(), folder.join("mujoco"), folder.join("lib")];
    folders.push(folder.join("Lib/site-packages/mujoco"));
    folders.push(folder.join(format!("lib/{}-linux-gnu", env::consts::ARCH)));
    folders.extend(VERSIONS.iter().map(|version| folder.join(format!("mujoco-{}/lib", version.name))));
    // lib/python3.11/site-packages, dist-packages on Debian; 3.11/lib/python/site-packages for a user of macOS.
    for parent in [folder.join("lib"), folder.to_owned()] {
        for inner in subfolders(&parent) {
            folders.push(inner.join("site-packages/mujoco"));
            folders.push(inner.join("dist-packages/mujoco"));
            folders.push(inner.join("lib/python/site-packages/mujoco"));
        }
    }
    let mut found: Vec<PathBuf> = folders.iter().flat_map(|folder| libraries(folder)).collect();
    // Among equals, the first.
    found.reverse();
    found.into_iter().max_by_key(|path| preference(path))
}

/// How much a library is preferred to the others of an environment: one of a supported version; one of the version that pip says
/// is installed, because files of another may stay behind in `mujoco-core`; the recommended version; the newest.
fn preference(path: &Path) -> (bool, bool, bool, Option<[u32; 3]>) {
    let Some(name) = version_in_name(path) else { return (cfg!(windows), false, false, None) };
    let known = VERSIONS.iter().any(|version| version.name == name);
    let record = format!("../mujoco-{name}.dist-info");
    let installed = path.parent().is_some_and(|folder| folder.join(record).is_dir());
    (known, installed, name == VERSIONS[0].name, versions::number_of(name))
}

/// `3.17.0` in `libmujoco.so.3.17.0` and `libmujoco.3.17.0.dylib`.
fn version_in_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_prefix("libmujoco.")?;
    name.strip_prefix("so.").or_else(|| name.strip_suffix(".dylib"))
}

/// The folders of Python versions in `folder`, sorted, newest last.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    /// More entries than this are no folder of an environment.
    const MOST: usize = 4096;
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_version = |name: &str| name.starts_with("python3") || name.starts_with("3.");
    let paths = entries.take(MOST).filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<PathBuf> = paths
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_version))
        .collect();
    folders.sort();
    folders
}

/// All of MuJoCo's libraries in `folder`, sorted.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    const MOST: usize = 4096;
    let is_library = |name: &str| {
        name.starts_with("libmujoco.") && [".so", ".dylib"].iter().any(|kind| name.contains(kind))
            || name == "mujoco.dll"
    };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.take(MOST).filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_library))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an empty file, with its folders, below `root`.
    fn touch(root: &Path, path: &str) -> PathBuf {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(&path, "").expect("it can be written");
        path
    }

    #[test]
    fn places_are_searched_in_their_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let inside = format!("lib/python3.11/site-packages/mujoco/{}", file_name());
        let [option, venv, python, home] =
            ["option", "venv", "python", "home/.local"].map(|name| touch(root, &format!("{name}/{inside}")));
        let bin = touch(root, "python/bin/python3");
        let other = touch(root, "old/lib/python3.9/site-packages/mujoco/libmujoco.so.3.3.7");
        let find = |library: Option<&str>, python: bool, vars: &[(&str, &str)]| {
            let search =
                Search { library: library.map(|name| root.join(name)), python: python.then(|| bin.clone()) };
            let variable = |name: &str| {
                let (_, value) = vars.iter().find(|(known, _)| *known == name)?;
                Some(root.join(value).into_os_string())
            };
            search.find_with(variable)
        };
        let all = [(VARIABLE, "old"), ("VIRTUAL_ENV", "venv"), ("HOME", "home")];
        let check = |library, python, vars: &[(&str, &str)], path: &Path, by: &str| {
            let found = find(library, python, vars).expect(by);
            assert_eq!(found, Found { path: path.to_owned(), by: by.to_owned() });
        };
        check(Some("option"), true, &all, &option, "the option library");
        check(option.to_str(), true, &all, &option, "the option library");
        check(None, true, &all, &other, VARIABLE);
        check(None, true, &all[1..], &python, "the environment of Python");
        check(None, false, &all[1..], &venv, "VIRTUAL_ENV");
        check(None, true, &all[2..], &python, "the environment of Python");
        check(None, false, &all[2..], &home, "the user's packages");

        let said = find(Some("nowhere"), true, &all).expect_err("the search stops there").to_string();
        assert!(
            said.contains("the option library: there is none at ") && said.lines().count() == 1,
            "{said}"
        );
        let said = find(None, true, &[(VARIABLE, "nowhere"), all[1]]).expect_err("the same").to_string();
        assert!(said.contains("FOVEATE_MUJOCO: there is none at "), "{said}");
        assert!(said.contains("`pip install mujoco==3.17.0`") && said.contains("/path/to/"), "{said}");
    }

    #[test]
    fn of_several_versions_the_installed_one_is_taken_and_an_unknown_one_only_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let packages = "lib/python3.11/site-packages";
        let library = |version: &str| match file_name().strip_prefix("libmujoco.so") {
            Some(_) => format!("{packages}/mujoco/libmujoco.so.{version}"),
            None => format!("{packages}/mujoco/libmujoco.{version}.dylib"),
        };
        let finds = |version: &str| {
            let found = in_environment(folder.path()).expect("there is one");
            assert_eq!(found, folder.path().join(library(version)));
        };
        // Version numbers, not texts: 3.4.0 is older than 3.16.0.
        for (added, chosen) in [
            ("9.9.9", "9.9.9"),
            ("3.4.0", "3.4.0"),
            ("3.16.0", "3.16.0"),
            ("4.0.0", "4.0.0"),
            ("3.17.0", "3.17.0"),
        ] {
            touch(folder.path(), &library(added));
            finds(chosen);
        }
        // `pip install mujoco==3.16.0` leaves the library of mujoco-core 4.0.0 where it was.
        touch(folder.path(), &format!("{packages}/mujoco-3.16.0.dist-info/METADATA"));
        finds("3.16.0");
    }

    #[test]
    fn without_any_the_error_says_where_it_was_looked_for() {
        let search = Search { library: None, python: Some("/nowhere/env/bin/python".into()) };
        match search.find_with(|_| None) {
            Err(error @ MujocoError::NotFound { .. }) => {
                let said = error.to_string();
                assert!(said.contains("looked below /nowhere/env, /usr/local, /usr"), "{said}");
            }
            // A machine may have it in its system folders.
            other => assert_eq!(other.expect("found").by, "the system's folders"),
        }
    }
}
