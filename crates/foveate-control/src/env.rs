//! [`Control`]: a task as an [`Env`].

use std::cell::RefCell;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, GazePoint, ImageBuf, Observation, Step,
};
use foveate_mujoco::{Data, Library, Model, MujocoError};
use foveate_render::{RenderSettings, Renderer};

use crate::distractions::{DistractionConfig, Distractions};
use crate::drawing::Failure;
use crate::eye::Eye;
use crate::lost::{Lost, copy_of};
use crate::random::RandomState;
use crate::shown::{Shown, ShownParts};
use crate::task::{Handles, Parts, Task};

/// Control steps after which an episode is truncated.
const MAX_STEPS: usize = 1000;
/// The seed of a world that never got one.
const DEFAULT_SEED: u64 = 0;

/// Options of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlConfig {
    /// Control steps for which an action is held, 1 to 100; their rewards are added.
    pub repeat: u32,
    /// What the observation is.
    pub shown: Shown,
    /// Width and height of the picture in pixels, 1 to [`Renderer::LARGEST_SIDE`].
    pub size: [usize; 2],
    /// True if the picture's edges are smooth, as dm_control's are; without, it is faster.
    pub antialias: bool,
    /// What is changed in the picture.
    pub distractions: DistractionConfig,
}

impl Default for ControlConfig {
    fn default() -> Self {
        ControlConfig {
            repeat: 1,
            shown: Shown::State,
            size: [100, 100],
            antialias: true,
            distractions: DistractionConfig::default(),
        }
    }
}

/// Why a task cannot be made into a world.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// MuJoCo cannot be used, or refuses the model.
    #[error("{task}: {source}")]
    Mujoco {
        /// The task.
        task: &'static str,
        /// Its error.
        source: MujocoError,
    },
    /// An action would be held for too few or too many steps.
    #[error("{task}: repeat = {given} is not between 1 and {}", ControlConfig::MOST_REPEATS)]
    Repeat {
        /// The task.
        task: &'static str,
        /// The given number.
        given: u32,
    },
    /// A picture of no or of too many pixels.
    #[error(
        "{task}: a picture of {width} x {height} pixels; each side is from 1 to {}",
        Renderer::LARGEST_SIDE
    )]
    Size {
        /// The task.
        task: &'static str,
        /// The given width.
        width: usize,
        /// The given height.
        height: usize,
    },
    /// Distractions in a world that shows no picture.
    #[error(
        "{task}: distractions change the picture, and this world shows numbers alone; choose the picture pixels"
    )]
    Unseen {
        /// The task.
        task: &'static str,
    },
}

impl ControlConfig {
    /// An action is held for at most this many control steps.
    pub const MOST_REPEATS: u32 = 100;
    /// Longest side of a picture, in pixels.
    pub const LARGEST_SIDE: usize = Renderer::LARGEST_SIDE;
}

/// A task of the DeepMind Control suite.
///
/// * observation: the numbers of [`Task::sensors`], in dm_control's order and units (m, rad, s); or the picture of dm_control's
///   camera 0, as [`Renderer`] draws it, with all its effects; or both
/// * action: one number per actuator, -1 to 1; numbers outside are passed on, and the model clips them
/// * reward: 0 to 1 per control step
/// * end: truncated after 1000 control steps, never terminated
///
/// An episode with a seed is the one of dm_control's `suite.load(domain, task, task_kwargs={"random": seed})`, see
/// [`RandomState::new`]. A reset without a seed continues the random stream, as a second episode there does.
pub struct Control {
    task: &'static Task,
    config: ControlConfig,
    spec: EnvSpec,
    data: Data,
    handles: Handles,
    random: RandomState,
    target: [f64; 2],
    /// In double precision.
    numbers: Vec<f64>,
    shown: ShownParts,
    controls: Vec<f64>,
    /// What draws the picture, for a world that shows one.
    eye: Option<Eye>,
    distractions: Option<Distractions>,
    /// What draws pictures for people, at the size of the last one.
    people: RefCell<Option<Eye>>,
    /// Control steps of the episode.
    steps: usize,
    running: bool,
    /// Why the last reset failed; the next step returns it.
    failed: Option<Failure>,
}

