//! Calibration of the explanations.

use foveate_run::RunError;
use foveate_run::calibrate::{self, Calibration, CalibrationRequest};
use foveate_run::explain::Progress;
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};

/// Asks the questions of the explanations about policies whose truth is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calibrate {
    /// The first seed
    pub seed: u64,
    /// How many seeds, each of which asks every case once
    pub seeds: usize,
    /// Episodes of each case
    pub episodes: usize,
    /// Threads; 0 for one per core
    pub workers: usize,
}

impl Default for Calibrate {
    fn default() -> Self {
        Calibrate { seed: 1, seeds: 1, episodes: 20, workers: 0 }
    }
}

impl Calibrate {
    /// Asks every case; the same request gives the same answers, with any number of workers.
    ///
    /// # Errors
    /// When a number is out of range, or someone asks to stop.
    pub fn run(&self, stop: &Stop, progress: &mut dyn FnMut(Progress)) -> Result<Calibration, RunError> {
        let Calibrate { seed, seeds, episodes, workers } = *self;
        let request =
            CalibrationRequest { episodes, seeds: seed..seed.saturating_add(seeds as u64), workers };
        calibrate::run(&request, stop, progress)
    }
}
