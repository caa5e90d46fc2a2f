//! Neurons against their definition, on every instruction set and in every order.

use proptest::prelude::*;

use super::*;

/// Numbers from -1 to 1.
fn numbers(n: usize, salt: usize) -> Vec<f32> {
    (0..n).map(|i| (((i + 31 * salt) * 7919 % 1009) as f32 - 504.0) / 504.0).collect()
}

struct Weights {
    ih: Vec<f32>,
    hh: Vec<f32>,
    bias_ih: Vec<f32>,
    bias_hh: Vec<f32>,
    scores: Vec<f32>,
    bias: Vec<f32>,
}

impl Weights {
    fn of(sizes: SensorySizes, salt: usize) -> Self {
        let SensorySizes { shared, hidden, codes, .. } = sizes;
        Weights {
            ih: numbers(4 * hidden * (shared + 1), salt + 1),
            hh: numbers(4 * hidden * hidden, salt + 2),
            bias_ih: numbers(4 * hidden, salt + 3),
            bias_hh: numbers(4 * hidden, salt + 4),
            scores: numbers(codes * hidden, salt + 5).iter().map(|x| 4.0 * x).collect(),
            bias: numbers(codes, salt + 6),
        }
    }

    fn cell(&self) -> CellWeights<'_> {
        let Weights { ih, hh, bias_ih, bias_hh, .. } = self;
        CellWeights { weight_ih: ih, weight_hh: hh, bias_ih, bias_hh }
    }

    fn neurons(&self, sizes: SensorySizes) -> Neurons {
        let mut neurons = Neurons::new(sizes);
        neurons.set(self.cell(), &self.scores, &self.bias);
        neurons
    }
}

/// Direct implementation of the definition, in double precision; returns weights `[codes, sensors]` and message.
fn slow(
    w: &Weights,
    sizes: SensorySizes,
    seen: &[f32],
    shared: &[f32],
    state: &mut [(Vec<f64>, Vec<f64>)],
) -> (Vec<f64>, Vec<f64>) {
    let SensorySizes { hidden, codes, activation, squash, .. } = sizes;
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    for (&o, (h, c)) in seen.iter().zip(&mut *state) {
        let x: Vec<f64> = std::iter::once(o).chain(shared.iter().copied()).map(f64::from).collect();
        let dot = |w: &[f32], row: usize, v: &[f64]| -> f64 {
            w[row * v.len()..].iter().zip(v).map(|(&w, v)| f64::from(w) * v).sum()
        };
        let z: Vec<f64> = (0..4 * hidden)
            .map(|row| {
                f64::from(w.bias_ih[row])
                    + f64::from(w.bias_hh[row])
                    + dot(&w.ih, row, &x)
                    + dot(&w.hh, row, h)
            })
            .collect();
        for u in 0..hidden {
            c[u] = logistic(z[hidden + u]) * c[u] + logistic(z[u]) * z[2 * hidden + u].tanh();
            h[u] = logistic(z[3 * hidden + u]) * c[u].tanh();
        }
    }
    let (mut weights, mut message) = (vec![], vec![]);
    for code in 0..codes {
        let score = |h: &[f64]| -> f64 {
            let row = &w.scores[code * hidden..][..hidden];
            f64::from(w.bias[code]) + row.iter().zip(h).map(|(&w, h)| f64::from(w) * h).sum::<f64>()
        };
        let z: Vec<f64> = state.iter().map(|(h, _)| score(h)).collect();
        let total: f64 = z.iter().map(|z| z.exp()).sum();
        let row: Vec<f64> = z
            .iter()
            .map(|z| match activation {
                Activation::Tanh => z.tanh(),
                Activation::Sigmoid => logistic(*z),
                Activation::Softmax => z.exp() / total,
            })
            .collect();
        let sum: f64 = row.iter().zip(seen).map(|(w, &o)| w * f64::from(o)).sum();
        message.push(if squash { sum.tanh() } else { sum });
        weights.extend(row);
    }
    (weights, message)
}

#[test]
fn matches_the_definition_on_every_level() {
    for (shared, hidden, codes, sensors, activation, squash) in [
        (1, 8, 16, 5, Activation::Tanh, true),
        (8, 8, 32, 28, Activation::Tanh, true),
        (0, 1, 1, 1, Activation::Sigmoid, false),
        (3, 11, 17, 7, Activation::Sigmoid, true),
        (2, 20, 40, 70, Activation::Softmax, false),
    ] {
        let sizes = SensorySizes { shared, hidden, codes, activation, squash };
        let w = Weights::of(sizes, 1);
        let neurons = w.neurons(sizes);
        let mut first: Option<Vec<u32>> = None;
        for level in Level::available() {
            let mut senses = neurons.senses();
            senses.begin(sensors);
            let mut state = vec![(vec![0.0; hidden], vec![0.0; hidden]); sensors];
            let mut bits = vec![];
            for t in 0..20 {
                let (seen, given) = (numbers(sensors, t), numbers(shared, t + 50));
                neurons.step(level, &seen, &given, &mut senses);
                let (weights, message) = slow(&w, sizes, &seen, &given, &mut state);
                for (got, want) in senses.weights().iter().zip(&weights) {
                    assert!(
                        (f64::from(*got) - want).abs() < 2e-5,
                        "{level} {sizes:?} weight {got} {want} at {t}"
                    );
                }
                for (got, want) in senses.message().iter().zip(&message) {
                    assert!(
                        (f64::from(*got) - want).abs() < 1e-4,
                        "{level} {sizes:?} message {got} {want} at {t}"
                    );
                }
                for (sensor, (h, _)) in state.iter().enumerate() {
                    for (got, want) in senses.key(sensor).iter().zip(h) {
                        assert!(
                            (f64::from(*got) - want).abs() < 5e-6,
                            "{level} {sizes:?} key {got} {want} at {t}"
                        );
                    }
                }
                bits.extend(senses.message().iter().chain(senses.weights()).map(|x| x.to_bits()));
            }
            assert_eq!(&bits, first.get_or_insert_with(|| bits.clone()), "{level} {sizes:?}");
        }
    }
}

