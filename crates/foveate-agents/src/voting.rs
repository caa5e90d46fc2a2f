//! Attention kernels: A of equation (1) of Choromanski et al. 2021, and the importance of patches.
//!
//! Every kernel gives one number per patch, from the queries and keys of all patches. `softmax` is
//! AttentionAgent's: every patch spreads one vote, importance is what a patch gets. All others are kernels κ without
//! any normalisation: the importance of patch i is Σⱼ cⱼ κ(qᵢ, kⱼ), its query's row. Nothing rescales a row by itself,
//! since that would change who is chosen.

use foveate_core::{PolicyError, Seed, Threads};
use foveate_kernels::kernel_vote::{self, FeatureMap, KernelVotes, PairVotes, Positive};
use foveate_kernels::near_vote::{self, NearVotes};
use foveate_kernels::project::Scales;
use foveate_kernels::vote::Votes;
use foveate_kernels::{Embedded, Level};
use serde::{Deserialize, Serialize};

use crate::config::{bad, within};
use crate::ensemble::{Ensemble, Lengths};

/// Most patches of any kernel.
pub use foveate_kernels::vote::MAX_PATCHES;

/// Most random features.
const MAX_FEATURES: usize = 4096;
/// Most hyperplanes.
const MAX_HYPERPLANES: usize = 256;
/// Longest common length of queries and keys: the exponential of its square is far from overflowing.
const MAX_LENGTH: f64 = 6.0;

/// Every kernel: its name in configurations, and a summary.
pub const KERNELS: [(&str, &str); 9] = [
    ("softmax", "softmax over each row, summed over columns, in quadratic time (attention-agent's default)"),
    ("softmax_kernel", "exp(q·k) without normalisation, in quadratic time"),
    ("relu", "max(q, 0)·max(k, 0) (iap's default)"),
    ("exp", "exp(q)·exp(k), number by number"),
    ("elu", "(ELU + 1)(q)·(ELU + 1)(k)"),
    ("trigonometric", "exp(q·k) estimated by random sines and cosines"),
    ("positive", "exp(q·k) estimated by random exponentials (FAVOR+)"),
    ("hyperbolic", "the same with every projection and its opposite (FAVOR++)"),
    ("hybrid", "exp(q·k) estimated by both, each where the angle says that it is better"),
];

/// An attention kernel with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kernel", rename_all = "snake_case")]
pub enum VotingConfig {
    /// Softmax over each row, summed over columns: AttentionAgent.
    Softmax(Softmax),
    /// κ(q, k) = exp(q·k), by brute force.
    SoftmaxKernel(Exponential),
    /// κ(q, k) = f(q)·f(k) with f = max(·, 0) + ε: IAP's deterministic features.
    Relu(Relu),
    /// The same with f = exp.
    Exp(Elementwise),
    /// The same with f = ELU + 1.
    Elu(Elementwise),
    /// exp(q·k) estimated by sines and cosines; exact where q = k.
    Trigonometric(Random),
    /// exp(q·k) estimated by exponentials (FAVOR+); exact where q = −k.
    Positive(Random),
    /// The same with every projection and its opposite (FAVOR++).
    Hyperbolic(Random),
    /// exp(q·k) estimated by both, each where it is better; equation (7).
    Hybrid(Hybrid),
}

impl Default for VotingConfig {
    fn default() -> Self {
        VotingConfig::Softmax(Softmax::default())
    }
}

/// The softmax of AttentionAgent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Softmax {
    /// Largest relative error of an importance; without it, votes are exact. It saves time when there are many patches: see
    /// [`foveate_kernels::near_vote`].
    pub relative_error: Option<f64>,
}

/// The un-normalised softmax kernel.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exponential {
    /// The length that every query and key is normalised to, equation (5); without it they are only divided by `scale`,
    /// equation (4).
    pub same_length: Option<f64>,
}

