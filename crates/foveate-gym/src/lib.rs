//! Any Gymnasium environment as a world, in worker processes of its own.
//!
//! [`Gym`] is an environment that was found to work; [`GymWorld`] is the [`Env`](foveate_core::Env) made of it, and its
//! copies share the processes. A small Python program, part of this one, hosts the environment: it needs gymnasium and
//! numpy and nothing else.
//!
//! * **Two ways between the processes.** Observations are written to a memory file that both sides have open; requests and
//!   answers go through a socket pair, whose end tells at once when a worker dies. Nothing of it has a name in the file
//!   system, so nothing can be left behind, whoever is killed.
//! * **Nothing outlives us.** Each worker has a keeper, a process that runs nothing of the environment. When either side is
//!   gone it lets the environment close itself, ends whatever the worker started, and removes what they left. What is left
//!   when keepers are killed is removed by the next start.
//! * **An episode is its seed and its actions.** A world whose worker died, hung or raised gets a new worker, plays its
//!   episode again up to where it was, and goes on; a copy of a world does the same. What comes out the second time is
//!   compared with the first.
//!
//! **Invariant:** the only crate besides `foveate-run` that touches processes, sockets and the environment variables that
//! name Python; it knows worlds and nothing of agents or training.

mod check;
mod doctor;
mod error;
mod find;
mod gym;
mod hello;
mod history;
mod process;
mod settings;
mod sweep;
pub mod take_cover;
mod world;

pub use check::{Checked, Finding, Verdict, check};
pub use doctor::{Doctor, Family, doctor};
pub use error::GymError;
pub use find::{Python, find_python};
pub use gym::{Gym, Notice};
pub use hello::Hello;
pub use process::worker_cpu;
pub use settings::{OPTIONS, Program, Settings};
pub use world::GymWorld;

/// What the names of these worlds begin with: `gym:CarRacing-v3`.
pub const PREFIX: &str = "gym:";
