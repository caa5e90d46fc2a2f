//! The page of a report on cells: every number comes from the report.

use foveate_core::Labels;

use super::super::Mean;
use super::super::report_page::{count, mood, parts, subject, two, with_interval};
use super::super::sensors::undefined;
use super::super::swaps::OwnTest;
use super::figures::Figures;
use super::probe::best;
use super::{CellReport, EditFinding, Found, OUT_OF_VIEW, RANDOM_CELL};
use crate::charts::percent;
use crate::page::{Mood, PageFilm, ReportPage, Section, Tile, player_data};
use crate::text::{escape, joined};
use crate::trajectory::Dimension;

/// The test of this report.
pub(super) const EDITING: OwnTest = OwnTest {
    done: "editing single cells of the world",
    claim: "decisions depend more on cells with more attention",
    asks: "for one cell at a time, and the agent computes everything again, its attention included",
};

pub(super) fn page<'a>(
    labels: &Labels,
    found: &'a Found,
    report: &CellReport,
    figures: Figures,
    dimensions: &[Dimension],
) -> ReportPage<'a> {
    let shown = &found.records[0];
    let mut episode = shown.trajectory.clone();
    for values in &mut episode.actions {
        let best = best(values);
        *values = (0..values.len()).map(|at| f64::from(u8::from(Some(at) == best))).collect();
    }
    let empty = PageFilm { mp4: &[], fps: 1.0, size: [1, 1], world: None, seen: [0, 0, 1, 1] };
    let film = shown.film.as_ref().map_or(empty, |film| film.film());
    let picture = [film.seen[2], film.seen[3]];
    let name = subject(labels);
    let Figures { attention, tests, episodes } = figures;
    let [heads, queries] = report.heads_and_queries;
    let sections = vec![
        Section {
            id: "attention".into(),
            title: "Which cells attend to which".into(),
            lead: vec![format!(
                "{} attend to each other in {}. A weight says how much of another cell a cell takes up. The maps below are of \
                 three moments of the episode shown; the film has those of every step.",
                count(queries, "cell"),
                count(heads, "head"),
            )],
            html: String::new(),
            figures: attention,
        },
        Section {
            id: "true".into(),
            title: "Do decisions depend on that?".into(),
            lead: test_lead(report),
            html: table(report),
            figures: tests,
        },
        Section {
            id: "episodes".into(),
            title: "Whole episodes in edited worlds".into(),
            lead: vec![
                "Here an object is removed, recoloured or moved at the start, and the agent plays the episode to its end in the \
                 changed world, by the world's own rules."
                    .into(),
            ],
            html: episodes_table(report),
            figures: episodes,
        },
    ];
    ReportPage {
        title: format!("What {name} attends to"),
        subtitle: format!(
            "{} · {}, picture {}, variant {} · {}",
            labels.weights,
            labels.env,
            labels.picture,
            labels.variant,
            report.head.extent()
        ),
        tiles: tiles(report),
        summary: summary(report),
        data: player_data(&film, &episode, &[], picture, dimensions, None),
        film,
        seen: "where cells attend to: a block for each cell, a map for each head",
        columns: vec![],
        sections,
        notes: vec![
            report.head.made_note(),
            report.head.interval_note(report.method.interval),
            "Below the film, the action with the largest value is 1 and the others are 0.".into(),
        ],
    }
}

/// The rows of objects, without the controls.
fn objects(report: &CellReport) -> impl Iterator<Item = &EditFinding> {
    report.edits.iter().filter(|row| row.attention.is_some())
}

