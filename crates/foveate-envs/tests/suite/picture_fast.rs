//! Tests that the fast picture is close to the exact one, and depends on the scene only.

use foveate_core::{Action, Env};
use foveate_envs::car_racing::picture::FRAME_BYTES;
use foveate_envs::car_racing::picture::exact::ExactPicture;
use foveate_envs::car_racing::picture::fast::FastPicture;
use foveate_envs::car_racing::scene::{Backdrop, Blob, Scene};
use foveate_envs::car_racing::variants::Variants;
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind};

/// Steps with the given rule and calls `look` after the steps `0, every, 2 * every …`.
fn drive(
    config: CarRacingConfig,
    seed: u64,
    steps: usize,
    every: usize,
    act: impl Fn(usize) -> [f64; 3],
    mut look: impl FnMut(&Scene<'_>),
) {
    let mut env = CarRacing::new(CarRacingConfig { picture: PictureKind::None, ..config }).expect("a world");
    env.reset(Some(seed));
    for step in 0..steps {
        if step % every == 0 {
            look(&env.scene());
        }
        let result = env.step(Action::Continuous(&act(step))).expect("a step");
        if result.is_over() {
            break;
        }
    }
}

fn weave(step: usize) -> [f64; 3] {
    [0.4 * (step as f64 / 25.0).sin(), 0.5, if step % 90 > 80 { 1.0 } else { 0.0 }]
}

fn mean_error(a: &[u8], b: &[u8]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / a.len() as f64
}

/// Mean error against the exact picture over an episode, and on the worst frame.
#[track_caller]
fn check_close(
    name: &str,
    config: CarRacingConfig,
    seed: u64,
    change: impl Fn(Scene<'_>, &mut dyn FnMut(&Scene<'_>)),
    allowed: [f64; 2],
) {
    let (mut exact, mut fast) = (ExactPicture::new(), FastPicture::new());
    let (mut want, mut got) = (vec![0; FRAME_BYTES], vec![0; FRAME_BYTES]);
    let mut errors = Vec::new();
    drive(config, seed, 240, 12, weave, |scene| {
        change(*scene, &mut |scene| {
            exact.draw(scene, &mut want);
            fast.draw(scene, &mut got);
            errors.push(mean_error(&got, &want));
        });
    });
    assert!(errors.len() >= 20, "{name}: only {} frames", errors.len());
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().fold(0.0, |m: f64, &e| m.max(e));
    eprintln!("{name}: mean error {mean:.4}, worst frame {worst:.4}");
    assert!(
        mean <= allowed[0] && worst <= allowed[1],
        "{name}: mean {mean}, worst {worst}, allowed {allowed:?}"
    );
}

#[test]
fn close_to_the_exact_picture() {
    let plain = CarRacingConfig::default;
    let random = || CarRacingConfig { domain_randomize: true, ..plain() };
    let beside = Blob { corner: [21.0, 7.6], side: 8.0, rgb: [255, 0, 0] };
    let on_hull = Blob { corner: [-0.5, -3.0], side: 2.0, rgb: [0, 0, 255] };
    let texels: Vec<u8> = (0..700 * 700).flat_map(|i| [(i / 40 % 256) as u8, (i % 200) as u8, 90]).collect();
    let backdrop = Backdrop { width: 700, height: 700, rgb: &texels };
    check_close("plain", plain(), 31, |s, draw| draw(&s), [0.05, 0.12]);
    check_close("random colours", random(), 32, |s, draw| draw(&s), [0.05, 0.12]);
    check_close("side bars", plain(), 33, |s, draw| draw(&Scene { side_bars: 75.0, ..s }), [0.05, 0.12]);
    check_close("blob", plain(), 34, |s, draw| draw(&Scene { blob: Some(beside), ..s }), [0.05, 0.12]);
    check_close(
        "blob on the hull",
        plain(),
        34,
        |s, draw| draw(&Scene { blob: Some(on_hull), ..s }),
        [0.05, 0.12],
    );
    // The fast picture samples a backdrop; the exact picture computes every canvas pixel.
    check_close(
        "backdrop",
        plain(),
        35,
        |s, draw| draw(&Scene { backdrop: Some(backdrop), ..s }),
        [1.5, 3.0],
    );
}

