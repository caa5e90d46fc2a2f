//! Perturbation saliency (Greydanus et al. 2018; with the settings of Mott et al. 2019) of policy and value, beside attention:
//! the picture is blurred place by place, and each time the same decision is taken from the same state.

use foveate_core::{ActContext, Agent, Image, PatchGrid};

use super::super::play::{policy_error, replay};
use super::super::probes::{other_moment, spread};
use super::super::seen::SeenPicture;
use super::super::{Scheduler, StudyError};
use super::drive::{drive, probabilities};
use super::maps::{sheet, to_buf};
use super::weights::MOMENTS;
use super::{Found, HeadNumber, Job, OfHeads};
use crate::charts::glow;
use crate::figure::{DataTable, Figure};
use crate::saliency::{Perturber, rank_correlation};

/// Steps that are played before a decision is looked at, where the episode is long enough.
const BEFORE: usize = 200;

/// A decision.
struct Salient {
    step: usize,
    seen: SeenPicture,
    /// `[cells]` each: all heads together, half the squared change of the probabilities, and of the value.
    attention: Vec<f64>,
    policy: Vec<f64>,
    value: Vec<f64>,
}

/// Half the squared distance.
fn half_squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 2.0
}

fn look(
    agent: &dyn Agent,
    context: &ActContext,
    seen: SeenPicture,
    step: usize,
    grid: PatchGrid,
) -> Result<Salient, foveate_core::PolicyError> {
    let parts = seen.frames();
    let (mut policy, mut value) = (vec![], vec![]);
    let mut bytes = vec![];
    let mut act = |picture: Image<'_>| {
        let mut agent = agent.boxed_clone();
        let observation = seen.observation(picture, &mut bytes);
        let decision = agent.act(observation, &mut context.clone())?;
        let attention = decision.attention.map(|attention| attention.importance().into_owned());
        Ok((probabilities(&decision), f64::from(decision.value.unwrap_or(0.0)), attention))
    };
    let (usual, worth, attention) = act(seen.picture())?;
    let mut perturber = Perturber::of_stack(seen.picture(), parts);
    for place in 0..perturber.columns() * perturber.rows() {
        let (now, worth_now, _) = act(perturber.perturbed(place).as_image())?;
        policy.push(half_squared(&now, &usual));
        value.push((worth_now - worth).powi(2) / 2.0);
    }
    let policy = perturber.on_patches(&policy, grid);
    let value = perturber.on_patches(&value, grid);
    let attention = attention.unwrap_or_default().iter().map(|&w| f64::from(w)).collect();
    drop(perturber);
    Ok(Salient { step, seen, attention, policy, value })
}

/// Perturbation saliency of policy and value, beside attention.
#[derive(Debug)]
pub(in crate::study) struct BesideSaliency;

impl OfHeads for BesideSaliency {
    const NAME: &'static str = "saliency";
    const TITLE: &'static str = "Attention beside perturbation saliency";

    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError> {
        let play = |episode: usize| {
            let result = drive(job.start(episode), &mut |_| (), None, &mut |_| Ok(()))?;
            let steps = result.steps as usize;
            let begin = if steps > 2 * BEFORE { BEFORE } else { steps / 2 };
            let wanted: Vec<usize> =
                spread(steps - begin, job.decisions).into_iter().map(|step| begin + step).collect();
            let (mut all, start) = (vec![], job.start(episode));
            let number = start.job;
            replay(start, &wanted, &mut |step, env, agent, context| {
                let seen = SeenPicture::of(env, None)?;
                all.push(
                    look(agent, context, seen, step, job.grid)
                        .map_err(|error| policy_error(number, step, error))?,
                );
                Ok(())
            })?;
            Ok((result.total, all))
        };
        let played = scheduler.ordered(job.episodes(), play, each)?;
        let lengths: Vec<usize> = played.iter().map(|(_, all)| all.len()).collect();
        let mut findings = vec![];
        for (name, of) in [
            ("policy", (|salient: &Salient| &salient.policy[..]) as fn(&Salient) -> &[f64]),
            ("value", |salient| &salient.value),
        ] {
            let (mut own, mut null) = (vec![], vec![]);
            for (episode, (_, all)) in played.iter().enumerate().filter(|(_, (_, all))| !all.is_empty()) {
                let mut rng = job.seed.child("other moment", episode as u64).rng();
                let (mut a, mut b) = (0.0, 0.0);
                for (index, salient) in all.iter().enumerate() {
                    let (e, i) = other_moment(&lengths, episode, index, &mut rng);
                    a += rank_correlation(of(salient), &salient.attention) / all.len() as f64;
                    b += rank_correlation(of(salient), &played[e].1[i].attention) / all.len() as f64;
                }
                own.push(a);
                null.push(b);
            }
            let name = format!(
                "rank correlation of attention and saliency of the {name}; null: attention of another moment"
            );
            // Of no decision there is no correlation.
            if !own.is_empty() {
                findings.push(HeadNumber::against(name, &own, &null));
            }
        }
        let first = played.first().map_or(&[][..], |(_, all)| &all[..]);
        let figures = vec![figure(job, &first[..first.len().min(MOMENTS)])];
        Ok(Found { scores: played.iter().map(|(score, _)| *score).collect(), findings, figures })
    }
}

fn figure(job: &Job, moments: &[Salient]) -> Figure {
    let mut table = DataTable::new(&["step", "cell", "attention", "policy", "value"]);
    let columns = ["seen", "attention", "saliency of the policy", "saliency of the value"].map(String::from);
    let rows: Vec<_> = moments
        .iter()
        .map(|Salient { step, seen, attention, policy, value }| {
            for (cell, ((a, b), c)) in attention.iter().zip(policy).zip(value).enumerate() {
                table.row([(*step).into(), cell.into(), (*a).into(), (*b).into(), (*c).into()]);
            }
            let picture = seen.newest_frame();
            let mut pictures = vec![to_buf(picture)];
            pictures.extend([attention, policy, value].map(|values| glow(picture, job.grid, values)));
            (format!("step {step}"), pictures)
        })
        .collect();
    Figure {
        name: "saliency",
        title: "Attention beside perturbation saliency".into(),
        caption: "Decisions of the first episode. Attention of all heads together; half the squared change of the choices' \
                  probabilities, and of the value, when a place of the picture is blurred (of a stack the same place of all \
                  pictures). The brightest place of a map has its largest number."
            .into(),
        wide: true,
        drawing: sheet(&columns, &rows),
        table,
    }
}
