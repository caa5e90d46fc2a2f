use foveate_core::{Demonstration, Model, Outputs, Pixels, Predictions, Student};

use super::*;

const fn convolution(filters: usize, size: usize, stride: usize) -> ConvolutionLayer {
    ConvolutionLayer { filters, size, stride }
}

/// A small agent for pictures of 13 × 10 pixels with three choices.
fn small() -> S3taConfig {
    S3taConfig {
        view: [13, 10, 3],
        actions: 3,
        convolutions: vec![convolution(4, 4, 2), convolution(5, 3, 2)],
        channels: 7,
        keys: 2,
        heads: 2,
        frequencies: 1,
        query_hidden: vec![6],
        answer_hidden: vec![8, 5],
        units: 4,
        trunk: 3,
        ..S3taConfig::default()
    }
}

/// The agent, its ablations, the residual networks, and one with so many channels that the convolutions of the `ConvLSTM` take
/// fewer multiplications.
fn configs() -> Vec<S3taConfig> {
    let wide = vec![convolution(4, 4, 2), convolution(32, 3, 2)];
    let residual = S3taConfig { torso: Torso::Residual, answer_hidden: vec![4], trunk: 0, ..small() };
    vec![
        small(),
        S3taConfig { attention: Source::FixedQuery, basis: Basis::Cosines, score_scale: 0.4, ..small() },
        S3taConfig { attention: Source::KeyNorms, answer_relu: false, trunk: 0, ..small() },
        S3taConfig { peepholes: true, pixel_scale: 3.0, ..small() },
        S3taConfig { convolutions: wide, channels: 32, ..small() },
        S3taConfig { units: 0, ..residual.clone() },
        residual,
    ]
}

fn params(config: &S3taConfig) -> Vec<f32> {
    config.initial_params(Init::Torch, Seed::root(4))
}

fn student(config: &S3taConfig) -> S3taStudent {
    let mut student = S3taStudent::new(config).expect("good");
    student.set_params(&params(config)).expect("its own");
    student
}

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = Seed::root(seed).rng();
    (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
}

const SHAPE: PixelShape = PixelShape { frames: 1, height: 13, width: 10, channels: 3 };

/// Picture `step` of an episode.
fn picture(step: usize) -> Vec<u8> {
    (0..390).map(|i| ((i + 37 * step) * 89 % 251) as u8).collect()
}

fn see(bytes: &[u8]) -> Observation<'_> {
    Observation::Image(Pixels::new(SHAPE, bytes).expect("a picture"))
}

/// The sizes of the specification, section 1 and 4.
#[test]
fn parameters_are_as_many_as_published() {
    let of = |actions| S3taConfig { actions, ..S3taConfig::default() };
    let fixed = S3taConfig { attention: Source::FixedQuery, ..of(18) };
    let peeping = S3taConfig { peepholes: true, ..of(18) };
    let forward =
        S3taConfig { torso: Torso::Residual, answer_hidden: vec![256], units: 0, trunk: 0, ..of(18) };
    let recurrent = S3taConfig { units: 256, ..forward.clone() };
    let grey = |config: &S3taConfig| S3taConfig { view: [84, 84, 4], ..config.clone() };
    for (config, expect) in [
        (of(18), 2_286_611),
        (of(9), 2_280_842),
        (of(6), 2_278_919),
        (of(4), 2_277_637),
        (fixed, 2_151_059),
        (peeping, 2_286_611 + 3 * 27 * 20 * 128),
        (grey(&forward), 1_094_115),
        (grey(&recurrent), 1_638_883),
        (forward, 4_526_419),
        (recurrent, 5_071_187),
    ] {
        config.check().expect("good");
        assert_eq!(config.param_count(), expect, "{config:?}");
    }
    let tensors = S3taConfig::default().tensors();
    let of = |layer: &str| -> usize {
        tensors.iter().filter(|tensor| tensor.name.starts_with(layer)).map(TensorShape::len).sum()
    };
    for (layer, expect) in [
        ("vision_conv1.", 6_176),
        ("vision_conv2.", 32_832),
        ("vision_input.", 64 * 9 * 512 + 512),
        ("vision_", 6_176 + 32_832 + 885_248),
        ("query", 135_840),
        ("answer1.", 534_528),
        ("answer2.", 131_328),
        ("core_", 525_312),
        ("trunk", 32_896),
        ("policy.", 2_322),
        ("value.", 129),
    ] {
        assert_eq!(of(layer), expect, "{layer}");
    }
}

