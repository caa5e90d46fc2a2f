//! What the positions of selected patches encode: which quantities of the world's state can be read from them, and how they
//! move with each.
//!
//! The quantities are those that the world itself names ([`Env::situation`](foveate_core::Env::situation)), such as how far the
//! edges of a road are. Each is predicted by a linear function of the positions, fitted on some episodes and scored on others,
//! so what it scores is about places that the fit has not seen.

use foveate_core::statistics::{mean, std};
use foveate_core::{ImageBuf, PatchGrid};
use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::phases::MeasuredPictures;
use crate::charts::{PositionsPanel, positions};
use crate::estimate::Estimate;
use crate::figure::{Figure, short};
use crate::least_squares::{Normal, Sample, told};
use crate::page::Section;
use crate::trajectory::Trajectory;

/// Parts of the episodes, each scored with a fit to the others.
const FOLDS: usize = 5;

/// The quantities of an episode, step by step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::study) struct Situations {
    pub(in crate::study) names: Vec<&'static str>,
    /// `[steps][quantities]`
    pub(in crate::study) steps: Vec<Vec<f64>>,
}

impl Situations {
    /// Adds what the world names now.
    pub(in crate::study) fn add(&mut self, now: &[(&'static str, f64)]) {
        if self.steps.is_empty() {
            self.names = now.iter().map(|(name, _)| *name).collect();
        }
        self.steps.push(now.iter().map(|(_, value)| *value).collect());
    }
}

/// What the positions of the selected patches encode of a quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Encoded {
    /// The quantity, in the world's words.
    pub quantity: String,
    /// Share of its variance that a linear function of the positions explains in episodes that it was not fitted to (R²); 1 =
    /// all, 0 or less = no more than its mean.
    pub r2: Estimate,
    /// Its standard deviation over all steps, in the world's units.
    pub deviation: f64,
    /// Of each selected patch, by rank: its mean position, and how far it moves to the right and down when the quantity is one
    /// standard deviation larger, in pixels: `[x, y, right, down]`.
    pub moves: Vec<[f64; 4]>,
}

/// Analyses episodes in which `selected` always has as many patches; nothing where there are too few episodes, or the world names
/// no quantity.
pub(in crate::study) fn encoded(
    episodes: &[Trajectory],
    situations: &[Situations],
    grid: PatchGrid,
) -> Vec<Encoded> {
    let Some(names) = situations.first().map(|of| &of.names) else { return vec![] };
    let slots = episodes.iter().flat_map(|episode| &episode.selected).map(Vec::len).next().unwrap_or(0);
    let alike = episodes.iter().flat_map(|episode| &episode.selected).all(|all| all.len() == slots);
    if episodes.len() < 2 || slots == 0 || !alike {
        return vec![];
    }
    // `[episodes][steps]`: x and y of every slot.
    let positions: Vec<Vec<Vec<f32>>> = episodes
        .iter()
        .map(|episode| {
            let of = |selected: &Vec<u32>| -> Vec<f32> {
                let at = |&patch: &u32| {
                    let (x, y) = grid.centre(patch as usize);
                    [x as f32, y as f32]
                };
                selected.iter().flat_map(at).collect()
            };
            episode.selected.iter().map(of).collect()
        })
        .collect();
    // In units of the picture, so that sums of squares are of one size.
    let side = grid.width().max(grid.height()) as f32;
    let inputs: Vec<Vec<Vec<f32>>> = positions
        .iter()
        .map(|steps| steps.iter().map(|all| all.iter().map(|x| x / side).collect()).collect())
        .collect();
    names
        .iter()
        .enumerate()
        .filter_map(|(q, name)| {
            let values: Vec<Vec<f64>> = situations
                .iter()
                .zip(&inputs)
                .map(|(of, rows)| of.steps.iter().take(rows.len()).map(|all| all[q]).collect())
                .collect();
            let all: Vec<f64> = values.iter().flatten().copied().collect();
            let deviation = std(&all).filter(|&deviation| deviation > 0.0)?;
            Some(Encoded {
                quantity: (*name).into(),
                r2: explained(&inputs, &values, 2 * slots)?,
                deviation,
                moves: moves(&positions, &values, slots, mean(&all), deviation),
            })
        })
        .collect()
}

/// R² over episodes that the fit has not seen, with its interval.
fn explained(inputs: &[Vec<Vec<f32>>], values: &[Vec<f64>], width: usize) -> Option<Estimate> {
    let folds = FOLDS.min(inputs.len());
    let samples = |e: usize| -> Vec<Sample<'_>> {
        inputs[e].iter().map(Vec::as_slice).zip(values[e].iter().copied()).collect()
    };
    let (mut errors, mut spreads) = (vec![], vec![]);
    for fold in 0..folds {
        let fitted: Vec<Sample<'_>> =
            (0..inputs.len()).filter(|e| e % folds != fold).flat_map(samples).collect();
        let normal = Normal::new(width, fitted.iter().map(|(row, _)| *row))?;
        let fit = normal.solve(fitted.iter().copied());
        let middle = mean(&fitted.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        for e in (0..inputs.len()).filter(|e| e % folds == fold) {
            let scored = samples(e);
            errors.push(scored.iter().map(|(row, value)| (value - told(&fit, row)).powi(2)).sum::<f64>());
            spreads.push(scored.iter().map(|(_, value)| (value - middle).powi(2)).sum::<f64>());
        }
    }
    // Squares are no less than 0, so R² is at most 1.
    let Estimate { value, interval } = Estimate::ratio(&errors, &spreads)?.within([0.0, f64::INFINITY]);
    Some(Estimate { value: 1.0 - value, interval: interval.map(|[low, high]| [1.0 - high, 1.0 - low]) })
}

/// `[slots]`: mean position, and its regression on one quantity.
fn moves(
    positions: &[Vec<Vec<f32>>],
    values: &[Vec<f64>],
    slots: usize,
    middle: f64,
    deviation: f64,
) -> Vec<[f64; 4]> {
    let pairs = || positions.iter().flatten().zip(values.iter().flatten());
    let count = pairs().count().max(1) as f64;
    (0..slots)
        .map(|slot| {
            let [x, y] = [0, 1].map(|axis| {
                let at = |row: &[f32]| f64::from(row[2 * slot + axis]);
                let mean = pairs().map(|(row, _)| at(row)).sum::<f64>() / count;
                let with = pairs().map(|(row, value)| (at(row) - mean) * (value - middle)).sum::<f64>();
                [mean, with / count / deviation]
            });
            [x[0], y[0], x[1], y[1]]
        })
        .collect()
}

/// What the positions encode, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Encodings {
    /// What the positions of selected patches encode of the world's state.
    pub encoded: Vec<Encoded>,
}

