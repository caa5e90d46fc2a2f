//! Hints in messages: what a person may set, or do next, in no front end's words.
//!
//! A library does not know which program shows its messages: a command has flags, a Python package has arguments, a
//! page has neither. So a message names a [`Setting`] or a [`Task`], and writes it in one notation:
//!
//! | hint | in a message |
//! |---|---|
//! | [`Setting::Episodes`] | ``the setting `episodes` `` |
//! | `Setting::Seeds.to("0..20")` | ``the setting `seeds 0..20` `` |
//! | `Hint::settings([...])` | ``the settings `world gym:X, picture render` `` |
//! | `Task::Resume.of("runs/a")` | ``the task `resume runs/a` `` |
//!
//! The text is complete as it is. A front end with names of its own finds the hints and replaces them with
//! [`reworded`], whatever the message went through on its way: wrapping errors, notes, or the pipe of a worker.
//!
//! ```
//! use foveate_core::hint::{Setting, reworded};
//!
//! let message = format!("9 episodes need too much memory; lower {}", Setting::Episodes);
//! assert_eq!(message, "9 episodes need too much memory; lower the setting `episodes`");
//! let shown = reworded(&message, |hint| format!("--{}", hint.settings[0].setting.name()));
//! assert_eq!(shown, "9 episodes need too much memory; lower --episodes");
//! ```

use std::fmt;

/// An enum of names: its values and the name of each.
macro_rules! names {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $type { $($(#[$doc])* $value,)* }

        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$value),*];

            /// The name in messages: lower-case words.
            pub fn name(self) -> &'static str {
                match self { $($type::$value => $name),* }
            }
        }
    };
}

names! {
    /// Something that a person sets when asking for a job.
    Setting {
        /// The agent, by name.
        Agent = "agent",
        /// Whether a run that was changed may go on.
        AllowChanges = "allow-changes",
        /// An argument of a Gymnasium environment: `NAME=VALUE`.
        Argument = "argument",
        /// A step of an episode.
        At = "at",
        /// A file with a configuration.
        Config = "config",
        /// Decisions of an episode that a report examines.
        Decisions = "decisions",
        /// How many episodes.
        Episodes = "episodes",
        /// Threads that share the work on one picture.
        ImageThreads = "image-threads",
        /// The result as data for programs.
        Json = "json",
        /// The order of weights in a vector.
        Layout = "layout",
        /// A name for a new run.
        Name = "name",
        /// An option of a world: `NAME=VALUE`.
        Option = "option",
        /// The file or folder to write to.
        Out = "out",
        /// The picture that a world shows.
        Picture = "picture",
        /// The port of a server.
        Port = "port",
        /// The preset that a configuration starts from.
        Preset = "preset",
        /// The folder of all runs.
        Runs = "runs",
        /// The seeds of the episodes: `FROM..TO`.
        Seeds = "seeds",
        /// A key of a configuration: `KEY=VALUE`.
        Set = "set",
        /// A shift of a world.
        Shift = "shift",
        /// The shifts of a table.
        Shifts = "shifts",
        /// The secret of a server's address.
        Token = "token",
        /// Whether a world that a file names may run code.
        TrustWorld = "trust-world",
        /// Untrained agents that an agent is compared with.
        Untrained = "untrained",
        /// A variant of a world.
        Variant = "variant",
        /// Whether evaluations write videos: `off`.
        Videos = "videos",
        /// The weights that act: a file or a folder.
        Weights = "weights",
        /// Threads that run episodes.
        Workers = "workers",
        /// The world, by name.
        World = "world",
        /// Wrappers around a world.
        Wrap = "wrap",
    }
}

names! {
    /// A job that a person may ask for.
    Task {
        /// Tests whether an environment does what it should.
        CheckWorld = "check-world",
        /// Tests whether everything that worlds need is installed.
        Doctor = "doctor",
        /// Evaluates an agent.
        Evaluate = "evaluate",
        /// Writes a report on what an agent attends to.
        Explain = "explain",
        /// Converts published weights.
        Import = "import",
        /// Shows all names.
        List = "list",
        /// Shows the names of agents.
        ListAgents = "list-agents",
        /// Shows the names of worlds.
        ListWorlds = "list-worlds",
        /// Plays a recorded failure again.
        Replay = "replay",
        /// Resumes the run of a folder.
        Resume = "resume",
        /// Trains an agent.
        Train = "train",
        /// Records an agent in its world.
        Watch = "watch",
    }
}

impl Setting {
    /// A hint to choose `value`.
    pub fn to(self, value: impl fmt::Display) -> Hint {
        Hint::settings([Choice { setting: self, value: Some(value.to_string()) }])
    }
}

impl Task {
    /// A hint to do this with `subject`: the world to train in, the folder of a run, a file.
    pub fn of(self, subject: impl fmt::Display) -> Hint {
        Hint { task: Some((self, Some(subject.to_string()))), settings: Vec::new() }
    }
}

/// A setting, and the value to choose; without a value it is to be changed or switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What to set.
    pub setting: Setting,
    /// The value.
    pub value: Option<String>,
}

/// A hint: a task with its subject and settings, or settings alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hint {
    /// What to do, and with what.
    pub task: Option<(Task, Option<String>)>,
    /// What to set.
    pub settings: Vec<Choice>,
}

impl Hint {
    /// A hint to make all of these choices.
    pub fn settings(choices: impl IntoIterator<Item = Choice>) -> Self {
        Hint { task: None, settings: choices.into_iter().collect() }
    }

    /// Adds the settings of `other`.
    #[must_use]
    pub fn with(mut self, other: impl Into<Hint>) -> Self {
        self.settings.extend(other.into().settings);
        self
    }

