//! The real TensorBoard reads our event files: it shows all values of the log, and no step twice after a
//! resume.
//!
//! `FOVEATE_PYTHON` names a Python with the pinned packages; without it the test is skipped with a message.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use foveate_run::progress::LogLine;
use foveate_run::tensorboard::EventFile;
use foveate_train::{Event, Summary};
use serde_json::{Value, json};

const STARTED: u64 = 1_700_000_000;

/// A log: generations of 1000 steps and half a second, a validation after every third, a report at the end.
fn log(generations: u64) -> Vec<LogLine> {
    let mut lines = Vec::new();
    for generation in 1..=generations {
        let (steps, seconds) = (1000 * generation, 0.5 * generation as f64);
        let event = Event::Generation {
            generation,
            steps,
            stage: "learn".into(),
            start: 1,
            best: 100.0 * generation as f64,
            mean: -0.1 * generation as f64,
            length: 250.0,
            norm: 15.5,
            sigma: 0.1,
            replayed: 0,
            tasks: vec![],
            measures: [("loss".to_owned(), 0.5 / generation as f64), ("gradient_norm".to_owned(), 3.0)]
                .into(),
        };
        lines.push(LogLine::of(event, seconds, seconds));
        if generation % 3 == 0 {
            let summary = Summary::of(&[700.0, 800.0 + generation as f64]);
            let stage = "learn".into();
            let (seeds, returns) = (vec![1, 2], vec![700.0, 800.0]);
            let event = Event::Validation { generation, steps, stage, start: 1, summary, best: true };
            lines.push(LogLine::of(event, seconds, seconds));
            let (summary, stage) = (Summary::of(&returns), "learn".into());
            let event = Event::Evaluation { generation, steps, stage, start: 1, summary, seeds, returns };
            lines.push(LogLine::of(event, seconds, seconds));
        }
    }
    let summary = Summary::of(&[900.0, 910.0]);
    let event = Event::Report {
        generation: generations,
        steps: 1000 * generations,
        judging_steps: 500,
        summary,
        seeds: vec![1, 2],
        returns: vec![900.0, 910.0],
    };
    lines.push(LogLine::of(event, 100.0, 100.0));
    lines
}

/// The values that TensorBoard should show, in its precision.
fn expected(lines: &[LogLine]) -> Value {
    let mut tags = serde_json::Map::new();
    for line in lines {
        let (at, scalars) = match &line.event {
            Event::Generation { steps, best, mean, length, norm, measures, .. } => (
                steps,
                vec![
                    ("return/best", *best),
                    ("return/mean", *mean),
                    ("search/sigma", 0.1),
                    ("search/norm", *norm),
                    ("episode/length", *length),
                    ("speed/steps_per_second", 2000.0),
                    ("learning/loss", measures["loss"]),
                    ("learning/gradient_norm", measures["gradient_norm"]),
                ],
            ),
            Event::Validation { steps, summary, .. } => (
                steps,
                vec![("validation/mean", summary.mean), ("validation/std", summary.std.expect("many"))],
            ),
            Event::Evaluation { steps, summary, .. } => (
                steps,
                vec![("evaluation/mean", summary.mean), ("evaluation/std", summary.std.expect("many"))],
            ),
            Event::Report { steps, summary, .. } => {
                (steps, vec![("report/mean", summary.mean), ("report/std", summary.std.expect("many"))])
            }
            Event::Stagnation { .. } | Event::Chosen { .. } | Event::Final { .. } => continue,
        };
        for (tag, value) in scalars {
            let point = json!([STARTED as f64 + line.seconds, at, f64::from(value as f32)]);
            match tags.entry(tag).or_insert_with(|| json!([])) {
                Value::Array(points) => points.push(point),
                other => panic!("{other}"),
            }
        }
    }
    tags.into()
}

/// A TensorBoard process that watches a folder.
struct Board {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Board {
    fn watch(folder: &Path) -> Option<Self> {
        let python = foveate_toy::needs::python()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/read_events.py");
        let mut child = Command::new(python)
            .args(["-B".as_ref(), script.as_os_str(), folder.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("FOVEATE_PYTHON names a Python that starts");
        let ask = child.stdin.take().expect("it was piped");
        let answers = BufReader::new(child.stdout.take().expect("it was piped"));
        Some(Board { child, ask, answers })
    }

    #[track_caller]
    fn check(&mut self, lines: &[LogLine]) {
        writeln!(self.ask).expect("the script reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the script answers");
        let answer: Value =
            serde_json::from_str(&answer).expect("the script prints JSON; its error is above");
        assert_eq!(answer, expected(lines));
    }
}

#[test]
fn tensorboard_reads_every_number() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let Some(mut board) = Board::watch(dir.path()) else { return };
    let lines = log(20);
    let mut file = EventFile::begin(dir.path(), STARTED, &[]).expect("writable");
    for line in &lines[..18] {
        file.add(line).expect("writable");
    }
    board.check(&lines[..18]);
    // More events while it watches.
    for line in &lines[18..22] {
        file.add(line).expect("writable");
    }
    board.check(&lines[..22]);
    // Killed, truncated by ten lines, resumed.
    drop(file);
    let mut file = EventFile::begin(dir.path(), STARTED, &lines[..12]).expect("writable");
    board.check(&lines[..12]);
    for line in &lines[12..] {
        file.add(line).expect("writable");
    }
    board.check(&lines);
    // A TensorBoard that is started later.
    Board::watch(dir.path()).expect("it ran before").check(&lines);
    drop(board.ask);
    assert!(board.child.wait().expect("it ends").success());
}