#[test]
fn frames_do_not_depend_on_frames_before() {
    let mut used = FastPicture::new();
    let mut frames = 0;
    for (seed, colored) in [(3, false), (4, true), (3, false)] {
        let config = CarRacingConfig { domain_randomize: colored, ..CarRacingConfig::default() };
        drive(config, seed, 150, 7, weave, |scene| {
            let (mut got, mut fresh, mut copied) =
                (vec![1; FRAME_BYTES], vec![2; FRAME_BYTES], vec![3; FRAME_BYTES]);
            let mut copy = used.clone();
            let scene = Scene { track_id: scene.track_id + 10 * seed, ..*scene };
            used.draw(&scene, &mut got);
            FastPicture::new().draw(&scene, &mut fresh);
            copy.draw(&scene, &mut copied);
            assert!(got == fresh && got == copied, "seed {seed}, t {:.2}", scene.t);
            frames += 1;
        });
    }
    assert!(frames > 60, "{frames} frames");
}

#[test]
fn scenes_without_road_and_far_away_are_drawn() {
    let mut picture = FastPicture::new();
    let mut frame = vec![0; FRAME_BYTES];
    drive(CarRacingConfig::default(), 1, 1, 1, weave, |scene| {
        for position in [[0.0, 0.0], [330.0, -330.0], [5000.0, 0.0], [1e9, -1e9], [f32::NAN, 0.0]] {
            let mut scene = Scene { road: &[], track_id: 9, t: 2.0, ..*scene };
            scene.hull.position = position;
            // Values far beyond the range of the instruments must not cause a panic.
            scene.hull.velocity = position;
            scene.hull.spin = position[0];
            scene.wheels[0].omega = f64::from(position[0]) * 1e300;
            picture.draw(&scene, &mut frame);
            let dark = frame[..84 * 96 * 3].chunks_exact(3).filter(|rgb| **rgb == [0; 3]).count();
            let expected = if position[0].abs() < 100.0 { 0..200 } else { 200..84 * 96 + 1 };
            assert!(expected.contains(&dark), "{position:?}: {dark} black cells");
        }
    });
}

/// A digest of all frames of whole episodes, including the first frames, whose camera is far away. The
/// digests are those of the first published version; a change of the algorithm must keep them.
#[test]
#[cfg_attr(
    not(all(target_os = "linux", target_env = "gnu")),
    ignore = "the bits of these frames are those of glibc\'s sin and cos"
)]
fn whole_episodes_keep_every_byte() {
    let variants = |text| Variants::parse(text).expect("they go together");
    let plain = CarRacingConfig { picture: PictureKind::Fast, ..CarRacingConfig::default() };
    let cases = [
        (plain.clone(), 1, 600),
        (plain.clone(), 2, 600),
        (CarRacingConfig { domain_randomize: true, ..plain.clone() }, 3, 300),
        (CarRacingConfig { variants: variants("color3+blob+bar"), ..plain.clone() }, 4, 150),
        (CarRacingConfig { variants: variants("noise+fake-lane"), ..plain.clone() }, 5, 80),
    ];
    let mut digests = Vec::new();
    for (config, seed, steps) in cases {
        let what = format!("{} {seed}", config.variants);
        let mut env = CarRacing::new(config).expect("a world");
        env.reset(Some(seed));
        let (mut digest, mut frames) = (0xcbf2_9ce4_8422_2325_u64, 0);
        loop {
            let Some(image) = env.observation().picture() else { panic!("it shows pictures") };
            // FNV-1a, eight bytes per step.
            for bytes in image.rgb().as_chunks().0 {
                digest = (digest ^ u64::from_le_bytes(*bytes)).wrapping_mul(0x0100_0000_01b3);
            }
            frames += 1;
            let mut action = [0.0; 3];
            env.expert(&mut action).expect("it has one");
            if frames > steps || env.step(Action::Continuous(&action)).expect("a step").is_over() {
                break;
            }
        }
        assert_eq!(frames, steps + 1, "{what}");
        digests.push(digest);
    }
    let expect = [
        0x6749_dc96_40f0_0cc5,
        0xdefa_6977_84b7_0495,
        0xb98a_7c0e_0db9_2ba0,
        0xe1a8_5937_8210_4efc,
        0x2fe1_98e4_7b09_8bf2_u64,
    ];
    assert_eq!(digests, expect, "{digests:#018x?}");
}
