//! The measures of XRL-Bench, of claims that somebody else than the agent makes.

use foveate_core::{Agent, EnvSpec, ObservationBuf, PolicyError, Seed};
use serde::Serialize;

use super::claims::{ClaimOfMoments, maps};
use super::moment::Moment;
use crate::estimate::Estimate;
use crate::measures::{blank, gap, important, noisy, order, same, stability};
use crate::study::StudyError;

/// What XRL-Bench measures of a claim over all places, see [`crate::measures`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct XrlBench {
    /// The claim.
    pub claim: String,
    /// Decisions that it was measured at.
    pub decisions: usize,
    /// Places that count as important.
    pub important: usize,
    /// Share of decisions that stay the same when the important places are zero; lower speaks for the claim.
    pub aim: Estimate,
    /// The same of the others; higher speaks for it.
    pub aum: Estimate,
    /// Change of what is predicted when the important places are noisy; higher speaks for it.
    pub pgi: Estimate,
    /// The same of the others; lower speaks for it.
    pub pgu: Estimate,
    /// The largest relative change of the claim beside that of the observation; lower is more stable.
    pub ris: f64,
}

/// Observations with noise, at the moments that claims are made at.
pub(super) struct Shaken {
    /// `[episodes][decisions]`; nothing where no claim is made.
    seen: Vec<Vec<Option<ObservationBuf>>>,
    /// `[claims]`: the relative input stability of each.
    ris: Vec<f64>,
}

impl Shaken {
    /// Asks for every claim again, with noise.
    ///
    /// # Errors
    /// When a claim fails.
    pub(super) fn of(
        claims: &[&dyn ClaimOfMoments],
        agent: &dyn Agent,
        moments: &[Vec<Moment>],
        seed: Seed,
    ) -> Result<Shaken, StudyError> {
        let all: Vec<&Moment> =
            moments.iter().flatten().filter(|moment| !moment.place_claims.is_empty()).collect();
        let seen: Vec<&ObservationBuf> = all.iter().map(|moment| &moment.seen).collect();
        let mut rng = seed.child("noise", 0).rng();
        let shaken: Vec<ObservationBuf> = (0..seen.len()).map(|i| noisy(&seen, i, &mut rng)).collect();
        let noise: Vec<&ObservationBuf> = shaken.iter().collect();
        let mut ris = vec![];
        for (number, claim) in claims.iter().enumerate() {
            let again = maps(*claim, agent, &noise, &all)?;
            let each = all.iter().zip(&again).zip(&shaken).map(|((moment, again), shaken)| {
                stability([&moment.place_claims[number], again], [&moment.seen, shaken])
            });
            ris.push(each.fold(0.0, f64::max));
        }
        let mut shaken = shaken.into_iter();
        let each = |all: &Vec<Moment>| {
            let of = |moment: &Moment| (!moment.place_claims.is_empty()).then(|| shaken.next()).flatten();
            all.iter().map(of).collect()
        };
        Ok(Shaken { seen: moments.iter().map(each).collect(), ris })
    }

    /// `[claims]`: AIM, AUM, PGI and PGU of the claims at this decision of this episode.
    ///
    /// # Errors
    /// When the agent fails.
    pub(super) fn measure(
        &self,
        (episode, decision): (usize, usize),
        moment: &Moment,
        spec: &EnvSpec,
    ) -> Result<Vec<[f64; 4]>, PolicyError> {
        let (Some(noise), Some(places)) = (&self.seen[episode][decision], &moment.places) else {
            return Ok(vec![]);
        };
        let zero = blank(&moment.seen);
        let with = |parts: &[usize], other: &ObservationBuf| {
            let mut mixed = moment.seen.clone();
            let parts: Vec<u32> = parts.iter().map(|&part| part as u32).collect();
            places.transplant(&parts, other, &mut mixed);
            moment.act_on(mixed.as_observation())
        };
        let of = |claim: &Vec<f64>| {
            let order = order(claim);
            let (first, rest) = order.split_at(important(order.len()));
            let accuracy = |parts: &[usize]| {
                with(parts, &zero).map(|action| f64::from(u8::from(same(spec, &moment.action, &action))))
            };
            let moved = |parts: &[usize]| with(parts, noise).map(|action| gap(spec, &moment.action, &action));
            Ok([accuracy(first)?, accuracy(rest)?, moved(first)?, moved(rest)?])
        };
        moment.place_claims.iter().map(of).collect()
    }

    /// The measures of each claim by its name, of what was measured in `episodes`, `[episodes][decisions][claims]`, over so many
    /// places.
    pub(super) fn summary<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        episodes: &[Vec<&Vec<[f64; 4]>>],
        places: usize,
    ) -> Vec<XrlBench> {
        let of = |(number, (name, &ris)): (usize, (&str, &f64))| {
            // The mean of every episode, in which at least one decision was measured.
            let mean = |measure: usize| {
                let each = episodes.iter().filter_map(|all| {
                    let numbers: Vec<f64> =
                        all.iter().filter_map(|of| Some(of.get(number)?[measure])).collect();
                    (!numbers.is_empty()).then(|| foveate_core::statistics::mean(&numbers))
                });
                Estimate::mean(&each.collect::<Vec<f64>>())
            };
            XrlBench {
                claim: name.to_owned(),
                decisions: episodes.iter().flatten().filter(|of| of.get(number).is_some()).count(),
                important: important(places),
                aim: mean(0),
                aum: mean(1),
                pgi: mean(2),
                pgu: mean(3),
                ris,
            }
        };
        names.zip(&self.ris).enumerate().map(of).collect()
    }
}
