//! Kinds of things taken out of what the world shows: does the agent look at them, and does it act on them?
//!
//! Unlike a covered patch, the changed picture is one that the world draws itself
//! ([`StateEdit::Erase`]), so the claim “it looks at the kerb” is tested by a road without
//! kerbs.

use foveate_core::episode::{Episode, EpisodeRules};
use foveate_core::statistics::paired;
use foveate_core::{Env, EnvError, EvaluateError, Observation, RolloutJob, StateEdit};
use serde::Serialize;

use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::phases::MeasuredPictures;
use super::super::play::{EpisodeStart, ObservedStep, action_scale, policy_error};
use super::super::seen::SeenPicture;
use super::super::words::{dot, intervals, whole};
use super::super::{Mean, StudyError};
use crate::Mask;
use crate::charts::{DotPlot, DotRow, dots, percent};
use crate::estimate::Estimate;
use crate::figure::{Figure, Ink, short};
use crate::page::{PageTable, Section};

/// A decision with a kind of thing taken out of the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::study) struct Erased {
    /// Which kind, of the world's.
    pub(in crate::study) kind: usize,
    /// Share of the picture's pixels that changed.
    pub(in crate::study) pixels: f64,
    /// Share of those pixels in what the agent looked at; `None` for an agent that looks at no place.
    pub(in crate::study) looked_at: Option<f64>,
    /// Change of the action.
    pub(in crate::study) change: f64,
}

/// What was found about a kind of thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Erasure {
    /// The kind.
    pub kind: String,
    /// Share of the picture that shows it.
    pub pixels: Estimate,
    /// Share of it in what the agent looks at; above `pixels`, it looks at it more than at random places.
    pub looked_at: Option<Estimate>,
    /// Change of the action when it is taken out.
    pub change: Estimate,
    /// Mean score of whole episodes without it.
    pub score: f64,
    /// How much lower that is than with it, with its interval over the same episodes.
    pub cost: Option<Mean>,
}

/// Takes every kind of thing out of a decision whose agent was kept; none of one whose agent was not.
pub(in crate::study) fn decision(
    moment: &ObservedStep<'_>,
    job: RolloutJob,
) -> Result<Vec<Erased>, StudyError> {
    let Some((agent, context)) = &moment.before else { return Ok(vec![]) };
    let (kinds, scale) = (moment.env.kinds(), action_scale(moment.env.spec()));
    let failed = |error| policy_error(job, moment.step, error);
    let grid = moment.decision.attention.as_ref().and_then(|attention| attention.tokens().grid());
    let [width, height] = moment.seen.size();
    let looked = grid.map(|grid| Mask::of_patches(width, height, grid, moment.claim));
    let mut all = vec![];
    for (kind, name) in kinds.iter().enumerate() {
        let mut edited = moment.env.boxed_clone();
        if !erase(&mut *edited, name)? {
            continue;
        }
        let after = SeenPicture::of(&*edited, grid)?;
        let changed = changed(moment.seen, &after);
        let pixels = changed.iter().filter(|&&changed| changed).count() as f64;
        let looked_at = looked.as_ref().map(|mask| {
            let inside = (0..changed.len()).filter(|&i| mask.pixels()[i]);
            let (hit, count) =
                inside.fold((0, 0), |(hit, count), i| (hit + usize::from(changed[i]), count + 1));
            hit as f64 / f64::from(count.max(1))
        });
        let mut again = agent.boxed_clone();
        let action = again.act(edited.observation(), &mut context.clone()).map_err(failed)?.action;
        all.push(Erased {
            kind,
            pixels: pixels / changed.len().max(1) as f64,
            looked_at,
            change: scale.distance(action, moment.decision.action),
        });
    }
    Ok(all)
}

