//! What a decision becomes when parts of it come from other moments.

use foveate_core::{ObservationBuf, Opened, PolicyError, Rng, Seed};
use serde::Serialize;

use super::INPUTS;
use super::moment::{Distance, Moment};
use crate::study::StudyRequest;

/// The change of the picture by other parts counts as matched within this part of that by the claimed ones.
const MATCHED: f64 = 0.1;
/// Parts with less than this share of the largest claim are not named by it.
const NAMED: f64 = 0.01;

/// How much is measured of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::study) struct Effort {
    /// Moments of other episodes that parts are taken from.
    pub(in crate::study) donors: usize,
    /// The same where whole decisions are taken again for every place.
    pub(in crate::study) place_donors: usize,
    /// Draws of other parts that are compared with the claimed ones, for every donor and number of parts.
    pub(in crate::study) draws: usize,
    /// True if the effects of single parts are measured, and with them the best order.
    pub(in crate::study) singles: bool,
    /// Different numbers of parts that are swapped, at most.
    pub(in crate::study) levels: usize,
}

impl Effort {
    /// What the method wants.
    pub(in crate::study) const WHOLE: Effort =
        Effort { donors: 16, place_donors: 8, draws: 2, singles: true, levels: usize::MAX };

    /// What a study may ask, and decisions of an episode in which places are swapped: as much as the method wants where that is not
    /// limited; else fewer donors, then fewer numbers of parts, then fewer decisions.
    pub(in crate::study) fn of(request: &StudyRequest<'_>) -> (Effort, usize) {
        let wanted = INPUTS.min(request.decisions);
        let Some(questions) = request.questions else { return (Effort::WHOLE, wanted) };
        let paths = if request.remembers { 2 * FEW_DONORS * request.episodes * request.decisions } else { 0 };
        let left = questions.saturating_sub(paths);
        let claims = request.claims.len().max(1);
        // What XRL-Bench measures of claims that somebody else makes.
        let bench = |inputs: usize| 4 * request.claims.len() * inputs * request.episodes;
        let whole = claims * wanted * request.episodes * WHOLE_DECISION;
        if left >= whole + bench(wanted) + 2 * Effort::WHOLE.donors * request.episodes * request.decisions {
            return (Effort::WHOLE, wanted);
        }
        let few = |place_donors, levels| Effort {
            donors: if request.remembers { FEW_DONORS } else { Effort::WHOLE.donors },
            place_donors,
            draws: 1,
            singles: false,
            levels,
        };
        // Claimed parts, others, and those of other episodes.
        let asked = |inputs: usize, donors: usize, levels: usize| {
            3 * claims * inputs * request.episodes * donors * levels
        };
        for inputs in (1..=wanted).rev() {
            for (donors, levels) in [(8, 8), (4, 8), (3, 8), (2, 8), (2, 6), (2, 4), (1, 8), (1, 6), (1, 4)] {
                if asked(inputs, donors, levels) + bench(inputs) <= left {
                    return (few(donors, levels), inputs);
                }
            }
        }
        (few(1, 1), wanted.min(1))
    }
}

/// Donors for the paths of an agent with a memory that may not be asked much.
const FEW_DONORS: usize = 2;
/// Questions of a decision for the whole method, about: single effects of 144 places with eight donors, the search for the best
/// order, and curves.
const WHOLE_DECISION: usize = 2_200;

/// Changes of the action, one decision, one donor.
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
    /// … as many other parts, which change as much of what is observed …
    pub(in crate::study) null: Vec<f64>,
    /// … in the order of the claim at a moment of the donor's episode …
    pub(in crate::study) elsewhere: Vec<f64>,
    /// … and in the best order found with other donors; empty where it was not looked for.
    pub(in crate::study) best: Vec<f64>,
    /// The same for every donor, the mean over budgets.
    pub(in crate::study) donors: Vec<OfDonor>,
    /// Of each part, the token, the claim and its effect alone; empty where that was not measured.
    pub(in crate::study) single: Vec<(u32, f64, f64)>,
    /// Reliability of the single effects: the correlation of those with either half of the donors, for all of them
    /// (Spearman and Brown); `None` where no part alone has an effect.
    pub(in crate::study) reliability: Option<f64>,
    /// Share of draws of other parts whose change of the observation is that of the claimed ones within a tenth.
    pub(in crate::study) matched: Option<f64>,
}

