//! AttentionNeuron (Tang and Ha 2021, "The Sensory Neuron as a Transformer: Permutation-Invariant Neural Networks for
//! Reinforcement Learning").
//!
//! Every sensor, a number or a patch of a picture, is processed by a small network of its own; all share their weights.
//! Each sends a message; attention with a fixed matrix of queries adds the messages up. The sum does not depend on the
//! order of the sensors, so the agent works whichever way its inputs are permuted, and with any number of them.
//!
//! * [`vectors`]: the agent for worlds that show numbers (CartPole, Ant in the paper).
//! * [`student`]: its gradient, for learning from an expert.
//! * [`pictures`]: the agent for worlds that show pictures (CarRacing, Pong in the paper), with its [`heads`];
//!   [`picture_student`]: its gradient.
//!
//! Both are the agent `attention-neuron`. Its setting `senses` says which one is meant: `"numbers"`, the default, or
//! `"picture"`.

pub mod heads;
mod layers_learner;
mod picture_graph;
pub mod picture_student;
pub mod pictures;
pub mod student;
mod vector_graph;
pub mod vectors;

use foveate_core::{EnvSpec, PolicyError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::bad;
use crate::descriptor::{self, AgentConfig, AgentDescriptor, PublishedWeights, PublishedWorld, Sees};
use crate::layout::Layout;
use crate::torch::TorchModule;

/// What an AttentionNeuron senses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Senses {
    /// Numbers: each is a sensor.
    #[default]
    Numbers,
    /// A picture: each patch is a sensor.
    Picture,
}

impl Senses {
    /// Every kind with its name in the settings.
    const ALL: [(Senses, &str); 2] = [(Senses::Numbers, "numbers"), (Senses::Picture, "picture")];

    /// What the settings in `config` are for.
    fn of(config: &Value) -> Result<Senses, PolicyError> {
        let Some(given) = config.get("senses") else { return Ok(Senses::default()) };
        let found = Senses::ALL.into_iter().find(|(_, name)| given.as_str() == Some(name));
        found.map_or_else(
            || bad(format!("senses is {given}; choose \"numbers\" or \"picture\"")),
            |(senses, _)| Ok(senses),
        )
    }
}

/// The fixed queries: the sinusoidal position code, `[rows, columns]`, row-major.
///
/// Row m, column j is the sine (even j) or the cosine (odd j) of m / 10000^(2 ⌊j / 2⌋ / columns), computed in double
/// precision and rounded to f32.
///
/// ```
/// use foveate_agents::attention_neuron::queries;
/// assert_eq!(queries(2, 4), [0.0, 1.0, 0.0, 1.0, 0.84147096, 0.5403023, 0.009999833, 0.99995]);
/// ```
pub fn queries(rows: usize, columns: usize) -> Vec<f32> {
    let mut table = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for column in 0..columns {
            let exponent = 2.0 * (column / 2) as f64 / columns as f64;
            let angle = row as f64 / 10_000_f64.powf(exponent);
            table.push(if column % 2 == 0 { angle.sin() } else { angle.cos() } as f32);
        }
    }
    table
}

/// The module of `PyTorch`, of both kinds.
fn module() -> TorchModule {
    let source = include_str!("../../foveate-py/python/foveate/torch/attention_neuron.py");
    TorchModule::new("AttentionNeuron", "attention_neuron", source, true)
}

/// Reads settings: those of [`vectors`] or of [`pictures`], by `senses`.
fn read(config: &Value) -> Result<Box<dyn AgentConfig>, PolicyError> {
    match Senses::of(config)? {
        Senses::Numbers => descriptor::read::<vectors::VectorConfig>(config),
        Senses::Picture => pictures::read(config),
    }
}

/// The settings for a world of this shape: for its picture where it has one, else for its numbers.
fn fit(spec: &EnvSpec, ranges: &[[f64; 2]]) -> Value {
    if spec.observation.image().is_some() { pictures::fit(spec) } else { vectors::fit(spec, ranges) }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "attention-neuron",
    summary: "every number or patch is a sensor with a network of its own; their order and their number do not matter (Tang and Ha 2021)",
    sees: Sees::PictureOrNumbers,
    read,
    fit,
    published: &PUBLISHED,
};

/// The CarRacing of the published agents.
const CAR_RACING: PublishedWorld =
    PublishedWorld { id: "car-racing", picture: Some("classic"), options: &[] };
