//! A picture like a camera's, and layers to look at it with, from whole numbers alone.

use std::fs;
use std::path::Path;

use foveate_agents::{Ensemble, Lengths};
use foveate_core::Seed;
use foveate_kernels::project::Linear;

/// A picture and what looks at it.
pub(crate) struct Scene {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) patch: usize,
    pub(crate) stride: usize,
    pub(crate) dim: usize,
    /// `[height, width, 3]`
    pub(crate) rgb: Vec<u8>,
    weights: Vec<f32>,
}

/// A stream of numbers in −1 ..= 1: Knuth's MMIX.
pub(crate) fn numbers(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    })
}

impl Scene {
    /// Sky above ground, boxes of many colours, and the noise of a sensor, so that hardly two patches are equal. Layers
    /// are as PyTorch begins: uniform within 1 / √inputs.
    ///
    /// `gain` multiplies the layers' weights; patches of side `patch` are `stride` pixels apart.
    pub(crate) fn new(width: usize, height: usize, [patch, stride]: [usize; 2], gain: f32) -> Self {
        let mut rgb = Vec::with_capacity(width * height * 3);
        let mut noise = numbers(1);
        for y in 0..height {
            for x in 0..width {
                let (u, v) = (x as f32 / width as f32, y as f32 / height as f32);
                let mut colour = if v < 0.45 {
                    [110.0 + 60.0 * v, 160.0 + 40.0 * u, 230.0 - 50.0 * v]
                } else {
                    [90.0 + 50.0 * u, 120.0 - 40.0 * v, 60.0 + 30.0 * u * v]
                };
                for i in 0..9_u8 {
                    let f = f32::from(i);
                    let (left, top) = (f * 0.37 % 1.0 * 0.9, 0.2 + f * 0.61 % 0.7);
                    if (left..left + 0.09).contains(&u) && (top..top + 0.16).contains(&v) {
                        colour = [f * 97.0 % 255.0, f * 53.0 % 255.0 + 0.5, 250.0 - f * 27.0];
                    }
                }
                rgb.extend(
                    colour.map(|c| (c + 6.0 * noise.next().expect("endless")).clamp(0.0, 255.0) as u8),
                );
            }
        }
        let dim = 4;
        let inputs = patch * patch * 3;
        let bound = gain / (inputs as f32).sqrt();
        let weights = numbers(2).take(2 * dim * (inputs + 1)).map(|x| x * bound).collect();
        Scene { width, height, patch, stride, dim, rgb, weights }
    }

    pub(crate) fn columns(&self) -> usize {
        (self.width - self.patch) / self.stride + 1
    }

    pub(crate) fn patches(&self) -> usize {
        self.columns() * ((self.height - self.patch) / self.stride + 1)
    }

    pub(crate) fn query(&self) -> Linear<'_> {
        self.layer(0)
    }

    pub(crate) fn key(&self) -> Linear<'_> {
        self.layer(1)
    }

    fn layer(&self, which: usize) -> Linear<'_> {
        let inputs = self.patch * self.patch * 3;
        let layer = &self.weights[which * self.dim * (inputs + 1)..(which + 1) * self.dim * (inputs + 1)];
        let (weight, bias) = layer.split_at(self.dim * inputs);
        Linear { weight, bias }
    }

    /// `m` directions of an ensemble, `[m, dim]`.
    pub(crate) fn omega(&self, m: usize, draw: u64) -> Vec<f32> {
        let seed = Seed::root(3).child("directions", draw);
        Ensemble::BlockOrthogonal.draw(Lengths::Chi, m, self.dim, seed)
    }

    /// `n` normals of hyperplanes, `[n, dim]`.
    pub(crate) fn planes(&self, n: usize, draw: u64) -> Vec<f32> {
        let seed = Seed::root(3).child("hyperplanes", draw);
        Ensemble::Independent.draw(Lengths::Chi, n, self.dim, seed)
    }

    /// Leaves everything in `folder`, as bytes and little-endian f32.
    pub(crate) fn write(&self, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("picture.u8"), &self.rgb)?;
        let floats = |name: &str, xs: &[f32]| {
            fs::write(folder.join(name), xs.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
        };
        floats("layers.f32", &self.weights)?;
        floats("omega.f32", &self.omega(8, 0))?;
        floats("planes.f32", &self.planes(7, 0))
    }
}
