//! Toy worlds for tests.

#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::{Arc, Mutex};

use foveate_gym::{Gym, GymError, GymWorld, Settings};

/// The folder with the toys' package.
pub(crate) const TOYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/toys");

/// Whether there is a Python to test with; prints a message if not.
pub(crate) fn python() -> bool {
    foveate_toy::needs::python().is_some()
}

/// The notices received.
pub(crate) type Told = Arc<Mutex<Vec<String>>>;

/// The toy `name` with options.
pub(crate) fn try_toy(name: &str, options: &[(&str, &str)]) -> (Result<Arc<Gym>, GymError>, Told) {
    let id = format!("foveate_toys:Toys/{name}-v0");
    let all = [("path", TOYS)].into_iter().chain(options.iter().copied());
    try_settings(Settings::parse(&id, all).expect("good options"))
}

/// The environment for these settings.
pub(crate) fn try_settings(settings: Settings) -> (Result<Arc<Gym>, GymError>, Told) {
    let told = Told::default();
    let ear = Arc::clone(&told);
    let notice = move |text: &str| ear.lock().expect("no one panics with it").push(text.to_owned());
    (Gym::new(settings, Arc::new(notice)), told)
}

/// The toy `name`, with its rendered picture as observation.
pub(crate) fn try_drawn(name: &str) -> Result<GymWorld, GymError> {
    let settings = Settings::parse(&format!("foveate_toys:Toys/{name}-v0"), [("path", TOYS)]);
    let settings = Settings { drawn: true, ..settings.expect("good options") };
    try_settings(settings).0.map(GymWorld::new)
}

/// The toy `name`, which must work.
pub(crate) fn toy(name: &str, options: &[(&str, &str)]) -> GymWorld {
    GymWorld::new(try_toy(name, options).0.expect("the toy can be made"))
}
