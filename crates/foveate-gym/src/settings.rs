//! Settings of an environment.

use std::collections::BTreeMap;
use std::time::Duration;

use foveate_core::hint::Setting;
use foveate_core::near::hint;
use serde_json::Value;

use crate::error::GymError;
use crate::hosted::HostedHandle;

/// Options by name: description and default.
pub const OPTIONS: [(&str, &str); 9] = [
    ("arg.NAME", "an argument of the environment itself, as NAME=VALUE"),
    ("timeout", "seconds until a worker that does not answer a reset or step counts as hung (default: 60)"),
    ("start_timeout", "seconds until a worker that does not begin counts as hung (default: 180)"),
    ("memory", "megabytes that a worker may use before it is replaced (default: 4000)"),
    ("image", "which part of a Dict observation is the picture, by its key (default: the first)"),
    (
        "gym_wrapper",
        "Gymnasium wrappers around the environment, as in minigrid.wrappers.RGBImgObsWrapper(tile_size=12); several \
         with + between them, the innermost first (default: none)",
    ),
    ("path", "folder that Python looks for packages in before all others (default: none)"),
    (
        "show",
        "first or all: of an observation with several pictures the first, or all of them side by side, as an ONNX model sees \
         them (default: first)",
    ),
    (
        "actions",
        "space or float64: numbers of the type that the action space names, or unrounded (default: space)",
    ),
];

/// A Python program that a worker runs before it makes the environment, for environments bundled with
/// Foveate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Public name of the environment.
    pub name: &'static str,
    /// Python source.
    pub source: &'static str,
}

/// Settings of an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Name of the environment, as `gymnasium.make` takes it.
    pub id: String,
    /// Further arguments of `gymnasium.make`.
    pub args: BTreeMap<String, Value>,
    /// Time limit of a reset or a step.
    pub timeout: Duration,
    /// Time limit for the start of a worker.
    pub start_timeout: Duration,
    /// Memory in megabytes above which a worker is replaced.
    pub memory: u64,
    /// Name of the part of the observation that is the picture.
    pub image: Option<String>,
    /// Use the rendered picture as the picture of the observation, whatever else the observation contains.
    pub drawn: bool,
    /// Gymnasium wrappers around the environment.
    pub wrapper: Option<String>,
    /// Folders that Python searches for packages first.
    pub path: Option<String>,
    /// Show the whole observation, also several pictures side by side: agents that take it as it is need all of it.
    pub whole: bool,
    /// True if actions are passed as `float64` regardless of the action space.
    pub exact_actions: bool,
    /// Program that a worker runs before it makes the environment.
    pub program: Option<Program>,
    /// An environment of this program, which threads of its own serve in place of worker processes.
    pub hosted: Option<HostedHandle>,
}

impl Settings {
    /// The environment `id` with default settings.
    pub fn new(id: impl Into<String>) -> Self {
        Settings {
            id: id.into(),
            args: BTreeMap::new(),
            timeout: Duration::from_mins(1),
            start_timeout: Duration::from_mins(3),
            memory: 4000,
            image: None,
            drawn: false,
            wrapper: None,
            path: None,
            whole: false,
            exact_actions: false,
            program: None,
            hosted: None,
        }
    }

    /// Public name of the environment: `gym:ID`, except for those bundled with Foveate.
    pub fn name(&self) -> String {
        self.program
            .map_or_else(|| format!("{}{}", crate::PREFIX, self.id), |program| program.name.to_owned())
    }

    /// The environment `id` with options by name, as a user writes them.
    ///
    /// An argument of the environment is parsed as JSON if possible, and is a string otherwise:
    /// `arg.lap=0.9`, `arg.mode=hard`.
    ///
    /// # Errors
    /// When an option is unknown or its value is invalid.
    pub fn parse<'a>(
        id: &str,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, GymError> {
        let mut settings = Settings::new(id);
        settings.set(options)?;
        Ok(settings)
    }

