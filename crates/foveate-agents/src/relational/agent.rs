//! An agent for grid worlds that values its actions with a relational module: every cell that it sees is a node, and nodes
//! attend to each other.
//!
//! It learns from transitions, as a [`Model`] of values, or from an expert: then its values are
//! logits, and their error is the cross entropy of the expert's choice. With a critic it learns by policy gradients, as a
//! [`Model`] of a policy.

mod graph;
mod student;

use std::sync::Arc;

use foveate_core::{
    ActContext, ActMode, Agent, Attention, Decision, EnvSpec, Model, Observation, ObservationSpace, Opened,
    Policy, PolicyAgent, PolicyError, Rng, Seed, StudyInputs, TensorShape, Tokens,
};
use foveate_kernels::Level;
use foveate_learn::Activations;
use serde_json::{Value, json};

use super::{AttentionNode, Divisor, Halves, QNetworkConfig, Relational};
use crate::config::{bad, check_params};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Init, Sees};
use crate::onnx::OnnxModel;
use crate::params::{Params, forward_params};
use crate::torch::TorchModule;

pub use student::RelationalStudent;

/// Most cells of a view; the attention has the square of it.
const MAX_CELLS: usize = 1024;
/// Most channels, filters, heads, features and actions.
const MAX_WIDTH: usize = 4096;
/// Highest temperature.
const MAX_TEMPERATURE: f64 = 1e6;
/// Observations that go through the network together when it learns; larger batches leave the caches and are slower.
const TOGETHER: usize = 4;

/// The agent. It takes the action of the largest value, or draws one if its configuration has a temperature; when it
/// explores, it takes any action with probability ε.
///
/// A policy without memory that always takes the best action runs in circles where it does not see what it needs; one that
/// draws its actions does not. The draws depend on the seed of the episode alone.
///
/// Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::relational::{QNetworkConfig, agent::RelationalAgent};
/// use foveate_core::{ActContext, Grid, Observation, Policy};
///
/// let agent = RelationalAgent::new(QNetworkConfig::default())?;
/// let mut memory = agent.memory();
/// let view = Grid::new(7, 7, 3, &[1; 147]).expect("49 cells of 3 codes");
/// let decision = agent.act(Observation::Grid(view), &mut memory, &mut ActContext::default())?;
/// assert_eq!(decision.action.len(), 5);
/// let attention = decision.attention.expect("nodes attend to nodes");
/// assert_eq!((attention.heads(), attention.queries(), attention.tokens().len()), (3, 49, 49));
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RelationalAgent {
    config: QNetworkConfig,
    level: Level,
    network: Arc<Relational>,
    /// For decisions that are opened.
    halves: Arc<Halves>,
    params: Params,
}

/// Scratch space, and the outputs of the last decision.
#[derive(Debug, Clone)]
pub struct RelationalMemory {
    /// Draws the actions, if there is a temperature.
    rng: Rng,
    /// The codes of the last observation.
    codes: Vec<u8>,
    input: Vec<f32>,
    acts: Activations,
    /// Of the halves, once a decision was opened.
    halves: Option<Box<Opening>>,
    action: Vec<f64>,
}

/// What the halves compute, and the values as the second takes them, `[heads, nodes, head_dim]`.
#[derive(Debug, Clone)]
struct Opening {
    acts: [Activations; 2],
    values: Vec<f32>,
}

impl RelationalAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: QNetworkConfig) -> Result<Self, PolicyError> {
        let network = Arc::new(build(&config)?);
        let halves = Arc::new(config.halves().or_else(|error| bad(error.to_string()))?);
        Ok(RelationalAgent {
            halves,
            level: Level::best(),
            params: Params::zeros(network.net.tensors().to_vec()),
            network,
            config,
        })
    }

    /// The same agent on another instruction set, which gives the same decisions to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    fn opening(&self) -> Opening {
        let QNetworkConfig { view, heads, head_dim, .. } = self.config;
        let Halves { front, back, .. } = &*self.halves;
        let acts = [front.activations(1), back.activations(1)];
        Opening { acts, values: vec![0.0; heads * view[0] * view[1] * head_dim] }
    }

    /// Writes the action: the values, a draw from their softmax, or any choice when it explores.
    fn choose(&self, values: &[f32], rng: &mut Rng, action: &mut [f64], context: &mut ActContext) {
        if self.config.temperature > 0.0 {
            let choice = draw(values, self.config.temperature, rng, action);
            action.fill(0.0);
            action[choice] = 1.0;
        } else {
            for (to, &value) in action.iter_mut().zip(values) {
                *to = value.into();
            }
        }
        if let ActMode::Explore { epsilon } = context.mode
            && context.rng.next_f64() < epsilon
        {
            let choice = context.rng.below(action.len() as u64) as usize;
            action.fill(0.0);
            action[choice] = 1.0;
        }
    }
}

