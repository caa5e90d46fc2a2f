//! A simple genetic algorithm: truncation selection, Gaussian mutation, elites.
//!
//! Such, Madhavan, Conti, Lehman, Stanley and Clune, "Deep neuroevolution: genetic algorithms are a
//! competitive alternative for training deep neural networks for reinforcement learning", 2017, algorithm 1;
//! used for agents that drive from pixels by Risi and Stanley, "Deep neuroevolution of recurrent and discrete
//! world models", GECCO 2019.
//!
//! ```text
//! the best T of the population are the parents of the next
//! the best E of them go on unchanged                        elites
//! x = parent + σ z,  the parent drawn evenly from the T     everyone else
//! ```
//!
//! The start is the only parent of the first generation, and an elite of it. If fitness is noisy, the best of
//! a population is often merely lucky, which is why both papers evaluate their best genomes again. Here
//! [`SimpleGaConfig::elite_reevaluation`] does so without additional rollouts: an elite is part of the
//! population of every generation as long as it is an elite, and is ranked by the mean of all its
//! evaluations. Without it, elites are not in the population; they keep their fitness until a genome is
//! better.

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{Base, answered_by_base, bad};
use crate::check;
use crate::shaping::best_first;

/// Settings of [`SimpleGa`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimpleGaConfig {
    /// Genomes per generation, at least 2.
    pub population: usize,
    /// T: number of parents, the best of the population, `1..=population`.
    pub parents: usize,
    /// E: number of elites, at most `parents` and below `population`; 0 for none.
    pub elites: usize,
    /// Evaluate the elites again in every generation and rank them by their mean.
    pub elite_reevaluation: bool,
    /// σ: initial standard deviation of a mutation, above 0.
    pub sigma: f64,
    /// Factor of σ per generation, above 0 and at most 1.
    pub sigma_decay: f64,
    /// Lower limit of σ, 0 or more.
    pub sigma_min: f64,
}

impl Default for SimpleGaConfig {
    fn default() -> Self {
        SimpleGaConfig {
            population: 64,
            parents: 16,
            elites: 1,
            elite_reevaluation: true,
            sigma: 0.1,
            sigma_decay: 1.0,
            sigma_min: 0.0,
        }
    }
}

impl SimpleGaConfig {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        let SimpleGaConfig { population, parents, elites, .. } = *self;
        check::population(population, false)?;
        if parents == 0 || parents > population {
            let why = format!("parents = {parents}; choose 1 to {population}, the size of the population");
            return Err(EvolveError::BadConfig { why });
        }
        let most = parents.min(population - 1);
        if elites > most {
            let why = format!(
                "elites = {elites}; with {parents} parents in a population of {population}, choose 0 to {most}"
            );
            return Err(EvolveError::BadConfig { why });
        }
        check::above_zero(&[("sigma", self.sigma)])?;
        check::factor(&[("sigma_decay", self.sigma_decay)])?;
        check::not_negative(&[("sigma_min", self.sigma_min)])
    }

    fn decayed(&self, sigma: f64) -> f64 {
        (sigma * self.sigma_decay).max(self.sigma_min.min(sigma)).max(f64::from(f32::MIN_POSITIVE))
    }

    fn numbers(&self) -> Vec<f64> {
        vec![
            self.population as f64,
            self.parents as f64,
            self.elites as f64,
            f64::from(u8::from(self.elite_reevaluation)),
            self.sigma,
            self.sigma_decay,
            self.sigma_min,
        ]
    }
}

/// The genetic algorithm; see the [module](self). Its centre is the best parent.
#[derive(Debug, Clone)]
pub struct SimpleGa {
    config: SimpleGaConfig,
    base: Base,
    sigma: f64,
    parents: Parents,
    /// Scratch: the parents of the next generation.
    next: Parents,
    /// Scratch: score of each candidate, old elites first where they compete, then the population.
    scores: Vec<f64>,
    /// Scratch: candidates, best first.
    order: Vec<usize>,
}

/// Genomes with their scores, best first.
#[derive(Debug, Clone)]
struct Parents {
    /// `[n_parents, n_params]`
    genomes: Vec<f32>,
    scores: Vec<f64>,
    /// Number of evaluations in each score; 0 for the start, which has not been evaluated.
    evaluations: Vec<u64>,
}

impl Parents {
    fn with_capacity(parents: usize, params: usize) -> Self {
        Parents {
            genomes: Vec::with_capacity(parents * params),
            scores: Vec::with_capacity(parents),
            evaluations: Vec::with_capacity(parents),
        }
    }

    const fn len(&self) -> usize {
        self.scores.len()
    }

    fn genome(&self, index: usize) -> &[f32] {
        let params = self.genomes.len() / self.len();
        &self.genomes[index * params..(index + 1) * params]
    }

    fn push(&mut self, genome: &[f32], score: f64, evaluations: u64) {
        self.genomes.extend_from_slice(genome);
        self.scores.push(score);
        self.evaluations.push(evaluations);
    }

