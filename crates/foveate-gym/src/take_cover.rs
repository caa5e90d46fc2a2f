//! DoomTakeCover's game: ViZDoom in a worker process, set up as AttentionAgent was published with.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::error::GymError;
use crate::find::find_python;
use crate::process::{NoStart, PROTOCOL, Process, granted};
use crate::settings::{Program, Settings};

/// What the game is called; its looks and its actions are the business of whoever stands before it.
pub const NAME: &str = "take-cover";

const PROGRAM: Program = Program {
    name: NAME,
    source: concat!(include_str!("worker/take_cover_expert.py"), include_str!("worker/take_cover.py")),
};

const FIND: &str = include_str!("worker/find_vizdoom.py");
/// How long Python may take to find a package.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where the map lies that the game is played on, in the folder of the package vizdoom.
///
/// # Errors
/// When there is no Python, or none that has the package; the message says what to install.
pub fn find_map() -> Result<PathBuf, GymError> {
    #[derive(Deserialize)]
    struct Answer {
        map: PathBuf,
    }
    let python = find_python()?.path;
    let job = json!({ "protocol": PROTOCOL, "job": "find vizdoom", "more": FIND });
    let begun = Process::begin(&python, &job, &[], PATIENCE);
    let (_, answer) = begun.map_err(|error| match error {
        NoStart::Error(error) => error,
        NoStart::Trouble(trouble) => GymError::NoAnswer { id: NAME.into(), why: trouble.to_string() },
    })?;
    granted::<Answer>(NAME, answer).map(|answer| answer.map)
}

/// The game at a resolution that ViZDoom has, `[width, height]`, on the map that its package comes with, or on `wad`.
///
/// Choices: 0 does nothing, 1 moves right, 2 moves left. What it shows is the whole screen, `[height, width, 3]`.
pub fn settings([width, height]: [usize; 2], wad: Option<&[u8]>) -> Settings {
    let mut settings = Settings::new("FoveateTakeCover-v0");
    settings.program = Some(PROGRAM);
    settings.args.insert("width".into(), width.into());
    settings.args.insert("height".into(), height.into());
    if let Some(wad) = wad {
        let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
        let hex: String = wad.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        settings.args.insert("wad".into(), hex.into());
    }
    settings
}
