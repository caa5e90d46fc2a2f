//! Track seeds by purpose.

use foveate_core::{Purpose, Seed};

/// The world's seed for a job. Tracks of different purposes never coincide, and no seed is a small number, so
/// a later evaluation with `--seeds 0..100` uses tracks that were not trained on.
pub fn track_seed(job: Seed, purpose: Purpose) -> u64 {
    let class = match purpose {
        Purpose::Training => 0,
        Purpose::Validation => 1,
        Purpose::Finals => 2,
        Purpose::Report => 3,
        // Two bits encode four purposes; the fifth uses the half of the range below them.
        Purpose::Evaluation => return (1 << 29) | (job.env_seed() & 0x1fff_ffff),
    };
    // Gymnasium accepts 31 bits: one keeps seeds away from small numbers, 28 are the job's, two are the
    // purpose.
    (1 << 30) | (job.env_seed() & 0x3fff_fffc) | class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_of_different_purposes_never_meet() {
        use Purpose::{Evaluation, Finals, Report, Training, Validation};
        let mut seen = std::collections::BTreeMap::new();
        for i in 0..20_000 {
            let job = Seed::root(3).child("track", i);
            for purpose in [Training, Validation, Finals, Report, Evaluation] {
                let seed = track_seed(job, purpose);
                assert!((1 << 29..1 << 31).contains(&seed));
                if let Some(other) = seen.insert(seed, purpose) {
                    assert_eq!(other, purpose);
                }
            }
        }
    }

    #[test]
    fn published_tracks_stay_what_they_are() {
        let job = Seed::root(1).child("report", 0);
        let seeds =
            [Purpose::Training, Purpose::Validation, Purpose::Finals, Purpose::Report, Purpose::Evaluation]
                .map(|purpose| track_seed(job, purpose));
        assert_eq!(seeds, [1_282_196_668, 1_282_196_669, 1_282_196_670, 1_282_196_671, 745_325_759]);
    }
}