/// Scores and numbers at the limits of f32 give messages that are numbers.
#[test]
fn extremes_saturate() {
    for activation in [Activation::Tanh, Activation::Sigmoid, Activation::Softmax] {
        let sizes = SensorySizes { shared: 1, hidden: 4, codes: 3, activation, squash: true };
        let mut w = Weights::of(sizes, 3);
        w.ih.iter_mut().chain(&mut w.scores).for_each(|x| *x *= 1e6);
        let neurons = w.neurons(sizes);
        for level in Level::available() {
            let mut senses = neurons.senses();
            senses.begin(4);
            for t in 0..5 {
                neurons.step(level, &[1e30, -1e30, 0.0, f32::MIN_POSITIVE], &[1e20], &mut senses);
                let all = senses.message().iter().chain(senses.weights());
                assert!(all.clone().all(|x| x.abs() <= 1.0), "{level} {activation:?} {t}: {all:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Permuted from the start, the message has the same bits and the weights are permuted likewise; a sensor that
    /// always shows 0 does not change the message unless weights depend on each other.
    #[test]
    fn order_does_not_matter(
        sensors in 1..90_usize,
        salt in 0..1000_usize,
        kind in 0..3_usize,
        few_values in any::<bool>(),
        keys in proptest::collection::vec(any::<u64>(), 90),
    ) {
        let activation = [Activation::Tanh, Activation::Sigmoid, Activation::Softmax][kind];
        let sizes = SensorySizes { shared: 2, hidden: 8, codes: 18, activation, squash: true };
        let neurons = Weights::of(sizes, salt).neurons(sizes);
        let mut order: Vec<usize> = (0..sensors).collect();
        order.sort_by_key(|&i| keys[i]);
        let (mut plain, mut permuted, mut more) = (neurons.senses(), neurons.senses(), neurons.senses());
        plain.begin(sensors);
        permuted.begin(sensors);
        more.begin(sensors + 1);
        for t in 0..8 {
            let shared = numbers(2, t + salt);
            // Few values: many sensors show the same, some of them with different pasts.
            let seen: Vec<f32> = if few_values {
                (0..sensors).map(|i| [0.5, -0.0, 0.0][(i * (t + 1) + salt) % 3]).collect()
            } else {
                numbers(sensors, t + salt)
            };
            let other: Vec<f32> = order.iter().map(|&i| seen[i]).collect();
            neurons.step(Level::best(), &seen, &shared, &mut plain);
            neurons.step(Level::best(), &other, &shared, &mut permuted);
            let bits = |xs: &[f32]| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(plain.message()), bits(permuted.message()));
            for code in 0..sizes.codes {
                let (row, got) = (&plain.weights()[code * sensors..], &permuted.weights()[code * sensors..]);
                for (place, &i) in order.iter().enumerate() {
                    prop_assert_eq!(row[i].to_bits(), got[place].to_bits());
                }
            }
            if activation != Activation::Softmax {
                let with_zero = [&[0.0], &seen[..]].concat();
                neurons.step(Level::best(), &with_zero, &shared, &mut more);
                prop_assert_eq!(bits(plain.message()), bits(more.message()));
            }
        }
    }
}

#[test]
fn a_step_ends_again_with_its_own_weights_or_with_others() {
    for (activation, squash) in [
        (Activation::Tanh, true),
        (Activation::Sigmoid, false),
        (Activation::Softmax, true),
        (Activation::Softmax, false),
    ] {
        for (hidden, codes, sensors) in [(8, 16, 5), (3, 21, 70)] {
            let sizes = SensorySizes { shared: 2, hidden, codes, activation, squash };
            let neurons = Weights::of(sizes, 7).neurons(sizes);
            for level in Level::available() {
                let (mut whole, mut parts) = (neurons.senses(), neurons.senses());
                whole.begin(sensors);
                parts.begin(sensors);
                let mut weights = vec![0.0; codes * sensors];
                for t in 0..3 {
                    // Some numbers are equal.
                    let mut seen = numbers(sensors, t);
                    seen[1] = seen[0];
                    let shared = numbers(2, t + 9);
                    neurons.step(level, &seen, &shared, &mut whole);
                    neurons.step(level, &seen, &shared, &mut parts);
                    neurons.write_weights(level, &parts, &mut weights);
                    // Something else between leaves no trace.
                    neurons.give(level, &vec![0.5; weights.len()], &vec![0.25; sensors], &mut parts);
                    let rest = if neurons.means() { 0.25 } else { 0.125 * sensors as f32 };
                    let rest = if squash { rest.tanh() } else { rest };
                    assert!(parts.message().iter().all(|x| (x - rest).abs() < 1e-5), "{:?}", parts.message());
                    neurons.give(level, &weights, &seen, &mut parts);
                    assert_eq!(parts.message(), whole.message(), "{level}, {sizes:?}");
                    assert_eq!(parts.weights(), whole.weights(), "{level}, {sizes:?}");
                    weights[..sensors].fill(0.0);
                    neurons.give(level, &weights, &seen, &mut parts);
                    assert_eq!((parts.message()[0], &parts.message()[1..]), (0.0, &whole.message()[1..]));
                }
            }
        }
    }
}
