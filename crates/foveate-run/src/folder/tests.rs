use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let list = fs::read_dir(folder).expect("the test's own folder");
    let mut names: Vec<_> =
        list.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Creates an entry at `path` that must not be opened; `target` is the target of a link.
fn plant(what: &str, path: &Path, target: &Path) {
    match what {
        "a symbolic link" => symlink(target, path).expect("links exist here"),
        "a FIFO" => {
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo exists");
            assert!(made.success());
        }
        "a socket" => drop(std::os::unix::net::UnixListener::bind(path).expect("a short path")),
        other => panic!("{other}"),
    }
}

#[test]
fn nothing_but_files_and_folders_is_opened() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (precious, inside) = (dir.path().join("precious"), dir.path().join("run"));
    fs::create_dir(&inside).expect("writable");
    fs::write(&precious, "which must stay").expect("writable");
    let folder = FolderHandle::open(&inside).expect("ours");
    for what in ["a symbolic link", "a FIFO", "a socket"] {
        plant(what, &inside.join("x"), &precious);
        let errors = [
            folder.open_to_read("x").map(drop),
            folder.read("x", 100).map(drop),
            folder.open_to_append("x").map(drop),
            folder.write("x", "new"),
            folder.folder("x").map(drop),
            folder.make_folder("x").map(drop),
        ];
        for error in errors {
            let said = error.expect_err(what).to_string();
            let says =
                said.contains(&format!("run: x is {what}, which is never followed")) && said.contains("; ");
            assert!(says && said.lines().count() == 1, "{said}");
        }
        assert_eq!(names(&inside), ["x"], "{what}");
        // The link itself is removed, not its target.
        folder.remove("x").expect("there");
    }
    // A dangling link would create its target; a link to a folder would be entered.
    for target in ["none", ".", "/dev/null"] {
        symlink(target, inside.join("x")).expect("links exist here");
        folder.open_to_append("x").expect_err(target);
        folder.make_folder("x").expect_err(target);
        folder.remove("x").expect("there");
    }
    // A file that is changed in place must have no other name; a file that is replaced may.
    fs::hard_link(&precious, inside.join("x")).expect("the same disk");
    let said = folder.open_to_append("x").expect_err("two names").to_string();
    assert!(said.contains("hard link"), "{said}");
    folder.write("x", "new").expect("it takes the name only");
    assert_eq!(fs::read_to_string(&precious).expect("there"), "which must stay");
    assert_eq!(folder.read("x", 100).expect("a file"), Ok(b"new".to_vec()));
    // A link to the folder in the user's own path is followed.
    symlink(&inside, dir.path().join("link")).expect("links exist here");
    let linked = FolderHandle::open(&dir.path().join("link")).expect("a folder");
    assert_eq!(linked.read("x", 2).expect("a file"), Err(3));
}

#[test]
fn planted_hidden_names_are_neither_followed_nor_in_the_way() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let precious = dir.path().join("precious");
    fs::create_dir(&precious).expect("writable");
    fs::write(precious.join("lock"), "which must stay").expect("writable");
    let inside = dir.path().join("runs");
    fs::create_dir(&inside).expect("writable");
    let folder = FolderHandle::open(&inside).expect("ours");
    let next = hidden("x".as_ref()).to_string_lossy().into_owned();
    let count = next.strip_suffix(SUFFIX).and_then(|name| name.rsplit_once('-')?.1.parse::<u64>().ok());
    let count = count.expect("a number");
    // The next names are in use; other tests increase the counter, too.
    for i in 1..100 {
        let name = format!(".x.{}-{}{SUFFIX}", std::process::id(), count + i);
        symlink(&precious, inside.join(name)).expect("links exist here");
    }
    folder.write("x", "new").expect("another name is found");
    folder.make_hidden_folder("x").expect("another name is found");
    folder.sweep();
    // A folder with links in it: the links are removed, their targets stay.
    fs::create_dir(inside.join(".y.1-0.foveate-tmp")).expect("writable");
    symlink(&precious, inside.join(".y.1-0.foveate-tmp/link")).expect("links exist here");
    symlink("/", inside.join(".y.1-0.foveate-tmp/root")).expect("links exist here");
    folder.sweep();
    assert!(!inside.join(".y.1-0.foveate-tmp").exists());
    folder.clean().expect("listable");
    assert_eq!(names(&inside), ["x"]);
    assert_eq!(fs::read_to_string(precious.join("lock")).expect("there"), "which must stay");
}

#[test]
fn what_a_process_holds_is_not_swept() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = FolderHandle::open(dir.path()).expect("ours");
    let (file, name) = folder.create_hidden("a".as_ref()).expect("writable");
    let (made, hidden) = folder.make_hidden_folder("b").expect("writable");
    made.write("c", "x").expect("writable");
    let scratch = folder.scratch().expect("writable");
    assert_eq!(names(dir.path()).len(), 2, "what is for scratch has no name");
    folder.sweep();
    let mut both = [name, hidden].map(|name| name.to_string_lossy().into_owned());
    both.sort();
    assert_eq!(names(dir.path()), both);
    drop((file, made, scratch));
    folder.sweep();
    assert_eq!(names(dir.path()), [""; 0]);
}
