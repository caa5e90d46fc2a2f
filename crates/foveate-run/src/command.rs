//! Settings as arguments of the command: names from the registries for completions and help, and the options of a world. Only
//! the command asks for this module; what it shows is the command's.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use foveate_envs::registry::WorldDescriptor;
use foveate_envs::shift::SHIFT_SETS;
use foveate_registry::{PRESETS, SHIFTS, WORLDS, WRAP, default_world, presets_of};

use crate::trust::WorldOptions;

/// A name that a registry may know. Any other text passes as well: families as `gym:ID` have names of their own,
/// and the registry's own error is the better one.
#[derive(Debug, Clone, Copy)]
pub struct Known(fn() -> BTreeSet<&'static str>);

impl Known {
    /// Names of worlds, without families.
    pub const WORLD: Known =
        Known(|| WORLDS.iter().filter(|world| world.family.is_none()).map(|world| world.name).collect());
    /// Names of pictures, of any world.
    pub const PICTURE: Known =
        Known(|| WORLDS.iter().flat_map(|world| world.pictures).map(|picture| picture.name).collect());
    /// Names of variants, of any world.
    pub const VARIANT: Known =
        Known(|| WORLDS.iter().flat_map(|world| world.variants).map(|variant| variant.name).collect());
    /// Names of shifts.
    pub const SHIFT: Known = Known(|| SHIFTS.names().into_iter().collect());
    /// Names of presets.
    pub const PRESET: Known = Known(|| PRESETS.names().into_iter().collect());

    /// The names.
    pub fn names(self) -> BTreeSet<&'static str> {
        (self.0)()
    }
}

impl TypedValueParser for Known {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names().into_iter().map(PossibleValue::new)))
    }
}

/// The help of `--no-sticky`.
pub const NO_STICKY: &str = "Play an Atari game without sticky actions: it is deterministic then [default: they stick with \
                             probability 0.25, or as `--option sticky` or the run says]";

/// The flags of [`WorldOptions`].
#[derive(Args)]
struct OptionFlags {
    /// An option of the world, as in `continuous=false`; may be given several times
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_value, help_heading = "World")]
    options: Vec<(String, String)>,
    /// An argument of a Gymnasium environment, as in `lap_complete_percent=0.9`; may be given several times
    #[arg(long = "env-arg", value_name = "KEY=VALUE", value_parser = key_value, help_heading = "World")]
    env_args: Vec<(String, String)>,
    /// Wrappers between world and agent, as in `grey+resize:64x64+stack:3`; `foveate list wrappers` shows them
    #[arg(long = "wrap", value_name = "NAME:VALUE", help_heading = "World")]
    wrap: Option<String>,
}

impl Args for WorldOptions {
    fn augment_args(command: Command) -> Command {
        OptionFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        OptionFlags::augment_args_for_update(command)
    }
}

impl FromArgMatches for WorldOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let OptionFlags { options, env_args, wrap } = OptionFlags::from_arg_matches(matches)?;
        let wrap = wrap.map(|wrap| (WRAP.to_owned(), wrap));
        let args = env_args.into_iter().map(|(name, value)| (format!("arg.{name}"), value));
        Ok(options.into_iter().chain(wrap).chain(args).collect())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

/// Parses `key=value`.
///
/// # Errors
/// When there is no `=`, or nothing before it.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as key=value".into()),
    }
}

/// The help of `--env`.
pub fn env() -> String {
    let families =
        WORLDS.iter().filter_map(|world| Some(format!(", and {} is {}", world.name, world.family?.members)));
    format!(
        "The world; `foveate list` shows them{} [default: that of the weights, or {}]",
        families.collect::<String>(),
        default_world().name
    )
}

/// The help of `--picture`.
pub fn picture() -> String {
    let mut rendered: Vec<(&str, Vec<&str>)> = Vec::new();
    for world in WORLDS.iter() {
        let Some(picture) = world.fallback_picture else { continue };
        match rendered.iter_mut().find(|(other, _)| *other == picture) {
            Some((_, worlds)) => worlds.push(world.name),
            None => rendered.push((picture, vec![world.name])),
        }
    }
    let rendered = rendered
        .iter()
        .map(|(picture, worlds)| format!("; for {}, `{picture}` is the rendered one", worlds.join(", ")));
    format!(
        "The picture that the agent sees{} [default: that of the weights or the configuration, or the world's own]",
        rendered.collect::<String>()
    )
}

