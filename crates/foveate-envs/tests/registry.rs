//! Worlds by name, and what misspelt names are answered.

use foveate_envs::registry::{EnvRequest, list, make};

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
fn everything_listed_can_be_made() {
    for info in list() {
        for picture in &info.pictures {
            if info.id == "take-cover" {
                // Its game is another process.
                let Err(error) = make(&request(info.id, &picture.name, &[], &[])) else {
                    panic!("without a game")
                };
                assert!(
                    error.to_string().starts_with("take-cover: its game runs in another process"),
                    "{error}"
                );
                continue;
            }
            let env = make(&request(info.id, &picture.name, &[], &[])).expect("a listed picture");
            assert_eq!(env.spec().id, info.id);
        }
        let lines = info.pictures.iter().chain(&info.options);
        assert!(lines.clone().count() > 5 && lines.clone().all(|line| !line.about.is_empty()));
        assert!(info.variants.iter().all(|variant| !variant.about.is_empty()));
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
fn options_reach_the_world() {
    let options = [("max_steps", "none"), ("continuous", "false"), ("seeding", "gym0153")];
    let env = make(&request("car-racing", "none", &[], &options)).expect("the options fit");
    assert_eq!(env.spec().max_steps, None);
    assert_eq!(env.spec().action, foveate_core::ActionSpace::Discrete { n: 5 });
}
