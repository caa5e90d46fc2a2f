//! Compiled models.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use crate::compiler::{self, Limits};
use crate::error::MujocoError;
use crate::ffi::{Body, Library, RawModel, Source, State};

/// Longest XML text of a model, in bytes.
pub(crate) const LONGEST_TEXT: u64 = 16 << 20;
/// Largest compiled model, in bytes.
pub(crate) const LARGEST_MODEL: u64 = 1 << 30;
/// Most iterations of a part of a step; MuJoCo's defaults are 100 or fewer.
const MOST_ITERATIONS: u64 = 10_000;
/// What must be free to compile a model of the program's own in this process, in MB; the largest needs a third.
const ROOM: usize = 64;

/// What [`RawModel::iterations`] counts.
const COUNTS: [&str; 6] = [
    "iterations of the solver (option iterations)",
    "iterations of the line search (option ls_iterations)",
    "iterations without slip (option noslip_iterations)",
    "iterations of collisions (option ccd_iterations)",
    "starts of a distance field (option sdf_initpoints)",
    "iterations of a distance field (option sdf_iterations)",
];

/// A compiled model. Copies share it.
#[derive(Clone)]
pub struct Model {
    pub(crate) raw: Arc<RawModel>,
    name: Arc<str>,
    warnings: Arc<[String]>,
}

/// A camera of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Camera(pub(crate) i32);

/// A keyframe of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyframe(pub(crate) i32);

/// Kinds of things that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A body.
    Body,
    /// A joint.
    Joint,
    /// A geom.
    Geom,
    /// A site.
    Site,
    /// A camera.
    Camera,
    /// A sensor.
    Sensor,
    /// A keyframe.
    Keyframe,
}

impl Model {
    /// Compiles the XML text of a model that the program itself contains; `name` is what messages call it.
    ///
    /// It is compiled in this process, where a model of a stranger can do harm: use [`Model::from_file`] for those.
    ///
    /// # Errors
    /// [`MujocoError::TooLarge`]; [`MujocoError::Model`] when MuJoCo finds something wrong with it; [`MujocoError::Failed`];
    /// [`MujocoError::Memory`].
    pub fn from_xml(library: &Library, name: &str, xml: &str) -> Result<Model, MujocoError> {
        check_size(name, "bytes of XML", xml.len() as u64, LONGEST_TEXT)?;
        let text = CString::new(xml).map_err(|error| MujocoError::Model {
            name: name.to_owned(),
            why: format!("it has a zero byte at {}", error.nul_position()),
        })?;
        // What is reserved here is free again before the compiler, which ends the process without memory, takes its own.
        if Vec::<u8>::new().try_reserve_exact(ROOM << 20).is_err() {
            return Err(MujocoError::Memory { name: name.to_owned(), megabytes: ROOM });
        }
        Self::compile(library, name, Source::Text(&text))
    }

    /// Compiles an XML file, with the files that it includes, in a process of its own with these limits.
    ///
    /// # Errors
    /// Those of [`Model::from_xml`], [`MujocoError::File`], [`MujocoError::NoFile`], [`MujocoError::Compile`],
    /// [`MujocoError::Compiler`] and [`MujocoError::Stopped`].
    pub fn from_file(library: &Library, path: &Path, limits: Limits) -> Result<Model, MujocoError> {
        let name = path.display().to_string();
        let compiled = compiler::compile(library, path, limits)?;
        let mut warnings = compiled.warnings;
        let made = RawModel::load(library, &compiled.path, &mut warnings)?;
        Self::checked(made.map_err(|why| MujocoError::Model { name: name.clone(), why })?, &name, warnings)
    }

    /// Compiles in this process.
    pub(crate) fn compile(library: &Library, name: &str, source: Source<'_>) -> Result<Model, MujocoError> {
        let mut warnings = Vec::new();
        let made = RawModel::compile(library, source, &mut warnings)?;
        Self::checked(made.map_err(|why| MujocoError::Model { name: name.to_owned(), why })?, name, warnings)
    }

