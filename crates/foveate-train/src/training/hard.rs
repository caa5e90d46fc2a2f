//! Replay of hard tracks.

use foveate_core::{Purpose, Seed, StateDict, StateReader, Tensor};

use crate::error::TrainError;
use crate::recipe::{Replay, track_seed};

/// Decay of the moving average: about the last ten tracks.
const MEMORY: f64 = 0.9;

/// The hard tracks of a start, see [`Replay`].
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HardTracks {
    /// The world's seeds, and how far each was below the usual return in its last rollout; hardest first, all
    /// below 0.
    tracks: Vec<(u64, f64)>,
    /// Moving average of the returns of fresh tracks.
    usual: f64,
    /// Number of fresh tracks in the average.
    counted: u64,
}

/// A track of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) seed: u64,
    pub(super) again: bool,
}

impl HardTracks {
    /// The tracks of a generation: each is a fresh one or, with probability `share`, a hard one; no track
    /// occurs twice.
    pub(super) fn draw(&self, replay: Option<&Replay>, generation: Seed, count: usize) -> Vec<Track> {
        let mut left: Vec<u64> = self.tracks.iter().map(|t| t.0).collect();
        let draw = |number| {
            let mut rng = generation.child("replay", number).rng();
            if replay.is_some_and(|replay| rng.next_f64() < replay.share) && !left.is_empty() {
                return Track { seed: left.remove(rng.below(left.len() as u64) as usize), again: true };
            }
            let fresh = generation.child("track", number);
            Track { seed: track_seed(fresh, Purpose::Training), again: false }
        };
        (0..count as u64).map(draw).collect()
    }

    /// Records the returns of these tracks.
    pub(super) fn receive(&mut self, replay: &Replay, tracks: &[Track], scores: &[f64]) {
        for (track, &score) in tracks.iter().zip(scores) {
            // For the very first track the usual return is unknown.
            let behind = if self.counted == 0 { 0.0 } else { score - self.usual };
            self.tracks.retain(|known| known.0 != track.seed);
            if behind < 0.0 {
                let rank = self.tracks.partition_point(|known| known.1 <= behind);
                self.tracks.insert(rank, (track.seed, behind));
            }
            if !track.again {
                self.counted += 1;
                // In the beginning the average weighs all tracks equally.
                let keep = MEMORY.min(1.0 - 1.0 / self.counted as f64);
                self.usual = keep * self.usual + (1.0 - keep) * score;
            }
        }
        self.tracks.truncate(replay.keep);
    }

    pub(super) fn save(&self, state: &mut StateDict) {
        let (seeds, behind): (Vec<u64>, Vec<f64>) = self.tracks.iter().copied().unzip();
        state.insert("replay.seeds".into(), Tensor::from(seeds));
        state.insert("replay.behind".into(), Tensor::from(behind));
        state.insert("replay.usual".into(), Tensor::from(vec![self.usual]));
        state.insert("replay.heard".into(), Tensor::from(vec![self.counted]));
    }

