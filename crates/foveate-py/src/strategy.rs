//! Evolution strategies on a function of Python's.

use std::sync::Mutex;

use foveate::core::{EvolveError, Evolver, Seed, StateDict, forms};
use foveate::evolve::{STRATEGIES, StrategyConfig, make};
use foveate::training::{JobSize, LearnerSettings};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::arrays;
use crate::errors::{Kind, caught, raised};
use crate::world::hold;

type Numbers<'py> = Bound<'py, PyArrayDyn<f64>>;

/// Most bytes of a strategy; more is a typing error.
const MOST_MEMORY: u64 = 8 << 30;

/// An evolution strategy; `foveate.evolve.Strategy` is the interface to it.
#[pyclass(frozen, module = "foveate._native")]
pub(crate) struct Strategy {
    one: Mutex<One>,
}

struct One {
    name: String,
    params: usize,
    evolver: Box<dyn Evolver>,
    /// The best genome so far, and its fitness.
    best: Option<(Vec<f32>, f64)>,
}

/// What [`Strategy::save`] writes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    strategy: String,
    best: Option<(Vec<f32>, f64)>,
    state: StateDict,
}

fn refused(py: Python<'_>, why: impl Into<String>) -> PyErr {
    raised(py, Kind::Option, why)
}

fn of_strategy(py: Python<'_>, error: &EvolveError) -> PyErr {
    let kind = match error {
        EvolveError::Diverged { .. } | EvolveError::NothingAsked => Kind::Foveate,
        _ => Kind::Option,
    };
    raised(py, kind, error.to_string())
}

#[pymethods]
impl Strategy {
    /// The strategy `name` with `settings`, a JSON object, around `x0`.
    #[new]
    fn new(py: Python<'_>, name: &str, settings: &str, x0: &Bound<'_, PyAny>, seed: u64) -> PyResult<Self> {
        let mut start = vec![];
        let shape = arrays::numbers(x0, &mut start)?;
        if shape.len() != 1 {
            return Err(refused(
                py,
                format!("x0 has the shape {shape:?}; give one number for each parameter"),
            ));
        }
        StrategyConfig::named(name).map_err(|error| of_strategy(py, &error))?;
        let mut table: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(settings).map_err(|error| refused(py, format!("settings: {error}")))?;
        table.insert("algorithm".into(), name.into());
        let config: StrategyConfig = serde_json::from_value(table.clone().into()).map_err(|error| {
            let complete = |table: &serde_json::Value| {
                let config: StrategyConfig =
                    serde_json::from_value(table.clone()).map_err(|error| error.to_string())?;
                serde_json::to_value(config).map_err(|error| error.to_string())
            };
            let why = forms::refusal(&table.into(), &complete, "");
            refused(py, format!("{name}: {}", why.unwrap_or_else(|| error.to_string())))
        })?;
        config.check().map_err(|error| of_strategy(py, &error))?;
        let params = start.len() as u64;
        let job = JobSize { params, longest: 0, steps: 0, tracks: 0, observed: 0, demonstrated: 0 };
        let size = config.size(&job);
        if size.memory > MOST_MEMORY {
            let [needed, most] = [size.memory, MOST_MEMORY].map(|bytes| bytes as f64 / f64::from(1 << 30));
            let why = format!(
                "{} needs {needed:.1} GiB, more than the {most:.0} GiB that are possible; {}",
                size.what, size.remedy
            );
            return Err(refused(py, why));
        }
        let params = start.len();
        let evolver = caught(py, || py.detach(|| make(&config, start, Seed::root(seed))))?
            .map_err(|error| of_strategy(py, &error))?;
        Ok(Strategy { one: Mutex::new(One { name: name.to_owned(), params, evolver, best: None }) })
    }

