//! A rank-weighted evolution strategy with one constant step size.
//!
//! Each generation samples λ genomes around the mean, `x_i = m + σ z_i` with `z_i ~ N(0, I)`, sorts them by
//! fitness and moves the mean towards the good ones:
//!
//! ```text
//! w_r = max(0, ln(λ/2 + 1) − ln r)          weight of rank r = 1 … λ, the better half only
//! u_r = w_r / Σ w − 1/λ                      the weights sum to zero
//! m  ← (1 − d) · m + η · Σ u_r · (x_r − m)   η: learning rate, d: weight decay
//! ```
//!
//! This is the mean update of the `(μ/μ_w, λ)` evolution strategy with the logarithmic weights of Hansen and
//! Ostermeier, and also of SNES (Wierstra, Schaul, Glasmachers, Sun, Peters and Schmidhuber, "Natural
//! Evolution Strategies", 2014, section 3). SNES would also adapt σ; with the thousands of parameters of a
//! small agent and a population of tens its rate changes σ by less than a percent over a whole run, so σ is a
//! constant here.
//!
//! Only ranks matter, so neither the scale of the returns nor one outlier episode can distort the mean, and a
//! few very good genomes among many poor ones count in full, as in early training on CarRacing. Genomes of
//! equal fitness share the weights of the ranks they occupy: their order in the population has no effect.
//!
//! With one track per generation the mean is noisy; [`RankEs::average`] is an exponential moving average of
//! the means (Polyak averaging) for evaluations with less noise.

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{Base, answered_by_base};
use crate::check;
use crate::shaping::Shaper;

/// Settings of a [`RankEs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RankEsConfig {
    /// λ: genomes per generation, at least 2; even when `mirrored`.
    pub population: usize,
    /// σ: standard deviation of every parameter around the mean, above 0.
    pub sigma: f64,
    /// η: how far the mean moves towards the weighted genomes; 1 is all the way.
    pub learning_rate: f64,
    /// d: relative decay of the mean per generation, `0.0..1.0`.
    pub weight_decay: f64,
    /// Decay factor of [`RankEs::average`], `0.0..1.0`: the share of the old average that each generation
    /// keeps. With 0 the average equals the mean.
    pub averaging: f64,
    /// Sample genomes in pairs, `m + σ z` and `m − σ z`.
    pub mirrored: bool,
}

impl Default for RankEsConfig {
    fn default() -> Self {
        RankEsConfig {
            population: 32,
            sigma: 0.1,
            learning_rate: 1.0,
            weight_decay: 0.0,
            averaging: 0.0,
            mirrored: false,
        }
    }
}

impl RankEsConfig {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        check::population(self.population, self.mirrored)?;
        check::above_zero(&[("sigma", self.sigma), ("learning_rate", self.learning_rate)])?;
        check::share(&[("weight_decay", self.weight_decay), ("averaging", self.averaging)])
    }

    /// The settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64> {
        vec![
            self.population as f64,
            self.sigma,
            self.learning_rate,
            self.weight_decay,
            self.averaging,
            f64::from(u8::from(self.mirrored)),
        ]
    }
}

/// The rank-weighted strategy; see the [module](self) for the algorithm.
///
/// ```
/// use foveate_core::{Evolver, Seed};
/// use foveate_evolve::{RankEs, RankEsConfig};
///
/// let mut es = RankEs::new(RankEsConfig::default(), &[1.0; 10], Seed::root(1))?;
/// for _ in 0..200 {
///     let population = es.ask();
///     let fitness: Vec<f64> = (0..population.len())
///         .map(|i| -population.genome(i).iter().map(|x| f64::from(*x).powi(2)).sum::<f64>())
///         .collect();
///     es.tell(&fitness)?;
/// }
/// assert!(es.mean().iter().all(|x| x.abs() < 0.2));
/// # Ok::<(), foveate_core::EvolveError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RankEs {
    config: RankEsConfig,
    base: Base,
    /// `[n_params]`: moving average of the means.
    average: Vec<f64>,
    shaper: Shaper,
    /// Scratch: `[n_params]`, the step of the mean, then the next mean.
    next: Vec<f64>,
}

impl RankEs {
    /// Starts around `mean`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `mean` is empty or not finite.
    pub fn new(config: RankEsConfig, mean: &[f32], seed: Seed) -> Result<Self, EvolveError> {
        Self::from_mean(config, mean.iter().map(|&x| f64::from(x)).collect(), seed)
    }

