//! Hierarchical IAP, as in the paper's quadruped experiments: the high level maps the picture to a command every few steps,
//! the low level maps command and sensors to an action in every step.
//!
//! The first output of the high level is the duration of the command in control steps, the others are the command; all are
//! in −1 ..= 1. The low level is one linear layer.

use foveate_core::{
    ActContext, Agent, Decision, Observation, Opened, Policy, PolicyAgent, PolicyError, Seed, TensorShape,
    Threads,
};
use foveate_kernels::dense::Dense;
use foveate_kernels::{Level, project::Linear};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ImplicitAttentionConfig, read_sensors};
use crate::bottleneck::{self, Bottleneck, BottleneckConfig, BottleneckScratch};
use crate::config::{MAX_SENSORS, bad, check_actions, check_params, to_units, within};
use crate::controller::{Controller, ControllerConfig, ControllerState};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Init, Sees};
use crate::fit;
use crate::params::{Params, forward_params};

/// Longest duration of a command in control steps.
const MAX_DURATION: usize = 100_000;

/// Hyper-parameters of a [`HierarchicalAttention`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HierarchicalAttentionConfig {
    /// The high level: an [`ImplicitAttentionConfig`] without sensors and actions.
    pub high: HighConfig,
    /// Length of a command.
    pub command: usize,
    /// Fewest and most control steps that a command lasts.
    pub duration: [usize; 2],
    /// Number of sensors, which only the low level gets.
    pub sensors: usize,
    /// `[low, high]` per action dimension: the actions for the low level's outputs −1 and 1. Outputs are clipped to that
    /// range.
    pub actions: Vec<[f64; 2]>,
}

/// The high level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HighConfig {
    /// As [`ImplicitAttentionConfig::image`].
    pub image: [usize; 2],
    /// As [`ImplicitAttentionConfig::depth`].
    pub depth: bool,
    /// As [`ImplicitAttentionConfig::patch`].
    pub patch: usize,
    /// As [`ImplicitAttentionConfig::stride`].
    pub stride: usize,
    /// As [`ImplicitAttentionConfig::query_dim`].
    pub query_dim: usize,
    /// As [`ImplicitAttentionConfig::top_k`].
    pub top_k: usize,
    /// As [`ImplicitAttentionConfig::voting`].
    pub voting: crate::voting::VotingConfig,
    /// As [`ImplicitAttentionConfig::values`].
    pub values: crate::config::FeatureConfig,
    /// As [`ImplicitAttentionConfig::controller`].
    pub controller: ControllerConfig,
}

impl Default for HighConfig {
    fn default() -> Self {
        let of = ImplicitAttentionConfig::default();
        HighConfig {
            image: of.image,
            depth: of.depth,
            patch: of.patch,
            stride: of.stride,
            query_dim: of.query_dim,
            top_k: of.top_k,
            voting: of.voting,
            values: of.values,
            controller: ControllerConfig::Linear {},
        }
    }
}

impl Default for HierarchicalAttentionConfig {
    fn default() -> Self {
        HierarchicalAttentionConfig {
            high: HighConfig::default(),
            command: 4,
            duration: [10, 100],
            sensors: 0,
            actions: vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
        }
    }
}

impl HierarchicalAttentionConfig {
    /// The configuration of the high level's bottleneck.
    pub fn bottleneck(&self) -> BottleneckConfig {
        let HighConfig { image, depth, patch, stride, query_dim, top_k, voting, values, .. } =
            self.high.clone();
        BottleneckConfig {
            voting,
            features: values,
            ..ImplicitAttentionConfig {
                image,
                depth,
                patch,
                stride,
                query_dim,
                top_k,
                ..ImplicitAttentionConfig::default()
            }
            .bottleneck()
        }
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
#[derive(Debug, Clone)]
pub struct HierarchicalAttention {
    config: HierarchicalAttentionConfig,
    level: Level,
    params: Params,
    bottleneck: Bottleneck,
    high: Controller,
    low: Dense,
}

/// The agent's state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct HierarchicalMemory {
    high: ControllerState,
    scratch: BottleneckScratch,
    values: Vec<f32>,
    /// `[1 + command]`: the last output of the high level.
    said: Vec<f32>,
    /// Remaining control steps of the command.
    left: usize,
    /// `[command + sensors]`
    inputs: Vec<f32>,
    raw: Vec<f32>,
    action: Vec<f64>,
}

impl HierarchicalMemory {
    /// The current command, `[command]`, in −1 ..= 1.
    pub fn command(&self) -> &[f32] {
        &self.said[1..]
    }

