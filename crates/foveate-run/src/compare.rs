//! Compares the learning curves of several runs.
//!
//! Runs of the same configuration form a group (their seeds may differ), whatever their names; runs with
//! different configurations are never pooled. The picture, the table and the JSON list the keys that differ.
//! The curves show the best validation so far, since a run with several starts begins again from time to
//! time, or returns of training where there is no validation, and the final report, on held-out tracks.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use foveate_core::hint::{Setting, Task};
use foveate_core::statistics;
use foveate_explain::charts::{ComparedRun, RunGroup, compared_runs};
use foveate_explain::figure::count_steps;
use foveate_train::{Event, Summary, decimals};
use serde::Serialize;
use toml::{Table, Value};

use crate::checkpoint;
use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::progress::LogLine;

/// A larger log is refused.
const MAX_LOG: u64 = 1 << 30;
/// A larger configuration is refused.
const MAX_CONFIG: u64 = 1 << 20;
/// Largest number of runs in a picture.
const MAX_RUNS: usize = 64;
/// Keys that may differ within a group.
const FREE: [&str; 4] = ["seed", "workers", "videos", "name"];
/// Number of keys in the table; the JSON has all of them.
const LISTED: usize = 20;

/// A run, as far as its log reaches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Its folder's name.
    pub name: String,
    /// The seed in its configuration; `None` (`null`) without a configuration.
    pub seed: Option<u64>,
    /// Training steps so far.
    pub steps: u64,
    /// CPU seconds so far, including validation and report.
    pub cpu_seconds: f64,
    /// CPU seconds until the last generation or validation.
    pub learning_cpu_seconds: f64,
    /// Every validation.
    pub validations: Vec<Validated>,
    /// Mean return of each generation.
    #[serde(skip)]
    pub returns: Vec<Validated>,
    /// The report, if the run has one.
    pub report: Option<Summary>,
}

/// A validation, or a generation's episodes of training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Validated {
    /// Training steps before it.
    pub steps: u64,
    /// CPU seconds before its end, those of earlier validations included.
    pub cpu_seconds: f64,
    /// Mean return.
    pub mean: f64,
}

/// What learning curves are drawn over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Over {
    /// Training steps.
    #[default]
    Steps,
    /// CPU seconds of all threads, validations included.
    CpuSeconds,
}

/// Runs of one configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The common name of its runs, without the numbers at the end of their names.
    pub name: String,
    /// Number of runs.
    pub n: usize,
    /// Its runs.
    pub runs: Vec<Curve>,
}

/// A key of the configuration that differs between groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The key, as in `recipe.stage.0.sigma`.
    pub key: String,
    /// Its value in every group, in the order of the groups, as TOML; `None` (`null`) for groups without this
    /// key.
    pub values: Vec<Option<String>>,
}

/// Groups of runs, in the order in which the user named them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The groups.
    pub groups: Vec<Group>,
    /// The differences between them.
    pub differences: Vec<Difference>,
    /// Notes for the reader: runs that repeat each other, or have no configuration.
    pub notes: Vec<String>,
}

/// A configuration as keys and values, without the keys that may differ within a group; `None` when the
/// folder has no configuration.
type Settings = Option<BTreeMap<String, String>>;

/// Reads the logs and the configurations of the runs in `folders`.
///
/// # Errors
/// When there are none or too many, one is named twice, a folder has no log, or a line of a log or a
/// configuration is broken.
pub fn read(folders: &[PathBuf]) -> Result<Comparison, RunError> {
    let refused = |why: String| Err(RunError::BadRequest { why });
    if folders.is_empty() || folders.len() > MAX_RUNS {
        return refused(format!("{} runs to compare; name from 1 to {MAX_RUNS}", folders.len()));
    }
    let mut known: Vec<PathBuf> = vec![];
    let mut groups: Vec<(Settings, Vec<Curve>)> = vec![];
    for folder in folders {
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if known.contains(&whole) {
            return refused(format!("{} is named twice; name each run once", folder.display()));
        }
        known.push(whole);
        let handle = FolderHandle::open(folder)?;
        let (seed, settings) = configuration(&handle)?;
        let curve = read_one(&handle, seed)?;
        // Runs without a configuration are never pooled, since nothing shows that their configurations were
        // the same.
        match groups.iter_mut().find(|(its, _)| its.is_some() && *its == settings) {
            Some((_, runs)) => runs.push(curve),
            None => groups.push((settings, vec![curve])),
        }
    }
    let settings: Vec<Settings> = groups.iter().map(|(settings, _)| settings.clone()).collect();
    let group = |(settings, runs): (Settings, Vec<Curve>)| {
        let name = if settings.is_some() { group_name(&runs) } else { runs[0].name.clone() };
        Group { name, n: runs.len(), runs }
    };
    let groups: Vec<Group> = groups.into_iter().map(group).collect();
    let notes = notes(&groups, &settings);
    Ok(Comparison { groups, differences: differences(&settings), notes })
}

