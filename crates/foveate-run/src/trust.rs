//! Which world a file may ask for.
//!
//! A file is data: weights, a configuration, a run's folder or a kept failure may come from anyone. Each of them may name
//! a world, and a Gymnasium world is Python code that runs with the user's rights. So a world that a file names is a
//! [`FileWorld`], which nobody can drive in. [`FileWorld::accept`] is the one way from there to an [`EnvRequest`]: native
//! worlds pass, anything else passes only if the command line says the same ([`WorldFlags`]) or says `--trust-world`
//! ([`Trust`]). `AgentFile::world` and `EnvSection::request` go through it, and they are all there is to read a world from
//! a file; a command that forgets to ask is refused, never obeyed. docs/trust.md says the same to users.

use std::collections::BTreeMap;

use foveate_envs::registry::EnvRequest;

use crate::error::RunError;
use crate::suggest;
use crate::worlds::{WORLDS, WRAP, default_world};

/// Whether a file may set this option of a world that the command line names: one that chooses no code and opens no file.
fn is_harmless(world: &str, option: &str) -> bool {
    option == WRAP || WORLDS.get(world).is_some_and(|world| world.file_options.contains(&option))
}

/// Longer flags are not printed to be repeated.
const MOST_FLAGS: usize = 1500;

/// Whether worlds that files name may run code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// Files may name native worlds; any other has to be named on the command line.
    #[default]
    NativeWorlds,
    /// `--trust-world`: what a file asks for is taken as it stands.
    AnyWorld,
}

/// What the command line says about the world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorldFlags {
    /// Its name.
    pub id: Option<String>,
    /// Its picture.
    pub picture: Option<String>,
    /// Its variants; none means that nothing is said.
    pub variants: Vec<String>,
    /// Its shifts; none means that nothing is said.
    pub shifts: Vec<String>,
    /// Options by name, the arguments of a Gymnasium environment as `arg.NAME`.
    pub options: BTreeMap<String, String>,
    /// Whether `--trust-world` is there.
    pub trust: Trust,
    /// How a user says more about the world.
    pub repeat: Repeat,
}

/// How the command at hand takes a world, for messages that print the flags to repeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repeat {
    /// `--env gym:ID --picture NAME --option KEY=VALUE …`
    #[default]
    Flags,
    /// `gym:ID --picture NAME --option KEY=VALUE …`, as `foveate train` takes it.
    Train,
    /// Not at all: it takes the world of a file or none.
    No,
}

impl WorldFlags {
    /// The world that the command line asks for where no file has a say; without a name it is `car-racing`.
    pub fn request(&self) -> EnvRequest {
        let id = self.id.clone().unwrap_or_else(|| default_world().name.into());
        self.over(EnvRequest { id, ..EnvRequest::default() })
    }

    /// `request` with what the command line says on top.
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

    /// The flags that say of `request` what the command line has not said yet; `None` if they cannot be printed so that
    /// they can be read and repeated.
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

/// A world that a file names. It is no request yet: see [`FileWorld::accept`].
#[derive(Debug, Clone, PartialEq)]
pub struct FileWorld {
    asked: EnvRequest,
    file: String,
}

impl FileWorld {
    /// What `file` asks for.
    pub fn new(asked: EnvRequest, file: impl Into<String>) -> Self {
        FileWorld { asked, file: file.into() }
    }

    /// The world's name, to be shown.
    pub fn id(&self) -> &str {
        &self.asked.id
    }

    /// The world to drive in: what the file asks for with what the command line says on top. If the command line names
    /// another world, nothing of the file counts.
    ///
    /// # Errors
    /// [`RunError::Untrusted`] when the world is no native one and neither `--trust-world` is there nor did the command line
    /// say itself which world it is and every option that can choose code; and when there is no such world.
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

/// Whether a world runs no code but Foveate's own, whatever its options are.
pub fn is_native(id: &str) -> bool {
    WORLDS.get(id).is_some_and(|world| !world.runs_code)
}

/// What a command needs besides the file to take a world called `id` from it: `" --trust-world"` or nothing.
pub fn flag_for(id: &str) -> &'static str {
    if is_native(id) { "" } else { " --trust-world" }
}

/// Why a world is not taken from a file, with the flags that take it.
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

/// `text` for a message: what cannot be seen is escaped, and what is long is cut.
fn shown(text: &str) -> String {
    const MOST: usize = 300;
    let escaped = |c: char| if "'\"\\".contains(c) { c.to_string() } else { c.escape_debug().to_string() };
    let all = text.chars().count();
    let text: String = text.chars().take(MOST).map(escaped).collect();
    if all > MOST { format!("{text}… ({all} characters)") } else { text }
}

/// `word` as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:/.,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
