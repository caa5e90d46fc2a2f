//! What keeps the house easy to change: circles of files, the size of contracts, names of types.
//!
//! The limits are data, below. The tests at the foot show that each measure finds what it is there to find.

#[allow(dead_code, reason = "other tests use the rest of it")]
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use sources::{Source, of_crate, root};

/// The most files that may import each other in a circle.
const LARGEST_CIRCLE: usize = 6;

/// The most methods that a type must write to fulfil a contract; capabilities have defaults.
const CONTRACTS: [(&str, &str, usize); 9] = [
    ("foveate-core", "Env", 6),
    ("foveate-core", "Policy", 6),
    ("foveate-core", "Learner", 6),
    ("foveate-core", "Model", 6),
    ("foveate-core", "Outputs", 6),
    ("foveate-core", "Student", 6),
    ("foveate-core", "GradientParts", 6),
    ("foveate-train", "Method", 6),
    ("foveate-agents", "AgentConfig", 6),
];

/// The most types that other files see under one name.
const SAME_NAME: usize = 3;

/// The sources of a crate by module, as in `study::cells`; the root is the empty name.
fn modules(sources: &[Source]) -> BTreeMap<String, &Source> {
    let name = |source: &Source| {
        let path = source.path.split_once("/src/")?.1.strip_suffix(".rs")?;
        let path = path.strip_suffix("/mod").unwrap_or(path);
        Some(if matches!(path, "lib" | "main") { String::new() } else { path.replace('/', "::") })
    };
    sources.iter().filter_map(|source| Some((name(source)?, source))).collect()
}

/// The module that `path`, as written in `module`, leads to; `None` when it leads out of the crate or stays in it.
fn target(path: &str, module: &str, modules: &BTreeMap<String, &Source>) -> Option<String> {
    let mut base: Vec<&str> = module.split("::").filter(|name| !name.is_empty()).collect();
    let mut names = path.split("::").peekable();
    match names.next()? {
        "crate" => base.clear(),
        "self" => {}
        "super" => drop(base.pop()),
        _ => return None,
    }
    while names.next_if_eq(&"super").is_some() {
        base.pop();
    }
    base.extend(names);
    while !modules.contains_key(&base.join("::")) {
        base.pop()?;
    }
    Some(base.join("::")).filter(|found| found != module)
}

/// What each file imports of its own crate.
fn imports(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let modules = modules(sources);
    let of = |module: &str, source: &Source| {
        source.paths().iter().filter_map(|(_, path)| target(path, module, &modules)).collect()
    };
    modules.iter().map(|(module, source)| (module.clone(), of(module, source))).collect()
}

/// Everything that `start` reaches, itself only in a circle.
fn reached<'a>(start: &'a str, imports: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![start]);
    while let Some(at) = left.pop() {
        left.extend(imports[at].iter().map(String::as_str).filter(|next| seen.insert(*next)));
    }
    seen
}

/// The largest set of files of which each imports every other, directly or not.
fn largest_circle(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&str> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reached(module, imports))).collect();
    let circle = |module: &str| {
        let others = reach[module].iter().copied();
        others.filter(|other| reach[other].contains(module)).collect::<BTreeSet<&str>>()
    };
    reach.keys().map(|module| circle(module)).max_by_key(BTreeSet::len).unwrap_or_default()
}

fn crates() -> Vec<Vec<Source>> {
    let folders =
        fs::read_dir(root().join("crates")).expect("crates/").map(|entry| entry.expect("an entry").path());
    folders.chain([root().join("xtask")]).map(|folder| of_crate(&folder)).collect()
}

