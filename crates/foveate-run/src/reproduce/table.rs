//! An experiment's results for people: the table, as Markdown and as CSV, and the figure.

use std::path::PathBuf;

use foveate_explain::charts::{AgentMean, ConditionRow, ConditionsHead, condition_means};
use foveate_explain::figure::{Cell, DataTable, count_steps};
use foveate_train::{decimals, interval_text};

use super::experiment::{FigureKind, PublishedNumber};
use super::measured::{Judged, JudgedRow};
use super::verdict::Ours;
use crate::compare::{self, Over};
use crate::error::RunError;

/// `904.6 ± 32.6`; whole numbers stay whole.
fn spread(mean: f64, std: Option<f64>, digits: usize) -> String {
    std.map_or_else(|| format!("{mean:.digits$}"), |std| format!("{mean:.digits$} ± {std:.digits$}"))
}

/// A published number as it was printed.
fn as_printed(published: &PublishedNumber) -> String {
    match published.std {
        Some(std) => format!("{} ± {std}", published.mean),
        None => published.mean.to_string(),
    }
    .replace('-', "−")
}

impl Judged {
    /// Decimals of measured numbers.
    fn digits(&self) -> usize {
        let largest = self.rows.iter().filter_map(|row| Some(row.ours.as_ref()?.mean.abs()));
        decimals(largest.fold(0.0, f64::max))
    }

    /// The measured number of a row, `904.6 ± 32.6`.
    pub fn ours_text(&self, row: &JudgedRow) -> String {
        let text = |ours: &Ours| spread(ours.mean, ours.std, self.digits());
        row.ours.as_ref().map_or_else(|| "–".into(), |ours| text(ours).replace('-', "−"))
    }

    /// The published number of a row.
    pub fn published_text(&self, row: &JudgedRow) -> String {
        self.experiment.published(row.row).map_or_else(|| "–".into(), |published| as_printed(&published))
    }

    /// The row called `name`.
    pub fn row(&self, name: &str) -> Option<&JudgedRow> {
        self.rows.iter().find(|row| self.experiment.row_name(row.row) == name)
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let digits = self.digits();
        let unit = self.experiment.evaluation.measure.unit();
        let mut text = format!(
            "| row | trained | weights | n | Foveate{unit} | 95 % interval | published{unit} | difference | verdict |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---|\n"
        );
        for row in &self.rows {
            let arm = &self.experiment.arms[row.row.arm];
            let n = row.ours.as_ref().map_or_else(
                || "–".into(),
                |ours| match ours.seeds {
                    1 => count_steps(ours.n as u64),
                    seeds => format!("{seeds} × {}", count_steps((ours.n / seeds) as u64)),
                },
            );
            let interval =
                row.ours.as_ref().map_or_else(|| "–".into(), |ours| interval_text(ours.interval, digits));
            let difference = self.difference_text(row, digits);
            let weights = row.weights.map_or_else(|| "–".into(), |count| count_steps(count as u64));
            let verdict = row.verdict.as_ref().map_or_else(|| "–".into(), super::Verdict::words);
            text.push_str(&format!(
                "| {} | {} | {weights} | {n} | {} | {} | {} | {} | {verdict} |\n",
                self.experiment.row_name(row.row),
                arm.trained.words(),
                self.ours_text(row),
                interval.replace('-', "−"),
                self.published_text(row),
                difference.replace('-', "−"),
            ));
        }
        text
    }

    /// Ours minus the published number, with its interval.
    fn difference_text(&self, row: &JudgedRow, digits: usize) -> String {
        let published = self.experiment.published(row.row);
        let Some((ours, published)) = row.ours.as_ref().zip(published) else { return "–".into() };
        let (difference, interval) = ours.difference(&published);
        let interval =
            interval.map_or(String::new(), |ends| format!(" ({})", interval_text(Some(ends), digits)));
        format!("{difference:+.digits$}{interval}")
    }

    /// The table with title and verdict, as a file.
    pub fn document(&self) -> String {
        let experiment = &self.experiment;
        let order = match &experiment.order[..] {
            [] => String::new(),
            names => format!("\nPublished order: {}.\n", names.join(" > ")),
        };
        let left_out: Vec<String> = experiment
            .rows()
            .into_iter()
            .filter_map(|row| {
                Some(format!("* {}: {}\n", experiment.row_name(row), experiment.row_needs(row)?))
            })
            .collect();
        let left_out =
            if left_out.is_empty() { String::new() } else { format!("\nNot run:\n\n{}", left_out.concat()) };
        format!(
            "# {}: {}\n\n{}, {}. Mean ± standard deviation over n episodes.\n\n{}{order}{left_out}\nVerdict: {}.\n",
            experiment.id,
            experiment.title,
            experiment.paper_title(),
            experiment.section,
            self.markdown(),
            self.verdict.words()
        )
    }

