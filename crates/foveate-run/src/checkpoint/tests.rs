use std::fs;

use foveate_core::Tensor;
use tempfile::TempDir;

use super::*;

fn state(x: f64) -> StateDict {
    StateDict::from([
        ("a.mean".into(), Tensor::from(vec![x, -x])),
        ("a.count".into(), Tensor::from(vec![7_u64])),
        ("b".into(), Tensor::from(vec![1.5_f32])),
    ])
}

fn new_run(dir: &TempDir) -> RunFolder {
    RunFolder::create(&dir.path().join("runs"), "car", "seed = 1\n").expect("writable")
}

/// Creates a run with five checkpoints, one after each line of the log, and closes it.
fn five(dir: &TempDir) -> PathBuf {
    let mut folder = new_run(dir);
    for i in 0..5 {
        folder.log(&format!("{{\"line\":{i}}}")).expect("writable");
        folder.save(&state(f64::from(i))).expect("writable");
    }
    folder.path().to_path_buf()
}

#[test]
fn a_new_run_never_takes_the_folder_of_another() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let names: Vec<_> = (0..3)
        .map(|_| new_run(&dir).path().file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["car", "car-1", "car-2"]);
    let runs = dir.path().join("runs");
    let said = RunFolder::create_named(&runs, "car-1", "").expect_err("exists").to_string();
    assert!(said.contains("this run exists; go on with the task `resume "), "{said}");
    let long = "x".repeat(181);
    let names =
        ["", "a/b", "..", ".hidden", "-x", "a\\b", "a:b", "a*", "a\nb", "a.", " a", "con", "COM1.x", &long];
    for name in names {
        let said = RunFolder::create_named(&runs, name, "").expect_err(name).to_string();
        assert!(said.contains("choose a plain word"), "{said}");
    }
    RunFolder::create_named(&runs, "mine", "").expect("a free name");
    fs::write(dir.path().join("file"), "").expect("writable");
    let said = RunFolder::create(&dir.path().join("file"), "car", "").expect_err("a file").to_string();
    assert!(said.contains("cannot create"), "{said}");
}

#[test]
fn a_world_of_any_name_makes_a_folder_that_any_file_system_takes() {
    let long = "x".repeat(300);
    let turned = "\u{202e}é".repeat(200);
    for (id, name) in [
        ("car-racing", "car-racing"),
        ("gym:CartPole-v1", "gym-CartPole-v1"),
        ("gym:ALE/Pong-v5", "gym-ALE-Pong-v5"),
        ("gym:my_worlds.lake:Lake-v0", "gym-my_worlds.lake-Lake-v0"),
        ("../../etc", "etc"),
        (".", "run"),
        ("", "run"),
        ("nul", "run"),
        (&turned, "run"),
        (&long, &long[..180]),
    ] {
        assert_eq!(plain_name(id), name, "{id}");
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = RunFolder::create(dir.path(), "gym:ALE/Pong-v5", "").expect("writable");
    assert_eq!(folder.path(), dir.path().join("gym-ALE-Pong-v5"));
}

#[test]
fn the_newest_three_stay_and_the_newest_counts() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = five(&dir);
    let folder = RunFolder::open(&path).expect("a run");
    assert_eq!(list(folder.handle()).expect("listable").len(), 3);
    let Found { checkpoint, notes, log_fits } = folder.latest().expect("whole").expect("there is one");
    assert_eq!((checkpoint.state, checkpoint.lines, notes.len(), log_fits), (state(4.0), 5, 0, true));
    assert_eq!(checkpoint.version, crate::VERSION);
}

fn latest(folder: &RunFolder) -> Found {
    folder.latest().expect("whole").expect("there is one")
}

fn change_log(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = path.join("log.jsonl");
    let mut bytes = fs::read(&path).expect("readable");
    change(&mut bytes);
    fs::write(&path, bytes).expect("writable");
}

#[test]
fn the_log_is_cut_to_the_checkpoint() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = five(&dir);
    // A kill during a write of the log, or a page that was not written to disk.
    for rest in ["{\"line\":5}\n{\"line\":6}\n{\"li", "{\"line\":5}", "\n\n\n", "\0\0\0\0", "\u{fffd}", ""] {
        change_log(&path, |log| log.extend(rest.as_bytes()));
        let mut folder = RunFolder::open(&path).expect("a run");
        let found = latest(&folder);
        assert!(found.log_fits);
        let lines = folder.cut_log(&found.checkpoint).expect("readable");
        assert_eq!((lines.len(), lines[4].as_str()), (5, "{\"line\":4}"), "{rest:?}");
        folder.log("{\"line\":\"new\"}").expect("writable");
        let text = fs::read_to_string(path.join("log.jsonl")).expect("text");
        assert!(text.ends_with("{\"line\":4}\n{\"line\":\"new\"}\n"), "{text}");
        folder.cut_log(&found.checkpoint).expect("writable");
    }
}

