//! An experiment that is stopped and resumed has the result of one that was not.

use std::fs;
use std::path::Path;

use foveate::jobs::{Reproduce, ReproduceObserver};
use foveate::run::reproduce::read;
use foveate::run::workers::Stop;

fn job(out: &Path) -> Reproduce {
    Reproduce {
        experiment: Some("relational/door-key".into()),
        only: vec!["champion 5x5".into(), "champion 16x16".into()],
        episodes: Some(2),
        out: Some(out.to_path_buf()),
        ..Reproduce::default()
    }
}

/// Asks for a stop when the evaluation of this number begins.
struct StopsAt<'a>(usize, &'a Stop);

impl ReproduceObserver for StopsAt<'_> {
    fn evaluates(&mut self, _: &str) {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 {
            self.1.ask();
        }
    }
}

#[test]
fn a_stop_changes_no_byte() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let [whole, parts] = ["whole", "parts"].map(|name| dir.path().join(name));
    let done = job(&whole).run(&mut (), &Stop::default()).expect("native worlds");
    let judged = done.judged.expect("nobody stopped it");
    let verdict =
        judged.row("champion 5x5, solved").and_then(|row| row.verdict.clone()).expect("it is judged");
    assert_eq!(verdict.words(), "not comparable (2 episodes of 1000 that count)");

    let stop = Stop::default();
    let stopped = job(&parts).run(&mut StopsAt(2, &stop), &stop).expect("a stop is no error");
    assert!(stopped.judged.is_none() && !parts.join("table.md").exists());
    let plan = job(&parts).plan().expect("an experiment");
    assert!(plan.text().contains("1 of 2 evaluations are there"), "{}", plan.text());
    let mut counted = Counts(0);
    assert!(job(&parts).run(&mut counted, &Stop::default()).expect("it is resumed").judged.is_some());
    assert_eq!(counted.0, 1, "only what is missing runs");

    for file in ["table.md", "table.csv", "figure.svg"] {
        let [whole, parts] = [&whole, &parts].map(|folder| fs::read(folder.join(file)).expect(file));
        assert!(whole == parts, "{file}");
    }
    let [a, b] = [&whole, &parts].map(|folder| {
        let text = fs::read_to_string(folder.join("report.json")).expect("a report");
        let measured = read(&text, "relational/door-key").expect("its own");
        measured.into_iter().map(|m| (m.condition, m.sha256, m.world, m.returns)).collect::<Vec<_>>()
    });
    assert_eq!(a, b);
}

struct Counts(usize);

impl ReproduceObserver for Counts {
    fn evaluates(&mut self, _: &str) {
        self.0 += 1;
    }
}

#[test]
fn what_cannot_run_says_why_in_one_line() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let said = |experiment: &str, only: &[&str]| {
        let only = only.iter().map(|&name| name.to_owned()).collect();
        let weights = Some(dir.path().to_path_buf());
        let job =
            Reproduce { experiment: Some(experiment.into()), only, weights, ..job(&dir.path().join("out")) };
        let said = job.run(&mut (), &Stop::default()).expect_err("it cannot").to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    assert!(
        said("relational/box-world", &[]).contains("cannot be run yet: the world Box-World is not built yet")
    );
    assert!(said("attention-agent/table-1", &[]).contains("published weights are missing"));
    assert!(said("attention-agent/table-1", &["colour"]).contains("choose from published weights, original"));
    assert!(said("attention-agent/tabel-1", &[]).contains("no experiment is called"));
    assert_eq!(
        Reproduce { experiment: Some("iap".into()), ..Reproduce::default() }.each().expect("a paper").len(),
        7
    );
}
