//! Gradients of a whole AttentionNeuron on pictures, for learning from an expert: queries, keys, values, and a head that
//! is recurrent or made of layers.
//!
//! The previous action in the keys adds the same number to the score of every patch, which softmax does not notice.
//! Therefore the codes of a step depend on its stack of pictures alone: gradients flow through time in the LSTM only, and
//! the codes of all steps of a piece are computed together, and their gradients too. Without an LSTM the steps before a
//! piece are needed for its first stacks only.
//!
//! A head whose outputs are scores learns the expert's choices, by their cross entropy; others its actions, by the squared
//! error.
//!
//! A demonstration holds the newest picture of each step's stack, and as its numbers which patches were there. The stacks
//! are put together again from consecutive pictures; before an episode's first picture there are copies of it.

use std::ops::Range;

use foveate_core::{Demonstration, Model, PolicyError, Seed, Student};
use foveate_kernels::Level;
use foveate_kernels::lstm_gradient::{Gradient, Learner, Targets};
use foveate_kernels::patch_codes::{CodesGradient, CodesLearner};

use super::layers_learner::LayersLearner;
use super::pictures::{PictureConfig, packed_len, unpack_patches};
use super::queries;
use crate::descriptor::AgentConfig;
use crate::params::Params;
use crate::student::{check_lengths, chosen, scaled};

/// Learns all tensors. Those that change no action have a gradient of 0: `key.bias`, the columns of `key.weight` for the
/// previous action, and `lstm.bias_hh` of a recurrent head, which is only ever added to `lstm.bias_ih`.
#[derive(Debug, Clone)]
pub struct PictureStudent {
    config: PictureConfig,
    params: Params,
    level: Level,
    /// The fixed table of queries.
    table: Vec<f32>,
    codes: CodesLearner,
    head: HeadLearner,
    /// Share of the patches that is left out of every step, and what draws them.
    dropout: Option<(f64, Seed)>,
    /// Pictures of the steps, the oldest first. Scratch, as all that follows.
    frames: Vec<u8>,
    /// `[patches]`: 1, or 0 for a patch that is missing.
    present: Vec<f32>,
    /// `[steps, codes, message]`
    x: Vec<f32>,
    /// The same for the steps of the piece.
    dx: Vec<f32>,
    /// `[steps, actions]`: the expert's actions, in −1 ..= 1.
    wanted: Vec<f32>,
    /// `[steps]`: the expert's choices, when the head's outputs are scores.
    choices: Vec<usize>,
}

/// Leaves each patch out with the probability `share`, but not the last one that is there.
fn drop_some(present: &mut [f32], share: f64, seed: Seed) {
    let mut rng = seed.rng();
    let mut left = present.iter().filter(|one| **one != 0.0).count();
    for one in present {
        if rng.next_f64() < share && *one != 0.0 && left > 1 {
            *one = 0.0;
            left -= 1;
        }
    }
}

/// The part behind the codes.
#[derive(Debug, Clone)]
enum HeadLearner {
    Recurrent(Box<Learner>),
    Layers(Box<LayersLearner>),
}

impl PictureStudent {
    /// A student of zero weights on the fastest instruction set of this processor; `None` when no gradient
    /// flows through the head.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: PictureConfig) -> Result<Option<Self>, PolicyError> {
        config.check()?;
        let shape = config.shape();
        let codes = CodesLearner::new(shape, config.query_dim);
        let (params, actions) = (Params::zeros(config.tensors()), config.actions.len());
        let layers = LayersLearner::new(&config.head, config.codes, config.message_dim, &params, actions)?;
        let head = if let Some(hidden) = config.head.recurrent() {
            let learner = Learner::new(codes.outputs(), hidden, actions).with_input_gradient();
            HeadLearner::Recurrent(Box::new(learner))
        } else if let Some(layers) = layers {
            HeadLearner::Layers(Box::new(layers))
        } else {
            return Ok(None);
        };
        Ok(Some(PictureStudent {
            params,
            level: Level::best(),
            table: queries(shape.codes, shape.code_dim),
            head,
            codes,
            dropout: None,
            frames: vec![],
            present: vec![0.0; shape.patches()],
            x: vec![],
            dx: vec![],
            wanted: vec![],
            choices: vec![],
            config,
        }))
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Bytes of a picture.
    fn area(&self) -> usize {
        self.config.image[0] * self.config.image[1]
    }
}

impl Model for PictureStudent {
    fn learns(&self) -> Range<usize> {
        0..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)?;
        self.codes.set(self.config.codes_weights(&self.params, &self.table));
        match &mut self.head {
            HeadLearner::Recurrent(head) => {
                head.set(self.params.lstm(), self.params.linear("output.weight", "output.bias"));
            }
            HeadLearner::Layers(head) => head.set(self.params.flat()),
        }
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }
}

