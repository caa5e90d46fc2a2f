//! Things that look and act.

use crate::near::hint;
use crate::{Attention, Observation, Rng, Seed, Threads};

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

    /// Looks at `observation` and decides. Whatever is drawn for the decision is drawn from `context`, or from a generator
    /// in `memory` that [`Policy::reset`] seeded, so that an episode depends on its seed alone.
    ///
    /// # Errors
    /// When the observation has not the shape that the policy was built for.
    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut Self::Memory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError>;

    /// Decides for several episodes at once: turn `i` belongs to the episode of `memories[turns[i].episode]`. Calls
    /// `decided` with `i` and the decision, in the order of the turns.
    ///
    /// One decision after the other unless a policy overrides it; then decisions must be the same to the bit.
    ///
    /// # Errors
    /// The first that [`Policy::act`] gives; decisions before it were handed over.
    ///
    /// # Panics
    /// When a turn belongs to no memory.
    fn act_batch(
        &self,
        turns: &mut [Turn<'_>],
        memories: &mut [Self::Memory],
        decided: &mut dyn FnMut(usize, Decision<'_>),
    ) -> Result<(), PolicyError> {
        for (i, turn) in turns.iter_mut().enumerate() {
            decided(i, self.act(turn.observation, &mut memories[turn.episode], turn.context)?);
        }
        Ok(())
    }

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

    /// How many patches of its picture the policy tells its controller about, when that can be lowered; `None` for a
    /// policy that cannot be shown fewer.
    fn patches(&self) -> Option<usize> {
        None
    }

    /// From the next decision on, tells the controller about the first `k` of the patches that the policy selects only; of
    /// the others it is told a neutral value, as that they are in the middle of the picture. Parameters stay as they are;
    /// [`Policy::patches`] or more undoes it.
    ///
    /// # Errors
    /// [`PolicyError::NoPatches`] for a policy that cannot be shown fewer.
    fn limit_patches(&mut self, k: usize) -> Result<(), PolicyError> {
        let _ = k;
        Err(PolicyError::NoPatches)
    }

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

/// An action, and what the policy attended to when it chose it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision<'a> {
    /// The action, in the world's own units; of a world that takes choices, a score for each, of which the largest is
    /// chosen, see [`ActionSpace::choose`](crate::ActionSpace::choose).
    pub action: &'a [f64],
    /// What the policy attended to; `None` for a policy without attention.
    pub attention: Option<Attention<'a>>,
    /// `[choices]`: unnormalised log-probabilities or action values, of a policy that has them; learners need them.
    pub logits: Option<&'a [f32]>,
    /// The return that the policy expects from here on, if it estimates one.
    pub value: Option<f32>,
}

impl<'a> Decision<'a> {
    /// An action, and nothing beside.
    pub const fn new(action: &'a [f64]) -> Self {
        Decision { action, attention: None, logits: None, value: None }
    }

    /// The same, with what was attended to.
    #[must_use]
    pub const fn with_attention(self, attention: Attention<'a>) -> Self {
        Decision { attention: Some(attention), ..self }
    }
}

/// Whether a policy that could act at random does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ActMode {
    /// To learn: a policy that samples its actions, or takes a random one now and then, does.
    Explore,
    /// To be judged, watched or explained: the action that the policy holds for the best. A policy whose very rule is to
    /// act at random still does; one without any randomness does the same in both modes.
    #[default]
    Greedy,
}

/// What a decision may depend on besides observation, memory and parameters.
///
/// One context serves one episode from its start to its end.
#[derive(Debug, Clone)]
pub struct ActContext {
    /// Random numbers of this episode, for whatever the policy draws.
    pub rng: Rng,
    /// Whether to explore.
    pub mode: ActMode,
}

impl ActContext {
    /// The context of the episode with this seed, see [`episode_seed`].
    pub fn new(episode: Seed, mode: ActMode) -> Self {
        ActContext { rng: episode.child("act", 0).rng(), mode }
    }
}

impl Default for ActContext {
    /// A decision outside of any episode: greedy, with the generator of seed 0.
    fn default() -> Self {
        ActContext::new(Seed::root(0), ActMode::Greedy)
    }
}

