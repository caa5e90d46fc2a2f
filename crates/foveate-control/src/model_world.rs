//! [`ModelWorld`]: a user's own model as an [`Env`].

use std::cell::RefCell;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, ImageBuf, Observation, Rng, Seed, Step,
};
use foveate_mujoco::{Camera, Data, Keyframe, Model, MujocoError, SceneView, Sensor};
use foveate_render::{RenderError, RenderSettings, Renderer, Scene};

use crate::drawing::{Drawing, Failure};
use crate::expression::{Expression, Inputs};
use crate::lost::{Lost, copy_of};
use crate::shown::{Shown, ShownParts};

/// Options of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// What the observation is.
    pub shown: Shown,
    /// Name of the camera; `None` for the model's first.
    pub camera: Option<String>,
    /// Width and height of the picture in pixels, 1 to [`Renderer::LARGEST_SIDE`].
    pub size: [usize; 2],
    /// True if the picture's edges are smooth.
    pub antialias: bool,
    /// Steps of the simulation for which an action is held, 1 to 1000.
    pub repeat: u32,
    /// Actions after which an episode is truncated, 1 to a million.
    pub max_steps: usize,
    /// Largest random change of every position at the start.
    pub noise: f64,
    /// Name or number of the keyframe in which episodes start; `None` for the model's initial state.
    pub keyframe: Option<String>,
    /// The reward of an action, after it.
    pub reward: Option<Expression>,
    /// Terminates an episode when it is above 0.
    pub end: Option<Expression>,
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig {
            shown: Shown::State,
            camera: None,
            size: [100, 100],
            antialias: true,
            repeat: 1,
            max_steps: 1000,
            noise: 0.01,
            keyframe: None,
            reward: None,
            end: None,
        }
    }
}

/// Why a model cannot be made into a world.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// MuJoCo refuses something.
    #[error(transparent)]
    Mujoco(#[from] MujocoError),
    /// The picture has a size that cannot be drawn.
    #[error(transparent)]
    Picture(#[from] RenderError),
    /// An action or an episode would last too few or too many steps.
    #[error("{what} = {given} is not between 1 and {most}")]
    Steps {
        /// The option.
        what: &'static str,
        /// The given number.
        given: usize,
        /// The largest possible one.
        most: usize,
    },
    /// The model has nothing to act with.
    #[error("{model} has no actuators, so there is nothing to act with")]
    NoControls {
        /// The model.
        model: String,
    },
    /// The simulation's time cannot go on by such steps.
    #[error("{model}: a time step of {seconds} s; it must be finite and above 0")]
    TimeStep {
        /// The model.
        model: String,
        /// The time step.
        seconds: f64,
    },
    /// An actuator's range is not one.
    #[error(
        "{model}: the range of actuator {index} is {low} to {high}; both must be finite, the lower first"
    )]
    Bounds {
        /// The model.
        model: String,
        /// The actuator, counted from 0.
        index: usize,
        /// Its lower bound.
        low: f64,
        /// Its upper bound.
        high: f64,
    },
    /// The model has no camera.
    #[error("{model} has no camera; add one to show its picture, or choose the picture state")]
    NoCamera {
        /// The model.
        model: String,
    },
    /// A formula reads a number that its sensor does not have.
    #[error(
        "{model}: sensor {sensor:?} has {len} numbers, and a formula reads number {index}, counted from 0"
    )]
    SensorIndex {
        /// The model.
        model: String,
        /// The sensor.
        sensor: String,
        /// Its length.
        len: usize,
        /// The index.
        index: usize,
    },
}

/// A model of MuJoCo as a world.
///
/// * observation: positions and velocities of the joints, `[nq + nv]`, in MuJoCo's order and units; or what a camera sees; or both
/// * action: one number per actuator, in its range; −1 to 1 for one without a range
/// * reward: [`ModelConfig::reward`], 0 without one
/// * end: terminated when [`ModelConfig::end`] is above 0, truncated after [`ModelConfig::max_steps`] actions
///
/// An episode begins in the model's initial state or in [`ModelConfig::keyframe`], every position changed by a random number of the
/// episode's seed; quaternions are unit ones. A value of the
/// formulas that is not finite, and a simulation that diverges, are errors of that step.
pub struct ModelWorld {
    config: ModelConfig,
    spec: EnvSpec,
    data: Data,
    drawing: Option<Drawing>,
    shown: ShownParts,
    formulas: [Option<Formula>; 2],
    random: Rng,
    keyframe: Option<Keyframe>,
    runge_kutta: bool,
    steps: usize,
    running: bool,
    failed: Option<Failure>,
    /// What draws pictures for people, at the size of the last one.
    people: RefCell<Option<Drawing>>,
}

/// A formula and what it reads.
struct Formula {
    expression: Expression,
    sensors: Vec<Sensor>,
    numbers: Vec<Vec<f64>>,
}

