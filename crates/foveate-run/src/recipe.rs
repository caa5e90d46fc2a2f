//! How a run learns: the numbers of evolution, budget and selection, as a user may write them in TOML.
//!
//! A run is a list of stages, one after the other, each with its own population, step size and budget of environment
//! steps. A stage with several `starts` is run that many times with other random numbers, and the start that validates
//! best goes on: seeds differ several-fold in how soon they learn to drive, and a few short heats are cheaper than one
//! unlucky run. The budget counts environment steps, never seconds, so a slow machine and a fast one end with the same
//! weights.
//!
//! Three kinds of tracks never mix: those trained on, those that choose (validation and finals), and those of the final
//! report, which nothing has seen before.

use foveate_core::Seed;
use foveate_evolve::RankEsConfig;
use serde::{Deserialize, Serialize};

use crate::rollout::Rules;

/// How a run learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The evolution strategy: `rank-es`, see [`foveate_evolve::rank_es`].
    pub algorithm: String,
    /// Steps after which an episode is over, in training and in evaluation.
    pub max_steps: u64,
    /// How weights are chosen and judged.
    pub selection: Selection,
    /// What happens, in order. The file writes them as `[[…stage]]`.
    #[serde(rename = "stage")]
    pub stages: Vec<Stage>,
}

/// A part of a run with settings of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// What to call it in logs.
    pub name: String,
    /// Independent tries; the best goes on. In the first stage each begins with fresh weights.
    #[serde(default = "one")]
    pub starts: usize,
    /// Environment steps of each start. The generation that reaches the number is finished.
    pub steps: u64,
    /// Genomes per generation.
    pub population: usize,
    /// Tracks per generation; all genomes drive the same ones.
    #[serde(default = "one")]
    pub tracks: usize,
    /// Standard deviation of the genomes around the mean.
    pub sigma: f64,
    /// How far the mean follows, see [`RankEsConfig`].
    pub learning_rate: f64,
    /// Share of the mean taken away each generation.
    #[serde(default)]
    pub weight_decay: f64,
    /// Memory of the averaged mean, which is what is validated and handed on; 0 for no averaging.
    #[serde(default)]
    pub averaging: f64,
    /// Genomes in opposite pairs.
    #[serde(default)]
    pub mirrored: bool,
    /// Negative rewards in a row that a training rollout survives.
    #[serde(default = "twenty")]
    pub patience: u32,
}

/// How weights are chosen and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Training steps between validations; the end of a start is always validated.
    pub every: u64,
    /// Tracks of a validation, always the same.
    pub tracks: usize,
    /// How many of the best validated weights enter the finals.
    pub finalists: usize,
    /// Tracks of the finals, others than those of validation; the best there is `best`.
    pub final_tracks: usize,
    /// Tracks of the report on `best`, which chose nothing.
    pub report_tracks: usize,
}

const fn one() -> usize {
    1
}

const fn twenty() -> u32 {
    20
}

impl Recipe {
    /// Checks that the numbers make sense together.
    ///
    /// # Errors
    /// When one does not; the message names it, its stage and its range.
    pub fn check(&self) -> Result<(), String> {
        let bad = Err;
        if self.algorithm != "rank-es" {
            return bad(format!(
                "no evolution strategy is called {:?}; choose from: rank-es",
                self.algorithm
            ));
        }
        if self.stages.is_empty() {
            return bad("the recipe has no stage; write at least one".to_owned());
        }
        let Selection { every, tracks, finalists, final_tracks, report_tracks } = self.selection;
        for (name, value) in [
            ("max_steps", self.max_steps),
            ("selection.every", every),
            ("selection.tracks", tracks as u64),
            ("selection.finalists", finalists as u64),
            ("selection.final_tracks", final_tracks as u64),
            ("selection.report_tracks", report_tracks as u64),
        ] {
            if value == 0 {
                return bad(format!("{name} = 0 in the recipe; choose 1 or more"));
            }
        }
        for stage in &self.stages {
            let name = &stage.name;
            for (key, value) in
                [("starts", stage.starts as u64), ("steps", stage.steps), ("tracks", stage.tracks as u64)]
            {
                if value == 0 {
                    return bad(format!("{key} = 0 in stage {name:?} of the recipe; choose 1 or more"));
                }
            }
            if let Err(error) = stage.evolution().check() {
                return bad(format!("stage {name:?} of the recipe: {error}"));
            }
        }
        Ok(())
    }

