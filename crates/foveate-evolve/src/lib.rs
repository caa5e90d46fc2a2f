//! Evolution strategies, one file per algorithm, behind [`foveate_core::Evolver`].
//!
//! * [`RankEs`]: small populations, rank weights, one constant step size.
//!
//! **Invariant:** a strategy knows genomes and fitness, never worlds, agents, files or clocks; its randomness comes
//! from the seed path of the generation alone.

pub mod rank_es;

pub use rank_es::{RankEs, RankEsConfig};
