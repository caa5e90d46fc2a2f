//! The student acts as its agent does, and learns what a teacher does.

use foveate_agents::registry::{self, AgentConfig, Init};
use foveate_agents::{AttentionAgent, AttentionAgentConfig, LstmStudent};
use foveate_core::{
    ActContext, Agent, Demonstration, ImageBuf, Model, Observation, PolicyAgent, PolicyError, Seed, Student,
    episode_seed,
};
use foveate_kernels::Level;
use serde_json::json;

/// A small agent with every kind of parameters.
fn config() -> AttentionAgentConfig {
    serde_json::from_value(json!({
        "image": [32, 24], "top_k": 3, "hidden": 9, "actions": [[-1.0, 1.0], [0.0, 1.0], [2.0, 10.0]],
        "features": { "conv": {} },
    }))
    .expect("a good configuration")
}

/// What `agent` does in `steps` steps, and what it was told.
fn drive(agent: &mut dyn Agent, steps: usize, seed: u64) -> Demonstration {
    let mut rng = Seed::root(seed).rng();
    let mut demonstration = Demonstration { steps, ..Demonstration::default() };
    let mut frame = ImageBuf::black(32, 24);
    agent.begin_episode(episode_seed(0, 0));
    for _ in 0..steps {
        frame.rgb_mut().fill_with(|| rng.uniform(0.0, 256.0) as u8);
        let decision = agent
            .act(Observation::rgb(frame.as_image()), &mut ActContext::default())
            .expect("the right size");
        demonstration.actions.extend(decision.action.iter().map(|&a| a as f32));
        demonstration.inputs.extend(agent.inputs());
    }
    demonstration
}

fn drawn(seed: u64) -> Vec<f32> {
    config().initial_params(Init::Torch, Seed::root(seed)).iter().map(|w| 2.0 * w).collect()
}

fn agent_with(params: &[f32]) -> PolicyAgent<AttentionAgent> {
    let mut agent = PolicyAgent::new(AttentionAgent::new(config()).expect("a good configuration"));
    agent.set_params(params).expect("the right count");
    agent
}

fn student(params: &[f32]) -> LstmStudent {
    let mut student = LstmStudent::new(&config()).expect("a good configuration");
    student.set_params(params).expect("the right count");
    student
}

#[test]
fn the_last_tensors_learn() {
    let mut default = registry::model("attention-agent", &json!({})).expect("it exists");
    assert_eq!(default.learns(), 1184..3667);
    let of_default = default.student().expect("it learns from demonstrations");
    assert_eq!((of_default.inputs(), of_default.actions()), (20, 3));
    let tensors = config().tensors();
    let first = tensors.iter().position(|tensor| tensor.name.starts_with("lstm.")).expect("it has an LSTM");
    assert!(tensors[first..].iter().all(|t| t.name.starts_with("lstm.") || t.name.starts_with("output.")));
    let before: usize = tensors[..first].iter().map(foveate_core::TensorShape::len).sum();
    assert_eq!(student(&drawn(1)).learns(), before..config().param_count());
    assert!(matches!(registry::model("nobody", &json!({})).err(), Some(PolicyError::UnknownAgent { .. })));
    let mut wrong = student(&drawn(1));
    assert!(matches!(wrong.set_params(&[0.0]), Err(PolicyError::ParamCount { given: 1, .. })));
    let mut broken = drawn(1);
    broken[3] = f32::NAN;
    assert!(matches!(wrong.set_params(&broken), Err(PolicyError::ParamNotFinite { index: 3, .. })));
}

#[test]
fn acts_as_the_agent_does() {
    let params = drawn(2);
    let demonstration = drive(&mut agent_with(&params), 60, 3);
    assert_eq!(demonstration.inputs.len(), 60 * student(&params).inputs());
    let mut gradient = vec![0.0; params.len()];
    let mut study = |piece, burn_in| student(&params).study(&demonstration, piece, burn_in, &mut gradient);
    // Actions in the world's units are rounded; 1e-6 per action is what that may cost.
    let same = 60.0 * 3.0 * 1e-12;
    assert!(study(0..60, 0) < same);
    assert!(study(30..60, 30) < same);
    assert!(study(30..60, 1000) < same, "the episode has no more steps than these");
    assert!(study(30..60, 0) > 100.0 * same, "without its memory it does something else");
    let most = gradient.iter().fold(0.0, |most: f32, g| most.max(g.abs()));
    assert!(most > 0.0);

    // A tenth of each dimension's half range off, everywhere.
    let mut off = demonstration.clone();
    for action in off.actions.chunks_exact_mut(3) {
        action.iter_mut().zip([0.1, 0.05, 0.4]).for_each(|(a, off)| *a += off);
    }
    let mut gradient = vec![0.0; params.len()];
    let error = student(&params).study(&off, 0..60, 0, &mut gradient);
    assert!((error - 60.0 * 3.0 * 0.01).abs() < 1e-3, "{error}");
    let learns = student(&params).learns();
    assert!(gradient[..learns.start].iter().all(|&g| g == 0.0), "attention does not learn");
    for level in Level::available() {
        let mut other = vec![0.0; params.len()];
        student(&params).with_level(level).study(&off, 0..60, 0, &mut other);
        assert_eq!(other, gradient, "{level}");
    }
}

