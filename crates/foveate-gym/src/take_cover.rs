//! DoomTakeCover's game: ViZDoom in a worker process, set up as AttentionAgent was published with.

use std::fs::File;
use std::io::Read;
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

/// Longest map that is read; it has 2,704 bytes.
const MAX_MAP: u64 = 1 << 20;

/// The map that the game is played on, and where it lies in the folder of the package vizdoom.
///
/// # Errors
/// When there is no Python, or none that has the package; the message says what to install. When the map cannot be read.
pub fn map() -> Result<(PathBuf, Vec<u8>), GymError> {
    let path = find_map()?;
    let bad = |why: String| GymError::NoAnswer {
        id: NAME.into(),
        why: format!("{}: {why}; install vizdoom anew", path.display()),
    };
    let mut map = vec![];
    let file = File::open(&path).map_err(|error| bad(error.to_string()))?;
    file.take(MAX_MAP + 1).read_to_end(&mut map).map_err(|error| bad(error.to_string()))?;
    if map.len() as u64 > MAX_MAP {
        return Err(bad(format!("more than {MAX_MAP} bytes are no map of take_cover")));
    }
    Ok((path, map))
}

/// Where the map lies.
fn find_map() -> Result<PathBuf, GymError> {
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
