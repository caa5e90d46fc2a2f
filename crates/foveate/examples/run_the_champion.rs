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

use foveate::jobs::Evaluate;
use foveate::run::workers::Stop;
use foveate::{Error, Player, WorldSpec};

fn main() -> Result<(), Error> {
    let world = WorldSpec::named("car-racing");
    // Seed 1 starts a stream of tracks; results do not depend on the number of threads.
    let short = Evaluate { seed: 1, episodes: 3, ..Evaluate::default() };
    // A name is a weight file, a run folder or `random:SEED`; `None` selects the champion.
    for name in [None, Some("random:7".as_ref())] {
        let report = short.run(&Player::load(name, &world)?, &Stop::default())?;
        println!("{}: mean {:.1} of {:.1?}", report.weights, report.summary.mean, report.returns);
    }
    Ok(())
}
