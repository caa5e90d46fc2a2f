use std::path::Path;

use super::*;

/// Writes a run's folder with these validations and this report.
fn run(root: &Path, name: &str, validations: &[(u64, f64)], report: Option<f64>) -> PathBuf {
    let folder = root.join(name);
    std::fs::create_dir(&folder).expect("new");
    let mut log = String::new();
    let mut push = |event: Event, cpu_seconds: f64| {
        let line = LogLine { event, trained_on: vec![], tracks: vec![], seconds: 1.0, cpu_seconds };
        log.push_str(&serde_json::to_string(&line).expect("plain"));
        log.push('\n');
    };
    for (i, &(steps, mean)) in validations.iter().enumerate() {
        let before = 2.0 * i as f64;
        let generation = Event::Generation {
            generation: 1,
            steps,
            stage: "learn".into(),
            start: 1,
            best: mean,
            mean,
            length: 1.0,
            norm: 1.0,
            sigma: 0.1,
            replayed: 0,
            tasks: vec![],
            measures: std::collections::BTreeMap::new(),
        };
        push(generation, before + 1.0);
        let summary = Summary::of(&[mean]);
        let (generation, stage) = (1, "learn".to_owned());
        push(Event::Validation { generation, steps, stage, start: 1, summary, best: true }, before + 2.0);
    }
    if let Some(mean) = report {
        let summary = Summary::of(&[mean - 10.0, mean + 10.0]);
        let (seeds, returns) = (vec![], vec![]);
        push(Event::Report { generation: 1, steps: 1, judging_steps: 1, summary, seeds, returns }, 50.0);
    }
    std::fs::write(folder.join("log.jsonl"), log).expect("writable");
    folder
}

/// The same with this configuration.
fn configured(
    root: &Path,
    name: &str,
    config: &str,
    validations: &[(u64, f64)],
    report: Option<f64>,
) -> PathBuf {
    let folder = run(root, name, validations, report);
    std::fs::write(folder.join("config.toml"), config).expect("writable");
    folder
}

fn names(all: &Comparison) -> Vec<(&str, usize)> {
    all.groups.iter().map(|g| (g.name.as_str(), g.n)).collect()
}

