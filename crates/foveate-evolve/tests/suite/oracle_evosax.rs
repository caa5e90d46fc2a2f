//! Compares our strategies with evosax's, generation by generation: with the same genomes and fitness they
//! make the same updates. Apart from these, they only share the initial mean.

use foveate_core::{Evolver, Seed};
use foveate_evolve::{Algorithm, OpenAiEs, Pgpe, SimpleGa, Snes, StrategyConfig};
use foveate_toy::oracle::Oracle;

/// Largest difference of means, in standard deviations of the search, and largest relative difference of
/// standard deviations.
///
/// Both sides compute in double precision. The remaining difference comes from the 1e-8 that the reference
/// adds to the variance of fitness when it standardises; ours checks whether the variance is 0.
const TOLERANCE: f64 = 1e-6;

#[test]
fn strategies_go_evosaxs_way() {
    let Some(mut oracle) = Oracle::start("oracle/evosax_runs.py") else { return };
    let mut runs = 0;
    loop {
        let name = oracle.text();
        if name == "end" {
            break;
        }
        let config: StrategyConfig = toml::from_str(&oracle.text()).expect("the script writes our settings");
        let [n_params, n_genomes, generations] = [(); 3].map(|()| oracle.count());
        assert!(generations >= 100, "{name}");
        let start = numbers(&mut oracle, n_params);
        let run = Run { name, n_params, n_genomes, generations };
        let seed = Seed::root(1);
        match config.algorithm {
            Algorithm::Snes(config) => {
                run.compare(&mut oracle, Snes::from_mean(config, start, seed).expect("fine"), |s, to| {
                    to.copy_from_slice(s.sigma());
                });
            }
            Algorithm::OpenaiEs(config) => {
                run.compare(&mut oracle, OpenAiEs::from_mean(config, start, seed).expect("fine"), |s, to| {
                    to.fill(s.sigma());
                });
            }
            Algorithm::Pgpe(config) => {
                run.compare(&mut oracle, Pgpe::from_mean(config, start, seed).expect("fine"), |s, to| {
                    to.copy_from_slice(s.sigma());
                });
            }
            Algorithm::SimpleGa(config) => {
                let sigma = config.sigma;
                run.breed(&mut oracle, SimpleGa::from_mean(config, start, seed).expect("fine"), sigma);
            }
            other => panic!("nothing to compare with {other:?}"),
        }
        runs += 1;
    }
    oracle.finish();
    assert!(runs >= 10, "{runs} runs");
}

struct Run {
    name: String,
    n_params: usize,
    n_genomes: usize,
    generations: usize,
}

impl Run {
    /// Passes the next population of the reference to `strategy`.
    fn tell(&self, oracle: &mut Oracle, strategy: &mut dyn Evolver) -> Vec<f64> {
        assert_eq!(strategy.ask().len(), self.n_genomes);
        let genomes = numbers(oracle, self.n_genomes * self.n_params);
        for (i, genome) in genomes.chunks_exact(self.n_params).enumerate() {
            for (to, &from) in strategy.population_mut().genome_mut(i).iter_mut().zip(genome) {
                assert_eq!(f64::from(from as f32), from, "the script rounds its genomes");
                *to = from as f32;
            }
        }
        let fitness = numbers(oracle, self.n_genomes);
        strategy.tell(&fitness).expect("finite");
        fitness
    }

    fn compare<E: Evolver>(&self, oracle: &mut Oracle, mut strategy: E, sigma: impl Fn(&E, &mut [f64])) {
        let start = strategy.centre().to_vec();
        let (mut of_mean, mut of_sigma, mut moved) = (0.0_f64, 0.0_f64, 0.0_f64);
        let mut ours = vec![0.0; self.n_params];
        for _ in 0..self.generations {
            self.tell(oracle, &mut strategy);
            let mean = numbers(oracle, self.n_params);
            let theirs = numbers(oracle, self.n_params);
            sigma(&strategy, &mut ours);
            for j in 0..self.n_params {
                of_mean = of_mean.max((strategy.centre()[j] - mean[j]).abs() / theirs[j]);
                of_sigma = of_sigma.max((ours[j] / theirs[j] - 1.0).abs());
                moved = moved.max((mean[j] - start[j]).abs());
            }
        }
        eprintln!(
            "{}: {} generations, means differ by {of_mean:.1e} sigma at most, sigmas by {of_sigma:.1e}; the mean went {moved:.2}",
            self.name, self.generations
        );
        assert!(of_mean < TOLERANCE && of_sigma < TOLERANCE && moved > 0.5, "{}", self.name);
    }

    /// Checks that children of our parents with the reference's random numbers are the reference's children.
    fn breed(&self, oracle: &mut Oracle, mut ga: SimpleGa, sigma: f64) {
        let first = self.tell(oracle, &mut ga);
        let mut largest = 0.0_f64;
        let mut last = first.clone();
        for generation in 0..self.generations {
            let ranks: Vec<usize> = (0..self.n_genomes).map(|_| oracle.count()).collect();
            let noise = numbers(oracle, self.n_genomes * self.n_params);
            let parents: Vec<Vec<f32>> = ga.parents().map(|(genome, _)| genome.to_vec()).collect();
            last = self.tell(oracle, &mut ga);
            for (i, &rank) in ranks.iter().enumerate() {
                let child = ga.population_mut().genome(i);
                for (j, &x) in child.iter().enumerate() {
                    let ours = f64::from(parents[rank][j]) + sigma * noise[i * self.n_params + j];
                    let apart = (f64::from(x) - ours).abs() / ours.abs().max(1.0);
                    assert!(apart < 1e-7, "{}: generation {generation}, genome {i}", self.name);
                    largest = largest.max(apart);
                }
            }
        }
        let best = |fitness: &[f64]| fitness.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        eprintln!(
            "{}: {} generations, children differ by {largest:.1e} (rounding); the best rose from {:.2} to {:.2}",
            self.name,
            self.generations,
            best(&first),
            best(&last)
        );
        assert!(best(&last) > best(&first), "{}", self.name);
    }
}

fn numbers(oracle: &mut Oracle, count: usize) -> Vec<f64> {
    (0..count).map(|_| oracle.number()).collect()
}
