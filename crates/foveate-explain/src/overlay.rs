//! The patches an agent saw, laid over its picture.

use foveate_core::{Gaze, Image, ImageBuf, PatchGrid};

use crate::enlarge_bilinear;

/// A patch that the agent saw, as a rectangle of its picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GazeMark {
    /// Left edge in pixels of the picture.
    pub x: f32,
    /// Top edge in pixels of the picture.
    pub y: f32,
    /// Width in pixels of the picture.
    pub width: f32,
    /// Height in pixels of the picture.
    pub height: f32,
    /// `1 - rank / K`: 1 for the most important patch, whatever the order in which the controller was told about it.
    pub opacity: f32,
}

/// The patches of `gaze`, most important first, as rectangles of a `width` × `height` picture.
///
/// The agent may have looked at a smaller or larger copy of the picture; the rectangles are scaled accordingly.
pub fn gaze_marks(width: usize, height: usize, gaze: &Gaze<'_>) -> Vec<GazeMark> {
    let top_k = gaze.looked_at.len() as f32;
    gaze.by_importance()
        .into_iter()
        .enumerate()
        .filter(|&(_, patch)| (patch as usize) < gaze.grid.len())
        .map(|(rank, patch)| {
            let [x, y, across, down] = rectangle(width, height, gaze.grid, patch);
            GazeMark { x, y, width: across, height: down, opacity: 1.0 - rank as f32 / top_k }
        })
        .collect()
}

/// Left, top, width and height of a patch of `grid` in a `width` × `height` picture.
pub(crate) fn rectangle(width: usize, height: usize, grid: PatchGrid, patch: u32) -> [f32; 4] {
    let across = width as f32 / grid.width() as f32;
    let down = height as f32 / grid.height() as f32;
    let (x, y) = grid.corner(patch as usize);
    [x as f32 * across, y as f32 * down, grid.patch() as f32 * across, grid.patch() as f32 * down]
}

/// The look of AttentionAgent's figures (Tang, Nguyen and Ha 2020): for rank i of K in order, each pixel of the patch
/// becomes `i/K · pixel + (1 - i/K) · white`.
///
/// The most important patch turns white, the last one hardly changes; where patches overlap, the later one is laid
/// over the earlier. Rounded to the nearest byte at the end.
pub fn whiten(frame: Image<'_>, gaze: &Gaze<'_>) -> ImageBuf {
    to_bytes(frame.width(), frame.height(), &whitened(frame, gaze))
}

/// [`whiten`], enlarged `scale` times by bilinear interpolation, as in the published figures (there `scale` is 5).
pub fn gaze_overlay(frame: Image<'_>, gaze: &Gaze<'_>, scale: usize) -> ImageBuf {
    let (width, height) = (frame.width(), frame.height());
    let large = enlarge_bilinear(width, height, &whitened(frame, gaze), scale);
    to_bytes(width * scale, height * scale, &large)
}

/// `[height, width, 3]` in 0..=255, not yet rounded.
fn whitened(frame: Image<'_>, gaze: &Gaze<'_>) -> Vec<f32> {
    let (width, height) = (frame.width(), frame.height());
    let mut pixels: Vec<f32> = frame.rgb().iter().map(|&byte| f32::from(byte)).collect();
    for mark in gaze_marks(width, height, gaze) {
        let keep = 1.0 - mark.opacity;
        let white = mark.opacity * 255.0;
        let columns = pixel_range(mark.x, mark.width, width);
        for y in pixel_range(mark.y, mark.height, height) {
            let row = y * width;
            for value in &mut pixels[(row + columns.start) * 3..(row + columns.end) * 3] {
                *value = keep * *value + white;
            }
        }
    }
    pixels
}

/// The pixels whose centres lie in `start .. start + len`.
pub(crate) fn pixel_range(start: f32, len: f32, limit: usize) -> std::ops::Range<usize> {
    let first = (start.round() as usize).min(limit);
    let end = ((start + len).round() as usize).clamp(first, limit);
    first..end
}

