//! Policies and agents.

use std::sync::Arc;

use crate::hint::Task;
use crate::near::hint;
use crate::{Attention, Observation, Opened, Rng, Seed, StudyInputs, Threads};

/// A policy: it maps observations to decisions. What it attended to is part of every decision.
///
/// All state is in the argument `memory`, so one policy can act in many worlds at once and a checkpoint is a
/// plain value. `memory` also holds the scratch space and the outputs of the last decision: from its second call
/// on `act` allocates nothing.
pub trait Policy: Send + Sync {
    /// State that is kept from step to step, and scratch space.
    type Memory: Clone + Send;

    /// Memory as it is at the start of an episode.
    fn memory(&self) -> Self::Memory;

    /// Starts an episode: clears the state and keeps the scratch space. `episode` is its seed, for a policy
    /// that draws random numbers; see [`episode_seed`].
    fn reset(&self, memory: &mut Self::Memory, episode: Seed);

    /// Decides on the action for `observation`. Random numbers come from `context`, or from a generator in
    /// `memory` that [`Policy::reset`] seeded, so that an episode depends on its seed alone.
    ///
    /// # Errors
    /// [`PolicyError::ObservationShape`] when the policy was built for another observation space.
    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut Self::Memory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError>;

    /// Decides in several episodes at once: turn `i` belongs to the episode of `memories[turns[i].episode]`.
    /// Calls `decided` with `i` and the decision, in the order of the turns.
    ///
    /// The default calls [`Policy::act`] for each turn. A policy that overrides it must return bit-identical
    /// decisions.
    ///
    /// # Errors
    /// The first error of [`Policy::act`]; `decided` was called for the turns before it.
    ///
    /// # Panics
    /// When `turn.episode` is out of range.
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

    /// Begins a decision on `observation` and stops at the attention: fills `opened`, and returns whether the policy can do
    /// this. [`Policy::resume`] ends the decision. Both together are [`Policy::act`]: the same action and memory, to the bit.
    ///
    /// # Errors
    /// Those of [`Policy::act`].
    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut Self::Memory,
        context: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        let _ = (observation, memory, context, opened);
        Ok(false)
    }

    /// Ends a decision that [`Policy::open`] began, with what `opened` holds: weights and values of that decision, or others
    /// in their place. Everything else comes from `memory`.
    ///
    /// # Errors
    /// [`PolicyError::BadAttention`] when `opened` does not fit the policy, or the policy cannot be opened.
    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut Self::Memory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let _ = (opened, memory, context);
        Err(PolicyError::BadAttention { why: "this policy cannot be opened at its attention".into() })
    }

    /// Takes in `observation` in a step in which another acts, such as an expert. Afterwards `memory` is as after
    /// [`Policy::act`], and [`Policy::study_inputs`] are of this observation.
    ///
    /// The default decides and drops the decision. A policy that remembers nothing from step to step may do less.
    ///
    /// # Errors
    /// Those of [`Policy::act`].
    fn observe(
        &self,
        observation: Observation<'_>,
        memory: &mut Self::Memory,
        context: &mut ActContext,
    ) -> Result<(), PolicyError> {
        self.act(observation, memory, context).map(drop)
    }

    /// Says that `action`, as in [`Decision::action`], was done after the last decision: its own, or another where an expert
    /// acted in its place or something pushed. A policy that sees its own last action then sees this one. By default nothing
    /// happens.
    fn acted(&self, action: &[f64], memory: &mut Self::Memory) {
        let _ = (action, memory);
    }

    /// Controller inputs of the last decision; empty for a policy without a controller of its own.
    fn inputs<'m>(&self, memory: &'m Self::Memory) -> &'m [f32] {
        let _ = memory;
        &[]
    }

    /// Appends the recurrent state to `state`, for learners that start in the middle of an episode, see
    /// [`Outputs::memory_len`](crate::Outputs::memory_len). The default, of a policy whose learners need none, appends
    /// nothing.
    fn recurrent_state(&self, memory: &Self::Memory, state: &mut Vec<f32>) {
        let _ = (memory, state);
    }

    /// What a [`Student`](crate::Student) of this policy learns from, of the last decision: by default
    /// [`Policy::inputs`].
    ///
    /// # Errors
    /// When the student cannot learn from this observation.
    fn study_inputs<'m>(&self, memory: &'m Self::Memory) -> Result<StudyInputs<'m>, PolicyError> {
        Ok(StudyInputs { numbers: self.inputs(memory), picture: &[] })
    }

    /// Name and shape of every parameter tensor, in the order of the flat vector.
    fn tensors(&self) -> Vec<TensorShape>;

    /// The parameters as one flat vector, in the order of [`Policy::tensors`].
    fn params(&self) -> Vec<f32>;

    /// Replaces all parameters. Does not allocate.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite.
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;

    /// The number of patches that the controller gets, K, if it can be limited with
    /// [`Policy::limit_patches`]; else `None`.
    fn patches(&self) -> Option<usize> {
        None
    }

    /// Limits the controller to the first `k` selected patches, from the next decision on. The inputs for the
    /// other patches become neutral values: the centre of the picture, medium grey, an even histogram. The
    /// parameters do not change; `k` = [`Policy::patches`] removes the limit.
    ///
    /// # Errors
    /// [`PolicyError::NoPatches`] when [`Policy::patches`] is `None`.
    fn limit_patches(&mut self, k: usize) -> Result<(), PolicyError> {
        let _ = k;
        Err(PolicyError::NoPatches)
    }

    /// Lets `threads` share the work on one picture; a new policy uses one thread. Decisions are
    /// bit-identical. Applies to memory created afterwards; has no effect when a decision has too little work
    /// to share.
    fn set_threads(&mut self, threads: &Threads) {
        let _ = threads;
    }
}

