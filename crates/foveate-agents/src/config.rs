//! Settings that several agents have, and the limits of their values.

use foveate_core::{PolicyError, TensorShape};
use serde::{Deserialize, Serialize};

/// Most parameters an agent may have.
pub const MAX_PARAMS: usize = 64 << 20;
/// Largest side of a picture in pixels.
pub const MAX_SIDE: usize = 4096;
/// Most hidden units.
pub const MAX_HIDDEN: usize = 65_536;
/// Most numbers of sensors beside a picture.
pub const MAX_SENSORS: usize = 65_536;
/// Most action dimensions.
pub const MAX_ACTIONS: usize = 4096;

/// The divisor of queries × keys.
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

/// The features of a patch, concatenated in the order given here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeatureConfig {
    /// Row and column of its centre pixel, each divided by the picture's size.
    pub centre: bool,
    /// Its mean colour: red, green and blue, each in 0 ..= 1. Of a patch of one pixel, that pixel.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub colour: bool,
    /// A histogram of its pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramConfig>,
    /// A small convolution over its pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conv: Option<ConvConfig>,
}

impl Default for FeatureConfig {
    fn default() -> Self {
        FeatureConfig { centre: true, colour: false, histogram: None, conv: None }
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
    /// True if its weights evolve with the others, as part of the flat vector; if not, they stay as drawn from `seed`.
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
pub(crate) fn bad<T>(why: impl Into<String>) -> Result<T, PolicyError> {
    Err(PolicyError::BadConfig { why: why.into() })
}

/// Checks that `what` is within `1..=most`.
pub(crate) fn within(what: &str, value: usize, most: usize) -> Result<(), PolicyError> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    bad(format!("{what} is {value}; it must be from 1 to {most}"))
}

/// A convolution without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionLayer {
    /// Filters.
    pub filters: usize,
    /// Side of a filter.
    pub size: usize,
    /// Distance between neighbouring applications.
    pub stride: usize,
}

impl ConvolutionLayer {
    /// Checks convolutions, one after the other, of `rows` and `columns`; `key` is their setting.
    pub(crate) fn check_all(
        layers: &[ConvolutionLayer],
        key: &str,
        [mut height, mut width]: [usize; 2],
    ) -> Result<(), PolicyError> {
        for (i, &ConvolutionLayer { filters, size, stride }) in layers.iter().enumerate() {
            within(&format!("{key}: filters"), filters, MAX_HIDDEN)?;
            within(&format!("{key}: stride"), stride, MAX_HIDDEN)?;
            if size == 0 || size > height || size > width {
                return bad(format!(
                    "{key}[{i}]: size is {size}; its input is {height} x {width}, so choose from 1 to {}",
                    height.min(width)
                ));
            }
            (height, width) = ((height - size) / stride + 1, (width - size) / stride + 1);
        }
        Ok(())
    }
}

impl FeatureConfig {
    /// Checks that there is at least one feature and that sizes are within their limits.
    ///
    /// # Errors
    /// When there is not.
    pub fn check(&self, patch: usize) -> Result<(), PolicyError> {
        let FeatureConfig { centre, colour, histogram, conv } = self;
        if !centre && !colour && histogram.is_none() && conv.is_none() {
            return bad("features: at least one of centre, colour, histogram and conv is needed");
        }
        if let Some(HistogramConfig { bins }) = histogram {
            within("features.histogram.bins", *bins, 256)?;
        }
        if let Some(conv) = conv {
            within("features.conv.filters", conv.filters, 4096)?;
            within("features.conv.size", conv.size, patch)?;
            within("features.conv.stride", conv.stride, MAX_SIDE)?;
            if conv.filters * conv.size * conv.size * 3 > MAX_PARAMS {
                return bad("features.conv has too many weights; lower filters or size");
            }
        }
        Ok(())
    }

    /// Number of features of a patch of side `patch`.
    pub fn per_patch(&self, patch: usize) -> usize {
        let FeatureConfig { centre, colour, histogram, conv } = self;
        let conv = conv.map_or(0, |conv| conv.filters * conv.places(patch).pow(2));
        2 * usize::from(*centre) + 3 * usize::from(*colour) + histogram.map_or(0, |h| 3 * h.bins) + conv
    }
}

/// Checks that every action dimension has a lower bound below its upper bound.
pub(crate) fn check_actions(actions: &[[f64; 2]]) -> Result<(), PolicyError> {
    within("number of action dimensions", actions.len(), MAX_ACTIONS)?;
    for (i, [low, high]) in actions.iter().enumerate() {
        if !(low.is_finite() && high.is_finite() && low < high) {
            return bad(format!("actions[{i}] is [{low}, {high}]; low must be below high, both finite"));
        }
    }
    Ok(())
}

/// From −1 ..= 1 to the world's units.
pub(crate) fn to_units(raw: &[f32], bounds: &[[f64; 2]], action: &mut [f64]) {
    for ((action, &raw), [low, high]) in action.iter_mut().zip(raw).zip(bounds) {
        *action = f64::from(raw) * ((high - low) / 2.0) + f64::midpoint(*low, *high);
    }
}

/// From the world's units to −1 ..= 1; what is outside is clipped.
pub(crate) fn from_units(action: f64, [low, high]: [f64; 2]) -> f32 {
    ((2.0 * action - low - high) / (high - low)).clamp(-1.0, 1.0) as f32
}

/// Checks that the number of parameters is within its limit.
pub(crate) fn check_params(tensors: &[TensorShape], remedy: &str) -> Result<(), PolicyError> {
    let params = tensors.iter().fold(0, |sum: usize, tensor| {
        sum.saturating_add(tensor.shape.iter().fold(1, |len, &n| len.saturating_mul(n)))
    });
    if params > MAX_PARAMS {
        return bad(format!("{params} parameters; at most {MAX_PARAMS} are possible, so {remedy}"));
    }
    Ok(())
}
