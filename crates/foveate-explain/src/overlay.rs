//! The patches an agent saw, laid over its picture.

use foveate_core::{Attention, Image, ImageBuf, PatchGrid, PixelShape, Pixels, Tokens};

use crate::charts::glow;
use crate::enlarge_bilinear;

/// Whether `grid` lies over each frame of a stack, and not over all of them, one below the other: whether its proportions are nearer
/// to those of a frame. Its sides may be others, since an agent may see pictures smaller, or attend to the cells of a feature map.
pub(crate) fn lies_over_one_frame(grid: PatchGrid, shape: PixelShape) -> bool {
    // The grid's height in frames, where its width is that of a frame.
    let tall = (grid.height() * shape.width) as f64 / (grid.width() * shape.height).max(1) as f64;
    tall * tall < shape.frames as f64
}

/// The picture that patches of `grid` lie in: of a stack of frames the newest one when the grid lies over one frame, else all
/// frames one below the other. Pictures that are not RGB are written to `scratch`.
pub fn attended_picture<'s>(
    pixels: Pixels<'s>,
    grid: Option<PatchGrid>,
    scratch: &'s mut Vec<u8>,
) -> Image<'s> {
    let one = PixelShape { frames: 1, ..pixels.shape() };
    let newest = match grid {
        Some(grid) if lies_over_one_frame(grid, pixels.shape()) => {
            pixels.frames().checked_sub(1).and_then(|last| Pixels::new(one, pixels.frame(last)?))
        }
        _ => None,
    };
    newest.unwrap_or(pixels).to_rgb(scratch)
}

/// A token that the agent handed on to its controller, as a rectangle of its picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionMark {
    /// Left edge in pixels of the picture.
    pub x: f32,
    /// Top edge in pixels of the picture.
    pub y: f32,
    /// Width in pixels of the picture.
    pub width: f32,
    /// Height in pixels of the picture.
    pub height: f32,
    /// `1 - rank / K`: 1 for the most important one, whatever the order in which the controller was told about it.
    pub opacity: f32,
    /// How far the action changes without the patch, as a part of the strongest effect, from 0 to 1; `None` where that was not
    /// measured.
    pub effect: Option<f32>,
}

/// The tokens that were handed on, most important first, as rectangles of a `width` × `height` picture. None for soft
/// attention, which is a [map](heat_map), and for tokens that have no place in a picture.
///
/// The agent may have seen a smaller or larger copy of the picture; the rectangles are scaled accordingly.
pub fn attention_marks(width: usize, height: usize, attention: &Attention<'_>) -> Vec<AttentionMark> {
    if attention.selected().is_none() {
        return vec![];
    }
    let top_k = attention.len() as f32;
    attention
        .by_rank()
        .into_iter()
        .enumerate()
        .filter_map(|(rank, token)| {
            let [x, y, across, down] = attention.tokens().rectangle(width, height, token)?;
            Some(AttentionMark {
                x,
                y,
                width: across,
                height: down,
                opacity: 1.0 - rank as f32 / top_k,
                effect: None,
            })
        })
        .collect()
}

/// As [`attention_marks`], of what was measured, with how far the action changes without it: `effects` come from
/// [`EffectMeter::measure`](crate::study::EffectMeter::measure), and `strongest` is the effect of the strongest frame.
pub fn effect_marks(
    width: usize,
    height: usize,
    attention: &Attention<'_>,
    effects: &[(u32, f64)],
    strongest: f64,
) -> Vec<AttentionMark> {
    let mark = |(rank, &(token, effect)): (usize, &(u32, f64))| {
        let [x, y, across, down] = attention.tokens().rectangle(width, height, token)?;
        let opacity = 1.0 - rank as f32 / effects.len() as f32;
        let effect = Some((effect / strongest).min(1.0) as f32);
        Some(AttentionMark { x, y, width: across, height: down, opacity, effect })
    };
    effects.iter().enumerate().filter_map(mark).collect()
}

/// Left, top, width and height of a patch of `grid` in a `width` × `height` picture; nothing for a number that is none.
pub(crate) fn rectangle(width: usize, height: usize, grid: PatchGrid, patch: u32) -> [f32; 4] {
    Tokens::Patches(grid).rectangle(width, height, patch).unwrap_or_default()
}

