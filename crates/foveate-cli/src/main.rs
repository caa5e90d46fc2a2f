//! The command `foveate`; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(foveate_cli::run(None, None))
}
