//! CMA-ES: an evolution strategy that adapts the full covariance matrix and the step size.
//!
//! Hansen and Ostermeier, "Completely Derandomized Self-Adaptation in Evolution Strategies" (2001); Hansen,
//! "The CMA Evolution Strategy: A Tutorial" (arXiv:1604.00772); the active update is that of Jastrebski and
//! Arnold (2006). Behaviour and constants are those of pycma 4.5: given the same normal numbers, means, step
//! sizes, paths and matrices agree with pycma's (`tests/suite/oracle_cma.rs`).
//!
//! ```text
//! y_i = A z_i,  x_i = m + σ s∘y_i                          z_i ~ N(0, I);  A Aᵀ = C
//! m  ← m + σ s∘Σ⁺ w_r y_r                                   weights by rank, the better half
//! p_σ ← (1 − c_σ) p_σ + √(c_σ (2 − c_σ) μ_eff) Σ⁺ w_r z_r      A⁻¹ of the step of the mean
//! p_c ← (1 − c_c) p_c + h √(c_c (2 − c_c) μ_eff) Σ⁺ w_r y_r    h: 0 while p_σ is long, else 1
//! C  ← (1 − c_1' − c_μ Σ w) C + c_1 p_c p_cᵀ + c_μ Σ w_r° y_r y_rᵀ    w_r° = w_r n / ‖z_r‖² for the worse half
//! σ  ← σ exp(c_σ / d (‖p_σ‖ / E‖N(0, I)‖ − 1))
//! ```
//!
//! `s` is 1 until the variances of C differ by a factor of 10⁸: then C becomes a correlation matrix and `s`
//! takes the scales (as pycma's `conditioncov_alleviate`; only [`Form::Eigen`] needs it). When σ has grown by
//! 10⁹, the factor moves into `s` as well.
//!
//! # Two roots of one matrix
//!
//! [`Form::Eigen`] uses the symmetric root `B D Bᵀ` for A. pycma samples `B D z`, which has the same
//! distribution; the symmetric root does not depend on the signs and the order of an eigensolver's vectors.
//! [`Form::Cholesky`] uses the Cholesky factor: again the same distribution, and twenty times cheaper for
//! thousands of parameters. Its `p_σ` has other coordinates, so single runs differ from pycma's while their
//! statistics agree. Both factorise lazily, every `1 / (10 n (c_1 + c_μ))` generations, as pycma does.
//!
//! # Differences from pycma
//!
//! * Above 300 dimensions pycma by default adapts σ by comparing two points on a line (TPA); this
//!   implementation always uses the path (pycma's `AdaptSigma: CMAAdaptSigmaCSA`).
//! * Populations below 6 have no mirrored genomes (pycma's `CMA_mirrors: 0`).
//! * A condition number above 10¹² does not change the coordinates; at 10¹⁴, where pycma would stop, the
//!   diagonal is increased to limit it.
//! * When σ has grown by 10⁹, the scales take the factor and nothing else changes; pycma's `p_c` keeps its
//!   old units there.
//! * There are no termination criteria: the caller decides when to stop. A search that has converged, or whose
//!   fitness does not differ, goes on within the range of its numbers: the standard deviation of the widest
//!   direction stays above 10⁻⁶⁰.
//!
//! # Size of the state
//!
//! The lower triangle of C, `4 n (n + 1)` bytes (54 MB at n = 3,667), and the vectors added since the last
//! factorisation: none in generations that factorise, otherwise up to about 0.2 n² numbers (15 MB at this n
//! with 256 genomes). The factor is not saved but recomputed from the same bits; its bits may differ between
//! processors with different instructions, so a bit-identical run must resume on the same kind of processor.

mod covariance;
#[cfg(feature = "eigen")]
mod eigen;
mod matrix;
mod step_size;
mod weights;

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{Base, answered_by_base, bad};
use crate::check;
use covariance::Covariance;
use matrix::Matrix;
pub(crate) use step_size::StepSize;
pub(crate) use weights::{Rates, Weights};

