//! Axes, ticks and the usual kinds of marks.

use super::{Anchor, Drawing, Ink};

/// Height of ordinary letters.
pub const LETTERS: f64 = 12.0;

/// Numbers onto lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The numbers at both ends.
    pub domain: [f64; 2],
    /// The places of these numbers on the sheet.
    pub range: [f64; 2],
    /// True if equal factors, and not equal differences, are equally far apart.
    pub logarithmic: bool,
}

impl Scale {
    /// From numbers to places; a domain of no extent is widened.
    pub fn new(domain: [f64; 2], range: [f64; 2]) -> Self {
        let [low, high] = domain;
        let domain = if high - low > 1e-12 { domain } else { [low - 0.5, low + 0.5] };
        Scale { domain, range, logarithmic: false }
    }

    /// A logarithmic scale between two numbers above 0; a domain of no extent is widened.
    pub fn logarithmic([low, high]: [f64; 2], range: [f64; 2]) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let domain = if high > low * (1.0 + 1e-12) { [low, high] } else { [low / 2.0, low * 2.0] };
        Scale { domain, range, logarithmic: true }
    }

    /// Where `value` is.
    pub fn at(&self, value: f64) -> f64 {
        let [low, high] = self.domain;
        let [from, to] = self.range;
        let part = if self.logarithmic {
            (value / low).ln() / (high / low).ln()
        } else {
            (value - low) / (high - low)
        };
        from + part * (to - from)
    }

    /// Where `value` is, or the nearer end.
    pub fn within(&self, value: f64) -> f64 {
        self.at(value.clamp(self.domain[0], self.domain[1]))
    }

    /// Round numbers within the domain, about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let [low, high] = self.domain;
        let step = round_step((high - low) / count.max(1) as f64);
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-300).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&s| s >= least * 0.999_999).unwrap_or(power)
}

/// A number as short as it can be said.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        0.0 => return "0".into(),
        _ if size >= 10_000.0 => return grouped(value),
        _ if size >= 1000.0 => return format!("{value:.0}").replace('-', "−"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 0.1 => format!("{value:.2}"),
        _ if size >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').replace('-', "−")
}

/// A large number without decimals, its thousands set apart.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "−".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A plot with two axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// The sheet.
    pub sheet: Drawing,
    /// From left to right.
    pub x: Scale,
    /// From the bottom up.
    pub y: Scale,
}

/// Space around a plot's field: top, right, bottom, left.
pub type Margins = [f64; 4];

impl Plot {
    /// A field with axes of these domains; no ticks yet.
    pub fn new(
        width: f64,
        height: f64,
        [top, right, bottom, left]: Margins,
        x: [f64; 2],
        y: [f64; 2],
    ) -> Self {
        Plot {
            sheet: Drawing::new(width, height),
            x: Scale::new(x, [left, width - right]),
            y: Scale::new(y, [height - bottom, top]),
        }
    }

    /// Ticks, labels and a name below.
    pub fn x_axis(&mut self, name: &str, count: usize, label: impl Fn(f64) -> String) {
        let [bottom, _] = self.y.range;
        for tick in self.x.ticks(count) {
            let x = self.x.at(tick);
            self.sheet.line(vec![(x, bottom), (x, bottom + 4.0)], Ink::Muted, 1.0, 0.6);
            self.sheet.tick((x, bottom + 17.0), LETTERS, Anchor::Middle, label(tick));
        }
        self.sheet.line(vec![(self.x.range[0], bottom), (self.x.range[1], bottom)], Ink::Muted, 1.0, 0.6);
        let middle = f64::midpoint(self.x.range[0], self.x.range[1]);
        self.sheet.text((middle, bottom + 34.0), LETTERS, Anchor::Middle, Ink::Muted, name);
    }

    /// Ticks with grid lines, labels, and a name above.
    pub fn y_axis(&mut self, name: &str, count: usize, label: impl Fn(f64) -> String) {
        let [left, right] = self.x.range;
        for tick in self.y.ticks(count) {
            let y = self.y.at(tick);
            self.sheet.line(vec![(left, y), (right, y)], Ink::Grid, 1.0, 1.0);
            self.sheet.tick((left - 7.0, y + 4.0), LETTERS, Anchor::End, label(tick));
        }
        let top = self.y.range[1];
        self.sheet.text((left - 30.0, top - 10.0), LETTERS, Anchor::Start, Ink::Muted, name);
    }

