//! Words and numbers of reports.

use foveate_core::Image;

use super::{ADVISED_EPISODES, Mean};
use crate::charts::{DotRow, percent};
use crate::faithful::FEWEST_EPISODES;
use crate::figure::Ink;
use crate::page::Mood;
use crate::trajectory::ActionScale;

/// The name of whom a report is about: that of the file of the weights.
pub(super) fn subject(weights: &str) -> String {
    let name = weights.rsplit('/').next().unwrap_or_default().trim_end_matches(".safetensors");
    format!("{}{name}", if name.ends_with(" champion") { "the " } else { "" })
}

/// `1 episode`, `2 episodes`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// With a capital letter at its beginning.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// With two decimals and the sign that people write.
pub(super) fn two(value: f64) -> String {
    let text = format!("{value:.2}");
    if text == "-0.00" { "0.00".into() } else { text.replace('-', "−") }
}

pub(super) fn whole(value: f64) -> String {
    let text = format!("{value:.0}");
    if text == "-0" { "0".into() } else { text.replace('-', "−") }
}

/// `0.64 (0.50 … 0.78)`; one episode has no interval.
pub(super) fn with_interval((mean, interval): Mean) -> String {
    match interval {
        Some([low, high]) => format!("{} ({} … {})", two(mean), two(low), two(high)),
        None => two(mean),
    }
}

/// How a verdict looks.
pub(super) fn mood(verdict: &str) -> Mood {
    match verdict {
        "supported" => Mood::Good,
        "not supported" => Mood::Bad,
        _ => Mood::Plain,
    }
}

/// A share with its interval, in percent.
pub(super) fn parts((mean, interval): Mean) -> String {
    match interval {
        Some([low, high]) => format!("{} ({} … {})", percent(mean), percent(low), percent(high)),
        None => percent(mean),
    }
}

/// The picture as PNG bytes; an empty picture has none.
pub(super) fn png(image: Image<'_>) -> Vec<u8> {
    foveate_film::encode_png(image).unwrap_or_default()
}

/// What an action is, for the JSON.
pub(super) fn scale_name(scale: &ActionScale) -> &'static str {
    match scale {
        ActionScale::Box(_) => "mean part of each dimension's extent",
        ActionScale::Choices => "total variation of the probabilities of the choices",
    }
}

/// What an interval of a difference says, beside `what`.
pub(super) fn lies(what: &str, (_, interval): Mean) -> String {
    match interval {
        Some([low, _]) if low > 0.0 => format!("more than {what}"),
        Some([_, high]) if high < 0.0 => format!("less than {what}"),
        Some(_) => format!("not clearly different from {what}"),
        None => format!("not comparable with {what} over one episode"),
    }
}

/// That these are too few episodes for a verdict, if they are.
pub(super) fn too_few(episodes: usize) -> Option<String> {
    (episodes < FEWEST_EPISODES).then(|| {
        format!(
            "{} {} too few for a verdict; {FEWEST_EPISODES} are the least, {ADVISED_EPISODES} are better.",
            count(episodes, "episode"),
            if episodes == 1 { "is" } else { "are" },
        )
    })
}

/// What bars and bands show.
pub(super) fn intervals(what: &str, episodes: usize) -> String {
    if episodes == 1 {
        "one episode has no interval".to_owned()
    } else {
        format!("{what}: 95 % over {episodes} episodes")
    }
}

/// A line of a dot plot.
pub(super) fn dot(name: impl Into<String>, kind: &str, ink: Ink, (value, interval): Mean) -> DotRow {
    DotRow { name: name.into(), kind: kind.into(), ink, value, interval, remark: None }
}
