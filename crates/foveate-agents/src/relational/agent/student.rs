//! Gradients of the agent's values, of their cross entropy with an expert's choices, and of its policy and its critic.

use std::ops::Range;
use std::sync::Arc;

use foveate_core::{
    ActionDistribution, Demonstration, LastStep, Model, Observation, OutputKind, Outputs, PolicyError,
    Predictions, Student,
};
use foveate_kernels::Level;
use foveate_kernels::elementwise::add;
use foveate_learn::Activations;

use super::super::choices::ChoiceScratch;
use super::super::{QNetworkConfig, Relational};
use super::{TOGETHER, build, codes, scale};
use crate::params::Params;
use crate::student::check_lengths;

/// Computes the gradients of the agent's values, those of their cross entropy with an expert's choices, and with a critic those
/// of its policy and of the values of states.
#[derive(Debug, Clone)]
pub struct RelationalStudent {
    config: QNetworkConfig,
    pub(super) level: Level,
    pub(super) network: Arc<Relational>,
    params: Params,
    batch: Batch,
    scratch: ChoiceScratch,
    /// The last batch, as the learner gets and gives it.
    predictions: Predictions,
    /// `[batch, width]`
    codes: Vec<u8>,
    /// `[batch, outputs]`
    d_rows: Vec<f32>,
}

/// The last batch. Equal observations have equal values, so each goes through the network once.
#[derive(Debug, Clone, Default)]
struct Batch {
    /// Of [`TOGETHER`] distinct observations each.
    acts: Vec<Activations>,
    /// True if they are of the whole batch, not of a part of it.
    kept: bool,
    /// `[batch]`: which of the distinct observations each one is, in the order in which they first appear.
    places: Vec<usize>,
    /// The first of each distinct observation.
    firsts: Vec<usize>,
    order: Vec<usize>,
    /// `[batch, outputs]`: the values of the actions, then that of the state if there is a critic.
    rows: Vec<f32>,
    /// `[distinct, outputs]`: first the outputs, then their derivatives.
    distinct: Vec<f32>,
}

impl Batch {
    /// Finds which of the observations in `codes`, of `width` bytes each, are equal.
    fn merge(&mut self, codes: &[u8], width: usize) {
        let Batch { places, firsts, order, .. } = self;
        let row = |at: usize| &codes[at * width..][..width];
        let batch = codes.len() / width;
        order.clear();
        order.extend(0..batch);
        order.sort_unstable_by(|&a, &b| row(a).cmp(row(b)).then(a.cmp(&b)));
        places.clear();
        places.resize(batch, 0);
        // First each one's first equal, then that one's number.
        for pair in 0..batch {
            let at = order[pair];
            let same = pair > 0 && row(order[pair - 1]) == row(at);
            places[at] = if same { places[order[pair - 1]] } else { at };
        }
        firsts.clear();
        for at in 0..batch {
            places[at] = if places[at] == at {
                firsts.push(at);
                firsts.len() - 1
            } else {
                places[places[at]]
            };
        }
    }
}

