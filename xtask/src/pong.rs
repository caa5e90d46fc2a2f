//! `cargo xtask pong`: AttentionNeuron on Pong with patches missing, in training and in test, and the picture of
//! `docs/attention-neuron.md`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use foveate_core::statistics::{mean, std};
use foveate_explain::figure::{Anchor, Drawing, Ink, LETTERS, raster};
use foveate_film::encode_png;
use serde_json::Value;

use crate::bench::{json, list, path};
use crate::{cargo, command, root, run};

/// Tenths of the patches that are missing in training, and in test.
const TRAINED: [usize; 3] = [0, 3, 7];
const TESTED: std::ops::Range<usize> = 0..10;
const EPISODES: usize = 10;
/// The paper's means of 100 episodes: a row per share in training, a column per share in test.
const PAPER: [[i32; 10]; 10] = [
    [21, -20, -20, -21, -21, -21, -21, -21, -21, -21],
    [21, 7, -5, -10, -16, -19, -21, -21, -21, -21],
    [21, 11, 5, -3, -8, -17, -20, -21, -20, -21],
    [21, 12, 4, -3, -9, -13, -20, -20, -21, -21],
    [21, 17, 8, 0, 0, -10, -16, -18, -21, -21],
    [21, 15, 17, 15, 15, 10, -4, -14, -20, -21],
    [21, 16, 11, 13, 10, 7, 2, -10, -17, -21],
    [21, 11, 6, 6, 5, -1, -4, -8, -16, -21],
    [1, -13, -15, -15, -16, -17, -18, -13, -17, -20],
    [-12, -17, -20, -20, -19, -20, -19, -21, -21, -20],
];
/// Points that end a game.
const GAME: f64 = 21.0;
/// Size of a cell, and space around the cells of a map: above, and at the left.
const CELL: [f64; 2] = [34.0, 24.0];
const ABOVE: f64 = 44.0;
const LEFT: f64 = 54.0;

/// Trains what is not trained yet, evaluates, prints a table and draws `docs/images/pong-missing.png`. Stopped at any time, it
/// goes on where it was.
pub(crate) fn run_all() -> Result<()> {
    let folder = root().join("target/pong");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    run("cargo build", cargo().args(["build", "--release", "--quiet", "--package", "foveate-cli"]))?;
    let study = Study { folder };

    let mut rows = vec![];
    for trained in TRAINED {
        let returns: Vec<Vec<f64>> =
            TESTED.map(|tested| study.returns(trained, tested)).collect::<Result<_>>()?;
        let cells: Vec<String> =
            returns.iter().map(|of| format!("{:.1} ± {:.1}", mean(of), std(of).unwrap_or(0.0))).collect();
        eprintln!("| {} | {} |", share(trained), cells.join(" | "));
        rows.push((trained, returns.iter().map(|of| mean(of)).collect::<Vec<f64>>()));
    }
    let file = root().join("docs/images/pong-missing.png");
    let png = encode_png(raster(&sheet(&rows)).as_image()).context("the picture is no PNG")?;
    fs::write(&file, png).with_context(|| format!("writing {}", file.display()))?;
    eprintln!("drew {}", file.display());
    Ok(())
}

/// A number of tenths as a share.
fn share(tenths: usize) -> String {
    format!("{:.1}", tenths as f64 / 10.0)
}

/// The shift that takes so many tenths of the patches away.
fn shift(tenths: usize) -> String {
    format!("missing:share={}:patch=6", share(tenths))
}

struct Study {
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

    /// Returns of the agent that was trained with these tenths missing, with those missing in test.
    fn returns(&self, trained: usize, tested: usize) -> Result<Vec<f64>> {
        let name = format!("missing-{trained}");
        let file = self.folder.join(format!("{name}-{tested}.json"));
        if !file.is_file() {
            self.train(trained, &name)?;
            let run_folder = self.folder.join("runs").join(&name);
            let mut eval = self.foveate();
            eval.args(["eval", path(&run_folder)?, "--episodes", &EPISODES.to_string()]);
            eval.args(["--seed", "1", "--json"]);
            if tested > 0 {
                eval.args(["--shift", &shift(tested)]);
            }
            let result = json("foveate eval", &mut eval)?;
            fs::write(&file, result.to_string()).with_context(|| format!("writing {}", file.display()))?;
        }
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let result: Value =
            serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))?;
        let returns = list(&result, "returns")?;
        ensure!(returns.len() == EPISODES, "{} has {} episodes", file.display(), returns.len());
        returns.iter().map(|points| points.as_f64().context("a return is a number")).collect()
    }

    /// Begins a training, or goes on with it.
    fn train(&self, missing: usize, name: &str) -> Result<()> {
        let folder = self.folder.join("runs").join(name);
        if folder.join("summary.json").is_file() {
            return Ok(());
        }
        let mut train = self.foveate();
        train.arg("train");
        if folder.is_dir() {
            train.args(["--resume", path(&folder)?]);
        } else {
            train.args(["pong", "--name", name]);
            if missing > 0 {
                // Drawn anew for every update; a game with some missing shows one draw only.
                train.args(["--set", &format!("recipe.stage.0.dropout={}", share(missing))]);
            }
        }
        run(name, &mut train)
    }
}

