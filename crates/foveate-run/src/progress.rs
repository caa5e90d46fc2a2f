//! Live progress output of a run.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write};

use foveate_core::{EpisodeResult, RolloutJob};
use foveate_train::{Event, Summary, decimals};
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::ticker::{Ticker, clock, stdout_width};
use crate::workers::Stop;
use crate::worlds;

/// A line of the log: an event and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// For a generation: the world's seeds of its tracks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trained_on: Vec<u64>,
    /// For validation, evaluation, finals and report: the result on every track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<Track>,
    /// Seconds of wall time of the run so far, without the time during which it was stopped.
    pub seconds: f64,
    /// Seconds of CPU time, over all threads.
    pub cpu_seconds: f64,
}

/// A track of a validation, an evaluation, the finals or the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// The world's seed.
    pub seed: u64,
    /// Sum of rewards.
    #[serde(rename = "return")]
    pub total: f64,
    /// Steps of the episode.
    pub steps: u64,
}

impl LogLine {
    /// A line without tracks.
    pub fn of(event: Event, seconds: f64, cpu_seconds: f64) -> Self {
        LogLine { event, trained_on: Vec::new(), tracks: Vec::new(), seconds, cpu_seconds }
    }

    /// Adds the tracks of the event.
    #[must_use]
    pub fn on(mut self, jobs: &[RolloutJob], results: &[EpisodeResult]) -> Self {
        match self.event {
            Event::Generation { .. } => {
                // Usually all genomes run the same tracks.
                let mut known = BTreeSet::new();
                let new = jobs.iter().map(|job| job.env_seed).filter(|&seed| known.insert(seed));
                self.trained_on = new.collect();
            }
            Event::Validation { .. }
            | Event::Evaluation { .. }
            | Event::Final { .. }
            | Event::Report { .. } => {
                let track = |(job, result): (&RolloutJob, &EpisodeResult)| Track {
                    seed: job.env_seed,
                    total: result.total,
                    steps: result.steps,
                };
                self.tracks = jobs.iter().zip(results).map(track).collect();
            }
            Event::Chosen { .. } => {}
        }
        self
    }
}

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For a terminal: a status line that is rewritten every generation and every second, and a permanent
    /// line for everything else.
    Live,
    /// For a pipe or a file: the permanent lines, and the status once a minute.
    Plain,
    /// For programs: every line of the log unchanged.
    Json,
    /// No output.
    Silent,
}

/// Shows progress; see [`Style`]. Write errors are ignored at first, since a closed window must not end a
/// run; [`Reporter::finish`] returns the first one.
pub struct Reporter {
    style: Style,
    /// Output for people.
    ticker: Option<Ticker>,
    /// Output for programs.
    out: Option<Box<dyn Write>>,
    /// (seconds, steps) of the last events, for speed and time left.
    recent: VecDeque<(f64, u64)>,
    last_validation: Option<f64>,
    /// The world's word for an episode.
    instance: &'static str,
    /// The first write error.
    failed: Option<io::Error>,
}

impl Reporter {
    /// Writes progress to `out`; a live line is as wide as the terminal of stdout.
    pub fn new(style: Style, out: Box<dyn Write + Send>) -> Self {
        let (ticker, out): (_, Option<Box<dyn Write>>) = match style {
            Style::Live => (Some(Ticker::new(out, Some(stdout_width))), None),
            Style::Plain => (Some(Ticker::new(out, None)), None),
            // Users who watch stderr see progress when a generation takes minutes.
            Style::Json => (Some(Ticker::new(Box::new(std::io::stderr()), None)), Some(out)),
            Style::Silent => (None, None),
        };
        Reporter {
            style,
            ticker,
            out,
            recent: VecDeque::new(),
            last_validation: None,
            instance: "episode",
            failed: None,
        }
    }

