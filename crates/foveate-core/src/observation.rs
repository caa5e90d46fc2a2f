//! Observations and observation spaces.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Image, ImageBuf};

/// The name of the image part of an [`Observation::Dict`].
pub const IMAGE: &str = "image";
/// The name of the depth part that belongs to the image, `[height, width, 1]`, from 0 (near) to 255 (far).
pub const DEPTH: &str = "depth";
/// The name of the numeric part, such as joint angles or velocities.
pub const SENSORS: &str = "sensors";
/// The name of the part that says which patches of the image are there: a vector `[patches]`, row-major, of 1
/// (there) and 0 (missing; the image is black there, in every frame). The patches are square and cover the
/// image, with `sqrt(width * height / patches)` pixels on a side.
pub const PRESENT: &str = "present";

/// An observation, borrowed from the world.
#[derive(Clone, Copy)]
pub enum Observation<'a> {
    /// One image, or several consecutive frames.
    Image(Pixels<'a>),
    /// Numbers.
    Vector(&'a [f32]),
    /// A grid of symbols.
    Grid(Grid<'a>),
    /// Several named observations. Usual names are [`IMAGE`], [`DEPTH`], [`SENSORS`] and [`PRESENT`].
    Dict(&'a dyn Parts),
}

/// The named parts of an [`Observation::Dict`], in a fixed order.
pub trait Parts {
    /// Number of parts.
    fn count(&self) -> usize;

    /// Name and value of one part; `None` from [`Parts::count`] on.
    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)>;
}

/// Borrowed parts in a vector.
impl<S: AsRef<str>> Parts for Vec<(S, Observation<'_>)> {
    fn count(&self) -> usize {
        self.len()
    }

    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        self.get(index).map(|(name, part)| (name.as_ref(), *part))
    }
}

/// Stored parts.
impl Parts for Vec<(String, ObservationBuf)> {
    fn count(&self) -> usize {
        self.len()
    }

    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        self.get(index).map(|(name, part)| (&**name, part.as_observation()))
    }
}

/// Compares values; the parts of a dict must be in the same order.
impl PartialEq for Observation<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Observation::Image(a), Observation::Image(b)) => a == b,
            (Observation::Vector(a), Observation::Vector(b)) => a == b,
            (Observation::Grid(a), Observation::Grid(b)) => a == b,
            (Observation::Dict(a), Observation::Dict(b)) => {
                a.count() == b.count() && (0..a.count()).all(|i| a.part(i) == b.part(i))
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Observation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Observation::Image(pixels) => pixels.fmt(f),
            Observation::Vector(numbers) => f.debug_tuple("Vector").field(numbers).finish(),
            Observation::Grid(grid) => grid.fmt(f),
            Observation::Dict(parts) => {
                f.debug_map().entries((0..parts.count()).filter_map(|i| parts.part(i))).finish()
            }
        }
    }
}

impl<'a> From<Image<'a>> for Observation<'a> {
    fn from(image: Image<'a>) -> Self {
        Observation::rgb(image)
    }
}

impl<'a> Observation<'a> {
    /// One RGB image.
    pub const fn rgb(image: Image<'a>) -> Self {
        Observation::Image(Pixels::rgb(image))
    }