/// `[a, b, width]` to `[b, a, width]`.
fn rearrange(from: &[f32], [a, b]: [usize; 2], width: usize, to: &mut [f32]) {
    for (i, numbers) in from.chunks_exact(width).enumerate() {
        let at = i % b * a + i / b;
        to[at * width..][..width].copy_from_slice(numbers);
    }
}

/// The network of a valid configuration.
fn build(config: &QNetworkConfig) -> Result<Relational, PolicyError> {
    let QNetworkConfig { view, channels, actions, filters, heads, head_dim, score_dim, features, .. } =
        *config;
    let cells = view[0].saturating_mul(view[1]);
    if !(1..=MAX_CELLS).contains(&cells) {
        return bad(format!("view = {view:?}, which has {cells} cells; choose 1 to {MAX_CELLS}"));
    }
    for (name, value) in [
        ("channels", channels),
        ("actions", actions),
        ("filters[0]", filters[0]),
        ("filters[1]", filters[1]),
        ("heads", heads),
        ("head_dim", head_dim),
        ("score_dim", score_dim),
        ("features", features),
    ] {
        if !(1..=MAX_WIDTH).contains(&value) {
            return bad(format!("{name} = {value}; choose from 1 to {MAX_WIDTH}"));
        }
    }
    let temperature = config.temperature;
    if !(0.0..=MAX_TEMPERATURE).contains(&temperature) {
        return bad(format!("temperature = {temperature}; choose from 0 to {MAX_TEMPERATURE}"));
    }
    if config.critic && temperature != 1.0 {
        return bad(format!(
            "critic = true with temperature = {temperature}; policy gradients learn logits, so choose 1"
        ));
    }
    config.build().or_else(|error| bad(error.to_string()))
}

/// Draws a choice from the softmax of `values / temperature`; `weights` is scratch space of the same length.
fn draw(values: &[f32], temperature: f64, rng: &mut Rng, weights: &mut [f64]) -> usize {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (weight, &value) in weights.iter_mut().zip(values) {
        *weight = (f64::from(value - most) / temperature).exp();
    }
    rng.weighted(weights)
}

/// The codes of a view of this configuration.
fn codes<'a>(config: &QNetworkConfig, observation: Observation<'a>) -> Result<&'a [u8], PolicyError> {
    let ([rows, columns], channels) = (config.view, config.channels);
    match observation {
        Observation::Grid(grid)
            if [grid.rows(), grid.columns(), grid.channels()] == [rows, columns, channels] =>
        {
            Ok(grid.codes())
        }
        _ => Err(PolicyError::ObservationShape {
            wanted: format!("a grid of {rows}x{columns} cells with {channels} codes each"),
            given: observation.describe(),
        }),
    }
}

/// Writes the numbers of one observation for the network.
fn scale(divisor: Divisor, codes: &[u8], input: &mut [f32]) {
    let divisor = match divisor {
        Divisor::Largest => f32::from(codes.iter().copied().max().unwrap_or(1).max(1)),
        Divisor::Ten => 10.0,
        Divisor::One => 1.0,
    };
    for (to, &code) in input.iter_mut().zip(codes) {
        *to = f32::from(code) / divisor;
    }
}

impl Policy for RelationalAgent {
    type Memory = RelationalMemory;

