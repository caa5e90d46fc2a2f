//! AttentionNeuron on pictures: every patch is a sensor.
//!
//! Per step, with a stack of grey pictures x (the oldest first) and the agent's own last output a:
//!
//! 1. the key of a patch is `[x_2 − x_1, x_3 − x_2, …, a] W_k + b_k`: what moves;
//! 2. its value is `[norm(x_1), norm(x_2), …] W_v + b_v`, where each picture's pixels are normalised by
//!    themselves: what it looks like, whatever its brightness;
//! 3. `m = norm(relu(softmax((Q W_q + b_q) · k / s) v))`, with the fixed [`queries`] Q: one code per
//!    query, `[codes, message]`, a latent picture;
//! 4. a [head](super::heads) turns the codes into the action.
//!
//! Where the published code differs from the paper's text, this follows the code: the paper's formula has neither the relu
//! nor the normalisation of messages. The decision does not depend on the order of the patches, bit for bit, as long as
//! the order stays the same from the episode's first step on.

use foveate_core::{
    ActContext, Agent, Attention, Decision, EnvSpec, Model, Observation, Opened, PatchGrid, Policy,
    PolicyAgent, PolicyError, Seed, Selected, StudyInputs, TensorShape, Threads, Tokens,
};
use foveate_kernels::Level;
use foveate_kernels::patch_codes::{
    Affine, CodesScratch, CodesShape, CodesWeights, Flatten, MAX_PATCH, PatchCodes,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attention_neuron::heads::{Head, HeadConfig, HeadMemory};
use crate::attention_neuron::picture_student::PictureStudent;
use crate::attention_neuron::{Senses, picture_graph, queries};
use crate::config::{MAX_HIDDEN, MAX_SIDE, Scale, bad, check_actions, check_params, to_units, within};
use crate::descriptor::{self, AgentConfig, Init, PictureView};
use crate::onnx::OnnxModel;
use crate::params::{Params, forward_params};
use crate::student::LstmStudent;
use crate::torch::TorchModule;

/// Most pictures of a stack.
const MAX_FRAMES: usize = 64;
/// Most numbers that the messages of all codes, or the values of all patches, may have together.
const MAX_NUMBERS: usize = 16 << 20;

/// Largest factor of the quotients.
const MAX_SHARPNESS: f64 = 1e6;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(x: &f64) -> bool {
    x.to_bits() == 1.0_f64.to_bits()
}

/// Hyper-parameters of an AttentionNeuron on pictures. The defaults are those of the published CarRacing agent.
///
/// ```
/// use foveate_agents::attention_neuron::pictures::PictureConfig;
/// use foveate_agents::AgentConfig;
/// assert_eq!(PictureConfig::carracing_pi().param_count(), 7212);
/// assert_eq!(PictureConfig::puzzle_pong().param_count(), 1_687_726);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PictureConfig {
    /// `"picture"`.
    pub senses: Senses,
    /// Width and height of a picture in pixels.
    pub image: [usize; 2],
    /// Pictures of a stack.
    pub frames: usize,
    /// Side of a patch in pixels; patches do not overlap.
    pub patch: usize,
    /// Rows and columns of the latent picture; their product is the number of codes.
    pub codes: [usize; 2],
    /// Length of a query before its linear layer: columns of the fixed table.
    pub code_dim: usize,
    /// Length of queries and keys after their linear layers.
    pub query_dim: usize,
    /// Length of a message.
    pub message_dim: usize,
    /// The divisor of queries × keys.
    pub scale: Scale,
    /// A factor of all quotients: above 1, codes choose among patches more sharply from the first weights on.
    #[serde(skip_serializing_if = "is_one")]
    pub sharpness: f64,
    /// The order in which the differences of a patch are flattened.
    pub flatten: Order,
    /// True if the normalisation of pixels has learned factors and offsets.
    pub value_affine: bool,
    /// True if the normalisation of messages has learned factors and offsets.
    pub message_affine: bool,
    /// The previous action that the keys get: `None` for the last outputs, 0 at first; for worlds with choices, the choice
    /// that counts as the previous one at first. The last choice, the largest output, is then given as zeros and a one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_choice: Option<usize>,
    /// What turns the codes into the action.
    pub head: HeadConfig,
    /// What learns from an expert by gradients.
    #[serde(skip_serializing_if = "Learns::is_default")]
    pub learns: Learns,
    /// `[low, high]` per action dimension: the actions for the network's outputs −1 and 1. Of choices one range for each.
    pub actions: Vec<[f64; 2]>,
}

