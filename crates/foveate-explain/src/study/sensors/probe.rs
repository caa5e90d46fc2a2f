//! Decisions repeated with sensors changed.

use foveate_core::{ActContext, Agent, EvaluateError, Observation, PolicyError, Rng, Seed};

use super::super::StudyError;
use super::super::play::{EpisodeStart, policy_error, replay};
use super::record::{Key, Record, numbers, places};
use super::{DEALS, DONORS, FREEZE};
use crate::saliency::rank_correlation;
use crate::shuffled;
use crate::trajectory::ActionScale;

/// What is done to a sensor, in the order of [`Effects::change`].
pub(in crate::study) const INTERVENTIONS: [&str; 3] = ["knocked out", "frozen", "replaced"];

/// What changing sensors did to one decision.
pub(in crate::study) struct Effects {
    /// `[rows]`: the sensors.
    keys: Vec<Key>,
    /// `[rows]`: absolute weights.
    weights: Vec<f64>,
    /// `[interventions][rows]`: change of the action, in 0.0..=1.0.
    pub(in crate::study) change: [Vec<f64>; 3],
    /// Change of the action with all sensors replaced.
    pub(in crate::study) natural: f64,
    /// `[interventions]`: rank correlation over sensors of weight and change: of the agent's weights, of the same weights
    /// dealt at random, of those of another moment.
    pub(in crate::study) ranks: [[f64; 3]; 3],
}

impl Effects {
    pub(in crate::study) fn row(&self, key: Key) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// The row's share of all weights.
    pub(in crate::study) fn share(&self, row: usize) -> f64 {
        let all: f64 = self.weights.iter().sum();
        if all > 0.0 { self.weights[row] / all } else { 0.0 }
    }
}

/// What decisions are compared with.
pub(in crate::study) struct Foils<'a> {
    pub(in crate::study) scale: &'a ActionScale,
    /// A moment of another episode: its record and step.
    pub(in crate::study) other: &'a (dyn Fn(&mut Rng, usize) -> (&'a Record, usize) + 'a),
    pub(in crate::study) seed: Seed,
}

/// Puts the decisions at `steps` to the test.
pub(in crate::study) fn probe(
    start: EpisodeStart,
    record: &Record,
    steps: &[usize],
    foils: &Foils<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Effects>, StudyError> {
    let job = start.job;
    let means = record.means();
    let mut all = Vec::with_capacity(steps.len());
    replay(start, steps, &mut |step, env, agent, context| {
        if stopped() {
            return Err(EvaluateError::Stopped.into());
        }
        let shown = numbers(env)?.to_vec();
        let places = places(env, shown.len())?;
        let decision = Decided { agent, context, places: &places, shown: &shown };
        let effects = decision.test(record, step, &means, foils);
        all.push(effects.map_err(|source| policy_error(job, step, source))?);
        Ok(())
    })?;
    Ok(all)
}

/// A decision about to be taken.
struct Decided<'a> {
    agent: &'a dyn Agent,
    context: &'a ActContext,
    places: &'a [(Key, usize)],
    /// The observation.
    shown: &'a [f32],
}

impl Decided<'_> {
    /// The action on other values of some rows.
    fn act(&self, changes: impl IntoIterator<Item = (usize, f32)>) -> Result<Vec<f64>, PolicyError> {
        let mut shown = self.shown.to_vec();
        for (row, value) in changes {
            shown[self.places[row].1] = value;
        }
        let decision = self
            .agent
            .boxed_clone()
            .act(Observation::Vector(&shown), &mut self.context.clone())?
            .action
            .to_vec();
        Ok(decision)
    }

    fn test(
        &self,
        record: &Record,
        step: usize,
        means: &[f32],
        foils: &Foils<'_>,
    ) -> Result<Effects, PolicyError> {
        let seed = foils.seed.child("decision", step as u64);
        let mut rng = seed.child("donors", 0).rng();
        let usual = self.act([])?;
        let apart = |action: Vec<f64>| foils.scale.distance(&action, &usual);
        let donors: Vec<(&Record, usize)> = (0..DONORS).map(|_| (foils.other)(&mut rng, step)).collect();
        // The value of a sensor at another moment; one that is not shown there keeps its own.
        let value = |&(donor, at): &(&Record, usize), row: usize| {
            donor.row(record.keys[row]).map_or(record.values[step][row], |row| donor.values[at][row])
        };
        let rows = record.keys.len();
        let mut change = [vec![0.0; rows], vec![0.0; rows], vec![0.0; rows]];
        let earlier = &record.values[step.saturating_sub(FREEZE)];
        for row in 0..rows {
            change[0][row] = apart(self.act([(row, means[row])])?);
            change[1][row] = apart(self.act([(row, earlier[row])])?);
            for donor in &donors {
                change[2][row] += apart(self.act([(row, value(donor, row))])?) / DONORS as f64;
            }
        }
        let mut natural = 0.0;
        for donor in &donors {
            natural += apart(self.act((0..rows).map(|row| (row, value(donor, row))))?) / DONORS as f64;
        }
        let wide = |weights: &[f32]| weights.iter().map(|&weight| f64::from(weight)).collect::<Vec<_>>();
        let weights = wide(&record.weights[step]);
        let (donor, at) = donors[0];
        let elsewhere: Vec<f64> = (0..rows)
            .map(|row| donor.row(record.keys[row]).map_or(0.0, |row| f64::from(donor.weights[at][row])))
            .collect();
        let mut deal = seed.child("deals", 0).rng();
        let dealt: Vec<Vec<f64>> = (0..DEALS)
            .map(|_| shuffled(rows, &mut deal).iter().map(|&row| weights[row as usize]).collect())
            .collect();
        let ranks = [0, 1, 2].map(|which| {
            let change = &change[which];
            let dealt =
                dealt.iter().map(|weights| rank_correlation(weights, change)).sum::<f64>() / DEALS as f64;
            [rank_correlation(&weights, change), dealt, rank_correlation(&elsewhere, change)]
        });
        Ok(Effects { keys: record.keys.clone(), weights, change, natural, ranks })
    }
}
