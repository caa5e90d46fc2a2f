//! Motion estimation: search and interpolation in the previous picture (ITU-T H.264, 8.4.2.2).

use super::bits::signed_bits;
use super::picture::{MARGIN, Plane};

/// A displacement in quarter pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Motion {
    pub(crate) x: i32,
    pub(crate) y: i32,
}

impl Motion {
    pub(crate) const ZERO: Motion = Motion { x: 0, y: 0 };

    const fn of(x: i32, y: i32) -> Self {
        Motion { x, y }
    }

    /// Rounded to whole pixels, in quarter pixels.
    fn whole(self) -> Self {
        Motion::of((self.x + 2) >> 2 << 2, (self.y + 2) >> 2 << 2)
    }

    /// Number of bits of the difference from `predicted`.
    fn bits(self, predicted: Motion) -> u32 {
        signed_bits(self.x - predicted.x) + signed_bits(self.y - predicted.y)
    }
}

/// Returns whether a 16 x 16 block at (x, y), displaced and including the pixels needed for interpolation, lies in
/// the margins.
pub(crate) fn in_reach(plane: &Plane, x: usize, y: usize, motion: Motion) -> bool {
    let room = MARGIN as i32 - 6;
    let fits = |at: usize, shift: i32, len: usize| {
        let to = at as i32 + (shift >> 2);
        to >= -room && to + 16 <= len as i32 + room
    };
    fits(x, motion.x, plane.width) && fits(y, motion.y, plane.height)
}

/// Sum of absolute differences of two 16 x 16 blocks.
fn difference(block: &[u8; 256], other: &[u8], stride: usize) -> u32 {
    let mut sum = 0;
    for (a, b) in block.chunks_exact(16).zip(other.chunks(stride)) {
        let row: u32 = a.iter().zip(&b[..16]).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        sum += row;
    }
    sum
}

/// Side of the interpolated region: a block and one pixel around it.
const SIDE: usize = 18;
/// Side of the region from which it is interpolated.
const WIDE: usize = SIDE + 5;

/// The region around a block at full and half-pixel positions; quarter pixels are means of two of these.
pub(crate) struct HalfPixels {
    /// Full pixels; half a pixel to the right; half a pixel down; both.
    planes: [[u8; SIDE * SIDE]; 4],
}

impl HalfPixels {
    pub(crate) fn new() -> Self {
        HalfPixels { planes: [[0; SIDE * SIDE]; 4] }
    }

    /// Interpolates around the block at (x, y), in whole pixels, including one more pixel on every side.
    fn fill(&mut self, plane: &Plane, x: isize, y: isize) {
        let mut source = [[0_i16; WIDE]; WIDE];
        for (row, to) in source.iter_mut().enumerate() {
            let start = plane.at(x - 3, y - 3 + row as isize);
            for (value, byte) in to.iter_mut().zip(&plane.bytes[start..start + WIDE]) {
                *value = i16::from(*byte);
            }
        }
        let mut across = [[0_i16; SIDE]; WIDE];
        for (to, row) in across.iter_mut().zip(&source) {
            for (i, value) in to.iter_mut().enumerate() {
                *value = row[i] + row[i + 5] - 5 * (row[i + 1] + row[i + 4]) + 20 * (row[i + 2] + row[i + 3]);
            }
        }
        let [full, right, down, both] = &mut self.planes;
        for row in 0..SIDE {
            let at = row * SIDE..(row + 1) * SIDE;
            for (value, s) in full[at.clone()].iter_mut().zip(&source[row + 2][2..]) {
                *value = *s as u8;
            }
            for (value, s) in right[at.clone()].iter_mut().zip(&across[row + 2]) {
                *value = ((s + 16) >> 5).clamp(0, 255) as u8;
            }
            let s = &source[row..row + 6];
            for (i, value) in down[at.clone()].iter_mut().enumerate() {
                let i = i + 2;
                let sum = s[0][i] + s[5][i] - 5 * (s[1][i] + s[4][i]) + 20 * (s[2][i] + s[3][i]);
                *value = ((sum + 16) >> 5).clamp(0, 255) as u8;
            }
            let s = &across[row..row + 6];
            for (i, value) in both[at].iter_mut().enumerate() {
                let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|k| i32::from(s[k][i]));
                let sum = a + f - 5 * (b + e) + 20 * (c + d);
                *value = ((sum + 512) >> 10).clamp(0, 255) as u8;
            }
        }
    }

    /// The block displaced by (x, y) quarter pixels, both in -4..4, relative to the filled region.
    fn block(&self, x: i32, y: i32, out: &mut [u8; 256]) {
        let origin = (1 + (y >> 2)) as usize * SIDE + (1 + (x >> 2)) as usize;
        let [first, second] = SOURCES[(y & 3) as usize][(x & 3) as usize];
        let start = |(plane, right, down): Source| (&self.planes[plane], origin + down * SIDE + right);
        let (a, from_a) = start(first);
        let (b, from_b) = start(second);
        for (row, to) in out.chunks_exact_mut(16).enumerate() {
            let a = &a[from_a + row * SIDE..][..16];
            let b = &b[from_b + row * SIDE..][..16];
            for (value, (a, b)) in to.iter_mut().zip(a.iter().zip(b)) {
                *value = (u16::from(*a) + u16::from(*b)).div_ceil(2) as u8;
            }
        }
    }
}

