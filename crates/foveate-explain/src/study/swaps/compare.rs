//! Several agents side by side: what matters to each, by which path, in which order.

use std::fmt;

use foveate_core::statistics::mean_interval;
use serde::Serialize;

use super::figures;
use super::page::randomised;
use super::report::{Order, SwapReport, natural_percent};
use super::verdict::{Answer, FEWEST_UNTRAINED};
use crate::charts::WHOLE;
use crate::estimate::Estimate;
use crate::figure::{Anchor, DataTable, Figure, Ink, LETTERS, Plot, short};
use crate::page::{PageTable, ReportPage, Section};
use crate::study::report::{whole_json, write_figures};
use crate::study::words::png;
use crate::study::{AddFile, Findings, Numbers, REPORT_FILE, Report, ReportHead, Study, Swaps};

/// Agents, and what was found of each.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The folder that it was written to.
    #[serde(skip)]
    pub folder: std::path::PathBuf,
    /// The rows of the table.
    pub agents: Vec<Compared>,
}

/// An agent in a world.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// Its name in this comparison, and its folder.
    pub name: String,
    /// What matters to it.
    #[serde(flatten)]
    pub report: SwapReport,
    /// What else was found.
    #[serde(flatten)]
    pub more: Findings,
}

/// Height of a row of the forest plot.
const ROW: f64 = 44.0;

const COLUMNS: [&str; 8] = [
    "agent",
    "score",
    "natural variation",
    "attended path",
    "memory",
    "named places",
    "order attended",
    "above untrained",
];

/// The order over all places, and that within what is attended.
fn orders(report: &SwapReport) -> [Option<&Order>; 2] {
    let places = report.orders.iter().find(|order| order.places);
    let attended = report.orders.iter().find(|order| !order.places);
    [places, attended]
}

/// Shares of the natural variation: weights alone, values alone, both together beyond that, the memory alone, and what needs the memory and the
/// attended path together; below 0 where paths overlap.
fn shares(report: &SwapReport) -> [f64; 5] {
    let of = |share: &Option<Estimate>| share.as_ref().map_or(0.0, |share| share.value);
    let (attended, memory) = (of(&report.attended), of(&report.memory));
    let (weights, values) = match (&report.selection, &report.values) {
        (Some(weights), Some(values)) => (weights.value, values.value),
        _ => (0.0, attended),
    };
    [weights, values, attended - weights - values, memory, 1.0 - attended - memory]
}

/// The mean score with its interval over episodes; large ones with a digit behind the point, small ones with three.
fn score(head: &ReportHead) -> String {
    let digits = if head.mean_score.abs() < 10.0 { 3 } else { 1 };
    let told = |score: f64| format!("{score:.digits$}").replace('-', "−");
    let mean = told(head.mean_score);
    match mean_interval(&head.scores) {
        Some([from, to]) => format!("{mean} ({} … {})", told(from), told(to)),
        None => mean,
    }
}

fn cells(compared: &Compared) -> [String; 8] {
    let Compared { name, report, .. } = compared;
    let share = |of: &Option<Estimate>| of.as_ref().map_or("—".into(), Estimate::plain);
    let [places, attended] = orders(report).map(|order| match order {
        Some(order) => order.above_others.plain(),
        None => "—".into(),
    });
    let above = report.untrained.as_ref().and_then(|of| {
        let (share, few) = (of.percentile?, of.agents < FEWEST_UNTRAINED);
        Some(format!("{:.0} %{}", 100.0 * share, if few { " (too few)" } else { "" }))
    });
    [
        name.clone(),
        score(&report.head),
        natural_percent(report),
        share(&report.attended),
        share(&report.memory),
        places,
        attended,
        above.unwrap_or_else(|| "—".into()),
    ]
}

