//! Files of this user, in folders in which others may make files too.
//!
//! Goals: no data go into a file that another user made or reads, and none of another is believed.
//! Non-goals: folders whose owner is not to be trusted: a file there can be renamed or removed at any time.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use thiserror::Error;

/// Rights of users other than the owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Nothing: its data are the owner's alone.
    Nothing,
    /// Read it: its data are no secret, but must be the owner's.
    Read,
}

/// Reasons why an existing file does not count as this user's own.
#[derive(Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum NotOwn {
    /// A link, which may lead anywhere, or no file at all.
    #[error("is a link, a folder, a pipe or a device, and no file")]
    NoFile,
    /// Another user made it, and may have it open.
    #[error("belongs to user {owner}, and this is user {user}")]
    OtherUser {
        owner: u32,
        /// Number of the user of this process.
        user: u32,
    },
    /// Other users may open it.
    #[error("has the mode {mode:04o}, so that other users may open it")]
    Shared {
        /// Permissions of the file.
        mode: u32,
    },
    /// The file has another name, at which it is meant for something else, or none any more.
    #[error("has {names} names (hard links) instead of one")]
    Linked { names: u64 },
}

impl From<NotOwn> for io::Error {
    fn from(error: NotOwn) -> Self {
        Self::new(ErrorKind::PermissionDenied, error)
    }
}

/// Opens a file that is there, to read and if `writes` also to write it, if it is this user's own; Err with
/// a [`NotOwn`] if not. What is checked is the open file, so that no process can exchange it between the check
/// and its use.
pub fn open_own(path: &Path, writes: bool, others: Others) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(writes);
    // No link is followed; a pipe without a writer is not waited for.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    let file = options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => NotOwn::NoFile.into(),
        _ => error,
    })?;
    check_own(&file, others)?;
    Ok(file)
}

/// Err for an open file that is not this user's own, or that others may use.
fn check_own(file: &File, others: Others) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(NotOwn::NoFile.into());
    }
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user {
        return Err(NotOwn::OtherUser { owner, user }.into());
    }
    let mode = metadata.mode() & 0o7777;
    let forbidden = match others {
        Others::Nothing => 0o077,
        Others::Read => 0o022,
    };
    if mode & forbidden != 0 {
        return Err(NotOwn::Shared { mode }.into());
    }
    match metadata.nlink() {
        1 => Ok(()),
        names => Err(NotOwn::Linked { names }.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn not_own<T: std::fmt::Debug>(opened: io::Result<T>) -> NotOwn {
        opened.unwrap_err().downcast().unwrap()
    }

    #[test]
    fn own_file_is_private_single_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(&path, "").unwrap();
        mode(0o600);
        open_own(&path, true, Others::Nothing).unwrap();
        for (bits, others, is_own) in [
            (0o644, Others::Nothing, false),
            (0o644, Others::Read, true),
            (0o620, Others::Read, false),
            (0o602, Others::Read, false),
        ] {
            mode(bits);
            assert_eq!(open_own(&path, true, others).is_ok(), is_own, "{bits:o} {others:?}");
        }
        mode(0o600);
        let second = folder.path().join("second");
        fs::hard_link(&path, &second).unwrap();
        let why = |path: &Path| not_own(open_own(path, true, Others::Nothing));
        assert_eq!(why(&path), NotOwn::Linked { names: 2 });
        fs::remove_file(&second).unwrap();
        symlink(&path, &second).unwrap();
        for no_file in [&second, &folder.path().to_owned()] {
            assert_eq!(why(no_file), NotOwn::NoFile);
        }
        let removed = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(not_own(check_own(&removed, Others::Read)), NotOwn::Linked { names: 0 });
    }

    #[test]
    fn own_file_of_another_user_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            let why = not_own(open_own(&path, true, Others::Read));
            assert!(matches!(why, NotOwn::OtherUser { owner: 65_534, .. }), "{why}");
            return;
        }
        // Every user can read this file, and no user but root owns it.
        let why = not_own(open_own("/etc/passwd".as_ref(), false, Others::Read));
        assert!(matches!(why, NotOwn::OtherUser { owner: 0, .. }), "{why}");
    }
}
