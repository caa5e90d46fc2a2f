//! What `foveate bench` measures: CPU time of this machine, one thread, no reference.
//!
//! `cargo xtask bench` puts these figures beside Gymnasium, EnvPool, NumPy and PyTorch, measured in the same run.

use foveate_core::{Action, Env, EnvError, ImageBuf};
use foveate_envs::registry::{self, EnvRequest};
use serde::Serialize;

use crate::clock::ThreadCpu;

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

/// CPU time of an agent's forward pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForwardTiming {
    /// Microseconds of CPU per decision, one thread, the fastest of several passes.
    pub us: f64,
    /// Frames in a pass.
    pub frames: usize,
}

/// Times `agent` on `frames`, in order, `passes` times over, and keeps the fastest pass.
///
/// # Errors
/// When the agent was built for another picture.
pub fn forward(
    agent: &mut dyn foveate_core::Agent,
    frames: &[ImageBuf],
    passes: usize,
) -> Result<ForwardTiming, foveate_core::PolicyError> {
    let mut best = f64::INFINITY;
    for pass in 0..=passes.max(1) {
        agent.begin_episode();
        let clock = ThreadCpu::start();
        for frame in frames {
            std::hint::black_box(agent.act(foveate_core::Observation::Image(frame.as_image()))?.action);
        }
        if pass > 0 {
            best = best.min(clock.elapsed().as_secs_f64());
        }
    }
    Ok(ForwardTiming { us: best * 1e6 / frames.len().max(1) as f64, frames: frames.len() })
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
            && let foveate_core::Observation::Image(image) = env.observation()
        {
            frames.extend(ImageBuf::from_rgb(image.width(), image.height(), image.rgb().to_vec()));
        }
        if env.step(Action::Continuous(action))?.is_over() {
            break;
        }
    }
    Ok(frames)
}
