//! Whole episodes in worlds that were edited at the start.

use serde::Serialize;

use super::super::cells::MeasuredCells;
use super::super::cells::Played;
use super::super::cells::probe::Edit;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::means::over;
use super::super::words::{count, dot, intervals, parts, with_interval};
use super::super::{Mean, StudyError};
use crate::charts::{DotPlot, dots, percent};
use crate::figure::{Figure, Ink};
use crate::page::{PageTable, Section};

/// Whole episodes in edited worlds, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditedWorlds {
    /// Whole episodes in worlds edited at the start.
    pub edited_episodes: Vec<EditedEpisodes>,
}

/// Whole episodes in worlds whose state was edited at the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditedEpisodes {
    /// What was edited; empty for the worlds as they were.
    pub object: String,
    /// What was done to it.
    pub edit: String,
    /// Episodes.
    pub episodes: usize,
    /// Mean score.
    pub score: Mean,
    /// Mean score of the same episodes without the edit.
    pub unedited: Mean,
    /// Share of episodes that the world ended, rather than the limit of steps.
    pub terminated: Mean,
}

impl EditedEpisodes {
    /// What was done, in words.
    fn what(&self) -> String {
        if self.object.is_empty() {
            "as it was".to_owned()
        } else {
            format!("{}, {}", self.object, self.edit)
        }
    }
}

/// Whole episodes in edited worlds.
#[derive(Debug)]
pub(in crate::study) struct WholeEpisodes;

impl Analysis for WholeEpisodes {
    fn name(&self) -> &'static str {
        "episodes"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredCells>() else { return Ok(None) };
        let edited_episodes = edited_episodes(&found.played);
        let section = Section {
            id: "episodes".into(),
            title: "Whole episodes in edited worlds".into(),
            lead: vec![
                "Here an object is removed, recoloured or moved at the start, and the agent plays the episode to its end in the \
                 changed world, by the world's own rules."
                    .into(),
            ],
            tables: vec![table(&edited_episodes)],
            figures: vec![figure(&edited_episodes, bench.episodes())],
            ..Section::default()
        };
        let line = |row: &EditedEpisodes| {
            let name = if row.object.is_empty() { "as it was" } else { &row.object };
            let (score, ended) = (with_interval(row.score), with_interval(row.terminated));
            format!(
                "episode, {name:13} {:19} n {:4}  score {score:19}  ended {ended}",
                row.edit, row.episodes
            )
        };
        Ok(Some(Finding {
            lines: edited_episodes.iter().map(line).collect(),
            section: Some(section),
            ..Finding::new(EditedWorlds { edited_episodes })
        }))
    }
}

fn edited_episodes(played: &[Vec<Played>]) -> Vec<EditedEpisodes> {
    let mut keys: Vec<(String, &'static str)> =
        played.iter().flatten().map(|played| (played.object.clone(), played.edit)).collect();
    keys.sort_by_key(|(object, edit)| {
        (object.clone(), Edit::ALL.iter().position(|known| known.name() == *edit))
    });
    keys.dedup();
    keys.into_iter()
        .map(|(object, edit)| {
            let (mut scores, mut unedited, mut ends) = (vec![], vec![], vec![]);
            for episodes in played {
                // Of several objects of one name, their mean.
                let fits: Vec<&Played> =
                    episodes.iter().filter(|played| played.object == object && played.edit == edit).collect();
                if let (false, Some(first)) = (fits.is_empty(), episodes.first()) {
                    let mean = |of: &dyn Fn(&Played) -> f64| {
                        fits.iter().map(|played| of(played)).sum::<f64>() / fits.len() as f64
                    };
                    scores.push(mean(&|played| played.score));
                    ends.push(mean(&|played| f64::from(u8::from(played.terminated))));
                    unedited.push(first.score);
                }
            }
            EditedEpisodes {
                object,
                edit: edit.into(),
                episodes: scores.len(),
                score: over(&scores),
                unedited: over(&unedited),
                terminated: over(&ends),
            }
        })
        .collect()
}

fn table(edited: &[EditedEpisodes]) -> PageTable {
    let rows = edited.iter().map(|row| {
        [
            row.what(),
            row.episodes.to_string(),
            parts(row.terminated),
            with_interval(row.score),
            with_interval(row.unedited),
        ]
    });
    let columns =
        ["at the start", "n", "ended by the world", "score", "score of the same episodes, not edited"];
    PageTable::new(columns, rows)
}

fn figure(edited: &[EditedEpisodes], episodes: usize) -> Figure {
    let rows = edited.iter().map(|row| {
        let name = format!("{} (n {})", row.what(), row.episodes);
        dot(name, "ended by the world", Ink::Control, row.terminated)
    });
    dots(DotPlot {
        name: "edited-episodes",
        title: "Whole episodes in edited worlds",
        caption: format!(
            "Share of {} that the world ended before the limit of steps, as at the goal, when its state was edited at the \
             start. Some edits leave no way to the goal: a key of another colour does not open the door; {}.",
            count(episodes, "episode"),
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "share of episodes",
        domain: Some([0.0, 1.0]),
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}