/// Mean changes of the action with the parts of one donor.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(in crate::study) struct OfDonor {
    /// Its number among the donors of the decision.
    pub(in crate::study) donor: usize,
    pub(in crate::study) claim: f64,
    pub(in crate::study) null: f64,
    pub(in crate::study) best: f64,
    /// How much further than with the claim at a moment of the donor's episode, over the numbers of parts that both name; `None`
    /// without such a claim.
    pub(in crate::study) above_elsewhere: Option<f64>,
}

/// How many of `parts` parts are swapped: twice as many each time, up to all that are named, and never so many that there would not
/// be as many others. With fewer levels, they lie further apart.
pub(in crate::study) fn budgets(parts: usize, named: usize, levels: usize) -> Vec<usize> {
    let most = named.min(parts / 2);
    if most == 0 {
        return vec![];
    }
    let mut all: Vec<usize> = if most <= 5 {
        (1..=most).collect()
    } else {
        std::iter::successors(Some(1), |&b| Some(b * 2)).take_while(|&b| b < most).chain([most]).collect()
    };
    if all.len() > levels.max(1) {
        let (last, levels) = (all.len() - 1, levels.max(1));
        all = (0..levels).map(|i| all[if levels == 1 { last } else { i * last / (levels - 1) }]).collect();
    }
    all
}

/// How many parts a claim names.
pub(in crate::study) fn named(claim: &[f64]) -> usize {
    let most = claim.iter().copied().fold(0.0, f64::max);
    claim.iter().filter(|&&claim| claim > 0.0 && claim >= NAMED * most).count()
}

/// Returns whether a claim says no order: all its parts are alike.
pub(in crate::study) fn is_flat(claim: &[f64]) -> bool {
    let [low, high] =
        claim.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &x| [low.min(x), high.max(x)]);
    claim.len() < 2 || high - low <= 1e-9 * high.abs()
}

/// Indices from the largest value to the smallest; equal ones in random order.
pub(in crate::study) fn descending(values: &[f64], rng: &mut Rng) -> Vec<u32> {
    let mut keyed: Vec<(f64, u64, u32)> =
        values.iter().enumerate().map(|(i, &value)| (value, rng.next_u64(), i as u32)).collect();
    keyed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    keyed.into_iter().map(|(.., i)| i).collect()
}

/// The paths by which a decision depends on the moment, donor by donor. Without `remembers` the action depends on the observation
/// alone, so that nothing needs to be asked.
pub(in crate::study) fn paths(
    moment: &Moment,
    donors: &[&Moment],
    distance: &Distance,
    remembers: bool,
) -> Result<Vec<Paths>, PolicyError> {
    let change = |action: &[f64]| distance.between(action, &moment.action);
    let scored = distance.regret(&moment.action, &moment.action).is_some();
    let regret = |action: &[f64]| distance.regret(action, &moment.action).unwrap_or(0.0);
    let own = moment.opened.as_ref();
    let again = moment.begin();
    let mut all = vec![];
    for donor in donors {
        let other = donor.opened.as_ref();
        let (attended, memory) = match (own, other) {
            _ if !remembers => (donor.action.clone(), moment.action.clone()),
            (Some(own), Some(other)) => (again.resume(other)?, donor.begin().resume(own)?),
            _ => (moment.act_on(donor.seen.as_observation())?, donor.act_on(moment.seen.as_observation())?),
        };
        let mut paths = Paths {
            natural: change(&donor.action),
            attended: change(&attended),
            memory: change(&memory),
            regret: scored.then(|| Regret {
                natural: regret(&donor.action),
                attended: regret(&attended),
                memory: regret(&memory),
            }),
            ..Paths::default()
        };
        if let (Some(own), Some(other)) = (own, other)
            && !own.hard
        {
            let with = |weights: &Opened, values: &Opened| Opened {
                weights: weights.weights.clone(),
                ..values.clone()
            };
            paths.selection = Some(change(&again.resume(&with(other, own))?));
            paths.values = Some(change(&again.resume(&with(own, other))?));
        }
        all.push(paths);
    }
    Ok(all)
}

