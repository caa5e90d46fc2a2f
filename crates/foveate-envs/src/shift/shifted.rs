//! A world with a plan of shifts applied.

use foveate_core::{
    Action, ActionBuf, Env, EnvError, EnvSpec, Fact, IMAGE, Image, ImageBuf, Observation, ObservationSpace,
    Parts, Pixels, Seed, Step,
};

use super::catalogue::Target;
use super::operator::{Moment, Operator, Picture};
use super::parse::bad;
use super::plan::{Plan, Setting, Shift};

/// A world with a [`Plan`] applied; see the [module](super).
///
/// [`Env::render`] and the state are those of the world itself: only the agent's observation and its action change. Steps
/// do not allocate.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
pub struct Shifted {
    env: Box<dyn Env>,
    plan: Plan,
    stages: Vec<Stage>,
    /// Whether any stage changes pictures.
    looks: bool,
    /// Whether any stage changes actions.
    acts: bool,
    /// Shows pictures in colour, whatever the world does.
    spec: EnvSpec,
    /// Width and height of the picture, frames one below the other; zeros without one.
    size: (usize, usize),
    /// Whether the world's picture is not RGB, so that it always has to be made that.
    recoloured: bool,
    /// `[height, width, 3]`: what is shown.
    frame: Vec<u8>,
    /// For pictures that are not RGB.
    scratch: Vec<u8>,
    action: ActionBuf,
    seed: u64,
    resets: u64,
    step: u64,
    begun: bool,
}

/// A shift at work.
struct Stage {
    shift: Shift,
    /// How many shifts of the same name come before it, so that each has random numbers of its own.
    number: u64,
    operator: Box<dyn Operator>,
}

impl Shifted {
    /// Applies `plan` to `env`, which must be reset before the first step.
    ///
    /// # Errors
    /// [`EnvError::BadOption`] when a shift of pictures meets a world that shows none, or pictures that a shift needs were
    /// not loaded.
    pub fn new(env: Box<dyn Env>, plan: &Plan) -> Result<Self, EnvError> {
        let mut spec = env.spec().clone();
        let size = spec.observation.picture().unwrap_or_default();
        let recoloured = spec.observation.image().is_some_and(|shape| shape.channels != 3);
        match &mut spec.observation {
            ObservationSpace::Image(shape) => shape.channels = 3,
            ObservationSpace::Dict(parts) => {
                for (_, part) in parts.iter_mut().filter(|(name, _)| name == IMAGE) {
                    if let ObservationSpace::Image(shape) = part {
                        shape.channels = 3;
                    }
                }
            }
            ObservationSpace::Vector { .. } | ObservationSpace::Grid { .. } => {}
        }
        let mut shifted = Shifted {
            plan: Plan::none(),
            stages: Vec::new(),
            looks: false,
            acts: false,
            spec,
            size,
            recoloured,
            scratch: vec![],
            frame: vec![0; size.0 * size.1 * 3],
            action: env.spec().action.zero(),
            seed: 0,
            resets: 0,
            step: 0,
            begun: false,
            env,
        };
        shifted.set_plan(plan)?;
        Ok(shifted)
    }

    /// The plan.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The world itself.
    pub fn world(&self) -> &dyn Env {
        &*self.env
    }

    /// The step that the observation shows; 0 is the world just reset.
    pub const fn step_number(&self) -> u64 {
        self.step
    }

    /// Replaces the plan, from the current observation on, which is shifted again. A shift that was active before and still
    /// is keeps its state, with its new severity and settings.
    ///
    /// # Errors
    /// As [`Shifted::new`]; the plan is then unchanged.
    pub fn set_plan(&mut self, plan: &Plan) -> Result<(), EnvError> {
        for shift in plan.list() {
            if shift.info().target == Target::Picture && self.size == (0, 0) {
                return Err(bad(
                    shift.info().name,
                    format!("{} shows numbers, not a picture; choose a shift of actions", self.env.spec().id),
                ));
            }
            for setting in shift.settings() {
                if let Setting::Folder(folder, pictures) = setting
                    && pictures.is_empty()
                {
                    return Err(bad(
                        shift.info().name,
                        format!("no pictures; were those of {folder:?} loaded?"),
                    ));
                }
            }
        }
        self.take();
        let mut before = std::mem::take(&mut self.stages);
        for shift in plan.list() {
            let name = shift.info().name;
            let number = self.stages.iter().filter(|stage| stage.shift.info().name == name).count() as u64;
            let old = before.iter().position(|s| s.shift.info().name == name && s.number == number);
            let operator = if let Some(at) = old {
                before.swap_remove(at).operator
            } else {
                let mut operator = (shift.info().make)(self.size.0, self.size.1);
                let (width, height) = self.size;
                if let (true, Some(image)) = (self.begun, Image::new(width, height, &self.frame)) {
                    operator.begin(image, dice(self.seed, self.resets, name, number));
                }
                operator
            };
            self.stages.push(Stage { shift: shift.clone(), number, operator });
        }
        let any = |target| plan.list().iter().any(|shift| shift.info().target == target);
        (self.looks, self.acts) = (any(Target::Picture), any(Target::Action));
        self.plan = plan.clone();
        if self.begun {
            self.look();
        }
        Ok(())
    }

