//! Sessions without sockets.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use foveate_agents::registry::{Init, initial_params};
use foveate_core::{ActMode, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_envs::shift;
use serde_json::{Value, json};

use crate::{LabSetup, lab_setup};
use foveate_run::evaluate::{EvalRequest, Labels, Seeds, run};
use foveate_run::weights::AgentFile;
use foveate_run::workers::Stop;
use foveate_run::worlds;
use foveate_web::{Session, protocol, run_length};

static SETUP: LazyLock<Arc<LabSetup>> = LazyLock::new(|| {
    let options = [("max_steps".to_owned(), "120".to_owned())].into();
    let world = EnvRequest {
        id: "car-racing".into(),
        picture: Some("fast".into()),
        options,
        ..EnvRequest::default()
    };
    Arc::new(lab_setup(world, vec![]).expect("the champion drives"))
});

const TICK: Duration = Duration::from_millis(20);

struct Page {
    session: Session,
}

impl Page {
    fn new() -> Self {
        Page::of(&SETUP)
    }

    fn of(setup: &Arc<LabSetup>) -> Self {
        let mut session = Session::new(Arc::clone(setup)).expect("a session");
        session.take_messages();
        // A small view is drawn quickly.
        session.handle(r#"{"type":"view","width":96,"height":96}"#);
        Page { session }
    }

    /// Sends a command that must be taken; gives what is said to it.
    #[track_caller]
    fn send(&mut self, command: &Value) -> Vec<Value> {
        self.session.handle(&command.to_string());
        let said: Vec<Value> = self
            .session
            .take_messages()
            .iter()
            .map(|text| serde_json::from_str(text).expect("JSON"))
            .collect();
        assert!(said.iter().all(|word| word.get("error").is_none()), "{command}: {said:?}");
        said
    }

    /// Sends a command that must be refused for a reason that contains `wants`, and change nothing.
    #[track_caller]
    fn refused(&mut self, command: &Value, wants: &str) {
        let before = (self.session.settings().clone(), self.frame());
        self.session.handle(&command.to_string());
        let said = self.session.take_messages().concat();
        assert!(said.contains("\"error\"") && said.contains(wants), "{command}: {said}");
        assert!((self.session.settings().clone(), self.frame()) == before, "{command} changed something");
    }

    /// The present frame without its number.
    fn frame(&mut self) -> Vec<u8> {
        self.session.frame().split_off(6)
    }

    /// Lets `ticks` of 20 ms pass; returns the frame after them.
    fn pass(&mut self, ticks: usize) -> Vec<u8> {
        for _ in 0..ticks {
            self.session.advance(TICK, &mut || false);
        }
        self.frame()
    }

    /// To the end of the episode; its steps and score.
    fn drive(&mut self) -> (u32, f64) {
        for _ in 0..1000 {
            self.session.advance(TICK, &mut || false);
            self.frame();
            let (steps, score, over) = self.session.scores()[0];
            if over {
                return (steps, score);
            }
        }
        panic!("no end");
    }
}

/// Steps and score of the frame's first runner.
fn score(frame: &[u8]) -> (u32, f64) {
    let number = |at: usize, n: usize| frame[at..at + n].to_vec();
    let steps = u32::from_le_bytes(number(1, 4).try_into().expect("four bytes"));
    (steps, f64::from_le_bytes(number(5, 8).try_into().expect("eight bytes")))
}

#[test]
fn undisturbed_it_is_the_evaluation() {
    let env = foveate_registry::make(&SETUP.world).expect("a world");
    for (seed, player) in [(1, 0), (7, 0), (7, 1)] {
        let agent = (SETUP.agents[player].make)().expect("an agent");
        let request = EvalRequest {
            env: &*env,
            agent: &*agent,
            labels: Labels::default(),
            seeds: Seeds::Each(seed..seed + 1),
            workers: 1,
            max_steps: None,
            mode: ActMode::Greedy,
            reference: None,
        };
        let report = run(&request, &Stop::default()).expect("it drives");
        let expect = (report.lengths[0] as u32, report.returns[0]);
        for speed in [1.0, 16.0, 0.0] {
            let mut page = Page::new();
            page.send(
                &json!({ "type": "set", "seed": seed, "speed": speed, "runners": [{ "agent": player }] }),
            );
            assert_eq!(page.drive(), expect, "seed {seed}, speed {speed}");
        }
        // Looking at it, pausing it and stepping through it change nothing.
        let mut page = Page::new();
        page.send(&json!({ "type": "set", "seed": seed, "paused": true, "runners": [{ "agent": player }] }));
        for _ in 0..50 {
            page.send(&json!({ "type": "step" }));
            page.frame();
            page.pass(3);
        }
        page.send(&json!({ "type": "set", "paused": false }));
        assert_eq!(page.drive(), expect, "seed {seed}, step by step");
        // Nor does what was on and is off again before the next step.
        let mut page = Page::new();
        page.send(&json!({ "type": "set", "seed": seed, "paused": true, "runners": [{ "agent": player }] }));
        for _ in 0..20 {
            page.frame();
            page.send(
                &json!({ "type": "set", "shifts": ["darkness:5"], "runners": [{ "agent": player, "k": 1 }] }),
            );
            page.frame();
            page.send(&json!({ "type": "set", "shifts": [], "runners": [{ "agent": player }] }));
            page.frame();
            page.send(&json!({ "type": "step" }));
        }
        page.send(&json!({ "type": "set", "paused": false }));
        assert_eq!(page.drive(), expect, "seed {seed}, looked at in other ways");
    }
}

#[test]
fn every_shift_shows_at_once_and_changes_the_drive() {
    for info in shift::SHIFTS.iter() {
        if info.knobs.iter().any(|knob| matches!(knob.kind, shift::KnobKind::Folder | shift::KnobKind::File))
            || info.target == shift::Target::Senses(shift::Senses::Numbers)
        {
            continue;
        }
        let (mut plain, mut shifted) = (Page::new(), Page::new());
        for page in [&mut plain, &mut shifted] {
            page.pass(5);
            page.send(&json!({ "type": "set", "paused": true }));
        }
        let before = plain.frame();
        shifted.send(&json!({ "type": "set", "shifts": [format!("{}:5", info.name)] }));
        let seen = shifted.frame();
        if info.target == shift::Target::Picture
            && !["delay", "drop", "freeze"].iter().any(|n| info.name.contains(n))
        {
            let picture =
                |frame: &[u8]| frame[after_picture(frame) - 96 * 96 * 3..after_picture(frame)].to_vec();
            assert!(picture(&seen) != picture(&before), "{} does not show", info.name);
        }
        for page in [&mut plain, &mut shifted] {
            page.send(&json!({ "type": "set", "paused": false }));
        }
        assert!(plain.pass(100) != shifted.pass(100), "{} changes nothing", info.name);
    }
}

#[test]
fn the_senses_are_shuffled_while_it_drives() {
    let mut page = Page::new();
    page.pass(5);
    page.send(&json!({ "type": "set", "paused": true }));
    let plain = page.frame();
    page.send(&json!({ "type": "shuffle" }));
    assert_eq!(page.session.settings().shifts, ["shuffle:5"], "the first one turns it on");
    let first = page.frame();
    page.send(&json!({ "type": "shuffle" }));
    assert_eq!(page.session.settings().shifts, ["shuffle:5"]);
    let second = page.frame();
    assert!(plain != first && first != second && plain != second);
    page.send(&json!({ "type": "set", "shifts": [] }));
    assert!(page.frame() == plain, "and everything is back in its place");
}

#[test]
fn fewer_patches_are_another_drive_and_all_of_them_the_same() {
    let mut page = Page::new();
    page.send(&json!({ "type": "set", "seed": 3 }));
    let whole = page.drive();
    let with = |k: Value| {
        let mut page = Page::new();
        page.send(&json!({ "type": "set", "seed": 3, "runners": [{ "agent": 0, "k": k }] }));
        let frame = page.frame();
        let attention_at = after_picture(&frame);
        let k = u16::from_le_bytes([frame[attention_at + 8], frame[attention_at + 9]]);
        (k, page.drive())
    };
    assert_eq!(with(json!(10)), (10, whole));
    for k in [json!(0), json!(11), json!(u64::MAX)] {
        let mut page = Page::new();
        let before = page.frame();
        let set = json!({ "type": "set", "seed": 9, "runners": [{ "agent": 0, "k": k }] });
        page.refused(&set, "takes 1 to 10");
        assert!(page.frame() == before, "{k} changes nothing");
    }
    let (k, few) = with(json!(2));
    assert_eq!(k, 2);
    assert_ne!(few, whole);
}

#[test]
fn two_agents_share_the_track_and_nothing_else() {
    let mut alone = Page::new();
    alone.send(&json!({ "type": "set", "seed": 5 }));
    let whole = alone.drive();
    let mut both = Page::new();
    both.send(&json!({ "type": "set", "seed": 5, "runners": [{ "agent": 0 }, { "agent": 1 }] }));
    for _ in 0..200 {
        both.pass(1);
    }
    let scores = both.session.scores();
    assert_eq!(scores.len(), 2);
    assert_eq!((scores[0].0, scores[0].1), whole);
    assert_ne!(scores[0].1, scores[1].1);
    // The same agent twice drives the same.
    let mut twins = Page::new();
    twins.send(&json!({ "type": "set", "seed": 5, "runners": [{ "agent": 0 }, { "agent": 0 }] }));
    twins.pass(60);
    let scores = twins.session.scores();
    assert_eq!(scores[0], scores[1]);
}

#[test]
fn a_hand_on_the_wheel() {
    let mut page = Page::new();
    page.pass(10);
    page.send(&json!({ "type": "drive", "runner": 0, "action": [9, -9, 1e300] }));
    let frame = page.pass(1);
    assert_eq!(frame[0] & 8, 8, "a person drives");
    let action: Vec<f32> =
        frame[14..26].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four"))).collect();
    assert_eq!(action, [1.0, 0.0, 1.0], "within bounds");
    page.send(&json!({ "type": "release" }));
    assert_eq!(page.pass(1)[0] & 8, 0);
    page.refused(&json!({ "type": "drive", "runner": 0, "action": [0.0] }), "3 finite ones are needed");
    page.refused(&json!({ "type": "drive", "runner": 1, "action": [0, 0, 0] }), "there is no runner 1");
}

#[test]
fn a_hand_stays_on_the_wheel_of_its_own_world() {
    let mut page = Page::new();
    page.pass(10);
    page.send(&json!({ "type": "drive", "runner": 0, "action": [0.5, 1, 0] }));
    let anew = |said: Vec<Value>| said.last().expect("the state is told")["rebuilt"].clone();
    // The same track again, and another one: it is still the person who drives.
    for command in [json!({ "type": "restart" }), json!({ "type": "set", "seed": 12 })] {
        assert_eq!(anew(page.send(&command)), false, "{command}");
        assert_eq!(page.pass(1)[0] & 8, 8, "{command}");
    }
    // A new car has a wheel of its own, and the page is told that nobody holds it.
    assert_eq!(anew(page.send(&json!({ "type": "set", "runners": [{ "agent": 1 }] }))), true);
    assert_eq!(page.pass(1)[0] & 8, 0);
}

/// Of a frame of one runner in CarRacing: the patches that its controller gets, and the importance of all.
fn attended(frame: &[u8]) -> (Vec<usize>, Vec<f32>) {
    let at = after_picture(frame);
    let numbers: Vec<usize> =
        frame[at..].chunks_exact(2).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]]))).take(7).collect();
    assert_eq!(numbers[5..], [96, 96], "the picture that the grid was laid over");
    let (patches, selected) = (numbers[0] * numbers[1], numbers[4]);
    let (ids, rest) = frame[at + 14..].split_at(2 * selected);
    let ids = ids.chunks_exact(2).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]]))).collect();
    let importance = rest.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes")));
    (ids, importance.take(patches).collect())
}