/// What a decision's parts are, and in which order they are claimed to matter.
#[derive(Clone, Copy)]
pub(in crate::study) struct Claimed<'a> {
    /// `[parts]`
    pub(in crate::study) claim: &'a [f64],
    /// `[donors][parts]`: the claim at a moment of each donor's episode; empty where there is none.
    pub(in crate::study) elsewhere: &'a [Vec<f64>],
    /// How many are swapped.
    pub(in crate::study) budgets: &'a [usize],
    /// Draws ties and other parts.
    pub(in crate::study) seed: Seed,
}

/// Draws as many parts as the claimed ones, none of which they are, for a donor; whether they match.
type DrawOthers<'a> = dyn FnMut(usize, &[u32], &mut Vec<u32>) -> bool + 'a;

/// Measures curves: `swapped` gives the change of the action when these parts come from donor `d`.
struct Swapper<F> {
    parts: usize,
    donors: usize,
    swapped: F,
}

/// Effects of single parts with either half of the donors.
struct Singles {
    /// `[2][parts]`
    halves: [Vec<f64>; 2],
    reliability: Option<f64>,
}

impl Singles {
    fn mean(&self, part: usize) -> f64 {
        f64::midpoint(self.halves[0][part], self.halves[1][part])
    }
}

/// Single effects are measured with more donors until they are as reliable as this; less reliable ones do not say what the best order is.
pub(super) const RELIABLE: f64 = 0.8;
/// Parts that are tried at each step of the greedy order.
const TRIED: usize = 8;
/// Donors with whom they are tried.
const TRIED_WITH: usize = 2;

impl<F: FnMut(usize, &[u32]) -> Result<f64, PolicyError>> Swapper<F> {
    /// The donors of a half: every second one.
    fn half(&self, half: usize) -> impl Iterator<Item = usize> + use<F> {
        (half..self.donors).step_by(2)
    }

    /// Effects of single parts, with four donors and then with two more at a time, up to all.
    fn singles(&mut self) -> Result<Singles, PolicyError> {
        let mut sums = [vec![0.0; self.parts], vec![0.0; self.parts]];
        let mut counts = [0.0; 2];
        let mut used = 0;
        loop {
            let more = self.donors.min(if used == 0 { 4 } else { used + 2 });
            for d in used..more {
                counts[d % 2] += 1.0;
                for (part, sum) in sums[d % 2].iter_mut().enumerate() {
                    *sum += (self.swapped)(d, &[part as u32])?;
                }
            }
            used = more;
            let halves = [0, 1]
                .map(|h| sums[h].iter().map(|sum| sum / f64::max(counts[h], 1.0)).collect::<Vec<f64>>());
            let reliability = correlation(&halves[0], &halves[1]).map(|r| (2.0 * r / (1.0 + r)).max(0.0));
            if used >= self.donors || reliability.is_some_and(|r| r >= RELIABLE) {
                return Ok(Singles { halves, reliability });
            }
        }
    }

    /// The mean change over the donors of a half.
    fn of_half(&mut self, half: usize, parts: &[u32]) -> Result<f64, PolicyError> {
        let (mut sum, mut count) = (0.0, 0.0_f64);
        for d in self.half(half) {
            sum += (self.swapped)(d, parts)?;
            count += 1.0;
        }
        Ok(sum / count.max(1.0))
    }

    /// The parts that change the action most, for every budget, as far as the donors of a half show it: the first in the order of
    /// single effects, those that a greedy search adds, or the claimed ones.
    fn best(
        &mut self,
        half: usize,
        singles: &[f64],
        claim: &[u32],
        budgets: &[usize],
        rng: &mut Rng,
    ) -> Result<Vec<Vec<u32>>, PolicyError> {
        let order = descending(singles, rng);
        let mut greedy: Vec<u32> = vec![];
        let mut all = vec![];
        for &budget in budgets {
            let mut left: Vec<u32> = order.iter().copied().filter(|part| !greedy.contains(part)).collect();
            let missing = budget - greedy.len();
            let tried = left.len().min(TRIED.max(missing)).min(2 * TRIED);
            if missing < tried {
                let mut gains = vec![0.0; tried];
                for (gain, &part) in gains.iter_mut().zip(&left) {
                    greedy.push(part);
                    for d in self.half(half).take(TRIED_WITH) {
                        *gain += (self.swapped)(d, &greedy)?;
                    }
                    greedy.pop();
                }
                let by_gain = descending(&gains, rng);
                let first: Vec<u32> = by_gain.iter().map(|&i| left[i as usize]).collect();
                left[..tried].copy_from_slice(&first);
            }
            greedy.extend_from_slice(&left[..missing]);
            let mut best: (f64, &[u32]) = (f64::NEG_INFINITY, &[]);
            for parts in [&order[..budget], &greedy[..], &claim[..budget]] {
                let effect = self.of_half(half, parts)?;
                if effect > best.0 {
                    best = (effect, parts);
                }
            }
            all.push(best.1.to_vec());
        }
        Ok(all)
    }

