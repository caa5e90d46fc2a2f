//! Messages between page and server.
//!
//! The page sends JSON texts, each a [`Command`]; whatever is not exactly one is answered with an error and changes
//! nothing. The server answers with JSON texts (`"type": "hello" | "state" | "end" | "message"`) and with binary frames.

use serde::{Deserialize, Serialize};

/// Longest text that a page may send, in bytes.
pub const MAX_MESSAGE: usize = 8 << 10;
/// Largest seed: whole numbers up to here are exact in JavaScript.
pub const MAX_SEED: u64 = (1 << 53) - 1;
/// Fastest speed with a number, in multiples of real time.
pub const MAX_SPEED: f64 = 16.0;
/// Slowest speed.
pub const MIN_SPEED: f64 = 0.05;
/// Most agents that drive side by side.
pub const MAX_RUNNERS: usize = 2;
/// Most variants or shifts at once.
pub const MAX_CHANGES: usize = 24;
/// Width and height of the view for people in pixels, least and most.
pub const VIEW_SIDES: std::ops::RangeInclusive<usize> = 96..=1280;

/// What a page asks for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Changes settings; what is left out stays as it is.
    Set(SettingsChange),
    /// One step, while paused.
    Step {},
    /// The same track from its start.
    Restart {},
    /// A new order of the sensors at once, for every agent whose senses are shuffled; turns `shuffle` on if it is off.
    Shuffle {},
    /// Takes the wheel, or goes on holding it: this action from now on.
    Drive {
        /// Which runner, from 0.
        runner: usize,
        /// One number per action dimension; brought within bounds.
        action: Vec<f64>,
    },
    /// Gives the wheel back.
    Release {},
    /// How large the view for people is to be.
    View {
        /// Pixels.
        width: usize,
        /// Pixels.
        height: usize,
    },
    /// A frame was drawn; without this word, no more than a few frames come.
    Shown {
        /// Its number.
        frame: u32,
    },
    /// Asks for the last seconds as a film.
    Film {},
}

/// Settings to change.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsChange {
    /// The track. Starts it anew.
    pub seed: Option<u64>,
    /// What agents see, by name. Starts the track anew.
    pub picture: Option<String>,
    /// Variants of the world. Starts the track anew.
    pub variants: Option<Vec<String>>,
    /// Shifts of the picture or the controls, each as in `hue:2` or `blob:5:x=0.4:y=0.3:size=0.1`.
    pub shifts: Option<Vec<String>>,
    /// Who drives. Starts the track anew unless only `k` changes.
    pub runners: Option<Vec<RunnerSettings>>,
    /// Multiples of real time; 0 for as fast as it goes.
    pub speed: Option<f64>,
    /// Whether time stands still.
    pub paused: Option<bool>,
    /// Whether the next track begins by itself.
    pub auto: Option<bool>,
    /// Whether effects of what is attended to are measured.
    pub effects: Option<bool>,
}

/// Which agent a runner has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerSettings {
    /// Number of the agent in the list that the server sent.
    pub agent: usize,
    /// Patches that its controller is told about; `None` for all that it was trained with.
    #[serde(default)]
    pub k: Option<usize>,
}

/// Everything that a page can set, as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// The track.
    pub seed: u64,
    /// What agents see.
    pub picture: String,
    /// Variants of the world.
    pub variants: Vec<String>,
    /// Shifts, as in [`SettingsChange::shifts`].
    pub shifts: Vec<String>,
    /// Who drives.
    pub runners: Vec<RunnerSettings>,
    /// Multiples of real time; 0 for as fast as it goes.
    pub speed: f64,
    /// Whether time stands still.
    pub paused: bool,
    /// Whether the next track begins by itself.
    pub auto: bool,
    /// Whether effects of what is attended to are measured: how far the action changes without each.
    pub effects: bool,
}

/// Reads a command.
///
/// # Errors
/// A line for the page: what is wrong with the text.
pub fn read(text: &str) -> Result<Command, String> {
    if text.len() > MAX_MESSAGE {
        return Err(format!("a message of {} bytes; at most {MAX_MESSAGE} are read", text.len()));
    }
    let command: Command = serde_json::from_str(text).map_err(|e| format!("not understood: {e}"))?;
    check(&command)?;
    Ok(command)
}

fn check(command: &Command) -> Result<(), String> {
    match command {
        Command::Set(change) => check_change(change),
        Command::Drive { runner, action } => {
            if *runner >= MAX_RUNNERS || action.len() > 16 {
                return Err(format!("no runner {runner} that takes {} numbers", action.len()));
            }
            Ok(())
        }
        Command::View { width, height } => {
            if VIEW_SIDES.contains(width) && VIEW_SIDES.contains(height) {
                return Ok(());
            }
            let (least, most) = (VIEW_SIDES.start(), VIEW_SIDES.end());
            Err(format!("a view of {width}x{height} pixels; each side must be from {least} to {most}"))
        }
        Command::Step {}
        | Command::Restart {}
        | Command::Shuffle {}
        | Command::Release {}
        | Command::Shown { .. }
        | Command::Film {} => Ok(()),
    }
}

