//! Draws the numbers of a moment: score, time, step, score curve, action.

use foveate_core::ImageBuf;

use super::{AMBER, Dial, FrameComposer, FrameContent, MUTED, SURFACE, TEXT, TRACK};
use crate::Face;
use crate::canvas::{self, Rect};

/// Colours of the first dials; they repeat after that.
const DIAL_COLORS: [[u8; 3]; 5] =
    [[108, 182, 255], [96, 203, 140], [240, 113, 120], [199, 146, 234], [255, 203, 107]];
/// Colours of the largest weights, of either sign.
const POSITIVE: [u8; 3] = [226, 88, 52];
const NEGATIVE: [u8; 3] = [66, 125, 225];
/// Up to this many dials get a row each, with name and number; more are drawn as one row of columns with names below.
const MAX_ROWS: usize = 4;

impl FrameComposer {
    /// Draws the constant names onto the backdrop.
    pub(super) fn draw_names(&mut self) {
        let s = self.layout.scale;
        for (name, x) in readout_columns() {
            let y = self.layout.readout_y;
            self.label.write(&mut self.backdrop, self.layout.readout_x + x * s, y, name, MUTED);
        }
        canvas::fill_round(&mut self.backdrop, self.layout.curve, 5.0 * s, SURFACE);
        let dials = std::mem::take(&mut self.settings.dials);
        for (i, dial) in dials.iter().enumerate() {
            if dials.len() <= MAX_ROWS {
                let row = self.row(i, dials.len());
                self.label.write(&mut self.backdrop, row.x, row.text_y, &dial.name, MUTED);
            }
            let [x, y, width, height] = self.dial_place(i, dials.len());
            canvas::fill(&mut self.backdrop, x, y, width, height, TRACK, 1.0);
        }
        self.names_fit = self.fit_below(&dials);
        if self.names_fit && dials.len() > MAX_ROWS {
            for (i, dial) in dials.iter().enumerate() {
                let (x, y) = self.below(i, dials.len(), &dial.name);
                self.label.write(&mut self.backdrop, x, y, &dial.name, MUTED);
            }
        }
        self.settings.dials = dials;
    }

    /// Returns whether the name of each column fits below it.
    fn fit_below(&self, dials: &[Dial]) -> bool {
        let pitch = self.layout.dials.width as f32 / dials.len().max(1) as f32;
        dials.iter().all(|dial| self.label.width(&dial.name) <= 0.97 * pitch)
    }

    /// Where `name` is written below a column: centred, but within the row of columns.
    fn below(&self, index: usize, count: usize, name: &str) -> (f32, f32) {
        let area = self.layout.dials;
        let [x, y, width, height] = self.dial_place(index, count);
        let wide = self.label.width(name);
        let (first, last) = (area.x as f32, (area.x + area.width) as f32 - wide);
        ((x + (width - wide) / 2.0).min(last).max(first), y + height + 0.5 * self.label.cap_px())
    }

    pub(super) fn draw_readouts(&mut self, content: &FrameContent<'_>) {
        let s = self.layout.scale;
        let y = self.layout.readout_y + 18.0 * s;
        let values =
            [format!("{:.1}", content.score), format!("{:.2} s", content.time_s), content.step.to_string()];
        for (i, ((_, x), value)) in readout_columns().into_iter().zip(values).enumerate() {
            let x = self.layout.readout_x + x * s;
            let color = if i == 0 { AMBER } else { TEXT };
            self.headline.write(&mut self.frame, x - 1.5 * s, y, &value, color);
        }
        self.curve.draw(&mut self.frame, s);
    }

    pub(super) fn draw_dials(&mut self, action: &[f64]) {
        let count = self.settings.dials.len();
        for (i, (dial, &value)) in self.settings.dials.iter().zip(action).enumerate() {
            let place = self.dial_place(i, count);
            let color = DIAL_COLORS[i % DIAL_COLORS.len()];
            let (from, to) = filled(dial, value);
            let [x, y, width, height] = place;
            if count <= MAX_ROWS {
                canvas::fill(&mut self.frame, x + from * width, y, (to - from) * width, height, color, 1.0);
                let row = self.row(i, count);
                let text = if value.is_finite() { format!("{value:.2}") } else { value.to_string() };
                self.value.write_right(&mut self.frame, row.right, row.text_y, &text, TEXT);
            } else {
                let (top, tall) = (y + (1.0 - to) * height, (to - from) * height);
                canvas::fill(&mut self.frame, x, top, width, tall, color, 1.0);
            }
        }
        // Where there is no room for all names, that of a choice is written.
        let mut taken = action.iter().enumerate().filter(|(_, value)| **value != 0.0);
        if let (false, Some((i, _)), None) = (self.names_fit || count <= MAX_ROWS, taken.next(), taken.next())
            && let Some(dial) = self.settings.dials.get(i)
        {
            let (x, y) = self.below(i, count, &dial.name);
            self.label.write(&mut self.frame, x, y, &dial.name, TEXT);
        }
    }

