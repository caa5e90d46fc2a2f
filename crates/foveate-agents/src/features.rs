//! What the controller is told about a patch.
//!
//! The published agent gets the centre of each patch and nothing else. The paper's discussion also names a histogram of
//! the patch's pixels and a small convolution over them, with fixed or evolved weights. The mean colour is for patches so
//! small that they have little more.

use foveate_core::{Image, PatchGrid, Seed};
use foveate_kernels::{Level, dense, project::Linear};

use crate::config::{ConvConfig, FeatureConfig};

/// Turns patches into numbers.
#[derive(Debug, Clone)]
pub struct Features {
    config: FeatureConfig,
    per_patch: usize,
    conv: Option<Conv>,
}

/// A convolution over one patch.
#[derive(Debug, Clone)]
struct Conv {
    config: ConvConfig,
    /// `[filters, size, size, 3]`
    weight: Vec<f32>,
    /// `[filters]`
    bias: Vec<f32>,
}

impl Features {
    /// The features that a valid `config` asks for. A fixed convolution draws its weights from its seed, an evolved
    /// one is zero until it is given some.
    pub fn new(config: &FeatureConfig, patch: usize) -> Self {
        let conv = config.conv.map(|conv| {
            let fan_in = conv.size * conv.size * 3;
            let mut weight = vec![0.0; conv.filters * fan_in];
            let mut bias = vec![0.0; conv.filters];
            if !conv.evolved {
                let mut rng = Seed::root(conv.seed).child("fixed convolution", 0).rng();
                let bound = 1.0 / (fan_in as f64).sqrt();
                for w in weight.iter_mut().chain(&mut bias) {
                    *w = rng.uniform(-bound, bound) as f32;
                }
            }
            Conv { config: conv, weight, bias }
        });
        Features { config: config.clone(), per_patch: config.per_patch(patch), conv }
    }

    /// Numbers per patch.
    pub const fn per_patch(&self) -> usize {
        self.per_patch
    }

    /// Weights, `[filters, size, size, 3]`, and biases of the convolution; `None` without one.
    pub(crate) fn conv_weights(&self) -> Option<(&[f32], &[f32])> {
        self.conv.as_ref().map(|conv| (&conv.weight[..], &conv.bias[..]))
    }

    /// Takes new weights for an evolved convolution; without one, does nothing.
    pub(crate) fn set_conv(&mut self, layer: Linear<'_>) {
        if let Some(conv) = &mut self.conv {
            conv.weight.copy_from_slice(layer.weight);
            conv.bias.copy_from_slice(layer.bias);
        }
    }

    /// Writes the features of the patches `chosen`, one after the other, to `out`.
    pub(crate) fn extract(
        &self,
        level: Level,
        image: Image<'_>,
        grid: PatchGrid,
        chosen: &[u32],
        out: &mut [f32],
    ) {
        for (&patch, mut out) in chosen.iter().zip(out.chunks_exact_mut(self.per_patch)) {
            if self.config.centre {
                let (x, y) = grid.centre(patch as usize);
                // Divided by the picture's size, as the published code does; the paper's text says "by the largest".
                out[0] = y as f32 / grid.height() as f32;
                out[1] = x as f32 / grid.width() as f32;
                out = &mut out[2..];
            }
            let patch = Patch { image, corner: grid.corner(patch as usize), side: grid.patch() };
            if self.config.colour {
                patch.colour(&mut out[..3]);
                out = &mut out[3..];
            }
            if let Some(histogram) = self.config.histogram {
                let (counts, rest) = out.split_at_mut(3 * histogram.bins);
                patch.histogram(histogram.bins, counts);
                out = rest;
            }
            if let Some(conv) = &self.conv {
                conv.apply(patch, out);
                dense::tanh(level, out);
            }
        }
    }
}

/// A patch of a picture.
#[derive(Clone, Copy)]
struct Patch<'a> {
    image: Image<'a>,
    /// Column and row of the top left pixel.
    corner: (usize, usize),
    side: usize,
}

impl Patch<'_> {
    /// `width` pixels of row `y` of the patch from its column `x`, as bytes.
    fn row(&self, x: usize, y: usize, width: usize) -> &[u8] {
        let start = ((self.corner.1 + y) * self.image.width() + self.corner.0 + x) * 3;
        &self.image.rgb()[start..start + width * 3]
    }

    /// Mean red, green and blue in 0 ..= 1.
    fn colour(&self, out: &mut [f32]) {
        let mut sums = [0_u64; 3];
        for y in 0..self.side {
            for pixel in self.row(0, y, self.side).as_chunks::<3>().0 {
                for (sum, &value) in sums.iter_mut().zip(pixel) {
                    *sum += u64::from(value);
                }
            }
        }
        let pixels = (self.side * self.side) as f64;
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = (sum as f64 / pixels / 255.0) as f32;
        }
    }

    /// `[channel, bin]`: which part of the pixels has a value in the bin. A channel's bins sum to 1.
    fn histogram(&self, bins: usize, out: &mut [f32]) {
        out.fill(0.0);
        for y in 0..self.side {
            for pixel in self.row(0, y, self.side).as_chunks::<3>().0 {
                for (channel, &value) in pixel.iter().enumerate() {
                    out[channel * bins + usize::from(value) * bins / 256] += 1.0;
                }
            }
        }
        let pixels = (self.side * self.side) as f32;
        for count in out {
            *count /= pixels;
        }
    }
}

impl Conv {
    /// `[filter, row, column]` of weighted sums, before the tanh.
    fn apply(&self, patch: Patch<'_>, out: &mut [f32]) {
        let ConvConfig { size, stride, .. } = self.config;
        let places = self.config.places(patch.side);
        let filters = self.weight.chunks_exact(size * size * 3).zip(&self.bias);
        for ((weight, &bias), out) in filters.zip(out.chunks_exact_mut(places * places)) {
            for (place, out) in out.iter_mut().enumerate() {
                let (x, y) = (place % places * stride, place / places * stride);
                let mut sum = 0.0;
                for (dy, weight) in weight.chunks_exact(size * 3).enumerate() {
                    for (&w, &byte) in weight.iter().zip(patch.row(x, y + dy, size)) {
                        sum += w * f32::from(byte);
                    }
                }
                *out = bias + sum / 255.0;
            }
        }
    }
}
impl FeatureConfig {
    /// What is said of a patch of side `patch` about which nothing is known.
    pub fn neutral(&self, patch: usize) -> Vec<f32> {
        let FeatureConfig { centre, colour, histogram, .. } = self;
        let mut values = vec![0.5; 2 * usize::from(*centre) + 3 * usize::from(*colour)];
        if let Some(histogram) = histogram {
            values.resize(values.len() + 3 * histogram.bins, 1.0 / histogram.bins as f32);
        }
        // Those of a convolution come last.
        values.resize(self.per_patch(patch), 0.0);
        values
    }
}
