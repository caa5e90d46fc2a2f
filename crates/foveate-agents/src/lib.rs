//! Agents, one file per paper.
//!
//! * [`attention_agent`]: AttentionAgent (Tang, Nguyen and Ha 2020): attention votes for a few patches, an LSTM acts on
//!   what little it is told about them.
//! * [`apprentice`]: its LSTM, learning by gradients from what an expert would have done.
//! * [`registry`]: agents by name, behind [`foveate_core::Agent`].
//!
//! The parts that agents share: [`features`] of a patch, the [`lstm`] controller, the [`layout`] of published weights, and
//! the random directions of an [`ensemble`].
//!
//! **Invariant:** no clock, thread, file or environment variable is touched here, and `act` allocates nothing.

pub mod apprentice;
pub mod attention_agent;
pub mod config;
pub mod ensemble;
pub mod features;
pub mod layout;
pub mod lstm;
mod params;
pub mod registry;

pub use apprentice::LstmApprentice;
pub use attention_agent::{AttentionAgent, AttentionMemory};
pub use config::AttentionAgentConfig;
pub use ensemble::{Ensemble, Lengths};
pub use foveate_kernels::Level;
pub use layout::Layout;