    fn row(&self, index: usize, count: usize) -> Row {
        let s = self.layout.scale;
        let area = self.layout.dials;
        let pitch = area.height as f32 / count.max(3) as f32;
        let middle = area.y as f32 + (index as f32 + 0.5) * pitch;
        Row {
            x: area.x as f32,
            right: (area.x + area.width) as f32,
            middle,
            text_y: middle - self.label.cap_px() / 2.0,
            bar_from: area.x as f32 + 70.0 * s,
            bar_to: (area.x + area.width) as f32 - 62.0 * s,
            bar_height: (pitch * 0.42).min(12.0 * s),
        }
    }

    /// Area in which the bar of a dial is drawn: (x, y, width, height).
    fn dial_place(&self, index: usize, count: usize) -> [f32; 4] {
        if count <= MAX_ROWS {
            let row = self.row(index, count);
            return [
                row.bar_from,
                row.middle - row.bar_height / 2.0,
                row.bar_to - row.bar_from,
                row.bar_height,
            ];
        }
        let area = self.layout.dials;
        let pitch = area.width as f32 / count as f32;
        let height = area.height as f32 - 1.8 * self.label.cap_px();
        [area.x as f32 + (index as f32 + 0.15) * pitch, area.y as f32, 0.7 * pitch, height]
    }
}

struct Row {
    x: f32,
    right: f32,
    middle: f32,
    text_y: f32,
    bar_from: f32,
    bar_to: f32,
    bar_height: f32,
}

