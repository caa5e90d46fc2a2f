//! Figures made of pictures.

use foveate_core::{Image, ImageBuf, PatchGrid};

use super::looks::glow;
use super::{WHOLE, percent};
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, short};
use crate::interest::{Range, Samples};

/// Samples of patches by how important they were.
pub fn patch_samples(samples: &[(Range, Samples)], caption: String) -> Figure {
    let (left, side, gap) = (118.0, 42.0, 6.0);
    // Of few pictures, none may lie in a range.
    let samples: Vec<_> = samples.iter().filter(|(_, samples)| !samples.kept().is_empty()).collect();
    let mut sheet = Drawing::new(WHOLE, samples.len() as f64 * (side + gap + 18.0) + 6.0);
    let mut table = DataTable::new(&["range", "number", "importance"]);
    for (i, (range, samples)) in samples.iter().enumerate() {
        let top = 6.0 + i as f64 * (side + gap + 18.0);
        sheet.text((left - 14.0, top + side / 2.0 + 4.0), LETTERS, Anchor::End, Ink::Text, range.name());
        let mut kept: Vec<_> = samples.kept().iter().collect();
        kept.sort_by(|a, b| b.importance.total_cmp(&a.importance));
        for (k, sample) in kept.iter().enumerate() {
            let x = left + k as f64 * (side + gap);
            sheet.picture([x, top, side, side], sample.pixels.clone());
            sheet.text(
                (x + side / 2.0, top + side + 13.0),
                10.0,
                Anchor::Middle,
                Ink::Muted,
                short(sample.importance),
            );
            table.row([range.name().into(), k.into(), sample.importance.into()]);
        }
    }
    let title = "Patches by importance".into();
    Figure { name: "patches", title, caption, wide: true, drawing: sheet, table }
}

/// A decision taken again on changed pictures.
pub struct Card {
    /// Which step of the episode.
    pub step: usize,
    /// What was done, the picture that it gave, the action taken on that, and how far that action lies from the first.
    pub shots: Vec<(&'static str, ImageBuf, Vec<f64>, f64)>,
}

/// Decisions taken again, one row each.
pub fn cards(cards: &[Card], names: &[String], caption: String) -> Figure {
    let columns = cards.iter().map(|card| card.shots.len()).max().unwrap_or(1) as f64;
    let (left, gap) = (62.0, 12.0);
    let side = (WHOLE - left) / columns - gap;
    let lines = names.len().min(3) as f64;
    let row = side + 34.0 + 14.0 * lines;
    let mut sheet = Drawing::new(WHOLE, 26.0 + cards.len() as f64 * row);
    let mut table = DataTable::new(&["step", "intervention", "change of the action", "action"]);
    for (i, card) in cards.iter().enumerate() {
        let top = 26.0 + i as f64 * row;
        sheet.text((0.0, top + 16.0), LETTERS, Anchor::Start, Ink::Muted, "step");
        sheet.text((0.0, top + 36.0), 18.0, Anchor::Start, Ink::Text, card.step.to_string());
        for (k, (name, picture, action, change)) in card.shots.iter().enumerate() {
            let x = left + k as f64 * (side + gap);
            if i == 0 {
                sheet.text((x, 16.0), LETTERS, Anchor::Start, Ink::Text, *name);
            }
            sheet.picture([x, top, side, side], picture.clone());
            let mut y = top + side + 17.0;
            let said =
                if k == 0 { "as it was".to_owned() } else { format!("changes by {}", percent(*change)) };
            let ink = if k == 0 || *change < 0.02 { Ink::Muted } else { Ink::Attention };
            sheet.text((x, y), LETTERS, Anchor::Start, ink, said);
            for (name, value) in names.iter().zip(action).take(3) {
                y += 14.0;
                let said = format!("{name} {}", short((value * 100.0).round() / 100.0));
                sheet.text((x, y), 11.0, Anchor::Start, Ink::Muted, said);
            }
            let action: Vec<String> = action.iter().map(f64::to_string).collect();
            table.row([card.step.into(), (*name).into(), (*change).into(), action.join(" ").into()]);
        }
    }
    let title = "The same decision on changed pictures".into();
    Figure { name: "decisions", title, caption, wide: true, drawing: sheet, table }
}

/// A decision with its attention and its saliency.
pub struct SaliencyRow<'a> {
    /// Which step of the episode.
    pub step: usize,
    /// What was seen.
    pub picture: Image<'a>,
    /// `[n_patches]` of both.
    pub importance: Vec<f64>,
    /// Of the perturbations.
    pub saliency: Vec<f64>,
    /// Share of the attention on the most salient patches, if some are more salient than others.
    pub mass: Option<f64>,
}

/// The attention beside what perturbations say, for several decisions.
pub fn saliency_maps(rows: &[SaliencyRow<'_>], grid: PatchGrid, own: &str, caption: String) -> Figure {
    let (gap, pairs) = (14.0, rows.len().max(1) as f64);
    let side = (WHOLE - 90.0) / pairs - gap;
    let mut sheet = Drawing::new(WHOLE, 2.0 * (side + gap) + 46.0);
    let mut table = DataTable::new(&["step", "share on the most salient", "patch", "importance", "saliency"]);
    for (i, name) in [own, "perturbation"].iter().enumerate() {
        let y = 26.0 + i as f64 * (side + gap) + side / 2.0;
        sheet.text((0.0, y), LETTERS, Anchor::Start, Ink::Text, *name);
    }
    for (k, row) in rows.iter().enumerate() {
        let x = 90.0 + k as f64 * (side + gap);
        sheet.text((x, 16.0), LETTERS, Anchor::Start, Ink::Muted, format!("step {}", row.step));
        for (i, values) in [&row.importance, &row.saliency].into_iter().enumerate() {
            let y = 26.0 + i as f64 * (side + gap);
            sheet.picture([x, y, side, side], glow(row.picture, grid, values));
        }
        let said = row
            .mass
            .map_or("nothing is salient".into(), |mass| format!("{} on the most salient", percent(mass)));
        sheet.text((x, 26.0 + 2.0 * (side + gap) + 6.0), LETTERS, Anchor::Start, Ink::Muted, said);
        for (patch, (a, b)) in row.importance.iter().zip(&row.saliency).enumerate() {
            table.row([row.step.into(), row.mass.into(), patch.into(), (*a).into(), (*b).into()]);
        }
    }
    let title = "Attention beside perturbation saliency".into();
    Figure { name: "saliency", title, caption, wide: true, drawing: sheet, table }
}