fn to_bytes(width: usize, height: usize, pixels: &[f32]) -> ImageBuf {
    let mut image = ImageBuf::black(width, height);
    for (byte, value) in image.rgb_mut().iter_mut().zip(pixels) {
        *byte = value.round().clamp(0.0, 255.0) as u8;
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of pixels of brightness 100, patches of one pixel; returns that row afterwards.
    fn row_after(looked_at: &[u32], width: usize, patch: usize) -> Vec<u8> {
        let rgb = vec![100; width * patch * 3];
        let frame = Image::new(width, patch, &rgb).expect("sizes agree");
        let grid = PatchGrid::tile(width, patch, patch, 1).expect("fits");
        let importance = vec![0.0; grid.len()];
        let out = whiten(frame, &Gaze { grid, importance: &importance, looked_at });
        out.rgb().chunks(3).take(width).map(|p| p[0]).collect()
    }

    #[track_caller]
    fn check(looked_at: &[u32], width: usize, patch: usize, expect: &[u8]) {
        assert_eq!(row_after(looked_at, width, patch), expect);
    }

    #[test]
    fn whiteness_falls_with_rank() {
        check(&[], 3, 1, &[100, 100, 100]);
        check(&[1], 3, 1, &[100, 255, 100]);
        // rank 1 of 2: half the pixel, half white
        check(&[2, 0], 3, 1, &[178, 100, 255]);
        // rank 9 of 10 keeps nine tenths: 0.9 * 100 + 0.1 * 255 = 115.5
        check(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 10, 1, &[255, 240, 224, 209, 193, 178, 162, 147, 131, 116]);
    }

    #[test]
    fn whiteness_follows_importance_whatever_the_order() {
        let rgb = vec![100; 4 * 3];
        let frame = Image::new(4, 1, &rgb).expect("sizes agree");
        let grid = PatchGrid::tile(4, 1, 1, 1).expect("fits");
        let importance = [0.2, 0.9, 0.1, 0.5];
        let whitened = |looked_at: &[u32]| {
            let out = whiten(frame, &Gaze { grid, importance: &importance, looked_at });
            out.rgb().chunks(3).map(|p| p[0]).collect::<Vec<u8>>()
        };
        let expect = [152, 255, 100, 203];
        // By importance, in the order in which one reads the picture, and the least important first.
        for looked_at in [[1, 3, 0], [0, 1, 3], [0, 3, 1]] {
            assert_eq!(whitened(&looked_at), expect, "{looked_at:?}");
        }
    }

    #[test]
    fn later_patches_lie_over_earlier_ones() {
        // Patch 0 whitens columns 0..3; patch 1 then mixes columns 1..4 half and half, white staying white.
        check(&[0, 1], 5, 3, &[255, 255, 255, 178, 100]);
        // The other way round, the later patch 0 acts on what patch 1 left.
        check(&[1, 0], 5, 3, &[178, 255, 255, 255, 100]);
    }

    #[test]
    fn a_patch_is_its_centre_plus_and_minus_three() {
        let rgb = vec![0; 96 * 96 * 3];
        let frame = Image::new(96, 96, &rgb).expect("sizes agree");
        let grid = PatchGrid::tile(96, 96, 7, 4).expect("fits");
        let importance = vec![0.0; grid.len()];
        let patch = 5 * 23 + 2;
        let out = whiten(frame, &Gaze { grid, importance: &importance, looked_at: &[patch] });
        let (cx, cy) = grid.centre(patch as usize);
        assert_eq!((cx, cy), (11, 23));
        for y in 0..96_usize {
            for x in 0..96_usize {
                let inside = x.abs_diff(cx) <= 3 && y.abs_diff(cy) <= 3;
                assert_eq!(out.as_image().pixel(x, y), if inside { [255; 3] } else { [0; 3] }, "{x},{y}");
            }
        }
    }

    #[test]
    fn enlarging_is_bilinear() {
        let rgb = [0, 0, 0, 100, 100, 100];
        let frame = Image::new(2, 1, &rgb).expect("sizes agree");
        let grid = PatchGrid::tile(2, 1, 1, 1).expect("fits");
        let gaze = Gaze { grid, importance: &[0.0, 0.0], looked_at: &[] };
        let out = gaze_overlay(frame, &gaze, 4);
        let row: Vec<u8> = out.rgb().chunks(3).take(8).map(|p| p[0]).collect();
        assert_eq!((out.width(), out.height()), (8, 4));
        assert_eq!(row, [0, 0, 13, 38, 63, 88, 100, 100]);
    }

    #[test]
    fn marks_follow_a_resized_picture() {
        let grid = PatchGrid::tile(48, 48, 7, 4).expect("fits");
        let importance = vec![0.0; grid.len()];
        let gaze = Gaze { grid, importance: &importance, looked_at: &[1, 11] };
        let marks = gaze_marks(96, 192, &gaze);
        assert_eq!(marks[0], GazeMark { x: 8.0, y: 0.0, width: 14.0, height: 28.0, opacity: 1.0 });
        assert_eq!(marks[1], GazeMark { x: 0.0, y: 16.0, width: 14.0, height: 28.0, opacity: 0.5 });
    }
}
