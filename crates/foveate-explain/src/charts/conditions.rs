//! Several agents in the same conditions: means in rows, and panels of curves.

use super::Interval;
use crate::figure::{Anchor, Drawing, Ink, LETTERS, Plot, RoundAxis, plain_svg};

/// Most steps of an axis of returns.
const LINES: usize = 7;

/// A mean of one agent in one condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentMean {
    /// The mean.
    pub mean: f64,
    /// The 95 % interval of the mean, drawn as a thick line.
    pub interval: Interval,
    /// The standard deviation, drawn as a thin line to both sides.
    pub deviation: Option<f64>,
}

impl AgentMean {
    /// The lowest and the highest number that is drawn.
    fn ends(&self) -> [f64; 2] {
        let deviation = self.deviation.unwrap_or(0.0);
        let [from, to] = self.interval.unwrap_or([self.mean; 2]);
        [from.min(self.mean - deviation), to.max(self.mean + deviation)]
    }
}

/// What is written above a plot of conditions, and who is in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConditionsHead<'a> {
    /// The first line.
    pub title: &'a str,
    /// The second line.
    pub subtitle: &'a str,
    /// The agents, in the order of their colours.
    pub agents: &'a [&'a str],
    /// What numbers of others are called, if there are any: they are drawn last and grey.
    pub others: Option<&'a str>,
    /// Where a dashed line stands.
    pub goal: Option<f64>,
}

impl ConditionsHead<'_> {
    /// The head on a sheet of this size; gives the sheet and where the head ends.
    fn drawn(&self, width: f64, height: f64) -> Drawing {
        let mut sheet = Drawing::new(width, height);
        sheet.text((20.0, 24.0), 15.0, Anchor::Start, Ink::Text, self.title);
        sheet.text((20.0, 44.0), 11.0, Anchor::Start, Ink::Text, self.subtitle);
        for (i, (name, ink)) in self.names().enumerate() {
            let y = 66.0 + 16.0 * i as f64;
            sheet.rect([20.0, y - 9.0, 10.0, 10.0], ink, 1.0);
            sheet.text((36.0, y), LETTERS, Anchor::Start, Ink::Text, name);
        }
        sheet
    }

    fn names(&self) -> impl Iterator<Item = (&str, Ink)> {
        let agents = self.agents.iter().enumerate().map(|(i, name)| (*name, Ink::line(i)));
        agents.chain(self.others.map(|name| (name, Ink::Muted)))
    }

    /// Height of the head.
    fn height(&self) -> f64 {
        60.0 + 16.0 * (self.agents.len() + usize::from(self.others.is_some())) as f64
    }
}

/// A condition: its name, the mean of each agent (`None` for one that could not act in it), and what others found.
pub type ConditionRow<'a> = (&'a str, Vec<Option<AgentMean>>, Option<AgentMean>);

