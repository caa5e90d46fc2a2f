//! Tests wrappers on native worlds, and compares resizing with the real Pillow and `OpenCV`.

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, GazePoint, Image, ImageBuf, Observation,
    ObservationSpace, PixelShape, Step,
};
use foveate_envs::car_racing;
use foveate_envs::registry::EnvRequest;
use foveate_envs::wrap::{Area, Bilinear, Grey, Wrapped};
use foveate_toy::oracle::Oracle;

#[test]
fn resizing_is_pillows_and_opencvs_to_the_byte() {
    let Some(mut oracle) = Oracle::start("oracle/resize.py") else { return };
    let mut areas = 0;
    for _ in 0..oracle.count() {
        let [w, h, to_w, to_h] = [(); 4].map(|()| oracle.count());
        let mut bytes = |len| {
            let mut bytes = vec![0; len];
            oracle.raw(&mut bytes);
            bytes
        };
        let (rgb, bilinear) = (bytes(w * h * 3), bytes(to_w * to_h * 3));
        let greys = [(Grey::Pillow, bytes(w * h)), (Grey::OpenCv, bytes(w * h))];
        let place = format!("{w}x{h} to {to_w}x{to_h}");
        let mut out = vec![0; to_w * to_h * 3];
        Bilinear::new((w, h), (to_w, to_h)).apply(&rgb, &mut out);
        assert!(out == bilinear, "bilinear, {place}");
        for (formula, grey) in greys {
            let mut plain = rgb.clone();
            formula.apply(&mut plain);
            assert!(plain.chunks(3).zip(&grey).all(|(pixel, &b)| pixel == [b; 3]), "{formula:?}, {place}");
        }
        if oracle.flag() {
            let mut expect = out.clone();
            oracle.raw(&mut expect);
            Area::new((w, h), (to_w, to_h)).expect("it shrinks").apply(&rgb, &mut out);
            let differ = out.iter().zip(&expect).filter(|(a, b)| a != b).count();
            assert_eq!(differ, 0, "area, {place}: of {} bytes", out.len());
            areas += 1;
        }
    }
    assert!(areas > 10);
}

/// A world that shows its step number as a shade and as a number, and returns it as the reward; it ends after
/// 50 steps and loses a life at 13 and at 31.
#[derive(Clone)]
struct Counter {
    spec: EnvSpec,
    rgb: Vec<u8>,
    number: [f32; 1],
    t: u64,
    did: Vec<f64>,
}

impl Counter {
    fn boxed(picture: bool, choices: bool) -> Box<dyn Env> {
        let observation =
            if picture { ObservationSpace::rgb(4, 2) } else { ObservationSpace::Vector { len: 1 } };
        let action = if choices {
            ActionSpace::Discrete { n: 3 }
        } else {
            ActionSpace::Box { low: vec![-1.0], high: vec![1.0] }
        };
        let spec = EnvSpec { id: "counter".into(), observation, action, max_steps: Some(50), fps: 20.0 };
        Box::new(Counter { spec, rgb: vec![0; 24], number: [0.0], t: 0, did: vec![] })
    }

    fn shade(t: u64) -> u8 {
        // Odd steps are brighter, like a flickering light.
        (t % 2 * 100 + t) as u8
    }
}

impl Env for Counter {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _: Option<u64>) {
        self.t = 0;
        self.did.clear();
        self.rgb.fill(Counter::shade(0));
        self.number = [0.0];
    }
    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.t += 1;
        self.did.push(match action {
            Action::Continuous(values) => values[0],
            Action::Discrete(choice) => choice as f64,
        });
        self.rgb.fill(Counter::shade(self.t));
        self.number = [self.t as f32];
        Ok(Step { reward: self.t as f64, terminated: false, truncated: self.t >= 50 })
    }
    fn observation(&self) -> Observation<'_> {
        match self.spec.observation.picture() {
            Some((width, height)) => Observation::rgb(Image::new(width, height, &self.rgb).expect("4 x 2")),
            None => Observation::Vector(&self.number),
        }
    }
    fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
        Err(EnvError::NoView { env: "counter".into(), why: "a test".into() })
    }
    fn state(&self) -> Fact {
        let lives = 3 - u64::from(self.t >= 13) - u64::from(self.t >= 31);
        let did = self.did.iter().map(|&x| Fact::Number(x)).collect();
        Fact::Group(vec![("lives", Fact::Count(lives)), ("did", Fact::List(did))])
    }
    /// The choice of the step's number, in turn.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        self.spec.action.check_len("counter", action.len())?;
        action.fill(0.25);
        action[self.t as usize % 3] = 1.0;
        Ok(())
    }
    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        *costs = vec![0.5, 0.75, 1.0];
        Ok(())
    }
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        *points = [0.0, 0.25, 0.5, 0.75, 1.0].map(|y| GazePoint { x: 0.5, y, weight: 1.0 }).to_vec();
        Ok(())
    }
    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

