//! Pictures made larger.

/// Enlarges `pixels`, `[height, width, 3]`, `scale` times in both directions by bilinear interpolation.
///
/// Sample points are pixel centres and the border pixels extend outwards, so that a picture of one colour stays one.
///
/// * returns: `[height * scale, width * scale, 3]`
///
/// # Panics
/// When `pixels` has not the length `height * width * 3`.
pub fn enlarge_bilinear(width: usize, height: usize, pixels: &[f32], scale: usize) -> Vec<f32> {
    assert_eq!(pixels.len(), width * height * 3, "pixels are [height, width, 3]");
    let columns = taps(width, scale);
    let rows = taps(height, scale);
    let mut out = Vec::with_capacity(columns.len() * rows.len() * 3);
    for &(top, bottom, down) in &rows {
        for &(left, right, across) in &columns {
            for c in 0..3 {
                let at = |x: usize, y: usize| pixels[(y * width + x) * 3 + c];
                let above = at(left, top) + (at(right, top) - at(left, top)) * across;
                let below = at(left, bottom) + (at(right, bottom) - at(left, bottom)) * across;
                out.push(above + (below - above) * down);
            }
        }
    }
    out
}

/// For every enlarged position: the two source positions it lies between, and how far it is from the first.
fn taps(len: usize, scale: usize) -> Vec<(usize, usize, f32)> {
    let last = len.saturating_sub(1);
    (0..len * scale)
        .map(|i| {
            let at = ((i as f32 + 0.5) / scale as f32 - 0.5).clamp(0.0, last as f32);
            let first = at as usize;
            (first, (first + 1).min(last), at - first as f32)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(row: &[f32], scale: usize, expect: &[f32]) {
        let pixels: Vec<f32> = row.iter().flat_map(|&v| [v; 3]).collect();
        let wide = enlarge_bilinear(row.len(), 1, &pixels, scale);
        let first_row: Vec<f32> = wide.chunks(3).take(row.len() * scale).map(|p| p[0]).collect();
        assert_eq!(first_row, expect);
        let tall = enlarge_bilinear(1, row.len(), &pixels, scale);
        let first_column: Vec<f32> = tall.chunks(3 * scale).map(|p| p[0]).collect();
        assert_eq!(first_column, expect, "both directions agree");
    }

    #[test]
    fn samples_lie_between_pixel_centres() {
        check(&[0.0, 8.0], 1, &[0.0, 8.0]);
        check(&[0.0, 8.0], 2, &[0.0, 2.0, 6.0, 8.0]);
        check(&[8.0, 0.0], 4, &[8.0, 8.0, 7.0, 5.0, 3.0, 1.0, 0.0, 0.0]);
        check(&[3.0, 3.0, 3.0], 3, &[3.0; 9]);
        check(&[5.0], 3, &[5.0; 3]);
    }
}
