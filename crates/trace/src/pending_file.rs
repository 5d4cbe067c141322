//! Files that appear under their names when they are complete and not before.
//!
//! Goals: no half-written file stays, also after a signal that cannot be caught: the
//! file has no name until it is complete (`O_TMPFILE`).
//! Non-goals: file systems without such files (FAT, NFS, some of FUSE). There the file has a hidden name
//! from the beginning, and a program that catches signals removes it (`remove_temporary_files`). A process
//! that SIGKILL ends leaves `.XXXXXX.part` there. So it does elsewhere in the microseconds in which a
//! complete file takes the place of an older one: a file without a name can take a free name only.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use crate::temporary_names;

/// Mode of a file that anyone may read whom the umask lets.
const MODE: u32 = 0o666;

/// Mode of a file for its user alone.
const PRIVATE_MODE: u32 = 0o600;

/// The descriptors of this process as paths: by them a file without a name gets one.
const DESCRIPTORS: &str = "/proc/self/fd";

/// A file that receives its name when it is complete; dropped before that, it vanishes.
pub struct PendingFile {
    content: Content,
    target: PathBuf,
}

/// Content that is written.
enum Content {
    Unnamed(File),
    Named(NamedTempFile),
}

impl PendingFile {
    /// Starts a file that is to become `target`. The umask says who may read it.
    pub fn create(target: &Path) -> io::Result<Self> {
        Self::with_mode(target, MODE)
    }

    /// Creates a file that only this user may read.
    pub fn create_private(target: &Path) -> io::Result<Self> {
        Self::with_mode(target, PRIVATE_MODE)
    }

    fn with_mode(target: &Path, mode: u32) -> io::Result<Self> {
        check_replaceable(target)?;
        let folder = folder_of(target);
        // The name of the temporary file would not help a reader of the message.
        let plain = |error: io::Error| io::Error::new(error.kind(), reason(folder, &error));
        let content = match unnamed(folder, mode).map_err(plain)? {
            Some(file) => Content::Unnamed(file),
            None => Content::Named(named(folder, mode).map_err(plain)?),
        };
        Ok(Self { content, target: target.to_owned() })
    }

    /// Puts what was written on the disk.
    pub fn sync_all(&self) -> io::Result<()> {
        self.file().sync_all()
    }

    /// Puts it under its name, replacing what was there.
    pub fn keep(mut self) -> io::Result<()> {
        let kept = match &self.content {
            Content::Unnamed(file) => match link(file, &self.target) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    replace(file, &self.target)
                }
                linked => linked,
            },
            Content::Named(file) => std::fs::rename(file.path(), &self.target),
        };
        if let (Ok(()), Content::Named(file)) = (&kept, &mut self.content) {
            // Its hidden name is free again, and not ours to remove.
            file.disable_cleanup(true);
        }
        kept.map_err(plain_write)
    }

    fn file(&self) -> &File {
        match &self.content {
            Content::Unnamed(file) => file,
            Content::Named(file) => file.as_file(),
        }
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if let Content::Named(file) = &self.content {
            temporary_names::forget(file.path());
        }
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Its own errors name the temporary file, which would not help a reader of the message.
        self.file().write(bytes).map_err(plain_write)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush().map_err(plain_write)
    }
}

/// The folder of a file that is named so: a rename or link does not cross file systems.
fn folder_of(target: &Path) -> &Path {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A file without a name on the file system of this folder. None where there are no such files, or none
/// could be named later.
fn unnamed(folder: &Path, mode: u32) -> io::Result<Option<File>> {
    if !Path::new(DESCRIPTORS).exists() {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.write(true).mode(mode).custom_flags(OFlags::TMPFILE.bits().cast_signed());
    match options.open(folder) {
        Ok(file) => Ok(Some(file)),
        // The second is what kernels say that do not know the flag: they open a folder for writing.
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
            _ => Err(error),
        },
    }
}

/// A file with a hidden name in this folder.
fn named(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = hidden();
    builder.permissions(Permissions::from_mode(mode));
    temporary_names::make(|| builder.tempfile_in(folder), NamedTempFile::path)
}

fn hidden() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".").suffix(".part");
    builder
}

