//! Episodes are played, decisions sampled from them evenly, and each is taken again with parts from other episodes.

use foveate_core::{Agent, Env, EpisodeResult, ObservationBuf, Opened, RolloutJob, Seed};

use super::claims::{ClaimOfMoments, claims_of, register};
use super::effects::{Claimed, Curves, Effort, Paths, budgets, is_flat, named, of_inputs, of_values, paths};
use super::meter::{EffectMeter, MOST_UNITS};
use super::moment::{Distance, Moment};
use super::places::Places;
use super::xrl_bench::{Shaken, XrlBench};
use crate::page::FilmEffects;
use crate::study::cost::Meter;
use crate::study::play::{EpisodeStart, Starts, policy_error, replay};
use crate::study::probes::{other_moment, spread};
use crate::study::{Scheduler, StudyError};

/// What is measured, and how much of it.
pub(in crate::study) struct Plan<'a> {
    pub(in crate::study) env: &'a dyn Env,
    pub(in crate::study) agent: &'a dyn Agent,
    pub(in crate::study) seed: u64,
    pub(in crate::study) episodes: usize,
    /// Decisions of an episode.
    pub(in crate::study) decisions: usize,
    /// Of those, how many are taken again with places of the observation swapped.
    pub(in crate::study) inputs: usize,
    pub(in crate::study) max_steps: Option<usize>,
    /// True if the effects of what is attended in the first episode are wanted for its film.
    pub(in crate::study) film: bool,
    /// How much is measured of a decision.
    pub(in crate::study) effort: Effort,
    /// False if the action is known to depend on the observation alone.
    pub(in crate::study) remembers: bool,
    /// Claims that are judged in place of the agent's own; of none, its own is.
    pub(in crate::study) claims: &'a [&'a dyn ClaimOfMoments],
    /// True if these are measured as other tools do, too.
    pub(in crate::study) bench: bool,
}

/// A decision, and what it became.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::study) struct Measured {
    pub(in crate::study) step: usize,
    /// The episode of each donor.
    pub(in crate::study) donors: Vec<usize>,
    /// The same donors.
    pub(in crate::study) paths: Vec<Paths>,
    /// What is attended, its values swapped.
    pub(in crate::study) values: Option<Curves>,
    /// Of every claim, places of the observation swapped; empty where that was not measured.
    pub(in crate::study) inputs: Vec<Option<Curves>>,
    /// Of every claim that somebody else makes, AIM, AUM, PGI and PGU of XRL-Bench; empty where they were not measured.
    pub(super) bench: Vec<[f64; 4]>,
}

impl Measured {
    /// The mean over donors of a change.
    pub(in crate::study) fn mean(&self, of: impl Fn(&Paths) -> f64) -> f64 {
        self.paths.iter().map(of).sum::<f64>() / self.paths.len().max(1) as f64
    }
}

/// A claim, over all moments that it was made at.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::study) struct ClaimSeen {
    /// Its name, where somebody else than the agent makes it.
    pub(in crate::study) name: Option<String>,
    /// Moments that it was made at.
    pub(in crate::study) moments: usize,
    /// Those at which all parts are alike.
    pub(in crate::study) flat: usize,
    /// Whether it is the same at all of them, which are more than one.
    pub(in crate::study) constant: bool,
    /// Parts that it names, in the median.
    pub(in crate::study) named: usize,
}

impl ClaimSeen {
    fn of<'c>(name: Option<String>, claims: impl Iterator<Item = &'c Vec<f64>>) -> ClaimSeen {
        let all: Vec<&Vec<f64>> = claims.filter(|claim| !claim.is_empty()).collect();
        let same = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()))
        };
        let counts: Vec<f64> =
            all.iter().filter(|claim| !is_flat(claim)).map(|claim| named(claim) as f64).collect();
        ClaimSeen {
            name,
            moments: all.len(),
            flat: all.iter().filter(|claim| is_flat(claim)).count(),
            constant: all.len() > 1 && all.iter().all(|claim| same(claim, all[0])),
            named: if counts.is_empty() { 0 } else { foveate_core::statistics::median(&counts) as usize },
        }
    }
}

/// Episodes that were played, and the decisions sampled from them.
pub(in crate::study) struct Sampled {
    /// `[episodes]`
    pub(in crate::study) scores: Vec<f64>,
    /// `[episodes][decisions]`
    pub(in crate::study) moments: Vec<Vec<Moment>>,
}

