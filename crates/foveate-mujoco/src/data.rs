//! Simulations.

use crate::error::MujocoError;
use crate::ffi::{Advance, Body, RawData, Sensor, State};
use crate::model::{Keyframe, Kind, Model};

/// One simulation of a model.
///
/// After [`MujocoError::Failed`] it cannot be used any more; after [`MujocoError::Diverged`] it must be reset.
pub struct Data {
    model: Model,
    pub(crate) raw: RawData,
    /// Time, positions, velocities.
    motion: Vec<f64>,
}

impl Data {
    /// Starts a simulation in the model's initial state.
    ///
    /// # Errors
    /// [`MujocoError::Failed`], for example without enough memory.
    pub fn new(model: &Model) -> Result<Data, MujocoError> {
        let raw = RawData::new(&model.raw)?;
        let motion = vec![0.0; model.raw.state_size(State::Motion)?];
        let mut data = Data { model: model.clone(), raw, motion };
        data.refresh()?;
        Ok(data)
    }

    /// A copy that continues bit for bit like the original.
    ///
    /// # Errors
    /// [`MujocoError::Broken`] or [`MujocoError::Failed`].
    pub fn copied(&self) -> Result<Data, MujocoError> {
        Ok(Data { model: self.model.clone(), raw: self.raw.copied()?, motion: self.motion.clone() })
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Simulated time in seconds.
    pub fn time(&self) -> f64 {
        self.motion[0]
    }

    /// Positions of the joints, `[nq]`.
    pub fn positions(&self) -> &[f64] {
        &self.motion[1..=self.model.positions()]
    }

    /// Velocities of the joints, `[nv]`.
    pub fn velocities(&self) -> &[f64] {
        &self.motion[1 + self.model.positions()..]
    }

    /// MuJoCo's warnings since the last call of this function.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(self.raw.warnings())
    }

    /// Resets to the model's initial state (`mj_resetData`); nothing is computed from it yet.
    ///
    /// # Errors
    /// [`MujocoError::Broken`] or [`MujocoError::Failed`], as all functions below.
    pub fn reset(&mut self) -> Result<(), MujocoError> {
        self.raw.warnings().clear();
        self.raw.advance(Advance::Reset)?;
        self.refresh()
    }

    /// Resets to a keyframe of the model (`mj_resetDataKeyframe`); nothing is computed from it yet.
    ///
    /// # Errors
    /// As [`reset`](Data::reset).
    pub fn reset_to(&mut self, keyframe: Keyframe) -> Result<(), MujocoError> {
        self.raw.warnings().clear();
        self.raw.reset_to(keyframe.0)?;
        self.refresh()
    }

    /// Computes everything from the state, without a step (`mj_forward`).
    ///
    /// # Errors
    /// Also [`MujocoError::Diverged`].
    pub fn forward(&mut self) -> Result<(), MujocoError> {
        self.raw.advance(Advance::Forward)?;
        self.refresh()?;
        self.check_state()
    }

    /// Advances `steps` steps, one or more, and computes what depends on positions and velocities: the second half of a step
    /// (`mj_step2`), whole steps (`mj_step`), and the first half of the next (`mj_step1`), as dm_control does.
    ///
    /// # Errors
    /// Also [`MujocoError::Diverged`].
    pub fn step_from_half(&mut self, steps: u32) -> Result<(), MujocoError> {
        let before = self.time();
        self.raw.advance(Advance::Step2)?;
        for _ in 1..steps {
            self.raw.advance(Advance::Step)?;
        }
        self.raw.advance(Advance::Step1)?;
        self.refresh()?;
        self.check_step(before)
    }

    /// As [`step_from_half`](Data::step_from_half), with whole steps alone, for models with the Runge-Kutta integrator.
    ///
    /// # Errors
    /// Also [`MujocoError::Diverged`].
    pub fn step_whole(&mut self, steps: u32) -> Result<(), MujocoError> {
        let before = self.time();
        for _ in 0..steps {
            self.raw.advance(Advance::Step)?;
        }
        self.raw.advance(Advance::Step1)?;
        self.refresh()?;
        self.check_step(before)
    }

    /// Sets all positions, `[nq]`; what depends on them is computed by the next function that computes it.
    ///
    /// # Errors
    /// Also [`MujocoError::Length`] and [`MujocoError::NotFinite`].
    pub fn set_positions(&mut self, positions: &[f64]) -> Result<(), MujocoError> {
        self.set("positions", State::Positions, self.model.positions(), positions)
    }

