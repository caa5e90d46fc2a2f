//! Every invalid input gives a one-line error with a remedy, and no data is lost.

use crate::common::{Dir, check_fails, made_up, npz, weights};
use foveate::envs::registry::EnvRequest;
use foveate::run::weights::AgentFile;
use serde_json::json;

#[test]
fn broken_npz_files() {
    let dir = Dir::new();
    let good = npz(&made_up());
    let with = |index: usize, value: f32| {
        let mut params = made_up();
        params[index] = value;
        npz(&params)
    };
    let long = [made_up(), vec![0.0]].concat();
    dir.write("out.safetensors", "an old file that must stay");
    for (bytes, wants) in [
        (&good[..good.len() / 2], &["truncated", "fetch it again"][..]),
        (&good[..good.len() - 1], &["truncated", "fetch it again"]),
        (&[&good[..], b"more"].concat(), &["over-long: 4 bytes follow", "fetch it again"]),
        (b"", &["not an npz file", "numpy.savez"]),
        (b"hello", &["not an npz file"]),
        (&npz(&made_up()[1..]), &["3666 parameters", "3667", "lstm.weight_ih 1280", "--config"]),
        (&npz(&long), &["3668 parameters", "query.weight 588", "--config"]),
        (&with(600, f32::NAN), &["parameter 600 (in key.weight) is NaN", "must be finite"]),
        (&with(3666, f32::INFINITY), &["parameter 3666 (in output.weight) is inf"]),
    ] {
        dir.write("in.npz", bytes);
        let wants = [&["in.npz: "], wants].concat();
        let import = ["import", "in.npz", "--agent", "attention-agent"];
        check_fails(&dir, &[&import[..], &["--out", "out.safetensors"]].concat(), &wants);
        check_fails(&dir, &import, &wants);
    }
    dir.write("in.npz", with(600, f32::NAN));
    let registration = ["import", "in.npz", "--agent", "attention-agent", "--layout", "registration"];
    check_fails(&dir, &registration, &["600 (in key.weight)"]);
    check_fails(&dir, &["import", "none.npz"], &["cannot read none.npz", "check the path"]);
}

#[test]
fn impossible_agents() {
    let dir = Dir::new();
    dir.write("in.npz", npz(&made_up()));
    for (config, wants) in [
        ("patch = 97", &["a patch of 97 px does not fit", "96x96", "lower patch"][..]),
        ("top_k = 530", &["top_k = 530", "529 patches", "lower top_k"]),
        ("top_q = 3", &["unknown field `top_q`", "`top_k`"]),
        ("top_k = \"ten\"", &["top_k", "ten"]),
        ("top_k = ", &["config.toml line 1"]),
        ("image = [0, 96]", &["image width is 0"]),
    ] {
        dir.write("config.toml", config);
        check_fails(&dir, &["import", "in.npz", "--config", "config.toml"], wants);
    }
    check_fails(
        &dir,
        &["import", "in.npz", "--agent", "nobody"],
        &["no agent is called \"nobody\"", "attention-agent"],
    );
    check_fails(
        &dir,
        &["import", "in.npz", "--config", "none.toml"],
        &["cannot read none.toml", "check the path"],
    );
}

#[test]
fn unknown_worlds() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    dir.write("actions.jsonl", "[0, 0, 0]\n");
    dir.write("file", "");
    for (flags, wants) in [
        (&["--env", "moon"][..], &["no environment is called \"moon\"", "foveate list", "car-racing"][..]),
        (&["--picture", "sharp"], &["no picture \"sharp\"", "exact", "fast", "classic"]),
        (&["--variant", "baa"], &["no variant \"baa\"", "bar", "blob"]),
        (&["--variant", "bar:width=-1"], &["width", "from 0 to 500"]),
        (&["--variant", "bar:size=1"], &["\"size\"", "width"]),
        (&["--variant", "bar", "--variant", "bar"], &["bar", "keep one of them"]),
        (&["--variant", "video"], &["video", "folder"]),
        (&["--variant", "video:folder=none"], &["cannot read none", "check the path"]),
        (&["--variant", "video:folder=."], &["holds no *.png"]),
        (&["--option", "wheels=5"], &["no option \"wheels\"", "continuous"]),
        (&["--option", "continuous=maybe"], &["\"maybe\"", "true, false"]),
    ] {
        let replay = ["replay", "--actions", "actions.jsonl", "--out", "trace.jsonl"];
        check_fails(&dir, &[&replay, flags].concat(), wants);
        check_fails(&dir, &[&["eval", "w.safetensors", "--episodes", "1"], flags].concat(), wants);
        check_fails(&dir, &[&["watch", "w.safetensors", "--out", "a.gif"], flags].concat(), wants);
        check_fails(&dir, &[&["explain", "w.safetensors", "--out", "report"], flags].concat(), wants);
    }
}

