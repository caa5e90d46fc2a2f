//! Random closed tracks: Gymnasium's `car_racing.py`, `_create_track`, with the same random draws and
//! operations in the same order.

use super::scene::{Paint, RoadQuad};
use crate::random::Stream;
use std::f64::consts::PI;

const SCALE: f64 = 6.0;
const TRACK_RAD: f64 = 900.0 / SCALE;
const DETAIL_STEP: f64 = 21.0 / SCALE;
const TURN_RATE: f64 = 0.31;
/// Half the width of the road, units.
pub(super) const HALF_WIDTH: f64 = 40.0 / SCALE;
const BORDER: f64 = 8.0 / SCALE;
const BORDER_MIN_COUNT: usize = 4;
const CHECKPOINTS: usize = 12;
const MAX_POINTS: usize = 2500;

/// A point of the centre line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackPoint {
    /// Angle of the point as seen from the origin, radians.
    pub alpha: f64,
    /// Heading of the track there, radians; 0 is towards +y.
    pub beta: f64,
    /// Position.
    pub x: f64,
    /// Position.
    pub y: f64,
}

/// A closed track and its quadrilaterals for drawing.
#[derive(Debug, Clone, Default)]
pub struct Track {
    /// Centre line; the car starts at point 0.
    pub points: Vec<TrackPoint>,
    /// Tiles in order, each followed by its kerb where it has one.
    pub road: Vec<RoadQuad>,
    /// Index of tile `i` in `road`.
    pub tiles: Vec<u32>,
    walk: Vec<TrackPoint>,
    kerbs: Vec<bool>,
}

impl Track {
    /// Generates tracks from `stream` until one is closed.
    pub fn create(&mut self, stream: &mut Stream) {
        while !self.try_create(stream) {}
    }

    fn try_create(&mut self, stream: &mut Stream) -> bool {
        let (checkpoints, start_alpha) = checkpoints(stream);
        walk(&checkpoints, &mut self.walk);
        let Some(lap) = closed_lap(&self.walk, start_alpha) else { return false };
        self.points.clear();
        self.points.extend_from_slice(&self.walk[lap]);
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return false };
        let (x, y) = (first.beta.cos() * (first.x - last.x), first.beta.sin() * (first.y - last.y));
        if (x * x + y * y).sqrt() > DETAIL_STEP {
            return false;
        }
        flag_kerbs(&self.points, &mut self.kerbs);
        self.lay_road();
        true
    }

    fn lay_road(&mut self) {
        self.road.clear();
        self.tiles.clear();
        for (i, here) in self.points.iter().enumerate() {
            let before = &self.points[if i == 0 { self.points.len() - 1 } else { i - 1 }];
            let beside = |p: &TrackPoint, side: f64, distance: f64| {
                [p.x + side * distance * p.beta.cos(), p.y + side * distance * p.beta.sin()]
            };
            self.tiles.push(self.road.len() as u32);
            self.road.push(RoadQuad {
                corners: [
                    beside(here, -1.0, HALF_WIDTH),
                    beside(here, 1.0, HALF_WIDTH),
                    beside(before, 1.0, HALF_WIDTH),
                    beside(before, -1.0, HALF_WIDTH),
                ],
                paint: Paint::Road { stripe: (i % 3) as u8 },
            });
            if self.kerbs[i] {
                let side = sign(before.beta - here.beta);
                self.road.push(RoadQuad {
                    corners: [
                        beside(here, side, HALF_WIDTH),
                        beside(here, side, HALF_WIDTH + BORDER),
                        beside(before, side, HALF_WIDTH + BORDER),
                        beside(before, side, HALF_WIDTH),
                    ],
                    paint: if i % 2 == 0 { Paint::White } else { Paint::Red },
                });
            }
        }
    }
}

/// `numpy.sign`: zero for zero of either sign.
pub(super) fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

struct Checkpoint {
    alpha: f64,
    x: f64,
    y: f64,
}

/// The checkpoints and the angle at which a lap starts. Every checkpoint uses two draws, including the fixed
/// ones.
fn checkpoints(stream: &mut Stream) -> ([Checkpoint; CHECKPOINTS], f64) {
    let count = CHECKPOINTS as f64;
    let points = std::array::from_fn(|c| {
        let noise = stream.uniform(0.0, 2.0 * PI * 1.0 / count);
        let mut alpha = 2.0 * PI * c as f64 / count + noise;
        let mut radius = stream.uniform(TRACK_RAD / 3.0, TRACK_RAD);
        if c == 0 {
            alpha = 0.0;
            radius = 1.5 * TRACK_RAD;
        }
        if c == CHECKPOINTS - 1 {
            alpha = 2.0 * PI * c as f64 / count;
            radius = 1.5 * TRACK_RAD;
        }
        Checkpoint { alpha, x: radius * alpha.cos(), y: radius * alpha.sin() }
    });
    (points, 2.0 * PI * -0.5 / count)
}

