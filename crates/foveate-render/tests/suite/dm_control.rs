//! Pictures beside those of software OpenGL, on scenes of the DeepMind Control suite; and the sky's texture.
//!
//! Each test draws a few states of each task; `FOVEATE_RENDER_STATES=200 cargo test -p foveate-render` draws as many as that, in
//! some minutes.

use std::sync::Arc;

use crate::oracle::{Difference, Oracle, TASKS};
use foveate_render::{CubeMap, RenderSettings, Renderer, SkyGradient};

const SIZES: [(usize, usize); 3] = [(240, 320), (100, 100), (84, 84)];

#[test]
fn pictures_are_those_of_opengl() {
    check("default", 6, 0.5);
}

#[test]
fn pictures_with_distractions_are_those_of_opengl() {
    check("distracting", 2, 1.0);
}

#[test]
fn pictures_without_antialiasing_are_those_of_opengl() {
    check("a", 2, 0.5);
}

/// The mean absolute difference of each task and size is at most `limit` of 255.
#[track_caller]
fn check(mode: &str, states: usize, limit: f64) {
    let states =
        std::env::var("FOVEATE_RENDER_STATES").map_or(states, |n| n.parse().expect("a number of states"));
    let sizes = SIZES.map(|(height, width)| format!("{height}x{width}"));
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    let Some(mut oracle) = Oracle::start(mode, states, &TASKS, &sizes) else { return };
    let mut wrong = vec![];
    let mut table =
        format!("{mode}, {states} states, mean difference of 255 (worst picture; bytes more than 16 off)\n");
    for name in TASKS {
        let (sky, count) = oracle.task().expect("a task for each name");
        let mut renderers = SIZES.map(|(height, width)| {
            let settings = RenderSettings { antialias: mode != "a", ..RenderSettings::new(width, height) };
            Renderer::new(&settings).expect("a small picture")
        });
        let mut differences = [Difference::default(); SIZES.len()];
        for _ in 0..count {
            let state = oracle.state(&sky);
            for ((picture, renderer), difference) in
                state.pictures.iter().zip(&mut renderers).zip(&mut differences)
            {
                let mut rgb = vec![0; renderer.bytes()];
                renderer.draw(&state.scene, &mut rgb).expect("a scene of the suite");
                difference.add(&rgb, &picture.rgb);
            }
        }
        table.push_str(&format!("{name:18}"));
        for (difference, size) in differences.iter().zip(&sizes) {
            let (mean, worst, far) = (difference.mean(), difference.worst, 100.0 * difference.far());
            table.push_str(&format!("  {size} {mean:.3} ({worst:.3}; {far:.2} %)"));
            // A mean of nothing is NaN.
            if mean.is_nan() || mean > limit {
                wrong.push(format!("{name} at {size}: {mean:.3}"));
            }
        }
        table.push('\n');
    }
    eprint!("{table}");
    assert!(oracle.task().is_none(), "more tasks than names");
    assert!(wrong.is_empty(), "further than {limit} from OpenGL: {}", wrong.join(", "));
}

#[test]
fn the_sky_is_mujocos_to_the_bit() {
    let Some(mut oracle) = Oracle::start("default", 0, &TASKS[..1], &["8x8"]) else { return };
    let (theirs, _) = oracle.task().expect("one task");
    let ours = CubeMap::gradient(&SkyGradient::default()).expect("a small texture");
    assert!(Arc::new(ours) == theirs, "the textures differ");
}
