//! `cargo xtask digits`: both networks on handwritten digits, with five seeds each, and the picture of `docs/digits.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use foveate_core::Seed;
use foveate_core::statistics::{mean, quantile, std};
use foveate_explain::figure::{Anchor, Ink, LETTERS, Plot, plain_svg};
use serde_json::Value;

use crate::bench::{json, list, number, path};
use crate::{cargo, command, mnist, root, run};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;
/// Pictures of a step of Adam, and of a training.
const BATCH: f64 = 300.0;
const PICTURES: f64 = 300_000.0;
/// Rotation, shift and spots of the test pictures; training has the third.
const STRENGTHS: [[u32; 3]; 5] = [[0, 0, 0], [15, 3, 5], [30, 6, 10], [45, 9, 15], [60, 12, 20]];
const AS_TRAINED: usize = 2;
/// Draws of the bootstrap.
const DRAWS: usize = 1000;

struct Network {
    preset: &'static str,
    name: &'static str,
    ink: Ink,
}

const NETWORKS: [Network; 2] = [
    Network { preset: "digits", name: "relational", ink: Ink::Line(0) },
    Network { preset: "digits-baseline", name: "convolutional", ink: Ink::Line(1) },
];

/// Trains what is not trained yet, evaluates, prints a table and draws `docs/images/digits.svg`. Stopped at any time, it goes
/// on where it was.
pub(crate) fn run_all() -> Result<()> {
    let data = mnist::data()?;
    let folder = root().join("target/digits");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    run("cargo build", cargo().args(["build", "--release", "--quiet", "--package", "foveate-cli"]))?;
    let study = Study { data, folder };

    let mut plots = [iterations_plot(), strengths_plot()];
    let mut right = vec![];
    for network in &NETWORKS {
        let curve = study.curve(network)?;
        plots[0].series(curve.iter().copied(), network.ink, 2.0);
        let mut of_seeds = vec![];
        let mut points = vec![vec![]; STRENGTHS.len()];
        for seed in SEEDS {
            let name = format!("{}-{seed}", network.name);
            if (0..STRENGTHS.len()).any(|strength| !study.evaluation(&name, strength).is_file()) {
                study.train(network, seed, &name, &[])?;
            }
            for (strength, points) in points.iter_mut().enumerate() {
                let accuracy = study.accuracies(&name, strength)?;
                points.push(100.0 * mean(&accuracy));
                if strength == AS_TRAINED {
                    of_seeds.push(accuracy);
                }
            }
        }
        for (points, [rotation, shift, spots]) in points.iter().zip(STRENGTHS) {
            let each: Vec<String> = points.iter().map(|p| format!("{p:.2}")).collect();
            let (middle, spread) = (mean(points), deviation(points));
            let (name, each) = (network.name, each.join(", "));
            eprintln!("{name} at {rotation}, {shift}, {spots}: {middle:.2} % ± {spread:.2} of {each}");
        }
        let first: Vec<f64> = of_seeds.iter().map(|seed| 100.0 * mean(&seed[..500])).collect();
        eprintln!("{}, first 500: {:.2} % ± {:.2}", network.name, mean(&first), deviation(&first));
        let ends = points
            .iter()
            .map(|p| [p.iter().copied().fold(f64::MAX, f64::min), p.iter().copied().fold(0.0, f64::max)]);
        let band: Vec<_> = ends.enumerate().map(|(i, [low, high])| (i as f64, low, high)).collect();
        plots[1].band(&band, network.ink, 0.18);
        plots[1].series(points.iter().enumerate().map(|(i, p)| (i as f64, mean(p))), network.ink, 2.0);
        right.push(of_seeds);
    }
    let [low, high] = gap_interval(&right[0], &right[1]);
    let gap = 100.0 * (mean_of_all(&right[0]) - mean_of_all(&right[1]));
    eprintln!("relational minus convolutional: {gap:.2} points, {low:.2} … {high:.2}");

    let [mut sheet, strengths] = plots;
    sheet.legend(&NETWORKS.each_ref().map(|network| (network.ink, network.name)));
    let width = sheet.sheet.width;
    sheet.sheet.width += strengths.sheet.width;
    sheet.sheet.add(strengths.sheet, (width, 0.0));
    let file = root().join("docs/images/digits.svg");
    let title = "Accuracy on handwritten digits";
    fs::write(&file, plain_svg(&sheet.sheet, title))
        .with_context(|| format!("writing {}", file.display()))?;
    eprintln!("drew {}", file.display());
    Ok(())
}

struct Study {
    /// Of MNIST.
    data: PathBuf,
    /// Of the runs and their evaluations.
    folder: PathBuf,
}

impl Study {
    fn foveate(&self) -> Command {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let mut foveate = command(target.join("release/foveate"));
        foveate.current_dir(&self.folder);
        foveate
    }

    fn run_folder(&self, name: &str) -> PathBuf {
        self.folder.join("runs").join(name)
    }

    fn evaluation(&self, name: &str, strength: usize) -> PathBuf {
        self.folder.join(format!("{name}-{}.json", STRENGTHS[strength][0]))
    }

    fn option(&self) -> Result<String> {
        Ok(format!("data={}", path(&self.data)?))
    }

