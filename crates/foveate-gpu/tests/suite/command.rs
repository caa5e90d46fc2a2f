//! The command, as far as it goes without a GPU: everything that a user can get wrong is said before one is needed.

use std::fs;
use std::path::Path;
use std::process::Command;

use foveate_run::config::UserSettings;
use foveate_run::fit;
use foveate_run::trust::WorldSpec;

/// The configuration of a run in `empty-5x5`, with another world in its place.
fn config(id: &str) -> String {
    let flags = WorldSpec { id: Some("empty-5x5".into()), ..WorldSpec::default() };
    let said = UserSettings::read(None, &[] as &[&str], &flags).expect("nothing");
    let mut config = fit::configure(Some("s3ta-door"), &said).expect("it fits").config;
    config.env.id = id.into();
    config.to_toml()
}

/// Runs it in `folder`, and expects an error of one line.
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_foveate-gpu"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{args:?} succeeded");
    assert!(said.starts_with("error: ") && said.trim_end().lines().count() == 1, "{args:?}: {said}");
    said
}

#[test]
fn mistakes_are_said_before_a_gpu_is_needed() {
    let dir = tempfile::tempdir().expect("a folder");
    let of = dir.path();
    let train = |rest: &[&str]| {
        refused(of, &[&["train", "empty-5x5", "--name", "a", "--preset", "s3ta-door"], rest].concat())
    };
    assert!(refused(of, &["train", "atari", "--name", "../a"]).contains("letters, digits"));
    assert!(refused(of, &["train", "nowhere", "--name", "a"]).contains("no environment"));
    assert!(refused(of, &["train", "empty-5x5", "--name", "a"]).contains("s3ta-door"));
    assert!(train(&["--option", "game"]).contains("NAME=VALUE"));
    assert!(train(&["--set", "recipe.stage.0.unrol=3"]).contains("unrol"));
    assert!(train(&[]).contains("vtrace alone"));
    assert!(
        refused(of, &["train", "empty-5x5", "--name", "a", "--preset", "relational"]).contains("s3ta alone")
    );
    assert!(!of.join("runs").exists(), "a run that was refused has a folder");
    assert!(refused(of, &["eval", "none.safetensors"]).contains("none.safetensors"));
}

#[test]
fn a_run_keeps_its_world_and_its_settings() {
    let dir = tempfile::tempdir().expect("a folder");
    let run = dir.path().join("runs/a");
    fs::create_dir_all(&run).expect("a folder");
    let refused = |args: &[&str]| refused(dir.path(), &[&["train"], args, &["--name", "a"]].concat());
    fs::write(run.join("config.toml"), config("gym:os:Evil-v0")).expect("written");
    assert!(refused(&[]).contains("trust"), "a file's world ran: {}", refused(&[]));
    assert!(refused(&["empty-5x5"]).contains("not in empty-5x5"));
    assert!(refused(&["--set", "seed=2"]).contains("its own settings"));
    fs::write(run.join("config.toml"), vec![b'#'; (1 << 20) + 1]).expect("written");
    assert!(refused(&[]).contains("no configuration"));
}
