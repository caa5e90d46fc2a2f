//! Feature maps φ of the kernels, with 𝒦(u, v) = E[φ(u)·φ(v)].

/// A map from a query or a key z of `dim` numbers to features, for [`KernelVotes`](super::KernelVotes).
///
/// Random maps are built from directions ω, `[m, dim]` row-major, that the caller has drawn; expectations are
/// over ω with standard normal rows. Formulas and their errors: Choromanski et al. 2021, "Unlocking Pixels
/// for Reinforcement Learning via Implicit Attention", with the maps of Rethinking Attention with Performers
/// (2020) and Hybrid Random Features (2021).
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureMap {
    pub(super) dim: usize,
    pub(super) base: Base,
    /// `[m, dim]`, empty if nothing is projected.
    pub(super) omega: Vec<f32>,
    /// `[n, dim]`, empty except for the hybrid map.
    pub(super) planes: Vec<f32>,
    /// If set, every query and key is first scaled to this length.
    pub(super) same_length: Option<f32>,
}

/// The function applied to the projections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Base {
    Elementwise(Elementwise),
    /// Cosines and sines, or exponentials, or both.
    Random {
        trigonometric: bool,
        positive: Option<Positive>,
    },
}

/// An elementwise function, for maps that define their own kernel: they do not estimate another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Elementwise {
    /// max(u, 0) + epsilon.
    Relu {
        /// Keeps features positive; 0.001 in the Performers' code.
        epsilon: f32,
    },
    /// e^u.
    Exp,
    /// u + 1 above 0, e^u below.
    Elu1,
}

/// The two maps with positive features for exp(x·y).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positive {
    /// FAVOR+: e^(ω·z), m features.
    Plain,
    /// FAVOR++ ("hyperbolic"): e^(ω·z) and e^(−ω·z), 2 m features, less variance.
    Hyperbolic,
}

/// Largest length of a direction, so that sine and cosine can resolve the angles ω·z.
const LONGEST: f32 = 1e4;

impl FeatureMap {
    /// φ(z) = f(z) elementwise, or f(ω z) / √m after a projection.
    ///
    /// # Panics
    /// When `dim` is 0, epsilon is negative or not finite, or the projection is not `[m, dim]` with m above 0
    /// and row lengths of at most 10^4.
    pub fn elementwise(dim: usize, f: Elementwise, projection: Option<&[f32]>) -> Self {
        if let Elementwise::Relu { epsilon } = f {
            assert!((0.0..=1e15).contains(&epsilon), "epsilon {epsilon}");
        }
        FeatureMap::new(dim, Base::Elementwise(f), projection)
    }

    /// φ(z) = e^(|z|²/2) / √m · (cos ω·z, sin ω·z): estimates exp(x·y) without bias, exactly where x = y.
    ///
    /// # Panics
    /// When `omega` is not `[m, dim]` with m and `dim` above 0 and row lengths of at most 10^4.
    pub fn trigonometric(dim: usize, omega: &[f32]) -> Self {
        FeatureMap::new(dim, Base::Random { trigonometric: true, positive: None }, Some(omega))
    }

    /// φ(z) = e^(−|z|²/2) / √m · e^(ω·z), or its hyperbolic variant: estimates exp(x·y) without bias, exactly
    /// where x = −y.
    ///
    /// # Panics
    /// When `omega` is not `[m, dim]` with m and `dim` above 0 and row lengths of at most 10^4.
    pub fn positive(dim: usize, omega: &[f32], kind: Positive) -> Self {
        FeatureMap::new(dim, Base::Random { trigonometric: false, positive: Some(kind) }, Some(omega))
    }

    /// (1 − λ) times the trigonometric estimate plus λ times the positive one. λ is the fraction of the
    /// hyperplanes with normals `planes`, `[n, dim]`, that separate x from y: in expectation their angle
    /// divided by π.
    ///
    /// # Panics
    /// When `omega` or `planes` is not `[m, dim]` with m and `dim` above 0 and row lengths of at most 10^4.
    pub fn hybrid(dim: usize, omega: &[f32], kind: Positive, planes: &[f32]) -> Self {
        let base = Base::Random { trigonometric: true, positive: Some(kind) };
        FeatureMap { planes: matrix(dim, planes), ..FeatureMap::new(dim, base, Some(omega)) }
    }

    /// The same map, with queries and keys scaled to length `tau`; zero vectors stay zero.
    ///
    /// # Panics
    /// When `tau` is not in 0 ..= 1000.
    #[must_use]
    pub fn with_same_length(self, tau: f32) -> Self {
        assert!((0.0..=1e3).contains(&tau), "length {tau}");
        FeatureMap { same_length: Some(tau), ..self }
    }

    /// Length of a query and of a key, in numbers.
    pub const fn dim(&self) -> usize {
        self.dim
    }

    /// Number of features M of a query or a key.
    pub fn features(&self) -> usize {
        self.base_features() * if self.planes.is_empty() { 1 } else { 1 + self.hyperplanes() }
    }

    fn new(dim: usize, base: Base, omega: Option<&[f32]>) -> Self {
        assert!(dim > 0, "queries need a length of at least 1");
        let omega = omega.map_or_else(Vec::new, |omega| matrix(dim, omega));
        FeatureMap { dim, base, omega, planes: Vec::new(), same_length: None }
    }

    /// Number of projections, or of elements if nothing is projected.
    pub(super) fn projections(&self) -> usize {
        if self.omega.is_empty() { self.dim } else { self.omega.len() / self.dim }
    }

    /// Number of features before they are multiplied by the signs of the hyperplanes.
    pub(super) fn base_features(&self) -> usize {
        let per_projection = match self.base {
            Base::Elementwise(_) => 1,
            Base::Random { trigonometric, positive } => {
                2 * usize::from(trigonometric)
                    + match positive {
                        None => 0,
                        Some(Positive::Plain) => 1,
                        Some(Positive::Hyperbolic) => 2,
                    }
            }
        };
        self.projections() * per_projection
    }

    pub(super) fn hyperplanes(&self) -> usize {
        self.planes.len() / self.dim
    }

    /// Returns whether features are exponentials that might overflow.
    pub(super) fn exponential(&self) -> bool {
        matches!(self.base, Base::Elementwise(Elementwise::Exp) | Base::Random { .. })
    }

    /// An upper bound on the length of a direction.
    pub(super) fn longest(&self) -> f32 {
        let longest = self.omega.chunks_exact(self.dim).map(length).fold(0.0, f32::max);
        if self.omega.is_empty() { 1.0 } else { longest }
    }
}

fn length(row: &[f32]) -> f32 {
    row.iter().map(|x| x * x).sum::<f32>().sqrt()
}

fn matrix(dim: usize, rows: &[f32]) -> Vec<f32> {
    assert!(!rows.is_empty() && rows.len().is_multiple_of(dim), "{} numbers in rows of {dim}", rows.len());
    for row in rows.chunks_exact(dim) {
        assert!(length(row) <= LONGEST, "a direction of length {}, up to {LONGEST} is possible", length(row));
    }
    rows.to_vec()
}
