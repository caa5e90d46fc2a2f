//! An agent that classifies handwritten digits, with the relational network or the convolutional one that it is compared
//! with.
//!
//! It acts by the class with the largest logit. Its [student](ClassifierStudent) lowers the cross entropy of the expert's
//! class.

use std::ops::Range;
use std::sync::Arc;

use foveate_core::{
    ActContext, Agent, Attention, Decision, Demonstration, Model, Observation, PixelShape, Policy,
    PolicyAgent, PolicyError, Seed, Student, StudyInputs, TensorShape, Tokens,
};
use foveate_kernels::Level;
use foveate_learn::Activations;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::choices::ChoiceScratch;
use super::{AttentionNode, Relational, digits, digits_baseline};
use crate::config::{bad, check_actions};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Init, Sees};
use crate::params::Params;
use crate::probabilities::probabilities;
use crate::student::check_lengths;

/// Width and height of a picture.
const SIDE: usize = 28;
const PIXELS: usize = SIDE * SIDE;
const CLASSES: usize = 10;
/// Rows and columns of the nodes that attend to each other.
const NODES: usize = 16;

/// Settings of a classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassifierConfig {
    /// Which network classifies.
    pub network: ClassifierNetwork,
    /// `[low, high]` per class: the scores for the probabilities 0 and 1.
    pub actions: Vec<[f64; 2]>,
}

impl Default for ClassifierConfig {
    fn default() -> Self {
        ClassifierConfig { network: ClassifierNetwork::Relational, actions: vec![[0.0, 1.0]; CLASSES] }
    }
}

/// Which network classifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassifierNetwork {
    /// [`digits`]: 85,228 parameters.
    #[default]
    Relational,
    /// [`digits_baseline`]: 88,252 parameters, without attention.
    Convolutional,
}

impl ClassifierNetwork {
    fn build(self) -> Relational {
        match self {
            ClassifierNetwork::Relational => digits(),
            ClassifierNetwork::Convolutional => digits_baseline(),
        }
        .expect("its sizes are fixed")
    }

    /// Pictures that go through the network together when it learns. Larger batches leave the caches and are slower.
    const fn together(self) -> usize {
        match self {
            ClassifierNetwork::Relational => 2,
            ClassifierNetwork::Convolutional => 8,
        }
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::relational::classifier::{Classifier, ClassifierConfig};
/// use foveate_core::{ActContext, Observation, PixelShape, Pixels, Policy};
///
/// let agent = Classifier::new(ClassifierConfig::default())?;
/// let shape = PixelShape { frames: 1, height: 28, width: 28, channels: 1 };
/// let picture = Pixels::new(shape, &[0; 28 * 28]).expect("as many bytes");
/// let mut memory = agent.memory();
/// let decision = agent.act(Observation::Image(picture), &mut memory, &mut ActContext::default())?;
/// assert_eq!(decision.action, [0.1; 10], "zero weights: all digits are equally likely");
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Classifier {
    config: ClassifierConfig,
    level: Level,
    params: Params,
    network: Arc<Relational>,
}

/// Scratch space of a [`Classifier`], and the outputs of its last decision. It remembers nothing from step to step.
#[derive(Debug, Clone)]
pub struct ClassifierMemory {
    picture: Vec<u8>,
    pixels: Vec<f32>,
    acts: Activations,
    logits: Vec<f32>,
    action: Vec<f64>,
    /// `[nodes]`: the largest attention that each node receives; empty without attention.
    attended: Vec<f32>,
}

impl Classifier {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: ClassifierConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let network = config.network.build();
        let params = Params::zeros(network.net.tensors().to_vec());
        Ok(Classifier { level: Level::best(), params, network: Arc::new(network), config })
    }

    /// The same agent on another instruction set, which gives the same decisions to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// The bytes of a grey picture of 28 × 28 pixels.
fn grey(observation: Observation<'_>) -> Result<&[u8], PolicyError> {
    const SHAPE: PixelShape = PixelShape { frames: 1, height: SIDE, width: SIDE, channels: 1 };
    match observation {
        Observation::Image(pixels) if pixels.shape() == SHAPE => Ok(pixels.bytes()),
        other => Err(PolicyError::ObservationShape {
            wanted: format!("a grey picture of {SIDE}x{SIDE}"),
            given: other.describe(),
        }),
    }
}

/// Bytes as numbers from 0 to 1.
fn scale(bytes: &[u8], to: &mut [f32]) {
    for (to, &byte) in to.iter_mut().zip(bytes) {
        *to = f32::from(byte) / 255.0;
    }
}

impl Policy for Classifier {
    type Memory = ClassifierMemory;

    fn memory(&self) -> ClassifierMemory {
        let nodes = if self.network.attention.is_some() { NODES * NODES } else { 0 };
        ClassifierMemory {
            picture: vec![0; PIXELS],
            pixels: vec![0.0; PIXELS],
            acts: self.network.net.activations(1),
            logits: vec![0.0; CLASSES],
            action: vec![0.0; CLASSES],
            attended: vec![0.0; nodes],
        }
    }

    fn reset(&self, _: &mut ClassifierMemory, _: Seed) {}

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut ClassifierMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let ClassifierMemory { picture, pixels, acts, logits, action, attended } = memory;
        picture.copy_from_slice(grey(observation)?);
        scale(picture, pixels);
        let Relational { net, output, attention, .. } = &*self.network;
        net.forward(self.level, self.params.flat(), &[pixels], 1, acts);
        logits.copy_from_slice(acts.get(*output));
        probabilities(logits, action);
        for (score, [low, high]) in action.iter_mut().zip(&self.config.actions) {
            *score = low + (high - low) * *score;
        }
        let decision = Decision { logits: Some(logits), ..Decision::new(action) };
        let weights = match attention {
            None => return Ok(decision),
            Some(AttentionNode::Kept(node)) => acts.kept(*node),
            Some(AttentionNode::Output(node)) => acts.get(*node),
        };
        attended.fill(0.0);
        for query in weights.chunks_exact(attended.len()) {
            for (most, &weight) in attended.iter_mut().zip(query) {
                *most = most.max(weight);
            }
        }
        let cells = Tokens::Cells { rows: NODES, columns: NODES };
        Ok(decision.with_attention(Attention::soft(cells, 1, 1, attended)?))
    }

    /// Does not classify: nothing is remembered, and the student needs the picture alone.
    fn observe(
        &self,
        observation: Observation<'_>,
        memory: &mut ClassifierMemory,
        _: &mut ActContext,
    ) -> Result<(), PolicyError> {
        memory.picture.copy_from_slice(grey(observation)?);
        Ok(())
    }

    fn study_inputs<'m>(&self, memory: &'m ClassifierMemory) -> Result<StudyInputs<'m>, PolicyError> {
        Ok(StudyInputs { numbers: &[], picture: &memory.picture })
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.params.tensors().to_vec()
    }

    fn params(&self) -> Vec<f32> {
        self.params.flat().to_vec()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }
}

