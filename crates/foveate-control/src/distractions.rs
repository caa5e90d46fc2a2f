//! Distractions: another background, other colours, a moved camera. They change what is shown, never the physics.
//!
//! Ranges and movements are those of the Distracting Control Suite (Stone et al., 2021); its random streams are not seeded, ours
//! follow from the episode's seed. Its backgrounds are videos of the DAVIS data set; ours are generated, or the user's pictures.

mod background;
mod camera;
mod clips;
mod colors;
mod parse;

use std::sync::Arc;

use foveate_core::Seed;
use foveate_mujoco::{Data, MujocoError, Sensor};
use foveate_render::Scene;

use self::background::Background;
use self::camera::CameraWalk;
use self::colors::Colors;
use crate::task::Task;

pub use clips::Clip;
pub use parse::catalogue;

/// How strong distractions are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strength {
    /// The suite's scale, 0 to 1: 0.1 is easy, 0.2 medium, 0.3 hard.
    pub scale: f64,
    /// True if they change within an episode.
    pub dynamic: bool,
}

impl Strength {
    /// How many clips there are to choose from, at most.
    const fn clips(self) -> usize {
        match self.scale {
            scale if scale <= 0.1 => 4,
            scale if scale <= 0.2 => 8,
            _ => usize::MAX,
        }
    }
}

/// Which backgrounds are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Generated clips for training.
    Train,
    /// Generated clips for validation; none of them is among those for training.
    Validation,
}

/// A distracting background.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundConfig {
    /// How many clips there are: 4 up to a scale of 0.1, 8 up to 0.2, else all; and whether they run.
    pub strength: Strength,
    /// Generated clips.
    pub source: Source,
    /// A folder of pictures in their place, which are one clip, or of such folders; crates that may read files load it.
    pub folder: Option<String>,
    /// The clips of the folder.
    pub clips: Option<Arc<[Arc<Clip>]>>,
}

/// Which distractions there are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DistractionConfig {
    /// What is shown behind the scene in place of the sky.
    pub background: Option<BackgroundConfig>,
    /// Whether the materials have other colours.
    pub colors: Option<Strength>,
    /// Whether the camera is elsewhere.
    pub camera: Option<Strength>,
}

impl DistractionConfig {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == DistractionConfig::default()
    }

    /// The folder that it needs and that is not loaded yet, and how many of its clips are shown at most.
    pub fn missing_films(&self) -> Option<(&str, usize)> {
        let background = self.background.as_ref()?;
        let folder = background.folder.as_deref().filter(|_| background.clips.is_none())?;
        Some((folder, background.strength.clips()))
    }

    /// Uses `clips` where a folder is named; without any, generated ones.
    pub fn load(&mut self, clips: &Arc<[Arc<Clip>]>) {
        if let Some(background) = self.background.as_mut().filter(|background| background.folder.is_some()) {
            background.clips = Some(Arc::clone(clips));
        }
    }
}

/// The distractions of an episode.
#[derive(Debug, Clone)]
pub(crate) struct Distractions {
    background: Option<Background>,
    colors: Option<Colors>,
    camera: Option<CameraWalk>,
    /// The agent's centre of mass.
    center: Sensor,
}

/// The name of the sensor of the agent's centre of mass, which is added to the model.
const CENTER: &str = "foveate centre of mass";

impl Distractions {
    /// The model's XML with the sensor that distractions read. A sensor changes nothing in the physics.
    pub(crate) fn xml(task: &Task) -> String {
        let root = task.scenery.root;
        let sensor = format!("<sensor><subtreecom name=\"{CENTER}\" body=\"{root}\"/></sensor></mujoco>");
        task.xml.replacen("</mujoco>", &sensor, 1)
    }

    /// Distractions that begin with the next [`Distractions::begin`].
    pub(crate) fn new(config: &DistractionConfig, task: &Task, data: &mut Data) -> Result<Self, MujocoError> {
        Ok(Distractions {
            background: config.background.as_ref().map(|config| Background::new(config, &task.scenery)),
            colors: config.colors.map(Colors::new),
            camera: config.camera.map(|strength| CameraWalk::new(strength, &task.scenery)),
            center: data.sensor(CENTER)?,
        })
    }

    /// Draws the distractions of a new episode; with a seed, from new random streams. `scene` is the episode's first, without
    /// distractions.
    pub(crate) fn begin(
        &mut self,
        seed: Option<u64>,
        data: &mut Data,
        scene: &Scene,
    ) -> Result<(), MujocoError> {
        if let Some(seed) = seed {
            let seed = Seed::root(seed).child("distractions", 0);
            self.background.iter_mut().for_each(|part| part.random = seed.child("background", 0).rng());
            self.colors.iter_mut().for_each(|part| part.random = seed.child("colors", 0).rng());
            self.camera.iter_mut().for_each(|part| part.random = seed.child("camera", 0).rng());
        }
        let center = self.center(data)?;
        self.background.iter_mut().for_each(Background::begin);
        self.colors.iter_mut().for_each(Colors::begin);
        self.camera.iter_mut().for_each(|camera| camera.begin(&scene.camera, center));
        Ok(())
    }

    /// Advances by a control step.
    pub(crate) fn advance(&mut self) {
        self.background.iter_mut().for_each(Background::advance);
        self.colors.iter_mut().for_each(Colors::advance);
        self.camera.iter_mut().for_each(CameraWalk::advance);
    }

    /// Changes `scene`.
    pub(crate) fn change(&self, data: &mut Data, scene: &mut Scene) -> Result<(), MujocoError> {
        if let Some(colors) = &self.colors {
            colors.change(scene);
        }
        if let Some(background) = &self.background {
            background.change(scene);
        }
        if let Some(camera) = &self.camera {
            let camera = camera.place(&scene.camera, self.center(data)?);
            scene.set_camera(camera);
        }
        Ok(())
    }

    fn center(&self, data: &mut Data) -> Result<[f64; 3], MujocoError> {
        let mut center = [0.0; 3];
        data.read(&self.center, &mut center)?;
        Ok(center)
    }
}