    /// Sets all velocities, `[nv]`.
    ///
    /// # Errors
    /// As [`set_positions`](Data::set_positions).
    pub fn set_velocities(&mut self, velocities: &[f64]) -> Result<(), MujocoError> {
        self.set("velocities", State::Velocities, self.model.velocities(), velocities)
    }

    /// Sets the time in seconds.
    ///
    /// # Errors
    /// As [`set_positions`](Data::set_positions).
    pub fn set_time(&mut self, time: f64) -> Result<(), MujocoError> {
        self.set("time", State::Time, 1, &[time])
    }

    /// Sets all controls, `[nu]`.
    ///
    /// # Errors
    /// As [`set_positions`](Data::set_positions).
    pub fn set_controls(&mut self, controls: &[f64]) -> Result<(), MujocoError> {
        self.set("controls", State::Controls, self.model.controls(), controls)
    }

    /// Sets where all mocap bodies are, `[nmocap, 3]`, in m.
    ///
    /// # Errors
    /// As [`set_positions`](Data::set_positions).
    pub fn set_mocap_positions(&mut self, places: &[f64]) -> Result<(), MujocoError> {
        let wanted = self.model.raw.state_size(State::MocapPositions)?;
        self.set("places of mocap bodies", State::MocapPositions, wanted, places)
    }

    fn set(
        &mut self,
        what: &'static str,
        part: State,
        wanted: usize,
        numbers: &[f64],
    ) -> Result<(), MujocoError> {
        if numbers.len() != wanted {
            return Err(MujocoError::Length { what, wanted, given: numbers.len() });
        }
        if let Some(index) = numbers.iter().position(|number| !number.is_finite()) {
            return Err(MujocoError::NotFinite { what, index, value: numbers[index] });
        }
        self.raw.set(part, numbers)?;
        if part == State::Controls { Ok(()) } else { self.refresh() }
    }

    /// The sensor called `name`.
    ///
    /// # Errors
    /// [`MujocoError::NoSuchName`], also when the sensor has a delay.
    pub fn sensor(&mut self, name: &str) -> Result<Sensor, MujocoError> {
        let id = self.model.id(Kind::Sensor, name)?;
        let sensor = self.raw.sensor(id as i32);
        sensor.ok_or_else(|| self.model.no("sensor without a delay", name))
    }

    /// Reads a sensor into `numbers`, as many as [`Sensor::len`] says, as it was last computed.
    ///
    /// # Errors
    /// Also [`MujocoError::Length`], also for a sensor of another model.
    pub fn read(&mut self, sensor: &Sensor, numbers: &mut [f64]) -> Result<(), MujocoError> {
        self.raw.read_sensor(sensor, numbers)
    }

    /// The position of a body's frame and its rotation, `[3, 3]` row-major, as last computed.
    ///
    /// # Errors
    /// Also [`MujocoError::Length`] for a body of another model.
    pub fn frame(&mut self, body: &Body) -> Result<([f64; 3], [f64; 9]), MujocoError> {
        self.raw.body_frame(body, None)
    }

    /// Where a point of a body's frame is in the world.
    ///
    /// # Errors
    /// As [`frame`](Data::frame).
    pub fn point(&mut self, body: &Body, place: [f64; 3]) -> Result<[f64; 3], MujocoError> {
        Ok(self.raw.body_frame(body, Some(place))?.0)
    }

    fn refresh(&mut self) -> Result<(), MujocoError> {
        self.raw.get(State::Motion, &mut self.motion)
    }

    /// After a step. MuJoCo resets a simulation silently when its state is bad; then the time goes back, and there is a warning.
    fn check_step(&mut self, before: f64) -> Result<(), MujocoError> {
        self.check_state()?;
        if self.time() > before {
            return Ok(());
        }
        Err(MujocoError::Diverged { why: format!("the time went from {before} s to {} s", self.time()) })
    }

    fn check_state(&mut self) -> Result<(), MujocoError> {
        let bad = self.raw.warnings().iter().find(|text| text.starts_with("Nan, Inf or huge value"));
        if let Some(why) = bad {
            return Err(MujocoError::Diverged { why: why.clone() });
        }
        match self.motion.iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(at) => {
                Err(MujocoError::Diverged { why: format!("number {at} of the state is {}", self.motion[at]) })
            }
        }
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Data")
            .field("model", &self.model)
            .field("motion", &self.motion)
            .finish_non_exhaustive()
    }
}
