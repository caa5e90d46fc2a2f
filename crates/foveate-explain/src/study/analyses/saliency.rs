//! Attention beside perturbation saliency, a method that does not know it.

use serde::Serialize;

use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::phases::MeasuredPictures;
use super::super::words::{count, dot, intervals, parts};
use super::super::{Mean, StudyError};
use crate::charts::{DotPlot, SaliencyRow, dots, percent, saliency_maps};
use crate::figure::{Figure, Ink, short};
use crate::page::Section;
use crate::saliency::BUMP_PX;

/// Perturbation saliency beside attention, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Saliency {
    /// How far both agree.
    pub agreement: Agreement,
}

/// Agreement of perturbation saliency and attention: means and 95 % intervals over episodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Decisions that were compared.
    pub decisions: usize,
    /// Share of the attention on as many of the most salient patches as are looked at.
    pub mass: Mean,
    /// The same of the attention of another decision.
    pub mass_null: Mean,
    /// The same of attention dealt out at random, mean over decisions.
    pub mass_chance: f64,
    /// Intersection over union of the most salient and the selected patches.
    pub overlap: Mean,
    /// The same against the attention of another decision.
    pub overlap_null: Mean,
}

/// What perturbation saliency says.
#[derive(Debug)]
pub(in crate::study) struct OtherMethod;

impl Analysis for OtherMethod {
    fn name(&self) -> &'static str {
        "saliency"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredPictures>() else { return Ok(None) };
        let [mass, mass_null, chance, overlap, overlap_null] = [0, 1, 2, 3, 4].map(|which| {
            found.over_episodes(|p| {
                let salient = p.salient.as_ref()?;
                match which {
                    0 => salient.agreement.mass,
                    1 => salient.null.mass,
                    2 => salient.agreement.chance,
                    3 => Some(salient.agreement.overlap),
                    _ => Some(salient.null.overlap),
                }
            })
        });
        let decisions = found.probed.iter().flatten().filter(|p| p.salient.is_some()).count();
        let agreement =
            Agreement { decisions, mass, mass_null, mass_chance: chance.0, overlap, overlap_null };
        if !found.has_attention {
            return Ok(Some(Finding::new(Saliency { agreement })));
        }
        let section = Section {
            id: "saliency".into(),
            title: "What another method says".into(),
            lead: vec![format!(
                "Perturbation saliency asks any policy, without knowing its attention: blur the picture softly at one place after \
                 another and see how the action changes. Asked about {}, its strongest places hold {} of the attention, as many places at random \
                 {}, and overlap the looked-at ones by {}; null, the attention at another moment: {} and {}.",
                count(decisions, "decision"),
                parts(mass),
                percent(chance.0),
                parts(overlap),
                parts(mass_null),
                parts(overlap_null)
            )],
            figures: figures(found, &agreement),
            ..Section::default()
        };
        let told = format!(
            "The places that perturbation saliency finds, which does not know the attention, {}.",
            match (mass.1, mass_null.1) {
                (Some([low, _]), Some([_, high])) if low > high => {
                    format!(
                        "hold more of the attention at the moment than of that at another ({}, null {})",
                        percent(mass.0),
                        percent(mass_null.0)
                    )
                }
                (Some(_), Some(_)) => format!(
                    "do not hold clearly more of the attention at the moment than of that at another ({}, null {})",
                    percent(mass.0),
                    percent(mass_null.0)
                ),
                _ => "cannot be compared over one episode, which has no interval".into(),
            }
        );
        Ok(Some(Finding {
            sentences: vec![told],
            section: Some(section),
            ..Finding::new(Saliency { agreement })
        }))
    }
}

fn figures(found: &MeasuredPictures, of: &Agreement) -> Vec<Figure> {
    let agreement = dots(DotPlot {
        name: "agreement",
        title: "Do both methods agree?",
        caption: format!(
            "The share of the attention on the most salient patches, as many as are looked at, and the overlap (intersection over \
             union) of both, over {}; {}. Null: the attention at another moment.",
            count(of.decisions, "decision"),
            intervals("bars", found.episodes.len())
        ),
        wide: true,
        axis: "agreement",
        domain: None,
        band: None,
        label: short,
        rows: vec![
            dot("share of the attention", "same moment", Ink::Attention, of.mass),
            dot("share of the attention", "null", Ink::Muted, of.mass_null),
            dot("overlap", "same moment", Ink::Attention, of.overlap),
            dot("overlap", "null", Ink::Muted, of.overlap_null),
        ],
    });
    let rows: Vec<SaliencyRow<'_>> = found
        .cards
        .iter()
        .filter_map(|taken| {
            let salient = found.probed[0].iter().find(|p| p.step == taken.step)?.salient.as_ref()?;
            Some(SaliencyRow {
                step: taken.step,
                picture: taken.seen.newest(),
                importance: taken.importance.iter().map(|&v| f64::from(v)).collect(),
                saliency: salient.map.clone(),
                mass: salient.agreement.mass,
            })
        })
        .collect();
    let maps = saliency_maps(
        &rows,
        found.grid,
        "importance",
        format!(
            "Above, the agent's own importance; below, how much the action changes when a place is blurred softly (σ = \
             {BUMP_PX} pixels, Greydanus et al. 2018)."
        ),
    );
    vec![maps, agreement]
}
