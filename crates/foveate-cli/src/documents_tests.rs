//! Every command that a document shows is one that this program accepts, and every name in it exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;
use foveate::envs::shift::{Plan, SHIFT_SETS};
use foveate::registry::world;
use foveate::{PRESETS, WORLDS};

use super::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command as a document shows it.
struct Shown {
    /// Its arguments, the first is `foveate`.
    arguments: Vec<String>,
    /// Whether it stands in a block to be copied, not in a sentence.
    block: bool,
    /// The comment behind it.
    comment: String,
}

/// Words as a shell splits them, and the comment; `None` where a quote has no end.
fn words(line: &str) -> Option<(Vec<String>, String)> {
    let (mut all, mut word, mut quote) = (vec![], None::<String>, None);
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => return Some((all, line[at + 1..].trim().to_owned())),
            (None, letter) if letter.is_whitespace() => all.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    quote.is_none().then_some((all, String::new()))
}

/// The commands of a document.
fn commands(text: &str) -> Vec<Shown> {
    let (mut shown, mut fence) = (vec![], None::<&str>);
    let mut begun = String::new();
    let mut add = |line: &str, block: bool| {
        let Some((words, comment)) = words(line) else { return };
        // `cargo run --release -- watch` is `foveate watch`; other programs are not ours.
        let own = words.iter().position(|word| word == "--").filter(|_| words[0] == "cargo");
        let arguments = match own {
            Some(at) if !words[..at].iter().any(|word| word == "-p") => &words[at + 1..],
            None if words.first().is_some_and(|word| word == "foveate") => &words[1..],
            _ => return,
        };
        let arguments = arguments.iter().take_while(|word| *word != ">" && *word != "|").cloned();
        let arguments = std::iter::once("foveate".to_owned()).chain(arguments).collect();
        shown.push(Shown { arguments, block, comment });
    };
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            continue;
        }
        match fence {
            Some("sh") => match line.strip_suffix('\\') {
                Some(part) => begun += part,
                None => add(&(std::mem::take(&mut begun) + line), true),
            },
            Some(_) => {}
            None => line.split('`').skip(1).step_by(2).for_each(|quoted| add(quoted, false)),
        }
    }
    shown
}

/// The documents of a user, as paths below the root.
fn documents() -> Vec<String> {
    let mut found = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for folder in ["docs", "docs/studies", "champions"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
            if Path::new(&name).extension().is_some_and(|end| end == "md") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    found
}

/// Whether this word stands for one that the reader puts there.
fn is_placeholder(word: &str) -> bool {
    let name = word
        .strip_prefix("runs/")
        .unwrap_or(word)
        .trim_end_matches(".npz")
        .trim_end_matches('2')
        .trim_end_matches('…');
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase())
}

/// Names that a command may hold, by the document that shows it.
struct Known<'a> {
    text: &'a str,
    /// Files and folders that the document's commands make.
    made: BTreeSet<String>,
}

impl<'a> Known<'a> {
    fn of(text: &'a str) -> Self {
        let mut made = BTreeSet::new();
        for Shown { arguments, .. } in commands(text) {
            let after = |flag: &str| {
                let at = arguments.iter().position(|word| word == flag)?;
                arguments.get(at + 1).cloned()
            };
            made.extend(after("--out"));
            match arguments.get(1).map(String::as_str) {
                Some("train") => {
                    let world = arguments.get(2).cloned().unwrap_or_default();
                    made.insert(format!("runs/{}", after("--name").unwrap_or(world)));
                }
                Some("import") => {
                    let archive = arguments.get(2).cloned().unwrap_or_default();
                    made.insert(archive.replace(".npz", ".safetensors"));
                }
                _ => {}
            }
        }
        Known { text, made }
    }

    /// What is wrong with weights, a run or a file of this name; the document must say where it comes from.
    fn file(&self, name: &str, comment: &str) -> Option<String> {
        let champion = || WORLDS.iter().any(|world| world.champions.iter().any(|of| of.name == name));
        let whole = name.split('/').take(2).collect::<Vec<_>>().join("/");
        let known = is_placeholder(name)
            || name.starts_with("random")
            || champion()
            || root().join(name).exists()
            || [name, &*whole].iter().any(|name| self.made.contains(*name))
            // Said in a sentence, or behind the command: “a run of s3ta-door”.
            || self.text.contains(&format!("`{name}`"))
            || comment.contains("a run of");
        (!known).then(|| {
            format!(
                "{name} is neither bundled nor made by a command of this document, nor does it say what it is"
            )
        })
    }
}