#[test]
fn seeds_of_a_configuration_belong_together() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path();
    let config = |seed: u64| {
        let more = if seed > 1 { "workers = 3\nvideos = false\n" } else { "workers = 0\n" };
        format!("seed = {seed}\n{more}[agent]\nname = \"iap\"\n")
    };
    let folders = [
        configured(root, "relu-1", &config(1), &[(100, 5.0), (200, 3.0), (300, 9.0)], Some(400.0)),
        configured(root, "soft max", "seed = 1\n[agent]\nname = \"x\"\n", &[(150, 50.0)], None),
        configured(root, "relu-2", &config(2), &[(150, 7.0)], Some(500.0)),
        run(root, "relu-7", &[], None),
    ];
    let all = read(&folders).expect("logs");
    assert_eq!(names(&all), [("relu", 2), ("soft max", 1), ("relu-7", 1)]);
    // Best so far, over the range that both runs cover.
    assert_eq!(stairs(&all.groups[0].runs, Over::Steps), [(150.0, 6.0)]);
    assert_eq!(
        stairs(&all.groups[0].runs[..1], Over::Steps),
        [(100.0, 5.0), (200.0, 5.0), (200.0, 5.0), (300.0, 5.0), (300.0, 9.0)]
    );
    assert_eq!(stairs(&all.groups[0].runs, Over::CpuSeconds), [(2.0, 6.0)]);
    assert_eq!(
        stairs(&all.groups[0].runs[..1], Over::CpuSeconds),
        [(2.0, 5.0), (4.0, 5.0), (4.0, 5.0), (6.0, 5.0), (6.0, 9.0)]
    );
    let over_cpu = all.to_svg("t", Over::CpuSeconds);
    assert!(over_cpu.contains(">best validation so far, over CPU seconds<"), "{over_cpu}");
    let table = all.to_markdown();
    assert!(
        table.contains("| relu | 2 | 1, 2 | 225 | 50 | 9.0, 7.0 | 400.0, 500.0 | 450.0 ± 50.0 (n = 2) |"),
        "{table}"
    );
    assert!(table.contains("| soft max | 1 | 1 | 150 | 2 | 50.0 | – | – |"), "{table}");
    assert!(table.contains("| agent.name | \"iap\" | \"x\" | – |"), "{table}");
    assert!(table.contains("Note: relu-7 has no config.toml"), "{table}");
    let svg = all.to_svg("a <title>", Over::Steps);
    assert!(
        svg.ends_with("</svg>\n") && svg.contains("a &lt;title&gt;") && svg.contains(">relu (n = 2)<"),
        "{svg}"
    );
    assert!(svg.contains(">configurations differ in agent.name<"), "{svg}");
    assert_eq!(svg.matches("<circle").count(), 2, "a dot for each report");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn other_configurations_are_other_groups_whatever_they_are_called() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path();
    let config = |seed: u64, sigma: f64, extra: &str| {
        format!("seed = {seed}\n{extra}[recipe]\nlist = [1, 2]\n[[recipe.stage]]\nsigma = {sigma}\n")
    };
    let folders = [
        configured(root, "try-1", &config(1, 0.1, ""), &[(100, 1.0)], Some(100.0)),
        configured(root, "try-2", &config(2, 0.2, "new = true\n"), &[(100, 2.0)], Some(900.0)),
        configured(root, "other", &config(3, 0.1, ""), &[(100, 3.0)], Some(120.0)),
    ];
    let all = read(&folders).expect("logs");
    assert_eq!(names(&all), [("try, other", 2), ("try", 1)]);
    let difference = |key: &str, values: [Option<&str>; 2]| Difference {
        key: key.into(),
        values: values.map(|value| value.map(str::to_owned)).into(),
    };
    let expect = [
        difference("new", [None, Some("true")]),
        difference("recipe.stage.0.sigma", [Some("0.1"), Some("0.2")]),
    ];
    assert_eq!(all.differences, expect);
    let table = all.to_markdown();
    assert!(table.contains("| recipe.stage.0.sigma | 0.1 | 0.2 |"), "{table}");
    assert!(table.contains("110.0 ± 10.0 (n = 2)") && table.contains("900.0 (n = 1: no spread)"), "{table}");
    let svg = all.to_svg("t", Over::Steps);
    assert!(svg.contains("configurations differ in new, recipe.stage.0.sigma<"), "{svg}");
    let json = serde_json::to_value(&all).expect("plain");
    assert_eq!((&json["groups"][0]["n"], &json["groups"][1]["n"]), (&2.into(), &1.into()));
    assert_eq!(json["differences"][1]["key"], "recipe.stage.0.sigma");
    assert_eq!(json["differences"][1]["values"][1], "0.2");
    assert!(json["differences"][0]["values"][0].is_null());

    // Two groups with the same name get different labels.
    let all = read(&folders[..2]).expect("logs");
    assert_eq!(names(&all), [("try", 1), ("try", 1)]);
    assert_eq!(all.names(), ["try (new = –)", "try (new = true)"]);
}

#[test]
fn a_decimal_at_the_end_of_a_name_is_part_of_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let config = |eps: &str| format!("[recipe]\neps = {eps}\n");
    let folders = ["eps0.01", "eps0.2"]
        .map(|name| configured(dir.path(), name, &config(&name[3..]), &[(100, 1.0)], None));
    assert_eq!(read(&folders).expect("logs").names(), ["eps0.01", "eps0.2"]);
    // So is any number without a separator, of a run that has no siblings.
    let folders = ["patch7", "patch14", "a1", "a2"].map(|name| {
        let eps = if name.starts_with('a') { "0" } else { &name[5..] };
        configured(dir.path(), name, &config(eps), &[(100, 1.0)], None)
    });
    assert_eq!(read(&folders).expect("logs").names(), ["patch7", "patch14", "a"]);
}