    /// Writes progress to a terminal whose width is given by `width`.
    #[cfg(test)]
    fn fitting(out: Box<dyn Write + Send>, width: fn() -> usize) -> Self {
        Reporter {
            ticker: Some(Ticker::new(out, Some(width))),
            ..Reporter::new(Style::Silent, Box::new(std::io::sink()))
        }
        .live()
    }

    #[cfg(test)]
    fn live(mut self) -> Self {
        self.style = Style::Live;
        self
    }

    /// Shows how many rollouts the workers with this [`Stop`] have completed.
    pub fn count(&self, work: &Stop) {
        if let Some(ticker) = &self.ticker {
            ticker.count(work, "rollouts");
        }
    }

    /// Uses the word of `world` for episodes, `tracks` in CarRacing; the default is `episodes`.
    pub fn in_world(&mut self, world: &str) {
        self.instance = worlds::instance(world);
    }

    /// The text for `n` episodes, `64 tracks`; with `what` in between, `64 other tracks`.
    pub(crate) fn episodes(&self, n: usize, what: &str) -> String {
        format!("{n} {what}{}{}", self.instance, if n == 1 { "" } else { "s" })
    }

    /// Shows a note to people.
    pub fn note(&mut self, text: &str) {
        if matches!(self.style, Style::Live | Style::Plain) {
            self.lasting(text);
        }
    }

    /// Shows a note that matters to programs as well: if the output is for programs, it goes to stderr.
    pub fn warn(&mut self, text: &str) {
        if self.style != Style::Silent {
            self.lasting(&format!("note: {text}"));
        }
    }

    /// Processes an event from before the run was resumed.
    pub fn before(&mut self, event: &Event) {
        if let Event::Validation { summary, .. } = event {
            self.last_validation = Some(summary.mean);
        }
    }

    /// Processes an event, after `steps` steps of the run, with about `steps_left` to go.
    pub fn event(&mut self, line: &LogLine, steps: u64, steps_left: u64) {
        self.recent.push_back((line.seconds, steps));
        if self.recent.len() > 40 {
            self.recent.pop_front();
        }
        match self.style {
            Style::Silent => {}
            Style::Json => {
                let text = serde_json::to_string(line).unwrap_or_default();
                self.write(&format!("{text}\n"));
                if let Some(ticker) = &self.ticker {
                    ticker.written(line.seconds);
                }
            }
            Style::Live | Style::Plain => self.show(&line.event, line.seconds, steps_left),
        }
    }

    fn show(&mut self, event: &Event, seconds: f64, steps_left: u64) {
        match event {
            Event::Generation { generation, stage, start, best, mean, .. } => {
                let (speed, left) = self.pace(steps_left).unzip();
                // The first parts are kept longest on a narrow terminal.
                let parts = vec![
                    format!("gen {generation} {stage} {start}: best {} mean {}", brief(*best), brief(*mean)),
                    left.unwrap_or_default(),
                    self.last_validation
                        .map_or_else(String::new, |mean| format!("validated {}", brief(mean))),
                    speed.unwrap_or_default(),
                ];
                if let Some(ticker) = &self.ticker {
                    ticker.show(parts, seconds);
                }
            }
            Event::Validation { generation, steps, stage, start, summary, best } => {
                self.last_validation = Some(summary.mean);
                let text = format!(
                    "{} validation {} over {}, generation {generation} ({stage} {start}), {} steps{}{}",
                    clock(seconds),
                    spread(summary),
                    self.episodes(summary.n, ""),
                    foveate_explain::figure::count_steps(*steps),
                    self.pace(steps_left)
                        .map_or_else(String::new, |(speed, left)| format!(", {speed}, {left}")),
                    if *best { ", best so far" } else { "" }
                );
                self.lasting(&text);
            }
            Event::Evaluation { generation, summary, .. } => {
                let text = format!(
                    "{} evaluation {} over {} that choose nothing, generation {generation}",
                    clock(seconds),
                    spread(summary),
                    self.episodes(summary.n, "other "),
                );
                self.lasting(&text);
            }
            Event::Chosen { stage, generation, mean } => {
                let d = decimals(mean.abs());
                let text =
                    format!("{} {stage}: going on from generation {generation} ({mean:.d$})", clock(seconds));
                self.lasting(&text);
            }
            Event::Final { generation, round, summary, best } => {
                let text = format!(
                    "{} finalist   {} over {}, generation {generation}{}{}",
                    clock(seconds),
                    spread(summary),
                    self.episodes(summary.n, ""),
                    if *round > 1 { format!(", round {round}") } else { String::new() },
                    if *best { ", best so far" } else { "" }
                );
                self.lasting(&text);
            }
            Event::Report { generation, summary, .. } => {
                let interval = match summary.ci95 {
                    Some([from, to]) => format!(
                        "95 % interval {} … {}, median {}",
                        brief(from),
                        brief(to),
                        brief(summary.median)
                    ),
                    None => "one has no interval".to_owned(),
                };
                let text = format!(
                    "{} result     {} over {} that nothing was chosen on ({interval}), generation {generation}",
                    clock(seconds),
                    spread(summary),
                    self.episodes(summary.n, ""),
                );
                self.lasting(&text);
            }
        }
    }

