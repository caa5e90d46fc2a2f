//! A scene in the camera's frame: what can be seen, mirrored and shaded, and where.

use crate::lanes::dot;
use crate::light::{Lamp, Lamps, MAX_SHADOWS, Paint, Shadow};
use crate::plane::Plane;
use crate::solid::{Ends, Solid};
use crate::view::{Hull, Polygon, View, mirror_direction, mirror_point};
use crate::{Geom, LightKind, RenderError, RenderSettings, Renderer, Scene, Shape};

/// Most pairs of a body, or of a plane, with a body that may shade it.
const MOST_PAIRS: usize = 1_000_000;

/// A solid with its colour.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) solid: Solid,
    pub(crate) paint: Paint,
    pub(crate) hull: Hull,
    ends: Ends,
    /// For each light that casts shadows: where [`Frame::shaders`] names the bodies that may shade this one.
    shaders: [(u32, u32); MAX_SHADOWS],
}

/// The shadow of a body on a plane.
#[derive(Debug, Clone)]
pub(crate) struct Cast {
    pub(crate) plane: u32,
    pub(crate) lamp: usize,
    pub(crate) body: usize,
    /// Where it may be.
    pub(crate) polygon: Polygon,
}

/// A scene in the camera's frame. Its lists are reused from picture to picture.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub(crate) planes: Vec<Plane>,
    pub(crate) polygons: Vec<Polygon>,
    pub(crate) bodies: Vec<Body>,
    /// Lights that cast no shadow.
    pub(crate) plain: Vec<Lamp>,
    /// Lights that cast shadows.
    pub(crate) shadow: Vec<Lamp>,
    /// All lights, as the mirror and transparent planes see them: without shadows.
    pub(crate) all: Vec<Lamp>,
    /// The number of the plane that mirrors.
    pub(crate) mirror: Option<u32>,
    /// What it mirrors.
    pub(crate) mirrored_bodies: Vec<Body>,
    pub(crate) mirrored_planes: Vec<(Plane, Polygon)>,
    pub(crate) mirrored_lamps: Vec<Lamp>,
    /// Shadows on planes.
    pub(crate) casts: Vec<Cast>,
    shaders: Vec<u32>,
}

impl Frame {
    /// Takes over a scene.
    pub(crate) fn prepare(
        &mut self,
        scene: &Scene,
        view: &View,
        settings: &RenderSettings,
    ) -> Result<(), RenderError> {
        check("geoms", scene.geoms.len(), Renderer::MOST_GEOMS)?;
        check("lights", scene.lights.len(), Renderer::MOST_LIGHTS)?;
        self.light(scene, view, settings)?;
        self.planes.clear();
        self.polygons.clear();
        self.bodies.clear();
        self.mirror = None;
        for geom in scene.geoms.iter().filter(|geom| geom.rgba[3] > 0.0) {
            if geom.shape == Shape::Plane {
                let Some(plane) = Plane::new(geom, view).filter(|plane| plane.opacity > 0) else { continue };
                let mirrors = settings.reflections && plane.reflectance > 0.0 && !plane.transparent;
                if mirrors && self.mirror.is_none() {
                    self.mirror = Some(self.planes.len() as u32);
                }
                self.planes.push(plane);
                self.polygons.push(plane.polygon(view));
            } else if let Some(solid) = solid(geom, view) {
                self.bodies.push(Body::new(solid, Paint::new(geom), view));
            }
        }
        self.reflect(scene, view);
        self.cast_on_planes(view)?;
        self.cast_on_bodies()
    }

