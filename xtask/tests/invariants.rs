//! The invariants of ARCHITECTURE.md that a test can hold: who may depend on whom, and who may touch what of the machine.
//!
//! What is allowed is data, below. Each rule is a function of made-up input, too, so that the tests at the foot show that
//! it finds what it is there to find.

mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sources::{Source, Word, of_crate, root};

/// Something outside of a program's own memory, or something else that only some crates may use.
struct Power {
    what: &'static str,
    /// Paths that give it, with all below them.
    paths: &'static [&'static str],
    /// Below those, what does no harm: plain values.
    harmless: &'static [&'static str],
    macros: &'static [&'static str],
    methods: &'static [&'static str],
    names: &'static [&'static str],
    /// The crates that may.
    crates: &'static [&'static str],
}

impl Power {
    const NONE: Power =
        Power { what: "", paths: &[], harmless: &[], macros: &[], methods: &[], names: &[], crates: &[] };
}

const POWERS: &[Power] = &[
    Power {
        what: "files",
        paths: &["std::fs", "std::os::fd", "std::os::unix::fs"],
        methods: &["canonicalize", "exists", "is_dir", "is_file", "metadata", "read_dir", "symlink_metadata"],
        crates: &["foveate-gym", "foveate-mujoco", "foveate-run", "foveate-toy"],
        ..Power::NONE
    },
    Power {
        what: "threads",
        paths: &["std::thread"],
        crates: &[
            "foveate-gpu",
            "foveate-gym",
            "foveate-lab",
            "foveate-mujoco",
            "foveate-run",
            "foveate-toy",
        ],
        ..Power::NONE
    },
    Power {
        what: "processes",
        paths: &["std::process"],
        harmless: &["std::process::ExitCode", "std::process::abort"],
        crates: &["foveate-gym", "foveate-mujoco", "foveate-run", "foveate-toy"],
        ..Power::NONE
    },
    Power {
        what: "sockets",
        paths: &["std::net", "std::os::unix::net"],
        harmless: &["std::net::IpAddr", "std::net::Ipv4Addr", "std::net::Ipv6Addr"],
        crates: &["foveate-gym", "foveate-lab"],
        ..Power::NONE
    },
    Power {
        what: "environment variables and the current folder",
        paths: &["std::env"],
        crates: &["foveate-gym", "foveate-mujoco", "foveate-run", "foveate-toy"],
        ..Power::NONE
    },
    Power {
        what: "clocks",
        paths: &["std::time::Instant", "std::time::SystemTime"],
        crates: &["foveate-run"],
        ..Power::NONE
    },
    Power {
        what: "printing",
        paths: &["std::io::stdout", "std::io::stderr"],
        macros: &["dbg", "eprint", "eprintln", "print", "println"],
        crates: &["foveate-cli", "foveate-gpu", "foveate-toy"],
        ..Power::NONE
    },
    Power {
        what: "unsafe code",
        names: &["unsafe"],
        crates: &["foveate-gpu", "foveate-kernels", "foveate-mujoco", "foveate-web"],
        ..Power::NONE
    },
];