/// With `pixel_scale`, first weights by He et al. answer to what differs within a filter's window alone.
#[test]
fn an_even_background_is_not_seen_at_first() {
    for (torso, first) in [(Torso::Attention, "vision_conv1."), (Torso::Residual, "stage1_conv.")] {
        let config = S3taConfig { torso, pixel_scale: 2.0, ..small() };
        let params = config.initial_params(Init::He, Seed::root(4));
        let mut at = 0;
        for tensor in config.tensors() {
            let own = &params[at..at + tensor.len()];
            at += tensor.len();
            if tensor.name.starts_with(first) && tensor.shape.len() > 1 {
                for filter in own.chunks_exact(tensor.shape[1..].iter().product()) {
                    let (sum, size) =
                        filter.iter().fold((0.0, 0.0), |(sum, size), w| (sum + w, size + w.abs()));
                    assert!(f32::abs(sum) < 1e-6 * size && size > 0.1, "{torso:?}: {sum}, {size}");
                }
            }
        }
    }
    let seen = |pixel_scale| {
        let mut to = [0.0; 3];
        scale(&[0, 51, 255], pixel_scale, &mut to);
        to
    };
    for (pixel_scale, expect) in [(1.0, [0.0, 0.2, 1.0]), (20.0, [0.0, 4.0, 20.0])] {
        let seen: [f32; 3] = seen(pixel_scale);
        assert!(seen.iter().zip(expect).all(|(x, y)| (x - y).abs() < 1e-5 * pixel_scale), "{seen:?}");
    }
}

/// Actions, states and attention are those of the student, whatever the instruction set, and sequences may begin anywhere.
#[test]
fn the_agent_acts_by_what_the_student_predicts() {
    const STEPS: usize = 6;
    for config in configs() {
        let mut student = student(&config);
        let pictures: Vec<Vec<u8>> = (0..STEPS).map(picture).collect();
        let reward = |step: usize| [0.0, 0.5, -3.0, 1.0, 0.0, 2.0][step];
        let mut all = None;
        for level in Level::available() {
            let mut agent = S3taAgent::new(config.clone()).expect("good").with_level(level);
            agent.set_params(&params(&config)).expect("its own");
            let mut memory = agent.memory();
            agent.reset(&mut memory, Seed::root(1));
            let mut context = ActContext::new(Seed::root(2), ActMode::Explore { epsilon: 0.0 });
            let (mut last, mut states) = (vec![], vec![]);
            let mut inputs = vec![];
            let (mut outputs, mut values) = (vec![], vec![]);
            for (step, picture) in pictures.iter().enumerate() {
                last.push(context.choice);
                let mut state = vec![];
                agent.recurrent_state(&memory, &mut state);
                assert_eq!(state.len(), student.memory_len());
                states.push(state);
                context.reward = reward(step);
                let before = LastStep { action: context.choice.map(Action::Discrete), reward: reward(step) };
                student.encode(before, see(picture), &mut inputs).expect("it fits");
                let decision = agent.act(see(picture), &mut memory, &mut context).expect("it fits");
                outputs.extend_from_slice(decision.logits.expect("three choices"));
                values.extend(decision.value);
                let chosen = decision.action.iter().position(|&x| x == 1.0);
                if config.torso == Torso::Attention {
                    let attention = decision.attention.expect("it attends");
                    assert_eq!((attention.heads(), attention.tokens().len()), (2, 4 * 3));
                    for head in 0..2 {
                        let row = attention.row(head, 0).expect("a head");
                        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.iter().all(|w| *w > 0.0));
                    }
                } else {
                    assert_eq!(decision.attention, None);
                }
                context.choice = chosen;
            }
            let mut followed = Predictions::default();
            student.follow(&inputs, &mut followed);
            assert_eq!((&followed.outputs, &followed.values), (&outputs, &values), "{level:?} {config:?}");
            assert_eq!(followed.memories, states.concat());
            // Two sequences at once, from the middle of the episode and from its beginning.
            let width = student.encoded_len();
            let both: Vec<f32> = (0..3)
                .flat_map(|t| [&inputs[(3 + t) * width..][..width], &inputs[t * width..][..width]].concat())
                .collect();
            let got = student.forward(3, &both, &[&states[3][..], &states[0]].concat());
            for t in 0..3 {
                assert_eq!(got.values[2 * t..][..2], [values[3 + t], values[t]]);
            }
            let now = (last, states);
            let first = all.get_or_insert_with(|| now.clone());
            assert!(*first == now, "{level:?}");
        }
    }
}

