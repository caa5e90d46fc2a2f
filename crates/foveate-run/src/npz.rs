//! A bounded reader for NumPy's npz: a zip archive of [arrays](crate::npy).
//!
//! Files from outside are hostile. The reader accepts only what NumPy writes: members stored or deflated, one
//! after the other without gaps, followed by the directory and nothing else. Sizes are compared with the
//! bytes present before anything is allocated, checksums are verified, and each kind of invalid input has its
//! own [`NpzError`].

pub(crate) mod error;

use std::path::Path;

use flate2::{Crc, Decompress, FlushDecompress, Status};
use foveate_core::Tensor;

use crate::error::RunError;
use crate::input;
use crate::npy;
pub use error::{MAX_FILE, MAX_MEMBERS, NpzError};

/// Larger arrays are rejected; the limit also holds for all arrays of a file together.
pub const MAX_UNPACKED: usize = 512 << 20;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const LOCAL_LEN: usize = 30;
const CENTRAL_LEN: usize = 46;
const END_LEN: usize = 22;

/// One array of an npz file.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name, without `.npy`.
    pub name: String,
    /// The array.
    pub array: Tensor,
}

/// Reads all arrays of the npz file at `path`, in the order of its directory.
///
/// # Errors
/// When the file cannot be read, or for any [`NpzError`].
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Member>, RunError> {
    let path = path.as_ref();
    let bytes = input::read(path, MAX_FILE)?.map_err(|bytes| NpzError::TooLarge { bytes });
    bytes.and_then(|bytes| parse(&bytes)).map_err(|source| RunError::Npz { path: path.to_path_buf(), source })
}

/// Reads all arrays from the whole bytes of an npz file.
///
/// # Errors
/// Any [`NpzError`] except [`NpzError::TooLarge`].
pub fn parse(bytes: &[u8]) -> Result<Vec<Member>, NpzError> {
    let entries = directory(bytes)?;
    let mut room = MAX_UNPACKED;
    let mut members = Vec::with_capacity(entries.len());
    for entry in &entries {
        let raw = entry.unpack(bytes, &mut room)?;
        let array =
            npy::parse(&raw).map_err(|source| NpzError::Array { name: entry.name.clone(), source })?;
        members.push(Member { name: entry.name.clone(), array });
    }
    Ok(members)
}

