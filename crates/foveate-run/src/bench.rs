//! Measurements of `foveate bench`: CPU time on this machine, one thread, without reference systems.
//!
//! `cargo xtask bench` compares these figures with Gymnasium, EnvPool, NumPy and PyTorch, measured in the
//! same run.

mod evolve;
mod forward;
mod train;

use std::path::Path;
use std::time::Duration;

use foveate_core::episode::{
    ActionRecorder, Actor, ActorError, BeforeStep, Chosen, Episode, EpisodeRules, Observer, RawAction,
    RecordedActor,
};
use foveate_core::{ActContext, ActMode, Agent, Env, EvaluateError, Experience, ImageBuf, Rng, Seed};
use foveate_envs::registry::EnvRequest;
use serde::Serialize;

use crate::RunError;
use crate::clock::{ProcessCpu, ThreadCpu, Wall};
use crate::input;
use crate::workers::{Stop, Workers};

pub use evolve::{EvolveTiming, evolve};
pub use forward::{Decisions, ForwardTiming};
pub use train::{Start, TrainTiming, train};

/// One recorded episode: the seed of its reset and its actions.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Seed given to `reset`.
    pub seed: u64,
    /// `[steps][action dimensions]`.
    pub actions: Vec<Vec<f64>>,
}

/// CPU time of a world over recorded episodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorldTiming {
    /// The picture that was rendered in every step.
    pub picture: String,
    /// Steps taken.
    pub steps: u64,
    /// CPU seconds of `step` alone, one thread, the fastest of several passes.
    pub cpu_s: f64,
    /// The return of every episode, so that a reader can check that the same episodes were run.
    pub returns: Vec<f64>,
}

impl WorldTiming {
    /// Steps per CPU second.
    pub fn steps_per_cpu_second(&self) -> f64 {
        self.steps as f64 / self.cpu_s
    }
}

/// Replays `episodes` in the world `id` with `picture`, `passes` times, and keeps the fastest pass.
///
/// # Errors
/// When the world does not exist or rejects an action.
pub fn world(id: &str, picture: &str, episodes: &[Recorded], passes: usize) -> Result<WorldTiming, RunError> {
    let request = EnvRequest { id: id.into(), picture: Some(picture.into()), ..EnvRequest::default() };
    let mut env = foveate_registry::make(&request)?;
    let mut timing =
        WorldTiming { picture: picture.into(), steps: 0, cpu_s: f64::INFINITY, returns: Vec::new() };
    // The first pass warms the caches and every buffer of the world.
    for pass in 0..=passes.max(1) {
        timing.steps = 0;
        timing.returns.clear();
        let mut cpu_s = 0.0;
        for episode in episodes {
            let (steps, total, cpu) = replay(env.as_mut(), episode)?;
            timing.steps += steps;
            timing.returns.push(total);
            cpu_s += cpu.as_secs_f64();
        }
        if pass > 0 {
            timing.cpu_s = timing.cpu_s.min(cpu_s);
        }
    }
    Ok(timing)
}

/// Replays one recorded episode to its end or to its last action; returns steps, return and the CPU time of
/// the steps.
fn replay(env: &mut dyn Env, recorded: &Recorded) -> Result<(u64, f64, Duration), RunError> {
    let mut actor = RecordedActor(&recorded.actions);
    let mut episode = Episode::of_seed(recorded.seed, actor.rules());
    episode.reset(env, &mut actor);
    let clock = ThreadCpu::start();
    let result = episode.finish::<EvaluateError>(env, &mut actor, &mut ())?;
    Ok((result.steps, result.total, clock.elapsed()))
}

/// Seeds of the tracks of [`drives`].
const LAPS: [u64; 2] = [0, 1];
const WORSE: u64 = 2;
/// Alternation of the perturbed episode: after twice as many steps of the expert's steering, so many of a
/// random one.
const TURN: u64 = 10;

/// Episodes to measure the world `id` with, of at most `steps` steps each: one of the world's own expert on
/// each of two tracks of `picture`, and a third in which its steering is random at intervals, so that the car
/// leaves the road and returns.
///
/// # Errors
/// When the world does not exist or has no expert.
pub fn drives(id: &str, picture: &str, steps: usize) -> Result<Vec<Recorded>, RunError> {
    let request = EnvRequest { id: id.into(), picture: Some(picture.into()), ..EnvRequest::default() };
    let mut env = foveate_registry::make(&request)?;
    LAPS.into_iter().chain([WORSE]).map(|seed| record(env.as_mut(), seed, steps, seed == WORSE)).collect()
}

/// One episode of the expert.
fn record(env: &mut dyn Env, seed: u64, steps: usize, worse: bool) -> Result<Recorded, RunError> {
    let rng = Seed::root(seed).child("bench", 0).rng();
    let mut actor = ExpertActor { rng, action: [0.0; 3], steer: 0.0, worse };
    let mut recorder = ActionRecorder::default();
    let rules = EpisodeRules { max_steps: steps as u64, ..EpisodeRules::WHOLE };
    Episode::of_seed(seed, rules).run::<EvaluateError>(env, &mut actor, &mut recorder)?;
    Ok(Recorded { seed, actions: recorder.actions })
}

/// The world's expert; if `worse`, its steering is random at intervals.
struct ExpertActor {
    rng: Rng,
    action: [f64; 3],
    steer: f64,
    worse: bool,
}

