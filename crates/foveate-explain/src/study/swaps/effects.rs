//! What a decision becomes when parts of it come from other moments.

use foveate_core::{ObservationBuf, Opened, PolicyError, Rng, Seed};
use serde::Serialize;

use super::moment::{Distance, Moment};

/// Moments of other episodes that parts are taken from.
pub(in crate::study) const DONORS: usize = 16;
/// The same where whole decisions are taken again for every place.
pub(in crate::study) const INPUT_DONORS: usize = 4;
/// Random orders that are compared with that of the claim.
const ORDERS: usize = 4;
/// The change of the picture by random places counts as matched within this part of that by the claimed ones.
const MATCHED: f64 = 0.1;

/// Mean changes of the action, one decision, over donors.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(in crate::study) struct Paths {
    /// Everything from the donor: how much the action varies.
    pub(in crate::study) natural: f64,
    /// Weights and values of the attention; of an agent that cannot be opened, the observation.
    pub(in crate::study) attended: f64,
    /// Weights alone, where attention is soft.
    pub(in crate::study) selection: Option<f64>,
    /// Values alone, where attention is soft.
    pub(in crate::study) values: Option<f64>,
    /// The memory alone.
    pub(in crate::study) memory: f64,
    /// Of decisions by the largest score: the regret in scores, by the paths of [`Regret`].
    pub(in crate::study) regret: Option<Regret<f64>>,
}

/// By how much what is chosen with a part of another moment scores below what was chosen, in the scores of the decision as it was:
/// of a Q-network the discounted return that it expects to lose.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Regret<T> {
    /// Everything from the other moment.
    pub natural: T,
    /// What the attended path hands on.
    pub attended: T,
    /// The memory.
    pub memory: T,
}

/// Parts are swapped in an order, more and more of them; entry `i` is for the budget `i`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::study) struct Curves {
    /// How many parts are swapped.
    pub(in crate::study) budgets: Vec<usize>,
    /// Mean changes of the action when they are swapped in the order of the claim …
    pub(in crate::study) claim: Vec<f64>,
    /// … in random order, which changes as much of what is observed …
    pub(in crate::study) null: Vec<f64>,
    /// … in the order of where the agent attends in other episodes …
    pub(in crate::study) prior: Vec<f64>,
    /// … in the order of the claim in the most similar moment of another episode …
    pub(in crate::study) similar: Vec<f64>,
    /// … and in the order of their effects one by one, measured with other donors.
    pub(in crate::study) best: Vec<f64>,
    /// Of each part, the token, the claim and its effect alone.
    pub(in crate::study) single: Vec<(u32, f64, f64)>,
    /// Share of random draws whose change of the observation is that of the claim within a tenth.
    pub(in crate::study) matched: Option<f64>,
}

/// What is compared with the claim of a moment: the claims of other episodes, and of the moment most like it; of tokens and of
/// places.
pub(in crate::study) struct Others<'a> {
    pub(in crate::study) prior: [&'a [f64]; 2],
    pub(in crate::study) similar: [&'a [f64]; 2],
}

/// Budgets up to `parts`: all of few, otherwise twice as many each time.
pub(in crate::study) fn budgets(parts: usize) -> Vec<usize> {
    if parts <= 16 {
        return (1..=parts).collect();
    }
    let mut all: Vec<usize> =
        std::iter::successors(Some(1), |&b| Some(b * 2)).take_while(|&b| b < parts).collect();
    all.push(parts);
    all
}

/// Indices from the largest value to the smallest; of equal ones the first comes first.
pub(in crate::study) fn descending(values: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|&a, &b| values[b as usize].total_cmp(&values[a as usize]));
    order
}