/// Learns all parameters: the error of a step is the cross entropy of the softmax of the logits with the expert's class, which
/// is the first one of those with the highest score.
#[derive(Debug, Clone)]
pub struct ClassifierStudent {
    params: Params,
    level: Level,
    network: Arc<Relational>,
    /// Scratch, as all that follows.
    acts: Activations,
    scratch: ChoiceScratch,
}

impl ClassifierStudent {
    /// A student of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: &ClassifierConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let (network, together) = (Arc::new(config.network.build()), config.network.together());
        Ok(ClassifierStudent {
            params: Params::zeros(network.net.tensors().to_vec()),
            level: Level::best(),
            acts: network.net.activations(together),
            scratch: ChoiceScratch::new(&network, PIXELS, together),
            network,
        })
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

impl Model for ClassifierStudent {
    fn learns(&self) -> Range<usize> {
        0..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }
}

impl Student for ClassifierStudent {
    fn inputs(&self) -> usize {
        0
    }

    fn picture(&self) -> usize {
        PIXELS
    }

    fn actions(&self) -> usize {
        CLASSES
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        _: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let ClassifierStudent { params, level, network, acts, scratch } = self;
        assert_eq!(gradient.len(), params.flat().len(), "parameters");
        check_lengths(demonstration, [0, CLASSES], &piece);
        let taught = (demonstration, piece);
        network.study_choices(*level, params.flat(), taught, CLASSES, scale, acts, scratch, gradient)
    }
}

impl AgentConfig for ClassifierConfig {
    fn check(&self) -> Result<(), PolicyError> {
        if self.actions.len() != CLASSES {
            return bad(format!(
                "actions has {} ranges; it classifies digits, so give one [low, high] for each of {CLASSES} classes",
                self.actions.len()
            ));
        }
        check_actions(&self.actions)
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.network.build().net.tensors().to_vec()
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(Classifier::new(self.clone())?)))
    }

    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        let net = self.network.build().net;
        match init {
            Init::Torch => net.initial(seed),
            Init::He => net.initial_he(seed),
            Init::Zeros => vec![0.0; net.params()],
        }
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        Ok(Some(Box::new(ClassifierStudent::new(self)?)))
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "classifier",
    summary: "classifies digits of 28 x 28 pixels: a relational module, or a convolutional network to compare with",
    sees: Sees::Picture,
    read: descriptor::read::<ClassifierConfig>,
    fit: |spec, _| json!({ "actions": spec.action.bounds() }),
    published: &[],
};

