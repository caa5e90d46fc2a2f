//! Every field of a job is an argument of its command and a keyword of its Python function. The keywords, their documentation and
//! what the functions hand on are written from the fields: `FOVEATE_WRITE_DOCS=1 cargo test -p foveate-cli jobs`.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use clap::CommandFactory;
use foveate::WorldSpec;
use foveate::jobs::{Evaluate, Explain, Export, Heads, Stress, Train, Watch};
use serde_json::{Value, to_value};

use crate::Cli;

/// A job, as its command and its function.
struct Job {
    command: &'static str,
    /// The function of Python; none yet for `heads`.
    function: Option<&'static str>,
    source: &'static str,
    defaults: Value,
    /// Arguments of the command that are no fields: who acts, what is printed, and what is several jobs or none.
    only_command: &'static [&'static str],
    /// Fields whose keyword is not of the field's name and type, and is documented in Python: field, keyword, type with default,
    /// expression.
    python: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

fn jobs() -> [Job; 7] {
    let value = |value: Result<Value, serde_json::Error>| value.expect("plain values");
    [
        Job {
            command: "eval",
            function: Some("evaluate"),
            source: include_str!("../../foveate/src/jobs/evaluate.rs"),
            defaults: value(to_value(Evaluate::default())),
            only_command: &["weights", "image_threads", "json", "each_variant"],
            python: &[("seeds", "seeds", "range | None = None", "_seeds(seeds)")],
        },
        Job {
            command: "stress",
            function: Some("stress"),
            source: include_str!("../../foveate/src/jobs/stress.rs"),
            defaults: value(to_value(Stress::default())),
            only_command: &["weights", "json", "sheet", "looks"],
            // `variants` is the world's field, whose keyword is `variant`.
            python: &[("variant_rows", "variants", "str = \"all\"", "variants")],
        },
        Job {
            command: "explain",
            function: Some("explain"),
            source: include_str!("../../foveate/src/jobs/explain.rs"),
            defaults: value(to_value(Explain::default())),
            only_command: &["weights", "image_threads", "json", "more", "compare", "calibrate", "seeds"],
            python: &[],
        },
        Job {
            command: "export",
            function: Some("export"),
            source: include_str!("../../foveate/src/jobs/export.rs"),
            defaults: value(to_value(Export::default())),
            only_command: &["weights", "image_threads", "json"],
            python: &[("to", "to", "str = \"onnx\"", "to")],
        },
        Job {
            command: "watch",
            function: Some("watch"),
            source: include_str!("../../foveate/src/jobs/watch.rs"),
            defaults: value(to_value(Watch::default())),
            only_command: &["weights", "image_threads"],
            python: &[
                ("size", "size", "tuple[int, int] | None = None", "size"),
                // A temporary file, if none is named.
                ("out", "out", "str | os.PathLike[str] | None = None", "_path(out)"),
            ],
        },
        Job {
            command: "heads",
            function: None,
            source: include_str!("../../foveate/src/jobs/heads.rs"),
            defaults: value(to_value(Heads::default())),
            only_command: &["weights", "image_threads", "json"],
            python: &[],
        },
        Job {
            command: "train",
            function: Some("train"),
            source: include_str!("../../foveate/src/jobs/train.rs"),
            defaults: value(to_value(Train::default())),
            // Resuming is another job; a cluster is an engine, which Python makes.
            only_command: &["name_of_world", "json", "resume", "allow_changes", "cluster"],
            python: &[(
                "set",
                "set",
                "Mapping[str, Any] | None = None,  # noqa: A002, the command's name",
                "[f\"{key}={_toml(value, key)}\" for key, value in (set or {}).items()]",
            )],
        },
    ]
}

/// The world's arguments with the keyword of each, which no job writes anew. `world` is an argument of its own.
const WORLD: [(&str, &str); 8] = [
    ("env", "world"),
    ("shifts", "shifts"),
    ("picture", "picture"),
    ("variants", "variant"),
    ("options", "options"),
    ("env_args", "options"),
    ("wrap", "options"),
    ("trust_world", "trust"),
];

/// A field of a job in its source.
struct Field {
    name: String,
    kind: String,
    about: String,
}

