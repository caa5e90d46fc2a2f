//! The process that compiles one model.

use std::ffi::{CString, OsString};
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{DONE, FOR, HELLO, INVALID, Limits, MARK, REFUSED, WARNING, too_much};
use crate::data::Data;
use crate::error::{MujocoError, one_line};
use crate::ffi::{Library, Source};
use crate::model::{LARGEST_MODEL, LONGEST_TEXT, Model};

/// The exit code of a process whose time is over.
pub(super) const TOO_LATE: i32 = 75;
/// What errors of this process call the model.
const IT: &str = "it";
/// Bytes of the stack on which a model is parsed and compiled.
const STACK: usize = 8 << 20;

/// Compiles a model as another process asked for with these arguments, answers on the standard output, and ends the process.
pub fn serve(arguments: &[OsString]) -> ! {
    let Some((library, model, limits)) = job(arguments) else {
        // Somebody typed the argument of such a process.
        exit(2);
    };
    say(HELLO, "");
    let limited = limit(limits);
    // A thread has a stack of a known size. When the time is over, this one ends the process.
    let work = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        if let Err(why) =
            limited.map_err(|error| error.to_string()).and_then(|()| compile(&library, &model, limits))
        {
            say(REFUSED, &why);
        }
        exit(0);
    });
    if let Err(error) = work {
        say(REFUSED, &format!("no thread can be started: {error}"));
        exit(1);
    }
    std::thread::sleep(Duration::from_secs(u64::from(limits.seconds)));
    exit(TOO_LATE);
}

fn job(arguments: &[OsString]) -> Option<(PathBuf, PathBuf, Limits)> {
    let [library, model, megabytes, seconds] = arguments else { return None };
    let number = |text: &OsString| text.to_str()?.parse().ok();
    Some((library.into(), model.into(), Limits { megabytes: number(megabytes)?, seconds: number(seconds)? }))
}

/// Writes a line of the answer.
fn say(what: &str, text: &str) {
    let line = format!("\n{MARK}{what}{}\n", one_line(text));
    // A file takes a whole line, and nobody is left to be told of an error.
    let _ = rustix::io::write(rustix::stdio::stdout(), line.as_bytes());
}

