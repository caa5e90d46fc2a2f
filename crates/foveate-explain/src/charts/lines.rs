//! Lines over a logarithmic axis, each with its name at its end.

use crate::figure::{Anchor, Ink, LETTERS, Plot, Scale, plain_svg};

/// How the y axis of a plot of lines counts.
#[derive(Debug, Clone, Copy)]
pub enum LineScale {
    /// Powers of ten; the label of each.
    Logarithmic(fn(i32) -> String),
    /// From 0 to this.
    From0To(f64),
}

/// A plot of lines: title, what the axes mean, and the values of x that get a label.
#[derive(Debug, Clone, Copy)]
pub struct LinePlot<'a> {
    /// Above the plot.
    pub title: &'a str,
    /// Below the x axis, which is logarithmic.
    pub x: &'a str,
    /// Above the y axis.
    pub y: &'a str,
    /// The y axis.
    pub scale: LineScale,
    /// Places on the x axis, all above 0 and rising, and their labels.
    pub ticks: &'a [(f64, String)],
}

/// Draws lines of `(name, points)`, as SVG.
pub fn line_plot(of: &LinePlot<'_>, lines: &[(String, Vec<(f64, f64)>)]) -> String {
    let ends = of.ticks.first().zip(of.ticks.last()).map_or([1.0, 10.0], |(first, last)| [first.0, last.0]);
    let values = || lines.iter().flat_map(|(_, points)| points).map(|point| point.1);
    let (domain, ticks): ([f64; 2], Vec<(f64, String)>) = match of.scale {
        LineScale::From0To(high) => {
            let tick = |i| high * f64::from(i) / 5.0;
            ([0.0, high], (0..=5).map(|i| (tick(i), format!("{:.1}", tick(i)))).collect())
        }
        LineScale::Logarithmic(label) => {
            let low = values().fold(f64::MAX, f64::min).max(1e-300).log10().floor() as i32;
            let high = (values().fold(1e-300, f64::max).log10().ceil() as i32).max(low + 1);
            let power = |exponent| 10_f64.powi(exponent);
            ([power(low), power(high)], (low..=high).map(|e| (power(e), label(e))).collect())
        }
    };
    let mut plot = Plot::new(820.0, 500.0, [64.0, 200.0, 60.0, 80.0], [0.0, 1.0], domain);
    if matches!(of.scale, LineScale::Logarithmic(_)) {
        plot.y = Scale::logarithmic(domain, plot.y.range);
    }
    plot.heading(28.0, 16.0, Ink::Text, of.title);
    plot.heading(50.0, LETTERS, Ink::Muted, of.y);
    plot.y_grid(LETTERS, ticks);
    let [left, right] = plot.x.range;
    plot.x = Scale::logarithmic(ends, [left + 15.0, right - 15.0]);
    plot.x_labels(of.x, of.ticks.iter().cloned());
    // Names at the height of the lines' ends, pushed apart.
    let mut names: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .filter_map(|(i, (_, points))| Some((plot.y.at(points.last()?.1), i)))
        .collect();
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let [bottom, top] = plot.y.range;
    push_apart(&mut names, 16.0, [top, bottom]);
    for (y, i) in names {
        plot.sheet.text((right + 12.0, y + 4.0), 13.0, Anchor::Start, Ink::line(i), &*lines[i].0);
    }
    for (i, (_, points)) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (plot.x.at(x), plot.y.at(y))).collect();
        // The second time a colour is used the line is dashed.
        if i >= Ink::LINES {
            plot.sheet.dashed(&points, Ink::line(i), 2.0);
        } else {
            plot.sheet.line(points, Ink::line(i), 2.0, 1.0);
        }
    }
    plain_svg(&plot.sheet, of.title)
}

/// Moves places, in their order, until neighbours are `least` apart: down, and those that would leave the range up again.
fn push_apart(names: &mut [(f64, usize)], least: f64, [top, bottom]: [f64; 2]) {
    let mut free = top;
    for (y, _) in names.iter_mut() {
        *y = y.max(free);
        free = *y + least;
    }
    let mut free = bottom;
    for (y, _) in names.iter_mut().rev() {
        *y = y.min(free);
        free = *y - least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_ends_of_lines_are_apart_and_not_below_the_axis() {
        for (given, expect) in [
            (&[][..], &[][..]),
            (&[20.0, 90.0], &[20.0, 90.0]),
            (&[20.0, 20.0, 25.0, 60.0], &[20.0, 30.0, 40.0, 60.0]),
            (&[5.0, 99.0, 100.0, 100.0], &[10.0, 80.0, 90.0, 100.0]),
            (&[97.0, 100.0], &[90.0, 100.0]),
        ] {
            let mut names: Vec<(f64, usize)> = given.iter().map(|&y| (y, 0)).collect();
            push_apart(&mut names, 10.0, [10.0, 100.0]);
            assert_eq!(names.iter().map(|name| name.0).collect::<Vec<f64>>(), expect, "{given:?}");
        }
    }
}
