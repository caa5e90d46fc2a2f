//! [`Quadruped`]: a robot on four legs walks past walls, from what its camera shows.

mod course;
mod gait;

use std::cell::RefCell;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, GazePoint, ImageBuf, Observation, Rng, Seed, Step,
};
use foveate_mujoco::{Body, Data, Library, Model, MujocoError, Sensor};
use foveate_render::{RenderError, RenderSettings, Renderer};

use crate::drawing::{Drawing, Failure};
use crate::lost::{Lost, copy_of};
use crate::shown::{Shown, ShownParts};
use course::{Course, EDGE, PLATFORM, WALLS};
use gait::{ACTIONS, Gait, MOTORS};

/// Options of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct QuadrupedConfig {
    /// What the observation is.
    pub shown: Shown,
    /// Width and height of the picture in pixels, 1 to [`Renderer::LARGEST_SIDE`].
    pub size: [usize; 2],
    /// True if the picture's edges are smooth.
    pub antialias: bool,
    /// Control steps from one picture of the camera to the next, 1 to [`QuadrupedConfig::MOST_STEPS`].
    pub picture_every: usize,
    /// The speed above which more is worth nothing, in m/s.
    pub most_speed: f64,
}

impl QuadrupedConfig {
    /// Control steps after which an episode is truncated.
    pub const MOST_STEPS: usize = 1000;
}

impl Default for QuadrupedConfig {
    fn default() -> Self {
        QuadrupedConfig {
            shown: Shown::State,
            size: [100, 100],
            antialias: true,
            picture_every: 5,
            most_speed: 0.5,
        }
    }
}