fn fields(source: &str) -> Vec<Field> {
    let body =
        source.split("\npub struct ").nth(1).and_then(|rest| rest.split("\n}\n").next()).expect("a struct");
    let (mut found, mut about) = (vec![], vec![]);
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            about.push(text);
        } else if let Some((name, kind)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": ")) {
            let kind = kind.trim_end_matches(',').to_owned();
            found.push(Field { name: name.to_owned(), kind, about: about.join(" ") });
            about.clear();
        }
    }
    assert_eq!(found.pop().map(|field| field.kind).as_deref(), Some("WorldSpec"), "the world comes last");
    found
}

impl Job {
    /// The keyword of a field, its type with the default, and the expression for the job.
    fn keyword(&self, Field { name, kind, .. }: &Field) -> (String, String, String) {
        if let Some((_, keyword, kind, expression)) = self.python.iter().find(|(field, ..)| field == name) {
            return ((*keyword).into(), (*kind).into(), (*expression).into());
        }
        let (inner, none) = match kind.strip_prefix("Option<") {
            Some(inner) => (inner.trim_end_matches('>'), " | None"),
            None => (&**kind, ""),
        };
        let (inner, expression) = match inner {
            "usize" | "u64" => ("int", format!("_whole(\"{name}\", {name})")),
            "f64" => ("float", name.clone()),
            "bool" => ("bool", name.clone()),
            "String" => ("str", name.clone()),
            "PathBuf" => ("str | os.PathLike[str]", format!("_path({name})")),
            other => panic!("{name}: say in `python` what {other} is in Python"),
        };
        let default = match &self.defaults[name] {
            Value::Null => "None".into(),
            Value::Bool(yes) => if *yes { "True" } else { "False" }.into(),
            other => other.to_string(),
        };
        (name.clone(), format!("{inner}{none} = {default}"), expression)
    }

    /// The entry of a field in the function's documentation.
    fn entry(&self, field: &Field) -> Vec<String> {
        let about = match field.about.find(" [default: ").or_else(|| field.about.find(" [for ")) {
            Some(at) => &field.about[..at],
            None => &field.about,
        };
        let mut letters = about.chars();
        let first = letters.next().expect("it is documented").to_lowercase();
        let text = format!("{}: {first}{}.", self.keyword(field).0, letters.as_str()).replace('`', "``");
        let (mut lines, mut line) = (vec![], "       ".to_owned());
        for word in text.split(' ') {
            if line.chars().count() + word.chars().count() > 130 {
                lines.push(std::mem::replace(&mut line, "           ".into()));
            }
            line = format!("{line} {word}");
        }
        lines.push(line);
        lines
    }

    /// `text`, the Python source, with this job's keywords.
    fn write(&self, text: &str) -> String {
        let Some(function) = self.function else { return text.to_owned() };
        let fields = fields(self.source);
        let at = text.find(&format!("\ndef {function}(")).expect("the function");
        let (before, rest) = text.split_at(at);
        let (signature, rest) = rest.split_once("    *,\n").expect("keywords");
        // The first keyword that is no field.
        let others = ["    attention: ", "    reset: ", "    cluster: ", "    picture: "];
        let end =
            others.iter().filter_map(|other| rest.find(other)).min().expect("a keyword of Python's own");
        let keywords = fields.iter().fold(String::new(), |text, field| {
            let (name, kind, _) = self.keyword(field);
            let comma = if kind.contains(",  #") { "" } else { "," };
            text + &format!("    {name}: {kind}{comma}\n")
        });
        let (own, rest) = rest[end..].split_once("\n    Args:\n").expect("documented arguments");
        let stop = rest.find("\n\n").into_iter().chain(rest.find("\n    \"\"\"")).min().expect("an end");
        let names: BTreeSet<String> = fields.iter().map(|field| self.keyword(field).0).collect();
        let mut kept: Vec<Vec<String>> = vec![];
        for line in rest[..stop].lines() {
            if line.starts_with("         ") {
                kept.last_mut().expect("an entry").push(line.to_owned());
            } else {
                kept.push(vec![line.to_owned()]);
            }
        }
        let name_of = |entry: &Vec<String>| entry[0].trim().split(':').next().unwrap_or_default().to_owned();
        let (old, mut kept): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|entry| names.contains(&name_of(entry)));
        // What is of another type in Python is documented there.
        let documented = |field: &Field| {
            let own = self.python.iter().any(|(name, ..)| *name == field.name);
            let own = own.then(|| old.iter().find(|entry| name_of(entry) == self.keyword(field).0)).flatten();
            own.cloned().unwrap_or_else(|| self.entry(field))
        };
        let first = kept
            .iter()
            .take_while(|entry| ["who", "world"].iter().any(|name| entry[0].trim().starts_with(name)));
        let first = first.count();
        kept.splice(first..first, fields.iter().map(documented));
        let args = kept.concat().join("\n");
        let (between, rest) = rest[stop..].split_once("    job = {\n").expect("a job");
        let world = rest.find("        \"world\": ").expect("it ends with the world");
        let values = fields.iter().fold(String::new(), |text, field| {
            text + &format!("        \"{}\": {},\n", field.name, self.keyword(field).2)
        });
        format!(
            "{before}{signature}    *,\n{keywords}{own}\n    Args:\n{args}{between}    job = {{\n{values}{}",
            &rest[world..]
        )
    }
}