/// A larger ratio of the variances of C moves them into the scales.
const SCALE_CONDITION: f64 = 1e8; // pycma's conditioncov_alleviate

/// Growth of σ at which it moves into the scales.
const MOST_GROWTH: f64 = 1e9; // pycma's _redistribute_sigma_above

/// Shrinkage of σ at which it moves into the scales: only while they grow as much.
const MOST_SHRINKAGE: f64 = 1e-100;

/// The range of the largest variance of C; outside of it C is scaled, so that no number of it underflows in
/// a search without differences in fitness, whose variances drift.
const VARIANCES: std::ops::RangeInclusive<f64> = 1e-40..=1e40;

/// The smallest standard deviation of the widest direction: far below what single precision can tell apart.
pub(crate) const NARROWEST: f64 = 1e-60;

/// The root of the covariance matrix used for sampling; see the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The symmetric root, from an eigendecomposition: agrees with pycma up to rounding. Needs the Cargo
    /// feature `eigen`.
    Eigen,
    /// The Cholesky factor: the same distribution, much faster in thousands of dimensions.
    #[default]
    Cholesky,
}

impl Form {
    /// The forms in this build, the default first: `eigen` requires the Cargo feature of that name.
    pub const BUILT: &[Form] =
        if cfg!(feature = "eigen") { &[Form::Cholesky, Form::Eigen] } else { &[Form::Cholesky] };

    /// Checks that this build includes the form.
    ///
    /// # Errors
    /// When it does not; the message says how to include it.
    pub fn check(self) -> Result<(), EvolveError> {
        if Form::BUILT.contains(&self) { Ok(()) } else { Err(not_built()) }
    }
}

/// The error for [`Form::Eigen`] when it is not in [`Form::BUILT`].
fn not_built() -> EvolveError {
    let why = "form = \"eigen\" of cma-es is not in this build; build it with the Cargo feature `eigen`, or choose form = \
               \"cholesky\", which samples the same distribution";
    EvolveError::BadConfig { why: why.into() }
}

/// Settings of a [`CmaEs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CmaEsConfig {
    /// λ: genomes per generation, at least 2; by default `4 + 3 ln n` for n parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<usize>,
    /// Initial σ: standard deviation of every parameter around the mean, above 0.
    pub sigma: f64,
    /// Also learn from bad genomes, with negative weights.
    pub active: bool,
    /// The root of the covariance matrix.
    pub form: Form,
}

impl Default for CmaEsConfig {
    fn default() -> Self {
        CmaEsConfig { population: None, sigma: 0.1, active: true, form: Form::default() }
    }
}

impl CmaEsConfig {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range; also when this build does not
    /// include the form.
    pub fn check(&self) -> Result<(), EvolveError> {
        self.form.check()?;
        check_settings(self.population, self.sigma)
    }

    /// λ for genomes of `params` parameters.
    pub fn population(&self, params: usize) -> usize {
        self.population.unwrap_or_else(|| default_population(params))
    }
}

/// `4 + 3 ln n`.
pub(crate) fn default_population(params: usize) -> usize {
    4 + (3.0 * (params.max(1) as f64).ln()) as usize
}

/// Checks the settings that both kinds of CMA-ES share.
pub(crate) fn check_settings(population: Option<usize>, sigma: f64) -> Result<(), EvolveError> {
    check::population(population.unwrap_or(4), false)?;
    check::above_zero(&[("sigma", sigma)])
}

/// Indices of genomes, best first; equal ones stay in the order of the population.
pub(crate) fn rank(fitness: &[f64], order: &mut Vec<usize>) {
    order.clear();
    order.extend(0..fitness.len());
    // All values are finite; 0.0 and -0.0 are equal.
    order.sort_by(|&a, &b| fitness[b].partial_cmp(&fitness[a]).unwrap_or(std::cmp::Ordering::Equal));
}

