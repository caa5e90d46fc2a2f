//! The documents keep their word: every path that they name exists, every dependency has its reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What stands between backticks, one line at a time, fenced blocks left out.
fn quoted(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// Whether a quoted word is meant as a path of this repository.
fn is_path(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let known_end =
        [".rs", ".md", ".toml", ".py", ".txt", ".png", ".svg"].iter().any(|end| word.ends_with(end));
    let rooted =
        ["crates/", "xtask/", "docs/", "python/", "bench/", ".ci/"].iter().any(|top| word.starts_with(top));
    plain && (rooted || (known_end && !word.starts_with("runs/") && word.contains('/')))
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut missing = Vec::new();
    let mut checked = 0;
    for document in ["ARCHITECTURE.md", "README.md"] {
        let text = read(document);
        for word in quoted(&text).into_iter().filter(|word| is_path(word)) {
            checked += 1;
            if !root().join(word).exists() {
                missing.push(format!("{document}: {word}"));
            }
        }
    }
    assert!(checked > 10, "only {checked} paths found; does this test still read the documents?");
    assert!(missing.is_empty(), "no such path:\n{}", missing.join("\n"));
}

#[test]
fn every_crate_has_its_line_in_the_architecture() {
    let text = read("ARCHITECTURE.md");
    for entry in fs::read_dir(root().join("crates")).expect("crates/") {
        let name = entry.expect("entry").file_name().into_string().expect("UTF-8");
        assert!(text.contains(&format!("`crates/{name}`")), "ARCHITECTURE.md says nothing of crates/{name}");
    }
}

#[test]
fn every_dependency_has_its_reason() {
    let text = read("ARCHITECTURE.md");
    let manifest = read("Cargo.toml");
    let table = manifest.split("[workspace.dependencies]").nth(1).expect("the table of dependencies");
    let table = table.split("\n[").next().expect("its end");
    let names: BTreeSet<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains('='))
        .filter_map(|line| line.split([' ', '=']).next())
        .filter(|name| !name.starts_with("foveate-"))
        .collect();
    assert!(names.len() > 5, "only {names:?} found; does this test still read the manifest?");
    for name in names {
        assert!(
            text.contains(&format!("* `{name}`: ")),
            "ARCHITECTURE.md gives no reason for the dependency {name}"
        );
    }
}

#[test]
fn every_dependency_is_named_once_for_the_workspace() {
    for entry in fs::read_dir(root().join("crates")).expect("crates/") {
        let path = entry.expect("entry").path().join("Cargo.toml");
        let text = fs::read_to_string(&path).expect("a manifest");
        for line in text.lines() {
            let versioned = line.contains("version = \"")
                || line.split_once(" = \"").is_some_and(|(_, v)| v.starts_with(|c: char| c.is_ascii_digit()));
            assert!(!versioned, "{}: {line:?} belongs into the workspace's table", path.display());
        }
    }
}
