//! The weights of a learner by gradients: how they move, and their part of a checkpoint.

use foveate_core::{LearnError, Model, Seed, StateDict, StateReader, Tensor};
use foveate_evolve::first_out_of_range;
use foveate_learn::{Clip, Optimizer, OptimizerConfig, optimizer};

/// Weights, and the optimiser that moves them against gradients.
#[derive(Clone)]
pub struct Descent {
    /// What errors call the learner.
    pub(crate) learner: &'static str,
    pub(crate) seed: Seed,
    pub(crate) generation: u64,
    /// Steps of the optimiser.
    pub(crate) updates: u64,
    /// The same when the round began.
    begun: u64,
    /// Counters of the learner's own that are saved with these.
    pub(crate) counts: Vec<u64>,
    weights: Weights,
    average: Option<Average>,
    clip: Clip,
}

/// The weights and the optimiser, which compute in one of two precisions: each learner keeps that of its first version, and
/// with it its bits.
#[derive(Clone)]
enum Weights {
    Double {
        /// `[n_params]`
        current: Vec<f64>,
        optimizer: foveate_evolve::Optimizer,
        /// `[n_params]`: scratch.
        step: Vec<f64>,
    },
    Single {
        /// `[n_params]`
        params: Vec<f32>,
        /// `[n_params]`: the same at the end of the last round.
        current: Vec<f64>,
        optimizer: Optimizer,
        rate: f64,
    },
}

/// A moving average of the weights over all updates.
#[derive(Clone)]
struct Average {
    /// `[n_params]`
    weights: Vec<f64>,
    /// Share of the old average that an update keeps.
    keep: f64,
    /// True if it is the result of learning.
    counts: bool,
}

impl Descent {
    /// Starts at `weights`, in double precision; `learner` is its name, for errors. `optimizer` makes an optimiser of this many
    /// parameters. Gradients are clipped to a norm of 1, and the result is the average of the weights, of which an update keeps
    /// the share `averaging`.
    ///
    /// # Errors
    /// When `weights` are empty, not finite or not of the model's size.
    pub(crate) fn double(
        learner: &'static str,
        weights: Vec<f64>,
        seed: Seed,
        model: &mut dyn Model,
        optimizer: impl FnOnce(usize) -> foveate_evolve::Optimizer,
        averaging: f64,
    ) -> Result<Self, LearnError> {
        check_start(learner, &weights, model)?;
        let average = Average { weights: weights.clone(), keep: averaging, counts: true };
        let (optimizer, step) = (optimizer(weights.len()), vec![0.0; weights.len()]);
        let weights = Weights::Double { current: weights, optimizer, step };
        Ok(Descent::of(learner, seed, weights, Some(average)).with_clip(Clip::Norm(1.0)))
    }

    /// Starts at `weights`, in single precision, with the step size `rate`.
    ///
    /// # Errors
    /// When `weights` are empty, not finite or not of the model's size.
    pub(crate) fn single(
        learner: &'static str,
        weights: &[f64],
        seed: Seed,
        model: &mut dyn Model,
        optimizer: OptimizerConfig,
        rate: f64,
    ) -> Result<Self, LearnError> {
        check_start(learner, weights, model)?;
        let params = rounded(weights);
        let optimizer = Optimizer::new(optimizer, params.len());
        let weights = Weights::Single { current: widened(&params), params, optimizer, rate };
        Ok(Descent::of(learner, seed, weights, None))
    }

    fn of(learner: &'static str, seed: Seed, weights: Weights, average: Option<Average>) -> Self {
        let (generation, updates, begun, counts) = (0, 0, 0, vec![]);
        let clip = Clip::Norm(f64::INFINITY);
        Descent { learner, seed, generation, updates, begun, counts, weights, average, clip }
    }

    /// The same with another bound of gradients.
    #[must_use]
    pub(crate) fn with_clip(self, clip: Clip) -> Self {
        Descent { clip, ..self }
    }

    /// The same with an average of the weights, of which an update keeps the share `averaging`; above 0, the average is the
    /// result.
    #[must_use]
    pub(crate) fn with_average(self, averaging: f64) -> Self {
        let average = Average { weights: self.centre().to_vec(), keep: averaging, counts: averaging > 0.0 };
        Descent { average: Some(average), ..self }
    }