/// A decision that is asked for, one of several at once.
#[derive(Debug)]
pub struct Turn<'t> {
    /// Which of the batch's episodes.
    pub episode: usize,
    /// What is seen in it.
    pub observation: Observation<'t>,
    /// Its context.
    pub context: &'t mut ActContext,
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
    fn act(
        &mut self,
        observation: Observation<'_>,
        context: &mut ActContext,
    ) -> Result<Decision<'_>, PolicyError>;

    /// This agent in `episodes` episodes at once, each with a memory of its own that begins as this agent's is now.
    ///
    /// Copies that decide one after the other unless an agent overrides it; decisions are the same to the bit.
    fn batch(&self, episodes: usize) -> Box<dyn AgentBatch> {
        Box::new(Copies { agents: (0..episodes).map(|_| self.boxed_clone()).collect() })
    }

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

    /// How many patches the controller is told about, see [`Policy::patches`].
    fn patches(&self) -> Option<usize> {
        None
    }

    /// Tells the controller about the first `k` patches only, see [`Policy::limit_patches`].
    ///
    /// # Errors
    /// [`PolicyError::NoPatches`] for an agent that cannot be shown fewer.
    fn limit_patches(&mut self, k: usize) -> Result<(), PolicyError> {
        let _ = k;
        Err(PolicyError::NoPatches)
    }

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

    fn act(
        &mut self,
        observation: Observation<'_>,
        context: &mut ActContext,
    ) -> Result<Decision<'_>, PolicyError> {
        self.policy.act(observation, &mut self.memory, context)
    }

    fn batch(&self, episodes: usize) -> Box<dyn AgentBatch> {
        Box::new(PolicyBatch { policy: self.policy.clone(), memories: vec![self.memory.clone(); episodes] })
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

    fn patches(&self) -> Option<usize> {
        self.policy.patches()
    }

    fn limit_patches(&mut self, k: usize) -> Result<(), PolicyError> {
        self.policy.limit_patches(k)
    }

    fn set_threads(&mut self, threads: &Threads) {
        self.policy.set_threads(threads);
        self.memory = self.policy.memory();
    }

    fn boxed_clone(&self) -> Box<dyn Agent> {
        Box::new(self.clone())
    }
}

/// One agent in several episodes at once; get one from [`Agent::batch`].
pub trait AgentBatch: Send {
    /// How many episodes.
    fn episodes(&self) -> usize;

    /// Forgets what it remembers of one episode; the one that begins there has this seed, see [`episode_seed`].
    ///
    /// # Panics
    /// When there is no such episode.
    fn begin_episode(&mut self, episode: usize, seed: Seed);

    /// Decides in several of the episodes; see [`Policy::act_batch`].
    ///
    /// # Errors
    /// As [`Policy::act_batch`].
    ///
    /// # Panics
    /// When a turn belongs to no episode.
    fn act(
        &mut self,
        turns: &mut [Turn<'_>],
        decided: &mut dyn FnMut(usize, Decision<'_>),
    ) -> Result<(), PolicyError>;

    /// Replaces all parameters, for all episodes; see [`Agent::set_params`].
    ///
    /// # Errors
    /// As [`Agent::set_params`].
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;
}

/// Copies of an agent, one for each episode.
struct Copies {
    agents: Vec<Box<dyn Agent>>,
}

impl AgentBatch for Copies {
    fn episodes(&self) -> usize {
        self.agents.len()
    }

    fn begin_episode(&mut self, episode: usize, seed: Seed) {
        self.agents[episode].begin_episode(seed);
    }

    fn act(
        &mut self,
        turns: &mut [Turn<'_>],
        decided: &mut dyn FnMut(usize, Decision<'_>),
    ) -> Result<(), PolicyError> {
        for (i, turn) in turns.iter_mut().enumerate() {
            decided(i, self.agents[turn.episode].act(turn.observation, turn.context)?);
        }
        Ok(())
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.agents.iter_mut().try_for_each(|agent| agent.set_params(flat))
    }
}

/// One policy with a memory for each episode.
struct PolicyBatch<P: Policy> {
    policy: P,
    memories: Vec<P::Memory>,
}

impl<P: Policy> AgentBatch for PolicyBatch<P> {
    fn episodes(&self) -> usize {
        self.memories.len()
    }

    fn begin_episode(&mut self, episode: usize, seed: Seed) {
        self.policy.reset(&mut self.memories[episode], seed);
    }

    fn act(
        &mut self,
        turns: &mut [Turn<'_>],
        decided: &mut dyn FnMut(usize, Decision<'_>),
    ) -> Result<(), PolicyError> {
        self.policy.act_batch(turns, &mut self.memories, decided)
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.policy.set_params(flat)
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
    /// The policy cannot be shown fewer patches.
    #[error("this agent selects no patches, so it cannot be told about fewer")]
    NoPatches,
    /// Attention whose parts do not fit together.
    #[error("an attention does not fit together: {why}; the agent that made it has a mistake")]
    BadAttention {
        /// What does not fit, with numbers.
        why: String,
    },
    /// What the policy gives cannot be made a choice.
    #[error("{why}")]
    Scores {
        /// What is wrong, with numbers, and what to do.
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
    #[error("no agent is called {given:?};{} choose from: {known}", hint(given, known))]
    UnknownAgent {
        /// What was asked for.
        given: String,
        /// What there is.
        known: String,
    },
}
