//! What can go wrong with MuJoCo.

use std::path::{Path, PathBuf};

use crate::versions;

/// Why MuJoCo cannot be used, or what it reports.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MujocoError {
    /// The library is in none of the places where it is looked for.
    #[error(
        "MuJoCo's library was not found ({looked}); install it with `{}`, or name its file as in \
         FOVEATE_MUJOCO=/path/to/{}",
        install(),
        crate::locate::file_name()
    )]
    NotFound {
        /// Where it was looked for.
        looked: String,
    },
    /// The file cannot be opened as a library.
    #[error("{} cannot be opened: {why}; install MuJoCo anew with `{}`", path.display(), install_beside(path))]
    Load {
        /// The file.
        path: PathBuf,
        /// The reason given by the system.
        why: String,
    },
    /// The file is a library, but not MuJoCo, or lacks a function.
    #[error(
        "{} has no function {function}, so it is none of the versions of MuJoCo that this program knows ({}); install one of \
         these, for example with `{}`",
        path.display(),
        versions::names(),
        install_beside(path)
    )]
    NotMujoco {
        /// The file.
        path: PathBuf,
        /// The missing function.
        function: &'static str,
    },
    /// The library has a version whose structures are not known.
    #[error(
        "{} is MuJoCo {found}, but this program knows the versions {}; install one of these, for example with `{}`",
        path.display(),
        versions::names(),
        install_beside(path)
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// This processor or system cannot be protected from the library's errors.
    #[error("MuJoCo can be used on x86-64 and 64-bit ARM with Linux or macOS only, not on this machine")]
    Platform,
    /// A file cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason given by the system.
        why: String,
    },
    /// The model is not valid.
    #[error("{name} is no valid model: {why}")]
    Model {
        /// The model's file or name.
        name: String,
        /// What MuJoCo says about it.
        why: String,
    },
    /// Something is larger than the limits of this program.
    #[error("{name}: {what} of {size} are more than the limit of {largest}")]
    TooLarge {
        /// The model's file or name.
        name: String,
        /// What is too large, with its unit.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The limit.
        largest: u64,
    },
    /// A file cannot be a model: it is no regular file.
    #[error("{} is {what}; a model is a file of XML", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// What is there, such as `a folder`.
        what: &'static str,
    },
    /// A model's compilation ended at one of its limits, or with a crash of MuJoCo.
    #[error("{name} cannot be compiled: {why}")]
    Compile {
        /// The model's file or name.
        name: String,
        /// What happened, and what helps.
        why: String,
    },
    /// The process that compiles models cannot be started or does not answer.
    #[error("the process that compiles models does not work: {why}")]
    Compiler {
        /// The reason.
        why: String,
    },
    /// The compilation was stopped by Ctrl-C.
    #[error("{name}: stopped while it was compiled")]
    Stopped {
        /// The model's file or name.
        name: String,
    },
    /// There is not enough memory to start.
    #[error(
        "{name}: less than {megabytes} MB of memory are free; close other programs, or raise the limit (ulimit -v)"
    )]
    Memory {
        /// The model's file or name.
        name: String,
        /// What is needed.
        megabytes: usize,
    },
    /// MuJoCo reported an error inside of a function.
    #[error("MuJoCo failed in {function}: {why}")]
    Failed {
        /// The function.
        function: &'static str,
        /// What MuJoCo says.
        why: String,
    },
    /// A simulation is used after an error in it.
    #[error("a simulation cannot be used after it failed ({why}); make a new one")]
    Broken {
        /// The error.
        why: String,
    },
    /// The state became infinite, NaN or huge.
    #[error("the simulation diverged: {why}; reset it, and use smaller actions or a smaller time step")]
    Diverged {
        /// What was found.
        why: String,
    },
    /// The model has nothing of this name.
    #[error("{model} has no {kind} {name:?}")]
    NoSuchName {
        /// The model's file or name.
        model: String,
        /// What was looked for, such as `camera`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A list has the wrong length.
    #[error("{given} numbers were given for {what}, which takes {wanted}")]
    Length {
        /// What was to be set.
        what: &'static str,
        /// Expected length.
        wanted: usize,
        /// Given length.
        given: usize,
    },
    /// A number to be set is not finite.
    #[error("{what}[{index}] is {value}; only finite numbers can be set")]
    NotFinite {
        /// What was to be set.
        what: &'static str,
        /// Index of the number.
        index: usize,
        /// The number.
        value: f64,
    },
}

/// The command that installs the recommended version where the library `path` is: by the Python of its environment.
fn install_beside(path: &Path) -> String {
    // ENVIRONMENT/lib/python3.11/site-packages/mujoco/libmujoco.so.3.3.1
    let python = path.ancestors().nth(5).map(|environment| environment.join("bin/python"));
    match python.filter(|python| python.exists()) {
        Some(python) => format!("{} -m {}", python.display(), install()),
        None => install(),
    }
}

/// The command that installs the recommended version.
pub(crate) fn install() -> String {
    format!("pip install mujoco=={}", versions::VERSIONS[0].name)
}

/// `text` on one line, shortened.
pub(crate) fn one_line(text: &str) -> String {
    const MOST: usize = 400;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = lines.join("; ");
    if text.chars().count() <= MOST {
        return text;
    }
    let mut short: String = text.chars().take(MOST).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_version_is_one_sentence_with_both_versions_and_the_remedy() {
        let path = PathBuf::from("/a/libmujoco.so.3.3.1");
        let found = versions::supported(331).expect_err("old");
        let said = MujocoError::Version { path, found: found.clone() }.to_string();
        let begin =
            "/a/libmujoco.so.3.3.1 is MuJoCo 3.3.1, but this program knows the versions 3.3.7, 3.4.0, ";
        let end =
            ", 3.17.0, 4.0.0, 4.0.1; install one of these, for example with `pip install mujoco==3.17.0`";
        assert!(said.starts_with(begin) && said.ends_with(end), "{said}");
        // The Python to which the library belongs, not the first on the path.
        let folder = tempfile::tempdir().expect("a folder");
        let python = folder.path().join("bin/python");
        std::fs::create_dir(folder.path().join("bin")).expect("made");
        std::fs::write(&python, "").expect("written");
        let path = folder.path().join("lib/python3.11/site-packages/mujoco/libmujoco.so.3.3.1");
        let said = MujocoError::Version { path, found }.to_string();
        let end = format!("`{} -m pip install mujoco==3.17.0`", python.display());
        assert!(said.ends_with(&end), "{said}");
    }

    #[test]
    fn long_messages_become_one_short_line() {
        assert_eq!(one_line("Error:\n  a\n\n b "), "Error:; a; b");
        assert_eq!(one_line(&"x".repeat(1000)).chars().count(), 401);
    }
}
