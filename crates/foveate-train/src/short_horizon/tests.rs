use foveate_core::episode::EpisodeRules;
use foveate_core::{EpisodeResult, Episodes, Progress};
use foveate_toy::ToyStudent;

use super::*;

/// An episode of the world `x' = 0.9 x + a`, reward `1 − x'²`, driven by `a = w x`; it ends where |x| is above 3.
fn episode(w: f64, seed: u64, steps: usize) -> DifferentiatedEpisode {
    let mut x = Seed::root(seed).rng().uniform(-1.0, 1.0);
    let mut episode = DifferentiatedEpisode { states: 1, ..DifferentiatedEpisode::default() };
    for _ in 0..steps {
        let next = 0.9 * x + w * x;
        episode.inputs.push(x as f32);
        episode.observations.push(x as f32);
        episode.observation.push(1.0);
        episode.rewards.push((1.0 - next * next) as f32);
        episode.state.extend([0.9, 1.0]);
        episode.reward.extend([0.9, 1.0].map(|slope| (-2.0 * next * slope) as f32));
        episode.steps += 1;
        x = next;
        episode.terminated = x.abs() > 3.0;
        if episode.terminated {
            break;
        }
    }
    episode.observations.push(x as f32);
    episode.observation.push(1.0);
    episode
}

fn config() -> ShortHorizonConfig {
    ShortHorizonConfig {
        horizon: 6,
        discount: 0.9,
        updates: 2,
        learning_rate: 0.02,
        averaging: 0.9,
        critic_rounds: 3,
        critic_batch: 64,
        critic_units: 8,
        ..ShortHorizonConfig::default()
    }
}

fn new(config: ShortHorizonConfig) -> ShortHorizon {
    from(0.3, config)
}

fn from(weight: f64, config: ShortHorizonConfig) -> ShortHorizon {
    ShortHorizon::new(config, vec![weight], Seed::root(1), Box::new(ToyStudent::linear(1, 1))).expect("fine")
}

fn experience(episodes: Vec<DifferentiatedEpisode>) -> Experience {
    let total = |episode: &DifferentiatedEpisode| episode.rewards.iter().map(|&r| f64::from(r)).sum();
    Experience {
        episodes: episodes
            .iter()
            .map(|e| EpisodeResult { total: total(e), ..EpisodeResult::default() })
            .collect(),
        recordings: episodes.into_iter().map(Recording::Differentiated).collect(),
        ..Experience::default()
    }
}

fn round(learner: &mut ShortHorizon) -> Progress {
    let seeds = |_, episode| episode as u64;
    let work = learner.work(&Episodes { per_row: 4, rules: EpisodeRules::WHOLE, seeds: &seeds });
    assert_eq!((work.record, work.jobs.len()), (Record::Derivatives, 4));
    let w = f64::from(work.weights.genome(0)[0]);
    let seed = 4 * learner.generation();
    learner.receive(experience((0..4).map(|i| episode(w, seed + i, 20)).collect())).expect("fine")
}

#[test]
fn it_finds_the_best_policy_of_a_linear_world() {
    let mut learner = new(config());
    for generation in 0..config().critic_rounds {
        assert_eq!(round(&mut learner).generation, generation + 1);
        assert_eq!(learner.weights(), [0.3], "the critic alone learns");
    }
    for _ in 0..400 {
        round(&mut learner);
    }
    for (w, what) in [(learner.weights()[0], "average"), (learner.centre()[0], "current")] {
        assert!((w + 0.9).abs() < 0.05, "{what}: {w}");
    }
}

#[test]
fn values_are_those_of_the_returns_beyond_the_end_of_an_episode() {
    // The critic alone learns, and x halves in every step.
    let config = ShortHorizonConfig {
        critic_rounds: 1000,
        critic_updates: 20,
        critic_learning_rate: 0.003,
        ..config()
    };
    let mut learner = from(-0.4, config);
    for _ in 0..300 {
        round(&mut learner);
    }
    let mut values = vec![];
    learner.method.critic.as_mut().expect("it has learnt").values(
        Level::best(),
        &[0.0, 0.5, 1.0],
        &mut values,
    );
    for (value, x) in values.iter().zip([0.0, 0.5, 1.0]) {
        // (1 − 0.9) Σ 0.9^t (1 − (x / 2^(t + 1))²)
        let expect = 1.0 - 0.1 * x * x * 0.25 / (1.0 - 0.9 * 0.25);
        assert!((f64::from(*value) - expect).abs() < 0.02, "{x}: {value}, {expect}");
    }
    assert!(values[0] > values[2], "{values:?}");
}

#[test]
fn a_restored_learner_goes_on_to_the_bit() {
    let (mut learner, mut other) = (new(config()), new(config()));
    for _ in 0..6 {
        round(&mut learner);
    }
    other.restore(&learner.state()).expect("its own");
    assert_eq!(other.state(), learner.state());
    for _ in 0..3 {
        round(&mut learner);
        round(&mut other);
    }
    assert_eq!(other.state(), learner.state());

    let mut faster = new(ShortHorizonConfig { learning_rate: 0.1, ..config() });
    let said = faster.restore(&learner.state()).expect_err("other settings").to_string();
    assert!(said.contains("settings"), "{said}");
    faster.restore_changed(&learner.state()).expect("it goes on with its own settings");
    let mut state = learner.state();
    state.remove("critic.target");
    assert!(other.restore(&state).is_err());
    state.retain(|name, _| !name.starts_with("critic."));
    let said = other.restore(&state).expect_err("it has learnt").to_string();
    assert!(said.contains("no critic"), "{said}");
}

