//! Several agents side by side: what matters to each, by which path, in which order.

use std::fmt;

use serde::Serialize;

use super::report::{Order, SwapReport, natural_percent, plain};
use super::{SwapStudy, figures};
use crate::charts::{DotPlot, DotRow, dots};
use crate::estimate::Estimate;
use crate::figure::{DataTable, Figure, Ink, short};
use crate::page::{Section, plain_page};
use crate::study::report_page::png;
use crate::study::sensors::write_figure;
use crate::study::{AddFile, REPORT_FILE, figures_json, whole_json};
use crate::text::{escape, joined};

/// Agents, and what was found of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The folder that it was written to.
    #[serde(skip)]
    pub folder: std::path::PathBuf,
    /// The rows of the table.
    pub agents: Vec<Compared>,
}

/// An agent in a world.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Its name in this comparison, and its folder.
    pub name: String,
    /// What was found.
    #[serde(flatten)]
    pub report: SwapReport,
}

const COLUMNS: [&str; 8] =
    ["agent", "score", "N", "M", "memory", "F, all places", "F, attended", "above untrained"];

/// The order over all places, and that within what is attended.
fn orders(report: &SwapReport) -> [Option<&Order>; 2] {
    let places = report.orders.iter().find(|order| order.places);
    let attended = report.orders.iter().find(|order| !order.places);
    [places, attended]
}

fn cells(compared: &Compared) -> [String; 8] {
    let Compared { name, report } = compared;
    let share = |of: &Option<Estimate>| of.as_ref().map_or("—".into(), plain);
    let [places, attended] = orders(report).map(|order| match order {
        Some(order) => order.f.as_ref().map_or("not defined".into(), plain),
        None => "—".into(),
    });
    let above = report.untrained.as_ref().and_then(|untrained| untrained.percentile);
    [
        name.clone(),
        format!("{:.4}", report.head.mean_score)
            .trim_end_matches('0')
            .trim_end_matches('.')
            .replace('-', "−"),
        natural_percent(report),
        share(&report.attended),
        share(&report.memory),
        places,
        attended,
        above.map_or("—".into(), |share| format!("{:.0} %", 100.0 * share)),
    ]
}

impl Comparison {
    /// Passes name and bytes of every file to `add`: those of each study in a folder of its name, the figures of the comparison,
    /// a page, and last [`REPORT_FILE`].
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(studies: Vec<(String, SwapStudy)>, add: &mut AddFile<'_, E>) -> Result<Comparison, E> {
        let (mut agents, mut own) = (vec![], vec![]);
        for (name, study) in studies {
            own.push(study.figures.clone());
            let report = study.write(&format!("{name}/"), add)?;
            agents.push(Compared { name, report });
        }
        let comparison = Comparison { folder: std::path::PathBuf::new(), agents };
        let all = comparison.figures();
        for figure in &all {
            write_figure(figure, add)?;
        }
        let numbers = figures_json(all.iter());
        add("index.html", comparison.page(all, own).as_bytes())?;
        add(REPORT_FILE, whole_json(&comparison, &numbers).as_bytes())?;
        Ok(comparison)
    }

    fn figures(&self) -> Vec<Figure> {
        let mut rows = vec![];
        let mut table = DataTable::new(&COLUMNS);
        for compared in &self.agents {
            table.row(cells(compared).map(Into::into));
            let names = [("all places", Ink::Control), ("attended", Ink::Attention)];
            for (order, (kind, ink)) in orders(&compared.report).into_iter().zip(names) {
                let Some(Estimate { value, interval }) = order.and_then(|order| order.f) else { continue };
                rows.push(DotRow {
                    name: compared.name.clone(),
                    kind: kind.into(),
                    ink,
                    value,
                    interval,
                    remark: None,
                });
            }
            for f in compared.report.untrained.iter().flat_map(|untrained| &untrained.f) {
                let name = format!("{}: untrained", compared.name);
                let kind = "untrained".to_owned();
                rows.push(DotRow { name, kind, ink: Ink::Muted, value: *f, interval: None, remark: None });
            }
        }
        let ends = rows.iter().flat_map(|row| row.interval.into_iter().flatten().chain([row.value]));
        let [low, high] = ends.fold([-0.5_f64, 1.1_f64], |[low, high], x| [low.min(x), high.max(x)]);
        // An order without scale has ends far away; they are in the table.
        let domain = [low.max(-2.0), high.min(2.0)];
        let mut forest = dots(DotPlot {
            name: "forest",
            title: "F: is the order of what they attend to right?",
            caption: "0 is a random order, 1 the best order of single parts; below 0 the claim misleads. Yellow: within what is \
                      attended, values swapped. Blue: all places of the observation. Grey: untrained agents of the same kind. \
                      Bars: 95 % over episodes, each for itself."
                .into(),
            wide: true,
            axis: "F",
            domain: Some(domain),
            band: None,
            label: short,
            rows,
        });
        forest.table = table;
        vec![forest]
    }

