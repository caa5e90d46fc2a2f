//! What stands first in a report: three lines, and what they rest on.

use super::effects::Regret;
use super::report::{FEWEST_UNTRAINED, Order, SwapReport, Untrained, VerdictLine, natural_percent};
use crate::estimate::Estimate;
use crate::figure::Figure;
use crate::page::{Mood, PageTable, Section, Tile};
use crate::study::words::count;

/// Names of the three lines on tiles.
const LINES: [&str; 3] = [
    "its action depends on the moment",
    "more by what it attends to than by its memory",
    "in the order of its attention",
];

/// The test that a report makes besides swaps, in words.
pub(in crate::study) struct OwnTest {
    /// What is done.
    pub(in crate::study) done: &'static str,
    /// What it says where the claim is supported.
    pub(in crate::study) claim: &'static str,
    /// What it asks, beside the order of swapped values.
    pub(in crate::study) asks: &'static str,
}

/// Where the verdict of a report's own test seems to contradict one of the three lines: what the difference is.
pub(in crate::study) fn differences(
    test: &OwnTest,
    verdict: &str,
    report: Option<&SwapReport>,
) -> Vec<String> {
    let Some(report) = report else { return vec![] };
    let OwnTest { done, claim, asks } = test;
    let [moves, carries, right] = report.verdict.each_ref().map(|line| line.answer);
    let mut told = vec![];
    if verdict == "supported" {
        if moves == "no" {
            told.push(format!(
                "Two findings differ: {claim}, as {done} showed, but from moment to moment its action hardly differs. So it \
                 would react to changes that its world did not bring about."
            ));
        }
        if carries == "no" {
            told.push(format!(
                "Two findings hold together: {claim}; and its memory moves its action more still than what it attends to."
            ));
        }
        if right == "no" {
            told.push(format!(
                "Two findings hold together: {claim}; but the order within what it attends to is wrong. The first asks {asks}; \
                 the second swaps values behind the attention and keeps its weights."
            ));
        }
    }
    if verdict == "not supported" && right == "yes" {
        told.push(format!(
            "Two tests differ: values swapped in the order of the attention move its action first; {done} did not show that \
             {claim}. That test asks {asks}; swaps show nothing that the world does not, and keep the attention's weights."
        ));
    }
    if verdict == "not supported" && carries == "yes" {
        told.push(format!(
            "Two findings hold together: what it attends to moves its action more than its memory does; {done} did not show \
             that {claim}. The first is about all that it attends to, the second asks {asks}."
        ));
    }
    told
}

/// The part of the page that stands first.
pub(in crate::study) fn section(report: &SwapReport, bordered: bool, figures: Vec<Figure>) -> Section {
    Section {
        id: "matters".into(),
        title: "What matters, by which path, in which order".into(),
        lead: lead(report, bordered),
        tables: randomised(report).into_iter().collect(),
        figures,
        ..Section::default()
    }
}

/// The three lines on a terminal, each with its reason below.
pub(in crate::study) fn verdict_lines(report: &SwapReport) -> Vec<String> {
    let line = |line: &VerdictLine| {
        [format!("{:10} {}", line.answer, line.question), format!("           {}", line.why)]
    };
    report.verdict.iter().flat_map(line).collect()
}

pub(in crate::study) fn tiles(report: &SwapReport) -> impl Iterator<Item = Tile> {
    let shares = |of: &Option<Estimate>| of.as_ref().map_or("—".into(), Estimate::plain);
    let order = report.orders.first().and_then(|order| order.f.as_ref());
    let notes = [
        format!("between moments it differs by {} of its range", natural_percent(report)),
        format!("{} of that; its memory {}", shares(&report.attended), shares(&report.memory)),
        order.map_or("F is not defined".into(), |f| format!("F = {}; 0 is chance", f.plain())),
    ];
    let seen = report.units.is_none();
    report.verdict.iter().zip(LINES).zip(notes).map(move |((line, name), note)| Tile {
        value: line.answer.into(),
        name: if seen { name.replace("what it attends to", "what it sees") } else { name.into() },
        note,
        mood: match line.answer {
            "yes" => Mood::Good,
            "no" => Mood::Bad,
            _ => Mood::Plain,
        },
    })
}

/// What may be concluded, a sentence for each line.
pub(in crate::study) fn sentences(report: &SwapReport) -> [String; 3] {
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
             {natural} of its range ({n}). So there is nothing to explain."
        ),
        _ => format!(
            "Whether its action depends on what it sees and remembers is open: between moments of different episodes it differs \
             by {natural} of its range ({n})."
        ),
    };
    let second = match (&report.attended, &report.memory) {
        (Some(attended), Some(memory)) if moves.answer == "yes" => {
            let (what, path) = match report.units {
                Some(_) => ("what it attends to", "what its attention hands on"),
                None => ("what it sees", "what it sees"),
            };
            let shares = format!(
                "{path} makes {} of that difference by itself, its memory {}",
                attended.plain(),
                memory.plain()
            );
            match carries.answer {
                "yes" => format!("It acts more on {what} than on its memory: {shares}."),
                "no" => format!("It acts more on its memory than on {what}: {shares}."),
                _ => {
                    format!("Whether it acts more on {what} or on its memory is open: {shares}.")
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
                    "What it attends to most matters more than chance would have it, but {}: {numbers}.",
                    missing(order, report.untrained.as_ref())
                ),
                _ => format!("Whether what it attends to most matters most is open: {numbers}."),
            }
        }
        _ => format!("In which order is not said: {}.", right.why),
    };
    [first, second, third]
}

/// What an order above chance lacks to be called right.
fn missing(order: &Order, untrained: Option<&Untrained>) -> String {
    let usual = !order.above_prior.as_ref().is_some_and(|prior| prior.is_above(0.0));
    let limit = untrained.and_then(Untrained::decides);
    let alike = limit.is_some_and(|limit| order.f.as_ref().is_none_or(|f| f.value <= limit));
    let mut from = vec![];
    from.extend(usual.then_some("where it usually attends"));
    from.extend(alike.then_some("untrained agents of its kind"));
    if from.is_empty() {
        return format!(
            "too few untrained agents were measured to set it apart; {FEWEST_UNTRAINED} are the least"
        );
    }
    format!("that does not set it apart from {}", from.join(" and from "))
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
pub(in crate::study) fn randomised(report: &SwapReport) -> Option<PageTable> {
    if report.randomised.is_empty() {
        return None;
    }
    let said = |of: &Option<Estimate>, none: &str| of.as_ref().map_or(none.into(), Estimate::plain);
    let rows = report.randomised.iter().map(|of| {
        let behind = if of.cascade { " and all behind it" } else { "" };
        [
            format!("{}{behind}", of.tensors),
            of.natural.percent(),
            said(&of.attended, "—"),
            said(&of.f, "not defined"),
        ]
    });
    let lead = "The same agent with parts of its weights drawn at random, in few and short episodes. An order that stays right when \
                the attention's weights are random does not come from them.";
    Some(PageTable { lead: Some(lead.into()), ..PageTable::new(["weights at random", "N", "M", "F"], rows) })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
