//! The backward pass, from the last step to the first.

use super::{Activation, CHUNK, GROUP, Goal, Layer, Learner, OTHERS, SHARPNESS, SensorySizes, Tape, width};
use crate::lanes::{Block, Eight, Isa, Lanes, exp2, flat, flat_mut};

impl Learner {
    /// Computes the gradient of the last forward pass and stores it in the sums; returns the error of the names.
    #[inline(always)]
    pub(super) fn backward<I: Isa>(
        &mut self,
        isa: I,
        inputs: &[f32],
        goal: &mut Goal<'_>,
        steps: usize,
    ) -> f64 {
        let Tape { dh, dc, cell_sums, score_sums, .. } = &mut self.tape;
        for sums in [dh, dc, score_sums] {
            sums.fill(Block::default());
        }
        cell_sums.fill([Eight::default(); 4]);
        for layer in &mut self.layers {
            layer.sums.fill(Block::default());
            layer.bias_sums.fill(Block::default());
        }
        let per_step = self.sensors + self.sizes.shared;
        let (mut end, mut error) = (steps, 0.0);
        while end > 0 {
            let start = end.saturating_sub(CHUNK);
            for t in (start..end).rev() {
                if matches!(goal, Goal::Names) {
                    error += self.names_back(isa, t, t - start);
                } else {
                    self.pull_outputs(isa, t, goal, t + 1 == steps);
                    self.layers_back(isa, t);
                    self.scores_back(isa, t, t - start, &inputs[t * per_step..][..self.sensors]);
                }
                self.keys_back(isa, t - start);
                self.cells_back(isa, t, t - start);
                if let Goal::Between(between) = goal {
                    self.inputs_back(isa, t, t - start);
                    self.bound_memory(isa, between.bound());
                }
            }
            self.add_cells(isa, start, end - start);
            self.add_scores(isa, start, end - start);
            end = start;
        }
        error
    }

    /// The derivative with respect to the outputs of step `t`.
    #[inline(always)]
    fn pull_outputs<I: Isa>(&mut self, isa: I, t: usize, goal: &mut Goal<'_>, last: bool) {
        let Some(Layer { outputs, given, .. }) = self.layers.last() else { return };
        let Tape { pull, back, dh, dc, .. } = &mut self.tape;
        match goal {
            Goal::Wanted(wanted) => {
                let two = isa.splat16(2.0);
                let given = &given[t * pull.len()..][..pull.len()];
                let wanted = &wanted[t * *outputs..][..*outputs];
                for (block, (pull, y)) in pull.iter_mut().zip(given).enumerate() {
                    let wanted = &wanted[block * 16..wanted.len().min(block * 16 + 16)];
                    let mut goal = Block::default();
                    goal.0[..wanted.len()].copy_from_slice(wanted);
                    two.mul(isa.load16(&y.0).sub(isa.load16(&goal.0))).store(&mut pull.0);
                }
            }
            Goal::Between(between) => {
                let next = if last { &[] } else { &back[..] };
                if !between.pull(t, next, &mut flat_mut(pull)[..*outputs]) {
                    dh.fill(Block::default());
                    dc.fill(Block::default());
                }
            }
            Goal::Names => {}
        }
    }

    /// Limits the derivatives with respect to the memory of the step before to ± `bound`.
    #[inline(always)]
    fn bound_memory<I: Isa>(&mut self, isa: I, bound: f32) {
        let (low, high) = (isa.splat16(-bound), isa.splat16(bound));
        let Tape { dh, dc, .. } = &mut self.tape;
        for block in dh.iter_mut().chain(dc) {
            isa.load16(&block.0).max(low).min(high).store(&mut block.0);
        }
    }

