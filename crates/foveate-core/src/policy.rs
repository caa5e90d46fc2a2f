//! Things that look and act.

use crate::near::hint;
use crate::{Attention, Observation, Seed, Threads};

/// Something that looks and acts. Where it looked is part of the result, not a debug hook.
///
/// State lives in the argument `memory`, so one policy serves a thousand worlds and a checkpoint is a plain value.
/// `memory` also holds the scratch space and the outputs of the last decision: `act` allocates nothing.
pub trait Policy: Send + Sync {
    /// What the policy carries from step to step, with its scratch space.
    type Memory: Clone + Send;

    /// Memory as it is at the start of an episode.
    fn memory(&self) -> Self::Memory;

    /// Forgets the episode, keeping the scratch space. The one that begins has this seed, for a policy that draws numbers;
    /// see [`episode_seed`].
    fn reset(&self, memory: &mut Self::Memory, episode: Seed);

    /// Looks at `observation` and decides.
    ///
    /// # Errors
    /// When the observation has not the shape that the policy was built for.
    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut Self::Memory,
    ) -> Result<Decision<'m>, PolicyError>;

    /// What the last part of the policy was told in the last decision, see [`Student`](crate::Student); empty for
    /// a policy that has no such part.
    fn inputs<'m>(&self, memory: &'m Self::Memory) -> &'m [f32] {
        let _ = memory;
        &[]
    }

    /// Name and shape of every parameter tensor, in the order of the flat vector.
    fn tensors(&self) -> Vec<TensorShape>;

    /// The parameters as one flat vector, in the order of [`Policy::tensors`].
    fn params(&self) -> Vec<f32>;

    /// Replaces all parameters, without allocating.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite.
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;

    /// Lets `threads` share the work on one picture; one thread at first. Decisions are the same to the bit. Holds for
    /// memory that is made afterwards, and does nothing where a decision has no work worth sharing.
    fn set_threads(&mut self, threads: &Threads) {
        let _ = threads;
    }
}

/// The seed that an agent gets for an episode: of the world's stream that began with `seed`, number `number` from 0. An
/// episode whose world was reset with a seed of its own is number 0 of that stream.
///
/// It depends on the episode alone, so an episode can be played again by itself, by whoever and in whatever order.
pub const fn episode_seed(seed: u64, number: usize) -> Seed {
    Seed::root(seed).child("agent", number as u64)
}

/// A named parameter tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorShape {
    /// Its name, as in weight files: `query.weight`.
    pub name: String,
    /// Its dimensions, slowest first.
    pub shape: Vec<usize>,
}

impl TensorShape {
    /// How many numbers it holds.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An action and what the policy attended to when it chose it.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// The action, in the world's own units.
    pub action: &'a [f64],
    /// What the policy attended to; `None` for a policy without attention.
    pub attention: Option<Attention<'a>>,
}

/// A policy in its seat: the policy with its memory, behind one object-safe face.
///
/// This is what runs: workers clone it, give it a genome with [`Agent::set_params`], and drive. Get one from a
/// [`Policy`] with [`PolicyAgent::new`].
pub trait Agent: Send {
    /// Forgets the last episode. The one that begins has this seed, see [`episode_seed`].
    fn begin_episode(&mut self, episode: Seed);

    /// Looks and decides; see [`Policy::act`].
    ///
    /// # Errors
    /// When the observation has not the shape that the policy was built for.
    fn act(&mut self, observation: Observation<'_>) -> Result<Decision<'_>, PolicyError>;

    /// What the last part of the policy was told in the last decision, see [`Policy::inputs`].
    fn inputs(&self) -> &[f32] {
        &[]
    }

    /// Name and shape of every parameter tensor, in the order of the flat vector.
    fn tensors(&self) -> Vec<TensorShape>;

    /// The parameters as one flat vector.
    fn params(&self) -> Vec<f32>;

    /// Replaces all parameters, without allocating.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite.
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;

    /// Lets `threads` share the work on one picture, see [`Policy::set_threads`]; forgets the episode.
    fn set_threads(&mut self, threads: &Threads);

    /// A copy with its own memory.
    fn boxed_clone(&self) -> Box<dyn Agent>;
}

/// A [`Policy`] together with its memory.
#[derive(Debug, Clone)]
pub struct PolicyAgent<P: Policy> {
    /// The policy.
    pub policy: P,
    /// What it remembers.
    pub memory: P::Memory,
}

impl<P: Policy> PolicyAgent<P> {
    /// Seats `policy` with fresh memory.
    pub fn new(policy: P) -> Self {
        let memory = policy.memory();
        PolicyAgent { policy, memory }
    }
}

impl<P: Policy + Clone + 'static> Agent for PolicyAgent<P> {
    fn begin_episode(&mut self, episode: Seed) {
        self.policy.reset(&mut self.memory, episode);
    }

