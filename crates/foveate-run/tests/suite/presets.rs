//! The presets have valid recipes that suit the number of workers.

use foveate_registry::PRESETS;
use foveate_run::config::TrainConfig;
use foveate_run::initial;
use foveate_train::balance::warning;
use foveate_train::{Recipe, Training};

#[test]
fn the_presets_pass_their_own_check_and_survive_toml() {
    for preset in PRESETS.iter() {
        // The settings that presets for many worlds leave to the world.
        let (name, open) = (preset.name, preset.open);
        let sets: &[&str] =
            if open { &["env.id=gym:X-v0", "env.picture=world", "recipe.max_steps=400"] } else { &[] };
        let recipe = TrainConfig::load(name, None, sets).expect(name).recipe;
        recipe.check().expect(name);
        let text = toml::to_string(&recipe).expect("plain values");
        assert_eq!(toml::from_str::<Recipe>(&text).expect("its own"), recipe, "{name}");
        assert!(
            toml::from_str::<Recipe>(&format!("colour = 3\n{text}")).is_err(),
            "a misspelt key is an error"
        );
    }
}

#[test]
fn the_published_recipe_begins() {
    let config = TrainConfig::load("paper", None, &[""; 0]).expect("the preset is right");
    let settings = serde_json::to_value(&config.agent.config).expect("plain");
    let fresh = initial::fresh(&config.recipe.init, &config.agent.name, &settings).expect("fine");
    let mut training = Training::new(config.recipe, config.seed, fresh, None).expect("fine");
    let work = training.work().expect("a generation");
    assert_eq!((work.weights.len(), work.weights.params(), work.jobs.len()), (256, 3667, 4096));
    assert_eq!((work.rules.max_steps, work.rules.patience), (1000, Some(20)));
    let seeds: std::collections::BTreeSet<u64> = work.jobs.iter().map(|job| job.env_seed).collect();
    assert_eq!(seeds.len(), 4096, "every rollout has a track of its own");
}

fn said(preset: &str, sets: &[&str], workers: usize) -> Option<String> {
    warning(&TrainConfig::load(preset, None, sets).expect("a preset").recipe, 3667, workers)
}

#[test]
fn the_default_recipe_fits_four_workers() {
    for preset in ["laptop", "evolution", "take-cover"] {
        for workers in 1..=4 {
            assert_eq!(said(preset, &[], workers), None, "{preset} on {workers}");
        }
    }
    assert_eq!(said("paper", &[], 128), None, "256 genomes of 16 tracks");
    let expect = "stage \"tries\" drives 32 rollouts a generation on 16 workers, 2.0 for each; with fewer than 8 they \
                  wait for one another: set recipe.stage.0.population to 128 or more, which trains differently, or \
                  workers to 4 or fewer, which gives the same digits";
    assert_eq!(said("laptop", &[], 16).as_deref(), Some(expect));
}

#[test]
fn rollouts_count_not_genomes() {
    let tracks = ["recipe.stage.0.tracks=4"];
    assert_eq!(said("laptop", &tracks, 16), None);
    let text = said("laptop", &tracks, 17).expect("128 rollouts on 17 workers");
    assert!(text.contains("128 rollouts") && text.contains("population to 34 or more"), "{text}");
    // Rollouts of the recommended weights count, too.
    let replay = "recipe.stage.0.replay={share=0.5,keep=8,judge=\"mean\"}";
    assert_eq!(said("laptop", &["recipe.stage.0.population=31", replay], 4), None);
    let text = said("laptop", &["recipe.stage.0.population=4"], 2).expect("4 rollouts on 2 workers");
    assert!(text.contains("workers to 1, which"), "{text}");
    assert_eq!(said("laptop", &["recipe.stage.0.population=4"], 1), None, "no one waits");
}
