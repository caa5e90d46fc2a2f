//! Errors of npz files.

use crate::npy::NpyError;

/// Larger files are rejected.
pub const MAX_FILE: u64 = 256 << 20;
/// More arrays are rejected.
pub const MAX_MEMBERS: usize = 256;

/// The errors of a broken or unsupported npz file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpzError {
    /// It does not start as a zip archive does.
    #[error("this is not an npz file (no zip archive); give a file written by numpy.savez")]
    NotZip,
    /// The file is too large.
    #[error("the file has {bytes} bytes, read are at most {MAX_FILE}; is it the right file?")]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// The archive has no end record.
    #[error("the npz file is truncated: {bytes} bytes and no end of archive; fetch it again")]
    Truncated {
        /// Its size.
        bytes: usize,
    },
    /// Bytes after the archive.
    #[error("the npz file is over-long: {extra} bytes follow the end of the archive; fetch it again")]
    OverLong {
        /// The count.
        extra: usize,
    },
    /// The zip64 format, or an archive in several parts.
    #[error("the npz file is a {what} archive, which is not read; save it again with numpy.savez")]
    Unsupported {
        /// What it is.
        what: &'static str,
    },
    /// The directory contradicts the file.
    #[error("the directory of the npz file is broken: {why}; fetch it again")]
    Directory {
        /// What does not fit.
        why: String,
    },
    /// More members than in any real file.
    #[error("the npz file claims {count} arrays, read are at most {MAX_MEMBERS}; is it the right file?")]
    TooMany {
        /// The count.
        count: usize,
    },
    /// Two members have the same name.
    #[error("the npz file holds {name:?} twice; save it again with numpy.savez")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A member that is not an array, or whose name is not valid text.
    #[error("the npz file holds {name:?}, which is no array (*.npy); give a file written by numpy.savez")]
    ForeignMember {
        /// The name.
        name: String,
    },
    /// A compression method that NumPy does not use.
    #[error("{name:?} in the npz file is packed with method {method}{}, read are stored and deflated; save it again with numpy.savez", if *encrypted { " and encrypted" } else { "" })]
    Method {
        /// The member.
        name: String,
        /// The zip method.
        method: u16,
        /// True if it is encrypted.
        encrypted: bool,
    },
    /// The local header of a member contradicts the directory.
    #[error("{name:?} in the npz file is broken at byte {at}: {why}; fetch it again")]
    Member {
        /// The member.
        name: String,
        /// Offset of its header.
        at: usize,
        /// What does not fit.
        why: &'static str,
    },
    /// The declared size exceeds what the packed bytes can produce, or the limit.
    #[error(
        "{name:?} in the npz file claims to unpack {packed} bytes to {unpacked}, at most {allowed} are possible; is it the right file?"
    )]
    Bomb {
        /// The member.
        name: String,
        /// Bytes in the file.
        packed: usize,
        /// Bytes claimed.
        unpacked: usize,
        /// Bytes possible or allowed.
        allowed: usize,
    },
    /// A member cannot be decompressed.
    #[error("{name:?} in the npz file does not unpack: {why}; fetch it again")]
    Unpack {
        /// The member.
        name: String,
        /// The reason.
        why: String,
    },
    /// The checksum is wrong.
    #[error(
        "{name:?} in the npz file is damaged: checksum {found:08x} instead of {wanted:08x}; fetch it again"
    )]
    Checksum {
        /// The member.
        name: String,
        /// The checksum in the file.
        wanted: u32,
        /// The computed checksum.
        found: u32,
    },
    /// The array in a member is broken or unsupported.
    #[error("array {name:?}: {source}")]
    Array {
        /// The member.
        name: String,
        /// The error of the array.
        source: NpyError,
    },
}
