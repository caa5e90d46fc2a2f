//! The gradient of the return through `AttentionNeuron` and CartPole, against finite differences of whole episodes.

use foveate_agents::AgentConfig;
use foveate_agents::attention_neuron::student::VectorStudent;
use foveate_agents::attention_neuron::vectors::{VectorAgent, VectorConfig};
use foveate_agents::registry::{Init, initial_params};
use foveate_core::episode::{Episode, EpisodeRules};
use foveate_core::{
    Agent, DifferentiatedEpisode, EpisodeResult, Model, PolicyAgent, Record, Recording, RolloutJob, Seed,
    Windows, run_episode,
};
use foveate_envs::registry::EnvRequest;

const DISCOUNT: f64 = 0.98;

fn config() -> VectorConfig {
    let names = ["x", "x'", "cos", "sin", "spin"];
    VectorConfig { sensors: names.map(String::from).to_vec(), ..VectorConfig::cartpole_pi() }
}

/// The first `steps` steps of an episode.
fn episode(params: &[f32], steps: u64) -> DifferentiatedEpisode {
    record(params, 7, steps, Record::Derivatives).0
}

fn record(
    params: &[f32],
    env_seed: u64,
    steps: u64,
    record: Record,
) -> (DifferentiatedEpisode, EpisodeResult) {
    let request = EnvRequest { id: "cartpole-swingup-harder".into(), ..EnvRequest::default() };
    let mut env = foveate_registry::make(&request).expect("a native world");
    let mut agent = PolicyAgent::new(VectorAgent::new(config()).expect("published"));
    agent.set_params(params).expect("as many");
    let job = RolloutJob { genome: 0, episode: 0, env_seed };
    let mut episode = Episode::new(job, EpisodeRules { max_steps: steps, ..EpisodeRules::WHOLE });
    let (result, recording) =
        run_episode(&mut episode, &mut *env, &mut agent, record).expect("it has derivatives");
    let Some(Recording::Differentiated(recorded)) = recording else { panic!("another recording") };
    assert_eq!(
        ((recorded.begin + recorded.steps) as u64, recorded.terminated),
        (result.steps, result.terminated)
    );
    if recorded.steps > 0 {
        recorded.check().expect("its lengths belong together");
    }
    (recorded, result)
}

/// A window is a part of the whole episode, and its gradient is that of this part.
#[test]
fn a_window_is_a_part_of_an_episode() {
    const LIMIT: u64 = 30;
    let settings = config().to_value().expect("plain values");
    let params = initial_params("attention-neuron", &settings, Init::Torch, Seed::root(3)).expect("fine");
    let (whole, _) = record(&params, 8, LIMIT, Record::Derivatives);
    let (window, result) = record(&params, 8, LIMIT, Record::Window { steps: 3 });
    let DifferentiatedEpisode { begin, steps, .. } = window;
    let all = begin + steps;
    assert!(begin > 0 && begin % 3 == 0 && all as u64 == (begin as u64 + 3).min(LIMIT), "{begin} {steps}");
    assert!(result.truncated && !result.terminated);
    assert_eq!(
        record(&params, 8, LIMIT, Record::Window { steps: 3 }).0,
        window,
        "the time belongs to the job"
    );
    assert_eq!(window.inputs, whole.inputs[..all * 6]);
    assert_eq!(window.observations, whole.observations[begin * 5..][..(steps + 1) * 5]);
    assert_eq!(window.rewards, whole.rewards[begin..all]);
    assert_eq!(window.state, whole.state[begin * 20..all * 20]);
    assert_eq!(window.reward, whole.reward[begin * 5..all * 5]);
    assert_eq!(window.observation, whole.observation[begin * 20..][..(steps + 1) * 20]);

    let mut student = VectorStudent::new(config()).expect("it has names");
    student.set_params(&params).expect("as many");
    let mut gradient_of = |episode: &DifferentiatedEpisode, ends: &[usize], chosen: &[bool]| {
        let values = vec![0.0; ends.len() * 5];
        let windows = Windows { ends, values: &values, chosen, discount: DISCOUNT, clip: 1e6 };
        let mut gradient = vec![0.0; params.len()];
        let given = student.study_world(episode, &windows, &mut gradient).expect("it fits");
        (given, gradient)
    };
    let of_window = gradient_of(&window, &[steps], &[true]);
    let mut ends = vec![begin, all];
    ends.extend((whole.steps > all).then_some(whole.steps));
    let chosen: Vec<bool> = (0..ends.len()).map(|i| i == 1).collect();
    let of_whole = gradient_of(&whole, &ends, &chosen);
    assert!((of_window.0 - of_whole.0).abs() < 1e-12);
    for (i, (a, b)) in of_window.1.iter().zip(&of_whole.1).enumerate() {
        assert!((a - b).abs() < 1e-6, "parameter {i}: {a}, {b} in the whole episode");
    }
}

/// The pole is not saved, so the cart leaves the track before most of the times that are drawn.
#[test]
fn an_episode_that_ends_before_its_window_records_nothing() {
    let settings = config().to_value().expect("plain values");
    let params = initial_params("attention-neuron", &settings, Init::Torch, Seed::root(3)).expect("fine");
    let (window, result) = record(&params, 8, u64::MAX, Record::Window { steps: 3 });
    assert!(result.terminated && window.terminated, "{result:?}");
    assert_eq!((window.begin as u64, window.steps, window.rewards.len()), (result.steps, 0, 0));
    let mut student = VectorStudent::new(config()).expect("it has names");
    let windows = Windows { ends: &[1], values: &[0.0; 5], chosen: &[true], discount: DISCOUNT, clip: 1.0 };
    assert!(student.study_world(&window, &windows, &mut vec![0.0; params.len()]).is_err());
}