/// Of a frame of one runner in CarRacing: where the picture of 96×96 pixels ends.
fn after_picture(frame: &[u8]) -> usize {
    let undisturbed = 13 + 1 + 12;
    undisturbed + 1 + 4 * usize::from(frame[undisturbed]) + 4 + 96 * 96 * 3
}

/// Of a frame of one runner in CarRacing: the patches whose effect was measured, and how large it is.
fn effects(frame: &[u8]) -> Vec<(usize, f32)> {
    let (selected, importance) = attended(frame);
    let at = after_picture(frame) + 14 + 2 * selected.len() + 4 * importance.len();
    let count = usize::from(u16::from_le_bytes([frame[at], frame[at + 1]]));
    let all = frame[at + 2..].chunks_exact(6).take(count);
    all.map(|b| {
        let effect = f32::from_le_bytes(b[2..].try_into().expect("four bytes"));
        (usize::from(u16::from_le_bytes([b[0], b[1]])), effect)
    })
    .collect()
}

#[test]
fn effects_are_measured_beside_the_claim_and_change_no_drive() {
    let mut page = Page::new();
    let frame = page.pass(40);
    let (selected, _) = attended(&frame);
    let measured = effects(&frame);
    assert_eq!(measured.iter().map(|(patch, _)| *patch).collect::<Vec<_>>(), selected);
    assert!(measured.iter().all(|(_, effect)| (0.0..=1.0).contains(effect)), "{measured:?}");
    assert!(measured.iter().any(|(_, effect)| *effect > 0.0), "{measured:?}");
    let mut other = Page::new();
    other.send(&json!({ "type": "set", "effects": false }));
    let without = other.pass(40);
    assert_eq!(effects(&without), []);
    assert_eq!(attended(&without), attended(&frame));
    assert_eq!(without[..26], frame[..26], "steps, score, action");
    // Back on within the same moment: the agent decides again, and decides the same.
    other.send(&json!({ "type": "set", "effects": true, "paused": true }));
    assert_eq!(effects(&other.frame()), measured);
}