/// The CMA-ES strategy; see the [module](self) for the algorithm.
///
/// ```
/// use foveate_core::{Evolver, Seed};
/// use foveate_evolve::{CmaEs, CmaEsConfig};
///
/// let mut es = CmaEs::from_mean(CmaEsConfig { sigma: 0.5, ..CmaEsConfig::default() }, vec![1.0; 10], Seed::root(1))?;
/// for _ in 0..200 {
///     let population = es.ask();
///     let fitness: Vec<f64> = (0..population.len())
///         .map(|i| -population.genome(i).iter().map(|x| f64::from(*x).powi(2)).sum::<f64>())
///         .collect();
///     es.tell(&fitness)?;
/// }
/// assert!(es.centre().iter().all(|x| x.abs() < 1e-4));
/// # Ok::<(), foveate_core::EvolveError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CmaEs {
    config: CmaEsConfig,
    base: Base,
    weights: Weights,
    rates: Rates,
    step_size: StepSize,
    /// Generations between two factorisations.
    gap: f64,

    /// σ.
    sigma: f64,
    /// `[n_params]`: s.
    scale: Vec<f64>,
    /// `[n_params]`: `p_σ`.
    path_sigma: Vec<f64>,
    /// `[n_params]`: `p_c`.
    path_c: Vec<f64>,
    covariance: Covariance,
    /// The generation of the last factorisation of C.
    factored_at: u64,

    /// `[n_params, λ]`: a genome's normal numbers in each column, and its step `y`.
    normals: Matrix,
    steps: Matrix,
    /// Scratch: `[n_params]`.
    step_y: Vec<f64>,
    step_z: Vec<f64>,
    next_mean: Vec<f64>,
    next_path: Vec<f64>,
    variances: Vec<f64>,
    /// Scratch: genome indices.
    order: Vec<usize>,
}

impl CmaEs {
    /// Starts around `mean`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `mean` is empty or not finite.
    pub fn from_mean(config: CmaEsConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        let n = mean.len();
        let lambda = config.population(n);
        let base = Base::new(mean, lambda, seed)?;
        let mut weights = Weights::new(lambda);
        let rates = Rates::full(n, lambda, weights.mueff());
        if config.active {
            weights.finalise_negative(n, rates.c1, rates.cmu, true);
        } else {
            weights.drop_negative();
        }
        Ok(CmaEs {
            step_size: StepSize::new(n, weights.mueff()),
            gap: 1.0 / (rates.c1 + rates.cmu + 1e-23) / n as f64 / 10.0,
            weights,
            rates,
            sigma: config.sigma,
            scale: vec![1.0; n],
            path_sigma: vec![0.0; n],
            path_c: vec![0.0; n],
            covariance: Covariance::new(config.form, n)?,
            factored_at: 0,
            normals: Matrix::zeros(n, lambda),
            steps: Matrix::zeros(n, lambda),
            step_y: vec![0.0; n],
            step_z: vec![0.0; n],
            next_mean: vec![0.0; n],
            next_path: vec![0.0; n],
            variances: Vec::with_capacity(n),
            order: Vec::with_capacity(lambda),
            config,
            base,
        })
    }

    /// The settings.
    pub const fn config(&self) -> &CmaEsConfig {
        &self.config
    }

    /// σ.
    pub const fn sigma(&self) -> f64 {
        self.sigma
    }

    /// `[n_params]`: the evolution path of σ.
    pub fn path_sigma(&self) -> &[f64] {
        &self.path_sigma
    }

    /// `[n_params]`: the evolution path of the rank-one update.
    pub fn path_c(&self) -> &[f64] {
        &self.path_c
    }

    /// `[n_params]`: the scale of every step, per parameter; see the [module](self).
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// Generations between two factorisations of C.
    pub fn interval(&self) -> u64 {
        (self.gap.ceil() as u64).max(1)
    }

    /// `[n_params, n_params]`, row-major: the current C with all updates. A copy, for inspection.
    pub fn covariance(&self) -> Vec<f64> {
        self.covariance.to_rows()
    }

