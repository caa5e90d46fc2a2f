//! The gradient of a head of convolutions and layers, by the layers of `foveate-learn`.
//!
//! The agent's tensors are those of `PyTorch`: filters are `[filters, channels, rows, columns]`, and the first layer behind
//! the convolutions reads one channel after the other. The network here takes the codes as they come,
//! `[rows, columns, message]`, with the channels last. Therefore its parameters are those of the agent in another order.

use std::sync::Arc;

use foveate_core::PolicyError;
use foveate_kernels::Level;
use foveate_kernels::elementwise::Function;
use foveate_learn::loss::{cross_entropy, squared_error};
use foveate_learn::{Activations, Builder, Conv, Linear, Network, Node};

use super::heads::{HeadConfig, Output};
use crate::config::{ConvolutionLayer, bad};
use crate::params::Params;

/// Most steps that go through the network together, and most numbers of their activations.
const TOGETHER: usize = 32;
const ROOM: usize = 1 << 22;

/// A head of convolutions and layers that learns; it contains its scratch space.
#[derive(Debug, Clone)]
pub(super) struct LayersLearner {
    net: Arc<Network>,
    codes: Node,
    output: Node,
    kind: Output,
    /// Numbers of the codes, and of the output.
    inputs: usize,
    actions: usize,
    /// `[n_params of the network]`: where they lie in the agent's flat vector.
    places: Arc<[u32]>,
    /// The network's parameters.
    params: Vec<f32>,
    /// The gradient of a piece with respect to them.
    own: Vec<f32>,
    /// Steps that go through the network together.
    together: usize,
    acts: Activations,
}

impl LayersLearner {
    /// The learner of `head` for a latent picture of `codes` rows and columns of `message` channels, whose tensors are among
    /// `params`; `None` for heads that are no layers.
    ///
    /// # Errors
    /// When a layer is refused.
    pub(super) fn new(
        head: &HeadConfig,
        [rows, columns]: [usize; 2],
        message: usize,
        params: &Params,
        actions: usize,
    ) -> Result<Option<Self>, PolicyError> {
        let Some((convolutions, hidden, kind)) = head.layers() else { return Ok(None) };
        let inputs = rows * columns * message;
        let mut numbers = inputs;
        let mut net = Builder::default();
        let codes = net.state("codes", [rows, columns, message]);
        let mut x = codes;
        if !convolutions.is_empty() {
            x = net.map(Function::Relu, x);
        }
        for (i, &ConvolutionLayer { filters, size, stride }) in convolutions.iter().enumerate() {
            x = net.layer(&format!("conv{i}"), Conv::new(filters, size).with_stride(stride), [x]);
            x = net.map(Function::Relu, x);
            numbers = numbers.saturating_add(net.shape(x).iter().product());
        }
        let last = net.shape(x).to_vec();
        x = net.reshape(x, [last.iter().product::<usize>()]);
        for (i, &units) in hidden.iter().enumerate() {
            x = net.layer(&format!("hidden{i}"), Linear::new(units), [x]);
            x = net.map(Function::Relu, x);
        }
        x = net.layer("output", Linear::new(actions), [x]);
        if kind == Output::Tanh {
            x = net.map(Function::Tanh, x);
        }
        let net = net.build(&[x]).or_else(|error| bad(format!("head: {error}")))?;

        // The first layer reads one channel after the other only if there are convolutions before it.
        let picture = if convolutions.is_empty() { vec![1, 1, last.iter().product()] } else { last };
        let first = if hidden.is_empty() { "output.weight" } else { "hidden0.weight" };
        let mut places = Vec::with_capacity(net.params());
        for tensor in net.tensors() {
            let start = params.place(&tensor.name).start;
            let mut channels_last = |filters: usize, [rows, columns, channels]: [usize; 3]| {
                for filter in 0..filters {
                    for pixel in 0..rows * columns {
                        let of = |channel: usize| (filter * channels + channel) * rows * columns + pixel;
                        places.extend((0..channels).map(|channel| (start + of(channel)) as u32));
                    }
                }
            };
            match tensor.shape[..] {
                [filters, rows, columns, channels] => channels_last(filters, [rows, columns, channels]),
                [outputs, _] if tensor.name == first => {
                    channels_last(outputs, [picture[0], picture[1], picture[2]]);
                }
                _ => places.extend((start..start + tensor.len()).map(|place| place as u32)),
            }
        }
        numbers = hidden.iter().fold(numbers + actions, |sum, &units| sum.saturating_add(units));
        let together = (ROOM / numbers).clamp(1, TOGETHER);
        Ok(Some(LayersLearner {
            codes,
            output: x,
            kind,
            inputs,
            actions,
            places: places.into(),
            params: vec![0.0; net.params()],
            own: vec![0.0; net.params()],
            together,
            acts: net.activations(together),
            net: Arc::new(net),
        }))
    }

    /// Takes its weights from the agent's.
    pub(super) fn set(&mut self, flat: &[f32]) {
        for (to, &place) in self.params.iter_mut().zip(&*self.places) {
            *to = flat[place as usize];
        }
    }

    /// Adds the gradient of the error of all steps to `gradient`, `[n_params of the agent]`, writes that with respect to their
    /// codes `x` to `dx`, `[steps, codes, message]` both, and returns the error: the cross entropy of `choices`, or the squared
    /// error of `wanted`, `[steps, actions]`; the other one is empty.
    pub(super) fn study(
        &mut self,
        level: Level,
        x: &[f32],
        choices: &[usize],
        wanted: &[f32],
        dx: &mut [f32],
        gradient: &mut [f32],
    ) -> f64 {
        let LayersLearner { net, codes, output, kind, places, params, own, acts, .. } = self;
        let (inputs, actions, together) = (self.inputs, self.actions, self.together);
        own.fill(0.0);
        let mut error = 0.0;
        let pieces = x.chunks(together * inputs).zip(dx.chunks_mut(together * inputs));
        for (number, (x, dx)) in pieces.enumerate() {
            let (first, steps) = (number * together, x.len() / inputs);
            net.forward(level, &*params, &[x], steps, acts);
            acts.clear_gradients();
            let (y, dy) = acts.output_and_gradient(*output);
            error += match kind {
                Output::Scores => cross_entropy(level, y, &choices[first..first + steps], 1.0, dy),
                Output::Tanh => {
                    squared_error(y, &wanted[first * actions..(first + steps) * actions], 1.0, dy)
                }
            };
            net.backward(level, params, acts, own);
            dx.copy_from_slice(acts.gradient(*codes));
        }
        for (&place, &own) in places.iter().zip(&*own) {
            gradient[place as usize] += own;
        }
        error
    }
}
