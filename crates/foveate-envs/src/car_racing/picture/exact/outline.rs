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

    /// The range of columns that may contain the edge's pixels in rows `y0..=y1`; all of them must be rows of
    /// the edge.
    pub(super) fn reach(&self, y0: i32, y1: i32) -> [i32; 2] {
        let ([x0, low], [x1, high]) = (self.low, self.high);
        let (dx, dy, side) = ((x1 - x0).abs(), high - low, if x1 < x0 { -1 } else { 1 });
        if dx == 0 || dy == 0 {
            return [x0.min(x1), x0.max(x1)];
        }
        // With a margin of one pixel on either side, and the far pixel of a step.
        let at = |k: i32| x0 + side * (i64::from(k) * i64::from(dx) / i64::from(dy)) as i32;
        let slack = 2 + dx / dy;
        let (a, b) = (at(y0 - low), at(y1 - low));
        let (a, b) = (a.min(b) - slack, a.max(b) + slack);
        [a.max(x0.min(x1) - 1), b.min(x0.max(x1) + 1)]
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
    /// After `k` steps: the offset along the other axis, and the opacities there and one pixel further.
    #[inline]
    pub(super) fn at(&self, k: i32) -> (i32, u32, u32) {
        let total = k as u64 * self.step;
        let weight = (total >> 24) as u32 & 255;
        ((total >> 32) as i32, (255 * (255 - weight)) >> 8, (255 * weight) >> 8)
    }
}

/// The side of the canvas on which a pixel lies, per axis.
fn outside([x, y]: [i32; 2]) -> [i32; 2] {
    let side = |v: i32, size: i32| i32::from(v >= size) - i32::from(v < 0);
    [side(x, CANVAS_W), side(y, CANVAS_H)]
}
