//! Output to the terminal.

use std::io::{self, ErrorKind, IsTerminal, Write};

use foveate::run::RunError;
pub(crate) use foveate::run::one_line;
use foveate::run::ticker::{stderr_width, stdout_width, wrap};
use serde_json::Value;

use crate::remedy::with_remedy;

/// Writes `text` and a line break to stdout; for a terminal long lines are wrapped. A reader that closed the
/// pipe is reported as an error of its own kind, not a panic.
pub(crate) fn say(text: &str) -> Result<(), RunError> {
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

/// Writes an error to stderr: one line, wrapped on a terminal.
pub(crate) fn complain(error: &anyhow::Error) {
    let text = format!("error: {}", one_line(&with_remedy(&error.to_string())));
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
