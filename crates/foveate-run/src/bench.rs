//! What `foveate bench` measures: CPU time of this machine, one thread, no reference.
//!
//! `cargo xtask bench` puts these figures beside Gymnasium, EnvPool, NumPy and PyTorch, measured in the same run.

mod evolve;
mod train;

use std::path::Path;

use foveate_agents::registry::{Init, initial_attention_params};
use foveate_agents::{AttentionAgent, AttentionAgentConfig, Level};
use foveate_core::{
    Action, Agent, Env, EnvError, ImageBuf, Observation, Policy, PolicyError, Seat, Seed, episode_seed,
};
use foveate_envs::registry::{self, EnvRequest};
use serde::Serialize;

use crate::RunError;
use crate::clock::{ProcessCpu, ThreadCpu, Wall};
use crate::rollout::Rules;
use crate::workers::{Stop, Workers};

pub use evolve::{EvolveTiming, evolve};
pub use foveate_evolve::Form;
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
    /// Which picture was drawn at every step.
    pub picture: String,
    /// Steps taken.
    pub steps: u64,
    /// CPU seconds of `step` and `reset`, one thread, the fastest of several passes.
    pub cpu_s: f64,
    /// The return of every episode, so that a reader can check that the same episodes were driven.
    pub returns: Vec<f64>,
}

impl WorldTiming {
    /// Steps per CPU second.
    pub fn steps_per_cpu_second(&self) -> f64 {
        self.steps as f64 / self.cpu_s
    }
}

/// Replays `episodes` in the world `id` with `picture`, `passes` times over, and keeps the fastest pass.
///
/// # Errors
/// When the world does not exist or refuses an action.
pub fn world(id: &str, picture: &str, episodes: &[Recorded], passes: usize) -> Result<WorldTiming, EnvError> {
    let request = EnvRequest { id: id.into(), picture: Some(picture.into()), ..EnvRequest::default() };
    let mut env = registry::make(&request)?;
    let mut timing =
        WorldTiming { picture: picture.into(), steps: 0, cpu_s: f64::INFINITY, returns: Vec::new() };
    // The first pass warms the caches and every buffer of the world.
    for pass in 0..=passes.max(1) {
        timing.steps = 0;
        timing.returns.clear();
        let clock = ThreadCpu::start();
        for episode in episodes {
            let (steps, total) = replay(env.as_mut(), episode)?;
            timing.steps += steps;
            timing.returns.push(total);
        }
        if pass > 0 {
            timing.cpu_s = timing.cpu_s.min(clock.elapsed().as_secs_f64());
        }
    }
    Ok(timing)
}

/// Plays one recorded episode to its end or to its last action; gives steps and return.
fn replay(env: &mut dyn Env, episode: &Recorded) -> Result<(u64, f64), EnvError> {
    env.reset(Some(episode.seed));
    let (mut steps, mut total) = (0, 0.0);
    for action in &episode.actions {
        let step = env.step(Action::Continuous(action))?;
        steps += 1;
        total += step.reward;
        if step.is_over() {
            break;
        }
    }
    Ok((steps, total))
}

/// Episodes to measure with when none were recorded: a held random action every ten steps, seeds 0, 1 and 2.
pub fn held_random(steps: usize) -> Vec<Recorded> {
    (0..3)
        .map(|seed| {
            let mut rng = foveate_core::Seed::root(seed).child("bench", 0).rng();
            let mut held = [0.0; 3];
            let actions = (0..steps)
                .map(|t| {
                    if t % 10 == 0 {
                        held = [rng.uniform(-1.0, 1.0), rng.uniform(0.0, 1.0), rng.uniform(0.0, 0.2)];
                    }
                    held.to_vec()
                })
                .collect();
            Recorded { seed, actions }
        })
        .collect()
}

