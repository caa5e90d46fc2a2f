//! Pictures of scenes made by hand: geometry, the same bits everywhere, hostile scenes.

use std::sync::Arc;

use foveate_kernels::Level;
use foveate_render::{
    Camera, Checker, CubeMap, Geom, Light, LightKind, RenderError, RenderSettings, Renderer, Scene, Shape,
    SkyGradient,
};

/// A floor, one geom of each shape, a spot and a headlight, seen from a little above.
fn scene() -> Scene {
    let mut scene = Scene::default();
    let camera = Camera { position: [0.0, -4.0, 1.5], forward: [0.0, 0.95, -0.312_25], ..Camera::default() };
    scene.lights.push(Light { ambient: [0.4; 3], diffuse: [0.6; 3], headlight: true, ..Light::default() });
    scene.lights.push(Light {
        kind: LightKind::Spot,
        position: [0.3, 0.0, 3.0],
        direction: [0.0, 0.0, -1.0],
        diffuse: [0.7; 3],
        specular: [0.3; 3],
        attenuation: [1.0, 0.0, 0.0],
        cutoff_deg: 45.0,
        exponent: 10.0,
        casts_shadow: true,
        ..Light::default()
    });
    let texture = Some(Checker::default());
    scene.geoms.push(Geom {
        shape: Shape::Plane,
        size: [3.0, 2.0, 0.5],
        rgba: [1.0; 4],
        reflectance: 0.2,
        texture,
        ..Geom::default()
    });
    let shapes = [Shape::Sphere, Shape::Capsule, Shape::Ellipsoid, Shape::Cylinder, Shape::Box];
    for (i, shape) in shapes.into_iter().enumerate() {
        scene.geoms.push(Geom {
            shape,
            size: [0.15, 0.2, 0.25],
            position: [0.6 * i as f32 - 1.2, 0.1 * i as f32, 0.45],
            rotation: [0.8, 0.0, 0.6, 0.0, 1.0, 0.0, -0.6, 0.0, 0.8],
            rgba: [0.7, 0.5, 0.3, 1.0],
            shininess: 0.1 * i as f32,
            ..Geom::default()
        });
    }
    scene.sky = Some(Arc::new(
        CubeMap::gradient(&SkyGradient { side: 64, ..SkyGradient::default() }).expect("small"),
    ));
    scene.set_camera(camera);
    scene
}

fn draw(renderer: &mut Renderer, scene: &Scene) -> Vec<u8> {
    let mut rgb = vec![7; renderer.bytes()];
    renderer.draw(scene, &mut rgb).expect("a sound scene");
    rgb
}

fn draw_new(settings: &RenderSettings, scene: &Scene) -> Vec<u8> {
    draw(&mut Renderer::new(settings).expect("a small picture"), scene)
}

/// Where a picture has light: the pixels of a white emitting geom on black.
fn lit_pixels(geom: Geom, camera: Camera, settings: &RenderSettings) -> Vec<(usize, usize)> {
    let geom = Geom { emission: 1.0, rgba: [1.0; 4], ..geom };
    let scene = Scene { camera, geoms: vec![geom], ..Scene::default() };
    let rgb = draw_new(settings, &scene);
    let pixels = rgb.chunks_exact(3).enumerate().filter(|(_, pixel)| pixel[0] > 127);
    pixels.map(|(i, _)| (i % settings.width, i / settings.width)).collect()
}

#[test]
fn geoms_are_where_the_camera_sees_them() {
    let settings = RenderSettings { antialias: false, ..RenderSettings::new(100, 100) };
    // Half the height is 1 at distance 1, so at distance 10 a pixel is 0.2 wide.
    let camera = Camera { half_height: 1.0, ..Camera::default() };
    let bounds = |geom: Geom| {
        let pixels = lit_pixels(geom, camera, &settings);
        let (xs, ys) = (pixels.iter().map(|p| p.0), pixels.iter().map(|p| p.1));
        [xs.clone().min(), xs.max(), ys.clone().min(), ys.max()].map(|n| n.expect("something is seen"))
    };
    let at = |position, shape, size| Geom { shape, size, position, ..Geom::default() };
    // To the right is x, up is z.
    assert_eq!(bounds(at([2.0, 10.0, 4.0], Shape::Sphere, [0.15; 3])), [59, 60, 29, 30]);
    // The front face is at distance 9.
    assert_eq!(bounds(at([0.0, 10.0, 0.0], Shape::Box, [1.8, 1.0, 0.9])), [40, 59, 45, 54]);
    assert_eq!(bounds(at([0.0, 10.0, 0.0], Shape::Capsule, [0.2, 0.2, 2.0])), [49, 50, 39, 60]);
    assert_eq!(bounds(at([0.0, 10.0, 0.0], Shape::Ellipsoid, [2.0, 0.01, 1.0])), [40, 59, 45, 54]);
    assert_eq!(bounds(at([0.0, 10.0, 0.0], Shape::Cylinder, [0.2, 0.2, 2.0])), [49, 50, 40, 59]);
    // A plane that faces the camera, and from behind is transparent.
    let facing = [1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0];
    let plane = Geom { rotation: facing, ..at([0.0, 10.0, 0.0], Shape::Plane, [2.0, 1.0, 1.0]) };
    assert_eq!(bounds(plane), [40, 59, 45, 54]);
    let turned = Geom { rotation: [-1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0], ..plane };
    let behind = draw_new(
        &settings,
        &Scene { camera, geoms: vec![Geom { emission: 1.0, rgba: [1.0; 4], ..turned }], ..Scene::default() },
    );
    // Drawn twice with an opacity of 0.3: 1 - 0.7².
    assert_eq!(behind[(50 * 100 + 50) * 3], 130);
}

