//! Whether decisions depend on the cells that get attention: the world is edited, cell by cell.

use serde::Serialize;

use super::super::cells::probe::{Change, Edit, Effects};
use super::super::cells::{DEALS, DONORS, FLOOR, MeasuredCells};
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::means::{RankTest, over, per_episode};
use super::super::swaps::{OwnTest, differences};
use super::super::words::{count, dot, intervals, mood, parts, too_few, two, with_interval};
use super::super::{ADVISED_EPISODES, INTERVAL, Mean, StudyError};
use super::matters::Swaps;
use crate::charts::{DotPlot, dots, percent};
use crate::faithful::FEWEST_EPISODES;
use crate::figure::{Figure, Ink, short};
use crate::page::{Mood, PageTable, Section, Tile};

/// What edits of cells show, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellEdits {
    /// Share of decisions with another best action when everything that the agent sees is that of another episode.
    pub natural: Mean,
    /// The same as mean absolute change of the actions' values, the unit of all changes of values in this report.
    pub natural_values: Mean,
    /// What edits of the world's state do to single decisions.
    pub edits: Vec<EditFinding>,
    /// Mean number of cells in view that a rank correlation is over.
    pub cells: f64,
    /// Rank correlation over cells in view of attention and effect.
    pub rank: RankTest,
    /// Paired differences of effects.
    pub contrasts: Vec<Contrast>,
    /// Whether decisions depend more on cells with more attention: `supported`, `not supported`, `undecided`.
    pub verdict: String,
    /// Where that and a line of `swaps` seem to contradict each other: what the difference is.
    pub differences: Vec<String>,
    /// Constants of the method.
    pub method: CellMethod,
}

/// What an edit of the world's state does to a decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditFinding {
    /// What was edited.
    pub object: String,
    /// What was done to it.
    pub edit: String,
    /// Decisions.
    pub decisions: usize,
    /// Its cell's share of all attention; `null` for controls.
    pub attention: Option<Mean>,
    /// Share of decisions with another best action.
    pub action: Mean,
    /// Mean absolute change of the actions' values, as a part of the natural change.
    pub values: Mean,
}

/// A paired difference of effects on the actions' values, as a part of the natural change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// What is compared.
    pub name: String,
    /// Decisions.
    pub decisions: usize,
    /// The difference.
    pub difference: Mean,
}

/// Constants of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellMethod {
    /// What is done to objects.
    pub edits: [&'static str; 3],
    /// Moments of other episodes per decision.
    pub donors: usize,
    /// Random orders behind the first null.
    pub deals: usize,
    /// Share of decisions that another observation must change.
    pub floor: f64,
    /// Confidence level of all intervals.
    pub interval: f64,
    /// Fewer episodes give no conclusion.
    pub fewest_episodes: usize,
    /// Recommended number of episodes.
    pub advised_episodes: usize,
}

impl CellMethod {
    const fn ours() -> Self {
        CellMethod {
            edits: [Edit::ALL[0].name(), Edit::ALL[1].name(), Edit::ALL[2].name()],
            donors: DONORS,
            deals: DEALS,
            floor: FLOOR,
            interval: INTERVAL,
            fewest_episodes: FEWEST_EPISODES,
            advised_episodes: ADVISED_EPISODES,
        }
    }
}

/// The test of this report.
const EDITING: OwnTest = OwnTest {
    done: "editing single cells of the world",
    claim: "decisions depend more on cells with more attention",
    asks: "for one cell at a time, and the agent computes everything again, its attention included",
};

/// Whether decisions depend more on cells with more attention.
#[derive(Debug)]
pub(in crate::study) struct CellsTest;

