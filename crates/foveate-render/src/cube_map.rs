//! The texture of the sky: six square faces, with their mipmaps.

use foveate_core::Image;

use crate::RenderError;

/// The number of faces.
const FACES: usize = 6;

/// A sky of two colours, as MuJoCo's builtin texture `gradient` makes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SkyGradient {
    /// Side of a face in texels, 1 to [`CubeMap::LARGEST_SIDE`].
    pub side: usize,
    /// Colour at the top, each 0 to 1.
    pub top: [f64; 3],
    /// Colour at the bottom, each 0 to 1.
    pub bottom: [f64; 3],
    /// Single texels in another colour.
    pub stars: Option<Stars>,
}

/// Random texels, as MuJoCo's `mark="random"` makes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stars {
    /// The probability that a texel is one, 0 to 1.
    pub probability: f64,
    /// Their colour, each 0 to 1.
    pub rgb: [f64; 3],
}

impl Default for SkyGradient {
    /// The sky of the DeepMind Control suite.
    fn default() -> Self {
        SkyGradient {
            side: 800,
            top: [0.4, 0.6, 0.8],
            bottom: [0.0; 3],
            stars: Some(Stars { probability: 0.01, rgb: [1.0; 3] }),
        }
    }
}

/// Six square faces around the viewer, with all their mipmaps.
///
/// The faces are in OpenGL's order: +x, -x, +y, -y, +z, -z, where y is up. A viewing direction (x, y, z) of a scene, whose z is up,
/// is looked up at (x, z, -y).
#[derive(Clone, PartialEq, Eq)]
pub struct CubeMap {
    side: usize,
    /// Six, or one that all sides show.
    faces: usize,
    /// Per level, from the largest to 1 × 1: `[faces, side, side]` texels, R in the lowest byte.
    levels: Vec<Vec<u32>>,
}

impl CubeMap {
    /// Largest side of a face, in texels.
    pub const LARGEST_SIDE: usize = 2048;

    /// Makes a cube map of six faces.
    ///
    /// * `rgb`: `[6, side, side, 3]` bytes, each face from the top
    ///
    /// # Errors
    /// [`RenderError::TextureSide`] and [`RenderError::TextureBytes`].
    pub fn from_faces(side: usize, rgb: &[u8]) -> Result<CubeMap, RenderError> {
        Self::check(side, FACES, rgb.len())?;
        Ok(Self::of_texels(side, FACES, rgb.chunks_exact(3).map(texel).collect()))
    }

    /// Shows one square picture on all six faces, as the Distracting Control Suite does.
    ///
    /// # Errors
    /// [`RenderError::TextureBytes`] when the picture is not square, and [`RenderError::TextureSide`].
    pub fn from_picture(picture: Image<'_>) -> Result<CubeMap, RenderError> {
        let side = picture.width();
        Self::check(side, 1, picture.rgb().len())?;
        Ok(Self::of_texels(side, 1, picture.rgb().chunks_exact(3).map(texel).collect()))
    }

    /// Makes the sky of two colours, bit-identical to MuJoCo's.
    ///
    /// # Errors
    /// [`RenderError::TextureSide`].
    pub fn gradient(sky: &SkyGradient) -> Result<CubeMap, RenderError> {
        let side = sky.side;
        Self::check_side(side)?;
        let mut texels = vec![0; FACES * side * side];
        // A face of one texel shows its centre.
        let step = if side > 1 { 2.0 / (side - 1) as f64 } else { 0.0 };
        let start = if side > 1 { 1.0 } else { 0.0 };
        let half_pi = std::f64::consts::FRAC_PI_2;
        for (face, texels) in texels.chunks_exact_mut(side * side).enumerate() {
            for (i, texel) in texels.iter_mut().enumerate() {
                let (x, y) = ((i % side) as f64 * step - start, start - (i / side) as f64 * step);
                let length = (1.0 + x * x + y * y).sqrt();
                // Elevation, -1 at the bottom to 1 at the top.
                let elevation = match face {
                    2 => 1.0 - (1.0 / length).acos() / half_pi,
                    3 => (1.0 / length).acos() / half_pi - 1.0,
                    _ => (y / length).asin() / half_pi,
                };
                let bend = elevation / (1.0 + elevation * elevation).sqrt() * std::f64::consts::SQRT_2;
                let part = (0.5 * (1.0 + bend)).clamp(0.0, 1.0);
                *texel = pack(std::array::from_fn(|c| part * sky.top[c] + (1.0 - part) * sky.bottom[c]));
            }
        }
        if let Some(stars) = sky.stars {
            let mut random = Mt19937_64::new(42);
            let star = pack(stars.rgb);
            for texel in &mut texels {
                if random.uniform() < stars.probability {
                    *texel = star;
                }
            }
        }
        Ok(Self::of_texels(side, FACES, texels))
    }

