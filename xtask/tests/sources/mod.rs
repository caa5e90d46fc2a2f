//! Rust sources as the tests of invariants read them: code apart from comments and string literals, test code left out.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

/// One source file of a crate.
pub(crate) struct Source {
    /// The crate: the name of its folder.
    pub(crate) of: String,
    /// Path below the root of the workspace.
    pub(crate) path: String,
    /// The code: comments, the contents of string and character literals and items under `#[cfg(test)]` are blank.
    pub(crate) code: String,
    /// The string literals outside of test code, each with its line.
    pub(crate) texts: Vec<(usize, String)>,
}

impl Source {
    /// Reads one file from its text.
    pub(crate) fn parse(of: &str, path: &str, text: &str) -> Source {
        let (code, texts) = separate(text);
        let tests = test_items(&code);
        let mut code = code.into_bytes();
        for (start, end) in &tests {
            for byte in &mut code[*start..*end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        let code = String::from_utf8(code).expect("blanks are ASCII");
        let texts =
            texts.into_iter().filter(|(at, _)| !tests.iter().any(|(start, end)| (start..end).contains(&at)));
        let line_of = lines(&code);
        let texts = texts.map(|(at, text)| (line_of(at), text)).collect();
        Source { of: of.to_owned(), path: path.to_owned(), code, texts }
    }

    /// Every path that the code names from the root of a crate, as in `std::fs::read`, with its line: those of inline
    /// paths and those that `use` brings in, groups taken apart.
    pub(crate) fn paths(&self) -> Vec<(usize, String)> {
        let tokens = tokens(&self.code);
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            // `use<'a>` in a type is something else.
            if tokens[at].1 == "use" && tokens.get(at + 1).is_some_and(|token| token.1 != "<") {
                at = use_tree(&tokens, at + 1, &mut Vec::new(), &mut found);
            } else if is_name(tokens[at].1) {
                let (start, mut path) = (tokens[at].0, vec![tokens[at].1]);
                while tokens.get(at + 1).is_some_and(|t| t.1 == "::")
                    && tokens.get(at + 2).is_some_and(|t| is_name(t.1))
                {
                    path.push(tokens[at + 2].1);
                    at += 2;
                }
                if path.len() > 1 {
                    found.push((start, path.join("::")));
                }
                at += 1;
            } else {
                at += 1;
            }
        }
        let line_of = lines(&self.code);
        found.into_iter().map(|(at, path)| (line_of(at), path)).collect()
    }

    /// Every macro that the code calls, every method, and every keyword or name, with its line.
    pub(crate) fn words(&self) -> Vec<(usize, Word<'_>)> {
        let tokens = tokens(&self.code);
        let line_of = lines(&self.code);
        let mut found = Vec::new();
        for (at, (place, token)) in tokens.iter().enumerate() {
            if !is_name(token) {
                continue;
            }
            let before = at.checked_sub(1).map(|at| tokens[at].1);
            let after = tokens.get(at + 1).map(|token| token.1);
            let word = match (before, after) {
                (_, Some("!")) if tokens.get(at + 2).is_some_and(|t| matches!(t.1, "(" | "[" | "{")) => {
                    Word::Macro(token)
                }
                (Some("."), Some("(" | "::")) => Word::Method(token),
                _ => Word::Name(token),
            };
            found.push((line_of(*place), word));
        }
        found
    }
}

/// What a word of the code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// The name of a macro that is called.
    Macro(&'a str),
    /// The name of a method that is called.
    Method(&'a str),
    /// Anything else: a keyword, a type, a function, a variable.
    Name(&'a str),
}

/// All library, binary and build-script sources of a crate, without tests, benches and examples.
pub(crate) fn of_crate(folder: &Path) -> Vec<Source> {
    let name = folder.file_name().expect("a folder").to_str().expect("UTF-8").to_owned();
    let mut files = Vec::new();
    collect(&folder.join("src"), &mut files);
    files.extend(Some(folder.join("build.rs")).filter(|file| file.is_file()));
    files.sort();
    let mut sources = Vec::new();
    let mut tests = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let path = file.strip_prefix(root()).expect("below the root").to_str().expect("UTF-8").to_owned();
        tests.extend(test_modules(file, &separate(&text).0));
        sources.push((file.clone(), Source::parse(&name, &path, &text)));
    }
    // `#[cfg(test)] mod tests;` makes a test of `tests.rs` and of all in the folder `tests`.
    sources.retain(|(file, _)| {
        !tests.iter().any(|module| file.starts_with(module) || *file == module.with_extension("rs"))
    });
    sources.into_iter().map(|(_, source)| source).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

/// Where the modules lie that `file` declares under `#[cfg(test)]` with `mod name;`.
fn test_modules(file: &Path, code: &str) -> Vec<PathBuf> {
    let stem = file.file_stem().expect("a file").to_str().expect("UTF-8");
    let folder = file.parent().expect("in a folder");
    let inside =
        if matches!(stem, "lib" | "main" | "mod") { folder.to_path_buf() } else { folder.join(stem) };
    let mut found = Vec::new();
    for (start, end) in test_items(code) {
        let item = tokens(&code[start..end]);
        if let Some(at) = item.iter().position(|token| token.1 == "mod")
            && item.get(at + 2).is_some_and(|token| token.1 == ";")
        {
            found.push(inside.join(item[at + 1].1));
        }
    }
    found
}

/// Splits a file into code, in which comments and the contents of literals are blank, and string literals, each with its
/// offset. Lines and offsets stay as they are.
fn separate(text: &str) -> (String, Vec<(usize, String)>) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut texts = Vec::new();
    let blank = |code: &mut [u8], from: usize, to: usize| {
        for byte in &mut code[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            let end = rest.find('\n').map_or(bytes.len(), |length| at + length);
            blank(&mut code, at, end);
            at = end;
        } else if rest.starts_with("/*") {
            let end = at + block_comment(rest);
            blank(&mut code, at, end);
            at = end;
        } else if let Some((open, close)) = literal(rest, at.checked_sub(1).map(|before| bytes[before])) {
            texts.push((at, rest[open..close].to_owned()));
            let end = (at + close).min(bytes.len());
            blank(&mut code, at + open, end);
            // The closing quote and its `#`.
            at = end + usize::from(end < bytes.len());
        } else if bytes[at] == b'\'' {
            let end = at + character(rest);
            if end > at + 1 {
                blank(&mut code, at + 1, end - 1);
            }
            at = end;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            // What is not ASCII stands in literals and comments, or in names, which no rule is about.
        }
    }
    let code = code.into_iter().map(|byte| if byte.is_ascii() { byte } else { b'_' }).collect();
    (String::from_utf8(code).expect("ASCII"), texts)
}

/// The length of the block comment at the start of `text`; comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Where the contents of the string literal at the start of `text` begin and end; `None` if there is no such literal.
fn literal(text: &str, before: Option<u8>) -> Option<(usize, usize)> {
    let named = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with('"') || (prefix.ends_with('r') && rest.trim_start_matches('#').starts_with('"'))
        })
    })?;
    if named && !prefix.is_empty() {
        return None;
    }
    let rest = &text[prefix.len()..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let open = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some((open, text[open..].find(&end).map_or(text.len(), |length| open + length)));
    }
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some((open, at)),
            _ => {}
        }
    }
    Some((open, text.len()))
}

