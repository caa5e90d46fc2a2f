//! Access to a folder by its handle: entries are opened by name, and links are never followed.
//!
//! The folder of a run may come from a stranger. A symbolic link in it would redirect reads and writes to any
//! other file, a FIFO would block for ever, and a device is not a file. A [`FolderHandle`] opens only regular
//! files and folders; everything else is rejected with a one-line error that says what it is. The folder
//! itself is opened once, so writes go into it even if its path changes later. The user's own path to the
//! folder may contain links.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::atomic::AtomicFile;
use crate::error::RunError;

/// Suffix of files and folders that are being written. A crash may leave some behind, see
/// [`FolderHandle::sweep`].
pub(crate) const SUFFIX: &str = ".foveate-tmp";
/// Number of names tried for a hidden file; some may be in use.
const TRIES: usize = 1000;
/// Maximum depth of folders that are removed; deeper ones were not created by this program.
const DEPTH: usize = 16;

/// An open folder. Copies share the handle.
#[derive(Debug, Clone)]
pub struct FolderHandle {
    file: Arc<File>,
    /// Path for messages.
    path: PathBuf,
}

impl FolderHandle {
    /// Opens the folder at `path`; links in the path are followed, since the user named it.
    ///
    /// # Errors
    /// When there is no folder, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        Self::open_io(path).map_err(RunError::io("read", path))
    }

    pub(crate) fn open_io(path: &Path) -> io::Result<Self> {
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, named, flags, Mode::empty())?;
        Ok(FolderHandle { file: Arc::new(File::from(fd)), path: path.to_path_buf() })
    }

    /// Opens the folder at `path`, and creates it if it is missing.
    ///
    /// # Errors
    /// When it cannot be created, or something else has its name.
    pub fn open_or_create(path: &Path) -> Result<Self, RunError> {
        let create = || {
            let missing: Vec<_> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
            std::fs::create_dir_all(path)?;
            // A new name is on disk once its parent folder is synchronised.
            for folder in missing.into_iter().filter(|folder| !folder.as_os_str().is_empty()) {
                Self::open_io(parent(folder))?.file.sync_all()?;
            }
            Self::open_io(path)
        };
        create().map_err(RunError::io("create", path))
    }

    /// The path at which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records that the folder has been renamed.
    pub(crate) fn renamed(&mut self, path: &Path) {
        self.path = path.to_path_buf();
    }

    /// The type of `name`; `None` if it does not exist. A link is reported as a link.
    fn kind(&self, name: &OsStr) -> io::Result<Option<FileType>> {
        match rustix::fs::statat(&*self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(FileType::from_raw_mode(about.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether an entry with this name exists.
    pub fn has(&self, name: &str) -> bool {
        !matches!(self.kind(name.as_ref()), Ok(None))
    }

    /// An I/O error about `name`.
    fn failed<N: AsRef<Path>>(
        &self,
        doing: &'static str,
        name: N,
    ) -> impl FnOnce(io::Error) -> RunError + use<N> {
        RunError::io(doing, &self.path.join(name))
    }

    /// Reports an error if `name` exists and is not a regular file.
    fn check_file(&self, doing: &'static str, name: &OsStr) -> Result<(), RunError> {
        match self.kind(name).map_err(self.failed(doing, name))? {
            None | Some(FileType::RegularFile) => Ok(()),
            Some(FileType::Directory) => Err(self.failed(doing, name)(io::ErrorKind::IsADirectory.into())),
            Some(other) => Err(self.refuse(name, what(other))),
        }
    }

    fn refuse(&self, name: &OsStr, what: &str) -> RunError {
        RunError::BadRun {
            folder: self.path.clone(),
            why: format!(
                "{} is {what}, which is never followed or opened here; put a plain file in its place, or remove it",
                name.to_string_lossy()
            ),
        }
    }

    fn open_file(&self, doing: &'static str, name: &OsStr, flags: OFlags) -> Result<File, RunError> {
        self.check_file(doing, name)?;
        // If the entry is replaced in the meantime, opening it neither follows a link nor blocks.
        let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let open = || -> io::Result<(File, std::fs::Metadata)> {
            let file = File::from(rustix::fs::openat(&*self.file, name, flags | safe, CREATED)?);
            let about = file.metadata()?;
            Ok((file, about))
        };
        let (file, about) = open().map_err(self.failed(doing, name))?;
        if !about.is_file() {
            return Err(self.refuse(name, "no regular file"));
        }
        if doing == "write" && about.nlink() > 1 {
            return Err(self.refuse(name, "a file with a second name elsewhere (a hard link)"));
        }
        Ok(file)
    }

    /// Opens the file `name` for reading.
    ///
    /// # Errors
    /// When it is missing, cannot be read, or is no regular file.
    pub fn open_to_read(&self, name: &str) -> Result<File, RunError> {
        self.open_file("read", name.as_ref(), OFlags::RDONLY)
    }

    /// Opens the file `name` for reading and appending; creates it if it is missing.
    ///
    /// # Errors
    /// When it cannot be written, is not a regular file, or has another hard link.
    pub fn open_to_append(&self, name: &str) -> Result<File, RunError> {
        self.open_file("write", name.as_ref(), OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// Reads the file `name` of at most `limit` bytes; the inner error is the size of a larger one.
    ///
    /// # Errors
    /// As [`FolderHandle::open_to_read`].
    pub fn read(&self, name: &str, limit: u64) -> Result<Result<Vec<u8>, u64>, RunError> {
        let file = self.open_to_read(name)?;
        crate::input::read_open(file, limit).map_err(self.failed("read", name))
    }

    /// Writes `bytes` to the file `name` atomically.
    ///
    /// # Errors
    /// When it cannot be written, or something other than a file has its name. The old file is then
    /// untouched.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), RunError> {
        let mut file = self.create(name)?;
        file.write_all(bytes.as_ref()).map_err(self.failed("write", name))?;
        file.commit()
    }

    /// Starts writing the file `name`, which gets its name when it is complete.
    ///
    /// # Errors
    /// As [`FolderHandle::write`].
    pub fn create(&self, name: &str) -> Result<AtomicFile, RunError> {
        self.check_file("write", name.as_ref())?;
        AtomicFile::create_in(self, name.as_ref()).map_err(self.failed("write", name))
    }

    /// A new file under a hidden name derived from `name`, locked while it is open, and its name.
    pub(crate) fn create_hidden(&self, name: &OsStr) -> io::Result<(File, OsString)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let hidden = hidden(name);
            let file = match rustix::fs::openat(&*self.file, &hidden, flags, CREATED) {
                Ok(fd) => File::from(fd),
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            if is_ours(&file)? {
                return Ok((file, hidden));
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// An unnamed temporary file, which disappears when it is closed, even after a crash.
    pub(crate) fn scratch(&self) -> io::Result<File> {
        let (file, hidden) = self.create_hidden("body".as_ref())?;
        self.remove_io(&hidden)?;
        Ok(file)
    }

    /// The folder `name` in this one; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is a link or something else that is neither folder nor file.
    pub fn folder(&self, name: &str) -> Result<Option<FolderHandle>, RunError> {
        match self.kind(name.as_ref()).map_err(self.failed("read", name))? {
            Some(FileType::Directory) => {
                self.folder_io(name.as_ref()).map(Some).map_err(self.failed("read", name))
            }
            None | Some(FileType::RegularFile) => Ok(None),
            Some(other) => Err(self.refuse(name.as_ref(), what(other))),
        }
    }

    fn folder_io(&self, name: &OsStr) -> io::Result<FolderHandle> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&*self.file, name, flags, Mode::empty())?;
        Ok(FolderHandle { file: Arc::new(File::from(fd)), path: self.path.join(name) })
    }

    /// Opens the folder `name` in this one, and creates it if it is missing.
    ///
    /// # Errors
    /// When it cannot be created, or something else has its name.
    pub fn make_folder(&self, name: &str) -> Result<FolderHandle, RunError> {
        match rustix::fs::mkdirat(&*self.file, name, CREATED_FOLDER) {
            Ok(()) => self.file.sync_all().map_err(self.failed("create", name))?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(self.failed("create", name)(error.into())),
        }
        let exists = self.failed("create", name);
        self.folder(name)?.ok_or_else(|| exists(io::ErrorKind::AlreadyExists.into()))
    }

    /// A new folder under a hidden name derived from `name`, locked while its handle is open, and its name.
    pub(crate) fn make_hidden_folder(&self, name: &str) -> io::Result<(FolderHandle, OsString)> {
        for _ in 0..TRIES {
            let hidden = hidden(name.as_ref());
            match rustix::fs::mkdirat(&*self.file, &hidden, CREATED_FOLDER) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            match self.folder_io(&hidden) {
                Ok(folder) if is_ours(&folder.file)? => return Ok((folder, hidden)),
                Ok(_) => {}
                // Another process removed it as a leftover before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The entries of the folder, sorted by name.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn entries(&self) -> Result<Vec<Entry>, RunError> {
        self.entries_io().map_err(RunError::io("read", &self.path))
    }

    fn entries_io(&self) -> io::Result<Vec<Entry>> {
        let mut all = Vec::new();
        for entry in Dir::read_from(&*self.file)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.kind(&name)?.unwrap_or(FileType::Unknown),
                known => known,
            };
            let (is_file, is_folder) = (kind == FileType::RegularFile, kind == FileType::Directory);
            all.push(Entry { name, is_file, is_folder });
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Removes the file or the link `name` itself.
    ///
    /// # Errors
    /// When it is a folder, is missing, or cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), RunError> {
        self.remove_io(name.as_ref()).map_err(self.failed("remove", name))
    }

    pub(crate) fn remove_io(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&*self.file, name, AtFlags::empty())?)
    }

    /// Removes the folder `name` with its contents; links in it are removed, their targets are not.
    pub(crate) fn remove_tree(&self, name: &OsStr) -> io::Result<()> {
        self.remove_within(name, DEPTH)
    }

    fn remove_within(&self, name: &OsStr, depth: usize) -> io::Result<()> {
        if depth == 0 {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let folder = self.folder_io(name)?;
        for entry in folder.entries_io()? {
            if entry.is_folder {
                folder.remove_within(&entry.name, depth - 1)?;
            } else {
                folder.remove_io(&entry.name)?;
            }
        }
        Ok(rustix::fs::unlinkat(&*self.file, name, AtFlags::REMOVEDIR)?)
    }

    /// Renames `from` to `to`, replaces a file of that name, and synchronises the folder to disk.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        rustix::fs::renameat(&*self.file, from, &*self.file, to)?;
        self.file.sync_all()
    }

    /// Exchanges the names of `one` and `other` atomically, and synchronises the folder to disk.
    pub(crate) fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
        rustix::fs::renameat_with(&*self.file, one, &*self.file, other, RenameFlags::EXCHANGE)?;
        self.file.sync_all()
    }

    /// Renames the folder `from` to `to`, if that name is free, and synchronises the parent to disk.
    pub(crate) fn rename_folder(&self, from: &OsStr, to: &OsStr) -> io::Result<bool> {
        // A rename would replace an empty folder.
        if self.kind(to)?.is_some() {
            return Ok(false);
        }
        match self.rename(from, to) {
            Ok(()) => Ok(true),
            Err(_) if matches!(self.kind(to), Ok(Some(_))) && matches!(self.kind(from), Ok(Some(_))) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Locks the folder itself, until [`FolderHandle::unlock`] or the end of the process; the error is that
    /// of [`File::try_lock`].
    pub(crate) fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }

    pub(crate) fn unlock(&self) {
        // A lock that cannot be released ends with the handle.
        let _ = self.file.unlock();
    }

    /// Removes leftovers of killed processes: files and folders under hidden names of this program that no
    /// process has locked. An entry that cannot be removed is tried again at the next call.
    pub fn sweep(&self) {
        for entry in self.entries_io().unwrap_or_default() {
            if !is_hidden(&entry.name) {
                continue;
            }
            if entry.is_file {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&*self.file, &entry.name, flags, Mode::empty()).map(File::from);
                if let Ok(file) = file
                    && file.try_lock().is_ok()
                {
                    let _ = self.remove_io(&entry.name);
                }
            } else if entry.is_folder
                && let Ok(folder) = self.folder_io(&entry.name)
                && folder.try_lock().is_ok()
            {
                let _ = self.remove_tree(&entry.name);
            }
        }
    }

    /// Removes all hidden files, and links under such names, whichever process created them. Call it only on
    /// a folder that no other process writes to.
    ///
    /// # Errors
    /// When the folder cannot be listed or something cannot be removed.
    pub fn clean(&self) -> Result<(), RunError> {
        for entry in self.entries()? {
            let name = entry.name.to_string_lossy();
            if !entry.is_folder && name.starts_with('.') && name.ends_with(SUFFIX) {
                self.remove_io(&entry.name).map_err(self.failed("remove", &entry.name))?;
            }
        }
        Ok(())
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// True if it is a regular file.
    pub is_file: bool,
    /// True if it is a folder.
    pub is_folder: bool,
}

/// Permissions of new files and folders, before the user's umask.
const CREATED: Mode = Mode::from_raw_mode(0o666);
const CREATED_FOLDER: Mode = Mode::from_raw_mode(0o777);

/// The parent folder of `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Locks a newly created file; `false` if another process removed it as a leftover before.
fn is_ours(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // Some file systems have no locks; nothing is swept there.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file.metadata()?.nlink() > 0),
    }
}

/// A hidden name for `name`: `.NAME.PROCESS-COUNT.foveate-tmp`.
fn hidden(name: &OsStr) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{}{SUFFIX}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    hidden
}

/// Returns whether a name was made by [`hidden`], in this process or another.
fn is_hidden(name: &OsStr) -> bool {
    let ours = || {
        let rest = name.to_str()?.strip_prefix('.')?.strip_suffix(SUFFIX)?;
        let (process, _) = rest.rsplit_once('.')?.1.split_once('-')?;
        process.parse::<u32>().ok()
    };
    ours().is_some()
}

fn what(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Unknown => "no regular file",
    }
}

#[cfg(test)]
mod tests;
