//! S3TA on a device: the passes of `foveate_agents::s3ta`, with the same parameters in the same order.
//!
//! Rows are sorted by step, then by sequence. A pass computes several steps of a batch of sequences; before a step that begins an
//! episode (`fresh`), a sequence's states are zeros. What does not depend on the step before, convolutions and the layers behind
//! the LSTM, is computed for all steps at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use foveate_agents::registry::AgentConfig;
use foveate_agents::s3ta::{Basis, S3taConfig, Source, Torso};
use foveate_learn::{Frequencies, SpatialBasis};

use crate::device::{Bytes, Device, DeviceError, Memory, Numbers, Sizes};
use crate::ops::{Attention, Operand, Ops, Product, Windows};

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The settings are not those of a network that is built here.
    #[error("{0}")]
    Settings(String),
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Numbers of the largest scratch space for windows.
const ROOM: usize = 1 << 27;
/// Most numbers of a pass's largest array, so that a kernel can count them.
const MOST: usize = 1 << 31;

/// Tensors of the parameters: where each begins, and how long it is.
#[derive(Debug, Clone)]
struct Places(BTreeMap<String, (usize, usize)>);

impl Places {
    fn of<'a>(&self, params: Numbers<'a>, name: &str) -> Numbers<'a> {
        let (begin, len) = self.0[name];
        params.part(begin, len)
    }
}

/// The network and its parameters on a device.
pub struct Network {
    ops: Ops,
    config: S3taConfig,
    attention: Attention,
    /// Of each convolution, then that of the `ConvLSTM` on its input and on its state.
    convolutions: Vec<Windows>,
    from_input: Windows,
    from_state: Windows,
    places: Places,
    count: usize,
    params: Memory,
    gradient: Memory,
    /// `[cells, basis]`
    basis: Memory,
}

/// States of a batch of sequences: h and c of the vision core, h and c of the LSTM.
#[derive(Debug)]
pub struct States {
    memory: [Memory; 4],
    batch: usize,
}

/// The arrays of a pass.
#[derive(Debug)]
pub struct Pass {
    steps: usize,
    batch: usize,
    begin: States,
    fresh: Memory,
    told: Memory,
    convolved: Vec<Memory>,
    vision: [Memory; 4],
    /// h of the LSTM before each step.
    before: Memory,
    asked: Vec<Memory>,
    weights: Memory,
    contents: Memory,
    places: Memory,
    seen: Memory,
    answered: Vec<Memory>,
    core: [Memory; 4],
    trunk: Option<Memory>,
    logits: Memory,
    values: Memory,
    room: Memory,
    /// Gradients; none in a pass that only acts.
    back: Option<Back>,
}

/// The arrays of a backward pass.
#[derive(Debug)]
struct Back {
    /// Of the outputs of convolutions.
    convolved: Vec<Memory>,
    /// Of h of the vision core in all steps, and of h and c in one step.
    vision: Memory,
    carry: [Memory; 2],
    asked: Vec<Memory>,
    seen: Memory,
    answered: Vec<Memory>,
    core: Memory,
    core_carry: [Memory; 2],
    trunk: Option<Memory>,
    logits: Memory,
    values: Memory,
    scores: Memory,
    contents: Memory,
    places: Memory,
    sums: [Memory; 2],
}