    fn act(&mut self, observation: Observation<'_>) -> Result<Decision<'_>, PolicyError> {
        self.policy.act(observation, &mut self.memory)
    }

    fn inputs(&self) -> &[f32] {
        self.policy.inputs(&self.memory)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.policy.tensors()
    }

    fn params(&self) -> Vec<f32> {
        self.policy.params()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.policy.set_params(flat)
    }

    fn set_threads(&mut self, threads: &Threads) {
        self.policy.set_threads(threads);
        self.memory = self.policy.memory();
    }

    fn boxed_clone(&self) -> Box<dyn Agent> {
        Box::new(self.clone())
    }
}

/// What can go wrong with a policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The patch does not fit the picture.
    #[error("a patch of {patch} px does not fit a picture of {width}x{height}; lower patch or raise image")]
    PatchTooLarge {
        /// Side of the patch in pixels.
        patch: usize,
        /// Width of the picture.
        width: usize,
        /// Height of the picture.
        height: usize,
    },
    /// More patches asked for than there are.
    #[error("top_k = {wanted} but the picture holds only {available} patches; lower top_k, patch or stride")]
    TooFewPatches {
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        available: usize,
    },
    /// Attention whose parts do not fit together.
    #[error("an attention does not fit together: {why}; the agent that made it has a mistake")]
    BadAttention {
        /// What does not fit, with numbers.
        why: String,
    },
    /// A configuration that makes no sense.
    #[error("{why}")]
    BadConfig {
        /// What is wrong and what to do instead.
        why: String,
    },
    /// The wrong number of parameters.
    #[error("{given} parameters were given, this agent has {wanted} ({tensors})")]
    ParamCount {
        /// Parameters the agent has.
        wanted: usize,
        /// Parameters given.
        given: usize,
        /// Count per tensor, in words.
        tensors: String,
    },
    /// A parameter is NaN or infinite.
    #[error(
        "parameter {index} (in {tensor}) is {value}; weights must be finite, so this file or genome is broken"
    )]
    ParamNotFinite {
        /// Position in the flat vector.
        index: usize,
        /// The tensor it belongs to.
        tensor: String,
        /// The value.
        value: f32,
    },
    /// The observation has another shape than the policy was built for.
    #[error("the agent was built for {wanted}, the world shows {given}")]
    ObservationShape {
        /// What it was built for.
        wanted: String,
        /// What it was given.
        given: String,
    },
    /// A number in the observation is NaN or infinite.
    #[error("number {index} of the sensors is {value}; the world is broken, or its sensors need cleaning")]
    SensorNotFinite {
        /// Which of the sensors' numbers.
        index: usize,
        /// The number.
        value: f32,
    },
    /// Patches cannot be told apart by their votes.
    #[error("the patches' votes failed: {why}")]
    Votes {
        /// What is wrong, with numbers, and what to do.
        why: String,
    },
    /// A piece of a demonstration could not be studied.
    #[error("piece {piece} of the demonstrations could not be studied: {why}")]
    Study {
        /// Which of the pieces.
        piece: usize,
        /// What went wrong.
        why: String,
    },
    /// No agent of this name.
    #[error("no agent is called {given:?};{} `foveate list agents` shows them: {known}", hint(given, known))]
    UnknownAgent {
        /// What was asked for.
        given: String,
        /// What there is.
        known: String,
    },
}