/// All decisions of an agent.
pub(in crate::study) struct Measurement {
    pub(in crate::study) scores: Vec<f64>,
    /// `[episodes]`
    pub(in crate::study) episodes: Vec<Vec<Measured>>,
    pub(in crate::study) distance: Distance,
    /// Units that can be attended to, and how many of them are tested; `None` for an agent that cannot be opened.
    pub(in crate::study) units: Option<[usize; 2]>,
    pub(in crate::study) hard: bool,
    pub(in crate::study) remembers: bool,
    /// True if the agent attends to something at any moment.
    pub(in crate::study) attends: bool,
    pub(in crate::study) places: usize,
    /// The claim over what is attended.
    pub(in crate::study) attended: ClaimSeen,
    /// Those over places.
    pub(in crate::study) claims: Vec<ClaimSeen>,
    /// What XRL-Bench measures of those that somebody else makes.
    pub(super) xrl_bench: Vec<XrlBench>,
    /// What was seen at the decisions of the first episode: step, observation, its places.
    pub(in crate::study) seen: Vec<(usize, ObservationBuf, Option<Places>)>,
    pub(in crate::study) film: Option<FilmEffects>,
}

/// The units that hold nine tenths of the claim, at least 2 and at most [`MOST_UNITS`], in the median over decisions; of hard
/// attention all that it selects.
fn attended(moments: &[Vec<Moment>]) -> Option<([usize; 2], bool)> {
    let opened = || moments.iter().flatten().filter_map(|moment| moment.opened.as_ref());
    let first = opened().next()?;
    if first.hard {
        return Some(([first.units; 2], true));
    }
    let counts: Vec<f64> = opened()
        .map(|opened| {
            let mut claim = opened.claim();
            claim.sort_by(|a, b| b.total_cmp(a));
            let all: f32 = claim.iter().sum();
            let mut sum = 0.0;
            let few = claim.iter().take_while(|&&x| {
                let goes_on = sum < 0.9 * all;
                sum += x;
                goes_on
            });
            few.count() as f64
        })
        .collect();
    let median = foveate_core::statistics::median(&counts) as usize;
    Some(([first.units, median.clamp(2, MOST_UNITS).min(first.units)], false))
}

/// Plays an episode and keeps the decisions at `steps`; those of `inputs` of them with saliency, where that is the claim.
fn sample(
    start: EpisodeStart,
    steps: &[usize],
    inputs: usize,
) -> Result<(EpisodeResult, Vec<Moment>), StudyError> {
    let salient = spread(steps.len(), inputs);
    let mut moments = vec![];
    let result = start.watch(steps, &mut |step, env, agent, context| {
        let salient = salient.contains(&moments.len());
        moments.push(Moment::of(step, env, agent, context, salient)?);
        Ok(())
    })?;
    Ok((result, moments))
}

/// Plays the episodes and keeps sampled decisions.
fn record(plan: &Plan<'_>, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Sampled, StudyError> {
    let starts = Starts::new(plan.env, plan.agent, plan.seed, plan.episodes, plan.max_steps);
    // Saliency is asked for where nobody else claims anything.
    let (decisions, inputs) = (plan.decisions, if plan.claims.is_empty() { plan.inputs } else { 0 });
    // A larger limit is none.
    let expected = plan.max_steps.filter(|&steps| u32::try_from(steps).is_ok()).unwrap_or(0);
    let work = |episode: usize| {
        let start = || starts.get(episode);
        // Which decisions are sampled depends on how long the episode is, so it is played twice; once if it is as long as can be
        // expected of one that is truncated.
        let (result, mut moments) = sample(start(), &spread(expected, decisions), inputs)?;
        if result.steps as usize != expected {
            let steps = spread(result.steps as usize, decisions);
            moments = sample(start().until(&steps), &steps, inputs)?.1;
        }
        Ok((result.total, moments))
    };
    let played = scheduler.ordered(0..plan.episodes, work, each)?;
    let (scores, moments) = played.into_iter().unzip();
    Ok(Sampled { scores, moments })
}

/// Moments that values for the film's effects are taken from.
const FILM_DONORS: usize = 4;
/// Most decisions that are ended for a film; longer films hold effects for several steps.
const FILM_BUDGET: usize = 40_000;

