//! A world with a plan of shifts applied.

use foveate_core::{
    Action, ActionBuf, Env, EnvError, EnvSpec, GazePoint, IMAGE, Image, Observation, ObservationSpace,
    PRESENT, Parts, PixelShape, Pixels, SENSORS, Seed, StateEdit, Step, StepDerivatives,
};

use super::catalogue::SHIFTS;
use super::descriptor::{KnobKind, Senses, ShiftDescriptor, Target};
use super::operator::{Moment, Operator, Picture, Sensors};
use super::parse::bad;
use super::plan::{KnobValue, Plan, Shift};
use crate::wrap::Grey;

/// A world with a [`Plan`] applied; see the [module](super).
///
/// [`Env::render`] and the state are those of the world itself: only the agent's observation and its action change. Steps
/// do not allocate.
///
/// While a shift of pictures is in the plan, pictures are shown in colour, whatever the world does. With a shift that
/// removes patches, the observation has the part [`PRESENT`].
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
pub struct Shifted {
    env: Box<dyn Env>,
    plan: Plan,
    stages: Vec<Stage>,
    /// True if any stage changes pictures.
    looks: bool,
    /// True if any stage changes actions.
    acts: bool,
    /// True if any stage changes the order or the number of sensors.
    senses: bool,
    spec: EnvSpec,
    /// Width and height of the picture, frames one below the other; zeros without one.
    size: (usize, usize),
    arranged: Arranged,
    /// `[height, width, 3]`: what is shown, in colour.
    frame: Vec<u8>,
    /// `[height, width]`: the brightness of `frame`, which is shown where the world's picture is grey; otherwise empty.
    grey: Vec<u8>,
    /// For pictures that are not RGB.
    scratch: Vec<u8>,
    action: ActionBuf,
    seed: u64,
    resets: u64,
    step: u64,
    begun: bool,
}

/// The observation after shifts of senses.
#[derive(Clone, Default)]
struct Arranged {
    sensors: Sensors,
    /// Side of a patch in pixels; 0 when the sensors are numbers.
    patch: usize,
    /// True if patches may be missing.
    lacks: bool,
    /// The numbers shown.
    numbers: Vec<f32>,
    /// The picture shown.
    pixels: Vec<u8>,
    /// `[sensors]`: see [`Env::sensor_order`].
    order: Vec<u32>,
    /// `[patches]`: the part [`PRESENT`].
    present: Vec<f32>,
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
        let spec = env.spec().clone();
        let size = spec.observation.picture().unwrap_or_default();
        let is_grey = spec.observation.image().is_some_and(|shape| shape.channels == 1);
        let mut shifted = Shifted {
            plan: Plan::none(),
            stages: Vec::new(),
            looks: false,
            acts: false,
            senses: false,
            spec,
            size,
            arranged: Arranged::default(),
            scratch: vec![],
            frame: vec![0; size.0 * size.1 * 3],
            grey: vec![0; if is_grey { size.0 * size.1 } else { 0 }],
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
        let (patch, lacks) = fit(plan, self.env.spec())?;
        if self.size != (0, 0) {
            self.take();
        }
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
        self.senses = any(Target::Senses(Senses::All)) || any(Target::Senses(Senses::Numbers));
        (self.arranged.patch, self.arranged.lacks) = (patch, lacks);
        self.plan = plan.clone();
        self.set_spec();
        if self.begun {
            self.look();
        }
        Ok(())
    }

    /// Draws a new order of the sensors from the current observation on, in the middle of an episode, as
    /// `shuffle` does at its start; whether the plan has a shift that can.
    pub fn shuffle_now(&mut self) -> bool {
        let mut any = false;
        for stage in &mut self.stages {
            any |= stage.operator.shuffle_now();
        }
        if any && self.begun {
            self.look();
        }
        any
    }

