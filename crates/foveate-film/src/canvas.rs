//! Drawing of shapes on a picture.

use foveate_core::{Image, ImageBuf};

/// A rectangle in whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    /// Left edge.
    pub x: usize,
    /// Top edge.
    pub y: usize,
    /// Width.
    pub width: usize,
    /// Height.
    pub height: usize,
}

impl Rect {
    /// Returns whether it is inside a picture of `width` × `height`.
    pub fn fits(&self, width: usize, height: usize) -> bool {
        self.x.checked_add(self.width).is_some_and(|end| end <= width)
            && self.y.checked_add(self.height).is_some_and(|end| end <= height)
    }
}

/// Blends `color` into the pixel `under` with weight `alpha` / 255.
pub(crate) fn blend(under: &mut [u8], color: [u8; 3], alpha: u8) {
    for (byte, top) in under.iter_mut().zip(color) {
        let (below, top, alpha) = (u32::from(*byte), u32::from(top), u32::from(alpha));
        *byte = ((below * (255 - alpha) + top * alpha + 127) / 255) as u8;
    }
}

/// Fills a rectangle given in fractions of pixels, with antialiased edges; `opacity` in 0.0..=1.0.
pub(crate) fn fill(
    image: &mut ImageBuf,
    x: f32,
    y: f32,
    width: f32,
    height: f32,
    color: [u8; 3],
    opacity: f32,
) {
    let columns = image.width();
    let across = x.max(0.0).floor() as usize..((x + width).max(0.0).ceil() as usize).min(columns);
    let down = y.max(0.0).floor() as usize..((y + height).max(0.0).ceil() as usize).min(image.height());
    let overlap = |at: usize, from: f32, len: f32| {
        ((at as f32 + 1.0).min(from + len) - (at as f32).max(from)).clamp(0.0, 1.0)
    };
    let rgb = image.rgb_mut();
    for row in down {
        let covered = overlap(row, y, height) * opacity;
        for column in across.clone() {
            let alpha = (covered * overlap(column, x, width) * 255.0).round() as u8;
            let at = (row * columns + column) * 3;
            blend(&mut rgb[at..at + 3], color, alpha);
        }
    }
}

/// Fills a rectangle with rounded corners.
pub(crate) fn fill_round(image: &mut ImageBuf, rect: Rect, radius: f32, color: [u8; 3]) {
    for y in 0..rect.height {
        for x in 0..rect.width {
            let (px, py) = (rect.x + x, rect.y + y);
            if px < image.width() && py < image.height() {
                let alpha = (round_coverage(rect, radius, x, y) * 255.0).round() as u8;
                let at = (py * image.width() + px) * 3;
                blend(&mut image.rgb_mut()[at..at + 3], color, alpha);
            }
        }
    }
}

/// Paints the area outside the rounded corners of `rect`, so that a picture placed there appears to have
/// round corners.
pub(crate) fn round_off(image: &mut ImageBuf, rect: Rect, radius: f32, outside: [u8; 3]) {
    let reach = (radius.ceil() as usize).min(rect.width / 2).min(rect.height / 2);
    for dy in 0..reach {
        for dx in 0..reach {
            for (x, y) in [
                (dx, dy),
                (rect.width - 1 - dx, dy),
                (dx, rect.height - 1 - dy),
                (rect.width - 1 - dx, rect.height - 1 - dy),
            ] {
                let (px, py) = (rect.x + x, rect.y + y);
                if px < image.width() && py < image.height() {
                    let alpha = ((1.0 - round_coverage(rect, radius, x, y)) * 255.0).round() as u8;
                    let at = (py * image.width() + px) * 3;
                    blend(&mut image.rgb_mut()[at..at + 3], outside, alpha);
                }
            }
        }
    }
}

/// Fraction of the pixel (`x`, `y`) that is inside a rounded rectangle, in 0.0..=1.0.
fn round_coverage(rect: Rect, radius: f32, x: usize, y: usize) -> f32 {
    let into_corner = |at: usize, len: usize| {
        let centre = at as f32 + 0.5;
        (radius - centre).max(centre - (len as f32 - radius)).max(0.0)
    };
    (radius - into_corner(x, rect.width).hypot(into_corner(y, rect.height)) + 0.5).clamp(0.0, 1.0)
}

