//! AttentionAgent (Tang, Nguyen and Ha 2020, "Neuroevolution of Self-Interpretable Agents").
//!
//! The picture is cut into patches; each patch casts one vote, spread by softmax attention over all patches; the
//! controller is told where the few most important patches are, and nothing else of the picture.
//!
//! Where the published code differs from the paper's text, this follows the code: votes are softmax(queries × keys), and
//! positions are divided by the picture's size, not by the largest position. Ties between equally important
//! patches, which are common on straight road edges, go to the lower index.

mod graph;

use foveate_core::{
    ActContext, Agent, Decision, EnvSpec, Model, Observation, Opened, PatchGrid, Policy, PolicyAgent,
    PolicyError, Seed, TensorShape, Threads,
};
use foveate_kernels::Level;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bottleneck::{self, Aggregation, Bottleneck, BottleneckConfig, BottleneckScratch, Selection};
use crate::config::{FeatureConfig, MAX_HIDDEN, Scale, check_actions, check_params, to_units, within};
use crate::controller::ControllerConfig;
use crate::descriptor::{self, AgentConfig, AgentDescriptor, PublishedWeights, PublishedWorld, Sees};
use crate::layout::Layout;
use crate::lstm::{LstmController, LstmState};
use crate::onnx::OnnxModel;
use crate::params::{Params, forward_params};
use crate::student::LstmStudent;
use crate::torch::TorchModule;
use crate::voting::VotingConfig;

/// Hyper-parameters of an AttentionAgent. The defaults are those of the published CarRacing agent.
///
/// ```
/// use foveate_agents::AttentionAgentConfig;
/// let config: AttentionAgentConfig = serde_json::from_str(r#"{ "top_k": 5 }"#)?;
/// assert_eq!((config.top_k, config.patch), (5, 7));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionAgentConfig {
    /// Width and height of the picture in pixels.
    pub image: [usize; 2],
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Distance between neighbouring patches in pixels.
    pub stride: usize,
    /// Length of a query and of a key.
    pub query_dim: usize,
    /// Number of patches whose features the controller gets, K.
    pub top_k: usize,
    /// The divisor of queries × keys.
    pub scale: Scale,
    /// The attention kernel.
    #[serde(skip_serializing_if = "VotingConfig::is_default")]
    pub voting: VotingConfig,
    /// The features of a patch.
    pub features: FeatureConfig,
    /// Hidden units of the LSTM.
    pub hidden: usize,
    /// `[low, high]` per action dimension: the actions for the network's outputs −1 and 1.
    pub actions: Vec<[f64; 2]>,
}

impl Default for AttentionAgentConfig {
    fn default() -> Self {
        AttentionAgentConfig {
            image: [96, 96],
            patch: 7,
            stride: 4,
            query_dim: 4,
            top_k: 10,
            scale: Scale::SqrtDIn,
            voting: VotingConfig::default(),
            features: FeatureConfig::default(),
            hidden: 16,
            actions: vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
        }
    }
}

impl AttentionAgentConfig {
    /// The configuration of its bottleneck.
    pub fn bottleneck(&self) -> BottleneckConfig {
        BottleneckConfig {
            image: self.image,
            depth: false,
            patch: self.patch,
            stride: self.stride,
            query_dim: self.query_dim,
            top_k: self.top_k,
            scale: self.scale,
            voting: self.voting.clone(),
            aggregation: Aggregation::Ones,
            selection: Selection::Best,
            features: self.features.clone(),
        }
    }

    /// Numbers in a patch.
    pub const fn patch_len(&self) -> usize {
        self.patch * self.patch * 3
    }

    /// Number of features of a patch.
    pub fn features_per_patch(&self) -> usize {
        self.features.per_patch(self.patch)
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::{AttentionAgent, AttentionAgentConfig};
/// use foveate_core::{ActContext, ImageBuf, Observation, Policy};
///
/// let agent = AttentionAgent::new(AttentionAgentConfig::default())?;
/// let mut memory = agent.memory();
/// let frame = ImageBuf::black(96, 96);
/// let decision = agent.act(Observation::rgb(frame.as_image()), &mut memory, &mut ActContext::default())?;
/// assert_eq!(decision.action, [0.0, 0.5, 0.5]);
/// assert_eq!(decision.attention.unwrap().len(), 10);
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AttentionAgent {
    config: AttentionAgentConfig,
    level: Level,
    params: Params,
    bottleneck: Bottleneck,
    controller: LstmController,
}

/// The agent's state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct AttentionMemory {
    lstm: LstmState,
    scratch: BottleneckScratch,
    inputs: Vec<f32>,
    raw: Vec<f32>,
    action: Vec<f64>,
}

impl AttentionMemory {
    /// The LSTM's output, `[hidden]`.
    pub fn h(&self) -> &[f32] {
        self.lstm.h()
    }

    /// The LSTM's memory, `[hidden]`.
    pub fn c(&self) -> &[f32] {
        self.lstm.c()
    }

    /// The network's last output, in −1 ..= 1 per dimension.
    pub fn raw(&self) -> &[f32] {
        &self.raw
    }