/// Draws means side by side, a row for each condition, as SVG.
pub fn condition_means(head: &ConditionsHead<'_>, rows: &[ConditionRow<'_>]) -> String {
    const LANE: f64 = 14.0;
    let lanes = head.agents.len() + usize::from(head.others.is_some());
    let top = head.height() + 16.0;
    let row_height = LANE * lanes as f64 + 12.0;
    let bottom = top + row_height * rows.len() as f64;
    let all = rows.iter().flat_map(|(_, means, other)| means.iter().flatten().chain(other));
    let all = all.flat_map(AgentMean::ends);
    let axis = RoundAxis::of(all, LINES);
    let mut plot = Plot::new(860.0, bottom + 44.0, [top, 30.0, 44.0, 190.0], axis.domain(), [0.0, 1.0]);
    plot.sheet = head.drawn(860.0, bottom + 44.0);
    plot.x_grid(axis.ticks());
    if let Some(goal) = head.goal.filter(|goal| (axis.low..=axis.high).contains(goal)) {
        let x = plot.x.at(goal);
        plot.sheet.dashed(&[(x, top), (x, bottom)], Ink::Muted, 1.0);
    }
    for (place, (name, means, other)) in rows.iter().enumerate() {
        let first = top + row_height * place as f64;
        plot.sheet.text((180.0, first + row_height / 2.0 + 4.0), LETTERS, Anchor::End, Ink::Text, *name);
        let agents = means.iter().enumerate().map(|(i, mean)| (i, Ink::line(i), mean.as_ref()));
        let others = other.iter().map(|mean| (head.agents.len(), Ink::Muted, Some(mean)));
        for (lane, ink, mean) in agents.chain(others) {
            let y = first + 13.0 + LANE * lane as f64;
            let Some(mean) = mean else {
                plot.sheet.text((plot.x.range[0] + 6.0, y + 4.0), LETTERS, Anchor::Start, ink, "n/a");
                continue;
            };
            let around = mean.deviation.map(|std| ([mean.mean - std, mean.mean + std], 1.0));
            for (ends, width) in around.into_iter().chain(mean.interval.map(|ends| (ends, 4.0))) {
                let [from, to] = ends.map(|end| plot.x.at(end));
                plot.sheet.line(vec![(from, y), (to, y)], ink, width, 1.0);
            }
            plot.sheet.dot((plot.x.at(mean.mean), y), 4.0, ink);
        }
    }
    plain_svg(&plot.sheet, head.title)
}

/// A panel: its name, and for each agent its points: place on the x axis, mean, interval.
pub type Panel<'a> = (&'a str, Vec<Vec<(f64, f64, Interval)>>);

/// Draws a panel for each condition, as SVG, all with the same axes: from 0 to `most`, in whole steps, and returns.
pub fn condition_panels(head: &ConditionsHead<'_>, most: u32, panels: &[Panel<'_>]) -> String {
    const ACROSS: usize = 4;
    const SIZE: [f64; 2] = [225.0, 170.0];
    let ends = panels.iter().flat_map(|(_, agents)| agents.iter().flatten());
    let axis = RoundAxis::of(ends.flat_map(|(_, mean, interval)| interval.unwrap_or([*mean; 2])), LINES);
    let top = head.height() + 12.0;
    let [columns, lines] = [panels.len().clamp(1, ACROSS), panels.len().div_ceil(ACROSS)];
    let width = (SIZE[0] * columns as f64 + 20.0).max(860.0);
    let mut sheet = head.drawn(width, top + SIZE[1] * lines as f64 + 30.0);
    for (i, (name, agents)) in panels.iter().enumerate() {
        let mut plot =
            Plot::new(SIZE[0], SIZE[1], [26.0, 10.0, 30.0, 40.0], [0.0, f64::from(most)], axis.domain());
        plot.heading(18.0, 13.0, Ink::Text, name);
        plot.y_grid(10.0, axis.ticks());
        let [bottom, _] = plot.y.range;
        for place in 0..=most {
            let x = plot.x.at(f64::from(place));
            plot.sheet.tick((x, bottom + 14.0), 10.0, Anchor::Middle, place.to_string());
        }
        if let Some(goal) = head.goal.filter(|goal| (axis.low..=axis.high).contains(goal)) {
            let (y, [left, right]) = (plot.y.at(goal), plot.x.range);
            plot.sheet.dashed(&[(left, y), (right, y)], Ink::Muted, 1.0);
        }
        for (agent, points) in agents.iter().enumerate() {
            let ink = Ink::line(agent);
            let band: Option<Vec<_>> =
                points.iter().map(|&(x, _, ends)| ends.map(|[low, high]| (x, low, high))).collect();
            if let Some(band) = band {
                plot.band(&band, ink, 0.18);
            }
            plot.series(points.iter().map(|&(x, mean, _)| (x, mean)), ink, 1.6);
            for &(x, mean, _) in points {
                plot.sheet.dot((plot.x.at(x), plot.y.at(mean)), 2.2, ink);
            }
        }
        let corner = (10.0 + SIZE[0] * (i % ACROSS) as f64, top + SIZE[1] * (i / ACROSS) as f64);
        sheet.add(plot.sheet, corner);
    }
    plain_svg(&sheet, head.title)
}
