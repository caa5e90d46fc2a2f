//! `cargo xtask bench attention`: whole decisions by every kernel, beside NumPy; two plots.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::{Table, json, list, number, path, reference};
use crate::{cargo, root};
use foveate_explain::charts::{LinePlot, LineScale, line_plot};

/// Patches of the largest picture.
const MOST: f64 = 19_200.0;

/// Adds the rows, and draws the plots into `target/bench`; into `docs/images`, too, if they are to `replace` those.
pub(crate) fn rows(python: &Path, bench: &Path, replace: bool, table: &mut Table) -> Result<()> {
    let folder = bench.join("attention");
    let mut ours = cargo();
    ours.args([
        "run",
        "--release",
        "--quiet",
        "-p",
        "foveate-agents",
        "--example",
        "attention",
        "--",
        "--write",
    ]);
    let ours = json("the attention example", ours.arg(path(&folder)?))?;
    eprintln!("running numpy …");
    let theirs = json("attention.py", reference(python, "attention.py").arg(&folder))?;

    let timings = list(&ours, "attention")?;
    let at_most = |kernel: &str| {
        let mut found =
            timings.iter().filter(|t| t["kernel"] == kernel && t["patches"].as_f64() == Some(MOST));
        found.next().with_context(|| format!("no timing of {kernel}"))
    };
    // The same patches must matter most. Rounding may exchange two that are almost equal, but not many.
    for (kernel, reference) in
        [("softmax", "softmax"), ("pairs", "pairs"), ("relu", "relu"), ("hybrid", "hybrid")]
    {
        let (a, b) = (list(at_most(kernel)?, "best")?, list(&theirs[reference], "best")?);
        let shared = a.iter().filter(|patch| b.contains(patch)).count();
        ensure!(shared >= 8, "{kernel}: ours chooses {a:?}, numpy {b:?}");
    }
    let pairs = number(at_most("softmax")?, "us")?;
    let mut lines = Vec::new();
    for kernel in names(timings) {
        let us = number(at_most(kernel)?, "us")?;
        let what = format!("Attention over 19,200 patches, {kernel}");
        for reference in ["softmax", "pairs", "relu", "hybrid", "hybrid_factored"] {
            // The near softmax has the exact one as its reference.
            let same = reference.trim_end_matches("_factored");
            if kernel == same || (kernel, reference) == ("near softmax", "softmax") {
                let ms = number(&theirs[reference], "ms")?;
                table.row(&what, "CPU ms", us / 1e3, &format!("NumPy, {reference}"), ms, ms * 1e3 / us);
            }
        }
        if kernel != "softmax" {
            table.row(&what, "CPU ms", us / 1e3, "our softmax", pairs / 1e3, pairs / us);
        }
        let points: Vec<(f64, f64)> = timings
            .iter()
            .filter(|timing| timing["kernel"] == kernel)
            .map(|timing| Ok((number(timing, "patches")?, number(timing, "us")?)))
            .collect::<Result<_>>()?;
        let peak = number(at_most(kernel)?, "peak_mb")?;
        eprintln!("{kernel}: slope {:.2}, {peak} MB beside the picture", slope(&points));
        lines.push((format!("{kernel} ({:.2})", slope(&points)), points));
    }
    let ticks = [529.0, 2_116.0, 4_800.0, MOST].map(|x| (x, format!("{x}")));
    let plot = LinePlot {
        title: "A whole decision, one thread (in brackets: slope)",
        x: "patches",
        y: "CPU time",
        scale: LineScale::Logarithmic(microseconds),
        ticks: &ticks,
    };
    let pictures = [
        ("attention-time.svg", line_plot(&plot, &lines)),
        ("attention-agreement.svg", agreement(list(&ours, "agreement")?)?),
    ];
    let images = root().join("docs/images");
    for folder in [bench, &images].into_iter().take(if replace { 2 } else { 1 }) {
        for (name, svg) in &pictures {
            let file = folder.join(name);
            fs::write(&file, svg).with_context(|| format!("writing {}", file.display()))?;
            eprintln!("drew {}", file.display());
        }
    }
    Ok(())
}

/// A picture of which part of the best patches every estimate finds, over (m, n).
fn agreement(rows: &[Value]) -> Result<String> {
    let mut lines = Vec::new();
    for kernel in names(rows) {
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row["kernel"] == kernel)
            .map(|row| Ok((number(row, "m")?, number(row, "shared")?)))
            .collect::<Result<_>>()?;
        // What has no directions is the same everywhere.
        if points.len() == 1 {
            points = vec![(1.0, points[0].1), (16.0, points[0].1)];
        }
        lines.push((kernel.to_owned(), points));
    }
    let ticks =
        [(1, 1), (2, 1), (4, 3), (8, 7), (16, 15)].map(|(m, n)| (f64::from(m), format!("({m}, {n})")));
    let plot = LinePlot {
        title: "How many of the 10 patches that all pairs choose are chosen",
        x: "directions and hyperplanes (m, n)",
        y: "part of 10",
        scale: LineScale::From0To(1.0),
        ticks: &ticks,
    };
    Ok(line_plot(&plot, &lines))
}

/// Kernels in order of appearance.
fn names(rows: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = rows.iter().filter_map(|row| row["kernel"].as_str()).collect();
    names.dedup();
    names
}

/// Slope between the second and the last point on logarithmic axes: what is not attention weighs less there.
fn slope(points: &[(f64, f64)]) -> f64 {
    let (a, b) = (points[1], points[points.len() - 1]);
    (b.1 / a.1).ln() / (b.0 / a.0).ln()
}

/// A power of ten of microseconds as people say it.
fn microseconds(exponent: i32) -> String {
    match exponent {
        ..3 => format!("{} µs", 10_f64.powi(exponent)),
        3..6 => format!("{} ms", 10_f64.powi(exponent - 3)),
        _ => format!("{} s", 10_f64.powi(exponent - 6)),
    }
}