impl RelationalStudent {
    /// A student of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense.
    pub fn new(config: QNetworkConfig) -> Result<Self, PolicyError> {
        let network = Arc::new(build(&config)?);
        let width = config.view[0] * config.view[1] * config.channels;
        Ok(RelationalStudent {
            level: Level::best(),
            params: Params::zeros(network.net.tensors().to_vec()),
            batch: Batch { acts: vec![network.net.activations(TOGETHER)], ..Batch::default() },
            scratch: ChoiceScratch::new(&network, width, TOGETHER),
            predictions: Predictions::default(),
            codes: vec![],
            d_rows: vec![],
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

    fn width(&self) -> usize {
        self.scratch.bytes.len()
    }

    /// Numbers of a row of outputs: the values of the actions, then that of the state if there is a critic.
    fn row_len(&self) -> usize {
        self.config.actions + usize::from(self.config.critic)
    }

    /// The outputs of a batch, `[batch, outputs]`; `keep`s what the backward pass needs.
    fn compute(&mut self, codes: &[u8], keep: bool) -> &[f32] {
        let (width, outputs) = (self.width(), self.row_len());
        assert!(codes.len().is_multiple_of(width), "{} bytes for observations of {width}", codes.len());
        let RelationalStudent { config, level, network, params, batch, scratch, .. } = self;
        let input = &mut scratch.input;
        batch.merge(codes, width);
        let Batch { acts, kept, places, firsts, rows, distinct, .. } = batch;
        while keep && acts.len() * TOGETHER < firsts.len() {
            acts.push(network.net.activations(TOGETHER));
        }
        *kept = keep;
        distinct.clear();
        for (part, firsts) in firsts.chunks(TOGETHER).enumerate() {
            for (&first, input) in firsts.iter().zip(input.chunks_exact_mut(width)) {
                scale(config.divisor, &codes[first * width..][..width], input);
            }
            let acts = &mut acts[if keep { part } else { 0 }];
            let input = &input[..firsts.len() * width];
            network.net.forward(*level, params.flat(), &[input], firsts.len(), acts);
            for (at, values) in acts.get(network.output).chunks_exact(config.actions).enumerate() {
                distinct.extend_from_slice(values);
                distinct.extend(network.critic.map(|critic| acts.get(critic)[at]));
            }
        }
        rows.clear();
        for &place in &*places {
            rows.extend_from_slice(&distinct[place * outputs..][..outputs]);
        }
        rows
    }

    /// Adds to `gradient` that of a loss whose derivatives with respect to the last batch are `d_rows`, `[batch, outputs]`.
    fn pull(&mut self, d_rows: &[f32], gradient: &mut [f32]) {
        let outputs = self.row_len();
        let RelationalStudent { config, level, network, params, batch, .. } = self;
        let Batch { acts, kept, places, firsts, distinct, .. } = batch;
        assert_eq!(d_rows.len(), places.len() * outputs, "derivatives of the last batch");
        assert!(*kept, "the last values were computed alone");
        distinct.fill(0.0);
        for (&place, d_row) in places.iter().zip(d_rows.chunks_exact(outputs)) {
            add(&mut distinct[place * outputs..][..outputs], d_row);
        }
        let parts = distinct.chunks(TOGETHER * outputs).take(firsts.len().div_ceil(TOGETHER));
        for (part, d_rows) in parts.enumerate() {
            if d_rows.iter().all(|&d| d == 0.0) {
                continue;
            }
            // The first one's gradients serve all, so that they stay in the caches.
            let (first, rest) = acts.split_first_mut().expect("there is one from the beginning");
            let mut lent = part.checked_sub(1).map(|part| &mut rest[part]);
            if let Some(acts) = &mut lent {
                acts.swap_gradients(first);
            }
            let acts = lent.as_deref_mut().unwrap_or(&mut *first);
            acts.clear_gradients();
            let d_values = acts.gradient_mut(network.output).chunks_exact_mut(config.actions);
            for (to, d_row) in d_values.zip(d_rows.chunks_exact(outputs)) {
                to.copy_from_slice(&d_row[..config.actions]);
            }
            if let Some(critic) = network.critic {
                for (to, d_row) in acts.gradient_mut(critic).iter_mut().zip(d_rows.chunks_exact(outputs)) {
                    *to = d_row[config.actions];
                }
            }
            network.net.backward(*level, params.flat(), acts, gradient);
            if let Some(acts) = lent {
                acts.swap_gradients(first);
            }
        }
    }

    /// Fills [`RelationalStudent::predictions`] with those of a batch of encoded observations.
    fn predict(&mut self, inputs: &[f32], keep: bool) {
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        codes.extend(inputs.iter().map(|&code| code as u8));
        self.compute(&codes, keep);
        self.codes = codes;
        let (choices, all) = (self.config.actions, self.row_len());
        let Predictions { outputs, values, .. } = &mut self.predictions;
        outputs.clear();
        values.clear();
        for row in self.batch.rows.chunks_exact(all) {
            let (of_choices, of_state) = row.split_at(choices);
            outputs.extend_from_slice(of_choices);
            values.extend_from_slice(of_state);
        }
    }
}

impl Model for RelationalStudent {
    fn learns(&self) -> Range<usize> {
        0..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn outputs(&mut self) -> Option<&mut dyn Outputs> {
        Some(self)
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }
}

impl Student for RelationalStudent {
    fn inputs(&self) -> usize {
        0
    }

    fn picture(&self) -> usize {
        self.width()
    }

    fn actions(&self) -> usize {
        self.config.actions
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        _: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let RelationalStudent { config, level, network, params, batch, scratch, .. } = self;
        assert_eq!(gradient.len(), params.flat().len(), "parameters");
        check_lengths(demonstration, [0, config.actions], &piece);
        let scale = |codes: &[u8], to: &mut [f32]| scale(config.divisor, codes, to);
        let (taught, acts) = ((demonstration, piece), &mut batch.acts[0]);
        network.study_choices(*level, params.flat(), taught, config.actions, scale, acts, scratch, gradient)
    }
}

/// An encoded observation is its codes, as numbers.
impl Outputs for RelationalStudent {
    fn kind(&self) -> OutputKind {
        let choices = self.config.actions;
        if self.config.critic {
            OutputKind::Policy(ActionDistribution::Choices(choices))
        } else {
            OutputKind::Values(choices)
        }
    }

    fn encoded_len(&self) -> usize {
        self.width()
    }

    fn encode(
        &self,
        _: LastStep<'_>,
        observation: Observation<'_>,
        to: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        to.extend(codes(&self.config, observation)?.iter().map(|&code| f32::from(code)));
        Ok(())
    }

    fn forward(&mut self, steps: usize, inputs: &[f32], memories: &[f32]) -> &Predictions {
        let width = self.width();
        assert!(inputs.len().is_multiple_of(steps * width), "{steps} steps of observations of {width} codes");
        assert!(memories.is_empty(), "it has no memory");
        self.predict(inputs, true);
        &self.predictions
    }

    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        if !self.config.critic {
            return self.pull(d_outputs, gradient);
        }
        let mut d_rows = std::mem::take(&mut self.d_rows);
        d_rows.clear();
        for (d_outputs, d_value) in d_outputs.chunks_exact(self.config.actions).zip(d_values) {
            d_rows.extend_from_slice(d_outputs);
            d_rows.push(*d_value);
        }
        self.pull(&d_rows, gradient);
        self.d_rows = d_rows;
    }

    fn follow(&mut self, inputs: &[f32], to: &mut Predictions) {
        self.predict(inputs, false);
        to.clone_from(&self.predictions);
    }

    fn encodes_bytes(&self) -> bool {
        true
    }
}
