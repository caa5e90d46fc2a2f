//! Tests of the whole report on toy agents with a known ground truth.

use std::collections::BTreeMap;
use std::fs;

use foveate_core::Labels;
use foveate_core::{Env, PolicyAgent};
use foveate_envs::shift::{Plan, Shifted};
use foveate_envs::wrap::{Wrapped, Wrappers};
use foveate_explain::faithful::Conclusion;
use foveate_explain::study::{Looks, Saliency};
use foveate_toy::{Looker, PlaceClaim as Says, Sparks};

use super::*;
use crate::workers::Stop;

/// The files of a report, by their path below it.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

struct Made {
    report: Report,
    covers: Covers,
    files: Files,
}

/// The bytes of a report's files, by name.
pub(super) fn files(out: &Path) -> Files {
    let mut files = Files::new();
    for folder in [out.to_path_buf(), out.join("figures")] {
        for entry in fs::read_dir(&folder).expect("it was made") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let name = path.strip_prefix(out).expect("below").to_string_lossy().into_owned();
                files.insert(name, fs::read(&path).expect("readable"));
            }
        }
    }
    files
}

/// The cost of a job that is over; as many pieces were done as it said.
#[track_caller]
pub(super) fn plays_what_it_announced(stop: &Stop) -> JobCost {
    let cost = stop.cost().expect("said before");
    assert_eq!(cost.pieces, stop.pieces_done(), "{cost:?}");
    cost
}

/// Makes a report in a folder of its own, whatever the request says, and reads its files.
pub(super) fn made(request: ExplainRequest<'_>) -> Result<(Report, Files), RunError> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("report");
    let (mut last, stop) = (0.0, Stop::default());
    let report = run(&ExplainRequest { out: &out, ..request }, &stop, &mut |progress| {
        assert!(stop.cost().is_some(), "said before {progress:?}");
        assert!(progress.done >= last && progress.done <= 1.0, "{progress:?} after {last}");
        last = progress.done;
    })?;
    assert_eq!(last, 1.0);
    plays_what_it_announced(&stop);
    let files = files(&out);
    can_be_read_in_a_minute(&files);
    no_letters_for_words(&report.to_string());
    Ok((report, files))
}

/// Measures have names, no letters.
#[track_caller]
fn no_letters_for_words(text: &str) {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    assert!(words.all(|word| !["N", "M", "F"].contains(&word)), "{text}");
}

/// The text of a page without style and scripts, and without what is between these.
fn without(page: &str, left_out: &[(&str, &str)]) -> String {
    let mut text = page.to_owned();
    for (from, to) in [&[("<head>", "</head>"), ("<script", "</script>")][..], left_out].concat() {
        while let Some(begin) = text.find(from) {
            let end = text[begin..].find(to).map_or(text.len(), |end| begin + end + to.len());
            text.replace_range(begin..end, " ");
        }
    }
    let mut shown = String::new();
    for part in text.split('<') {
        shown.push_str(part.split_once('>').map_or(part, |(_, words)| words));
        shown.push(' ');
    }
    shown
}

/// At most 60 numbers are seen before anything is opened, and there is a sentence and a picture; the rest can be opened.
#[track_caller]
pub(super) fn can_be_read_in_a_minute(files: &Files) {
    let page = String::from_utf8_lossy(&files["index.html"]);
    no_letters_for_words(&without(&page, &[]));
    // What is seen before anything is opened.
    let text = without(&page, &[("</summary>", "</details>")]);
    let is_number = |word: &&str| word.chars().any(|c| c.is_ascii_digit());
    let numbers: Vec<&str> =
        text.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',')).filter(is_number).collect();
    assert!(numbers.len() <= 60, "{} numbers: {text}", numbers.len());
    let minute = page.split_once("id=\"minute\"").expect("it has one").1;
    let minute = minute.split_once("</section>").expect("it ends").0;
    assert!(minute.contains("<li class=") && minute.contains("<figure"), "{minute}");
    // Every address of the page leads to something, which is inside of its fold.
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(page.contains(&format!("<section id=\"{link}\"")), "{link}");
    }
    assert!(page.matches("<details>").count() >= 3, "{page}");
}