#[test]
fn jobs_are_the_arguments_of_their_commands() {
    let world =
        to_value(WorldSpec { id: Some(String::new()), ..WorldSpec::default() }).expect("plain values");
    assert!(world.get("id").is_some());
    for job in jobs() {
        let command = Cli::command();
        let command = command.find_subcommand(job.command).expect("a command");
        let ids: BTreeSet<&str> =
            command.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        let names = fields(job.source);
        let there = names.iter().map(|field| field.name.as_str()).chain(WORLD.map(|(id, _)| id));
        let expected: BTreeSet<&str> = there.chain(job.only_command.iter().copied()).collect();
        assert_eq!(ids, expected, "{}", job.command);
        let saved: BTreeSet<&str> =
            job.defaults.as_object().expect("a struct").keys().map(|key| &**key).collect();
        let written: BTreeSet<&str> = names.iter().map(|field| &*field.name).chain(["world"]).collect();
        assert_eq!(saved, written, "{}: what is sent to others", job.command);
        // The command without arguments is the job's default.
        for argument in command.get_arguments() {
            let (id, given) = (argument.get_id().as_str(), argument.get_default_values());
            if let (Some(default), [value]) = (job.defaults.get(id), given) {
                let shown = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
                assert_eq!(value.to_string_lossy(), shown, "{} --{id}", job.command);
            }
        }
    }
}

#[test]
fn jobs_are_the_keywords_of_their_python_functions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foveate-py/python/foveate/jobs.py");
    let there = fs::read_to_string(&path).expect("the source").replace("\r\n", "\n");
    let written = jobs().iter().fold(there.clone(), |text, job| job.write(&text));
    if env::var_os("FOVEATE_WRITE_DOCS").is_some() {
        fs::write(&path, written).expect("writable");
        return;
    }
    assert!(
        there == written,
        "jobs.py has other keywords than the fields of foveate::jobs; write it with FOVEATE_WRITE_DOCS=1 cargo test -p foveate-cli jobs"
    );
    for job in jobs() {
        let Some(function) = job.function else { continue };
        let definition =
            there.split(&format!("\ndef {function}(")).nth(1).and_then(|rest| rest.split(") -> ").next());
        let definition = definition.expect("the function");
        for (argument, keyword) in WORLD {
            assert!(
                definition.contains(&format!("\n    {keyword}: ")),
                "{function} has no {keyword}, {argument}"
            );
        }
    }
}

#[test]
fn a_job_is_the_same_as_json() {
    let job =
        Evaluate { seeds: "3..5".parse().ok(), world: WorldSpec::named("car-racing"), ..Evaluate::default() };
    let text = serde_json::to_string(&job).expect("plain values");
    assert!(text.contains(r#""seeds":"3..5""#) && text.contains(r#""world":{"id":"car-racing"}"#), "{text}");
    assert_eq!(serde_json::from_str::<Evaluate>(&text).expect("its own"), job);
    assert_eq!(serde_json::from_str::<Evaluate>("{}").expect("defaults"), Evaluate::default());
    let wrong = serde_json::from_str::<Evaluate>(r#"{"episods": 3}"#).expect_err("unknown").to_string();
    assert!(wrong.contains("unknown field `episods`, expected one of `episodes`"), "{wrong}");
}