impl Comparison {
    /// Passes name and bytes of every file to `add`: those of each study in a folder of its name, the figures of the comparison,
    /// a page, and last [`REPORT_FILE`].
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(studies: Vec<(String, Study)>, add: &mut AddFile<'_, E>) -> Result<Comparison, E> {
        let (mut agents, mut sections) = (vec![], vec![]);
        for (number, (name, Study { report: Report { findings: mut more, .. }, .. })) in
            studies.into_iter().enumerate()
        {
            let Some(report) = more.get::<Swaps>().and_then(|of| of.swaps.clone()) else { continue };
            let swaps = more.0.remove(0);
            let folder = format!("{name}/");
            let own = std::iter::once(&swaps).chain(more.iter()).filter_map(|of| of.section.as_ref());
            let figures: Vec<Figure> = own.flat_map(|section| section.figures.clone()).collect();
            let mut add = |name: &str, bytes: &[u8]| add(&format!("{folder}{name}"), bytes);
            let rows = write_figures(figures.iter(), &mut add)?;
            let numbers =
                std::iter::once(Numbers::pretty(&report)).chain(more.iter().map(|of| of.numbers.pretty()));
            add(REPORT_FILE, whole_json(numbers, &rows).as_bytes())?;
            let compared = Compared { name, report, more };
            sections.push(compared.section(number, folder, figures));
            agents.push(compared);
        }
        let comparison = Comparison { folder: std::path::PathBuf::new(), agents };
        let all = vec![comparison.forest(), comparison.stacked()];
        let rows = write_figures(all.iter(), add)?;
        add("index.html", comparison.page(all, sections).html(&png).as_bytes())?;
        add(REPORT_FILE, whole_json(std::iter::once(Numbers::pretty(&comparison)), &rows).as_bytes())?;
        Ok(comparison)
    }

    /// Shares of the natural variation by path, of every agent, one after the other.
    fn stacked(&self) -> Figure {
        const PARTS: [(&str, Ink); 5] = [
            ("weights alone", Ink::Line(3)),
            ("values alone", Ink::Attention),
            ("both only together", Ink::Line(5)),
            ("memory", Ink::Control),
            ("with memory only", Ink::Muted),
        ];
        let mut table =
            DataTable::new(&["agent", PARTS[0].0, PARTS[1].0, PARTS[2].0, PARTS[3].0, PARTS[4].0]);
        let longest = self.agents.iter().map(|c| c.name.chars().count()).max().unwrap_or(0) as f64;
        let parts: Vec<[f64; 5]> = self.agents.iter().map(|compared| shares(&compared.report)).collect();
        let ends = |of: &[f64; 5], sign: f64| of.iter().map(|x| (sign * x).max(0.0)).sum::<f64>() * sign;
        let low = parts.iter().map(|of| ends(of, -1.0)).fold(0.0, f64::min);
        let high = parts.iter().map(|of| ends(of, 1.0)).fold(1.0, f64::max);
        let rows = self.agents.len() as f64;
        let margins = [44.0, 14.0, 48.0, 6.8 * longest + 20.0];
        let mut plot = Plot::new(WHOLE, ROW * rows + 96.0, margins, [low - 0.03, high + 0.03], [0.0, rows]);
        let [bottom, top] = plot.y.range;
        for tick in plot.x.ticks(7) {
            let (x, ink) = (plot.x.at(tick), if tick == 0.0 { Ink::Muted } else { Ink::Grid });
            plot.sheet.line(vec![(x, top), (x, bottom)], ink, 1.0, 1.0);
        }
        plot.x_axis("share of the natural variation", 7, short);
        let left = plot.x.range[0];
        for (i, (compared, parts)) in self.agents.iter().zip(&parts).enumerate() {
            let middle = top + (i as f64 + 0.5) * ROW;
            plot.sheet.text((left - 10.0, middle + 4.0), LETTERS, Anchor::End, Ink::Text, &*compared.name);
            let mut sides = [0.0_f64, 0.0];
            for (part, (_, ink)) in parts.iter().zip(PARTS) {
                let side = &mut sides[usize::from(*part < 0.0)];
                let ends = [*side, *side + part].map(|x| plot.x.at(x));
                let (from, to) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
                plot.sheet.rect([from, middle - 12.0, to - from, 24.0], ink, 0.85);
                *side += part;
            }
            let [a, b, c, d, e] = parts.map(Into::into);
            table.row([(&*compared.name).into(), a, b, c, d, e]);
        }
        plot.legend(&PARTS.map(|(name, ink)| (ink, name)));
        Figure {
            name: "paths",
            title: "By which path the action depends on the moment".into(),
            caption: "Parts of the natural variation. To the left of 0 is what two paths bring each by itself, so that their \
                      shares add up to more. Hard attention has values only."
                .into(),
            wide: true,
            drawing: plot.sheet,
            table,
        }
    }