fn explain(says: Says, episodes: usize, workers: usize) -> Made {
    explain_in(&Sparks::new(), says, episodes, workers)
}

fn explain_in(env: &dyn Env, says: Says, episodes: usize, workers: usize) -> Made {
    let request = ExplainRequest {
        env,
        agent: &PolicyAgent::new(Looker::new(says)),
        labels: Labels {
            env: "sparks".into(),
            picture: "noise".into(),
            variant: "original".into(),
            weights: "<toy> & \"friends\"".into(),
        },
        sensors: &[],
        seed: 5,
        episodes,
        decisions: 6,
        untrained: 2,
        asked: None,
        max_steps: None,
        workers,
        out: Path::new(""),
    };
    let (report, files) = made(request).expect("a report");
    let covers = report.get::<Covers>().expect("of a picture").clone();
    Made { report, covers, files }
}

#[track_caller]
fn check(says: Says, episodes: usize, expect: &str) {
    let Made { covers: report, .. } = explain(says, episodes, 2);
    assert_eq!(report.verdict, expect, "{says:?}: {:?}", report.claims[0]);
    for control in &report.claims[2..5] {
        assert_ne!(control.verdict, Some(Conclusion::Supported), "{says:?}: {control:?}");
    }
    // A blind agent does not react.
    assert_eq!((report.claims[4].blur.value, report.claims[4].mean.value), (0.0, 0.0));
}

#[test]
fn toys_are_seen_through() {
    check(Says::Truth, 8, "supported");
    check(Says::Nonsense, 8, "not supported");
    check(Says::Middle, 8, "not supported");
    check(Says::Truth, 3, "undecided");
}

/// Sparks as three grey pictures; their patches shuffled by this shift, if any.
fn stacked(shift: &str) -> Box<dyn Env> {
    let wrappers: Wrappers = "grey:opencv+stack:3".parse().expect("wrappers that exist");
    let env = Box::new(Wrapped::new(Box::new(Sparks::new()), wrappers).expect("they fit"));
    let shifts = if shift.is_empty() { vec![] } else { vec![shift] };
    Box::new(Shifted::new(env, &Plan::parse_all(&shifts).expect("a good shift")).expect("it fits"))
}

#[test]
fn stacks_of_grey_pictures_and_shuffled_patches_are_explained_too() {
    for shift in ["", "shuffle:5:patch=4:every=7"] {
        let env = stacked(shift);
        let truth = explain_in(&*env, Says::Truth, 5, 2);
        assert_eq!(truth.covers.verdict, "supported", "{shift}: {:?}", truth.covers.claims[0]);
        let nonsense = explain_in(&*env, Says::Nonsense, 5, 2).covers;
        assert_eq!(nonsense.verdict, "not supported", "{shift}: {:?}", nonsense.claims[0]);
        let page = String::from_utf8(truth.files["index.html"].clone()).expect("text");
        assert_eq!(page.contains("gets its patches in another order"), !shift.is_empty(), "{shift}");
    }
    // Always the patch in the middle of what it gets: elsewhere in the world in every episode.
    let regions = |shift: &str| {
        explain_in(&*stacked(shift), Says::Middle, 2, 2)
            .report
            .get::<Looks>()
            .expect("it looks")
            .regions
            .clone()
    };
    let (own, shuffled) = (regions(""), regions("shuffle:5:patch=4"));
    assert!(own[0].1 > 0.99 && shuffled[0].1 < 0.9, "{own:?} {shuffled:?}");
}

#[test]
fn without_attention_perturbations_make_the_claim() {
    let Made { covers: report, files, .. } = explain(Says::Nothing, 5, 2);
    assert_eq!(report.claims[0].name, "perturbation saliency");
    let [_, high] = report.claims[1].blur.interval.expect("five episodes");
    assert!(report.claims[0].blur.value > high, "{:?}", report.claims);
    let page = String::from_utf8(files["index.html"].clone()).expect("text");
    assert!(page.contains("Is it true?") && !page.contains("Where it looks"));
    assert!(!files.contains_key("figures/gaze-map.svg"));
}

#[test]
fn bytes_do_not_depend_on_the_workers() {
    let one = explain(Says::Truth, 4, 1);
    let three = explain(Says::Truth, 4, 3);
    assert_eq!(one.files.keys().collect::<Vec<_>>(), three.files.keys().collect::<Vec<_>>());
    for (name, bytes) in &one.files {
        assert!(*bytes == three.files[name], "{name} differs");
    }
}

