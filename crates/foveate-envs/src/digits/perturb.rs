//! Changes of a picture of a digit: turned, shifted, covered with spots.
//!
//! The order and the distributions are those of *Deep Reinforcement Learning in Action*, chapter 10, where a picture is turned
//! if `rotation` is above 0.

use foveate_core::Rng;

use super::{PIXELS, SIDE};

/// How strongly pictures are changed; 0 switches a change off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strength {
    /// Angles are whole degrees from −`rotation` to `rotation` − 1; at most 180.
    pub rotation: u32,
    /// Shifts in both directions are whole pixels from −`shift` to `shift` − 1; at most 28.
    pub shift: u32,
    /// A picture gets ⌊`spots` + 5 |g|⌋ spots, g standard normal; at most 784.
    pub spots: u32,
}

impl Strength {
    /// The unchanged picture.
    pub const NONE: Strength = Strength { rotation: 0, shift: 0, spots: 0 };
}

impl Default for Strength {
    fn default() -> Self {
        Strength { rotation: 30, shift: 6, spots: 10 }
    }
}

/// What is done to one picture, but for the places of its spots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Perturbation {
    /// Degrees, clockwise.
    pub angle: i32,
    /// Pixels to the right and downwards.
    pub shift: [i32; 2],
    /// Number of spots; several may fall on the same pixel.
    pub spots: u32,
}

impl Perturbation {
    /// Draws one.
    pub fn draw(strength: Strength, rng: &mut Rng) -> Self {
        let mut around = |most: u32| rng.below(u64::from(2 * most)) as i32 - most as i32;
        let (angle, dx, dy) = (around(strength.rotation), around(strength.shift), around(strength.shift));
        let spots = if strength.spots == 0 {
            0
        } else {
            (f64::from(strength.spots) + 5.0 * rng.normal().abs()) as u32
        };
        Perturbation { angle, shift: [dx, dy], spots }
    }

