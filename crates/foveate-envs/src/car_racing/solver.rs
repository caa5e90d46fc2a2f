//! One step of Box2D 2.3's island solver, for a single island: a hull and four wheels on revolute joints.
//!
//! All arithmetic is f32 in Box2D's order, so results are bit-identical. Values that Box2D recomputes in each
//! of its 180 velocity iterations although they are constant are computed once; when an iteration returns to
//! an earlier state, the remaining iterations are known and skipped. Wheel anchors are the wheels' centres,
//! so terms with the wheel's lever arm vanish and are omitted. Joints are solved last wheel first, the order
//! of Box2D's list.
//!
//! The method is that of Erin Catto's Box2D (zlib licence); this is a rewrite for one special case.

#![allow(clippy::needless_range_loop)] // wheel, joint and impulse share the index i

use super::scene::Body;
use super::shape::{HULL_MASS, Mass, WHEEL_MASS};

const DT: f32 = 0.02;
const VELOCITY_ITERATIONS: usize = 180;
const POSITION_ITERATIONS: usize = 60;
const PI: f32 = std::f32::consts::PI;
const LINEAR_SLOP: f32 = 0.005;
const ANGULAR_SLOP: f32 = 2.0 / 180.0 * PI;
const MAX_ANGULAR_CORRECTION: f32 = 8.0 / 180.0 * PI;
const MAX_TRANSLATION: f32 = 2.0;
const MAX_ROTATION: f32 = 0.5 * PI;
const TIME_TO_SLEEP: f32 = 0.5;
const LINEAR_SLEEP_TOLERANCE: f32 = 0.01;
const LOWER_ANGLE: f32 = -0.4;
const UPPER_ANGLE: f32 = 0.4;
const MAX_MOTOR_TORQUE: f32 = (180.0 * 900.0 * 0.02 * 0.02) as f32;

/// A rigid body: a [`Body`] and its centre of mass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Rigid {
    /// Position, angle, velocities and transform.
    pub(super) body: Body,
    center: [f32; 2],
    sleep_time: f32,
}

impl Rigid {
    /// A body at rest.
    fn at(position: [f32; 2], angle: f32, mass: &Mass) -> Self {
        let (sin, cos) = (angle.sin(), angle.cos());
        let body = Body { position, angle, sin, cos, velocity: [0.0; 2], spin: 0.0 };
        Rigid { body, center: body.to_world(mass.center), sleep_time: 0.0 }
    }

    fn integrate(&mut self) {
        let body = &mut self.body;
        let [x, y] = [DT * body.velocity[0], DT * body.velocity[1]];
        let squared = x * x + y * y;
        if squared > MAX_TRANSLATION * MAX_TRANSLATION {
            let ratio = MAX_TRANSLATION / squared.sqrt();
            body.velocity[0] *= ratio;
            body.velocity[1] *= ratio;
        }
        let rotation = DT * body.spin;
        if rotation * rotation > MAX_ROTATION * MAX_ROTATION {
            body.spin *= MAX_ROTATION / rotation.abs();
        }
        self.center[0] += DT * body.velocity[0];
        self.center[1] += DT * body.velocity[1];
        body.angle += DT * body.spin;
    }

    fn synchronise(&mut self, mass: &Mass) {
        let body = &mut self.body;
        body.sin = body.angle.sin();
        body.cos = body.angle.cos();
        body.position[0] = self.center[0] - (body.cos * mass.center[0] - body.sin * mass.center[1]);
        body.position[1] = self.center[1] - (body.sin * mass.center[0] + body.cos * mass.center[1]);
    }

    /// Updates the time at rest.
    fn rest(&mut self) -> f32 {
        let [x, y] = self.body.velocity;
        if self.body.spin * self.body.spin > ANGULAR_SLOP * ANGULAR_SLOP
            || x * x + y * y > LINEAR_SLEEP_TOLERANCE * LINEAR_SLEEP_TOLERANCE
        {
            self.sleep_time = 0.0;
        } else {
            self.sleep_time += DT;
        }
        self.sleep_time
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Limit {
    #[default]
    Inactive,
    Lower,
    Upper,
}

/// A revolute joint between the hull and a wheel's centre, with motor and limits.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Joint {
    /// Anchor in hull coordinates, relative to the hull's centre of mass.
    arm: [f32; 2],
    /// Accumulated impulses: x, y, limit, motor.
    impulse: [f32; 2],
    limit_impulse: f32,
    motor_impulse: f32,
    limit: Limit,
}

/// The car's five bodies and four joints.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Island {
    /// The car's body.
    pub(super) hull: Rigid,
    /// Wheels: front left, front right, rear left, rear right.
    pub(super) wheels: [Rigid; 4],
    joints: [Joint; 4],
}

