//! The contracts of Foveate; everything else hangs off them.
//!
//! * [`Env`]: a world that can be reset, stepped, cloned and looked at.
//! * [`Policy`]: something that looks and acts. What it attended to, its [`Attention`], is part of every [`Decision`].
//! * [`Evolver`]: an evolution strategy behind `ask` and `tell`.
//! * [`Student`]: a policy whose last part learns by gradients from the [`Demonstration`]s of an expert.
//! * [`Learner`]: says what to run next, and learns from what came back.
//! * [`Executor`]: runs [`Work`] and gives back [`Experience`]: threads, a cluster, a GPU.
//! * [`Registry`]: worlds, agents, learners and shifts by name, those of other crates included.
//! * [`near`]: what a name that is nearly right may stand for.
//! * [`statistics`]: what lists of returns come to, and whether two of them differ.
//! * [`Threads`]: how many threads may share one computation, and who runs them.
//! * [`Seed`]: randomness as a path, so that it depends on *which* job runs and never on who runs it.
//!
//! **Invariant:** no file, socket, thread, clock or environment variable is touched here.

mod action;
mod attention;
mod env;
pub mod episode;
mod evolve;
mod executor;
mod image;
mod imitate;
mod learner;
pub mod near;
mod observation;
mod policy;
mod registry;
mod report;
mod seed;
pub mod statistics;
mod tensor;
mod threads;
mod transitions;

pub use action::{Action, ActionBuf, ActionSpace};
pub use attention::{Attention, PatchGrid, Selected, Tokens, rank_by_importance};
pub use env::{Env, EnvError, EnvSpec, Step};
pub use evolve::{EvolveError, Evolver, Population, Progress};
pub use executor::{
    AgentSetup, EpisodeResult, EvaluateError, Executor, Experience, FailedJob, Order, OrderError, Purpose,
    Record, Recording, RolloutJob, SerialExecutor, Setup, WORK_VERSION, Work, WorldSetup, run_episode,
    set_weights,
};
pub use image::{Image, ImageBuf};
pub use imitate::{Demonstration, DemonstrationPlan, Piece, Student};
pub use learner::{Episodes, LearnError, Learner};
pub use observation::{
    DEPTH, Grid, GridBuf, IMAGE, Observation, ObservationBuf, ObservationSpace, Parts, PixelShape, Pixels,
    PixelsBuf, SENSORS,
};
pub use policy::{
    ActContext, ActMode, Agent, AgentBatch, Decision, Policy, PolicyAgent, PolicyError, TensorShape, Turn,
    episode_seed,
};
pub use registry::{Descriptor, Registry, RegistryError};
pub use report::{Fact, Labels};
pub use seed::{Rng, Seed};
pub use tensor::{StateDict, StateError, StateReader, Tensor, TensorData};
pub use threads::{Parallel, Threads};
pub use transitions::{Transition, TransitionRecorder, Unroll};
