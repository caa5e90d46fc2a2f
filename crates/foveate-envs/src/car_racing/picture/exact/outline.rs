//! The anti-aliased outline that the reference draws around ground and road before filling them.

use super::place::{CANVAS_H, CANVAS_W};

/// One edge, clipped to the canvas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    /// The pixel that is drawn solid first.
    pub(super) first: [i32; 2],
    /// The end with the smaller y.
    pub(super) low: [i32; 2],
    /// The end with the larger y.
    pub(super) high: [i32; 2],
}

impl Edge {
    /// The part of the edge on the canvas, if any. The reference clips integer corners with single-precision
    /// slopes and integer steps, so the clipped edge may have a slightly different slope.
    pub(super) fn cut(mut a: [i32; 2], mut b: [i32; 2]) -> Option<Edge> {
        const RIGHT: i32 = CANVAS_W - 1;
        const TOP: i32 = CANVAS_H - 1;
        loop {
            let (mut out_a, out_b) = (outside(a), outside(b));
            if out_a == [0, 0] && out_b == [0, 0] {
                break;
            }
            if (0..2).any(|axis| out_a[axis] * out_b[axis] > 0) {
                return None;
            }
            if out_a == [0, 0] {
                (a, b, out_a) = (b, a, out_b);
            }
            let slope = if a[0] == b[0] { 1.0 } else { (b[1] - a[1]) as f32 / (b[0] - a[0]) as f32 };
            let along = |dx: i32| i32::from((dx as f32 * slope) as i16);
            let across = |dy: i32| if a[0] == b[0] { 0 } else { i32::from((dy as f32 / slope) as i16) };
            a = match out_a {
                [-1, _] => [0, a[1] + along(-a[0])],
                [1, _] => [RIGHT, a[1] + along(RIGHT - a[0])],
                [_, 1] => [a[0] + across(TOP - a[1]), TOP],
                _ => [a[0] + across(-a[1]), 0],
            };
        }
        let (low, high) = if a[1] > b[1] { (b, a) } else { (a, b) };
        Some(Edge { first: a, low, high })
    }

    /// Columns per row going up, in 16.16 fixed point, and how far the edge's pixels may lie from the column that it
    /// gives: a pixel for rounding, the far pixel of a step, and the columns of one row.
    pub(super) fn lean(&self) -> [i32; 2] {
        let (dx, dy) = (self.high[0] - self.low[0], self.high[1] - self.low[1]);
        if dx == 0 || dy == 0 {
            return [0, dx.abs()];
        }
        [(dx << 16) / dy, 2 + dx.abs() / dy]
    }

    /// The range of columns that may contain the edge's pixels in rows `y0..=y1`; all of them must be rows of
    /// the edge, and `lean` its [lean](Edge::lean).
    pub(super) fn reach(&self, [slope, slack]: [i32; 2], y0: i32, y1: i32) -> [i32; 2] {
        let ([x0, low], [x1, _]) = (self.low, self.high);
        let at = |y: i32| x0 + (((y - low) * slope + 0x8000) >> 16);
        let (a, b) = (at(y0), at(y1));
        [(a.min(b) - slack).max(x0.min(x1) - 1), (a.max(b) + slack).min(x0.max(x1) + 1)]
    }

    /// The kind of the edge.
    pub(super) fn course(&self) -> Course {
        let ([x0, y0], [x1, y1]) = (self.low, self.high);
        let (dx, dy, side) = ((x1 - x0).abs(), y1 - y0, if x1 < x0 { -1 } else { 1 });
        if dx == 0 || dy == 0 {
            return Course::Straight;
        }
        let (major, minor) = if dy > dx { (dy, dx) } else { (dx, dy) };
        let step = u64::from(((minor as u32) << 16) / major as u32) << 16;
        let line = SlantedEdge { side, major, step };
        if dy > dx { Course::Steep(line) } else { Course::Shallow(line) }
    }

    /// Calls `dot(x, y, alpha)` for every pixel in drawing order; alpha 255 is opaque. Pixels may lie just
    /// outside the canvas.
    #[cfg(test)]
    pub(super) fn dots(&self, mut dot: impl FnMut(i32, i32, u32)) {
        let ([x0, y0], [x1, y1]) = (self.low, self.high);
        let course = self.course();
        if let Course::Straight = course {
            for y in y0..=y1 {
                (x0.min(x1)..=x0.max(x1)).for_each(|x| dot(x, y, 255));
            }
            return;
        }
        dot(self.first[0], self.first[1], 255);
        match course {
            Course::Straight => {}
            Course::Steep(line) => (1..line.major).for_each(|k| {
                let (across, near, far) = line.at(k);
                dot(x0 + line.side * across, y0 + k, near);
                dot(x0 + line.side * (across + 1), y0 + k, far);
            }),
            Course::Shallow(line) => (1..line.major).for_each(|k| {
                let (across, near, far) = line.at(k);
                dot(x0 + line.side * k, y0 + across, near);
                dot(x0 + line.side * k, y0 + across + 1, far);
            }),
        }
    }
}

/// The kinds of edges.
#[derive(Debug, Clone, Copy)]
pub(super) enum Course {
    /// Horizontal or vertical: every pixel opaque.
    Straight,
    /// Two pixels in every row except the first and the last one.
    Steep(SlantedEdge),
    /// Two pixels in every column except the first and the last one.
    Shallow(SlantedEdge),
}

/// Steps along the longer axis of an edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlantedEdge {
    /// 1 if x grows with y, else -1.
    pub(super) side: i32,
    /// Length along the longer axis; steps `1..major` have pixels.
    pub(super) major: i32,
    step: u64,
}

impl SlantedEdge {
    /// The first step whose offset along the other axis is at least `across`.
    pub(super) fn reaches(&self, across: i32) -> i32 {
        let offset = (across.max(0) as u64) << 32;
        offset.div_ceil(self.step.max(1)).min(self.major as u64) as i32
    }

    /// After `k` steps: the offset along the other axis, and the opacities there and one pixel further.
    #[inline]
    pub(super) fn at(&self, k: i32) -> (i32, u32, u32) {
        part(k as u64 * self.step)
    }

    /// The same for step `from` and all after it.
    #[inline]
    pub(super) fn steps(&self, from: i32) -> impl Iterator<Item = (i32, u32, u32)> {
        let (mut total, step) = (from as u64 * self.step, self.step);
        std::iter::repeat_with(move || {
            let at = part(total);
            total = total.wrapping_add(step);
            at
        })
    }
}

/// The offset and the two opacities of a position in 32.32 fixed point.
#[inline]
fn part(total: u64) -> (i32, u32, u32) {
    let weight = (total >> 24) as u32 & 255;
    ((total >> 32) as i32, (255 * (255 - weight)) >> 8, (255 * weight) >> 8)
}

/// The side of the canvas on which a pixel lies, per axis.
fn outside([x, y]: [i32; 2]) -> [i32; 2] {
    let side = |v: i32, size: i32| i32::from(v >= size) - i32::from(v < 0);
    [side(x, CANVAS_W), side(y, CANVAS_H)]
}
