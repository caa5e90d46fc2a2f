//! Learning curves of several runs beside one another.
//!
//! Runs whose folders' names differ in a number at the end only are seeds of one recipe: `relu-1` and `relu-2` are both
//! `relu`. What is shown is the best validation so far, since a run of several tries starts anew now and then, and the
//! final report, which chose nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::course::Event;
use crate::curve::{escape, path};
use crate::error::RunError;
use crate::evaluate::Summary;
use crate::npz::read_bounded;
use crate::progress::LogLine;

/// A larger log is refused.
const MAX_LOG: u64 = 1 << 30;
/// Most runs that a picture can show.
const MAX_RUNS: usize = 64;

/// A run, as far as its log goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Its folder's name.
    pub name: String,
    /// Training steps so far.
    pub steps: u64,
    /// CPU seconds so far, judging included.
    pub cpu_seconds: f64,
    /// `(training steps, mean return)` of every validation.
    pub validations: Vec<(u64, f64)>,
    /// The report, once there is one.
    pub report: Option<Summary>,
}

/// Runs of one recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The beginning that their names share.
    pub name: String,
    /// Its runs.
    pub runs: Vec<Curve>,
}

/// Groups of runs, in the order in which they were named.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The groups.
    pub groups: Vec<Group>,
}

/// Reads the logs of the runs in `folders`.
///
/// # Errors
/// When there is none or there are too many, a folder has no log, or a line of a log is broken.
pub fn read(folders: &[PathBuf]) -> Result<Comparison, RunError> {
    if folders.is_empty() || folders.len() > MAX_RUNS {
        let why = format!("{} runs to compare; name from 1 to {MAX_RUNS}", folders.len());
        return Err(RunError::BadRequest { why });
    }
    let mut groups: Vec<Group> = vec![];
    for folder in folders {
        let curve = read_one(folder)?;
        let name = curve.name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_']);
        let name = if name.is_empty() { curve.name.clone() } else { name.to_owned() };
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.runs.push(curve),
            None => groups.push(Group { name, runs: vec![curve] }),
        }
    }
    Ok(Comparison { groups })
}

fn read_one(folder: &Path) -> Result<Curve, RunError> {
    let path = folder.join("log.jsonl");
    let bad = |why: String| RunError::BadRequest { why: format!("{}: {why}", path.display()) };
    let bytes = read_bounded(&path, MAX_LOG)?
        .map_err(|size| bad(format!("{size} bytes are no log of a run; name another folder")))?;
    let name = folder
        .canonicalize()
        .ok()
        .and_then(|whole| whole.file_name().map(|name| name.to_string_lossy().into_owned()));
    let mut curve = Curve {
        name: name.unwrap_or_else(|| folder.display().to_string()),
        steps: 0,
        cpu_seconds: 0.0,
        validations: vec![],
        report: None,
    };
    // A run that goes on may have written half a line.
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    for (number, line) in bytes[..whole].split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let line: LogLine = serde_json::from_slice(line)
            .map_err(|error| bad(format!("line {}: {error}; is it the log of a run?", number + 1)))?;
        curve.cpu_seconds = line.cpu_seconds;
        match line.event {
            Event::Generation { steps, .. } => curve.steps = steps,
            Event::Validation { steps, summary, .. } => curve.validations.push((steps, summary.mean)),
            Event::Report { summary, .. } => curve.report = Some(summary),
            Event::Evaluation { .. } | Event::Chosen { .. } | Event::Final { .. } => {}
        }
    }
    Ok(curve)
}

impl Curve {
    /// The best validation within the first `steps` training steps.
    fn best_until(&self, steps: f64) -> Option<f64> {
        let seen = self.validations.iter().take_while(|(at, _)| *at as f64 <= steps);
        seen.map(|&(_, mean)| mean).reduce(f64::max)
    }
}

