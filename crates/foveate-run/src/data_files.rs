//! The files of a world that is made of data, such as a data set: plain or compressed with gzip.
//!
//! Files from outside are hostile: sizes are bounded before and while anything is unpacked.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use foveate_envs::registry::WantedFiles;

use crate::error::RunError;
use crate::input;

/// Reads all files, unpacked, in the order of [`WantedFiles::names`].
///
/// # Errors
/// When a file is missing, is no regular file, is larger than [`WantedFiles::most_bytes`], or does not unpack.
pub(crate) fn load(wanted: &WantedFiles) -> Result<Arc<Vec<Vec<u8>>>, RunError> {
    let folder = Path::new(&wanted.folder);
    let files = wanted.names.iter().map(|name| load_one(wanted, folder, name));
    files.collect::<Result<_, _>>().map(Arc::new)
}

fn load_one(wanted: &WantedFiles, folder: &Path, name: &str) -> Result<Vec<u8>, RunError> {
    let [plain, packed] = [name.to_owned(), format!("{name}.gz")].map(|name| folder.join(name));
    if exists(&plain) {
        return read(&plain, wanted.most_bytes);
    }
    if !exists(&packed) {
        let why = format!(
            "{} holds neither {name} nor {name}.gz; {}, and the option data names the folder",
            folder.display(),
            wanted.about
        );
        return Err(RunError::BadRequest { why });
    }
    let bytes = read(&packed, wanted.most_bytes)?;
    unpack(&bytes, wanted.most_bytes).map_err(|why| RunError::DataFile { path: packed, why })
}

fn exists(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

/// The bytes of a file.
fn read(path: &Path, most: usize) -> Result<Vec<u8>, RunError> {
    let of = |why: String| RunError::DataFile { path: PathBuf::from(path), why };
    let size = |_| of(format!("more than {most} bytes, which no file of this data set has"));
    input::read(path, most as u64)?.map_err(size)
}

/// Unpacks one gzip stream; no more than `most` bytes are made of it.
fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut decoder = GzDecoder::new(packed);
    let mut bytes = vec![];
    (&mut decoder)
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("it does not unpack: {error}; fetch it again"))?;
    if bytes.len() > most {
        return Err(format!("it unpacks to more than {most} bytes, which no file of this data set has"));
    }
    match decoder.into_inner().len() {
        0 => Ok(bytes),
        extra => Err(format!("{extra} bytes follow the end of the packed data; fetch it again")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(vec![], Compression::best());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn wanted(folder: &Path) -> WantedFiles {
        WantedFiles {
            folder: folder.display().to_string(),
            names: &["a", "b"],
            most_bytes: 1000,
            about: "they are two files",
        }
    }

    #[test]
    fn plain_and_packed_files_are_read_alike() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a"), b"first").expect("a file");
        fs::write(folder.path().join("b.gz"), packed(b"second")).expect("a file");
        assert_eq!(**load(&wanted(folder.path())).expect("good"), [b"first".to_vec(), b"second".to_vec()]);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let bomb = packed(&vec![0; 100_000]);
        assert!(bomb.len() < 1000, "the packed file itself is not too large");
        let good = packed(b"second");
        let mut longer = good.clone();
        longer.push(0);
        let mut wrong = good.clone();
        let last = wrong.len() - 8;
        wrong[last] ^= 1;
        let cases: [(&str, Vec<u8>, &str); 7] = [
            ("b.gz", bomb, "b.gz: it unpacks to more than 1000 bytes"),
            ("b.gz", good[..good.len() - 3].to_vec(), "b.gz: it does not unpack"),
            ("b.gz", wrong, "b.gz: it does not unpack"),
            ("b.gz", longer, "b.gz: 1 bytes follow the end"),
            ("b.gz", b"no gzip".to_vec(), "b.gz: it does not unpack"),
            ("b", vec![1; 1001], "b: more than 1000 bytes"),
            ("c", vec![], "holds neither b nor b.gz; they are two files"),
        ];
        for (name, bytes, want) in cases {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join("a"), b"first").expect("a file");
            fs::write(folder.path().join(name), bytes).expect("a file");
            let said = load(&wanted(folder.path())).expect_err(want).to_string();
            assert!(said.contains(want) && said.lines().count() == 1, "{said}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("a")).expect("a folder");
        let said = load(&wanted(folder.path())).expect_err("a folder").to_string();
        assert!(said.contains("this is a folder: name a file in it"), "{said}");
    }
}
