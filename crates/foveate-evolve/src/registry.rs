//! The registry of strategies: settings as a user writes them, and the strategies built from them.
//!
//! ```
//! use foveate_core::{EvolveError, Evolver, Seed, near};
//! use foveate_evolve::{StrategyConfig, make};
//!
//! let config = StrategyConfig::named("rank-es")?;
//! let mut strategy = make(&config, vec![0.0; 10], Seed::root(1))?;
//! assert_eq!(strategy.ask().len(), config.population(10));
//! # Ok::<(), foveate_core::EvolveError>(())
//! ```

use foveate_core::{EvolveError, Evolver, Seed, near};
use serde::{Deserialize, Serialize};

use crate::bounds::{Bounded, Bounds};
use crate::cma_es::{CmaEs, CmaEsConfig, default_population};
use crate::openai_es::{OpenAiEs, OpenAiEsConfig};
use crate::pgpe::{Pgpe, PgpeConfig};
use crate::rank_es::{RankEs, RankEsConfig};
use crate::restarts::{Restarting, Restarts};
use crate::sep_cma_es::{SepCmaEs, SepCmaEsConfig};
use crate::simple_ga::{SimpleGa, SimpleGaConfig};
use crate::snes::{Snes, SnesConfig};

/// A strategy with its settings. In TOML its keys are side by side; omitted ones have their defaults:
///
/// ```toml
/// algorithm = "rank-es"
/// population = 64
/// sigma = 0.05
/// bounds = { low = -3.0, high = 3.0 }
/// restarts = { after = 50 }
/// ```
///
/// It may be flattened into a larger table (`#[serde(flatten)]`), which must then not deny unknown keys
/// itself: keys that the table does not know are passed to this type, which rejects unknown ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrategyConfig {
    /// The strategy with its own settings.
    #[serde(flatten)]
    pub algorithm: Algorithm,
    /// The bounds of genomes; unbounded by default. See [`bounds`](crate::bounds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// When to restart; never by default. See [`restarts`](crate::restarts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Restarts>,
}

impl From<Algorithm> for StrategyConfig {
    /// Without bounds or restarts.
    fn from(algorithm: Algorithm) -> Self {
        StrategyConfig { algorithm, bounds: None, restarts: None }
    }
}

/// Description of an evolution strategy for lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyInfo {
    /// The name that configurations use.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// True if its settings may change while it runs; strategies that adapt them by themselves accept only
    /// constants.
    pub schedulable: bool,
}

/// Generates everything that exists once per strategy from the list below.
macro_rules! strategies {
    ($($name:literal $variant:ident($config:ty, $strategy:ty), schedulable: $schedulable:literal, $summary:expr;)*) => {
        /// The strategies, each with its own settings; the key `algorithm` distinguishes them.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "algorithm")]
        #[non_exhaustive]
        pub enum Algorithm {
            $(#[doc = concat!("`", $name, "`")] #[serde(rename = $name)] $variant($config),)*
        }

        /// All evolution strategies.
        pub const STRATEGIES: &[StrategyInfo] =
            &[$(StrategyInfo { name: $name, summary: $summary, schedulable: $schedulable },)*];

        impl Algorithm {
            /// The defaults of the strategy with this name.
            fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Algorithm::$variant(<$config>::default())),)*
                    _ => None,
                }
            }

            const fn name(&self) -> &'static str {
                match self {
                    $(Algorithm::$variant(_) => $name,)*
                }
            }

            fn population(&self, params: usize) -> usize {
                match self {
                    $(Algorithm::$variant(config) => config.population.or_default(params),)*
                }
            }

            fn set_population(&mut self, population: usize) {
                match self {
                    $(Algorithm::$variant(config) => config.population.put(population),)*
                }
            }

            fn check(&self) -> Result<(), EvolveError> {
                match self {
                    $(Algorithm::$variant(config) => config.check(),)*
                }
            }

            fn make(self, mean: Vec<f64>, seed: Seed) -> Result<Box<dyn Evolver>, EvolveError> {
                Ok(match self {
                    $(Algorithm::$variant(config) => Box::new(<$strategy>::from_mean(config, mean, seed)?),)*
                })
            }
        }
    };
}

const CMA_ES: &str = if cfg!(feature = "eigen") {
    "learns which steps go together: a full covariance matrix, as pycma; form eigen or cholesky"
} else {
    "learns which steps go together: a full covariance matrix, as pycma; form eigen needs the \
                     Cargo feature eigen"
};

strategies! {
    "rank-es" RankEs(RankEsConfig, RankEs), schedulable: true,
        "log-rank weights, one constant step size; for small populations (default)";
    "snes" Snes(SnesConfig, Snes), schedulable: false,
        "natural evolution: log-rank weights, a step size for each parameter";
    "openai-es" OpenaiEs(OpenAiEsConfig, OpenAiEs), schedulable: false,
        "mirrored pairs, centred ranks, Adam, one given step size";
    "pgpe" Pgpe(PgpeConfig, Pgpe), schedulable: false,
        "symmetric pairs, ClipUp or Adam, a step size for each parameter";
    "cma-es" CmaEs(CmaEsConfig, CmaEs), schedulable: false,
        CMA_ES;
    "sep-cma-es" SepCmaEs(SepCmaEsConfig, SepCmaEs), schedulable: false,
        "the same with a diagonal covariance matrix, for many parameters";
    "simple-ga" SimpleGa(SimpleGaConfig, SimpleGa), schedulable: false,
        "genetic algorithm: the best have mutated children, elites stay";
}