/// What the positions of the selected patches say.
#[derive(Debug)]
pub(in crate::study) struct Positions;

impl Analysis for Positions {
    fn name(&self) -> &'static str {
        "encoded"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredPictures>() else { return Ok(None) };
        let encoded = found.encoded.clone();
        if encoded.is_empty() {
            return Ok(Some(Finding::new(Encodings { encoded })));
        }
        let mut best: Vec<_> = encoded.iter().collect();
        best.sort_by(|a, b| b.r2.value.total_cmp(&a.r2.value));
        let told: Vec<String> = best.iter().map(|of| format!("{} {}", of.quantity, of.r2.plain())).collect();
        let section = Section {
            id: "encoded".into(),
            title: "What the positions say".into(),
            lead: vec![format!(
                "All that the controller gets of the picture are the positions of the patches. How much of the world's state a linear \
                 function of them tells, in episodes that it was not fitted to (R²; 1 is everything, 0 no more than the mean): {}.",
                told.join(", ")
            )],
            figures: vec![figure(&encoded, &found.mean_image())],
            ..Section::default()
        };
        let lines = told.iter().map(|told| format!("positions tell, R²: {told}")).collect();
        Ok(Some(Finding { lines, section: Some(section), ..Finding::new(Encodings { encoded }) }))
    }
}

fn figure(encoded: &[Encoded], under: &ImageBuf) -> Figure {
    let panels: Vec<PositionsPanel<'_>> = encoded
        .iter()
        .map(|of| PositionsPanel {
            name: &of.quantity,
            remark: format!(
                "told: {}; one deviation is {}",
                of.r2.plain(),
                short((of.deviation * 1000.0).round() / 1000.0)
            ),
            moves: &of.moves,
        })
        .collect();
    positions(
        &panels,
        under,
        "Each arrow is a selected patch, numbered by its rank. It leads from where the patch lies on average when the quantity is \
         one standard deviation below its mean to where it lies at one above; a dot stays where it is. Told is the share of its variance \
         (R²) that a linear function of all positions explains in episodes that it was not fitted to."
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    #[test]
    fn a_quantity_that_moves_the_patches_is_found_and_another_is_not() {
        // Two patches of 10 x 10 in a picture of 100 x 100; the first follows the quantity, the second stays.
        let grid = PatchGrid::tile(100, 100, 10, 10).expect("a hundred patches");
        let mut rng = Seed::root(4).rng();
        let (mut episodes, mut situations) = (vec![], vec![]);
        for _ in 0..6 {
            let (mut episode, mut situation) = (Trajectory::default(), Situations::default());
            for _ in 0..80 {
                let column = rng.below(10) as u32;
                episode.selected.push(vec![30 + column, 99]);
                situation.add(&[
                    ("edge", 2.0 * f64::from(column) - 5.0),
                    ("luck", rng.normal()),
                    ("same", 7.0),
                ]);
            }
            episodes.push(episode);
            situations.push(situation);
        }
        let found = encoded(&episodes, &situations, grid);
        let names: Vec<&str> = found.iter().map(|of| &*of.quantity).collect();
        assert_eq!(names, ["edge", "luck"], "what never changes cannot be encoded");
        assert!(found[0].r2.is_above(0.999), "{:?}", found[0].r2);
        assert!(found[1].r2.value < 0.05, "{:?}", found[1].r2);
        let [first, second] = [&found[0].moves[0], &found[0].moves[1]];
        // A column is 10 pixels and 2 of the quantity, so one deviation is 5 times as many pixels.
        assert!((first[2] - 5.0 * found[0].deviation).abs() < 1e-3 && first[3].abs() < 1e-9, "{first:?}");
        assert_eq!(second[2..], [0.0, 0.0]);
        assert!(found[1].moves[0][2].abs() < 5.0);
        assert_eq!(encoded(&episodes[..1], &situations[..1], grid), [], "one episode cannot be held out");
    }
}
