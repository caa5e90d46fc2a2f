//! Learning an expert's choices: the cross entropy of a network's logits, a few observations at a time.

use std::ops::Range;

use foveate_core::Demonstration;
use foveate_kernels::Level;
use foveate_kernels::elementwise::add;
use foveate_learn::Activations;
use foveate_learn::loss::cross_entropy;

use super::Relational;
use crate::student::chosen;

/// Scratch space.
#[derive(Debug, Clone)]
pub(super) struct ChoiceScratch {
    /// The bytes of an observation.
    pub(super) bytes: Vec<u8>,
    /// `[together, bytes]`: what goes into the network.
    pub(super) input: Vec<f32>,
    choices: Vec<usize>,
    /// `[n_params]`: the gradient of a piece.
    own: Vec<f32>,
}

impl ChoiceScratch {
    /// For observations of `width` bytes, of which so many go through the network together.
    pub(super) fn new(network: &Relational, width: usize, together: usize) -> Self {
        ChoiceScratch {
            bytes: vec![0; width],
            input: vec![0.0; together * width],
            choices: Vec::with_capacity(together),
            own: vec![0.0; network.net.params()],
        }
    }
}

impl Relational {
    /// Adds the gradient of the cross entropy of the expert's choices in the steps `piece`, and returns the sum of the errors.
    /// A choice is the first one of those with the highest of `n` scores; `scale` turns the bytes of an observation into numbers.
    #[expect(clippy::too_many_arguments, reason = "what a student consists of")]
    pub(super) fn study_choices(
        &self,
        level: Level,
        params: &[f32],
        (demonstration, piece): (&Demonstration, Range<usize>),
        n: usize,
        scale: impl Fn(&[u8], &mut [f32]),
        acts: &mut Activations,
        scratch: &mut ChoiceScratch,
        gradient: &mut [f32],
    ) -> f64 {
        let ChoiceScratch { bytes, input, choices, own } = scratch;
        let width = bytes.len();
        let together = input.len() / width;
        let mut error = 0.0;
        own.fill(0.0);
        for first in piece.clone().step_by(together) {
            let steps = first..piece.end.min(first + together);
            choices.clear();
            for (step, to) in steps.clone().zip(input.chunks_exact_mut(width)) {
                demonstration.pictures.unpack(step, bytes).expect("an observation per step");
                scale(bytes, to);
            }
            choices.extend(chosen(demonstration, steps.clone(), n));
            let count = steps.len();
            self.net.forward(level, params, &[&input[..count * width]], count, acts);
            acts.clear_gradients();
            let (logits, d_logits) = acts.output_and_gradient(self.output);
            error += cross_entropy(level, logits, choices, 1.0, d_logits);
            self.net.backward(level, params, acts, own);
        }
        add(gradient, own);
        error
    }
}
