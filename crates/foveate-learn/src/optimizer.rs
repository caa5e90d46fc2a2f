//! Optimisers: Adam and `RMSProp`, gradient clipping and schedules of the learning rate.

#![allow(clippy::inline_always, reason = "compiled anew for every instruction set, see `Plain`")]

use foveate_core::{StateDict, StateError, Tensor, TensorData};
use foveate_kernels::Level;
use foveate_kernels::elementwise::all_finite;
use foveate_kernels::plain::Plain;
use serde::{Deserialize, Serialize};

/// Settings of an optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum OptimizerConfig {
    /// Adam (Kingma and Ba 2015), as in PyTorch.
    Adam {
        /// Decay of the first moment, 0 to below 1.
        #[serde(default = "adam_beta1")]
        beta1: f64,
        /// Decay of the second moment, 0 to below 1.
        #[serde(default = "adam_beta2")]
        beta2: f64,
        /// Added to the root of the second moment.
        #[serde(default = "adam_epsilon")]
        epsilon: f64,
    },
    /// `RMSProp` (Tieleman and Hinton 2012), without momentum unless it is set.
    RmsProp {
        /// Decay of the mean square, 0 to below 1.
        #[serde(default = "rms_decay")]
        decay: f64,
        /// Momentum, 0 to below 1.
        #[serde(default)]
        momentum: f64,
        /// Added to the root of the mean square or, in TensorFlow's form, below the root.
        #[serde(default = "rms_epsilon")]
        epsilon: f64,
        /// TensorFlow's form: the mean square begins at 1, and epsilon is added below the root.
        #[serde(default)]
        tensorflow: bool,
    },
    /// Gradient descent.
    Sgd,
}

const fn adam_beta1() -> f64 {
    0.9
}
const fn adam_beta2() -> f64 {
    0.999
}
const fn adam_epsilon() -> f64 {
    1e-8
}
const fn rms_decay() -> f64 {
    0.99
}
const fn rms_epsilon() -> f64 {
    1e-8
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        OptimizerConfig::Adam { beta1: adam_beta1(), beta2: adam_beta2(), epsilon: adam_epsilon() }
    }
}

impl OptimizerConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence with the setting, its value and its range.
    pub fn check(&self) -> Result<(), String> {
        let decay = |name: &str, value: f64| match value {
            0.0..1.0 => Ok(()),
            _ => Err(format!("{name} = {value}; choose a number from 0 to below 1")),
        };
        let positive = |value: f64| match value {
            1e-12..=1.0 => Ok(()),
            _ => Err(format!("epsilon = {value}; choose a number from 1e-12 to 1")),
        };
        match *self {
            OptimizerConfig::Adam { beta1, beta2, epsilon } => {
                decay("beta1", beta1)?;
                decay("beta2", beta2)?;
                positive(epsilon)
            }
            OptimizerConfig::RmsProp { decay: mean, momentum, epsilon, .. } => {
                decay("decay", mean)?;
                decay("momentum", momentum)?;
                positive(epsilon)
            }
            OptimizerConfig::Sgd => Ok(()),
        }
    }
}

/// An optimiser with its state. The parameters and all its means are in single precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    config: OptimizerConfig,
    steps: u64,
    /// `[params]`: the first moment, or the velocity; empty if not needed.
    first: Vec<f32>,
    /// `[params]`: the second moment or the mean square; empty if not needed.
    second: Vec<f32>,
}

impl Optimizer {
    /// An optimiser for this many parameters.
    pub fn new(config: OptimizerConfig, params: usize) -> Self {
        let zeros = |needed: bool| vec![0.0; if needed { params } else { 0 }];
        let (first, second) = match config {
            OptimizerConfig::Adam { .. } => (zeros(true), zeros(true)),
            OptimizerConfig::RmsProp { momentum, tensorflow, .. } => {
                (zeros(momentum > 0.0), vec![if tensorflow { 1.0 } else { 0.0 }; params])
            }
            OptimizerConfig::Sgd => (vec![], vec![]),
        };
        Optimizer { config, steps: 0, first, second }
    }