impl Network {
    /// The network of these settings on a device, with zeros as parameters.
    ///
    /// # Errors
    /// When the settings are of a variant that is not built here, make no sense, or the device has too little memory.
    pub fn new(device: &Arc<dyn Device>, config: &S3taConfig) -> Result<Self, BuildError> {
        let refuse = |what: &str| {
            let why = format!(
                "{what} is not built for GPUs; train such an agent with `foveate train`, on the processor"
            );
            Err(BuildError::Settings(why))
        };
        config.check().map_err(|error| BuildError::Settings(error.to_string()))?;
        match config {
            S3taConfig { torso: Torso::Residual, .. } => return refuse("torso = \"residual\""),
            S3taConfig { attention: Source::FixedQuery, .. } => return refuse("attention = \"fixed-query\""),
            S3taConfig { attention: Source::KeyNorms, .. } => return refuse("attention = \"key-norms\""),
            S3taConfig { normalise: true, .. } => return refuse("normalise = true"),
            S3taConfig { peepholes: true, .. } => return refuse("peepholes = true"),
            S3taConfig { convolutions, .. } if convolutions.is_empty() => return refuse("convolutions = []"),
            S3taConfig { query_hidden, answer_hidden, .. }
                if query_hidden.is_empty() || answer_hidden.is_empty() =>
            {
                return refuse("query_hidden = [] or answer_hidden = []");
            }
            S3taConfig { answer_relu: false, .. } => return refuse("answer_relu = false"),
            _ => {}
        }
        let ops = Ops::new(Arc::clone(device));
        let mut from = config.view;
        let mut convolutions = Vec::new();
        for layer in &config.convolutions {
            let windows = Windows::same(from, layer.size, layer.stride);
            from = [windows.to[0], windows.to[1], layer.filters];
            convolutions.push(windows);
        }
        let cells = [from[0], from[1]];
        let frequencies = match config.basis {
            Basis::Mixed => Frequencies::Mixed,
            Basis::MixedFromZero => Frequencies::MixedFromZero,
            Basis::Cosines => Frequencies::Cosines,
        };
        let functions = SpatialBasis::new(config.frequencies, frequencies);
        let values: Vec<f32> = functions.of(cells[0], cells[1]).into_iter().map(|x| x as f32).collect();
        let basis = Memory::numbers(device, values.len())?;
        ops.write(basis.all(), &values)?;
        let (mut places, mut count) = (BTreeMap::new(), 0);
        for tensor in config.tensors() {
            places.insert(tensor.name.clone(), (count, tensor.len()));
            count += tensor.len();
        }
        Ok(Network {
            attention: Attention {
                heads: config.heads,
                cells: cells[0] * cells[1],
                keys: config.keys,
                channels: config.channels,
                basis: functions.channels(),
                told: 1 + config.actions,
                scale: config.score_scale,
            },
            from_input: Windows::same(from, config.size, 1),
            from_state: Windows::same([cells[0], cells[1], config.channels], config.size, 1),
            convolutions,
            places: Places(places),
            params: Memory::numbers(device, count)?,
            gradient: Memory::numbers(device, count)?,
            count,
            basis,
            config: config.clone(),
            ops,
        })
    }

    /// Its settings.
    pub const fn config(&self) -> &S3taConfig {
        &self.config
    }

    /// The operations of its device.
    pub const fn ops(&self) -> &Ops {
        &self.ops
    }

    /// Number of parameters.
    pub const fn params(&self) -> usize {
        self.count
    }

    /// Sets the parameters.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Panics
    /// When there are not [`Network::params`] of them.
    pub fn set_params(&self, params: &[f32]) -> Result<(), DeviceError> {
        self.ops.write(self.params.all(), params)
    }

    /// Zero states of a batch.
    ///
    /// # Errors
    /// When the device has too little memory.
    pub fn states(&self, batch: usize) -> Result<States, DeviceError> {
        let vision = batch * self.attention.cells * self.config.channels;
        let numbers = |len: usize| Memory::numbers(self.ops.device(), len);
        let core = batch * self.config.units;
        Ok(States { memory: [numbers(vision)?, numbers(vision)?, numbers(core)?, numbers(core)?], batch })
    }