/// Elements without an end tag.
const VOID: [&str; 4] = ["meta", "input", "br", "img"];

/// Checks that every element is closed correctly, and returns the values of all attributes that may contain
/// an address.
#[track_caller]
fn addresses(name: &str, text: &str) -> Vec<String> {
    let (mut open, mut found, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').unwrap_or_else(|| panic!("{name}: a tag without an end"));
        rest = after;
        if tag.starts_with('!') {
            continue;
        }
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed.to_owned()), "{name}");
            continue;
        }
        let element = tag.split([' ', '/']).next().unwrap_or_default().to_owned();
        for attribute in ["src=\"", "href=\"", "action=\"", "url("] {
            for part in tag.split(attribute).skip(1) {
                found.push(part.split(['"', ')']).next().unwrap_or_default().to_owned());
            }
        }
        let raw = matches!(&*element, "script" | "style");
        if !tag.ends_with('/') && !VOID.contains(&&*element) {
            open.push(element.clone());
        }
        if raw {
            // The contents of these elements are not markup.
            let end = rest
                .find(&format!("</{element}"))
                .unwrap_or_else(|| panic!("{name}: {element} does not end"));
            rest = &rest[end..];
        }
    }
    assert_eq!(open, Vec::<String>::new(), "{name}: never closed");
    found
}

#[test]
fn the_page_needs_nothing_else_and_figures_say_what_their_tables_say() {
    let Made { report, covers, files } = explain(Says::Truth, 5, 2);
    let text = |name: &str| String::from_utf8(files[name].clone()).expect(name);
    let page = text("index.html");
    assert_eq!(page.len(), report.head.bytes);
    assert!(page.contains("&lt;toy&gt; &amp; &quot;friends&quot;") && !page.contains("<toy>"));
    for address in addresses("index.html", &page) {
        let own = ["data:", "#", "figures/"].iter().any(|start| address.starts_with(start));
        assert!(own, "{}", address.chars().take(80).collect::<String>());
        if address.starts_with("figures/") {
            assert!(files.contains_key(&address), "{address} is not there");
        }
    }
    // The only address in the page is the namespace of SVG, which is never fetched.
    let rest = page.replace("http://www.w3.org/2000/svg", "");
    for forbidden in
        ["http://", "https://", "//cdn", "import(", "fetch(", "XMLHttpRequest", "WebSocket", "@import"]
    {
        assert!(!rest.contains(forbidden), "{forbidden}");
    }
    let data = page.split_once("id=\"data\">").and_then(|(_, after)| after.split_once("</script>"));
    let data: serde_json::Value = serde_json::from_str(data.expect("there").0).expect("JSON");
    assert_eq!(data["rewards"].as_array().map(Vec::len), Some(30));
    assert_eq!(data["actions"][0].as_array().map(Vec::len), Some(30));

    let mut figures = 0;
    for (name, bytes) in &files {
        let Some(stem) = name.strip_suffix(".svg") else { continue };
        figures += 1;
        assert_eq!(
            addresses(name, &text(name)).iter().find(|a| !a.starts_with("data:image/png")),
            None,
            "{name}"
        );
        assert!(bytes.len() > 400 && files[&format!("{stem}.png")].starts_with(b"\x89PNG"), "{name}");
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(&text(&format!("{stem}.json"))).expect("a list of rows");
        let csv = text(&format!("{stem}.csv"));
        let mut lines = csv.lines();
        let columns: Vec<&str> = lines.next().expect("a head line").split(',').collect();
        assert_eq!(csv.lines().count(), rows.len() + 1, "{stem}");
        for (line, row) in lines.zip(&rows) {
            if line.contains('"') {
                continue; // a word with a comma, which the table's own test reads
            }
            for (column, cell) in columns.iter().zip(line.split(',')) {
                let expect = &row[*column];
                let same = expect
                    .as_str()
                    .map_or_else(|| cell.parse::<f64>().ok() == expect.as_f64(), |word| word == cell);
                assert!(same, "{stem}, {column}: {cell} and {expect}");
            }
        }
    }
    assert!(figures >= 14, "{figures}");
    // The faithfulness figure is drawn from the numbers of the report.
    let drawn: Vec<serde_json::Value> =
        serde_json::from_str(&text("figures/faithfulness.json")).expect("rows");
    assert_eq!(drawn[0]["mean"].as_f64(), Some(covers.claims[0].blur.value));
    let told: serde_json::Value = serde_json::from_str(&text("report.json")).expect("JSON");
    assert_eq!(told["claims"][0]["blur"][0].as_f64(), Some(covers.claims[0].blur.value));
    assert_eq!(told["verdict"], "supported");
}

