//! Compares tracks, road and colours with the real Gymnasium, number by number.

use foveate_envs::car_racing::scene::Paint;
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind, Seeding};
use foveate_toy::oracle::{Oracle, Report};

#[test]
fn tracks_and_colours_are_gymnasiums() {
    let Some(mut oracle) = Oracle::start("oracle/tracks.py") else { return };
    let mut report = Report::default();
    let mut tracks = 0;
    loop {
        let kind = oracle.text();
        let seeding = match kind.as_str() {
            "gymnasium" | "randomize" => Seeding::Gymnasium,
            "gym0153" => Seeding::Gym0153,
            "end" => break,
            _ => panic!("unknown kind {kind}"),
        };
        let mut env = CarRacing::new(CarRacingConfig {
            seeding,
            picture: PictureKind::None,
            domain_randomize: kind == "randomize",
            ..CarRacingConfig::default()
        })
        .expect("the options fit");
        let mut seed = None;
        for reset in 0..oracle.count() {
            let given = oracle.seed();
            seed = given.or(seed);
            let randomize = oracle.flag();
            env.reset_with(given, Some(randomize));
            compare(&mut oracle, &env, &mut report, &format!("{kind}, reset {reset}, last seed {seed:?}"));
            tracks += 1;
        }
    }
    oracle.finish();
    assert!(tracks >= 500, "only {tracks} tracks");
    report.finish(&format!("{tracks} tracks"));
}

fn compare(oracle: &mut Oracle, env: &CarRacing, report: &mut Report, place: &str) {
    let points = &env.track().points;
    let count = oracle.count();
    assert_eq!(points.len(), count, "{place}: points of the track");
    for (i, point) in points.iter().enumerate() {
        let ours = [point.alpha, point.beta, point.x, point.y];
        for (ours, theirs) in ours.into_iter().zip(oracle.numbers::<4>()) {
            report.compare(ours, theirs, || format!("{place}, point {i}"));
        }
    }
    let scene = env.scene();
    let count = oracle.count();
    assert_eq!(scene.road.len(), count, "{place}: quads of the road");
    for (i, quad) in scene.road.iter().enumerate() {
        for (ours, theirs) in quad.corners.as_flattened().iter().zip(oracle.numbers::<8>()) {
            report.compare(*ours, theirs, || format!("{place}, quad {i}"));
        }
        let color = match quad.paint {
            // Unvisited tiles are brighter by a step that depends on their index.
            Paint::Road { stripe } => scene.colors.road.map(|c| c + 0.01 * f64::from(stripe) * 255.0),
            Paint::White => [255.0; 3],
            Paint::Red => [255.0, 0.0, 0.0],
            Paint::Rgb(rgb) => rgb.map(f64::from),
        };
        for (ours, theirs) in color.into_iter().zip(oracle.numbers::<3>()) {
            report.compare(ours, theirs, || format!("{place}, colour of quad {i} ({:?})", quad.paint));
        }
    }
    let ground = [scene.colors.field, scene.colors.grass];
    for (ours, theirs) in ground.as_flattened().iter().zip(oracle.numbers::<6>()) {
        report.compare(*ours, theirs, || format!("{place}, colours of the ground"));
    }
}
