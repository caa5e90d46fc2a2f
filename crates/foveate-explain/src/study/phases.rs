//! The phases of measuring an agent that attends to places of a picture, or to nothing, in dependency order.

use std::any::Any;
use std::cell::RefCell;

use crate::faithful::Effect;
use crate::interest::{ImportanceCounts, Range, Samples};
use crate::trajectory::{ActionScale, Trajectory};
use foveate_core::{Attention, EvaluateError, ImageBuf, PatchGrid, Seed, statistics};

use super::StudyError;
use super::analyses::erasures::{self, Erased, Erasure};
use super::analyses::positions::{Encoded, Situations, encoded};
use super::conditions::{Condition, play_under};
use super::cost::Meter;
use super::fields::Fields;
use super::film::{FilmRecorder, FinishedFilm};
use super::finding::{Bench, EpisodeShown};
use super::heads::{self, attends_with_heads};
use super::play::{EpisodeStart, Starts, action_scale, play, policy_error};
use super::probes::{
    CLAIMS, Comparisons, Probed, any_attention, other_moment, own_claims, probe, spread, take, take_spread,
};
use super::saved_decision::SavedDecision;
use super::seen::{self, SeenPicture};
use super::swaps::{self, Moment, Sampled};
use super::{Mean, ReportHead, Scheduler, StudyRequest};

/// Patches shown of each range of importance.
const SAMPLES: usize = 19;
/// Decisions of an episode for which perturbation saliency is computed.
const SALIENT: usize = 5;
/// Decisions that the page shows with all their interventions.
const CARDS: usize = 4;

/// The filmed episode.
struct Filmed {
    /// `[n_patches]` importance at every step.
    maps: Vec<Vec<f32>>,
    film: FinishedFilm,
    about: ShownEpisode,
}

/// What is known of the filmed episode.
#[derive(Clone, Copy)]
pub(super) struct ShownEpisode {
    /// The sum of all importance of a picture.
    pub(super) votes: f64,
    /// Width and height of the agent's picture.
    pub(super) picture: [usize; 2],
    /// True if the agent got its patches in another order than the world's.
    pub(super) shuffled: bool,
    /// What became of the patches that it looked at.
    pub(super) looked_at: LookedAt,
}

/// What an agent's looking at a patch means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookedAt {
    /// The agent gets these patches and no others.
    Chosen,
    /// The agent gets all patches, weighted; it marked these.
    Marked,
    /// The agent gets all patches, weighted; these have the largest weights.
    Weighted,
}

impl LookedAt {
    fn of(attention: &Attention<'_>) -> Self {
        match (attention.passes_all(), attention.selected()) {
            (false, _) => LookedAt::Chosen,
            (true, Some(_)) => LookedAt::Marked,
            (true, None) => LookedAt::Weighted,
        }
    }
}

/// All results of the phases.
pub(super) struct MeasuredPictures {
    pub(super) scale: ActionScale,
    pub(super) episodes: Vec<Trajectory>,
    pub(super) shown: ShownEpisode,
    pub(super) counts: ImportanceCounts,
    pub(super) samples: Vec<(Range, Samples)>,
    /// `[height, width, 3]`: the mean of the tested pictures.
    pub(super) mean_picture: Vec<f64>,
    pub(super) grid: PatchGrid,
    pub(super) has_attention: bool,
    /// The tested decisions of every episode.
    pub(super) probed: Vec<Vec<Probed>>,
    /// Decisions of the filmed episode that the page shows.
    pub(super) cards: Vec<SavedDecision>,
    /// For every episode of a random-weight agent and every fill: the effects of its own claims and of their null.
    pub(super) random_claims: Vec<[[Effect; 2]; 2]>,
    /// Scores of every condition, episode by episode.
    pub(super) scores: Vec<(Condition, Vec<f64>)>,
    /// What positions encode, of an agent that gets nothing of the picture but the selected patches.
    pub(super) encoded: Vec<Encoded>,
    /// Kinds of things taken out of what the world shows.
    pub(super) erasures: Vec<Erasure>,
}

