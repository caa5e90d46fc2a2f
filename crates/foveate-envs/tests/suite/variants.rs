//! Tests variants through the public interface: which pixels change in which picture, and that nothing else
//! changes.

use std::sync::Arc;

use foveate_core::{Action, Env, ImageBuf, Step};
use foveate_envs::car_racing::variants::{Variants, catalogue};
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind};

const SIDE: usize = 96;
/// Rows above the indicators.
const WORLD_ROWS: usize = 84;
/// Enough steps to be zoomed in and moving.
const STEPS: usize = 60;

type Frame = Vec<[u8; 3]>;

fn build(picture: PictureKind, text: &str) -> CarRacing {
    let base =
        if picture == PictureKind::Classic { CarRacingConfig::classic() } else { CarRacingConfig::default() };
    let mut variants = Variants::parse(text).expect("the text is right");
    if variants.missing_video().is_some() {
        variants.set_video(&Arc::new(vec![blue(400), blue(500), blue(600)]));
    }
    CarRacing::new(CarRacingConfig { picture, variants, ..base }).expect("the picture shows the variant")
}

/// A uniform blue square; the shade depends on the side.
fn blue(side: usize) -> ImageBuf {
    let rgb = [1, 2, (side / 4) as u8].repeat(side * side);
    ImageBuf::from_rgb(side, side, rgb).expect("the sizes agree")
}

/// The text that a user types to get the variant `name`.
fn text(name: &str) -> &str {
    if name == "video" { "video:folder=anywhere" } else { name }
}

fn frame(env: &dyn Env) -> Frame {
    let Some(image) = env.observation().picture() else { panic!("CarRacing shows pictures") };
    image.rgb().chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect()
}

fn step(env: &mut dyn Env, i: usize) -> Step {
    let steer = if i % 20 < 10 { 0.15 } else { -0.1 };
    env.step(Action::Continuous(&[steer, 0.3, 0.0])).expect("the episode goes on")
}

/// The frames of `STEPS` steps from seed 3, and the rewards.
fn episode(env: &mut dyn Env) -> (Vec<Frame>, Vec<f64>) {
    env.reset(Some(3));
    let mut frames = vec![frame(env)];
    let rewards = (0..STEPS)
        .map(|i| {
            let reward = step(env, i).reward;
            frames.push(frame(env));
            reward
        })
        .collect();
    (frames, rewards)
}

/// The pixels of the classic picture that a variant may change, by position and original colour, and the
/// minimum number that it must change.
struct Expect {
    text: &'static str,
    may: fn(usize, usize, [u8; 3]) -> bool,
    /// Whether a changed pixel may have this new colour.
    becomes: fn([u8; 3]) -> bool,
    /// Minimum number of pixels changed in the last frame.
    at_least: usize,
}

const ROAD: [[u8; 3]; 3] = [[102; 3], [105; 3], [107; 3]];
const FIELD: [u8; 3] = [102, 204, 102];
const GRASS: [u8; 3] = [102, 230, 102];
const GREY: fn([u8; 3]) -> bool = |c| c[0] == c[1] && c[1] == c[2];
const ANY: fn([u8; 3]) -> bool = |_| true;

fn ground(color: [u8; 3]) -> bool {
    color == FIELD || color == GRASS || color == [0; 3]
}

const TABLE: &[Expect] = &[
    Expect {
        text: "color",
        may: |_, y, c| y < WORLD_ROWS && (c == FIELD || ROAD.contains(&c)),
        becomes: |c| GREY(c) || (c[0] == c[2] && c[1] - c[0] == 102),
        at_least: 4000,
    },
    Expect {
        text: "color3",
        may: |_, y, c| y < WORLD_ROWS && (c == FIELD || ROAD.contains(&c)),
        becomes: ANY,
        at_least: 4000,
    },
    // 14 columns of 84 rows, minus the pixels that were black before.
    Expect {
        text: "bar",
        may: |x, y, _| y < WORLD_ROWS && !(7..89).contains(&x),
        becomes: |c| c == [0; 3],
        at_least: 1100,
    },
    Expect {
        text: "bar:width=200",
        may: |x, y, _| y < WORLD_ROWS && !(19..77).contains(&x),
        becomes: |c| c == [0; 3],
        at_least: 3000,
    },
    // 8 x 8 units are about 12.4 x 15.6 pixels.
    Expect { text: "blob", may: |_, y, _| y < WORLD_ROWS, becomes: |c| c == [204, 0, 0], at_least: 150 },
    Expect {
        text: "blob:x=-10:side=4:color=#010203",
        may: |_, y, _| y < WORLD_ROWS,
        becomes: |c| c == [1, 2, 3],
        at_least: 35,
    },
    Expect { text: "noise", may: |_, y, c| y < WORLD_ROWS && ground(c), becomes: ANY, at_least: 4000 },
    Expect {
        text: "video:folder=anywhere",
        may: |_, y, c| y < WORLD_ROWS && ground(c),
        becomes: |c| c == [0; 3] || (c[..2] == [1, 2] && [100, 125, 150].contains(&c[2])),
        at_least: 4000,
    },
    Expect {
        text: "fake-lane",
        may: |_, y, c| y < WORLD_ROWS && ground(c),
        becomes: |c| c == [102, 102, 204],
        at_least: 500,
    },
    Expect {
        text: "fake-lane:side=left:color=#7777ff",
        may: |_, y, c| y < WORLD_ROWS && ground(c),
        becomes: |c| c == [0x77, 0x77, 255],
        at_least: 500,
    },
];

