//! What is planted is as its description says, and the suite asks it.

use std::collections::BTreeSet;

use foveate_core::episode::{Episode, EpisodeRules};
use foveate_core::{Agent, EvaluateError, Observation, ObservationBuf};

use super::planted::places;
use super::*;

/// The observations of an episode of a case.
fn observations(case: &PlantedCase, seed: u64) -> Vec<ObservationBuf> {
    let mut env = case.world.make().expect("a world");
    let mut agent = PolicyAgent::new(Planted::new(case, env.spec()));
    let rules = EpisodeRules { max_steps: case.world.steps() as u64, ..EpisodeRules::WHOLE };
    let mut episode = Episode::of_seed(seed, rules);
    let agent: &mut dyn Agent = &mut agent;
    episode.reset(&mut *env, agent);
    let mut seen = vec![];
    while !episode.is_over() {
        seen.push(env.observation().into());
        episode.step::<EvaluateError>(&mut *env, agent, &mut ()).expect("it runs");
    }
    seen
}

fn act(case: &PlantedCase, seen: Observation<'_>, step: u32) -> Vec<f64> {
    let env = case.world.make().expect("a world");
    let mut action = vec![0.0; env.spec().action.len()];
    (case.acts)(seen, step, &mut action);
    action
}

#[test]
fn cases_have_names_and_reasons() {
    let names: BTreeSet<&str> = all().map(|case| case.name).collect();
    assert_eq!(names.len(), all().count(), "every name once");
    assert!(all().count() >= 24 && all().all(|case| case.about.len() > 40));
    for answer in [Answer::Yes, Answer::No, Answer::Undecided] {
        assert!(all().filter(|case| case.expected.right == answer).count() >= 4, "{answer}");
    }
}

#[test]
fn what_is_planted_varies() {
    let mut wrong: Vec<String> = vec![];
    for case in all() {
        let all: Vec<ObservationBuf> = (0..6).flat_map(|seed| observations(case, seed)).collect();
        let mut claims = BTreeSet::new();
        let (mut sum, mut square) = (0.0, 0.0);
        for seen in &all {
            let action = act(case, seen.as_observation(), 3);
            let mut claim = vec![0.0; places(seen.as_observation())];
            (case.claims)(seen.as_observation(), &mut claim);
            assert!(claim.iter().all(|claim| claim.is_finite()) && action.iter().all(|x| x.is_finite()));
            // The choice, or how it steers.
            let best = action.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let choice = action.iter().position(|&score| score == best).expect("a number") as f64;
            let done = if case.world.is_discrete() { choice } else { action[0] };
            sum += done;
            square += done * done;
            claims.insert(format!("{claim:.2?}"));
        }
        let n = all.len() as f64;
        let spread = (square / n - (sum / n).powi(2)).max(0.0).sqrt();
        let told = format!("{}: spread {spread:.3}, {} claims", case.name, claims.len());
        let sees = case.expected.moves == Answer::Yes;
        // Far above the hundredth of its range below which nothing is to be explained.
        if (spread > 0.15) != sees || (case.expected.moment == Answer::Yes && claims.len() < 2) {
            wrong.push(told);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The cases of these names.
fn cases(names: &[&str]) -> Vec<&'static PlantedCase> {
    let found: Vec<_> = all().filter(|case| names.contains(&case.name)).collect();
    assert_eq!(found.len(), names.len(), "{names:?}");
    found
}

fn calibrated(names: &[&str], episodes: usize, workers: usize) -> Calibration {
    let request = CalibrationRequest { episodes, seeds: 3..4, workers };
    let stop = Stop::default();
    let mut shares = vec![];
    let done = run_cases(&cases(names), &request, &stop, &mut |now| shares.push(now.done)).expect("it runs");
    assert!(shares.is_sorted() && shares.len() == names.len(), "{shares:?}");
    let cost = stop.cost().expect("it was announced");
    assert_eq!((cost.pieces, stop.pieces_done()), (names.len(), names.len()), "{}", cost.parts);
    done
}

#[test]
fn a_small_calibration_is_the_same_with_any_number_of_workers() {
    let names = [
        "constant action",
        "true region",
        "one number",
        "another number",
        "uniform over numbers",
        "cell in front",
    ];
    let done = calibrated(&names, 8, 2);
    assert_eq!(done, calibrated(&names, 8, 1));
    assert_eq!(done.cases.len(), 4 * names.len());
    let answer = |case: &str, question: &str| {
        let found = done.cases.iter().find(|of| of.case == case && of.question == question);
        found.expect("it was asked").given
    };
    assert_eq!(done.summary.wrong, 0, "{done}");
    assert_eq!(answer("constant action", "moves"), Answer::No);
    assert_eq!(answer("one number", "moves"), Answer::Yes, "{done}");
    assert_ne!(answer("uniform over numbers", "right"), Answer::Yes);
    assert_ne!(answer("another number", "right"), Answer::Yes);
    assert_eq!(done.measures.len(), MEASURES.len() * names.len());
    assert!(done.measures.iter().all(|of| of.value.is_some()), "{:?}", done.measures);
    let json = serde_json::to_value(&done).expect("plain values");
    let first = &json["cases"][0];
    for key in ["case", "question", "expected", "given", "seed"] {
        assert!(first.get(key).is_some(), "{key}: {first}");
    }
    assert!(["yes", "no", "undecided"].contains(&first["expected"].as_str().expect("text")));
    let text = done.to_string();
    assert!(names.iter().all(|name| text.contains(name)) && text.contains("PGI"), "{text}");
}

#[test]
fn requests_that_cannot_be_fulfilled_are_refused() {
    let seeds = 1..2;
    for (request, says) in [
        (CalibrationRequest { episodes: 0, seeds: seeds.clone(), workers: 1 }, "episodes = 0"),
        (CalibrationRequest { episodes: 1 << 20, seeds: seeds.clone(), workers: 1 }, "1 to 1000"),
        (CalibrationRequest { episodes: 5, seeds: 2..2, workers: 1 }, "seeds = 0"),
        (CalibrationRequest { episodes: 5, seeds: 0..u64::MAX, workers: 1 }, "1 to 10000"),
        (CalibrationRequest { episodes: 5, seeds, workers: 1 << 20 }, "workers"),
    ] {
        let error = run(&request, &Stop::default(), &mut |_| ()).expect_err("refused").to_string();
        assert!(error.contains(says), "{error}");
    }
    let stop = Stop::default();
    stop.ask();
    let request = CalibrationRequest { episodes: 5, seeds: 1..2, workers: 2 };
    assert!(run(&request, &stop, &mut |_| ()).is_err(), "it stops when it is asked to");
}