/// Which crates of the workspace a crate may depend on.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("foveate-core", &[]),
    ("foveate-kernels", &["foveate-core"]),
    ("foveate-envs", &["foveate-core", "foveate-kernels"]),
    ("foveate-agents", &["foveate-core", "foveate-kernels", "foveate-learn"]),
    ("foveate-evolve", &["foveate-core", "foveate-kernels"]),
    ("foveate-explain", &["foveate-core", "foveate-film", "foveate-kernels"]),
    ("foveate-film", &["foveate-core"]),
    ("foveate-gym", &["foveate-core"]),
    ("foveate-learn", &["foveate-core", "foveate-kernels"]),
    ("foveate-train", &["foveate-core", "foveate-evolve", "foveate-kernels", "foveate-learn"]),
    ("foveate-render", &["foveate-core", "foveate-kernels"]),
    ("foveate-mujoco", &["foveate-render"]),
    ("foveate-control", &["foveate-core", "foveate-envs", "foveate-mujoco", "foveate-render"]),
    (
        "foveate-registry",
        &[
            "foveate-agents",
            "foveate-control",
            "foveate-core",
            "foveate-envs",
            "foveate-film",
            "foveate-gym",
            "foveate-mujoco",
        ],
    ),
    (
        "foveate-run",
        &[
            "foveate-agents",
            "foveate-core",
            "foveate-envs",
            "foveate-explain",
            "foveate-film",
            "foveate-gym",
            "foveate-registry",
            "foveate-train",
        ],
    ),
    (
        "foveate-lab",
        &["foveate-agents", "foveate-core", "foveate-envs", "foveate-registry", "foveate-run", "foveate-web"],
    ),
    ("foveate-web", &["foveate-agents", "foveate-core", "foveate-envs", "foveate-explain", "foveate-film"]),
    (
        "foveate",
        &[
            "foveate-agents",
            "foveate-core",
            "foveate-envs",
            "foveate-evolve",
            "foveate-lab",
            "foveate-learn",
            "foveate-registry",
            "foveate-run",
            "foveate-train",
        ],
    ),
    ("foveate-cli", &["foveate"]),
    ("foveate-py", &["foveate", "foveate-cli"]),
    // A program of its own, whose libraries only it needs.
    (
        "foveate-gpu",
        &["foveate-agents", "foveate-core", "foveate-envs", "foveate-learn", "foveate-run", "foveate-train"],
    ),
    // For tests: no crate is allowed to depend on it.
    ("foveate-toy", &["foveate-core"]),
];

/// Crates of others that reach out of the program's memory, or that only one kind of crate needs, and who may use them.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("anyhow", &["foveate-cli", "foveate-gpu"]),
    ("clap", &["foveate", "foveate-cli", "foveate-gpu", "foveate-run"]),
    ("clap_complete", &["foveate-cli"]),
    ("ctrlc", &["foveate-run"]),
    ("cudarc", &["foveate-gpu"]),
    ("getrandom", &["foveate-lab"]),
    ("libloading", &["foveate-gpu", "foveate-mujoco"]),
    ("numpy", &["foveate-py"]),
    ("pyo3", &["foveate-py"]),
    ("rustix", &["foveate-gym", "foveate-mujoco", "foveate-run"]),
    ("stats_alloc", &["foveate-toy"]),
    ("tungstenite", &["foveate-lab"]),
];

/// The crates whose messages may name flags and commands. Libraries do not know which program shows them.
const COMMANDS: [&str; 3] = ["foveate-cli", "foveate-gpu", "foveate-py"];

fn crates() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .expect("crates/")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert!(names.len() >= 10, "only {names:?} found; does this test still find the crates?");
    names
}

fn all_sources() -> Vec<Source> {
    let sources: Vec<Source> =
        crates().iter().flat_map(|name| of_crate(&root().join("crates").join(name))).collect();
    assert!(sources.len() > 200, "only {} sources found; does this test still find them?", sources.len());
    sources
}

