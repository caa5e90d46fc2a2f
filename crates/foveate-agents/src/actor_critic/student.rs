//! Gradients of the agent's distributions and values.

use std::ops::Range;
use std::sync::Arc;

use foveate_core::{
    Demonstration, LastStep, Model, Observation, OutputKind, Outputs, PolicyError, Predictions, SparseRows,
    Student,
};
use foveate_kernels::Level;
use foveate_kernels::rows;
use foveate_learn::loss::cross_entropy;
use foveate_learn::{Activations, Unrolled};

use super::{ActorCriticConfig, Eyes, Nodes};
use crate::params::Params;
use crate::student::{check_lengths, chosen, study_outputs};

/// Computes the gradients of the agent's distributions and values.
#[derive(Debug)]
pub struct ActorCriticStudent {
    eyes: Eyes,
    level: Level,
    nodes: Arc<Nodes>,
    params: Params,
    /// Without memory: for the largest batch so far.
    acts: Activations,
    room: usize,
    /// With memory: steps and sequences of the last pass, and its tensors.
    unrolled: Option<(usize, usize, Unrolled)>,
    /// `[sequences, lstm]` each.
    begin: [Vec<f32>; 2],
    predictions: Predictions,
    /// Scratch of demonstrations: the bytes of a picture.
    bytes: Vec<u8>,
}

impl ActorCriticStudent {
    /// A student of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`](crate::descriptor::AgentConfig::check).
    pub fn new(config: &ActorCriticConfig) -> Result<Self, PolicyError> {
        let nodes = Arc::new(config.build()?);
        Ok(ActorCriticStudent {
            eyes: Eyes::new(config.clone()),
            level: Level::best(),
            params: Params::zeros(nodes.tensors.clone()),
            acts: nodes.net.activations(1),
            room: 1,
            unrolled: None,
            begin: [vec![], vec![]],
            predictions: Predictions::default(),
            bytes: vec![],
            nodes,
        })
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Makes room for this many samples of a network without memory.
    fn make_room(&mut self, samples: usize) {
        if samples > self.room {
            self.acts = self.nodes.net.activations(samples);
            self.room = samples;
        }
    }

    /// Computes consecutive steps of one episode with an LSTM from the state `memory` on, h and c, which becomes that after them;
    /// appends to `to`.
    fn follow_from(&mut self, memory: &mut [f32], inputs: &[f32], to: &mut Predictions) {
        let nodes = Arc::clone(&self.nodes);
        let mut acts = std::mem::replace(&mut self.acts, nodes.net.activations(0));
        let (h, c) = memory.split_at_mut(self.eyes.config.lstm);
        for input in inputs.chunks_exact(self.encoded_len()) {
            to.memories.extend_from_slice(h);
            to.memories.extend_from_slice(c);
            let flat = &self.params.flat()[..nodes.net.params()];
            nodes.net.forward(self.level, flat, &[input, h, c], 1, &mut acts);
            h.copy_from_slice(acts.get(nodes.states[0].output));
            c.copy_from_slice(acts.get(nodes.states[1].output));
            self.predict(&acts, to);
        }
        self.acts = acts;
    }

    /// Steps of a demonstration, as the network gets them.
    fn shown(&mut self, demonstration: &Demonstration, steps: Range<usize>) -> Vec<f32> {
        let (numbers, cells) = (self.inputs(), self.picture());
        if cells == 0 {
            return demonstration.inputs[steps.start * numbers..steps.end * numbers].to_vec();
        }
        self.bytes.resize(cells, 0);
        let mut inputs = vec![0.0; steps.len() * cells];
        for (to, step) in inputs.chunks_exact_mut(cells).zip(steps) {
            demonstration.pictures.unpack(step, &mut self.bytes).expect("a picture per step");
            self.eyes.scale_bytes(&self.bytes, to);
        }
        inputs
    }

    /// Appends what the network computed to `predictions`.
    fn predict(&self, acts: &Activations, predictions: &mut Predictions) {
        let Nodes { net, policy, value, .. } = &*self.nodes;
        let log_std = &self.params.flat()[net.params()..];
        let per_row = self.eyes.config.distribution().outputs();
        for policy in acts.get(*policy).chunks_exact(self.eyes.config.actions.len()) {
            let begin = predictions.outputs.len();
            predictions.outputs.resize(begin + per_row, 0.0);
            self.eyes.describe(policy, log_std, &mut predictions.outputs[begin..]);
        }
        predictions.values.extend_from_slice(acts.get(*value));
    }

    /// Adds derivatives of the loss to those of the network's outputs, and to the gradient of the deviations.
    fn pull(&self, acts: &mut Activations, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        let Nodes { net, policy, value, .. } = &*self.nodes;
        let n = self.eyes.config.actions.len();
        if self.eyes.config.discrete {
            acts.gradient_mut(*policy).copy_from_slice(d_outputs);
        } else {
            let d_log_std = &mut gradient[net.params()..];
            for (d_policy, d_outputs) in
                acts.gradient_mut(*policy).chunks_exact_mut(n).zip(d_outputs.chunks_exact(2 * n))
            {
                for (i, (half, _)) in self.eyes.ranges().enumerate() {
                    d_policy[i] = d_outputs[i] * half;
                    d_log_std[i] += d_outputs[n + i];
                }
            }
        }
        acts.gradient_mut(*value).copy_from_slice(d_values);
    }
}

impl Model for ActorCriticStudent {
    fn learns(&self) -> Range<usize> {
        0..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(ActorCriticStudent {
            eyes: self.eyes.clone(),
            level: self.level,
            nodes: Arc::clone(&self.nodes),
            params: self.params.clone(),
            acts: self.nodes.net.activations(1),
            room: 1,
            unrolled: None,
            begin: [vec![], vec![]],
            predictions: Predictions::default(),
            bytes: vec![],
        })
    }