#[test]
fn patches_are_sent_by_rank_whatever_the_order_of_the_selection() {
    for selection in ["best", "best_in_place", "least"] {
        let config = json!({ "top_k": 6, "selection": selection });
        let params = initial_params("iap", &config, Init::Torch, Seed::root(3)).expect("an agent");
        let file = AgentFile::new("iap", &config, params).expect("the right count");
        let setup = Arc::new(lab_setup(SETUP.world.clone(), vec![(file, "mine".into())]).expect("it sees"));
        let mut page = Page::of(&setup);
        page.send(&json!({ "type": "set", "paused": true }));
        let (selected, importance) = attended(&page.frame());
        assert_eq!(selected.len(), 6, "{selection}");
        assert!(selected.is_sorted_by(|&a, &b| importance[a] >= importance[b]), "{selection}: {selected:?}");
        let mut by_importance: Vec<usize> = (0..importance.len()).collect();
        by_importance.sort_by(|&a, &b| importance[b].total_cmp(&importance[a]));
        let best = selected.iter().all(|patch| by_importance[..6].contains(patch));
        assert_eq!(best, selection != "least", "{selection}");
    }
}

#[test]
fn every_controller_can_be_told_about_fewer_patches() {
    let values = json!({ "centre": true, "colour": true });
    for controller in [json!({ "kind": "linear" }), json!({ "kind": "mlp", "hidden": [6] })] {
        let config =
            json!({ "patch": 4, "stride": 4, "top_k": 6, "values": values, "controller": controller });
        let params = initial_params("iap", &config, Init::Torch, Seed::root(3)).expect("an agent");
        let file = AgentFile::new("iap", &config, params).expect("the right count");
        let setup = Arc::new(lab_setup(SETUP.world.clone(), vec![(file, "mine".into())]).expect("it sees"));
        assert_eq!(setup.agents[0].patches, Some(6));
        let action = |k: Value| {
            let mut page = Page::of(&setup);
            page.send(&json!({ "type": "set", "paused": true, "runners": [{ "agent": 0, "k": k }] }));
            page.frame()[14..26].to_vec()
        };
        let whole = action(Value::Null);
        assert_eq!(action(json!(6)), whole);
        assert_ne!(action(json!(1)), whole, "{controller}");
    }
}

