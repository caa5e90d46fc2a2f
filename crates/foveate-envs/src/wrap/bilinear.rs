//! Pillow's bilinear resizing, to the byte.
//!
//! Pillow makes a picture smaller by a triangle as wide as two target pixels, first along the rows, then along the columns,
//! each pass rounded to bytes; weights are whole numbers of 22 binary places. Pillow 13 begins with the columns where the
//! height shrinks much more than the width; here the rows always come first, as in all versions before.

#![allow(clippy::inline_always, reason = "compiled anew for every instruction set, see `Plain`")]

use foveate_kernels::Level;
use foveate_kernels::plain::Plain;

/// Binary places of a weight: 32, less 8 for the byte and 2 so that a sum does not overflow.
const PLACES: u32 = 32 - 8 - 2;

/// A resizing from one size to another. Allocates nothing while it works.
#[derive(Debug, Clone)]
pub struct Bilinear {
    from: (usize, usize),
    to: (usize, usize),
    /// `None` where nothing changes: that pass is left out.
    across: Option<Weights>,
    down: Option<Weights>,
    /// `[from height, to width, channels]`
    between: Vec<u8>,
    /// Pictures on their sides.
    turned: [Vec<u8>; 2],
    channels: usize,
}

/// For each target pixel: which source pixels, and how much of each.
#[derive(Debug, Clone)]
struct Weights {
    /// First source pixel and number of them.
    spans: Vec<(usize, usize)>,
    /// `[targets, most]`
    table: Vec<i32>,
    most: usize,
}

impl Weights {
    fn new(from: usize, to: usize) -> Option<Self> {
        if from == to {
            return None;
        }
        let scale = from as f64 / to as f64;
        // A picture that grows is not blurred.
        let stretch = scale.max(1.0);
        let support = stretch;
        let most = support.ceil() as usize * 2 + 1;
        let (mut spans, mut weights) = (Vec::with_capacity(to), vec![0; to * most]);
        for (target, row) in weights.chunks_exact_mut(most).enumerate() {
            let centre = (target as f64 + 0.5) * scale;
            let first = (centre - support + 0.5).max(0.0) as usize;
            let count = ((centre + support + 0.5) as usize).min(from) - first;
            let triangle = |x: usize| {
                let distance = (((x + first) as f64 - centre + 0.5) * (1.0 / stretch)).abs();
                if distance < 1.0 { 1.0 - distance } else { 0.0 }
            };
            let sum: f64 = (0..count).map(triangle).sum();
            for (x, weight) in row[..count].iter_mut().enumerate() {
                let share = if sum == 0.0 { triangle(x) } else { triangle(x) / sum };
                *weight = (0.5 + share * f64::from(1 << PLACES)) as i32;
            }
            spans.push((first, count));
        }
        Some(Weights { spans, table: weights, most })
    }
}

/// A sum of weighted bytes, rounded.
const fn byte(sum: i32) -> u8 {
    let whole = sum >> PLACES;
    if whole < 0 {
        0
    } else if whole > 255 {
        255
    } else {
        whole as u8
    }
}

impl Bilinear {
    /// From and to (width, height) in pixels of three bytes, all at least 1.
    pub fn new(from: (usize, usize), to: (usize, usize)) -> Self {
        let (across, down) = (Weights::new(from.0, to.0), Weights::new(from.1, to.1));
        let between = if across.is_some() && down.is_some() { from.1 * to.0 * 3 } else { 0 };
        Bilinear { from, to, across, down, between: vec![0; between], turned: [vec![], vec![]], channels: 3 }
    }

    /// The same for pixels of so many bytes, 1 to 4.
    ///
    /// # Panics
    /// When there are more or none.
    #[must_use]
    pub fn with_channels(mut self, channels: usize) -> Self {
        assert!((1..=4).contains(&channels), "{channels} bytes in a pixel");
        self.between = vec![0; self.between.len() / self.channels * channels];
        self.channels = channels;
        self
    }

    /// Resizes `pixels`, `[from height, from width, channels]`, into `out`, `[to height, to width, channels]`.
    pub fn apply(&mut self, pixels: &[u8], out: &mut [u8]) {
        match self.channels {
            1 => self.apply_to::<1>(pixels, out),
            2 => self.apply_to::<2>(pixels, out),
            3 => self.apply_to::<3>(pixels, out),
            _ => self.apply_to::<4>(pixels, out),
        }
    }

    fn apply_to<const C: usize>(&mut self, pixels: &[u8], out: &mut [u8]) {
        let Bilinear { from, to, across, down, between, turned, .. } = self;
        match (across, down) {
            (None, None) => out.copy_from_slice(pixels),
            (Some(across), None) => along_rows::<C>(across, from.0, pixels, to.0, out, turned),
            (None, Some(down)) => along_columns(down, to.0 * C, pixels, out),
            (Some(across), Some(down)) => {
                along_rows::<C>(across, from.0, pixels, to.0, between, turned);
                along_columns(down, to.0 * C, between, out);
            }
        }
    }
}