fn wrap(text: &str, picture: bool, choices: bool) -> Wrapped {
    let wrappers = text.parse().expect("good wrappers");
    Wrapped::new(Counter::boxed(picture, choices), wrappers).expect("they fit")
}

/// The actions that the world received so far.
fn did(env: &dyn Env) -> Vec<f64> {
    let Fact::Group(facts) = env.state() else { panic!("facts") };
    let Fact::List(did) = &facts[1].1 else { panic!("a list") };
    did.iter().map(|fact| if let Fact::Number(x) = fact { *x } else { panic!("a number") }).collect()
}

/// The first byte of each row of the picture.
fn rows(env: &dyn Env) -> Vec<u8> {
    let image = env.observation().picture().expect("a picture");
    (0..image.height()).map(|y| image.pixel(0, y)[0]).collect()
}

#[test]
fn repeats_add_up_and_end_when_the_world_does() {
    let mut env = wrap("repeat:4", false, false);
    assert_eq!((env.spec().max_steps, env.spec().fps), (Some(13), 5.0));
    env.reset(Some(1));
    let mut all = vec![];
    while all.last().is_none_or(|step: &Step| !step.is_over()) {
        all.push(env.step(Action::Continuous(&[0.5])).expect("fine"));
    }
    assert_eq!((all.len(), all[0].reward, all[12].reward), (13, 10.0, 99.0));
    assert!(all[12].truncated && !all[12].terminated);
    assert_eq!(env.observation(), Observation::Vector(&[50.0]), "the final observation is the last step's");
    assert!(env.step(Action::Continuous(&[0.5])).expect_err("over").to_string().contains("call reset"));
}

#[test]
fn the_larger_of_two_pictures_has_no_flicker() {
    let mut env = wrap("repeat:4+max", true, true);
    env.reset(Some(1));
    assert_eq!(rows(&env)[0], 0);
    for step in 1..=12_u64 {
        env.step(Action::Discrete(1)).expect("fine");
        let last = 4 * step;
        let expect = Counter::shade(last).max(Counter::shade(last - 1));
        assert_eq!(rows(&env)[0], expect, "step {step}");
    }
}

#[test]
fn pictures_and_numbers_are_stacked_oldest_first() {
    let mut env = wrap("stack:3", true, false);
    let shape = PixelShape { frames: 3, ..PixelShape::rgb(4, 2) };
    assert_eq!(env.spec().observation, ObservationSpace::Image(shape));
    assert_eq!(env.spec().observation.picture(), Some((4, 6)), "one below the other");
    env.reset(Some(1));
    assert_eq!(rows(&env), [0; 6]);
    env.step(Action::Continuous(&[0.0])).expect("fine");
    assert_eq!(rows(&env), [0, 0, 0, 0, 101, 101]);
    env.step(Action::Continuous(&[0.0])).expect("fine");
    let copy = env.boxed_clone();
    assert_eq!(rows(&env), [0, 0, 101, 101, 2, 2]);
    env.step(Action::Continuous(&[0.0])).expect("fine");
    assert_eq!(rows(&env), [101, 101, 2, 2, 103, 103]);
    assert_eq!(rows(&*copy), [0, 0, 101, 101, 2, 2]);

    let mut env = wrap("stack:colors", true, false);
    env.reset(Some(1));
    for _ in 0..3 {
        env.step(Action::Continuous(&[0.0])).expect("fine");
    }
    assert_eq!(env.observation().picture().expect("a picture").pixel(1, 1), [101, 2, 103]);

    let mut env = wrap("stack:3", false, false);
    assert_eq!(env.spec().observation, ObservationSpace::Vector { len: 3 });
    env.reset(Some(1));
    env.step(Action::Continuous(&[0.0])).expect("fine");
    env.step(Action::Continuous(&[0.0])).expect("fine");
    assert_eq!(env.observation(), Observation::Vector(&[0.0, 1.0, 2.0]));
}

