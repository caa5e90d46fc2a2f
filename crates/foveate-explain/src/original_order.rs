//! Shuffled sensors in their original order: a picture beside the one that the agent got, and the names of numbers.

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

    /// Side of a patch in pixels.
    pub const fn patch(&self) -> usize {
        self.patch
    }

    /// `[patches]`: the place of each patch before the shuffle, row-major.
    pub const fn places(&self) -> &'a [u32] {
        self.order
    }

    /// The picture with every patch back at its place. Places whose patch is not shown are black.
    pub fn restore(&self, shown: Image<'_>) -> ImageBuf {
        let mut original = ImageBuf::black(shown.width(), shown.height());
        self.each_line(shown.height(), |here, home, row| {
            original.rgb_mut()[home..home + row].copy_from_slice(&shown.rgb()[here..here + row]);
        });
        original
    }

    /// Returns whether every place has exactly one patch.
    pub fn is_permutation(&self) -> bool {
        let mut there = vec![false; self.order.len()];
        for &place in self.order {
            there[place as usize] = true;
        }
        there.iter().all(|&there| there)
    }

    /// The reverse of [`OriginalOrder::restore`]: the picture with its patches in the order shown.
    pub fn shuffle(&self, original: Image<'_>) -> ImageBuf {
        let mut shown = ImageBuf::black(original.width(), original.height());
        self.each_line(shown.height(), |here, home, row| {
            shown.rgb_mut()[here..here + row].copy_from_slice(&original.rgb()[home..home + row]);
        });
        shown
    }

    /// Calls `each` for every line of pixels of every patch of a picture: where it begins in the order shown, where in the
    /// original order, and how many bytes it has.
    fn each_line(&self, height: usize, mut each: impl FnMut(usize, usize, usize)) {
        let (row, stride) = (self.patch * 3, self.columns * self.patch * 3);
        for frame in 0..height / self.height {
            let at = |index: usize, line: usize| {
                (frame * self.height + index / self.columns * self.patch + line) * stride
                    + index % self.columns * row
            };
            for (i, &place) in self.order.iter().enumerate() {
                for line in 0..self.patch {
                    each(at(i, line), at(place as usize, line), row);
                }
            }
        }
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

/// The names of `shown` numbers in the order in which the world shows them, given the names of the unchanged world's
/// numbers. `order` is what [`Env::sensor_order`](foveate_core::Env::sensor_order) gives.
///
/// ```
/// let names = ["x".to_owned(), "speed".to_owned()];
/// let order = [1, 0, 1, u32::MAX];
/// let shown = foveate_explain::sensor_names(Some(&order), 4, &names);
/// assert_eq!(shown, ["speed", "x", "speed (2)", "extra 1"]);
/// ```
pub fn sensor_names(order: Option<&[u32]>, shown: usize, names: &[String]) -> Vec<String> {
    let sensor =
        |at: usize| order.map_or(Some(at as u32), |order| order.get(at).copied()).unwrap_or(u32::MAX);
    let mut seen = std::collections::BTreeMap::new();
    (0..shown)
        .map(|at| {
            let copies = seen.entry(sensor(at)).or_insert(0);
            *copies += 1;
            sensor_name(sensor(at), *copies - 1, names)
        })
        .collect()
}

/// What copy number `copy` of a sensor is called; `u32::MAX` is a sensor that the unchanged world does not have.
pub(crate) fn sensor_name(sensor: u32, copy: u32, names: &[String]) -> String {
    let Some(name) = names.get(sensor as usize) else {
        return match sensor {
            u32::MAX => format!("extra {}", copy + 1),
            _ if copy > 0 => format!("sensor {sensor} ({})", copy + 1),
            _ => format!("sensor {sensor}"),
        };
    };
    if copy > 0 { format!("{name} ({})", copy + 1) } else { name.clone() }
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
        assert!(order.is_permutation());
        assert_eq!(order.shuffle(original.as_image()).rgb(), shown.rgb(), "and there again");
        let mark = AttentionMark { x: 0.0, y: 2.0, width: 2.0, height: 2.0, opacity: 0.5, effect: None };
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