#[cfg(test)]
mod tests {
    use foveate_core::{GradientParts, Piece, Pieces, Pixels, add_gradients};
    use foveate_learn::{Optimizer, OptimizerConfig};

    use super::*;

    const NETWORKS: [ClassifierNetwork; 2] =
        [ClassifierNetwork::Relational, ClassifierNetwork::Convolutional];

    fn config(network: ClassifierNetwork) -> ClassifierConfig {
        ClassifierConfig { network, ..ClassifierConfig::default() }
    }

    fn params(network: ClassifierNetwork) -> Vec<f32> {
        config(network).initial_params(Init::Torch, Seed::root(3))
    }

    /// `count` random pictures with a bright bar whose place is its class, as one demonstration.
    fn bars(count: usize, seed: u64) -> Demonstration {
        let mut rng = Seed::root(seed).rng();
        let mut demonstration = Demonstration { steps: count, ..Demonstration::default() };
        for _ in 0..count {
            let class = rng.below(CLASSES as u64) as usize;
            let mut picture: Vec<u8> = (0..PIXELS).map(|_| rng.below(60) as u8).collect();
            let row = (4 + 2 * class) * SIDE;
            picture[row + 3..row + 25].fill(255);
            demonstration.pictures.push(&picture);
            demonstration.actions.extend((0..CLASSES).map(|i| f32::from(u8::from(i == class))));
        }
        demonstration
    }

    fn decide(agent: &Classifier, bytes: &[u8]) -> (Vec<u64>, Vec<u32>, Option<Vec<u32>>) {
        let shape = PixelShape { frames: 1, height: SIDE, width: SIDE, channels: 1 };
        let picture = Observation::Image(Pixels::new(shape, bytes).expect("as many bytes"));
        let mut memory = agent.memory();
        let decision = agent.act(picture, &mut memory, &mut ActContext::default()).expect("it fits");
        let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect();
        (
            decision.action.iter().map(|x| x.to_bits()).collect(),
            bits(decision.logits.expect("it has logits")),
            decision.attention.map(|attention| bits(attention.weights())),
        )
    }

    #[test]
    fn every_instruction_set_decides_and_learns_the_same() {
        let demonstration = bars(3, 1);
        let mut picture = vec![0; PIXELS];
        demonstration.pictures.unpack(0, &mut picture).expect("a picture");
        for network in NETWORKS {
            let mut first = None;
            for level in Level::available() {
                let mut agent = Classifier::new(config(network)).expect("good").with_level(level);
                agent.set_params(&params(network)).expect("as many");
                let mut student = ClassifierStudent::new(&config(network)).expect("good").with_level(level);
                student.set_params(&params(network)).expect("as many");
                let mut gradient = vec![0.0; params(network).len()];
                let error = student.study(&demonstration, 0..3, 0, &mut gradient);
                let bits: Vec<u32> = gradient.iter().map(|x| x.to_bits()).collect();
                let all = (decide(&agent, &picture), error.to_bits(), bits);
                assert!(first.get_or_insert_with(|| all.clone()) == &all, "{network:?} on {level}");
            }
        }
    }

    #[test]
    fn attention_is_the_most_that_each_node_gets() {
        let mut picture = vec![0; PIXELS];
        bars(1, 2).pictures.unpack(0, &mut picture).expect("a picture");
        let mut agent = Classifier::new(ClassifierConfig::default()).expect("good");
        agent.set_params(&params(ClassifierNetwork::Relational)).expect("as many");
        let (_, _, attention) = decide(&agent, &picture);
        let attention: Vec<f32> = attention.expect("it attends").into_iter().map(f32::from_bits).collect();
        assert_eq!(attention.len(), 256);
        // Every query hands out 1 in total, so no key gets more, and the maxima sum to 1 at least.
        assert!(attention.iter().all(|x| (0.0..=1.0).contains(x)));
        assert!(attention.iter().sum::<f32>() > 0.999);
        let baseline = Classifier::new(config(ClassifierNetwork::Convolutional)).expect("good");
        assert_eq!(decide(&baseline, &picture).2, None);
    }

