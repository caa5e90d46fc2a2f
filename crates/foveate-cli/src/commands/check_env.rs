//! `foveate check-env`

use anyhow::bail;
use clap::Args;
use foveate::run::command::key_value;
use foveate::run::worlds::{Finding, Verdict, check_env};

use crate::out;

/// Check that an environment is deterministic and follows Gymnasium's API
#[derive(Debug, Args)]
#[command(after_help = "\
Episodes are repeated with the same seed: in the same environment after other episodes, in a new
one, in another process, with rendering, and with observations and actions overwritten after use.
All outputs must be bit-identical and fit the spaces. A fault is whatever makes training wrong or
irreproducible; the exit code is then 1.

Examples:
  foveate check-env gym:CarRacing-v3
  foveate check-env gym:my_package:MyWorld-v0 --env-arg size=5
  foveate check-env gym:ALE/Pong-v5 --json")]
pub(crate) struct CheckEnv {
    /// The environment
    #[arg(value_name = "gym:ID")]
    env: String,
    /// An argument of the environment; may be given several times
    #[arg(long = "env-arg", value_name = "KEY=VALUE", value_parser = key_value)]
    env_args: Vec<(String, String)>,
    /// An option, as in `path=FOLDER`; `foveate list gym` shows them
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_value)]
    options: Vec<(String, String)>,
    /// Maximum steps of an episode [default: 1000, or what takes less than a minute altogether]
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    steps: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CheckEnv {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let args = self.env_args.into_iter().map(|(name, value)| (format!("arg.{name}"), value));
        let options = self.options.into_iter().chain(args).collect();
        let mut shown = Ok(());
        let checked = check_env(&self.env, &options, self.steps, &mut |finding| {
            if !self.json && shown.is_ok() {
                shown = show(finding);
            }
        })?;
        shown?;
        let faults = checked.faults().count();
        if self.json {
            out::say_json(&serde_json::to_value(&checked)?)?;
        } else if let Some(steps) = checked.steps {
            out::say(&format!("episodes of up to {steps} steps were played"))?;
        }
        if faults > 0 {
            bail!(
                "{} breaks {faults} of Gymnasium's promises; correct them before you trust a score",
                self.env
            );
        }
        Ok(())
    }
}

fn show(finding: &Finding) -> anyhow::Result<()> {
    /// As long as the longest name.
    const WIDTH: usize = 17;
    let verdict = match finding.verdict {
        Verdict::Fine => "ok   ",
        Verdict::Note => "note ",
        Verdict::Fault => "FAULT",
    };
    out::say(&format!("{verdict}  {:WIDTH$}  {}", finding.name, finding.words))?;
    if !finding.more.is_empty() {
        eprintln!("{}", finding.more.trim_end());
    }
    Ok(())
}
