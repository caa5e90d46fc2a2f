//! `ask` and `tell` of CMA-ES at the size of an agent.

use foveate_core::{EvolveError, Evolver, Seed};
use foveate_evolve::{CmaEs, CmaEsConfig, Form};
use serde::Serialize;

use crate::clock::ThreadCpu;

/// σ at the start; the work does not depend on it.
const SIGMA: f64 = 0.1;

/// CPU time and memory of a strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvolveTiming {
    /// Which root of the covariance matrix.
    pub form: Form,
    /// Parameters of a genome.
    pub params: usize,
    /// Genomes of a generation.
    pub population: usize,
    /// Generations from one factorisation of the covariance matrix to the next.
    pub interval: u64,
    /// CPU seconds of `ask` and `tell` together per generation, over a whole interval, one thread, the fastest of
    /// several intervals.
    pub cpu_s: f64,
    /// Megabytes (2²⁰ bytes) of memory that this process ever held so far, where the system tells.
    pub peak_mb: Option<f64>,
}

/// Times CMA-ES on a sphere around the origin, from a place beside it, after one interval to warm up.
///
/// # Errors
/// When a setting makes no sense, or this build has not got the form.
pub fn evolve(
    form: Form,
    params: usize,
    population: usize,
    passes: usize,
) -> Result<EvolveTiming, EvolveError> {
    let config = CmaEsConfig { population: Some(population), sigma: SIGMA, form, ..CmaEsConfig::default() };
    let mut es = CmaEs::from_mean(config, vec![1.0; params], Seed::root(1))?;
    let interval = es.interval();
    let (mut best, mut fitness) = (f64::INFINITY, Vec::with_capacity(population));
    for pass in 0..=passes.max(1) {
        let mut cpu_s = 0.0;
        for _ in 0..interval {
            let clock = ThreadCpu::start();
            let genomes = es.ask();
            cpu_s += clock.elapsed().as_secs_f64();
            fitness.clear();
            fitness.extend(
                (0..genomes.len())
                    .map(|i| -genomes.genome(i).iter().map(|x| f64::from(*x).powi(2)).sum::<f64>()),
            );
            let clock = ThreadCpu::start();
            es.tell(&fitness)?;
            cpu_s += clock.elapsed().as_secs_f64();
        }
        if pass > 0 {
            best = best.min(cpu_s / interval as f64);
        }
    }
    Ok(EvolveTiming { form, params, population, interval, cpu_s: best, peak_mb: peak_mb() })
}

/// The high-water mark of this process, as Linux tells it.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kb| kb / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interval_holds_a_factorisation() {
        for &form in Form::BUILT {
            let timing = evolve(form, 60, 6, 2).expect("fine");
            assert!(timing.interval > 1 && timing.cpu_s > 0.0 && timing.cpu_s.is_finite(), "{timing:?}");
            assert_eq!(timing.peak_mb.is_some(), cfg!(target_os = "linux"));
        }
        assert!(evolve(Form::default(), 0, 6, 1).is_err());
    }
}
