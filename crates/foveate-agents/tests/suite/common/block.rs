//! IAP's block and its controllers as they are defined, in double precision and in no hurry.

use foveate_agents::AgentConfig;
use foveate_agents::controller::ControllerConfig;
use foveate_agents::implicit_attention::ImplicitAttentionConfig;
use foveate_agents::voting::VotingConfig;
use foveate_core::{Image, TensorShape};

/// Largest difference, relative to the largest number of `want`.
pub(crate) fn distance(given: &[f32], want: &[f64]) -> f64 {
    assert_eq!(given.len(), want.len());
    let scale = want.iter().fold(1e-300, |most: f64, x| most.max(x.abs()));
    given.iter().zip(want).map(|(&a, b)| (f64::from(a) - b).abs() / scale).fold(0.0, f64::max)
}

/// An agent with its parameters.
pub(crate) struct Block {
    config: ImplicitAttentionConfig,
    tensors: Vec<TensorShape>,
    params: Vec<f64>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn linear(weight: &[f64], bias: &[f64], x: &[f64]) -> Vec<f64> {
    bias.iter().zip(weight.chunks_exact(x.len())).map(|(b, w)| b + dot(w, x)).collect()
}

impl Block {
    pub(crate) fn of(config: &ImplicitAttentionConfig, params: &[f32]) -> Self {
        let params = params.iter().map(|&x| f64::from(x)).collect();
        Block { config: config.clone(), tensors: config.tensors(), params }
    }

    fn tensor(&self, name: &str) -> &[f64] {
        let at = self.tensors.iter().position(|tensor| tensor.name == name).expect(name);
        let start: usize = self.tensors[..at].iter().map(TensorShape::len).sum();
        &self.params[start..start + self.tensors[at].len()]
    }

    /// The importance of every patch.
    pub(crate) fn importance(&self, image: Image<'_>, depth: Option<&[u8]>) -> Vec<f64> {
        let (config, grid) = (&self.config, self.config.bottleneck().check().expect("valid"));
        let (mut queries, mut keys) = (vec![], vec![]);
        let divisor = config.scale.divisor(config.bottleneck().patch_len(), config.query_dim);
        for patch in 0..grid.len() {
            let (x0, y0) = grid.corner(patch);
            let mut x = vec![];
            for y in y0..y0 + config.patch {
                for column in x0..x0 + config.patch {
                    x.extend(image.pixel(column, y).map(|byte| f64::from(byte) / 255.0));
                    x.extend(depth.map(|depth| f64::from(depth[y * image.width() + column]) / 255.0));
                }
            }
            let scaled = |name: &str| -> Vec<f64> {
                let z =
                    linear(self.tensor(&format!("{name}.weight")), self.tensor(&format!("{name}.bias")), &x);
                z.iter().map(|z| z / divisor.sqrt()).collect()
            };
            queries.push(scaled("query"));
            keys.push(scaled("key"));
        }
        if let VotingConfig::Softmax(_) = config.voting {
            let mut importance = vec![0.0; grid.len()];
            for q in &queries {
                let row: Vec<f64> = keys.iter().map(|k| dot(q, k).exp()).collect();
                let sum: f64 = row.iter().sum();
                importance.iter_mut().zip(row).for_each(|(to, x)| *to += x / sum);
            }
            return importance;
        }
        let kernel = self.kernel();
        let weight = |j: usize| match config.aggregation {
            foveate_agents::bottleneck::Aggregation::Ones => 1.0,
            foveate_agents::bottleneck::Aggregation::Learned => self.tensor("aggregation.weight")[j],
        };
        let of = |q: &Vec<f64>| keys.iter().enumerate().map(|(j, k)| weight(j) * kernel(q, k)).sum();
        queries.iter().map(of).collect()
    }

