//! Interventions on a picture: places covered, moved, or everything else removed.

use std::fmt;

use foveate_core::{Image, ImageBuf, PatchGrid};

use crate::overlay::{pixel_range, rectangle};
use crate::{Mask, gaussian_blur};

/// What a covered pixel becomes.
///
/// No fill is neutral: each makes a picture that the agent never met, so conclusions are drawn from more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fill {
    /// The picture blurred with σ = 3 pixels (Greydanus et al. 2018): detail goes, colour stays, no new edges.
    Blur,
    /// The picture's mean colour: everything goes, at the price of new edges.
    Mean,
}

impl Fill {
    /// Both.
    pub const ALL: [Fill; 2] = [Fill::Blur, Fill::Mean];
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fill::Blur => "blur",
            Fill::Mean => "mean",
        })
    }
}

/// σ of the blur that [`Fill::Blur`] takes away detail with, in pixels (Greydanus et al. 2018).
pub const BLUR_PX: f64 = 3.0;

/// A picture and what its pixels become when they are covered.
#[derive(Debug, Clone)]
pub struct PictureEditor<'a> {
    original: Image<'a>,
    filled: ImageBuf,
    /// Equal parts of the picture, one below the other.
    parts: usize,
}

impl<'a> PictureEditor<'a> {
    /// Prepares interventions on `original`.
    pub fn new(original: Image<'a>, fill: Fill) -> Self {
        PictureEditor::of_stack(original, 1, fill)
    }

    /// Prepares interventions on a stack of `parts` pictures of equal height, one below the other: masks and grids are
    /// those of one picture, and the same places of all pictures are changed, each filled from its own picture.
    ///
    /// # Panics
    /// When the height is no multiple of `parts`.
    pub fn of_stack(original: Image<'a>, parts: usize, fill: Fill) -> Self {
        let mut filled = ImageBuf::black(original.width(), original.height());
        let bytes = filled.rgb().len() / parts;
        for (part, out) in
            crate::parts_of(original, parts).zip(filled.rgb_mut().chunks_exact_mut(bytes.max(1)))
        {
            match fill {
                Fill::Blur => out.copy_from_slice(gaussian_blur(part, BLUR_PX).rgb()),
                Fill::Mean => out.as_chunks_mut::<3>().0.fill(mean_colour(part)),
            }
        }
        PictureEditor { original, filled, parts }
    }

    /// The picture as it is.
    pub const fn original(&self) -> Image<'a> {
        self.original
    }

    /// The picture with every pixel covered.
    pub const fn filled(&self) -> &ImageBuf {
        &self.filled
    }

    /// The picture with the pixels of `mask` covered and no other changed.
    pub fn cover(&self, mask: &Mask) -> ImageBuf {
        self.mix(mask, self.filled.rgb(), self.original.rgb())
    }

    /// The pixels of `mask` as they are and all others covered.
    pub fn keep(&self, mask: &Mask) -> ImageBuf {
        self.mix(mask, self.original.rgb(), self.filled.rgb())
    }

    fn mix(&self, mask: &Mask, inside: &[u8], outside: &[u8]) -> ImageBuf {
        let mut out = ImageBuf::black(self.original.width(), self.original.height());
        let sides = inside.as_chunks::<3>().0.iter().zip(outside.as_chunks::<3>().0);
        for ((pixel, (a, b)), &is_inside) in
            out.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(sides).zip(mask.pixels().iter().cycle())
        {
            *pixel = if is_inside { *a } else { *b };
        }
        out
    }

    /// The picture with patch `from` of `grid` covered and its contents laid over patch `to`.
    pub fn move_patch(&self, grid: PatchGrid, from: u32, to: u32) -> ImageBuf {
        let (width, height) = (self.original.width(), self.original.height() / self.parts);
        let mut out = self.cover(&Mask::of_patches(width, height, grid, &[from]));
        if (from as usize) < grid.len() && (to as usize) < grid.len() {
            let [x, y, ..] = rectangle(width, height, grid, from);
            let [to_x, to_y, across, down] = rectangle(width, height, grid, to);
            let columns = pixel_range(to_x, across, width);
            for (dy, row) in pixel_range(to_y, down, height).enumerate() {
                for (dx, column) in columns.clone().enumerate() {
                    let (sx, sy) = (x.round() as usize + dx, y.round() as usize + dy);
                    if sx < width && sy < height {
                        for top in (0..self.parts).map(|part| part * height) {
                            let at = ((top + row) * width + column) * 3;
                            out.rgb_mut()[at..at + 3].copy_from_slice(&self.original.pixel(sx, top + sy));
                        }
                    }
                }
            }
        }
        out
    }
}

/// Mean of every channel, rounded.
pub fn mean_colour(image: Image<'_>) -> [u8; 3] {
    let mut sums = [0_u64; 3];
    let pixels = image.rgb().as_chunks::<3>().0;
    for pixel in pixels {
        for (sum, &value) in sums.iter_mut().zip(pixel) {
            *sum += u64::from(value);
        }
    }
    let count = (pixels.len() as u64).max(1);
    sums.map(|sum| ((sum + count / 2) / count) as u8)
}

