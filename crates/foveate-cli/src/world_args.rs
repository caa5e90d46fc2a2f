//! Flags that choose a world, shared by several commands.

use clap::Args;
use foveate_envs::registry::EnvRequest;

/// Which world.
#[derive(Debug, Args)]
pub(crate) struct WorldArgs {
    /// The world; `foveate list` shows them
    #[arg(long, value_name = "NAME", default_value = "car-racing")]
    pub(crate) env: String,
    /// What the agent sees; without it the world's own picture
    #[arg(long, value_name = "NAME")]
    pub(crate) picture: Option<String>,
    /// A change of the world's looks, as in `bar` or `blob:side=4`; several are combined
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) variants: Vec<String>,
    /// An option of the world, as in `continuous=false`; may be given several times
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,
}

impl WorldArgs {
    /// What to ask the registry for.
    pub(crate) fn request(&self) -> EnvRequest {
        EnvRequest {
            id: self.env.clone(),
            picture: self.picture.clone(),
            variants: self.variants.clone(),
            options: self.options.iter().cloned().collect(),
            video: None,
        }
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as key=value".into()),
    }
}
