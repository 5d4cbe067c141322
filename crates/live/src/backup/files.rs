//! The files of a copy: their names, and that none of them takes the place of another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use freewheel_trace::{NotOwn, Others, PendingFile, open_own};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use super::error::BackupError;

fn with(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The copy while it is made.
pub fn partial(out: &Path) -> PathBuf {
    with(out, ".partial")
}

/// Path of the record of a copy at `out`.
pub fn record(out: &Path) -> PathBuf {
    with(out, ".partial.manifest")
}

/// A file while a backup is restored to it.
pub fn restoring(out: &Path) -> PathBuf {
    with(out, ".restoring")
}

/// The checksums of a copy.
pub fn manifest_of(out: &Path) -> PathBuf {
    with(out, ".manifest")
}

/// That neither the copy nor its manifest would take the name of a file.
pub fn ensure_free(out: &Path) -> Result<(), BackupError> {
    for path in [out.to_path_buf(), manifest_of(out)] {
        match path.symlink_metadata() {
            Ok(_) => return Err(BackupError::Exists { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(BackupError::System { path, source }),
        }
    }
    Ok(())
}

/// Opens the file in which the copy is made, for this process alone; true if it is a new one. The data may
/// belong to any user of the drive, so only the owner of the backup may have it open.
pub fn open_partial(path: &Path) -> Result<(File, bool), BackupError> {
    let system = |source| BackupError::System { path: path.into(), source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let (file, is_new) = match options.open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            (open_own(path, true, Others::Nothing).map_err(|error| not_own(path, error))?, false)
        }
        Err(error) => return Err(system(error)),
    };
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| in_use(path))?;
    // The one that had it locked may have removed it, or a new one have been taken by another process.
    match file.metadata().map_err(system)?.nlink() {
        1 => Ok((file, is_new)),
        _ => Err(in_use(path)),
    }
}

fn in_use(path: &Path) -> BackupError {
    BackupError::InUse { path: path.into() }
}

/// Text of a copy's record; None if there is none. That of another user is not believed.
pub fn read_record(path: &Path) -> Result<Option<String>, BackupError> {
    let mut file = match open_own(path, false, Others::Nothing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| not_own(path, error))?,
    };
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    read.map_err(|source| BackupError::System { path: path.into(), source })?;
    Ok(Some(text))
}

fn not_own(path: &Path, error: io::Error) -> BackupError {
    let path = path.into();
    match error.downcast::<NotOwn>() {
        Ok(source) => BackupError::NotOwn { path, source },
        Err(source) => BackupError::System { path, source },
    }
}

/// Renames a file, unless there is one of that name.
pub fn give_name(from: &Path, to: &Path) -> Result<(), BackupError> {
    let system = |source| BackupError::System { path: to.into(), source };
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(BackupError::Exists { path: to.into() }),
        // A file system that cannot refuse: the name was free a moment ago.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to).map_err(system),
        renamed => renamed.map_err(|error| system(error.into())),
    }
}

/// The folder in which a file is.
pub fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Puts the names in the folder of a file on the disk.
pub fn sync_folder(path: &Path) -> Result<(), BackupError> {
    let synced = File::open(folder(path)).and_then(|folder| folder.sync_all());
    synced.map_err(|source| BackupError::System { path: folder(path).into(), source })
}

/// Writes a file anew, for this user alone, as a whole or not at all.
pub fn replace(path: &Path, text: &str) -> Result<(), BackupError> {
    let written = || {
        let mut file = PendingFile::create_private(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        file.keep()
    };
    written().map_err(|source| BackupError::System { path: path.into(), source })?;
    sync_folder(path)
}
