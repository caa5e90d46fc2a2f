//! Flags that select a world, shared by several commands.

use clap::Args;
use foveate::World;
use foveate::run::trust::{Trust, WorldFlags};
use foveate::run::worlds;

use crate::help;
use crate::known::Known;

/// Selects a world.
#[derive(Debug, Args)]
#[command(next_help_heading = "World")]
pub(crate) struct WorldArgs {
    #[arg(long, value_name = "NAME", value_parser = Known::WORLD, hide_possible_values = true, help = help::env())]
    env: Option<String>,
    /// A shift of observations or actions, as in `blur:2`, `noise:4@200` (from step 200 on) or `hue:3+delay:1`
    #[arg(long = "shift", value_name = "NAME:SEVERITY", value_parser = Known::SHIFT, hide_possible_values = true)]
    shifts: Vec<String>,
    #[command(flatten)]
    own: OwnWorldArgs,
    #[command(flatten)]
    trust: TrustArg,
}

/// The world without shifts: the flags that training accepts.
#[derive(Debug, Args)]
#[command(next_help_heading = "World")]
pub(crate) struct OwnWorldArgs {
    #[arg(long, value_name = "NAME", value_parser = Known::PICTURE, hide_possible_values = true, help = help::picture())]
    picture: Option<String>,
    /// A variant of the world, as in `bar` or `blob:side=4`; several are combined
    #[arg(long = "variant", value_name = "NAME", value_parser = Known::VARIANT, hide_possible_values = true)]
    variants: Vec<String>,
    /// An option of the world, as in `continuous=false`; may be given several times
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_value)]
    options: Vec<(String, String)>,
    /// An argument of a Gymnasium environment, as in `lap_complete_percent=0.9`; may be given several times
    #[arg(long = "env-arg", value_name = "KEY=VALUE", value_parser = key_value)]
    env_args: Vec<(String, String)>,
    /// Wrappers between world and agent, as in `grey+resize:64x64+stack:3`; `foveate list wrappers` shows them
    #[arg(long = "wrap", value_name = "NAME:VALUE")]
    wrap: Option<String>,
}

/// Whether worlds that files name may run code.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TrustArg {
    /// Accept the world of a file although it is Python code that runs with your rights: a Gymnasium world with its
    /// packages and wrappers
    #[arg(long)]
    trust_world: bool,
}

impl From<TrustArg> for Trust {
    fn from(TrustArg { trust_world }: TrustArg) -> Self {
        if trust_world { Trust::AnyWorld } else { Trust::NativeWorlds }
    }
}

impl WorldArgs {
    /// The world of these flags.
    pub(crate) fn world(&self) -> World {
        World::new(self.flags())
    }

    /// The values of the flags.
    pub(crate) fn flags(&self) -> WorldFlags {
        WorldFlags {
            id: self.env.clone(),
            shifts: self.shifts.clone(),
            trust: self.trust.into(),
            ..self.own.flags()
        }
    }
}

impl OwnWorldArgs {
    /// The values of the flags.
    pub(crate) fn flags(&self) -> WorldFlags {
        let wrap = self.wrap.iter().map(|wrap| (worlds::WRAP.to_owned(), wrap.clone()));
        let args = self.env_args.iter().map(|(name, value)| (format!("arg.{name}"), value.clone()));
        WorldFlags {
            picture: self.picture.clone(),
            variants: self.variants.clone(),
            options: self.options.iter().cloned().chain(wrap).chain(args).collect(),
            ..WorldFlags::default()
        }
    }
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as key=value".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use foveate::EnvRequest;
    use foveate::run::trust::FileWorld;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        world: WorldArgs,
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
            Arguments::parse_from([&["x"], flags].concat())
                .world
                .world()
                .request(noted)
                .expect("native, or named by flags")
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
