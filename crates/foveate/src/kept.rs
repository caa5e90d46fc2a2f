//! Answers of agents that are asked the same questions again.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use foveate_core::{ActContext, Agent, Decision, Observation, PolicyError, Seed, TensorShape, Threads};

/// An agent that is never asked the same question twice: for those whose action depends on the observation alone, which have no
/// attention, and which take long to answer.
pub(crate) struct KeptAnswers {
    agent: Box<dyn Agent>,
    /// By observation; copies share them.
    answers: Arc<Mutex<BTreeMap<[u64; 2], Vec<f64>>>>,
    action: Vec<f64>,
}

impl KeptAnswers {
    /// Keeps the answers of `agent`.
    pub(crate) fn of(agent: Box<dyn Agent>) -> Self {
        KeptAnswers { agent, answers: Arc::default(), action: vec![] }
    }
}

/// What tells one observation from another.
fn question(observation: Observation<'_>) -> [u64; 2] {
    [0, 1].map(|key| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(key);
        write(&mut hasher, observation);
        hasher.finish()
    })
}

fn write(hasher: &mut impl Hasher, observation: Observation<'_>) {
    match observation {
        Observation::Image(pixels) => hasher.write(pixels.bytes()),
        Observation::Grid(grid) => hasher.write(grid.codes()),
        Observation::Vector(numbers) => {
            for number in numbers {
                hasher.write_u32(number.to_bits());
            }
        }
        Observation::Dict(parts) => {
            for (name, part) in (0..parts.count()).filter_map(|i| parts.part(i)) {
                hasher.write(name.as_bytes());
                write(hasher, part);
            }
        }
    }
}

impl Agent for KeptAnswers {
    fn begin_episode(&mut self, episode: Seed) {
        self.agent.begin_episode(episode);
    }

    fn act(
        &mut self,
        observation: Observation<'_>,
        context: &mut ActContext,
    ) -> Result<Decision<'_>, PolicyError> {
        let asked = question(observation);
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers().get(&asked).map(|action| self.action.clone_from(action)).is_some();
        if !known {
            self.action.clear();
            self.action.extend_from_slice(self.agent.act(observation, context)?.action);
            answers().insert(asked, self.action.clone());
        }
        Ok(Decision::new(&self.action))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.agent.tensors()
    }

    fn params(&self) -> Vec<f32> {
        self.agent.params()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        // The answers of others are not its own.
        self.answers = Arc::default();
        self.agent.set_params(flat)
    }

    fn set_threads(&mut self, threads: &Threads) {
        self.agent.set_threads(threads);
    }

    fn boxed_clone(&self) -> Box<dyn Agent> {
        let Self { agent, answers, action } = self;
        Box::new(KeptAnswers {
            agent: agent.boxed_clone(),
            answers: Arc::clone(answers),
            action: action.clone(),
        })
    }
}