    /// Replaces the numbers among its settings and keeps its means.
    ///
    /// # Panics
    /// When `config` is of another kind, or needs other means.
    pub fn set_config(&mut self, config: OptimizerConfig) {
        let Optimizer { first, second, .. } = Optimizer::new(config, self.first.len().max(self.second.len()));
        let same = std::mem::discriminant(&config) == std::mem::discriminant(&self.config);
        let fits = (first.len(), second.len()) == (self.first.len(), self.second.len());
        assert!(same && fits, "{config:?} needs other means than {:?}", self.config);
        self.config = config;
    }

    /// Number of steps made.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Makes a step against `gradient`, and returns whether all parameters are finite after it.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn step(&mut self, learning_rate: f64, gradient: &[f32], params: &mut [f32]) -> bool {
        assert_eq!(gradient.len(), params.len(), "gradient and parameters");
        self.steps += 1;
        let Optimizer { config, steps, first, second } = self;
        let rate = learning_rate as f32;
        match *config {
            OptimizerConfig::Adam { beta1, beta2, epsilon } => {
                assert_eq!(first.len(), gradient.len(), "parameters");
                // PyTorch: the bias of both moments is corrected, and epsilon comes after that.
                let corrected = |beta: f64| 1.0 - beta.powi(i32::try_from(*steps).unwrap_or(i32::MAX));
                let step = (learning_rate / corrected(beta1)) as f32;
                let root = corrected(beta2).sqrt() as f32;
                let [beta1, beta2, epsilon] = [beta1, beta2, epsilon].map(|x| x as f32);
                let numbers = [step, root, beta1, beta2, epsilon];
                return Level::best().run_plain(Adam { params, gradient, first, second, numbers });
            }
            OptimizerConfig::RmsProp { decay, momentum, epsilon, tensorflow } => {
                assert_eq!(second.len(), gradient.len(), "parameters");
                let (decay, momentum, epsilon) = (decay as f32, momentum as f32, epsilon as f32);
                for (at, ((p, &g), v)) in params.iter_mut().zip(gradient).zip(second).enumerate() {
                    *v = *v * decay + g * g * (1.0 - decay);
                    let by = if tensorflow { (*v + epsilon).sqrt() } else { v.sqrt() + epsilon };
                    match first.get_mut(at) {
                        // TensorFlow's velocity includes the learning rate, PyTorch's does not.
                        Some(velocity) if tensorflow => {
                            *velocity = *velocity * momentum + rate * g / by;
                            *p -= *velocity;
                        }
                        Some(velocity) => {
                            *velocity = *velocity * momentum + g / by;
                            *p -= rate * *velocity;
                        }
                        None => *p -= rate * g / by,
                    }
                }
            }
            OptimizerConfig::Sgd => {
                for (p, &g) in params.iter_mut().zip(gradient) {
                    *p -= rate * g;
                }
            }
        }
        all_finite(params)
    }

    /// Everything needed to resume bit for bit.
    pub fn state(&self) -> StateDict {
        [
            ("optimizer.steps".to_owned(), Tensor::from(vec![self.steps])),
            ("optimizer.first".to_owned(), Tensor::from(self.first.clone())),
            ("optimizer.second".to_owned(), Tensor::from(self.second.clone())),
        ]
        .into()
    }

    /// Restores the state from [`Optimizer::state`].
    ///
    /// # Errors
    /// When a tensor is missing, of another size, or not finite; the optimiser is then unchanged.
    pub fn restore(&mut self, state: &StateDict) -> Result<(), StateError> {
        let numbers = |name: &str, len: usize| -> Result<Vec<f32>, StateError> {
            let missing = || StateError::Missing { name: name.into() };
            let TensorData::F32(numbers) = state.get(name).ok_or_else(missing)?.data() else {
                return Err(StateError::Unfit { name: name.into(), what: "does not hold F32".into() });
            };
            if numbers.len() != len {
                let what = format!("has {} numbers, {len} are due", numbers.len());
                return Err(StateError::Unfit { name: name.into(), what });
            }
            match numbers.iter().find(|x| !x.is_finite()) {
                Some(&value) => Err(StateError::Number { name: name.into(), value: f64::from(value) }),
                None => Ok(numbers.clone()),
            }
        };
        let name = "optimizer.steps";
        let steps = state.get(name).ok_or_else(|| StateError::Missing { name: name.into() })?;
        let TensorData::U64(steps) = steps.data() else {
            return Err(StateError::Unfit { name: name.into(), what: "does not hold U64".into() });
        };
        let &[steps] = &steps[..] else {
            let what = format!("has {} numbers, 1 is due", steps.len());
            return Err(StateError::Unfit { name: name.into(), what });
        };
        if steps >= 1 << 53 {
            let what = format!("counts {steps}, more than any run can count");
            return Err(StateError::Unfit { name: name.into(), what });
        }
        let first = numbers("optimizer.first", self.first.len())?;
        let second = numbers("optimizer.second", self.second.len())?;
        if let Some(&square) = second.iter().find(|&&square| square < 0.0) {
            return Err(StateError::Number { name: "optimizer.second".into(), value: f64::from(square) });
        }
        (self.steps, self.first, self.second) = (steps, first, second);
        Ok(())
    }
}

