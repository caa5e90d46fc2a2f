//! Shifts as text: `blob:4:x=0.3@100-300+delay:1`.

use std::fmt;
use std::sync::Arc;

use foveate_core::EnvError;

use super::descriptor::{Knob, KnobKind};
use super::plan::{KnobValue, MAX_SEVERITY, Shift};

/// Most shifts in a plan.
const MAX_SHIFTS: usize = 64;
/// Default severity.
const USUAL: f64 = 3.0;

/// Reads `text` and appends its shifts to `shifts`.
pub(super) fn parse(text: &str, shifts: &mut Vec<Shift>) -> Result<(), EnvError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    for piece in text.split('+') {
        let (what, when) = match piece.split_once('@') {
            Some((what, when)) => (what, Some(when)),
            None => (piece, None),
        };
        let mut parts = what.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        if name.is_empty() {
            return Err(EnvError::BadOption {
                env: "shifts".into(),
                why: format!("a name is missing in {text:?}; write them as in blur:2+noise:4@200"),
            });
        }
        let mut shift = Shift::new(name, USUAL)?;
        for (i, part) in parts.enumerate() {
            match part.split_once('=') {
                Some((knob, value)) => shift.set(knob.trim(), value.trim())?,
                None if i == 0 => shift.set_severity(severity(name, part)?)?,
                None => {
                    return Err(bad(
                        name,
                        format!("{part:?} is no parameter; write parameters as in {name}:3:key=value"),
                    ));
                }
            }
        }
        if let Some(when) = when {
            let (from, until) = steps(name, when)?;
            shift = shift.during(from, until);
        }
        if shifts.len() == MAX_SHIFTS {
            return Err(EnvError::BadOption {
                env: "shifts".into(),
                why: format!("more than {MAX_SHIFTS} at once; leave some out"),
            });
        }
        shifts.push(shift);
    }
    Ok(())
}

fn severity(name: &str, text: &str) -> Result<f64, EnvError> {
    let number = text.parse().ok().filter(|s| (1.0..=MAX_SEVERITY).contains(s));
    number.ok_or_else(|| bad(name, format!("severity {text:?} must be a number from 1 to 5")))
}

fn steps(name: &str, text: &str) -> Result<(u64, Option<u64>), EnvError> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let steps = match text.split_once('-') {
        Some((from, until)) => number(from).zip(number(until)).map(|(from, until)| (from, Some(until))),
        None => number(text).map(|from| (from, None)),
    };
    steps.filter(|(from, until)| until.is_none_or(|until| *from < until)).ok_or_else(|| {
        bad(
            name,
            format!(
                "@{text} names no steps; write {name}@200 for step 200 on or {name}@200-400 for 200 to 399"
            ),
        )
    })
}

impl Knob {
    /// What `text` sets it to.
    pub(super) fn setting(&self, shift: &str, text: &str) -> Result<KnobValue, EnvError> {
        let key = self.name;
        if text == "auto" && self.default == "auto" {
            return Ok(KnobValue::Auto);
        }
        match self.kind {
            KnobKind::Number { low, high } => {
                let number = text.parse().ok().filter(|n| (low..=high).contains(n));
                number.map(KnobValue::Number).ok_or_else(|| {
                    bad(shift, format!("{key} = {text:?} must be a number from {low} to {high}"))
                })
            }
            KnobKind::Color => color(text).map(KnobValue::Color).ok_or_else(|| {
                bad(shift, format!("{key} = {text:?} must be six hexadecimal digits, as in #cc0000"))
            }),
            KnobKind::Folder if text.is_empty() => {
                Err(bad(shift, format!("{key} is empty; name the folder with the pictures")))
            }
            KnobKind::Folder => Ok(KnobValue::Folder(text.into(), Arc::default())),
            // Without a name when it is at its default; building the world then says that the file is missing.
            KnobKind::File => Ok(KnobValue::File(text.into(), Arc::default())),
        }
    }

    /// Its default setting.
    pub(super) fn default_setting(&self, shift: &str) -> Result<KnobValue, EnvError> {
        self.setting(shift, self.default)
    }
}

fn color(text: &str) -> Option<[u8; 3]> {
    let hex = text.strip_prefix('#').unwrap_or(text);
    let digits = hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    let n = digits.then(|| u32::from_str_radix(hex, 16).ok()).flatten()?;
    Some([(n >> 16) as u8, (n >> 8) as u8, n as u8])
}

/// The error for an option that has a wrong value.
pub(super) fn bad(shift: &str, why: String) -> EnvError {
    EnvError::BadOption { env: format!("shift {shift}"), why }
}

/// Writes `shift` as [`parse`] reads it.
pub(super) fn write(shift: &Shift, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let info = shift.info();
    write!(f, "{}:{}", info.name, shift.severity())?;
    for (knob, setting) in info.knobs.iter().zip(shift.settings()) {
        if knob.default_setting(info.name).as_ref() == Ok(setting) {
            continue;
        }
        match setting {
            KnobValue::Auto => write!(f, ":{}=auto", knob.name)?,
            KnobValue::Number(number) => write!(f, ":{}={number}", knob.name)?,
            KnobValue::Color([r, g, b]) => write!(f, ":{}=#{r:02x}{g:02x}{b:02x}", knob.name)?,
            KnobValue::Folder(name, _) | KnobValue::File(name, _) => write!(f, ":{}={name}", knob.name)?,
        }
    }
    match shift.steps() {
        (0, None) => Ok(()),
        (from, None) => write!(f, "@{from}"),
        (from, Some(until)) => write!(f, "@{from}-{until}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_at_once_are_refused() {
        let text = vec!["hue:1"; 2001].join("+");
        let said = parse(&text, &mut Vec::new()).expect_err("too many").to_string();
        assert!(said.contains("more than 64 at once"), "{said}");
        parse(&["hue:1"; MAX_SHIFTS].join("+"), &mut Vec::new()).expect("as many as may be");
    }
}
