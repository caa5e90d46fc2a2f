//! Any text as what weights note about their world, as a configuration and as a kept failure: read or refused, never a
//! panic, and no world comes of it but a native one as long as the command line says nothing.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use foveate_run::champion::champion;
use foveate_run::config::TrainConfig;
use foveate_run::failure::Failure;
use foveate_run::trust::{WorldSpec, is_native};
use foveate_run::weights::AgentFile;

static AGENT: LazyLock<AgentFile> = LazyLock::new(|| champion("car-racing").expect("it is built in").0);
/// Where the texts are files; every fuzzing process has its own.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("foveate-fuzz-{}", std::process::id())));

/// A failure whose world is to be filled in.
const FAILURE: &str = r#"{"format":"foveate-failure-1","version":"","what":"","generation":1,"genome":0,"episode":0,
"env_seed":1,"step":1,"max_steps":5,"patience":null,"agent":{"name":"attention-agent"},"weights":"","actions":[],"env":"#;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Some(world) = AGENT.clone().note("world", text).world("a file")
        && let Ok(request) = world.accept(&WorldSpec::default())
    {
        assert!(is_native(&request.id), "{request:?}");
    }
    for config in [text.to_owned(), format!("[env]\n{text}")] {
        fs::write(&*FILE, config).expect("writable");
        for config in [TrainConfig::load("laptop", Some(&FILE), &[""; 0]), TrainConfig::read(&FILE)] {
            if let Ok(request) = config.and_then(|config| config.env.request()) {
                assert!(is_native(&request.id), "{request:?}");
            }
        }
    }
    for failure in [text.to_owned(), format!("{FAILURE}{text}}}")] {
        fs::write(&*FILE, failure).expect("writable");
        if let Ok(request) = Failure::read(&FILE).and_then(|failure| failure.env.request()) {
            assert!(is_native(&request.id), "{request:?}");
        }
    }
});
