//! CMA-ES and sep-CMA-ES: test functions within evaluation budgets, invariances, and states saved at any
//! point.

use foveate_core::{EvolveError, Evolver, Seed, StateDict, Tensor, TensorData};
use foveate_evolve::{CmaEs, CmaEsConfig, Form, SepCmaEs, SepCmaEsConfig};

const N: usize = 10;

fn sphere(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum()
}

/// Condition number 1e6.
fn ellipsoid(x: &[f64]) -> f64 {
    let last = (x.len() - 1) as f64;
    x.iter().enumerate().map(|(i, x)| 1e6_f64.powf(i as f64 / last) * x * x).sum()
}

/// The ellipsoid in other coordinates: reflected at a hyperplane oblique to all axes.
fn turned_ellipsoid(x: &[f64]) -> f64 {
    let normal: Vec<f64> = (0..x.len()).map(|i| 1.0 + i as f64).collect();
    let along = x.iter().zip(&normal).map(|(x, v)| x * v).sum::<f64>() / sphere(&normal);
    ellipsoid(&x.iter().zip(&normal).map(|(x, v)| x - 2.0 * along * v).collect::<Vec<_>>())
}

fn rosenbrock(x: &[f64]) -> f64 {
    x.windows(2).map(|x| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2)).sum()
}

fn rastrigin(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x - 10.0 * (std::f64::consts::TAU * x).cos() + 10.0).sum()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Full(Form),
    Diagonal,
}

/// The kinds in this build.
fn kinds() -> impl Iterator<Item = Kind> {
    Form::BUILT.iter().map(|form| Kind::Full(*form)).chain([Kind::Diagonal])
}

fn make(
    kind: Kind,
    population: Option<usize>,
    sigma: f64,
    mean: Vec<f64>,
    seed: u64,
) -> Result<Box<dyn Evolver>, EvolveError> {
    let seed = Seed::root(seed);
    Ok(match kind {
        Kind::Full(form) => {
            let config = CmaEsConfig { population, sigma, form, active: true };
            Box::new(CmaEs::from_mean(config, mean, seed)?)
        }
        Kind::Diagonal => {
            let config = SepCmaEsConfig { population, sigma, active: true };
            Box::new(SepCmaEs::from_mean(config, mean, seed)?)
        }
    })
}

/// Runs one generation; returns the best value found.
fn descend(es: &mut dyn Evolver, f: fn(&[f64]) -> f64) -> f64 {
    let population = es.ask();
    let fitness: Vec<f64> = (0..population.len())
        .map(|i| -f(&population.genome(i).iter().map(|x| f64::from(*x)).collect::<Vec<_>>()))
        .collect();
    -es.tell(&fitness).expect("finite").best
}

/// Evaluations until a genome reaches `target`, at most `budget`, for each of the seeds 1 to 5.
#[track_caller]
fn check_reaches(
    name: &str,
    kind: Kind,
    f: fn(&[f64]) -> f64,
    (start, sigma): (f64, f64),
    population: Option<usize>,
    (target, budget): (f64, usize),
) {
    let mut used = Vec::new();
    for seed in 1..=5 {
        let mut es = make(kind, population, sigma, vec![start; N], seed).expect("fine");
        let (mut evaluations, mut best) = (0, f64::INFINITY);
        while best > target && evaluations < budget {
            evaluations += es.ask().len();
            best = best.min(descend(es.as_mut(), f));
        }
        assert!(best <= target, "{name}, {kind:?}, seed {seed}: {best:e} after {evaluations} evaluations");
        used.push(evaluations);
    }
    eprintln!("{name}, {kind:?}: {used:?} evaluations to {target:e}, {budget} allowed");
}

