//! Variants in text form: `bar:width=50+color`.

use std::fmt;
use std::str::FromStr;

use foveate_core::EnvError;

use super::catalogue::{catalogue, find, published};
use super::{ENV, Side, Variant, bad};

/// Parses `text` and appends its variants to `list`.
pub(super) fn parse(text: &str, list: &mut Vec<Variant>) -> Result<(), EnvError> {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = split(rest, &['+', ',', ':']);
        rest = after;
        if name == "original" {
            // The published name of "no variant"; with parameters it is an unknown variant.
            if rest.starts_with(':') {
                return Err(unknown(name));
            }
        } else {
            let (Some(info), Some(mut variant)) = (find(name), published(name)) else {
                return Err(unknown(name));
            };
            while let Some(parameters) = rest.strip_prefix(':') {
                let (key, after) = split(parameters, &['=', ':', '+', ',']);
                if !info.parameters.iter().any(|p| p.name == key) {
                    let known: Vec<&str> = info.parameters.iter().map(|p| p.name).collect();
                    return Err(EnvError::UnknownOption {
                        env: format!("{ENV} variant {name}"),
                        what: "parameter",
                        given: key.into(),
                        known: known.join(", "),
                    });
                }
                let Some(value) = after.strip_prefix('=') else {
                    return Err(bad(format!("variant {name}: {key} needs a value, as in {name}:{key}=…")));
                };
                let (value, after) =
                    if key == "folder" { (value, "") } else { split(value, &[':', '+', ',']) };
                set(&mut variant, key, value)?;
                rest = after;
            }
            list.push(variant);
        }
        rest = match rest.strip_prefix(['+', ',']) {
            Some(next) if next.trim().is_empty() => {
                return Err(bad(format!("a variant is missing at the end of {text:?}")));
            }
            Some(next) => next.trim_start(),
            None => rest,
        };
    }
    Ok(())
}

/// The text before the first of `ends`, trimmed, and the rest from there on.
fn split<'a>(text: &'a str, ends: &[char]) -> (&'a str, &'a str) {
    let at = text.find(ends).unwrap_or(text.len());
    (text[..at].trim(), &text[at..])
}

fn unknown(given: &str) -> EnvError {
    let known: Vec<&str> = catalogue().iter().map(|info| info.name).collect();
    EnvError::UnknownOption { env: ENV.into(), what: "variant", given: given.into(), known: known.join(", ") }
}

/// Sets the existing parameter `key` to `value`.
fn set(variant: &mut Variant, key: &str, value: &str) -> Result<(), EnvError> {
    let name = variant.name();
    let number = |low: f64, high: f64| number(name, key, value, low, high);
    match (variant, key) {
        (Variant::Color { amplitude } | Variant::Color3 { amplitude }, _) => *amplitude = number(0.0, 1.0)?,
        (Variant::Bar { width }, _) => *width = number(0.0, 500.0)?,
        (Variant::Blob(blob), "x") => blob.corner[0] = number(-1000.0, 1000.0)? as f32,
        (Variant::Blob(blob), "y") => blob.corner[1] = number(-1000.0, 1000.0)? as f32,
        (Variant::Blob(blob), "side") => blob.side = above_zero(name, key, value)? as f32,
        (Variant::Blob(blob), _) => blob.rgb = rgb(name, value)?,
        (Variant::Noise { size }, _) => {
            *size = usize::from_str(value).ok().filter(|n| (1..=2000).contains(n)).ok_or_else(|| {
                bad(format!("variant {name}: {key} = {value:?} must be a whole number from 1 to 2000"))
            })?;
        }
        (Variant::Video { folder, .. }, _) => {
            if value.is_empty() {
                return Err(bad(format!(
                    "variant {name}: folder is empty; name the folder with the pictures"
                )));
            }
            *folder = value.into();
        }
        (Variant::FakeLane(lane), "side") => {
            lane.side = match value {
                "left" => Side::Left,
                "right" => Side::Right,
                _ => return Err(bad(format!("variant {name}: side = {value:?} must be left or right"))),
            }
        }
        (Variant::FakeLane(lane), "gap") => lane.gap = number(0.0, 100.0)?,
        (Variant::FakeLane(lane), "width") => lane.width = above_zero(name, key, value)?,
        (Variant::FakeLane(lane), _) => lane.rgb = rgb(name, value)?,
    }
    Ok(())
}

fn number(name: &str, key: &str, value: &str, low: f64, high: f64) -> Result<f64, EnvError> {
    f64::from_str(value).ok().filter(|n| (low..=high).contains(n)).ok_or_else(|| {
        bad(format!("variant {name}: {key} = {value:?} must be a number from {low} to {high}"))
    })
}

/// A length from 0.001 to 100: a larger one is of no use, and a smaller one is not visible.
fn above_zero(name: &str, key: &str, value: &str) -> Result<f64, EnvError> {
    number(name, key, value, 0.001, 100.0)
}

fn rgb(name: &str, value: &str) -> Result<[u8; 3], EnvError> {
    let hex = value.strip_prefix('#').unwrap_or(value);
    let digits = hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    let number = if digits { u32::from_str_radix(hex, 16).ok() } else { None };
    number.map(|n| [(n >> 16) as u8, (n >> 8) as u8, n as u8]).ok_or_else(|| {
        bad(format!("variant {name}: color = {value:?} must be six hexadecimal digits, as in #cc0000"))
    })
}

/// Writes `variant` in the syntax of [`parse`].
pub(super) fn write(variant: &Variant, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(variant.name())?;
    let usual = published(variant.name());
    let mut put = |key: &str, value: &dyn fmt::Display, usual: bool| {
        if usual { Ok(()) } else { write!(f, ":{key}={value}") }
    };
    match (variant, &usual) {
        (Variant::Color { amplitude: a }, Some(Variant::Color { amplitude: b }))
        | (Variant::Color3 { amplitude: a }, Some(Variant::Color3 { amplitude: b })) => {
            put("amplitude", a, a == b)
        }
        (Variant::Bar { width: a }, Some(Variant::Bar { width: b })) => put("width", a, a == b),
        (Variant::Blob(a), Some(Variant::Blob(b))) => {
            put("x", &a.corner[0], a.corner[0] == b.corner[0])?;
            put("y", &a.corner[1], a.corner[1] == b.corner[1])?;
            put("side", &a.side, a.side == b.side)?;
            put("color", &Hex(a.rgb), a.rgb == b.rgb)
        }
        (Variant::Noise { size: a }, Some(Variant::Noise { size: b })) => put("size", a, a == b),
        (Variant::Video { folder, .. }, _) => put("folder", folder, folder.is_empty()),
        (Variant::FakeLane(a), Some(Variant::FakeLane(b))) => {
            let side = if a.side == Side::Left { "left" } else { "right" };
            put("side", &side, a.side == b.side)?;
            put("gap", &a.gap, a.gap == b.gap)?;
            put("width", &a.width, a.width == b.width)?;
            put("color", &Hex(a.rgb), a.rgb == b.rgb)
        }
        _ => Ok(()),
    }
}

/// A colour as `#rrggbb`.
struct Hex([u8; 3]);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2])
    }
}
