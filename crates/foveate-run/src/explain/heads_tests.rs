//! Tests of the analyses of heads, with an agent whose heads do known things, and with an S3TA.

use foveate_agents::registry::{Init, initial_params, make};
use foveate_core::{
    ActContext, Attention, Decision, Labels, Observation, Opened, Policy, PolicyAgent, PolicyError, Seed,
    TensorShape, Tokens,
};
use foveate_envs::registry::EnvRequest;
use serde_json::json;

use foveate_explain::study::{HeadNumber, heads_analysis};

use super::*;

const ROWS: usize = 5;
const CELLS: usize = ROWS * ROWS;

/// Two heads over 5 × 5 cells: the first attends to what is yellow, the second to cell 7 whatever is there. What the first
/// finds decides between five choices.
#[derive(Debug, Clone, Default)]
struct Planted {
    /// Every cell holds what is so many cells to its right, around the edge, and says so in its value.
    shift: usize,
}

#[derive(Debug, Clone, Default)]
struct PlantedMemory {
    opened: Opened,
    logits: Vec<f32>,
    action: Vec<f64>,
}

impl Planted {
    fn look(&self, observation: Observation<'_>, opened: &mut Opened) -> Result<(), PolicyError> {
        let Some(pixels) = observation.image() else {
            return Err(PolicyError::BadConfig { why: "a picture, please".into() });
        };
        let (width, height) = (pixels.width(), pixels.height());
        let mut yellow = vec![0.0_f32; CELLS];
        for (i, pixel) in pixels.bytes().chunks_exact(3).enumerate() {
            let column = (i % width * ROWS / width + ROWS - self.shift) % ROWS;
            let cell = i / width * ROWS / height * ROWS + column;
            let least = pixel[0].min(pixel[1]).saturating_sub(pixel[2]);
            yellow[cell] += f32::from(least);
        }
        let area = (width * height / CELLS * 255) as f32;
        for sum in &mut yellow {
            *sum *= 40.0 / area;
        }
        // Scores may have any offset; with this one contents win where nothing is yellow.
        for score in &mut yellow {
            *score += 1.0;
        }
        let fixed: Vec<f32> = (0..CELLS).map(|cell| if cell == 7 { 9.0 } else { 0.0 }).collect();
        opened.units = CELLS;
        opened.readers = 2;
        opened.weights.clear();
        for scores in [&yellow, &fixed] {
            let sum: f32 = scores.iter().map(|x| x.exp()).sum();
            opened.weights.extend(scores.iter().map(|x| x.exp() / sum));
        }
        opened.values.clear();
        opened.values.extend((0..CELLS).map(|cell| cell as f32 / CELLS as f32));
        let none = vec![0.0; CELLS];
        opened.terms = vec![("what", [&yellow[..], &none].concat()), ("where", [&none[..], &fixed].concat())];
        Ok(())
    }

    fn decide<'m>(opened: &Opened, logits: &'m mut Vec<f32>, action: &'m mut Vec<f64>) -> Decision<'m> {
        let answer: f32 = opened.row(0).iter().zip(&opened.values).map(|(w, v)| w * v).sum();
        *logits = (0..5_u8).map(|choice| -20.0 * (answer - f32::from(choice) / 5.0).powi(2)).collect();
        *action = logits.iter().map(|&x| x.into()).collect();
        Decision { logits: Some(logits), value: Some(answer), ..Decision::new(action) }
    }
}

impl Policy for Planted {
    type Memory = PlantedMemory;

    fn memory(&self) -> PlantedMemory {
        PlantedMemory::default()
    }

    fn reset(&self, _: &mut PlantedMemory, _: Seed) {}

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut PlantedMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let PlantedMemory { opened, logits, action } = memory;
        self.look(observation, opened)?;
        let decision = Planted::decide(opened, logits, action);
        let cells = Tokens::Cells { rows: ROWS, columns: ROWS };
        Ok(decision.with_attention(Attention::soft(cells, 2, 1, &opened.weights)?))
    }

    fn open(
        &self,
        observation: Observation<'_>,
        _: &mut PlantedMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        self.look(observation, opened).map(|()| true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut PlantedMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        Ok(Planted::decide(opened, &mut memory.logits, &mut memory.action))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![]
    }

    fn params(&self) -> Vec<f32> {
        vec![]
    }

    fn set_params(&mut self, _: &[f32]) -> Result<(), PolicyError> {
        Ok(())
    }
}

