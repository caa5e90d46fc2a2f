//! Chooses 255 colours for a film with a limited palette.

use foveate_core::Image;

/// Bits per channel of the colour histogram.
const BITS: usize = 5;
const CELLS: usize = 1 << (3 * BITS);
/// Steps per channel of the coarse cube in every palette, so that a colour that first appears late in a film
/// has a near match.
const CUBE: usize = 4;

/// A histogram of colours.
pub(crate) struct Histogram {
    /// For each cell of the colour cube: number of pixels, and sums of their channels.
    cells: Vec<(u64, [u64; 3])>,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram { cells: vec![(0, [0; 3]); CELLS] }
    }

    pub(crate) fn count(&mut self, image: Image<'_>) {
        for pixel in image.rgb().chunks_exact(3) {
            let (number, sums) = &mut self.cells[cell(pixel)];
            *number += 1;
            for (sum, &value) in sums.iter_mut().zip(pixel) {
                *sum += u64::from(value);
            }
        }
    }

    /// At most `limit` colours close to all counted ones, including a coarse cube of all colours.
    pub(crate) fn palette(&self, limit: usize) -> Palette {
        let cube = CUBE * CUBE * CUBE;
        let mut colors = self.median_cut(limit.saturating_sub(cube));
        for index in 0..cube.min(limit) {
            let step = |i: usize| (i % CUBE * 255 / (CUBE - 1)) as u8;
            let color = [step(index / CUBE / CUBE), step(index / CUBE), step(index)];
            if !colors.contains(&color) {
                colors.push(color);
            }
        }
        Palette::new(colors)
    }

    /// Median cut (Heckbert 1982): divides the box with the largest product of spread and square root of
    /// weight.
    fn median_cut(&self, limit: usize) -> Vec<[u8; 3]> {
        let mut points: Vec<(u64, [u64; 3])> = self.cells.iter().copied().filter(|c| c.0 > 0).collect();
        let mut boxes = vec![(0, points.len())];
        while boxes.len() < limit {
            let widest = boxes
                .iter()
                .enumerate()
                .filter(|(_, b)| b.1 - b.0 > 1)
                .map(|(i, b)| {
                    let (channel, spread) = spread(&points[b.0..b.1]);
                    let weight: u64 = points[b.0..b.1].iter().map(|p| p.0).sum();
                    (i, channel, spread * (weight as f64).sqrt())
                })
                .max_by(|a, b| a.2.total_cmp(&b.2));
            let Some((index, channel, _)) = widest else { break };
            let (start, end) = boxes[index];
            let part = &mut points[start..end];
            part.sort_by(|a, b| mean(a)[channel].total_cmp(&mean(b)[channel]).then(a.1.cmp(&b.1)));
            // Cuts at the middle of the range, not of the weight: this preserves rare colours, such as the
            // red of a few kerb pixels.
            let middle = f64::midpoint(mean(&part[0])[channel], mean(&part[part.len() - 1])[channel]);
            let cut = part.iter().position(|p| mean(p)[channel] > middle).unwrap_or(part.len() / 2).max(1);
            boxes[index] = (start, start + cut);
            boxes.push((start + cut, end));
        }
        let mut colors = Vec::with_capacity(boxes.len());
        for (start, end) in boxes {
            let mut total = (0, [0; 3]);
            for (number, sums) in &points[start..end] {
                total.0 += number;
                for (sum, add) in total.1.iter_mut().zip(sums) {
                    *sum += add;
                }
            }
            if total.0 > 0 {
                let color = mean(&total).map(|v| v.round() as u8);
                if !colors.contains(&color) {
                    colors.push(color);
                }
            }
        }
        colors
    }
}

fn cell(pixel: &[u8]) -> usize {
    pixel.iter().fold(0, |index, &value| index << BITS | usize::from(value >> (8 - BITS)))
}

fn mean(point: &(u64, [u64; 3])) -> [f64; 3] {
    point.1.map(|sum| sum as f64 / point.0 as f64)
}

/// The channel in which `points` have the largest range, and that range.
fn spread(points: &[(u64, [u64; 3])]) -> (usize, f64) {
    let mut widest = (0, -1.0);
    for channel in 0..3 {
        let values = points.iter().map(|p| mean(p)[channel]);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if high - low > widest.1 {
            widest = (channel, high - low);
        }
    }
    widest
}

/// Colours, and for any colour the index of its match.
pub(crate) struct Palette {
    pub(crate) colors: Vec<[u8; 3]>,
    /// For each cell of the colour cube: the nearest colour.
    nearest: Vec<u8>,
}

impl Palette {
    fn new(colors: Vec<[u8; 3]>) -> Self {
        // A colour of the palette represents its own cell even if another one is nearer to the cell's centre.
        let mut nearest: Vec<u8> = (0..CELLS)
            .map(|index| {
                let channel =
                    |shift: usize| (index >> shift & ((1 << BITS) - 1)) << (8 - BITS) | 1 << (7 - BITS);
                let middle = [channel(2 * BITS), channel(BITS), channel(0)];
                let distance = |color: &[u8; 3]| {
                    // Weights approximate the sensitivity of the eye.
                    let d = |i: usize| (middle[i] as i64 - i64::from(color[i])).pow(2);
                    3 * d(0) + 6 * d(1) + d(2)
                };
                colors.iter().enumerate().min_by_key(|(_, c)| distance(c)).map_or(0, |(i, _)| i as u8)
            })
            .collect();
        for (index, color) in colors.iter().enumerate().rev() {
            nearest[cell(color)] = index as u8;
        }
        Palette { colors, nearest }
    }

    /// Index of the colour that represents `pixel`.
    pub(crate) fn index(&self, pixel: &[u8]) -> u8 {
        self.nearest[cell(pixel)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_that_fill_a_picture_are_kept_to_the_byte() {
        let flat = [[102, 229, 102], [105, 105, 105], [255, 0, 0], [15, 19, 24]];
        let rgb: Vec<u8> = (0..400).flat_map(|i| flat[i * 4 / 400]).collect();
        let mut histogram = Histogram::new();
        histogram.count(Image::new(400, 1, &rgb).expect("sizes agree"));
        let palette = histogram.palette(255);
        for color in flat {
            assert_eq!(palette.colors[usize::from(palette.index(&color))], color);
        }
    }

    #[test]
    fn many_colours_share_the_nearest() {
        let rgb: Vec<u8> = (0..64 * 64 * 64_usize)
            .flat_map(|i| [i / 4096 * 4, i / 64 % 64 * 4, i % 64 * 4].map(|v| v as u8))
            .collect();
        let mut histogram = Histogram::new();
        histogram.count(Image::new(64 * 64, 64, &rgb).expect("sizes agree"));
        let palette = histogram.palette(255);
        assert!(palette.colors.len() <= 255 && palette.colors.len() > 200, "{}", palette.colors.len());
        let worst = rgb
            .chunks(3)
            .map(|p| {
                let c = palette.colors[usize::from(palette.index(p))];
                (0..3).map(|i| c[i].abs_diff(p[i])).max().unwrap_or(0)
            })
            .max();
        assert!(worst <= Some(64), "{worst:?}");
    }

    #[test]
    fn colours_never_counted_still_have_a_neighbour() {
        let mut histogram = Histogram::new();
        histogram.count(Image::new(1, 1, &[0, 0, 0]).expect("sizes agree"));
        let palette = histogram.palette(255);
        let nearest = palette.colors[usize::from(palette.index(&[250, 5, 250]))];
        assert_eq!(nearest, [255, 0, 255]);
    }
}
