//! The trained agents bundled with Foveate, used when a user names no weights.
//!
//! Each is a weight file of `foveate train`, stored in `champions/` beside a card with its training and its
//! scores, and embedded in the program, so that it is available in any folder. It runs in the unmodified
//! world with the world's default picture, whatever picture it was trained with.

use foveate_registry::WORLDS;

use crate::RunError;
use crate::suggest;
use crate::tensors::TensorFile;
use crate::weights::AgentFile;

/// Whether there is a bundled agent for `world`.
pub fn has_champion(world: &str) -> bool {
    WORLDS.get(world).is_some_and(|world| world.champion.is_some())
}

/// The names of the worlds with a bundled agent.
fn worlds() -> Vec<&'static str> {
    WORLDS.iter().filter(|world| world.champion.is_some()).map(|world| world.name).collect()
}

/// The bundled agent of `world`, and a label for it in place of a weight file's path.
///
/// # Errors
/// When there is none for this world.
pub fn champion(world: &str) -> Result<(AgentFile, String), RunError> {
    let Some(bytes) = WORLDS.get(world).and_then(|world| world.champion) else {
        return Err(RunError::BadRequest {
            why: format!(
                "no trained agent for {world:?} comes with Foveate (there is one for: {});{} name a weight file or the \
                 folder of a run",
                worlds().join(", "),
                suggest::world(world)
            ),
        });
    };
    let title = format!("{world} champion");
    let broken = |why: String| RunError::BadRequest { why: format!("{title}: {why}; build Foveate anew") };
    let tensors = TensorFile::from_bytes(bytes).map_err(|error| broken(error.to_string()))?;
    let mut file = AgentFile::from_tensors(tensors).map_err(|error| broken(error.to_string()))?;
    file.forget_world();
    Ok((file, title))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use foveate_core::episode::EpisodeRules;
    use foveate_envs::registry::EnvRequest;

    use super::*;
    use crate::evaluate::evaluate_each;
    use crate::replay::sha256_hex;
    use crate::workers::{Stop, Workers, default_workers};

    /// The card of a bundled agent.
    fn card(world: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../champions");
        fs::read_to_string(folder.join(format!("{world}.md"))).expect("every champion has a card")
    }

    #[test]
    fn the_card_is_that_of_the_file() {
        for world in worlds() {
            let bytes = WORLDS.get(world).and_then(|world| world.champion).expect("it has one");
            let sum = sha256_hex(bytes);
            assert!(card(world).contains(&sum), "champions/{world}.md must name the file's SHA-256, {sum}");
        }
    }

    #[test]
    fn the_weights_fit_and_drive_as_the_card_says() {
        for world in worlds() {
            let (file, title) = champion(world).expect("it comes with us");
            assert_eq!((title, file.world("champion")), (format!("{world} champion"), None));
            let agent = file.agent().expect("its layout fits");
            let env = foveate_registry::make(&EnvRequest { id: world.into(), ..EnvRequest::default() })
                .expect("its world exists");
            // Reads the rows `| seed | return | steps |` of the card.
            let card = card(world);
            let rows = card.lines().skip_while(|line| !line.starts_with("| seed | return | steps |"));
            let rows: Vec<Vec<&str>> = rows
                .skip(2)
                .take_while(|line| line.starts_with('|'))
                .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
                .collect();
            assert!(rows.len() >= 3, "the card lists episodes to check: {rows:?}");
            let seeds = rows.iter().map(|row| row[0].parse::<u64>().expect("a seed"));
            let mut workers = Workers::new(&*env, &*agent, default_workers(), Stop::default());
            let results =
                evaluate_each(&mut workers, file.params(), EpisodeRules::WHOLE, seeds).expect("it drives");
            for (row, result) in rows.iter().zip(results) {
                let driven = [format!("{:.2}", result.total), result.steps.to_string()];
                assert_eq!(driven, row[1..], "{world}, seed {}", row[0]);
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
