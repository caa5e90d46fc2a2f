//! IDX, the format of MNIST's files: a magic number, the sizes, and one byte per number.
//!
//! Files from outside are hostile: all sizes are compared with the bytes that are there, and nothing is allocated.

use std::sync::Arc;

use super::{CLASSES, PIXELS, SIDE};

/// The first four bytes of a file of pictures: bytes, three dimensions.
const PICTURES: u32 = 0x0000_0803;
/// The first four bytes of a file of labels: bytes, one dimension.
const LABELS: u32 = 0x0000_0801;
const PICTURES_HEADER: usize = 16;
const LABELS_HEADER: usize = 8;

/// A data set that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdxError {
    /// The file ends within its header.
    #[error("the file of {what} has {bytes} bytes, its header alone has {header}; fetch it again")]
    NoHeader {
        /// `pictures` or `labels`.
        what: &'static str,
        /// Bytes in the file.
        bytes: usize,
        /// Bytes of a header.
        header: usize,
    },
    /// The file is of another kind.
    #[error(
        "the file of {what} begins with {found:#010x} instead of {wanted:#010x}; is it an IDX file of {what}?"
    )]
    Magic {
        /// `pictures` or `labels`.
        what: &'static str,
        /// The right number.
        wanted: u32,
        /// The file's.
        found: u32,
    },
    /// Pictures of another size.
    #[error("the pictures have {rows}x{columns} pixels; read are pictures of {SIDE}x{SIDE}")]
    Size {
        /// Rows of a picture.
        rows: u32,
        /// Columns of a picture.
        columns: u32,
    },
    /// The file is shorter or longer than its header says.
    #[error("the file of {what} claims {count} and has {bytes} bytes instead of {wanted}; fetch it again")]
    Length {
        /// `pictures` or `labels`.
        what: &'static str,
        /// How many it claims.
        count: u32,
        /// Bytes in the file.
        bytes: usize,
        /// Bytes that as many take.
        wanted: u64,
    },
    /// A data set without any picture.
    #[error("the file of pictures holds none")]
    Empty,
    /// There are more pictures than labels, or the other way round.
    #[error("there are {pictures} pictures and {labels} labels; take both files from the same data set")]
    Counts {
        /// How many pictures.
        pictures: u32,
        /// How many labels.
        labels: u32,
    },
    /// A label that is no digit.
    #[error("label {index} is {label}; labels are digits from 0 to 9")]
    Label {
        /// Its place.
        index: usize,
        /// Its value.
        label: u8,
    },
}

/// Pictures and their labels. Clones share the memory.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledPictures {
    /// The two files: pictures, then labels.
    files: Arc<Vec<Vec<u8>>>,
    count: usize,
}

impl LabelledPictures {
    /// Reads the contents of two files: that of the pictures, `[count, 28, 28]`, and that of the labels, `[count]`.
    ///
    /// # Errors
    /// When they are not two IDX files of the same number of pictures and labels, at least one.
    ///
    /// # Panics
    /// When `files` holds fewer than two.
    pub fn read(files: Arc<Vec<Vec<u8>>>) -> Result<Self, IdxError> {
        let (pictures, labels) = (&files[0], &files[1]);
        let [count, rows, columns] = header(pictures, "pictures", PICTURES, PICTURES_HEADER)?;
        if (rows, columns) != (SIDE as u32, SIDE as u32) {
            return Err(IdxError::Size { rows, columns });
        }
        check_length(pictures, "pictures", count, PIXELS, PICTURES_HEADER)?;
        let [labelled] = header(labels, "labels", LABELS, LABELS_HEADER)?;
        check_length(labels, "labels", labelled, 1, LABELS_HEADER)?;
        if count == 0 {
            return Err(IdxError::Empty);
        }
        if count != labelled {
            return Err(IdxError::Counts { pictures: count, labels: labelled });
        }
        let labels = &labels[LABELS_HEADER..];
        if let Some((index, &label)) =
            labels.iter().enumerate().find(|&(_, &label)| usize::from(label) >= CLASSES)
        {
            return Err(IdxError::Label { index, label });
        }
        Ok(LabelledPictures { files, count: count as usize })
    }

    /// How many there are, at least one.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Always false: there is at least one.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Picture `index`, `[28, 28]`: 0 is the background, 255 the pen.
    ///
    /// # Panics
    /// When there is no such picture.
    pub fn picture(&self, index: usize) -> &[u8; PIXELS] {
        let at = PICTURES_HEADER + index * PIXELS;
        self.files[0][at..at + PIXELS].try_into().expect("as many bytes")
    }

    /// The digit on picture `index`.
    ///
    /// # Panics
    /// When there is no such picture.
    pub fn label(&self, index: usize) -> usize {
        usize::from(self.files[1][LABELS_HEADER + index])
    }
}

