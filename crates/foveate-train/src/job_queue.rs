//! Order of rollouts: the longest expected rollout first, so that no long one starts when all others are
//! done.
//!
//! The expected length comes from lengths already seen, of the same track and of the same genome in this
//! batch. It only changes the order of the work, never the results.

use foveate_core::RolloutJob;

/// Tracks whose lengths are remembered.
const TRACKS: usize = 1024;
/// Jobs that one choice compares; comparing more would cost more time than it saves.
const WINDOW: usize = 1024;
/// Number of recent lengths that the mean of a track covers.
const MEMORY: f64 = 64.0;

/// The waiting jobs of a batch, and the statistics of lengths.
#[derive(Debug, Default)]
pub struct JobQueue {
    /// Indices of the jobs that no worker has taken.
    waiting: Vec<usize>,
    /// Mean length of each genome of this batch.
    genomes: Vec<Mean>,
    /// Mean length in this batch, over all genomes.
    batch: Mean,
    tracks: Vec<Track>,
}

/// A running mean.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.sum += x;
        self.count += 1.0;
    }

    /// The mean; 0 without values.
    fn value(self) -> f64 {
        self.sum / self.count.max(1.0)
    }
}

/// An entry of the table of tracks. Several tracks share an entry; it holds the one that was seen last.
#[derive(Debug, Clone, Copy, Default)]
struct Track {
    seed: u64,
    length: Mean,
}

impl JobQueue {
    /// Starts a new batch. The statistics of tracks are kept; those of genomes are cleared.
    pub fn begin(&mut self, jobs: &[RolloutJob]) {
        self.waiting.clear();
        self.waiting.extend(0..jobs.len());
        self.genomes.clear();
        self.genomes.resize(jobs.iter().map(|job| job.genome + 1).max().unwrap_or(0), Mean::default());
        self.batch = Mean::default();
        self.tracks.resize(TRACKS, Track::default());
    }

    /// The next job.
    pub fn take(&mut self, jobs: &[RolloutJob]) -> Option<usize> {
        let window = self.waiting.iter().take(WINDOW).enumerate();
        // Among equal jobs, first one of each genome: its length says most about the genome's other jobs.
        let (at, _) = window.max_by(|(_, a), (_, b)| {
            let (x, y) = (jobs[**a], jobs[**b]);
            let longer = self.expected(x).total_cmp(&self.expected(y));
            longer.then(y.episode.cmp(&x.episode)).then(b.cmp(a))
        })?;
        Some(self.waiting.swap_remove(at))
    }

    /// Records how many steps a job took.
    pub fn done(&mut self, job: RolloutJob, steps: u64) {
        let steps = steps as f64;
        self.genomes[job.genome].add(steps);
        self.batch.add(steps);
        let track = &mut self.tracks[place(job.env_seed)];
        if track.seed != job.env_seed {
            *track = Track { seed: job.env_seed, length: Mean::default() };
        }
        // Old lengths lose weight, so that a track's mean follows the last few.
        if track.length.count >= MEMORY {
            let faded = (MEMORY - 1.0) / MEMORY;
            track.length.sum *= faded;
            track.length.count *= faded;
        }
        track.length.add(steps);
    }

    /// Expected steps of a job: the mean of the track, corrected by how much the genome differs from the
    /// others. One result of a genome has weight one half, two have two thirds.
    fn expected(&self, job: RolloutJob) -> f64 {
        let track = &self.tracks[place(job.env_seed)];
        let known = track.seed == job.env_seed && track.length.count > 0.0;
        let of_track = if known { track.length.value() } else { self.batch.value() };
        let genome = self.genomes[job.genome];
        of_track + genome.count / (genome.count + 1.0) * (genome.value() - self.batch.value())
    }
}