    /// The arrays of passes of `steps` steps of `batch` sequences; `learns` says whether gradients are wanted.
    ///
    /// # Errors
    /// When they are too many for a kernel to count, or for the device.
    pub fn pass(&self, steps: usize, batch: usize, learns: bool) -> Result<Pass, BuildError> {
        let (of, config) = (&self.attention, &self.config);
        let rows = steps * batch;
        let largest = rows.saturating_mul(of.cells).saturating_mul(4 * config.channels);
        let most = self.convolutions.iter().map(|w| rows.saturating_mul(w.count()).saturating_mul(64)).max();
        if largest.max(most.unwrap_or(0)) >= MOST {
            return Err(BuildError::Settings(format!(
                "{steps} steps of {batch} sequences are too many for one pass; lower unroll or batch"
            )));
        }
        let numbers = |len: usize| Memory::numbers(self.ops.device(), len);
        let cells = rows * of.cells * config.channels;
        let layers = |units: &[usize]| units.iter().map(|n| numbers(rows * n)).collect::<Result<Vec<_>, _>>();
        let mut asked = config.query_hidden.clone();
        asked.push(of.heads * of.width());
        let pictures = || -> Result<Vec<Memory>, DeviceError> {
            let outputs = self.convolutions.iter().zip(&config.convolutions);
            outputs.map(|(windows, layer)| numbers(rows * windows.count() * layer.filters)).collect()
        };
        let trunk = || if config.trunk > 0 { numbers(rows * config.trunk).map(Some) } else { Ok(None) };
        let scores = rows * of.heads * of.cells;
        let all = [&self.from_input, &self.from_state];
        let frame =
            all.into_iter().chain(&self.convolutions).map(|windows| windows.count() * windows.len()).max();
        let frame = frame.unwrap_or(1);
        let back = || -> Result<Back, DeviceError> {
            let vision = batch * of.cells * config.channels;
            Ok(Back {
                convolved: pictures()?,
                vision: numbers(cells)?,
                carry: [numbers(vision)?, numbers(vision)?],
                asked: layers(&asked)?,
                seen: numbers(rows * of.seen())?,
                answered: layers(&config.answer_hidden)?,
                core: numbers(rows * config.units)?,
                core_carry: [numbers(batch * config.units)?, numbers(batch * config.units)?],
                trunk: trunk()?,
                logits: numbers(rows * config.actions)?,
                values: numbers(rows)?,
                scores: numbers(batch * of.heads * of.cells)?,
                contents: numbers(batch * of.heads * config.channels)?,
                places: numbers(batch * of.heads * of.basis)?,
                sums: [numbers(batch * of.heads * config.channels)?, numbers(batch * of.heads * of.basis)?],
            })
        };
        Ok(Pass {
            steps,
            batch,
            begin: self.states(batch)?,
            fresh: Memory::bytes(self.ops.device(), rows)?,
            told: numbers(rows * of.told)?,
            convolved: pictures()?,
            vision: [numbers(4 * cells)?, numbers(cells)?, numbers(cells)?, numbers(cells)?],
            before: numbers(rows * config.units)?,
            asked: layers(&asked)?,
            weights: numbers(scores)?,
            contents: numbers(rows * of.heads * config.channels)?,
            places: numbers(rows * of.heads * of.basis)?,
            seen: numbers(rows * of.seen())?,
            answered: layers(&config.answer_hidden)?,
            core: [
                numbers(4 * rows * config.units)?,
                numbers(rows * config.units)?,
                numbers(rows * config.units)?,
                numbers(rows * config.units)?,
            ],
            trunk: trunk()?,
            logits: numbers(rows * config.actions)?,
            values: numbers(rows)?,
            room: numbers((frame * rows).min(ROOM.max(frame)))?,
            back: if learns { Some(back()?) } else { None },
        })
    }

