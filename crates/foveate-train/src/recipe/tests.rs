//! Valid and invalid recipes.

use super::*;

fn sample() -> Recipe {
    let text = "
        max_steps = 1000
        [selection]
        every = 500_000
        tracks = 32
        finalists = 4
        final_tracks = 64
        report_tracks = 100
        evaluation_tracks = 100
        [[stage]]
        name = 'tries'
        starts = 3
        steps = 2_000_000
        population = 32
        sigma = 0.1
        averaging = 0.9
        [[stage]]
        name = 'refine'
        steps = 4_000_000";
    toml::from_str(text).expect("right")
}

#[test]
fn stages_share_the_training_steps() {
    let mut recipe = sample();
    let steps = |recipe: &Recipe| recipe.stages.iter().map(|stage| stage.steps).collect::<Vec<_>>();
    recipe.set_training_steps(1_000_000).expect("enough");
    assert_eq!((steps(&recipe), recipe.training_steps()), (vec![200_000, 400_000], 1_000_000));
    recipe.set_training_steps(5_003).expect("enough");
    assert_eq!(
        (steps(&recipe), recipe.training_steps()),
        (vec![1_000, 2_003], 5_003),
        "the last takes what is left"
    );
    recipe.stages.truncate(1);
    recipe.stages[0].starts = 1;
    recipe.set_training_steps(123_457).expect("enough");
    assert_eq!(steps(&recipe), [123_457], "to the step");
    let said = recipe.set_training_steps(0).expect_err("none").to_string();
    assert!(said.contains("0 training steps; choose 1 or more"), "{said}");
}

#[test]
fn every_default_is_written_out() {
    let text = "
        max_steps = 1000
        selection = { every = 500_000, tracks = 32, finalists = 4, final_tracks = 64, report_tracks = 100, evaluation_tracks = 100 }
        stage = [{ name = 'a', steps = 10, sigma = { from = 0.2, to = 0.1 } }, { name = 'b', steps = 10, population = 8 }]";
    let mut recipe: Recipe = toml::from_str(text).expect("fine");
    let before: Vec<_> = recipe.stages.iter().map(|s| s.learner("rank-es", 3).expect("fine")).collect();
    recipe.complete().expect("fine");
    let written = toml::to_string(&recipe).expect("plain values");
    for key in [
        "algorithm = \"rank-es\"",
        "init = \"torch\"",
        "patience = \"off\"",
        "evaluation_every = 4",
        "averaging = 0.0",
        "fitness = \"mean\"",
        "track_seeds = \"common\"",
        "reevaluate = 0",
    ] {
        assert!(written.contains(key), "{key} in {written}");
    }
    let after: Vec<_> = recipe.stages.iter().map(|s| s.learner("nothing", 3).expect("fine")).collect();
    assert_eq!(after, before);
    let once = recipe.clone();
    recipe.complete().expect("fine");
    assert_eq!(recipe, once);
}

#[test]
fn evaluations_cost_at_most_a_twentieth() {
    let every = |change: fn(&mut Recipe)| {
        let mut recipe = sample();
        recipe.selection.evaluation_every = None;
        change(&mut recipe);
        recipe.evaluation_every()
    };
    for (change, expect) in [
        ((|_| {}) as fn(&mut Recipe), Some(4)), // 100 tracks of 1000 steps beside 4 × 500,000
        (|r| r.selection.evaluation_tracks = 0, None),
        (|r| r.selection.evaluation_tracks = 25, Some(1)),
        (|r| r.selection.every = Interval::Steps(499_999), Some(5)),
        // 10 generations of 32 rollouts of about 100 steps.
        (|r| r.selection.every = Interval::Generations(10), Some(63)),
        (|r| r.selection.evaluation_every = Some(9), Some(9)),
    ] {
        assert_eq!(every(change), expect);
    }
}

