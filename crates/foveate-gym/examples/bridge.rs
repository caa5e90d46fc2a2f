//! Measures the cost of a step through the bridge: CPU microseconds of both sides, with one or several
//! workers.
//!
//! `bridge ID STEPS WORKERS [OPTION=VALUE …]` prints one JSON object. Every worker has a thread. Each step
//! copies its observation once; the bytes are summed at the end, so that no work is optimised away.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foveate_core::Env;
use foveate_gym::{Gym, GymWorld, Settings, worker_cpu};
use rustix::time::{ClockId, clock_gettime};

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[expect(clippy::disallowed_methods, reason = "a measurement of its own, outside the product")]
fn now() -> Instant {
    Instant::now()
}

fn drive(env: &mut dyn Env, steps: usize) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let action = env.spec().action.zero();
    let mut sum = 0;
    for _ in 0..steps {
        if env.step(action.as_action())?.is_over() {
            env.reset(None);
        }
        sum += env.observation().image().map_or(0, |image| u64::from(image.bytes()[0]));
    }
    Ok(sum)
}

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [id, steps, workers, options @ ..] = &args[..] else {
        return Err("write ID STEPS WORKERS [OPTION=VALUE …]".into());
    };
    let (steps, workers): (usize, usize) = (steps.parse()?, workers.parse()?);
    let settings = Settings::parse(id, options.iter().filter_map(|option| option.split_once('=')))?;
    let gym = Gym::new(settings, Arc::new(|text: &str| eprintln!("{text}")))?;
    let mut worlds: Vec<GymWorld> = (0..workers).map(|_| GymWorld::new(Arc::clone(&gym))).collect();
    for world in &mut worlds {
        world.reset(Some(0));
        drive(world, steps.min(1000))?;
        // Makes the worker report its CPU time.
        world.reset(Some(0));
    }
    let (own, theirs, wall) = (own_cpu(), worker_cpu(), now());
    let sum: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> =
            worlds.iter_mut().map(|world| scope.spawn(move || drive(world, steps))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<Result<u64, _>>()
    })?;
    let wall = wall.elapsed();
    drop(worlds);
    let own = own_cpu().saturating_sub(own).as_secs_f64();
    let theirs = worker_cpu().saturating_sub(theirs).as_secs_f64();
    let all = (steps * workers) as f64;
    println!(
        "{}",
        serde_json::json!({
            "steps": steps * workers, "workers": workers, "cpu_s": own + theirs, "own_us": own / all * 1e6,
            "worker_us": theirs / all * 1e6, "us": (own + theirs) / all * 1e6,
            "wall_steps_per_s": all / wall.as_secs_f64(), "sum": sum,
        })
    );
    Ok(())
}
