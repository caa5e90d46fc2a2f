//! Which pixels of a row a polygon fills: one rule for ground and road, another for the car and the bars.

use super::place::{MAX_CORNERS, Shape};

/// The inclusive pixel ranges that a polygon fills in one row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowSpans {
    spans: [[i32; 2]; MAX_CORNERS + 1],
    n: usize,
}

impl RowSpans {
    /// The ranges, `[first, last]`.
    pub(super) fn as_slice(&self) -> &[[i32; 2]] {
        &self.spans[..self.n]
    }

    fn push(&mut self, a: i32, b: i32) {
        self.spans[self.n] = [a.min(b), a.max(b)];
        self.n += 1;
    }
}

/// Lowest and highest row of a polygon's corners.
pub(super) fn rows(shape: &Shape) -> (i32, i32) {
    shape.corners().iter().fold((i32::MAX, i32::MIN), |(lo, hi), &[_, y]| (lo.min(y), hi.max(y)))
}

/// The pixels of row `y` that `shape` fills.
pub(super) fn fill(shape: &Shape, y: i32) -> RowSpans {
    let corners = shape.corners();
    let (low, high) = rows(shape);
    let mut out = RowSpans::default();
    if y < low || y > high {
        return out;
    }
    let mut hits = [0i32; MAX_CORNERS];
    let mut n = 0;
    if low == high {
        if !shape.outlined {
            let xs = corners.iter().map(|c| c[0]);
            out.push(xs.clone().min().unwrap_or(0), xs.max().unwrap_or(0));
        }
        return out;
    }
    let mut before = corners[corners.len() - 1];
    for &corner in corners {
        let ([x1, y1], [x2, y2]) = if before[1] < corner[1] { (before, corner) } else { (corner, before) };
        before = corner;
        if y1 == y2 || y < y1 || !(y < y2 || y == high && y2 == high) {
            continue;
        }
        hits[n] = if shape.outlined {
            65536 * (y - y1) / (y2 - y1) * (x2 - x1) + 65536 * x1
        } else {
            let at = ((y - y1) * (x2 - x1)) as f32 / (y2 - y1) as f32;
            x1 + if n % 2 == 0 { at.floor() } else { at.ceil() } as i32
        };
        n += 1;
    }
    hits[..n].sort_unstable();
    for pair in hits[..n].chunks_exact(2) {
        if shape.outlined {
            out.push(round16(pair[0] + 1), round16(pair[1] - 1));
        } else {
            out.push(pair[0], pair[1]);
        }
    }
    if !shape.outlined && y > low && y < high {
        let mut before = corners[corners.len() - 1];
        for &corner in corners {
            if corner[1] == y && before[1] == y && out.n < out.spans.len() {
                out.push(before[0], corner[0]);
            }
            before = corner;
        }
    }
    out
}

/// 16.16 fixed point to the nearest whole number, halves up.
pub(super) fn round16(x: i32) -> i32 {
    (x >> 16) + ((x & 0x8000) >> 15)
}
