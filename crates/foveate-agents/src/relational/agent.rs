//! An agent for grid worlds that values its actions with a relational module: every cell that it sees is a node, and nodes
//! attend to each other.

use std::ops::Range;
use std::sync::Arc;

use foveate_core::{
    ActContext, ActMode, Agent, Attention, Decision, Demonstration, Observation, ObservationSpace, Policy,
    PolicyAgent, PolicyError, Seed, Student, TensorShape, Tokens, ValueNetwork,
};
use foveate_kernels::Level;
use foveate_learn::Activations;
use serde_json::{Value, json};

use super::{AttentionNode, Divisor, QNetworkConfig, Relational};
use crate::config::{bad, check_params};
use crate::params::{Params, forward_params};
use crate::registry::{self, AgentConfig, AgentDescriptor, Init, Sees};

/// Most cells of a view; the attention has the square of it.
const MAX_CELLS: usize = 1024;
/// Most channels, filters, heads, features and actions.
const MAX_WIDTH: usize = 4096;

/// The agent. It takes the action of the largest value or, when it explores, any action with probability ε.
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
    params: Params,
    names: Arc<[String]>,
}

/// Scratch space, and the outputs of the last decision.
#[derive(Debug, Clone)]
pub struct RelationalMemory {
    /// One for each node: its two indices in the observation.
    names: Arc<[String]>,
    input: Vec<f32>,
    acts: Activations,
    action: Vec<f64>,
}

impl RelationalAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: QNetworkConfig) -> Result<Self, PolicyError> {
        let network = Arc::new(build(&config)?);
        let [first, second] = config.view;
        let names = (0..first).flat_map(|i| (0..second).map(move |j| format!("cell {i},{j}")));
        Ok(RelationalAgent {
            level: Level::best(),
            params: Params::zeros(network.net.tensors().to_vec()),
            names: names.collect(),
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
    config.build().or_else(|error| bad(error.to_string()))
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
            names: Arc::clone(&self.names),
            input: vec![0.0; view[0] * view[1] * channels],
            acts: self.network.net.activations(1),
            action: vec![0.0; actions],
        }
    }

    fn reset(&self, _: &mut RelationalMemory, _: Seed) {}

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut RelationalMemory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let RelationalMemory { names, input, acts, action } = memory;
        scale(self.config.divisor, codes(&self.config, observation)?, input);
        self.network.net.forward(self.level, self.params.flat(), &[input], 1, acts);
        let values = acts.get(self.network.output);
        for (to, &value) in action.iter_mut().zip(values) {
            *to = value.into();
        }
        if let ActMode::Explore { epsilon } = context.mode
            && context.rng.next_f64() < epsilon
        {
            let choice = context.rng.below(action.len() as u64) as usize;
            action.fill(0.0);
            action[choice] = 1.0;
        }
        let attention = match self.network.attention {
            Some(AttentionNode::Output(node)) => {
                let (tokens, nodes) = (Tokens::Named(names), names.len());
                Some(Attention::soft(tokens, self.config.heads, nodes, acts.get(node))?)
            }
            Some(AttentionNode::Kept(_)) | None => None,
        };
        Ok(Decision { action, attention, logits: Some(values), value: None })
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
            _ => vec![0.0; self.param_count()],
        }
    }

    fn student(&self) -> Result<Option<Box<dyn Student>>, PolicyError> {
        Ok(Some(Box::new(RelationalStudent::new(self.clone())?)))
    }
}

/// Computes the gradients of the agent's values.
#[derive(Debug, Clone)]
pub struct RelationalStudent {
    config: QNetworkConfig,
    level: Level,
    network: Arc<Relational>,
    params: Params,
    /// For the largest batch so far.
    acts: Activations,
    room: usize,
    input: Vec<f32>,
}