    /// How far named parts are above others, of every agent and of the untrained ones of its kind.
    fn forest(&self) -> Figure {
        let mut table = DataTable::new(&COLUMNS);
        let estimates = |compared: &Compared| orders(&compared.report).map(|order| Some(order?.above_others));
        let untrained = |compared: &Compared| {
            compared.report.untrained.as_ref().map_or(vec![], |untrained| untrained.above_others.clone())
        };
        let ends = self.agents.iter().flat_map(|compared| {
            let own = estimates(compared).into_iter().flatten();
            own.flat_map(|of| of.interval.into_iter().flatten().chain([of.value])).chain(untrained(compared))
        });
        let [low, high] = ends.fold([-0.5_f64, 1.1_f64], |[low, high], x| [low.min(x), high.max(x)]);
        // An order that has hardly any scale has ends far away; they are in the table.
        let domain = [low.max(-1.5) - 0.05, high.min(2.0) + 0.05];
        let longest = self.agents.iter().map(|c| c.name.chars().count()).max().unwrap_or(0) as f64;
        let rows = self.agents.len() as f64;
        let height = ROW * rows + 96.0;
        let mut plot =
            Plot::new(WHOLE, height, [44.0, 14.0, 48.0, 6.8 * longest + 20.0], domain, [0.0, rows]);
        let [bottom, top] = plot.y.range;
        for tick in plot.x.ticks(7) {
            let (x, ink) = (plot.x.at(tick), if tick == 0.0 { Ink::Muted } else { Ink::Grid });
            plot.sheet.line(vec![(x, top), (x, bottom)], ink, 1.0, 1.0);
        }
        plot.x_axis(
            "named parts above others, in parts of the natural variation; below 0 misleading",
            7,
            short,
        );
        let left = plot.x.range[0];
        for (i, compared) in self.agents.iter().enumerate() {
            table.row(cells(compared).map(Into::into));
            let middle = top + (i as f64 + 0.5) * ROW;
            plot.sheet.text((left - 10.0, middle + 4.0), LETTERS, Anchor::End, Ink::Text, &*compared.name);
            for f in untrained(compared) {
                plot.sheet.dot((plot.x.within(f), middle + 13.0), 2.5, Ink::Muted);
            }
            for (f, (y, ink)) in
                estimates(compared).into_iter().zip([(-12.0, Ink::Control), (0.0, Ink::Attention)])
            {
                let Some(Estimate { value, interval }) = f else { continue };
                if let Some(interval) = interval {
                    let [from, to] = interval.map(|x| plot.x.within(x));
                    plot.sheet.line(
                        vec![(from, middle + y), (to.max(from + 0.5), middle + y)],
                        ink,
                        2.0,
                        0.75,
                    );
                }
                plot.sheet.dot((plot.x.within(value), middle + y), 4.5, ink);
            }
        }
        plot.legend(&[
            (Ink::Attention, "within what is attended"),
            (Ink::Control, "all places"),
            (Ink::Muted, "untrained"),
        ]);
        Figure {
            name: "forest",
            title: "Do the parts that they name matter more than others?".into(),
            caption: "Within what is attended, values are swapped and all else stays; over all places of the observation, \
                      everything is computed again. Small dots: untrained agents of the same kind, within what is attended \
                      where that is known. Bars: 95 % over episodes, each for itself."
                .into(),
            wide: true,
            drawing: plot.sheet,
            table,
        }
    }