/// The paths by which a decision depends on the moment.
pub(in crate::study) fn paths(
    moment: &Moment,
    donors: &[&Moment],
    distance: &Distance,
) -> Result<Paths, PolicyError> {
    let mut sums = Paths::default();
    let each = 1.0 / donors.len().max(1) as f64;
    let change = |action: &[f64]| each * distance.between(action, &moment.action);
    let scored = distance.regret(&moment.action, &moment.action).is_some();
    let mut regrets = Regret::default();
    let regret = |action: &[f64]| each * distance.regret(action, &moment.action).unwrap_or(0.0);
    let opened = moment.opened.as_ref();
    if let Some(own) = opened
        && !own.hard
    {
        (sums.selection, sums.values) = (Some(0.0), Some(0.0));
    }
    let again = moment.begin();
    for donor in donors {
        let (attended, memory) = match (opened, donor.opened.as_ref()) {
            (Some(own), Some(other)) => (again.resume(other)?, donor.begin().resume(own)?),
            _ => (moment.act_on(donor.seen.as_observation())?, donor.act_on(moment.seen.as_observation())?),
        };
        for (action, sum, regret_sum) in [
            (&donor.action, &mut sums.natural, &mut regrets.natural),
            (&attended, &mut sums.attended, &mut regrets.attended),
            (&memory, &mut sums.memory, &mut regrets.memory),
        ] {
            *sum += change(action);
            *regret_sum += regret(action);
        }
        let (Some(own), Some(other)) = (opened, donor.opened.as_ref()) else { continue };
        if let (Some(selection), Some(values)) = (&mut sums.selection, &mut sums.values) {
            let with = |weights: &Opened, values: &Opened| Opened {
                weights: weights.weights.clone(),
                ..values.clone()
            };
            *selection += change(&again.resume(&with(other, own))?);
            *values += change(&again.resume(&with(own, other))?);
        }
    }
    sums.regret = scored.then_some(regrets);
    Ok(sums)
}

/// Measures curves: `swapped` gives the change of the action when these parts come from donor `d`.
struct Orders<'a, F> {
    parts: usize,
    donors: usize,
    swapped: F,
    claim: &'a [u32],
    prior: &'a [u32],
    similar: &'a [u32],
}

impl<F: FnMut(usize, &[u32]) -> Result<f64, PolicyError>> Orders<'_, F> {
    /// `random` draws parts for a donor and a budget, with whether they match.
    fn curves(
        mut self,
        random: &mut dyn FnMut(usize, usize, &mut Vec<u32>) -> bool,
    ) -> Result<(Curves, Vec<f64>), PolicyError> {
        let budgets = budgets(self.parts);
        let levels = budgets.len();
        let zeros = || vec![0.0; levels];
        let mut curves = Curves {
            claim: zeros(),
            null: zeros(),
            prior: zeros(),
            similar: zeros(),
            best: zeros(),
            ..Curves::default()
        };
        let half = (self.donors / 2).max(1);
        // Effects one by one, for either half of the donors.
        let mut single = [vec![0.0; self.parts], vec![0.0; self.parts]];
        for (h, effects) in single.iter_mut().enumerate() {
            for d in h * half..((h + 1) * half).min(self.donors) {
                for (part, effect) in effects.iter_mut().enumerate() {
                    *effect += (self.swapped)(d, &[part as u32])? / half as f64;
                }
            }
        }
        let best = [descending(&single[1]), descending(&single[0])];
        let (mut parts, mut matched, mut drawn) = (vec![], 0.0, 0.0);
        let each = 1.0 / self.donors as f64;
        for d in 0..self.donors {
            // Scored with the donors of a half in the order that the other half gave.
            let best = &best[usize::from(d >= half)];
            for (level, &budget) in budgets.iter().enumerate() {
                if budget == self.parts {
                    let all = (self.swapped)(d, self.claim)? * each;
                    let Curves { claim, null, prior, similar, best, .. } = &mut curves;
                    for curve in [claim, null, prior, similar, best] {
                        curve[level] += all;
                    }
                    continue;
                }
                curves.claim[level] += (self.swapped)(d, &self.claim[..budget])? * each;
                curves.prior[level] += (self.swapped)(d, &self.prior[..budget])? * each;
                curves.similar[level] += (self.swapped)(d, &self.similar[..budget])? * each;
                curves.best[level] += (self.swapped)(d, &best[..budget])? * each;
                for _ in 0..ORDERS {
                    drawn += 1.0;
                    matched += f64::from(u8::from(random(d, budget, &mut parts)));
                    curves.null[level] += (self.swapped)(d, &parts)? * each / ORDERS as f64;
                }
            }
        }
        curves.budgets = budgets;
        curves.matched = (drawn > 0.0).then_some(matched / drawn);
        let [a, b] = &single;
        Ok((curves, a.iter().zip(b).map(|(a, b)| f64::midpoint(*a, *b)).collect()))
    }
}

