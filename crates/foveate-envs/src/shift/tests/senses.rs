//! What shifts of senses do to vectors and pictures.

use std::sync::Arc;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, ImageBuf, Observation, ObservationSpace, PixelShape, Pixels,
    Step,
};
use proptest::prelude::*;

use super::super::*;
use super::effects::{continuous, flat};
use super::plan;

/// A world of `len` numbers that are all different: number `i` of step `t` is `i + t / 100`.
#[derive(Clone)]
struct Counting {
    spec: EnvSpec,
    numbers: Vec<f32>,
    t: u32,
}

fn spec(observation: ObservationSpace) -> EnvSpec {
    let action = ActionSpace::Box { low: vec![-1.0], high: vec![1.0] };
    EnvSpec { id: "counting".into(), observation, action, max_steps: None, fps: 1.0 }
}

impl Counting {
    fn boxed(len: usize) -> Box<dyn Env> {
        let numbers = vec![0.0; len];
        Box::new(Counting { spec: spec(ObservationSpace::Vector { len }), numbers, t: 0 })
    }

    fn count(&mut self) {
        let t = self.t as f32 / 100.0;
        self.numbers.iter_mut().enumerate().for_each(|(i, n)| *n = i as f32 + t);
    }
}

impl Env for Counting {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _: Option<u64>) {
        self.t = 0;
        self.count();
    }
    fn step(&mut self, _: Action<'_>) -> Result<Step, EnvError> {
        self.t += 1;
        self.count();
        Ok(Step::default())
    }
    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&self.numbers)
    }
    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

/// A stack of grey pictures whose bytes depend on place and frame, and change with every step.
#[derive(Clone)]
struct Stack {
    spec: EnvSpec,
    bytes: Vec<u8>,
}

const SHAPE: PixelShape = PixelShape { frames: 4, height: 12, width: 18, channels: 1 };

impl Stack {
    fn boxed() -> Box<dyn Env> {
        let bytes = vec![0; 4 * 12 * 18];
        Box::new(Stack { spec: spec(ObservationSpace::Image(SHAPE)), bytes })
    }
}

impl Env for Stack {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _: Option<u64>) {
        self.bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = 1 + (i * 7 % 251) as u8);
    }
    fn step(&mut self, _: Action<'_>) -> Result<Step, EnvError> {
        self.bytes.rotate_left(5);
        Ok(Step::default())
    }
    fn observation(&self) -> Observation<'_> {
        Observation::Image(Pixels::new(SHAPE, &self.bytes).expect("sizes agree"))
    }
    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

fn world(env: Box<dyn Env>, text: &str) -> Shifted {
    Shifted::new(env, &plan(text)).expect(text)
}

fn step(env: &mut Shifted) {
    env.step(Action::Continuous(&[0.0])).expect("a good action");
}

fn numbers(env: &Shifted) -> Vec<f32> {
    env.observation().numbers().expect("numbers").to_vec()
}

fn order(env: &Shifted) -> Vec<u32> {
    env.sensor_order().expect("a shift of senses").to_vec()
}

/// Puts every shown number back to where it comes from.
fn unshuffled(env: &Shifted, len: usize) -> Vec<Option<f32>> {
    let mut back = vec![None; len];
    for (&from, number) in order(env).iter().zip(numbers(env)) {
        if let Some(slot) = back.get_mut(from as usize) {
            *slot = Some(number);
        }
    }
    back
}