fn tiles(report: &CellReport) -> Vec<Tile> {
    let mut tiles = vec![
        Tile {
            value: report.verdict.clone(),
            name: "decisions depend more on cells with more attention".into(),
            note: "rank correlation against both nulls".into(),
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
    tiles.push(Tile {
        value: two(report.head.scores[0]),
        name: "score of this episode".into(),
        note: format!(
            "{} steps; mean of {} is {}",
            report.head.steps[0],
            count(report.head.scores.len(), "episode"),
            two(report.head.mean_score)
        ),
        mood: Mood::Plain,
    });
    tiles
}

fn summary(report: &CellReport) -> Vec<String> {
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
    let test = &report.rank;
    let lies = |what: &str, (_, interval): Mean| match interval {
        Some([low, _]) if low > 0.0 => format!("more than {what}"),
        Some([_, high]) if high < 0.0 => format!("less than {what}"),
        Some(_) => format!("not clearly different from {what}"),
        None => format!("not comparable with {what} over one episode"),
    };
    told.extend(report.differences.iter().cloned());
    if report.natural.0 < report.method.floor {
        told.push(format!(
            "All that it sees replaced by another episode's changes {} of its decisions. That is less than {}, so nothing is said \
             about cells.",
            parts(report.natural),
            percent(report.method.floor)
        ));
    }
    let defined = !undefined(&[&[test.own.0], &[test.dealt.0], &[test.other_moment.0]]);
    told.push(if defined { format!(
        "Over the cells in view, the rank correlation of attention and effect is {}; that is {} ({}), and {} ({}).",
        with_interval(test.own),
        lies("that of attention dealt at random", test.above_dealt),
        two(test.dealt.0),
        lies("that of the attention of another moment", test.above_other),
        two(test.other_moment.0),
    ) } else {
        "Over the cells in view, all weights or all effects are equal, so their rank correlation is not defined.".into()
    });
    for contrast in report.contrasts.iter().filter(|contrast| contrast.decisions > 0) {
        told.push(format!(
            "Effect of the {}: {} of the natural change of the values (n = {}).",
            contrast.name,
            with_interval(contrast.difference),
            contrast.decisions
        ));
    }
    if report.head.scores.len() < report.method.fewest_episodes {
        told.push(format!(
            "{} {} too few for a verdict; {} are the least, {} are better.",
            count(report.head.scores.len(), "episode"),
            if report.head.scores.len() == 1 { "is" } else { "are" },
            report.method.fewest_episodes,
            report.method.advised_episodes
        ));
    }
    told
}

fn test_lead(report: &CellReport) -> Vec<String> {
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

fn table(report: &CellReport) -> String {
    let rows = joined(report.edits.iter().map(|row| {
        let attention = row.attention.map_or_else(|| "–".to_owned(), parts);
        format!(
            "<tr><td>{}, {}</td><td>{}</td><td>{attention}</td><td>{}</td><td>{}</td></tr>",
            escape(&row.object),
            escape(&row.edit),
            row.decisions,
            parts(row.action),
            with_interval(row.values),
        )
    }));
    let test = &report.rank;
    let class = if test.verdict == "supported" { "yes" } else { "no" };
    let cells =
        [test.own, test.dealt, test.other_moment, test.random_agent, test.above_dealt, test.above_other];
    let cells = joined(cells.into_iter().map(|mean| format!("<td>{}</td>", with_interval(mean))));
    let contrasts = joined(report.contrasts.iter().map(|contrast| {
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&contrast.name),
            contrast.decisions,
            with_interval(contrast.difference)
        )
    }));
    format!(
        "<div class=\"card\"><table><thead><tr><th>in the world's state</th><th>n</th><th>share of attention</th><th>other \
         best action</th><th>change of the values</th></tr></thead><tbody>{rows}</tbody></table></div><div \
         class=\"card\"><table class=\"many\"><thead><tr><th>rank correlation</th><th>dealt at random</th><th>another \
         moment</th><th>random weights</th><th>above random</th><th>above another \
         moment</th><th>verdict</th></tr></thead><tbody><tr>{cells}<td><span class=\"verdict \
         {class}\">{}</span></td></tr></tbody></table></div><div class=\"card\"><table><thead><tr><th>paired difference of the \
         change of the values</th><th>n</th><th>difference</th></tr></thead><tbody>{contrasts}</tbody></table></div>",
        escape(&test.verdict)
    )
}

fn episodes_table(report: &CellReport) -> String {
    let rows = joined(report.edited_episodes.iter().map(|row| {
        let name = if row.object.is_empty() {
            "as it was".to_owned()
        } else {
            format!("{}, {}", row.object, row.edit)
        };
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&name),
            row.episodes,
            parts(row.terminated),
            with_interval(row.score),
            with_interval(row.unedited),
        )
    }));
    format!(
        "<div class=\"card\"><table><thead><tr><th>at the start</th><th>n</th><th>ended by the world</th><th>score</th><th>score \
         of the same episodes, not edited</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}