/// `ReLU` features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Relu {
    /// Added to every feature; with 0, patches without positive features get no votes and cannot be ordered.
    pub epsilon: f64,
    /// Number of random projections that the function is applied to, divided by the root of that number; 0 applies it to
    /// the query or key itself.
    pub features: usize,
    /// The distribution of the projections' directions.
    pub ensemble: Ensemble,
    /// The distribution of their lengths.
    pub lengths: Lengths,
    /// Their seed.
    pub seed: u64,
}

impl Default for Relu {
    fn default() -> Self {
        let Elementwise { features, ensemble, lengths, seed } = Elementwise::default();
        Relu { epsilon: 0.001, features, ensemble, lengths, seed }
    }
}

/// Features that are a function of each number.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Elementwise {
    /// Number of random projections that the function is applied to, divided by the root of that number; 0 applies it to
    /// the query or key itself.
    pub features: usize,
    /// The distribution of the projections' directions.
    pub ensemble: Ensemble,
    /// The distribution of their lengths.
    pub lengths: Lengths,
    /// Their seed.
    pub seed: u64,
}

/// Random features of the softmax kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Random {
    /// Random projections: m.
    pub features: usize,
    /// As [`Exponential::same_length`].
    pub same_length: Option<f64>,
    /// The distribution of the projections' directions.
    pub ensemble: Ensemble,
    /// The distribution of their lengths.
    pub lengths: Lengths,
    /// Their seed.
    pub seed: u64,
}

impl Default for Random {
    fn default() -> Self {
        Random {
            features: 16,
            same_length: None,
            ensemble: Ensemble::default(),
            lengths: Lengths::default(),
            seed: 0,
        }
    }
}

/// Hybrid random features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hybrid {
    /// Random projections: m.
    pub features: usize,
    /// Random hyperplanes that estimate the angle: n.
    pub hyperplanes: usize,
    /// True if its exponentials are FAVOR++'s instead of FAVOR+'s.
    pub hyperbolic: bool,
    /// As [`Exponential::same_length`].
    pub same_length: Option<f64>,
    /// How projections are drawn; hyperplanes are always independent.
    pub ensemble: Ensemble,
    /// The distribution of their lengths.
    pub lengths: Lengths,
    /// The seed of both.
    pub seed: u64,
}

impl Default for Hybrid {
    fn default() -> Self {
        Hybrid {
            features: 8,
            hyperplanes: 7,
            hyperbolic: false,
            same_length: None,
            ensemble: Ensemble::default(),
            lengths: Lengths::default(),
            seed: 0,
        }
    }
}

impl VotingConfig {
    /// Returns whether it is AttentionAgent's, which weight files do not mention.
    pub fn is_default(&self) -> bool {
        *self == VotingConfig::default()
    }

    /// Returns whether votes can have weights.
    pub const fn weighs_votes(&self) -> bool {
        !matches!(self, VotingConfig::Softmax(_))
    }

    /// Checks that it makes sense for queries of `dim` numbers.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(&self, dim: usize) -> Result<(), PolicyError> {
        let same_length = match self {
            VotingConfig::Softmax(Softmax { relative_error }) => {
                if let Some(error) = relative_error
                    && !near_vote::POSSIBLE.contains(error)
                {
                    let (least, most) = (near_vote::POSSIBLE.start(), near_vote::POSSIBLE.end());
                    return bad(format!(
                        "voting.relative_error is {error}; it must be from {least} to {most}, or left out for exact votes"
                    ));
                }
                None
            }
            VotingConfig::SoftmaxKernel(of) => of.same_length,
            VotingConfig::Relu(Relu { features, .. })
            | VotingConfig::Exp(Elementwise { features, .. })
            | VotingConfig::Elu(Elementwise { features, .. }) => {
                if *features > MAX_FEATURES {
                    return bad(format!(
                        "voting.features is {features}; it must be from 0 to {MAX_FEATURES}"
                    ));
                }
                if let VotingConfig::Relu(Relu { epsilon, .. }) = self
                    && !(0.0..=1.0).contains(epsilon)
                {
                    return bad(format!("voting.epsilon is {epsilon}; it must be from 0 to 1"));
                }
                None
            }
            VotingConfig::Trigonometric(of) | VotingConfig::Positive(of) | VotingConfig::Hyperbolic(of) => {
                within("voting.features", of.features, MAX_FEATURES)?;
                of.same_length
            }
            VotingConfig::Hybrid(of) => {
                within("voting.features", of.features, MAX_FEATURES)?;
                within("voting.hyperplanes", of.hyperplanes, MAX_HYPERPLANES)?;
                of.same_length
            }
        };
        if let Some(length) = same_length
            && !(length > 0.0 && length <= MAX_LENGTH)
        {
            return bad(format!(
                "voting.same_length is {length}; it must be above 0, at most {MAX_LENGTH}. The usual one is {:.3}, the \
                 fourth root of query_dim",
                (dim as f64).powf(0.25)
            ));
        }
        Ok(())
    }
}

