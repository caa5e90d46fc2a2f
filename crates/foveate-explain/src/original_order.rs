//! A shuffled picture in its original order, beside the one that the agent got.

use foveate_core::{Image, ImageBuf};

use crate::AttentionMark;

/// Pixels between the two pictures.
const GAP: usize = 4;
/// Their colour.
const BETWEEN: [u8; 3] = [24, 29, 36];

/// The places of a picture's square patches before they were shuffled.
#[derive(Debug, Clone, Copy)]
pub struct OriginalOrder<'a> {
    order: &'a [u32],
    patch: usize,
    columns: usize,
    /// Height of one frame of a stack.
    height: usize,
}

impl<'a> OriginalOrder<'a> {
    /// The order of the patches, as [`Env::sensor_order`](foveate_core::Env::sensor_order) gives it, for a picture of
    /// `frames` frames one below the other; `None` when it is not that of patches that cover such a picture.
    pub fn new(order: &'a [u32], width: usize, height: usize, frames: usize) -> Option<Self> {
        let height = height.checked_div(frames)?;
        let patch = (width * height).checked_div(order.len())?.isqrt();
        let fits = patch > 0
            && width.is_multiple_of(patch)
            && height.is_multiple_of(patch)
            && width / patch * (height / patch) == order.len()
            && order.iter().all(|&place| (place as usize) < order.len());
        fits.then(|| OriginalOrder { order, patch, columns: width / patch, height })
    }

    /// The picture with every patch back at its place. Places whose patch is not shown are black.
    pub fn restore(&self, shown: Image<'_>) -> ImageBuf {
        let mut original = ImageBuf::black(shown.width(), shown.height());
        let (row, stride) = (self.patch * 3, shown.width() * 3);
        for frame in 0..shown.height() / self.height {
            let at = |index: usize, line: usize| {
                (frame * self.height + index / self.columns * self.patch + line) * stride
                    + index % self.columns * row
            };
            for (i, &place) in self.order.iter().enumerate() {
                for line in 0..self.patch {
                    let patch = &shown.rgb()[at(i, line)..][..row];
                    original.rgb_mut()[at(place as usize, line)..][..row].copy_from_slice(patch);
                }
            }
        }
        original
    }

    /// The place, before the shuffle, of the patch that the mark's middle lies in.
    pub fn restore_mark(&self, mark: AttentionMark) -> AttentionMark {
        let patch = self.patch as f32;
        let (middle_x, middle_y) = (mark.x + mark.width * 0.5, mark.y + mark.height * 0.5);
        let top = (middle_y / self.height as f32).floor() * self.height as f32;
        let (column, row) = ((middle_x / patch) as usize, ((middle_y - top) / patch) as usize);
        let Some(&place) = self.order.get(row * self.columns + column) else { return mark };
        let [x, y] =
            [place as usize % self.columns, place as usize / self.columns].map(|at| at as f32 * patch);
        AttentionMark { x, y: top + y, width: patch, height: patch, ..mark }
    }

    /// The shown picture on the left and the restored one on the right, with the marks of both.
    pub fn side_by_side(&self, shown: Image<'_>, marks: &[AttentionMark]) -> (ImageBuf, Vec<AttentionMark>) {
        let (width, height) = (shown.width(), shown.height());
        let original = self.restore(shown);
        let across = 2 * width + GAP;
        let mut both = ImageBuf::black(across, height);
        for (row, line) in both.rgb_mut().chunks_exact_mut(across * 3).enumerate() {
            let (left, rest) = line.split_at_mut(width * 3);
            let (gap, right) = rest.split_at_mut(GAP * 3);
            left.copy_from_slice(&shown.rgb()[row * width * 3..][..width * 3]);
            gap.as_chunks_mut::<3>().0.fill(BETWEEN);
            right.copy_from_slice(&original.rgb()[row * width * 3..][..width * 3]);
        }
        // Most important first: a mark and its other place have the same rank.
        let moved = |mark: &AttentionMark| {
            let other = self.restore_mark(*mark);
            [*mark, AttentionMark { x: other.x + (width + GAP) as f32, ..other }]
        };
        (both, marks.iter().flat_map(moved).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_and_marks_go_back_to_their_places() {
        // Two frames of 4 x 2 pixels, patches of 2: the two patches of a frame have changed places.
        let grey: Vec<u8> = vec![3, 3, 1, 1, 3, 3, 1, 1, 7, 7, 5, 5, 7, 7, 5, 5];
        let rgb: Vec<u8> = grey.iter().flat_map(|&g| [g; 3]).collect();
        let shown = Image::new(4, 4, &rgb).expect("sizes agree");
        let order = OriginalOrder::new(&[1, 0], 4, 4, 2).expect("two patches of 2 x 2");
        let original = order.restore(shown);
        let back: Vec<u8> = original.rgb().chunks_exact(3).map(|p| p[0]).collect();
        assert_eq!(back, [1, 1, 3, 3, 1, 1, 3, 3, 5, 5, 7, 7, 5, 5, 7, 7]);
        let mark = AttentionMark { x: 0.0, y: 2.0, width: 2.0, height: 2.0, opacity: 0.5 };
        assert_eq!(order.restore_mark(mark), AttentionMark { x: 2.0, ..mark });
        let (both, marks) = order.side_by_side(shown, &[mark]);
        assert_eq!((both.width(), both.height()), (4 + GAP + 4, 4));
        assert_eq!(both.as_image().pixel(0, 0), [3; 3]);
        assert_eq!(both.as_image().pixel(4 + GAP, 0), [1; 3]);
        assert_eq!(marks, [mark, AttentionMark { x: 2.0 + 4.0 + GAP as f32, ..mark }]);
    }

    #[test]
    fn orders_of_anything_else_are_none() {
        for (order, width, height, frames) in [
            (&[][..], 4, 4, 2),
            (&[0, 1, 2], 4, 4, 2),
            (&[0, 2], 4, 4, 2),
            (&[0, u32::MAX], 4, 4, 2),
            (&[0, 1], 4, 4, 0),
            (&[0], 0, 0, 1),
        ] {
            assert!(OriginalOrder::new(order, width, height, frames).is_none(), "{order:?}");
        }
    }
}
