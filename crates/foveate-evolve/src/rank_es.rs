//! A rank-weighted evolution strategy with one constant step size.
//!
//! Each generation draws λ genomes around the mean, `x_i = m + σ z_i` with `z_i ~ N(0, I)`, sorts them by fitness and
//! moves the mean towards the good ones:
//!
//! ```text
//! w_r = max(0, ln(λ/2 + 1) − ln r)          weight of rank r = 1 … λ, the better half only
//! u_r = w_r / Σ w − 1/λ                      the weights sum to zero
//! m  ← (1 − d) · m + η · Σ u_r · (x_r − m)   η: learning rate, d: weight decay
//! ```
//!
//! This is the mean update of the `(μ/μ_w, λ)` evolution strategy with the logarithmic weights of Hansen and Ostermeier's
//! line of work, and equally of SNES (Wierstra, Schaul, Glasmachers, Sun, Peters and Schmidhuber, "Natural Evolution
//! Strategies", 2014, section 3). SNES would also adapt σ; at the thousands of parameters of a small agent and a
//! population of tens its rate moves σ by less than a percent over a whole run, so σ is simply a constant here.
//!
//! Only ranks matter, so neither the scale of the returns nor one freak episode can throw the mean off, and a few very
//! good genomes among many hopeless ones count in full, which is what early CarRacing looks like. Genomes of equal
//! fitness share the weights of the ranks they occupy: their order in the population never decides.
//!
//! With one track per generation the mean wanders; [`RankEs::average`] is an exponential moving average of the means
//! (Polyak averaging) for those who want to drive with something steadier.

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, Tensor};
use serde::{Deserialize, Serialize};

/// Settings of a [`RankEs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RankEsConfig {
    /// λ: genomes per generation, at least 2; even when `mirrored`.
    pub population: usize,
    /// σ: standard deviation of every parameter around the mean, above 0.
    pub sigma: f64,
    /// η: how far the mean goes towards the weighted genomes; 1 is all the way.
    pub learning_rate: f64,
    /// d: share of the mean that each generation takes away, `0.0..1.0`.
    pub weight_decay: f64,
    /// Memory of [`RankEs::average`], `0.0..1.0`: the share of the old average that each generation keeps. 0 makes the
    /// average the mean itself.
    pub averaging: f64,
    /// Draw genomes in pairs, `m + σ z` and `m − σ z`.
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
    /// Checks that the numbers make sense.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] names the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        let bad = |why: String| Err(EvolveError::BadConfig { why });
        if self.population < 2 {
            return bad(format!("population = {}; rank weights need at least 2 genomes", self.population));
        }
        if self.mirrored && !self.population.is_multiple_of(2) {
            return bad(format!("population = {}; mirrored pairs need an even number", self.population));
        }
        for (name, value) in [("sigma", self.sigma), ("learning_rate", self.learning_rate)] {
            if !(value.is_finite() && value > 0.0) {
                return bad(format!("{name} = {value}; it must be above 0"));
            }
        }
        for (name, value) in [("weight_decay", self.weight_decay), ("averaging", self.averaging)] {
            if !(0.0..1.0).contains(&value) {
                return bad(format!("{name} = {value}; it must be at least 0 and below 1"));
            }
        }
        Ok(())
    }

    /// The settings as numbers, to recognise a state that was made with others.
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

/// The strategy; see the [module's words](self) for the algorithm.
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
    seed: Seed,
    /// Utility of each rank, best first; sums to zero.
    utilities: Vec<f64>,
    /// `[n_params]`: the mean, in double precision so that small steps are not lost.
    mean: Vec<f64>,
    /// `[n_params]`: the mean, rounded for those who drive with it.
    mean_f32: Vec<f32>,
    /// `[n_params]`: moving average of the means.
    average: Vec<f64>,
    generation: u64,
    population: Population,
    asked: bool,
    /// Scratch: genome indices, best first.
    order: Vec<usize>,
    /// Scratch: `[n_params]`, the step of the mean.
    step: Vec<f64>,
}

