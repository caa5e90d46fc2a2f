//! Steps of MiniGrid's worlds per second of CPU time, with their observation, on recorded actions.
//!
//! `cargo run --release -p foveate-envs --example minigrid -- FOLDER [--json]`
//!
//! FOLDER holds `WORLD.txt` as `bench/reference/mini_grid.py` writes them, which measures the package on the same episodes.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::hint::black_box;
use std::path::Path;

use foveate_core::{Action, Env, EnvError, Observation};
use foveate_envs::minigrid::DESCRIPTORS;
use foveate_envs::registry::EnvRequest;
use rustix::time::{ClockId, clock_gettime};

/// CPU time to spend on each world, in nanoseconds.
const SPEND: u64 = 500_000_000;

/// A recorded episode.
struct Drive {
    seed: u64,
    actions: Vec<usize>,
}

/// Returns, and what was shown.
#[derive(Default)]
struct Found {
    returns: Vec<f64>,
    /// The sum over all bytes of all observations, each times its place and that of its step.
    shown: Vec<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: minigrid FOLDER [--json]")?;
    let json = std::env::args().any(|arg| arg == "--json");
    let mut cells = vec![];
    for world in &DESCRIPTORS {
        let path = Path::new(&folder).join(format!("{}.txt", world.name));
        if !path.exists() {
            continue;
        }
        let drives = read(&path)?;
        let steps: usize = drives.iter().map(|drive| drive.actions.len()).sum();
        let mut env = world.build(&EnvRequest { id: world.name.into(), ..EnvRequest::default() })?;
        let Found { returns, shown } = show(&mut *env, &drives)?;
        let cpu_s = fastest(&mut *env, &drives)?;
        if json {
            cells.push(format!(
                "\"{}\":{{\"steps\":{steps},\"cpu_s\":{cpu_s},\"returns\":{returns:?},\"shown\":{shown:?}}}",
                world.name
            ));
        } else {
            let speed = steps as f64 / cpu_s;
            println!(
                "{:20} {:7.2} million steps per CPU second, {:.1} ns a step",
                world.name,
                speed / 1e6,
                1e9 / speed
            );
        }
    }
    if json {
        println!("{{{}}}", cells.join(","));
    }
    Ok(())
}

/// The codes that the world shows.
fn codes(env: &dyn Env) -> &[u8] {
    match env.observation() {
        Observation::Grid(grid) => grid.codes(),
        _ => &[],
    }
}

/// Plays all episodes for their results.
fn show(env: &mut dyn Env, drives: &[Drive]) -> Result<Found, EnvError> {
    let mut found = Found::default();
    for drive in drives {
        env.reset(Some(drive.seed));
        let (mut total, mut shown) = (0.0, 0);
        for (t, &action) in (1..).zip(&drive.actions) {
            total += env.step(Action::Discrete(action))?.reward;
            shown += t * (1..).zip(codes(env)).map(|(place, &code)| place * u64::from(code)).sum::<u64>();
        }
        found.returns.push(total);
        found.shown.push(shown);
    }
    Ok(found)
}

/// CPU seconds of the steps of all episodes, without the resets, in the fastest pass: what is left when others on the
/// machine do not disturb.
fn fastest(env: &mut dyn Env, drives: &[Drive]) -> Result<f64, EnvError> {
    let (start, mut best) = (cpu_ns(), u64::MAX);
    while best == u64::MAX || cpu_ns() - start < SPEND {
        let mut spent = 0;
        for drive in drives {
            env.reset(Some(drive.seed));
            let start = cpu_ns();
            let mut total = 0.0;
            for &action in &drive.actions {
                total += env.step(Action::Discrete(action))?.reward;
                black_box(codes(env));
            }
            spent += cpu_ns() - start;
            black_box(total);
        }
        best = best.min(spent);
    }
    Ok(best as f64 / 1e9)
}

/// Reads recorded episodes, one a line: the seed, then the actions.
fn read(path: &Path) -> Result<Vec<Drive>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let drives = text.lines().map(|line| {
        let (seed, actions) = line.split_once(' ').ok_or("a line has a seed and actions")?;
        let actions = actions.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Drive { seed: seed.parse()?, actions })
    });
    drives.collect()
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
