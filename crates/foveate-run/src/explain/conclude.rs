//! What the tests come to.

use foveate_core::statistics;
use foveate_explain::Fill;
use foveate_explain::faithful::{Effect, FEWEST_EPISODES, Faithfulness, Verdict};

use super::drives::Condition;
use super::phases::Found;
use super::study::{CLAIMS, INTERVENTIONS};
use super::{Claim, Drive, Intervention};

/// Everything said of the tests.
pub(super) struct Findings {
    pub(super) claims: Vec<Claim>,
    pub(super) interventions: Vec<Intervention>,
    pub(super) drives: Vec<Drive>,
    pub(super) decisions: Verdict,
    pub(super) driving: Verdict,
    pub(super) random_driving: Verdict,
    /// Saliency and gaze: rank correlation and its null, overlap and its null.
    pub(super) agreement: [(f64, [f64; 2]); 4],
}

/// Draws the conclusions.
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
            let verdict = Verdict::of(&[(of[0], null[0]), (of[1], null[1])], n);
            let name = if i == 0 && !found.has_gaze { "perturbation saliency" } else { name };
            Claim::new(name, of, null, if i == 1 { None } else { Some(verdict) })
        })
        .collect();
    let column = |fill: usize, which: usize| -> Vec<Effect> {
        found.random_claims.iter().map(|sums| sums[fill][which]).collect()
    };
    let own = [Faithfulness::of(&column(0, 0)), Faithfulness::of(&column(1, 0))];
    let random_driving = driving(&found.random_scores, n);
    let foil = [Faithfulness::of(&column(0, 1)), Faithfulness::of(&column(1, 1))];
    let random_decisions = Verdict::of(&[(own[0], foil[0]), (own[1], foil[1])], n);
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
    let drive = |(random, (condition, scores)): (bool, &(Condition, Vec<f64>))| Drive {
        name: condition.name().to_owned(),
        fill: condition.fill().map(|fill| fill.to_string()).unwrap_or_default(),
        random_weights: random,
        mean: statistics::mean(scores),
        interval: statistics::mean_interval(scores),
        scores: scores.clone(),
    };
    let drives = found.scores.iter().map(|s| (false, s)).chain(found.random_scores.iter().map(|s| (true, s)));
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
    Findings {
        decisions: claims[0].verdict.unwrap_or(Verdict::Undecided),
        claims,
        interventions,
        drives: drives.map(drive).collect(),
        driving: driving(&found.scores, n),
        random_driving,
        agreement,
    }
}

/// Whether covering what is looked at costs more score than covering as much of anything else, for every fill.
fn driving(scores: &[(Condition, Vec<f64>)], episodes: usize) -> Verdict {
    let of = |wanted: Condition| scores.iter().find(|(c, _)| *c == wanted).map(|(_, scores)| scores);
    if episodes < FEWEST_EPISODES || scores.len() < 3 {
        return Verdict::Undecided;
    }
    let holds = |fill: &Fill| {
        let (gaze, random) = (of(Condition::CoverGaze(*fill))?, of(Condition::CoverRandom(*fill))?);
        Some(statistics::paired(gaze, random)?.interval[0] > 0.0)
    };
    let all = Fill::ALL.iter().all(|fill| holds(fill).unwrap_or(false));
    if all { Verdict::Supported } else { Verdict::NotSupported }
}
