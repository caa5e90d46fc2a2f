//! All operators, with what their severities mean.

use foveate_core::{Descriptor, EnvError, Registry};

use super::background::{Background, Show};
use super::operator::Operator;
use super::{action, blur, camera, color, dropout, noise, occlude, timing};

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
}

/// A parameter of an operator besides its severity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knob {
    /// What users type.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its default; `auto` leaves it to the operator.
    pub default: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number in `low..=high`.
    Number {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
    },
    /// A colour as `#rrggbb`.
    Color,
    /// A folder of PNG files.
    Folder,
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

/// The operator called `name`.
pub(super) fn find(name: &str) -> Result<&'static ShiftDescriptor, EnvError> {
    SHIFTS.get(name).ok_or_else(|| EnvError::UnknownOption {
        env: "Foveate".into(),
        what: "shift",
        given: name.into(),
        known: SHIFTS.names().join(", "),
    })
}

const fn share(name: &'static str, default: &'static str, about: &'static str) -> Knob {
    Knob { name, kind: Kind::Number { low: 0.0, high: 1.0 }, default, about }
}

const BEHIND: [Knob; 2] = [
    Knob {
        name: "key",
        kind: Kind::Color,
        default: "auto",
        about: "colour of the background as #rrggbb; auto takes the commonest of the picture at hand",
    },
    Knob {
        name: "tolerance",
        kind: Kind::Number { low: 0.0, high: 255.0 },
        default: "40",
        about: "how far a channel may be from the key, 0 to 255",
    },
];

const OPACITY: &str = "opacity";
const OPACITIES: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