#[test]
fn runs_without_validations_are_drawn_by_their_training() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let points: Vec<(u64, f64)> = (1..=30).map(|i| (i * 1000, i as f64)).collect();
    let folders = ["a", "b"].map(|name| configured(dir.path(), name, "seed = 1\n", &points, None));
    for folder in &folders {
        let log = std::fs::read_to_string(folder.join("log.jsonl")).expect("readable");
        let kept: Vec<&str> =
            log.lines().filter(|line| line.contains("generation\":1,\"steps")).step_by(2).collect();
        std::fs::write(folder.join("log.jsonl"), kept.join("\n") + "\n").expect("writable");
    }
    let all = read(&folders).expect("logs");
    assert!(
        all.groups[0].runs.iter().all(|run| run.validations.is_empty() && !run.returns.is_empty()),
        "{all:?}"
    );
    let line = all.groups[0].line(&all.groups[0].runs, Over::Steps);
    assert_eq!((line[0], line.len()), ((1000.0, 1.0), 31), "{line:?}");
    assert_eq!(line[29].1, (11..=30).sum::<u32>() as f64 / 20.0, "the last 20 generations");
    let svg = all.to_svg("t", Over::Steps);
    assert!(
        svg.contains(">mean return of training, as no run has a validation, over training steps<"),
        "{svg}"
    );
    assert!(
        svg.matches("<polyline").count() + svg.matches("<path").count() >= 3,
        "two runs and their mean: {svg}"
    );
    assert!(all.to_markdown().contains("has a run without any validation"), "{}", all.to_markdown());
}

#[test]
fn repeats_are_no_seeds() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path();
    let folders = [
        configured(root, "a", "seed = 4\n", &[], Some(100.0)),
        configured(root, "b", "seed = 4\nworkers = 2\n", &[], Some(100.0)),
    ];
    let all = read(&folders).expect("logs");
    let same = "a and b have the same configuration and the same seed 4";
    assert!(all.notes.iter().any(|note| note.starts_with(same)), "{all:?}");
    assert!(all.to_markdown().contains("Note: a and b"), "{}", all.to_markdown());
    let said = read(&[folders[0].clone(), folders[0].clone()]).expect_err("twice").to_string();
    assert!(said.contains("is named twice"), "{said}");
}

#[test]
fn the_axis_is_that_of_the_worlds_returns() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = configured(dir.path(), "car", "seed = 1\n", &[(40_000, -200.0)], Some(-150.0));
    let svg = read(&[folder]).expect("a log").to_svg("t", Over::Steps);
    assert!(svg.contains(">-180<") && svg.contains(">-200<") && svg.contains(">0<"), "{svg}");
    assert!(!svg.contains(">100<") && svg.contains(">40,000<") && !svg.contains("0.04 M"), "{svg}");
}

#[test]
fn what_is_no_run_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let whole = run(dir.path(), "whole", &[(100, 5.0)], None);
    let log = whole.join("log.jsonl");
    // An incomplete line at the end is a run that is being written.
    let bytes = std::fs::read(&log).expect("readable");
    std::fs::write(&log, &bytes[..bytes.len() - 5]).expect("writable");
    let cut = read(std::slice::from_ref(&whole)).expect("a log");
    assert_eq!((cut.groups[0].runs[0].steps, cut.groups[0].runs[0].validations.len()), (100, 0));
    std::fs::write(&log, "no JSON\n").expect("writable");
    for (folders, words) in [
        (vec![], "name from 1 to 64"),
        (vec![whole.clone(); 65], "65 runs to compare"),
        (vec![configured(dir.path(), "odd", "a = = 1", &[], None)], "is it the configuration of a run?"),
        (vec![whole.clone()], "line 1"),
        (vec![dir.path().join("nowhere")], "nowhere"),
    ] {
        let said = read(&folders).expect_err("no run").to_string();
        assert!(said.contains(words), "{said}");
    }
}