    /// As [`Evolver::ask`], with the normal numbers `normals`, `[n_genomes, n_params]`, row-major, instead of
    /// random ones, to compare with another implementation. They are not saved: a restored strategy draws its
    /// own.
    ///
    /// # Errors
    /// When the count is wrong or a number is not finite.
    pub fn ask_with(&mut self, normals: &[f64]) -> Result<&Population, EvolveError> {
        let (n, wanted) = (self.scale.len(), self.scale.len() * self.normals.cols());
        check_normals(normals, wanted)?;
        for (i, genome) in normals.chunks_exact(n).enumerate() {
            self.normals.col_mut(i).copy_from_slice(genome);
        }
        self.base.must_sample();
        self.sample();
        Ok(self.base.population())
    }

    /// Computes genomes from the normal numbers.
    fn sample(&mut self) {
        self.covariance.colour(&self.normals, &mut self.steps);
        self.base.place(|i, j| self.sigma * self.scale[j] * self.steps[(j, i)]);
    }

    /// Factorises the covariance matrix when that is due. Not in `ask`, which leaves the state unchanged.
    fn refresh(&mut self) {
        if self.config.form == Form::Eigen {
            self.covariance.variances(&mut self.variances);
            let (low, high) =
                self.variances.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &v| (l.min(v), h.max(v)));
            if high >= SCALE_CONDITION * low && low > 0.0 {
                self.variances.iter_mut().for_each(|variance| *variance = variance.sqrt());
                self.rescale();
            }
        }
        if self.base.generation() as f64 >= self.factored_at as f64 + self.gap {
            self.covariance.refactor();
            self.factored_at = self.base.generation();
            self.covariance.variances(&mut self.variances);
            let largest = self.variances.iter().copied().fold(0.0, f64::max);
            if largest > 0.0 && !VARIANCES.contains(&largest) {
                self.variances.fill(largest.sqrt());
                self.rescale();
            }
        }
    }

    /// Moves the factors in `variances`, one per parameter, from C into the scales.
    fn rescale(&mut self) {
        let factors = &self.variances;
        for ((factor, s), p) in factors.iter().zip(&mut self.scale).zip(&mut self.path_c) {
            *s *= *factor;
            *p /= *factor;
        }
        self.covariance.rescale(factors);
        self.factored_at = self.base.generation();
    }

    /// Recomputes the steps of repaired genomes from their current position; the others keep theirs in double
    /// precision.
    ///
    /// The step of a repaired genome is limited to a plausible length, `√n + 2 n / (n + 2)`, as pycma does
    /// for injected points.
    fn take_repairs(&mut self) {
        let (n, mean, population) = (self.scale.len(), self.base.mean(), self.base.population());
        let repaired = &mut self.order;
        repaired.clear();
        for i in 0..population.len() {
            let genome = population.genome(i);
            let length = |j: usize| self.sigma * self.scale[j];
            if (0..n).all(|j| genome[j] == (mean[j] + length(j) * self.steps[(j, i)]) as f32) {
                continue;
            }
            for j in 0..n {
                self.steps[(j, i)] = (f64::from(genome[j]) - mean[j]) / length(j);
            }
            repaired.push(i);
        }
        if repaired.is_empty() {
            return;
        }
        let mut normals = Matrix::zeros(n, 0);
        for &i in repaired.iter() {
            normals.push(1.0, self.steps.col(i));
        }
        self.covariance.whiten(&mut normals);
        let longest = (n as f64).sqrt() + 2.0 * n as f64 / (n as f64 + 2.0);
        for (k, &i) in repaired.iter().enumerate() {
            let normals = normals.col(k);
            let shrink = (longest / length(normals)).min(1.0);
            for (j, z) in normals.iter().enumerate() {
                self.normals[(j, i)] = shrink * z;
                self.steps[(j, i)] *= shrink;
            }
        }
    }

    /// The step of the mean: `Σ⁺ w_r y_r` and `Σ⁺ w_r z_r`, for genomes in `order`, best first.
    fn recombine(&mut self) {
        self.step_y.fill(0.0);
        self.step_z.fill(0.0);
        for (w, &i) in self.weights.positive().iter().zip(&self.order) {
            for (sum, matrix) in [(&mut self.step_y, &self.steps), (&mut self.step_z, &self.normals)] {
                for (s, x) in sum.iter_mut().zip(matrix.col(i)) {
                    *s += w * x;
                }
            }
        }
    }

    /// Computes the next mean, `p_σ` and σ from the ranking in `order`; an error if they are out of range.
    fn look_ahead(&mut self) -> Result<f64, EvolveError> {
        self.recombine();
        self.next_path.copy_from_slice(&self.path_sigma);
        self.step_size.advance(&mut self.next_path, &self.step_z);
        let mut sigma = self.sigma * self.step_size.change(&self.next_path);
        if sigma * self.scale.iter().copied().fold(0.0, f64::max) < NARROWEST / VARIANCES.start() {
            self.covariance.variances(&mut self.variances);
            let widths = self.variances.iter().zip(&self.scale).map(|(v, s)| s * v.sqrt());
            sigma = sigma.max(NARROWEST / widths.fold(0.0, f64::max));
        }
        for (j, next) in self.next_mean.iter_mut().enumerate() {
            *next = self.base.mean()[j] + self.sigma * self.scale[j] * self.step_y[j];
        }
        check_sigma(&self.base, sigma)?;
        check_sigma(&self.base, sigma * self.scale.iter().copied().fold(0.0, f64::max))?;
        self.base.check_range("the mean", &self.next_mean)?;
        Ok(sigma)
    }

    /// Updates C and its path with the ranking in `order`.
    fn learn(&mut self) {
        let Rates { cc, c1, cmu } = self.rates;
        let stalls = self.step_size.stalls(&self.next_path, self.base.generation() + 1);
        let gain = if stalls { 0.0 } else { (cc * (2.0 - cc) * self.weights.mueff()).sqrt() };
        for (p, y) in self.path_c.iter_mut().zip(&self.step_y) {
            *p = (1.0 - cc) * *p + gain * y;
        }
        // While the path stalls, the variance that it would have added is not removed either.
        let c1a = if stalls { c1 * (1.0 - cc * (2.0 - cc)) } else { c1 };
        let weights = self.weights.all();
        self.covariance.shrink((1.0 - c1a - cmu * weights.iter().sum::<f64>()).max(0.0));
        self.covariance.learn(c1, &self.path_c);
        for (&w, &i) in weights.iter().zip(&self.order) {
            let mut weight = cmu * w;
            if w < 0.0 {
                weight *= self.scale.len() as f64 / (length(self.normals.col(i)) + 1e-9).powi(2);
            }
            self.covariance.learn(weight, self.steps.col(i));
        }
    }

    /// The settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64> {
        vec![
            self.normals.cols() as f64,
            self.config.sigma,
            f64::from(u8::from(self.config.active)),
            f64::from(u8::from(self.config.form == Form::Cholesky)),
        ]
    }
}