    /// The observation of the world itself, which people compare with the shifted one.
    pub fn unshifted(&self) -> Observation<'_> {
        self.env.observation()
    }

    /// Sets the space of what is shown from the current step on.
    fn set_spec(&mut self) {
        let mut space = self.env.spec().observation.clone();
        if self.looks {
            colour(&mut space);
        }
        if self.senses {
            if self.arranged.patch == 0 {
                self.arrange();
                let shown = self.arranged.sensors.list.iter().filter(|sensor| sensor.present).count();
                match &mut space {
                    ObservationSpace::Vector { len } => *len = shown,
                    ObservationSpace::Dict(parts) => {
                        for (_, part) in parts.iter_mut().filter(|(name, _)| name == SENSORS) {
                            *part = ObservationSpace::Vector { len: shown };
                        }
                    }
                    ObservationSpace::Image(_) | ObservationSpace::Grid { .. } => {}
                }
            } else if let Some(shape) = space.image() {
                self.arranged.pixels.resize(shape.frames * shape.frame_len(), 0);
                if self.arranged.lacks {
                    let patch = self.arranged.patch;
                    let part = ObservationSpace::Vector { len: shape.width / patch * (shape.height / patch) };
                    let mut parts = match space {
                        ObservationSpace::Dict(parts) => parts,
                        one => vec![(IMAGE.to_owned(), one)],
                    };
                    parts.push((PRESENT.to_owned(), part));
                    space = ObservationSpace::Dict(parts);
                }
            }
        }
        self.spec.observation = space;
    }

    /// Number of sensors that the world has.
    fn own_sensors(&self) -> usize {
        let space = &self.env.spec().observation;
        match (space.image(), self.arranged.patch) {
            (Some(shape), patch) if patch > 0 => (shape.width / patch) * (shape.height / patch),
            // Before the first reset there may be no observation.
            _ if !self.begun => space.numbers(),
            _ => self.env.observation().numbers().map_or(0, <[f32]>::len),
        }
    }

    /// Takes the world's sensors through all stages that move, add or remove some.
    fn arrange(&mut self) {
        let count = self.own_sensors();
        self.arranged.sensors.begin(count);
        for Stage { shift, number, operator } in &mut self.stages {
            if !matches!(shift.info().target, Target::Senses(_)) {
                continue;
            }
            let now = moment(shift, *number, self.seed, self.resets, self.step);
            if now.amount > 0.0 {
                operator.arrange(&mut self.arranged.sensors, &now);
            }
        }
    }

    /// Puts the observation together from the sensors as they are arranged.
    fn sense(&mut self) {
        self.arrange();
        let Arranged { sensors, patch, lacks, numbers, pixels, order, present } = &mut self.arranged;
        let own = self.env.observation();
        if *patch == 0 {
            let Some(world) = own.numbers() else { return };
            sensors.numbers(world, numbers, order);
        } else {
            let Some(picture) = own.image() else { return };
            let shown = if self.looks {
                let grey = !self.grey.is_empty();
                let shape = PixelShape { channels: if grey { 1 } else { 3 }, ..picture.shape() };
                Pixels::new(shape, if grey { &self.grey } else { &self.frame })
            } else {
                Some(picture)
            };
            let Some(shown) = shown else { return };
            sensors.patches(shown, *patch, pixels, order);
            if *lacks {
                present.clear();
                present.extend(sensors.list.iter().map(|sensor| f32::from(u8::from(sensor.present))));
            }
        }
        if let Some(inner) = self.env.sensor_order() {
            for place in order {
                *place = inner.get(*place as usize).copied().unwrap_or(*place);
            }
        }
    }

    /// Writes the world's picture to `frame`, in colour; whether it has one.
    fn take(&mut self) -> bool {
        let Some(pixels) = self.env.observation().image() else { return false };
        self.frame.copy_from_slice(pixels.to_rgb(&mut self.scratch).rgb());
        true
    }

    /// Takes the world's picture through all stages.
    fn look(&mut self) {
        self.look_at_picture();
        if self.senses {
            self.sense();
        }
    }

    fn look_at_picture(&mut self) {
        if !self.looks || !self.take() {
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
        Grey::OpenCv.write(&self.frame, &mut self.grey);
    }

    /// The picture that is shown instead of the world's.
    fn pixels(&self) -> Option<Pixels<'_>> {
        let arranged = self.senses && self.arranged.patch > 0;
        let bytes = match (arranged, self.looks) {
            (true, _) => &self.arranged.pixels,
            (false, true) if !self.grey.is_empty() => &self.grey,
            (false, true) => &self.frame,
            (false, false) => return None,
        };
        Pixels::new(self.spec.observation.image()?, bytes)
    }

    /// The numbers that are shown instead of the world's.
    fn numbers(&self) -> Option<&[f32]> {
        (self.senses && self.arranged.patch == 0).then_some(&self.arranged.numbers)
    }

    /// The part [`PRESENT`], if there is one.
    fn present(&self) -> Option<&[f32]> {
        (self.senses && self.arranged.lacks).then_some(&self.arranged.present)
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

/// The shifts that fit a world without a picture that shows `space`.
fn fitting(space: &ObservationSpace) -> String {
    let fits = |info: &&ShiftDescriptor| match info.target {
        Target::Picture => false,
        Target::Action => true,
        Target::Senses(_) => space.numbers() > 0,
    };
    let names: Vec<&str> = SHIFTS.iter().filter(fits).map(|info| info.name).collect();
    format!("choose one that fits: {}", names.join(", "))
}

/// Checks that `plan` fits the world; the side of its patches in pixels, 0 for numbers, and whether patches may be
/// missing.
pub(super) fn fit(plan: &Plan, spec: &EnvSpec) -> Result<(usize, bool), EnvError> {
    let EnvSpec { id, observation: space, .. } = spec;
    for shift in plan.list() {
        let (name, target) = (shift.info().name, shift.info().target);
        if target == Target::Picture && space.picture().is_none() {
            let why = format!("{id} shows {}, not a picture; {}", space.describe(), fitting(space));
            return Err(bad(name, why));
        }
        for (knob, setting) in shift.info().knobs.iter().zip(shift.settings()) {
            let why = match setting {
                KnobValue::Folder(folder, pictures) if pictures.is_empty() => {
                    format!("no pictures; were those of {folder:?} loaded?")
                }
                KnobValue::File(file, _) if file.is_empty() => {
                    format!(
                        "{} is missing; name a PNG or JPEG file, as in {name}:5:{}=sky.jpg",
                        knob.name, knob.name
                    )
                }
                KnobValue::File(file, pictures) if pictures.is_empty() => {
                    format!("no picture; was {file:?} loaded?")
                }
                _ => continue,
            };
            return Err(bad(name, why));
        }
        // What replaces colours of the world's own picture finds none in a grey one.
        let by_color = shift.info().knobs.iter().any(|knob| knob.kind == KnobKind::File);
        if let Some(shape) = space.image().filter(|shape| by_color && shape.channels != 3) {
            let why = format!(
                "it replaces colours, and the picture has {} bytes in a pixel; apply it before the wrappers",
                shape.channels
            );
            return Err(bad(name, why));
        }
    }
    let senses = || plan.list().iter().filter(|shift| matches!(shift.info().target, Target::Senses(_)));
    let Some(first) = senses().next().map(|shift| shift.info().name) else { return Ok((0, false)) };
    let mut patch = 0;
    let count = match space.image() {
        Some(shape) => {
            if let Some(shift) = senses().find(|s| s.info().target == Target::Senses(Senses::Numbers)) {
                let why = format!("it goes with numbers, and {id} shows {}", space.describe());
                return Err(bad(shift.info().name, why));
            }
            if space.has_depth() {
                let why = format!("{id} shows {}, and the depth would no longer fit", space.describe());
                return Err(bad(first, why));
            }
            for shift in senses() {
                patch = fitting_patch(shift, patch, shape)?;
            }
            (shape.width / patch) * (shape.height / patch)
        }
        None => space.numbers(),
    };
    if count == 0 {
        return Err(bad(
            first,
            format!("{id} shows {}, so there are no sensors to change; {}", space.describe(), fitting(space)),
        ));
    }
    // All of them at work at once leave something.
    let mut sensors = Sensors::default();
    sensors.begin(count);
    let mut lacks = false;
    for shift in senses() {
        let mut operator = (shift.info().make)(0, 0);
        let amount = shift.info().amount(shift.severity());
        let now = |amount| Moment { amount, step: 0, dice: Seed::root(0), settings: shift.settings() };
        if amount > 0.0 {
            operator.arrange(&mut sensors, &now(amount));
            // Whether some can be missing does not depend on how many are this time.
            let mut most = Sensors::default();
            most.begin(count);
            operator.arrange(&mut most, &now(shift.info().amounts[4]));
            lacks |= patch > 0 && most.list.iter().any(|sensor| !sensor.present);
        }
        if sensors.list.iter().all(|sensor| !sensor.present) {
            let why =
                format!("none of the {count} sensors of {id} would be left; lower the share that is missing");
            return Err(bad(shift.info().name, why));
        }
    }
    Ok((patch, lacks))
}

/// The side of a patch of `shift`, which divides the picture and is the same as that of the shifts `before` it, if
/// that is not 0.
fn fitting_patch(shift: &Shift, before: usize, shape: PixelShape) -> Result<usize, EnvError> {
    let name = shift.info().name;
    let Some(KnobValue::Number(side)) = shift.setting("patch") else {
        return Err(bad(name, "it has no parameter patch, so it does not go with pictures".into()));
    };
    let PixelShape { width, height, .. } = shape;
    let side = *side;
    if side.fract() != 0.0 || side < 1.0 || width % side as usize != 0 || height % side as usize != 0 {
        let fit: Vec<String> =
            (1..=32).filter(|n| width % n == 0 && height % n == 0).map(|n| n.to_string()).collect();
        let why = format!(
            "patch = {side} does not divide a picture of {width}x{height}; choose one of {}",
            fit.join(", ")
        );
        return Err(bad(name, why));
    }
    let side = side as usize;
    if before != 0 && before != side {
        let why = format!("patch = {side}, and {before} for a shift before it; choose one size for all");
        return Err(bad(name, why));
    }
    Ok(side)
}

/// Gives the image three bytes per pixel, if there is one and it is not grey.
fn colour(space: &mut ObservationSpace) {
    match space {
        ObservationSpace::Image(shape) if shape.channels == 1 => {}
        ObservationSpace::Image(shape) => shape.channels = 3,
        ObservationSpace::Dict(parts) => {
            parts.iter_mut().filter(|(name, _)| name == IMAGE).for_each(|(_, part)| colour(part));
        }
        ObservationSpace::Vector { .. } | ObservationSpace::Grid { .. } => {}
    }
}

/// The world's own parts, with another picture or other numbers, and the part [`PRESENT`] last.
impl Parts for Shifted {
    fn count(&self) -> usize {
        let own = match self.env.observation() {
            Observation::Dict(parts) => parts.count(),
            _ => 1,
        };
        own + usize::from(self.present().is_some())
    }

    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        let own = match self.env.observation() {
            Observation::Dict(parts) => parts.part(index),
            one if index == 0 => Some((IMAGE, one)),
            _ => None,
        };
        let Some((name, part)) = own else {
            let last = index + 1 == Parts::count(self);
            return self.present().filter(|_| last).map(|present| (PRESENT, Observation::Vector(present)));
        };
        let shown = match name {
            IMAGE => self.pixels().map(Observation::Image),
            SENSORS => self.numbers().map(Observation::Vector),
            _ => None,
        };
        Some((name, shown.unwrap_or(part)))
    }
}

