//! Compiled models.

use std::ffi::CString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::error::MujocoError;
use crate::ffi::{Body, Library, RawModel, Source, State};

/// Longest XML text of a model, in bytes.
const LONGEST_TEXT: u64 = 16 << 20;
/// Largest compiled model, in bytes.
const LARGEST_MODEL: u64 = 1 << 30;

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
    /// Compiles the XML text of a model; `name` is what messages call it.
    ///
    /// # Errors
    /// [`MujocoError::TooLarge`]; [`MujocoError::Model`] when MuJoCo finds something wrong with it; [`MujocoError::Failed`].
    pub fn from_xml(library: &Library, name: &str, xml: &str) -> Result<Model, MujocoError> {
        Self::check_size(name, "bytes of XML", xml.len() as u64, LONGEST_TEXT)?;
        let text = CString::new(xml).map_err(|error| MujocoError::Model {
            name: name.to_owned(),
            why: format!("it has a zero byte at {}", error.nul_position()),
        })?;
        Self::compile(library, name, Source::Text(&text))
    }

    /// Reads and compiles an XML file, with the files that it includes.
    ///
    /// # Errors
    /// Those of [`Model::from_xml`], and [`MujocoError::File`].
    pub fn from_file(library: &Library, path: &Path) -> Result<Model, MujocoError> {
        let bad = |why: String| MujocoError::File { path: path.to_owned(), why };
        let name = path.display().to_string();
        let size = fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
        Self::check_size(&name, "bytes of XML", size, LONGEST_TEXT)?;
        let text = path.to_str().ok_or_else(|| bad("its path is not UTF-8".into()))?;
        let text = CString::new(text).map_err(|error| bad(error.to_string()))?;
        Self::compile(library, &name, Source::File(&text))
    }

    fn check_size(name: &str, what: &'static str, size: u64, largest: u64) -> Result<(), MujocoError> {
        if size <= largest {
            return Ok(());
        }
        Err(MujocoError::TooLarge { name: name.to_owned(), what, size, largest })
    }

    fn compile(library: &Library, name: &str, source: Source<'_>) -> Result<Model, MujocoError> {
        let mut warnings = Vec::new();
        let made = RawModel::compile(library, source, &mut warnings)?;
        let raw = made.map_err(|why| MujocoError::Model { name: name.to_owned(), why })?;
        Self::check_size(name, "bytes of the compiled model", raw.bytes()?, LARGEST_MODEL)?;
        let [nq, nv, nu, ..] = raw.counts();
        let sizes = [State::Positions, State::Velocities, State::Controls].map(|part| raw.state_size(part));
        // The same numbers, read from the structure and computed by the library: the layout is the right one.
        if sizes != [Ok(nq), Ok(nv), Ok(nu)] {
            let why = "its structures are not those of this version".to_owned();
            return Err(MujocoError::Load { path: library.path().to_owned(), why });
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

    /// Whether its integrator is that of Runge and Kutta, whose steps cannot be halved.
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

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("name", &self.name).finish_non_exhaustive()
    }
}