/// The dimensions in the header of `file`.
fn header<const N: usize>(
    file: &[u8],
    what: &'static str,
    magic: u32,
    len: usize,
) -> Result<[u32; N], IdxError> {
    let number = |at: usize| -> Option<u32> {
        let bytes = file.get(4 * at..4 * at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    };
    let cut = IdxError::NoHeader { what, bytes: file.len(), header: len };
    let found = number(0).ok_or(cut.clone())?;
    if found != magic {
        return Err(IdxError::Magic { what, wanted: magic, found });
    }
    let mut sizes = [0; N];
    for (i, size) in sizes.iter_mut().enumerate() {
        *size = number(1 + i).ok_or(cut.clone())?;
    }
    Ok(sizes)
}

/// Checks that `file` holds exactly `count` entries of `each` bytes behind its header.
fn check_length(
    file: &[u8],
    what: &'static str,
    count: u32,
    each: usize,
    header: usize,
) -> Result<(), IdxError> {
    let wanted = u64::from(count) * each as u64 + header as u64;
    if file.len() as u64 == wanted {
        return Ok(());
    }
    Err(IdxError::Length { what, count, bytes: file.len(), wanted })
}

/// The two files of a data set with these pictures and labels, as tests make them.
#[cfg(test)]
pub(crate) fn files(pictures: &[[u8; PIXELS]], labels: &[u8]) -> [Vec<u8>; 2] {
    let mut of_pictures = PICTURES.to_be_bytes().to_vec();
    for size in [pictures.len() as u32, SIDE as u32, SIDE as u32] {
        of_pictures.extend(size.to_be_bytes());
    }
    of_pictures.extend(pictures.as_flattened());
    let mut of_labels = LABELS.to_be_bytes().to_vec();
    of_labels.extend((labels.len() as u32).to_be_bytes());
    of_labels.extend(labels);
    [of_pictures, of_labels]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn good() -> [Vec<u8>; 2] {
        files(&[[1; PIXELS], [2; PIXELS], [3; PIXELS]], &[7, 0, 9])
    }

    fn read(files: [Vec<u8>; 2]) -> Result<LabelledPictures, IdxError> {
        LabelledPictures::read(Arc::new(files.into()))
    }

    #[test]
    fn pictures_and_labels_are_those_of_the_files() {
        let set = read(good()).expect("good files");
        assert_eq!(set.len(), 3);
        for (index, label) in [7, 0, 9].into_iter().enumerate() {
            assert_eq!(set.label(index), label);
            assert_eq!(*set.picture(index), [index as u8 + 1; PIXELS]);
        }
    }

    /// Every way to lie has its own error, and none of them a panic.
    #[test]
    fn broken_files_are_refused() {
        type Change = fn(&mut [Vec<u8>; 2]);
        let cases: [(Change, IdxError); 13] = [
            (|f| f[0].clear(), IdxError::NoHeader { what: "pictures", bytes: 0, header: 16 }),
            (|f| f[0].truncate(13), IdxError::NoHeader { what: "pictures", bytes: 13, header: 16 }),
            (|f| f[1].truncate(7), IdxError::NoHeader { what: "labels", bytes: 7, header: 8 }),
            (|f| f.swap(0, 1), IdxError::Magic { what: "pictures", wanted: 0x803, found: 0x801 }),
            (|f| f[1][3] = 3, IdxError::Magic { what: "labels", wanted: 0x801, found: 0x803 }),
            (|f| f[0][0] = 0x1f, IdxError::Magic { what: "pictures", wanted: 0x803, found: 0x1f00_0803 }),
            (|f| f[0][11] = 27, IdxError::Size { rows: 27, columns: 28 }),
            (
                |f| f[0].truncate(2000),
                IdxError::Length { what: "pictures", count: 3, bytes: 2000, wanted: 2368 },
            ),
            (|f| f[0].push(0), IdxError::Length { what: "pictures", count: 3, bytes: 2369, wanted: 2368 }),
            (
                |f| f[0][4..8].fill(255),
                IdxError::Length {
                    what: "pictures",
                    count: u32::MAX,
                    bytes: 2368,
                    wanted: 3_367_254_359_296,
                },
            ),
            (|f| f[1].push(0), IdxError::Length { what: "labels", count: 3, bytes: 12, wanted: 11 }),
            (
                |f| {
                    f[1].push(0);
                    f[1][7] = 4;
                },
                IdxError::Counts { pictures: 3, labels: 4 },
            ),
            (|f| f[1][9] = 10, IdxError::Label { index: 1, label: 10 }),
        ];
        for (change, error) in cases {
            let mut files = good();
            change(&mut files);
            assert_eq!(read(files), Err(error));
        }
        assert_eq!(read(files(&[], &[])), Err(IdxError::Empty));
    }

    proptest! {
        /// Whatever is damaged: an error, or a data set that can be read whole.
        #[test]
        fn damaged_files_do_not_panic(
            at in prop::collection::vec((0..2_usize, 0..40_usize, any::<u8>()), 0..4),
            lengths in [0..2500_usize, 0..14_usize],
            cut in any::<bool>(),
        ) {
            let mut files = good();
            for (file, at, byte) in at {
                if let Some(to) = files[file].get_mut(at) {
                    *to = byte;
                }
            }
            if cut {
                files.iter_mut().zip(lengths).for_each(|(file, len)| file.resize(len, 3));
            }
            if let Ok(set) = read(files) {
                let all = (0..set.len()).map(|i| set.label(i) + usize::from(set.picture(i)[PIXELS - 1]));
                prop_assert!(all.max().is_some());
            }
        }
    }
}