    /// Writes the changed `picture` to `to`: turned about the centre and shifted, with the nearest pixel and 0 for what lies
    /// outside; spots of full brightness at places that `rng` draws; then scaled so that the brightest pixel is 255, rounded
    /// to whole numbers.
    pub fn apply(&self, picture: &[u8; PIXELS], rng: &mut Rng, to: &mut [u8; PIXELS]) {
        const CENTRE: f64 = SIDE as f64 / 2.0;
        // Exact at the angles where it matters: a picture that is not turned keeps every pixel.
        let (sin, cos) = f64::from(self.angle).to_radians().sin_cos();
        let [dx, dy] = self.shift.map(f64::from);
        for (y, row) in to.chunks_exact_mut(SIDE).enumerate() {
            for (x, pixel) in row.iter_mut().enumerate() {
                // The inverse map: where the centre of this pixel was.
                let (u, v) = (x as f64 + 0.5 - CENTRE - dx, y as f64 + 0.5 - CENTRE - dy);
                let from_x = (cos * u + sin * v + CENTRE).floor();
                let from_y = (cos * v - sin * u + CENTRE).floor();
                let inside = (0.0..SIDE as f64).contains(&from_x) && (0.0..SIDE as f64).contains(&from_y);
                *pixel = if inside { picture[from_y as usize * SIDE + from_x as usize] } else { 0 };
            }
        }
        for _ in 0..self.spots {
            to[rng.below(PIXELS as u64) as usize] = 255;
        }
        let most = to.iter().copied().max().unwrap_or(0);
        if most > 0 && most < 255 {
            for pixel in to {
                *pixel = ((u32::from(*pixel) * 255 + u32::from(most) / 2) / u32::from(most)) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    fn rng(seed: u64) -> Rng {
        Seed::root(seed).rng()
    }

    /// A picture with these bright pixels, as column and row.
    fn picture(pixels: &[(usize, usize, u8)]) -> [u8; PIXELS] {
        let mut picture = [0; PIXELS];
        for &(x, y, value) in pixels {
            picture[y * SIDE + x] = value;
        }
        picture
    }

    fn changed(given: &[u8; PIXELS], perturbation: Perturbation) -> [u8; PIXELS] {
        let mut to = [77; PIXELS];
        perturbation.apply(given, &mut rng(1), &mut to);
        to
    }

    #[test]
    fn shifts_move_every_pixel_and_fill_with_the_background() {
        let given = picture(&[(5, 3, 255), (27, 27, 100), (0, 10, 50)]);
        let shifted = changed(&given, Perturbation { shift: [4, -2], ..Perturbation::default() });
        assert_eq!(shifted, picture(&[(9, 1, 255), (4, 8, 50)]));
        assert_eq!(changed(&given, Perturbation::default()), given);
    }

    #[test]
    fn a_quarter_turn_is_clockwise_about_the_centre() {
        let given = picture(&[(14, 2, 255), (20, 14, 9)]);
        let turned = changed(&given, Perturbation { angle: 90, ..Perturbation::default() });
        // (x, y) goes to (27 − y, x).
        assert_eq!(turned, picture(&[(25, 14, 255), (13, 20, 9)]));
        let back = changed(&turned, Perturbation { angle: -90, ..Perturbation::default() });
        assert_eq!(back, given);
        let half = changed(&given, Perturbation { angle: -180, ..Perturbation::default() });
        assert_eq!(half, picture(&[(13, 25, 255), (7, 13, 9)]));
    }

    /// Against the rule in another form: rotate the offset from the centre by the angle, then shift.
    #[test]
    fn small_angles_take_the_nearest_pixel() {
        let mut rng = rng(7);
        // Bright in the middle, which stays on the picture, so that nothing is scaled.
        let middle = |i: usize| (12..16).contains(&(i % SIDE)) && (12..16).contains(&(i / SIDE));
        let given: [u8; PIXELS] = std::array::from_fn(|i| if middle(i) { 255 } else { 1 + (i % 250) as u8 });
        for _ in 0..200 {
            let angle = rng.below(60) as i32 - 30;
            let shift = [rng.below(12) as i32 - 6, rng.below(12) as i32 - 6];
            let got = changed(&given, Perturbation { angle, shift, spots: 0 });
            let turn = f64::from(angle).to_radians();
            for (at, &pixel) in got.iter().enumerate() {
                let p = [
                    (at % SIDE) as f64 - 13.5 - f64::from(shift[0]),
                    (at / SIDE) as f64 - 13.5 - f64::from(shift[1]),
                ];
                let from = [p[0] * turn.cos() + p[1] * turn.sin(), p[1] * turn.cos() - p[0] * turn.sin()];
                let cell = from.map(|x| (x + 14.0).floor());
                // Rounding may decide otherwise on the border of two pixels.
                if from.iter().any(|x| (x - x.round()).abs() < 1e-9) {
                    continue;
                }
                let inside = cell.iter().all(|x| (0.0..28.0).contains(x));
                let expect = if inside { given[cell[1] as usize * SIDE + cell[0] as usize] } else { 0 };
                assert_eq!(pixel, expect, "angle {angle}, shift {shift:?}, pixel {at}");
            }
        }
    }

    #[test]
    fn spots_are_as_many_as_drawn_and_the_brightest_pixel_is_full() {
        let given = picture(&[(5, 5, 51), (6, 5, 25), (7, 5, 1)]);
        let scaled = changed(&given, Perturbation::default());
        assert_eq!(scaled, picture(&[(5, 5, 255), (6, 5, 125), (7, 5, 5)]));
        assert_eq!(changed(&[0; PIXELS], Perturbation::default()), [0; PIXELS]);
        let spotted = changed(&given, Perturbation { spots: 13, ..Perturbation::default() });
        let bright = spotted.iter().map(|&pixel| usize::from(pixel == 255)).sum::<usize>();
        assert!((1..=13).contains(&bright), "{bright}");
        assert!(spotted.iter().all(|pixel| [0, 1, 25, 51, 255].contains(pixel)), "nothing else changes");
        let full = changed(&given, Perturbation { spots: 60_000, ..Perturbation::default() });
        assert_eq!(full, [255; PIXELS], "places are uniform");
    }

    /// Ranges and means of what is drawn, over 20,000 draws.
    #[test]
    fn draws_follow_their_distributions() {
        let strength = Strength::default();
        let mut rng = rng(3);
        let drawn: Vec<Perturbation> = (0..20_000).map(|_| Perturbation::draw(strength, &mut rng)).collect();
        let numbers: [fn(&Perturbation) -> i32; 4] =
            [|p| p.angle, |p| p.shift[0], |p| p.shift[1], |p| p.spots as i32];
        // Range and mean; 10 + 5 √(2 / π) − ½ for the spots.
        for (number, (low, high, mean)) in
            numbers.into_iter().zip([(-30, 29, -0.5), (-6, 5, -0.5), (-6, 5, -0.5), (10, 35, 13.49)])
        {
            let all = || drawn.iter().map(number);
            let (least, most) = (all().min().expect("draws"), all().max().expect("draws"));
            assert!(least == low && (most == high || low == 10 && most < high), "{least} ..= {most}");
            let found = all().map(f64::from).sum::<f64>() / drawn.len() as f64;
            let width = if low == -30 { 0.6 } else { 0.12 };
            assert!((found - mean).abs() < width, "mean {found}, expected {mean}");
        }
        assert_eq!(Perturbation::draw(Strength::NONE, &mut rng), Perturbation::default());
    }
}