/// Resizes rows as columns of the picture on its side, in `turned` (its room is made once): sums of whole rows of numbers are
/// vector instructions.
fn along_rows<const C: usize>(
    weights: &Weights,
    from: usize,
    rgb: &[u8],
    to: usize,
    out: &mut [u8],
    [sideways, resized]: &mut [Vec<u8>; 2],
) {
    let height = out.len() / (to * C);
    sideways.resize(from * height * C, 0);
    resized.resize(to * height * C, 0);
    turn::<C>(rgb, from, sideways);
    along_columns(weights, height * C, sideways, resized);
    turn::<C>(resized, height, out);
}

/// Copies pixels of `C` bytes, `[rows, columns]`, to `[columns, rows]`, in blocks that the caches hold.
fn turn<const C: usize>(pixels: &[u8], columns: usize, to: &mut [u8]) {
    const SIDE: usize = 16;
    let (pixels, to) = (pixels.as_chunks::<C>().0, to.as_chunks_mut::<C>().0);
    let rows = pixels.len() / columns;
    for top in (0..rows).step_by(SIDE) {
        let bottom = rows.min(top + SIDE);
        for (column, to) in to.chunks_exact_mut(rows).enumerate() {
            for (row, to) in (top..bottom).zip(&mut to[top..bottom]) {
                *to = pixels[row * columns + column];
            }
        }
    }
}

fn along_columns(weights: &Weights, row: usize, rgb: &[u8], out: &mut [u8]) {
    Level::best().run_plain(Columns { weights, row, rgb, out });
}

struct Columns<'a> {
    weights: &'a Weights,
    row: usize,
    rgb: &'a [u8],
    out: &'a mut [u8],
}

impl Plain for Columns<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        /// Bytes of a row that are summed at once.
        const LANES: usize = 64;
        let Columns { weights: Weights { spans, table, most }, row, rgb, out } = self;
        for (target, out) in out.chunks_exact_mut(row).enumerate() {
            let (first, count) = spans[target];
            let weights = &table[target * most..][..count];
            for (piece, out) in out.chunks_mut(LANES).enumerate() {
                let mut sums = [1 << (PLACES - 1); LANES];
                for (y, &weight) in weights.iter().enumerate() {
                    let from = &rgb[(first + y) * row + piece * LANES..][..out.len()];
                    for (sum, &x) in sums.iter_mut().zip(from) {
                        *sum += i32::from(x) * weight;
                    }
                }
                for (out, &sum) in out.iter_mut().zip(&sums) {
                    *out = byte(sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_flat_stays_flat_and_what_fits_stays_as_it_is() {
        for (from, to) in [((7, 5), (3, 9)), ((160, 210), (96, 96)), ((5, 5), (5, 5)), ((1, 1), (4, 4))] {
            let mut out = vec![0; to.0 * to.1 * 3];
            Bilinear::new(from, to).apply(&vec![201; from.0 * from.1 * 3], &mut out);
            assert!(out.iter().all(|&byte| byte == 201), "{from:?} to {to:?}");
        }
        let rgb: Vec<u8> = (0..75).collect();
        let mut out = vec![0; 75];
        Bilinear::new((5, 5), (5, 5)).apply(&rgb, &mut out);
        assert_eq!(out, rgb);
        // Each byte of a pixel is resized by itself, however many there are.
        for to in [(5, 5), (3, 9), (5, 2), (8, 5)] {
            let bytes: Vec<u8> = (0..25).map(|i| (i * 37 % 256) as u8).collect();
            let mut one = vec![0; to.0 * to.1];
            Bilinear::new((5, 5), to).with_channels(1).apply(&bytes, &mut one);
            for channels in 1..=4 {
                let mut many = vec![0; one.len() * channels];
                let wide: Vec<u8> = bytes.iter().flat_map(|&b| vec![b; channels]).collect();
                Bilinear::new((5, 5), to).with_channels(channels).apply(&wide, &mut many);
                assert!(many.chunks(channels).zip(&one).all(|(pixel, &b)| pixel == vec![b; channels]));
            }
        }
    }

    #[test]
    fn half_the_width_is_a_triangle() {
        // Pixels 0, 100, 200, 40 to two: the weights of the first are 1/4·(3, 3, 1) of what lies within, over 7/4.
        let grey = |bytes: &[u8]| bytes.iter().flat_map(|&b| [b; 3]).collect::<Vec<_>>();
        let mut out = vec![0; 6];
        Bilinear::new((4, 1), (2, 1)).apply(&grey(&[0, 100, 200, 40]), &mut out);
        let expect = [(300 + 200) as f64 / 7.0, (100 + 600 + 120) as f64 / 7.0];
        assert_eq!(out, grey(&expect.map(|x| x.round() as u8)));
    }
}
