//! Settings that change during a start.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::{Table, Value};

use crate::error::TrainError;

/// A number that may depend on the steps trained in the current start. In TOML:
///
/// ```toml
/// sigma = 0.1                                       # always the same
/// sigma = { from = 0.1, to = 0.03 }                 # straight, over the steps of the stage
/// sigma = { from = 0.1, to = 0.03, shape = "exponential", over = 2_000_000 }
/// sigma = [[0, 0.1], [1_000_000, 0.05]]             # from these steps on
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    form: Form,
    /// True if all its numbers were written as integers; its values are then integers, too.
    whole: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Form {
    Constant(f64),
    Ramp { from: f64, to: f64, shape: Shape, over: Option<u64> },
    List(Vec<(u64, f64)>),
}

/// The shape of a ramp from one value to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    /// Changes by the same amount every step.
    #[default]
    Linear,
    /// Changes slowly, fast, slowly: half a period of a cosine.
    Cosine,
    /// Changes by the same factor every step.
    Exponential,
}

/// A ramp as a user writes it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ramp {
    from: Value,
    to: Value,
    #[serde(default)]
    shape: Shape,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<u64>,
}

const FORMS: &str = "write a number, { from = 0.1, to = 0.03 } or [[0, 0.1], [1_000_000, 0.03]]";

impl Schedule {
    /// A constant value.
    pub const fn constant(value: f64) -> Self {
        Schedule { form: Form::Constant(value), whole: false }
    }

    /// Reads a schedule as a user wrote it.
    ///
    /// # Errors
    /// When it has none of the three forms.
    pub fn from_value(value: &Value) -> Result<Self, TrainError> {
        Self::parse(value).map_err(TrainError::recipe)
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let numbers = |values: &[&Value]| -> Result<(Vec<f64>, bool), String> {
            let all = values.iter().map(|v| number(v)).collect::<Result<_, _>>()?;
            Ok((all, values.iter().all(|v| v.is_integer())))
        };
        match value {
            Value::Table(table) => {
                let Ramp { from, to, shape, over } = ramp(table)?;
                let (ends, whole) = numbers(&[&from, &to])?;
                let (from, to) = (ends[0], ends[1]);
                if over == Some(0) {
                    return Err("over = 0; choose 1 step or more".into());
                }
                if shape == Shape::Exponential && !(from > 0.0 && to > 0.0) {
                    return Err(format!("an exponential ramp from {from} to {to}; both must be above 0"));
                }
                Ok(Schedule { form: Form::Ramp { from, to, shape, over }, whole })
            }
            Value::Array(entries) => {
                let pairs: Option<Vec<(u64, &Value)>> = entries
                    .iter()
                    .map(|entry| match entry.as_array().map(Vec::as_slice) {
                        Some([at, value]) => Some((at.as_integer()?.try_into().ok()?, value)),
                        _ => None,
                    })
                    .collect();
                let pairs =
                    pairs.ok_or_else(|| format!("a list with other things than [steps, value]; {FORMS}"))?;
                if pairs.first().is_none_or(|first| first.0 != 0) {
                    return Err("a list that does not begin at step 0; begin it with [0, …]".into());
                }
                if let Some(pair) = pairs.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
                    let (a, b) = (pair[0].0, pair[1].0);
                    return Err(format!("step {b} after step {a} in a list; put them in order"));
                }
                let (values, whole) = numbers(&pairs.iter().map(|p| p.1).collect::<Vec<_>>())?;
                let list = pairs.iter().map(|p| p.0).zip(values).collect();
                Ok(Schedule { form: Form::List(list), whole })
            }
            one => {
                let (values, whole) = numbers(&[one])?;
                Ok(Schedule { form: Form::Constant(values[0]), whole })
            }
        }
    }

    /// Returns whether a user's value is a schedule that changes.
    pub(super) fn is_schedule(value: &Value) -> bool {
        match value {
            Value::Table(table) => table.contains_key("from") || table.contains_key("to"),
            Value::Array(entries) => entries.iter().any(Value::is_array),
            _ => false,
        }
    }

    /// Its value after `done` of the `total` steps of a start.
    pub fn at(&self, done: u64, total: u64) -> f64 {
        match &self.form {
            Form::Constant(value) => *value,
            Form::Ramp { from, to, shape, over } => {
                let t = (done as f64 / over.unwrap_or(total).max(1) as f64).min(1.0);
                // The end points are exactly as written.
                match shape {
                    _ if t == 0.0 => *from,
                    _ if t == 1.0 => *to,
                    Shape::Linear => from + (to - from) * t,
                    Shape::Cosine => to + (from - to) * 0.5 * (1.0 + (std::f64::consts::PI * t).cos()),
                    Shape::Exponential => from * (to / from).powf(t),
                }
            }
            Form::List(list) => {
                let after = list.partition_point(|&(at, _)| at <= done);
                list[after.saturating_sub(1)].1
            }
        }
    }

    /// [`Schedule::at`] as a TOML value: an integer if all values were integers.
    pub(super) fn value_at(&self, done: u64, total: u64) -> Value {
        let value = self.at(done, total);
        if self.whole { Value::Integer(value.round() as i64) } else { Value::Float(value) }
    }

    /// Steps at which to check the schedule so that all extreme values are covered.
    pub(super) fn corners(&self, total: u64) -> Vec<u64> {
        match &self.form {
            Form::Constant(_) => vec![0],
            Form::Ramp { over, .. } => vec![0, over.unwrap_or(total)],
            Form::List(list) => list.iter().map(|p| p.0).collect(),
        }
    }

    /// Its largest value.
    pub fn largest(&self) -> f64 {
        match &self.form {
            Form::Constant(value) => *value,
            Form::Ramp { from, to, .. } => from.max(*to),
            Form::List(list) => list.iter().map(|p| p.1).fold(f64::MIN, f64::max),
        }
    }

    /// Its smallest value.
    pub fn smallest(&self) -> f64 {
        match &self.form {
            Form::Constant(value) => *value,
            Form::Ramp { from, to, .. } => from.min(*to),
            Form::List(list) => list.iter().map(|p| p.1).fold(f64::MAX, f64::min),
        }
    }

    fn to_value(&self) -> Value {
        let number = |x: f64| if self.whole { Value::Integer(x.round() as i64) } else { Value::Float(x) };
        match &self.form {
            Form::Constant(value) => number(*value),
            Form::Ramp { from, to, shape, over } => {
                let ramp = Ramp { from: number(*from), to: number(*to), shape: *shape, over: *over };
                Value::try_from(ramp).expect("plain numbers and a word")
            }
            Form::List(list) => {
                let pair = |&(at, x): &(u64, f64)| Value::Array(vec![Value::Integer(at as i64), number(x)]);
                Value::Array(list.iter().map(pair).collect())
            }
        }
    }
}

