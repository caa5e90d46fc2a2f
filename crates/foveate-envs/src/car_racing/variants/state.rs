//! The run-time state of the variants in a world.

use std::sync::Arc;

use foveate_core::{EnvError, ImageBuf, Seed};

use super::{FakeLane, Side, Variant, Variants, bad};
use crate::car_racing::scene::{Backdrop, Blob, Camera, Colors, Paint, RoadQuad, Scene};

/// Active variants: the colours of this episode and the texels of this frame.
///
/// All random numbers here come from separate seed paths, `env seed / "variant" n / …` for the `n`-th reset
/// since that seed, so the track never depends on the variants. (The published environments drew from NumPy's
/// global generator, which was not seeded.)
#[derive(Debug, Clone)]
pub struct VariantState {
    variants: Variants,
    episode: Seed,
    color: Option<ColorRange>,
    /// Change of road and field, 0 to 255, in this episode.
    shift: [[f64; 3]; 2],
    side_bars: f64,
    blob: Option<Blob>,
    lane: Option<FakeLane>,
    ground: Ground,
}

#[derive(Debug, Clone, Copy)]
struct ColorRange {
    amplitude: f64,
    per_channel: bool,
}

#[derive(Debug, Clone)]
enum Ground {
    Grass,
    Noise { size: usize, rgb: Vec<u8> },
    Video { frames: Arc<Vec<ImageBuf>>, at: usize },
}

impl VariantState {
    /// Prepares `variants`.
    ///
    /// # Errors
    /// [`EnvError::BadOption`] when `video` has no images.
    pub fn new(variants: Variants) -> Result<Self, EnvError> {
        if let Some(folder) = variants.missing_video() {
            return Err(bad(if folder.is_empty() {
                "variant video needs pictures; name their folder, as in video:folder=frames".into()
            } else {
                format!("variant video has no pictures; were those of {folder} loaded?")
            }));
        }
        let mut state = VariantState {
            variants: Variants::none(),
            episode: Seed::root(0),
            color: None,
            shift: [[0.0; 3]; 2],
            side_bars: 0.0,
            blob: None,
            lane: None,
            ground: Ground::Grass,
        };
        for variant in variants.list() {
            match variant {
                &Variant::Color { amplitude } => {
                    state.color = Some(ColorRange { amplitude, per_channel: false });
                }
                &Variant::Color3 { amplitude } => {
                    state.color = Some(ColorRange { amplitude, per_channel: true });
                }
                &Variant::Bar { width } => state.side_bars = width,
                &Variant::Blob(blob) => state.blob = Some(blob),
                &Variant::Noise { size } => {
                    state.ground = Ground::Noise { size, rgb: vec![0; size * size * 3] };
                }
                Variant::Video { frames, .. } => {
                    state.ground = Ground::Video { frames: Arc::clone(frames), at: 0 };
                }
                &Variant::FakeLane(lane) => state.lane = Some(lane),
            }
        }
        state.variants = variants;
        Ok(state)
    }

    /// The active variants.
    pub const fn variants(&self) -> &Variants {
        &self.variants
    }

    /// Draws the random numbers of an episode: number `resets` since the world was seeded with `env_seed`.
    pub fn on_reset(&mut self, env_seed: u64, resets: u64) {
        self.episode = Seed::root(env_seed).child("variant", resets);
        let Some(ColorRange { amplitude, per_channel }) = self.color else { return };
        let mut rng = self.episode.child("color", 0).rng();
        for shift in &mut self.shift {
            let mut draw = || 255.0 * rng.uniform(-amplitude, amplitude);
            let first = draw();
            *shift = if per_channel { [first, draw(), draw()] } else { [first; 3] };
        }
    }

    /// Writes the fake lane, if there is one, to `lane`, which must be empty: one quad per tile of `road`, to
    /// be drawn before the road so that it lies below.
    ///
    /// `road` holds the tiles and kerbs of this episode; only the tiles, painted [`Paint::Road`], are used.
    pub fn lay_lane(&self, road: &[RoadQuad], lane: &mut Vec<RoadQuad>) {
        let Some(fake) = self.lane else { return };
        for tile in road.iter().filter(|quad| matches!(quad.paint, Paint::Road { .. })) {
            lane.push(RoadQuad { corners: fake.beside(tile.corners), paint: Paint::Rgb(fake.rgb) });
        }
    }

