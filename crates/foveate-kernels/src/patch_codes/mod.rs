//! Codes of a stack of pictures: attention of fixed queries over patches (Tang and Ha 2021, AttentionNeuron).
//!
//! The pictures are cut into patches that do not overlap. The key of a patch is a linear layer of the
//! differences between neighbouring pictures and of some numbers that all patches share; its value is a
//! linear layer of the patch's pixels, normalised picture by picture. A fixed table holds the queries, one
//! per code: `message = norm(relu(softmax(queries · keysᵀ) values))`, `[codes, message]`.
//!
//! The result does not depend on the order of the patches, bit for bit: patches are sorted by their content
//! before anything is added up. Three properties of the formula save most of its work:
//!
//! * Differences and normalised pixels stay the same when a patch gets brighter or darker as a whole, so
//!   patches that differ only in that are merged: all still areas of one colour become one patch. A merged
//!   patch counts as often as it occurs.
//! * The linear layers of queries and keys are multiplied with each other once per weight vector. A patch is
//!   then as wide as a row of the table, plus one.
//! * Sixteen codes are processed together, so the sums over patches need no reduction.
//!
//! Results are bit-identical on every instruction set.

mod attend;
mod gradient;
mod latent;
mod merge;
mod project;

use std::fmt;

use crate::Level;
use crate::lanes::{Block, flat};
use crate::project::Linear;
use merge::Merged;

pub use gradient::{CodesGradient, CodesLearner};
pub use latent::Latent;

/// Added to variances, as in PyTorch's `LayerNorm`.
pub const EPSILON: f64 = 1e-5;

/// Most pixels in a side of a patch: sums over its pixels then stay exact.
pub const MAX_PATCH: usize = 128;

/// Numbers beyond ± this saturate, so that products stay finite for any weights.
const LIMIT: f64 = 1e15;

/// Sizes of [`PatchCodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodesShape {
    /// Width of a picture in pixels.
    pub width: usize,
    /// Height of a picture in pixels.
    pub height: usize,
    /// Number of pictures, at least 2.
    pub frames: usize,
    /// Side of a patch in pixels; rows and columns of pixels that do not fill a patch are not used.
    pub patch: usize,
    /// Numbers that all patches share.
    pub shared: usize,
    /// Number of codes.
    pub codes: usize,
    /// Numbers in a query of the fixed table.
    pub code_dim: usize,
    /// Numbers in a message.
    pub message: usize,
}

impl CodesShape {
    /// Number of patches.
    pub const fn patches(&self) -> usize {
        (self.width / self.patch) * (self.height / self.patch)
    }

    /// Numbers in a patch of one picture.
    const fn area(&self) -> usize {
        self.patch * self.patch
    }

    /// Inputs of the keys' layer: differences and shared numbers.
    pub const fn key_inputs(&self) -> usize {
        (self.frames - 1) * self.area() + self.shared
    }

    /// Inputs of the values' layer.
    pub const fn value_inputs(&self) -> usize {
        self.frames * self.area()
    }

    /// Number of blocks of sixteen codes.
    const fn blocks(&self) -> usize {
        self.codes.div_ceil(16)
    }
}

/// The order in which the differences of a patch are flattened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flatten {
    /// `[row, column, time]`
    TimeFastest,
    /// `[time, row, column]`
    TimeSlowest,
}

/// Factors and offsets behind a normalisation, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Affine<'a> {
    /// One factor per number.
    pub weight: &'a [f32],
    /// One offset per number.
    pub bias: &'a [f32],
}

/// The weights of [`PatchCodes`], borrowed, in PyTorch's layout.
#[derive(Debug, Clone, Copy)]
pub struct CodesWeights<'a> {
    /// The fixed table, `[codes, code_dim]`.
    pub table: &'a [f32],
    /// `[query_dim, code_dim]`
    pub query: Linear<'a>,
    /// `[query_dim, key_inputs]`: differences in the order of `flatten`, then the shared numbers.
    pub key: Linear<'a>,
    /// `[message, value_inputs]`: `[frame, row, column]`.
    pub value: Linear<'a>,
    /// The divisor of queries × keys.
    pub divisor: f64,
    /// The order of the key's inputs.
    pub flatten: Flatten,
    /// Behind the normalisation of pixels, `[patch, patch]`, the same for every picture.
    pub value_norm: Option<Affine<'a>>,
    /// Behind the normalisation of messages, `[message]`.
    pub message_norm: Option<Affine<'a>>,
}

/// No patch is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NothingPresent;

impl fmt::Display for NothingPresent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all patches are missing")
    }
}

impl std::error::Error for NothingPresent {}

