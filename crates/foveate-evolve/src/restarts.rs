//! Restarts any strategy that stagnates, with a larger population each time.
//!
//! Auger and Hansen, "A restart CMA evolution strategy with increasing population size", CEC 2005 (IPOP).
//! When the best of the population has not risen by more than `tolerance` for `after` generations, the
//! strategy restarts: with other random numbers, `population_factor` times the genomes, and, if `spread` is
//! above 0, from another point. All of it derives from the seed path and the number of the restart.
//!
//! If fitness is noisy, the best of a population is noisy, too, and a record is rarely exceeded; choose a
//! large `after` in that case.

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::bad;
use crate::bounds::Bounds;
use crate::check;

/// When and how to restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Restarts {
    /// Generations without improvement that trigger a restart, at least 1.
    pub after: u64,
    /// The smallest improvement of the best that counts, 0 or more.
    pub tolerance: f64,
    /// Factor of the population per restart, 1 or more.
    pub population_factor: f64,
    /// Upper limit of the population.
    pub max_population: usize,
    /// Maximum number of restarts; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Standard deviation, around the first start, of the start point of each restart; 0 for the same point.
    pub spread: f64,
}

impl Default for Restarts {
    fn default() -> Self {
        Restarts {
            after: 100,
            tolerance: 1e-9,
            population_factor: 2.0,
            max_population: 4096,
            max: None,
            spread: 0.0,
        }
    }
}

impl Restarts {
    /// Checks that the values are valid; `population` is that of the first start.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self, population: usize) -> Result<(), EvolveError> {
        let refuse = |why| Err(EvolveError::BadConfig { why });
        if self.after == 0 {
            return refuse("restarts.after = 0; choose 1 generation or more, or leave restarts out".into());
        }
        let factor = self.population_factor;
        if !(factor >= 1.0 && factor.is_finite()) {
            return refuse(format!("restarts.population_factor = {factor}; it must be 1 or more"));
        }
        if self.max_population < population {
            let max = self.max_population;
            return refuse(format!("restarts.max_population = {max}; the first population is {population}"));
        }
        check::not_negative(&[("restarts.tolerance", self.tolerance), ("restarts.spread", self.spread)])
    }

    /// Population after `restarts` restarts; even if the first one was even.
    fn population(&self, first: usize, restarts: u64) -> usize {
        let exponent = i32::try_from(restarts).unwrap_or(i32::MAX);
        let grown = (first as f64 * self.population_factor.powi(exponent)).round();
        let most = self.max_population.max(first);
        let grown = if grown < most as f64 { grown as usize } else { most };
        if first.is_multiple_of(2) { grown - grown % 2 } else { grown }
    }
}

/// Builds the strategy for a population, a start and a seed.
pub(crate) type Maker = Box<dyn Fn(usize, Vec<f64>, Seed) -> Result<Box<dyn Evolver>, EvolveError> + Send>;

/// A strategy that restarts when it stagnates; see the [module](self).
///
/// The recommended weights are those at the end of the best start so far, or those of the current start while
/// the mean fitness of its population is above that of the best start's last one. A single best genome does
/// not decide: the larger and wider a population is, the better is its best genome, wherever the mean is.
pub struct Restarting {
    config: Restarts,
    make: Maker,
    first_population: usize,
    /// `[n_params]`
    start: Vec<f64>,
    /// Bounds of later starting points.
    bounds: Option<Bounds>,
    seed: Seed,
    inner: Box<dyn Evolver>,
    at: Counts,
    /// Best fitness since the last restart, and the mean fitness of the last population.
    reached: Option<(f64, f64)>,
    /// The best earlier start: the mean fitness of its last population, and its recommended weights.
    before: Option<(f64, Vec<f64>)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    restarts: u64,
    /// Completed generations before the last restart.
    generations: u64,
    /// Generations since the last improvement.
    still: u64,
}

impl Restarting {
    pub(crate) fn new(
        config: Restarts,
        first_population: usize,
        start: Vec<f64>,
        bounds: Option<Bounds>,
        seed: Seed,
        make: Maker,
    ) -> Result<Self, EvolveError> {
        config.check(first_population)?;
        let inner = make(first_population, start.clone(), seed)?;
        let at = Counts::default();
        Ok(Restarting {
            config,
            make,
            first_population,
            start,
            bounds,
            seed,
            inner,
            at,
            reached: None,
            before: None,
        })
    }

    /// Restarts so far.
    pub const fn restarts(&self) -> u64 {
        self.at.restarts
    }

    /// A new strategy for the start after `restarts` restarts.
    fn begin(&self, restarts: u64) -> Result<Box<dyn Evolver>, EvolveError> {
        // The first start is identical to the strategy without restarts.
        let seed = if restarts == 0 { self.seed } else { self.seed.child("restart", restarts) };
        let mut start = self.start.clone();
        if restarts > 0 && self.config.spread > 0.0 {
            let mut rng = seed.child("start", 0).rng();
            for x in &mut start {
                *x += self.config.spread * rng.normal();
                if let Some(bounds) = &self.bounds {
                    *x = f64::from(bounds.repair(*x as f32));
                }
            }
        }
        (self.make)(self.config.population(self.first_population, restarts), start, seed)
    }