#[test]
fn what_cannot_be_had_changes_nothing() {
    let mut page = Page::new();
    page.pass(5);
    page.send(&json!({ "type": "set", "paused": true }));
    for (wish, wants) in [
        (json!({ "picture": "oil" }), "oil"),
        (json!({ "variants": ["fog"] }), "fog"),
        (json!({ "variants": ["bar", "bar"] }), "both change"),
        (json!({ "variants": ["video:folder=/etc"] }), "pictures"),
        (json!({ "shifts": ["fog:3"] }), "fog"),
        (json!({ "shifts": ["hue:9"] }), "1 to 5"),
        (json!({ "shifts": ["hue:2", "bar:3:z=1"] }), "no parameter"),
        (json!({ "runners": [{ "agent": 99 }] }), "no agent 99"),
        // All or nothing: the good part of a bad wish is not taken either.
        (json!({ "seed": 9, "speed": 4, "shifts": ["fog:3"] }), "fog"),
        (json!({ "seed": 9, "picture": "exact", "shifts": ["fog:3"] }), "fog"),
    ] {
        let mut command = wish;
        command["type"] = "set".into();
        page.refused(&command, wants);
    }
    for info in shift::SHIFTS.iter() {
        for knob in info
            .knobs
            .iter()
            .filter(|knob| matches!(knob.kind, shift::KnobKind::Folder | shift::KnobKind::File))
        {
            let text = format!("{}:3:{}=/etc", info.name, knob.name);
            page.refused(&json!({ "type": "set", "shifts": [text] }), "pages name no folders and no files");
        }
    }
}