    fn clear(&mut self) {
        self.genomes.clear();
        self.scores.clear();
        self.evaluations.clear();
    }

    /// The score of a parent after one more evaluation.
    fn rescored(&self, index: usize, fitness: f64) -> (f64, u64) {
        let before = self.evaluations[index] as f64;
        let share = before / (before + 1.0);
        (self.scores[index] * share + fitness / (before + 1.0), self.evaluations[index] + 1)
    }
}

impl SimpleGa {
    /// Starts from `mean` (`[n_params]`); all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `mean` is empty or not finite.
    pub fn from_mean(config: SimpleGaConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        let base = Base::new(mean, config.population, seed)?;
        let params = base.mean().len();
        let mut parents = Parents::with_capacity(config.parents, params);
        parents.push(base.mean_f32(), 0.0, 0);
        Ok(SimpleGa {
            sigma: config.sigma,
            parents,
            next: Parents::with_capacity(config.parents, params),
            scores: Vec::with_capacity(config.population + config.elites),
            order: Vec::with_capacity(config.population + config.elites),
            base,
            config,
        })
    }

    /// The parents of the next population with their scores, best first.
    pub fn parents(&self) -> impl Iterator<Item = (&[f32], f64)> {
        (0..self.parents.len()).map(|i| (self.parents.genome(i), self.parents.scores[i]))
    }

    /// Number of elites in the population, which are its first genomes.
    fn elites_within(&self) -> usize {
        let started = self.parents.evaluations[0] > 0;
        // The start has not been evaluated, so it must be in the population once.
        if self.config.elite_reevaluation || !started {
            self.config.elites.min(self.parents.len())
        } else {
            0
        }
    }

    /// Number of elites that compete without being in the population.
    fn elites_without(&self) -> usize {
        let started = self.parents.evaluations[0] > 0;
        if self.config.elite_reevaluation || !started {
            0
        } else {
            self.config.elites.min(self.parents.len())
        }
    }

    fn breed(&mut self) {
        let elites = self.elites_within();
        for i in 0..self.config.population {
            let mut rng = self.base.genome_seed(i).rng();
            if i < elites {
                self.base.population_mut().genome_mut(i).copy_from_slice(self.parents.genome(i));
                continue;
            }
            let parent = self.parents.genome(rng.below(self.parents.len() as u64) as usize);
            for (x, &p) in self.base.population_mut().genome_mut(i).iter_mut().zip(parent) {
                *x = (f64::from(p) + self.sigma * rng.normal()) as f32;
            }
        }
    }
}

impl Evolver for SimpleGa {
    answered_by_base!();

    fn ask(&mut self) -> &Population {
        if self.base.must_sample() {
            self.breed();
        }
        self.base.population()
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        self.base.check_fitness(fitness)?;
        let (within, without) = (self.elites_within(), self.elites_without());
        let population = self.base.population();
        // A row that was replaced is no longer the elite.
        let elite = |i: usize| i < within && population.genome(i) == self.parents.genome(i);
        self.scores.clear();
        self.scores.extend_from_slice(&self.parents.scores[..without]);
        self.scores.extend(
            fitness.iter().enumerate().map(
                |(i, &f)| {
                    if elite(i) { self.parents.rescored(i, f).0 } else { f }
                },
            ),
        );
        best_first(&self.scores, &mut self.order);

        self.next.clear();
        for &candidate in &self.order[..self.config.parents] {
            let score = self.scores[candidate];
            match candidate.checked_sub(without) {
                None => {
                    let genome = self.parents.genome(candidate);
                    self.next.push(genome, score, self.parents.evaluations[candidate]);
                }
                Some(i) => {
                    let evaluations = if elite(i) { self.parents.rescored(i, fitness[i]).1 } else { 1 };
                    self.next.push(population.genome(i), score, evaluations);
                }
            }
        }
        std::mem::swap(&mut self.parents, &mut self.next);
        self.sigma = self.config.decayed(self.sigma);
        Ok(self.base.told(fitness, self.sigma, |mean| {
            for (m, &x) in mean.iter_mut().zip(self.parents.genome(0)) {
                *m = f64::from(x);
            }
        }))
    }

