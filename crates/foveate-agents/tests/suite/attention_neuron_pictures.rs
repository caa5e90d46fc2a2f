//! AttentionNeuron on pictures: the published CarRacing weights on consecutive frames against an independent implementation
//! in `NumPy`, the network for Pong against `NumPy`, and what must not depend on the order of patches.

use crate::common;

use std::io::Write;
use std::process::{Command, Stdio};

use foveate_agents::attention_neuron::heads::{DenseConfig, HeadConfig, HeadMemory, LatentMemory};
use foveate_agents::attention_neuron::pictures::{PictureAgent, PictureConfig, PictureMemory};
use foveate_agents::registry::{self, Init};
use foveate_agents::{AgentConfig, Layout};
use foveate_core::{
    ActContext, IMAGE, Observation, Opened, PRESENT, Parts, PixelShape, Pixels, Policy, PolicyError, Seed,
};
use foveate_kernels::Level;
use serde_json::json;

/// Fails when any of `got` is further than `tolerance` from `want`.
#[track_caller]
fn close(what: &str, got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= tolerance, "{what}[{i}] is {got}, the reference has {want}");
    }
}

fn stack(config: &PictureConfig, bytes: &[u8]) -> Pixels<'static> {
    let [width, height] = config.image;
    let shape = PixelShape { frames: config.frames, height, width, channels: 1 };
    Pixels::new(shape, bytes.to_vec().leak()).expect("as many bytes as the shape says")
}

fn latent(memory: &PictureMemory) -> &LatentMemory {
    let HeadMemory::Latent(latent) = memory.head() else { panic!("another head") };
    latent
}

/// An agent with random weights.
fn random(config: PictureConfig, level: Level) -> PictureAgent {
    let params = config.initial_params(Init::Torch, Seed::root(3));
    let mut agent = PictureAgent::new(config).expect("good settings").with_level(level);
    agent.set_params(&params).expect("its own parameters");
    agent
}

#[test]
fn published_car_racing_weights() {
    let Some(weights) = foveate_toy::needs::data("attention_neuron_carracing_pi.npz") else { return };
    let Some(golden) = foveate_toy::needs::data("golden_attention_neuron_carracing_pi.npz") else { return };
    let config = PictureConfig::carracing_pi();
    let flat = common::read_npz(&weights)["params"].f32();
    let params = Layout::Registration.to_ours(&config.tensors(), &flat).expect("7212 numbers");
    let golden = common::read_npz(&golden);
    let [h, c, raw, alpha] = ["h", "c", "raw", "alpha"].map(|name| golden[name].f32());
    let (stacks, top) = (golden["stack"].u8(), golden["topk"].i64());
    assert_eq!(golden["stack"].shape, [12, 4, 96, 96]);
    for level in Level::available() {
        let mut agent = PictureAgent::new(config.clone()).expect("good settings").with_level(level);
        agent.set_params(&params).expect("finite numbers");
        let mut memory = agent.memory();
        for t in 0..12 {
            let pixels = stack(&config, &stacks[t * 36_864..(t + 1) * 36_864]);
            agent.act(Observation::Image(pixels), &mut memory, &mut ActContext::default()).expect("it fits");
            let at = format!("{level}, frame {t}");
            let m = latent(&memory);
            let best: Vec<i64> = m.best().iter().map(|&code| i64::from(code)).collect();
            assert_eq!(best, top[t * 10..(t + 1) * 10], "{at}: the ten most important codes");
            close(&format!("{at}: h"), m.h(), &h[t * 16..(t + 1) * 16], 1e-4);
            close(&format!("{at}: c"), m.c(), &c[t * 16..(t + 1) * 16], 1e-4);
            close(&format!("{at}: raw"), memory.raw(), &raw[t * 3..(t + 1) * 3], 1e-4);
            close(&format!("{at}: alpha"), &[m.alpha()], &alpha[t..=t], 1e-4);
        }
    }
}