/// Values of attended units are swapped, `units` of them: those with the largest claims.
pub(in crate::study) fn of_values(
    moment: &Moment,
    donors: &[&Moment],
    others: &Others<'_>,
    units: usize,
    distance: &Distance,
    seed: Seed,
) -> Result<Option<Curves>, PolicyError> {
    let Some(own) = &moment.opened else { return Ok(None) };
    let donors: Vec<&Opened> = donors
        .iter()
        .filter_map(|donor| donor.opened.as_ref())
        .filter(|other| other.values.len() == own.values.len() && other.units == own.units)
        .collect();
    if donors.len() < 2 || own.units == 0 {
        return Ok(None);
    }
    let weights: Vec<f64> = own.claim().into_iter().map(f64::from).collect();
    let mut attended = descending(&weights);
    attended.truncate(units);
    let token = |&unit: &u32| own.tokens.get(unit as usize).copied().unwrap_or(unit);
    let at = |claim: &[f64]| -> Vec<f64> {
        attended.iter().map(|unit| claim.get(token(unit) as usize).copied().unwrap_or(0.0)).collect()
    };
    let n = attended.len();
    let (again, width) = (moment.begin(), own.width());
    let mut changed = own.clone();
    let swapped = |d: usize, parts: &[u32]| {
        changed.values.copy_from_slice(&own.values);
        for &part in parts {
            let unit = attended[part as usize] as usize;
            changed.values[unit * width..][..width].copy_from_slice(donors[d].value(unit));
        }
        Ok(distance.between(&again.resume(&changed)?, &moment.action))
    };
    let order: Vec<u32> = (0..n as u32).collect();
    let (prior, similar) = (descending(&at(others.prior[0])), descending(&at(others.similar[0])));
    let orders =
        Orders { parts: n, donors: donors.len(), swapped, claim: &order, prior: &prior, similar: &similar };
    let mut rng = seed.child("random units", 0).rng();
    let mut shuffled = order.clone();
    let (mut curves, single) = orders.curves(&mut |_, budget, parts| {
        for i in 0..budget {
            let j = i + rng.below((n - i) as u64) as usize;
            shuffled.swap(i, j);
        }
        parts.clear();
        parts.extend_from_slice(&shuffled[..budget]);
        true
    })?;
    // Units are alike in area, and nothing else of theirs is to be matched.
    curves.matched = None;
    curves.single = attended
        .iter()
        .zip(single)
        .map(|(unit, effect)| (token(unit), weights[*unit as usize], effect))
        .collect();
    Ok(Some(curves))
}

/// Places of the observation are swapped, and everything is computed again.
pub(in crate::study) fn of_inputs(
    moment: &Moment,
    donors: &[&Moment],
    others: &Others<'_>,
    distance: &Distance,
    seed: Seed,
) -> Result<Option<Curves>, PolicyError> {
    let Some(places) = &moment.places else { return Ok(None) };
    let donors = &donors[..donors.len().min(INPUT_DONORS)];
    let n = places.len();
    if donors.len() < 2 || moment.place_claim.len() != n {
        return Ok(None);
    }
    let differences: Vec<Vec<f64>> =
        donors.iter().map(|donor| places.differences(&moment.seen, &donor.seen)).collect();
    let mut observation: ObservationBuf = moment.seen.clone();
    let swapped = |d: usize, parts: &[u32]| {
        observation.set(moment.seen.as_observation());
        places.transplant(parts, &donors[d].seen, &mut observation);
        Ok(distance.between(&moment.act_on(observation.as_observation())?, &moment.action))
    };
    let claim = descending(&moment.place_claim);
    let (prior, similar) = (descending(others.prior[1]), descending(others.similar[1]));
    let orders =
        Orders { parts: n, donors: donors.len(), swapped, claim: &claim, prior: &prior, similar: &similar };
    let mut rng = seed.child("random places", 0).rng();
    let (mut curves, single) = orders.curves(&mut |d, budget, parts| {
        let claimed: f64 = claim[..budget].iter().map(|&place| differences[d][place as usize]).sum();
        matched_places(&differences[d], budget, claimed, &mut rng, parts)
    })?;
    curves.single = (0..n).map(|place| (place as u32, moment.place_claim[place], single[place])).collect();
    Ok(Some(curves))
}

