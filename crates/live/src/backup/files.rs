//! The files of a copy: their names, and that none of them takes the place of another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
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

/// What is in it.
pub fn record(out: &Path) -> PathBuf {
    with(out, ".partial.manifest")
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

/// Opens the file in which the copy is made, for this process alone.
pub fn open_partial(path: &Path) -> Result<File, BackupError> {
    let system = |source| BackupError::System { path: path.into(), source };
    let mut options = OpenOptions::new();
    // The data may belong to any user of the drive: only the owner of the backup may read them.
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    // To follow a link would be to write over a file of another name.
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => BackupError::Foreign { path: path.into() },
        _ => system(error),
    })?;
    if !file.metadata().map_err(system)?.is_file() {
        return Err(BackupError::Foreign { path: path.into() });
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| BackupError::InUse { path: path.into() })?;
    Ok(file)
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
fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Puts the names in the folder of a file on the disk.
pub fn sync_folder(path: &Path) -> Result<(), BackupError> {
    let synced = File::open(folder(path)).and_then(|folder| folder.sync_all());
    synced.map_err(|source| BackupError::System { path: folder(path).into(), source })
}

/// Writes a file anew, as a whole or not at all.
pub fn replace(path: &Path, text: &str) -> Result<(), BackupError> {
    let written = || {
        let mut file = tempfile::NamedTempFile::new_in(folder(path))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    written().map_err(|source| BackupError::System { path: path.into(), source })?;
    sync_folder(path)
}
