//! An episode in a grid world: what was seen, and which cells were attended to.

use std::collections::BTreeMap;

use foveate_core::episode::{AfterStep, BeforeChoice, BeforeStep, Observer};
use foveate_core::{Attention, EvaluateError, GridView, ObservationBuf};

use super::super::StudyError;
use super::super::film::{FilmRecorder, FinishedFilm};
use super::super::play::EpisodeStart;
use super::probe::importance;
use crate::node_maps::{map_nodes, object_label};
use crate::node_maps_picture;
use crate::trajectory::Trajectory;

/// Width and height of the maps in the film, in pixels.
const MAPS: usize = 384;

/// Head, node, and what is attended to.
pub(in crate::study) type Link = (usize, String, String);

/// An episode.
pub(in crate::study) struct Record {
    pub(in crate::study) trajectory: Trajectory,
    /// `[steps]`: the observations.
    pub(in crate::study) seen: Vec<ObservationBuf>,
    /// `[steps][cells]`: absolute weights, summed over heads and queries.
    pub(in crate::study) attention: Vec<Vec<f64>>,
    /// Sums over steps of the weight that a node gives to all cells of a kind, and the number of steps.
    pub(in crate::study) links: BTreeMap<Link, (f64, usize)>,
    /// The same for weights that are all equal.
    pub(in crate::study) uniform: BTreeMap<String, (f64, usize)>,
    /// Heads and queries.
    pub(in crate::study) readers: [usize; 2],
    /// The film of the shown episode.
    pub(in crate::study) film: Option<FinishedFilm>,
}

/// Plays an episode and writes it down, with a film if it is to be shown.
pub(in crate::study) fn record(
    mut start: EpisodeStart,
    shown: bool,
    stopped: &dyn Fn() -> bool,
) -> Result<Record, StudyError> {
    let record = Record {
        trajectory: Trajectory::default(),
        seen: vec![],
        attention: vec![],
        links: BTreeMap::new(),
        uniform: BTreeMap::new(),
        readers: [0; 2],
        film: None,
    };
    let mut writer = Writer { record, shown, camera: None, last: None, stopped };
    start.run(&mut writer)?;
    let Writer { mut record, camera, last, .. } = writer;
    if let (Some(mut camera), Some(last)) = (camera, last) {
        // After the last step there is no decision: its maps stay.
        camera.shoot(&*start.env, last.as_image())?;
        record.film = Some(camera.finish()?);
    }
    Ok(record)
}

struct Writer<'a> {
    record: Record,
    shown: bool,
    camera: Option<FilmRecorder>,
    last: Option<foveate_core::ImageBuf>,
    stopped: &'a dyn Fn() -> bool,
}

/// What a cell counts as when attention is summed up: the agent's own, an object, `wall`, `empty`, or `hidden`.
fn target(view: &GridView, cell: usize) -> String {
    if cell == view.agent {
        return "agent".into();
    }
    match view.visible().find(|&(_, shown)| shown == cell) {
        Some((object, _)) => object_label(view, object),
        None => view.cells[cell].content.clone().unwrap_or_else(|| "hidden".into()),
    }
}

impl Record {
    /// Adds up which nodes attend to which kinds of cells.
    fn add_links(&mut self, view: &GridView, attention: &Attention<'_>) {
        let targets: Vec<String> = (0..view.cells.len()).map(|cell| target(view, cell)).collect();
        let mut kinds = targets.clone();
        kinds.sort();
        kinds.dedup();
        for kind in &kinds {
            let share = targets.iter().filter(|target| *target == kind).count() as f64 / targets.len() as f64;
            let sum = self.uniform.entry(kind.clone()).or_default();
            *sum = (sum.0 + share, sum.1 + 1);
        }
        if attention.queries() != view.cells.len() {
            return;
        }
        for node in map_nodes(view) {
            let Some(cell) = node.cell else { continue };
            for head in 0..attention.heads() {
                let Some(row) = attention.row(head, cell) else { continue };
                let all: f64 = row.iter().map(|&weight| f64::from(weight.abs())).sum();
                for kind in &kinds {
                    let to = row.iter().zip(&targets).filter(|(_, target)| *target == kind);
                    let weight: f64 = to.map(|(&weight, _)| f64::from(weight.abs())).sum();
                    let link = (head, node.name.clone(), kind.clone());
                    let sum = self.links.entry(link).or_default();
                    *sum = (sum.0 + if all > 0.0 { weight / all } else { 0.0 }, sum.1 + 1);
                }
            }
        }
    }
}

impl Observer<StudyError> for Writer<'_> {
    fn before_choice(&mut self, _: BeforeChoice<'_>) -> Result<(), StudyError> {
        if (self.stopped)() { Err(EvaluateError::Stopped.into()) } else { Ok(()) }
    }

    fn before_step(&mut self, BeforeStep { env, chosen, .. }: BeforeStep<'_>) -> Result<(), StudyError> {
        let Some(decision) = chosen.decision else { return Ok(()) };
        let refused = |why: String| Err(StudyError::Refused { why });
        let Some(view) = env.grid_view() else {
            return refused(format!("{} does not say what lies in which cell", env.spec().id));
        };
        let attended = decision.attention.as_ref().and_then(|of| Some((of, importance(of)?)));
        let Some((attention, weights)) = attended else {
            return refused("the agent attends to no cells in some of its decisions".into());
        };
        if weights.len() != view.cells.len() {
            return refused(format!(
                "the agent attends to {} cells, and {} shows {}",
                weights.len(),
                env.spec().id,
                view.cells.len()
            ));
        }
        let record = &mut self.record;
        record.readers = [attention.heads(), attention.queries()];
        record.add_links(&view, attention);
        record.attention.push(weights);
        record.seen.push(env.observation().into());
        record.trajectory.actions.push(match decision.logits {
            Some(values) => values.iter().map(|&value| f64::from(value)).collect(),
            None => decision.action.to_vec(),
        });
        record.trajectory.selected.push(vec![]);
        record.trajectory.shares.push(vec![]);
        if self.shown
            && let Some(maps) = node_maps_picture(&view, attention, [MAPS, MAPS])
        {
            if self.camera.is_none() {
                self.camera = Some(FilmRecorder::new(env, MAPS, MAPS)?);
            }
            if let Some(camera) = &mut self.camera {
                camera.shoot(env, maps.as_image())?;
            }
            self.last = Some(maps);
        }
        Ok(())
    }

    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), StudyError> {
        self.record.trajectory.rewards.push(step.outcome.reward);
        self.record.trajectory.ended = step.outcome.is_over();
        Ok(())
    }
}
