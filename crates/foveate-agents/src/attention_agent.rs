//! AttentionAgent (Tang, Nguyen and Ha 2020, "Neuroevolution of Self-Interpretable Agents").
//!
//! The picture is cut into patches; each patch casts one vote, spread by softmax attention over all patches; the
//! controller is told where the few most important patches are, and nothing else of the picture.
//!
//! Two places where the published code differs from the paper's words, and we follow the code: queries times
//! keys, and positions divided by the picture's size rather than by the largest position. Ties between equally important
//! patches, which are common on straight road edges, go to the lower index.

use foveate_core::{Decision, Gaze, Image, Observation, PatchGrid, Policy, PolicyError, TensorShape};
use foveate_kernels::project::{Projector, Scales, Strip};
use foveate_kernels::top_k::top_k;
use foveate_kernels::vote::Votes;
use foveate_kernels::{Embedded, Level};

use crate::config::AttentionAgentConfig;
use crate::features::Features;
use crate::lstm::{LstmController, LstmState};
use crate::params::Params;

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::{AttentionAgent, AttentionAgentConfig};
/// use foveate_core::{ImageBuf, Observation, Policy};
///
/// let agent = AttentionAgent::new(AttentionAgentConfig::default())?;
/// let mut memory = agent.memory();
/// let frame = ImageBuf::black(96, 96);
/// let decision = agent.act(Observation::Image(frame.as_image()), &mut memory)?;
/// assert_eq!(decision.action, [0.0, 0.5, 0.5]);
/// assert_eq!(decision.gaze.unwrap().looked_at.len(), 10);
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AttentionAgent {
    config: AttentionAgentConfig,
    grid: PatchGrid,
    level: Level,
    params: Params,
    projector: Projector,
    features: Features,
    controller: LstmController,
}

/// What the agent remembers, its scratch space, and the outcome of its last decision.
#[derive(Debug, Clone)]
pub struct AttentionMemory {
    lstm: LstmState,
    strip: Strip,
    embedded: Embedded,
    votes: Votes,
    importance: Vec<f32>,
    looked_at: Vec<u32>,
    order: Vec<u32>,
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

    /// The last action as the network gave it, in −1 ..= 1 per dimension.
    pub fn raw(&self) -> &[f32] {
        &self.raw
    }

    /// What the controller was told last: the features of the chosen patches, one after the other.
    pub fn inputs(&self) -> &[f32] {
        &self.inputs
    }
}

impl AttentionAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AttentionAgentConfig::check`].
    pub fn new(config: AttentionAgentConfig) -> Result<Self, PolicyError> {
        let grid = config.check()?;
        let [width, height] = config.image;
        let inputs = config.top_k * config.features_per_patch();
        let mut agent = AttentionAgent {
            grid,
            level: Level::best(),
            params: Params::zeros(config.tensors()),
            projector: Projector::new(width, height, config.patch, config.stride, config.query_dim),
            features: Features::new(&config),
            controller: LstmController::new(inputs, config.hidden, config.actions.len()),
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

    /// How it cuts the picture.
    pub const fn grid(&self) -> PatchGrid {
        self.grid
    }

    /// Brings the parameters into the form that the kernels use. Allocates nothing.
    fn pack(&mut self) {
        let AttentionAgent { config, params, projector, features, controller, .. } = self;
        // Votes are powers of two.
        let divisor = config.scale.divisor(config.patch_len(), config.query_dim);
        let query_scale = std::f64::consts::LOG2_E / divisor;
        let query = params.linear("query.weight", "query.bias");
        let scales = Scales { query: query_scale, key: 1.0 };
        projector.set(query, params.linear("key.weight", "key.bias"), scales);
        if config.features.conv.is_some_and(|conv| conv.evolved) {
            features.set_conv(params.linear("conv.weight", "conv.bias"));
        }
        controller.set(params.lstm(), params.linear("output.weight", "output.bias"));
    }

    /// The picture in `observation`, if it has the configured size.
    fn image<'o>(&self, observation: Observation<'o>) -> Result<Image<'o>, PolicyError> {
        let [width, height] = self.config.image;
        match observation.image() {
            Some(image) if (image.width(), image.height()) == (width, height) => Ok(image),
            _ => Err(PolicyError::ObservationShape {
                wanted: format!("a picture of {width}x{height}"),
                given: observation.describe(),
            }),
        }
    }
}

impl Policy for AttentionAgent {
    type Memory = AttentionMemory;

    fn memory(&self) -> AttentionMemory {
        let patches = self.grid.len();
        AttentionMemory {
            lstm: LstmState::new(self.config.hidden),
            strip: self.projector.strip(),
            embedded: self.projector.embedded(),
            votes: Votes::new(patches, self.config.query_dim),
            importance: vec![0.0; patches],
            looked_at: vec![0; self.config.top_k],
            order: Vec::with_capacity(patches),
            inputs: vec![0.0; self.config.top_k * self.features.per_patch()],
            raw: vec![0.0; self.config.actions.len()],
            action: vec![0.0; self.config.actions.len()],
        }
    }

    fn reset(&self, memory: &mut AttentionMemory) {
        memory.lstm.reset();
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut AttentionMemory,
    ) -> Result<Decision<'m>, PolicyError> {
        let image = self.image(observation)?;
        let (level, m) = (self.level, memory);

        // Patches to queries and keys, queries and keys to votes (equations 1 and 2), votes to the top K.
        self.projector.project(level, image.rgb(), &mut m.strip, &mut m.embedded);
        m.votes.cast(level, &m.embedded, &mut m.importance);
        top_k(&m.importance, &mut m.looked_at, &mut m.order);

        // The top K to features, features through the LSTM to an action in −1 ..= 1.
        self.features.extract(level, image, self.grid, &m.looked_at, &mut m.inputs);
        self.controller.step(level, &m.inputs, &mut m.lstm, &mut m.raw);

        // To the world's units.
        for ((action, &raw), [low, high]) in m.action.iter_mut().zip(&m.raw).zip(&self.config.actions) {
            *action = f64::from(raw) * ((high - low) / 2.0) + f64::midpoint(*low, *high);
        }
        let gaze = Gaze { grid: self.grid, importance: &m.importance, looked_at: &m.looked_at };
        Ok(Decision { action: &m.action, gaze: Some(gaze) })
    }

    fn inputs<'m>(&self, memory: &'m AttentionMemory) -> &'m [f32] {
        memory.inputs()
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.params.tensors().to_vec()
    }

    fn params(&self) -> Vec<f32> {
        self.params.flat().to_vec()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)?;
        self.pack();
        Ok(())
    }
}
