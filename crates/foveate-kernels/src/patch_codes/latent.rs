//! Queries and keys of the codes themselves, for attention on the picture that they make.

use crate::Level;
use crate::embedded::{Embedded, LIMIT};
use crate::lanes::{Block, Isa, Lanes, Task};
use crate::project::{Linear, Scales};

/// Two linear layers applied to every code's message.
#[derive(Debug, Clone)]
pub struct Latent {
    codes: usize,
    message: usize,
    dim: usize,
    /// `[2 dim, 1 + message]`: bias and weights of the query's numbers, then of the key's.
    weights: Vec<f32>,
}

impl Latent {
    /// Layers with zero weights for `codes` messages of `message` numbers; queries and keys have `dim`.
    ///
    /// # Panics
    /// When a size is zero.
    pub fn new(codes: usize, message: usize, dim: usize) -> Self {
        assert!(codes > 0 && message > 0 && dim > 0, "sizes must be above 0");
        Latent { codes, message, dim, weights: vec![0.0; 2 * dim * (1 + message)] }
    }

    /// Allocates the result of [`Latent::project`].
    pub fn embedded(&self) -> Embedded {
        Embedded::new(self.codes, self.dim)
    }

    /// Sets the weights, `[dim, message]`. Queries and keys are also multiplied by their scales.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, query: Linear<'_>, key: Linear<'_>, scales: Scales) {
        let width = 1 + self.message;
        let (queries, keys) = self.weights.split_at_mut(self.dim * width);
        for (layer, scale, rows) in [(query, scales.query, queries), (key, scales.key, keys)] {
            assert_eq!(layer.weight.len(), self.dim * self.message, "weights");
            assert_eq!(layer.bias.len(), self.dim, "biases");
            let from = layer.weight.chunks_exact(self.message).zip(layer.bias);
            for (to, (weights, &bias)) in rows.chunks_exact_mut(width).zip(from) {
                for (to, &from) in to.iter_mut().zip(std::iter::once(&bias).chain(weights)) {
                    *to = (f64::from(from) * scale) as f32;
                }
            }
        }
    }

    /// Projects `message`, `[message, padded codes]`, where codes are padded to a multiple of 16.
    ///
    /// # Panics
    /// When `message` has another size, or `out` comes from other layers.
    pub fn project(&self, level: Level, message: &[f32], out: &mut Embedded) {
        assert_eq!(message.len(), self.message * self.codes.next_multiple_of(16), "the message");
        assert_eq!(out.patches(), self.codes, "codes");
        assert_eq!(out.dim(), self.dim, "length of a query");
        level.run(Project { with: self, message, out });
    }
}

struct Project<'a> {
    with: &'a Latent,
    message: &'a [f32],
    out: &'a mut Embedded,
}

impl Task for Project<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Project { with, message, out } = self;
        let pitch = with.codes.next_multiple_of(16);
        let per_row = out.per_row();
        let rows = out.rows_mut();
        let limit = isa.splat16(LIMIT);
        let least = isa.splat16(-LIMIT);
        for block in 0..pitch / 16 {
            let count = 16.min(with.codes - 16 * block);
            for (output, weights) in with.weights.chunks_exact(1 + with.message).enumerate() {
                let mut sum = isa.splat16(weights[0]);
                for (row, &weight) in message.chunks_exact(pitch).zip(&weights[1..]) {
                    let x = row[16 * block..].first_chunk().expect("padded to sixteen");
                    sum = isa.load16(x).mul_add(isa.splat16(weight), sum);
                }
                let mut numbers = Block::default();
                sum.min(limit).max(least).store(&mut numbers.0);
                let (eight, lane) = (output / 8, output % 8);
                for (i, &x) in numbers.0[..count].iter().enumerate() {
                    rows[(16 * block + i) * per_row + eight].0[lane] = x;
                }
            }
        }
    }
}
