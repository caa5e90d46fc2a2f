//! Training.

use std::path::PathBuf;

use foveate_run::RunError;
use foveate_run::cluster::Cluster;
use foveate_run::config::UserSettings;
use foveate_run::cost::Cost;
use foveate_run::fit::configure;
use foveate_run::progress::TrainObserver;
use foveate_run::train::{self, TrainRequest, TrainResult};
use foveate_run::trust::WorldSpec;
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};

#[cfg(feature = "command")]
use foveate_run::command::{self, Known};

/// Trains an agent; the run folder holds its weights, log and videos. The world provides the default of what is not said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Train {
    /// The preset to start from; other settings override it
    #[cfg_attr(feature = "command", arg(long, value_name = "NAME", value_parser = Known::PRESET, hide_possible_values = true, help = command::preset()))]
    pub preset: Option<String>,
    /// A TOML file with what differs from the preset
    #[cfg_attr(feature = "command", arg(long, value_name = "FILE"))]
    pub config: Option<PathBuf>,
    /// Training steps of the whole run; the stages of a configuration keep their shares [default: those of the configuration]
    #[cfg_attr(feature = "command", arg(long))]
    pub steps: Option<u64>,
    /// What the weights begin with: a weight file, a run or a champion, or `torch`, `he` or `zeros`
    #[cfg_attr(feature = "command", arg(long, value_name = "WEIGHTS|RUN"))]
    pub init: Option<String>,
    /// The teacher, for presets that learn from one
    #[cfg_attr(feature = "command", arg(long, value_name = "WEIGHTS|RUN"))]
    pub teacher: Option<String>,
    /// One key of the configuration; may be given several times
    #[cfg_attr(feature = "command", arg(long, value_name = "KEY=VALUE"))]
    pub set: Vec<String>,
    /// Seed of all randomness of the run [default: that of the configuration]
    #[cfg_attr(feature = "command", arg(long))]
    pub seed: Option<u64>,
    /// Threads; 0 for one per core [default: that of the configuration]
    #[cfg_attr(feature = "command", arg(long))]
    pub workers: Option<usize>,
    /// Make videos of evaluations [default: as the configuration says, which makes them]
    #[cfg_attr(
        feature = "command",
        arg(
            long = "no-videos",
            num_args = 0,
            default_missing_value = "false",
            help = "Make no videos of evaluations [default: as the configuration says, which makes them]"
        )
    )]
    pub videos: Option<bool>,
    /// Name of the run [default: the world's name, numbered]
    #[cfg_attr(feature = "command", arg(long))]
    pub name: Option<String>,
    /// The folder of all runs
    #[cfg_attr(feature = "command", arg(long, value_name = "FOLDER", default_value_os_t = Self::default().runs))]
    pub runs: PathBuf,
    /// The world
    #[cfg_attr(feature = "command", command(flatten))]
    pub world: WorldSpec,
}

impl Default for Train {
    fn default() -> Self {
        Train {
            preset: None,
            config: None,
            steps: None,
            init: None,
            teacher: None,
            set: vec![],
            seed: None,
            workers: None,
            videos: None,
            name: None,
            runs: "runs".into(),
            world: WorldSpec::default(),
        }
    }
}

impl Train {
    /// Trains into a new run folder. `observer` receives the progress; `&mut ()` ignores it.
    ///
    /// # Errors
    /// When the settings are invalid, when the world cannot be built, or when the run fails.
    pub fn run(&self, observer: &mut dyn TrainObserver, stop: &Stop) -> Result<TrainResult, RunError> {
        self.run_on(None, observer, stop)
    }

    /// As [`Train::run`], with the rollouts on the machines of `cluster`; on all cores of this one without.
    ///
    /// # Errors
    /// As [`Train::run`], and when the cluster has no machine for it.
    pub fn run_on(
        &self,
        cluster: Option<Box<dyn Cluster>>,
        observer: &mut dyn TrainObserver,
        stop: &Stop,
    ) -> Result<TrainResult, RunError> {
        let said = UserSettings::read(self.config.as_deref(), &self.sets(), &self.world)?;
        // Keep the world until the run has built its own: both then share the process that hosts it.
        let mut configured = configure(self.preset.as_deref(), &said)?;
        if let Some(steps) = self.steps {
            configured.config.recipe.set_training_steps(steps)?;
        }
        if let Some(note) = &configured.note {
            observer.note(note);
        }
        let config = configured.config.clone();
        let request = TrainRequest { config, runs: self.runs.clone(), name: self.name.clone() };
        train::run_on(&request, cluster, observer, stop)
    }

    /// The estimate of its cost; `None` where its world was not measured, or cannot be built.
    pub fn cost(&self) -> Option<Cost> {
        let said = UserSettings::read(self.config.as_deref(), &self.sets(), &self.world).ok()?;
        let config = configure(self.preset.as_deref(), &said).ok()?.config;
        let tensors =
            foveate_agents::registry::tensors(&config.agent.name, &config.agent.settings().ok()?).ok()?;
        Cost::of(&config, &tensors)
    }

    /// All keys of the configuration that the settings change.
    fn sets(&self) -> Vec<String> {
        let mut sets: Vec<String> = self.init.iter().map(|init| of_weights("init", init, &NAMED)).collect();
        sets.extend(self.teacher.iter().map(|teacher| of_weights("teacher", teacher, &[])));
        sets.extend(self.set.clone());
        sets.extend(self.seed.map(|seed| format!("seed={seed}")));
        sets.extend(self.workers.map(|workers| format!("workers={workers}")));
        sets.extend(self.videos.map(|videos| format!("videos={videos}")));
        sets
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
