//! Anti-aliased polygons on an image of any size.

use foveate_core::ImageBuf;

/// A point in pixels, x to the right, y down.
pub(crate) type Point = [f32; 2];

/// An image with a buffer for one polygon's coverage.
pub(crate) struct Canvas<'a> {
    width: usize,
    height: usize,
    rgb: &'a mut [u8],
    /// `[height, width + 1]`: the change of coverage along each row; zero between polygons.
    changes: Vec<f32>,
}

/// A colour and its opacity, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ink {
    pub(crate) rgb: [f32; 3],
    pub(crate) alpha: f32,
}

impl Ink {
    pub(crate) const fn new(rgb: [u8; 3]) -> Self {
        Ink { rgb: [rgb[0] as f32, rgb[1] as f32, rgb[2] as f32], alpha: 1.0 }
    }

    pub(crate) const fn at(self, alpha: f32) -> Self {
        Ink { alpha, ..self }
    }
}

impl<'a> Canvas<'a> {
    pub(crate) fn new(view: &'a mut ImageBuf) -> Self {
        let (width, height) = (view.width(), view.height());
        Canvas { width, height, rgb: view.rgb_mut(), changes: vec![0.0; (width + 1) * height] }
    }

    /// `[width, height]` in pixels.
    pub(crate) fn size(&self) -> [f32; 2] {
        [self.width as f32, self.height as f32]
    }

    /// Sets every pixel to the colour at its centre.
    pub(crate) fn paint_all(&mut self, color: impl Fn(Point) -> [u8; 3]) {
        for (i, pixel) in self.rgb.chunks_exact_mut(3).enumerate() {
            let at = [(i % self.width) as f32 + 0.5, (i / self.width) as f32 + 0.5];
            pixel.copy_from_slice(&color(at));
        }
    }

    /// Fills a polygon, weighted by the exact area of every pixel that it covers. Polygons may be concave and
    /// extend beyond the image, but must not cross themselves.
    pub(crate) fn fill(&mut self, points: &[Point], ink: Ink) {
        if points.iter().flatten().any(|v| !v.is_finite()) {
            return;
        }
        let [width, height] = self.size();
        let range = |k: usize| {
            points
                .iter()
                .fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], p| [low.min(p[k]), high.max(p[k])])
        };
        let ([left, right], [top, bottom]) = (range(0), range(1));
        if right <= 0.0 || bottom <= 0.0 || left >= width || top >= height {
            return;
        }
        let mut from = points[points.len() - 1];
        for &to in points {
            self.edge(from, to);
            from = to;
        }
        let rows = top.max(0.0) as usize..(bottom.ceil().min(height) as usize);
        let columns = left.max(0.0) as usize..(right.ceil().min(width) as usize);
        for row in rows {
            let changes = &mut self.changes[row * (self.width + 1)..(row + 1) * (self.width + 1)];
            let pixels =
                &mut self.rgb[(row * self.width + columns.start) * 3..(row * self.width + columns.end) * 3];
            let mut sum = 0.0;
            for (change, pixel) in changes[columns.clone()].iter_mut().zip(pixels.chunks_exact_mut(3)) {
                sum += std::mem::take(change);
                let share = f32::min(f32::abs(sum), 1.0) * ink.alpha;
                if share > 0.998 {
                    pixel.copy_from_slice(&ink.rgb.map(|c| c as u8));
                } else if share > 0.001 {
                    for (value, color) in pixel.iter_mut().zip(ink.rgb) {
                        let old = f32::from(*value);
                        *value = (old + (color - old) * share + 0.5) as u8;
                    }
                }
            }
            changes[columns.end] = 0.0;
        }
    }

    /// Fills a rectangle with rounded corners.
    pub(crate) fn round_rectangle(&mut self, [x0, y0]: Point, [x1, y1]: Point, radius: f32, ink: Ink) {
        if x1 <= x0 || y1 <= y0 {
            return;
        }
        let r = radius.min((x1 - x0) * 0.5).min((y1 - y0) * 0.5);
        let mut points = [[0.0; 2]; 24];
        for (i, point) in points.iter_mut().enumerate() {
            let corner = i / 6;
            let angle = (corner as f32 + (i % 6) as f32 / 5.0) * std::f32::consts::FRAC_PI_2;
            let centre = [
                if corner == 0 || corner == 3 { x1 - r } else { x0 + r },
                if corner < 2 { y1 - r } else { y0 + r },
            ];
            *point = [centre[0] + r * angle.cos(), centre[1] + r * angle.sin()];
        }
        self.fill(&points, ink);
    }

    /// Adds an edge: in every row that it crosses, the pixels to its right gain (downward) or lose (upward)
    /// coverage.
    fn edge(&mut self, from: Point, to: Point) {
        let [width, height] = self.size();
        let (a, b, sign) = if from[1] < to[1] { (from, to, 1.0) } else { (to, from, -1.0) };
        if a[1] == b[1] || b[1] <= 0.0 || a[1] >= height {
            return;
        }
        let slope = (b[0] - a[0]) / (b[1] - a[1]);
        let (top, bottom) = (a[1].max(0.0), b[1].min(height));
        for row in top as usize..(bottom.ceil() as usize).min(self.height) {
            let (y0, y1) = (top.max(row as f32), bottom.min(row as f32 + 1.0));
            // Points left of the image are moved to its left edge; points right of it have no effect.
            let x0 = (a[0] + (y0 - a[1]) * slope).clamp(0.0, width);
            let x1 = (a[0] + (y1 - a[1]) * slope).clamp(0.0, width);
            let changes = &mut self.changes[row * (self.width + 1)..(row + 1) * (self.width + 1)];
            spread(changes, x0.min(x1), x0.max(x1), sign * (y1 - y0));
        }
    }
}

/// Adds the coverage change in one row of an edge from `x0` to `x1` with height `height`.
fn spread(changes: &mut [f32], x0: f32, x1: f32, height: f32) {
    let last = changes.len() - 1;
    let first = (x0 as usize).min(last);
    let end = (x1 as usize).min(last);
    let mut add = |at: usize, amount: f32| {
        if let Some(change) = changes.get_mut(at) {
            *change += amount;
        }
    };
    if first == end {
        let covered = height * (1.0 - (0.5 * (x0 + x1) - first as f32));
        add(first, covered);
        add(first + 1, height - covered);
        return;
    }
    // Coverage grows quadratically in the first and last pixel and linearly between them.
    let per_pixel = height / (x1 - x0);
    let into = first as f32 + 1.0 - x0;
    let mut done = 0.5 * per_pixel * into * into;
    add(first, done);
    for at in first + 1..end {
        let reached = per_pixel * (at as f32 + 0.5 - x0);
        add(at, reached - done);
        done = reached;
    }
    let tail = x1 - end as f32;
    let reached = height - 0.5 * per_pixel * tail * tail;
    add(end, reached - done);
    add(end + 1, height - reached);
}
