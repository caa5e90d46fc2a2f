//! `foveate stress`

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use foveate::jobs::world_of;
use foveate::run::RunError;
use foveate::run::atomic;
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::run::stress::{Effort, Progress, SheetRequest, StressTable, looks, severities, sheet};
use foveate::run::worlds;
use foveate::{Player, jobs};
use serde_json::{Value, json};

use crate::help;
use crate::out;

/// Evaluate agents in changed worlds: the generalisation table of the papers, and curves over the severity of shifts
#[derive(Debug, Args)]
#[command(after_help = "\
Every row has the same episodes, so differences are tested in pairs. Results are the same for any
number of workers. --variant and --shift change the world of all rows; --variants and --shifts are
the rows. A shift without a severity becomes a curve: one row for each of --severities. With --out,
finished rows are saved, and the same command continues where it was stopped. `foveate list
shifts`, `foveate list sets` and `foveate list WORLD` show what can be named.

Examples:
  foveate stress
  foveate stress attention_agent_carracing.safetensors --picture classic --out stress
  foveate stress runs/a runs/b --variants none --shifts noise,blur,delay --episodes 30 --out stress
  foveate stress --variants bar,bar:width=150 --shifts blob:5:x=0.3,hue+noise --severities 1,3,5
  foveate stress --variants none --shifts all --at 200 --episodes 20 --out injected
  foveate stress --sheet shifts.png
  foveate stress --env take-cover random --at 90 --looks variants.png")]
pub(crate) struct Stress {
    #[arg(value_name = "WEIGHTS|RUN", help = help::many_weights())]
    weights: Vec<PathBuf>,
    #[command(flatten)]
    job: jobs::Stress,
    /// Print one JSON object with the return of every episode
    #[arg(long)]
    json: bool,
    /// Evaluate nothing; draw a picture of one step under every shift
    #[arg(long, value_name = "FILE.png", conflicts_with_all = ["out", "json", "variant_rows", "shift_rows", "episodes"])]
    sheet: Option<PathBuf>,
    /// Evaluate nothing; draw a picture of one step (--at, default 150) in each of --variants
    #[arg(long, value_name = "FILE.png", conflicts_with_all = ["out", "json", "sheet", "shift_rows", "episodes"])]
    looks: Option<PathBuf>,
}

impl Stress {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let players = Player::load_all(&self.weights, &self.job.world)?;
        let world = world_of(&players)?;
        if let Some(path) = &self.sheet {
            return self.contact_sheet(&players[0], path);
        }
        if let Some(path) = &self.looks {
            let (step, driver) = (self.step(), players[0].agent()?);
            return save_picture(path, || {
                looks(world, &self.job.variant_rows, &*driver, self.job.seed, step)
            });
        }
        let names = self.job.left_out(world)?;
        if !names.is_empty() {
            out::note(&format!("left out, as they do not fit {}: {}", world.id, names.join(", ")));
        }
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "episodes");
        let result = self.job.run(&players, &stop, &mut |progress| ticker.set(vec![status(progress)]));
        drop(ticker);
        let (table, effort) = result?;
        let failed = table.failed().map_or(Ok(()), |why| Err(anyhow!("{why}")));
        if self.json {
            out::say_json(&as_json(&table, effort)?)?;
            return failed;
        }
        out::say(table.markdown().trim_end())?;
        out::say(&format!("\n{}", cost(effort)))?;
        if let Some(folder) = &self.job.out {
            out::next(&[&format!("look at {} and the table beside it", folder.join("table.svg").display())])?;
        }
        failed
    }

    fn contact_sheet(&self, player: &Player, path: &Path) -> anyhow::Result<()> {
        let levels = severities(self.job.severities.as_deref().unwrap_or("1,3,5"))?;
        let (env, driver) = (worlds::make(player.world.clone())?, player.agent()?);
        let (seed, step) = (self.job.seed, self.step());
        save_picture(path, || {
            sheet(&SheetRequest { env: &*env, agent: &*driver, seed, step, severities: &levels })
        })
    }

    /// The step of a picture.
    fn step(&self) -> usize {
        usize::try_from(self.job.at.unwrap_or(150)).unwrap_or(usize::MAX)
    }
}

/// Writes the picture of `draw` to a file.
fn save_picture(path: &Path, draw: impl FnOnce() -> Result<Vec<u8>, RunError>) -> anyhow::Result<()> {
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("png")) {
        let why = format!("{}: end the name in .png; a sheet is a picture", path.display());
        return Err(RunError::BadRequest { why }.into());
    }
    let bytes = draw()?;
    atomic::write(path, &bytes)?;
    Ok(out::say(&format!("{}: {} kB", path.display(), bytes.len().div_ceil(1000)))?)
}

/// `row 13 of 86: champion, noise:3`
fn status(Progress { done, of, agent, condition, .. }: Progress<'_>) -> String {
    out::one_line(&format!("row {} of {of}: {agent}, {condition}", done + 1))
}

fn as_json(table: &StressTable, effort: Effort) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(table).map_err(|error| anyhow!("{error}"))?;
    let Effort { steps, episodes, cpu_seconds } = effort;
    value["effort"] = json!({ "steps": steps, "episodes": episodes, "cpu_seconds": cpu_seconds });
    Ok(value)
}

fn cost(effort: Effort) -> String {
    let Effort { steps, episodes, cpu_seconds } = effort;
    let speed = if steps == 0 { 0.0 } else { steps as f64 / cpu_seconds.max(1e-9) };
    format!(
        "Driven: {episodes} episodes, {steps} steps, {cpu_seconds:.1} CPU seconds ({speed:.0} steps per CPU second)"
    )
}
