//! Which cells attend to which.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::StudyError;
use super::super::cells::MeasuredCells;
use super::super::cells::record::{Link, Record};
use super::super::cells::{MOMENTS, Moment};
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::words::count;
use crate::charts::{WHOLE, percent};
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS};
use crate::node_maps::map_nodes;
use crate::page::Section;

/// The attention of cells to cells, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeLinks {
    /// Heads of the attention, and queries of each.
    pub heads_and_queries: [usize; 2],
    /// Which nodes attend to what, over all steps.
    pub attention: Vec<NodeAttention>,
}

/// The share of its attention that a node gives to all cells of a kind, in the steps in which both are in view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeAttention {
    /// The head; `null` for the share that equal weights would give.
    pub head: Option<usize>,
    /// The node that attends: `agent`, `in front`, or an object.
    pub node: String,
    /// What it attends to: `agent` (the agent's own cell), an object, `wall`, `empty`, `hidden`.
    pub target: String,
    /// The share.
    pub share: f64,
    /// Steps that it is over.
    pub steps: usize,
}

/// Which cells attend to which.
#[derive(Debug)]
pub(in crate::study) struct WhichCells;

impl Analysis for WhichCells {
    fn name(&self) -> &'static str {
        "cells"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        const NAMES: [&str; MOMENTS] = ["maps-1", "maps-2", "maps-3"];
        let Some(found) = bench.get::<MeasuredCells>() else { return Ok(None) };
        let report = NodeLinks {
            heads_and_queries: found.records.first().map_or([0; 2], |record| record.readers),
            attention: attention(&found.records),
        };
        let [heads, queries] = report.heads_and_queries;
        let attend = format!("{} attend to each other in {}.", count(queries, "cell"), count(heads, "head"));
        let maps = found.moments.iter().zip(NAMES).map(|(moment, name)| maps(moment, name, &report));
        let section = Section {
            id: "attention".into(),
            title: "Which cells attend to which".into(),
            lead: vec![format!(
                "{attend} A weight says how much of another cell a cell takes up. The maps below are of three moments of the episode \
                 shown; the film has those of every step."
            )],
            figures: maps.chain(links(&report)).collect(),
            ..Section::default()
        };
        let notes =
            vec!["Below the film, the action with the largest value is 1 and the others are 0.".into()];
        Ok(Some(Finding { lines: vec![attend], section: Some(section), notes, ..Finding::new(report) }))
    }
}

fn attention(records: &[Record]) -> Vec<NodeAttention> {
    let mut links: BTreeMap<Link, (f64, usize)> = BTreeMap::new();
    let mut uniform: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for record in records {
        for (link, (sum, steps)) in &record.links {
            let all = links.entry(link.clone()).or_default();
            *all = (all.0 + sum, all.1 + steps);
        }
        for (target, (sum, steps)) in &record.uniform {
            let all = uniform.entry(target.clone()).or_default();
            *all = (all.0 + sum, all.1 + steps);
        }
    }
    let links = links.into_iter().map(|((head, node, target), (sum, steps))| NodeAttention {
        head: Some(head),
        node,
        target,
        share: sum / steps as f64,
        steps,
    });
    let uniform = uniform.into_iter().map(|(target, (sum, steps))| NodeAttention {
        head: None,
        node: "equal weights".into(),
        target,
        share: sum / steps as f64,
        steps,
    });
    links.chain(uniform).collect()
}

fn maps(moment: &Moment, name: &'static str, report: &NodeLinks) -> Figure {
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
fn links(report: &NodeLinks) -> Option<Figure> {
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
        let fits = |link: &&NodeAttention| link.head == head && link.node == node && link.target == target;
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