/// The agent's seed for episode `number`, counted from 0, of the world's random stream that was seeded with
/// `seed`. An episode whose world was reset with its own seed is number 0 of that stream.
///
/// It depends on the episode alone, so a single episode can be replayed, on any worker and in any order.
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
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An action, and what the policy attended to when it chose it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision<'a> {
    /// The action, in the world's units; for a discrete world, one score per choice, of which the largest is
    /// chosen, see [`ActionSpace::choose`](crate::ActionSpace::choose).
    pub action: &'a [f64],
    /// What the policy attended to; `None` for a policy without attention.
    pub attention: Option<Attention<'a>>,
    /// `[choices]`: unnormalised log-probabilities or action values, if the policy has them; some learners
    /// need them.
    pub logits: Option<&'a [f32]>,
    /// The expected return from here on, if the policy estimates it.
    pub value: Option<f32>,
}

impl<'a> Decision<'a> {
    /// A decision with an action only.
    pub const fn new(action: &'a [f64]) -> Self {
        Decision { action, attention: None, logits: None, value: None }
    }

    /// The same with attention.
    #[must_use]
    pub const fn with_attention(self, attention: Attention<'a>) -> Self {
        Decision { attention: Some(attention), ..self }
    }
}

/// Whether a policy explores.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum ActMode {
    /// For learning: a stochastic policy samples its actions.
    Explore {
        /// Probability with which an ε-greedy policy takes a random action, 0 to 1.
        epsilon: f64,
    },
    /// For evaluation, videos and explanation: the policy takes the action that it considers best. A policy
    /// that is random by definition stays random; a deterministic policy acts the same in both modes.
    #[default]
    Greedy,
}

/// Inputs of a decision besides observation, memory and parameters. Make one context per episode.
#[derive(Debug, Clone)]
pub struct ActContext {
    /// The random generator of this episode.
    pub rng: Rng,
    /// Whether to explore.
    pub mode: ActMode,
    /// The reward of the step before; 0 in the first.
    pub reward: f64,
    /// The choice of the step before, whoever made it; `None` in the first, and in worlds whose actions are numbers.
    pub choice: Option<usize>,
}

impl ActContext {
    /// The context of the episode with this seed, see [`episode_seed`].
    pub fn new(episode: Seed, mode: ActMode) -> Self {
        ActContext { rng: episode.child("act", 0).rng(), mode, reward: 0.0, choice: None }
    }
}

impl Default for ActContext {
    /// A decision outside of any episode: greedy, with the generator of seed 0.
    fn default() -> Self {
        ActContext::new(Seed::root(0), ActMode::Greedy)
    }
}

/// A request for one decision in a batch.
#[derive(Debug)]
pub struct Turn<'t> {
    /// Index of the episode in the batch.
    pub episode: usize,
    /// The observation.
    pub observation: Observation<'t>,
    /// Its context.
    pub context: &'t mut ActContext,
}

/// A policy with its memory, as an object-safe trait.
///
/// Workers clone an agent, set its parameters with [`Agent::set_params`], and run episodes.
/// [`PolicyAgent::new`] makes one of a [`Policy`].
pub trait Agent: Send {
    /// Starts an episode with this seed, see [`episode_seed`]; clears the memory of the last one.
    fn begin_episode(&mut self, episode: Seed);