    /// The image as one RGB image with the frames one below the other, when its bytes already have that
    /// layout; see [`Pixels::to_rgb`] for the others.
    pub fn picture(self) -> Option<Image<'a>> {
        self.image()?.as_rgb()
    }

    /// The part of this name; `None` when there is none.
    pub fn part(self, name: &str) -> Option<Observation<'a>> {
        let Observation::Dict(parts) = self else { return None };
        (0..parts.count())
            .filter_map(|i| parts.part(i))
            .find(|(other, _)| *other == name)
            .map(|(_, part)| part)
    }

    /// The image: the observation itself, or its part [`IMAGE`].
    pub fn image(self) -> Option<Pixels<'a>> {
        match self {
            Observation::Image(pixels) => Some(pixels),
            Observation::Dict(_) => self.part(IMAGE)?.image(),
            Observation::Vector(_) | Observation::Grid(_) => None,
        }
    }

    /// `[height, width, 1]`: the distance of each pixel of the image, the part [`DEPTH`].
    pub fn depth(self) -> Option<Pixels<'a>> {
        match self.part(DEPTH)? {
            Observation::Image(pixels) => Some(pixels),
            _ => None,
        }
    }

    /// The numbers: the observation itself, or its part [`SENSORS`].
    #[inline]
    pub fn numbers(self) -> Option<&'a [f32]> {
        match self {
            Observation::Vector(numbers) => Some(numbers),
            Observation::Dict(_) => self.part(SENSORS)?.numbers(),
            Observation::Image(_) | Observation::Grid(_) => None,
        }
    }

    /// `[patches]`: 1 for each patch of the image that is there and 0 for a missing one, the part [`PRESENT`];
    /// `None` when all are there.
    pub fn present(self) -> Option<&'a [f32]> {
        self.part(PRESENT)?.numbers()
    }

    /// The observation space of this observation.
    pub fn space(self) -> ObservationSpace {
        match self {
            Observation::Image(pixels) => ObservationSpace::Image(pixels.shape),
            Observation::Vector(numbers) => ObservationSpace::Vector { len: numbers.len() },
            Observation::Grid(Grid { rows, columns, channels, .. }) => {
                ObservationSpace::Grid { rows, columns, channels }
            }
            Observation::Dict(parts) => {
                let parts = (0..parts.count()).filter_map(|i| parts.part(i));
                ObservationSpace::Dict(parts.map(|(name, part)| (name.to_owned(), part.space())).collect())
            }
        }
    }

    /// A description in words: `a picture of 96x96 with depth and 7 numbers`.
    pub fn describe(self) -> String {
        self.space().describe()
    }
}

/// The shape of images: bytes `[frames, height, width, channels]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PixelShape {
    /// Number of consecutive frames; the oldest is the first.
    pub frames: usize,
    /// Height in pixels.
    pub height: usize,
    /// Width in pixels.
    pub width: usize,
    /// Bytes per pixel: 1 for grey, 3 for red, green and blue.
    pub channels: usize,
}

impl PixelShape {
    /// The shape of one RGB image.
    pub const fn rgb(width: usize, height: usize) -> Self {
        PixelShape { frames: 1, height, width, channels: 3 }
    }

    /// Total number of bytes; `None` when it overflows.
    pub const fn checked_len(self) -> Option<usize> {
        let Some(rows) = self.frames.checked_mul(self.height) else { return None };
        let Some(pixels) = rows.checked_mul(self.width) else { return None };
        pixels.checked_mul(self.channels)
    }

    /// Bytes per frame.
    pub const fn frame_len(self) -> usize {
        self.height * self.width * self.channels
    }

    /// Width and height of all frames stacked vertically.
    pub const fn tall(self) -> (usize, usize) {
        (self.width, self.frames * self.height)
    }

    fn describe(self) -> String {
        let PixelShape { frames, height, width, channels } = self;
        let kind = match channels {
            1 => "grey ".to_owned(),
            3 => String::new(),
            n => format!("{n}-channel "),
        };
        match frames {
            1 => format!("a {kind}picture of {width}x{height}"),
            n => format!("{n} {kind}pictures of {width}x{height}"),
        }
    }
}

/// Borrowed images: bytes `[frames, height, width, channels]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pixels<'a> {
    shape: PixelShape,
    bytes: &'a [u8],
}

impl fmt::Debug for Pixels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pixels").field("shape", &self.shape).field("bytes", &self.bytes).finish()
    }
}

impl<'a> Pixels<'a> {
    /// Wraps `bytes`; `None` when their number does not match the shape.
    pub fn new(shape: PixelShape, bytes: &'a [u8]) -> Option<Self> {
        (shape.checked_len() == Some(bytes.len())).then_some(Pixels { shape, bytes })
    }

    /// One RGB image.
    pub const fn rgb(image: Image<'a>) -> Self {
        Pixels { shape: PixelShape::rgb(image.width(), image.height()), bytes: image.rgb() }
    }

    /// The shape.
    pub const fn shape(&self) -> PixelShape {
        self.shape
    }

    /// Number of consecutive frames.
    pub const fn frames(&self) -> usize {
        self.shape.frames
    }

    /// Height of a frame in pixels.
    pub const fn height(&self) -> usize {
        self.shape.height
    }

    /// Width in pixels.
    pub const fn width(&self) -> usize {
        self.shape.width
    }

    /// Bytes per pixel.
    pub const fn channels(&self) -> usize {
        self.shape.channels
    }

