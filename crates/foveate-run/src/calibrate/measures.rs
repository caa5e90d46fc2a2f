//! Measures of explanations that other tools use, on the same cases: which of them tells a true claim from a false one?
//!
//! * Of XRL-Bench: AIM, AUM, PGI, PGU and RIS, see [`foveate_explain::measures`].
//! * Deletion and insertion (Petsiuk, Das and Saenko, *RISE*, BMVC 2018, arXiv:1806.07421): the area under the curve while parts
//!   are taken away, or put into a blurred picture, the most important first.
//! * Agreement with perturbation saliency (Greydanus et al., *Visualizing and Understanding Atari Agents*, ICML 2018,
//!   arXiv:1711.00138): the rank correlation of claim and saliency.

use foveate_core::episode::{BeforeChoice, Episode, EpisodeRules, Observer};
use foveate_core::{
    ActContext, Agent, Env, EnvSpec, GridBuf, ObservationBuf, PatchGrid, PixelsBuf, PolicyAgent, PolicyError,
    RolloutJob, Seed,
};
use foveate_explain::measures::{apart, blank, changed, gap, important, noisy, order, same, stability};
use foveate_explain::saliency::{Perturber, rank_correlation};
use foveate_explain::study::StudyError;
use foveate_explain::{BLUR_PX, gaussian_blur};

use super::planted::{Planted, PlantedCase, SIDE, places};

/// A measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OtherMeasure {
    /// Its name.
    pub(super) name: &'static str,
    /// True if larger values speak for a claim.
    pub(super) more_is_better: bool,
}

/// The measures, in the order of [`measure`]'s numbers.
pub(super) const MEASURES: [OtherMeasure; 8] = [
    OtherMeasure { name: "AIM", more_is_better: false },
    OtherMeasure { name: "AUM", more_is_better: true },
    OtherMeasure { name: "PGI", more_is_better: true },
    OtherMeasure { name: "PGU", more_is_better: false },
    OtherMeasure { name: "RIS", more_is_better: false },
    OtherMeasure { name: "deletion", more_is_better: true },
    OtherMeasure { name: "insertion", more_is_better: false },
    OtherMeasure { name: "saliency", more_is_better: true },
];

/// Steps of a curve.
const LEVELS: usize = 16;

/// A decision that can be taken again.
struct Taken {
    agent: Box<dyn Agent>,
    context: ActContext,
    seen: ObservationBuf,
    action: Vec<f64>,
    claim: Vec<f64>,
}

impl Taken {
    fn of(env: &dyn Env, agent: &dyn Agent, context: &ActContext) -> Result<Taken, PolicyError> {
        let mut own = agent.boxed_clone();
        let decision = own.act(env.observation(), &mut context.clone())?;
        let claim = decision.attention.as_ref().map(|attention| attention.importance().into_owned());
        let claim = claim.unwrap_or_default().iter().map(|&x| f64::from(x.abs())).collect();
        Ok(Taken {
            agent: agent.boxed_clone(),
            context: context.clone(),
            seen: env.observation().into(),
            action: decision.action.to_vec(),
            claim,
        })
    }

    /// Action and claim on another observation.
    fn again(&self, seen: &ObservationBuf) -> Result<(Vec<f64>, Vec<f64>), PolicyError> {
        let mut agent = self.agent.boxed_clone();
        let decision = agent.act(seen.as_observation(), &mut self.context.clone())?;
        let claim = decision.attention.as_ref().map(|attention| attention.importance().into_owned());
        let claim = claim.unwrap_or_default().iter().map(|&x| f64::from(x.abs())).collect();
        Ok((decision.action.to_vec(), claim))
    }

    /// The observation with these parts of another one.
    fn with(&self, parts: &[usize], other: &ObservationBuf) -> ObservationBuf {
        let mut mixed = self.seen.clone();
        put(&mut mixed, parts, other);
        mixed
    }
}

