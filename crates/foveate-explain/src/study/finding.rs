//! What a report is made of: analyses, in the order in which one needs the other, and what each found.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::cost::Meter;
use super::film::FinishedFilm;
use super::{ReportHead, Scheduler, StudyError};
use crate::figure::Figure;
use crate::page::{PageAnswer, Section, Tile};
use crate::trajectory::{Dimension, Trajectory};

/// A part of a report, which is in the list of its kind.
pub trait Analysis: fmt::Debug + Sync {
    /// Its name: lower case, with dashes.
    fn name(&self) -> &'static str;

    /// Plays of every episode that it needs beside what all analyses share.
    fn plays(&self) -> usize {
        0
    }

    /// What it finds, given what those before it found; `None` where it has nothing to say of this agent.
    ///
    /// # Errors
    /// When an episode fails, or someone asks to stop.
    fn find(&self, bench: &Bench<'_>, before: &Findings) -> Result<Option<Finding>, StudyError>;
}

/// Numbers of a finding: a structure whose fields are keys of the report's file.
pub trait Numbers: Any + fmt::Debug + Send + Sync {
    /// The numbers as an object of JSON.
    fn json(&self) -> serde_json::Value;
    /// The same as text, a line for each number, in the order of the fields.
    fn pretty(&self) -> String;
}

impl<T: Any + fmt::Debug + Send + Sync + Serialize> Numbers for T {
    fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn pretty(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// What an analysis found: its numbers, and how they are told.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Whose it is: the name of the analysis.
    pub name: &'static str,
    /// For `report.json`, and for analyses that build on these.
    pub numbers: Arc<dyn Numbers>,
    /// For the top of the page: a sentence for each question.
    pub answers: Vec<PageAnswer>,
    /// A picture at the top of the page.
    pub picture: Option<Figure>,
    /// Verdicts and big numbers.
    pub tiles: Vec<Tile>,
    /// What was found, a sentence each.
    pub sentences: Vec<String>,
    /// Lines for a terminal; without any, the sentences stand there.
    pub lines: Vec<String>,
    /// Its part of the page, with tables and figures.
    pub section: Option<Section>,
    /// What stands at the foot of the page.
    pub notes: Vec<String>,
}

impl Finding {
    /// Numbers that nothing is said of yet.
    pub fn new(numbers: impl Numbers) -> Self {
        Finding {
            name: "",
            numbers: Arc::new(numbers),
            answers: vec![],
            picture: None,
            tiles: vec![],
            sentences: vec![],
            lines: vec![],
            section: None,
            notes: vec![],
        }
    }

    /// The lines on a terminal.
    pub fn told(&self) -> &[String] {
        if self.lines.is_empty() { &self.sentences } else { &self.lines }
    }
}

/// Findings in the order of their analyses.
#[derive(Debug, Clone, Default)]
pub struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// Runs analyses one after the other.
    pub(super) fn of(analyses: &[&dyn Analysis], bench: &Bench<'_>) -> Result<Self, StudyError> {
        let mut all = Findings::default();
        for analysis in analyses {
            if let Some(finding) = analysis.find(bench, &all)? {
                all.0.push(Finding { name: analysis.name(), ..finding });
            }
        }
        Ok(all)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// The numbers of this type, if an analysis found some.
    pub fn get<T: Numbers>(&self) -> Option<&T> {
        self.0.iter().find_map(|finding| (&*finding.numbers as &dyn Any).downcast_ref())
    }

    /// The figures of the page.
    pub(super) fn figures(&self) -> impl Iterator<Item = &Figure> {
        let pictures = self.0.iter().filter_map(|finding| finding.picture.as_ref());
        pictures.chain(self.sections().flat_map(|section| &section.figures))
    }

    /// The sections of the page.
    pub(super) fn sections(&self) -> impl Iterator<Item = &Section> {
        self.0.iter().filter_map(|finding| finding.section.as_ref())
    }
}

impl Serialize for Findings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for finding in &self.0 {
            for (key, value) in finding.numbers.json().as_object().into_iter().flatten() {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// What was measured, for analyses.
pub struct Bench<'a> {
    pub(super) head: ReportHead,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) shown: EpisodeShown,
    /// By kind of study; an analysis asks for what it needs by its type.
    pub(super) measured: Vec<Box<dyn Any>>,
    /// Runs jobs of analyses that measure more.
    pub(super) scheduler: &'a dyn Scheduler,
    pub(super) meter: RefCell<Meter<'a>>,
}

impl Bench<'_> {
    /// What was measured of this type; `None` where the study does not measure it.
    pub(super) fn get<T: Any>(&self) -> Option<&T> {
        self.measured.iter().find_map(|measured| measured.downcast_ref())
    }

    /// Episodes.
    pub(super) fn episodes(&self) -> usize {
        self.head.scores.len()
    }
}

/// The episode that the page shows.
#[derive(Default)]
pub(super) struct EpisodeShown {
    /// What the agent does with what it attends to, in the page's title.
    pub(super) verb: &'static str,
    /// The episode, with actions as people know them.
    pub(super) episode: Trajectory,
    /// `[n_patches]` importance at every step.
    pub(super) maps: Vec<Vec<f32>>,
    pub(super) film: Option<FinishedFilm>,
    /// Width and height of the agent's picture.
    pub(super) picture: [usize; 2],
    /// What the agent's part of the film shows.
    pub(super) seen: &'static str,
    /// Names of the columns of that part.
    pub(super) columns: Vec<String>,
}