fn world() -> Box<dyn foveate_core::Env> {
    let options = [("actions".into(), "five".into())].into();
    let request = EnvRequest {
        id: "empty-random-5x5".into(),
        picture: Some("rgb".into()),
        options,
        ..EnvRequest::default()
    };
    crate::worlds::make(request).expect("a world")
}

/// The report, and the bytes of its files by name.
fn analyse(agent: &dyn Agent, analysis: &str, workers: usize) -> Result<(Report, tests::Files), RunError> {
    analyse_with(agent, analysis, workers, None)
}

fn analyse_with(
    agent: &dyn Agent,
    analysis: &str,
    workers: usize,
    sticky: Option<f64>,
) -> Result<(Report, tests::Files), RunError> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("heads");
    let env = world();
    let request = ExplainRequest {
        env: &*env,
        agent,
        labels: Labels {
            env: env.spec().id.clone(),
            picture: "rgb".into(),
            variant: "original".into(),
            weights: "planted".into(),
        },
        sensors: &[],
        seed: 5,
        episodes: 3,
        decisions: 2,
        untrained: 0,
        asked: None,
        max_steps: Some(40),
        workers,
        out: &out,
    };
    let stop = Stop::default();
    let report = heads(&request, heads_analysis(analysis).expect("it exists"), sticky, &stop, &mut |_| ())?;
    let times = if analysis == "threshold" { ", each 15 times" } else { "" };
    let parts = tests::plays_what_it_announced(&stop).parts;
    let fields = match analysis {
        "threshold" | "what-where" => "",
        _ => "9 decisions of 3 episodes with each of 144 places changed, then ",
    };
    assert_eq!(parts, format!("{fields}3 episodes of at most 40 steps{times}"));
    let files = tests::files(&out);
    tests::can_be_read_in_a_minute(&files);
    Ok((report, files))
}

fn of(report: &Report) -> &Heads {
    report.get().expect("of heads")
}

fn found(report: &Report, name: &str) -> f64 {
    let fits = |finding: &&HeadNumber| finding.name.starts_with(name);
    of(report).findings.iter().find(fits).unwrap_or_else(|| panic!("{name}: {report:?}")).value.0
}

fn difference(report: &Report, name: &str) -> f64 {
    let fits = |finding: &&HeadNumber| finding.name.starts_with(name);
    let finding = of(report).findings.iter().find(fits).unwrap_or_else(|| panic!("{name}: {report:?}"));
    finding.above_null.expect("it has a null").0
}

#[test]
fn heads_are_told_apart() {
    let planted = PolicyAgent::new(Planted::default());
    let made = |analysis| analyse(&planted, analysis, 2).expect("a report").0;
    let report = made("what-where");
    assert_eq!(of(&report).attention, [2, ROWS, ROWS]);
    assert!(found(&report, "head 0") > 0.99 && found(&report, "head 1") < 0.01, "{report}");
    let report = made("weights");
    assert!(found(&report, "head 1: largest weight") > 0.99, "{report}");
    assert!(found(&report, "head 0: entropy") > found(&report, "head 1: entropy"), "{report}");
    let report = made("inject");
    assert!(difference(&report, "head 0") > 0.02, "what is yellow is attended to: {report}");
    assert!(difference(&report, "head 1").abs() < 1e-6, "a place is a place: {report}");
    assert!(difference(&report, "change of the policy, total variation") > 0.0, "{report}");
    let report = made("threshold");
    assert_eq!(of(&report).findings[0].value.0, report.head.mean_score);
    assert_eq!(of(&report).findings.len(), 8);
}