    fn memory(&self) -> RelationalMemory {
        let QNetworkConfig { view, channels, actions, .. } = self.config;
        RelationalMemory {
            rng: Seed::root(0).rng(),
            codes: vec![0; view[0] * view[1] * channels],
            input: vec![0.0; view[0] * view[1] * channels],
            acts: self.network.net.activations(1),
            halves: None,
            action: vec![0.0; actions],
        }
    }

    fn reset(&self, memory: &mut RelationalMemory, episode: Seed) {
        memory.rng = episode.child("actions", 0).rng();
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut RelationalMemory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let RelationalMemory { rng, codes: seen, input, acts, action, .. } = memory;
        seen.copy_from_slice(codes(&self.config, observation)?);
        scale(self.config.divisor, seen, input);
        self.network.net.forward(self.level, self.params.flat(), &[input], 1, acts);
        let values = acts.get(self.network.output);
        self.choose(values, rng, action, context);
        let weights = match self.network.attention {
            Some(AttentionNode::Output(node)) => Some(acts.get(node)),
            Some(AttentionNode::Kept(node)) => Some(acts.kept(node)),
            None => None,
        };
        let [rows, columns] = self.config.view;
        let nodes = Tokens::Grid { rows, columns };
        let soft = |weights| Attention::soft(nodes, self.config.heads, nodes.len(), weights);
        let attention = weights.map(soft).transpose()?;
        let value = self.network.critic.map(|critic| acts.get(critic)[0]);
        Ok(Decision { action, attention, logits: Some(values), value })
    }

    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut RelationalMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        let RelationalMemory { codes: seen, input, halves, .. } = memory;
        seen.copy_from_slice(codes(&self.config, observation)?);
        scale(self.config.divisor, seen, input);
        let Opening { acts: [acts, _], .. } = &mut **halves.get_or_insert_with(|| Box::new(self.opening()));
        let Halves { front, attention, values, .. } = &*self.halves;
        front.forward(self.level, &self.params.flat()[..front.params()], &[input], 1, acts);
        let weights = match *attention {
            AttentionNode::Output(node) => acts.get(node),
            AttentionNode::Kept(node) => acts.kept(node),
        };
        let QNetworkConfig { view, heads, head_dim, .. } = self.config;
        let nodes = view[0] * view[1];
        opened.units = nodes;
        opened.hard = false;
        opened.means = false;
        opened.tokens.clear();
        opened.tokens.extend(0..nodes as u32);
        opened.readers = heads * nodes;
        opened.weights.clear();
        opened.weights.extend_from_slice(&weights[..heads * nodes * nodes]);
        opened.values.resize(nodes * heads * head_dim, 0.0);
        rearrange(acts.get(*values), [heads, nodes], head_dim, &mut opened.values);
        opened.terms.clear();
        Ok(true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut RelationalMemory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let QNetworkConfig { view, heads, head_dim, .. } = self.config;
        let nodes = view[0] * view[1];
        if [opened.weights.len(), opened.values.len()] != [heads * nodes * nodes, nodes * heads * head_dim] {
            let why = format!(
                "{} weights and values of {} numbers, where the agent takes {} and {}",
                opened.weights.len(),
                opened.values.len(),
                heads * nodes * nodes,
                nodes * heads * head_dim
            );
            return Err(PolicyError::BadAttention { why });
        }
        let RelationalMemory { rng, halves, action, .. } = memory;
        let Opening { acts: [_, acts], values } =
            &mut **halves.get_or_insert_with(|| Box::new(self.opening()));
        rearrange(&opened.values, [nodes, heads], head_dim, values);
        let Halves { back, output, critic, .. } = &*self.halves;
        let flat = self.params.flat();
        let inputs = [&opened.weights[..], values];
        back.forward(self.level, &flat[flat.len() - back.params()..], &inputs, 1, acts);
        let values = acts.get(*output);
        self.choose(values, rng, action, context);
        let value = critic.map(|critic| acts.get(critic)[0]);
        Ok(Decision { action, attention: None, logits: Some(values), value })
    }