impl Analysis for CellsTest {
    fn name(&self) -> &'static str {
        "cells-true"
    }

    fn find(&self, bench: &Bench<'_>, before: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredCells>() else { return Ok(None) };
        let swaps = before.get::<Swaps>().and_then(|swaps| swaps.swaps.as_ref());
        let mut report = report(found);
        report.differences = differences(&EDITING, &report.verdict, swaps);
        let n = bench.episodes();
        let section = Section {
            id: "true".into(),
            title: "Do decisions depend on that?".into(),
            lead: test_lead(&report),
            tables: tables(&report),
            figures: vec![edits(&report, n), ranks(&report, n)],
            ..Section::default()
        };
        Ok(Some(Finding {
            tiles: tiles(&report).into_iter().skip(usize::from(swaps.is_some())).collect(),
            sentences: summary(&report, n),
            lines: lines(&report),
            section: Some(section),
            ..Finding::new(report)
        }))
    }
}

/// A mean in another unit.
fn in_units((mean, interval): Mean, unit: f64) -> Mean {
    let unit = if unit > 0.0 { unit } else { 1.0 };
    (mean / unit, interval.map(|ends| ends.map(|end| end / unit)))
}

fn report(found: &MeasuredCells) -> CellEdits {
    let effects = &found.effects;
    let natural = over(&per_episode(effects, &|of| Some(of.natural.action)));
    let natural_values = over(&per_episode(effects, &|of| Some(of.natural.values)));
    let unit = natural_values.0;
    let finding =
        |object: &str, edit: &str, attention: Option<Mean>, of: &dyn Fn(&Effects) -> Option<Change>| {
            let decisions = effects.iter().flatten().filter(|effects| of(effects).is_some()).count();
            EditFinding {
                object: object.into(),
                edit: edit.into(),
                decisions,
                attention,
                action: over(&per_episode(effects, &|effects| Some(of(effects)?.action))),
                values: in_units(over(&per_episode(effects, &|effects| Some(of(effects)?.values))), unit),
            }
        };
    let mut labels: Vec<String> =
        effects.iter().flatten().flat_map(|of| of.objects.iter().map(|(label, ..)| label.clone())).collect();
    labels.sort();
    labels.dedup();
    let mut edits = vec![];
    for label in &labels {
        for edit in Edit::ALL {
            let matching = |of: &Effects| -> Vec<(f64, Change)> {
                let fits = of.objects.iter().filter(|(name, _, done, _)| name == label && *done == edit);
                fits.map(|&(_, attention, _, change)| (attention, change)).collect()
            };
            let mean = |of: &Effects, value: &dyn Fn(&(f64, Change)) -> f64| {
                let all = matching(of);
                (!all.is_empty()).then(|| all.iter().map(value).sum::<f64>() / all.len() as f64)
            };
            let attention = over(&per_episode(effects, &|of| mean(of, &|(attention, _)| *attention)));
            let change = |of: &Effects| {
                Some(Change {
                    action: mean(of, &|(_, change)| change.action)?,
                    values: mean(of, &|(_, change)| change.values)?,
                })
            };
            let row = finding(label, edit.name(), Some(attention), &change);
            if row.decisions > 0 {
                edits.push(row);
            }
        }
    }
    edits.push(finding(RANDOM_CELL, "wall set or removed", None, &|of| of.random_cell));
    edits.push(finding(OUT_OF_VIEW, Edit::Removed.name(), None, &|of| of.unseen));
    edits.retain(|row| row.decisions > 0);

    let ranks = |column: usize| per_episode(effects, &|of| Some(of.ranks?[column]));
    let ranks = [ranks(0), ranks(1), ranks(2), ranks(3)];
    let rank = RankTest::new("cell changed", ranks, natural.0 >= FLOOR);
    let contrast = |name: &str, of: &dyn Fn(&Effects) -> Option<f64>| Contrast {
        name: name.into(),
        decisions: effects.iter().flatten().filter(|effects| of(effects).is_some()).count(),
        difference: in_units(over(&per_episode(effects, of)), unit),
    };
    let contrasts = vec![
        contrast("object with the most attention removed, less that with the least", &|of| {
            let [most, least] = of.most_and_least?;
            Some(most.values - least.values)
        }),
        contrast("object with the most attention removed, less a random cell changed", &|of| {
            let [most, _] = of.most_and_least?;
            Some(most.values - of.random_cell?.values)
        }),
    ];
    let cells: Vec<f64> = effects.iter().flatten().map(|of| of.cells as f64).collect();
    CellEdits {
        natural,
        natural_values,
        edits,
        cells: foveate_core::statistics::mean(&cells),
        verdict: rank.verdict.clone(),
        rank,
        contrasts,
        differences: vec![],
        method: CellMethod::ours(),
    }
}

