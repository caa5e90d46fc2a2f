use super::*;
use crate::car_racing::scene::{Body, Colors, Paint, RoadQuad, Scene, Wheel};

#[track_caller]
fn check_reads(text: &str, canonical: &str) {
    let variants = Variants::parse(text).unwrap();
    assert_eq!(variants.to_string(), canonical, "{text:?}");
    assert_eq!(Variants::parse(canonical).unwrap().to_string(), canonical);
}

#[test]
fn text_becomes_variants_and_text_again() {
    check_reads("", "original");
    check_reads("original", "original");
    check_reads(" bar ", "bar");
    check_reads("bar:width=75", "bar");
    check_reads("bar:width=50", "bar:width=50");
    check_reads("color+bar:width=12.5,blob", "color+bar:width=12.5+blob");
    check_reads("original, color3 : amplitude = 0.4", "color3:amplitude=0.4");
    check_reads("blob:x=-10:side=4:color=#00ff7f:y=7.6", "blob:x=-10:side=4:color=#00ff7f");
    check_reads("noise:size=100", "noise:size=100");
    check_reads("fake-lane:side=left:gap=0", "fake-lane:side=left:gap=0");
    check_reads("video:folder=a, b+c:d=e", "video:folder=a, b+c:d=e");
}

#[track_caller]
fn check_refuses(text: &str, words: &[&str]) {
    let error = Variants::parse(text).unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "{text:?}: {error:?} does not say {word:?}");
    }
}

#[test]
fn errors_name_what_is_wrong_and_what_there_is() {
    check_refuses("bars", &["car-racing has no variant \"bars\"", "bar", "color3", "fake-lane", "video"]);
    check_refuses("bar:wide=3", &["variant bar", "no parameter \"wide\"", "width"]);
    check_refuses("bar:width", &["needs a value"]);
    check_refuses("bar:width=", &["from 0 to 500"]);
    check_refuses("bar:width=501", &["501", "from 0 to 500"]);
    check_refuses("bar:width=NaN", &["NaN", "from 0 to 500"]);
    check_refuses("color:amplitude=-1", &["from 0 to 1"]);
    check_refuses("blob:side=0", &["side"]);
    check_refuses("blob:color=red", &["six hexadecimal digits"]);
    check_refuses("blob:color=#+12345", &["six hexadecimal digits"]);
    check_refuses("noise:size=0", &["whole number from 1 to 2000"]);
    check_refuses("noise:size=1e3", &["whole number"]);
    check_refuses("fake-lane:side=up", &["left or right"]);
    check_refuses("video:folder=", &["folder"]);
    check_refuses("bar+", &["missing at the end"]);
    check_refuses("+bar", &["no variant \"\""]);
    check_refuses("original:x=1", &["no variant \"original\""]);
    check_refuses("bar+bar", &["both change the bars"]);
    check_refuses("color+bar+color3", &["color and color3", "colours"]);
    check_refuses("noise+video:folder=x", &["noise and video", "ground"]);
}

#[test]
fn the_catalogue_is_complete_and_true() {
    for info in catalogue() {
        let variant = catalogue::published(info.name).unwrap();
        assert_eq!(catalogue::info(&variant), info);
        assert!(!info.about.is_empty() && !info.source.is_empty() && !info.pictures.is_empty());
        for parameter in info.parameters.iter().filter(|p| !p.default.is_empty()) {
            // With every default written out, the text gives the published variant.
            let text = format!("{}:{}={}", info.name, parameter.name, parameter.default);
            assert_eq!(Variants::parse(&text).unwrap().list(), std::slice::from_ref(&variant), "{text}");
        }
        for picture in info.pictures {
            Variants::parse(info.name).unwrap().check_picture(picture).unwrap();
        }
    }
    let error = Variants::parse("bar").unwrap().check_picture("sketch").unwrap_err().to_string();
    assert!(error.contains("picture sketch does not show the variant bar"), "{error}");
}