/// A half-pixel plane, with an offset in pixels to the right and down.
type Source = (usize, usize, usize);

/// Indexed by the fractions of y and x: the two sources whose mean is used.
const SOURCES: [[[Source; 2]; 4]; 4] = {
    const G: Source = (0, 0, 0);
    const G_RIGHT: Source = (0, 1, 0);
    const G_DOWN: Source = (0, 0, 1);
    const B: Source = (1, 0, 0);
    const B_DOWN: Source = (1, 0, 1);
    const H: Source = (2, 0, 0);
    const H_RIGHT: Source = (2, 1, 0);
    const J: Source = (3, 0, 0);
    [
        [[G, G], [G, B], [B, B], [B, G_RIGHT]],
        [[G, H], [B, H], [B, J], [B, H_RIGHT]],
        [[H, H], [H, J], [J, J], [J, H_RIGHT]],
        [[H, G_DOWN], [H, B_DOWN], [J, B_DOWN], [H_RIGHT, B_DOWN]],
    ]
};

/// The displaced luma block at (x, y) of `plane`.
pub(crate) fn luma(
    plane: &Plane,
    x: usize,
    y: usize,
    motion: Motion,
    half: &mut HalfPixels,
    out: &mut [u8; 256],
) {
    let (left, top) = (x as isize + (motion.x >> 2) as isize, y as isize + (motion.y >> 2) as isize);
    if motion.x % 4 == 0 && motion.y % 4 == 0 {
        for (row, to) in out.chunks_exact_mut(16).enumerate() {
            let from = plane.at(left, top + row as isize);
            to.copy_from_slice(&plane.bytes[from..from + 16]);
        }
    } else {
        half.fill(plane, left, top);
        half.block(motion.x & 3, motion.y & 3, out);
    }
}

/// The displaced 8 x 8 chroma block at (x, y) of `plane`, with luma's motion.
pub(crate) fn chroma(plane: &Plane, x: usize, y: usize, motion: Motion, out: &mut [u8; 64]) {
    let (left, top) = (x as isize + (motion.x >> 3) as isize, y as isize + (motion.y >> 3) as isize);
    let (fx, fy) = ((motion.x & 7) as u32, (motion.y & 7) as u32);
    for (row, to) in out.chunks_exact_mut(8).enumerate() {
        let from = plane.at(left, top + row as isize);
        let above = &plane.bytes[from..from + 9];
        let below = &plane.bytes[from + plane.stride..from + plane.stride + 9];
        for (i, value) in to.iter_mut().enumerate() {
            let mean = (8 - fx) * (8 - fy) * u32::from(above[i])
                + fx * (8 - fy) * u32::from(above[i + 1])
                + (8 - fx) * fy * u32::from(below[i])
                + fx * fy * u32::from(below[i + 1]);
            *value = ((mean + 32) >> 6) as u8;
        }
    }
}

/// A match: the motion of a block, and the cost of coding it and the remaining difference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Match {
    pub(crate) motion: Motion,
    /// Absolute difference plus weighted number of bits of the motion.
    pub(crate) cost: u32,
}