fn manifest(name: &str) -> String {
    let path = root().join("crates").join(name).join("Cargo.toml");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where `source` uses `power`: path, line and what it uses.
fn uses(source: &Source, power: &Power) -> Vec<String> {
    let below = |path: &str, top: &str| {
        path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let mut found = Vec::new();
    for (line, path) in source.paths() {
        // `core` and `alloc` give nothing that `std` does not.
        if power.paths.iter().any(|top| below(&path, top))
            && !power.harmless.iter().any(|top| below(&path, top))
        {
            found.push(format!("{}:{line}: {path}", source.path));
        }
    }
    for (line, word) in source.words() {
        let (known, text) = match word {
            Word::Macro(name) => (power.macros.contains(&name), format!("{name}!")),
            Word::Method(name) => (power.methods.contains(&name), format!(".{name}()")),
            Word::Name(name) => (power.names.contains(&name), name.to_owned()),
        };
        if known {
            found.push(format!("{}:{line}: {text}", source.path));
        }
    }
    found
}

/// Whether a source is a build script, which speaks to Cargo by printing, reads sources and gets its task by environment
/// variables.
fn is_build_script(source: &Source) -> bool {
    source.path.ends_with("/build.rs")
}

/// What breaks the rule on `power`: sources that use it and may not, and crates that may and do not.
fn against(power: &Power, sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources.iter().filter(|source| !is_build_script(source)) {
        let uses = uses(source, power);
        if power.crates.contains(&source.of.as_str()) {
            used.extend((!uses.is_empty()).then_some(source.of.as_str()));
        } else {
            wrong
                .extend(uses.into_iter().map(|at| format!("{at}: {} may not use {}", source.of, power.what)));
        }
    }
    let idle = power.crates.iter().filter(|name| !used.contains(*name));
    wrong.extend(idle.map(|name| format!("{name} may use {}, but does not; take that back", power.what)));
    wrong
}

/// A test that lacks something says so through `foveate_toy::needs`, which records it; printing alone would pass for a success.
#[test]
fn skipped_tests_are_recorded() {
    let mut files = vec![];
    for name in crates() {
        files_with("rs", &root().join("crates").join(name), &mut files);
    }
    let silent: Vec<String> = files
        .into_iter()
        .filter(|file| !file.ends_with("foveate-toy/src/needs.rs"))
        .filter(|file| fs::read_to_string(file).expect("readable").contains("eprintln!(\"skipped"))
        .map(|file| file.display().to_string())
        .collect();
    assert!(silent.is_empty(), "use foveate_toy::needs::skip in {}", silent.join(", "));
}

#[test]
fn only_some_crates_touch_the_machine() {
    let sources = all_sources();
    let wrong: Vec<String> = POWERS.iter().flat_map(|power| against(power, &sources)).collect();
    assert!(wrong.is_empty(), "see ARCHITECTURE.md, \"Who may what\":\n{}", wrong.join("\n"));
}

/// The dependencies of a manifest, without those of tests.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table.ends_with("dependencies") && !table.ends_with("dev-dependencies");
            // `[dependencies.name]`
            found.extend(table.split_once("dependencies.").map(|(_, name)| name));
        } else if inside && !line.trim_start().starts_with('#') {
            found.extend(line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()));
        }
    }
    found
}

/// Dependencies of the crate `name` that it may not have, and entries of the tables that nothing needs.
fn against_layers(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name} has no entry in MAY_DEPEND_ON; say what it may depend on")];
    };
    let has = dependencies(manifest);
    let mut wrong = Vec::new();
    for dependency in &has {
        if dependency.starts_with("foveate") && !allowed.contains(dependency) {
            wrong.push(format!("{name} may not depend on {dependency}"));
        }
        if let Some((_, allowed)) = OUTSIDE.iter().find(|(known, _)| known == dependency)
            && !allowed.contains(&name)
        {
            wrong.push(format!("{name} may not depend on {dependency}, which is for {}", allowed.join(", ")));
        }
    }
    let idle = allowed.iter().filter(|allowed| !has.contains(allowed));
    wrong.extend(idle.map(|idle| format!("{name} may depend on {idle}, but does not; take that back")));
    wrong
}

#[test]
fn crates_depend_downwards_only() {
    let names = crates();
    let mut wrong: Vec<String> =
        names.iter().flat_map(|name| against_layers(name, &manifest(name))).collect();
    for (known, _) in MAY_DEPEND_ON {
        if !names.iter().any(|name| name == known) {
            wrong.push(format!("MAY_DEPEND_ON names {known}, which is no crate"));
        }
    }
    assert!(wrong.is_empty(), "see ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

/// Whether `text` names a flag, as `--seed`, or a command, as in `foveate list`.
fn names_flag_or_command(text: &str) -> bool {
    let flag = text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 2..].chars().next();
        before.is_none_or(|c| c.is_whitespace() || "`\"'(".contains(c)) && after.is_some_and(|c| c.is_ascii_lowercase())
            // A variable of CSS.
            && !text[..at].ends_with("var(")
    });
    flag || text.contains("`foveate ") || text.contains("`cargo ")
}

