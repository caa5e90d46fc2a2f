//! The sensors of an observation, which shifts of senses rearrange.

use foveate_core::{PixelShape, Pixels};

/// The place of a sensor that the world does not have.
pub(super) const NOWHERE: u32 = u32::MAX;

/// One sensor of the observation that the agent gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensor {
    /// The index of the world's sensor; `u32::MAX` for one that the world does not have.
    pub from: u32,
    /// The value of a sensor that the world does not have.
    pub value: f32,
    /// True if it is there; one that is not is black in a picture, and left out of a vector.
    pub present: bool,
}

/// The sensors of an observation, in the order in which the agent gets them.
#[derive(Debug, Clone, Default)]
pub struct Sensors {
    /// In order; operators move, add and switch them off.
    pub list: Vec<Sensor>,
}

impl Sensors {
    /// The world's own `count` sensors. Allocates when there were never so many.
    pub(super) fn begin(&mut self, count: usize) {
        self.list.clear();
        self.list.extend((0..count as u32).map(|from| Sensor { from, value: 0.0, present: true }));
    }

    /// Writes the numbers of the sensors that are there to `out`, and where each comes from to `order`.
    pub(super) fn numbers(&self, world: &[f32], out: &mut Vec<f32>, order: &mut Vec<u32>) {
        out.clear();
        order.clear();
        for sensor in self.list.iter().filter(|sensor| sensor.present) {
            out.push(world.get(sensor.from as usize).copied().unwrap_or(sensor.value));
            order.push(sensor.from);
        }
    }

    /// Puts the patches of `world`, `patch` pixels on a side, into `out`, black where one is missing; as many as the
    /// world has.
    pub(super) fn patches(&self, world: Pixels<'_>, patch: usize, out: &mut [u8], order: &mut Vec<u32>) {
        let PixelShape { height, width, channels, .. } = world.shape();
        let (columns, frame) = (width / patch, world.shape().frame_len());
        order.clear();
        order.extend(self.list.iter().map(|sensor| sensor.from));
        let (row, stride) = (patch * channels, width * channels);
        let at =
            |index: usize, line: usize| (index / columns * patch + line) * stride + index % columns * row;
        debug_assert_eq!(self.list.len(), columns * (height / patch));
        for (source, target) in world.bytes().chunks_exact(frame).zip(out.chunks_exact_mut(frame)) {
            for (i, sensor) in self.list.iter().enumerate() {
                for line in 0..patch {
                    let target = &mut target[at(i, line)..][..row];
                    if sensor.present {
                        target.copy_from_slice(&source[at(sensor.from as usize, line)..][..row]);
                    } else {
                        target.fill(0);
                    }
                }
            }
        }
    }
}