    /// κ(q, k).
    fn kernel(&self) -> impl Fn(&[f64], &[f64]) -> f64 {
        let (voting, d) = (self.config.voting.clone(), self.config.query_dim);
        let wide = |rows: Option<Vec<f32>>| -> Vec<Vec<f64>> {
            let rows: Vec<f64> = rows.unwrap_or_default().iter().map(|&x| f64::from(x)).collect();
            rows.chunks_exact(d).map(<[f64]>::to_vec).collect()
        };
        let (omega, planes) = (wide(voting.projections(d)), wide(voting.hyperplanes(d)));
        move |q, k| {
            let same = |z: &[f64], length: Option<f64>| -> Vec<f64> {
                let factor = length.map_or(1.0, |length| length / dot(z, z).sqrt());
                z.iter().map(|z| z * factor).collect()
            };
            let elementwise = |f: fn(f64) -> f64, epsilon: f64| {
                let phi = |z: &[f64]| -> Vec<f64> {
                    if omega.is_empty() {
                        return z.iter().map(|&u| f(u) + epsilon).collect();
                    }
                    let root = (omega.len() as f64).sqrt();
                    omega.iter().map(|w| (f(dot(w, z)) + epsilon) / root).collect()
                };
                dot(&phi(q), &phi(k))
            };
            let trigonometric = |x: &[f64], y: &[f64]| {
                let mean =
                    omega.iter().map(|w| (dot(w, x) - dot(w, y)).cos()).sum::<f64>() / omega.len() as f64;
                mean * f64::midpoint(dot(x, x), dot(y, y)).exp()
            };
            let positive = |x: &[f64], y: &[f64], both: bool| {
                let t = |w: &Vec<f64>| dot(w, x) + dot(w, y);
                let term = |w| if both { t(w).cosh() } else { t(w).exp() };
                let mean = omega.iter().map(term).sum::<f64>() / omega.len() as f64;
                mean * (-f64::midpoint(dot(x, x), dot(y, y))).exp()
            };
            match &voting {
                VotingConfig::Softmax(_) => unreachable!("no kernel"),
                VotingConfig::SoftmaxKernel(of) => {
                    dot(&same(q, of.same_length), &same(k, of.same_length)).exp()
                }
                VotingConfig::Relu(of) => elementwise(|u| u.max(0.0), of.epsilon),
                VotingConfig::Exp(_) => elementwise(f64::exp, 0.0),
                VotingConfig::Elu(_) => elementwise(|u| if u > 0.0 { u + 1.0 } else { u.exp() }, 0.0),
                VotingConfig::Trigonometric(of) => {
                    trigonometric(&same(q, of.same_length), &same(k, of.same_length))
                }
                VotingConfig::Positive(of) => {
                    positive(&same(q, of.same_length), &same(k, of.same_length), false)
                }
                VotingConfig::Hyperbolic(of) => {
                    positive(&same(q, of.same_length), &same(k, of.same_length), true)
                }
                VotingConfig::Hybrid(of) => {
                    let (x, y) = (same(q, of.same_length), same(k, of.same_length));
                    let apart = planes.iter().filter(|t| (dot(t, &x) >= 0.0) != (dot(t, &y) >= 0.0)).count();
                    let share = apart as f64 / planes.len() as f64;
                    (1.0 - share) * trigonometric(&x, &y) + share * positive(&x, &y, of.hyperbolic)
                }
            }
        }
    }

    /// What an LSTM remembers: h and c.
    pub(crate) fn state(&self) -> [Vec<f64>; 2] {
        match self.config.controller {
            ControllerConfig::Lstm { hidden } => [vec![0.0; hidden], vec![0.0; hidden]],
            _ => [vec![], vec![]],
        }
    }

    /// The controller's output, in −1 ..= 1.
    pub(crate) fn act(&self, inputs: &[f32], [h, c]: &mut [Vec<f64>; 2]) -> Vec<f64> {
        let layer = |name: &str, x: &[f64]| -> Vec<f64> {
            let y = linear(self.tensor(&format!("{name}.weight")), self.tensor(&format!("{name}.bias")), x);
            y.into_iter().map(f64::tanh).collect()
        };
        let mut x: Vec<f64> = inputs.iter().map(|&x| f64::from(x)).collect();
        match &self.config.controller {
            ControllerConfig::Linear {} => {}
            ControllerConfig::Mlp { hidden } => {
                for i in 0..hidden.len() {
                    x = layer(&format!("hidden{i}"), &x);
                }
            }
            ControllerConfig::Lstm { hidden } => {
                let from_x = linear(self.tensor("lstm.weight_ih"), self.tensor("lstm.bias_ih"), &x);
                let from_h = linear(self.tensor("lstm.weight_hh"), self.tensor("lstm.bias_hh"), h);
                let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
                for unit in 0..*hidden {
                    let z = |gate: usize| from_x[gate * hidden + unit] + from_h[gate * hidden + unit];
                    c[unit] = sigmoid(z(1)) * c[unit] + sigmoid(z(0)) * z(2).tanh();
                    h[unit] = sigmoid(z(3)) * c[unit].tanh();
                }
                x.clone_from(h);
            }
        }
        layer("output", &x)
    }
}