impl Student for PictureStudent {
    fn inputs(&self) -> usize {
        packed_len(self.config.shape().patches())
    }

    fn picture(&self) -> usize {
        self.area()
    }

    fn actions(&self) -> usize {
        self.config.actions.len()
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let area = self.area();
        let PictureStudent {
            config,
            params,
            level,
            codes,
            head,
            dropout,
            frames,
            present,
            x,
            dx,
            wanted,
            choices,
            ..
        } = self;
        assert_eq!(gradient.len(), params.flat().len(), "parameters");
        let packed = packed_len(present.len());
        check_lengths(demonstration, [packed, config.actions.len()], &piece);

        wanted.clear();
        choices.clear();
        if config.head.gives_scores() {
            choices.extend(chosen(demonstration, piece.clone(), config.actions.len()));
        } else {
            scaled(demonstration, piece.clone(), &config.actions, wanted);
        }
        let burn_in = if matches!(head, HeadLearner::Recurrent(_)) { burn_in } else { 0 };
        let start = piece.start.saturating_sub(burn_in);
        let first = start.saturating_sub(config.frames - 1);
        // Copies of the first picture come before it.
        let missing = (config.frames - 1) - (start - first);
        frames.resize((missing + piece.end - first) * area, 0);
        if start < piece.end {
            for (at, frame) in frames.chunks_exact_mut(area).enumerate() {
                let step = first + at.saturating_sub(missing);
                demonstration.pictures.unpack(step, frame).expect("a picture per step");
            }
        }
        codes.clear();
        let packed = demonstration.inputs.chunks_exact(packed).skip(start);
        let stacks = frames.windows(config.frames * area).step_by(area).zip(packed);
        for (step, (stack, packed)) in (start..).zip(stacks) {
            unpack_patches(packed, present);
            if let Some((share, seed)) = *dropout {
                drop_some(present, share, seed.child("step", step as u64));
            }
            // No agent acts without any patch, but a checkpoint may say so.
            let some = present.contains(&0.0) && present.contains(&1.0);
            codes.see(*level, stack, some.then_some(present));
        }
        x.resize((piece.end - start) * codes.outputs(), 0.0);
        codes.forward(*level, x);

        dx.resize(piece.len() * codes.outputs(), 0.0);
        let error = match head {
            HeadLearner::Recurrent(head) => {
                let names =
                    ["lstm.weight_ih", "lstm.weight_hh", "lstm.bias_ih", "output.weight", "output.bias"];
                let [weight_ih, weight_hh, bias_ih, output_weight, output_bias] = gradient
                    .get_disjoint_mut(names.map(|name| params.place(name)))
                    .expect("tensors do not overlap");
                let of_head = Gradient { weight_ih, weight_hh, bias_ih, output_weight, output_bias };
                let error = head.study(*level, x, Targets::Actions(wanted), of_head);
                head.input_gradient(*level, dx);
                error
            }
            HeadLearner::Layers(head) => head.study(*level, x, choices, wanted, dx, gradient),
        };
        codes.backward(*level, dx);

        let names = [
            "query.weight",
            "query.bias",
            "key.weight",
            "value.weight",
            "value.bias",
            "value_norm.weight",
            "value_norm.bias",
            "message_norm.weight",
            "message_norm.bias",
        ];
        let [query_weight, query_bias, key_weight, value_weight, value_bias, a, b, c, d] =
            gradient.get_disjoint_mut(names.map(|name| params.place(name))).expect("tensors do not overlap");
        codes.add_to(CodesGradient {
            query_weight,
            query_bias,
            key_weight,
            value_weight,
            value_bias,
            value_norm: [a, b],
            message_norm: [c, d],
        });
        error
    }

    fn drop_patches(&mut self, share: f64, seed: Seed) -> bool {
        self.dropout = (share > 0.0).then_some((share, seed));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_left_out_but_never_the_last() {
        let mut left = 0;
        for step in 0..200 {
            let mut present = [1.0; 100];
            drop_some(&mut present, 0.3, Seed::root(1).child("step", step));
            left += present.iter().filter(|one| **one == 1.0).count();
        }
        // 14,000 of 20,000 are expected, with a standard deviation of 65.
        assert!((13_700..14_300).contains(&left), "{left}");
        for seed in 0..100 {
            let mut present = [0.0, 1.0, 1.0];
            drop_some(&mut present, 0.99, Seed::root(seed));
            assert!(present[0] == 0.0 && present[1] + present[2] >= 1.0, "{present:?}");
        }
    }
}