    /// Labels at these places of the x axis, and a name below.
    pub fn x_labels(&mut self, name: &str, ticks: impl IntoIterator<Item = (f64, String)>) {
        let [bottom, _] = self.y.range;
        for (tick, label) in ticks {
            self.sheet.tick((self.x.at(tick), bottom + 20.0), LETTERS, Anchor::Middle, label);
        }
        let middle = f64::midpoint(self.x.range[0], self.x.range[1]);
        self.sheet.text((middle, bottom + 40.0), LETTERS, Anchor::Middle, Ink::Text, name);
    }

    /// Grid lines with labels at these places of the x axis.
    pub fn x_grid(&mut self, ticks: impl IntoIterator<Item = (f64, String)>) {
        let [bottom, top] = self.y.range;
        for (tick, label) in ticks {
            let x = self.x.at(tick);
            self.sheet.line(vec![(x, top), (x, bottom)], Ink::Grid, 1.0, 1.0);
            self.sheet.tick((x, bottom + 18.0), LETTERS, Anchor::Middle, label);
        }
    }

    /// Grid lines with labels at these places of the y axis.
    pub fn y_grid(&mut self, size: f64, ticks: impl IntoIterator<Item = (f64, String)>) {
        let [left, right] = self.x.range;
        for (tick, label) in ticks {
            let y = self.y.at(tick);
            self.sheet.line(vec![(left, y), (right, y)], Ink::Grid, 1.0, 1.0);
            self.sheet.tick((left - 8.0, y + size / 3.0), size, Anchor::End, label);
        }
    }

    /// A mean with its interval, at one place of the x axis; a line stands for the interval.
    pub fn mean_at(&mut self, x: f64, mean: f64, interval: Option<[f64; 2]>, radius: f64, ink: Ink) {
        let x = self.x.at(x);
        if let Some(ends) = interval {
            let [from, to] = ends.map(|end| self.y.at(end));
            self.sheet.line(vec![(x, from), (x, to)], ink, 2.0, 1.0);
        }
        self.sheet.dot((x, self.y.at(mean)), radius, ink);
    }

    /// Names of series one below the other, in a box that covers nothing of the data drawn so far: at the lower right of
    /// the field, or else where there is room in it, or else below the axis on a sheet made higher. Each name has a colour
    /// and its opacity.
    pub fn legend_box(&mut self, names: &[(Ink, f64, &str)]) {
        let longest = names.iter().map(|(.., name)| name.chars().count()).max().unwrap_or(0) as f64;
        let ([left, right], [bottom, _]) = (self.x.range, self.y.range);
        let width = right - (right - 26.0 - 6.4 * longest).max(left) + 8.0;
        let height = 14.0 * names.len() as f64 + 8.0;
        let (x, y) = self.room_for(width, height).unwrap_or_else(|| {
            let below = self.sheet.height.max(bottom);
            self.sheet.height = below + height + 8.0;
            (left, below)
        });
        self.sheet.rect([x, y, width, height], Ink::Paper, 0.88);
        for (i, (ink, opacity, name)) in names.iter().enumerate() {
            let (x, y) = (x + 8.0, y + 16.0 + 14.0 * i as f64);
            self.sheet.rect([x, y - 9.0, 10.0, 10.0], *ink, *opacity);
            self.sheet.text((x + 16.0, y), LETTERS, Anchor::Start, Ink::Text, *name);
        }
    }

    /// The left upper corner of a box of this size in the field that covers no data: the corners of the field are tried
    /// first, then the rest, the lower right before the upper left.
    fn room_for(&self, width: f64, height: f64) -> Option<(f64, f64)> {
        /// Space between the box and an axis, or the upper end of the field.
        const GAP: f64 = 8.0;
        /// Places to try along each axis.
        const PLACES: u32 = 12;
        let ([left, right], [bottom, top]) = (self.x.range, self.y.range);
        let (columns, rows) = ([right - width, left + GAP], [bottom - GAP - height, top + GAP]);
        if columns[0] < columns[1] || rows[0] < rows[1] {
            return None;
        }
        let along = |[from, to]: [f64; 2], i: u32| from + (to - from) * f64::from(i) / f64::from(PLACES);
        let corners = [(0, 0), (1, 1), (0, 1), (1, 0)].map(|(i, j): (usize, usize)| (columns[i], rows[j]));
        let others = (0..=PLACES)
            .flat_map(|j| (0..=PLACES).map(move |i| (i, j)))
            .map(|(i, j)| (along(columns, i), along(rows, j)));
        corners.into_iter().chain(others).find(|&(x, y)| !self.sheet.covers_data([x, y, width, height]))
    }

