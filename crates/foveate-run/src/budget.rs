//! Estimates what a job needs before it begins, and checks that this machine has it.
//!
//! All estimates are here, in bytes, as upper bounds of what is allocated permanently: a job that would not
//! fit is rejected with its numbers instead of being killed hours later. Absolute limits on counts (episodes,
//! workers, rows) stand beside what they limit; they catch typing errors on any machine.

use std::fs;
use std::path::Path;

use foveate_core::hint::Setting;
use foveate_core::{EnvSpec, TensorShape};
use serde_json::Value;

use crate::error::RunError;
use foveate_registry::WORLDS;

/// Assumed memory where the system does not report how much is free.
const USUAL_MEMORY: u64 = 16 << 30;
/// A worker with the smallest world and agent, two copies each.
pub(crate) const WORKER: u64 = 1 << 20;
/// Address space that the C library sets aside for each thread: it counts where the process has a limit (`ulimit -v`), and a small
/// allocation that fails ends the program.
const ARENA: u64 = 64 << 20;
/// Threads beside workers: the one that waits for them, and that of signals and progress.
const OTHER_THREADS: u64 = 2;
/// A Python interpreter with numpy and Gymnasium; some games take more.
const PYTHON: u64 = 40 << 20;
/// A job of a batch with its result.
pub(crate) const JOB: u64 = 300;
/// Parts of a job and the bytes that each needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Need {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    what: String,
    bytes: u64,
    remedy: String,
}

impl Need {
    /// Adds `count` times `each` bytes for `what`; `remedy` says what to change if it is too much.
    pub(crate) fn with(
        mut self,
        what: impl Into<String>,
        count: u64,
        each: u64,
        remedy: impl Into<String>,
    ) -> Self {
        self.parts.push(Part { what: what.into(), bytes: count.saturating_mul(each), remedy: remedy.into() });
        self
    }

    fn total(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Checks that everything fits into `free` bytes of `place`; `job` names the job.
    fn check(&self, job: &str, place: &str, free: u64) -> Result<(), RunError> {
        let total = self.total();
        let Some(largest) = self.parts.iter().max_by_key(|part| part.bytes) else { return Ok(()) };
        if total <= free {
            return Ok(());
        }
        Err(RunError::BadRequest {
            why: format!(
                "{job} needs about {} of {place}, {} of it for {}, and {} are free; {}",
                size(total),
                size(largest.bytes),
                largest.what,
                size(free),
                largest.remedy
            ),
        })
    }

    /// Checks that everything fits into the free memory of this machine; `job` names the job.
    ///
    /// # Errors
    /// When it does not fit.
    pub(crate) fn fits_memory(&self, job: &str) -> Result<(), RunError> {
        self.check(job, "memory", free_memory())
    }

    /// Checks that everything fits on the disk of `folder`, which need not exist yet.
    ///
    /// # Errors
    /// When it does not fit.
    pub(crate) fn fits_disk(&self, job: &str, folder: &Path) -> Result<(), RunError> {
        match free_disk(folder) {
            Some(free) => self.check(job, "disk", free),
            // The later write reports what is wrong with the place.
            None => Ok(()),
        }
    }
}

/// A readable size, such as `1.5 GB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 99.95);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Bytes of memory that a job may still use, limited by the system, its container and the limits of this
/// process.
fn free_memory() -> u64 {
    let [system, container, process] = [system_memory(), container_memory(), process_memory()];
    [system, container, process].into_iter().flatten().min().unwrap_or(USUAL_MEMORY)
}

/// Memory that Linux reports as available, and swap.
fn system_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let available = kilobytes("MemAvailable")?;
    Some(available.saturating_add(kilobytes("SwapFree").unwrap_or(0)).saturating_mul(1024))
}

/// Memory left by the control groups of this process (version 2, and version 1 as containers mount it).
fn container_memory() -> Option<u64> {
    let number =
        |folder: &Path, name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    // Cached files count as free: they stay in memory only while nothing else needs it.
    let cached = |folder: &Path, key: &str| {
        let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let left = |limit: u64, used: u64, cached: u64| limit.saturating_sub(used.saturating_sub(cached));
    let old = Path::new("/sys/fs/cgroup/memory");
    let old = number(old, "memory.limit_in_bytes").map(|limit| {
        left(limit, number(old, "memory.usage_in_bytes").unwrap_or(0), cached(old, "total_inactive_file "))
    });
    let root = Path::new("/sys/fs/cgroup");
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let own = root.join(own);
    let new = own.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(|folder| {
        let limit = number(folder, "memory.max")?;
        Some(left(limit, number(folder, "memory.current").unwrap_or(0), cached(folder, "inactive_file ")))
    });
    new.chain(old).min()
}

/// Memory left by `ulimit -v`.
fn process_memory() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used: u64 = used.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(used.saturating_mul(1024)))
}