/// The common part of the runs' names without the numbers at the end: `relu` of `relu-1` and `relu-2`, but `eps0.1` of
/// `eps0.1`, and `patch7` of `patch7` alone; all names if they have none in common.
fn group_name(runs: &[Curve]) -> String {
    let mut stems: Vec<&str> = vec![];
    for Curve { name, .. } in runs {
        let before = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let stem = before.trim_end_matches(['-', '_']);
        // A number without a separator counts runs only where there are several.
        let belongs = before.ends_with('.') || (runs.len() == 1 && stem == before);
        let stem = if stem.is_empty() || belongs { name } else { stem };
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems.join(", ")
}

/// Seed and settings of a run.
fn configuration(folder: &FolderHandle) -> Result<(Option<u64>, Settings), RunError> {
    const NAME: &str = "config.toml";
    let path = folder.path().join(NAME);
    if !folder.has(NAME) {
        return Ok((None, None));
    }
    let bad = |why: String| RunError::BadRequest { why: format!("{}: {why}", path.display()) };
    let bytes = folder
        .read(NAME, MAX_CONFIG)?
        .map_err(|size| bad(format!("{size} bytes are no configuration of a run; name another folder")))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("this is no text; name another folder".into()))?;
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
        bad(format!("{}; is it the configuration of a run?", error.message().replace('\n', " ")))
    })?;
    let seed = table.get("seed").and_then(Value::as_integer).and_then(|seed| u64::try_from(seed).ok());
    table.retain(|key, _| !FREE.contains(&key));
    let mut settings = BTreeMap::new();
    flatten("", &Value::Table(table), &mut settings);
    Ok((seed, Some(settings)))
}

/// Collects every value below `path` with its full key.
fn flatten(path: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Table(table) if !table.is_empty() => {
            table.iter().for_each(|(key, value)| flatten(&join(key), value, out));
        }
        // A list of tables, such as the stages, is traversed; other lists are values.
        Value::Array(items) if items.iter().any(Value::is_table) => {
            items.iter().enumerate().for_each(|(i, value)| flatten(&join(&i.to_string()), value, out));
        }
        other => {
            out.insert(path.to_owned(), other.to_string());
        }
    }
}

/// The keys that differ between the groups that have a configuration.
fn differences(settings: &[Settings]) -> Vec<Difference> {
    let known: Vec<&BTreeMap<String, String>> = settings.iter().flatten().collect();
    let mut keys: Vec<&String> = known.iter().flat_map(|settings| settings.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| known.iter().any(|settings| settings.get(*key) != known[0].get(*key)));
    let value = |settings: &Settings, key: &String| settings.as_ref()?.get(key).cloned();
    keys.into_iter()
        .map(|key| Difference {
            key: key.clone(),
            values: settings.iter().map(|settings| value(settings, key)).collect(),
        })
        .collect()
}

fn notes(groups: &[Group], settings: &[Settings]) -> Vec<String> {
    let mut notes = vec![];
    for (group, settings) in groups.iter().zip(settings) {
        let Group { name, runs, .. } = group;
        if runs.iter().all(|run| run.returns.is_empty()) {
            notes.push(format!("{name} has trained no generation yet, so there is nothing to draw"));
        } else if !group.is_validated() {
            notes.push(format!(
                "{name} has a run without any validation: its lines are mean returns of training, over {SMOOTHED} generations"
            ));
        }
        if settings.is_none() {
            notes.push(format!("{name} has no config.toml: nothing says which runs it may be pooled with"));
        }
        let mut seeds: Vec<u64> = runs.iter().filter_map(|run| run.seed).collect();
        seeds.sort_unstable();
        let mut twice: Vec<u64> = seeds.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
        twice.dedup();
        for seed in twice {
            let same: Vec<&str> =
                runs.iter().filter(|run| run.seed == Some(seed)).map(|run| run.name.as_str()).collect();
            notes.push(format!(
                "{} have the same configuration and the same seed {seed}: they repeat one run and are not independent",
                same.join(" and ")
            ));
        }
    }
    notes
}

