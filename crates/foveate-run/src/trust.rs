//! Decides which world a file may request.
//!
//! A file is data: weights, a configuration, a run's folder or a recorded failure may come from anyone. Each
//! of them may name a world, and a Gymnasium world is Python code that runs with the user's rights. So a
//! world that a file names is a [`FileWorld`], in which no episode can be run. [`FileWorld::accept`] is the
//! only conversion to an [`EnvRequest`]: native worlds are accepted, any other world only if the command line
//! names the same world ([`WorldFlags`]) or contains `--trust-world` ([`Trust`]). `AgentFile::world` and
//! `EnvSection::request` use it, and they are the only ways to read a world from a file; a command that omits
//! the check gets an error. docs/trust.md explains this to users.

use std::collections::BTreeMap;

use foveate_core::hint::{Choice, Hint, Setting};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{WORLDS, WRAP, default_world};

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

/// Whether worlds that files name may run code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// Files may name native worlds; any other world must be named on the command line.
    #[default]
    NativeWorlds,
    /// The world of a file is accepted without checks.
    AnyWorld,
}

/// The world as a person asks for it, on a command line or in a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorldFlags {
    /// Its name.
    pub id: Option<String>,
    /// Its picture.
    pub picture: Option<String>,
    /// Its variants; empty if not given.
    pub variants: Vec<String>,
    /// Its shifts; empty if not given.
    pub shifts: Vec<String>,
    /// Options by name, the arguments of a Gymnasium environment as `arg.NAME`.
    pub options: BTreeMap<String, String>,
    /// Whether a world of a file may run code.
    pub trust: Trust,
    /// Whether this job takes the world of its file as it is, so that no other settings can name it.
    pub only_of_file: bool,
}

impl WorldFlags {
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
        request.options.extend(self.options.clone());
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
    pub fn accept(self, flags: &WorldFlags) -> Result<EnvRequest, RunError> {
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
        if native && request.options.iter().all(said) || flags.trust == Trust::AnyWorld {
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
fn untrusted(file: &str, request: &EnvRequest, flags: &WorldFlags) -> RunError {
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