    fn state(&self) -> StateDict {
        let mut state = self.base.state(self.config.numbers());
        state.insert("sigma".into(), Tensor::from(vec![self.sigma]));
        state.insert("parents".into(), Tensor::from(self.parents.genomes.clone()));
        state.insert("scores".into(), Tensor::from(self.parents.scores.clone()));
        state.insert("evaluations".into(), Tensor::from(self.parents.evaluations.clone()));
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let state = StateReader(state);
        let saved = self.base.saved(state, &self.config.numbers())?;
        let sigma = state.sigmas("sigma", 1)?[0];
        let params = self.base.mean().len();
        let genomes = state.f32s("parents", params)?;
        let count = genomes.len() / params;
        if count == 0 || count > self.config.parents {
            return Err(bad(format!("there are {count} parents, 1 to {} are due", self.config.parents)));
        }
        let (scores, evaluations) = (state.f64s("scores", count)?, state.counters("evaluations", count)?);
        self.parents.clear();
        for (i, genome) in genomes.chunks_exact(params).enumerate() {
            self.parents.push(genome, scores[i], evaluations[i]);
        }
        self.sigma = sigma;
        self.base.restore(saved);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ga(change: impl FnOnce(&mut SimpleGaConfig)) -> SimpleGa {
        let mut config = SimpleGaConfig { population: 6, parents: 3, elites: 2, ..Default::default() };
        change(&mut config);
        SimpleGa::from_mean(config, vec![0.5; 4], Seed::root(3)).expect("the settings are fine")
    }

    fn rows(population: &Population) -> Vec<Vec<f32>> {
        (0..population.len()).map(|i| population.genome(i).to_vec()).collect()
    }

    #[test]
    fn the_best_are_the_parents_and_elites_go_on() {
        let mut ga = ga(|_| ());
        let first = rows(ga.ask());
        assert_eq!(first[0], vec![0.5; 4], "the start takes part");
        ga.tell(&[0.0, 3.0, 9.0, -1.0, 4.0, 3.5]).expect("finite");
        let parents: Vec<_> = ga.parents().map(|(g, score)| (g.to_vec(), score)).collect();
        let expect = [(first[2].clone(), 9.0), (first[4].clone(), 4.0), (first[5].clone(), 3.5)];
        assert_eq!(parents, expect);
        assert_eq!(ga.mean(), first[2]);
        let second = rows(ga.ask());
        assert_eq!(second[..2], [first[2].clone(), first[4].clone()]);
        // Every child is a mutation of one of the three.
        for child in &second[2..] {
            let near = parents.iter().any(|(p, _)| p.iter().zip(child).all(|(a, b)| (a - b).abs() < 0.5));
            assert!(near, "{child:?}");
        }
    }

    #[test]
    fn reevaluated_elites_go_by_the_mean() {
        let mut ga = ga(|c| c.elites = 1);
        let lucky = rows(ga.ask())[2].clone();
        ga.tell(&[0.0, 1.0, 90.0, 2.0, 3.0, 4.0]).expect("finite");
        assert_eq!(ga.ask().genome(0), lucky);
        ga.tell(&[30.0, 50.0, 0.0, 0.0, 0.0, 0.0]).expect("finite");
        assert_eq!(ga.parents().map(|(_, s)| s).collect::<Vec<_>>()[..2], [60.0, 50.0]);
        ga.ask();
        ga.tell(&[0.0, 45.0, 0.0, 0.0, 0.0, 0.0]).expect("finite");
        // (90 + 30 + 0) / 3
        assert_eq!(ga.parents().map(|(_, s)| s).collect::<Vec<_>>()[..2], [45.0, 40.0]);
        assert_ne!(ga.mean(), lucky);
    }

    #[test]
    fn kept_elites_stay_until_someone_is_better() {
        let mut ga = ga(|c| (c.elites, c.elite_reevaluation) = (1, false));
        let best = rows(ga.ask())[2].clone();
        ga.tell(&[0.0, 1.0, 90.0, 2.0, 3.0, 4.0]).expect("finite");
        assert!(rows(ga.ask()).iter().all(|row| *row != best), "it need not be evaluated again");
        ga.tell(&[80.0, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("finite");
        assert_eq!((ga.mean(), ga.parents().map(|(_, s)| s).collect()), (&best[..], vec![90.0, 80.0, 5.0]));
        let better = rows(ga.ask())[5].clone();
        ga.tell(&[0.0, 0.0, 0.0, 0.0, 0.0, 91.0]).expect("finite");
        assert_eq!(ga.mean(), better);
    }

    #[test]
    fn children_come_evenly_from_the_parents_with_the_right_spread() {
        let config = SimpleGaConfig { population: 3000, parents: 3, elites: 0, ..Default::default() };
        let mut ga = SimpleGa::from_mean(config, vec![0.0; 3], Seed::root(9)).expect("fine");
        ga.ask();
        // Far apart, so that every child can be assigned to its parent.
        for parent in 0..3 {
            ga.population_mut().genome_mut(parent).fill(100.0 * parent as f32);
        }
        let fitness: Vec<f64> = (0..3000).map(|i| f64::from(u8::from(i < 3))).collect();
        ga.tell(&fitness).expect("finite");
        let (mut counts, mut squares) = ([0; 3], 0.0);
        for row in rows(ga.ask()) {
            let parent = (row[0] / 100.0).round() as usize;
            counts[parent] += 1;
            squares += row.iter().map(|x| f64::from(x - 100.0 * parent as f32).powi(2)).sum::<f64>();
        }
        assert!(counts.iter().all(|c| (900..1100).contains(c)), "{counts:?}");
        let sigma = (squares / 9000.0).sqrt();
        assert!((sigma - 0.1).abs() < 0.003, "{sigma}");
    }
}
