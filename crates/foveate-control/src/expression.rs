//! Small formulas over a model's sensors, for rewards and ends of episodes.
//!
//! ```text
//! formula = sum, or sum < sum, or sum > sum (1 if it holds, else 0)
//! sum     = product, with + and - between products
//! product = factor, with * and / between factors
//! factor  = - factor, number, SENSOR, SENSOR[INDEX], time, effort, (formula), abs(…), exp(…), sqrt(…), min(…, …), max(…, …)
//! ```
//!
//! SENSOR is a name of letters, digits, `_` and `.`, or any name in quotes: `"walker/torso_touch"[0]`, `'imu-gyro'[2]`.
//! `time` is the simulated time of the episode in seconds, `effort` the mean square of the controls; in quotes, they are sensors.

use std::fmt;

/// Longer formulas are refused, in bytes.
const LONGEST: usize = 2000;
/// More brackets inside of each other are refused.
const DEEPEST: usize = 50;

/// A formula that can be computed again and again without an allocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// In postfix order.
    operations: Vec<Operation>,
    /// Names of its sensors, as [`Operation::Sensor`] numbers them.
    sensors: Vec<String>,
    stack: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    Number(f64),
    /// A number of a sensor: which sensor, which number.
    Sensor(usize, usize),
    Time,
    Effort,
    Negate,
    Abs,
    Exp,
    Sqrt,
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
    Less,
    More,
}

/// Why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no formula: {why} at character {at}")]
pub struct ExpressionError {
    /// The text, shortened.
    text: String,
    /// What is wrong.
    why: String,
    /// Where, from 1.
    at: usize,
}

/// What a formula is computed from.
pub(crate) struct Inputs<'a> {
    /// The numbers of every sensor of [`Expression::sensors`].
    pub(crate) sensors: &'a [Vec<f64>],
    pub(crate) time: f64,
    pub(crate) effort: f64,
}

impl Expression {
    /// Parses a formula.
    ///
    /// # Errors
    /// When the text is none, or is too long.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser { text, at: 0, operations: Vec::new(), sensors: Vec::new() };
        if text.len() > LONGEST {
            return Err(parser.wrong(format_args!("it is longer than {LONGEST} bytes")));
        }
        parser.formula(0)?;
        if parser.peek().is_some() {
            return Err(parser.wrong("something follows that does not belong to it"));
        }
        let Parser { operations, sensors, .. } = parser;
        let stack = Vec::with_capacity(operations.len());
        Ok(Expression { operations, sensors, stack })
    }

    /// Names of the sensors that it reads.
    pub fn sensors(&self) -> &[String] {
        &self.sensors
    }

    /// The largest index that it reads of each sensor.
    pub(crate) fn most_index(&self, sensor: usize) -> usize {
        let of_it = |operation: &Operation| match *operation {
            Operation::Sensor(number, index) if number == sensor => Some(index),
            _ => None,
        };
        self.operations.iter().filter_map(of_it).max().unwrap_or(0)
    }

    /// Its value; not finite where a division by zero or the like makes it so.
    pub(crate) fn value(&mut self, inputs: &Inputs<'_>) -> f64 {
        let stack = &mut self.stack;
        stack.clear();
        for &operation in &self.operations {
            let number = match operation {
                Operation::Number(number) => number,
                Operation::Sensor(sensor, index) => inputs.sensors[sensor][index],
                Operation::Time => inputs.time,
                Operation::Effort => inputs.effort,
                Operation::Negate | Operation::Abs | Operation::Exp | Operation::Sqrt => {
                    let x = stack.pop().unwrap_or(f64::NAN);
                    match operation {
                        Operation::Negate => -x,
                        Operation::Abs => x.abs(),
                        Operation::Exp => x.exp(),
                        _ => x.sqrt(),
                    }
                }
                _ => {
                    let b = stack.pop().unwrap_or(f64::NAN);
                    let a = stack.pop().unwrap_or(f64::NAN);
                    match operation {
                        Operation::Add => a + b,
                        Operation::Subtract => a - b,
                        Operation::Multiply => a * b,
                        Operation::Divide => a / b,
                        Operation::Min => a.min(b),
                        Operation::Max => a.max(b),
                        Operation::Less => f64::from(u8::from(a < b)),
                        _ => f64::from(u8::from(a > b)),
                    }
                }
            };
            stack.push(number);
        }
        stack.pop().unwrap_or(f64::NAN)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    operations: Vec<Operation>,
    sensors: Vec<String>,
}

