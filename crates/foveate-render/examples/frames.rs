//! The CPU time of pictures of the DeepMind Control suite, beside that of software OpenGL in the same run, and how far they are
//! apart.
//!
//! `FOVEATE_WORLDS_PYTHON=… cargo run --release --example frames -- [STATES] [LEVEL] [WITHOUT]` prints one JSON object with a list
//! `pictures`: task, size, milliseconds of CPU per picture with (`ms`) and without (`plain_ms`) anti-aliasing, those of `dm_control`
//! with `MUJOCO_GL=egl` and one thread (`opengl_ms`), and the mean difference of 255 (`error`). LEVEL: `portable`, `avx2`, `avx512`
//! or `neon`. WITHOUT: letters of what our pictures leave out: `s` shadows, `r` reflections.

#![allow(clippy::print_stdout, reason = "what the example is for")]

#[path = "../tests/suite/oracle/mod.rs"]
mod oracle;

use foveate_kernels::Level;
use foveate_render::{RenderSettings, Renderer, Scene};
use oracle::{Difference, Oracle, TASKS};
use rustix::time::{ClockId, clock_gettime};

/// Times that all scenes are drawn; the fastest counts.
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let states: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let level = match arguments.next() {
        Some(name) => Level::named(&name).ok_or("this processor has no such instruction set")?,
        None => Level::named("avx2").unwrap_or_else(Level::best), // as `Renderer::new`
    };
    let without = arguments.next().unwrap_or_default();
    let sizes = ["240x320", "100x100", "84x84"];
    let mut rows = vec![];
    let Some(mut oracle) = Oracle::start("timed", states, &TASKS, &sizes) else {
        return Err("there is no software OpenGL to compare with".into());
    };
    for name in TASKS {
        let (sky, count) = oracle.task().ok_or("the script ended early")?;
        let states: Vec<_> = (0..count).map(|_| oracle.state(&sky)).collect();
        let scenes: Vec<&Scene> = states.iter().map(|state| &state.scene).collect();
        for (i, size) in sizes.iter().enumerate() {
            let picture = &states[0].pictures[i];
            let settings = RenderSettings {
                shadows: !without.contains('s'),
                reflections: !without.contains('r'),
                ..RenderSettings::new(picture.width, picture.height)
            };
            let mut renderer = Renderer::with_level(&settings, level)?;
            let mut difference = Difference::default();
            for state in &states {
                let mut rgb = vec![0; renderer.bytes()];
                renderer.draw(&state.scene, &mut rgb)?;
                difference.add(&rgb, &state.pictures[i].rgb);
            }
            let smooth = time(&settings, level, &scenes)?;
            let plain = time(&RenderSettings { antialias: false, ..settings }, level, &scenes)?;
            let mut theirs: Vec<f64> = states.iter().map(|state| state.pictures[i].seconds * 1e3).collect();
            theirs.sort_by(f64::total_cmp);
            let (theirs, error) = (theirs[theirs.len() / 2], difference.mean());
            rows.push(format!(
                "{{\"task\": \"{name}\", \"size\": \"{size}\", \"ms\": {smooth:.4}, \"plain_ms\": {plain:.4}, \"opengl_ms\": \
                 {theirs:.3}, \"error\": {error:.4}}}"
            ));
        }
    }
    println!("{{\"level\": \"{level}\", \"pictures\": [\n{}\n]}}", rows.join(",\n"));
    Ok(())
}

/// Milliseconds of this thread per picture.
fn time(
    settings: &RenderSettings,
    level: Level,
    scenes: &[&Scene],
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut renderer = Renderer::with_level(settings, level)?;
    let mut rgb = vec![0; renderer.bytes()];
    let mut best = f64::INFINITY;
    let mut sum = 0_u64;
    for _ in 0..ROUNDS {
        let start = cpu_seconds();
        for scene in scenes {
            renderer.draw(scene, &mut rgb)?;
            sum += u64::from(rgb[rgb.len() / 2]);
        }
        best = best.min((cpu_seconds() - start) / scenes.len() as f64);
    }
    assert!(sum > 0, "black pictures");
    Ok(best * 1e3)
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
