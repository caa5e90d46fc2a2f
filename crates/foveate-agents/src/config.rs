//! What an AttentionAgent can be configured to be, and the bounds of reason.

use foveate_core::{PatchGrid, PolicyError, TensorShape};
use foveate_kernels::vote::MAX_PATCHES;
use serde::{Deserialize, Serialize};

/// Most parameters an agent may have.
pub const MAX_PARAMS: usize = 64 << 20;
/// Largest side of a picture in pixels.
pub const MAX_SIDE: usize = 4096;
/// Most hidden units.
pub const MAX_HIDDEN: usize = 65_536;
/// Most action dimensions.
pub const MAX_ACTIONS: usize = 4096;
/// Most numbers that queries and keys of all patches may have together.
const MAX_EMBEDDED: usize = 64 << 20;

/// Hyper-parameters of an AttentionAgent. The defaults are those of the published CarRacing agent.
///
/// ```
/// use foveate_agents::AttentionAgentConfig;
/// let config: AttentionAgentConfig = serde_json::from_str(r#"{ "top_k": 5 }"#)?;
/// assert_eq!((config.top_k, config.patch), (5, 7));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionAgentConfig {
    /// Width and height of the picture in pixels.
    pub image: [usize; 2],
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Distance between neighbouring patches in pixels.
    pub stride: usize,
    /// Length of a query and of a key.
    pub query_dim: usize,
    /// Patches that the controller is told about.
    pub top_k: usize,
    /// What queries times keys are divided by.
    pub scale: Scale,
    /// What the controller is told about a patch.
    pub features: FeatureConfig,
    /// Hidden units of the LSTM.
    pub hidden: usize,
    /// `[low, high]` per action dimension: where the network's −1 and 1 go.
    pub actions: Vec<[f64; 2]>,
}

impl Default for AttentionAgentConfig {
    fn default() -> Self {
        AttentionAgentConfig {
            image: [96, 96],
            patch: 7,
            stride: 4,
            query_dim: 4,
            top_k: 10,
            scale: Scale::SqrtDIn,
            features: FeatureConfig::default(),
            hidden: 16,
            actions: vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
        }
    }
}

/// What queries times keys are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// √(numbers in a patch), as in the paper's equation 1 and its code.
    #[default]
    SqrtDIn,
    /// √(query length), as in transformers and in the agent's re-release beside AttentionNeuron.
    SqrtD,
    /// 1.
    One,
}

impl Scale {
    /// The divisor for patches of `d_in` numbers and queries of `d`.
    pub fn divisor(self, d_in: usize, d: usize) -> f64 {
        match self {
            Scale::SqrtDIn => (d_in as f64).sqrt(),
            Scale::SqrtD => (d as f64).sqrt(),
            Scale::One => 1.0,
        }
    }
}

/// What the controller is told about a patch; the parts are put one behind the other in the order given here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeatureConfig {
    /// Row and column of its centre pixel, each divided by the picture's size.
    pub centre: bool,
    /// A histogram of its pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramConfig>,
    /// A small convolution over its pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conv: Option<ConvConfig>,
}

impl Default for FeatureConfig {
    fn default() -> Self {
        FeatureConfig { centre: true, histogram: None, conv: None }
    }
}

/// A histogram of the patch's pixels, for each channel by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramConfig {
    /// Bins of equal width over 0 ..= 255, at most 256.
    pub bins: usize,
}

/// A convolution over the patch's pixels, divided by 255, with bias and tanh, without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConvConfig {
    /// Filters.
    pub filters: usize,
    /// Side of a filter in pixels.
    pub size: usize,
    /// Distance between neighbouring applications in pixels.
    pub stride: usize,
    /// Whether its weights evolve with the others, as part of the flat vector; if not, they stay as drawn from `seed`.
    pub evolved: bool,
    /// Seed of the fixed weights.
    pub seed: u64,
}

impl Default for ConvConfig {
    fn default() -> Self {
        ConvConfig { filters: 2, size: 3, stride: 2, evolved: true, seed: 0 }
    }
}

impl ConvConfig {
    /// Places along one axis of a patch of side `patch`.
    pub const fn places(&self, patch: usize) -> usize {
        (patch - self.size) / self.stride + 1
    }
}

/// The error for a configuration that makes no sense.
fn bad<T>(why: impl Into<String>) -> Result<T, PolicyError> {
    Err(PolicyError::BadConfig { why: why.into() })
}

/// Checks that `what` is within `1..=most`.
fn within(what: &str, value: usize, most: usize) -> Result<(), PolicyError> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    bad(format!("{what} is {value}; it must be from 1 to {most}"))
}