    /// A line of text above the field, at the left.
    pub fn heading(&mut self, y: f64, size: f64, ink: Ink, text: &str) {
        self.sheet.text((self.x.range[0], y), size, Anchor::Start, ink, text);
    }

    /// A line through data.
    pub fn series(&mut self, data: impl IntoIterator<Item = (f64, f64)>, ink: Ink, width: f64) {
        let points = data.into_iter().map(|(x, y)| (self.x.within(x), self.y.within(y))).collect();
        self.sheet.line(points, ink, width, 1.0);
    }

    /// The area between a lower and an upper line of `(x, low, high)`.
    pub fn band(&mut self, data: &[(f64, f64, f64)], ink: Ink, opacity: f64) {
        let upper = data.iter().map(|&(x, _, high)| (self.x.within(x), self.y.within(high)));
        let lower = data.iter().rev().map(|&(x, low, _)| (self.x.within(x), self.y.within(low)));
        let points = upper.chain(lower).collect();
        self.sheet.area(points, ink, opacity);
    }

    /// A bar from 0 (or the lower end) up to `value`, between two places of the x axis.
    pub fn bar(&mut self, from: f64, to: f64, value: f64, ink: Ink) {
        let (left, right) = (self.x.within(from), self.x.within(to));
        let (zero, top) = (self.y.within(0.0), self.y.within(value));
        let gap = ((right - left) * 0.08).min(3.0);
        self.sheet.rect([left + gap, top.min(zero), right - left - 2.0 * gap, (zero - top).abs()], ink, 1.0);
    }

    /// A vertical line with a remark at its top.
    pub fn upright(&mut self, x: f64, remark: &str, ink: Ink) {
        let at = self.x.within(x);
        let [bottom, top] = self.y.range;
        self.sheet.line(vec![(at, bottom), (at, top)], ink, 1.0, 0.8);
        self.sheet.text((at, top - 6.0), LETTERS, Anchor::Middle, ink, remark);
    }

    /// Coloured names of series in a row, at the top right.
    pub fn legend(&mut self, names: &[(Ink, &str)]) {
        let y = self.y.range[1] - 10.0;
        // Letters are a little more than half as wide as high.
        let length = |name: &str| 7.2 * name.chars().count() as f64;
        let mut x = self.x.range[1] - names.iter().map(|(_, name)| length(name) + 30.0).sum::<f64>() + 16.0;
        for (ink, name) in names {
            self.sheet.rect([x, y - 8.0, 9.0, 9.0], *ink, 1.0);
            self.sheet.text((x + 14.0, y), LETTERS, Anchor::Start, Ink::Text, *name);
            x += length(name) + 30.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        for (domain, count, expect) in [
            ([0.0, 1.0], 5, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0][..]),
            ([-100.0, 930.0], 4, &[0.0, 500.0]),
            ([0.0, 37.0], 4, &[0.0, 10.0, 20.0, 30.0]),
            ([3.0, 3.0], 1, &[3.0]),
            ([0.0, 0.003], 3, &[0.0, 0.001, 0.002, 0.003]),
        ] {
            let ticks = Scale::new(domain, [0.0, 100.0]).ticks(count);
            assert_eq!(ticks.len(), expect.len(), "{domain:?}: {ticks:?}");
            assert!(ticks.iter().zip(expect).all(|(a, b)| (a - b).abs() < 1e-12), "{domain:?}: {ticks:?}");
        }
    }

