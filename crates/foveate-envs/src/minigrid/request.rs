//! Builds a [`MiniGrid`] from a user's request.

use foveate_core::{Env, EnvError};

use super::cell::Color;
use super::env::{ActionSet, MiniGrid, MiniGridConfig, Shows};
use super::layout::{DoorKeyChanges, Layout, Paint};
use crate::registry::{Champion, Choice, EnvRequest, WorldDescriptor, WorldError};

/// All worlds: name, description, layout.
const WORLDS: [(&str, &str, Layout); 14] = [
    ("door-key-5x5", DOOR_KEY, Layout::DoorKey { size: 5 }),
    ("door-key-6x6", DOOR_KEY, Layout::DoorKey { size: 6 }),
    ("door-key-8x8", DOOR_KEY, Layout::DoorKey { size: 8 }),
    ("door-key-16x16", DOOR_KEY, Layout::DoorKey { size: 16 }),
    ("empty-5x5", EMPTY, Layout::Empty { size: 5, random: false }),
    ("empty-random-5x5", EMPTY, Layout::Empty { size: 5, random: true }),
    ("empty-8x8", EMPTY, Layout::Empty { size: 8, random: false }),
    ("empty-16x16", EMPTY, Layout::Empty { size: 16, random: false }),
    ("four-rooms", "reach the goal in one of four rooms (MiniGrid)", Layout::FourRooms),
    ("lava-crossing-9x9-1", LAVA, Layout::Crossing { size: 9, crossings: 1, lava: true }),
    ("lava-crossing-9x9-2", LAVA, Layout::Crossing { size: 9, crossings: 2, lava: true }),
    ("lava-crossing-9x9-3", LAVA, Layout::Crossing { size: 9, crossings: 3, lava: true }),
    ("lava-crossing-11x11-5", LAVA, Layout::Crossing { size: 11, crossings: 5, lava: true }),
    ("simple-crossing-9x9-1", WALLS, Layout::Crossing { size: 9, crossings: 1, lava: false }),
];

const DOOR_KEY: &str = "take the key, open the door, reach the goal (MiniGrid)";
const EMPTY: &str = "reach the goal in an empty room (MiniGrid)";
const LAVA: &str = "reach the goal past rivers of lava (MiniGrid)";
const WALLS: &str = "reach the goal past walls with openings (MiniGrid)";

/// What an agent is shown, by name.
const PICTURES: [(&str, &str, Shows); 5] = [
    ("view", "the 7x7 cells before the agent: kind, colour and state of each", Shows::View),
    ("one-hot", "the same, with a bit for each kind, colour and state", Shows::OneHot),
    ("full", "the whole grid: kind, colour and state of each cell", Shows::Full),
    ("rgb", "the 7x7 cells before the agent, drawn in 56x56 pixels", Shows::Picture),
    ("rgb-full", "the whole grid, drawn with 8x8 pixels for a cell", Shows::FullPicture),
];

const PICTURE_CHOICES: [Choice; 5] = {
    let mut choices = [Choice { name: "", about: "" }; 5];
    let mut i = 0;
    while i < 5 {
        choices[i] = Choice { name: PICTURES[i].0, about: PICTURES[i].1 };
        i += 1;
    }
    choices
};

/// Options by name: description and default.
const OPTIONS: [(&str, &str); 2] = [
    ("actions", "all: MiniGrid's seven; five: left, right, forward, pick up, toggle (default: all)"),
    ("max_steps", "steps after which an episode is truncated, 1 to 1000000 (default: MiniGrid's)"),
];

/// Those of `DoorKey`'s worlds.
const DOOR_KEY_OPTIONS: [(&str, &str); 4] = [
    OPTIONS[0],
    OPTIONS[1],
    (
        "color",
        "of door and key: red, green, blue, purple, yellow, grey, or random in each episode (default: yellow)",
    ),
    (
        "second_key",
        "a second key that does not fit, where it leaves a way: none, a colour, or random (default: none)",
    ),
];

