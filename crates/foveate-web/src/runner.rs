//! A runner: an agent, its own copy of the world, and the episode that it drives.

use foveate_core::episode::{Episode, EpisodeRules, RawAction};
use foveate_core::{
    ActContext, Agent, Attention, Env, EnvError, EvaluateError, GridView, Image, ImageBuf, Observation,
    PatchGrid, PolicyError, Selected, Step, Tokens,
};
use foveate_envs::shift::{Plan, Shifted};
use foveate_explain::study::{EffectMeter, PlacedAttention};
use foveate_explain::{OriginalOrder, node_maps_picture};
use foveate_film::PictureKind;

use crate::setup::{LabAgent, SessionError};

/// The episode that values for effects are taken from: one that automatic seeds do not reach soon.
const METER_SEED: u64 = 1_000_003;
/// Width and height of the maps of a grid world, in pixels.
const MAPS: [usize; 2] = [384, 384];

/// An agent with its own copy of the world.
///
/// The agent decides exactly once on every observation, as in an evaluation, so that without interference a runner drives
/// the evaluation's episode bit for bit. When the current observation changes, the agent's memory is restored to the state
/// before the decision, and it decides again.
pub(super) struct Runner {
    env: Shifted,
    agent: Box<dyn Agent>,
    /// Agent and context before the decision on the current observation, if they were kept.
    before: Option<(Box<dyn Agent>, ActContext)>,
    decided: Option<KeptDecision>,
    /// The agent as it would be without interventions; `None` while there are none.
    undisturbed: Option<Undisturbed>,
    /// True if the controller is told about fewer patches than it was trained with.
    is_limited: bool,
    /// The action that the user holds; `None` when the agent drives.
    manual: Option<Vec<f64>>,
    /// True if effects are wanted …
    measures: bool,
    /// … and what measures them, if they can be.
    meter: Option<EffectMeter>,
    episode: Episode,
    /// The last step, if it ended the episode.
    pub(super) end: Option<Step>,
    /// Why the runner stopped for good.
    pub(super) broken: Option<String>,
}

/// A clone of the agent, made when the first intervention began: it sees every observation as the world shows it, with a memory of
/// its own, and never drives. How its action differs is the effect of the interventions on the decision.
struct Undisturbed {
    agent: Box<dyn Agent>,
    context: ActContext,
    /// Agent and context before the decision on the current observation.
    before: Option<(Box<dyn Agent>, ActContext)>,
}

/// The agent's decision on the current observation.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptDecision {
    pub(super) action: Vec<f64>,
    /// What the action would be without interventions; empty while there are none.
    pub(super) undisturbed: Vec<f64>,
    /// The places that it can attend to; `None` without attention, or when that is to things with names.
    pub(super) grid: Option<PatchGrid>,
    /// Names of the things that it can attend to, where these have no places.
    pub(super) named: Vec<String>,
    /// `[rows, named]`: for named things, and for cells of a grid, the weights, a row for each query of each head.
    pub(super) weights: Vec<f32>,
    /// For cells of a grid: its rows and columns, and the number of heads.
    cells: Option<[usize; 3]>,
    pub(super) importance: Vec<f32>,
    /// The places that its controller was told about, most important first; `None` for soft attention, which tells it of
    /// all, weighted.
    pub(super) selected: Option<Vec<u32>>,
    /// `[selected]`: 0, 1, 2, …
    ranks: Vec<u32>,
    /// What it is said to depend on, and how far the action changes without it, as a part of the strongest effect, from 0 to 1;
    /// empty where that is not measured.
    pub(super) effects: Vec<(u32, f64)>,
}

/// A moment of an episode: what the agent sees, and what it does about that.
pub(super) struct Present<'a> {
    pub(super) observation: Observation<'a>,
    /// Which sensor of the unchanged world each shown one is, see [`Env::sensor_order`].
    pub(super) order: Option<&'a [u32]>,
    pub(super) decided: Option<&'a KeptDecision>,
    /// The action that the user holds.
    pub(super) manual: Option<&'a [f64]>,
    /// What lies in which cell, in grid worlds.
    pub(super) view: Option<GridView>,
}

impl<'a> Present<'a> {
    /// In grid worlds, where cells attend to, or without such attention the view.
    pub(super) fn cells(&self) -> Option<(ImageBuf, PictureKind)> {
        let view = self.view.as_ref()?;
        let attention = self.decided.and_then(KeptDecision::cell_attention);
        let maps = attention.and_then(|attention| node_maps_picture(view, &attention, MAPS));
        Some(maps.map_or_else(
            || (view.picture.clone(), PictureKind::Observation),
            |maps| (maps, PictureKind::Maps),
        ))
    }

