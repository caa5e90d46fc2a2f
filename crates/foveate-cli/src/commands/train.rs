//! `foveate train`

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

use clap::Args;
use foveate::run::cluster::Cluster;
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::run::suggest;
use foveate::run::train::{ResumeRequest, TrainResult, resume_on};
use foveate::run::trust::WorldFlags;
use foveate::{TrainOptions, train_on};

use crate::Clusters;
use crate::help;
use crate::known::Known;
use crate::out;
use crate::progress::{Reporter, Style};
use crate::world_args::{OwnWorldArgs, TrustArg};

/// Train an agent
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct Train {
    /// The world; `foveate list` shows them [default: that of the configuration]
    #[arg(value_name = "WORLD", value_parser = Known::WORLD, hide_possible_values = true)]
    world: Option<String>,
    /// The world, as in other commands; the same as WORLD
    #[arg(long, value_name = "NAME", value_parser = Known::WORLD, hide_possible_values = true, conflicts_with = "world")]
    env: Option<String>,
    /// Resume a run
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["world", "env", "steps", "preset", "config", "init", "teacher", "set", "seed", "name", "runs", "picture", "variants", "options", "env_args", "wrap"])]
    resume: Option<PathBuf>,
    /// Resume although configuration, build or log changed; about.json records it
    #[arg(long, requires = "resume")]
    allow_changes: bool,
    #[arg(long, value_name = "NAME", value_parser = Known::PRESET, hide_possible_values = true, help = help::preset())]
    preset: Option<String>,
    /// A TOML file with what differs from the preset
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Training steps of the whole run; the stages of a configuration keep their shares [default: those of the configuration]
    #[arg(long)]
    steps: Option<u64>,
    /// What the weights begin with: a weight file, a run or a champion, or `torch`, `he` or `zeros`
    #[arg(long, value_name = "WEIGHTS|RUN")]
    init: Option<String>,
    /// The teacher, for presets that learn from one
    #[arg(long, value_name = "WEIGHTS|RUN")]
    teacher: Option<String>,
    /// One key of the configuration; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all randomness of the run [default: that of the configuration]
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; 0 for one per core [default: that of the configuration]
    #[arg(long)]
    workers: Option<usize>,
    /// Run the rollouts on a Ray cluster: `local`, or its address (docs/cluster.md)
    #[arg(long, value_name = "ADDRESS")]
    cluster: Option<String>,
    /// Make no videos of evaluations [default: as the configuration says, which makes them]
    #[arg(long)]
    no_videos: bool,
    /// Name of the run [default: the world's name, numbered]
    #[arg(long)]
    name: Option<String>,
    /// The folder of all runs
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    runs: PathBuf,
    /// Print the log as it is written, one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustArg,
    #[command(flatten)]
    own_world: OwnWorldArgs,
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
                workers: self.workers,
                videos: self.no_videos.then_some(false),
                allow_changes: self.allow_changes,
                trust: self.trust.into(),
            };
            let outcome = resume_on(&request, cluster, &mut reporter, &stop)?;
            return finish(reporter, &outcome);
        }
        let mut sets: Vec<String> =
            self.init.map(|init| of_weights("init", &init, &NAMED)).into_iter().collect();
        sets.extend(self.teacher.map(|teacher| of_weights("teacher", &teacher, &[])));
        sets.extend(self.set);
        sets.extend(self.seed.map(|seed| format!("seed={seed}")));
        sets.extend(self.workers.map(|workers| format!("workers={workers}")));
        sets.extend(self.no_videos.then(|| "videos=false".to_owned()));
        let world =
            WorldFlags { id: self.world.or(self.env), trust: self.trust.into(), ..self.own_world.flags() };
        let options = TrainOptions {
            world,
            preset: self.preset,
            config: self.config,
            steps: self.steps,
            set: sets,
            runs: self.runs,
            name: self.name,
        };
        let outcome = train_on(options, cluster, &mut reporter, &stop)?;
        finish(reporter, &outcome)
    }
}

/// Weights to begin with that have a name; a file called like one is `./NAME`.
const NAMED: [&str; 3] = ["torch", "he", "zeros"];

/// The setting of the recipe's key that names weights.
fn of_weights(key: &str, weights: &str, named: &[&str]) -> String {
    // A text of JSON is one of TOML, too.
    let text = serde_json::Value::from(weights);
    if named.contains(&weights) {
        format!("recipe.{key}={text}")
    } else {
        format!("recipe.{key}={{ weights = {text} }}")
    }
}

fn cluster(address: &str, clusters: Option<&Clusters>) -> anyhow::Result<Box<dyn Cluster>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_settings_of_the_recipe() {
        assert_eq!(of_weights("init", "he", &NAMED), "recipe.init=\"he\"");
        assert_eq!(of_weights("init", "./he", &NAMED), "recipe.init={ weights = \"./he\" }");
        assert_eq!(
            of_weights("teacher", "a \"b\\c.npz", &[]),
            r#"recipe.teacher={ weights = "a \"b\\c.npz" }"#
        );
    }
}