    pub(super) fn load(replay: &Replay, state: &StateDict) -> Result<Self, TrainError> {
        let bad = |what: &str| TrainError::BadState { why: format!("the hard tracks are broken: {what}") };
        let reader = StateReader(state);
        let (seeds, behind) = (reader.u64s("replay.seeds")?, reader.any_f64s("replay.behind")?);
        let (usual, counted) = (reader.f64s("replay.usual", 1)?[0], reader.counts("replay.heard", 1)?[0]);
        let hard = behind.iter().all(|b| b.is_finite() && *b < 0.0) && behind.is_sorted();
        if seeds.len() != behind.len() || seeds.len() > replay.keep || !hard {
            return Err(bad("its numbers contradict each other"));
        }
        let tracks = seeds.iter().copied().zip(behind.iter().copied()).collect();
        Ok(HardTracks { tracks, usual, counted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::ReplayJudge;

    const REPLAY: Replay = Replay { share: 0.5, keep: 3, judge: ReplayJudge::Population };

    fn fresh(seed: u64) -> Track {
        Track { seed, again: false }
    }

    #[test]
    fn the_hardest_are_kept_until_they_are_mastered() {
        let mut hard = HardTracks::default();
        let seeds = |hard: &HardTracks| hard.tracks.iter().map(|t| t.0).collect::<Vec<_>>();
        hard.receive(&REPLAY, &[fresh(1)], &[-900.0]);
        assert_eq!(seeds(&hard), [0; 0], "nothing to compare with");
        // The usual is -900, -450, -300, …
        hard.receive(&REPLAY, &[fresh(2), fresh(3)], &[0.0, -500.0]);
        assert_eq!(seeds(&hard), [3]);
        let mut hard = HardTracks { usual: 500.0, counted: 100, ..HardTracks::default() };
        hard.receive(&REPLAY, &[fresh(4), fresh(5), fresh(6), fresh(7)], &[400.0, 100.0, 300.0, 200.0]);
        assert_eq!(seeds(&hard), [5, 7, 6], "the hardest three, hardest first");
        let usual = hard.usual;
        let again = |seed| Track { seed, again: true };
        hard.receive(&REPLAY, &[again(7), again(5)], &[usual + 1.0, usual - 1.0]);
        assert_eq!(seeds(&hard), [6, 5], "7 is mastered, 5 nearly");
        assert_eq!(hard.usual, usual, "replayed tracks say nothing about usual ones");
        assert_eq!(hard.counted, 104);
    }

    #[test]
    fn the_share_is_replayed_and_the_others_are_those_of_a_run_without() {
        let hard = HardTracks { tracks: vec![(11, -5.0), (12, -4.0), (13, -3.0)], usual: 0.0, counted: 9 };
        let (mut again, mut total) = (0, 0);
        for generation in 0..2000 {
            let generation = Seed::root(1).child("generation", generation);
            let plain = hard.draw(None, generation, 2);
            assert!(plain.iter().all(|t| !t.again));
            let tracks = hard.draw(Some(&REPLAY), generation, 2);
            assert_eq!(hard.draw(Some(&REPLAY), generation, 2), tracks);
            assert_ne!(tracks[0].seed, tracks[1].seed);
            for (track, plain) in tracks.iter().zip(plain) {
                assert!(if track.again { (11..14).contains(&track.seed) } else { *track == plain });
                again += usize::from(track.again);
                total += 1;
            }
        }
        assert!((f64::from(again as u32) / f64::from(total) - 0.5).abs() < 0.03, "{again} of {total}");
        // More tracks than there are hard ones.
        let many = hard.draw(Some(&Replay { share: 0.99, ..REPLAY }), Seed::root(2), 10);
        assert_eq!(many.iter().filter(|t| t.again).count(), 3);
        let none = HardTracks::default().draw(Some(&REPLAY), Seed::root(2), 10);
        assert!(none.iter().all(|t| !t.again));
    }

    #[test]
    fn broken_states_are_refused() {
        let hard = HardTracks { tracks: vec![(11, -5.0), (12, -4.0)], usual: 3.0, counted: 9 };
        let mut good = StateDict::new();
        hard.save(&mut good);
        assert_eq!(HardTracks::load(&REPLAY, &good), Ok(hard));
        let cases = [
            ("replay.seeds", Tensor::from(vec![1_u64])),
            ("replay.seeds", Tensor::from(vec![1.0, 2.0])),
            ("replay.behind", Tensor::from(vec![-4.0, -5.0])),
            ("replay.behind", Tensor::from(vec![-4.0, 5.0])),
            ("replay.behind", Tensor::from(vec![f64::NAN, -1.0])),
            ("replay.usual", Tensor::from(vec![f64::INFINITY])),
            ("replay.usual", Tensor::from(Vec::<f64>::new())),
            ("replay.heard", Tensor::from(vec![1_u64, 2])),
        ];
        for (name, tensor) in cases {
            let mut state = good.clone();
            state.insert(name.into(), tensor);
            assert!(HardTracks::load(&REPLAY, &state).is_err(), "{name}");
            state.remove(name);
            assert!(HardTracks::load(&REPLAY, &state).is_err(), "no {name}");
        }
        let small = Replay { keep: 1, ..REPLAY };
        assert!(HardTracks::load(&small, &good).is_err());
    }
}