impl Formula {
    fn new(expression: &Expression, data: &mut Data) -> Result<Self, ModelError> {
        let (mut sensors, mut numbers) = (Vec::new(), Vec::new());
        for (i, name) in expression.sensors().iter().enumerate() {
            let sensor = data.sensor(name)?;
            let (len, index) = (sensor.len(), expression.most_index(i));
            if index >= len {
                let model = data.model().name().to_owned();
                return Err(ModelError::SensorIndex { model, sensor: name.clone(), len, index });
            }
            numbers.push(vec![0.0; len]);
            sensors.push(sensor);
        }
        Ok(Formula { expression: expression.clone(), sensors, numbers })
    }

    fn value(&mut self, data: &mut Data, controls: &[f64]) -> Result<f64, MujocoError> {
        for (sensor, numbers) in self.sensors.iter().zip(&mut self.numbers) {
            data.read(sensor, numbers)?;
        }
        let effort = controls.iter().map(|x| x * x).sum::<f64>() / controls.len().max(1) as f64;
        Ok(self.expression.value(&Inputs { sensors: &self.numbers, time: data.time(), effort }))
    }
}

impl ModelWorld {
    /// Most steps of the simulation for which an action is held.
    pub const MOST_REPEATS: u32 = 1000;
    /// Most actions of an episode.
    pub const MOST_STEPS: usize = 1_000_000;

    /// Makes a world called `id` of a compiled model.
    ///
    /// # Errors
    /// [`ModelError`].
    pub fn new(id: &str, model: &Model, config: ModelConfig) -> Result<Self, ModelError> {
        let most_repeats = Self::MOST_REPEATS as usize;
        for (what, given, most) in [
            ("repeat", config.repeat as usize, most_repeats),
            ("max_steps", config.max_steps, Self::MOST_STEPS),
        ] {
            if !(1..=most).contains(&given) {
                return Err(ModelError::Steps { what, given, most });
            }
        }
        let bounds = model.control_ranges();
        if bounds.is_empty() {
            return Err(ModelError::NoControls { model: model.name().into() });
        }
        let bounds: Vec<[f64; 2]> = bounds.into_iter().map(|range| range.unwrap_or([-1.0, 1.0])).collect();
        let seconds = model.time_step();
        if !(seconds.is_finite() && seconds > 0.0) {
            return Err(ModelError::TimeStep { model: model.name().into(), seconds });
        }
        let valid = |[low, high]: &[f64; 2]| low.is_finite() && high.is_finite() && low <= high;
        if let Some(index) = bounds.iter().position(|range| !valid(range)) {
            let [low, high] = bounds[index];
            return Err(ModelError::Bounds { model: model.name().into(), index, low, high });
        }
        let mut data = Data::new(model)?;
        let [width, height] = config.size;
        let drawing = if config.shown == Shown::State {
            None
        } else {
            let settings =
                RenderSettings { antialias: config.antialias, ..RenderSettings::new(width, height) };
            Some(Drawing::new(model, camera(model, &config)?, Renderer::new(&settings)?)?)
        };
        let mut formula = |expression: &Option<Expression>| {
            expression.as_ref().map(|expression| Formula::new(expression, &mut data)).transpose()
        };
        let formulas = [formula(&config.reward)?, formula(&config.end)?];
        let numbers = model.positions() + model.velocities();
        let seconds = model.time_step() * f64::from(config.repeat);
        let spec = EnvSpec {
            id: id.into(),
            observation: config.shown.space(numbers, config.size),
            action: ActionSpace::Box {
                low: bounds.iter().map(|range| range[0]).collect(),
                high: bounds.iter().map(|range| range[1]).collect(),
            },
            max_steps: Some(config.max_steps),
            fps: (1.0 / seconds).clamp(1.0, 1000.0),
        };
        Ok(ModelWorld {
            spec,
            drawing,
            shown: ShownParts::new(config.shown, numbers, config.size),
            formulas,
            random: Seed::root(0).rng(),
            keyframe: config.keyframe.as_ref().map(|name| model.keyframe(name)).transpose()?,
            runge_kutta: model.is_runge_kutta(),
            steps: 0,
            running: false,
            failed: None,
            people: RefCell::new(None),
            data,
            config,
        })
    }

    /// How many things in the picture of the initial state cannot be drawn, such as meshes; 0 for a world without a picture.
    ///
    /// # Errors
    /// Those of drawing a picture.
    pub fn left_out(&self) -> Result<usize, ModelError> {
        if self.drawing.is_none() {
            return Ok(0);
        }
        let model = self.data.model();
        let mut view = SceneView::new(model, camera(model, &self.config)?)?;
        let mut data = self.data.copied()?;
        data.forward()?;
        Ok(view.fill(&mut data, &mut Scene::default())?)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        match self.keyframe {
            Some(keyframe) => self.data.reset_to(keyframe)?,
            None => self.data.reset()?,
        }
        let noise = self.config.noise;
        let mut positions = self.data.positions().to_vec();
        if noise > 0.0 {
            for position in &mut positions {
                *position += self.random.uniform(-noise, noise);
            }
        }
        self.data.model().normalize(&mut positions)?;
        self.data.set_positions(&positions)?;
        self.data.forward()?;
        self.look()
    }