/// The constants of a joint during the velocity iterations.
#[derive(Clone, Copy, Default)]
struct Prepared {
    arm: [f32; 2],
    k11: f32,
    k12: f32,
    k22: f32,
    k13: f32,
    k23: f32,
    k33: f32,
    /// One over the determinant of the 2 × 2 matrix.
    inverse2: f32,
    /// One over the determinant of the 3 × 3 matrix.
    inverse3: f32,
    /// Cross product of the second and third column.
    cross: [f32; 3],
    motor_mass: f32,
    motor_speed: f32,
    limit: Limit,
}

/// The state that one velocity iteration reads and writes, and that determines the next.
///
/// It excludes the accumulated x and y impulses: they are sums that are not read before the next step.
#[derive(Clone, Copy, PartialEq, Default)]
struct Velocities {
    hull: [f32; 3],
    wheels: [[f32; 3]; 4],
    motor: [f32; 4],
    limit: [f32; 4],
}

impl Velocities {
    /// Bitwise equality, so that a zero with another sign differs.
    fn same(&self, other: &Self) -> bool {
        let bits =
            |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0, |diff, (a, b)| diff | (a.to_bits() ^ b.to_bits()));
        bits(&self.hull, &other.hull) == 0
            && (bits(self.wheels.as_flattened(), other.wheels.as_flattened())
                | bits(&self.motor, &other.motor)
                | bits(&self.limit, &other.limit))
                == 0
    }
}

impl Island {
    /// A car at rest; `wheel_offsets` are the wheels' positions in hull coordinates in units of length.
    ///
    /// As in the reference, the offsets are *not* rotated by `angle`: the joints pull the wheels into place
    /// during the first steps.
    pub(super) fn place(position: [f64; 2], angle: f64, wheel_offsets: &[[f64; 2]; 4]) -> Self {
        let hull_mass = &*HULL_MASS;
        let angle = angle as f32;
        let at = |[x, y]: [f64; 2], mass| Rigid::at([x as f32, y as f32], angle, mass);
        Island {
            hull: at(position, hull_mass),
            wheels: wheel_offsets.map(|[x, y]| at([position[0] + x, position[1] + y], &WHEEL_MASS)),
            joints: wheel_offsets.map(|[x, y]| Joint {
                arm: [x as f32 - hull_mass.center[0], y as f32 - hull_mass.center[1]],
                ..Joint::default()
            }),
        }
    }

    /// Angle of wheel `i` relative to the hull.
    pub(super) fn joint_angle(&self, i: usize) -> f32 {
        self.wheels[i].body.angle - self.hull.body.angle
    }

    /// Advances 0.02 s; `forces` act on the wheels' centres, `motor_speeds` are the target speeds of the
    /// joints.
    pub(super) fn step(&mut self, forces: &[[f32; 2]; 4], motor_speeds: &[f32; 4]) {
        let masses = (*HULL_MASS, *WHEEL_MASS);
        self.solve_velocities(&masses, forces, motor_speeds);
        self.hull.integrate();
        for wheel in &mut self.wheels {
            wheel.integrate();
        }
        let settled = self.solve_positions(&masses);
        self.hull.synchronise(&masses.0);
        for wheel in &mut self.wheels {
            wheel.synchronise(&masses.1);
        }
        let rested = self.wheels.iter_mut().fold(self.hull.rest(), |least, wheel| least.min(wheel.rest()));
        if rested >= TIME_TO_SLEEP && settled {
            // The next step's motors wake all bodies, so the only effect of sleep is to stop them.
            for rigid in std::iter::once(&mut self.hull).chain(&mut self.wheels) {
                rigid.body.velocity = [0.0; 2];
                rigid.body.spin = 0.0;
                rigid.sleep_time = 0.0;
            }
        }
    }

