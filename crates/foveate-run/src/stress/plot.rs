//! A table as SVG pictures.

use std::fmt::Write as _;

use super::table::{AgentColumn, Row, Table};
use super::text::count;
use foveate_train::Summary;

use crate::axis::Axis;

/// One for each agent, over and over.
const COLOURS: [&str; 6] = ["#3566b0", "#d0541b", "#2b8a5a", "#8a3fa0", "#b08a00", "#c2307a"];
const PUBLISHED: &str = "#999";
const SPREAD: &str = "a thick line is the 95 % interval of the mean of that row alone (not corrected for the number of rows), \
                      a thin one mean ± standard deviation";
const SINGLE: &str = "one episode per row: no interval, no standard deviation";
/// Most steps of an axis of returns.
const LINES: usize = 7;

/// Every row that is not part of a curve: means with their intervals, all agents side by side, and what was published.
pub fn overview(table: &Table) -> String {
    let rows: Vec<usize> = (0..table.agents.first().map_or(0, |agent| agent.rows.len()))
        .filter(|&i| table.agents[0].rows[i].curve.is_none())
        .collect();
    let published = table.published_source.is_some();
    let lanes = table.agents.len() + usize::from(published);
    let (left, right, top) = (190.0, 830.0, 76.0 + 16.0 * lanes as f64);
    let row_height = 14.0 * lanes as f64 + 12.0;
    let bottom = top + row_height * rows.len() as f64;
    let of_row = |row: &Row| {
        let published = row.published.into_iter().flat_map(|p| [p.mean - p.std, p.mean + p.std]);
        ends(&row.summary).into_iter().chain(published).collect::<Vec<f64>>()
    };
    let all = rows.iter().flat_map(|&i| table.agents.iter().flat_map(move |agent| of_row(&agent.rows[i])));
    let scale = Axis::of(all, LINES);
    let x = |value: f64| left + (right - left) * scale.share(value);

    let mut out = open(860.0, bottom + 44.0);
    title(&mut out, &heading(table), 24.0, 15);
    title(&mut out, if table.episodes == 1 { SINGLE } else { SPREAD }, 44.0, 11);
    legend(&mut out, table, published, 66.0);
    for (value, label) in scale.ticks() {
        let at = x(value);
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {top:.1}V{bottom:.1}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{label}</text>",
            bottom + 18.0
        );
    }
    solved_line(&mut out, table, &scale, |at| {
        let at = x(at);
        format!("M{at:.1} {top:.1}V{bottom:.1}")
    });
    for (place, &i) in rows.iter().enumerate() {
        let first = top + row_height * place as f64;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 10.0,
            first + row_height / 2.0 + 4.0,
            escape(&table.agents[0].rows[i].name)
        );
        for (lane, agent) in table.agents.iter().enumerate() {
            let s = &agent.rows[i].summary;
            let y = first + 13.0 + 14.0 * lane as f64;
            let colour = COLOURS[lane % COLOURS.len()];
            if let Some(std) = s.std {
                whisker(&mut out, [x(s.mean - std), x(s.mean + std)], y, colour, 1.0);
            }
            if let Some(ci95) = s.ci95 {
                whisker(&mut out, ci95.map(x), y, colour, 4.0);
            }
            dot(&mut out, x(s.mean), y, colour);
        }
        if let Some(p) = table.agents[0].rows[i].published {
            let y = first + 13.0 + 14.0 * table.agents.len() as f64;
            whisker(&mut out, [x(p.mean - p.std), x(p.mean + p.std)], y, PUBLISHED, 1.0);
            dot(&mut out, x(p.mean), y, PUBLISHED);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Mean return over severity, a panel for each shift; `None` when the table holds no curve.
pub fn curves(table: &Table) -> Option<String> {
    const ACROSS: usize = 4;
    const SIZE: [f64; 2] = [225.0, 170.0];
    const PLOT: [f64; 4] = [40.0, 26.0, 215.0, 140.0];
    let mut names: Vec<&str> = vec![];
    for name in table.agents.iter().flat_map(|agent| &agent.rows).filter_map(|row| row.curve.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let head = 72.0 + 16.0 * table.agents.len() as f64;
    let of_curve = |agent: &AgentColumn, name: &str| -> Vec<(f64, f64, Option<[f64; 2]>)> {
        let rows = agent.rows.iter().enumerate();
        rows.filter(|(i, row)| *i == 0 || row.curve.as_deref() == Some(name))
            .map(|(_, row)| (row.severity.unwrap_or(0.0), row.summary.mean, row.summary.ci95))
            .collect()
    };
    let shown = table.agents.iter().flat_map(|agent| agent.rows.iter().enumerate());
    let shown = shown.filter(|(i, row)| *i == 0 || row.curve.is_some());
    let scale = Axis::of(shown.flat_map(|(_, row)| row.summary.ci95.unwrap_or([row.summary.mean; 2])), LINES);
    let panels = [names.len().min(ACROSS), names.len().div_ceil(ACROSS)];
    let width = (SIZE[0] * panels[0] as f64 + 20.0).max(860.0);
    let mut out = open(width, head + SIZE[1] * panels[1] as f64 + 30.0);
    title(&mut out, &heading(table), 24.0, 15);
    let at = table.agents.first().and_then(|agent| agent.rows.iter().find(|row| row.curve.is_some()));
    let since = at
        .and_then(|row| row.name.split_once('@'))
        .map_or(String::new(), |(_, step)| format!(", switched on at step {step}"));
    title(
        &mut out,
        &format!(
            "mean return over severity (0: unmodified){since}; {}",
            if table.episodes == 1 {
                "one episode per point: no interval"
            } else {
                "band: 95 % interval of each point alone, not corrected for their number"
            }
        ),
        44.0,
        11,
    );
    legend(&mut out, table, false, 66.0);
    for (i, name) in names.iter().enumerate() {
        let corner = [10.0 + SIZE[0] * (i % ACROSS) as f64, head + SIZE[1] * (i / ACROSS) as f64];
        let [left, top, right, bottom] =
            [corner[0] + PLOT[0], corner[1] + PLOT[1], corner[0] + PLOT[2], corner[1] + PLOT[3]];
        let x = |severity: f64| left + (right - left) * severity / 5.0;
        let y = |value: f64| bottom - (bottom - top) * scale.share(value);
        let _ = writeln!(
            out,
            "<text x=\"{left:.1}\" y=\"{:.1}\" font-size=\"13\">{}</text>",
            top - 8.0,
            escape(name)
        );
        for (value, label) in scale.ticks() {
            let at = y(value);
            let _ = writeln!(
                out,
                "<path d=\"M{left:.1} {at:.1}H{right:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 font-size=\"10\" text-anchor=\"end\">{label}</text>",
                left - 5.0,
                at + 3.0
            );
        }
        for severity in 0..=5 {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" text-anchor=\"middle\">{severity}</text>",
                x(f64::from(severity)),
                bottom + 14.0
            );
        }
        solved_line(&mut out, table, &scale, |at| format!("M{left:.1} {0:.1}H{right:.1}", y(at)));
        for (lane, agent) in table.agents.iter().enumerate() {
            let colour = COLOURS[lane % COLOURS.len()];
            let points = of_curve(agent, name);
            let band: Option<Vec<_>> = points.iter().map(|(s, _, ci)| Some((x(*s), (*ci)?))).collect();
            if let Some(band) = band {
                let upper = band.iter().map(|(s, ci)| (*s, y(ci[1])));
                let lower = band.iter().rev().map(|(s, ci)| (*s, y(ci[0])));
                let _ = writeln!(
                    out,
                    "<path d=\"{}Z\" fill=\"{colour}\" fill-opacity=\"0.18\"/>",
                    path(upper.chain(lower))
                );
            }
            let _ = writeln!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>",
                path(points.iter().map(|(s, mean, _)| (x(*s), y(*mean))))
            );
            for (severity, mean, _) in &points {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\" fill=\"{colour}\"/>",
                    x(*severity),
                    y(*mean)
                );
            }
        }
    }
    out.push_str("</svg>\n");
    Some(out)
}

