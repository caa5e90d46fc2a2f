//! Wrappers as users write them: `repeat:4+grey+resize:84x84+stack:4`.

use std::str::FromStr;

use foveate_core::EnvError;

use super::grey::Grey;

/// Which wrappers are on; see [`catalogue`] for what each does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wrappers {
    /// Which of the world's choices the agent has, in ascending order; empty for all.
    pub choices: Vec<usize>,
    /// Chance that a step of the world repeats the action before.
    pub sticky: Option<f64>,
    /// Steps of the world per action; 1 by itself.
    pub repeat: Option<u64>,
    /// Shows the larger of the last two pictures of a repeat, byte for byte.
    pub max: bool,
    /// An episode begins with 1 to so many steps of doing nothing.
    pub noop: Option<u64>,
    /// A lost life ends the episode.
    pub lives: bool,
    /// Takes the colour out.
    pub grey: Option<Grey>,
    /// Another size of the picture.
    pub resize: Option<Resize>,
    /// Every byte becomes its distance from another one, so that a background so bright becomes black.
    pub subtract: Option<Subtract>,
    /// Rows of the picture that become black.
    pub blank: Blank,
    /// Shows several observations at once.
    pub stack: Option<Stack>,
    /// Rewards become −1, 0 or 1.
    pub clip: bool,
    /// Steps after which an episode is truncated.
    pub limit: Option<u64>,
}

/// Another size of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// As `OpenCV`'s `INTER_AREA` instead of Pillow's bilinear.
    pub area: bool,
}

/// Rows of the picture that become black, counted after a change of size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blank {
    /// Rows from the top edge.
    pub top: Option<usize>,
    /// Rows from the bottom edge.
    pub bottom: Option<usize>,
}

/// How several observations are shown at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// So many one after the other, the newest last: pictures below each other, numbers in a row.
    Rows(usize),
    /// The brightness of the last three as red, green and blue, the newest blue.
    Colors,
}

/// Of what every byte becomes its distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subtract {
    /// This one.
    Byte(u8),
    /// The most frequent one of its channel in the picture, of equally frequent ones the smallest.
    Common,
}

/// Every wrapper: how it is written, and what it does.
pub fn catalogue() -> &'static [(&'static str, &'static str)] {
    &[
        ("choices:0:1:3", "the agent has these of the world's choices, which become its choices 0, 1, 2"),
        ("sticky:0.25", "with this chance a step of the world repeats the action before"),
        ("repeat:4", "each action lasts so many steps of the world; rewards add up"),
        ("max", "shows the larger of the last two pictures of a repeat, against flicker"),
        ("noop:30", "an episode begins with 1 to so many steps of doing nothing"),
        ("lives", "a lost life ends the episode (of worlds that report `lives`)"),
        (
            "grey",
            "takes the colour out as Pillow does; grey:ale as Atari's emulator, grey:opencv as OpenCV does",
        ),
        ("resize:84x84", "another size, as Pillow's bilinear; resize:84x84:area as OpenCV's INTER_AREA"),
        (
            "subtract:87",
            "every byte becomes its distance from this one, after resize: a background so bright becomes black; \
             subtract:common takes the most frequent byte of each picture",
        ),
        (
            "blank:bottom=12",
            "makes so many rows at the bottom black, after subtract; blank:top=10 those at the top",
        ),
        ("stack:4", "the last so many observations at once; stack:colors the last three as red, green, blue"),
        ("clip", "rewards become -1, 0 or 1"),
        ("limit:1000", "an episode is truncated after so many actions"),
        ("atari", "short for noop:30+repeat:4+max+grey:ale+resize:84x84:area"),
    ]
}

const ATARI: &str = "noop:30+repeat:4+max+grey:ale+resize:84x84:area";
/// Largest side of a resized picture.
const MAX_SIDE: usize = 4096;
/// Most observations shown at once.
const MAX_STACK: usize = 64;

fn bad(part: &str, why: &str) -> EnvError {
    EnvError::BadOption { env: format!("wrapper {part:?}"), why: why.into() }
}

impl Blank {
    /// How many rows become black.
    pub const fn rows(self) -> usize {
        let top = if let Some(rows) = self.top { rows } else { 0 };
        let bottom = if let Some(rows) = self.bottom { rows } else { 0 };
        top + bottom
    }