#[test]
fn the_gradient_is_that_of_the_return() {
    const STEPS: u64 = 25;
    const SMALL: f64 = 3e-4;
    let settings = config().to_value().expect("plain values");
    let params = initial_params("attention-neuron", &settings, Init::Torch, Seed::root(3)).expect("fine");
    // Larger weights, so that actions are large.
    let params: Vec<f32> = params.iter().map(|w| 2.0 * w).collect();
    let recorded = episode(&params, STEPS);
    assert_eq!(recorded.steps as u64, STEPS, "the cart stays on its track");
    let ends = [recorded.steps];
    let windows = Windows { ends: &ends, values: &[0.0; 5], chosen: &[true], discount: DISCOUNT, clip: 1e6 };
    let mut student = VectorStudent::new(config()).expect("it has names");
    student.set_params(&params).expect("as many");
    let mut gradient = vec![0.0; params.len()];
    let given = student.study_world(&recorded, &windows, &mut gradient).expect("it fits");
    assert!((given - windows.returns(&recorded)).abs() < 1e-12);

    let learns = student.learns();
    for direction in 0..6 {
        let mut rng = Seed::root(direction).rng();
        let along: Vec<f64> =
            (0..params.len()).map(|i| if learns.contains(&i) { rng.normal() } else { 0.0 }).collect();
        let at = |by: f64| {
            let moved: Vec<f32> =
                params.iter().zip(&along).map(|(&w, d)| (f64::from(w) + by * d) as f32).collect();
            windows.returns(&episode(&moved, STEPS))
        };
        let expect = (at(SMALL) - at(-SMALL)) / (2.0 * SMALL);
        let got: f64 = -gradient.iter().zip(&along).map(|(&g, d)| f64::from(g) * d).sum::<f64>();
        assert!(
            (got - expect).abs() < 0.02 * expect.abs() + 2e-4,
            "direction {direction}: {got}, by differences {expect}"
        );
    }
}

/// The gradients of single windows add up to that of all.
#[test]
fn windows_are_parts_of_the_gradient() {
    let settings = config().to_value().expect("plain values");
    let params = initial_params("attention-neuron", &settings, Init::Torch, Seed::root(3)).expect("fine");
    let recorded = episode(&params, 25);
    let values: Vec<f32> = (0..15).map(|i| (i as f32).sin()).collect();
    let mut student = VectorStudent::new(config()).expect("it has names");
    student.set_params(&params).expect("as many");
    let mut of = |chosen: &[bool]| {
        let windows = Windows { ends: &[9, 18, 25], values: &values, chosen, discount: DISCOUNT, clip: 1e6 };
        let mut gradient = vec![0.0; params.len()];
        let given = student.study_world(&recorded, &windows, &mut gradient).expect("it fits");
        (gradient, given)
    };
    let (all, whole) = of(&[true; 3]);
    let parts = [0, 1, 2].map(|window| of(&[0, 1, 2].map(|i| i == window)));
    assert!((parts.iter().map(|(_, given)| given).sum::<f64>() - whole).abs() < 1e-12);
    for (i, &expect) in all.iter().enumerate() {
        let sum: f32 = parts.iter().map(|(gradient, _)| gradient[i]).sum();
        assert!((sum - expect).abs() < 1e-5, "parameter {i}: {sum}, {expect} in one");
    }
    assert!(parts.iter().all(|(gradient, _)| gradient.iter().any(|&g| g != 0.0)));
    assert!(of(&[false; 3]).0.iter().all(|&g| g == 0.0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let settings = config().to_value().expect("plain values");
    let params = initial_params("attention-neuron", &settings, Init::Torch, Seed::root(3)).expect("fine");
    let recorded = episode(&params, 10);
    let mut student = VectorStudent::new(config()).expect("it has names");
    student.set_params(&params).expect("as many");
    let mut gradient = vec![0.0; params.len()];
    let values = [0.0; 10];
    for (ends, values) in [
        (&[][..], &values[..0]),
        (&[9], &values[..5]),
        (&[0, 10], &values[..10]),
        (&[10, 10], &values[..10]),
        (&[5, 10], &values[..5]),
    ] {
        let windows =
            Windows { ends, values, chosen: &[true; 2][..ends.len().min(2)], discount: DISCOUNT, clip: 1.0 };
        let said = student.study_world(&recorded, &windows, &mut gradient).expect_err("windows").to_string();
        assert!(said.contains("windows that end at"), "{said}");
    }
    let fewer = VectorConfig { sensors: config().sensors[..4].to_vec(), ..config() };
    let mut student = VectorStudent::new(fewer).expect("it has names");
    let windows =
        Windows { ends: &[10], values: &values[..5], chosen: &[true], discount: DISCOUNT, clip: 1.0 };
    let said = student.study_world(&recorded, &windows, &mut gradient).expect_err("sensors").to_string();
    assert!(said.contains("4 sensors"), "{said}");
}

#[test]
fn shifted_worlds_have_no_derivatives() {
    let shifts = vec!["shuffle:1".into()];
    let request = EnvRequest { id: "cartpole-swingup-harder".into(), shifts, ..EnvRequest::default() };
    let mut env = foveate_registry::make(&request).expect("a native world");
    env.reset(Some(1));
    let said =
        env.derivatives(&[0.0], &mut foveate_core::StepDerivatives::default()).expect_err("none").to_string();
    assert!(said.contains("no derivatives"), "{said}");
}
