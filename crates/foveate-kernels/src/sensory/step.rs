//! One step of all neurons.

use super::{Activation, Neurons, Senses, Sizes};
use crate::lanes::{Block, Eight, Isa, Lanes, Task, exp2, flat, flat_mut, tanh};

/// The largest exponent of a power of two: the product of two such powers is finite.
const MOST: f32 = 60.0;

/// See [`Neurons::step`].
pub(super) struct Step<'a> {
    pub(super) neurons: &'a Neurons,
    pub(super) numbers: &'a [f32],
    pub(super) shared: &'a [f32],
    pub(super) senses: &'a mut Senses,
}

impl Task for Step<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Step { neurons, numbers, shared, senses } = self;
        gate_sums(isa, neurons, numbers, shared, senses);
        advance(isa, senses);
        sort(numbers, senses);
        match neurons.sizes.activation {
            Activation::Tanh => add_up(isa, neurons, numbers, senses, |isa, z| {
                let one = isa.splat16(1.0);
                one.sub(isa.splat16(2.0).div(power(isa, z).add(one)))
            }),
            Activation::Sigmoid => add_up(isa, neurons, numbers, senses, |isa, z| {
                let one = isa.splat16(1.0);
                one.div(power(isa, z).add(one))
            }),
            Activation::Softmax => softmax(isa, neurons, numbers, senses),
        }
        if neurons.sizes.squash {
            for block in &mut senses.message {
                tanh(isa, isa.load16(&block.0)).store(&mut block.0);
            }
        }
        let Sizes { codes, .. } = neurons.sizes;
        let (sensors, padded) = (numbers.len(), codes.div_ceil(16) * 16);
        for (sensor, of_sensor) in flat(&senses.weights_nm).chunks_exact(padded).enumerate() {
            for (code, &weight) in of_sensor[..codes].iter().enumerate() {
                senses.weights[code * sensors + sensor] = weight;
            }
        }
    }
}

/// 2^x, for x limited to ±[`MOST`].
#[inline(always)]
fn power<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    exp2(isa, x.min(isa.splat16(MOST)).max(isa.splat16(-MOST)))
}

/// The gates of every sensor before their activation: biases, shared numbers, its number, its hidden units, in
/// this order.
#[inline(always)]
fn gate_sums<I: Isa>(isa: I, neurons: &Neurons, numbers: &[f32], shared: &[f32], senses: &mut Senses) {
    let Sizes { hidden, .. } = neurons.sizes;
    let units = hidden.div_ceil(8);
    let [i, f, g, o] = &mut senses.gates;
    let gates = [i, f, g, o].map(|gate| flat_mut(gate).as_chunks_mut::<8>().0);
    let h = flat(&senses.h);
    for block in 0..units {
        let mut base = neurons.bias[block].each_ref().map(|bias| isa.load8(&bias.0));
        let weights = &neurons.of_shared[block * shared.len()..][..shared.len()];
        for (weights, &x) in weights.iter().zip(shared) {
            let x = isa.splat8(x);
            for gate in 0..4 {
                base[gate] = isa.load8(&weights[gate].0).mul_add(x, base[gate]);
            }
        }
        for (base, to) in base.into_iter().zip(&mut senses.base[block]) {
            base.store(&mut to.0);
        }
    }
    for (sensor, &number) in numbers.iter().enumerate() {
        let h = &h[sensor * units * 8..][..hidden];
        let number = isa.splat8(number);
        for block in 0..units {
            let base = senses.base[block].each_ref().map(|base: &Eight| isa.load8(&base.0));
            let of_number = neurons.of_number[block].each_ref().map(|w| isa.load8(&w.0));
            let mut z: [I::V8; 4] = std::array::from_fn(|gate| of_number[gate].mul_add(number, base[gate]));
            for (weights, &h) in neurons.of_hidden[block * hidden..][..hidden].iter().zip(h) {
                let h = isa.splat8(h);
                for gate in 0..4 {
                    z[gate] = isa.load8(&weights[gate].0).mul_add(h, z[gate]);
                }
            }
            for gate in 0..4 {
                z[gate].store(&mut gates[gate][sensor * units + block]);
            }
        }
    }
}

/// New states: c ← σ(f)·c + σ(i)·tanh(g); h ← σ(o)·tanh(c).
#[inline(always)]
fn advance<I: Isa>(isa: I, senses: &mut Senses) {
    let one = isa.splat16(1.0);
    let log2_e = isa.splat16(std::f32::consts::LOG2_E);
    let (minus, twice) = (isa.splat16(-std::f32::consts::LOG2_E), log2_e.add(log2_e));
    // σ(x) tanh(y) = (e^2y - 1) / ((1 + e^-x) (e^2y + 1))
    let product = |x: I::V16, y: I::V16| {
        let (x, y) = (power(isa, x.mul(minus)), power(isa, y.mul(twice)));
        y.sub(one).div(one.add(x).mul(y.add(one)))
    };
    let [i, f, g, o] = &senses.gates;
    for block in 0..senses.h.len() {
        let [i, f, g, o] = [i, f, g, o].map(|gate| isa.load16(&gate[block].0));
        let forgotten = one.add(power(isa, f.mul(minus)));
        let c = isa.load16(&senses.c[block].0).div(forgotten).add(product(i, g));
        c.store(&mut senses.c[block].0);
        product(o, c).store(&mut senses.h[block].0);
    }
}

