//! A run that is killed repeatedly at any moment ends with the same bytes as an uninterrupted one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Dir, SHORT, check_same, collect, digits};
use foveate::core::{Rng, Seed};
use foveate::run::clock::Wall;

fn start(dir: &Dir, run: &str, workers: usize) -> Child {
    let workers = workers.to_string();
    let folder = format!("runs/{run}");
    let args = if dir.path(&folder).exists() {
        vec!["train", "--resume", &folder, "--workers", &workers]
    } else {
        vec!["train", "car-racing", "--config", "short.toml", "--name", run]
    };
    dir.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts")
}

/// Hidden files of incomplete writes, in the folder of a run or beside it, except those in `stale`.
fn half_written(runs: &Path, stale: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = vec![];
    // A folder may vanish while it is being listed.
    for folder in
        [runs.to_path_buf(), runs.join("killed"), runs.join("killed/checkpoints"), runs.join("killed/videos")]
    {
        let Ok(list) = fs::read_dir(&folder) else { continue };
        let names = list.filter_map(|entry| Some(entry.ok()?.path()));
        all.extend(
            names.filter(|path| path.to_string_lossy().ends_with(".foveate-tmp") && !stale.contains(path)),
        );
    }
    all
}

/// Waits for the moment of the kill: any, or one during a write.
fn wait(child: &mut Child, runs: &Path, stale: &[PathBuf], whole: Duration, rng: &mut Rng) {
    let within_a_write = rng.below(3) == 0;
    let until = whole.mul_f64(rng.uniform(0.0, 0.2));
    let wall = Wall::start();
    while wall.elapsed() < until && child.try_wait().expect("our child").is_none() {
        thread::sleep(Duration::from_micros(200));
    }
    if within_a_write {
        let wall = Wall::start();
        while half_written(runs, stale).is_empty()
            && wall.elapsed() < whole / 8
            && child.try_wait().expect("our child").is_none()
        {
            thread::sleep(Duration::from_micros(50));
        }
        thread::sleep(Duration::from_micros(rng.below(100)));
    }
}

