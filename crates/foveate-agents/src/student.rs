//! Gradients of the LSTM behind a bottleneck, as that of an [`AttentionAgent`](crate::AttentionAgent), for learning from an
//! expert.
//!
//! Selecting patches has no gradient, so the attention does not learn; the layers behind it do. Of 3,667 parameters of the
//! CarRacing agent, 2,483 learn.

use std::ops::Range;

use foveate_core::{Demonstration, Model, Outputs, PolicyError, Student, Taught, TensorShape};
use foveate_kernels::Level;
use foveate_kernels::lstm_gradient::{Gradient, Learner, Targets};

use crate::AttentionAgentConfig;
use crate::descriptor::AgentConfig;
use crate::gaze_student::GazeStudent;
use crate::params::Params;

/// Learns the tensors `lstm.*` and `output.*`, which lie one behind the other in the flat vector.
///
/// `lstm.bias_ih` and `lstm.bias_hh` are only ever added, so `bias_ih` alone learns; the gradient of `bias_hh` is 0.
#[derive(Debug, Clone)]
pub struct LstmStudent {
    params: Params,
    level: Level,
    learner: Learner,
    /// Numbers per step.
    inputs: usize,
    /// `[low, high]` per action dimension.
    actions: Vec<[f64; 2]>,
    /// `[steps, actions]`: the expert's actions, in −1 ..= 1. Scratch.
    wanted: Vec<f32>,
    /// `[steps, actions]`: how much each of them matters. Scratch.
    weights: Vec<f32>,
    /// The student of the attention before the LSTM.
    gaze: Option<GazeStudent>,
}

