//! A run killed at any moment, again and again, ends with the same bytes as one that was never stopped.

#![cfg(unix)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use common::{Dir, SHORT, check_same, collect, digits};
use foveate_core::{Rng, Seed};
use foveate_run::clock::Wall;

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

/// Hidden files of writes that are not done, in the folder of a run or beside it; those of `stale` do not count.
fn half_written(runs: &Path, stale: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = vec![];
    // A folder may vanish while it is listed.
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

/// Waits for a moment to kill: any, or one within a write.
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

/// Kills a run `count` times, with films or without; returns how many of the kills hit a write.
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
        // What earlier kills left behind is no write of this one.
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
    // Nothing half-done is left behind.
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
    // A film takes ten times as long as the rest of so short a run, and is a long write: few kills are enough there.
    let in_writes = check_kills(100, false, 7) + check_kills(20, true, 8);
    assert!(in_writes > 0, "no kill hit a write");
}
