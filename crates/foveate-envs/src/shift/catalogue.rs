//! All operators, with what their severities mean.

use foveate_core::{EnvError, Registry};

use super::background::{Background, Show};
use super::background_image::BackgroundImage;
use super::descriptor::{Knob, KnobKind, Senses, ShiftDescriptor, Target};
use super::{action, blur, camera, color, dropout, noise, occlude, senses, timing};

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
    Knob { name, kind: KnobKind::Number { low: 0.0, high: 1.0 }, default, about }
}

const BEHIND: [Knob; 2] = [
    Knob {
        name: "key",
        kind: KnobKind::Color,
        default: "auto",
        about: "colour of the background as #rrggbb; auto takes the commonest of the picture at hand",
    },
    Knob {
        name: "tolerance",
        kind: KnobKind::Number { low: 0.0, high: 255.0 },
        default: "40",
        about: "how far a channel may be from the key, 0 to 255",
    },
];

const PATCH: Knob = Knob {
    name: "patch",
    kind: KnobKind::Number { low: 1.0, high: 1024.0 },
    default: "6",
    about: "side of a patch in pixels, of pictures; it must divide their width and height",
};

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
            name: "colors",
            about: "each channel scaled and made lighter or darker at random, otherwise in every episode",
            target: Target::Picture,
            unit: "largest change of the scale, and of the light as a share of half of full brightness",
            amounts: [0.1, 0.2, 0.4, 0.6, 0.8],
            knobs: &[],
            make: |_, _| Box::new(color::Colors::new()),
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
                Knob { name: "color", kind: KnobKind::Color, default: "#000000", about: "#rrggbb" },
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
                Knob { name: "color", kind: KnobKind::Color, default: "#cc0000", about: "#rrggbb" },
            ],
            make: |_, _| Box::new(occlude::Blob),
        },
        &ShiftDescriptor {
            name: "stickers",
            about: "four rectangles with random patterns of two colours, others in every episode",
            target: Target::Picture,
            unit: "largest width as a share of the picture's; they are at most half as high",
            amounts: [0.1, 0.2, 0.35, 0.5, 0.7],
            knobs: &[],
            make: |_, _| Box::new(occlude::Stickers::default()),
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
                    kind: KnobKind::Number { low: 1.0, high: 96.0 },
                    default: "8",
                    about: "side in pixels of a picture 96 wide, 1 to 96",
                },
                Knob { name: "color", kind: KnobKind::Color, default: "#000000", about: "#rrggbb" },
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
                    kind: KnobKind::Folder,
                    default: "auto",
                    about: "PNG or JPEG files in the order of their numbers, or a GIF, over and over; auto draws drifting spots",
                },
            ],
            make: |width, height| Box::new(Background::new(Show::Film, width, height)),
        },
        &ShiftDescriptor {
            name: "background-image",
            about: "a picture file behind the world, fixed to the screen",
            target: Target::Picture,
            unit: OPACITY,
            amounts: OPACITIES,
            knobs: &[
                Knob {
                    name: "key",
                    kind: KnobKind::Color,
                    default: "auto",
                    about: "colour of the background as #rrggbb; auto takes the two colours of CarRacing's classic grass",
                },
                Knob {
                    name: "tolerance",
                    kind: KnobKind::Number { low: 0.0, high: 255.0 },
                    default: "0",
                    about: "how far a channel may be from the key, 0 to 255",
                },
                Knob {
                    name: "file",
                    kind: KnobKind::File,
                    default: "",
                    about: "a PNG or JPEG file, as in background-image:5:file=sky.jpg; stretched to the picture's size",
                },
            ],
            make: |width, height| Box::new(BackgroundImage::new(width, height)),
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
        &ShiftDescriptor {
            name: "shuffle",
            about: "sensors (numbers, or patches of a picture) in random order, another in every episode",
            target: Target::Senses(Senses::All),
            unit: "share of the sensors that change places",
            amounts: OPACITIES,
            knobs: &[
                Knob {
                    name: "every",
                    kind: KnobKind::Number { low: 0.0, high: 1e9 },
                    default: "0",
                    about: "steps until they are shuffled again; 0 keeps the order for the episode",
                },
                PATCH,
            ],
            make: |_, _| Box::new(senses::Shuffle::new()),
        },
        &ShiftDescriptor {
            name: "noise-channels",
            about: "more numbers, of normal noise, new in every step",
            target: Target::Senses(Senses::Numbers),
            unit: "numbers added",
            amounts: [1.0, 2.0, 5.0, 10.0, 20.0],
            knobs: &[Knob {
                name: "std",
                kind: KnobKind::Number { low: 0.0, high: 1e6 },
                default: "0.1",
                about: "standard deviation",
            }],
            make: |_, _| Box::new(senses::NoiseChannels),
        },
        &ShiftDescriptor {
            name: "doubled",
            about: "all numbers again, once or several times",
            target: Target::Senses(Senses::Numbers),
            unit: "copies added",
            amounts: [1.0, 2.0, 3.0, 4.0, 5.0],
            knobs: &[],
            make: |_, _| Box::new(senses::Doubled),
        },
        &ShiftDescriptor {
            name: "missing",
            about: "sensors that are not there: numbers left out, patches of a picture black; others in every episode",
            target: Target::Senses(Senses::All),
            unit: "share of the sensors, unless share says otherwise",
            amounts: [0.1, 0.3, 0.5, 0.7, 0.9],
            knobs: &[
                share("share", "auto", "share of the sensors, 0 to below 1; auto leaves it to the severity"),
                PATCH,
            ],
            make: |_, _| Box::new(senses::Missing::new()),
        },
    ],
);
