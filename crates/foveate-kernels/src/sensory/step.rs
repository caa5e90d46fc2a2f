//! One step of all neurons.

use std::cmp::Ordering;

use super::{Activation, MARGIN, Neurons, Senses};
use crate::lanes::{Block, Isa, Lanes, Task, exp2, flat, flat_mut, tanh};

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
        // With a key's length known at compile time, the weights of its numbers stay in registers. As many
        // sensors are computed together as there are registers for; that changes no result.
        match (self.neurons.sizes.hidden, I::ROWS) {
            (8, 4) => step::<I, 8, 4>(isa, self),
            (8, _) => step::<I, 8, 2>(isa, self),
            _ => step::<I, 0, 2>(isa, self),
        }
    }
}

/// See [`Neurons::give`].
pub(super) struct Give<'a> {
    pub(super) neurons: &'a Neurons,
    pub(super) weights: &'a [f32],
    pub(super) numbers: &'a [f32],
    pub(super) senses: &'a mut Senses,
}

impl Task for Give<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Give { neurons, weights, numbers, senses } = self;
        let (sensors, pitch) = (senses.sensors, senses.message.len() * 16);
        let weights_nm = flat_mut(&mut senses.weights_nm);
        for (code, row) in weights.chunks_exact(sensors).enumerate() {
            for (sensor, &weight) in row.iter().enumerate() {
                weights_nm[sensor * pitch + code] = weight;
            }
        }
        sort(isa, numbers, senses);
        let Senses { order, weights_nm, message, .. } = &mut *senses;
        let blocks = message.len();
        let means = neurons.means();
        for (block, message) in message.iter_mut().enumerate() {
            let (mut total, mut sum) = (isa.splat16(0.0), isa.splat16(0.0));
            for &sensor in &**order {
                let weights = isa.load16(&weights_nm[sensor as usize * blocks + block].0);
                total = total.add(weights);
                sum = weights.mul_add(isa.splat16(numbers[sensor as usize]), sum);
            }
            if means {
                sum = share(isa, sum, total);
                for weights in weights_nm[block..].iter_mut().step_by(blocks) {
                    share(isa, isa.load16(&weights.0), total).store(&mut weights.0);
                }
            }
            sum.store(&mut message.0);
        }
        if neurons.sizes.squash {
            for block in &mut senses.message {
                tanh(isa, isa.load16(&block.0)).store(&mut block.0);
            }
        }
        by_code(isa, senses);
    }
}

/// What is divided by the weights of all sensors; 0 where these are none.
#[inline(always)]
fn share<I: Isa>(isa: I, x: I::V16, total: I::V16) -> I::V16 {
    let zero = isa.splat16(0.0);
    zero.select_lt(total, x.div(total), zero)
}

/// See [`Neurons::write_weights`].
pub(super) struct Powers<'a> {
    pub(super) neurons: &'a Neurons,
    pub(super) senses: &'a Senses,
    pub(super) to: &'a mut [f32],
}

impl Task for Powers<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Powers { neurons, senses, to } = self;
        let (hidden, sensors) = (neurons.sizes.hidden, senses.sensors);
        let (h, padded) = (flat(&senses.h), hidden.div_ceil(8) * 8);
        let key = |sensor: usize| &h[sensor * padded..][..hidden];
        for (block, to) in to.chunks_mut(16 * sensors).enumerate() {
            let mut largest = isa.splat16(f32::NEG_INFINITY);
            for sensor in 0..sensors {
                let [z] = scores(isa, neurons, block, [key(sensor)]);
                largest = largest.max(z);
            }
            for sensor in 0..sensors {
                let [z] = scores(isa, neurons, block, [key(sensor)]);
                let mut powers = Block::default();
                power_below(isa, z, largest).store(&mut powers.0);
                for (to, power) in to[sensor..].iter_mut().step_by(sensors).zip(powers.0) {
                    *to = power;
                }
            }
        }
    }
}

