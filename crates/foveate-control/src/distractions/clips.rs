//! Moving pictures for backgrounds: generated ones, and those of a user.

use std::sync::{Arc, OnceLock};

use foveate_core::{Image, ImageBuf, Rng, Seed};
use foveate_render::CubeMap;

use super::Source;

/// Side of a generated picture, and the largest side of a user's, in texels.
const SIDE: [usize; 2] = [256, 512];
/// Pictures of a generated clip.
const FRAMES: usize = 30;
/// Most pictures of a user's clip.
const MOST_FRAMES: usize = 300;
/// Most texels of a user's clips in all, 4 bytes each, a quarter of which are smaller copies.
const MOST_TEXELS: usize = (1 << 28) / 4 * 3;
/// Generated clips for training and for validation.
const CLIPS: [usize; 2] = [20, 10];

/// The pictures of a clip, each around the scene.
#[derive(PartialEq, Eq)]
pub struct Clip {
    frames: Vec<Arc<CubeMap>>,
}

impl Clip {
    /// Clips of a user's films, of each at most the first 300 pictures in their order. Each picture becomes a square of at most
    /// 512 x 512 texels; of less when all of them would need more than 1 GiB.
    pub fn of_films(films: &[Arc<Vec<ImageBuf>>]) -> Vec<Arc<Self>> {
        let frames: usize = films.iter().map(|pictures| pictures.len().min(MOST_FRAMES)).sum();
        let most = (MOST_TEXELS / frames.max(1)).isqrt().clamp(1, SIDE[1]);
        films.iter().map(|pictures| Arc::new(Self::of_pictures(pictures, most))).collect()
    }

    fn of_pictures(pictures: &[ImageBuf], most: usize) -> Self {
        let frames = pictures.iter().filter(|picture| picture.width() * picture.height() > 0);
        let mut frames: Vec<_> = frames
            .take(MOST_FRAMES)
            .map(|picture| {
                let side = picture.width().max(picture.height()).min(most);
                frame(&square(picture.as_image(), side))
            })
            .collect();
        if frames.is_empty() {
            frames.push(frame(&ImageBuf::black(1, 1)));
        }
        Clip { frames }
    }

    /// Its pictures, at least one.
    pub fn frames(&self) -> &[Arc<CubeMap>] {
        &self.frames
    }
}

impl std::fmt::Debug for Clip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clip").field("frames", &self.frames.len()).finish()
    }
}

fn frame(picture: &ImageBuf) -> Arc<CubeMap> {
    Arc::new(CubeMap::from_picture(picture.as_image()).expect("a square within the limit"))
}

/// `picture` with as many rows as columns, bilinearly.
fn square(picture: Image<'_>, side: usize) -> ImageBuf {
    let mut out = ImageBuf::black(side, side);
    let place = |i: usize, length: usize| {
        let x = ((i as f64 + 0.5) * length as f64 / side as f64 - 0.5).clamp(0.0, (length - 1) as f64);
        let low = x.floor();
        (low as usize, (low as usize + 1).min(length - 1), x - low)
    };
    for (y, row) in out.rgb_mut().chunks_exact_mut(3 * side).enumerate() {
        let (y0, y1, py) = place(y, picture.height());
        for (x, rgb) in row.chunks_exact_mut(3).enumerate() {
            let (x0, x1, px) = place(x, picture.width());
            let corners = [(x0, y0), (x1, y0), (x0, y1), (x1, y1)].map(|(x, y)| picture.pixel(x, y));
            for (channel, byte) in rgb.iter_mut().enumerate() {
                let [a, b, c, d] = corners.map(|corner| f64::from(corner[channel]));
                let (top, bottom) = (a + (b - a) * px, c + (d - c) * px);
                *byte = (top + (bottom - top) * py + 0.5) as u8;
            }
        }
    }
    out
}

/// Number of generated clips.
pub(super) const fn count(source: Source) -> usize {
    CLIPS[source as usize]
}

/// A generated clip, made once.
pub(super) fn generated(source: Source, number: usize) -> Arc<Clip> {
    static MADE: [[OnceLock<Arc<Clip>>; CLIPS[0]]; 2] = [const { [const { OnceLock::new() }; CLIPS[0]] }; 2];
    let label = ["train", "validation"][source as usize];
    Arc::clone(MADE[source as usize][number].get_or_init(|| {
        let mut random = Seed::root(0).child("backgrounds", 0).child(label, number as u64).rng();
        Arc::new(generate(&mut random))
    }))
}

/// A disc or a rectangle that crosses the picture.
struct Thing {
    center: [f32; 2],
    speed: [f32; 2],
    half: [f32; 2],
    round: bool,
    rgb: [f32; 3],
}