#[test]
fn no_large_circle_of_files_imports_itself() {
    let mut wrong = vec![];
    for sources in crates() {
        let imports = imports(&sources);
        let circle = largest_circle(&imports);
        if circle.len() > LARGEST_CIRCLE {
            wrong.push(format!(
                "{}, {} files: {}",
                sources[0].of,
                circle.len(),
                Vec::from_iter(circle).join(", ")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "more than {LARGEST_CIRCLE} files import each other; put what they share below them:\n{}",
        wrong.join("\n")
    );
}

/// The methods of `pub trait NAME` in `code` that have no default.
fn required(code: &str, name: &str) -> Option<usize> {
    let start =
        code.find(&format!("pub trait {name}:")).or_else(|| code.find(&format!("pub trait {name} ")))?;
    let body = &code[start + code[start..].find('{')? + 1..];
    let (mut depth, mut count, mut in_method) = (0_usize, 0, false);
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'f' if depth == 0 && body[at..].starts_with("fn ") => in_method = true,
            b';' if depth == 0 && in_method => (count, in_method) = (count + 1, false),
            // `[T; N]`
            b'{' | b'[' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                in_method = in_method && byte == b']';
            }
            _ => {}
        }
    }
    Some(count)
}

#[test]
fn contracts_are_small() {
    for (of, name, most) in CONTRACTS {
        let sources = of_crate(&root().join("crates").join(of));
        let found: Vec<usize> = sources.iter().filter_map(|source| required(&source.code, name)).collect();
        let [methods] = found[..] else { panic!("{of} has {} contracts {name}", found.len()) };
        assert!(
            (1..=most).contains(&methods),
            "{of}: {name} has {methods} methods without a default, at most {most}"
        );
    }
}

/// The types that other files see, each with its name.
fn types(source: &Source) -> Vec<String> {
    let mut words = source.code.split_whitespace().peekable();
    let mut found = vec![];
    while let Some(word) = words.next() {
        if word.starts_with("pub")
            && words.next_if(|word| matches!(*word, "struct" | "enum" | "trait")).is_some()
            && let Some(name) = words.next()
        {
            found.extend(name.split(|c: char| !c.is_alphanumeric()).next().map(str::to_owned));
        }
    }
    found
}

#[test]
fn names_of_types_say_what_they_are() {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in crates().iter().flatten() {
        for name in types(source) {
            all.entry(name).or_default().push(source.path.clone());
        }
    }
    assert!(all.len() > 500, "only {} types found", all.len());
    let often = all.iter().filter(|(_, paths)| paths.len() > SAME_NAME);
    let wrong: Vec<String> = often.map(|(name, paths)| format!("{name}: {}", paths.join(", "))).collect();
    assert!(
        wrong.is_empty(),
        "a type that other files see says what it is without its module, as `LstmCell`, not `Cell`:\n{}",
        wrong.join("\n")
    );
}

// What the measures find, in made-up sources.

#[test]
fn circles_are_found_however_they_are_written() {
    let source =
        |path: &str, text: &str| Source::parse("made-up", &format!("crates/made-up/src/{path}"), text);
    let sources = [
        source("lib.rs", "mod a; mod b; pub use a::A;"),
        source("a.rs", "use crate::b::{self, deep::D};"),
        source("b.rs", "pub mod deep; fn f() { crate::c::C::new() }"),
        source("b/deep.rs", "use super::super::c;"),
        source("c/mod.rs", "use crate::a::A; use std::fs; use super::d;"),
        source("d.rs", "fn f() { }\n#[cfg(test)]\nmod tests { use super::*; use crate::a; }"),
    ];
    let imports = imports(&sources);
    assert_eq!(Vec::from_iter(largest_circle(&imports)), ["a", "b", "b::deep", "c"]);
    assert_eq!(Vec::from_iter(&imports["c"]), ["a", "d"]);
}

#[test]
fn methods_without_a_default_are_counted() {
    let code = "pub trait Env: Send { fn a(&self) -> [f64; 2]; fn b(&self) { let x = 1; } \
                fn c(&self, x: [u8; 3]); const N: usize; type T; }\nfn d();";
    assert_eq!(required(code, "Env"), Some(2));
    assert_eq!(required(code, "Envs"), None);
    assert_eq!(
        types(&Source::parse(
            "a",
            "a.rs",
            "pub struct A<T>(T); struct B; pub(crate) enum C {} pub fn d() {}"
        )),
        ["A", "C"]
    );
}
