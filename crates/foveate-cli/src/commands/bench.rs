//! `foveate bench`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use foveate::Seed;
use foveate::core::EvolveError;
use foveate::envs::registry::EnvRequest;
use foveate::evolve::{CmaEs, CmaEsConfig, Form};
use foveate::run::bench::{
    self, Decisions, EvolveTiming, ForwardTiming, RolloutTiming, Start, TrainTiming, WorldTiming,
};
use foveate::run::workers::default_workers;
use foveate::run::worlds;
use serde_json::{Map, Value, json};

use crate::out;

/// Measure the speed of this machine: the world, the agent, whole rollouts, training, CMA-ES
#[derive(Debug, Args)]
#[command(after_help = "\
World, agent and training are measured in CPU time of one thread, the fastest of several passes,
to reduce the influence of other work on the machine. The world's expert drives: two laps, and one
that leaves the road at times. The agent is the bundled one, on frames of a lap.
Training is that of the preset `laptop`, evolution included: its first generations, whose
rollouts are short, and generations around the bundled agent, whose rollouts are long.
`cargo xtask bench`, in the source tree, compares with Gymnasium, EnvPool, NumPy and PyTorch.

Examples:
  foveate bench
  foveate bench train
  foveate bench world --json
  foveate bench world --actions drives/     # actions_SEED.jsonl, one [steer, gas, brake] a line
  foveate bench forward --write frames/     # frames.u8 and params.f32, for another program")]
pub(crate) struct Bench {
    /// What to measure [default: everything]
    #[arg(value_enum)]
    what: Vec<What>,
    /// A folder of recorded episodes to replay instead; not with the picture `classic`, which has other tracks
    #[arg(long, value_name = "FOLDER")]
    actions: Option<PathBuf>,
    /// A folder for the frames and weights of `forward`
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Repetitions of each measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    passes: u16,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Steps of CarRacing with each picture
    World,
    /// AttentionAgent's decision on each instruction set
    Forward,
    /// World, picture and agent together, on one thread and on all
    Rollout,
    /// CMA-ES at 3,667 parameters; also with eigenvectors if named, in a build with `--features eigen`
    Evolve,
    /// Generations of training, evolution included, on one thread
    Train,
}

const WORLD: &str = "car-racing";
/// Parameters of the published agent, and the population that it was trained with.
const CMA_ES: (usize, usize) = (3667, 256);
/// Maximum steps of an episode.
const STEPS: usize = 1000;
/// Generations of training from fresh weights and from trained ones: some 50,000 steps each.
const GENERATIONS: [(Start, usize); 2] = [(Start::Fresh, 16), (Start::Trained, 3)];

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let wanted = |what| self.what.is_empty() || self.what.contains(&what);
        let passes = usize::from(self.passes);
        let mut found = Map::new();
        let mut text = String::new();
        if wanted(What::World) {
            let episodes = match &self.actions {
                Some(folder) => bench::recorded(folder)?,
                None => bench::drives(WORLD, "none", STEPS)?,
            };
            anyhow::ensure!(
                !episodes.is_empty(),
                "the folder holds no actions_SEED.jsonl; record some, or leave --actions out"
            );
            let classic = bench::drives(WORLD, "classic", STEPS)?;
            let timings = ["none", "classic", "fast", "exact"]
                .iter()
                .map(|&picture| {
                    bench::world(
                        WORLD,
                        picture,
                        if picture == "classic" { &classic } else { &episodes },
                        passes,
                    )
                })
                .collect::<Result<Vec<_>, _>>()?;
            text += &world_text(&timings);
            found.insert("world".into(), json!(timings));
        }
        if wanted(What::Forward) {
            let decisions = Decisions::of_the_champion()?;
            if let Some(folder) = &self.write {
                decisions.write(folder)?;
            }
            let timings = decisions.time(passes)?;
            text += &forward_text(&timings);
            found.insert("forward".into(), json!(timings));
        }
        if wanted(What::Rollout) {
            let request =
                EnvRequest { id: WORLD.into(), picture: Some("fast".into()), ..EnvRequest::default() };
            let env = worlds::make(request)?;
            let agent = foveate::agents::registry::make("attention-agent", &Value::Object(Map::new()))?;
            let workers = default_workers();
            let timings = [1, workers]
                .iter()
                .map(|&workers| bench::rollouts(&*env, &*agent, workers, 4 * workers))
                .collect::<Result<Vec<_>, _>>()?;
            text += &rollout_text(&timings);
            found.insert("rollout".into(), json!(timings));
        }
        if wanted(What::Train) {
            let mut timings = vec![];
            for (start, generations) in GENERATIONS {
                let mut best = bench::train(start, generations)?;
                for _ in 1..passes {
                    let again = bench::train(start, generations)?;
                    if again.cpu_s < best.cpu_s {
                        best = again;
                    }
                }
                timings.push(best);
            }
            text += &train_text(&timings);
            found.insert("train".into(), json!(timings));
        }
        if wanted(What::Evolve) {
            // Eigenvectors take a minute, so they are only measured on request.
            let forms = if self.what.is_empty() { &Form::BUILT[..1] } else { Form::BUILT };
            let timings = forms
                .iter()
                .map(|&form| evolve(form, CMA_ES, if form == Form::default() { passes } else { 1 }))
                .collect::<Result<Vec<_>, _>>()?;
            text += &evolve_text(&timings);
            found.insert("evolve".into(), json!(timings));
        }
        if self.json { Ok(out::say_json(&Value::Object(found))?) } else { Ok(out::say(text.trim_end())?) }
    }
}

