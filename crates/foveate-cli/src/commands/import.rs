//! `foveate import`

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use foveate::agents::Layout;
use foveate::run::weights::AgentFile;
use foveate::{ImportRequest, Imported, Spread, import};
use serde_json::{Value, json};

use crate::out;

/// Convert published weights (.npz) to a weight file
#[derive(Debug, Args)]
#[command(after_help = "\
Published weights are one flat vector. The file does not say which number is which weight; a wrong
choice gives a useless agent without an error:
  --layout sorted        the AttentionAgent release: bias before weight, for the LSTM hh before ih
  --layout registration  its simplified branch and the AttentionNeuron release: weight before
                         bias, ih before hh
  --scale                divisor of queries times keys: the square root of the numbers
                         in a patch (the AttentionAgent release), the square root of the query's
                         length (the agent in the AttentionNeuron release), or one

The AttentionAgent release is AttentionAgent/pretrained/CarRacing/model.npz and
AttentionAgent/pretrained/TakeCover/model.npz of the repository google/brain-tokyo-workshop.
The files of the AttentionNeuron release, in the same repository, are recognised by their number of
weights: cartpole_pi, ant_pi, ant_mlp, carracing_pi and puzzle_pong. Three releases have 3,667
weights in different orders or with different divisors: the AttentionAgent release, which is
recognised by its numbers, its simplified branch, and carracing of the AttentionNeuron release;
these need --agent.

Examples:
  foveate import model.npz --out attention_agent_carracing.safetensors
  foveate import model.npz --env take-cover --out attention_agent_takecover.safetensors
  foveate import cartpole_pi.npz && foveate eval cartpole_pi.safetensors
  foveate import carracing.npz --agent attention-neuron
  foveate import simplified.npz --agent attention-agent --layout registration
  foveate eval attention_agent_carracing.safetensors --picture classic")]
pub(crate) struct Import {
    /// The npz file
    #[arg(value_name = "FILE.npz")]
    file: PathBuf,
    /// The agent of the weights; `foveate list agents` shows them [default: the one with as many
    /// weights; needed if several releases have as many]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The world they were trained in; it determines the agent's picture size and actions [default: car-racing, or the
    /// one in which the agent has as many weights]
    #[arg(long = "env", value_name = "NAME")]
    world: Option<String>,
    /// The order of the weights in the vector [default: that of recognised weights, else sorted]
    #[arg(long, value_parser = ["sorted", "registration"])]
    layout: Option<String>,
    /// Divisor of queries times keys [default: that of recognised weights, else the agent's]
    #[arg(long, value_parser = ["sqrt-d-in", "sqrt-d", "one"])]
    scale: Option<String>,
    /// Settings of the agent that differ from its defaults, as TOML: `top_k = 5`
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// The file to write [default: FILE.safetensors beside the npz file]
    #[arg(long, value_name = "FILE.safetensors")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let named = |name: &String| Layout::named(name).ok_or_else(|| anyhow!("no layout {name:?}"));
        let layout = self.layout.as_ref().map(named).transpose()?;
        let Imported { file, guessed, layout } = import(&ImportRequest {
            file: self.file.clone(),
            agent: self.agent,
            world: self.world,
            layout,
            scale: self.scale,
            config: self.config,
        })?;
        if let Some(guessed) = guessed {
            eprintln!("note: {guessed}; --agent and --env replace that");
        }
        let out = self.out.unwrap_or_else(|| self.file.with_extension("safetensors"));
        file.save(&out)?;

        let spread = Spread::of(file.params());
        if self.json {
            let tensors: Vec<Value> =
                file.tensors().iter().map(|t| json!({ "name": t.name, "shape": t.shape })).collect();
            return Ok(out::say_json(&json!({
                "file": out.display().to_string(),
                "agent": file.name(),
                "config": file.config(),
                "layout": layout.name(),
                "params": file.params().len(),
                "sha256": file.sha256(),
                "min": spread.min,
                "max": spread.max,
                "mean": spread.mean,
                "std": spread.std,
                "tensors": tensors,
            }))?);
        }
        out::say(&format!("{}: {}", out.display(), describe(&file, &spread)))?;
        let file = out.display();
        Ok(out::next(&[&format!("foveate watch {file}"), &format!("foveate eval {file}")])?)
    }
}

fn describe(file: &AgentFile, spread: &Spread) -> String {
    let Spread { min, max, mean, std } = spread;
    let lines: Vec<(String, String)> =
        file.tensors().iter().map(|t| (t.name.clone(), format!("{:?}", t.shape))).collect();
    format!(
        "{}, {} weights from {min:.3} to {max:.3}, mean {mean:.4}, std {std:.4}\n{}",
        file.name(),
        file.params().len(),
        out::columns(lines.iter().map(|(name, shape)| (&**name, &**shape))).trim_end()
    )
}