impl Parser<'_> {
    fn wrong(&self, why: impl fmt::Display) -> ExpressionError {
        let mut text: String = self.text.chars().take(60).collect();
        if text.len() < self.text.len() {
            text.push('…');
        }
        let at = self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1;
        ExpressionError { text, why: why.to_string(), at }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), ExpressionError> {
        if self.take(wanted) { Ok(()) } else { Err(self.wrong(format_args!("{wanted:?} is missing"))) }
    }

    fn formula(&mut self, depth: usize) -> Result<(), ExpressionError> {
        if depth > DEEPEST {
            return Err(self.wrong(format_args!("more than {DEEPEST} brackets inside of each other")));
        }
        self.sum(depth)?;
        for (sign, operation) in [('<', Operation::Less), ('>', Operation::More)] {
            if self.take(sign) {
                self.sum(depth)?;
                self.operations.push(operation);
                break;
            }
        }
        Ok(())
    }

    fn sum(&mut self, depth: usize) -> Result<(), ExpressionError> {
        self.product(depth)?;
        loop {
            let operation = match self.peek() {
                Some('+') => Operation::Add,
                Some('-') => Operation::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product(depth)?;
            self.operations.push(operation);
        }
    }

    fn product(&mut self, depth: usize) -> Result<(), ExpressionError> {
        self.factor(depth)?;
        loop {
            let operation = match self.peek() {
                Some('*') => Operation::Multiply,
                Some('/') => Operation::Divide,
                _ => return Ok(()),
            };
            self.at += 1;
            self.factor(depth)?;
            self.operations.push(operation);
        }
    }

    fn factor(&mut self, depth: usize) -> Result<(), ExpressionError> {
        let mut negative = false;
        while self.take('-') {
            negative = !negative;
        }
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.formula(depth + 1)?;
                self.expect(')')?;
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number()?,
            Some(c) if c.is_alphabetic() || c == '_' => self.named(depth)?,
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            _ => return Err(self.wrong("a number, a sensor or a bracket is missing")),
        }
        if negative {
            self.operations.push(Operation::Negate);
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ExpressionError> {
        let bytes = self.rest().as_bytes();
        let mut end = 0;
        while let Some(&byte) = bytes.get(end) {
            let sign_of_exponent =
                end > 0 && matches!(byte, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
            if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || sign_of_exponent) {
                break;
            }
            end += 1;
        }
        let number = self.rest()[..end].parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| self.wrong("this is no number"))?;
        self.at += end;
        self.operations.push(Operation::Number(number));
        Ok(())
    }

    fn named(&mut self, depth: usize) -> Result<(), ExpressionError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        let start = self.at;
        self.at += end;
        if self.take('(') {
            let (operation, arguments) = match name.as_str() {
                "abs" => (Operation::Abs, 1),
                "exp" => (Operation::Exp, 1),
                "sqrt" => (Operation::Sqrt, 1),
                "min" => (Operation::Min, 2),
                "max" => (Operation::Max, 2),
                _ => {
                    self.at = start;
                    return Err(self.wrong(format_args!(
                        "there is no function {name:?}; choose from abs, exp, sqrt, min, max"
                    )));
                }
            };
            for argument in 0..arguments {
                if argument > 0 {
                    self.expect(',')?;
                }
                self.formula(depth + 1)?;
            }
            self.expect(')')?;
            self.operations.push(operation);
            return Ok(());
        }
        match name.as_str() {
            "time" => self.operations.push(Operation::Time),
            "effort" => self.operations.push(Operation::Effort),
            _ => self.sensor(name)?,
        }
        Ok(())
    }

    /// A name in quotes.
    fn quoted(&mut self, quote: char) -> Result<(), ExpressionError> {
        let rest = &self.rest()[1..];
        let Some(end) = rest.find(quote) else {
            return Err(self.wrong(format_args!("this name has no second {quote}")));
        };
        let name = rest[..end].to_owned();
        self.at += end + 2;
        self.sensor(name)
    }

    /// The rest of a sensor after its name.
    fn sensor(&mut self, name: String) -> Result<(), ExpressionError> {
        let mut index = 0;
        if self.take('[') {
            self.peek();
            let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
            index = self.rest()[..digits].parse().map_err(|_| self.wrong("an index is missing"))?;
            self.at += digits;
            self.expect(']')?;
        }
        let known = self.sensors.iter().position(|sensor| *sensor == name);
        let sensor = known.unwrap_or(self.sensors.len());
        if known.is_none() {
            self.sensors.push(name);
        }
        self.operations.push(Operation::Sensor(sensor, index));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> f64 {
        let mut formula = Expression::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let known = [
            ("vel", vec![3.0, 4.0, -5.0]),
            ("height", vec![0.5]),
            ("walker/torso_touch", vec![7.0, 8.0]),
            ("imu-gyro", vec![9.0]),
            ("time", vec![11.0]),
        ];
        let sensors: Vec<Vec<f64>> = formula
            .sensors()
            .iter()
            .map(|name| known.iter().find(|(known, _)| known == name).expect("known").1.clone())
            .collect();
        formula.value(&Inputs { sensors: &sensors, time: 2.0, effort: 0.25 })
    }

    #[test]
    fn formulas_are_computed_as_written() {
        for (text, expect) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("12 / 3 / 2", 2.0),
            ("--2", 2.0),
            ("-2 * -3", 6.0),
            ("1e-1 + .5", 0.6),
            ("vel", 3.0),
            ("vel[2] + vel[ 1 ]", -1.0),
            ("min(vel, 1) * (height > 0.4) - 0.1 * effort", 0.975),
            ("height < 0.4", 0.0),
            ("max(abs(vel[2]), time)", 5.0),
            ("sqrt(vel*vel + vel[1]*vel[1])", 5.0),
            ("exp(0) + time", 3.0),
            ("\"walker/torso_touch\"[1] - 'imu-gyro'", -1.0),
            ("-'imu-gyro' * \"height\" + height", -4.0),
            ("'time' + time", 13.0),
        ] {
            assert!((value(text) - expect).abs() < 1e-12, "{text}: {}", value(text));
        }
        assert!(value("1 / 0").is_infinite() && value("sqrt(-1)").is_nan());
    }

    #[test]
    fn what_is_no_formula_is_refused_with_its_place() {
        for (text, part) in [
            ("", "is missing at character 1"),
            ("1 +", "is missing at character 4"),
            ("(1", "')' is missing at character 3"),
            ("1 2", "does not belong to it at character 3"),
            ("1.2.3", "no number at character 1"),
            ("1e999", "no number at character 1"),
            ("vel[x]", "an index is missing at character 5"),
            ("vel[99999999999999999999]", "an index is missing"),
            ("1 + 'imu-gyro", "no second ' at character 5"),
            ("\"vel\"[x]", "an index is missing at character 7"),
            ("'vel'(1)", "does not belong to it at character 6"),
            ("sin(1)", "no function \"sin\""),
            ("min(1)", "',' is missing at character 6"),
            ("1 < 2 < 3", "does not belong"),
            ("é", "1"),
        ] {
            match Expression::parse(text) {
                Ok(formula) => assert_eq!(formula.sensors(), [text], "{text}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains(part) && said.lines().count() == 1, "{text}: {said}");
                }
            }
        }
        assert!(Expression::parse(&"(".repeat(1900)).is_err());
        assert!(Expression::parse(&"-".repeat(1900)).is_err());
        assert!(Expression::parse(&format!("{}1", "1+".repeat(1500))).is_err());
    }
}