/// Writes these parts of `from` over `to`.
fn put(to: &mut ObservationBuf, parts: &[usize], from: &ObservationBuf) {
    match (to, from) {
        (ObservationBuf::Image(to), ObservationBuf::Image(from)) => {
            let (width, height) = to.as_pixels().shape().tall();
            let bytes = to.bytes_mut();
            for part in parts {
                let (row, column) = (part / SIDE, part % SIDE);
                let [left, right] = [column, column + 1].map(|column| column * width / SIDE);
                for y in row * height / SIDE..(row + 1) * height / SIDE {
                    let run = (y * width + left) * 3..(y * width + right) * 3;
                    bytes[run.clone()].copy_from_slice(&from.as_pixels().bytes()[run]);
                }
            }
        }
        (ObservationBuf::Vector(to), ObservationBuf::Vector(from)) => {
            for &part in parts {
                to[part] = from[part];
            }
        }
        (ObservationBuf::Grid(to), ObservationBuf::Grid(from)) => {
            let grid = to.as_grid();
            let [rows, columns, channels] = [grid.rows(), grid.columns(), grid.channels()];
            let mut codes = grid.codes().to_vec();
            for part in parts {
                let cell = part * channels..(part + 1) * channels;
                codes[cell.clone()].copy_from_slice(&from.as_grid().codes()[cell]);
            }
            if let Some(mixed) = GridBuf::new(rows, columns, channels, codes) {
                *to = mixed;
            }
        }
        _ => {}
    }
}

/// The middle decision of every episode.
fn sample(case: &PlantedCase, env: &dyn Env, seed: u64, episodes: usize) -> Result<Vec<Taken>, StudyError> {
    struct Middle(u64, Option<Taken>);
    impl Observer<StudyError> for Middle {
        fn before_choice(&mut self, now: BeforeChoice<'_>) -> Result<(), StudyError> {
            if let Some(agent) = now.agent.filter(|_| now.step == self.0) {
                let taken = Taken::of(now.env, agent, now.context).map_err(refused)?;
                self.1 = Some(taken);
            }
            Ok(())
        }
    }
    let mut world = env.boxed_clone();
    let mut taken = vec![];
    for episode in 0..episodes {
        world.reset((episode == 0).then_some(seed));
        let start = || (world.boxed_clone(), PolicyAgent::new(Planted::new(case, env.spec())));
        let rules = EpisodeRules { max_steps: case.world.steps() as u64, ..EpisodeRules::WHOLE };
        let job = RolloutJob { genome: 0, episode, env_seed: seed };
        let play = |observer: &mut Middle| {
            let (mut env, mut agent) = start();
            let agent: &mut dyn Agent = &mut agent;
            let mut episode = Episode::new(job, rules);
            episode.resume(agent);
            episode.finish::<StudyError>(&mut *env, agent, observer)
        };
        let length = play(&mut Middle(u64::MAX, None))?.steps;
        let mut middle = Middle(length / 2, None);
        play(&mut middle)?;
        taken.extend(middle.1);
    }
    Ok(taken)
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: PolicyError) -> StudyError {
    StudyError::Refused { why: error.to_string() }
}

