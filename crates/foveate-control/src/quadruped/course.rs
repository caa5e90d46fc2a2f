//! The course: walls on a platform, each with a gap beside it, and a guide who knows them.

use foveate_core::Rng;

use super::gait::ACTIONS;

/// Walls of a course.
pub(crate) const WALLS: usize = 6;
/// From one wall to the next, in m; the first is as far from the start.
const APART: f64 = 2.0;
/// Half of a wall's length, in m, as in the model.
const HALF: f64 = 0.5;
/// Half of the platform's width, in m.
pub(crate) const EDGE: f64 = 1.0;
/// Height of the platform, in m.
pub(crate) const PLATFORM: f64 = 0.5;
/// Height of a wall's centre, in m.
const CENTRE: f64 = 0.75;
/// A wall's centre is between these distances from the middle of the platform, on one side.
const OFF_CENTRE: [f64; 2] = [0.4, 0.6];

/// Where the walls are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Course {
    /// Their centres across, in m; to the left is positive.
    pub(crate) across: [f64; WALLS],
}

impl Course {
    /// Draws a course.
    pub(crate) fn draw(random: &mut Rng) -> Self {
        let across = [(); WALLS].map(|()| {
            let side = if random.uniform(0.0, 1.0) < 0.5 { -1.0 } else { 1.0 };
            side * random.uniform(OFF_CENTRE[0], OFF_CENTRE[1])
        });
        Course { across }
    }

    /// The centres of all walls, in m.
    pub(crate) fn places(&self) -> [f64; 3 * WALLS] {
        let mut places = [0.0; 3 * WALLS];
        for (i, (place, across)) in places.chunks_exact_mut(3).zip(self.across).enumerate() {
            place.copy_from_slice(&[APART * (i + 1) as f64, across, CENTRE]);
        }
        places
    }

    /// The next wall of a robot at `x`: how far along the platform it is, and both ends of the gap beside it, in m. `None` behind the
    /// last one.
    pub(crate) fn next(&self, x: f64) -> Option<(f64, [f64; 2])> {
        /// From the trunk's centre to the hind feet.
        const BEHIND: f64 = 0.35;
        let along = |i: usize| APART * (i + 1) as f64;
        let i = (0..WALLS).find(|&i| along(i) > x - BEHIND)?;
        let across = self.across[i];
        Some((along(i), [across - HALF.copysign(across), -EDGE.copysign(across)]))
    }

    /// The action of a guide who knows the walls: towards the middle of the next gap, by longer steps on one side.
    pub(crate) fn guide(&self, [x, y]: [f64; 2], heading: f64) -> [f64; ACTIONS] {
        /// How far ahead the guide aims, in m.
        const AHEAD: f64 = 0.7;
        /// Change of the intensities per rad, and their largest one; as numbers of the action.
        const TURN: [f64; 2] = [0.93, 0.8];
        let goal = self.next(x).map_or(0.0, |(_, [inner, edge])| (inner + edge) / 2.0);
        let away = (goal - y).atan2(AHEAD) - heading;
        let away = away.sin().atan2(away.cos());
        let turn = (TURN[0] * away).clamp(-TURN[1], TURN[1]);
        let mut action = [0.0; ACTIONS];
        action[..3].copy_from_slice(&[1.0 / 3.0, -turn, turn]);
        action
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_core::Seed;

    #[test]
    fn gaps_are_beside_walls_and_on_both_sides() {
        let mut sides = [0; 2];
        for seed in 0..100 {
            let course = Course::draw(&mut Seed::root(seed).rng());
            for (i, across) in course.across.into_iter().enumerate() {
                let x = 2.0 * i as f64 + 0.5;
                let (along, [inner, edge]) = course.next(x).expect("there is one");
                assert_eq!(along, 2.0 * i as f64 + 2.0);
                assert!((inner - edge).abs() >= 0.89 && (inner - edge).abs() <= 1.11, "{inner} {edge}");
                assert!(edge * across < 0.0 && (across.abs() - 0.5).abs() <= 0.1);
                sides[usize::from(across > 0.0)] += 1;
            }
            assert_eq!(course.next(12.4), None);
        }
        assert!(sides.iter().all(|&n| n > 250), "{sides:?}");
    }

    #[test]
    fn the_guide_turns_towards_the_gap() {
        let course = Course { across: [0.5; WALLS] }; // gaps on the right
        let action = course.guide([0.0, 0.0], 0.0);
        assert!(action[1] > 0.0 && action[2] < 0.0, "longer steps on the left: {action:?}");
        let action = course.guide([0.0, -0.5], 0.0);
        assert!(action[1].abs() < 1e-12 && action[2].abs() < 1e-12, "{action:?}");
    }
}
