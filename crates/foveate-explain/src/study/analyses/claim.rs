//! Whether the claim says an order, and whether it changes with the moment: equal weights order nothing, and a claim that never
//! changes cannot say what matters now. What is undefined is undecided.

use foveate_core::statistics::mean;
use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::swaps::Swapped;
use super::super::swaps::effects::Curves;
use super::super::swaps::measure::Measured;
use super::super::swaps::report::PICKS;
use super::super::words::{count, dot};
use crate::charts::{DotPlot, dots, percent};
use crate::figure::Ink;
use crate::page::{PageTable, Section};

/// Most parts that are compared with those of other moments; of few parts it is half of them.
const FIRST: usize = 10;

/// What the claim says of its parts, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claimed {
    /// The claims of the moments; `null` without one.
    pub claim: Option<OfMoments>,
}

/// Claims of different moments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfMoments {
    /// Decisions whose claims are compared.
    pub decisions: usize,
    /// Parts claimed to matter most that are compared with those of other moments.
    pub first: usize,
    /// Share of the order that is claimed: 1 if no two parts have the same weight, 0 if all have.
    pub ordered: f64,
    /// Share of the first parts that are also first at another moment of the same episode, the mean over pairs of moments.
    pub in_episode: Option<f64>,
    /// The same at a moment of another episode.
    pub elsewhere: Option<f64>,
    /// Whether the order is another one at another moment: `yes`, `no`, or `undecided` where none is claimed or there is one moment.
    pub changes: &'static str,
}

/// Whether the claim says an order, and whether it changes with the moment.
#[derive(Debug)]
pub(in crate::study) struct ClaimOfMoment;

impl Analysis for ClaimOfMoment {
    fn name(&self) -> &'static str {
        "claim"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let measured = bench.get::<Swapped>().map(|swaps| &swaps.measured.episodes[..]);
        let Some(claim) = measured.and_then(of_moments) else {
            return Ok(Some(Finding::new(Claimed { claim: None })));
        };
        let told = |of: Option<f64>| of.map_or("—".into(), percent);
        let parts = count(claim.first, "part");
        let sentence = match claim.changes {
            "undecided" if claim.decisions < 2 => "One decision cannot be compared with another.".into(),
            "undecided" => "It claims all parts alike, so there is no order to be right or wrong.".into(),
            "no" => format!(
                "It claims the same order at every moment, the {parts} at its head included, so whether it is right at a moment \
                 cannot be told from whether it is right in general."
            ),
            _ => format!(
                "Its claim changes with the moment: of the {parts} that it puts first, {} are also first at another moment of the \
                 episode, and {} at one of another episode.",
                told(claim.in_episode),
                told(claim.elsewhere)
            ),
        };
        let rows = [
            ("claims that differ from part to part", Ink::Attention, Some(claim.ordered)),
            ("first also at another moment of the episode", Ink::Control, claim.in_episode),
            ("first also in another episode", Ink::Muted, claim.elsewhere),
        ];
        let section = Section {
            id: "claim".into(),
            title: "Does its claim change with the moment?".into(),
            lead: vec![format!(
                "Only an order can be right or wrong, and only one that changes can be right about its moment. Over {}.",
                count(claim.decisions, "decision")
            )],
            tables: vec![PageTable::new(
                ["share", "mean"],
                rows.map(|(name, _, of)| [name.into(), told(of)]),
            )],
            figures: vec![dots(DotPlot {
                name: "claim-and-moment",
                title: "What the claim says of its moment",
                caption: format!(
                    "How many parts have a weight of their own, and how many of the {parts} claimed to matter most are the same at \
                     another moment. Means over decisions, and over pairs of them."
                ),
                wide: false,
                axis: "share",
                domain: Some([0.0, 1.05]),
                band: None,
                label: percent,
                rows: rows
                    .iter()
                    .filter_map(|&(name, ink, of)| Some(dot(name, "", ink, (of?, None))))
                    .collect(),
            })],
            ..Section::default()
        };
        let line = format!("{:10} does its claim change with the moment?", claim.changes);
        let lines = vec![line, format!("           {sentence}")];
        Ok(Some(Finding { lines, section: Some(section), ..Finding::new(Claimed { claim: Some(claim) }) }))
    }
}