    fn param(&self, name: &str) -> Numbers<'_> {
        self.places.of(self.params.all(), name)
    }

    fn slope(&self, name: &str) -> Numbers<'_> {
        self.places.of(self.gradient.all(), name)
    }

    /// y = x Wᵀ, with `W` `[outputs, inputs]`; the widths follow from the lengths.
    fn times(
        &self,
        x: Numbers<'_>,
        weight: Numbers<'_>,
        y: Numbers<'_>,
        rows: usize,
        add: bool,
    ) -> Result<(), DeviceError> {
        let (inputs, outputs) = (x.len() / rows, y.len() / rows);
        assert_eq!(weight.len(), inputs * outputs, "weight");
        self.ops.product(Product {
            a: Operand::new(x, inputs),
            b: Operand::new(weight, inputs).transposed(),
            c: Operand::new(y, outputs),
            sizes: Sizes { m: rows, n: outputs, k: inputs, batch: 1 },
            add,
        })
    }

    /// dx = dy W, or dx += dy W.
    fn times_back(
        &self,
        dy: Numbers<'_>,
        weight: Numbers<'_>,
        dx: Numbers<'_>,
        rows: usize,
        add: bool,
    ) -> Result<(), DeviceError> {
        let (inputs, outputs) = (dx.len() / rows, dy.len() / rows);
        assert_eq!(weight.len(), inputs * outputs, "weight");
        self.ops.product(Product {
            a: Operand::new(dy, outputs),
            b: Operand::new(weight, inputs),
            c: Operand::new(dx, inputs),
            sizes: Sizes { m: rows, n: inputs, k: outputs, batch: 1 },
            add,
        })
    }

    /// dW += dyᵀ x.
    fn add_weight(
        &self,
        dy: Numbers<'_>,
        x: Numbers<'_>,
        slope: Numbers<'_>,
        rows: usize,
    ) -> Result<(), DeviceError> {
        let (inputs, outputs) = (x.len() / rows, dy.len() / rows);
        assert_eq!(slope.len(), inputs * outputs, "weight");
        self.ops.product(Product {
            a: Operand::new(dy, outputs).transposed(),
            b: Operand::new(x, inputs),
            c: Operand::new(slope, inputs),
            sizes: Sizes { m: outputs, n: inputs, k: rows, batch: 1 },
            add: true,
        })
    }

    /// A layer: y = x Wᵀ + bias, and relu if wanted.
    fn layer(
        &self,
        name: &str,
        x: Numbers<'_>,
        y: Numbers<'_>,
        rows: usize,
        relu: bool,
    ) -> Result<(), DeviceError> {
        self.times(x, self.param(&format!("{name}.weight")), y, rows, false)?;
        self.ops.add_bias(y, self.param(&format!("{name}.bias")), relu)
    }

    /// The gradient of a layer's parameters in all rows, from that of its output before relu.
    fn layer_slopes(
        &self,
        name: &str,
        x: Numbers<'_>,
        dy: Numbers<'_>,
        rows: usize,
        room: Numbers<'_>,
    ) -> Result<(), DeviceError> {
        self.add_weight(dy, x, self.slope(&format!("{name}.weight")), rows)?;
        self.ops.add_rows(self.slope(&format!("{name}.bias")), dy, room)
    }

    /// Calls `each` with the first frame and the number of frames of every part that fits the room.
    fn parts<'a>(
        windows: &Windows,
        frames: usize,
        room: Numbers<'a>,
        mut each: impl FnMut(usize, usize, Numbers<'a>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let frame = windows.count() * windows.len();
        let most = (room.len() / frame).max(1);
        for first in (0..frames).step_by(most) {
            let count = most.min(frames - first);
            each(first, count, room.part(0, count * frame))?;
        }
        Ok(())
    }

    /// Writes windows of some pictures.
    fn cut(
        &self,
        windows: &Windows,
        of: Seen<'_>,
        first: usize,
        count: usize,
        to: Numbers<'_>,
    ) -> Result<(), DeviceError> {
        let pixels = windows.pixels();
        match of {
            Seen::Bytes(all) => {
                let factor = self.config.pixel_scale / 255.0;
                self.ops.windows_of_bytes(windows, all.part(first * pixels, count * pixels), factor, to)
            }
            Seen::Numbers(all, fresh) => {
                let fresh = fresh.map(|fresh| fresh.part(first, count));
                self.ops.windows(windows, all.part(first * pixels, count * pixels), fresh, to)
            }
        }
    }

    /// y = windows Wᵀ, or y += it.
    fn convolve(
        &self,
        windows: &Windows,
        of: Seen<'_>,
        weight: Numbers<'_>,
        y: Numbers<'_>,
        room: Numbers<'_>,
        add: bool,
    ) -> Result<(), DeviceError> {
        let frames = of.frames(windows);
        let out = y.len() / frames;
        Network::parts(windows, frames, room, |first, count, room| {
            self.cut(windows, of, first, count, room)?;
            self.times(room, weight, y.part(first * out, count * out), count * windows.count(), add)
        })
    }

    /// The gradient of a convolution's weight, and of its pictures if they are wanted.
    fn convolve_back(
        &self,
        windows: &Windows,
        of: Seen<'_>,
        [weight, slope, dy]: [Numbers<'_>; 3],
        dx: Option<Numbers<'_>>,
        room: Numbers<'_>,
    ) -> Result<(), DeviceError> {
        let frames = of.frames(windows);
        let out = dy.len() / frames;
        Network::parts(windows, frames, room, |first, count, room| {
            let (rows, dy) = (count * windows.count(), dy.part(first * out, count * out));
            self.cut(windows, of, first, count, room)?;
            self.add_weight(dy, room, slope, rows)?;
            if let Some(dx) = dx {
                self.times_back(dy, weight, room, rows, false)?;
                let dx = dx.part(first * windows.pixels(), count * windows.pixels());
                self.ops.pictures_of_windows(windows, room, dx)?;
            }
            Ok(())
        })
    }

    /// A pass over pictures `[steps, batch, rows, columns, channels]`. The states, told numbers and fresh steps of the pass are
    /// set before.
    ///
    /// # Errors
    /// What the device says.
    pub fn forward(&self, pass: &Pass, pictures: Bytes<'_>) -> Result<(), DeviceError> {
        let (ops, of, config) = (&self.ops, &self.attention, &self.config);
        let (rows, batch) = (pass.steps * pass.batch, pass.batch);
        let room = pass.room.all();
        let mut seen = Seen::Bytes(pictures);
        for (i, (windows, y)) in self.convolutions.iter().zip(&pass.convolved).enumerate() {
            let name = format!("vision_conv{}", i + 1);
            self.convolve(windows, seen, self.param(&format!("{name}.weight")), y.all(), room, false)?;
            ops.add_bias(y.all(), self.param(&format!("{name}.bias")), true)?;
            seen = Seen::Numbers(y.all(), None);
        }
        let sums = pass.vision[0].all();
        self.convolve(&self.from_input, seen, self.param("vision_input.weight"), sums, room, false)?;
        ops.add_bias(sums, self.param("vision_input.bias"), false)?;
        for step in 0..pass.steps {
            let at = Step::new(pass, step, of.cells * config.channels, config.units);
            let state = Seen::Numbers(at.last_h, Some(at.fresh));
            let weight = self.param("vision_state.weight");
            self.convolve(&self.from_state, state, weight, at.sums, room, true)?;
            ops.gates(
                config.channels,
                config.forget_bias,
                at.sums,
                at.last_c,
                at.fresh,
                [at.h, at.c, at.tanh_c],
            )?;
            self.attend(pass, step, &at)?;
        }
        let core = pass.core[1].all();
        let top = if let Some(trunk) = &pass.trunk {
            self.layer("trunk1", core, trunk.all(), rows, true)?;
            trunk.all()
        } else {
            core
        };
        debug_assert_eq!(rows, batch * pass.steps);
        self.layer("policy", top, pass.logits.all(), rows, false)?;
        self.layer("value", top, pass.values.all(), rows, false)
    }

    /// Queries, answers and the LSTM of a step.
    fn attend(&self, pass: &Pass, step: usize, at: &Step) -> Result<(), DeviceError> {
        let (ops, of, config, batch) = (&self.ops, &self.attention, &self.config, pass.batch);
        let row = |memory| part(memory, step, pass.steps);
        let before = row(&pass.before);
        ops.keep(before, at.last_core_h, at.fresh)?;
        let mut x = before;
        for (i, y) in pass.asked.iter().enumerate() {
            let name = if i + 1 < pass.asked.len() { format!("query{}", i + 1) } else { "query".into() };
            self.layer(&name, x, row(y), batch, i + 1 < pass.asked.len())?;
            x = row(y);
        }
        let (queries, weights) = (x, row(&pass.weights));
        // Scores of places, then those of contents.
        ops.product(Product {
            a: Operand::new(queries.part(of.keys, queries.len() - of.keys), of.width()),
            b: Operand::new(self.basis.all(), of.basis).transposed(),
            c: Operand::new(weights, of.cells),
            sizes: Sizes { m: batch * of.heads, n: of.cells, k: of.basis, batch: 1 },
            add: false,
        })?;
        ops.scores(of, weights, queries, at.h)?;
        ops.softmax(weights, of.cells)?;
        let (contents, places) = (row(&pass.contents), row(&pass.places));
        ops.product(Product {
            a: Operand::new(weights, of.cells).every(of.heads * of.cells),
            b: Operand::new(at.h, of.channels).every(of.cells * of.channels),
            c: Operand::new(contents, of.channels).every(of.heads * of.channels),
            sizes: Sizes { m: of.heads, n: of.channels, k: of.cells, batch },
            add: false,
        })?;
        ops.product(Product {
            a: Operand::new(weights, of.cells),
            b: Operand::new(self.basis.all(), of.basis),
            c: Operand::new(places, of.basis),
            sizes: Sizes { m: batch * of.heads, n: of.basis, k: of.cells, batch: 1 },
            add: false,
        })?;
        let seen = row(&pass.seen);
        ops.gather_answers(of, seen, [contents, places, queries, row(&pass.told)])?;
        let mut x = seen;
        for (i, y) in pass.answered.iter().enumerate() {
            self.layer(&format!("answer{}", i + 1), x, row(y), batch, true)?;
            x = row(y);
        }
        let sums = row(&pass.core[0]);
        self.layer("core_input", x, sums, batch, false)?;
        self.times(before, self.param("core_state.weight"), sums, batch, true)?;
        let [h, c, tanh_c] = [1, 2, 3].map(|i| row(&pass.core[i]));
        ops.gates(config.units, config.forget_bias, sums, at.last_core_c, at.fresh, [h, c, tanh_c])
    }

    /// The gradient of the parameters, from that of logits, `[steps, batch, actions]`, and values, `[steps, batch]`, after
    /// [`Network::forward`] on the same pictures. Afterwards the pass holds no gates any more.
    ///
    /// # Errors
    /// What the device says.
    ///
    /// # Panics
    /// When the pass was not made to learn, or a length is wrong.
    pub fn backward(
        &self,
        pass: &Pass,
        pictures: Bytes<'_>,
        d_logits: &[f32],
        d_values: &[f32],
    ) -> Result<Vec<f32>, DeviceError> {
        let back = pass.back.as_ref().expect("a pass that learns");
        let (ops, of, config) = (&self.ops, &self.attention, &self.config);
        let rows = pass.steps * pass.batch;
        let room = pass.room.all();
        ops.clear(self.gradient.all())?;
        ops.write(back.logits.all(), d_logits)?;
        ops.write(back.values.all(), d_values)?;
        // Policy, value and trunk, of all steps.
        let core = pass.core[1].all();
        let (top, d_top) = match (&pass.trunk, &back.trunk) {
            (Some(trunk), Some(d_trunk)) => (trunk.all(), d_trunk.all()),
            _ => (core, back.core.all()),
        };
        self.times_back(back.logits.all(), self.param("policy.weight"), d_top, rows, false)?;
        self.times_back(back.values.all(), self.param("value.weight"), d_top, rows, true)?;
        self.layer_slopes("policy", top, back.logits.all(), rows, room)?;
        self.layer_slopes("value", top, back.values.all(), rows, room)?;
        if pass.trunk.is_some() {
            ops.relu_backward(d_top, top)?;
            self.times_back(d_top, self.param("trunk1.weight"), back.core.all(), rows, false)?;
            self.layer_slopes("trunk1", core, d_top, rows, room)?;
        }
        for carry in back.core_carry.iter().chain(&back.carry) {
            ops.clear(carry.all())?;
        }
        for step in (0..pass.steps).rev() {
            let at = Step::new(pass, step, of.cells * config.channels, config.units);
            self.attend_back(pass, back, step, &at)?;
        }
        self.vision_back(pass, back)?;
        // Parameters behind the vision core, of all steps.
        self.layer_slopes(
            "core_input",
            pass.answered[pass.answered.len() - 1].all(),
            pass.core[0].all(),
            rows,
            room,
        )?;
        self.add_weight(pass.core[0].all(), pass.before.all(), self.slope("core_state.weight"), rows)?;
        for (i, dy) in back.answered.iter().enumerate() {
            let x = if i == 0 { pass.seen.all() } else { pass.answered[i - 1].all() };
            self.layer_slopes(&format!("answer{}", i + 1), x, dy.all(), rows, room)?;
        }
        for (i, dy) in back.asked.iter().enumerate() {
            let x = if i == 0 { pass.before.all() } else { pass.asked[i - 1].all() };
            let name = if i + 1 < back.asked.len() { format!("query{}", i + 1) } else { "query".into() };
            self.layer_slopes(&name, x, dy.all(), rows, room)?;
        }
        // Convolutions.
        let last = self.convolutions.len() - 1;
        let sums = pass.vision[0].all();
        ops.add_rows(self.slope("vision_input.bias"), sums, room)?;
        let names = [self.param("vision_input.weight"), self.slope("vision_input.weight"), sums];
        let x = Seen::Numbers(pass.convolved[last].all(), None);
        self.convolve_back(&self.from_input, x, names, Some(back.convolved[last].all()), room)?;
        for i in (0..=last).rev() {
            let dy = back.convolved[i].all();
            ops.relu_backward(dy, pass.convolved[i].all())?;
            let [weight, bias] = ["weight", "bias"].map(|tensor| format!("vision_conv{}.{tensor}", i + 1));
            ops.add_rows(self.slope(&bias), dy, room)?;
            let names = [self.param(&weight), self.slope(&weight), dy];
            let (x, dx) = match i {
                0 => (Seen::Bytes(pictures), None),
                _ => (Seen::Numbers(pass.convolved[i - 1].all(), None), Some(back.convolved[i - 1].all())),
            };
            self.convolve_back(&self.convolutions[i], x, names, dx, room)?;
        }
        ops.read(self.gradient.all())
    }

    /// The gradient of a step's LSTM, answers and queries, and of the cells by its attention.
    fn attend_back(&self, pass: &Pass, back: &Back, step: usize, at: &Step) -> Result<(), DeviceError> {
        let (ops, of, config, batch) = (&self.ops, &self.attention, &self.config, pass.batch);
        let row = |memory| part(memory, step, pass.steps);
        let [carry_h, carry_c] = [0, 1].map(|i| back.core_carry[i].all());
        let d_core = row(&back.core);
        ops.add(d_core, carry_h)?;
        let sums = row(&pass.core[0]);
        ops.gates_backward(
            config.units,
            sums,
            at.last_core_c,
            at.fresh,
            [row(&pass.core[3]), d_core, carry_c],
        )?;
        // That of h before the step, `d_before`, is summed in carry_h.
        self.times_back(sums, self.param("core_state.weight"), carry_h, batch, false)?;
        let last = pass.answered.len() - 1;
        let mut weight = self.param("core_input.weight");
        let mut dy = sums;
        for i in (0..=last).rev() {
            let dx = row(&back.answered[i]);
            self.times_back(dy, weight, dx, batch, false)?;
            ops.relu_backward(dx, row(&pass.answered[i]))?;
            weight = self.param(&format!("answer{}.weight", i + 1));
            dy = dx;
        }
        let d_seen = row(&back.seen);
        self.times_back(dy, weight, d_seen, batch, false)?;
        // Attention.
        let asked = pass.asked.len() - 1;
        let (queries, weights, d_queries) =
            (row(&pass.asked[asked]), row(&pass.weights), row(&back.asked[asked]));
        let (d_contents, d_places, d_scores) = (back.contents.all(), back.places.all(), back.scores.all());
        ops.scatter_answers(of, d_seen, [d_contents, d_places, d_queries])?;
        ops.product(Product {
            a: Operand::new(d_contents, of.channels).every(of.heads * of.channels),
            b: Operand::new(at.h, of.channels).transposed().every(of.cells * of.channels),
            c: Operand::new(d_scores, of.cells).every(of.heads * of.cells),
            sizes: Sizes { m: of.heads, n: of.cells, k: of.channels, batch },
            add: false,
        })?;
        ops.product(Product {
            a: Operand::new(d_places, of.basis),
            b: Operand::new(self.basis.all(), of.basis).transposed(),
            c: Operand::new(d_scores, of.cells),
            sizes: Sizes { m: batch * of.heads, n: of.cells, k: of.basis, batch: 1 },
            add: true,
        })?;
        ops.softmax_backward(d_scores, weights, of.cells, of.scale)?;
        ops.cells_backward(of, row(&back.vision), [d_scores, queries, weights, d_contents])?;
        let [contents, places] = [0, 1].map(|i| back.sums[i].all());
        ops.product(Product {
            a: Operand::new(d_scores, of.cells).every(of.heads * of.cells),
            b: Operand::new(at.h, of.channels).every(of.cells * of.channels),
            c: Operand::new(contents, of.channels).every(of.heads * of.channels),
            sizes: Sizes { m: of.heads, n: of.channels, k: of.cells, batch },
            add: false,
        })?;
        ops.product(Product {
            a: Operand::new(d_scores, of.cells),
            b: Operand::new(self.basis.all(), of.basis),
            c: Operand::new(places, of.basis),
            sizes: Sizes { m: batch * of.heads, n: of.basis, k: of.cells, batch: 1 },
            add: false,
        })?;
        ops.queries_backward(of, d_queries, contents, places)?;
        let mut dy = d_queries;
        for i in (0..asked).rev() {
            let name = if i + 1 < asked { format!("query{}.weight", i + 2) } else { "query.weight".into() };
            let dx = row(&back.asked[i]);
            self.times_back(dy, self.param(&name), dx, batch, false)?;
            ops.relu_backward(dx, row(&pass.asked[i]))?;
            dy = dx;
        }
        self.times_back(dy, self.param("query1.weight"), carry_h, batch, true)?;
        ops.keep(carry_h, carry_h, at.fresh)
    }

    /// The gradient of the `ConvLSTM`: its sums of gates in all steps, and the weight of its state.
    fn vision_back(&self, pass: &Pass, back: &Back) -> Result<(), DeviceError> {
        let (ops, of, config, batch) = (&self.ops, &self.attention, &self.config, pass.batch);
        let room = pass.room.all();
        let cells = of.cells * config.channels;
        let [carry_h, carry_c] = [0, 1].map(|i| back.carry[i].all());
        let weight = self.param("vision_state.weight");
        for step in (0..pass.steps).rev() {
            let at = Step::new(pass, step, cells, config.units);
            let d_h = part(&back.vision, step, pass.steps);
            if step + 1 < pass.steps {
                ops.add(d_h, carry_h)?;
            }
            ops.gates_backward(config.channels, at.sums, at.last_c, at.fresh, [at.tanh_c, d_h, carry_c])?;
            if step > 0 {
                let windows = &self.from_state;
                let out = at.sums.len() / batch;
                Network::parts(windows, batch, room, |first, count, room| {
                    let dy = at.sums.part(first * out, count * out);
                    self.times_back(dy, weight, room, count * windows.count(), false)?;
                    ops.pictures_of_windows(windows, room, carry_h.part(first * cells, count * cells))
                })?;
                ops.keep(carry_h, carry_h, at.fresh)?;
            }
        }
        let (slope, sums, rows) =
            (self.slope("vision_state.weight"), pass.vision[0].all(), pass.steps * batch);
        let fresh = pass.fresh.all_bytes();
        let step = 4 * cells * batch;
        let begin = Seen::Numbers(pass.begin.memory[0].all(), Some(fresh.part(0, batch)));
        self.convolve_back(&self.from_state, begin, [weight, slope, sums.part(0, step)], None, room)?;
        if pass.steps > 1 {
            let earlier = pass.vision[1].all().part(0, (rows - batch) * cells);
            let later = Seen::Numbers(earlier, Some(fresh.part(batch, rows - batch)));
            let sums = sums.part(step, sums.len() - step);
            self.convolve_back(&self.from_state, later, [weight, slope, sums], None, room)?;
        }
        Ok(())
    }
}