/// The readouts under the world, with the horizontal position of each.
fn readout_columns() -> [(&'static str, f32); 3] {
    [("score", 0.0), ("time", 108.0), ("step", 212.0)]
}

/// The filled part of a dial's bar for `value`, in 0.0..=1.0: starts at zero if the range contains it, else
/// at the lower end.
fn filled(dial: &Dial, value: f64) -> (f32, f32) {
    let range = dial.high - dial.low;
    if !range.is_finite() || range <= 0.0 || value.is_nan() {
        return (0.0, 0.0);
    }
    let at = |v: f64| ((v - dial.low) / range).clamp(0.0, 1.0) as f32;
    let (zero, to) = (at(0.0), at(value));
    (zero.min(to), zero.max(to))
}

/// The score so far, drawn as a curve.
pub(super) struct Curve {
    rect: Rect,
    max_steps: Option<usize>,
    /// (step, score), thinned out if there are too many.
    points: Vec<(usize, f64)>,
    every: usize,
}

impl Curve {
    pub(super) fn new(rect: Rect, max_steps: Option<usize>) -> Self {
        Curve { rect, max_steps: max_steps.filter(|&n| n > 0), points: Vec::new(), every: 1 }
    }

    pub(super) fn take(&mut self, step: usize, score: f64) {
        let fresh = self.points.last().is_none_or(|last| step >= last.0 + self.every);
        if fresh && score.is_finite() {
            self.points.push((step, score));
        }
        // Two points per column are enough for a continuous curve.
        if self.points.len() > 2 * self.rect.width.max(2) {
            self.every *= 2;
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
    }

    pub(super) fn draw(&self, image: &mut ImageBuf, scale: f32) {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return };
        let inset = 5.0 * scale;
        let width = self.rect.width as f32 - 2.0 * inset;
        let height = self.rect.height as f32 - 2.0 * inset;
        let steps = self.max_steps.unwrap_or(last.0 - first.0).max(last.0).max(1);
        let (mut low, mut high) = (0.0_f64, 100.0_f64);
        for &(_, score) in &self.points {
            (low, high) = (low.min(score), high.max(score));
        }
        let place = |&(step, score): &(usize, f64)| {
            let x = self.rect.x as f32 + inset + width * step as f32 / steps as f32;
            let y = self.rect.y as f32 + inset + height * (1.0 - (score - low) / (high - low)) as f32;
            (x, y)
        };
        let floor = (self.rect.y + self.rect.height) as f32 - inset;
        let thick = 1.6 * scale;
        // Draws one antialiased column after the other, so that columns already drawn look the same in the
        // next frame.
        let mut points = self.points.iter().map(place);
        let Some(mut from) = points.next() else { return };
        for to in points {
            let columns = (to.0 - from.0).max(0.0);
            let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
            canvas::fill(image, from.0, bottom, columns, floor - bottom, AMBER, 0.10);
            canvas::fill(
                image,
                from.0,
                top - thick / 2.0,
                columns.max(0.2),
                bottom - top + thick,
                AMBER,
                1.0,
            );
            from = to;
        }
        let dot = 4.0 * scale;
        canvas::fill(image, from.0 - dot / 2.0, from.1 - dot / 2.0, dot, dot, AMBER, 1.0);
    }
}

/// Draws `numbers` as a row of columns around zero, scaled to the largest.
pub(super) fn bars(image: &mut ImageBuf, rect: Rect, numbers: &[f32]) {
    let largest = numbers.iter().filter(|v| v.is_finite()).fold(1e-6_f32, |m, v| m.max(v.abs()));
    let pitch = rect.width as f32 / numbers.len().max(1) as f32;
    let half = rect.height as f32 * 0.45;
    let zero = rect.y as f32 + rect.height as f32 / 2.0;
    canvas::fill(image, rect.x as f32, zero - 0.5, rect.width as f32, 1.0, TRACK, 1.0);
    for (i, value) in numbers.iter().enumerate().filter(|(_, v)| v.is_finite()) {
        let tall = (value.abs() / largest * half).max(1.0);
        let top = if *value >= 0.0 { zero - tall } else { zero };
        let x = rect.x as f32 + (i as f32 + 0.2) * pitch;
        canvas::fill(image, x, top, 0.6 * pitch, tall, DIAL_COLORS[0], 1.0);
    }
}

/// Draws the weights of each named input in a row of its own, from the top, with its name on the left if there is room:
/// one weight as a bar, those of several queries as cells, red for positive and blue for negative. `weights` is
/// `[queries, names]`. More queries than there are pixels are added up, each by its size.
pub(super) fn named_weights(
    image: &mut ImageBuf,
    rect: Rect,
    face: &Face,
    names: &[String],
    weights: &[f32],
) {
    let count = names.len().max(1);
    let queries = (weights.len() / count).max(1);
    let cap = face.cap_px();
    let inset = cap.min(rect.height as f32 * 0.1);
    let pitch = ((rect.height as f32 - 2.0 * inset) / count as f32).min(6.0 * cap);
    let longest = names.iter().map(|name| face.width(name)).fold(0.0, f32::max);
    let text = if pitch >= 1.8 * cap { (longest + cap).min(rect.width as f32 * 0.4) } else { 0.0 };
    let left = rect.x as f32 + cap + text;
    let wide = (rect.x + rect.width) as f32 - cap - left;
    let (cells, size_of): (usize, fn(&f32) -> f32) =
        if queries > 1 && queries as f32 <= wide { (queries, |w| *w) } else { (1, |w| w.abs()) };
    // `[names, cells]`
    let shown: Vec<f32> = (0..names.len())
        .flat_map(|i| (0..cells).map(move |cell| (i, cell)))
        .map(|(i, cell)| weights.iter().skip(cell * count + i).step_by(cells * count).map(size_of).sum())
        .collect();
    let largest = shown.iter().filter(|w| w.is_finite()).fold(1e-6_f32, |most, w| most.max(w.abs()));
    for (i, (name, weights)) in names.iter().zip(shown.chunks_exact(cells)).enumerate() {
        let (top, tall) = (rect.y as f32 + inset + (i as f32 + 0.1) * pitch, 0.8 * pitch);
        if text > 0.0 {
            face.write(image, rect.x as f32 + cap, top + (tall - cap) / 2.0, name, MUTED);
        }
        canvas::fill(image, left, top, wide, tall, TRACK, 1.0);
        let each = wide / cells as f32;
        for (at, &weight) in weights.iter().enumerate().filter(|(_, weight)| weight.is_finite()) {
            let part = (weight.abs() / largest).min(1.0);
            if cells == 1 {
                canvas::fill(image, left, top, wide * part, tall, AMBER, 1.0);
            } else {
                let color = if weight < 0.0 { NEGATIVE } else { POSITIVE };
                canvas::fill(image, left + at as f32 * each, top, each, tall, color, part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_from_zero() {
        let dial = |low, high| Dial { name: String::new(), low, high };
        for (low, high, value, expect) in [
            (-1.0, 1.0, 0.5, (0.5, 0.75)),
            (-1.0, 1.0, -1.0, (0.0, 0.5)),
            (0.0, 1.0, 0.25, (0.0, 0.25)),
            (0.0, 1.0, 7.0, (0.0, 1.0)),
            (2.0, 4.0, 3.0, (0.0, 0.5)),
            (-1.0, 1.0, f64::NAN, (0.0, 0.0)),
            (-1.0, 1.0, f64::INFINITY, (0.5, 1.0)),
            (1.0, 1.0, 1.0, (0.0, 0.0)),
            (f64::NEG_INFINITY, f64::INFINITY, 1.0, (0.0, 0.0)),
        ] {
            assert_eq!(filled(&dial(low, high), value), expect, "{value} in {low}..{high}");
        }
    }

    #[test]
    fn a_curve_of_any_length_stays_small() {
        let mut curve = Curve::new(Rect { x: 0, y: 0, width: 50, height: 10 }, None);
        for step in 0..100_000 {
            curve.take(step, step as f64);
        }
        assert!(curve.points.len() <= 101, "{}", curve.points.len());
        assert_eq!(curve.points[0], (0, 0.0));
        assert!(curve.points.is_sorted());
    }
}
