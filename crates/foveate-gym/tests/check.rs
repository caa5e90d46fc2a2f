//! The checker finds planted faults, and no fault where there is none.

mod common;

use foveate_gym::{Finding, Settings, Verdict, check, doctor};

use common::{TOYS, python};

/// Checks the toy `name`; returns its faults, each with its words.
fn faults(name: &str, options: &[(&str, &str)]) -> Vec<(String, String)> {
    let found = findings(name, options);
    let faults = found.into_iter().filter(|finding| finding.verdict == Verdict::Fault);
    faults.map(|finding| (finding.name, finding.words)).collect()
}

/// Checks the toy `name`.
fn findings(name: &str, options: &[(&str, &str)]) -> Vec<Finding> {
    let id = format!("foveate_toys:Toys/{name}-v0");
    let all = [("path", TOYS)].into_iter().chain(options.iter().copied());
    let settings = Settings::parse(&id, all).expect("good options");
    check(&settings, None).expect("it can be made").findings
}

#[test]
fn what_draws_from_the_common_generators_is_noted() {
    if !python() {
        return;
    }
    for (flaw, expect) in [("common", 1), ("none", 0)] {
        let found = findings("Flawed", &[("arg.flaw", flaw)]);
        assert_eq!(found.iter().filter(|f| f.name == "common generators").count(), expect, "{found:?}");
    }
}

#[test]
fn good_environments_have_no_fault() {
    if !python() {
        return;
    }
    for name in ["Toy", "Picture", "Mixed", "Flawed", "Grey"] {
        assert_eq!(faults(name, &[]), [], "{name}");
    }
}

/// The fault `flaw` must be found under `name`, and nothing else but what follows from it.
#[track_caller]
fn finds(flaw: &str, name: &str, part: &str, and: &[&str]) {
    let found = faults("Flawed", &[("arg.flaw", &format!("\"{flaw}\""))]);
    assert!(
        found.iter().any(|(found, words)| found == name && words.contains(part)),
        "{flaw}: {name} with {part:?} is not among {found:?}"
    );
    for (found, words) in &found {
        assert!(found == name || and.contains(&&**found), "{flaw}: also {found}: {words}");
    }
}

#[test]
fn planted_faults_are_found() {
    if !python() {
        return;
    }
    let repeats = &["fresh", "aliases", "render"];
    finds("clock", "repeats", "another observation in step 0", repeats);
    finds("hidden", "repeats", "another observation", repeats);
    finds("carried", "repeats", "another observation", repeats);
    finds("sets", "processes", "the order of a set", &[]);
    finds("alias", "copies", "in step 1 of seed 1", &[]);
    finds("reads back", "aliases", "overwritten: another observation", &[]);
    finds("keeps action", "aliases", "overwritten: another observation", &[]);
    finds("changes action", "action", "the action was changed in step 1", &[]);
    finds("nan", "finite", "observation has a NaN or an infinity in step 7 of seed 1", &[]);
    finds(
        "bounds",
        "space",
        "observation[0] is -11.0 in step 7 of seed 1; its space says -10.0 to 1000.0",
        &[],
    );
    finds("shape", "space", "shape (2, 1)", &[]);
    finds("dtype", "space", "is float64", &[]);
    finds("reward", "reward", "is nan in step 5", &[]);
    finds("reward array", "reward", "an array of shape (1,)", &[]);
    finds("flags", "flags", "terminated is 0 in step 1", &[]);
    finds("time limit", "endings", "after 30 steps whatever happens", &[]);
    finds("autoreset anew", "final observation", "the beginning of a new episode", &[]);
    finds("autoreset", "final observation", "the beginning of a new episode", &[]);
    finds("render", "render", "drawing changes the episode", &[]);
    finds("leak", "memory", "that do not come back", &[]);
    finds("info", "plays", "step() gave", &[]);
}

#[test]
fn the_doctor_says_what_works() {
    if !python() {
        return;
    }
    let doctor = doctor().expect("the tests' Python is well");
    let family = |name: &str| doctor.families.iter().find(|family| family.name == name).expect("known");
    assert!(family("classic control").works, "{doctor:?}");
    for family in &doctor.families {
        assert_eq!(family.works, family.why.is_empty(), "{family:?}");
        assert!(family.works || family.why.contains("pip install"), "{family:?}");
    }
    assert!(!doctor.numpy.is_empty() && doctor.named_by == "FOVEATE_PYTHON");
}