#[test]
fn requests_that_cannot_be_met() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let agent = PolicyAgent::new(Looker::new(Says::Truth));
    let toy = foveate_toy::ToyWorld::default();
    let sparks = Sparks::new();
    let stopped = Stop::default();
    stopped.ask();
    let blind =
        foveate_agents::registry::make("random-actions", &serde_json::Value::Null).expect("its defaults");
    let request = |agent: &dyn Agent| {
        let labels = Labels { weights: "a run".into(), ..Labels::default() };
        let out = &dir.path().join("report");
        let (env, max_steps) = (&toy as &dyn Env, None);
        let request = ExplainRequest {
            env,
            agent,
            labels,
            sensors: &[],
            seed: 1,
            episodes: 1,
            decisions: 1,
            untrained: 2,
            asked: None,
            max_steps,
            workers: 1,
            out,
        };
        run(&request, &Stop::default(), &mut |_| {}).map(drop)
    };
    let said = request(&*blind).expect_err("it looks nowhere").to_string();
    assert!(said.starts_with("a run: this agent has no attention") && said.lines().count() == 1, "{said}");
    assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0, "nothing is left behind");
    for (env, episodes, decisions, stop, wants) in [
        (&sparks as &dyn Env, 0, 1, Stop::default(), "at least 1 episode"),
        (&sparks, 1, 0, Stop::default(), "at least 1 episode"),
        (&sparks, 101, 50, Stop::default(), "lower the setting `episodes`"),
        (&toy, 1, 1, Stop::default(), "toy shows 2 numbers"),
        (&sparks, 2, 2, stopped, "stopped"),
    ] {
        let out = dir.path().join("report");
        let request = ExplainRequest {
            env,
            agent: &agent,
            labels: Labels::default(),
            sensors: &[],
            seed: 1,
            episodes,
            decisions,
            untrained: 2,
            asked: None,
            max_steps: None,
            workers: 2,
            out: &out,
        };
        let said = run(&request, &stop, &mut |_| {}).expect_err("must fail").to_string();
        assert!(said.contains(wants), "{said}");
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0, "nothing is left behind");
    }
}

/// A number in a text with its rounding error; percentages become fractions.
#[derive(Debug, Clone, Copy)]
struct UserSettings {
    value: f64,
    within: f64,
}

/// The numbers of a text.
fn numbers(text: &str) -> Vec<UserSettings> {
    let text: Vec<char> = text.replace('−', "-").replace("&#39;", "'").chars().collect();
    let (mut found, mut i) = (vec![], 0);
    while i < text.len() {
        let begins =
            text[i].is_ascii_digit() && !(i > 0 && (text[i - 1].is_alphanumeric() || text[i - 1] == '.'));
        if !begins {
            i += 1;
            continue;
        }
        let start = if i > 0 && text[i - 1] == '-' { i - 1 } else { i };
        let digit = |at: usize| text.get(at).is_some_and(char::is_ascii_digit);
        while digit(i) || (i < text.len() && ['.', ','].contains(&text[i]) && digit(i + 1)) {
            i += 1;
        }
        let number: String = text[start..i].iter().filter(|c| **c != ',').collect();
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len()) as i32;
        let hundred = text[i..].iter().find(|c| !c.is_whitespace()) == Some(&'%');
        let scale = if hundred { 0.01 } else { 1.0 };
        let value: f64 = number.parse().expect("digits");
        found.push(UserSettings { value: scale * value, within: scale * 0.501 * 10_f64.powi(-decimals) });
    }
    found
}

