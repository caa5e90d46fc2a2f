//! Live progress output of a training run.

use std::collections::VecDeque;
use std::io::{self, Write, stdout};

use foveate::run::RunError;
use foveate::run::progress::{LogLine, Note, RunName, TrainObserver, count_steps};
use foveate::run::ticker::{Ticker, clock};
use foveate::run::workers::Stop;
use foveate::run::worlds;
use foveate::training::{Event, Summary, decimals};

use crate::out;
use crate::remedy::{resume_command, run_arguments};

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// For a terminal: a status line that is rewritten every generation and every second, and a permanent
    /// line for everything else.
    Live,
    /// For a pipe or a file: the permanent lines, and the status once a minute.
    Plain,
    /// For programs: every line of the log unchanged.
    Json,
}

/// Shows progress; see [`Style`]. Write errors are ignored at first, since a closed window must not end a
/// run; [`Reporter::finish`] returns the first one.
pub(crate) struct Reporter {
    style: Style,
    /// Output for people.
    ticker: Ticker,
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
    /// Writes progress to stdout; a live line is as wide as its terminal.
    pub(crate) fn new(style: Style) -> Self {
        Reporter::to(style, Box::new(stdout()), out::stdout_width)
    }

    /// Writes progress to `out`; a live line has `width` columns.
    fn to(style: Style, out: Box<dyn Write + Send>, width: fn() -> usize) -> Self {
        let (ticker, out): (_, Option<Box<dyn Write>>) = match style {
            Style::Live => (Ticker::new(out, Some(width)), None),
            Style::Plain => (Ticker::new(out, None), None),
            // Users who watch stderr see progress when a generation takes minutes.
            Style::Json => (Ticker::new(Box::new(io::stderr()), None), Some(out)),
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

    /// The text for `n` episodes, `64 tracks`; with `what` in between, `64 other tracks`.
    fn episodes(&self, n: usize, what: &str) -> String {
        format!("{n} {what}{}{}", self.instance, if n == 1 { "" } else { "s" })
    }

    /// The words for a note.
    fn text(&self, note: &Note) -> String {
        match note {
            Note::Begins { agent, world, picture, steps, seed, run } => format!(
                "training {agent} on {world} (picture {picture}), {} steps, seed {seed}; everything goes to {}\n\
                 Ctrl-C stops safely, `{}` goes on",
                count_steps(*steps),
                run.folder.display(),
                resume_command(run)
            ),
            Note::BeginsAgain { folder } => {
                format!("{} was stopped before it began: starting", folder.display())
            }
            Note::Resumes { folder, generation } => {
                format!("going on with {} from generation {generation}", folder.display())
            }
            Note::SkippedCheckpoint { why } => format!("passing over a checkpoint: {why}"),
            Note::NewLog { old } => format!("the old log is called {old} now, and a new one begins"),
            Note::Changed { what } => format!("changed, and noted in about.json: {what}"),
            Note::AlreadyFinished { summary } => format!(
                "this run is finished: {} over {} that nothing was chosen on",
                summary.spread(decimals(summary.mean.abs().max(summary.std.unwrap_or(0.0)))),
                self.episodes(summary.n, "")
            ),
            Note::ChangedTooLate { run } => {
                let folder = run.folder.display();
                let config = RunName { folder: run.folder.join("config.toml"), ..run.clone() };
                format!(
                    "it trains no more, whatever was changed; a new run from its weights: `foveate train --config {} \
                     --set 'recipe.init={{weights=\"{folder}\"}}'`",
                    run_arguments(&config)
                )
            }
            Note::Stopped { run } => format!("stopped; `{}` goes on", resume_command(run)),
            Note::Finished { run, best, sees_picture } => {
                let best = format!("the best weights are {}", best.display());
                let run = run_arguments(run);
                let mut text =
                    format!("{best}\nnext:\n  foveate watch {run} --out drive.mp4\n  foveate eval {run}");
                // An explanation report needs a picture.
                if *sees_picture {
                    text.push_str(&format!("\n  foveate explain {run}"));
                }
                text
            }
            Note::Expensive { why } => why.clone(),
            other => format!("{other:?}"),
        }
    }

    /// Shows a line to people.
    fn tell(&mut self, text: &str) {
        if self.style != Style::Json {
            self.lasting(text);
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
                self.ticker.show(parts, seconds);
            }
            Event::Validation { generation, steps, stage, start, summary, best } => {
                self.last_validation = Some(summary.mean);
                let text = format!(
                    "{} validation {} over {}, generation {generation} ({stage} {start}), {} steps{}{}",
                    clock(seconds),
                    spread(summary),
                    self.episodes(summary.n, ""),
                    count_steps(*steps),
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
            Event::Stagnation { generation, stage, start, why, .. } => {
                let text = format!(
                    "{} nothing changes any more, generation {generation} ({stage} {start}): {why}",
                    clock(seconds)
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

    fn lasting(&self, text: &str) {
        self.ticker.line(text);
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
    pub(crate) fn finish(mut self) -> Result<(), RunError> {
        // Errors on stderr beside output for programs do not count as errors of the output.
        let people = if self.style == Style::Json { None } else { self.ticker.failure() };
        self.failed.take().or(people).map_or(Ok(()), |source| Err(RunError::Output { source }))
    }
}

impl TrainObserver for Reporter {
    fn world(&mut self, id: &str) {
        self.instance = worlds::instance(id);
    }

    fn counts(&mut self, stop: &Stop) {
        self.ticker.count(stop, "rollouts");
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::RenderedPicture { world, why, picture } => out::note(&format!(
                "{world}: {why}; the agent sees what it draws for people (picture {picture})"
            )),
            Note::Cluster { workers } => {
                let plural = if *workers == 1 { "" } else { "s" };
                self.lasting(&format!("rollouts on a cluster, {workers} worker{plural} now"));
            }
            // Matters to programs as well: if the output is for programs, it goes to stderr.
            Note::Unbalanced { why } => self.lasting(&format!("note: {why}")),
            _ => {
                let text = self.text(note);
                self.tell(&text);
            }
        }
    }

    fn past_event(&mut self, event: &Event) {
        if let Event::Validation { summary, .. } = event {
            self.last_validation = Some(summary.mean);
        }
    }

    fn event(&mut self, line: &LogLine, steps: u64, steps_left: u64) {
        self.recent.push_back((line.seconds, steps));
        if self.recent.len() > 40 {
            self.recent.pop_front();
        }
        match self.style {
            Style::Json => {
                let text = serde_json::to_string(line).unwrap_or_default();
                self.write(&format!("{text}\n"));
                self.ticker.written(line.seconds);
            }
            Style::Live | Style::Plain => self.show(&line.event, line.seconds, steps_left),
        }
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
                tasks: vec![],
                measures: std::collections::BTreeMap::new(),
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
        let mut reporter = Reporter::to(style, Box::new(page.clone()), width);
        reporter.note(&Note::Expensive { why: "hello".into() });
        reporter.event(&generation(1, 1.0), 1000, 600_000);
        reporter.event(&generation(2, 2.0), 2000, 599_000);
        reporter.event(&validation, 4000, 597_000);
        reporter.event(&generation(3, 4.0), 5000, 596_000);
        let bytes = page.0.lock().expect("one thread").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn the_first_line_counts_steps_as_they_are() {
        for (steps, runs_code, expect) in [
            (
                7_500_000,
                false,
                "7.50 M steps, seed 3; everything goes to runs/a\nCtrl-C stops safely, `foveate train --resume runs/a` goes on",
            ),
            (
                40_000,
                true,
                "40,000 steps, seed 3; everything goes to runs/a\nCtrl-C stops safely, `foveate train --resume runs/a --trust-world` goes on",
            ),
        ] {
            let run = RunName { folder: "runs/a".into(), runs_code };
            let (agent, world, picture) = ("x".into(), "y".into(), "fast".into());
            let note = Note::Begins { agent, world, picture, steps, seed: 3, run };
            let page = Page::default();
            Reporter::to(Style::Plain, Box::new(page.clone()), || 80).note(&note);
            let text = String::from_utf8(page.0.lock().expect("one thread").clone()).expect("text");
            assert_eq!(text, format!("training x on y (picture fast), {expect}\n"));
        }
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
    }

    /// The lines about a validation with `returns` in `world`.
    fn judged(world: &str, returns: &[f64]) -> String {
        let summary = Summary::of(returns);
        let (generation, steps, stage, start) = (7, 40_000, "learn".to_owned(), 1);
        let (seeds, returns) = (vec![], vec![]);
        let page = Page::default();
        let mut reporter = Reporter::to(Style::Plain, Box::new(page.clone()), || 200);
        reporter.world(world);
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