    /// The table as CSV, unrounded.
    pub fn csv(&self) -> String {
        let mut table = DataTable::new(&[
            "row",
            "trained",
            "weights",
            "seeds",
            "n",
            "mean",
            "std",
            "low",
            "high",
            "published",
            "published_std",
            "difference",
            "difference_low",
            "difference_high",
            "verdict",
        ]);
        for row in &self.rows {
            let published = self.experiment.published(row.row);
            let ours = row.ours.as_ref();
            let difference = ours.zip(published.as_ref()).map(|(ours, published)| ours.difference(published));
            let ends = difference.and_then(|(_, interval)| interval);
            let text = |text: String| Cell::from(text);
            table.row([
                text(self.experiment.row_name(row.row)),
                text(self.experiment.arms[row.row.arm].trained.words().to_owned()),
                Cell::from(row.weights.map(|n| n as f64)),
                Cell::from(ours.map(|ours| ours.seeds as f64)),
                Cell::from(ours.map(|ours| ours.n as f64)),
                Cell::from(ours.map(|ours| ours.mean)),
                Cell::from(ours.and_then(|ours| ours.std)),
                Cell::from(ours.and_then(|ours| Some(ours.interval?[0]))),
                Cell::from(ours.and_then(|ours| Some(ours.interval?[1]))),
                Cell::from(published.map(|p| p.mean)),
                Cell::from(published.and_then(|p| p.std)),
                Cell::from(difference.map(|(difference, _)| difference)),
                Cell::from(ends.map(|[low, _]| low)),
                Cell::from(ends.map(|[_, high]| high)),
                text(row.verdict.as_ref().map(super::Verdict::words).unwrap_or_default()),
            ]);
        }
        table.csv()
    }

    /// The figure as SVG; `runs` are the folders of the trainings.
    ///
    /// # Errors
    /// When a log of a training is broken.
    pub fn figure(&self, runs: &[PathBuf]) -> Result<String, RunError> {
        let experiment = &self.experiment;
        let title = format!("{}: {}", experiment.id, experiment.title);
        if experiment.figure == FigureKind::Curves && !runs.is_empty() {
            return Ok(compare::read(runs)?.to_svg(&title, Over::Steps));
        }
        // With one arm, published numbers are those of others; with several, each arm has its own.
        let one = experiment.arms.len() == 1;
        let mut names: Vec<String> = vec![];
        for arm in &experiment.arms {
            names.push(arm.name.clone());
            if !one {
                names.push(format!("{}, published", arm.name));
            }
        }
        let rows: Vec<ConditionRow<'_>> = experiment
            .conditions
            .iter()
            .enumerate()
            .map(|(place, condition)| {
                let of_arm = |arm: usize| {
                    self.rows.iter().find(|row| (row.row.arm, row.row.condition) == (arm, place))
                };
                let ours = |arm: usize| of_arm(arm).and_then(|row| Some(measured_mean(row.ours.as_ref()?)));
                let theirs = |arm: usize| {
                    let published = experiment.published(of_arm(arm)?.row)?;
                    Some(AgentMean { mean: published.mean, interval: None, deviation: published.std })
                };
                let arms = 0..experiment.arms.len();
                let means =
                    if one { vec![ours(0)] } else { arms.flat_map(|arm| [ours(arm), theirs(arm)]).collect() };
                (&*condition.name, means, if one { theirs(0) } else { None })
            })
            .collect();
        let agents: Vec<&str> = names.iter().map(|name| &**name).collect();
        let head = ConditionsHead {
            title: &title,
            subtitle: "a thick line is the 95 % interval of the mean, a thin one mean ± standard deviation",
            agents: &agents,
            others: one.then_some("published (mean ± standard deviation)"),
            goal: None,
        };
        Ok(condition_means(&head, &rows))
    }
}

fn measured_mean(ours: &Ours) -> AgentMean {
    AgentMean { mean: ours.mean, interval: ours.interval, deviation: ours.std }
}