    pub(crate) fn lamps(&self) -> Lamps<'_> {
        Lamps { plain: &self.plain, shadow: &self.shadow }
    }

    /// The numbers of the bodies that may shade a body.
    #[inline(always)]
    pub(crate) fn shaders(&self, body: &Body, lamp: usize) -> &[u32] {
        let (from, to) = body.shaders[lamp];
        &self.shaders[from as usize..to as usize]
    }

    fn light(&mut self, scene: &Scene, view: &View, settings: &RenderSettings) -> Result<(), RenderError> {
        self.plain.clear();
        self.shadow.clear();
        self.all.clear();
        for light in &scene.lights {
            let Some(lamp) = Lamp::new(light, view, scene.shadow_volume) else { continue };
            let shadow = settings.shadows && light.casts_shadow && light.kind != LightKind::Point;
            if shadow { &mut self.shadow } else { &mut self.plain }.push(lamp);
            self.all.push(lamp);
        }
        check("lights that cast shadows", self.shadow.len(), MAX_SHADOWS)
    }

    /// What the mirror shows.
    fn reflect(&mut self, scene: &Scene, view: &View) {
        self.mirrored_bodies.clear();
        self.mirrored_planes.clear();
        self.mirrored_lamps.clear();
        let Some(number) = self.mirror else { return };
        let mirror = self.planes[number as usize];
        let (at, normal, part) = (mirror.at, mirror.axes[2], mirror.reflectance);
        self.mirrored_lamps.extend(self.all.iter().map(|lamp| lamp.mirrored(at, normal)));
        for geom in scene.geoms.iter().filter(|geom| geom.shape != Shape::Plane && geom.rgba[3] > 0.0) {
            let centre = mirror_point(view.place(geom.position), at, normal);
            let axes = view.turn_axes(&geom.rotation).map(|axis| mirror_direction(axis, normal));
            let Some(solid) = Solid::new(geom.shape, geom.size, centre, axes) else { continue };
            // What is behind the mirror would be mirrored in front of it.
            if dot(normal, centre) - dot(normal, at) < solid.radius() {
                self.mirrored_bodies.push(Body::new(solid, Paint::new(geom).dimmed(part), view));
            }
        }
        for (i, plane) in self.planes.iter().enumerate() {
            if i != number as usize
                && !plane.transparent
                && let Some(plane) = plane.mirrored(&mirror)
            {
                self.mirrored_planes.push((plane, plane.polygon(view)));
            }
        }
    }

    fn cast_on_planes(&mut self, view: &View) -> Result<(), RenderError> {
        self.casts.clear();
        for (number, plane) in self.planes.iter().enumerate() {
            if plane.transparent || self.polygons[number].rows.is_empty() {
                continue;
            }
            for (lamp, light) in self.shadow.iter().enumerate() {
                for (body, caster) in self.bodies.iter().enumerate() {
                    if !light.can_shade(caster.ends, plane.at, plane.radius()) {
                        continue;
                    }
                    let polygon = match light.shadow_on_plane(caster.ends, plane.at, plane.axes[2]) {
                        Shadow::Nowhere => continue,
                        Shadow::Between(ends) if !plane.is_touched_by(ends) => continue,
                        Shadow::Between(ends) => plane.around(ends, view).within(&self.polygons[number].rows),
                        Shadow::Anywhere => self.polygons[number].clone(),
                    };
                    if !polygon.rows.is_empty() {
                        check(
                            "pairs of a plane and a body that may shade it",
                            self.casts.len() + 1,
                            MOST_PAIRS,
                        )?;
                        self.casts.push(Cast { plane: number as u32, lamp, body, polygon });
                    }
                }
            }
        }
        Ok(())
    }

    fn cast_on_bodies(&mut self) -> Result<(), RenderError> {
        self.shaders.clear();
        for i in 0..self.bodies.len() {
            if self.bodies[i].hull.rows.is_empty() {
                continue;
            }
            let (centre, radius) = (self.bodies[i].solid.centre, self.bodies[i].solid.radius());
            for (lamp, light) in self.shadow.iter().enumerate() {
                let from = self.shaders.len();
                for (j, caster) in self.bodies.iter().enumerate() {
                    if i != j && light.can_shade(caster.ends, centre, radius) {
                        self.shaders.push(j as u32);
                    }
                }
                check("pairs of bodies of which one may shade the other", self.shaders.len(), MOST_PAIRS)?;
                self.bodies[i].shaders[lamp] = (from as u32, self.shaders.len() as u32);
            }
        }
        Ok(())
    }
}

impl Body {
    fn new(solid: Solid, paint: Paint, view: &View) -> Body {
        let ends = solid.ends();
        Body { solid, paint, ends, hull: view.hull(ends), shaders: [(0, 0); MAX_SHADOWS] }
    }
}

fn solid(geom: &Geom, view: &View) -> Option<Solid> {
    Solid::new(geom.shape, geom.size, view.place(geom.position), view.turn_axes(&geom.rotation))
}

fn check(what: &'static str, actual: usize, largest: usize) -> Result<(), RenderError> {
    if actual <= largest { Ok(()) } else { Err(RenderError::TooMany { what, actual, largest }) }
}
