//! Claims that somebody else than the agent makes of what matters.

use foveate_core::{Agent, ObservationBuf};

use super::moment::{Moment, in_all_one};
use super::places::Places;
use crate::study::StudyError;
use crate::study::fields::{self, Fields};
use crate::study::probes::spread;

/// A claim of what matters at a moment that somebody else than the agent makes: a caller's function. It is asked for the
/// moments that are tested, once as they were and once with noise.
pub trait ClaimOfMoments: Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// `[moments]`: the claim at each of these observations about `agent`, or one of its kind with other weights.
    ///
    /// # Errors
    /// When it cannot be asked, or answers with something else than as many maps.
    fn at(&self, agent: &dyn Agent, seen: &[&ObservationBuf]) -> Result<Vec<ClaimMap>, StudyError>;
}

/// How much each part of an observation is said to matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClaimMap {
    /// Rows of a map over a picture or of a grid; 1 of numbers.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// `[rows, columns]`: the weights. Those below 0 count by their size.
    pub weights: Vec<f64>,
}

/// Lays the claims of soft attention over cells on the places that the contents of these cells come from, as measured in some of the
/// decisions.
///
/// # Errors
/// When the agent refuses what it is shown.
pub(super) fn register(moments: &mut [Vec<Moment>]) -> Result<(), StudyError> {
    let all: Vec<&Moment> = moments
        .iter()
        .flatten()
        .filter(|moment| moment.opened.as_ref().is_some_and(|opened| !opened.hard))
        .filter(|moment| matches!(moment.places, Some(Places::Pixels { .. })))
        .collect();
    // Of few decisions, as untrained agents have, in fewer.
    let chosen = spread(all.len(), (all.len() / 15).clamp(1, fields::MOMENTS));
    let Some(fields) = Fields::of_moments(chosen.into_iter().map(|i| all[i].for_fields()).collect())? else {
        return Ok(());
    };
    for moment in moments.iter_mut().flatten() {
        for places in &mut moment.place_claims {
            if let Some(claim) = fields.over_places(&moment.claim, places.len()) {
                *places = claim;
            }
        }
    }
    Ok(())
}

/// Asks for the claims at the moments that `asked` chooses by episode and decision, and puts them in place of the agent's own;
/// returns the names of the claims that are judged. Without others, the agent's own is.
///
/// # Errors
/// When a claim fails, or does not fit what is observed.
pub(super) fn claims_of(
    claims: &[&dyn ClaimOfMoments],
    agent: &dyn Agent,
    moments: &mut [Vec<Moment>],
    asked: &dyn Fn(usize, usize) -> bool,
) -> Result<Vec<Option<String>>, StudyError> {
    if claims.is_empty() {
        let any = moments.iter().flatten().any(|moment| !moment.place_claims.is_empty());
        return Ok(if any { vec![None] } else { vec![] });
    }
    // The agent's own claims are not judged, at no moment.
    for moment in moments.iter_mut().flatten() {
        moment.place_claims.clear();
    }
    let mut all: Vec<&mut Moment> = moments
        .iter_mut()
        .enumerate()
        .flat_map(|(e, all)| all.iter_mut().enumerate().map(move |(i, moment)| (e, i, moment)))
        .filter(|(e, i, _)| asked(*e, *i))
        .map(|(_, _, moment)| moment)
        .collect();
    for claim in claims {
        let seen: Vec<&ObservationBuf> = all.iter().map(|moment| &moment.seen).collect();
        let at: Vec<&Moment> = all.iter().map(|moment| &**moment).collect();
        let maps = maps(*claim, agent, &seen, &at)?;
        for (moment, map) in all.iter_mut().zip(maps) {
            moment.place_claims.push(map);
        }
    }
    Ok(claims.iter().map(|claim| Some(claim.name().to_owned())).collect())
}

/// `[moments][places]`: the claim at moments at which this is seen, 1 in all of each.
///
/// # Errors
/// When the claim fails, or does not fit what is observed.
pub(super) fn maps(
    claim: &dyn ClaimOfMoments,
    agent: &dyn Agent,
    seen: &[&ObservationBuf],
    moments: &[&Moment],
) -> Result<Vec<Vec<f64>>, StudyError> {
    let name = claim.name();
    let refused = |why: String| StudyError::Refused { why: format!("the claim {name:?} {why}") };
    let maps = claim.at(agent, seen)?;
    if maps.len() != seen.len() {
        return Err(refused(format!("answered {} moments of {}", maps.len(), seen.len())));
    }
    let pooled = |(moment, map): (&&Moment, ClaimMap)| {
        let ClaimMap { rows, columns, weights } = map;
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite()) {
            let (row, column) = (at / columns.max(1), at % columns.max(1));
            return Err(refused(format!(
                "is not finite at step {}: {} in row {row}, column {column}",
                moment.step, weights[at]
            )));
        }
        let sizes: Vec<f64> = weights.iter().map(|weight| weight.abs()).collect();
        let pooled = moment.places.as_ref().and_then(|places| places.of_map([rows, columns], &sizes));
        pooled.map(in_all_one).ok_or_else(|| {
            refused(format!(
                "has {} weights in {rows} rows and {columns} columns, which do not fit {}: a picture takes a map of no more rows and \
                 columns than it has pixels, numbers one weight each, a grid one for every cell",
                weights.len(),
                moment.places.as_ref().map_or_else(|| "what is observed".into(), Places::words),
            ))
        })
    };
    moments.iter().zip(maps).map(pooled).collect()
}
