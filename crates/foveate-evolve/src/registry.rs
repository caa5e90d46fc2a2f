//! Every strategy by its name: settings as a user writes them, and the strategy they make.
//!
//! ```
//! use foveate_core::{Evolver, Seed};
//! use foveate_evolve::{StrategyConfig, make};
//!
//! let config = StrategyConfig::named("rank-es")?;
//! let mut strategy = make(&config, vec![0.0; 10], Seed::root(1))?;
//! assert_eq!(strategy.ask().len(), config.population(10));
//! # Ok::<(), foveate_core::EvolveError>(())
//! ```

use foveate_core::{EvolveError, Evolver, Seed, Student, near};
use serde::{Deserialize, Serialize};

use crate::bounds::{Bounded, Bounds};
use crate::cma_es::{CmaEs, CmaEsConfig, default_population};
use crate::imitation::{Imitation, ImitationConfig};
use crate::openai_es::{OpenAiEs, OpenAiEsConfig};
use crate::pgpe::{Pgpe, PgpeConfig};
use crate::rank_es::{RankEs, RankEsConfig};
use crate::restarts::{Restarting, Restarts};
use crate::sep_cma_es::{SepCmaEs, SepCmaEsConfig};
use crate::simple_ga::{SimpleGa, SimpleGaConfig};
use crate::snes::{Snes, SnesConfig};

/// A strategy with its settings. In TOML its keys stand side by side; those left out have their defaults:
///
/// ```toml
/// algorithm = "rank-es"
/// population = 64
/// sigma = 0.05
/// bounds = { low = -3.0, high = 3.0 }
/// restarts = { after = 50 }
/// ```
///
/// It may be flattened into a larger table (`#[serde(flatten)]`), which then must not deny unknown keys itself: those
/// that the table does not know end up here, and here they are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrategyConfig {
    /// Which strategy, with the settings that are its own.
    #[serde(flatten)]
    pub algorithm: Algorithm,
    /// Where genomes may be; anywhere by default. See [`bounds`](crate::bounds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// When to begin anew; never by default. See [`restarts`](crate::restarts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Restarts>,
}

impl From<Algorithm> for StrategyConfig {
    /// Without bounds or restarts.
    fn from(algorithm: Algorithm) -> Self {
        StrategyConfig { algorithm, bounds: None, restarts: None }
    }
}

/// The strategies, each with its own settings; `algorithm` is the key that tells them apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Algorithm {
    /// See [`rank_es`](crate::rank_es).
    RankEs(RankEsConfig),
    /// See [`snes`](crate::snes).
    Snes(SnesConfig),
    /// See [`openai_es`](crate::openai_es).
    OpenaiEs(OpenAiEsConfig),
    /// See [`pgpe`](crate::pgpe).
    Pgpe(PgpeConfig),
    /// See [`cma_es`](crate::cma_es).
    CmaEs(CmaEsConfig),
    /// See [`sep_cma_es`](crate::sep_cma_es).
    SepCmaEs(SepCmaEsConfig),
    /// See [`simple_ga`](crate::simple_ga).
    SimpleGa(SimpleGaConfig),
    /// See [`imitation`](crate::imitation).
    Imitation(ImitationConfig),
}

/// The same question to whichever it is; imitation, which has no population, may have an answer of its own.
macro_rules! each {
    ($algorithm:expr, $config:ident => $answer:expr) => {
        each!($algorithm, $config => $answer, imitation $config => $answer)
    };
    ($algorithm:expr, $config:ident => $answer:expr, imitation $other:pat => $own:expr) => {
        match $algorithm {
            Algorithm::RankEs($config) => $answer,
            Algorithm::Snes($config) => $answer,
            Algorithm::OpenaiEs($config) => $answer,
            Algorithm::Pgpe($config) => $answer,
            Algorithm::CmaEs($config) => $answer,
            Algorithm::SepCmaEs($config) => $answer,
            Algorithm::SimpleGa($config) => $answer,
            Algorithm::Imitation($other) => $own,
        }
    };
}

/// The population that a configuration names, or leaves to the number of parameters.
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

/// A strategy for people who look for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Described {
    /// The name that configurations use.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
}

/// What is no evolution, but may be a stage as well.
pub const IMITATION: Described = Described {
    name: "imitation",
    what: "the controller learns from the world's expert, by gradients; no evolution",
};

/// All strategies of evolution.
pub const fn list() -> &'static [Described] {
    const fn entry(name: &'static str, what: &'static str) -> Described {
        Described { name, what }
    }
    const {
        &[
            entry("rank-es", "log-rank weights, one constant step size; for small populations (default)"),
            entry("snes", "natural evolution: log-rank weights, a step size for each parameter"),
            entry("openai-es", "mirrored pairs, centred ranks, Adam, one given step size"),
            entry("pgpe", "symmetric pairs, ClipUp or Adam, a step size for each parameter"),
            entry(
                "cma-es",
                if cfg!(feature = "eigen") {
                    "learns which steps go together: a full covariance matrix, as pycma; form eigen or cholesky"
                } else {
                    "learns which steps go together: a full covariance matrix, as pycma; form eigen needs the \
                     Cargo feature eigen"
                },
            ),
            entry("sep-cma-es", "the same with a diagonal covariance matrix, for many parameters"),
            entry("simple-ga", "genetic algorithm: the best have mutated children, elites stay"),
        ]
    }
}

