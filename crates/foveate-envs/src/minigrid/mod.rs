//! MiniGrid (Chevalier-Boisvert et al. 2023): small worlds of cells with keys, doors, walls and lava.
//!
//! [`MiniGrid`] reproduces the package's environments: the same layouts per seed (NumPy's generator), the same rules, the
//! same observations and pictures, byte for byte.
//!
//! * [`cell`]: what a cell holds, in the package's codes.
//! * [`layout`]: how each world is laid out from its random stream.
//! * [`sight`]: what the agent sees of it.
//! * [`tiles`]: the pictures.
//! * `edit.rs`: what lies where, for people, and changes of the state.

pub mod cell;
mod edit;
mod env;
mod expert;
pub mod layout;
mod request;
pub mod sight;
pub mod tiles;

pub use env::{ActionSet, MiniGrid, MiniGridConfig, Shows};
pub use request::DESCRIPTORS;
