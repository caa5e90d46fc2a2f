//! Perturbation saliency (Greydanus et al. 2018; with S3TA's settings, Mott et al. 2019) for any policy, and how far it
//! agrees with attention.

use foveate_core::{Image, ImageBuf, PatchGrid};

use crate::{BLUR_PX, Mask, gaussian_blur};

/// σ of the bump that blends the blurred picture in, in pixels.
pub const BUMP_PX: f64 = 5.0;
/// Places along the shorter side of the picture.
const PLACES: usize = 24;

/// A picture being perturbed place by place: near each place, detail goes and colour stays.
pub struct Perturber<'a> {
    picture: Image<'a>,
    /// Equal parts of the picture, one below the other.
    parts: usize,
    blurred: Vec<u8>,
    stride: usize,
    scratch: ImageBuf,
}

impl<'a> Perturber<'a> {
    /// Prepares perturbations of `picture`.
    pub fn new(picture: Image<'a>) -> Self {
        Perturber::of_stack(picture, 1)
    }

    /// Prepares perturbations of a stack of `parts` pictures of equal height, one below the other: the same place of all
    /// pictures is blurred.
    ///
    /// # Panics
    /// When the height is no multiple of `parts`.
    pub fn of_stack(picture: Image<'a>, parts: usize) -> Self {
        let stride = (picture.width().min(picture.height() / parts) / PLACES).max(1);
        let scratch = ImageBuf::black(picture.width(), picture.height());
        let blurred = crate::parts_of(picture, parts)
            .flat_map(|part| gaussian_blur(part, BLUR_PX).rgb().to_vec())
            .collect();
        Perturber { picture, parts, blurred, stride, scratch }
    }

    /// Height of one part.
    fn height(&self) -> usize {
        self.picture.height() / self.parts
    }

    /// Places from left to right.
    pub fn columns(&self) -> usize {
        self.picture.width().div_ceil(self.stride)
    }

    /// Places from top to bottom.
    pub fn rows(&self) -> usize {
        self.height().div_ceil(self.stride)
    }

    /// The picture with place `index` blurred, places counted row by row.
    pub fn perturbed(&mut self, index: usize) -> &ImageBuf {
        let (width, height) = (self.picture.width(), self.height());
        let middle = |i: usize| (i * self.stride + self.stride / 2) as i64;
        let (cx, cy) = (middle(index % self.columns()), middle(index / self.columns()));
        let reach = (3.0 * BUMP_PX) as i64;
        let rgb = self.scratch.rgb_mut();
        rgb.copy_from_slice(self.picture.rgb());
        let near =
            |c: i64, len: usize| (c - reach).max(0) as usize..((c + reach + 1).max(0) as usize).min(len);
        for y in near(cy, height) {
            for x in near(cx, width) {
                let squared = ((x as i64 - cx).pow(2) + (y as i64 - cy).pow(2)) as f64;
                let mix = (-squared / (2.0 * BUMP_PX * BUMP_PX)).exp();
                for top in (0..self.parts).map(|part| part * height) {
                    let at = ((top + y) * width + x) * 3;
                    for (byte, &soft) in rgb[at..at + 3].iter_mut().zip(&self.blurred[at..at + 3]) {
                        *byte = (f64::from(*byte) * (1.0 - mix) + f64::from(soft) * mix).round() as u8;
                    }
                }
            }
        }
        &self.scratch
    }

    /// `[n_patches]`: of a map of all places, the value of the place nearest to each patch's centre.
    pub fn on_patches(&self, map: &[f64], grid: PatchGrid) -> Vec<f64> {
        let (columns, rows) = (self.columns(), self.rows());
        (0..grid.len())
            .map(|patch| {
                let (x, y) = grid.centre(patch);
                // The middle of a pixel, and of a patch of one pixel, lies half a pixel from its edge.
                let half = grid.patch() % 2;
                let at = |middle: usize, length: usize, of: usize| (2 * middle + half) * length / (2 * of);
                let (x, y) = (at(x, self.picture.width(), grid.width()), at(y, self.height(), grid.height()));
                map[(y / self.stride).min(rows - 1) * columns + (x / self.stride).min(columns - 1)]
            })
            .collect()
    }
}

/// Spearman's rank correlation, ties sharing their mean rank; 0 when one of the lists does not vary.
pub fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let middle = (a.len() as f64 - 1.0) / 2.0;
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(&b) {
        let (x, y) = (x - middle, y - middle);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    if aa * bb > 0.0 { ab / (aa * bb).sqrt() } else { 0.0 }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut to = from + 1;
        while to < order.len() && values[order[to]] == values[order[from]] {
            to += 1;
        }
        for &i in &order[from..to] {
            ranks[i] = (from + to - 1) as f64 / 2.0;
        }
        from = to;
    }
    ranks
}

/// The `k` patches of the highest value, the lower index first among equals.
pub fn top(values: &[f64], k: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|&i, &j| values[j as usize].total_cmp(&values[i as usize]).then(i.cmp(&j)));
    order.truncate(k);
    order
}

