//! What a world shows: numbers, a picture, or both.

use foveate_core::{IMAGE, ImageBuf, Observation, ObservationSpace, Parts, PixelShape, SENSORS};

/// What a world's observation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Numbers of the state.
    State,
    /// What a camera sees.
    Pixels,
    /// A dict of both, [`IMAGE`] and [`SENSORS`].
    Both,
}

impl Shown {
    /// The space of so many `numbers` and of pictures of this width and height.
    pub(crate) fn space(self, numbers: usize, [width, height]: [usize; 2]) -> ObservationSpace {
        let vector = ObservationSpace::Vector { len: numbers };
        let image = ObservationSpace::Image(PixelShape::rgb(width, height));
        match self {
            Shown::State => vector,
            Shown::Pixels => image,
            Shown::Both => ObservationSpace::Dict(vec![(IMAGE.into(), image), (SENSORS.into(), vector)]),
        }
    }
}

/// The parts of an observation.
#[derive(Debug, Clone)]
pub(crate) struct ShownParts {
    shown: Shown,
    pub(crate) numbers: Vec<f32>,
    /// Empty for a world of numbers alone.
    pub(crate) picture: ImageBuf,
}

impl ShownParts {
    pub(crate) fn new(shown: Shown, numbers: usize, [width, height]: [usize; 2]) -> Self {
        let picture =
            if shown == Shown::State { ImageBuf::black(0, 0) } else { ImageBuf::black(width, height) };
        ShownParts { shown, numbers: vec![0.0; numbers], picture }
    }

    pub(crate) fn observation(&self) -> Observation<'_> {
        match self.shown {
            Shown::State => Observation::Vector(&self.numbers),
            Shown::Pixels => Observation::rgb(self.picture.as_image()),
            Shown::Both => Observation::Dict(self),
        }
    }
}

impl Parts for ShownParts {
    fn count(&self) -> usize {
        2
    }

    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        match index {
            0 => Some((IMAGE, Observation::rgb(self.picture.as_image()))),
            1 => Some((SENSORS, Observation::Vector(&self.numbers))),
            _ => None,
        }
    }
}