    /// Makes the rows of `picture`, `[height, row]`, black.
    fn apply(self, picture: &mut [u8], row: usize) {
        let (top, bottom) = (self.top.unwrap_or(0) * row, self.bottom.unwrap_or(0) * row);
        picture[..top].fill(0);
        let end = picture.len();
        picture[end - bottom..].fill(0);
    }
}

impl FromStr for Wrappers {
    type Err = EnvError;

    fn from_str(text: &str) -> Result<Self, EnvError> {
        let mut wrappers = Wrappers::default();
        for part in text.split('+').map(str::trim) {
            if part == "atari" {
                for part in ATARI.split('+') {
                    wrappers.add(part)?;
                }
            } else {
                wrappers.add(part)?;
            }
        }
        if wrappers.max && wrappers.repeat.unwrap_or(1) < 2 {
            return Err(bad("max", "it needs two pictures to choose from; add repeat:2 or more"));
        }
        Ok(wrappers)
    }
}

impl Wrappers {
    fn add(&mut self, part: &str) -> Result<(), EnvError> {
        let (name, value) = part.split_once(':').map_or((part, None), |(name, value)| (name, Some(value)));
        let whole = |from: u64, to: u64| {
            let number = value.and_then(|value| value.parse().ok()).filter(|n| (from..=to).contains(n));
            number.ok_or_else(|| bad(part, &format!("write it as {name}:NUMBER, from {from} to {to}")))
        };
        let set = |slot: &mut bool| match value {
            None => Ok(!std::mem::replace(slot, true)),
            Some(_) => Err(bad(part, &format!("it takes no value; write {name}"))),
        };
        let fresh = match name {
            "choices" => {
                let choices: Option<Vec<usize>> =
                    value.and_then(|value| value.split(':').map(|choice| choice.parse().ok()).collect());
                let choices = choices.filter(|choices| choices.is_sorted_by(|one, next| one < next));
                let why = "write it as choices:NUMBER:NUMBER, numbers of choices from 0 in ascending order";
                std::mem::replace(&mut self.choices, choices.ok_or_else(|| bad(part, why))?).is_empty()
            }
            "sticky" => {
                let chance = value.and_then(|value| value.parse().ok()).filter(|p| (0.0..=1.0).contains(p));
                let chance = chance.ok_or_else(|| bad(part, "write it as sticky:CHANCE, from 0 to 1"))?;
                self.sticky.replace(chance).is_none()
            }
            "repeat" => self.repeat.replace(whole(1, 10_000)?).is_none(),
            "max" => set(&mut self.max)?,
            "noop" => self.noop.replace(whole(1, 10_000)?).is_none(),
            "lives" => set(&mut self.lives)?,
            "grey" => {
                let grey = match value {
                    None | Some("pillow") => Grey::Pillow,
                    Some("ale") => Grey::Ale,
                    Some("opencv") => Grey::OpenCv,
                    _ => return Err(bad(part, "choose grey, grey:ale or grey:opencv")),
                };
                self.grey.replace(grey).is_none()
            }
            "resize" => {
                let (size, area) = match value.and_then(|value| value.split_once(':')) {
                    Some((size, "area")) => (Some(size), true),
                    Some((size, "bilinear")) => (Some(size), false),
                    Some(_) => (None, false),
                    None => (value, false),
                };
                let side = |text: &str| text.parse().ok().filter(|n| (1..=MAX_SIDE).contains(n));
                let size = size.and_then(|size| size.split_once('x'));
                let size = size.and_then(|(width, height)| Some((side(width)?, side(height)?)));
                let why = || {
                    format!(
                        "write it as resize:WIDTHxHEIGHT or resize:WIDTHxHEIGHT:area, sides up to {MAX_SIDE}"
                    )
                };
                let (width, height) = size.ok_or_else(|| bad(part, &why()))?;
                self.resize.replace(Resize { width, height, area }).is_none()
            }
            "subtract" => {
                let subtract = if value == Some("common") {
                    Subtract::Common
                } else {
                    let byte = value.and_then(|value| value.parse().ok()).filter(|&byte: &u8| byte > 0);
                    let why = "write it as subtract:common, or as subtract:NUMBER, from 1 to 255";
                    Subtract::Byte(byte.ok_or_else(|| bad(part, why))?)
                };
                self.subtract.replace(subtract).is_none()
            }
            "blank" => {
                let why = || format!("write it as blank:top=ROWS or blank:bottom=ROWS, from 1 to {MAX_SIDE}");
                let (edge, rows) =
                    value.and_then(|value| value.split_once('=')).ok_or_else(|| bad(part, &why()))?;
                let rows = rows.parse().ok().filter(|n| (1..=MAX_SIDE).contains(n));
                let rows = rows.ok_or_else(|| bad(part, &why()))?;
                match edge {
                    "top" => self.blank.top.replace(rows).is_none(),
                    "bottom" => self.blank.bottom.replace(rows).is_none(),
                    _ => return Err(bad(part, &why())),
                }
            }
            "stack" if value == Some("colors") => self.stack.replace(Stack::Colors).is_none(),
            "stack" => self.stack.replace(Stack::Rows(whole(2, MAX_STACK as u64)? as usize)).is_none(),
            "clip" => set(&mut self.clip)?,
            "limit" => self.limit.replace(whole(1, u64::MAX)?).is_none(),
            _ => {
                let known: Vec<_> = catalogue().iter().map(|(name, _)| *name).collect();
                return Err(EnvError::UnknownOption {
                    env: "this program".into(),
                    what: "wrapper",
                    given: part.into(),
                    known: known.join(", "),
                });
            }
        };
        if fresh { Ok(()) } else { Err(bad(part, &format!("{name} is there twice; write it once"))) }
    }

