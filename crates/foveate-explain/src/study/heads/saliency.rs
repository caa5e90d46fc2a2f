//! Perturbation saliency (Greydanus et al. 2018; with the settings of Mott et al. 2019) of policy and value, beside attention:
//! the picture is blurred place by place, and each time the same decision is taken from the same state.

use foveate_core::{ActContext, Agent, Image, Opened};

use super::super::fields::Fields;
use super::super::play::{policy_error, replay};
use super::super::probes::spread;
use super::super::seen::SeenPicture;
use super::super::{Scheduler, StudyError};
use super::drive::{drive, probabilities};
use super::maps::{sheet, to_buf};
use super::weights::MOMENTS;
use super::{Found, HeadNumber, Job, OfHeads};
use crate::charts::{glow, percent};
use crate::figure::{DataTable, Figure};
use crate::saliency::{Perturber, mass_on_top};

/// Steps that are played before a decision is looked at, where the episode is long enough.
const BEFORE: usize = 200;

/// Places of the largest saliency on which the attention is counted.
const TOP: usize = 10;

/// A decision.
struct Salient {
    step: usize,
    seen: SeenPicture,
    /// `[heads][places]`: where what each head attends to comes from, 1 in all; last all heads together.
    attention: Vec<Vec<f64>>,
    /// All heads together, each cell where it lies.
    at_cells: Vec<f64>,
    /// `[places]` each: half the squared change of the probabilities, and of the value.
    outputs: [Vec<f64>; 2],
}

/// Half the squared distance.
fn half_squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 2.0
}

fn in_all_one(mut map: Vec<f64>) -> Vec<f64> {
    let sum: f64 = map.iter().sum();
    for weight in &mut map {
        *weight /= sum.max(1e-30);
    }
    map
}

fn look(
    job: &Job,
    at_cells: &Fields,
    agent: &dyn Agent,
    context: &ActContext,
    seen: SeenPicture,
    step: usize,
) -> Result<Salient, foveate_core::PolicyError> {
    let parts = seen.frames();
    let (mut policy, mut value) = (vec![], vec![]);
    let mut bytes = vec![];
    let mut opened = Opened::default();
    agent.boxed_clone().open(seen.observation(seen.picture(), &mut bytes), context, &mut opened)?;
    let mut act = |picture: Image<'_>| {
        let mut agent = agent.boxed_clone();
        let observation = seen.observation(picture, &mut bytes);
        let decision = agent.act(observation, &mut context.clone())?;
        Ok((probabilities(&decision), f64::from(decision.value.unwrap_or(0.0))))
    };
    let (usual, worth) = act(seen.picture())?;
    let mut perturber = Perturber::of_stack(seen.picture(), parts);
    for place in 0..perturber.columns() * perturber.rows() {
        let (now, worth_now) = act(perturber.perturbed(place).as_image())?;
        policy.push(half_squared(&now, &usual));
        value.push((worth_now - worth).powi(2) / 2.0);
    }
    let outputs = [policy, value].map(|map| perturber.on_patches(&map, job.fields.grid()));
    drop(perturber);
    let claim: Vec<f64> = opened.claim().into_iter().map(f64::from).collect();
    let heads = (0..job.heads).map(|head| job.fields.of_head(&opened.weights, head));
    let attention = heads.chain([job.fields.pool(&claim)]).map(in_all_one).collect();
    Ok(Salient { step, seen, attention, at_cells: in_all_one(at_cells.pool(&claim)), outputs })
}

/// Perturbation saliency of policy and value, beside attention.
#[derive(Debug)]
pub(in crate::study) struct BesideSaliency;

