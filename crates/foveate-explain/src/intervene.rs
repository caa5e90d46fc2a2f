//! Pictures as they might have been: with places covered, moved, or all else deleted.

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
pub struct Scene<'a> {
    original: Image<'a>,
    filled: ImageBuf,
}

impl<'a> Scene<'a> {
    /// Prepares interventions on `original`.
    pub fn new(original: Image<'a>, fill: Fill) -> Self {
        let filled = match fill {
            Fill::Blur => gaussian_blur(original, BLUR_PX),
            Fill::Mean => {
                let mut flat = ImageBuf::black(original.width(), original.height());
                let mean = mean_colour(original);
                flat.rgb_mut().as_chunks_mut::<3>().0.fill(mean);
                flat
            }
        };
        Scene { original, filled }
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
            out.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(sides).zip(mask.pixels())
        {
            *pixel = if is_inside { *a } else { *b };
        }
        out
    }

    /// The picture with patch `from` of `grid` covered and its contents laid over patch `to`.
    pub fn move_patch(&self, grid: PatchGrid, from: u32, to: u32) -> ImageBuf {
        let (width, height) = (self.original.width(), self.original.height());
        let mut out = self.cover(&Mask::of_patches(width, height, grid, &[from]));
        if (from as usize) < grid.len() && (to as usize) < grid.len() {
            let [x, y, ..] = rectangle(width, height, grid, from);
            let [to_x, to_y, across, down] = rectangle(width, height, grid, to);
            let columns = pixel_range(to_x, across, width);
            for (dy, row) in pixel_range(to_y, down, height).enumerate() {
                for (dx, column) in columns.clone().enumerate() {
                    let (sx, sy) = (x.round() as usize + dx, y.round() as usize + dy);
                    if sx < width && sy < height {
                        let at = (row * width + column) * 3;
                        out.rgb_mut()[at..at + 3].copy_from_slice(&self.original.pixel(sx, sy));
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
