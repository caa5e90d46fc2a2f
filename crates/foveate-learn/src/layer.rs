//! The contract of a layer.

use std::fmt;

use foveate_core::{SparseRows, TensorShape};
use foveate_kernels::Level;
use foveate_kernels::conv_gradient::ConvGradient;
use foveate_kernels::gemm::Gemm;
use foveate_kernels::rows::{self, Turned};

/// Most inputs that a layer may have.
pub const MAX_INPUTS: usize = 4;

/// Most rows that are multiplied one by one with a prepared weight.
pub(crate) const FEW: usize = 8;

/// A differentiable function of a few tensors, with parameters.
///
/// A layer is a description without state. All numbers lie in the buffers of an [`Activations`](crate::Activations);
/// every tensor begins with the batch, so an input of shape `[n, d]` is a slice of `batch * n * d` numbers, row-major.
///
/// To add a layer, implement this trait in a file of its own and add `mod` and `pub use` lines; the tests of the file
/// call [`crate::check::gradient`].
pub trait Layer: fmt::Debug + Send + Sync {
    /// The shape of the output for inputs of these shapes, without the batch.
    ///
    /// # Errors
    /// A sentence that says which shape does not suit, and what would.
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String>;

    /// Name and shape of every parameter tensor for inputs of these shapes, which [`Layer::output`] accepted.
    fn tensors(&self, inputs: &[&[usize]]) -> Vec<TensorShape> {
        let _ = inputs;
        vec![]
    }

    /// Numbers for each sample that [`Layer::forward`] keeps for [`Layer::backward`].
    fn kept(&self, inputs: &[&[usize]]) -> usize {
        let _ = inputs;
        0
    }

    /// Lays out the weight for products of few samples, see [`Network::prepare`](crate::Network::prepare); by default nothing.
    fn turn(&self, level: Level, shapes: &[&[usize]], params: &[f32], turned: &mut Turned) {
        let _ = (level, shapes, params, turned);
    }

    /// Numbers of a row of the only input that is multiplied with a matrix, if zeros in it need not be read; 0 otherwise.
    fn terms(&self, shapes: &[&[usize]]) -> usize {
        let _ = shapes;
        0
    }

    /// Computes the output.
    fn forward(&self, forward: Forward<'_>);

    /// Adds the gradient with respect to inputs and parameters to theirs.
    fn backward(&self, backward: Backward<'_>);

    /// Returns whether [`Layer::backward`] reads the output. If not, an activation may overwrite it.
    fn reads_output(&self) -> bool {
        false
    }

    /// The same function in double precision, in the plainest form, for tests: output of one sample.
    fn exact(&self, shapes: &[&[usize]], params: &[f64], inputs: &[&[f64]]) -> Vec<f64>;
}

/// What [`Layer::forward`] gets.
pub struct Forward<'a> {
    /// The instruction set.
    pub level: Level,
    /// Number of samples.
    pub batch: usize,
    /// Shapes of the inputs, without the batch.
    pub shapes: &'a [&'a [usize]],
    /// The parameters, in the order of [`Layer::tensors`].
    pub params: &'a [f32],
    /// What [`Layer::turn`] made of them; `None` if the network was not prepared.
    pub turned: Option<&'a Turned>,
    /// The inputs, each with the batch as its first axis. If `rows` holds the first one, this is of any content.
    pub inputs: &'a [&'a [f32]],
    /// The first input without its zeros, if [`Layer::terms`] asks for it and that pays.
    pub rows: Option<&'a SparseRows>,
    /// The output, to be overwritten.
    pub output: &'a mut [f32],
    /// `[batch, kept]`
    pub kept: &'a mut [f32],
    /// Scratch space.
    pub work: &'a mut Work,
}

/// What [`Layer::backward`] gets.
pub struct Backward<'a> {
    /// The instruction set.
    pub level: Level,
    /// Number of samples.
    pub batch: usize,
    /// Shapes of the inputs, without the batch.
    pub shapes: &'a [&'a [usize]],
    /// The parameters, in the order of [`Layer::tensors`].
    pub params: &'a [f32],
    /// The inputs, each with the batch as its first axis. If `rows` holds the first one, this is of any content.
    pub inputs: &'a [&'a [f32]],
    /// As in [`Forward`].
    pub rows: Option<&'a SparseRows>,
    /// The output; meaningless unless [`Layer::reads_output`].
    pub output: &'a [f32],
    /// `[batch, kept]`, as [`Layer::forward`] left it.
    pub kept: &'a [f32],
    /// The gradient with respect to the output; may be overwritten.
    pub d_output: &'a mut [f32],
    /// For each input the gradient to add to, or `None` if nobody needs it.
    pub d_inputs: [Option<&'a mut [f32]>; MAX_INPUTS],
    /// The gradient with respect to the parameters, to add to.
    pub d_params: &'a mut [f32],
    /// Scratch space.
    pub work: &'a mut Work,
}

/// Scratch space that layers share; it grows to the largest need.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Matrix products.
    pub gemm: Gemm,
    conv_gradient: ConvGradient,
    rooms: [Vec<f32>; 2],
    rows: SparseRows,
    turned: Turned,
}

impl Work {
    /// All rows of `input`, `[…, terms]`.
    pub(crate) fn rows(&mut self, level: Level, input: &[f32], terms: usize) -> &SparseRows {
        self.rows.clear(terms);
        rows::append(level, &mut self.rows, input);
        &self.rows
    }

    /// A matrix of any content.
    pub(crate) const fn turned(&mut self) -> &mut Turned {
        &mut self.turned
    }

    /// Scratch space for matrix products, and `len` numbers of any value.
    pub fn room(&mut self, len: usize) -> (&mut Gemm, &mut [f32]) {
        let (gemm, [room, _]) = self.rooms([len, 0]);
        (gemm, room)
    }

    /// Scratch space for gradients of convolutions, with zeros and without, and `len` numbers of any value.
    pub(crate) fn conv_room(&mut self, len: usize) -> (&mut Gemm, &mut ConvGradient, &mut [f32]) {
        let Work { gemm, conv_gradient, rooms: [room, _], .. } = self;
        if room.len() < len {
            room.resize(len, 0.0);
        }
        (gemm, conv_gradient, &mut room[..len])
    }

    /// Scratch space for matrix products, and two times numbers of any value.
    pub fn rooms(&mut self, lens: [usize; 2]) -> (&mut Gemm, [&mut [f32]; 2]) {
        let Work { gemm, rooms, .. } = self;
        for (room, len) in rooms.iter_mut().zip(lens) {
            if room.len() < len {
                room.resize(len, 0.0);
            }
        }
        let [first, second] = rooms;
        (gemm, [&mut first[..lens[0]], &mut second[..lens[1]]])
    }
}

/// The number of numbers in a tensor of this shape.
pub(crate) fn len_of(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// The only input's shape.
pub(crate) fn one<'a>(inputs: &[&'a [usize]]) -> Result<&'a [usize], String> {
    match inputs {
        [only] => Ok(only),
        _ => Err(format!("it takes one input, {} were given", inputs.len())),
    }
}

/// Shape of a parameter tensor.
pub(crate) fn tensor(name: &str, shape: impl Into<Vec<usize>>) -> TensorShape {
    TensorShape { name: name.into(), shape: shape.into() }
}