    /// Decides on an action; see [`Policy::act`].
    ///
    /// # Errors
    /// [`PolicyError::ObservationShape`] when the policy was built for another observation space.
    fn act(
        &mut self,
        observation: Observation<'_>,
        context: &mut ActContext,
    ) -> Result<Decision<'_>, PolicyError>;

    /// Begins a decision and stops at the attention, see [`Policy::open`].
    ///
    /// # Errors
    /// Those of [`Agent::act`].
    fn open(
        &mut self,
        observation: Observation<'_>,
        context: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        let _ = (observation, context, opened);
        Ok(false)
    }

    /// Ends a decision that [`Agent::open`] began, see [`Policy::resume`].
    ///
    /// # Errors
    /// [`PolicyError::BadAttention`] when `opened` does not fit the agent, or the agent cannot be opened.
    fn resume(&mut self, opened: &Opened, context: &mut ActContext) -> Result<Decision<'_>, PolicyError> {
        let _ = (opened, context);
        Err(PolicyError::BadAttention { why: "this agent cannot be opened at its attention".into() })
    }

    /// Takes in `observation` in a step in which another acts, see [`Policy::observe`].
    ///
    /// # Errors
    /// Those of [`Agent::act`].
    fn observe(&mut self, observation: Observation<'_>, context: &mut ActContext) -> Result<(), PolicyError> {
        self.act(observation, context).map(drop)
    }

    /// Says that `action` was done after the last decision, see [`Policy::acted`].
    fn acted(&mut self, action: &[f64]) {
        let _ = action;
    }

    /// This agent in `episodes` parallel episodes, each with its own copy of the current memory.
    ///
    /// The default makes copies that decide one after the other. An agent that overrides it must return
    /// bit-identical decisions.
    fn batch(&self, episodes: usize) -> Box<dyn AgentBatch> {
        Box::new(Copies { agents: (0..episodes).map(|_| self.boxed_clone()).collect() })
    }

    /// Controller inputs of the last decision, see [`Policy::inputs`].
    fn inputs(&self) -> &[f32] {
        &[]
    }

    /// Appends the recurrent state to `state`, see [`Policy::recurrent_state`].
    fn recurrent_state(&self, state: &mut Vec<f32>) {
        let _ = state;
    }

    /// What a [`Student`](crate::Student) of this agent learns from, see [`Policy::study_inputs`].
    ///
    /// # Errors
    /// When the student cannot learn from the last observation.
    fn study_inputs(&self) -> Result<StudyInputs<'_>, PolicyError> {
        Ok(StudyInputs { numbers: self.inputs(), picture: &[] })
    }

    /// Name and shape of every parameter tensor, in the order of the flat vector.
    fn tensors(&self) -> Vec<TensorShape>;

    /// The parameters as one flat vector.
    fn params(&self) -> Vec<f32>;

    /// Replaces all parameters. Does not allocate.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite.
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;

    /// The number of patches that the controller gets, see [`Policy::patches`].
    fn patches(&self) -> Option<usize> {
        None
    }

    /// Limits the controller to the first `k` selected patches, see [`Policy::limit_patches`].
    ///
    /// # Errors
    /// [`PolicyError::NoPatches`] when [`Agent::patches`] is `None`.
    fn limit_patches(&mut self, k: usize) -> Result<(), PolicyError> {
        let _ = k;
        Err(PolicyError::NoPatches)
    }

    /// Lets `threads` share the work on one picture, see [`Policy::set_threads`]; forgets the episode.
    fn set_threads(&mut self, threads: &Threads);

    /// A copy with its own memory.
    fn boxed_clone(&self) -> Box<dyn Agent>;
}

/// A [`Policy`] together with its memory. Copies share the policy until one of them is changed.
#[derive(Debug, Clone)]
pub struct PolicyAgent<P: Policy> {
    /// The policy.
    pub policy: Arc<P>,
    /// Its memory.
    pub memory: P::Memory,
}

impl<P: Policy> PolicyAgent<P> {
    /// `policy` with new memory.
    pub fn new(policy: P) -> Self {
        let memory = policy.memory();
        PolicyAgent { policy: Arc::new(policy), memory }
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

    fn open(
        &mut self,
        observation: Observation<'_>,
        context: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        self.policy.open(observation, &mut self.memory, context, opened)
    }

    fn resume(&mut self, opened: &Opened, context: &mut ActContext) -> Result<Decision<'_>, PolicyError> {
        self.policy.resume(opened, &mut self.memory, context)
    }

    fn observe(&mut self, observation: Observation<'_>, context: &mut ActContext) -> Result<(), PolicyError> {
        self.policy.observe(observation, &mut self.memory, context)
    }

    fn acted(&mut self, action: &[f64]) {
        self.policy.acted(action, &mut self.memory);
    }

