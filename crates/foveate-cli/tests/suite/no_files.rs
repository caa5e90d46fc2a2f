//! Wherever a command takes a file, something that is none (a FIFO, a device, a folder, a socket) is one line within seconds:
//! nothing is waited for, and nothing is read without end.

use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Dir, SHORT, made_up, npz, weights};

/// Commands with the place of a file, `@`.
const ARGUMENTS: &[&str] = &[
    "eval @",
    "watch @ --out a.png",
    "explain @",
    "explain --compare w.safetensors @",
    "stress @",
    "stress w.safetensors @",
    "heads threshold @",
    "lab @ --no-open --port 0",
    "lab w.safetensors @ --no-open --port 0",
    "train --config @",
    "train --resume @",
    "train car-racing --init @",
    "train car-racing --teacher @",
    "train --config tiny.toml --set recipe.init.weights=@",
    "compare @ --out c.svg",
    "replay --failure @",
    "replay --actions @ --out t.jsonl",
    "import @",
    "import in.npz --config @",
    "eval w.safetensors --episodes 1 --max-steps 1 --shift background-image:5:file=@",
    "eval w.safetensors --episodes 1 --max-steps 1 --shift background-video:5:folder=@",
    "eval w.safetensors --episodes 1 --max-steps 1 --variant video:folder=@",
    "eval random --env digits --episodes 1 --option data=@",
    "eval random --env cartpole-swingup --episodes 1 --option library=@",
    // Files in folders that are named.
    "train --resume run-@",
    "compare run-@ --out c.svg",
    "eval weights-@",
    "eval w.safetensors --episodes 1 --max-steps 1 --variant video:folder=pictures-@",
    "eval random --env digits --episodes 1 --option data=digits-@",
    "bench world --passes 1 --actions actions-@",
];

/// The file in such a folder.
const INSIDE: [(&str, &str); 5] = [
    ("run-", "config.toml"),
    ("weights-", "best.safetensors"),
    ("pictures-", "1.png"),
    ("digits-", "t10k-images-idx3-ubyte"),
    ("actions-", "actions_1.jsonl"),
];

const KINDS: [&str; 4] = ["fifo", "device", "folder", "socket"];

fn place(kind: &str, at: &Path) {
    let done = match kind {
        "fifo" => std::process::Command::new("mkfifo").arg(at).status().map(drop),
        "device" => std::os::unix::fs::symlink("/dev/zero", at),
        "folder" => std::fs::create_dir(at),
        // The name stays when the listener ends.
        _ => UnixListener::bind(at).map(drop),
    };
    done.expect("a folder of ours");
}

/// The exit code and the two outputs of a command that ends in time.
fn end_of(child: &mut Child) -> Option<(Option<i32>, String)> {
    for _ in 0..1200 {
        if let Some(status) = child.try_wait().expect("it is ours") {
            let mut text = String::new();
            child.stderr.take()?.read_to_string(&mut text).expect("text");
            return Some((status.code(), text));
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    None
}

#[test]
fn what_is_no_file_is_one_line() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    dir.write("in.npz", npz(&made_up()));
    dir.write("tiny.toml", SHORT);
    for kind in KINDS {
        place(kind, &dir.path(kind));
        for (folder, file) in INSIDE {
            let folder: PathBuf = dir.path(&format!("{folder}{kind}"));
            std::fs::create_dir(&folder).expect("new");
            place(kind, &folder.join(file));
        }
        std::fs::write(dir.path(&format!("run-{kind}")).join("log.jsonl"), "").expect("writable");
    }
    let mut wrong = vec![];
    for line in ARGUMENTS {
        // Four at once: each does next to nothing.
        let children = KINDS.map(|kind| {
            let line = line.replace('@', kind);
            let args: Vec<&str> = line.split(' ').collect();
            let child = dir.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
            (line, child.expect("the binary starts"))
        });
        for (line, mut child) in children {
            let Some((code, stderr)) = end_of(&mut child) else {
                wrong.push(format!("{line}: it does not end"));
                continue;
            };
            let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
            if code != Some(1) || errors != 1 || stderr.lines().count() != 1 {
                wrong.push(format!("{line}: {code:?}: {stderr}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