impl RelationalStudent {
    /// A student of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense.
    pub fn new(config: QNetworkConfig) -> Result<Self, PolicyError> {
        let network = Arc::new(build(&config)?);
        Ok(RelationalStudent {
            level: Level::best(),
            params: Params::zeros(network.net.tensors().to_vec()),
            acts: network.net.activations(1),
            room: 1,
            input: vec![],
            network,
            config,
        })
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

impl Student for RelationalStudent {
    fn inputs(&self) -> usize {
        0
    }

    fn actions(&self) -> usize {
        0
    }

    fn learns(&self) -> Range<usize> {
        0..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }

    /// It learns from the values of its actions, not from demonstrations, which have neither inputs nor actions here.
    fn study(&mut self, _: &Demonstration, _: Range<usize>, _: usize, _: &mut [f32]) -> f64 {
        0.0
    }

    fn value_network(&mut self) -> Option<&mut dyn ValueNetwork> {
        Some(self)
    }

    fn boxed_clone(&self) -> Box<dyn Student> {
        Box::new(self.clone())
    }
}

impl ValueNetwork for RelationalStudent {
    fn encoded_len(&self) -> usize {
        self.config.view[0] * self.config.view[1] * self.config.channels
    }

    fn encode(&self, observation: Observation<'_>, to: &mut Vec<u8>) -> Result<(), PolicyError> {
        to.extend_from_slice(codes(&self.config, observation)?);
        Ok(())
    }

    fn choices(&self) -> usize {
        self.config.actions
    }

    fn values(&mut self, codes: &[u8]) -> &[f32] {
        let width = self.encoded_len();
        let batch = codes.len() / width;
        assert_eq!(codes.len(), batch * width, "observations of {width} bytes");
        if batch > self.room {
            self.acts = self.network.net.activations(batch);
            self.room = batch;
        }
        self.input.resize(codes.len(), 0.0);
        for (codes, input) in codes.chunks_exact(width).zip(self.input.chunks_exact_mut(width)) {
            scale(self.config.divisor, codes, input);
        }
        self.network.net.forward(self.level, self.params.flat(), &[&self.input], batch, &mut self.acts);
        self.acts.get(self.network.output)
    }

    fn backward(&mut self, d_values: &[f32], gradient: &mut [f32]) {
        self.acts.clear_gradients();
        self.acts.gradient_mut(self.network.output).copy_from_slice(d_values);
        self.network.net.backward(self.level, self.params.flat(), &mut self.acts, gradient);
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "relational",
    summary: "values of actions from cells that attend to each other, for grid worlds; learns by gradients",
    sees: Sees::Grid,
    read: registry::read::<QNetworkConfig>,
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
    use foveate_core::Grid;

    use super::*;

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

    #[test]
    fn the_agent_takes_the_action_that_the_student_values_most() {
        for divisor in [Divisor::Largest, Divisor::Ten, Divisor::One] {
            let config = QNetworkConfig { divisor, ..small() };
            let params = config.initial_params(Init::Torch, Seed::root(1));
            let mut student = RelationalStudent::new(config.clone()).expect("small");
            student.set_params(&params).expect("its own");
            let views = views(5);
            let values = student.values(&views).to_vec();
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
            student.values(&views);
            let mut gradient = vec![0.0; params.len()];
            student.backward(&slopes, &mut gradient);
            assert!(gradient.iter().any(|&g| g != 0.0));
            assert_eq!(*expect.get_or_insert_with(|| gradient.clone()), gradient, "{level:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_in_a_line() {
        for (config, why) in [
            (QNetworkConfig { view: [0, 7], ..small() }, "view = [0, 7], which has 0 cells"),
            (QNetworkConfig { view: [usize::MAX, 7], ..small() }, "choose 1 to 1024"),
            (QNetworkConfig { heads: 0, ..small() }, "heads = 0; choose from 1 to 4096"),
            (QNetworkConfig { head_dim: 5000, ..small() }, "head_dim = 5000"),
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
