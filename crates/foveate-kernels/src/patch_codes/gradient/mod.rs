//! The gradient of the codes with respect to all their weights, over many steps at once.
//!
//! The distinct patches of all steps are the rows of one matrix, to which the layers of keys and values are
//! applied, and on which the gradients of their weights are summed. A patch that occurs m times is one row whose logits are larger
//! by ln m. As in [`compute`](super::PatchCodes::compute), the layers of queries and keys are multiplied with
//! each other first, `F = [W_q, b_q]ᵀ W_k / s`, and the gradient of F gives that of its factors:
//! `∂W_q = ∂F W_kᵀ / s`, `∂W_k = [W_q, b_q] ∂F / s`.
//!
//! What all patches share adds the same number to all logits of a code, which softmax does not notice: the
//! gradients of the key's bias and of its weights for the shared numbers are zero, and these numbers are not
//! needed here.

mod attention;
mod layers;

use self::attention::Sizes;
use self::layers::Inputs;
use super::merge::Merged;
use super::project::prepare;
use super::{CodesShape, CodesWeights, Flatten};
use crate::Level;
use crate::elementwise;
use crate::lanes::{Block, Isa, Task, flat};

/// Codes and their gradient; see the module documentation. It contains its scratch space, which grows with the
/// largest number of steps.
#[derive(Debug, Clone)]
pub struct CodesLearner {
    shape: CodesShape,
    /// Length of queries and keys.
    dim: usize,
    flatten: Flatten,
    divisor: f64,
    /// `[codes / 16, 1 + code_dim, 16]`: ones, then the columns of the table.
    table: Vec<Block>,
    /// `[codes, (1 + code_dim) / 16, 16]`: 1, then the row of the table.
    table_rows: Vec<Block>,
    /// `[1 + code_dim, dim]`: the query's bias, then its weights by columns of the table.
    query: Vec<f64>,
    /// `[dim, differences]`, in the order frame, row, column.
    key: Vec<f64>,
    /// `[(1 + code_dim) / 16, differences, 16]`: F, and zeros as its bias.
    key_layer: Vec<Block>,
    key_bias: Vec<Block>,
    /// `[message, value_inputs]`
    value: Vec<f32>,
    /// `[message / 16, value_inputs, 16]`: the same with the factors behind the normalisation of pixels, and the
    /// bias with its offsets.
    value_layer: Vec<Block>,
    value_bias: Vec<Block>,
    /// `[differences]`: scratch.
    sums: Vec<f64>,
    /// Factors and offsets behind the normalisation of pixels, and of messages.
    value_norm: Option<[Vec<f32>; 2]>,
    message_norm: Option<[Vec<f32>; 2]>,
    tape: Tape,
}

/// Intermediate results of the forward pass, and scratch space of the backward pass.
#[derive(Debug, Clone)]
struct Tape {
    merged: Merged,
    /// Number of steps that were seen.
    steps: usize,
    /// `[steps + 1]`: the first row of every step.
    first: Vec<usize>,
    /// `[rows, differences + value_inputs]`: every distinct patch of every step.
    inputs: Vec<f32>,
    /// `[rows]`: ln of how often the patch occurs.
    log_count: Vec<f32>,
    /// `[rows, 1 + code_dim]`
    keys: Vec<f32>,
    /// `[rows, message]`
    values: Vec<f32>,
    /// Of each step `[codes / 16, its rows, 16]`: the attention.
    weights: Vec<Block>,
    /// `[steps, codes / 16, message, 16]`: before the normalisation, and behind it.
    before: Vec<Block>,
    normal: Vec<Block>,
    /// `[steps, codes / 16, 16]`: the factor of the normalisation.
    scale: Vec<Block>,
    /// `[rows, (1 + code_dim) / 16, 16]` and `[rows, message / 16, 16]`, of the steps with a gradient.
    d_keys: Vec<Block>,
    d_values: Vec<Block>,
    /// Scratch space of a step: `[its rows, 16]`, `[message, 16]`, `[16, message / 16, 16]`, `[codes, message]`.
    d_weights: Vec<Block>,
    d_before: Vec<Block>,
    d_rows: Vec<Block>,
    d_normal: Vec<f32>,
    /// `[differences, (1 + code_dim) / 16, 16]`: gradient of F, transposed.
    d_key_layer: Vec<Block>,
    /// `[value_inputs, message / 16, 16]`
    d_value_layer: Vec<Block>,
    /// `[message / 16, 16]`
    d_value_bias: Vec<Block>,
    /// `[message]`: gradients of the factors and offsets behind the normalisation of messages.
    d_message_norm: [Vec<f32>; 2],
}

