//! The student of a whole AttentionNeuron acts as its agent does, and its gradients are those of what it does.

use foveate_agents::attention_neuron::picture_student::PictureStudent;
use foveate_agents::attention_neuron::pictures::{PictureAgent, PictureConfig};
use foveate_agents::registry::{self, AgentConfig, Init};
use foveate_core::{
    ActContext, Agent, Demonstration, IMAGE, Observation, PRESENT, PackedPictures, Parts, PixelShape, Pixels,
    PolicyAgent, PolicyError, Seed, Student, episode_seed,
};
use foveate_kernels::Level;
use serde_json::{Value, json};

const WIDTH: usize = 30;
const HEIGHT: usize = 24;
const FRAMES: usize = 3;
const AREA: usize = WIDTH * HEIGHT;
const PATCHES: usize = (WIDTH / 6) * (HEIGHT / 6);

fn settings() -> Value {
    json!({
        "senses": "picture", "image": [WIDTH, HEIGHT], "frames": FRAMES, "codes": [3, 6], "code_dim": 5,
        "query_dim": 7, "message_dim": 9, "sharpness": 20.0, "learns": "all", "value_affine": true,
        "message_affine": true, "flatten": "time_slowest",
        "actions": [[-1.0, 1.0], [0.0, 1.0], [2.0, 10.0]], "head": { "kind": "recurrent", "hidden": 10 },
    })
}

fn config() -> PictureConfig {
    serde_json::from_value(settings()).expect("a good configuration")
}

fn drawn(seed: u64) -> Vec<f32> {
    config().initial_params(Init::Torch, Seed::root(seed)).iter().map(|w| 1.5 * w).collect()
}

fn agent(params: &[f32]) -> PolicyAgent<PictureAgent> {
    let mut agent = PolicyAgent::new(PictureAgent::new(config()).expect("a good configuration"));
    agent.set_params(params).expect("as many parameters");
    agent
}

fn student(params: &[f32]) -> PictureStudent {
    let mut student = PictureStudent::new(config()).expect("a good configuration").expect("a recurrent head");
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
    let params = drawn(1);
    let demonstration = drive(&mut agent(&params), &film(1, 40));
    let mut student = student(&params);
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
    let other = drive(&mut agent(&drawn(2)), &film(1, 40));
    assert!(student.study(&other, 0..40, 0, &mut vec![0.0; n]) > 0.1);
    assert_eq!(student.study(&other, 0..0, 5, &mut vec![0.0; n]), 0.0);
}

/// Patches that are there in step `t`: other ones after step 20.
fn some(t: usize) -> [f32; PATCHES] {
    std::array::from_fn(|patch| f32::from(u8::from(!(patch + t / 20).is_multiple_of(3))))
}

#[test]
fn it_acts_as_its_agent_does_when_patches_are_missing() {
    let params = drawn(9);
    let demonstration = drive_some(&mut agent(&params), &film(4, 40), some);
    let mut student = student(&params);
    let mut study = |demonstration| student.study(demonstration, 0..40, 0, &mut vec![0.0; params.len()]);
    assert!(study(&demonstration) < 1e-6);
    let whole = Demonstration { inputs: vec![((1 << 24) - 1) as f32; 40], ..demonstration.clone() };
    assert!(study(&whole) > 1e-3, "the missing patches matter");
}

#[test]
fn every_tensor_has_the_gradient_of_the_error() {
    check_gradient(&drive(&mut agent(&drawn(4)), &film(2, 40)), 1e-3);
    check_gradient(&drive_some(&mut agent(&drawn(4)), &film(2, 40), some), 1e-4);
}

/// Compares gradients with differences of the error over `2 * step`.
#[track_caller]
fn check_gradient(demonstration: &Demonstration, step: f64) {
    let params = drawn(3);
    let mut student = student(&params);
    // The state before the piece does not depend on the weights when there is nothing before it.
    let mut gradient = vec![0.0; params.len()];
    let error = student.study(demonstration, 0..30, 7, &mut gradient);
    let mut start = 0;
    for tensor in config().tensors() {
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
            student.study(demonstration, 0..30, 7, &mut vec![0.0; params.len()])
        };
        let slope = (at(step) - at(-step)) / (2.0 * step);
        assert!((slope - length).abs() < 0.01 * length + 1e-4 * error, "{}: {length}, {slope}", tensor.name);
    }
    // The columns of the previous action change nothing.
    let keys = 7 + 7 * 5 + 7;
    let of_key = 2 * 36 + 3;
    assert!(gradient[keys..][..7 * of_key].chunks(of_key).all(|row| row[2 * 36..] == [0.0; 3]));
}

#[test]
fn levels_and_the_order_of_patches_change_no_bit() {
    let params = drawn(5);
    let (plain, wanted) = (film(3, 30), drive(&mut agent(&drawn(6)), &film(3, 30)));
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
            let mut student = student(&params).with_level(level);
            let mut gradient = vec![0.0; params.len()];
            let error = student.study(demonstration, 8..25, 4, &mut gradient);
            let got = (error, gradient);
            assert!(first.get_or_insert(got.clone()) == &got, "{level}");
        }
    }
}

#[test]
fn a_world_whose_pictures_are_not_consecutive_is_refused() {
    let film = film(7, 6);
    let stack = |frames: [usize; FRAMES]| frames.map(|t| film[t].clone()).concat();
    let mut agent = agent(&drawn(8));
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
    let with = |changes: Value| {
        let mut settings = settings();
        settings.as_object_mut().expect("a table").extend(changes.as_object().expect("a table").clone());
        registry::student("attention-neuron", &settings)
    };
    let whole = with(json!({})).expect("it exists");
    assert_eq!((whole.inputs(), whole.picture(), whole.learns().start), (1, AREA, 0));
    let head = with(json!({ "learns": "head" })).expect("it exists");
    assert_eq!((head.inputs(), head.picture()), (3 * 6 * 9, 0));
    assert!(head.learns().start > 0 && head.learns().end == whole.learns().end);
    let said = with(json!({ "head": { "kind": "dense" } })).map(drop).expect_err("no gradient").to_string();
    assert!(said.contains("recurrent"), "{said}");
    // Files written before this setting existed have none.
    let value = PictureConfig::default().to_value().expect("plain settings");
    assert!(value.get("learns").is_none());
}
