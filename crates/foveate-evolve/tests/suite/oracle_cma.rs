//! Compares CMA-ES with the real pycma: same normal numbers, same ranking, same search.

// One pipe implementation for the scripts of all crates.

use foveate_core::{EvolveError, Evolver, Population, Seed};
use foveate_evolve::{CmaEs, CmaEsConfig, Form, SepCmaEs, SepCmaEsConfig};
use foveate_toy::oracle::Oracle;

/// Relative to the largest number of a vector or a matrix. Rounding differs in every operation, and feeds
/// back for hundreds of generations.
///
/// For the mean it is relative to the largest number of any generation so far: the rounding error from when
/// the mean was 1 remains when it is 1e-14, since two searches with the same ranking do not converge to each
/// other.
/// it is 1e-14, for nothing brings two searches together again that are told the same ranking.
const TOLERANCE: f64 = 1e-6;

/// Either kind, by the names that the comparison uses.
enum Strategy {
    Full(Box<CmaEs>),
    Diagonal(Box<SepCmaEs>),
}

impl Strategy {
    fn ask_with(&mut self, normals: &[f64]) -> Result<&Population, EvolveError> {
        match self {
            Strategy::Full(es) => es.ask_with(normals),
            Strategy::Diagonal(es) => es.ask_with(normals),
        }
    }

    fn evolver(&mut self) -> &mut dyn Evolver {
        match self {
            Strategy::Full(es) => es.as_mut(),
            Strategy::Diagonal(es) => es.as_mut(),
        }
    }

    /// Mean, sigma, both paths and scales, in the order of the script.
    fn learnt(&self) -> [(&'static str, Vec<f64>); 5] {
        let (mean, sigma, path_sigma, path_c, scale) = match self {
            Strategy::Full(es) => (es.centre(), es.sigma(), es.path_sigma(), es.path_c(), es.scale()),
            Strategy::Diagonal(es) => (es.centre(), es.sigma(), es.path_sigma(), es.path_c(), es.scale()),
        };
        [
            ("mean", mean.to_vec()),
            ("sigma", vec![sigma]),
            ("path of sigma", path_sigma.to_vec()),
            ("path of C", path_c.to_vec()),
            ("scales", scale.to_vec()),
        ]
    }
}

/// The largest number of a vector.
fn size(vector: &[f64]) -> f64 {
    vector.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()))
}

#[test]
fn cma_es_is_pycmas() {
    let Some(mut oracle) = Oracle::start("oracle/cma_es.py") else { return };
    let vector = |oracle: &mut Oracle, n: usize| (0..n).map(|_| oracle.number()).collect::<Vec<f64>>();
    let (mut cases, mut failures) = (0, Vec::new());
    loop {
        let name = oracle.text();
        if name == "end" {
            break;
        }
        cases += 1;
        let (n, lambda) = (oracle.count(), oracle.count());
        let (diagonal, active, generations) = (oracle.flag(), oracle.flag(), oracle.count());
        let sigma = oracle.number();
        let mean = vector(&mut oracle, n);
        let seed = Seed::root(1);
        let default = 4 + (3.0 * (n as f64).ln()) as usize;
        let population = (lambda != default).then_some(lambda);
        if !diagonal && Form::Eigen.check().is_err() {
            eprintln!("{name}: not compared, for this build has no eigenvectors (--features eigen)");
            for generation in 1..=generations {
                let matrix = if generation % 10 == 0 { n * n } else { 0 };
                vector(&mut oracle, lambda * n + lambda + 4 * n + 1 + matrix);
            }
            continue;
        }
        let mut ours = if diagonal {
            let config = SepCmaEsConfig { population, sigma, active };
            Strategy::Diagonal(Box::new(SepCmaEs::from_mean(config, mean.clone(), seed).expect("fine")))
        } else {
            let config = CmaEsConfig { population, sigma, active, form: Form::Eigen };
            Strategy::Full(Box::new(CmaEs::from_mean(config, mean.clone(), seed).expect("fine")))
        };
        let (mut largest, mut largest_mean) = ((0.0, String::new()), size(&mean));
        for generation in 1..=generations {
            let normals = vector(&mut oracle, lambda * n);
            let fitness = vector(&mut oracle, lambda);
            ours.ask_with(&normals).expect("as many as are due");
            ours.evolver().tell(&fitness).expect("finite");
            let mut compare = |what: &str, ours: &[f64], theirs: &[f64]| {
                let mut size = size(theirs);
                if what == "mean" {
                    largest_mean = largest_mean.max(size);
                    size = largest_mean;
                }
                assert_eq!(ours.len(), theirs.len());
                let by = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs() / size).fold(0.0, f64::max);
                if by > largest.0 || by.is_nan() {
                    largest = (by, format!("{what} in generation {generation}"));
                }
            };
            for (what, ours) in ours.learnt() {
                compare(what, &ours, &vector(&mut oracle, ours.len()));
            }
            if !diagonal && generation % 10 == 0 {
                let Strategy::Full(es) = &ours else { unreachable!("not diagonal") };
                compare("C", &es.covariance(), &vector(&mut oracle, n * n));
            }
        }
        let (by, what) = largest;
        eprintln!("{name}: {generations} generations, largest difference {by:.1e} ({what})");
        if by.is_nan() || by > TOLERANCE {
            failures.push(format!("{name}: {what} differs by {by:e}"));
        }
        if name.starts_with("scales") {
            assert!(
                ours.learnt()[4].1.iter().any(|s| *s != 1.0),
                "{name}: the scales were never taken out of C"
            );
        }
    }
    oracle.finish();
    assert!(cases >= 28, "{cases} cases");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