/// Effects of what the first episode attends to, step by step; `None` for an agent that cannot be opened.
fn film(
    plan: &Plan<'_>,
    moments: &[Vec<Moment>],
    distance: &Distance,
) -> Result<Option<FilmEffects>, StudyError> {
    let Some(last) = moments.first().and_then(|all| all.last()) else { return Ok(None) };
    let others = moments.iter().skip(usize::from(moments.len() > 1)).flatten();
    let others: Vec<&Opened> = others.filter_map(|moment| moment.opened.as_ref()).collect();
    let donors: Vec<Opened> =
        spread(others.len(), FILM_DONORS).into_iter().map(|i| others[i].clone()).collect();
    if donors.is_empty() {
        return Ok(None);
    }
    let mut env = plan.env.boxed_clone();
    env.reset(Some(plan.seed));
    let start = EpisodeStart {
        env,
        agent: plan.agent.boxed_clone(),
        job: RolloutJob { genome: 0, episode: 0, env_seed: plan.seed },
        max_steps: plan.max_steps.unwrap_or(usize::MAX),
    };
    let steps = last.step + 1;
    let each = donors.len() * MOST_UNITS;
    let every = (steps * each).div_ceil(FILM_BUDGET).max(1);
    let wanted: Vec<usize> = (0..steps).step_by(every).collect();
    let mut rows = vec![];
    let meter = EffectMeter::with(donors, distance.clone());
    replay(start, &wanted, &mut |step, env, agent, context| {
        let job = RolloutJob { genome: 0, episode: 0, env_seed: plan.seed };
        let measured = meter.measure(env.observation(), agent, context);
        let measured = measured.map_err(|error| policy_error(job, step, error))?;
        rows.push(measured.into_iter().map(|(_, effect)| effect).collect());
        Ok(())
    })?;
    Ok(Some(FilmEffects { every, rows }))
}