    fn batch(&self, episodes: usize) -> Box<dyn AgentBatch> {
        Box::new(PolicyBatch { policy: self.policy.clone(), memories: vec![self.memory.clone(); episodes] })
    }

    fn inputs(&self) -> &[f32] {
        self.policy.inputs(&self.memory)
    }

    fn recurrent_state(&self, state: &mut Vec<f32>) {
        self.policy.recurrent_state(&self.memory, state);
    }

    fn study_inputs(&self) -> Result<StudyInputs<'_>, PolicyError> {
        self.policy.study_inputs(&self.memory)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.policy.tensors()
    }

    fn params(&self) -> Vec<f32> {
        self.policy.params()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        Arc::make_mut(&mut self.policy).set_params(flat)
    }

    fn patches(&self) -> Option<usize> {
        self.policy.patches()
    }

    fn limit_patches(&mut self, k: usize) -> Result<(), PolicyError> {
        Arc::make_mut(&mut self.policy).limit_patches(k)
    }

    fn set_threads(&mut self, threads: &Threads) {
        Arc::make_mut(&mut self.policy).set_threads(threads);
        self.memory = self.policy.memory();
    }

    fn boxed_clone(&self) -> Box<dyn Agent> {
        Box::new(self.clone())
    }
}

/// One agent in several episodes at once; get one from [`Agent::batch`].
pub trait AgentBatch: Send {
    /// Number of episodes.
    fn episodes(&self) -> usize;

    /// Starts a new episode with this seed at index `episode`, see [`episode_seed`].
    ///
    /// # Panics
    /// When `episode` is out of range.
    fn begin_episode(&mut self, episode: usize, seed: Seed);

    /// Decides in several of the episodes; see [`Policy::act_batch`].
    ///
    /// # Errors
    /// Those of [`Policy::act_batch`].
    ///
    /// # Panics
    /// When `turn.episode` is out of range.
    fn act(
        &mut self,
        turns: &mut [Turn<'_>],
        decided: &mut dyn FnMut(usize, Decision<'_>),
    ) -> Result<(), PolicyError>;

    /// Replaces all parameters, for all episodes; see [`Agent::set_params`].
    ///
    /// # Errors
    /// Those of [`Agent::set_params`].
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
    policy: Arc<P>,
    memories: Vec<P::Memory>,
}

impl<P: Policy + Clone> AgentBatch for PolicyBatch<P> {
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
        Arc::make_mut(&mut self.policy).set_params(flat)
    }
}

/// Errors of a policy.
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
    /// More patches were requested than exist.
    #[error("top_k = {wanted} but the picture holds only {available} patches; lower top_k, patch or stride")]
    TooFewPatches {
        /// Number requested.
        wanted: usize,
        /// Number available.
        available: usize,
    },
    /// The policy does not select patches, so their number cannot be limited.
    #[error("this agent selects no patches, so it cannot be told about fewer")]
    NoPatches,
    /// The parts of an attention are inconsistent.
    #[error("an attention does not fit together: {why}; the agent that made it has a mistake")]
    BadAttention {
        /// The inconsistency, with numbers.
        why: String,
    },
    /// The policy's outputs cannot be converted to a choice.
    #[error("{why}")]
    Scores {
        /// The problem, with numbers, and how to resolve it.
        why: String,
    },
    /// An invalid configuration.
    #[error("{why}")]
    BadConfig {
        /// The problem, and how to resolve it.
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
    /// The observation does not have the shape that the policy was built for.
    #[error("the agent was built for {wanted}, the world shows {given}")]
    ObservationShape {
        /// The expected shape.
        wanted: String,
        /// The given shape.
        given: String,
    },
    /// A number in the observation is NaN or infinite.
    #[error("number {index} of the sensors is {value}; the world is broken, or its sensors need cleaning")]
    SensorNotFinite {
        /// Index among the sensors' numbers.
        index: usize,
        /// The number.
        value: f32,
    },
    /// The votes do not rank the patches.
    #[error("the patches' votes failed: {why}")]
    Votes {
        /// The problem, with numbers, and how to resolve it.
        why: String,
    },
    /// The gradient on a piece of a demonstration could not be computed.
    #[error("piece {piece} of the demonstrations could not be studied: {why}")]
    Study {
        /// Index of the piece.
        piece: usize,
        /// The cause.
        why: String,
    },
    /// No agent of this name.
    #[error(
        "no agent is called {given:?};{} choose from: {known} ({} shows them)",
        hint(given, known),
        Task::ListAgents
    )]
    UnknownAgent {
        /// The given name.
        given: String,
        /// The known names.
        known: String,
    },
}