#[test]
fn rows_of_every_picture_become_black() {
    // Pictures of 4 x 2 are enlarged to four rows first.
    let mut env = wrap("stack:2+blank:top=1+blank:bottom=2+resize:4x4", true, false);
    env.reset(Some(1));
    env.step(Action::Continuous(&[0.0])).expect("fine");
    env.step(Action::Continuous(&[0.0])).expect("fine");
    assert_eq!(rows(&env), [0, 101, 0, 0, 0, 2, 0, 0]);
    let mut env = wrap("stack:colors+blank:bottom=1", true, false);
    env.reset(Some(1));
    env.step(Action::Continuous(&[0.0])).expect("fine");
    let image = env.observation();
    let image = image.picture().expect("a picture");
    assert_eq!((image.pixel(0, 0), image.pixel(3, 1)), ([0, 0, 101], [0; 3]));
    let mut env = wrap("blank:top=2", true, false);
    env.reset(Some(1));
    env.step(Action::Continuous(&[0.0])).expect("fine");
    assert_eq!(rows(&env), [0, 0], "all of it");
}

#[test]
fn a_background_becomes_black_and_the_rest_its_distance_from_it() {
    // Pictures of shades 101 and 2.
    let mut env = wrap("stack:2+subtract:101", true, false);
    env.reset(Some(1));
    env.step(Action::Continuous(&[0.0])).expect("fine");
    env.step(Action::Continuous(&[0.0])).expect("fine");
    assert_eq!(rows(&env), [0, 0, 99, 99]);
    let mut env = wrap("stack:2+subtract:101+blank:bottom=1", true, false);
    env.reset(Some(1));
    env.step(Action::Continuous(&[0.0])).expect("fine");
    env.step(Action::Continuous(&[0.0])).expect("fine");
    assert_eq!(rows(&env), [0, 0, 99, 0], "rows are made black afterwards");
}

#[test]
fn the_expert_looks_at_what_is_shown() {
    let looks = |text: &str| {
        let (mut world, mut points, mut costs) = (wrap(text, true, true), vec![], vec![]);
        world.reset(Some(1));
        world.costs(&mut costs).expect("the world's own");
        assert_eq!(costs, [0.5, 0.75, 1.0], "{text}");
        world.gaze(&mut points).map(|()| points.iter().map(|point| point.y).collect::<Vec<_>>())
    };
    assert_eq!(looks("repeat:4"), Ok(vec![0.0, 0.25, 0.5, 0.75, 1.0]));
    assert_eq!(looks("grey+resize:16x16"), Ok(vec![0.0, 0.25, 0.5, 0.75, 1.0]));
    assert_eq!(looks("resize:16x16+blank:bottom=4"), Ok(vec![0.0, 0.25, 0.5]));
    assert_eq!(looks("resize:16x16+blank:bottom=4+blank:top=8"), Ok(vec![0.5]));
    assert_eq!(looks("stack:2"), Err(EnvError::NoGaze { env: "counter".into() }));
}

#[test]
fn chance_comes_from_the_seed() {
    let play = |text: &str, seed: u64| {
        let mut env = wrap(text, true, true);
        env.reset(Some(seed));
        for t in 0..20 {
            env.step(Action::Discrete(1 + t % 2)).expect("fine");
        }
        did(&env)
    };
    let sticky = play("sticky:0.5", 1);
    assert_eq!(sticky, play("sticky:0.5", 1));
    assert_ne!(sticky, play("sticky:0.5", 2));
    let asked: Vec<f64> = (0..20).map(|t| f64::from(1 + t % 2)).collect();
    let kept = sticky.iter().zip(&asked).filter(|(a, b)| a == b).count();
    assert!((5..=17).contains(&kept), "{sticky:?}");
    assert_eq!(play("sticky:0", 1), asked);
    let waits = |seed| play("noop:6", seed).iter().take_while(|&&x| x == 0.0).count();
    let all: Vec<usize> = (0..40).map(waits).collect();
    assert_eq!((all.iter().min(), all.iter().max()), (Some(&1), Some(&6)), "{all:?}");
}

#[test]
fn rewards_lives_and_limits() {
    let mut env = wrap("clip+limit:7", false, true);
    assert_eq!(env.spec().max_steps, Some(7));
    env.reset(None);
    for t in 1..=7 {
        let step = env.step(Action::Discrete(0)).expect("fine");
        assert_eq!(step, Step { reward: 1.0, terminated: false, truncated: t == 7 });
    }
    let mut env = wrap("lives+repeat:5", false, true);
    env.reset(None);
    let over: Vec<bool> = (0..3).map(|_| env.step(Action::Discrete(0)).expect("fine").terminated).collect();
    assert_eq!(over, [false, false, true], "a life is lost in step 13, within the third action");
}