impl OfHeads for BesideSaliency {
    const NAME: &'static str = "saliency";
    const TITLE: &'static str = "Attention beside perturbation saliency";

    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError> {
        let at_cells = job.fields.at_positions();
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
                    look(job, &at_cells, agent, context, seen, step)
                        .map_err(|error| policy_error(number, step, error))?,
                );
                Ok(())
            })?;
            Ok((result.total, all))
        };
        let played = scheduler.ordered(job.episodes(), play, each)?;
        let scores = played.iter().map(|(score, _)| *score).collect();
        let decisions: Vec<Vec<Salient>> = played.into_iter().map(|(_, all)| all).collect();
        let mut findings = vec![];
        for (output, name) in ["policy", "value"].into_iter().enumerate() {
            let chance = chance(&decisions, output);
            let said = |whose: &str| {
                format!(
                    "{whose}: share on the places most salient for the {name} (dealt at random {chance}); null: at other moments"
                )
            };
            for head in 0..=job.heads {
                let whose = if head == job.heads { "all heads".into() } else { format!("head {head}") };
                findings
                    .extend(overlap(said(&whose), &decisions, output, |salient| &salient.attention[head]));
            }
            let whose = "all heads, cells taken for places";
            findings.extend(overlap(said(whose), &decisions, output, |salient| &salient.at_cells));
        }
        let first = decisions.first().map_or(&[][..], |all| &all[..]);
        let figures = vec![figure(job, &first[..first.len().min(MOMENTS)])];
        Ok(Found { scores, findings, figures })
    }
}

/// The share that a map dealt out at random has on the most salient places, mean over decisions.
fn chance(decisions: &[Vec<Salient>], output: usize) -> String {
    let shares: Vec<f64> = decisions
        .iter()
        .flatten()
        .filter_map(|salient| {
            let values = &salient.outputs[output];
            mass_on_top(&vec![1.0; values.len()], values, TOP)
        })
        .collect();
    if shares.is_empty() { "—".into() } else { percent(foveate_core::statistics::mean(&shares)) }
}

/// The share of a map on the most salient places of its moment, against that of the same map at all moments of other episodes, or,
/// of one episode, of its other moments; nothing where no decision has a salient place and a moment to compare with.
fn overlap(
    name: String,
    decisions: &[Vec<Salient>],
    output: usize,
    map: impl Fn(&Salient) -> &[f64],
) -> Option<HeadNumber> {
    let (mut own, mut null) = (vec![], vec![]);
    for (episode, all) in decisions.iter().enumerate() {
        let (mut here, mut elsewhere) = (vec![], vec![]);
        for (index, salient) in all.iter().enumerate() {
            let on = |map: &[f64]| mass_on_top(map, &salient.outputs[output], TOP);
            let alone = decisions.iter().filter(|all| !all.is_empty()).count() < 2;
            let others: Vec<f64> = decisions
                .iter()
                .enumerate()
                .flat_map(|(e, all)| all.iter().enumerate().map(move |(i, other)| (e, i, other)))
                .filter(|&(e, i, _)| if alone { i != index } else { e != episode })
                .filter_map(|(_, _, other)| on(map(other)))
                .collect();
            if let Some(share) = on(map(salient)).filter(|_| !others.is_empty()) {
                here.push(share);
                elsewhere.push(foveate_core::statistics::mean(&others));
            }
        }
        if !here.is_empty() {
            own.push(foveate_core::statistics::mean(&here));
            null.push(foveate_core::statistics::mean(&elsewhere));
        }
    }
    (!own.is_empty()).then(|| HeadNumber::against(name, &own, &null))
}

fn figure(job: &Job, moments: &[Salient]) -> Figure {
    let mut table = DataTable::new(&["step", "map", "place", "value"]);
    let mut names: Vec<String> = (0..job.heads).map(|head| format!("head {head}")).collect();
    names.extend(["all heads", "policy", "value"].map(String::from));
    let rows: Vec<_> = moments
        .iter()
        .map(|Salient { step, seen, attention, outputs, .. }| {
            let picture = seen.newest_frame();
            let mut pictures = vec![to_buf(picture)];
            for (name, map) in names.iter().zip(attention.iter().chain(outputs)) {
                for (place, &value) in map.iter().enumerate() {
                    table.row([(*step).into(), name.clone().into(), place.into(), value.into()]);
                }
                pictures.push(glow(picture, job.fields.grid(), map));
            }
            (format!("step {step}"), pictures)
        })
        .collect();
    let columns = [vec!["seen".to_owned()], names].concat();
    Figure {
        name: "saliency",
        title: "Attention beside perturbation saliency".into(),
        caption: "Decisions of the first episode. Attention of each head and of all together, at the places that change its cells; half \
                  the squared change of the choices' probabilities (policy), and of the value, when a place of the picture is blurred \
                  (of a stack the same place of all pictures). The brightest place of a map has its largest number."
            .into(),
        wide: true,
        drawing: sheet(&columns, &rows),
        table,
    }
}