impl MeasuredPictures {
    /// The mean of the tested pictures.
    pub(super) fn mean_image(&self) -> ImageBuf {
        let bytes = self.mean_picture.iter().map(|&v| v.round() as u8).collect();
        let [width, height] = self.shown.picture;
        ImageBuf::from_rgb(width, height, bytes).unwrap_or_else(|| ImageBuf::black(width, height))
    }

    /// Patches that the agent looks at in a decision; where the number changes, its mean, rounded.
    pub(super) fn looked_at(&self) -> usize {
        if self.shown.looked_at != LookedAt::Marked {
            return self.cards.first().map_or(0, |card| card.claim.len());
        }
        let counts = self.episodes.iter().flat_map(|episode| &episode.selected).map(Vec::len);
        let (sum, decisions) = counts.fold((0, 0), |(sum, decisions), count| (sum + count, decisions + 1));
        (sum + decisions / 2).checked_div(decisions).unwrap_or(0)
    }
}

/// One episode played.
struct Played {
    episode: Trajectory,
    situations: Situations,
    counts: ImportanceCounts,
    shown: Option<Filmed>,
}

/// What the tests of an episode's decisions found.
enum DecisionResults {
    Own(Vec<Probed>, Vec<SavedDecision>),
    Random([[Effect; 2]; 2]),
}