/// Where there is a cost for each choice, scores learn to rank choices by their mean costs.
#[test]
fn choices_are_ranked_by_what_they_cost_on_average() {
    let start = drawn(2);
    let mut demonstration = drive(&mut agent_with(&start), 60, 3);
    // Every step looks the same; in every third one the expert has reason to choose the first, else the second.
    let inputs = demonstration.inputs.len() / 60;
    demonstration.inputs = demonstration.inputs[..inputs].repeat(60);
    for (t, scores) in demonstration.actions.chunks_exact_mut(3).enumerate() {
        let rare = t % 3 == 0;
        scores.copy_from_slice(if rare { &[1.0, 0.0, 0.0] } else { &[0.0, 1.0, 0.0] });
        demonstration.costs.extend(if rare { [0.0, 0.9, 0.7] } else { [0.3, 0.0, 0.5] });
    }
    let best = |demonstration: &Demonstration| {
        let mut params = start.clone();
        for _ in 0..400 {
            let mut gradient = vec![0.0; params.len()];
            student(&params).study(demonstration, 0..60, 0, &mut gradient);
            params.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= 0.003 * g);
        }
        // The error is least where the wanted scores are those that were learnt.
        let mut error_of = |choice: usize| {
            let mut wanted = Demonstration { costs: vec![], ..demonstration.clone() };
            for scores in wanted.actions.chunks_exact_mut(3) {
                for (i, (score, [low, high])) in scores.iter_mut().zip(config().actions).enumerate() {
                    *score = if i == choice { high } else { low } as f32;
                }
            }
            student(&params).study(&wanted, 30..60, 30, &mut vec![0.0; params.len()])
        };
        let errors: Vec<f64> = (0..3).map(&mut error_of).collect();
        (0..3).min_by(|&a, &b| errors[a].total_cmp(&errors[b]))
    };
    // Two thirds of 0.3 are less than one third of 0.9.
    assert_eq!(best(&demonstration), Some(0));
    // Where nothing is at stake, it is what the expert does most often.
    demonstration.costs.fill(0.0);
    assert_eq!(best(&demonstration), Some(1));
}

/// Adam with its usual constants (Kingma and Ba 2015) on pieces of demonstrations, halves of which overlap.
#[test]
fn learns_what_another_agent_does() {
    let teacher = drawn(4);
    let mut params = drawn(5);
    let mut student = registry::model("attention-agent", &json!(config())).expect("it exists");
    let learns = student.learns();
    // The same attention, for the student gets the inputs of its own attention.
    params[..learns.start].copy_from_slice(&teacher[..learns.start]);
    let demonstrations: Vec<Demonstration> =
        (0..4).map(|i| drive(&mut agent_with(&teacher), 50, i)).collect();
    let (mut mean, mut square) = (vec![0.0; params.len()], vec![0.0; params.len()]);
    let mut gradient = vec![0.0; params.len()];
    let (mut first, mut last) = (0.0, 0.0);
    for t in 1..=400 {
        student.set_params(&params).expect("finite");
        gradient.fill(0.0);
        let learning = student.student().expect("it learns from demonstrations");
        let study = |demonstration| {
            learning.study(demonstration, 0..30, 0, &mut gradient)
                + learning.study(demonstration, 20..50, 15, &mut gradient)
        };
        last = demonstrations.iter().map(study).sum();
        if t == 1 {
            first = last;
        }
        for i in learns.clone() {
            mean[i] += 0.1 * (gradient[i] - mean[i]);
            square[i] += 0.001 * (gradient[i] * gradient[i] - square[i]);
            let (mean, square) = (mean[i] / (1.0 - 0.9_f32.powi(t)), square[i] / (1.0 - 0.999_f32.powi(t)));
            params[i] -= 0.01 * mean / (square.sqrt() + 1e-8);
        }
    }
    assert!(last < 0.1 * first, "error {first} at first, {last} at last");
}
