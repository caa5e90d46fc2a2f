//! Suggestions for misspelt names.

/// Longer names are not compared: no name of ours is nearly that long.
const LONGEST: usize = 64;

/// The entry of `known` that is most similar to `given`, if one is similar enough.
///
/// Case, separators and a version at the end (`-v3`) are ignored, so `CarRacing-v3` and `car_racing` both
/// match `car-racing`. Otherwise one letter in three may be wrong, missing, added or swapped with its
/// neighbour, or one name may be a part of the other.
///
/// ```
/// use foveate_core::near::closest;
/// assert_eq!(closest("CarRacing-v3", ["car-racing", "take-cover"]), Some("car-racing"));
/// assert_eq!(closest("occlusoin", ["occlusion", "noise"]), Some("occlusion"));
/// assert_eq!(closest("moon", ["car-racing", "take-cover"]), None);
/// ```
pub fn closest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONGEST {
        return None;
    }
    let given = plain(given);
    let scored = known.into_iter().filter_map(|name| Some((score(&given, &plain(name))?, name)));
    scored.min_by_key(|(score, _)| *score).map(|(_, name)| name)
}

/// Returns ` did you mean NAME?` for the entry of `known` that is similar to `given`, or nothing. `known` is
/// separated by commas.
pub fn hint(given: &str, known: &str) -> String {
    hint_of(given, known.split(',').map(str::trim))
}

/// Like [`hint`], with the known names as an iterator.
pub fn hint_of<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let given = given.split(':').next().unwrap_or_default();
    let name = closest(given, known).filter(|name| *name != given);
    name.map_or_else(String::new, |name| format!(" did you mean {name}?"))
}

/// Extracts from a serde message the unknown word and the expected words; the message looks like ``unknown
/// field `sigm`, expected one of `sigma`, `steps` ``.
pub fn unknown_word(message: &str) -> Option<(&str, Vec<&str>)> {
    let at = ["unknown field `", "unknown variant `"]
        .iter()
        .find_map(|start| Some(message.find(start)? + start.len()));
    let (given, rest) = message[at?..].split_once('`')?;
    let (_, expected) = rest.split_once("expected ")?;
    Some((given, expected.split('`').skip(1).step_by(2).collect()))
}

/// A normalised name: without case, separators and version.
fn plain(name: &str) -> Vec<char> {
    let version = name.rfind("-v").filter(|&at| {
        at > 0 && at + 2 < name.len() && name[at + 2..].bytes().all(|byte| byte.is_ascii_digit())
    });
    let name = &name[..version.unwrap_or(name.len())];
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Distance between two normalised names; `None` when it is too large.
fn score(given: &[char], name: &[char]) -> Option<usize> {
    let (short, long) = if given.len() < name.len() { (given, name) } else { (name, given) };
    if short.is_empty() {
        return None;
    }
    let apart = distance(given, name);
    if apart <= ((short.len() + 1) / 3).min(4) && apart < short.len() {
        return Some(apart);
    }
    let part = long.starts_with(short) && short.len() >= 3
        || short.len() >= 4 && long.windows(short.len()).any(|part| part == short);
    // Larger than any spelling distance; smaller when more of the name was given.
    part.then_some(LONGEST + long.len() - short.len())
}

/// Number of letters to insert, remove, replace or swap with a neighbour to turn one text into the other
/// (edit distance).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORLDS: [&str; 2] = ["car-racing", "take-cover"];
    const AGENTS: [&str; 4] = ["attention-agent", "iap", "iap-hierarchical", "random-actions"];
    const SHIFTS: [&str; 5] = ["noise", "blur", "delay", "hue", "sticky"];

    #[track_caller]
    fn check(known: &[&'static str], given: &str, expect: Option<&str>) {
        assert_eq!(closest(given, known.iter().copied()), expect, "{given}");
    }

    #[test]
    fn near_misses() {
        for given in [
            "CarRacing-v3",
            "CarRacing-v0",
            "car_racing",
            "carracing",
            "Car Racing",
            "car-rcaing",
            "carracin",
        ] {
            check(&WORLDS, given, Some("car-racing"));
        }
        for given in ["VizdoomTakeCover-v0", "DoomTakeCover-v0", "takecover", "take_cover", "take-cove"] {
            check(&WORLDS, given, Some("take-cover"));
        }
        check(&AGENTS, "AttentionAgent", Some("attention-agent"));
        check(&AGENTS, "atention-agent", Some("attention-agent"));
        check(&AGENTS, "attention", Some("attention-agent"));
        check(&AGENTS, "IAP", Some("iap"));
        check(&AGENTS, "hierarchical", Some("iap-hierarchical"));
        check(&SHIFTS, "nois", Some("noise"));
        check(&SHIFTS, "nosie", Some("noise"));
        check(&SHIFTS, "blurr", Some("blur"));
        check(&["population", "sigma", "steps"], "sigm", Some("sigma"));
        check(&["cma-es", "sep-cma-es"], "cma", Some("cma-es"));
        check(&["grey", "resize"], "gray", Some("grey"));
    }

    #[test]
    fn what_is_far_away_is_no_suggestion() {
        for given in ["moon", "", "-v3", "x", "CartPole-v1", &"car-racing".repeat(1000)] {
            check(&WORLDS, given, None);
        }
        check(&SHIFTS, "fog", None);
        check(&["a", "b"], "c", None);
        check(&["bar", "blob"], "car", Some("bar"));
        check(&["bar", "blob"], "ba", Some("bar"));
    }

    #[test]
    fn hints_are_questions() {
        assert_eq!(hint("resise:84x84", "grey, resize, stack"), " did you mean resize?");
        assert_eq!(hint("moon", "car-racing, take-cover"), "");
        assert_eq!(hint("take-cover", "car-racing, take-cover"), "", "it was given");
    }

    #[test]
    fn serde_says_what_it_expects() {
        for (message, expect) in [
            ("unknown field `a`, expected one of `b`, `c`", Some(("a", vec!["b", "c"]))),
            ("x: unknown field `a`, expected `b` or `c`", Some(("a", vec!["b", "c"]))),
            ("unknown variant `a`, expected `b` at line 1", Some(("a", vec!["b"]))),
            ("unknown field `a`, there are no fields", None),
            ("invalid type: string \"many\", expected f64", None),
        ] {
            assert_eq!(unknown_word(message), expect, "{message}");
        }
    }
}
