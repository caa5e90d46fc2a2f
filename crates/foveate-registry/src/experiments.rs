//! Experiments of the papers, each a file of `experiments/`, in the order of the catalogue.

use foveate_core::{Descriptor, Registry};

/// A published experiment that can be repeated.
#[derive(Debug, Clone, Copy)]
pub struct ExperimentText {
    /// Its name, `paper/item`.
    pub id: &'static str,
    /// Its description, as TOML.
    pub text: &'static str,
    /// What was measured for this repository, as JSON, if it was.
    pub result: Option<&'static str>,
}

impl Descriptor for ExperimentText {
    fn name(&self) -> &'static str {
        self.id
    }
}

/// The papers: the first part of an experiment's name, and what it stands for.
pub const PAPERS: &[(&str, &str)] = &[
    ("attention-agent", "Tang, Nguyen, Ha 2020, Neuroevolution of Self-Interpretable Agents"),
    ("attention-neuron", "Tang, Ha 2021, The Sensory Neuron as a Transformer"),
    ("relational", "Zai, Brown 2020, Deep Reinforcement Learning in Action, chapter 10"),
    ("iap", "Choromanski et al. 2021, Unlocking Pixels for Reinforcement Learning via Implicit Attention"),
    (
        "s3ta",
        "Mott et al. 2019, Towards Interpretable Reinforcement Learning Using Attention Augmented Agents",
    ),
];

/// Experiments by name; those whose name is followed by `result` have been measured: `results/NAME.json`.
macro_rules! experiments {
    ($($id:literal $($measured:ident)?,)*) => {
        &[$(&ExperimentText {
            id: $id,
            text: include_str!(concat!("../experiments/", $id, ".toml")),
            result: experiments!(@ $id $($measured)?),
        },)*]
    };
    (@ $id:literal) => { None };
    (@ $id:literal result) => { Some(include_str!(concat!("../../../results/", $id, ".json"))) };
}

/// All experiments.
pub static EXPERIMENTS: Registry<ExperimentText> = Registry::new(
    "experiment",
    experiments! {
        "attention-agent/table-1" result,
        "attention-agent/take-cover",
        "attention-agent/train-car-racing",
        "attention-agent/train-take-cover",
        "attention-agent/noise-k",
        "attention-agent/video",
        "attention-agent/features",
        "attention-agent/sweeps",
        "attention-agent/baselines",
        "attention-agent/curve",
        "attention-agent/roi",
        "attention-agent/parameters",
        "attention-neuron/logs" result,
        "attention-neuron/table-1",
        "attention-neuron/re-shuffle",
        "attention-neuron/backgrounds",
        "attention-neuron/train-cartpole",
        "attention-neuron/train-ant",
        "attention-neuron/pong",
        "relational/digits",
        "relational/book",
        "relational/scores",
        "relational/door-key",
        "relational/box-world",
        "relational/zoo",
        "iap/figure-1",
        "iap/figures-3-4",
        "iap/figure-6",
        "iap/table-1",
        "iap/figure-7",
        "iap/quadruped",
        "iap/table-2",
        "s3ta/figures",
        "s3ta/table-1",
        "s3ta/table-3",
        "s3ta/table-4",
        "s3ta/table-5",
    },
);