/// Their entries in the registry of worlds.
pub static DESCRIPTORS: [WorldDescriptor; WORLDS.len()] = {
    let mut all = [descriptor(WORLDS[0].0, WORLDS[0].1, WORLDS[0].2); WORLDS.len()];
    let mut i = 0;
    while i < WORLDS.len() {
        all[i] = descriptor(WORLDS[i].0, WORLDS[i].1, WORLDS[i].2);
        i += 1;
    }
    // The places of WORLDS; a test compares the names.
    all[0].champions = &SMALL_CHAMPIONS;
    all[3].champions = &LARGE_CHAMPIONS;
    all
};

const SMALL_CHAMPIONS: [Champion; 1] = [Champion {
    name: WORLDS[0].0,
    about: "relational network, by deep Q-learning",
    weights: include_bytes!("../../../../champions/door-key-5x5.safetensors"),
    as_trained: true,
}];

const LARGE_CHAMPIONS: [Champion; 1] = [Champion {
    name: WORLDS[3].0,
    about: "relational network, by policy gradients from 5x5 on",
    weights: include_bytes!("../../../../champions/door-key-16x16.safetensors"),
    as_trained: true,
}];

const fn descriptor(name: &'static str, summary: &'static str, layout: Layout) -> WorldDescriptor {
    WorldDescriptor {
        instance: "layout",
        has_expert: true,
        suite: Some("minigrid"),
        pictures: &PICTURE_CHOICES,
        options: if matches!(layout, Layout::DoorKey { .. }) {
            &const { Choice::all(DOOR_KEY_OPTIONS) }
        } else {
            &const { Choice::all(OPTIONS) }
        },
        actions: &["left", "right", "forward", "pick up", "drop", "toggle", "done"],
        // Of the option `actions=five`.
        choices: &["left", "right", "forward", "pick up", "toggle"],
        ..WorldDescriptor::new(name, summary, make)
    }
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let (name, config) = config(request)?;
    Ok(Box::new(MiniGrid::new(name, config)))
}