/// How large a change of a picture is: the mean over all pixels and channels of |difference| / 255, in 0.0..=1.0.
pub fn change_size(before: Image<'_>, after: Image<'_>) -> f64 {
    let sum: u64 = before.rgb().iter().zip(after.rgb()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / (255.0 * before.rgb().len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_core::Seed;

    fn noise(width: usize, height: usize) -> ImageBuf {
        let mut rng = Seed::root(3).rng();
        let mut image = ImageBuf::black(width, height);
        image.rgb_mut().fill_with(|| rng.below(256) as u8);
        image
    }

    #[test]
    fn a_stack_is_its_pictures_changed_alike() {
        let (first, second) = (noise(12, 8), noise(12, 8).as_image().rgb().iter().rev().copied().collect());
        let second = ImageBuf::from_rgb(12, 8, second).expect("as many bytes");
        let both = ImageBuf::from_rgb(12, 16, [first.rgb(), second.rgb()].concat()).expect("two pictures");
        let grid = PatchGrid::tile(12, 8, 4, 4).expect("fits");
        let mask = Mask::of_patches(12, 8, grid, &[1, 5]);
        for fill in Fill::ALL {
            let stack = PictureEditor::of_stack(both.as_image(), 2, fill);
            let each = [&first, &second].map(|one| PictureEditor::new(one.as_image(), fill));
            let of = |change: &dyn Fn(&PictureEditor<'_>) -> ImageBuf| {
                assert_eq!(
                    change(&stack).rgb(),
                    each.each_ref().map(|one| change(one).rgb().to_vec()).concat()
                );
            };
            of(&|editor| editor.cover(&mask));
            of(&|editor| editor.keep(&mask));
            of(&|editor| editor.move_patch(grid, 0, 4));
        }
    }

    #[test]
    fn only_covered_pixels_change() {
        let picture = noise(48, 40);
        let grid = PatchGrid::tile(48, 40, 7, 4).expect("fits");
        let mask = Mask::of_patches(48, 40, grid, &[0, 17, 18, 60]);
        for fill in Fill::ALL {
            let scene = PictureEditor::new(picture.as_image(), fill);
            let (covered, kept) = (scene.cover(&mask), scene.keep(&mask));
            for y in 0..40 {
                for x in 0..48 {
                    let (was, filled) =
                        (picture.as_image().pixel(x, y), scene.filled().as_image().pixel(x, y));
                    let (inside, outside) = if mask.contains(x, y) { (filled, was) } else { (was, filled) };
                    assert_eq!(covered.as_image().pixel(x, y), inside, "{fill}, ({x}, {y})");
                    assert_eq!(kept.as_image().pixel(x, y), outside, "{fill}, ({x}, {y})");
                }
            }
            assert_eq!(scene.cover(&Mask::empty(48, 40)), picture);
            assert_eq!(scene.keep(&Mask::empty(48, 40).complement()), picture);
            let [cover, keep] = [&covered, &kept].map(|i| change_size(picture.as_image(), i.as_image()));
            let all = change_size(picture.as_image(), scene.filled().as_image());
            assert!((cover + keep - all).abs() < 1e-12, "sizes add up");
        }
    }

    #[test]
    fn a_moved_patch_is_gone_here_and_whole_there() {
        let picture = noise(24, 24);
        let grid = PatchGrid::tile(24, 24, 6, 6).expect("fits");
        let scene = PictureEditor::new(picture.as_image(), Fill::Mean);
        let moved = scene.move_patch(grid, 1, 14);
        let ((from_x, from_y), (to_x, to_y)) = (grid.corner(1), grid.corner(14));
        let mask = Mask::of_patches(24, 24, grid, &[1, 14]);
        for y in 0..24 {
            for x in 0..24 {
                if !mask.contains(x, y) {
                    assert_eq!(moved.as_image().pixel(x, y), picture.as_image().pixel(x, y));
                }
            }
        }
        for y in 0..6 {
            for x in 0..6 {
                let was = picture.as_image().pixel(from_x + x, from_y + y);
                assert_eq!(moved.as_image().pixel(to_x + x, to_y + y), was);
                assert_eq!(moved.as_image().pixel(from_x + x, from_y + y), mean_colour(picture.as_image()));
            }
        }
    }

    #[test]
    fn sizes_are_parts_of_the_largest_change() {
        let (black, white) = (ImageBuf::black(3, 3), ImageBuf::from_rgb(3, 3, vec![255; 27]).expect("sizes"));
        assert_eq!(change_size(black.as_image(), white.as_image()), 1.0);
        assert_eq!(change_size(black.as_image(), black.as_image()), 0.0);
        assert_eq!(mean_colour(white.as_image()), [255; 3]);
    }
}
