//! The learning curve of a run as an SVG picture.

use std::fmt::Write as _;

use foveate_train::{Curve, Event};

use crate::axis::{self, Axis};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
/// Left, top, right and bottom of the plot within the picture.
const PLOT: [f64; 4] = [64.0, 40.0, 830.0, 372.0];
/// Most steps of the axis of returns; CarRacing's goes from −100 to 1000.
const LINES: usize = 12;
/// More points than pixels would only make the file larger.
const POINTS: usize = 760;

/// Draws returns over training steps: what the population reached (mean and best of each generation, thinned out to
/// the mean of neighbours), what the mean weights reached on the validation tracks and on those of the evaluations, and the
/// final report.
pub fn svg<'a>(title: &str, events: impl IntoIterator<Item = &'a Event>) -> String {
    let curve = Curve::of(events);
    let returns = Axis::of(curve.returns(), LINES);
    let Curve { steps, mean, best, validation, evaluation, chosen, report } = curve;
    let most = steps.max(1.0);
    let [left, top, right, bottom] = PLOT;
    let x = |steps: f64| left + (right - left) * steps / most;
    let y = |value: f64| bottom - (bottom - top) * returns.share(value);

    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#333\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{left}\" y=\"24\" font-size=\"15\">{}</text>\n",
        escape(title)
    );
    for (value, label) in returns.ticks() {
        let at = y(value);
        let _ = writeln!(
            out,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            left - 8.0,
            at + 4.0
        );
    }
    for i in 0..=4 {
        let steps = most * f64::from(i) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(steps),
            bottom + 20.0,
            axis::steps_of(steps, most)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">training steps</text>",
        f64::midpoint(left, right),
        bottom + 40.0
    );
    for steps in chosen {
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {top}V{bottom}\" stroke=\"#bbb\" stroke-dasharray=\"4 4\"/>",
            x(steps)
        );
    }
    for (points, colour, width) in [(&best, "#c9d7ee", 1.0), (&mean, "#5b84c4", 1.5)] {
        let _ = writeln!(
            out,
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            path(&Curve::thin(points, POINTS), x, y)
        );
    }
    for (points, colour) in [(&validation, "#d0541b"), (&evaluation, "#2b8a5a")] {
        for &(steps, value) in points {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
                x(steps),
                y(value)
            );
        }
    }
    let mut legend = vec![("best of a generation", "#c9d7ee"), ("mean of a generation", "#5b84c4")];
    legend.push(("validation", "#d0541b"));
    if !evaluation.is_empty() {
        legend.push(("evaluation", "#2b8a5a"));
    }
    if let Some((steps, value, ci95)) = report {
        let at = x(steps);
        if let Some([from, to]) = ci95 {
            let _ = writeln!(
                out,
                "<path d=\"M{at:.1} {:.1}V{:.1}\" stroke=\"#111\" stroke-width=\"2\"/>",
                y(from),
                y(to)
            );
        }
        let _ = writeln!(out, "<circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"4.5\" fill=\"#111\"/>", y(value));
        let name = if ci95.is_some() { "final report, 95 %" } else { "final report, one episode" };
        legend.push((name, "#111"));
    }
    // Curves pass behind the legend.
    let height = 14.0 * legend.len() as f64 + 6.0;
    let _ = writeln!(
        out,
        "<rect x=\"{}\" y=\"{:.1}\" width=\"168\" height=\"{height:.1}\" fill=\"#fff\" fill-opacity=\"0.88\"/>",
        right - 168.0,
        bottom - height - 8.0
    );
    for (i, (text, colour)) in legend.iter().enumerate() {
        let (x, y) = (right - 160.0, bottom - 14.0 * (legend.len() - i) as f64);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"{y:.1}\">{text}</text>",
            y - 9.0,
            x + 16.0
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A line through points, as the `d` of a path.
pub(crate) fn path(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut out = String::new();
    for (i, &(steps, value)) in points.iter().enumerate() {
        let _ = write!(out, "{}{:.1} {:.1}", if i == 0 { 'M' } else { 'L' }, x(steps), y(value));
    }
    out
}

/// Text as SVG takes it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_train::Summary;

    fn generation(i: u64) -> Event {
        Event::Generation {
            generation: i,
            steps: i * 1000,
            stage: "learn".into(),
            start: 1,
            best: 900.0,
            mean: -40.0 + i as f64,
            length: 100.0,
            norm: 1.0,
            sigma: 0.1,
            replayed: 0,
        }
    }

    #[test]
    fn the_curve_holds_everything_and_stays_small() {
        let mut events: Vec<Event> = (1..=5000).map(generation).collect();
        let summary = Summary::of(&[700.0, 800.0]);
        events.push(Event::Validation {
            generation: 5000,
            steps: 2_500_000,
            stage: "learn".into(),
            start: 1,
            summary,
            best: true,
        });
        events.push(Event::Evaluation {
            generation: 5000,
            steps: 5_000_000,
            stage: "learn".into(),
            start: 1,
            summary,
            seeds: vec![],
            returns: vec![],
        });
        events.push(Event::Report {
            generation: 1,
            steps: 1,
            judging_steps: 1,
            summary,
            seeds: vec![],
            returns: vec![],
        });
        let svg = svg("a <run> & its curve", &events);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt;run&gt; &amp; its curve"));
        assert!(svg.len() < 40_000, "{} bytes", svg.len());
        // Half of the steps is the middle of the plot; 750 of -500..5000 is where it should be.
        let y = PLOT[3] - (PLOT[3] - PLOT[1]) * (750.0 + 500.0) / 5500.0;
        assert!(
            svg.contains(&format!("<circle cx=\"{:.1}\" cy=\"{y:.1}\"", f64::midpoint(PLOT[0], PLOT[2]))),
            "{svg}"
        );
        assert_eq!(svg.matches("#2b8a5a").count(), 2, "a point and its legend");
        assert!(svg.contains(">5.00 M<") && svg.contains("final report"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    /// What the horizontal lines are called, from the bottom up.
    fn labels(svg: &str) -> Vec<&str> {
        let ends = svg.split("text-anchor=\"end\">").skip(1);
        ends.filter_map(|rest| rest.split_once('<')).map(|(label, _)| label).collect()
    }

    #[test]
    fn the_axis_is_that_of_the_worlds_returns() {
        let curve = |best: f64, worst: f64, report: &[f64]| {
            let (steps, seeds, returns) = (40_000, vec![], vec![]);
            let event = Event::Generation {
                generation: 1,
                steps,
                stage: "learn".into(),
                start: 1,
                best,
                mean: worst,
                length: 1.0,
                norm: 1.0,
                sigma: 0.1,
                replayed: 0,
            };
            let summary = Summary::of(report);
            let report = Event::Report { generation: 1, steps, judging_steps: 1, summary, seeds, returns };
            svg("a run", &[event, report])
        };
        for (best, worst, report, expect) in [
            // CarRacing looks as it always did.
            (912.0, -62.0, &[880.0, 902.0][..], &["-100", "0", "100", "200"][..]),
            (-110.0, -200.0, &[-120.0, -130.0], &["-200", "-180", "-160"]),
            (-200.0, -200.0, &[-200.0], &["-200", "-180", "-160"]),
            (0.955, 0.0, &[0.2, 0.9], &["0", "0.1", "0.2"]),
            (2e7, -1.0, &[1e7, 2e7], &["-2e6", "0", "2e6"]),
        ] {
            let svg = curve(best, worst, report);
            assert_eq!(&labels(&svg)[..expect.len()], expect, "{best} {worst}");
            assert!(svg.contains(">10,000<") && svg.contains(">40,000<") && !svg.contains("NaN"), "{svg}");
            // Everything lies within the plot.
            for circle in svg.split("cy=\"").skip(1).filter_map(|rest| rest.split_once('"')) {
                let y: f64 = circle.0.parse().expect("a number");
                assert!((PLOT[1]..=PLOT[3]).contains(&y), "{y}: {svg}");
            }
        }
        let one = curve(-200.0, -200.0, &[-200.0]);
        assert!(one.contains("final report, one episode") && !one.contains("95 %"), "{one}");
    }

    #[test]
    fn nothing_yet_is_a_picture_too() {
        for events in [vec![], vec![generation(1)]] {
            let svg = svg("empty", &events);
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