/// A member as the directory describes it.
struct Entry {
    name: String,
    full_name: Vec<u8>,
    flags: u16,
    method: u16,
    crc: u32,
    packed: usize,
    unpacked: usize,
    offset: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads and checks the directory; the header and data of every entry lie inside the file and do not overlap.
fn directory(bytes: &[u8]) -> Result<Vec<Entry>, NpzError> {
    let end = find_end(bytes)?;
    let field = |at| u16_at(bytes, end + at);
    let (count, size, start) =
        (field(10), u32_at(bytes, end + 12) as usize, u32_at(bytes, end + 16) as usize);
    if field(10) == u16::MAX || u32_at(bytes, end + 16) == u32::MAX {
        return Err(NpzError::Unsupported { what: "zip64" });
    }
    if field(4) != 0 || field(6) != 0 || field(8) != count {
        return Err(NpzError::Unsupported { what: "multi-part" });
    }
    let count = usize::from(count);
    if count > MAX_MEMBERS {
        return Err(NpzError::TooMany { count });
    }
    let broken = |why: String| NpzError::Directory { why };
    if start.checked_add(size) != Some(end) {
        return Err(broken(format!("it should be {size} bytes from byte {start} to byte {end}")));
    }
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    let mut rest = &bytes[start..end];
    for index in 0..count {
        if rest.len() < CENTRAL_LEN || u32_at(rest, 0) != CENTRAL {
            return Err(broken(format!("entry {index} of {count} is missing")));
        }
        let name_len = usize::from(u16_at(rest, 28));
        let length = CENTRAL_LEN + name_len + usize::from(u16_at(rest, 30)) + usize::from(u16_at(rest, 32));
        if rest.len() < length {
            return Err(broken(format!(
                "entry {index} of {count} takes {length} bytes, {} are left",
                rest.len()
            )));
        }
        let full_name = rest[CENTRAL_LEN..CENTRAL_LEN + name_len].to_vec();
        let text = String::from_utf8_lossy(&full_name).into_owned();
        let name = match text.strip_suffix(".npy") {
            Some(name) if String::from_utf8(full_name.clone()).is_ok() => name.to_owned(),
            _ => return Err(NpzError::ForeignMember { name: text }),
        };
        if [20, 24, 42].iter().any(|&at| u32_at(rest, at) == u32::MAX) {
            return Err(NpzError::Unsupported { what: "zip64" });
        }
        if entries.iter().any(|e| e.name == name) {
            return Err(NpzError::Duplicate { name });
        }
        let entry = Entry {
            name,
            full_name,
            flags: u16_at(rest, 8),
            method: u16_at(rest, 10),
            crc: u32_at(rest, 16),
            packed: u32_at(rest, 20) as usize,
            unpacked: u32_at(rest, 24) as usize,
            offset: u32_at(rest, 42) as usize,
        };
        entries.push(entry);
        rest = &rest[length..];
    }
    if !rest.is_empty() {
        return Err(broken(format!("{} bytes follow its {count} entries", rest.len())));
    }
    check_layout(&entries, bytes, start)?;
    Ok(entries)
}

/// Finds the end record, which must be at the very end of the file, its comment included.
fn find_end(bytes: &[u8]) -> Result<usize, NpzError> {
    if !bytes.starts_with(b"PK") {
        return Err(NpzError::NotZip);
    }
    let last = bytes.len().checked_sub(END_LEN).ok_or(NpzError::Truncated { bytes: bytes.len() })?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let mut extra = None;
    for at in (first..=last).rev() {
        if u32_at(bytes, at) == END {
            let stop = at + END_LEN + usize::from(u16_at(bytes, at + 20));
            match bytes.len().checked_sub(stop) {
                Some(0) => return Ok(at),
                Some(more) if extra.is_none() => extra = Some(more),
                _ => {}
            }
        }
    }
    Err(match extra {
        Some(extra) => NpzError::OverLong { extra },
        None => NpzError::Truncated { bytes: bytes.len() },
    })
}

/// Checks that the members fill the file from byte 0 to the directory, one after the other, without gaps and
/// overlaps.
fn check_layout(entries: &[Entry], bytes: &[u8], directory: usize) -> Result<(), NpzError> {
    let mut order: Vec<&Entry> = entries.iter().collect();
    order.sort_by_key(|e| e.offset);
    let mut free = 0;
    for entry in order {
        let gap = entry.offset.checked_sub(free);
        // A member written to a pipe is followed by a copy of its sizes: 12 to 24 bytes.
        if !matches!(gap, Some(0 | 12 | 16 | 20 | 24)) || (free == 0 && gap != Some(0)) {
            return Err(entry.broken("it does not follow the one before it"));
        }
        free = entry.data(bytes, directory)?.end;
    }
    match directory.checked_sub(free) {
        Some(0 | 12 | 16 | 20 | 24) if !entries.is_empty() || free == directory => Ok(()),
        gap => Err(NpzError::Directory {
            why: format!("{} bytes before it belong to nothing", gap.unwrap_or(0)),
        }),
    }
}

impl Entry {
    fn broken(&self, why: &'static str) -> NpzError {
        NpzError::Member { name: self.name.clone(), at: self.offset, why }
    }