#[test]
fn the_next_track_begins_by_itself_unless_told_not_to() {
    let mut page = Page::new();
    page.send(&json!({ "type": "set", "seed": 999_999, "speed": 16 }));
    page.drive();
    let said = page.session.take_messages().concat();
    assert!(said.contains(r#""type":"end""#) && said.contains("999999"), "{said}");
    page.pass(100);
    assert_eq!(page.session.settings().seed, 0, "seeds begin anew");
    assert!(page.session.take_messages().concat().contains(r#""seed":0"#), "the page is told");
    page.send(&json!({ "type": "set", "auto": false }));
    page.drive();
    page.pass(200);
    assert_eq!(page.session.settings().seed, 0);
    assert!(page.session.is_idle());
}

#[test]
fn frames_wait_for_a_page_that_draws() {
    let mut page = Page::new();
    for _ in 0..3 {
        assert!(page.session.has_room());
        page.session.frame();
    }
    assert!(!page.session.has_room());
    page.send(&json!({ "type": "shown", "frame": 4_000_000_000_u32 }));
    assert!(!page.session.has_room(), "nobody has drawn what was not sent");
    page.send(&json!({ "type": "shown", "frame": 1 }));
    assert!(page.session.has_room());
}

/// Order and numbers in a frame of one runner without its number.
#[derive(Debug, Default, PartialEq)]
struct Sensors {
    patch: usize,
    order: Vec<u32>,
    numbers: Vec<f32>,
    /// The number of numbers, and rows of weights for them.
    all_and_rows: [usize; 2],
    weights: Vec<f32>,
}

/// The view in a frame of one runner without its number, its last part.
fn view_of(frame: &[u8]) -> &[u8] {
    parts_of(frame).1
}

fn sensors_of(frame: &[u8]) -> Sensors {
    parts_of(frame).0
}

fn parts_of(frame: &[u8]) -> (Sensors, &[u8]) {
    let u32_at = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().expect("four"));
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([frame[at], frame[at + 1]]));
    let mut at = 1 + 4 + 8;
    // The action, and what it would be without interventions.
    at += 1 + 4 * usize::from(frame[at]);
    at += 1 + 4 * usize::from(frame[at]);
    at += 4 + 3 * u16_at(at) * u16_at(at + 2);
    let (patches, told) = (u16_at(at) * u16_at(at + 2), u16_at(at + 8));
    at += 14 + 2 * told + 4 * patches;
    at += 2 + 6 * u16_at(at);
    let many = |at: usize, n: usize| (0..n).map(|i| u32_at(at + 4 * i)).collect::<Vec<_>>();
    let floats = |at, n| many(at, n).into_iter().map(f32::from_bits).collect::<Vec<_>>();
    let (patch, n) = (u16_at(at), u16_at(at + 2));
    let order = many(at + 4, n);
    at += 4 + 4 * n;
    let [sent, all, rows] = [0, 2, 4].map(|more| u16_at(at + more));
    let numbers = floats(at + 6, sent);
    let weights = floats(at + 6 + 4 * sent, rows * sent);
    at += 6 + 4 * sent * (1 + rows);
    let view = &frame[at + 4..];
    assert_eq!(view.len(), u32_at(at) as usize, "it ends with the view");
    (Sensors { patch, order, numbers, all_and_rows: [all, rows], weights }, view)
}

#[test]
fn a_shuffled_picture_comes_with_its_original_order() {
    let mut page = Page::new();
    assert_eq!(sensors_of(&page.pass(3)), Sensors::default(), "the world's own order");
    page.send(&json!({ "type": "set", "shifts": ["shuffle:5"], "paused": true }));
    let first = sensors_of(&page.frame());
    assert_eq!((first.patch, first.order.len()), (6, 256), "96 x 96 pixels in patches of 6");
    let mut sorted = first.order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..256).collect::<Vec<_>>(), "each patch once");
    assert_ne!(first.order, sorted);
    page.send(&json!({ "type": "shuffle" }));
    let second = sensors_of(&page.frame());
    assert_ne!(second.order, first.order, "another order at once");
    page.send(&json!({ "type": "film" }));
    let film = page.session.take_film().expect("an order").make().expect("a film");
    assert_eq!(&film[4..8], b"ftyp", "both pictures side by side");
}

