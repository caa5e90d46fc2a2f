//! The list of variants for users.

use super::{FakeLane, Side, Variant};
use crate::car_racing::scene::Blob;

/// The description of one variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariantInfo {
    /// The name that users type.
    pub name: &'static str,
    /// Its effect, in one line.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The publication, or that it is ours.
    pub source: &'static str,
    /// The pictures that show it.
    pub pictures: &'static [&'static str],
}

/// A parameter of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The name that users type before `=`.
    pub name: &'static str,
    /// The published value, in the syntax that users type; empty when a value must be given.
    pub default: &'static str,
    /// Its meaning, with the range.
    pub about: &'static str,
}

/// All variants, in the order of `foveate list`.
pub const fn catalogue() -> &'static [VariantInfo] {
    &CATALOGUE
}

/// The entry that describes `variant`.
pub(super) fn info(variant: &Variant) -> &'static VariantInfo {
    find(variant.name()).expect("every variant has its line in the catalogue; a test checks it")
}

/// The entry called `name`.
pub(super) fn find(name: &str) -> Option<&'static VariantInfo> {
    CATALOGUE.iter().find(|info| info.name == name)
}

/// The variant called `name` with its published parameters.
pub(super) fn published(name: &str) -> Option<Variant> {
    Some(match name {
        "color" => Variant::Color { amplitude: 0.2 },
        "color3" => Variant::Color3 { amplitude: 0.2 },
        "bar" => Variant::Bar { width: 75.0 },
        // First vertex of the hull's last polygon, (1, -2.4), plus (20, 10); side 8.
        "blob" => Variant::Blob(Blob { corner: [21.0, 7.6], side: 8.0, rgb: [204, 0, 0] }),
        "noise" => Variant::Noise { size: 666 },
        "video" => Variant::Video { folder: String::new(), frames: std::sync::Arc::default() },
        "fake-lane" => {
            Variant::FakeLane(FakeLane { side: Side::Right, gap: 4.0, width: 13.3, rgb: [102, 102, 204] })
        }
        _ => return None,
    })
}

const EVERY_PICTURE: &[&str] = &["classic", "exact", "fast"];
const PAPER: &str = "Tang et al. 2020";
const EXTENSION: &str = "CarRacingExtension of the same authors";

const AMPLITUDE: Parameter = Parameter {
    name: "amplitude",
    default: "0.2",
    about: "largest change as a share of full brightness, 0 to 1",
};

static CATALOGUE: [VariantInfo; 7] = [
    VariantInfo {
        name: "color",
        about: "road and dark grass each brightened or darkened at random, once per episode",
        parameters: &[AMPLITUDE],
        source: PAPER,
        pictures: EVERY_PICTURE,
    },
    VariantInfo {
        name: "color3",
        about: "road and dark grass each tinted at random, once per episode",
        parameters: &[AMPLITUDE],
        source: EXTENSION,
        pictures: EVERY_PICTURE,
    },
    VariantInfo {
        name: "bar",
        about: "black bars at the left and right edge, above the indicators",
        parameters: &[Parameter {
            name: "width",
            default: "75",
            about: "of each bar, in thousandths of the picture, 0 to 500",
        }],
        source: PAPER,
        pictures: EVERY_PICTURE,
    },
    VariantInfo {
        name: "blob",
        about: "a red square that moves with the car, ahead of it and to its right",
        parameters: &[
            Parameter { name: "x", default: "21", about: "left edge, world units to the right of the car" },
            Parameter { name: "y", default: "7.6", about: "lower edge, world units ahead of the car" },
            Parameter {
                name: "side",
                default: "8",
                about: "length of an edge in world units, above 0, up to 100",
            },
            Parameter { name: "color", default: "#cc0000", about: "#rrggbb" },
        ],
        source: PAPER,
        pictures: EVERY_PICTURE,
    },
    VariantInfo {
        name: "noise",
        about: "random texels in place of the ground, new ones every frame",
        parameters: &[Parameter {
            name: "size",
            default: "666",
            about: "texels along each side, one per world unit, 1 to 2000",
        }],
        source: EXTENSION,
        pictures: EVERY_PICTURE,
    },
    VariantInfo {
        name: "video",
        about: "a folder of pictures in place of the ground, one per frame, over and over",
        parameters: &[Parameter {
            name: "folder",
            default: "",
            about: "where the pictures are; takes the rest of the text, so it comes last",
        }],
        source: EXTENSION,
        pictures: EVERY_PICTURE,
    },
    VariantInfo {
        name: "fake-lane",
        about: "a bluish lane beside the road that looks drivable and is not",
        parameters: &[
            Parameter {
                name: "side",
                default: "right",
                about: "left or right of the road, in driving direction",
            },
            Parameter { name: "gap", default: "4", about: "between road and lane in world units, 0 to 100" },
            Parameter { name: "width", default: "13.3", about: "in world units, above 0, up to 100" },
            Parameter { name: "color", default: "#6666cc", about: "#rrggbb" },
        ],
        source: "after the discussion in Tang et al. 2020; our measures",
        pictures: EVERY_PICTURE,
    },
];
