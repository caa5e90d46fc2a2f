//! A custom learner in one file: random search around the best weights so far.

use foveate::core::{
    Episodes, Experience, LearnError, Learner, Population, Progress, Purpose, Record, Seed, StateDict,
    StateReader, Work,
};
use foveate::training::{JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom};
use serde::{Deserialize, Serialize};
use toml::Table;

/// Its registry entry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "scratch-search",
    summary: "random search around the best weights so far",
    learns_from: LearnsFrom::Returns,
    schedulable: false,
    parse: |_, table| {
        let settings: Settings =
            table.clone().try_into().map_err(|error: toml::de::Error| error.message().trim().to_owned())?;
        Ok(Box::new(settings))
    },
};

/// Its settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    population: usize,
    sigma: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { population: 16, sigma: 0.5 }
    }
}

impl LearnerSettings for Settings {
    fn check(&self) -> Result<(), LearnError> {
        if self.population > 1 && self.sigma.is_finite() && self.sigma > 0.0 {
            return Ok(());
        }
        let why =
            format!("population = {}, sigma = {}; choose 2 or more, above 0", self.population, self.sigma);
        Err(LearnError::BadConfig { why })
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("plain numbers")
    }

    fn rows(&self, _: usize) -> usize {
        self.population
    }

    fn build(
        &self,
        LearnerParts { weights, seed, .. }: LearnerParts<'_>,
    ) -> Result<Box<dyn Learner>, LearnError> {
        self.check()?;
        let settings = self.clone();
        Ok(Box::new(Search { settings, seed, best: weights, score: f64::NEG_INFINITY, generation: 0 }))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let memory = job.params.saturating_mul(8 * (self.population as u64 + 1));
        let (what, remedy) = ("the rows of random search".into(), "lower population");
        LearnerSize { memory, saved: job.params.saturating_mul(8), what, remedy }
    }
}

struct Search {
    settings: Settings,
    seed: Seed,
    best: Vec<f64>,
    score: f64,
    generation: u64,
}

impl Search {
    /// The rows of this generation: the best weights, and perturbed copies of them.
    fn rows(&self) -> Population {
        let mut rows = Population::zeros(0, self.best.len());
        for row in 0..self.settings.population {
            let mut rng = self.seed.child("generation", self.generation).child("row", row as u64).rng();
            let sigma = if row == 0 { 0.0 } else { self.settings.sigma };
            let weights: Vec<f32> = self.best.iter().map(|w| (w + sigma * rng.normal()) as f32).collect();
            rows.push(weights.into_iter());
        }
        rows
    }
}

impl Learner for Search {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        let weights = self.rows();
        let jobs = episodes.jobs(weights.len());
        Work {
            purpose: Purpose::Training,
            weights,
            jobs,
            rules: episodes.rules,
            record: Record::Returns,
            epsilon: 0.0,
            draw_actions: false,
        }
    }

    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError> {
        let (rows, count) = (self.rows(), self.settings.population);
        let returns: Vec<f64> = experience.episodes.iter().map(|episode| episode.total).collect();
        if returns.is_empty() || !returns.len().is_multiple_of(count) {
            let why = format!("{} episodes for {count} rows; run as many for each", returns.len());
            return Err(LearnError::Experience { why });
        }
        let per_row = returns.len() / count;
        let means: Vec<f64> =
            returns.chunks(per_row).map(|of| of.iter().sum::<f64>() / per_row as f64).collect();
        let (row, best) = means
            .iter()
            .copied()
            .enumerate()
            .fold((0, f64::NEG_INFINITY), |best, now| if now.1 > best.1 { now } else { best });
        self.score = best;
        self.best = rows.genome(row).iter().map(|&w| f64::from(w)).collect();
        self.generation += 1;
        let mean = means.iter().sum::<f64>() / count as f64;
        Ok(Progress { generation: self.generation, best, mean, sigma: self.settings.sigma })
    }

    fn weights(&self) -> &[f64] {
        &self.best
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn state(&self) -> StateDict {
        StateDict::from([
            ("best".to_owned(), self.best.clone().into()),
            ("generation".to_owned(), vec![self.generation].into()),
        ])
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        let reader = StateReader(state);
        let best = reader.f64s("best", self.best.len())?.to_vec();
        self.generation = reader.counts("generation", 1)?[0];
        self.best = best;
        Ok(())
    }
}