#[test]
fn known_functions_are_solved_within_their_budgets() {
    for &form in Form::BUILT {
        let full = Kind::Full(form);
        check_reaches("sphere", full, sphere, (1.0, 0.5), None, (1e-10, 2_500));
        check_reaches("ellipsoid", full, ellipsoid, (1.0, 0.5), None, (1e-8, 8_000));
        check_reaches("turned ellipsoid", full, turned_ellipsoid, (1.0, 0.5), None, (1e-8, 8_000));
        check_reaches("Rosenbrock", full, rosenbrock, (0.0, 0.1), Some(20), (1e-8, 20_000));
        check_reaches("Rastrigin", full, rastrigin, (3.0, 2.0), Some(800), (1e-8, 150_000));
    }
    check_reaches("sphere", Kind::Diagonal, sphere, (1.0, 0.5), None, (1e-10, 2_500));
    check_reaches("ellipsoid", Kind::Diagonal, ellipsoid, (1.0, 0.5), None, (1e-8, 5_000));
    check_reaches("Rosenbrock", Kind::Diagonal, rosenbrock, (0.0, 0.1), Some(20), (1e-3, 150_000));
    check_reaches("Rastrigin", Kind::Diagonal, rastrigin, (3.0, 2.0), Some(800), (1e-8, 150_000));
}

#[test]
fn a_diagonal_cannot_turn() {
    let mut es = make(Kind::Diagonal, None, 0.5, vec![1.0; N], 1).expect("fine");
    let best = (0..800).map(|_| descend(es.as_mut(), turned_ellipsoid)).fold(f64::INFINITY, f64::min);
    assert!(best > 1e-3, "{best:e}: then the full matrix would be of no use");
}

#[test]
fn thousands_of_parameters_work() {
    // One factorisation of the Cholesky form, and the first generations.
    let (n, kind) = (1500, Kind::Full(Form::Cholesky));
    let mut es = make(kind, Some(64), 0.1, vec![1.0; n], 1).expect("fine");
    let first = descend(es.as_mut(), sphere);
    let last = (0..12).map(|_| descend(es.as_mut(), sphere)).last().expect("twelve");
    assert!(last < first, "{first} {last}");
}

#[test]
fn a_state_saved_anywhere_goes_on_bit_for_bit() {
    // 40 parameters and 5 genomes: a factor is used for several generations, so most states contain vectors.
    for kind in kinds() {
        let new = || make(kind, Some(5), 0.3, vec![0.5; 40], 9).expect("fine");
        let mut straight = new();
        let mut pending = 0;
        for stop in 0..40 {
            let state = straight.state();
            if let Some(grown) = state.get("covariance_grown") {
                pending += usize::from(!grown.is_empty());
            }
            // Different memory addresses must not change the bits.
            let _elsewhere = vec![0_u8; 24 * stop + 8];
            let mut resumed = new();
            resumed.restore(&state).expect("its own state");
            assert_eq!(resumed.state(), state, "{kind:?}, stopped at {stop}");
            let mut twice = new();
            descend(twice.as_mut(), rosenbrock);
            twice.ask();
            twice.restore(&resumed.state()).expect("its own state");
            for es in [&mut resumed, &mut twice] {
                for _ in 0..7 {
                    descend(es.as_mut(), rosenbrock);
                }
            }
            assert_eq!(resumed.state(), twice.state(), "{kind:?}, stopped at {stop}");
            let mut next = new();
            next.restore(&state).expect("its own state");
            descend(next.as_mut(), rosenbrock);
            descend(straight.as_mut(), rosenbrock);
            assert_eq!(next.state(), straight.state(), "{kind:?}, stopped at {stop}");
        }
        assert!(kind == Kind::Diagonal || (1..40).contains(&pending), "{kind:?}: {pending} with vectors");
    }
}

#[test]
fn a_long_run_is_the_same_when_stopped_at_every_generation() {
    for kind in kinds() {
        let new = || make(kind, None, 0.3, vec![0.5; 6], 4).expect("fine");
        let (mut straight, mut stopped) = (new(), new());
        for _ in 0..300 {
            descend(straight.as_mut(), ellipsoid);
            descend(stopped.as_mut(), ellipsoid);
            let mut next = new();
            next.restore(&stopped.state()).expect("its own state");
            stopped = next;
        }
        assert_eq!(straight.state(), stopped.state(), "{kind:?}");
    }
}