fn is_permutation(order: &[u32]) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.iter().enumerate().all(|(i, &place)| i as u32 == place)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_shuffle_is_a_permutation_that_can_be_undone(
        len in 1_usize..60, seed in 0_u64..1000, severity in 1_u32..=5, every in 0_u64..4,
    ) {
        let text = format!("shuffle:{severity}:every={every}");
        let (mut env, mut again) = (world(Counting::boxed(len), &text), world(Counting::boxed(len), &text));
        let mut plain = Counting::boxed(len);
        // The second world has another history before this episode.
        again.reset(Some(seed + 1));
        step(&mut again);
        for env in [&mut env, &mut again] {
            env.reset(Some(seed));
        }
        plain.reset(Some(seed));
        let most = ((f64::from(severity) * 0.2 * len as f64 + 1e-9) as usize).max(2);
        for _ in 0..6 {
            prop_assert!(is_permutation(&order(&env)), "{:?}", order(&env));
            let moved = order(&env).iter().enumerate().filter(|(i, from)| *i as u32 != **from).count();
            prop_assert!(moved <= most, "{moved} of {len} at severity {severity}");
            prop_assert_eq!(&env.spec().observation, &env.observation().space());
            let own = plain.observation().numbers().expect("numbers");
            let back: Option<Vec<f32>> = unshuffled(&env, len).into_iter().collect();
            prop_assert_eq!(back.as_deref(), Some(own));
            prop_assert_eq!((numbers(&env), order(&env)), (numbers(&again), order(&again)));
            for env in [&mut env, &mut again] {
                step(env);
            }
            plain.step(Action::Continuous(&[0.0])).expect("a good action");
        }
    }

    #[test]
    fn missing_numbers_leave_the_others_in_order(
        len in 2_usize..60, seed in 0_u64..1000, share in 0.0_f64..0.99,
    ) {
        let mut env = world(Counting::boxed(len), &format!("missing:3:share={share}"));
        env.reset(Some(seed));
        let shown = order(&env);
        let gone = (share * len as f64 + 1e-9) as usize;
        prop_assert_eq!(shown.len(), len - gone);
        prop_assert!(shown.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(numbers(&env), shown.iter().map(|&i| i as f32).collect::<Vec<_>>());
        prop_assert_eq!(&env.spec().observation, &ObservationSpace::Vector { len: len - gone });
        step(&mut env);
        prop_assert_eq!(order(&env), shown, "the same ones for the whole episode");
    }
}