    /// Side of a face in texels.
    pub const fn side(&self) -> usize {
        self.side
    }

    /// Number of levels: the faces themselves and their mipmaps, down to one texel.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The texels of a level, `[faces, side, side]` with six faces or one that all sides show, R in the lowest byte.
    ///
    /// # Panics
    /// When `level` is not below [`levels`](CubeMap::levels).
    pub fn level(&self, level: usize) -> &[u32] {
        &self.levels[level]
    }

    /// The texels of one of the six sides at a level, `[side, side]`.
    pub(crate) fn face(&self, level: usize, face: usize) -> &[u32] {
        let side = self.side >> level;
        &self.levels[level][face.min(self.faces - 1) * side * side..][..side * side]
    }

    fn check_side(side: usize) -> Result<(), RenderError> {
        if (1..=Self::LARGEST_SIDE).contains(&side) {
            return Ok(());
        }
        Err(RenderError::TextureSide { side, largest: Self::LARGEST_SIDE })
    }

    fn check(side: usize, faces: usize, actual: usize) -> Result<(), RenderError> {
        Self::check_side(side)?;
        let expected = faces * side * side * 3;
        if actual == expected {
            return Ok(());
        }
        Err(RenderError::TextureBytes { faces, side, expected, actual })
    }

    fn of_texels(side: usize, faces: usize, texels: Vec<u32>) -> CubeMap {
        let mut levels = vec![texels];
        let mut at = side;
        while at > 1 {
            let smaller = halve(at, levels.last().map_or(&[], Vec::as_slice));
            levels.push(smaller);
            at /= 2;
        }
        CubeMap { side, faces, levels }
    }
}

impl std::fmt::Debug for CubeMap {
    /// Without its texels.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CubeMap").field("side", &self.side).finish_non_exhaustive()
    }
}

/// The next level: the mean of 2 × 2 texels, rounded. Of an odd side, the last row and column are left out.
fn halve(side: usize, texels: &[u32]) -> Vec<u32> {
    let half = side / 2;
    let mut smaller = Vec::with_capacity(texels.len() / 4);
    for face in texels.chunks_exact(side * side) {
        for y in 0..half {
            let rows = [&face[2 * y * side..][..side], &face[(2 * y + 1) * side..][..side]];
            for x in 0..half {
                let four = [rows[0][2 * x], rows[0][2 * x + 1], rows[1][2 * x], rows[1][2 * x + 1]];
                // Even and odd bytes apart, so that sums of four have room.
                let even: u32 = four.iter().map(|t| t & 0x00ff_00ff).sum::<u32>() + 0x0002_0002;
                let odd: u32 = four.iter().map(|t| t >> 8 & 0x00ff_00ff).sum::<u32>() + 0x0002_0002;
                smaller.push((even >> 2 & 0x00ff_00ff) | (odd >> 2 & 0x00ff_00ff) << 8);
            }
        }
    }
    smaller
}

fn texel(rgb: &[u8]) -> u32 {
    u32::from_le_bytes([rgb[0], rgb[1], rgb[2], 0])
}

