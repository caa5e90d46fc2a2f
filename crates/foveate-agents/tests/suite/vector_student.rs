//! The student of an AttentionNeuron on numbers acts as its agent does, and its gradient is that of its error.

use foveate_agents::attention_neuron::student::VectorStudent;
use foveate_agents::attention_neuron::vectors::{VectorAgent, VectorConfig};
use foveate_agents::config::Scale;
use foveate_agents::registry::{AgentConfig, Init};
use foveate_core::{
    ActContext, Demonstration, Model, Observation, Policy, PolicyError, Seed, Student, Taught,
};
use foveate_kernels::Level;

/// The published architecture, and one with every kind of parameters.
fn configs() -> [VectorConfig; 2] {
    let names = |n: usize| (0..n).map(|i| format!("number {i}")).collect();
    let other = VectorConfig {
        codes: 7,
        query_dim: 6,
        key_dim: 9,
        message_dim: 5,
        bias: true,
        scale: Scale::SqrtD,
        layers: vec![6, 4],
        sensors: names(3),
        actions: vec![[-1.0, 1.0], [2.0, 10.0]],
        ..VectorConfig::default()
    };
    [VectorConfig::cartpole_pi(), other]
}

fn drawn(config: &VectorConfig, seed: u64) -> Vec<f32> {
    config.initial_params(Init::Torch, Seed::root(seed)).iter().map(|w| 2.0 * w).collect()
}

fn student(config: &VectorConfig, params: &[f32]) -> VectorStudent {
    let mut student = VectorStudent::new(config.clone()).expect("a good configuration");
    student.set_params(params).expect("the right count");
    student
}

/// What an agent does with random numbers, and what it was told.
fn drive(config: &VectorConfig, params: &[f32], steps: usize) -> Demonstration {
    let mut agent = VectorAgent::new(config.clone()).expect("a good configuration");
    agent.set_params(params).expect("the right count");
    let mut memory = agent.memory();
    let mut rng = Seed::root(3).rng();
    let mut demonstration = Demonstration { steps, ..Demonstration::default() };
    for _ in 0..steps {
        let numbers: Vec<f32> = config.sensors.iter().map(|_| rng.uniform(-2.0, 2.0) as f32).collect();
        let context = &mut ActContext::default();
        let decision = agent.act(Observation::Vector(&numbers), &mut memory, context).expect("it sees that");
        demonstration.actions.extend(decision.action.iter().map(|&a| a as f32));
        let inputs = agent.study_inputs(&memory).expect("as many as are named");
        assert!(inputs.picture.is_empty());
        demonstration.inputs.extend_from_slice(inputs.numbers);
    }
    demonstration
}

/// The same with every action a tenth of its half range higher.
fn off(config: &VectorConfig, mut demonstration: Demonstration) -> Demonstration {
    for action in demonstration.actions.chunks_exact_mut(config.actions.len()) {
        action
            .iter_mut()
            .zip(&config.actions)
            .for_each(|(a, [low, high])| *a += (0.05 * (high - low)) as f32);
    }
    demonstration
}

#[test]
fn it_acts_as_the_agent_does() {
    for config in configs() {
        let params = drawn(&config, 1);
        let demonstration = drive(&config, &params, 40);
        let mut gradient = vec![0.0; params.len()];
        let n = config.actions.len() as f64;
        assert_eq!(demonstration.inputs.len(), 40 * student(&config, &params).inputs());
        let mut study =
            |piece, burn_in| student(&config, &params).study(&demonstration, piece, burn_in, &mut gradient);
        let same = 40.0 * n * 1e-11;
        assert!(study(0..40, 0) < same);
        assert!(study(20..40, 20) < same);
        assert!(study(20..40, 1000) < same, "the episode has no more steps than these");
        assert!(study(20..40, 0) > 100.0 * same, "without its memory it does something else");
        let shifted = off(&config, demonstration);
        let error = student(&config, &params).study(&shifted, 0..40, 0, &mut gradient);
        assert!((error - 40.0 * n * 0.01).abs() < 1e-3, "{error}");
    }
}