fn ramp(table: &Table) -> Result<Ramp, String> {
    table.clone().try_into().map_err(|error: toml::de::Error| format!("{}; {FORMS}", error.message().trim()))
}

fn number(value: &Value) -> Result<f64, String> {
    let x = match value {
        Value::Integer(i) => *i as f64,
        Value::Float(x) => *x,
        other => return Err(format!("{} {other}, expected a number; {FORMS}", other.type_str())),
    };
    if x.is_finite() { Ok(x) } else { Err(format!("{x} is no finite number; {FORMS}")) }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Schedule::from_value(&Value::deserialize(from)?).map_err(de::Error::custom)
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Schedule, String> {
        let mut table: Table = format!("x = {text}").parse().expect("TOML");
        Schedule::parse(&table.remove("x").expect("it was written"))
    }

    #[track_caller]
    fn check(text: &str, at: &[(u64, f64)]) {
        let schedule = parse(text).expect(text);
        for &(done, expect) in at {
            let value = schedule.at(done, 1000);
            assert!((value - expect).abs() < 1e-12, "{text} at {done}: {value}, not {expect}");
            assert!((schedule.smallest()..=schedule.largest()).contains(&value), "{text} at {done}");
        }
        let again = Schedule::from_value(&schedule.to_value()).expect("its own");
        assert_eq!(again, schedule, "{text}");
    }

    #[test]
    fn values_over_the_steps_of_a_start() {
        check("0.1", &[(0, 0.1), (5000, 0.1)]);
        check("{ from = 0.1, to = 0.05 }", &[(0, 0.1), (500, 0.075), (1000, 0.05), (1300, 0.05)]);
        check("{ from = 0.1, to = 0.05, over = 500 }", &[(250, 0.075), (500, 0.05), (1000, 0.05)]);
        check("{ from = 1, to = 3, shape = 'cosine' }", &[(0, 1.0), (500, 2.0), (1000, 3.0)]);
        // By hand: 2 − cos(π/4).
        check("{ from = 1, to = 3, shape = 'cosine' }", &[(250, 2.0 - 0.5_f64.sqrt())]);
        check("{ from = 1, to = 0.01, shape = 'exponential' }", &[(0, 1.0), (500, 0.1), (2000, 0.01)]);
        check("[[0, 200], [300, 1000]]", &[(0, 200.0), (299, 200.0), (300, 1000.0), (9999, 1000.0)]);
    }

    #[test]
    fn integers_stay_integers() {
        for (text, value) in [
            ("{ from = 10, to = 20, over = 3 }", Value::Integer(13)),
            ("{ from = 10, to = 20.5, over = 4 }", Value::Float(12.625)),
            ("[[0, 32], [5, 64]]", Value::Integer(32)),
            ("32", Value::Integer(32)),
            ("0.5", Value::Float(0.5)),
        ] {
            assert_eq!(parse(text).expect(text).value_at(1, 1000), value, "{text}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for (text, why) in [
            ("'fast'", "string \"fast\", expected a number; write a number, {"),
            ("nan", "NaN is no finite number"),
            ("{ from = 1 }", "missing field `to`; write"),
            ("{ from = 1, to = 2, form = 'cosine' }", "unknown field `form`, expected one of `from`"),
            ("{ from = 1, to = 2, shape = 'round' }", "unknown variant `round`, expected one of `linear`"),
            (
                "{ from = 1, to = 0, shape = 'exponential' }",
                "exponential ramp from 1 to 0; both must be above",
            ),
            ("{ from = 1, to = 2, over = 0 }", "over = 0; choose 1"),
            ("{ from = 1, to = true }", "boolean true, expected a number"),
            ("[]", "does not begin at step 0; begin"),
            ("[[5, 1]]", "does not begin at step 0"),
            ("[[0, 1], [9, 2], [9, 3]]", "step 9 after step 9 in a list; put"),
            ("[[0, 1], [-9, 2]]", "a list with other things than [steps, value]"),
            ("[[0, 1], 3]", "a list with other things than [steps, value]"),
            ("[[0, inf]]", "inf is no finite number"),
        ] {
            let said = parse(text).expect_err(text);
            assert!(said.contains(why) && said.contains(';') && said.lines().count() == 1, "{text}: {said}");
        }
    }
}
