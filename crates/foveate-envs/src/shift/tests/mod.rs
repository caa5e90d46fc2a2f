//! What every operator must keep to; `effects` says what each one does.

mod effects;
mod senses;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, GazePoint, ImageBuf, Observation, ObservationSpace,
    Step,
};

use super::*;
use crate::car_racing;
use crate::registry::EnvRequest;

fn car(picture: &str) -> Box<dyn Env> {
    let request = EnvRequest { picture: Some(picture.into()), ..EnvRequest::default() };
    car_racing::DESCRIPTOR.build(&request).expect("a known world")
}

fn plan(text: &str) -> Plan {
    text.parse().expect(text)
}

fn shifted(text: &str) -> Shifted {
    Shifted::new(car("exact"), &plan(text)).expect("a picture to shift")
}

/// What an agent that turns and brakes at times sees: the reset and `steps` steps.
fn drive(world: &mut dyn Env, steps: usize) -> Vec<Vec<u8>> {
    let mut seen = vec![frame(world)];
    for t in 0..steps {
        let turn = if t % 40 < 20 { 0.3 } else { -0.2 };
        world.step(Action::Continuous(&[turn, 0.6, 0.0])).expect("a good action");
        seen.push(frame(world));
    }
    seen
}

fn frame(world: &dyn Env) -> Vec<u8> {
    let Some(image) = world.observation().picture() else { panic!("a picture") };
    image.rgb().to_vec()
}

/// Seed 3 and `steps` steps.
fn episode(world: &mut dyn Env, steps: usize) -> Vec<Vec<u8>> {
    world.reset(Some(3));
    drive(world, steps)
}

/// Every operator that fits a picture and needs no file.
fn all() -> impl Iterator<Item = &'static ShiftDescriptor> {
    SHIFTS.iter().filter(|info| {
        info.target != Target::Senses(Senses::Numbers)
            && info.knobs.iter().all(|knob| knob.kind != KnobKind::File)
    })
}

#[test]
fn severity_0_is_the_world_to_the_byte() {
    let expect = episode(&mut *car("exact"), 60);
    for info in all() {
        let shift = Shift::new(info.name, 0.0).expect("off");
        let mut world = Shifted::new(car("exact"), &Plan::new(vec![shift])).expect("a picture");
        assert!(episode(&mut world, 60) == expect, "{}", info.name);
    }
}

#[test]
fn more_severe_is_farther_away() {
    let expect = episode(&mut *car("exact"), 80);
    let distance = |seen: &[Vec<u8>]| {
        let pairs = seen.iter().zip(&expect).flat_map(|(a, b)| a.iter().zip(b));
        pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>()
    };
    for info in all().filter(|info| info.target == Target::Picture) {
        let mut last = 0;
        for severity in 1..=5 {
            let seen = episode(&mut shifted(&format!("{}:{severity}", info.name)), 80);
            let now = distance(&seen);
            assert!(now > last, "{}:{severity} {now} after {last}", info.name);
            last = now;
        }
    }
    for info in SHIFTS.iter() {
        assert!(info.amounts[0] > 0.0 && info.amounts.is_sorted_by(|a, b| a < b), "{}", info.name);
        assert_eq!([0.0, 1.0, 5.0].map(|s| info.amount(s)), [0.0, info.amounts[0], info.amounts[4]]);
        assert_eq!(info.amount(2.5), f64::midpoint(info.amounts[1], info.amounts[2]), "{}", info.name);
    }
}

#[test]
fn before_its_step_nothing_happens_and_after_it_all_is_over() {
    let expect = episode(&mut *car("exact"), 60);
    for info in all() {
        let seen = episode(&mut shifted(&format!("{}:5@30", info.name)), 60);
        assert!(seen[..30] == expect[..30], "{}", info.name);
        assert!(seen[30..] != expect[30..], "{}", info.name);
        if info.target != Target::Action {
            let seen = episode(&mut shifted(&format!("{}:5@20-30", info.name)), 60);
            assert!(seen[..20] == expect[..20] && seen[30..] == expect[30..], "{}", info.name);
        }
    }
}

#[test]
fn an_episode_depends_on_its_seed_alone() {
    for info in all() {
        let text = format!("{}:4", info.name);
        let mut fresh = shifted(&text);
        fresh.reset(Some(3));
        drive(&mut fresh, 7);
        fresh.reset(None);
        let expect = drive(&mut fresh, 25);
        // The same episode in a world that did other things before, and in copies from before and from its middle.
        let mut used = shifted(&text);
        used.reset(Some(9));
        drive(&mut used, 50);
        used.reset(Some(3));
        used.reset(None);
        let mut copy = used.boxed_clone();
        assert!(drive(&mut used, 25) == expect, "{text}");
        let first = drive(&mut *copy, 10);
        let mut middle = copy.boxed_clone();
        let (rest, again) = (drive(&mut *copy, 10), drive(&mut *middle, 10));
        assert!(first == expect[..=10] && rest == again, "{text}");
    }
}

#[test]
fn shifts_compose_in_their_order_and_keep_their_dice() {
    let both = episode(&mut shifted("noise:2+bar:3"), 5);
    let noise = episode(&mut shifted("noise:2"), 5);
    let bar = episode(&mut shifted("bar:3+noise:2"), 5);
    assert!(both != noise && both != bar, "a bar over noise, noise over a bar");
    let same = both.iter().flatten().zip(noise.iter().flatten()).filter(|(a, b)| a == b).count();
    assert!(same > both.len() * both[0].len() * 8 / 10, "beside the bar the noise is the same");
    let twice = episode(&mut shifted("noise:2+noise:2"), 5);
    assert!(twice != noise, "two of a kind have dice of their own");
}

