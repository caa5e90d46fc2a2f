//! Models of MuJoCo that crash, never end or take all memory: each is one line, in little time and memory, and the command lives.
//!
//! The models are those of `crates/foveate-py/tests/hostile_models.py`, where the package for Python meets them too.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::Dir;
use foveate::run::clock::Wall;
use foveate_toy::needs::worlds_python;

/// Seconds that a compilation may take in these tests.
const SECONDS: &str = "2";
/// Models at a time.
const THREADS: usize = 4;
/// A process with more memory than this has no bound, in KiB.
const MOST_MEMORY: u64 = 1 << 20;

/// The folder of the environment of a Python.
fn environment(python: &Path) -> &Path {
    python.parent().and_then(Path::parent).expect("bin/python")
}

fn eval(dir: &Dir, python: &Path, model: &Path, more: &[&str]) -> Command {
    let world = format!("mjcf:{}", model.display());
    let flags = ["eval", "random-actions", "--seeds", "0..1", "--max-steps", "3", "--env", &world];
    let mut command = dir.command(&[&flags, more].concat());
    command.env("FOVEATE_MUJOCO", environment(python));
    command
}

#[test]
fn hostile_models_are_one_line() {
    let Some(python) = worlds_python() else { return };
    let dir = Dir::new();
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foveate-py/tests/hostile_models.py");
    let folder = dir.path("models");
    std::fs::create_dir(&folder).expect("a folder");
    let written = Command::new(&python).arg(table).arg(&folder).output().expect("Python starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let models = String::from_utf8(written.stdout).expect("text");
    let models: Vec<PathBuf> = models.lines().map(PathBuf::from).collect();
    assert!(models.len() >= 150, "{} models", models.len());
    let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(model) = models.get(next.fetch_add(1, Ordering::Relaxed)) {
                    refused.fetch_add(usize::from(!check(&dir, &python, model)), Ordering::Relaxed);
                }
            });
        }
    });
    // The others are unusual, but MuJoCo can run them.
    let refused = refused.into_inner();
    assert!(refused * 3 > models.len() * 2, "{refused} of {} models are refused", models.len());
}

/// Whether a model runs; a model that is refused says so in one line.
fn check(dir: &Dir, python: &Path, model: &Path) -> bool {
    let name = model.file_name().expect("a name").to_string_lossy().into_owned();
    let start = Wall::start();
    let mut command =
        eval(dir, python, model, &["--option", &format!("start_timeout={SECONDS}"), "--workers", "1"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stderr = child.stderr.take().expect("piped");
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        stderr.read_to_end(&mut said).expect("readable");
        String::from_utf8_lossy(&said).into_owned()
    });
    let mut most = 0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        most = most.max(peak(child.id()));
        if start.elapsed() > Duration::from_mins(1) {
            child.kill().expect("a child");
            child.wait().expect("a child");
            panic!("{name} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let said = said.join().expect("no panic");
    assert!(status.signal().is_none(), "{name}: {status}, {said}");
    assert!(!said.contains("panicked"), "{name}: {said}");
    assert!(most < MOST_MEMORY, "{name}: {most} KiB");
    let errors: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    match status.code() {
        Some(0) => {
            assert_eq!(errors, [""; 0], "{name}");
            true
        }
        Some(1) => {
            assert!(
                errors.len() == 1 && errors[0].starts_with("error: ") && errors[0].len() < 1200,
                "{name}: {said}"
            );
            assert!(!errors[0].contains(|letter: char| letter.is_control()), "{name}: {said:?}");
            false
        }
        code => panic!("{name}: exit code {code:?}, {said}"),
    }
}

/// The largest memory so far of a process and of those that it started, in KiB; 0 where the system does not say.
fn peak(process: u32) -> u64 {
    let own = |process: &str| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
    };
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let children = children.iter().flat_map(|all| all.split_whitespace());
    children.map(own).fold(own(&process.to_string()), u64::max)
}

#[test]
fn a_request_to_stop_ends_a_compilation() {
    let Some(python) = worlds_python() else { return };
    let dir = Dir::new();
    let model = dir.path("endless.xml");
    let replicas = r#"<mujoco><worldbody><replicate count="2000000000"><geom size=".1"/></replicate></worldbody></mujoco>"#;
    std::fs::write(&model, replicas).expect("written");
    let mut child =
        eval(&dir, &python, &model, &["--option", "start_timeout=600", "--option", "memory=60000"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let start = Wall::start();
    while cfg!(target_os = "linux")
        && std::fs::read_to_string(&children).is_ok_and(|all| all.is_empty())
        && start.elapsed() < Duration::from_secs(30)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    // A shell lets programs in its background ignore SIGINT, and what they start, too.
    let interrupted = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(interrupted.success());
    let asked = Wall::start();
    while child.try_wait().expect("a child").is_none() {
        if asked.elapsed() > Duration::from_secs(30) {
            child.kill().expect("a child");
            child.wait().expect("a child");
            panic!("SIGTERM is ignored");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn little_memory_is_a_sentence() {
    let Some(python) = worlds_python() else { return };
    let dir = Dir::new();
    let model = dir.path("arm.xml");
    let text = "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>\
                <actuator><motor joint='j'/></actuator></mujoco>";
    std::fs::write(&model, text).expect("written");
    // Megabytes of address space; with the last, all is well.
    for megabytes in [100, 120, 140, 160, 200, 220, 230, 240, 260, 320, 4000] {
        for world in [format!("mjcf:{}", model.display()), "cheetah-run".to_owned()] {
            let done = Command::new("sh")
                .args([
                    "-c",
                    "ulimit -v $(($1 * 1024)) && shift && exec \"$@\"",
                    "sh",
                    &megabytes.to_string(),
                ])
                .arg(env!("CARGO_BIN_EXE_foveate"))
                .args([
                    "eval",
                    "random-actions",
                    "--seeds",
                    "0..2",
                    "--max-steps",
                    "3",
                    "--workers",
                    "2",
                    "--env",
                    &world,
                ])
                .env("FOVEATE_MUJOCO", environment(&python))
                .current_dir(dir.path("."))
                .output()
                .expect("it starts");
            let said = String::from_utf8_lossy(&done.stderr);
            let good = match done.status.code() {
                Some(0) => said.is_empty(),
                Some(1) => said.starts_with("error: ") && said.lines().count() == 1,
                _ => false,
            };
            assert!(good && !said.contains("panicked"), "{world} in {megabytes} MB: {}: {said}", done.status);
            assert!(megabytes < 4000 || done.status.success(), "{said}");
        }
    }
}