/// The order in which the differences of a patch are flattened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// `[row, column, time]`, as in the published CarRacing agent.
    #[default]
    TimeFastest,
    /// `[time, row, column]`, as in the published Pong agent.
    TimeSlowest,
}

/// What learns from an expert by gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Learns {
    /// The LSTM of the head. Queries, keys and values keep their first weights, unless evolution changes them.
    #[default]
    Head,
    /// Everything; with all heads but AttentionAgent's, whose choice of codes has no gradient.
    All,
}

impl Learns {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Learns::default()
    }
}

impl Default for PictureConfig {
    fn default() -> Self {
        PictureConfig {
            senses: Senses::Picture,
            image: [96, 96],
            frames: 4,
            patch: 6,
            codes: [32, 32],
            code_dim: 8,
            query_dim: 16,
            message_dim: 16,
            scale: Scale::SqrtD,
            sharpness: 1.0,
            flatten: Order::TimeFastest,
            value_affine: false,
            message_affine: false,
            first_choice: None,
            head: HeadConfig::default(),
            learns: Learns::default(),
            actions: vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
        }
    }
}

impl PictureConfig {
    /// The settings of the published agent for CarRacing.
    pub fn carracing_pi() -> Self {
        PictureConfig::default()
    }

    /// The settings of the published agent for Pong.
    pub fn puzzle_pong() -> Self {
        PictureConfig {
            image: [84, 84],
            codes: [20, 20],
            query_dim: 32,
            message_dim: 32,
            flatten: Order::TimeSlowest,
            value_affine: true,
            message_affine: true,
            first_choice: Some(3),
            head: HeadConfig::puzzle_pong(),
            actions: vec![[0.0, 1.0]; 6],
            ..PictureConfig::default()
        }
    }

    /// Checks everything and cuts a picture into patches.
    ///
    /// # Errors
    /// When a value is out of bounds, the patch is larger than the picture, or the agent would be unreasonably large.
    fn check_grid(&self) -> Result<PatchGrid, PolicyError> {
        let [width, height] = self.image;
        within("image width", width, MAX_SIDE)?;
        within("image height", height, MAX_SIDE)?;
        within("patch", self.patch, MAX_PATCH)?;
        let grid = PatchGrid::tile(width, height, self.patch, self.patch)?;
        if !(2..=MAX_FRAMES).contains(&self.frames) {
            return bad(format!(
                "frames is {}; it must be from 2 to {MAX_FRAMES}, because keys are made of differences",
                self.frames
            ));
        }
        for (name, value) in [
            ("codes (rows)", self.codes[0]),
            ("codes (columns)", self.codes[1]),
            ("code_dim", self.code_dim),
            ("query_dim", self.query_dim),
            ("message_dim", self.message_dim),
        ] {
            within(name, value, MAX_HIDDEN)?;
        }
        let codes = self.codes[0].saturating_mul(self.codes[1]);
        let widest = self.message_dim.max(self.code_dim);
        if codes.max(grid.len()).saturating_mul(widest) > MAX_NUMBERS {
            return bad(format!(
                "{codes} codes and {} patches of up to {widest} numbers are too large; lower codes, message_dim or \
                 code_dim, or raise patch",
                grid.len()
            ));
        }
        if !(self.sharpness > 0.0 && self.sharpness <= MAX_SHARPNESS) {
            return bad(format!(
                "sharpness is {}; it must be above 0, at most {MAX_SHARPNESS}",
                self.sharpness
            ));
        }
        check_actions(&self.actions)?;
        if let Some(first) = self.first_choice
            && first >= self.actions.len()
        {
            return bad(format!("first_choice is {first}; there are {} choices", self.actions.len()));
        }
        self.head.check(self.codes)?;
        if self.learns == Learns::All && !self.head.is_differentiable() {
            return bad(
                "learns = \"all\" needs a head of another kind than \"attention_agent\", whose choice of codes has no gradient: \
                 \"recurrent\", \"convolution\" or \"dense\"",
            );
        }
        check_params(&self.tensors(), "lower message_dim, query_dim or the head's sizes")?;
        Ok(grid)
    }

