//! `foveate train`

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

use clap::Args;
use foveate::jobs;
use foveate::run::cluster::Cluster;
use foveate::run::command::Known;
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::run::suggest;
use foveate::run::train::{ResumeRequest, TrainResult, resume_on};

use crate::Clusters;
use crate::help;
use crate::out;
use crate::progress::{Reporter, Style};

/// Train an agent
#[derive(Debug, Args)]
#[command(after_help = after_help(), mut_arg("env", |env| env.help("The world, as in other commands; the same as WORLD").conflicts_with("name_of_world")))]
pub(crate) struct Train {
    /// The world; `foveate list` shows them [default: that of the configuration]
    #[arg(id = "name_of_world", value_name = "WORLD", value_parser = Known::WORLD, hide_possible_values = true)]
    world: Option<String>,
    /// Resume a run
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["name_of_world", "env", "shifts", "steps", "preset", "config", "init", "teacher", "set", "seed", "name", "runs", "picture", "variants", "options", "env_args", "wrap"])]
    resume: Option<PathBuf>,
    /// Resume although configuration, build or log changed; about.json records it
    #[arg(long, requires = "resume")]
    allow_changes: bool,
    #[command(flatten)]
    job: jobs::Train,
    /// Run the rollouts on a Ray cluster: `local`, or its address (docs/cluster.md)
    #[arg(long, value_name = "ADDRESS")]
    cluster: Option<String>,
    /// Print the log as it is written, one JSON object per line
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    format!(
        "\
Trains on all cores for a fixed number of steps. Presets, of which each world has its own:
{}
Where the world has one preset of a kind, the kind is enough, as in `--preset ppo`: a part of a
name, a learner or an agent.
A configuration file holds what differs from the preset; runs/NAME/config.toml holds all keys.
--set changes one key: `--set recipe.stage.0.sigma=0.05` is that of the first stage. A table or a
list that --set or a file gives, `KEY={{...}}`, replaces the preset's; `KEY.NAME=VALUE` adds to it.

Curve, log, checkpoints, weights and videos go to runs/NAME; `tensorboard --logdir runs` shows the
curves during training. Ctrl-C stops safely at any time; --resume continues, and the result is
bit-identical to an uninterrupted run, with any number of workers.

Examples:
  foveate train car-racing
  foveate train car-racing --seed 2 --name second --picture classic
  foveate train car-racing --preset ppo --steps 500000
  foveate train gym:CartPole-v1
  foveate train gym:my_world:Catch-v0 --option path=examples
  foveate train door-key-8x8 --init door-key-5x5
  foveate train --config mine.toml
  foveate train --resume runs/car-racing",
        help::presets()
    )
}

impl Train {
    pub(crate) fn run(self, clusters: Option<&Clusters>) -> anyhow::Result<()> {
        let style = match (self.json, stdout().is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::Live,
            (false, false) => Style::Plain,
        };
        let mut reporter = Reporter::new(style);
        let stop = stop_on_ctrl_c()?;
        let cluster = self.cluster.as_deref().map(|address| cluster(address, clusters)).transpose()?;
        if let Some(folder) = self.resume {
            suggest::missing_run(&folder)?;
            let request = ResumeRequest {
                folder,
                workers: self.job.workers,
                videos: self.job.videos,
                allow_changes: self.allow_changes,
                trust: self.job.world.trust,
            };
            let outcome = resume_on(&request, cluster, &mut reporter, &stop)?;
            return finish(reporter, &outcome);
        }
        let mut job = self.job;
        job.world.id = self.world.or(job.world.id);
        let outcome = job.run_on(cluster, &mut reporter, &stop)?;
        finish(reporter, &outcome)
    }
}

pub(super) fn cluster(address: &str, clusters: Option<&Clusters>) -> anyhow::Result<Box<dyn Cluster>> {
    let Some(clusters) = clusters else {
        anyhow::bail!(
            "cluster {address}: this program has no engine for clusters; `pip install '.[ray]'` in a clone of Foveate brings a command `foveate` that has"
        );
    };
    clusters(address).map_err(|why| anyhow::anyhow!("cluster {address}: {why}"))
}

/// An output that cannot be written does not end a run, but the command reports it as an error at the end.
fn finish(reporter: Reporter, outcome: &TrainResult) -> anyhow::Result<()> {
    let Err(error) = reporter.finish() else { return Ok(()) };
    let error = anyhow::Error::from(error);
    if out::is_broken_pipe(&error) {
        return Err(error);
    }
    let state = if outcome.report.is_some() { "is finished" } else { "was stopped safely" };
    anyhow::bail!("{error}; the run itself {state}: {}", outcome.folder.display())
}