/// Step `step` of `steps` in an array.
fn part(memory: &Memory, step: usize, steps: usize) -> Numbers<'_> {
    let len = memory.all().len() / steps;
    memory.all().part(step * len, len)
}

/// Pictures of a convolution.
#[derive(Debug, Clone, Copy)]
enum Seen<'a> {
    Bytes(Bytes<'a>),
    /// Those that are fresh count as zeros.
    Numbers(Numbers<'a>, Option<Bytes<'a>>),
}

impl Seen<'_> {
    fn frames(self, windows: &Windows) -> usize {
        match self {
            Seen::Bytes(bytes) => bytes.len() / windows.pixels(),
            Seen::Numbers(numbers, _) => numbers.len() / windows.pixels(),
        }
    }
}

/// The states in a step.
struct Step<'a> {
    fresh: Bytes<'a>,
    last_h: Numbers<'a>,
    last_c: Numbers<'a>,
    last_core_h: Numbers<'a>,
    last_core_c: Numbers<'a>,
    sums: Numbers<'a>,
    h: Numbers<'a>,
    c: Numbers<'a>,
    tanh_c: Numbers<'a>,
}

impl<'a> Step<'a> {
    fn new(pass: &'a Pass, step: usize, cells: usize, units: usize) -> Step<'a> {
        debug_assert_eq!(pass.vision[1].all().len(), pass.steps * pass.batch * cells);
        debug_assert_eq!(pass.core[1].all().len(), pass.steps * pass.batch * units);
        let row = |memory: &'a Memory, step: usize| part(memory, step, pass.steps);
        let last = |memory: &'a Memory, state: usize| match step {
            0 => pass.begin.memory[state].all(),
            _ => row(memory, step - 1),
        };
        Step {
            fresh: pass.fresh.all_bytes().part(step * pass.batch, pass.batch),
            last_h: last(&pass.vision[1], 0),
            last_c: last(&pass.vision[2], 1),
            last_core_h: last(&pass.core[1], 2),
            last_core_c: last(&pass.core[2], 3),
            sums: row(&pass.vision[0], step),
            h: row(&pass.vision[1], step),
            c: row(&pass.vision[2], step),
            tanh_c: row(&pass.vision[3], step),
        }
    }
}

