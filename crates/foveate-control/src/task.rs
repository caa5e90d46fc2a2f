//! What a task is, and the list of all.

use foveate_mujoco::{Body, Data, MujocoError, SceneView, Sensor};

use crate::random::RandomState;
use crate::tasks;

/// A task: a model, and functions that start episodes, observe and reward.
#[derive(Debug)]
pub struct Task {
    /// Its name, such as `cheetah-run`.
    pub name: &'static str,
    /// dm_control's names of domain and task.
    pub suite: [&'static str; 2],
    /// What it is, in one line.
    pub about: &'static str,
    /// The model's XML.
    pub xml: &'static str,
    /// How it is shown.
    pub(crate) scenery: Scenery,
    /// Steps of the simulation per control step.
    pub(crate) substeps: u32,
    /// True if the model has the Runge-Kutta integrator.
    pub(crate) runge_kutta: bool,
    /// Control steps per second of simulated time.
    pub(crate) rate: f64,
    /// Names of the actions' numbers, each from -1 to 1.
    pub actions: &'static [&'static str],
    /// Names of the observation's numbers.
    pub sensors: &'static [&'static str],
    /// Names of the bodies whose frames it needs, in the order of [`Handles::bodies`].
    pub(crate) bodies: &'static [&'static str],
    /// Names of the sensors that it reads, in the order of [`Handles::sensors`].
    pub(crate) reads: &'static [&'static str],
    /// Sets the start of an episode; the simulation was reset and computed. It is computed again afterwards.
    pub(crate) start: fn(&mut Parts<'_>) -> Result<(), MujocoError>,
    /// Writes the observation's numbers, in the order of [`Task::sensors`].
    pub(crate) observe: fn(&mut Parts<'_>, &mut [f64]) -> Result<(), MujocoError>,
    /// The reward of the last action.
    pub(crate) reward: fn(&mut Parts<'_>, &[f64]) -> Result<f64, MujocoError>,
}

/// How a task is shown, and what distractions may do to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenery {
    /// Name of the camera.
    pub(crate) camera: &'static str,
    /// True if the camera moves with the centre of mass of the root.
    pub(crate) moving_camera: bool,
    /// Name of the model's first body; it and all that hangs on it is the agent.
    pub(crate) root: &'static str,
    /// Name of the geom that stands where the task's target is, for a task that draws a target.
    pub(crate) placed_target: Option<&'static str>,
    /// Opacity of the floor before a distracting background.
    pub(crate) floor_opacity: f32,
    /// True if a distracting camera stays above the floor and in front of the scene.
    pub(crate) upper_half: bool,
}

/// What a task's functions work with.
pub(crate) struct Parts<'a> {
    pub(crate) data: &'a mut Data,
    pub(crate) random: &'a mut RandomState,
    pub(crate) handles: &'a mut Handles,
    /// The place of the target, for the task that has one.
    pub(crate) target: &'a mut [f64; 2],
}

/// Things of the model, looked up once.
pub(crate) struct Handles {
    pub(crate) bodies: Vec<Body>,
    pub(crate) sensors: Vec<Sensor>,
    pub(crate) contacts: SceneView,
}

impl Handles {
    pub(crate) fn of(task: &Task, data: &mut Data) -> Result<Self, MujocoError> {
        let model = data.model().clone();
        Ok(Handles {
            bodies: task.bodies.iter().map(|name| model.body(name)).collect::<Result<_, _>>()?,
            sensors: task.reads.iter().map(|name| data.sensor(name)).collect::<Result<_, _>>()?,
            contacts: SceneView::of_contacts(&model)?,
        })
    }
}

impl Parts<'_> {
    /// Reads the sensor at `index` of [`Task::reads`].
    pub(crate) fn sensor<const N: usize>(&mut self, index: usize) -> Result<[f64; N], MujocoError> {
        let mut numbers = [0.0; N];
        self.data.read(&self.handles.sensors[index], &mut numbers)?;
        Ok(numbers)
    }

    /// The frame of the body at `index` of [`Task::bodies`].
    pub(crate) fn frame(&mut self, index: usize) -> Result<([f64; 3], [f64; 9]), MujocoError> {
        self.data.frame(&self.handles.bodies[index])
    }

    /// Where a point of that body is.
    pub(crate) fn point(&mut self, index: usize, place: [f64; 3]) -> Result<[f64; 3], MujocoError> {
        self.data.point(&self.handles.bodies[index], place)
    }

    /// Number of contacts, as last computed.
    pub(crate) fn contacts(&mut self) -> Result<usize, MujocoError> {
        self.handles.contacts.contacts(self.data)
    }

    /// Draws every position from its range, in order; `None` for one that is left as it is.
    pub(crate) fn draw_positions(&mut self, ranges: &[Option<[f64; 2]>]) -> Result<(), MujocoError> {
        let mut positions = [0.0; 16];
        let positions = &mut positions[..self.data.positions().len()];
        positions.copy_from_slice(self.data.positions());
        for (position, range) in positions.iter_mut().zip(ranges) {
            if let &Some([low, high]) = range {
                *position = self.random.uniform(low, high);
            }
        }
        self.data.set_positions(positions)
    }
}

/// All tasks.
pub const TASKS: [&Task; 6] = [
    &tasks::cheetah::RUN,
    &tasks::walker::WALK,
    &tasks::cartpole::SWINGUP,
    &tasks::ball_in_cup::CATCH,
    &tasks::reacher::EASY,
    &tasks::finger::SPIN,
];

/// The task of this name.
pub fn task(name: &str) -> Option<&'static Task> {
    TASKS.into_iter().find(|task| task.name == name)
}

/// `degrees` in radians, as MuJoCo's compiler converts them.
pub(crate) const fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}