#[test]
fn every_changes_only_when_it_is_shuffled() {
    let orders = |text: &str| {
        let mut env = world(Counting::boxed(20), text);
        env.reset(Some(3));
        let mut orders = vec![order(&env)];
        for _ in 0..12 {
            step(&mut env);
            orders.push(order(&env));
        }
        orders
    };
    let (each, third, never) =
        (orders("shuffle:5:every=1"), orders("shuffle:5:every=3"), orders("shuffle:5"));
    for (t, order) in third.iter().enumerate() {
        assert_eq!(order, &each[t / 3], "step {t}");
        assert_eq!(never[t], each[0], "step {t}");
    }
    assert!(each.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn episodes_and_requests_draw_new_orders() {
    let mut env = world(Counting::boxed(20), "shuffle:5");
    env.reset(Some(3));
    let first = order(&env);
    let mut copy = env.boxed_clone();
    assert!(env.shuffle_now());
    let second = order(&env);
    assert!(second != first && is_permutation(&second));
    step(&mut env);
    assert_eq!(order(&env), second, "it stays so");
    copy.step(Action::Continuous(&[0.0])).expect("a good action");
    assert_eq!(copy.sensor_order(), Some(&first[..]), "a copy goes on as it was");
    env.reset(None);
    let third = order(&env);
    assert!(third != first && third != second);
    env.reset(Some(3));
    assert_eq!(order(&env), first, "requests of another episode do not count");
    let mut none = world(Counting::boxed(4), "noise-channels:1");
    none.reset(Some(1));
    assert!(!none.shuffle_now());
}

#[test]
fn noise_and_copies_come_after_the_worlds_numbers() {
    let mut env = world(Counting::boxed(3), "noise-channels:2:std=0.5");
    env.reset(Some(8));
    let mut draws = vec![];
    for t in 0..2000 {
        let shown = numbers(&env);
        assert_eq!((shown.len(), order(&env)), (5, vec![0, 1, 2, u32::MAX, u32::MAX]));
        assert_eq!(shown[1], 1.0 + t as f32 / 100.0);
        draws.extend(shown[3..].iter().map(|&n| f64::from(n)));
        step(&mut env);
    }
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let deviation = (draws.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
    assert!(mean.abs() < 0.04 && (deviation - 0.5).abs() < 0.03, "{mean} {deviation}");
    let mut env = world(Counting::boxed(2), "doubled:2+shuffle:5+noise-channels:1");
    env.reset(Some(1));
    assert_eq!(env.spec().observation, ObservationSpace::Vector { len: 7 });
    let mut shown = order(&env);
    assert_eq!(shown.pop(), Some(u32::MAX), "after the shuffle, so last");
    assert_ne!(shown, [0, 1, 0, 1, 0, 1]);
    shown.sort_unstable();
    assert_eq!(shown, [0, 0, 0, 1, 1, 1]);
}

#[test]
fn patches_of_all_frames_move_alike_and_stay_grey() {
    let (mut env, mut plain) = (world(Stack::boxed(), "shuffle:5"), Stack::boxed());
    env.reset(Some(5));
    plain.reset(Some(5));
    for _ in 0..3 {
        let (shown, own) = (env.observation().image().expect("a picture"), plain.observation());
        let own = own.image().expect("a picture");
        assert_eq!(shown.shape(), SHAPE);
        let order = order(&env);
        assert!(is_permutation(&order) && order.len() == 6);
        for frame in 0..4 {
            let (shown, own) = (shown.frame(frame).expect("4"), own.frame(frame).expect("4"));
            for y in 0..12 {
                for x in 0..18 {
                    let source = order[y / 6 * 3 + x / 6] as usize;
                    let at = (source / 3 * 6 + y % 6) * 18 + source % 3 * 6 + x % 6;
                    assert_eq!(shown[y * 18 + x], own[at], "frame {frame}, {x}, {y}");
                }
            }
        }
        step(&mut env);
        plain.step(Action::Continuous(&[0.0])).expect("a good action");
    }
}

#[test]
fn grey_pictures_stay_grey_under_shifts_of_pictures() {
    let mut plain = Stack::boxed();
    plain.reset(Some(5));
    let bright = |byte: u8| byte.saturating_add(77); // severity 3 adds 0.3 of 255
    for (text, expect) in [
        ("hue:3", None), // grey has no hue
        ("brightness:3", Some(bright as fn(u8) -> u8)),
        ("hue:3+shuffle:5", None),
    ] {
        let mut env = world(Stack::boxed(), text);
        assert_eq!(env.spec().observation.image(), Some(SHAPE), "{text}");
        env.reset(Some(5));
        let (shown, own) = (env.observation().image().expect("a picture"), plain.observation());
        let own = own.image().expect("a picture").bytes();
        assert_eq!(shown.shape(), SHAPE, "{text}");
        let (mut shown, mut own) = (shown.bytes().to_vec(), own.to_vec());
        if text.contains("shuffle") {
            shown.sort_unstable();
            own.sort_unstable();
        }
        let expect = expect.unwrap_or(|byte| byte);
        let close = shown.iter().zip(&own).all(|(&shown, &own)| shown.abs_diff(expect(own)) <= 1);
        assert!(close, "{text}: {:?} {:?}", &shown[..20], &own[..20]);
    }
    // Colours of an operator become their brightness; a bar lies in all frames.
    let mut env = world(Stack::boxed(), "bar:5:color=#ff0000");
    env.reset(Some(5));
    let shown = env.observation().image().expect("a picture");
    assert!(shown.bytes().chunks_exact(18).all(|row| row.contains(&76)), "0.299 of 255 in every row");
}

#[test]
fn missing_patches_are_black_and_said_to_be() {
    let mut env = world(Stack::boxed(), "missing:3:patch=3+shuffle:5:patch=3");
    assert_eq!(env.spec().observation.describe(), "4 grey pictures of 18x12 with missing patches");
    env.reset(Some(5));
    let seen = env.observation();
    assert_eq!(seen.space(), env.spec().observation);
    let present = seen.present().expect("a part");
    assert_eq!((present.len(), present.iter().filter(|&&p| p == 0.0).count()), (24, 12));
    let frame = seen.image().expect("a picture").frame(2).expect("4");
    for (i, &there) in present.iter().enumerate() {
        let black = (0..9).all(|k| frame[(i / 6 * 3 + k / 3) * 18 + i % 6 * 3 + k % 3] == 0);
        assert_eq!(black, there == 0.0, "patch {i}");
    }
    assert!(is_permutation(&order(&env)));
    // Before the step at which it begins all are there.
    let mut late = world(Stack::boxed(), "missing:5@1");
    late.reset(Some(1));
    let there = |env: &Shifted| env.observation().present().map(|p| p.iter().sum::<f32>());
    assert_eq!(there(&late), Some(6.0));
    step(&mut late);
    assert_eq!(there(&late), Some(1.0));
}

#[test]
fn severity_0_shows_the_same_numbers() {
    for info in SHIFTS.iter().filter(|info| matches!(info.target, Target::Senses(_))) {
        let off = Shift::new(info.name, 0.0).expect("off");
        let mut env = Shifted::new(Counting::boxed(7), &Plan::new(vec![off])).expect("numbers");
        env.reset(Some(1));
        step(&mut env);
        assert_eq!(numbers(&env), (0..7).map(|i| i as f32 + 0.01).collect::<Vec<_>>(), "{}", info.name);
        assert!(is_permutation(&order(&env)));
    }
}

#[test]
fn actions_stick_to_the_episode_in_worlds_of_numbers_too() {
    let mut env = world(Counting::boxed(1), "sticky:5");
    let mut fresh = world(Counting::boxed(1), "sticky:5");
    env.reset(Some(1));
    for _ in 0..30 {
        env.step(Action::Continuous(&[1.0])).expect("a good action");
    }
    for env in [&mut env, &mut fresh] {
        env.reset(Some(2));
    }
    for _ in 0..10 {
        let steps = [&mut env, &mut fresh].map(|env| env.step(Action::Continuous(&[0.5])).expect("good"));
        assert_eq!(steps[0], steps[1]);
    }
}

#[test]
fn what_does_not_fit_is_said_in_one_line() {
    for (env, text, want) in [
        (
            Stack::boxed(),
            "shuffle:5:patch=5",
            "patch = 5 does not divide a picture of 18x12; choose one of 1, 2, 3, 6",
        ),
        (Stack::boxed(), "shuffle:5:patch=2.5", "patch = 2.5 does not divide"),
        (Stack::boxed(), "shuffle:5:patch=3+missing:2", "patch = 6, and 3 for a shift before it"),
        (
            Stack::boxed(),
            "doubled",
            "shift doubled: it goes with numbers, and counting shows 4 grey pictures",
        ),
        (Stack::boxed(), "noise-channels", "it goes with numbers"),
        (Stack::boxed(), "missing:3:share=1", "none of the 6 sensors of counting would be left"),
        (Counting::boxed(5), "missing:3:share=1", "none of the 5 sensors of counting would be left"),
        (
            Counting::boxed(0),
            "shuffle:5",
            "shows 0 numbers, so there are no sensors to change; choose one that fits: sticky, unsteady",
        ),
        (
            Counting::boxed(5),
            "background-image:5:file=a.png",
            "counting shows 5 numbers, not a picture; choose one that fits: sticky",
        ),
        (Stack::boxed(), "background-image:5", "file is missing; name a PNG or JPEG file"),
    ] {
        let said = Shifted::new(env, &plan(text)).err().expect(text).to_string();
        assert!(said.contains(want) && said.lines().count() == 1, "{text}: {said}");
    }
    for text in ["shuffle:5:every=-1", "shuffle:5:patch=0", "noise-channels:1:std=-1", "missing:1:share=2"] {
        assert!(text.parse::<Plan>().is_err(), "{text}");
    }
}

#[test]
fn a_background_replaces_exact_colours_alone() {
    let shown = |text: &str| {
        let mut plan = plan(&format!("background-image:5:file=sky.jpg{text}"));
        let missing = plan.missing_pictures().expect("a file");
        assert_eq!(missing, MissingPictures::File("sky.jpg".into()));
        let sky = ImageBuf::from_rgb(1, 1, vec![10, 20, 30]).expect("one pixel");
        plan.set_pictures(&missing, &Arc::new(vec![sky]));
        let mut env = Shifted::new(flat(continuous()), &plan).expect("RGB");
        env.reset(Some(1));
        let Some(image) = env.observation().picture() else { panic!("a picture") };
        assert!(image.rgb().chunks_exact(3).all(|pixel| pixel == image.pixel(0, 0)), "it is flat");
        image.pixel(0, 0)
    };
    assert_eq!(shown(""), [100; 3], "no grass here");
    assert_eq!(shown(":key=#646464"), [10, 20, 30]);
    assert_eq!(shown(":key=#656464"), [100; 3]);
    assert_eq!(shown(":key=#656464:tolerance=1"), [10, 20, 30]);
}