#[test]
fn a_rolled_camera_turns_the_picture() {
    let settings = RenderSettings { antialias: false, ..RenderSettings::new(100, 100) };
    let geom = Geom { size: [0.15; 3], position: [2.0, 10.0, 4.0], ..Geom::default() };
    let camera = Camera { half_height: 1.0, up: [1.0, 0.0, 0.0], ..Camera::default() };
    // Up is x; the right, forward × up, is -z.
    assert_eq!(lit_pixels(geom, camera, &settings), [(29, 39), (30, 39), (29, 40), (30, 40)]);
    let back = Camera { forward: [0.0, -1.0, 0.0], ..camera };
    assert_eq!(lit_pixels(geom, back, &settings), []);
}

#[test]
fn what_is_nearer_hides_what_is_behind_and_clipping_planes_hide_both() {
    let settings = RenderSettings::new(9, 9);
    let ball = |y: f32, rgba| Geom { position: [0.0, y, 0.0], rgba, emission: 1.0, ..Geom::default() };
    let (red, green) = ([1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]);
    let centre = |geoms: Vec<Geom>, near, far| {
        let camera = Camera { near, far, ..Camera::default() };
        let rgb = draw_new(&settings, &Scene { camera, geoms, ..Scene::default() });
        [rgb[40 * 3], rgb[40 * 3 + 1]]
    };
    let two = vec![ball(20.0, green), ball(5.0, red)];
    assert_eq!(centre(two.clone(), 0.1, 100.0), [255, 0]);
    assert_eq!(centre(two.clone(), 10.0, 100.0), [0, 255]);
    assert_eq!(centre(two, 10.0, 15.0), [0, 0]);
    assert_eq!(centre(vec![ball(5.0, [1.0, 0.0, 0.0, 0.0])], 0.1, 100.0), [0, 0]);
}

#[test]
fn shadows_reflections_and_smooth_edges_can_be_left_out() {
    let scene = scene();
    let all = RenderSettings::new(120, 90);
    let whole = draw_new(&all, &scene);
    for settings in [
        RenderSettings { shadows: false, ..all },
        RenderSettings { reflections: false, ..all },
        RenderSettings { antialias: false, ..all },
    ] {
        let other = draw_new(&settings, &scene);
        let differ = whole.iter().zip(&other).filter(|(a, b)| a != b).count();
        assert!((100..whole.len() / 4).contains(&differ), "{settings:?}: {differ} bytes differ");
    }
}

/// Scenes that follow each other: a geom, the camera and the colours move.
fn episode() -> Vec<Scene> {
    let states = (0..8).map(|i| {
        let mut scene = scene();
        scene.geoms[1].position[2] += 0.05 * i as f32;
        if i >= 3 {
            let mut camera = scene.camera;
            camera.position[0] += 0.1 * i as f32;
            scene.set_camera(camera);
        }
        match i {
            5 => scene.geoms[0].rgba = [0.8, 1.0, 0.9, 0.3],
            6 => scene.sky = None,
            7 => scene.camera.up = [0.1, 0.312_25, 0.95],
            _ => {}
        }
        scene
    });
    states.collect()
}

#[test]
fn what_is_kept_changes_no_picture() {
    for (width, height) in [(64, 48), (33, 21), (1, 1), (7, 130)] {
        let settings = RenderSettings::new(width, height);
        let mut kept = Renderer::new(&settings).expect("a small picture");
        for (i, scene) in episode().iter().enumerate() {
            assert!(draw(&mut kept, scene) == draw_new(&settings, scene), "{width}x{height}, state {i}");
            assert!(
                draw(&mut kept, scene) == draw_new(&settings, scene),
                "{width}x{height}, state {i}, again"
            );
        }
    }
}

#[test]
fn all_instruction_sets_give_the_same_bits() {
    for settings in
        [RenderSettings::new(120, 90), RenderSettings { antialias: false, ..RenderSettings::new(61, 50) }]
    {
        for (i, scene) in episode().iter().enumerate() {
            let mut portable = Renderer::with_level(&settings, Level::PORTABLE).expect("a small picture");
            let expected = draw(&mut portable, scene);
            for level in Level::available() {
                let mut renderer = Renderer::with_level(&settings, level).expect("a small picture");
                assert!(draw(&mut renderer, scene) == expected, "{level}, state {i}");
            }
        }
    }
}

