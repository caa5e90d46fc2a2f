//! The real binary in a temporary folder.

// Each file in `tests` is a separate program and uses a part of this module.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use foveate::agents::registry;
use foveate::core::TensorShape;
use foveate::run::checkpoint::RunFolder;
use foveate::run::progress::LogLine;
use foveate::run::weights::AgentFile;
use serde_json::{Value, json};

/// A folder to work in.
pub(crate) struct Dir(tempfile::TempDir);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Dir {
    pub(crate) fn new() -> Self {
        Dir(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("writable");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foveate"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        // No progress lines, even on a slow machine.
        command.env("FOVEATE_PROGRESS_SECONDS", "1000000");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        let out = self.command(args).output().expect("the binary starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
        Done { code: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) }
    }

    /// Runs a command that must succeed; returns its output.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        done.stdout
    }

    /// Runs a command that must succeed and print one JSON object.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).expect("one JSON object")
    }

    /// Every file in the folder with its contents: it must be the same after a failed command.
    pub(crate) fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = vec![];
        collect(self.0.path(), &mut all);
        all.sort();
        all
    }
}

pub(crate) fn collect(folder: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, all);
            all.push((path, vec![]));
        } else {
            let bytes = fs::read(&path).expect("a readable file");
            all.push((path, bytes));
        }
    }
}

/// Runs a command that must fail: exit code 1 (2 when the command line itself is invalid), one line on stderr
/// that contains all of `wants` (the error, and the remedy), nothing on stdout, and no file changed, added or
/// lost.
#[track_caller]
pub(crate) fn check_fails(dir: &Dir, args: &[&str], wants: &[&str]) {
    let before = dir.everything();
    let done = dir.run(args);
    assert_eq!(done.code, Some(1), "{args:?}: {}", done.stderr);
    assert_eq!(done.stdout, "", "{args:?}");
    let line = done.stderr.strip_suffix('\n').unwrap_or_default();
    assert!(line.starts_with("error: ") && !line.contains('\n'), "not one line: {}", done.stderr);
    for want in wants {
        assert!(line.contains(want), "{want:?} is not said: {line}");
    }
    let names = |all: &[(PathBuf, Vec<u8>)]| all.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    let after = dir.everything();
    assert_eq!(names(&before), names(&after), "{args:?} left something behind, or lost it");
    assert!(before == after, "{args:?} changed a file");
}

/// The number of parameters of the agent with this configuration.
pub(crate) fn count(config: &Value) -> usize {
    registry::tensors("attention-agent", config).expect("good").iter().map(TensorShape::len).sum()
}

/// A vector of parameters as numpy.savez writes it, uncompressed.
pub(crate) fn npz(params: &[f32]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", params.len());
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.as_bytes());
    npy.extend(params.iter().flat_map(|x| x.to_le_bytes()));

    let name = b"params.npy";
    let mut sum = flate2::Crc::new();
    sum.update(&npy);
    let size = (npy.len() as u32).to_le_bytes();
    // The fields shared by the local header and the directory: version, flags, method, time, date, CRC,
    // sizes, and the lengths of name and extra field.
    let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    common.extend(sum.sum().to_le_bytes());
    common.extend(size);
    common.extend(size);
    common.extend([name.len() as u8, 0, 0, 0]);

    let mut out = b"PK\x03\x04".to_vec();
    out.extend(&common);
    out.extend(name);
    out.extend(&npy);
    let directory = out.len();
    out.extend(b"PK\x01\x02\x14\x00");
    out.extend(&common);
    out.extend([0; 10]);
    out.extend([0; 4]);
    out.extend(name);
    let length = out.len() - directory;
    out.extend(b"PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00");
    out.extend((length as u32).to_le_bytes());
    out.extend((directory as u32).to_le_bytes());
    out.extend([0, 0]);
    out
}

/// Synthetic parameters of the published agent's size: the car turns in circles, which suffices.
pub(crate) fn made_up() -> Vec<f32> {
    (0..count(&json!({}))).map(|i| 0.4 * (i as f32 * 0.37).sin()).collect()
}

/// A weight file of the published agent's size.
pub(crate) fn weights() -> Vec<u8> {
    AgentFile::new("attention-agent", &json!({}), made_up()).expect("the right count").to_bytes()
}

