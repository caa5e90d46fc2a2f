//! Time of training end to end: world, picture, agent and evolution, as in `foveate train`.

use foveate_agents::registry;
use foveate_core::{Executor, Experience};
use foveate_envs::registry::EnvRequest;
use foveate_train::{FreshWeights, Interval, Training};
use serde::Serialize;

use crate::RunError;
use crate::champion::champion;
use crate::clock::ThreadCpu;
use crate::config::TrainConfig;
use crate::initial;
use crate::workers::{Stop, Workers};

/// The initial weights of a measured training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Fresh weights: rollouts are short, resets dominate.
    Fresh,
    /// The bundled agent's weights: rollouts are long.
    Trained,
}

/// CPU time of real generations of training, on one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainTiming {
    /// The initial weights: `fresh` or `trained`.
    pub start: &'static str,
    /// Completed generations.
    pub generations: usize,
    /// Rollouts in them.
    pub rollouts: usize,
    /// Steps in them.
    pub steps: u64,
    /// CPU seconds in total.
    pub cpu_s: f64,
    /// CPU seconds outside of rollouts: `ask` and `tell` of the evolution strategy.
    pub evolution_cpu_s: f64,
}

impl TrainTiming {
    /// Steps per CPU second.
    pub fn steps_per_cpu_second(&self) -> f64 {
        self.steps as f64 / self.cpu_s
    }
}

/// Measures `generations` generations of the first stage of the preset `laptop` with its seed, on this
/// thread.
///
/// # Errors
/// When a rollout fails.
pub fn train(start: Start, generations: usize) -> Result<TrainTiming, RunError> {
    let mut config = TrainConfig::load("laptop", None, &[] as &[&str])?;
    // Only generations are measured: no start may end within them, and no validation may run.
    config.recipe.stages.truncate(1);
    config.recipe.stages[0].steps = u64::from(u32::MAX);
    config.recipe.selection.every = Interval::Steps(u64::from(u32::MAX));
    let env = crate::worlds::make(EnvRequest {
        picture: Some(config.env.picture.clone()),
        ..EnvRequest { id: config.env.id.clone(), ..EnvRequest::default() }
    })?;
    let mut name = config.agent.name.clone();
    let mut settings = serde_json::to_value(&config.agent.config)
        .map_err(|error| RunError::BadRequest { why: format!("agent.config: {error}") })?;
    let fresh: FreshWeights = match start {
        Start::Fresh => initial::fresh(&config.recipe.init, &name, &settings)?,
        Start::Trained => {
            let (file, _) = champion(&config.env.id)?;
            (name, settings) = (file.name().to_owned(), file.config().clone());
            Box::new(move |_| file.params().to_vec())
        }
    };
    let agent = registry::make(&name, &settings)?;
    let mut workers = Workers::new(&*env, &*agent, 1, Stop::default());
    let mut training = Training::new(config.recipe, config.seed, fresh, None)?;
    let mut timing = TrainTiming {
        start: match start {
            Start::Fresh => "fresh",
            Start::Trained => "trained",
        },
        generations,
        rollouts: 0,
        steps: 0,
        cpu_s: 0.0,
        evolution_cpu_s: 0.0,
    };
    let clock = ThreadCpu::start();
    for _ in 0..generations {
        let asked = ThreadCpu::start();
        let Some(work) = training.work() else { break };
        timing.evolution_cpu_s += asked.elapsed().as_secs_f64();
        let mut experience = Experience::default();
        workers.execute(&work, &mut experience)?;
        timing.rollouts += experience.episodes.len();
        timing.steps += experience.episodes.iter().map(|result| result.steps).sum::<u64>();
        let told = ThreadCpu::start();
        training.receive(experience)?;
        timing.evolution_cpu_s += told.elapsed().as_secs_f64();
    }
    timing.cpu_s = clock.elapsed().as_secs_f64();
    Ok(timing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_training_that_is_measured() {
        for (start, name, least) in [(Start::Fresh, "fresh", 21), (Start::Trained, "trained", 100)] {
            let timing = train(start, 2).expect("it trains");
            assert_eq!((timing.start, timing.generations), (name, 2));
            assert_eq!(timing.rollouts, 64, "no validation in between");
            // No rollout is cut before its 21st step; the perturbed weights of the bundled agent still drive
            // a while.
            assert!(timing.steps >= least * timing.rollouts as u64, "{timing:?}");
            assert!(timing.cpu_s > timing.evolution_cpu_s && timing.evolution_cpu_s > 0.0, "{timing:?}");
        }
    }
}