    fn solve_velocities(&mut self, (hull, wheel): &(Mass, Mass), forces: &[[f32; 2]; 4], speeds: &[f32; 4]) {
        let (ma, ia) = (hull.per_unit_force, hull.per_unit_torque);
        let (mb, ib) = (wheel.per_unit_force, wheel.per_unit_torque);
        let mut now = Velocities::default();
        let body = &self.hull.body;
        now.hull = [body.velocity[0] + 0.0, body.velocity[1] + 0.0, body.spin + 0.0];
        for i in 0..4 {
            let body = &self.wheels[i].body;
            now.wheels[i] = [
                body.velocity[0] + DT * (0.0 + mb * forces[i][0]),
                body.velocity[1] + DT * (0.0 + mb * forces[i][1]),
                body.spin + 0.0,
            ];
        }
        let (sin, cos) = (self.hull.body.angle.sin(), self.hull.body.angle.cos());
        let mut prepared = [Prepared::default(); 4];
        for i in (0..4).rev() {
            let angle = self.wheels[i].body.angle - self.hull.body.angle;
            let joint = &mut self.joints[i];
            let limit = if angle <= LOWER_ANGLE {
                Limit::Lower
            } else if angle >= UPPER_ANGLE {
                Limit::Upper
            } else {
                Limit::Inactive
            };
            if limit != joint.limit || limit == Limit::Inactive {
                joint.limit_impulse = 0.0;
            }
            joint.limit = limit;
            let arm = [cos * joint.arm[0] - sin * joint.arm[1], sin * joint.arm[0] + cos * joint.arm[1]];
            prepared[i] = Prepared::new(arm, [ma, ia, mb, ib], speeds[i], limit);
            // Warm start.
            let [px, py] = joint.impulse;
            now.hull[0] -= ma * px;
            now.hull[1] -= ma * py;
            now.hull[2] -= ia * ((arm[0] * py - arm[1] * px) + joint.motor_impulse + joint.limit_impulse);
            let w = &mut now.wheels[i];
            w[0] += mb * px;
            w[1] += mb * py;
            w[2] += ib * (0.0 + joint.motor_impulse + joint.limit_impulse);
            now.motor[i] = joint.motor_impulse;
            now.limit[i] = joint.limit_impulse;
        }

        let mut sums = self.joints.map(|joint| joint.impulse);
        iterate(&prepared, [ma, ia, mb, ib], &mut now, &mut sums);

        let body = &mut self.hull.body;
        body.velocity = [now.hull[0], now.hull[1]];
        body.spin = now.hull[2];
        for i in 0..4 {
            let body = &mut self.wheels[i].body;
            body.velocity = [now.wheels[i][0], now.wheels[i][1]];
            body.spin = now.wheels[i][2];
            let joint = &mut self.joints[i];
            joint.impulse = sums[i];
            joint.limit_impulse = now.limit[i];
            joint.motor_impulse = now.motor[i];
        }
    }

    /// Corrects the positions of the wheels; returns whether the error is within tolerance.
    fn solve_positions(&mut self, (hull, wheel): &(Mass, Mass)) -> bool {
        let (ma, ia) = (hull.per_unit_force, hull.per_unit_torque);
        let (mb, ib) = (wheel.per_unit_force, wheel.per_unit_torque);
        let motor_mass = 1.0 / (ia + ib);
        for _ in 0..POSITION_ITERATIONS {
            let mut settled = true;
            for i in (0..4).rev() {
                let joint = &self.joints[i];
                let (ca, cb) = (&mut self.hull.center, &mut self.wheels[i].center);
                let (aa, ab) = (&mut self.hull.body.angle, &mut self.wheels[i].body.angle);
                let mut angular_error = 0.0;
                let angle = *ab - *aa;
                let correction = match joint.limit {
                    Limit::Inactive => None,
                    Limit::Lower => {
                        let off = angle - LOWER_ANGLE;
                        angular_error = -off;
                        Some((off + ANGULAR_SLOP).clamp(-MAX_ANGULAR_CORRECTION, 0.0))
                    }
                    Limit::Upper => {
                        let off = angle - UPPER_ANGLE;
                        angular_error = off;
                        Some((off - ANGULAR_SLOP).clamp(0.0, MAX_ANGULAR_CORRECTION))
                    }
                };
                if let Some(correction) = correction {
                    let impulse = -motor_mass * correction;
                    *aa -= ia * impulse;
                    *ab += ib * impulse;
                }
                let (sin, cos) = (aa.sin(), aa.cos());
                let [x, y] =
                    [cos * joint.arm[0] - sin * joint.arm[1], sin * joint.arm[0] + cos * joint.arm[1]];
                let (off_x, off_y) = (cb[0] - ca[0] - x, cb[1] - ca[1] - y);
                let error = (off_x * off_x + off_y * off_y).sqrt();
                let k11 = ma + mb + ia * y * y;
                let k12 = -ia * x * y;
                let k22 = ma + mb + ia * x * x;
                let inverse = invert(k11 * k22 - k12 * k12);
                let px = -(inverse * (k22 * off_x - k12 * off_y));
                let py = -(inverse * (k11 * off_y - k12 * off_x));
                ca[0] -= ma * px;
                ca[1] -= ma * py;
                *aa -= ia * (x * py - y * px);
                cb[0] += mb * px;
                cb[1] += mb * py;
                settled &= error <= LINEAR_SLOP && angular_error <= ANGULAR_SLOP;
            }
            if settled {
                return true;
            }
        }
        false
    }
}