/// Moves σ into the scales when it has grown or shrunk too much: on a function that keeps reducing the
/// variances, σ grows to compensate. Distribution and paths do not change.
pub(crate) fn balance(first: f64, sigma: &mut f64, scale: &mut [f64]) {
    if *sigma > MOST_GROWTH * first || *sigma < MOST_SHRINKAGE * first {
        let factor = *sigma / first;
        *sigma = first;
        for s in scale {
            *s *= factor;
        }
    }
}

/// Returns whether no fitness differs from another. Such a generation has no ranks: where the distribution drifts
/// out of range, it stands still instead.
pub(crate) fn is_flat(fitness: &[f64]) -> bool {
    fitness.iter().all(|f| *f == fitness[0])
}

/// Checks that σ is in range.
pub(crate) fn check_sigma(base: &Base, sigma: f64) -> Result<(), EvolveError> {
    base.check_range("sigma", &[if sigma >= f64::MIN_POSITIVE { sigma } else { f64::NAN }])
}

/// Checks that there are `wanted` normal numbers, all finite.
pub(crate) fn check_normals(normals: &[f64], wanted: usize) -> Result<(), EvolveError> {
    if normals.len() == wanted && normals.iter().all(|z| z.is_finite()) {
        return Ok(());
    }
    let why = format!("{} normal numbers were handed in, {wanted} finite ones are due", normals.len());
    Err(EvolveError::BadConfig { why })
}

