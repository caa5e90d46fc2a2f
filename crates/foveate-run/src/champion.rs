//! The trained agents bundled with Foveate, used when a user names no weights.
//!
//! Each is a weight file of `foveate train`, stored in `champions/` beside a card with its training and its
//! scores, and embedded in the program, so that it is available in any folder. It is described by
//! [`WorldDescriptor::champions`](foveate_envs::registry::WorldDescriptor::champions).

use std::path::Path;

use foveate_core::hint::Task;
use foveate_envs::registry::{Champion, Choice, EnvRequest, WorldDescriptor};
use foveate_registry::{WORLDS, WRAP};

use crate::RunError;
use crate::suggest;
use crate::tensors::TensorFile;
use crate::trust::WorldSpec;
use crate::weights::{AgentFile, is_weights_or_run};

/// All bundled agents, those of a world in its order.
pub fn champions() -> impl Iterator<Item = &'static Champion> {
    WORLDS.iter().flat_map(|world| world.champions)
}

/// The bundled agent of this name.
pub fn find(name: &str) -> Option<&'static Champion> {
    champions().find(|champion| champion.name == name)
}

/// The bundled agent that `path` names. Weights or a run of that name come first; a path such as `./car-racing` never means a
/// bundled agent.
pub fn named(path: &Path) -> Option<&'static Champion> {
    path.to_str().and_then(find).filter(|_| !is_weights_or_run(path))
}

/// The first bundled agent of `world`, and a label for it in place of a weight file's path.
///
/// # Errors
/// When there is none for this world.
pub fn champion(world: &str) -> Result<(AgentFile, String), RunError> {
    let described = foveate_registry::world(world).map_err(suggest::named)?;
    let Some(first) = described.champions.first() else {
        let fit: Vec<&str> = WORLDS
            .iter()
            .filter(|other| are_alike(other, described))
            .flat_map(|other| other.champions)
            .map(|champion| champion.name)
            .collect();
        let others = match fit.len() {
            0 => String::new(),
            _ => format!(", or an agent of a world that shows the same: {}", fit.join(", ")),
        };
        return Err(RunError::BadRequest {
            why: format!(
                "no trained agent for {world} comes with Foveate; {} makes one; or name a weight file or the folder of a run{others}",
                Task::Train.of(world),
            ),
        });
    };
    load(first)
}

/// Returns whether agents of one world can act in the other: pictures, numbers and actions have the same names.
fn are_alike(one: &WorldDescriptor, other: &WorldDescriptor) -> bool {
    one.pictures.iter().map(|picture| picture.name).eq(other.pictures.iter().map(|picture| picture.name))
        && (one.actions, one.choices, one.sensors) == (other.actions, other.choices, other.sensors)
}

/// Reads a bundled agent; returns it with a label in place of a weight file's path.
///
/// # Errors
/// When the program was built with a broken file.
pub fn load(champion: &Champion) -> Result<(AgentFile, String), RunError> {
    let title = format!("{} champion", champion.name);
    let broken = |why: String| RunError::BadRequest { why: format!("{title}: {why}; build Foveate anew") };
    let tensors = TensorFile::from_bytes(champion.weights).map_err(|error| broken(error.to_string()))?;
    let mut file = AgentFile::from_tensors(tensors).map_err(|error| broken(error.to_string()))?;
    if !champion.as_trained {
        let of =
            |world: &&'static WorldDescriptor| world.champions.iter().any(|own| own.name == champion.name);
        let id = WORLDS.iter().find(of).map_or(champion.name, |world| world.name).to_owned();
        file = file.made_for(&EnvRequest { id, ..EnvRequest::default() });
    }
    Ok((file, title))
}