    /// The derivative with respect to the inputs of step `t`, after those with respect to its message and, at place `at`
    /// of the chunk, to z.
    #[inline(always)]
    fn inputs_back<I: Isa>(&mut self, isa: I, t: usize, at: usize) {
        let SensorySizes { shared, hidden, codes, squash, .. } = self.sizes;
        let (blocks, units, width, sensors) =
            (codes.div_ceil(16), hidden.div_ceil(8), width(self.sizes), self.sensors);
        let Tape { weights, message, dz, dh, back, .. } = &mut self.tape;
        let state = dh.len();
        let dz = flat(&dz[at * 4 * state..][..4 * state]).as_chunks::<8>().0;
        let weights = &weights[t * blocks * sensors..][..blocks * sensors];
        let (to_sensors, to_shared) = back.split_at_mut(sensors);
        to_shared.fill(0.0);
        for (sensor, to) in to_sensors.iter_mut().enumerate() {
            let mut heard = isa.splat16(0.0);
            for block in 0..blocks {
                let mut pull = isa.load16(&self.layers[0].back[block].0);
                if squash {
                    pull = pull.mul(slope(isa, isa.load16(&message[t * blocks + block].0)));
                }
                heard = isa.load16(&weights[block * sensors + sensor].0).mul_add(pull, heard);
            }
            let mut lanes = Block::default();
            heard.store(&mut lanes.0);
            *to = sum(&lanes.0[..codes.min(16)]);
            for input in 0..=shared {
                let mut told = isa.splat8(0.0);
                for block in 0..units {
                    let column = &self.cell[block * width + hidden + 1 + input];
                    for gate in 0..4 {
                        let dz = isa.load8(&dz[gate * state * 2 + sensor * units + block]);
                        told = isa.load8(&column[gate].0).mul_add(dz, told);
                    }
                }
                let mut lanes = Eight::default();
                told.store(&mut lanes.0);
                let told = sum(&lanes.0);
                match to_shared.get_mut(input.wrapping_sub(1)) {
                    Some(to) => *to += told,
                    None => *to += told,
                }
            }
        }
    }

    /// From the derivative with respect to the outputs of step `t` through the layers to the message.
    #[inline(always)]
    fn layers_back<I: Isa>(&mut self, isa: I, t: usize) {
        let last = self.layers.len() - 1;
        let codes = self.sizes.codes.div_ceil(16);
        for index in (0..=last).rev() {
            let (before, after) = self.layers.split_at_mut(index);
            let (layer, next) = after.split_first_mut().expect("it is there");
            let Layer { inputs, outputs, rows, given, pull, back, sums, bias_sums, .. } = layer;
            let blocks = outputs.div_ceil(16);
            let given = &given[t * blocks..][..blocks];
            for (block, pull) in pull.iter_mut().enumerate() {
                let y = isa.load16(&given[block].0);
                let d = if let Some(next) = next.first() {
                    isa.load16(&next.back[block].0)
                } else {
                    isa.load16(&self.tape.pull[block].0)
                };
                d.mul(slope(isa, y)).store(&mut pull.0);
            }
            let told = inputs.div_ceil(16);
            let x = match before.last() {
                Some(before) => &before.given[t * told..][..told],
                None => &self.tape.message[t * codes..][..codes],
            };
            let pulls = &flat(pull)[..*outputs];
            let rows = rows.chunks_exact(told);
            back.fill(Block::default());
            for ((&pull, row), sums) in pulls.iter().zip(rows).zip(sums.chunks_exact_mut(told)) {
                let pull = isa.splat16(pull);
                for block in 0..told {
                    let d = isa.load16(&row[block].0).mul_add(pull, isa.load16(&back[block].0));
                    d.store(&mut back[block].0);
                    let sum = isa.load16(&x[block].0).mul_add(pull, isa.load16(&sums[block].0));
                    sum.store(&mut sums[block].0);
                }
            }
            for (sum, pull) in bias_sums.iter_mut().zip(&*pull) {
                isa.load16(&sum.0).add(isa.load16(&pull.0)).store(&mut sum.0);
            }
        }
    }

