//! Evolution strategies as learners.

use foveate_core::{
    Episodes, Evolver, Experience, LearnError, Learner, Progress, Purpose, Record, StateDict, Work,
};
use foveate_evolve::{Algorithm, Form, STRATEGIES, StrategyConfig, StrategyInfo, make};
use toml::{Table, Value};

use crate::descriptor::{JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom};
use crate::recipe::values::Fitness;

/// How many strategies there are.
pub(crate) const COUNT: usize = STRATEGIES.len();

/// Descriptors of all strategies.
pub(crate) const DESCRIPTORS: [LearnerDescriptor; COUNT] = {
    let mut all = [describe(&STRATEGIES[0]); COUNT];
    let mut i = 0;
    while i < COUNT {
        all[i] = describe(&STRATEGIES[i]);
        i += 1;
    }
    all
};

const fn describe(info: &StrategyInfo) -> LearnerDescriptor {
    LearnerDescriptor {
        name: info.name,
        summary: info.summary,
        learns_from: LearnsFrom::Returns,
        schedulable: info.schedulable,
        parse,
    }
}

/// The key that distinguishes strategies.
const ALGORITHM: &str = "algorithm";

fn parse(name: &str, table: &Table) -> Result<Box<dyn LearnerSettings>, String> {
    let mut table = table.clone();
    table.insert(ALGORITHM.into(), Value::from(name));
    let config: StrategyConfig = table.try_into().map_err(|error: toml::de::Error| {
        let said = error.message().trim();
        // Those of every strategy.
        let more = if said.contains("unknown field `") { ", `bounds`, `restarts`" } else { "" };
        format!("{said}{more}")
    })?;
    Ok(Box::new(config))
}

impl LearnerSettings for StrategyConfig {
    fn check(&self) -> Result<(), LearnError> {
        Ok(StrategyConfig::check(self)?)
    }

    fn table(&self) -> Table {
        let mut table = Table::try_from(self).expect("plain tables of numbers and texts");
        table.remove(ALGORITHM);
        table
    }

    fn rows(&self, params: usize) -> usize {
        self.population(params)
    }

    fn bounds(&self) -> Option<(f64, f64)> {
        self.bounds.as_ref().map(|bounds| (bounds.low, bounds.high))
    }

    fn build(
        &self,
        LearnerParts { weights, seed, fitness, .. }: LearnerParts<'_>,
    ) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(EvolutionLearner { strategy: make(self, weights, seed)?, fitness }))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let n = job.params;
        let population = self.population(usize::try_from(n).unwrap_or(usize::MAX)) as u64;
        let genomes = n.saturating_mul(population);
        let name = self.name();
        if let Algorithm::CmaEs(cma) = &self.algorithm {
            let square = n.saturating_mul(n);
            // The matrix and its factor; the saved triangle and the updates since, three times; for an
            // eigendecomposition also its scratch space.
            let matrices = match cma.form {
                Form::Cholesky => 32,
                Form::Eigen => 48,
            };
            return LearnerSize {
                memory: square
                    .saturating_mul(matrices)
                    .saturating_add(genomes.saturating_mul(36))
                    .saturating_add(vectors(n)),
                saved: square.saturating_mul(4).saturating_add(n.saturating_mul(64)),
                what: format!("the covariance matrix of {name} with {n} parameters"),
                remedy: "choose sep-cma-es or rank-es, or an agent with fewer parameters",
            };
        }
        LearnerSize {
            memory: genomes.saturating_mul(36).saturating_add(vectors(n)),
            saved: n.saturating_mul(64).saturating_add(match self.algorithm {
                Algorithm::SimpleGa(_) => genomes.saturating_mul(8),
                _ => 0,
            }),
            what: format!("{name} with {population} genomes of {n} parameters"),
            remedy: "lower population, or choose an agent with fewer parameters",
        }
    }
}

/// Means, paths and step sizes of `n` parameters in double precision, held three times while a checkpoint is
/// written.
pub(crate) const fn vectors(n: u64) -> u64 {
    n.saturating_mul(160)
}

/// Makes a learner of any [`Evolver`]: its genomes are the rows of the work, and the fitness of a genome is
/// computed from the returns of its episodes.
///
/// The work of a generation is one episode per genome and seed, recorded as [`Record::Returns`].
pub struct EvolutionLearner {
    strategy: Box<dyn Evolver>,
    fitness: Fitness,
}

impl EvolutionLearner {
    /// A learner that uses the mean of a genome's returns as its fitness.
    pub fn new(strategy: Box<dyn Evolver>) -> Self {
        EvolutionLearner { strategy, fitness: Fitness::Mean }
    }
}

impl Learner for EvolutionLearner {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        let weights = self.strategy.ask().clone();
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
        let genomes = self.strategy.ask().len();
        let returns: Vec<f64> = experience.episodes.iter().map(|episode| episode.total).collect();
        if returns.is_empty() || !returns.len().is_multiple_of(genomes) {
            let why = format!("{} episodes for {genomes} genomes; run as many for each", returns.len());
            return Err(LearnError::Experience { why });
        }
        // The strategy rejects a fitness that is not finite, but a median may hide a return that is not
        // finite.
        if let Some((job, &value)) = returns.iter().enumerate().find(|(_, r)| !r.is_finite()) {
            return Err(LearnError::ReturnNotFinite { job, generation: self.generation(), value });
        }
        let fitness: Vec<f64> =
            returns.chunks(returns.len() / genomes).map(|of_one| self.fitness.of(of_one)).collect();
        Ok(self.strategy.tell(&fitness)?)
    }

    fn weights(&self) -> &[f64] {
        self.strategy.recommended()
    }

    fn centre(&self) -> &[f64] {
        self.strategy.centre()
    }

    fn generation(&self) -> u64 {
        self.strategy.generation()
    }

    fn state(&self) -> StateDict {
        self.strategy.state()
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        Ok(self.strategy.restore(state)?)
    }

    fn restore_changed(&mut self, state: &StateDict) -> Result<(), LearnError> {
        Ok(self.strategy.restore_changed(state)?)
    }
}