    /// Replaces the step size, the bound of gradients and the numbers among the settings of an optimiser in single precision.
    pub(crate) fn set(&mut self, new_rate: f64, clip: Clip, config: OptimizerConfig) {
        self.clip = clip;
        if let Weights::Single { optimizer, rate, .. } = &mut self.weights {
            optimizer.set_config(config);
            *rate = new_rate;
        }
    }

    /// The weights at which gradients are computed, as they were at the end of the last round.
    pub(crate) fn centre(&self) -> &[f64] {
        let (Weights::Double { current, .. } | Weights::Single { current, .. }) = &self.weights;
        current
    }

    /// The result of learning: the average, or the weights.
    pub(crate) fn weights(&self) -> &[f64] {
        self.average.as_ref().filter(|average| average.counts).map_or(self.centre(), |it| &it.weights)
    }

    /// The weights in single precision, of a descent that computes in it.
    ///
    /// # Panics
    /// When it computes in double precision.
    pub(crate) fn params(&self) -> &[f32] {
        let Weights::Single { params, .. } = &self.weights else { unreachable!("made in single precision") };
        params
    }

    /// Number of weights.
    pub(crate) fn len(&self) -> usize {
        self.centre().len()
    }

    /// An error of the update that is due.
    pub(crate) fn diverged(&self, what: impl std::fmt::Display) -> LearnError {
        let what = format!("{}: {what}", self.place());
        LearnError::Diverged { generation: self.generation, what }
    }

    /// What errors call the update that is due.
    pub(crate) fn place(&self) -> String {
        format!("update {} (batch {} of the round)", self.updates, self.updates - self.begun)
    }

    /// Gives the weights to `model`.
    ///
    /// # Errors
    /// When no gradient can be computed at them.
    pub(crate) fn give_to(&self, model: &mut dyn Model) -> Result<(), LearnError> {
        match &self.weights {
            Weights::Double { current, .. } => model.set_params(&rounded(current)),
            Weights::Single { params, .. } => model.set_params(params),
        }
        .map_err(|error| self.diverged(error))
    }

    /// A step against the mean of `count` gradients, whose sum is `gradient`, at which the loss is `loss`. Returns the norm of the
    /// mean before it was clipped.
    ///
    /// # Errors
    /// When the loss, the norm or a weight is not finite.
    pub(crate) fn step(&mut self, loss: f64, count: usize, gradient: &mut [f32]) -> Result<f64, LearnError> {
        if !loss.is_finite() {
            return Err(self.diverged(format!("the loss is {loss}")));
        }
        let norm = match &mut self.weights {
            Weights::Double { step, .. } => {
                let scale = 1.0 / count.max(1) as f64;
                for (step, &g) in step.iter_mut().zip(&*gradient) {
                    *step = -f64::from(g) * scale;
                }
                step.iter().map(|x| x * x).sum::<f64>().sqrt()
            }
            Weights::Single { .. } => optimizer::norm(gradient),
        };
        if !norm.is_finite() {
            return Err(self.diverged(format!("the norm of the gradient is {norm}")));
        }
        match &mut self.weights {
            Weights::Double { current, optimizer, step } => {
                if let Clip::Norm(clip) = self.clip
                    && norm > clip
                {
                    for x in &mut *step {
                        *x = *x / norm * clip;
                    }
                }
                optimizer.step(step, current);
            }
            Weights::Single { params, optimizer, rate, .. } => {
                self.clip.apply(norm, gradient);
                if !optimizer.step(*rate, gradient, params) {
                    let broken = params.iter().copied().enumerate().find(|(_, x)| !x.is_finite());
                    let (parameter, value) = broken.unwrap_or_default();
                    return Err(self.diverged(format!("the weight of parameter {parameter} is {value}")));
                }
            }
        }
        self.updates += 1;
        if let Some(Average { weights, keep, .. }) = &mut self.average {
            // In the first updates the average weighs all weights equally.
            let keep = keep.min(1.0 - 1.0 / self.updates as f64);
            let mix = |average: &mut f64, weight: f64| *average = keep * *average + (1.0 - keep) * weight;
            match &self.weights {
                Weights::Double { current, .. } => {
                    weights.iter_mut().zip(current).for_each(|(average, &weight)| mix(average, weight));
                }
                Weights::Single { params, .. } => {
                    weights.iter_mut().zip(params).for_each(|(average, &x)| mix(average, f64::from(x)));
                }
            }
        }
        Ok(norm)
    }