/// Texts of a library that name flags or commands.
fn against_messages(source: &Source) -> Vec<String> {
    let texts = source.texts.iter().filter(|(_, text)| names_flag_or_command(text));
    texts.map(|(line, text)| format!("{}:{line}: {text:?}", source.path)).collect()
}

/// Lines of a Python worker that name flags or commands. A flag of `pip`
/// is none of ours.
fn against_lines(path: &str, text: &str) -> Vec<String> {
    let lines =
        (1..).zip(text.lines()).filter(|(_, line)| !line.contains("pip(") && names_flag_or_command(line));
    lines.map(|(number, line)| format!("{path}:{number}: {}", line.trim())).collect()
}

/// The files of one kind in a folder.
fn files_with(kind: &str, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in
        fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry").path())
    {
        let ending = entry.extension().and_then(|ending| ending.to_str());
        if entry.is_dir() {
            files_with(kind, &entry, found);
        } else if ending == Some(kind) {
            found.push(entry);
        }
    }
}

#[test]
fn messages_of_libraries_name_no_flags() {
    let sources = all_sources();
    // Only tests use foveate-toy, which starts them again by their names.
    let spared = |of: &str| COMMANDS.contains(&of) || of == "foveate-toy";
    // The help of arguments that several commands have, which only the command asks for.
    let help = |source: &Source| source.path.ends_with("foveate-run/src/command.rs");
    let of_libraries =
        sources.iter().filter(|source| !spared(&source.of) && !is_build_script(source) && !help(source));
    let mut wrong: Vec<String> = of_libraries.flat_map(against_messages).collect();
    let mut others = Vec::new();
    for name in crates().iter().filter(|name| !COMMANDS.contains(&name.as_str())) {
        files_with("py", &root().join("crates").join(name).join("src"), &mut others);
    }
    assert!(others.len() > 5, "only {others:?} found; does this test still find the workers?");
    for path in others {
        let text = fs::read_to_string(&path).expect("a source is text");
        wrong.extend(against_lines(&path.display().to_string(), &text));
    }
    assert!(
        wrong.is_empty(),
        "only the command knows its flags; a library names a setting or a task of foveate_core::hint:\n{}",
        wrong.join("\n")
    );
}

/// The entries of one table of a manifest, without comments.
fn table(manifest: &str, name: &str) -> BTreeMap<String, String> {
    let start = format!("[{name}]");
    let lines =
        manifest.lines().skip_while(|line| *line != start).skip(1).take_while(|line| !line.starts_with('['));
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('#').next().unwrap_or_default().split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Crates with lints of their own. The macros of `pyo3` write unsafe code into foveate-py, whose own sources have none: `POWERS` sees
/// to that.
const OWN_LINTS: [&str; 5] =
    ["foveate-gpu", "foveate-kernels", "foveate-mujoco", "foveate-py", "foveate-web"];

#[test]
fn crates_with_lints_of_their_own_have_all_others_too() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace's manifest");
    for own in OWN_LINTS {
        let manifest = manifest(own);
        for kind in ["rust", "clippy"] {
            let mut wanted = table(&workspace, &format!("workspace.lints.{kind}"));
            assert!(wanted.len() > 2, "only {wanted:?} found; does this test still read the manifest?");
            wanted.remove("unsafe_code");
            let has = table(&manifest, &format!("lints.{kind}"));
            for (lint, level) in wanted {
                assert_eq!(has.get(&lint), Some(&level), "{own}, [lints.{kind}], {lint}");
            }
        }
    }
    // Every other crate takes the workspace's.
    for name in crates().iter().filter(|name| !OWN_LINTS.contains(&name.as_str())) {
        assert_eq!(
            table(&manifest(name), "lints").get("workspace").map(String::as_str),
            Some("true"),
            "{name}"
        );
    }
}