    /// `[frames, height, width, channels]`.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// One of the frames, `[height, width, channels]`; 0 is the oldest.
    pub fn frame(&self, index: usize) -> Option<&'a [u8]> {
        let len = self.shape.frame_len();
        self.bytes.get(index.checked_mul(len)?..)?.get(..len).filter(|_| index < self.shape.frames)
    }

    /// All frames stacked vertically as one RGB image; `None` when pixels do not have three bytes.
    pub fn as_rgb(&self) -> Option<Image<'a>> {
        let (width, height) = self.shape.tall();
        if self.shape.channels == 3 { Image::new(width, height, self.bytes) } else { None }
    }

    /// Like [`Pixels::to_rgb`], owned.
    pub fn to_image(&self) -> ImageBuf {
        let image = self.to_rgb(&mut vec![]).rgb().to_vec();
        let (width, height) = self.shape.tall();
        ImageBuf::from_rgb(width, height, image).expect("three bytes for each pixel")
    }

    /// All frames stacked vertically as one RGB image. Grey is copied to red, green and blue; of two channels
    /// the first is taken as grey, of more than three the first three as colours.
    ///
    /// RGB images are returned without a copy; others are written to `scratch`, which allocates when it is
    /// too small.
    pub fn to_rgb<'s>(&self, scratch: &'s mut Vec<u8>) -> Image<'s>
    where
        'a: 's,
    {
        let (width, height) = self.shape.tall();
        let bytes = match self.shape.channels {
            3 => self.bytes,
            channels => {
                scratch.clear();
                match channels {
                    0 => scratch.resize(width * height * 3, 0),
                    1 => scratch.extend(self.bytes.iter().flat_map(|&grey| [grey; 3])),
                    2 => {
                        scratch.extend(self.bytes.as_chunks::<2>().0.iter().flat_map(|&[grey, _]| [grey; 3]));
                    }
                    n => scratch.extend(self.bytes.chunks_exact(n).flat_map(|pixel| &pixel[..3])),
                }
                scratch
            }
        };
        Image::new(width, height, bytes).expect("three bytes for each pixel")
    }
}

/// A borrowed grid of symbols: codes `[rows, columns, channels]`, such as kind, colour and state of a cell's
/// content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid<'a> {
    rows: usize,
    columns: usize,
    channels: usize,
    codes: &'a [u8],
}

impl<'a> Grid<'a> {
    /// Wraps `codes`, `[rows, columns, channels]`; `None` when their number does not match.
    pub fn new(rows: usize, columns: usize, channels: usize, codes: &'a [u8]) -> Option<Self> {
        let len = rows.checked_mul(columns)?.checked_mul(channels)?;
        (codes.len() == len).then_some(Grid { rows, columns, channels, codes })
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Codes per cell.
    pub const fn channels(&self) -> usize {
        self.channels
    }

    /// `[rows, columns, channels]`.
    pub const fn codes(&self) -> &'a [u8] {
        self.codes
    }

    /// The codes of a cell, `[channels]`; `None` outside the grid.
    pub fn cell(&self, row: usize, column: usize) -> Option<&'a [u8]> {
        let at = (row * self.columns + column) * self.channels;
        (row < self.rows && column < self.columns).then(|| &self.codes[at..at + self.channels])
    }
}

/// An owned observation: it can be stored and sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "Unchecked", into = "Unchecked")]
pub enum ObservationBuf {
    /// As [`Observation::Image`].
    Image(PixelsBuf),
    /// As [`Observation::Vector`].
    Vector(Vec<f32>),
    /// As [`Observation::Grid`].
    Grid(GridBuf),
    /// As [`Observation::Dict`].
    Dict(Vec<(String, ObservationBuf)>),
}

/// Owned images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PixelsBuf {
    shape: PixelShape,
    bytes: Vec<u8>,
}

impl PixelsBuf {
    /// Black images.
    pub fn black(shape: PixelShape) -> Self {
        PixelsBuf { shape, bytes: vec![0; shape.checked_len().expect("a shape that fits in memory")] }
    }

    /// Wraps owned `bytes`; `None` when their number does not match the shape.
    pub fn new(shape: PixelShape, bytes: Vec<u8>) -> Option<Self> {
        Pixels::new(shape, &bytes)?;
        Some(PixelsBuf { shape, bytes })
    }

    /// The shape.
    pub const fn shape(&self) -> PixelShape {
        self.shape
    }

    /// Borrows the images.
    pub fn as_pixels(&self) -> Pixels<'_> {
        Pixels { shape: self.shape, bytes: &self.bytes }
    }

    /// `[frames, height, width, channels]`, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// An owned grid of symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridBuf {
    shape: [usize; 3],
    codes: Vec<u8>,
}

