//! The game of DoomTakeCover: ViZDoom in a worker process, configured as AttentionAgent was published with.

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

/// Name of the game. Its observations and actions are defined by the world built on top of it.
pub const NAME: &str = "take-cover";

const PROGRAM: Program = Program {
    name: NAME,
    source: concat!(include_str!("worker/take_cover_expert.py"), include_str!("worker/take_cover.py")),
};

const FIND: &str = include_str!("worker/find_vizdoom.py");
/// Time limit for Python to find a package.
const PATIENCE: Duration = Duration::from_mins(1);

/// Longest map that is read, in bytes; the original has 2,704.
const MAX_MAP: u64 = 1 << 20;

/// The map of the game and its path in the folder of the package vizdoom.
///
/// # Errors
/// When there is no Python or it lacks the package (the message says what to install), or when the map cannot
/// be read.
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

/// Path of the map.
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

/// Settings of the game at a resolution that ViZDoom supports, `[width, height]`, on the map of the package,
/// or on `wad`.
///
/// Actions: 0 does nothing, 1 moves right, 2 moves left. The observation is the whole screen,
/// `[height, width, 3]`.
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
