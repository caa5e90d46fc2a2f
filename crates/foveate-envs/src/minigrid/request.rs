//! Builds a [`MiniGrid`] from a user's request.

use foveate_core::{Env, EnvError};

use super::env::{ActionSet, MiniGrid, MiniGridConfig, Shows};
use super::layout::Layout;
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

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 2] = [
    ("actions", "all: MiniGrid's seven; five: left, right, forward, pick up, toggle (default: all)"),
    ("max_steps", "steps after which an episode is truncated, 1 to 1000000 (default: MiniGrid's)"),
];

/// Their entries in the registry of worlds.
pub static DESCRIPTORS: [WorldDescriptor; WORLDS.len()] = {
    let mut all = [descriptor(WORLDS[0].0, WORLDS[0].1); WORLDS.len()];
    let mut i = 0;
    while i < WORLDS.len() {
        all[i] = descriptor(WORLDS[i].0, WORLDS[i].1);
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
    about: "relational network, taught by the expert",
    weights: include_bytes!("../../../../champions/door-key-16x16.safetensors"),
    as_trained: true,
}];

const fn descriptor(name: &'static str, summary: &'static str) -> WorldDescriptor {
    WorldDescriptor {
        instance: "layout",
        has_expert: true,
        presets: &[
            "relational",
            "relational-imitation",
            "relational-book",
            "door-key-ppo",
            "gymnasium-pictures",
        ],
        pictures: &PICTURE_CHOICES,
        options: &const { Choice::all(OPTIONS) },
        actions: &["left", "right", "forward", "pick up", "drop", "toggle", "done"],
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
    Ok((name, MiniGridConfig { layout, shows, actions, max_steps }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