/// Like Box2D, keeps a zero determinant at zero.
fn invert(determinant: f32) -> f32 {
    if determinant == 0.0 { 0.0 } else { 1.0 / determinant }
}

impl Prepared {
    fn new(arm: [f32; 2], [ma, ia, mb, ib]: [f32; 4], motor_speed: f32, limit: Limit) -> Self {
        let [x, y] = arm;
        let k11 = ma + mb + y * y * ia;
        let k12 = -y * x * ia;
        let k22 = ma + mb + x * x * ia;
        let k13 = -y * ia;
        let k23 = x * ia;
        let k33 = ia + ib;
        let cross = [k22 * k33 - k23 * k23, k23 * k13 - k12 * k33, k12 * k23 - k22 * k13];
        Prepared {
            arm,
            k11,
            k12,
            k22,
            k13,
            k23,
            k33,
            inverse2: invert(k11 * k22 - k12 * k12),
            inverse3: invert(k11 * cross[0] + k12 * cross[1] + k13 * cross[2]),
            cross,
            motor_mass: 1.0 / k33,
            motor_speed,
            limit,
        }
    }

    /// The impulse (x, y, angle) that cancels `off`: Cramer's rule in the form of `b2Mat33::Solve33`.
    fn solve3(&self, off: [f32; 3]) -> [f32; 3] {
        let Prepared { k11, k12, k22, k13, k23, k33, inverse3, cross, .. } = *self;
        let [x, y, z] = off;
        [
            -(inverse3 * (x * cross[0] + y * cross[1] + z * cross[2])),
            -(inverse3 * (k11 * (y * k33 - z * k23) + k12 * (z * k13 - x * k33) + k13 * (x * k23 - y * k13))),
            -(inverse3 * (k11 * (k22 * z - k23 * y) + k12 * (k23 * x - k12 * z) + k13 * (k12 * y - k22 * x))),
        ]
    }

    /// Solves the 2 × 2 system for `(x, y)`.
    fn solve2(&self, x: f32, y: f32) -> [f32; 2] {
        [self.inverse2 * (self.k22 * x - self.k12 * y), self.inverse2 * (self.k11 * y - self.k12 * x)]
    }

    /// One velocity iteration of this joint; returns the x and y impulse it applied.
    #[inline(always)]
    fn iterate(
        &self,
        [ma, ia, mb, ib]: [f32; 4],
        hull: &mut [f32; 3],
        wheel: &mut [f32; 3],
        motor_sum: &mut f32,
        limit_sum: &mut f32,
    ) -> [f32; 2] {
        const MAX_IMPULSE: f32 = DT * MAX_MOTOR_TORQUE;
        let [x, y] = self.arm;
        let off = wheel[2] - hull[2] - self.motor_speed;
        let before = *motor_sum;
        *motor_sum = (before + -self.motor_mass * off).clamp(-MAX_IMPULSE, MAX_IMPULSE);
        let motor = *motor_sum - before;
        hull[2] -= ia * motor;
        wheel[2] += ib * motor;

        let off_x = wheel[0] - hull[0] + hull[2] * y;
        let off_y = wheel[1] - hull[1] - hull[2] * x;
        let [px, py, pz] = if self.limit == Limit::Inactive {
            let [px, py] = self.solve2(-off_x, -off_y);
            [px, py, 0.0]
        } else {
            let [px, py, pz] = self.solve3([off_x, off_y, wheel[2] - hull[2]]);
            let total = *limit_sum + pz;
            if (self.limit == Limit::Lower && total < 0.0) || (self.limit == Limit::Upper && total > 0.0) {
                // The limit can only push; here it would have to pull.
                let held = *limit_sum;
                *limit_sum = 0.0;
                let [px, py] = self.solve2(-off_x + held * self.k13, -off_y + held * self.k23);
                [px, py, -held]
            } else {
                *limit_sum = total;
                [px, py, pz]
            }
        };
        hull[0] -= ma * px;
        hull[1] -= ma * py;
        let turn = x * py - y * px;
        if self.limit == Limit::Inactive {
            hull[2] -= ia * turn;
        } else {
            hull[2] -= ia * (turn + pz);
            wheel[2] += ib * (0.0 + pz);
        }
        wheel[0] += mb * px;
        wheel[1] += mb * py;
        [px, py]
    }
}

