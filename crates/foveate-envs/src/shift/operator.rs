//! The interface of a shift. To add one, implement [`Operator`] and register a [`ShiftDescriptor`](super::ShiftDescriptor).

use std::sync::Arc;

use foveate_core::{Action, ActionBuf, ActionSpace, Image, ImageBuf, Seed};

pub use super::sensors::{Sensor, Sensors};

/// Changes observations or actions. It may keep state, but does not allocate after it was made.
pub trait Operator: BoxedClone + Send {
    /// An episode begins, and this is its first picture; 0 pixels wide and high in a world without one.
    fn begin(&mut self, _first: Image<'_>, _dice: Seed) {}

    /// Gets every picture before [`Operator::look`] changes it, also while the shift is off (`now.amount` is then 0).
    fn watch(&mut self, _rgb: &[u8], _now: &Moment<'_>) {}

    /// Changes the picture; called while the shift is on. May be called again for the same step.
    fn look(&mut self, _picture: &mut Picture<'_>, _now: &Moment<'_>) {}

    /// Changes the action, which is of this space; called while the shift is on.
    fn act(&mut self, _action: &mut ActionBuf, _space: &ActionSpace, _now: &Moment<'_>) {}

    /// Moves, adds and removes sensors; called while the shift is on. May be called again for the same step.
    fn arrange(&mut self, _sensors: &mut Sensors, _now: &Moment<'_>) {}

    /// Returns whether things are seen in other places of the picture than where they are in the world.
    fn moves_things(&self) -> bool {
        false
    }

    /// Draws a new order of the sensors from now on; whether it can.
    fn shuffle_now(&mut self) -> bool {
        false
    }

    /// Gets every action that is passed to the world.
    fn acted(&mut self, _action: Action<'_>) {}
}

/// A copy behind a box, for everything that can be cloned.
pub trait BoxedClone {
    /// A copy that behaves bit for bit like the original.
    fn boxed_clone(&self) -> Box<dyn Operator>;
}

impl<T: Operator + Clone + 'static> BoxedClone for T {
    /// A copy that behaves bit for bit like the original.
    fn boxed_clone(&self) -> Box<dyn Operator> {
        Box::new(self.clone())
    }
}

/// The step, and the severity in it.
pub struct Moment<'a> {
    /// The severity's amount, in the operator's unit; above 0 while the shift is on.
    pub amount: f64,
    /// 0 is the world just reset.
    pub step: u64,
    /// Of this operator in this step.
    pub dice: Seed,
    /// One for each of the operator's knobs.
    pub settings: &'a [KnobValue],
}

impl Moment<'_> {
    /// The number that knob `index` is set to; `otherwise` when it is left to the operator.
    pub fn number(&self, index: usize, otherwise: f64) -> f64 {
        match self.settings.get(index) {
            Some(KnobValue::Number(number)) => *number,
            _ => otherwise,
        }
    }

    /// The picture that knob `index` is set to, if it is.
    pub fn picture(&self, index: usize) -> Option<&Arc<Vec<ImageBuf>>> {
        match self.settings.get(index) {
            Some(KnobValue::File(_, picture)) => Some(picture),
            _ => None,
        }
    }

    /// The colour that knob `index` is set to, if it is.
    pub fn color(&self, index: usize) -> Option<[u8; 3]> {
        match self.settings.get(index) {
            Some(KnobValue::Color(rgb)) => Some(*rgb),
            _ => None,
        }
    }
}

/// A picture to be changed.
pub struct Picture<'a> {
    /// Pixels from left to right.
    pub width: usize,
    /// Pixels from top to bottom.
    pub height: usize,
    /// `[height, width, 3]`
    pub rgb: &'a mut [u8],
}

impl Picture<'_> {
    /// Pixels of this picture for one of a picture 96 pixels wide, which the tables of amounts are made for.
    pub fn scale(&self) -> f64 {
        self.width as f64 / 96.0
    }

    /// Sends every byte of channel `c` to `tables[c]`.
    pub fn map(&mut self, tables: &[[u8; 256]; 3]) {
        for pixel in self.rgb.chunks_exact_mut(3) {
            for (byte, table) in pixel.iter_mut().zip(tables) {
                *byte = table[usize::from(*byte)];
            }
        }
    }
}

/// The value of a parameter of a shift.
#[derive(Debug, Clone, PartialEq)]
pub enum KnobValue {
    /// The operator decides.
    Auto,
    /// A number.
    Number(f64),
    /// A colour.
    Color([u8; 3]),
    /// A folder of pictures, and the pictures once they are loaded.
    Folder(String, Arc<Vec<ImageBuf>>),
    /// A picture file, and its one picture once it is loaded.
    File(String, Arc<Vec<ImageBuf>>),
}
