//! Trains a network of your own to swing up a pole, from an expert (DAgger: Ross, Gordon and Bagnell 2011).
//!
//! Run: `cargo run --release -p foveate --example your_network`
//! Time: about 5 seconds
//! Output:
//! ```text
//! after 0 rounds: return 57.5, mean of 20 new starts
//! after 10 rounds: return 554.8, mean of 20 new starts
//! after 20 rounds: return 564.7, mean of 20 new starts
//! after 30 rounds: return 556.2, mean of 20 new starts
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::error::Error;

use foveate::learn::{Builder, Function, Level, Linear, Optimizer, OptimizerConfig, loss};
use foveate::{Action, Seed, World};

fn main() -> Result<(), Box<dyn Error>> {
    let world = World::named("cartpole-swingup-harder");
    let mut env = world.make(&world.own())?;

    // The network: layers in the order in which they compute, with gradients.
    let mut builder = Builder::default();
    let numbers = builder.state("numbers", [5]);
    let mut x = numbers;
    for name in ["first", "second"] {
        x = builder.layer(name, Linear::new(32), [x]);
        x = builder.map(Function::Tanh, x);
    }
    let action = builder.layer("action", Linear::new(1), [x]);
    let network = builder.build(&[action])?;
    let (level, mut acts, mut params) =
        (Level::best(), network.activations(256), network.initial(Seed::root(1)));
    let (mut optimizer, mut rng) =
        (Optimizer::new(OptimizerConfig::default(), params.len()), Seed::root(2).rng());

    let (mut seen, mut wanted) = (vec![], vec![]);
    for round in 0..=30 {
        // The network drives; in training, the expert says what it would do.
        let mut returns = 0.0;
        for episode in 0..20 {
            env.reset(Some(20 * round + episode));
            loop {
                let numbers = env.observation().numbers().expect("five of them").to_vec();
                network.forward(level, &params, &[&numbers], 1, &mut acts);
                let own = f64::from(acts.get(action)[0]);
                let mut expert = [0.0];
                env.expert(&mut expert)?;
                seen.extend(numbers);
                wanted.push(expert[0].clamp(-1.0, 1.0) as f32);
                let step = env.step(Action::Continuous(&[own]))?;
                returns += step.reward;
                if step.is_over() {
                    break;
                }
            }
        }
        if round % 10 == 0 {
            println!("after {round} rounds: return {:.1}, mean of 20 new starts", returns / 20.0);
        }
        // Steps of Adam on random moments of all episodes so far.
        for _ in 0..200 {
            let drawn: Vec<usize> = (0..256).map(|_| rng.below(wanted.len() as u64) as usize).collect();
            let inputs: Vec<f32> = drawn.iter().flat_map(|&t| seen[5 * t..][..5].to_vec()).collect();
            let targets: Vec<f32> = drawn.iter().map(|&t| wanted[t]).collect();
            network.forward(level, &params, &[&inputs], 256, &mut acts);
            acts.clear_gradients();
            let (given, slopes) = acts.output_and_gradient(action);
            loss::squared_error(given, &targets, 1.0 / 256.0, slopes);
            let mut gradient = vec![0.0; params.len()];
            network.backward(level, &params, &mut acts, &mut gradient);
            optimizer.step(0.002, &gradient, &mut params);
        }
    }
    Ok(())
}
