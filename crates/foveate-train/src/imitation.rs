//! Imitation learning: learns from an expert by the gradient of the differentiable part of a policy
//! (`DAgger`: Ross, Gordon and Bagnell 2011, "A reduction of imitation learning and structured prediction to
//! no-regret online learning").
//!
//! A stage of imitation may follow stages of evolution. Parameters that only evolution can find, such as
//! where to look, stay fixed; the gradient fits the others, which it finds faster. Each round has three
//! steps:
//!
//! 1. The current weights run some episodes (in the first `expert_rounds` rounds the expert does), with
//!    random disturbances, and the expert's action is recorded in every step. With
//!    [`expert_share`](ImitationConfig::expert_share), the expert acts in some of the steps.
//! 2. These episodes join the last `keep` episodes, or as many of the last as fit [`MOST_BYTES`].
//! 3. Adam takes `updates` steps along the gradient of the squared error on `pieces` segments of `piece`
//!    steps; half of the segments come from the newer half of the kept episodes, or, with
//!    [`in_turn`](ImitationConfig::in_turn), one from each in turn, or, with
//!    [`priority`](ImitationConfig::priority), they are drawn by their latest errors. Longer gradients
//!    than [`clip`](ImitationConfig::clip) are shortened to it.
//!
//! The result, [`Learner::weights`], is a moving average of the weights over the updates.

mod priorities;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use foveate_core::{
    Demonstration, DemonstrationPlan, Experience, GazePoint, GradientParts, LearnError, Learner, Model,
    PackedPictures, Piece, Pieces, Record, Recording, Rng, Seed, StateDict, StateReader, Taught, Tensor,
    TensorData,
};
use foveate_evolve::Optimizer;
use foveate_learn::Clip;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::descent::Descent;
use crate::descriptor::{
    JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom, parse,
};
use crate::evolution::vectors;
use crate::fingerprint::SettingsOrder;
use crate::learning::{Learning, Measures, Method, Round, shuffle};
use priorities::{Draws, Errors};

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "imitation",
    summary: "the controller learns from the world's expert, by gradients; no evolution",
    learns_from: LearnsFrom::Demonstrations,
    schedulable: true,
    parse: parse::<ImitationConfig>,
};

/// Settings that came after the first runs are written only where they differ from what those did, so that recipes keep
/// their digests.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(clip: &f64) -> bool {
    *clip == 1.0
}

/// See [`is_one`].
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// See [`is_one`].
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_single(turn: &usize) -> bool {
    *turn == 1
}