/// What is wrong with a command.
fn faults(shown: &Shown, known: &Known<'_>) -> Vec<String> {
    let Shown { arguments, block, comment } = shown;
    // A seed, a number of runs: any will do. Words left out are not judged.
    if arguments.iter().any(|word| word.contains('…') || word.contains('[')) {
        return vec![];
    }
    let numbered = arguments.iter().enumerate().map(|(i, word)| {
        let number = i > 0 && arguments[i - 1].starts_with("--") && word == "S";
        if number { "1".to_owned() } else { word.trim_end_matches(',').to_owned() }
    });
    let arguments: Vec<String> = numbered.collect();
    let matches = match Cli::command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => {
            let begun = matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            // A sentence may name a flag without its value.
            let begun = begun
                || (error.kind() == ErrorKind::InvalidValue
                    && arguments.last().is_some_and(|word| word.starts_with("--")));
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let fine = asked || (begun && !block);
            return if fine {
                vec![]
            } else {
                vec![error.to_string().lines().next().unwrap_or_default().to_owned()]
            };
        }
    };
    let Some((command, _)) = matches.subcommand() else { return vec![] };
    let mut wrong = vec![];
    let is_world = |name: &str| is_placeholder(name) || world(name).is_ok();
    let check_shifts = |text: &str| match Plan::parse_all(&[text]) {
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    let mut given: Option<&str> = None;
    let mut positional = vec![];
    let mut rest = arguments[2..].iter().map(String::as_str);
    let flags = Cli::command();
    let flags = flags.find_subcommand(command).expect("it parsed");
    while let Some(word) = rest.next() {
        let Some(long) = word.strip_prefix("--") else {
            positional.push(word);
            continue;
        };
        let takes = flags.get_arguments().find(|flag| flag.get_long() == Some(long));
        let Some(value) = takes.filter(|flag| flag.get_action().takes_values()).and_then(|_| rest.next())
        else {
            continue;
        };
        match long {
            "env" => {
                given = Some(value);
                wrong.extend((!is_world(value)).then(|| format!("no world {value}")));
            }
            "preset" => wrong.extend(PRESETS.get(value).is_none().then(|| format!("no preset {value}"))),
            "shift" => wrong.extend(check_shifts(value)),
            "shifts" => {
                for name in value.split(',') {
                    let set = name == "all" || SHIFT_SETS.iter().any(|set| set.name == name);
                    // A row of `stress` has its severities from another flag.
                    let row = name
                        .split_once(':')
                        .map_or(format!("{name}:3"), |(name, knobs)| format!("{name}:3:{knobs}"));
                    wrong.extend(if set { None } else { check_shifts(&row) });
                }
            }
            "init" | "teacher" | "resume" => wrong.extend(known.file(value, comment)),
            _ => {}
        }
    }
    match command {
        "train" => {
            let name = positional.first().copied();
            wrong.extend(name.filter(|name| !is_world(name)).map(|name| format!("no world {name}")));
            given = name.or(given);
        }
        "eval" | "watch" | "explain" | "lab" | "stress" => {
            for name in &positional {
                wrong.extend(known.file(name, comment));
            }
        }
        "heads" => positional.iter().skip(1).for_each(|name| wrong.extend(known.file(name, comment))),
        _ => {}
    }
    // Pictures and variants of the world that the command names.
    if let Some(world) = given.and_then(|name| world(name).ok()) {
        let value = |flag: &str| {
            let at = arguments.iter().position(|word| word == flag)?;
            arguments.get(at + 1).map(String::as_str)
        };
        if let Some(picture) = value("--picture").filter(|name| *name != "render")
            && !world.pictures.iter().any(|known| known.name == picture)
        {
            wrong.push(format!("{} has no picture {picture}", world.name));
        }
        for variant in value("--variant").iter().flat_map(|names| names.split('+')) {
            let name = variant.split(':').next().unwrap_or_default();
            if !world.variants.iter().any(|known| known.name == name) {
                wrong.push(format!("{} has no variant {name}", world.name));
            }
        }
    }
    wrong
}

#[test]
fn every_command_of_a_document_is_valid() {
    let (mut wrong, mut checked) = (vec![], 0);
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).expect("a document");
        let known = Known::of(&text);
        for shown in commands(&text) {
            checked += 1;
            let command = shown.arguments.join(" ");
            wrong.extend(
                faults(&shown, &known).into_iter().map(|why| format!("{document}: {command}: {why}")),
            );
        }
    }
    assert!(checked > 200, "only {checked} commands found; does this test still read the documents?");
    assert!(wrong.is_empty(), "{} of {checked} commands:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_wrong_command_is_found() {
    for (text, expect) in [
        ("```sh\nfoveate train car-racing --seed 1 # fine\n```", None),
        ("`foveate train car-racing --seed S` `cargo build` `foveate heads`", None),
        ("```sh\nfoveate heads\n```", Some("required")),
        ("```sh\nfoveate train car-racing --sed 1\n```", Some("--sed")),
        ("`foveate trian car-racing`", Some("trian")),
        ("`foveate train car-raging`", Some("no world car-raging")),
        ("`foveate train pong --preset s3ta-pang`", Some("no preset s3ta-pang")),
        ("`foveate eval --shift blurr:2`", Some("blurr")),
        ("`foveate stress --shifts noise,dleay`", Some("dleay")),
        ("`foveate eval --env car-racing --picture clasic`", Some("no picture clasic")),
        ("`foveate eval --env car-racing --variant colour`", Some("no variant colour")),
        ("`foveate eval mine.safetensors`", Some("mine.safetensors is neither")),
        ("`mine.safetensors` is yours: `foveate eval mine.safetensors`", None),
        ("```sh\nfoveate import mine.npz\nfoveate eval mine.safetensors\n```", None),
        ("```sh\nfoveate train car-racing --name mine\nfoveate eval runs/mine \\\n  --seed 1\n```", None),
        ("`cargo run --release -- watch --seeed 1`", Some("--seeed")),
    ] {
        let known = Known::of(text);
        let found: Vec<String> = commands(text).iter().flat_map(|shown| faults(shown, &known)).collect();
        match expect {
            None => assert_eq!(found, Vec::<String>::new(), "{text}"),
            Some(words) => assert!(found.iter().any(|why| why.contains(words)), "{text}: {found:?}"),
        }
    }
}