/// A world and a recipe that take seconds: a validation after every generation, and short episodes, yet long
/// enough that the genomes differ.
pub(crate) const SHORT: &str = "
[env]
picture = \"none\"

[agent.config]
image = [96, 96]
patch = 24
stride = 24
top_k = 2
query_dim = 2
hidden = 2

[recipe]
max_steps = 40
selection = { every = 100, tracks = 2, finalists = 2, final_tracks = 2, report_tracks = 3 }
stage = [{ name = \"only\", steps = 2500, population = 4, sigma = 1.0, learning_rate = 1.0 }]
";

/// [`digits`] of a run but its configuration, which contains the number of workers.
pub(crate) fn digits_without_config(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut digits = digits(folder);
    digits.remove("config.toml");
    digits
}

impl Dir {
    /// Runs `train`, which makes the run `run`, kills it when its log has some lines, and goes on with `resume` as further
    /// arguments.
    pub(crate) fn kill_and_resume(&self, train: &[&str], run: &str, resume: &[&str]) {
        let mut child = self.command(train).stdout(Stdio::null()).spawn().expect("the binary starts");
        let log = self.path(run).join("log.jsonl");
        while fs::read_to_string(&log).map_or(0, |text| text.lines().count()) < 3 {
            assert!(
                child.try_wait().expect("our child").is_none(),
                "{run}: it is to be stopped before its end"
            );
            thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("our child");
        child.wait().expect("our child");
        self.ok(&[&["train", "--resume", run], resume].concat());
    }
}

/// Checks that a run has the same files as another, to the byte.
pub(crate) fn assert_same(found: &BTreeMap<String, Vec<u8>>, expect: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in expect {
        assert!(found.get(name) == Some(bytes), "{name} differs");
    }
}

/// Everything in a run's folder that must not depend on interruptions: weights, state, videos, and the log
/// without its times.
pub(crate) fn digits(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut run = RunFolder::open(folder).expect("a run");
    let found = run.latest().expect("whole").expect("there is one");
    assert_eq!((found.log_fits, found.notes), (true, vec![]));
    let lines = run.cut_log(&found.checkpoint).expect("readable");
    let timeless = lines.iter().map(|line| {
        let line: LogLine = serde_json::from_str(line).expect("a log line");
        serde_json::to_string(&LogLine { seconds: 0.0, cpu_seconds: 0.0, ..line }).expect("plain")
    });
    let state = format!("{:?} {}", found.checkpoint.state, found.checkpoint.lines);
    let mut digits = BTreeMap::from([
        ("log".to_owned(), timeless.collect::<Vec<_>>().join("\n").into_bytes()),
        ("state".to_owned(), state.into_bytes()),
    ]);
    let mut all = vec![];
    collect(folder, &mut all);
    for (path, bytes) in all {
        let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
        // Files that contain times, or depend on how often they were written, differ.
        let free = ["about.json", "log.jsonl", "lock", "events.out", "checkpoints"];
        if name == "summary.json" {
            let mut summary: Value = serde_json::from_slice(&bytes).expect("JSON");
            summary.as_object_mut().expect("an object").remove("machine").expect("it says where");
            digits.insert(name, summary.to_string().into_bytes());
        } else if !free.iter().any(|free| name.starts_with(free)) {
            digits.insert(name, bytes);
        }
    }
    digits
}

#[track_caller]
pub(crate) fn check_same(expect: &BTreeMap<String, Vec<u8>>, folder: &Path) {
    let digits = digits(folder);
    let names = |digits: &BTreeMap<String, Vec<u8>>| digits.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&digits), names(expect), "{}", folder.display());
    for (name, bytes) in expect {
        assert!(digits[name] == *bytes, "{}: {name} differs", folder.display());
    }
}

/// Feeds `input` to a command.
pub(crate) fn with_input(mut command: Command, input: &[u8]) -> std::process::Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it was piped");
    let input = input.to_vec();
    // The command may stop reading early; then this thread ends with a broken pipe, which is fine.
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let out = child.wait_with_output().expect("it ends");
    let _ = feeder.join();
    out
}