fn check_change(change: &SettingsChange) -> Result<(), String> {
    if let Some(seed) = change.seed.filter(|&seed| seed > MAX_SEED) {
        return Err(format!("seed {seed}; the largest is {MAX_SEED}"));
    }
    if let Some(speed) = change.speed
        && speed != 0.0
        && !(MIN_SPEED..=MAX_SPEED).contains(&speed)
    {
        return Err(format!(
            "speed {speed}; it goes from {MIN_SPEED} to {MAX_SPEED}, and 0 is as fast as it goes"
        ));
    }
    for (what, list) in [("variants", &change.variants), ("shifts", &change.shifts)] {
        if let Some(n) = list.as_ref().map(Vec::len).filter(|&n| n > MAX_CHANGES) {
            return Err(format!("{n} {what}; at most {MAX_CHANGES} go together"));
        }
    }
    if let Some(n) = change.runners.as_ref().map(Vec::len).filter(|n| !(1..=MAX_RUNNERS).contains(n)) {
        return Err(format!("{n} runners; there are 1 to {MAX_RUNNERS}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<Command, &str>) {
        match (read(text), expect) {
            (Ok(command), Ok(wanted)) => assert_eq!(command, wanted, "{text}"),
            (Err(said), Err(wanted)) => assert!(said.contains(wanted), "{text}: {said}"),
            (got, wanted) => panic!("{text}: {got:?}, expected {wanted:?}"),
        }
    }

    #[test]
    fn commands_are_read_as_written() {
        check(r#"{"type":"step"}"#, Ok(Command::Step {}));
        check(r#"{"type":"shown","frame":7}"#, Ok(Command::Shown { frame: 7 }));
        check(
            r#"{"type":"drive","runner":0,"action":[-1,0.5,0]}"#,
            Ok(Command::Drive { runner: 0, action: vec![-1.0, 0.5, 0.0] }),
        );
        check(r#"{"type":"view","width":640,"height":512}"#, Ok(Command::View { width: 640, height: 512 }));
        check(r#"{"type":"set"}"#, Ok(Command::Set(SettingsChange::default())));
        check(
            r#"{"type":"set","seed":9007199254740991,"speed":0,"runners":[{"agent":1,"k":3},{"agent":0}],
                "shifts":["hue:2"]}"#,
            Ok(Command::Set(SettingsChange {
                seed: Some(MAX_SEED),
                speed: Some(0.0),
                runners: Some(vec![
                    RunnerSettings { agent: 1, k: Some(3) },
                    RunnerSettings { agent: 0, k: None },
                ]),
                shifts: Some(vec!["hue:2".into()]),
                ..SettingsChange::default()
            })),
        );
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for text in
            ["", "null", "[]", "7", "{}", "\u{0}", r#"{"type":"fly"}"#, r#"{"type":7}"#, "{\"type\":\"step\""]
        {
            check(text, Err("not understood"));
        }
        check(r#"{"type":"step","twice":true}"#, Err("unknown field"));
        check(r#"{"type":"set","sed":7}"#, Err("unknown field `sed`"));
        check(r#"{"type":"set","seed":-1}"#, Err("not understood"));
        check(r#"{"type":"set","seed":1.5}"#, Err("not understood"));
        check(r#"{"type":"set","seed":9007199254740992}"#, Err("the largest is"));
        check(r#"{"type":"set","speed":1e999}"#, Err("not understood"));
        for speed in ["-1", "0.01", "17", "1e300"] {
            check(&format!(r#"{{"type":"set","speed":{speed}}}"#), Err("it goes from"));
        }
        check(r#"{"type":"set","runners":[]}"#, Err("0 runners"));
        check(r#"{"type":"set","runners":[{"agent":0},{"agent":0},{"agent":0}]}"#, Err("3 runners"));
        check(r#"{"type":"view","width":95,"height":512}"#, Err("from 96 to 1280"));
        check(r#"{"type":"view","width":640,"height":100000}"#, Err("from 96 to 1280"));
        check(r#"{"type":"drive","runner":2,"action":[]}"#, Err("no runner 2"));
        let many = vec![r#""bar""#; 25].join(",");
        check(&format!(r#"{{"type":"set","variants":[{many}]}}"#), Err("25 variants"));
        check(&format!(r#"{{"type":"{}"}}"#, "a".repeat(MAX_MESSAGE)), Err("at most 8192"));
        // Deep nesting is refused, not followed.
        check(&"[".repeat(MAX_MESSAGE), Err("not understood"));
    }
}
