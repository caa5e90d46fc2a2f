//! Conclusions from the tests of a study.

use crate::Fill;
use crate::faithful::{Conclusion, Effect, FEWEST_EPISODES, Faithfulness};
use foveate_core::statistics;

use super::conditions::Condition;
use super::phases::Found;
use super::probes::{CLAIMS, INTERVENTIONS};
use super::{Claim, Cost, Drive, Intervention, Mean};

/// All conclusions of a study.
pub(super) struct Findings {
    pub(super) claims: Vec<Claim>,
    pub(super) interventions: Vec<Intervention>,
    pub(super) drives: Vec<Drive>,
    pub(super) decisions: Conclusion,
    pub(super) driving: Conclusion,
    /// Score lost by covering attended places in whole episodes, beyond what covering as many other pixels costs.
    pub(super) cost: Vec<Cost>,
    /// Decisions for which perturbation saliency was computed.
    pub(super) salient: usize,
    /// Saliency against attention: rank correlation and its null, overlap and its null.
    pub(super) agreement: [Mean; 4],
}

/// Computes the conclusions.
pub(super) fn conclude(found: &Found) -> Findings {
    let n = found.episodes.len();
    let sums = [found.claim_sums(0), found.claim_sums(1)];
    let faith = |fill: usize, claim: usize| Faithfulness::of(&sums[fill][claim]);
    let null = [faith(0, 1), faith(1, 1)];
    let mut claims: Vec<Claim> = CLAIMS
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let of = [faith(0, i), faith(1, i)];
            let verdict = Conclusion::of(&[(of[0], null[0]), (of[1], null[1])], n);
            let name = if i == 0 && !found.has_attention { "perturbation saliency" } else { name };
            Claim::new(name, of, null, if i == 1 { None } else { Some(verdict) })
        })
        .collect();
    let column = |fill: usize, which: usize| -> Vec<Effect> {
        found.random_claims.iter().map(|sums| sums[fill][which]).collect()
    };
    let own = [Faithfulness::of(&column(0, 0)), Faithfulness::of(&column(1, 0))];
    let foil = [Faithfulness::of(&column(0, 1)), Faithfulness::of(&column(1, 1))];
    let random_decisions = Conclusion::of(&[(own[0], foil[0]), (own[1], foil[1])], n);
    claims.push(Claim::new("random-weight agent, of itself", own, foil, Some(random_decisions)));

    let interventions = INTERVENTIONS
        .iter()
        .enumerate()
        .flat_map(|(i, name)| Fill::ALL.into_iter().enumerate().map(move |(f, fill)| (i, *name, f, fill)))
        .map(|(i, name, f, fill)| {
            let (change, interval) = found.over_episodes(|p| Some(p.outcomes[f][i].action));
            let (size, _) = found.over_episodes(|p| Some(p.outcomes[f][i].size));
            Intervention { name: name.to_owned(), fill: fill.to_string(), change, interval, size }
        })
        .collect();
    let drive = |(condition, scores): &(Condition, Vec<f64>)| Drive {
        name: condition.name().to_owned(),
        fill: condition.fill().map(|fill| fill.to_string()).unwrap_or_default(),
        mean: statistics::mean(scores),
        interval: statistics::mean_interval(scores),
        scores: scores.clone(),
    };
    let agreement = [0, 1, 2, 3].map(|which| {
        found.over_episodes(|p| {
            let salient = p.salient.as_ref()?;
            Some(match which {
                0 => salient.agreement.ranks,
                1 => salient.null.ranks,
                2 => salient.agreement.overlap,
                _ => salient.null.overlap,
            })
        })
    });
    let (driving, cost) = driving(&found.scores, n);
    Findings {
        decisions: claims[0].verdict.unwrap_or(Conclusion::Undecided),
        claims,
        interventions,
        drives: found.scores.iter().map(drive).collect(),
        driving,
        cost,
        salient: found.probed.iter().flatten().filter(|p| p.salient.is_some()).count(),
        agreement,
    }
}

/// Whether covering attended places costs more score than covering as many other pixels, with every fill, and how much
/// more.
fn driving(scores: &[(Condition, Vec<f64>)], episodes: usize) -> (Conclusion, Vec<Cost>) {
    let of = |wanted: Condition| scores.iter().find(|(c, _)| *c == wanted).map(|(_, scores)| scores);
    let cost = |fill: Fill| {
        let found =
            statistics::paired(of(Condition::CoverAttended(fill))?, of(Condition::CoverRandom(fill))?)?;
        Some(Cost { fill: fill.to_string(), difference: found.difference, interval: found.interval })
    };
    let costs: Vec<Cost> = Fill::ALL.into_iter().filter_map(cost).collect();
    if episodes < FEWEST_EPISODES || costs.len() < Fill::ALL.len() {
        return (Conclusion::Undecided, costs);
    }
    let all = costs.iter().all(|cost| cost.interval.is_some_and(|[low, _]| low > 0.0));
    (if all { Conclusion::Supported } else { Conclusion::NotSupported }, costs)
}