#[test]
fn a_broken_log_falls_back_to_where_it_was_whole() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = five(&dir);
    let line = "{\"line\":0}\n".len();
    // The damaged line, and the checkpoint before it.
    for (broken, lines) in [(4, 4), (3, 3)] {
        change_log(&path, |log| log[broken * line + 3] ^= 1);
        let found = latest(&RunFolder::open(&path).expect("a run"));
        assert_eq!(
            (found.checkpoint.lines, found.log_fits, found.notes.len()),
            (lines, true, 5 - lines as usize)
        );
        assert!(found.notes[0].contains("log.jsonl is not the one"), "{:?}", found.notes);
    }
    // There is no checkpoint before the third.
    change_log(&path, |log| log[2 * line + 3] ^= 1);
    let mut folder = RunFolder::open(&path).expect("a run");
    let found = latest(&folder);
    assert_eq!((found.checkpoint.lines, found.log_fits, found.notes.len()), (5, false, 0));
    assert_eq!(folder.new_log().expect("writable"), "log-aside-1.jsonl");
    folder.log("{}").expect("writable");
    folder.save(&found.checkpoint.state).expect("writable");
    assert_eq!(fs::read_to_string(path.join("log.jsonl")).expect("text"), "{}\n");
    // The new checkpoint is used, although its log is shorter.
    let found = latest(&folder);
    assert_eq!((found.checkpoint.lines, found.log_fits), (1, true));
    // A log that is shorter than recorded, or missing.
    for length in [2, 0] {
        change_log(&path, |log| log.truncate(length));
        assert!(!latest(&folder).log_fits);
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = five(&dir);
    let newest = path.join("checkpoints/00000005.safetensors");
    let whole = fs::read(&newest).expect("readable");
    let folder = RunFolder::open(&path).expect("a run");
    let check = |bytes: &[u8], what: &dyn Fn() -> String| {
        fs::write(&newest, bytes).expect("writable");
        let found = latest(&folder);
        assert!(found.checkpoint.state == state(3.0) && found.checkpoint.lines == 4, "{}", what());
        assert!(
            found.notes.len() == 1 && found.notes[0].contains("00000005.safetensors"),
            "{:?}",
            found.notes
        );
    };
    for length in 0..whole.len() {
        check(&whole[..length], &|| format!("cut to {length} bytes"));
    }
    check(&[&whole[..], &[0]].concat(), &|| "a byte too many".into());
    let mut bytes = whole.clone();
    for at in 0..whole.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            check(&bytes, &|| format!("byte {at} bit {bit}"));
            bytes[at] ^= 1 << bit;
        }
    }
    fs::write(&newest, &whole).expect("writable");
    assert_eq!(latest(&folder).checkpoint.lines, 5);
}

#[test]
fn a_new_run_has_its_name_only_once_it_is_whole() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let runs = dir.path().join("runs");
    // The first was killed during creation; another process is creating the second.
    for (name, locked) in [(".car.1-0.foveate-tmp", false), (".car.2-0.foveate-tmp", true)] {
        fs::create_dir_all(runs.join(name)).expect("writable");
        let lock = Lock::take(&FolderHandle::open(&runs.join(name)).expect("there")).expect("free");
        if locked {
            std::mem::forget(lock);
        }
    }
    let folder = new_run(&dir);
    assert_eq!(folder.path(), runs.join("car"));
    let mut names: Vec<_> =
        fs::read_dir(&runs).expect("listable").map(|e| e.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, [".car.2-0.foveate-tmp", "car"]);
}

#[test]
fn folders_that_cannot_go_on_say_why() {
    type Damage = fn(&Path);
    let cases: [(Damage, &str); 5] = [
        (
            |p| fs::remove_dir_all(p).expect("ours"),
            "there is no such file or folder; give the folder of a run",
        ),
        (
            |p| fs::remove_file(p.join("config.toml")).expect("ours"),
            "config.toml is missing, so this is no run",
        ),
        (
            |p| fs::remove_dir_all(p.join("checkpoints")).expect("ours"),
            "its checkpoints are missing; train anew",
        ),
        (
            |p| {
                for n in 3..=5 {
                    fs::write(p.join(format!("checkpoints/{n:08}.safetensors")), "garbage").expect("ours");
                }
            },
            "no checkpoint can be read",
        ),
        (
            |p| {
                let foreign = TensorFile::default().to_bytes();
                for n in 3..=5 {
                    fs::write(p.join(format!("checkpoints/{n:08}.safetensors")), &foreign).expect("ours");
                }
            },
            "this is no checkpoint of this version",
        ),
    ];
    for (damage, why) in cases {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = five(&dir);
        damage(&path);
        let said =
            RunFolder::open(&path).and_then(|folder| folder.latest().map(|_| ())).expect_err(why).to_string();
        assert!(said.contains(why) && said.contains(';') && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let first = new_run(&dir);
    let said = RunFolder::open(first.path()).expect_err("locked").to_string();
    assert!(said.contains("has trained in this folder since"), "{said}");
    let path = first.path().to_path_buf();
    drop(first);
    assert_eq!(RunFolder::open(&path).expect("free again").latest().expect("nothing yet"), None);
}
