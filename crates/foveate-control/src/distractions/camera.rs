//! A camera that is elsewhere, and moves.

use std::f64::consts::PI;

use foveate_core::{Rng, Seed};
use foveate_render::Camera;

use super::Strength;
use crate::task::Scenery;

type V3 = [f64; 3];

/// A camera on a random walk in spherical coordinates around the agent, or around the origin where the camera does not move with
/// the agent. It looks where the original camera looks, at the agent's distance.
#[derive(Debug, Clone)]
pub(crate) struct CameraWalk {
    pub(super) random: Rng,
    strength: Strength,
    moving: bool,
    upper_half: bool,
    /// Radius in m, horizontal angle, vertical angle from the pole, roll; angles in rad.
    place: [f64; 4],
    /// The range of each.
    ranges: [[f64; 2]; 4],
    /// Velocity in m per step.
    velocity: V3,
    /// Change of the roll per step.
    rolling: f64,
    /// Where the original camera looked at the start.
    target: V3,
    /// The radius at the start over 4 m; velocities are in proportion to it.
    unit: f64,
}

impl CameraWalk {
    pub(super) fn new(strength: Strength, scenery: &Scenery) -> Self {
        CameraWalk {
            random: Seed::root(0).rng(),
            strength,
            moving: scenery.moving_camera,
            upper_half: scenery.upper_half,
            place: [0.0; 4],
            ranges: [[0.0; 2]; 4],
            velocity: [0.0; 3],
            rolling: 0.0,
            target: [0.0; 3],
            unit: 1.0,
        }
    }

    /// Begins an episode; `camera` is the original one and `center` the agent's centre of mass.
    pub(super) fn begin(&mut self, camera: &Camera, center: V3) {
        let Strength { scale, dynamic } = self.strength;
        let position = camera.position.map(f64::from);
        self.target = looked_at(camera, center);
        let [radius, horizontal, vertical] =
            to_sphere(if self.moving { sub(position, center) } else { position });
        self.unit = radius / 4.0;
        let around = |angle: f64| [angle - 0.5 * PI * scale, angle + 0.5 * PI * scale];
        let (mut horizontal, mut vertical) = (around(horizontal), around(vertical));
        if self.upper_half {
            horizontal = [horizontal[0].max(-PI), horizontal[1].min(0.0)];
            vertical = [vertical[0].max(0.0), vertical[1].min(0.5 * PI)];
        }
        let radius = [(radius * (1.0 - 0.5 * scale)).max(0.0), radius * (1.0 + 1.5 * scale)];
        self.ranges = [radius, horizontal, vertical, around(0.0)];
        // The suite's order of draws.
        for i in [1, 2, 0, 3] {
            let [low, high] = self.ranges[i];
            self.place[i] = self.random.uniform(low, high);
        }
        let direction: V3 = std::array::from_fn(|_| self.random.normal());
        let speed = self.random.uniform(0.0, if dynamic { 0.4 * scale } else { 0.0 });
        let length = length(direction);
        self.velocity = direction.map(|x| x / length * speed);
        let most = self.most_rolling();
        self.rolling = self.random.uniform(-most, most);
        self.advance();
    }

    fn most_rolling(&self) -> f64 {
        if self.strength.dynamic { PI / 50.0 * self.strength.scale } else { 0.0 }
    }

    /// Moves by a step.
    pub(super) fn advance(&mut self) {
        let Strength { scale, dynamic } = self.strength;
        if !dynamic {
            return;
        }
        for velocity in &mut self.velocity {
            *velocity += self.random.normal() * 0.1 * scale * self.unit;
        }
        self.rolling += self.random.normal() * PI / 300.0 * scale;
        let (speed, most) = (length(self.velocity), 0.4 * scale * self.unit);
        if speed > most {
            self.velocity = self.velocity.map(|x| x * most / speed);
        }
        let most = self.most_rolling();
        self.rolling = self.rolling.clamp(-most, most);

        let before = to_point(&self.place);
        let wanted = to_sphere(std::array::from_fn(|i| before[i] + self.velocity[i]));
        for ((place, wanted), [low, high]) in self.place.iter_mut().zip(wanted).zip(self.ranges) {
            *place = wanted.clamp(low, high);
        }
        self.velocity = sub(to_point(&self.place), before);
        let roll = (self.place[3] + self.rolling).clamp(self.ranges[3][0], self.ranges[3][1]);
        self.rolling = roll - self.place[3];
        self.place[3] = roll;
    }

    /// The camera in place of `camera`, the original one at this moment.
    pub(super) fn place(&self, camera: &Camera, center: V3) -> Camera {
        let around = to_point(&self.place);
        let (position, target) = if self.moving {
            (std::array::from_fn(|i| around[i] + center[i]), looked_at(camera, center))
        } else {
            (around, self.target)
        };
        let forward = unit(sub(target, position));
        let (right, up) = if self.upper_half { level(forward) } else { turned_from_below(forward) };
        let (sin, cos) = self.place[3].sin_cos();
        let up: V3 = std::array::from_fn(|i| cos * up[i] - sin * right[i]);
        let [position, forward, up] = [position, forward, up].map(|v: V3| v.map(|x| x as f32));
        Camera { position, forward, up, ..*camera }
    }
}

