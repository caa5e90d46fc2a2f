//! What single operators do, seen in worlds made for it.

use super::*;

/// A world that shows a flat picture of 40 x 20 pixels whose red counts the steps, and remembers what was done to it.
#[derive(Clone)]
struct Flat {
    spec: EnvSpec,
    rgb: Vec<u8>,
    done: Vec<f64>,
}

const WIDTH: usize = 40;
const HEIGHT: usize = 20;
const GREY: u8 = 100;

pub(super) fn flat(action: ActionSpace) -> Box<dyn Env> {
    Box::new(Flat {
        spec: EnvSpec {
            id: "flat".into(),
            observation: ObservationSpace::rgb(WIDTH, HEIGHT),
            action,
            max_steps: None,
            fps: 10.0,
        },
        rgb: vec![GREY; WIDTH * HEIGHT * 3],
        done: vec![],
    })
}

impl Env for Flat {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _: Option<u64>) {
        self.rgb.fill(GREY);
        self.done.clear();
    }
    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        match action {
            Action::Continuous(values) => self.done.extend_from_slice(values),
            Action::Discrete(choice) => self.done.push(choice as f64),
        }
        self.rgb.chunks_exact_mut(3).for_each(|pixel| pixel[0] = pixel[0].wrapping_add(1));
        Ok(Step::default())
    }
    fn observation(&self) -> Observation<'_> {
        Observation::rgb(foveate_core::Image::new(WIDTH, HEIGHT, &self.rgb).expect("its size"))
    }
    fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
        Ok(())
    }
    fn state(&self) -> Fact {
        Fact::List(self.done.iter().map(|x| Fact::Number(*x)).collect())
    }
    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        *costs = vec![0.5; 6];
        Ok(())
    }
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        *points = vec![GazePoint { x: 0.25, y: 0.75, weight: 1.0 }];
        Ok(())
    }
    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

pub(super) fn continuous() -> ActionSpace {
    ActionSpace::Box { low: vec![-1.0, 0.0], high: vec![1.0, 1.0] }
}

/// What is seen of the flat world at the reset and in `steps` steps.
fn seen(text: &str, steps: usize) -> Vec<Vec<u8>> {
    let mut world = Shifted::new(flat(continuous()), &plan(text)).expect("a picture");
    world.reset(Some(1));
    let mut seen = vec![frame(&world)];
    for _ in 0..steps {
        world.step(Action::Continuous(&[0.5, 0.5])).expect("a good action");
        seen.push(frame(&world));
    }
    seen
}

