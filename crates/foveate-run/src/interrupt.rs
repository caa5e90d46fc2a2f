//! Ctrl-C.

use crate::error::RunError;
use crate::workers::Stop;

/// A flag that Ctrl-C (or SIGTERM) sets. A second Ctrl-C ends the process immediately. Call it once per
/// process.
///
/// # Errors
/// When the system does not accept a handler.
pub fn stop_on_ctrl_c() -> Result<Stop, RunError> {
    let stop = Stop::default();
    let asked = stop.clone();
    ctrlc::set_handler(move || {
        if asked.asked() {
            std::process::exit(130); // 128 + SIGINT, as shells say it
        }
        asked.ask();
    })
    .map_err(|error| RunError::BadRequest {
        why: format!("Ctrl-C cannot be watched ({error}); run again"),
    })?;
    Ok(stop)
}
