//! Kernels in double precision, directly from their formulas: slow, without factoring.

use foveate_kernels::kernel_vote::{FeatureMap, KernelVotes, VoteError};
use foveate_kernels::{Embedded, Level};

/// Rows of a query and a key.
pub(crate) type Rows = Vec<(Vec<f32>, Vec<f32>)>;

/// A kernel under test, with all data from which its map was made.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) kernel: Kernel,
    pub(crate) dim: usize,
    /// `[m, dim]`
    pub(crate) omega: Vec<f32>,
    /// `[n, dim]`
    pub(crate) planes: Vec<f32>,
    pub(crate) same_length: Option<f32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kernel {
    Relu(f32),
    Exp,
    Elu1,
    Trigonometric,
    Positive,
    Hyperbolic,
    Hybrid,
    HybridHyperbolic,
}

impl Kernel {
    pub(crate) const ALL: [Kernel; 8] = [
        Kernel::Relu(0.001),
        Kernel::Exp,
        Kernel::Elu1,
        Kernel::Trigonometric,
        Kernel::Positive,
        Kernel::Hyperbolic,
        Kernel::Hybrid,
        Kernel::HybridHyperbolic,
    ];

    pub(crate) fn is_random(self) -> bool {
        !matches!(self, Kernel::Relu(_) | Kernel::Exp | Kernel::Elu1)
    }
}

impl Case {
    pub(crate) fn map(&self) -> FeatureMap {
        use foveate_kernels::kernel_vote::{Elementwise, Positive};
        let (dim, omega, planes) = (self.dim, &self.omega, &self.planes);
        let elementwise =
            |f| FeatureMap::elementwise(dim, f, (!omega.is_empty()).then_some(omega.as_slice()));
        let map = match self.kernel {
            Kernel::Relu(epsilon) => elementwise(Elementwise::Relu { epsilon }),
            Kernel::Exp => elementwise(Elementwise::Exp),
            Kernel::Elu1 => elementwise(Elementwise::Elu1),
            Kernel::Trigonometric => FeatureMap::trigonometric(dim, omega),
            Kernel::Positive => FeatureMap::positive(dim, omega, Positive::Plain),
            Kernel::Hyperbolic => FeatureMap::positive(dim, omega, Positive::Hyperbolic),
            Kernel::Hybrid => FeatureMap::hybrid(dim, omega, Positive::Plain, planes),
            Kernel::HybridHyperbolic => FeatureMap::hybrid(dim, omega, Positive::Hyperbolic, planes),
        };
        if let Some(tau) = self.same_length { map.with_same_length(tau) } else { map }
    }

    /// Scales a vector to the fixed length, if the kernel has one.
    pub(crate) fn scaled(&self, z: &[f32]) -> Vec<f64> {
        let z: Vec<f64> = z.iter().map(|&x| f64::from(x)).collect();
        let norm = dot(&z, &z).sqrt();
        match self.same_length {
            Some(tau) if norm > 0.0 => z.iter().map(|x| f64::from(tau) * x / norm).collect(),
            _ => z,
        }
    }

    /// Features of a query (`+1`) or a key (`−1`, the sign of the last quarter of the hybrid map).
    pub(crate) fn features(&self, z: &[f32], sign: f64) -> Vec<f64> {
        let sides: Vec<f64> = self.planes.chunks_exact(self.dim).map(|row| side(row, z)).collect();
        let z = self.scaled(z);
        let m = self.omega.len() / self.dim;
        let mut u: Vec<f64> = self
            .omega
            .chunks_exact(self.dim)
            .map(|row| row.iter().zip(&z).map(|(&w, &x)| f64::from(w) * x).sum())
            .collect();
        let random = self.kernel.is_random();
        let root = if self.omega.is_empty() { 1.0 } else { (m as f64).sqrt() };
        if self.omega.is_empty() && !random {
            u.clone_from(&z);
        }
        let half = dot(&z, &z) / 2.0;
        let each = |f: &dyn Fn(f64) -> f64| -> Vec<f64> { u.iter().map(|&u| f(u) / root).collect() };
        let waves = || [each(&|u| half.exp() * u.cos()), each(&|u| half.exp() * u.sin())].concat();
        let plain = || each(&|u| (u - half).exp());
        let hyperbolic = || {
            let both = [each(&|u| (u - half).exp()), each(&|u| (-u - half).exp())].concat();
            both.into_iter().map(|x| x / 2_f64.sqrt()).collect::<Vec<f64>>()
        };
        let hybrid = |waves: Vec<f64>, powers: Vec<f64>| {
            let n = sides.len() as f64;
            let mut all: Vec<f64> = waves.iter().chain(&powers).map(|x| x / 2_f64.sqrt()).collect();
            for side in &sides {
                all.extend(waves.iter().map(|x| x * side / (2.0 * n).sqrt()));
                all.extend(powers.iter().map(|x| sign * x * side / (2.0 * n).sqrt()));
            }
            all
        };
        match self.kernel {
            Kernel::Relu(epsilon) => each(&|u| u.max(0.0) + f64::from(epsilon)),
            Kernel::Exp => each(&f64::exp),
            Kernel::Elu1 => each(&|u| if u > 0.0 { u + 1.0 } else { u.exp() }),
            Kernel::Trigonometric => waves(),
            Kernel::Positive => plain(),
            Kernel::Hyperbolic => hyperbolic(),
            Kernel::Hybrid => hybrid(waves(), plain()),
            Kernel::HybridHyperbolic => hybrid(waves(), hyperbolic()),
        }
    }
}

/// The side of a hyperplane on which z is, in single precision: double precision could disagree within
/// rounding.
fn side(row: &[f32], z: &[f32]) -> f64 {
    if row.iter().zip(z).fold(0.0, |sum, (&w, &x)| x.mul_add(w, sum)) < 0.0 { -1.0 } else { 1.0 }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn embed(rows: &Rows) -> Embedded {
    let mut embedded = Embedded::new(rows.len(), rows[0].0.len());
    for (patch, (query, key)) in rows.iter().enumerate() {
        embedded.set(patch, query, key);
    }
    embedded
}

/// The votes, which must be bit-identical on all levels.
#[track_caller]
pub(crate) fn compute(
    votes: &mut KernelVotes,
    rows: &Rows,
    c: Option<&[f32]>,
) -> Result<Vec<f32>, VoteError> {
    on_all_levels(rows, |level, embedded, importance| votes.compute(level, embedded, c, importance))
}

/// Calls `compute` twice on every level, with the same scratch space: all results must be bit-identical.
#[track_caller]
pub(crate) fn on_all_levels(
    rows: &Rows,
    mut compute: impl FnMut(Level, &Embedded, &mut [f32]) -> Result<(), VoteError>,
) -> Result<Vec<f32>, VoteError> {
    let embedded = embed(rows);
    let mut portable = vec![f32::NAN; rows.len()];
    let outcome = compute(Level::PORTABLE, &embedded, &mut portable);
    for level in Level::available().chain(Level::available()) {
        let mut importance = vec![f32::NAN; rows.len()];
        let here = compute(level, &embedded, &mut importance);
        // Compared as text, because NaN does not equal itself.
        assert_eq!(format!("{here:?}"), format!("{outcome:?}"), "{level}");
        if outcome.is_ok() {
            for (i, (a, b)) in importance.iter().zip(&portable).enumerate() {
                assert_eq!(a.to_bits(), b.to_bits(), "{level}: importance[{i}] is {a}, portable {b}");
            }
        }
    }
    outcome.map(|()| portable)
}

/// A stream of numbers in −1 ..= 1.
pub(crate) fn numbers(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    })
}