    fn page(&self, figures: Vec<Figure>, sections: Vec<Section>) -> ReportPage<'_> {
        let compared = Section {
            id: "compared".into(),
            title: "Side by side".into(),
            lead: vec![
                "Natural variation: how far the action differs between moments of different episodes. Attended path and memory: \
                 the share of that when only what the attention hands on, or only the memory, is from another moment. Named places: \
                 how much further the action moves, as a share of that, with places that the agent names than with as many others; \
                 order attended: the same within what it attends to."
                    .into(),
            ],
            tables: vec![PageTable::new(COLUMNS, self.agents.iter().map(cells))],
            figures,
            ..Section::default()
        };
        ReportPage {
            title: "What they act on".into(),
            subtitle: "agents side by side".into(),
            summary: self.agents.iter().map(Compared::sentence).collect(),
            sections: std::iter::once(compared).chain(sections).collect(),
            notes: vec![
                "Made by foveate explain, comparing agents; the same seed gives the same bytes. Every effect of every decision is in the \
                 table effects of each agent's folder."
                    .to_owned(),
            ],
            ..ReportPage::default()
        }
    }
}

impl Compared {
    /// Its part of the page.
    fn section(&self, number: usize, folder: String, figures: Vec<Figure>) -> Section {
        let Compared { name, report, more } = self;
        let points = report
            .verdict
            .iter()
            .map(|line| [line.answer.to_string(), format!("{} {}", line.words(), line.why)]);
        let mut lead = vec![format!(
            "{} · {}, variant {} · {}",
            report.head.weights,
            report.head.on(),
            report.head.variant,
            report.head.extent()
        )];
        lead.extend(more.iter().flat_map(|of| of.sentences.iter().cloned()));
        let tables = more.sections().flat_map(|section| section.tables.iter().cloned());
        Section {
            id: format!("agent-{}", number + 1).into(),
            title: name.clone(),
            lead,
            points: points.collect(),
            tables: randomised(report).into_iter().chain(tables).collect(),
            figures: figures.into_iter().filter(|figure| figure.name != figures::EFFECTS).collect(),
            folder,
        }
    }

    /// What a newcomer may conclude.
    pub(super) fn sentence(&self) -> String {
        let answer = |question| self.report.answer(question);
        let said = |question, yes: &'static str, no: &'static str, open: &'static str| match answer(question)
        {
            Answer::Yes => yes,
            Answer::No => no,
            Answer::Undecided => open,
        };
        match answer("moves") {
            Answer::No => {
                return format!(
                    "{}: what it sees hardly moves its action, so there is nothing to explain.",
                    self.name
                );
            }
            Answer::Undecided => {
                return format!(
                    "{}: whether what it sees moves its action cannot be told, nor by which path.",
                    self.name
                );
            }
            Answer::Yes => {}
        }
        if self.report.orders.is_empty() {
            return format!("{} claims no order that could be tested.", self.name);
        }
        // Without attention the claim is perturbation saliency, over places of the picture.
        if !self.report.attends {
            let right = said(
                "right",
                "the places that its saliency names matter more than others",
                "the places that its saliency names matter less than others",
                "whether the places that its saliency names matter more than others cannot be told",
            );
            return format!("{} has no attention; {right}.", self.name);
        }
        let carries = said(
            "path",
            "acts more on what it attends to than on its memory",
            "acts more on its memory than on what it attends to",
            "acts on what it attends to or on its memory, on which more cannot be told",
        );
        let right = said(
            "right",
            "and what it looks at matters more than what it does not look at",
            "and what it looks at matters less than what it does not look at",
            "and whether what it looks at matters more than other parts cannot be told",
        );
        let order = said(
            "order",
            "; what it attends to most matters most",
            "; the order of its attention misleads",
            "",
        );
        format!("{} {carries}, {right}{order}.", self.name)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[String; 8]> =
            std::iter::once(COLUMNS.map(Into::into)).chain(self.agents.iter().map(cells)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        for row in &rows {
            let line: Vec<String> =
                row.iter().enumerate().map(|(i, cell)| format!("{cell:width$}", width = width(i))).collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        for compared in &self.agents {
            writeln!(f, "{}", compared.sentence())?;
        }
        write!(f, "{}", self.folder.join("index.html").display())
    }
}