    /// The claim beside other parts, the claims of other episodes, and the best order.
    fn curves(
        mut self,
        of: &Claimed<'_>,
        effort: Effort,
        others: &mut DrawOthers<'_>,
    ) -> Result<(Curves, Option<Singles>), PolicyError> {
        let mut rng = of.seed.child("ties", 0).rng();
        // No more than are named at this moment; one always is.
        let own = named(of.claim);
        let budgets: Vec<usize> =
            of.budgets.iter().copied().take_while(|&budget| budget <= own.max(1)).collect();
        let claim = descending(of.claim, &mut rng);
        let singles = if effort.singles { Some(self.singles()?) } else { None };
        let mut best = [vec![], vec![]];
        if let Some(singles) = &singles {
            for (half, best) in best.iter_mut().enumerate() {
                *best = self.best(half, &singles.halves[half], &claim, &budgets, &mut rng)?;
            }
        }
        let (levels, each) = (budgets.len(), 1.0 / self.donors as f64);
        let zeros = || vec![0.0; levels];
        let mut curves = Curves { claim: zeros(), null: zeros(), elsewhere: zeros(), ..Curves::default() };
        curves.best = if singles.is_some() { zeros() } else { vec![] };
        let (mut parts, mut matched, mut drawn) = (vec![], 0.0, 0.0);
        for d in 0..self.donors {
            let mut donor = OfDonor { donor: d, ..OfDonor::default() };
            let other = of.elsewhere.get(d).filter(|claim| claim.len() == self.parts && !is_flat(claim));
            let (order, theirs) =
                other.map_or((vec![], 0), |other| (descending(other, &mut rng), named(other)));
            let common = budgets.iter().filter(|&&budget| budget <= theirs).count();
            for (level, &budget) in budgets.iter().enumerate() {
                let share = 1.0 / levels as f64;
                let add = |curve: &mut Vec<f64>, of: &mut f64, change: f64| {
                    curve[level] += each * change;
                    *of += share * change;
                };
                let claimed = (self.swapped)(d, &claim[..budget])?;
                add(&mut curves.claim, &mut donor.claim, claimed);
                let elsewhere = match order.get(..budget) {
                    None => claimed,
                    Some(other) if other.iter().all(|part| claim[..budget].contains(part)) => claimed,
                    Some(other) => (self.swapped)(d, other)?,
                };
                curves.elsewhere[level] += each * elsewhere;
                if level < common {
                    *donor.above_elsewhere.get_or_insert(0.0) += (claimed - elsewhere) / common as f64;
                }
                if singles.is_some() {
                    // Scored with the donors of a half, in the order that the other half gave.
                    let change = (self.swapped)(d, &best[1 - d % 2][level])?;
                    add(&mut curves.best, &mut donor.best, change);
                }
                let mut other = 0.0;
                for _ in 0..effort.draws {
                    drawn += 1.0;
                    matched += f64::from(u8::from(others(d, &claim[..budget], &mut parts)));
                    other += (self.swapped)(d, &parts)? / effort.draws as f64;
                }
                add(&mut curves.null, &mut donor.null, other);
            }
            curves.donors.push(donor);
        }
        curves.budgets = budgets;
        curves.reliability = singles.as_ref().and_then(|singles| singles.reliability);
        curves.matched = (drawn > 0.0).then_some(matched / drawn);
        Ok((curves, singles))
    }
}

/// Pearson's correlation; `None` where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let [mean_a, mean_b] = [a, b].map(foveate_core::statistics::mean);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

