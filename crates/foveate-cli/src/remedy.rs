//! The words of this command for the hints in messages of libraries, which know neither flags nor commands.

use foveate::core::hint::{Choice, Hint, Setting, Task, reworded};
use foveate::run::progress::RunName;

/// How the command that was given takes the name of a world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WorldAs {
    /// `--env NAME`
    #[default]
    Flag,
    /// `NAME`
    Argument,
}

/// How this command is built, which its libraries do not know.
const BUILD: (&str, &str) =
    ("build it with the Cargo feature `eigen`", "; `cargo run --release --features eigen -- ...` does");

/// `message` with flags and commands in place of hints.
pub(crate) fn with_flags(message: &str, world: WorldAs) -> String {
    let (phrase, remedy) = BUILD;
    let build = if message.contains(phrase) { remedy } else { "" };
    reworded(message, |hint| words(hint, world)) + build
}

/// The flags of `hint` or its command, in backquotes if there are several words.
fn words(hint: &Hint, world: WorldAs) -> String {
    let flags: Vec<String> = hint.settings.iter().map(|choice| flag(choice, world)).collect();
    if let Some((task, subject)) = &hint.task {
        return format!("`{}`", command(*task, subject.as_deref(), &flags));
    }
    let flags = flags.join(" ");
    if flags.contains(' ') { format!("`{flags}`") } else { flags }
}

fn command(task: Task, subject: Option<&str>, flags: &[String]) -> String {
    let name = match task {
        Task::CheckWorld => "check-env",
        Task::Doctor => "doctor",
        Task::Evaluate => "eval",
        Task::Explain => "explain",
        Task::List => "list",
        Task::ListAgents => "list agents",
        Task::ListWorlds => "list worlds",
        Task::Replay => "replay --failure",
        Task::Resume => "train --resume",
        Task::Train => "train",
        Task::Watch => "watch",
        other => other.name(),
    };
    let mut command = format!("foveate {name}");
    for word in subject.map(quoted).iter().chain(flags) {
        command.push(' ');
        command.push_str(word);
    }
    command
}

fn flag(Choice { setting, value }: &Choice, world: WorldAs) -> String {
    let flag = match setting {
        Setting::Argument => "--env-arg",
        Setting::Videos if value.as_deref() == Some("off") => return "--no-videos".into(),
        Setting::World => match (world, value) {
            (WorldAs::Argument, Some(value)) => return quoted(value),
            _ => "--env",
        },
        other => &format!("--{}", other.name()),
    };
    value.as_ref().map_or_else(|| flag.to_owned(), |value| format!("{flag} {}", quoted(value)))
}

/// The command that resumes `run`.
pub(crate) fn resume_command(run: &RunName) -> String {
    command(Task::Resume, Some(&run.folder.display().to_string()), &trust(run))
}

/// The folder of `run` and the flag that its world needs, as commands take them.
pub(crate) fn run_arguments(run: &RunName) -> String {
    let folder = quoted(&run.folder.display().to_string());
    trust(run).iter().fold(folder, |words, flag| format!("{words} {flag}"))
}

fn trust(run: &RunName) -> Vec<String> {
    run.runs_code.then(|| "--trust-world".to_owned()).into_iter().collect()
}

/// `word` quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=:/.,+@%…".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use foveate::core::{EnvError, PolicyError};

    use super::*;

    fn said(message: &dyn std::fmt::Display) -> String {
        with_flags(&message.to_string(), WorldAs::Flag)
    }

    #[test]
    fn messages_of_libraries_get_the_flags_that_help() {
        let (given, known) = ("x".to_owned(), "a, b".to_owned());
        let agent = PolicyError::UnknownAgent { given: given.clone(), known: known.clone() };
        let world = EnvError::UnknownEnv { given, known };
        assert!(said(&agent).ends_with("choose from: a, b (`foveate list agents` shows them)"));
        assert!(said(&world).ends_with("choose from: a, b (`foveate list worlds` shows them)"));
        assert_eq!(said(&format!("too much; lower {}", Setting::Episodes)), "too much; lower --episodes");
        assert_eq!(said(&Setting::Videos.to("off")), "--no-videos");
        assert_eq!(said(&Setting::Set.to("a.b=c d")), "`--set 'a.b=c d'`");
        let run = RunName { folder: "runs/a b".into(), runs_code: true };
        assert_eq!(said(&run.resume()), "`foveate train --resume 'runs/a b' --trust-world`");
        assert_eq!(said(&run.resume()), format!("`{}`", resume_command(&run)));
        assert_eq!(run_arguments(&run), "'runs/a b' --trust-world");
        assert_eq!(said(&"cannot read a"), "cannot read a");
        assert!(said(&format!("no; {}", BUILD.0)).ends_with("--features eigen -- ...` does"));
    }

    #[test]
    fn worlds_are_printed_as_a_shell_takes_them() {
        let world = Setting::World
            .to("gym:X-v0")
            .with(Setting::Argument.to("lap=0.9"))
            .with(Setting::Option.to("gym_wrapper=a.B('x')"))
            .with(Setting::Wrap.to("grey+stack:3"));
        let rest = r"--env-arg lap=0.9 --option 'gym_wrapper=a.B('\''x'\'')' --wrap grey+stack:3`";
        assert_eq!(said(&world), format!("`--env gym:X-v0 {rest}"));
        assert_eq!(with_flags(&world.to_string(), WorldAs::Argument), format!("`gym:X-v0 {rest}"));
    }

    /// All flags that some command has.
    fn known_flags() -> Vec<String> {
        let command = crate::Cli::command();
        let flags = command.get_subcommands().flat_map(clap::Command::get_arguments);
        flags.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect()
    }

    #[test]
    fn every_setting_is_a_flag_and_every_task_a_command() {
        let flags = known_flags();
        for setting in Setting::ALL {
            let value = (*setting == Setting::Videos).then(|| "off".to_owned());
            let flag = flag(&Choice { setting: *setting, value }, WorldAs::Flag);
            assert!(flags.contains(&flag), "{setting:?} is no flag of any command: {flag}");
        }
        for task in Task::ALL {
            let subject = matches!(task, Task::Import | Task::Replay | Task::Resume).then_some("a");
            let line = command(*task, subject, &[]);
            let parsed = crate::Cli::command().try_get_matches_from(line.split(' '));
            let wrong = parsed.err().map(|error| error.to_string());
            // The environment to check is not part of the hint.
            assert!(wrong.is_none() || *task == Task::CheckWorld, "{line}: {wrong:?}");
            assert!(wrong.is_none_or(|wrong| wrong.contains("<gym:ID>")), "{line}");
        }
    }
}