    fn checked(raw: RawModel, name: &str, warnings: Vec<String>) -> Result<Model, MujocoError> {
        check_size(name, "bytes of the compiled model", raw.bytes()?, LARGEST_MODEL)?;
        for (what, count) in COUNTS.into_iter().zip(raw.iterations()) {
            check_size(name, what, u64::try_from(count).unwrap_or(0), MOST_ITERATIONS)?;
        }
        let [nq, nv, nu, ..] = raw.counts();
        let sizes = [State::Positions, State::Velocities, State::Controls].map(|part| raw.state_size(part));
        // The same numbers, read from the structure and computed by the library: the layout is the right one.
        if sizes != [Ok(nq), Ok(nv), Ok(nu)] {
            let why = "its structures are not those of this version".to_owned();
            return Err(MujocoError::Load { path: raw.library().path().to_owned(), why });
        }
        Ok(Model { raw: Arc::new(raw), name: name.into(), warnings: warnings.into() })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// MuJoCo's warnings about it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of positions.
    pub fn positions(&self) -> usize {
        self.raw.counts()[0]
    }

    /// Number of velocities.
    pub fn velocities(&self) -> usize {
        self.raw.counts()[1]
    }

    /// Number of controls.
    pub fn controls(&self) -> usize {
        self.raw.counts()[2]
    }

    /// The range of each control, `[nu]`; `None` for one without limits.
    pub fn control_ranges(&self) -> Vec<Option<[f64; 2]>> {
        self.raw.control_ranges()
    }

    /// Seconds of a step of the simulation.
    pub fn time_step(&self) -> f64 {
        self.raw.time_step()
    }

    /// Returns whether its integrator is that of Runge and Kutta, whose steps cannot be halved.
    pub fn is_runge_kutta(&self) -> bool {
        self.raw.integrator() == 1
    }

    /// Its first camera.
    pub fn first_camera(&self) -> Option<Camera> {
        (self.raw.counts()[3] > 0).then_some(Camera(0))
    }

    /// The number of the thing called `name` among those of its kind.
    ///
    /// # Errors
    /// [`MujocoError::NoSuchName`].
    pub fn id(&self, kind: Kind, name: &str) -> Result<u32, MujocoError> {
        let objects = &self.raw.library().layouts().objects;
        let (number, what) = match kind {
            Kind::Body => (objects.body, "body"),
            Kind::Joint => (objects.joint, "joint"),
            Kind::Geom => (objects.geom, "geom"),
            Kind::Site => (objects.site, "site"),
            Kind::Camera => (objects.camera, "camera"),
            Kind::Sensor => (objects.sensor, "sensor"),
            Kind::Keyframe => (objects.key, "keyframe"),
        };
        let id = self.raw.id(number, name)?.and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| self.no(what, name))
    }

    /// The body called `name`.
    ///
    /// # Errors
    /// [`MujocoError::NoSuchName`].
    pub fn body(&self, name: &str) -> Result<Body, MujocoError> {
        self.raw.body(name)?.ok_or_else(|| self.no("body", name))
    }

    /// The camera called `name`.
    ///
    /// # Errors
    /// [`MujocoError::NoSuchName`].
    pub fn camera(&self, name: &str) -> Result<Camera, MujocoError> {
        self.id(Kind::Camera, name).map(|id| Camera(id as i32))
    }

    /// The keyframe of this name; or of this number, counted from 0.
    ///
    /// # Errors
    /// [`MujocoError::NoSuchName`].
    pub fn keyframe(&self, name: &str) -> Result<Keyframe, MujocoError> {
        let number = || name.parse().ok().filter(|&number: &u16| usize::from(number) < self.raw.keyframes());
        self.id(Kind::Keyframe, name)
            .map(|id| Keyframe(id as i32))
            .or_else(|error| number().map(|number| Keyframe(i32::from(number))).ok_or(error))
    }

    /// Makes the quaternions in positions, `[nq]`, unit ones, as a step does.
    ///
    /// # Errors
    /// [`MujocoError::Length`] or [`MujocoError::Failed`].
    pub fn normalize(&self, positions: &mut [f64]) -> Result<(), MujocoError> {
        self.raw.normalize(positions)
    }

    pub(crate) fn no(&self, kind: &'static str, name: &str) -> MujocoError {
        MujocoError::NoSuchName { model: self.name.to_string(), kind, name: name.to_owned() }
    }
}

pub(crate) fn check_size(name: &str, what: &'static str, size: u64, largest: u64) -> Result<(), MujocoError> {
    if size <= largest {
        return Ok(());
    }
    Err(MujocoError::TooLarge { name: name.to_owned(), what, size, largest })
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("name", &self.name).finish_non_exhaustive()
    }
}
