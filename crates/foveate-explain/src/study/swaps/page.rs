//! What stands first in a report: its questions answered, and what they rest on.

use super::effects::Regret;
use super::report::{Order, SwapReport};
use super::verdict::{Answer, VerdictLine};
use crate::estimate::Estimate;
use crate::figure::Figure;
use crate::page::{Mood, PageTable, Section, Tile};
use crate::study::words::{capital, count};

/// The test that a report makes besides swaps, in words.
pub(in crate::study) struct OwnTest {
    /// What is done.
    pub(in crate::study) done: &'static str,
    /// What it says where the claim is supported.
    pub(in crate::study) claim: &'static str,
    /// What it asks, beside the order of swapped values.
    pub(in crate::study) asks: &'static str,
}

/// Where the verdict of a report's own test seems to contradict one of the answers: what the difference is.
pub(in crate::study) fn differences(
    test: &OwnTest,
    verdict: &str,
    report: Option<&SwapReport>,
) -> Vec<String> {
    let Some(report) = report else { return vec![] };
    let OwnTest { done, claim, asks } = test;
    let [moves, carries, right, order] =
        ["moves", "path", "right", "order"].map(|question| report.answer(question));
    let mut told = vec![];
    if verdict == "supported" {
        if moves == Answer::No {
            told.push(format!(
                "Two findings differ: {claim}, as {done} showed, but from moment to moment its action hardly differs. So it \
                 would react to changes that its world did not bring about."
            ));
        }
        if carries == Answer::No {
            told.push(format!(
                "Two findings hold together: {claim}; and its memory moves its action more still than what it attends to."
            ));
        }
        if right == Answer::No {
            told.push(format!(
                "Two tests differ: {claim}, as {done} showed; but parts that it does not name move its action more, when parts \
                 come from other moments of its world. The first asks {asks}."
            ));
        }
        if order == Answer::No {
            told.push(format!(
                "Two findings hold together: {claim}; but the order within what it attends to is wrong. The first asks {asks}; \
                 the second swaps values behind the attention and keeps its weights."
            ));
        }
    }
    if verdict == "not supported" && right == Answer::Yes {
        told.push(format!(
            "Two tests differ: the parts that it names move its action more than others, when parts come from other moments; \
             {done} did not show that {claim}. That test asks {asks}, and its null is the same claim at another moment; swaps show \
             nothing that the world does not."
        ));
    }
    if verdict == "not supported" && carries == Answer::Yes {
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
        title: "What matters, by which path, and whether the claim is right".into(),
        lead: lead(report, bordered),
        tables: methods(report).into_iter().chain(randomised(report)).collect(),
        figures,
        ..Section::default()
    }
}

/// The answers on a terminal, each with its reason below.
pub(in crate::study) fn verdict_lines(report: &SwapReport) -> Vec<String> {
    let line = |line: &VerdictLine| {
        [format!("{:10} {}", line.answer, line.words()), format!("           {}", line.why)]
    };
    report.verdict.iter().flat_map(line).collect()
}

pub(in crate::study) fn tiles(report: &SwapReport) -> impl Iterator<Item = Tile> {
    let seen = report.units.is_none();
    report.verdict.iter().map(move |line| {
        let name = match line.question {
            "moves" => "what it sees moves its action",
            "path" if seen => "more by what it sees than by its memory",
            "path" => "more by what it attends to than by its memory",
            "right" => "what it names matters more than what it does not name",
            "moment" => "it says more than its claims at other moments",
            "order" => "in the order of its attention",
            _ => "more than untrained agents of its kind",
        };
        let name = line.claim.as_ref().map_or_else(|| name.to_owned(), |claim| format!("{claim}: {name}"));
        Tile {
            value: line.answer.to_string(),
            name,
            note: line.number.as_ref().map_or_else(|| line.why.clone(), Estimate::percent),
            mood: match line.answer {
                Answer::Yes => Mood::Good,
                Answer::No => Mood::Bad,
                Answer::Undecided => Mood::Plain,
            },
        }
    })
}

/// What may be concluded, a sentence for each question, with its number.
pub(in crate::study) fn sentences(report: &SwapReport) -> Vec<String> {
    report.verdict.iter().map(|line| sentence(report, line)).collect()
}

