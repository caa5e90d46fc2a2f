//! Writes pictures of the DeepMind Control suite beside those of software OpenGL, and how far they are apart.
//!
//! `FOVEATE_WORLDS_PYTHON=… cargo run --release --example compare -- FOLDER [MODE] [STATES]` writes one PNG per task and size: ours,
//! OpenGL's, and eight times the difference. MODE: `default`, `distracting`, or letters of what to leave out: `s` shadows,
//! `r` reflections, `a` anti-aliasing.

#![allow(clippy::print_stdout, reason = "what the example is for")]

#[path = "../tests/suite/oracle/mod.rs"]
mod oracle;

use std::fs::File;
use std::path::Path;

use foveate_render::{RenderSettings, Renderer};
use oracle::{Difference, Oracle, TASKS};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder for the pictures")?;
    let mode = arguments.next().unwrap_or_else(|| "default".into());
    let states: usize = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let Some(mut oracle) = Oracle::start(&mode, states, &TASKS, &["240x320", "100x100", "84x84"]) else {
        return Ok(());
    };
    let without = |letter| mode.len() < 4 && mode.contains(letter);
    for name in TASKS {
        let (sky, count) = oracle.task().ok_or("the script ended early")?;
        let mut differences = [Difference::default(); 3];
        let mut renderers = [(240, 320), (100, 100), (84, 84)].map(|(height, width)| {
            let settings = RenderSettings {
                antialias: !without('a'),
                shadows: !without('s'),
                reflections: !without('r'),
                ..RenderSettings::new(width, height)
            };
            Renderer::new(&settings).expect("a small picture")
        });
        for state in 0..count {
            let state_ = oracle.state(&sky);
            for ((picture, renderer), difference) in
                state_.pictures.iter().zip(&mut renderers).zip(&mut differences)
            {
                let mut rgb = vec![0; renderer.bytes()];
                renderer.draw(&state_.scene, &mut rgb)?;
                difference.add(&rgb, &picture.rgb);
                if state + 1 == count {
                    let path =
                        Path::new(&folder).join(format!("{}_{}.png", name.replace('/', "_"), picture.height));
                    write(&path, picture.width, picture.height, &rgb, &picture.rgb)?;
                }
            }
        }
        let columns = differences
            .map(|d| format!("{:.3} (worst {:.3}, far {:.2} %)", d.mean(), d.worst, 100.0 * d.far()));
        println!("{name:18} {}", columns.join("  "));
    }
    Ok(())
}

/// Ours, theirs and the difference, side by side.
fn write(
    path: &Path,
    width: usize,
    height: usize,
    ours: &[u8],
    theirs: &[u8],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut rgb = Vec::new();
    for y in 0..height {
        let row = y * width * 3..(y + 1) * width * 3;
        rgb.extend(&ours[row.clone()]);
        rgb.extend(&theirs[row.clone()]);
        rgb.extend(ours[row.clone()].iter().zip(&theirs[row]).map(|(a, b)| a.abs_diff(*b).saturating_mul(8)));
    }
    let mut encoder = png::Encoder::new(File::create(path)?, 3 * width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&rgb)?;
    Ok(())
}