#[test]
fn repaired_genomes_are_learnt_from_where_they_lie() {
    // Every genome is moved in the same direction: the mean must follow by as much as the good ones were
    // moved.
    for kind in kinds() {
        let mut es = make(kind, Some(12), 0.1, vec![0.0; N], 3).expect("fine");
        for _ in 0..30 {
            es.ask();
            let population = es.population_mut();
            for i in 0..population.len() {
                for x in population.genome_mut(i) {
                    *x = x.max(0.25);
                }
            }
            let fitness: Vec<f64> = (0..12)
                .map(|i| -sphere(&es.ask().genome(i).iter().map(|x| f64::from(*x)).collect::<Vec<_>>()))
                .collect();
            es.tell(&fitness).expect("finite");
        }
        assert!(es.centre().iter().all(|x| (0.2..0.4).contains(x)), "{kind:?}: {:?}", es.centre());
        assert!(
            es.state()
                .values()
                .all(|t| !matches!(t.data(), TensorData::F64(v) if v.iter().any(|x| !x.is_finite())))
        );
    }
}

#[test]
fn flat_fitness_and_huge_offsets_do_no_harm() {
    for kind in kinds() {
        let mut es = make(kind, None, 0.1, vec![0.0; N], 3).expect("fine");
        for generation in 0..300 {
            let count = es.ask().len();
            let flat = if generation % 2 == 0 { 7.0 } else { 1e300 };
            let progress = es.tell(&vec![flat; count]).expect("finite");
            assert!(progress.sigma.is_finite() && progress.sigma > 0.0, "{kind:?}: {progress:?}");
        }
    }
}

#[test]
fn settings_and_states_that_make_no_sense_are_refused() {
    for kind in kinds() {
        for (population, sigma, mean, why) in [
            (Some(1), 0.1, vec![0.0; 3], "population = 1"),
            (Some(0), 0.1, vec![0.0; 3], "population = 0"),
            (None, -0.1, vec![0.0; 3], "sigma = -0.1; it must be above 0"),
            (None, 0.0, vec![0.0; 3], "sigma = 0"),
            (None, f64::NAN, vec![0.0; 3], "sigma = NaN"),
            (None, 0.1, vec![], "0 parameters"),
            (None, 0.1, vec![0.0, f64::NAN], "parameter 1 of the start is NaN"),
        ] {
            let error = make(kind, population, sigma, mean, 1).err().expect(why).to_string();
            assert!(error.contains(why), "{kind:?}: {error} / {why}");
        }
    }
    let mut es = CmaEs::from_mean(CmaEsConfig::default(), vec![0.0; 4], Seed::root(1)).expect("fine");
    for normals in [vec![0.0; 31], vec![f64::NAN; 32]] {
        let error = es.ask_with(&normals).expect_err("refused").to_string();
        assert!(error.contains("normal numbers"), "{error}");
    }
    for _ in 0..40 {
        descend(&mut es, rosenbrock);
    }
    let good = es.state();
    let with = |name: &str, tensor: Tensor| {
        let mut state: StateDict = good.clone();
        state.insert(name.into(), tensor);
        state
    };
    for (state, why) in [
        (with("factored_at", Tensor::from(vec![41])), "factored_at = 41 comes after generation = 40"),
        (with("factored_at", Tensor::from(vec![0])), "covariance has 10 numbers, 0 are due"),
        (with("covariance_decay", Tensor::from(vec![1.5])), "covariance_decay = 1.5"),
        (with("covariance", Tensor::from(vec![-1.0; 10])), "not positive definite"),
        (with("covariance_grown", Tensor::from(vec![1.0; 7])), "a multiple of 4"),
        (with("scale", Tensor::from(vec![0.0; 4])), "scale holds 0"),
        (with("sigma", Tensor::from(vec![-1.0])), "sigma holds -1"),
    ] {
        let error = es.restore(&state).expect_err(why).to_string();
        assert!(error.contains(why), "{error} / {why}");
        assert_eq!(es.state(), good);
    }
}

/// Run by `cargo xtask test` in a build without the feature.
#[test]
#[cfg(not(feature = "eigen"))]
fn a_form_that_is_not_built_is_refused_by_name() {
    let config = CmaEsConfig { form: Form::Eigen, ..CmaEsConfig::default() };
    let refused = [config.check(), CmaEs::from_mean(config, vec![0.0; 3], Seed::root(1)).map(drop)];
    for error in refused {
        let error = error.expect_err("not built").to_string();
        for part in ["form = \"eigen\"", "the Cargo feature `eigen`", "form = \"cholesky\""] {
            assert!(error.contains(part), "{error} / {part}");
        }
    }
}
