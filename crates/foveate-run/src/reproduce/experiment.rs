//! A published experiment as a value: what was published, who acts where, and what counts as reproduced.

use std::collections::BTreeMap;

use foveate_registry::{EXPERIMENTS, ExperimentText, PAPERS};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::error::RunError;

/// A published experiment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Experiment {
    /// Its name, `paper/item`.
    #[serde(skip)]
    pub id: String,
    /// What it is, in a few words.
    pub title: String,
    /// Where in the paper it is.
    pub section: String,
    /// What is not built yet, in a sentence; the experiment cannot be run.
    pub needs: Option<String>,
    /// How the published agents were made.
    #[serde(default)]
    pub paper: Paper,
    /// The episodes.
    pub evaluation: Evaluation,
    /// Who acts.
    #[serde(default, rename = "arm")]
    pub arms: Vec<Arm>,
    /// Where: changes of the world. Every arm acts in every one that names no arms.
    #[serde(default, rename = "condition")]
    pub conditions: Vec<Condition>,
    /// What counts as reproduced, for conditions that say nothing else.
    pub counts: Option<Rule>,
    /// Rows, from the highest mean to the lowest: this order counts, too.
    #[serde(default)]
    pub order: Vec<String>,
    /// Seeds of each training.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// What is drawn.
    #[serde(default)]
    pub figure: FigureKind,
    /// CPU hours of everything, where they do not follow from arms and episodes; see [`Experiment::cpu_hours`].
    #[serde(rename = "cpu-hours")]
    pub whole_cpu_hours: Option<f64>,
}

/// How the published agents were made.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// From what they learnt.
    pub trained: Option<Trained>,
    /// Number of their weights.
    pub weights: Option<usize>,
    /// Number of episodes of each number.
    pub n: Option<usize>,
}

/// What weights were learnt from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trained {
    /// The rewards of the world alone.
    Rewards,
    /// An expert, at least in part.
    Taught,
    /// Labels of data.
    Labels,
    /// The authors' own weights.
    PublishedWeights,
}

impl Trained {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Trained::Rewards => "rewards",
            Trained::Taught => "taught",
            Trained::Labels => "labels",
            Trained::PublishedWeights => "published weights",
        }
    }
}

/// The episodes of an experiment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Evaluation {
    /// The world.
    pub world: String,
    /// Its picture, if not its own.
    pub picture: Option<String>,
    /// Its options.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Number of episodes of every evaluation.
    pub episodes: usize,
    /// Seed of the world's random stream.
    #[serde(default = "first")]
    pub seed: u64,
    /// A seed for every episode instead: `0..100`, as many as there are episodes; the number is that of the first.
    pub first_seed: Option<u64>,
    /// What of an episode is averaged.
    #[serde(default)]
    pub measure: Measure,
    /// CPU seconds of an episode, other programs of the world included.
    pub cpu_seconds: f64,
}

fn first() -> u64 {
    1
}

/// What of an episode is averaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Its return.
    #[default]
    Return,
    /// A hundred times its return.
    Percent,
    /// 100 if the return is above 0, else 0.
    Solved,
    /// Its return in percent between random play and a person.
    HumanNormalised,
}

impl Measure {
    /// The number of an episode; `random` and `human` play give these returns.
    pub fn of(self, total: f64, reference: Option<[f64; 2]>) -> f64 {
        match (self, reference) {
            (Measure::Return, _) | (Measure::HumanNormalised, None) => total,
            (Measure::Percent, _) => 100.0 * total,
            (Measure::Solved, _) => {
                if total > 0.0 {
                    100.0
                } else {
                    0.0
                }
            }
            (Measure::HumanNormalised, Some([random, human])) => 100.0 * (total - random) / (human - random),
        }
    }

    /// What stands behind a number.
    pub const fn unit(self) -> &'static str {
        if matches!(self, Measure::Return) { "" } else { " %" }
    }
}

/// Who acts: weights that are given, or a training.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// From what it learnt or learns.
    pub trained: Trained,
    /// Number of its weights.
    pub weights: Option<usize>,
    /// What is not built yet, in a sentence; this arm cannot be run.
    pub needs: Option<String>,
    /// Names of the file with the published weights, in the order in which they are looked for.
    #[serde(default)]
    pub files: Vec<String>,
    /// The agent as which they are imported, where their number does not say it.
    pub agent: Option<String>,
    /// The name of weights that Foveate has.
    pub bundled: Option<String>,
    /// The preset that is trained.
    pub preset: Option<String>,
    /// Keys of its configuration, `KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Steps of training.
    pub steps: Option<u64>,
    /// The arm whose weights it begins with, of the same seed.
    pub init: Option<String>,
    /// The arm that teaches it, of the same seed.
    pub teacher: Option<String>,
    /// Its world, if it is another one.
    pub world: Option<String>,
    /// The picture that it is trained with, if it is another one.
    pub picture: Option<String>,
    /// CPU hours of a training.
    pub cpu_hours: Option<f64>,
}

