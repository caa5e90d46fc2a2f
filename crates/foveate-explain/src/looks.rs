//! Where an agent looks: statistics of attention over whole episodes.

use foveate_core::PatchGrid;
use foveate_core::statistics::{mean, mean_interval, quantile};

use crate::trajectory::{ActionScale, Trajectory};

/// `[n_patches]`: share of all selections that went to each patch.
pub fn density(episodes: &[Trajectory], grid: PatchGrid) -> Vec<f64> {
    let mut counts = vec![0_u64; grid.len()];
    for patch in episodes.iter().flat_map(|e| e.selected.iter().flatten()) {
        if let Some(count) = counts.get_mut(*patch as usize) {
            *count += 1;
        }
    }
    let all: u64 = counts.iter().sum();
    counts.iter().map(|&count| count as f64 / all.max(1) as f64).collect()
}

/// A ninth of the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Its name: `top left`, …
    pub name: String,
    /// Share of all selections there.
    pub looks: f64,
    /// Which part of all patches lies there: what an agent would give that looks anywhere.
    pub patches: f64,
}

/// The nine regions of the picture, row by row, by the centres of the patches.
pub fn regions(density: &[f64], grid: PatchGrid) -> Vec<Region> {
    let mut regions: Vec<Region> = ["top", "middle", "bottom"]
        .iter()
        .flat_map(|row| ["left", "centre", "right"].map(|column| format!("{row} {column}")))
        .map(|name| Region { name, looks: 0.0, patches: 0.0 })
        .collect();
    for (patch, &looks) in density.iter().enumerate() {
        let (x, y) = grid.centre(patch);
        let region = &mut regions[y * 3 / grid.height() * 3 + x * 3 / grid.width()];
        region.looks += looks;
        region.patches += 1.0 / density.len() as f64;
    }
    regions
}

/// How long patches are held: entry `n` counts the times that a patch was looked at for exactly `n + 1` decisions in a
/// row. A look under way when the episode ends counts with what was seen of it.
pub fn holds(episodes: &[Trajectory]) -> Vec<u64> {
    let mut counts = Vec::new();
    for episode in episodes {
        let Some(grid) = episode.grid else { continue };
        let mut running = vec![0_usize; grid.len()];
        let mut end = |length: usize| {
            if length > 0 {
                if counts.len() < length {
                    counts.resize(length, 0);
                }
                counts[length - 1] += 1;
            }
        };
        for selected in &episode.selected {
            for (patch, running) in running.iter_mut().enumerate() {
                if selected.contains(&(patch as u32)) {
                    *running += 1;
                } else {
                    end(std::mem::take(running));
                }
            }
        }
        running.into_iter().for_each(end);
    }
    counts
}

/// The number of decisions that half of all looks (by time spent) last at least.
pub fn typical_hold(holds: &[u64]) -> usize {
    let spent = |(i, &count): (usize, &u64)| (i as u64 + 1) * count;
    let all: u64 = holds.iter().enumerate().map(spent).sum();
    let mut sum = 0;
    for (i, count) in holds.iter().enumerate() {
        sum += spent((i, count));
        if 2 * sum >= all {
            return i + 1;
        }
    }
    0
}

/// How the attention moves around a change of the action.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AroundChanges {
    /// Lag in decisions, mean part of the patches that are new, and its 95 % interval over episodes; one episode has
    /// none.
    pub lags: Vec<(i64, f64, Option<[f64; 2]>)>,
    /// The same over all decisions.
    pub usual: f64,
    /// Changes of the action that were looked at.
    pub changes: usize,
}

/// Decisions before and after a change that are looked at.
const LAGS: i64 = 15;