/// `H` is the number of hidden units when it is known at compile time, else 0; `R` is the number of sensors
/// that are computed together.
#[inline(always)]
fn step<I: Isa, const H: usize, const R: usize>(isa: I, step: Step<'_>) {
    let Step { neurons, numbers, shared, senses } = step;
    gate_sums::<I, H, R>(isa, neurons, numbers, shared, senses);
    advance(isa, senses);
    sort(isa, numbers, senses);
    match neurons.sizes.activation {
        Activation::Tanh => add_up::<I, H, R, true>(isa, neurons, numbers, senses),
        Activation::Sigmoid => add_up::<I, H, R, false>(isa, neurons, numbers, senses),
        Activation::Softmax => softmax::<I, H>(isa, neurons, numbers, senses),
    }
    if neurons.sizes.squash {
        for block in &mut senses.message {
            tanh(isa, isa.load16(&block.0)).store(&mut block.0);
        }
    }
    by_code(isa, senses);
}

/// 2^x, for x limited to ±[`MOST`].
#[inline(always)]
fn power<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    exp2(isa, x.min(isa.splat16(MOST)).max(isa.splat16(-MOST)))
}

/// The gates of every sensor before their activation: biases, shared numbers, its number, its hidden units, in
/// this order.
#[inline(always)]
fn gate_sums<I: Isa, const H: usize, const R: usize>(
    isa: I,
    neurons: &Neurons,
    numbers: &[f32],
    shared: &[f32],
    senses: &mut Senses,
) {
    let hidden = if H == 0 { neurons.sizes.hidden } else { H };
    let units = hidden.div_ceil(8);
    let [i, f, g, o] = &mut senses.gates;
    let gates = [i, f, g, o].map(|gate| flat_mut(gate).as_chunks_mut::<8>().0);
    let h = flat(&senses.h);
    for block in 0..units {
        let [first, second] = &neurons.bias[block];
        let (mut first, mut second) = (isa.load16(&first.0), isa.load16(&second.0));
        let weights = &neurons.of_shared[block * shared.len()..][..shared.len()];
        for (weights, &x) in weights.iter().zip(shared) {
            let x = isa.splat16(x);
            first = isa.load16(&weights[0].0).mul_add(x, first);
            second = isa.load16(&weights[1].0).mul_add(x, second);
        }
        first.store(&mut senses.base[block][0].0);
        second.store(&mut senses.base[block][1].0);
    }
    for start in (0..numbers.len()).step_by(R) {
        // After the last sensor, it is computed again.
        let mut sensors = [start; R];
        let mut keys: [&[f32]; R] = [&[]; R];
        for r in 0..R {
            sensors[r] = (start + r).min(numbers.len() - 1);
            keys[r] = &h[sensors[r] * units * 8..][..hidden];
        }
        for block in 0..units {
            let [first, second] = &senses.base[block];
            let mut z = [isa.load_all([first, second]); R];
            let [first, second] = &neurons.of_number[block];
            let (first, second) = (isa.load16(&first.0), isa.load16(&second.0));
            for (z, &sensor) in z.iter_mut().zip(&sensors) {
                let number = isa.splat16(numbers[sensor]);
                z[0] = first.mul_add(number, z[0]);
                z[1] = second.mul_add(number, z[1]);
            }
            let weights = &neurons.of_hidden[block * hidden..][..hidden];
            for k in 0..hidden {
                let (first, second) = (isa.load16(&weights[k][0].0), isa.load16(&weights[k][1].0));
                for r in 0..R {
                    let h = isa.splat16(keys[r][k]);
                    z[r][0] = first.mul_add(h, z[r][0]);
                    z[r][1] = second.mul_add(h, z[r][1]);
                }
            }
            for r in 0..R {
                let to = sensors[r] * units + block;
                for pair in 0..2 {
                    let [low, high] = isa.halves(z[r][pair]);
                    low.store(&mut gates[2 * pair][to]);
                    high.store(&mut gates[2 * pair + 1][to]);
                }
            }
        }
    }
}

/// New states: c ← σ(f)·c + σ(i)·tanh(g); h ← σ(o)·tanh(c).
#[inline(always)]
fn advance<I: Isa>(isa: I, senses: &mut Senses) {
    let one = isa.splat16(1.0);
    let [i, f, g, o] = &senses.gates;
    for (block, (c, h)) in senses.c.iter_mut().zip(&mut senses.h).enumerate() {
        let [i, f, g, o] = isa.load_all([&i[block], &f[block], &g[block], &o[block]]);
        let forgotten = one.add(power(isa, f.mul(isa.splat16(-std::f32::consts::LOG2_E))));
        let next = isa.load16(&c.0).div(forgotten).add(product(isa, i, g));
        next.store(&mut c.0);
        product(isa, o, next).store(&mut h.0);
    }
}