/// Values of attended units are swapped, those with the largest claims: as many as `claimed` has parts.
pub(in crate::study) fn of_values(
    moment: &Moment,
    donors: &[&Moment],
    elsewhere: &[Vec<f64>],
    units: usize,
    (distance, effort, seed): (&Distance, Effort, Seed),
) -> Result<Option<Curves>, PolicyError> {
    let Some(own) = &moment.opened else { return Ok(None) };
    let fitting: Vec<(usize, &Opened)> = donors
        .iter()
        .enumerate()
        .filter_map(|(i, donor)| Some((i, donor.opened.as_ref()?)))
        .filter(|(_, other)| other.values.len() == own.values.len() && other.units == own.units)
        .take(effort.donors)
        .collect();
    let weights: Vec<f64> = own.claim().into_iter().map(f64::from).collect();
    let budgets = budgets(units.min(own.units), units, effort.levels);
    if fitting.len() < 2 || budgets.is_empty() || is_flat(&weights) {
        return Ok(None);
    }
    let mut attended = descending(&weights, &mut seed.child("attended", 0).rng());
    attended.truncate(units);
    let token = |&unit: &u32| own.tokens.get(unit as usize).copied().unwrap_or(unit);
    let claim: Vec<f64> = attended.iter().map(|&unit| weights[unit as usize]).collect();
    let elsewhere: Vec<Vec<f64>> = fitting
        .iter()
        .map(|(i, _)| {
            attended
                .iter()
                .map(|unit| elsewhere[*i].get(token(unit) as usize).copied().unwrap_or(0.0))
                .collect()
        })
        .collect();
    let n = attended.len();
    let (again, width) = (moment.begin(), own.width());
    let mut changed = own.clone();
    let swapped = |d: usize, parts: &[u32]| {
        changed.values.copy_from_slice(&own.values);
        for &part in parts {
            let unit = attended[part as usize] as usize;
            changed.values[unit * width..][..width].copy_from_slice(fitting[d].1.value(unit));
        }
        Ok(distance.between(&again.resume(&changed)?, &moment.action))
    };
    let swapper = Swapper { parts: n, donors: fitting.len(), swapped };
    let claimed =
        Claimed { claim: &claim, elsewhere: &elsewhere, budgets: &budgets, seed: seed.child("units", 0) };
    let mut rng = seed.child("other units", 0).rng();
    let (mut curves, singles) = swapper.curves(&claimed, effort, &mut |_, claimed, parts| {
        let mut rest: Vec<u32> = (0..n as u32).filter(|part| !claimed.contains(part)).collect();
        parts.clear();
        for i in 0..claimed.len() {
            let j = i + rng.below((rest.len() - i) as u64) as usize;
            rest.swap(i, j);
            parts.push(rest[i]);
        }
        true
    })?;
    // Units are alike in area, and nothing else of theirs is to be matched.
    curves.matched = None;
    for donor in &mut curves.donors {
        donor.donor = fitting[donor.donor].0;
    }
    if let Some(singles) = singles {
        curves.single =
            (0..n).map(|part| (token(&attended[part]), claim[part], singles.mean(part))).collect();
    }
    Ok(Some(curves))
}

