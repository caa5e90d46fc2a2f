//! Agents, one file per paper.
//!
//! * [`attention_agent`]: AttentionAgent (Tang, Nguyen and Ha 2020): attention votes for a few patches, an LSTM acts on
//!   their features.
//! * [`implicit_attention`]: IAP (Choromanski et al. 2021): votes in linear time, patches down to one pixel, any controller.
//! * [`attention_neuron`]: AttentionNeuron (Tang and Ha 2021): a small network for every sensor, whose order does not matter.
//! * [`relational`]: networks of nodes that attend to each other (Zambaldi et al. 2019): an [agent](relational::agent) for grid
//!   worlds and a [classifier](relational::classifier) of digits.
//! * [`s3ta`]: S3TA (Mott et al. 2019): four heads ask the picture's cells for what the agent's state wants to know.
//! * [`actor_critic`]: a plain network that draws its actions and estimates values, for policy gradients.
//! * [`student`]: the gradients of its LSTM, for learning from an expert.
//! * [`controller_agent`]: a plain controller on numbers, for worlds without a picture.
//! * [`random_actions`]: uniformly random actions, as a baseline.
//! * [`registry`]: agents by name, behind [`foveate_core::Agent`]; [`descriptor`]: what is said of one.
//!
//! Shared parts: the [`bottleneck`] with its [`voting`], the [`ensemble`]s of random features, the [`features`] of a patch,
//! [`controller`]s such as the [`lstm`], the [`layout`] of published weights, and the forms of agents in other programs: [`onnx`], [`torch`].
//!
//! **Invariant:** no clock, thread, file or environment variable is used here, and `act` does not allocate.

pub mod actor_critic;
pub mod attention_agent;
pub mod attention_neuron;
pub mod bottleneck;
pub mod config;
pub mod controller;
pub mod controller_agent;
pub mod descriptor;
pub mod ensemble;
pub mod features;
mod fit;
pub mod gaze_student;
pub mod implicit_attention;
pub mod layout;
pub mod lstm;
pub mod onnx;
pub mod params;
mod probabilities;
pub mod random_actions;
pub mod registry;
pub mod relational;
pub mod s3ta;
pub mod simple;
pub mod stored_agent;
pub mod student;
pub mod torch;
pub mod voting;

pub use attention_agent::{AttentionAgent, AttentionAgentConfig, AttentionMemory};
pub use controller_agent::{ControllerAgent, ControllerAgentConfig};
pub use descriptor::{AgentConfig, AgentDescriptor, Sees};
pub use ensemble::{Ensemble, Lengths};
pub use foveate_kernels::Level;
pub use gaze_student::GazeStudent;
pub use implicit_attention::ImplicitAttention;
pub use layout::Layout;
pub use random_actions::{RandomActions, RandomActionsConfig};
pub use registry::AGENTS;
pub use student::LstmStudent;
