//! Changes one field of a text map (UDMF) and keeps all other bytes.
//!
//! Such a map is a list of `name = value;` and of blocks `name { name = value; … }`; comments are those of C.
//! The text is scanned without building a tree, and the value is replaced in place.

use std::fmt;
use std::ops::Range;

/// Errors in a map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The text ends early or has a syntax error.
    #[error("byte {at}: {what}; is it a map in text?")]
    Syntax {
        /// Its position.
        at: usize,
        /// The unexpected or missing item.
        what: &'static str,
    },
    /// The number of sectors is not one.
    #[error("it has {count} sectors, one is due; which of them should change?")]
    Sectors {
        /// Their number.
        count: usize,
    },
    /// The sector does not have the field exactly once.
    #[error("its sector has {count} fields called {name}, one is due; is it the map of take_cover?")]
    Fields {
        /// The field.
        name: String,
        /// Their number.
        count: usize,
    },
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// A whole number.
    Number(i64),
    /// A text without quotes in it.
    Text(String),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Number(number) => write!(f, "{number}"),
            Field::Text(text) => write!(f, "\"{}\"", text.replace(['"', '\\'], "")),
        }
    }
}

/// Returns `map` with another value of the field `name` of its only sector.
///
/// # Errors
/// When the text is not a map, when the number of its sectors is not one, or when the sector does not have
/// the field exactly once.
pub fn set_sector_field(map: &[u8], name: &str, value: &Field) -> Result<Vec<u8>, MapError> {
    let (mut sectors, mut found) = (0, vec![]);
    let mut walk = Walk { text: map, at: 0 };
    while let Some(word) = walk.word()? {
        if walk.take(b'=')? {
            walk.value()?;
            continue;
        }
        if !walk.take(b'{')? {
            return Err(walk.wrong("neither = nor { after a name"));
        }
        let is_sector = map[word].eq_ignore_ascii_case(b"sector");
        sectors += usize::from(is_sector);
        while !walk.take(b'}')? {
            let Some(field) = walk.word()? else { return Err(walk.wrong("a block without its end")) };
            if !walk.take(b'=')? {
                return Err(walk.wrong("no = after a field's name"));
            }
            let place = walk.value()?;
            if is_sector && map[field].eq_ignore_ascii_case(name.as_bytes()) {
                found.push(place);
            }
        }
    }
    if sectors != 1 {
        return Err(MapError::Sectors { count: sectors });
    }
    let [place] = &found[..] else {
        return Err(MapError::Fields { name: name.into(), count: found.len() });
    };
    Ok([&map[..place.start], value.to_string().as_bytes(), &map[place.end..]].concat())
}

/// A position in a text.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    const fn wrong(&self, what: &'static str) -> MapError {
        MapError::Syntax { at: self.at, what }
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), MapError> {
        loop {
            let rest = self.rest();
            let step = match rest {
                [b' ' | b'\t' | b'\r' | b'\n', ..] => 1,
                [b'/', b'/', ..] => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
                [b'/', b'*', inside @ ..] => match inside.windows(2).position(|pair| pair == b"*/") {
                    Some(end) => end + 4,
                    None => return Err(self.wrong("a comment without its end")),
                },
                _ => return Ok(()),
            };
            self.at += step;
        }
    }

    /// Reads a name; `None` at the end of the text.
    fn word(&mut self) -> Result<Option<Range<usize>>, MapError> {
        self.skip()?;
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let length = self.rest().iter().take_while(|b| is_part(b)).count();
        let from = self.at;
        self.at += length;
        match (length, self.rest()) {
            (0, []) => Ok(None),
            (0, _) => Err(self.wrong("something that is no name")),
            _ => Ok(Some(from..self.at)),
        }
    }

    /// Skips `mark` if it comes next; returns whether it did.
    fn take(&mut self, mark: u8) -> Result<bool, MapError> {
        self.skip()?;
        let there = self.rest().first() == Some(&mark);
        self.at += usize::from(there);
        Ok(there)
    }

    /// Reads a value and the semicolon after it; returns the range of the value.
    fn value(&mut self) -> Result<Range<usize>, MapError> {
        self.skip()?;
        let from = self.at;
        if self.rest().first() == Some(&b'"') {
            self.at += 1;
            loop {
                match self.rest() {
                    [b'\\', _, ..] => self.at += 2,
                    [b'"', ..] => break,
                    [_, ..] => self.at += 1,
                    [] => return Err(self.wrong("a text without its end")),
                }
            }
            self.at += 1;
        } else {
            let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-' | b'_');
            self.at += self.rest().iter().take_while(is_part).count();
            if self.at == from {
                return Err(self.wrong("no value after ="));
            }
        }
        let place = from..self.at;
        if self.take(b';')? { Ok(place) } else { Err(self.wrong("no ; after a value")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAP: &str = "namespace = \"zdoom\"; // sector { a = 1; }\nthing\n{\n\ta = 7;\n}\n/* sector { */\nSector { \
                       A=104 ; b = \"x\\\"; a = 3\"; c = -1.5e+3; }\n";

    fn set(map: &str, name: &str, value: &Field) -> Result<String, String> {
        let changed = set_sector_field(map.as_bytes(), name, value).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(changed).expect("it was text"))
    }

    #[test]
    fn one_value_changes_and_nothing_else() {
        let text = |text: &str| Field::Text(text.into());
        for (name, value, from, to) in [
            ("a", Field::Number(404), "A=104 ;", "A=404 ;"),
            ("B", text("CRATOP2"), "\"x\\\"; a = 3\"", "\"CRATOP2\""),
            ("c", Field::Number(-2), "-1.5e+3", "-2"),
            ("c", text("a\"; d = \"1\\"), "-1.5e+3", "\"a; d = 1\""),
        ] {
            assert_eq!(set(MAP, name, &value).expect("it is there"), MAP.replace(from, to));
        }
    }

    #[test]
    fn what_is_no_such_map_is_refused() {
        for (map, words) in [
            (MAP.replace("Sector", "sectors"), "it has 0 sectors"),
            (format!("{MAP}sector {{ a = 1; }}"), "it has 2 sectors"),
            (MAP.replace("c =", "a ="), "2 fields called a"),
            (MAP.replace("A=104", "d=104"), "0 fields called a"),
            (MAP.replace("104 ;", "104"), "no ; after a value"),
            (MAP.replace("A=104", "A 104"), "no = after a field's name"),
            (MAP.replace("A=104", "A="), "no value after ="),
            (MAP.replace("thing", "thing of"), "neither = nor { after a name"),
            (MAP.replace("thing", "?"), "byte 42: something that is no name"),
            (MAP.replace("*/", ""), "a comment without its end"),
            ("sector { a = \"b; }".into(), "a text without its end"),
            ("sector { a = 1;".into(), "a block without its end"),
        ] {
            let said = set(&map, "a", &Field::Number(1)).expect_err(words);
            assert!(said.contains(words), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            noise in prop::collection::vec(any::<u8>(), 0..80),
            changes in prop::collection::vec((0usize..MAP.len(), any::<u8>()), 0..5),
        ) {
            let mut map = MAP.as_bytes().to_vec();
            for (at, byte) in changes {
                map[at] = byte;
            }
            for text in [map, noise] {
                if let Ok(changed) = set_sector_field(&text, "a", &Field::Number(5)) {
                    // A second change finds the value that the first one wrote.
                    let again = set_sector_field(&changed, "a", &Field::Number(5)).expect("still a map");
                    prop_assert_eq!(again, changed);
                }
            }
        }
    }
}
