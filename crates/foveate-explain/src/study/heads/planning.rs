//! Two measurable proxies of what Mott et al. 2019 describe: forward planning, attention to where something is about to be; and
//! trip-wires, attention to a place at which an arrival changes what is done.
//!
//! Something is where the picture changes from one step to the next.

use super::super::seen::SeenPicture;
use super::super::words::dot;
use super::super::{Scheduler, StudyError};
use super::drive::{drive, total_variation};
use super::{Found, HeadNumber, Job, OfHeads};
use crate::charts::{DotPlot, dots, percent};
use crate::figure::{Figure, Ink};

/// Steps ahead, and steps before in which a place must have been still.
const AHEAD: usize = 10;
/// Steps in which an arrival may change the policy.
const WITHIN: usize = 5;
/// A pixel has changed when one of its colours has by more than this.
const CHANGE: u8 = 12;
/// Random pairings behind the null of a step.
const DRAWS: usize = 4;

/// An episode, step by step.
#[derive(Default)]
struct Record {
    /// `[steps]`: whether something changed in each place since the step before.
    moved: Vec<Vec<bool>>,
    /// `[steps][heads, places]`: where what is attended to comes from.
    weights: Vec<Vec<f64>>,
    /// `[steps][choices]`
    probabilities: Vec<Vec<f64>>,
    score: f64,
}

/// `[places]`: whether a pixel changed, of pictures with `width` × `height` pixels in three colours.
fn moved(before: &[u8], now: &[u8], [width, height]: [usize; 2], [rows, columns]: [usize; 2]) -> Vec<bool> {
    let mut moved = vec![false; rows * columns];
    let pixels = before.as_chunks::<3>().0.iter().zip(now.as_chunks::<3>().0);
    for (i, (a, b)) in pixels.enumerate() {
        if a.iter().zip(b).any(|(a, b)| a.abs_diff(*b) > CHANGE) {
            let (x, y) = (i % width, i / width);
            moved[(y * rows / height).min(rows - 1) * columns + (x * columns / width).min(columns - 1)] =
                true;
        }
    }
    moved
}

impl Record {
    /// `[cells]`: where something will be within the next steps and was not in the last; `None` where the episode is too
    /// short.
    fn to_come(&self, t: usize) -> Option<Vec<bool>> {
        let (after, before) =
            (self.moved.get(t + 1..=t + AHEAD)?, self.moved.get(t.checked_sub(AHEAD)?..=t)?);
        let any = |steps: &[Vec<bool>], cell: usize| steps.iter().any(|moved| moved[cell]);
        Some((0..self.moved[t].len()).map(|cell| any(after, cell) && !any(before, cell)).collect())
    }

    /// Returns whether something comes to a still cell in step `t`.
    fn arrives(&self, t: usize, cell: usize) -> bool {
        let Some(before) = t.checked_sub(AHEAD).and_then(|from| self.moved.get(from..t)) else {
            return false;
        };
        self.moved[t][cell] && before.iter().all(|moved| !moved[cell])
    }

    /// How far the policy changes within the steps after `t`.
    fn change(&self, t: usize) -> Option<f64> {
        let before = self.probabilities.get(t.checked_sub(1)?)?;
        let after = self.probabilities.get(t..t + WITHIN)?;
        Some(after.iter().map(|after| total_variation(before, after)).fold(0.0, f64::max))
    }
}

/// The share of a head's attention on some places.
fn mass(weights: &[f64], on: &[bool]) -> f64 {
    let all: f64 = weights.iter().sum();
    let there: f64 = weights.iter().zip(on).filter(|(_, on)| **on).map(|(weight, _)| weight).sum();
    there / all.max(1e-30)
}

/// Numbers of one episode, each with its null.
struct Numbers {
    score: f64,
    /// `[heads]`
    ahead: Vec<[f64; 2]>,
    /// `[heads]`; `None` where nothing arrived at the head's place.
    wires: Vec<Option<[f64; 2]>>,
}

fn numbers(job: &Job, episode: usize, record: &Record) -> Numbers {
    let heads = job.heads;
    let [rows, columns] = job.fields.sides();
    let places = rows * columns;
    let mut rng = job.seed.child("planning", episode as u64).rng();
    let steps: Vec<(usize, Vec<bool>)> = (0..record.weights.len())
        .filter_map(|t| Some((t, record.to_come(t)?)))
        .filter(|(_, to_come)| to_come.contains(&true))
        .collect();
    let mut ahead = vec![[0.0; 2]; heads];
    for (t, to_come) in &steps {
        for (h, ahead) in ahead.iter_mut().enumerate() {
            let row = &record.weights[*t][h * places..][..places];
            ahead[0] += mass(row, to_come) / steps.len() as f64;
            for _ in 0..DRAWS {
                let (_, other) = &steps[rng.below(steps.len() as u64) as usize];
                ahead[1] += mass(row, other) / (DRAWS * steps.len()) as f64;
            }
        }
    }
    let wires = (0..heads).map(|h| {
        let (mut at_peak, mut elsewhere) = (vec![], vec![]);
        for t in 1..record.weights.len() {
            let Some(change) = record.change(t) else { continue };
            // Where the head attended before the arrival.
            let row = &record.weights[t - 1][h * places..][..places];
            let peak = (1..places).fold(0, |best, i| if row[i] > row[best] { i } else { best });
            if record.arrives(t, peak) {
                at_peak.push(change);
            } else if (0..places).any(|place| record.arrives(t, place)) {
                elsewhere.push(change);
            }
        }
        let mean = foveate_core::statistics::mean;
        (!at_peak.is_empty() && !elsewhere.is_empty()).then(|| [mean(&at_peak), mean(&elsewhere)])
    });
    Numbers { score: record.score, ahead, wires: wires.collect() }
}

