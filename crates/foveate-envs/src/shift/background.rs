//! Something else behind the world, as on a green screen.
//!
//! What counts as background is a colour: the commonest of the picture at hand, or the one that `key` names.
//! Every pixel close to it is mixed with another picture, which is glued to the screen. A world's own variants can do
//! better (CarRacing's `noise` and `video` lie on the ground); this one needs nothing but a picture.

use std::sync::Arc;

use foveate_core::{Image, ImageBuf, Rng, Seed};

use super::operator::{KnobValue, Moment, Operator, Picture};

/// What is shown behind the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// One picture of soft spots, another in every episode.
    Still,
    /// Every pixel at random, new in every frame.
    Static,
    /// Soft spots that drift, or the pictures of a folder one after the other.
    Film,
}

/// Pixels between the nodes of the soft spots, in a picture 96 pixels wide.
const CELL_PX: f64 = 12.0;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Background {
    show: Show,
    width: usize,
    height: usize,
    /// Two pictures of soft spots; a still one needs only the first.
    layers: [Vec<u8>; 2],
    /// Colours at the nodes of the soft spots.
    nodes: Vec<[u8; 3]>,
    /// How often colours of 4 bits per channel occur.
    counts: Vec<u32>,
}

impl Background {
    pub(super) fn new(show: Show, width: usize, height: usize) -> Self {
        let layer = || vec![0; width * height * 3];
        Background {
            show,
            width,
            height,
            layers: [layer(), layer()],
            nodes: vec![[0; 3]; (width + 1) * (height + 1)],
            counts: vec![0; 1 << 12],
        }
    }
}

impl Operator for Background {
    fn begin(&mut self, _: Image<'_>, dice: Seed) {
        if self.show != Show::Static {
            let cell = (CELL_PX * self.width as f64 / 96.0).max(1.0);
            for (i, layer) in self.layers.iter_mut().enumerate() {
                let mut rng = dice.child("layer", i as u64).rng();
                spots(layer, [self.width, self.height], cell, &mut self.nodes, &mut rng);
            }
        }
    }

    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let key = now.color(0).unwrap_or_else(|| commonest(picture.rgb, &mut self.counts));
        let tolerance = now.number(1, 40.0) as u8;
        let alpha = (now.amount * 256.0).round() as u32;
        let film = match now.settings.get(2) {
            Some(KnobValue::Folder(_, pictures)) => Some(pictures),
            _ => None,
        };
        let [first, second] = &self.layers;
        let (width, height) = (self.width, self.height);
        let mut rng = now.dice.rng();
        for y in 0..height {
            for x in 0..width {
                let at = (y * width + x) * 3;
                // Drawn for every pixel, so that one pixel's noise does not depend on the others.
                let noise = if self.show == Show::Static { rng.next_u64().to_le_bytes() } else { [0; 8] };
                let pixel = &mut picture.rgb[at..at + 3];
                if pixel.iter().zip(key).any(|(a, b)| a.abs_diff(b) > tolerance) {
                    continue;
                }
                let other = match (self.show, film) {
                    (Show::Still, _) => [first[at], first[at + 1], first[at + 2]],
                    (Show::Static, _) => [noise[0], noise[1], noise[2]],
                    (Show::Film, Some(pictures)) => filmed(pictures, now.step, [x, y], [width, height]),
                    (Show::Film, None) => {
                        // One layer drifts to the left, the other upwards at half the pace.
                        let t = now.step as usize;
                        let a = (y * width + (x + t) % width) * 3;
                        let b = ((y + t / 2) % height * width + x) * 3;
                        std::array::from_fn(|c| first[a + c].midpoint(second[b + c]))
                    }
                };
                for (byte, other) in pixel.iter_mut().zip(other) {
                    let mixed = u32::from(*byte) * (256 - alpha) + u32::from(other) * alpha;
                    *byte = ((mixed + 128) >> 8) as u8;
                }
            }
        }
    }
}

/// The pixel of the film's picture at `step` that lies at this place of the screen.
fn filmed(
    pictures: &Arc<Vec<ImageBuf>>,
    step: u64,
    [x, y]: [usize; 2],
    [width, height]: [usize; 2],
) -> [u8; 3] {
    let picture = pictures[(step % pictures.len() as u64) as usize].as_image();
    picture.pixel(x * picture.width() / width, y * picture.height() / height)
}

/// The mean of the pixels in the most crowded of 4,096 cells of colour.
fn commonest(rgb: &[u8], counts: &mut [u32]) -> [u8; 3] {
    let cell = |p: &[u8]| p.iter().fold(0, |cell, &byte| cell << 4 | usize::from(byte >> 4));
    counts.fill(0);
    for pixel in rgb.chunks_exact(3) {
        counts[cell(pixel)] += 1;
    }
    let most = (0..counts.len()).rev().max_by_key(|&i| counts[i]).unwrap_or(0);
    let mut sums = [0_u64; 3];
    for pixel in rgb.chunks_exact(3).filter(|p| cell(p) == most) {
        for (sum, &byte) in sums.iter_mut().zip(pixel) {
            *sum += u64::from(byte);
        }
    }
    sums.map(|sum| (sum / u64::from(counts[most].max(1))) as u8)
}

/// Random colours at the nodes of a grid that wraps around, smooth in between.
fn spots(out: &mut [u8], [width, height]: [usize; 2], cell: f64, nodes: &mut [[u8; 3]], rng: &mut Rng) {
    let [across, down] = [width, height].map(|side| ((side as f64 / cell).round() as usize).max(1));
    for node in &mut nodes[..across * down] {
        let bits = rng.next_u64().to_le_bytes();
        *node = [bits[0], bits[1], bits[2]];
    }
    // In 256ths of a cell, smoothed by 3 t² − 2 t³.
    let place = |at: usize, side: usize, cells: usize| {
        let fine = at * cells * 256 / side;
        let t = fine % 256;
        (fine / 256, (t * t * (768 - 2 * t) / 65536) as u32)
    };
    for y in 0..height {
        let (row, v) = place(y, height, down);
        let (upper, lower) = (row % down * across, (row + 1) % down * across);
        for x in 0..width {
            let (column, u) = place(x, width, across);
            let (left, right) = (column % across, (column + 1) % across);
            for c in 0..3 {
                let at = |node: usize| u32::from(nodes[node][c]);
                let top = at(upper + left) * (256 - u) + at(upper + right) * u;
                let bottom = at(lower + left) * (256 - u) + at(lower + right) * u;
                out[(y * width + x) * 3 + c] = ((top * (256 - v) + bottom * v + 32768) >> 16) as u8;
            }
        }
    }
}
