//! Decides which world a file may request.
//!
//! A file is data: weights, a configuration, a run's folder or a recorded failure may come from anyone. Each
//! of them may name a world, and a Gymnasium world is Python code that runs with the user's rights. So a
//! world that a file names is a [`FileWorld`], in which no episode can be run. [`FileWorld::accept`] is the
//! only conversion to an [`EnvRequest`]: native worlds are accepted, any other world only if the command line
//! names the same world ([`WorldSpec`]) or contains `--trust-world` ([`WorldSpec::trust`]). `AgentFile::world` and
//! `EnvSection::request` use it, and they are the only ways to read a world from a file; a command that omits
//! the check gets an error. docs/trust.md explains this to users.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use foveate_core::hint::{Choice, Hint, Setting};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{WORLDS, WRAP, default_world};
use serde::{Deserialize, Serialize};

#[cfg(feature = "command")]
use crate::command::{self, Known};

use crate::config::whole_paths;
use crate::error::RunError;
use crate::suggest;

/// Whether a file may set this option of a world that the command line names: an option that selects no code
/// and opens no file.
fn is_harmless(world: &str, option: &str) -> bool {
    option == WRAP
        || WORLDS.get(world).is_some_and(|world| {
            if world.runs_code {
                world.file_options.contains(&option)
            } else {
                !world.code_options.contains(&option)
            }
        })
}

/// Longer hints are not given.
const LONGEST_HINT: usize = 1500;

/// The world as a person asks for it: flags of the command, keywords of Python, the world of a job as JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args))]
pub struct WorldSpec {
    /// Its name
    #[serde(alias = "world", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "command", arg(id = "env", long, value_name = "NAME", value_parser = Known::WORLD, hide_possible_values = true, help = command::env(), help_heading = "World"))]
    pub id: Option<String>,
    /// A shift of observations or actions, as in `blur:2`, `noise:4@200` (from step 200 on) or `hue:3+delay:1`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "command", arg(long = "shift", value_name = "NAME:SEVERITY", value_parser = Known::SHIFT, hide_possible_values = true, help_heading = "World"))]
    pub shifts: Vec<String>,
    /// The picture that the agent sees
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "command", arg(long, value_name = "NAME", value_parser = Known::PICTURE, hide_possible_values = true, help = command::picture(), help_heading = "World"))]
    pub picture: Option<String>,
    /// A variant of the world, as in `bar` or `blob:side=4`; several are combined
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "command", arg(long = "variant", value_name = "NAME", value_parser = Known::VARIANT, hide_possible_values = true, help_heading = "World"))]
    pub variants: Vec<String>,
    /// Its options
    #[serde(skip_serializing_if = "WorldOptions::is_none")]
    #[cfg_attr(feature = "command", command(flatten))]
    pub options: WorldOptions,
    /// Accept the world of a file although it is Python code that runs with your rights: a Gymnasium world with its
    /// packages and wrappers
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "command", arg(id = "trust_world", long = "trust-world", help_heading = "World"))]
    pub trust: bool,
    /// Whether this job takes the world of its file as it is, so that no other settings can name it.
    #[serde(skip)]
    #[cfg_attr(feature = "command", arg(skip))]
    pub only_of_file: bool,
}

/// The options of a world by name: those of the world, the arguments of a Gymnasium environment as `arg.NAME`, the wrappers as
/// [`WRAP`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorldOptions(pub BTreeMap<String, String>);

