//! The contracts of Foveate. All other crates depend on this one.
//!
//! * [`Env`]: a world that can be reset, stepped, cloned and rendered.
//! * [`GridView`] and [`StateEdit`]: what lies in the cells of a grid world, and changes of its state.
//! * [`Policy`]: maps observations to actions. What it attended to, its [`Attention`], is part of every
//!   [`Decision`].
//! * [`Evolver`]: an evolution strategy with an `ask` and `tell` interface.
//! * [`Model`]: what learners by gradients need of an agent: [`Outputs`] of observations with their gradient, a [`Student`] of an
//!   expert's [`Demonstration`]s, gradients through a world; [`GradientParts`], added in a fixed order.
//! * [`Learner`]: requests work, and learns from its results.
//! * [`Executor`]: runs [`Work`] and returns [`Experience`]: threads, a cluster, a GPU.
//! * [`Registry`]: worlds, agents, learners and shifts by name, including those of other crates.
//! * [`hint`]: settings and tasks in messages, which every front end shows in its own words.
//! * [`forms`]: what each setting takes, in words.
//! * [`near`]: suggestions for misspelt names.
//! * [`statistics`]: summaries of lists of returns, and tests of whether two lists differ.
//! * [`Threads`]: how many threads may share one computation, and what runs them.
//! * [`Seed`]: randomness as a path: it depends on *which* job runs, never on where it runs.
//!
//! **Invariant:** this crate uses no file, socket, thread, clock or environment variable.

mod action;
mod attention;
mod derivatives;
mod env;
pub mod episode;
mod evolve;
mod executor;
pub mod forms;
mod grid_view;
pub mod hint;
mod image;
mod imitate;
mod learner;
mod model;
pub mod near;
mod observation;
mod one_line;
mod opened;
mod packed;
mod policy;
mod registry;
mod report;
mod seed;
mod sparse_rows;
pub mod statistics;
mod tensor;
pub mod tensor_file;
mod threads;
mod transitions;

pub use action::{Action, ActionBuf, ActionSpace, as_probabilities};
pub use attention::{Attention, PatchGrid, Selected, Tokens, rank_by_importance};
pub use derivatives::{
    DifferentiatedEpisode, DifferentiatingActor, StepDerivatives, StepEnds, ThroughWorld, Windows,
};
pub use env::{Env, EnvError, EnvSpec, Step};
pub use evolve::{EvolveError, Evolver, Population, Progress};
pub use executor::{
    AgentSetup, EpisodeResult, EvaluateError, Executor, Experience, FailedJob, Order, OrderError, Purpose,
    Record, Recording, RolloutJob, SerialExecutor, Setup, WORK_VERSION, Work, WorldSetup, run_episode,
    set_weights,
};
pub use grid_view::{CellPlace, GridObject, GridView, StateEdit, ViewCell};
pub use image::{Image, ImageBuf};
pub use imitate::{Demonstration, DemonstrationPlan, GazePoint, Piece, Pieces, Student, StudyInputs};
pub use learner::{Episodes, LearnError, Learner, StopRequest};
pub use model::{
    ActionDistribution, Distributed, GradientParts, LastStep, LossSums, MOST_AT_ONCE, Model, OutputKind,
    Outputs, PartScratch, Predictions, Taught, add_gradients, add_learnt, lacking,
};
pub use observation::{
    DEPTH, Grid, GridBuf, IMAGE, Observation, ObservationBuf, ObservationSpace, PRESENT, Parts, PixelShape,
    Pixels, PixelsBuf, SENSORS,
};
pub use one_line::one_line;
pub use opened::Opened;
pub use packed::{PackedError, PackedPictures};
pub use policy::{
    ActContext, ActMode, Agent, AgentBatch, Decision, Policy, PolicyAgent, PolicyError, TensorShape, Turn,
    episode_seed,
};
pub use registry::{Descriptor, Registry, RegistryError};
pub use report::{Fact, Labels};
pub use seed::{Rng, Seed};
pub use sparse_rows::SparseRows;
pub use tensor::{StateDict, StateError, StateReader, Tensor, TensorData};
pub use threads::{Parallel, Threads};
pub use transitions::{Transition, TransitionRecorder, Unroll};