/// The packed weights.
#[derive(Debug, Clone)]
pub struct PatchCodes {
    shape: CodesShape,
    /// `[codes / 16, code_dim, 16]`: the table.
    table: Vec<Block>,
    /// The largest magnitude in the table.
    largest: f32,
    /// `[(1 + code_dim) / 16, differences, 16]`: the logit's constant and its factor for each column of the
    /// table, as binary logarithms; differences in the order frame, row, column.
    key: Vec<Block>,
    /// `[shared, (1 + code_dim) / 16, 16]`, then the bias.
    key_shared: Vec<Block>,
    /// `[message / 16, value_inputs, 16]`
    value: Vec<Block>,
    /// `[message / 16, 16]`
    value_bias: Vec<Block>,
    /// `[message]`
    message_weight: Vec<f32>,
    message_bias: Vec<f32>,
}

/// Scratch space and results of [`PatchCodes::compute`].
#[derive(Debug, Clone)]
pub struct CodesScratch {
    merged: Merged,
    /// `[project::TOGETHER, inputs]`: some patches as numbers.
    inputs: Vec<f32>,
    /// `[(1 + code_dim) / 16, 16]`: what all keys share.
    offset: Vec<Block>,
    /// `[distinct, 1 + code_dim]`
    keys: Vec<f32>,
    /// `[distinct, message]`, times the multiplicity.
    values: Vec<f32>,
    /// `[distinct]`: how often each occurs.
    often: Vec<f32>,
    /// `[distinct]`: a row of the attention matrix.
    weights: Vec<Block>,
    /// `[distinct]`: sums of columns.
    columns: Vec<Block>,
    /// `[distinct]`
    wins_distinct: Vec<u32>,
    /// `[message, 16]`: the messages of sixteen codes. In `message` they lie a page apart for 1,024 codes, which is the
    /// worst distance there is for a cache.
    line: Vec<Block>,
    /// `[message, codes / 16, 16]`
    message: Vec<Block>,
    /// `[patches]`
    importance: Vec<f32>,
    /// `[patches]`
    wins: Vec<u32>,
    /// The patches that [`PatchCodes::give`] adds up, one of each kind; empty before.
    given: Vec<u32>,
    codes: usize,
}

impl CodesScratch {
    /// The message, `[message, padded codes]`; see [`CodesScratch::pitch`].
    pub fn message(&self) -> &[f32] {
        flat(&self.message)
    }

    /// Numbers in a row of the message: the number of codes, rounded up to a multiple of 16.
    pub const fn pitch(&self) -> usize {
        self.codes.next_multiple_of(16)
    }

    /// `[patches]`: the sum of each patch's attention weights over all codes; 0 for a missing patch.
    pub fn importance(&self) -> &[f32] {
        &self.importance
    }

    /// `[patches]`: the number of codes for which the patch has the largest weight. Of equal patches the
    /// first one wins.
    pub fn wins(&self) -> &[u32] {
        &self.wins
    }

    /// Number of patches that were processed after merging.
    pub fn distinct(&self) -> usize {
        self.merged.count()
    }
}

impl PatchCodes {
    /// Codes with zero weights.
    ///
    /// # Panics
    /// When a size is zero, there are fewer than two frames, a patch is larger than [`MAX_PATCH`] or does not
    /// fit the picture.
    pub fn new(shape: CodesShape) -> Self {
        let CodesShape { frames, patch, shared, codes, code_dim, message, .. } = shape;
        assert!(frames >= 2 && codes > 0 && code_dim > 0 && message > 0, "sizes must be above 0: {shape:?}");
        assert!((1..=MAX_PATCH).contains(&patch), "patch of {patch} pixels");
        assert!(shape.patches() > 0, "patch {patch} does not fit {}x{}", shape.width, shape.height);
        let (wide, deep) = ((1 + code_dim).div_ceil(16), message.div_ceil(16));
        let blocks = |n: usize| vec![Block::default(); n];
        PatchCodes {
            shape,
            table: blocks(shape.blocks() * code_dim),
            largest: 0.0,
            key: blocks(wide * (frames - 1) * shape.area()),
            key_shared: blocks((shared + 1) * wide),
            value: blocks(deep * shape.value_inputs()),
            value_bias: blocks(deep),
            message_weight: vec![1.0; message],
            message_bias: vec![0.0; message],
        }
    }

    /// Its sizes.
    pub const fn shape(&self) -> &CodesShape {
        &self.shape
    }