impl VotingConfig {
    /// The random projections of this kernel, `[features, dim]`, the same for the same seed on every machine; `None` when
    /// it has none.
    pub fn projections(&self, dim: usize) -> Option<Vec<f32>> {
        let (features, ensemble, lengths, seed) = match *self {
            VotingConfig::Softmax(_) | VotingConfig::SoftmaxKernel(_) => return None,
            VotingConfig::Relu(Relu { features, ensemble, lengths, seed, .. })
            | VotingConfig::Exp(Elementwise { features, ensemble, lengths, seed })
            | VotingConfig::Elu(Elementwise { features, ensemble, lengths, seed })
            | VotingConfig::Trigonometric(Random { features, ensemble, lengths, seed, .. })
            | VotingConfig::Positive(Random { features, ensemble, lengths, seed, .. })
            | VotingConfig::Hyperbolic(Random { features, ensemble, lengths, seed, .. })
            | VotingConfig::Hybrid(Hybrid { features, ensemble, lengths, seed, .. }) => {
                (features, ensemble, lengths, seed)
            }
        };
        let seed = Seed::root(seed).child("projections", 0);
        (features > 0).then(|| ensemble.draw(lengths, features, dim, seed))
    }

    /// The normals of this kernel's hyperplanes, `[hyperplanes, dim]`; `None` when it has none.
    pub fn hyperplanes(&self, dim: usize) -> Option<Vec<f32>> {
        let VotingConfig::Hybrid(Hybrid { hyperplanes, seed, .. }) = *self else { return None };
        let seed = Seed::root(seed).child("hyperplanes", 0);
        Some(Ensemble::Independent.draw(Lengths::Chi, hyperplanes, dim, seed))
    }

    /// What multiplies queries and keys, whose products are divided by `divisor`.
    pub(crate) fn scales(&self, divisor: f64) -> Scales {
        match self {
            // Votes are powers of two.
            VotingConfig::Softmax(_) => Scales { query: std::f64::consts::LOG2_E / divisor, key: 1.0 },
            // A feature map takes one vector at a time, so each has its half.
            _ => Scales { query: 1.0 / divisor.sqrt(), key: 1.0 / divisor.sqrt() },
        }
    }

    /// The feature map of a valid configuration; `None` for kernels that are computed pair by pair.
    fn feature_map(&self, dim: usize) -> Option<FeatureMap> {
        let projections = self.projections(dim);
        let drawn = || projections.as_deref().expect("a valid configuration has features");
        let (map, same_length) = match *self {
            VotingConfig::Softmax(_) | VotingConfig::SoftmaxKernel(_) => return None,
            VotingConfig::Relu(Relu { epsilon, .. }) => {
                let f = kernel_vote::Elementwise::Relu { epsilon: epsilon as f32 };
                (FeatureMap::elementwise(dim, f, projections.as_deref()), None)
            }
            VotingConfig::Exp(_) => {
                (FeatureMap::elementwise(dim, kernel_vote::Elementwise::Exp, projections.as_deref()), None)
            }
            VotingConfig::Elu(_) => {
                (FeatureMap::elementwise(dim, kernel_vote::Elementwise::Elu1, projections.as_deref()), None)
            }
            VotingConfig::Trigonometric(Random { same_length, .. }) => {
                (FeatureMap::trigonometric(dim, drawn()), same_length)
            }
            VotingConfig::Positive(Random { same_length, .. }) => {
                (FeatureMap::positive(dim, drawn(), Positive::Plain), same_length)
            }
            VotingConfig::Hyperbolic(Random { same_length, .. }) => {
                (FeatureMap::positive(dim, drawn(), Positive::Hyperbolic), same_length)
            }
            VotingConfig::Hybrid(Hybrid { hyperbolic, same_length, .. }) => {
                let planes = self.hyperplanes(dim).expect("a hybrid has hyperplanes");
                let kind = if hyperbolic { Positive::Hyperbolic } else { Positive::Plain };
                (FeatureMap::hybrid(dim, drawn(), kind, &planes), same_length)
            }
        };
        Some(match same_length {
            Some(length) => map.with_same_length(length as f32),
            None => map,
        })
    }

