//! `foveate import`

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use foveate_agents::Layout;
use foveate_agents::registry::find;
use foveate_envs::registry::EnvRequest;
use foveate_run::config::agent_settings;
use foveate_run::fit::picture_settings;
use foveate_run::import::{count, fitting, import};
use foveate_run::weights::AgentFile;
use foveate_run::worlds;
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

Examples:
  foveate import model.npz --out attention_agent_carracing.safetensors
  foveate import model.npz --env take-cover --out attention_agent_takecover.safetensors
  foveate import simplified.npz --layout registration --out simplified.safetensors
  foveate eval attention_agent_carracing.safetensors --picture classic")]
pub(crate) struct Import {
    /// The npz file
    #[arg(value_name = "FILE.npz")]
    file: PathBuf,
    /// The agent of the weights; `foveate list agents` shows them [default: attention-agent, or the one with as many
    /// weights]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The world they were trained in; it determines the agent's picture size and actions [default: car-racing, or the
    /// one in which the agent has as many weights]
    #[arg(long = "env", value_name = "NAME")]
    world: Option<String>,
    /// The order of the weights in the vector
    #[arg(long, value_parser = ["sorted", "registration"], default_value = "sorted")]
    layout: String,
    /// Divisor of queries times keys [default: sqrt-d-in]
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
        let mut config = match &self.config {
            Some(path) => agent_settings(path)?,
            None => json!({}),
        };
        let (agent, world) = match (self.agent, self.world, &self.config) {
            (None, None, None) => guess(&self.file)?,
            (agent, world, _) => (agent.unwrap_or_else(|| AGENT.to_owned()), world),
        };
        let world = world.map(|id| EnvRequest { id, ..EnvRequest::default() });
        if let Some(world) = &world {
            let fitted = picture_settings(find(&agent)?, &worlds::shape(world)?)?;
            for (key, value) in fitted.as_object().into_iter().flatten() {
                if config.get(key).is_none() {
                    config[key] = value.clone();
                }
            }
        }
        if let Some(scale) = &self.scale {
            config["scale"] = scale.replace('-', "_").into();
        }
        let layout = Layout::named(&self.layout).ok_or_else(|| anyhow!("no layout {:?}", self.layout))?;
        let file = import(&self.file, &agent, &config, layout)?;
        let file = match &world {
            Some(world) => file.made_for(world),
            None => file,
        };
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
                "layout": self.layout,
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

/// The agent whose weights most files are.
const AGENT: &str = "attention-agent";

/// The agent and the world that the number of weights speaks for. The usual ones need not be named.
fn guess(file: &Path) -> anyhow::Result<(String, Option<String>)> {
    let count = count(file)?;
    let pairs = fitting(count);
    // Other agents of the same shape are not what was published.
    let usual: Vec<_> = pairs.iter().filter(|(agent, _)| *agent == AGENT).collect();
    let found = match (&usual[..], &pairs[..]) {
        ([one], _) => *one,
        ([], [one]) => one,
        _ => &(AGENT, "car-racing"),
    };
    if *found == (AGENT, "car-racing") {
        return Ok((AGENT.to_owned(), None));
    }
    let (agent, world) = *found;
    eprintln!("note: {count} weights are those of {agent} in {world}; --agent and --env say otherwise");
    Ok((agent.to_owned(), Some(world.to_owned())))
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

/// What shows at a glance whether these are the right numbers.
struct Spread {
    min: f32,
    max: f32,
    mean: f64,
    std: f64,
}

impl Spread {
    fn of(params: &[f32]) -> Self {
        let n = params.len() as f64;
        let mean = params.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        let variance = params.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
        let min = params.iter().copied().fold(f32::INFINITY, f32::min);
        let max = params.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        Spread { min, max, mean, std: variance.sqrt() }
    }
}
