//! Time of `ask` and `tell` of CMA-ES for the parameter count of an agent.

use foveate_core::{EvolveError, Evolver, Seed};
use foveate_evolve::{CmaEs, CmaEsConfig, Form};
use serde::Serialize;

use crate::clock::ThreadCpu;

/// Initial σ; it does not affect the amount of work.
const SIGMA: f64 = 0.1;

/// CPU time and memory of an evolution strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvolveTiming {
    /// The form of the covariance matrix's root.
    pub form: Form,
    /// Parameters of a genome.
    pub params: usize,
    /// Genomes of a generation.
    pub population: usize,
    /// Generations between two factorisations of the covariance matrix.
    pub interval: u64,
    /// CPU seconds of `ask` and `tell` together per generation, over a whole interval, one thread, the
    /// fastest of several intervals.
    pub cpu_s: f64,
    /// Peak memory of this process so far in megabytes (2²⁰ bytes), where the system reports it.
    pub peak_mb: Option<f64>,
}

/// Measures the time of CMA-ES on a sphere function around the origin, from a start point near it, after one
/// warm-up interval.
///
/// # Errors
/// When a setting is invalid, or this build does not include the form.
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

/// Peak memory of this process as Linux reports it.
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