fn world_text(timings: &[WorldTiming]) -> String {
    let mut text = "CarRacing, one thread:\n".to_string();
    for timing in timings {
        let speed = timing.steps_per_cpu_second();
        let what = match timing.picture.as_str() {
            "none" => "no picture".to_string(),
            picture => format!("picture {picture}"),
        };
        text += &format!("  {what:16} {speed:9.0} steps per CPU second  {:8.1} µs a step\n", 1e6 / speed);
    }
    text
}

fn forward_text(timings: &[ForwardTiming]) -> String {
    let mut text = "AttentionAgent (champion), one decision, one thread:\n".to_string();
    for timing in timings {
        text += &format!("  {:16} {:8.1} µs\n", timing.level, timing.us);
    }
    text
}

fn rollout_text(timings: &[RolloutTiming]) -> String {
    let mut text = "Rollouts, world with picture fast and agent:\n".to_string();
    for timing in timings {
        text += &format!(
            "  {:2} workers {:9.0} steps per CPU second  {:9.0} steps per second\n",
            timing.workers,
            timing.steps as f64 / timing.cpu_s,
            timing.steps as f64 / timing.wall_s
        );
    }
    text
}

fn train_text(timings: &[TrainTiming]) -> String {
    let mut text = "Training, preset laptop, one thread:\n".to_string();
    for timing in timings {
        let start = match timing.start {
            "fresh" => "from fresh weights",
            _ => "around trained ones",
        };
        text += &format!(
            "  {start:20} {:9.0} steps per CPU second  {:5.0} steps a rollout, {:.1} % of the time in evolution\n",
            timing.steps_per_cpu_second(),
            timing.steps as f64 / timing.rollouts as f64,
            100.0 * timing.evolution_cpu_s / timing.cpu_s
        );
    }
    text
}

/// Measures CMA-ES with this form of the covariance matrix's root, from a point near the optimum. An interval is that
/// between two factorisations of the matrix.
fn evolve(
    form: Form,
    (params, population): (usize, usize),
    passes: usize,
) -> Result<EvolveTiming, EvolveError> {
    // The initial step size does not affect the amount of work.
    let config = CmaEsConfig { population: Some(population), sigma: 0.1, form, ..CmaEsConfig::default() };
    let mut strategy = CmaEs::from_mean(config, vec![1.0; params], Seed::root(1))?;
    let interval = strategy.interval();
    let name = json!(form);
    bench::evolve(name.as_str().unwrap_or_default(), &mut strategy, interval, passes)
}

fn evolve_text(timings: &[EvolveTiming]) -> String {
    let (params, population) = CMA_ES;
    let mut text = format!("CMA-ES, {params} parameters, {population} genomes, one thread:\n");
    for timing in timings {
        let form = if timing.form == "eigen" { "eigenvectors" } else { "Cholesky factor" };
        text += &format!(
            "  {form:16} {:9.3} CPU seconds a generation, factored every {} generations",
            timing.cpu_s, timing.interval
        );
        if let Some(peak) = timing.peak_mb {
            text += &format!(", {peak:.0} MB at most");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interval_holds_a_factorisation() {
        for &form in Form::BUILT {
            let timing = evolve(form, (60, 6), 2).expect("fine");
            assert_eq!((timing.params, timing.population), (60, 6));
            assert!(timing.interval > 1 && timing.cpu_s > 0.0 && timing.cpu_s.is_finite(), "{timing:?}");
            assert_eq!(timing.peak_mb.is_some(), cfg!(target_os = "linux"));
        }
        assert_eq!(evolve(Form::Cholesky, (60, 6), 1).expect("fine").form, "cholesky");
        assert!(evolve(Form::default(), (0, 6), 1).is_err());
    }
}