impl LearnerSettings for ImitationConfig {
    fn check(&self) -> Result<(), LearnError> {
        let &ImitationConfig {
            expert_share,
            turn,
            pushes,
            keep,
            updates,
            pieces,
            piece,
            burn_in,
            learning_rate,
            averaging,
            clip,
            in_turn,
            priority,
            dropout,
            ..
        } = self;
        let refuse = |why: String| Err(LearnError::BadConfig { why });
        for (name, value, least) in [
            ("keep", keep, 1),
            ("updates", updates, 1),
            ("pieces", pieces, 1),
            ("piece", piece, 1),
            ("burn_in", burn_in, 0),
            ("turn", turn, 1),
        ] {
            if value < least || value > MOST {
                return refuse(format!("{name} = {value}; choose from {least} to {MOST}"));
            }
        }
        if !(0.0..=100.0).contains(&pushes) {
            return refuse(format!("pushes = {pushes}; they are per 100 steps: choose from 0 to 100"));
        }
        if !(0.0..=1.0).contains(&expert_share) {
            return refuse(format!("expert_share = {expert_share}; choose from 0 to 1"));
        }
        if !(learning_rate > 0.0 && learning_rate.is_finite()) {
            return refuse(format!("learning_rate = {learning_rate}; it must be above 0"));
        }
        if !(0.0..1.0).contains(&averaging) {
            return refuse(format!("averaging = {averaging}; it must be at least 0 and below 1"));
        }
        if !(clip >= 0.0 && clip.is_finite()) {
            return refuse(format!("clip = {clip}; it must be above 0, or 0 for gradients of any length"));
        }
        if !(0.0..=1.0).contains(&priority) {
            return refuse(format!("priority = {priority}; choose from 0 to 1"));
        }
        if !(0.0..1.0).contains(&dropout) {
            return refuse(format!("dropout = {dropout}; it must be at least 0 and below 1"));
        }
        for (name, other) in [("gaze", self.gaze), ("stakes", self.stakes)] {
            if self.names && other {
                return refuse(format!("names and {name}; a stage learns one of them"));
            }
        }
        if in_turn && priority > 0.0 {
            return refuse(format!("in_turn and priority = {priority}; segments are drawn in one way only"));
        }
        Ok(())
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("a plain table of numbers")
    }

    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let LearnerParts { weights, seed, model, fitness } = parts;
        let Some(model) = model else {
            let why =
                "imitation needs an agent with a part that learns by gradients; this one has none".into();
            return Err(LearnError::BadConfig { why });
        };
        let learner = Imitation::new(self.clone(), weights, seed, model.boxed_clone())?;
        Ok(Box::new(learner.with_fitness(fitness)))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let &JobSize { params, longest, steps, demonstrated, observed, .. } = job;
        let steps = (self.keep as u64).saturating_mul(longest).min(steps);
        // A gaze comes with the picture that is seen, a byte each.
        let demonstrated = if self.gaze { observed.div_ceil(4) } else { demonstrated };
        let bytes = steps.saturating_mul(4).saturating_mul(demonstrated).min(MOST_BYTES);
        LearnerSize {
            memory: bytes.saturating_mul(4).saturating_add(vectors(params)),
            saved: bytes.saturating_add(params.saturating_mul(64)),
            what: format!("{steps} demonstrated steps of {demonstrated} numbers each"),
            remedy: "lower the stage's keep, or the agent's top_k or features",
        }
    }
}

/// Settings of an [`Imitation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct ImitationConfig {
    /// Rounds in which the expert acts, before the learner acts.
    pub expert_rounds: u64,
    /// In rounds in which the learner acts: the share of steps in which the expert acts in its place, `0.0..=1.0` (β of
    /// `DAgger`). The less the learner acts, the nearer the episodes stay to those of the expert. Left out of the configuration
    /// where it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub expert_share: f64,
    /// Steps that the expert or the learner acts before it is drawn anew who acts, at least 1. In a long turn the learner gets
    /// where it would not get with the expert at its side, and the expert shows how to go on from there. Left out of the
    /// configuration where it is 1.
    #[serde(skip_serializing_if = "is_single")]
    pub turn: usize,
    /// Random disturbances per 100 steps, `0.0..=100.0`.
    pub pushes: f64,
    /// Episodes that are kept, at least 1.
    pub keep: usize,
    /// Steps of Adam per round, at least 1.
    pub updates: usize,
    /// Segments of episodes per step of Adam, at least 1.
    pub pieces: usize,
    /// Steps of a segment, at least 1.
    pub piece: usize,
    /// Steps before a segment that fill the agent's memory (burn-in).
    pub burn_in: usize,
    /// Adam's step size, above 0.
    pub learning_rate: f64,
    /// Share of the old average that each step of Adam keeps, `0.0..1.0`.
    pub averaging: f64,
    /// Largest Euclidean norm of a gradient, the mean over the steps of its segments; longer ones are scaled down to it. 0 for
    /// any length.
    #[serde(skip_serializing_if = "is_one")]
    pub clip: f64,
    /// True if the segments of a round come from its new episodes, from one after the other in random order and from the first
    /// again after the last, in place of random ones of the kept episodes. Left out of the configuration when it is not so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// Exponent of the errors by which segments are drawn, `0.0..=1.0`: steps with large errors are learnt from more often, as in
    /// prioritised replay; 0 for all alike. Left out of the configuration where it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: f64,
    /// Share of the patches, `0.0..1.0`, that is left out of every step that is learnt from, drawn anew for every update; for
    /// agents that act without some of them. Left out of the configuration where it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropout: f64,
    /// True if the expert says what actions cost. Each step's squared error then counts by what is at stake in it: by how much
    /// the worst action costs more than the best. Where actions are choices, their scores learn the costs instead, so that the
    /// one with the lowest expected cost is chosen. Left out of the configuration when it is not so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stakes: bool,
    /// True if the attention learns where the expert looks, in place of the controller what it does; the expert acts in all
    /// rounds. Left out of the configuration when it is not so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gaze: bool,
    /// True if an agent with sensors learns which is which, in place of what the expert does. Left out of the configuration when
    /// it is not so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub names: bool,
}