impl AttentionAgentConfig {
    /// Checks everything and cuts the picture into patches.
    ///
    /// # Errors
    /// When a value is out of bounds, the patch is larger than the picture, there are fewer patches than `top_k`, or
    /// the agent would be unreasonably large.
    pub fn check(&self) -> Result<PatchGrid, PolicyError> {
        let [width, height] = self.image;
        within("image width", width, MAX_SIDE)?;
        within("image height", height, MAX_SIDE)?;
        within("stride", self.stride, MAX_SIDE)?;
        let grid = PatchGrid::tile(width, height, self.patch, self.stride)?;
        if grid.len() > MAX_PATCHES {
            return bad(format!(
                "{} patches; at most {MAX_PATCHES} are possible, so raise stride",
                grid.len()
            ));
        }
        within("query_dim", self.query_dim, MAX_EMBEDDED)?;
        if grid.len().saturating_mul(2 * self.query_dim) > MAX_EMBEDDED {
            let n = grid.len();
            return bad(format!(
                "query_dim = {} for {n} patches is too large; lower it or raise stride",
                self.query_dim
            ));
        }
        within("top_k", self.top_k, usize::MAX)?;
        if self.top_k > grid.len() {
            return Err(PolicyError::TooFewPatches { wanted: self.top_k, available: grid.len() });
        }
        within("hidden", self.hidden, MAX_HIDDEN)?;
        within("number of action dimensions", self.actions.len(), MAX_ACTIONS)?;
        for (i, [low, high]) in self.actions.iter().enumerate() {
            if !(low.is_finite() && high.is_finite() && low < high) {
                return bad(format!("actions[{i}] is [{low}, {high}]; low must be below high, both finite"));
            }
        }
        self.check_features()?;
        let params = self.tensors().iter().fold(0, |sum: usize, tensor| {
            sum.saturating_add(tensor.shape.iter().fold(1, |len, &n| len.saturating_mul(n)))
        });
        if params > MAX_PARAMS {
            return bad(format!(
                "{params} parameters; at most {MAX_PARAMS} are possible, so lower hidden or patch"
            ));
        }
        Ok(grid)
    }

    fn check_features(&self) -> Result<(), PolicyError> {
        let FeatureConfig { centre, histogram, conv } = &self.features;
        if !centre && histogram.is_none() && conv.is_none() {
            return bad("features: at least one of centre, histogram and conv is needed");
        }
        if let Some(HistogramConfig { bins }) = histogram {
            within("features.histogram.bins", *bins, 256)?;
        }
        if let Some(conv) = conv {
            within("features.conv.filters", conv.filters, 4096)?;
            within("features.conv.size", conv.size, self.patch)?;
            within("features.conv.stride", conv.stride, MAX_SIDE)?;
            if conv.filters * conv.size * conv.size * 3 > MAX_PARAMS {
                return bad("features.conv has too many weights; lower filters or size");
            }
        }
        Ok(())
    }

    /// Numbers in a patch.
    pub const fn patch_len(&self) -> usize {
        self.patch * self.patch * 3
    }

    /// Numbers that the controller is told about one patch.
    pub fn features_per_patch(&self) -> usize {
        let FeatureConfig { centre, histogram, conv } = &self.features;
        let conv = conv.map_or(0, |conv| conv.filters * conv.places(self.patch).pow(2));
        2 * usize::from(*centre) + histogram.map_or(0, |h| 3 * h.bins) + conv
    }

    /// Name and shape of every parameter tensor, in the order of the flat vector: that of the published CarRacing
    /// weights, layer by layer, and by name within a layer.
    pub fn tensors(&self) -> Vec<TensorShape> {
        let (d, d_in, gates) = (self.query_dim, self.patch_len(), 4 * self.hidden);
        let inputs = self.top_k.saturating_mul(self.features_per_patch());
        let mut all = vec![
            ("query.bias", vec![d]),
            ("query.weight", vec![d, d_in]),
            ("key.bias", vec![d]),
            ("key.weight", vec![d, d_in]),
        ];
        if let Some(conv) = self.features.conv
            && conv.evolved
        {
            all.push(("conv.bias", vec![conv.filters]));
            all.push(("conv.weight", vec![conv.filters, conv.size, conv.size, 3]));
        }
        all.extend([
            ("lstm.bias_hh", vec![gates]),
            ("lstm.bias_ih", vec![gates]),
            ("lstm.weight_hh", vec![gates, self.hidden]),
            ("lstm.weight_ih", vec![gates, inputs]),
            ("output.bias", vec![self.actions.len()]),
            ("output.weight", vec![self.actions.len(), self.hidden]),
        ]);
        all.into_iter().map(|(name, shape)| TensorShape { name: name.to_owned(), shape }).collect()
    }

    /// How many parameters the agent has.
    pub fn param_count(&self) -> usize {
        self.tensors().iter().map(TensorShape::len).sum()
    }
}
