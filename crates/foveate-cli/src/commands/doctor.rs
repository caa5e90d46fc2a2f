//! `foveate doctor`

use clap::Args;
use foveate::run::worlds::{Doctor as Report, doctor, mujoco};

use crate::out;

/// Check that the dependencies of Gymnasium environments and of DeepMind Control are installed
#[derive(Debug, Args)]
#[command(after_help = "\
Native worlds need no Python, tasks of DeepMind Control only MuJoCo's library, which is looked for
first. gym:ID uses the interpreter that FOVEATE_PYTHON names, else the one that runs this command
(if pip installed it), else that of the active virtual environment, else python3. The command
creates and steps one environment of each family and prints the pip command for what is missing.

Examples:
  foveate doctor
  FOVEATE_PYTHON=~/venv/bin/python foveate doctor --json")]
pub(crate) struct Doctor {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mujoco = mujoco();
        if self.json {
            let mut report = serde_json::to_value(doctor()?)?;
            report["mujoco"] = serde_json::to_value(&mujoco)?;
            return Ok(out::say_json(&report)?);
        }
        out::say(&match (&mujoco.version, &mujoco.path, &mujoco.named_by) {
            (Some(version), Some(path), Some(by)) => {
                format!("MuJoCo {version}, {path} (found by {by}): tasks of DeepMind Control can run")
            }
            _ => format!("no DeepMind Control: {}", mujoco.why),
        })?;
        let report = doctor()?;
        let Report { python, named_by, version, gymnasium, numpy, families } = &report;
        out::say(&format!("Python {version}, {python} (named by {named_by})"))?;
        out::say(&format!("gymnasium {gymnasium}, numpy {numpy}: any environment of your own can run"))?;
        let width = families.iter().map(|family| family.name.len()).max().unwrap_or(0);
        for family in families {
            let verdict = if family.works { "works" } else { "no   " };
            let why = if family.works { format!("gym:{}", family.id) } else { family.why.clone() };
            out::say(&format!("  {:width$}  {verdict}  {why}", family.name))?;
        }
        Ok(())
    }
}
