//! Contract tests of every strategy in the registry, alone and within bounds and restarts.

use foveate_core::{EvolveError, Evolver, Population, Seed, Tensor, TensorData};
use foveate_evolve::{Algorithm, Bounds, Repair, Restarts, STRATEGIES, Shaping, StrategyConfig, make};

const PARAMS: usize = 12;

/// Settings under test, with a label for each.
fn all() -> Vec<(String, StrategyConfig)> {
    let mut all = Vec::new();
    for described in STRATEGIES {
        let plain = StrategyConfig::named(described.name).expect("it is in the list");
        let bounded = StrategyConfig {
            bounds: Some(Bounds { low: -0.9, high: 1.05, repair: Repair::Reflect }),
            ..plain.clone()
        };
        let restarting = StrategyConfig {
            restarts: Some(Restarts { after: 2, tolerance: 0.5, spread: 0.3, ..Restarts::default() }),
            bounds: Some(Bounds { low: -1.5, high: 1.1, repair: Repair::Clip }),
            ..plain.clone()
        };
        all.push((described.name.to_owned(), plain));
        all.push((format!("{} within bounds", described.name), bounded));
        all.push((format!("{} with restarts", described.name), restarting));
    }
    let toml = |text: &str| (text.replace('\n', ", "), toml::from_str(text).expect("the settings are right"));
    all.extend([
        toml("algorithm = 'rank-es'\nmirrored = true\naveraging = 0.9\nweight_decay = 0.01"),
        toml("algorithm = 'snes'\nmirrored = true\nsigma_learning_rate = 0.5\npopulation = 6"),
        toml("algorithm = 'openai-es'\nmirrored = false\npopulation = 7\nsigma_decay = 0.9\nweight_decay = 0.1"),
        toml("algorithm = 'openai-es'\nshaping = 'standardised'"),
        toml("algorithm = 'pgpe'\noptimizer = 'adam'\nshaping = 'standardised'"),
        toml("algorithm = 'pgpe'\npopulation = 2\nmax_speed = 0.5\nmomentum = 0"),
        toml("algorithm = 'simple-ga'\nelites = 3\nelite_reevaluation = false\nsigma_decay = 0.99"),
        toml("algorithm = 'simple-ga'\nelites = 0\npopulation = 2\nparents = 1"),
    ]);
    all
}

fn new(config: &StrategyConfig) -> Box<dyn Evolver> {
    make(config, vec![0.7; PARAMS], Seed::root(5)).expect("the settings are right")
}

/// A bumpy function of the genome, so that ranks change from generation to generation.
fn bumpy(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x)).map(|x| (9.0 * x).cos() - x * x).sum()
}

fn fitness(population: &Population, f: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..population.len()).map(|i| f(bumpy(population.genome(i)))).collect()
}

fn generations(strategy: &mut dyn Evolver, count: u64) {
    for _ in 0..count {
        let fitness = fitness(strategy.ask(), |f| f);
        strategy.tell(&fitness).expect("finite");
    }
}

#[test]
fn asking_twice_gives_the_same_and_telling_gives_another() {
    for (name, config) in all() {
        let mut strategy = new(&config);
        for generation in 0..5 {
            assert_eq!(strategy.generation(), generation, "{name}");
            let first = strategy.ask().clone();
            assert_eq!(first, *strategy.ask(), "{name}");
            assert_eq!(first, *strategy.population_mut(), "{name}");
            let progress = strategy.tell(&fitness(&first, |f| f)).expect("finite");
            assert_eq!(progress.generation, generation + 1, "{name}");
            assert!(progress.best >= progress.mean && progress.sigma > 0.0, "{name}: {progress:?}");
            assert_ne!(first, *strategy.ask(), "{name}");
            let population = strategy.ask();
            assert_ne!(population.genome(0), population.genome(population.len() - 1), "{name}");
        }
    }
}

#[test]
fn two_of_the_same_seed_agree_and_another_seed_differs() {
    for (name, config) in all() {
        let (mut a, mut b) = (new(&config), new(&config));
        let mut c = make(&config, vec![0.7; PARAMS], Seed::root(6)).expect("the same settings");
        for strategy in [&mut a, &mut b, &mut c] {
            generations(strategy.as_mut(), 4);
        }
        assert_eq!(a.state(), b.state(), "{name}");
        assert_ne!(a.ask(), c.ask(), "{name}");
    }
}