impl Comparison {
    /// A table: what each group cost, and what its runs reached.
    pub fn to_markdown(&self) -> String {
        let mut out = "| | runs | steps | CPU s | best validation | report | mean of the reports ± std |\n\
                       |---|---:|---:|---:|---|---|---:|\n"
            .to_owned();
        for Group { name, runs } in &self.groups {
            let mean = |of: fn(&Curve) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
            let list = |of: &dyn Fn(&Curve) -> String| runs.iter().map(of).collect::<Vec<_>>().join(", ");
            let reports: Vec<f64> =
                runs.iter().filter_map(|run| run.report.map(|report| report.mean)).collect();
            let overall = match reports.len() {
                0 => "–".to_owned(),
                n => {
                    let mean = reports.iter().sum::<f64>() / n as f64;
                    let square = reports.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
                    format!("{mean:.1} ± {:.1}", square.sqrt())
                }
            };
            let number = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.1}"));
            let _ = writeln!(
                out,
                "| {name} | {} | {:.2} M | {:.0} | {} | {} | {overall} |",
                runs.len(),
                mean(|run| run.steps as f64) / 1e6,
                mean(|run| run.cpu_seconds),
                list(&|run| number(run.best_until(f64::INFINITY))),
                list(&|run| number(run.report.map(|report| report.mean))),
            );
        }
        out
    }

    /// The picture: thin lines for runs, a thick one for their mean as far as all of them have come, and the reports
    /// with their 95 % intervals on the right.
    pub fn to_svg(&self, title: &str) -> String {
        let runs = || self.groups.iter().flat_map(|group| &group.runs);
        let most = runs().map(|run| run.steps).max().unwrap_or(0).max(1) as f64;
        let values = runs().flat_map(|run| {
            let reports = run.report.into_iter().flat_map(|report| report.ci95);
            run.validations.iter().map(|&(_, mean)| mean).chain(reports)
        });
        let (low, high) = values.fold((0.0_f64, 100.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = ((low / 100.0).floor() * 100.0, (high / 100.0).ceil() * 100.0);
        let x = |steps: f64| LEFT + (CURVES - LEFT) * steps / most;
        let y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low);

        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\" fill=\"#333\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>\n",
            escape(title)
        );
        let lines = ((high - low) / 100.0).round() as usize;
        for i in (0..=lines).step_by(lines.div_ceil(10).max(1)) {
            let (value, at) = (low + 100.0 * i as f64, y(low + 100.0 * i as f64));
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{value:.0}</text>",
                LEFT - 8.0,
                at + 4.0
            );
        }
        for i in 0..=4 {
            let steps = most * f64::from(i) / 4.0;
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{:.2} M</text>",
                x(steps),
                BOTTOM + 20.0,
                steps / 1e6
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">best validation so far, over training steps</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">reports</text>",
            f64::midpoint(LEFT, CURVES),
            BOTTOM + 40.0,
            f64::midpoint(REPORTS, RIGHT),
            BOTTOM + 20.0
        );
        let width = (RIGHT - REPORTS) / runs().count().max(1) as f64;
        let mut place = 0;
        for (number, Group { name, runs }) in self.groups.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            for run in runs {
                let _ = writeln!(
                    out,
                    "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"0.45\"/>",
                    path(&stairs(std::slice::from_ref(run)), x, y)
                );
                if let Some(Summary { mean, ci95, .. }) = run.report {
                    let at = REPORTS + width * (f64::from(place) + 0.5);
                    let _ = writeln!(
                        out,
                        "<path d=\"M{at:.1} {:.1}V{:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>\
                         <circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>",
                        y(ci95[0]),
                        y(ci95[1]),
                        y(mean)
                    );
                }
                place += 1;
            }
            let _ = writeln!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"3\"/>",
                path(&stairs(runs), x, y)
            );
            let at = BOTTOM - 14.0 * (self.groups.len() - number) as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{at:.1}\">{} ({})</text>",
                CURVES - 190.0,
                at - 9.0,
                CURVES - 174.0,
                escape(name),
                runs.len()
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 408.0;
/// Where curves end, and where reports begin.
const CURVES: f64 = 780.0;
const REPORTS: f64 = 800.0;
const RIGHT: f64 = 960.0;
/// One for each group, over and over.
const COLOURS: [&str; 6] = ["#3566b0", "#d0541b", "#2b8a5a", "#8a3fa0", "#b08a00", "#c2307a"];