/// Sets the limits of this process, none above what it already has.
fn limit(limits: Limits) -> rustix::io::Result<()> {
    let bounds = [
        (Resource::Core, 0),
        (Resource::Cpu, u64::from(limits.seconds) + 1),
        (Resource::Fsize, LARGEST_MODEL + (1 << 20)),
    ];
    // macOS does not hold processes to this limit, and has no such file.
    let now = fs::read_to_string("/proc/self/statm").ok();
    let now = now.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let page = rustix::param::page_size() as u64;
    let memory =
        now.map(|pages| (Resource::As, pages * page + STACK as u64 + (u64::from(limits.megabytes) << 20)));
    for (resource, most) in bounds.into_iter().chain(memory) {
        let old = getrlimit(resource);
        let most = [old.current, old.maximum].into_iter().flatten().fold(most, u64::min);
        setrlimit(resource, Rlimit { current: Some(most), maximum: old.maximum })?;
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // Whoever asked may have ended before that.
    let asked: Option<i32> = std::env::var(FOR).ok().and_then(|process| process.parse().ok());
    let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    if asked.is_some_and(|asked| parent != Some(asked)) {
        exit(1);
    }
    Ok(())
}

/// Compiles the model, steps it, and writes it to the standard input, a file; `Err` holds why that is not possible.
fn compile(library: &Path, path: &Path, limits: Limits) -> Result<(), String> {
    let said = |error: MujocoError| error.to_string();
    check_files(path)?;
    let library = Library::open(library).map_err(said)?;
    let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    let model = match Model::compile(&library, IT, Source::File(&text)) {
        Ok(model) => model,
        Err(MujocoError::Model { mut why, .. }) => {
            if why.contains("allocat") {
                why = format!("{why}; {}", too_much(limits));
            }
            say(INVALID, &why);
            return Ok(());
        }
        Err(error) => {
            let said = said(error);
            return Err(said
                .strip_prefix(IT)
                .and_then(|said| said.strip_prefix(": "))
                .unwrap_or(&said)
                .to_owned());
        }
    };
    for warning in model.warnings() {
        say(WARNING, warning);
    }
    // The first steps, so that a model whose steps never end, or crash, does so here. Whether they diverge is for its user to see.
    match Data::new(&model) {
        Ok(mut data) => {
            let _ = data.forward();
            let _ = data.step_whole(2);
        }
        Err(error) => {
            let error = said(error);
            return Err(if error.contains("alloc") || error.contains("memory") {
                too_much(limits)
            } else {
                error
            });
        }
    }
    model.raw.save(c"/dev/fd/0", &mut Vec::new()).map_err(said)?;
    say(DONE, "");
    Ok(())
}

/// Why a file is not read.
pub(super) enum NoFile {
    /// The system's reason.
    Unreadable(String),
    /// What is there instead of a file.
    Other(&'static str),
}

impl NoFile {
    pub(super) fn of(self, path: &Path) -> MujocoError {
        let path = path.to_owned();
        match self {
            NoFile::Unreadable(why) => MujocoError::File { path, why },
            NoFile::Other(what) => MujocoError::NoFile { path, what },
        }
    }
}

/// Whether `path` leads to a regular file; nothing is opened, so that a pipe does not wait for its other end.
pub(super) fn check_file(path: &Path) -> Result<(), NoFile> {
    let unreadable = |error: std::io::Error| {
        NoFile::Unreadable(match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file or folder; check the path".into(),
            _ => error.to_string(),
        })
    };
    let kind = fs::metadata(path).map_err(unreadable)?.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(NoFile::Other(what))
}

/// Looks for pipes, devices and folders among the files that a model names, and the models and texts that it includes name, so that
/// nothing waits for their other end. What this does not find ends with the time.
fn check_files(model: &Path) -> Result<(), String> {
    const MOST: usize = 1000;
    let mut folders = vec![model.parent().unwrap_or(Path::new("")).to_owned()];
    let mut files = vec![model.to_owned()];
    let mut next = 0;
    while next < files.len().min(MOST) {
        let file = files[next].clone();
        next += 1;
        let small = fs::metadata(&file).is_ok_and(|data| data.len() <= LONGEST_TEXT);
        let Some(text) = small.then(|| fs::read(&file).ok()).flatten() else { continue };
        let text = String::from_utf8_lossy(&text);
        for folder in ["meshdir", "texturedir", "assetdir"].iter().flat_map(|name| attributes(&text, name)) {
            let folder = folders[0].join(folder);
            if folders.len() < 8 && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        for named in attributes(&text, "file") {
            for path in folders.iter().map(|folder| folder.join(named)) {
                if let Err(NoFile::Other(what)) = check_file(&path) {
                    return Err(format!("it names {}, which is {what}", path.display()));
                }
                if path.extension().is_some_and(|ending| ending == "xml") && !files.contains(&path) {
                    files.push(path);
                }
            }
        }
    }
    Ok(())
}

/// The values of attributes of XML whose name ends or begins with `name`, as `filename` and `fileup` do with `file`.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    text.match_indices(name).filter_map(move |(at, _)| {
        let rest = text[at + name.len()..].trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        let rest = rest.trim_start().strip_prefix('=')?.trim_start();
        let quote = rest.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        rest[1..].split(quote).next().filter(|value| !value.is_empty() && value.len() <= 4096)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_model_names_are_found() {
        let text = "<a file='b.xml' filename = \"c d.stl\" file=x profile file=\"\"/><t fileup='e'/>";
        assert_eq!(attributes(text, "file").collect::<Vec<_>>(), ["b.xml", "c d.stl", "e"]);
    }

    #[test]
    fn no_pipe_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).expect("written");
        let made = std::process::Command::new("mkfifo").arg(path("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()), "a pipe");
        for (name, text, refused) in [
            ("none.xml", "<mujoco/>", None),
            ("own.xml", "<include file='own.xml'/>", None),
            ("pipe.xml", "<include file='pipe'/>", Some("pipe, which is a pipe")),
            (
                "mesh.xml",
                "<compiler meshdir='..'/><mesh file='null'/><mesh file='/dev/null'/>",
                Some("/dev/null, which is a device"),
            ),
            ("deep.xml", "<include file='pipe.xml'/>", Some("pipe, which is a pipe")),
            ("folder.xml", "<mesh file='.'/>", Some("which is a folder")),
        ] {
            write(name, text);
            match (check_files(&path(name)), refused) {
                (Ok(()), None) => {}
                (Err(said), Some(part)) => assert!(said.contains(part), "{name}: {said}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