/// A change of the world, and the numbers that were published for it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Variants of the world.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Shifts.
    #[serde(default)]
    pub shifts: Vec<String>,
    /// Options of the world.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The picture, if it is another one.
    pub picture: Option<String>,
    /// The arms that act in it; all, if none is named.
    #[serde(default)]
    pub arms: Vec<String>,
    /// The published number, or that of each arm.
    #[serde(default)]
    pub published: Numbers,
    /// What counts as reproduced.
    pub counts: Option<Rule>,
    /// What is not built yet, in a sentence; nobody can act here.
    pub needs: Option<String>,
}

/// Published numbers of a condition.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    /// None.
    #[default]
    None,
    /// One for all arms.
    One(Number),
    /// By the name of the arm.
    Each(BTreeMap<String, Number>),
}

/// `mean`, `[mean, std]` or `[mean, std, n]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// The mean alone.
    Mean(f64),
    /// With the spread, and the number of episodes.
    Whole(Vec<f64>),
}

/// What was published.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedNumber {
    /// Mean.
    pub mean: f64,
    /// Standard deviation over episodes.
    pub std: Option<f64>,
    /// Number of episodes.
    pub n: Option<usize>,
}

impl PublishedNumber {
    /// Half of the 95 % interval of its mean, if its spread is known.
    pub fn half_interval(&self) -> Option<f64> {
        Some(1.96 * self.std? / (self.n.filter(|&n| n > 0)? as f64).sqrt())
    }
}

/// A test of what counts as reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Our mean lies within one published standard deviation of the published mean.
    WithinStd,
    /// Our mean is at least this.
    AtLeast(f64),
    /// The 95 % intervals of both means overlap.
    Overlap,
}

/// What is drawn of an experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Means with their intervals, published ones beside.
    #[default]
    Means,
    /// Learning curves of the trainings.
    Curves,
}

/// A row of an experiment's table: an arm in a condition, by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The arm.
    pub arm: usize,
    /// The condition.
    pub condition: usize,
}

impl Experiment {
    /// The experiment called `id`.
    ///
    /// # Errors
    /// When there is none, or its file is broken.
    pub fn find(id: &str) -> Result<Self, RunError> {
        let found = EXPERIMENTS.find(id).map_err(|error| RunError::BadRequest { why: error.to_string() })?;
        Self::of(found)
    }

    /// Reads the experiment's file.
    ///
    /// # Errors
    /// When it is broken.
    pub fn of(file: &ExperimentText) -> Result<Self, RunError> {
        Self::parse(file.id, file.text)
    }

    /// Reads `text`, the description of the experiment called `id`.
    ///
    /// # Errors
    /// When it is not TOML, a key does not exist, or names do not fit together.
    pub fn parse(id: &str, text: &str) -> Result<Self, RunError> {
        let bad = |why: String| RunError::Config { from: id.to_owned(), why: crate::one_line(&why) };
        let table: Table = text.parse().map_err(|error: toml::de::Error| bad(error.message().to_owned()))?;
        let mut experiment: Experiment = serde_path_to_error::deserialize(table)
            .map_err(|error| bad(format!("{}: {}", error.path(), error.inner().message())))?;
        id.clone_into(&mut experiment.id);
        match experiment.wrong() {
            Some(why) => Err(bad(why)),
            None => Ok(experiment),
        }
    }

