//! Where each head attends: overlays, marginals over rows and columns, entropy.

use foveate_core::statistics::mean;

use super::super::fields::Fields;
use super::super::probes::spread;
use super::super::seen::SeenPicture;
use super::super::words::dot;
use super::super::{Scheduler, StudyError};
use super::drive::drive;
use super::maps::{bright, sheet, to_buf};
use super::{Found, HeadNumber, Job, OfHeads};
use crate::charts::{DotPlot, WHOLE, dots, glow, percent};
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, short};

/// Moments of the first episode that are drawn.
pub(super) const MOMENTS: usize = 4;
/// The share of a head's attention whose cells are counted.
const MASS: f32 = 0.9;

/// A moment that is drawn.
pub(super) struct ShownMoment {
    pub(super) step: usize,
    pub(super) seen: SeenPicture,
    /// `[heads, cells]`
    pub(super) weights: Vec<f32>,
    /// Parts of the scores, `[heads, cells]` each.
    pub(super) terms: Vec<(&'static str, Vec<f32>)>,
}

/// One episode.
struct Played {
    score: f64,
    /// `[heads]` each, means over steps.
    entropy: Vec<f64>,
    largest: Vec<f64>,
    cells: Vec<f64>,
    /// `[heads, cells]`, the mean over steps.
    mean: Vec<f64>,
}

/// The moments of the first episode that are drawn; `wanted` says which steps.
pub(super) fn shown(job: &Job, wanted: &[usize]) -> Result<Vec<ShownMoment>, StudyError> {
    let mut start = job.start(0);
    start.max_steps = start.max_steps.min(wanted.iter().max().map_or(0, |last| last + 1));
    let mut all = vec![];
    drive(start, &mut |_| (), None, &mut |now| {
        if wanted.contains(&now.step) {
            let seen = SeenPicture::of(now.env, None)?;
            let (weights, terms) = (now.opened.weights.clone(), now.opened.terms.clone());
            all.push(ShownMoment { step: now.step, seen, weights, terms });
        }
        Ok(())
    })?;
    Ok(all)
}

/// Entropy divided by that of equal weights, the largest weight, and the fewest cells that hold most of the attention.
fn summary(weights: &[f32]) -> [f64; 3] {
    let entropy: f64 = weights.iter().filter(|w| **w > 0.0).map(|&w| -f64::from(w) * f64::from(w).ln()).sum();
    let mut sorted = weights.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let all: f32 = sorted.iter().sum();
    let mut held = 0.0;
    let cells = sorted.iter().take_while(|&&w| {
        let more = held < MASS * all;
        held += w;
        more
    });
    let cells = cells.count() as f64;
    let most = sorted.first().copied().unwrap_or(0.0);
    [entropy / (weights.len().max(2) as f64).ln(), f64::from(most), cells]
}

/// Where each head attends: overlays, marginals, entropy.
#[derive(Debug)]
pub(in crate::study) struct WeightsOfHeads;

impl OfHeads for WeightsOfHeads {
    const NAME: &'static str = "weights";
    const TITLE: &'static str = "Where each head attends";

    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError> {
        let (heads, cells) = (job.heads, job.grid.len());
        let play = |episode: usize| {
            let mut steps = 0_usize;
            let (mut sums, mut mean) = (vec![[0.0; 3]; heads], vec![0.0; heads * cells]);
            let result = drive(job.start(episode), &mut |_| (), None, &mut |now| {
                for (head, sums) in sums.iter_mut().enumerate() {
                    for (sum, x) in sums.iter_mut().zip(summary(now.opened.row(head))) {
                        *sum += x;
                    }
                }
                for (sum, &weight) in mean.iter_mut().zip(&now.opened.weights) {
                    *sum += f64::from(weight);
                }
                steps += 1;
                Ok(())
            })?;
            let share = 1.0 / steps.max(1) as f64;
            for sum in &mut mean {
                *sum *= share;
            }
            let of = |i: usize| sums.iter().map(|sums| sums[i] * share).collect();
            let played = Played { score: result.total, entropy: of(0), largest: of(1), cells: of(2), mean };
            Ok((played, steps))
        };
        let played = scheduler.ordered(job.episodes(), play, each)?;
        let steps = played.first().map_or(0, |(_, steps)| *steps);
        let moments = shown(job, &spread(steps, MOMENTS))?;
        let of =
            |value: &dyn Fn(&Played) -> f64| -> Vec<f64> { played.iter().map(|(p, _)| value(p)).collect() };
        let mut findings = vec![];
        for head in 0..heads {
            findings.push(HeadNumber::plain(
                format!("head {head}: entropy, of that of equal weights"),
                &of(&|p| p.entropy[head]),
            ));
            findings
                .push(HeadNumber::plain(format!("head {head}: largest weight"), &of(&|p| p.largest[head])));
            let name = format!("head {head}: cells that hold {} of it", percent(f64::from(MASS)));
            findings.push(HeadNumber::plain(name, &of(&|p| p.cells[head])));
        }
        let figures =
            vec![overlays(job, &moments), fields(&job.fields), marginals(job, &played), entropies(&findings)];
        Ok(Found { scores: of(&|p| p.score), findings, figures })
    }
}

fn overlays(job: &Job, moments: &[ShownMoment]) -> Figure {
    let mut columns = vec!["seen".to_owned()];
    columns.extend((0..job.heads).map(|head| format!("head {head}")));
    let mut table = DataTable::new(&["step", "head", "place", "weight"]);
    let rows: Vec<_> = moments
        .iter()
        .map(|moment| {
            let picture = moment.seen.newest_frame();
            let mut pictures = vec![to_buf(picture)];
            for h in 0..job.heads {
                let weights = job.fields.of_head(&moment.weights, h);
                for (place, &weight) in weights.iter().enumerate() {
                    table.row([moment.step.into(), h.into(), place.into(), weight.into()]);
                }
                pictures.push(bright(picture, job.fields.grid(), &weights));
            }
            (format!("step {}", moment.step), pictures)
        })
        .collect();
    Figure {
        name: "overlays",
        title: "Where each head attends".into(),
        caption: "Moments of the first episode. Bright is attended: the whitest place of a picture has the head's largest \
                  weight, what gets none keeps a quarter of its brightness. The weight of a cell is drawn at the places that change \
                  the cell, as measured, not at the cell's own position."
            .into(),
        wide: true,
        drawing: sheet(&columns, &rows),
        table,
    }
}

/// The fields of nine cells, spread over the picture.
fn fields(of: &Fields) -> Figure {
    const SIDE: usize = 96;
    let mut table = DataTable::new(&["row", "column", "place", "share"]);
    let [rows, columns] = of.cells();
    let names: Vec<String> =
        spread(columns, 3).into_iter().map(|column| format!("column {}", column + 1)).collect();
    let drawn: Vec<_> = spread(rows, 3)
        .into_iter()
        .map(|row| {
            let pictures = spread(columns, 3).into_iter().map(|column| {
                let field = of.of_cell(row * columns + column);
                for (place, &share) in field.iter().enumerate() {
                    table.row([(row + 1).into(), (column + 1).into(), place.into(), share.into()]);
                }
                let black = foveate_core::ImageBuf::black(SIDE, SIDE);
                let mut picture = glow(black.as_image(), of.grid(), field);
                frame(
                    &mut picture,
                    [row * SIDE / rows, (row + 1) * SIDE / rows],
                    [column * SIDE / columns, (column + 1) * SIDE / columns],
                );
                picture
            });
            (format!("row {}", row + 1), pictures.collect())
        })
        .collect();
    Figure {
        name: "fields",
        title: "Where the contents of cells come from".into(),
        caption: format!(
            "Of nine of the {rows} × {columns} cells: how far each place of the picture changes the cell; the brightest place changes it \
             most. The white frame is the cell's own position."
        ),
        wide: false,
        drawing: sheet(&names, &drawn),
        table,
    }
}

/// A white frame around rows and columns, from and to.
fn frame(picture: &mut foveate_core::ImageBuf, [top, bottom]: [usize; 2], [left, right]: [usize; 2]) {
    let width = picture.width();
    for y in top..bottom {
        for x in left..right {
            if y == top || y + 1 == bottom || x == left || x + 1 == right {
                picture.rgb_mut()[(y * width + x) * 3..][..3].fill(255);
            }
        }
    }
}

fn marginals(job: &Job, played: &[(Played, usize)]) -> Figure {
    const SIDE: f64 = 150.0;
    const BAR: f64 = 48.0;
    let (heads, cells) = (job.heads, job.grid.len());
    let [rows, columns] = job.fields.sides();
    let tall = SIDE * rows as f64 / columns as f64;
    let across = (WHOLE / heads.max(1) as f64).min(260.0);
    let mut sheet = Drawing::new(WHOLE, tall + BAR + 40.0);
    let mut table = DataTable::new(&["head", "axis", "place", "share"]);
    for h in 0..heads {
        let weights: Vec<f64> = (0..cells)
            .map(|cell| mean(&played.iter().map(|(p, _)| p.mean[h * cells + cell]).collect::<Vec<_>>()))
            .collect();
        let weights = job.fields.pool(&weights);
        let (x, y) = (h as f64 * across + 6.0, 28.0);
        sheet.text((x, 16.0), LETTERS, Anchor::Start, Ink::Muted, format!("head {h}"));
        let black = foveate_core::ImageBuf::black(columns, rows);
        sheet.picture([x, y, SIDE, tall], glow(black.as_image(), job.fields.grid(), &weights));
        let of_row: Vec<f64> = weights.chunks_exact(columns).map(|row| row.iter().sum()).collect();
        let of_column: Vec<f64> =
            (0..columns).map(|c| weights.iter().skip(c).step_by(columns).sum()).collect();
        for (i, &share) in of_row.iter().enumerate() {
            let cell = tall / rows as f64;
            let place = [x + SIDE + 4.0, y + i as f64 * cell, BAR * share.min(1.0), (cell - 1.0).max(0.5)];
            sheet.rect(place, Ink::Attention, 1.0);
            table.row([h.into(), "row".into(), i.into(), share.into()]);
        }
        for (i, &share) in of_column.iter().enumerate() {
            let cell = SIDE / columns as f64;
            let place = [x + i as f64 * cell, y + tall + 4.0, (cell - 1.0).max(0.5), BAR * share.min(1.0)];
            sheet.rect(place, Ink::Attention, 1.0);
            table.row([h.into(), "column".into(), i.into(), share.into()]);
        }
    }
    Figure {
        name: "marginals",
        title: "The mean of each head's weights, and its sums".into(),
        caption: "The mean over all steps and episodes, at the places that change the cells. Bars: the sums of rows, at the right, and of columns, below; a bar of \
                  full length would be all of the attention."
            .into(),
        wide: true,
        drawing: sheet,
        table,
    }
}

fn entropies(findings: &[HeadNumber]) -> Figure {
    let rows = findings.iter().filter(|finding| finding.name.contains("entropy")).map(|finding| {
        dot(finding.name.split(':').next().unwrap_or_default(), "", Ink::Attention, finding.value)
    });
    dots(DotPlot {
        name: "entropy",
        title: "How far each head spreads its attention",
        caption: "Entropy of the weights, divided by that of equal weights: 1 is attention to everything alike, 0 to one cell. \
                  Bars: 95 % over episodes."
            .into(),
        wide: false,
        axis: "entropy",
        domain: Some([0.0, 1.0]),
        band: None,
        label: short,
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_summed_up() {
        let [entropy, largest, cells] = summary(&[0.25; 4]);
        assert!((entropy - 1.0).abs() < 1e-6);
        assert_eq!((largest, cells), (0.25, 4.0));
        assert_eq!(summary(&[1.0, 0.0, 0.0, 0.0]), [0.0, 1.0, 1.0]);
        assert_eq!(summary(&[0.05, 0.55, 0.4, 0.0])[2], 2.0);
    }
}
