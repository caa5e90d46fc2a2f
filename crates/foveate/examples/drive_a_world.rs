//! Runs one CarRacing episode with the scripted expert.
//!
//! Run: `cargo run --release -p foveate --example drive_a_world`
//! Time: less than a second
//! Output:
//! ```text
//! a picture of 96x96, 3 numbers per action
//! 903 steps, return 909.70
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use foveate::{Action, Error, World};

fn main() -> Result<(), Error> {
    let world = World::named("car-racing");
    let mut env = world.make(&world.own())?;
    let spec = env.spec();
    println!("{}, {} numbers per action", spec.observation.describe(), spec.action.len());

    // The seed determines the track; the same seed and actions give the same episode, bit for bit.
    env.reset(Some(7));
    let mut action = [0.0; 3]; // steering, gas, brake
    let (mut steps, mut total) = (0, 0.0);
    loop {
        env.expert(&mut action)?;
        let step = env.step(Action::Continuous(&action))?;
        (steps, total) = (steps + 1, total + step.reward);
        if step.is_over() {
            println!("{steps} steps, return {total:.2}");
            return Ok(());
        }
    }
}
