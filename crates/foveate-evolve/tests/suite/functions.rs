//! Every strategy on four functions with known maxima: the budget of evaluations, and the required distance.
//!
//! | function | description | maximum |
//! |---|---|---|
//! | sphere | isotropic | 0 at 0 |
//! | ellipsoid | one axis 1,000 times as steep as another | 0 at 0 |
//! | Rosenbrock | a curved, flat valley | 0 at 1 |
//! | Rastrigin | a bowl with a local optimum at every integer, up to 20 deep | 0 at 0 |
//!
//! All have 10 parameters and are negated, since larger is better. Not every row shows a strength: a step
//! size that never shrinks cannot converge in one of Rastrigin's local optima, and steps along the axes are
//! slow in Rosenbrock's valley.

use foveate_core::Seed;
use foveate_evolve::{STRATEGIES, StrategyConfig, make};

const PARAMS: usize = 10;
const SEEDS: std::ops::Range<u64> = 1..4;

fn sphere(x: &[f64]) -> f64 {
    -x.iter().map(|x| x * x).sum::<f64>()
}

fn ellipsoid(x: &[f64]) -> f64 {
    let last = (x.len() - 1) as f64;
    -x.iter().enumerate().map(|(i, x)| 1e3_f64.powf(i as f64 / last) * x * x).sum::<f64>()
}

fn rosenbrock(x: &[f64]) -> f64 {
    -x.windows(2).map(|w| 100.0 * (w[1] - w[0] * w[0]).powi(2) + (1.0 - w[0]).powi(2)).sum::<f64>()
}

fn rastrigin(x: &[f64]) -> f64 {
    -x.iter().map(|x| 10.0 + x * x - 10.0 * (std::f64::consts::TAU * x).cos()).sum::<f64>()
}

/// A row: function, start, settings, number of evaluations, and the required distance of the recommended
/// weights from the maximum for every seed.
struct Row {
    function: &'static str,
    start: f64,
    settings: &'static str,
    evaluations: usize,
    within: f64,
}

const fn row(
    function: &'static str,
    start: f64,
    settings: &'static str,
    evaluations: usize,
    within: f64,
) -> Row {
    Row { function, start, settings, evaluations, within }
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    // function, start, settings, evaluations, within
    row("sphere", 1.0, "algorithm = 'rank-es'", 5_000, 0.03),
    row("sphere", 1.0, "algorithm = 'snes'", 5_000, 1e-9),
    row("sphere", 1.0, "algorithm = 'openai-es'", 10_000, 1e-4),
    row("sphere", 1.0, "algorithm = 'pgpe'", 10_000, 1e-3),
    row("sphere", 1.0, "algorithm = 'simple-ga'", 10_000, 0.05),
    row("sphere", 1.0, "algorithm = 'cma-es'", 5_000, 1e-9),
    row("sphere", 1.0, "algorithm = 'sep-cma-es'", 5_000, 1e-9),
    row("ellipsoid", 1.0, "algorithm = 'rank-es'\nsigma = 0.03", 50_000, 0.3),
    row("ellipsoid", 1.0, "algorithm = 'snes'", 10_000, 1e-9),
    row("ellipsoid", 1.0, "algorithm = 'openai-es'", 20_000, 0.02),
    row("ellipsoid", 1.0, "algorithm = 'pgpe'", 20_000, 0.05),
    row("ellipsoid", 1.0, "algorithm = 'simple-ga'\nsigma_decay = 0.99", 20_000, 0.1),
    row("ellipsoid", 1.0, "algorithm = 'cma-es'", 10_000, 1e-9),
    row("ellipsoid", 1.0, "algorithm = 'sep-cma-es'", 10_000, 1e-9),
    row("Rosenbrock", 0.0, "algorithm = 'rank-es'\nsigma = 0.03", 50_000, 2.0),
    row("Rosenbrock", 0.0, "algorithm = 'snes'", 50_000, 5.0),
    row("Rosenbrock", 0.0, "algorithm = 'openai-es'\nsigma = 0.03", 50_000, 1.0),
    row("Rosenbrock", 0.0, "algorithm = 'pgpe'", 50_000, 1.0),
    row("Rosenbrock", 0.0, "algorithm = 'simple-ga'\nsigma_decay = 0.99", 50_000, 6.0),
    row("Rosenbrock", 0.0, "algorithm = 'cma-es'", 10_000, 1e-9),
    row("Rosenbrock", 0.0, "algorithm = 'sep-cma-es'", 50_000, 6.0),
    row("Rastrigin", 2.5, "algorithm = 'rank-es'\npopulation = 64\nsigma = 0.7\nlearning_rate = 0.3\naveraging = 0.995", 50_000, 50.0),
    row("Rastrigin", 2.5, "algorithm = 'snes'\npopulation = 256\nsigma = 2.0", 50_000, 1e-2),
    row("Rastrigin", 2.5, "algorithm = 'openai-es'\npopulation = 256\nsigma = 1.0\nlearning_rate = 0.1\nsigma_decay = 0.99", 50_000, 2.0),
    row("Rastrigin", 2.5, "algorithm = 'pgpe'\npopulation = 128\nsigma = 1.5\nmax_speed = 0.3\nsigma_learning_rate = 0.5", 50_000, 30.0),
    row("Rastrigin", 2.5, "algorithm = 'cma-es'\npopulation = 256\nsigma = 2.0", 50_000, 2.0), // next to the top with one seed
    row("Rastrigin", 2.5, "algorithm = 'cma-es'\nsigma = 2.0\nrestarts = { after = 50 }", 200_000, 1e-6),
    row("Rastrigin", 2.5, "algorithm = 'sep-cma-es'\npopulation = 256\nsigma = 2.0", 50_000, 1e-6),
    row("Rastrigin", 2.5, "algorithm = 'simple-ga'\npopulation = 128\nparents = 8\nsigma = 0.5\nsigma_decay = 0.99", 50_000, 20.0),
    row("Rastrigin", 2.5, "algorithm = 'snes'\npopulation = 8\nsigma = 2.0", 200_000, 40.0),
    row("Rastrigin", 2.5, "algorithm = 'snes'\npopulation = 8\nsigma = 2.0\nrestarts = { after = 50 }", 200_000, 1e-6),
];