    /// From the message of step `t` to the scores, whose derivatives are stored at place `at` of the chunk.
    #[inline(always)]
    fn scores_back<I: Isa>(&mut self, isa: I, t: usize, at: usize, numbers: &[f32]) {
        let SensorySizes { codes, activation, squash, .. } = self.sizes;
        let (blocks, sensors) = (codes.div_ceil(16), self.sensors);
        let Tape { weights, message, dq, .. } = &mut self.tape;
        let weights = &weights[t * blocks * sensors..][..blocks * sensors];
        let dq = &mut dq[at * sensors * blocks..][..sensors * blocks];
        for (block, weights) in weights.chunks_exact(sensors).enumerate() {
            let mut pull = isa.load16(&self.layers[0].back[block].0);
            if squash {
                let m = isa.load16(&message[t * blocks + block].0);
                pull = pull.mul(slope(isa, m));
            }
            let mut shared = isa.splat16(0.0);
            if activation == Activation::Softmax {
                for (w, &number) in weights.iter().zip(numbers) {
                    shared = isa.load16(&w.0).mul_add(pull.mul(isa.splat16(number)), shared);
                }
            }
            for (sensor, (w, &number)) in weights.iter().zip(numbers).enumerate() {
                let dw = pull.mul(isa.splat16(number));
                let d = to_score(isa, activation, isa.load16(&w.0), dw, shared);
                d.store(&mut dq[sensor * blocks + block].0);
            }
        }
    }

    /// From the names of the sensors at step `t` to the scores, whose derivatives are stored at place `at` of the chunk.
    /// Returns the error.
    #[inline(always)]
    fn names_back<I: Isa>(&mut self, isa: I, t: usize, at: usize) -> f64 {
        let SensorySizes { codes, activation, .. } = self.sizes;
        let (blocks, sensors) = (codes.div_ceil(16), self.sensors);
        let Tape { weights, dq, .. } = &mut self.tape;
        let weights = &weights[t * blocks * sensors..][..blocks * sensors];
        let dq = &mut dq[at * sensors * blocks..][..sensors * blocks];
        let sharpness = isa.splat16(SHARPNESS);
        let (log2_e, low) = (isa.splat16(std::f32::consts::LOG2_E), isa.splat16(-120.0));
        let whole = SHARPNESS / sensors as f32;
        let others = isa.splat16(2.0 * OTHERS / sensors as f32);
        let mut error = 0.0;
        for (sensor, dq) in dq.chunks_exact_mut(blocks).enumerate() {
            for (block, to) in dq.iter_mut().enumerate() {
                isa.load16(&weights[block * sensors + sensor].0).mul(sharpness).store(&mut to.0);
            }
            let (named, rest) = flat_mut(dq).split_at_mut(codes);
            let most = named.iter().fold(f32::NEG_INFINITY, |most, &x| most.max(x));
            // Lanes behind the last code.
            rest.fill(f32::NEG_INFINITY);
            let own = f64::from(named[sensor]) - f64::from(most);
            let most = isa.splat16(most);
            for to in &mut *dq {
                exp2(isa, isa.load16(&to.0).sub(most).mul(log2_e).max(low)).store(&mut to.0);
            }
            let (named, rest) = flat_mut(dq).split_at_mut(codes);
            rest.fill(0.0);
            let total = sum(named);
            error += f64::from(total).ln() - own;
            let scale = isa.splat16(whole / total);
            let mut squares = isa.splat16(0.0);
            for (block, to) in dq.iter_mut().enumerate() {
                let mut w = weights[block * sensors + sensor];
                for (lane, w) in w.0.iter_mut().enumerate() {
                    let code = block * 16 + lane;
                    if code == sensor || code >= codes {
                        *w = 0.0;
                    }
                }
                let w = isa.load16(&w.0);
                squares = w.mul_add(w, squares);
                w.mul_add(others, isa.load16(&to.0).mul(scale)).store(&mut to.0);
            }
            flat_mut(dq)[sensor] -= whole;
            let mut lanes = Block::default();
            squares.store(&mut lanes.0);
            error += f64::from(OTHERS * sum(&lanes.0));
        }
        for (block, weights) in weights.chunks_exact(sensors).enumerate() {
            let mut shared = isa.splat16(0.0);
            if activation == Activation::Softmax {
                for (w, dw) in weights.iter().zip(dq[block..].iter().step_by(blocks)) {
                    shared = isa.load16(&w.0).mul_add(isa.load16(&dw.0), shared);
                }
            }
            for (w, dq) in weights.iter().zip(dq[block..].iter_mut().step_by(blocks)) {
                let d = to_score(isa, activation, isa.load16(&w.0), isa.load16(&dq.0), shared);
                d.store(&mut dq.0);
            }
        }
        error / sensors as f64
    }