/// A decision: action, logits, value, and the weights of all heads.
type Decided = (Vec<f64>, Vec<f32>, Option<f32>, Vec<f32>);

fn copied(decision: Decision<'_>) -> Decided {
    let weights = decision.attention.map_or(vec![], |attention| {
        (0..attention.heads()).flat_map(|head| attention.row(head, 0).expect("a head").to_vec()).collect()
    });
    (decision.action.to_vec(), decision.logits.expect("choices").to_vec(), decision.value, weights)
}

/// Several episodes at once, in changing order and number, are what each is alone; on all instruction sets.
#[test]
fn a_batch_decides_as_each_episode_alone() {
    const EPISODES: usize = 4;
    for config in configs() {
        let mut everywhere = None;
        for level in Level::available() {
            let mut agent = S3taAgent::new(config.clone()).expect("good").with_level(level);
            agent.set_params(&params(&config)).expect("its own");
            let fresh = || -> Vec<(S3taMemory, ActContext)> {
                let explore = ActMode::Explore { epsilon: 0.0 };
                (0..EPISODES)
                    .map(|i| (agent.memory(), ActContext::new(Seed::root(i as u64), explore)))
                    .collect()
            };
            let (mut alone, together) = (fresh(), fresh());
            let (mut memories, mut contexts): (Vec<_>, Vec<_>) = together.into_iter().unzip();
            let mut all = vec![];
            for step in 0..5 {
                // Of every step some episodes, in another order.
                let order: Vec<usize> = (0..EPISODES - step % 3).map(|i| (3 * i + step) % EPISODES).collect();
                let pictures: Vec<Vec<u8>> = (0..EPISODES).map(|i| picture(7 * i + step)).collect();
                let mut expect = vec![];
                for &episode in &order {
                    let (memory, context) = &mut alone[episode];
                    (context.reward, context.choice) = (step as f64 - 1.5, Some((step + episode) % 3));
                    let decision = agent.act(see(&pictures[episode]), memory, context).expect("it fits");
                    expect.push(copied(decision));
                }
                let mut by_episode: Vec<Option<&mut ActContext>> = contexts.iter_mut().map(Some).collect();
                let mut turns: Vec<Turn<'_>> = order
                    .iter()
                    .map(|&episode| {
                        let context = by_episode[episode].take().expect("once");
                        (context.reward, context.choice) = (step as f64 - 1.5, Some((step + episode) % 3));
                        Turn { episode, observation: see(&pictures[episode]), context }
                    })
                    .collect();
                let mut got = vec![];
                let mut decided = |i: usize, decision: Decision<'_>| {
                    assert_eq!(i, got.len());
                    got.push(copied(decision));
                };
                agent.act_batch(&mut turns, &mut memories, &mut decided).expect("it fits");
                assert_eq!(got, expect, "{level:?}, {config:?}");
                all.push(got);
            }
            for (memory, (other, _)) in memories.iter().zip(&alone) {
                let of =
                    |memory: &S3taMemory| (memory.states.clone(), memory.pixels.clone(), memory.told.clone());
                assert_eq!(of(memory), of(other), "also what a student learns from");
            }
            assert_eq!(everywhere.get_or_insert_with(|| all.clone()), &all, "{level:?}");
        }
    }
}

