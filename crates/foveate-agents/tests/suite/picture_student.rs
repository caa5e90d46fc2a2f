//! The student of a whole AttentionNeuron acts as its agent does, and its gradients are those of what it does: with a
//! recurrent head, with convolutions that choose, and with layers.

use std::ops::Range;

use foveate_agents::attention_neuron::heads::HeadConfig;
use foveate_agents::attention_neuron::picture_student::PictureStudent;
use foveate_agents::attention_neuron::pictures::{Learns, PictureAgent, PictureConfig};
use foveate_agents::registry::{self, AgentConfig, Init};
use foveate_core::{
    ActContext, Agent, Demonstration, IMAGE, Model, Observation, PRESENT, PackedPictures, Parts, PixelShape,
    Pixels, PolicyAgent, PolicyError, Seed, Student, episode_seed,
};
use foveate_kernels::Level;
use serde_json::{Value, json};

const WIDTH: usize = 30;
const HEIGHT: usize = 24;
const FRAMES: usize = 3;
const AREA: usize = WIDTH * HEIGHT;
const PATCHES: usize = (WIDTH / 6) * (HEIGHT / 6);

/// With a recurrent head.
fn settings() -> Value {
    json!({
        "senses": "picture", "image": [WIDTH, HEIGHT], "frames": FRAMES, "codes": [3, 6], "code_dim": 5,
        "query_dim": 7, "message_dim": 9, "sharpness": 20.0, "learns": "all", "value_affine": true,
        "message_affine": true, "flatten": "time_slowest",
        "actions": [[-1.0, 1.0], [0.0, 1.0], [2.0, 10.0]], "head": { "kind": "recurrent", "hidden": 10 },
    })
}

/// These settings with changes.
fn with(changes: &Value) -> Value {
    let mut settings = settings();
    settings.as_object_mut().expect("a table").extend(changes.as_object().expect("a table").clone());
    settings
}

/// Settings of every kind of head that learns.
fn heads() -> Vec<PictureConfig> {
    let convolutions = json!([
        { "filters": 4, "size": 2, "stride": 1 }, { "filters": 5, "size": 2, "stride": 2 },
    ]);
    let choices = json!({ "actions": [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], "first_choice": 1,
        "codes": [6, 7], "head": { "kind": "convolution", "layers": convolutions, "hidden": [8] } });
    let straight = json!({ "head": { "kind": "convolution", "layers": convolutions, "hidden": [], "output": "tanh" },
        "codes": [4, 7] });
    let dense = json!({ "head": { "kind": "dense", "hidden": [8, 6] } });
    let all = [json!({}), choices, straight, dense];
    all.map(|changes| serde_json::from_value(with(&changes)).expect("a good configuration")).into()
}

fn config() -> PictureConfig {
    heads().remove(0)
}

fn drawn(config: &PictureConfig, seed: u64) -> Vec<f32> {
    config.initial_params(Init::Torch, Seed::root(seed)).iter().map(|w| 1.5 * w).collect()
}

fn agent(config: &PictureConfig, params: &[f32]) -> PolicyAgent<PictureAgent> {
    let mut agent = PolicyAgent::new(PictureAgent::new(config.clone()).expect("a good configuration"));
    agent.set_params(params).expect("as many parameters");
    agent
}

fn student(config: &PictureConfig, params: &[f32]) -> PictureStudent {
    let mut student =
        PictureStudent::new(config.clone()).expect("a good configuration").expect("a head that learns");
    student.set_params(params).expect("as many parameters");
    student
}

/// Pictures of two discs that move over a ground of two colours.
fn film(seed: u64, steps: usize) -> Vec<Vec<u8>> {
    let mut rng = Seed::root(seed).rng();
    let mut discs: Vec<[f64; 4]> = (0..2)
        .map(|_| {
            [rng.uniform(4.0, 26.0), rng.uniform(4.0, 20.0), rng.uniform(-1.5, 1.5), rng.uniform(-1.5, 1.5)]
        })
        .collect();
    let mut next = || {
        for [x, y, dx, dy] in &mut discs {
            (*x, *y) = (*x + *dx, *y + *dy);
            (*dx, *dy) = (
                if *x < 0.0 || *x > 30.0 { -*dx } else { *dx },
                if *y < 0.0 || *y > 24.0 { -*dy } else { *dy },
            );
        }
        let pixel = |i: usize| {
            let (px, py) = ((i % WIDTH) as f64, (i / WIDTH) as f64);
            let inside = discs.iter().position(|[x, y, ..]| (px - x).hypot(py - y) < 4.5);
            inside.map_or(if px < 15.0 { 90 } else { 130 }, |disc| [200, 30][disc])
        };
        (0..AREA).map(pixel).collect()
    };
    (0..steps).map(|_| next()).collect()
}