#[test]
fn every_strategy_climbs_within_its_budget() {
    let mut missed = Vec::new();
    for Row { function, start, settings, evaluations, within } in TABLE {
        let f = match *function {
            "sphere" => sphere,
            "ellipsoid" => ellipsoid,
            "Rosenbrock" => rosenbrock,
            "Rastrigin" => rastrigin,
            other => panic!("{other} is no function"),
        };
        let config: StrategyConfig = toml::from_str(settings).expect(settings);
        let reached: Vec<f64> = SEEDS.map(|seed| climb(&config, f, *start, *evaluations, seed)).collect();
        let shown: Vec<String> = reached.iter().map(|r| format!("{r:.1e}")).collect();
        let (settings, shown) = (settings.replace('\n', ", "), shown.join(" "));
        let what = format!("{function:10} {evaluations:6} {shown:24} {settings}");
        eprintln!("{what}");
        if reached.iter().any(|r| r.is_nan() || *r > *within) {
            missed.push(format!("{what}, not within {within}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn the_table_knows_every_strategy() {
    for described in STRATEGIES {
        for function in ["sphere", "ellipsoid", "Rosenbrock", "Rastrigin"] {
            let algorithm = format!("algorithm = '{}'", described.name);
            let there =
                TABLE.iter().any(|row| row.function == function && row.settings.starts_with(&algorithm));
            assert!(there, "{} is missing on {function}", described.name);
        }
    }
}

/// The final distance of the recommended weights' value from the maximum.
fn climb(config: &StrategyConfig, f: fn(&[f64]) -> f64, start: f64, evaluations: usize, seed: u64) -> f64 {
    let mut strategy = make(config, vec![start; PARAMS], Seed::root(seed)).expect("the settings are right");
    let mut used = 0;
    let mut genome = vec![0.0; PARAMS];
    let mut fitness = Vec::new();
    loop {
        let population = strategy.ask();
        used += population.len();
        if used > evaluations {
            return -f(strategy.recommended());
        }
        fitness.clear();
        for i in 0..population.len() {
            for (to, &from) in genome.iter_mut().zip(population.genome(i)) {
                *to = f64::from(from);
            }
            fitness.push(f(&genome));
        }
        strategy.tell(&fitness).expect("finite");
    }
}
