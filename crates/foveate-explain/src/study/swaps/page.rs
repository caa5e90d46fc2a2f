//! What stands first in a report: three lines, and what they rest on.

use std::fmt;

use super::SwapStudy;
use super::effects::Regret;
use super::report::{SwapReport, natural_percent};
use crate::estimate::Estimate;
use crate::page::{Mood, ReportPage, Section, Tile};
use crate::study::report_page::count;
use crate::text::{escape, joined};

/// Names of the three lines on tiles.
const LINES: [&str; 3] =
    ["its action depends on the moment", "by what its attention hands on", "in the order of its attention"];

impl ReportPage<'_> {
    /// Puts the three lines before everything else, with the figures that they rest on. The first tile, the verdict of the
    /// report's own test, then stands in its section only.
    pub(in crate::study) fn put_first(&mut self, swaps: Option<SwapStudy>) {
        let Some(SwapStudy { report, figures, film }) = swaps else { return };
        if !self.tiles.is_empty() {
            self.tiles.remove(0);
        }
        self.tiles.splice(0..0, tiles(&report));
        self.summary.splice(0..0, sentences(&report));
        self.sections.insert(
            0,
            Section {
                id: "matters".into(),
                title: "What matters, by which path, in which order".into(),
                lead: lead(&report, film.is_some()),
                html: randomised(&report),
                figures,
            },
        );
    }
}

/// The three lines on a terminal.
pub(in crate::study) fn verdict_lines(
    f: &mut fmt::Formatter<'_>,
    report: Option<&SwapReport>,
) -> fmt::Result {
    for line in report.iter().flat_map(|report| &report.verdict) {
        writeln!(f, "  {:10} {}\n             {}", line.answer, line.question, line.why)?;
    }
    Ok(())
}

fn tiles(report: &SwapReport) -> impl Iterator<Item = Tile> {
    let shares = |of: &Option<Estimate>| of.as_ref().map_or("—".into(), Estimate::plain);
    let order = report.orders.first().and_then(|order| order.f.as_ref());
    let notes = [
        format!("between moments it differs by {} of its range", natural_percent(report)),
        format!("{} of that; its memory {}", shares(&report.attended), shares(&report.memory)),
        order.map_or("F is not defined".into(), |f| format!("F = {}; 0 is chance", f.plain())),
    ];
    report.verdict.iter().zip(LINES).zip(notes).map(|((line, name), note)| Tile {
        value: line.answer.into(),
        name: name.into(),
        note,
        mood: match line.answer {
            "yes" => Mood::Good,
            "no" => Mood::Bad,
            _ => Mood::Plain,
        },
    })
}

/// What may be concluded, a sentence for each line.
fn sentences(report: &SwapReport) -> [String; 3] {
    let [moves, carries, right] = &report.verdict;
    let n = format!(
        "{} in {}",
        count(report.head.decisions, "decision"),
        count(report.head.scores.len(), "episode")
    );
    let natural = natural_percent(report);
    let first = match moves.answer {
        "yes" => format!(
            "Its action depends on what it sees and remembers: between moments of different episodes it differs by {natural} \
             of its range ({n})."
        ),
        "no" => format!(
            "Its action hardly depends on what it sees and remembers: between moments of different episodes it differs by \
             {natural} of its range ({n}). There is nothing to explain."
        ),
        _ => format!(
            "Whether its action depends on what it sees and remembers is open: between moments of different episodes it differs \
             by {natural} of its range ({n})."
        ),
    };
    let second = match (&report.attended, &report.memory) {
        (Some(attended), Some(memory)) if moves.answer == "yes" => {
            let shares = format!(
                "what its attention hands on makes {} of that difference by itself, its memory {}",
                attended.plain(),
                memory.plain()
            );
            match carries.answer {
                "yes" => format!("It acts more on what it attends to than on its memory: {shares}."),
                "no" => format!("It acts more on its memory than on what it attends to: {shares}."),
                _ => {
                    format!("Whether it acts more on what it attends to or on its memory is open: {shares}.")
                }
            }
        }
        _ => format!("By which path is not said: {}.", carries.why),
    };
    let order = report.orders.first();
    let third = match order.and_then(|order| Some((order, order.f.as_ref()?))) {
        Some((order, f)) if moves.answer == "yes" => {
            let numbers =
                format!("F = {}, where 0 is a random order and 1 the best, over {}", f.plain(), order.name);
            match right.answer {
                "yes" => format!("What it attends to most matters most: {numbers}."),
                "no" if f.is_below(0.0) => format!(
                    "Its attention misleads about what matters: parts that it attends to less move its action more. {numbers}."
                ),
                "no" => format!(
                    "Its attention at the moment says less about what matters than where it attends in other episodes: {numbers}."
                ),
                _ if f.is_above(0.0) => format!(
                    "What it attends to most matters more than chance would have it, but that does not set it apart from where \
                     it usually attends and from untrained agents of its kind: {numbers}."
                ),
                _ => format!("Whether what it attends to most matters most is open: {numbers}."),
            }
        }
        _ => format!("In which order is not said: {}.", right.why),
    };
    [first, second, third]
}

fn lead(report: &SwapReport, bordered: bool) -> Vec<String> {
    let mut lead = vec![
        "Decisions are taken again with one part of them from another moment, of another episode: what the attention hands on, \
         the memory, or single attended parts. How far the action then changes is the effect of that part, in a unit that can be \
         compared between agents: the change when everything comes from the other moment."
            .into(),
    ];
    lead.extend(
        report
            .verdict
            .iter()
            .map(|line| format!("{} {}: {}.", capital(line.question), capital(line.answer), line.why)),
    );
    if let Some(Regret { natural, attended, memory }) = &report.regret {
        lead.push(format!(
            "What is chosen with everything from the other moment scores {} below what was chosen, in the agent's own scores of the \
             decision as it was; with what its attention hands on alone {}, with the memory alone {}. The scores of a Q-network \
             are the discounted returns that it expects.",
            natural.plain(),
            attended.plain(),
            memory.plain()
        ));
    }
    if bordered {
        lead.push(
            "The brighter something is in pictures of attention, the more the agent attends to it: that is the claim. In the film, \
             the border of a patch has the colour of its measured effect, so that claim and effect can be seen to differ."
                .into(),
        );
    }
    if let Some(untrained) = &report.untrained {
        lead.push(format!(
            "{} of the same kind, with random weights, went through the same; in {} of them the action moves at all.",
            count(untrained.agents, "agent"),
            untrained.moving
        ));
    }
    lead
}

/// The agent with parts of its weights at random.
pub(super) fn randomised(report: &SwapReport) -> String {
    if report.randomised.is_empty() {
        return String::new();
    }
    let said = |of: &Option<Estimate>, none: &str| of.as_ref().map_or(none.into(), Estimate::plain);
    let rows = joined(report.randomised.iter().map(|of| {
        format!(
            "<tr><td>{}{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&of.tensors),
            if of.cascade { " and all behind it" } else { "" },
            of.natural.percent(),
            said(&of.attended, "—"),
            said(&of.f, "not defined")
        )
    }));
    format!(
        "<div class=\"lead\"><p>The same agent with parts of its weights drawn at random, in few and short episodes. An order that \
         stays right when the attention's weights are random does not come from them.</p></div><div \
         class=\"card\"><table><thead><tr><th>weights at \
         random</th><th>N</th><th>M</th><th>F</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
