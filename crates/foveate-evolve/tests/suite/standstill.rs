//! Every strategy where nothing changes any more: flat fitness, a plateau around the optimum, and the time after
//! convergence, over 20,000 generations.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use foveate_core::{Evolver, Seed, TensorData};
use foveate_evolve::{Form, STRATEGIES, StrategyConfig, make};

const GENERATIONS: u64 = 20_000;

/// A strategy that needs this long loops without a bound.
const LIMIT: Duration = Duration::from_mins(10);

type Function = fn(&[f64]) -> f64;

fn flat(_: &[f64]) -> f64 {
    7.0
}

fn plateau(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().max(1e-3)
}

fn rastrigin(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x - 10.0 * (std::f64::consts::TAU * x).cos() + 10.0).sum()
}

/// Every strategy of the registry, CMA-ES in each of its forms, and those whose step sizes decay.
fn all() -> Vec<StrategyConfig> {
    let mut texts: Vec<String> =
        STRATEGIES.iter().map(|info| format!("algorithm = '{}'", info.name)).collect();
    if Form::BUILT.contains(&Form::Eigen) {
        texts.push("algorithm = 'cma-es'\nform = 'eigen'".into());
    }
    for name in ["openai-es", "simple-ga"] {
        texts.push(format!("algorithm = '{name}'\nsigma_decay = 0.99"));
    }
    texts
        .iter()
        .map(|text| toml::from_str(&format!("{text}\nsigma = 0.5")).expect("the settings are right"))
        .collect()
}

fn generation(strategy: &mut dyn Evolver, f: Function) {
    let population = strategy.ask();
    let genome = |i: usize| population.genome(i).iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let fitness: Vec<f64> = (0..population.len()).map(|i| -f(&genome(i))).collect();
    let generation = strategy.generation();
    let progress = strategy.tell(&fitness).unwrap_or_else(|error| panic!("generation {generation}: {error}"));
    assert!(progress.sigma.is_finite() && progress.sigma > 0.0, "{progress:?}");
}

fn run(config: &StrategyConfig, f: Function, n: usize, seed: u64) {
    let new = || make(config, vec![3.0; n], Seed::root(seed)).expect("the settings are right");
    let mut strategy = new();
    for _ in 0..GENERATIONS {
        generation(&mut *strategy, f);
    }
    for (name, tensor) in strategy.state() {
        let finite = match tensor.data() {
            TensorData::F64(values) => values.iter().all(|x| x.is_finite()),
            TensorData::F32(values) => values.iter().all(|x| x.is_finite()),
            _ => true,
        };
        assert!(finite, "{name}: {tensor:?}");
    }
    let mut resumed = new();
    resumed.restore(&strategy.state()).expect("its own state");
    for _ in 0..50 {
        generation(&mut *strategy, f);
        generation(&mut *resumed, f);
    }
    assert_eq!(resumed.state(), strategy.state());
}

#[track_caller]
fn check(f: Function, seeds: u64) {
    thread::scope(|scope| {
        for config in all() {
            for n in [1, 2, 5] {
                let (done, ended) = mpsc::channel();
                let name = config.name();
                let config = config.clone();
                // Not of the scope: where the strategy hangs, the test must end all the same.
                let job = thread::spawn(move || {
                    (1..=seeds).for_each(|seed| run(&config, f, n, seed));
                    let _ = done.send(());
                });
                scope.spawn(move || match ended.recv_timeout(LIMIT) {
                    Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name} in {n} dimensions does not end"),
                    _ => assert!(job.join().is_ok(), "{name} in {n} dimensions"),
                });
            }
        }
    });
}

#[test]
fn flat_fitness_never_ends_a_search() {
    check(flat, 2);
}

#[test]
fn a_plateau_around_the_optimum_never_ends_a_search() {
    check(plateau, 1);
}

#[test]
fn a_search_that_has_converged_goes_on() {
    check(rastrigin, 1);
}