    /// Does not decide: nothing but the generator is remembered, and the student needs the observation alone.
    fn observe(
        &self,
        observation: Observation<'_>,
        memory: &mut RelationalMemory,
        _: &mut ActContext,
    ) -> Result<(), PolicyError> {
        memory.codes.copy_from_slice(codes(&self.config, observation)?);
        if self.config.temperature > 0.0 {
            // As many random numbers as a decision draws.
            memory.rng.next_f64();
        }
        Ok(())
    }

    fn study_inputs<'m>(&self, memory: &'m RelationalMemory) -> Result<StudyInputs<'m>, PolicyError> {
        Ok(StudyInputs { numbers: &[], picture: &memory.codes })
    }

    forward_params!();
}

impl AgentConfig for QNetworkConfig {
    fn check(&self) -> Result<(), PolicyError> {
        check_params(self::build(self)?.net.tensors(), "lower head_dim")
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self::build(self).map_or_else(|_| vec![], |network| network.net.tensors().to_vec())
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(RelationalAgent::new(self.clone())?)))
    }

    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        match (init, self::build(self)) {
            (Init::Torch, Ok(network)) => network.net.initial(seed),
            (Init::He, Ok(network)) => network.net.initial_he(seed),
            _ => vec![0.0; self.param_count()],
        }
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        Ok(Some(Box::new(RelationalStudent::new(self.clone())?)))
    }

    fn onnx(&self, params: &[f32], spec: &EnvSpec) -> Result<Option<OnnxModel>, PolicyError> {
        graph::model(self, params, spec).map(Some)
    }

    fn torch(&self) -> Result<Option<TorchModule>, PolicyError> {
        let source = include_str!("../../../foveate-py/python/foveate/torch/relational.py");
        Ok(Some(TorchModule::new("Relational", "relational", source, false)))
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "relational",
    summary: "values of actions from cells that attend to each other, for grid worlds; learns by gradients",
    sees: Sees::Grid,
    read: descriptor::read::<QNetworkConfig>,
    fit: |spec, _| {
        let actions = spec.action.len();
        match spec.observation {
            ObservationSpace::Grid { rows, columns, channels } => {
                json!({ "view": [rows, columns], "channels": channels, "actions": actions })
            }
            _ => json!({ "actions": actions }),
        }
    },
    published: &[],
};

#[cfg(test)]
mod tests {
    use foveate_core::{Demonstration, Grid, LastStep, Model, OutputKind, Outputs, Predictions, Student};
    use foveate_learn::{Optimizer, OptimizerConfig};

    use super::*;
    use crate::relational::Scores;

    fn small() -> QNetworkConfig {
        QNetworkConfig {
            view: [3, 2],
            actions: 4,
            filters: [3, 2],
            heads: 2,
            head_dim: 5,
            features: 6,
            ..QNetworkConfig::default()
        }
    }

    fn views(count: usize) -> Vec<u8> {
        let mut rng = Seed::root(3).rng();
        (0..count * 18).map(|_| rng.below(9) as u8).collect()
    }

    fn numbers(codes: &[u8]) -> Vec<f32> {
        codes.iter().map(|&code| f32::from(code)).collect()
    }

    /// The values of these observations.
    fn forward(student: &mut RelationalStudent, codes: &[u8]) -> Vec<f32> {
        student.forward(1, &numbers(codes), &[]).outputs.clone()
    }

    #[test]
    fn the_agent_takes_the_action_that_the_student_values_most() {
        for divisor in [Divisor::Largest, Divisor::Ten, Divisor::One] {
            let config = QNetworkConfig { divisor, ..small() };
            let params = config.initial_params(Init::Torch, Seed::root(1));
            let mut student = RelationalStudent::new(config.clone()).expect("small");
            student.set_params(&params).expect("its own");
            let views = views(5);
            let values = forward(&mut student, &views);
            for level in Level::available() {
                let mut agent = RelationalAgent::new(config.clone()).expect("small").with_level(level);
                agent.set_params(&params).expect("its own");
                let mut memory = agent.memory();
                for (view, values) in views.chunks_exact(18).zip(values.chunks_exact(4)) {
                    let view = Observation::Grid(Grid::new(3, 2, 3, view).expect("18 codes"));
                    let decision = agent.act(view, &mut memory, &mut ActContext::default()).expect("it fits");
                    assert_eq!(decision.logits, Some(values), "{level:?}");
                    let attention = decision.attention.expect("nodes attend");
                    assert_eq!((attention.heads(), attention.queries()), (2, 6));
                }
            }
        }
    }