#[test]
fn a_restored_strategy_goes_on_bit_for_bit() {
    for (name, config) in all() {
        let mut straight = new(&config);
        let mut restarted = false;
        for stop in 0..9 {
            let mut other = new(&config);
            // Neither the earlier state nor a stale population may survive the restore.
            generations(other.as_mut(), stop % 3);
            other.ask();
            let state = straight.state();
            other.restore(&state).expect("its own state");
            assert_eq!(other.state(), state, "{name}, stopped at {stop}");
            assert_eq!(other.mean(), straight.mean(), "{name}, stopped at {stop}");
            assert_eq!(other.recommended(), straight.recommended(), "{name}, stopped at {stop}");
            // Half of the time the uninterrupted one has already been asked.
            if stop % 2 == 0 {
                straight.ask();
            }
            let mut on = new(&config);
            on.restore(&state).expect("its own state");
            generations(on.as_mut(), 6);
            generations(other.as_mut(), 6);
            assert_eq!(other.state(), on.state(), "{name}, stopped at {stop}");
            generations(straight.as_mut(), 1);
            generations(on.as_mut(), 0);
            let mut once = new(&config);
            once.restore(&state).expect("its own state");
            generations(once.as_mut(), 1);
            assert_eq!(once.state(), straight.state(), "{name}, stopped at {stop}");
            restarted |= straight.ask().len() > config.population(PARAMS);
        }
        assert_eq!(restarted, config.restarts.is_some(), "{name}: the test must see a restart");
    }
}

#[test]
fn a_state_of_another_population_is_gone_on_with_if_that_is_meant() {
    for (name, config) in all() {
        let mut first = new(&config);
        generations(first.as_mut(), 9);
        let state = first.state();
        let mut changed = config.clone();
        let population = config.population(PARAMS) + 4;
        let mut table =
            toml::to_string(&changed).expect("plain values").parse::<toml::Table>().expect("TOML");
        table.insert("population".into(), toml::Value::Integer(population as i64));
        changed = table.try_into().expect("every strategy has a population");
        let mut other = new(&changed);
        let error = other.restore(&state).expect_err("other settings").to_string();
        assert!(error.contains("settings"), "{name}: {error}");
        other.restore_changed(&state).expect(&name);
        assert_eq!(other.recommended(), first.recommended(), "{name}");
        assert_eq!(other.generation(), 9, "{name}");
        let grown = if config.restarts.is_some() { 2 } else { 1 };
        let asked = other.ask().len();
        assert!(asked >= grown * population && asked.is_multiple_of(population), "{name}: {asked}");
        // From now on the new settings are in force.
        generations(other.as_mut(), 2);
        let mut again = new(&changed);
        again.restore(&other.state()).expect(&name);
        generations(other.as_mut(), 2);
        generations(again.as_mut(), 2);
        assert_eq!(again.state(), other.state(), "{name}");
    }
}

#[test]
fn a_refused_tell_changes_nothing() {
    for (name, config) in all() {
        let mut strategy = new(&config);
        generations(strategy.as_mut(), 3);
        let count = strategy.state();
        assert_eq!(strategy.tell(&[0.0; 32]), Err(EvolveError::NothingAsked), "{name}");
        assert_eq!(strategy.state(), count, "{name}");
        let asked = strategy.ask().clone();
        let n = asked.len();
        let with = |at: usize, value: f64| {
            let mut fitness = fitness(&asked, |f| f);
            fitness[at] = value;
            fitness
        };
        let wrong = [
            vec![],
            vec![0.0; n - 1],
            vec![0.0; n + 1],
            with(0, f64::NAN),
            with(n - 1, f64::INFINITY),
            with(n / 2, f64::NEG_INFINITY),
        ];
        for fitness in wrong {
            match strategy.tell(&fitness).expect_err("must be refused") {
                EvolveError::FitnessCount { wanted, given } => {
                    assert_eq!((wanted, given), (n, fitness.len()), "{name}");
                }
                EvolveError::FitnessNotFinite { genome, generation: 3, .. } => {
                    assert!(!fitness[genome].is_finite(), "{name}");
                }
                other => panic!("{name}: {other}"),
            }
            assert_eq!(strategy.state(), count, "{name}");
            assert_eq!(*strategy.ask(), asked, "{name}");
        }
        // The strategy continues as if nothing had happened.
        let mut calm = new(&config);
        generations(calm.as_mut(), 5);
        generations(strategy.as_mut(), 2);
        assert_eq!(strategy.state(), calm.state(), "{name}");
    }
}