/// A head that attends to what is yellow is seen to do so, wherever its cells lie.
#[test]
fn what_is_attended_to_is_judged_where_its_content_comes_from() {
    for shift in [0, 2] {
        let planted = PolicyAgent::new(Planted { shift });
        let made = |analysis| analyse(&planted, analysis, 2).expect("a report").0;
        let report = made("inject");
        assert!(difference(&report, "head 0") > 0.02, "shift {shift}: {report}");
        let registration = of(&report).registration.expect("measured");
        assert_eq!(registration.own > 0.7, shift == 0, "{registration:?}");
        assert_eq!(registration.distance > 1.5, shift > 0, "{registration:?}");
        assert!(report.to_string().contains("weights are shown and judged at the places"), "{report}");
        assert!(of(&made("threshold")).registration.is_none());
    }
}

#[test]
fn a_report_says_whether_actions_stick_and_warns_of_a_game_that_is_always_the_same() {
    let planted = PolicyAgent::new(Planted::default());
    for (analysis, sticky, says, warns) in [
        ("threshold", None, "", false),
        ("threshold", Some(0.25), "with probability 0.25", false),
        ("threshold", Some(0.0), "the game is deterministic", true),
        ("weights", Some(0.0), "the game is deterministic", false),
    ] {
        let (report, files) = analyse_with(&planted, analysis, 2, sticky).expect("a report");
        let text = report.to_string();
        assert!(text.contains(says) && text.contains("warning: in a deterministic game") == warns, "{text}");
        let json = files.iter().find(|(name, _)| name.as_str() == "report.json").expect("written");
        let json: serde_json::Value = serde_json::from_slice(json.1).expect("JSON");
        assert_eq!(json.get("sticky").and_then(serde_json::Value::as_f64), sticky);
        assert_eq!(json.get("warning").is_some(), warns);
    }
}

/// Every analysis has pictures and numbers, the same bytes with any number of workers.
#[test]
fn analyses_do_not_depend_on_workers() {
    let config = json!({
        "view": [56, 56, 3], "actions": 5, "channels": 12, "keys": 4, "heads": 2, "frequencies": 2,
        "convolutions": [{ "filters": 4, "size": 8, "stride": 8 }],
        "query_hidden": [8], "answer_hidden": [16], "units": 8, "trunk": 8,
    });
    let mut agent = make("s3ta", &config).expect("an agent");
    let params = initial_params("s3ta", &config, Init::Torch, Seed::root(1)).expect("params");
    agent.set_params(&params).expect("its own");
    for analysis in HEADS.iter().map(|analysis| analysis.name()) {
        let (report, files) = analyse(&*agent, analysis, 1).expect("a report");
        let (again, other) = analyse(&*agent, analysis, 2).expect("a report");
        assert_eq!(of(&report), of(&again), "{analysis}");
        assert!(files == other, "{analysis}");
        assert_eq!(report.head.scores.len(), 3);
        let is_picture = |name: &str| Path::new(name).extension().is_some_and(|ending| ending == "png");
        let pictures: Vec<_> = files.iter().filter(|(name, _)| is_picture(name)).collect();
        assert!(!pictures.is_empty() && !of(&report).findings.is_empty(), "{analysis}");
        let page = String::from_utf8_lossy(&files["index.html"]);
        for (name, bytes) in pictures {
            assert!(bytes.starts_with(b"\x89PNG") && page.contains(name.as_str()), "{name}");
        }
        let finite = |finding: &HeadNumber| finding.value.0.is_finite();
        assert!(of(&report).findings.iter().all(finite), "{report}");
    }
}

#[test]
fn agents_without_heads_are_refused() {
    let config = json!({ "view": [56, 56, 3], "actions": 5, "torso": "residual", "answer_hidden": [8], "units": 0, "trunk": 0 });
    let agent = make("s3ta", &config).expect("an agent");
    let said = analyse(&*agent, "weights", 1).expect_err("no heads").to_string();
    assert!(said.contains("no heads that attend to the cells"), "{said}");
}