/// Takes a kind of thing out; `false` where the world as it is shown cannot be edited.
fn erase(env: &mut dyn Env, kind: &str) -> Result<bool, StudyError> {
    match env.edit_state(&StateEdit::Erase(kind)) {
        Ok(()) => Ok(matches!(env.observation(), Observation::Image(_))),
        Err(EnvError::NoEdits { .. } | EnvError::BadEdit { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Which pixels of the newest picture changed.
fn changed(before: &SeenPicture, after: &SeenPicture) -> Vec<bool> {
    let [a, b] = [before.newest(), after.newest()].map(|image| image.rgb().as_chunks::<3>().0);
    a.iter().zip(b).map(|(a, b)| a != b).collect()
}

/// The score of the whole episode without a kind of thing; `None` where the world as it is shown cannot be edited.
pub(in crate::study) fn play_without(start: EpisodeStart, kind: usize) -> Result<Option<f64>, StudyError> {
    let EpisodeStart { mut env, mut agent, job, max_steps } = start;
    let name = env.kinds()[kind];
    if !erase(&mut *env, name)? {
        return Ok(None);
    }
    let mut episode = Episode::new(job, EpisodeRules { max_steps: max_steps as u64, ..EpisodeRules::WHOLE });
    episode.resume(&mut *agent);
    Ok(Some(episode.finish::<EvaluateError>(&mut *env, &mut *agent, &mut ())?.total))
}

/// What was found, given decisions of every episode, and the scores of whole episodes with and without each kind.
pub(in crate::study) fn erasures(
    kinds: &[&str],
    episodes: &[Vec<Erased>],
    scores: &[Vec<f64>],
    usual: &[f64],
) -> Vec<Erasure> {
    let of = |(kind, (name, scores)): (usize, (&&str, &Vec<f64>))| {
        let sums = |value: &dyn Fn(&Erased) -> Option<f64>| {
            let all = episodes.iter().map(|all| {
                let values = all.iter().filter(|erased| erased.kind == kind).filter_map(value);
                values.fold([0.0, 0.0], |[sum, count], value| [sum + value, count + 1.0])
            });
            let (above, below): (Vec<f64>, Vec<f64>) = all.map(|[sum, count]| (sum, count)).unzip();
            // Shares of pixels, of looks, and of an action's extent.
            Some(Estimate::ratio(&above, &below)?.within([0.0, 1.0]))
        };
        let cost = paired(scores, usual).map(|found| (found.difference, found.interval));
        Some(Erasure {
            kind: (*name).to_owned(),
            pixels: sums(&|erased| Some(erased.pixels))?,
            looked_at: sums(&|erased| erased.looked_at),
            change: sums(&|erased| Some(erased.change))?,
            score: foveate_core::statistics::mean(scores),
            cost,
        })
    };
    kinds.iter().zip(scores).enumerate().filter_map(of).collect()
}

/// Things taken out of the world, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Erasures {
    /// Kinds of things taken out of what the world shows.
    pub erasures: Vec<Erasure>,
}

/// Things taken out of the world.
#[derive(Debug)]
pub(in crate::study) struct Without;

impl Analysis for Without {
    fn name(&self) -> &'static str {
        "without"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredPictures>() else { return Ok(None) };
        let erasures = found.erasures.clone();
        if erasures.is_empty() {
            return Ok(Some(Finding::new(Erasures { erasures })));
        }
        let section = Section {
            id: "without".into(),
            title: "Things taken out of the world".into(),
            lead: vec![
                "A covered patch is a picture that the world never shows. Here the world itself is drawn without a kind of thing, \
                 its physics unchanged, so that “it looks at the kerb” is tested by a road without kerbs."
                    .into(),
            ],
            tables: vec![table(&erasures)],
            figures: vec![figure(&erasures, bench.episodes())],
            ..Section::default()
        };
        let line = |of: &Erasure| {
            format!(
                "without {:24} action changes by {}, score {}",
                of.kind,
                of.change.percent(),
                whole(of.score)
            )
        };
        let lines = erasures.iter().map(line).collect();
        Ok(Some(Finding { lines, section: Some(section), ..Finding::new(Erasures { erasures }) }))
    }
}

fn table(erasures: &[Erasure]) -> PageTable {
    let rows = erasures.iter().map(|of| {
        let cost = of.cost.map_or("—".into(), |(difference, interval)| match interval {
            Some([low, high]) => {
                format!("{} ({} … {})", whole(-difference), whole(-high), whole(-low))
            }
            None => whole(-difference),
        });
        [
            of.kind.clone(),
            of.pixels.percent(),
            of.looked_at.as_ref().map_or("—".into(), Estimate::percent),
            of.change.percent(),
            whole(of.score),
            cost,
        ]
    });
    PageTable::new(
        [
            "without",
            "share of the picture",
            "share of what it looks at",
            "action changes by",
            "score",
            "more or less than with it",
        ],
        rows,
    )
}

fn figure(erasures: &[Erasure], episodes: usize) -> Figure {
    let mut rows = vec![];
    for erasure in erasures {
        let mut row = |kind: &str, ink: Ink, of: &Estimate, remark: Option<(Ink, String)>| {
            rows.push(DotRow { remark, ..dot(&*erasure.kind, kind, ink, (of.value, of.interval)) });
        };
        let remark = erasure.cost.map(|(lost, _)| (Ink::Text, format!("score {}", short(-lost.round()))));
        row("change of the action", Ink::Attention, &erasure.change, remark);
        row("its share of the picture", Ink::Muted, &erasure.pixels, None);
        if let Some(looked_at) = &erasure.looked_at {
            row("its share of what it looks at", Ink::Control, looked_at, None);
        }
    }
    dots(DotPlot {
        name: "erased",
        title: "Things taken out of the world",
        caption: format!(
            "A kind of thing is taken out and the picture drawn anew. On the right: what whole episodes without it score more or \
             less. {}.",
            intervals("Bars", episodes)
        ),
        wide: true,
        axis: "share",
        domain: None,
        band: None,
        label: percent,
        rows,
    })
}
