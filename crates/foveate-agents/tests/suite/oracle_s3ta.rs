//! S3TA against the same networks in JAX, in double precision, on the same weights and pictures: the `ConvLSTM`, the attention,
//! and whole networks through time, whose gradients come from automatic differentiation.

use std::collections::BTreeMap;

use foveate_agents::registry::AgentConfig;
use foveate_agents::s3ta::{S3taAgent, S3taConfig, S3taStudent, Torso};
use foveate_core::{
    ActContext, Action, LastStep, Model, Observation, Outputs, PixelShape, Pixels, Policy, Seed,
};
use foveate_kernels::Level;
use foveate_learn::{
    Add, Builder, Conv, Frequencies, GroupNorms, LstmGates, Padding, Part, Softmax, SoftmaxAttention,
    SpatialBasis, WeightedSum,
};
use foveate_toy::oracle::Oracle;

/// Ours is in single precision, the reference in double precision. A difference is relative to the largest number, or to 1 if
/// all are smaller; of gradients always to the largest.
const TOLERANCE: f64 = 1e-4;

fn numbers(oracle: &mut Oracle, count: usize) -> Vec<f64> {
    (0..count).map(|_| oracle.number()).collect()
}

fn single(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&x| x as f32).collect()
}

/// A tensor's shape and numbers.
fn tensor(oracle: &mut Oracle) -> (Vec<usize>, Vec<f64>) {
    let axes = oracle.count();
    let shape: Vec<usize> = (0..axes).map(|_| oracle.count()).collect();
    let numbers = numbers(oracle, shape.iter().product());
    (shape, numbers)
}

fn tensors(oracle: &mut Oracle) -> BTreeMap<String, (Vec<usize>, Vec<f64>)> {
    let count = oracle.count();
    (0..count)
        .map(|_| {
            let name = oracle.text();
            (name, tensor(oracle))
        })
        .collect()
}

/// The largest difference of all that was compared under one heading.
#[derive(Default)]
struct Apart(BTreeMap<String, f64>);

impl Apart {
    #[track_caller]
    fn close(&mut self, ours: &[f32], theirs: &[f64], least: f64, what: &str) {
        assert_eq!(ours.len(), theirs.len(), "{what}");
        let largest = theirs.iter().map(|x| x.abs()).fold(least, f64::max);
        let apart = ours.iter().zip(theirs).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        assert!(apart <= TOLERANCE * largest, "{what}: {apart} apart, largest {largest}");
        // A comparison of zeros alone would see nothing.
        assert!(theirs.iter().any(|x| *x != 0.0), "{what}: nothing but zeros");
        let all = self.0.entry(what.to_owned()).or_default();
        *all = all.max(apart / largest);
    }
}

#[test]
fn networks_and_gradients_are_those_of_jax() {
    let Some(mut oracle) = Oracle::start("oracle/s3ta.py") else { return };
    let (mut apart, mut compared) = (Apart::default(), vec![]);
    loop {
        let kind = oracle.text();
        match &*kind {
            "cell" => cell(&mut oracle, &mut apart),
            "attention" => attention(&mut oracle, &mut apart),
            "network" => {
                compared.push(network(&mut oracle, &mut apart));
                continue;
            }
            "end" => break,
            _ => panic!("a part called {kind}"),
        }
        compared.push(kind);
    }
    oracle.finish();
    for (what, apart) in apart.0 {
        eprintln!("{what}: {apart:.1e} apart");
    }
    let networks =
        ["top-down", "fixed query", "key norms", "peepholes", "residual", "residual with an LSTM", "default"];
    assert_eq!(compared, [&["cell"; 3][..], &["attention"; 9], &networks].concat());
}

