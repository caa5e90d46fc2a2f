//! Controllers: networks that map features to actions.

use std::ops::Range;

use foveate_core::{PolicyError, TensorShape};
use foveate_kernels::Level;
use foveate_kernels::dense::{self, Dense};
use foveate_kernels::lstm::CellWeights;
use foveate_kernels::project::Linear;
use serde::{Deserialize, Serialize};

use crate::config::{MAX_HIDDEN, bad, within};
use crate::lstm::{LstmController, LstmState};
use crate::params::Params;

/// Most hidden layers of an MLP.
pub(crate) const MAX_LAYERS: usize = 64;

/// The configuration of a controller. The output of each kind goes through tanh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControllerConfig {
    /// One linear layer.
    Linear {},
    /// Hidden layers with tanh, and a linear one.
    Mlp {
        /// Units of each hidden layer.
        hidden: Vec<usize>,
    },
    /// An LSTM, and a linear layer.
    Lstm {
        /// Its hidden units.
        hidden: usize,
    },
}

impl ControllerConfig {
    /// Checks that the sizes are within their limits.
    ///
    /// # Errors
    /// When they are not.
    pub fn check(&self) -> Result<(), PolicyError> {
        match self {
            ControllerConfig::Linear {} => Ok(()),
            ControllerConfig::Lstm { hidden } => within("controller.hidden", *hidden, MAX_HIDDEN),
            ControllerConfig::Mlp { hidden } => {
                if hidden.is_empty() || hidden.len() > MAX_LAYERS {
                    return bad(format!(
                        "controller.hidden names {} layers; it must be from 1 to {MAX_LAYERS}, or take kind = \"linear\"",
                        hidden.len()
                    ));
                }
                hidden.iter().try_for_each(|&units| within("controller.hidden", units, MAX_HIDDEN))
            }
        }
    }

    /// Name and shape of its tensors, from `inputs` numbers to `outputs`; every name begins with `prefix`.
    pub fn tensors(&self, prefix: &str, inputs: usize, outputs: usize) -> Vec<TensorShape> {
        let mut all = vec![];
        let mut push = |name: &str, shape: Vec<usize>| {
            all.push(TensorShape { name: format!("{prefix}{name}"), shape });
        };
        let mut width = inputs;
        match self {
            ControllerConfig::Linear {} => {}
            ControllerConfig::Mlp { hidden } => {
                for (i, &units) in hidden.iter().enumerate() {
                    push(&format!("hidden{i}.bias"), vec![units]);
                    push(&format!("hidden{i}.weight"), vec![units, width]);
                    width = units;
                }
            }
            ControllerConfig::Lstm { hidden } => {
                let gates = 4 * hidden;
                push("lstm.bias_hh", vec![gates]);
                push("lstm.bias_ih", vec![gates]);
                push("lstm.weight_hh", vec![gates, *hidden]);
                push("lstm.weight_ih", vec![gates, width]);
                width = *hidden;
            }
        }
        push("output.bias", vec![outputs]);
        push("output.weight", vec![outputs, width]);
        all
    }
}

/// A controller. Its weights are zero until they are set.
#[derive(Debug, Clone)]
pub(crate) enum Controller {
    /// Layers, tanh after each, and where their weights and biases lie in the flat vector.
    Layers(Vec<(Dense, Range<usize>, Range<usize>)>),
    /// An LSTM with a linear layer and tanh, and where its six tensors lie in the flat vector.
    Lstm(LstmController, [Range<usize>; 6]),
}

/// The state of a controller, with its scratch space.
#[derive(Debug, Clone)]
pub(crate) enum ControllerState {
    /// The output of each hidden layer.
    Layers(Vec<Vec<f32>>),
    /// h and c.
    Lstm(LstmState),
}

impl Controller {
    /// A controller of zeros for a valid configuration, whose tensors of the names that begin with `prefix` are among
    /// those of `params`.
    pub(crate) fn new(
        config: &ControllerConfig,
        prefix: &str,
        inputs: usize,
        outputs: usize,
        params: &Params,
    ) -> Self {
        let place = |name: &str| params.place(&format!("{prefix}{name}"));
        let hidden: &[usize] = match config {
            ControllerConfig::Linear {} => &[],
            ControllerConfig::Mlp { hidden } => hidden,
            ControllerConfig::Lstm { hidden } => {
                let names = [
                    "lstm.weight_ih",
                    "lstm.weight_hh",
                    "lstm.bias_ih",
                    "lstm.bias_hh",
                    "output.weight",
                    "output.bias",
                ];
                return Controller::Lstm(LstmController::new(inputs, *hidden, outputs), names.map(place));
            }
        };
        let mut layers = Vec::with_capacity(hidden.len() + 1);
        let mut width = inputs;
        for (i, &units) in hidden.iter().enumerate() {
            let (weight, bias) = (place(&format!("hidden{i}.weight")), place(&format!("hidden{i}.bias")));
            layers.push((Dense::new(width, units), weight, bias));
            width = units;
        }
        layers.push((Dense::new(width, outputs), place("output.weight"), place("output.bias")));
        Controller::Layers(layers)
    }

    /// Sets the weights. Does not allocate.
    pub(crate) fn set(&mut self, params: &Params) {
        let flat = params.flat();
        match self {
            Controller::Layers(layers) => {
                for (layer, weight, bias) in layers {
                    layer.set(Linear { weight: &flat[weight.clone()], bias: &flat[bias.clone()] });
                }
            }
            Controller::Lstm(lstm, places) => {
                let [weight_ih, weight_hh, bias_ih, bias_hh, weight, bias] =
                    places.each_ref().map(|place| &flat[place.clone()]);
                let cell = CellWeights { weight_ih, weight_hh, bias_ih, bias_hh };
                lstm.set(cell, Linear { weight, bias });
            }
        }
    }

    /// The state at the start of an episode.
    pub(crate) fn state(config: &ControllerConfig) -> ControllerState {
        match config {
            ControllerConfig::Linear {} => ControllerState::Layers(vec![]),
            ControllerConfig::Mlp { hidden } => {
                ControllerState::Layers(hidden.iter().map(|&units| vec![0.0; units]).collect())
            }
            ControllerConfig::Lstm { hidden } => ControllerState::Lstm(LstmState::new(*hidden)),
        }
    }

    /// One step on `inputs`; writes the output, in −1 ..= 1.
    ///
    /// # Panics
    /// When `state` comes from a controller of another kind.
    pub(crate) fn step(&self, level: Level, inputs: &[f32], state: &mut ControllerState, out: &mut [f32]) {
        match (self, state) {
            (Controller::Lstm(lstm, _), ControllerState::Lstm(state)) => lstm.step(level, inputs, state, out),
            (Controller::Layers(layers), ControllerState::Layers(hidden)) => {
                let (last, before) = layers.split_last().expect("there is an output layer");
                let mut x = inputs;
                for ((layer, _, _), y) in before.iter().zip(hidden) {
                    layer.apply(level, x, y);
                    dense::tanh(level, y);
                    x = y;
                }
                last.0.apply(level, x, out);
                dense::tanh(level, out);
            }
            _ => panic!("the state of a controller of another kind"),
        }
    }
}

impl ControllerState {
    /// Resets the state.
    pub(crate) fn reset(&mut self) {
        if let ControllerState::Lstm(state) = self {
            state.reset();
        }
    }
}
