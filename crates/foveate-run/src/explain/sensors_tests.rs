//! Tests of the report on sensors, on a toy world and toy agents with a known ground truth.

use foveate_core::Labels;
use foveate_explain::study::Message;
use foveate_toy::{Gauges, Listener, SIZES, SensorClaim as Says};

use super::*;

/// Names of the sensors.
const NAMES: [&str; 4] = ["faint", "low", "loud", "loudest"];

struct Made {
    report: Report,
    sensors: SensorEffects,
    files: tests::Files,
}

fn explain(says: Says, gain: f32, shuffled: bool, episodes: usize, workers: usize) -> Made {
    let request = ExplainRequest {
        env: &Gauges::new(shuffled),
        agent: &Listener::agent(says, gain),
        labels: Labels {
            env: "gauges".into(),
            picture: "world".into(),
            variant: "original".into(),
            weights: "<toy> & \"friends\"".into(),
        },
        sensors: &NAMES,
        seed: 5,
        episodes,
        decisions: 12,
        untrained: 2,
        asked: None,
        max_steps: None,
        workers,
        out: Path::new(""),
    };
    let (report, files) = tests::made(request).expect("a report");
    let sensors = report.get::<SensorEffects>().expect("of sensors").clone();
    Made { report, sensors, files }
}

#[track_caller]
fn check(says: Says, gain: f32, episodes: usize, expect: &str) -> SensorEffects {
    let Made { sensors: report, .. } = explain(says, gain, false, episodes, 2);
    assert_eq!(report.verdict, expect, "{says:?}: {:?}", report.ranks);
    report
}

#[test]
fn toys_are_seen_through() {
    let truth = check(Says::Truth, 0.9, 8, "supported");
    let [.., replaced] = &truth.ranks[..] else { panic!("three") };
    // A replaced value depends on the sensor's size more than on the moment: the claim is right, and not shown to be of its moment.
    assert!(replaced.above_other.1.is_some_and(|[low, high]| low < 0.0 && high > 0.0), "{replaced:?}");
    for test in &truth.ranks {
        // Knocked out, a sensor moves the action as far as it is from its mean, which is not quite 0.
        assert!(test.own.0 > if test.intervention == "knocked out" { 0.7 } else { 0.2 }, "{test:?}");
        assert!(test.dealt.0.abs() < 0.1, "{test:?}");
    }
    let nonsense = check(Says::Nonsense, 0.9, 8, "not supported");
    assert!(nonsense.ranks.iter().all(|test| test.own.0.abs() < 0.25), "{:?}", nonsense.ranks);
    let inverted = check(Says::Inverted, 0.9, 8, "not supported");
    assert!(inverted.ranks[0].above_dealt.1.is_some_and(|[_, high]| high < -0.4), "{:?}", inverted.ranks);
    // Its weights are right, but it hardly acts.
    let frozen = check(Says::Truth, 1e-4, 8, "undecided");
    assert!(frozen.ranks[0].own.0 > 0.7 && frozen.natural.0 < 1e-3, "{frozen:?}");
    check(Says::Truth, 0.9, 3, "undecided");
}

#[test]
fn sensors_are_those_of_the_world_in_any_order() {
    let Made { report, sensors: plain, .. } = explain(Says::Truth, 0.9, false, 6, 2);
    let shuffled = explain(Says::Truth, 0.9, true, 6, 2).sensors;
    let names: Vec<&str> = plain.sensors.iter().map(|sensor| &*sensor.name).collect();
    assert_eq!(names, NAMES);
    for (plain, shuffled) in plain.sensors.iter().zip(&shuffled.sensors) {
        assert_eq!(plain.name, shuffled.name);
        let near = |a: (f64, Option<[f64; 2]>), b: (f64, Option<[f64; 2]>)| (a.0 - b.0).abs() < 1e-6;
        assert!(near(plain.weight, shuffled.weight), "{plain:?} {shuffled:?}");
        assert!(
            plain.change.iter().zip(&shuffled.change).all(|(&a, &b)| near(a, b)),
            "{plain:?} {shuffled:?}"
        );
    }
    // Louder sensors get more weight and move the action more.
    for pair in plain.sensors.windows(2) {
        assert!(pair[0].weight.0 < pair[1].weight.0 && pair[0].change[2].0 < pair[1].change[2].0, "{pair:?}");
    }
    // The message is the sum: most of its variance is that of the loudest sensor.
    let recovered = report.get::<Message>().and_then(|of| of.recovered.as_ref()).expect("it has a message");
    assert_eq!((recovered.inputs, recovered.fitted_on, recovered.scored_on), (2, 180, 180));
    let r2: Vec<f64> = recovered.sensors.iter().map(|sensor| sensor.r2).collect();
    let all: f64 = SIZES.iter().map(|size| size * size).sum();
    for (r2, size) in r2.iter().zip(SIZES) {
        assert!((r2 - size * size / all).abs() < 0.12, "{r2} of a sensor of size {size}");
    }
}

#[test]
fn the_report_is_whole_and_does_not_depend_on_the_workers() {
    let Made { report, sensors, files } = explain(Says::Truth, 0.9, true, 5, 1);
    let other = explain(Says::Truth, 0.9, true, 5, 3).files;
    assert_eq!(files.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in &files {
        assert!(*bytes == other[name], "{name} differs");
    }
    for name in [
        "sensor-weights",
        "sensor-importance",
        "sensor-codes",
        "claim-and-effect",
        "rank-correlation",
        "recovered",
    ] {
        for kind in ["svg", "png", "csv", "json"] {
            assert!(files.contains_key(&format!("figures/{name}.{kind}")), "{name}.{kind}");
        }
    }
    let page = String::from_utf8(files["index.html"].clone()).expect("text");
    assert_eq!(page.len(), report.head.bytes);
    for wants in
        ["Is it true?", "loudest", "&lt;toy&gt;", "not corrected for their number", "as the world has them"]
    {
        assert!(page.contains(wants), "{wants}");
    }
    let numbers: serde_json::Value = serde_json::from_slice(&files["report.json"]).expect("JSON");
    assert_eq!(numbers["verdict"].as_str(), Some(&*sensors.verdict));
    // 60 steps of 4 sensors and 2 codes.
    assert_eq!(numbers["figures"]["sensor-weights"].as_array().map(Vec::len), Some(480));
    let told = tests::told_everywhere(&report, &files);
    assert_eq!(told, ["matters", "sensors", "sensors-true", "message"]);
    let said = report.to_string();
    assert!(said.contains("loudest") && said.contains("R²"), "{said}");

    let Made { sensors: report, files, .. } = explain(Says::Truth, 0.9, false, 1, 1);
    assert!(report.ranks.iter().all(|test| test.own.1.is_none()) && report.verdict == "undecided");
    let page = String::from_utf8(files["index.html"].clone()).expect("text");
    assert!(page.contains("over one episode") && !page.contains('…'), "{page}");
}
