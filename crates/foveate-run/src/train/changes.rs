//! Differences between the configuration of a saved run and the one to resume with.

use toml::{Table, Value};

/// Keys that do not affect the results.
const FREE: [&str; 2] = ["workers", "videos"];

/// Every key that differs, in the form `recipe.stage.0.sigma was 0.1 and is 0.2`; empty without relevant
/// differences.
pub(crate) fn between(before: &str, now: &str) -> Vec<String> {
    let (Ok(before), Ok(now)) = (before.parse::<Table>(), now.parse::<Table>()) else {
        return if before == now { Vec::new() } else { vec!["the configuration cannot be compared".into()] };
    };
    let mut changes = Vec::new();
    compare("", &Value::Table(before), &Value::Table(now), &mut changes);
    changes
}

fn compare(path: &str, before: &Value, now: &Value, changes: &mut Vec<String>) {
    match (before, now) {
        (Value::Table(before), Value::Table(now)) => {
            let mut keys: Vec<&String> = before.keys().chain(now.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys.into_iter().filter(|key| !(path.is_empty() && FREE.contains(&key.as_str()))) {
                either(&join(path, key), before.get(key), now.get(key), changes);
            }
        }
        (Value::Array(before), Value::Array(now)) => {
            for i in 0..before.len().max(now.len()) {
                either(&join(path, &i.to_string()), before.get(i), now.get(i), changes);
            }
        }
        _ if before == now => {}
        _ => changes.push(format!("{path} was {} and is {}", short(before), short(now))),
    }
}

fn either(path: &str, before: Option<&Value>, now: Option<&Value>, changes: &mut Vec<String>) {
    match (before, now) {
        (Some(before), Some(now)) => compare(path, before, now, changes),
        (Some(before), None) => changes.push(format!("{path} was {} and is gone", short(before))),
        (None, Some(now)) => changes.push(format!("{path} was not there and is {}", short(now))),
        (None, None) => {}
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn short(value: &Value) -> String {
    match value {
        Value::Table(_) => "a table".into(),
        Value::Array(items) => format!("a list of {}", items.len()),
        other => {
            let text = other.to_string().replace(['\n', '\r'], " ");
            if text.chars().count() > 40 { text.chars().take(40).chain(['…']).collect() } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_named() {
        let base = "seed = 1\nworkers = 2\n[a]\nb = [1, 2]\nc = \"x\"\n[[s]]\nk = 0.1\n";
        for (now, expect) in [
            (
                "# a remark\nworkers = 7\nvideos = false\nseed = 1\n[a]\nc = \"x\"\nb = [1,2]\n[[s]]\nk = 0.1",
                &[][..],
            ),
            (
                "seed = 2\n[a]\nb = [1, 3, 4]\nc = \"x\"\n[[s]]\nk = 0.2",
                &[
                    "a.b.1 was 2 and is 3",
                    "a.b.2 was not there and is 4",
                    "s.0.k was 0.1 and is 0.2",
                    "seed was 1 and is 2",
                ],
            ),
            ("seed = 1\na = 3\ns = []", &["a was a table and is 3", "s.0 was a table and is gone"]),
            ("seed = = 1", &["the configuration cannot be compared"]),
        ] {
            assert_eq!(between(base, now), expect, "{now}");
        }
    }
}