impl GridBuf {
    /// Wraps owned `codes`, `[rows, columns, channels]`; `None` when their number does not match.
    pub fn new(rows: usize, columns: usize, channels: usize, codes: Vec<u8>) -> Option<Self> {
        Grid::new(rows, columns, channels, &codes)?;
        Some(GridBuf { shape: [rows, columns, channels], codes })
    }

    /// Borrows the grid.
    pub fn as_grid(&self) -> Grid<'_> {
        let [rows, columns, channels] = self.shape;
        Grid { rows, columns, channels, codes: &self.codes }
    }
}

/// The serialised form; its shape is checked when it is converted to an observation.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unchecked {
    Image { shape: PixelShape, bytes: Vec<u8> },
    Vector(Vec<f32>),
    Grid { shape: [usize; 3], codes: Vec<u8> },
    Dict(Vec<(String, Unchecked)>),
}

impl From<ObservationBuf> for Unchecked {
    fn from(buf: ObservationBuf) -> Self {
        match buf {
            ObservationBuf::Image(PixelsBuf { shape, bytes }) => Unchecked::Image { shape, bytes },
            ObservationBuf::Vector(numbers) => Unchecked::Vector(numbers),
            ObservationBuf::Grid(GridBuf { shape, codes }) => Unchecked::Grid { shape, codes },
            ObservationBuf::Dict(parts) => {
                Unchecked::Dict(parts.into_iter().map(|(name, part)| (name, part.into())).collect())
            }
        }
    }
}

impl TryFrom<Unchecked> for ObservationBuf {
    type Error = String;

    fn try_from(unchecked: Unchecked) -> Result<Self, String> {
        Ok(match unchecked {
            Unchecked::Image { shape, bytes } => {
                let why = format!("{} bytes for pictures of shape {shape:?}", bytes.len());
                ObservationBuf::Image(PixelsBuf::new(shape, bytes).ok_or(why)?)
            }
            Unchecked::Vector(numbers) => ObservationBuf::Vector(numbers),
            Unchecked::Grid { shape: [rows, columns, channels], codes } => {
                let why = format!("{} codes for a grid of {rows} x {columns} x {channels}", codes.len());
                ObservationBuf::Grid(GridBuf::new(rows, columns, channels, codes).ok_or(why)?)
            }
            Unchecked::Dict(parts) => {
                let part = |(name, part): (String, Unchecked)| Ok::<_, String>((name, part.try_into()?));
                ObservationBuf::Dict(parts.into_iter().map(part).collect::<Result<_, _>>()?)
            }
        })
    }
}

impl ObservationBuf {
    /// Borrows the observation.
    pub fn as_observation(&self) -> Observation<'_> {
        match self {
            ObservationBuf::Image(pixels) => Observation::Image(pixels.as_pixels()),
            ObservationBuf::Vector(numbers) => Observation::Vector(numbers),
            ObservationBuf::Grid(grid) => Observation::Grid(grid.as_grid()),
            ObservationBuf::Dict(parts) => Observation::Dict(parts),
        }
    }

    /// Copies `observation` into `self`. Does not allocate when both have the same space.
    pub fn set(&mut self, observation: Observation<'_>) {
        match (self, observation) {
            (ObservationBuf::Image(buf), Observation::Image(pixels)) => {
                buf.shape = pixels.shape;
                buf.bytes.clear();
                buf.bytes.extend_from_slice(pixels.bytes);
            }
            (ObservationBuf::Vector(buf), Observation::Vector(numbers)) => {
                buf.clear();
                buf.extend_from_slice(numbers);
            }
            (ObservationBuf::Grid(buf), Observation::Grid(grid)) => {
                buf.shape = [grid.rows, grid.columns, grid.channels];
                buf.codes.clear();
                buf.codes.extend_from_slice(grid.codes);
            }
            (ObservationBuf::Dict(buf), Observation::Dict(parts)) => {
                buf.truncate(parts.count());
                for (i, (name, part)) in (0..parts.count()).filter_map(|i| Some((i, parts.part(i)?))) {
                    match buf.get_mut(i) {
                        Some((known, held)) => {
                            known.clear();
                            known.push_str(name);
                            held.set(part);
                        }
                        None => buf.push((name.to_owned(), part.into())),
                    }
                }
            }
            (buf, observation) => *buf = observation.into(),
        }
    }
}

