//! Trains the agent of `your_agent.rs` in the world of `your_world.rs`: one registry entry each is enough to
//! train, checkpoint and evaluate them like those included in Foveate.
//!
//! Run: `cargo run --release -p foveate --example train_it`
//! Time: 1 s; writes the folder `runs/line`
//! Output:
//! ```text
//! linear: 3 parameters, -5.6 on 100 test episodes
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

#[path = "your_agent.rs"]
mod your_agent;

use foveate::agents::registry::{self, AgentConfig, Sees};
use foveate::core::{Policy, PolicyAgent, PolicyError, TensorShape};
use foveate::run::trust::WorldFlags;
use foveate::run::workers::Stop;
use foveate::{AGENTS, Agent, AgentDescriptor, Evaluation, LoadedAgent, TrainOptions, WORLDS, World, train};
use serde_json::{Value, json};
use your_agent::{Linear, your_world};

/// The agent's settings (here the type itself) list its tensors and build it.
impl AgentConfig for Linear {
    fn check(&self) -> Result<(), PolicyError> {
        let why = "inputs is 0; give how many numbers the world shows".to_owned();
        if self.inputs > 0 { Ok(()) } else { Err(PolicyError::BadConfig { why }) }
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        Policy::tensors(self)
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(Linear { inputs: self.inputs, weights: vec![0.0; self.inputs + 1] })))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    WORLDS.register(your_world::descriptor())?;
    AGENTS.register(AgentDescriptor {
        name: "linear",
        summary: "a linear layer on numbers",
        sees: Sees::Numbers,
        read: registry::read::<Linear>,
        fit: |spec, _| json!({ "inputs": spec.observation.numbers() }),
        published: &[],
    })?;
    let settings =
        ["agent.name=linear", "videos=false", "recipe.stage.0.steps=60_000", "recipe.stage.1.steps=60_000"];
    let options = TrainOptions {
        world: WorldFlags { id: Some("line".into()), ..WorldFlags::default() },
        set: settings.map(String::from).to_vec(),
        runs: "runs".into(),
        ..TrainOptions::default()
    };
    let run = train(options, &mut (), &Stop::default())?;
    let world = World::named("line");
    let best = LoadedAgent::load(Some(&run.folder), &world)?;
    let report = best.evaluate(&world, &Evaluation::default())?;
    println!(
        "linear: {} parameters, {:.1} on 100 test episodes",
        best.file.params().len(),
        report.summary.mean
    );
    Ok(())
}