/// A picture, of which patches are missing.
struct Missing<'a>(Pixels<'a>, &'a [f32]);

impl Parts for Missing<'_> {
    fn count(&self) -> usize {
        2
    }
    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        match index {
            0 => Some((IMAGE, Observation::Image(self.0))),
            1 => Some((PRESENT, Observation::Vector(self.1))),
            _ => None,
        }
    }
}

fn see<'a>(agent: &'a mut dyn Agent, stack: &[u8]) -> &'a [f64] {
    see_some(agent, stack, &[1.0; PATCHES])
}

fn see_some<'a>(agent: &'a mut dyn Agent, stack: &[u8], present: &[f32]) -> &'a [f64] {
    let shape = PixelShape { frames: FRAMES, height: HEIGHT, width: WIDTH, channels: 1 };
    let pixels = Pixels::new(shape, stack).expect("as many bytes");
    let missing = Missing(pixels, present);
    let seen = if present.contains(&0.0) { Observation::Dict(&missing) } else { Observation::Image(pixels) };
    agent.act(seen, &mut ActContext::default()).expect("the right picture").action
}

/// What `agent` does, and what its student learns from.
fn drive(agent: &mut dyn Agent, film: &[Vec<u8>]) -> Demonstration {
    drive_some(agent, film, |_| [1.0; PATCHES])
}

/// The same when in step `t` the patches `present(t)` are there.
fn drive_some(
    agent: &mut dyn Agent,
    film: &[Vec<u8>],
    present: impl Fn(usize) -> [f32; PATCHES],
) -> Demonstration {
    let mut demonstration = Demonstration { steps: film.len(), ..Demonstration::default() };
    agent.begin_episode(episode_seed(0, 0));
    for t in 0..film.len() {
        let stack: Vec<u8> =
            (0..FRAMES).rev().flat_map(|back| film[t.saturating_sub(back)].clone()).collect();
        let action: Vec<f32> = see_some(agent, &stack, &present(t)).iter().map(|&a| a as f32).collect();
        demonstration.actions.extend(action);
        let inputs = agent.study_inputs().expect("consecutive pictures");
        demonstration.inputs.extend(inputs.numbers);
        demonstration.pictures.push(inputs.picture);
    }
    demonstration
}

#[test]
fn it_acts_as_its_agent_does() {
    let config = config();
    let params = drawn(&config, 1);
    let demonstration = drive(&mut agent(&config, &params), &film(1, 40));
    let mut student = student(&config, &params);
    let n = params.len();
    assert_eq!(
        (student.inputs(), student.picture(), student.actions(), student.learns()),
        (1, AREA, 3, 0..n)
    );
    // From the start, and from the middle with all steps before it.
    for piece in [0..40, 1..9, 25..40] {
        let mut gradient = vec![0.0; n];
        let error = student.study(&demonstration, piece.clone(), 40, &mut gradient);
        assert!(error < 1e-6, "{piece:?}: {error}");
    }
    let other = drive(&mut agent(&config, &drawn(&config, 2)), &film(1, 40));
    assert!(student.study(&other, 0..40, 0, &mut vec![0.0; n]) > 0.1);
    assert_eq!(student.study(&other, 0..0, 5, &mut vec![0.0; n]), 0.0);
}

