//! Implicit Attention for Pixels, IAP (Choromanski, Jain, Parker-Holder, Song, Likhosherstov, Santara, Pacchiano, Tang and
//! Weller 2021, "Unlocking Pixels for Reinforcement Learning via Implicit Attention").
//!
//! The general block of its equation (1) before a controller of any kind: patches down to a single pixel, with depth or
//! without, [votes in linear time](crate::voting), learnt weights of the votes, values other than positions, and what
//! other sensors say beside them. [`hierarchical`] is the paper's policy on two levels.

mod graph;
pub mod hierarchical;

use foveate_core::{
    ActContext, Agent, Decision, EnvSpec, Model, Observation, Opened, PatchGrid, Policy, PolicyAgent,
    PolicyError, SENSORS, Seed, TensorShape, Threads,
};
use foveate_kernels::Level;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bottleneck::{self, Aggregation, Bottleneck, BottleneckConfig, BottleneckScratch, Selection};
use crate::config::{
    FeatureConfig, MAX_SENSORS, Scale, bad, check_actions, check_params, from_units, to_units,
};
use crate::controller::{Controller, ControllerConfig, ControllerState};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Init, Sees};
use crate::gaze_student::GazeStudent;
use crate::onnx::OnnxModel;
use crate::params::{Params, forward_params};
use crate::student::{LstmStudent, highest};
use crate::torch::TorchModule;
use crate::voting::{Relu, VotingConfig};

/// Hyper-parameters of an [`ImplicitAttention`]. The defaults are for CarRacing: `ReLU` features, patches as
/// AttentionAgent's, an LSTM.
///
/// ```
/// use foveate_agents::AgentConfig;
/// use foveate_agents::implicit_attention::ImplicitAttentionConfig;
/// let config: ImplicitAttentionConfig =
///     serde_json::from_str(r#"{ "voting": { "kernel": "hybrid", "features": 4 }, "controller": { "kind": "linear" } }"#)?;
/// assert_eq!(config.param_count(), 1184 + 63);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImplicitAttentionConfig {
    /// Width and height of the picture in pixels.
    pub image: [usize; 2],
    /// True if the depth of a pixel is its fourth channel.
    pub depth: bool,
    /// Numbers of other sensors, which the controller is told beside the values of the chosen patches.
    pub sensors: usize,
    /// Side of a patch in pixels; 1 for single pixels.
    pub patch: usize,
    /// Distance between neighbouring patches in pixels; they overlap when it is below `patch`.
    pub stride: usize,
    /// Length of a query and of a key.
    pub query_dim: usize,
    /// Patches that the controller is told about: K.
    pub top_k: usize,
    /// The divisor of queries × keys.
    pub scale: Scale,
    /// How patches vote: the kernel of A.
    pub voting: VotingConfig,
    /// How much each vote counts: c.
    pub aggregation: Aggregation,
    /// Which patches are chosen, and in which order: π.
    pub selection: Selection,
    /// What the controller is told about a patch: V.
    pub values: FeatureConfig,
    /// What the controller is told about the action before.
    #[serde(skip_serializing_if = "LastAction::is_none")]
    pub last_action: LastAction,
    /// What acts on it.
    pub controller: ControllerConfig,
    /// `[low, high]` per action dimension: where the controller's −1 and 1 go.
    pub actions: Vec<[f64; 2]>,
}

/// What the controller is told about the action before, in the order of the actions; zeros in the first step of an episode.
/// Where another acted in the agent's place, as an expert in demonstrations, it is told what that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastAction {
    /// Nothing.
    #[default]
    None,
    /// Every number of it, from −1 for the lowest to 1 for the highest.
    Values,
    /// 1 for the choice that was made, the first one with the highest score, and 0 for the others.
    Choice,
}

impl LastAction {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_none(&self) -> bool {
        *self == LastAction::None
    }

    /// Writes what is told about an action of `raw` numbers in −1 ..= 1.
    fn write(self, raw: &[f32], out: &mut [f32]) {
        match self {
            LastAction::None => {}
            LastAction::Values => out.copy_from_slice(raw),
            LastAction::Choice => {
                out.fill(0.0);
                out[highest(raw)] = 1.0;
            }
        }
    }
}

impl Default for ImplicitAttentionConfig {
    fn default() -> Self {
        ImplicitAttentionConfig {
            image: [96, 96],
            depth: false,
            sensors: 0,
            patch: 7,
            stride: 4,
            query_dim: 4,
            top_k: 10,
            scale: Scale::SqrtD,
            voting: VotingConfig::Relu(Relu::default()),
            aggregation: Aggregation::default(),
            selection: Selection::default(),
            values: FeatureConfig::default(),
            last_action: LastAction::None,
            controller: ControllerConfig::Lstm { hidden: 16 },
            actions: vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
        }
    }
}