/// The episodes recorded in `folder`: a file `actions_SEED.jsonl` each, one JSON array of numbers per line.
///
/// # Errors
/// When the folder or a file in it cannot be read, or holds something else.
pub fn recorded(folder: &Path) -> Result<Vec<Recorded>, RunError> {
    let mut episodes = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(RunError::io("read", folder))? {
        let path = entry.map_err(RunError::io("read", folder))?.path();
        let seed = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("actions_")?.strip_suffix(".jsonl")?.parse().ok());
        let Some(seed) = seed else { continue };
        let text = std::fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        let actions = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|error| RunError::io("read", &path)(error.into()))?;
        episodes.push(Recorded { seed, actions });
    }
    episodes.sort_by_key(|episode| episode.seed);
    Ok(episodes)
}

/// CPU time of `AttentionAgent`'s forward pass on one instruction set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForwardTiming {
    /// The instruction set.
    pub level: String,
    /// Microseconds of CPU per decision, one thread, the fastest of several passes.
    pub us: f64,
    /// Frames in a pass.
    pub frames: usize,
}

/// Times the published configuration of `AttentionAgent` on `frames`, on every instruction set of this machine.
///
/// # Errors
/// When the frames have another size than the agent was built for.
pub fn forward(frames: &[ImageBuf], passes: usize) -> Result<Vec<ForwardTiming>, PolicyError> {
    let config = AttentionAgentConfig::default();
    let params = initial_attention_params(&config, Init::default(), Seed::root(1));
    let mut timings = Vec::new();
    for level in Level::available() {
        let mut policy = AttentionAgent::new(config.clone())?.with_level(level);
        policy.set_params(&params)?;
        let mut agent = Seat::new(policy);
        let mut best = f64::INFINITY;
        for pass in 0..=passes.max(1) {
            agent.begin_episode(episode_seed(0, 0));
            let clock = ThreadCpu::start();
            for frame in frames {
                std::hint::black_box(agent.act(Observation::Image(frame.as_image()))?.action);
            }
            if pass > 0 {
                best = best.min(clock.elapsed().as_secs_f64());
            }
        }
        let us = best * 1e6 / frames.len().max(1) as f64;
        timings.push(ForwardTiming { level: level.name().into(), us, frames: frames.len() });
    }
    Ok(timings)
}

/// Whole rollouts, world and picture and agent, on several workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RolloutTiming {
    /// Threads.
    pub workers: usize,
    /// Steps taken, all threads together.
    pub steps: u64,
    /// CPU seconds, all threads together.
    pub cpu_s: f64,
    /// Seconds on the wall.
    pub wall_s: f64,
}

/// Times `episodes` whole episodes of `agent` in `env` on `workers` threads.
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
    let mut crew = Workers::new(env, agent, workers, Rules::WHOLE, Stop::default());
    let mut results = Vec::new();
    let (cpu, wall) = (ProcessCpu::start(), Wall::start());
    crew.evaluate_stream(&genome, 1, episodes, &mut results)?;
    Ok(RolloutTiming {
        workers: crew.count(),
        steps: results.iter().map(|result| result.steps).sum(),
        cpu_s: cpu.elapsed().as_secs_f64(),
        wall_s: wall.elapsed().as_secs_f64(),
    })
}

/// Frames of a recorded episode in the world `id` with `picture`, every `every`-th, at most `at_most`.
///
/// # Errors
/// When the world does not exist, refuses an action, or shows no picture.
pub fn frames(
    id: &str,
    picture: &str,
    episode: &Recorded,
    every: usize,
    at_most: usize,
) -> Result<Vec<ImageBuf>, EnvError> {
    let request = EnvRequest { id: id.into(), picture: Some(picture.into()), ..EnvRequest::default() };
    let mut env = registry::make(&request)?;
    env.reset(Some(episode.seed));
    let mut frames = Vec::new();
    for (t, action) in episode.actions.iter().enumerate() {
        if t % every.max(1) == 0
            && frames.len() < at_most
            && let Some(image) = env.observation().image()
        {
            frames.extend(ImageBuf::from_rgb(image.width(), image.height(), image.rgb().to_vec()));
        }
        if env.step(Action::Continuous(action))?.is_over() {
            break;
        }
    }
    Ok(frames)
}