/// Places of the observation are swapped, and everything is computed again. `units` says in which unit each place differs: 1 for
/// pixels and cells, of numbers how much each varies.
pub(in crate::study) fn of_inputs(
    moment: &Moment,
    donors: &[&Moment],
    claimed: &Claimed<'_>,
    units: &[f64],
    (distance, effort): (&Distance, Effort),
) -> Result<Option<Curves>, PolicyError> {
    let Some(places) = &moment.places else { return Ok(None) };
    let n = places.len();
    let space = moment.seen.as_observation().space();
    let fitting: Vec<(usize, &Moment)> = donors
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, donor)| donor.seen.as_observation().space() == space)
        .take(effort.place_donors)
        .collect();
    if fitting.len() < 2.min(effort.place_donors)
        || claimed.budgets.is_empty()
        || claimed.claim.len() != n
        || is_flat(claimed.claim)
    {
        return Ok(None);
    }
    let differences: Vec<Vec<f64>> = fitting
        .iter()
        .map(|(_, donor)| {
            let mut all = places.differences(&moment.seen, &donor.seen);
            all.iter_mut().zip(units).for_each(|(difference, unit)| *difference /= unit);
            all
        })
        .collect();
    let mut observation: ObservationBuf = moment.seen.clone();
    let swapped = |d: usize, parts: &[u32]| {
        observation.set(moment.seen.as_observation());
        places.transplant(parts, &fitting[d].1.seen, &mut observation);
        Ok(distance.between(&moment.act_on(observation.as_observation())?, &moment.action))
    };
    let swapper = Swapper { parts: n, donors: fitting.len(), swapped };
    let elsewhere: Vec<Vec<f64>> = fitting.iter().map(|(i, _)| claimed.elsewhere[*i].clone()).collect();
    let claimed = &Claimed { elsewhere: &elsewhere, ..*claimed };
    let mut rng = claimed.seed.child("other places", 0).rng();
    let mut is_claimed = vec![false; n];
    let (mut curves, singles) = swapper.curves(claimed, effort, &mut |d, claimed, parts| {
        is_claimed.fill(false);
        for &place in claimed {
            is_claimed[place as usize] = true;
        }
        let rest: Vec<u32> = (0..n as u32).filter(|&place| !is_claimed[place as usize]).collect();
        let target: f64 = claimed.iter().map(|&place| differences[d][place as usize]).sum();
        let others: Vec<f64> = rest.iter().map(|&place| differences[d][place as usize]).collect();
        let matches = matched_places(&others, claimed.len(), target, &mut rng, parts);
        for part in parts.iter_mut() {
            *part = rest[*part as usize];
        }
        matches
    })?;
    for donor in &mut curves.donors {
        donor.donor = fitting[donor.donor].0;
    }
    if let Some(singles) = singles {
        curves.single =
            (0..n).map(|place| (place as u32, claimed.claim[place], singles.mean(place))).collect();
    }
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
    fn budgets_leave_as_many_others() {
        assert_eq!(budgets(3, 3, 9), [1]);
        assert_eq!(budgets(10, 10, 9), [1, 2, 3, 4, 5]);
        assert_eq!(budgets(144, 144, 9), [1, 2, 4, 8, 16, 32, 64, 72]);
        assert_eq!(budgets(144, 6, 9), [1, 2, 4, 6], "no more than are named");
        assert!(budgets(1, 1, 9).is_empty() && budgets(0, 0, 9).is_empty());
        for levels in 1..9 {
            let few = budgets(144, 144, levels);
            assert!(few.len() <= levels && few.last() == Some(&72) && few.is_sorted(), "{few:?}");
        }
        assert_eq!(
            (named(&[0.0, 1.0, 0.5, 0.001]), is_flat(&[0.3; 4]), is_flat(&[0.3, 0.4])),
            (2, true, false)
        );
    }

    /// A map that says nothing is no map of the top of the picture.
    #[test]
    fn equal_claims_are_ordered_at_random() {
        let mut firsts = [0; 4];
        for seed in 0..400 {
            let order = descending(&[0.1, 0.5, 0.5, 0.5], &mut Seed::root(seed).rng());
            assert_eq!(order[3], 0);
            firsts[order[0] as usize] += 1;
        }
        assert!(firsts[1..].iter().all(|&n| (90..180).contains(&n)), "{firsts:?}");
    }

    /// An action that moves only when all six parts change has a best order that the claim cannot pass.
    #[test]
    fn the_best_order_of_parts_that_need_each_other_is_found_through_the_claim() {
        let claim: Vec<f64> = (0..36).map(|part| if part < 6 { 1.0 } else { 0.0 }).collect();
        let claimed = Claimed { claim: &claim, elsewhere: &[], budgets: &[1, 2, 4, 6], seed: Seed::root(1) };
        let swapped = |_: usize, parts: &[u32]| {
            Ok(f64::from(u8::from(parts.iter().filter(|&&part| part < 6).count() == 6)))
        };
        let swapper = Swapper { parts: 36, donors: 8, swapped };
        let effort = Effort::WHOLE;
        let others = &mut |_: usize, claimed: &[u32], parts: &mut Vec<u32>| {
            parts.clear();
            parts.extend(30..30 + claimed.len() as u32);
            true
        };
        let (curves, singles) = swapper.curves(&claimed, effort, others).expect("it acts");
        assert_eq!(curves.claim, [0.0, 0.0, 0.0, 1.0]);
        assert_eq!((&curves.best, &curves.null), (&curves.claim, &vec![0.0; 4]));
        assert_eq!(singles.expect("measured").reliability, None, "no part alone does anything");
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
