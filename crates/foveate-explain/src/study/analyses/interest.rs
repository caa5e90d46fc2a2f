//! What it looks at: patches by the importance that the agent gives them.

use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::phases::{LookedAt, MeasuredPictures};
use super::super::words::count;
use crate::charts::{importance, patch_samples};
use crate::figure::short;
use crate::page::Section;

/// What it looks at, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interest {
    /// Patches counted, and the 95 % quantile of their importance.
    pub importance: (u64, f64),
}

/// What it looks at.
#[derive(Debug)]
pub(in crate::study) struct What;

impl Analysis for What {
    fn name(&self) -> &'static str {
        "what"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredPictures>() else { return Ok(None) };
        let (patches, votes) = (found.counts.total(), found.counts.quantile(0.95));
        let interest = Interest { importance: (patches, votes) };
        if !found.has_attention {
            return Ok(Some(Finding::new(interest)));
        }
        let figures = vec![
            importance(
                &found.counts,
                1.0,
                format!(
                    "{} patches in {}; one in twenty has {} votes or more. {} The scale of counts is logarithmic; what lies \
                     beyond the last bar is counted in it.",
                    short(patches as f64),
                    count(bench.episodes(), "episode"),
                    short(votes),
                    whose_votes(found)
                ),
            ),
            patch_samples(
                &found.samples,
                "Drawn at random from the tested pictures, within each range sorted; the number is the importance.".into(),
            ),
        ];
        let section = Section {
            id: "what".into(),
            title: "What it looks at".into(),
            lead: vec![
                "Patches ranked by the votes that they get. Those on top are what the agent finds most worth a look, those in the \
                 lower half least."
                    .into(),
            ],
            figures,
            ..Section::default()
        };
        let lines = vec![format!("one patch in twenty gets {} votes or more", short(votes))];
        Ok(Some(Finding { lines, section: Some(section), ..Finding::new(interest) }))
    }
}

/// Where the votes of a picture come from.
fn whose_votes(found: &MeasuredPictures) -> String {
    match found.shown.looked_at {
        LookedAt::Chosen => "Each patch of a picture hands out one vote.".into(),
        LookedAt::Marked | LookedAt::Weighted => {
            format!("The patches of a picture get {} votes together.", short(found.shown.votes))
        }
    }
}