#[test]
fn broken_weight_files() {
    let dir = Dir::new();
    let good = weights();
    let mut nan = good.clone();
    let last = nan.len() - 4;
    nan[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    let mut changed = good.clone();
    changed[last] ^= 1;
    let header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let foreign = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 4]].concat();
    std::fs::create_dir(dir.path("run")).expect("writable");
    for (bytes, wants) in [
        (&good[..good.len() - 1], &["truncated", "fetch it again"][..]),
        (&good[..100], &["header claims"]),
        (&[&good[..], b"x"].concat(), &["over-long"]),
        (&nan, &["parameter 3666 (in output.weight) is NaN"]),
        (&changed, &["not those that were written"]),
        (&foreign[..], &["no agent of ours", "foveate import"]),
        (&npz(&made_up()), &["not a safetensors file", "foveate import"]),
        (b"", &["not a safetensors file"]),
    ] {
        dir.write("w.safetensors", bytes);
        dir.write("run/best.safetensors", bytes);
        check_fails(
            &dir,
            &["eval", "w.safetensors", "--episodes", "1"],
            &[&["w.safetensors: "], wants].concat(),
        );
        check_fails(&dir, &["watch", "run", "--out", "a.png"], &[&["best.safetensors: "], wants].concat());
    }
    check_fails(
        &dir,
        &["eval", "--env", "moon"],
        &["no environment is called \"moon\"", "foveate list worlds"],
    );
    check_fails(&dir, &["eval", "nowhere"], &["cannot read nowhere", "check the path"]);
    std::fs::remove_file(dir.path("run/best.safetensors")).expect("it is there");
    check_fails(&dir, &["eval", "run"], &["neither best.safetensors nor last.safetensors"]);
}

#[test]
fn places_that_cannot_be_written() {
    let dir = Dir::new();
    dir.write("in.npz", npz(&made_up()));
    dir.write("w.safetensors", weights());
    dir.write("actions.jsonl", "[0, 0, 0]\n");
    std::fs::create_dir(dir.path("folder")).expect("writable");
    for (out, wants) in [
        ("none/out", &["cannot write none/out", "create the folder first"][..]),
        ("in.npz/out", &["cannot write in.npz/out", "part of the path is a file"]),
        ("folder", &["cannot write folder", "this is a folder"]),
        // The kernel's file system /proc accepts no new files, even from root.
        ("/proc/out", &["cannot write /proc/out", "folder"]),
    ] {
        if out.starts_with("/proc") && !std::path::Path::new("/proc").exists() {
            continue;
        }
        check_fails(&dir, &["import", "in.npz", "--agent", "attention-agent", "--out", out], wants);
        check_fails(&dir, &["replay", "--actions", "actions.jsonl", "--out", out], wants);
    }
    let film = ["watch", "w.safetensors", "--steps", "2", "--out"];
    check_fails(
        &dir,
        &[&film[..], &["none/a.gif"]].concat(),
        &["cannot write none/a.gif", "create the folder"],
    );
    check_fails(&dir, &[&film[..], &["a.bmp"]].concat(), &["a.bmp", ".gif"]);
    check_fails(&dir, &[&film[..], &["a.gif", "--at", "3"]].concat(), &[".png"]);
}