/// The point on the axis of `camera` as far away as `center`.
fn looked_at(camera: &Camera, center: V3) -> V3 {
    let position = camera.position.map(f64::from);
    let distance = length(sub(position, center));
    std::array::from_fn(|i| position[i] + distance * f64::from(camera.forward[i]))
}

/// Right and up of a camera that looks along `forward` without roll.
fn level(forward: V3) -> (V3, V3) {
    let right = unit([forward[1], -forward[0], 0.0]);
    (right, cross(right, forward))
}

/// Right and up of a camera that looked straight down, with x to the right, and was turned towards `forward` on the shortest way.
fn turned_from_below(forward: V3) -> (V3, V3) {
    // The axis lies in the plane z = 0.
    let across = [forward[1], -forward[0], 0.0];
    let sin = length(across);
    let cos = -forward[2];
    let [a, b, _] = across.map(|x| x / (sin + 1e-4));
    let right = [cos + a * a * (1.0 - cos), a * b * (1.0 - cos), -b * sin];
    let up = [a * b * (1.0 - cos), cos + b * b * (1.0 - cos), a * sin];
    (right, up)
}

/// Radius, horizontal angle, vertical angle from the pole.
fn to_sphere(point: V3) -> V3 {
    let aside = point[0].hypot(point[1]);
    [length(point), point[1].atan2(point[0]), aside.atan2(point[2])]
}

fn to_point(&[radius, horizontal, vertical, _]: &[f64; 4]) -> V3 {
    let aside = radius * vertical.sin();
    [aside * horizontal.cos(), aside * horizontal.sin(), radius * vertical.cos()]
}

fn sub(a: V3, b: V3) -> V3 {
    std::array::from_fn(|i| a[i] - b[i])
}

fn length(a: V3) -> f64 {
    (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt()
}

fn unit(a: V3) -> V3 {
    let length = length(a);
    a.map(|x| x / length)
}

fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TASKS;

    fn original(upper_half: bool) -> Camera {
        if upper_half {
            Camera {
                position: [0.0, -3.0, 1.0],
                forward: [0.0, 0.8, -0.6],
                up: [0.0, 0.6, 0.8],
                ..Camera::default()
            }
        } else {
            Camera {
                position: [0.0, 0.0, 0.75],
                forward: [0.0, 0.0, -1.0],
                up: [0.0, 1.0, 0.0],
                ..Camera::default()
            }
        }
    }

    #[test]
    fn without_strength_it_is_the_original_camera() {
        for task in TASKS {
            let camera = original(task.scenery.upper_half);
            for dynamic in [false, true] {
                let mut walk = CameraWalk::new(Strength { scale: 0.0, dynamic }, &task.scenery);
                let center = [0.1, 0.05, 0.3];
                walk.begin(&camera, center);
                for _ in 0..3 {
                    walk.advance();
                }
                let placed = walk.place(&camera, center);
                for (ours, theirs) in [
                    (placed.position, camera.position),
                    (placed.forward, camera.forward),
                    (placed.up, camera.up),
                ] {
                    let apart = (0..3).map(|i| (ours[i] - theirs[i]).abs()).fold(0.0, f32::max);
                    assert!(apart < 2e-4, "{}: {ours:?} for {theirs:?}", task.name);
                }
            }
        }
    }

    #[test]
    fn it_stays_in_its_ranges_and_moves_at_most_as_fast_as_it_may() {
        for task in TASKS {
            let camera = original(task.scenery.upper_half);
            let scale = 0.3;
            let mut walk = CameraWalk::new(Strength { scale, dynamic: true }, &task.scenery);
            let mut widest: f64 = 0.0;
            for episode in 0..20 {
                walk.random = Seed::root(episode).rng();
                walk.begin(&camera, [0.0; 3]);
                for _ in 0..200 {
                    let before = to_point(&walk.place);
                    walk.advance();
                    let step = length(sub(to_point(&walk.place), before));
                    // Clipping to the ranges can only shorten a step in each coordinate, not in space.
                    assert!(step < 2.0 * 0.4 * scale * walk.unit + 1e-9, "{}: {step}", task.name);
                    for (value, [low, high]) in walk.place.iter().zip(walk.ranges) {
                        assert!((low..=high).contains(value), "{}: {value} of {low} to {high}", task.name);
                    }
                    widest = widest.max(walk.place[3].abs());
                    let placed = walk.place(&camera, [0.0; 3]);
                    let dot: f32 = (0..3).map(|i| placed.forward[i] * placed.up[i]).sum();
                    assert!(dot.abs() < 1e-3, "{}: {dot}", task.name);
                }
            }
            assert!(widest > 0.2, "{}: it rolls, by {widest} at most", task.name);
        }
    }
}