impl Env for Shifted {
    fn inner(&self) -> Option<&dyn Env> {
        Some(&*self.env)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Env> {
        Some(&mut *self.env)
    }

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
        if self.looks {
            self.take();
        }
        if let Some(image) = Image::new(width, height, &self.frame) {
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
        if !(self.begun && (self.looks || self.senses)) {
            return own;
        }
        match own {
            Observation::Dict(_) => Observation::Dict(self),
            Observation::Image(_) if self.present().is_some() => Observation::Dict(self),
            Observation::Image(_) => self.pixels().map_or(own, Observation::Image),
            Observation::Vector(_) => self.numbers().map_or(own, Observation::Vector),
            Observation::Grid(_) => own,
        }
    }

    /// Where the world's own expert looks, while no shift moves what is seen.
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        if self.stages.iter().any(|stage| stage.operator.moves_things()) {
            return Err(EnvError::NoGaze { env: self.spec.id.clone() });
        }
        self.env.gaze(points)
    }

    fn sensor_order(&self) -> Option<&[u32]> {
        if self.begun && self.senses { Some(&self.arranged.order) } else { self.env.sensor_order() }
    }

    /// Edits the world's own state; the observation follows.
    fn edit_state(&mut self, edit: &StateEdit<'_>) -> Result<(), EnvError> {
        self.env.edit_state(edit)?;
        self.look();
        Ok(())
    }

    /// None: shifts change what is seen, or done.
    fn derivatives(&self, _: &[f64], _: &mut StepDerivatives) -> Result<(), EnvError> {
        Err(EnvError::NoDerivatives { env: self.spec.id.clone() })
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
            arranged: self.arranged.clone(),
            frame: self.frame.clone(),
            grey: self.grey.clone(),
            scratch: vec![],
            action: self.action.clone(),
            ..*self
        })
    }
}