    /// The weights of the kernel in `params`, with its fixed `table`.
    pub(super) fn codes_weights<'a>(&self, params: &'a Params, table: &'a [f32]) -> CodesWeights<'a> {
        let affine = |on: bool, weight: &str, bias: &str| {
            on.then(|| Affine { weight: params.get(weight), bias: params.get(bias) })
        };
        CodesWeights {
            table,
            query: params.linear("query.weight", "query.bias"),
            key: params.linear("key.weight", "key.bias"),
            value: params.linear("value.weight", "value.bias"),
            divisor: self.scale.divisor(self.shape().key_inputs(), self.query_dim) / self.sharpness,
            flatten: match self.flatten {
                Order::TimeFastest => Flatten::TimeFastest,
                Order::TimeSlowest => Flatten::TimeSlowest,
            },
            value_norm: affine(self.value_affine, "value_norm.weight", "value_norm.bias"),
            message_norm: affine(self.message_affine, "message_norm.weight", "message_norm.bias"),
        }
    }

    /// The sizes of the kernel.
    pub(super) fn shape(&self) -> CodesShape {
        CodesShape {
            width: self.image[0],
            height: self.image[1],
            frames: self.frames,
            patch: self.patch,
            shared: self.actions.len(),
            codes: self.codes[0] * self.codes[1],
            code_dim: self.code_dim,
            message: self.message_dim,
        }
    }
}

impl AgentConfig for PictureConfig {
    fn check(&self) -> Result<(), PolicyError> {
        self.check_grid().map(drop)
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        let mut all = vec![];
        let mut push = |name: &str, shape: Vec<usize>| all.push(TensorShape { name: name.into(), shape });
        let area = self.patch.saturating_mul(self.patch);
        let times = self.frames.saturating_sub(1);
        let keys = area.saturating_mul(times).saturating_add(self.actions.len());
        for (name, outputs, inputs) in [
            ("query", self.query_dim, self.code_dim),
            ("key", self.query_dim, keys),
            ("value", self.message_dim, area.saturating_mul(self.frames)),
        ] {
            push(&format!("{name}.bias"), vec![outputs]);
            push(&format!("{name}.weight"), vec![outputs, inputs]);
        }
        for (name, affine, len) in
            [("value_norm", self.value_affine, area), ("message_norm", self.message_affine, self.message_dim)]
        {
            if affine {
                push(&format!("{name}.bias"), vec![len]);
                push(&format!("{name}.weight"), vec![len]);
            }
        }
        all.extend(self.head.tensors(self.codes, self.message_dim, self.actions.len()));
        all
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(PictureAgent::new(self.clone())?)))
    }

    /// Factors behind a normalisation start at 1 and offsets at 0, as in PyTorch.
    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        let tensors = self.tensors();
        let mut params = descriptor::draw(&tensors, init, seed);
        let mut rest = &mut params[..];
        for tensor in &tensors {
            let (numbers, behind) = rest.split_at_mut(tensor.len());
            match &*tensor.name {
                "value_norm.weight" | "message_norm.weight" => numbers.fill(1.0),
                "value_norm.bias" | "message_norm.bias" => numbers.fill(0.0),
                _ => {}
            }
            rest = behind;
        }
        params
    }

    /// Grey, without readouts, several pictures: its keys are differences of neighbouring ones.
    fn view(&self) -> Option<PictureView> {
        Some(PictureView { grey: true, readouts: false, frames: self.frames })
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        self.check()?;
        if self.learns == Learns::All {
            let student = PictureStudent::new(self.clone())?;
            return Ok(student.map(|student| Box::new(student) as Box<dyn Model>));
        }
        let student = self.head.lstm(self.codes, self.message_dim).map(|(inputs, hidden)| {
            let student = LstmStudent::of(self.tensors(), inputs, hidden, self.actions.clone());
            Box::new(student) as Box<dyn Model>
        });
        Ok(student)
    }

    fn onnx(&self, params: &[f32], spec: &EnvSpec) -> Result<Option<OnnxModel>, PolicyError> {
        picture_graph::model(self, params, spec).map(Some)
    }

    fn torch(&self) -> Result<Option<TorchModule>, PolicyError> {
        picture_graph::module(self).map(Some)
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::attention_neuron::pictures::{PictureAgent, PictureConfig};
/// use foveate_core::{ActContext, Observation, PixelShape, Pixels, Policy};
///
/// let agent = PictureAgent::new(PictureConfig::default())?;
/// let mut memory = agent.memory();
/// let bytes = vec![0; 4 * 96 * 96];
/// let shape = PixelShape { frames: 4, height: 96, width: 96, channels: 1 };
/// let stack = Observation::Image(Pixels::new(shape, &bytes).expect("as many bytes"));
/// let decision = agent.act(stack, &mut memory, &mut ActContext::default())?;
/// assert_eq!(decision.action, [0.0, 0.5, 0.5]);
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PictureAgent {
    config: PictureConfig,
    grid: PatchGrid,
    level: Level,
    params: Params,
    /// The fixed table of queries.
    table: Vec<f32>,
    codes: PatchCodes,
    head: Head,
}

/// The agent's state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct PictureMemory {
    codes: CodesScratch,
    head: HeadMemory,
    /// What the student learns from; `None` when only the head learns.
    studied: Option<Studied>,
    /// `[actions]`: the previous action that the keys get.
    previous: Vec<f32>,
    action: Vec<f64>,
    /// Patches that are the most important one of at least one code, the one with the most codes first.
    winners: Vec<u32>,
    /// 0, 1, 2, …
    ranks: Vec<u32>,
}