/// What was done to the flat world when `actions` were asked for.
fn done(text: &str, space: ActionSpace, actions: &[Action<'_>]) -> Vec<f64> {
    let mut world = Shifted::new(flat(space), &plan(text)).expect("fine");
    world.reset(Some(1));
    for action in actions {
        world.step(*action).expect("a good action");
    }
    let Fact::List(done) = world.state() else { panic!("a list") };
    done.iter().map(|fact| if let Fact::Number(x) = fact { *x } else { panic!("a number") }).collect()
}

#[test]
fn a_flat_grey_picture() {
    for (text, expect) in [
        ("brightness:3", [177; 3]),                    // 100 + round(0.3 · 255)
        ("darkness:2", [60; 3]),                       // 100 · 0.6
        ("contrast:5", [GREY; 3]),                     // it is its mean already
        ("hue:3", [GREY; 3]),                          // grey has no hue
        ("blur:5", [GREY; 3]),                         // nothing to smear
        ("shake:5", [GREY; 3]),                        // everywhere the same
        ("background-noise:1:key=#ff0000", [GREY; 3]), // no such colour
        ("bar:1:x=0.5:width=1:color=#010203", [1, 2, 3]),
        ("dropout:5:patch=96:color=#040506", [GREY; 3]), // not lost in this frame
    ] {
        let first = &seen(text, 0)[0];
        let wrong = first.chunks_exact(3).find(|pixel| *pixel != expect);
        assert_eq!(wrong, None, "{text}");
    }
}

#[test]
fn colours_turn() {
    let mut world =
        Shifted::new(flat(continuous()), &plan("bar:1:width=1:color=#c80000+hue:4")).expect("a picture");
    world.reset(None);
    // A third of a turn: red becomes green.
    assert_eq!(&frame(&world)[..3], [0, 200, 0]);
}

#[test]
fn colours_are_others_in_every_episode() {
    let mut world = Shifted::new(flat(continuous()), &plan("colors:3")).expect("a picture");
    let mut pictures = Vec::new();
    for seed in 1..=20 {
        world.reset(Some(seed));
        let first = frame(&world);
        assert!(first.chunks_exact(3).all(|pixel| pixel == &first[..3]), "{seed}");
        // Red grows by one in each step, and nothing else changes.
        world.step(Action::Continuous(&[0.0, 0.0])).expect("a good action");
        let second = frame(&world);
        assert_eq!(second[1..3], first[1..3], "{seed}");
        assert!(first[0].abs_diff(second[0]) <= 2, "{seed}");
        pictures.push([first[0], first[1], first[2]]);
    }
    // Scaled by 0.6 to 1.4, and 51 darker to 51 lighter.
    let channels = pictures.as_flattened();
    assert!(channels.iter().all(|&byte| (9..=191).contains(&byte)), "{channels:?}");
    let (least, most) = (channels.iter().min().expect("some"), channels.iter().max().expect("some"));
    assert!(*least < 70 && *most > 130, "{channels:?}");
    assert!(pictures.iter().any(|[r, g, b]| r.abs_diff(*g) > 10 || g.abs_diff(*b) > 10), "{pictures:?}");
}

#[test]
fn stickers_lie_elsewhere_in_every_episode_and_stay_there() {
    let sticky = plan("stickers:3");
    let mut world = Shifted::new(flat(continuous()), &sticky).expect("a picture");
    let covered = |world: &Shifted, step: u8| -> Vec<bool> {
        frame(world).chunks_exact(3).map(|pixel| pixel != [GREY + step, GREY, GREY]).collect()
    };
    let mut episodes = Vec::new();
    for seed in 1..=20 {
        world.reset(Some(seed));
        let first = covered(&world, 0);
        world.step(Action::Continuous(&[0.0, 0.0])).expect("a good action");
        assert_eq!(covered(&world, 1), first, "{seed}");
        episodes.push(first);
    }
    let share = |covered: &[bool]| covered.iter().filter(|&&is| is).count() as f64 / covered.len() as f64;
    let shares: Vec<f64> = episodes.iter().map(|episode| share(episode)).collect();
    // Four of at most 0.35 × 0.175 of the width.
    assert!(shares.iter().all(|&share| share < 4.0 * 0.35 * 0.175 * 1.5), "{shares:?}");
    assert!(shares.iter().sum::<f64>() / 20.0 > 0.03, "{shares:?}");
    assert!(episodes.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn the_expert_looks_where_things_stay() {
    let point = GazePoint { x: 0.25, y: 0.75, weight: 1.0 };
    for (text, looks) in [
        ("colors:3+noise:2+blur:1+bar:3+stickers:2", true),
        ("background-still:3+sticky:2+dropout:1", true),
        ("shake:1", false),
        ("colors:3+delay:1", false),
        ("drop:1", false),
        ("shuffle:5:patch=4", false),
        ("missing:1:patch=4", true),
    ] {
        let mut world = Shifted::new(flat(continuous()), &plan(text)).expect("a picture");
        world.reset(Some(1));
        let (mut points, mut costs) = (vec![], vec![]);
        match world.gaze(&mut points) {
            Ok(()) => assert!(looks && points == [point], "{text}: {points:?}"),
            Err(error) => {
                assert!(!looks && error == EnvError::NoGaze { env: "flat".into() }, "{text}: {error}");
            }
        }
        world.costs(&mut costs).expect("the world's own");
        assert_eq!(costs, [0.5; 6], "{text}");
    }
}

#[test]
fn things_are_where_they_were_put() {
    let lit = |text: &str| {
        let picture = &seen(text, 0)[0];
        let at: Vec<[usize; 2]> = (0..WIDTH * HEIGHT)
            .filter(|i| picture[i * 3..i * 3 + 3] == [255, 0, 0])
            .map(|i| [i % WIDTH, i / WIDTH])
            .collect();
        let range = |axis: usize| {
            let of = at.iter().map(|p| p[axis]);
            (of.clone().min().expect("some"), of.max().expect("some"))
        };
        (range(0), range(1), at.len())
    };
    let red = |text: &str| format!("{text}:color=#ff0000");
    assert_eq!(lit(&red("bar:3:x=0.5:width=0.1")), ((18, 21), (0, 19), 80));
    assert_eq!(lit(&red("bar:3:x=0:y=1:width=0.5:height=0.5")), ((0, 9), (15, 19), 50));
    let ((left, right), (top, bottom), area) = lit(&red("blob:3:x=0.5:y=0.5:size=0.4"));
    assert_eq!(((left, right), (top, bottom)), ((12, 27), (2, 17)));
    assert!((area as f64 - 201.0).abs() < 8.0, "π · 8², not {area}");
}

#[test]
fn pictures_come_late_or_never() {
    let red = |seen: &[Vec<u8>]| seen.iter().map(|picture| picture[0] - GREY).collect::<Vec<_>>();
    assert_eq!(red(&seen("delay:3", 9)), [0, 0, 0, 0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(red(&seen("delay:2@5", 8)), [0, 1, 2, 3, 4, 3, 4, 5, 6]);
    assert_eq!(red(&seen("delay:5", 12))[8..], [0, 1, 2, 3, 4]);
    let shown = red(&seen("drop:3", 100));
    let mut last = 0;
    let mut lost = 0;
    for (t, &now) in shown.iter().enumerate() {
        assert!(usize::from(now) == t || now == last, "the picture of this step or the last one that came");
        lost += usize::from(usize::from(now) != t);
        last = now;
    }
    assert!((25..=55).contains(&lost), "about 40 of 100, not {lost}");
    // Changed on the way: what arrived before is still known.
    let mut world = Shifted::new(flat(continuous()), &Plan::none()).expect("fine");
    world.reset(None);
    world.step(Action::Continuous(&[0.0, 0.0])).expect("fine");
    world.set_plan(&plan("delay:3")).expect("fine");
    for expect in [1, 1, 1, 1, 2] {
        assert_eq!(frame(&world)[0] - GREY, expect);
        world.step(Action::Continuous(&[0.0, 0.0])).expect("fine");
    }
}

#[test]
fn patches_are_lost_as_often_as_it_says() {
    let pictures = seen("dropout:4:patch=10:color=#000001", 99);
    // 10 pixels of 96 are 4 of 40: 10 x 5 patches.
    let patch = |i: usize| (i / 10 * 4 * WIDTH + i % 10 * 4) * 3;
    let lost = pictures.iter().map(|p| (0..50).filter(|&i| p[patch(i)..patch(i) + 3] == [0, 0, 1]).count());
    let share = lost.sum::<usize>() as f64 / 5000.0;
    assert!((share - 0.25).abs() < 0.03, "{share}");
}

#[test]
fn noise_has_the_spread_it_says() {
    let pictures = seen("noise:2", 0);
    let changes: Vec<f64> = pictures[0].iter().map(|&byte| f64::from(byte) - f64::from(GREY)).collect();
    let n = changes.len() as f64;
    let mean = changes.iter().sum::<f64>() / n;
    let std = (changes.iter().map(|x| x * x).sum::<f64>() / n).sqrt();
    assert!(mean.abs() < 1.5 && (std - 0.08 * 255.0).abs() < 1.5, "{mean} ± {std}");
}

#[test]
fn backgrounds_change_what_is_close_to_the_key() {
    for name in ["background-still", "background-noise", "background-video"] {
        let text = format!("bar:3:x=0.5:width=0.5:color=#ffffff+{name}:5");
        let picture = &seen(&text, 3)[3];
        for (i, pixel) in picture.chunks_exact(3).enumerate() {
            let bar = (10..30).contains(&(i % WIDTH));
            assert!(!bar || pixel == [255; 3], "{name}: what is before the background stays");
        }
        let colours: std::collections::BTreeSet<&[u8]> = picture.chunks_exact(3).collect();
        assert!(colours.len() > 100, "{name}: {}", colours.len());
    }
    let still = seen("background-still:5", 3);
    assert!(still.windows(2).all(|pair| pair[0] == pair[1]));
    for moving in ["background-noise:5", "background-video:5"] {
        assert!(seen(moving, 3).windows(2).all(|pair| pair[0] != pair[1]), "{moving}");
    }
}

#[test]
fn a_folder_becomes_the_background() {
    let mut film = plan("background-video:5:folder=film");
    let said = Shifted::new(flat(continuous()), &film).err().expect("not loaded").to_string();
    assert!(said.contains("\"film\""), "{said}");
    let folder = MissingPictures::Folder("film".into());
    assert_eq!(film.missing_pictures(), Some(folder.clone()));
    let picture = |rgb: [u8; 3]| ImageBuf::from_rgb(1, 1, rgb.to_vec()).expect("one pixel");
    film.set_pictures(&folder, &std::sync::Arc::new(vec![picture([1, 2, 3]), picture([4, 5, 6])]));
    assert_eq!(film.missing_pictures(), None);
    assert_eq!(film.to_string(), "background-video:5:folder=film");
    let mut world = Shifted::new(flat(continuous()), &film).expect("loaded");
    world.reset(None);
    assert_eq!(frame(&world)[..3], [1, 2, 3]);
    world.step(Action::Continuous(&[0.0, 0.0])).expect("fine");
    assert_eq!(frame(&world)[..3], [4, 5, 6]);
}

#[test]
fn actions_stick_and_shake() {
    let asked: Vec<[f64; 2]> = (0..400).map(|t| [(t % 7) as f64 / 10.0, (t % 5) as f64 / 5.0]).collect();
    let actions: Vec<Action<'_>> = asked.iter().map(|values| Action::Continuous(values)).collect();
    let stuck = done("sticky:3", continuous(), &actions);
    let mut last = [f64::NAN; 2];
    let mut repeats = 0;
    for (pair, asked) in stuck.chunks_exact(2).zip(&asked) {
        assert!(pair == asked || pair == last, "what was asked for or what was done before");
        repeats += usize::from(pair != asked);
        last = [pair[0], pair[1]];
    }
    assert!((120..=200).contains(&repeats), "about 160 of 400, not {repeats}");
    assert_eq!(done("sticky:3@400", continuous(), &actions), asked.concat());

    let shaken = done("unsteady:5", continuous(), &actions);
    assert!(shaken.chunks_exact(2).all(|p| (-1.0..=1.0).contains(&p[0]) && (0.0..=1.0).contains(&p[1])));
    let change: Vec<f64> = shaken.iter().zip(asked.concat()).map(|(a, b)| (a - b).abs()).collect();
    assert!(change.iter().filter(|&&x| x > 0.05).count() > 600, "most are off");
}

#[test]
fn choices_stick_and_shake() {
    let actions: Vec<Action<'_>> = (0..300).map(|t| Action::Discrete(t % 5)).collect();
    for (text, least, most) in [("sticky:3", 90, 150), ("unsteady:5", 115, 175)] {
        let done = done(text, ActionSpace::Discrete { n: 5 }, &actions);
        let other = done.iter().enumerate().filter(|(t, choice)| **choice != (t % 5) as f64).count();
        assert!((least..=most).contains(&other) && done.iter().all(|c| *c < 5.0), "{text}: {other}");
    }
}

#[test]
fn actions_that_do_not_fit_are_the_worlds_to_refuse() {
    let mut world = shifted("unsteady:5");
    world.reset(Some(1));
    for action in [Action::Continuous(&[0.0]), Action::Continuous(&[f64::NAN, 0.0, 0.0]), Action::Discrete(1)]
    {
        assert!(world.step(action).is_err(), "{action:?}");
    }
    assert_eq!(world.step_number(), 0);
}