/// The population of a configuration, which may depend on the number of parameters.
trait Genomes {
    fn or_default(&self, params: usize) -> usize;
    fn put(&mut self, population: usize);
}

impl Genomes for usize {
    fn or_default(&self, _params: usize) -> usize {
        *self
    }

    fn put(&mut self, population: usize) {
        *self = population;
    }
}

impl Genomes for Option<usize> {
    fn or_default(&self, params: usize) -> usize {
        self.unwrap_or_else(|| default_population(params))
    }

    fn put(&mut self, population: usize) {
        *self = Some(population);
    }
}

impl StrategyConfig {
    /// The defaults of the strategy with this name.
    ///
    /// # Errors
    /// When there is no such strategy; the message lists all names.
    pub fn named(name: &str) -> Result<Self, EvolveError> {
        Algorithm::named(name).map(StrategyConfig::from).ok_or_else(|| {
            let names: Vec<_> = STRATEGIES.iter().map(|info| info.name).collect();
            let hint = near::hint_of(name, names.iter().copied());
            let why = format!("no strategy is called {name:?};{hint} choose from: {}", names.join(", "));
            EvolveError::BadConfig { why }
        })
    }

    /// The name of the strategy.
    pub const fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Population of the first generation, for genomes of `params` parameters. Later generations may have
    /// more, see [`Evolver::ask`].
    pub fn population(&self, params: usize) -> usize {
        self.algorithm.population(params)
    }

    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        self.algorithm.check()?;
        self.bounds.as_ref().map_or(Ok(()), Bounds::check)?;
        match &self.restarts {
            Some(restarts) => restarts.check(self.population(1)),
            None => Ok(()),
        }
    }
}

impl Default for StrategyConfig {
    fn default() -> Self {
        Algorithm::RankEs(RankEsConfig::default()).into()
    }
}

/// Builds the strategy, around `mean` (`[n_params]`); all randomness derives from `seed`.
///
/// # Errors
/// When a setting is invalid, or `mean` is empty or not finite.
pub fn make(config: &StrategyConfig, mean: Vec<f64>, seed: Seed) -> Result<Box<dyn Evolver>, EvolveError> {
    config.check()?;
    let StrategyConfig { algorithm, bounds, restarts } = config.clone();
    let Some(restarts) = restarts else { return within(bounds, algorithm, mean, seed) };
    let population = config.population(mean.len());
    let make = move |population, mean, seed| {
        let mut algorithm = algorithm.clone();
        algorithm.set_population(population);
        within(bounds, algorithm, mean, seed)
    };
    Ok(Box::new(Restarting::new(restarts, population, mean, bounds, seed, Box::new(make))?))
}

/// The strategy, within bounds if there are any.
fn within(
    bounds: Option<Bounds>,
    algorithm: Algorithm,
    mean: Vec<f64>,
    seed: Seed,
) -> Result<Box<dyn Evolver>, EvolveError> {
    let inner = algorithm.make(mean, seed)?;
    Ok(match bounds {
        Some(bounds) => Box::new(Bounded::new(bounds, inner)?),
        None => inner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_defaults_that_work_and_survive_toml() {
        for StrategyInfo { name, summary, .. } in STRATEGIES {
            let config = StrategyConfig::named(name).expect(summary);
            assert_eq!(config.name(), *name);
            config.check().expect("the defaults");
            let text = toml::to_string(&config).expect("plain values");
            assert!(text.contains(&format!("algorithm = {name:?}")), "{text}");
            assert_eq!(toml::from_str::<StrategyConfig>(&text).expect("its own"), config);
            let short = format!("algorithm = {name:?}");
            assert_eq!(toml::from_str::<StrategyConfig>(&short).expect("all by default"), config);
            let mut strategy = make(&config, vec![0.5; 7], Seed::root(1)).expect("fine");
            assert_eq!(strategy.ask().len(), config.population(7));
            assert_eq!((strategy.ask().params(), strategy.generation()), (7, 0));
            assert_eq!((strategy.centre(), strategy.recommended()), (&[0.5; 7][..], &[0.5; 7][..]));
            assert!((strategy.norm() - 7.0_f64.sqrt() / 2.0).abs() < 1e-12);
        }
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code)]
        struct Table {
            name: String,
            #[serde(flatten)]
            strategy: StrategyConfig,
        }
        let cases = [
            ("algorithm = 'rank-se'", "rank-es"),
            ("algorithm = 'rank-es'\ncolour = 3", "unknown field `colour`, expected one of `population`"),
            ("algorithm = 'rank-es'\nsigma = 'big'", "invalid type: string \"big\", expected f64"),
            ("sigma = 1", "missing field `algorithm`"),
        ];
        for (text, why) in cases {
            let error = toml::from_str::<StrategyConfig>(text).expect_err(why).to_string();
            assert!(error.contains(why), "{error} / {why}");
            let error = toml::from_str::<Table>(&format!("name = 'x'\n{text}")).expect_err(why).to_string();
            assert!(error.contains(why), "within a table: {error} / {why}");
        }
        let table: Table = toml::from_str("name = 'x'\nalgorithm = 'rank-es'\nsigma = 1").expect("fine");
        assert!(matches!(table.strategy.algorithm, Algorithm::RankEs(RankEsConfig { sigma: 1.0, .. })));
        let error = StrategyConfig::named("cma").expect_err("no such name").to_string();
        assert!(error.contains("\"cma\"; did you mean cma-es? choose from: rank-es"), "{error}");
    }
}