/// Turns before a picture that does not fit decide; and an episode may have two turns.
#[test]
fn a_batch_ends_at_its_first_error() {
    let mut agent = S3taAgent::new(small()).expect("good");
    agent.set_params(&params(&small())).expect("its own");
    let mut memories = vec![agent.memory(); 3];
    let (good, bad) = (picture(1), [0.5]);
    let observations = [see(&good), see(&good), Observation::Vector(&bad), see(&good)];
    let mut contexts: [ActContext; 4] = std::array::from_fn(|_| ActContext::default());
    let mut run = |episodes: [usize; 4], memories: &mut [S3taMemory]| {
        let mut turns: Vec<Turn<'_>> = contexts
            .iter_mut()
            .zip(episodes.iter().zip(observations))
            .map(|(context, (&episode, observation))| Turn { episode, observation, context })
            .collect();
        let mut got = vec![];
        let outcome = agent.act_batch(&mut turns[..3], memories, &mut |i, _| got.push(i));
        assert!(outcome.expect_err("no picture").to_string().contains("13 x 10 pixels"));
        got
    };
    assert_eq!(run([2, 0, 1, 1], &mut memories), [0, 1]);
    assert_ne!(memories[2].states, memories[1].states, "one has acted, the other has not");
    let mut twice = vec![agent.memory(); 3];
    assert_eq!(run([2, 2, 1, 1], &mut twice), [0, 1]);
    assert_ne!(twice[2].states, memories[2].states, "two steps");
}

/// The gradient, through time, against differences of a loss that is linear in outputs and values.
#[test]
fn gradients_are_those_of_the_outputs() {
    const STEPS: usize = 3;
    for config in configs() {
        let mut student = student(&config);
        let mut inputs = vec![];
        for step in 0..2 * STEPS {
            let last = LastStep { action: Some(Action::Discrete(step % 3)), reward: 0.3 };
            student.encode(last, see(&picture(step)), &mut inputs).expect("it fits");
        }
        let memories = numbers(2 * student.memory_len(), 3);
        let (of_outputs, of_values) = (numbers(2 * STEPS * 3, 5), numbers(2 * STEPS, 6));
        let start = params(&config);
        let mut loss = |flat: &[f32]| -> f64 {
            student.set_params(flat).expect("finite");
            let got = student.forward(STEPS, &inputs, &memories);
            let pairs = got.outputs.iter().zip(&of_outputs).chain(got.values.iter().zip(&of_values));
            pairs.map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
        };
        // About a hundred parameters; relu has kinks, so that a difference may be off.
        let places: Vec<usize> = (0..start.len()).step_by(1 + start.len() / 100).collect();
        let slope = |i: usize, h: f32, loss: &mut dyn FnMut(&[f32]) -> f64| {
            let mut at = |h: f32| {
                let mut moved = start.clone();
                moved[i] += h;
                loss(&moved)
            };
            (at(h) - at(-h)) / f64::from(2.0 * h)
        };
        let slopes: Vec<[f64; 2]> =
            places.iter().map(|&i| [2e-3, 5e-4].map(|h| slope(i, h, &mut loss))).collect();
        loss(&start);
        let mut gradient = vec![1.0; start.len()];
        student.backward(&of_outputs, &of_values, &mut gradient);
        for (&i, slopes) in places.iter().zip(&slopes) {
            let g = f64::from(gradient[i]) - 1.0;
            let near = |slope: &f64| (slope - g).abs() < 1e-2 * (1.0 + slope.abs());
            assert!(slopes.iter().any(near), "{config:?}, {i}: {slopes:?}, {g}");
        }
        let mut first: Option<Vec<f32>> = None;
        for level in Level::available() {
            let mut student = S3taStudent::new(&config).expect("good").with_level(level);
            student.set_params(&start).expect("its own");
            student.forward(STEPS, &inputs, &memories);
            let mut gradient = vec![0.0; start.len()];
            student.backward(&of_outputs, &of_values, &mut gradient);
            assert_eq!(first.get_or_insert_with(|| gradient.clone()), &gradient, "{level:?}");
        }
    }
}