    /// From the derivatives with respect to the scores, at place `at` of the chunk, to that with respect to h, which the next
    /// step's part of it is in already.
    #[inline(always)]
    fn keys_back<I: Isa>(&mut self, isa: I, at: usize) {
        let SensorySizes { hidden, codes, .. } = self.sizes;
        let (blocks, units, sensors) = (codes.div_ceil(16), hidden.div_ceil(8), self.sensors);
        let Tape { dq, dh, .. } = &mut self.tape;
        let dq = &dq[at * sensors * blocks..][..sensors * blocks];
        let dh = flat_mut(dh).as_chunks_mut::<8>().0;
        for (sensor, dq) in dq.chunks_exact(blocks).enumerate() {
            let dq = &flat(dq)[..codes];
            for block in 0..units {
                let dh = &mut dh[sensor * units + block];
                // Two independent sums, because each addition to a single sum would wait for the one before.
                let mut sums = [isa.load8(dh), isa.splat8(0.0)];
                let rows = self.score_rows[block..].iter().step_by(units);
                for (code, (row, &dq)) in rows.zip(dq).enumerate() {
                    sums[code % 2] = isa.load8(&row.0).mul_add(isa.splat8(dq), sums[code % 2]);
                }
                sums[0].add(sums[1]).store(dh);
            }
        }
    }

    /// From h and c of step `t` to z, stored at place `at` of the chunk, and to h and c of the step before.
    #[inline(always)]
    fn cells_back<I: Isa>(&mut self, isa: I, t: usize, at: usize) {
        let SensorySizes { hidden, .. } = self.sizes;
        let units = hidden.div_ceil(8);
        let Tape { kept, dz, dh, dc, .. } = &mut self.tape;
        let state = dh.len();
        let dz = &mut dz[at * 4 * state..][..4 * state];
        let one = isa.splat16(1.0);
        for (block, kept) in kept[t * state..][..state].iter().enumerate() {
            let pulled = isa.load16(&dh[block].0);
            let (i, f) = (isa.load16(&kept.i.0), isa.load16(&kept.f.0));
            let (g, o) = (isa.load16(&kept.g.0), isa.load16(&kept.o.0));
            let (c, tanh_c) = (isa.load16(&kept.c.0), isa.load16(&kept.tanh_c.0));
            let turned = pulled.mul_add(o.mul(slope(isa, tanh_c)), isa.load16(&dc[block].0));
            turned.mul(f).store(&mut dc[block].0);
            turned.mul(g.mul(i).mul(one.sub(i))).store(&mut dz[block].0);
            turned.mul(c.mul(f).mul(one.sub(f))).store(&mut dz[state + block].0);
            turned.mul(i.mul(slope(isa, g))).store(&mut dz[2 * state + block].0);
            pulled.mul(tanh_c.mul(o).mul(one.sub(o))).store(&mut dz[3 * state + block].0);
        }
        let dz = flat(dz);
        let dh = flat_mut(dh).as_chunks_mut::<8>().0;
        for sensor in 0..self.sensors {
            for block in 0..units {
                let mut sums = [isa.splat8(0.0); 4];
                for unit in 0..hidden {
                    for gate in 0..4 {
                        let dz = isa.splat8(dz[gate * state * 16 + sensor * units * 8 + unit]);
                        let weights = &self.back[(gate * hidden + unit) * units + block];
                        sums[gate] = isa.load8(&weights.0).mul_add(dz, sums[gate]);
                    }
                }
                sums[0].add(sums[1]).add(sums[2].add(sums[3])).store(&mut dh[sensor * units + block]);
            }
        }
    }

