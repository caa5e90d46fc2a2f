//! The target `models`: damaged models of MuJoCo, each made into a world as a user's is, and run for a few steps.
//!
//! An input is the model and the files that it names, one after the other, each behind a line `=== NAME`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use foveate_core::{ImageBuf, Rng, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_film::encode_png;
use foveate_run::one_line;
use foveate_run::worlds;
use foveate_toy::needs::worlds_python;
use sha2::{Digest, Sha256};

use super::{Outcome, bytes, pick};

/// What begins the line with a file's name.
const MARK: &[u8] = b"\n=== ";
/// The name of the first file.
const MODEL: &str = "model.xml";
/// Seconds that a compilation may take.
const SECONDS: &str = "2";
/// The most memory that this process may take for an input, in KiB.
const MOST_MEMORY: u64 = 1 << 20;
/// Damages do not make texts longer than this.
const LONGEST: usize = 1 << 18;

/// Good models, each of many kinds of elements; none without MuJoCo.
pub(crate) fn corpus(_: &Path) -> Vec<Vec<u8>> {
    if worlds_python().is_none() {
        return vec![];
    }
    let picture = ImageBuf::from_rgb(12, 9, (0..3 * 12 * 9).map(|i| i as u8).collect()).expect("its size");
    let picture = encode_png(picture.as_image()).expect("a picture");
    let models: [&[(&str, &[u8])]; 4] = [
        &[(MODEL, include_bytes!("models/full.xml"))],
        &[
            (MODEL, include_bytes!("models/assets.xml")),
            ("mesh.stl", &stl()),
            ("mesh.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1\nf 1/1 3/3 2/2\nf 1/1 2/2 4/3\nf 1/1 4/3 3/2\nf 2/1 3/2 4/3\n"),
            ("picture.png", &picture),
        ],
        &[(MODEL, include_bytes!("models/soft.xml"))],
        &[
            (MODEL, include_bytes!("models/parts.xml")),
            ("common.xml", include_bytes!("models/common.xml")),
            ("leg.xml", include_bytes!("models/leg.xml")),
        ],
    ];
    models.iter().map(|files| join(files.iter().map(|&(name, bytes)| (name, bytes.to_vec())))).collect()
}

/// A tetrahedron.
fn stl() -> Vec<u8> {
    const FACES: [[f32; 9]; 4] = [
        [0., 0., 0., 0., 1., 0., 1., 0., 0.],
        [0., 0., 0., 1., 0., 0., 0., 0., 1.],
        [0., 0., 0., 0., 0., 1., 0., 1., 0.],
        [1., 0., 0., 0., 1., 0., 0., 0., 1.],
    ];
    let mut file = [vec![0; 80], (FACES.len() as u32).to_le_bytes().to_vec()].concat();
    for face in FACES {
        file.extend([0.0; 3].into_iter().chain(face).flat_map(f32::to_le_bytes));
        file.extend([0; 2]);
    }
    file
}

fn join<N: AsRef<str>>(files: impl Iterator<Item = (N, Vec<u8>)>) -> Vec<u8> {
    files.flat_map(|(name, bytes)| [MARK, name.as_ref().as_bytes(), b"\n", &bytes].concat()).collect()
}

/// The files of an input, each with its name; what has no plain name is left out.
fn split(input: &[u8]) -> Vec<(String, Vec<u8>)> {
    let starts: Vec<usize> = (0..input.len()).filter(|&i| input[i..].starts_with(MARK)).collect();
    let ends = starts.iter().skip(1).copied().chain([input.len()]);
    let file = |(start, end): (&usize, usize)| {
        let file = &input[start + MARK.len()..end];
        let line = file.iter().position(|&byte| byte == b'\n')?;
        let name = std::str::from_utf8(&file[..line]).ok()?;
        let plain = |letter: char| letter.is_ascii_lowercase() || letter == '.';
        let named = name.chars().all(plain) && name.starts_with(|letter: char| letter != '.');
        named.then(|| (name.to_owned(), file[line + 1..].to_vec()))
    };
    starts.iter().zip(ends).filter_map(file).collect()
}

