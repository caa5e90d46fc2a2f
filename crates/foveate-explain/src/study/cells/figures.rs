//! The figures of a report on cells.

use super::super::Mean;
use super::super::report_page::count;
use super::{CellReport, Found, Moment};
use crate::charts::{DotPlot, DotRow, WHOLE, dots, percent};
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, short};
use crate::node_maps::map_nodes;

/// The figures by section of the page.
pub(super) struct Figures {
    pub(super) attention: Vec<Figure>,
    pub(super) tests: Vec<Figure>,
    pub(super) episodes: Vec<Figure>,
}

impl Figures {
    /// All of them, in the order of the page.
    pub(super) fn all(&self) -> impl Iterator<Item = &Figure> {
        self.attention.iter().chain(&self.tests).chain(&self.episodes)
    }
}

pub(super) fn figures(found: &Found, report: &CellReport) -> Figures {
    const NAMES: [&str; super::MOMENTS] = ["maps-1", "maps-2", "maps-3"];
    let maps = found.moments.iter().zip(NAMES).map(|(moment, name)| maps(moment, name, report));
    Figures {
        attention: maps.chain(links(report)).collect(),
        tests: vec![edits(report), ranks(report)],
        episodes: vec![episodes(report)],
    }
}

fn maps(moment: &Moment, name: &'static str, report: &CellReport) -> Figure {
    let mut table = DataTable::new(&["head", "node", "column", "row", "content", "weight"]);
    let [heads, queries] = report.heads_and_queries;
    let cells = moment.view.cells.len();
    for node in map_nodes(&moment.view) {
        let Some(cell) = node.cell.filter(|&cell| cell < queries) else { continue };
        for head in 0..heads {
            let row = &moment.weights[(head * queries + cell) * cells..][..cells];
            for (at, &weight) in moment.view.cells.iter().zip(row) {
                table.row([
                    head.into(),
                    node.name.as_str().into(),
                    at.in_view[0].into(),
                    at.in_view[1].into(),
                    at.content.as_deref().unwrap_or("hidden").into(),
                    f64::from(weight).into(),
                ]);
            }
        }
    }
    Figure {
        name,
        title: format!("Step {}: where each cell attends to", moment.step),
        caption: "A row for each cell that attends (framed), a column for each head. The agent stands in the middle of the \
                  lowest row and looks up. The brightest cell of a map has its largest weight, which is named below."
            .into(),
        wide: false,
        drawing: moment.maps.clone(),
        table,
    }
}