    /// Speed and remaining time, from the last events.
    fn pace(&self, steps_left: u64) -> Option<(String, String)> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        let (seconds, steps) = (last.0 - first.0, last.1.saturating_sub(first.1));
        if seconds <= 0.0 || steps == 0 {
            return None;
        }
        let speed = steps as f64 / seconds;
        Some((format!("{speed:.0} steps/s"), format!("{} left", clock(steps_left as f64 / speed))))
    }

    fn lasting(&mut self, text: &str) {
        if let Some(ticker) = &self.ticker {
            ticker.line(text);
        }
    }

    /// Writes a line for programs.
    fn write(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.failed.get_or_insert(error);
        }
    }

    /// Returns the first write error.
    ///
    /// # Errors
    /// The first write error, if there was one.
    pub fn finish(mut self) -> Result<(), RunError> {
        // Errors on stderr beside output for programs do not count as errors of the output.
        let people = self.ticker.as_ref().filter(|_| self.style != Style::Json).and_then(Ticker::failure);
        self.failed.take().or(people).map_or(Ok(()), |source| Err(RunError::Output { source }))
    }
}

/// Mean and standard deviation, in columns; no standard deviation for one episode.
fn spread(Summary { mean, std, .. }: &Summary) -> String {
    let d = decimals(mean.abs().max(std.unwrap_or(0.0)));
    match std {
        Some(std) => format!("{mean:>6.d$} ± {std:<5.d$}"),
        None => format!("{mean:>6.d$}"),
    }
}

