//! Sensory neurons: an LSTM for every sensor, all of the same weights, and attention that adds up their
//! messages (Tang and Ha 2021).
//!
//! Sensor i shows the number `o_i`. Its LSTM gets `[o_i, a]`, where `a` are numbers that all sensors share; its
//! output `k_i` is a key. Code m weighs it by `w_mi = σ(s_m · k_i + b_m)`, and the message is
//! `m_m = tanh(Σ_i w_mi o_i)`.
//!
//! Whichever way the sensors are permuted, the message has the same bits: each sensor is computed by itself,
//! and the sum runs over the sensors in ascending order of their numbers; of equal numbers, in the order of
//! their keys. Sensors that are equal in both contribute the same.

pub mod gradient;
mod step;
#[cfg(test)]
mod tests;

use crate::Level;
use crate::lanes::{Block, flat};
use crate::lstm::CellWeights;

/// What turns the scores of a code into the weights of the sensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The hyperbolic tangent of each score, absolute error below 3e-7.
    Tanh,
    /// The logistic function of each score, absolute error below 3e-7.
    Sigmoid,
    /// Softmax over the sensors.
    Softmax,
}

impl Activation {
    /// What scores are multiplied by, so that their powers of two are needed.
    fn factor(self) -> f64 {
        match self {
            Activation::Tanh => 2.0 * std::f64::consts::LOG2_E,
            Activation::Sigmoid => -std::f64::consts::LOG2_E,
            Activation::Softmax => std::f64::consts::LOG2_E,
        }
    }
}

/// The sizes of sensory neurons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SensorySizes {
    /// Numbers that all sensors share: A.
    pub shared: usize,
    /// Hidden units of the LSTM, the length of a key: H.
    pub hidden: usize,
    /// Codes: M, the length of the message.
    pub codes: usize,
    /// What turns scores into weights.
    pub activation: Activation,
    /// True if the message goes through tanh.
    pub squash: bool,
}

/// Gates i and f of eight units, then gates g and o.
type Gates = [Block; 2];

/// The gate's lane for a unit: its block and its place there.
const fn lane(gate: usize, unit: usize) -> (usize, usize) {
    (gate / 2, gate % 2 * 8 + unit % 8)
}

/// Rows of weights are written sixteen numbers at a time, the last one beyond its end.
const MARGIN: usize = 16;

/// The packed weights of all neurons.
#[derive(Debug, Clone)]
pub struct Neurons {
    sizes: SensorySizes,
    /// `[hidden / 8]`: both biases, added.
    bias: Vec<Gates>,
    /// `[hidden / 8, shared]`
    of_shared: Vec<Gates>,
    /// `[hidden / 8]`
    of_number: Vec<Gates>,
    /// `[hidden / 8, hidden]`
    of_hidden: Vec<Gates>,
    /// `[codes / 16, hidden]`, multiplied by [`Activation::factor`].
    scores: Vec<Block>,
    /// `[codes / 16]`, multiplied likewise.
    score_bias: Vec<Block>,
}

/// The state of the neurons, and the results of the last step.
#[derive(Debug, Clone)]
pub struct Senses {
    sizes: SensorySizes,
    sensors: usize,
    /// `[sensors, hidden / 8, 8]`
    h: Vec<Block>,
    /// As `h`.
    c: Vec<Block>,
    /// The gates before their activation, each as `h`.
    gates: [Vec<Block>; 4],
    /// `[hidden / 8]`: the part of the gates that all sensors have in common.
    base: Vec<Gates>,
    /// The sensors' numbers, padded to sixteen with infinity, and how many are less than each.
    numbers: Vec<Block>,
    less: Vec<Block>,
    /// The sensors in the order in which their messages are added.
    order: Vec<u32>,
    /// `[sensors, codes / 16, 16]`
    weights_nm: Vec<Block>,
    /// `[codes, sensors]`, and [`MARGIN`] numbers more.
    weights: Vec<f32>,
    /// `[codes / 16, 16]`
    message: Vec<Block>,
}