    /// Opening a decision and resuming it is deciding, to the bit; what is resumed decides.
    #[test]
    fn a_decision_can_be_opened() {
        for scores in [Scores::Indices, Scores::Pairs, Scores::Products] {
            let kinds = [(0.0, false), (0.5, false), (1.0, true)];
            for (level, (temperature, critic)) in
                Level::available().flat_map(|level| kinds.map(|kind| (level, kind)))
            {
                let config = QNetworkConfig { scores, temperature, critic, ..small() };
                let mut agent = RelationalAgent::new(config.clone()).expect("small").with_level(level);
                agent.set_params(&config.initial_params(Init::Torch, Seed::root(1))).expect("its own");
                let (mut whole, mut parts) = (agent.memory(), agent.memory());
                let mut context = ActContext::new(Seed::root(2), ActMode::Explore { epsilon: 0.3 });
                let mut again = context.clone();
                let (mut opened, mut moved) = (Opened::default(), 0);
                for view in views(5).chunks_exact(18) {
                    let view = Observation::Grid(Grid::new(3, 2, 3, view).expect("18 codes"));
                    assert!(agent.open(view, &mut parts, &again, &mut opened).expect("it fits"));
                    let decision = agent.act(view, &mut whole, &mut context).expect("it fits");
                    assert_eq!((opened.units, opened.readers, opened.hard), (6, 12, false));
                    assert_eq!(opened.tokens, [0, 1, 2, 3, 4, 5]);
                    assert_eq!((opened.values.len(), opened.width()), (6 * 2 * 5, 10));
                    assert_eq!(opened.weights, decision.attention.expect("nodes attend").weights());
                    assert_eq!(decision.value.is_some(), critic);
                    let value = decision.value;
                    let decided = (decision.action.to_vec(), decision.logits.map(<[f32]>::to_vec));
                    let mut changed = opened.clone();
                    changed.values[20..30].iter_mut().for_each(|x| *x += 1.0);
                    let (mut other, mut then) = (parts.clone(), again.clone());
                    let swapped = agent.resume(&changed, &mut other, &mut then).expect("as many");
                    moved += usize::from(swapped.logits.map(<[f32]>::to_vec) != decided.1);
                    let mut changed = opened.clone();
                    changed.weights.fill(0.0);
                    let (mut other, mut then) = (parts.clone(), again.clone());
                    let swapped = agent.resume(&changed, &mut other, &mut then).expect("as many");
                    assert_ne!(swapped.logits.map(<[f32]>::to_vec), decided.1, "{scores:?}");
                    for wrong in [
                        Opened { values: opened.values[1..].to_vec(), ..opened.clone() },
                        Opened { weights: vec![], ..opened.clone() },
                    ] {
                        let (mut other, mut then) = (parts.clone(), again.clone());
                        let refused = agent.resume(&wrong, &mut other, &mut then);
                        let said = refused.expect_err("too few").to_string();
                        assert!(said.contains("where the agent takes 72 and 60"), "{said}");
                    }
                    let resumed = agent.resume(&opened, &mut parts, &mut again).expect("its own");
                    assert_eq!(resumed.value, value, "{scores:?}, {level}");
                    let resumed = (resumed.action.to_vec(), resumed.logits.map(<[f32]>::to_vec));
                    assert_eq!(resumed, decided, "{scores:?}, {level}");
                    assert_eq!(whole.rng.clone().next_f64(), parts.rng.clone().next_f64());
                    assert_eq!(context.rng.clone().next_f64(), again.rng.clone().next_f64());
                }
                assert!(moved > 0, "{scores:?}");
            }
        }
    }