/// CartPole with an agent that attends to its sensors, and one without attention.
fn cart_pole() -> Arc<LabSetup> {
    let world = EnvRequest { id: "cartpole-swingup-harder".into(), ..EnvRequest::default() };
    let spec = worlds::make(world.clone()).expect("a world").spec().clone();
    let file = |name: &str| {
        let agent = foveate_agents::registry::find(name).expect("it exists");
        let settings = (agent.fit)(&spec, &[[-1.0, 1.0]; 5]);
        let params = initial_params(name, &settings, Init::Torch, Seed::root(3)).expect("numbers");
        (AgentFile::new(name, &settings, params).expect("an agent"), name.to_owned())
    };
    let agents = vec![file("attention-neuron"), file("controller")];
    Arc::new(lab_setup(world, agents).expect("numbers are shown, too"))
}

#[test]
fn a_world_of_numbers_shows_its_sensors() {
    let mut page = Page::of(&cart_pole());
    page.send(&json!({ "type": "set", "paused": true, "seed": 1 }));
    let own = sensors_of(&page.frame());
    assert_eq!((own.numbers.len(), own.all_and_rows, own.weights.len()), (5, [5, 16], 80));
    assert_eq!((own.patch, &own.order[..]), (0, &[][..]));
    page.send(&json!({ "type": "set", "shifts": ["shuffle:5", "noise-channels:1"], "seed": 1 }));
    let shuffled = sensors_of(&page.frame());
    assert_eq!(shuffled.order.len(), shuffled.numbers.len());
    assert!(shuffled.order.contains(&u32::MAX), "a channel of noise is no sensor of the world: {shuffled:?}");
    for (at, &sensor) in shuffled.order.iter().enumerate().filter(|(_, sensor)| **sensor != u32::MAX) {
        assert_eq!(shuffled.numbers[at], own.numbers[sensor as usize], "sensor {sensor} shown at {at}");
    }
    for _ in 0..3 {
        page.send(&json!({ "type": "step" }));
        page.frame();
    }
    page.send(&json!({ "type": "film" }));
    page.session.take_film().expect("an order").make().expect("a film with bars");
    page.send(&json!({ "type": "set", "shifts": [], "runners": [{ "agent": 1 }], "seed": 1 }));
    let plain = sensors_of(&page.frame());
    assert_eq!((plain.numbers, plain.all_and_rows), (own.numbers, [5, 0]), "no attention, no weights");
}

