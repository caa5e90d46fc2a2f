//! Optimisers that move the mean along a gradient: Adam and `ClipUp`.

use foveate_core::{EvolveError, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

/// The kind of optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Toklu, Liskowski and Srivastava, "`ClipUp`: a simple and powerful optimizer for distribution-based
    /// policy evolution", 2020: only the direction of the gradient is used, with momentum and a speed limit.
    #[default]
    ClipUp,
    /// Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1.
    Adam,
}

/// Moves a mean uphill along gradients.
#[derive(Debug, Clone)]
pub struct Optimizer(Rule);

#[derive(Debug, Clone)]
enum Rule {
    /// ```text
    /// a ← β₁ a + (1 − β₁) g      b ← β₂ b + (1 − β₂) g²
    /// m ← m + η · a/(1 − β₁ᵗ) / (√(b/(1 − β₂ᵗ)) + ε)
    /// ```
    Adam { rate: f64, beta1: f64, beta2: f64, steps: u64, first: Vec<f64>, second: Vec<f64> },
    /// ```text
    /// v ← μ v + η g/‖g‖,  shortened to ‖v‖ = v_max where longer
    /// m ← m + v
    /// ```
    ClipUp { rate: f64, max_speed: f64, momentum: f64, velocity: Vec<f64> },
}

const EPSILON: f64 = 1e-8; // Adam's, as published

impl Optimizer {
    /// Adam with the step size `rate` and the decay rates `beta1` and `beta2`, for `params` parameters.
    pub fn adam(params: usize, rate: f64, beta1: f64, beta2: f64) -> Self {
        Optimizer(Rule::Adam {
            rate,
            beta1,
            beta2,
            steps: 0,
            first: vec![0.0; params],
            second: vec![0.0; params],
        })
    }

    /// `ClipUp` with the step size `rate`, the largest speed and the momentum, for `params` parameters.
    pub fn clip_up(params: usize, rate: f64, max_speed: f64, momentum: f64) -> Self {
        Optimizer(Rule::ClipUp { rate, max_speed, momentum, velocity: vec![0.0; params] })
    }

    /// Moves `mean` along `gradient`; the gradient and its squares must be finite.
    pub fn step(&mut self, gradient: &[f64], mean: &mut [f64]) {
        match &mut self.0 {
            Rule::Adam { rate, beta1, beta2, steps, first, second } => {
                *steps += 1;
                let t = i32::try_from(*steps).unwrap_or(i32::MAX);
                let (unbias1, unbias2) = (1.0 - beta1.powi(t), 1.0 - beta2.powi(t));
                for (((m, g), a), b) in mean.iter_mut().zip(gradient).zip(first).zip(second) {
                    *a = *beta1 * *a + (1.0 - *beta1) * g;
                    *b = *beta2 * *b + (1.0 - *beta2) * g * g;
                    *m += *rate * (*a / unbias1) / ((*b / unbias2).sqrt() + EPSILON);
                }
            }
            Rule::ClipUp { rate, max_speed, momentum, velocity } => {
                let length = norm(gradient);
                // Without a gradient only momentum acts.
                let scale = if length > 0.0 { *rate / length } else { 0.0 };
                for (v, g) in velocity.iter_mut().zip(gradient) {
                    *v = *momentum * *v + scale * g;
                }
                let speed = norm(velocity);
                let shorten = if speed > *max_speed { *max_speed / speed } else { 1.0 };
                for (v, m) in velocity.iter_mut().zip(mean) {
                    *v *= shorten;
                    *m += *v;
                }
            }
        }
    }

    /// Adds its state to `state` under its own names.
    pub fn save(&self, state: &mut StateDict) {
        match &self.0 {
            Rule::Adam { steps, first, second, .. } => {
                state.insert("adam.first".into(), Tensor::from(first.clone()));
                state.insert("adam.second".into(), Tensor::from(second.clone()));
                state.insert("adam.steps".into(), Tensor::from(vec![*steps]));
            }
            Rule::ClipUp { velocity, .. } => {
                state.insert("clip_up.velocity".into(), Tensor::from(velocity.clone()));
            }
        }
    }

    /// This optimiser with the saved state.
    ///
    /// # Errors
    /// When an entry is missing, of the wrong size, or out of range.
    pub fn restored(&self, state: StateReader<'_>) -> Result<Self, EvolveError> {
        let mut restored = self.clone();
        match &mut restored.0 {
            Rule::Adam { steps, first, second, .. } => {
                *first = state.f64s("adam.first", first.len())?.to_vec();
                *second = state.f64s("adam.second", second.len())?.to_vec();
                if let Some(x) = second.iter().find(|&&x| x < 0.0) {
                    return Err(crate::base::bad(format!("adam.second holds {x}, a square")));
                }
                *steps = state.counters("adam.steps", 1)?[0];
            }
            Rule::ClipUp { velocity, .. } => {
                *velocity = state.f64s("clip_up.velocity", velocity.len())?.to_vec();
            }
        }
        Ok(restored)
    }
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut optimizer: Optimizer, gradients: &[[f64; 2]], expect: &[[f64; 2]]) {
        let mut mean = [0.0; 2];
        for (g, e) in gradients.iter().zip(expect) {
            optimizer.step(g, &mut mean);
            assert!(mean.iter().zip(e).all(|(m, e)| (m - e).abs() < 1e-7), "{g:?}: {mean:?}, not {e:?}");
        }
    }

    #[test]
    fn steps_by_hand() {
        let clip_up = || Optimizer::clip_up(2, 0.1, 0.15, 0.9);
        // The length of the gradient has no effect; the second step would have length 0.19 and is clipped.
        check(clip_up(), &[[300.0, 400.0], [0.3, 0.4]], &[[0.06, 0.08], [0.15, 0.2]]);
        // Without a gradient it continues by momentum.
        check(clip_up(), &[[1.0, 0.0], [0.0; 2], [0.0; 2]], &[[0.1, 0.0], [0.19, 0.0], [0.271, 0.0]]);
        // Adam's first step is the rate in each direction, whatever the gradient.
        let adam = || Optimizer::adam(2, 0.1, 0.9, 0.999);
        check(adam(), &[[0.3, -5e3]], &[[0.1, -0.1]]);
        // a = 0.09 + 0.1·(−1), b = 0.000999 + 0.001; unbiased −0.01/0.19 and 1.
        check(adam(), &[[1.0, 0.0], [-1.0, 0.0]], &[[0.1, 0.0], [0.1 - 0.1 * 0.01 / 0.19, 0.0]]);
        check(adam(), &[[0.0; 2]], &[[0.0; 2]]);
    }
}