/// Draws a frame along the inside of the rectangle at (`x`, `y`), `thick` pixels wide.
pub(crate) fn frame(
    image: &mut ImageBuf,
    [x, y, width, height]: [f32; 4],
    thick: f32,
    color: [u8; 3],
    opacity: f32,
) {
    let inner = (height - 2.0 * thick).max(0.0);
    fill(image, x, y, width, thick, color, opacity);
    fill(image, x, y + height - thick, width, thick, color, opacity);
    fill(image, x, y + thick, thick, inner, color, opacity);
    fill(image, x + width - thick, y + thick, thick, inner, color, opacity);
}

/// Scales `picture` into `rect` of `image` by nearest-neighbour sampling.
pub(crate) fn put(image: &mut ImageBuf, rect: Rect, picture: Image<'_>) {
    if !rect.fits(image.width(), image.height()) || picture.width() == 0 || picture.height() == 0 {
        return;
    }
    let columns = image.width();
    let rgb = image.rgb_mut();
    let source = picture.rgb();
    let mut previous = usize::MAX;
    for y in 0..rect.height {
        let start = ((rect.y + y) * columns + rect.x) * 3;
        let from_y = y * picture.height() / rect.height;
        if from_y == previous {
            rgb.copy_within(start - columns * 3..start - columns * 3 + rect.width * 3, start);
            continue;
        }
        previous = from_y;
        let from = &source[from_y * picture.width() * 3..(from_y + 1) * picture.width() * 3];
        let to = &mut rgb[start..start + rect.width * 3];
        if picture.width() == rect.width {
            to.copy_from_slice(from);
        } else {
            for (x, pixel) in to.chunks_exact_mut(3).enumerate() {
                let at = x * picture.width() / rect.width * 3;
                pixel.copy_from_slice(&from[at..at + 3]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(image: &ImageBuf, x: usize, y: usize) -> u8 {
        image.as_image().pixel(x, y)[0]
    }

    #[test]
    fn fractions_of_pixels_are_fractions_of_colour() {
        for (x, width, expect) in [
            (1.0, 2.0, [0, 255, 255, 0]),
            (0.5, 2.0, [128, 255, 128, 0]),
            (-1.0, 1.5, [128, 0, 0, 0]),
            (3.0, 9.0, [0, 0, 0, 255]),
            (9.0, 9.0, [0; 4]),
        ] {
            let mut image = ImageBuf::black(4, 1);
            fill(&mut image, x, 0.0, width, 1.0, [255; 3], 1.0);
            assert_eq!([0, 1, 2, 3].map(|i| red(&image, i, 0)), expect, "{width} from {x}");
        }
    }

    #[test]
    fn pictures_are_enlarged_pixel_by_pixel() {
        let rgb = [10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40];
        let small = Image::new(2, 2, &rgb).expect("sizes agree");
        let mut image = ImageBuf::black(6, 6);
        put(&mut image, Rect { x: 1, y: 1, width: 4, height: 4 }, small);
        let row = |y| [0, 1, 2, 3, 4, 5].map(|x| red(&image, x, y));
        assert_eq!(row(0), [0; 6]);
        assert_eq!(row(1), [0, 10, 10, 20, 20, 0]);
        assert_eq!(row(2), row(1));
        assert_eq!(row(3), [0, 30, 30, 40, 40, 0]);
        assert_eq!(row(5), [0; 6]);
        // A rectangle that does not fit changes nothing.
        let before = image.clone();
        put(&mut image, Rect { x: 3, y: 0, width: 4, height: 4 }, small);
        assert_eq!(image, before);
    }

    #[test]
    fn corners_are_round_on_all_four_sides() {
        let mut image = ImageBuf::black(20, 20);
        let rect = Rect { x: 2, y: 2, width: 16, height: 16 };
        fill_round(&mut image, rect, 6.0, [200; 3]);
        for (x, y) in [(2, 2), (17, 2), (2, 17), (17, 17), (1, 9), (18, 9)] {
            assert_eq!(red(&image, x, y), 0, "({x}, {y})");
        }
        for (x, y) in [(2, 9), (17, 9), (9, 2), (9, 17), (10, 10)] {
            assert_eq!(red(&image, x, y), 200, "({x}, {y})");
        }
        let mut square = ImageBuf::black(20, 20);
        fill(&mut square, 2.0, 2.0, 16.0, 16.0, [200; 3], 1.0);
        round_off(&mut square, rect, 6.0, [0; 3]);
        for (a, b) in image.rgb().iter().zip(square.rgb()) {
            assert!(a.abs_diff(*b) <= 1, "cutting corners off is drawing them round");
        }
    }
}
