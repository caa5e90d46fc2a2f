//! Whether heads ask for contents or for places (Mott et al. 2019, section 4.3): which part of a cell's score is larger.

use std::f64::consts::LN_10;

use super::super::probes::spread;
use super::super::{Scheduler, StudyError};
use super::drive::drive;
use super::maps::{head, red_and_blue, sheet, to_buf};
use super::weights::{MOMENTS, ShownMoment, shown};
use super::{Found, HeadNumber, Job, OfHeads};
use crate::figure::{DataTable, Figure};

/// By how much contents outweigh the place of every cell, as a part of a factor of ten in the weight, −1 to 1.
fn lead(what: &[f32], place: &[f32]) -> Vec<f64> {
    let pairs = what.iter().zip(place);
    pairs.map(|(&a, &b)| (f64::from(a) - f64::from(b)).clamp(-LN_10, LN_10) / LN_10).collect()
}

/// The two terms of all heads.
fn terms<'a>(of: &'a [(&'static str, Vec<f32>)]) -> Result<[&'a [f32]; 2], StudyError> {
    let named = |name: &str| of.iter().find(|term| term.0 == name).map(|term| &term.1[..]);
    named("what").zip(named("where")).map(|(what, place)| [what, place]).ok_or_else(|| {
        let why =
            "the scores of these heads are no sum of contents and places; analyse heads that have queries"
                .into();
        StudyError::Refused { why }
    })
}

/// Whether a head asks for contents or for places.
#[derive(Debug)]
pub(in crate::study) struct WhatWhere;

impl OfHeads for WhatWhere {
    const NAME: &'static str = "what-where";
    const TITLE: &'static str = "Contents or places";

    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError> {
        let (heads, cells) = (job.heads, job.grid.len());
        let play = |episode: usize| {
            let (mut shares, mut steps) = (vec![0.0; heads], 0_usize);
            let result = drive(job.start(episode), &mut |_| (), None, &mut |now| {
                let [what, place] = terms(&now.opened.terms)?;
                for (h, share) in shares.iter_mut().enumerate() {
                    let cells = h * cells..(h + 1) * cells;
                    let row = now.opened.row(h);
                    let all: f64 = row.iter().map(|&w| f64::from(w)).sum();
                    let contents: f64 = lead(&what[cells.clone()], &place[cells])
                        .iter()
                        .zip(row)
                        .filter(|(lead, _)| **lead > 0.0)
                        .map(|(_, &w)| f64::from(w))
                        .sum();
                    *share += contents / all.max(1e-30);
                }
                steps += 1;
                Ok(())
            })?;
            for share in &mut shares {
                *share /= steps.max(1) as f64;
            }
            Ok((result.total, shares, steps))
        };
        let played = scheduler.ordered(job.episodes(), play, each)?;
        let steps = played.first().map_or(0, |played| played.2);
        let moments = shown(job, &spread(steps, MOMENTS))?;
        let findings = (0..heads).map(|h| {
            let shares: Vec<f64> = played.iter().map(|(_, shares, _)| shares[h]).collect();
            HeadNumber::plain(format!("head {h}: share of its attention that contents win"), &shares)
        });
        let findings = findings.collect();
        let scores = played.iter().map(|played| played.0).collect();
        Ok(Found { scores, findings, figures: vec![figure(job, &moments)?] })
    }
}

fn figure(job: &Job, moments: &[ShownMoment]) -> Result<Figure, StudyError> {
    let cells = job.grid.len();
    let mut columns = vec!["seen".to_owned()];
    columns.extend((0..job.heads).map(|head| format!("head {head}")));
    let mut table = DataTable::new(&["step", "head", "cell", "weight", "what", "where"]);
    let mut rows = vec![];
    for moment in moments {
        let [what, place] = terms(&moment.terms)?;
        let picture = moment.seen.newest_frame();
        let mut pictures = vec![to_buf(picture)];
        for h in 0..job.heads {
            let (weights, range) = (head(&moment.weights, cells, h), h * cells..(h + 1) * cells);
            let (what, place) = (&what[range.clone()], &place[range]);
            let most = weights.iter().copied().fold(0.0, f64::max).max(1e-300);
            let values: Vec<f64> =
                lead(what, place).iter().zip(&weights).map(|(lead, weight)| lead * weight / most).collect();
            for (cell, &weight) in weights.iter().enumerate() {
                let (a, b) = (f64::from(what[cell]), f64::from(place[cell]));
                table.row([moment.step.into(), h.into(), cell.into(), weight.into(), a.into(), b.into()]);
            }
            pictures.push(red_and_blue(job.grid, &values));
        }
        rows.push((format!("step {}", moment.step), pictures));
    }
    Ok(Figure {
        name: "what-where",
        title: "What or where".into(),
        caption: "Moments of the first episode. Red: the cell's contents give more of its score than its place, blue: the place \
                  gives more, both at most by a factor of ten in the weight, times the cell's weight as a part of the largest. \
                  White: no attention, or neither wins."
            .into(),
        wide: true,
        drawing: sheet(&columns, &rows),
        table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_leads_by_at_most_a_factor_of_ten() {
        let half = (LN_10 / 2.0) as f32;
        let got = lead(&[3.0, half, 1.0, -9.0], &[0.0, 0.0, 1.0, 0.0]);
        let apart = got.iter().zip([1.0, 0.5, 0.0, -1.0]).map(|(a, b): (&f64, f64)| (a - b).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-6, "{got:?}");
        assert!(terms(&[]).is_err());
    }
}
