use foveate_core::{Demonstration, Grid, LastStep, Model, Outputs, Pixels, Predictions, SparseRows, Student};

use super::*;

/// Choices or numbers, without memory and with it.
fn configs() -> Vec<ActorCriticConfig> {
    let numbers = ActorCriticConfig {
        observation: vec![[-2.0, 2.0], [0.0, 0.1], [-1.0, 3.0]],
        hidden: vec![5, 4],
        actions: vec![[-1.0, 1.0], [10.0, 20.0]],
        ..ActorCriticConfig::default()
    };
    [(true, 0), (true, 3), (false, 0), (false, 3)]
        .map(|(discrete, lstm)| ActorCriticConfig { lstm, discrete, ..numbers.clone() })
        .to_vec()
}

/// Parameters that make actions differ.
fn params(config: &ActorCriticConfig) -> Vec<f32> {
    let mut rng = Seed::root(4).rng();
    (0..config.param_count()).map(|_| rng.uniform(-0.8, 0.8) as f32).collect()
}

fn student(config: &ActorCriticConfig) -> ActorCriticStudent {
    let mut student = ActorCriticStudent::new(config).expect("good");
    student.set_params(&params(config)).expect("its own");
    student
}

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = Seed::root(seed).rng();
    (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
}

#[test]
fn the_agent_acts_by_what_the_student_predicts() {
    for config in configs() {
        let mut student = student(&config);
        let seen = numbers(6 * 3, 1);
        let mut inputs = vec![];
        for seen in seen.chunks_exact(3) {
            student
                .encode(LastStep::default(), Observation::Vector(seen), &mut inputs)
                .expect("three numbers");
        }
        let mut expect = Predictions::default();
        student.follow(&inputs, &mut expect);
        assert_eq!(expect.memories.len(), 6 * student.memory_len());
        let width = config.distribution().outputs();
        for level in Level::available() {
            let mut agent = ActorCriticAgent::new(config.clone()).expect("good").with_level(level);
            agent.set_params(&params(&config)).expect("its own");
            let mut memory = agent.memory();
            for (step, seen) in seen.chunks_exact(3).enumerate() {
                let (mut state, n) = (vec![], student.memory_len());
                agent.recurrent_state(&memory, &mut state);
                assert_eq!(state, expect.memories[step * n..][..n], "{level:?}");
                let decision = agent
                    .act(Observation::Vector(seen), &mut memory, &mut ActContext::default())
                    .expect("it fits");
                let outputs = &expect.outputs[step * width..][..width];
                assert_eq!(decision.value, Some(expect.values[step]), "{level:?}");
                if config.discrete {
                    assert_eq!(decision.logits, Some(outputs), "{level:?}");
                    assert!((decision.action.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                    assert_eq!(decision.action[0] > decision.action[1], outputs[0] > outputs[1]);
                } else {
                    for (i, [low, high]) in config.actions.iter().enumerate() {
                        assert_eq!(decision.action[i], f64::from(outputs[i]).clamp(*low, *high));
                    }
                }
            }
        }
        // The same episode as two sequences of three steps, each with the memory that it had.
        let mut both = vec![];
        for step in 0..3 {
            both.extend_from_slice(&inputs[3 * step..][..3]);
            both.extend_from_slice(&inputs[3 * (step + 3)..][..3]);
        }
        let n = student.memory_len();
        let memories = [&expect.memories[..n], &expect.memories[3 * n..][..n]].concat();
        let got = student.forward(3, &both, &memories);
        for step in 0..6 {
            let row = 2 * (step % 3) + step / 3;
            assert_eq!(got.values[row], expect.values[step]);
            assert_eq!(got.outputs[row * width..][..width], expect.outputs[step * width..][..width]);
        }
    }
}

/// The gradient, through time as well, against differences of a loss that is linear in outputs and values.
#[test]
fn gradients_are_those_of_the_outputs() {
    const STEPS: usize = 4;
    for config in configs() {
        let mut student = student(&config);
        let (inputs, rows) = (numbers(2 * STEPS * 3, 2), 2 * STEPS);
        let memories = numbers(2 * student.memory_len(), 3);
        let width = config.distribution().outputs();
        let (of_outputs, of_values) = (numbers(rows * width, 5), numbers(rows, 6));
        let start = params(&config);
        let mut loss = |flat: &[f32]| -> f64 {
            student.set_params(flat).expect("finite");
            let got = student.forward(STEPS, &inputs, &memories);
            let sum = |xs: &[f32], ys: &[f32]| -> f64 {
                xs.iter().zip(ys).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
            };
            sum(&got.outputs, &of_outputs) + sum(&got.values, &of_values)
        };
        let slopes: Vec<f64> = (0..start.len())
            .map(|i| {
                let mut at = |h: f32| {
                    let mut moved = start.clone();
                    moved[i] += h;
                    loss(&moved)
                };
                (at(4e-3) - at(-4e-3)) / 8e-3
            })
            .collect();
        loss(&start);
        let mut gradient = vec![1.0; start.len()];
        student.backward(&of_outputs, &of_values, &mut gradient);
        for (i, (slope, g)) in slopes.iter().zip(&gradient).enumerate() {
            let g = f64::from(*g) - 1.0;
            assert!((slope - g).abs() < 5e-3 * (1.0 + slope.abs()), "{config:?}, {i}: {slope}, {g}");
        }
        let mut first: Option<Vec<f32>> = None;
        for level in Level::available() {
            let mut student = ActorCriticStudent::new(&config).expect("good").with_level(level);
            student.set_params(&start).expect("its own");
            student.forward(STEPS, &inputs, &memories);
            let mut gradient = vec![0.0; start.len()];
            student.backward(&of_outputs, &of_values, &mut gradient);
            assert_eq!(first.get_or_insert_with(|| gradient.clone()), &gradient, "{level:?}");
        }
    }
}

#[test]
fn actions_are_drawn_from_the_distribution() {
    const N: u32 = 4000;
    for config in configs() {
        let mut agent = ActorCriticAgent::new(config.clone()).expect("good");
        agent.set_params(&params(&config)).expect("its own");
        let mut memory = agent.memory();
        let mut context = ActContext::new(Seed::root(2), ActMode::Explore { epsilon: 0.0 });
        let (mut sums, mut squares, mut shares) = ([0.0; 2], [0.0; 2], [0.0; 2]);
        for _ in 0..N {
            agent.reset(&mut memory, Seed::root(0));
            let decision =
                agent.act(Observation::Vector(&[0.3, 0.02, -1.0]), &mut memory, &mut context).expect("fits");
            for (i, &x) in decision.action.iter().enumerate() {
                (sums[i], squares[i]) = (sums[i] + x, squares[i] + x * x);
            }
            if let Some(logits) = decision.logits {
                probabilities(logits, &mut shares);
            }
        }
        let outputs: Vec<f64> = memory.outputs.iter().map(|&x| x.into()).collect();
        for i in 0..2 {
            let mean = sums[i] / f64::from(N);
            if config.discrete {
                assert!((mean - shares[i]).abs() < 0.03, "{i}: {mean}, {}", shares[i]);
            } else {
                let deviation = (squares[i] / f64::from(N) - mean * mean).sqrt();
                let expect = outputs[2 + i].exp();
                assert!((mean - outputs[i]).abs() < 0.06 * expect, "{i}: {mean}, {}", outputs[i]);
                assert!((deviation / expect - 1.0).abs() < 0.05, "{i}: {deviation}, {expect}");
            }
        }
    }
}

#[test]
fn grids_are_seen_as_numbers_and_first_actions_are_about_alike() {
    let config = ActorCriticConfig {
        observation: vec![],
        view: [3, 2, 2],
        divisor: 4.0,
        actions: vec![[0.0, 1.0]; 5],
        ..ActorCriticConfig::default()
    };
    let mut agent = ActorCriticAgent::new(config.clone()).expect("good");
    agent.set_params(&config.initial_params(Init::Torch, Seed::root(1))).expect("its own");
    let mut memory = agent.memory();
    let codes: Vec<u8> = (0..12).collect();
    let grid = Observation::Grid(Grid::new(3, 2, 2, &codes).expect("12 codes"));
    let decision = agent.act(grid, &mut memory, &mut ActContext::default()).expect("it fits");
    assert!(decision.action.iter().all(|p| (p - 0.2).abs() < 0.01), "{:?}", decision.action);
    assert_eq!(memory.input[5], 1.25);
    let other = Observation::Grid(Grid::new(2, 3, 2, &codes).expect("12 codes"));
    let said =
        agent.act(other, &mut memory, &mut ActContext::default()).expect_err("other sides").to_string();
    assert!(said.contains("built for 3x2 cells or pixels with 2 numbers each"), "{said}");
    let continuous = ActorCriticConfig { discrete: false, log_std: -1.5, ..config };
    let first = continuous.initial_params(Init::Torch, Seed::root(1));
    assert_eq!(first[first.len() - 5..], [-1.5; 5]);
}

const fn convolution(size: usize, stride: usize) -> ConvolutionLayer {
    ConvolutionLayer { filters: 3, size, stride }
}

/// For stacks of two pictures of 6 × 7 pixels of two channels.
fn pictures(convolutions: Vec<ConvolutionLayer>) -> ActorCriticConfig {
    ActorCriticConfig {
        observation: vec![],
        view: [6, 7, 4],
        divisor: 255.0,
        convolutions,
        hidden: vec![5],
        ..ActorCriticConfig::default()
    }
}

#[test]
fn pictures_go_through_convolutions_that_both_sides_share() {
    const ROWS: usize = 3;
    let shape = PixelShape { frames: 2, height: 6, width: 7, channels: 2 };
    let bytes: Vec<u8> = (0..ROWS * 168).map(|i| (i * 89 % 251) as u8).collect();
    let stack = |row: usize| {
        Observation::Image(Pixels::new(shape, &bytes[row * 168..][..168]).expect("two pictures"))
    };
    let config = pictures(vec![convolution(3, 2), convolution(2, 1)]);
    let names: Vec<String> = config.tensors().into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(names[..4], ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"]);
    let mut student = student(&config);
    let mut inputs = vec![];
    (0..ROWS).for_each(|row| student.encode(LastStep::default(), stack(row), &mut inputs).expect("it fits"));
    // Row 4, column 3, channel 1 of the second picture of the first stack.
    assert_eq!(inputs[(4 * 7 + 3) * 4 + 2 + 1], f32::from(bytes[((6 + 4) * 7 + 3) * 2 + 1]) * (1.0 / 255.0));
    let predictions = student.forward(1, &inputs, &[]).clone();
    for level in Level::available() {
        let mut agent = ActorCriticAgent::new(config.clone()).expect("good").with_level(level);
        agent.set_params(&params(&config)).expect("its own");
        let mut memory = agent.memory();
        for row in 0..ROWS {
            let decision = agent.act(stack(row), &mut memory, &mut ActContext::default()).expect("it fits");
            assert_eq!(decision.value, Some(predictions.values[row]), "{level:?}");
            assert_eq!(decision.logits, Some(&predictions.outputs[2 * row..][..2]), "{level:?}");
        }
    }

    let (of_outputs, of_values) = (numbers(2 * ROWS, 5), numbers(ROWS, 6));
    let start = params(&config);
    let mut gradient = vec![0.0; start.len()];
    student.backward(&of_outputs, &of_values, &mut gradient);
    let mut loss = |flat: &[f32]| -> f64 {
        student.set_params(flat).expect("finite");
        let got = student.forward(1, &inputs, &[]);
        let pairs = got.outputs.iter().zip(&of_outputs).chain(got.values.iter().zip(&of_values));
        pairs.map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
    };
    for i in 0..start.len() {
        let mut at = |h: f32| {
            let mut moved = start.clone();
            moved[i] += h;
            loss(&moved)
        };
        let (slope, g) = ((at(2e-3) - at(-2e-3)) / 4e-3, f64::from(gradient[i]));
        assert!((slope - g).abs() < 1e-2 * (1.0 + slope.abs()), "{i}: {slope}, {g}");
    }

    let other = PixelShape { height: 7, width: 6, ..shape };
    let other = Observation::Image(Pixels::new(other, &bytes[..168]).expect("two pictures"));
    let said = student.encode(LastStep::default(), other, &mut inputs).expect_err("other sides").to_string();
    assert!(said.contains("built for 6x7 cells or pixels with 4 numbers each"), "{said}");
}

/// A grid of many cells, most of them zero, is read without its zeros: in batches and alone, forward and backward, the bits are those
/// of the dense network.
#[test]
fn a_grid_of_bits_is_read_without_its_zeros() {
    const ROWS: usize = 11;
    let config = ActorCriticConfig {
        observation: vec![],
        view: [7, 7, 20],
        divisor: 10.0,
        hidden: vec![20, 5],
        actions: vec![[0.0, 1.0]; 3],
        ..ActorCriticConfig::default()
    };
    let codes: Vec<u8> = (0..ROWS * 980).map(|i| (i * 7919 % 13 == 0).into()).collect();
    let grid =
        |row: usize| Observation::Grid(Grid::new(7, 7, 20, &codes[row * 980..][..980]).expect("as many"));
    let mut student = student(&config);
    let (mut inputs, mut rows) = (vec![], SparseRows::new(980));
    for row in 0..ROWS {
        student.encode(LastStep::default(), grid(row), &mut inputs).expect("it fits");
        assert!(student.encode_row(grid(row), &mut rows).expect("it fits"), "zeros are left out");
    }
    // In another order, one of them twice.
    let chosen = [3, 0, 10, 3, 7];
    let dense: Vec<f32> = chosen.iter().flat_map(|&row| inputs[row * 980..][..980].to_vec()).collect();
    let (of_outputs, of_values) = (numbers(3 * chosen.len(), 5), numbers(chosen.len(), 6));
    let mut pass = |sparse: bool| {
        let got = if sparse { student.forward_rows(&rows, &chosen) } else { student.forward(1, &dense, &[]) };
        let got = got.clone();
        let mut gradient = vec![0.0; config.param_count()];
        // Twice, so that a gradient is added to one that is not zero.
        student.backward(&of_outputs, &of_values, &mut gradient);
        student.backward(&of_outputs, &of_values, &mut gradient);
        (got, gradient)
    };
    let (expect, gradient) = pass(false);
    assert_eq!(pass(true), (expect.clone(), gradient));
    let mut agent = ActorCriticAgent::new(config.clone()).expect("good");
    agent.set_params(&params(&config)).expect("its own");
    let mut memory = agent.memory();
    for (at, &row) in chosen.iter().enumerate() {
        let decision = agent.act(grid(row), &mut memory, &mut ActContext::default()).expect("it fits");
        assert_eq!(decision.value, Some(expect.values[at]), "row {row}");
        assert_eq!(decision.logits, Some(&expect.outputs[3 * at..][..3]), "row {row}");
        assert_eq!(
            agent.study_inputs(&memory).expect("a grid").picture,
            &codes[row * 980..][..980],
            "row {row}"
        );
    }
}

#[test]
fn impossible_settings_are_refused() {
    let good = ActorCriticConfig::default();
    for (config, why) in [
        (ActorCriticConfig { observation: vec![], ..good.clone() }, "observation has 0 ranges"),
        (ActorCriticConfig { view: [2, 2, 1], ..good.clone() }, "give one of them"),
        (ActorCriticConfig { observation: vec![], view: [usize::MAX; 3], ..good.clone() }, "1 to 1048576"),
        (ActorCriticConfig { observation: vec![[0.0, 1.0]; 70_000], ..good.clone() }, "1 to 65536"),
        (ActorCriticConfig { view: [7, 9, 4], ..pictures(vec![convolution(8, 1)]) }, "choose from 1 to 7"),
        (pictures(vec![convolution(2, 0)]), "convolutions: stride is 0"),
        (
            pictures(vec![ConvolutionLayer { filters: 65_536, ..convolution(1, 1) }]),
            "convolutions[0] has 2752512 outputs, at most 1048576",
        ),
        (pictures(vec![convolution(1, 1); 17]), "convolutions names 17"),
        (ActorCriticConfig { convolutions: vec![convolution(1, 1)], ..good.clone() }, "its input is 0 x 0"),
        (ActorCriticConfig { observation: vec![[1.0, 1.0]], ..good.clone() }, "observation[0] is [1, 1]"),
        (ActorCriticConfig { divisor: 0.0, ..good.clone() }, "divisor = 0"),
        (ActorCriticConfig { log_std: f64::NAN, ..good.clone() }, "log_std = NaN"),
        (ActorCriticConfig { hidden: vec![], ..good.clone() }, "hidden"),
        (ActorCriticConfig { hidden: vec![0], ..good.clone() }, "number of units is 0"),
        (ActorCriticConfig { lstm: usize::MAX, ..good.clone() }, "number of units"),
        (ActorCriticConfig { hidden: vec![8192; 2], ..good.clone() }, "lower hidden or lstm"),
        (ActorCriticConfig { actions: vec![], ..good.clone() }, "action"),
    ] {
        let said = config.check().expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
    }
}

/// What is recorded of a demonstration is what the agent saw, and the error of a piece is that of the agent's own decisions, from
/// the state that the steps before it leave; its gradient lowers it.
#[test]
fn an_expert_is_imitated() {
    const STEPS: usize = 7;
    let picture = ActorCriticConfig {
        observation: vec![],
        view: [6, 5, 6],
        divisor: 255.0,
        convolutions: vec![ConvolutionLayer { filters: 3, size: 2, stride: 1 }],
        hidden: vec![4],
        discrete: false,
        actions: vec![[0.0, 4.0]],
        ..ActorCriticConfig::default()
    };
    let grid = ActorCriticConfig { view: [2, 3, 1], divisor: 10.0, convolutions: vec![], ..picture.clone() };
    for config in configs().into_iter().chain([picture, grid]) {
        let flat = params(&config);
        let mut agent = ActorCriticAgent::new(config.clone()).expect("good");
        agent.set_params(&flat).expect("its own");
        let (mut memory, n) = (agent.memory(), config.actions.len());
        let mut demonstration = Demonstration { steps: STEPS, ..Demonstration::default() };
        let mut errors = vec![];
        for step in 0..STEPS {
            let seen = numbers(3, step as u64);
            let bytes: Vec<u8> =
                numbers(180, step as u64).iter().map(|x| (100.0 * (x + 1.0)) as u8).collect();
            let shape = PixelShape { frames: 2, height: 6, width: 5, channels: 3 };
            let observation = match config.view {
                [6, ..] => Observation::Image(Pixels::new(shape, &bytes).expect("as many")),
                [2, ..] => Observation::Grid(Grid::new(2, 3, 1, &bytes[..6]).expect("as many")),
                _ => Observation::Vector(&seen),
            };
            let decision = agent.act(observation, &mut memory, &mut ActContext::default()).expect("it fits");
            let (expert, error): (Vec<f32>, f64) = if let Some(logits) = decision.logits {
                let exp: Vec<f64> = logits.iter().map(|&x| f64::from(x).exp()).collect();
                let chosen = (0..n).map(|i| f32::from(u8::from(i == step % 2)));
                (chosen.collect(), -(exp[step % 2] / exp.iter().sum::<f64>()).ln())
            } else {
                let share = 0.1 + 0.1 * step as f64;
                let wanted = config.actions.iter().map(|[low, high]| low + share * (high - low));
                let means = memory.outputs[..n].iter().zip(&config.actions);
                let apart = means.zip(wanted.clone()).map(|((&mean, [low, high]), wanted)| {
                    (2.0 * (f64::from(mean) - wanted) / (high - low)).powi(2)
                });
                (wanted.map(|x| x as f32).collect(), apart.sum())
            };
            errors.push(error);
            let StudyInputs { numbers, picture } = agent.study_inputs(&memory).expect("one of them");
            demonstration.inputs.extend_from_slice(numbers);
            if !picture.is_empty() {
                demonstration.pictures.push(picture);
            }
            demonstration.actions.extend(expert);
        }
        let mut learner = student(&config);
        assert_eq!(demonstration.inputs.len(), STEPS * learner.inputs());
        assert_eq!(demonstration.pictures.is_empty(), learner.picture() == 0);
        let mut gradient = vec![0.0; flat.len()];
        let error = learner.study(&demonstration, 3..STEPS, 3, &mut gradient);
        let expect: f64 = errors[3..].iter().sum();
        assert!((error - expect).abs() < 1e-4 * expect, "{error} {errors:?}");
        if config.lstm > 0 {
            let forgetful = learner.study(&demonstration, 3..STEPS, 0, &mut vec![0.0; flat.len()]);
            assert!((forgetful - error).abs() > 1e-5, "the steps before leave a trace");
        }
        let lower: Vec<f32> = flat.iter().zip(&gradient).map(|(x, g)| x - 1e-3 * g).collect();
        learner.set_params(&lower).expect("finite");
        let after = learner.study(&demonstration, 3..STEPS, 3, &mut gradient);
        assert!(after < error, "{after} {error}");
    }
}