/// The share of a map's mass on the `k` places of the largest values above 0, fewer if fewer are; where equal values compete for the
/// last of them, each of these counts by its chance. `None` where all values are alike, so that none is larger, or the map is empty.
///
/// A map dealt out at random has a share of `k` by the number of places.
pub fn mass_on_top(map: &[f64], values: &[f64], k: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let k = k.min(sorted.iter().filter(|value| **value > 0.0).count());
    let whole: f64 = map.iter().sum();
    if k == 0 || sorted.first() == sorted.last() || whole.is_nan() || whole <= 0.0 {
        return None;
    }
    let edge = sorted[k - 1];
    let sum = |of: &dyn Fn(f64) -> bool| -> f64 {
        map.iter().zip(values).filter(|(_, value)| of(**value)).map(|(mass, _)| mass).sum()
    };
    let above = values.iter().filter(|value| **value > edge).count();
    let equal = values.iter().filter(|value| **value == edge).count();
    let last = (k - above) as f64 / equal as f64;
    Some((sum(&|value| value > edge) + last * sum(&|value| value == edge)) / whole)
}

/// How far two maps over the same patches agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Share of the attention on as many of the most salient patches as were selected; `None` where none is more salient.
    pub mass: Option<f64>,
    /// The same of attention dealt out at random.
    pub chance: Option<f64>,
    /// Pixels that the best patches of both have in common, divided by those of either.
    pub overlap: f64,
}

impl Agreement {
    /// Of a saliency map and attention: the most salient patches against those selected.
    pub fn of(grid: PatchGrid, salient: &[f64], importance: &[f64], selected: &[u32]) -> Self {
        let mask = |patches: &[u32]| Mask::of_patches(grid.width(), grid.height(), grid, patches);
        let best = top(salient, selected.len());
        Agreement {
            mass: mass_on_top(importance, salient, selected.len()),
            chance: mass_on_top(&vec![1.0; salient.len()], salient, selected.len()),
            overlap: mask(&best).overlap(&mask(selected)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_as_spearman_says() {
        for (a, b, expect) in [
            (&[1.0, 2.0, 3.0, 4.0][..], &[10.0, 20.0, 25.0, 99.0][..], 1.0),
            (&[1.0, 2.0, 3.0, 4.0], &[9.0, 4.0, 2.0, 1.0], -1.0),
            // scipy.stats.spearmanr([1, 2, 2, 3], [1, 3, 2, 4])
            (&[1.0, 2.0, 2.0, 3.0], &[1.0, 3.0, 2.0, 4.0], 0.948_683_298_050_513_8),
            (&[1.0, 1.0], &[1.0, 2.0], 0.0),
        ] {
            assert!((rank_correlation(a, b) - expect).abs() < 1e-12, "{a:?} {b:?}");
        }
        assert_eq!(top(&[0.5, 2.0, 2.0, 1.0], 3), [1, 2, 3]);
    }

    #[test]
    fn mass_is_counted_on_the_largest_values() {
        for (values, k, expect) in [
            (&[0.0, 3.0, 2.0, 1.0][..], 2, Some(0.5)),
            // One of the two that are second.
            (&[0.0, 3.0, 2.0, 2.0], 2, Some(0.55)),
            // Only one is above 0.
            (&[0.0, 0.0, 0.0, 1.0], 3, Some(0.4)),
            (&[1.0; 4], 2, None),
            (&[0.0; 4], 2, None),
        ] {
            let share = mass_on_top(&[1.0, 2.0, 3.0, 4.0], values, k);
            let apart = share.zip(expect).map(|(a, b)| (a - b).abs());
            assert!(
                share.is_some() == expect.is_some() && apart.unwrap_or(0.0) < 1e-12,
                "{values:?}: {share:?}"
            );
        }
        assert_eq!(mass_on_top(&[0.0; 2], &[0.0, 1.0], 1), None);
    }

    #[test]
    fn a_perturbation_is_local_and_keeps_flat_places() {
        let rgb: Vec<u8> =
            (0..48 * 48).flat_map(|i| [if i % 48 / 4 % 2 == 0 { 200 } else { 50 }; 3]).collect();
        let picture = Image::new(48, 48, &rgb).expect("sizes agree");
        let mut perturber = Perturber::new(picture);
        assert_eq!((perturber.columns(), perturber.rows()), (24, 24));
        let changed = perturber.perturbed(12 * 24 + 12).clone();
        for y in 0..48_usize {
            for x in 0..48_usize {
                let far = x.abs_diff(25) > 15 || y.abs_diff(25) > 15;
                assert!(!far || changed.as_image().pixel(x, y) == picture.pixel(x, y), "({x}, {y})");
            }
        }
        assert_ne!(changed.rgb(), picture.rgb());
        let flat = ImageBuf::from_rgb(48, 48, vec![90; 48 * 48 * 3]).expect("sizes agree");
        assert_eq!(*Perturber::new(flat.as_image()).perturbed(100), flat);
    }

    #[test]
    fn maps_reach_their_patches() {
        let picture = ImageBuf::black(96, 96);
        let perturber = Perturber::new(picture.as_image());
        let grid = PatchGrid::tile(96, 96, 7, 4).expect("fits");
        let map: Vec<f64> = (0..24 * 24).map(f64::from).collect();
        let on = perturber.on_patches(&map, grid);
        // Patch 0 is centred on (3, 3), which lies in place 0; its right neighbour on (7, 3), in place 1.
        assert_eq!((on[0], on[1], on[23]), (0.0, 1.0, 24.0));
        // Of places that tile the picture the middle counts, not the edge.
        let tiles = perturber.on_patches(&map, PatchGrid::tile(12, 12, 1, 1).expect("fits"));
        assert_eq!((tiles[0], tiles[1], tiles[12]), (25.0, 27.0, 73.0));
        let same = Agreement::of(grid, &on, &on, &top(&on, 10));
        assert_eq!(same.overlap, 1.0);
        assert!(same.mass > same.chance && same.chance.is_some(), "{same:?}");
    }
}
