//! What learners by gradients have in common: the weights, Adam with gradients clipped to a norm, a moving average of the
//! weights, and their part of a checkpoint.

use foveate_core::{
    Episodes, Experience, LearnError, Population, Progress, Purpose, Record, Seed, StateDict, StateReader,
    Student, Tensor, Work,
};
use foveate_evolve::{Optimizer, first_out_of_range};
use foveate_learn::OptimizerConfig;

use crate::recipe::Fitness;

/// The weights of a learner by gradients, and how they move.
#[derive(Clone)]
pub(crate) struct Descent {
    pub(crate) seed: Seed,
    pub(crate) generation: u64,
    /// `[n_params]`: the weights at which gradients are computed.
    pub(crate) current: Vec<f64>,
    optimizer: Optimizer,
    /// `[n_params]`: moving average of the weights over all updates.
    pub(crate) average: Vec<f64>,
    updates: u64,
    /// Largest Euclidean norm of a gradient; infinite for any.
    clip: f64,
}

impl Descent {
    /// Starts at `weights`; `learner` is its name, for errors. `optimizer` makes an optimiser of this many parameters.
    ///
    /// # Errors
    /// When `weights` are empty, not finite or not of the student's size.
    pub(crate) fn new(
        learner: &str,
        weights: Vec<f64>,
        seed: Seed,
        student: &mut dyn Student,
        optimizer: impl FnOnce(usize) -> Optimizer,
    ) -> Result<Self, LearnError> {
        check_start(learner, &weights, student)?;
        Ok(Descent {
            seed,
            generation: 0,
            average: weights.clone(),
            optimizer: optimizer(weights.len()),
            updates: 0,
            current: weights,
            clip: 1.0,
        })
    }

    /// The same with gradients clipped to another norm than 1; 0 for not at all.
    #[must_use]
    pub(crate) fn with_clip(self, clip: f64) -> Self {
        Descent { clip: if clip > 0.0 { clip } else { f64::INFINITY }, ..self }
    }

    /// The work of a round, see [`work`].
    pub(crate) fn work(&self, episodes: &Episodes<'_>, record: Record) -> Work {
        work(&self.current, episodes, record)
    }

    /// The returns of a round, see [`returns`].
    ///
    /// # Errors
    /// Those of [`returns`].
    pub(crate) fn returns(&self, learner: &str, experience: &Experience) -> Result<Vec<f64>, LearnError> {
        returns(learner, self.generation, experience)
    }

    /// A step of Adam against the mean of `count` gradients, whose sum is `gradient`. `step` (`[n_params]`) is scratch
    /// space; `averaging` is the share of the old average that is kept. Returns the norm of the mean before it was clipped.
    pub(crate) fn step(&mut self, gradient: &[f32], count: usize, averaging: f64, step: &mut [f64]) -> f64 {
        let scale = 1.0 / count.max(1) as f64;
        for (step, &g) in step.iter_mut().zip(gradient) {
            *step = -f64::from(g) * scale;
        }
        let length = step.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > self.clip {
            for x in &mut *step {
                *x = *x / length * self.clip;
            }
        }
        self.optimizer.step(step, &mut self.current);
        self.updates += 1;
        // In the first updates the average weighs all weights equally.
        let keep = averaging.min(1.0 - 1.0 / self.updates as f64);
        for (average, &weight) in self.average.iter_mut().zip(&self.current) {
            *average = keep * *average + (1.0 - keep) * weight;
        }
        length
    }

    /// Makes the weights unusable, because no gradient can be computed at them; [`Descent::check`] then says so.
    pub(crate) fn give_up(&mut self) {
        self.current.fill(f64::NAN);
    }

    /// Checks that the weights are within their range.
    ///
    /// # Errors
    /// [`LearnError::Diverged`].
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        match first_out_of_range(&self.current) {
            None => Ok(()),
            Some((parameter, value)) => {
                let what = format!("the weight of parameter {parameter} is {value}");
                Err(LearnError::Diverged { generation: self.generation, what })
            }
        }
    }

    /// Ends a round with these returns.
    pub(crate) fn end_round(&mut self, fitness: Fitness, returns: &[f64]) -> Progress {
        self.generation += 1;
        progress(self.generation, fitness, returns)
    }

    /// Its part of the state; `settings` are those of the learner as numbers.
    pub(crate) fn state(&self, settings: Vec<f64>) -> StateDict {
        let mut state = StateDict::from([
            ("mean".into(), Tensor::from(self.current.clone())),
            ("generation".into(), Tensor::from(vec![self.generation])),
            ("seed".into(), Tensor::from(vec![self.seed.value()])),
            ("settings".into(), Tensor::from(settings)),
            ("average".into(), Tensor::from(self.average.clone())),
            ("updates".into(), Tensor::from(vec![self.updates])),
        ]);
        self.optimizer.save(&mut state);
        state
    }

    /// The descent of this state.
    ///
    /// # Errors
    /// When something is missing, does not fit, or was made with other settings or another seed.
    pub(crate) fn restored(&self, saved: StateReader<'_>, settings: &[f64]) -> Result<Self, LearnError> {
        check_saved(saved, settings, self.seed)?;
        Ok(Descent {
            seed: self.seed,
            current: saved.f64s("mean", self.current.len())?.to_vec(),
            generation: saved.counters("generation", 1)?[0],
            optimizer: self.optimizer.restored(saved)?,
            average: saved.f64s("average", self.average.len())?.to_vec(),
            updates: saved.counters("updates", 1)?[0],
            clip: self.clip,
        })
    }
}

