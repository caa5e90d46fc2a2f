//! A scripted driver that knows the track: pure pursuit of the centre line, at a speed that the bends ahead
//! allow.
//!
//! It is an expert for imitation and a reference score, not an agent: it uses the world's state instead of
//! the picture. It steers by Coulter's method ("Implementation of the pure pursuit path tracking algorithm",
//! 1992): towards the point of the centre line at some distance ahead, further at higher speed. Its
//! parameters are chosen to be easy to imitate, with a safety margin in every bend; a faster driver would
//! finish sooner but leave a learner no margin for error.

use std::f64::consts::{PI, TAU};

use super::scene::Body;
use super::track::{HALF_WIDTH, TrackPoint};

/// The driver's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Style {
    /// Distance of the target point at rest, units; and its increase per unit per second of speed.
    pub(super) look_ahead: [f64; 2],
    /// Steering per radian between heading and target point, and counter-steering per radian per second of
    /// rotation.
    pub(super) steer: [f64; 2],
    /// Speed on straights, units per second.
    pub(super) top_speed: f64,
    /// Lateral acceleration in bends, units per second squared.
    pub(super) side_grip: f64,
    /// Deceleration assumed before a bend, units per second squared.
    pub(super) slow_down: f64,
    /// Look-ahead distance for bends, units: slightly less than a picture shows.
    pub(super) sight: f64,
    /// Gas per unit per second below the target speed, and the maximum gas.
    pub(super) gas: [f64; 2],
    /// Share of the gas that full steering removes.
    pub(super) ease_off: f64,
    /// Brake per unit per second above the target speed, and the excess speed at which braking starts.
    pub(super) brake: [f64; 2],
}

impl Style {
    /// The driver used as the expert.
    pub(super) const TEACHER: Style = Style {
        look_ahead: [6.0, 0.2],
        steer: [2.5, 0.05],
        top_speed: 75.0,
        side_grip: 120.0,
        slow_down: 40.0,
        sight: 35.0,
        gas: [0.05, 0.6],
        ease_off: 0.5,
        brake: [0.02, 5.0],
    };
}

/// Speed, units per second, when further than this from the centre line, units: off the road.
const OFF_ROAD: (f64, f64) = (35.0, 7.0);
/// Speed when the target point lies this far off the heading, radians: the car has to turn round.
const TURNED: (f64, f64) = (20.0, 1.0);
/// Number of tiles behind and ahead of the last nearest one that are searched for the next: a track may pass
/// close to itself.
const NEAR: (usize, usize) = (6, 25);
/// The maximum brake; the wheels lock at 0.9.
const MOST_BRAKE: f64 = 0.8;

/// The driver with its state during the episode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Driver {
    /// The nearest tile in the previous step, if any.
    nearest: Option<usize>,
}

impl Driver {
    /// Returns steering (−1 full left to 1 full right), gas and brake for a car with this hull, on a track of
    /// at least one point.
    pub(super) fn act(&mut self, style: &Style, hull: &Body, track: &[TrackPoint]) -> [f64; 3] {
        let line = CentreLine(track);
        let position = hull.position.map(f64::from);
        let angle = f64::from(hull.angle);
        let (here, off) = line.nearest(position, self.nearest);
        self.nearest = Some(here);
        let [vx, vy] = hull.velocity.map(f64::from);
        let speed = vy * angle.cos() - vx * angle.sin();

        let target = line.ahead(here, style.look_ahead[0] + style.look_ahead[1] * speed.max(0.0));
        let aside = turn(heading(position, target) - angle);
        let steer = -(style.steer[0] * aside - style.steer[1] * f64::from(hull.spin)).clamp(-1.0, 1.0);

        let mut wanted = line.safe_speed(here, style);
        for (is_so, limit) in [(off > OFF_ROAD.1, OFF_ROAD.0), (aside.abs() > TURNED.1, TURNED.0)] {
            wanted = if is_so { wanted.min(limit) } else { wanted };
        }
        let gas = (style.gas[0] * (wanted - speed)).clamp(0.0, style.gas[1]);
        let brake = (style.brake[0] * (speed - wanted - style.brake[1])).clamp(0.0, MOST_BRAKE);
        [steer, gas * (1.0 - style.ease_off * steer.abs()), brake]
    }
}

/// Lengths of road ahead over which [`situation`] tells how it bends, from and to, units.
const BENDS: [(&str, f64, f64); 2] = [("bend ahead", 0.0, 12.0), ("bend further on", 12.0, 30.0)];

