//! The controller: an LSTM and a linear layer with tanh on top.

use foveate_kernels::Level;
use foveate_kernels::dense::{self, Dense};
use foveate_kernels::lstm::{CellState, CellWeights, LstmCell};
use foveate_kernels::project::Linear;

/// What the controller remembers: h and c.
pub type LstmState = CellState;

/// An LSTM of one layer; its output, through a linear layer and tanh, is the raw action in −1 ..= 1.
#[derive(Debug, Clone)]
pub struct LstmController {
    cell: LstmCell,
    output: Dense,
}

impl LstmController {
    /// A controller of zeros.
    pub fn new(inputs: usize, hidden: usize, actions: usize) -> Self {
        LstmController { cell: LstmCell::new(inputs, hidden), output: Dense::new(hidden, actions) }
    }

    /// Takes new weights.
    pub(crate) fn set(&mut self, cell: CellWeights<'_>, output: Linear<'_>) {
        self.cell.set(cell);
        self.output.set(output);
    }

    /// One step on `inputs`; writes the raw action.
    pub(crate) fn step(&self, level: Level, inputs: &[f32], state: &mut LstmState, raw: &mut [f32]) {
        self.cell.step(level, inputs, state);
        self.output.apply(level, state.h(), raw);
        dense::tanh(level, raw);
    }
}
