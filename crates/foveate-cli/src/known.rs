//! Names from the registries, for completions.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use foveate::{PRESETS, SHIFTS, WORLDS};

/// A name that a registry may know. Any other text passes as well: families as `gym:ID` have names of their own,
/// and the registry's own error is the better one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known(fn() -> BTreeSet<&'static str>);

impl Known {
    /// Names of worlds, without families.
    pub(crate) const WORLD: Known =
        Known(|| WORLDS.iter().filter(|world| world.family.is_none()).map(|world| world.name).collect());
    /// Names of pictures, of any world.
    pub(crate) const PICTURE: Known =
        Known(|| WORLDS.iter().flat_map(|world| world.pictures).map(|picture| picture.name).collect());
    /// Names of variants, of any world.
    pub(crate) const VARIANT: Known =
        Known(|| WORLDS.iter().flat_map(|world| world.variants).map(|variant| variant.name).collect());
    /// Names of shifts.
    pub(crate) const SHIFT: Known = Known(|| SHIFTS.names().into_iter().collect());
    /// Names of presets.
    pub(crate) const PRESET: Known = Known(|| PRESETS.names().into_iter().collect());
}

impl TypedValueParser for Known {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap_complete::{Shell, generate};

    use super::*;
    use crate::Cli;

    #[test]
    fn completions_offer_every_name_and_help_does_not_list_them() {
        let mut text = vec![];
        generate(Shell::Bash, &mut Cli::command(), "foveate", &mut text);
        let text = String::from_utf8(text).expect("UTF-8");
        for Known(names) in [Known::WORLD, Known::PICTURE, Known::VARIANT, Known::SHIFT, Known::PRESET] {
            let names = names();
            assert!(names.len() > 1);
            for name in names {
                assert!(text.split_whitespace().any(|word| word.trim_matches(['"', '\'']) == name), "{name}");
            }
        }
        for command in Cli::command().get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(!help.contains("possible values: bar"), "{help}");
        }
    }
}