impl ImplicitAttentionConfig {
    /// The configuration of its bottleneck.
    pub fn bottleneck(&self) -> BottleneckConfig {
        BottleneckConfig {
            image: self.image,
            depth: self.depth,
            patch: self.patch,
            stride: self.stride,
            query_dim: self.query_dim,
            top_k: self.top_k,
            scale: self.scale,
            voting: self.voting.clone(),
            aggregation: self.aggregation,
            selection: self.selection,
            features: self.values.clone(),
        }
    }

    /// Numbers that the controller is told.
    pub fn inputs(&self) -> usize {
        self.bottleneck().outputs().saturating_add(self.sensors).saturating_add(self.told_actions())
    }

    /// Numbers that the controller is told about the action before.
    fn told_actions(&self) -> usize {
        if self.last_action.is_none() { 0 } else { self.actions.len() }
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
#[derive(Debug, Clone)]
pub struct ImplicitAttention {
    config: ImplicitAttentionConfig,
    level: Level,
    params: Params,
    bottleneck: Bottleneck,
    controller: Controller,
}

/// The agent's state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct ImplicitAttentionMemory {
    controller: ControllerState,
    scratch: BottleneckScratch,
    /// What the controller will be told about the last action.
    before: Vec<f32>,
    inputs: Vec<f32>,
    raw: Vec<f32>,
    action: Vec<f64>,
}

impl ImplicitAttentionMemory {
    /// What the controller was told last: the values of the chosen patches one after the other, then the sensors, then the
    /// action before.
    pub fn inputs(&self) -> &[f32] {
        &self.inputs
    }

    /// The last action as the controller gave it, in −1 ..= 1 per dimension.
    pub fn raw(&self) -> &[f32] {
        &self.raw
    }
}

impl ImplicitAttention {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: ImplicitAttentionConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let params = Params::zeros(config.tensors());
        let (inputs, outputs) = (config.inputs(), config.actions.len());
        let mut agent = ImplicitAttention {
            level: Level::best(),
            bottleneck: Bottleneck::new(config.bottleneck())?,
            controller: Controller::new(&config.controller, "", inputs, outputs, &params),
            params,
            config,
        };
        agent.pack();
        Ok(agent)
    }

    /// The same agent on another instruction set, which gives the same decisions to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Its configuration.
    pub const fn config(&self) -> &ImplicitAttentionConfig {
        &self.config
    }

    /// The grid of patches.
    pub const fn grid(&self) -> PatchGrid {
        self.bottleneck.grid()
    }

    /// Writes all that the controller is told to the memory.
    fn look(&self, observation: Observation<'_>, m: &mut ImplicitAttentionMemory) -> Result<(), PolicyError> {
        let sensors = self.config.sensors;
        let (seen, before) = m.inputs.split_at_mut(self.config.inputs() - m.before.len());
        let (values, sensors) = seen.split_at_mut(seen.len() - sensors);
        read_sensors(observation, sensors)?;
        before.copy_from_slice(&m.before);
        self.bottleneck.look(self.level, observation, &mut m.scratch, values)
    }

    /// Acts on what the controller is told.
    fn decide(&self, m: &mut ImplicitAttentionMemory) {
        self.controller.step(self.level, &m.inputs, &mut m.controller, &mut m.raw);
        self.config.last_action.write(&m.raw, &mut m.before);
        to_units(&m.raw, &self.config.actions, &mut m.action);
    }

    /// Converts the parameters to the layout that the kernels use. Does not allocate.
    fn pack(&mut self) {
        self.bottleneck.pack(&self.params);
        self.controller.set(&self.params);
    }
}

/// Writes what the sensors say to `out`.
///
/// # Errors
/// When there are not as many as there is room, or one is not finite.
fn read_sensors(observation: Observation<'_>, out: &mut [f32]) -> Result<(), PolicyError> {
    let given = observation.part(SENSORS).and_then(Observation::numbers).unwrap_or_default();
    // A world may have sensors that the agent does without.
    if out.is_empty() || out.len() == given.len() {
        if let Some(index) = given[..out.len()].iter().position(|x| !x.is_finite()) {
            return Err(PolicyError::SensorNotFinite { index, value: given[index] });
        }
        out.copy_from_slice(&given[..out.len()]);
        return Ok(());
    }
    Err(PolicyError::ObservationShape {
        wanted: format!("{} numbers of sensors beside the picture", out.len()),
        given: observation.describe(),
    })
}

