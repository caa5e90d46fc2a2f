//! Tests of the report on agents that attend to the cells of a grid world, with agents whose true effects are known.

use foveate_agents::registry::{Init, find, initial_params, make};
use foveate_core::{
    ActContext, Attention, Decision, Labels, Observation, Policy, PolicyAgent, PolicyError, Seed,
    TensorShape, Tokens,
};
use foveate_envs::registry::EnvRequest;
use foveate_explain::study::{EditedWorlds, NodeLinks};

use super::*;

/// What the attention of a [`Linear`] agent says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    /// How much each cell moves the values.
    Truth,
    /// The opposite order.
    Inverted,
}

/// Values five actions by linear functions of the kinds of all cells, others in every step.
#[derive(Debug, Clone)]
struct Linear {
    says: Says,
    /// Added to the value of the first action: a large one never lets another be the best.
    bias: f64,
}

#[derive(Debug, Clone, Default)]
struct LinearMemory {
    step: u64,
    values: Vec<f32>,
    action: Vec<f64>,
    attention: Vec<f32>,
}

impl Linear {
    fn agent(says: Says, bias: f64) -> PolicyAgent<Linear> {
        PolicyAgent::new(Linear { says, bias })
    }
}

impl Policy for Linear {
    type Memory = LinearMemory;

    fn memory(&self) -> LinearMemory {
        LinearMemory::default()
    }

    fn reset(&self, memory: &mut LinearMemory, _: Seed) {
        memory.step = 0;
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut LinearMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Observation::Grid(grid) = observation else {
            return Err(PolicyError::BadConfig { why: "cells, please".into() });
        };
        memory.step += 1;
        let mut rng = Seed::root(2).child("step", memory.step).rng();
        // `[5, cells]`
        let cells = grid.rows() * grid.columns();
        let weights: Vec<f64> = (0..5 * cells).map(|_| rng.normal()).collect();
        let kinds = grid.codes().chunks_exact(3).map(|codes| f64::from(codes[0]));
        let values = weights.chunks_exact(cells).enumerate().map(|(action, weights)| {
            let sum: f64 = weights.iter().zip(kinds.clone()).map(|(w, kind)| w * kind).sum();
            (sum + if action == 0 { self.bias } else { 0.0 }) as f32
        });
        memory.values = values.collect();
        memory.action = memory.values.iter().map(|&value| value.into()).collect();
        let size = |cell: usize| (0..5).map(|action| weights[action * cells + cell].abs()).sum::<f64>();
        let told = (0..cells).map(|cell| match self.says {
            Says::Truth => size(cell),
            Says::Inverted => 1.0 / size(cell),
        });
        memory.attention = told.map(|weight| weight as f32).collect();
        let attention = Attention::soft(
            Tokens::Grid { rows: grid.rows(), columns: grid.columns() },
            1,
            1,
            &memory.attention,
        )?;
        let decision = Decision::new(&memory.action).with_attention(attention);
        Ok(Decision { logits: Some(&memory.values), ..decision })
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![TensorShape { name: "bias".into(), shape: vec![1] }]
    }

    fn params(&self) -> Vec<f32> {
        vec![self.bias as f32]
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.bias = flat[0].into();
        Ok(())
    }
}

const FIVE: &[(&str, &str)] = &[("actions", "five")];

struct Made {
    report: Report,
    cells: CellEdits,
    files: tests::Files,
}

fn world(id: &str, picture: &str, options: &[(&str, &str)]) -> Box<dyn foveate_core::Env> {
    let options = options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    let request =
        EnvRequest { id: id.into(), picture: Some(picture.into()), options, ..EnvRequest::default() };
    crate::worlds::make(request).expect("a world")
}

fn explain(env: &dyn Env, agent: &dyn Agent, episodes: usize, workers: usize) -> Result<Made, RunError> {
    let request = ExplainRequest {
        env,
        agent,
        labels: Labels {
            env: env.spec().id.clone(),
            picture: "view".into(),
            variant: "original".into(),
            weights: "<toy> & \"friends\"".into(),
        },
        sensors: &[],
        seed: 5,
        episodes,
        decisions: 6,
        untrained: 2,
        asked: None,
        max_steps: Some(12),
        workers,
        out: Path::new(""),
    };
    let (report, files) = tests::made(request)?;
    let cells = report.get::<CellEdits>().expect("of cells").clone();
    Ok(Made { report, cells, files })
}