/// The look of AttentionAgent's figures (Tang, Nguyen and Ha 2020): for rank i of K in order, each pixel of the patch
/// becomes `i/K · pixel + (1 - i/K) · white`.
///
/// The most important patch turns white, the last one hardly changes; where patches overlap, the later one is laid
/// over the earlier. Rounded to the nearest byte at the end.
pub fn whiten(frame: Image<'_>, attention: &Attention<'_>) -> ImageBuf {
    to_bytes(frame.width(), frame.height(), &whitened(frame, attention))
}

/// The picture with what was attended to laid over it: the selected patches [whitened](whiten), or the
/// [heat map](heat_map) of soft attention, the mean of all heads. `None` for tokens that have no place in a picture: those
/// are drawn by [`charts::attention_figure`](crate::charts::attention_figure).
pub fn overlay(frame: Image<'_>, attention: &Attention<'_>) -> Option<ImageBuf> {
    match (attention.tokens(), attention.selected()) {
        (Tokens::Named(_) | Tokens::Grid { .. }, _) => None,
        (_, Some(_)) => Some(whiten(frame, attention)),
        (_, None) => heat_map(frame, attention, None),
    }
}

/// How much each place of the picture was attended to, glowing over the darkened picture: of one head, or of all heads
/// together. The largest weight glows most. `None` for tokens that have no place in a picture, and for a head that does
/// not exist.
pub fn heat_map(frame: Image<'_>, attention: &Attention<'_>, head: Option<usize>) -> Option<ImageBuf> {
    let grid = attention.tokens().grid()?;
    let weights = match head {
        Some(head) if head >= attention.heads() => return None,
        Some(head) => attention.importance_of(head),
        None => attention.importance(),
    };
    let weights: Vec<f64> =
        weights.iter().map(|&w| if w.is_finite() { f64::from(w.max(0.0)) } else { 0.0 }).collect();
    Some(glow(frame, grid, &weights))
}

/// [`whiten`], enlarged `scale` times by bilinear interpolation, as in the published figures (there `scale` is 5).
pub fn attention_overlay(frame: Image<'_>, attention: &Attention<'_>, scale: usize) -> ImageBuf {
    let (width, height) = (frame.width(), frame.height());
    let large = enlarge_bilinear(width, height, &whitened(frame, attention), scale);
    to_bytes(width * scale, height * scale, &large)
}