    /// As [`RankEs::new`], from a mean in double precision.
    ///
    /// # Errors
    /// As [`RankEs::new`].
    pub fn from_mean(config: RankEsConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        Ok(RankEs {
            average: mean.clone(),
            shaper: Shaper::natural(config.population),
            next: vec![0.0; mean.len()],
            base: Base::new(mean, config.population, seed)?,
            config,
        })
    }

    /// The settings.
    pub const fn config(&self) -> &RankEsConfig {
        &self.config
    }

    /// `[n_params]`: the moving average of the means, see [`RankEsConfig::averaging`].
    pub fn average(&self) -> &[f64] {
        &self.average
    }
}

impl Evolver for RankEs {
    answered_by_base!();

    fn ask(&mut self) -> &Population {
        if self.base.must_sample() {
            self.base.sample(self.config.mirrored, |_| self.config.sigma);
        }
        self.base.population()
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        self.base.check_fitness(fitness)?;
        self.next.fill(0.0);
        // Best first: the order of a sum affects its bits.
        for (i, utility) in self.shaper.ranked(fitness) {
            // The rounded genome was evaluated, so the update uses it.
            let genome = self.base.population().genome(i).iter().zip(self.base.mean());
            for (step, (&x, m)) in self.next.iter_mut().zip(genome) {
                *step += utility * (f64::from(x) - m);
            }
        }
        let (shrink, rate) = (1.0 - self.config.weight_decay, self.config.learning_rate);
        for (next, m) in self.next.iter_mut().zip(self.base.mean()) {
            *next = shrink * m + rate * *next;
        }
        self.base.check_range("the mean", &self.next)?;
        let progress = self.base.told(fitness, self.config.sigma, |mean| mean.copy_from_slice(&self.next));
        // In the first generations the average weighs all means equally instead of favouring the first.
        let keep = self.config.averaging.min(1.0 - 1.0 / progress.generation as f64);
        for (average, m) in self.average.iter_mut().zip(self.base.mean()) {
            *average = keep * *average + (1.0 - keep) * m;
        }
        Ok(progress)
    }

    /// The average of the means.
    fn recommended(&self) -> &[f64] {
        &self.average
    }

