//! What was measured of an experiment, and the file that holds it: `results/PAPER/ITEM.json` and a folder's `report.json`.

use foveate_registry::ExperimentText;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::experiment::{Experiment, Row};
use super::verdict::{Case, Ours, Verdict, falls, judge, overall};
use crate::error::RunError;

/// Identifies the file format and its version.
pub const FORMAT: &str = "foveate-experiment-1";

/// The episodes of an arm, with one training, in a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The arm's name.
    pub arm: String,
    /// The condition's name.
    pub condition: String,
    /// The seed of the training; `None` for weights that were given.
    pub training_seed: Option<u64>,
    /// Number of weights.
    pub weights: usize,
    /// SHA-256 of the weights.
    pub sha256: String,
    /// The world with its changes, in words.
    pub world: String,
    /// The seed of the world's random stream, or the range of seeds.
    pub seed: Value,
    /// Mean returns of random play and of a person, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<[f64; 2]>,
    /// The return of every episode.
    pub returns: Vec<f64>,
    /// What depends on machine and day.
    pub machine: Machine,
}

/// Where and when something was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The build of Foveate: its version and the hash of its sources.
    pub foveate: String,
    /// Its processor.
    pub processor: String,
    /// Day and time in UTC.
    pub date: String,
    /// CPU seconds of the episodes.
    pub cpu_seconds: f64,
    /// CPU seconds of the training, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_cpu_seconds: Option<f64>,
}

/// A row of an experiment with everything that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedRow {
    /// Arm and condition.
    pub row: Row,
    /// Number of weights, where it is known.
    pub weights: Option<usize>,
    /// What was measured.
    pub ours: Option<Ours>,
    /// The verdict; `None` where nothing is judged.
    pub verdict: Option<Verdict>,
}

/// An experiment with its measurements and verdicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The experiment.
    pub experiment: Experiment,
    /// Its rows.
    pub rows: Vec<JudgedRow>,
    /// The verdict on all of it.
    pub verdict: Verdict,
    /// What was measured.
    pub measured: Vec<Measured>,
}

impl Judged {
    /// Judges `experiment` by what was `measured`; what belongs to none of its rows is left out.
    pub fn of(experiment: Experiment, measured: Vec<Measured>) -> Self {
        let rows: Vec<JudgedRow> =
            experiment.rows().into_iter().map(|row| judged(&experiment, row, &measured)).collect();
        let verdicts: Vec<Verdict> = rows.iter().filter_map(|row| row.verdict.clone()).collect();
        let order = (!experiment.order.is_empty()).then(|| {
            let mean = |name: &String| {
                let own = rows.iter().find(|row| experiment.row_name(row.row) == *name)?;
                Some(own.ours.as_ref()?.mean)
            };
            falls(&experiment.order.iter().map(mean).collect::<Vec<_>>())
        });
        let verdict = overall(&verdicts, order);
        Judged { experiment, rows, verdict, measured }
    }

    /// The experiment with the repository's own measurements.
    ///
    /// # Errors
    /// When a file is broken.
    pub fn stored(file: &ExperimentText) -> Result<Self, RunError> {
        let measured = file.result.map_or(Ok(vec![]), |text| read(text, file.id))?;
        Ok(Judged::of(Experiment::of(file)?, measured))
    }

    /// The row that stands for the experiment in a list: the first that was measured and has a published number, else the first
    /// with a published number.
    pub fn headline(&self) -> Option<&JudgedRow> {
        let published = |row: &&JudgedRow| self.experiment.published(row.row).is_some();
        let measured = self.rows.iter().filter(published).find(|row| row.ours.is_some());
        measured.or_else(|| self.rows.iter().find(published)).or_else(|| self.rows.first())
    }

    /// The day of the last measurement.
    pub fn date(&self) -> Option<&str> {
        let dates = self.measured.iter().map(|measured| &*measured.machine.date);
        dates.max().map(|date| date.split('T').next().unwrap_or(date))
    }

