//! The settings of a learner as numbers, by which a state that was saved with other settings is recognised.

use toml::{Table, Value};

/// The order of the numbers, which is that of the first states, so that these still fit.
pub(crate) struct SettingsOrder {
    /// Settings that always count, with spaces between them.
    pub(crate) always: &'static str,
    /// Settings that came later, in groups, each with its number in states that do not have it: a group counts where it, or one
    /// after it, holds another number. Settings that are listed nowhere count where they are written, with a number for the name.
    pub(crate) later: &'static [&'static [(&'static str, f64)]],
    /// The values of settings that are words; their numbers are their places.
    pub(crate) words: &'static [(&'static str, &'static [&'static str])],
}

impl SettingsOrder {
    /// The numbers of `settings`.
    pub(crate) fn numbers(&self, mut settings: Table) -> Vec<f64> {
        let mut take = |name: &str| settings.remove(name).map(|value| self.number(name, &value));
        let always = self.always.split_whitespace();
        let mut numbers: Vec<f64> = always.map(|name| take(name).unwrap_or(0.0)).collect();
        let mut later = vec![];
        let mut count = 0;
        for group in self.later {
            for &(name, before) in *group {
                let number = take(name).unwrap_or(before);
                later.push(number);
                if number != before {
                    count = later.len();
                }
            }
            // A group counts as a whole.
            if count > later.len() - group.len() {
                count = later.len();
            }
        }
        numbers.extend_from_slice(&later[..count]);
        for (name, value) in &settings {
            numbers.extend([of_text(name), self.number(name, value)]);
        }
        numbers
    }

    fn number(&self, name: &str, value: &Value) -> f64 {
        match value {
            Value::Boolean(value) => f64::from(u8::from(*value)),
            Value::Integer(value) => *value as f64,
            Value::Float(value) => *value,
            Value::String(word) => {
                let words = self.words.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, words)| words);
                words.iter().position(|known| known == word).map_or_else(|| of_text(word), |at| at as f64)
            }
            other => of_text(&other.to_string()),
        }
    }
}

/// A whole number below 2⁵³ for a text (FNV-1a).
fn of_text(text: &str) -> f64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 11) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: SettingsOrder = SettingsOrder {
        always: "rate kind deep",
        later: &[&[("clip", 1.0)], &[("a", 0.0), ("b", 0.0)]],
        words: &[("kind", &["sum", "mean"])],
    };

    fn numbers(text: &str) -> Vec<f64> {
        ORDER.numbers(text.parse().expect("TOML"))
    }

    #[test]
    fn later_settings_count_where_they_are_used() {
        let base = "rate = 0.5\nkind = 'mean'\ndeep = true\n";
        for (more, expect) in [
            ("", &[][..]),
            ("clip = 1.0\na = 0\nb = false", &[]),
            ("clip = 2.0", &[2.0]),
            ("b = 3", &[1.0, 0.0, 3.0]),
            ("a = 3", &[1.0, 3.0, 0.0]),
        ] {
            assert_eq!(numbers(&format!("{base}{more}")), [&[0.5, 1.0, 1.0][..], expect].concat(), "{more}");
        }
        // A setting that no list names counts, and two of them are not taken for each other.
        let [x, y] = ["x = 2", "y = 2"].map(|more| numbers(&format!("{base}{more}")));
        assert!(x.len() == 5 && x[4] == 2.0 && x[3] != y[3] && x != numbers(&format!("{base}x = 3")));
        assert_ne!(numbers(&format!("{base}x = 'p'")), numbers(&format!("{base}x = 'q'")));
    }
}
