//! Line plots as SVG, small and plain.

use std::fmt::Write as _;

/// One line of a plot.
pub(crate) struct Line {
    pub(crate) name: String,
    /// x and y.
    pub(crate) points: Vec<(f64, f64)>,
}

/// How an axis counts.
#[derive(Clone, Copy)]
pub(crate) enum Axis {
    /// Powers of ten.
    Logarithmic,
    /// From 0 to this.
    From0To(f64),
}

/// A plot: title, what the axes mean, and the values of x that get a label.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) y_axis: Axis,
    /// Position of a label on the axis, and the label; x is always logarithmic.
    pub(crate) ticks: &'a [(f64, String)],
}

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 500.0;
/// Left, top, right, bottom of the plot itself; names of lines stand to its right.
const FRAME: [f64; 4] = [80.0, 50.0, 620.0, 440.0];
/// Okabe and Ito's colours, which colour-blind people tell apart.
const COLOURS: [&str; 8] =
    ["#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"];

impl Plot<'_> {
    /// Draws the lines.
    pub(crate) fn svg(&self, lines: &[Line]) -> String {
        let all = || lines.iter().flat_map(|line| &line.points);
        let (left, right) = (self.ticks[0].0, self.ticks[self.ticks.len() - 1].0);
        let (low, high) = match self.y_axis {
            Axis::From0To(high) => (0.0, high),
            Axis::Logarithmic => (
                all().map(|p| p.1).fold(f64::MAX, f64::min).log10().floor(),
                all().map(|p| p.1).fold(0.0, f64::max).log10().ceil(),
            ),
        };
        let px =
            |x: f64| FRAME[0] + 15.0 + (x / left).ln() / (right / left).ln() * (FRAME[2] - FRAME[0] - 30.0);
        let scaled = |y: f64| match self.y_axis {
            Axis::From0To(_) => y,
            Axis::Logarithmic => y.log10(),
        };
        let py = |y: f64| FRAME[3] - (scaled(y) - low) / (high - low) * (FRAME[3] - FRAME[1]);

        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
        );
        let mut text = |x: f64, y: f64, anchor: &str, more: &str, what: &str| {
            let what = what.replace('&', "&amp;").replace('<', "&lt;");
            let _ =
                writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{what}</text>");
        };
        text(FRAME[0], 28.0, "start", " font-size=\"16\"", self.title);
        text(f64::midpoint(FRAME[0], FRAME[2]), HEIGHT - 14.0, "middle", "", self.x);
        let turned = format!(" transform=\"rotate(-90 20 {})\"", HEIGHT / 2.0);
        text(20.0, HEIGHT / 2.0, "middle", &turned, self.y);
        for (at, label) in self.ticks {
            text(px(*at), FRAME[3] + 20.0, "middle", "", label);
        }
        let steps: Vec<(f64, String)> = match self.y_axis {
            Axis::From0To(high) => {
                (0..=5).map(|i| high * f64::from(i) / 5.0).map(|y| (y, format!("{y:.1}"))).collect()
            }
            Axis::Logarithmic => {
                (low as i32..=high as i32).map(|e| (10_f64.powi(e), power_of_ten(e))).collect()
            }
        };
        for (y, label) in &steps {
            text(FRAME[0] - 8.0, py(*y) + 4.0, "end", "", label);
        }
        // Names of lines, at the height of their ends, pushed apart.
        let mut ends: Vec<(f64, usize)> =
            lines.iter().enumerate().map(|(i, line)| (py(line.points[line.points.len() - 1].1), i)).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = FRAME[1];
        for (y, i) in ends {
            let at = y.max(free);
            free = at + 16.0;
            let colour = format!(" fill=\"{}\"", colour(i));
            text(FRAME[2] + 12.0, at + 4.0, "start", &colour, &lines[i].name);
        }
        for (y, _) in &steps {
            let _ = writeln!(
                out,
                "<path d=\"M{:.1} {y:.1}H{:.1}\" stroke=\"#ddd\"/>",
                FRAME[0],
                FRAME[2],
                y = py(*y)
            );
        }
        for (i, line) in lines.iter().enumerate() {
            let points: Vec<String> =
                line.points.iter().map(|&(x, y)| format!("{:.1},{:.1}", px(x), py(y))).collect();
            // The second time a colour is used the line is dashed.
            let dash = if i >= COLOURS.len() { " stroke-dasharray=\"6 4\"" } else { "" };
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dash}/>",
                points.join(" "),
                colour(i)
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

/// The colour of a line.
fn colour(i: usize) -> &'static str {
    COLOURS[i % COLOURS.len()]
}

/// Microseconds as people say them.
fn power_of_ten(exponent: i32) -> String {
    match exponent {
        ..3 => format!("{} µs", 10_f64.powi(exponent)),
        3..6 => format!("{} ms", 10_f64.powi(exponent - 3)),
        _ => format!("{} s", 10_f64.powi(exponent - 6)),
    }
}