/// Index of a track in the table.
fn place(seed: u64) -> usize {
    // Fibonacci hashing (multiplication by 2⁶⁴ over the golden ratio) spreads neighbouring seeds.
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % TRACKS
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    fn jobs(genomes: usize, tracks: usize, first_seed: u64) -> Vec<RolloutJob> {
        let job = |genome, episode| RolloutJob { genome, episode, env_seed: first_seed + episode as u64 };
        (0..genomes).flat_map(|genome| (0..tracks).map(move |episode| job(genome, episode))).collect()
    }

    /// The step at which the last of `workers` finishes if job `i` takes `lengths[i]` steps, and the order in
    /// which jobs start.
    fn play(
        schedule: &mut JobQueue,
        jobs: &[RolloutJob],
        lengths: &[u64],
        workers: usize,
    ) -> (u64, Vec<usize>) {
        schedule.begin(jobs);
        let (mut order, mut now) = (vec![], 0);
        // Running jobs: end step and index.
        let mut busy: Vec<(u64, usize)> = vec![];
        loop {
            while busy.len() < workers
                && let Some(index) = schedule.take(jobs)
            {
                order.push(index);
                busy.push((now + lengths[index], index));
            }
            let Some(next) = busy.iter().enumerate().min_by_key(|(_, b)| **b).map(|(at, _)| at) else {
                return (now, order);
            };
            let (end, index) = busy.swap_remove(next);
            now = end;
            schedule.done(jobs[index], lengths[index]);
        }
    }

    #[test]
    fn every_job_is_taken_once_and_track_by_track_while_nothing_is_known() {
        for (genomes, tracks) in [(1, 1), (3, 4), (40, 40), (0, 0)] {
            let jobs = jobs(genomes, tracks, 5);
            let (_, mut order) = play(&mut JobQueue::default(), &jobs, &vec![7; jobs.len()], 3);
            if jobs.len() <= WINDOW {
                let in_order = order.is_sorted_by_key(|&index| (jobs[index].episode, index));
                assert!(in_order, "{genomes} genomes, {tracks} tracks: {order:?}");
            }
            order.sort_unstable();
            assert_eq!(order, (0..jobs.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn tracks_that_took_long_come_first_the_next_time() {
        let jobs = jobs(1, 6, 90);
        let lengths = [300, 1000, 20, 900, 50, 700];
        let mut schedule = JobQueue::default();
        play(&mut schedule, &jobs, &lengths, 2);
        assert_eq!(play(&mut schedule, &jobs, &lengths, 2).1, [1, 3, 5, 0, 4, 2]);
    }

    #[test]
    fn genomes_that_drive_long_come_first_on_their_next_tracks() {
        let jobs = jobs(2, 3, 0);
        let lengths = [50, 50, 50, 900, 900, 900];
        let (_, order) = play(&mut JobQueue::default(), &jobs, &lengths, 1);
        assert_eq!(order[..4], [0, 3, 4, 5], "one rollout of each tells which of them drives");
    }

    /// Rollout lengths as in training: a genome that drives badly does so on every track.
    fn lengths(genomes: usize, tracks: usize, seed: u64) -> Vec<u64> {
        let mut rng = Seed::root(seed).rng();
        let mut all = vec![];
        for _ in 0..genomes {
            let skill = rng.uniform(0.0, 1.0);
            let length = |luck: f64| (1300.0 * skill + luck).clamp(40.0, 1000.0) as u64;
            all.extend((0..tracks).map(|_| length(rng.uniform(-150.0, 150.0))));
        }
        all
    }

    #[test]
    fn stragglers_cost_less_than_in_the_order_given() {
        for workers in [2, 8, 32] {
            let (mut ours, mut plain, mut best) = (0, 0, 0);
            for seed in 0..20 {
                let (jobs, lengths) = (jobs(64, 8, 100 * seed), lengths(64, 8, seed));
                ours += play(&mut JobQueue::default(), &jobs, &lengths, workers).0;
                // The first free worker takes the next job.
                let mut free = vec![0; workers];
                for length in &lengths {
                    *free.iter_mut().min().expect("a worker") += length;
                }
                plain += free.iter().max().expect("a worker");
                best += lengths.iter().sum::<u64>().div_ceil(workers as u64);
            }
            let [ours, plain] = [ours, plain].map(|end: u64| end as f64 / best as f64 - 1.0);
            assert!(ours < 0.7 * plain, "{workers} workers idle {ours}, in the order given {plain}");
        }
    }
}