/// Whether heads attend to where something will move, and whether arrivals there change what is done.
#[derive(Debug)]
pub(in crate::study) struct Planning;

impl OfHeads for Planning {
    const NAME: &'static str = "planning";
    const TITLE: &'static str = "Forward planning and trip-wires";

    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError> {
        let n = job.starts.len();
        let sides = job.fields.sides();
        let play = |episode: usize| {
            let (mut record, mut before) = (Record::default(), Vec::<u8>::new());
            let result = drive(job.start(episode), &mut |_| (), None, &mut |now| {
                let seen = SeenPicture::of(now.env, None)?;
                let picture = seen.newest_frame();
                if before.is_empty() {
                    before.extend_from_slice(picture.rgb());
                }
                record.moved.push(moved(&before, picture.rgb(), [picture.width(), picture.height()], sides));
                before.copy_from_slice(picture.rgb());
                record
                    .weights
                    .push((0..job.heads).flat_map(|h| job.fields.of_head(&now.opened.weights, h)).collect());
                record.probabilities.push(now.probabilities.to_vec());
                Ok(())
            })?;
            record.score = result.total;
            Ok(numbers(job, episode, &record))
        };
        let found = scheduler.ordered(job.episodes(), play, each)?;
        let mut findings = vec![];
        for h in 0..job.heads {
            let of = |i: usize| -> Vec<f64> { found.iter().map(|numbers| numbers.ahead[h][i]).collect() };
            findings.push(HeadNumber::against(
                format!("head {h}: share on where something will be; null: of other moments"),
                &of(0),
                &of(1),
            ));
        }
        for h in 0..job.heads {
            let of = |i: usize| -> Vec<f64> {
                found.iter().filter_map(|numbers| numbers.wires[h].map(|wires| wires[i])).collect()
            };
            let some = of(0);
            let name = format!(
                "head {h}: change of the policy after an arrival at its place ({} of {n} episodes); null: elsewhere",
                some.len()
            );
            if !some.is_empty() {
                findings.push(HeadNumber::against(name, &some, &of(1)));
            }
        }
        let figures = vec![figure(&findings)];
        Ok(Found { scores: found.iter().map(|numbers| numbers.score).collect(), findings, figures })
    }
}

fn figure(findings: &[HeadNumber]) -> Figure {
    let rows = findings.iter().flat_map(|finding| {
        let name = finding.name.split(';').next().unwrap_or_default().to_owned();
        let null = finding.null.map(|null| dot(name.clone(), "null", Ink::Muted, null));
        std::iter::once(dot(name, "measured", Ink::Attention, finding.value)).chain(null)
    });
    dots(DotPlot {
        name: "planning",
        title: "Forward planning and trip-wires",
        caption: format!(
            "First the share of a head's attention on places in which something moves within the next {AHEAD} steps and nothing \
             did in the last; the null takes the places of other moments of the same episode. Then how far the choices' \
             probabilities change (total variation, within {WITHIN} steps) when something comes to the place with the head's \
             largest weight, which was still for {AHEAD} steps; the null: when something comes to another such place. Bars: \
             95 % over episodes."
        ),
        wide: true,
        axis: "share of attention; total variation",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_to_a_still_place_arrives() {
        // Two cells; something crosses from the first to the second at step 20.
        let moved: Vec<Vec<bool>> = (0..40).map(|t| vec![t < 20, t >= 20]).collect();
        let probabilities = (0..40).map(|t| if t < 22 { vec![1.0, 0.0] } else { vec![0.25, 0.75] }).collect();
        let record = Record { moved, probabilities, ..Record::default() };
        assert_eq!(record.to_come(15), Some(vec![false, true]));
        assert_eq!(record.to_come(25), Some(vec![false, false]));
        assert_eq!((record.to_come(5), record.to_come(35)), (None, None), "too near an end");
        let arrivals: Vec<usize> = (0..40).filter(|&t| record.arrives(t, 1)).collect();
        assert_eq!(arrivals, [20]);
        assert_eq!(record.change(20), Some(0.75));
        assert_eq!((record.change(10), record.change(38)), (Some(0.0), None));
        assert!((mass(&[0.25, 0.75], &[false, true]) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn pixels_move_their_cells() {
        let before = vec![0; 4 * 4 * 3];
        let mut now = before.clone();
        now[3 * (3 * 4) + 1] = 200;
        now[3 * 3] = 5;
        assert_eq!(moved(&before, &now, [4, 4], [2, 2]), [false, false, true, false]);
    }
}