impl Default for ImitationConfig {
    fn default() -> Self {
        ImitationConfig {
            expert_rounds: 1,
            expert_share: 0.0,
            turn: 1,
            pushes: 1.0,
            keep: 600,
            updates: 1200,
            pieces: 24,
            piece: 150,
            burn_in: 60,
            learning_rate: 0.003,
            averaging: 0.998,
            clip: 1.0,
            in_turn: false,
            priority: 0.0,
            dropout: 0.0,
            stakes: false,
            gaze: false,
            names: false,
        }
    }
}

/// Most bytes of demonstrations that are kept, their pictures run-length coded; the oldest are dropped first. The newest one is
/// always kept.
pub const MOST_BYTES: u64 = 800_000_000;

/// Upper limit of every count; a larger number is a typing error.
const MOST: usize = 100_000;

/// See [`SettingsOrder`]. Older states were all made with a clip of 1, not in turn, and from actions alone, and do not say so.
const ORDER: SettingsOrder = SettingsOrder {
    always: "keep updates pieces piece burn_in expert_rounds pushes learning_rate averaging",
    later: &[
        &[("clip", 1.0)],
        &[("in_turn", 0.0)],
        &[("stakes", 0.0), ("attention", 0.0)],
        &[("expert_share", 0.0)],
        &[("priority", 0.0)],
        &[("dropout", 0.0)],
        &[("turn", 1.0)],
    ],
    words: &[],
};

impl ImitationConfig {
    /// The settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64> {
        let mut settings = self.table();
        settings.retain(|name, _| name != "gaze" && name != "names");
        settings.insert("attention".into(), (i64::from(self.gaze) + 2 * i64::from(self.names)).into());
        ORDER.numbers(settings)
    }
}

/// The method; see the [module documentation](self).
pub struct ImitationMethod {
    pub(crate) config: ImitationConfig,
    /// Numbers, bytes of the picture and actions of a step.
    shape: Shape,
    /// The last `keep` demonstrations, oldest first.
    demonstrations: VecDeque<Arc<Demonstration>>,
    /// How many bytes of them are kept, [`MOST_BYTES`].
    room: u64,
    /// The latest errors of their steps; empty without priorities.
    errors: Errors,
    /// Demonstrations and errors that a round which fails goes back to.
    before: Option<(VecDeque<Arc<Demonstration>>, Errors)>,
}

/// Sizes of a step of a demonstration, see [`Student`](foveate_core::Student).
#[derive(Clone, Copy)]
struct Shape {
    inputs: usize,
    picture: usize,
    actions: usize,
}

/// The learner; see the [module documentation](self).
pub type Imitation = Learning<ImitationMethod>;

