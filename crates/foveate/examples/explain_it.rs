//! Tests whether the champion acts on what it attends to: repeats its decisions with the attended patches
//! covered.
//!
//! Run: `cargo run --release -p foveate --example explain_it`
//! Time: 10 s on two cores; writes the folder `report`, open `report/index.html`
//! Output:
//! ```text
//! the car-racing champion acts on what it attends to: supported
//! 40 decisions in 5 episodes, mean score 88.0
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use foveate::jobs::Explain;
use foveate::run::explain::Covers;
use foveate::run::workers::Stop;
use foveate::{Error, Player, WorldSpec};

fn main() -> Result<(), Error> {
    let champion = Player::load(None, &WorldSpec::named("car-racing"))?;
    let small =
        Explain { episodes: 5, decisions: 8, untrained: 5, max_steps: Some(120), ..Explain::default() };
    let report = small.run(&champion, &Stop::default(), &mut |_| ())?;
    // Each part of the report has numbers of its own; of an agent that attends to sensors these would be `SensorEffects`.
    let verdict = report.get::<Covers>().map_or("not tested", |covers| &*covers.verdict);
    println!("the {} acts on what it attends to: {verdict}", report.head.weights);
    println!(
        "{} decisions in {} episodes, mean score {:.1}",
        report.head.decisions,
        report.head.steps.len(),
        report.head.mean_score
    );
    Ok(())
}
