//! The learner by gradients: what imitation, deep Q-learning, policy gradients, V-trace and gradients through a world have in
//! common, besides [their weights](crate::descent). Each of them is a [`Method`].

#[cfg(test)]
mod tests;

use std::sync::Arc;

use foveate_core::{
    Episodes, Experience, GradientParts, LearnError, Learner, LossSums, Model, Population, Progress, Purpose,
    Record, Recording, Seed, StateDict, StopRequest, Unroll, Work, add_gradients,
};

use crate::descent::{Descent, rounded};
use crate::recipe::values::Fitness;

/// How weights learn by gradients from the experience of a round.
pub trait Method: Send {
    /// What is recorded of the episodes of the round that is due.
    fn record(&self, descent: &Descent) -> Record;

    /// Probability of a random action in training.
    fn epsilon(&self) -> f64 {
        0.0
    }

    /// Its settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64>;

    /// Learns from the experience of a round; returns numbers for the log.
    ///
    /// # Errors
    /// When the experience does not fit, or learning diverges; [`Method::end`] then takes back what changed.
    fn learn(&mut self, round: &mut Round<'_>, experience: Experience) -> Result<Measures, LearnError>;

    /// Keeps what a round changes, besides the weights, until [`Method::end`].
    fn begin(&mut self) {}

    /// Ends a round: takes back what changed since [`Method::begin`] unless it was `learnt`.
    fn end(&mut self, learnt: bool) {
        let _ = learnt;
    }

    /// Adds to `state` what it learnt besides the weights.
    fn save(&self, state: &mut StateDict) {
        let _ = state;
    }

    /// Restores what [`Method::save`] wrote; `descent` is the restored one, which is not in use yet.
    ///
    /// # Errors
    /// When something is missing or does not fit; nothing is changed then.
    fn restore(&mut self, state: &StateDict, descent: &Descent) -> Result<(), LearnError> {
        let _ = (state, descent);
        Ok(())
    }
}

/// Numbers for the log, by name.
pub(crate) type Measures = Vec<(&'static str, f64)>;

/// What a [`Method`] learns with.
pub struct Round<'a> {
    /// The weights.
    pub(crate) descent: &'a mut Descent,
    /// The agent's model.
    pub(crate) model: &'a mut dyn Model,
    /// `[n_params]`: the gradient of the last update.
    pub(crate) gradient: &'a mut Vec<f32>,
    /// Set when the user asks to stop.
    pub(crate) stop: &'a StopRequest,
}

impl Round<'_> {
    /// Begins an update: gives the weights to the model.
    ///
    /// # Errors
    /// When the user asked to stop, or no gradient can be computed at the weights.
    pub(crate) fn begin_update(&mut self) -> Result<(), LearnError> {
        self.stop.check()?;
        self.descent.give_to(self.model)
    }

    /// A step of the optimiser against the gradient of all `parts`, whose loss is the first of their sums; `count` is by how much
    /// the gradient is divided. Returns the sums over the parts, and the norm of the gradient.
    ///
    /// # Errors
    /// When no gradient can be computed, or learning diverges.
    pub(crate) fn update(
        &mut self,
        parts: &Arc<dyn GradientParts>,
        count: usize,
    ) -> Result<(LossSums, f64), LearnError> {
        let mut sums = LossSums::default();
        self.add_gradients(parts, &mut |of_part| add(&mut sums, of_part))?;
        let norm = self.descent.step(sums[0], count, self.gradient)?;
        Ok((sums, norm))
    }

    /// Computes the gradient of all `parts`, without a step; see [`add_gradients`].
    ///
    /// # Errors
    /// When no gradient can be computed.
    pub(crate) fn add_gradients(
        &mut self,
        parts: &Arc<dyn GradientParts>,
        receive: &mut dyn FnMut(&LossSums),
    ) -> Result<(), LearnError> {
        self.gradient.resize(self.descent.len(), 0.0);
        add_gradients(self.model, parts, self.gradient, receive).map_err(|error| LearnError::Gradient {
            generation: self.descent.generation,
            why: format!("{}: {error}", self.descent.place()),
        })
    }
}

/// Adds numbers about a part, or an update, to their sums.
pub(crate) fn add(sums: &mut LossSums, more: &LossSums) {
    sums.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
}

/// A learner by gradients.
pub struct Learning<M> {
    pub(crate) method: M,
    pub(crate) descent: Descent,
    pub(crate) model: Box<dyn Model>,
    /// How the returns of a round are reduced to the reported number.
    fitness: Fitness,
    /// Of the last round.
    measures: Measures,
    /// `[n_params]`: scratch.
    gradient: Vec<f32>,
    stop: StopRequest,
}

impl<M: Method> Learning<M> {
    /// A learner by `method` that begins at the weights of `descent`, which fit the model.
    pub(crate) fn of(method: M, descent: Descent, model: Box<dyn Model>) -> Self {
        let (fitness, measures, gradient, stop) = (Fitness::Mean, vec![], vec![], StopRequest::default());
        Learning { method, descent, model, fitness, measures, gradient, stop }
    }