/// Whether only the order of fitness matters to the strategy.
fn goes_by_rank(config: &StrategyConfig) -> bool {
    let standardised = match &config.algorithm {
        Algorithm::OpenaiEs(config) => config.shaping == Shaping::Standardised,
        Algorithm::Pgpe(config) => config.shaping == Shaping::Standardised,
        // The scores of its elites are means.
        Algorithm::SimpleGa(config) => config.elites > 0 && config.elite_reevaluation,
        _ => false,
    };
    !standardised && config.restarts.is_none()
}

#[test]
fn offset_and_scale_of_fitness_change_nothing() {
    for (name, config) in all() {
        let by_rank = goes_by_rank(&config);
        let run = |f: fn(f64) -> f64| {
            let mut strategy = new(&config);
            for _ in 0..6 {
                let fitness = fitness(strategy.ask(), f);
                strategy.tell(&fitness).expect("finite");
            }
            strategy.centre().to_vec()
        };
        let plain = run(|f| f);
        // The tolerance of restarts is absolute, so scale does matter to them.
        let scaled: fn(f64) -> f64 =
            if config.restarts.is_some() { |f| f + 64.0 } else { |f| 4.0 * f + 64.0 };
        for (a, b) in plain.iter().zip(run(scaled)) {
            let equal = if by_rank { *a == b } else { (a - b).abs() < 1e-6 };
            assert!(equal, "{name}: {a} became {b}");
        }
        if by_rank {
            assert_eq!(plain, run(f64::exp), "{name}: any increasing function");
        }
    }
}

#[test]
fn no_genome_leaves_the_bounds() {
    for described in STRATEGIES {
        for repair in [Repair::Reflect, Repair::Clip] {
            let bounds = Bounds { low: -0.1, high: 0.75, repair };
            let config = StrategyConfig {
                bounds: Some(bounds),
                ..StrategyConfig::named(described.name).expect("it is in the list")
            };
            let mut strategy = new(&config);
            let inside = |x: f64| (bounds.low..=bounds.high).contains(&x);
            let mut differ = false;
            for _ in 0..60 {
                let population = strategy.ask();
                let genomes = (0..population.len()).flat_map(|i| population.genome(i));
                assert!(genomes.copied().all(|x| inside(f64::from(x))), "{} {repair:?}", described.name);
                // Larger is better: the optimum is where all parameters are at the bound.
                let sums: Vec<f64> = (0..population.len())
                    .map(|i| population.genome(i).iter().map(|&x| f64::from(x)).sum())
                    .collect();
                differ |= sums.iter().any(|s| *s != sums[0]);
                strategy.tell(&sums).expect("finite");
                assert!(strategy.mean().iter().all(|&x| inside(f64::from(x))), "{}", described.name);
                let handed_out = strategy.centre().iter().chain(strategy.recommended());
                assert!(handed_out.copied().all(inside), "{} {repair:?}", described.name);
            }
            let reached = strategy.recommended().iter().sum::<f64>() / PARAMS as f64;
            assert!(differ && reached > 0.66, "{} {repair:?}: {reached}", described.name);
        }
    }
}

#[test]
fn restarts_come_when_nothing_rises() {
    for described in STRATEGIES {
        let plain = StrategyConfig::named(described.name).expect("it is in the list");
        let restarts = Restarts { after: 4, max: Some(2), spread: 0.0, ..Restarts::default() };
        let config = StrategyConfig { restarts: Some(restarts), ..plain.clone() };
        let (mut strategy, mut without) = (new(&config), new(&plain));
        let first = config.population(PARAMS);
        let mut populations = Vec::new();
        for generation in 0..30_u64 {
            let population = strategy.ask();
            let n = population.len();
            populations.push(n / first);
            if generation < 5 {
                assert_eq!(population, without.ask(), "{}: nothing changes before", described.name);
                without.tell(&vec![1.0; n]).expect("finite");
            }
            let flat = vec![1.0; n];
            assert_eq!(strategy.tell(&flat).expect("finite").generation, generation + 1);
        }
        // The first generation of each start counts as an improvement; four without improvement follow.
        let expect: Vec<usize> = [1; 5].into_iter().chain([2; 5]).chain([4; 20]).collect();
        assert_eq!(populations, expect, "{}", described.name);
        assert_eq!(strategy.generation(), 30);
    }
}