/// Kills a run `count` times, with or without videos; returns how many of the kills hit a write.
fn check_kills(count: usize, videos: bool, seed: u64) -> usize {
    let dir = Dir::new();
    dir.write("short.toml", format!("videos = {videos}\n{SHORT}"));
    let wall = Wall::start();
    dir.ok(&["train", "car-racing", "--config", "short.toml", "--name", "straight"]);
    let whole = wall.elapsed();
    let expect = digits(&dir.path("runs/straight"));
    let events = String::from_utf8(expect["log"].clone()).expect("text");
    let films = expect.keys().filter(|name| name.starts_with("videos/")).count();
    let judged = events.lines().filter(|line| !line.contains("\"event\":\"generation\"")).count();
    assert!(judged > 12 && films == if videos { judged } else { 0 }, "{films} films of {judged} evaluations");

    let runs = dir.path("runs");
    let killed = dir.path("runs/killed");
    let mut rng = Seed::root(seed).rng();
    let (mut kills, mut in_writes, mut in_films, mut in_lines, mut ends) = (0, 0, 0, 0, 0);
    while kills < count {
        // Leftovers of earlier kills are not writes of this run.
        let stale = half_written(&runs, &[]);
        let mut child = start(&dir, "killed", 1 + kills % 3);
        wait(&mut child, &runs, &stale, whole, &mut rng);
        // SIGKILL: no handler, no destructor.
        child.kill().expect("our child");
        let status = child.wait().expect("our child");
        if status.success() {
            check_same(&expect, &killed);
            ends += 1;
            fs::remove_dir_all(&killed).expect("ours");
            continue;
        }
        assert_eq!(status.code(), None, "it was killed, and did not fail: {status}");
        kills += 1;
        let half = half_written(&runs, &stale);
        let log = fs::read(killed.join("log.jsonl")).unwrap_or_default();
        let half_line = log.last().is_some_and(|&byte| byte != b'\n');
        in_writes += usize::from(half_line || !half.is_empty());
        in_films += usize::from(half.iter().any(|path| path.to_string_lossy().contains(".mp4")));
        in_lines += usize::from(half_line);
    }
    let workers = ["train", "--resume", "runs/killed", "--workers", "2"];
    if killed.exists() {
        dir.ok(&workers);
    } else {
        dir.ok(&["train", "car-racing", "--config", "short.toml", "--name", "killed"]);
    }
    check_same(&expect, &killed);
    eprintln!(
        "killed {kills} times (films: {videos}), {in_writes} of them within a write ({in_films} of a film, {in_lines} of a line of the \
         log); {} runs came to their end with the same bytes",
        ends + 1
    );
    // No incomplete file is left, in the folder or beside it; the next run removes those beside it.
    let next = ["--name", "next", "--no-videos", "--set", "recipe.stage.0.steps=1"];
    dir.ok(&[&["train", "car-racing", "--config", "short.toml"], &next[..]].concat());
    assert_eq!(half_written(&runs, &[]), [""; 0].map(PathBuf::from));
    let mut all = vec![];
    collect(&killed, &mut all);
    let left: Vec<_> =
        all.iter().filter(|(path, _)| path.to_string_lossy().contains("foveate-tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
    let checkpoints =
        all.iter().filter(|(path, _)| path.parent() == Some(&killed.join("checkpoints"))).count();
    assert_eq!(checkpoints, 3);
    in_writes
}

#[test]
fn a_run_killed_at_any_moment_ends_with_the_same_bytes() {
    // A video takes ten times as long as the rest of such a short run, and is a long write: few kills are
    // enough there.
    let in_writes = check_kills(100, false, 7) + check_kills(20, true, 8);
    assert!(in_writes > 0, "no kill hit a write");
}

/// Hidden files and folders of this program in `folder` and its subfolders.
fn litter(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![];
    collect(folder, &mut all);
    let hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains("foveate-tmp"));
    all.into_iter().map(|(path, _)| path).filter(hidden).collect()
}

/// Leftovers of a command that was killed while writing are removed when the same command completes there;
/// similar files that this program did not create stay.
#[test]
fn the_next_start_sweeps_what_a_kill_left() {
    let short = ["--max-steps", "3", "--workers", "1"];
    let report = ["--episodes", "2", "--decisions", "2"];
    let cases: [(&[&str], &[&str]); 4] = [
        (&["watch", "--out", "a.mp4"], &["watch", "--out", "a.mp4", "--steps", "2"]),
        (&["watch", "--out", "a.gif"], &["watch", "--out", "b.gif", "--steps", "2"]),
        (&["explain", "--out", "report"], &[&["explain", "--out", "report"], &short[..], &report].concat()),
        (
            &["replay", "--actions", "actions", "--out", "trace"],
            &["replay", "--actions", "few", "--out", "trace"],
        ),
    ];
    for (killed, whole) in cases {
        let dir = Dir::new();
        dir.write("actions", "[0, 0, 0]\n".repeat(1_000_000));
        dir.write("few", "[0, 0, 0]\n");
        dir.write(".mine.foveate-tmp", "which must stay");
        let mut child = dir.command(killed).stdout(Stdio::null()).spawn().expect("the binary starts");
        while litter(&dir.path(".")).len() < 2 {
            assert_eq!(child.try_wait().expect("our child"), None, "{killed:?} ended before it was killed");
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("our child");
        child.wait().expect("our child");
        assert!(litter(&dir.path(".")).len() > 1, "{killed:?} left nothing");
        dir.ok(whole);
        assert_eq!(litter(&dir.path(".")), [dir.path("./.mine.foveate-tmp")], "{whole:?}");
    }
}

/// After every rename the parent folder is flushed; otherwise a crash of the machine could undo it. Checked
/// with the system calls.
#[cfg(target_os = "linux")]
#[test]
fn a_rename_is_on_the_disk() {
    let dir = Dir::new();
    dir.write("short.toml", SHORT);
    let few = ["--set", "recipe.stage.0.steps=1", "--no-videos", "--workers", "1"];
    let train = [&["train", "car-racing", "--config", "short.toml"], &few[..]].concat();
    let explain = ["explain", "--episodes", "1", "--decisions", "2", "--max-steps", "3", "--workers", "1"];
    let mut renames = 0;
    // The second report replaces the first.
    for args in [&train[..], &explain, &explain] {
        let mut strace = std::process::Command::new("strace");
        strace.args(["-f", "-y", "-e", "trace=rename,renameat,renameat2,fsync", "-o", "calls"]);
        strace.arg(env!("CARGO_BIN_EXE_foveate")).args(args).current_dir(dir.path("."));
        let done = strace.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !done.is_ok_and(|status| status.success()) {
            foveate_toy::needs::skip("strace cannot trace system calls");
            return;
        }
        let text = String::from_utf8(dir.read("calls")).expect("text");
        let calls: Vec<_> = text.lines().filter(|line| line.contains('(')).collect();
        for pair in calls.windows(2).filter(|pair| pair[0].contains("rename")) {
            renames += 1;
            // `renameat(5</tmp/x>, "a", …`: the folder of the new name.
            let folder =
                pair[0].rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).expect(pair[0]).0;
            assert!(
                pair[1].contains("fsync(") && pair[1].contains(&format!("<{folder}>")),
                "{}\n{}",
                pair[0],
                pair[1]
            );
        }
        assert!(calls.last().is_some_and(|call| call.contains("fsync")), "{calls:?}");
    }
    assert!(renames > 20, "{renames}");
}

/// `timeout` and terminals signal a process and its group, so one request to stop may arrive twice.
#[test]
fn a_request_to_stop_that_arrives_twice_saves_and_says_so() {
    let dir = Dir::new();
    for gap in [0, 3, 100] {
        let run = format!("runs/twice{gap}");
        let args = ["train", "cartpole-swingup-harder", "--name", &format!("twice{gap}"), "--workers", "1"];
        let child = dir.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the binary starts");
        let log = dir.path(&format!("{run}/log.jsonl"));
        while fs::metadata(&log).map_or(0, |log| log.len()) == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..2 {
            let id = child.id().to_string();
            std::process::Command::new("kill").args(["-TERM", &id]).status().expect("kill starts");
            thread::sleep(Duration::from_millis(gap));
        }
        let done = child.wait_with_output().expect("our child");
        let said = String::from_utf8(done.stdout).expect("text");
        assert_eq!(done.status.code(), Some(0), "{gap} ms: {said}");
        assert!(said.contains("\nstopped;"), "{gap} ms: {said}");
        assert!(dir.path(&format!("{run}/last.safetensors")).exists(), "{gap} ms: {said}");
    }
}
