//! The files that a user, or another file, names: the one way in which this crate opens them.
//!
//! Opening a FIFO waits for a writer, a device may never end, and some devices act when they are opened. So only regular files are
//! opened, none is waited for, and no more is read than a limit. Files in the folder of a run are opened by
//! [`FolderHandle`](crate::folder::FolderHandle), which also follows no links.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::error::RunError;

/// Opens a regular file for reading; links to one are followed.
///
/// # Errors
/// When it is missing, is no regular file (the error says what it is), or cannot be opened.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    check(&fs::metadata(path)?)?;
    // It may have been replaced meanwhile: opening a FIFO then does not wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(about: &fs::Metadata) -> io::Result<()> {
    let kind = about.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => return Err(Errno::ISDIR.into()),
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file")))
}

/// Reads a file of at most `limit` bytes; the inner error is the size of a larger one.
///
/// # Errors
/// As [`open`], or when it cannot be read.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Result<Vec<u8>, u64>, RunError> {
    open(path).and_then(|file| read_open(file, limit)).map_err(RunError::io("read", path))
}

/// As [`read`], for an open file. The size is enforced while reading, because a file may grow.
pub(crate) fn read_open(file: File, limit: u64) -> io::Result<Result<Vec<u8>, u64>> {
    let said = file.metadata()?.len();
    if said > limit {
        return Ok(Err(said));
    }
    let mut bytes = Vec::with_capacity(said as usize);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > limit { Err(bytes.len() as u64) } else { Ok(bytes) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), b"four").expect("writable");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("a link");
        rustix::fs::mknodat(CWD, at("fifo"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
        let _socket = UnixListener::bind(at("socket")).expect("a socket");
        let said = |path: &Path| read(path, 10).expect_err("not a file").to_string();
        assert!(said(&at("fifo")).contains("fifo: it is a FIFO, not a file; name a regular file"));
        assert!(said(&at("socket")).contains("socket: it is a socket, not a file; name a regular file"));
        assert!(said(Path::new("/dev/zero")).contains("/dev/zero: it is a device, not a file"));
        assert!(said(dir.path()).contains("this is a folder: name a file in it"));
        assert!(said(&at("none")).contains("check the path"));
        for name in ["file", "link"] {
            assert_eq!(read(&at(name), 4).expect("readable"), Ok(b"four".to_vec()));
            assert_eq!(read(&at(name), 3).expect("readable"), Err(4));
        }
    }
}
