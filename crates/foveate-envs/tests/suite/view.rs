//! Tests the view for people: any size, deterministic, with all elements at their places.

use foveate_core::{Action, Env, ImageBuf};
use foveate_envs::car_racing::picture::view;
use foveate_envs::car_racing::scene::{Backdrop, Blob, Scene};
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind};

/// A world after some steps straight ahead.
fn world(steps: usize) -> CarRacing {
    let config = CarRacingConfig { picture: PictureKind::None, ..CarRacingConfig::default() };
    let mut env = CarRacing::new(config).expect("a world");
    env.reset(Some(0));
    for _ in 0..steps {
        env.step(Action::Continuous(&[0.0, 0.6, 0.0])).expect("a step");
    }
    env
}

fn draw(scene: &Scene<'_>, width: usize, height: usize) -> ImageBuf {
    let mut view = ImageBuf::black(width, height);
    view::draw(scene, &mut view);
    view
}

#[test]
fn every_size_is_drawn_the_same_way_twice() {
    let env = world(60);
    for (width, height) in
        [(0, 0), (0, 9), (1, 1), (1, 700), (700, 1), (7, 5), (96, 96), (320, 180), (601, 399)]
    {
        let first = draw(&env.scene(), width, height);
        let mut second = ImageBuf::from_rgb(width, height, vec![99; width * height * 3]).expect("fits");
        env.render(&mut second).expect("a view");
        assert!(first == second, "{width} x {height}");
    }
}

/// A condition on a pixel's colour.
type Is = fn([u8; 3]) -> bool;

#[test]
fn things_are_where_people_expect_them() {
    let grass: Is = |[r, g, b]| g > 120 && g > r + 30 && g > b + 30;
    let road: Is = |[r, g, b]| r < 90 && r.abs_diff(g) < 4 && g.abs_diff(b) < 4;
    let car: Is = |[r, g, b]| r > 180 && g < 90 && b < 90;
    let dark: Is = |[r, g, b]| r < 80 && g < 80 && b < 80;
    // Positions as shares of width and height.
    let table = [
        ("grass on the left", [0.1, 0.5], grass),
        ("grass on the right", [0.9, 0.2], grass),
        ("road ahead", [0.5, 0.4], road),
        ("the car's nose", [0.5, 0.715], car),
        ("instruments", [0.02, 0.99], dark),
    ];
    let env = world(70);
    for (width, height) in [(600, 400), (1000, 800), (1500, 1000)] {
        let view = draw(&env.scene(), width, height);
        for (name, [x, y], is) in table {
            let pixel = view.as_image().pixel((x * width as f64) as usize, (y * height as f64) as usize);
            assert!(is(pixel), "{width} x {height}: {name} is {pixel:?}");
        }
    }
}

#[test]
fn score_bars_blob_and_backdrop_show() {
    let env = world(70);
    let scene = env.scene();
    let plain = draw(&scene, 600, 400);
    let changed = |other: &Scene<'_>| {
        let other = draw(other, 600, 400);
        let differs = |i: &usize| plain.rgb()[i * 3..][..3] != other.rgb()[i * 3..][..3];
        (0..600 * 400).filter(differs).map(|i| [i % 600, i / 600]).collect::<Vec<_>>()
    };
    let score = changed(&Scene { score: scene.score + 111.0, ..scene });
    assert!(!score.is_empty() && score.iter().all(|&[x, y]| x < 120 && y > 354), "{score:?}");
    let bars = changed(&Scene { side_bars: 75.0, ..scene });
    assert!(bars.len() > 25_000 && bars.iter().all(|&[x, _]| !(45..555).contains(&x)));
    let blob = Blob { corner: [21.0, 7.6], side: 8.0, rgb: [255, 0, 0] };
    let blob = changed(&Scene { blob: Some(blob), ..scene });
    assert!(
        (3000..6000).contains(&blob.len()) && blob.iter().all(|&[x, y]| x > 450 && y < 260),
        "{}",
        blob.len()
    );
    let sky = vec![7; 700 * 700 * 3];
    let backdrop = Backdrop { width: 700, height: 700, rgb: &sky };
    let other = draw(&Scene { backdrop: Some(backdrop), ..scene }, 600, 400);
    assert_eq!(other.as_image().pixel(60, 200), [7; 3]);
    assert_eq!(other.as_image().pixel(300, 160), plain.as_image().pixel(300, 160));
}

#[test]
fn numbers_that_make_no_sense_draw_something() {
    let env = world(1);
    for odd in [f32::NAN, f32::INFINITY, 1e30, -1e30] {
        let mut scene = env.scene();
        scene.hull.velocity = [odd; 2];
        scene.hull.spin = odd;
        scene.steering_angle = odd;
        scene.score = f64::from(odd);
        draw(&scene, 300, 200);
        scene.hull.position = [odd; 2];
        let view = draw(&scene, 300, 200);
        assert!(view.rgb().iter().any(|&b| b != 0));
    }
}
