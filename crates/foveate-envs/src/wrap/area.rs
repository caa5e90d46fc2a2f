//! Resizing by the mean over areas, as `OpenCV`'s `INTER_AREA` does when it makes a picture smaller.

/// A resizing from one size to a smaller or equal one. Allocates nothing while it works.
#[derive(Debug, Clone)]
pub struct Area {
    from: (usize, usize),
    to: (usize, usize),
    way: Way,
    channels: usize,
}

#[derive(Debug, Clone)]
enum Way {
    Same,
    /// Whole pixels go into a target pixel: so many along the width and the height.
    Whole(usize, usize),
    /// Shares of pixels.
    Shares {
        across: Vec<Share>,
        down: Vec<Share>,
        /// `[to width, channels]`: a source row, then the sum of rows.
        row: Vec<f32>,
        sum: Vec<f32>,
    },
}

/// How much of source pixel `from` goes into target pixel `to`.
#[derive(Debug, Clone, Copy)]
struct Share {
    from: usize,
    to: usize,
    weight: f32,
}

fn shares(from: usize, to: usize) -> Vec<Share> {
    /// Less of a pixel than this is none.
    const LEAST: f64 = 1e-3;
    let scale = from as f64 / to as f64;
    let mut all = vec![];
    for target in 0..to {
        let start = target as f64 * scale;
        let end = start + scale;
        let width = scale.min(from as f64 - start);
        let last = (end.floor() as usize).min(from - 1);
        let first = (start.ceil() as usize).min(last);
        let mut add = |from: usize, share: f64| all.push(Share { from, to: target, weight: share as f32 });
        if first as f64 - start > LEAST {
            add(first - 1, (first as f64 - start) / width);
        }
        for x in first..last {
            add(x, 1.0 / width);
        }
        if end - last as f64 > LEAST {
            add(last, (end - last as f64).min(1.0).min(width) / width);
        }
    }
    all
}

impl Area {
    /// From and to (width, height) in pixels of three bytes; `None` when a side grows.
    pub fn new(from: (usize, usize), to: (usize, usize)) -> Option<Self> {
        if to.0 > from.0 || to.1 > from.1 || to.0 == 0 || to.1 == 0 {
            return None;
        }
        let way = if from == to {
            Way::Same
        } else if from.0.is_multiple_of(to.0) && from.1.is_multiple_of(to.1) {
            Way::Whole(from.0 / to.0, from.1 / to.1)
        } else {
            Way::Shares {
                across: shares(from.0, to.0),
                down: shares(from.1, to.1),
                row: vec![0.0; to.0 * 3],
                sum: vec![0.0; to.0 * 3],
            }
        };
        Some(Area { from, to, way, channels: 3 })
    }

    /// The same for pixels of so many bytes, 1 to 4.
    ///
    /// # Panics
    /// When there are more or none.
    #[must_use]
    pub fn with_channels(mut self, channels: usize) -> Self {
        assert!((1..=4).contains(&channels), "{channels} bytes in a pixel");
        self.channels = channels;
        if let Way::Shares { row, sum, .. } = &mut self.way {
            *row = vec![0.0; self.to.0 * channels];
            sum.clone_from(row);
        }
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

    fn apply_to<const C: usize>(&mut self, rgb: &[u8], out: &mut [u8]) {
        let (from, to) = (self.from, self.to);
        match &mut self.way {
            Way::Same => out.copy_from_slice(rgb),
            Way::Whole(wide, high) => {
                let scale = 1.0 / (*wide * *high) as f32;
                for (i, pixel) in out.as_chunks_mut::<C>().0.iter_mut().enumerate() {
                    let (x, y) = (i % to.0 * *wide, i / to.0 * *high);
                    for (channel, byte) in pixel.iter_mut().enumerate() {
                        let at = |dx: usize, dy: usize| ((y + dy) * from.0 + x + dx) * C + channel;
                        let all = (0..*high).flat_map(|dy| (0..*wide).map(move |dx| (dx, dy)));
                        let sum: u32 = all.map(|(dx, dy)| u32::from(rgb[at(dx, dy)])).sum();
                        // Two by two is done in whole numbers.
                        *byte = if (*wide, *high) == (2, 2) {
                            ((sum + 2) >> 2) as u8
                        } else {
                            (sum as f32 * scale).round_ties_even() as u8
                        };
                    }
                }
            }
            Way::Shares { across, down, row, sum } => {
                sum.fill(0.0);
                let mut target = 0;
                let write = |sum: &[f32], target: usize, out: &mut [u8]| {
                    for (byte, sum) in out[target * to.0 * C..].iter_mut().zip(sum) {
                        *byte = sum.round_ties_even() as u8;
                    }
                };
                for share in down.iter() {
                    if share.to != target {
                        write(sum, target, out);
                        sum.fill(0.0);
                        target = share.to;
                    }
                    let pixels = rgb[share.from * from.0 * C..][..from.0 * C].as_chunks::<C>().0;
                    let row = row.as_chunks_mut::<C>().0;
                    row.fill([0.0; C]);
                    for Share { from, to, weight } in across.iter() {
                        for (sum, &byte) in row[*to].iter_mut().zip(&pixels[*from]) {
                            *sum += f32::from(byte) * weight;
                        }
                    }
                    for (sum, part) in sum.iter_mut().zip(row.as_flattened()) {
                        *sum += share.weight * part;
                    }
                }
                write(sum, target, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means() {
        let grey = |bytes: &[u8]| bytes.iter().flat_map(|&b| [b; 3]).collect::<Vec<_>>();
        for (from, to, bytes, expect) in [
            ((2, 2), (1, 1), &[0, 1, 2, 3][..], &[2_u8][..]),
            ((3, 1), (1, 1), &[0, 100, 101], &[67]),
            // Two pixels and a half each: 10 + 20 + 30/2, 30/2 + 40 + 50.
            ((5, 1), (2, 1), &[10, 20, 30, 40, 50], &[18, 42]),
            ((2, 1), (2, 1), &[7, 9], &[7, 9]),
        ] {
            let mut out = vec![0; expect.len() * 3];
            Area::new(from, to).expect("it shrinks").apply(&grey(bytes), &mut out);
            assert_eq!(out, grey(expect), "{bytes:?}");
        }
        assert!(Area::new((5, 5), (6, 5)).is_none());
        // Each byte of a pixel is resized by itself, however many there are.
        let bytes: Vec<u8> = (0..7 * 5).map(|i| (i * 37 % 256) as u8).collect();
        for to in [(7, 5), (3, 2), (7, 1), (1, 5)] {
            let area = Area::new((7, 5), to).expect("it shrinks");
            let mut one = vec![0; to.0 * to.1];
            area.clone().with_channels(1).apply(&bytes, &mut one);
            for channels in 1..=4 {
                let mut many = vec![0; one.len() * channels];
                let wide: Vec<u8> = bytes.iter().flat_map(|&b| vec![b; channels]).collect();
                area.clone().with_channels(channels).apply(&wide, &mut many);
                assert!(many.chunks(channels).zip(&one).all(|(pixel, &b)| pixel == vec![b; channels]));
            }
        }
    }
}