/// A small agent of each head.
fn small() -> Vec<PictureConfig> {
    let base = json!({
        "senses": "picture", "image": [24, 18], "frames": 3, "patch": 3, "codes": [6, 5], "query_dim": 6,
        "message_dim": 5,
    });
    let with = |more: serde_json::Value| {
        let mut settings = base.clone();
        settings.as_object_mut().expect("settings").extend(more.as_object().expect("settings").clone());
        serde_json::from_value::<PictureConfig>(settings).expect("settings")
    };
    let choices = json!([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]);
    let convolution =
        json!({ "kind": "convolution", "layers": [{ "filters": 3, "size": 3, "stride": 1 }], "hidden": [7] });
    vec![
        with(json!({ "head": { "kind": "attention_agent", "top_k": 4, "hidden": 5, "smoothing": 3 } })),
        with(
            json!({ "head": { "kind": "attention_agent", "smoothing": 0, "voting": { "kernel": "relu" } } }),
        ),
        with(json!({
            "head": convolution, "first_choice": 2, "actions": choices, "value_affine": true,
            "message_affine": true, "flatten": "time_slowest",
        })),
        with(json!({ "head": { "kind": "dense", "hidden": [9] } })),
        with(json!({ "head": { "kind": "recurrent", "hidden": 4 }, "sharpness": 20.0 })),
    ]
}

/// Three pictures of 24 x 18 with flat areas and noise that moves, for a step.
fn film(step: usize) -> Vec<u8> {
    let mut rng = Seed::root(5).rng();
    let noise: Vec<u8> = (0..24 * 18).map(|_| rng.below(256) as u8).collect();
    let pixel = |t: usize, i: usize| {
        let (x, y) = (i % 24, i / 24);
        if y < 6 { 40 + 90 * u8::from(x < 12) } else { noise[y * 24 + (x + t + step) % 24] }
    };
    (0..3 * 24 * 18).map(|i| pixel(i / (24 * 18), i % (24 * 18))).collect()
}

/// `pixels` with the patch `order[i]` at place i.
fn permute(pixels: &[u8], order: &[usize]) -> Vec<u8> {
    let mut out = pixels.to_vec();
    for (to, &from) in order.iter().enumerate() {
        for row in 0..9 {
            let at = |p: usize| (row / 3 * 18 + p / 8 * 3 + row % 3) * 24 + p % 8 * 3;
            out[at(to)..at(to) + 3].copy_from_slice(&pixels[at(from)..at(from) + 3]);
        }
    }
    out
}

fn shuffled() -> Vec<usize> {
    (0..48).map(|i| (i * 11 + 5) % 48).collect()
}

#[test]
fn the_order_of_patches_changes_no_bit_of_any_action() {
    let order = shuffled();
    for config in small() {
        let agent = random(config.clone(), Level::best());
        let (mut plain, mut other) = (agent.memory(), agent.memory());
        for step in 0..12 {
            let pixels = film(step);
            let (seen, moved) = (stack(&config, &pixels), stack(&config, &permute(&pixels, &order)));
            let mut context = ActContext::default();
            let a = agent.act(Observation::Image(seen), &mut plain, &mut context).expect("it fits");
            let b = agent.act(Observation::Image(moved), &mut other, &mut context).expect("it fits");
            assert_eq!(a.action, b.action, "step {step} of {:?}", config.head);
            let (a, b) = (a.attention.expect("attention"), b.attention.expect("attention"));
            let importance: Vec<f32> = order.iter().map(|&from| a.weights()[from]).collect();
            assert_eq!(b.weights(), importance);
            assert!((a.weights().iter().sum::<f32>() - 30.0).abs() < 1e-4, "a vote per code");
            assert_eq!(a.len(), b.len(), "as many patches win");
            assert!((1..=30).contains(&a.len()));
        }
        // The memory is that of this episode: after a reset, it decides as at first.
        let pixels = stack(&config, &film(0));
        let mut fresh = agent.memory();
        let first = agent.act(Observation::Image(pixels), &mut fresh, &mut ActContext::default());
        let first = first.expect("it fits").action.to_vec();
        agent.reset(&mut plain, Seed::root(0));
        let again = agent.act(Observation::Image(pixels), &mut plain, &mut ActContext::default());
        assert_eq!(again.expect("it fits").action, first);
    }
}

#[test]
fn every_level_acts_alike() {
    for config in small().into_iter().chain([PictureConfig::puzzle_pong()]) {
        let mut first = None;
        for level in Level::available() {
            let agent = random(config.clone(), level);
            let mut memory = agent.memory();
            let mut actions = vec![];
            for step in 0..4 {
                let [width, height] = config.image;
                let bytes = film(step).repeat(100)[..config.frames * width * height].to_vec();
                let seen = Observation::Image(stack(&config, &bytes));
                let decision = agent.act(seen, &mut memory, &mut ActContext::default()).expect("it fits");
                actions.extend(decision.action.iter().map(|x| x.to_bits()));
            }
            assert_eq!(&actions, first.get_or_insert(actions.clone()), "{level}: {:?}", config.head);
        }
    }
}

/// A picture, of which patches are missing.
struct Missing<'a>(Pixels<'a>, Vec<f32>);