/// The measures of a case, in the order of [`MEASURES`], each the mean over decisions but for RIS, which is the largest.
///
/// # Errors
/// When an episode fails.
pub(super) fn measure(
    case: &PlantedCase,
    env: &dyn Env,
    seed: u64,
    episodes: usize,
) -> Result<[f64; MEASURES.len()], StudyError> {
    let spec = env.spec();
    let taken = sample(case, env, seed, episodes)?;
    let mean = mean_numbers(&taken);
    let mut rng = Seed::root(seed).child("measures", 0).rng();
    let mut sums = [0.0; MEASURES.len()];
    let seen: Vec<&ObservationBuf> = taken.iter().map(|own| &own.seen).collect();
    let (mut least_stable, n) = (0.0_f64, taken.len().max(1) as f64);
    for (i, own) in taken.iter().enumerate() {
        let order = order(&own.claim);
        let (important, others) = order.split_at(important(order.len()));
        let zero = blank(&own.seen);
        let noisy = noisy(&seen, i, &mut rng);
        let of =
            |parts: &[usize], other: &ObservationBuf| own.again(&own.with(parts, other)).map_err(refused);
        let accuracy = |parts: &[usize]| {
            Ok::<f64, StudyError>(f64::from(u8::from(same(spec, &own.action, &of(parts, &zero)?.0))))
        };
        sums[0] += accuracy(important)?;
        sums[1] += accuracy(others)?;
        sums[2] += gap(spec, &own.action, &of(important, &noisy)?.0);
        sums[3] += gap(spec, &own.action, &of(others, &noisy)?.0);
        let (_, claim) = own.again(&noisy).map_err(refused)?;
        least_stable = least_stable.max(stability([&own.claim, &claim], [&own.seen, &noisy]));
        let (gone, away) = (zero_or(&own.seen, &zero, &mean), baseline(&own.seen, &mean));
        for level in 1..=LEVELS {
            let parts = &order[..(level * order.len()).div_ceil(LEVELS)];
            let rest = &order[parts.len()..];
            sums[5] += apart(spec, &own.action, &of(parts, &gone)?.0) / LEVELS as f64;
            sums[6] += apart(spec, &own.action, &of(rest, &away)?.0) / LEVELS as f64;
        }
        sums[7] += rank_correlation(&own.claim, &saliency(own, spec, &mean)?);
    }
    let mut out = sums.map(|sum| sum / n);
    out[4] = least_stable;
    Ok(out)
}

/// The mean of every number over the decisions; empty of pictures and grids.
fn mean_numbers(taken: &[Taken]) -> Vec<f32> {
    let mut sums: Vec<f64> = vec![];
    for own in taken {
        if let ObservationBuf::Vector(numbers) = &own.seen {
            sums.resize(numbers.len(), 0.0);
            sums.iter_mut().zip(numbers).for_each(|(sum, &x)| *sum += f64::from(x));
        }
    }
    sums.iter().map(|sum| (sum / taken.len().max(1) as f64) as f32).collect()
}

/// What deletion puts in place of a part: black, an unseen cell, the mean of a number.
fn zero_or(seen: &ObservationBuf, zero: &ObservationBuf, mean: &[f32]) -> ObservationBuf {
    if mean.is_empty() { zero.clone() } else { changed(seen, &mut |_, x| x, &mut |i, _| mean[i]) }
}

/// What insertion begins with: the blurred picture, unseen cells, the means of numbers.
fn baseline(seen: &ObservationBuf, mean: &[f32]) -> ObservationBuf {
    if let ObservationBuf::Image(pixels) = seen
        && let Some(picture) = pixels.as_pixels().as_rgb()
        && let Some(blurred) =
            PixelsBuf::new(pixels.as_pixels().shape(), gaussian_blur(picture, 3.0 * BLUR_PX).rgb().to_vec())
    {
        return ObservationBuf::Image(blurred);
    }
    changed(seen, &mut |_, _| 0, &mut |i, x| mean.get(i).copied().unwrap_or(x))
}

/// `[parts]`: the change of the action when each place is blurred, each number is its mean, each cell unseen.
fn saliency(own: &Taken, spec: &EnvSpec, mean: &[f32]) -> Result<Vec<f64>, StudyError> {
    if let ObservationBuf::Image(pixels) = &own.seen
        && let Some(picture) = pixels.as_pixels().as_rgb()
    {
        let mut perturber = Perturber::new(picture);
        let shape = pixels.as_pixels().shape();
        let mut map = vec![];
        for place in 0..perturber.columns() * perturber.rows() {
            let changed = PixelsBuf::new(shape, perturber.perturbed(place).rgb().to_vec());
            let changed = changed.map_or_else(|| own.seen.clone(), ObservationBuf::Image);
            map.push(apart(spec, &own.action, &own.again(&changed).map_err(refused)?.0).powi(2));
        }
        let grid = PatchGrid::tile(SIDE, SIDE, 1, 1).map_err(refused)?;
        return Ok(perturber.on_patches(&map, grid));
    }
    let away = baseline(&own.seen, mean);
    let effect =
        |part| Ok(apart(spec, &own.action, &own.again(&own.with(&[part], &away)).map_err(refused)?.0));
    (0..places(own.seen.as_observation())).map(effect).collect()
}
