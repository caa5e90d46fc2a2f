//! A time limit as people write it: `2h`, `30min`.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::RunError;

/// A time after which a job stops safely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Limit(Duration);

/// The longest limit, in seconds: a year.
const LONGEST: f64 = 365.0 * 24.0 * 3600.0;

impl Limit {
    /// The time.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Limit {
    type Err = RunError;

    fn from_str(text: &str) -> Result<Self, RunError> {
        let text = text.trim();
        let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let scale = match &text[unit..] {
            "s" => Some(1.0),
            "min" | "m" => Some(60.0),
            "h" => Some(3600.0),
            _ => None,
        };
        let number = text[..unit].trim().parse::<f64>().ok();
        match number.zip(scale).map(|(number, scale)| number * scale) {
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST => {
                Ok(Limit(Duration::from_secs_f64(seconds)))
            }
            _ => Err(RunError::BadRequest {
                why: format!("{text:?} is no time; write 2h, 30min or 90s, at most a year"),
            }),
        }
    }
}

impl TryFrom<String> for Limit {
    type Error = RunError;

    fn try_from(text: String) -> Result<Self, RunError> {
        text.parse()
    }
}

impl From<Limit> for String {
    fn from(limit: Limit) -> String {
        format!("{}s", limit.0.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, seconds) in [
            ("2h", Some(7200.0)),
            ("0.5h", Some(1800.0)),
            ("30min", Some(1800.0)),
            (" 90 s", Some(90.0)),
            ("2", None),
            ("h", None),
            ("-1h", None),
            ("0s", None),
            ("nanh", None),
            ("1e300h", None),
            ("2 days", None),
        ] {
            let found = text.parse::<Limit>().ok().map(|limit| limit.duration().as_secs_f64());
            assert_eq!(found, seconds, "{text}");
        }
        let two: Limit = "2h".parse().expect("a time");
        assert_eq!(String::from(two).parse::<Limit>().expect("its own"), two);
    }
}