/// Which nodes attend to what: a table for each head, a row for each node.
fn links(report: &CellReport) -> Option<Figure> {
    let [heads, _] = report.heads_and_queries;
    let mut targets: Vec<&str> = report.attention.iter().map(|link| &*link.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut nodes: Vec<&str> =
        report.attention.iter().filter(|link| link.head.is_some()).map(|link| &*link.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.is_empty() {
        return None;
    }
    let mut table = DataTable::new(&["head", "node", "target", "share", "steps"]);
    for link in &report.attention {
        table.row([
            link.head.map_or_else(|| "equal weights".to_owned(), |head| head.to_string()).into(),
            link.node.as_str().into(),
            link.target.as_str().into(),
            link.share.into(),
            link.steps.into(),
        ]);
    }
    let (left, line, gap) = (130.0, 26.0, 44.0);
    let across = (WHOLE - left - 20.0) / targets.len() as f64;
    let block = line * (nodes.len() + 1) as f64 + gap;
    let mut sheet = Drawing::new(WHOLE, block * heads as f64 + line + 12.0);
    let share = |head: Option<usize>, node: &str, target: &str| {
        let fits =
            |link: &&super::NodeAttention| link.head == head && link.node == node && link.target == target;
        report.attention.iter().find(fits).map(|link| link.share)
    };
    let mut row = |y: f64, head: Option<usize>, node: &str| {
        sheet.text((left - 12.0, y + 0.68 * line), LETTERS, Anchor::End, Ink::Text, node);
        for (column, target) in targets.iter().enumerate() {
            let x = left + column as f64 * across;
            sheet.rect([x + 1.0, y + 1.0, across - 2.0, line - 2.0], Ink::Grid, 0.5);
            let Some(share) = share(head, node, target) else { continue };
            sheet.rect([x + 1.0, y + 1.0, across - 2.0, line - 2.0], Ink::Attention, share.clamp(0.0, 1.0));
            let at = (x + across / 2.0, y + 0.68 * line);
            sheet.text(at, LETTERS, Anchor::Middle, Ink::Text, percent(share));
        }
    };
    for head in 0..heads {
        let top = head as f64 * block + gap;
        for (i, node) in nodes.iter().enumerate() {
            row(top + i as f64 * line, Some(head), node);
        }
    }
    row(heads as f64 * block - line + gap / 2.0, None, "equal weights");
    for head in 0..heads {
        let top = head as f64 * block + gap;
        sheet.text((left - 12.0, top - 10.0), LETTERS, Anchor::End, Ink::Muted, format!("head {head}"));
        for (column, target) in targets.iter().enumerate() {
            let x = left + (column as f64 + 0.5) * across;
            sheet.tick((x, top - 10.0), LETTERS, Anchor::Middle, *target);
        }
    }
    Some(Figure {
        name: "links",
        title: "What each node attends to".into(),
        caption: "The share of a row's attention that goes to all cells of a kind, the mean over the steps of all episodes in \
                  which both are in view; a carried key is seen in the agent's own cell. The last row is what equal weights would give: it tells how many cells there are \
                  of each kind."
            .into(),
        wide: true,
        drawing: sheet,
        table,
    })
}

fn bars(report: &CellReport) -> String {
    match report.head.scores.len() {
        1 => "one episode has no interval".into(),
        n => format!("bars: 95 % over {n} episodes"),
    }
}

fn row(name: String, kind: &str, ink: Ink, (value, interval): Mean) -> DotRow {
    DotRow { name, kind: kind.into(), ink, value, interval, remark: None }
}

fn edits(report: &CellReport) -> Figure {
    let rows = report.edits.iter().flat_map(|edit| {
        let name = format!("{}, {} (n {})", edit.object, edit.edit, edit.decisions);
        let share =
            edit.attention.map(|share| row(name.clone(), "share of attention", Ink::Attention, share));
        let action = row(name, "other best action", Ink::Control, edit.action);
        share.into_iter().chain([action])
    });
    dots(DotPlot {
        name: "edits",
        title: "What each object gets, and what it does when the world is changed",
        caption: format!(
            "Orange: the share of all attention that the object's cell gets. Blue: the share of decisions in which another \
             action has the largest value once the object is removed, recoloured or moved in the world's state. Last the \
             controls: a cell without an object changed, and an object out of view removed; {}.",
            bars(report)
        ),
        wide: true,
        axis: "share",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn ranks(report: &CellReport) -> Figure {
    let test = &report.rank;
    let rows = [
        ("its attention", Ink::Attention, test.own),
        ("dealt at random", Ink::Muted, test.dealt),
        ("of another moment", Ink::Control, test.other_moment),
        ("random weights", Ink::Other, test.random_agent),
    ];
    dots(DotPlot {
        name: "rank-correlation",
        title: "Do cells with more attention move the values more?",
        caption: format!(
            "Rank correlation over the cells in view that can be changed ({} on average) of a cell's attention and of the \
             change of the values when it is emptied or, if empty, blocked by a wall. 1: the same order, 0: none. Nulls: the \
             same attention dealt to the cells at random, and that of a moment of another episode. Last, agents with random \
             weights, of themselves; {}.",
            short(report.cells),
            bars(report)
        ),
        wide: true,
        axis: "rank correlation",
        domain: Some([-1.0, 1.0]),
        band: None,
        label: short,
        rows: rows.map(|(name, ink, mean)| row(name.into(), "", ink, mean)).into(),
    })
}

fn episodes(report: &CellReport) -> Figure {
    let rows = report.edited_episodes.iter().map(|edited| {
        let what = if edited.object.is_empty() {
            "as it was".to_owned()
        } else {
            format!("{}, {}", edited.object, edited.edit)
        };
        let name = format!("{what} (n {})", edited.episodes);
        row(name, "ended by the world", Ink::Control, edited.terminated)
    });
    dots(DotPlot {
        name: "edited-episodes",
        title: "Whole episodes in edited worlds",
        caption: format!(
            "Share of {} that the world ended before the limit of steps, as at the goal, when its state was edited at the \
             start. Some edits leave no way to the goal: a key of another colour does not open the door; {}.",
            count(report.head.scores.len(), "episode"),
            bars(report)
        ),
        wide: true,
        axis: "share of episodes",
        domain: Some([0.0, 1.0]),
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}
