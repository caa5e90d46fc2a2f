//! The recorded episode, step by step.

use std::path::Path;

use foveate_core::episode::{ActorError, Episode, EpisodeRules, RawAction};
use foveate_core::{
    Action, Agent, Attention, Env, EnvError, EnvSpec, EvaluateError, ImageBuf, Observation, RolloutJob,
    Tokens,
};
use foveate_explain::{
    OriginalOrder, attended_picture, attention_marks, effect_marks, node_maps_picture, overlay, sensor_names,
    study::{EffectMeter, PlacedAttention},
};
use foveate_film::{
    AgentView, Dial, FilmError, FrameComposer, FrameContent, FrameSettings, Mark, PictureKind,
};

use foveate_registry::{WORLDS, action_names};

use super::{WatchReport, WatchRequest};
use crate::RunError;
use crate::workers::Stop;

pub(super) struct FilmedEpisode {
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
    episode: Episode,
    composer: FrameComposer,
    size: (usize, usize),
    view: Option<ImageBuf>,
    /// Buffer for pictures that are not RGB.
    scratch: Vec<u8>,
    /// Measures effects, if they are wanted and can be measured.
    meter: Option<EffectMeter>,
    /// The decision on the current observation; the agent decides once per observation.
    decided: Option<ShownDecision>,
}

/// A stored decision.
struct ShownDecision {
    action: Vec<f64>,
    /// The action in the form that the dials show.
    shown: Vec<f64>,
    /// The observation with the overlay, if it is a picture and the agent attends to places in it; of shuffled patches
    /// with the picture in its original order on the right. Of a grid, maps of where its cells attend to, or the view.
    overlaid: Option<ImageBuf>,
    /// Names of the attended inputs, if they have names, and `[queries, names]`: their weights.
    named: Option<(Vec<String>, Vec<f32>)>,
    /// What `overlaid` shows.
    kind: PictureKind,
    marks: Vec<Mark>,
}

impl FilmedEpisode {
    /// Resets the world to the requested episode.
    pub(super) fn new(
        request: &WatchRequest<'_>,
        usual_size: (usize, usize),
        stop: &Stop,
    ) -> Result<Self, FilmError> {
        let mut env = request.env.boxed_clone();
        let mut agent = request.agent.boxed_clone();
        let size = request.size.unwrap_or(usual_size);
        let composer = FrameComposer::new(plan(request, size))?;
        env.reset(Some(request.seed));
        for _ in 0..request.episode {
            // If the user has already asked to stop, there is no video; see `run`.
            if stop.asked() {
                break;
            }
            env.reset(None);
        }
        let job = RolloutJob { genome: 0, episode: request.episode, env_seed: request.seed };
        let mut episode = Episode::new(job, EpisodeRules::WHOLE);
        episode.resume(&mut *agent);
        let (width, height) = composer.world_size();
        Ok(FilmedEpisode {
            env,
            agent,
            episode,
            composer,
            size,
            view: Some(ImageBuf::black(width, height)),
            scratch: vec![],
            meter: None,
            decided: None,
        })
    }

    /// Draws what changes the actions of this episode from now on, if that can be measured. Values come from the episode of
    /// another seed; if that fails, nothing is measured, for this film does not depend on it.
    pub(super) fn measure_effects(&mut self, request: &WatchRequest<'_>) {
        self.meter = EffectMeter::of_episode(&*self.env, request.agent, request.seed ^ 1).unwrap_or(None);
    }

    pub(super) fn size(&self) -> (usize, usize) {
        self.size
    }

    pub(super) fn steps(&self) -> usize {
        self.episode.result().steps as usize
    }

    pub(super) fn is_over(&self) -> bool {
        self.episode.is_over()
    }

    /// The current frame.
    pub(super) fn compose(&mut self) -> Result<&ImageBuf, RunError> {
        self.decide()?;
        if let Some(view) = &mut self.view {
            match self.env.render(view) {
                Ok(()) => {}
                // A world without a picture is recorded by the agent's observation.
                Err(EnvError::NoView { .. }) => self.view = None,
                Err(error) => return Err(self.refused(error)),
            }
        }
        let fps = self.env.spec().fps;
        let (step, score) = (self.steps(), self.episode.result().total);
        let observation = self.env.observation();
        let decided = self.decided.as_ref();
        let marks = decided.map_or(&[][..], |d| &d.marks);
        let overlaid = decided.and_then(|d| d.overlaid.as_ref());
        let named = decided.and_then(|d| d.named.as_ref());
        let kind = decided.map(|d| d.kind).unwrap_or_default();
        let seen = match (observation, overlaid) {
            _ if named.is_some() => {
                let (names, weights) = named.map_or((&[][..], &[][..]), |(names, weights)| (names, weights));
                AgentView::Attended { names, weights }
            }
            (_, Some(overlaid)) => AgentView::picture(kind, overlaid.as_image(), marks),
            (_, None) => match observation.image() {
                Some(pixels) => AgentView::Picture(pixels.to_rgb(&mut self.scratch), marks),
                None => AgentView::Numbers(observation.numbers().unwrap_or_default()),
            },
        };
        Ok(self.composer.compose(&FrameContent {
            world: self.view.as_ref().map(ImageBuf::as_image),
            seen,
            // After the end the agent still observes, but no longer acts.
            action: if self.episode.is_over() { &[] } else { decided.map_or(&[][..], |d| &d.shown) },
            score,
            step,
            time_s: step as f64 / fps,
        }))
    }