/// The cell as the agent has it.
fn cell(oracle: &mut Oracle, apart: &mut Apart) {
    let forget_bias = oracle.number() as f32;
    let mut weights = tensors(oracle);
    let ((shape, mut h), (_, mut c)) = (tensor(oracle), tensor(oracle));
    let &[rows, columns, channels] = &*shape else { panic!("a state of {shape:?}") };
    let inputs = weights["vision_input.weight"].0[3];
    let mut net = Builder::default();
    let x = net.input("x", [rows, columns, inputs]);
    let state = ["h", "c"].map(|name| net.state(name, [rows, columns, channels]));
    let conv = Conv::new(4 * channels, 3).with_padding(Padding::Same);
    let from_x = net.layer("vision_input", conv, [x]);
    let from_h = net.layer("vision_state", conv.without_bias(), [state[0]]);
    let sums = net.then(Add, [from_x, from_h]);
    let gates = LstmGates::default().with_forget_bias(forget_bias);
    let peepholes = weights.contains_key("vision_peephole.weight");
    let gates = if peepholes { gates.with_peepholes() } else { gates };
    let both = net.layer("vision_peephole", gates, [sums, state[1]]);
    let next = [0, channels].map(|begin| net.then(Part { begin, len: channels }, [both]));
    let net = net.build(&next).expect("it fits");
    let params: Vec<f32> = net
        .tensors()
        .iter()
        .flat_map(|tensor| {
            let (shape, numbers) = weights.remove(&tensor.name).expect("the same tensors");
            assert_eq!(shape, tensor.shape, "{}", tensor.name);
            single(&numbers)
        })
        .collect();
    let mut acts = net.activations(1);
    for _ in 0..oracle.count() {
        let x = tensor(oracle).1;
        net.forward(Level::best(), &params, &[&single(&x), &single(&h), &single(&c)], 1, &mut acts);
        h = tensor(oracle).1;
        c = tensor(oracle).1;
        apart.close(acts.get(next[0]), &h, 1.0, "ConvLSTM, h");
        apart.close(acts.get(next[1]), &c, 1.0, "ConvLSTM, c");
        // The next step begins where ours ended, so that errors would grow.
        h = acts.get(next[0]).iter().map(|&x| f64::from(x)).collect();
        c = acts.get(next[1]).iter().map(|&x| f64::from(x)).collect();
    }
}

fn attention(oracle: &mut Oracle, apart: &mut Apart) {
    let (source, kind) = (oracle.text(), oracle.text());
    let (n, heads) = (oracle.count(), oracle.count());
    let [(_, queries), (shape, keys), (_, values), (_, maps), (_, answers)] =
        [(); 5].map(|()| tensor(oracle));
    let &[rows, columns, width] = &*shape else { panic!("keys of {shape:?}") };
    let (cells, features) = (rows * columns, values.len() / (rows * columns));
    let frequencies = match &*kind {
        "mixed" => Frequencies::Mixed,
        "mixed-from-zero" => Frequencies::MixedFromZero,
        _ => Frequencies::Cosines,
    };
    let basis = SpatialBasis::new(n, frequencies);
    let mut net = Builder::default();
    let q = net.input("queries", [heads, width + basis.channels()]);
    let k = net.input("keys", [rows, columns, width]);
    let v = net.input("values", [rows, columns, features]);
    let wide = net.then(basis, [v]);
    let wide = net.reshape(wide, [cells, features + basis.channels()]);
    let (output, weights) = if source == "key-norms" {
        let k = net.reshape(k, [cells, width]);
        let norms = net.then(GroupNorms::new(heads), [k]);
        let weights = net.then(Softmax, [norms]);
        (net.then(WeightedSum, [weights, wide]), Some(weights))
    } else {
        let k = net.then(basis, [k]);
        let k = net.reshape(k, [cells, width + basis.channels()]);
        (net.then(SoftmaxAttention::new(1.0), [q, k, wide]), None)
    };
    let read: Vec<_> = [output].into_iter().chain(weights).collect();
    let net = net.build(&read).expect("it fits");
    let mut acts = net.activations(1);
    let inputs = [&queries, &keys, &values].map(|numbers| single(numbers));
    net.forward(Level::best(), &[][..], &inputs.each_ref().map(|x| &x[..]), 1, &mut acts);
    let what = format!("attention, {source}, {kind}");
    let ours = weights.map_or_else(|| acts.kept(output), |node| acts.get(node));
    apart.close(ours, &maps, 0.0, &format!("{what}, maps"));
    apart.close(acts.get(output), &answers, 1.0, &what);
}

/// The weights, as the agent has them, of what the reference calls by the same names.
fn flat(config: &S3taConfig, mut tensors: BTreeMap<String, (Vec<usize>, Vec<f64>)>) -> Vec<f64> {
    let mut flat = vec![];
    for tensor in config.tensors() {
        let (shape, numbers) = tensors.remove(&tensor.name).unwrap_or_else(|| panic!("no {}", tensor.name));
        assert_eq!(shape, tensor.shape, "{}", tensor.name);
        flat.extend(numbers);
    }
    assert!(tensors.is_empty(), "the reference has more tensors: {:?}", tensors.keys());
    flat
}

