//! Gradients of the agent's distribution and values, through time.

use std::ops::Range;
use std::sync::Arc;

use foveate_core::{
    ActionDistribution, Demonstration, LastStep, Model, Observation, OutputKind, Outputs, PolicyError,
    Predictions, Student,
};
use foveate_kernels::Level;
use foveate_learn::loss::cross_entropy;
use foveate_learn::{Activations, Unrolled};

use super::network::{self, Nodes};
use super::{S3taConfig, scale};
use crate::params::Params;
use crate::student::{check_lengths, chosen, study_outputs};

/// Computes the gradients of the agent's distribution and values.
#[derive(Debug)]
pub struct S3taStudent {
    config: S3taConfig,
    level: Level,
    nodes: Arc<Nodes>,
    params: Params,
    /// Steps and sequences of the last pass, and its tensors.
    unrolled: Option<(usize, usize, Unrolled)>,
    /// Scratch: the inputs of all steps by kind, `[steps, sequences, …]`, where there are several sequences.
    inputs: [Vec<f32>; 2],
    /// Scratch: the states before the first step, `[sequences, …]` each.
    begin: Vec<Vec<f32>>,
    predictions: Predictions,
}

impl S3taStudent {
    /// A student of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`](crate::descriptor::AgentConfig::check).
    pub fn new(config: &S3taConfig) -> Result<Self, PolicyError> {
        let nodes = Arc::new(network::build(config)?);
        let params = Params::zeros(nodes.net.tensors().to_vec());
        Ok(S3taStudent::of(config.clone(), Level::best(), nodes, params))
    }

    fn of(config: S3taConfig, level: Level, nodes: Arc<Nodes>, params: Params) -> Self {
        let begin = vec![vec![]; nodes.states.len()];
        S3taStudent {
            config,
            level,
            nodes,
            params,
            unrolled: None,
            inputs: [vec![], vec![]],
            begin,
            predictions: Predictions::default(),
        }
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Computes consecutive steps of one episode from the state `memory` on, which becomes that after them; see
    /// [`Outputs::follow`].
    fn follow_from(&self, memory: &mut [f32], inputs: &[f32], to: &mut Predictions) {
        let width = self.encoded_len();
        assert_eq!(inputs.len() % width, 0, "observations of {width} numbers");
        let Nodes { net, states, .. } = &*self.nodes;
        let mut acts = net.activations(1);
        to.outputs.clear();
        to.values.clear();
        to.memories.clear();
        for input in inputs.chunks_exact(width) {
            to.memories.extend_from_slice(memory);
            let (picture, told) = input.split_at(self.config.pixels());
            let mut all = vec![picture, told];
            let mut rest = &*memory;
            for len in self.lens() {
                let (state, others) = rest.split_at(len);
                all.push(state);
                rest = others;
            }
            net.forward(self.level, self.params.flat(), &all, 1, &mut acts);
            let mut at = 0;
            for nodes in states {
                let state = acts.get(nodes.output);
                memory[at..at + state.len()].copy_from_slice(state);
                at += state.len();
            }
            predict(&self.nodes, &acts, to);
        }
    }

    /// Steps of a demonstration, encoded.
    fn shown(&self, demonstration: &Demonstration, steps: Range<usize>) -> Vec<f32> {
        let (pixels, told) = (self.config.pixels(), self.config.told());
        let mut bytes = vec![0; pixels];
        let mut inputs = vec![0.0; steps.len() * (pixels + told)];
        for (to, step) in inputs.chunks_exact_mut(pixels + told).zip(steps) {
            demonstration.pictures.unpack(step, &mut bytes).expect("a picture per step");
            scale(&bytes, self.config.pixel_scale, &mut to[..pixels]);
            to[pixels..].copy_from_slice(&demonstration.inputs[step * told..][..told]);
        }
        inputs
    }

    /// Numbers of each state of one sequence.
    fn lens(&self) -> Vec<usize> {
        let Nodes { net, states, .. } = &*self.nodes;
        states.iter().map(|state| net.shape(state.input).iter().product()).collect()
    }
}

/// Appends what the network computed to `predictions`.
fn predict(nodes: &Nodes, acts: &Activations, predictions: &mut Predictions) {
    predictions.outputs.extend_from_slice(acts.get(nodes.policy));
    predictions.values.extend_from_slice(acts.get(nodes.value));
}

impl Model for S3taStudent {
    fn learns(&self) -> Range<usize> {
        0..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(S3taStudent::of(
            self.config.clone(),
            self.level,
            Arc::clone(&self.nodes),
            self.params.clone(),
        ))
    }

    fn outputs(&mut self) -> Option<&mut dyn Outputs> {
        Some(self)
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }
}

impl Student for S3taStudent {
    /// What the last step was.
    fn inputs(&self) -> usize {
        self.config.told()
    }

    fn picture(&self) -> usize {
        self.config.pixels()
    }

    fn actions(&self) -> usize {
        self.config.actions
    }