/// Walks from checkpoint to checkpoint for five laps, or until the maximum number of steps.
fn walk(checkpoints: &[Checkpoint; CHECKPOINTS], track: &mut Vec<TrackPoint>) {
    track.clear();
    let (mut x, mut y, mut beta) = (1.5 * TRACK_RAD, 0.0_f64, 0.0_f64);
    let mut target = 0;
    let mut laps = 0;
    let mut visited_other_side = false;
    loop {
        let mut alpha = y.atan2(x);
        if visited_other_side && alpha > 0.0 {
            laps += 1;
            visited_other_side = false;
        }
        if alpha < 0.0 {
            visited_other_side = true;
            alpha += 2.0 * PI;
        }
        // The next checkpoint ahead; past the last one the angle wraps.
        let goal = 'found: loop {
            loop {
                let candidate = &checkpoints[target % CHECKPOINTS];
                if alpha <= candidate.alpha {
                    break 'found candidate;
                }
                target += 1;
                if target % CHECKPOINTS == 0 {
                    break;
                }
            }
            alpha -= 2.0 * PI;
        };
        let (across_x, across_y) = (beta.cos(), beta.sin());
        let (along_x, along_y) = (-across_y, across_x);
        let mut off = across_x * (goal.x - x) + across_y * (goal.y - y);
        while beta - alpha > 1.5 * PI {
            beta -= 2.0 * PI;
        }
        while beta - alpha < -1.5 * PI {
            beta += 2.0 * PI;
        }
        let beta_before = beta;
        off *= SCALE;
        if off > 0.3 {
            beta -= TURN_RATE.min((0.001 * off).abs());
        }
        if off < -0.3 {
            beta += TURN_RATE.min((0.001 * off).abs());
        }
        x += along_x * DETAIL_STEP;
        y += along_y * DETAIL_STEP;
        track.push(TrackPoint { alpha, beta: beta_before * 0.5 + beta * 0.5, x, y });
        if laps > 4 || track.len() == MAX_POINTS {
            return;
        }
    }
}

/// The last complete lap, between the last two crossings of `start_alpha`, without its last point.
fn closed_lap(track: &[TrackPoint], start_alpha: f64) -> Option<std::ops::Range<usize>> {
    let mut crossings =
        (1..track.len()).rev().filter(|&i| track[i].alpha > start_alpha && track[i - 1].alpha <= start_alpha);
    let end = crossings.next()?;
    let begin = crossings.next()?;
    Some(begin..end - 1)
}

/// Places kerbs where the last four turns were sharp and in the same direction, and on the three points
/// before.
fn flag_kerbs(track: &[TrackPoint], kerbs: &mut Vec<bool>) {
    let n = track.len();
    let back = |i: usize, k: usize| (i + n - k % n) % n;
    kerbs.clear();
    kerbs.extend((0..n).map(|i| {
        let mut hard = true;
        let mut side = 0.0;
        for k in 0..BORDER_MIN_COUNT {
            let turn = track[back(i, k)].beta - track[back(i, k + 1)].beta;
            hard &= turn.abs() > TURN_RATE * 0.2;
            side += sign(turn);
        }
        hard && side.abs() == BORDER_MIN_COUNT as f64
    }));
    // In place and in increasing order, as in the reference: a flag that wraps to the end spreads again
    // there.
    for i in 0..n {
        for k in 0..BORDER_MIN_COUNT {
            let before = back(i, k);
            kerbs[before] |= kerbs[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Mt19937, Pcg64};

    #[test]
    fn tile_counts_are_gymnasiums() {
        let counts: Vec<usize> = (0..12)
            .map(|seed| {
                let mut track = Track::default();
                track.create(&mut Stream::Gymnasium(Pcg64::seeded(seed)));
                track.points.len()
            })
            .collect();
        assert_eq!(counts, [319, 275, 335, 271, 275, 329, 284, 319, 251, 285, 301, 259]);
    }

    #[test]
    fn tile_counts_of_the_old_stream_are_gyms() {
        let mut stream = Stream::Gym0153(Box::new(Mt19937::gym_seeded(1)));
        let mut track = Track::default();
        let counts: Vec<usize> = (0..25)
            .map(|_| {
                track.create(&mut stream);
                track.points.len()
            })
            .collect();
        // CarRacing-v0 of gym 0.15.3, seeded once with 1.
        let expected = [
            276, 277, 316, 300, 319, 255, 291, 296, 287, 268, 305, 281, 247, 273, 297, 289, 244, 334, 262,
            297, 321, 332, 319, 327, 360,
        ];
        assert_eq!(counts, expected);
    }
}