    /// Reads the text between the backquotes.
    fn parse(text: &str, is_task: bool) -> Option<Self> {
        let mut items = split(text)?.into_iter();
        let mut hint = Hint::default();
        if is_task {
            let (name, subject) = items.next()?;
            let task = Task::ALL.iter().find(|task| task.name() == name)?;
            hint.task = Some((*task, subject));
        }
        for (name, value) in items {
            let setting = *Setting::ALL.iter().find(|setting| setting.name() == name)?;
            hint.settings.push(Choice { setting, value });
        }
        (hint.task.is_some() || !hint.settings.is_empty()).then_some(hint)
    }
}

impl From<Setting> for Hint {
    fn from(setting: Setting) -> Self {
        Hint::settings([Choice { setting, value: None }])
    }
}

impl From<Task> for Hint {
    fn from(task: Task) -> Self {
        Hint { task: Some((task, None)), settings: Vec::new() }
    }
}

/// What stands before the backquotes, and whether a task follows.
const STARTS: [(&str, bool); 3] = [("the setting `", false), ("the settings `", false), ("the task `", true)];

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = match (&self.task, self.settings.len()) {
            (Some(_), _) => STARTS[2],
            (None, 1) => STARTS[0],
            (None, _) => STARTS[1],
        };
        f.write_str(start.0)?;
        let task = self.task.iter().map(|(task, subject)| (task.name(), subject));
        let settings = self.settings.iter().map(|choice| (choice.setting.name(), &choice.value));
        for (i, (name, value)) in task.chain(settings).enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            f.write_str(name)?;
            if let Some(value) = value {
                write!(f, " {}", Written(value))?;
            }
        }
        f.write_str("`")
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hint::from(*self).fmt(f)
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hint::from(*self).fmt(f)
    }
}

/// A value as it stands in a message: in quotes, if it has characters of the notation.
struct Written<'a>(&'a str);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written(text) = *self;
        if !text.is_empty() && !text.contains(['`', '"', '\\', ',']) {
            return f.write_str(text);
        }
        f.write_str("\"")?;
        for c in text.chars() {
            match c {
                // A backquote would end the hint.
                '`' => f.write_str("\\'")?,
                '"' | '\\' => write!(f, "\\{c}")?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

/// The items between backquotes, each a name and the rest; `None` when they are not in this notation.
fn split(text: &str) -> Option<Vec<(&str, Option<String>)>> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let mut value = None;
        rest = after;
        if let Some(after) = rest.strip_prefix(' ') {
            let (read, left) = if let Some(quoted) = after.strip_prefix('"') {
                unquote(quoted)?
            } else {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            };
            (value, rest) = (Some(read), left);
        }
        items.push((name, value));
        if rest.is_empty() {
            return Some(items);
        }
        rest = rest.strip_prefix(", ")?;
    }
}

/// The text up to the closing quote, and what follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut read = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((read, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                '\'' => read.push('`'),
                c => read.push(c),
            },
            c => read.push(c),
        }
    }
    None
}

/// `text` with every hint replaced by the words of a front end.
pub fn reworded(text: &str, words: impl Fn(&Hint) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let found = STARTS.iter().filter_map(|(start, is_task)| Some((rest.find(start)?, *start, *is_task)));
        let Some((at, start, is_task)) = found.min_by_key(|(at, ..)| *at) else { break };
        let inside = &rest[at + start.len()..];
        let hint = inside.find('`').and_then(|end| Some((Hint::parse(&inside[..end], is_task)?, end)));
        out.push_str(&rest[..at]);
        if let Some((hint, end)) = hint {
            out.push_str(&words(&hint));
            rest = &inside[end + 1..];
        } else {
            out.push_str(start);
            rest = inside;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hint: impl Into<Hint>, text: &str) {
        let hint = hint.into();
        assert_eq!(hint.to_string(), text);
        let message = format!("it failed; change {text}, or {text}");
        let seen = std::cell::RefCell::new(Vec::new());
        let shown = reworded(&message, |found| {
            seen.borrow_mut().push(found.clone());
            "X".into()
        });
        assert_eq!(shown, "it failed; change X, or X", "{text}");
        assert_eq!(seen.into_inner(), [hint.clone(), hint], "{text}");
    }

    #[test]
    fn every_hint_is_found_again_in_its_message() {
        for setting in Setting::ALL {
            check(*setting, &format!("the setting `{}`", setting.name()));
        }
        for task in Task::ALL {
            check(*task, &format!("the task `{}`", task.name()));
        }
        check(Setting::Seeds.to("0..20"), "the setting `seeds 0..20`");
        check(
            Setting::World.to("gym:X").with(Setting::Option.to("path=/a b")).with(Setting::TrustWorld),
            "the settings `world gym:X, option path=/a b, trust-world`",
        );
        check(Task::Resume.of("runs/a").with(Setting::TrustWorld), "the task `resume runs/a, trust-world`");
        check(Task::Train.of("a, b"), "the task `train \"a, b\"`");
        check(Setting::Set.to(""), "the setting `set \"\"`");
        check(Setting::Option.to("a=`\"\\,'"), r#"the setting `option "a=\'\"\\,'"`"#);
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "",
            "unknown field `episodes`",
            "the setting `episodes",
            "the setting `moon`",
            "the setting ``",
            "the settings `episodes,workers`",
            "the setting `set \"a`",
            "the task `episodes`",
            "the setting `moon`: the task `",
        ] {
            assert_eq!(reworded(text, |_| "X".into()), text);
        }
        let nested = "the setting `the setting `episodes`";
        assert_eq!(reworded(nested, |_| "X".into()), "the setting `X");
    }
}