impl Control {
    /// Compiles the task's model and starts a simulation of it. To build many worlds, build one and clone it.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn new(library: &Library, task: &'static Task, config: ControlConfig) -> Result<Self, ControlError> {
        let ControlConfig { repeat, shown, size: [width, height], antialias, .. } = config;
        let task_name = task.name;
        if !(1..=ControlConfig::MOST_REPEATS).contains(&repeat) {
            return Err(ControlError::Repeat { task: task_name, given: repeat });
        }
        if [width, height].iter().any(|side| !(1..=Renderer::LARGEST_SIDE).contains(side)) {
            return Err(ControlError::Size { task: task_name, width, height });
        }
        if shown == Shown::State && !config.distractions.is_empty() {
            return Err(ControlError::Unseen { task: task_name });
        }
        let failed = |source| ControlError::Mujoco { task: task_name, source };
        let model = if config.distractions.is_empty() {
            Model::from_xml(library, task_name, task.xml)
        } else {
            Model::from_xml(library, task_name, &Distractions::xml(task))
        };
        let model = model.map_err(failed)?;
        let mut data = Data::new(&model).map_err(failed)?;
        let handles = Handles::of(task, &mut data).map_err(failed)?;
        let eye = (shown != Shown::State).then(|| {
            let settings = RenderSettings { antialias, ..RenderSettings::new(width, height) };
            Eye::new(&model, task, &settings)
        });
        let eye = eye.transpose().map_err(|failure| match failure {
            Failure::Mujoco(source) => failed(source),
            Failure::Render(_) | Failure::Copy(_) => ControlError::Size { task: task_name, width, height },
        })?;
        let distractions = (!config.distractions.is_empty())
            .then(|| Distractions::new(&config.distractions, task, &mut data))
            .transpose()
            .map_err(failed)?;
        let spec = Self::spec_of(task, &config);
        let parts = ShownParts::new(shown, task.sensors.len(), [width, height]);
        Ok(Control {
            task,
            config,
            spec,
            data,
            handles,
            random: RandomState::new(DEFAULT_SEED),
            target: [0.0; 2],
            numbers: vec![0.0; task.sensors.len()],
            shown: parts,
            controls: vec![0.0; task.actions.len()],
            eye,
            distractions,
            people: RefCell::new(None),
            steps: 0,
            running: false,
            failed: None,
        })
    }

    /// The description of a world, without the library.
    pub fn spec_of(task: &Task, config: &ControlConfig) -> EnvSpec {
        let actions = task.actions.len();
        let repeat = config.repeat.max(1);
        EnvSpec {
            id: task.name.into(),
            observation: config.shown.space(task.sensors.len(), config.size),
            action: ActionSpace::Box { low: vec![-1.0; actions], high: vec![1.0; actions] },
            max_steps: Some(MAX_STEPS.div_ceil(repeat as usize)),
            fps: task.rate / f64::from(repeat),
        }
    }

    /// The observation in double precision, `[sensors]`.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// Positions of the joints.
    pub fn positions(&self) -> &[f64] {
        self.data.positions()
    }

    fn parts(&mut self) -> Parts<'_> {
        Parts {
            data: &mut self.data,
            random: &mut self.random,
            handles: &mut self.handles,
            target: &mut self.target,
        }
    }

    fn begin(&mut self, seed: Option<u64>) -> Result<(), Failure> {
        self.data.reset()?;
        self.data.forward()?;
        (self.task.start)(&mut self.parts())?;
        self.data.forward()?;
        if let (Some(distractions), Some(eye)) = (&mut self.distractions, &mut self.eye) {
            eye.look(&mut self.data, self.target)?;
            distractions.begin(seed, &mut self.data, &eye.scene)?;
        }
        self.look()
    }

    fn look(&mut self) -> Result<(), Failure> {
        let mut numbers = std::mem::take(&mut self.numbers);
        let done = (self.task.observe)(&mut self.parts(), &mut numbers);
        self.numbers = numbers;
        done?;
        for (shown, &number) in self.shown.numbers.iter_mut().zip(&self.numbers) {
            *shown = number as f32;
        }
        if let Some(eye) = &mut self.eye {
            let rgb = self.shown.picture.rgb_mut();
            eye.draw(&mut self.data, self.target, self.distractions.as_ref(), rgb)?;
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<f64, MujocoError> {
        let Task { substeps, runge_kutta, .. } = *self.task;
        if runge_kutta {
            self.data.step_whole(substeps)?;
        } else {
            self.data.step_from_half(substeps)?;
        }
        let controls = std::mem::take(&mut self.controls);
        let reward = (self.task.reward)(&mut self.parts(), &controls);
        self.controls = controls;
        reward
    }

    #[cold]
    fn broken(&mut self, error: &Failure) -> EnvError {
        self.running = false;
        let why = format!("control step {}: {error}", self.steps + 1);
        EnvError::Outside { env: self.spec.id.clone(), why }
    }
}

impl Env for Control {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.random = RandomState::new(seed);
        }
        (self.steps, self.running) = (0, true);
        self.controls.fill(0.0);
        if let Some(model) = matches!(
            self.failed,
            Some(Failure::Mujoco(MujocoError::Failed { .. } | MujocoError::Broken { .. }))
        )
        .then(|| self.data.model().clone())
            && let Ok(data) = Data::new(&model)
        {
            self.data = data;
        }
        self.failed = self.begin(seed).err();
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
            return Err(self.reset_error().unwrap_or_else(|| self.broken(&error)));
        }
        self.spec.action.check(self.task.name, action)?;
        let Action::Continuous(action) = action else { unreachable!("its space has numbers") };
        self.controls.copy_from_slice(action);
        let mut reward = 0.0;
        let done = (|| -> Result<(), Failure> {
            self.data.set_controls(&self.controls)?;
            for _ in 0..self.config.repeat {
                reward += self.advance()?;
                self.steps += 1;
                if let Some(distractions) = &mut self.distractions {
                    distractions.advance();
                }
                if self.steps >= MAX_STEPS {
                    break;
                }
            }
            self.look()
        })();
        if let Err(error) = done {
            self.failed = Some(error.clone());
            return Err(self.broken(&error));
        }
        let truncated = self.steps >= MAX_STEPS;
        self.running = !truncated;
        Ok(Step { reward, terminated: false, truncated })
    }

    fn observation(&self) -> Observation<'_> {
        self.shown.observation()
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let (width, height) = (view.width(), view.height());
        let wrong = |error: &Failure| EnvError::NoView { env: self.spec.id.clone(), why: error.to_string() };
        let mut people = self.people.borrow_mut();
        let fits = |eye: &Eye| (eye.settings().width, eye.settings().height) == (width, height);
        if !people.as_ref().is_some_and(fits) {
            let eye = Eye::new(self.data.model(), self.task, &RenderSettings::new(width, height));
            *people = Some(eye.map_err(|error| wrong(&error))?);
        }
        let Some(eye) = people.as_mut() else { return Ok(()) };
        // Scenes are made from a simulation that may be written to.
        let mut data = self.data.copied().map_err(|error| wrong(&error.into()))?;
        eye.draw(&mut data, self.target, self.distractions.as_ref(), view.rgb_mut())
            .map_err(|error| wrong(&error))
    }

    /// The agent's own bodies, what it acts on, and its target.
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        points.clear();
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        let Some(eye) = &self.eye else { return Err(EnvError::NoGaze { env: self.spec.id.clone() }) };
        eye.gaze(points);
        Ok(())
    }

    /// Time, positions, velocities and, in the reacher, the target's place.
    fn state(&self) -> Fact {
        let list = |numbers: &[f64]| Fact::List(numbers.iter().map(|&number| Fact::Number(number)).collect());
        let mut facts = vec![
            ("time", Fact::Number(self.data.time())),
            ("positions", list(self.data.positions())),
            ("velocities", list(self.data.velocities())),
        ];
        if self.target != [0.0; 2] {
            facts.push(("target", list(&self.target)));
        }
        Fact::Group(facts)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        let parts = || -> Result<_, Failure> {
            let mut data = copy_of(&self.data)?;
            let handles = Handles::of(self.task, &mut data)?;
            let eye = self.eye.as_ref().map(|eye| eye.copied(data.model(), self.task)).transpose()?;
            Ok((data, handles, eye))
        };
        let (data, handles, eye) = match parts() {
            Ok(parts) => parts,
            Err(why) => return Box::new(Lost { spec: self.spec.clone(), shown: self.shown.clone(), why }),
        };
        Box::new(Control {
            task: self.task,
            config: self.config.clone(),
            spec: self.spec.clone(),
            data,
            handles,
            random: self.random.clone(),
            target: self.target,
            numbers: self.numbers.clone(),
            shown: self.shown.clone(),
            controls: self.controls.clone(),
            eye,
            distractions: self.distractions.clone(),
            people: RefCell::new(None),
            steps: self.steps,
            running: self.running,
            failed: self.failed.clone(),
        })
    }
}