/// Lines with a closure that takes or uses vectors of an instruction set. The compiler may make it a function of its
/// own, without that instruction set: then every operation in it is a call.
fn vectors_in_closures(source: &Source) -> Vec<String> {
    let is_closure = |line: &str| {
        let line = line.replace("||", "");
        let rest = line.split_once('|').filter(|(_, rest)| rest.contains('|')).map(|(_, rest)| rest);
        rest.is_some_and(|rest| {
            let mut words = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
            rest.contains("I::V") || words.any(|word| word == "isa")
        })
    };
    let lines = (1..).zip(source.code.lines()).filter(|(_, line)| is_closure(line));
    lines.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())).collect()
}

#[test]
fn kernels_have_no_closures_over_vectors() {
    let sources = all_sources();
    let kernels: Vec<&Source> = sources.iter().filter(|source| source.of == "foveate-kernels").collect();
    assert!(kernels.len() > 20, "only {} found", kernels.len());
    let wrong: Vec<String> = kernels.into_iter().flat_map(vectors_in_closures).collect();
    assert!(wrong.is_empty(), "write a loop, or a function that is #[inline(always)]:\n{}", wrong.join("\n"));
}

/// The rows of ARCHITECTURE.md's table, as the data here says them.
fn rows() -> Vec<String> {
    let crates = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    POWERS.iter().map(|power| format!("| {} | {} |", power.what, crates(power.crates))).collect()
}

#[test]
fn the_architecture_says_who_may_what() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for row in rows() {
        assert!(text.lines().any(|line| line == row), "ARCHITECTURE.md, \"Who may what\", lacks\n{row}");
    }
}

// What the rules find, on made-up sources.

const FILES: Power = Power { what: "files", paths: &["std::fs"], methods: &["exists"], ..Power::NONE };

#[track_caller]
fn check_uses(text: &str, expect: &[&str]) {
    let source = Source::parse("foveate-made-up", "a.rs", text);
    assert_eq!(uses(&source, &FILES), expect, "{text}");
}

#[test]
fn uses_are_found_however_they_are_written() {
    for (text, expect) in [
        ("use std::fs;", &["a.rs:1: std::fs"][..]),
        ("\nuse std::fs::File;", &["a.rs:2: std::fs::File"]),
        ("use std::{env, fs::{self, File}, io};", &["a.rs:1: std::fs", "a.rs:1: std::fs::File"]),
        ("pub use std::fs as disk;", &["a.rs:1: std::fs"]),
        ("use std::{\n    fs as disk,\n};", &["a.rs:2: std::fs"]),
        ("fn f() { ::std::fs::read(\"a\"); }", &["a.rs:1: std::fs::read"]),
        ("fn f() { path\n.exists() }", &["a.rs:2: .exists()"]),
        ("fn f<'a>() -> impl Sized + use<'a> { std::fs::read(\"a\") }", &["a.rs:1: std::fs::read"]),
        ("fn f(c: char) -> bool { c == '\"' || std::fs::read(\"\").is_ok() }", &["a.rs:1: std::fs::read"]),
        ("#[cfg(test)] mod tests { fn f() {} } fn g() { std::fs::read(\"\"); }", &["a.rs:1: std::fs::read"]),
    ] {
        check_uses(text, expect);
    }
}

#[test]
fn comments_strings_and_tests_are_no_uses() {
    for text in [
        "// use std::fs;\n/// std::fs::read\n/* std::fs /* nested */ std::fs */",
        "const A: &str = \"std::fs::read\";",
        "const A: &str = r#\"use std::fs; \" std::fs::read\"#;",
        "const A: &[u8] = b\"\\\" std::fs::read\";",
        "#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn f() { if a { b } path.exists() }\n}",
        "#[cfg(test)]\nuse std::fs;",
        "use crate::fs;\nuse std::fsx::File;\nfn f() { exists(); let exists = 1; }",
    ] {
        check_uses(text, &[]);
    }
}

