//! Pictures of a task: its scene, drawn.

use std::sync::{Arc, OnceLock};

use foveate_core::GazePoint;
use foveate_mujoco::{Data, Kind, Model, MujocoError, SceneView};
use foveate_render::{CubeMap, Geom, RenderSettings, Renderer, Scene, Shape, SkyGradient};

use crate::distractions::Distractions;
use crate::drawing::{Failure, place};
use crate::task::Task;

/// The camera of a task and what draws its pictures.
pub(crate) struct Eye {
    view: SceneView,
    pub(crate) scene: Scene,
    renderer: Renderer,
    /// The number of the geom that stands for the target.
    target: Option<u32>,
}

impl Eye {
    /// An eye that draws pictures with `settings`.
    pub(crate) fn new(model: &Model, task: &Task, settings: &RenderSettings) -> Result<Self, Failure> {
        Self::with(model, task, Renderer::new(settings)?)
    }

    /// A second eye with the same settings.
    pub(crate) fn copied(&self, model: &Model, task: &Task) -> Result<Self, Failure> {
        Self::with(model, task, self.renderer.clone())
    }

    fn with(model: &Model, task: &Task, renderer: Renderer) -> Result<Self, Failure> {
        let camera = model.camera(task.scenery.camera)?;
        let target = task.scenery.placed_target.map(|name| model.id(Kind::Geom, name)).transpose()?;
        let view = SceneView::new(model, camera)?;
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
    ) -> Result<(), Failure> {
        self.look(data, target)?;
        if let Some(distractions) = distractions {
            distractions.change(data, &mut self.scene)?;
        }
        self.renderer.draw(&self.scene, rgb)?;
        Ok(())
    }
}

/// Materials whose geoms matter, by their numbers in every model of the suite: the agent's bodies, what it acts with or on, targets.
/// Each counts as much as the others, shared among its geoms.
const MATTERS: [u32; 3] = [1, 4, 9];

impl Eye {
    /// Where the things that matter are in the last picture: the centre and both ends of each that is in sight.
    pub(crate) fn gaze(&self, points: &mut Vec<GazePoint>) {
        let geoms = &self.scene.geoms;
        let aspect = self.settings().width as f32 / self.settings().height as f32;
        for material in MATTERS {
            let of_it = |geom: &&Geom| geom.material == Some(material) && geom.rgba[3] > 0.0;
            let weight = 1.0 / geoms.iter().filter(of_it).count().max(1) as f32;
            for geom in geoms.iter().filter(of_it) {
                let half = match geom.shape {
                    Shape::Capsule | Shape::Cylinder => geom.size[2],
                    _ => 0.0,
                };
                let ends: &[f32] = if half > 0.0 { &[-1.0, 0.0, 1.0] } else { &[0.0] };
                for end in ends {
                    let axis: [f32; 3] = std::array::from_fn(|i| geom.rotation[3 * i + 2]);
                    let end = std::array::from_fn(|i| geom.position[i] + end * half * axis[i]);
                    let Some([x, y]) = place(&self.scene, aspect, end) else { continue };
                    let point = GazePoint { x, y, weight: weight / ends.len() as f32 };
                    if point.is_valid() {
                        points.push(point);
                    }
                }
            }
        }
    }
}

/// The sky of all tasks.
pub(crate) fn sky() -> Arc<CubeMap> {
    static SKY: OnceLock<Arc<CubeMap>> = OnceLock::new();
    let made = || CubeMap::gradient(&SkyGradient::default()).expect("a side within the limit");
    Arc::clone(SKY.get_or_init(|| Arc::new(made())))
}
