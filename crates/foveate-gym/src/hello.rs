//! The description of an environment that a worker sends when it has made it.

use foveate_core::{ActionSpace, DEPTH, EnvSpec, IMAGE, ObservationSpace, PixelShape, SENSORS};
use serde::Deserialize;

use crate::error::GymError;

/// Largest width or height of a picture, in pixels.
const MAX_SIDE: usize = 4096;
/// Largest number of stacked frames in an observation.
const MAX_FRAMES: usize = 64;
/// Largest number of other values in an observation.
const MAX_NUMBERS: usize = 1 << 20;
/// Largest number of values in an action.
const MAX_ACTIONS: usize = 4096;
/// Frames per second of an environment that declares no rate.
const USUAL_FPS: f64 = 30.0;

/// The description of an environment.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts, as the worker says them")]
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Hello {
    /// Version of Python.
    pub python: String,
    /// The interpreter.
    pub executable: String,
    /// Version of gymnasium.
    pub gymnasium: String,
    /// Version of numpy.
    pub numpy: String,
    /// Width and height of the picture in the observation, if there is one.
    pub picture: Option<[usize; 2]>,
    /// Number of consecutive frames in the observation.
    pub frames: usize,
    /// Bytes per pixel: 1 for grey, 3 for colour.
    pub channels: usize,
    /// True if the picture has a depth for every pixel.
    pub depth: bool,
    /// Number of other values in the observation.
    pub numbers: usize,
    /// Offset of these values in the memory file, in bytes, after picture and depth.
    pub(crate) numbers_at: usize,
    /// For each part of the observation: its name, its use (`picture`, `depth` or `numbers`), and its
    /// original space.
    pub parts: Vec<[String; 3]>,
    /// Name, offset and length of each part that consists of numbers.
    pub(crate) spans: Vec<(String, usize, usize)>,
    /// Omitted parts: name and kind.
    pub left_out: Vec<[String; 2]>,
    /// Number of choices of a `Discrete` action space; else 0.
    pub choices: usize,
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
    /// Name of each value of the action.
    pub actions: Vec<String>,
    /// Steps after which Gymnasium truncates an episode.
    pub max_steps: Option<usize>,
    pub(crate) fps: f64,
    /// True if the environment can render.
    pub renders: bool,
    /// True if it offers an expert policy to learn from.
    pub expert: bool,
    /// True if it says what actions cost.
    pub costs: bool,
    /// True if it says where the expert looks.
    pub gaze: bool,
    /// True if Gymnasium lists it as nondeterministic.
    pub nondeterministic: bool,
}

impl Hello {
    /// Checks that all sizes are within their limits.
    pub(crate) fn check(&self, id: &str) -> Result<(), GymError> {
        let bad = |why: String| Err(GymError::Setting { id: id.into(), why });
        if let Some([width, height]) = self.picture
            && !((1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height))
        {
            return bad(format!(
                "its picture is {width}x{height}; sides of 1 to {MAX_SIDE} pixels are possible"
            ));
        }
        if !(1..=MAX_FRAMES).contains(&self.frames) || !matches!(self.channels, 1 | 3) {
            return bad(format!(
                "it shows {} pictures with {} bytes in a pixel; 1 to {MAX_FRAMES} with 1 or 3 are possible",
                self.frames, self.channels
            ));
        }
        if self.depth && self.frames != 1 {
            return bad("it shows several pictures with one depth; leave one of them out".into());
        }
        if self.numbers > MAX_NUMBERS || self.numbers_at > self.picture_bytes() + self.depth_bytes() + 8 {
            return bad(format!(
                "its observation has {} numbers; at most {MAX_NUMBERS} are possible",
                self.numbers
            ));
        }
        let (low, high) = (self.low.len(), self.high.len());
        if low != high || low == 0 || low > MAX_ACTIONS || self.choices > MAX_ACTIONS {
            return bad(format!(
                "its action has {low} numbers or {} choices; 1 to {MAX_ACTIONS} are possible",
                self.choices
            ));
        }
        if self.picture.is_none() && self.numbers == 0 {
            return bad("its observation is empty; choose another environment".into());
        }
        Ok(())
    }

    /// The name of the value at `index`, as in `observation[3]`.
    pub(crate) fn part(&self, index: usize) -> String {
        let found =
            self.spans.iter().find(|(_, at, count)| (*at..at.saturating_add(*count)).contains(&index));
        found.map_or_else(|| format!("number {index}"), |(name, at, _)| format!("{name}[{}]", index - at))
    }

    /// The shape of the pictures.
    pub(crate) fn shape(&self) -> Option<PixelShape> {
        let (frames, channels) = (self.frames, self.channels);
        self.picture.map(|[width, height]| PixelShape { frames, height, width, channels })
    }

    /// The shape of the depth picture.
    pub(crate) fn depth_shape(&self) -> Option<PixelShape> {
        self.shape().filter(|_| self.depth).map(|shape| PixelShape { channels: 1, ..shape })
    }

    pub(crate) fn picture_bytes(&self) -> usize {
        self.shape().map_or(0, |shape| shape.frames * shape.frame_len())
    }

    pub(crate) fn depth_bytes(&self) -> usize {
        self.depth_shape().map_or(0, PixelShape::frame_len)
    }

    /// The specification of the world, with the name `id`.
    pub(crate) fn spec(&self, id: &str) -> EnvSpec {
        let numbers = ObservationSpace::Vector { len: self.numbers };
        let observation = match self.shape().map(ObservationSpace::Image) {
            Some(image) if self.numbers == 0 && !self.depth => image,
            Some(image) => {
                let depth = self.depth_shape().map(|shape| (DEPTH, ObservationSpace::Image(shape)));
                let numbers = (self.numbers > 0).then_some((SENSORS, numbers));
                let parts = [Some((IMAGE, image)), depth, numbers].into_iter().flatten();
                ObservationSpace::Dict(parts.map(|(name, part)| (name.to_owned(), part)).collect())
            }
            None => numbers,
        };
        let action = match self.choices {
            0 => ActionSpace::Box { low: self.low.clone(), high: self.high.clone() },
            n => ActionSpace::Discrete { n },
        };
        let fps =
            if self.fps.is_finite() && (0.1..=1000.0).contains(&self.fps) { self.fps } else { USUAL_FPS };
        EnvSpec { id: id.to_owned(), observation, action, max_steps: self.max_steps, fps }
    }
}
