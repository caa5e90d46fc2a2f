//! Gradients of attention to patches, for learning where an expert looks.
//!
//! Votes are a distribution over patches: v = mean of the rows of softmax(Q Kᵀ / s), or, for attention with `ReLU` features f,
//! `v_i = f(q_i)·Σ_j f(k_j)`, divided by the sum of all, in linear time. What the expert looks at is another distribution,
//! y: each of its points counts, by its weight, for the patch whose centre is nearest. The loss is the cross entropy
//! −Σ y ln(v + ε), so the attention learns from the expert's gaze what evolution finds by trial (learning from gaze: Zhang et al.
//! 2018, "AGIL: Learning attention from human for visuomotor tasks"). The agent itself only ever receives pictures.

use std::ops::Range;

use foveate_core::{Demonstration, Model, PatchGrid, PolicyError, Student, TensorShape};
use foveate_kernels::Level;
use foveate_kernels::elementwise::{add, add_rows, softmax, softmax_backward};
use foveate_kernels::gemm::{Gemm, View};

use crate::bottleneck::{Aggregation, BottleneckConfig};
use crate::params::Params;
use crate::voting::{Relu, VotingConfig};

/// Added to votes, whose logarithm would otherwise be infinite.
const EPSILON: f32 = 1e-8;

/// Learns the tensors `query.*` and `key.*`, which come first in the flat vector.
#[derive(Debug, Clone)]
pub struct GazeStudent {
    params: Params,
    config: BottleneckConfig,
    grid: PatchGrid,
    votes: Votes,
    /// Numbers of an action of the agent.
    actions: usize,
    level: Level,
    scratch: Scratch,
}

/// How patches vote.
#[derive(Debug, Clone, Copy)]
enum Votes {
    Softmax,
    /// max(x, 0) + epsilon of queries and keys.
    Relu {
        epsilon: f32,
    },
}

#[derive(Debug, Clone, Default)]
struct Scratch {
    gemm: Gemm,
    /// `[height, width, 3]`
    picture: Vec<u8>,
    /// `[patches, patch]`: the pixels of every patch, 0 to 1.
    patches: Vec<f32>,
    /// `[patches, d]`, and their gradients.
    queries: Vec<f32>,
    keys: Vec<f32>,
    d_queries: Vec<f32>,
    d_keys: Vec<f32>,
    /// `[patches, patches]`, and its gradient.
    attention: Vec<f32>,
    d_attention: Vec<f32>,
    /// `[patches]`
    votes: Vec<f32>,
    /// `[2, d]`: sums of the features of keys, and their gradients.
    sums: Vec<f32>,
    /// `[patches]`: the share of each patch in the gaze.
    gaze: Vec<f32>,
    /// Gradients of a piece: of `query.bias`, `query.weight`, `key.bias`, `key.weight`.
    own: [Vec<f32>; 4],
}

/// The tensors that learn, in the order of [`Scratch::own`].
const TENSORS: [&str; 4] = ["query.bias", "query.weight", "key.bias", "key.weight"];