#[test]
fn what_an_earlier_restart_reached_stays_recommended() {
    let config: StrategyConfig = toml::from_str(
        "algorithm = 'snes'\npopulation = 8\nrestarts = { after = 3, tolerance = 0.0, spread = 2.0 }",
    )
    .expect("fine");
    let mut strategy = new(&config);
    let tell = |strategy: &mut Box<dyn Evolver>, mean: f64, best: f64| {
        let n = strategy.ask().len();
        let mut fitness = vec![mean; n];
        (fitness[0], fitness[1]) = (best, 2.0 * mean - best);
        strategy.tell(&fitness).expect("finite");
    };
    for best in [5.0, 9.0, 4.0, 4.0] {
        tell(&mut strategy, 3.0, best);
    }
    let last = strategy.centre().to_vec();
    tell(&mut strategy, 3.5, 4.0);
    assert_eq!(strategy.ask().len(), 16, "it has begun anew");
    assert_ne!(strategy.centre(), last, "somewhere else");
    let kept = strategy.recommended().to_vec();
    assert_ne!(kept, strategy.centre());
    tell(&mut strategy, 3.4, 100.0);
    assert_eq!(strategy.recommended(), kept, "one lucky genome is no better population");
    tell(&mut strategy, 3.6, 10.0);
    assert_eq!(strategy.recommended(), strategy.centre());
    tell(&mut strategy, 3.4, 10.0);
    assert_eq!(strategy.recommended(), kept);
}

#[test]
fn a_broken_state_is_refused_and_changes_nothing() {
    for (name, config) in all() {
        let mut strategy = new(&config);
        generations(strategy.as_mut(), 3);
        let good = strategy.state();
        for (key, tensor) in &good {
            let longer: Tensor = match tensor.data() {
                TensorData::F32(v) => [&v[..], &[0.0]].concat().into(),
                TensorData::F64(v) => [&v[..], &[0.0]].concat().into(),
                TensorData::U64(v) => [&v[..], &[0]].concat().into(),
                other => panic!("{name}: {key} is {}", other.dtype()),
            };
            let not_finite: Tensor = match tensor.data() {
                TensorData::F32(v) => vec![f32::NAN; v.len().max(1)].into(),
                other => vec![f64::NAN; other.len().max(1)].into(),
            };
            for broken in [None, Some(longer), Some(not_finite)] {
                let mut state = good.clone();
                state.remove(key);
                if let Some(tensor) = broken {
                    state.insert(key.clone(), tensor);
                }
                let error = strategy.restore(&state).expect_err(key).to_string();
                assert!(error.contains("does not fit"), "{name}, {key}: {error}");
                assert_eq!(strategy.state(), good, "{name}, {key}");
            }
        }
        // Another seed, another strategy, other settings.
        let mut stranger = make(&config, vec![0.7; PARAMS], Seed::root(6)).expect("fine");
        let error = stranger.restore(&good).expect_err("another seed").to_string();
        assert!(error.contains("another seed"), "{name}: {error}");
        let mut changed =
            toml::to_string(&config).expect("plain values").parse::<toml::Table>().expect("TOML");
        changed.insert("sigma".into(), toml::Value::Float(0.123));
        let mut other = new(&changed.try_into().expect("every strategy has a sigma"));
        let error = other.restore(&good).expect_err("other settings").to_string();
        assert!(error.contains("settings"), "{name}: {error}");
    }
}