impl Imitation {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `weights` are empty, not finite or not of the model's size.
    pub fn new(
        config: ImitationConfig,
        weights: Vec<f64>,
        seed: Seed,
        mut model: Box<dyn Model>,
    ) -> Result<Self, LearnError> {
        config.check()?;
        if config.gaze {
            model = model.taught(Taught::Gaze).ok_or_else(|| LearnError::BadConfig {
                why: "gaze = true needs an agent with softmax attention to patches, as attention-agent; this one has none".into(),
            })?;
        }
        if config.names {
            model = model.taught(Taught::Names).ok_or_else(|| LearnError::BadConfig {
                why: "names = true needs an agent with sensors and as many codes as them, as attention-neuron on numbers; this one has none"
                    .into(),
            })?;
        }
        let Some(student) = model.student().filter(|student| student.inputs() + student.picture() > 0) else {
            let why = "imitation needs an agent that learns from demonstrations; this one learns from its own \
                       transitions, with dqn or ppo";
            return Err(LearnError::BadConfig { why: why.into() });
        };
        if config.dropout > 0.0 && !student.drop_patches(config.dropout, seed) {
            let why = "dropout needs an agent that acts without some of its patches, as attention-neuron on pictures";
            return Err(LearnError::BadConfig { why: why.into() });
        }
        let (inputs, picture, actions) = (student.inputs(), student.picture(), student.actions());
        let shape = Shape { inputs, picture, actions };
        let adam = |params| Optimizer::adam(params, config.learning_rate, 0.9, 0.999);
        let descent = Descent::double("imitation", weights, seed, &mut *model, adam, config.averaging)?;
        let clip = if config.clip > 0.0 { config.clip } else { f64::INFINITY };
        let method = ImitationMethod {
            config,
            shape,
            demonstrations: VecDeque::new(),
            room: MOST_BYTES,
            errors: Errors::default(),
            before: None,
        };
        Ok(Learning::of(method, descent.with_clip(Clip::Norm(clip)), model))
    }
}

impl ImitationMethod {
    /// How many of the newest of these demonstrations are kept.
    fn kept(&self, demonstrations: &VecDeque<Arc<Demonstration>>) -> usize {
        let mut bytes = 0_u64;
        let mut fits = |(index, demonstration): (usize, &Arc<Demonstration>)| {
            bytes = bytes.saturating_add(bytes_of(demonstration));
            index == 0 || bytes <= self.room
        };
        let newest = demonstrations.iter().rev().take(self.config.keep).enumerate();
        newest.take_while(|newest| fits(*newest)).count()
    }

    /// Who acts in round `generation`, the expert or the learner, and how often disturbances occur.
    fn plan(&self, generation: u64) -> DemonstrationPlan {
        let expert_drives = self.config.gaze || generation < self.config.expert_rounds;
        DemonstrationPlan {
            expert_drives,
            expert_share: self.config.expert_share,
            turn: self.config.turn as u64,
            pushes: self.config.pushes,
            costs: self.config.stakes,
            gaze: self.config.gaze,
        }
    }

    /// A step of Adam on random segments of the demonstrations.
    fn update(
        &mut self,
        round: &mut Round<'_>,
        number: u64,
        scratch: &mut Scratch,
    ) -> Result<(), LearnError> {
        let ImitationConfig { pieces: count, piece, burn_in, dropout, .. } = self.config;
        let Scratch { parts, turns, draws, drawn, errors, loss, norm } = scratch;
        round.begin_update()?;
        let Descent { seed, generation, .. } = *round.descent;
        let seed = seed.child("generation", generation).child("update", number);
        let update = Arc::make_mut(parts);
        update.burn_in = burn_in;
        update.dropout = (dropout > 0.0).then(|| (dropout, seed.child("dropout", 0)));
        let pieces = &mut update.pieces;
        let mut rng = seed.rng();
        let mut steps = 0;
        pieces.clear();
        drawn.clear();
        for i in 0..count {
            let kept = self.demonstrations.len();
            if let Some(draws) = draws {
                let (index, range) = draws.draw(&mut rng, piece);
                drawn.push(index);
                steps += range.len();
                pieces.push(Piece { demonstration: Arc::clone(&self.demonstrations[index]), steps: range });
                continue;
            }
            let index = if turns.is_empty() {
                let oldest = if i % 2 == 0 { kept / 2 } else { 0 };
                oldest + below(&mut rng, kept - oldest)
            } else {
                kept - 1 - turns[(number as usize * count + i) % turns.len()]
            };
            let demonstration = &self.demonstrations[index];
            let from = first_step(&mut rng, demonstration.steps, piece);
            let to = demonstration.steps.min(from + piece);
            pieces.push(Piece { demonstration: Arc::clone(demonstration), steps: from..to });
            steps += to - from;
        }
        errors.clear();
        let parts: Arc<dyn GradientParts> = Arc::clone(parts) as _;
        round.add_gradients(&parts, &mut |sums| errors.push(sums[0]))?;
        let error = errors.iter().fold(0.0, |sum, error| sum + error);
        let of_update = round.descent.step(error, steps, round.gradient)?;
        if let Some(draws) = draws {
            for ((&index, piece), &error) in drawn.iter().zip(&scratch.parts.pieces).zip(&*errors) {
                draws.learnt(&mut self.errors, index, piece.steps.clone(), error);
            }
        }
        *loss += error / steps as f64;
        *norm += of_update;
        Ok(())
    }

