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

use foveate_envs::registry::EnvRequest;

use crate::error::RunError;
use crate::suggest;
use crate::worlds::{WORLDS, WRAP, default_world};

/// Whether a file may set this option of a world that the command line names: an option that selects no code
/// and opens no file.
fn is_harmless(world: &str, option: &str) -> bool {
    option == WRAP || WORLDS.get(world).is_some_and(|world| world.file_options.contains(&option))
}

/// Longer flags are not printed in hints.
const MOST_FLAGS: usize = 1500;

/// Whether worlds that files name may run code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// Files may name native worlds; any other world must be named on the command line.
    #[default]
    NativeWorlds,
    /// `--trust-world`: the world of a file is accepted without checks.
    AnyWorld,
}

/// The world's flags of the command line.
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
    /// Whether `--trust-world` was given.
    pub trust: Trust,
    /// How this command takes a world, for hints.
    pub repeat: Repeat,
}

/// How the current command takes a world, for messages that print the flags to repeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repeat {
    /// `--env gym:ID --picture NAME --option KEY=VALUE …`
    #[default]
    Flags,
    /// `gym:ID --picture NAME --option KEY=VALUE …`, as `foveate train` takes it.
    Train,
    /// Not at all: it only takes the world of a file, or none.
    No,
}

impl WorldFlags {
    /// The world that the command line requests if no file is involved; without a name it is `car-racing`.
    pub fn request(&self) -> EnvRequest {
        let id = self.id.clone().unwrap_or_else(|| default_world().name.into());
        self.over(EnvRequest { id, ..EnvRequest::default() })
    }

    /// `request`, overridden by the command line.
    fn over(&self, mut request: EnvRequest) -> EnvRequest {
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

    /// The flags for the parts of `request` that are not yet on the command line; `None` if they cannot be
    /// printed readably.
    fn missing(&self, request: &EnvRequest) -> Option<String> {
        let mut words: Vec<String> = vec![];
        let mut say = |flag: &str, value: &str| words.extend([flag.to_owned(), value.to_owned()]);
        let named = self.id.as_ref() == Some(&request.id);
        let picture = request.picture.as_ref().filter(|picture| self.picture.as_ref() != Some(picture));
        let options = request.options.iter().filter(|(name, value)| self.options.get(*name) != Some(value));
        match self.repeat {
            Repeat::No => return None,
            Repeat::Flags if !named => say("--env", &request.id),
            Repeat::Train if !named => words.push(request.id.clone()),
            Repeat::Flags | Repeat::Train => {}
        }
        let mut say = |flag: &str, value: &str| words.extend([flag.to_owned(), value.to_owned()]);
        if let Some(picture) = picture {
            say("--picture", picture);
        }
        for variant in request.variants.iter().filter(|_| self.variants.is_empty()) {
            say("--variant", variant);
        }
        for (name, value) in options {
            match name.strip_prefix("arg.") {
                _ if name == WRAP => say("--wrap", value),
                Some(name) => say("--env-arg", &format!("{name}={value}")),
                None => say("--option", &format!("{name}={value}")),
            }
        }
        let readable =
            |word: &String| word.chars().all(|c| "'\"\\".contains(c) || c.escape_debug().count() == 1);
        let text = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        (words.iter().all(readable) && text.len() <= MOST_FLAGS).then_some(text)
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
    /// [`RunError::Untrusted`] when the world is not native, `--trust-world` is not given, and the command
    /// line does not itself name the world and every option that can select code; also when there is no such
    /// world.
    pub fn accept(self, flags: &WorldFlags) -> Result<EnvRequest, RunError> {
        let FileWorld { asked, file } = self;
        if flags.id.as_ref().is_some_and(|id| *id != asked.id) {
            return Ok(flags.request());
        }
        let request = flags.over(asked);
        if is_native(&request.id) || flags.trust == Trust::AnyWorld {
            return Ok(request);
        }
        foveate_registry::world(&request.id).map_err(suggest::named)?;
        let said = |(name, value): (&String, &String)| {
            is_harmless(&request.id, name) || flags.options.get(name) == Some(value)
        };
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

/// The flag that a command needs to accept a world `id` from a file: `" --trust-world"` or an empty text.
pub fn flag_for(id: &str) -> &'static str {
    if is_native(id) { "" } else { " --trust-world" }
}

/// The error about an untrusted world, with the flags that accept it.
fn untrusted(file: &str, request: &EnvRequest, flags: &WorldFlags) -> RunError {
    let file = if file.is_empty() { "the file" } else { file };
    let risky = request
        .options
        .iter()
        .filter(|(name, value)| !is_harmless(&request.id, name) && flags.options.get(*name) != Some(value));
    let risky: Vec<String> = risky.map(|(name, value)| format!("{name}={value}")).collect();
    let with = if risky.is_empty() { String::new() } else { format!(" with {}", risky.join(", ")) };
    let what = shown(&format!("{}{with}", request.id));
    let remedy = match flags.missing(request) {
        Some(words) => format!("add `{words}` yourself, or --trust-world to take it as it stands"),
        None => "add --trust-world to take it as it stands".to_owned(),
    };
    RunError::Untrusted { file: file.to_owned(), what, remedy }
}

/// `text` for a message: invisible characters are escaped, and long texts are truncated.
fn shown(text: &str) -> String {
    const MOST: usize = 300;
    let escaped = |c: char| if "'\"\\".contains(c) { c.to_string() } else { c.escape_debug().to_string() };
    let all = text.chars().count();
    let text: String = text.chars().take(MOST).map(escaped).collect();
    if all > MOST { format!("{text}… ({all} characters)") } else { text }
}

/// `word` quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:/.,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