/// Two maps beside each other, the paper's and ours.
fn sheet(rows: &[(usize, Vec<f64>)]) -> Drawing {
    let columns = TESTED.len() as f64;
    let width = LEFT + columns * CELL[0] + 16.0;
    let mut sheet = Drawing::new(2.0 * width, ABOVE + PAPER.len() as f64 * CELL[1] + 44.0);
    let paper: Vec<(usize, Vec<f64>)> =
        PAPER.iter().map(|row| row.iter().map(|&points| points.into()).collect()).enumerate().collect();
    sheet.add(map("The paper, 100 episodes", &paper), (0.0, 0.0));
    sheet.add(map(&format!("Foveate, {EPISODES} episodes"), rows), (width, 0.0));
    sheet
}

/// A row per share of patches missing in training, a column per share missing in test: the stronger the colour, the more
/// points.
fn map(title: &str, rows: &[(usize, Vec<f64>)]) -> Drawing {
    let [width, height] = CELL;
    let mut map =
        Drawing::new(LEFT + TESTED.len() as f64 * width, ABOVE + PAPER.len() as f64 * height + 44.0);
    map.text((LEFT, ABOVE - 26.0), LETTERS + 1.0, Anchor::Start, Ink::Text, title);
    map.text((LEFT, ABOVE - 9.0), LETTERS, Anchor::Start, Ink::Muted, "rows: share missing in training");
    for (trained, means) in rows {
        let y = ABOVE + *trained as f64 * height;
        map.tick((LEFT - 8.0, y + 0.67 * height), LETTERS, Anchor::End, share(*trained));
        for (tested, &points) in means.iter().enumerate() {
            let x = LEFT + tested as f64 * width;
            let part = ((points + GAME) / (2.0 * GAME)).clamp(0.0, 1.0);
            let place = [x + 1.0, y + 1.0, width - 2.0, height - 2.0];
            map.rect(place, Ink::Grid, 1.0);
            map.rect(place, Ink::Control, part);
            let ink = if part > 0.5 { Ink::Paper } else { Ink::Text };
            // No minus before a nought.
            let text = format!("{:.0}", points.round() + 0.0);
            map.text((x + width / 2.0, y + 0.67 * height), LETTERS, Anchor::Middle, ink, text);
        }
    }
    let bottom = ABOVE + PAPER.len() as f64 * height;
    for tested in TESTED {
        let x = LEFT + (tested as f64 + 0.5) * width;
        map.tick((x, bottom + 16.0), LETTERS, Anchor::Middle, share(tested));
    }
    let middle = LEFT + TESTED.len() as f64 * width / 2.0;
    map.text((middle, bottom + 34.0), LETTERS, Anchor::Middle, Ink::Muted, "share missing in test");
    map
}

#[cfg(test)]
mod tests {
    use foveate_explain::figure::Shape;

    use super::*;

    #[test]
    fn a_cell_shows_its_points() {
        let drawn = map("", &[(3, vec![21.0, -0.2, -21.0])]);
        let texts = drawn.shapes.iter().filter_map(|shape| match shape {
            Shape::Text { text, ink, .. } => Some((&**text, *ink)),
            _ => None,
        });
        let cells: Vec<_> = texts.filter(|(text, _)| matches!(*text, "21" | "0" | "-21")).collect();
        assert_eq!(cells, [("21", Ink::Paper), ("0", Ink::Text), ("-21", Ink::Text)]);
    }

    #[test]
    fn shares_are_written_as_shifts_read_them() {
        assert_eq!(shift(3), "missing:share=0.3:patch=6");
    }
}