    /// Environment steps of training, all stages and starts together.
    pub fn training_steps(&self) -> u64 {
        self.stages.iter().map(|s| s.steps * s.starts as u64).sum()
    }

    /// What ends an episode that judges.
    pub fn whole_episodes(&self) -> Rules {
        Rules { max_steps: self.max_steps, patience: None }
    }
}

impl Stage {
    /// The settings of the strategy.
    pub fn evolution(&self) -> RankEsConfig {
        RankEsConfig {
            population: self.population,
            sigma: self.sigma,
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            averaging: self.averaging,
            mirrored: self.mirrored,
        }
    }
}

/// What a track is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To learn.
    Training,
    /// To choose while the run goes on.
    Validation,
    /// To choose in the end.
    Finals,
    /// To report.
    Report,
}

/// The world's seed for a job: tracks of different purposes are never the same, and none has a small number, so that
/// whoever evaluates with `--seeds 0..100` later meets tracks that were not trained on.
pub fn track_seed(job: Seed, purpose: Purpose) -> u64 {
    let class = match purpose {
        Purpose::Training => 0,
        Purpose::Validation => 1,
        Purpose::Finals => 2,
        Purpose::Report => 3,
    };
    // 31 bits are what Gymnasium takes: one that keeps clear of small numbers, 28 of the job, two of the purpose.
    (1 << 30) | (job.env_seed() & 0x3fff_fffc) | class
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TrainConfig;

    fn preset() -> Recipe {
        TrainConfig::load("laptop", None, &[""; 0]).expect("the preset is right").recipe
    }

    #[test]
    fn the_preset_passes_its_own_check_and_survives_toml() {
        let recipe = preset();
        recipe.check().expect("the preset");
        let text = toml::to_string(&recipe).expect("plain values");
        assert_eq!(toml::from_str::<Recipe>(&text).expect("its own"), recipe);
        assert!(
            toml::from_str::<Recipe>(&format!("colour = 3\n{text}")).is_err(),
            "a misspelt key is an error"
        );
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        type Change = fn(&mut Recipe);
        let cases: [(Change, &str); 9] = [
            (|r| r.stages.clear(), "no stage"),
            (|r| r.algorithm = "cma".into(), "is called \"cma\"; choose from: rank-es"),
            (|r| r.max_steps = 0, "max_steps = 0"),
            (|r| r.selection.every = 0, "selection.every = 0"),
            (|r| r.selection.finalists = 0, "selection.finalists = 0"),
            (|r| r.stages[1].starts = 0, "starts = 0 in stage \"refine\""),
            (|r| r.stages[0].steps = 0, "steps = 0 in stage \"heats\""),
            (|r| r.stages[1].sigma = -1.0, "stage \"refine\" of the recipe: sigma = -1"),
            (|r| r.stages[0].population = 1, "population = 1"),
        ];
        for (change, why) in cases {
            let mut recipe = preset();
            change(&mut recipe);
            let said = recipe.check().expect_err(why);
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn tracks_of_different_purposes_never_meet() {
        use Purpose::{Finals, Report, Training, Validation};
        let mut seen = std::collections::BTreeMap::new();
        for i in 0..20_000 {
            let job = Seed::root(3).child("track", i);
            for purpose in [Training, Validation, Finals, Report] {
                let seed = track_seed(job, purpose);
                assert!((1 << 30..1 << 31).contains(&seed));
                if let Some(other) = seen.insert(seed, purpose) {
                    assert_eq!(other, purpose);
                }
            }
        }
    }
}