fn read_one(handle: &FolderHandle, seed: Option<u64>) -> Result<Curve, RunError> {
    let folder = handle.path();
    let path = folder.join("log.jsonl");
    let bad = |why: String| RunError::BadRequest { why: format!("{}: {why}", path.display()) };
    let bytes = handle
        .read("log.jsonl", MAX_LOG)?
        .map_err(|size| bad(format!("{size} bytes are no log of a run; name another folder")))?;
    if !checkpoint::log_is_whole(handle)? {
        let resume = Task::Resume.of(folder.display());
        return Err(bad(format!("it is not what the run wrote; {resume} goes back to where it was whole")));
    }
    let name = folder
        .canonicalize()
        .ok()
        .and_then(|whole| whole.file_name().map(|name| name.to_string_lossy().into_owned()));
    let mut curve = Curve {
        name: name.unwrap_or_else(|| folder.display().to_string()),
        seed,
        steps: 0,
        cpu_seconds: 0.0,
        learning_cpu_seconds: 0.0,
        validations: vec![],
        returns: vec![],
        report: None,
    };
    // A running process may have written an incomplete line.
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    for (number, line) in bytes[..whole].split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let line: LogLine = serde_json::from_slice(line)
            .map_err(|error| bad(format!("line {}: {error}; is it the log of a run?", number + 1)))?;
        curve.cpu_seconds = line.cpu_seconds;
        match line.event {
            Event::Generation { steps, mean, .. } => {
                curve.steps = steps;
                curve.learning_cpu_seconds = line.cpu_seconds;
                curve.returns.push(Validated { steps, cpu_seconds: line.cpu_seconds, mean });
            }
            Event::Validation { steps, summary, .. } => {
                curve.learning_cpu_seconds = line.cpu_seconds;
                let cpu_seconds = line.cpu_seconds;
                curve.validations.push(Validated { steps, cpu_seconds, mean: summary.mean });
            }
            Event::Report { summary, .. } => curve.report = Some(summary),
            Event::Stagnation { .. }
            | Event::Evaluation { .. }
            | Event::Chosen { .. }
            | Event::Final { .. } => {}
        }
    }
    Ok(curve)
}

impl Over {
    fn of(self, validated: &Validated) -> f64 {
        match self {
            Over::Steps => validated.steps as f64,
            Over::CpuSeconds => validated.cpu_seconds,
        }
    }

    fn end(self, curve: &Curve) -> f64 {
        match self {
            Over::Steps => curve.steps as f64,
            Over::CpuSeconds => curve.learning_cpu_seconds,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Over::Steps => "training steps",
            Over::CpuSeconds => "CPU seconds",
        }
    }
}

impl Curve {
    /// The best validation up to `end`.
    fn best_until(&self, over: Over, end: f64) -> Option<f64> {
        let seen = self.validations.iter().take_while(|validated| over.of(validated) <= end);
        seen.map(|validated| validated.mean).reduce(f64::max)
    }

    fn best(&self) -> Option<f64> {
        self.best_until(Over::Steps, f64::INFINITY)
    }

    /// The mean return of training up to `end`: of the last generations, as the returns of single ones scatter.
    fn return_at(&self, over: Over, end: f64) -> Option<f64> {
        let seen = self.returns.partition_point(|trained| over.of(trained) <= end);
        let last = &self.returns[seen.saturating_sub(SMOOTHED)..seen];
        (!last.is_empty()).then(|| last.iter().map(|trained| trained.mean).sum::<f64>() / last.len() as f64)
    }
}

/// Generations whose returns are averaged for a line of training.
const SMOOTHED: usize = 20;
/// Most points of a line of training.
const POINTS: usize = 500;