/// A straight road of three tiles and a kerb.
fn road() -> Vec<RoadQuad> {
    let tile = |i: u8| RoadQuad {
        corners: [
            [-6.0, 4.0 + f64::from(i)],
            [6.0, 4.0 + f64::from(i)],
            [6.0, f64::from(i)],
            [-6.0, f64::from(i)],
        ],
        paint: Paint::Road { stripe: i % 3 },
    };
    let kerb = RoadQuad { corners: [[6.0, 0.0], [7.0, 0.0], [7.0, 1.0], [6.0, 1.0]], paint: Paint::White };
    vec![tile(0), kerb, tile(1), tile(2)]
}

fn scene(road: &[RoadQuad]) -> Scene<'_> {
    Scene {
        road,
        track_id: 1,
        t: 1.0,
        hull: Body { cos: 1.0, ..Body::default() },
        wheels: [Wheel::default(); 4],
        steering_angle: 0.0,
        score: 0.0,
        colors: Colors::default(),
        backdrop: None,
        side_bars: 0.0,
        indicators: true,
        blob: None,
    }
}

fn state(text: &str) -> VariantState {
    VariantState::new(Variants::parse(text).unwrap()).unwrap()
}

fn colors(text: &str, env_seed: u64, resets: u64) -> Colors {
    let mut state = state(text);
    state.on_reset(env_seed, resets);
    let mut scene = scene(&[]);
    state.dress(&mut scene);
    scene.colors
}

#[test]
fn colors_change_once_per_episode_from_their_own_path() {
    let usual = Colors::default();
    assert_eq!(colors("bar", 1, 0), usual);
    for text in ["color", "color3"] {
        let one = colors(text, 1, 0);
        assert_eq!(one, colors(text, 1, 0));
        assert_ne!(one, colors(text, 1, 1));
        assert_ne!(one, colors(text, 2, 0));
        let shift = |i: usize| [one.road[i] - usual.road[i], one.field[i] - usual.field[i]];
        for i in 0..3 {
            assert!(shift(i).iter().all(|d| d.abs() <= 51.0 && *d != 0.0), "{text}: {one:?}");
            let same = (shift(i)[0] - shift(0)[0]).abs() < 1e-9;
            assert_eq!(same, text == "color" || i == 0, "{text}: {one:?}");
        }
        assert_eq!(one.grass, usual.grass, "the lighter squares stay");
    }
    let wild = (0..50).map(|n| colors("color:amplitude=1", 7, n));
    assert!(wild.flat_map(|c| [c.road, c.field].concat()).all(|c| (0.0..=255.0).contains(&c)));
}

#[test]
fn color_is_uniform_over_its_range() {
    let n = 4000;
    let shift: Vec<f64> = (0..n).map(|i| (colors("color", 3, i).road[0] - 102.0) / 255.0).collect();
    let mean = shift.iter().sum::<f64>() / n as f64;
    let square = shift.iter().map(|s| s * s).sum::<f64>() / n as f64;
    assert!(mean.abs() < 0.01, "{mean}");
    assert!((square - 0.2 * 0.2 / 3.0).abs() < 0.001, "{square}");
}

fn texels(state: &VariantState) -> Vec<u8> {
    let mut scene = scene(&[]);
    state.dress(&mut scene);
    scene.backdrop.unwrap().rgb.to_vec()
}

#[test]
fn noise_depends_on_seed_reset_step_and_place() {
    let frame = |seed, resets, step, hull| {
        let mut state = state("noise");
        state.on_reset(seed, resets);
        state.on_frame(step, hull, 1.0);
        texels(&state)
    };
    let one = frame(1, 0, 5, [10.0, 20.0]);
    assert_eq!(one.len(), 666 * 666 * 3);
    assert_eq!(one, frame(1, 0, 5, [10.0, 20.0]));
    for other in [frame(2, 0, 5, [10.0, 20.0]), frame(1, 1, 5, [10.0, 20.0]), frame(1, 0, 6, [10.0, 20.0])] {
        assert_ne!(one, other);
    }
    // A texel visible from two places is the same.
    let moved = frame(1, 0, 5, [13.0, 20.0]);
    let at = |x: usize, y: usize| ((333 - y) * 666 + 333 + x) * 3;
    assert_eq!(one[at(12, 21)..at(14, 21)], moved[at(12, 21)..at(14, 21)]);
    // Every byte value occurs among the visible texels.
    let mut seen = [false; 256];
    for &byte in &one {
        seen[usize::from(byte)] = true;
    }
    assert!(seen.iter().all(|&s| s));
}

