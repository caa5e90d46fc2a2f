//! Tasks of the DeepMind Control suite: cheetah-run, walker-walk, cartpole-swingup, ball-in-cup-catch, reacher-easy and
//! finger-spin.
//!
//! Starts, observations, rewards and control steps are those of dm_control 1.0.50 (Tassa et al., DeepMind Control Suite, 2018).
//! Physics is MuJoCo's own library, opened at run time by `foveate-mujoco`; the models are dm_control's, see `models/NOTICE`.
//!
//! * [`TASKS`]: all tasks; one file per task in `tasks/`.
//! * [`Control`]: a task as an [`Env`](foveate_core::Env), with numbers or pictures to see.
//! * [`ModelWorld`]: a user's own model as an `Env`, with formulas of its sensors for rewards and ends of episodes.
//! * [`Quadruped`]: a quadruped of this project's own that walks past walls, after the paper of implicit attention for pixels.
//! * [`DistractionConfig`]: what is changed in the pictures.
//!
//! **Invariant:** a task sees its simulation and its random stream, nothing else; no file is read here, the library and
//! pictures come from the caller.

#![allow(clippy::manual_midpoint, reason = "formulas keep the original's order of operations")]
#![allow(clippy::unnecessary_wraps, reason = "the functions of all tasks have one type")]

mod distractions;
mod drawing;
mod env;
mod expression;
mod eye;
mod lost;
mod model_world;
mod quadruped;
mod random;
mod rewards;
mod shown;
mod task;
mod tasks;

pub use distractions::{BackgroundConfig, Clip, DistractionConfig, Source, Strength, catalogue};
pub use env::{Control, ControlConfig, ControlError};
pub use expression::{Expression, ExpressionError};
pub use model_world::{ModelConfig, ModelError, ModelWorld};
pub use quadruped::{Quadruped, QuadrupedConfig, QuadrupedError};
pub use random::RandomState;
pub use shown::Shown;
pub use task::{TASKS, Task, task};
