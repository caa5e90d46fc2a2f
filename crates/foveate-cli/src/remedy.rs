//! Hints with flags and commands for errors of libraries, which know no flags.

/// A phrase of a library's message, and the helpful flags or command.
const REMEDIES: &[(&str, &str)] = &[
    ("no agent is called", "`foveate list agents` shows them"),
    ("no environment is called", "`foveate list worlds` shows them"),
    ("has no expert to learn from", "--preset evolution does without one"),
    (
        "is not in this build; build it with the Cargo feature `eigen`",
        "`cargo run --release --features eigen -- ...` does",
    ),
];

/// `message` with the hint of this command, unless it already contains it.
pub(crate) fn with_remedy(message: &str) -> String {
    let remedies =
        REMEDIES.iter().filter(|(phrase, remedy)| message.contains(phrase) && !message.contains(remedy));
    remedies.fold(message.to_owned(), |text, (_, remedy)| format!("{text}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use foveate::core::{EnvError, PolicyError};

    use super::*;

    #[test]
    fn messages_of_libraries_get_the_flags_that_help() {
        let (given, known) = ("x".to_owned(), "a, b".to_owned());
        let agent = PolicyError::UnknownAgent { given: given.clone(), known: known.clone() };
        let world = EnvError::UnknownEnv { given, known };
        let expert = EnvError::NoExpert { env: "x".into() };
        for (message, want) in [
            (agent.to_string(), "`foveate list agents`"),
            (world.to_string(), "`foveate list worlds`"),
            (expert.to_string(), "--preset evolution"),
        ] {
            assert!(!message.contains(want), "{message}");
            let line = with_remedy(&message);
            assert!(line.starts_with(&message) && line.contains(want), "{line}");
            assert_eq!(with_remedy(&line), line, "once is enough");
        }
        assert_eq!(with_remedy("cannot read a"), "cannot read a");
    }
}