fn length(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Evolver for CmaEs {
    answered_by_base!();

    fn ask(&mut self) -> &Population {
        if self.base.must_sample() {
            for i in 0..self.normals.cols() {
                let mut rng = self.base.genome_seed(i).rng();
                self.normals.col_mut(i).fill_with(|| rng.normal());
            }
            self.sample();
        }
        self.base.population()
    }

    /// Follows the contract of [`Evolver::tell`]; genomes that were not modified are used in double precision
    /// with their normal numbers, and only repaired ones need a linear solve with the factor.
    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        self.base.check_fitness(fitness)?;
        self.take_repairs();
        rank(fitness, &mut self.order);
        let sigma = match self.look_ahead() {
            Err(_) if is_flat(fitness) => {
                self.next_mean.copy_from_slice(self.base.mean());
                self.sigma
            }
            sigma => {
                self.sigma = sigma?;
                self.learn();
                std::mem::swap(&mut self.path_sigma, &mut self.next_path);
                self.sigma
            }
        };
        self.covariance.variances(&mut self.variances);
        let spread = self.variances.iter().zip(&self.scale).map(|(v, s)| s * v.sqrt()).sum::<f64>();
        let sigma = sigma * spread / self.scale.len() as f64;
        let progress = self.base.told(fitness, sigma, |mean| mean.copy_from_slice(&self.next_mean));
        balance(self.config.sigma, &mut self.sigma, &mut self.scale);
        self.refresh();
        Ok(progress)
    }

    fn state(&self) -> StateDict {
        let (decay, grown, shrunk) = self.covariance.pending();
        let mut state = self.base.state(self.numbers());
        state.extend([
            ("sigma".into(), Tensor::from(vec![self.sigma])),
            ("scale".into(), Tensor::from(self.scale.clone())),
            ("path_sigma".into(), Tensor::from(self.path_sigma.clone())),
            ("path_c".into(), Tensor::from(self.path_c.clone())),
            ("covariance".into(), Tensor::from(self.covariance.triangle())),
            ("covariance_decay".into(), Tensor::from(vec![decay])),
            ("covariance_grown".into(), Tensor::from(grown)),
            ("covariance_shrunk".into(), Tensor::from(shrunk)),
            ("factored_at".into(), Tensor::from(vec![self.factored_at])),
        ]);
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let (saved, n) = (StateReader(state), self.scale.len());
        let base = self.base.saved(saved, &self.numbers())?;
        let factored_at = saved.counters("factored_at", 1)?[0];
        if factored_at > base.1 {
            return Err(bad(format!("factored_at = {factored_at} comes after generation = {}", base.1)));
        }
        let (sigma, scale) = (saved.sigmas("sigma", 1)?[0], saved.sigmas("scale", n)?);
        let (path_sigma, path_c) = (saved.f64s("path_sigma", n)?, saved.f64s("path_c", n)?);
        let decay = saved.f64s("covariance_decay", 1)?[0];
        if !(0.0..=1.0).contains(&decay) {
            return Err(bad(format!("covariance_decay = {decay} is not within 0 and 1")));
        }
        let triangle = saved.f64s("covariance", if factored_at == 0 { 0 } else { n * (n + 1) / 2 })?;
        let (grown, shrunk) = (saved.vectors("covariance_grown", n)?, saved.vectors("covariance_shrunk", n)?);
        self.covariance = Covariance::restored(self.config.form, n, triangle, decay, grown, shrunk)?;

        (self.sigma, self.factored_at) = (sigma, factored_at);
        self.scale.copy_from_slice(scale);
        self.path_sigma.copy_from_slice(path_sigma);
        self.path_c.copy_from_slice(path_c);
        self.base.restore(base);
        Ok(())
    }
}