#[test]
fn reports_that_cannot_be_made() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    std::fs::create_dir(dir.path("mine")).expect("writable");
    dir.write("mine/things.txt", "which must stay");
    for (flags, wants) in [
        (&["--out", "mine"][..], &["mine is a folder with other things in it", "--out"][..]),
        (&["--out", "w.safetensors"], &["w.safetensors is a file", "--out"]),
        (&["--out", "w.safetensors/report"], &["cannot create w.safetensors", "choose another name"]),
        (&["--out", ".."], &["is no name for a folder"]),
        (&["--episodes", "0"], &["at least 1 episode", "raise"]),
        (&["--decisions", "0"], &["1 decision", "raise"]),
        (&["--max-steps", "0"], &["1 step", "raise"]),
        (&["--episodes", "1000000"], &["more than 5000", "lower --episodes"]),
        (&["--episodes", "18446744073709551615"], &["more than 5000"]),
    ] {
        check_fails(&dir, &[&["explain", "w.safetensors"], flags].concat(), wants);
    }
    check_fails(&dir, &["explain", "none.safetensors"], &["cannot read none.safetensors", "check the path"]);
    check_fails(&dir, &["explain", "--env", "moon"], &["no environment is called \"moon\""]);
    let done = dir.run(&["explain", "--seed", "-1"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
}

#[test]
fn recorded_actions_that_cannot_be_played() {
    let dir = Dir::new();
    let replay = ["replay", "--actions", "actions.jsonl", "--out", "trace.jsonl"];
    dir.write("trace.jsonl", "an old trace that must stay");
    check_fails(&dir, &replay, &["cannot read actions.jsonl", "check the path"]);
    for (actions, wants) in [
        (
            "[0, 0, 0]\n[0, 0]\n",
            &["actions.jsonl line 2", "2 numbers was given", "takes 3", "one action of this world per line"]
                [..],
        ),
        ("[0, 0, null]\n", &["actions.jsonl line 1", "list of numbers"]),
        ("3\n", &["actions.jsonl line 1", "list of numbers"]),
    ] {
        dir.write("actions.jsonl", actions);
        check_fails(&dir, &replay, wants);
    }
}

/// For any long or strange quoted text, the error is one readable line with its remedy, without control
/// characters.
#[test]
fn errors_have_a_length_that_can_be_read() {
    let dir = Dir::new();
    let long = "\u{1b}[31mé\u{202e}".repeat(5000);
    dir.write("long.toml", format!("[recipe]\nalgorithm = {}\n", json!(long)));
    dir.write("wide.toml", format!("seed = \"{}\"\n", "x".repeat(100_000)));
    let set = format!("env.picture={long}");
    let key = format!("{long}=1");
    for args in [
        &["train", "--config", "long.toml"][..],
        &["train", "--config", "wide.toml"],
        &["train", "--set", &set],
        &["train", "--set", &key],
        &["train", "--name", &long],
        &["eval", &long],
        &["eval", "--env", &long],
        &["watch", "--out", &long],
        &["stress", "--shifts", &long],
        // Errors of the command-line parser itself.
        &[&*long],
        &["eval", "--seeds", &long],
    ] {
        let done = dir.run(args);
        let what =
            format!("{:?}", args.iter().map(|a| a.chars().take(9).collect::<String>()).collect::<Vec<_>>());
        assert!(done.code == Some(1) || done.code == Some(2), "{what}: {:?}", done.code);
        let longest = done.stderr.lines().map(str::len).max().unwrap_or(0);
        assert!(done.stderr.len() < 20_000 && longest < 9000, "{what}: {} bytes", done.stderr.len());
        assert!(!done.stderr.contains(['\u{1b}', '\u{202e}']), "{what}: {}", done.stderr);
        assert!(done.stderr.starts_with("error: "), "{what}: {}", done.stderr);
        if done.code == Some(1) {
            assert_eq!(done.stderr.lines().count(), 1, "{what}");
        }
    }
}

#[test]
fn a_wrong_command_line_shows_the_usage() {
    let dir = Dir::new();
    for args in [
        &["drive"][..],
        &[],
        &["eval", "--each-variant", "--variant", "bar"],
        &["eval", "w", "--seeds", "5..1"],
        &["eval", "w", "--seeds", "0..3", "--seed", "1"],
        &["import", "in.npz", "--layout", "random"],
        &["watch", "w", "--out", "a.gif", "--size", "big"],
        &["replay", "--out", "x", "--actions", "y", "--option", "z"],
    ] {
        let done = dir.run(args);
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("--help") || done.stderr.contains("Usage"), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn stress_that_makes_no_sense() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    let file = AgentFile::new("attention-agent", &json!({}), made_up()).expect("the right count");
    for picture in ["fast", "exact"] {
        let world =
            EnvRequest { id: "car-racing".into(), picture: Some(picture.into()), ..EnvRequest::default() };
        dir.write(&format!("{picture}.safetensors"), file.clone().made_for(&world).to_bytes());
    }
    std::fs::create_dir(dir.path("run")).expect("writable");
    for (flags, wants) in [
        (&["--shifts", "fog"][..], &["no shift \"fog\"", "brightness, darkness"][..]),
        (&["--shifts", "noise:0"], &["severity \"0\"", "from 1 to 5"]),
        (&["--shifts", "noise:6"], &["severity \"6\""]),
        (&["--shifts", "noise:NaN"], &["severity \"NaN\""]),
        (&["--shifts", "blob:x=7"], &["x = \"7\"", "from 0 to 1"]),
        (&["--shifts", "noise@9-3"], &["@9-3 names no steps"]),
        (&["--shifts", "noise,,blur"], &["a shift is missing"]),
        (&["--shifts", "background-video:folder=none"], &["cannot read none", "check the path"]),
        (&["--shifts", "noise", "--severities", "0"], &["severities \"0\"", "1..5"]),
        (&["--shifts", "noise", "--severities", "5..6"], &["severities \"5..6\""]),
        (&["--shifts", "noise", "--severities", "NaN"], &["severities \"NaN\""]),
        (&["--at", "200"], &["`--at 200` switches shifts on", "--shifts"]),
        (&["--variants", "baa"], &["no variant \"baa\"", "blob"]),
        (&["--variants", "video"], &["video", "folder"]),
        (&["--variant", "bar"], &["bar", "keep one of them"]),
        (&["--episodes", "0"], &["0 episodes", "at least 1"]),
        (&["--episodes", "99999999999"], &["at most 1000000"]),
        (&["--env", "moon"], &["no environment is called \"moon\""]),
        (&["none.safetensors"], &["cannot read none.safetensors", "check the path"]),
        (&["run"], &["neither best.safetensors nor last.safetensors"]),
        (&["--sheet", "a.gif"], &["end the name in .png"]),
        (&["--sheet", "none/a.png", "--at", "2"], &["cannot write none/a.png", "create the folder first"]),
    ] {
        check_fails(
            &dir,
            &[&["stress", "w.safetensors", "--picture", "fast", "--max-steps", "2"], flags].concat(),
            wants,
        );
    }
    for command in [&["eval", "--episodes", "1"][..], &["watch", "--out", "a.gif"]] {
        check_fails(&dir, &[command, &["--shift", "fog"]].concat(), &["no shift \"fog\"", "brightness"]);
        check_fails(&dir, &[command, &["--shift", "noise:6"]].concat(), &["severity \"6\""]);
    }
    check_fails(
        &dir,
        &["stress", "fast.safetensors", "exact.safetensors"],
        &["fast drives in car-racing (picture fast)", "exact in car-racing (picture exact)", "--picture"],
    );
    check_fails(
        &dir,
        &["stress", "--out", "w.safetensors/x", "--max-steps", "2"],
        &["part of the path is a file"],
    );
}

/// `cartpole_pi`'s and `carracing_pi`'s sizes, with other numbers.
fn published_sizes(dir: &Dir) {
    for (name, params) in [("numbers", 913), ("patches", 7212)] {
        let params: Vec<f32> = (0..params).map(|i| (i as f32 * 0.37).sin() * 0.3).collect();
        dir.write(&format!("{name}.npz"), npz(&params));
        dir.ok(&["import", &format!("{name}.npz")]);
    }
}

#[test]
fn shifts_of_senses_that_cannot_be() {
    let dir = Dir::new();
    published_sizes(&dir);
    let eval = |weights: &str, shift: &str, wants: &[&str]| {
        let file = format!("{weights}.safetensors");
        let args = ["eval", &file, "--episodes", "1", "--max-steps", "3", "--workers", "1", "--shift", shift];
        check_fails(&dir, &args, wants);
    };
    for (shift, wants) in [
        ("missing:5:share=1", &["none of the 5 sensors", "lower the share"][..]),
        ("missing:5:share=-1", &["share = \"-1\"", "from 0 to 1"]),
        ("missing:5:share=nan", &["share = \"nan\"", "from 0 to 1"]),
        ("shuffle:5:order=0,0,1,2,3", &["no parameter \"order\"", "every, patch"]),
        ("shuffle:5:every=-1", &["every = \"-1\""]),
        ("noise-channels:5:std=inf", &["std = \"inf\""]),
        ("hue:3", &["numbers, not a picture; choose one that fits: sticky"]),
    ] {
        eval("numbers", shift, wants);
    }
    for (shift, wants) in [
        ("missing:5:share=1", &["none of the 256 sensors", "lower the share"][..]),
        ("shuffle:5:patch=7", &["patch = 7 does not divide a picture of 96x96", "choose one of"]),
        ("shuffle:5:patch=0", &["patch = \"0\"", "from 1 to"]),
        ("noise-channels:5", &["it goes with numbers", "grey pictures"]),
        ("background-image:5", &["file is missing", "background-image:5:file=sky.jpg"]),
    ] {
        eval("patches", shift, wants);
    }
}

#[test]
fn sensors_and_files_that_do_not_fit_together() {
    let dir = Dir::new();
    published_sizes(&dir);
    let good = std::fs::read(dir.path("numbers.safetensors")).expect("just written");
    let (shape, other) = (b"\"shape\":[32, 8]", b"\"shape\":[8, 32]");
    let at = good.windows(shape.len()).position(|bytes| bytes == shape).expect("queries are 32 by 8");
    let mut turned = good.clone();
    turned[at..at + shape.len()].copy_from_slice(other);
    dir.write("turned.safetensors", turned);
    let car = ["--env", "car-racing"];
    for (file, flags, wants) in [
        ("turned", &[][..], &["turned.safetensors", "[8, 32]", "[32, 8]"][..]),
        ("numbers", &car, &["1 to 65536 numbers", "a picture of 96x96"]),
        ("patches", &["--env", "cartpole-swingup-harder"], &["a stack of 4 grey pictures", "5 numbers"]),
        ("patches", &["--wrap", "grey+stack:3"], &["a stack of 4 grey pictures", "3 grey pictures"]),
        ("absent", &[], &["cannot read absent.safetensors"]),
        ("cartpole_pi", &[], &["cannot read cartpole_pi.safetensors"]),
    ] {
        let file = format!("{file}.safetensors");
        check_fails(&dir, &[&["eval", &file, "--episodes", "1", "--max-steps", "3"], flags].concat(), wants);
    }
    let mut nan = vec![0.1; 913];
    nan[700] = f32::NAN;
    dir.write("nan.npz", npz(&nan));
    check_fails(&dir, &["import", "nan.npz"], &["parameter 700 (in ", "is NaN"]);
    for (config, wants) in [
        ("senses = \"numbers\"\ncodes = 0", &["codes is 0", "from 1 to"][..]),
        ("senses = \"numbers\"\ncodes = 15", &["913 parameters were given", "912"]),
        ("senses = \"numbers\"\nmessage_dim = 99999999", &["message_dim is 99999999", "from 1 to"]),
        ("senses = \"picture\"\nimage = [0, 96]", &["image width is 0", "from 1 to"]),
        ("senses = \"smell\"", &["\"smell\"", "\"numbers\" or \"picture\""]),
    ] {
        dir.write("config.toml", config);
        let import = ["import", "numbers.npz", "--agent", "attention-neuron", "--config", "config.toml"];
        check_fails(&dir, &import, wants);
    }
}

#[test]
fn background_pictures_that_are_none() {
    let dir = Dir::new();
    published_sizes(&dir);
    // A PNG file of this size, whose pixels are cut off: sizes are checked before any pixel is read.
    let png = |width: u32, height: u32| {
        let chunk = |what: [&[u8]; 2]| {
            let length = (what[1].len() as u32).to_be_bytes();
            let checked = what.concat();
            [&length, &*checked, &crc32(&checked).to_be_bytes()].concat()
        };
        let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        [b"\x89PNG\r\n\x1a\n".to_vec(), chunk([b"IHDR", &head]), chunk([b"IDAT", &[0x78, 0x9c]])].concat()
    };
    // The head of a JPEG of 65,535 x 65,535 pixels.
    let jpeg =
        b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01\xff\xd9";
    for (name, bytes, wants) in [
        ("huge.png", png(60_000, 60_000), &["60000x60000 pixels, at most", "make the picture smaller"][..]),
        ("none.png", png(0, 0), &["give a good PNG file"]),
        ("cut.png", png(96, 96), &["give a good PNG file"]),
        ("text.png", b"hello".to_vec(), &["give a good PNG file"]),
        ("empty.jpg", vec![], &["give a good"]),
        ("huge.jpg", jpeg.to_vec(), &["65535", "give a good JPEG file"]),
    ] {
        dir.write(name, bytes);
        let shift = format!("background-image:5:file={name}");
        let args = ["eval", "patches.safetensors", "--episodes", "1", "--max-steps", "3", "--shift", &shift];
        check_fails(&dir, &args, &[&[name], wants].concat());
    }
    for (name, wants) in [("missing.png", "give a good"), (".", "give a good PNG or JPEG file")] {
        let shift = format!("background-image:5:file={name}");
        check_fails(&dir, &["eval", "patches.safetensors", "--episodes", "1", "--shift", &shift], &[wants]);
    }
}

/// The checksum of PNG's chunks.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}

/// A calibration has cases and seeds of its own.
#[test]
fn a_calibration_is_no_experiment_with_arms() {
    let dir = Dir::new();
    for flags in [&["--seeds", "3"][..], &["--plan"], &["--out", "x"], &["--only", "a"], &["--budget", "2h"]]
    {
        let command = [&["reproduce", "calibration"], flags].concat();
        check_fails(&dir, &command, &["calibration takes --episodes, --workers and --json", "--seeds"]);
    }
}
