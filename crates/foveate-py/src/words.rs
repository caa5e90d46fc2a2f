//! The words of Python for the hints in messages of libraries, which know neither keywords nor functions.

use foveate::core::hint::{Choice, Hint, Setting, Task, reworded};

/// `message` with keywords and functions in place of hints.
pub(crate) fn with_keywords(message: &str) -> String {
    reworded(message, words)
}

fn words(hint: &Hint) -> String {
    let keywords: Vec<String> = hint.settings.iter().map(keyword).collect();
    let Some((task, subject)) = &hint.task else { return keywords.join(", ") };
    let function = match task {
        Task::Evaluate => "evaluate",
        Task::Explain => "explain",
        Task::Resume => "resume",
        Task::Train => "train",
        Task::Watch => "watch",
        // These are the command's alone, which comes with the package.
        other => return command(*other, subject.as_deref()),
    };
    let arguments: Vec<String> = subject.iter().map(|subject| text(subject)).chain(keywords).collect();
    format!("foveate.{function}({})", arguments.join(", "))
}

fn command(task: Task, subject: Option<&str>) -> String {
    let name = match task {
        Task::CheckWorld => "check-env",
        Task::ListAgents => "list agents",
        Task::ListWorlds => "list worlds",
        Task::Replay => "replay --failure",
        other => other.name(),
    };
    let subject = subject.map(|subject| format!(" {subject}")).unwrap_or_default();
    format!("`foveate {name}{subject}` in a terminal")
}

fn keyword(Choice { setting, value }: &Choice) -> String {
    let value = value.as_deref();
    let of_dict = |keyword: &str, prefix: &str| {
        let Some((name, value)) = value.and_then(|value| value.split_once('=')) else {
            return keyword.to_owned();
        };
        format!("{keyword}={{{}: {}}}", text(&format!("{prefix}{name}")), literal(value))
    };
    let name = match setting {
        Setting::Agent => {
            return value.map_or("agent".into(), |name| format!("set={{\"agent.name\": {}}}", text(name)));
        }
        Setting::AllowChanges => return "allow_changes=True".into(),
        Setting::Argument => return of_dict("options", "arg."),
        Setting::Option => return of_dict("options", ""),
        Setting::Set => return of_dict("set", ""),
        Setting::Json => return ".details".into(),
        Setting::Seeds => {
            let range = value.and_then(|value| value.split_once(".."));
            return range.map_or("seeds".into(), |(from, to)| format!("seeds=range({from}, {to})"));
        }
        Setting::Shift => "shifts",
        Setting::Shifts => "shift_rows",
        Setting::TrustWorld => return "trust=True".into(),
        Setting::Videos => return "videos=False".into(),
        Setting::Wrap => {
            return value.map_or("options={\"wrap\": …}".into(), |value| {
                format!("options={{\"wrap\": {}}}", text(value))
            });
        }
        other => other.name(),
    };
    value.map_or_else(|| name.to_owned(), |value| format!("{name}={}", literal(value)))
}

/// `value` as Python writes it: a number, or a string.
fn literal(value: &str) -> String {
    match value {
        "true" => "True".into(),
        "false" => "False".into(),
        _ if value.parse::<f64>().is_ok_and(f64::is_finite) => value.to_owned(),
        _ => text(value),
    }
}

/// A string literal.
fn text(value: &str) -> String {
    format!("{value:?}")
}