    /// What does not fit together.
    fn wrong(&self) -> Option<String> {
        let arm = |name: &String| self.arms.iter().position(|arm| arm.name == *name);
        for (place, own) in self.arms.iter().enumerate() {
            let sources = usize::from(!own.files.is_empty())
                + usize::from(own.bundled.is_some())
                + usize::from(own.preset.is_some());
            if sources > 1 || sources == 0 && own.needs.is_none() && self.needs.is_none() {
                return Some(format!(
                    "arm {:?} has {sources} of files, bundled and preset; give one",
                    own.name
                ));
            }
            for other in own.init.iter().chain(&own.teacher) {
                if arm(other).is_none_or(|at| at >= place) {
                    return Some(format!("arm {:?} needs {other:?}, which is no arm before it", own.name));
                }
            }
            if own.preset.is_some() && self.seeds.is_empty() {
                return Some(format!("arm {:?} is trained, and there are no seeds", own.name));
            }
        }
        for condition in &self.conditions {
            let named = match &condition.published {
                Numbers::Each(each) => each.keys().collect(),
                _ => vec![],
            };
            if let Some(name) = condition.arms.iter().chain(named).find(|name| arm(name).is_none()) {
                return Some(format!("condition {:?} names {name:?}, which is no arm", condition.name));
            }
        }
        let rows = self.rows();
        for row in &rows {
            let published = self.published(*row);
            match self.rule(*row) {
                Some(Rule::WithinStd) if published.is_some_and(|p| p.std.is_none()) => {
                    return Some(format!("{}: within-std needs a published spread", self.row_name(*row)));
                }
                Some(Rule::Overlap) if published.is_some_and(|p| p.half_interval().is_none()) => {
                    return Some(format!("{}: overlap needs a published spread and n", self.row_name(*row)));
                }
                _ => {}
            }
        }
        let unknown = self.order.iter().find(|name| !rows.iter().any(|row| self.row_name(*row) == **name));
        unknown.map(|name| format!("order names {name:?}, which is no row"))
    }

    /// CPU hours of everything on the machine that the repository is measured on: trainings, for each of their seeds, and episodes.
    pub fn cpu_hours(&self) -> f64 {
        let seeds = |arm: &Arm| if arm.preset.is_some() { self.seeds.len() as f64 } else { 1.0 };
        let trainings: f64 = self.arms.iter().map(|arm| arm.cpu_hours.unwrap_or(0.0) * seeds(arm)).sum();
        let evaluations: f64 = self.rows().iter().map(|row| seeds(&self.arms[row.arm])).sum();
        let episodes = evaluations * self.evaluation.episodes as f64;
        self.whole_cpu_hours.unwrap_or(trainings + episodes * self.evaluation.cpu_seconds / 3600.0)
    }

    /// The paper that it is of: the first part of its name.
    pub fn paper_name(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The paper's title.
    pub fn paper_title(&self) -> &'static str {
        PAPERS.iter().find(|(name, _)| *name == self.paper_name()).map_or("", |(_, title)| title)
    }

    /// All rows of its table.
    pub fn rows(&self) -> Vec<Row> {
        let all = self.conditions.iter().enumerate().flat_map(|(condition, its)| {
            let acts = |arm: &Arm| its.arms.is_empty() || its.arms.contains(&arm.name);
            let arms = self.arms.iter().enumerate().filter(move |(_, arm)| acts(arm));
            arms.map(move |(arm, _)| Row { arm, condition })
        });
        all.collect()
    }

    /// The name of a row: the condition, the arm, or both where there are several of both.
    pub fn row_name(&self, row: Row) -> String {
        let (arm, condition) = (&self.arms[row.arm].name, &self.conditions[row.condition].name);
        match (self.arms.len(), self.conditions.len()) {
            (1, _) => condition.clone(),
            (_, 1) => arm.clone(),
            _ => format!("{arm}, {condition}"),
        }
    }

    /// What was published for a row.
    pub fn published(&self, row: Row) -> Option<PublishedNumber> {
        let number = match &self.conditions[row.condition].published {
            Numbers::None => return None,
            Numbers::One(number) => number,
            Numbers::Each(each) => each.get(&self.arms[row.arm].name)?,
        };
        Some(match number {
            Number::Mean(mean) => PublishedNumber { mean: *mean, std: None, n: self.paper.n },
            Number::Whole(list) => PublishedNumber {
                mean: *list.first()?,
                std: list.get(1).copied(),
                n: list.get(2).map(|&n| n as usize).or(self.paper.n),
            },
        })
    }

    /// What counts as reproduced in a row; `None` where there is nothing to compare with.
    pub fn rule(&self, row: Row) -> Option<Rule> {
        let rule = self.conditions[row.condition].counts.or(self.counts)?;
        (matches!(rule, Rule::AtLeast(_)) || self.published(row).is_some()).then_some(rule)
    }

    /// What an arm cannot be run for, in a sentence.
    pub fn needs<'a>(&'a self, arm: &'a Arm) -> Option<&'a str> {
        arm.needs.as_deref().or(self.needs.as_deref())
    }

    /// What a row cannot be run for, in a sentence.
    pub fn row_needs(&self, row: Row) -> Option<&str> {
        self.needs(&self.arms[row.arm]).or(self.conditions[row.condition].needs.as_deref())
    }

    /// Why nothing of it can be run, if that is so.
    pub fn cannot_run(&self) -> Option<String> {
        let mut whys = vec![];
        for row in self.rows() {
            whys.push(self.row_needs(row)?);
        }
        Some(self.needs.as_deref().or_else(|| whys.first().copied()).unwrap_or("it has no rows").to_owned())
    }
}
