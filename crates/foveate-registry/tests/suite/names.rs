//! Looks up worlds by name, and checks the error messages for misspelt names.

use foveate_envs::registry::EnvRequest;
use foveate_registry::{AGENTS, OTHERS, PRESETS, WORLDS, make, presets_of};

fn request(id: &str, picture: &str, variants: &[&str], options: &[(&str, &str)]) -> EnvRequest {
    EnvRequest {
        id: id.into(),
        picture: Some(picture.into()),
        variants: variants.iter().map(|&v| v.into()).collect(),
        options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
        ..EnvRequest::default()
    }
}

#[test]
fn everything_listed_is_described_and_can_be_made() {
    for world in WORLDS.iter() {
        let choices = world.pictures.iter().chain(world.options);
        assert!(
            choices.clone().all(|choice| !choice.name.is_empty() && !choice.about.is_empty()),
            "{world:?}"
        );
        assert!(world.variants.iter().all(|variant| !variant.about.is_empty()));
        assert!(!presets_of(world).is_empty(), "{}: there is one that suits it", world.name);
        for (picture, [low, high]) in world.speeds {
            assert!(world.pictures.iter().any(|choice| choice.name == *picture) && low <= high);
        }
        if world.has_process || world.needs_library || world.wanted_files.is_some() {
            // The contract tests build this world where its dependencies are installed, or with data of their own.
            continue;
        }
        for picture in world.pictures {
            let env = make(&request(world.name, picture.name, &[], &[])).expect("a listed picture");
            assert_eq!(env.spec().id, world.name);
            let dims = env.spec().action.clone();
            assert!(world.actions.is_empty() || dims.len() == world.actions.len());
        }
    }
    for preset in PRESETS.iter() {
        AGENTS.find(preset.agent).expect("the agent of a preset exists");
        // Only one section of a preset has a key `name` before the recipe: that of the agent.
        let agent = preset.text.split("[agent]").nth(1).and_then(|rest| rest.split('"').nth(1));
        assert_eq!(agent, Some(preset.agent), "{}: the agent that it trains", preset.name);
        let known = |name: &&str| {
            *name == OTHERS
                || WORLDS.iter().any(|world| [Some(world.name), world.suite].contains(&Some(*name)))
        };
        assert!(
            !preset.worlds.is_empty() && preset.worlds.iter().all(known),
            "{}: {:?}",
            preset.name,
            preset.worlds
        );
    }
}

#[test]
fn a_wrong_name_is_answered_with_the_right_ones() {
    for (request, message) in [
        (request("cart-racing", "none", &[], &[]), "no environment is called \"cart-racing\""),
        (
            request("car-racing", "exakt", &[], &[]),
            "picture \"exakt\"; did you mean exact? choose from: exact, fast, classic, none",
        ),
        (request("car-racing", "none", &["bra"], &[]), "\"bra\""),
        (
            request("car-racing", "none", &[], &[("seed", "1")]),
            "option \"seed\"; did you mean seeding? choose from: seeding,",
        ),
        (
            request("car-racing", "none", &[], &[("seeding", "gym")]),
            "\"gym\"; did you mean gym0153? choose from: gymnasium, gym0153",
        ),
        (request("car-racing", "none", &[], &[("continuous", "1")]), "\"1\"; choose from: true, false"),
        (request("car-racing", "none", &[], &[("max_steps", "-1")]), "max_steps is a whole number or none"),
        (
            request("car-racing", "none", &[], &[("lap_complete_percent", "all")]),
            "lap_complete_percent is a number",
        ),
        (request("car-racing", "none", &["bar"], &[]), "picture none does not show the variant bar"),
    ] {
        let Err(error) = make(&request) else { panic!("{request:?} was made") };
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn actions_have_the_names_of_their_world() {
    for (id, options, expect) in [
        ("door-key-5x5", &[][..], "left, right, forward, pick up, drop, toggle, done"),
        ("door-key-5x5", &[("actions", "five")], "left, right, forward, pick up, toggle"),
        ("car-racing", &[], "steer, gas, brake"),
        ("car-racing", &[("continuous", "false")], "nothing, right, left, gas, brake"),
        ("car-racing", &[("continuous", "false"), ("wrap", "choices:0:1")], "choice 0, choice 1"),
    ] {
        let world = WORLDS.get(id).expect("it exists");
        let env = make(&request(id, world.pictures[0].name, &[], options)).expect("it can be made");
        assert_eq!(foveate_registry::action_names(env.spec()).join(", "), expect, "{id} {options:?}");
    }
}

#[test]
fn options_reach_the_world() {
    let options = [("max_steps", "none"), ("continuous", "false"), ("seeding", "gym0153")];
    let env = make(&request("car-racing", "none", &[], &options)).expect("the options fit");
    assert_eq!(env.spec().max_steps, None);
    assert_eq!(env.spec().action, foveate_core::ActionSpace::Discrete { n: 5 });
}