    #[test]
    fn epsilon_is_the_share_of_random_actions() {
        let config = small();
        let mut agent = RelationalAgent::new(config.clone()).expect("small");
        agent.set_params(&config.initial_params(Init::Torch, Seed::root(1))).expect("its own");
        let (mut memory, views) = (agent.memory(), views(1));
        let view = Observation::Grid(Grid::new(3, 2, 3, &views).expect("18 codes"));
        let mut count = |epsilon: f64| {
            let mut context = ActContext::new(Seed::root(2), ActMode::Explore { epsilon });
            let mut counts = [0; 4];
            for _ in 0..2000 {
                let decision = agent.act(view, &mut memory, &mut context).expect("it fits");
                let best = (0..4).max_by(|&a, &b| decision.action[a].total_cmp(&decision.action[b]));
                counts[best.expect("four")] += 1;
            }
            counts.sort_unstable();
            counts
        };
        assert_eq!(count(0.0), [0, 0, 0, 2000]);
        let counts = count(0.4);
        assert!((1320..1480).contains(&counts[3]) && counts[0] > 150, "{counts:?}");
        let counts = count(1.0);
        assert!(counts.iter().all(|n| (430..570).contains(n)), "{counts:?}");
    }

    #[test]
    fn gradients_of_a_batch_are_the_same_on_every_level() {
        let config = small();
        let params = config.initial_params(Init::Torch, Seed::root(1));
        let views = views(7);
        let slopes: Vec<f32> = (0..28).map(|i| (i as f32 * 0.7).sin()).collect();
        let mut expect: Option<Vec<f32>> = None;
        for level in Level::available() {
            let mut student = RelationalStudent::new(config.clone()).expect("small").with_level(level);
            student.set_params(&params).expect("its own");
            forward(&mut student, &views);
            let mut gradient = vec![0.0; params.len()];
            student.backward(&slopes, &[], &mut gradient);
            assert!(gradient.iter().any(|&g| g != 0.0));
            assert_eq!(*expect.get_or_insert_with(|| gradient.clone()), gradient, "{level:?}");
        }
    }

    /// Whatever the parts in which a batch is computed, and however often an observation is in it.
    #[test]
    fn a_batch_has_the_gradient_of_its_observations() {
        for scores in [Scores::Indices, Scores::Products] {
            let config = QNetworkConfig { scores, ..small() };
            let params = config.initial_params(Init::Torch, Seed::root(1));
            let mut student = RelationalStudent::new(config.clone()).expect("small");
            student.set_params(&params).expect("its own");
            let views = views(6);
            let slopes: Vec<f32> = (0..24).map(|i| (i as f32 * 0.7).sin()).collect();
            // At once, without parts.
            let Relational { net, output, .. } = &*student.network;
            let mut acts = net.activations(6);
            let input: Vec<f32> = views.iter().map(|&code| f32::from(code) / 10.0).collect();
            net.forward(student.level, &params, &[&input], 6, &mut acts);
            let values = acts.get(*output).to_vec();
            let mut expect = vec![0.0; params.len()];
            acts.clear_gradients();
            acts.gradient_mut(*output).copy_from_slice(&slopes);
            net.backward(student.level, &params, &mut acts, &mut expect);

            let mut gradient = vec![0.0; params.len()];
            let (mut alone, codes) = (Predictions::default(), numbers(&views));
            student.follow(&codes, &mut alone);
            assert_eq!((alone.outputs, alone.values), (values.clone(), vec![]));
            assert_eq!(forward(&mut student, &views), values);
            student.backward(&slopes, &[], &mut gradient);
            assert_eq!(gradient, expect, "distinct observations");

            // The same slopes, each in two halves.
            let twice = [&views[..], &views[..]].concat();
            let halves: Vec<f32> = slopes.iter().chain(&slopes).map(|slope| slope / 2.0).collect();
            gradient.fill(0.0);
            assert_eq!(forward(&mut student, &twice), [&values[..], &values[..]].concat());
            student.backward(&halves, &[], &mut gradient);
            assert_eq!(gradient, expect, "each twice");
        }
    }