    /// Writes the world's picture to `frame`, in colour; whether it has one.
    fn take(&mut self) -> bool {
        let Some(pixels) = self.env.observation().image() else { return false };
        self.frame.copy_from_slice(pixels.to_rgb(&mut self.scratch).rgb());
        true
    }

    /// Takes the world's picture through all stages.
    fn look(&mut self) {
        if !(self.looks || self.recoloured) || !self.take() {
            return;
        }
        let (width, height) = self.size;
        for Stage { shift, number, operator } in &mut self.stages {
            let now = moment(shift, *number, self.seed, self.resets, self.step);
            operator.watch(&self.frame, &now);
            if now.amount > 0.0 {
                operator.look(&mut Picture { width, height, rgb: &mut self.frame }, &now);
            }
        }
    }

    /// What is shown.
    fn pixels(&self) -> Option<Pixels<'_>> {
        Pixels::new(self.spec.observation.image()?, &self.frame)
    }

    /// Takes an action through all stages, and then the world a step.
    fn act(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let EnvSpec { id, action: space, .. } = self.env.spec();
        // The world returns the error for an action that does not fit.
        if space.check(id, action).is_err() {
            return self.env.step(action);
        }
        self.action.set(action);
        for Stage { shift, number, operator } in &mut self.stages {
            let now = moment(shift, *number, self.seed, self.resets, self.step);
            if now.amount > 0.0 {
                operator.act(&mut self.action, space, &now);
            }
            operator.acted(self.action.as_action());
        }
        self.env.step(self.action.as_action())
    }
}

/// The seed of an operator in an episode.
fn dice(seed: u64, resets: u64, name: &str, number: u64) -> Seed {
    Seed::root(seed).child("shift", resets).child(name, number)
}

fn moment(shift: &Shift, number: u64, seed: u64, resets: u64, step: u64) -> Moment<'_> {
    let episode = dice(seed, resets, shift.info().name, number);
    Moment {
        amount: shift.amount_at(step),
        step,
        dice: episode.child("step", step),
        settings: shift.settings(),
    }
}

/// The world's own parts, with another picture.
impl Parts for Shifted {
    fn count(&self) -> usize {
        let Observation::Dict(parts) = self.env.observation() else { return 0 };
        parts.count()
    }

    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        let Observation::Dict(parts) = self.env.observation() else { return None };
        let (name, part) = parts.part(index)?;
        let own = if name == IMAGE { self.pixels() } else { None };
        Some((name, own.map_or(part, Observation::Image)))
    }
}

impl Env for Shifted {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        match seed {
            Some(seed) => (self.seed, self.resets) = (seed, 0),
            None => self.resets += 1,
        }
        self.env.reset(seed);
        (self.step, self.begun) = (0, true);
        let (width, height) = self.size;
        if self.take()
            && let Some(image) = Image::new(width, height, &self.frame)
        {
            for Stage { shift, number, operator } in &mut self.stages {
                operator.begin(image, dice(self.seed, self.resets, shift.info().name, *number));
            }
        }
        self.look();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let step = if self.acts { self.act(action)? } else { self.env.step(action)? };
        self.step += 1;
        self.look();
        Ok(step)
    }

    fn observation(&self) -> Observation<'_> {
        let own = self.env.observation();
        if !(self.begun && (self.looks || self.recoloured)) {
            return own;
        }
        match own {
            Observation::Dict(_) => Observation::Dict(self),
            _ => self.pixels().map_or(own, Observation::Image),
        }
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        self.env.render(view)
    }

    fn state(&self) -> Fact {
        self.env.state()
    }

    /// The world's own expert, which is not affected by shifts.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        self.env.expert(action)
    }

    fn sensor_order(&self) -> Option<&[u32]> {
        self.env.sensor_order()
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        let stages = self.stages.iter().map(|stage| Stage {
            shift: stage.shift.clone(),
            number: stage.number,
            operator: stage.operator.boxed_clone(),
        });
        Box::new(Shifted {
            env: self.env.boxed_clone(),
            plan: self.plan.clone(),
            stages: stages.collect(),
            spec: self.spec.clone(),
            frame: self.frame.clone(),
            scratch: vec![],
            action: self.action.clone(),
            ..*self
        })
    }
}