    /// The number of quads that [`VariantState::lay_lane`] writes for a track of `tiles` tiles.
    pub const fn lane_quads(&self, tiles: usize) -> usize {
        if self.lane.is_some() { tiles } else { 0 }
    }

    /// Draws the random numbers of a frame: `step` counts from 0 at the reset, `hull` and `t` are as in the
    /// [`Scene`].
    ///
    /// Noise is drawn only where a picture can show it; each texel depends only on seed, episode, step and
    /// place.
    pub fn on_frame(&mut self, step: u64, hull: [f32; 2], t: f64) {
        match &mut self.ground {
            Ground::Grass => {}
            Ground::Noise { size, rgb } => {
                let seed = self.episode.child("noise", step).value();
                draw_noise(*size, rgb, seed, hull, t);
            }
            // The published code shows picture (steps + 1) mod n.
            Ground::Video { frames, at } => *at = ((step + 1) % frames.len() as u64) as usize,
        }
    }

    /// Sets the fields of `scene` that the variants change.
    pub fn dress<'a>(&'a self, scene: &mut Scene<'a>) {
        if self.color.is_some() {
            let Colors { road, field, .. } = &mut scene.colors;
            for (color, shift) in [(road, &self.shift[0]), (field, &self.shift[1])] {
                for (value, shift) in color.iter_mut().zip(shift) {
                    *value = (*value + shift).clamp(0.0, 255.0);
                }
            }
        }
        scene.side_bars = self.side_bars;
        scene.blob = self.blob;
        scene.backdrop = match &self.ground {
            Ground::Grass => None,
            Ground::Noise { size, rgb } => Some(Backdrop { width: *size, height: *size, rgb }),
            Ground::Video { frames, at } => {
                let image = &frames[*at];
                Some(Backdrop { width: image.width(), height: image.height(), rgb: image.rgb() })
            }
        };
    }
}

impl FakeLane {
    /// The piece of lane beside a tile with corners `[l1, r1, r2, l2]`, in the same order.
    fn beside(&self, [l1, r1, r2, l2]: [[f64; 2]; 4]) -> [[f64; 2]; 4] {
        let (near1, near2, far1, far2) = match self.side {
            Side::Right => (r1, r2, l1, l2),
            Side::Left => (l1, l2, r1, r2),
        };
        // Outwards across the road, from the far edge to the near one.
        let out = |near: [f64; 2], far: [f64; 2], by: f64| {
            let d = [near[0] - far[0], near[1] - far[1]];
            let scale = by / (d[0] * d[0] + d[1] * d[1]).sqrt();
            [near[0] + d[0] * scale, near[1] + d[1] * scale]
        };
        let (a1, b1) = (out(near1, far1, self.gap), out(near1, far1, self.gap + self.width));
        let (a2, b2) = (out(near2, far2, self.gap), out(near2, far2, self.gap + self.width));
        match self.side {
            Side::Right => [a1, b1, b2, a2],
            Side::Left => [b1, a1, a2, b2],
        }
    }
}

/// Fills the texels visible around `hull` with random bytes.
fn draw_noise(size: usize, rgb: &mut [u8], seed: u64, hull: [f32; 2], t: f64) {
    // The far corners of the 1000 x 800 canvas are 781 canvas pixels from the car, those of a wide video
    // 1100.
    let reach = 1120.0 / Camera::zoom_at(t) + 2.0;
    let half = size as f64 / 2.0;
    let range = |centre: f64| {
        let clip = |x: f64| (x.max(0.0) as usize).min(size);
        clip(centre - reach)..clip(centre + reach + 1.0)
    };
    let columns = range(half + f64::from(hull[0]));
    for row in range(half - f64::from(hull[1])) {
        let first = row * size + columns.start;
        let texels = &mut rgb[first * 3..(row * size + columns.end) * 3];
        for (i, texel) in texels.chunks_exact_mut(3).enumerate() {
            let bits = scramble(seed.wrapping_add((first + i) as u64));
            texel.copy_from_slice(&bits.to_le_bytes()[..3]);
        }
    }
}

/// A bijection of 64 bits with avalanche (the finaliser of Vigna's `SplitMix64`).
const fn scramble(mut z: u64) -> u64 {
    z = z.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