/// Does everything.
pub(super) fn measure<'a>(
    request: &StudyRequest<'_>,
    scheduler: &'a dyn Scheduler,
    mut meter: Meter<'a>,
) -> Result<Bench<'a>, StudyError> {
    seen::pictures(request.env)?;
    let seed = Seed::root(request.seed).child("explain", 0);
    let (n, decisions) = (request.episodes, request.decisions);
    let starts = Starts::of(request);
    let scale = action_scale(request.env.spec());
    let conditions = Condition::all();
    let kinds = request.env.kinds();
    let [playing, taking] = [meter.part("playing and filming"), meter.part("taking decisions")];
    let measuring = meter.part(heads::MEASURING);
    let mut fields = None;
    if attends_with_heads(request.env, request.agent, request.seed).is_some() {
        fields = Fields::of_episodes(&|episode| starts.get(episode), n, scheduler, &mut || {
            meter.job(measuring);
        })?;
    }
    let fields = fields.as_ref();
    // Swaps are parts before these, where there is something to swap.
    let testing = meter.part("putting decisions to the test");

    let played = scheduler.ordered(
        0..n,
        |i| watch(starts.get(i), i == 0, fields, &|| scheduler.stopped()),
        &mut || {
            meter.job(playing);
        },
    )?;
    let mut counts = ImportanceCounts::default();
    let (mut episodes, mut situations, mut shown) = (Vec::new(), vec![], None);
    for played in played {
        counts.merge(&played.counts);
        shown = shown.or(played.shown);
        episodes.push(played.episode);
        situations.push(played.situations);
    }
    let Some(Filmed { maps, film, about: shown }) = shown else { return Err(EvaluateError::Stopped.into()) };

    // Decisions of the agent, and of random-weight agents, ready to be taken again.
    let lengths: Vec<usize> = episodes.iter().map(Trajectory::len).collect();
    meter.length(lengths.iter().sum::<usize>() / n.max(1));
    let taken = scheduler.ordered(
        0..2 * n,
        |i| {
            if i < n {
                let steps = spread(lengths[i], decisions);
                keep(starts.get(i), &steps, fields, &counts, seed.child("samples", i as u64))
            } else {
                let taken = take_spread(
                    &|| EpisodeStart { agent: starts.random(i - n, seed), ..starts.get(i - n) },
                    decisions,
                    fields,
                )?;
                Ok(Kept { taken, ..Kept::default() })
            }
        },
        &mut || meter.job(taking),
    )?;
    let mut samples: Vec<(Range, Samples)> =
        Range::ALL.map(|range| (range, Samples::new(range.bounds(&counts), SAMPLES))).into();
    let mut mean_picture = vec![0.0; shown.picture[0] * shown.picture[1] * 3];
    let (mut all_taken, mut erased, mut moments) = (Vec::with_capacity(2 * n), vec![], vec![]);
    for Kept { taken, offered, sums, erased: own, moments: of_swaps } in taken {
        for ((_, samples), offered) in samples.iter_mut().zip(offered) {
            samples.merge(offered);
        }
        for (mean, sum) in mean_picture.iter_mut().zip(&sums) {
            *mean += sum;
        }
        all_taken.push(taken);
        if erased.len() < n {
            erased.push(own);
            moments.push(of_swaps);
        }
    }
    let tested: usize = all_taken.iter().take(n).map(Vec::len).sum();
    for mean in &mut mean_picture {
        *mean /= tested.max(1) as f64;
    }
    let Some(grid) = all_taken.iter().flatten().map(|taken| taken.grid).next() else {
        return Err(EvaluateError::Stopped.into());
    };

    let usual: Vec<f64> = episodes.iter().map(Trajectory::score).collect();
    let sampled = Sampled { scores: usual.clone(), moments };
    let swaps = swaps::of_sampled(request, sampled, scheduler, &mut meter)?;

    // What was claimed at other moments, of the same kind of agent.
    let claims: Vec<Vec<(Vec<u32>, Vec<f32>)>> = all_taken
        .iter()
        .map(|taken| taken.iter().map(|t| (t.claim.clone(), t.importance.clone())).collect())
        .collect();
    let sizes: Vec<usize> = claims.iter().map(Vec::len).collect();
    let other = |side: usize, e: usize, i: usize, seed: Seed| {
        let (episode, index) = if side == 0 {
            other_moment(&sizes[..n], e, i, &mut seed.rng())
        } else {
            // Every random-weight agent is another one, so its own null comes from its own episode.
            (n + e, other_moment(&sizes[n + e..=n + e], 0, i, &mut seed.rng()).1)
        };
        &claims[episode][index]
    };
    let attends = any_attention(&episodes);
    let answers = scheduler.ordered(
        all_taken.into_iter().enumerate(),
        |(i, taken)| {
            let (side, e) = (i / n, i % n);
            let job = starts.get(e).job;
            let moment = |k: usize| {
                seed.child("side", side as u64).child("episode", e as u64).child("decision", k as u64)
            };
            let refused = |taken: &SavedDecision, source| policy_error(job, taken.step, source);
            if side == 1 {
                let mut sums = [[Effect::default(); 2]; 2];
                for (k, taken) in taken.iter().enumerate() {
                    let foil = &other(1, e, k, moment(k).child("other", 0)).0;
                    let effects =
                        own_claims(taken, foil, &scale, moment(k)).map_err(|error| refused(taken, error))?;
                    add(&mut sums, &effects);
                }
                return Ok(DecisionResults::Random(sums));
            }
            let random = starts.random(e, seed);
            let salient = spread(taken.len(), if e == 0 { CARDS } else { SALIENT });
            let mut probed = Vec::with_capacity(taken.len());
            for (k, taken) in taken.iter().enumerate() {
                if scheduler.stopped() {
                    return Err(EvaluateError::Stopped.into());
                }
                let first = other(0, e, k, moment(k).child("other", 0));
                let second = other(0, e, k, moment(k).child("other", 1));
                let foils = Comparisons {
                    scale: &scale,
                    random: &*random,
                    others: [&first.0, &second.0],
                    other_importance: &first.1,
                    saliency: attends && salient.contains(&k),
                    fields,
                    seed: moment(k),
                };
                probed.push(probe(taken, &foils).map_err(|error| refused(taken, error))?);
            }
            let cards = spread(taken.len(), CARDS);
            let shown = taken.into_iter().enumerate().filter(|(k, _)| e == 0 && cards.contains(k));
            Ok(DecisionResults::Own(probed, shown.map(|(_, taken)| taken).collect()))
        },
        &mut || meter.job(testing),
    )?;
    let (mut probed, mut cards, mut random_claims) = (Vec::new(), Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            DecisionResults::Own(own, shown) => {
                probed.push(own);
                cards.extend(shown);
            }
            DecisionResults::Random(sums) => random_claims.push(sums),
        }
    }

    // Whole episodes; without attention there is nothing to cover but everything.
    let possible = |c: &&Condition| attends || c.fill().is_none();
    let drives: Vec<Condition> = conditions.iter().filter(possible).copied().collect();
    // The first condition changes nothing: these episodes have been played.
    let totals = scheduler.ordered(
        n..drives.len() * n,
        |i| play_under(starts.get(i % n), drives[i / n], fields, seed.child("drive", i as u64)),
        &mut || meter.job(testing + 1),
    )?;
    let totals = [usual.clone(), totals].concat();
    let scores: Vec<(Condition, Vec<f64>)> =
        drives.into_iter().zip(totals.chunks(n)).map(|(condition, all)| (condition, all.to_vec())).collect();
    let erasures = if kinds.is_empty() {
        vec![]
    } else {
        let without = scheduler.ordered(
            0..kinds.len() * n,
            |i| erasures::play_without(starts.get(i % n), i / n),
            &mut || meter.job(testing + 2),
        )?;
        let without: Vec<Vec<f64>> =
            without.chunks(n).map(|all| all.iter().copied().flatten().collect()).collect();
        erasures::erasures(kinds, &erased, &without, &usual)
    };
    let encoded = if attends && shown.looked_at == LookedAt::Chosen {
        encoded(&episodes, &situations, grid)
    } else {
        vec![]
    };
    let decisions = probed.iter().map(Vec::len).sum();
    let mut episode = episodes[0].clone();
    for action in &mut episode.actions {
        *action = scale.shown(action);
    }
    let effects = swaps.as_ref().is_some_and(|swaps| swaps.measured.film.is_some());
    let head = ReportHead::of(&request.labels, request.seed, episodes.iter(), decisions);
    let page = EpisodeShown {
        verb: "looks at",
        episode,
        maps,
        film: Some(film),
        picture: shown.picture,
        seen: if effects {
            "what the agent sees; white: what it attends to, border: what moves its action"
        } else {
            "what the agent sees, and looks at"
        },
        columns: vec![],
    };
    let mut measured: Vec<Box<dyn Any>> = vec![Box::new(MeasuredPictures {
        scale,
        episodes,
        shown,
        counts,
        samples,
        mean_picture,
        grid,
        has_attention: attends,
        probed,
        cards,
        random_claims,
        scores,
        encoded,
        erasures,
    })];
    measured.extend(swaps.map(|swaps| Box::new(swaps) as Box<dyn Any>));
    let (dimensions, meter) = (request.dimensions.clone(), RefCell::new(meter));
    Ok(Bench { head, dimensions, shown: page, measured, scheduler, meter })
}