impl Neurons {
    /// Neurons with all weights zero.
    ///
    /// # Panics
    /// When there are no hidden units or no codes.
    pub fn new(sizes: SensorySizes) -> Self {
        let SensorySizes { shared, hidden, codes, .. } = sizes;
        assert!(hidden > 0 && codes > 0, "hidden units and codes");
        let (units, blocks) = (hidden.div_ceil(8), codes.div_ceil(16));
        let zeros = |n: usize| vec![Gates::default(); n];
        Neurons {
            sizes,
            bias: zeros(units),
            of_shared: zeros(units * shared),
            of_number: zeros(units),
            of_hidden: zeros(units * hidden),
            scores: vec![Block::default(); blocks * hidden],
            score_bias: vec![Block::default(); blocks],
        }
    }

    /// Sets the weights: of the LSTM, whose first input is the sensor's number and whose others are shared, and
    /// of the scores: `scores` is `[codes, hidden]`, `bias` is `[codes]`.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, cell: CellWeights<'_>, scores: &[f32], bias: &[f32]) {
        let SensorySizes { shared, hidden, codes, activation, .. } = self.sizes;
        let inputs = shared + 1;
        assert_eq!(cell.weight_ih.len(), 4 * hidden * inputs, "weight_ih");
        assert_eq!(cell.weight_hh.len(), 4 * hidden * hidden, "weight_hh");
        assert_eq!(cell.bias_ih.len(), 4 * hidden, "bias_ih");
        assert_eq!(cell.bias_hh.len(), 4 * hidden, "bias_hh");
        assert_eq!(scores.len(), codes * hidden, "scores");
        assert_eq!(bias.len(), codes, "biases of the scores");
        for gate in 0..4 {
            for unit in 0..hidden {
                let (row, block) = (gate * hidden + unit, unit / 8);
                let (pair, lane) = lane(gate, unit);
                self.bias[block][pair].0[lane] = cell.bias_ih[row] + cell.bias_hh[row];
                let (number, rest) =
                    cell.weight_ih[row * inputs..(row + 1) * inputs].split_first().expect("its number");
                self.of_number[block][pair].0[lane] = *number;
                for (to, &w) in self.of_shared[block * shared..].iter_mut().zip(rest) {
                    to[pair].0[lane] = w;
                }
                let of_h = &cell.weight_hh[row * hidden..(row + 1) * hidden];
                for (to, &w) in self.of_hidden[block * hidden..].iter_mut().zip(of_h) {
                    to[pair].0[lane] = w;
                }
            }
        }
        let scaled = |x: f32| (f64::from(x) * activation.factor()) as f32;
        for code in 0..codes {
            let (block, lane) = (code / 16, code % 16);
            self.score_bias[block].0[lane] = scaled(bias[code]);
            let row = &scores[code * hidden..(code + 1) * hidden];
            for (to, &w) in self.scores[block * hidden..].iter_mut().zip(row) {
                to.0[lane] = scaled(w);
            }
        }
    }

    /// The state without sensors; [`Senses::begin`] gives it some.
    pub fn senses(&self) -> Senses {
        let SensorySizes { hidden, codes, .. } = self.sizes;
        Senses {
            sizes: self.sizes,
            sensors: 0,
            h: vec![],
            c: vec![],
            gates: Default::default(),
            base: vec![Gates::default(); hidden.div_ceil(8)],
            numbers: vec![],
            less: vec![],
            order: vec![],
            weights_nm: vec![],
            weights: vec![0.0; MARGIN],
            message: vec![Block::default(); codes.div_ceil(16)],
        }
    }

    /// Advances all sensors one step. `numbers` is `[sensors]`, `shared` is `[shared]`.
    ///
    /// Numbers that are not finite give a message that is not.
    ///
    /// # Panics
    /// When a slice has the wrong length, or `senses` is the state of neurons of other sizes.
    pub fn step(&self, level: Level, numbers: &[f32], shared: &[f32], senses: &mut Senses) {
        assert_eq!(numbers.len(), senses.sensors, "sensors");
        assert_eq!(shared.len(), self.sizes.shared, "shared numbers");
        assert_eq!(self.sizes, senses.sizes, "sizes");
        level.run(step::Step { neurons: self, numbers, shared, senses });
    }
}