/// Fractal noise in colours of a random palette that drifts, with things that cross it: coarse and fine structure, soft and sharp
/// edges, and movement, as films have them.
fn generate(random: &mut Rng) -> Clip {
    let mut between = |low: f64, high: f64| random.uniform(low, high) as f32;
    let palette: [[f32; 3]; 4] = std::array::from_fn(|_| std::array::from_fn(|_| between(0.0, 255.0)));
    let salt = (between(0.0, 1.0) * 16_777_216.0) as u32;
    let (cells, drift) = (between(2.0, 6.0), [between(-0.02, 0.02), between(-0.02, 0.02)]);
    let rough = between(0.35, 0.65);
    let things: Vec<Thing> = (0..between(2.0, 9.0) as usize)
        .map(|_| Thing {
            center: [between(0.0, 1.0), between(0.0, 1.0)],
            speed: [between(-0.015, 0.015), between(-0.015, 0.015)],
            half: [between(0.02, 0.16), between(0.02, 0.16)],
            round: between(0.0, 1.0) < 0.5,
            rgb: std::array::from_fn(|_| between(0.0, 255.0)),
        })
        .collect();
    let side = SIDE[0];
    let frames = (0..FRAMES).map(|time| {
        let time = time as f32;
        let mut picture = ImageBuf::black(side, side);
        for (i, rgb) in picture.rgb_mut().chunks_exact_mut(3).enumerate() {
            let at = [(i % side) as f32 / side as f32, (i / side) as f32 / side as f32];
            let place = [cells * (at[0] + drift[0] * time), cells * (at[1] + drift[1] * time)];
            let mut color = shade(&palette, fractal(place, rough, salt));
            for thing in &things {
                // Beyond an edge it comes in again at the other one.
                let wrapped = |k: usize| {
                    let moved = thing.center[k] + thing.speed[k] * time;
                    let apart = at[k] - (moved - moved.floor());
                    (apart - (apart + 0.5).floor()) / thing.half[k]
                };
                let [x, y] = [wrapped(0), wrapped(1)];
                if if thing.round { x * x + y * y < 1.0 } else { x.abs() < 1.0 && y.abs() < 1.0 } {
                    color = thing.rgb;
                }
            }
            rgb.copy_from_slice(&color.map(|x| x as u8));
        }
        frame(&picture)
    });
    Clip { frames: frames.collect() }
}

/// A colour between the palette's, for `value` from 0 to 1.
fn shade(palette: &[[f32; 3]; 4], value: f32) -> [f32; 3] {
    let x = (value * 3.0).clamp(0.0, 2.999);
    let low = x.floor();
    let (a, b) = (palette[low as usize], palette[low as usize + 1]);
    std::array::from_fn(|c| a[c] + (b[c] - a[c]) * (x - low))
}

/// Value noise in five octaves, each `rough` times as strong as the one before, 0 to 1.
fn fractal(place: [f32; 2], rough: f32, salt: u32) -> f32 {
    let (mut sum, mut most, mut weight) = (0.0, 0.0, 1.0);
    let mut place = place;
    for octave in 0..5 {
        sum += weight * value(place, salt.wrapping_add(octave * 0x9e37));
        most += weight;
        weight *= rough;
        place = place.map(|x| 2.0 * x);
    }
    // Sums of noise are mostly in the middle of the range.
    (1.8 * (sum / most - 0.5) + 0.5).clamp(0.0, 1.0)
}

fn value(place: [f32; 2], salt: u32) -> f32 {
    let corner = place.map(f32::floor);
    let [x, y]: [f32; 2] = std::array::from_fn(|k| {
        let part = place[k] - corner[k];
        part * part * (3.0 - 2.0 * part)
    });
    let [cx, cy] = corner.map(|x| x as i32);
    let at = |dx: i32, dy: i32| lattice(cx.wrapping_add(dx), cy.wrapping_add(dy), salt);
    let (top, bottom) = (at(0, 0) + (at(1, 0) - at(0, 0)) * x, at(0, 1) + (at(1, 1) - at(0, 1)) * x);
    top + (bottom - top) * y
}

/// A number from 0 to 1 for a point of the lattice.
fn lattice(x: i32, y: i32, salt: u32) -> f32 {
    let mut hash = (x as u32).wrapping_mul(0x85eb_ca6b) ^ (y as u32).wrapping_mul(0xc2b2_ae35) ^ salt;
    hash = (hash ^ hash >> 15).wrapping_mul(0x2c1b_3c6d);
    hash = (hash ^ hash >> 12).wrapping_mul(0x297a_2d39);
    (hash >> 8) as f32 / 16_777_216.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clips_differ_and_move() {
        let clip = generated(Source::Train, 0);
        assert_eq!(clip.frames().len(), FRAMES);
        assert!(clip.frames()[0] != clip.frames()[1]);
        assert!(Arc::ptr_eq(&clip, &generated(Source::Train, 0)));
        let others = [generated(Source::Train, 1), generated(Source::Validation, 0)];
        assert!(others.iter().all(|other| other.frames()[0] != clip.frames()[0]));
        // A picture has many colours.
        let mut colors: Vec<u32> = clip.frames()[0].level(0).to_vec();
        colors.sort_unstable();
        colors.dedup();
        assert!(colors.len() > 100, "{} colours", colors.len());
    }

    #[test]
    fn pictures_of_any_size_become_squares() {
        let mut picture = ImageBuf::black(3, 1);
        picture.rgb_mut().copy_from_slice(&[30, 0, 0, 60, 0, 0, 90, 0, 0]);
        let films = [vec![picture, ImageBuf::black(0, 0), ImageBuf::black(900, 20)], vec![]].map(Arc::new);
        let clips = Clip::of_films(&films);
        assert_eq!(clips[0].frames().iter().map(|frame| frame.side()).collect::<Vec<_>>(), [3, 512]);
        assert_eq!(clips[0].frames()[0].level(0)[..6], [30, 60, 90, 30, 60, 90]);
        assert_eq!(clips[1].frames().len(), 1);
    }

    #[test]
    fn many_films_share_a_bound() {
        // As the suite's hardest backgrounds: 60 films of 70 pictures. Only one of them is large.
        let mut films = vec![vec![ImageBuf::black(1, 1); 70]; 60];
        films[3][0] = ImageBuf::black(854, 480);
        let films: Vec<_> = films.into_iter().map(Arc::new).collect();
        let side = Clip::of_films(&films)[3].frames()[0].side();
        assert_eq!(side, 218);
        assert!(4200 * side * side * 4 / 3 * 4 <= 1 << 30);
        assert_eq!(Clip::of_films(&films[..5])[3].frames()[0].side(), 512);
    }
}