/// The last stack, and whether the student can put the stacks of this episode together from their newest pictures.
#[derive(Debug, Clone)]
struct Studied {
    /// `[frames, height, width]`
    stack: Vec<u8>,
    /// Which patches are there; see [`pack_patches`].
    present: Vec<f32>,
    /// Bytes of a picture.
    area: usize,
    /// True if there was a step in this episode.
    begun: bool,
    fault: Option<Fault>,
}

/// Patches in a number of [`pack_patches`]: a single-precision number holds as many bits exactly.
const PACKED: usize = 24;
/// That many patches, all there.
const ALL: f32 = ((1_u32 << PACKED) - 1) as f32;

/// Numbers that say of so many patches which are there.
pub(super) const fn packed_len(patches: usize) -> usize {
    patches.div_ceil(PACKED)
}

/// Writes which patches are there as bits of whole numbers, the first one of each as its lowest bit; bits behind the last
/// patch are 1.
fn pack_patches(mut present: impl Iterator<Item = bool>, to: &mut [f32]) {
    for number in to {
        let bits = (0..PACKED).map(|bit| u32::from(present.next().unwrap_or(true)) << bit);
        *number = bits.sum::<u32>() as f32;
    }
}

/// Writes 1 or 0 for each patch; the inverse of [`pack_patches`].
pub(super) fn unpack_patches(packed: &[f32], to: &mut [f32]) {
    for (number, to) in packed.iter().zip(to.chunks_mut(PACKED)) {
        for (bit, one) in to.iter_mut().enumerate() {
            *one = (*number as u32 >> bit & 1) as f32;
        }
    }
}

/// Why a student cannot learn from an episode.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Its first stack holds different pictures.
    Start,
    /// A stack does not go on where the one before ends.
    Jump,
}

impl Studied {
    fn begin(&mut self) {
        (self.begun, self.fault) = (false, None);
    }

    /// Remembers the stack of a step.
    fn see(&mut self, stack: &[u8], present: Option<&[f32]>) {
        let older = stack.len() - self.area;
        match present {
            Some(present) => pack_patches(present.iter().map(|&one| one != 0.0), &mut self.present),
            None => self.present.fill(ALL),
        }
        let found = if self.begun {
            (stack[..older] != self.stack[self.area..]).then_some(Fault::Jump)
        } else {
            (stack[..older] != stack[self.area..]).then_some(Fault::Start)
        };
        self.fault = self.fault.or(found);
        self.stack.copy_from_slice(stack);
        self.begun = true;
    }

    /// The newest picture, and which of its patches are there.
    fn inputs(&self) -> Result<StudyInputs<'_>, PolicyError> {
        let given = match self.fault {
            None => {
                let picture = &self.stack[self.stack.len() - self.area..];
                return Ok(StudyInputs { numbers: &self.present, picture });
            }
            Some(Fault::Start) => "different pictures in the first stack of an episode",
            Some(Fault::Jump) => "a stack that does not hold the newest pictures of the stack before",
        };
        Err(PolicyError::ObservationShape {
            wanted: "stacks of consecutive pictures, from which learns = \"all\" learns".into(),
            given: given.into(),
        })
    }
}

