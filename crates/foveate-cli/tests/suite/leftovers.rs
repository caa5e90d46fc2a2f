//! A well-behaved world leaves nothing behind, however the command ends.
//!
//! The toy `Polite` starts a server in its own session and a process of multiprocessing, creates a temporary
//! folder, and has named shared memory and a named semaphore. Every command has its own folder for temporary
//! files, so that all its processes can be identified by their environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::Dir;
use serde_json::Value;

const TOYS: &str = concat!("path=", env!("CARGO_MANIFEST_DIR"), "/../foveate-gym/tests/toys");

fn python() -> bool {
    foveate_toy::needs::python().is_some()
}

/// A folder to work in, and one for temporary files.
struct Place(Dir);

/// The resources that a worker's environment reported.
#[derive(Debug)]
struct Uses {
    worker: u64,
    server: u64,
    helper: u64,
    keeper: u64,
    paths: Vec<PathBuf>,
}

impl Place {
    fn new() -> Self {
        let dir = Dir::new();
        fs::create_dir(dir.path("tmp")).expect("new");
        Place(dir)
    }

    fn tmp(&self) -> PathBuf {
        self.0.path("tmp")
    }

    /// `foveate eval` on a toy.
    fn eval(&self, name: &str, args: &[&str]) -> Command {
        let id = format!("gym:foveate_toys:Toys/{name}-v0");
        let eval = ["eval", "random-actions", "--env", &id, "--option", TOYS];
        let mut command = self.0.command(&[&eval, args].concat());
        command.env("TMPDIR", self.tmp()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// `foveate eval` on the polite toy with this behaviour of `close()`.
    fn polite(&self, end: &str, args: &[&str]) -> Command {
        let report = format!("report={}", serde_json::to_string(&self.0.path("report")).expect("text"));
        let (workers, end) = (["--workers", "2"], format!("end={end}"));
        let own = ["--env-arg", &report, "--env-arg", &end, "--option", "timeout=20"];
        self.eval("Polite", &[&workers[..], &own, args].concat())
    }

    /// The reports of the environments, once there are `count` of them.
    fn uses(&self, count: usize) -> Vec<Uses> {
        let mut lines = vec![];
        for _ in 0..6000 {
            let text = fs::read_to_string(self.0.path("report")).unwrap_or_default();
            lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect();
            if lines.len() >= count {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        assert!(lines.len() >= count, "{} of {count} environments began", lines.len());
        let uses = lines.iter().map(|line| Uses {
            worker: line["pids"][0].as_u64().expect("a number"),
            server: line["pids"][1].as_u64().expect("a number"),
            helper: line["pids"][2].as_u64().expect("a number"),
            keeper: line["keeper"].as_u64().expect("a number"),
            paths: line["paths"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|p| p.as_str().expect("text").into())
                .collect(),
        });
        uses.collect()
    }

    /// Remaining processes, names in shared memory, and temporary files.
    fn left(&self) -> (Vec<u64>, Vec<PathBuf>, Vec<PathBuf>) {
        let files = fs::read_dir(self.tmp()).expect("it is ours").flatten().map(|entry| entry.path());
        let paths = self.uses(0).into_iter().flat_map(|uses| uses.paths).filter(|path| path.exists());
        (family(&self.tmp()), paths.collect(), files.collect())
    }

    /// Checks that nothing is left, after at most this many seconds.
    #[track_caller]
    fn nothing_left(&self, what: &str, seconds: u64) {
        for turn in 0..=seconds * 20 {
            let left = self.left();
            if left == (vec![], vec![], vec![]) {
                return;
            }
            assert!(turn < seconds * 20, "{what}: processes, shared memory and files are left: {left:?}");
            sleep(Duration::from_millis(50));
        }
    }
}

/// Running processes whose temporary files are in `folder`.
fn family(folder: &Path) -> Vec<u64> {
    let all = fs::read_dir("/proc").expect("Linux").flatten().map(|entry| entry.path());
    let ours = |path: &PathBuf| {
        let surroundings = fs::read(path.join("environ")).unwrap_or_default();
        let stat = fs::read_to_string(path.join("stat")).unwrap_or_default();
        String::from_utf8_lossy(&surroundings).contains(&format!("TMPDIR={}", folder.display()))
            && !stat.contains(") Z ")
    };
    all.filter(ours).filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

fn signal(name: &str, pids: &[u64]) {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    // Some may have ended already.
    let _ = Command::new("kill").arg(name).args(&pids).stderr(Stdio::null()).status().expect("kill runs");
}

fn wait(mut child: Child) -> Option<i32> {
    child.wait().expect("our child").code()
}

#[test]
fn after_exit_or_error_nothing_is_left() {
    if !python() {
        return;
    }
    for (end, fail, code) in [
        ("clean", "0", 0),
        ("nothing", "0", 0),
        ("raise", "0", 0),
        ("hang", "0", 0),
        ("clean", "20", 1),
        ("nothing", "20", 1),
    ] {
        let place = Place::new();
        let fail = format!("fail={fail}");
        let child = place.polite(end, &["--episodes", "4", "--env-arg", &fail]).spawn().expect("it starts");
        assert_eq!(wait(child), Some(code), "{end}, {fail}");
        assert!(!place.uses(1).is_empty());
        // Everything is gone before the command ends.
        place.nothing_left(&format!("close() {end}, {fail}"), 0);
    }
}

#[test]
fn after_sigterm_nothing_is_left() {
    if !python() {
        return;
    }
    for end in ["clean", "nothing"] {
        let place = Place::new();
        let child = place.polite(end, &["--episodes", "1000000"]).spawn().expect("it starts");
        place.uses(2);
        sleep(Duration::from_millis(200));
        signal("-TERM", &[child.id().into()]);
        wait(child);
        place.nothing_left(&format!("SIGTERM, close() {end}"), 0);
    }
}

#[test]
fn after_sigkill_nothing_is_left() {
    if !python() {
        return;
    }
    for end in ["clean", "nothing", "hang"] {
        let place = Place::new();
        let child = place.polite(end, &["--episodes", "1000000"]).spawn().expect("it starts");
        place.uses(2);
        sleep(Duration::from_millis(200));
        signal("-KILL", &[child.id().into()]);
        wait(child);
        place.nothing_left(&format!("SIGKILL, close() {end}"), 60);
    }
}

#[test]
fn the_next_start_removes_what_is_left_when_keepers_are_killed_too() {
    if !python() {
        return;
    }
    for whom in ["Foveate and keepers", "all but the server", "all"] {
        let place = Place::new();
        let child = place.polite("clean", &["--episodes", "1000000"]).spawn().expect("it starts");
        let uses = place.uses(2);
        sleep(Duration::from_millis(500));
        // Stopped first, so that none notices that another was killed.
        let keepers: Vec<u64> = uses.iter().map(|uses| uses.keeper).collect();
        let main = [&[u64::from(child.id())], &keepers[..]].concat();
        signal("-STOP", &main);
        let mut victims = main;
        if whom != "Foveate and keepers" {
            victims.extend(uses.iter().flat_map(|uses| [uses.worker, uses.helper]));
            let servers: Vec<u64> = uses.iter().map(|uses| uses.server).collect();
            victims.extend(
                family(&place.tmp()).into_iter().filter(|pid| whom == "all" || !servers.contains(pid)),
            );
        }
        signal("-KILL", &victims);
        wait(child);
        sleep(Duration::from_millis(300));
        let (processes, names, files) = place.left();
        assert!(!names.is_empty() && !files.is_empty(), "{whom}: there is something to remove");
        assert_eq!(processes.is_empty(), whom == "all", "{whom}: {processes:?}");

        let next = place.eval("Toy", &["--episodes", "1"]).spawn().expect("it starts");
        assert_eq!(wait(next), Some(0), "{whom}");
        place.nothing_left(whom, 0);
    }
}

/// A second start during the first one must not remove its folders as leftovers.
#[test]
fn a_start_leaves_what_others_use() {
    if !python() {
        return;
    }
    let place = Place::new();
    let child = place.polite("clean", &["--episodes", "1000000"]).spawn().expect("it starts");
    let uses = place.uses(2);
    let next = place.eval("Toy", &["--episodes", "1"]).spawn().expect("it starts");
    assert_eq!(wait(next), Some(0));
    for uses in uses {
        assert!(uses.paths.iter().all(|path| path.exists()), "{uses:?}");
        assert!(family(&place.tmp()).contains(&uses.server));
    }
    signal("-TERM", &[child.id().into()]);
    wait(child);
    place.nothing_left("SIGTERM", 0);
}
