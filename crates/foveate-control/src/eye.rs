//! Pictures of a task: its scene, drawn.

use std::sync::{Arc, OnceLock};

use foveate_mujoco::{Data, Kind, Model, MujocoError, View};
use foveate_render::{CubeMap, RenderError, RenderSettings, Renderer, Scene, SkyGradient};

use crate::distractions::Distractions;
use crate::task::Task;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Unseen {
    #[error(transparent)]
    Mujoco(#[from] MujocoError),
    #[error(transparent)]
    Render(#[from] RenderError),
}

/// The camera of a task and what draws its pictures.
pub(crate) struct Eye {
    view: View,
    pub(crate) scene: Scene,
    renderer: Renderer,
    /// The number of the geom that stands for the target.
    target: Option<u32>,
}

impl Eye {
    /// An eye that draws pictures with `settings`.
    pub(crate) fn new(model: &Model, task: &Task, settings: &RenderSettings) -> Result<Self, Unseen> {
        Self::with(model, task, Renderer::new(settings)?)
    }

    /// A second eye with the same settings.
    pub(crate) fn copied(&self, model: &Model, task: &Task) -> Result<Self, Unseen> {
        Self::with(model, task, self.renderer.clone())
    }

    fn with(model: &Model, task: &Task, renderer: Renderer) -> Result<Self, Unseen> {
        let camera = model.camera(task.scenery.camera)?;
        let target = task.scenery.placed_target.map(|name| model.id(Kind::Geom, name)).transpose()?;
        let view = View::new(model, camera)?;
        Ok(Eye { view, scene: Scene { sky: Some(sky()), ..Scene::default() }, renderer, target })
    }

    pub(crate) fn settings(&self) -> &RenderSettings {
        self.renderer.settings()
    }

    /// Refills the scene, without distractions.
    pub(crate) fn look(&mut self, data: &mut Data, target: [f64; 2]) -> Result<(), MujocoError> {
        self.view.fill(data, &mut self.scene)?;
        if let Some(number) = self.target {
            for (geom, id) in self.scene.geoms.iter_mut().zip(self.view.ids()) {
                if id == Some(number) {
                    geom.position[..2].copy_from_slice(&target.map(|x| x as f32));
                }
            }
        }
        Ok(())
    }

    /// Draws what the camera shows into `rgb`, `[height, width, 3]`.
    pub(crate) fn draw(
        &mut self,
        data: &mut Data,
        target: [f64; 2],
        distractions: Option<&Distractions>,
        rgb: &mut [u8],
    ) -> Result<(), Unseen> {
        self.look(data, target)?;
        if let Some(distractions) = distractions {
            distractions.change(data, &mut self.scene)?;
        }
        self.renderer.draw(&self.scene, rgb)?;
        Ok(())
    }
}

/// The sky of all tasks.
fn sky() -> Arc<CubeMap> {
    static SKY: OnceLock<Arc<CubeMap>> = OnceLock::new();
    let made = || CubeMap::gradient(&SkyGradient::default()).expect("a side within the limit");
    Arc::clone(SKY.get_or_init(|| Arc::new(made())))
}