    fn restart(&mut self) -> Result<(), EvolveError> {
        let next = self.begin(self.at.restarts + 1)?;
        if let Some((_, mean)) = self.reached.take()
            && self.before.as_ref().is_none_or(|(before, _)| mean > *before)
        {
            self.before = Some((mean, self.inner.recommended().to_vec()));
        }
        self.at = Counts {
            restarts: self.at.restarts + 1,
            generations: self.at.generations + self.inner.generation(),
            still: 0,
        };
        self.inner = next;
        Ok(())
    }

    fn settings(&self) -> Vec<f64> {
        let Restarts { after, tolerance, population_factor, max_population, max, spread } = self.config;
        vec![
            after as f64,
            tolerance,
            population_factor,
            max_population as f64,
            max.map_or(-1.0, |max| max as f64),
            spread,
            self.first_population as f64,
        ]
    }

    /// Restores everything but the settings; `restore` is the call for the inner strategy.
    fn take_back(
        &mut self,
        state: &StateDict,
        restore: impl Fn(&mut dyn Evolver, &StateDict) -> Result<(), EvolveError>,
    ) -> Result<(), EvolveError> {
        let saved = StateReader(state);
        let n = self.start.len();
        if saved.f64s("restarts.start", n)? != self.start {
            return Err(bad("it was made from another start".into()));
        }
        let at = saved.counters("restarts.at", 3)?;
        let at = Counts { restarts: at[0], generations: at[1], still: at[2] };
        let inner_state: StateDict = state
            .iter()
            .filter_map(|(name, tensor)| Some((name.strip_prefix("inner.")?.to_owned(), tensor.clone())))
            .collect();
        let mut inner = self.begin(at.restarts)?;
        restore(&mut *inner, &inner_state)?;
        // There is a best fitness after the first generation, and otherwise if there was a restart.
        let reached = if inner.generation() > 0 {
            let reached = saved.f64s("restarts.reached", 2)?;
            Some((reached[0], reached[1]))
        } else {
            saved.f64s("restarts.reached", 0)?;
            None
        };
        let before = if at.restarts > 0 {
            let recommended = saved.f64s("restarts.recommended", n)?.to_vec();
            Some((saved.f64s("restarts.before", 1)?[0], recommended))
        } else {
            None
        };
        (self.at, self.reached, self.before, self.inner) = (at, reached, before, inner);
        Ok(())
    }
}

impl Evolver for Restarting {
    fn ask(&mut self) -> &Population {
        self.inner.ask()
    }

    fn population_mut(&mut self) -> &mut Population {
        self.inner.population_mut()
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        let before = self.at.generations;
        let mut progress = self.inner.tell(fitness).map_err(|error| match error {
            EvolveError::FitnessNotFinite { genome, generation, value } => {
                EvolveError::FitnessNotFinite { genome, generation: before + generation, value }
            }
            EvolveError::Diverged { generation, what } => {
                EvolveError::Diverged { generation: before + generation, what }
            }
            other => other,
        })?;
        progress.generation += before;
        let best = self.reached.map_or(f64::NEG_INFINITY, |(best, _)| best);
        let rose = progress.best > best + self.config.tolerance;
        self.at.still = if rose { 0 } else { self.at.still + 1 };
        self.reached = Some((if rose { progress.best } else { best }, progress.mean));
        let more = self.config.max.is_none_or(|max| self.at.restarts < max);
        if self.at.still >= self.config.after && more {
            self.restart()?;
        }
        Ok(progress)
    }

    fn mean(&self) -> &[f32] {
        self.inner.mean()
    }

    fn centre(&self) -> &[f64] {
        self.inner.centre()
    }

    fn recommended(&self) -> &[f64] {
        match &self.before {
            Some((before, recommended)) if self.reached.is_none_or(|(_, mean)| mean <= *before) => {
                recommended
            }
            _ => self.inner.recommended(),
        }
    }

    fn generation(&self) -> u64 {
        self.at.generations + self.inner.generation()
    }

    fn state(&self) -> StateDict {
        let mut state: StateDict =
            self.inner.state().into_iter().map(|(name, tensor)| (format!("inner.{name}"), tensor)).collect();
        let Counts { restarts, generations, still } = self.at;
        state.insert("restarts.at".into(), Tensor::from(vec![restarts, generations, still]));
        state.insert("restarts.settings".into(), Tensor::from(self.settings()));
        state.insert("restarts.start".into(), Tensor::from(self.start.clone()));
        let reached = self.reached.map_or(Vec::new(), |(best, mean)| vec![best, mean]);
        state.insert("restarts.reached".into(), Tensor::from(reached));
        if let Some((mean, recommended)) = &self.before {
            state.insert("restarts.before".into(), Tensor::from(vec![*mean]));
            state.insert("restarts.recommended".into(), Tensor::from(recommended.clone()));
        }
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let saved = StateReader(state);
        let settings = self.settings();
        let theirs = saved.f64s("restarts.settings", settings.len())?;
        if theirs != settings {
            return Err(bad(format!("it was made with the settings {theirs:?}, these are {settings:?}")));
        }
        self.take_back(state, |inner, state| inner.restore(state))
    }

    fn restore_changed(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        self.take_back(state, |inner, state| inner.restore_changed(state))
    }
}