/// Every operator, in the order of `foveate list`.
pub static SHIFTS: Registry<ShiftDescriptor> = Registry::new(
    "shift",
    &[
        &ShiftDescriptor {
            name: "brightness",
            about: "everything lighter",
            target: Target::Picture,
            unit: "share of full brightness added",
            amounts: [0.1, 0.2, 0.3, 0.4, 0.5],
            knobs: &[],
            make: |_, _| Box::new(color::Brightness),
        },
        &ShiftDescriptor {
            name: "darkness",
            about: "everything darker",
            target: Target::Picture,
            unit: "share of the light taken away",
            amounts: [0.2, 0.4, 0.55, 0.7, 0.8],
            knobs: &[],
            make: |_, _| Box::new(color::Darkness),
        },
        &ShiftDescriptor {
            name: "contrast",
            about: "every channel closer to its mean over the picture",
            target: Target::Picture,
            unit: "share of the way to the mean",
            amounts: [0.3, 0.5, 0.65, 0.8, 0.9],
            knobs: &[],
            make: |_, _| Box::new(color::Contrast),
        },
        &ShiftDescriptor {
            name: "hue",
            about: "colours turned about the grey axis",
            target: Target::Picture,
            unit: "degrees",
            amounts: [18.0, 36.0, 72.0, 120.0, 180.0],
            knobs: &[],
            make: |_, _| Box::new(color::Hue),
        },
        &ShiftDescriptor {
            name: "blur",
            about: "Gaussian blur",
            target: Target::Picture,
            unit: "standard deviation in pixels of a picture 96 wide",
            amounts: [0.5, 0.8, 1.2, 1.8, 2.6],
            knobs: &[],
            make: |width, height| Box::new(blur::Blur::new(width, height)),
        },
        &ShiftDescriptor {
            name: "noise",
            about: "noise on every pixel and channel, new in every frame",
            target: Target::Picture,
            unit: "standard deviation as a share of full brightness",
            amounts: [0.04, 0.08, 0.12, 0.18, 0.26],
            knobs: &[],
            make: |_, _| Box::new(noise::Noise),
        },
        &ShiftDescriptor {
            name: "bar",
            about: "a bar before the camera",
            target: Target::Picture,
            unit: "width as a share of the picture's, unless width says otherwise",
            amounts: [0.04, 0.08, 0.12, 0.18, 0.25],
            knobs: &[
                share("x", "0.25", "centre from the left, share of the picture, 0 to 1"),
                share("y", "0.5", "centre from the top, share of the picture, 0 to 1"),
                share("width", "auto", "share of the picture, 0 to 1; auto leaves it to the severity"),
                share("height", "1", "share of the picture, 0 to 1"),
                Knob { name: "color", kind: Kind::Color, default: "#000000", about: "#rrggbb" },
            ],
            make: |_, _| Box::new(occlude::Bar),
        },
        &ShiftDescriptor {
            name: "blob",
            about: "a disc before the camera",
            target: Target::Picture,
            unit: "diameter as a share of the picture's width, unless size says otherwise",
            amounts: [0.08, 0.14, 0.2, 0.28, 0.36],
            knobs: &[
                share("x", "0.7", "centre from the left, share of the picture, 0 to 1"),
                share("y", "0.4", "centre from the top, share of the picture, 0 to 1"),
                share(
                    "size",
                    "auto",
                    "diameter, share of the picture's width, 0 to 1; auto leaves it to the severity",
                ),
                Knob { name: "color", kind: Kind::Color, default: "#cc0000", about: "#rrggbb" },
            ],
            make: |_, _| Box::new(occlude::Blob),
        },
        &ShiftDescriptor {
            name: "dropout",
            about: "square patches lost, others in every frame",
            target: Target::Picture,
            unit: "probability of each patch",
            amounts: [0.03, 0.08, 0.15, 0.25, 0.4],
            knobs: &[
                Knob {
                    name: "patch",
                    kind: Kind::Number { low: 1.0, high: 96.0 },
                    default: "8",
                    about: "side in pixels of a picture 96 wide, 1 to 96",
                },
                Knob { name: "color", kind: Kind::Color, default: "#000000", about: "#rrggbb" },
            ],
            make: |_, _| Box::new(dropout::Dropout),
        },
        &ShiftDescriptor {
            name: "background-still",
            about: "a picture of soft spots behind the world, one per episode",
            target: Target::Picture,
            unit: OPACITY,
            amounts: OPACITIES,
            knobs: &BEHIND,
            make: |width, height| Box::new(Background::new(Show::Still, width, height)),
        },
        &ShiftDescriptor {
            name: "background-noise",
            about: "random pixels behind the world, new in every frame",
            target: Target::Picture,
            unit: OPACITY,
            amounts: OPACITIES,
            knobs: &BEHIND,
            make: |width, height| Box::new(Background::new(Show::Static, width, height)),
        },
        &ShiftDescriptor {
            name: "background-video",
            about: "drifting spots, or the pictures of a folder, behind the world",
            target: Target::Picture,
            unit: OPACITY,
            amounts: OPACITIES,
            knobs: &[
                BEHIND[0],
                BEHIND[1],
                Knob {
                    name: "folder",
                    kind: Kind::Folder,
                    default: "auto",
                    about: "PNG files in the order of their numbers, over and over; auto draws drifting spots",
                },
            ],
            make: |width, height| Box::new(Background::new(Show::Film, width, height)),
        },
        &ShiftDescriptor {
            name: "shake",
            about: "the picture displaced at random in every frame",
            target: Target::Picture,
            unit: "largest displacement in pixels of a picture 96 wide, each way",
            amounts: [1.0, 2.0, 3.0, 5.0, 8.0],
            knobs: &[],
            make: |width, height| Box::new(camera::Shake::new(width, height)),
        },
        &ShiftDescriptor {
            name: "delay",
            about: "every picture comes late",
            target: Target::Picture,
            unit: "steps",
            amounts: [1.0, 2.0, 3.0, 5.0, 8.0],
            knobs: &[],
            make: |width, height| Box::new(timing::Delay::new(width, height)),
        },
        &ShiftDescriptor {
            name: "drop",
            about: "pictures that never arrive: the last one stays",
            target: Target::Picture,
            unit: "probability of each picture",
            amounts: [0.1, 0.25, 0.4, 0.6, 0.8],
            knobs: &[],
            make: |width, height| Box::new(timing::Lost::new(width, height)),
        },
        &ShiftDescriptor {
            name: "sticky",
            about: "the action before is done again",
            target: Target::Action,
            unit: "probability in each step",
            amounts: [0.1, 0.25, 0.4, 0.6, 0.8],
            knobs: &[],
            make: |_, _| Box::new(action::Sticky::new()),
        },
        &ShiftDescriptor {
            name: "unsteady",
            about: "noise on the action, within its bounds; of choices, any other one",
            target: Target::Action,
            unit: "standard deviation as a share of half the range; of choices, probability",
            amounts: [0.1, 0.2, 0.3, 0.45, 0.6],
            knobs: &[],
            make: |_, _| Box::new(action::Unsteady),
        },
    ],
);
