//! [`Control`]: a task as an [`Env`].

use foveate_core::{Action, ActionSpace, Env, EnvError, EnvSpec, Fact, Observation, ObservationSpace, Step};
use foveate_mujoco::{Data, Library, Model, MujocoError};

use crate::random::RandomState;
use crate::task::{Handles, Parts, Task};

/// Control steps after which an episode is truncated.
const MAX_STEPS: usize = 1000;
/// The seed of a world that never got one.
const DEFAULT_SEED: u64 = 0;

/// Options of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlConfig {
    /// Control steps for which an action is held, 1 to 100; their rewards are added.
    pub repeat: u32,
}

impl Default for ControlConfig {
    fn default() -> Self {
        ControlConfig { repeat: 1 }
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
}

impl ControlConfig {
    /// An action is held for at most this many control steps.
    pub const MOST_REPEATS: u32 = 100;
}

/// A task of the DeepMind Control suite.
///
/// * observation: the numbers of [`Task::sensors`], in dm_control's order and units (m, rad, s)
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
    shown: Vec<f32>,
    controls: Vec<f64>,
    /// Control steps of the episode.
    steps: usize,
    running: bool,
    /// Why the last reset failed; the next step returns it.
    failed: Option<MujocoError>,
}

impl Control {
    /// Compiles the task's model and starts a simulation of it. To build many worlds, build one and clone it.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn new(library: &Library, task: &'static Task, config: ControlConfig) -> Result<Self, ControlError> {
        if !(1..=ControlConfig::MOST_REPEATS).contains(&config.repeat) {
            return Err(ControlError::Repeat { task: task.name, given: config.repeat });
        }
        let failed = |source| ControlError::Mujoco { task: task.name, source };
        let model = Model::from_xml(library, task.name, task.xml).map_err(failed)?;
        let mut data = Data::new(&model).map_err(failed)?;
        let handles = Handles::of(task, &mut data).map_err(failed)?;
        Ok(Control {
            task,
            config,
            spec: Self::spec_of(task, config),
            data,
            handles,
            random: RandomState::new(DEFAULT_SEED),
            target: [0.0; 2],
            numbers: vec![0.0; task.sensors.len()],
            shown: vec![0.0; task.sensors.len()],
            controls: vec![0.0; task.actions.len()],
            steps: 0,
            running: false,
            failed: None,
        })
    }

    /// The description of a world, without the library.
    pub fn spec_of(task: &Task, config: ControlConfig) -> EnvSpec {
        let actions = task.actions.len();
        EnvSpec {
            id: task.name.into(),
            observation: ObservationSpace::Vector { len: task.sensors.len() },
            action: ActionSpace::Box { low: vec![-1.0; actions], high: vec![1.0; actions] },
            max_steps: Some(MAX_STEPS.div_ceil(config.repeat.max(1) as usize)),
            fps: task.rate / f64::from(config.repeat.max(1)),
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

    fn begin(&mut self) -> Result<(), MujocoError> {
        self.data.reset()?;
        self.data.forward()?;
        (self.task.start)(&mut self.parts())?;
        self.data.forward()?;
        self.look()
    }

    fn look(&mut self) -> Result<(), MujocoError> {
        let mut numbers = std::mem::take(&mut self.numbers);
        let done = (self.task.observe)(&mut self.parts(), &mut numbers);
        self.numbers = numbers;
        done?;
        for (shown, &number) in self.shown.iter_mut().zip(&self.numbers) {
            *shown = number as f32;
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
    fn broken(&mut self, error: &MujocoError) -> EnvError {
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
        if let Some(model) =
            matches!(self.failed, Some(MujocoError::Failed { .. } | MujocoError::Broken { .. }))
                .then(|| self.data.model().clone())
            && let Ok(data) = Data::new(&model)
        {
            self.data = data;
        }
        self.failed = self.begin().err();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        if let Some(error) = self.failed.clone() {
            return Err(self.broken(&error));
        }
        self.spec.action.check(self.task.name, action)?;
        let Action::Continuous(action) = action else { unreachable!("its space has numbers") };
        self.controls.copy_from_slice(action);
        let mut reward = 0.0;
        let done = (|| {
            self.data.set_controls(&self.controls)?;
            for _ in 0..self.config.repeat {
                reward += self.advance()?;
                self.steps += 1;
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
        Observation::Vector(&self.shown)
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
        // Without memory for a copy, there is a simulation that says so at its first step.
        let model = self.data.model().clone();
        let (data, failed) = match self.data.copied() {
            Ok(data) => (Ok(data), self.failed.clone()),
            Err(error) => (Data::new(&model), Some(error)),
        };
        let mut data = data.unwrap_or_else(|error| panic!("{}: {error}", self.task.name));
        let handles = Handles::of(self.task, &mut data);
        let handles = handles.unwrap_or_else(|error| panic!("{}: {error}", self.task.name));
        Box::new(Control {
            task: self.task,
            config: self.config,
            spec: self.spec.clone(),
            data,
            handles,
            random: self.random.clone(),
            target: self.target,
            numbers: self.numbers.clone(),
            shown: self.shown.clone(),
            controls: self.controls.clone(),
            steps: self.steps,
            running: self.running,
            failed,
        })
    }
}
