//! Means with their intervals, one below the other, and curves.

use super::{HALF, WHOLE};
use crate::figure::{Anchor, DataTable, Figure, Ink, LETTERS, Plot};

/// A mean with its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct DotRow {
    /// What it is of.
    pub name: String,
    /// A word that tells rows of the same name apart: the fill.
    pub kind: String,
    /// Its colour.
    pub ink: Ink,
    /// The mean.
    pub value: f64,
    /// Its 95 % interval; one episode has none.
    pub interval: Option<[f64; 2]>,
    /// What stands at the right end, and in which colour.
    pub remark: Option<(Ink, String)>,
}

/// What a plot of means is called and how it is laid out.
pub struct DotPlot<'a> {
    /// Name in files.
    pub name: &'static str,
    /// What it shows.
    pub title: &'a str,
    /// What to see in it.
    pub caption: String,
    /// True if it takes the whole width.
    pub wide: bool,
    /// What is measured, below the axis.
    pub axis: &'a str,
    /// The ends of the axis, if not those of the data.
    pub domain: Option<[f64; 2]>,
    /// A shaded stretch of the axis and its name.
    pub band: Option<([f64; 2], &'a str)>,
    /// How ticks are said.
    pub label: fn(f64) -> String,
    /// The rows; those of the same name in a row share a line.
    pub rows: Vec<DotRow>,
}

const LINE: f64 = 34.0;

/// Means with intervals, one line per name; within a line, one dot per kind.
pub fn dots(of: DotPlot<'_>) -> Figure {
    let mut lines: Vec<(&str, Vec<&DotRow>)> = Vec::new();
    for row in &of.rows {
        match lines.last_mut() {
            Some((name, rows)) if *name == row.name => rows.push(row),
            _ => lines.push((&row.name, vec![row])),
        }
    }
    let width = if of.wide { WHOLE } else { HALF };
    let longest = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) as f64;
    let said = |row: &DotRow| row.remark.as_ref().map_or(0, |(_, remark)| remark.chars().count());
    let remarks = of.rows.iter().map(said).max().unwrap_or(0) as f64;
    let left = 6.6 * longest + 18.0;
    let right = if remarks > 0.0 { 6.6 * remarks + 18.0 } else { 14.0 };
    let height = LINE * lines.len() as f64 + 76.0;
    let ends = of.rows.iter().flat_map(|row| row.interval.into_iter().flatten().chain([row.value]));
    let [low, high] = ends.fold([0.0_f64, 0.0_f64], |[low, high], v| [low.min(v), high.max(v)]);
    let domain = of.domain.unwrap_or([low - 0.02 * (high - low), high + 0.04 * (high - low)]);
    let mut plot = Plot::new(width, height, [28.0, right, 46.0, left], domain, [0.0, lines.len() as f64]);
    let [bottom, top] = plot.y.range;
    if let Some(([from, to], name)) = of.band {
        let (from, to) = (plot.x.within(from), plot.x.within(to));
        plot.sheet.rect([from, top, to - from, bottom - top], Ink::Muted, 0.16);
        plot.sheet.text((f64::midpoint(from, to), top - 8.0), LETTERS, Anchor::Middle, Ink::Muted, name);
    }
    for tick in plot.x.ticks(if of.wide { 8 } else { 4 }) {
        let x = plot.x.at(tick);
        plot.sheet.line(
            vec![(x, top), (x, bottom)],
            if tick == 0.0 { Ink::Muted } else { Ink::Grid },
            1.0,
            1.0,
        );
    }
    plot.x_axis(of.axis, if of.wide { 8 } else { 4 }, of.label);
    for (i, (name, rows)) in lines.iter().enumerate() {
        let middle = top + (i as f64 + 0.5) * LINE;
        plot.sheet.text((left - 10.0, middle + 4.0), LETTERS, Anchor::End, Ink::Text, *name);
        for (k, row) in rows.iter().enumerate() {
            let apart = 13.0_f64.min((LINE - 4.0) / rows.len() as f64);
            let y = middle + (k as f64 - (rows.len() as f64 - 1.0) / 2.0) * apart;
            if let Some(interval) = row.interval {
                let [from, to] = interval.map(|v| plot.x.within(v));
                plot.sheet.line(vec![(from, y), (to.max(from + 0.5), y)], row.ink, 2.0, 0.75);
            }
            plot.sheet.dot((plot.x.within(row.value), y), 4.5, row.ink);
            if let Some((ink, remark)) = &row.remark {
                plot.sheet.text((width - right + 10.0, y + 4.0), LETTERS, Anchor::Start, *ink, &**remark);
            }
        }
    }
    let mut kinds: Vec<(Ink, &str)> = Vec::new();
    for row in &of.rows {
        if !row.kind.is_empty() && !kinds.iter().any(|(ink, kind)| (*ink, *kind) == (row.ink, &*row.kind)) {
            kinds.push((row.ink, &row.kind));
        }
    }
    if kinds.len() < if of.wide { 5 } else { 3 } && of.band.is_none() {
        plot.legend(&kinds);
    }
    let mut table = DataTable::new(&["what", "kind", "mean", "low", "high"]);
    for row in &of.rows {
        let [low, high] = ends_of(row.interval);
        table.row([(&*row.name).into(), (&*row.kind).into(), row.value.into(), low.into(), high.into()]);
    }
    Figure {
        name: of.name,
        title: of.title.to_owned(),
        caption: of.caption,
        wide: of.wide,
        drawing: plot.sheet,
        table,
    }
}