#[test]
fn heads_of_layers_act_as_their_agent_does() {
    for config in &heads()[1..] {
        let params = drawn(config, 1);
        let demonstration = drive_some(&mut agent(config, &params), &film(1, 40), some);
        let other = drive_some(&mut agent(config, &drawn(config, 2)), &film(1, 40), some);
        let mut student = student(config, &params);
        let mut error = |demonstration: &Demonstration, piece: Range<usize>| {
            student.study(demonstration, piece, 5, &mut vec![0.0; params.len()])
        };
        for piece in [0..40, 1..9, 25..40] {
            // What the student computed: it learns choices as cross entropies of the agent's scores, actions as such.
            let n = config.actions.len();
            let scores = demonstration.actions[piece.start * n..piece.end * n].chunks_exact(n);
            let expect: f64 = scores.map(|scores| if n == 4 { surprise(scores, scores) } else { 0.0 }).sum();
            let got = error(&demonstration, piece.clone());
            assert!((got - expect).abs() < 1e-5, "{piece:?} of {:?}: {got}, {expect}", config.head);
        }
        if config.actions.len() == 4 {
            let rows = demonstration.actions.chunks_exact(4).zip(other.actions.chunks_exact(4));
            let expect: f64 = rows.map(|(scores, wanted)| surprise(scores, wanted)).sum();
            let wanted = Demonstration { actions: other.actions.clone(), ..demonstration.clone() };
            let got = error(&wanted, 0..40);
            assert!((got - expect).abs() < 1e-5, "{got}, {expect}");
        } else {
            assert!(error(&other, 0..40) > 0.1);
        }
        assert_eq!(error(&other, 0..0), 0.0);
    }
}

/// The cross entropy of the first of the highest numbers of `wanted` under the softmax of `scores`.
fn surprise(scores: &[f32], wanted: &[f32]) -> f64 {
    let choice = (0..wanted.len()).rev().max_by(|&a, &b| wanted[a].total_cmp(&wanted[b])).expect("scores");
    let total: f64 = scores.iter().map(|&x| f64::from(x).exp()).sum();
    total.ln() - f64::from(scores[choice])
}

/// Patches that are there in step `t`: other ones after step 20.
fn some(t: usize) -> [f32; PATCHES] {
    std::array::from_fn(|patch| f32::from(u8::from(!(patch + t / 20).is_multiple_of(3))))
}

#[test]
fn it_acts_as_its_agent_does_when_patches_are_missing() {
    for config in heads() {
        let params = drawn(&config, 9);
        let demonstration = drive_some(&mut agent(&config, &params), &film(4, 40), some);
        let mut student = student(&config, &params);
        let mut study = |demonstration: &Demonstration| {
            student.study(demonstration, 0..40, 0, &mut vec![0.0; params.len()])
        };
        let whole = Demonstration { inputs: vec![((1 << 24) - 1) as f32; 40], ..demonstration.clone() };
        let (some, all) = (study(&demonstration), study(&whole));
        assert!(config.actions.len() == 4 || some < 1e-6, "{:?}: {some}", config.head);
        assert!((all - some).abs() > 1e-3, "the missing patches matter to {:?}", config.head);
    }
}

#[test]
fn patches_are_left_out_by_seed_and_step_alone() {
    for config in heads() {
        let params = drawn(&config, 9);
        let demonstration = drive(&mut agent(&config, &params), &film(4, 40));
        let mut student = student(&config, &params);
        let mut study = |dropout: Option<(f64, u64)>, piece: Range<usize>| {
            if let Some((share, seed)) = dropout {
                assert!(student.drop_patches(share, Seed::root(seed)));
            }
            let mut gradient = vec![0.0; params.len()];
            (student.study(&demonstration, piece, 0, &mut gradient), gradient)
        };
        let all = study(None, 0..40);
        let some = study(Some((0.4, 1)), 0..40);
        assert!((all.0 - some.0).abs() > 1e-3, "what is left out matters to {:?}", config.head);
        assert_eq!(study(None, 0..40), some, "the same until another seed comes");
        assert_ne!(study(Some((0.4, 2)), 0..40), some);
        if !matches!(config.head, HeadConfig::Recurrent(_)) {
            let parts = [0..7, 7..40].map(|piece| study(Some((0.4, 1)), piece).0);
            assert!((parts[0] + parts[1] - some.0).abs() < 1e-6 * some.0, "{parts:?} {}", some.0);
        }
        assert_eq!(study(Some((0.0, 1)), 0..40), all);
    }
}

