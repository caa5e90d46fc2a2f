//! Frames for the page: numbers in little endian, one after the other, without gaps.
//!
//! | bytes | what |
//! |---|---|
//! | u8 | 1: a frame |
//! | u8 | runners |
//! | u32 | number of the frame |
//!
//! and for each runner
//!
//! | bytes | what |
//! |---|---|
//! | u8 | flags: 1 over, 2 terminated, 4 truncated, 8 a person drives, 16 broken |
//! | u32, f64 | steps, score |
//! | u8, f32 × n | the action |
//! | u16, u16, u8 × 3·w·h | what the agent sees: width, height, RGB |
//! | u16 × 7 | the grid: columns, rows, patch, stride, patches told to the controller, width and height of the picture that it was laid over; zeros without attention; of things with names their number as rows, the rest zeros |
//! | u16 × k | these patches, most important first; none of soft attention |
//! | f32 × columns·rows | importance of every patch |
//! | u32, bytes | the view for people, [run-length encoded](super::run_length); 0 without |
//!
//! A film is one byte 2, then the MP4 file.

use foveate_core::{Observation, PatchGrid};
use foveate_explain::attended_picture;

use crate::runner::{KeptDecision, Runner};

/// First byte of a frame.
const FRAME: u8 = 1;
/// First byte of a film.
pub(super) const FILM: u8 = 2;

/// Begins a frame.
pub(super) fn begin(out: &mut Vec<u8>, runners: usize, number: u32) {
    out.extend([FRAME, runners as u8]);
    out.extend(number.to_le_bytes());
}

/// Adds a runner, with its view for people.
pub(super) fn runner(out: &mut Vec<u8>, runner: &mut Runner, view: &[u8]) {
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let (terminated, truncated) = runner.end.map_or((false, false), |end| (end.terminated, end.truncated));
    out.push(
        flag(runner.is_over(), 1)
            | flag(terminated, 2)
            | flag(truncated, 4)
            | flag(runner.is_manual(), 8)
            | flag(runner.broken.is_some(), 16),
    );
    out.extend(runner.steps().to_le_bytes());
    out.extend(runner.score().to_le_bytes());
    let (observation, decided, manual) = runner.present();
    let nothing = KeptDecision::default();
    let decided = decided.unwrap_or(&nothing);
    let action = manual.unwrap_or(&decided.action);
    out.push(action.len().min(255) as u8);
    for &x in action.iter().take(255) {
        out.extend((x as f32).to_le_bytes());
    }
    seen(out, observation, decided.grid);
    attention(out, decided);
    out.extend((view.len() as u32).to_le_bytes());
    out.extend(view);
}

fn seen(out: &mut Vec<u8>, observation: Observation<'_>, grid: Option<PatchGrid>) {
    match observation.image() {
        Some(pixels) => {
            let mut scratch = vec![];
            let image = attended_picture(pixels, grid, &mut scratch);
            out.extend((image.width() as u16).to_le_bytes());
            out.extend((image.height() as u16).to_le_bytes());
            out.extend(image.rgb());
        }
        None => out.extend([0; 4]),
    }
}

fn attention(out: &mut Vec<u8>, decided: &KeptDecision) {
    let selected = decided.selected.as_deref().unwrap_or_default();
    let numbers = match decided.grid {
        Some(grid) => [
            grid.columns(),
            grid.rows(),
            grid.patch(),
            grid.stride(),
            selected.len(),
            grid.width(),
            grid.height(),
        ],
        None => [0, decided.named, 0, 0, 0, 0, 0],
    };
    for n in numbers {
        out.extend((n as u16).to_le_bytes());
    }
    if decided.grid.is_none() {
        return;
    }
    for &patch in selected {
        out.extend((patch as u16).to_le_bytes());
    }
    for x in &decided.importance {
        out.extend(x.to_le_bytes());
    }
}
