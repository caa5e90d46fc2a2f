//! Measures the CPU time of the exact picture on recorded scenes.
//!
//! Usage: `cargo run --release -p foveate-envs --example exact_bench -- RECORDING`, where RECORDING is the
//! output of `python oracle/frames.py bench`. Prints microseconds per frame for our picture and for
//! Gymnasium's whole step.

#![allow(clippy::print_stdout)] // prints its result for people

use std::fs::File;
use std::io::BufReader;

use foveate_envs::car_racing::picture::FRAME_BYTES;
use foveate_envs::car_racing::picture::exact::ExactPicture;

#[allow(dead_code)] // other programs use the other records
#[path = "../oracle/frames.rs"]
mod frames;

use frames::{Frames, Record};

/// CPU time of this thread in seconds, from the scheduler's statistics.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux keeps scheduler statistics");
    let nanoseconds: f64 =
        stat.split(' ').next().and_then(|n| n.parse().ok()).expect("the first is a number");
    nanoseconds * 1e-9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: exact_bench RECORDING")?;
    let mut stream = Frames::new(BufReader::new(File::open(path)?));
    let mut picture = ExactPicture::new();
    let mut frame = vec![0; FRAME_BYTES];
    let (mut n, mut seconds, mut differing) = (0u32, 0.0, 0usize);
    while let Some(record) = stream.next()? {
        match record {
            Record::Frame(theirs) => {
                let scene = stream.scene();
                picture.draw(&scene, &mut frame);
                differing += usize::from(frame != theirs);
                let start = cpu_seconds();
                for _ in 0..10 {
                    picture.draw(std::hint::black_box(&scene), &mut frame);
                }
                seconds += cpu_seconds() - start;
                n += 10;
            }
            Record::Cpu(steps, theirs) => {
                let (ours, theirs) = (seconds / f64::from(n) * 1e6, theirs / f64::from(steps) * 1e6);
                println!(
                    "exact picture {ours:.1} us, Gymnasium's step {theirs:.0} us, ratio {:.1}",
                    theirs / ours
                );
            }
            Record::Text(..) => {}
        }
    }
    println!("{n} frames drawn, {differing} of the recorded ones differ");
    Ok(())
}