/// The sensors in ascending order of their numbers; of equal numbers, in that of their keys.
#[inline(always)]
fn sort(numbers: &[f32], senses: &mut Senses) {
    /// Up to this many sensors are sorted by insertion: the order changes little from step to step.
    const FEW: usize = 64;
    let Senses { ordinals, order, h, sizes, .. } = senses;
    for (ordinal, number) in ordinals.iter_mut().zip(numbers) {
        // As `f32::total_cmp` compares them.
        let bits = number.to_bits().cast_signed();
        *ordinal = bits ^ (((bits >> 31).cast_unsigned() >> 1).cast_signed());
    }
    let (h, padded) = (flat(h), sizes.hidden.div_ceil(8) * 8);
    let key = |sensor: u32| &h[sensor as usize * padded..][..padded];
    let by_key = |a: u32, b: u32| {
        let differ = key(a).iter().zip(key(b)).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
        differ.unwrap_or(std::cmp::Ordering::Equal)
    };
    let compare = |a: u32, b: u32| ordinals[a as usize].cmp(&ordinals[b as usize]).then_with(|| by_key(a, b));
    if order.len() > FEW {
        order.sort_unstable_by(|&a, &b| compare(a, b));
        return;
    }
    for i in 1..order.len() {
        let sensor = order[i];
        let mut to = i;
        while to > 0 && compare(sensor, order[to - 1]).is_lt() {
            order[to] = order[to - 1];
            to -= 1;
        }
        order[to] = sensor;
    }
}

/// The scores of sixteen codes for a key.
#[inline(always)]
fn scores<I: Isa>(isa: I, neurons: &Neurons, block: usize, key: &[f32]) -> I::V16 {
    let mut z = isa.load16(&neurons.score_bias[block].0);
    for (weights, &key) in neurons.scores[block * key.len()..].iter().zip(key) {
        z = isa.load16(&weights.0).mul_add(isa.splat16(key), z);
    }
    z
}

/// The message for weights that depend on nothing but their own score.
#[inline(always)]
fn add_up<I: Isa>(
    isa: I,
    neurons: &Neurons,
    numbers: &[f32],
    senses: &mut Senses,
    weigh: impl Fn(I, I::V16) -> I::V16,
) {
    let Senses { order, h, weights_nm, message, .. } = senses;
    let Sizes { hidden, .. } = neurons.sizes;
    let (h, padded, blocks) = (flat(h), hidden.div_ceil(8) * 8, message.len());
    for (block, message) in message.iter_mut().enumerate() {
        let mut sum = isa.splat16(0.0);
        for &sensor in &**order {
            let sensor = sensor as usize;
            let weights = weigh(isa, scores(isa, neurons, block, &h[sensor * padded..][..hidden]));
            weights.store(&mut weights_nm[sensor * blocks + block].0);
            sum = weights.mul_add(isa.splat16(numbers[sensor]), sum);
        }
        sum.store(&mut message.0);
    }
}

/// The message for weights that sum to 1 over the sensors.
#[inline(always)]
fn softmax<I: Isa>(isa: I, neurons: &Neurons, numbers: &[f32], senses: &mut Senses) {
    let Senses { order, h, weights_nm, message, .. } = senses;
    let Sizes { hidden, .. } = neurons.sizes;
    let (h, padded, blocks) = (flat(h), hidden.div_ceil(8) * 8, message.len());
    for (block, message) in message.iter_mut().enumerate() {
        let mut largest = isa.splat16(f32::NEG_INFINITY);
        for sensor in 0..numbers.len() {
            let z = scores(isa, neurons, block, &h[sensor * padded..][..hidden]);
            z.store(&mut weights_nm[sensor * blocks + block].0);
            largest = largest.max(z);
        }
        let (mut total, mut sum) = (isa.splat16(0.0), isa.splat16(0.0));
        for &sensor in &**order {
            let weights: &mut Block = &mut weights_nm[sensor as usize * blocks + block];
            let share = exp2(isa, isa.load16(&weights.0).sub(largest).max(isa.splat16(-2.0 * MOST)));
            share.store(&mut weights.0);
            total = total.add(share);
            sum = share.mul_add(isa.splat16(numbers[sensor as usize]), sum);
        }
        sum.div(total).store(&mut message.0);
        for sensor in 0..numbers.len() {
            let weights = &mut weights_nm[sensor * blocks + block];
            isa.load16(&weights.0).div(total).store(&mut weights.0);
        }
    }
}