    /// Controller inputs of the last decision: the features of the selected patches, concatenated.
    pub fn inputs(&self) -> &[f32] {
        &self.inputs
    }
}

impl AttentionAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: AttentionAgentConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let bottleneck = config.bottleneck();
        let mut agent = AttentionAgent {
            level: Level::best(),
            params: Params::zeros(config.tensors()),
            controller: LstmController::new(bottleneck.outputs(), config.hidden, config.actions.len()),
            bottleneck: Bottleneck::new(bottleneck)?,
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
    pub const fn config(&self) -> &AttentionAgentConfig {
        &self.config
    }

    /// The grid of patches.
    pub const fn grid(&self) -> PatchGrid {
        self.bottleneck.grid()
    }

    /// Converts the parameters to the layout that the kernels use. Does not allocate.
    fn pack(&mut self) {
        let AttentionAgent { params, bottleneck, controller, .. } = self;
        bottleneck.pack(params);
        controller.set(params.lstm(), params.linear("output.weight", "output.bias"));
    }
}

impl Policy for AttentionAgent {
    type Memory = AttentionMemory;

    fn memory(&self) -> AttentionMemory {
        AttentionMemory {
            lstm: LstmState::new(self.config.hidden),
            scratch: self.bottleneck.scratch(),
            inputs: vec![0.0; self.config.bottleneck().outputs()],
            raw: vec![0.0; self.config.actions.len()],
            action: vec![0.0; self.config.actions.len()],
        }
    }

    fn reset(&self, memory: &mut AttentionMemory, _: Seed) {
        memory.lstm.reset();
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut AttentionMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let (level, m) = (self.level, memory);
        // Patches to queries and keys, those to votes (equations 1 and 2), votes to the top K and their features.
        self.bottleneck.look(level, observation, &mut m.scratch, &mut m.inputs)?;
        // The LSTM gives an action in −1 ..= 1, which is scaled to the world's units.
        self.controller.step(level, &m.inputs, &mut m.lstm, &mut m.raw);
        to_units(&m.raw, &self.config.actions, &mut m.action);
        Ok(Decision::new(&m.action).with_attention(self.bottleneck.attention(&m.scratch)?))
    }

    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut AttentionMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        self.bottleneck.look(self.level, observation, &mut memory.scratch, &mut memory.inputs)?;
        Bottleneck::open(&memory.scratch, &memory.inputs, opened);
        Ok(true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut AttentionMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        self.bottleneck.resume(opened, &mut m.inputs)?;
        self.controller.step(self.level, &m.inputs, &mut m.lstm, &mut m.raw);
        to_units(&m.raw, &self.config.actions, &mut m.action);
        Ok(Decision::new(&m.action))
    }

    fn inputs<'m>(&self, memory: &'m AttentionMemory) -> &'m [f32] {
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

impl AgentConfig for AttentionAgentConfig {
    fn check(&self) -> Result<(), PolicyError> {
        self.bottleneck().check()?;
        within("hidden", self.hidden, MAX_HIDDEN)?;
        check_actions(&self.actions)?;
        check_params(&self.tensors(), "lower hidden or patch")
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    /// That of the published CarRacing weights, layer by layer, and by name within a layer.
    fn tensors(&self) -> Vec<TensorShape> {
        let bottleneck = self.bottleneck();
        let lstm = ControllerConfig::Lstm { hidden: self.hidden };
        let mut all = bottleneck.tensors();
        all.extend(lstm.tensors("", bottleneck.outputs(), self.actions.len()));
        all
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(AttentionAgent::new(self.clone())?)))
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        Ok(Some(Box::new(LstmStudent::new(self)?)))
    }

    fn onnx(&self, params: &[f32], spec: &EnvSpec) -> Result<Option<OnnxModel>, PolicyError> {
        graph::model(self, params, spec).map(Some)
    }

    fn torch(&self) -> Result<Option<TorchModule>, PolicyError> {
        let source = include_str!("../../foveate-py/python/foveate/torch/attention_agent.py");
        let module = TorchModule::new("AttentionAgent", "attention_agent", source, true);
        crate::bottleneck::graph::module(module, &self.bottleneck()).map(Some)
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "attention-agent",
    summary: "softmax attention votes for a few patches, an LSTM acts on where they are (Tang et al. 2020)",
    sees: Sees::Picture,
    read: descriptor::read::<AttentionAgentConfig>,
    fit: bottleneck::fit,
    published: &PUBLISHED,
};

/// The CarRacing of the published agents.
const CAR_RACING: PublishedWorld =
    PublishedWorld { id: "car-racing", picture: Some("classic"), options: &[] };

/// The weights of google/brain-tokyo-workshop, AttentionAgent, with the scores of the paper, and those of its branch
/// `simplified_aa`, with the score of the log beside them.
static PUBLISHED: [PublishedWeights; 3] = [
    PublishedWeights {
        name: "CarRacing/model",
        params: 3667,
        agent: "attention-agent",
        settings: || json!({}),
        layout: Layout::Sorted,
        world: CAR_RACING,
        score: [914.0, 15.0],
        sha256: Some("b2f7033b620135b18f90a5fb18bb43673b65f3ba405313bff86222f445a02fe3"),
    },
    PublishedWeights {
        name: "TakeCover/model",
        params: 3633,
        agent: "attention-agent",
        settings: || json!({ "actions": [[-1.0, 1.0]] }),
        layout: Layout::Sorted,
        world: PublishedWorld { id: "take-cover", picture: None, options: &[] },
        score: [1125.0, 589.0],
        sha256: None,
    },
    PublishedWeights {
        name: "simplified_aa",
        params: 3667,
        agent: "attention-agent",
        settings: || json!({}),
        layout: Layout::Registration,
        world: CAR_RACING,
        score: [854.34, 94.46],
        sha256: None,
    },
];