    /// Costs of a step where `steps` steps have `costs`: one for each choice, else three for each number of an action.
    fn costs_per_step(&self, costs: usize, steps: usize) -> usize {
        let actions = self.shape.actions;
        if costs == steps * actions { actions } else { 3 * actions }
    }

    /// Checks that `demonstration` fits the model; the error says why not.
    fn check_demonstration(&self, demonstration: &Demonstration) -> Result<(), String> {
        let Demonstration { inputs, pictures, actions, costs, gaze, steps } = demonstration;
        let (wanted_inputs, wanted_actions) = (self.shape.inputs, self.shape.actions);
        if *steps == 0 || inputs.len() != steps * wanted_inputs || actions.len() != steps * wanted_actions {
            return Err(format!(
                "a demonstration of {steps} steps has {} inputs and {} actions; {wanted_inputs} and {wanted_actions} a step are due",
                inputs.len(),
                actions.len()
            ));
        }
        if let Some(x) = inputs.iter().chain(actions).find(|x| !x.is_finite()) {
            return Err(format!("a demonstration holds {x}"));
        }
        let mut per_step = 0;
        if self.config.stakes {
            // All demonstrations are of one world.
            let (costs, steps) =
                self.demonstrations.front().map_or((costs.len(), *steps), |d| (d.costs.len(), d.steps));
            per_step = self.costs_per_step(costs, steps);
        }
        if costs.len() != steps * per_step || costs.iter().any(|cost| !cost.is_finite()) {
            return Err(format!(
                "a demonstration of {steps} steps has {} costs; {} finite ones are due",
                costs.len(),
                steps * per_step
            ));
        }
        let wanted = if self.config.gaze { *steps } else { 0 };
        if gaze.len() != wanted {
            return Err(format!(
                "a demonstration of {steps} steps has a gaze in {}; {wanted} are due",
                gaze.len()
            ));
        }
        if let Some(point) = gaze.iter().flatten().find(|point| !point.is_valid()) {
            let GazePoint { x, y, weight } = point;
            return Err(format!(
                "a demonstration looks at ({x}, {y}) with weight {weight}; places are 0 to 1 and weights above 0"
            ));
        }
        let wanted = if self.shape.picture > 0 { *steps } else { 0 };
        if pictures.len() != wanted {
            return Err(format!(
                "a demonstration of {steps} steps has {} pictures; {wanted} are due",
                pictures.len()
            ));
        }
        pictures.check(self.shape.picture).map_err(|error| format!("a demonstration: {error}"))
    }
}

/// Buffers of an update, allocated once per round.
struct Scratch {
    /// The segments that the gradient is computed on.
    parts: Arc<Pieces>,
    /// The new demonstrations in the order of their turns, counted from the newest; empty if segments are random.
    turns: Vec<usize>,
    /// What segments are drawn by with priorities …
    draws: Option<Draws>,
    /// … and the demonstrations of the drawn ones.
    drawn: Vec<usize>,
    /// The error of each segment.
    errors: Vec<f64>,
    /// Sum over the updates of the mean error of a step.
    loss: f64,
    /// Sum over the updates of the gradient's norm.
    norm: f64,
}