/// Attention that says what moves the values is supported; its inverse, and that of an agent whose decision never changes,
/// are not.
#[test]
fn planted_agents_are_seen_through() {
    // Everything is in view: a cell changes itself and hides nothing behind it.
    let env = world("empty-random-5x5", "full", FIVE);
    let check = |says, bias, episodes| {
        explain(&*env, &Linear::agent(says, bias), episodes, 2).expect("a report").cells
    };
    let truth = check(Says::Truth, 0.0, 12);
    assert_eq!(truth.verdict, "supported", "{:?}", truth.rank);
    assert!(truth.rank.own.0 > 0.5 && truth.rank.dealt.0.abs() < 0.15, "{:?}", truth.rank);
    assert!(truth.cells > 3.0, "{}", truth.cells);
    let inverted = check(Says::Inverted, 0.0, 12);
    assert_eq!(inverted.verdict, "not supported");
    assert!(inverted.rank.above_dealt.1.is_some_and(|[_, high]| high < 0.0), "{:?}", inverted.rank);
    let stubborn = check(Says::Truth, 1e6, 12);
    assert_eq!((&*stubborn.verdict, stubborn.natural.0), ("undecided", 0.0));
    assert!(stubborn.edits.iter().all(|row| row.action.0 == 0.0));
    assert_eq!(check(Says::Truth, 0.0, 3).verdict, "undecided");
}

/// An agent without memory cannot notice the removal of what it does not see; a door that is gone is no obstacle.
#[test]
fn edits_are_of_the_world() {
    let env = world("door-key-5x5", "view", FIVE);
    let settings = (find("relational").expect("it exists").fit)(env.spec(), &[[0.0, 1.0]; 5]);
    let params = initial_params("relational", &settings, Init::Torch, Seed::root(3)).expect("numbers");
    let mut agent = make("relational", &settings).expect("an agent");
    agent.set_params(&params).expect("its own");
    let Made { report, cells, files } = explain(&*env, &*agent, 6, 2).expect("a report");
    let links = report.get::<NodeLinks>().expect("of cells");
    let worlds = report.get::<EditedWorlds>().expect("of cells");
    assert_eq!(links.heads_and_queries, [3, 49]);
    let unseen = cells.edits.iter().find(|row| row.object == "an object out of view").expect("some are");
    assert!(unseen.decisions > 0);
    assert_eq!((unseen.action.0, unseen.values.0), (0.0, 0.0));
    let seen: Vec<_> = cells.edits.iter().filter(|row| row.attention.is_some()).collect();
    assert!(seen.iter().any(|row| row.values.0 > 0.0), "{seen:?}");
    let plain = worlds.edited_episodes.iter().find(|row| row.object.is_empty()).expect("as it was");
    assert_eq!((plain.episodes, plain.score), (6, plain.unedited));
    for (object, edit) in [("door", "removed"), ("key", "recoloured"), ("goal", "removed")] {
        let row = worlds.edited_episodes.iter().find(|row| row.object == object && row.edit == edit);
        assert_eq!(row.map(|row| row.episodes), Some(6), "{object} {edit}");
    }
    // Softmax rows: in every step, the shares that the agent's cell gives to all kinds of cells sum to 1.
    let steps: usize = report.head.steps.iter().sum();
    let of_agent = links.attention.iter().filter(|link| link.head == Some(0) && link.node == "agent");
    let whole: f64 = of_agent.map(|link| link.share * link.steps as f64 / steps as f64).sum();
    assert!((whole - 1.0).abs() < 1e-5, "{whole}");
    let told = tests::told_everywhere(&report, &files);
    assert_eq!(told, ["matters", "cells", "cells-true", "episodes"]);
    let page = String::from_utf8(files["index.html"].clone()).expect("text");
    for text in ["Which cells attend to which", "Whole episodes in edited worlds", "&lt;toy&gt;"] {
        assert!(page.contains(text), "{text}");
    }
    for name in ["figures/maps-1.png", "figures/links.csv", "figures/edits.svg", "report.json", "episode.mp4"]
    {
        assert!(files.contains_key(name), "{name}");
    }
}

#[test]
fn the_same_bytes_with_any_number_of_workers() {
    let env = world("door-key-6x6", "view", &[("actions", "five"), ("second_key", "red")]);
    let agent = Linear::agent(Says::Truth, 0.0);
    let [one, three] = [1, 3].map(|workers| explain(&*env, &agent, 3, workers).expect("a report"));
    assert!(one.files == three.files);
    assert_eq!(one.cells.edits, three.cells.edits);
}