/// σ(x) tanh(y) = (e^2y - 1) / ((1 + e^-x) (e^2y + 1))
#[inline(always)]
fn product<I: Isa>(isa: I, x: I::V16, y: I::V16) -> I::V16 {
    let one = isa.splat16(1.0);
    let log2_e = isa.splat16(std::f32::consts::LOG2_E);
    let x = power(isa, x.mul(isa.splat16(-std::f32::consts::LOG2_E)));
    let y = power(isa, y.mul(log2_e.add(log2_e)));
    y.sub(one).div(one.add(x).mul(y.add(one)))
}

/// The sensors in ascending order of their numbers; of equal numbers, in that of their keys.
#[inline(always)]
fn sort<I: Isa>(isa: I, numbers: &[f32], senses: &mut Senses) {
    /// Up to this many sensors are sorted by counting, which has no branches that depend on numbers.
    const FEW: usize = 64;
    if numbers.len() > FEW || !sort_unlike(isa, numbers, senses) {
        sort_any(numbers, senses);
    }
}

/// Sorts numbers that all differ: the place of each is how many are less. Returns `false`, and leaves the order
/// undefined, when some are equal (0 and −0 are, here) or not a number.
#[inline(always)]
fn sort_unlike<I: Isa>(isa: I, numbers: &[f32], senses: &mut Senses) -> bool {
    let Senses { numbers: padded, less, order, .. } = senses;
    let (all, rest) = flat_mut(padded).split_at_mut(numbers.len());
    all.copy_from_slice(numbers);
    rest.fill(f32::INFINITY);
    let (one, zero) = (isa.splat16(1.0), isa.splat16(0.0));
    for (block, less) in padded.iter().zip(&mut *less) {
        let mine = isa.load16(&block.0);
        let (mut even, mut odd) = (zero, zero);
        for other in padded.iter() {
            for pair in other.0.as_chunks::<2>().0 {
                even = even.add(isa.splat16(pair[0]).select_lt(mine, one, zero));
                odd = odd.add(isa.splat16(pair[1]).select_lt(mine, one, zero));
            }
        }
        even.add(odd).store(&mut less.0);
    }
    let mut taken = 0_u64;
    for (sensor, &less) in flat(less)[..numbers.len()].iter().enumerate() {
        let place = less as usize;
        taken |= 1 << place;
        order[place] = sensor as u32;
    }
    taken.count_ones() as usize == numbers.len()
}

/// Sorts any numbers, as `f32::total_cmp` compares them, and then by the keys.
#[cold]
#[inline(never)]
fn sort_any(numbers: &[f32], senses: &mut Senses) {
    let Senses { order, h, sizes, .. } = senses;
    let (h, padded) = (flat(h), sizes.hidden.div_ceil(8) * 8);
    let key = |sensor: u32| &h[sensor as usize * padded..][..padded];
    let by_key = |a: u32, b: u32| {
        let differ = key(a).iter().zip(key(b)).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
        differ.unwrap_or(Ordering::Equal)
    };
    for (sensor, order) in order.iter_mut().enumerate() {
        *order = sensor as u32;
    }
    order.sort_unstable_by(|&a, &b| {
        numbers[a as usize].total_cmp(&numbers[b as usize]).then_with(|| by_key(a, b))
    });
}

/// The scores of sixteen codes for each of the keys.
#[inline(always)]
fn scores<I: Isa, const R: usize>(isa: I, neurons: &Neurons, block: usize, keys: [&[f32]; R]) -> [I::V16; R] {
    let mut z = [isa.load16(&neurons.score_bias[block].0); R];
    let hidden = keys[0].len();
    let weights = &neurons.scores[block * hidden..][..hidden];
    for k in 0..hidden {
        let weight = isa.load16(&weights[k].0);
        for r in 0..R {
            z[r] = weight.mul_add(isa.splat16(keys[r][k]), z[r]);
        }
    }
    z
}

/// The weights for scores: tanh of them, or the logistic function.
#[inline(always)]
fn weigh<I: Isa, const TANH: bool>(isa: I, z: I::V16) -> I::V16 {
    let one = isa.splat16(1.0);
    if TANH { one.sub(isa.splat16(2.0).div(power(isa, z).add(one))) } else { one.div(power(isa, z).add(one)) }
}