/// A step of Adam.
struct Adam<'a> {
    params: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    /// Step size and root of the second moment's correction; both decays; epsilon.
    numbers: [f32; 5],
}

/// Parameters that lie in the fastest cache with all that belongs to them.
const BLOCK: usize = 1024;

impl Plain for Adam<'_> {
    /// Whether all parameters are finite.
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Adam { params, gradient, first, second, numbers: [step, root, beta1, beta2, epsilon] } = self;
        let blocks = params
            .chunks_mut(BLOCK)
            .zip(gradient.chunks(BLOCK))
            .zip(first.chunks_mut(BLOCK))
            .zip(second.chunks_mut(BLOCK));
        let mut finite = true;
        for (((params, gradient), first), second) in blocks {
            for (((p, &g), m), v) in params.iter_mut().zip(gradient).zip(first).zip(second) {
                *m = *m * beta1 + g * (1.0 - beta1);
                *v = *v * beta2 + g * g * (1.0 - beta2);
                *p -= step * (*m / (v.sqrt() / root + epsilon));
            }
            for p in params {
                finite &= p.is_finite();
            }
        }
        finite
    }
}

/// A bound on gradients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clip {
    /// Scales the whole gradient down to this Euclidean norm.
    Norm(f64),
    /// Limits every number to ± this.
    Value(f64),
}

/// The Euclidean norm of a gradient.
pub fn norm(gradient: &[f32]) -> f64 {
    Level::best().run_plain(Norm(gradient))
}

struct Norm<'a>(&'a [f32]);

impl Plain for Norm<'_> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        // Double precision: the square of a large number must not overflow. Eight sums, so that compilers use vectors.
        let (chunks, rest) = self.0.as_chunks::<8>();
        let mut sums = [0.0; 8];
        for chunk in chunks {
            for (sum, &g) in sums.iter_mut().zip(chunk) {
                *sum += f64::from(g) * f64::from(g);
            }
        }
        let mut last = 0.0;
        for &g in rest {
            last += f64::from(g) * f64::from(g);
        }
        let mut all = 0.0;
        for sum in sums {
            all += sum;
        }
        (all + last).sqrt()
    }
}

