//! The checker finds planted faults, and reports none in a correct environment.

use foveate_gym::{Finding, Settings, Verdict, check, doctor};

use crate::common::{TOYS, python};

/// Checks the toy `name`; returns its faults, each with its description.
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
    let mut told = vec![];
    let checked = check(&settings, None, &mut |finding| told.push(finding.clone())).expect("it can be made");
    assert_eq!(checked.findings, told);
    let mut names: Vec<&str> = told.iter().map(|f| &*f.name).filter(|name| *name != "left out").collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "each is told once: {told:?}");
    told
}

/// Verdicts and descriptions of the findings called `name`.
fn words(found: &[Finding], name: &str) -> Vec<(Verdict, String)> {
    let named = found.iter().filter(|finding| finding.name == name);
    named.map(|finding| (finding.verdict, finding.words.clone())).collect()
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

/// Unsupported features and missing packages are reported but are no faults of the environment; neither is a
/// deterministic world, nor one whose episodes all have the same length.
#[test]
fn our_own_limits_are_no_faults() {
    if !python() {
        return;
    }
    let cases = [
        (
            "Unseen",
            "\"all\"",
            "sees",
            "not supported by Foveate: nothing in its observation is a picture or a number",
        ),
        ("Unseen", "\"all\"", "acts", "not supported by Foveate: its actions (action) are of the kind Text"),
        (
            "Unseen",
            "\"one of\"",
            "acts",
            "not supported by Foveate: its actions (action) are of the kind OneOf",
        ),
        ("Unseen", "\"one of\"", "left out", "agents do not see observation (OneOf)"),
        (
            "Bare",
            "\"draws\"",
            "render",
            "not checked: drawing needs a package that is not installed: No module named 'pygame",
        ),
        ("Bare", "\"fixed\"", "seeds", "all seeds give the same episode: where that is meant"),
        ("Bare", "\"fixed\"", "time limit", "every episode was terminated after 7 steps"),
        ("Bare", "\"common\"", "seeds", "its seed changes nothing: all that it draws is from"),
    ];
    for (name, how, finding, part) in cases {
        let found = findings(name, &[("arg.how", how)]);
        assert!(found.iter().all(|finding| finding.verdict != Verdict::Fault), "{name} {how}: {found:?}");
        let said = words(&found, finding);
        assert!(
            said.iter().any(|(verdict, words)| *verdict == Verdict::Note && words.contains(part)),
            "{name} {how}: {found:?}"
        );
    }
    // An environment that cannot run for lack of a package is not checked.
    let settings = [("path", TOYS), ("arg.how", "\"needs\"")];
    let settings = Settings::parse("foveate_toys:Toys/Bare-v0", settings).expect("good options");
    let said = check(&settings, None, &mut |_| ()).expect_err("a package is missing").to_string();
    assert!(said.contains("it was not checked: it needs a package that is not installed: no_such"), "{said}");
}

/// Finds the fault `flaw` under `name`, and only faults that follow from it.
#[track_caller]
fn finds(flaw: &str, name: &str, part: &str, and: &[&str]) {
    let found = faults("Flawed", &[("arg.flaw", &format!("\"{flaw}\"")), ("timeout", "2")]);
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
    finds("closes badly", "close", "close() raised ValueError", &[]);
    finds("ignores seed", "seeds", "it ignores its seed", &[]);
    finds("text reward", "reward", "the reward is '1.5' (str) in step 1", &[]);
    finds("no flag", "flags", "truncated is None in step 1", &[]);
    finds("hangs", "hangs", "step 7 of seed 2 took longer than 2 s", &[]);
    finds(
        "dies",
        "dies",
        "step 7 of seed 2: its worker process ended: foveate: the worker left with exit",
        &[],
    );
    // It may be intended: it is reported, but not as a fault.
    let found = findings("Flawed", &[("arg.flaw", "\"time limit\"")]);
    let [(verdict, said)] = &words(&found, "time limit")[..] else { panic!("{found:?}") };
    assert!(
        *verdict == Verdict::Note && said.contains("after 30 steps: should that be a time limit"),
        "{said}"
    );
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
