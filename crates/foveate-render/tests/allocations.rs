//! Drawing allocates nothing once the largest scene was drawn.

use std::sync::Arc;

use foveate_render::{
    Camera, Checker, CubeMap, Geom, Light, LightKind, RenderSettings, Renderer, Scene, Shape, SkyGradient,
};
use foveate_toy::allocations::{COUNTER, Counter, count};

#[global_allocator]
static ALLOCATOR: Counter = COUNTER;

/// A floor and a wall, and some balls above them, `x` to the right.
fn fill(scene: &mut Scene, balls: usize, x: f32) {
    scene.lights.clear();
    scene.geoms.clear();
    scene.camera = Camera { position: [x, -4.0, 1.0], ..Camera::default() };
    scene.lights.push(Light {
        ambient: [0.4; 3],
        diffuse: [0.6; 3],
        direction: [0.0, 1.0, 0.0],
        ..Light::default()
    });
    scene.lights.push(Light {
        kind: LightKind::Spot,
        position: [x, 0.0, 4.0],
        direction: [0.0, 0.0, -1.0],
        diffuse: [0.6; 3],
        attenuation: [1.0, 0.0, 0.0],
        cutoff_deg: 45.0,
        exponent: 10.0,
        casts_shadow: true,
        ..Light::default()
    });
    let plane = Geom { shape: Shape::Plane, size: [9.0, 2.0, 0.5], ..Geom::default() };
    scene.geoms.push(Geom { reflectance: 0.2, texture: Some(Checker::default()), ..plane });
    let upright = [1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0];
    scene.geoms.push(Geom { rotation: upright, position: [0.0, 2.0, 0.0], size: [2.0, 0.5, 1.0], ..plane });
    for i in 0..balls {
        scene.geoms.push(Geom {
            size: [0.2; 3],
            position: [0.3 * i as f32 - 1.0 + x, 0.0, 0.5],
            ..Geom::default()
        });
    }
}

#[test]
fn drawing_allocates_nothing() {
    let sky =
        Arc::new(CubeMap::gradient(&SkyGradient { side: 64, ..SkyGradient::default() }).expect("small"));
    let mut scene = Scene { sky: Some(sky), ..Scene::default() };
    for antialias in [true, false] {
        let settings = RenderSettings { antialias, ..RenderSettings::new(100, 80) };
        let mut renderer = Renderer::new(&settings).expect("a small picture");
        let mut rgb = vec![0; renderer.bytes()];
        let mut draw = |balls, x| {
            fill(&mut scene, balls, x);
            renderer.draw(&scene, &mut rgb).expect("a sound scene");
        };
        draw(8, 0.0);
        let allocations = count(|| {
            for i in 0..20 {
                draw(i % 9, 0.05 * (i / 2) as f32);
            }
        });
        assert_eq!(allocations, 0, "antialias = {antialias}");
    }
}