/// A score in its shortest useful form.
fn brief(score: f64) -> String {
    let d = decimals(score.abs()) - 1;
    format!("{score:.d$}")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use foveate_train::Summary;

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("one thread").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn shown(style: Style) -> String {
        shown_in(style, || 200)
    }

    fn shown_in(style: Style, width: fn() -> usize) -> String {
        let generation = |generation, seconds| {
            let event = Event::Generation {
                generation,
                steps: generation * 1000,
                stage: "learn".into(),
                start: 1,
                best: 312.4,
                mean: 99.6,
                length: 31.0,
                norm: 15.0,
                sigma: 0.1,
                replayed: 0,
            };
            LogLine::of(event, seconds, seconds)
        };
        let validation = {
            let event = Event::Validation {
                generation: 2,
                steps: 2000,
                stage: "learn".into(),
                start: 1,
                summary: Summary::of(&[700.0, 800.0]),
                best: true,
            };
            LogLine::of(event, 3.0, 5.0)
        };
        let page = Page::default();
        let mut reporter = match style {
            Style::Live => Reporter::fitting(Box::new(page.clone()), width),
            _ => Reporter::new(style, Box::new(page.clone())),
        };
        reporter.note("hello");
        reporter.event(&generation(1, 1.0), 1000, 600_000);
        reporter.event(&generation(2, 2.0), 2000, 599_000);
        reporter.event(&validation, 4000, 597_000);
        reporter.event(&generation(3, 4.0), 5000, 596_000);
        let bytes = page.0.lock().expect("one thread").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_terminal_gets_a_line_that_lives() {
        let text = shown(Style::Live);
        assert!(
            text.contains("\r\x1b[2Kgen 2 learn 1: best 312 mean 100, 9:59 left, 1000 steps/s"),
            "{text}"
        );
        assert!(
            text.contains(
                "\r\x1b[2K0:03 validation  750.0 ± 50.0  over 2 episodes, generation 2 (learn 1), 2,000 steps"
            ),
            "{text}"
        );
        assert!(text.contains("best so far\n"), "{text}");
        assert!(text.ends_with("7:27 left, validated 750, 1333 steps/s"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_keeps_lines_and_words_whole() {
        let text = shown_in(Style::Live, || 64);
        for line in text.split(['\r', '\n']) {
            let line = line.trim_start_matches("\x1b[2K");
            assert!(line.chars().count() <= 64, "{line}");
        }
        assert!(text.ends_with("gen 3 learn 1: best 312 mean 100, 7:27 left, validated 750"), "{text}");
        assert!(text.contains("generation 2\n  (learn 1), 2,000 steps,"), "{text}");
    }

    #[test]
    fn a_pipe_gets_whole_lines_only() {
        let text = shown(Style::Plain);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.starts_with("hello\n") && text.ends_with('\n') && !text.contains('\x1b'), "{text}");
    }

    #[test]
    fn programs_get_the_log() {
        let text = shown(Style::Json);
        let lines: Vec<LogLine> =
            text.lines().map(|l| serde_json::from_str(l).expect("a log line")).collect();
        assert_eq!(lines.len(), 4);
        assert!(matches!(lines[2].event, Event::Validation { best: true, .. }));
        assert_eq!(shown(Style::Silent), "");
    }

    /// The lines about a validation with `returns` in `world`.
    fn judged(world: &str, returns: &[f64]) -> String {
        let summary = Summary::of(returns);
        let (generation, steps, stage, start) = (7, 40_000, "learn".to_owned(), 1);
        let (seeds, returns) = (vec![], vec![]);
        let page = Page::default();
        let mut reporter = Reporter::new(Style::Plain, Box::new(page.clone()));
        reporter.in_world(world);
        for event in [
            Event::Validation { generation, steps, stage: stage.clone(), start, summary, best: false },
            Event::Evaluation {
                generation,
                steps,
                stage,
                start,
                summary,
                seeds: seeds.clone(),
                returns: returns.clone(),
            },
            Event::Final { generation, round: 1, summary, best: false },
            Event::Report { generation, steps, judging_steps: 0, summary, seeds, returns },
        ] {
            reporter.event(&LogLine::of(event, 0.0, 0.0), steps, 0);
        }
        let bytes = page.0.lock().expect("one thread").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn episodes_are_called_as_the_world_calls_them() {
        let text = judged("car-racing", &[700.0, 800.0]);
        assert!(text.contains(" over 2 tracks, generation 7 (learn 1), 40,000 steps\n"), "{text}");
        assert_eq!(text.matches("tracks").count(), 4, "{text}");
        for world in ["gym:CartPole-v1", "take-cover"] {
            let text = judged(world, &[700.0, 800.0]);
            assert!(!text.contains("track") && text.contains("over 2 other episodes that choose"), "{text}");
        }
    }

    #[test]
    fn one_episode_has_no_interval() {
        let text = judged("car-racing", &[920.2]);
        assert_eq!(
            text.matches("over 1 track").count() + text.matches("over 1 other track").count(),
            4,
            "{text}"
        );
        assert!(
            text.contains("result      920.2 over 1 track that nothing was chosen on (one has no interval)")
        );
        assert!(!text.contains('±') && !text.contains('…') && !text.contains("tracks"), "{text}");
    }
}
