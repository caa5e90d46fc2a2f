//! Time of `ask` and `tell` of an evolution strategy for the parameter count of an agent.

use foveate_core::{EvolveError, Evolver};
use serde::Serialize;

use crate::clock::ThreadCpu;

/// CPU time and memory of an evolution strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvolveTiming {
    /// The caller's name for the strategy's settings.
    pub form: String,
    /// Parameters of a genome.
    pub params: usize,
    /// Genomes of a generation.
    pub population: usize,
    /// Generations of a measured interval.
    pub interval: u64,
    /// CPU seconds of `ask` and `tell` together per generation, over a whole interval, one thread, the
    /// fastest of several intervals.
    pub cpu_s: f64,
    /// Peak memory of this process so far in megabytes (2²⁰ bytes), where the system reports it.
    pub peak_mb: Option<f64>,
}

/// Measures the time of a strategy on a sphere function around the origin, `passes` times over `interval`
/// generations and at least once, after one warm-up interval.
///
/// A strategy that does its most expensive work only every few generations is measured with that many as the
/// interval.
///
/// # Errors
/// When the strategy rejects the fitness.
pub fn evolve(
    form: &str,
    strategy: &mut dyn Evolver,
    interval: u64,
    passes: usize,
) -> Result<EvolveTiming, EvolveError> {
    let interval = interval.max(1);
    let (params, mut population) = (strategy.centre().len(), 0);
    let (mut best, mut fitness) = (f64::INFINITY, Vec::new());
    for pass in 0..=passes.max(1) {
        let mut cpu_s = 0.0;
        for _ in 0..interval {
            let clock = ThreadCpu::start();
            let genomes = strategy.ask();
            cpu_s += clock.elapsed().as_secs_f64();
            population = genomes.len();
            fitness.clear();
            fitness.extend(
                (0..population)
                    .map(|i| -genomes.genome(i).iter().map(|x| f64::from(*x).powi(2)).sum::<f64>()),
            );
            let clock = ThreadCpu::start();
            strategy.tell(&fitness)?;
            cpu_s += clock.elapsed().as_secs_f64();
        }
        if pass > 0 {
            best = best.min(cpu_s / interval as f64);
        }
    }
    let form = form.to_owned();
    Ok(EvolveTiming { form, params, population, interval, cpu_s: best, peak_mb: peak_mb() })
}

/// Peak memory of this process as Linux reports it.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kb| kb / 1024.0)
}