/// The lowest and the highest number that a row draws.
fn ends(s: &Summary) -> [f64; 2] {
    let std = s.std.unwrap_or(0.0);
    let [from, to] = s.ci95.unwrap_or([s.mean; 2]);
    [from.min(s.mean - std), to.max(s.mean + std)]
}

fn heading(table: &Table) -> String {
    let base: String = table.base.iter().flat_map(|text| [", ", text]).collect();
    format!(
        "{}, picture {}{base}: {} per row, seed {}",
        table.env,
        table.picture,
        count(table.episodes, "episode"),
        table.seed
    )
}

fn open(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#333\">\n<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#fff\"/>\n"
    )
}

fn title(out: &mut String, text: &str, y: f64, size: u32) {
    let _ = writeln!(out, "<text x=\"20\" y=\"{y}\" font-size=\"{size}\">{}</text>", escape(text));
}

fn legend(out: &mut String, table: &Table, published: bool, y: f64) {
    let agents =
        table.agents.iter().enumerate().map(|(i, agent)| (agent.name.as_str(), COLOURS[i % COLOURS.len()]));
    let more = published.then_some(("published (mean ± standard deviation)", PUBLISHED));
    for (i, (name, colour)) in agents.chain(more).enumerate() {
        let y = y + 16.0 * i as f64;
        let _ = writeln!(
            out,
            "<rect x=\"20\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"36\" y=\"{y:.1}\">{}</text>",
            y - 9.0,
            escape(name)
        );
    }
}

/// Where the world counts as solved, if the scale goes so far.
fn solved_line(out: &mut String, table: &Table, scale: &Axis, path: impl Fn(f64) -> String) {
    if let Some(at) = table.solved_at.filter(|at| (scale.low..=scale.high).contains(at)) {
        let _ = writeln!(out, "<path d=\"{}\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>", path(at));
    }
}

fn whisker(out: &mut String, [from, to]: [f64; 2], y: f64, colour: &str, width: f64) {
    let _ =
        writeln!(out, "<path d=\"M{from:.1} {y:.1}H{to:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>");
}

fn dot(out: &mut String, x: f64, y: f64, colour: &str) {
    let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>");
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut out = String::new();
    for (i, (x, y)) in points.enumerate() {
        let _ = write!(out, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