    fn outputs(&mut self) -> Option<&mut dyn Outputs> {
        Some(self)
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }
}

impl Student for ActorCriticStudent {
    fn inputs(&self) -> usize {
        self.eyes.config.observation.len()
    }

    /// A grid's codes count as a picture.
    fn picture(&self) -> usize {
        self.eyes.config.cells()
    }

    fn actions(&self) -> usize {
        self.eyes.config.actions.len()
    }

    /// Choices learn by cross entropy, means by the squared error. Deviations and values learn nothing from it.
    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let n = self.actions();
        check_lengths(demonstration, [self.inputs(), n], &piece);
        let mut memory = vec![0.0; self.memory_len()];
        let before = piece.start.saturating_sub(burn_in)..piece.start;
        if !memory.is_empty() && !before.is_empty() {
            let inputs = self.shown(demonstration, before);
            self.follow_from(&mut memory, &inputs, &mut Predictions::default());
        }
        if piece.is_empty() {
            return 0.0;
        }
        let inputs = self.shown(demonstration, piece.clone());
        let (level, discrete) = (self.level, self.eyes.config.discrete);
        let halves: Vec<f32> = self.eyes.ranges().map(|(half, _)| half).collect();
        let loss = |outputs: &[f32], d_outputs: &mut [f32]| {
            if discrete {
                let choices: Vec<usize> = chosen(demonstration, piece.clone(), n).collect();
                return cross_entropy(level, outputs, &choices, 1.0, d_outputs);
            }
            let wanted = demonstration.actions[piece.start * n..piece.end * n].chunks_exact(n);
            let mut loss = 0.0;
            let rows = outputs.chunks_exact(2 * n).zip(d_outputs.chunks_exact_mut(2 * n));
            for (wanted, (means, d_means)) in wanted.zip(rows) {
                for (i, half) in halves.iter().enumerate() {
                    let error = (means[i] - wanted[i]) / half;
                    loss += f64::from(error * error);
                    d_means[i] = 2.0 * error / half;
                }
            }
            loss
        };
        study_outputs(self, piece.len(), &inputs, &memory, loss, gradient)
    }
}

impl Outputs for ActorCriticStudent {
    fn encoded_len(&self) -> usize {
        self.eyes.config.inputs()
    }

    fn encode(
        &self,
        _: LastStep<'_>,
        observation: Observation<'_>,
        to: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        let begin = to.len();
        to.resize(begin + self.encoded_len(), 0.0);
        self.eyes.read(observation, &mut to[begin..])
    }

    fn encode_row(&self, observation: Observation<'_>, to: &mut SparseRows) -> Result<bool, PolicyError> {
        let Some(cells) = self.eyes.sparse(observation) else { return Ok(false) };
        rows::append_bytes(self.level, to, cells, self.eyes.config.divisor as f32);
        Ok(true)
    }