fn sentence(report: &SwapReport, line: &VerdictLine) -> String {
    let what = if report.units.is_some() { "what it attends to" } else { "what it sees" };
    let names = match (
        &line.claim,
        report.units.is_some(),
        report.orders.iter().any(|order| order.claim.is_none()),
    ) {
        (Some(claim), ..) => format!("what {claim} names"),
        (None, false, true) if !report.attends => "what its saliency names".into(),
        _ => "what it looks at".into(),
    };
    let said = match (line.question, line.answer) {
        ("moves", Answer::Yes) => "What it sees moves its action".to_owned(),
        ("moves", Answer::No) => {
            "What it sees hardly moves its action, so there is nothing to explain".into()
        }
        ("moves", _) => "Whether what it sees moves its action is open".into(),
        ("path", Answer::Yes) => format!("It acts more on {what} than on its memory"),
        ("path", Answer::No) => format!("It acts more on its memory than on {what}"),
        ("path", _) => format!("Whether it acts more on {what} or on its memory is open"),
        ("right", Answer::Yes) => format!("{} is what it acts on", capital(&names)),
        ("right", Answer::No) => {
            format!("{} is not what it acts on: other parts move its action more", capital(&names))
        }
        ("right", _) => format!("Whether {names} is what it acts on is open"),
        ("moment", Answer::Yes) => format!("At each moment, {names} is what matters then"),
        ("moment", Answer::No) => {
            format!("{} says no more about the moment than at other moments", capital(&names))
        }
        ("moment", _) => format!("Whether {names} is about the moment is open"),
        ("order", Answer::Yes) => "What it attends to most matters most".into(),
        ("order", Answer::No) => {
            "The order of its attention misleads: parts that it attends to less move its action more".into()
        }
        ("order", _) => "Whether what it attends to most matters most is open".into(),
        (_, Answer::Yes) => "It says more than untrained agents of its kind".into(),
        (_, Answer::No) => "It says less than untrained agents of its kind".into(),
        _ => "Whether it says more than untrained agents of its kind is open".into(),
    };
    let number = match (&line.number, line.question) {
        (Some(number), "moves") => format!("by {} of its range", number.percent()),
        (Some(number), "path") if line.answer == Answer::No => {
            format!("{} of the natural variation more", number.negated().percent())
        }
        (Some(number), "path") => format!("{} of the natural variation more", number.percent()),
        (Some(number), "untrained") => number.percent(),
        (Some(_), "moment") if line.p.is_none() => line.why.clone(),
        (Some(number), _) => format!("by {} of its natural variation", number.percent()),
        (None, _) => line.why.clone(),
    };
    format!("{said}: {number}.")
}

fn lead(report: &SwapReport, bordered: bool) -> Vec<String> {
    let mut lead = vec![
        "Decisions are taken again with one part of them from another moment, of another episode: what the attention hands on, \
         the memory, or single attended parts. How far the action then changes is the effect of that part, in a unit that can be \
         compared between agents: the change when everything comes from the other moment."
            .into(),
    ];
    lead.extend(report.verdict.iter().map(|line| {
        format!("{} {}: {}.", capital(&line.words()), capital(&line.answer.to_string()), line.why)
    }));
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

/// The claims that somebody else than the agent makes, with what is measured of them here and by XRL-Bench.
pub(in crate::study) fn methods(report: &SwapReport) -> Option<PageTable> {
    if report.xrl_bench.is_empty() {
        return None;
    }
    let rows = report.xrl_bench.iter().map(|bench| {
        let name = &bench.claim;
        let order = report.orders.iter().find(|order| order.claim.as_ref() == Some(name));
        let said = |of: fn(&Order) -> &Estimate| order.map_or("—".into(), |order| of(order).plain());
        [
            name.clone(),
            report.answer_about("right", name).to_string(),
            said(|order| &order.above_others),
            said(|order| &order.above_other_moments),
            bench.aim.plain(),
            bench.aum.plain(),
            bench.pgi.plain(),
            bench.pgu.plain(),
            format!("{:.3}", bench.ris),
        ]
    });
    let first = &report.xrl_bench[0];
    let lead = format!(
        "The claims beside each other. Above others and above other moments are measured here, in parts of the natural variation. The \
         others are XRL-Bench's, as defined there, at {} with the {} most important places: AIM and AUM, the share of decisions that \
         stay the same when important or all other places are zero; PGI and PGU, how far what is predicted moves when noise (σ = 0.05) \
         is added to either; RIS, the largest relative change of the claim beside that of what is seen. Arrows: what speaks for a claim. \
         How often each of them tells true claims from false ones stands in docs/explain.md, Calibration.",
        count(first.decisions, "decision"),
        first.important
    );
    Some(PageTable {
        lead: Some(lead),
        ..PageTable::new(
            [
                "claim",
                "right",
                "above others ↑",
                "above other moments ↑",
                "AIM ↓",
                "AUM ↑",
                "PGI ↑",
                "PGU ↓",
                "RIS ↓",
            ],
            rows,
        )
    })
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
            said(&of.above_others, "—"),
        ]
    });
    let lead = "The same agent with parts of its weights drawn at random, in few and short episodes. An order that stays right when \
                the attention's weights are random does not come from them.";
    Some(PageTable {
        lead: Some(lead.into()),
        ..PageTable::new(
            ["weights at random", "natural variation", "attended path", "named above others"],
            rows,
        )
    })
}