impl Scratch {
    fn new(pieces: usize) -> Self {
        Scratch {
            parts: Arc::new(Pieces { pieces: Vec::with_capacity(pieces), ..Pieces::default() }),
            turns: vec![],
            draws: None,
            drawn: Vec::with_capacity(pieces),
            errors: Vec::with_capacity(pieces),
            loss: 0.0,
            norm: 0.0,
        }
    }
}

/// Bytes of a demonstration that is kept.
fn bytes_of(demonstration: &Demonstration) -> u64 {
    let Demonstration { inputs, pictures, actions, costs, gaze, .. } = demonstration;
    let numbers = inputs.len() + actions.len() + costs.len() + 3 * gaze.iter().map(Vec::len).sum::<usize>();
    (4 * numbers + 8 * (gaze.len() + pictures.len()) + pictures.packed().len()) as u64
}

/// A random number below `n`.
pub(crate) fn below(rng: &mut Rng, n: usize) -> usize {
    rng.below(n as u64) as usize
}

/// The first step of a segment: sometimes the start of the episode, which is unlike the rest; otherwise any
/// step that leaves at least half a segment.
fn first_step(rng: &mut Rng, steps: usize, piece: usize) -> usize {
    const AT_THE_START: f64 = 0.15;
    if rng.next_f64() < AT_THE_START { 0 } else { below(rng, steps.saturating_sub(piece / 2).max(1)) }
}

/// The demonstrations of a round.
fn demonstrations(recordings: Vec<Recording>) -> Result<Vec<Demonstration>, LearnError> {
    let refused = |why: &str| LearnError::Experience { why: why.to_owned() };
    if recordings.is_empty() {
        return Err(refused("a round of imitation without any demonstration"));
    }
    let demonstration = |recording| match recording {
        Recording::Demonstration(demonstration) => Ok(demonstration),
        Recording::Transitions(_) | Recording::Differentiated(_) => {
            Err(refused("other recordings, but imitation learns from demonstrations"))
        }
    };
    recordings.into_iter().map(demonstration).collect()
}

/// The gaze of every saved step.
fn saved_gaze(saved: StateReader<'_>) -> Result<Vec<Vec<GazePoint>>, LearnError> {
    let counts = saved.u64s("demonstrations.gaze_counts")?;
    let mut points = saved.f32s("demonstrations.gaze_points", 3)?.as_chunks::<3>().0;
    let mut looks = Vec::with_capacity(counts.len());
    for &count in counts {
        let Some((of_step, behind)) = usize::try_from(count).ok().and_then(|n| points.split_at_checked(n))
        else {
            let why = format!("a step looks at {count} points of {} that are left", points.len());
            return Err(LearnError::BadState { why });
        };
        looks.push(of_step.iter().map(|&[x, y, weight]| GazePoint { x, y, weight }).collect());
        points = behind;
    }
    if !points.is_empty() {
        let why = format!("{} points of a gaze belong to no step", points.len());
        return Err(LearnError::BadState { why });
    }
    Ok(looks)
}

impl Method for ImitationMethod {
    fn record(&self, descent: &Descent) -> Record {
        Record::Demonstrations(self.plan(descent.generation))
    }

    fn numbers(&self) -> Vec<f64> {
        self.config.numbers()
    }

    fn learn(&mut self, round: &mut Round<'_>, experience: Experience) -> Result<Measures, LearnError> {
        let new = demonstrations(experience.recordings)?;
        for demonstration in &new {
            self.check_demonstration(demonstration).map_err(|why| LearnError::Experience { why })?;
        }
        let (recorded, prioritised) = (new.len(), self.config.priority > 0.0);
        if prioritised {
            for demonstration in &new {
                self.errors.push(demonstration.steps);
            }
        }
        self.demonstrations.extend(new.into_iter().map(Arc::new));
        let kept = self.kept(&self.demonstrations);
        self.demonstrations.drain(..self.demonstrations.len() - kept);
        self.errors.keep(kept);
        let fresh = recorded.min(kept);
        let mut scratch = Scratch::new(self.config.pieces);
        scratch.draws = prioritised.then(|| Draws::new(&self.errors, self.config.priority));
        if self.config.in_turn {
            let Descent { seed, generation, .. } = *round.descent;
            scratch.turns.extend(0..fresh);
            shuffle(&mut scratch.turns, seed.child("generation", generation).child("turns", 0));
        }
        for number in 0..self.config.updates as u64 {
            self.update(round, number, &mut scratch)?;
        }
        let per = 1.0 / self.config.updates as f64;
        let mut measures = vec![("loss", scratch.loss * per), ("gradient_norm", scratch.norm * per)];
        measures.extend(prioritised.then(|| ("loss_of_kept", self.errors.mean())));
        Ok(measures)
    }

