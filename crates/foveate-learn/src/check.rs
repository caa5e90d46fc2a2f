//! Checks of gradients against finite differences in double precision, for tests of layers and networks.

use foveate_core::Seed;
use foveate_kernels::Level;

use crate::layer::Layer;
use crate::network::{Builder, Network, Node};

/// Samples in a check.
const BATCH: usize = 3;

/// Checks `layer` for inputs of these shapes, on every instruction set: the output against [`Layer::exact`], and the
/// gradients with respect to inputs and parameters against finite differences of it.
///
/// # Panics
/// When they differ by more than single precision explains, or instruction sets differ in a bit.
pub fn gradient(layer: &(impl Layer + Clone + 'static), shapes: &[&[usize]]) {
    let mut net = Builder::default();
    let inputs: Vec<Node> = shapes.iter().map(|&shape| net.state("input", shape)).collect();
    let layer = layer.clone();
    let y = match inputs[..] {
        [a] => net.layer("layer", layer, [a]),
        [a, b] => net.layer("layer", layer, [a, b]),
        [a, b, c] => net.layer("layer", layer, [a, b, c]),
        _ => panic!("a layer with {} inputs", inputs.len()),
    };
    network(&net.build(&[y]).expect("shapes that suit the layer"), &inputs, y, 1e-4);
}

/// Checks that `layer` refuses inputs of these shapes with an error that contains `why`.
///
/// # Panics
/// When it does not.
pub fn refused(layer: &impl Layer, shapes: &[&[usize]], why: &str) {
    let said = layer.output(shapes).expect_err("shapes that must be refused");
    assert!(said.contains(why), "{said}");
}

/// Checks a network from `inputs`, all its inputs in their order, to `output`, as [`gradient`] does, with relative
/// errors up to `tolerance`. Gradients with respect to inputs that were added by [`Builder::input`] are not checked.
///
/// # Panics
/// As [`gradient`].
pub fn network(net: &Network, inputs: &[Node], output: Node, tolerance: f64) {
    let draw = |n: usize, name: &str| -> Vec<f32> {
        let mut rng = Seed::root(7).child(name, n as u64).rng();
        (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
    };
    let len = |node: Node| net.shape(node).iter().product::<usize>();
    let params = draw(net.params(), "params");
    let given: Vec<Vec<f32>> =
        inputs.iter().enumerate().map(|(i, &node)| draw(BATCH * len(node), &format!("input {i}"))).collect();
    let slices: Vec<&[f32]> = given.iter().map(|x| &x[..]).collect();
    let pull = draw(BATCH * len(output), "pull");
    let wide = |xs: &[f32]| xs.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();

    // What is checked: the gradient of Σ pull · output.
    let run = |level: Level| {
        let mut acts = net.activations(BATCH);
        net.forward(level, &params, &slices, BATCH, &mut acts);
        let value = acts.get(output).to_vec();
        acts.clear_gradients();
        acts.gradient_mut(output).copy_from_slice(&pull);
        let mut d_params = vec![0.0; net.params()];
        net.backward(level, &params, &mut acts, &mut d_params);
        let d_inputs: Vec<Vec<f32>> = inputs
            .iter()
            .map(|&input| net.is_state(input).then(|| acts.gradient(input).to_vec()))
            .map(Option::unwrap_or_default)
            .collect();
        (value, d_params, d_inputs)
    };
    let (value, d_params, d_inputs) = run(Level::best());
    for level in Level::available() {
        assert!(run(level) == (value.clone(), d_params.clone(), d_inputs.clone()), "{level} differs");
    }

    let loss = |params: &[f64], inputs: &[Vec<f64>]| -> (Vec<f64>, f64) {
        let mut all = Vec::new();
        for sample in 0..BATCH {
            let each: Vec<&[f64]> = inputs
                .iter()
                .map(|x| &x[sample * (x.len() / BATCH)..(sample + 1) * (x.len() / BATCH)])
                .collect();
            all.extend_from_slice(&net.exact(params, &each)[Network::index(output)]);
        }
        let sum = all.iter().zip(&pull).map(|(y, &p)| y * f64::from(p)).sum();
        (all, sum)
    };
    let (mut wide_params, mut wide_inputs) =
        (wide(&params), given.iter().map(|x| wide(x)).collect::<Vec<_>>());
    let (exact, _) = loss(&wide_params, &wide_inputs);
    compare("output", &value, &exact, tolerance);
    let h = 1e-5;
    // At most some 300 places of each tensor.
    let places = |n: usize| (0..n).step_by(n.div_ceil(300).max(1)).collect::<Vec<_>>();
    let mut expect = vec![];
    for at in places(params.len()) {
        let x = wide_params[at];
        let mut side = |x: f64| {
            wide_params[at] = x;
            loss(&wide_params, &wide_inputs).1
        };
        expect.push((side(x + h) - side(x - h)) / (2.0 * h));
        side(x);
    }
    let got: Vec<f32> = places(params.len()).into_iter().map(|at| d_params[at]).collect();
    compare("gradient of the parameters", &got, &expect, 10.0 * tolerance);
    for (i, d_input) in d_inputs.iter().enumerate() {
        let mut expect = vec![];
        for at in places(d_input.len()) {
            let x = wide_inputs[i][at];
            let mut side = |x: f64| {
                wide_inputs[i][at] = x;
                loss(&wide_params, &wide_inputs).1
            };
            expect.push((side(x + h) - side(x - h)) / (2.0 * h));
            side(x);
        }
        let got: Vec<f32> = places(d_input.len()).into_iter().map(|at| d_input[at]).collect();
        compare(&format!("gradient of input {i}"), &got, &expect, 10.0 * tolerance);
    }
}

#[track_caller]
fn compare(what: &str, got: &[f32], expect: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expect.len(), "{what}");
    let size = expect.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
    for (at, (&got, &expect)) in got.iter().zip(expect).enumerate() {
        let error = (f64::from(got) - expect).abs();
        assert!(error <= tolerance * size, "{what}, number {at}: {got}, expected {expect}");
    }
}