    /// Pieces give the same bits alone as together, and in any division over threads.
    #[test]
    fn pieces_are_added_in_order() {
        for network in NETWORKS {
            let demonstrations = [bars(1, 3), bars(3, 4), bars(1, 5)].map(Arc::new);
            let mut student = ClassifierStudent::new(&config(network)).expect("good");
            student.set_params(&params(network)).expect("as many");
            let pieces: Vec<Piece> = demonstrations
                .iter()
                .map(|demonstration| Piece {
                    steps: 0..demonstration.steps,
                    demonstration: Arc::clone(demonstration),
                })
                .collect();
            let len = params(network).len();
            let (mut together, mut alone) = (vec![0.0; len], vec![0.0; len]);
            let (mut errors, mut sums) = (vec![], vec![]);
            let parts: Arc<dyn GradientParts> =
                Arc::new(Pieces { pieces: pieces.clone(), ..Pieces::default() });
            add_gradients(&mut student, &parts, &mut together, &mut |sums| errors.push(sums[0]))
                .expect("good");
            for piece in &pieces {
                let mut own = vec![0.0; len];
                sums.push(student.clone().study(&piece.demonstration, piece.steps.clone(), 7, &mut own));
                alone.iter_mut().zip(&own).for_each(|(to, from)| *to += from);
            }
            assert_eq!((&errors, &together), (&sums, &alone), "{network:?}");
            assert!(errors.iter().all(|&error| error > 0.0) && together.iter().any(|&x| x != 0.0));
        }
    }

    /// A step against the gradient lowers the error by as much as the gradient says.
    #[test]
    fn gradients_lower_the_error() {
        for network in NETWORKS {
            let demonstration = bars(4, 6);
            let mut student = ClassifierStudent::new(&config(network)).expect("good");
            let start = params(network);
            let mut gradient = vec![0.0; start.len()];
            student.set_params(&start).expect("as many");
            student.study(&demonstration, 0..4, 0, &mut gradient);
            let length: f64 = gradient.iter().map(|&x| f64::from(x).powi(2)).sum();
            let mut error_at = |by: f64| {
                let moved: Vec<f32> = start
                    .iter()
                    .zip(&gradient)
                    .map(|(&x, &g)| (f64::from(x) + by * f64::from(g)) as f32)
                    .collect();
                student.set_params(&moved).expect("as many");
                student.study(&demonstration, 0..4, 0, &mut vec![0.0; start.len()])
            };
            let step = 0.01 / length;
            let (up, down) = (error_at(step), error_at(-step));
            let ratio = (up - down) / 0.02;
            assert!((ratio - 1.0).abs() < 0.02, "{network:?}: {ratio}");
        }
    }

    /// Steps of Adam on 30 pictures, until most are right.
    #[test]
    fn both_networks_learn_a_small_set() {
        for network in NETWORKS {
            let demonstration = bars(30, 7);
            let mut student = ClassifierStudent::new(&config(network)).expect("good");
            let mut flat = params(network);
            let mut adam = Optimizer::new(OptimizerConfig::default(), flat.len());
            let mut errors = vec![];
            for _ in 0..40 {
                let mut gradient = vec![0.0; flat.len()];
                student.set_params(&flat).expect("as many");
                errors.push(student.study(&demonstration, 0..30, 0, &mut gradient) / 30.0);
                for g in &mut gradient {
                    *g /= 30.0;
                }
                adam.step(0.003, &gradient, &mut flat);
            }
            let (first, last) = (errors[0], errors[errors.len() - 1]);
            assert!((2.0..2.8).contains(&first) && last < 0.5 * first, "{network:?}: {errors:?}");
        }
    }

    #[test]
    fn a_student_sees_what_the_agent_saw_even_when_it_did_not_act() {
        let agent = Classifier::new(ClassifierConfig::default()).expect("good");
        let shape = PixelShape { frames: 1, height: SIDE, width: SIDE, channels: 1 };
        let bytes: Vec<u8> = (0..PIXELS).map(|i| (i % 251) as u8).collect();
        let picture = Observation::Image(Pixels::new(shape, &bytes).expect("as many bytes"));
        let mut memory = agent.memory();
        agent.observe(picture, &mut memory, &mut ActContext::default()).expect("it fits");
        assert_eq!(agent.study_inputs(&memory).expect("a picture").picture, bytes);
        let tall = PixelShape { height: 29, ..shape };
        let other = vec![0; 29 * SIDE];
        let other = Observation::Image(Pixels::new(tall, &other).expect("as many bytes"));
        for said in [
            agent.observe(other, &mut memory, &mut ActContext::default()).expect_err("too tall"),
            agent.act(other, &mut memory, &mut ActContext::default()).map(drop).expect_err("too tall"),
        ] {
            let said = said.to_string();
            assert!(
                said.contains("built for a grey picture of 28x28, the world shows a grey picture of 28x29"),
                "{said}"
            );
        }
    }
}