#[test]
fn noise_is_new_as_far_as_the_canvas_reaches_and_survives_any_place() {
    // At t = 0 the canvas shows more than 1300 world units around the car: the whole field.
    let mut state = state("noise");
    state.on_reset(1, 0);
    state.on_frame(0, [0.0, 0.0], 0.0);
    let texels = texels(&state);
    let black = texels.chunks_exact(3).filter(|t| *t == [0, 0, 0]).count();
    assert!(black < 5, "{black} texels untouched");
    for hull in [[400.0, -400.0], [-1e9, 1e9], [f32::NAN, f32::INFINITY]] {
        state.on_frame(1, hull, 1.0);
    }
}

#[test]
fn video_shows_its_pictures_in_turn() {
    let pictures: Vec<ImageBuf> = (1..=3).map(|i| ImageBuf::from_rgb(2, 1, vec![i; 6]).unwrap()).collect();
    let mut variants = Variants::parse("bar+video:folder=frames").unwrap();
    assert_eq!(variants.missing_video(), Some("frames"));
    let error = VariantState::new(variants.clone()).unwrap_err().to_string();
    assert!(error.contains("frames"), "{error}");
    variants.set_video(&Arc::new(pictures));
    assert_eq!(variants.missing_video(), None);
    let mut state = VariantState::new(variants).unwrap();
    state.on_reset(1, 0);
    for (step, shown) in [(0, 2), (1, 3), (2, 1), (3, 2)] {
        state.on_frame(step, [0.0; 2], 1.0);
        assert_eq!(texels(&state), vec![shown; 6], "step {step}");
    }
    let error = VariantState::new(Variants::parse("video").unwrap()).unwrap_err().to_string();
    assert!(error.contains("video:folder="), "{error}");
}

#[test]
fn the_fake_lane_runs_beside_every_tile_in_the_order_of_its_corners() {
    for (text, left, right) in [
        ("fake-lane", 10.0, 23.3),
        ("fake-lane:gap=1:width=2", 7.0, 9.0),
        ("fake-lane:side=left:gap=1:width=2", -9.0, -7.0),
    ] {
        let state = state(text);
        let mut lane = Vec::new();
        state.lay_lane(&road(), &mut lane);
        assert_eq!(lane.len(), 3);
        assert_eq!(lane.len(), state.lane_quads(3));
        for (i, quad) in lane.iter().enumerate() {
            let y = i as f64;
            let expected = [[left, 4.0 + y], [right, 4.0 + y], [right, y], [left, y]];
            for (a, b) in quad.corners.iter().flatten().zip(expected.iter().flatten()) {
                assert!((a - b).abs() < 1e-9, "{text}: {:?} is not {expected:?}", quad.corners);
            }
            assert_eq!(quad.paint, Paint::Rgb([102, 102, 204]));
        }
    }
    let mut lane = Vec::new();
    state("bar").lay_lane(&road(), &mut lane);
    assert!(lane.is_empty());
    assert_eq!(state("bar").lane_quads(3), 0);
}

#[test]
fn variants_combine_and_their_copies_go_on_alike() {
    let mut state = state("color3+bar:width=50+blob+noise+fake-lane");
    state.on_reset(4, 2);
    state.on_frame(0, [5.0, 5.0], 1.0);
    let mut copy = state.clone();
    for state in [&mut state, &mut copy] {
        state.on_frame(1, [6.0, 5.0], 1.0);
        state.on_reset(4, 3);
        state.on_frame(0, [-6.0, 5.0], 1.0);
    }
    let road = road();
    let (mut a, mut b) = (scene(&road), scene(&road));
    state.dress(&mut a);
    copy.dress(&mut b);
    assert_eq!(a.side_bars, 50.0);
    assert_eq!(a.blob, Some(Blob { corner: [21.0, 7.6], side: 8.0, rgb: [204, 0, 0] }));
    assert_eq!((a.colors, a.side_bars, a.blob), (b.colors, b.side_bars, b.blob));
    assert!(a.backdrop.unwrap().rgb == b.backdrop.unwrap().rgb);
}