#[test]
fn the_agent_has_some_of_the_worlds_choices() {
    let mut env = wrap("choices:0:2+repeat:2+noop:3", false, true);
    assert_eq!(env.spec().action, ActionSpace::Discrete { n: 2 });
    env.reset(Some(1));
    let before = did(&env).len();
    for choice in [1, 0, 1] {
        env.step(Action::Discrete(choice)).expect("it has it");
    }
    assert_eq!(did(&env)[before..], [2.0, 2.0, 0.0, 0.0, 2.0, 2.0]);
    assert!(
        did(&env)[..before].iter().all(|&choice| choice == 0.0),
        "what the wrapper does is the world's own"
    );
    let said = env.step(Action::Discrete(2)).expect_err("it has two").to_string();
    assert!(said.contains("a choice from 0 to 1"), "{said}");
    let mut copy = env.boxed_clone();
    copy.step(Action::Discrete(1)).expect("so does a copy");
    let mut costs = vec![];
    env.costs(&mut costs).expect("the world has them");
    assert_eq!(costs, [0.5, 1.0]);
    // The expert's choice is 0, 1 and 2 in turn.
    let mut env = wrap("choices:0:2", false, true);
    env.reset(None);
    let asked = |env: &mut Wrapped| {
        let mut action = [9.0; 2];
        env.expert(&mut action).map(|()| action)
    };
    assert_eq!(asked(&mut env), Ok([1.0, 0.25]));
    env.step(Action::Discrete(0)).expect("fine");
    let said = asked(&mut env).expect_err("it chooses 1").to_string();
    assert!(said.contains("the wrapper choices leaves out its expert's choice 1"), "{said}");
    env.step(Action::Discrete(0)).expect("fine");
    assert_eq!(asked(&mut env), Ok([0.25, 1.0]));
    let said = env.expert(&mut [0.0; 3]).expect_err("two are due").to_string();
    assert!(said.contains('2') && said.contains('3'), "{said}");
}

#[test]
fn wrappers_that_do_not_fit_say_so() {
    let said = |text: &str, picture| {
        let wrappers = text.parse().expect("good wrappers");
        Wrapped::new(Counter::boxed(picture, true), wrappers).err().expect("it must fail").to_string()
    };
    assert!(said("grey", false).contains("it shows 1 numbers; only repeat, stack"));
    assert!(
        said("choices:0:3", false)
            .contains("it takes a choice from 0 to 2; the wrapper choices names [0, 3]")
    );
    let numbers = Wrapped::new(Counter::boxed(false, false), "choices:0".parse().expect("good wrappers"));
    let said_of_numbers = numbers.err().expect("it must fail").to_string();
    assert!(said_of_numbers.contains("the wrapper choices names [0]"), "{said_of_numbers}");
    assert!(said("blank:top=1", false).contains("it shows 1 numbers"));
    assert!(said("blank:top=2+blank:bottom=1", true).contains("has 2 rows, so 3 cannot be made black"));
    assert!(said("resize:8x8:area", true).contains("makes 4x2 larger; leave out `:area`"));
}

#[test]
fn any_world_with_a_picture_can_be_wrapped() {
    let world = || car_racing::DESCRIPTOR.build(&EnvRequest::default()).expect("it exists");
    let wrappers = "grey+resize:64x64+stack:4".parse().expect("fine");
    let mut env = Wrapped::new(world(), wrappers).expect("they fit");
    // A third of the bytes of the same images in colour.
    let shape = PixelShape { frames: 4, height: 64, width: 64, channels: 1 };
    assert_eq!(env.spec().observation, ObservationSpace::Image(shape));
    let mut plain = world();
    env.reset(Some(3));
    plain.reset(Some(3));
    let mut tall = vec![];
    for step in 0..6 {
        let action = Action::Continuous(&[0.1, 0.5, 0.0]);
        assert_eq!(env.step(action).expect("fine"), plain.step(action).expect("fine"));
        let mut rgb = plain.observation().picture().expect("a picture").rgb().to_vec();
        Grey::Pillow.apply(&mut rgb);
        let mut small = vec![0; 64 * 64 * 3];
        Bilinear::new((96, 96), (64, 64)).apply(&rgb, &mut small);
        tall.extend(small);
        let pixels = env.observation().image().expect("pictures");
        assert_eq!(pixels.shape(), shape);
        if step >= 3 {
            // As an agent for RGB images receives them: the last four frames, one below the other.
            let mut scratch = vec![];
            let seen = pixels.to_rgb(&mut scratch);
            assert_eq!((seen.width(), seen.height()), (64, 256));
            assert!(seen.rgb() == &tall[tall.len() - 4 * 64 * 64 * 3..], "step {step}");
        }
    }
}
