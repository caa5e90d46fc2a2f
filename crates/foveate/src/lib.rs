//! Foveate: small agents with explicit attention, and the worlds they act in.
//!
//! This crate is the library interface; the command `foveate` is built on it. Everything has a name: a world
//! ([`WORLDS`]), an agent ([`AGENTS`]), a learner ([`LEARNERS`]), a shift ([`SHIFTS`]), a training
//! configuration ([`PRESETS`]), and weights: a file, a run folder, `random`, or no name for the champion
//! included in Foveate.
//!
//! * [`WorldSpec`]: a world as a person asks for it; [`World`]: the same, built when it is first needed.
//! * [`Player`]: an agent in its world; [`LoadedAgent`]: the same with the agent's file.
//! * [`jobs`]: what can be done, a value each: evaluation, films, reports, robustness tests, training.
//! * [`import()`]: imports published weights.
//!
//! Evaluate the champion in its world:
//!
//! ```
//! use foveate::jobs::Evaluate;
//! use foveate::run::workers::Stop;
//! use foveate::{Player, WorldSpec};
//!
//! let champion = Player::load(None, &WorldSpec::named("car-racing"))?;
//! let short = Evaluate { episodes: 1, max_steps: Some(50), ..Evaluate::default() };
//! let report = short.run(&champion, &Stop::default())?;
//! assert_eq!((report.lengths[0], &*report.weights), (50, "car-racing champion"));
//! # Ok::<(), foveate::Error>(())
//! ```
//!
//! A program that uses models of MuJoCo, `mjcf:FILE`, calls [`compile_models`] first in its `main`: a model is compiled in a process
//! of its own.
//!
//! Register a world, an agent or a shift of your own once; it is then found by its name like those included:
//! [`Registry::register`](core::Registry::register).
//!
//! The crates below are re-exported: [`core`] has the contracts, [`envs`] and [`agents`] the included worlds
//! and agents, [`learn`] networks with gradients, [`evolve`] and [`training`] the learners, [`run`] files, threads and clocks, [`lab`] the
//! browser interface.

mod import;
pub mod jobs;
mod kept;
mod loaded;
mod player;
mod world;

pub use foveate_agents as agents;
pub use foveate_core as core;
pub use foveate_envs as envs;
pub use foveate_evolve as evolve;
pub use foveate_lab as lab;
pub use foveate_learn as learn;
pub use foveate_registry as registry;
pub use foveate_run as run;
pub use foveate_train as training;

pub use foveate_core::{Action, Agent, Env, Observation, Seed, Step};
pub use foveate_envs::registry::{EnvRequest, WorldDescriptor};
pub use foveate_registry::compiler::hook as compile_models;
pub use foveate_registry::{AGENTS, AgentDescriptor, PRESETS, Preset, SHIFTS, WORLDS, make};
pub use foveate_run::RunError as Error;
pub use foveate_run::trust::WorldSpec;
pub use foveate_run::workers::Stop;
pub use foveate_train::{LEARNERS, LearnerDescriptor};

pub use import::{ImportRequest, Imported, Spread, import};
pub(crate) use loaded::labels_with_options;
pub use loaded::{LoadedAgent, each_variant, labels};
pub use player::Player;
pub use world::World;

/// What a world and an agent of one's own are written with: `use foveate::simple::*`.
pub mod simple {
    pub use foveate_agents::AgentDescriptor;
    pub use foveate_agents::simple::SimplePolicy;
    pub use foveate_core::{Action, ActionSpace, EnvSpec, Observation, ObservationSpace, Rng};
    pub use foveate_envs::registry::WorldDescriptor;
    pub use foveate_envs::simple::SimpleEnv;
    pub use foveate_registry::{AGENTS, WORLDS};
}

/// The example of docs/rust.md, compiled and run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;