#[test]
fn schedules_move_the_settings_of_a_strategy() {
    let ramp: toml::Table = "from = 0.2\nto = 0.1".parse().expect("TOML");
    let stage = Stage::new("a", 1000).with("sigma", ramp).with("population", 8);
    for (done, sigma) in [(0, 0.2), (500, 0.15), (1000, 0.1), (2000, 0.1)] {
        let now = stage.learner("rank-es", done).expect("fine").table().clone();
        assert!((now["sigma"].as_float().expect("a number") - sigma).abs() < 1e-12, "{now}");
        assert_eq!(now["population"].as_integer(), Some(8));
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    type Change = fn(&mut Recipe);
    fn stage(recipe: &mut Recipe, keys: &str) {
        let keys: toml::Table = keys.parse().expect("TOML");
        let mut table = toml::Table::try_from(&recipe.stages[0]).expect("plain");
        table.extend(keys);
        recipe.stages[0] = table.try_into().expect("a stage");
    }
    let cases: [(Change, &str); 42] = [
        (|r| r.stages.clear(), "the recipe has no stage; write"),
        (|r| stage(r, "algorithm = 'cma'"), "is called \"cma\"; did you mean cma-es? choose from: rank-es"),
        (|r| r.max_steps = 0, "max_steps = 0"),
        (|r| r.init = Init::Uniform(0.0), "init: uniform = 0 in the recipe; choose a number above 0"),
        (|r| r.init = Init::Uniform(f64::INFINITY), "init: uniform = inf"),
        (
            |r| r.teacher = Some(Teacher { weights: "a".into(), sha256: None }),
            "teacher in the recipe, but no stage imitates",
        ),
        (|r| r.selection.every = Interval::Steps(0), "selection.every = 0"),
        (|r| r.selection.every = Interval::Generations(0), "selection.every = 0"),
        (|r| r.selection.finalists = 0, "selection.finalists = 0"),
        (|r| r.selection.finalists = 1001, "selection.finalists = 1001 in the recipe; choose at most 1000"),
        (|r| r.selection.reevaluate = 11, "selection.reevaluate = 11 in the recipe; choose at most 10"),
        (|r| r.selection.evaluation_every = Some(0), "selection.evaluation_every = 0"),
        (
            |r| (r.selection.evaluation_tracks, r.selection.evaluation_every) = (0, Some(3)),
            "evaluation_every = 3 in the recipe without evaluation_tracks",
        ),
        (|r| r.selection.report_tracks = usize::MAX, "choose at most 1000000"),
        (|r| r.stages[1].starts = 0, "starts = 0; choose 1 or more (in stage \"refine\" of the recipe)"),
        (|r| r.stages[0].steps = 0, "steps = 0; choose 1 or more (in stage \"tries\""),
        (|r| stage(r, "generations = 0"), "generations = 0; choose 1"),
        (|r| stage(r, "tracks = 100000"), "tracks = 100000; choose at most 65536"),
        (|r| stage(r, "sigma = -1.0"), "sigma = -1"),
        (
            |r| stage(r, "sigma = 'small'"),
            "sigma wants a number, such as 0.1; it was given the text \"small\"",
        ),
        (|r| stage(r, "sigma = { from = 0.1, to = -0.1 }"), "sigma = -0.1"),
        (|r| stage(r, "sigma = { from = 0.1 }"), "sigma: missing field `to`; write a number"),
        (|r| stage(r, "sigma = [[0, 0.1], [9, 0.0]]"), "sigma = 0;"),
        (|r| stage(r, "sigm = 0.1"), "unknown field `sigm`, expected one of `population`"),
        (|r| stage(r, "sigm = 0.1"), "or those of any stage: name, starts"),
        (|r| stage(r, "population = 1"), "population = 1"),
        (|r| stage(r, "population = -5"), "-5"),
        (|r| stage(r, "bounds = { low = 2, high = 1 }"), "high"),
        (|r| stage(r, "restarts = { after = 0 }"), "after = 0"),
        (
            |r| stage(r, "restarts = { after = 9 }\nsigma = [[0, 0.1], [9, 0.2]]"),
            "and restarts; choose one of the two",
        ),
        (|r| stage(r, "algorithm = 'snes'"), "unknown field `averaging`"),
        (
            |r| {
                let bounds: toml::Table = "low = -1.0\nhigh = 1.0".parse().expect("TOML");
                r.stages[1].options.insert("bounds".into(), bounds.into());
            },
            "bounds from -1 to 1, and weights from the stage before that may lie outside; give",
        ),
        (|r| stage(r, "population = 1000000000"), "population = 1000000000; choose at most 65536"),
        (|r| stage(r, "population = [[0, 32], [100, 1]]"), "population = 1;"),
        (
            |r| stage(r, "max_steps = 1001"),
            "max_steps = 1001; choose from 1 to 1000, the max_steps of the recipe",
        ),
        (|r| stage(r, "max_steps = { from = 0, to = 500 }"), "max_steps = 0; choose from 1"),
        (
            |r| stage(r, "fitness = 'median'"),
            "tracks = 1, and of one track mean, median and cvar are the same; raise",
        ),
        (|r| stage(r, "tracks = 4\nfitness = { cvar = 0.0 }"), "fitness: cvar = 0; choose a share above 0"),
        (|r| stage(r, "tracks = 4\nfitness = { cvar = nan }"), "fitness: cvar = NaN"),
        (|r| stage(r, "replay = { share = 1.0 }"), "replay: share = 1; choose one above 0 and below 1"),
        (|r| stage(r, "replay = { share = 0.5, keep = 0 }"), "replay: keep = 0; choose from 1"),
        (
            |r| stage(r, "replay = { share = 0.5 }\ntrack_seeds = 'separate'"),
            "replay and track_seeds = \"separate\"; only tracks that all",
        ),
    ];
    for (change, why) in cases {
        let mut recipe = sample();
        change(&mut recipe);
        let said = recipe.check().expect_err(why).to_string();
        assert!(said.contains(why) && said.contains(';') && said.lines().count() == 1, "{said} / {why}");
    }
}
