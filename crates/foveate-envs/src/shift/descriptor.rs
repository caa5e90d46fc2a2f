//! What is said of an operator. The list of all is the [catalogue](super::SHIFTS).

use foveate_core::Descriptor;

use super::operator::Operator;

/// The description of an operator.
pub struct ShiftDescriptor {
    /// What users type.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What it changes.
    pub target: Target,
    /// The unit of the amounts.
    pub unit: &'static str,
    /// The amount at severity 1, 2, 3, 4 and 5, growing; 0 is nothing.
    pub amounts: [f64; 5],
    /// Its parameters.
    pub knobs: &'static [Knob],
    /// Makes one for pictures of this width and height.
    pub make: fn(usize, usize) -> Box<dyn Operator>,
}

/// The target of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The observation.
    Picture,
    /// The action.
    Action,
    /// The order and the number of the sensors: numbers of a vector, or patches of a picture.
    Senses(Senses),
}

/// The observations that a shift of senses fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senses {
    /// Vectors and pictures.
    All,
    /// Vectors alone.
    Numbers,
}

impl Target {
    /// The name in lists: `picture`, `action` or `senses`.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Picture => "picture",
            Target::Action => "action",
            Target::Senses(_) => "senses",
        }
    }
}

/// A parameter of an operator besides its severity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knob {
    /// What users type.
    pub name: &'static str,
    /// What it takes.
    pub kind: KnobKind,
    /// Its default; `auto` leaves it to the operator.
    pub default: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnobKind {
    /// A number in `low..=high`.
    Number {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
    },
    /// A colour as `#rrggbb`.
    Color,
    /// A folder of PNG or JPEG files, or a GIF.
    Folder,
    /// A PNG or JPEG file.
    File,
}

impl ShiftDescriptor {
    /// The amount at `severity`, 0 to 5, linear between whole severities.
    pub fn amount(&self, severity: f64) -> f64 {
        let below = severity.floor().clamp(0.0, 5.0) as usize;
        let at = |level: usize| if level == 0 { 0.0 } else { self.amounts[level.min(5) - 1] };
        at(below) + (at(below + 1) - at(below)) * severity.fract()
    }
}

/// Two are the same when they have the same name.
impl PartialEq for ShiftDescriptor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for ShiftDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShiftDescriptor({})", self.name)
    }
}

impl Descriptor for ShiftDescriptor {
    fn name(&self) -> &'static str {
        self.name
    }
}