/// Searches the position of `block`, at (x, y) of its picture, in `plane`.
///
/// Starts from the best of `guesses`, descends over whole pixels, then over halves and quarters. `weight` is
/// the cost of a bit in units of absolute difference.
pub(crate) fn search(
    plane: &Plane,
    block: &[u8; 256],
    (x, y): (usize, usize),
    predicted: Motion,
    guesses: &[Motion],
    weight: u32,
    half: &mut HalfPixels,
) -> Match {
    let try_whole = |motion: Motion| {
        if !in_reach(plane, x, y, motion) {
            return u32::MAX;
        }
        let from = plane.at(x as isize + (motion.x >> 2) as isize, y as isize + (motion.y >> 2) as isize);
        difference(block, &plane.bytes[from..], plane.stride) + weight * motion.bits(predicted)
    };
    let mut best = Match { motion: Motion::ZERO, cost: try_whole(Motion::ZERO) };
    let consider = |motion: Motion, best: &mut Match| {
        let cost = try_whole(motion);
        if cost < best.cost {
            *best = Match { motion, cost };
        }
    };
    for guess in guesses {
        let guess = guess.whole();
        if guess != Motion::ZERO {
            consider(guess, &mut best);
        }
    }
    // Large steps find distant matches, small steps refine them.
    for step in [16, 4] {
        for _ in 0..MAX_WALK {
            let centre = best.motion;
            for (dx, dy) in [(step, 0), (-step, 0), (0, step), (0, -step)] {
                consider(Motion::of(centre.x + dx, centre.y + dy), &mut best);
            }
            if best.motion == centre {
                break;
            }
        }
    }
    // A perfect match cannot be improved.
    let centre = best.motion;
    if best.cost <= weight * centre.bits(predicted) {
        return best;
    }
    half.fill(plane, x as isize + (centre.x >> 2) as isize, y as isize + (centre.y >> 2) as isize);
    let mut guess = [0; 256];
    for step in [2, 1] {
        let from = best.motion;
        for (dx, dy) in [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)] {
            let motion = Motion::of(from.x + dx * step, from.y + dy * step);
            if !in_reach(plane, x, y, motion) {
                continue;
            }
            half.block(motion.x - centre.x, motion.y - centre.y, &mut guess);
            let cost = difference(block, &guess, 16) + weight * motion.bits(predicted);
            if cost < best.cost {
                best = Match { motion, cost };
            }
        }
    }
    best
}

/// Maximum number of steps of a search.
const MAX_WALK: usize = 12;

#[cfg(test)]
mod tests {
    use super::super::picture::Picture;
    use super::*;
    use foveate_core::ImageBuf;

    /// A smooth landscape of hills, shifted by (dx, dy) pixels.
    fn hills(dx: f64, dy: f64) -> Picture {
        let mut image = ImageBuf::black(64, 64);
        for (i, pixel) in image.rgb_mut().chunks_exact_mut(3).enumerate() {
            let (x, y) = ((i % 64) as f64 + dx, (i / 64) as f64 + dy);
            let height =
                128.0 + 60.0 * (x * 0.31 + (y * 0.17).sin()).sin() + 50.0 * (y * 0.23 + x * 0.05).cos();
            pixel.fill(height as u8);
        }
        let mut picture = Picture::new(4, 4);
        picture.convert(image.as_image());
        for plane in &mut picture.planes {
            plane.extend();
        }
        picture
    }

    #[test]
    fn motion_is_found_to_the_quarter_pixel() {
        let before = hills(0.0, 0.0);
        for (dx, dy) in [(0.0, 0.0), (3.0, -2.0), (-1.5, 0.5), (0.25, 0.75), (4.75, -3.25), (-7.0, 6.5)] {
            let now = hills(dx, dy);
            let block = now.planes[0].block::<16, 256>(32, 16);
            let mut half = HalfPixels::new();
            let found = search(&before.planes[0], &block, (32, 16), Motion::ZERO, &[], 1, &mut half);
            let expect = Motion::of((dx * 4.0) as i32, (dy * 4.0) as i32);
            assert_eq!(found.motion, expect, "moved by ({dx}, {dy}), cost {}", found.cost);
        }
    }

    #[test]
    fn motion_beyond_the_margin_is_out_of_reach() {
        let plane = &hills(0.0, 0.0).planes[0];
        for (x, y, motion, expect) in [
            (0, 0, Motion::of(-26 * 4, -26 * 4), true),
            (0, 0, Motion::of(-26 * 4 - 1, 0), false),
            (48, 48, Motion::of(26 * 4 + 3, 26 * 4), true),
            (48, 48, Motion::of(0, 27 * 4), false),
        ] {
            assert_eq!(in_reach(plane, x, y, motion), expect, "{motion:?} from ({x}, {y})");
        }
    }
}
