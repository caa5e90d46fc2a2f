//! Steps of `CartPoleSwingUpHarder` per second of CPU time, on recorded actions.
//!
//! `cargo run --release -p foveate-envs --example cartpole -- FOLDER [--json]`
//!
//! FOLDER holds `actions_SEED.jsonl` as `bench/reference/cartpole.py` writes them, which measures Python on the same
//! episodes. Three ways are measured: `step` and `observation` of the world as an [`Env`], whole steps of
//! [`Episode`], the loop of everything that runs episodes, and [`CartPoleBatch`], one world for each episode, the longest
//! episodes first.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::path::Path;

use foveate_core::episode::{Episode, RecordedActor};
use foveate_core::{Action, Env, EvaluateError};
use foveate_envs::cartpole_swingup::{CartPoleBatch, CartPoleConfig, CartPoleSwingUp};
use rustix::time::{ClockId, clock_gettime};

/// CPU time to spend on each way, in nanoseconds.
const SPEND: u64 = 1_000_000_000;

/// A recorded episode.
struct Drive {
    seed: u64,
    /// `[steps][1]`
    actions: Vec<Vec<f64>>,
}

/// The result of an episode: its return, and the sum of the numbers that it showed last.
type Shown = (f64, f64);

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: cartpole FOLDER [--json]")?;
    let json = std::env::args().any(|arg| arg == "--json");
    let drives = read(Path::new(&folder))?;
    let steps: usize = drives.iter().map(|drive| drive.actions.len()).sum();
    let mut env: Box<dyn Env> = Box::new(CartPoleSwingUp::new(CartPoleConfig::default()));

    let (mut stepped, mut driven, mut together) = (vec![], vec![], vec![]);
    let step_s =
        fastest(&mut stepped, &mut || Ok(drives.iter().map(|drive| step(&mut *env, drive)).collect()))?;
    let episode_s =
        fastest(&mut driven, &mut || drives.iter().map(|drive| episode(&mut *env, drive)).collect())?;
    let mut batch = CartPoleBatch::new(CartPoleConfig::default(), drives.len());
    let batch_s = fastest(&mut together, &mut || Ok(step_batch(&mut batch, &drives)))?;
    if stepped != driven || stepped != together {
        return Err("the same actions gave other returns".into());
    }
    if json {
        let returns: Vec<f64> = stepped.iter().map(|shown| shown.0).collect();
        let seen: Vec<f64> = stepped.iter().map(|shown| shown.1).collect();
        println!(
            "{{\"steps\":{steps},\"step_cpu_s\":{step_s},\"episode_cpu_s\":{episode_s},\"batch_cpu_s\":{batch_s},\
             \"returns\":{returns:?},\"seen\":{seen:?}}}"
        );
    } else {
        for (name, cpu_s) in
            [("Env::step", step_s), ("Episode::step", episode_s), ("CartPoleBatch::step", batch_s)]
        {
            let speed = steps as f64 / cpu_s;
            println!(
                "{name:19} {:7.2} million steps per CPU second, {:.1} ns a step",
                speed / 1e6,
                1e9 / speed
            );
        }
    }
    Ok(())
}

/// Steps the world; returns the result and the CPU nanoseconds without those of the reset.
fn step(env: &mut dyn Env, drive: &Drive) -> (Shown, u64) {
    env.reset(Some(drive.seed));
    let (start, mut total, mut seen) = (cpu_ns(), 0.0, 0.0);
    for action in &drive.actions {
        let step = env.step(Action::Continuous(action)).expect("a finite action");
        total += step.reward;
        seen += env.observation().numbers().map_or(0.0, |numbers| numbers[0]);
    }
    let spent = cpu_ns() - start;
    std::hint::black_box(seen);
    ((total, last(env)), spent)
}

