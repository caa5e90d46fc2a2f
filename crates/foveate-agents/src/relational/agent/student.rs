//! Gradients of the agent's values, and of their cross entropy with an expert's choices.

use std::ops::Range;
use std::sync::Arc;

use foveate_core::{Demonstration, Observation, PolicyError, Student, ValueNetwork};
use foveate_kernels::Level;
use foveate_kernels::elementwise::add;
use foveate_learn::Activations;

use super::super::choices::ChoiceScratch;
use super::super::{QNetworkConfig, Relational};
use super::{TOGETHER, build, codes, scale};
use crate::params::Params;
use crate::student::check_lengths;

/// Computes the gradients of the agent's values, and those of their cross entropy with an expert's choices.
#[derive(Debug, Clone)]
pub struct RelationalStudent {
    config: QNetworkConfig,
    pub(super) level: Level,
    pub(super) network: Arc<Relational>,
    params: Params,
    batch: Batch,
    scratch: ChoiceScratch,
}

/// The last batch. Equal observations have equal values, so each goes through the network once.
#[derive(Debug, Clone, Default)]
struct Batch {
    /// Of [`TOGETHER`] distinct observations each.
    acts: Vec<Activations>,
    /// Whether they are of the whole batch, not of a part of it.
    kept: bool,
    /// `[batch]`: which of the distinct observations each one is, in the order in which they first appear.
    places: Vec<usize>,
    /// The first of each distinct observation.
    firsts: Vec<usize>,
    order: Vec<usize>,
    /// `[batch, choices]`
    values: Vec<f32>,
    /// `[distinct, choices]`: first the values, then their derivatives.
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

    /// The values of a batch; `keep`s what the backward pass needs.
    fn forward(&mut self, codes: &[u8], keep: bool) -> &[f32] {
        let (width, choices) = (self.width(), self.config.actions);
        assert!(codes.len().is_multiple_of(width), "{} bytes for observations of {width}", codes.len());
        let RelationalStudent { config, level, network, params, batch, scratch } = self;
        let input = &mut scratch.input;
        batch.merge(codes, width);
        let Batch { acts, kept, places, firsts, values, distinct, .. } = batch;
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
            distinct.extend_from_slice(acts.get(network.output));
        }
        values.clear();
        for &place in &*places {
            values.extend_from_slice(&distinct[place * choices..][..choices]);
        }
        values
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

    fn learns(&self) -> Range<usize> {
        0..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        _: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let RelationalStudent { config, level, network, params, batch, scratch } = self;
        assert_eq!(gradient.len(), params.flat().len(), "parameters");
        check_lengths(demonstration, [0, config.actions], &piece);
        let scale = |codes: &[u8], to: &mut [f32]| scale(config.divisor, codes, to);
        let (taught, acts) = ((demonstration, piece), &mut batch.acts[0]);
        network.study_choices(*level, params.flat(), taught, config.actions, scale, acts, scratch, gradient)
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
        self.width()
    }

    fn encode(&self, observation: Observation<'_>, to: &mut Vec<u8>) -> Result<(), PolicyError> {
        to.extend_from_slice(codes(&self.config, observation)?);
        Ok(())
    }

    fn choices(&self) -> usize {
        self.config.actions
    }

    fn values(&mut self, codes: &[u8]) -> &[f32] {
        self.forward(codes, true)
    }

    fn values_alone(&mut self, codes: &[u8]) -> &[f32] {
        self.forward(codes, false)
    }

    fn backward(&mut self, d_values: &[f32], gradient: &mut [f32]) {
        let choices = self.config.actions;
        let RelationalStudent { level, network, params, batch, .. } = self;
        let Batch { acts, kept, places, firsts, distinct, .. } = batch;
        assert_eq!(d_values.len(), places.len() * choices, "derivatives of the values of the last batch");
        assert!(*kept, "the last values were computed alone");
        distinct.fill(0.0);
        for (&place, d_values) in places.iter().zip(d_values.chunks_exact(choices)) {
            add(&mut distinct[place * choices..][..choices], d_values);
        }
        let parts = distinct.chunks(TOGETHER * choices).take(firsts.len().div_ceil(TOGETHER));
        for (part, d_values) in parts.enumerate() {
            if d_values.iter().all(|&d| d == 0.0) {
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
            acts.gradient_mut(network.output).copy_from_slice(d_values);
            network.net.backward(*level, params.flat(), acts, gradient);
            if let Some(acts) = lent {
                acts.swap_gradients(first);
            }
        }
    }
}
