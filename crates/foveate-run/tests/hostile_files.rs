//! Thousands of damaged files: each is rejected or read; none causes a panic or a large allocation.
//!
//! `fuzz/` holds targets for a coverage-guided fuzzer; this test is part of every test run.
//! `FOVEATE_FILES=20000` damages that many files of all kinds.

use std::fs;
use std::io::Write;

use flate2::Crc;
use flate2::write::DeflateEncoder;
use foveate_agents::registry;
use foveate_core::{ImageBuf, StateDict, Tensor};
use foveate_envs::registry::EnvRequest;
use foveate_envs::take_cover::textmap;
use foveate_envs::take_cover::variants::Variants;
use foveate_envs::take_cover::wad::Wad;
use foveate_film::encode_png;
use foveate_run::checkpoint::RunFolder;
use foveate_run::config::{self, TrainConfig};
use foveate_run::failure::Failure;
use foveate_run::replay::replay;
use foveate_run::tensors::TensorFile;
use foveate_run::weights::AgentFile;
use foveate_run::{compare, npz, pictures, worlds};
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// One modification of a file; positions are taken modulo the length of the file.
#[derive(Debug, Clone)]
enum Damage {
    Byte {
        at: usize,
        value: u8,
    },
    Bit {
        at: usize,
        bit: u8,
    },
    /// A little-endian number of 2, 4 or 8 bytes.
    Number {
        at: usize,
        width: usize,
        value: u64,
    },
    /// Characters with a meaning in a header.
    Text {
        at: usize,
        text: &'static str,
    },
    Cut {
        at: usize,
    },
    Remove {
        at: usize,
        length: usize,
    },
    Insert {
        at: usize,
        bytes: Vec<u8>,
    },
    /// A copy of a part of the file at another position.
    Copy {
        from: usize,
        to: usize,
        length: usize,
    },
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || any::<usize>();
    let numbers = prop::sample::select(vec![
        0,
        1,
        2,
        7,
        8,
        0x7f,
        0xff,
        0x100,
        1000,
        0xffff,
        0x1_0000,
        0x7fff_ffff,
        0xffff_fffe,
        0xffff_ffff,
        0x1_0000_0000,
        1 << 40,
        u64::MAX >> 1,
        u64::MAX,
    ]);
    let texts = prop::sample::select(vec![
        "0",
        "9",
        "99999999999999999999",
        "-1",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "'",
        "\"",
        "\\",
        "<f8",
        ">f4",
        "|O",
        "True",
        "F64",
        "U64",
        "F16",
        "null",
        "1e999",
        "\u{0}",
        "[[[[[[[[",
        "{\"a\":",
        "\"__metadata__\":",
        "PK\u{1}\u{2}",
        "PK\u{5}\u{6}",
    ]);
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, value)| Damage::Byte { at, value }),
        2 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Bit { at, bit }),
        4 => (at(), prop::sample::select(vec![2, 4, 8]), numbers)
            .prop_map(|(at, width, value)| Damage::Number { at, width, value }),
        3 => (at(), texts).prop_map(|(at, text)| Damage::Text { at, text }),
        1 => at().prop_map(|at| Damage::Cut { at }),
        1 => (at(), 1..64_usize).prop_map(|(at, length)| Damage::Remove { at, length }),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..64))
            .prop_map(|(at, bytes)| Damage::Insert { at, bytes }),
        1 => (at(), at(), 1..128_usize).prop_map(|(from, to, length)| Damage::Copy { from, to, length }),
    ]
}

fn apply(file: &mut Vec<u8>, damage: &Damage) {
    if file.is_empty() {
        return;
    }
    let n = file.len();
    let overwrite = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| {
        for (to, from) in file[at..].iter_mut().zip(bytes) {
            *to = *from;
        }
    };
    match damage {
        Damage::Byte { at, value } => file[at % n] = *value,
        Damage::Bit { at, bit } => file[at % n] ^= 1 << bit,
        Damage::Number { at, width, value } => overwrite(file, at % n, &value.to_le_bytes()[..*width]),
        Damage::Text { at, text } => overwrite(file, at % n, text.as_bytes()),
        Damage::Cut { at } => file.truncate(at % n),
        Damage::Remove { at, length } => drop(file.drain(at % n..(at % n + length).min(n))),
        Damage::Insert { at, bytes } => drop(file.splice(at % n..at % n, bytes.iter().copied())),
        Damage::Copy { from, to, length } => {
            let piece = file[from % n..(from % n + length).min(n)].to_vec();
            overwrite(file, to % n, &piece);
        }
    }
}

