//! Runs any Gymnasium environment as a world, in separate worker processes.
//!
//! [`Gym`] is an environment that is known to work. [`GymWorld`] is the [`Env`](foveate_core::Env) made from
//! it; copies of a world share the processes. A small Python program, embedded in this crate, hosts the
//! environment; it needs gymnasium and numpy and nothing else.
//!
//! * **Two channels between the processes.** The worker writes observations to a memory file that both sides
//!   have open. Requests and answers use a socket pair, which reports at once when a worker dies. Neither has
//!   a name in the file system, so nothing is left behind when a process is killed.
//! * **No worker outlives the program.** Each worker has a keeper, a process that runs no code of the
//!   environment. When either side ends, the keeper lets the environment close itself, ends all processes
//!   that the worker started, and removes the files they left. If keepers themselves are killed, the next
//!   start removes what they left.
//! * **An episode is determined by its seed and its actions.** A world whose worker died, hung or raised an
//!   exception gets a new worker, replays its episode up to the current step, and resumes; a copy of a world
//!   does the same. The results of the replay are compared with the original ones.
//!
//! **Invariant:** this is the only crate besides `foveate-run` that touches processes, sockets and the
//! environment variables that name Python; it depends on worlds, not on agents or training. [`OnnxAgent`] is an agent that such a
//! process answers for.

pub mod ant;
pub mod atari;
mod check;
mod doctor;
mod error;
mod find;
mod gym;
mod hello;
mod history;
mod hosted;
mod onnx;
pub mod pong;
mod process;
mod settings;
mod sweep;
pub mod take_cover;
mod world;

pub use check::{Checked, Finding, Verdict, check};
pub use doctor::{Doctor, Family, doctor};
pub use error::GymError;
pub use find::{Python, find_python, runs_in};
pub use gym::{Gym, Notice};
pub use hello::Hello;
pub use hosted::{Host, HostedHandle, HostedName, host, hosted};
pub use onnx::{ONNX_PROGRAM, OnnxAgent, OnnxModel};
pub use process::worker_cpu;
pub use settings::{OPTIONS, Program, Settings};
pub use world::GymWorld;

/// Prefix of the names of these worlds, as in `gym:CarRacing-v3`.
pub const PREFIX: &str = "gym:";