/// Gives a file without a name this name, if it is free.
fn link(file: &File, name: &Path) -> io::Result<()> {
    let descriptor = format!("{DESCRIPTORS}/{}", file.as_raw_fd());
    Ok(linkat(CWD, descriptor, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Gives a file without a name the name of another one.
fn replace(file: &File, target: &Path) -> io::Result<()> {
    let make = || hidden().make_in(folder_of(target), |name| link(file, name));
    let linked = temporary_names::make(make, NamedTempFile::path)?;
    let name = linked.path().to_owned();
    let kept = linked.persist(target).map_err(|error| error.error);
    temporary_names::forget(&name);
    kept
}

/// Err for a folder or a device: the new file would take its place, or not get its name in the end.
fn check_replaceable(target: &Path) -> io::Result<()> {
    let is_folder_name = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let (kind, says) = match target.metadata() {
        _ if is_folder_name || target.is_dir() => {
            (ErrorKind::IsADirectory, "is a folder, not a file: give the name of a file in it")
        }
        Ok(there) if !there.is_file() => (
            ErrorKind::InvalidInput,
            "is a device or a pipe, which cannot be replaced by a file: give the name of a file",
        ),
        _ => return Ok(()),
    };
    Err(io::Error::new(kind, says))
}

fn reason(folder: &Path, error: &io::Error) -> String {
    let name = folder.display();
    match error.kind() {
        ErrorKind::NotFound if !folder.exists() => {
            format!("there is no folder {name}: create it, or choose another")
        }
        ErrorKind::NotADirectory => format!("{name} is not a folder: choose another"),
        ErrorKind::PermissionDenied => {
            format!("you are not permitted to write in the folder {name}: choose another")
        }
        kind => format!("cannot write in the folder {name}: {kind}: choose another"),
    }
}

/// Error of the system about a file that is being written, in words with the way out; of the same kind.
fn plain_write(error: io::Error) -> io::Error {
    let says = match error.kind() {
        ErrorKind::StorageFull => {
            "the file system is full: make room, or write to another; nothing of it remains"
        }
        ErrorKind::QuotaExceeded => {
            "your quota is used up: make room, or write to another file system; nothing of it remains"
        }
        ErrorKind::FileTooLarge => {
            "the file would be larger than is allowed here (`ulimit -f`); nothing of it remains"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), says)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn folder_missing_told_from_non_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (missing, file) = (folder.path().join("missing"), folder.path().join("file"));
        fs::write(&file, "").unwrap();
        let reason = |folder: &Path| match PendingFile::create(&folder.join("x.csv")) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{} is no folder", folder.display()),
        };
        let named = |folder: &Path| format!("there is no folder {}: create it", folder.display());
        assert!(reason(&missing).starts_with(&named(&missing)), "{}", reason(&missing));
        let none = format!("{} is not a folder: choose another", file.display());
        assert_eq!(reason(&file), none);
        assert_eq!(count(folder.path()), 1);
    }

    #[test]
    fn pending_file_named_only_when_complete() {
        let folder = tempfile::tempdir().unwrap();
        if unnamed(folder.path(), MODE).unwrap().is_none() {
            eprintln!("skipped: {} has no O_TMPFILE", folder.path().display());
            return;
        }
        let target = folder.path().join("out");
        for (text, there) in [("first", 0), ("second", 1)] {
            let mut file = PendingFile::create(&target).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            assert_eq!(count(folder.path()), there);
            file.keep().unwrap();
            assert_eq!(
                (count(folder.path()), fs::read_to_string(&target).unwrap()),
                (1, text.into())
            );
        }
        // A link is replaced, and its target is not written.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        PendingFile::create(&link).unwrap().keep().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "second");
        assert_eq!((count(folder.path()), fs::read(&link).unwrap().len()), (2, 0));
    }

    #[test]
    fn private_file_mode_apart_from_umask() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |file: PendingFile| {
            let target = file.target.clone();
            file.keep().unwrap();
            fs::metadata(target).unwrap().permissions().mode() & 0o777
        };
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        let usual = fs::metadata(&plain).unwrap().permissions().mode() & 0o777;
        let target = folder.path().join("out");
        assert_eq!(mode(PendingFile::create_private(&target).unwrap()), 0o600);
        assert_eq!(mode(PendingFile::create(&target).unwrap()), usual);
    }

    #[test]
    fn named_file_removed_unless_complete() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        let start = || {
            let content = Content::Named(named(folder.path(), MODE).unwrap());
            PendingFile { content, target: target.clone() }
        };
        drop(start());
        assert_eq!(count(folder.path()), 0);
        start().keep().unwrap();
        assert!(count(folder.path()) == 1 && target.exists());
    }
}
