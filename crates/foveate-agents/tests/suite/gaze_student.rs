//! The student of an attention learns to attend to what an expert looks at.

use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::{AttentionAgent, AttentionAgentConfig, GazeStudent};
use foveate_core::{
    ActContext, Agent, Demonstration, GazePoint, ImageBuf, Model, Observation, PolicyAgent, Seed, Taught,
};
use foveate_kernels::Level;
use serde_json::json;

const SIZE: [usize; 2] = [31, 23];

/// The kernels whose attention learns.
const KERNELS: [&str; 2] = ["softmax", "relu"];

/// 5 × 7 columns of patches of 7 pixels at a distance of 4.
fn config(kernel: &str) -> AttentionAgentConfig {
    let voting = json!({ "kernel": kernel });
    let config =
        json!({ "image": SIZE, "top_k": 2, "hidden": 4, "actions": [[-1.0, 1.0]], "voting": voting });
    serde_json::from_value(config).expect("a good configuration")
}

fn student(kernel: &str, params: &[f32]) -> Box<dyn Model> {
    let whole = config(kernel).model().expect("good").expect("it learns");
    let mut student = whole.taught(Taught::Gaze).expect("its attention learns");
    student.set_params(params).expect("the right count");
    student
}

fn drawn(seed: u64) -> Vec<f32> {
    config("softmax").initial_params(Init::Torch, Seed::root(seed)).iter().map(|w| 3.0 * w).collect()
}

/// Grey noise with orange spots of 5 pixels, at which the expert looks, one, two or none in a step.
fn spots(steps: usize, seed: u64) -> Demonstration {
    let mut rng = Seed::root(seed).rng();
    let [width, height] = SIZE;
    let mut demonstration = Demonstration { steps, actions: vec![0.0; steps], ..Demonstration::default() };
    for step in 0..steps {
        let mut pixels: Vec<u8> =
            (0..width * height).flat_map(|_| [rng.uniform(60.0, 120.0) as u8; 3]).collect();
        let mut points = vec![];
        for _ in 0..step % 3 {
            let (x, y) = (rng.below(width as u64 - 4) as usize, rng.below(height as u64 - 4) as usize);
            for row in y..y + 5 {
                for column in x..x + 5 {
                    pixels[(row * width + column) * 3..][..3].copy_from_slice(&[250, 130, 30]);
                }
            }
            points.push(GazePoint {
                x: (x as f32 + 2.5) / width as f32,
                y: (y as f32 + 2.5) / height as f32,
                weight: 1.0 + rng.next_f64() as f32,
            });
        }
        demonstration.pictures.push(&pixels);
        demonstration.gaze.push(points);
    }
    demonstration
}

/// The loss by its definition, in double precision.
fn loss(kernel: &str, params: &[f64], demonstration: &Demonstration, step: usize) -> f64 {
    let ([width, height], d, wide) = (SIZE, 4, 147);
    let (columns, rows) = ((width - 7) / 4 + 1, (height - 7) / 4 + 1);
    let n = columns * rows;
    let mut pixels = vec![0; width * height * 3];
    demonstration.pictures.unpack(step, &mut pixels).expect("it is there");
    let pixel = |x: usize, y: usize, channel| f64::from(pixels[(y * width + x) * 3 + channel]) / 255.0;
    let project = |bias: &[f64], weight: &[f64]| -> Vec<Vec<f64>> {
        (0..n)
            .map(|patch| {
                let (left, top) = (patch % columns * 4, patch / columns * 4);
                let sum = |j: usize| {
                    (0..wide)
                        .map(|i| weight[j * wide + i] * pixel(left + i / 3 % 7, top + i / 21, i % 3))
                        .sum::<f64>()
                };
                (0..d).map(|j| bias[j] + sum(j)).collect()
            })
            .collect()
    };
    let end = d + d * wide;
    let queries = project(&params[..d], &params[d..end]);
    let keys = project(&params[end..end + d], &params[end + d..2 * end]);
    let mut votes = vec![0.0; n];
    if kernel == "softmax" {
        for query in &queries {
            let score =
                |key: &Vec<f64>| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() / 147f64.sqrt();
            let e: Vec<f64> = keys.iter().map(|key| score(key).exp()).collect();
            let total: f64 = e.iter().sum();
            votes.iter_mut().zip(&e).for_each(|(vote, e)| *vote += e / total / n as f64);
        }
    } else {
        // All pairs, and features as the agent has them.
        let feature = |x: f64| (x / 147f64.powf(0.25)).max(0.0) + 0.001;
        let pair =
            |q: &[f64], k: &[f64]| q.iter().zip(k).map(|(&q, &k)| feature(q) * feature(k)).sum::<f64>();
        for (vote, query) in votes.iter_mut().zip(&queries) {
            *vote = keys.iter().map(|key| pair(query, key)).sum();
        }
        let total: f64 = votes.iter().sum();
        for vote in &mut votes {
            *vote /= total;
        }
    }
    let points = &demonstration.gaze[step];
    let total: f64 = points.iter().map(|point| f64::from(point.weight)).sum();
    let nearest = |share: f32, pixels: usize, count: usize| {
        (((f64::from(share) * pixels as f64 - 3.5) / 4.0).round().max(0.0) as usize).min(count - 1)
    };
    points
        .iter()
        .map(|point| {
            let patch = nearest(point.y, height, rows) * columns + nearest(point.x, width, columns);
            -f64::from(point.weight) / total * (votes[patch] + 1e-8).ln()
        })
        .sum()
}