impl Parts for Missing<'_> {
    fn count(&self) -> usize {
        2
    }
    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        match index {
            0 => Some((IMAGE, Observation::Image(self.0))),
            1 => Some((PRESENT, Observation::Vector(&self.1))),
            _ => None,
        }
    }
}

/// Opening a decision and resuming it is deciding, to the bit; what is resumed decides.
#[test]
fn a_decision_can_be_opened() {
    let missing: Vec<f32> = (0..48).map(|p| f32::from(u8::from(p % 5 != 0))).collect();
    for (config, level) in
        small().into_iter().flat_map(|config| Level::available().map(move |l| (config.clone(), l)))
    {
        let agent = random(config.clone(), level);
        let (mut whole, mut parts) = (agent.memory(), agent.memory());
        let (mut opened, mut context) = (Opened::default(), ActContext::default());
        let (mut moved, mut before) = (0, None);
        for step in 0..6 {
            let at = format!("step {step} of {:?}, {level}", config.head);
            let seen = Missing(stack(&config, &film(step)), missing.clone());
            let plain = Observation::Image(seen.0);
            let seen = if step % 3 == 2 { Observation::Dict(&seen) } else { plain };
            assert!(agent.open(seen, &mut parts, &context, &mut opened).expect("it fits"));
            let decision = agent.act(seen, &mut whole, &mut context).expect("it fits");
            assert_eq!((opened.units, opened.readers, opened.hard, opened.means), (48, 30, false, true));
            assert!(opened.tokens.iter().copied().eq(0..48), "every patch is its token");
            assert_eq!((opened.weights.len(), opened.values.len(), opened.width()), (30 * 48, 48 * 5, 5));
            let importance = decision.attention.expect("attention").weights().to_vec();
            let apart =
                opened.claim().iter().zip(&importance).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
            assert!(apart < 1e-4, "the claim is the importance: {at}, {apart}");
            let action = decision.action.to_vec();
            // Others between leave no trace.
            let mut other = parts.clone();
            let best = (0..48).max_by(|&a, &b| importance[a].total_cmp(&importance[b])).expect("48");
            let mut changed = opened.clone();
            changed.values[5 * best..][..5]
                .iter_mut()
                .zip([9.0, -7.0, 5.0, 8.0, -3.0])
                .for_each(|(v, x)| *v += x);
            let swapped = agent.resume(&changed, &mut other, &mut context).expect("it fits").action != action;
            let weights = before.replace(opened.weights.clone()).unwrap_or_else(|| vec![0.0; 30 * 48]);
            let changed = Opened { weights, ..opened.clone() };
            agent
                .resume(&changed, &mut parts.clone(), &mut context)
                .expect("weights of another step, or none");
            moved += usize::from(swapped);
            let resumed = agent.resume(&opened, &mut parts, &mut context).expect("its own");
            assert_eq!(resumed.action, action, "{at}");
            assert_eq!((whole.raw(), agent.inputs(&whole)), (parts.raw(), agent.inputs(&parts)), "{at}");
            for wrong in [
                Opened { values: opened.values[1..].to_vec(), ..opened.clone() },
                Opened { weights: vec![], ..opened.clone() },
            ] {
                let said =
                    agent.resume(&wrong, &mut parts.clone(), &mut context).expect_err("too few").to_string();
                assert!(said.contains("where the agent takes 1440 and 240"), "{said}");
            }
        }
        // AttentionAgent's head sees nothing but which codes are the best.
        assert!(moved > 0, "{:?}: {moved}", config.head);
    }
}