#[test]
fn numbers_beyond_all_range_are_refused_with_their_place() {
    // A plane has no maximum: step sizes grow until they are rejected, and nothing is NaN before that.
    for described in STRATEGIES {
        let mut strategy = new(&StrategyConfig::named(described.name).expect("it is in the list"));
        for _ in 0..3000 {
            let population = strategy.ask();
            let heights: Vec<f64> = (0..population.len())
                .map(|i| population.genome(i).iter().map(|&x| f64::from(x)).sum())
                .collect();
            assert!(heights.iter().all(|h| h.is_finite()), "{}", described.name);
            let before = strategy.state();
            match strategy.tell(&heights) {
                Ok(_) => assert!(strategy.centre().iter().all(|x| x.is_finite()), "{}", described.name),
                Err(EvolveError::Diverged { .. }) => {
                    assert_eq!(strategy.state(), before, "{}", described.name);
                    break;
                }
                Err(other) => panic!("{}: {other}", described.name),
            }
        }
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let cases = [
        ("algorithm = 'snes'\npopulation = 1", "population = 1; a generation needs at least 2"),
        (
            "algorithm = 'snes'\npopulation = 9\nmirrored = true",
            "population = 9; mirrored pairs need an even",
        ),
        ("algorithm = 'snes'\nsigma = -0.1", "sigma = -0.1; it must be above 0"),
        ("algorithm = 'snes'\nlearning_rate = 0", "learning_rate = 0; it must be above 0"),
        ("algorithm = 'snes'\nsigma_learning_rate = -1", "sigma_learning_rate = -1; it must be 0 or more"),
        ("algorithm = 'openai-es'\npopulation = 0", "population = 0"),
        (
            "algorithm = 'openai-es'\npopulation = 9",
            "population = 9; mirrored pairs need an even number, such as 10",
        ),
        ("algorithm = 'openai-es'\nsigma = nan", "sigma = NaN"),
        ("algorithm = 'openai-es'\nlearning_rate = 0.0", "learning_rate = 0"),
        ("algorithm = 'openai-es'\nsigma_decay = 1.5", "sigma_decay = 1.5; it must be above 0 and at most 1"),
        ("algorithm = 'openai-es'\nsigma_min = -1", "sigma_min = -1"),
        ("algorithm = 'openai-es'\nbeta1 = 1", "beta1 = 1; it must be at least 0 and below 1"),
        ("algorithm = 'openai-es'\nbeta2 = -1", "beta2 = -1"),
        ("algorithm = 'openai-es'\nweight_decay = inf", "weight_decay = inf"),
        ("algorithm = 'pgpe'\npopulation = 3", "population = 3; mirrored pairs"),
        ("algorithm = 'pgpe'\nsigma = 0", "sigma = 0"),
        ("algorithm = 'pgpe'\nlearning_rate = 0", "learning_rate = 0"),
        ("algorithm = 'pgpe'\nmax_speed = 0", "max_speed = 0"),
        ("algorithm = 'pgpe'\nmax_speed = 1\noptimizer = 'adam'", "max_speed is ClipUp's"),
        ("algorithm = 'pgpe'\nsigma_max_change = 0", "sigma_max_change = 0"),
        ("algorithm = 'pgpe'\nsigma_learning_rate = -0.5", "sigma_learning_rate = -0.5"),
        ("algorithm = 'pgpe'\nmomentum = 1", "momentum = 1"),
        ("algorithm = 'simple-ga'\npopulation = 1", "population = 1"),
        ("algorithm = 'simple-ga'\nparents = 0", "parents = 0; choose 1 to 64"),
        ("algorithm = 'simple-ga'\nparents = 65", "parents = 65; choose 1 to 64"),
        (
            "algorithm = 'simple-ga'\nelites = 17",
            "elites = 17; with 16 parents in a population of 64, choose 0 to 16",
        ),
        ("algorithm = 'simple-ga'\nsigma = 0", "sigma = 0"),
        ("algorithm = 'simple-ga'\nsigma_decay = 0", "sigma_decay = 0"),
        ("algorithm = 'rank-es'\nbounds = { low = 1, high = 1 }", "bounds = [1, 1]; low must be below high"),
        ("algorithm = 'rank-es'\nbounds = { low = nan, high = 1 }", "bounds = [NaN, 1]"),
        (
            "algorithm = 'rank-es'\nbounds = { low = 0.8, high = 1 }",
            "parameter 0 of the start is 0.7, outside",
        ),
        ("algorithm = 'rank-es'\nrestarts = { after = 0 }", "restarts.after = 0"),
        ("algorithm = 'rank-es'\nrestarts = { tolerance = -1 }", "restarts.tolerance = -1"),
        ("algorithm = 'rank-es'\nrestarts = { spread = inf }", "restarts.spread = inf"),
        ("algorithm = 'rank-es'\nrestarts = { population_factor = 0.5 }", "restarts.population_factor = 0.5"),
        (
            "algorithm = 'rank-es'\nrestarts = { max_population = 8 }",
            "restarts.max_population = 8; the first population is 32",
        ),
    ];
    for (text, why) in cases {
        let config: StrategyConfig = toml::from_str(text).expect(text);
        let error = make(&config, vec![0.7; PARAMS], Seed::root(1)).err().expect(text).to_string();
        assert!(error.contains(why), "{error} / {why}");
    }
    for (name, config) in all() {
        for (mean, why) in
            [(vec![], "0 parameters"), (vec![0.0, f64::NAN], "parameter 1 of the start is NaN")]
        {
            let error = make(&config, mean, Seed::root(1)).err().expect(&name).to_string();
            assert!(error.contains(why), "{name}: {error} / {why}");
        }
    }
}