/// Damages one of the files: XML by its elements, attributes and numbers, all others by their bytes.
pub(crate) fn damage(good: &[u8], all: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut files = split(good);
    let at = if rng.below(3) == 0 { rng.below(files.len() as u64) as usize } else { 0 };
    let (name, file) = &mut files[at];
    if Path::new(name.as_str()).extension().is_none_or(|ending| ending != "xml") || rng.below(12) == 0 {
        let others: Vec<Vec<u8>> = all.iter().flat_map(|input| split(input)).map(|(_, file)| file).collect();
        *file = bytes(file, &others, rng);
    } else {
        let other = split(pick::<Vec<u8>>(all, rng)).swap_remove(0).1;
        let other = String::from_utf8_lossy(&other).into_owned();
        let mut text = String::from_utf8_lossy(file).into_owned();
        for _ in 0..=(rng.below(5) / 3) {
            let changed = xml(&text, &other, rng);
            if changed.len() <= LONGEST {
                text = changed;
            }
        }
        *file = text.into_bytes();
    }
    join(files.into_iter())
}

/// What numbers, words and names are replaced with.
const VALUES: [&str; 40] = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "0.5",
    "-0.0",
    "1e-9",
    "1e-320",
    "1e10",
    "1e100",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "-inf",
    "100",
    "1000",
    "5000",
    "1000000",
    "2147483647",
    "-2147483648",
    "4294967296",
    "1e999",
    "",
    " ",
    "x",
    "true",
    "false",
    "auto",
    "0 0",
    "0 0 0",
    "0 0 0 0",
    "1 1 1 1 1 1 1",
    "world",
    "arm",
    "j",
    "/",
    "-3",
];
/// Elements that a good model lacks, each with the kind of element beside which it may stand.
const ELEMENTS: [[&str; 2]; 28] = [
    ["<option", r#"<include file="model.xml"/>"#],
    ["<option", r#"<include file="leg.xml"/>"#],
    ["<option", r#"<include file="/dev/zero"/>"#],
    ["<option", r#"<include file="."/>"#],
    ["<model", r#"<model name="leg" file="model.xml"/>"#],
    ["<model", r#"<model name="m" file="leg.xml"/>"#],
    ["<body", r#"<attach model="leg" body="thigh" prefix="x"/>"#],
    ["<body", r#"<attach model="leg" prefix=""/>"#],
    ["<compiler", r#"<compiler discardvisual="true" fusestatic="true" boundmass="1" strippath="true"/>"#],
    [
        "<compiler",
        r#"<compiler coordinate="local" eulerseq="zyz" usethread="false" alignfree="true" saveinertial="true"/>"#,
    ],
    ["<compiler", r#"<compiler inertiafromgeom="true" exactmeshinertia="true"/>"#],
    ["<compiler", r#"<compiler><lengthrange mode="all" inttotal="1e3" uselimit="true"/></compiler>"#],
    [
        "<option",
        r#"<option integrator="RK4" solver="PGS" iterations="10000" tolerance="0" noslip_iterations="100"/>"#,
    ],
    ["<option", r#"<option integrator="implicit" jacobian="sparse" timestep="1" impratio="1e10"/>"#],
    [
        "<option",
        r#"<option><flag contact="disable" constraint="disable" gravity="disable" island="enable" fwdinv="enable"/></option>"#,
    ],
    ["<option", r#"<size memory="700M"/>"#],
    ["<option", r#"<size memory="1K" njmax="3" nconmax="2" nstack="10"/>"#],
    [
        "<body",
        r#"<replicate count="2000" offset=".01 0 0"><body><freejoint/><geom size=".1"/></body></replicate>"#,
    ],
    [
        "<geom",
        r#"<composite type="cable" prefix="k" curve="cos(s) sin(s) 0" count="200 1 1" size="1"><geom type="capsule" size=".1"/></composite>"#,
    ],
    [
        "<body",
        r#"<flexcomp name="sheet" type="grid" count="40 40 1" spacing=".1 .1 .1" dim="2" mass="1" radius=".1"/>"#,
    ],
    [
        "<body",
        r#"<flexcomp name="ball" type="ellipsoid" count="8 8 8" spacing=".1 .1 .1" dim="3" mass="1" rigid="true"/>"#,
    ],
    [
        "<body",
        r#"<flexcomp name="disc" type="disc" count="9 9 1" spacing=".1 .1 .1" dim="2" mass="1" dof="radial"/>"#,
    ],
    ["<mesh", r#"<mesh name="ring" builtin="supertorus" params="32 16 .3 1 1"/>"#],
    ["<texture", r#"<texture name="large" type="cube" builtin="flat" width="2000" height="2000"/>"#],
    ["<hfield", r#"<hfield name="wide" nrow="2000" ncol="2000" size="1 1 1 1"/>"#],
    ["<jointpos", r#"<user name="numbers" dim="100000"/>"#],
    ["<numeric", r#"<numeric name="wide" size="1000000" data="1"/>"#],
    ["<key", r#"<key qpos="nan" qvel="1e308"/>"#],
];
/// What elements are put into, again and again.
const AROUND: [[&str; 2]; 8] = [
    ["<body>", "</body>"],
    ["<body><joint/><geom size=\".1\"/>", "</body>"],
    ["<frame pos=\"0 0 1\">", "</frame>"],
    ["<replicate count=\"3\" offset=\"1 0 0\">", "</replicate>"],
    ["<default class=\"x\">", "</default>"],
    ["<worldbody>", "</worldbody>"],
    ["<asset>", "</asset>"],
    ["<mujoco>", "</mujoco>"],
];

/// Damages a model's text once; `other` is another model's.
fn xml(text: &str, other: &str, rng: &mut Rng) -> String {
    let mut text = text.to_owned();
    let (elements, attributes) = (elements(&text), attributes(&text));
    if elements.is_empty() || attributes.is_empty() {
        return text;
    }
    let element = pick(&elements, rng).clone();
    let [name, value] = pick(&attributes, rng).clone();
    match rng.below(16) {
        0 => text.replace_range(element, ""),
        1 => {
            let times = *pick(&[1, 2, 3, 10, 300], rng);
            let again = text[element.clone()].repeat(times);
            text.insert_str(element.end, &again);
        }
        2 => {
            let added = pick(&alike(&text[element.clone()], other, self::elements(other), rng), rng).clone();
            text.insert_str(element.start, &other[added]);
        }
        3 => {
            let moved = text[element].to_owned();
            let to = pick(&alike(&moved, &text, elements, rng), rng).start;
            text.insert_str(to, &moved);
        }
        4 => {
            let [begin, end] = *pick(&AROUND, rng);
            let depth = *pick(&[1, 2, 4, 10, 400], rng);
            text.insert_str(element.end, &end.repeat(depth));
            text.insert_str(element.start, &begin.repeat(depth));
        }
        5 | 6 => {
            let [beside, added] = *pick(&ELEMENTS, rng);
            let at = pick(&alike(beside, &text, elements, rng), rng).start;
            text.insert_str(at, added);
        }
        7 => text.replace_range(name.start..=value.end, ""),
        8 => {
            // One that other elements of this kind have.
            let from = pick(&alike(&text[element.clone()], other, self::elements(other), rng), rng).clone();
            let own = self::attributes(&other[from.clone()]);
            if !own.is_empty() {
                let [name, value] = pick(&own, rng).clone();
                let added = format!(" {}", &other[from][name.start..=value.end]);
                let end = text[element.clone()].find([' ', '/', '>']).unwrap_or(0);
                text.insert_str(element.start + end, &added);
            }
        }
        9 => {
            let [other, _] = pick(&attributes, rng).clone();
            let renamed = text[other].to_owned();
            text.replace_range(name, &renamed);
        }
        10 => {
            let [_, other] = pick(&attributes, rng).clone();
            let same = text[other].to_owned();
            text.replace_range(value, &same);
        }
        11 => {
            let times = *pick(&[2, 3, 20, 1000], rng);
            let longer = format!("{} ", &text[value.clone()]).repeat(times);
            text.replace_range(value, &longer);
        }
        12 => text.replace_range(value, pick::<&str>(&VALUES, rng)),
        _ => {
            // One of the numbers of an attribute.
            let words: Vec<&str> = text[value.clone()].split(' ').collect();
            let at = rng.below(words.len() as u64) as usize;
            let start = value.start + words[..at].iter().map(|word| word.len() + 1).sum::<usize>();
            text.replace_range(start..start + words[at].len(), pick::<&str>(&VALUES, rng));
        }
    }
    text
}

/// Those of the elements `ranges` of `text` whose kind is that of `element`, mostly; all where there are none.
fn alike(element: &str, text: &str, ranges: Vec<Range<usize>>, rng: &mut Rng) -> Vec<Range<usize>> {
    fn kind(text: &str) -> &str {
        text.split([' ', '/', '>', '\n']).next().unwrap_or_default()
    }
    let same: Vec<_> =
        ranges.iter().filter(|range| kind(&text[(*range).clone()]) == kind(element)).cloned().collect();
    if same.is_empty() || rng.below(8) == 0 { ranges } else { same }
}

/// The elements of a text, each from its `<` to the end of its closing tag.
fn elements(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut open) = (vec![], vec![]);
    for (start, _) in text.match_indices('<') {
        let Some(length) = text[start..].find('>') else { break };
        let tag = &text[start..=start + length];
        let end = start + length + 1;
        if tag.starts_with("</") {
            found.extend(open.pop().map(|start| start..end));
        } else if tag.ends_with("/>") {
            found.push(start..end);
        } else {
            open.push(start);
        }
    }
    found
}

/// The attributes of a text: the ranges of the name and of the value, which a quote follows.
fn attributes(text: &str) -> Vec<[Range<usize>; 2]> {
    let attribute = |(at, _): (usize, &str)| {
        let begin = text[..at].rfind(|letter: char| !(letter.is_alphanumeric() || letter == '_'))? + 1;
        let value = at + 2;
        let end = value + text[value..].find('"')?;
        (begin < at).then_some([begin..at, value..end])
    };
    text.match_indices("=\"").filter_map(attribute).collect()
}

/// Makes the model into a world, runs a few steps, copies it and shows it.
pub(crate) fn run(folder: &Path, input: &[u8]) -> Outcome {
    let folder = folder.join("model");
    // What an earlier input left is of no effect.
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    }
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let files = split(input);
    for (name, file) in &files {
        fs::write(folder.join(name), file).map_err(|error| error.to_string())?;
    }
    // Peaks are counted from here on.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let done = simulate(&folder.join(MODEL), input);
    let peak = peak();
    assert!(peak <= MOST_MEMORY, "it takes {} MB", peak >> 10);
    if let Err(said) = &done {
        assert!(said.contains(MODEL), "the error does not name the file: {said:?}");
        assert!(one_line(said).chars().count() < 1200, "a long error: {said:?}");
    }
    done
}

fn simulate(model: &Path, input: &[u8]) -> Outcome {
    let Some(python) = worlds_python() else { return Err("no MuJoCo".into()) };
    let environment = python.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let contains = |part: &[u8]| input.windows(part.len()).any(|window| window == part);
    // What else depends on the input alone.
    let choice = Sha256::digest(input)[0];
    let mut options = BTreeMap::from([
        ("library", environment.display().to_string()),
        ("start_timeout", SECONDS.to_owned()),
        ("size", "24x16".to_owned()),
    ]);
    if contains(b"<key ") && choice & 1 > 0 {
        options.insert("keyframe", "0".to_owned());
    }
    if contains(b"name=\"angle\"") {
        options.insert("reward", "angle - 0.1*effort".to_owned());
    }
    let request = EnvRequest {
        id: format!("mjcf:{}", model.display()),
        picture: (contains(b"<camera ") && choice & 2 > 0).then(|| "both".to_owned()),
        options: options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..EnvRequest::default()
    };
    let mut world = worlds::make(request).map_err(|error| error.to_string())?;
    let mut rng = Seed::root(u64::from(choice)).rng();
    world.reset(Some(u64::from(choice)));
    if let Some(error) = world.reset_error() {
        return Err(error.to_string());
    }
    for _ in 0..4 {
        let action = world.spec().action.sample(&mut rng);
        world.step(action.as_action()).map_err(|error| error.to_string())?;
    }
    let mut copy = world.boxed_clone();
    let action = copy.spec().action.zero();
    copy.step(action.as_action()).map_err(|error| error.to_string())?;
    let _ = copy.state();
    if contains(b"<camera ") {
        copy.render(&mut ImageBuf::black(32, 24)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The largest memory of this process so far, in KiB; 0 where the system does not say.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}