impl Policy for ImplicitAttention {
    type Memory = ImplicitAttentionMemory;

    fn memory(&self) -> ImplicitAttentionMemory {
        ImplicitAttentionMemory {
            controller: Controller::state(&self.config.controller),
            scratch: self.bottleneck.scratch(),
            before: vec![0.0; self.config.told_actions()],
            inputs: vec![0.0; self.config.inputs()],
            raw: vec![0.0; self.config.actions.len()],
            action: vec![0.0; self.config.actions.len()],
        }
    }

    fn reset(&self, memory: &mut ImplicitAttentionMemory, _: Seed) {
        memory.controller.reset();
        memory.before.fill(0.0);
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut ImplicitAttentionMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        self.look(observation, m)?;
        self.decide(m);
        Ok(Decision::new(&m.action).with_attention(self.bottleneck.attention(&m.scratch)?))
    }

    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut ImplicitAttentionMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        self.look(observation, memory)?;
        let values = &memory.inputs[..self.bottleneck.config().outputs()];
        Bottleneck::open(&memory.scratch, values, opened);
        Ok(true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut ImplicitAttentionMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        self.bottleneck.resume(opened, &mut m.inputs[..self.bottleneck.config().outputs()])?;
        self.decide(m);
        Ok(Decision::new(&m.action))
    }

    fn acted(&self, action: &[f64], memory: &mut ImplicitAttentionMemory) {
        // What was told about the agent's own action stays as the network gave it, to the bit.
        if self.config.last_action.is_none() || action == memory.action {
            return;
        }
        for ((raw, &action), &bounds) in memory.raw.iter_mut().zip(action).zip(&self.config.actions) {
            *raw = from_units(action, bounds);
        }
        self.config.last_action.write(&memory.raw, &mut memory.before);
    }

    fn inputs<'m>(&self, memory: &'m ImplicitAttentionMemory) -> &'m [f32] {
        memory.inputs()
    }

    forward_params!(|agent| agent.pack());

    fn patches(&self) -> Option<usize> {
        Some(self.bottleneck.patches())
    }

    fn limit_patches(&mut self, k: usize) -> Result<(), PolicyError> {
        self.bottleneck.limit_patches(k);
        Ok(())
    }

    fn set_threads(&mut self, threads: &Threads) {
        self.bottleneck.set_threads(threads);
    }
}

impl AgentConfig for ImplicitAttentionConfig {
    fn check(&self) -> Result<(), PolicyError> {
        self.bottleneck().check()?;
        if self.sensors > MAX_SENSORS {
            return bad(format!("sensors is {}; at most {MAX_SENSORS} are possible", self.sensors));
        }
        self.controller.check()?;
        check_actions(&self.actions)?;
        check_params(&self.tensors(), "lower controller.hidden, query_dim or patch")
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        let mut all = self.bottleneck().tensors();
        all.extend(self.controller.tensors("", self.inputs(), self.actions.len()));
        all
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(ImplicitAttention::new(self.clone())?)))
    }

    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        bottleneck::initial_params(&self.tensors(), init, seed)
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        let ControllerConfig::Lstm { hidden } = self.controller else {
            return bad(
                "only an LSTM learns from an expert; set controller.kind = \"lstm\" or leave out stages with algorithm = \
                 \"imitation\"",
            );
        };
        let gaze = GazeStudent::new(self.bottleneck(), self.tensors(), self.actions.len())?;
        let student = LstmStudent::of(self.tensors(), self.inputs(), hidden, self.actions.clone());
        Ok(Some(Box::new(student.with_gaze(gaze))))
    }

    fn onnx(&self, params: &[f32], spec: &EnvSpec) -> Result<Option<OnnxModel>, PolicyError> {
        graph::model(self, params, spec).map(Some)
    }

    fn torch(&self) -> Result<Option<TorchModule>, PolicyError> {
        let source = include_str!("../../foveate-py/python/foveate/torch/iap.py");
        let module = TorchModule::new("ImplicitAttention", "iap", source, true);
        bottleneck::graph::module(module, &self.bottleneck()).map(Some)
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "iap",
    summary: "votes in linear time over patches down to one pixel, any controller (Choromanski et al. 2021)",
    sees: Sees::Picture,
    read: descriptor::read::<ImplicitAttentionConfig>,
    fit: bottleneck::fit,
    published: &[],
};