    /// CPU seconds of all measurements, trainings included.
    pub fn cpu_seconds(&self) -> f64 {
        let mut trainings: Vec<(&str, Option<u64>)> = vec![];
        let mut seconds = 0.0;
        for measured in &self.measured {
            seconds += measured.machine.cpu_seconds;
            let training = (&*measured.arm, measured.training_seed);
            if !trainings.contains(&training) {
                trainings.push(training);
                seconds += measured.machine.training_cpu_seconds.unwrap_or(0.0);
            }
        }
        seconds
    }

    /// A line of the list of experiments, for programs.
    pub fn line(&self) -> Value {
        let experiment = &self.experiment;
        let headline = self.headline();
        let trained = headline.map(|row| experiment.arms[row.row.arm].trained.words());
        json!({
            "id": experiment.id,
            "paper": experiment.paper_name(),
            "title": experiment.title,
            "section": experiment.section,
            "row": headline.map(|row| experiment.row_name(row.row)),
            "published": headline.and_then(|row| experiment.published(row.row)),
            "ours": headline.and_then(|row| row.ours.as_ref()),
            "n": headline.and_then(|row| Some(row.ours.as_ref()?.n)),
            "verdict": self.has_run().then(|| self.verdict.words()),
            "trained": trained,
            "date": self.date(),
            "cpu_hours": experiment.cpu_hours(),
            "needs": experiment.cannot_run(),
        })
    }

    /// Whether anything of it was measured.
    pub fn has_run(&self) -> bool {
        self.rows.iter().any(|row| row.ours.is_some())
    }

    /// The file: verdicts for people, measurements for programs.
    pub fn to_json(&self) -> String {
        let experiment = &self.experiment;
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let published = experiment.published(row.row);
                let difference =
                    row.ours.as_ref().zip(published.as_ref()).map(|(ours, p)| ours.difference(p));
                json!({
                    "row": experiment.row_name(row.row),
                    "trained": experiment.arms[row.row.arm].trained,
                    "weights": row.weights,
                    "published": published,
                    "ours": row.ours,
                    "difference": difference.map(|(difference, _)| difference),
                    "difference_interval_95": difference.and_then(|(_, interval)| interval),
                    "verdict": row.verdict.as_ref().map(Verdict::words),
                })
            })
            .collect();
        let value = json!({
            "format": FORMAT,
            "id": experiment.id,
            "verdict": self.verdict.words(),
            "rows": rows,
            "measured": self.measured,
        });
        format!("{value:#}\n")
    }
}

/// Reads the measurements of a file of [`Judged::to_json`].
///
/// # Errors
/// When it is no such file, or one of another experiment.
pub fn read(text: &str, id: &str) -> Result<Vec<Measured>, RunError> {
    #[derive(Deserialize)]
    struct File {
        format: String,
        id: String,
        measured: Vec<Measured>,
    }
    let bad = |why: String| RunError::BadRequest {
        why: format!("results of {id}: {}; run the experiment again", crate::one_line(&why)),
    };
    let file: File = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    if file.format != FORMAT || file.id != id {
        return Err(bad(format!("the file is {} of {}", file.format, file.id)));
    }
    Ok(file.measured)
}

fn judged(experiment: &Experiment, row: Row, measured: &[Measured]) -> JudgedRow {
    let (arm, condition) = (&experiment.arms[row.arm], &experiment.conditions[row.condition]);
    let own: Vec<&Measured> =
        measured.iter().filter(|m| m.arm == arm.name && m.condition == condition.name).collect();
    let measure = experiment.evaluation.measure;
    let groups: Vec<Vec<f64>> =
        own.iter().map(|m| m.returns.iter().map(|&total| measure.of(total, m.reference)).collect()).collect();
    let ours = Ours::of(&groups);
    let published = experiment.published(row);
    let seeds = if arm.preset.is_some() { experiment.seeds.len() } else { 1 };
    let verdict = experiment.rule(row).map(|rule| {
        let case = Case {
            rule,
            published: published.as_ref(),
            paper: experiment.paper.trained,
            trained: arm.trained,
            wanted: [experiment.evaluation.episodes, seeds],
        };
        judge(&case, ours.as_ref())
    });
    // What cannot be run is not judged: what was published stands beside the others.
    let verdict = verdict.filter(|_| ours.is_some() || experiment.row_needs(row).is_none());
    JudgedRow { row, weights: own.first().map(|m| m.weights).or(arm.weights), ours, verdict }
}
