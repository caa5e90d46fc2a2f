//! Evolution strategies, one file per algorithm, behind [`foveate_core::Evolver`].
//!
//! * [`RankEs`]: small populations, rank weights, one constant step size.
//! * [`Snes`]: rank weights and a step size per parameter.
//! * [`OpenAiEs`]: centred ranks and Adam.
//! * [`Pgpe`]: symmetric pairs, `ClipUp` and a step size per parameter.
//! * [`CmaEs`]: adapts a full covariance matrix.
//! * [`SepCmaEs`]: the same with a diagonal covariance matrix.
//! * [`SimpleGa`]: truncation selection and mutation.
//!
//! [`StrategyConfig`] names a strategy together with its settings, [`make`] builds it, [`STRATEGIES`] lists
//! all. Any strategy can be kept within [`Bounds`] and restarted when it stagnates ([`Restarts`]).
//!
//! **Invariant:** a strategy knows genomes and fitness, never worlds, agents, files or clocks; its randomness
//! derives only from the seed path of the generation.

mod base;
pub mod bounds;
mod check;
pub mod cma_es;
pub mod openai_es;
pub mod optimizer;
pub mod pgpe;
pub mod rank_es;
mod registry;
pub mod restarts;
pub mod sep_cma_es;
mod shaping;
pub mod simple_ga;
pub mod snes;

pub use base::first_out_of_range;
pub use bounds::{Bounds, Repair};
pub use cma_es::{CmaEs, CmaEsConfig, Form};
pub use openai_es::{OpenAiEs, OpenAiEsConfig};
pub use optimizer::{Optimizer, OptimizerKind};
pub use pgpe::{Pgpe, PgpeConfig};
pub use rank_es::{RankEs, RankEsConfig};
pub use registry::{Algorithm, STRATEGIES, StrategyConfig, StrategyInfo, make};
pub use restarts::Restarts;
pub use sep_cma_es::{SepCmaEs, SepCmaEsConfig};
pub use shaping::Shaping;
pub use simple_ga::{SimpleGa, SimpleGaConfig};
pub use snes::{Snes, SnesConfig};