impl PictureMemory {
    /// The network's last output: in −1 ..= 1 per dimension, or a score per choice.
    pub fn raw(&self) -> &[f32] {
        self.head.raw()
    }

    /// Number of patches of the last decision that were processed after merging equal ones.
    pub fn distinct(&self) -> usize {
        self.codes.distinct()
    }

    /// The state of the head.
    pub const fn head(&self) -> &HeadMemory {
        &self.head
    }
}

impl PictureAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense.
    pub fn new(config: PictureConfig) -> Result<Self, PolicyError> {
        let grid = config.check_grid()?;
        let shape = config.shape();
        let params = Params::zeros(config.tensors());
        let mut agent = PictureAgent {
            grid,
            level: Level::best(),
            table: queries(shape.codes, shape.code_dim),
            codes: PatchCodes::new(shape),
            head: Head::new(&config.head, config.codes, config.message_dim, config.actions.len()),
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
    pub const fn config(&self) -> &PictureConfig {
        &self.config
    }

    /// Computes the codes of a stack of pictures, `[frames, height, width]`, and nothing else: for measurements.
    pub fn codes_alone(&self) -> impl FnMut(&[u8]) {
        let mut scratch = self.codes.scratch();
        let shared = vec![0.0; self.config.actions.len()];
        // Patches cannot be missing, so there is no error.
        move |pixels| {
            let _ = self.codes.compute(self.level, pixels, None, &shared, &mut scratch);
        }
    }

    /// Converts the parameters to the layout that the kernels use. Does not allocate.
    fn pack(&mut self) {
        let PictureAgent { config, params, table, codes, head, .. } = self;
        codes.set(config.codes_weights(params, table));
        head.set(params);
    }

    /// The previous action at the start of an episode.
    fn reset_previous(&self, previous: &mut [f32]) {
        previous.fill(0.0);
        if let Some(first) = self.config.first_choice {
            previous[first] = 1.0;
        }
    }

    /// The bytes of the stack in `observation`, and which patches are there.
    fn read<'o>(&self, observation: Observation<'o>) -> Result<(&'o [u8], Option<&'o [f32]>), PolicyError> {
        let PictureConfig { image: [width, height], frames, .. } = self.config;
        let patches = self.grid.len();
        let wrong = |wanted: String| PolicyError::ObservationShape { wanted, given: observation.describe() };
        let pixels = observation.image().filter(|pixels| {
            let is = pixels.shape();
            (is.frames, is.width, is.height, is.channels) == (frames, width, height, 1)
        });
        let pixels = pixels.ok_or_else(|| {
            wrong(format!(
                "a stack of {frames} grey pictures of {width}x{height} (wrappers grey, resize and stack make one)"
            ))
        })?;
        let present = observation.present();
        if let Some(present) = present.filter(|present| present.len() != patches) {
            let given = present.len();
            return Err(wrong(format!("{patches} patches, of which any may be missing, and not {given}")));
        }
        Ok((pixels.bytes(), present))
    }

    /// Numbers of the weights and of the values of an opened decision.
    const fn parts(&self) -> [usize; 2] {
        let shape = self.codes.shape();
        [shape.codes * shape.patches(), shape.patches() * shape.message]
    }

    /// Up to the message.
    fn sense(&self, observation: Observation<'_>, m: &mut PictureMemory) -> Result<(), PolicyError> {
        let (pixels, present) = self.read(observation)?;
        if let Some(studied) = &mut m.studied {
            studied.see(pixels, present);
        }
        self.codes.compute(self.level, pixels, present, &m.previous, &mut m.codes).map_err(|_| {
            PolicyError::ObservationShape {
                wanted: "at least one patch".into(),
                given: format!("none: all {} patches are missing", self.grid.len()),
            }
        })
    }

    /// From the message on.
    fn decide(&self, m: &mut PictureMemory) -> Result<(), PolicyError> {
        self.head.step(self.level, m.codes.message(), &mut m.head)?;
        let raw = m.head.raw();
        if self.config.first_choice.is_some() {
            // The first of the largest scores, as the world chooses.
            let best = raw.iter().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
            m.previous.fill(0.0);
            m.previous[best.map_or(0, |(choice, _)| choice)] = 1.0;
        } else {
            m.previous.copy_from_slice(raw);
        }
        if self.config.head.gives_scores() {
            for (action, &raw) in m.action.iter_mut().zip(raw) {
                *action = f64::from(raw);
            }
        } else {
            to_units(raw, &self.config.actions, &mut m.action);
        }
        Ok(())
    }
}