/// Opening a decision and resuming it is deciding, to the bit; what is resumed decides.
#[test]
fn a_decision_can_be_opened() {
    for config in configs() {
        for level in Level::available() {
            let mut agent = S3taAgent::new(config.clone()).expect("good").with_level(level);
            agent.set_params(&params(&config)).expect("its own");
            let (mut memory, mut other) = (agent.memory(), agent.memory());
            let explore = ActMode::Explore { epsilon: 0.0 };
            let mut context = ActContext::new(Seed::root(2), explore);
            let mut opened = Opened::default();
            for step in 0..4 {
                let mut again = context.clone();
                let can =
                    agent.open(see(&picture(step)), &mut other, &context, &mut opened).expect("it fits");
                let whole = agent.act(see(&picture(step)), &mut memory, &mut context).expect("it fits");
                assert_eq!(can, config.torso == Torso::Attention);
                if !can {
                    let said = agent.resume(&opened, &mut other, &mut again).expect_err("closed");
                    assert!(said.to_string().contains("without attention"), "{said}");
                    break;
                }
                assert_eq!(whole.attention.expect("it attends").weights(), opened.weights);
                let chosen = whole.action.iter().position(|&x| x == 1.0);
                let whole = (whole.logits.map(<[f32]>::to_vec), whole.value, whole.action.to_vec());
                let mut changed = (opened.clone(), other.clone());
                let halves = agent.resume(&opened, &mut other, &mut again).expect("its own");
                let halves = (halves.logits.map(<[f32]>::to_vec), halves.value, halves.action.to_vec());
                assert_eq!(halves, whole, "{level:?} {config:?}");
                assert_eq!(memory.states, other.states);
                assert_eq!(context.rng.clone().next_f64(), again.rng.clone().next_f64());
                // Scores are sums of their terms, up to a number for each head.
                if config.attention != Source::KeyNorms {
                    let names: Vec<_> = opened.terms.iter().map(|term| term.0).collect();
                    assert_eq!(names, ["what", "where"]);
                    for head in 0..opened.readers {
                        let cells = head * opened.units..(head + 1) * opened.units;
                        let terms = opened.terms[0].1[cells.clone()].iter().zip(&opened.terms[1].1[cells]);
                        let apart: Vec<f32> = terms
                            .zip(opened.row(head))
                            .map(|((what, place), weight)| what + place - weight.ln())
                            .collect();
                        assert!(apart.iter().all(|x| (x - apart[0]).abs() < 1e-4), "{apart:?}");
                    }
                }
                // Other values give another decision; values that do not fit, none.
                changed.0.values.iter_mut().for_each(|x| *x += 1.0);
                let moved = agent.resume(&changed.0, &mut changed.1, &mut again).expect("it fits");
                assert_ne!(moved.logits.map(<[f32]>::to_vec), whole.0);
                changed.0.values.pop();
                let said = agent.resume(&changed.0, &mut changed.1, &mut again).expect_err("too few");
                assert!(said.to_string().contains("where the agent takes"), "{said}");
                context.choice = chosen;
            }
        }
    }
}