    fn begin(&mut self) {
        self.before = Some((self.demonstrations.clone(), self.errors.clone()));
    }

    fn end(&mut self, learnt: bool) {
        if let Some(before) = self.before.take()
            && !learnt
        {
            (self.demonstrations, self.errors) = before;
        }
    }

    fn save(&self, state: &mut StateDict) {
        let steps: Vec<u64> = self.demonstrations.iter().map(|d| d.steps as u64).collect();
        let all = steps.iter().sum::<u64>() as usize;
        let rows = |per: usize, numbers: Vec<f32>| {
            Tensor::new(vec![all, per], TensorData::F32(numbers)).expect("every demonstration was checked")
        };
        let inputs = self.demonstrations.iter().flat_map(|d| d.inputs.iter().copied()).collect();
        let actions = self.demonstrations.iter().flat_map(|d| d.actions.iter().copied()).collect();
        state.insert("demonstrations.inputs".into(), rows(self.shape.inputs, inputs));
        state.insert("demonstrations.actions".into(), rows(self.shape.actions, actions));
        state.insert("demonstrations.steps".into(), Tensor::from(steps));
        if self.config.stakes {
            let costs: Vec<f32> = self.demonstrations.iter().flat_map(|d| d.costs.iter().copied()).collect();
            let per_step = self.costs_per_step(costs.len(), all);
            state.insert("demonstrations.costs".into(), rows(per_step, costs));
        }
        if self.config.priority > 0.0 {
            state.insert("demonstrations.errors".into(), rows(1, self.errors.flat()));
        }
        if self.config.gaze {
            let looks = || self.demonstrations.iter().flat_map(|d| &d.gaze);
            let counts: Vec<u64> = looks().map(|points| points.len() as u64).collect();
            let points: Vec<f32> = looks().flatten().flat_map(|p| [p.x, p.y, p.weight]).collect();
            let points = Tensor::new(vec![points.len() / 3, 3], TensorData::F32(points));
            state.insert("demonstrations.gaze_points".into(), points.expect("three numbers each"));
            state.insert("demonstrations.gaze_counts".into(), Tensor::from(counts));
        }
        if self.shape.picture > 0 {
            let ends = self.demonstrations.iter().flat_map(|d| d.pictures.ends().iter().copied());
            let packed = self.demonstrations.iter().flat_map(|d| d.pictures.packed().iter().copied());
            let packed: Vec<u8> = packed.collect();
            let packed = Tensor::new(vec![packed.len()], TensorData::U8(packed)).expect("as many bytes");
            state.insert("demonstrations.picture_ends".into(), Tensor::from(ends.collect::<Vec<u64>>()));
            state.insert("demonstrations.pictures".into(), packed);
        }
    }