impl Clip {
    /// Applies the bound to `gradient`, whose norm is `norm`.
    pub fn apply(self, norm: f64, gradient: &mut [f32]) {
        match self {
            Clip::Norm(most) if norm > most => {
                // PyTorch's form, which keeps the result below the bound.
                let scale = (most / (norm + 1e-6)) as f32;
                for g in gradient {
                    *g *= scale;
                }
            }
            Clip::Norm(_) => {}
            Clip::Value(most) => {
                let most = most as f32;
                for g in gradient {
                    *g = g.clamp(-most, most);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRADIENTS: [[f32; 3]; 3] = [[0.5, -1.0, 2.0], [0.1, 0.0, -3.0], [-0.7, 4.0, 1e-3]];

    fn run(config: OptimizerConfig) -> Vec<f32> {
        let mut params = vec![1.0, 2.0, 3.0];
        let mut optimizer = Optimizer::new(config, 3);
        for gradient in GRADIENTS {
            optimizer.step(0.1, &gradient, &mut params);
        }
        params
    }

    /// The definition in double precision.
    fn exact(config: OptimizerConfig) -> Vec<f64> {
        (0..3)
            .map(|i| {
                let (mut p, mut m) = (f64::from(i) + 1.0, 0.0);
                let mut v =
                    if let OptimizerConfig::RmsProp { tensorflow: true, .. } = config { 1.0 } else { 0.0 };
                for (t, gradient) in GRADIENTS.iter().enumerate() {
                    let g = f64::from(gradient[i as usize]);
                    match config {
                        OptimizerConfig::Adam { beta1, beta2, epsilon } => {
                            m = beta1 * m + (1.0 - beta1) * g;
                            v = beta2 * v + (1.0 - beta2) * g * g;
                            let t = t as i32 + 1;
                            let (m, v) = (m / (1.0 - beta1.powi(t)), v / (1.0 - beta2.powi(t)));
                            p -= 0.1 * m / (v.sqrt() + epsilon);
                        }
                        OptimizerConfig::RmsProp { decay, momentum, epsilon, tensorflow } => {
                            v = decay * v + (1.0 - decay) * g * g;
                            let by = if tensorflow { (v + epsilon).sqrt() } else { v.sqrt() + epsilon };
                            m = momentum * m + g / by;
                            p -= 0.1 * m;
                        }
                        OptimizerConfig::Sgd => p -= 0.1 * g,
                    }
                }
                p
            })
            .collect()
    }

    fn all() -> Vec<OptimizerConfig> {
        let rms = |momentum, tensorflow| OptimizerConfig::RmsProp {
            decay: 0.9,
            momentum,
            epsilon: 0.01,
            tensorflow,
        };
        vec![
            OptimizerConfig::default(),
            rms(0.0, false),
            rms(0.0, true),
            rms(0.9, false),
            rms(0.9, true),
            OptimizerConfig::Sgd,
        ]
    }

    #[test]
    fn steps_are_those_of_the_definition() {
        for config in all() {
            for (got, expect) in run(config).iter().zip(exact(config)) {
                assert!((f64::from(*got) - expect).abs() < 1e-5, "{config:?}: {got}, {expect}");
            }
        }
    }

    #[test]
    fn a_restored_optimizer_resumes_bit_for_bit() {
        for config in all() {
            config.check().expect("good settings");
            let mut params = vec![1.0, 2.0, 3.0];
            let mut optimizer = Optimizer::new(config, 3);
            optimizer.step(0.1, &GRADIENTS[0], &mut params);
            let mut other = Optimizer::new(config, 3);
            other.restore(&optimizer.state()).expect("its own state");
            assert_eq!(other, optimizer);
            for gradient in &GRADIENTS[1..] {
                other.step(0.1, gradient, &mut params);
            }
            assert_eq!(params, run(config));
            let mut state = optimizer.state();
            state.insert("optimizer.first".into(), vec![f32::NAN; optimizer.first.len() + 1].into());
            let before = other.clone();
            let said = other.restore(&state).expect_err("another size").to_string();
            assert!(said.contains("optimizer.first has"), "{said}");
            assert_eq!(other, before);
        }
    }

    #[test]
    fn gradients_are_clipped() {
        let mut gradient = vec![3.0, -4.0];
        let size = norm(&gradient);
        assert_eq!(size, 5.0);
        Clip::Norm(6.0).apply(size, &mut gradient);
        assert_eq!(gradient, [3.0, -4.0]);
        Clip::Norm(1.0).apply(size, &mut gradient);
        assert!((norm(&gradient) - 1.0).abs() < 1e-6);
        let mut gradient = vec![3.0, -4.0, 0.5];
        Clip::Value(1.0).apply(5.0, &mut gradient);
        assert_eq!(gradient, [1.0, -1.0, 0.5]);
        let large = vec![1e18; 10_000];
        assert!(norm(&large).is_finite());
    }

    #[test]
    fn bad_settings_are_refused() {
        let adam = |beta1, epsilon| OptimizerConfig::Adam { beta1, beta2: 0.9, epsilon };
        for (config, why) in [
            (adam(1.0, 1e-8), "beta1 = 1; choose"),
            (adam(f64::NAN, 1e-8), "beta1 = NaN"),
            (adam(0.9, 0.0), "epsilon = 0"),
        ] {
            let said = config.check().expect_err("bad");
            assert!(said.contains(why), "{said}");
        }
    }
}
