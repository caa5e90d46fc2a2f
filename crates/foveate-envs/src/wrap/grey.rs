//! Conversion to grey.

#![allow(clippy::inline_always, reason = "compiled anew for every instruction set, see `Plain`")]

use foveate_kernels::Level;
use foveate_kernels::plain::Plain;

/// A formula for the brightness of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grey {
    /// Pillow's `convert("L")`: ITU-R 601-2 in whole numbers.
    Pillow,
    /// The Arcade Learning Environment's grey palette: 0.2989 R + 0.587 G + 0.114 B, rounded.
    Ale,
    /// `OpenCV`'s `cvtColor` of bytes: ITU-R 601-2 in whole numbers of 15 binary places.
    OpenCv,
}

impl Grey {
    /// The brightness of a pixel.
    #[inline(always)]
    pub fn of(self, [r, g, b]: [u8; 3]) -> u8 {
        match self {
            Grey::Pillow => {
                let sum = u32::from(r) * 19_595 + u32::from(g) * 38_470 + u32::from(b) * 7_471;
                ((sum + 0x8000) >> 16) as u8
            }
            Grey::OpenCv => {
                let sum = u32::from(r) * 9798 + u32::from(g) * 19_235 + u32::from(b) * 3735;
                ((sum + (1 << 14)) >> 15) as u8
            }
            Grey::Ale => (f64::from(r) * 0.2989 + f64::from(g) * 0.587 + f64::from(b) * 0.114).round() as u8,
        }
    }

    /// Writes the brightness of every pixel of `rgb`, `[pixels, 3]`, to `grey`, `[pixels]`.
    pub fn write(self, rgb: &[u8], grey: &mut [u8]) {
        Level::best().run_plain(Write { formula: self, rgb, grey });
    }

    /// Takes the colour out of `rgb`, `[pixels, 3]`; all three bytes of a pixel become its brightness.
    pub fn apply(self, rgb: &mut [u8]) {
        for pixel in rgb.as_chunks_mut::<3>().0 {
            *pixel = [self.of(*pixel); 3];
        }
    }
}

struct Write<'a> {
    formula: Grey,
    rgb: &'a [u8],
    grey: &'a mut [u8],
}

impl Plain for Write<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Write { formula, rgb, grey } = self;
        let pixels = rgb.as_chunks::<3>().0;
        // The formula is chosen outside of the loop.
        macro_rules! with {
            ($formula:expr) => {
                for (grey, pixel) in grey.iter_mut().zip(pixels) {
                    *grey = $formula.of(*pixel);
                }
            };
        }
        match formula {
            Grey::Pillow => with!(Grey::Pillow),
            Grey::Ale => with!(Grey::Ale),
            Grey::OpenCv => with!(Grey::OpenCv),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_differ_in_single_pixels() {
        // The sum of each formula's weights is one, so grey stays grey.
        for grey in [Grey::Pillow, Grey::Ale, Grey::OpenCv] {
            for byte in 0..=255 {
                assert_eq!(grey.of([byte; 3]), byte, "{grey:?}");
            }
        }
        // CarRacing's grass and road, then pixels for which rounding makes a difference.
        for (rgb, [pillow, ale, opencv]) in [
            ([102, 204, 102], [162, 162, 162]),
            ([102, 230, 102], [177, 177, 177]),
            ([119, 248, 3], [181, 181, 182]),
            ([111, 130, 0], [109, 109, 110]),
            ([121, 225, 239], [196, 195, 195]),
        ] {
            assert_eq!(
                [Grey::Pillow, Grey::Ale, Grey::OpenCv].map(|g| g.of(rgb)),
                [pillow, ale, opencv],
                "{rgb:?}"
            );
        }
    }
}
