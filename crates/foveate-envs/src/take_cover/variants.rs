//! Variants as data: `higher-walls`, `floor-texture:texture=CRATOP1`, `higher-walls+hovering-text`.
//!
//! Two of them change one field each of the map's only sector, which is the only difference of the published
//! maps; the third draws text over the screen.

use foveate_core::EnvError;

use super::ID;
use super::textmap::{Field, set_sector_field};
use super::wad::{Wad, WadError};
use crate::registry::{Parameter, VariantInfo};

const PAPER: &str = "Tang et al. 2020";
const PICTURES: &[&str] = &["exact", "near", "fast"];

static CATALOGUE: [VariantInfo; 3] = [
    VariantInfo {
        name: "higher-walls",
        about: "the ceiling is higher, so that more of the walls is seen",
        parameters: &[Parameter {
            name: "height",
            default: "404",
            about: "of the ceiling above the floor, 80 to 2000; it is 104 by itself",
        }],
        source: PAPER,
        pictures: PICTURES,
    },
    VariantInfo {
        name: "floor-texture",
        about: "the floor has another texture",
        parameters: &[Parameter {
            name: "texture",
            default: "CRATOP2",
            about: "its name in the game's data, up to 8 letters, digits or _",
        }],
        source: PAPER,
        pictures: PICTURES,
    },
    VariantInfo {
        name: "hovering-text",
        about: "the words \"Attention Agent\" in cyan on blue over the upper part of the screen",
        parameters: &[],
        source: PAPER,
        pictures: PICTURES,
    },
];

/// All variants, in the order of `foveate list`.
pub const fn catalogue() -> &'static [VariantInfo] {
    &CATALOGUE
}

/// A combination of variants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variants {
    /// Height of the ceiling.
    pub higher_walls: Option<u32>,
    /// Name of the floor's texture.
    pub floor_texture: Option<String>,
    /// True if text is drawn over the screen.
    pub hovering_text: bool,
}

impl Variants {
    /// Parses texts as `--variant` takes them: names with parameters, separated by `+` or `,`; `original`
    /// means none.
    ///
    /// # Errors
    /// When a name or a parameter is unknown, a value is invalid, or a variant is named twice.
    pub fn parse_all<S: AsRef<str>>(texts: &[S]) -> Result<Self, EnvError> {
        let mut variants = Variants::default();
        for text in texts {
            for part in text.as_ref().split(['+', ',']) {
                variants.add(part.trim())?;
            }
        }
        Ok(variants)
    }

    fn add(&mut self, text: &str) -> Result<(), EnvError> {
        let bad = |why: String| EnvError::BadOption { env: ID.into(), why };
        let (name, parameters) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let mut value = None;
        if let Some(rest) = parameters {
            let known =
                CATALOGUE.iter().find(|info| info.name == name).map_or(&[][..], |info| info.parameters);
            let (key, given) = rest.split_once('=').unwrap_or((rest, ""));
            if known.iter().all(|parameter| parameter.name != key) {
                return Err(EnvError::UnknownOption {
                    env: format!("{ID} variant {name}"),
                    what: "parameter",
                    given: key.into(),
                    known: known.first().map_or("none", |parameter| parameter.name).into(),
                });
            }
            value = Some(given);
        }
        let twice = match name {
            "original" | "" => false,
            "higher-walls" => {
                let height = value.unwrap_or("404");
                let number = height.parse().ok().filter(|height| (80..=2000).contains(height));
                let why =
                    || bad(format!("variant {name}: height = {height:?} must be a number from 80 to 2000"));
                self.higher_walls.replace(number.ok_or_else(why)?).is_some()
            }
            "floor-texture" => {
                let texture = value.unwrap_or("CRATOP2").to_ascii_uppercase();
                let fine = (1..=8).contains(&texture.len())
                    && texture.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                if !fine {
                    return Err(bad(format!(
                        "variant {name}: texture = {texture:?} must be 1 to 8 letters, digits or _"
                    )));
                }
                self.floor_texture.replace(texture).is_some()
            }
            "hovering-text" => std::mem::replace(&mut self.hovering_text, true),
            _ => {
                return Err(EnvError::UnknownOption {
                    env: ID.into(),
                    what: "variant",
                    given: name.into(),
                    known: CATALOGUE.map(|info| info.name).join(", "),
                });
            }
        };
        if twice {
            return Err(bad(format!("variant {name} is there twice; keep one of them")));
        }
        Ok(())
    }

    /// Returns whether they change the map.
    pub const fn change_map(&self) -> bool {
        self.higher_walls.is_some() || self.floor_texture.is_some()
    }

    /// Returns the map file `wad` with the changes; everything else stays the same byte for byte.
    ///
    /// # Errors
    /// When the file is not a WAD, when it has no text map with one sector, or when the sector lacks a field
    /// to change.
    pub fn apply(&self, wad: &[u8]) -> Result<Vec<u8>, WadError> {
        let mut file = Wad::read(wad)?;
        let map = file.find_mut("TEXTMAP")?;
        if let Some(height) = self.higher_walls {
            *map = set_sector_field(map, "heightceiling", &Field::Number(height.into()))?;
        }
        if let Some(texture) = &self.floor_texture {
            *map = set_sector_field(map, "texturefloor", &Field::Text(texture.clone()))?;
        }
        file.write()
    }
}