/// Plays an episode, counting importance; with a camera if it is to be shown.
fn watch(
    start: EpisodeStart,
    film: bool,
    fields: Option<&Fields>,
    stopped: &dyn Fn() -> bool,
) -> Result<Played, StudyError> {
    let (mut camera, mut looked_at) = (None, LookedAt::Chosen);
    let (mut maps, mut counts) = (Vec::new(), ImportanceCounts::default());
    let (mut situations, mut quantities) = (Situations::default(), vec![]);
    let (episode, end) = play(start, fields, &|_| false, &mut |moment| {
        if stopped() {
            return Err(EvaluateError::Stopped.into());
        }
        moment.env.situation(&mut quantities);
        situations.add(&quantities);
        if let Some(attention) = moment.decision.attention.filter(|attention| attention.grid().is_some()) {
            looked_at = LookedAt::of(&attention);
            counts.add(moment.importance);
            if film {
                maps.push(moment.importance.to_vec());
            }
        }
        if !film {
            return Ok(());
        }
        if camera.is_none() {
            let [width, height] = moment.seen.size();
            camera = Some(FilmRecorder::new(moment.env, width, height)?);
        }
        camera.as_mut().map_or(Ok(()), |camera| camera.shoot(moment.env, moment.seen.newest()))
    })?;
    let shown = match camera {
        Some(mut camera) => {
            let last = SeenPicture::of(&*end.env, episode.grid)?;
            camera.shoot(&*end.env, last.newest())?;
            let votes = maps.first().map_or(0.0, |map| map.iter().map(|&votes| f64::from(votes)).sum());
            let about = ShownEpisode { votes, picture: last.size(), shuffled: last.is_shuffled(), looked_at };
            Some(Filmed { maps, film: camera.finish()?, about })
        }
        None => None,
    };
    Ok(Played { episode, situations, counts, shown })
}