    /// The original order of a shuffled picture of this size.
    pub(super) fn original_order(&self, image: Image<'_>) -> Option<OriginalOrder<'a>> {
        let frames = image.height() / self.observation.image()?.height().max(1);
        OriginalOrder::new(self.order?, image.width(), image.height(), frames)
    }
}

impl KeptDecision {
    fn new(action: &[f64], attention: Option<Attention<'_>>) -> Self {
        let mut decided = KeptDecision { action: action.to_vec(), ..KeptDecision::default() };
        let Some(attention) = attention else { return decided };
        decided.importance.extend_from_slice(&attention.importance());
        match attention.tokens() {
            Tokens::Named(names) => {
                decided.named = names.to_vec();
                decided.weights = attention.weights().to_vec();
            }
            Tokens::Grid { rows, columns } => {
                decided.cells = Some([rows, columns, attention.heads()]);
                decided.weights = attention.weights().to_vec();
            }
            places => decided.grid = places.grid(),
        }
        decided.selected = attention.selected().map(|_| attention.by_rank());
        decided.ranks.extend(0..decided.selected.as_ref().map_or(0, Vec::len) as u32);
        decided
    }

    /// What it attended to, if that are the cells of a grid.
    fn cell_attention(&self) -> Option<Attention<'_>> {
        let [rows, columns, heads] = self.cells?;
        let queries = self.weights.len() / (heads * rows * columns).max(1);
        Attention::soft(Tokens::Grid { rows, columns }, heads, queries, &self.weights).ok()
    }

    /// What it attended to, if that has places in the picture.
    pub(super) fn attention(&self) -> Result<Option<Attention<'_>>, PolicyError> {
        let Some(grid) = self.grid else { return Ok(None) };
        let soft = Attention::soft(Tokens::Patches(grid), 1, 1, &self.importance)?;
        let chosen = |tokens| soft.with_selected(Selected { tokens, ranks: &self.ranks });
        self.selected.as_deref().map_or(Ok(soft), chosen).map(Some)
    }
}

impl Runner {
    /// A runner of `agent` in a copy of `world`, at the start of the track of `seed`.
    pub(super) fn new(
        world: &dyn Env,
        agent: &LabAgent,
        k: usize,
        plan: &Plan,
        seed: u64,
    ) -> Result<Self, SessionError> {
        let mut runner = Runner {
            env: Shifted::new(world.boxed_clone(), plan)?,
            agent: (agent.make)()?,
            before: None,
            decided: None,
            undisturbed: None,
            is_limited: false,
            manual: None,
            measures: false,
            meter: None,
            episode: Episode::of_seed(seed, EpisodeRules::WHOLE),
            end: None,
            broken: None,
        };
        runner.show_patches(k)?;
        runner.restart(seed);
        Ok(runner)
    }

    /// Starts the track of `seed`. An action held by the user stays held.
    pub(super) fn restart(&mut self, seed: u64) {
        self.episode = Episode::of_seed(seed, EpisodeRules::WHOLE);
        self.episode.reset(&mut self.env, &mut *self.agent);
        (self.before, self.decided, self.undisturbed) = (None, None, None);
        (self.end, self.broken) = (None, None);
    }

    /// Steps taken.
    pub(super) const fn steps(&self) -> u32 {
        self.episode.result().steps as u32
    }

    /// Sum of rewards.
    pub(super) const fn score(&self) -> f64 {
        self.episode.result().total
    }

    /// Returns whether the episode is over, for whichever reason.
    pub(super) const fn is_over(&self) -> bool {
        self.end.is_some() || self.broken.is_some()
    }

    /// Changes the shifts of picture and controls, from the current observation on; whether the world then shows another number of
    /// sensors.
    pub(super) fn shift(&mut self, plan: &Plan) -> Result<bool, EnvError> {
        let before = self.env.spec().observation.numbers();
        self.env.set_plan(plan)?;
        self.look_again();
        Ok(self.env.spec().observation.numbers() != before)
    }

    /// Draws a new order of the sensors from the current observation on; whether a shift can.
    pub(super) fn shuffle_now(&mut self) -> bool {
        let any = self.env.shuffle_now();
        if any {
            self.look_again();
        }
        any
    }

    /// Tells the controller about the first `k` patches only, see [`Agent::limit_patches`]; does nothing for an agent that
    /// cannot be shown fewer.
    pub(super) fn show_patches(&mut self, k: usize) -> Result<(), SessionError> {
        let Some(most) = self.agent.patches() else { return Ok(()) };
        // The agent from before the last look has to forget the same.
        for agent in self.before.iter_mut().map(|(agent, _)| agent).chain([&mut self.agent]) {
            agent.limit_patches(k)?;
        }
        self.is_limited = k < most;
        self.look_again();
        Ok(())
    }

    /// Measures what changes the actions from now on, with values from another episode of `world`; `None` to stop. Where that
    /// cannot be measured, or that episode fails, nothing is.
    pub(super) fn measure_effects(&mut self, world: Option<&dyn Env>) {
        if world.is_some() == self.measures {
            return;
        }
        self.measures = world.is_some();
        let made = world.map(|world| EffectMeter::of_episode(world, &*self.agent, METER_SEED));
        self.meter = made.and_then(|made| made.unwrap_or(None));
        self.look_again();
    }