    #[test]
    fn equal_factors_are_equally_far_apart_on_a_logarithmic_scale() {
        let scale = Scale::logarithmic([1.0, 1000.0], [0.0, 300.0]);
        for (value, at) in [(1.0, 0.0), (10.0, 100.0), (1000.0, 300.0)] {
            assert!((scale.at(value) - at).abs() < 1e-9, "{value}");
        }
        assert!(Scale::logarithmic([0.0, 0.0], [0.0, 1.0]).at(1.0).is_finite());
    }

    /// Where the box of a legend with two names is, and the height of the sheet, on a field from (40, 180) to (380, 20).
    fn legend_beside(data: &[&[(f64, f64)]]) -> ([f64; 4], f64) {
        let mut plot = Plot::new(400.0, 200.0, [20.0, 20.0, 20.0, 40.0], [0.0, 100.0], [0.0, 100.0]);
        plot.y_grid(12.0, [0.0, 50.0, 100.0].map(|y| (y, y.to_string())));
        for points in data {
            plot.series(points.iter().copied(), Ink::line(0), 1.5);
            // A line of one point is a dot.
            if let [(x, y)] = **points {
                plot.sheet.dot((plot.x.at(x), plot.y.at(y)), 3.5, Ink::line(1));
            }
        }
        let drawn = plot.sheet.shapes.len();
        plot.legend_box(&[(Ink::line(0), 1.0, "first"), (Ink::line(1), 1.0, "second")]);
        let Shape::Rect { place, .. } = plot.sheet.shapes[drawn] else { panic!("the box comes first") };
        assert!(place[1] + place[3] <= plot.sheet.height && place[0] + place[2] <= plot.sheet.width);
        let data = Drawing { shapes: plot.sheet.shapes[..drawn].to_vec(), ..Drawing::new(400.0, 200.0) };
        assert!(!data.covers_data(place), "{place:?}");
        (place.map(|length| (length * 1e6).round() / 1e6), plot.sheet.height)
    }

    #[test]
    fn a_legend_covers_no_data() {
        let place = |x, y| ([x, y, 72.4, 36.0], 200.0);
        let (lower_right, upper_left) = (place(307.6, 136.0), place(48.0, 28.0));
        let rises: &[(f64, f64)] = &[(0.0, 0.0), (50.0, 90.0), (100.0, 95.0)];
        let falls: &[(f64, f64)] = &[(0.0, 95.0), (50.0, 10.0), (100.0, 5.0)];
        assert_eq!(legend_beside(&[]), lower_right);
        assert_eq!(legend_beside(&[rises]), lower_right);
        let upper_right = place(307.6, 28.0);
        assert_eq!(legend_beside(&[falls]), upper_right);
        assert_eq!(legend_beside(&[&[(0.0, 0.0), (100.0, 10.0)]]), upper_left);
        // A dot between the corners of the box; a line that only crosses it.
        assert_eq!(legend_beside(&[&[(90.0, 15.0)]]), upper_left);
        assert_eq!(legend_beside(&[&[(90.0, -1e9), (90.0, 1e9)]]), upper_left);
        // All corners are taken, and there is room in the middle, or none at all.
        let frame: &[(f64, f64)] = &[(2.0, 4.0), (98.0, 4.0), (98.0, 96.0), (2.0, 96.0), (2.0, 4.0)];
        let ([x, y, ..], height) = legend_beside(&[frame]);
        assert!(
            (41.0..300.0).contains(&x) && (21.0..140.0).contains(&y) && height == 200.0,
            "{x} {y} {height}"
        );
        let everywhere: Vec<(f64, f64)> =
            (0..=50).map(|i| (2.0 * f64::from(i), if i % 2 == 0 { 0.0 } else { 100.0 })).collect();
        assert_eq!(legend_beside(&[&everywhere]), ([40.0, 200.0, 72.4, 36.0], 244.0));
        assert_eq!(legend_beside(&[&[(f64::NAN, 0.0), (f64::NAN, 100.0)]]), lower_right);
    }

    #[test]
    fn numbers_are_said_shortly() {
        for (value, expect) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (-0.25, "−0.25"),
            (12.0, "12"),
            (912.34, "912.3"),
            (1000.0, "1000"),
            (-1234.5, "−1234"),
            (12_345.0, "12,345"),
            (-8_964_963.0, "−8,964,963"),
            (999_999.6, "1,000,000"),
            (0.001, "0.001"),
        ] {
            assert_eq!(short(value), expect);
        }
    }
}
