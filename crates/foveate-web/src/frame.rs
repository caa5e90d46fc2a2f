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
//! | u8, f32 × n | what it would be without interventions, by the agent that saw the world unchanged since they began; n = 0 while there are none |
//! | u16, u16, u8 × 3·w·h | what the agent sees, in grid worlds where cells attend to: width, height, RGB |
//! | u16 × 7 | the grid: columns, rows, patch, stride, patches told to the controller, width and height of the picture that it was laid over; zeros without attention to places |
//! | u16 × k | these patches, most important first; none of soft attention |
//! | f32 × columns·rows | importance of every patch |
//! | u16, (u16, f32) × n | effects, of attention to places: how many, and for each the patch, the most important first, and how far the action changes without it, as a part of the strongest effect; 0 where they are not measured |
//! | u16, u16, u32 × n | patches of the picture, or numbers, that are not in the world's own order: side of a patch in pixels (0: numbers), their number n, and which sensor of the unchanged world each is, `u32::MAX` for none; n = 0 for the world's own order |
//! | u16, u16, u16 | numbers, when there is no picture: how many follow, how many there are, and r, rows of weights for them |
//! | f32 × n, f32 × r·n | the numbers, and for each of r queries the weight of every number |
//! | u32, bytes | the view for people, [run-length encoded](super::run_length); 0 without |
//!
//! A film is one byte 2, then the MP4 file.

use foveate_core::Image;
use foveate_explain::attended_picture;

use crate::runner::{KeptDecision, Present, Runner};

/// First byte of a frame.
const FRAME: u8 = 1;
/// First byte of a film.
pub const FILM: u8 = 2;

/// Most numbers in a frame.
const MOST_NUMBERS: usize = 512;
/// Most weights of them; when there are more, their sizes are summed over all queries.
const MOST_WEIGHTS: usize = 4096;

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
    let now = runner.present();
    let nothing = KeptDecision::default();
    let decided = now.decided.unwrap_or(&nothing);
    let action = now.manual.unwrap_or(&decided.action);
    for numbers in [action, &decided.undisturbed] {
        out.push(numbers.len().min(255) as u8);
        for &x in numbers.iter().take(255) {
            out.extend((x as f32).to_le_bytes());
        }
    }
    let patch = seen(out, &now, decided);
    attention(out, decided);
    order(out, &now, patch);
    numbers(out, &now, decided);
    out.extend((view.len() as u32).to_le_bytes());
    out.extend(view);
}

/// Adds the picture; returns the side of its patches if they are shuffled.
fn seen(out: &mut Vec<u8>, now: &Present<'_>, decided: &KeptDecision) -> usize {
    let mut add = |image: Image<'_>| {
        out.extend((image.width() as u16).to_le_bytes());
        out.extend((image.height() as u16).to_le_bytes());
        out.extend(image.rgb());
    };
    if let Some((maps, _)) = now.cells() {
        add(maps.as_image());
        return 0;
    }
    let Some(pixels) = now.observation.image() else {
        out.extend([0; 4]);
        return 0;
    };
    let mut scratch = vec![];
    let image = attended_picture(pixels, decided.grid, &mut scratch);
    add(image);
    now.original_order(image).map_or(0, |order| order.patch())
}

/// Adds the order of the sensors, if it is not the world's own.
fn order(out: &mut Vec<u8>, now: &Present<'_>, patch: usize) {
    let most = if patch > 0 { usize::from(u16::MAX) } else { MOST_NUMBERS };
    let order = now.order.filter(|_| patch > 0 || now.observation.image().is_none()).unwrap_or_default();
    let order = if order.len() > most && patch > 0 { &[] } else { &order[..order.len().min(most)] };
    out.extend((patch as u16).to_le_bytes());
    out.extend((order.len() as u16).to_le_bytes());
    for sensor in order {
        out.extend(sensor.to_le_bytes());
    }
}

/// Adds the numbers of a world without a picture, and the weights that attention gives them.
fn numbers(out: &mut Vec<u8>, now: &Present<'_>, decided: &KeptDecision) {
    let all = now.observation.numbers().filter(|_| now.observation.image().is_none()).unwrap_or_default();
    let sent = &all[..all.len().min(MOST_NUMBERS)];
    let attended = !all.is_empty() && decided.named.len() == all.len();
    let rows = if attended { decided.weights.len() / all.len() } else { 0 };
    let each = rows * sent.len() <= MOST_WEIGHTS;
    let rows = if each { rows } else { 1 };
    for n in [sent.len(), all.len(), rows] {
        out.extend((n.min(usize::from(u16::MAX)) as u16).to_le_bytes());
    }
    for x in sent {
        out.extend(x.to_le_bytes());
    }
    if rows == 0 {
        return;
    }
    let weights = if each { &decided.weights } else { &decided.importance };
    for weight in weights.chunks_exact(all.len()).take(rows).flat_map(|row| &row[..sent.len()]) {
        out.extend(weight.to_le_bytes());
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
        None => [0; 7],
    };
    for n in numbers {
        out.extend((n as u16).to_le_bytes());
    }
    if decided.grid.is_none() {
        out.extend([0; 2]);
        return;
    }
    for &patch in selected {
        out.extend((patch as u16).to_le_bytes());
    }
    for x in &decided.importance {
        out.extend(x.to_le_bytes());
    }
    out.extend((decided.effects.len() as u16).to_le_bytes());
    for &(patch, effect) in &decided.effects {
        out.extend((patch as u16).to_le_bytes());
        out.extend((effect as f32).to_le_bytes());
    }
}