/// Weights in single precision with an optimiser of `foveate-learn`, of a learner whose rounds undo themselves when they fail.
#[derive(Clone)]
pub(crate) struct Learnt {
    pub(crate) generation: u64,
    pub(crate) updates: u64,
    /// `[n_params]`
    pub(crate) params: Vec<f32>,
    pub(crate) optimizer: foveate_learn::Optimizer,
}

impl Learnt {
    /// Before the first round.
    pub(crate) fn new(weights: &[f64], optimizer: OptimizerConfig) -> Self {
        let params = rounded(weights);
        let optimizer = foveate_learn::Optimizer::new(optimizer, params.len());
        Learnt { generation: 0, updates: 0, params, optimizer }
    }

    /// The weights in double precision.
    pub(crate) fn weights(&self) -> Vec<f64> {
        self.params.iter().map(|&weight| f64::from(weight)).collect()
    }

    /// The state; `settings` are those of the learner as numbers.
    pub(crate) fn state(&self, settings: Vec<f64>, seed: Seed) -> StateDict {
        let mut state = StateDict::from([
            ("settings".into(), Tensor::from(settings)),
            ("seed".into(), Tensor::from(vec![seed.value()])),
            ("counts".into(), Tensor::from(vec![self.generation, self.updates])),
            ("params".into(), Tensor::from(self.params.clone())),
        ]);
        state.extend(self.optimizer.state());
        state
    }

    /// What was saved by [`Learnt::state`].
    ///
    /// # Errors
    /// When something is missing, does not fit, or was made with other settings or another seed.
    pub(crate) fn restored(
        &self,
        state: &StateDict,
        settings: &[f64],
        seed: Seed,
    ) -> Result<Self, LearnError> {
        let saved = StateReader(state);
        check_saved(saved, settings, seed)?;
        let counts = saved.counters("counts", 2)?;
        let (params, due) = (saved.f32s("params", 1)?, self.params.len());
        if params.len() != due {
            let why = format!("params has {} numbers, {due} are due", params.len());
            return Err(LearnError::BadState { why });
        }
        let mut optimizer = self.optimizer.clone();
        optimizer.restore(state)?;
        Ok(Learnt { generation: counts[0], updates: counts[1], params: params.to_vec(), optimizer })
    }
}

/// Checks the weights at which a learner starts, and gives them to its student.
///
/// # Errors
/// When they are empty, not finite or not of the student's size.
pub(crate) fn check_start(
    learner: &str,
    weights: &[f64],
    student: &mut dyn Student,
) -> Result<(), LearnError> {
    let refuse = |why: String| Err(LearnError::BadConfig { why });
    if weights.is_empty() {
        return refuse("there is nothing to learn: 0 parameters".into());
    }
    if let Some((i, x)) = first_out_of_range(weights) {
        return refuse(format!("parameter {i} of the start is {x}; it must be a number of at most 1e30"));
    }
    student.set_params(&rounded(weights)).or_else(|error| refuse(format!("{learner}: {error}")))
}

/// Checks that a state was made with these settings, as numbers, and this seed.
///
/// # Errors
/// [`LearnError::BadState`] when it was not, or does not say so.
pub(crate) fn check_saved(saved: StateReader<'_>, settings: &[f64], seed: Seed) -> Result<(), LearnError> {
    let bad = |why: String| Err(LearnError::BadState { why });
    let then = saved.any_f64s("settings")?;
    if then != settings {
        return bad(format!("it was made with the settings {then:?}, these are {settings:?}"));
    }
    if saved.counts("seed", 1)?[0] != seed.value() {
        return bad("it was made with another seed".into());
    }
    Ok(())
}

/// The work of a round with one row of weights.
pub(crate) fn work(weights: &[f64], episodes: &Episodes<'_>, record: Record) -> Work {
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

/// The progress of a round with one row of weights, which are not drawn from a distribution: its width is 0.
pub(crate) fn progress(generation: u64, fitness: Fitness, returns: &[f64]) -> Progress {
    let reached = fitness.of(returns);
    Progress { generation, best: reached, mean: reached, sigma: 0.0 }
}

/// The weights in single precision. Adding 0 makes a negative zero positive.
pub(crate) fn rounded(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|&weight| (weight + 0.0) as f32).collect()
}
