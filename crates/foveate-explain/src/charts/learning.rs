//! Returns over training steps: of one run, and of several beside one another.

use super::Interval;
use crate::figure::{Drawing, Ink, Plot, RoundAxis, Scale, plain_svg, short, steps_tick};

/// Most steps of an axis of returns; CarRacing's goes from −100 to 1000.
const LINES: usize = 12;

/// A mean return with the 95 % interval of the mean.
pub type Mean = (f64, Interval);

/// The numbers of a learning curve; points are (training steps, return).
#[derive(Debug, Clone, Copy, Default)]
pub struct LearningCurve<'a> {
    /// Training steps so far.
    pub steps: f64,
    /// Best of each generation.
    pub best: &'a [(f64, f64)],
    /// Mean of each generation.
    pub mean: &'a [(f64, f64)],
    /// Mean of each validation.
    pub validation: &'a [(f64, f64)],
    /// Mean of each evaluation.
    pub evaluation: &'a [(f64, f64)],
    /// Training steps at which a dashed line stands.
    pub marks: &'a [f64],
    /// The final report, at the last training step.
    pub report: Option<Mean>,
    /// What the learner measured, with its name: (training steps, value) of each generation.
    pub measures: &'a [(&'a str, Vec<(f64, f64)>)],
}

/// Draws one run, as SVG.
pub fn learning_curve(title: &str, curve: &LearningCurve<'_>) -> String {
    let LearningCurve { steps, best, mean, validation, evaluation, marks, report, measures } = *curve;
    let most = steps.max(1.0);
    let points = [best, mean, validation, evaluation].into_iter().flatten().map(|point| point.1);
    let returns = RoundAxis::of(points.chain(report.into_iter().flat_map(ends)), LINES);
    let mut plot = Plot::new(860.0, 420.0, [40.0, 30.0, 48.0, 64.0], [0.0, most], returns.domain());
    plot.heading(24.0, 15.0, Ink::Text, title);
    plot.y_grid(12.0, returns.ticks());
    plot.x_labels("training steps", ticks(plot.x));
    let [bottom, top] = plot.y.range;
    for &steps in marks {
        let x = plot.x.at(steps);
        plot.sheet.dashed(&[(x, top), (x, bottom)], Ink::Muted, 1.0);
    }
    let (light, dark) = (0.35, 0.85);
    for (points, opacity, width) in [(best, light, 1.0), (mean, dark, 1.5)] {
        let points = points.iter().map(|&(x, y)| (plot.x.at(x), plot.y.at(y))).collect();
        plot.sheet.line(points, Ink::line(0), width, opacity);
    }
    for (points, ink) in [(validation, Ink::line(1)), (evaluation, Ink::line(2))] {
        for &(x, y) in points {
            plot.sheet.dot((plot.x.at(x), plot.y.at(y)), 3.5, ink);
        }
    }
    let mut names = vec![
        (Ink::line(0), light, "best of a generation"),
        (Ink::line(0), dark, "mean of a generation"),
        (Ink::line(1), 1.0, "validation"),
    ];
    if !evaluation.is_empty() {
        names.push((Ink::line(2), 1.0, "evaluation"));
    }
    if let Some((mean, interval)) = report {
        plot.mean_at(steps, mean, interval, 4.5, Ink::Text);
        let name = if interval.is_some() { "final report, 95 %" } else { "final report, one episode" };
        names.push((Ink::Text, 1.0, name));
    }
    plot.legend_box(&names);
    plain_svg(&measured(plot.sheet, most, measures), title)
}

/// `sheet`, as it is without `measures`; with them, a plot of each below it, three in a row.
fn measured(sheet: Drawing, most: f64, measures: &[(&str, Vec<(f64, f64)>)]) -> Drawing {
    const ROW: usize = 3;
    const WIDTH: f64 = 280.0;
    const HEIGHT: f64 = 170.0;
    if measures.is_empty() {
        return sheet;
    }
    let below = sheet.height;
    let rows = measures.len().div_ceil(ROW) as f64;
    let mut whole = Drawing::new(sheet.width, below + rows * HEIGHT + 10.0);
    whole.add(sheet, (0.0, 0.0));
    for (i, (name, points)) in measures.iter().enumerate() {
        let values = RoundAxis::of(points.iter().map(|point| point.1), 4);
        let mut plot = Plot::new(WIDTH, HEIGHT, [30.0, 14.0, 26.0, 64.0], [0.0, most], values.domain());
        plot.heading(18.0, 12.0, Ink::Text, &name.replace('_', " "));
        plot.y_grid(10.0, values.ticks());
        plot.x_labels("", [0.0, most].map(|steps| (steps, steps_tick(steps, most))));
        let points = points.iter().filter(|(_, y)| y.is_finite());
        let points = points.map(|&(x, y)| (plot.x.at(x), plot.y.at(y))).collect();
        plot.sheet.line(points, Ink::line(0), 1.2, 0.85);
        whole.add(plot.sheet, (10.0 + (i % ROW) as f64 * WIDTH, below + (i / ROW) as f64 * HEIGHT));
    }
    whole
}

