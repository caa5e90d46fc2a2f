//! Measures the difference between the fast picture and Gymnasium's frames, run by run.

use foveate_envs::car_racing::picture::FRAME_BYTES;
use foveate_envs::car_racing::picture::fast::FastPicture;

use crate::frames::{self, Record};

/// Maximum mean absolute error of a run, in levels of 255. Measured: 0.01 to 0.03.
const ALLOWED: f64 = 0.1;

/// Histogram of the byte differences.
struct Differences {
    track: u64,
    frames: usize,
    by_size: [u64; 256],
}

impl Differences {
    const fn new(track: u64) -> Self {
        Differences { track, frames: 0, by_size: [0; 256] }
    }

    fn compare(&mut self, ours: &[u8], theirs: &[u8]) {
        assert_eq!(ours.len(), theirs.len());
        self.frames += 1;
        for (a, b) in ours.iter().zip(theirs) {
            self.by_size[usize::from(a.abs_diff(*b))] += 1;
        }
    }

    fn mean(&self) -> f64 {
        let sum: u64 = (0u64..).zip(&self.by_size).map(|(size, n)| size * n).sum();
        sum as f64 / (self.frames * FRAME_BYTES) as f64
    }

    /// Prints the run's result; returns whether the error is small enough.
    fn check(&self) -> bool {
        let all: u64 = self.by_size.iter().sum();
        let mut rest = all;
        let high = self.by_size.iter().position(|n| {
            rest -= n;
            rest * 1000 <= all
        });
        eprintln!(
            "track {:2}: {:4} frames, mean error {:.4}, identical {:.2} %, 99.9th percentile {}, largest {}",
            self.track,
            self.frames,
            self.mean(),
            100.0 * self.by_size[0] as f64 / all as f64,
            high.unwrap_or(255),
            self.by_size.iter().rposition(|&n| n > 0).unwrap_or(0),
        );
        self.mean() <= ALLOWED
    }
}

#[test]
fn frames_are_close_to_gymnasiums() {
    let Some((mut child, mut stream)) = frames::start("sparse") else { return };
    let mut picture = FastPicture::new();
    let mut frame = vec![0; FRAME_BYTES];
    let mut runs: Vec<Differences> = Vec::new();
    while let Some(record) = stream.next().expect("the oracle's stream is whole") {
        if let Record::Frame(theirs) = record {
            let scene = stream.scene();
            picture.draw(&scene, &mut frame);
            if runs.last().is_none_or(|run| run.track != scene.track_id) {
                runs.push(Differences::new(scene.track_id));
            }
            runs.last_mut().expect("just pushed").compare(&frame, &theirs);
        }
    }
    assert!(child.wait().expect("the oracle ends").success());
    let n_frames: usize = runs.iter().map(|run| run.frames).sum();
    assert!(n_frames > 300 && runs.len() > 15, "the oracle gave {n_frames} frames of {} runs", runs.len());
    let far: Vec<u64> = runs.iter().filter(|run| !run.check()).map(|run| run.track).collect();
    assert!(far.is_empty(), "mean error above {ALLOWED} on tracks {far:?}");
}