    /// Returns whether none is on.
    pub fn is_empty(&self) -> bool {
        *self == Wrappers::default()
    }

    /// Subtracts from `picture`, `[height, width, channels]`, and makes rows at its edges black.
    pub(super) fn clear(&self, picture: &mut [u8], width: usize, channels: usize) {
        match self.subtract {
            None => {}
            Some(Subtract::Byte(subtract)) => distances(picture, subtract),
            Some(Subtract::Common) if channels == 1 => distances(picture, most_frequent(&counts(picture))),
            Some(Subtract::Common) => {
                for channel in 0..channels {
                    let mut counts = [0; 256];
                    for pixel in picture.chunks_exact(channels) {
                        counts[usize::from(pixel[channel])] += 1;
                    }
                    let common = most_frequent(&counts);
                    for pixel in picture.chunks_exact_mut(channels) {
                        pixel[channel] = pixel[channel].abs_diff(common);
                    }
                }
            }
        }
        self.blank.apply(picture, width * channels);
    }

    /// Returns whether observations are changed.
    pub(super) const fn looks(&self) -> bool {
        self.max
            || self.grey.is_some()
            || self.resize.is_some()
            || self.subtract.is_some()
            || self.blank.rows() > 0
            || self.stack.is_some()
    }
}

/// Every byte becomes its distance from `other`.
fn distances(picture: &mut [u8], other: u8) {
    for byte in picture {
        *byte = byte.abs_diff(other);
    }
}

/// How often each byte is there. Eight equal ones, as backgrounds are made of, are counted at once.
fn counts(bytes: &[u8]) -> [u32; 256] {
    let mut counts = [0; 256];
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        if *eight == [eight[0]; 8] {
            counts[usize::from(eight[0])] += 8;
        } else {
            for &byte in eight {
                counts[usize::from(byte)] += 1;
            }
        }
    }
    for &byte in rest {
        counts[usize::from(byte)] += 1;
    }
    counts
}