/// Number of earlier states kept to detect a cycle of the iterations.
const MEMORY: usize = 3;

/// Runs all velocity iterations; `sums` are the joints' accumulated x and y impulses.
fn iterate(joints: &[Prepared; 4], masses: [f32; 4], now: &mut Velocities, sums: &mut [[f32; 2]; 4]) {
    let mut earlier = [Velocities { hull: [f32::NAN; 3], ..Velocities::default() }; MEMORY];
    let mut given = [[[0.0_f32; 2]; 4]; MEMORY];
    let mut done = 0;
    let mut look = true;
    while done < VELOCITY_ITERATIONS {
        let slot = done % MEMORY;
        earlier[slot] = *now;
        for i in (0..4).rev() {
            let impulse = joints[i].iterate(
                masses,
                &mut now.hull,
                &mut now.wheels[i],
                &mut now.motor[i],
                &mut now.limit[i],
            );
            sums[i][0] += impulse[0];
            sums[i][1] += impulse[1];
            given[slot][i] = impulse;
        }
        done += 1;
        if !look {
            continue;
        }
        // The state equals that of `back` iterations ago: from here on the iterations repeat with period
        // `back`.
        let Some(back) = (1..=MEMORY).find(|&back| now.same(&earlier[(done + MEMORY - back) % MEMORY]))
        else {
            continue;
        };
        let rounds = (VELOCITY_ITERATIONS - done) / back;
        for k in 0..rounds * back {
            let round = &given[(done + MEMORY - back + k % back) % MEMORY];
            for i in 0..4 {
                sums[i][0] += round[i][0];
                sums[i][1] += round[i][1];
            }
        }
        done += rounds * back;
        look = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_core::{Rng, Seed};

    /// Runs all iterations, one by one.
    fn iterate_plainly(
        joints: &[Prepared; 4],
        masses: [f32; 4],
        now: &mut Velocities,
        sums: &mut [[f32; 2]; 4],
    ) {
        for _ in 0..VELOCITY_ITERATIONS {
            for i in (0..4).rev() {
                let impulse = joints[i].iterate(
                    masses,
                    &mut now.hull,
                    &mut now.wheels[i],
                    &mut now.motor[i],
                    &mut now.limit[i],
                );
                sums[i][0] += impulse[0];
                sums[i][1] += impulse[1];
            }
        }
    }

    #[test]
    fn skipped_iterations_change_nothing() {
        let mut rng = Seed::root(8).rng();
        let three = |rng: &mut Rng, size: f64| [(); 3].map(|()| rng.uniform(-size, size) as f32);
        let (hull, wheel) = (*HULL_MASS, *WHEEL_MASS);
        let masses = [hull.per_unit_force, hull.per_unit_torque, wheel.per_unit_force, wheel.per_unit_torque];
        for round in 0..2000 {
            // From nearly at rest, where states repeat at once, to very fast.
            let size = 10_f64.powf(rng.uniform(-6.0, 2.0));
            let mut now = Velocities { hull: three(&mut rng, size), ..Velocities::default() };
            let mut joints = [Prepared::default(); 4];
            for i in 0..4 {
                let limit =
                    [Limit::Inactive, Limit::Inactive, Limit::Lower, Limit::Upper][rng.below(4) as usize];
                let arm = [rng.uniform(-2.0, 2.0) as f32, rng.uniform(-2.0, 2.0) as f32];
                joints[i] = Prepared::new(arm, masses, rng.uniform(-3.0, 3.0) as f32, limit);
                now.wheels[i] = three(&mut rng, size);
            }
            let (mut plain, mut plain_sums) = (now, [[0.0; 2]; 4]);
            let mut sums = plain_sums;
            iterate_plainly(&joints, masses, &mut plain, &mut plain_sums);
            iterate(&joints, masses, &mut now, &mut sums);
            assert!(now.same(&plain), "round {round}, size {size}");
            let bits = |sums: [[f32; 2]; 4]| sums.map(|sum| sum.map(f32::to_bits));
            assert_eq!(bits(sums), bits(plain_sums), "round {round}, size {size}");
        }
    }
}