impl LstmStudent {
    /// A student of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: &AttentionAgentConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let inputs = config.bottleneck().outputs();
        let gaze = GazeStudent::new(config.bottleneck(), config.tensors(), config.actions.len())?;
        Ok(Self::of(config.tensors(), inputs, config.hidden, config.actions.clone()).with_gaze(gaze))
    }

    /// The student of an agent whose `tensors` have an LSTM from `inputs` to `hidden` numbers, followed by its output
    /// layer.
    pub(crate) fn of(
        tensors: Vec<TensorShape>,
        inputs: usize,
        hidden: usize,
        actions: Vec<[f64; 2]>,
    ) -> Self {
        LstmStudent {
            params: Params::zeros(tensors),
            level: Level::best(),
            learner: Learner::new(inputs, hidden, actions.len()),
            inputs,
            actions,
            wanted: vec![],
            weights: vec![],
            gaze: None,
        }
    }

    /// The same with a student of the attention before the LSTM.
    #[must_use]
    pub(crate) fn with_gaze(mut self, gaze: Option<GazeStudent>) -> Self {
        self.gaze = gaze;
        self
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// Checks the lengths of a demonstration of `[inputs, actions]` numbers per step.
///
/// # Panics
/// When they do not fit, or `piece` is none of its steps: see [`Student::study`].
pub(crate) fn check_lengths(
    demonstration: &Demonstration,
    [inputs, actions]: [usize; 2],
    piece: &Range<usize>,
) {
    let steps = demonstration.steps;
    assert_eq!(demonstration.inputs.len(), steps * inputs, "inputs of {steps} steps");
    assert_eq!(demonstration.actions.len(), steps * actions, "actions of {steps} steps");
    assert!(piece.start <= piece.end && piece.end <= steps, "{piece:?} of {steps}");
}

/// Appends the expert's actions of the steps `piece` to `wanted`, from −1 for the lowest to 1 for the highest.
pub(crate) fn scaled(
    demonstration: &Demonstration,
    piece: Range<usize>,
    actions: &[[f64; 2]],
    wanted: &mut Vec<f32>,
) {
    let n = actions.len();
    for action in demonstration.actions[piece.start * n..piece.end * n].chunks_exact(n) {
        wanted.extend(action.iter().zip(actions).map(|(&action, &[low, high])| {
            ((f64::from(action) - f64::midpoint(low, high)) / ((high - low) / 2.0)) as f32
        }));
    }
}

/// The expert's choices in the steps `piece`: the first one of those with the highest of `n` scores.
pub(crate) fn chosen(
    demonstration: &Demonstration,
    piece: Range<usize>,
    n: usize,
) -> impl Iterator<Item = usize> {
    let scores = demonstration.actions[piece.start * n..piece.end * n].chunks_exact(n);
    scores.map(highest)
}

/// The first one with the highest score of at least one.
pub(crate) fn highest(scores: &[f32]) -> usize {
    (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

/// Adds the gradient of `loss` on consecutive steps, from the state `memory` on, to `gradient`, and returns the loss; `loss` gets
/// the network's outputs and writes their derivatives. The values learn nothing from it.
pub(crate) fn study_outputs(
    network: &mut impl Outputs,
    steps: usize,
    inputs: &[f32],
    memory: &[f32],
    loss: impl FnOnce(&[f32], &mut [f32]) -> f64,
    gradient: &mut [f32],
) -> f64 {
    let outputs = &network.forward(steps, inputs, memory).outputs;
    let mut d_outputs = vec![0.0; outputs.len()];
    let loss = loss(outputs, &mut d_outputs);
    let mut own = vec![0.0; gradient.len()];
    network.backward(&d_outputs, &vec![0.0; steps], &mut own);
    for (sum, own) in gradient.iter_mut().zip(&own) {
        *sum += own;
    }
    loss
}

/// Appends what the scores of `costs.len()` choices are to be in a step, from 1 for one that costs nothing to −1 for the most
/// expensive, and how much they matter: as much as that costs. So scores that are learnt by squared error rank choices by their
/// expected costs. All but the expert's choice cost [`LEAST_STAKE`] more, so that it decides where nothing is at stake.
fn scores_of_costs(costs: &[f32], chosen: usize, wanted: &mut Vec<f32>, weights: &mut Vec<f32>) {
    let cost = |(choice, &cost): (usize, &f32)| cost + if choice == chosen { 0.0 } else { LEAST_STAKE };
    let most = costs.iter().enumerate().map(cost).fold(LEAST_STAKE, f32::max);
    wanted.extend(costs.iter().enumerate().map(|choice| 1.0 - 2.0 * cost(choice) / most));
    weights.extend(costs.iter().map(|_| most));
}

/// Added to what is at stake, so that steps in which nothing is at stake are not arbitrary.
const LEAST_STAKE: f32 = 0.02;

/// How much an action matters: by how much the most expensive of its values costs more than the cheapest.
fn stake(&[a, b, c]: &[f32; 3]) -> f32 {
    a.max(b).max(c) - a.min(b).min(c) + LEAST_STAKE
}

impl Model for LstmStudent {
    fn learns(&self) -> Range<usize> {
        self.params.place("lstm.bias_hh").start..self.params.place("output.weight").end
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)?;
        self.learner.set(self.params.lstm(), self.params.linear("output.weight", "output.bias"));
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }

    fn taught(&self, what: Taught) -> Option<Box<dyn Model>> {
        if what != Taught::Gaze {
            return None;
        }
        Some(self.gaze.as_ref()?.boxed_clone())
    }
}

impl Student for LstmStudent {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn actions(&self) -> usize {
        self.actions.len()
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let LstmStudent { params, level, learner, inputs, actions, wanted, weights, .. } = self;
        let inputs = *inputs;
        check_lengths(demonstration, [inputs, actions.len()], &piece);
        assert_eq!(gradient.len(), params.flat().len(), "parameters");
        wanted.clear();
        scaled(demonstration, piece.clone(), actions, wanted);
        let x = &demonstration.inputs[piece.start.saturating_sub(burn_in) * inputs..piece.end * inputs];
        let places = ["lstm.weight_ih", "lstm.weight_hh", "lstm.bias_ih", "output.weight", "output.bias"]
            .map(|name| params.place(name));
        let [weight_ih, weight_hh, bias_ih, output_weight, output_bias] =
            gradient.get_disjoint_mut(places).expect("tensors do not overlap");
        let gradient = Gradient { weight_ih, weight_hh, bias_ih, output_weight, output_bias };
        let n = actions.len();
        weights.clear();
        if demonstration.costs.len() == demonstration.steps * n {
            wanted.clear();
            let costs = demonstration.costs[piece.start * n..piece.end * n].chunks_exact(n);
            for (costs, choice) in costs.zip(chosen(demonstration, piece.clone(), n)) {
                scores_of_costs(costs, choice, wanted, weights);
            }
        } else if !demonstration.costs.is_empty() {
            let costs = &demonstration.costs.as_chunks::<3>().0[piece.start * n..piece.end * n];
            weights.extend(costs.iter().map(stake));
        }
        let targets =
            if weights.is_empty() { Targets::Actions(wanted) } else { Targets::Weighted(wanted, weights) };
        learner.study(*level, x, targets, gradient)
    }
}