/// The mean of the best validations so far, wherever it changes, from where every run has one to where the first of
/// them ends.
fn stairs(runs: &[Curve]) -> Vec<(f64, f64)> {
    let mut at: Vec<f64> =
        runs.iter().flat_map(|run| &run.validations).map(|&(steps, _)| steps as f64).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let end = runs.iter().map(|run| run.steps as f64).fold(f64::INFINITY, f64::min);
    let mut out: Vec<(f64, f64)> = vec![];
    for steps in at {
        let best: Option<Vec<f64>> = runs.iter().map(|run| run.best_until(steps)).collect();
        let Some(best) = best.filter(|_| steps <= end) else { continue };
        let mean = best.iter().sum::<f64>() / best.len() as f64;
        if let Some(&(_, before)) = out.last() {
            out.push((steps, before));
        }
        out.push((steps, mean));
    }
    if let Some(&(steps, last)) = out.last()
        && steps < end
    {
        out.push((end, last));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run's folder with these validations and this report.
    fn run(root: &Path, name: &str, validations: &[(u64, f64)], report: Option<f64>) -> PathBuf {
        let folder = root.join(name);
        std::fs::create_dir(&folder).expect("new");
        let mut log = String::new();
        let mut push = |event: Event, cpu_seconds: f64| {
            let line = LogLine { event, trained_on: vec![], tracks: vec![], seconds: 1.0, cpu_seconds };
            log.push_str(&serde_json::to_string(&line).expect("plain"));
            log.push('\n');
        };
        for &(steps, mean) in validations {
            let generation = Event::Generation {
                generation: 1,
                steps,
                stage: "learn".into(),
                start: 1,
                best: mean,
                mean,
                length: 1.0,
                norm: 1.0,
                sigma: 0.1,
                replayed: 0,
            };
            push(generation, 1.0);
            let summary = Summary::of(&[mean]);
            let (generation, stage) = (1, "learn".to_owned());
            push(Event::Validation { generation, steps, stage, start: 1, summary, best: true }, 2.0);
        }
        if let Some(mean) = report {
            let summary = Summary::of(&[mean - 10.0, mean + 10.0]);
            let (seeds, returns) = (vec![], vec![]);
            push(Event::Report { generation: 1, steps: 1, judging_steps: 1, summary, seeds, returns }, 50.0);
        }
        std::fs::write(folder.join("log.jsonl"), log).expect("writable");
        folder
    }

    #[test]
    fn seeds_of_a_recipe_belong_together() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let root = dir.path();
        let folders = [
            run(root, "relu-1", &[(100, 5.0), (200, 3.0), (300, 9.0)], Some(400.0)),
            run(root, "soft max", &[(150, 50.0)], None),
            run(root, "relu-2", &[(150, 7.0)], Some(500.0)),
            run(root, "7", &[], None),
        ];
        let all = read(&folders).expect("logs");
        let names: Vec<(&str, usize)> = all.groups.iter().map(|g| (g.name.as_str(), g.runs.len())).collect();
        assert_eq!(names, [("relu", 2), ("soft max", 1), ("7", 1)]);
        // Best so far, where both have one, as far as both have come.
        assert_eq!(stairs(&all.groups[0].runs), [(150.0, 6.0)]);
        assert_eq!(
            stairs(&all.groups[0].runs[..1]),
            [(100.0, 5.0), (200.0, 5.0), (200.0, 5.0), (300.0, 5.0), (300.0, 9.0)]
        );
        let table = all.to_markdown();
        assert!(
            table.contains("| relu | 2 | 0.00 M | 50 | 9.0, 7.0 | 400.0, 500.0 | 450.0 ± 50.0 |"),
            "{table}"
        );
        assert!(table.contains("| soft max | 1 | 0.00 M | 2 | 50.0 | – | – |"), "{table}");
        let svg = all.to_svg("a <title>");
        assert!(
            svg.ends_with("</svg>\n") && svg.contains("a &lt;title&gt;") && svg.contains(">relu (2)<"),
            "{svg}"
        );
        assert_eq!(svg.matches("<circle").count(), 2, "a dot for each report");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn what_is_no_run_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let whole = run(dir.path(), "whole", &[(100, 5.0)], None);
        let log = whole.join("log.jsonl");
        // Half a line at the end is a run that is being written.
        let bytes = std::fs::read(&log).expect("readable");
        std::fs::write(&log, &bytes[..bytes.len() - 5]).expect("writable");
        let cut = read(std::slice::from_ref(&whole)).expect("a log");
        assert_eq!((cut.groups[0].runs[0].steps, cut.groups[0].runs[0].validations.len()), (100, 0));
        std::fs::write(&log, "no JSON\n").expect("writable");
        for (folders, words) in [
            (vec![], "name from 1 to 64"),
            (vec![whole.clone(); 65], "65 runs to compare"),
            (vec![whole.clone()], "line 1"),
            (vec![dir.path().join("nowhere")], "log.jsonl"),
        ] {
            let said = read(&folders).expect_err("no run").to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}