/// The same by the loop of all episodes.
fn episode(env: &mut dyn Env, drive: &Drive) -> Result<(Shown, u64), EvaluateError> {
    let mut actor = RecordedActor(&drive.actions);
    let mut episode = Episode::of_seed(drive.seed, actor.rules());
    episode.reset(env, &mut actor);
    let start = cpu_ns();
    let total = episode.finish::<EvaluateError>(env, &mut actor, &mut ())?.total;
    let spent = cpu_ns() - start;
    Ok(((total, last(env)), spent))
}

/// All episodes at once; the CPU nanoseconds, in the last place, are those of all steps together.
fn step_batch(batch: &mut CartPoleBatch, drives: &[Drive]) -> Vec<(Shown, u64)> {
    let mut order: Vec<usize> = (0..drives.len()).collect();
    order.sort_by_key(|&drive| std::cmp::Reverse(drives[drive].actions.len()));
    let longest = order.first().map_or(0, |&drive| drives[drive].actions.len());
    // `[steps, worlds]`; after the end of an episode, its world stays as it is.
    let action = |step: usize, drive: usize| drives[drive].actions.get(step).map_or(0.0, |action| action[0]);
    let actions: Vec<Vec<f64>> =
        (0..longest).map(|step| order.iter().map(|&drive| action(step, drive)).collect()).collect();
    for (world, &drive) in order.iter().enumerate() {
        batch.reset(world, Some(drives[drive].seed));
    }
    let mut totals = vec![0.0; drives.len()];
    let (start, mut seen) = (cpu_ns(), 0.0);
    for (step, actions) in actions.iter().enumerate() {
        let steps = batch.step(actions).expect("finite actions");
        let runs = order.iter().take_while(|&&drive| drives[drive].actions.len() > step).count();
        for (total, step) in totals[..runs].iter_mut().zip(steps) {
            *total += step.reward;
        }
        seen += batch.observations()[0];
    }
    let spent = cpu_ns() - start;
    std::hint::black_box(seen);
    let mut shown = vec![((0.0, 0.0), 0); drives.len()];
    for ((&drive, &total), seen) in order.iter().zip(&totals).zip(batch.observations().chunks_exact(5)) {
        shown[drive].0 = (total, seen.iter().fold(0.0, |sum, &x| sum + f64::from(x)));
    }
    if let Some(last) = shown.last_mut() {
        last.1 = spent;
    }
    shown
}

/// The sum of the numbers that the world shows.
fn last(env: &dyn Env) -> f64 {
    env.observation().numbers().unwrap_or_default().iter().fold(0.0, |sum, &x| sum + f64::from(x))
}

/// CPU seconds of the fastest pass: what is left when others on the machine do not disturb.
fn fastest(
    shown: &mut Vec<Shown>,
    pass: &mut dyn FnMut() -> Result<Vec<(Shown, u64)>, EvaluateError>,
) -> Result<f64, EvaluateError> {
    let (start, mut best) = (cpu_ns(), u64::MAX);
    while best == u64::MAX || cpu_ns() - start < SPEND {
        let found = pass()?;
        best = best.min(found.iter().map(|(_, spent)| spent).sum());
        *shown = found.into_iter().map(|(shown, _)| shown).collect();
    }
    Ok(best as f64 / 1e9)
}

/// Reads the recorded episodes, in the order of their seeds.
fn read(folder: &Path) -> Result<Vec<Drive>, Box<dyn Error>> {
    let mut drives = vec![];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let seed = name.strip_prefix("actions_").and_then(|rest| rest.strip_suffix(".jsonl"));
        let Some(seed) = seed else { continue };
        let actions = std::fs::read_to_string(&path)?
            .lines()
            .map(|line| Ok(vec![line.trim_matches(['[', ']']).parse()?]))
            .collect::<Result<_, std::num::ParseFloatError>>()?;
        drives.push(Drive { seed: seed.parse()?, actions });
    }
    drives.sort_by_key(|drive| drive.seed);
    Ok(drives)
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