/// How a car with this hull lies on the road, see [`Env::situation`](foveate_core::Env::situation).
pub(super) fn situation(hull: &Body, track: &[TrackPoint]) -> [(&'static str, f64); 6] {
    let line = CentreLine(track);
    let position = hull.position.map(f64::from);
    let angle = f64::from(hull.angle);
    let (here, _) = line.nearest(position, None);
    let along = line.heading(here);
    let [x, y] = line.point(here);
    // How far the car is to the left of the line.
    let left = (x - position[0]) * along.cos() + (y - position[1]) * along.sin();
    let [vx, vy] = hull.velocity.map(f64::from);
    let bend = |from: f64, to: f64| {
        let mut before = line.ahead(here, from);
        let (mut sum, mut last) = (0.0, None);
        let pieces = 4;
        for i in 1..=pieces {
            let next = line.ahead(here, from + (to - from) * f64::from(i) / f64::from(pieces));
            let towards = heading(before, next);
            sum += last.map_or(0.0, |last| turn(towards - last));
            (before, last) = (next, Some(towards));
        }
        sum / (to - from)
    };
    let [near, far] = BENDS.map(|(name, from, to)| (name, bend(from, to)));
    [
        ("left edge", HALF_WIDTH - left),
        ("right edge", HALF_WIDTH + left),
        ("heading of the road", turn(along - angle)),
        near,
        far,
        ("speed", vx.hypot(vy)),
    ]
}

/// The closed centre line of a track.
struct CentreLine<'a>(&'a [TrackPoint]);

impl CentreLine<'_> {
    /// Point `i`, modulo the length of the track.
    fn point(&self, i: usize) -> [f64; 2] {
        let TrackPoint { x, y, .. } = self.0[i % self.0.len()];
        [x, y]
    }

    /// Direction of the line at point `i`.
    fn heading(&self, i: usize) -> f64 {
        heading(self.point(i), self.point(i + 1))
    }

    /// The point nearest to `position` and its distance; searches around `last`, or all points without it.
    fn nearest(&self, position: [f64; 2], last: Option<usize>) -> (usize, f64) {
        let n = self.0.len();
        let among = last.map_or(0..n, |last| {
            let first = last + n - NEAR.0.min(n);
            first..first + (NEAR.0 + NEAR.1).min(n)
        });
        let of = |i: usize| (i % n, distance(self.point(i), position));
        among.map(of).fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
    }

    /// The position at distance `length` along the line from point `from`.
    fn ahead(&self, from: usize, length: f64) -> [f64; 2] {
        let mut left = length;
        for i in from..from + self.0.len() {
            let ([ax, ay], [bx, by]) = (self.point(i), self.point(i + 1));
            let piece = distance([ax, ay], [bx, by]);
            if left <= piece {
                let share = left / piece.max(1e-9);
                return [ax + share * (bx - ax), ay + share * (by - ay)];
            }
            left -= piece;
        }
        self.point(from)
    }

    /// The highest speed that still allows slowing down for every visible bend: v² = grip / curvature in the
    /// bend, plus 2 · deceleration · distance before it.
    fn safe_speed(&self, from: usize, style: &Style) -> f64 {
        let n = self.0.len();
        let (mut speed, mut way) = (style.top_speed, 0.0);
        for i in from..from + n {
            if way >= style.sight {
                break;
            }
            // Measured over three segments of the line, because single ones are noisy; the segment behind is
            // included.
            let bend = turn(self.heading(i + 2) - self.heading(i + n - 1)).abs();
            let length: f64 =
                (i + n - 1..i + n + 2).map(|j| distance(self.point(j), self.point(j + 1))).sum();
            let in_bend = style.side_grip * length / bend.max(1e-3 * length);
            speed = speed.min((in_bend + 2.0 * style.slow_down * way).sqrt());
            way += distance(self.point(i), self.point(i + 1));
        }
        speed
    }
}

/// Direction from `a` to `b`, radians; 0 is towards +y, as for bodies and tracks.
fn heading([ax, ay]: [f64; 2], [bx, by]: [f64; 2]) -> f64 {
    (ax - bx).atan2(by - ay)
}

fn distance([ax, ay]: [f64; 2], [bx, by]: [f64; 2]) -> f64 {
    (bx - ax).hypot(by - ay)
}

/// Normalises an angle to −π to π.
fn turn(angle: f64) -> f64 {
    let rest = angle.rem_euclid(TAU);
    if rest > PI { rest - TAU } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_situation_is_that_of_the_road() {
        // A straight of 100 units towards +y, and a bend to the left, of radius 50, behind it.
        let point = |x: f64, y: f64| TrackPoint { alpha: 0.0, beta: 0.0, x, y };
        let straight = (0..50).map(|i| point(0.0, 2.0 * f64::from(i)));
        let bend = (0..60).map(|i| {
            let angle = 0.04 * f64::from(i);
            point(50.0 * angle.cos() - 50.0, 100.0 + 50.0 * angle.sin())
        });
        let track: Vec<TrackPoint> = straight.chain(bend).collect();
        let hull =
            |y: f32| Body { position: [-2.0, y], angle: -0.1, velocity: [3.0, 4.0], ..Body::default() };
        let quantities = situation(&hull(20.0), &track);
        let expect = [HALF_WIDTH - 2.0, HALF_WIDTH + 2.0, 0.1, 0.0, 0.0, 5.0];
        assert!(quantities.iter().zip(expect).all(|((_, a), b)| (a - b).abs() < 1e-6), "{quantities:?}");
        let names: Vec<&str> = quantities.iter().map(|(name, _)| *name).collect();
        assert_eq!(names[..3], ["left edge", "right edge", "heading of the road"]);
        let [_, _, _, (_, near), (_, far), _] = situation(&hull(110.0), &track);
        // Four pieces have three bends between them.
        assert!([near, far].iter().all(|bend| (0.012..0.021).contains(bend)), "{near} {far}");
    }
}
