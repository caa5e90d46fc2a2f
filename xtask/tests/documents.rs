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

/// All documents for people, as paths below the root.
fn documents() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["", "docs/", "docs/studies/", "champions/"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
            let text = Path::new(&name).extension().is_some_and(|ending| ending == "md");
            found.extend(text.then(|| format!("{folder}{name}")));
        }
    }
    found.sort();
    assert!(found.len() > 15, "only {found:?} found; does this test still find the documents?");
    found
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut missing = Vec::new();
    let mut checked = 0;
    for document in documents() {
        let text = read(&document);
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

/// The targets of a text's links and images that lie in this repository.
fn links(text: &str) -> Vec<&str> {
    let targets = text.match_indices("](").map(|(at, _)| {
        let rest = &text[at + 2..];
        &rest[..rest.find(')').unwrap_or(rest.len())]
    });
    targets.filter(|target| !target.contains("://")).collect()
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || "_- ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn has_anchor(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == wanted)
}

#[test]
fn every_link_leads_somewhere() {
    let (mut broken, mut checked) = (Vec::new(), 0);
    for document in documents() {
        let text = read(&document);
        let folder = root().join(&document).parent().expect("a folder").to_path_buf();
        for target in links(&text) {
            checked += 1;
            let (path, anchor) =
                target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
            let file = if path.is_empty() { root().join(&document) } else { folder.join(path) };
            let known = file.exists()
                && anchor.is_none_or(|anchor| {
                    fs::read_to_string(&file).is_ok_and(|text| has_anchor(&text, anchor))
                });
            if !known {
                broken.push(format!("{document}: {target}"));
            }
        }
    }
    assert!(checked > 80, "only {checked} links found; does this test still read the documents?");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn links_and_anchors_are_read_as_on_a_page() {
    assert_eq!(links("[a](b.md#c) ![d](e.png) [f](https://g)"), ["b.md#c", "e.png"]);
    assert!(has_anchor("# What it costs\n## Tries, and more: `x`", "tries-and-more-x"));
    assert!(!has_anchor("# What it costs", "what-it-cost"));
}

/// Two screens: what it is, a picture, the commands, results, how fast; all else is in docs.
#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 120, "README.md has {lines} lines, at most 120 are wanted; move what is new to docs/");
}

/// Pages for users, generated ones included; measurements and attempts are in docs/studies.
#[test]
fn the_pages_for_users_are_short() {
    let pages =
        documents().into_iter().filter(|path| path.starts_with("docs/") && path.matches('/').count() == 1);
    let words: usize = pages.map(|page| read(&page).split_whitespace().count()).sum();
    assert!(
        words <= 35_000,
        "docs/*.md have {words} words, at most 35,000 are wanted; move studies to docs/studies/"
    );
}

#[test]
fn every_page_is_in_the_index() {
    let index = read("docs/README.md");
    for page in documents() {
        let Some(name) = page.strip_prefix("docs/").filter(|name| *name != "README.md") else { continue };
        assert!(index.contains(&format!("({name})")), "docs/README.md does not list {name}");
    }
}

/// What names do not say by themselves, on one screen.
#[test]
fn where_to_find_fits_a_screen() {
    let text = read("ARCHITECTURE.md");
    let table =
        text.split("## Where to find").nth(1).expect("the section").split("\n## ").next().expect("its end");
    let rows = table.lines().filter(|line| line.starts_with("| ")).count();
    assert!((10..=41).contains(&rows), "\"Where to find\" has {rows} lines, at most 40 rows are wanted");
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
        .filter(|name| !name.starts_with("foveate"))
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