impl StrategyConfig {
    /// The defaults of the strategy with this name.
    ///
    /// # Errors
    /// When there is none; the message lists those there are.
    pub fn named(name: &str) -> Result<Self, EvolveError> {
        let all = [
            Algorithm::RankEs(RankEsConfig::default()),
            Algorithm::Snes(SnesConfig::default()),
            Algorithm::OpenaiEs(OpenAiEsConfig::default()),
            Algorithm::Pgpe(PgpeConfig::default()),
            Algorithm::CmaEs(CmaEsConfig::default()),
            Algorithm::SepCmaEs(SepCmaEsConfig::default()),
            Algorithm::SimpleGa(SimpleGaConfig::default()),
            Algorithm::Imitation(ImitationConfig::default()),
        ]
        .map(StrategyConfig::from);
        all.into_iter().find(|config| config.name() == name).ok_or_else(|| {
            let names: Vec<_> = list().iter().chain([&IMITATION]).map(|d| d.name).collect();
            let hint = near::hint_of(name, names.iter().copied());
            let why = format!("no strategy is called {name:?};{hint} choose from: {}", names.join(", "));
            EvolveError::BadConfig { why }
        })
    }

    /// The name of the strategy.
    pub const fn name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::RankEs(_) => "rank-es",
            Algorithm::Snes(_) => "snes",
            Algorithm::OpenaiEs(_) => "openai-es",
            Algorithm::Pgpe(_) => "pgpe",
            Algorithm::CmaEs(_) => "cma-es",
            Algorithm::SepCmaEs(_) => "sep-cma-es",
            Algorithm::SimpleGa(_) => "simple-ga",
            Algorithm::Imitation(_) => "imitation",
        }
    }

    /// Genomes of the first generation, for genomes of `params` parameters. Later ones may have more, see
    /// [`Evolver::ask`].
    pub fn population(&self, params: usize) -> usize {
        each!(&self.algorithm, config => config.population.or_default(params), imitation _ => 1)
    }

    /// Checks that the numbers make sense.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] names the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        each!(&self.algorithm, config => config.check())?;
        if matches!(self.algorithm, Algorithm::Imitation(_))
            && (self.bounds.is_some() || self.restarts.is_some())
        {
            let why = "imitation has neither bounds nor restarts; leave them out".into();
            return Err(EvolveError::BadConfig { why });
        }
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

/// Makes the strategy, around `mean` (`[n_params]`), with all randomness below `seed`.
///
/// # Errors
/// When a setting makes no sense, `mean` is empty or not finite, or the strategy needs a student.
pub fn make(config: &StrategyConfig, mean: Vec<f64>, seed: Seed) -> Result<Box<dyn Evolver>, EvolveError> {
    make_with(config, mean, seed, None)
}

/// As [`make`], with someone who can be taught, for `imitation`.
///
/// # Errors
/// As [`make`], or when the student does not take `mean`.
pub fn make_with(
    config: &StrategyConfig,
    mean: Vec<f64>,
    seed: Seed,
    student: Option<&dyn Student>,
) -> Result<Box<dyn Evolver>, EvolveError> {
    config.check()?;
    let StrategyConfig { algorithm, bounds, restarts } = config.clone();
    if let Algorithm::Imitation(config) = algorithm {
        let Some(student) = student else {
            let why =
                "imitation needs an agent with a part that learns by gradients; this one has none".into();
            return Err(EvolveError::BadConfig { why });
        };
        return Ok(Box::new(Imitation::from_mean(config, mean, seed, student.boxed_clone())?));
    }
    let Some(restarts) = restarts else { return within(bounds, algorithm, mean, seed) };
    let population = config.population(mean.len());
    let make = move |population, mean, seed| {
        let mut algorithm = algorithm.clone();
        each!(&mut algorithm, config => config.population.put(population), imitation _ => ());
        within(bounds, algorithm, mean, seed)
    };
    Ok(Box::new(Restarting::new(restarts, population, mean, bounds, seed, Box::new(make))?))
}

/// The strategy, kept within bounds if there are any.
fn within(
    bounds: Option<Bounds>,
    algorithm: Algorithm,
    mean: Vec<f64>,
    seed: Seed,
) -> Result<Box<dyn Evolver>, EvolveError> {
    let inner: Box<dyn Evolver> = match algorithm {
        Algorithm::RankEs(config) => Box::new(RankEs::from_mean(config, mean, seed)?),
        Algorithm::Snes(config) => Box::new(Snes::from_mean(config, mean, seed)?),
        Algorithm::OpenaiEs(config) => Box::new(OpenAiEs::from_mean(config, mean, seed)?),
        Algorithm::Pgpe(config) => Box::new(Pgpe::from_mean(config, mean, seed)?),
        Algorithm::CmaEs(config) => Box::new(CmaEs::from_mean(config, mean, seed)?),
        Algorithm::SepCmaEs(config) => Box::new(SepCmaEs::from_mean(config, mean, seed)?),
        Algorithm::SimpleGa(config) => Box::new(SimpleGa::from_mean(config, mean, seed)?),
        Algorithm::Imitation(_) => {
            let why = "imitation has neither bounds nor restarts; leave them out".into();
            return Err(EvolveError::BadConfig { why });
        }
    };
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
        for Described { name, what } in list() {
            let config = StrategyConfig::named(name).expect(what);
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