impl GazeStudent {
    /// The student of a bottleneck in an agent of these `tensors` and so many `actions`; `None` unless it votes by softmax, or by
    /// `ReLU` features of queries and keys themselves, over the colours of patches.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`BottleneckConfig::check`].
    pub fn new(
        config: BottleneckConfig,
        tensors: Vec<TensorShape>,
        actions: usize,
    ) -> Result<Option<Self>, PolicyError> {
        let grid = config.check()?;
        let votes = match config.voting {
            VotingConfig::Softmax(_) => Votes::Softmax,
            VotingConfig::Relu(Relu { features: 0, epsilon, .. }) => {
                // Queries and keys are both divided by the root of the divisor, which the shares of votes do not show.
                let divisor = config.scale.divisor(config.patch_len(), config.query_dim);
                Votes::Relu { epsilon: (epsilon * divisor.sqrt()) as f32 }
            }
            _ => return Ok(None),
        };
        if config.depth || config.aggregation != Aggregation::Ones {
            return Ok(None);
        }
        Ok(Some(GazeStudent {
            params: Params::zeros(tensors),
            grid,
            votes,
            actions,
            level: Level::best(),
            scratch: Scratch::default(),
            config,
        }))
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// The patch whose centre is nearest to this share of the picture's side of `pixels`, among `count` in a row.
    fn nearest(&self, share: f32, pixels: usize, count: usize) -> usize {
        let place =
            (f64::from(share) * pixels as f64 - self.config.patch as f64 / 2.0) / self.config.stride as f64;
        (place.round().max(0.0) as usize).min(count - 1)
    }

    /// Writes the expert's gaze in a step as a distribution over patches; whether it looks anywhere.
    fn look_up(&mut self, demonstration: &Demonstration, step: usize) -> bool {
        let [width, height] = self.config.image;
        let (columns, rows) = (self.grid.columns(), self.grid.rows());
        let mut gaze = std::mem::take(&mut self.scratch.gaze);
        gaze.clear();
        gaze.resize(self.grid.len(), 0.0);
        let points = &demonstration.gaze[step];
        for point in points {
            let (column, row) = (self.nearest(point.x, width, columns), self.nearest(point.y, height, rows));
            gaze[row * columns + column] += point.weight;
        }
        let total: f32 = gaze.iter().sum();
        for share in &mut gaze {
            *share /= total;
        }
        self.scratch.gaze = gaze;
        total > 0.0 && total.is_finite()
    }

    /// Cuts the picture of a step into patches, row-major, as the agent does.
    fn cut(&mut self, demonstration: &Demonstration, step: usize) {
        let ([width, height], patch, stride) = (self.config.image, self.config.patch, self.config.stride);
        let Scratch { picture, patches, .. } = &mut self.scratch;
        picture.resize(width * height * 3, 0);
        demonstration.pictures.unpack(step, picture).expect("a picture per step");
        patches.clear();
        for row in 0..self.grid.rows() {
            for column in 0..self.grid.columns() {
                for y in row * stride..row * stride + patch {
                    let from = (y * width + column * stride) * 3;
                    patches.extend(
                        picture[from..from + patch * 3].iter().map(|&byte| f32::from(byte) * (1.0 / 255.0)),
                    );
                }
            }
        }
    }

    /// Adds the gradient of the loss of the step whose patches and gaze are at hand to the own ones; returns the loss.
    fn step(&mut self) -> f64 {
        let (level, n, d, width) =
            (self.level, self.grid.len(), self.config.query_dim, self.config.patch_len());
        let Scratch { gemm, patches, queries, keys, d_queries, d_keys, .. } = &mut self.scratch;
        for numbers in [&mut *queries, keys, d_queries, d_keys] {
            numbers.resize(n * d, 0.0);
        }
        let patches = View::new(patches, n, width);
        let [query_bias, query_weight, key_bias, key_weight] = TENSORS.map(|name| self.params.get(name));
        for (bias, weight, to) in [(query_bias, query_weight, &mut *queries), (key_bias, key_weight, keys)] {
            let weight = View::new(weight, d, width).transposed();
            gemm.product_plus(level, patches, weight, bias, to);
        }
        let loss = match self.votes {
            Votes::Softmax => self.softmax_votes(),
            Votes::Relu { epsilon } => self.relu_votes(epsilon),
        };
        let Scratch { gemm, patches, d_queries, d_keys, own, .. } = &mut self.scratch;
        let patches = View::new(patches, n, width);
        let [query_bias, query_weight, key_bias, key_weight] = own;
        for (rows, bias, weight) in [(d_queries, query_bias, query_weight), (d_keys, key_bias, key_weight)] {
            add_rows(bias, rows);
            gemm.add_product(level, View::new(rows, n, d).transposed(), patches, weight);
        }
        loss
    }

    /// Writes the gradients of queries and keys; returns the loss.
    fn softmax_votes(&mut self) -> f64 {
        let (level, n, d) = (self.level, self.grid.len(), self.config.query_dim);
        let factor = (1.0 / self.config.scale.divisor(self.config.patch_len(), d)) as f32;
        let Scratch { gemm, queries, keys, d_queries, d_keys, attention, d_attention, votes, gaze, .. } =
            &mut self.scratch;
        attention.resize(n * n, 0.0);
        d_attention.resize(n * n, 0.0);
        gemm.product(level, View::new(queries, n, d), View::new(keys, n, d).transposed(), attention);
        softmax(level, attention, n, factor);
        votes.clear();
        votes.resize(n, 0.0);
        add_rows(votes, attention);

        let mut loss = 0.0;
        let share = 1.0 / n as f32;
        for (vote, &gaze) in votes.iter_mut().zip(&*gaze) {
            let v = *vote * share + EPSILON;
            loss -= f64::from(gaze) * f64::from(v).ln();
            *vote = -gaze / v * share;
        }
        for row in d_attention.chunks_exact_mut(n) {
            row.copy_from_slice(votes);
        }
        softmax_backward(level, attention, d_attention, n, factor);
        let of_scores = View::new(d_attention, n, n);
        gemm.product(level, of_scores, View::new(keys, n, d), d_queries);
        gemm.product(level, of_scores.transposed(), View::new(queries, n, d), d_keys);
        loss
    }

    /// Writes the gradients of queries and keys; returns the loss. Numbers are summed patch by patch, the same on all
    /// instruction sets.
    fn relu_votes(&mut self, epsilon: f32) -> f64 {
        let d = self.config.query_dim;
        let Scratch { queries, keys, d_queries, d_keys, votes, gaze, sums, .. } = &mut self.scratch;
        sums.clear();
        sums.resize(2 * d, 0.0);
        let (of_keys, d_of_keys) = sums.split_at_mut(d);
        for key in keys.chunks_exact(d) {
            for (sum, &x) in of_keys.iter_mut().zip(key) {
                *sum += x.max(0.0) + epsilon;
            }
        }
        votes.clear();
        votes.extend(queries.chunks_exact(d).map(|query| {
            query.iter().zip(&*of_keys).map(|(&x, &sum)| (x.max(0.0) + epsilon) * sum).sum::<f32>()
        }));
        let total = votes.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        // The gradient of the shares of votes, and its mean under them.
        let (mut loss, mut mean) = (0.0, 0.0);
        for (vote, &gaze) in votes.iter_mut().zip(&*gaze) {
            let share = *vote / total;
            loss -= f64::from(gaze) * f64::from(share + EPSILON).ln();
            *vote = -gaze / (share + EPSILON);
            mean += *vote * share;
        }
        for ((query, d_query), &vote) in
            queries.chunks_exact(d).zip(d_queries.chunks_exact_mut(d)).zip(&*votes)
        {
            let d_score = (vote - mean) / total;
            for k in 0..d {
                d_of_keys[k] += d_score * (query[k].max(0.0) + epsilon);
                d_query[k] = if query[k] > 0.0 { d_score * of_keys[k] } else { 0.0 };
            }
        }
        for (key, d_key) in keys.chunks_exact(d).zip(d_keys.chunks_exact_mut(d)) {
            for k in 0..d {
                d_key[k] = if key[k] > 0.0 { d_of_keys[k] } else { 0.0 };
            }
        }
        loss
    }
}

impl Model for GazeStudent {
    fn learns(&self) -> Range<usize> {
        0..self.params.place("key.weight").end
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }
}

impl Student for GazeStudent {
    fn inputs(&self) -> usize {
        0
    }

    fn picture(&self) -> usize {
        self.config.image[0] * self.config.image[1] * 3
    }

    fn actions(&self) -> usize {
        self.actions
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        _: usize,
        gradient: &mut [f32],
    ) -> f64 {
        assert_eq!(gradient.len(), self.params.flat().len(), "parameters");
        assert_eq!(demonstration.gaze.len(), demonstration.steps, "steps with a gaze");
        for (own, name) in self.scratch.own.iter_mut().zip(TENSORS) {
            own.clear();
            own.resize(self.params.place(name).len(), 0.0);
        }
        let mut loss = 0.0;
        for step in piece {
            if self.look_up(demonstration, step) {
                self.cut(demonstration, step);
                loss += self.step();
            }
        }
        for (own, name) in self.scratch.own.iter().zip(TENSORS) {
            add(&mut gradient[self.params.place(name)], own);
        }
        loss
    }
}
