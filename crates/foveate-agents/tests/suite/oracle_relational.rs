//! The networks for digits against the same networks in JAX, whose gradients come from automatic differentiation: logits,
//! attention, loss and gradients on the same weights and pictures.

use foveate_agents::relational::{AttentionNode, Relational, digits, digits_baseline};
use foveate_kernels::Level;
use foveate_learn::loss::cross_entropy;
use foveate_toy::oracle::Oracle;

/// Ours is in single precision, the reference in double precision.
const TOLERANCE: f64 = 1e-4;

fn numbers(oracle: &mut Oracle, count: usize) -> Vec<f64> {
    (0..count).map(|_| oracle.number()).collect()
}

#[track_caller]
fn close(ours: &[f32], theirs: &[f64], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let apart = ours.iter().zip(theirs).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    let largest = theirs.iter().map(|x| x.abs()).fold(0.0, f64::max);
    eprintln!("{what}: {apart:.1e} apart, largest {largest:.2e}");
    assert!(apart <= TOLERANCE * largest.min(1.0), "{what}: {apart} apart, largest {largest}");
}

#[test]
fn networks_and_gradients_are_those_of_jax() {
    let Some(mut oracle) = Oracle::start("oracle/relational.py") else { return };
    let mut compared = vec![];
    loop {
        let name = oracle.text();
        let Relational { net, output, attention, .. } = match &*name {
            "relational" => digits().expect("fixed"),
            "convolutional" => digits_baseline().expect("fixed"),
            _ => break,
        };
        let (count, batch) = (oracle.count(), oracle.count());
        assert_eq!(count, net.params(), "{name}");
        let single = |numbers: Vec<f64>| numbers.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
        let params = single(numbers(&mut oracle, count));
        let pictures = single(numbers(&mut oracle, batch * 28 * 28));
        let classes: Vec<usize> = (0..batch).map(|_| oracle.count()).collect();

        let level = Level::best();
        let mut acts = net.activations(batch);
        net.forward(level, &params, &[&pictures], batch, &mut acts);
        close(acts.get(output), &numbers(&mut oracle, batch * 10), &format!("{name}, logits"));
        acts.clear_gradients();
        let (logits, d_logits) = acts.output_and_gradient(output);
        let loss = cross_entropy(level, logits, &classes, 1.0 / batch as f32, d_logits);
        let expect = oracle.number();
        assert!((loss - expect).abs() <= TOLERANCE, "{name}: a loss of {loss}, not {expect}");
        let mut gradient = vec![0.0; count];
        net.backward(level, &params, &mut acts, &mut gradient);
        let mut rest = &*gradient;
        for tensor in net.tensors() {
            let (own, behind) = rest.split_at(tensor.len());
            let what = format!("{name}, gradient of {}", tensor.name);
            close(own, &numbers(&mut oracle, tensor.len()), &what);
            rest = behind;
        }
        if let Some(AttentionNode::Kept(node)) = attention {
            let theirs = numbers(&mut oracle, 256 * 256);
            close(&acts.kept(node)[..256 * 256], &theirs, &format!("{name}, attention"));
        }
        compared.push(name);
    }
    oracle.finish();
    assert_eq!(compared, ["relational", "convolutional"]);
}