    /// Advances by one step.
    pub(super) fn step(&mut self) -> Result<(), RunError> {
        self.composer.skip_frame(self.steps(), self.episode.result().total);
        self.decide()?;
        let Some(ShownDecision { action, .. }) = self.decided.take() else { return Ok(()) };
        self.episode.step::<EvaluateError>(&mut *self.env, &mut RawAction::Outputs(&action), &mut ())?;
        Ok(())
    }

    pub(super) fn report(&self, file: &Path, bytes: u64, frames: usize) -> WatchReport {
        let (steps, score, ended) = (self.steps(), self.episode.result().total, self.is_over());
        WatchReport { file: file.to_path_buf(), bytes, frames, steps, score, ended }
    }

    /// Runs the agent once per observation, since this changes its memory.
    fn decide(&mut self) -> Result<(), RunError> {
        if self.decided.is_some() {
            return Ok(());
        }
        let observation = self.env.observation();
        let measured = self.meter.as_ref().filter(|_| observation.image().is_some());
        let measured = measured.map(|meter| meter.measure(observation, &*self.agent, self.episode.context()));
        let effects = match measured.transpose() {
            Ok(effects) => effects.unwrap_or_default(),
            Err(error) => return Err(self.refused(error)),
        };
        let decision = match self.agent.act(observation, self.episode.context()) {
            Ok(decision) => decision,
            Err(error) => return Err(self.refused(error)),
        };
        let (mut overlaid, mut marks, mut named, mut kind) = (None, Vec::new(), None, PictureKind::default());
        if let Some(attention) = &decision.attention
            && let Tokens::Named(names) = attention.tokens()
        {
            let known = WORLDS.get(&self.env.spec().id).map_or(&[][..], |world| world.sensors);
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            let known = if known.is_empty() { names } else { &known };
            let shown = if matches!(observation, Observation::Vector(_)) {
                sensor_names(self.env.sensor_order(), names.len(), known)
            } else {
                names.to_vec()
            };
            named = Some((shown, attention.weights().to_vec()));
        }
        if let Some(view) = self.env.grid_view() {
            let size = self.composer.seen_size().into();
            let maps = |attention| node_maps_picture(&view, attention, size);
            let maps = decision.attention.as_ref().and_then(maps);
            if maps.is_some() {
                kind = PictureKind::Maps;
            }
            overlaid = maps.or(Some(view.picture));
        }
        if let Some(pixels) = observation.image() {
            let mut scratch = vec![];
            // Cells are shown where their contents come from.
            let placed = self.meter.as_ref().zip(decision.attention.as_ref());
            let placed = placed.and_then(|(meter, attention)| meter.placed(attention, &effects));
            let shown = placed.as_ref().and_then(PlacedAttention::attention);
            let attention = shown.as_ref().or(decision.attention.as_ref());
            let effects = placed.as_ref().map_or(&effects, |placed| &placed.effects);
            let grid = attention.and_then(Attention::grid);
            let image = attended_picture(pixels, grid, &mut scratch);
            let frames = image.height() / pixels.height().max(1);
            let mut attended = vec![];
            if let Some(attention) = attention {
                overlaid = overlay(image, attention);
                let (width, height) = (image.width(), image.height());
                attended = match &self.meter {
                    Some(meter) if !effects.is_empty() => {
                        effect_marks(width, height, attention, effects, meter.most())
                    }
                    _ => attention_marks(width, height, attention),
                };
            }
            // Of shuffled patches, people also see the picture in its order, with the same patches marked.
            let order = self
                .env
                .sensor_order()
                .and_then(|order| OriginalOrder::new(order, image.width(), image.height(), frames));
            if let Some(order) = order {
                let shown = overlaid.as_ref().map_or(image, ImageBuf::as_image);
                let (both, moved) = order.side_by_side(shown, &attended);
                (overlaid, attended, kind) = (Some(both), moved, PictureKind::SideBySide);
            }
            marks.extend(attended.iter().map(|m| Mark {
                x: m.x,
                y: m.y,
                width: m.width,
                height: m.height,
                opacity: m.opacity,
                effect: m.effect,
            }));
        }
        let action = decision.action.to_vec();
        let space = &self.env.spec().action;
        let shown = match space.choose(&action) {
            // Only the choice: scores have no scale of their own.
            Ok(Action::Discrete(choice)) => {
                (0..space.len()).map(|i| f64::from(u8::from(i == choice))).collect()
            }
            // An invalid action is shown unchanged, and rejected in the step.
            Ok(Action::Continuous(_)) | Err(_) => action.clone(),
        };
        self.decided = Some(ShownDecision { action, shown, overlaid, named, kind, marks });
        Ok(())
    }

    fn refused(&self, error: impl Into<ActorError>) -> RunError {
        self.episode.refused(error.into()).into()
    }
}

/// The settings that stay constant during the video.
fn plan(request: &WatchRequest<'_>, (width, height): (usize, usize)) -> FrameSettings {
    let spec = request.env.spec();
    let labels = &request.labels;
    let mut title = vec![labels.env.clone(), labels.picture.clone(), labels.variant.clone()];
    title.retain(|part| !part.is_empty());
    title.push(format!("seed {}", request.seed));
    if request.episode > 0 {
        title.push(format!("episode {}", request.episode));
    }
    let dials = dials(spec);
    FrameSettings {
        width,
        height,
        title: title.join("   "),
        dials,
        max_steps: request.steps.or(spec.max_steps),
    }
}

/// Names and bounds of the world's action dimensions, as people see them.
pub(crate) fn dials(spec: &EnvSpec) -> Vec<Dial> {
    let named = action_names(spec).into_iter().zip(spec.action.bounds());
    named.map(|(name, [low, high])| Dial { name, low, high }).collect()
}
