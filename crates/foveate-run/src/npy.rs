//! A bounded reader for one NumPy array (`.npy`), the members of an [`npz`](crate::npz) file.
//!
//! Supported: versions 1 and 2, little-endian `f4`, `f8`, `i4`, `i8` and `u1`, C order, one to four
//! dimensions. Everything else is rejected with a specific error, and every declared size is compared with
//! the bytes present.

use foveate_core::{Tensor, TensorData};

/// A longer header is rejected; this is NumPy's own limit.
const MAX_HEADER: usize = 10_000;
const MAX_DIMS: usize = 4;
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The errors of a broken or unsupported array.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// It does not start with the magic bytes of an array.
    #[error("it is not a NumPy array (no magic bytes); save it with numpy.save or numpy.savez")]
    NotNpy,
    /// An unsupported version.
    #[error("it is a .npy of version {major}.{minor}, read are 1.0 and 2.0; save it again with plain dtypes")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// The declared length of the header exceeds the file, or any real header.
    #[error(
        "its header claims {claimed} bytes where {available} are left (at most {MAX_HEADER}); fetch it again"
    )]
    HeaderLength {
        /// Bytes claimed.
        claimed: usize,
        /// Bytes present.
        available: usize,
    },
    /// The header is not the dictionary that NumPy writes.
    #[error("its header cannot be read at byte {at}: {why}; save it again with numpy.savez")]
    Header {
        /// Where in the header.
        at: usize,
        /// What was expected.
        why: &'static str,
    },
    /// An unsupported type.
    #[error("its dtype is {dtype:?}, read are <f4, <f8, <i4, <i8 and |u1; convert it with astype")]
    Dtype {
        /// NumPy's name of the type.
        dtype: String,
    },
    /// Fortran order (columns first).
    #[error("it is in Fortran order; save it with numpy.ascontiguousarray")]
    FortranOrder,
    /// Too many dimensions, or none.
    #[error("it has {dims} dimensions, read are 1 to {MAX_DIMS}; reshape it")]
    Dimensions {
        /// The count.
        dims: usize,
    },
    /// The product of the dimensions exceeds any memory.
    #[error("its shape {shape:?} is larger than any memory; the file is broken, fetch it again")]
    Overflow {
        /// The dimensions.
        shape: Vec<u64>,
    },
    /// Fewer bytes than the shape requires.
    #[error("it is truncated: its shape {shape:?} takes {wanted} bytes, {given} are there; fetch it again")]
    Truncated {
        /// The dimensions.
        shape: Vec<usize>,
        /// Bytes that the shape requires.
        wanted: usize,
        /// Bytes present.
        given: usize,
    },
    /// More bytes than the shape requires.
    #[error("it is over-long: its shape {shape:?} takes {wanted} bytes, {given} are there; fetch it again")]
    OverLong {
        /// The dimensions.
        shape: Vec<usize>,
        /// Bytes that the shape requires.
        wanted: usize,
        /// Bytes present.
        given: usize,
    },
}

/// Reads one array from the whole bytes of a `.npy` file.
///
/// # Errors
/// One variant of [`NpyError`] for each kind of invalid input.
pub fn parse(bytes: &[u8]) -> Result<Tensor, NpyError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NpyError::NotNpy)?;
    let Some((&[major, minor], rest)) = rest.split_first_chunk() else {
        return Err(NpyError::NotNpy);
    };
    let too_short = |claimed| NpyError::HeaderLength { claimed, available: rest.len() };
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(too_short(2))?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        (2, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(too_short(4))?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        _ => return Err(NpyError::Version { major, minor }),
    };
    if length > rest.len() || length > MAX_HEADER {
        return Err(NpyError::HeaderLength { claimed: length, available: rest.len() });
    }
    let (header, data) = rest.split_at(length);
    let header = Header::parse(header)?;

    if header.shape.is_empty() || header.shape.len() > MAX_DIMS {
        return Err(NpyError::Dimensions { dims: header.shape.len() });
    }
    // In one dimension both orders are equal.
    if header.fortran && header.shape.len() > 1 {
        return Err(NpyError::FortranOrder);
    }
    let read = match header.dtype.as_str() {
        "<f4" => |data| TensorData::F32(numbers(data, f32::from_le_bytes)),
        "<f8" => |data| TensorData::F64(numbers(data, f64::from_le_bytes)),
        "<i4" => |data| TensorData::I32(numbers(data, i32::from_le_bytes)),
        "<i8" => |data| TensorData::I64(numbers(data, i64::from_le_bytes)),
        "|u1" | "<u1" => |data: &[u8]| TensorData::U8(data.to_vec()),
        _ => return Err(NpyError::Dtype { dtype: header.dtype }),
    };
    let item = usize::from(header.dtype.as_bytes()[2] - b'0');
    let overflow = || NpyError::Overflow { shape: header.shape.clone() };
    let shape: Vec<usize> =
        header.shape.iter().map(|&d| usize::try_from(d)).collect::<Result<_, _>>().map_err(|_| overflow())?;
    // A zero dimension must not hide an overflow: NumPy rejects such shapes, too.
    let bytes_of = |dims: &[usize]| dims.iter().try_fold(item, |n, &d| n.checked_mul(d.max(1)));
    let most = bytes_of(&shape).filter(|&n| isize::try_from(n).is_ok()).ok_or_else(overflow)?;
    let wanted = if shape.contains(&0) { 0 } else { most };
    match data.len() {
        given if given < wanted => Err(NpyError::Truncated { shape, wanted, given }),
        given if given > wanted => Err(NpyError::OverLong { shape, wanted, given }),
        _ => Ok(Tensor::new(shape, read(data)).expect("the shape was compared with the bytes")),
    }
}