#[test]
fn each_variant_changes_the_pixels_it_should_and_never_the_drive() {
    let (plain, rewards) = episode(&mut build(PictureKind::Classic, "original"));
    for Expect { text, may, becomes, at_least } in TABLE {
        let (frames, their_rewards) = episode(&mut build(PictureKind::Classic, text));
        assert_eq!(their_rewards, rewards, "{text}");
        let mut changed = 0;
        for (t, (plain, frame)) in plain.iter().zip(&frames).enumerate() {
            changed = 0;
            for (i, (&before, &after)) in plain.iter().zip(frame).enumerate() {
                if before != after {
                    changed += 1;
                    let (x, y) = (i % SIDE, i / SIDE);
                    assert!(may(x, y, before), "{text}: frame {t}, column {x}, row {y} was {before:?}");
                    assert!(becomes(after), "{text}: frame {t}, column {x}, row {y} became {after:?}");
                }
            }
        }
        assert!(changed >= *at_least, "{text}: {changed} pixels changed, expected {at_least}");
    }
    assert!(
        catalogue().iter().all(|info| TABLE.iter().any(|row| row.text.split(':').next() == Some(info.name)))
    );
}

#[test]
fn variants_combine() {
    let (plain, _) = episode(&mut build(PictureKind::Classic, "original"));
    let (bar, _) = episode(&mut build(PictureKind::Classic, "bar"));
    let (blob, _) = episode(&mut build(PictureKind::Classic, "blob"));
    let (lane, _) = episode(&mut build(PictureKind::Classic, "fake-lane"));
    let (all, _) = episode(&mut build(PictureKind::Classic, "fake-lane+blob,bar"));
    for (t, frame) in all.iter().enumerate() {
        for i in 0..SIDE * SIDE {
            // The layers have a fixed order, independent of the order of the names.
            let layers = [bar[t][i], blob[t][i], lane[t][i]];
            let expected = layers.into_iter().find(|&c| c != plain[t][i]).unwrap_or(plain[t][i]);
            assert_eq!(frame[i], expected, "frame {t}, column {}, row {}", i % SIDE, i / SIDE);
        }
    }
}

#[test]
fn every_catalogue_entry_shows_in_every_picture_it_claims() {
    let mut claims = 0;
    for picture in PictureKind::ALL {
        let name = picture.name();
        let claimants: Vec<_> = catalogue().iter().filter(|info| info.pictures.contains(&name)).collect();
        if claimants.is_empty() {
            continue;
        }
        claims += claimants.len();
        let (plain, rewards) = episode(&mut build(picture, "original"));
        for info in claimants {
            let mut env = build(picture, text(info.name));
            let (frames, their_rewards) = episode(&mut env);
            assert_eq!(their_rewards, rewards, "{} in {name}", info.name);
            let changed = plain[STEPS].iter().zip(&frames[STEPS]).filter(|(a, b)| a != b).count();
            assert!(changed >= 100, "{} in {name}: {changed} pixels changed", info.name);

            let mut again = build(picture, text(info.name));
            again.reset(Some(3));
            for (i, first) in frames[..5].iter().enumerate() {
                assert!(frame(&again) == *first, "{} in {name} is not repeatable", info.name);
                step(&mut again, i);
            }
            let mut copy = env.boxed_clone();
            for i in 0..5 {
                assert_eq!(step(&mut env, i), step(copy.as_mut(), i));
                assert!(frame(&env) == frame(copy.as_ref()), "a copy with {} in {name} differs", info.name);
            }
        }
    }
    // No entry lists a picture that does not exist.
    assert_eq!(claims, catalogue().iter().map(|info| info.pictures.len()).sum::<usize>());
}

#[test]
fn episodes_of_one_seed_have_their_own_colours_and_a_seed_brings_them_back() {
    let mut env = build(PictureKind::Classic, "color");
    let corner = |env: &CarRacing| env.scene().colors;
    env.reset(Some(8));
    let first = corner(&env);
    env.reset(None);
    let second = corner(&env);
    assert_ne!(first, second);
    env.reset(Some(9));
    assert_ne!(first, corner(&env));
    env.reset(Some(8));
    assert_eq!(first, corner(&env));
    env.reset(None);
    assert_eq!(second, corner(&env));
}