#[test]
fn patches_may_be_missing_but_not_all() {
    let config = small().remove(0);
    let agent = random(config.clone(), Level::best());
    let act = |pixels: Vec<u8>, present: Option<Vec<f32>>| -> Result<Vec<f64>, PolicyError> {
        let mut memory = agent.memory();
        let pixels = stack(&config, &pixels);
        let seen = present.map(|present| Missing(pixels, present));
        let observation = seen.as_ref().map_or(Observation::Image(pixels), |seen| Observation::Dict(seen));
        let decision = agent.act(observation, &mut memory, &mut ActContext::default())?;
        Ok(decision.action.to_vec())
    };
    let half: Vec<f32> = (0..48).map(|patch| f32::from(u8::from(patch % 2 == 0))).collect();
    let all = act(film(0), Some(vec![1.0; 48])).expect("all are there");
    assert_eq!(all, act(film(0), None).expect("all are there"));
    let few = act(film(0), Some(half.clone())).expect("half of them are there");
    assert_ne!(few, all);
    // What is missing does not matter, and neither does its place.
    let mut black = film(0);
    for (i, byte) in black.iter_mut().enumerate() {
        if i % 24 / 3 % 2 == 1 {
            *byte = 0;
        }
    }
    assert_eq!(act(black, Some(half.clone())).expect("half of them are there"), few);
    let order = shuffled();
    let moved = order.iter().map(|&from| half[from]).collect();
    assert_eq!(act(permute(&film(0), &order), Some(moved)).expect("half of them are there"), few);
    for (present, part) in [(vec![0.0; 48], "all 48 patches are missing"), (vec![1.0; 47], "and not 47")] {
        let said = act(film(0), Some(present)).expect_err("it must fail").to_string();
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn what_does_not_fit_is_refused_in_a_line() {
    let config = small().remove(0);
    let mut agent = PictureAgent::new(config.clone()).expect("good settings");
    let mut params = config.initial_params(Init::Torch, Seed::root(1));
    params[20] = f32::NAN;
    let said = agent.set_params(&params).expect_err("not a number").to_string();
    assert!(said.contains("parameter 20 (in query.weight) is NaN"), "{said}");
    let wrong = [
        PixelShape { frames: 1, height: 18, width: 24, channels: 3 },
        PixelShape { frames: 3, height: 18, width: 24, channels: 3 },
        PixelShape { frames: 3, height: 24, width: 18, channels: 1 },
    ];
    for shape in wrong {
        let bytes = vec![0; shape.frames * shape.frame_len()];
        let pixels = Observation::Image(Pixels::new(shape, &bytes).expect("as many"));
        let mut memory = agent.memory();
        let said = agent.act(pixels, &mut memory, &mut ActContext::default()).expect_err("another shape");
        assert!(said.to_string().contains("a stack of 3 grey pictures of 24x18"), "{said}");
    }
    for (settings, part) in [
        (json!({ "patch": 200 }), "patch is 200; it must be from 1 to 128"),
        (json!({ "patch": 97 }), "97"),
        (json!({ "frames": 1 }), "frames is 1; it must be from 2"),
        (json!({ "codes": [0, 3] }), "codes (rows) is 0"),
        (json!({ "codes": [60_000, 60_000] }), "too large"),
        (json!({ "first_choice": 3 }), "first_choice is 3; there are 3 choices"),
        (json!({ "codes": [3, 3] }), "head.top_k is 10; there are 9 codes"),
        (json!({ "head": { "kind": "attention_agent", "top_k": 0 } }), "head.top_k is 0"),
        (json!({ "head": { "kind": "convolution", "layers": [] } }), "head.layers names 0"),
        (
            json!({ "codes": [3, 9], "head": { "kind": "convolution" } }),
            "head.layers[0]: size is 4; its input is 3 x 9, so choose from 1 to 3",
        ),
        (json!({ "head": { "kind": "dense", "hiden": [] } }), "hiden"),
        (json!({ "head": { "kind": "eyes" } }), "eyes"),
        (json!({ "head": { "kind": "recurrent", "hidden": 0 } }), "head.hidden is 0"),
        (json!({ "sharpness": 0.0 }), "sharpness is 0"),
        (json!({ "message_dim": 65_536 }), "too large"),
    ] {
        let mut settings = settings;
        settings["senses"] = json!("picture");
        let said = registry::config("attention-neuron", &settings).err().expect("it must fail").to_string();
        assert!(said.contains(part) && said.lines().count() == 1, "{settings}: {said}");
    }
}

/// Computes decisions of the network for Pong with `NumPy`.
const PONG: &str = r"
import sys
import numpy as np
wire = sys.stdin.buffer
params = np.frombuffer(wire.read(4 * 1687726), '<f4').astype(np.float64)
frames = np.frombuffer(wire.read(3 * 4 * 84 * 84), np.uint8).reshape(3, 4, 84, 84)
at = 0
def take(*shape):
    global at
    at += int(np.prod(shape))
    return params[at - int(np.prod(shape)):at].reshape(shape)
wq, bq, wk, bk = take(32, 8), take(32), take(32, 114), take(32)
wv, bv = take(32, 144), take(32)
gi, bi, go, bo = take(36), take(36), take(32), take(32)
conv = [(take(64, 32, 4, 4), take(64), 2), (take(64, 64, 3, 3), take(64), 1)]
w1, b1, w2, b2 = take(512, 3136), take(512), take(6, 512), take(6)
assert at == len(params)
m, j = np.arange(400)[:, None], np.arange(8)[None]
angle = m / 10000 ** (2 * (j // 2) / 8)
table = np.where(j % 2 == 0, np.sin(angle), np.cos(angle))
def norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
last = 3
for frame in frames:
    x = frame / 255
    patches = x.reshape(4, 14, 6, 14, 6).transpose(1, 3, 0, 2, 4).reshape(196, 4, 36)
    action = np.zeros((196, 6))
    action[:, last] = 1
    keys = np.concatenate([np.diff(patches, axis=1).reshape(196, -1), action], 1) @ wk.T + bk
    values = (norm(patches) * gi + bi).reshape(196, -1) @ wv.T + bv
    z = (table @ wq.T + bq) @ keys.T / np.sqrt(32)
    a = np.exp(z - z.max(1, keepdims=True))
    a /= a.sum(1, keepdims=True)
    codes = norm(np.maximum(a @ values, 0)) * go + bo
    y = np.maximum(codes.reshape(20, 20, 32).transpose(2, 0, 1), 0)
    for w, b, stride in conv:
        view = np.lib.stride_tricks.sliding_window_view(y, w.shape[2:], (1, 2))[:, ::stride, ::stride]
        y = np.maximum(np.einsum('chwij,fcij->fhw', view, w) + b[:, None, None], 0)
    logits = w2 @ np.maximum(w1 @ y.ravel() + b1, 0) + b2
    last = int(logits.argmax())
    sys.stdout.write(' '.join(repr(float(v)) for v in logits) + '\n')
";

#[test]
fn the_network_for_pong_is_numpys() {
    let Some(python) = foveate_toy::needs::python() else { return };
    let config = PictureConfig::puzzle_pong();
    let tensors = config.tensors();
    let mut params = config.initial_params(Init::Torch, Seed::root(8));
    let mut rng = Seed::root(9).rng();
    // Factors and offsets that do something, and logits that differ from step to step.
    let mut at = 0;
    for tensor in &tensors {
        let numbers = &mut params[at..at + tensor.len()];
        for x in numbers {
            *x = if tensor.name.contains("norm") { rng.uniform(-1.0, 1.5) as f32 } else { *x * 3.0 };
        }
        at += tensor.len();
    }
    let frames: Vec<u8> =
        (0..3 * 4 * 84 * 84).map(|i| if i % 84 < 30 { 90 } else { rng.below(256) as u8 }).collect();
    let mut child = Command::new(python)
        .args(["-B", "-c", PONG])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("FOVEATE_PYTHON names a Python that starts");
    let published = Layout::Registration.from_ours(&tensors, &params).expect("its own parameters");
    let mut wire = child.stdin.take().expect("it was asked for");
    wire.write_all(&published.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).expect("it reads");
    wire.write_all(&frames).expect("it reads");
    drop(wire);
    let said = child.wait_with_output().expect("it ends");
    assert!(said.status.success(), "the script failed; what it printed is above");
    let said = String::from_utf8(said.stdout).expect("numbers");

    let mut agent = PictureAgent::new(config.clone()).expect("good settings");
    agent.set_params(&params).expect("its own parameters");
    let mut memory = agent.memory();
    assert_eq!(said.lines().count(), 3);
    for (t, line) in said.lines().enumerate() {
        let pixels = stack(&config, &frames[t * 28_224..(t + 1) * 28_224]);
        let decision = agent.act(Observation::Image(pixels), &mut memory, &mut ActContext::default());
        let decision = decision.expect("it fits");
        let want: Vec<f32> = line.split(' ').map(|x| x.parse().expect("a number")).collect();
        let size = want.iter().fold(1.0, |size: f32, x| size.max(x.abs()));
        let got: Vec<f32> = decision.action.iter().map(|&x| x as f32).collect();
        close(&format!("step {t}: logits"), &got, &want, 1e-4 * size);
    }
}

#[test]
fn dense_heads_take_codes_one_after_the_other() {
    let mut config = small().remove(3);
    config.head = HeadConfig::Dense(DenseConfig::default());
    let tensors = config.tensors();
    assert_eq!(tensors.last().map(|tensor| tensor.shape.clone()), Some(vec![3, 30 * 5]));
    let agent = random(config.clone(), Level::best());
    let mut memory = agent.memory();
    let pixels = Observation::Image(stack(&config, &film(2)));
    let action = agent.act(pixels, &mut memory, &mut ActContext::default()).expect("it fits").action.to_vec();
    assert!(action[0].abs() < 1.0 && action[0] != 0.0, "{action:?}");
    assert_eq!(memory.raw().len(), 3);
}