#[test]
fn whoever_may_not_is_named_and_so_is_whoever_need_not() {
    let power = Power { crates: &["foveate-run", "foveate-gym"], ..FILES };
    let sources = ["foveate-core", "foveate-run"].map(|of| Source::parse(of, of, "use std::fs;"));
    assert_eq!(
        against(&power, &sources),
        [
            "foveate-core:1: std::fs: foveate-core may not use files",
            "foveate-gym may use files, but does not; take that back"
        ]
    );
    let plain = Source::parse("foveate-film", "a.rs", "use std::net::{IpAddr, TcpStream};");
    let sockets = POWERS.iter().find(|power| power.what == "sockets").expect("sockets");
    assert_eq!(uses(&plain, sockets), ["a.rs:1: std::net::TcpStream"]);
    let loud =
        Source::parse("foveate-film", "a.rs", "fn f() { println!(\"\"); print(1); x != y; unsafe { g() } }");
    let found: Vec<_> = POWERS.iter().flat_map(|power| uses(&loud, power)).collect();
    assert_eq!(found, ["a.rs:1: println!", "a.rs:1: unsafe"]);
}

#[test]
fn a_dependency_upwards_is_found() {
    let film = "[package]\nname = \"foveate-film\"\n[dependencies]\nfoveate-core.workspace = true\n";
    assert_eq!(against_layers("foveate-film", film), <[&str; 0]>::default());
    let upwards =
        format!("{film}foveate-run = {{ path = \"..\" }}\n# foveate-cli = 1\nrustix.workspace = true\n");
    assert_eq!(
        against_layers("foveate-film", &upwards),
        [
            "foveate-film may not depend on foveate-run",
            "foveate-film may not depend on rustix, which is for foveate-gym, foveate-mujoco, foveate-run"
        ]
    );
    let in_tests = format!("{film}[dev-dependencies]\nfoveate-run.workspace = true\n");
    assert_eq!(against_layers("foveate-film", &in_tests), <[&str; 0]>::default());
    let on_some_systems = format!("{film}[target.'cfg(unix)'.dependencies]\nfoveate-run.workspace = true\n");
    assert_eq!(
        against_layers("foveate-film", &on_some_systems),
        ["foveate-film may not depend on foveate-run"]
    );
    assert_eq!(
        against_layers("foveate-film", "[dependencies]\n"),
        ["foveate-film may depend on foveate-core, but does not; take that back"]
    );
    assert_eq!(
        against_layers("foveate-new", ""),
        ["foveate-new has no entry in MAY_DEPEND_ON; say what it may depend on"]
    );
}

#[test]
fn a_flag_in_a_message_is_found() {
    for (text, expect) in [
        ("raise --episodes", true),
        ("--seed 3", true),
        ("(--env-arg)", true),
        ("`foveate list worlds` shows them", true),
        ("{}--paper:#fff", false),
        ("fill:var(--paper)", false),
        ("a -- b", false),
        ("foveate records a film", false),
    ] {
        assert_eq!(names_flag_or_command(text), expect, "{text}");
    }
    let source =
        Source::parse("foveate-core", "a.rs", "/// as in `--env`\n#[error(\"see --help\")]\nstruct A;");
    assert_eq!(against_messages(&source), ["a.rs:2: \"see --help\""]);
    let worker = "say(\"leave out --picture\")\npip(\"--upgrade numpy\")\nx = a--b";
    assert_eq!(against_lines("a.py", worker), ["a.py:1: say(\"leave out --picture\")"]);
}

#[test]
fn a_closure_over_vectors_is_found() {
    let text = "let a = [b, c].map(|x| isa.load16(&x.0));\nlet f = |isa, z| {\nlet g = |x: I::V16| x.add(one);\n\
                let h = |x| x + 1;\nif a || isa.is() || b {}\nfor x in isa.load(y) {}";
    let source = Source::parse("foveate-kernels", "a.rs", &format!("fn f() {{\n{text}\n}}"));
    let lines: Vec<String> = vectors_in_closures(&source)
        .iter()
        .map(|at| at.split(' ').next().unwrap_or_default().into())
        .collect();
    assert_eq!(lines, ["a.rs:2:", "a.rs:3:", "a.rs:4:"]);
}