/// Colours from 0 to 1 as bytes, truncated.
fn pack(rgb: [f64; 3]) -> u32 {
    let [r, g, b] = rgb.map(|c| (255.0 * c) as u8);
    u32::from_le_bytes([r, g, b, 0])
}

/// The 64-bit Mersenne Twister, as of the C++ standard library.
struct Mt19937_64 {
    state: [u64; 312],
    next: usize,
}

impl Mt19937_64 {
    fn new(seed: u64) -> Self {
        let mut state = [seed; 312];
        for i in 1..312 {
            let before = state[i - 1];
            state[i] =
                6_364_136_223_846_793_005_u64.wrapping_mul(before ^ before >> 62).wrapping_add(i as u64);
        }
        Mt19937_64 { state, next: 312 }
    }

    fn draw(&mut self) -> u64 {
        if self.next == 312 {
            for i in 0..312 {
                let x = self.state[i] & 0xffff_ffff_8000_0000 | self.state[(i + 1) % 312] & 0x7fff_ffff;
                let twist = if x & 1 == 1 { 0xb502_6f5a_a966_19e9 } else { 0 };
                self.state[i] = self.state[(i + 156) % 312] ^ x >> 1 ^ twist;
            }
            self.next = 0;
        }
        let mut x = self.state[self.next];
        self.next += 1;
        x ^= x >> 29 & 0x5555_5555_5555_5555;
        x ^= x << 17 & 0x71d6_7fff_eda6_0000;
        x ^= x << 37 & 0xfff7_eee0_0000_0000;
        x ^ x >> 43
    }

    /// From 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.draw() as f64 / 18_446_744_073_709_551_616.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_standard_one() {
        // The 10000th number of a default-constructed std::mt19937_64, as the C++ standard gives it.
        let mut random = Mt19937_64::new(5489);
        let last = (0..10000).map(|_| random.draw()).last();
        assert_eq!(last, Some(9_981_545_732_273_789_042));
    }

    #[test]
    fn mipmaps_are_rounded_means() {
        let mut rgb = vec![0; 6 * 2 * 2 * 3];
        rgb[..12].copy_from_slice(&[1, 255, 0, 2, 255, 0, 3, 255, 0, 4, 255, 1]);
        let map = CubeMap::from_faces(2, &rgb).expect("six faces");
        assert_eq!(map.levels(), 2);
        // 10 / 4 is rounded up, 1 / 4 down.
        assert_eq!(map.level(1)[0].to_le_bytes(), [3, 255, 0, 0]);
        assert_eq!(map.level(1)[1], 0);
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let largest = CubeMap::LARGEST_SIDE;
        for side in [0, largest + 1, usize::MAX] {
            assert_eq!(CubeMap::from_faces(side, &[]), Err(RenderError::TextureSide { side, largest }));
            let sky = SkyGradient { side, ..SkyGradient::default() };
            assert_eq!(CubeMap::gradient(&sky), Err(RenderError::TextureSide { side, largest }));
        }
        let bytes = RenderError::TextureBytes { faces: 6, side: 4, expected: 288, actual: 287 };
        assert_eq!(CubeMap::from_faces(4, &[0; 287]), Err(bytes));
        let wide = Image::new(2, 1, &[0; 6]).expect("six bytes");
        assert!(matches!(CubeMap::from_picture(wide), Err(RenderError::TextureBytes { .. })));
    }

    #[test]
    fn the_sky_is_brighter_above() {
        let sky = SkyGradient { stars: None, side: 64, ..SkyGradient::default() };
        let map = CubeMap::gradient(&sky).expect("a small side");
        let centre = |face: usize| map.level(0)[(face * 64 + 32) * 64 + 32].to_le_bytes();
        assert_eq!(centre(2)[..3], [101, 152, 203]);
        assert!(centre(3)[2] < 2 && (90..115).contains(&centre(0)[2]), "{:?} {:?}", centre(3), centre(0));
    }
}