    /// Allocates the scratch space of [`PatchCodes::compute`].
    pub fn scratch(&self) -> CodesScratch {
        let shape = &self.shape;
        let patches = shape.patches();
        let blocks = |n: usize| vec![Block::default(); n];
        let inputs = (2 * shape.frames - 1) * shape.area();
        CodesScratch {
            merged: Merged::new(shape),
            inputs: vec![0.0; project::TOGETHER * inputs],
            offset: blocks((1 + shape.code_dim).div_ceil(16)),
            keys: vec![0.0; patches * (1 + shape.code_dim)],
            values: vec![0.0; patches * shape.message],
            often: vec![0.0; patches],
            weights: blocks(patches),
            columns: blocks(patches),
            wins_distinct: vec![0; patches],
            line: blocks(shape.message),
            message: blocks(shape.message * shape.blocks()),
            importance: vec![0.0; patches],
            wins: vec![0; patches],
            given: vec![],
            codes: shape.codes,
        }
    }

    /// Sets the weights. Does not allocate.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, from: CodesWeights<'_>) {
        let shape = self.shape;
        let CodesShape { frames, shared, codes, code_dim, message, .. } = shape;
        let (area, dim) = (shape.area(), from.query.bias.len());
        assert_eq!(from.table.len(), codes * code_dim, "the table");
        assert_eq!(from.query.weight.len(), dim * code_dim, "weights of the query");
        assert_eq!(from.key.weight.len(), dim * shape.key_inputs(), "weights of the key");
        assert_eq!(from.key.bias.len(), dim, "biases of the key");
        assert_eq!(from.value.weight.len(), message * shape.value_inputs(), "weights of the value");
        assert_eq!(from.value.bias.len(), message, "biases of the value");
        self.largest = from.table.iter().fold(0.0, |largest, x| x.abs().max(largest));
        for (code, row) in from.table.chunks_exact(code_dim).enumerate() {
            for (t, &x) in row.iter().enumerate() {
                self.table[code / 16 * code_dim + t].0[code % 16] = x;
            }
        }
        let scale = std::f64::consts::LOG2_E / from.divisor;
        let wide = (1 + code_dim).div_ceil(16);
        let differences = (frames - 1) * area;
        // Output 0 is what does not depend on the code, output 1 + t the factor of column t of the table.
        for output in 0..=code_dim {
            let of_query = |d: usize| {
                let number = if output == 0 {
                    from.query.bias[d]
                } else {
                    from.query.weight[d * code_dim + output - 1]
                };
                f64::from(number)
            };
            let through = |of_key: &dyn Fn(usize) -> f32| {
                let sum: f64 = (0..dim).map(|d| of_query(d) * f64::from(of_key(d))).sum();
                sum * scale
            };
            let (block, lane) = (output / 16, output % 16);
            for t in 0..frames - 1 {
                for pixel in 0..area {
                    let input = match from.flatten {
                        Flatten::TimeFastest => pixel * (frames - 1) + t,
                        Flatten::TimeSlowest => t * area + pixel,
                    };
                    let factor = through(&|d| from.key.weight[d * shape.key_inputs() + input]) / 255.0;
                    self.key[block * differences + t * area + pixel].0[lane] = saturate(factor);
                }
            }
            for i in 0..shared {
                let factor = through(&|d| from.key.weight[d * shape.key_inputs() + differences + i]);
                self.key_shared[i * wide + block].0[lane] = saturate(factor);
            }
            self.key_shared[shared * wide + block].0[lane] = saturate(through(&|d| from.key.bias[d]));
        }
        let inputs = shape.value_inputs();
        for (output, row) in from.value.weight.chunks_exact(inputs).enumerate() {
            let (block, lane) = (output / 16, output % 16);
            let mut bias = f64::from(from.value.bias[output]);
            for (i, &w) in row.iter().enumerate() {
                let factor = from.value_norm.map_or(1.0, |norm| f64::from(norm.weight[i % area]));
                bias += from.value_norm.map_or(0.0, |norm| f64::from(norm.bias[i % area])) * f64::from(w);
                self.value[block * inputs + i].0[lane] = saturate(f64::from(w) * factor);
            }
            self.value_bias[block].0[lane] = saturate(bias);
        }
        if let Some(norm) = from.message_norm {
            self.message_weight.copy_from_slice(norm.weight);
            self.message_bias.copy_from_slice(norm.bias);
        }
    }

    /// Computes the codes of `pixels`, `[frames, height, width]`, the oldest picture first. `present` is
    /// `[patches]`, with 0 for each missing patch; without it, all are there. `shared` are the numbers that
    /// all patches share.
    ///
    /// # Errors
    /// When all patches are missing.
    ///
    /// # Panics
    /// When a slice has the wrong length, or `scratch` belongs to codes of other sizes.
    pub fn compute(
        &self,
        level: Level,
        pixels: &[u8],
        present: Option<&[f32]>,
        shared: &[f32],
        scratch: &mut CodesScratch,
    ) -> Result<(), NothingPresent> {
        let shape = &self.shape;
        assert_eq!(pixels.len(), shape.frames * shape.width * shape.height, "bytes of the pictures");
        assert_eq!(shared.len(), shape.shared, "shared numbers");
        assert!(present.is_none_or(|present| present.len() == shape.patches()), "patches");
        assert_eq!(scratch.importance.len(), shape.patches(), "scratch space of other codes");
        assert_eq!(scratch.message.len(), shape.message * shape.blocks(), "scratch space of other codes");
        scratch.merged.find(level, shape, pixels, present);
        if scratch.merged.count() == 0 {
            return Err(NothingPresent);
        }
        project::project(level, self, shared, scratch);
        attend::attend(level, self, scratch);
        Ok(())
    }

    /// What the last [`PatchCodes::compute`] added up: `weights`, `[codes, patches]`, of which each code's still have to be divided
    /// by their sum, and `values`, `[patches, message]`. Both are 0 for missing patches. The results stay what they are.
    ///
    /// # Panics
    /// When a slice has the wrong length, or `scratch` belongs to codes of other sizes.
    pub fn parts(&self, level: Level, scratch: &mut CodesScratch, weights: &mut [f32], values: &mut [f32]) {
        self.check(scratch, weights, values);
        attend::write_powers(level, self, scratch, weights);
        project::single_values(level, self, scratch);
        let width = self.shape.message;
        for (to, place) in values.chunks_exact_mut(width).zip(scratch.merged.places()) {
            match place {
                None => to.fill(0.0),
                Some((place, _)) => to.copy_from_slice(&scratch.values[place * width..][..width]),
            }
        }
    }

    /// The end of the last [`PatchCodes::compute`] once more: the message for these [`PatchCodes::parts`], or others in their place.
    /// With those of the computation it is the message of the computation, to the bit. Each code's weights are divided by their
    /// sum; a code whose weights have no positive sum gets zeros. Patches that were merged and still have the same weights and
    /// values are merged here, too. Importance and wins stay what they are.
    ///
    /// # Panics
    /// When a slice has the wrong length, or `scratch` belongs to codes of other sizes.
    pub fn give(&self, level: Level, weights: &[f32], values: &[f32], scratch: &mut CodesScratch) {
        self.check(scratch, weights, values);
        let CodesScratch { merged, given, values: sums, often, .. } = scratch;
        let (patches, width) = (self.shape.patches(), self.shape.message);
        // In the order of the computation; missing patches, which may have been given something, come last.
        let mut all: Vec<(usize, u32)> =
            merged.places().map(|place| place.map_or(patches, |(place, _)| place)).zip(0..).collect();
        all.sort_unstable();
        let value = |patch: u32| &values[patch as usize * width..][..width];
        let same = |a: u32, b: u32| {
            value(a).iter().zip(value(b)).all(|(a, b)| a.to_bits() == b.to_bits())
                && weights
                    .chunks_exact(patches)
                    .all(|row| row[a as usize].to_bits() == row[b as usize].to_bits())
        };
        given.clear();
        for kind in all.chunk_by(|a, b| a.0 == b.0) {
            let first = given.len();
            for &(_, patch) in kind {
                if let Some(known) = (first..given.len()).find(|&i| same(given[i], patch)) {
                    often[known] += 1.0;
                } else {
                    often[given.len()] = 1.0;
                    given.push(patch);
                }
            }
        }
        for ((to, &patch), &often) in sums.chunks_exact_mut(width).zip(&*given).zip(&*often) {
            for (to, &x) in to.iter_mut().zip(value(patch)) {
                *to = x * often;
            }
        }
        attend::give(level, self, weights, scratch);
    }

    fn check(&self, scratch: &CodesScratch, weights: &[f32], values: &[f32]) {
        let shape = &self.shape;
        assert_eq!(weights.len(), shape.codes * shape.patches(), "weights");
        assert_eq!(values.len(), shape.patches() * shape.message, "values");
        assert_eq!(scratch.importance.len(), shape.patches(), "scratch space of other codes");
        assert_eq!(scratch.message.len(), shape.message * shape.blocks(), "scratch space of other codes");
    }
}

/// In single precision, within ±[`LIMIT`].
fn saturate(x: f64) -> f32 {
    if x.is_nan() { 0.0 } else { x.clamp(-LIMIT, LIMIT) as f32 }
}

#[cfg(test)]
mod tests;
