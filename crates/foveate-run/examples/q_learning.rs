//! How long a training by deep Q-learning takes, in CPU time of one thread: the preset `relational` in `door-key-5x5`, without
//! validations.
//!
//! `cargo run --release -p foveate-run --example q_learning [-- STEPS]`
//!
//! Prints one JSON object. `bench/reference/q_learning.py` measures the same with `PyTorch` and `minigrid`.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;

use foveate_agents::registry;
use foveate_core::{Executor, Experience};
use foveate_run::clock::ProcessCpu;
use foveate_run::config::{TrainConfig, UserSettings};
use foveate_run::trust::WorldSpec;
use foveate_run::workers::{Stop, Workers};
use foveate_run::{fit, initial, worlds};
use foveate_train::{Interval, Training};

/// Environment steps if none are given.
const STEPS: u64 = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(STEPS), |text| text.parse())?;
    let flags = WorldSpec { id: Some("door-key-5x5".into()), ..WorldSpec::default() };
    let said = UserSettings::read(None, &[] as &[&str], &flags)?;
    let mut config: TrainConfig = fit::configure(Some("relational"), &said)?.config;
    config.recipe.stages[0].steps = steps;
    config.recipe.selection.every = Interval::Steps(u64::from(u32::MAX));
    let env = worlds::make(config.env.request()?)?;
    let (name, settings) = (&config.agent.name, config.agent.settings()?);
    let fresh = initial::fresh(&config.recipe.init, name, &settings)?;
    let model = registry::model(name, &settings)?;
    let agent = config.agent.build()?;
    let mut workers = Workers::new(&*env, &*agent, 1, Stop::default());
    let clock = ProcessCpu::start();
    let mut training = Training::new(config.recipe, config.seed, fresh, Some(model))?;
    let (mut done, mut episodes, mut acting) = (0, 0, 0.0);
    while done < steps {
        let Some(work) = training.work() else { break };
        let begun = ProcessCpu::start();
        let mut experience = Experience::default();
        workers.execute(&work, &mut experience)?;
        acting += begun.elapsed().as_secs_f64();
        episodes += experience.episodes.len();
        done += experience.episodes.iter().map(|result| result.steps).sum::<u64>();
        training.receive(experience)?;
    }
    let cpu_s = clock.elapsed().as_secs_f64();
    println!("{{\"steps\":{done},\"episodes\":{episodes},\"cpu_s\":{cpu_s},\"acting_cpu_s\":{acting}}}");
    Ok(())
}
