//! The tables of results in README.md and docs/results.md say of every row how its agent was trained, and how many weights it has.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Rows with scores (`±` or a mean of several reports) of tables that lack a column, or whose cell is empty.
fn incomplete(text: &str) -> Vec<String> {
    let mut found = vec![];
    let mut header: Vec<&str> = vec![];
    for line in text.lines() {
        let Some(row) = line.strip_prefix('|') else {
            header.clear();
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if header.is_empty() {
            header = cells;
            continue;
        }
        let says = |column: &str| {
            let at = header.iter().position(|name| *name == column)?;
            cells.get(at).filter(|cell| !cell.is_empty())
        };
        if line.contains(" ± ") && (says("trained").is_none() || says("weights").is_none()) {
            found.push(line.to_owned());
        }
    }
    found
}

#[test]
fn every_result_says_how_its_agent_was_trained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    for file in ["README.md", "docs/results.md"] {
        let text = fs::read_to_string(root.join(file)).expect("it is there");
        assert!(text.contains(" ± "), "{file} has results");
        assert_eq!(incomplete(&text), [""; 0], "{file}");
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[test]
fn the_table_of_damaged_inputs_is_that_of_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("it is there");
    let results: Value = serde_json::from_str(&read("results/fuzzing.json")).expect("JSON");
    let table = read("CONTRIBUTING.md");
    let targets = results["targets"].as_object().expect("targets by name");
    assert!(targets.len() > 3);
    for (name, found) in targets {
        let number = |key: &str| grouped(found[key].as_u64().expect(key));
        let row = format!(
            "| {name} | {} | {} | {} | {} | {} |",
            number("inputs"),
            number("accepted"),
            number("minutes_by_the_clock"),
            found["processor_minutes"],
            number("faults")
        );
        assert!(table.lines().any(|line| line == row), "CONTRIBUTING.md lacks\n{row}");
    }
}

#[test]
fn tables_between_markers_are_those_of_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let pages =
        fs::read_dir(root.join("docs")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let stored = |name: &str| fs::read_to_string(root.join("results").join(format!("{name}.json"))).ok();
    let mut checked = 0;
    for page in
        pages.chain([root.join("README.md")]).filter(|page| page.extension().is_some_and(|e| e == "md"))
    {
        let text = fs::read_to_string(&page).expect("it is there");
        let written =
            foveate_run::reproduce::documents::written(&text, &stored).expect("markers that are right");
        assert!(
            written == text,
            "{} says other numbers than results/; `cargo xtask docs` writes it",
            page.display()
        );
        checked += text.matches("<!-- result ").count();
    }
    assert!(checked > 1, "only {checked} results found");
}

#[test]
fn a_row_without_is_found() {
    let rows = "| a | 1 ± 2 |\n| b | 3 |\n";
    for (header, found) in
        [("| world | trained | weights |", 1), ("| world | score |", 1), ("| trained | weights |", 0)]
    {
        assert_eq!(incomplete(&format!("{header}\n|---|---|\n{rows}")).len(), found, "{header}");
    }
}