/// Bytes that can still be written to the disk of `folder`, which need not exist yet.
fn free_disk(folder: &Path) -> Option<u64> {
    let folder = std::path::absolute(folder).ok()?;
    let found = folder.ancestors().find(|folder| folder.is_dir())?;
    let disk = rustix::fs::statvfs(found).ok()?;
    // A file system without blocks, such as /proc, is not a disk.
    (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Number of values in all of these tensors.
pub(crate) fn count(tensors: &[TensorShape]) -> u64 {
    let of = |tensor: &TensorShape| tensor.shape.iter().fold(1, |n: u64, &d| n.saturating_mul(d as u64));
    tensors.iter().fold(0, |sum, tensor| sum.saturating_add(of(tensor)))
}

/// Bytes of an agent with these settings (all defaults included): its weights, also packed for its kernels,
/// and its scratch space for every patch of its picture.
pub(crate) fn agent(config: &Value, tensors: &[TensorShape], threads: usize) -> u64 {
    count(tensors).saturating_mul(16).saturating_add(scratch(config, threads as u64))
}

/// Memory of queries, keys and votes, wherever `config` divides a picture into patches.
fn scratch(config: &Value, threads: u64) -> u64 {
    let Value::Object(settings) = config else { return 0 };
    let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_u64).unwrap_or(0);
    let side = |i: usize| config.get("image").and_then(|image| image.get(i)).and_then(Value::as_u64);
    let mut bytes = 0_u64;
    if let (Some(width), Some(height)) = (side(0), side(1)) {
        let stride = number(config, "stride").max(1);
        let along = |side: u64| side.saturating_sub(number(config, "patch")) / stride + 1;
        let patches = along(width).saturating_mul(along(height));
        let voting = config.get("voting").unwrap_or(&Value::Null);
        let features = number(voting, "features").saturating_mul(1 + number(voting, "hyperplanes"));
        let embedded = patches.saturating_mul(number(config, "query_dim")).saturating_mul(24);
        let votes = patches.saturating_mul(64 + 32 * threads).saturating_add(features.saturating_mul(1024));
        bytes = embedded.saturating_add(votes).saturating_add(width.saturating_mul(height).saturating_mul(8));
    }
    settings.values().fold(bytes, |sum, value| sum.saturating_add(scratch(value, threads)))
}

/// Bytes of a copy of this world, including its process if it has one.
pub(crate) fn world(spec: &EnvSpec) -> u64 {
    let shown = spec.observation.bytes();
    // The newest frame, the previous one, and the copies of wrappers and shifts.
    4 * shown + if WORLDS.get(&spec.id).is_some_and(|world| world.has_process) { PYTHON } else { 0 }
}

/// Memory of `workers` workers that run agents of `params` parameters.
pub(crate) fn workers(workers: usize, params: usize, spec: &EnvSpec) -> Need {
    let (params, world) = (16 * params as u64, world(spec));
    // World and agent have a spare copy each; a process is not copied.
    let arena = if process_memory().is_some() { ARENA } else { 0 };
    let each = WORKER.saturating_add(2 * params).saturating_add(2 * world).saturating_add(arena);
    let what = format!("{workers} workers");
    Need::default().with("other threads", OTHER_THREADS, arena, "raise the limit (ulimit -v)").with(
        what,
        workers as u64,
        each,
        format!("lower {}", Setting::Workers),
    )
}

/// Checks that an evaluation of `episodes` episodes fits this machine.
///
/// # Errors
/// When it does not fit.
pub(crate) fn evaluation(
    episodes: usize,
    threads: usize,
    params: usize,
    spec: &EnvSpec,
) -> Result<(), RunError> {
    let what = format!("{episodes} episodes");
    workers(threads, params, spec)
        .with(what, episodes as u64, JOB, format!("lower {}", Setting::Episodes))
        .fits_memory("this evaluation")
}

#[cfg(test)]
mod tests {
    use foveate_envs::wrap::Wrapped;

    use super::*;

    #[test]
    fn sizes_for_people() {
        for (bytes, expect) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (99_949_999, "99.9 MB"),
            (100_000_000, "100 MB"),
            (999_600_000, "1.0 GB"),
            (10_900_000_000_000_000, "10.9 PB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(size(bytes), expect);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_numbers() {
        let need =
            Need::default().with("small things", 3, 10, "lower x").with("large ones", 2, 1000, "lower y");
        need.check("it", "memory", 2030).expect("it just fits");
        let said = need.check("it", "memory", 2029).expect_err("too much").to_string();
        assert_eq!(
            said,
            "it needs about 2.0 kB of memory, 2.0 kB of it for large ones, and 2.0 kB are free; lower y"
        );
        let endless =
            Need::default().with("all", u64::MAX, u64::MAX, "lower it").with("more", 1, 1, "lower it");
        assert!(endless.check("it", "memory", u64::MAX - 1).is_err());
    }

    #[test]
    fn this_machine_has_some_memory_and_disk() {
        assert!(free_memory() > 1 << 20);
        assert!(free_disk(Path::new("no/such/folder")).is_none_or(|free| free > 0));
    }

    fn spec() -> EnvSpec {
        let request = foveate_envs::registry::EnvRequest { id: "car-racing".into(), ..Default::default() };
        foveate_registry::make(&request).expect("a native world").spec().clone()
    }

    #[test]
    fn pictures_of_wrappers_are_counted() {
        let bytes = |text: &str| Wrapped::bytes(&text.parse().expect("wrappers"), &spec());
        assert_eq!(bytes("repeat:2+max"), 2 * 96 * 96 * 3 + 96 * 96 * 3);
        assert_eq!(bytes("grey"), 2 * 96 * 96 + 96 * 96, "one byte for each pixel");
        assert_eq!(bytes("stack:colors"), 2 * 96 * 96 * 3 + 2 * 96 * 96 * 3);
        assert_eq!(bytes("resize:4096x4096+stack:64"), 2 * 96 * 96 * 3 + 64 * 4096 * 4096 * 3);
    }
}