fn config(request: &EnvRequest) -> Result<(&'static str, MiniGridConfig), EnvError> {
    let bad = |why: String| EnvError::BadOption { env: request.id.clone(), why };
    let known = || WORLDS.map(|(name, ..)| name).join(", ");
    let Some(&(name, _, layout)) = WORLDS.iter().find(|(name, ..)| *name == request.id) else {
        return Err(EnvError::UnknownEnv { given: request.id.clone(), known: known() });
    };
    // The registry refuses other pictures and options.
    let picture = request.picture.as_deref().unwrap_or(PICTURES[0].0);
    let shows = PICTURES.iter().find(|(name, ..)| *name == picture).map_or(Shows::View, |&(.., shows)| shows);
    let actions = match request.options.get("actions").map(String::as_str) {
        None | Some("all") => ActionSet::All,
        Some("five") => ActionSet::Five,
        Some(other) => return Err(bad(format!("actions is all or five, not {other:?}"))),
    };
    let max_steps = match request.options.get("max_steps") {
        None => layout.max_steps(),
        Some(text) => match text.parse() {
            Ok(steps @ 1..=1_000_000) => steps,
            _ => return Err(bad(format!("max_steps is a number from 1 to 1000000, not {text:?}"))),
        },
    };
    let option = |name: &str| request.options.get(name).map(String::as_str);
    let paint = |name: &str, given: &str| match (given, Color::named(given)) {
        ("random", _) => Ok(Paint::Random),
        (_, Some(color)) => Ok(Paint::Fixed(color)),
        _ => Err(bad(format!("{name} is random or one of {}, not {given:?}", Color::NAMES.join(", ")))),
    };
    let mut changes = DoorKeyChanges::default();
    if let Some(given) = option("color") {
        changes.color = paint("color", given)?;
    }
    if let Some(given) = option("second_key").filter(|&given| given != "none") {
        let second = paint("second_key", given)?;
        if matches!(second, Paint::Fixed(_)) && second == changes.color {
            return Err(bad(format!(
                "second_key is {given}, the colour of the door, so it would fit; choose another colour"
            )));
        }
        changes.second_key = Some(second);
    }
    Ok((name, MiniGridConfig { layout, shows, actions, max_steps, changes }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use foveate_core::{Env, Fact};

    use super::*;

    fn door_key(options: &[(&str, &str)]) -> Result<MiniGrid, EnvError> {
        let options: BTreeMap<String, String> =
            options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let (name, config) =
            config(&EnvRequest { id: "door-key-5x5".into(), options, ..EnvRequest::default() })?;
        Ok(MiniGrid::new(name, config))
    }

    /// Names of all objects, in the order of [`foveate_core::GridView::objects`].
    fn objects(world: &MiniGrid) -> Vec<String> {
        world.grid_view().expect("cells").objects.into_iter().map(|object| object.name).collect()
    }

    /// Door and key of other colours and a second key: layouts stay those of the package, and every start can be solved.
    #[test]
    fn door_key_has_other_colours_and_a_second_key() {
        let mut plain = door_key(&[]).expect("the package's");
        for (options, colors, seconds) in [
            (&[("color", "yellow")][..], 1, 0..=0),
            (&[("color", "blue")], 1, 0..=0),
            (&[("color", "random")], 6, 0..=0),
            (&[("second_key", "none")], 1, 0..=0),
            (&[("second_key", "red")], 1, 100..=250),
            (&[("second_key", "random"), ("color", "random")], 6, 100..=250),
        ] {
            let mut world = door_key(options).expect("they exist");
            let (mut doors, mut with_second) = (std::collections::BTreeSet::new(), 0);
            let mut advice = vec![0.0; 7];
            for seed in 0..300 {
                plain.reset(Some(seed));
                world.reset(Some(seed));
                assert_eq!(world.agent(), plain.agent(), "seed {seed}");
                let named = objects(&world);
                let color = named[0].split(' ').nth(1).expect("locked, colour, door").to_owned();
                assert!(named.contains(&format!("{color} key")), "{named:?}");
                let keys = named.iter().filter(|name| name.ends_with("key")).count();
                let places = |world: &MiniGrid| -> Vec<_> {
                    let objects = world.grid_view().expect("cells").objects;
                    let own = |name: &str| {
                        !name.ends_with("key") || name.starts_with(&*color) || name == "yellow key"
                    };
                    objects
                        .iter()
                        .filter(|object| own(&object.name))
                        .map(|object| (object.kind, object.in_world))
                        .collect()
                };
                if keys == 1 {
                    assert_eq!(places(&world), places(&plain), "seed {seed}");
                } else {
                    with_second += 1;
                }
                doors.insert(color.clone());
                let mut reward = 0.0;
                for _ in 0..60 {
                    world.expert(&mut advice).expect("it runs");
                    let choice = advice.iter().position(|&x| x == 1.0).expect("one action");
                    let step = world.step(foveate_core::Action::Discrete(choice)).expect("it runs");
                    reward = step.reward;
                    if step.is_over() {
                        break;
                    }
                }
                assert!(reward > 0.9, "{options:?}, seed {seed}: {reward}");
            }
            assert_eq!(doors.len(), colors, "{options:?}: {doors:?}");
            assert!(seconds.contains(&with_second), "{options:?}: {with_second} of 300");
            // A seed determines everything, and episodes that follow one another differ.
            let mut again = door_key(options).expect("they exist");
            let mut facts: Vec<Fact> = vec![];
            for seed in [Some(7), None, None] {
                world.reset(seed);
                again.reset(seed);
                assert_eq!(world.state(), again.state());
                facts.push(world.state());
            }
            assert!(facts[0] != facts[1] || facts[1] != facts[2]);
        }
    }

    #[test]
    fn colours_that_make_no_sense_are_refused_in_a_line() {
        for (options, why) in [
            (
                &[("color", "pink")][..],
                "color is random or one of red, green, blue, purple, yellow, grey, not \"pink\"",
            ),
            (&[("second_key", "2")], "second_key is random or one of red"),
            (&[("second_key", "yellow")], "second_key is yellow, the colour of the door"),
            (&[("color", "red"), ("second_key", "red")], "second_key is red, the colour of the door"),
        ] {
            let said = door_key(options).err().map(|error| error.to_string()).expect(why);
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn champions_belong_to_their_worlds() {
        let named: Vec<&str> =
            DESCRIPTORS.iter().filter(|world| !world.champions.is_empty()).map(|world| world.name).collect();
        assert_eq!(named, ["door-key-5x5", "door-key-16x16"]);
        for world in &DESCRIPTORS {
            assert!(
                world.champions.iter().all(|champion| champion.name == world.name && champion.as_trained)
            );
        }
    }
}