#[test]
fn the_gradient_is_that_of_the_definition_on_every_instruction_set() {
    for kernel in KERNELS {
        check_gradient(kernel);
    }
}

fn check_gradient(kernel: &str) {
    let (params, demonstration) = (drawn(1), spots(9, 2));
    assert_eq!(student(kernel, &params).learns(), 0..2 * (4 + 4 * 147), "queries and keys");
    let mut first: Option<(u64, Vec<f32>)> = None;
    for level in Level::available() {
        let config = config(kernel);
        let of_config = GazeStudent::new(config.bottleneck(), config.tensors(), 1).expect("good");
        let mut student = of_config.expect("its attention learns").with_level(level);
        student.set_params(&params).expect("the right count");
        let mut gradient = vec![0.0; params.len()];
        let loss = student.student().expect("it is one").study(&demonstration, 1..9, 0, &mut gradient);
        let bits = (loss.to_bits(), gradient);
        assert_eq!(first.get_or_insert(bits.clone()), &bits, "{kernel}, {level}");
    }
    let (got, gradient) = first.expect("there is a level");
    let mut flat: Vec<f64> = params.iter().map(|&w| f64::from(w)).collect();
    let whole = |flat: &[f64]| (1..9).map(|step| loss(kernel, flat, &demonstration, step)).sum::<f64>();
    let truth = whole(&flat);
    assert!(
        (f64::from_bits(got) - truth).abs() < 1e-4 * truth,
        "{kernel}: {} by definition {truth}",
        f64::from_bits(got)
    );
    let learns = student(kernel, &params).learns();
    assert!(gradient[learns.end..].iter().all(|&g| g == 0.0), "the controller does not learn");
    let largest = gradient.iter().fold(0.0, |most: f64, g| most.max(f64::from(g.abs())));
    for i in (0..learns.end).step_by(37) {
        let w = flat[i];
        let mut at = |w: f64| {
            flat[i] = w;
            whole(&flat)
        };
        let truth = (at(w + 1e-5) - at(w - 1e-5)) / 2e-5;
        at(w);
        let got = f64::from(gradient[i]);
        assert!(
            (got - truth).abs() <= 1e-3 * truth.abs() + 1e-4 * largest,
            "{kernel}, weight {i}: {got}, by differences {truth}, the largest is {largest}"
        );
    }
}

/// After some steps of Adam (Kingma and Ba 2015) the agent's first choice is a patch on a spot.
#[test]
fn an_agent_attends_to_what_the_expert_looks_at() {
    for kernel in KERNELS {
        check_attention(kernel);
    }
}

fn check_attention(kernel: &str) {
    let mut params = config(kernel).initial_params(Init::Torch, Seed::root(3));
    let mut student = student(kernel, &params);
    let learns = student.learns();
    let (mut mean, mut square) = (vec![0.0; learns.len()], vec![0.0; learns.len()]);
    let shown = spots(60, 4);
    for t in 1..=80 {
        let mut gradient = vec![0.0; params.len()];
        student.set_params(&params).expect("finite");
        student.student().expect("it is one").study(
            &shown,
            (t * 12 % 48)..(t * 12 % 48 + 12),
            0,
            &mut gradient,
        );
        for i in learns.clone() {
            let g = gradient[i] / 12.0;
            mean[i] = 0.9 * mean[i] + 0.1 * g;
            square[i] = 0.999 * square[i] + 0.001 * g * g;
            let (m, s) =
                (mean[i] / (1.0 - 0.9f32.powi(t as i32)), square[i] / (1.0 - 0.999f32.powi(t as i32)));
            params[i] -= 0.02 * m / (s.sqrt() + 1e-8);
        }
    }
    let mut agent = PolicyAgent::new(AttentionAgent::new(config(kernel)).expect("good"));
    agent.set_params(&params).expect("the right count");
    let new = spots(60, 5);
    let (mut frame, mut near, mut all) = (ImageBuf::black(SIZE[0], SIZE[1]), 0, 0);
    for step in (0..60).filter(|step| step % 3 == 1) {
        new.pictures.unpack(step, frame.rgb_mut()).expect("it is there");
        let decision =
            agent.act(Observation::rgb(frame.as_image()), &mut ActContext::default()).expect("fine");
        let attention = decision.attention.expect("it attends");
        let first = attention.selected().expect("hard").tokens[0] as usize;
        let (x, y) = (first % 7 * 4 + 3, first / 7 * 4 + 3);
        let point = new.gaze[step][0];
        let off = |at: usize, share: f32, side: usize| (at as f32 + 0.5 - share * side as f32).abs();
        near += usize::from(off(x, point.x, SIZE[0]) <= 4.5 && off(y, point.y, SIZE[1]) <= 4.5);
        all += 1;
    }
    assert!(near * 10 >= all * 9, "{kernel}: {near} of {all}");
}

#[test]
fn only_softmax_and_relu_attention_have_one() {
    let has = |settings| {
        let config: AttentionAgentConfig = serde_json::from_value(settings).expect("good");
        config.model().expect("good").expect("it learns").taught(Taught::Gaze).is_some()
    };
    assert!(has(json!({})));
    assert!(has(json!({ "voting": { "kernel": "relu" } })));
    for voting in [json!({ "kernel": "relu", "features": 4 }), json!({ "kernel": "exp" })] {
        assert!(!has(json!({ "voting": voting })), "{voting}");
    }
}
