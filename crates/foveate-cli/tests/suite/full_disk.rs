//! A full disk at any moment of a run: a clear error, no lost data, and a resume once there is space.

use std::process::Command;

use crate::common::{Dir, SHORT, check_same, digits};

/// Trains in a file system or under a limit that `script` sets up, then resumes without it; `$BIN` is the
/// binary.
fn sh(dir: &Dir, wrap: &[&str], script: &str, size: u64) -> (Option<i32>, String) {
    let mut command = Command::new(wrap[0]);
    command.args(&wrap[1..]).args(["sh", "-c", script]);
    let done = command
        .current_dir(dir.path("."))
        .env("BIN", env!("CARGO_BIN_EXE_foveate"))
        .env("SIZE", size.to_string())
        .output();
    match done {
        Ok(done) => (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(error) => (None, error.to_string()),
    }
}

#[track_caller]
fn check_said(text: &str, parts: &[&str]) {
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not said: {text}");
    }
}

/// Removes notes: on several cores such a small population causes one.
fn without_notes(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("note: ")).collect()
}

fn straight() -> Dir {
    let dir = Dir::new();
    dir.write("short.toml", SHORT);
    dir.ok(&["train", "car-racing", "--config", "short.toml", "--name", "straight"]);
    dir
}

#[test]
fn a_full_disk_loses_nothing() {
    let dir = straight();
    let expect = digits(&dir.path("runs/straight"));
    // A separate mount namespace that ends with the process.
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--user", "--map-root-user", "--mount"]];
    let probe = "mkdir -p small && mount -t tmpfs -o size=64k none small";
    let Some(wrap) = ways.iter().find(|wrap| sh(&dir, wrap, probe, 0).0 == Some(0)) else {
        let why = sh(&dir, ways[1], probe, 0).1;
        foveate_toy::needs::skip(&format!("no small file system can be mounted: {}", why.trim()));
        return;
    };
    // A training that would not fit is rejected before it starts, so the disk is filled while it runs: all
    // but $SIZE kilobytes of it, or it can only hold that many files from the start.
    let full_of_files = r#"
        set -e
        mount -t tmpfs -o size=64m,nr_inodes="$SIZE" none small
        set +e
        "$BIN" train car-racing --config short.toml --runs small --name run > told 2> error
        echo $? > code
        mount -o remount,nr_inodes=10000 small
    "#;
    let full_of_bytes = r#"
        set -e
        mount -t tmpfs -o size=64m none small
        set +e
        "$BIN" train car-racing --config short.toml --runs small --name run > told 2> error &
        pid=$!
        while [ ! -e small/run ] && kill -0 $pid; do sleep 0.01; done
        dd if=/dev/zero of=small/other bs=4k count=$(($(stat -f -c %a small) - SIZE / 4)) 2> /dev/null
        wait $pid
        echo $? > code
        rm small/other
    "#;
    let resume = r#"
        if [ -e small/run ]
        then "$BIN" train --resume small/run > told 2> error2
        else "$BIN" train car-racing --config short.toml --runs small --name run > told 2> error2
        fi
        echo $? > code2
        ls -A small > names
        rm -rf out && cp -r small/run out
    "#;
    let text = |name: &str| String::from_utf8(dir.read(name)).expect("text");
    let mut began = 0;
    let files = [2, 3, 5, 9].map(|size| (full_of_files, size));
    let bytes = [4, 8, 16, 32, 64, 200].map(|size| (full_of_bytes, size));
    for (fill, size) in files.into_iter().chain(bytes) {
        let (code, error) = sh(&dir, wrap, &[fill, resume].concat(), size);
        assert_eq!(code, Some(0), "{size}: {error}");
        assert_eq!(text("code"), "1\n", "{size}: {}", text("error"));
        check_said(
            &text("error"),
            &["error: cannot ", "small/", "No space left on device", "; free some space"],
        );
        if text("error").contains("then go on with `foveate train --resume small/run`") {
            began += 1;
        }
        assert_eq!((text("code2"), text("error2")), ("0\n".into(), String::new()), "{size}");
        assert_eq!(text("names"), "run\n", "{size}");
        check_same(&expect, &dir.path("out"));
    }
    assert!(began >= 5, "the disk was full too early");
    eprintln!("full 10 times, {began} of them after the run had begun");
}

/// A command whose output cannot be written reports this and fails; the run is stored all the same.
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let dir = straight();
    let whole = dir.read("runs/straight/last.safetensors");
    dir.write("actions", "[0, 0, 0]\n");
    let few = "--episodes 1 --max-steps 2 --workers 1";
    for command in [
        "train car-racing --config short.toml --name lost --json",
        "train car-racing --config short.toml --name plain --no-videos",
        "train --resume runs/straight",
        &format!("eval {few}"),
        &format!("eval {few} --json"),
        &format!("stress --variants none {few} --json"),
        "compare runs/straight --json",
        "compare runs/straight",
        "replay --actions actions --out -",
        "watch --steps 1 --out a.gif",
        "list",
        "list --json",
        "completions bash",
        "--help",
        "train --help",
        "--version",
    ] {
        let (code, error) = sh(&dir, &["env"], &format!("exec \"$BIN\" {command} > /dev/full"), 0);
        assert_eq!(code, Some(1), "{command}: {error}");
        let error = without_notes(&error);
        check_said(&error, &["error: cannot write the output: No space left on device", "; free some space"]);
        if command.starts_with("train ") && !command.contains("--help") {
            assert!(error.contains("the run itself is finished: runs/"), "{error}");
        }
        // A reader that closes the pipe is not an error. It is gone before anything is written.
        let again = command.replace("--name ", "--name again-");
        let (code, error) = sh(&dir, &["env"], &format!("(sleep 0.3; exec \"$BIN\" {again}) | true"), 0);
        assert_eq!((code, without_notes(&error).as_str()), (Some(0), ""), "{command}");
    }
    assert!(
        dir.read("runs/lost/last.safetensors") == whole && dir.read("runs/plain/last.safetensors") == whole
    );
    dir.ok(&["train", "--resume", "runs/lost"]);
    check_same(&digits(&dir.path("runs/straight")), &dir.path("runs/lost"));
}

#[test]
fn a_file_that_may_not_grow_loses_nothing() {
    let dir = straight();
    let expect = digits(&dir.path("runs/straight"));
    // Without a handler the signal would end the process before it can print anything. The unit is 512 bytes
    // or 1 KiB.
    let script = r#"
        trap '' XFSZ
        ulimit -f "$SIZE" || exit 9
        exec "$BIN" train car-racing --config short.toml --name "run$SIZE" > /dev/null
    "#;
    for size in [2, 4, 8, 20] {
        let (code, error) = sh(&dir, &["env"], script, size);
        if code == Some(9) {
            foveate_toy::needs::skip(&format!("file sizes cannot be limited: {}", error.trim()));
            return;
        }
        assert_eq!(code, Some(1), "{size}: {error}");
        let folder = format!("runs/run{size}");
        check_said(&error, &["error: cannot write ", &folder, "File too large", "; free some space"]);
        dir.ok(&["train", "--resume", &folder]);
        check_same(&expect, &dir.path(&folder));
    }
}
