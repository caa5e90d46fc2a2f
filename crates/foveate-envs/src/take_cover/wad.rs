//! Reads and writes WAD files, Doom's container of named lumps: a header, the lumps, a directory.
//!
//! Works on bytes in memory. Input is untrusted: nothing is copied before its size is known to lie in the
//! file, and all lumps together may not be larger than the file.
//!
//! The layout is that of Doom's files: `IWAD` or `PWAD`, number of lumps and position of the directory
//! (`i32`, little-endian); for each lump its position, its size and its name of eight bytes, padded with
//! zeros.

/// Size of the header in bytes.
const HEADER: usize = 12;
/// Size of a directory entry in bytes.
const LINE: usize = 16;

/// Errors in a WAD file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WadError {
    /// It is too short.
    #[error("{bytes} bytes are no WAD, its header alone is {HEADER}; is it the right file?")]
    TooShort {
        /// Its length.
        bytes: usize,
    },
    /// It does not begin with IWAD or PWAD.
    #[error("it begins with {found:?} instead of IWAD or PWAD; is it the right file?")]
    Magic {
        /// The first four bytes.
        found: String,
    },
    /// Its directory lies outside the file.
    #[error(
        "its directory of {lumps} lumps at byte {at} does not lie within its {bytes} bytes; the file is broken"
    )]
    Directory {
        /// Number of lumps in the header.
        lumps: i64,
        /// Position of the directory in the header.
        at: i64,
        /// Length of the file.
        bytes: usize,
    },
    /// A lump lies outside the file.
    #[error(
        "lump {index} ({name}), {size} bytes at byte {at}, does not lie within its {bytes} bytes; the file is broken"
    )]
    Lump {
        /// Its number.
        index: usize,
        /// Its name.
        name: String,
        /// Where it begins.
        at: i64,
        /// Its size.
        size: i64,
        /// Length of the file.
        bytes: usize,
    },
    /// Its lumps overlap.
    #[error("its lumps up to {index} are {sum} bytes, the file has {bytes}; the file is broken")]
    TooMuch {
        /// The lump at which their total size exceeded the file's.
        index: usize,
        /// Total size of all lumps up to there.
        sum: usize,
        /// Length of the file.
        bytes: usize,
    },
    /// It is too large to be written.
    #[error("{bytes} bytes are more than a WAD can hold, 2147483647")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The number of lumps with this name is not one.
    #[error("it has {count} lumps called {name}, one is due; is it a map in text?")]
    Count {
        /// The name.
        name: String,
        /// Their number.
        count: usize,
    },
    /// The map in it cannot be changed.
    #[error("its map: {0}")]
    Map(#[from] super::textmap::MapError),
}

/// The lumps of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wad {
    magic: [u8; 4],
    /// Name and content, in the order of the directory.
    lumps: Vec<([u8; 8], Vec<u8>)>,
}

impl Wad {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is not a WAD, or when its directory or a lump lies outside the file.
    pub fn read(file: &[u8]) -> Result<Self, WadError> {
        let bytes = file.len();
        let Some((head, _)) = file.split_first_chunk::<HEADER>() else {
            return Err(WadError::TooShort { bytes });
        };
        let [a, b, c, d, rest @ ..] = *head;
        let magic = [a, b, c, d];
        if &magic != b"IWAD" && &magic != b"PWAD" {
            return Err(WadError::Magic { found: magic.escape_ascii().to_string() });
        }
        let (lumps, at) = (number(&rest, 0), number(&rest, 4));
        let directory = usize::try_from(lumps)
            .ok()
            .and_then(|lumps| part(file, at, i64::try_from(lumps.checked_mul(LINE)?).ok()?))
            .ok_or(WadError::Directory { lumps, at, bytes })?;
        let mut found = Vec::with_capacity(directory.len() / LINE);
        let mut sum = 0;
        for (index, line) in directory.as_chunks::<LINE>().0.iter().enumerate() {
            let (at, size) = (number(line, 0), number(line, 4));
            let name = *line.last_chunk::<8>().expect("a line is longer");
            // Marker lumps have no content, so their position is ignored.
            let data = if size == 0 { Some(&[][..]) } else { part(file, at, size) };
            let data = data.ok_or_else(|| WadError::Lump { index, name: readable(name), at, size, bytes })?;
            sum += data.len();
            if sum > bytes {
                return Err(WadError::TooMuch { index, sum, bytes });
            }
            found.push((name, data.to_vec()));
        }
        Ok(Wad { magic, lumps: found })
    }

    /// Writes the lumps one after the other, then the directory. A file with this layout (as map files have)
    /// is reproduced byte for byte.
    ///
    /// # Errors
    /// When a size or position does not fit the format's 32-bit numbers.
    pub fn write(&self) -> Result<Vec<u8>, WadError> {
        let content: usize = self.lumps.iter().map(|(_, data)| data.len()).sum();
        let bytes = HEADER + content + self.lumps.len() * LINE;
        if i32::try_from(bytes).is_err() {
            return Err(WadError::TooLarge { bytes });
        }
        let mut file = Vec::with_capacity(bytes);
        let mut directory = Vec::with_capacity(self.lumps.len() * LINE);
        let push = |into: &mut Vec<u8>, number: usize| into.extend_from_slice(&(number as u32).to_le_bytes());
        file.extend_from_slice(&self.magic);
        push(&mut file, self.lumps.len());
        push(&mut file, HEADER + content);
        for (name, data) in &self.lumps {
            push(&mut directory, file.len());
            push(&mut directory, data.len());
            directory.extend_from_slice(name);
            file.extend_from_slice(data);
        }
        file.append(&mut directory);
        Ok(file)
    }