    fn page(&self, mut all: Vec<Figure>, own: Vec<Vec<Figure>>) -> String {
        let head = joined(COLUMNS.iter().map(|name| format!("<th>{}</th>", escape(name))));
        let rows = self.agents.iter().map(|compared| {
            format!(
                "<tr>{}</tr>",
                joined(cells(compared).iter().map(|cell| format!("<td>{}</td>", escape(cell))))
            )
        });
        let table = format!(
            "<div class=\"table\"><table><thead><tr>{head}</tr></thead><tbody>{}</tbody></table></div>",
            joined(rows)
        );
        let mut sections = vec![Section {
            id: "compared",
            title: "Side by side".into(),
            lead: vec![
                "N: how far the action differs between moments of different episodes. M and memory: the share of that when \
                 only what the attention hands on, or only the memory, is from another moment. F: whether what is claimed to \
                 matter more does."
                    .into(),
            ],
            html: table,
            figures: std::mem::take(&mut all),
        }];
        for (number, (compared, figures)) in self.agents.iter().zip(own).enumerate() {
            let lines = compared.report.verdict.iter().map(|line| {
                format!(
                    "<li><b>{}</b> — {} {}</li>",
                    escape(line.answer),
                    escape(line.question),
                    escape(&line.why)
                )
            });
            sections.push(Section {
                id: SECTION_IDS[number.min(SECTION_IDS.len() - 1)],
                title: compared.name.clone(),
                lead: vec![format!(
                    "{} · {}, picture {}, variant {} · {}",
                    compared.report.head.weights,
                    compared.report.head.env,
                    compared.report.head.picture,
                    compared.report.head.variant,
                    compared.report.head.extent()
                )],
                html: format!("<ul class=\"summary\">{}</ul>", joined(lines)),
                figures: figures.into_iter().filter(|figure| figure.name != figures::EFFECTS).collect(),
            });
        }
        let summary: Vec<String> = self.agents.iter().map(Compared::sentence).collect();
        let notes = vec![
            "Made by foveate explain --compare; the same seed gives the same bytes. Every effect of every decision is in the \
             table effects of each agent's folder."
                .to_owned(),
        ];
        plain_page("What they act on", "agents side by side", &summary, &sections, &notes, &png)
    }
}

/// Anchors of the agents' sections.
const SECTION_IDS: [&str; 12] = [
    "agent-1", "agent-2", "agent-3", "agent-4", "agent-5", "agent-6", "agent-7", "agent-8", "agent-9",
    "agent-10", "agent-11", "others",
];

impl Compared {
    /// What a newcomer may conclude.
    fn sentence(&self) -> String {
        let [moves, carries, order] = &self.report.verdict;
        let said = |answer: &str, yes: &'static str, no: &'static str, open: &'static str| match answer {
            "yes" => yes,
            "no" => no,
            _ => open,
        };
        if moves.answer == "no" {
            return format!(
                "{}: its action hardly changes between moments, so there is nothing to explain.",
                self.name
            );
        }
        let carries = said(
            carries.answer,
            "acts more on what it attends to than on its memory",
            "acts more on its memory than on what it attends to",
            "acts on what it attends to and on its memory alike, as far as can be told",
        );
        let order = said(
            order.answer,
            "and what it attends to more does matter more",
            "and what it attends to more does not matter more in the way it claims",
            "and whether what it attends to more matters more cannot be told",
        );
        format!("{} {carries}, {order}.", self.name)
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