    /// Cross entropy of the expert's choices. The values learn nothing from it.
    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let actions = self.config.actions;
        check_lengths(demonstration, [self.config.told(), actions], &piece);
        let mut memory = vec![0.0; self.memory_len()];
        let before = piece.start.saturating_sub(burn_in)..piece.start;
        if !before.is_empty() {
            let inputs = self.shown(demonstration, before);
            let mut followed = std::mem::take(&mut self.predictions);
            self.follow_from(&mut memory, &inputs, &mut followed);
            self.predictions = followed;
        }
        if piece.is_empty() {
            return 0.0;
        }
        let inputs = self.shown(demonstration, piece.clone());
        let choices: Vec<usize> = chosen(demonstration, piece.clone(), actions).collect();
        let level = self.level;
        let loss = |outputs: &[f32], d: &mut [f32]| cross_entropy(level, outputs, &choices, 1.0, d);
        study_outputs(self, piece.len(), &inputs, &memory, loss, gradient)
    }
}

impl Outputs for S3taStudent {
    /// The picture, then what the last step was.
    fn encoded_len(&self) -> usize {
        self.config.pixels() + self.config.told()
    }

    fn encode(
        &self,
        last: LastStep<'_>,
        observation: Observation<'_>,
        codes: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        let begin = codes.len();
        codes.resize(begin + self.encoded_len(), 0.0);
        let (picture, told) = codes[begin..].split_at_mut(self.config.pixels());
        let mut pixels = vec![0; picture.len()];
        self.config.look(observation, &mut pixels)?;
        scale(&pixels, self.config.pixel_scale, picture);
        self.config.tell(last, told)
    }

    fn kind(&self) -> OutputKind {
        OutputKind::Policy(ActionDistribution::Choices(self.config.actions))
    }

    fn memory_len(&self) -> usize {
        self.lens().iter().sum()
    }

    fn follow(&mut self, inputs: &[f32], to: &mut Predictions) {
        self.follow_from(&mut vec![0.0; self.memory_len()], inputs, to);
    }

    fn forward(&mut self, steps: usize, inputs: &[f32], memories: &[f32]) -> &Predictions {
        let (width, lens) = (self.encoded_len(), self.lens());
        let sequences = inputs.len() / width / steps.max(1);
        assert_eq!(
            inputs.len(),
            steps * sequences * width,
            "{steps} steps of observations of {width} numbers"
        );
        let memory: usize = lens.iter().sum();
        assert_eq!(memories.len(), memory * sequences, "memories");
        let nodes = Arc::clone(&self.nodes);
        let S3taStudent { config, level, params, unrolled, inputs: parts, begin, predictions, .. } = self;
        let fits = unrolled.take().filter(|&(t, n, _)| (t, n) == (steps, sequences));
        let (_, _, mut passes) = fits.unwrap_or_else(|| {
            (steps, sequences, Unrolled::new(&nodes.net, &nodes.states, steps, sequences))
        });
        // The states of all sequences, kind by kind.
        let mut at = 0;
        for (begin, &len) in begin.iter_mut().zip(&lens) {
            begin.clear();
            for memory in memories.chunks_exact(memory) {
                begin.extend_from_slice(&memory[at..at + len]);
            }
            at += len;
        }
        // Pictures and last steps of all sequences; of one sequence they lie side by side already.
        let (pixels, told) = (config.pixels(), config.told());
        let [pictures, tells] = parts;
        if sequences > 1 {
            pictures.clear();
            tells.clear();
            for row in inputs.chunks_exact(width) {
                pictures.extend_from_slice(&row[..pixels]);
                tells.extend_from_slice(&row[pixels..]);
            }
        }
        let data = |step: usize| {
            if sequences > 1 {
                let rows = step * sequences;
                vec![
                    &pictures[rows * pixels..][..sequences * pixels],
                    &tells[rows * told..][..sequences * told],
                ]
            } else {
                let (picture, told) = inputs[step * width..][..width].split_at(pixels);
                vec![picture, told]
            }
        };
        let (first, begin): (Vec<bool>, Vec<&[f32]>) =
            (vec![false; steps * sequences], begin.iter().map(|state| &state[..]).collect());
        // No sequence holds the beginning of another episode, so the fresh states are never used.
        let fresh: Vec<Vec<f32>> = lens.iter().map(|&len| vec![0.0; len]).collect();
        let fresh: Vec<&[f32]> = fresh.iter().map(|state| &state[..]).collect();
        passes.forward(&nodes.net, *level, params.flat(), data, &first, &begin, &fresh);
        predictions.outputs.clear();
        predictions.values.clear();
        for step in 0..steps {
            predict(&nodes, passes.step(step), predictions);
        }
        *unrolled = Some((steps, sequences, passes));
        &self.predictions
    }

    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        let Predictions { outputs, values, .. } = &self.predictions;
        assert_eq!((d_outputs.len(), d_values.len()), (outputs.len(), values.len()), "derivatives");
        assert_eq!(gradient.len(), self.params.flat().len(), "parameters");
        let nodes = Arc::clone(&self.nodes);
        let Some((steps, sequences, mut passes)) = self.unrolled.take() else { return };
        passes.clear_gradients();
        for step in 0..steps {
            let rows = step * sequences..(step + 1) * sequences;
            let outputs = rows.start * self.config.actions..rows.end * self.config.actions;
            let acts = passes.step_mut(step);
            acts.gradient_mut(nodes.policy).copy_from_slice(&d_outputs[outputs]);
            acts.gradient_mut(nodes.value).copy_from_slice(&d_values[rows]);
        }
        passes.backward(&nodes.net, self.level, self.params.flat(), gradient);
        self.unrolled = Some((steps, sequences, passes));
    }
}
