//! How positions of selected patches move with a quantity, drawn as arrows.

use foveate_core::ImageBuf;

use super::WHOLE;
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS};

/// A quantity, and how the positions move with it.
pub struct PositionsPanel<'a> {
    /// Its name.
    pub name: &'a str,
    /// What to say of it, below its name.
    pub remark: String,
    /// Of each patch, by rank: mean position, and how far it moves to the right and down with one deviation more, in pixels.
    pub moves: &'a [[f64; 4]],
}

/// Panels in a row.
const COLUMNS: usize = 3;

/// Least side of the part of the picture that is shown, as a share of its width.
const LEAST: f64 = 0.16;

/// The part of the picture that holds all arrows: left, top and side in pixels.
fn window(panels: &[PositionsPanel<'_>], under: &ImageBuf) -> [usize; 3] {
    let (width, height) = (under.width() as f64, under.height() as f64);
    let ends = panels.iter().flat_map(|panel| panel.moves).flat_map(|&[x, y, right, down]| {
        [-1.0, 1.0]
            .map(|share| [(x + share * right).clamp(0.0, width), (y + share * down).clamp(0.0, height)])
    });
    let [mut low, mut high] = [[width, height], [0.0; 2]];
    for end in ends {
        for axis in 0..2 {
            low[axis] = low[axis].min(end[axis]);
            high[axis] = high[axis].max(end[axis]);
        }
    }
    let most = width.min(height);
    let side = (1.4 * (high[0] - low[0]).max(high[1] - low[1])).clamp(LEAST * width, most).min(most).round();
    let from = |axis: usize, length: f64| {
        (f64::midpoint(low[axis], high[axis]) - side / 2.0).clamp(0.0, length - side).floor() as usize
    };
    [from(0, width), from(1, height), side as usize]
}

/// Arrows over the mean picture, from one standard deviation less than the mean of the quantity to one more.
pub fn positions(panels: &[PositionsPanel<'_>], under: &ImageBuf, caption: String) -> Figure {
    let gap = 14.0;
    let side = (WHOLE - gap * (COLUMNS as f64 - 1.0)) / COLUMNS as f64;
    let row = side + 52.0;
    let rows = panels.len().div_ceil(COLUMNS);
    let mut sheet = Drawing::new(WHOLE, rows as f64 * row);
    let mut table = DataTable::new(&["quantity", "rank", "x", "y", "right", "down"]);
    let part = window(panels, under);
    let faded = faded(under, part);
    let [x0, y0, shown] = part.map(|pixels| pixels as f64);
    let scale = side / shown;
    for (i, panel) in panels.iter().enumerate() {
        let (left, top) = ((i % COLUMNS) as f64 * (side + gap), (i / COLUMNS) as f64 * row);
        sheet.text((left, top + 14.0), LETTERS, Anchor::Start, Ink::Text, panel.name);
        sheet.text((left, top + 30.0), 11.0, Anchor::Start, Ink::Muted, &*panel.remark);
        let top = top + 38.0;
        sheet.picture([left, top, side, side], faded.clone());
        for (rank, &[x, y, right, down]) in panel.moves.iter().enumerate() {
            table.row([panel.name.into(), (rank + 1).into(), x.into(), y.into(), right.into(), down.into()]);
            let at = |share: f64| {
                let inside = |v: f64, from: f64| ((v - from) * scale).clamp(0.0, side);
                (left + inside(x + share * right, x0), top + inside(y + share * down, y0))
            };
            arrow(&mut sheet, at(-1.0), at(1.0), Ink::line(rank));
            let (x, y) = at(-1.0);
            sheet.text((x - 4.0, y + 3.5), 10.0, Anchor::End, Ink::Muted, (rank + 1).to_string());
        }
    }
    let name = "positions";
    let title = "How the positions move with the world's state".into();
    Figure { name, title, caption, wide: true, drawing: sheet, table }
}

fn arrow(sheet: &mut Drawing, from: (f64, f64), to: (f64, f64), ink: Ink) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    if length < 2.0 {
        sheet.dot(from, 2.2, ink);
        return;
    }
    sheet.line(vec![from, to], ink, 2.0, 1.0);
    let (ux, uy) = (dx / length, dy / length);
    let head = 7.0_f64.min(length);
    let back = |side: f64| (to.0 - head * (ux + 0.5 * side * uy), to.1 - head * (uy - 0.5 * side * ux));
    sheet.line(vec![back(1.0), to, back(-1.0)], ink, 2.0, 1.0);
}

/// A part of the picture, in light grey, so that arrows show.
fn faded(under: &ImageBuf, [left, top, side]: [usize; 3]) -> ImageBuf {
    let mut faded = ImageBuf::black(side, side);
    let pixels = under.rgb().as_chunks::<3>().0;
    for (i, pixel) in faded.rgb_mut().as_chunks_mut::<3>().0.iter_mut().enumerate() {
        let from = pixels[(top + i / side) * under.width() + left + i % side];
        let grey = from.iter().map(|&c| u32::from(c)).sum::<u32>() / 3;
        *pixel = [(170 + grey / 3) as u8; 3];
    }
    faded
}