/// Positions in the headers, where damage has the most effect, for files with long data.
fn focused(damage: Damage, places: usize) -> Damage {
    match damage {
        Damage::Byte { at, value } => Damage::Byte { at: at % places, value },
        Damage::Bit { at, bit } => Damage::Bit { at: at % places, bit },
        Damage::Number { at, width, value } => Damage::Number { at: at % places, width, value },
        Damage::Text { at, text } => Damage::Text { at: at % places, text },
        other => other,
    }
}

/// Damages `good` in `cases` ways; `read` may reject the result but must neither panic nor use more memory
/// than `per_byte` times the file's length (and a little for error messages). Returns how many files were
/// still readable.
fn check(cases: u32, good: &[u8], per_byte: usize, read: impl Fn(&[u8]) -> bool) -> u32 {
    check_allowing(cases, good, |len| per_byte * len + (64 << 10), read)
}

/// The same with `allowed`, the memory limit for a file of this length.
fn check_allowing(
    cases: u32,
    good: &[u8],
    allowed: impl Fn(usize) -> usize,
    read: impl Fn(&[u8]) -> bool,
) -> u32 {
    assert!(read(good), "the undamaged file is good");
    let readable = std::cell::Cell::new(0);
    let strategy = (prop::collection::vec(damage(), 1..5), any::<bool>());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&strategy, |(damages, focus)| {
        let mut file = good.to_vec();
        for damage in damages {
            apply(&mut file, &if focus { focused(damage, 400) } else { damage });
        }
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let ok = read(&file);
        let taken = MEMORY.peak_usage().saturating_sub(before);
        let allowed = allowed(file.len());
        prop_assert!(taken <= allowed, "{taken} bytes for a file of {}, allowed {allowed}", file.len());
        readable.set(readable.get() + u32::from(ok));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    readable.get()
}

fn npy(dtype: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

/// A zip archive as NumPy writes it: the first member stored, the others deflated.
fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut directory) = (vec![], vec![]);
    for (i, (name, raw)) in members.iter().enumerate() {
        let mut encoder = DeflateEncoder::new(vec![], flate2::Compression::default());
        encoder.write_all(raw).expect("memory takes bytes");
        let deflated = encoder.finish().expect("memory takes bytes");
        let (method, data) = if i == 0 { (0_u8, raw) } else { (8, &deflated) };
        let mut crc = Crc::new();
        crc.update(raw);
        let mut common = vec![20, 0, 0, 0, method, 0, 0, 0, 0, 0];
        for number in [crc.sum(), data.len() as u32, raw.len() as u32] {
            common.extend(number.to_le_bytes());
        }
        common.extend([name.len() as u8, 0, 0, 0]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(data);
    }
    let start = out.len() as u32;
    out.extend(&directory);
    let count = members.len() as u8;
    out.extend(b"PK\x05\x06\x00\x00\x00\x00");
    out.extend([count, 0, count, 0]);
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// One test, so that nothing else allocates at the same time.
#[test]
fn damaged_files_are_refused_in_peace() {
    let _measuring = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let small =
        archive(&[("a.npy", npy("<f4", "(3,)", &[1; 12])), ("b.npy", npy("<i8", "(2, 1)", &[7; 16]))]);
    let zeros = archive(&[
        ("a.npy", npy("|u1", "(2,)", &[1; 2])),
        ("b.npy", npy("|u1", "(60, 1000)", &vec![0; 60_000])),
    ]);
    // Deflate unpacks 1 byte to at most 1032; the bytes are then copied once into their type.
    let read_npz = |bytes: &[u8]| npz::parse(bytes).is_ok();
    let unharmed = check(6000, &small, 2 * 1032, read_npz) + check(3000, &zeros, 2 * 1032, read_npz);
    // Almost any damage is detected; a file that stays readable was damaged in an ignored field, such as the
    // time of a member.
    eprintln!("{unharmed} of 9000 damaged npz files were still read");
    assert!(unharmed < 1000);

    let config =
        json!({ "image": [12, 10], "patch": 3, "stride": 4, "query_dim": 1, "top_k": 1, "hidden": 1 });
    let count = foveate_agents::registry::tensors("attention-agent", &config)
        .expect("a good configuration")
        .iter()
        .map(foveate_core::TensorShape::len)
        .sum();
    let agent = AgentFile::new("attention-agent", &config, vec![0.25; count]).expect("the right count");
    let read_weights =
        |bytes: &[u8]| TensorFile::from_bytes(bytes).is_ok_and(|f| AgentFile::from_tensors(f).is_ok());
    let bytes = agent.note("source", "a test").to_bytes();
    let unharmed = check(9000, &bytes, 64, read_weights);
    eprintln!("{unharmed} of 9000 damaged weight files were still read");
    assert!(unharmed < 1000);
}

/// Number of damaged files of each kind: `FOVEATE_FILES` in total, by default a few thousand.
fn files_of_each_kind() -> u32 {
    let all = std::env::var("FOVEATE_FILES").ok().and_then(|n| n.parse::<u32>().ok()).unwrap_or(3000);
    all.div_ceil(10)
}

/// As [`check`], for complete readers, which may use `allowed` bytes for any file.
fn check_within(name: &str, good: &[u8], allowed: usize, read: impl Fn(&[u8]) -> bool) {
    let cases = files_of_each_kind();
    let unharmed = check_allowing(cases, good, |_| allowed, read);
    eprintln!("{name}: {unharmed} of {cases} damaged files were still read");
}

const MB: usize = 1 << 20;

/// Tests run in parallel and measure memory: only one may measure at a time.
static MEASURING: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn every_reader_survives_damaged_files() {
    let _measuring = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| dir.path().join(name);
    let put = |name: &str, bytes: &[u8]| fs::write(at(name), bytes).expect("writable");

    // A configuration, alone and on top of a preset, and the world and agent built from it.
    let preset = TrainConfig::load("laptop", None, &[""; 0]).expect("a preset").to_toml();
    check_within("configuration", preset.as_bytes(), 256 * MB, |bytes| {
        put("config.toml", bytes);
        let whole = TrainConfig::read(&at("config.toml"));
        let on_top = TrainConfig::load("laptop", Some(&at("config.toml")), &[""; 0]);
        if let Ok(config) = &whole {
            let _ = registry::full_config(&config.agent.name, &config.agent.settings().unwrap_or_default());
        }
        whole.is_ok() && on_top.is_ok()
    });
    check_within("settings of an agent", b"image = [12, 10]\npatch = 3\ntop_k = 2\n", MB, |bytes| {
        put("agent.toml", bytes);
        config::agent_settings(&at("agent.toml")).is_ok()
    });

    // A run folder: its checkpoint, its log, and its comparison table.
    let runs = at("runs");
    let mut run = RunFolder::create_named(&runs, "a", &preset).expect("writable");
    for generation in 1..4 {
        let line = json!({ "event": "generation", "generation": generation, "steps": 40 * generation });
        run.log(&line.to_string()).expect("writable");
    }
    run.save(&StateDict::from([("mean".into(), Tensor::from(vec![0.5; 40]))])).expect("writable");
    drop(run);
    let folder = runs.join("a");
    let checkpoint =
        fs::read_dir(folder.join("checkpoints")).expect("there").next().expect("one").expect("one");
    let good = fs::read(checkpoint.path()).expect("readable");
    check_within("checkpoint", &good, 8 * MB, |bytes| {
        fs::write(checkpoint.path(), bytes).expect("writable");
        let run = RunFolder::open(&folder).expect("the folder itself is whole");
        run.latest().is_ok_and(|found| found.is_some_and(|found| found.log_fits))
    });
    fs::write(checkpoint.path(), &good).expect("writable");
    let log = fs::read(folder.join("log.jsonl")).expect("readable");
    check_within("log", &log, 8 * MB, |bytes| {
        fs::write(folder.join("log.jsonl"), bytes).expect("writable");
        let _ = compare::read(std::slice::from_ref(&folder)).map(|table| table.to_markdown());
        let mut run = RunFolder::open(&folder).expect("the folder itself is whole");
        let Ok(Some(found)) = run.latest() else { return false };
        run.cut_log(&found.checkpoint).is_ok() && found.log_fits
    });

    // Recorded actions.
    let options = [("max_steps".to_owned(), "4".to_owned())].into();
    let world = EnvRequest {
        id: "car-racing".into(),
        picture: Some("fast".into()),
        options,
        ..EnvRequest::default()
    };
    let mut env = worlds::make(world).expect("a native world");
    check_within("actions", b"[0.1, 0, 0]\n[-0.5, 1, 0]\n[0, 0, 0.25]\n", 16 * MB, |bytes| {
        replay(&mut *env.boxed_clone(), 1, "actions", &mut { bytes }, &mut std::io::sink()).is_ok()
    });
    env.reset(Some(1));

    // Pictures.
    let picture = ImageBuf::black(9, 7);
    let png = encode_png(picture.as_image()).expect("a picture");
    fs::create_dir(at("pictures")).expect("writable");
    check_within("picture", &png, 300 * MB, |bytes| {
        put("pictures/a.png", bytes);
        pictures::load_film(&at("pictures")).is_ok()
    });

    // Doom's files, which the game's variants modify.
    let map = "namespace = \"zdoom\";\nthing { x = 1.0; y = 2.0; type = 1; }\nsector { texturefloor = \"FLOOR0_1\"; \
               textureceiling = \"CEIL1_1\"; heightceiling = 96; }\nsidedef { sector = 0; texturemiddle = \"BRICK\"; }\n";
    check_within("TEXTMAP", map.as_bytes(), MB, |bytes| {
        textmap::set_sector_field(bytes, "heightceiling", &textmap::Field::Number(8)).is_ok()
    });
    let wad = wad(&[("MAP01", b""), ("TEXTMAP", map.as_bytes()), ("ENDMAP", b"")]);
    let variants = Variants::parse_all(&["higher-walls"]).expect("there is one");
    check_within("WAD", &wad, MB, |bytes| {
        let read = Wad::read(bytes);
        let _ = variants.apply(bytes);
        read.is_ok_and(|wad| wad.write().is_ok())
    });

    // A failed rollout.
    let failure = json!({
        "format": "foveate-failure-1", "version": "0.1.0", "what": "it broke", "generation": 3, "genome": 1, "episode": 0,
        "env_seed": 7, "step": 2, "max_steps": 50, "patience": 20, "weights": "0000803f".repeat(20),
        "env": { "id": "car-racing", "picture": "fast", "variants": [] },
        "agent": { "name": "attention-agent", "config": { "top_k": 5 } }, "actions": [[0.0, 1.0, 0.0], [0.0, 0.5, 0.0]],
    });
    check_within("failure", failure.to_string().as_bytes(), 16 * MB, |bytes| {
        put("failure.json", bytes);
        Failure::read(&at("failure.json")).is_ok()
    });
}

/// A WAD file with these lumps, as Doom uses them.
fn wad(lumps: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut body, mut directory) = (vec![], vec![]);
    for (name, content) in lumps {
        let number = |n: usize| (n as u32).to_le_bytes();
        directory.extend(number(12 + body.len()));
        directory.extend(number(content.len()));
        let mut padded = [0; 8];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        directory.extend(padded);
        body.extend_from_slice(content);
    }
    let header = [&b"PWAD"[..], &(lumps.len() as u32).to_le_bytes(), &(12 + body.len() as u32).to_le_bytes()];
    [&header.concat()[..], &body, &directory].concat()
}
