//! Estimates the cost of a training run before it starts.
//!
//! These are estimates from a few measurements, which the documents name; other worlds have none.

use foveate_core::TensorShape;
use foveate_registry::WORLDS;
use foveate_train::Stage;

use crate::config::TrainConfig;
use crate::workers::default_workers;

/// Training below this estimate starts without a message.
const WORTH_SAYING_HOURS: f64 = 1.0;

/// Measured needs of a full covariance matrix for this many parameters (docs/runs.md), in MB: memory of the
/// process with one worker, and a checkpoint.
const FULL_MATRIX: (f64, f64, f64) = (3667.0, 483.0, 54.0);

/// Checkpoints that a run keeps.
const CHECKPOINTS: f64 = 3.0;

/// The maximum cost of a training run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Steps of training.
    pub steps: u64,
    /// CPU hours, if the whole run is as fast as the fastest measured phase, and if it is as slow as the
    /// slowest.
    pub cpu_hours: [f64; 2],
    /// Number of threads.
    pub workers: usize,
    /// Memory and disk in MB, if they exceed a few hundred MB and a few MB.
    pub megabytes: Option<[f64; 2]>,
}

impl Cost {
    /// The maximum cost of `config` with an agent of these tensors; `None` if its world was not measured.
    pub fn of(config: &TrainConfig, tensors: &[TensorShape]) -> Option<Self> {
        let speeds = WORLDS.get(&config.env.id)?.speeds;
        let speed = speeds.iter().find(|(picture, _)| *picture == config.env.picture)?.1;
        let recipe = &config.recipe;
        let stages = recipe.stages.iter().map(|stage| most_steps(stage, recipe.max_steps));
        let steps = stages.fold(0, u64::saturating_add);
        let full = |stage: &Stage| stage.algorithm.as_deref().unwrap_or(&recipe.algorithm) == "cma-es";
        let params = tensors.iter().map(TensorShape::len).sum::<usize>() as f64;
        let (measured, memory, checkpoint) = FULL_MATRIX;
        let megabytes = recipe.stages.iter().any(full).then(|| {
            let scale = (params / measured).powi(2);
            [memory * scale, CHECKPOINTS * checkpoint * scale]
        });
        Some(Cost {
            steps,
            cpu_hours: [speed[1], speed[0]].map(|speed| steps as f64 / speed / 3600.0),
            workers: if config.workers == 0 { default_workers() } else { config.workers },
            megabytes,
        })
    }

    /// The message before a training run of more than an hour.
    pub fn warning(&self) -> Option<String> {
        let Cost { steps, cpu_hours: [low, high], workers, megabytes } = *self;
        if high <= WORTH_SAYING_HOURS {
            return None;
        }
        let hours = |low: f64, high: f64| format!("{} to {} hours", hours(low), hours(high));
        let mut text = format!(
            "this costs up to {} steps: {} of CPU time, estimated from speeds of an AMD EPYC (docs/runs.md), on {workers} \
             {} about {}",
            millions(steps),
            hours(low, high),
            if workers == 1 { "thread" } else { "threads" },
            hours(low / workers as f64, high / workers as f64),
        );
        if let Some([memory, disk]) = megabytes {
            text.push_str(&format!("; {memory:.0} MB of memory and {disk:.0} MB of disk for checkpoints"));
        }
        Some(text)
    }
}

/// Steps of all starts of a stage, if every episode has full length.
fn most_steps(stage: &Stage, max_steps: u64) -> u64 {
    let population = stage.options.get("population").and_then(toml::Value::as_integer);
    let population = population.and_then(|n| u64::try_from(n).ok());
    let generations = stage.generations.zip(population).map(|(generations, population)| {
        generations.saturating_mul(population).saturating_mul(stage.tracks as u64).saturating_mul(max_steps)
    });
    stage.steps.min(generations.unwrap_or(u64::MAX)).saturating_mul(stage.starts as u64)
}

/// Rounds to two digits, the precision of the estimate.
fn hours(hours: f64) -> String {
    match hours {
        0.0..9.5 => format!("{hours:.1}"),
        9.5..95.0 => format!("{hours:.0}"),
        _ => format!("{:.0}", (hours / 10.0).round() * 10.0),
    }
}

fn millions(steps: u64) -> String {
    match steps {
        0..1_000_000_000 => format!("{:.1} million", steps as f64 / 1e6),
        _ => format!("{:.1} billion", steps as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(preset: &str, sets: &[&str]) -> Option<String> {
        let sets = [sets, &["workers=2"]].concat();
        let config = TrainConfig::load(preset, None, &sets).expect("a preset");
        let settings = config.agent.settings().expect("plain");
        let tensors = foveate_agents::registry::tensors(&config.agent.name, &settings).expect("an agent");
        Cost::of(&config, &tensors)?.warning()
    }

    #[test]
    fn what_takes_hours_is_said() {
        let paper = "this costs up to 8.2 billion steps: 160 to 260 hours of CPU time, estimated from speeds of an AMD EPYC \
                     (docs/runs.md), on 2 threads about 78 to 130 hours; 483 MB of memory and 162 MB of disk for checkpoints";
        for (preset, sets, expect) in [
            ("laptop", &[][..], None),
            ("laptop-relu", &[], None),
            ("evolution", &[], None),
            ("take-cover", &[], None),
            ("paper", &[], Some(paper)),
            ("paper", &["recipe.stage.0.generations=3"], None),
            ("paper", &["env.id=gym:CarRacing-v3"], None),
        ] {
            assert_eq!(warning(preset, sets).as_deref(), expect, "{preset} {sets:?}");
        }
        let slow = warning("take-cover", &["env.picture=exact"]).expect("four hours");
        assert!(
            slow.contains("4.4 million steps: 4.0 to 4.2 hours of CPU time") && !slow.contains("disk"),
            "{slow}"
        );
    }
}