/// A run in a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRun {
    /// (training steps, return).
    pub curve: Vec<(f64, f64)>,
    /// Its final report.
    pub report: Option<Mean>,
}

/// Runs of one configuration in a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct RunGroup {
    /// What the legend calls it.
    pub name: String,
    /// Its runs.
    pub runs: Vec<ComparedRun>,
    /// The curve of all runs together.
    pub together: Vec<(f64, f64)>,
}

/// Draws groups of runs, as SVG: thin lines for runs, a thick one for the group, and the reports to the right; `steps` is
/// where the longest run ends, `curve` what the curves are of.
pub fn compared_runs(title: &str, subtitle: &str, curve: &str, steps: f64, groups: &[RunGroup]) -> String {
    const RIGHT: f64 = 960.0;
    const CURVES: f64 = 780.0;
    const REPORTS: f64 = 800.0;
    let most = steps.max(1.0);
    let runs = || groups.iter().flat_map(|group| &group.runs);
    let points = runs().flat_map(|ComparedRun { curve, report }| {
        curve.iter().map(|point| point.1).chain(report.iter().copied().flat_map(ends))
    });
    let returns = RoundAxis::of(points, LINES);
    let mut plot = Plot::new(980.0, 460.0, [52.0, 980.0 - CURVES, 52.0, 64.0], [0.0, most], returns.domain());
    plot.heading(24.0, 15.0, Ink::Text, title);
    plot.heading(41.0, 11.0, Ink::Muted, subtitle);
    // The lines of the returns go on under the reports.
    plot.x.range[1] = RIGHT;
    plot.y_grid(12.0, returns.ticks());
    plot.x.range[1] = CURVES;
    plot.x_labels(curve, ticks(plot.x));
    let mut reports = Plot { x: plot.x, y: plot.y, ..Plot::new(0.0, 0.0, [0.0; 4], [0.0; 2], [0.0; 2]) };
    reports.x.domain = [0.0, runs().count().max(1) as f64];
    reports.x.range = [REPORTS, RIGHT];
    reports.x_labels("", [(reports.x.domain[1] / 2.0, "reports".to_owned())]);
    let mut place = 0.0;
    for (number, RunGroup { runs, together, .. }) in groups.iter().enumerate() {
        let ink = Ink::line(number);
        let line = |plot: &mut Plot, points: &[(f64, f64)], width, opacity| {
            let points = points.iter().map(|&(x, y)| (plot.x.at(x), plot.y.at(y))).collect();
            plot.sheet.line(points, ink, width, opacity);
        };
        for ComparedRun { curve, report } in runs {
            line(&mut plot, curve, 1.0, 0.45);
            if let Some((mean, interval)) = *report {
                reports.mean_at(place + 0.5, mean, interval, 4.0, ink);
            }
            place += 1.0;
        }
        line(&mut plot, together, 3.0, 1.0);
    }
    let names: Vec<(Ink, f64, &str)> =
        groups.iter().enumerate().map(|(i, group)| (Ink::line(i), 1.0, &*group.name)).collect();
    plot.legend_box(&names);
    plot.sheet.add(reports.sheet, (0.0, 0.0));
    plain_svg(&plot.sheet, title)
}

/// The mean, and both ends of its interval.
fn ends((mean, interval): Mean) -> impl Iterator<Item = f64> {
    [mean].into_iter().chain(interval.into_iter().flatten())
}

/// Round ticks of an axis of training steps or seconds.
fn ticks(x: Scale) -> impl Iterator<Item = (f64, String)> {
    let label = move |at: f64| if at.fract() == 0.0 { steps_tick(at, x.domain[1]) } else { short(at) };
    x.ticks(5).into_iter().map(move |at| (at, label(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_whatever_the_last_step_is() {
        for (most, expect) in [
            (55_853.0, &["0", "20,000", "40,000"][..]),
            (40_000.0, &["0", "10,000", "20,000", "30,000", "40,000"]),
            (2_345_678.0, &["0.00 M", "0.50 M", "1.00 M", "1.50 M", "2.00 M"]),
            (1.0, &["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ] {
            let labels: Vec<String> =
                ticks(Scale::new([0.0, most], [0.0, 1.0])).map(|(_, label)| label).collect();
            assert_eq!(labels, expect, "{most}");
        }
    }
}