#[test]
fn plans_change_while_it_drives() {
    let mut world = shifted("");
    let plain = episode(&mut *car("exact"), 12);
    world.reset(Some(3));
    drive(&mut world, 6);
    world.set_plan(&plan("blob:4")).expect("a picture");
    let seen = frame(&world);
    assert!(seen != plain[6], "the observation of this very step is drawn anew");
    world.set_plan(&plan("blob:4:x=0.2")).expect("a picture");
    assert!(frame(&world) != seen);
    world.set_plan(&plan("blob:4")).expect("a picture");
    assert!(frame(&world) == seen, "looking again at the same step shows the same");
    world.set_plan(&Plan::none()).expect("nothing");
    assert!(frame(&world) == plain[6]);
    assert_eq!(world.step_number(), 6);
}

#[test]
fn texts_come_back() {
    for (text, written) in [
        ("", ""),
        ("brightness", "brightness:3"),
        (" hue : 2 + noise:4 @ 200 ", "hue:2+noise:4@200"),
        ("noise:2.5@200-400", "noise:2.5@200-400"),
        ("blob:3:x=0.4:y=0.40:color=CC0001", "blob:3:x=0.4:color=#cc0001"),
        ("bar:width=0.1:height=1", "bar:3:width=0.1"),
        ("bar:5:width=auto", "bar:5"),
    ] {
        assert_eq!(plan(text).to_string(), written);
        assert_eq!(plan(written), plan(text));
    }
    assert_eq!(Plan::parse_all(&["hue:1", "blob:2+bar:3"]).expect("good").list().len(), 3);
}

#[test]
fn bad_texts_say_what_is_wrong_and_what_there_is() {
    for (text, wants) in [
        ("fog", &["no shift \"fog\"", "brightness, darkness"][..]),
        ("fog:3", &["no shift \"fog\""]),
        ("noise:0", &["shift noise", "severity \"0\"", "from 1 to 5"]),
        ("noise:6", &["severity \"6\""]),
        ("noise:NaN", &["severity \"NaN\""]),
        ("noise:-1", &["severity \"-1\""]),
        ("noise:", &["severity \"\""]),
        ("noise:much", &["severity \"much\""]),
        ("noise:3:x=1", &["no parameter \"x\"", "none"]),
        ("blob:3:q=1", &["no parameter \"q\"", "x, y, size, color"]),
        ("blob:3:x=2", &["x = \"2\"", "from 0 to 1"]),
        ("blob:3:x=nan", &["x = \"nan\""]),
        ("blob:3:color=red", &["color = \"red\"", "#cc0000"]),
        ("blob:3:4", &["\"4\" is no parameter", "key=value"]),
        ("noise:3@", &["@ names no steps", "noise@200-400"]),
        ("noise:3@400-200", &["@400-200 names no steps"]),
        ("noise:3@-1", &["@-1 names no steps"]),
        ("noise:3@1.5", &["@1.5 names no steps"]),
        ("noise:3+", &["a name is missing"]),
        ("+noise:3", &["a name is missing"]),
        (":3", &["a name is missing"]),
    ] {
        let said = text.parse::<Plan>().expect_err(text).to_string();
        for want in wants {
            assert!(said.contains(want), "{text}: {said}");
        }
        assert_eq!(said.lines().count(), 1);
    }
    for severity in [-0.1, 5.1, f64::NAN] {
        assert!(Shift::new("hue", severity).is_err());
    }
}

/// A world of numbers.
#[derive(Clone)]
struct Numbers(EnvSpec);

impl Env for Numbers {
    fn spec(&self) -> &EnvSpec {
        &self.0
    }
    fn reset(&mut self, _: Option<u64>) {}
    fn step(&mut self, _: Action<'_>) -> Result<Step, EnvError> {
        Ok(Step::default())
    }
    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&[0.0])
    }
    fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
        Ok(())
    }
    fn state(&self) -> Fact {
        Fact::Count(0)
    }
    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

#[test]
fn a_world_without_a_picture_says_so() {
    let world = || {
        Box::new(Numbers(EnvSpec {
            id: "numbers".into(),
            observation: ObservationSpace::Vector { len: 1 },
            action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
            max_steps: None,
            fps: 1.0,
        }))
    };
    let said = Shifted::new(world(), &plan("hue:1")).err().expect("no picture").to_string();
    assert!(
        said.contains("numbers, not a picture; choose one that fits: sticky, unsteady, shuffle"),
        "{said}"
    );
    assert!(Shifted::new(world(), &Plan::none()).is_ok());
}

#[test]
fn the_documentation_has_the_same_table() {
    let page = include_str!("../../../../../docs/stress.md");
    for info in SHIFTS.iter() {
        let amounts = info.amounts.map(|amount| amount.to_string()).join(" | ");
        let knobs: Vec<String> = info.knobs.iter().map(|knob| format!("`{}`", knob.name)).collect();
        let knobs = if knobs.is_empty() { "–".into() } else { knobs.join(", ") };
        let line = format!("| `{}` | {} | {} | {amounts} | {knobs} |", info.name, info.about, info.unit);
        assert!(page.lines().any(|l| l == line), "docs/stress.md lacks\n{line}");
    }
}