    fn restore(&mut self, state: &StateDict, _: &Descent) -> Result<(), LearnError> {
        let bad = |why: String| Err(LearnError::BadState { why });
        let saved = StateReader(state);
        // Checkpoints of older versions use the name `lessons`.
        let prefix = if state.contains_key("lessons.steps") { "lessons" } else { "demonstrations" };
        let steps = saved.u64s(&format!("{prefix}.steps"))?;
        let (per_input, per_action) = (self.shape.inputs, self.shape.actions);
        let mut inputs = saved.f32s(&format!("{prefix}.inputs"), per_input.max(1))?;
        let mut actions = saved.f32s(&format!("{prefix}.actions"), per_action.max(1))?;
        let all = steps.iter().try_fold(0u64, |sum, &n| (n > 0).then(|| sum.checked_add(n)).flatten());
        let fits = |numbers: &[f32], per: usize| {
            all.is_some_and(|all| numbers.len() as u64 == all.saturating_mul(per as u64))
        };
        if !fits(inputs, per_input) || !fits(actions, per_action) {
            return bad(format!(
                "{} demonstrations with {} inputs and {} actions contradict each other",
                steps.len(),
                inputs.len(),
                actions.len()
            ));
        }
        let (mut ends, mut packed): (&[u64], &[u8]) = (&[], &[]);
        if self.shape.picture > 0 {
            ends = saved.u64s("demonstrations.picture_ends")?;
            packed = saved.bytes("demonstrations.pictures")?;
            if all != Some(ends.len() as u64) {
                return bad(format!(
                    "{} demonstrations with {} pictures contradict each other",
                    steps.len(),
                    ends.len()
                ));
            }
        }
        let mut costs: &[f32] = &[];
        let mut per_cost = 0;
        if self.config.stakes {
            costs = saved.f32s("demonstrations.costs", per_action.max(1))?;
            per_cost = self.costs_per_step(costs.len(), all.unwrap_or(0) as usize);
        }
        if !fits(costs, per_cost) {
            return bad(format!(
                "{} demonstrations and {} costs contradict each other",
                steps.len(),
                costs.len()
            ));
        }
        let mut looks = if self.config.gaze { saved_gaze(saved)? } else { vec![] }.into_iter();
        if looks.len() as u64 != if self.config.gaze { all.unwrap_or(0) } else { 0 } {
            return bad(format!(
                "{} demonstrations and {} looks contradict each other",
                steps.len(),
                looks.len()
            ));
        }
        let mut demonstrations = VecDeque::with_capacity(steps.len());
        for &steps in steps {
            let steps = steps as usize;
            let mut pictures = PackedPictures::default();
            if self.shape.picture > 0 {
                let (of_ends, more_ends) = ends.split_at(steps);
                let len = of_ends.last().copied().unwrap_or(0);
                let Some((of_packed, more_packed)) = packed.split_at_checked(len as usize) else {
                    return bad(format!("pictures end at byte {len} of {}", packed.len()));
                };
                pictures =
                    PackedPictures::from_parts(of_ends.to_vec(), of_packed.to_vec(), self.shape.picture)
                        .map_err(|error| LearnError::BadState { why: error.to_string() })?;
                (ends, packed) = (more_ends, more_packed);
            }
            let (of_inputs, more_inputs) = inputs.split_at(steps * per_input);
            let (of_actions, more_actions) = actions.split_at(steps * per_action);
            let (of_costs, more_costs) = costs.split_at(steps * per_cost);
            let demonstration = Demonstration {
                inputs: of_inputs.to_vec(),
                pictures,
                actions: of_actions.to_vec(),
                costs: of_costs.to_vec(),
                gaze: looks.by_ref().take(if self.config.gaze { steps } else { 0 }).collect(),
                steps,
            };
            if let Err(why) = self.check_demonstration(&demonstration) {
                return bad(why);
            }
            demonstrations.push_back(Arc::new(demonstration));
            (inputs, actions, costs) = (more_inputs, more_actions, more_costs);
        }
        if !packed.is_empty() {
            return bad(format!("{} bytes of pictures belong to no demonstration", packed.len()));
        }
        let mut errors = Errors::default();
        if self.config.priority > 0.0 {
            let flat = saved.f32s("demonstrations.errors", 1)?;
            if !fits(flat, 1) {
                return bad(format!(
                    "{} demonstrations and {} errors contradict each other",
                    steps.len(),
                    flat.len()
                ));
            }
            errors = Errors::from_flat(flat, steps)?;
        }
        // A state saved with other settings may hold more demonstrations.
        let kept = self.kept(&demonstrations);
        demonstrations.drain(..demonstrations.len() - kept);
        errors.keep(kept);
        (self.demonstrations, self.errors) = (demonstrations, errors);
        Ok(())
    }
}