    /// Holds this action from now on, clamped to the world's bounds; `None` returns control to the agent.
    pub(super) fn set_manual(&mut self, action: Option<&[f64]>) -> Result<(), String> {
        let Some(action) = action else {
            self.manual = None;
            return Ok(());
        };
        let space = &self.env.spec().action;
        if space.is_discrete() {
            return Err("this world takes choices, which cannot be steered by hand".into());
        }
        if action.len() != space.len() || action.iter().any(|x| !x.is_finite()) {
            return Err(format!(
                "an action of {} numbers; {} finite ones are needed",
                action.len(),
                space.len()
            ));
        }
        let within = action.iter().zip(space.bounds()).map(|(x, [low, high])| x.clamp(low, high));
        self.manual = Some(within.collect());
        Ok(())
    }

    /// Returns whether the user drives.
    pub(super) const fn is_manual(&self) -> bool {
        self.manual.is_some()
    }

    /// Bounds of the action; 0 and 1 for choices.
    pub(super) fn bounds(&self) -> (Vec<f64>, Vec<f64>) {
        self.env.spec().action.bounds().into_iter().map(|[low, high]| (low, high)).unzip()
    }

    /// Steps a second.
    pub(super) fn fps(&self) -> f64 {
        self.env.spec().fps
    }

    /// Takes one step, unless the episode is over.
    pub(super) fn step(&mut self) {
        if self.is_over() {
            return;
        }
        self.decide(false);
        let Some(decided) = &self.decided else { return };
        let mut action = RawAction::Outputs(self.manual.as_ref().unwrap_or(&decided.action));
        match self.episode.step::<EvaluateError>(&mut self.env, &mut action, &mut ()) {
            Ok(step) => {
                self.end = step.is_over().then_some(step);
                self.decided = None;
            }
            Err(error) => self.broken = Some(error.reason()),
        }
    }

    /// Lets the agent decide, if it has not yet decided on this observation. With `keep`, the decision can be repeated.
    fn decide(&mut self, keep: bool) {
        if self.decided.is_some() || self.broken.is_some() {
            return;
        }
        let mut effects = vec![];
        if let Some(meter) = self.meter.as_ref().filter(|_| keep) {
            match meter.measure(self.env.observation(), &*self.agent, self.episode.context()) {
                Ok(measured) => effects = measured,
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return;
                }
            }
            for (_, effect) in &mut effects {
                *effect = (*effect / meter.most()).min(1.0);
            }
        }
        self.before = keep.then(|| (self.agent.boxed_clone(), self.episode.context().clone()));
        let undisturbed = self.decide_undisturbed(keep);
        match self.agent.act(self.env.observation(), self.episode.context()) {
            Ok(decision) => {
                let placed = self.meter.as_ref().zip(decision.attention.as_ref());
                let placed = placed.and_then(|(meter, attention)| meter.placed(attention, &effects));
                let mut decided = KeptDecision {
                    undisturbed,
                    effects,
                    ..KeptDecision::new(decision.action, decision.attention)
                };
                // Cells are shown where their contents come from.
                if let Some(PlacedAttention { grid, weights, effects }) = placed {
                    decided = KeptDecision { grid: Some(grid), importance: weights, effects, ..decided };
                }
                self.decided = Some(decided);
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    /// What the agent would do without interventions; empty while there are none.
    fn decide_undisturbed(&mut self, keep: bool) -> Vec<f64> {
        if self.env.plan().is_empty() && !self.is_limited {
            self.undisturbed = None;
            return vec![];
        }
        let now = self.episode.context().clone();
        if self.undisturbed.is_none() {
            let mut agent = self.agent.boxed_clone();
            if self.is_limited && agent.limit_patches(usize::MAX).is_err() {
                return vec![];
            }
            self.undisturbed = Some(Undisturbed { agent, context: now.clone(), before: None });
        }
        let Some(Undisturbed { agent, context, before }) = &mut self.undisturbed else { return vec![] };
        *before = keep.then(|| (agent.boxed_clone(), context.clone()));
        (context.reward, context.choice) = (now.reward, now.choice);
        let decision = agent.act(self.env.unshifted(), context);
        decision.map_or_else(|_| vec![], |decision| decision.action.to_vec())
    }

    /// Undoes the decision on the current observation, if the agent before it was kept; otherwise the change shows from the
    /// next observation on.
    fn look_again(&mut self) {
        if let (Some(_), Some((agent, context))) = (&self.decided, self.before.take()) {
            self.agent = agent;
            *self.episode.context() = context;
            self.decided = None;
            if let Some(undisturbed) = &mut self.undisturbed
                && let Some((agent, context)) = undisturbed.before.take()
            {
                (undisturbed.agent, undisturbed.context) = (agent, context);
            }
        }
    }

    /// This moment.
    pub(super) fn present(&mut self) -> Present<'_> {
        self.decide(true);
        Present {
            observation: self.env.observation(),
            order: self.env.sensor_order(),
            view: self.env.grid_view(),
            decided: self.decided.as_ref(),
            manual: self.manual.as_deref(),
        }
    }

    /// The world as people see it; whether it has such a picture.
    pub(super) fn render(&self, view: &mut ImageBuf) -> bool {
        self.env.render(view).is_ok()
    }
}