    fn forward_rows(&mut self, rows: &SparseRows, chosen: &[usize]) -> &Predictions {
        self.make_room(chosen.len());
        let nodes = Arc::clone(&self.nodes);
        let flat = &self.params.flat()[..nodes.net.params()];
        nodes.net.forward_rows(self.level, flat, rows, chosen, &mut self.acts);
        let mut predictions = std::mem::take(&mut self.predictions);
        predictions.outputs.clear();
        predictions.values.clear();
        self.predict(&self.acts, &mut predictions);
        self.predictions = predictions;
        &self.predictions
    }

    fn kind(&self) -> OutputKind {
        OutputKind::Policy(self.eyes.config.distribution())
    }

    fn memory_len(&self) -> usize {
        2 * self.eyes.config.lstm
    }

    fn follow(&mut self, inputs: &[f32], to: &mut Predictions) {
        let Predictions { outputs, values, memories } = to;
        outputs.clear();
        values.clear();
        memories.clear();
        let (units, width) = (self.eyes.config.lstm, self.encoded_len());
        assert_eq!(inputs.len() % width, 0, "observations of {width} numbers");
        if units == 0 {
            Outputs::forward(self, 1, inputs, &[]);
            to.outputs.extend_from_slice(&self.predictions.outputs);
            to.values.extend_from_slice(&self.predictions.values);
            return;
        }
        self.follow_from(&mut vec![0.0; 2 * units], inputs, to);
    }

    fn forward(&mut self, steps: usize, inputs: &[f32], memories: &[f32]) -> &Predictions {
        let (units, width) = (self.eyes.config.lstm, self.encoded_len());
        let rows = inputs.len() / width;
        let sequences = rows / steps.max(1);
        assert_eq!(
            inputs.len(),
            steps * sequences * width,
            "{steps} steps of observations of {width} numbers"
        );
        assert_eq!(memories.len(), 2 * units * sequences, "memories");
        let nodes = Arc::clone(&self.nodes);
        let mut predictions = std::mem::take(&mut self.predictions);
        predictions.outputs.clear();
        predictions.values.clear();
        if units == 0 {
            self.make_room(rows);
            let flat = &self.params.flat()[..nodes.net.params()];
            nodes.net.forward(self.level, flat, &[inputs], rows, &mut self.acts);
            self.predict(&self.acts, &mut predictions);
        } else {
            let fits = self.unrolled.take().filter(|&(t, n, _)| (t, n) == (steps, sequences));
            let (_, _, mut unrolled) = fits.unwrap_or_else(|| {
                (steps, sequences, Unrolled::new(&nodes.net, &nodes.states, steps, sequences))
            });
            let [h, c] = &mut self.begin;
            h.clear();
            c.clear();
            for memory in memories.chunks_exact(2 * units) {
                h.extend_from_slice(&memory[..units]);
                c.extend_from_slice(&memory[units..]);
            }
            let flat = &self.params.flat()[..nodes.net.params()];
            let at = |step: usize| vec![&inputs[step * sequences * width..][..sequences * width]];
            let (first, fresh) = (vec![false; rows], vec![0.0; units]);
            unrolled.forward(&nodes.net, self.level, flat, at, &first, &[h, c], &[&fresh, &fresh]);
            for step in 0..steps {
                self.predict(unrolled.step(step), &mut predictions);
            }
            self.unrolled = Some((steps, sequences, unrolled));
        }
        self.predictions = predictions;
        &self.predictions
    }

    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        let Predictions { outputs, values, .. } = &self.predictions;
        assert_eq!((d_outputs.len(), d_values.len()), (outputs.len(), values.len()), "derivatives");
        assert_eq!(gradient.len(), self.params.flat().len(), "parameters");
        let nodes = Arc::clone(&self.nodes);
        let count = nodes.net.params();
        if let Some((steps, sequences, mut unrolled)) = self.unrolled.take() {
            let per_row = self.eyes.config.distribution().outputs();
            unrolled.clear_gradients();
            for step in 0..steps {
                let rows = step * sequences..(step + 1) * sequences;
                let d_outputs = &d_outputs[rows.start * per_row..rows.end * per_row];
                self.pull(unrolled.step_mut(step), d_outputs, &d_values[rows], gradient);
            }
            unrolled.backward(&nodes.net, self.level, &self.params.flat()[..count], &mut gradient[..count]);
            self.unrolled = Some((steps, sequences, unrolled));
        } else {
            let mut acts = std::mem::replace(&mut self.acts, nodes.net.activations(0));
            acts.clear_gradients();
            self.pull(&mut acts, d_outputs, d_values, gradient);
            nodes.net.backward(self.level, &self.params.flat()[..count], &mut acts, &mut gradient[..count]);
            self.acts = acts;
        }
    }
}
