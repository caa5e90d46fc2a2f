//! Robustness tests.

use std::path::PathBuf;

use foveate_core::hint::Setting;
use foveate_envs::registry::EnvRequest;
use foveate_run::RunError;
use foveate_run::folder::FolderHandle;
use foveate_run::stress::{
    Effort, Progress, StressRequest, StressTable, conditions, fitting_shifts, plot, run, severities,
};
use foveate_run::trust::WorldSpec;
use foveate_run::workers::Stop;
use foveate_run::worlds;
use serde::{Deserialize, Serialize};

use crate::Player;
#[cfg(feature = "command")]
use foveate_run::command;

/// Evaluates agents in changed worlds: the generalisation table of the papers, and curves over the severity of shifts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Stress {
    /// Episodes per row
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().episodes))]
    pub episodes: usize,
    /// The seed of the world's random stream
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().seed))]
    pub seed: u64,
    /// Variants of the world, separated by commas, a row each; all or none
    #[cfg_attr(feature = "command", arg(long = "variants", value_name = "NAMES", default_value_t = Self::default().variant_rows, help = command::variants()))]
    pub variant_rows: String,
    /// Shifts and sets of shifts, separated by commas; all or none
    #[cfg_attr(feature = "command", arg(long = "shifts", value_name = "SHIFTS", default_value_t = Self::default().shift_rows, help = command::shift_rows()))]
    pub shift_rows: String,
    /// Severities of shifts that have none, as in 1..5 or 1,3,5 [default: 1..5; for --sheet 1,3,5]
    #[cfg_attr(feature = "command", arg(long, value_name = "SEVERITIES"))]
    pub severities: Option<String>,
    /// Switch the shifts on at this step of every episode [for --sheet: the step to show, default 150]
    #[cfg_attr(feature = "command", arg(long, value_name = "STEP"))]
    pub at: Option<u64>,
    /// Threads; 0 for one per core
    #[cfg_attr(feature = "command", arg(long, default_value_t = 0))]
    pub workers: usize,
    /// Truncate episodes after this many steps
    #[cfg_attr(feature = "command", arg(long, value_name = "STEPS", alias = "steps"))]
    pub max_steps: Option<u64>,
    /// A folder for table.md, table.csv, table.json, table.svg, severities.svg, and the finished rows
    #[cfg_attr(feature = "command", arg(long, value_name = "FOLDER"))]
    pub out: Option<PathBuf>,
    /// The world
    #[cfg_attr(feature = "command", command(flatten))]
    pub world: WorldSpec,
}

impl Default for Stress {
    fn default() -> Self {
        Stress {
            episodes: 100,
            seed: 1,
            variant_rows: "all".into(),
            shift_rows: "none".into(),
            severities: None,
            at: None,
            workers: 0,
            max_steps: None,
            out: None,
            world: WorldSpec::default(),
        }
    }
}

impl Stress {
    /// The names of the shifts that `all` leaves out, because they do not fit `world`.
    ///
    /// # Errors
    /// When the world cannot be built.
    pub fn left_out(&self, world: &EnvRequest) -> Result<Vec<&'static str>, RunError> {
        if self.shift_rows.trim() != "all" {
            return Ok(vec![]);
        }
        let (_, others) = fitting_shifts(&worlds::shape(world)?);
        Ok(others.iter().map(|info| info.name).collect())
    }

    /// Runs every player in every row, all on the same episodes; writes the tables and plots into the folder `out`, if there is one.
    ///
    /// # Errors
    /// When the players act in different worlds; those of [`foveate_run::stress::run`].
    pub fn run(
        &self,
        players: &[Player],
        stop: &Stop,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(StressTable, Effort), RunError> {
        let Stress { episodes, seed, at, workers, max_steps, ref out, .. } = *self;
        let world = world_of(players)?.clone();
        let levels = severities(self.severities.as_deref().unwrap_or("1..5"))?;
        let request = StressRequest {
            conditions: conditions(&world, &self.variant_rows, &self.shift_rows, &levels, at)?,
            world,
            agents: players.iter().map(Player::contender).collect(),
            seed,
            episodes,
            workers,
            max_steps,
            folder: out.as_deref(),
        };
        let (table, effort) = run(&request, stop, progress)?;
        if let Some(folder) = out {
            write(&table, &FolderHandle::open(folder)?)?;
        }
        Ok((table, effort))
    }
}

/// The world that all players act in.
///
/// # Errors
/// When there are several, or no player.
pub fn world_of(players: &[Player]) -> Result<&EnvRequest, RunError> {
    let refused = |why: String| RunError::BadRequest { why };
    let first =
        players.first().ok_or_else(|| refused("there is nothing to evaluate; name an agent".into()))?;
    let Some(other) = players.iter().find(|other| other.world != first.world) else {
        return Ok(&first.world);
    };
    Err(refused(format!(
        "{} drives in {}, {} in {}; put both in one world with {}, {}, {} and {}",
        first.name,
        called(&first.world),
        other.name,
        called(&other.world),
        Setting::World,
        Setting::Picture,
        Setting::Variant,
        Setting::Option
    )))
}

/// A short label of a world.
fn called(world: &EnvRequest) -> String {
    let picture = world.picture.as_deref().unwrap_or("its own");
    let options = world.options.iter().map(|(key, value)| format!("{key}={value}"));
    let more: Vec<String> = world.variants.iter().chain(&world.shifts).cloned().chain(options).collect();
    let more = if more.is_empty() { String::new() } else { format!(" with {}", more.join(", ")) };
    format!("{} (picture {picture}{more})", world.id)
}

/// Writes each file atomically.
fn write(table: &StressTable, folder: &FolderHandle) -> Result<(), RunError> {
    let json = serde_json::to_string_pretty(table)
        .map_err(|error| RunError::BadRequest { why: format!("the table as JSON: {error}") })?;
    folder.write("table.json", json + "\n")?;
    folder.write("table.csv", table.csv())?;
    folder.write("table.tex", table.latex())?;
    folder.write("table.svg", plot::overview(table))?;
    if let Some(curves) = plot::curves(table) {
        folder.write("severities.svg", curves)?;
    }
    folder.write("table.md", table.markdown())
}