/// Both ends of an interval, if there is one.
pub(super) fn ends_of(interval: Option<[f64; 2]>) -> [Option<f64>; 2] {
    interval.map_or([None; 2], |ends| ends.map(Some))
}

/// A name, its colour, and a mean with its interval at every level.
pub type Series<'a> = (&'a str, Ink, Vec<(f64, Option<[f64; 2]>)>);

/// Curves over the number of patches covered or kept, `(levels, [(name, ink, means with intervals)])`; the levels are
/// spaced evenly, for what happens, happens at the first ones.
pub fn curves(
    name: &'static str,
    title: &str,
    caption: String,
    axis: &str,
    levels: &[usize],
    series: &[Series<'_>],
) -> Figure {
    let tops = series
        .iter()
        .flat_map(|s| &s.2)
        .map(|(mean, interval)| interval.map_or(*mean, |[_, high]| mean.max(high)));
    let most = tops.fold(1e-9, f64::max);
    let last = levels.len().saturating_sub(1) as f64;
    let mut plot = Plot::new(HALF, 300.0, [34.0, 14.0, 46.0, 52.0], [0.0, last], [0.0, most * 1.05]);
    plot.y_axis("change of the action", 4, super::percent);
    let bottom = plot.y.range[0];
    for (i, level) in levels.iter().enumerate() {
        let x = plot.x.at(i as f64);
        plot.sheet.tick((x, bottom + 17.0), 11.0, Anchor::Middle, level.to_string());
    }
    let middle = f64::midpoint(plot.x.range[0], plot.x.range[1]);
    plot.sheet.text((middle, bottom + 36.0), LETTERS, Anchor::Middle, Ink::Muted, axis);
    let mut table = DataTable::new(&["patches", "order", "mean", "low", "high"]);
    for (order, ink, points) in series {
        let band = points.iter().enumerate().map(|(i, (_, ends))| ends.map(|[l, h]| (i as f64, l, h)));
        if let Some(band) = band.collect::<Option<Vec<_>>>() {
            plot.band(&band, *ink, 0.18);
        }
        plot.series(points.iter().enumerate().map(|(i, (mean, _))| (i as f64, *mean)), *ink, 2.2);
        for (level, (mean, interval)) in levels.iter().zip(points) {
            let [low, high] = ends_of(*interval);
            table.row([(*level).into(), (*order).into(), (*mean).into(), low.into(), high.into()]);
        }
    }
    plot.legend(&series.iter().map(|(name, ink, _)| (*ink, *name)).collect::<Vec<_>>());
    Figure { name, title: title.to_owned(), caption, wide: false, drawing: plot.sheet, table }
}
