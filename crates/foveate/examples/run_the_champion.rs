//! Evaluates the champion (the trained agent included in Foveate) and an untrained agent on the same tracks.
//!
//! Run: `cargo run --release -p foveate --example run_the_champion`
//! Time: 2 s
//! Output:
//! ```text
//! car-racing champion: mean 886.8 of [915.8, 837.9, 906.6]
//! random weights of seed 7: mean -31.9 of [-23.6, -40.7, -31.4]
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use foveate::run::evaluate::Seeds;
use foveate::{Error, Evaluation, LoadedAgent, World};

fn main() -> Result<(), Error> {
    let world = World::named("car-racing");
    // Seed 1 starts a stream of tracks; results do not depend on the number of threads.
    let how = Evaluation { seeds: Seeds::Stream { seed: 1, episodes: 3 }, ..Evaluation::default() };
    // A name is a weight file, a run folder or `random:SEED`; `None` selects the champion.
    for name in [None, Some("random:7".as_ref())] {
        let agent = LoadedAgent::load(name, &world)?;
        let report = agent.evaluate(&world, &how)?;
        println!("{}: mean {:.1} of {:.1?}", report.weights, report.summary.mean, report.returns);
    }
    Ok(())
}