/// Windows at random times teach the same policy; episodes that ended before theirs teach nothing.
#[test]
fn windows_teach_what_whole_episodes_teach() {
    let mut learner = new(ShortHorizonConfig { whole_episodes: false, updates: 1, ..config() });
    let seeds = |_, episode| episode as u64;
    let empty = DifferentiatedEpisode { begin: 3, terminated: true, ..DifferentiatedEpisode::default() };
    learner.receive(experience(vec![empty.clone(); 4])).expect("nothing to learn");
    assert_eq!((learner.generation(), learner.weights()), (1, &[0.3][..]));
    let mut other = new(ShortHorizonConfig { whole_episodes: false, updates: 1, ..config() });
    other.restore(&learner.state()).expect("a learner that has not learnt");
    for round in 0..600 {
        let work = learner.work(&Episodes { per_row: 4, rules: EpisodeRules::WHOLE, seeds: &seeds });
        assert_eq!(work.record, Record::Window { steps: 6 });
        let w = f64::from(work.weights.genome(0)[0]);
        let windows = (0..3).map(|i| episode(w, 4 * round + i, 6)).chain([empty.clone()]).collect();
        learner.receive(experience(windows)).expect("fine");
    }
    assert!((learner.weights()[0] + 0.9).abs() < 0.05, "{:?}", learner.weights());
    let mut whole = new(config());
    assert!(whole.receive(experience(vec![empty])).is_err(), "whole episodes have steps");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut learner = new(config());
    round(&mut learner);
    let before = learner.state();
    let good = episode(0.3, 1, 5);
    let wrong = [
        (vec![], "without any episode"),
        (vec![DifferentiatedEpisode { steps: 4, ..good.clone() }], "of 4 steps"),
        (vec![DifferentiatedEpisode { rewards: vec![f32::NAN; 5], ..good.clone() }], "not finite"),
        (
            vec![DifferentiatedEpisode { observations: vec![0.0; 12], observation: vec![0.0; 12], ..good }],
            "numbers",
        ),
    ];
    for (episodes, expect) in wrong {
        let mut given = experience(episodes);
        for result in &mut given.episodes {
            result.total = 0.0;
        }
        let said = learner.receive(given).expect_err(expect).to_string();
        assert!(said.contains(expect), "{said}");
        assert_eq!(learner.state(), before, "{expect}");
    }
    for (bad, expect) in [
        (ShortHorizonConfig { horizon: 0, ..config() }, "horizon = 0"),
        (ShortHorizonConfig { discount: 1.0, ..config() }, "discount = 1"),
        (ShortHorizonConfig { trace: -0.1, ..config() }, "trace = -0.1"),
        (ShortHorizonConfig { critic_target: 0.0, ..config() }, "critic_target = 0"),
        (ShortHorizonConfig { clip: f64::NAN, ..config() }, "clip = NaN"),
        (ShortHorizonConfig { episode_clip: -1.0, ..config() }, "episode_clip = -1"),
    ] {
        let said = bad.check().expect_err(expect).to_string();
        assert!(said.contains(expect), "{said}");
    }
}

/// An episode whose gradient is huge does not decide a step alone, if it is clipped.
#[test]
fn gradients_of_single_episodes_are_clipped() {
    let bounded = |episode_clip| ShortHorizonConfig { episode_clip, ..config() };
    for (bound, gradient, expect) in
        [(1.0, [3.0, 4.0], 0.2), (6.0, [3.0, 4.0], 1.0), (0.0, [3e9, 4e9], 1.0), (1.0, [0.0, 0.0], 1.0)]
    {
        assert_eq!(bounded(bound).scale(&gradient), expect, "{bound} {gradient:?}");
    }
    // The first moment of Adam after one round.
    let moment = |episode_clip: f64| {
        let mut learner = from(0.3, ShortHorizonConfig { critic_rounds: 0, ..bounded(episode_clip) });
        learner.receive(experience((0..4).map(|seed| episode(0.3, seed, 6)).collect())).expect("fine");
        StateReader(&learner.state()).f64s("adam.first", 1).expect("one weight")[0]
    };
    let (free, clipped) = (moment(0.0), moment(1e-3));
    assert!(free < -0.1 && (-1e-3..0.0).contains(&clipped), "{free} {clipped}");
}

/// The slope of the critic counts at terminations if it is asked for, and changes nothing elsewhere.
#[test]
fn terminations_follow_the_critic_if_asked() {
    let learnt = |terminal_slope: bool, weight: f64| {
        let mut learner = from(weight, ShortHorizonConfig { terminal_slope, ..config() });
        let mut episodes: Vec<_> = (0..4).map(|seed| episode(weight, seed, 40)).collect();
        for episode in &mut episodes {
            // Small rewards, so that the gradient is not clipped to a norm of 1.
            episode.rewards.iter_mut().chain(&mut episode.reward).for_each(|x| *x *= 0.001);
        }
        let terminated = episodes.iter().any(|episode| episode.terminated);
        for _ in 0..5 {
            learner.receive(experience(episodes.clone())).expect("fine");
        }
        // With one parameter the steps of Adam hardly depend on the size of a gradient, but its moments do.
        let mut state = learner.state();
        state.remove("settings");
        (terminated, state)
    };
    let ((terminated, with), (_, without)) = (learnt(true, 0.3), learnt(false, 0.3));
    assert!(terminated && with != without);
    let ((terminated, with), (_, without)) = (learnt(true, -0.3), learnt(false, -0.3));
    assert!(!terminated && with == without);
}