impl Group {
    /// Returns whether every run of it has a validation, so that its line is the best one so far.
    fn is_validated(&self) -> bool {
        self.runs.iter().all(|run| !run.validations.is_empty())
    }

    /// The line of these of its runs together.
    fn line(&self, runs: &[Curve], over: Over) -> Vec<(f64, f64)> {
        if self.is_validated() { stairs(runs, over) } else { trained(runs, over) }
    }
}

impl Comparison {
    /// The groups' names; where two are equal, the first key that differs is added.
    fn names(&self) -> Vec<String> {
        let alike = |group: &Group| self.groups.iter().filter(|other| other.name == group.name).count() > 1;
        let told = |(i, group): (usize, &Group)| {
            let Some(Difference { key, values }) = self.differences.first().filter(|_| alike(group)) else {
                return group.name.clone();
            };
            // Groups that are equal in this key, too, get their position.
            let value = short(values[i].as_deref());
            let same = |(j, other): &(usize, &Group)| other.name == group.name && values[*j] == values[i];
            let place = self.groups.iter().enumerate().filter(same).position(|(j, _)| j == i).unwrap_or(0);
            let more = if place == 0 { String::new() } else { format!(" [{}]", place + 1) };
            format!("{} ({} = {value}){more}", group.name, key.rsplit('.').next().unwrap_or(key))
        };
        self.groups.iter().enumerate().map(told).collect()
    }

    /// A table of the cost of each group and the results of its runs; below it the differences between the
    /// groups.
    pub fn to_markdown(&self) -> String {
        let mut out =
            "| | runs | seeds | steps | CPU s | best validation | report | mean of the reports ± std |\n\
                       |---|---:|---|---:|---:|---|---|---:|\n"
                .to_owned();
        let names = self.names();
        let reported = self.groups.iter().flat_map(|group| &group.runs);
        let largest = reported
            .flat_map(|run| run.report.map(|report| report.mean).into_iter().chain(run.best()))
            .fold(0.0_f64, |most, mean| most.max(mean.abs()));
        let d = decimals(largest);
        for (Group { runs, .. }, name) in self.groups.iter().zip(&names) {
            let mean = |of: fn(&Curve) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
            let list = |of: &dyn Fn(&Curve) -> String| runs.iter().map(of).collect::<Vec<_>>().join(", ");
            let reports: Vec<f64> =
                runs.iter().filter_map(|run| run.report.map(|report| report.mean)).collect();
            let overall = match (reports.len(), statistics::std(&reports)) {
                (0, _) => "–".to_owned(),
                (n, Some(std)) => format!("{:.d$} ± {std:.d$} (n = {n})", statistics::mean(&reports)),
                (n, None) => format!("{:.d$} (n = {n}: no spread)", statistics::mean(&reports)),
            };
            let number = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.d$}"));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {:.0} | {} | {} | {overall} |",
                cell(name),
                runs.len(),
                list(&|run| run.seed.map_or_else(|| "–".to_owned(), |seed| seed.to_string())),
                count_steps(mean(|run| run.steps as f64).round() as u64),
                mean(|run| run.cpu_seconds),
                list(&|run| number(run.best())),
                list(&|run| number(run.report.map(|report| report.mean))),
            );
        }
        if !self.differences.is_empty() {
            out.push_str("\nWhat differs between the configurations:\n\n");
            let _ = writeln!(
                out,
                "| key | {} |",
                names.iter().map(|name| cell(name)).collect::<Vec<_>>().join(" | ")
            );
            let _ = writeln!(out, "|---|{}", "---|".repeat(names.len()));
            for Difference { key, values } in self.differences.iter().take(LISTED) {
                let values: Vec<String> = values.iter().map(|value| cell(&short(value.as_deref()))).collect();
                let _ = writeln!(out, "| {} | {} |", cell(key), values.join(" | "));
            }
            if let Some(more @ 1..) = self.differences.len().checked_sub(LISTED) {
                let _ = writeln!(out, "\n{more} more keys differ; {} has all of them.", Setting::Json);
            }
        }
        for note in &self.notes {
            let _ = writeln!(out, "\nNote: {note}.");
        }
        out
    }

    /// The subtitle: the keys in which the groups differ.
    fn differ_in(&self) -> String {
        let mut keys: Vec<&str> = self.differences.iter().map(|d| d.key.as_str()).collect();
        let all = keys.len();
        if all == 0 {
            return String::new();
        }
        // As many keys as fit the width.
        let length = |keys: &[&str]| keys.iter().map(|key| key.chars().count() + 2).sum::<usize>();
        while keys.len() > 1 && length(&keys) > 110 {
            keys.pop();
        }
        let more = if keys.len() < all { format!(" and {} more", all - keys.len()) } else { String::new() };
        format!("configurations differ in {}{more}", keys.join(", "))
    }

    /// A picture as SVG: thin lines for the best validation so far of each run, a thick one for the mean of a
    /// group, and on the right the reports with their 95 % intervals. Groups with a run that has no validation have lines of their
    /// returns of training.
    pub fn to_svg(&self, title: &str, over: Over) -> String {
        let runs = || self.groups.iter().flat_map(|group| &group.runs);
        let end = runs().map(|run| over.end(run)).fold(1.0, f64::max);
        let none = !self.groups.iter().any(Group::is_validated);
        let groups: Vec<RunGroup> = self
            .names()
            .into_iter()
            .zip(&self.groups)
            .map(|(name, group)| RunGroup {
                name: format!(
                    "{name} (n = {}{})",
                    group.n,
                    if group.is_validated() || none { "" } else { "; returns of training" }
                ),
                runs: group
                    .runs
                    .iter()
                    .map(|run| ComparedRun {
                        curve: group.line(std::slice::from_ref(run), over),
                        report: run.report.map(|report| (report.mean, report.ci95)),
                    })
                    .collect(),
                together: group.line(&group.runs, over),
            })
            .collect();
        let what = if none {
            "mean return of training, as no run has a validation"
        } else {
            "best validation so far"
        };
        compared_runs(title, &self.differ_in(), &format!("{what}, over {}", over.name()), end, &groups)
    }
}