#[test]
fn sizes_are_bounded() {
    let largest = Renderer::LARGEST_SIDE;
    for (width, height) in [(0, 1), (1, 0), (largest + 1, 1), (1, usize::MAX)] {
        let error = Renderer::new(&RenderSettings::new(width, height)).expect_err("no such picture");
        assert_eq!(error, RenderError::PictureSize { width, height, largest });
    }
    let mut renderer = Renderer::new(&RenderSettings::new(4, 3)).expect("a small picture");
    let error = renderer.draw(&scene(), &mut [0; 35]).expect_err("a byte too few");
    assert_eq!(error, RenderError::BufferSize { width: 4, height: 3, expected: 36, actual: 35 });
    let mut many = scene();
    many.geoms = vec![Geom::default(); Renderer::MOST_GEOMS + 1];
    let error = renderer.draw(&many, &mut [0; 36]).expect_err("too many geoms");
    assert!(matches!(error, RenderError::TooMany { what: "geoms", .. }), "{error}");
    let mut many = scene();
    many.lights = vec![Light { casts_shadow: true, direction: [0.0, 0.0, -1.0], ..Light::default() }; 5];
    let error = renderer.draw(&many, &mut [0; 36]).expect_err("too many shadows");
    assert!(error.to_string().contains("lights that cast shadows"), "{error}");
}

#[test]
fn a_camera_that_sees_nothing_is_refused() {
    let mut renderer = Renderer::new(&RenderSettings::new(4, 3)).expect("a small picture");
    let sound = scene().camera;
    for camera in [
        Camera { position: [f32::NAN, 0.0, 0.0], ..sound },
        Camera { forward: [0.0; 3], ..sound },
        Camera { up: sound.forward, ..sound },
        Camera { half_height: 0.0, ..sound },
        Camera { half_height: f32::INFINITY, ..sound },
        Camera { near: -1.0, ..sound },
        Camera { far: f32::NAN, ..sound },
    ] {
        let scene = Scene { camera, ..scene() };
        let mut rgb = [7; 36];
        let error = renderer.draw(&scene, &mut rgb).expect_err("no picture");
        assert!(matches!(error, RenderError::Camera { .. }), "{camera:?}: {error}");
        assert_eq!(rgb, [7; 36]);
    }
}

#[test]
fn hostile_scenes_are_drawn_or_refused() {
    let wild =
        [0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-4, 7e7];
    let mut state = 1_u64;
    let mut pick = |sound: f32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if state >> 60 < 12 { sound } else { wild[(state >> 33) as usize % wild.len()] }
    };
    let mut renderers = [true, false].map(|antialias| {
        Renderer::new(&RenderSettings { antialias, ..RenderSettings::new(21, 17) }).expect("a small picture")
    });
    let mut drawn = 0;
    for round in 0..3000 {
        let mut scene = scene();
        for geom in &mut scene.geoms {
            geom.size = geom.size.map(&mut pick);
            geom.position = geom.position.map(&mut pick);
            geom.rotation = geom.rotation.map(&mut pick);
            geom.rgba = geom.rgba.map(&mut pick);
            geom.emission = pick(geom.emission);
            geom.specular = pick(geom.specular);
            geom.shininess = pick(geom.shininess);
            geom.reflectance = pick(geom.reflectance);
            if let Some(texture) = &mut geom.texture {
                texture.repeat = texture.repeat.map(&mut pick);
                texture.texels = pick(texture.texels as f32) as u32;
                texture.uniform = round % 2 == 0;
            }
        }
        for light in &mut scene.lights {
            light.position = light.position.map(&mut pick);
            light.direction = light.direction.map(&mut pick);
            light.diffuse = light.diffuse.map(&mut pick);
            light.attenuation = light.attenuation.map(&mut pick);
            light.cutoff_deg = pick(light.cutoff_deg);
            light.exponent = pick(light.exponent);
        }
        if round % 4 == 0 {
            scene.camera.position = scene.camera.position.map(&mut pick);
            scene.camera.near = pick(scene.camera.near);
            scene.camera.far = pick(scene.camera.far);
        }
        scene.shadow_volume.directional_half_side = pick(1.0);
        scene.shadow_volume.spot_scale = pick(0.6);
        for renderer in &mut renderers {
            let mut rgb = vec![0; renderer.bytes()];
            drawn += usize::from(renderer.draw(&scene, &mut rgb).is_ok());
        }
    }
    assert!(drawn > 4000, "only {drawn} scenes were drawn");
}

#[test]
fn thousands_of_geoms_are_drawn() {
    let mut scene = scene();
    let ball = |i: usize| Geom {
        shape: if i.is_multiple_of(50) { Shape::Plane } else { Shape::Sphere },
        size: [0.02; 3],
        position: [(i % 50) as f32 * 0.05 - 1.25, (i / 50) as f32 * 0.05, 0.5],
        ..Geom::default()
    };
    scene.geoms.extend((0..2000).map(ball));
    let rgb = draw_new(&RenderSettings::new(64, 48), &scene);
    assert!(rgb.iter().any(|&byte| byte > 100));
}