/// NumPy's name of the type of these numbers.
pub const fn dtype(data: &TensorData) -> &'static str {
    match data {
        TensorData::F32(_) => "<f4",
        TensorData::F64(_) => "<f8",
        TensorData::U64(_) => "<u8",
        TensorData::I32(_) => "<i4",
        TensorData::I64(_) => "<i8",
        TensorData::U8(_) => "|u1",
    }
}

fn numbers<T, const N: usize>(data: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
    data.as_chunks().0.iter().map(|&chunk| from(chunk)).collect()
}

/// The dictionary at the start: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`.
struct Header {
    dtype: String,
    fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, NpyError> {
        let mut at = Cursor { bytes, at: 0 };
        let (mut dtype, mut fortran, mut shape) = (None, None, None);
        at.expect(b'{', "a dictionary")?;
        while !at.take(b'}') {
            let key_at = at.at;
            let key = at.string()?;
            at.expect(b':', "a colon after the key")?;
            let twice = match key.as_str() {
                "descr" => dtype.replace(at.string()?).is_some(),
                "fortran_order" => fortran.replace(at.boolean()?).is_some(),
                "shape" => shape.replace(at.tuple()?).is_some(),
                _ => {
                    return Err(NpyError::Header {
                        at: key_at,
                        why: "descr, fortran_order or shape expected",
                    });
                }
            };
            if twice {
                return Err(NpyError::Header { at: key_at, why: "a key stands twice" });
            }
            if !at.take(b',') {
                at.expect(b'}', "a comma or the end of the dictionary")?;
                break;
            }
        }
        at.skip_space();
        if at.at != bytes.len() {
            return at.fail("only spaces may follow the dictionary");
        }
        match (dtype, fortran, shape) {
            (Some(dtype), Some(fortran), Some(shape)) => Ok(Header { dtype, fortran, shape }),
            _ => at.fail("descr, fortran_order and shape must all be there"),
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn fail<T>(&self, why: &'static str) -> Result<T, NpyError> {
        Err(NpyError::Header { at: self.at, why })
    }

    fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\t')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, why: &'static str) -> Result<(), NpyError> {
        if self.take(byte) { Ok(()) } else { self.fail(why) }
    }

    fn run(&mut self, belongs: impl Fn(&u8) -> bool) -> &[u8] {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(&belongs) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    fn string(&mut self) -> Result<String, NpyError> {
        let quote = if self.take(b'\'') {
            b'\''
        } else if self.take(b'"') {
            b'"'
        } else {
            // A structured type has a list in place of the name.
            return self.fail("a quoted name expected (structured dtypes are not read)");
        };
        let text = self.run(|&b| (b' '..0x7f).contains(&b) && b != quote && b != b'\\');
        let text = String::from_utf8_lossy(text).into_owned();
        if self.bytes.get(self.at) != Some(&quote) {
            return self.fail("a quoted name does not end");
        }
        self.at += 1;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.skip_space();
        match self.run(u8::is_ascii_alphabetic) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => self.fail("True or False expected"),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, NpyError> {
        let mut items = Vec::new();
        self.expect(b'(', "a tuple of dimensions expected")?;
        while !self.take(b')') {
            self.skip_space();
            let digits = String::from_utf8_lossy(self.run(u8::is_ascii_digit)).into_owned();
            let Ok(number) = digits.parse() else {
                return self.fail("a dimension expected (a whole number)");
            };
            items.push(number);
            if !self.take(b',') {
                self.expect(b')', "a comma or the end of the tuple expected")?;
                break;
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An array file as NumPy writes it, header padded to 64 bytes.
    pub(crate) fn npy(dtype: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        with_header(&format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"), data)
    }

    fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
        let mut header = header.to_owned();
        while !(header.len() + 11).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    fn check(bytes: &[u8], shape: &[usize], data: &TensorData) {
        let array = parse(bytes).expect("a good array");
        assert_eq!((array.shape(), array.data()), (shape, data));
    }

    #[track_caller]
    fn check_err(bytes: &[u8], expect: &str) {
        let error = parse(bytes).expect_err("must be refused");
        assert!(format!("{error:?}").starts_with(expect), "{error:?}");
        let said = error.to_string();
        assert!(said.contains(';') && said.lines().count() == 1, "{said}");
    }

    #[test]
    fn reads_every_type() {
        check(&npy("<f4", "(2,)", &[0, 0, 128, 63, 0, 0, 0, 192]), &[2], &TensorData::F32(vec![1.0, -2.0]));
        check(&npy("<f8", "(1, 1)", &1.5_f64.to_le_bytes()), &[1, 1], &TensorData::F64(vec![1.5]));
        check(&npy("<i4", "(1,)", &[0xfe, 255, 255, 255]), &[1], &TensorData::I32(vec![-2]));
        check(&npy("<i8", "(1,)", &(-3_i64).to_le_bytes()), &[1], &TensorData::I64(vec![-3]));
        check(&npy("|u1", "(1, 3, 1, 1)", &[7, 8, 9]), &[1, 3, 1, 1], &TensorData::U8(vec![7, 8, 9]));
        check(&npy("<f4", "(0, 5)", &[]), &[0, 5], &TensorData::F32(vec![]));
    }

    #[test]
    fn reads_version_2_and_one_dimensional_fortran_order() {
        let header = "{\"shape\":(1,),'fortran_order':True,'descr':'|u1'}";
        let mut v2 = b"\x93NUMPY\x02\x00".to_vec();
        v2.extend((header.len() as u32).to_le_bytes());
        v2.extend(header.as_bytes());
        v2.push(7);
        check(&v2, &[1], &TensorData::U8(vec![7]));
    }

    #[test]
    fn every_lie_has_its_variant() {
        let good = npy("<f4", "(2,)", &[0; 8]);
        check_err(b"", "NotNpy");
        check_err(&good[1..], "NotNpy");
        check_err(b"\x93NUMPY\x01", "NotNpy");
        check_err(b"\x93NUMPY\x03\x00\x00\x00\x00\x00", "Version { major: 3");
        check_err(b"\x93NUMPY\x01\x00\x10", "HeaderLength { claimed: 2, available: 1");
        check_err(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "HeaderLength { claimed: 4294967295, available: 0");
        check_err(&good[..100], "HeaderLength { claimed: 118, available: 90");
        check_err(&good[..good.len() - 1], "Truncated { shape: [2], wanted: 8, given: 7");
        check_err(&[&good[..], &[0]].concat(), "OverLong { shape: [2], wanted: 8, given: 9");
        check_err(&npy(">f4", "(2,)", &[0; 8]), "Dtype { dtype: \">f4\"");
        check_err(&npy("|O", "(2,)", &[0; 8]), "Dtype { dtype: \"|O\"");
        check_err(&npy("<f2", "(2,)", &[0; 4]), "Dtype { dtype: \"<f2\"");
        check_err(&npy("<f4", "()", &[0; 4]), "Dimensions { dims: 0");
        check_err(&npy("<f4", "(1,1,1,1,1)", &[0; 4]), "Dimensions { dims: 5");
        check_err(&npy("<f4", "(4294967296, 4294967296)", &[]), "Overflow");
        check_err(&npy("<f4", "(0, 4294967296, 4294967296)", &[]), "Overflow");
        check_err(&npy("|u1", "(9223372036854775808,)", &[]), "Overflow");
        check_err(&npy("<f4", "(1000000000,)", &[0; 8]), "Truncated");
        let head = |text: &str| with_header(text, &[0; 8]);
        check_err(&head("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }"), "FortranOrder");
        for bad in [
            "",
            "[]",
            "{",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
            "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': Falsch, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
            "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        ] {
            check_err(&head(bad), "Header {");
        }
    }
}