    /// With a critic: what it predicts is what the agent decides by, and its gradient is that of the network, whatever the parts
    /// in which a batch is computed and however often an observation is in it.
    #[test]
    fn with_a_critic_it_learns_policies() {
        for scores in [Scores::Indices, Scores::Products] {
            let config = QNetworkConfig { scores, temperature: 1.0, critic: true, ..small() };
            let params = config.initial_params(Init::Torch, Seed::root(1));
            let mut student = RelationalStudent::new(config.clone()).expect("small");
            assert!(matches!(student.kind(), OutputKind::Policy(_)), "its outputs are logits");
            student.set_params(&params).expect("its own");
            let mut agent = RelationalAgent::new(config).expect("small");
            agent.set_params(&params).expect("its own");
            let (mut memory, codes) = (agent.memory(), views(6));
            let (mut inputs, mut predictions) = (vec![], Predictions::default());
            let learnt = student.outputs().expect("it has some");
            for view in codes.chunks_exact(18) {
                let view = Observation::Grid(Grid::new(3, 2, 3, view).expect("18 codes"));
                learnt.encode(LastStep::default(), view, &mut inputs).expect("it fits");
            }
            learnt.follow(&inputs, &mut predictions);
            assert_eq!(*learnt.forward(1, &inputs, &[]), predictions);
            for (at, view) in codes.chunks_exact(18).enumerate() {
                let view = Observation::Grid(Grid::new(3, 2, 3, view).expect("18 codes"));
                let decision = agent.act(view, &mut memory, &mut ActContext::default()).expect("it fits");
                assert_eq!(decision.logits, Some(&predictions.outputs[4 * at..][..4]));
                assert_eq!(decision.value, Some(predictions.values[at]));
            }
            let d_outputs: Vec<f32> = (0..24).map(|i| (i as f32 * 0.7).sin()).collect();
            let d_values: Vec<f32> = (0..6).map(|i| (i as f32 * 1.3).cos()).collect();
            let mut gradient = vec![0.0; params.len()];
            learnt.backward(&d_outputs, &d_values, &mut gradient);

            let Relational { net, output, critic, .. } = &*student.network;
            let mut acts = net.activations(6);
            let numbers: Vec<f32> = codes.iter().map(|&code| f32::from(code) / 10.0).collect();
            net.forward(student.level, &params, &[&numbers], 6, &mut acts);
            let mut expect = vec![0.0; params.len()];
            acts.clear_gradients();
            acts.gradient_mut(*output).copy_from_slice(&d_outputs);
            acts.gradient_mut(critic.expect("it has one")).copy_from_slice(&d_values);
            net.backward(student.level, &params, &mut acts, &mut expect);
            assert_eq!(gradient, expect, "distinct observations");

            let twice = |numbers: &[f32]| [numbers, numbers].concat();
            let half = |numbers: &[f32]| numbers.iter().map(|x| x / 2.0).collect::<Vec<_>>();
            gradient.fill(0.0);
            let learnt = student.outputs().expect("it has some");
            assert_eq!(learnt.forward(1, &twice(&inputs), &[]).values, twice(&predictions.values));
            learnt.backward(&twice(&half(&d_outputs)), &twice(&half(&d_values)), &mut gradient);
            assert_eq!(gradient, expect, "each twice");
        }
    }

