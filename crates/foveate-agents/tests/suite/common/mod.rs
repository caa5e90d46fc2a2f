//! Golden data: a reader of `.npz` archives, just enough for the files that the tests use.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// An array as it lies in the file.
pub(crate) struct Array {
    /// Its dimensions.
    pub(crate) shape: Vec<usize>,
    dtype: String,
    bytes: Vec<u8>,
}

impl Array {
    /// Bytes.
    pub(crate) fn u8(&self) -> &[u8] {
        assert_eq!(self.dtype, "|u1");
        &self.bytes
    }
    /// Single precision.
    pub(crate) fn f32(&self) -> Vec<f32> {
        assert_eq!(self.dtype, "<f4");
        self.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }
    /// Double precision.
    #[allow(dead_code, reason = "not every test file uses it")]
    pub(crate) fn f64(&self) -> Vec<f64> {
        assert_eq!(self.dtype, "<f8");
        self.bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
    }
    /// Integers.
    pub(crate) fn i64(&self) -> Vec<i64> {
        assert_eq!(self.dtype, "<i8");
        self.bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect()
    }
}

/// Reads all arrays of an npz file. The files are ours: broken ones may panic.
pub(crate) fn read_npz(path: &Path) -> BTreeMap<String, Array> {
    let zip = std::fs::read(path).expect("a readable file");
    let short = |at: usize| usize::from(u16::from_le_bytes([zip[at], zip[at + 1]]));
    let long = |at: usize| short(at) | short(at + 2) << 16;
    // The end record is 22 bytes when there is no comment; from there the central directory is found.
    let end = zip.len() - 22;
    assert_eq!(long(end), 0x0605_4b50, "a zip file without comment");
    let (members, mut entry) = (short(end + 10), long(end + 16));
    let mut arrays = BTreeMap::new();
    for _ in 0..members {
        assert_eq!(long(entry), 0x0201_4b50);
        let (method, packed, local) = (short(entry + 10), long(entry + 20), long(entry + 42));
        let name_len = short(entry + 28);
        let name =
            String::from_utf8(zip[entry + 46..entry + 46 + name_len].to_vec()).expect("a name in UTF-8");
        let start = local + 30 + short(local + 26) + short(local + 28);
        let packed = &zip[start..start + packed];
        let mut npy = Vec::new();
        match method {
            0 => npy.extend_from_slice(packed),
            8 => {
                let mut inflate = flate2::read::DeflateDecoder::new(packed);
                inflate.read_to_end(&mut npy).expect("deflated data");
            }
            other => panic!("compression method {other}"),
        }
        arrays.insert(name.trim_end_matches(".npy").to_owned(), read_npy(&npy));
        entry += 46 + name_len + short(entry + 30) + short(entry + 32);
    }
    arrays
}

fn read_npy(npy: &[u8]) -> Array {
    assert_eq!(&npy[..8], b"\x93NUMPY\x01\x00", "npy format 1.0");
    let data = 10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    let header = std::str::from_utf8(&npy[10..data]).expect("ASCII");
    assert!(header.contains("'fortran_order': False"));
    let after = |key: &str| header.split(key).nth(1).expect("a header key").trim_start_matches([':', ' ']);
    let dtype = after("'descr'").split('\'').nth(1).expect("a quoted type").to_owned();
    let shape = after("'shape'").trim_start_matches('(').split(')').next().expect("a tuple");
    let shape = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    Array { shape, dtype, bytes: npy[data..].to_vec() }
}