/// Tensors to which a gradient is added, each in the layout of [`CodesWeights`].
///
/// Key's bias and the key's weights for shared numbers have a gradient of zero, which is not added.
#[derive(Debug)]
pub struct CodesGradient<'a> {
    /// `[query_dim, code_dim]`
    pub query_weight: &'a mut [f32],
    /// `[query_dim]`
    pub query_bias: &'a mut [f32],
    /// `[query_dim, key_inputs]`
    pub key_weight: &'a mut [f32],
    /// `[message, value_inputs]`
    pub value_weight: &'a mut [f32],
    /// `[message]`
    pub value_bias: &'a mut [f32],
    /// `[patch, patch]`, factors and offsets; empty without them.
    pub value_norm: [&'a mut [f32]; 2],
    /// `[message]`, factors and offsets; empty without them.
    pub message_norm: [&'a mut [f32]; 2],
}

impl CodesLearner {
    /// A learner with zero weights, whose queries and keys have `query_dim` numbers.
    ///
    /// # Panics
    /// Those of [`PatchCodes::new`](super::PatchCodes::new), or when `query_dim` is 0.
    pub fn new(shape: CodesShape, query_dim: usize) -> Self {
        // Checks the sizes.
        let merged = super::PatchCodes::new(shape).scratch().merged;
        assert!(query_dim > 0, "queries of no numbers");
        let CodesShape { frames, codes, code_dim, message, .. } = shape;
        let differences = (frames - 1) * shape.area();
        let inputs = shape.value_inputs();
        let (wide, broad, deep) = (1 + code_dim, (1 + code_dim).div_ceil(16), message.div_ceil(16));
        let blocks = |n: usize| vec![Block::default(); n];
        CodesLearner {
            shape,
            dim: query_dim,
            flatten: Flatten::TimeFastest,
            divisor: 1.0,
            table: blocks(shape.blocks() * wide),
            table_rows: blocks(codes * broad),
            query: vec![0.0; wide * query_dim],
            key: vec![0.0; query_dim * differences],
            key_layer: blocks(broad * differences),
            key_bias: blocks(broad),
            value: vec![0.0; message * inputs],
            value_layer: blocks(deep * inputs),
            value_bias: blocks(deep),
            sums: vec![0.0; differences],
            value_norm: None,
            message_norm: None,
            tape: Tape {
                merged,
                steps: 0,
                first: vec![0],
                inputs: vec![],
                log_count: vec![],
                keys: vec![],
                values: vec![],
                weights: vec![],
                before: vec![],
                normal: vec![],
                scale: vec![],
                d_keys: vec![],
                d_values: vec![],
                d_weights: vec![],
                d_before: blocks(message),
                d_rows: blocks(16 * deep),
                d_normal: vec![0.0; codes * message],
                d_key_layer: blocks(differences * broad),
                d_value_layer: blocks(inputs * deep),
                d_value_bias: blocks(deep),
                d_message_norm: [vec![0.0; message], vec![0.0; message]],
            },
        }
    }

    /// Its sizes.
    pub const fn shape(&self) -> &CodesShape {
        &self.shape
    }

    /// Numbers in a code's message times codes: what [`CodesLearner::forward`] gives per step.
    pub const fn outputs(&self) -> usize {
        self.shape.codes * self.shape.message
    }

    /// Sets the weights.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, from: CodesWeights<'_>) {
        let shape = self.shape;
        let CodesShape { codes, code_dim, message, .. } = shape;
        let (area, dim, wide) = (shape.area(), self.dim, 1 + code_dim);
        let (differences, inputs) = (self.differences(), shape.value_inputs());
        assert_eq!(from.table.len(), codes * code_dim, "the table");
        assert_eq!(from.query.weight.len(), dim * code_dim, "weights of the query");
        assert_eq!(from.query.bias.len(), dim, "biases of the query");
        assert_eq!(from.key.weight.len(), dim * shape.key_inputs(), "weights of the key");
        assert_eq!(from.value.weight.len(), message * inputs, "weights of the value");
        assert_eq!(from.value.bias.len(), message, "biases of the value");
        (self.flatten, self.divisor) = (from.flatten, from.divisor);
        for (code, row) in from.table.chunks_exact(code_dim).enumerate() {
            for (t, x) in std::iter::once(1.0).chain(row.iter().copied()).enumerate() {
                self.table[code / 16 * wide + t].0[code % 16] = x;
                self.table_rows[code * wide.div_ceil(16) + t / 16].0[t % 16] = x;
            }
        }
        for d in 0..dim {
            self.query[d] = f64::from(from.query.bias[d]);
            for column in 0..code_dim {
                self.query[(1 + column) * dim + d] = f64::from(from.query.weight[d * code_dim + column]);
            }
            let row = &from.key.weight[d * shape.key_inputs()..];
            for at in 0..differences {
                self.key[d * differences + at] = f64::from(row[self.key_input(at)]);
            }
        }
        for (output, query) in self.query.chunks_exact(dim).enumerate() {
            self.sums.fill(0.0);
            for (&q, key) in query.iter().zip(self.key.chunks_exact(differences)) {
                self.sums.iter_mut().zip(key).for_each(|(sum, k)| *sum += q * k);
            }
            // Differences are given in units of a byte.
            let to = &mut self.key_layer[output / 16 * differences..][..differences];
            for (to, sum) in to.iter_mut().zip(&self.sums) {
                to.0[output % 16] = (sum / (self.divisor * 255.0)) as f32;
            }
        }
        for (to, norm, len) in [
            (&mut self.value_norm, from.value_norm, area),
            (&mut self.message_norm, from.message_norm, message),
        ] {
            let Some(norm) = norm else {
                *to = None;
                continue;
            };
            let [weight, bias] = to.get_or_insert_with(|| [vec![0.0; len], vec![0.0; len]]);
            weight.copy_from_slice(norm.weight);
            bias.copy_from_slice(norm.bias);
        }
        self.value.copy_from_slice(from.value.weight);
        for (output, row) in self.value.chunks_exact(inputs).enumerate() {
            let mut bias = f64::from(from.value.bias[output]);
            let to = &mut self.value_layer[output / 16 * inputs..][..inputs];
            for (i, (to, &w)) in to.iter_mut().zip(row).enumerate() {
                to.0[output % 16] = w;
                if let Some([weight, offset]) = &self.value_norm {
                    to.0[output % 16] = w * weight[i % area];
                    bias += f64::from(w) * f64::from(offset[i % area]);
                }
            }
            self.value_bias[output / 16].0[output % 16] = bias as f32;
        }
    }

    /// Forgets all steps.
    pub fn clear(&mut self) {
        let tape = &mut self.tape;
        tape.steps = 0;
        tape.first.truncate(1);
        tape.inputs.clear();
        tape.log_count.clear();
    }

    /// Adds a step: `pixels`, `[frames, height, width]`, the oldest picture first. `present` is `[patches]`, 0 for those that
    /// are missing.
    ///
    /// # Panics
    /// When there are more or fewer pixels or patches, or all patches are missing.
    pub fn see(&mut self, level: Level, pixels: &[u8], present: Option<&[f32]>) {
        let shape = &self.shape;
        assert_eq!(pixels.len(), shape.frames * shape.width * shape.height, "bytes of the pictures");
        assert!(present.is_none_or(|present| present.len() == shape.patches()), "patches");
        let Tape { merged, first, inputs, log_count, steps, .. } = &mut self.tape;
        merged.find(level, shape, pixels, present);
        assert!(merged.count() > 0, "all patches are missing");
        let one = (2 * shape.frames - 1) * shape.area();
        let start = inputs.len();
        inputs.resize(start + merged.count() * one, 0.0);
        level.run(Prepare { shape, merged, inputs: &mut inputs[start..] });
        log_count.extend((0..merged.count()).map(|place| f64::from(merged.patch(place).1).ln() as f32));
        *steps += 1;
        first.push(log_count.len());
    }

    /// The codes of all steps, `[steps, codes, message]`, to `out`.
    ///
    /// # Panics
    /// When `out` has another length.
    pub fn forward(&mut self, level: Level, out: &mut [f32]) {
        let (sizes, outputs, one) = (self.sizes(), self.outputs(), self.one());
        let (differences, value_inputs) = (self.differences(), self.shape.value_inputs());
        let Sizes { wide, message, .. } = sizes;
        let blocks = sizes.blocks();
        let Tape { steps, first, inputs, log_count, keys, values, weights, before, normal, scale, .. } =
            &mut self.tape;
        let (rows, steps) = (log_count.len(), *steps);
        assert_eq!(out.len(), steps * outputs, "codes of {steps} steps");
        keys.resize(rows * wide, 0.0);
        values.resize(rows * message, 0.0);
        weights.resize(rows * blocks, Block::default());
        before.resize(steps * blocks * message, Block::default());
        normal.resize(steps * blocks * message, Block::default());
        scale.resize(steps * blocks, Block::default());
        let inputs = Inputs { all: inputs, one, first: 0, n: differences };
        let (weights_of_keys, bias) = (&self.key_layer[..], &self.key_bias[..]);
        level.run(layers::Forward { inputs, weights: weights_of_keys, bias, out: keys, outputs: wide });
        let inputs = Inputs { first: differences, n: value_inputs, ..inputs };
        let (weights_of_values, bias) = (&self.value_layer[..], &self.value_bias[..]);
        level.run(layers::Forward {
            inputs,
            weights: weights_of_values,
            bias,
            out: values,
            outputs: message,
        });
        for (t, out) in out.chunks_exact_mut(outputs).enumerate() {
            let (from, to) = (first[t], first[t + 1]);
            let of = t * blocks * message..(t + 1) * blocks * message;
            level.run(attention::Forward {
                sizes,
                table: &self.table,
                keys: &keys[from * wide..to * wide],
                values: &values[from * message..to * message],
                log_count: &log_count[from..to],
                weights: &mut weights[from * blocks..to * blocks],
                before: &mut before[of.clone()],
                normal: &mut normal[of],
                scale: &mut scale[t * blocks..(t + 1) * blocks],
                out,
            });
        }
        if let Some([weight, bias]) = &self.message_norm {
            for row in out.chunks_exact_mut(message) {
                for ((x, &weight), &bias) in row.iter_mut().zip(weight).zip(bias) {
                    *x = *x * weight + bias;
                }
            }
        }
    }

    /// Computes the gradient of Σ `d` · codes over the last steps, as many as `d` has:
    /// `[steps, codes, message]`. It replaces that of the call before; [`CodesLearner::add_to`] gives it.
    ///
    /// # Panics
    /// When `d` has more steps than the last [`CodesLearner::forward`].
    pub fn backward(&mut self, level: Level, d: &[f32]) {
        let (sizes, outputs, one) = (self.sizes(), self.outputs(), self.one());
        let (differences, value_inputs) = (self.differences(), self.shape.value_inputs());
        let Sizes { wide, message, .. } = sizes;
        let (blocks, broad, deep) = (sizes.blocks(), wide.div_ceil(16), message.div_ceil(16));
        let steps = d.len() / outputs;
        assert!(
            d.len().is_multiple_of(outputs) && steps <= self.tape.steps,
            "{steps} of {}",
            self.tape.steps
        );
        let begin = self.tape.steps - steps;
        let Tape {
            first,
            inputs,
            values,
            weights,
            before,
            normal,
            scale,
            d_keys,
            d_values,
            d_weights,
            d_before,
            d_rows,
            d_normal,
            d_key_layer,
            d_value_layer,
            d_value_bias,
            d_message_norm: [d_factors, d_offsets],
            ..
        } = &mut self.tape;
        for sums in [&mut *d_key_layer, d_value_layer, d_value_bias] {
            sums.fill(Block::default());
        }
        d_factors.fill(0.0);
        d_offsets.fill(0.0);
        let skip = first[begin];
        let rows = first[begin + steps] - skip;
        d_keys.resize(rows * broad, Block::default());
        d_values.resize(rows * deep, Block::default());
        for (t, d) in (begin..).zip(d.chunks_exact(outputs)) {
            let (from, to) = (first[t], first[t + 1]);
            let of = t * blocks * message..(t + 1) * blocks * message;
            let normal = &normal[of.clone()];
            let mut d = d;
            if let Some([weight, _]) = &self.message_norm {
                for (code, (to, d)) in
                    d_normal.chunks_exact_mut(message).zip(d.chunks_exact(message)).enumerate()
                {
                    let normal = &normal[code / 16 * message..][..message];
                    for (i, (to, &d)) in to.iter_mut().zip(d).enumerate() {
                        d_factors[i] += d * normal[i].0[code % 16];
                        d_offsets[i] += d;
                        *to = d * weight[i];
                    }
                }
                d = d_normal;
            }
            d_weights.resize(to - from, Block::default());
            level.run(attention::Backward {
                sizes,
                d,
                table_rows: &self.table_rows,
                values: &values[from * message..to * message],
                weights: &weights[from * blocks..to * blocks],
                before: &before[of],
                normal,
                scale: &scale[t * blocks..(t + 1) * blocks],
                d_before,
                d_rows,
                d_weights,
                d_keys: &mut d_keys[(from - skip) * broad..(to - skip) * broad],
                d_values: &mut d_values[(from - skip) * deep..(to - skip) * deep],
            });
        }
        let inputs = Inputs { all: &inputs[skip * one..], one, first: 0, n: differences };
        level.run(layers::Weights { inputs, d: d_keys, sums: d_key_layer, blocks: broad });
        let inputs = Inputs { first: differences, n: value_inputs, ..inputs };
        level.run(layers::Weights { inputs, d: d_values, sums: d_value_layer, blocks: deep });
        for row in d_values.chunks_exact(deep) {
            for (sum, d) in d_value_bias.iter_mut().zip(row) {
                elementwise::add(&mut sum.0, &d.0);
            }
        }
    }

    /// Adds the gradient of the last [`CodesLearner::backward`], with one addition per number.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn add_to(&self, to: CodesGradient<'_>) {
        let CodesShape { code_dim, message, .. } = self.shape;
        let (area, dim, wide) = (self.shape.area(), self.dim, self.wide());
        let (differences, inputs, key_inputs) =
            (self.differences(), self.shape.value_inputs(), self.shape.key_inputs());
        assert_eq!(to.query_weight.len(), dim * code_dim, "weights of the query");
        assert_eq!(to.query_bias.len(), dim, "biases of the query");
        assert_eq!(to.key_weight.len(), dim * key_inputs, "weights of the key");
        assert_eq!(to.value_weight.len(), message * inputs, "weights of the value");
        assert_eq!(to.value_bias.len(), message, "biases of the value");
        let Tape { d_key_layer, d_value_layer, d_value_bias, d_message_norm, .. } = &self.tape;
        let (d_key_layer, d_value_layer) = (flat(d_key_layer), flat(d_value_layer));
        let d_value_bias = &flat(d_value_bias)[..message];
        let (broad, deep) = (wide.next_multiple_of(16), message.next_multiple_of(16));
        let unit = 1.0 / (self.divisor * 255.0);
        for d in 0..dim {
            let key = &self.key[d * differences..(d + 1) * differences];
            for (at, row) in d_key_layer.chunks_exact(broad).enumerate() {
                let queries = self.query[d..].iter().step_by(dim);
                let sum: f64 =
                    row.iter().zip(queries).map(|(&gradient, query)| f64::from(gradient) * query).sum();
                to.key_weight[d * key_inputs + self.key_input(at)] += (sum * unit) as f32;
            }
            for output in 0..wide {
                let rows = d_key_layer[output..].iter().step_by(broad);
                let sum: f64 = rows.zip(key).map(|(&gradient, key)| f64::from(gradient) * key).sum();
                let to = match output.checked_sub(1) {
                    None => &mut to.query_bias[d],
                    Some(column) => &mut to.query_weight[d * code_dim + column],
                };
                *to += (sum * unit) as f32;
            }
        }
        let of = |output: usize, input: usize| d_value_layer[input * deep + output];
        for (output, row) in to.value_weight.chunks_exact_mut(inputs).enumerate() {
            for (input, to) in row.iter_mut().enumerate() {
                *to += match &self.value_norm {
                    None => of(output, input),
                    Some([weight, bias]) => {
                        of(output, input) * weight[input % area] + d_value_bias[output] * bias[input % area]
                    }
                };
            }
        }
        elementwise::add(to.value_bias, d_value_bias);
        if self.value_norm.is_some() {
            let [factors, offsets] = to.value_norm;
            assert_eq!((factors.len(), offsets.len()), (area, area), "factors and offsets of the pixels");
            for (pixel, (factor, offset)) in factors.iter_mut().zip(offsets).enumerate() {
                let (mut of_factor, mut of_offset) = (0.0, 0.0);
                for (output, &bias) in d_value_bias.iter().enumerate() {
                    for input in (pixel..inputs).step_by(area) {
                        let w = f64::from(self.value[output * inputs + input]);
                        of_factor += w * f64::from(of(output, input));
                        of_offset += w * f64::from(bias);
                    }
                }
                *factor += of_factor as f32;
                *offset += of_offset as f32;
            }
        }
        if self.message_norm.is_some() {
            for (to, sums) in to.message_norm.into_iter().zip(d_message_norm) {
                elementwise::add(to, sums);
            }
        }
    }

    /// Numbers in the differences of a patch.
    const fn differences(&self) -> usize {
        (self.shape.frames - 1) * self.shape.area()
    }

    /// Numbers in a key after the layers of queries and keys were multiplied.
    const fn wide(&self) -> usize {
        1 + self.shape.code_dim
    }

    /// Inputs of both layers for one patch.
    const fn one(&self) -> usize {
        self.differences() + self.shape.value_inputs()
    }

    /// The sizes of a step.
    const fn sizes(&self) -> Sizes {
        Sizes { codes: self.shape.codes, wide: self.wide(), message: self.shape.message }
    }

    /// The key's input for a difference in the order frame, row, column.
    const fn key_input(&self, at: usize) -> usize {
        let area = self.shape.area();
        match self.flatten {
            Flatten::TimeSlowest => at,
            Flatten::TimeFastest => at % area * (self.shape.frames - 1) + at / area,
        }
    }
}

/// Writes the inputs of the layers for every distinct patch.
struct Prepare<'a> {
    shape: &'a CodesShape,
    merged: &'a Merged,
    inputs: &'a mut [f32],
}

impl Task for Prepare<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let Prepare { shape, merged, inputs } = self;
        let differences = (shape.frames - 1) * shape.area();
        let one = differences + shape.value_inputs();
        for (place, inputs) in inputs.chunks_exact_mut(one).enumerate() {
            let (of_key, of_value) = inputs.split_at_mut(differences);
            if shape.patch == 6 {
                prepare::<36>(shape, merged.patch(place).0, of_key, of_value);
            } else {
                prepare::<0>(shape, merged.patch(place).0, of_key, of_value);
            }
        }
    }
}