/// The part of the looked-at patches that were not looked at one decision before, around the twentieth of all
/// decisions in which the action changes most.
pub fn around_changes(episodes: &[Trajectory], scale: &ActionScale) -> AroundChanges {
    let moves: Vec<Vec<f64>> = episodes.iter().map(moves).collect();
    let changes: Vec<Vec<f64>> = episodes.iter().map(|e| action_changes(e, scale)).collect();
    let all: Vec<f64> = changes.iter().flatten().copied().collect();
    if all.is_empty() || episodes.iter().all(|e| e.grid.is_none()) {
        return AroundChanges::default();
    }
    let large = quantile(&all, 0.95);
    let events: Vec<Vec<usize>> = changes
        .iter()
        .map(|c| c.iter().enumerate().filter(|&(_, &c)| c >= large && c > 0.0).map(|(t, _)| t).collect())
        .collect();
    let lags = (-LAGS..=LAGS)
        .map(|lag| {
            // The mean of each episode first: an interval over decisions would take neighbours for independent.
            let means: Vec<f64> = moves
                .iter()
                .zip(&events)
                .filter_map(|(moves, events)| {
                    let at = |t: &usize| moves.get(usize::try_from(*t as i64 + lag).ok()?).copied();
                    let near: Vec<f64> = events.iter().filter_map(at).collect();
                    (!near.is_empty()).then(|| mean(&near))
                })
                .collect();
            (lag, mean(&means), mean_interval(&means))
        })
        .collect();
    let flat: Vec<f64> = moves.iter().flatten().copied().collect();
    AroundChanges { lags, usual: mean(&flat), changes: events.iter().map(Vec::len).sum() }
}

/// Entry `t`: the part of the patches of decision `t + 1` that decision `t` did not look at.
fn moves(episode: &Trajectory) -> Vec<f64> {
    let new = |pair: &[Vec<u32>]| {
        let fresh = pair[1].iter().filter(|patch| !pair[0].contains(patch)).count();
        fresh as f64 / pair[1].len().max(1) as f64
    };
    episode.selected.windows(2).map(new).collect()
}

/// Entry `t`: how far action `t + 1` lies from action `t`.
fn action_changes(episode: &Trajectory, scale: &ActionScale) -> Vec<f64> {
    episode.actions.windows(2).map(|pair| scale.distance(&pair[0], &pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(selected: &[&[u32]], actions: &[f64]) -> Trajectory {
        Trajectory {
            grid: Some(PatchGrid::tile(9, 9, 3, 3).expect("fits")),
            selected: selected.iter().map(|patches| patches.to_vec()).collect(),
            actions: actions.iter().map(|&a| vec![a]).collect(),
            rewards: vec![0.0; selected.len()],
            ..Trajectory::default()
        }
    }

    #[test]
    fn looks_are_counted_by_place_and_by_length() {
        let seen = episode(&[&[0, 4], &[0, 4], &[0, 8], &[4, 8]], &[0.0; 4]);
        let grid = seen.grid.expect("it looks");
        let density = density(std::slice::from_ref(&seen), grid);
        assert_eq!([density[0], density[4], density[8]], [3.0 / 8.0, 3.0 / 8.0, 2.0 / 8.0]);
        let regions = regions(&density, grid);
        assert_eq!((&*regions[4].name, regions[4].looks), ("middle centre", 3.0 / 8.0));
        assert!(regions.iter().all(|r| (r.patches - 1.0 / 9.0).abs() < 1e-12));
        // Patch 0 for three decisions, 4 for two and one, 8 for two.
        assert_eq!(holds(std::slice::from_ref(&seen)), [1, 2, 1]);
        assert_eq!(typical_hold(&[1, 2, 1]), 2);
        assert_eq!(typical_hold(&[]), 0);
    }

    #[test]
    fn a_gaze_that_leads_the_action_is_found_to_lead() {
        // The gaze jumps two decisions before the action does, every 40 decisions.
        let selected: Vec<Vec<u32>> = (0..400_u32).map(|t| vec![(t + 2) / 40 % 9]).collect();
        let actions: Vec<f64> = (0..400).map(|t| f64::from(t / 40 % 2)).collect();
        let borrowed: Vec<&[u32]> = selected.iter().map(|l| &l[..]).collect();
        let scale = ActionScale::Box(vec![[0.0, 1.0]]);
        let found = around_changes(&[episode(&borrowed, &actions)], &scale);
        assert_eq!(found.changes, 9);
        for (lag, moved, interval) in found.lags {
            assert_eq!(interval, None, "one episode has no interval");
            assert_eq!(moved, f64::from(u8::from(lag == -2)), "lag {lag}");
        }
    }
}
