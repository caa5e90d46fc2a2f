//! Every experiment of the list.

use std::collections::BTreeSet;
use std::path::Path;

use foveate_envs::registry::EnvRequest;
use foveate_registry::{EXPERIMENTS, PAPERS, PRESETS, SHIFTS, WORLDS};

use super::*;
use crate::champion;
use crate::config::{TrainConfig, UserSettings};
use crate::fit::configure;
use crate::trust::WorldSpec;
use crate::worlds;

fn all() -> Vec<Experiment> {
    EXPERIMENTS.iter().map(|file| Experiment::of(file).unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[test]
fn every_file_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foveate-registry/experiments");
    let mut there = BTreeSet::new();
    for paper in std::fs::read_dir(&folder).expect("a folder") {
        let paper = paper.expect("an entry").path();
        for item in std::fs::read_dir(&paper).expect("a folder") {
            let stem = item.expect("an entry").path().with_extension("");
            let id = stem.strip_prefix(&folder).expect("below it").display().to_string();
            there.insert(id);
        }
    }
    let listed: BTreeSet<String> = EXPERIMENTS.names().into_iter().map(str::to_owned).collect();
    assert_eq!(there, listed);
    for name in listed {
        let paper = name.split('/').next().expect("a paper");
        assert!(PAPERS.iter().any(|(known, _)| *known == paper), "{name} is of no paper in the list");
    }
}

#[test]
fn every_experiment_names_what_there_is() {
    for experiment in all() {
        let Experiment { id, arms, conditions, evaluation, .. } = &experiment;
        assert!(!experiment.title.is_empty() && experiment.cpu_hours() >= 0.0, "{id}");
        for row in experiment.rows() {
            // A rule that everybody passes says nothing.
            let lowest = if evaluation.measure == Measure::Return { f64::NEG_INFINITY } else { 0.0 };
            let says = !matches!(experiment.rule(row), Some(Rule::AtLeast(least)) if least <= lowest);
            assert!(says, "{id}: {}", experiment.row_name(row));
        }
        assert!(experiment.cannot_run().is_some() || !experiment.rows().is_empty(), "{id} has no rows");
        let names: BTreeSet<String> = experiment.rows().iter().map(|row| experiment.row_name(*row)).collect();
        assert_eq!(names.len(), experiment.rows().len(), "{id}: two rows of one name");
        for arm in arms {
            let world = arm.world.as_ref().unwrap_or(&evaluation.world);
            assert!(WORLDS.get(world).is_some(), "{id}, {}: no world {world}", arm.name);
            if let Some(bundled) = &arm.bundled {
                assert!(champion::find(bundled).is_some(), "{id}: no weights {bundled}");
            }
            if let Some(preset) = &arm.preset {
                assert!(PRESETS.get(preset).is_some(), "{id}: no preset {preset}");
            }
        }
        for condition in conditions {
            for variant in &condition.variants {
                let name = variant.split(':').next().unwrap_or_default();
                let world = WORLDS.get(&evaluation.world).expect("checked");
                assert!(world.variants.iter().any(|known| known.name == name), "{id}: no variant {variant}");
            }
            for shift in condition.shifts.iter().flat_map(|shift| shift.split('+')) {
                let name = shift.split(':').next().unwrap_or_default();
                assert!(SHIFTS.get(name).is_some(), "{id}: no shift {shift}");
            }
        }
    }
}

/// Worlds that need files or programs that a clone does not have.
const OTHERS: [&str; 6] = ["digits", "quadruped-walls", "take-cover", "ant", "pong", "atari"];

/// The trainings' configurations are complete, and worlds without a program of their own can be built in every row.
#[test]
fn what_can_run_natively_is_built() {
    let (mut built, mut wrong) = (0, vec![]);
    for experiment in all() {
        let Experiment { id, arms, conditions, evaluation, .. } = &experiment;
        for row in experiment.rows().into_iter().filter(|row| experiment.row_needs(*row).is_none()) {
            let (arm, condition) = (&arms[row.arm], &conditions[row.condition]);
            let world = arm.world.as_ref().unwrap_or(&evaluation.world).clone();
            let elsewhere = OTHERS.contains(&&*world);
            let what = format!("{id}, {}", experiment.row_name(row));
            if let Some(preset) = &arm.preset {
                let open = PRESETS.get(preset).is_none_or(|preset| preset.open);
                let spec = WorldSpec { id: Some(world.clone()), ..WorldSpec::default() };
                let said = UserSettings::read(None, &arm.set, &spec).expect("keys");
                // A preset for many worlds asks the world for its shape.
                let config = match (elsewhere, open) {
                    (true, true) => Ok(()),
                    (true, false) => TrainConfig::load(preset, None, &arm.set).map(drop),
                    (false, _) => configure(Some(preset), &said).map(drop),
                };
                wrong.extend(config.err().map(|error| format!("{what}: {error}")));
            }
            if elsewhere {
                continue;
            }
            let request = EnvRequest {
                id: world,
                picture: condition.picture.as_ref().or(evaluation.picture.as_ref()).cloned(),
                variants: condition.variants.clone(),
                options: evaluation
                    .options
                    .iter()
                    .chain(&condition.options)
                    .map(|(a, b)| (a.clone(), b.clone()))
                    .collect(),
                ..EnvRequest::default()
            };
            wrong.extend(worlds::make(request).err().map(|error| format!("{what}: {error}")));
            built += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(built > 20, "only {built} rows were built");
}

const TOY: &str = r#"
title = "a toy"
section = "nowhere"
cpu-hours = 0.1
counts = "within-std"
order = ["b", "a"]
seeds = [1, 2]

[paper]
trained = "rewards"
n = 2

[evaluation]
world = "car-racing"
episodes = 2
cpu-seconds = 0.1

[[arm]]
name = "a"
trained = "rewards"
preset = "evolution"

[[arm]]
name = "b"
trained = "rewards"
preset = "evolution"

[[condition]]
name = "c"
published = { a = [10, 2], b = [20, 3] }
"#;

fn toy_with(from: &str, to: &str) -> Result<Experiment, String> {
    assert!(TOY.contains(from), "{from}");
    Experiment::parse("attention-agent/toy", &TOY.replace(from, to)).map_err(|error| error.to_string())
}

#[test]
fn a_broken_description_says_where() {
    for (from, to, wants) in [
        ("[10, 2]", "10", "a: within-std needs a published spread"),
        ("order = [\"b\"", "order = [\"d\"", "order names \"d\", which is no row"),
        ("published = { a", "published = { d", "names \"d\", which is no arm"),
        ("seeds = [1, 2]", "", "arm \"a\" is trained, and there are no seeds"),
        ("title = ", "titel = ", "unknown field `titel`"),
        (
            "preset = \"evolution\"\n\n[[arm]]",
            "init = \"b\"\npreset = \"evolution\"\n\n[[arm]]",
            "needs \"b\"",
        ),
        ("counts = \"within-std\"", "counts = \"near\"", "unknown variant `near`"),
    ] {
        let said = toy_with(from, to).expect_err(to);
        assert!(said.contains(wants) && said.lines().count() == 1, "{said}");
    }
}

fn measured(arm: &str, seed: u64, returns: &[f64]) -> Measured {
    Measured {
        arm: arm.into(),
        condition: "c".into(),
        training_seed: Some(seed),
        weights: 7,
        sha256: "0".into(),
        world: "car-racing".into(),
        seed: 1.into(),
        reference: None,
        returns: returns.to_vec(),
        machine: Machine {
            foveate: "0".into(),
            processor: "p".into(),
            date: "2026-11-29T07:00:00Z".into(),
            cpu_seconds: 1.0,
            training_cpu_seconds: Some(10.0),
        },
    }
}

#[test]
fn an_experiment_is_judged_and_its_file_is_read_again() {
    let toy = toy_with("a toy", "a toy").expect("right");
    let half = vec![measured("a", 1, &[9.0, 10.0]), measured("a", 2, &[11.0, 14.0])];
    let judged = Judged::of(toy.clone(), half.clone());
    assert_eq!(judged.row("a").and_then(|row| row.verdict.clone()), Some(Verdict::Reproduced));
    assert_eq!(judged.verdict.words(), "not comparable (1 of 2 rows: not run)");
    let whole = [half, vec![measured("b", 1, &[19.0, 21.0]), measured("b", 2, &[20.0, 28.0])]].concat();
    let judged = Judged::of(toy, whole.clone());
    assert_eq!((judged.verdict.words(), judged.date()), ("reproduced".into(), Some("2026-11-29")));
    assert_eq!(judged.cpu_seconds(), 44.0);
    assert_eq!(read(&judged.to_json(), "attention-agent/toy").expect("its own"), whole);
    assert!(read(&judged.to_json(), "attention-agent/table-1").is_err());
    let table = judged.markdown();
    assert!(table.contains("| a | rewards | 7 | 2 × 2 | 11.0 ± 1.9 |"), "{table}");
    assert!(table.contains("| 10 ± 2 | +1.0 ("), "{table}");
    assert_eq!(judged.csv().lines().count(), 3);
    let figure = judged.figure(&[]).expect("no runs");
    assert!(figure.starts_with("<svg") && figure.contains("a, published"), "{figure}");
}

#[test]
fn documents_get_the_numbers_of_the_results() {
    let of = |text: &str| documents::written(text, &|_| None).map_err(|error| error.to_string());
    assert_eq!(of("nothing here"), Ok("nothing here".into()));
    for (text, wants) in [
        ("<!-- result x/y --><!-- /result -->", "no experiment is called \"x/y\""),
        ("<!-- result attention-agent/table-1 -->", "is not closed"),
        ("<!-- result attention-agent/roi --><!-- /result -->", "has no measurements"),
    ] {
        assert!(of(text).expect_err(text).contains(wants), "{text}");
    }
    let measured = EXPERIMENTS.iter().find(|file| file.result.is_some());
    let Some(file) = measured else { return };
    let written = of(&format!("a\n<!-- result {} -->\nold\n<!-- /result -->\nb\n", file.id)).expect("closed");
    assert!(written.contains("| row | trained | weights |") && !written.contains("old"), "{written}");
    assert_eq!(of(&written).as_ref(), Ok(&written), "once more changes nothing");
}

#[test]
fn a_cost_is_that_of_all_trainings_and_episodes() {
    // Two arms with two seeds each, two episodes of a tenth of a second.
    let toy = toy_with("cpu-hours = 0.1", "").expect("right");
    assert!((toy.cpu_hours() * 3600.0 - 0.8).abs() < 1e-9, "{}", toy.cpu_hours());
    let trained: Experiment = {
        let text = TOY.replace("cpu-hours = 0.1", "").replace("name = \"b\"", "name = \"b\"\ncpu-hours = 3");
        Experiment::parse("attention-agent/toy", &text).expect("right")
    };
    assert!((trained.cpu_hours() - 6.0 - 0.8 / 3600.0).abs() < 1e-9, "{}", trained.cpu_hours());
    let own = toy_with("cpu-hours = 0.1", "cpu-hours = 7.5").expect("right");
    assert_eq!(own.cpu_hours(), 7.5);
}