/// Measures an agent, with the decisions of its episodes if they are known. `seed` draws donors and random orders; the two numbers
/// are those of the parts that `progress` counts.
///
/// # Errors
/// When the world or an episode fails, there is nothing to swap, or someone asks to stop.
pub(in crate::study) fn measure(
    plan: &Plan<'_>,
    seed: Seed,
    sampled: Option<Sampled>,
    scheduler: &dyn Scheduler,
    progress: &mut Meter<'_>,
    [playing, swapping]: [usize; 2],
) -> Result<Measurement, StudyError> {
    let sampled = match sampled {
        Some(sampled) => sampled,
        None => record(plan, scheduler, &mut || progress.job(playing))?,
    };
    let Sampled { scores, mut moments } = sampled;
    let spec = plan.env.spec();
    let distance = Distance::of(spec, moments.iter().flatten().map(|moment| &moment.action[..]));
    let (units, hard) = match attended(&moments) {
        Some((units, hard)) => (Some(units), hard),
        None => (None, false),
    };
    let counts: Vec<usize> = moments.iter().map(Vec::len).collect();
    let (env_seed, inputs, effort, remembers) = (plan.seed, plan.inputs, plan.effort, plan.remembers);
    if plan.claims.is_empty() {
        register(&mut moments)?;
    }
    let names =
        claims_of(plan.claims, plan.agent, &mut moments, &|e, i| spread(counts[e], inputs).contains(&i))?;
    let of_places =
        |number: usize| move |moment: &Moment| moment.place_claims.get(number).cloned().unwrap_or_default();
    let attended =
        ClaimSeen::of(None, moments.iter().flatten().filter(|of| of.opened.is_some()).map(|of| &of.claim));
    let claims: Vec<ClaimSeen> = names
        .into_iter()
        .enumerate()
        .map(|(number, name)| {
            let all: Vec<Vec<f64>> = moments.iter().flatten().map(of_places(number)).collect();
            ClaimSeen::of(name, all.iter())
        })
        .collect();
    let shaken = if plan.claims.is_empty() || !plan.bench {
        None
    } else {
        Some(Shaken::of(plan.claims, plan.agent, &moments, seed.child("measures", 0))?)
    };
    // `[claims][episodes]`: decisions at which each claim is made.
    let made: Vec<Vec<Vec<usize>>> = (0..claims.len())
        .map(|number| {
            let at = |all: &Vec<Moment>| {
                let made =
                    |moment: &Moment| moment.place_claims.get(number).is_some_and(|claim| !claim.is_empty());
                (0..all.len()).filter(|&i| made(&all[i])).collect()
            };
            moments.iter().map(at).collect()
        })
        .collect();
    let first_places = moments.iter().flatten().find_map(|moment| moment.places.as_ref());
    let places = first_places.map_or(0, Places::len);
    let place_units = first_places
        .map_or(vec![], |places| places.units(moments.iter().flatten().map(|moment| &moment.seen)));
    let levels: Vec<Vec<usize>> =
        claims.iter().map(|claim| budgets(places, claim.named, effort.levels)).collect();
    let jobs: Vec<(usize, usize)> =
        (0..counts.len()).flat_map(|e| (0..counts[e]).map(move |i| (e, i))).collect();
    let work = |(e, i): (usize, usize)| {
        let moment = &moments[e][i];
        let seed = seed.child("episode", e as u64).child("decision", i as u64);
        let mut rng = seed.child("donors", 0).rng();
        let drawn: Vec<(usize, usize)> =
            (0..effort.donors).map(|_| other_moment(&counts, e, i, &mut rng)).collect();
        let donors: Vec<&Moment> = drawn.iter().map(|&(e, i)| &moments[e][i]).collect();
        let failed = |error| policy_error(RolloutJob { genome: 0, episode: e, env_seed }, moment.step, error);
        let paths = paths(moment, &donors, &distance, remembers).map_err(failed)?;
        let values = match units {
            Some([_, units]) => {
                let elsewhere: Vec<Vec<f64>> = donors.iter().map(|donor| donor.claim.clone()).collect();
                of_values(moment, &donors, &elsewhere, units, (&distance, effort, seed)).map_err(failed)?
            }
            None => None,
        };
        let mut curves = vec![];
        if spread(counts[e], inputs).contains(&i) {
            for (number, claim) in moment.place_claims.iter().enumerate() {
                let elsewhere: Vec<Vec<f64>> = drawn
                    .iter()
                    .map(|&(donor, _)| {
                        let at: Vec<usize> =
                            made[number][donor].iter().copied().filter(|&at| (donor, at) != (e, i)).collect();
                        if at.is_empty() {
                            return vec![];
                        }
                        let at = at[rng.below(at.len() as u64) as usize];
                        moments[donor][at].place_claims[number].clone()
                    })
                    .collect();
                let claimed = Claimed {
                    claim,
                    elsewhere: &elsewhere,
                    budgets: &levels[number],
                    seed: seed.child("places", number as u64),
                };
                curves.push(
                    of_inputs(moment, &donors, &claimed, &place_units, (&distance, effort))
                        .map_err(failed)?,
                );
            }
        }
        let donors = drawn.into_iter().map(|(e, _)| e).collect();
        let bench = shaken.as_ref().map(|shaken| shaken.measure((e, i), moment, spec));
        let bench = bench.transpose().map_err(failed)?.unwrap_or_default();
        Ok((e, Measured { step: moment.step, donors, paths, values, inputs: curves, bench }))
    };
    let measured = scheduler.ordered(jobs, work, &mut || progress.job(swapping))?;
    let mut episodes: Vec<Vec<Measured>> = counts.iter().map(|_| vec![]).collect();
    for (e, measured) in measured {
        episodes[e].push(measured);
    }
    let film = if plan.film { film(plan, &moments, &distance)? } else { None };
    let xrl_bench = shaken.map_or(vec![], |shaken| {
        let measured: Vec<Vec<&Vec<[f64; 4]>>> =
            episodes.iter().map(|all| all.iter().map(|measured| &measured.bench).collect()).collect();
        shaken.summary(claims.iter().filter_map(|claim| claim.name.as_deref()), &measured, places)
    });
    let attends = moments.iter().flatten().any(|moment| !moment.claim.is_empty());
    let first = moments.into_iter().next().unwrap_or_default();
    let seen = first.into_iter().map(|moment| (moment.step, moment.seen, moment.places)).collect();
    Ok(Measurement {
        scores,
        episodes,
        distance,
        units,
        hard,
        remembers,
        attends,
        places,
        attended,
        claims,
        xrl_bench,
        seen,
        film,
    })
}
