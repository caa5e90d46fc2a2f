//! The pixels of a row that a polygon fills: one rule for ground and road, another for the car and the bars.

use super::place::{CANVAS_H, MAX_CORNERS, Shape};

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

/// Computes the spans of an outlined polygon with one span per row: `spans[i]` is row `top + i` from the top.
/// Returns false when the polygon has other rows or no height.
pub(super) fn ground(shape: &Shape, top: i32, spans: &mut [[i32; 2]]) -> bool {
    let corners = shape.corners();
    let n = corners.len();
    // One chain of edges goes up and one goes down if the direction changes exactly twice per round.
    let mut turns = 0;
    let mut heading = 0;
    for i in (0..n).chain(0..n) {
        let dy = (corners[(i + 1) % n][1] - corners[i][1]).signum();
        if dy != 0 && dy != heading {
            turns += i32::from(heading != 0);
            heading = dy;
        }
    }
    // In two rounds there are three turns if it begins at one, four otherwise.
    if heading == 0 || turns > 4 {
        return false;
    }
    let (low, high) = rows(shape);
    let (y_first, y_last) = (CANVAS_H - top - spans.len() as i32, CANVAS_H - 1 - top);
    for i in 0..n {
        let (c, d) = (corners[i], corners[(i + 1) % n]);
        if c[1] == d[1] {
            continue;
        }
        let upward = usize::from(c[1] < d[1]);
        let ([x1, y1], [x2, y2]) = if upward == 1 { (c, d) } else { (d, c) };
        let (dx, dy) = (x2 - x1, y2 - y1);
        let end = if y2 == high { y2 } else { y2 - 1 };
        let (from, to) = (y1.max(y_first), end.min(y_last));
        if from > to {
            continue;
        }
        // 65536 * (y - y1) / dy in 32.32 fixed point, advanced row by row. The step is rounded up, so the sum is too
        // large by less than (y - y1) / 2^32 <= dy / 2^32. Below 1 / dy, so for dy < 2^16, the whole part stays right.
        debug_assert!(dy < 1 << 16);
        let step = (1u64 << 48).div_ceil(dy as u64);
        let mut quotient = (from - y1) as u64 * step;
        let (last, first) = ((CANVAS_H - 1 - top - to) as usize, (CANVAS_H - 1 - top - from) as usize);
        let start = x1.wrapping_mul(65536);
        for span in spans[last..=first].iter_mut().rev() {
            span[upward] = ((quotient >> 32) as i32).wrapping_mul(dx).wrapping_add(start);
            quotient += step;
        }
    }
    debug_assert!(low < high);
    let (mut forth, mut back) = (false, false);
    for span in spans {
        forth |= span[0] < span[1];
        back |= span[0] > span[1];
        let (a, b) = (span[0].min(span[1]), span[0].max(span[1]));
        let (a, b) = (round16(a.wrapping_add(1)), round16(b.wrapping_sub(1)));
        *span = [a.min(b), a.max(b)];
    }
    // With crossing chains, the spans between two corners would be narrower than at either corner.
    !(forth && back)
}

/// Computes the spans of a polygon of the car, like [`ground`] does for the others.
pub(super) fn car(shape: &Shape, top: i32, spans: &mut [[i32; 2]]) -> bool {
    for (i, span) in spans.iter_mut().enumerate() {
        let row = fill(shape, CANVAS_H - 1 - top - i as i32);
        match row.as_slice() {
            &[only] => *span = only,
            _ => return false,
        }
    }
    true
}
