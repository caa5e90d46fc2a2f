//! Wall and CPU clocks: the only module that reads the time.
//!
//! Compare CPU time on a shared machine; wall time is how long a user waits.

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// A stopwatch for wall time.
#[derive(Debug, Clone, Copy)]
pub struct Wall(Instant);

impl Wall {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    pub fn start() -> Self {
        Wall(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A stopwatch for CPU time of this process, over all threads, and of worker processes that host Gymnasium
/// environments for it (as far as they have reported, see [`foveate_gym::worker_cpu`]).
#[derive(Debug, Clone, Copy)]
pub struct ProcessCpu(Duration);

impl ProcessCpu {
    /// Starts now.
    pub fn start() -> Self {
        ProcessCpu(process_cpu() + foveate_gym::worker_cpu())
    }

    /// CPU time since the start, user and system, of all threads.
    pub fn elapsed(&self) -> Duration {
        (process_cpu() + foveate_gym::worker_cpu()).saturating_sub(self.0)
    }
}

/// A stopwatch for CPU time of the calling thread.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCpu(Duration);

impl ThreadCpu {
    /// Starts now.
    pub fn start() -> Self {
        ThreadCpu(thread_cpu())
    }

    /// CPU time of this thread since the start. Call it on the thread that started the stopwatch.
    pub fn elapsed(&self) -> Duration {
        thread_cpu().saturating_sub(self.0)
    }
}

/// CPU time of this process so far: user and system, all threads.
pub fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread so far.
pub fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let t = clock_gettime(clock);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Seconds since 1970, UTC.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The date and time in UTC, as in `2026-11-21T09:10:00Z`.
pub fn utc_now() -> String {
    utc(unix_now())
}

/// Seconds since 1970 as date and time in UTC.
pub fn utc(seconds: u64) -> String {
    // Days are counted from 1 March of year 0, so that the leap day is the last day of a year; 400 years have
    // 146,097 days.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let s = seconds % 86_400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, expect) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), expect);
        }
    }

    #[test]
    fn cpu_clocks_count_this_threads_work_and_go_forward() {
        let (process, thread, wall) = (ProcessCpu::start(), ThreadCpu::start(), Wall::start());
        let mut x = 1_u64;
        while thread.elapsed() < Duration::from_millis(5) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let on_thread = thread.elapsed();
        assert!(process.elapsed() >= on_thread, "the process counts at least what its thread does");
        assert!(wall.elapsed() >= on_thread, "one thread cannot compute longer than the wall clock runs");

        // A sleeping thread uses (almost) no CPU time: this distinguishes a CPU clock from a wall clock.
        let asleep = std::thread::spawn(|| {
            let (cpu, wall) = (ThreadCpu::start(), Wall::start());
            std::thread::sleep(Duration::from_millis(30));
            (cpu.elapsed(), wall.elapsed())
        });
        let (cpu, wall) = asleep.join().expect("the sleeper does not panic");
        assert!(cpu < wall, "slept {wall:?}, computed {cpu:?}");
    }
}