/// Every number in a JSON value, including those within strings.
fn leaves(json: &serde_json::Value, out: &mut Vec<f64>) {
    match json {
        serde_json::Value::Number(number) => out.extend(number.as_f64()),
        serde_json::Value::String(text) => {
            // Actions of a row, and names such as `random:7`.
            let words = text.split([' ', ':', '-', '@', '=']).filter_map(|word| word.parse::<f64>().ok());
            out.extend(words);
            out.extend(numbers(text).iter().map(|said| said.value));
        }
        serde_json::Value::Array(items) => {
            out.push(items.len() as f64);
            for item in items {
                leaves(item, out);
            }
        }
        serde_json::Value::Object(fields) => fields.values().for_each(|field| leaves(field, out)),
        _ => {}
    }
}

/// Numbers of `text` that `json` does not have.
fn missing(text: &str, json: &serde_json::Value) -> Vec<f64> {
    let mut known = vec![];
    leaves(json, &mut known);
    let unknown = |said: &UserSettings| !known.iter().any(|k| (k - said.value).abs() <= said.within);
    numbers(text).into_iter().filter(unknown).map(|said| said.value).collect()
}

/// The text between the tags of `html`.
fn visible(html: &str) -> String {
    let mut out = String::new();
    for part in html.split('<').skip(1) {
        out.push_str(part.split_once('>').map_or("", |(_, text)| text));
        out.push(' ');
    }
    out
}

/// The drawings of a page by the name of their figure, with their text but without axis ticks; and the page
/// without drawings, scripts and the player.
fn parts(page: &str) -> (Vec<(String, String)>, String) {
    let body = page.split_once("<header>").expect("a header").1;
    let (before, after) = body.split_once("<div class=\"player\"").expect("a player");
    let after = after.split_once("</video>").expect("a film").1.split_once("<script").expect("scripts").0;
    let nav = before.split_once("<h1>").expect("a heading").1;
    let mut rest = format!("<h1>{nav}{after}");
    let mut drawings = vec![];
    while let Some((before, after)) = rest.split_once("<svg ") {
        let (drawing, after) = after.split_once("</svg>").expect("it ends");
        let name =
            before.rsplit_once("id=\"figure-").and_then(|(_, name)| name.split_once('"')).expect("a name").0;
        let texts = drawing.split("<text ").skip(1).filter(|text| !text.contains(" tick\""));
        let said: Vec<&str> = texts
            .filter_map(|text| text.split_once('>')?.1.split_once("</text>"))
            .map(|(text, _)| text)
            .collect();
        drawings.push((name.to_owned(), said.join(" ; ")));
        rest = format!("{before}{after}");
    }
    (drawings, visible(&rest))
}

#[test]
fn every_number_of_the_page_is_in_the_report() {
    for says in [Says::Truth, Says::Middle] {
        let Made { files, .. } = explain(says, 6, 2);
        let page = String::from_utf8(files["index.html"].clone()).expect("text");
        let mut report: serde_json::Value = serde_json::from_slice(&files["report.json"]).expect("JSON");
        let figures = report.as_object_mut().and_then(|r| r.remove("figures")).expect("rows of the figures");
        let (drawings, text) = parts(&page);
        assert!(numbers(&text).len() > 60, "{text}");
        assert_eq!(missing(&text, &report), Vec::<f64>::new(), "{says:?}: {text}");
        assert!(drawings.len() >= 5, "{drawings:?}");
        for (name, said) in &drawings {
            let rows = &figures[name.as_str()];
            assert!(rows.as_array().is_some_and(|rows| !rows.is_empty()), "{name}");
            let known = serde_json::json!([rows, report["method"]]);
            assert_eq!(missing(said, &known), Vec::<f64>::new(), "{says:?}, {name}: {said}");
        }
        // The player's numbers are those of the traces.
        let data = page.split_once("id=\"data\">").and_then(|(_, after)| after.split_once("</script>"));
        let data: serde_json::Value = serde_json::from_str(data.expect("there").0).expect("JSON");
        let rows = figures["traces"].as_array().expect("rows");
        for (t, row) in rows.iter().enumerate() {
            for (key, column, within) in [("rewards", "reward", 5e-4), ("scores", "score", 5e-3)] {
                let apart = data[key][t].as_f64().expect(key) - row[column].as_f64().expect(column);
                assert!(apart.abs() <= within, "{key} {t}: {apart}");
            }
        }
        if says != Says::Truth {
            continue;
        }
        // This test detects missing numbers.
        for key in ["regions", "interventions", "claims", "importance"] {
            let mut less = report.clone();
            less.as_object_mut().and_then(|fields| fields.remove(key)).expect(key);
            assert_ne!(missing(&text, &less), Vec::<f64>::new(), "{key}");
        }
    }
}

