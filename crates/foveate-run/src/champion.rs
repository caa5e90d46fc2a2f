//! The trained agents bundled with Foveate, used when a user names no weights.
//!
//! Each is a weight file of `foveate train`, stored in `champions/` beside a card with its training and its
//! scores, and embedded in the program, so that it is available in any folder. It is described by
//! [`WorldDescriptor::champions`](foveate_envs::registry::WorldDescriptor::champions).

use foveate_envs::registry::Champion;
use foveate_registry::WORLDS;

use crate::RunError;
use crate::suggest;
use crate::tensors::TensorFile;
use crate::weights::AgentFile;

/// All bundled agents, those of a world in its order.
pub fn champions() -> impl Iterator<Item = &'static Champion> {
    WORLDS.iter().flat_map(|world| world.champions)
}

/// Whether there is a bundled agent for `world`.
pub fn has_champion(world: &str) -> bool {
    WORLDS.get(world).is_some_and(|world| !world.champions.is_empty())
}

/// The bundled agent of this name. One that is called like its world acts where no weights are named, and has no other name:
/// a world's name in place of weights is a slip.
pub fn find(name: &str) -> Option<&'static Champion> {
    named().find(|champion| champion.name == name)
}

/// The bundled agents that are named in place of weights.
pub fn named() -> impl Iterator<Item = &'static Champion> {
    champions().filter(|champion| WORLDS.get(champion.name).is_none())
}

/// The first bundled agent of `world`, and a label for it in place of a weight file's path.
///
/// # Errors
/// When there is none for this world.
pub fn champion(world: &str) -> Result<(AgentFile, String), RunError> {
    let Some(first) = WORLDS.get(world).and_then(|world| world.champions.first()) else {
        let known: Vec<&str> =
            WORLDS.iter().filter(|world| !world.champions.is_empty()).map(|world| world.name).collect();
        return Err(RunError::BadRequest {
            why: format!(
                "no trained agent for {world:?} comes with Foveate (there is one for: {});{} name a weight file or the \
                 folder of a run",
                known.join(", "),
                suggest::world(world)
            ),
        });
    };
    load(first)
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
        file.forget_world();
    }
    Ok((file, title))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use foveate_core::episode::EpisodeRules;
    use foveate_core::{ActMode, Experience};
    use foveate_envs::registry::{EnvRequest, WorldDescriptor};

    use super::*;
    use crate::replay::sha256_hex;
    use crate::trust::WorldFlags;
    use crate::workers::{Stop, Workers, default_workers};

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
            let found = find(champion.name).map(|found| found.about);
            assert_eq!(found, WORLDS.get(champion.name).is_none().then_some(champion.about));
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
        // Worlds in another process have tests of their own: `crates/foveate-cli/tests/take_cover.rs`.
        for (world, champion) in WORLDS.iter().filter(|world| !world.has_process).flat_map(of) {
            let name = champion.name;
            let (file, title) = load(champion).expect("it comes with us");
            let trained = file
                .world("champion")
                .map(|world| world.accept(&WorldFlags::default()).expect("a native world"));
            assert_eq!((title, trained.is_some()), (format!("{name} champion"), champion.as_trained));
            let agent = file.agent().expect("its layout fits");
            let request = trained.unwrap_or_else(|| EnvRequest { id: world.into(), ..EnvRequest::default() });
            assert_eq!(request.id, world, "{name}");
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
        let said = champion("moon").expect_err("no one drives there").to_string();
        assert!(
            said.contains("\"moon\"") && said.contains("car-racing") && said.contains("name a weight file")
        );
    }
}
