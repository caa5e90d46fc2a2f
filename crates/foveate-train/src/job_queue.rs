//! Which rollout next: the longest expected first, so that none that is long begins when all others are done.
//!
//! What is expected comes from lengths already seen: of the same track, and of the same genome in this batch. It
//! changes the order of the work alone, never what comes out of it.

use foveate_core::RolloutJob;

/// Tracks whose lengths are remembered.
const TRACKS: usize = 1024;
/// Jobs compared for one choice; more could not pay for the time of comparing them.
const WINDOW: usize = 1024;
/// Lengths that a track's mean goes back to.
const MEMORY: f64 = 64.0;

/// The jobs of a batch that still wait, and what is known of lengths.
#[derive(Debug, Default)]
pub struct JobQueue {
    /// Indices of the jobs that no one has taken.
    waiting: Vec<usize>,
    /// By genome of this batch.
    genomes: Vec<Mean>,
    /// Of this batch, all genomes together.
    batch: Mean,
    tracks: Vec<Track>,
}

/// A mean, as it grows.
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

    /// 0 of nothing.
    fn value(self) -> f64 {
        self.sum / self.count.max(1.0)
    }
}

/// What is remembered in one place of the table of tracks: the one seen last of those that belong there.
#[derive(Debug, Clone, Copy, Default)]
struct Track {
    seed: u64,
    length: Mean,
}

impl JobQueue {
    /// A new batch. What was learnt about tracks stays; genomes are others.
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
        // Of equals, first one of every genome: what it shows says most about the others.
        let (at, _) = window.max_by(|(_, a), (_, b)| {
            let (x, y) = (jobs[**a], jobs[**b]);
            let longer = self.expected(x).total_cmp(&self.expected(y));
            longer.then(y.episode.cmp(&x.episode)).then(b.cmp(a))
        })?;
        Some(self.waiting.swap_remove(at))
    }

    /// Learns how long a job took.
    pub fn done(&mut self, job: RolloutJob, steps: u64) {
        let steps = steps as f64;
        self.genomes[job.genome].add(steps);
        self.batch.add(steps);
        let track = &mut self.tracks[place(job.env_seed)];
        if track.seed != job.env_seed {
            *track = Track { seed: job.env_seed, length: Mean::default() };
        }
        // Old news fade: a track is worth what it took the last few times.
        if track.length.count >= MEMORY {
            let faded = (MEMORY - 1.0) / MEMORY;
            track.length.sum *= faded;
            track.length.count *= faded;
        }
        track.length.add(steps);
    }

    /// Steps that a job is expected to take: as the track does, and as the genome differs from the others. One result
    /// of a genome counts half, two count two thirds.
    fn expected(&self, job: RolloutJob) -> f64 {
        let track = &self.tracks[place(job.env_seed)];
        let known = track.seed == job.env_seed && track.length.count > 0.0;
        let of_track = if known { track.length.value() } else { self.batch.value() };
        let genome = self.genomes[job.genome];
        of_track + genome.count / (genome.count + 1.0) * (genome.value() - self.batch.value())
    }
}

/// The place of a track in the table.
fn place(seed: u64) -> usize {
    // Multiplied by 2⁶⁴ over the golden ratio, neighbouring seeds land far apart.
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

    /// When the last of `workers` is done, in steps, if job `i` takes `lengths[i]`, and the order that jobs began in.
    fn play(
        schedule: &mut JobQueue,
        jobs: &[RolloutJob],
        lengths: &[u64],
        workers: usize,
    ) -> (u64, Vec<usize>) {
        schedule.begin(jobs);
        let (mut order, mut now) = (vec![], 0);
        // Under way: when it ends, and which it is.
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

    /// Lengths as training has them: a genome that drives badly does so on every track.
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
                // The first free worker takes the next in line.
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