    /// Sets options by name, as [`Settings::parse`] reads them.
    ///
    /// # Errors
    /// When an option is unknown or its value is invalid.
    pub fn set<'a>(&mut self, options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), GymError> {
        let own = self.name();
        let bad = |why: String| GymError::Setting { id: own.clone(), why };
        let settings = self;
        for (name, value) in options {
            let whole = |from: u64, to: u64| {
                let number = value.parse().ok().filter(|n| (from..=to).contains(n));
                number.ok_or_else(|| bad(format!("{name} is {value:?}; give a number from {from} to {to}")))
            };
            match name {
                "timeout" => settings.timeout = Duration::from_secs(whole(1, 86_400)?),
                "start_timeout" => settings.start_timeout = Duration::from_secs(whole(1, 86_400)?),
                "memory" => settings.memory = whole(1, 1 << 24)?,
                "image" => settings.image = Some(value.to_owned()),
                "gym_wrapper" => settings.wrapper = Some(value.to_owned()),
                "path" => settings.path = Some(value.to_owned()),
                "show" => {
                    settings.whole = match value {
                        "first" => false,
                        "all" => true,
                        _ => return Err(bad(format!("show is {value:?}; choose first or all"))),
                    }
                }
                "actions" => {
                    settings.exact_actions = match value {
                        "space" => false,
                        "float64" => true,
                        _ => return Err(bad(format!("actions is {value:?}; choose space or float64"))),
                    }
                }
                _ => match name.strip_prefix("arg.") {
                    Some(arg) if !arg.is_empty() => {
                        let value =
                            serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
                        settings.args.insert(arg.to_owned(), value);
                    }
                    _ => {
                        let known = OPTIONS.map(|(name, _)| name).join(", ");
                        return Err(bad(format!(
                            "there is no option {name:?};{} choose from: {known} (arguments of the environment itself \
                             go with {})",
                            hint(name, &known),
                            Setting::Argument
                        )));
                    }
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options() {
        let parse = |pairs: &[(&str, &str)]| Settings::parse("X-v0", pairs.iter().copied());
        let all = [
            ("timeout", "5"),
            ("start_timeout", "7"),
            ("memory", "100"),
            ("image", "screen"),
            ("gym_wrapper", "a.B"),
            ("path", "/toys"),
            ("show", "all"),
            ("actions", "float64"),
            ("arg.lap", "0.9"),
            ("arg.mode", "hard"),
            ("arg.text", "\"3\""),
            ("arg.off", "false"),
        ];
        let settings = parse(&all).expect("fine");
        let args = [
            ("lap".to_owned(), 0.9.into()),
            ("mode".to_owned(), "hard".into()),
            ("text".to_owned(), "3".into()),
            ("off".to_owned(), false.into()),
        ];
        let expect = Settings {
            id: "X-v0".into(),
            args: args.into(),
            timeout: Duration::from_secs(5),
            start_timeout: Duration::from_secs(7),
            memory: 100,
            image: Some("screen".into()),
            drawn: false,
            wrapper: Some("a.B".into()),
            path: Some("/toys".into()),
            whole: true,
            exact_actions: true,
            program: None,
            hosted: None,
        };
        assert_eq!(settings, expect);
        assert_eq!(parse(&[]).expect("fine"), Settings::new("X-v0"));
        for (name, value, part) in [
            ("timeout", "0", "timeout is \"0\"; give a number from 1 to 86400"),
            ("memory", "many", "memory is \"many\""),
            ("actions", "float32", "choose space or float64"),
            ("show", "both", "choose first or all"),
            ("continuous", "false", "there is no option \"continuous\"; choose from: arg.NAME, timeout"),
            ("arg.", "1", "there is no option \"arg.\""),
        ] {
            let said = parse(&[(name, value)]).expect_err(name).to_string();
            assert!(said.starts_with("gym:X-v0: ") && said.contains(part), "{said}");
        }
    }
}