    /// The gradient of the cross entropy is that of its differences, and learning from an expert's choices lowers it.
    #[test]
    fn it_learns_the_choices_of_an_expert() {
        let config = QNetworkConfig { divisor: Divisor::One, ..small() };
        let mut params = config.initial_params(Init::Torch, Seed::root(1));
        let mut student = RelationalStudent::new(config).expect("small");
        assert_eq!((student.inputs(), student.picture(), student.actions()), (0, 18, 4));
        let mut demonstration = Demonstration { steps: 12, ..Demonstration::default() };
        for (at, view) in views(12).chunks_exact(18).enumerate() {
            demonstration.pictures.push(view);
            demonstration.actions.extend((0..4).map(|i| f32::from(u8::from(i == at % 4))));
        }
        let mut error_at = |params: &[f32], gradient: &mut [f32]| {
            student.set_params(params).expect("finite");
            student.study(&demonstration, 0..12, 0, gradient)
        };
        let mut gradient = vec![0.0; params.len()];
        let first = error_at(&params, &mut gradient);
        // Along the gradient the error grows by the square of its norm.
        let norm: f64 = gradient.iter().map(|&g| f64::from(g).powi(2)).sum();
        let step = 1e-3 / norm.sqrt();
        let moved = |sign: f64| -> Vec<f32> {
            params
                .iter()
                .zip(&gradient)
                .map(|(&p, &g)| (f64::from(p) + sign * step * f64::from(g)) as f32)
                .collect()
        };
        let mut unused = vec![0.0; params.len()];
        let slope = (error_at(&moved(1.0), &mut unused) - error_at(&moved(-1.0), &mut unused)) / (2.0 * step);
        assert!((slope / norm - 1.0).abs() < 0.02, "{slope} and {norm}");

        let mut optimizer = Optimizer::new(OptimizerConfig::default(), params.len());
        for _ in 0..200 {
            gradient.fill(0.0);
            error_at(&params, &mut gradient);
            optimizer.step(0.01, &gradient, &mut params);
        }
        let last = error_at(&params, &mut gradient);
        assert!(last < 0.1 * first, "from {first} to {last}");
    }

    /// A temperature draws actions in proportion to exp(value / temperature), and equal seeds draw equal actions.
    #[test]
    fn a_temperature_draws_from_the_softmax() {
        let config = QNetworkConfig { temperature: 0.5, ..small() };
        let params = config.initial_params(Init::Torch, Seed::root(1));
        let mut agent = RelationalAgent::new(config).expect("small");
        agent.set_params(&params).expect("its own");
        let views = views(1);
        let view = Observation::Grid(Grid::new(3, 2, 3, &views).expect("18 codes"));
        let mut memory = agent.memory();
        let mut play = |episode: u64| {
            agent.reset(&mut memory, Seed::root(episode));
            let (mut chosen, mut shares) = (vec![], [0.0; 4]);
            for step in 0..4000 {
                if step % 7 == 3 {
                    agent.observe(view, &mut memory, &mut ActContext::default()).expect("it fits");
                    continue;
                }
                let decision = agent.act(view, &mut memory, &mut ActContext::default()).expect("it fits");
                let logits = decision.logits.expect("values");
                shares = std::array::from_fn(|i| (f64::from(logits[i]) / 0.5).exp());
                chosen.push(decision.action.iter().position(|&x| x == 1.0).expect("one"));
            }
            (chosen, shares)
        };
        let (chosen, shares) = play(1);
        assert_eq!(chosen, play(1).0);
        assert_ne!(chosen, play(2).0);
        let sum: f64 = shares.iter().sum();
        for (choice, share) in shares.into_iter().enumerate() {
            let count = chosen.iter().filter(|&&c| c == choice).count() as f64 / chosen.len() as f64;
            assert!((count - share / sum).abs() < 0.03, "{choice}: {count}, not {}", share / sum);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_in_a_line() {
        for (config, why) in [
            (QNetworkConfig { view: [0, 7], ..small() }, "view = [0, 7], which has 0 cells"),
            (QNetworkConfig { view: [usize::MAX, 7], ..small() }, "choose 1 to 1024"),
            (QNetworkConfig { heads: 0, ..small() }, "heads = 0; choose from 1 to 4096"),
            (QNetworkConfig { head_dim: 5000, ..small() }, "head_dim = 5000"),
            (QNetworkConfig { temperature: -1.0, ..small() }, "temperature = -1; choose from 0"),
            (QNetworkConfig { temperature: f64::NAN, ..small() }, "temperature = NaN; choose from 0"),
            (QNetworkConfig { critic: true, ..small() }, "critic = true with temperature = 0;"),
        ] {
            let said = RelationalAgent::new(config).expect_err(why).to_string();
            assert!(said.contains(why), "{said}");
        }
        let agent = RelationalAgent::new(small()).expect("small");
        let said = agent
            .act(Observation::Vector(&[0.0; 18]), &mut agent.memory(), &mut ActContext::default())
            .expect_err("numbers")
            .to_string();
        assert!(
            said.contains("a grid of 3x2 cells with 3 codes each") && said.contains("18 numbers"),
            "{said}"
        );
    }
}