/// The control of edits: a cell without an object.
const RANDOM_CELL: &str = "a random cell";
/// The second control: what the agent does not see.
const OUT_OF_VIEW: &str = "an object out of view";

/// The lines on a terminal.
fn lines(report: &CellEdits) -> Vec<String> {
    let natural = with_interval(report.natural);
    let mut lines = vec![format!("another observation changes the best action in a share of {natural}")];
    lines.extend(report.edits.iter().map(|row| {
        let (action, values) = (with_interval(row.action), with_interval(row.values));
        format!(
            "{:22} {:19} n {:4}  other action {action:19}  values {values}",
            row.object, row.edit, row.decisions
        )
    }));
    lines.push(format!(
        "rank correlation of attention and effect {}, dealt at random {}, of another moment {}",
        with_interval(report.rank.own),
        with_interval(report.rank.dealt),
        with_interval(report.rank.other_moment)
    ));
    lines.extend(report.contrasts.iter().map(|contrast| {
        format!("{} (n {}): {}", contrast.name, contrast.decisions, with_interval(contrast.difference))
    }));
    lines.push(format!("decisions depend more on cells with more attention: {}", report.verdict));
    lines.extend(report.differences.iter().cloned());
    lines
}

/// The rows of objects, without the controls.
fn objects(report: &CellEdits) -> impl Iterator<Item = &EditFinding> {
    report.edits.iter().filter(|row| row.attention.is_some())
}

fn tiles(report: &CellEdits) -> Vec<Tile> {
    let mut tiles = vec![
        Tile {
            value: report.verdict.clone(),
            name: "decisions depend more on cells with more attention".into(),
            note: "rank correlation against attention dealt at random".into(),
            mood: mood(&report.verdict),
        },
        Tile {
            value: two(report.rank.own.0),
            name: "rank correlation of attention and effect".into(),
            note: format!("{}; dealt at random {}", with_interval(report.rank.own), two(report.rank.dealt.0)),
            mood: mood(&report.verdict),
        },
        Tile {
            value: percent(report.natural.0),
            name: "of decisions change with all that it sees".into(),
            note: if report.natural.0 < report.method.floor {
                "too little to say anything".into()
            } else {
                "replaced by another episode's".into()
            },
            mood: Mood::Plain,
        },
    ];
    let most = objects(report).max_by(|a, b| a.action.0.total_cmp(&b.action.0));
    if let Some(most) = most {
        tiles.push(Tile {
            value: percent(most.action.0),
            name: format!("other actions, {} {}", most.object, most.edit),
            note: format!("the edit that changes most, n = {}", most.decisions),
            mood: Mood::Plain,
        });
    }
    tiles
}

fn summary(report: &CellEdits, episodes: usize) -> Vec<String> {
    let mut told = vec![];
    let attended = objects(report).filter(|row| row.edit == report.method.edits[0]);
    let share = |row: &EditFinding| row.attention.map_or(0.0, |(share, _)| share);
    if let Some(most) = attended.max_by(|a, b| share(a).total_cmp(&share(b))) {
        told.push(format!(
            "Of the objects in view, the {} gets most attention: {} of all weights. Removed from the world, it changes the best \
             action in {} of {}.",
            most.object,
            percent(share(most)),
            parts(most.action),
            count(most.decisions, "decision"),
        ));
    }
    let control = |name: &str| report.edits.iter().find(|row| row.object == name);
    if let Some(row) = control(RANDOM_CELL) {
        told.push(format!(
            "A wall set or removed in a random cell without an object changes it in {} of {}.",
            parts(row.action),
            count(row.decisions, "decision")
        ));
    }
    if let Some(row) = control(OUT_OF_VIEW) {
        told.push(format!(
            "Removing an object that is out of view changes it in {} of {}; an agent without memory cannot notice it.",
            percent(row.action.0),
            count(row.decisions, "decision")
        ));
    }
    told.extend(report.differences.iter().cloned());
    if report.natural.0 < report.method.floor {
        told.push(format!(
            "All that it sees replaced by another episode's changes {} of its decisions. That is less than {}, so nothing is said \
             about cells.",
            parts(report.natural),
            percent(report.method.floor)
        ));
    }
    told.push(report.rank.sentence("attention", "attention").map_or_else(
        || "Over the cells in view, all weights or all effects are equal, so their rank correlation is not defined.".into(),
        |said| format!("Over the cells in view, the {said}"),
    ));
    for contrast in report.contrasts.iter().filter(|contrast| contrast.decisions > 0) {
        told.push(format!(
            "Effect of the {}: {} of the natural change of the values (n = {}).",
            contrast.name,
            with_interval(contrast.difference),
            contrast.decisions
        ));
    }
    told.extend(too_few(episodes));
    told
}

