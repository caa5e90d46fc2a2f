//! The command `foveate`; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    foveate::compile_models();
    ExitCode::from(foveate_cli::run(None, None))
}
