//! Pictures of weights over cells: bright where a head attends, red and blue where it asks for contents or places, and sheets of
//! such pictures.

use foveate_core::{Image, ImageBuf, PatchGrid};

use crate::charts::WHOLE;
use crate::figure::{Anchor, Drawing, Ink, LETTERS};

/// Brightness of what gets no attention.
const DARKEST: f64 = 0.25;
/// How much of white is laid over what gets most.
const WHITE: f64 = 0.5;

/// Head `head` of `[heads, cells]`.
pub(super) fn head(of: &[f32], cells: usize, head: usize) -> Vec<f64> {
    of[head * cells..][..cells].iter().map(|&x| f64::from(x)).collect()
}

/// A copy of a picture.
pub(super) fn to_buf(picture: Image<'_>) -> ImageBuf {
    ImageBuf::from_rgb(picture.width(), picture.height(), picture.rgb().to_vec())
        .unwrap_or_else(|| ImageBuf::black(picture.width(), picture.height()))
}

/// Values of cells at every pixel, linear between the cells' middles.
fn enlarged(values: &[f64], grid: PatchGrid, width: usize, height: usize) -> Vec<f64> {
    let (columns, rows) = (grid.width(), grid.height());
    let place = |pixel: usize, pixels: usize, cells: usize| {
        let at = ((pixel as f64 + 0.5) * cells as f64 / pixels as f64 - 0.5).clamp(0.0, (cells - 1) as f64);
        let low = at.floor() as usize;
        (low, (low + 1).min(cells - 1), at - at.floor())
    };
    let mut out = Vec::with_capacity(width * height);
    for y in 0..height {
        let (top, below, down) = place(y, height, rows);
        for x in 0..width {
            let (left, right, across) = place(x, width, columns);
            let row = |row: usize| {
                values[row * columns + left] * (1.0 - across) + values[row * columns + right] * across
            };
            out.push(row(top) * (1.0 - down) + row(below) * down);
        }
    }
    out
}

/// The picture, dark where the weights are small: with w = weight / largest weight, its brightness is b + (1 − b) · w with b = 0.25,
/// and white is laid over it by 0.5 · w, so that an attended place is seen on a black ground, too.
pub(super) fn bright(picture: Image<'_>, grid: PatchGrid, weights: &[f64]) -> ImageBuf {
    let (width, height) = (picture.width(), picture.height());
    let values = enlarged(weights, grid, width, height);
    let most = weights.iter().copied().fold(0.0, f64::max).max(1e-300);
    let mut out = ImageBuf::black(width, height);
    let pixels = out.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(picture.rgb().as_chunks::<3>().0);
    for ((to, from), value) in pixels.zip(values) {
        let weight = (value / most).clamp(0.0, 1.0);
        let (share, white) = (DARKEST + (1.0 - DARKEST) * weight, WHITE * weight);
        for (to, &from) in to.iter_mut().zip(from) {
            *to = (f64::from(from) * share * (1.0 - white) + 255.0 * white).round() as u8;
        }
    }
    out
}

/// Values from −1 to 1 as a picture with a pixel for each cell: red above 0, white at 0, blue below.
pub(super) fn red_and_blue(grid: PatchGrid, values: &[f64]) -> ImageBuf {
    let mut out = ImageBuf::black(grid.width(), grid.height());
    for (to, value) in out.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(values) {
        let strength = value.abs().min(1.0);
        let full = if *value > 0.0 { [200.0, 30.0, 40.0] } else { [40.0, 80.0, 200.0] };
        for (to, full) in to.iter_mut().zip(full) {
            *to = (255.0 + (full - 255.0) * strength).round() as u8;
        }
    }
    out
}

/// Pictures in rows and columns, with a name above each column and beside each row. All have the sides of the first.
pub(super) fn sheet(columns: &[String], rows: &[(String, Vec<ImageBuf>)]) -> Drawing {
    const LEFT: f64 = 84.0;
    const ABOVE: f64 = 24.0;
    const GAP: f64 = 10.0;
    let shape = rows.iter().find_map(|(_, pictures)| pictures.first());
    let tall = shape.map_or(1.0, |first| first.as_image().height() as f64 / first.as_image().width() as f64);
    let wide = ((WHOLE - LEFT) / columns.len().max(1) as f64 - GAP).min(260.0);
    let mut sheet = Drawing::new(WHOLE, ABOVE + rows.len() as f64 * (wide * tall + GAP));
    for (i, name) in columns.iter().enumerate() {
        let x = LEFT + i as f64 * (wide + GAP) + wide / 2.0;
        sheet.text((x, ABOVE - 9.0), LETTERS, Anchor::Middle, Ink::Muted, name);
    }
    for (i, (name, pictures)) in rows.iter().enumerate() {
        let y = ABOVE + i as f64 * (wide * tall + GAP);
        sheet.text((LEFT - 12.0, y + wide * tall / 2.0), LETTERS, Anchor::End, Ink::Text, name);
        for (k, picture) in pictures.iter().enumerate() {
            let x = LEFT + k as f64 * (wide + GAP);
            sheet.rect([x - 1.0, y - 1.0, wide + 2.0, wide * tall + 2.0], Ink::Muted, 0.6);
            sheet.picture([x, y, wide, wide * tall], picture.clone());
        }
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weight_is_lit_and_none_leaves_a_quarter() {
        let rgb = vec![200; 6 * 2 * 3];
        let picture = Image::new(6, 2, &rgb).expect("sizes agree");
        let grid = PatchGrid::tile(3, 1, 1, 1).expect("fits");
        let out = bright(picture, grid, &[0.0, 0.0, 0.8]);
        let row: Vec<u8> = out.rgb().chunks(3).take(6).map(|pixel| pixel[0]).collect();
        assert_eq!((row[0], row[1], row[5]), (50, 50, 228));
        assert!(row[3] > 50 && row[3] < row[4] && row[4] < 228, "{row:?}");
        let black = bright(Image::new(6, 2, &[0; 6 * 2 * 3]).expect("sizes agree"), grid, &[0.0, 0.0, 0.8]);
        assert_eq!((black.rgb()[0], black.rgb()[15]), (0, 128));
    }

    #[test]
    fn signs_are_colours() {
        let grid = PatchGrid::tile(3, 1, 1, 1).expect("fits");
        let out = red_and_blue(grid, &[1.0, 0.0, -2.0]);
        let pixel = |x| out.as_image().pixel(x, 0);
        assert_eq!(pixel(1), [255; 3]);
        assert!(pixel(0)[0] > pixel(0)[2] && pixel(2)[2] > pixel(2)[0]);
    }
}