/// Why there is no such world.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuadrupedError {
    /// MuJoCo cannot be used, or refuses the model.
    #[error(transparent)]
    Mujoco(#[from] MujocoError),
    /// The picture has a size that cannot be drawn.
    #[error(transparent)]
    Picture(#[from] RenderError),
    /// A number that makes no sense.
    #[error("{what} = {given} is not between {least} and {most}")]
    Range {
        /// The option.
        what: &'static str,
        /// The given number.
        given: f64,
        /// The smallest possible one.
        least: f64,
        /// The largest possible one.
        most: f64,
    },
}

/// Steps of the simulation per control step.
const SUBSTEPS: u32 = 5;
/// Seconds of a control step, as the model's time step says.
const SECONDS: f64 = 0.02;
/// Height of the trunk's centre at the start, above the platform, in m.
const START: f64 = 0.28;
/// The start is up to this far from the middle, in m, and turned by up to this much, in rad.
const START_RANGE: f64 = 0.2;
/// The robot has fallen when its trunk is lower than this above the platform, in m, or leans so that this is the cosine.
const FALLEN: [f64; 2] = [0.12, 0.5];

/// A quadruped on a platform with walls, after the experiment of Choromanski et al. 2021 (specification: `implicit_attention.md` §7).
/// The robot has the size, the mass and the motors of Unitree's A1; its model is this project's own, of boxes, capsules and spheres.
///
/// * observation: 20 numbers, see [`Quadruped::SENSORS`]; or what the camera at its head sees; or both. The camera makes a picture
///   every [`QuadrupedConfig::picture_every`] control steps
/// * action: 17 numbers from -1 to 1, see [`Quadruped::ACTIONS`]: five parameters of its gait and a residual for each motor, up to
///   0.15 rad. Numbers outside are clipped
/// * reward: metres that the trunk moved along the platform in the control step of 0.02 s, not more than
///   [`QuadrupedConfig::most_speed`] allows
/// * end: terminated when the robot falls, also off the platform, or touches a wall; truncated after 1000 control steps, 20 s
///
/// The platform is 2 m wide. Six walls stand across it, 2 m apart, each over half of its width, on a random side.
pub struct Quadruped {
    config: QuadrupedConfig,
    spec: EnvSpec,
    data: Data,
    trunk: Body,
    gyro: Sensor,
    /// One for each wall.
    touched: Vec<Sensor>,
    eye: Option<Drawing>,
    shown: ShownParts,
    random: Rng,
    course: Course,
    gait: Gait,
    /// The motors' angles of standing.
    stance: [f64; MOTORS],
    steps: usize,
    running: bool,
    failed: Option<Failure>,
    /// What draws pictures for people, at the size of the last one.
    people: RefCell<Option<Drawing>>,
}

impl Quadruped {
    /// Its name.
    pub const NAME: &'static str = "quadruped-walls";

    /// What the numbers of an action are.
    pub const ACTIONS: &'static [&'static str] = &[
        "time scale",
        "left intensity",
        "right intensity",
        "height",
        "swing to stance",
        "front left hip",
        "front left thigh",
        "front left calf",
        "front right hip",
        "front right thigh",
        "front right calf",
        "rear left hip",
        "rear left thigh",
        "rear left calf",
        "rear right hip",
        "rear right thigh",
        "rear right calf",
    ];

    /// What the numbers of the observation are: the direction upwards in the frame of the trunk, its angular velocity in rad/s, the
    /// joints' angles from those of standing, in rad, and the phase of the gait.
    pub const SENSORS: &'static [&'static str] = &[
        "up forward",
        "up left",
        "up",
        "roll speed",
        "pitch speed",
        "yaw speed",
        "front left hip",
        "front left thigh",
        "front left calf",
        "front right hip",
        "front right thigh",
        "front right calf",
        "rear left hip",
        "rear left thigh",
        "rear left calf",
        "rear right hip",
        "rear right thigh",
        "rear right calf",
        "phase cos",
        "phase sin",
    ];

    /// Compiles the model and starts a simulation of it. To build many worlds, build one and clone it.
    ///
    /// # Errors
    /// [`QuadrupedError`].
    pub fn new(library: &Library, config: QuadrupedConfig) -> Result<Self, QuadrupedError> {
        let most = QuadrupedConfig::MOST_STEPS as f64;
        for (what, given, [least, most]) in [
            ("picture_every", config.picture_every as f64, [1.0, most]),
            ("most_speed", config.most_speed, [0.01, 10.0]),
        ] {
            if !(least..=most).contains(&given) {
                return Err(QuadrupedError::Range { what, given, least, most });
            }
        }
        let model = Model::from_xml(library, Self::NAME, include_str!("models/quadruped.xml"))?;
        Self::of(Data::new(&model)?, config).map_err(|failure| match failure {
            Failure::Mujoco(error) => error.into(),
            Failure::Render(error) => error.into(),
            Failure::Copy(_) => unreachable!("this is no copy"),
        })
    }

    fn of(mut data: Data, config: QuadrupedConfig) -> Result<Self, Failure> {
        let model = data.model().clone();
        let [width, height] = config.size;
        let eye = (config.shown != Shown::State).then(|| -> Result<_, Failure> {
            let settings =
                RenderSettings { antialias: config.antialias, ..RenderSettings::new(width, height) };
            Ok(Drawing::new(&model, model.camera("eye")?, Renderer::new(&settings)?)?)
        });
        let touched = (1..=WALLS).map(|wall| data.sensor(&format!("wall {wall}")));
        let touched = touched.collect::<Result<_, _>>()?;
        Ok(Quadruped {
            eye: eye.transpose()?,
            spec: Self::spec_of(&config),
            trunk: model.body("trunk")?,
            gyro: data.sensor("gyro")?,
            touched,
            shown: ShownParts::new(config.shown, Self::SENSORS.len(), config.size),
            random: Seed::root(0).rng(),
            course: Course::default(),
            gait: Gait::default(),
            stance: Gait::default().angles(),
            steps: 0,
            running: false,
            failed: None,
            people: RefCell::new(None),
            data,
            config,
        })
    }

    /// The description of a world, without the library.
    pub fn spec_of(config: &QuadrupedConfig) -> EnvSpec {
        EnvSpec {
            id: Self::NAME.into(),
            observation: config.shown.space(Self::SENSORS.len(), config.size),
            action: ActionSpace::Box { low: vec![-1.0; ACTIONS], high: vec![1.0; ACTIONS] },
            max_steps: Some(QuadrupedConfig::MOST_STEPS),
            fps: 1.0 / SECONDS,
        }
    }

    /// Where the trunk is, in m, and its heading in rad; to the left is positive.
    fn place(&mut self) -> Result<([f64; 3], f64), MujocoError> {
        let (place, rotation) = self.data.frame(&self.trunk)?;
        Ok((place, rotation[3].atan2(rotation[0])))
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.data.reset()?;
        self.course = Course::draw(&mut self.random);
        self.data.set_mocap_positions(&self.course.places())?;
        self.gait = Gait::default();
        let [across, turned] = [(); 2].map(|()| self.random.uniform(-START_RANGE, START_RANGE));
        let mut positions = [0.0; 7 + MOTORS];
        let half = turned / 2.0;
        positions[..7].copy_from_slice(&[0.0, across, PLATFORM + START, half.cos(), 0.0, 0.0, half.sin()]);
        positions[7..].copy_from_slice(&self.stance);
        self.data.set_positions(&positions)?;
        self.data.set_controls(&self.stance)?;
        self.data.forward()?;
        self.look()
    }

    fn look(&mut self) -> Result<(), Failure> {
        let (_, rotation) = self.data.frame(&self.trunk)?;
        let mut turning = [0.0; 3];
        self.data.read(&self.gyro, &mut turning)?;
        let joints =
            self.data.positions()[7..].iter().zip(&self.stance).map(|(angle, stance)| angle - stance);
        let numbers = rotation[6..].iter().copied().chain(turning).chain(joints).chain(self.gait.observed());
        for (shown, number) in self.shown.numbers.iter_mut().zip(numbers) {
            *shown = number as f32;
        }
        if let Some(eye) = &mut self.eye
            && self.steps.is_multiple_of(self.config.picture_every)
        {
            eye.draw(&mut self.data, self.shown.picture.rgb_mut())?;
        }
        Ok(())
    }

    /// Moves on by a control step. Returns the reward and whether the episode is over.
    fn advance(&mut self, action: &[f64; ACTIONS]) -> Result<(f64, bool), Failure> {
        let ([before, ..], _) = self.place()?;
        let angles = self.gait.advance(action, SECONDS);
        self.data.set_controls(&angles)?;
        self.data.step_from_half(SUBSTEPS)?;
        let (place, rotation) = self.data.frame(&self.trunk)?;
        let [low, leaning] = FALLEN;
        let mut over = place[2] < PLATFORM + low || rotation[8] < leaning;
        for sensor in &self.touched {
            let mut found = [0.0];
            self.data.read(sensor, &mut found)?;
            over |= found[0] > 0.0;
        }
        Ok(((place[0] - before).min(self.config.most_speed * SECONDS), over))
    }

    #[cold]
    fn broken(&mut self, error: &Failure) -> EnvError {
        self.running = false;
        EnvError::Outside { env: self.spec.id.clone(), why: format!("control step {}: {error}", self.steps) }
    }
}