/// In a grid world the page gets maps of where cells attend to, of an agent without attention the view, and a film of both.
#[test]
fn a_grid_world_shows_where_its_cells_attend_to() {
    let world = EnvRequest {
        id: "door-key-5x5".into(),
        picture: Some("one-hot".into()),
        options: [("actions".to_owned(), "five".to_owned())].into(),
        ..EnvRequest::default()
    };
    let spec = worlds::make(world.clone()).expect("a world").spec().clone();
    let file = |name: &str| {
        let settings =
            (foveate_agents::registry::find(name).expect("it exists").fit)(&spec, &[[0.0, 1.0]; 5]);
        let params = initial_params(name, &settings, Init::Torch, Seed::root(3)).expect("numbers");
        (AgentFile::new(name, &settings, params).expect("an agent"), name.to_owned())
    };
    let agents = vec![file("relational"), file("random-actions")];
    let setup = Arc::new(lab_setup(world, agents).expect("cells are shown, too"));
    let mut page = Page::of(&setup);
    page.send(&json!({ "type": "set", "paused": true, "seed": 1 }));
    let seen = |frame: &[u8]| {
        // Nobody intervenes: no second action follows.
        let at = 1 + 4 + 8 + 1 + 4 * usize::from(frame[13]) + 1;
        let side = |at: usize| usize::from(u16::from_le_bytes([frame[at], frame[at + 1]]));
        let size = [side(at), side(at + 2)];
        (size, frame[at + 4..][..3 * size[0] * size[1]].to_vec())
    };
    let (size, first) = seen(&page.frame());
    assert_eq!(size, [384, 384]);
    let differs = (2..8).any(|seed| {
        page.send(&json!({ "type": "set", "seed": seed }));
        seen(&page.frame()).1 != first
    });
    assert!(differs, "other layouts, other maps");
    page.send(&json!({ "type": "step" }));
    page.frame();
    page.send(&json!({ "type": "film" }));
    page.session.take_film().expect("an order").make().expect("a film with maps");
    page.send(&json!({ "type": "set", "runners": [{ "agent": 1 }], "seed": 1 }));
    assert_eq!(seen(&page.frame()).0, [112, 112], "no attention: the view of 7 x 7 cells");
}

#[test]
fn the_view_has_the_size_that_is_asked_for_and_the_film_is_a_film() {
    let mut page = Page::new();
    page.send(&json!({ "type": "view", "width": 200, "height": 160 }));
    let frame = page.pass(12);
    let view = run_length::unpack(view_of(&frame)).expect("a view");
    assert_eq!((view.width(), view.height()), (200, 160));
    assert!(view.rgb().chunks_exact(3).any(|pixel| pixel != &view.rgb()[..3]), "not all of one colour");
    for _ in 0..4 {
        page.pass(1);
    }
    page.send(&json!({ "type": "film" }));
    let film = page.session.take_film().expect("an order").make().expect("a film");
    assert_eq!(&film[4..8], b"ftyp");
    assert!(page.session.take_film().is_none());
}

#[test]
fn nothing_that_a_page_says_is_a_panic() {
    let mut rng = Seed::root(11).child("hostile", 0).rng();
    let words = [
        "{",
        "}",
        "[",
        "]",
        "\"type\"",
        ":",
        ",",
        "\"set\"",
        "\"step\"",
        "\"drive\"",
        "\"seed\"",
        "\"speed\"",
        "\"shifts\"",
        "\"variants\"",
        "\"picture\"",
        "\"runners\"",
        "\"agent\"",
        "\"k\"",
        "\"view\"",
        "\"width\"",
        "\"height\"",
        "\"action\"",
        "\"runner\"",
        "\"shown\"",
        "\"frame\"",
        "\"fast\"",
        "\"hue:2\"",
        "\"blob:5:x=nan\"",
        "\"noise:size=2\"",
        "\"noise:size=999999999\"",
        "0",
        "1",
        "-1",
        "1e308",
        "0.5",
        "18446744073709551615",
        "null",
        "true",
        "\"\"",
        "\"\\u0000\"",
        "é",
    ];
    let templates = [
        r#"{"type":"set","seed":N}"#,
        r#"{"type":"set","shifts":["hue:N","bar:N:x=N"]}"#,
        r#"{"type":"set","speed":N}"#,
        r#"{"type":"set","runners":[{"agent":N,"k":N}]}"#,
        r#"{"type":"view","width":N,"height":N}"#,
        r#"{"type":"drive","runner":N,"action":[N,N,N]}"#,
        r#"{"type":"shown","frame":N}"#,
        r#"{"type":"step"}"#,
        r#"{"type":"restart"}"#,
        r#"{"type":"release"}"#,
        r#"{"type":"set","variants":["blob:side=N"]}"#,
        r#"{"type":"set","paused":true}"#,
        r#"{"type":"film"}"#,
        r#"{"type":"set","picture":"exact"}"#,
        r#"{"type":"set","variants":["noise"],"shifts":["noise:N@N-N"]}"#,
    ];
    let numbers =
        ["0", "1", "2", "7", "100", "640", "-1", "0.5", "1e9", "4294967295", "1e300", "9007199254740991"];
    let mut page = Page::new();
    for i in 0..1000 {
        let mut pick = |n: usize| rng.below(n as u64) as usize;
        let text = match i % 3 {
            0 => (0..pick(24)).map(|_| words[pick(words.len())]).collect::<String>(),
            1 => String::from_utf8_lossy(&(0..pick(200)).map(|_| pick(256) as u8).collect::<Vec<_>>())
                .into_owned(),
            _ => {
                let parts = templates[pick(templates.len())].split('N');
                let parts: Vec<&str> = parts.collect();
                let mut text = parts[0].to_owned();
                for part in &parts[1..] {
                    text += numbers[pick(numbers.len())];
                    text += part;
                }
                text
            }
        };
        page.session.handle(&text);
        page.session.take_film();
        for said in page.session.take_messages() {
            let word: Value = serde_json::from_str(&said).expect("JSON");
            assert!(matches!(word["type"].as_str(), Some("message" | "state" | "end")), "{said}");
        }
        if i % 10 == 0 {
            page.pass(1);
        }
    }
    // And after all that it drives as ever.
    page.send(&json!({
        "type": "set", "seed": 7, "speed": 1, "paused": false, "auto": true, "shifts": [], "variants": [],
        "picture": "fast", "runners": [{ "agent": 0 }],
    }));
    let mut fresh = Page::new();
    fresh.send(&json!({ "type": "set", "seed": 7 }));
    assert_eq!(page.drive(), fresh.drive());
}