impl WorldOptions {
    fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for WorldOptions {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for WorldOptions {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl FromIterator<(String, String)> for WorldOptions {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(options: T) -> Self {
        WorldOptions(options.into_iter().collect())
    }
}

impl WorldSpec {
    /// The world called `name`, as it is without options.
    pub fn named(name: &str) -> Self {
        WorldSpec { id: Some(name.to_owned()), ..WorldSpec::default() }
    }

    /// The world that the command line requests if no file is involved; without a name it is `car-racing`.
    pub fn request(&self) -> EnvRequest {
        let id = self.id.clone().unwrap_or_else(|| default_world().name.into());
        self.over(EnvRequest { id, ..EnvRequest::default() })
    }

    /// `request`, overridden by the command line.
    pub(crate) fn over(&self, mut request: EnvRequest) -> EnvRequest {
        if self.picture.is_some() {
            request.picture.clone_from(&self.picture);
        }
        if !self.variants.is_empty() {
            request.variants.clone_from(&self.variants);
        }
        if !self.shifts.is_empty() {
            request.shifts.clone_from(&self.shifts);
        }
        request.options.extend(self.options.0.clone());
        request
    }

    /// The settings for the parts of `request` that were not yet given; `None` if they cannot be given, or not
    /// written readably.
    fn missing(&self, request: &EnvRequest) -> Option<Hint> {
        if self.only_of_file {
            return None;
        }
        let mut hint = Hint::default();
        let mut add = |setting: Setting, value: &str| {
            hint.settings.push(Choice { setting, value: Some(value.to_owned()) });
        };
        if self.id.as_ref() != Some(&request.id) {
            add(Setting::World, &request.id);
        }
        if let Some(picture) =
            request.picture.as_ref().filter(|picture| self.picture.as_ref() != Some(picture))
        {
            add(Setting::Picture, picture);
        }
        for variant in request.variants.iter().filter(|_| self.variants.is_empty()) {
            add(Setting::Variant, variant);
        }
        for (name, value) in
            request.options.iter().filter(|(name, value)| self.options.get(*name) != Some(value))
        {
            match name.strip_prefix("arg.") {
                _ if name == WRAP => add(Setting::Wrap, value),
                Some(name) => add(Setting::Argument, &format!("{name}={value}")),
                None => add(Setting::Option, &format!("{name}={value}")),
            }
        }
        let visible = |c: char| "'\"\\".contains(c) || c.escape_debug().count() == 1;
        let mut values = hint.settings.iter().filter_map(|choice| choice.value.as_ref());
        let readable =
            values.all(|value| value.chars().all(visible)) && hint.to_string().len() <= LONGEST_HINT;
        readable.then_some(hint)
    }
}

/// A world that a file names. It is not yet a request: see [`FileWorld::accept`].
#[derive(Debug, Clone, PartialEq)]
pub struct FileWorld {
    asked: EnvRequest,
    file: String,
}

impl FileWorld {
    /// The request of `file`.
    pub fn new(asked: EnvRequest, file: impl Into<String>) -> Self {
        FileWorld { asked, file: file.into() }
    }

    /// The world's name, for display.
    pub fn id(&self) -> &str {
        &self.asked.id
    }

    /// The accepted world: the file's request, overridden by the command line. If the command line names
    /// another world, the file's request is ignored.
    ///
    /// # Errors
    /// [`RunError::Untrusted`] when the world is not native, files are not trusted with code, and the
    /// settings do not themselves name the world and every option that can select code; also when there is no such
    /// world.
    pub fn accept(self, flags: &WorldSpec) -> Result<EnvRequest, RunError> {
        let FileWorld { asked, file } = self;
        let same = |id: &String| whole_paths::of_id(id) == whole_paths::of_id(&asked.id);
        if flags.id.as_ref().is_some_and(|id| !same(id)) {
            return Ok(flags.request());
        }
        let request = flags.over(asked);
        let said = |(name, value): (&String, &String)| {
            is_harmless(&request.id, name) || flags.options.get(name) == Some(value)
        };
        let native = is_native(&request.id);
        if native && request.options.iter().all(said) || flags.trust {
            return Ok(request);
        }
        foveate_registry::world(&request.id).map_err(suggest::named)?;
        if flags.id.is_some() && request.options.iter().all(said) {
            return Ok(request);
        }
        Err(untrusted(&file, &request, flags))
    }
}

/// Whether a world only runs Foveate's own code, whatever its options are.
pub fn is_native(id: &str) -> bool {
    WORLDS.get(id).is_some_and(|world| !world.runs_code)
}

/// The error about an untrusted world, with the settings that accept it.
fn untrusted(file: &str, request: &EnvRequest, flags: &WorldSpec) -> RunError {
    let file = if file.is_empty() { "the file" } else { file };
    let risky = request
        .options
        .iter()
        .filter(|(name, value)| !is_harmless(&request.id, name) && flags.options.get(*name) != Some(value));
    let risky: Vec<String> = risky.map(|(name, value)| format!("{name}={value}")).collect();
    let with = if risky.is_empty() { String::new() } else { format!(" with {}", risky.join(", ")) };
    let what = shown(&format!("{}{with}", request.id));
    let code = match WORLDS.get(&request.id) {
        Some(world) if world.needs_library && risky.is_empty() => "a model and MuJoCo's native code",
        Some(world) if world.needs_library => "a native library: code",
        _ => "Python code",
    };
    RunError::Untrusted { file: file.into(), what: what.into(), code, missing: flags.missing(request) }
}

/// `text` for a message: invisible characters are escaped, and long texts are truncated.
fn shown(text: &str) -> String {
    const MOST: usize = 300;
    let escaped = |c: char| if "'\"\\".contains(c) { c.to_string() } else { c.escape_debug().to_string() };
    let all = text.chars().count();
    let text: String = text.chars().take(MOST).map(escaped).collect();
    if all > MOST { format!("{text}… ({all} characters)") } else { text }
}

#[cfg(test)]
mod tests;