impl From<Observation<'_>> for ObservationBuf {
    fn from(observation: Observation<'_>) -> Self {
        match observation {
            Observation::Image(Pixels { shape, bytes }) => {
                ObservationBuf::Image(PixelsBuf { shape, bytes: bytes.to_vec() })
            }
            Observation::Vector(numbers) => ObservationBuf::Vector(numbers.to_vec()),
            Observation::Grid(Grid { rows, columns, channels, codes }) => {
                ObservationBuf::Grid(GridBuf { shape: [rows, columns, channels], codes: codes.to_vec() })
            }
            Observation::Dict(parts) => {
                let parts = (0..parts.count()).filter_map(|i| parts.part(i));
                ObservationBuf::Dict(parts.map(|(name, part)| (name.to_owned(), part.into())).collect())
            }
        }
    }
}

/// The set of observations of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationSpace {
    /// Images of this shape.
    Image(PixelShape),
    /// This many numbers.
    Vector {
        /// Number of numbers.
        len: usize,
    },
    /// A grid of symbols.
    Grid {
        /// Number of rows.
        rows: usize,
        /// Number of columns.
        columns: usize,
        /// Codes per cell.
        channels: usize,
    },
    /// Several named spaces.
    Dict(Vec<(String, ObservationSpace)>),
}

impl ObservationSpace {
    /// The space of one RGB image.
    pub const fn rgb(width: usize, height: usize) -> Self {
        ObservationSpace::Image(PixelShape::rgb(width, height))
    }

    /// The part of this name; `None` when there is none.
    pub fn part(&self, name: &str) -> Option<&ObservationSpace> {
        let ObservationSpace::Dict(parts) = self else { return None };
        parts.iter().find(|(other, _)| other == name).map(|(_, part)| part)
    }

    /// The shape of the image: of the observation itself, or of its part [`IMAGE`].
    pub fn image(&self) -> Option<PixelShape> {
        match self {
            ObservationSpace::Image(shape) => Some(*shape),
            ObservationSpace::Dict(_) => self.part(IMAGE)?.image(),
            ObservationSpace::Vector { .. } | ObservationSpace::Grid { .. } => None,
        }
    }

    /// Width and height of the image as agents with patches receive it, frames stacked vertically; `None`
    /// without an image.
    pub fn picture(&self) -> Option<(usize, usize)> {
        self.image().map(PixelShape::tall)
    }

    /// Returns whether there is a depth part.
    pub fn has_depth(&self) -> bool {
        self.part(DEPTH).is_some()
    }

    /// Number of numbers: of the observation itself, or of its part [`SENSORS`].
    pub fn numbers(&self) -> usize {
        match self {
            ObservationSpace::Vector { len } => *len,
            ObservationSpace::Dict(_) => self.part(SENSORS).map_or(0, ObservationSpace::numbers),
            ObservationSpace::Image(_) | ObservationSpace::Grid { .. } => 0,
        }
    }

    /// Bytes per observation.
    pub fn bytes(&self) -> u64 {
        let product =
            |sides: &[usize]| sides.iter().fold(1_u64, |all, &side| all.saturating_mul(side as u64));
        match self {
            ObservationSpace::Image(PixelShape { frames, height, width, channels }) => {
                product(&[*frames, *height, *width, *channels])
            }
            ObservationSpace::Vector { len } => product(&[4, *len]),
            ObservationSpace::Grid { rows, columns, channels } => product(&[*rows, *columns, *channels]),
            ObservationSpace::Dict(parts) => {
                parts.iter().fold(0, |all, (_, part)| all.saturating_add(part.bytes()))
            }
        }
    }

    /// A description in words: `a picture of 96x96 with depth and 7 numbers`.
    pub fn describe(&self) -> String {
        match self {
            ObservationSpace::Image(shape) => shape.describe(),
            ObservationSpace::Vector { len } => format!("{len} numbers"),
            ObservationSpace::Grid { rows, columns, channels } => {
                format!("a board of {rows}x{columns} cells with {channels} codes each")
            }
            ObservationSpace::Dict(parts) => {
                let mut text = String::new();
                for (name, part) in parts {
                    let usual = [IMAGE, DEPTH, SENSORS, PRESENT].contains(&&**name);
                    match name.as_str() {
                        DEPTH => text.push_str(" with depth"),
                        PRESENT => text.push_str(" with missing patches"),
                        _ if text.is_empty() => text = part.describe(),
                        _ => text = format!("{text} and {}", part.describe()),
                    }
                    if !usual {
                        text.push_str(&format!(" ({name})"));
                    }
                }
                text
            }
        }
    }
}