impl Neurons {
    /// Whether the message is the mean of the numbers by their weights: with softmax it is divided once for all sensors, so that
    /// weights that sum to 1 would not give it to the last bit.
    pub fn means(&self) -> bool {
        matches!(self.sizes.activation, Activation::Softmax)
    }

    /// Writes the weights of the last step as the message adds them up, `[codes, sensors]`: those of [`Senses::weights`], but where
    /// the message is a mean before they are divided by their sum.
    ///
    /// # Panics
    /// When `to` has the wrong length, or `senses` is the state of neurons of other sizes.
    pub fn write_weights(&self, level: Level, senses: &Senses, to: &mut [f32]) {
        assert_eq!(to.len(), self.sizes.codes * senses.sensors, "weights");
        assert_eq!(self.sizes, senses.sizes, "sizes");
        if !self.means() {
            to.copy_from_slice(senses.weights());
        } else if senses.sensors > 0 {
            level.run(step::Powers { neurons: self, senses, to });
        }
    }

    /// The end of a step once more, with `weights`, `[codes, sensors]`, and `numbers`, `[sensors]`, in place of those of the step:
    /// the message, and the weights as they are given or, where the message is a mean, divided by their sum; a code whose weights
    /// have no positive sum then gets 0. With those of the step, see [`Neurons::write_weights`], the message is that of the step, to
    /// the bit.
    ///
    /// # Panics
    /// When a slice has the wrong length, or `senses` is the state of neurons of other sizes.
    pub fn give(&self, level: Level, weights: &[f32], numbers: &[f32], senses: &mut Senses) {
        assert_eq!(weights.len(), self.sizes.codes * senses.sensors, "weights");
        assert_eq!(numbers.len(), senses.sensors, "sensors");
        assert_eq!(self.sizes, senses.sizes, "sizes");
        if senses.sensors > 0 {
            level.run(step::Give { neurons: self, weights, numbers, senses });
        }
    }
}

impl Senses {
    /// Starts an episode with `sensors` sensors: all states are zero. Allocates only when there are more sensors
    /// than ever before.
    pub fn begin(&mut self, sensors: usize) {
        let SensorySizes { hidden, codes, .. } = self.sizes;
        let state = (sensors * hidden.div_ceil(8)).div_ceil(2);
        self.sensors = sensors;
        let zeros = |blocks: &mut Vec<Block>, len: usize| {
            blocks.clear();
            blocks.resize(len, Block::default());
        };
        zeros(&mut self.h, state);
        zeros(&mut self.c, state);
        self.gates.iter_mut().for_each(|gate| zeros(gate, state));
        zeros(&mut self.weights_nm, sensors * codes.div_ceil(16));
        self.weights.clear();
        self.weights.resize(sensors * codes + MARGIN, 0.0);
        for blocks in [&mut self.numbers, &mut self.less] {
            zeros(blocks, sensors.div_ceil(16));
        }
        self.order.clear();
        self.order.extend(0..sensors as u32);
    }

    /// Number of sensors.
    pub const fn sensors(&self) -> usize {
        self.sensors
    }

    /// The message of the last step, `[codes]`.
    pub fn message(&self) -> &[f32] {
        &flat(&self.message)[..self.sizes.codes]
    }

    /// The weights of the last step, `[codes, sensors]`.
    pub fn weights(&self) -> &[f32] {
        &self.weights[..self.sizes.codes * self.sensors]
    }

    /// The key of a sensor, `[hidden]`.
    ///
    /// # Panics
    /// When there is no such sensor.
    pub fn key(&self, sensor: usize) -> &[f32] {
        assert!(sensor < self.sensors, "sensor {sensor} of {}", self.sensors);
        let padded = self.sizes.hidden.div_ceil(8) * 8;
        &flat(&self.h)[sensor * padded..][..self.sizes.hidden]
    }
}