impl RankEs {
    /// Starts around `mean`, with all randomness below `seed`.
    ///
    /// # Errors
    /// When a setting makes no sense, or `mean` is empty or not finite.
    pub fn new(config: RankEsConfig, mean: &[f32], seed: Seed) -> Result<Self, EvolveError> {
        Self::from_mean(config, mean.iter().map(|&x| f64::from(x)).collect(), seed)
    }

    /// As [`RankEs::new`], from a mean in double precision.
    ///
    /// # Errors
    /// As [`RankEs::new`].
    pub fn from_mean(config: RankEsConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        if mean.is_empty() {
            return Err(EvolveError::BadConfig { why: "there is nothing to evolve: 0 parameters".into() });
        }
        if let Some((i, x)) = mean.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            return Err(EvolveError::BadConfig { why: format!("parameter {i} of the start is {x}") });
        }
        Ok(RankEs {
            utilities: utilities(config.population),
            mean_f32: mean.iter().map(|&x| x as f32).collect(),
            average: mean.clone(),
            generation: 0,
            population: Population::zeros(config.population, mean.len()),
            asked: false,
            order: Vec::with_capacity(config.population),
            step: vec![0.0; mean.len()],
            config,
            seed,
            mean,
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

    fn sample(&mut self) {
        let generation = self.seed.child("generation", self.generation);
        let sigma = self.config.sigma;
        for i in 0..self.config.population {
            let draw = if self.config.mirrored { i / 2 } else { i };
            let sign = if self.config.mirrored && i % 2 == 1 { -1.0 } else { 1.0 };
            let mut rng = generation.child("genome", draw as u64).rng();
            for (x, m) in self.population.genome_mut(i).iter_mut().zip(&self.mean) {
                *x = (m + sign * sigma * rng.normal()) as f32;
            }
        }
    }
}

/// `u_r` of ranks 1 … λ, best first.
fn utilities(population: usize) -> Vec<f64> {
    let half = (population as f64 / 2.0 + 1.0).ln();
    let weights: Vec<f64> = (1..=population).map(|rank| (half - (rank as f64).ln()).max(0.0)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum - 1.0 / population as f64).collect()
}

impl Evolver for RankEs {
    fn ask(&mut self) -> &Population {
        if !self.asked {
            self.sample();
            self.asked = true;
        }
        &self.population
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        let wanted = self.config.population;
        if !self.asked {
            return Err(EvolveError::NothingAsked);
        }
        if fitness.len() != wanted {
            return Err(EvolveError::FitnessCount { wanted, given: fitness.len() });
        }
        if let Some((genome, &value)) = fitness.iter().enumerate().find(|(_, f)| !f.is_finite()) {
            return Err(EvolveError::FitnessNotFinite { genome, generation: self.generation, value });
        }

        self.order.clear();
        self.order.extend(0..wanted);
        self.order.sort_by(|&a, &b| fitness[b].total_cmp(&fitness[a]));

        self.step.fill(0.0);
        let mut rank = 0;
        while rank < wanted {
            // Equal fitness, equal say: everyone in the tie gets the average of the tie's utilities.
            let value = fitness[self.order[rank]];
            let ties = self.order[rank..].iter().take_while(|&&i| fitness[i] == value).count();
            let utility = self.utilities[rank..rank + ties].iter().sum::<f64>() / ties as f64;
            // In the order of the population, so that the sum does not depend on how the sort broke the tie.
            self.order[rank..rank + ties].sort_unstable();
            for &i in &self.order[rank..rank + ties] {
                // What was evaluated is the rounded genome, so that is what is learnt from.
                let genome = self.population.genome(i);
                for ((s, &x), m) in self.step.iter_mut().zip(genome).zip(&self.mean) {
                    *s += utility * (f64::from(x) - m);
                }
            }
            rank += ties;
        }

        self.generation += 1;
        self.asked = false;
        // While young, the average weighs all means alike instead of clinging to the first.
        let keep = self.config.averaging.min(1.0 - 1.0 / self.generation as f64);
        let (shrink, rate) = (1.0 - self.config.weight_decay, self.config.learning_rate);
        for (((m, s), a), m32) in
            self.mean.iter_mut().zip(&self.step).zip(&mut self.average).zip(&mut self.mean_f32)
        {
            *m = shrink * *m + rate * s;
            *a = keep * *a + (1.0 - keep) * *m;
            *m32 = *m as f32;
        }
        Ok(Progress {
            generation: self.generation,
            best: fitness[self.order[0]],
            mean: fitness.iter().sum::<f64>() / wanted as f64,
            sigma: self.config.sigma,
        })
    }

    fn population_mut(&mut self) -> &mut Population {
        &mut self.population
    }

    fn mean(&self) -> &[f32] {
        &self.mean_f32
    }

    fn centre(&self) -> &[f64] {
        &self.mean
    }

    /// The average of the means.
    fn recommended(&self) -> &[f64] {
        &self.average
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn state(&self) -> StateDict {
        StateDict::from([
            ("mean".into(), Tensor::F64(self.mean.clone())),
            ("average".into(), Tensor::F64(self.average.clone())),
            ("generation".into(), Tensor::U64(vec![self.generation])),
            ("seed".into(), Tensor::U64(vec![self.seed.value()])),
            ("settings".into(), Tensor::F64(self.config.numbers())),
        ])
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let bad = |why: String| EvolveError::BadState { why };
        let f64s = |name: &str, wanted: usize| match state.get(name) {
            Some(Tensor::F64(v)) if v.len() == wanted => match v.iter().find(|x| !x.is_finite()) {
                None => Ok(v),
                Some(x) => Err(bad(format!("{name} holds {x}"))),
            },
            Some(Tensor::F64(v)) => Err(bad(format!("{name} has {} numbers, {wanted} are due", v.len()))),
            Some(_) => Err(bad(format!("{name} is not of double precision"))),
            None => Err(bad(format!("{name} is missing"))),
        };
        let count = |name: &str| match state.get(name) {
            Some(Tensor::U64(v)) if v.len() == 1 => Ok(v[0]),
            Some(_) => Err(bad(format!("{name} is not one integer"))),
            None => Err(bad(format!("{name} is missing"))),
        };
        let n = self.mean.len();
        let settings = self.config.numbers();
        let saved = f64s("settings", settings.len())?;
        if *saved != settings {
            return Err(bad(format!("it was made with the settings {saved:?}, these are {settings:?}")));
        }
        if count("seed")? != self.seed.value() {
            return Err(bad("it was made with another seed".into()));
        }
        let (mean, average, generation) = (f64s("mean", n)?, f64s("average", n)?, count("generation")?);
        self.mean.copy_from_slice(mean);
        self.average.copy_from_slice(average);
        self.generation = generation;
        for (m32, m) in self.mean_f32.iter_mut().zip(&self.mean) {
            *m32 = *m as f32;
        }
        self.asked = false;
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
    fn utilities_are_those_of_snes() {
        let u = utilities(4);
        // ln 3 − ln 1 and ln 3 − ln 2, the rest 0; by hand.
        let (a, b) = (3.0_f64.ln(), 1.5_f64.ln());
        let expect = [a / (a + b) - 0.25, b / (a + b) - 0.25, -0.25, -0.25];
        assert!(u.iter().zip(expect).all(|(u, e)| (u - e).abs() < 1e-15), "{u:?} {expect:?}");
        for population in [2, 3, 32, 257] {
            assert!(utilities(population).iter().sum::<f64>().abs() < 1e-12);
        }
    }

    #[test]
    fn asking_twice_gives_the_same_and_telling_gives_another() {
        let mut es = RankEs::new(RankEsConfig::default(), &[0.0; 50], Seed::root(2)).expect("fine");
        let first = es.ask().clone();
        assert_eq!(first, *es.ask());
        es.tell(&[0.0; 32]).expect("finite");
        assert_ne!(first, *es.ask());
    }

    #[test]
    fn equal_fitness_means_equal_say() {
        // All alike: the utilities sum to zero, the mean stays (up to rounding of the sum).
        let mut es = RankEs::new(RankEsConfig::default(), &[0.5; 50], Seed::root(2)).expect("fine");
        es.ask();
        es.tell(&[3.0; 32]).expect("finite");
        assert!(es.mean().iter().all(|x| (x - 0.5).abs() < 1e-6), "{:?}", es.mean());

        // Two share the win, the others share the rest: the step by hand. 0.0 and -0.0 are equal.
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
    fn ranks_alone_matter() {
        let run = |f: fn(f64) -> f64| {
            let mut es = RankEs::new(RankEsConfig::default(), &[0.1; 30], Seed::root(5)).expect("fine");
            for _ in 0..5 {
                let returns: Vec<f64> = fitness(&mut es, sphere).into_iter().map(f).collect();
                es.tell(&returns).expect("finite");
            }
            es.centre().to_vec()
        };
        assert_eq!(run(|x| x), run(|x| 900.0 + 3.0 * x), "scale and offset");
        assert_eq!(run(|x| x), run(f64::exp), "any increasing function");
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
    fn a_refused_tell_changes_nothing() {
        let mut es = RankEs::new(RankEsConfig::default(), &[0.0; 10], Seed::root(1)).expect("fine");
        assert_eq!(es.tell(&[0.0; 32]), Err(EvolveError::NothingAsked));
        let before = es.state();
        let asked = es.ask().clone();
        let mut with_nan = [1.0; 32];
        with_nan[30] = f64::NAN;
        let mut with_infinity = [1.0; 32];
        with_infinity[0] = f64::NEG_INFINITY;
        for wrong in [&[0.0; 31][..], &[0.0; 33], &[], &with_nan, &with_infinity] {
            let error = es.tell(wrong).expect_err("must be refused");
            match error {
                EvolveError::FitnessCount { wanted: 32, given } => assert_eq!(given, wrong.len()),
                EvolveError::FitnessNotFinite { genome, .. } => assert!(!wrong[genome].is_finite()),
                other => panic!("{other}"),
            }
            assert_eq!(es.state(), before);
            assert_eq!(*es.ask(), asked);
        }
    }

    #[test]
    fn a_restored_strategy_goes_on_bit_for_bit() {
        let new = || {
            let config = config(|c| (c.averaging, c.weight_decay) = (0.9, 0.002));
            RankEs::new(config, &[1.0; 25], Seed::root(6)).expect("fine")
        };
        let mut straight = new();
        for stop in 0..12 {
            let mut other = new();
            // A stale population must not survive the restore.
            other.ask();
            other.restore(&straight.state()).expect("its own state");
            for _ in 0..3 {
                let returns = fitness(&mut other, sphere);
                other.tell(&returns).expect("finite");
            }
            let mut on = straight.clone();
            for _ in 0..3 {
                let returns = fitness(&mut on, sphere);
                on.tell(&returns).expect("finite");
            }
            assert_eq!(on.state(), other.state(), "stopped at {stop}");
            let returns = fitness(&mut straight, sphere);
            straight.tell(&returns).expect("finite");
        }
    }

    #[test]
    fn a_broken_state_is_refused_and_changes_nothing() {
        let mut es = RankEs::new(RankEsConfig::default(), &[0.5; 8], Seed::root(1)).expect("fine");
        let good = es.state();
        let broken = |name: &str, tensor: Option<Tensor>| {
            let mut state = good.clone();
            state.remove(name);
            if let Some(tensor) = tensor {
                state.insert(name.into(), tensor);
            }
            state
        };
        let cases = [
            (broken("mean", None), "mean is missing"),
            (broken("average", None), "average is missing"),
            (broken("mean", Some(Tensor::F64(vec![0.0; 7]))), "mean has 7 numbers, 8 are due"),
            (broken("mean", Some(Tensor::F32(vec![0.0; 8]))), "mean is not of double precision"),
            (broken("mean", Some(Tensor::F64(vec![f64::NAN; 8]))), "mean holds NaN"),
            (broken("generation", Some(Tensor::U64(vec![]))), "generation is not one integer"),
            (broken("seed", Some(Tensor::U64(vec![4]))), "it was made with another seed"),
            (broken("settings", Some(Tensor::F64(vec![1.0; 6]))), "it was made with the settings"),
        ];
        for (state, why) in cases {
            let error = es.restore(&state).expect_err(why).to_string();
            assert!(error.contains(why), "{error} / {why}");
            assert_eq!(es.state(), good);
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        type Change = fn(&mut RankEsConfig);
        let cases: [(Change, &str); 8] = [
            (|c| c.population = 1, "population = 1; rank weights need at least 2"),
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
