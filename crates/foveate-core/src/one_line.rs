//! Text of strangers as one line.

/// Longest line in characters that [`one_line`] makes, without the note in its middle.
const MAX_LINE: usize = 2000;
/// Length of the part at the end, where the remedy stands.
const END: usize = 700;

/// Formats `text` as one line that is safe to print, even if it contains names or values from a stranger:
/// line breaks become spaces, other control characters and those that change the direction of writing are
/// escaped, and only the beginning and the end of a very long text are kept.
pub fn one_line(text: &str) -> String {
    let line = escaped(text);
    let count = line.chars().count();
    if count <= MAX_LINE {
        return line;
    }
    let head: String = line.chars().take(MAX_LINE - END).collect();
    let tail: String = line.chars().skip(count - END).collect();
    format!("{head} … [{} characters left out] … {tail}", count - MAX_LINE)
}

fn escaped(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => line.push(' '),
            c if c.is_control() => line.extend(c.escape_unicode()),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                line.extend(c.escape_unicode());
            }
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_of_a_length_that_can_be_read() {
        assert_eq!(one_line("a\nb\u{1b}[31mé\u{202e}c"), "a b\\u{1b}[31mé\\u{202e}c");
        assert_eq!(one_line(&"é".repeat(MAX_LINE)), "é".repeat(MAX_LINE));
        let long = format!("x.toml line 3: {}; correct it", "é\u{1b}".repeat(50_000));
        let line = one_line(&long);
        let (head, tail) = ("x.toml line 3: é\\u{1b}é", "é\\u{1b}; correct it");
        assert!(line.starts_with(head) && line.ends_with(tail), "{line}");
        // Each pair has seven characters after escaping.
        assert!(line.contains(" … [348027 characters left out] … "), "{line}");
        assert_eq!(line.chars().count(), MAX_LINE + " … [348027 characters left out] … ".chars().count());
    }
}