/// What the second play of an episode gives.
#[derive(Default)]
struct Kept {
    taken: Vec<SavedDecision>,
    /// Samples of patches, for each range of importance.
    offered: Vec<Samples>,
    /// The sum of the pictures.
    sums: Vec<f64>,
    /// The decisions with kinds of things taken out of the world.
    erased: Vec<Erased>,
    /// The decisions with all that parts of them can be swapped in.
    moments: Vec<Moment>,
}

fn keep(
    start: EpisodeStart,
    steps: &[usize],
    fields: Option<&Fields>,
    counts: &ImportanceCounts,
    seed: Seed,
) -> Result<Kept, StudyError> {
    let mut samples: Vec<Samples> =
        Range::ALL.iter().map(|range| Samples::new(range.bounds(counts), SAMPLES)).collect();
    let (mut sums, mut erased, mut moments, job) = (Vec::new(), vec![], vec![], start.job);
    let salient = spread(steps.len(), swaps::INPUTS);
    let (taken, _) = take(start.until(steps), steps, fields, &mut |moment| {
        if let Some((agent, context)) = &moment.before {
            sums.resize(moment.seen.newest().rgb().len(), 0.0);
            for (sum, &byte) in sums.iter_mut().zip(moment.seen.newest().rgb()) {
                *sum += f64::from(byte);
            }
            if let Some(grid) = moment.grid {
                for samples in &mut samples {
                    let seed = seed.child("step", moment.step as u64);
                    samples.offer(moment.seen.newest(), grid, moment.importance, seed);
                }
            }
            erased.extend(erasures::decision(moment, job)?);
            let salient = salient.contains(&moments.len());
            moments.push(Moment::of(moment.step, moment.env, &**agent, context, salient)?);
        }
        Ok(())
    })?;
    Ok(Kept { taken, offered: samples, sums, erased, moments })
}

fn add(sums: &mut [[Effect; 2]; 2], more: &[[Effect; 2]; 2]) {
    for (sum, more) in sums.iter_mut().flatten().zip(more.iter().flatten()) {
        sum.claimed += more.claimed;
        sum.elsewhere += more.elsewhere;
    }
}

impl MeasuredPictures {
    /// Of one fill: the effects of every claim, summed per episode.
    pub(super) fn claim_sums(&self, fill: usize) -> Vec<Vec<Effect>> {
        (0..CLAIMS.len())
            .map(|claim| {
                let of = |probed: &Vec<Probed>| {
                    probed.iter().fold(Effect::default(), |sum, p| Effect {
                        claimed: sum.claimed + p.claims[fill][claim].claimed,
                        elsewhere: sum.elsewhere + p.claims[fill][claim].elsewhere,
                    })
                };
                self.probed.iter().map(of).collect()
            })
            .collect()
    }

    /// The mean over episodes of the mean over decisions, with its interval over episodes; one episode has none.
    pub(super) fn over_episodes(&self, of: impl Fn(&Probed) -> Option<f64>) -> Mean {
        let means: Vec<f64> = self
            .probed
            .iter()
            .filter_map(|probed| {
                let values: Vec<f64> = probed.iter().filter_map(&of).collect();
                (!values.is_empty()).then(|| statistics::mean(&values))
            })
            .collect();
        (statistics::mean(&means), statistics::mean_interval(&means))
    }
}