    /// The names of the lumps, in order.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.lumps.iter().map(|(name, _)| readable(*name))
    }

    /// The content of the one lump called `name`.
    ///
    /// # Errors
    /// When no lump or more than one has this name.
    pub fn find_mut(&mut self, name: &str) -> Result<&mut Vec<u8>, WadError> {
        let is = |lump: &[u8; 8]| lump.iter().take_while(|b| **b != 0).eq(name.as_bytes());
        let count = self.lumps.iter().filter(|(lump, _)| is(lump)).count();
        if count != 1 {
            return Err(WadError::Count { name: name.into(), count });
        }
        let found = self.lumps.iter_mut().find(|(lump, _)| is(lump));
        Ok(found.map(|(_, data)| data).expect("one was counted"))
    }
}

/// The 32-bit integer at byte `at`.
fn number(bytes: &[u8], at: usize) -> i64 {
    let four = bytes[at..].first_chunk::<4>().expect("callers know the length");
    i32::from_le_bytes(*four).into()
}

/// `size` bytes from `at` on, if they lie in the file.
fn part(file: &[u8], at: i64, size: i64) -> Option<&[u8]> {
    let (at, size) = (usize::try_from(at).ok()?, usize::try_from(size).ok()?);
    file.get(at..at.checked_add(size)?)
}

fn readable(name: [u8; 8]) -> String {
    let name: Vec<u8> = name.into_iter().take_while(|b| *b != 0).collect();
    name.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file of three lumps: a marker, five bytes, and an empty one.
    fn sample() -> Vec<u8> {
        let lump = |name: &[u8; 8], data: &[u8]| (*name, data.to_vec());
        let lumps = vec![lump(b"MAP01\0\0\0", b""), lump(b"TEXTMAP\0", b"a = 1"), lump(b"ENDMAP\0\0", b"")];
        Wad { magic: *b"PWAD", lumps }.write().expect("small")
    }

    /// `file` with a four-byte number replaced.
    fn with(mut file: Vec<u8>, at: usize, number: i32) -> Vec<u8> {
        file[at..at + 4].copy_from_slice(&number.to_le_bytes());
        file
    }

    #[test]
    fn what_is_read_is_written_to_the_byte() {
        let file = sample();
        assert_eq!(file.len(), HEADER + 5 + 3 * LINE);
        let mut wad = Wad::read(&file).expect("a good file");
        assert_eq!(wad.write().expect("small"), file);
        assert_eq!(wad.names().collect::<Vec<_>>(), ["MAP01", "TEXTMAP", "ENDMAP"]);
        assert_eq!(wad.find_mut("TEXTMAP").expect("it is there"), b"a = 1");
        wad.find_mut("TEXTMAP").expect("it is there").extend_from_slice(b"23");
        let longer = Wad::read(&wad.write().expect("small")).expect("a good file");
        assert_eq!(longer, wad);
        assert_eq!(wad.find_mut("MAP"), Err(WadError::Count { name: "MAP".into(), count: 0 }));
    }

    #[test]
    fn every_lie_has_its_error() {
        let (directory, bytes) = (HEADER + 5, sample().len());
        let check = |file: &[u8], words: &str| {
            let said = Wad::read(file).expect_err(words).to_string();
            assert!(said.contains(words), "{said}");
        };
        check(&[], "0 bytes are no WAD");
        check(b"PWAD\0\0\0\0\0\0\0", "11 bytes are no WAD");
        check(b"ZWAD\0\0\0\0\0\0\0\0", "begins with \"ZWAD\" instead of IWAD or PWAD");
        check(&with(sample(), 4, -1), "directory of -1 lumps");
        check(&with(sample(), 4, 4), &format!("directory of 4 lumps at byte {directory}"));
        check(&with(sample(), 4, i32::MAX), &format!("directory of {} lumps", i32::MAX));
        check(&with(sample(), 8, -1), "at byte -1 does not");
        check(&with(sample(), 8, bytes as i32), &format!("at byte {bytes} does not lie within its {bytes}"));
        check(&with(sample(), 8, i32::MAX), "does not lie within");
        let line = directory + LINE;
        check(&with(sample(), line, -5), "lump 1 (TEXTMAP), 5 bytes at byte -5");
        check(&with(sample(), line + 4, -5), "lump 1 (TEXTMAP), -5 bytes");
        check(&with(sample(), line + 4, i32::MAX), "lump 1 (TEXTMAP), 2147483647 bytes");
        // A marker may have any position.
        assert!(Wad::read(&with(sample(), directory, i32::MAX)).is_ok());
        // Lumps that each span the whole file would together be larger than the file.
        let all = (0..3).fold(sample(), |file, i| {
            let line = directory + i * LINE;
            with(with(file, line, 0), line + 4, bytes as i32)
        });
        check(&all, "its lumps up to 1 are");
        let mut twice = Wad::read(&sample()).expect("good");
        twice.lumps.push((*b"TEXTMAP\0", vec![]));
        assert_eq!(twice.find_mut("TEXTMAP"), Err(WadError::Count { name: "TEXTMAP".into(), count: 2 }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_take_more_than_the_file(
            mut file in prop::collection::vec(any::<u8>(), 0..200),
            changes in prop::collection::vec((0usize..65, any::<u8>()), 0..6),
            made in any::<bool>(),
        ) {
            if made {
                file = sample();
                for (at, byte) in changes {
                    file[at] = byte;
                }
            }
            if let Ok(wad) = Wad::read(&file) {
                prop_assert!(wad.lumps.iter().map(|(_, data)| data.len()).sum::<usize>() <= file.len());
                let again = Wad::read(&wad.write().expect("no larger than it was")).expect("our own");
                prop_assert_eq!(again, wad);
            }
        }
    }
}