#[test]
fn every_tensor_has_the_gradient_of_the_error() {
    for config in heads() {
        let mut agent = agent(&config, &drawn(&config, 4));
        let step = if matches!(config.head, HeadConfig::Recurrent(_)) { 1e-3 } else { 2e-4 };
        check_gradient(&config, &drive(&mut agent, &film(2, 40)), step);
        check_gradient(&config, &drive_some(&mut agent, &film(2, 40), some), 1e-4);
    }
}

/// Compares gradients with differences of the error over `2 * step`.
#[track_caller]
fn check_gradient(config: &PictureConfig, demonstration: &Demonstration, step: f64) {
    let params = drawn(config, 3);
    let mut student = student(config, &params);
    // The state of an LSTM before the piece does not depend on the weights when there is nothing before it. The error of
    // layers has kinks, where the input of a relu changes its sign: in most steps none is near.
    let recurrent = matches!(config.head, HeadConfig::Recurrent(_));
    let (starts, len) = if recurrent { (0..1, 30) } else { (4..28, 1) };
    let pieces: Vec<Range<usize>> = starts.map(|t| t..t + len).collect();
    let mut agree = vec![0; config.tensors().len()];
    let mut gradient = vec![0.0; params.len()];
    for piece in &pieces {
        gradient.fill(0.0);
        student.set_params(&params).expect("as many parameters");
        let error = student.study(demonstration, piece.clone(), 7, &mut gradient);
        let mut start = 0;
        for (tensor, agree) in config.tensors().iter().zip(&mut agree) {
            let place = start..start + tensor.len();
            start = place.end;
            let length = gradient[place.clone()].iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
            let still = matches!(&*tensor.name, "key.bias" | "lstm.bias_hh");
            assert_eq!(length == 0.0, still, "{}", tensor.name);
            if still {
                continue;
            }
            // Along its own gradient the error changes by the gradient's length.
            let mut at = |step: f64| {
                let mut moved = params.clone();
                for i in place.clone() {
                    moved[i] += (step * f64::from(gradient[i]) / length) as f32;
                }
                student.set_params(&moved).expect("as many parameters");
                student.study(demonstration, piece.clone(), 7, &mut vec![0.0; params.len()])
            };
            let slope = (at(step) - at(-step)) / (2.0 * step);
            *agree += usize::from((slope - length).abs() < 0.01 * length + 1e-4 * error);
        }
    }
    for (tensor, agree) in config.tensors().iter().zip(agree) {
        let still = matches!(&*tensor.name, "key.bias" | "lstm.bias_hh");
        let name = &tensor.name;
        assert!(
            still || 3 * agree >= 2 * pieces.len(),
            "{name} of {:?}: {agree} of {}",
            config.head,
            pieces.len()
        );
    }
    // The columns of the previous action change nothing.
    let actions = config.actions.len();
    let keys = 7 + 7 * 5 + 7;
    let of_key = 2 * 36 + actions;
    assert!(gradient[keys..][..7 * of_key].chunks(of_key).all(|row| row[2 * 36..].iter().all(|&g| g == 0.0)));
}

/// A gradient is added to what is there, with one addition per number.
#[test]
fn pieces_are_added_one_by_one() {
    for config in heads() {
        let demonstration = drive(&mut agent(&config, &drawn(&config, 4)), &film(2, 60));
        let mut student = student(&config, &drawn(&config, 3));
        let mut of = |piece: Range<usize>, mut gradient: Vec<f32>| {
            student.study(&demonstration, piece, 3, &mut gradient);
            gradient
        };
        let zeros = vec![0.0; drawn(&config, 3).len()];
        let (first, second) = (of(0..50, zeros.clone()), of(13..31, zeros));
        let sum: Vec<f32> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
        assert!(of(13..31, first) == sum, "{:?}", config.head);
    }
}

#[test]
fn levels_and_the_order_of_patches_change_no_bit() {
    heads().iter().for_each(check_bits);
}