/// The default presets of a world; those of a family depend on the observations of its worlds.
pub fn usual_presets(world: &WorldDescriptor) -> String {
    let presets = presets_of(world);
    if world.family.is_some() {
        let fitted: Vec<&str> =
            presets.iter().filter(|preset| preset.open).map(|preset| preset.name).collect();
        return format!("{} for {}, by its observations", fitted.join(" or "), world.name);
    }
    format!("{} for {}", presets.first().map_or("none", |preset| preset.name), world.name)
}

/// The help of `--preset`.
pub fn preset() -> String {
    let usual: Vec<String> = WORLDS.iter().map(usual_presets).collect();
    format!("Base configuration; other options override it [default: {}]", usual.join("; "))
}

/// Variants that need a value from the user, and are therefore not among all variants.
fn incomplete_variants() -> String {
    let variants = WORLDS.iter().flat_map(|world| world.variants).filter_map(|variant| {
        let parameter = variant.parameters.iter().find(|parameter| parameter.default.is_empty())?;
        Some(format!("`{}`, which needs a value for `{}`", variant.name, parameter.name))
    });
    variants.collect::<Vec<_>>().join(", and ")
}

/// The help of `--each-variant`.
pub fn each_variant() -> String {
    let incomplete = incomplete_variants();
    format!("Evaluate the unmodified world and each of its variants in one table, except {incomplete}")
}

/// The help of `--shifts`.
pub fn shift_rows() -> String {
    let sets = SHIFT_SETS.names().join(", ");
    format!(
        "Shifts and sets of shifts ({sets}), separated by commas, as in `noise,blob:5:x=0.3,hue+blur`; all (every shift that \
         fits the world) or none"
    )
}

/// The help of `--variants`.
pub fn variants() -> String {
    let incomplete = incomplete_variants();
    format!("Variants of the world, separated by commas; all (except {incomplete}) or none")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use foveate_envs::registry::EnvRequest;

    use crate::trust::{FileWorld, WorldSpec};

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        world: WorldSpec,
    }

    #[test]
    fn flags_come_before_notes_and_notes_before_defaults() {
        let noted = EnvRequest {
            id: "car-racing".into(),
            picture: Some("fast".into()),
            variants: vec!["bar".into()],
            options: [("max_steps".into(), "50".into())].into(),
            ..EnvRequest::default()
        };
        let request = |flags: &[&str], noted: Option<&EnvRequest>| {
            let noted = noted.map(|noted| FileWorld::new(noted.clone(), "a file"));
            let Arguments { world } = Arguments::parse_from([&["x"], flags].concat());
            noted.map_or_else(
                || world.request(),
                |noted| noted.accept(&world).expect("native, or named by flags"),
            )
        };
        let plain = EnvRequest { id: "car-racing".into(), ..EnvRequest::default() };
        assert_eq!(request(&[], None), plain);
        assert_eq!(request(&[], Some(&noted)), noted);
        assert_eq!(
            request(&["--env", "car-racing", "--picture", "exact", "--variant", "blob"], Some(&noted)),
            EnvRequest { picture: Some("exact".into()), variants: vec!["blob".into()], ..noted.clone() }
        );
        assert_eq!(request(&["--option", "max_steps = 7"], Some(&noted)).options["max_steps"], "7");
        assert_eq!(request(&["--env", "other"], Some(&noted)), EnvRequest { id: "other".into(), ..plain });
        assert!(Arguments::try_parse_from(["x", "--option", "max_steps"]).is_err());
        let gym = request(
            &["--env", "gym:X-v0", "--env-arg", "lap=0.5", "--option", "timeout=9", "--wrap", "grey"],
            None,
        );
        assert_eq!(
            gym.options,
            [("arg.lap", "0.5"), ("timeout", "9"), ("wrap", "grey")]
                .map(|(a, b)| (a.into(), b.into()))
                .into()
        );
    }
}
