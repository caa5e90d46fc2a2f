//! Tests the examples, from a first program to a custom world, agent and training run: each is short, and
//! prints the output that its header gives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum lines of code of an example, without comments and blank lines.
const MOST_LINES: usize = 60;

/// The examples in the order of docs/rust.md.
const LADDER: [&str; 7] = [
    "drive_a_world",
    "run_the_champion",
    "your_world",
    "your_agent",
    "train_it",
    "your_network",
    "explain_it",
];

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.rs"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The output given in the header of an example.
fn promised(source: &str) -> String {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    let block =
        header.map(|line| line.strip_prefix(' ').unwrap_or(line)).skip_while(|line| *line != "```text");
    block.skip(1).take_while(|line| *line != "```").fold(String::new(), |text, line| text + line + "\n")
}

fn lines_of_code(source: &str) -> usize {
    source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// The example's binary, built by the same `cargo test`.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps").join("examples");
    let program = folder.join(name);
    assert!(
        program.exists(),
        "{} is missing; `cargo test -p foveate` without --test builds it",
        program.display()
    );
    program
}

#[test]
fn examples_print_what_they_promise() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in LADDER {
        let promised = promised(&source(name));
        assert!(!promised.is_empty(), "{name}: the header has no block of output");
        let output = Command::new(program(name)).current_dir(&folder).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), promised, "{name}");
    }
    assert!(folder.path().join("report/index.html").exists() && folder.path().join("runs/line").exists());
}

#[test]
fn examples_are_short_and_explained() {
    let guide = include_str!("../../../../docs/rust.md");
    let mut found: Vec<String> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"))
        .expect("examples/")
        .map(|entry| {
            entry.expect("an entry").path().file_stem().expect("a file").to_string_lossy().into_owned()
        })
        .collect();
    found.sort();
    let mut ladder = LADDER;
    ladder.sort_unstable();
    assert_eq!(found, ladder, "every example is one of the ladder");
    let whole = source("train_it").lines().count();
    assert!(whole <= 70, "a world, an agent and their training take {whole} lines, at most 70");
    for name in LADDER {
        let source = source(name);
        let lines = lines_of_code(&source);
        assert!(lines <= MOST_LINES, "{name} has {lines} lines of code, at most {MOST_LINES} are allowed");
        let run = format!("//! Run: `cargo run --release -p foveate --example {name}`");
        for part in [&run, "//! Time: ", "//! Output:"] {
            assert!(source.contains(part), "{name}: the header lacks {part}");
        }
        let path = format!("crates/foveate/examples/{name}.rs");
        assert!(guide.contains(&path), "docs/rust.md does not mention {path}");
    }
}

#[test]
fn headers_and_lines_are_read() {
    let source = "//! Title\n//! ```text\n//! a\n//!  b\n//! ```\n\n// why\nfn main() {\n}\n";
    assert_eq!((promised(source).as_str(), lines_of_code(source)), ("a\n b\n", 2));
}