    /// Adds δz ⊗ inputs of a chunk to the gradient of the cell's weights.
    #[inline(always)]
    fn add_cells<I: Isa>(&mut self, isa: I, start: usize, steps: usize) {
        const TOGETHER: usize = 2;
        let (width, units, sensors) = (width(self.sizes), self.sizes.hidden.div_ceil(8), self.sensors);
        let Tape { told, dz, dh, cell_sums, .. } = &mut self.tape;
        let state = dh.len();
        let dz = flat(dz).as_chunks::<8>().0;
        for block in 0..units {
            for (group, sums) in cell_sums[block * width..][..width].chunks_exact_mut(TOGETHER).enumerate() {
                let mut all = [[isa.splat8(0.0); 4]; TOGETHER];
                for (all, sums) in all.iter_mut().zip(&*sums) {
                    for (all, sum) in all.iter_mut().zip(sums) {
                        *all = isa.load8(&sum.0);
                    }
                }
                for at in 0..steps {
                    let rows = &told[(start + at) * sensors * width..][..sensors * width];
                    let dz = &dz[at * 4 * state * 2..][..4 * state * 2];
                    for (sensor, row) in rows.chunks_exact(width).enumerate() {
                        let mut of_gates = [isa.splat8(0.0); 4];
                        for gate in 0..4 {
                            of_gates[gate] = isa.load8(&dz[gate * state * 2 + sensor * units + block]);
                        }
                        for (all, &x) in all.iter_mut().zip(&row[group * TOGETHER..]) {
                            let x = isa.splat8(x);
                            for gate in 0..4 {
                                all[gate] = of_gates[gate].mul_add(x, all[gate]);
                            }
                        }
                    }
                }
                for (all, sums) in all.into_iter().zip(sums) {
                    for (all, sum) in all.into_iter().zip(sums) {
                        all.store(&mut sum.0);
                    }
                }
            }
        }
    }

    /// Adds δq ⊗ keys of a chunk to the gradient of the scores.
    #[inline(always)]
    fn add_scores<I: Isa>(&mut self, isa: I, start: usize, steps: usize) {
        let SensorySizes { hidden, codes, .. } = self.sizes;
        let (blocks, width, sensors) = (codes.div_ceil(16), width(self.sizes), self.sensors);
        let grouped = (hidden + 1).next_multiple_of(GROUP);
        let Tape { told, dq, score_sums, .. } = &mut self.tape;
        for (block, sums) in score_sums.chunks_exact_mut(grouped).enumerate() {
            for (group, sums) in sums.chunks_exact_mut(GROUP).enumerate() {
                let mut all = [isa.splat16(0.0); GROUP];
                for (all, sum) in all.iter_mut().zip(&*sums) {
                    *all = isa.load16(&sum.0);
                }
                // The keys of a step are stored with the next step.
                let rows =
                    told[(start + 1) * sensors * width..][..steps * sensors * width].chunks_exact(width);
                for (row, dq) in rows.zip(dq.chunks_exact(blocks)) {
                    let d = isa.load16(&dq[block].0);
                    for (all, &x) in all.iter_mut().zip(&row[group * GROUP..]) {
                        *all = d.mul_add(isa.splat16(x), *all);
                    }
                }
                for (all, sum) in all.into_iter().zip(sums) {
                    all.store(&mut sum.0);
                }
            }
        }
    }
}

/// The numbers added in order.
#[inline(always)]
fn sum(numbers: &[f32]) -> f32 {
    let mut sum = 0.0;
    for number in numbers {
        sum += number;
    }
    sum
}

/// From the derivative with respect to a weight to that with respect to its score; for softmax, `shared` is Σ w · dw over the
/// sensors.
#[inline(always)]
fn to_score<I: Isa>(isa: I, activation: Activation, w: I::V16, dw: I::V16, shared: I::V16) -> I::V16 {
    match activation {
        Activation::Tanh => dw.mul(slope(isa, w)),
        Activation::Sigmoid => dw.mul(w.mul(isa.splat16(1.0).sub(w))),
        Activation::Softmax => w.mul(dw.sub(shared)),
    }
}

/// The derivative of tanh in terms of its value.
#[inline(always)]
fn slope<I: Isa>(isa: I, y: I::V16) -> I::V16 {
    let one = isa.splat16(1.0);
    one.sub(y).mul(one.add(y))
}