impl Env for Quadruped {
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
            return Err(self.reset_error().unwrap_or_else(|| self.broken(&error)));
        }
        self.spec.action.check(&self.spec.id, action)?;
        let Action::Continuous(action) = action else { unreachable!("its space has numbers") };
        let mut numbers = [0.0; ACTIONS];
        numbers.copy_from_slice(action);
        self.steps += 1;
        let done = self.advance(&numbers).and_then(|done| self.look().map(|()| done));
        let (reward, terminated) = match done {
            Ok(done) => done,
            Err(error) => {
                self.failed = Some(error.clone());
                return Err(self.broken(&error));
            }
        };
        let truncated = !terminated && self.steps >= QuadrupedConfig::MOST_STEPS;
        self.running = !terminated && !truncated;
        Ok(Step { reward, terminated, truncated })
    }

    fn observation(&self) -> Observation<'_> {
        self.shown.observation()
    }

    /// The robot from behind and from the side.
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let wrong = |why: String| EnvError::NoView { env: self.spec.id.clone(), why };
        let camera = self.data.model().camera("side").map_err(|error| wrong(error.to_string()))?;
        Drawing::show(&self.people, camera, &self.data, view).map_err(|error| wrong(error.to_string()))
    }

    /// A guide who knows the walls walks through the gaps.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        if action.len() != ACTIONS {
            let (wanted, given) = (ACTIONS, action.len());
            return Err(EnvError::ActionLength { env: self.spec.id.clone(), wanted, given });
        }
        let ([x, y, _], heading) = self.place().map_err(|error| self.broken(&error.into()))?;
        action.copy_from_slice(&self.course.guide([x, y], heading));
        Ok(())
    }

    /// The two ends of the next gap, where they meet the platform.
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        points.clear();
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        let ([x, ..], _) = self.place().map_err(|error| self.broken(&error.into()))?;
        let Some(eye) = &self.eye else { return Err(EnvError::NoGaze { env: self.spec.id.clone() }) };
        let Some((along, ends)) = self.course.next(x) else { return Ok(()) };
        for end in ends {
            debug_assert!(end.abs() <= EDGE);
            if let Some([x, y]) = eye.place([along, end, PLATFORM]) {
                let point = GazePoint { x, y, weight: 0.5 };
                if point.is_valid() {
                    points.push(point);
                }
            }
        }
        Ok(())
    }

    /// Time, positions, velocities, and where the walls are across.
    fn state(&self) -> Fact {
        let list = |numbers: &[f64]| Fact::List(numbers.iter().map(|&number| Fact::Number(number)).collect());
        Fact::Group(vec![
            ("time", Fact::Number(self.data.time())),
            ("positions", list(self.data.positions())),
            ("velocities", list(self.data.velocities())),
            ("walls", list(&self.course.across)),
        ])
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        let data = copy_of(&self.data).map_err(Failure::from);
        let mut copy = match data.and_then(|data| Self::of(data, self.config.clone())) {
            Ok(copy) => copy,
            Err(why) => return Box::new(Lost { spec: self.spec.clone(), shown: self.shown.clone(), why }),
        };
        copy.failed.clone_from(&self.failed);
        copy.shown.clone_from(&self.shown);
        copy.random.clone_from(&self.random);
        copy.course.clone_from(&self.course);
        copy.gait.clone_from(&self.gait);
        (copy.steps, copy.running) = (self.steps, self.running);
        Box::new(copy)
    }
}