#[test]
fn complaints_do_not_pile_up() {
    let mut page = Page::new();
    for _ in 0..10_000 {
        page.session.handle("no");
    }
    assert!(page.session.take_messages().len() <= 64);
    assert_eq!(score(&page.frame()).0, 0);
    assert!(page.session.settings().seed <= protocol::MAX_SEED);
}

#[test]
fn a_world_in_another_process_is_driven_as_in_an_evaluation() {
    if foveate_toy::needs::python().is_none() {
        return;
    }
    let toys = concat!(env!("CARGO_MANIFEST_DIR"), "/../foveate-gym/tests/toys");
    let options =
        [("path", toys), ("wrap", "limit:40")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let world = EnvRequest {
        id: "gym:foveate_toys:Toys/Picture-v0".into(),
        options: options.into(),
        ..EnvRequest::default()
    };
    let settings = foveate_agents::registry::find("attention-agent")
        .map(|agent| (agent.fit)(worlds::make(world.clone()).expect("a world").spec(), &[]))
        .expect("it exists");
    let params = initial_params("attention-agent", &settings, Init::Torch, Seed::root(3)).expect("numbers");
    let file = AgentFile::new("attention-agent", &settings, params).expect("an agent");
    let setup = Arc::new(lab_setup(world.clone(), vec![(file, "mine".into())]).expect("it can be driven"));
    assert_eq!(setup.agents.len(), 2, "mine, and one that never learnt");

    let mut page = Page::of(&setup);
    page.send(&json!({ "type": "set", "seed": 5, "runners": [{ "agent": 0 }, { "agent": 1 }] }));
    for _ in 0..2000 {
        page.pass(1);
        if page.session.scores().iter().all(|(_, _, over)| *over) {
            break;
        }
    }
    let env = worlds::make(world).expect("a world");
    for (at, (steps, score, over)) in page.session.scores().into_iter().enumerate() {
        let agent = (setup.agents[at].make)().expect("an agent");
        let request = EvalRequest {
            env: &*env,
            agent: &*agent,
            labels: Labels::default(),
            seeds: Seeds::Each(5..6),
            workers: 1,
            max_steps: None,
            mode: ActMode::Greedy,
            reference: None,
        };
        let report = run(&request, &Stop::default()).expect("it drives");
        assert_eq!((steps, score, over), (report.lengths[0] as u32, report.returns[0], true), "runner {at}");
    }
    page.refused(&json!({ "type": "set", "picture": "fast" }), "fast");
}