    fn state(&self) -> StateDict {
        let mut state = self.base.state(self.config.numbers());
        state.insert("average".into(), Tensor::from(self.average.clone()));
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let saved = self.base.saved(StateReader(state), &self.config.numbers())?;
        let average = StateReader(state).f64s("average", self.average.len())?;
        self.average.copy_from_slice(average);
        self.base.restore(saved);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut RankEsConfig)) -> RankEsConfig {
        let mut config = RankEsConfig::default();
        change(&mut config);
        config
    }

    fn fitness(es: &mut RankEs, f: impl Fn(&[f32]) -> f64) -> Vec<f64> {
        let population = es.ask();
        (0..population.len()).map(|i| f(population.genome(i))).collect()
    }

    fn sphere(x: &[f32]) -> f64 {
        -x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>()
    }

    /// Condition number 1e3.
    fn ellipsoid(x: &[f32]) -> f64 {
        let last = (x.len() - 1) as f64;
        -x.iter().enumerate().map(|(i, &x)| 1e3_f64.powf(i as f64 / last) * f64::from(x).powi(2)).sum::<f64>()
    }

    /// `u_r` of ranks 1 … λ, best first.
    fn utilities(population: usize) -> Vec<f64> {
        let half = (population as f64 / 2.0 + 1.0).ln();
        let weights: Vec<f64> = (1..=population).map(|rank| (half - (rank as f64).ln()).max(0.0)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|w| w / sum - 1.0 / population as f64).collect()
    }

    /// The module's formulas, every sum from the best genome to the worst: means and averages of all
    /// generations. Saved runs resume bit-identically only while this holds to the last bit.
    fn by_hand(c: &RankEsConfig, start: f64, n: usize, seed: Seed, generations: u64) -> (Vec<f64>, Vec<f64>) {
        let u = utilities(c.population);
        let (mut mean, mut average) = (vec![start; n], vec![start; n]);
        for generation in 0..generations {
            let genomes: Vec<Vec<f32>> = (0..c.population)
                .map(|i| {
                    let draw = if c.mirrored { i / 2 } else { i };
                    let path = seed.child("generation", generation).child("genome", draw as u64);
                    let mut rng = path.rng();
                    let sign = if c.mirrored && i % 2 == 1 { -1.0 } else { 1.0 };
                    mean.iter().map(|m| (m + sign * c.sigma * rng.normal()) as f32).collect()
                })
                .collect();
            let returns: Vec<f64> = genomes.iter().map(|genome| stairs(genome)).collect();
            let mut order: Vec<usize> = (0..c.population).collect();
            order.sort_by(|&a, &b| returns[b].total_cmp(&returns[a]));
            let mut step = vec![0.0; n];
            for &i in &order {
                let tied: Vec<f64> =
                    (0..c.population).filter(|&r| returns[order[r]] == returns[i]).map(|r| u[r]).collect();
                let utility = tied.iter().sum::<f64>() / tied.len() as f64;
                for j in 0..n {
                    step[j] += utility * (f64::from(genomes[i][j]) - mean[j]);
                }
            }
            let keep = c.averaging.min(1.0 - 1.0 / (generation + 1) as f64);
            for j in 0..n {
                mean[j] = (1.0 - c.weight_decay) * mean[j] + c.learning_rate * step[j];
                average[j] = keep * average[j] + (1.0 - keep) * mean[j];
            }
        }
        (mean, average)
    }

    /// A sphere with plateaus, so that genomes tie.
    fn stairs(x: &[f32]) -> f64 {
        (4.0 * sphere(x)).round() / 4.0
    }

    #[test]
    fn the_bits_are_those_of_the_formulas() {
        for config in [
            RankEsConfig::default(),
            config(|c| (c.population, c.sigma, c.learning_rate) = (7, 0.3, 0.4)),
            config(|c| (c.mirrored, c.averaging, c.weight_decay) = (true, 0.9, 0.003)),
        ] {
            let seed = Seed::root(12);
            let mut es = RankEs::new(config.clone(), &[1.0; 15], seed).expect("fine");
            for generation in 1..=25 {
                let returns = fitness(&mut es, stairs);
                es.tell(&returns).expect("finite");
                let (mean, average) = by_hand(&config, 1.0, 15, seed, generation);
                assert_eq!((es.centre(), es.recommended()), (&mean[..], &average[..]), "{config:?}");
            }
        }
    }

    #[track_caller]
    fn check_climbs(name: &str, config: RankEsConfig, f: fn(&[f32]) -> f64, generations: u64, at_least: f64) {
        let start = [1.0_f32; 20];
        let mut es = RankEs::new(config, &start, Seed::root(11)).expect("the settings are fine");
        for generation in 1..=generations {
            let returns = fitness(&mut es, f);
            let progress = es.tell(&returns).expect("finite");
            assert_eq!(progress.generation, generation);
            assert!(progress.best >= progress.mean);
        }
        let reached = f(es.mean());
        assert!(reached > at_least, "{name}: {reached} after {generations} generations, start {}", f(&start));
    }

    #[test]
    fn climbs() {
        let plain = RankEsConfig::default();
        check_climbs("sphere", plain.clone(), sphere, 150, -0.2);
        check_climbs("sphere, mirrored", config(|c| c.mirrored = true), sphere, 150, -0.2);
        check_climbs("sphere, slow", config(|c| c.learning_rate = 0.4), sphere, 300, -0.2);
        check_climbs("sphere, odd population", config(|c| c.population = 7), sphere, 400, -0.5);
        check_climbs("sphere, decay", config(|c| c.weight_decay = 0.01), sphere, 150, -0.2);
        check_climbs("ellipsoid", config(|c| c.sigma = 0.03), ellipsoid, 2500, -8.0);
    }

    #[test]
    fn equal_fitness_means_equal_say() {
        // All equal: the utilities sum to zero, the mean stays (up to rounding of the sum).
        let mut es = RankEs::new(RankEsConfig::default(), &[0.5; 50], Seed::root(2)).expect("fine");
        es.ask();
        es.tell(&[3.0; 32]).expect("finite");
        assert!(es.mean().iter().all(|x| (x - 0.5).abs() < 1e-6), "{:?}", es.mean());

        // Two share the best rank, the others share the rest; the expected step is computed by hand. 0.0 and
        // -0.0 are equal.
        let mut es = RankEs::new(RankEsConfig::default(), &[0.5; 50], Seed::root(2)).expect("fine");
        let genomes = es.ask().clone();
        let mut returns = [0.0; 32];
        (returns[4], returns[9], returns[20]) = (7.0, 7.0, -0.0);
        es.tell(&returns).expect("finite");
        let u = utilities(32);
        let (win, lose) = (f64::midpoint(u[0], u[1]), u[2..].iter().sum::<f64>() / 30.0);
        for (j, m) in es.centre().iter().enumerate() {
            let step = |i: usize| f64::from(genomes.genome(i)[j]) - 0.5;
            let all: f64 = (0..32).map(|i| step(i) * if i == 4 || i == 9 { win } else { lose }).sum();
            assert!((m - 0.5 - all).abs() < 1e-12);
        }
    }

    #[test]
    fn mirrored_pairs_lie_opposite() {
        let mut es = RankEs::new(config(|c| c.mirrored = true), &[0.25; 40], Seed::root(3)).expect("fine");
        let population = es.ask();
        for pair in 0..16 {
            for (a, b) in population.genome(2 * pair).iter().zip(population.genome(2 * pair + 1)) {
                assert!((a + b - 0.5).abs() < 1e-6);
            }
        }
        assert_ne!(population.genome(0), population.genome(2));
    }

    #[test]
    fn the_sample_has_the_right_spread() {
        let mut es = RankEs::new(config(|c| c.sigma = 0.3), &[2.0; 3000], Seed::root(8)).expect("fine");
        let population = es.ask();
        let all: Vec<f64> =
            (0..32).flat_map(|i| population.genome(i)).map(|&x| (f64::from(x) - 2.0) / 0.3).collect();
        let n = all.len() as f64;
        let (mean, var) = (all.iter().sum::<f64>() / n, all.iter().map(|z| z * z).sum::<f64>() / n);
        assert!(mean.abs() < 0.01 && (var - 1.0).abs() < 0.02, "mean {mean}, variance {var}");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        type Change = fn(&mut RankEsConfig);
        let cases: [(Change, &str); 8] = [
            (|c| c.population = 1, "population = 1; a generation needs at least 2"),
            (|c| (c.population, c.mirrored) = (31, true), "population = 31; mirrored pairs need an even"),
            (|c| c.sigma = 0.0, "sigma = 0; it must be above 0"),
            (|c| c.sigma = f64::NAN, "sigma = NaN"),
            (|c| c.learning_rate = -1.0, "learning_rate = -1"),
            (|c| c.learning_rate = f64::INFINITY, "learning_rate = inf"),
            (|c| c.weight_decay = 1.0, "weight_decay = 1; it must be at least 0 and below 1"),
            (|c| c.averaging = -0.1, "averaging = -0.1"),
        ];
        for (change, why) in cases {
            let error = RankEs::new(config(change), &[0.0], Seed::root(1)).expect_err(why).to_string();
            assert!(error.contains(why), "{error} / {why}");
        }
        for (mean, why) in
            [(&[][..], "0 parameters"), (&[0.0, f32::NAN][..], "parameter 1 of the start is NaN")]
        {
            let error = RankEs::new(RankEsConfig::default(), mean, Seed::root(1)).expect_err(why).to_string();
            assert!(error.contains(why), "{error} / {why}");
        }
    }

    #[test]
    fn the_average_follows_the_mean() {
        let mut plain = RankEs::new(RankEsConfig::default(), &[1.0; 20], Seed::root(4)).expect("fine");
        let mut averaged =
            RankEs::new(config(|c| c.averaging = 0.9), &[1.0; 20], Seed::root(4)).expect("fine");
        let mut means = Vec::new();
        for _ in 0..5 {
            for es in [&mut plain, &mut averaged] {
                let returns = fitness(es, sphere);
                es.tell(&returns).expect("finite");
            }
            means.push(plain.centre().to_vec());
        }
        assert_eq!(plain.average(), plain.centre());
        assert_eq!(averaged.centre(), plain.centre(), "averaging must not touch the search");
        for (j, a) in averaged.average().iter().enumerate() {
            let by_hand = means.iter().map(|m| m[j]).sum::<f64>() / 5.0;
            assert!((a - by_hand).abs() < 1e-12);
        }
    }
}