    /// The range of the packed bytes, after comparing the local header with the directory.
    fn data(&self, bytes: &[u8], directory: usize) -> Result<std::ops::Range<usize>, NpzError> {
        let before = &bytes[..directory];
        let header = before.get(self.offset..).filter(|h| h.len() >= LOCAL_LEN);
        let Some(header) = header.filter(|h| u32_at(h, 0) == LOCAL) else {
            return Err(self.broken("there is no member header"));
        };
        let name_len = usize::from(u16_at(header, 26));
        let start = self.offset + LOCAL_LEN + name_len + usize::from(u16_at(header, 28));
        if before.get(self.offset + LOCAL_LEN..self.offset + LOCAL_LEN + name_len) != Some(&self.full_name) {
            return Err(self.broken("its name differs from the directory's"));
        }
        if u16_at(header, 6) != self.flags || u16_at(header, 8) != self.method {
            return Err(self.broken("its method differs from the directory's"));
        }
        // Sizes may be elsewhere: in an extra field (NumPy always reserves it) or, for a pipe, after the
        // data.
        let elsewhere = self.flags & 8 != 0;
        for (at, wanted) in [(14, self.crc), (18, self.packed as u32), (22, self.unpacked as u32)] {
            let here = u32_at(header, at);
            if here != wanted && !(elsewhere && here == 0) && !(at > 14 && here == u32::MAX) {
                return Err(self.broken("its sizes differ from the directory's"));
            }
        }
        match start.checked_add(self.packed) {
            Some(end) if end <= directory => Ok(start..end),
            _ => Err(self.broken("it reaches into the directory")),
        }
    }

    /// The unpacked bytes; their number is subtracted from `room`.
    fn unpack(&self, bytes: &[u8], room: &mut usize) -> Result<Vec<u8>, NpzError> {
        let packed = &bytes[self.data(bytes, bytes.len())?];
        let encrypted = self.flags & 1 != 0;
        // Deflate produces at most 258 bytes from 2 bits.
        let possible = match self.method {
            0 if !encrypted => self.packed,
            8 if !encrypted => self.packed.saturating_mul(1032),
            method => return Err(NpzError::Method { name: self.name.clone(), method, encrypted }),
        };
        let allowed = possible.min(*room);
        if self.unpacked > allowed {
            let (packed, unpacked) = (self.packed, self.unpacked);
            return Err(NpzError::Bomb { name: self.name.clone(), packed, unpacked, allowed });
        }
        *room -= self.unpacked;
        let raw = if self.method == 8 { self.inflate(packed)? } else { packed.to_vec() };
        if raw.len() != self.unpacked {
            return Err(self.stuck(format!("{} bytes instead of {}", raw.len(), self.unpacked)));
        }
        let mut crc = Crc::new();
        crc.update(&raw);
        if crc.sum() != self.crc {
            return Err(NpzError::Checksum { name: self.name.clone(), wanted: self.crc, found: crc.sum() });
        }
        Ok(raw)
    }

    fn stuck(&self, why: String) -> NpzError {
        NpzError::Unpack { name: self.name.clone(), why }
    }

    /// Decompresses to exactly the number of bytes in the directory, from exactly the bytes present.
    fn inflate(&self, packed: &[u8]) -> Result<Vec<u8>, NpzError> {
        let mut raw = vec![0; self.unpacked];
        let mut stream = Decompress::new(false);
        let status = stream
            .decompress(packed, &mut raw, FlushDecompress::Finish)
            .map_err(|error| self.stuck(error.to_string()))?;
        let (taken, given) = (stream.total_in() as usize, stream.total_out() as usize);
        if status != Status::StreamEnd {
            return Err(self.stuck(format!("its data does not end after {given} of {} bytes", self.unpacked)));
        }
        if given != self.unpacked {
            return Err(self.stuck(format!("{given} bytes instead of {}", self.unpacked)));
        }
        if taken != packed.len() {
            return Err(self.stuck(format!("{} packed bytes are left over", packed.len() - taken)));
        }
        Ok(raw)
    }
}

#[cfg(test)]
pub(crate) mod tests;
