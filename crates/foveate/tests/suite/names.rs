//! docs/names.md is what the registries say.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use foveate::envs::registry::Champion;
use foveate::envs::shift::SHIFT_SETS;
use foveate::registry::presets_of;
use foveate::{AGENTS, LEARNERS, PRESETS, SHIFTS, WORLDS};

/// A Markdown table.
fn table(title: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let mut text = format!("\n## {title}\n\n{}|{}\n", line(&head), "---|".repeat(head.len()));
    for row in rows {
        assert!(row.iter().all(|cell| !cell.contains(['|', '\n'])), "{row:?} breaks the table");
        text += &line(&row);
    }
    text
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

fn codes<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(code).collect::<Vec<_>>().join(", ")
}

/// The whole document.
fn document() -> String {
    let mut text = String::from(
        "# Names\n\nEvery world, agent, learner, shift and preset, as the registries list them; `foveate list NAME` shows their \
         options too.\nA test compares this page with the registries; `FOVEATE_WRITE_DOCS=1 cargo test -p foveate --test \
         suite names` writes it anew.\n",
    );
    let worlds = WORLDS.iter().map(|world| {
        let solved = world.solved_at.map_or_else(String::new, |score| score.to_string());
        vec![
            code(world.name),
            world.summary.into(),
            codes(world.pictures.iter().map(|picture| picture.name)),
            codes(world.variants.iter().map(|variant| variant.name)),
            codes(presets_of(world).iter().map(|preset| preset.name)),
            solved,
        ]
    });
    let head = ["world", "what it is", "pictures, the default first", "variants", "presets", "solved at"];
    text += &table("Worlds", &head, worlds);
    let champions = WORLDS.iter().flat_map(|world| {
        let row = |champion: &Champion| {
            let (name, world) = (champion.name, code(world.name));
            vec![format!("[`{name}`](../champions/{name}.md)"), champion.about.into(), world]
        };
        world.champions.iter().map(row)
    });
    text += &table(
        "Champions, named in place of weights; the first of a world acts where none are named",
        &["champion", "what it is", "world"],
        champions,
    );
    let agents =
        AGENTS.iter().map(|agent| vec![code(agent.name), agent.summary.into(), agent.sees.describe().into()]);
    text += &table("Agents", &["agent", "what it is", "sees"], agents);
    let learners = LEARNERS.iter().map(|learner| vec![code(learner.name), learner.summary.into()]);
    text += &table("Learners", &["learner", "what it does"], learners);
    let presets =
        PRESETS.iter().map(|preset| vec![code(preset.name), preset.summary.into(), code(preset.agent)]);
    text += &table("Presets", &["preset", "what it does", "agent"], presets);
    let shifts = codes(SHIFTS.iter().map(|shift| shift.name));
    let what = "[What each does, and how much in each severity](stress.md#shifts).";
    let _ = write!(text, "\n## Shifts\n\n{shifts}.\n{what}\n");
    let sets = SHIFT_SETS
        .iter()
        .map(|set| vec![code(set.name), set.about.into(), codes(set.shifts.iter().copied())]);
    let all = vec![code("all"), "every shift that fits the world, in each severity".into(), String::new()];
    let head = ["set, for `foveate stress --shifts`", "what it is", "shifts"];
    text += &table("Sets of shifts", &head, std::iter::once(all).chain(sets));
    text
}

/// The number that stands for a word or digits.
fn counted(word: &str) -> Option<usize> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    WORDS.iter().position(|known| *known == word).or_else(|| word.parse().ok())
}

/// Numbers directly in front of `noun` in a text.
fn counts(text: &str, noun: &str) -> Vec<usize> {
    let before = text.match_indices(noun).filter_map(|(at, _)| text[..at].split_whitespace().next_back());
    before.filter_map(counted).collect()
}

/// What a document counts, and how many the registries have.
#[test]
fn documents_count_what_the_registries_have() {
    let of_control = WORLDS.iter().filter(|world| world.summary.contains("(DeepMind Control;")).count();
    let whole = [
        ("shifts](", SHIFTS.iter().count()),
        ("evolution strategies", foveate::evolve::STRATEGIES.len()),
        ("voting kernels](", foveate::agents::voting::KERNELS.len()),
        ("tasks of DeepMind Control](", of_control),
        ("tasks of the [DeepMind Control suite]", of_control),
        ("analyses, each", foveate::run::explain::HEADS.len()),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts =
        vec![("README.md".into(), fs::read_to_string(folder.join("README.md")).expect("README.md"))];
    for entry in fs::read_dir(folder.join("docs")).expect("docs/") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end == "md") {
            texts.push((path.display().to_string(), fs::read_to_string(&path).expect("a document")));
        }
    }
    for (noun, expect) in whole {
        let found: Vec<(&str, usize)> = texts
            .iter()
            .flat_map(|(name, text): &(String, String)| {
                counts(text, noun).into_iter().map(move |n| (&**name, n))
            })
            .collect();
        assert!(!found.is_empty(), "no document counts {noun}; does this test still read them?");
        let wrong: Vec<_> = found.iter().filter(|(_, n)| *n != expect).collect();
        assert!(wrong.is_empty(), "there are {expect} {noun}; {wrong:?}");
    }
    assert_eq!(counts("under [22 shifts](a), Twelve shifts](b) and shifts](c)", "shifts]("), [22, 12]);
}

#[test]
fn the_page_of_names_is_that_of_the_registries() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/names.md");
    let expect = document();
    if std::env::var_os("FOVEATE_WRITE_DOCS").is_some() {
        fs::write(&path, &expect).expect("writable");
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    let differs = expect.lines().zip(page.lines()).find(|(expect, page)| expect != page);
    let mut why = String::new();
    let _ = write!(why, "docs/names.md differs from the registries, first in {differs:?}; ");
    assert!(
        page == expect,
        "{why}FOVEATE_WRITE_DOCS=1 cargo test -p foveate --test suite names writes it anew"
    );
}