impl Policy for PictureAgent {
    type Memory = PictureMemory;

    fn memory(&self) -> PictureMemory {
        let patches = self.grid.len();
        let mut previous = vec![0.0; self.config.actions.len()];
        self.reset_previous(&mut previous);
        PictureMemory {
            codes: self.codes.scratch(),
            head: self.head.memory(),
            studied: (self.config.learns == Learns::All).then(|| {
                let area = self.config.image[0] * self.config.image[1];
                Studied {
                    stack: vec![0; self.config.frames * area],
                    present: vec![ALL; packed_len(patches)],
                    area,
                    begun: false,
                    fault: None,
                }
            }),
            previous,
            action: vec![0.0; self.config.actions.len()],
            winners: Vec::with_capacity(patches),
            ranks: (0..patches as u32).collect(),
        }
    }

    fn reset(&self, memory: &mut PictureMemory, _: Seed) {
        memory.head.reset();
        memory.studied.iter_mut().for_each(Studied::begin);
        self.reset_previous(&mut memory.previous);
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut PictureMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        self.sense(observation, m)?;
        self.decide(m)?;
        let wins = m.codes.wins();
        m.winners.clear();
        m.winners.extend((0..wins.len() as u32).filter(|&patch| wins[patch as usize] > 0));
        m.winners.sort_unstable_by_key(|&patch| (u32::MAX - wins[patch as usize], patch));
        let selected = Selected { tokens: &m.winners, ranks: &m.ranks[..m.winners.len()] };
        let attention = Attention::soft(Tokens::Patches(self.grid), 1, 1, m.codes.importance())?;
        let attention = attention.with_marked(selected)?;
        Ok(Decision::new(&m.action).with_attention(attention))
    }

    /// The weights are not divided by their sum: the message is.
    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut PictureMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        self.sense(observation, memory)?;
        let [weights, values] = self.parts();
        opened.units = self.grid.len();
        opened.hard = false;
        opened.tokens.clear();
        opened.tokens.extend_from_slice(&memory.ranks);
        opened.readers = self.codes.shape().codes;
        opened.means = true;
        opened.weights.resize(weights, 0.0);
        opened.values.resize(values, 0.0);
        self.codes.parts(self.level, &mut memory.codes, &mut opened.weights, &mut opened.values);
        opened.terms.clear();
        Ok(true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut PictureMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let [weights, values] = self.parts();
        if [opened.weights.len(), opened.values.len()] != [weights, values] {
            let why = format!(
                "{} weights and values of {} numbers, where the agent takes {weights} and {values}",
                opened.weights.len(),
                opened.values.len()
            );
            return Err(PolicyError::BadAttention { why });
        }
        self.codes.give(self.level, &opened.weights, &opened.values, &mut memory.codes);
        self.decide(memory)?;
        Ok(Decision::new(&memory.action))
    }

    fn inputs<'m>(&self, memory: &'m PictureMemory) -> &'m [f32] {
        memory.head.inputs()
    }

    fn study_inputs<'m>(&self, memory: &'m PictureMemory) -> Result<StudyInputs<'m>, PolicyError> {
        match &memory.studied {
            Some(studied) => studied.inputs(),
            None => Ok(StudyInputs { numbers: self.inputs(memory), picture: &[] }),
        }
    }

    forward_params!(|agent| agent.pack());

    fn set_threads(&mut self, threads: &Threads) {
        self.head.set_threads(threads);
    }
}

/// Reads the settings of an agent that senses a picture.
///
/// # Errors
/// As [`descriptor::read`].
pub(super) fn read(config: &Value) -> Result<Box<dyn AgentConfig>, PolicyError> {
    descriptor::read::<PictureConfig>(config)
}

/// The settings for a world with a picture of this shape.
pub(super) fn fit(spec: &EnvSpec) -> Value {
    let mut fitted = json!({ "senses": "picture", "actions": spec.action.bounds() });
    if let Some(shape) = spec.observation.image() {
        fitted["image"] = json!([shape.width, shape.height]);
        if shape.frames >= 2 {
            fitted["frames"] = json!(shape.frames);
        }
    }
    fitted
}