fn network(oracle: &mut Oracle, apart: &mut Apart) -> String {
    let name = oracle.text();
    let config: S3taConfig = serde_json::from_str(&oracle.text()).expect("an agent's configuration");
    config.check().expect("good");
    if name == "default" {
        assert_eq!(config, S3taConfig::default());
    }
    let params = single(&flat(&config, tensors(oracle)));
    let mut student = S3taStudent::new(&config).expect("good");
    student.set_params(&params).expect("finite");
    let mut agent = S3taAgent::new(config.clone()).expect("good");
    agent.set_params(&params).expect("finite");
    acting(oracle, apart, &name, &agent, student.memory_len());
    learning(oracle, apart, &name, &config, &mut student);
    name
}

fn see<'a>(config: &S3taConfig, bytes: &'a [u8]) -> Observation<'a> {
    let [height, width, channels] = config.view;
    let shape = PixelShape { frames: 1, height, width, channels };
    Observation::Image(Pixels::new(shape, bytes).expect("a picture"))
}

fn picture(oracle: &mut Oracle, config: &S3taConfig) -> Vec<u8> {
    (0..config.view.iter().product()).map(|_| oracle.count() as u8).collect()
}

/// An unroll from the beginning of an episode, in which both take the best choice.
fn acting(oracle: &mut Oracle, apart: &mut Apart, name: &str, agent: &S3taAgent, memory_len: usize) {
    let config = agent.config();
    let mut memory = agent.memory();
    agent.reset(&mut memory, Seed::root(1));
    let mut last = None;
    for step in 0..oracle.count() {
        let picture = picture(oracle, config);
        let mut context = ActContext { reward: oracle.number(), choice: last, ..ActContext::default() };
        let (choice, logits, value) = (oracle.count(), numbers(oracle, config.actions), numbers(oracle, 1));
        let state = numbers(oracle, memory_len);
        let decision = agent.act(see(config, &picture), &mut memory, &mut context).expect("it fits");
        let best = (0..config.actions).max_by(|&a, &b| decision.action[a].total_cmp(&decision.action[b]));
        assert_eq!(best, Some(choice), "{name}, step {step}");
        last = best;
        apart.close(decision.logits.expect("choices"), &logits, 1.0, &format!("{name}, logits"));
        apart.close(&[decision.value.expect("an estimate")], &value, 1.0, &format!("{name}, value"));
        if config.torso == Torso::Attention {
            let attention = decision.attention.expect("it attends");
            let cells = attention.tokens().len();
            let maps: Vec<f32> =
                (0..config.heads).flat_map(|head| attention.row(head, 0).expect("a head").to_vec()).collect();
            let theirs = numbers(oracle, config.heads * cells);
            apart.close(&maps, &theirs, 0.0, &format!("{name}, maps"));
        }
        let mut own = vec![];
        agent.recurrent_state(&memory, &mut own);
        if memory_len > 0 {
            apart.close(&own, &state, 1.0, &format!("{name}, states"));
        }
    }
}

/// An unroll of several sequences from the middle of episodes, and the gradient of a loss that is linear in logits and values.
fn learning(
    oracle: &mut Oracle,
    apart: &mut Apart,
    name: &str,
    config: &S3taConfig,
    student: &mut S3taStudent,
) {
    let (steps, sequences) = (oracle.count(), oracle.count());
    if steps == 0 {
        return;
    }
    let memories = single(&numbers(oracle, sequences * student.memory_len()));
    let mut inputs = vec![];
    for _ in 0..steps * sequences {
        let picture = picture(oracle, config);
        let (reward, choice) = (oracle.number(), oracle.number());
        let action = (choice >= 0.0).then_some(Action::Discrete(choice as usize));
        student.encode(LastStep { action, reward }, see(config, &picture), &mut inputs).expect("it fits");
    }
    let rows = steps * sequences;
    let [logits, values, of_logits, of_values] =
        [config.actions, 1, config.actions, 1].map(|width| numbers(oracle, rows * width));
    let theirs = flat(config, tensors(oracle));
    let got = student.forward(steps, &inputs, &memories);
    apart.close(&got.outputs, &logits, 1.0, &format!("{name}, logits of an unroll"));
    apart.close(&got.values, &values, 1.0, &format!("{name}, values of an unroll"));
    let mut gradient = vec![0.0; theirs.len()];
    student.backward(&single(&of_logits), &single(&of_values), &mut gradient);
    let (mut ours, mut rest) = (&*gradient, &*theirs);
    for tensor in config.tensors() {
        let what = format!("{name}, gradient of {}", tensor.name);
        apart.close(&ours[..tensor.len()], &rest[..tensor.len()], 0.0, &what);
        (ours, rest) = (&ours[tensor.len()..], &rest[tensor.len()..]);
    }
}