    /// Begins a training, or goes on with it.
    fn train(&self, network: &Network, seed: u64, name: &str, settings: &[&str]) -> Result<()> {
        let mut train = self.foveate();
        train.arg("train");
        if self.run_folder(name).is_dir() {
            train.args(["--resume", path(&self.run_folder(name))?]);
        } else {
            let seed = seed.to_string();
            train.args(["digits", "--preset", network.preset, "--option", &self.option()?]);
            train.args(["--seed", &seed, "--name", name]);
            for setting in settings {
                train.args(["--set", setting]);
            }
        }
        run(name, &mut train)
    }

    /// 1 for each test picture that is named right, else 0.
    fn accuracies(&self, name: &str, strength: usize) -> Result<Vec<f64>> {
        let [rotation, shift, spots] = STRENGTHS[strength];
        let file = self.evaluation(name, strength);
        if !file.is_file() {
            let mut eval = self.foveate();
            eval.args(["eval", path(&self.run_folder(name))?, "--seeds", "0..10000", "--json"]);
            for option in [
                self.option()?,
                "images=test".to_owned(),
                format!("rotation={rotation}"),
                format!("shift={shift}"),
                format!("spots={spots}"),
            ] {
                eval.args(["--option", &option]);
            }
            let result = json("foveate eval", &mut eval)?;
            fs::write(&file, result.to_string()).with_context(|| format!("writing {}", file.display()))?;
        }
        let result = read(&file)?;
        let returns = list(&result, "returns")?;
        ensure!(returns.len() == 10_000, "{} has {} pictures", file.display(), returns.len());
        returns.iter().map(|right| right.as_f64().context("a return is a number")).collect()
    }

    /// `(iteration, accuracy in %)` of the first seed, on training pictures that are changed anew.
    fn curve(&self, network: &Network) -> Result<Vec<(f64, f64)>> {
        let name = format!("{}-curve", network.name);
        let settings = ["recipe.selection.every=15000", "recipe.selection.tracks=2000"];
        let file = self.run_folder(&name).join("log.jsonl");
        if !self.run_folder(&name).join("summary.json").is_file() {
            self.train(network, *SEEDS.start(), &name, &settings)?;
        }
        let log = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let mut points = vec![];
        for line in log.lines() {
            let event: Value =
                serde_json::from_str(line).with_context(|| format!("reading {}", file.display()))?;
            if event["event"] == "validation" {
                points.push((number(&event, "steps")? / BATCH, 100.0 * number(&event, "mean")?));
            }
        }
        Ok(points)
    }
}

fn read(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
}

fn mean_of_all(of_seeds: &[Vec<f64>]) -> f64 {
    of_seeds.iter().map(|seed| mean(seed)).sum::<f64>() / of_seeds.len() as f64
}

/// The standard deviation over seeds.
fn deviation(numbers: &[f64]) -> f64 {
    std(numbers).expect("several seeds")
}

/// The 95 % interval of the difference of accuracies in points: seeds and pictures are drawn with replacement, the same
/// pictures for both networks.
fn gap_interval(a: &[Vec<f64>], b: &[Vec<f64>]) -> [f64; 2] {
    let mut rng = Seed::root(1).rng();
    let gaps: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let mut seeds = |of: &[Vec<f64>]| -> Vec<usize> {
                of.iter().map(|_| rng.below(of.len() as u64) as usize).collect()
            };
            let (first, second) = (seeds(a), seeds(b));
            let pictures = a[0].len();
            let sum: f64 = (0..pictures)
                .map(|_| {
                    let at = rng.below(pictures as u64) as usize;
                    let part = |of: &[Vec<f64>], seeds: &[usize]| {
                        seeds.iter().map(|&seed| of[seed][at]).sum::<f64>() / seeds.len() as f64
                    };
                    part(a, &first) - part(b, &second)
                })
                .sum();
            100.0 * sum / pictures as f64
        })
        .collect();
    [0.025, 0.975].map(|q| quantile(&gaps, q))
}

const SIZE: [f64; 2] = [520.0, 360.0];
const MARGINS: [f64; 4] = [48.0, 20.0, 60.0, 56.0];

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

fn iterations_plot() -> Plot {
    let mut plot = Plot::new(SIZE[0], SIZE[1], MARGINS, [0.0, PICTURES / BATCH], [0.0, 100.0]);
    plot.y_axis("", 5, percent);
    plot.x_axis("iterations of 300 pictures", 5, |x| format!("{x:.0}"));
    plot
}

fn strengths_plot() -> Plot {
    let last = STRENGTHS.len() as f64 - 1.0;
    let mut plot = Plot::new(SIZE[0], SIZE[1], MARGINS, [-0.2, last + 0.2], [0.0, 100.0]);
    plot.y_axis("", 5, percent);
    let labels = STRENGTHS.iter().enumerate();
    plot.x_labels(
        "rotation, shift, spots (training: 30, 6, 10)",
        labels.map(|(i, [rotation, shift, spots])| (i as f64, format!("{rotation}, {shift}, {spots}"))),
    );
    let (x, y) = (plot.x.range[1], plot.y.range[1] - 10.0);
    plot.sheet.text((x, y), LETTERS, Anchor::End, Ink::Muted, "mean of five seeds, lowest to highest");
    plot
}