#[test]
fn the_page_says_what_the_data_say() {
    let Made { mut covers, files, .. } = explain(Says::Truth, 5, 2);
    let page = String::from_utf8(files["index.html"].clone()).expect("text");
    for wants in [
        "covering them must move its action, trained or not",
        "of six AttentionAgents with random weights, two did",
        "the order of the patches is not tested",
        "not corrected for their number",
    ] {
        assert!(page.contains(wants), "{wants}");
    }
    assert!(!page.contains("since it can look elsewhere") && !page.contains("does as well"), "{page}");
    covers.driving = "not supported".into();
    let said = covers.driving_sentence();
    assert!(said.contains("do not show it for both fills") && said.contains("95 % from"), "{said}");
    assert!(!said.contains("elsewhere:") && said.ends_with("Why, this test does not say."), "{said}");
}

#[test]
fn one_episode_has_no_interval() {
    let Made { report, covers, files } = explain(Says::Truth, 1, 1);
    assert!(covers.claims.iter().all(|c| c.blur.interval.is_none() && c.null[1].interval.is_none()));
    assert!(covers.interventions.iter().all(|i| i.interval.is_none()));
    assert!(covers.drives.iter().all(|d| d.interval.is_none()) && covers.cost[0].interval.is_none());
    assert_eq!(report.get::<Saliency>().expect("it has attention").agreement.mass.1, None);
    let said = report.to_string();
    assert!(said.contains("one episode has no interval") && !said.contains('…'), "{said}");
    assert!(said.contains("6 decisions in 1 episode;"), "{said}");
    let page = String::from_utf8(files["index.html"].clone()).expect("text");
    let (_, text) = parts(&page);
    assert!(
        text.contains("one episode: no interval") && !text.contains('…') && !text.contains("95 %"),
        "{text}"
    );
    let rows: serde_json::Value = serde_json::from_slice(&files["figures/faithfulness.json"]).expect("JSON");
    assert!(rows[0]["low"].is_null() && rows[0]["mean"].is_number(), "{rows}");
}

/// What every analysis of the list found is in `report.json`, on the terminal and on the page; gives the names of those that
/// had something to say.
#[track_caller]
pub(super) fn told_everywhere(report: &Report, files: &Files) -> Vec<&'static str> {
    let json: serde_json::Value = serde_json::from_slice(&files["report.json"]).expect("JSON");
    let (terminal, page) = (report.to_string(), String::from_utf8_lossy(&files["index.html"]).into_owned());
    let names: Vec<&str> = ANALYSES.iter().map(|analysis| analysis.name()).collect();
    let (mut told, mut last) = (vec![], 0);
    for finding in report.findings.iter() {
        let at = names.iter().position(|name| *name == finding.name).expect("in the list");
        assert!(at >= last, "{}: in the order of the list", finding.name);
        last = at;
        for (key, value) in finding.numbers.json().as_object().expect("an object") {
            assert_eq!(json.get(key), Some(value), "{}: {key}", finding.name);
        }
        let Some(section) = &finding.section else { continue };
        assert!(page.contains(&format!("<section id=\"{}\"", section.id)), "{}", finding.name);
        assert!(!finding.told().is_empty(), "{}: nothing on the terminal", finding.name);
        for line in finding.told() {
            assert!(terminal.contains(line), "{}: {line}", finding.name);
        }
        told.push(finding.name);
    }
    told
}

#[test]
fn every_analysis_of_a_picture_is_told_everywhere() {
    let Made { report, files, .. } = explain(Says::Truth, 2, 2);
    let told = told_everywhere(&report, &files);
    // This world has no things to take out, and this agent sees more than positions.
    for name in ["matters", "where", "what", "true", "saliency"] {
        assert!(told.contains(&name), "{name}: {told:?}");
    }
}
