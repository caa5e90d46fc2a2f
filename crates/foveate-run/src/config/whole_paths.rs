//! Files that the settings of a world name, by their whole paths.
//!
//! A path that leads nowhere stays as it is, so that the error shows what the user wrote; so does one whose whole path could not be
//! written in its place.

use std::path::Path;

use foveate_envs::shift::Plan;

/// Options of worlds that name a file or a folder.
const OPTIONS: [&str; 3] = ["data", "library", "path"];
/// Worlds whose name holds a file: `mjcf:robot.xml`.
const FILE_WORLD: &str = "mjcf:";
/// The parameter of variants that names a folder; it takes the rest of the text.
const FOLDER: &str = ":folder=";
/// The parameters of shifts that name a folder or a file.
const SHIFT_FILES: [&str; 2] = [FOLDER, ":file="];

/// The whole path of the file or folder that is at `path`.
fn whole(path: &str) -> Option<String> {
    let there = !path.is_empty() && Path::new(path).exists();
    let whole = there.then(|| std::path::absolute(path).ok()).flatten()?;
    Some(whole.to_str()?.to_owned())
}

/// The name of a world.
pub(crate) fn of_id(id: &str) -> String {
    let file = id.strip_prefix(FILE_WORLD).and_then(whole);
    file.map_or_else(|| id.to_owned(), |file| format!("{FILE_WORLD}{file}"))
}

/// The name of a world, of a file without its folders.
pub(crate) fn short_id(id: &str) -> String {
    let file = id.strip_prefix(FILE_WORLD).and_then(|file| Path::new(file).file_name()?.to_str());
    file.map_or_else(|| id.to_owned(), |file| format!("{FILE_WORLD}{file}"))
}

/// The value `path` of the option `name`.
pub(super) fn of_option(name: &str, path: &str) -> String {
    Some(path).filter(|_| OPTIONS.contains(&name)).and_then(whole).unwrap_or_else(|| path.to_owned())
}

/// A text of variants.
pub(super) fn of_variant(text: &str) -> String {
    let folder = text.split_once(FOLDER).filter(|(_, folder)| *folder != "none");
    let folder = folder.and_then(|(before, folder)| Some((before, whole(folder.trim())?)));
    folder.map_or_else(|| text.to_owned(), |(before, folder)| format!("{before}{FOLDER}{folder}"))
}

/// A text of shifts.
pub(super) fn of_shift(text: &str) -> String {
    let mut all = text.to_owned();
    for key in SHIFT_FILES {
        let mut from = 0;
        while let Some(at) = all[from..].find(key).map(|at| from + at + key.len()) {
            let end = all[at..].find([':', '+', '@']).map_or(all.len(), |end| at + end);
            // These characters end a value.
            let path = whole(all[at..end].trim()).filter(|path| !path.contains([':', '+', '@']));
            from = at;
            if let Some(path) = path.filter(|_| &all[at..end] != "auto") {
                all.replace_range(at..end, &path);
            }
        }
    }
    if all.parse::<Plan>().is_ok() { all } else { text.to_owned() }
}