    fn look(&mut self) -> Result<(), Failure> {
        let (numbers, data) = (&mut self.shown.numbers, &self.data);
        for (shown, &number) in numbers.iter_mut().zip(data.positions().iter().chain(data.velocities())) {
            *shown = number as f32;
        }
        if let Some(drawing) = &mut self.drawing {
            drawing.draw(&mut self.data, self.shown.picture.rgb_mut())?;
        }
        Ok(())
    }

    #[cold]
    fn lost(&self, why: Failure) -> Box<dyn Env> {
        Box::new(Lost { spec: self.spec.clone(), shown: self.shown.clone(), why })
    }

    #[cold]
    fn broken(&mut self, why: &str) -> EnvError {
        self.running = false;
        EnvError::Outside { env: self.spec.id.clone(), why: format!("step {}: {why}", self.steps) }
    }
}

/// The camera of a world.
fn camera(model: &Model, config: &ModelConfig) -> Result<Camera, ModelError> {
    match &config.camera {
        Some(name) => Ok(model.camera(name)?),
        None => model.first_camera().ok_or_else(|| ModelError::NoCamera { model: model.name().into() }),
    }
}

impl Env for ModelWorld {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.random = Seed::root(seed).rng();
        }
        (self.steps, self.running) = (0, true);
        if self.failed.is_some()
            && let Ok(data) = Data::new(&self.data.model().clone())
        {
            self.data = data;
        }
        self.failed = self.begin().err();
    }

    fn reset_error(&self) -> Option<EnvError> {
        let why = self.failed.as_ref()?.to_string();
        (self.steps == 0)
            .then(|| EnvError::Outside { env: self.spec.id.clone(), why: format!("reset: {why}") })
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        if let Some(error) = self.failed.clone() {
            return Err(self.reset_error().unwrap_or_else(|| self.broken(&error.to_string())));
        }
        self.spec.action.check(&self.spec.id, action)?;
        let Action::Continuous(action) = action else { unreachable!("its space has numbers") };
        self.steps += 1;
        let done = (|| -> Result<[f64; 2], Failure> {
            self.data.set_controls(action)?;
            if self.runge_kutta {
                self.data.step_whole(self.config.repeat)?;
            } else {
                self.data.step_from_half(self.config.repeat)?;
            }
            self.look()?;
            let mut values = [0.0; 2];
            for (value, formula) in values.iter_mut().zip(&mut self.formulas) {
                if let Some(formula) = formula {
                    *value = formula.value(&mut self.data, action)?;
                }
            }
            Ok(values)
        })();
        let [reward, end] = match done {
            Ok(values) => values,
            Err(error) => {
                self.failed = Some(error.clone());
                return Err(self.broken(&error.to_string()));
            }
        };
        if !reward.is_finite() || end.is_nan() {
            return Err(
                self.broken(&format!("the formula of the reward gives {reward}, that of the end {end}"))
            );
        }
        let terminated = end > 0.0;
        let truncated = !terminated && self.steps >= self.config.max_steps;
        self.running = !terminated && !truncated;
        Ok(Step { reward, terminated, truncated })
    }

    fn observation(&self) -> Observation<'_> {
        self.shown.observation()
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let wrong = |error: String| EnvError::NoView { env: self.spec.id.clone(), why: error };
        let camera = camera(self.data.model(), &self.config).map_err(|error| wrong(error.to_string()))?;
        Drawing::show(&self.people, camera, &self.data, view).map_err(|error| wrong(error.to_string()))
    }

    /// Time, positions and velocities.
    fn state(&self) -> Fact {
        let list = |numbers: &[f64]| Fact::List(numbers.iter().map(|&number| Fact::Number(number)).collect());
        Fact::Group(vec![
            ("time", Fact::Number(self.data.time())),
            ("positions", list(self.data.positions())),
            ("velocities", list(self.data.velocities())),
        ])
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        let model = self.data.model().clone();
        // What was made once can be made again, unless memory runs out.
        let copy = ModelWorld::new(&self.spec.id, &model, self.config.clone()).and_then(|mut copy| {
            copy.data = copy_of(&self.data)?;
            Ok(copy)
        });
        let mut copy = match copy {
            Ok(copy) => copy,
            Err(ModelError::Mujoco(error)) => return self.lost(error.into()),
            Err(error) => return self.lost(Failure::Copy(error.to_string())),
        };
        copy.failed.clone_from(&self.failed);
        copy.shown.clone_from(&self.shown);
        copy.random.clone_from(&self.random);
        (copy.steps, copy.running) = (self.steps, self.running);
        Box::new(copy)
    }
}
