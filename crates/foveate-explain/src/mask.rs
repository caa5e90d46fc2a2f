//! Sets of pixels of a picture.

use foveate_core::{Attention, PatchGrid, Rng};

use crate::overlay::{pixel_range, rectangle};

/// A set of pixels of a `width` × `height` picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    width: usize,
    height: usize,
    /// `[height, width]`
    inside: Vec<bool>,
}

impl Mask {
    /// No pixel.
    pub fn empty(width: usize, height: usize) -> Self {
        Mask { width, height, inside: vec![false; width * height] }
    }

    /// The pixels of `patches` of `grid`; numbers that are no patch are left out. The grid may have been laid over a
    /// smaller or larger copy of the picture.
    pub fn of_patches(width: usize, height: usize, grid: PatchGrid, patches: &[u32]) -> Self {
        let mut mask = Mask::empty(width, height);
        for &patch in patches {
            mask.add_patch(grid, patch);
        }
        mask
    }

    /// The pixels of the tokens that were handed on; none for tokens that have no place in a picture.
    pub fn of_attention(width: usize, height: usize, attention: &Attention<'_>) -> Self {
        let grid = attention.tokens().grid();
        grid.map_or_else(
            || Mask::empty(width, height),
            |grid| Mask::of_patches(width, height, grid, &attention.by_rank()),
        )
    }

    /// Width of the picture in pixels.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Height of the picture in pixels.
    pub const fn height(&self) -> usize {
        self.height
    }

    /// Returns whether the pixel at column `x`, row `y` is in the set.
    pub fn contains(&self, x: usize, y: usize) -> bool {
        self.inside[y * self.width + x]
    }

    /// `[height, width]`: whether each pixel is in the set.
    pub fn pixels(&self) -> &[bool] {
        &self.inside
    }

    /// How many pixels.
    pub fn area(&self) -> usize {
        self.inside.iter().filter(|&&inside| inside).count()
    }

    /// Adds the pixels of one patch.
    pub fn add_patch(&mut self, grid: PatchGrid, patch: u32) {
        for row in self.rows_of(grid, patch) {
            self.inside[row].fill(true);
        }
    }

    /// Returns whether a pixel of the patch is in the set.
    pub fn touches(&self, grid: PatchGrid, patch: u32) -> bool {
        self.rows_of(grid, patch).any(|row| self.inside[row].contains(&true))
    }

    /// Every pixel that is not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        Mask { inside: self.inside.iter().map(|inside| !inside).collect(), ..*self }
    }

    /// Pixels in both sets, divided by pixels in either; 0 when both are empty.
    pub fn overlap(&self, other: &Mask) -> f64 {
        let (mut both, mut either) = (0_usize, 0_usize);
        for (&a, &b) in self.inside.iter().zip(&other.inside) {
            both += usize::from(a && b);
            either += usize::from(a || b);
        }
        if either == 0 { 0.0 } else { both as f64 / either as f64 }
    }

    /// As many pixels as `avoid` has, to the pixel, none of them in `avoid`: patches in the order given by `order`,
    /// the last one cut off when the number is reached. When the patches do not suffice, what they give.
    pub fn elsewhere(avoid: &Mask, grid: PatchGrid, order: impl IntoIterator<Item = u32>) -> Self {
        let mut mask = Mask::empty(avoid.width, avoid.height);
        let mut left = avoid.area();
        // Whole patches first; those that touch what is to be avoided give the rest of their pixels only if need be.
        let mut partial = Vec::new();
        for patch in order {
            if left == 0 {
                return mask;
            }
            if avoid.touches(grid, patch) {
                partial.push(patch);
            } else {
                left -= mask.add_pixels(grid, patch, avoid, left);
            }
        }
        for patch in partial {
            left -= mask.add_pixels(grid, patch, avoid, left);
        }
        mask
    }

    /// [`Mask::elsewhere`] with the patches in random order.
    pub fn random_elsewhere(avoid: &Mask, grid: PatchGrid, rng: &mut Rng) -> Self {
        Mask::elsewhere(avoid, grid, shuffled(grid.len(), rng))
    }

    /// Adds at most `most` pixels of the patch that are in neither set; says how many.
    fn add_pixels(&mut self, grid: PatchGrid, patch: u32, avoid: &Mask, most: usize) -> usize {
        let mut added = 0;
        for row in self.rows_of(grid, patch) {
            for at in row {
                if added < most && !self.inside[at] && !avoid.inside[at] {
                    self.inside[at] = true;
                    added += 1;
                }
            }
        }
        added
    }

    /// The pixels of the patch, row by row, as ranges of [`Mask::pixels`].
    fn rows_of(&self, grid: PatchGrid, patch: u32) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let (width, height) = (self.width, self.height);
        let known = (patch as usize) < grid.len();
        let [x, y, across, down] = if known { rectangle(width, height, grid, patch) } else { [0.0; 4] };
        let columns = pixel_range(x, across, width);
        pixel_range(y, down, height).map(move |y| y * width + columns.start..y * width + columns.end)
    }
}

/// The numbers below `len` in random order (Fisher and Yates).
pub fn shuffled(len: usize, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len as u32).collect();
    for i in (1..len).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_core::Seed;

    #[test]
    fn covers_elsewhere_are_as_large_and_apart() {
        for (width, patch, stride, k) in [(96, 7, 4, 10), (20, 5, 5, 3), (24, 8, 2, 6), (9, 3, 3, 4)] {
            let grid = PatchGrid::tile(width, width, patch, stride).expect("fits");
            for seed in 0..20 {
                let mut rng = Seed::root(seed).rng();
                let claim: Vec<u32> = shuffled(grid.len(), &mut rng).into_iter().take(k).collect();
                let mask = Mask::of_patches(width, width, grid, &claim);
                let other = Mask::random_elsewhere(&mask, grid, &mut rng);
                // Where the claim is more than half of what patches reach, the rest of that is all there is.
                let reached =
                    Mask::of_patches(width, width, grid, &(0..grid.len() as u32).collect::<Vec<_>>());
                let due = mask.area().min(reached.area() - mask.area());
                assert_eq!(other.area(), due, "{width} {patch} {stride}, seed {seed}");
                assert_eq!(mask.overlap(&other), 0.0, "{width} {patch} {stride}, seed {seed}");
                assert_eq!(mask.area() + mask.complement().area(), width * width);
            }
        }
    }

    #[test]
    fn when_too_little_is_left_all_of_it_is_taken() {
        let grid = PatchGrid::tile(9, 9, 3, 3).expect("fits");
        let most = Mask::of_patches(9, 9, grid, &[0, 1, 2, 3, 4, 5, 6]);
        let other = Mask::random_elsewhere(&most, grid, &mut Seed::root(1).rng());
        assert_eq!(other, most.complement());
        assert_eq!(Mask::of_patches(9, 9, grid, &[9, 4000]), Mask::empty(9, 9), "numbers of no patch");
    }

    #[test]
    fn overlap_is_intersection_over_union() {
        let grid = PatchGrid::tile(9, 3, 3, 3).expect("fits");
        let of = |patches: &[u32]| Mask::of_patches(9, 3, grid, patches);
        for (a, b, expect) in
            [(&[0, 1][..], &[1, 2][..], 1.0 / 3.0), (&[0], &[0], 1.0), (&[0], &[2], 0.0), (&[], &[], 0.0)]
        {
            assert_eq!(of(a).overlap(&of(b)), expect);
        }
    }
}