/// `[height, width, 3]` in 0..=255, not yet rounded.
fn whitened(frame: Image<'_>, attention: &Attention<'_>) -> Vec<f32> {
    let (width, height) = (frame.width(), frame.height());
    let mut pixels: Vec<f32> = frame.rgb().iter().map(|&byte| f32::from(byte)).collect();
    for mark in attention_marks(width, height, attention) {
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
    use foveate_core::Selected;

    use super::*;

    #[test]
    fn patches_of_one_frame_lie_in_the_newest() {
        let shape = PixelShape { frames: 3, height: 2, width: 4, channels: 1 };
        let bytes: Vec<u8> = (0..24).collect();
        let pixels = Pixels::new(shape, &bytes).expect("24 bytes");
        let grid = |height| PatchGrid::tile(4, height, 2, 2).expect("fits");
        let mut scratch = vec![];
        // Cells of a feature map with half of the sides, too.
        for one in [grid(2), PatchGrid::tile(2, 1, 1, 1).expect("fits")] {
            let newest = attended_picture(pixels, Some(one), &mut scratch);
            assert_eq!((newest.width(), newest.height(), newest.rgb()[0]), (4, 2, 16));
        }
        for all in [Some(grid(6)), None] {
            let image = attended_picture(pixels, all, &mut scratch);
            assert_eq!((image.width(), image.height(), image.rgb()[0]), (4, 6, 0));
        }
    }

    /// Attention whose ranks are the order of telling.
    fn told_in_order_of_rank<'a>(grid: PatchGrid, importance: &'a [f32], tokens: &'a [u32]) -> Attention<'a> {
        const RANKS: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let selected = Selected { tokens, ranks: &RANKS[..tokens.len()] };
        Attention::patches(grid, importance, selected).expect("they fit together")
    }

    /// One row of pixels of brightness 100, patches of one pixel; returns that row afterwards.
    fn row_after(chosen: &[u32], width: usize, patch: usize) -> Vec<u8> {
        let rgb = vec![100; width * patch * 3];
        let frame = Image::new(width, patch, &rgb).expect("sizes agree");
        let grid = PatchGrid::tile(width, patch, patch, 1).expect("fits");
        let importance = vec![0.0; grid.len()];
        let out = whiten(frame, &told_in_order_of_rank(grid, &importance, chosen));
        out.rgb().chunks(3).take(width).map(|p| p[0]).collect()
    }

    #[track_caller]
    fn check(chosen: &[u32], width: usize, patch: usize, expect: &[u8]) {
        assert_eq!(row_after(chosen, width, patch), expect);
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
    fn whiteness_follows_ranks_whatever_the_order_of_telling() {
        let rgb = vec![100; 4 * 3];
        let frame = Image::new(4, 1, &rgb).expect("sizes agree");
        let grid = PatchGrid::tile(4, 1, 1, 1).expect("fits");
        // Ranks decide, not these.
        let importance = [0.9, 0.2, 0.1, 0.5];
        let expect = [152, 255, 100, 203];
        for (tokens, ranks) in [([1, 3, 0], [0, 1, 2]), ([0, 1, 3], [2, 0, 1]), ([0, 3, 1], [2, 1, 0])] {
            let selected = Selected { tokens: &tokens, ranks: &ranks };
            let attention = Attention::patches(grid, &importance, selected).expect("they fit together");
            let out = whiten(frame, &attention);
            assert_eq!(out.rgb().chunks(3).map(|p| p[0]).collect::<Vec<u8>>(), expect, "{tokens:?}");
            let marks = attention_marks(4, 1, &attention);
            assert_eq!(marks.iter().map(|m| m.x).collect::<Vec<_>>(), [1.0, 3.0, 0.0], "{tokens:?}");
            assert_eq!(overlay(frame, &attention), Some(out), "patches keep their look");
        }
    }

    #[test]
    fn soft_maps_glow_where_they_attend_and_names_have_no_place() {
        let rgb = vec![100; 6 * 4 * 3];
        let frame = Image::new(6, 4, &rgb).expect("sizes agree");
        // Two heads over 2 x 3 cells: one attends to the first cell, one to the last.
        let mut weights = [0.0; 12];
        (weights[0], weights[11]) = (1.0, 1.0);
        let cells = Tokens::Cells { rows: 2, columns: 3 };
        let attention = Attention::soft(cells, 2, 1, &weights).expect("they fit together");
        let bright =
            |image: &ImageBuf, x, y| image.as_image().pixel(x, y).iter().map(|&c| u32::from(c)).sum::<u32>();
        let first = heat_map(frame, &attention, Some(0)).expect("a head");
        let last = heat_map(frame, &attention, Some(1)).expect("a head");
        let both = overlay(frame, &attention).expect("cells have a place");
        for (image, lit, dark) in [(&first, (0, 0), (5, 3)), (&last, (5, 3), (0, 0)), (&both, (1, 1), (3, 0))]
        {
            assert!(bright(image, lit.0, lit.1) > bright(image, dark.0, dark.1));
        }
        assert_eq!(bright(&both, 0, 0), bright(&both, 5, 3), "the mean of both heads");
        assert_eq!(heat_map(frame, &attention, Some(2)), None);
        assert_eq!(attention_marks(6, 4, &attention), []);
        let names = ["a".to_owned(), "b".to_owned()];
        let named = Attention::soft(Tokens::Named(&names), 1, 1, &[0.5, 0.5]).expect("they fit together");
        assert_eq!(overlay(frame, &named), None);
        assert_eq!(heat_map(frame, &named, None), None);
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
        let out = whiten(frame, &told_in_order_of_rank(grid, &importance, &[patch]));
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
        let attention = told_in_order_of_rank(grid, &[0.0, 0.0], &[]);
        let out = attention_overlay(frame, &attention, 4);
        let row: Vec<u8> = out.rgb().chunks(3).take(8).map(|p| p[0]).collect();
        assert_eq!((out.width(), out.height()), (8, 4));
        assert_eq!(row, [0, 0, 13, 38, 63, 88, 100, 100]);
    }

    #[test]
    fn marks_follow_a_resized_picture() {
        let grid = PatchGrid::tile(48, 48, 7, 4).expect("fits");
        let importance = vec![0.0; grid.len()];
        let attention = told_in_order_of_rank(grid, &importance, &[1, 11]);
        let marks = attention_marks(96, 192, &attention);
        assert_eq!(
            marks[0],
            AttentionMark { x: 8.0, y: 0.0, width: 14.0, height: 28.0, opacity: 1.0, effect: None }
        );
        assert_eq!(
            marks[1],
            AttentionMark { x: 0.0, y: 16.0, width: 14.0, height: 28.0, opacity: 0.5, effect: None }
        );
    }
}
