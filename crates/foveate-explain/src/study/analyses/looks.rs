//! Where it looks: places, shares of the picture's parts, how long a look holds, and what it looks at around a change.

use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::phases::LookedAt;
use super::super::phases::MeasuredPictures;
use super::super::words::{count, intervals};
use crate::charts::{around, attention_map, hold_lengths, over_time, percent, region_shares, traces};
use crate::looks::{around_changes, density, holds, regions, typical_hold};
use crate::page::Section;

/// Where it looks, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Looks {
    /// Patches that the agent looks at, and patches in all.
    pub looked_at: [usize; 2],
    /// Share of attention in each ninth of the picture, the largest first.
    pub regions: Vec<(String, f64)>,
    /// Median time for which a patch stays selected, in decisions and weighted by time.
    pub typical_hold: usize,
    /// Large changes of the action around which attention was analysed.
    pub changes: usize,
}

/// Where it looks.
#[derive(Debug)]
pub(in crate::study) struct Where;

impl Analysis for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredPictures>() else { return Ok(None) };
        let (n, grid, shown) = (bench.episodes(), found.grid, &bench.shown.episode);
        let density = density(&found.episodes, grid);
        let (places, held) = (regions(&density, grid), holds(&found.episodes));
        let changes = around_changes(&found.episodes, &found.scale);
        let mut largest: Vec<(String, f64)> =
            places.iter().map(|region| (region.name.clone(), region.looks)).collect();
        largest.sort_by(|a, b| b.1.total_cmp(&a.1));
        let looks = Looks {
            looked_at: [found.looked_at(), grid.len()],
            regions: largest,
            typical_hold: typical_hold(&held),
            changes: changes.changes,
        };
        if !found.has_attention {
            return Ok(Some(Finding::new(looks)));
        }
        let hold = format!(
            "Half of all looks are part of a hold of at most {} in a row.",
            count(looks.typical_hold, "decision")
        );
        let figures = vec![
            attention_map(
                &density,
                grid,
                found.mean_image().as_image(),
                format!("Looks per place over {}, over the mean of the pictures.", count(n, "episode")),
            ),
            region_shares(
                &places,
                "Which part of all looks goes to each ninth of the picture, and how many times its share of the area that is."
                    .into(),
            ),
            over_time(
                shown,
                grid,
                "The shown episode: where the looked-at patches lie, in both directions of the picture.".into(),
            ),
            hold_lengths(&held, hold.clone()),
            around(
                &changes,
                format!(
                    "Patches not looked at one decision before, around the {} largest changes of the action (one decision \
                     in twenty); {}.",
                    changes.changes,
                    intervals("band", n)
                ),
            ),
            traces(shown, &bench.dimensions),
        ];
        let section = Section {
            id: "where".into(),
            title: "Where it looks".into(),
            lead: vec![format!(
                "{} These figures are over {}. In pictures with the attention overlaid, a patch is the whiter the more \
                 important the agent finds it.",
                what_it_gets(found.shown.looked_at, looks.looked_at),
                count(n, "episode")
            )],
            figures,
            ..Section::default()
        };
        let [first, second] = [&looks.regions[0], &looks.regions[1]];
        let mostly = format!(
            "It looks mostly at the {} of the picture ({} of all looks), then the {} ({}).",
            first.0,
            percent(first.1),
            second.0,
            percent(second.1)
        );
        Ok(Some(Finding { sentences: vec![mostly, hold], section: Some(section), ..Finding::new(looks) }))
    }
}

/// What the agent gets of a picture, given how many patches it looks at, and how many there are.
fn what_it_gets(how: LookedAt, [looked_at, patches]: [usize; 2]) -> String {
    match how {
        LookedAt::Chosen => format!(
            "At every step the agent is told about {looked_at} of {patches} patches and nothing else of the picture."
        ),
        LookedAt::Marked => format!(
            "At every step the agent gets all {patches} patches, weighted. It looks at those that have the largest weight \
             of at least one of its queries: {looked_at} of them, on average."
        ),
        LookedAt::Weighted => format!(
            "At every step the agent gets all {patches} patches, weighted. It looks at the {looked_at} that have the \
             largest weights."
        ),
    }
}