    /// Scratch space for `threads` to vote among `patches` patches.
    pub(crate) fn voter(&self, patches: usize, dim: usize, threads: &Threads) -> Voter {
        match self {
            VotingConfig::Softmax(Softmax { relative_error: None }) => {
                Voter::Softmax(Votes::new(patches, dim).with_threads(threads))
            }
            VotingConfig::Softmax(Softmax { relative_error: Some(error) }) => {
                Voter::Near(Box::new(NearVotes::new(patches, dim, *error).with_threads(threads)))
            }
            VotingConfig::SoftmaxKernel(Exponential { same_length }) => {
                let length = same_length.map(|length| length as f32);
                Voter::Pairs(PairVotes::new(patches, dim, length).with_threads(threads))
            }
            _ => {
                let map = self.feature_map(dim).expect("all other kernels have features");
                Voter::Features(KernelVotes::new(&map).with_threads(threads))
            }
        }
    }
}

/// An attention kernel with its scratch space.
#[derive(Debug, Clone)]
pub(crate) enum Voter {
    /// AttentionAgent's.
    Softmax(Votes),
    /// The same with a bounded error.
    Near(Box<NearVotes>),
    /// A kernel pair by pair.
    Pairs(PairVotes),
    /// A kernel by its features.
    Features(KernelVotes),
}

impl Voter {
    /// Computes the votes: `importance` is `[patches]`, of which the `wanted` largest matter. `weights` are c of equation
    /// (1), `[patches]`; without them, every vote counts alike.
    ///
    /// # Errors
    /// When importances underflow single precision.
    ///
    /// # Panics
    /// When there are weights that softmax cannot take, or numbers of patches differ.
    pub(crate) fn compute(
        &mut self,
        level: Level,
        embedded: &Embedded,
        weights: Option<&[f32]>,
        wanted: usize,
        importance: &mut [f32],
    ) -> Result<(), PolicyError> {
        let refuse = |why: String| PolicyError::Votes { why };
        match self {
            Voter::Softmax(votes) => {
                assert!(weights.is_none(), "softmax has votes that count alike");
                votes.compute(level, embedded, importance);
            }
            Voter::Near(votes) => {
                assert!(weights.is_none(), "softmax has votes that count alike");
                votes.compute(level, embedded, importance);
            }
            Voter::Pairs(votes) => {
                votes
                    .compute(level, embedded, weights, importance)
                    .map_err(|error| refuse(error.to_string()))?;
                check_vanished(votes.vanished(), importance.len(), wanted)?;
            }
            Voter::Features(votes) => {
                votes
                    .compute(level, embedded, weights, importance)
                    .map_err(|error| refuse(error.to_string()))?;
                check_vanished(votes.vanished(), importance.len(), wanted)?;
            }
        }
        Ok(())
    }
}

/// Checks that at least `wanted` of `patches` importances did not underflow.
fn check_vanished(vanished: usize, patches: usize, wanted: usize) -> Result<(), PolicyError> {
    if vanished <= patches - wanted {
        return Ok(());
    }
    let why = format!(
        "of {patches} patches {vanished} have an importance more than 2^126 times below the largest, so the {wanted} best \
         cannot be told; bring all to the same length (voting.same_length)"
    );
    Err(PolicyError::Votes { why })
}