/// The message for weights that depend on nothing but their own score.
#[inline(always)]
fn add_up<I: Isa, const H: usize, const R: usize, const TANH: bool>(
    isa: I,
    neurons: &Neurons,
    numbers: &[f32],
    senses: &mut Senses,
) {
    let Senses { order, h, weights_nm, message, .. } = senses;
    let hidden = if H == 0 { neurons.sizes.hidden } else { H };
    let (h, padded, blocks) = (flat(h), hidden.div_ceil(8) * 8, message.len());
    for (block, message) in message.iter_mut().enumerate() {
        let mut sum = isa.splat16(0.0);
        let (groups, rest) = order.as_chunks::<R>();
        for group in groups {
            let mut keys: [&[f32]; R] = [&[]; R];
            for r in 0..R {
                keys[r] = &h[group[r] as usize * padded..][..hidden];
            }
            let z = scores(isa, neurons, block, keys);
            for r in 0..R {
                let (sensor, weights) = (group[r] as usize, weigh::<I, TANH>(isa, z[r]));
                weights.store(&mut weights_nm[sensor * blocks + block].0);
                sum = weights.mul_add(isa.splat16(numbers[sensor]), sum);
            }
        }
        for &sensor in rest {
            let sensor = sensor as usize;
            let [z] = scores(isa, neurons, block, [&h[sensor * padded..][..hidden]]);
            let weights = weigh::<I, TANH>(isa, z);
            weights.store(&mut weights_nm[sensor * blocks + block].0);
            sum = weights.mul_add(isa.splat16(numbers[sensor]), sum);
        }
        sum.store(&mut message.0);
    }
}

/// 2^(z - largest), which is at most 1.
#[inline(always)]
fn power_below<I: Isa>(isa: I, z: I::V16, largest: I::V16) -> I::V16 {
    exp2(isa, z.sub(largest).max(isa.splat16(-2.0 * MOST)))
}

/// The message for weights that sum to 1 over the sensors.
#[inline(always)]
fn softmax<I: Isa, const H: usize>(isa: I, neurons: &Neurons, numbers: &[f32], senses: &mut Senses) {
    let Senses { order, h, weights_nm, message, .. } = senses;
    let hidden = if H == 0 { neurons.sizes.hidden } else { H };
    let (h, padded, blocks) = (flat(h), hidden.div_ceil(8) * 8, message.len());
    for (block, message) in message.iter_mut().enumerate() {
        let mut largest = isa.splat16(f32::NEG_INFINITY);
        for sensor in 0..numbers.len() {
            let [z] = scores(isa, neurons, block, [&h[sensor * padded..][..hidden]]);
            z.store(&mut weights_nm[sensor * blocks + block].0);
            largest = largest.max(z);
        }
        let (mut total, mut sum) = (isa.splat16(0.0), isa.splat16(0.0));
        for &sensor in &**order {
            let weights: &mut Block = &mut weights_nm[sensor as usize * blocks + block];
            let share = power_below(isa, isa.load16(&weights.0), largest);
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

/// Transposes the weights to `[codes, sensors]`, eight codes of sixteen sensors at a time.
#[inline(always)]
fn by_code<I: Isa>(isa: I, senses: &mut Senses) {
    let Senses { weights_nm, weights, sensors, sizes, message, .. } = senses;
    let (sensors, codes, pitch) = (*sensors, sizes.codes, message.len() * 16);
    let weights_nm = flat(weights_nm);
    for first_code in (0..codes).step_by(8) {
        for start in (0..sensors).step_by(MARGIN) {
            // The last sixteen sensors end with the last one. Rows of fewer than sixteen end in the next row,
            // which is written later, or in the margin.
            let start = start.min(sensors.saturating_sub(MARGIN));
            let mut rows = [isa.splat8(0.0); MARGIN];
            for (r, row) in rows.iter_mut().enumerate() {
                let sensor = (start + r).min(sensors - 1);
                let of_sensor = weights_nm[sensor * pitch + first_code..].first_chunk();
                *row = isa.load8(of_sensor.expect("padded to sixteen"));
            }
            let columns = isa.transpose(rows);
            for c in 0..8.min(codes - first_code) {
                let to = weights[(first_code + c) * sensors + start..].first_chunk_mut();
                columns[c].store(to.expect("a margin behind the last row"));
            }
        }
    }
}