/// The claims of the first kind of parts that has any.
fn of_moments(episodes: &[Vec<Measured>]) -> Option<OfMoments> {
    let pick =
        PICKS.into_iter().find(|pick| episodes.iter().flatten().any(|moment| pick(moment).is_some()))?;
    let claims: Vec<Vec<&Curves>> =
        episodes.iter().map(|all| all.iter().filter_map(pick).collect()).collect();
    let first: Vec<Vec<Vec<u32>>> =
        claims.iter().map(|all| all.iter().map(|of| leading(of)).collect()).collect();
    let ordered: Vec<f64> = claims.iter().flatten().map(|of| distinct(of)).collect();
    let (ordered, decisions) = (mean(&ordered), ordered.len());
    // Of all pairs of moments of episodes that `fit`.
    let shared = |fit: &dyn Fn(usize, usize) -> bool| {
        let all: Vec<(usize, &Vec<u32>)> =
            first.iter().enumerate().flat_map(|(e, all)| all.iter().map(move |own| (e, own))).collect();
        let mut shares = vec![];
        for (i, (e, own)) in all.iter().enumerate() {
            for (_, other) in all[i + 1..].iter().filter(|(f, _)| fit(*e, *f)) {
                shares.push(
                    own.iter().filter(|part| other.contains(part)).count() as f64 / own.len().max(1) as f64,
                );
            }
        }
        (!shares.is_empty()).then(|| mean(&shares))
    };
    let (in_episode, elsewhere) = (shared(&|e, f| e == f), shared(&|e, f| e != f));
    let orders: Vec<Vec<u32>> = claims.iter().flatten().map(|of| order(of)).collect();
    let changes = match orders.windows(2).any(|pair| pair[0] != pair[1]) {
        _ if ordered <= 0.0 || decisions < 2 => "undecided",
        true => "yes",
        false => "no",
    };
    let most = first.iter().flatten().map(Vec::len).max()?;
    Some(OfMoments { decisions, first: most, ordered, in_episode, elsewhere, changes })
}

/// The tokens, from the one that is claimed to matter most.
fn order(of: &Curves) -> Vec<u32> {
    let mut parts: Vec<(u32, f64)> = of.single.iter().map(|&(token, claim, _)| (token, claim)).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts.into_iter().map(|(token, _)| token).collect()
}

/// The first of them.
fn leading(of: &Curves) -> Vec<u32> {
    let mut order = order(of);
    order.truncate((order.len() / 2).clamp(1, FIRST));
    order
}

/// 1 if all claims differ, 0 if they are all the same.
fn distinct(of: &Curves) -> f64 {
    let mut claims: Vec<f64> = of.single.iter().map(|&(_, claim, _)| claim).collect();
    claims.sort_by(f64::total_cmp);
    claims.dedup();
    claims.len().saturating_sub(1) as f64 / of.single.len().saturating_sub(1).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::super::swaps::effects::Paths;
    use super::*;

    /// Three episodes of two moments with these claims over 20 places.
    fn found(claim: &dyn Fn(usize, u32) -> f64) -> OfMoments {
        let moment = |number: usize| Measured {
            step: number,
            paths: Paths::default(),
            values: None,
            inputs: Some(Curves {
                single: (0..20).map(|place| (place, claim(number, place), 0.0)).collect(),
                ..Curves::default()
            }),
        };
        let episodes = [0, 1, 2].map(|e| vec![moment(2 * e), moment(2 * e + 1)]);
        of_moments(&episodes).expect("claims")
    }

    #[test]
    fn equal_weights_order_nothing_and_a_constant_claim_does_not_change() {
        let uniform = found(&|_, _| 0.5);
        assert_eq!((uniform.changes, uniform.ordered), ("undecided", 0.0));
        let constant = found(&|_, place| f64::from(place));
        assert_eq!((constant.changes, constant.ordered, constant.elsewhere), ("no", 1.0, Some(1.0)));
        // Ten places of twenty, five further in every moment.
        let changing = found(&|number, place| f64::from((place + 5 * number as u32) % 20));
        assert_eq!((changing.changes, changing.decisions, changing.first), ("yes", 6, 10));
        assert_eq!(changing.in_episode, Some(0.5));
    }
}