/// The Ant of the published agents.
const ANT: PublishedWorld = PublishedWorld { id: "ant", picture: None, options: &[] };

/// The weights of google/brain-tokyo-workshop, AttentionNeuron, with the scores of the logs beside them. Two of them are
/// agents to compare with, which have no sensory neurons.
static PUBLISHED: [PublishedWeights; 6] = [
    PublishedWeights {
        name: "cartpole_pi",
        params: 913,
        agent: "attention-neuron",
        settings: || json!(vectors::VectorConfig::cartpole_pi()),
        layout: Layout::Registration,
        world: PublishedWorld { id: "cartpole-swingup-harder", picture: None, options: &[] },
        score: [516.57, 420.37],
        sha256: None,
    },
    PublishedWeights {
        name: "ant_pi",
        params: 2504,
        agent: "attention-neuron",
        settings: || json!(vectors::VectorConfig::ant_pi()),
        layout: Layout::Registration,
        world: ANT,
        score: [2563.28, 79.20],
        sha256: None,
    },
    PublishedWeights {
        name: "ant_mlp",
        params: 2248,
        agent: "controller",
        settings: || {
            json!({
                // Its numbers are not scaled.
                "observation": vec![[-1.0, 1.0]; 28],
                "controller": { "kind": "mlp", "hidden": [32, 32] },
                "actions": vec![[-1.0, 1.0]; 8],
            })
        },
        layout: Layout::Registration,
        world: ANT,
        score: [1844.74, 120.96],
        sha256: None,
    },
    PublishedWeights {
        name: "carracing",
        params: 3667,
        agent: "attention-agent",
        settings: || json!({ "scale": "sqrt_d" }),
        layout: Layout::Registration,
        world: CAR_RACING,
        score: [895.59, 60.83],
        sha256: None,
    },
    PublishedWeights {
        name: "carracing_pi",
        params: 7212,
        agent: "attention-neuron",
        settings: || json!(pictures::PictureConfig::carracing_pi()),
        layout: Layout::Registration,
        world: PublishedWorld { options: &[("wrap", "grey:opencv+blank:bottom=12+stack:4")], ..CAR_RACING },
        score: [846.60, 94.21],
        sha256: None,
    },
    PublishedWeights {
        name: "puzzle_pong",
        params: 1_687_726,
        agent: "attention-neuron",
        settings: || json!(pictures::PictureConfig::puzzle_pong()),
        layout: Layout::Registration,
        world: PublishedWorld { id: "pong", picture: None, options: &[] },
        score: [21.0, 0.0],
        sha256: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senses_select_the_settings() {
        assert_eq!(Senses::of(&Value::Null), Ok(Senses::Numbers));
        assert_eq!(Senses::of(&json!({ "senses": "numbers" })), Ok(Senses::Numbers));
        assert_eq!(Senses::of(&json!({ "senses": "picture" })), Ok(Senses::Picture));
        for wrong in [json!({ "senses": "smells" }), json!({ "senses": 3 })] {
            let said = Senses::of(&wrong).expect_err("no such sense").to_string();
            assert!(said.contains("choose \"numbers\" or \"picture\""), "{said}");
        }
    }

    #[test]
    fn published_settings_have_as_many_parameters_as_published() {
        for weights in &PUBLISHED {
            let tensors = crate::registry::tensors(weights.agent, &(weights.settings)()).expect(weights.name);
            let params: usize = tensors.iter().map(foveate_core::TensorShape::len).sum();
            assert_eq!(params, weights.params, "{}", weights.name);
        }
    }

    #[test]
    fn queries_are_sines_and_cosines() {
        let table = queries(1024, 8);
        assert_eq!(table.len(), 8192);
        assert_eq!(table[..8], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        // Computed with Python's math module.
        for (row, column, expect) in [
            (1, 0, 0.841_470_96),
            (1, 7, 0.999_999_5),
            (15, 2, 0.997_495),
            (399, 5, -0.661_178_8),
            (1023, 0, -0.916_485_4),
            (1023, 3, -0.196_942_9),
            (1023, 6, 0.853_674_3),
        ] {
            let got: f32 = table[8 * row + column];
            assert!((got - expect).abs() < 1e-6, "row {row}, column {column}: {got}");
        }
    }
}