    /// Checks that the weights are within their range.
    ///
    /// # Errors
    /// [`LearnError::Diverged`].
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        // In single precision every update is checked.
        let Weights::Double { current, .. } = &self.weights else { return Ok(()) };
        match first_out_of_range(current) {
            None => Ok(()),
            Some((parameter, value)) => {
                let what = format!("the weight of parameter {parameter} is {value}");
                Err(LearnError::Diverged { generation: self.generation, what })
            }
        }
    }

    /// Begins a round.
    pub(crate) const fn begin_round(&mut self) {
        self.begun = self.updates;
    }

    /// Ends a round.
    pub(crate) fn end_round(&mut self) {
        self.generation += 1;
        if let Weights::Single { params, current, .. } = &mut self.weights {
            *current = widened(params);
        }
    }

    /// Its part of the state; `settings` are those of the learner as numbers.
    pub(crate) fn state(&self, settings: Vec<f64>) -> StateDict {
        let Descent { seed, generation, updates, counts, weights, average, .. } = self;
        let mut state = StateDict::from([
            ("settings".into(), Tensor::from(settings)),
            ("seed".into(), Tensor::from(vec![seed.value()])),
        ]);
        if let Some(average) = average {
            state.insert("average".into(), Tensor::from(average.weights.clone()));
        }
        match weights {
            Weights::Double { current, optimizer, .. } => {
                state.insert("mean".into(), Tensor::from(current.clone()));
                state.insert("generation".into(), Tensor::from(vec![*generation]));
                state.insert("updates".into(), Tensor::from(vec![*updates]));
                optimizer.save(&mut state);
            }
            Weights::Single { params, optimizer, .. } => {
                let counts = [&[*generation, *updates], &counts[..]].concat();
                state.insert("params".into(), Tensor::from(params.clone()));
                state.insert("counts".into(), Tensor::from(counts));
                state.extend(optimizer.state());
            }
        }
        state
    }

    /// The descent of this state.
    ///
    /// # Errors
    /// When something is missing, does not fit, or was made with other settings or another seed.
    pub(crate) fn restored(&self, state: &StateDict, settings: &[f64]) -> Result<Self, LearnError> {
        let saved = StateReader(state);
        check_saved(saved, settings, self.seed)?;
        let mut restored = self.clone();
        let count = self.len();
        match &mut restored.weights {
            Weights::Double { current, optimizer, .. } => {
                *current = saved.f64s("mean", count)?.to_vec();
                *optimizer = optimizer.restored(saved)?;
                restored.generation = saved.counters("generation", 1)?[0];
                restored.updates = saved.counters("updates", 1)?[0];
            }
            Weights::Single { params, current, optimizer, .. } => {
                let counts = saved.counters("counts", 2 + self.counts.len())?;
                *params = f32s(saved, "params", count)?;
                *current = widened(params);
                optimizer.restore(state)?;
                (restored.generation, restored.updates) = (counts[0], counts[1]);
                restored.counts.copy_from_slice(&counts[2..]);
            }
        }
        if let Some(average) = &mut restored.average {
            average.weights = saved.f64s("average", count)?.to_vec();
        }
        Ok(restored)
    }
}

/// As many saved numbers as are due.
///
/// # Errors
/// When there are none of this name, or others.
pub(crate) fn f32s(saved: StateReader<'_>, name: &str, due: usize) -> Result<Vec<f32>, LearnError> {
    let numbers = saved.f32s(name, 1)?;
    if numbers.len() != due {
        let why = format!("{name} has {} numbers, {due} are due", numbers.len());
        return Err(LearnError::BadState { why });
    }
    Ok(numbers.to_vec())
}

/// The weights in single precision. Adding 0 makes a negative zero positive.
pub(crate) fn rounded(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|&weight| (weight + 0.0) as f32).collect()
}

fn widened(params: &[f32]) -> Vec<f64> {
    params.iter().map(|&weight| f64::from(weight)).collect()
}

/// Checks the weights at which a learner starts, and gives them to its model.
///
/// # Errors
/// When they are empty, not finite or not of the model's size.
fn check_start(learner: &str, weights: &[f64], model: &mut dyn Model) -> Result<(), LearnError> {
    let refuse = |why: String| Err(LearnError::BadConfig { why });
    if weights.is_empty() {
        return refuse("there is nothing to learn: 0 parameters".into());
    }
    if let Some((i, x)) = first_out_of_range(weights) {
        return refuse(format!("parameter {i} of the start is {x}; it must be a number of at most 1e30"));
    }
    model.set_params(&rounded(weights)).or_else(|error| refuse(format!("{learner}: {error}")))
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
