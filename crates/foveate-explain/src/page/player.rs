//! What the page's player needs: the film, and what happened at every step.

use serde_json::{Value, json};

use crate::study::strongest;
use crate::text::base64;
use crate::trajectory::{Dimension, Trajectory};

/// A film of an episode: frame `t` shows what decision `t` was taken on; the last one is what came after the last.
#[derive(Debug, Clone, Copy)]
pub struct PageFilm<'a> {
    /// The file.
    pub mp4: &'a [u8],
    /// Frames per second.
    pub fps: f64,
    /// Width and height of a frame.
    pub size: [usize; 2],
    /// Where the world as people see it is: left, top, width, height; `None` for a world without such a picture.
    pub world: Option<[usize; 4]>,
    /// Where the agent's own picture is.
    pub seen: [usize; 4],
}

/// Most bytes of importance maps that a page carries; longer episodes keep every second, third, … map.
const MAP_BYTES: usize = 900_000;

/// What is attended in an episode, and how far the action changes without it: with its value from other episodes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FilmEffects {
    /// Steps for which a row holds.
    pub every: usize,
    /// `[rows]`: the effects of what the decision attends to, the most important first.
    pub rows: Vec<Vec<f64>>,
}

/// The data of the player as JSON.
///
/// * `maps`: `[n_patches]` importance at every step; empty for a policy without attention.
/// * `picture`: width and height of the agent's picture.
/// * `effects`: how far the action changes without each of the patches that a step looks at.
pub fn player_data(
    film: &PageFilm<'_>,
    episode: &Trajectory,
    maps: &[Vec<f32>],
    picture: [usize; 2],
    dimensions: &[Dimension],
    effects: Option<&FilmEffects>,
) -> String {
    let round = |value: f64, digits: i32| {
        let scale = 10_f64.powi(digits);
        (value * scale).round() / scale
    };
    let actions: Vec<Vec<f64>> = (0..dimensions.len())
        .map(|d| episode.actions.iter().map(|a| round(a.get(d).copied().unwrap_or(0.0), 4)).collect())
        .collect();
    let gaze = episode.grid.map(|grid| {
        let every = (maps.len() * grid.len()).div_ceil(MAP_BYTES).max(1);
        json!({
            "columns": grid.columns(), "rows": grid.rows(), "patch": grid.patch(), "stride": grid.stride(),
            "width": grid.width(), "height": grid.height(),
            "at": episode.selected,
            "every": every,
            "effects": effects.map(|of| json!({
                "every": of.every,
                "most": strongest(&of.rows.concat()),
                "rows": of.rows.iter().map(|row| row.iter().map(|&x| round(x, 4)).collect::<Vec<f64>>()).collect::<Vec<_>>(),
            })),
            "maps": base64(&maps.iter().step_by(every).flat_map(|map| levels(map)).collect::<Vec<u8>>()),
        })
    });
    let data: Value = json!({
        "fps": film.fps,
        "size": film.size,
        "world": film.world,
        "seen": film.seen,
        "picture": picture,
        "names": dimensions.iter().map(|d| &d.name).collect::<Vec<_>>(),
        "bounds": dimensions.iter().map(|d| [d.low, d.high]).collect::<Vec<_>>(),
        "actions": actions,
        "rewards": episode.rewards.iter().map(|&r| round(r, 3)).collect::<Vec<_>>(),
        "scores": episode.scores().iter().map(|&s| round(s, 2)).collect::<Vec<_>>(),
        "shares": episode.shares.iter().map(|s| round(s.iter().map(|&s| f64::from(s)).sum(), 4)).collect::<Vec<_>>(),
        "gaze": gaze,
    });
    data.to_string()
}

/// Importance as bytes: the square root of its part of the largest, so that faint places still show.
fn levels(map: &[f32]) -> Vec<u8> {
    let most = map.iter().copied().fold(0.0_f32, f32::max);
    let scale = if most > 0.0 { 1.0 / most } else { 0.0 };
    map.iter().map(|&value| ((value.max(0.0) * scale).sqrt() * 255.0).round() as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faint_places_still_show() {
        assert_eq!(levels(&[0.0, 0.25, 1.0, -3.0]), [0, 128, 255, 0]);
        assert_eq!(levels(&[0.0; 2]), [0; 2]);
    }
}