    /// Remaining control steps of the command.
    pub const fn left(&self) -> usize {
        self.left
    }
}

impl HierarchicalAttention {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: HierarchicalAttentionConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let params = Params::zeros(config.tensors());
        let bottleneck = config.bottleneck();
        let mut agent = HierarchicalAttention {
            level: Level::best(),
            high: Controller::new(
                &config.high.controller,
                "high.",
                bottleneck.outputs(),
                1 + config.command,
                &params,
            ),
            low: Dense::new(config.command + config.sensors, config.actions.len()),
            bottleneck: Bottleneck::new(bottleneck)?,
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

    fn pack(&mut self) {
        self.bottleneck.pack(&self.params);
        self.high.set(&self.params);
        let (weight, bias) = (self.params.get("low.output.weight"), self.params.get("low.output.bias"));
        self.low.set(Linear { weight, bias });
    }

    fn observe_sensors(
        &self,
        observation: Observation<'_>,
        memory: &mut HierarchicalMemory,
    ) -> Result<(), PolicyError> {
        read_sensors(observation, &mut memory.inputs[self.config.command..])
    }

    /// The action: of a new command, if the last one is over, from the features of the selected patches.
    fn decide(&self, m: &mut HierarchicalMemory) {
        if m.left == 0 {
            self.high.step(self.level, &m.values, &mut m.high, &mut m.said);
            m.left = self.duration(m.said[0]);
            m.inputs[..self.config.command].copy_from_slice(&m.said[1..]);
        }
        m.left -= 1;
        self.low.apply(self.level, &m.inputs, &mut m.raw);
        for raw in &mut m.raw {
            *raw = raw.clamp(-1.0, 1.0);
        }
        to_units(&m.raw, &self.config.actions, &mut m.action);
    }

    /// The duration of a command, from the first output of the high level.
    fn duration(&self, said: f32) -> usize {
        let [least, most] = self.config.duration;
        let share = f64::midpoint(f64::from(said.clamp(-1.0, 1.0)), 1.0);
        least + (share * (most - least) as f64).round() as usize
    }
}

impl Policy for HierarchicalAttention {
    type Memory = HierarchicalMemory;

    fn memory(&self) -> HierarchicalMemory {
        HierarchicalMemory {
            high: Controller::state(&self.config.high.controller),
            scratch: self.bottleneck.scratch(),
            values: vec![0.0; self.bottleneck.config().outputs()],
            said: vec![0.0; 1 + self.config.command],
            left: 0,
            inputs: vec![0.0; self.config.command + self.config.sensors],
            raw: vec![0.0; self.config.actions.len()],
            action: vec![0.0; self.config.actions.len()],
        }
    }

    fn reset(&self, memory: &mut HierarchicalMemory, _: Seed) {
        memory.high.reset();
        memory.left = 0;
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut HierarchicalMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        self.observe_sensors(observation, m)?;
        if m.left == 0 {
            self.bottleneck.look(self.level, observation, &mut m.scratch, &mut m.values)?;
        }
        self.decide(m);
        // While a command lasts, the attention is that of the decision that gave it.
        Ok(Decision::new(&m.action).with_attention(self.bottleneck.attention(&m.scratch)?))
    }

    /// While a command lasts, what is opened is the decision that gave it, and plays no part.
    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut HierarchicalMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        let m = memory;
        self.observe_sensors(observation, m)?;
        if m.left == 0 {
            self.bottleneck.look(self.level, observation, &mut m.scratch, &mut m.values)?;
        }
        Bottleneck::open(&m.scratch, &m.values, opened);
        Ok(true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut HierarchicalMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        self.bottleneck.resume(opened, &mut m.values)?;
        self.decide(m);
        Ok(Decision::new(&m.action))
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

impl AgentConfig for HierarchicalAttentionConfig {
    fn check(&self) -> Result<(), PolicyError> {
        self.bottleneck().check()?;
        self.high.controller.check()?;
        within("command", self.command, MAX_SENSORS)?;
        if self.sensors > MAX_SENSORS {
            return bad(format!("sensors is {}; at most {MAX_SENSORS} are possible", self.sensors));
        }
        let [least, most] = self.duration;
        if least == 0 || least > most || most > MAX_DURATION {
            return bad(format!(
                "duration is [{least}, {most}]; it must be [fewest, most] control steps, from 1 to {MAX_DURATION}"
            ));
        }
        check_actions(&self.actions)?;
        check_params(&self.tensors(), "lower high.controller.hidden, command or patch")
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    /// The high level's, then the low level's.
    fn tensors(&self) -> Vec<TensorShape> {
        let bottleneck = self.bottleneck();
        let mut all = bottleneck.tensors();
        all.extend(self.high.controller.tensors("high.", bottleneck.outputs(), 1 + self.command));
        all.extend(ControllerConfig::Linear {}.tensors(
            "low.",
            self.command.saturating_add(self.sensors),
            self.actions.len(),
        ));
        all
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(HierarchicalAttention::new(self.clone())?)))
    }

    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        bottleneck::initial_params(&self.tensors(), init, seed)
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "iap-hierarchical",
    summary: "a high level looks and commands, a low level acts on command and sensors (Choromanski et al. 2021)",
    sees: Sees::Picture,
    read: descriptor::read::<HierarchicalAttentionConfig>,
    fit: |spec, _| {
        let actions = spec.action.bounds();
        let Some((image, stride)) = fit::picture(spec) else { return json!({ "actions": actions }) };
        json!({ "high": { "image": image, "stride": stride }, "actions": actions })
    },
    published: &[],
};