/// A value in a table: at most 40 characters.
fn short(value: Option<&str>) -> String {
    let text = value.unwrap_or("–");
    if text.chars().count() > 40 { text.chars().take(39).chain(['…']).collect() } else { text.to_owned() }
}

/// A text with the characters escaped that would break a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// The mean of the best validations so far, at every change, from where every run has one to the end of the
/// shortest run.
fn stairs(runs: &[Curve], over: Over) -> Vec<(f64, f64)> {
    let mut at: Vec<f64> =
        runs.iter().flat_map(|run| &run.validations).map(|validated| over.of(validated)).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let end = runs.iter().map(|run| over.end(run)).fold(f64::INFINITY, f64::min);
    let mut out: Vec<(f64, f64)> = vec![];
    for x in at {
        let best: Option<Vec<f64>> = runs.iter().map(|run| run.best_until(over, x)).collect();
        let Some(best) = best.filter(|_| x <= end) else { continue };
        let mean = best.iter().sum::<f64>() / best.len() as f64;
        if let Some(&(_, before)) = out.last() {
            out.push((x, before));
        }
        out.push((x, mean));
    }
    if let Some(&(x, last)) = out.last()
        && x < end
    {
        out.push((end, last));
    }
    out
}

/// The mean of the runs' returns of training, from where every run has one to the end of the shortest run.
fn trained(runs: &[Curve], over: Over) -> Vec<(f64, f64)> {
    let starts = runs.iter().map(|run| run.returns.first().map_or(f64::INFINITY, |first| over.of(first)));
    let start = starts.fold(0.0, f64::max);
    let end = runs.iter().map(|run| over.end(run)).fold(f64::INFINITY, f64::min);
    let mut at: Vec<f64> = runs.iter().flat_map(|run| &run.returns).map(|trained| over.of(trained)).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    at.retain(|x| (start..=end).contains(x));
    let mean = |x: f64| {
        let returns: Option<Vec<f64>> = runs.iter().map(|run| run.return_at(over, x)).collect();
        Some((x, statistics::mean(&returns?)))
    };
    at.iter().step_by(at.len().div_ceil(POINTS).max(1)).chain(at.last()).filter_map(|&x| mean(x)).collect()
}
