//! Evolution strategies, one file per algorithm, behind [`foveate_core::Evolver`].
//!
//! * [`RankEs`]: small populations, rank weights, one constant step size.
//!
//! [`StrategyConfig`] names any of them together with its settings, [`make`] makes it, [`list`] says what there is.
//!
//! **Invariant:** a strategy knows genomes and fitness, never worlds, agents, files or clocks; its randomness comes
//! from the seed path of the generation alone.

pub mod rank_es;
mod registry;

pub use rank_es::{RankEs, RankEsConfig};
pub use registry::{Algorithm, Described, StrategyConfig, list, make};