#[test]
fn the_gradient_is_that_of_the_error_on_every_level() {
    for config in configs() {
        let params = drawn(&config, 2);
        let demonstration = off(&config, drive(&config, &drawn(&config, 4), 30));
        let mut learner = student(&config, &params);
        let mut gradient = vec![0.0; params.len()];
        learner.study(&demonstration, 0..30, 0, &mut gradient);
        for level in Level::available() {
            let mut other = vec![0.0; params.len()];
            student(&config, &params).with_level(level).study(&demonstration, 0..30, 0, &mut other);
            assert_eq!(other, gradient, "{level}");
        }
        let learns = learner.learns();
        assert_eq!(learns, 4 * config.key_dim..params.len());
        assert!(gradient[..learns.start].iter().all(|&g| g == 0.0), "bias_hh does not learn");
        let largest = gradient.iter().fold(0.0_f32, |most, g| most.max(g.abs()));
        let mut checked = 0;
        for i in learns.step_by(3) {
            let mut at = |change: f32| {
                let mut moved = params.clone();
                moved[i] += change;
                let changed = f64::from(moved[i]);
                learner.set_params(&moved).expect("finite");
                (
                    learner.student().expect("it is one").study(
                        &demonstration,
                        0..30,
                        0,
                        &mut vec![0.0; params.len()],
                    ),
                    changed,
                )
            };
            let ((up, a), (down, b)) = (at(3e-3), at(-3e-3));
            let expect = (up - down) / (a - b);
            let tolerance = 0.003 * f64::from(largest) + 0.01 * expect.abs();
            assert!(
                (f64::from(gradient[i]) - expect).abs() < tolerance,
                "parameter {i}: {} {expect}",
                gradient[i]
            );
            checked += u32::from(expect.abs() > tolerance);
        }
        assert!(checked > 50, "only {checked} derivatives are not tiny");
    }
}

/// Sensors that differ in how they answer the last action are soon told apart: each code comes to read the sensor of its
/// number. The layers behind do not learn.
#[test]
fn the_names_of_sensors_are_learnt() {
    let config = VectorConfig {
        codes: 3,
        query_dim: 6,
        sensors: (0..3).map(|i| format!("number {i}")).collect(),
        actions: vec![[-1.0, 1.0]],
        ..VectorConfig::default()
    };
    let mut params = drawn(&config, 5);
    let mut rng = Seed::root(8).rng();
    let mut inputs = vec![];
    for _ in 0..200 {
        let did = rng.uniform(-1.0, 1.0) as f32;
        inputs.extend([did, -did, rng.uniform(-1.0, 1.0) as f32, did]);
    }
    let demonstration =
        Demonstration { inputs, actions: vec![0.0; 200], steps: 200, ..Demonstration::default() };
    let mut learner = student(&config, &params).taught(Taught::Names).expect("a code for each sensor");
    let mut study = |params: &[f32]| {
        learner.set_params(params).expect("finite");
        let mut gradient = vec![0.0; params.len()];
        (
            learner.student().expect("it is one").study(&demonstration, 40..80, 10, &mut gradient) / 40.0,
            gradient,
        )
    };
    let (before, gradient) = study(&params);
    assert!(before > 1.0, "no better than chance, {before}");
    let layers = gradient.len() - (config.codes + 1);
    assert!(gradient[..layers].iter().any(|&g| g != 0.0) && gradient[layers..].iter().all(|&g| g == 0.0));
    for _ in 0..2000 {
        let (_, gradient) = study(&params);
        let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
        params.iter_mut().zip(&gradient).for_each(|(p, g)| *p -= 0.01 * g / norm.max(1.0));
    }
    let (after, _) = study(&params);
    assert!(after < 0.6 * 3.0_f64.ln(), "{before}, {after}: chance has ln 3");

    let few = VectorConfig { codes: 2, ..config };
    assert!(student(&few, &drawn(&few, 5)).taught(Taught::Names).is_none());
}

#[test]
fn the_number_of_sensors_is_that_of_their_names() {
    let said = VectorStudent::new(VectorConfig::default()).expect_err("it names none").to_string();
    assert!(said.contains("sensors names none") && said.contains("name every number"), "{said}");
    let many =
        VectorConfig { key_dim: 2000, sensors: vec![String::new(); 60_000], ..VectorConfig::default() };
    let said = VectorStudent::new(many).expect_err("too many").to_string();
    assert!(said.contains("60000 sensors") && said.contains("lower key_dim"), "{said}");
    let config = VectorConfig::cartpole_pi();
    let agent = VectorAgent::new(config.clone()).expect("a good configuration");
    let mut memory = agent.memory();
    agent.act(Observation::Vector(&[0.0; 10]), &mut memory, &mut ActContext::default()).expect("any number");
    let said = agent.study_inputs(&memory).expect_err("ten are shown").to_string();
    assert!(said.contains("shows 10 numbers") && said.contains("names 5"), "{said}");
    let mut learner = student(&config, &drawn(&config, 1));
    assert!(matches!(learner.set_params(&[0.0]), Err(PolicyError::ParamCount { given: 1, .. })));
}