    /// The genomes of this generation, `float32 [population, parameters]`.
    fn ask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let mut one = hold(py, &self.one, "strategy")?;
        let (params, evolver) = (one.params, &mut one.evolver);
        let genomes: Vec<f32> = caught(py, || {
            py.detach(|| {
                let population = evolver.ask();
                (0..population.len()).flat_map(|i| population.genome(i)).copied().collect()
            })
        })?;
        arrays::array(py, &[genomes.len() / params.max(1), params], &genomes)
    }

    /// Learns; returns the generations so far, best and mean fitness of this one, and the standard deviation.
    fn tell(&self, py: Python<'_>, fitness: &Bound<'_, PyAny>) -> PyResult<(u64, f64, f64, f64)> {
        let mut told = vec![];
        arrays::numbers(fitness, &mut told)?;
        let mut one = hold(py, &self.one, "strategy")?;
        let One { evolver, best, .. } = &mut *one;
        let first = |so_far: Option<usize>, (i, &f): (usize, &f64)| match so_far {
            Some(best) if told[best] >= f => Some(best),
            _ => Some(i),
        };
        // Only finite values are accepted below.
        let leader = told.iter().enumerate().fold(None, first);
        let better = leader.filter(|&i| best.as_ref().is_none_or(|(_, before)| told[i] > *before));
        let progress = caught(py, || {
            py.detach(|| {
                let row = better.filter(|&i| i < evolver.population_mut().len());
                let genome = row.map(|i| (evolver.population_mut().genome(i).to_vec(), told[i]));
                evolver.tell(&told).map(|progress| (progress, genome))
            })
        })?;
        let (progress, genome) = progress.map_err(|error| of_strategy(py, &error))?;
        if genome.is_some() {
            *best = genome;
        }
        Ok((progress.generation, progress.best, progress.mean, progress.sigma))
    }

    /// Centre of the search, recommended parameters, `float64 [parameters]`.
    fn means<'py>(&self, py: Python<'py>) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
        let one = hold(py, &self.one, "strategy")?;
        let array = |numbers: &[f64]| arrays::array(py, &[numbers.len()], numbers);
        Ok((array(one.evolver.centre())?, array(one.evolver.recommended())?))
    }

    /// The best genome so far and its fitness.
    fn best<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyArrayDyn<f32>>, f64)>> {
        let one = hold(py, &self.one, "strategy")?;
        let found = one.best.as_ref();
        found.map(|(genome, fitness)| Ok((arrays::array(py, &[genome.len()], genome)?, *fitness))).transpose()
    }

    /// Generations so far.
    fn generation(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(hold(py, &self.one, "strategy")?.evolver.generation())
    }

    /// The state as JSON.
    fn save(&self, py: Python<'_>) -> PyResult<String> {
        let one = hold(py, &self.one, "strategy")?;
        let saved = Saved { strategy: one.name.clone(), best: one.best.clone(), state: one.evolver.state() };
        serde_json::to_string(&saved).map_err(|error| raised(py, Kind::Foveate, error.to_string()))
    }

    /// Takes back what [`Strategy::save`] returned.
    fn restore(&self, py: Python<'_>, saved: &str) -> PyResult<()> {
        let mut one = hold(py, &self.one, "strategy")?;
        let saved: Saved = serde_json::from_str(saved)
            .map_err(|error| refused(py, format!("no saved strategy: {error}")))?;
        if saved.strategy != one.name {
            return Err(refused(py, format!("the state is of {}, this is {}", saved.strategy, one.name)));
        }
        let fits = |(genome, fitness): &(Vec<f32>, f64)| genome.len() == one.params && fitness.is_finite();
        if !saved.best.as_ref().is_none_or(fits) {
            return Err(refused(py, format!("the state's best genome has not {} parameters", one.params)));
        }
        let One { evolver, best, .. } = &mut *one;
        caught(py, || py.detach(|| evolver.restore(&saved.state)))?
            .map_err(|error| of_strategy(py, &error))?;
        *best = saved.best;
        Ok(())
    }
}

/// All strategies: name, summary, and settings with their defaults as JSON.
#[pyfunction]
pub(crate) fn strategies(py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
    let described = |info: &foveate::evolve::StrategyInfo| {
        let config = StrategyConfig::named(info.name).map_err(|error| of_strategy(py, &error))?;
        let settings =
            serde_json::to_string(&config.algorithm).map_err(|error| refused(py, error.to_string()))?;
        Ok((info.name.to_owned(), info.summary.to_owned(), settings))
    };
    STRATEGIES.iter().map(described).collect()
}