/// The most frequent byte, of equally frequent ones the smallest.
fn most_frequent(counts: &[u32; 256]) -> u8 {
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|&count| count == most).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_byte_of_each_channel_becomes_black() {
        let clear = |text: &str, mut picture: Vec<u8>, width, channels| {
            text.parse::<Wrappers>().expect("fine").clear(&mut picture, width, channels);
            picture
        };
        assert_eq!(clear("subtract:common", vec![9, 5, 9, 200, 0, 9], 3, 1), [0, 4, 0, 191, 9, 0]);
        // Two rows of two pixels with a background of 7, 80, 90, and of two equally frequent bytes the smaller one.
        let picture = vec![7, 80, 90, 7, 80, 90, 1, 80, 90, 7, 100, 90];
        assert_eq!(clear("subtract:common", picture, 2, 3), [0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 20, 0]);
        assert_eq!(clear("subtract:common", vec![8, 3, 8, 3], 2, 1), [5, 0, 5, 0]);
        // Eight bytes are counted at once where they are equal.
        let mut picture = vec![6; 16];
        picture.extend([1; 23]);
        picture[9] = 2;
        assert_eq!(clear("subtract:common", picture.clone(), 39, 1)[8..17], [5, 1, 5, 5, 5, 5, 5, 5, 0]);
        picture.extend([6; 10]);
        assert_eq!(clear("subtract:common", picture, 7, 1)[8..17], [0, 4, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(clear("subtract:common+blank:top=1", vec![9, 9, 4, 9], 2, 1), [0, 0, 5, 0]);
    }

    #[test]
    fn wrappers_are_read_in_any_order() {
        let all = "choices:0:2:11+limit:9+clip+stack:3+blank:bottom=2+blank:top=1+subtract:7+resize:8x6:area+grey+lives+noop:2+max+repeat:4+sticky:0.5";
        let expect = Wrappers {
            sticky: Some(0.5),
            repeat: Some(4),
            max: true,
            noop: Some(2),
            lives: true,
            grey: Some(Grey::Pillow),
            resize: Some(Resize { width: 8, height: 6, area: true }),
            subtract: Some(Subtract::Byte(7)),
            blank: Blank { top: Some(1), bottom: Some(2) },
            stack: Some(Stack::Rows(3)),
            clip: true,
            limit: Some(9),
            choices: vec![0, 2, 11],
        };
        assert_eq!(all.parse::<Wrappers>().expect("fine"), expect);
        let atari = "atari+stack:4".parse::<Wrappers>().expect("fine");
        assert_eq!((atari.repeat, atari.max, atari.grey), (Some(4), true, Some(Grey::Ale)));
        for (written, _) in catalogue() {
            let alone = if *written == "max" { "max+repeat:2" } else { written };
            alone.parse::<Wrappers>().expect(written);
        }
        for (text, part) in [
            ("", "has no wrapper \"\""),
            ("gray", "has no wrapper \"gray\"; did you mean grey? choose from: choices:0:1:3, sticky:0.25"),
            ("repeat", "write it as repeat:NUMBER, from 1"),
            ("repeat:0", "write it as repeat:NUMBER, from 1"),
            ("clip:1", "it takes no value"),
            ("max", "add repeat:2"),
            ("grey+grey:ale", "grey is there twice"),
            ("sticky:2", "from 0 to 1"),
            ("resize:84", "resize:WIDTHxHEIGHT"),
            ("resize:0x4", "resize:WIDTHxHEIGHT"),
            ("resize:84x84:cubic", "resize:WIDTHxHEIGHT"),
            ("grey:x", "choose grey, grey:ale or grey:opencv"),
            ("subtract", "write it as subtract:common, or as subtract:NUMBER, from 1 to 255"),
            ("subtract:0", "from 1 to 255"),
            ("subtract:256", "from 1 to 255"),
            ("subtract:7+subtract:7", "subtract is there twice"),
            ("blank", "blank:top=ROWS or blank:bottom=ROWS, from 1 to 4096"),
            ("blank:12", "blank:top=ROWS"),
            ("blank:left=12", "blank:top=ROWS"),
            ("blank:top=0", "blank:top=ROWS"),
            ("blank:top=1+blank:top=2", "blank is there twice"),
            ("stack:1", "from 2 to 64"),
            ("choices", "write it as choices:NUMBER:NUMBER, numbers of choices from 0 in ascending order"),
            ("choices:", "in ascending order"),
            ("choices:1:0", "in ascending order"),
            ("choices:1:1", "in ascending order"),
            ("choices:-1", "in ascending order"),
            ("choices:1+choices:2", "choices is there twice"),
        ] {
            let said = text.parse::<Wrappers>().expect_err(text).to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