impl Pass {
    /// What the last steps were, `[steps, batch, 1 + actions]`, and which steps begin an episode, `[steps, batch]`.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn tell(&self, ops: &Ops, told: &[f32], fresh: &[u8]) -> Result<(), DeviceError> {
        ops.write(self.told.all(), told)?;
        ops.write_bytes(self.fresh.all_bytes(), fresh)
    }

    /// Sets the states before the first step to those of sequences `first` and on.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Panics
    /// When there are not as many.
    pub fn begin_at(&self, ops: &Ops, states: &States, first: usize) -> Result<(), DeviceError> {
        for (to, from) in self.begin.memory.iter().zip(&states.memory) {
            let len = from.all().len() / states.batch;
            ops.copy(to.all(), from.all().part(first * len, self.batch * len))?;
        }
        Ok(())
    }

    /// Copies the states before the first step.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Panics
    /// When `states` are of another batch.
    pub fn copy_begin(&self, ops: &Ops, states: &States) -> Result<(), DeviceError> {
        for (to, from) in states.memory.iter().zip(&self.begin.memory) {
            ops.copy(to.all(), from.all())?;
        }
        Ok(())
    }

    /// Copies the states after the last step.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Panics
    /// When `states` are of another batch.
    pub fn end(&self, ops: &Ops, states: &States) -> Result<(), DeviceError> {
        let last = [&self.vision[1], &self.vision[2], &self.core[1], &self.core[2]];
        for (to, from) in states.memory.iter().zip(last) {
            ops.copy(to.all(), part(from, self.steps - 1, self.steps))?;
        }
        Ok(())
    }

    /// Logits `[steps, batch, actions]` and values `[steps, batch]`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn outputs(&self, ops: &Ops) -> Result<(Vec<f32>, Vec<f32>), DeviceError> {
        Ok((ops.read(self.logits.all())?, ops.read(self.values.all())?))
    }

    /// `[steps, batch, heads, cells]`: how much each head attends to each cell.
    ///
    /// # Errors
    /// What the driver says.
    pub fn weights(&self, ops: &Ops) -> Result<Vec<f32>, DeviceError> {
        ops.read(self.weights.all())
    }
}