impl Actor for ExpertActor {
    fn act(&mut self, env: &mut dyn Env, step: u64, _: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        env.expert(&mut self.action)?;
        if self.worse && step / TURN % 3 == 2 {
            if step.is_multiple_of(TURN) {
                self.steer = self.rng.uniform(-1.0, 1.0);
            }
            self.action[0] = self.steer;
        }
        Ok(Chosen { action: RawAction::Outputs(&self.action), decision: None })
    }
}

/// Longer recordings are no episode.
const MAX_ACTIONS: u64 = 64 << 20;

/// Reads the episodes recorded in `folder`: one file `actions_SEED.jsonl` each, with one JSON array of
/// numbers per line.
///
/// # Errors
/// When the folder or a file in it cannot be read, or has other contents.
pub fn recorded(folder: &Path) -> Result<Vec<Recorded>, RunError> {
    let mut episodes = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(RunError::io("read", folder))? {
        let path = entry.map_err(RunError::io("read", folder))?.path();
        let seed = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("actions_")?.strip_suffix(".jsonl")?.parse().ok());
        let Some(seed) = seed else { continue };
        let bytes = input::read(&path, MAX_ACTIONS)?.map_err(|size| RunError::BadRequest {
            why: format!("{}: {size} bytes, at most {MAX_ACTIONS} are an episode", path.display()),
        })?;
        let actions = String::from_utf8_lossy(&bytes)
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|error| RunError::io("read", &path)(error.into()))?;
        episodes.push(Recorded { seed, actions });
    }
    episodes.sort_by_key(|episode| episode.seed);
    Ok(episodes)
}

/// Timing of complete rollouts, with world, picture and agent, on several workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RolloutTiming {
    /// Threads.
    pub workers: usize,
    /// Steps taken, over all threads.
    pub steps: u64,
    /// CPU seconds, over all threads.
    pub cpu_s: f64,
    /// Seconds of wall time.
    pub wall_s: f64,
}

/// Measures the time of `episodes` whole episodes of `agent` in `env` on `workers` threads.
///
/// # Errors
/// When a rollout fails.
pub fn rollouts(
    env: &dyn Env,
    agent: &dyn Agent,
    workers: usize,
    episodes: usize,
) -> Result<RolloutTiming, RunError> {
    let genome = agent.params();
    let mut pool = Workers::new(env, agent, workers, Stop::default());
    let mut experience = Experience::default();
    let (cpu, wall) = (ProcessCpu::start(), Wall::start());
    pool.evaluate_stream(&genome, (1, episodes), EpisodeRules::WHOLE, ActMode::Greedy, &mut experience)?;
    Ok(RolloutTiming {
        workers: pool.count(),
        steps: experience.episodes.iter().map(|result| result.steps).sum(),
        cpu_s: cpu.elapsed().as_secs_f64(),
        wall_s: wall.elapsed().as_secs_f64(),
    })
}

/// Frames of a recorded episode in the world `id` with `picture`, every `every`-th, at most `at_most`.
///
/// # Errors
/// When the world does not exist, rejects an action, or shows no picture.
pub fn frames(
    id: &str,
    picture: &str,
    recorded: &Recorded,
    every: usize,
    at_most: usize,
) -> Result<Vec<ImageBuf>, RunError> {
    let request = EnvRequest { id: id.into(), picture: Some(picture.into()), ..EnvRequest::default() };
    let mut env = foveate_registry::make(&request)?;
    let mut actor = RecordedActor(&recorded.actions);
    let mut frames = FrameRecorder { every: every.max(1) as u64, at_most, frames: Vec::new() };
    Episode::of_seed(recorded.seed, actor.rules()).run::<EvaluateError>(
        &mut *env,
        &mut actor,
        &mut frames,
    )?;
    Ok(frames.frames)
}

/// Keeps some of the observed frames.
struct FrameRecorder {
    every: u64,
    at_most: usize,
    frames: Vec<ImageBuf>,
}

impl<E> Observer<E> for FrameRecorder {
    fn before_step(&mut self, step: BeforeStep<'_>) -> Result<(), E> {
        if step.step.is_multiple_of(self.every)
            && self.frames.len() < self.at_most
            && let Some(image) = step.env.observation().image()
        {
            self.frames.push(image.to_image());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expert_drives_on_the_tracks_of_the_picture_that_is_measured() {
        for picture in ["none", "classic"] {
            let episodes = drives("car-racing", picture, 1000).expect("it has an expert");
            let timing = world("car-racing", picture, &episodes, 1).expect("it drives");
            assert!(timing.returns[..2].iter().all(|&total| total > 850.0), "laps: {timing:?}");
            assert!((100.0..850.0).contains(&timing.returns[2]), "a worse drive, {picture}: {timing:?}");
            assert_eq!(
                timing.steps,
                episodes.iter().map(|episode| episode.actions.len() as u64).sum::<u64>()
            );
            assert!(timing.cpu_s > 0.0 && timing.cpu_s.is_finite());
        }
        // Their tracks differ, so a lap of one is not a lap of the other.
        let episodes = drives("car-racing", "none", 1000).expect("it has an expert");
        let astray = world("car-racing", "classic", &episodes[..2], 1).expect("it drives");
        assert!(astray.returns.iter().all(|&total| total < 600.0), "{astray:?}");
        assert!(drives("cart-pole", "none", 10).is_err(), "no such world");
    }
}