fn test_lead(report: &CellEdits) -> Vec<String> {
    vec![
        "Attention to a cell is a claim: what lies there matters now. Each tested decision is repeated in a copy of the world \
         whose state was edited: an object removed, given another colour, or moved to another cell in view (a door changes \
         places with a wall). The observation is that of the edited world, so nothing is shown that the world could not show."
            .into(),
        format!(
            "Two things are measured: whether another action has the largest value, and the mean absolute change of the values, \
             in units of the change when all that the agent sees is that of a moment of another episode ({} such moments for \
             each decision).",
            report.method.donors
        ),
        "The claim is tested over all cells in view, objects or not: each is emptied or, if it is empty, blocked by a wall. If \
         the claim holds, cells with more attention (absolute weights summed over heads and queries) move the values more. It \
         has two nulls: the same attention dealt to the cells at random, and the attention of a moment of another episode, \
         which is right in general and wrong for the moment. It is supported if its paired differences from both have 95 % \
         intervals above 0."
            .into(),
        "What this test cannot show: which head or which query an effect goes through, and what happens when several cells \
         change at once."
            .into(),
    ]
}

fn tables(report: &CellEdits) -> Vec<PageTable> {
    let edits = report.edits.iter().map(|row| {
        [
            format!("{}, {}", row.object, row.edit),
            row.decisions.to_string(),
            row.attention.map_or_else(|| "–".to_owned(), parts),
            parts(row.action),
            with_interval(row.values),
        ]
    });
    let contrasts = report.contrasts.iter().map(|contrast| {
        [contrast.name.clone(), contrast.decisions.to_string(), with_interval(contrast.difference)]
    });
    let columns = [
        "rank correlation",
        "dealt at random",
        "another moment",
        "random weights",
        "above random",
        "above another moment",
        "verdict",
    ];
    vec![
        PageTable::new(
            ["in the world's state", "n", "share of attention", "other best action", "change of the values"],
            edits,
        ),
        PageTable::new(columns, [report.rank.cells()]),
        PageTable::new(["paired difference of the change of the values", "n", "difference"], contrasts),
    ]
}

fn edits(report: &CellEdits, episodes: usize) -> Figure {
    let rows = report.edits.iter().flat_map(|edit| {
        let name = format!("{}, {} (n {})", edit.object, edit.edit, edit.decisions);
        let share =
            edit.attention.map(|share| dot(name.clone(), "share of attention", Ink::Attention, share));
        let action = dot(name, "other best action", Ink::Control, edit.action);
        share.into_iter().chain([action])
    });
    dots(DotPlot {
        name: "edits",
        title: "What each object gets, and what it does when the world is changed",
        caption: format!(
            "Orange: the share of all attention that the object's cell gets. Blue: the share of decisions in which another \
             action has the largest value once the object is removed, recoloured or moved in the world's state. Last the \
             controls: a cell without an object changed, and an object out of view removed; {}.",
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "share",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn ranks(report: &CellEdits, episodes: usize) -> Figure {
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
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "rank correlation",
        domain: Some([-1.0, 1.0]),
        band: None,
        label: short,
        rows: rows.map(|(name, ink, mean)| dot(name, "", ink, mean)).into(),
    })
}