/// The world that a bundled agent acts in: its own, or the one that `flags` name. That one has the agent's picture and options,
/// as far as it has such, unless the flags say otherwise.
///
/// # Errors
/// When there is no such world.
pub fn request(file: &AgentFile, title: &str, flags: &WorldSpec) -> Result<EnvRequest, RunError> {
    let Some(noted) = file.world(title) else { return Ok(flags.request()) };
    let own = noted.accept(&WorldSpec { trust: true, ..WorldSpec::default() })?;
    let Some(id) = flags.id.as_ref().filter(|id| **id != own.id) else { return Ok(flags.over(own)) };
    let other = foveate_registry::world(id).map_err(suggest::named)?;
    let has = |choices: &[Choice], name: &str| choices.iter().any(|choice| choice.name == name);
    let picture = own.picture.filter(|picture| has(other.pictures, picture));
    let options =
        own.options.into_iter().filter(|(name, _)| name == WRAP || has(other.options, name)).collect();
    Ok(flags.over(EnvRequest { id: id.clone(), picture, options, ..EnvRequest::default() }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::replay::sha256_hex;
    use crate::workers::{Stop, Workers, default_workers};
    use foveate_core::episode::EpisodeRules;
    use foveate_core::{ActMode, Experience};

    /// The card of a bundled agent.
    fn card(name: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../champions");
        fs::read_to_string(folder.join(format!("{name}.md"))).expect("every champion has a card")
    }

    #[test]
    fn names_are_unique_and_found() {
        for champion in champions() {
            assert_eq!(
                champions().filter(|other| other.name == champion.name).count(),
                1,
                "{}",
                champion.name
            );
            assert_eq!(find(champion.name).map(|found| found.about), Some(champion.about));
        }
    }

    #[test]
    fn the_card_is_that_of_the_file() {
        for champion in champions() {
            let (name, sum) = (champion.name, sha256_hex(champion.weights));
            assert!(card(name).contains(&sum), "champions/{name}.md must name the file's SHA-256, {sum}");
        }
    }

    #[test]
    fn the_weights_fit_and_drive_as_the_card_says() {
        let of =
            |world: &'static WorldDescriptor| world.champions.iter().map(|champion| (world.name, champion));
        // Worlds in another process have tests of their own: `crates/foveate-cli/tests/suite/take_cover.rs`.
        for (world, champion) in WORLDS.iter().filter(|world| !world.has_process).flat_map(of) {
            let name = champion.name;
            let (file, title) = load(champion).expect("it comes with us");
            let noted = file.world("champion").expect("its world is known");
            let request = noted.accept(&WorldSpec::default()).expect("a native world");
            let agent = file.agent().expect("its layout fits");
            assert_eq!((title, &*request.id), (format!("{name} champion"), world));
            let plain = EnvRequest { id: world.into(), ..EnvRequest::default() };
            assert!(champion.as_trained || request == plain, "{name}: {request:?}");
            let env = foveate_registry::make(&request).expect("its world exists");
            // Reads the rows `| seed | return | steps |` of the card.
            let card = card(name);
            let rows = card.lines().skip_while(|line| !line.starts_with("| seed | return | steps |"));
            let rows: Vec<Vec<&str>> = rows
                .skip(2)
                .take_while(|line| line.starts_with('|'))
                .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
                .collect();
            assert!(rows.len() >= 3, "the card lists episodes to check: {rows:?}");
            let seeds = rows.iter().map(|row| row[0].parse::<u64>().expect("a seed"));
            let mut workers = Workers::new(&*env, &*agent, default_workers(), Stop::default());
            let mut experience = Experience::default();
            workers
                .evaluate_each(file.params(), seeds, EpisodeRules::WHOLE, ActMode::Greedy, &mut experience)
                .expect("it drives");
            for (row, result) in rows.iter().zip(experience.episodes) {
                let driven = [format!("{:.2}", result.total), result.steps.to_string()];
                assert_eq!(driven, row[1..], "{name}, seed {}", row[0]);
            }
        }
    }

    #[test]
    fn a_world_without_one_says_what_to_do() {
        let said = champion("door-key-8x8").expect_err("it has none").to_string();
        assert!(
            !said.contains("did you mean") && said.ends_with("the same: door-key-5x5, door-key-16x16"),
            "{said}"
        );
        let said = champion("moon").expect_err("no such world").to_string();
        assert!(said.contains("no environment is called \"moon\""), "{said}");
    }

    #[test]
    fn elsewhere_an_agent_keeps_its_picture_and_its_options() {
        let (file, title) = champion("door-key-16x16").expect("it comes with us");
        let world = |id: &str, picture: Option<&str>| {
            let picture = picture.map(str::to_owned);
            let flags = WorldSpec { id: Some(id.into()), picture, ..WorldSpec::default() };
            let EnvRequest { id, picture, options, .. } = request(&file, &title, &flags).expect("a world");
            (id, picture.unwrap_or_default(), options.get("actions").cloned().unwrap_or_default())
        };
        let text =
            |id: &str, picture: &str, actions: &str| (id.to_owned(), picture.to_owned(), actions.to_owned());
        assert_eq!(world("door-key-16x16", None), text("door-key-16x16", "one-hot", "five"));
        assert_eq!(world("door-key-8x8", None), text("door-key-8x8", "one-hot", "five"));
        assert_eq!(world("door-key-8x8", Some("full")), text("door-key-8x8", "full", "five"));
        assert_eq!(world("car-racing", None), text("car-racing", "", ""));
    }

    #[test]
    fn weights_and_runs_come_before_bundled_agents_and_other_folders_do_not() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let name = |file: &str| dir.path().join(file);
        for folder in ["empty", "begun", "trained"] {
            fs::create_dir(name(folder)).expect("writable");
        }
        for file in ["begun/config.toml", "trained/last.safetensors", "file"] {
            fs::write(name(file), "").expect("writable");
        }
        for (file, expect) in
            [("file", true), ("begun", true), ("trained", true), ("empty", false), ("no", false)]
        {
            assert_eq!(is_weights_or_run(&name(file)), expect, "{file}");
        }
        let found = |text: &str| named(Path::new(text)).map(|found| found.name);
        assert_eq!(found("car-racing"), Some("car-racing"));
        assert_eq!((found("./car-racing"), found("car-racing/")), (None, None), "a path");
    }
}