/// Draws `count` places whose differences add up to about `target`; whether they do within a tenth.
///
/// Importance sampling: a place is drawn with a probability that rises or falls exponentially with its difference, by as much as
/// it takes for the sum. With the same random numbers (Gumbel's, largest first, is a draw without replacement) the sum rises with
/// that, so it is found by bisection.
fn matched_places(
    differences: &[f64],
    count: usize,
    target: f64,
    rng: &mut Rng,
    places: &mut Vec<u32>,
) -> bool {
    let most = differences.iter().copied().fold(1e-12, f64::max);
    let noise: Vec<f64> = differences
        .iter()
        .map(|_| -(-(1.0 - rng.uniform(0.0, 1.0)).max(1e-300).ln()).max(1e-300).ln())
        .collect();
    let mut order: Vec<u32> = (0..differences.len() as u32).collect();
    let mut keys = vec![0.0; differences.len()];
    let mut draw = |tilt: f64| -> f64 {
        for ((key, noise), difference) in keys.iter_mut().zip(&noise).zip(differences) {
            *key = noise + tilt * difference / most;
        }
        if count < order.len() {
            order.select_nth_unstable_by(count, |&a, &b| {
                keys[b as usize].total_cmp(&keys[a as usize]).then(a.cmp(&b))
            });
        }
        places.clear();
        places.extend_from_slice(&order[..count]);
        places.iter().map(|&place| differences[place as usize]).sum()
    };
    let near = |sum: f64| (sum - target).abs() <= MATCHED * target.max(1e-12);
    let [mut low, mut high] = [-60.0, 60.0];
    let mut tilt = 0.0;
    for _ in 0..16 {
        let sum = draw(tilt);
        if near(sum) {
            return true;
        }
        if sum < target {
            low = tilt;
        } else {
            high = tilt;
        }
        tilt = f64::midpoint(low, high);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_go_up_to_all() {
        assert_eq!(budgets(3), [1, 2, 3]);
        assert_eq!(budgets(100), [1, 2, 4, 8, 16, 32, 64, 100]);
        assert_eq!(budgets(0), [0; 0]);
        assert_eq!(descending(&[0.1, 3.0, 0.1]), [1, 0, 2]);
    }

    #[test]
    fn random_places_change_as_much_as_the_claimed_ones() {
        let mut rng = Seed::root(2).rng();
        let differences: Vec<f64> = (0..200).map(|i| if i % 4 == 0 { 100.0 } else { 1.0 }).collect();
        let mut places = vec![];
        let mut seen = [0; 200];
        for _ in 0..300 {
            // Ten places of the larger kind, where chance would give 2.5.
            assert!(matched_places(&differences, 10, 1000.0, &mut rng, &mut places));
            assert_eq!(places.len(), 10);
            let sum: f64 = places.iter().map(|&place| differences[place as usize]).sum();
            assert!((900.0..=1100.0).contains(&sum), "{sum}");
            for &place in &places {
                seen[place as usize] += 1;
            }
        }
        // Each of the 50 is drawn about 58 times.
        let counts = seen.iter().step_by(4);
        assert!(counts.clone().all(|&n| (25..=95).contains(&n)), "{:?}", counts.collect::<Vec<_>>());
        assert!(!matched_places(&differences, 10, 5000.0, &mut rng, &mut places), "there is no such change");
    }
}