    /// The same with another number that it reports of a round.
    #[must_use]
    pub(crate) fn with_fitness(self, fitness: Fitness) -> Self {
        Learning { fitness, ..self }
    }
}

impl<M: Method> Learner for Learning<M> {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        let record = self.method.record(&self.descent);
        Work { epsilon: self.method.epsilon(), ..work(self.descent.centre(), episodes, record) }
    }

    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError> {
        let returns = returns(self.descent.learner, self.descent.generation, &experience)?;
        let before = self.descent.clone();
        self.method.begin();
        let Learning { method, descent, model, gradient, stop, .. } = self;
        descent.begin_round();
        let mut round = Round { descent, model: &mut **model, gradient, stop };
        let learnt = method.learn(&mut round, experience).and_then(|measures| {
            self.descent.check()?;
            Ok(measures)
        });
        self.method.end(learnt.is_ok());
        match learnt {
            Ok(measures) => self.measures = measures,
            Err(error) => {
                self.descent = before;
                return Err(error);
            }
        }
        self.descent.end_round();
        let reached = self.fitness.of(&returns);
        // The one row of weights is not drawn from a distribution, so its width is 0.
        Ok(Progress { generation: self.descent.generation, best: reached, mean: reached, sigma: 0.0 })
    }

    fn stop_when(&mut self, asked: &StopRequest) {
        self.stop = asked.clone();
    }

    fn weights(&self) -> &[f64] {
        self.descent.weights()
    }

    fn centre(&self) -> &[f64] {
        self.descent.centre()
    }

    fn generation(&self) -> u64 {
        self.descent.generation
    }

    fn measures(&self) -> Measures {
        self.measures.clone()
    }

    fn state(&self) -> StateDict {
        let mut state = self.descent.state(self.method.numbers());
        self.method.save(&mut state);
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        let descent = self.descent.restored(state, &self.method.numbers())?;
        self.method.restore(state, &descent)?;
        self.descent = descent;
        Ok(())
    }
}

/// The work of a round with one row of weights.
fn work(weights: &[f64], episodes: &Episodes<'_>, record: Record) -> Work {
    Work {
        purpose: Purpose::Training,
        weights: Population::of(&rounded(weights)),
        jobs: episodes.jobs(1),
        rules: episodes.rules,
        record,
        epsilon: 0.0,
        draw_actions: false,
    }
}

/// The returns of a round, at least one; `learner` is what errors call it.
///
/// # Errors
/// When there is none, or one is not finite.
pub(crate) fn returns(
    learner: &str,
    generation: u64,
    experience: &Experience,
) -> Result<Vec<f64>, LearnError> {
    let returns: Vec<f64> = experience.episodes.iter().map(|episode| episode.total).collect();
    if returns.is_empty() {
        return Err(LearnError::Experience { why: format!("a round of {learner} without any episode") });
    }
    match returns.iter().enumerate().find(|(_, r)| !r.is_finite()) {
        Some((job, &value)) => Err(LearnError::ReturnNotFinite { job, generation, value }),
        None => Ok(returns),
    }
}

/// The unrolls of each episode of a round.
///
/// # Errors
/// When there is not one recording for each episode, or one holds something else.
pub(crate) fn transitions(learner: &str, experience: Experience) -> Result<Vec<Vec<Unroll>>, LearnError> {
    let refused = |why: String| LearnError::Experience { why };
    let (given, wanted) = (experience.recordings.len(), experience.episodes.len());
    if given != wanted {
        return Err(refused(format!("{given} recordings of {wanted} episodes")));
    }
    let unrolls = |recording| match recording {
        Recording::Transitions(unrolls) => Ok(unrolls),
        _ => Err(refused(format!("{learner} learns from transitions, not from other recordings"))),
    };
    experience.recordings.into_iter().map(unrolls).collect()
}

/// Checks the lengths and the rewards of an unroll.
///
/// # Errors
/// When it has no step, its parts have different lengths, or a reward is not finite.
pub(crate) fn check_unroll(unroll: &Unroll) -> Result<(), LearnError> {
    let refused = |why: String| Err(LearnError::Experience { why });
    let n = unroll.len();
    if n == 0 || unroll.observations.len() != n + 1 || unroll.rewards.len() != n {
        return refused(format!(
            "an unroll of {n} steps with {} observations and {} rewards",
            unroll.observations.len(),
            unroll.rewards.len()
        ));
    }
    match unroll.rewards.iter().enumerate().find(|(_, x)| !x.is_finite()) {
        Some((t, reward)) => refused(format!("the reward of step {t} is {reward}")),
        None => Ok(()),
    }
}

/// Deals `all` out at random, with draws of this seed (Fisher and Yates).
pub(crate) fn shuffle<T>(all: &mut [T], seed: Seed) {
    let mut rng = seed.rng();
    for i in (1..all.len()).rev() {
        all.swap(i, rng.below(i as u64 + 1) as usize);
    }
}
