//! Output to the terminal.

use std::io::{self, ErrorKind, IsTerminal, Write};

use foveate::run::RunError;
pub(crate) use foveate::run::one_line;
use foveate::run::ticker::{Ticker, width, wrap};
use serde_json::Value;

use crate::remedy::{WorldAs, with_flags};

/// Columns of the terminal at stdout, or 80.
pub(crate) fn stdout_width() -> usize {
    width(io::stdout())
}

/// Columns of the terminal at stderr, or 80.
fn stderr_width() -> usize {
    width(io::stderr())
}

/// Shows progress on stderr, whether it is a terminal or not.
pub(crate) fn ticker() -> Ticker {
    let live = io::stderr().is_terminal();
    Ticker::new(Box::new(io::stderr()), live.then_some(stderr_width as fn() -> usize))
        .with_words(|text| with_flags(text, WorldAs::Flag))
}

/// Writes `text` and a line break to stdout; for a terminal long lines are wrapped. A reader that closed the
/// pipe is reported as an error of its own kind, not a panic.
pub(crate) fn say(text: &str) -> Result<(), RunError> {
    let text = &*with_flags(text, WorldAs::Flag);
    let text = if io::stdout().is_terminal() { &wrap(text, stdout_width()) } else { text };
    write(text)
}

fn write(text: &str) -> Result<(), RunError> {
    let mut to = io::stdout().lock();
    to.write_all(text.as_bytes())
        .and_then(|()| to.write_all(b"\n"))
        .and_then(|()| to.flush())
        .map_err(|source| RunError::Output { source })
}

/// Prints the next steps, if stdout is a terminal.
pub(crate) fn next(lines: &[&str]) -> Result<(), RunError> {
    if io::stdout().is_terminal() { say(&format!("next:\n  {}", lines.join("\n  "))) } else { Ok(()) }
}

/// Writes a note to stderr.
pub(crate) fn note(text: &str) {
    eprintln!("note: {}", with_flags(text, WorldAs::Flag));
}

/// Writes an error to stderr: one line, wrapped on a terminal.
pub(crate) fn complain(error: &anyhow::Error, world: WorldAs) {
    let text = format!("error: {}", one_line(&with_flags(&error.to_string(), world)));
    let text = if io::stderr().is_terminal() { wrap(&text, stderr_width()) } else { text };
    eprintln!("{text}");
}

/// Writes `value` as one JSON object to stdout.
pub(crate) fn say_json(value: &Value) -> Result<(), RunError> {
    // Not wrapped, since programs read it.
    write(&format!("{value:#}"))
}

/// Whether the reader of our output closed the pipe: `foveate list | head -1`.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::Output { source }) if source.kind() == ErrorKind::BrokenPipe)
}

/// Names and descriptions, in two columns.
pub(crate) fn columns<'a>(lines: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let width = lines.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.map(|(name, about)| format!("  {name:width$}  {about}\n")).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        assert_eq!(columns([("a", "one"), ("bcd", "two")].into_iter()), "  a    one\n  bcd  two\n");
    }
}