fn check_bits(config: &PictureConfig) {
    let params = drawn(config, 5);
    let (plain, wanted) = (film(3, 30), drive(&mut agent(config, &drawn(config, 6)), &film(3, 30)));
    let columns = WIDTH / 6;
    let shuffled = |picture: &Vec<u8>| -> Vec<u8> {
        let from = |i: usize| {
            let (x, y) = (i % WIDTH, i / WIDTH);
            let patch = (y / 6 * columns + x / 6) * 7 % (columns * HEIGHT / 6);
            (patch / columns * 6 + y % 6) * WIDTH + patch % columns * 6 + x % 6
        };
        (0..AREA).map(|i| picture[from(i)]).collect()
    };
    let mut other = Demonstration { pictures: PackedPictures::default(), ..wanted.clone() };
    for picture in &plain {
        other.pictures.push(&shuffled(picture));
    }
    assert_ne!(other.pictures, wanted.pictures);
    let mut first = None;
    for level in Level::available() {
        for demonstration in [&wanted, &other] {
            let mut student = student(config, &params).with_level(level);
            let mut gradient = vec![0.0; params.len()];
            let error = student.study(demonstration, 8..25, 4, &mut gradient);
            let got = (error, gradient);
            assert!(first.get_or_insert(got.clone()) == &got, "{level}: {:?}", config.head);
        }
    }
}

#[test]
fn a_world_whose_pictures_are_not_consecutive_is_refused() {
    let film = film(7, 6);
    let stack = |frames: [usize; FRAMES]| frames.map(|t| film[t].clone()).concat();
    let config = config();
    let mut agent = agent(&config, &drawn(&config, 8));
    let refused = |agent: &dyn Agent| match agent.study_inputs() {
        Err(PolicyError::ObservationShape { wanted, given }) => {
            assert!(wanted.contains("consecutive"), "{wanted}");
            given
        }
        other => panic!("{other:?}"),
    };
    agent.begin_episode(episode_seed(0, 0));
    see(&mut agent, &stack([0, 0, 0]));
    see(&mut agent, &stack([0, 0, 1]));
    assert_eq!(agent.study_inputs().expect("consecutive").picture, film[1]);
    see(&mut agent, &stack([0, 2, 3]));
    assert!(refused(&agent).contains("newest pictures"));
    // It stays refused until the episode ends.
    see(&mut agent, &stack([2, 3, 4]));
    refused(&agent);
    agent.begin_episode(episode_seed(0, 1));
    see(&mut agent, &stack([0, 1, 2]));
    assert!(refused(&agent).contains("first stack"));
    agent.begin_episode(episode_seed(0, 2));
    see(&mut agent, &stack([5, 5, 5]));
    assert_eq!(agent.study_inputs().expect("consecutive").picture, film[5]);
}

#[test]
fn what_learns_is_a_setting() {
    let with = |changes: Value| registry::model("attention-neuron", &with(&changes));
    let sizes = |model: &mut Box<dyn Model>| {
        let student = model.student().expect("it learns from demonstrations");
        [student.inputs(), student.picture(), student.actions()]
    };
    let mut whole = with(json!({})).expect("it exists");
    assert_eq!((&sizes(&mut whole)[..2], whole.learns().start), (&[1, AREA][..], 0));
    let mut head = with(json!({ "learns": "head" })).expect("it exists");
    assert_eq!(sizes(&mut head)[..2], [3 * 6 * 9, 0]);
    assert!(head.learns().start > 0 && head.learns().end == whole.learns().end);
    let head = json!({ "head": { "kind": "attention_agent" }, "codes": [5, 5] });
    let said = with(head).map(drop).expect_err("no gradient").to_string();
    assert!(said.contains("\"attention_agent\"") && said.lines().count() == 1, "{said}");
    let head = json!({ "learns": "head", "head": { "kind": "dense" } });
    let said = with(head).map(drop).expect_err("only an LSTM learns alone").to_string();
    assert!(said.lines().count() == 1, "{said}");
    // The published agent for Pong learns whole.
    let pong = PictureConfig { learns: Learns::All, ..PictureConfig::puzzle_pong() };
    let mut pong = pong.model().expect("good settings").expect("it learns");
    assert_eq!((pong.learns(), &sizes(&mut pong)[1..]), (0..1_687_726, &[84 * 84, 6][..]));
    // Files written before this setting existed have none.
    let value = PictureConfig::default().to_value().expect("plain settings");
    assert!(value.get("learns").is_none());
}
