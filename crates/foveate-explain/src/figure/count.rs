//! Numbers of steps, in sentences and on axes.

/// A number of steps: in full below a million, `40,000`; in millions above, `7.50 M`.
pub fn count_steps(count: u64) -> String {
    if count >= 1_000_000 { format!("{:.2} M", count as f64 / 1e6) } else { thousands(count) }
}

/// Steps on an axis that ends at `most`: all in the same unit.
pub fn steps_tick(count: f64, most: f64) -> String {
    if most >= 1e6 { format!("{:.2} M", count / 1e6) } else { thousands(count.round() as u64) }
}

/// Digits with thousands set apart.
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_said_with_what_tells_them_apart() {
        for (count, text) in [
            (0, "0"),
            (950, "950"),
            (40_000, "40,000"),
            (999_999, "999,999"),
            (1_000_000, "1.00 M"),
            (7_500_000, "7.50 M"),
        ] {
            assert_eq!(count_steps(count), text);
        }
        assert_eq!(
            (steps_tick(10_000.0, 40_000.0), steps_tick(500_000.0, 2e6)),
            ("10,000".into(), "0.50 M".into())
        );
    }
}