/// What is recorded of a demonstration is what the agent saw, and the loss of a piece is the cross entropy of the expert's
/// choices from the state that the steps before it leave; its gradient lowers it.
#[test]
fn an_expert_is_imitated() {
    const STEPS: usize = 7;
    for config in configs() {
        let mut agent = S3taAgent::new(config.clone()).expect("good");
        let flat = params(&config);
        agent.set_params(&flat).expect("its own");
        let mut memory = agent.memory();
        let mut context = ActContext::default();
        let mut demonstration = Demonstration { steps: STEPS, ..Demonstration::default() };
        let mut losses = vec![];
        for step in 0..STEPS {
            let expert = step % 3;
            let decision = agent.act(see(&picture(step)), &mut memory, &mut context).expect("it fits");
            let logits: Vec<f64> = decision.logits.expect("three").iter().map(|&x| x.into()).collect();
            losses.push(logits.iter().map(|x| x.exp()).sum::<f64>().ln() - logits[expert]);
            let StudyInputs { numbers, picture } = agent.study_inputs(&memory).expect("both");
            demonstration.inputs.extend_from_slice(numbers);
            demonstration.pictures.push(picture);
            demonstration.actions.extend((0..3).map(|i| f32::from(u8::from(i == expert))));
            (context.choice, context.reward) = (Some(expert), 0.5);
        }
        let mut learner = student(&config);
        let mut gradient = vec![0.0; flat.len()];
        let loss = learner.study(&demonstration, 3..STEPS, 3, &mut gradient);
        assert!((loss - losses[3..].iter().sum::<f64>()).abs() < 1e-4, "{loss} {losses:?}");
        if config.units > 0 {
            let forgetful = learner.study(&demonstration, 3..STEPS, 0, &mut vec![0.0; flat.len()]);
            assert!((forgetful - loss).abs() > 1e-5, "the steps before leave a trace");
        }
        let lower: Vec<f32> = flat.iter().zip(&gradient).map(|(x, g)| x - 1e-3 * g).collect();
        learner.set_params(&lower).expect("finite");
        let after = learner.study(&demonstration, 3..STEPS, 3, &mut gradient);
        assert!(after < loss, "{after} {loss}");
    }
}

#[test]
fn impossible_settings_are_refused() {
    for (config, why) in [
        (S3taConfig { view: [0, 160, 3], ..small() }, "rows of the view is 0"),
        (S3taConfig { view: [4096, 4096, 4], ..small() }, "numbers are possible"),
        (S3taConfig { actions: 0, ..small() }, "actions is 0"),
        (S3taConfig { units: 0, ..small() }, "units = 0"),
        (S3taConfig { keys: 7, ..small() }, "keys = 7; choose from 1 to 6"),
        (S3taConfig { keys: 3, attention: Source::KeyNorms, ..small() }, "choose a multiple"),
        (S3taConfig { convolutions: vec![], ..small() }, "number of convolutions"),
        (S3taConfig { convolutions: vec![convolution(4, 4, 0)], ..small() }, "stride"),
        (S3taConfig { channels: usize::MAX, ..small() }, "channels"),
        (S3taConfig { frequencies: 65, ..small() }, "frequencies"),
        (S3taConfig { reward_clip: f64::NAN, ..small() }, "reward_clip = NaN"),
        (S3taConfig { score_scale: 0.0, ..small() }, "score_scale = 0; choose"),
        (S3taConfig { pixel_scale: 0.0, ..small() }, "pixel_scale = 0; choose"),
        (S3taConfig { forget_bias: f32::INFINITY, ..small() }, "forget_bias"),
        (S3taConfig { query_hidden: vec![1; 65], ..small() }, "query_hidden names 65 layers"),
        (S3taConfig { answer_hidden: vec![0], ..small() }, "answer_hidden"),
        (S3taConfig { answer_hidden: vec![9000; 2], ..small() }, "lower channels, units or answer_hidden"),
    ] {
        let said = config.check().expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
    }
    let agent = S3taAgent::new(small()).expect("good");
    let bytes = vec![0; 10 * 13 * 3];
    let turned = PixelShape { height: 10, width: 13, ..SHAPE };
    let turned = Observation::Image(Pixels::new(turned, &bytes).expect("a picture"));
    let said = agent.act(turned, &mut agent.memory(), &mut ActContext::default()).expect_err("other sides");
    assert!(said.to_string().contains("13 x 10 pixels with 3 numbers each"), "{said}");
    let wrong = LastStep { action: Some(Action::Discrete(3)), reward: 0.0 };
    let said = student(&small()).encode(wrong, see(&picture(0)), &mut vec![]).expect_err("no choice");
    assert!(said.to_string().contains("one of 3 choices is due"), "{said}");
}