/// The length of the character literal at the start of `text`, or 1 where it is a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        // `'\''` and `'\u{1f}'`.
        Some((_, '\\')) => {
            characters.next();
            characters.find(|(_, c)| *c == '\'').map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// Where the items under `#[cfg(test)]` begin and end.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let tokens = tokens(code);
    let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut found = Vec::new();
    let mut at = 0;
    while at + attribute.len() <= tokens.len() {
        if !attribute.iter().zip(&tokens[at..]).all(|(want, token)| *want == token.1) {
            at += 1;
            continue;
        }
        let start = tokens[at].0;
        let mut depth = 0;
        at += attribute.len();
        let mut end = code.len();
        while at < tokens.len() {
            match tokens[at].1 {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            let done = depth == 0 && matches!(tokens[at].1, "}" | ";");
            at += 1;
            if done {
                end = tokens[at - 1].0 + 1;
                break;
            }
        }
        found.push((start, end));
    }
    found
}

/// The tokens of `code` as far as the rules need them, each with its offset: names, `::` and single characters.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let bytes = code.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        if is_word(bytes[at]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        } else if code[at..].starts_with("::") {
            at += 2;
        } else {
            at += 1;
            if bytes[start].is_ascii_whitespace() {
                continue;
            }
        }
        found.push((start, &code[start..at]));
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Takes apart the tree of a `use` that begins at `at`, below `prefix`, and gives the place after it.
fn use_tree<'a>(
    tokens: &[(usize, &'a str)],
    mut at: usize,
    prefix: &mut Vec<&'a str>,
    found: &mut Vec<(usize, String)>,
) -> usize {
    let depth = prefix.len();
    let mut leaf = None;
    while let Some(&(place, token)) = tokens.get(at) {
        match token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.1 != "}") {
                    at = use_tree(tokens, at, prefix, found);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.1 == ","));
                }
                at += 1;
                prefix.truncate(depth);
                return at;
            }
            // `std::fs::{self}` is `std::fs`, and another name for a path is that path.
            "self" if depth > 0 => leaf = Some(place),
            "as" => at += 1,
            "," | "}" | ";" => break,
            "::" => {}
            _ => {
                prefix.push(token);
                leaf = Some(place);
            }
        }
        at += 1;
    }
    if let Some(place) = leaf {
        found.push((place, prefix.join("::")));
    }
    prefix.truncate(depth);
    at
}

/// The line of each place in `code`, from 1.
fn lines(code: &str) -> impl Fn(usize) -> usize + use<> {
    let ends: Vec<usize> = code.match_indices('\n').map(|(at, _)| at).collect();
    move |at| ends.partition_point(|end| *end < at) + 1
}
