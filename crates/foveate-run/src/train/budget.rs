//! Checks that this machine has what a training needs before it begins.

use std::path::Path;

use foveate_core::hint::Setting;
use foveate_core::{EnvSpec, MOST_AT_ONCE, TensorShape};
use foveate_train::{Interval, JobSize, LearnerSize, Recipe};
use serde_json::Value;

use crate::budget::{JOB, Need, agent, count, size, workers};
use crate::checkpoint;
use crate::config::TrainConfig;
use crate::error::RunError;
use crate::tensors;

/// A video of an evaluation: twelve seconds at 480 × 270.
const FILM: u64 = 1 << 19;

/// Approximate maximum number of validations of the whole run, each of which may write weights and a video.
fn validations(recipe: &Recipe) -> u64 {
    let between = recipe.stages.iter().map(|stage| {
        let by_steps = stage.steps / recipe.interval_steps();
        let of_a_start = match (recipe.selection.every, stage.generations) {
            (Interval::Generations(n), Some(generations)) => by_steps.min(generations / n.max(1)),
            _ => by_steps,
        };
        // The end of a start is always validated.
        of_a_start.saturating_add(1).saturating_mul(stage.starts as u64)
    });
    between.fold(0, u64::saturating_add)
}

/// Checks that training with `config`, for an agent of these `tensors` and complete `settings`, fits this
/// machine.
///
/// The numbers per step of a demonstration, if the agent learns from any, come with the world's shape.
///
/// # Errors
/// When memory or the disk of `folder` is too small, or a checkpoint would be too large to be read again.
pub(super) fn fits(
    config: &TrainConfig,
    (settings, tensors): (&Value, &[TensorShape]),
    (spec, demonstrated): (&EnvSpec, usize),
    threads: usize,
    folder: &Path,
) -> Result<(), RunError> {
    const JOB_NAME: &str = "this training";
    let recipe = &config.recipe;
    let n = count(tensors);
    let longest = spec.max_steps.map_or(recipe.max_steps, |most| recipe.max_steps.min(most as u64));
    let mut jobs = 0;
    let mut saved = 0;
    let mut largest: Option<LearnerSize> = None;
    for stage in &recipe.stages {
        let Ok(learner) = stage.learner(&recipe.algorithm, 0) else { continue };
        let rows = learner.rows(usize::try_from(n).unwrap_or(usize::MAX)) as u64;
        jobs = jobs.max((rows + 1).saturating_mul(stage.tracks as u64));
        let steps = stage.steps;
        let longest_here =
            stage.max_steps.as_ref().map_or(longest, |most| longest.min(most.largest().ceil() as u64));
        let learner = learner.size(&JobSize {
            params: n,
            longest: longest_here,
            steps,
            tracks: stage.tracks as u64,
            observed: spec.observation.bytes(),
            demonstrated: demonstrated as u64,
        });
        saved = saved.max(learner.saved);
        if largest.as_ref().is_none_or(|known| learner.memory > known.memory) {
            largest = Some(learner);
        }
    }
    let selection = &recipe.selection;
    for tracks in
        [selection.tracks, selection.final_tracks, selection.report_tracks, selection.evaluation_tracks]
    {
        jobs = jobs.max(tracks as u64);
    }
    let best = (selection.finalists as u64).min(validations(recipe)).saturating_mul(n).saturating_mul(8);
    saved = saved.saturating_add(best);

    let mut memory = workers(threads, 0, spec);
    let one = agent(settings, tensors, 1);
    memory = memory
        .with(
            format!("the agents of {threads} workers"),
            2 * threads as u64 + 2,
            one,
            "lower workers or the agent's sizes",
        )
        .with(
            format!("{jobs} episodes of a generation or a judgement"),
            jobs,
            JOB,
            "lower population or tracks",
        )
        .with("the weights of the finalists", 4, best, "lower recipe.selection.finalists");
    if recipe.needs_model() {
        // Each thread has two models and two gradients; there are a few more gradients.
        let threads = threads as u64 + MOST_AT_ONCE as u64;
        let what = format!("learning by gradients on {threads} threads");
        memory = memory.with(what, threads, n.saturating_mul(48), "lower workers or the agent's sizes");
    }
    if let Some(LearnerSize { memory: bytes, what, remedy, .. }) = largest {
        memory = memory.with(what, 1, bytes, remedy);
    }
    memory.fits_memory(JOB_NAME)?;
    if saved > tensors::MAX_FILE {
        return Err(RunError::BadRequest {
            why: format!(
                "a checkpoint of this training would have about {}, and only {} can be read again; lower population, \
                 keep or finalists, choose sep-cma-es or rank-es, or an agent with fewer parameters",
                size(saved),
                size(tensors::MAX_FILE)
            ),
        });
    }
    let films = if config.videos { validations(recipe) } else { 0 };
    let elsewhere = format!("choose a folder on another disk with {}", Setting::Runs);
    Need::default()
        .with("checkpoints", checkpoint::KEEP as u64 + 1, saved, &*elsewhere)
        .with("weights", 4, n.saturating_mul(4), &*elsewhere)
        .with(
            format!("{films} films of evaluations"),
            films,
            FILM,
            format!("train without them: {}", Setting::Videos.to("off")),
        )
        .fits_disk(JOB_NAME, folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SETS: [&str; 0] = [];

    fn spec() -> EnvSpec {
        let request = foveate_envs::registry::EnvRequest { id: "car-racing".into(), ..Default::default() };
        foveate_registry::make(&request).expect("a native world").spec().clone()
    }

    fn check_training(preset: &str, sets: &[&str]) -> Result<(), String> {
        let config = TrainConfig::load(preset, None, sets).expect("a configuration");
        let settings = config.agent.settings().expect("settings");
        let settings =
            foveate_agents::registry::full_config(&config.agent.name, &settings).expect("an agent");
        let tensors = foveate_agents::registry::tensors(&config.agent.name, &settings).expect("an agent");
        fits(&config, (&settings, &tensors), (&spec(), 23), 2, Path::new("."))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn presets_fit() {
        // Presets whose agent fits a native world without changes.
        for preset in ["laptop", "laptop-relu", "evolution", "paper", "take-cover"] {
            check_training(preset, &NO_SETS).expect(preset);
        }
        check_training("paper", &["agent.config.hidden=24", "workers=64"]).expect("a little larger");
    }

    #[test]
    fn trainings_that_cannot_fit_are_refused() {
        for (preset, sets, wants) in [
            (
                "paper",
                &["agent.config.hidden=3000"][..],
                &["36274187 parameters", "PB of memory", "choose sep-cma-es"][..],
            ),
            ("paper", &["agent.config.hidden=60"], &["checkpoint"]),
            (
                "evolution",
                &["agent.config.hidden=3000", "recipe.stage.0.population=65536"],
                &["65536 genomes", "TB"],
            ),
            (
                "evolution",
                &["recipe.stage.0.population=65536", "recipe.stage.0.tracks=65536"],
                &["episodes of a"],
            ),
            ("laptop", &["recipe.max_steps=9000000000000000000"], &[]),
        ] {
            match check_training(preset, sets) {
                Err(said) => {
                    assert!(wants.iter().all(|want| said.contains(want)), "{sets:?}: {said}");
                    assert!(said.contains("; ") && said.lines().count() == 1, "{said}");
                }
                Ok(()) => assert!(wants.is_empty(), "{sets:?} was not refused"),
            }
        }
    }
}
