//! Attention beside perturbation saliency, a method that does not know it.

use serde::Serialize;

use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::phases::MeasuredPictures;
use super::super::words::{count, dot, intervals, parts, two};
use super::super::{Mean, StudyError};
use crate::charts::{DotPlot, SaliencyRow, dots, saliency_maps};
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
    /// Rank correlation over all patches.
    pub ranks: Mean,
    /// The same against the attention of another decision.
    pub ranks_null: Mean,
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
        let [ranks, ranks_null, overlap, overlap_null] = [0, 1, 2, 3].map(|which| {
            found.over_episodes(|p| {
                let salient = p.salient.as_ref()?;
                Some(match which {
                    0 => salient.agreement.ranks,
                    1 => salient.null.ranks,
                    2 => salient.agreement.overlap,
                    _ => salient.null.overlap,
                })
            })
        });
        let decisions = found.probed.iter().flatten().filter(|p| p.salient.is_some()).count();
        let agreement = Agreement { decisions, ranks, ranks_null, overlap, overlap_null };
        if !found.has_attention {
            return Ok(Some(Finding::new(Saliency { agreement })));
        }
        let section = Section {
            id: "saliency".into(),
            title: "What another method says".into(),
            lead: vec![format!(
                "Perturbation saliency asks any policy, without knowing its attention: blur the picture softly at one place after \
                 another and see how the action changes. Asked about {}, its strongest places overlap the looked-at ones by {}; \
                 null, the attention at another moment: {}.",
                count(decisions, "decision"),
                parts(overlap),
                parts(overlap_null)
            )],
            figures: figures(found, &agreement),
            ..Section::default()
        };
        let told = format!(
            "Perturbation saliency, which does not know the attention, {} (rank correlation {}, null {}).",
            match (ranks.1, ranks_null.1) {
                (Some([low, _]), Some([_, high])) if low > high => {
                    "ranks the picture more like the attention at the moment than like that at another"
                }
                (Some(_), Some(_)) => {
                    "does not show that it ranks the picture more like the attention at the moment than like that at another"
                }
                _ => "cannot be compared over one episode, which has no interval",
            },
            two(ranks.0),
            two(ranks_null.0)
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
            "Rank correlation over all patches, and the overlap (intersection over union) of the looked-at patches with as \
             many of the most salient, over {}; {}. Null: the attention at another moment.",
            count(of.decisions, "decision"),
            intervals("bars", found.episodes.len())
        ),
        wide: true,
        axis: "agreement",
        domain: None,
        band: None,
        label: short,
        rows: vec![
            dot("rank correlation", "same moment", Ink::Attention, of.ranks),
            dot("rank correlation", "null", Ink::Muted, of.ranks_null),
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
                ranks: salient.agreement.ranks,
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
