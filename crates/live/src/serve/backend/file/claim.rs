//! Opening a file or a block device against all other writers.
//!
//! A file is locked, which keeps other servers off. A block device is opened exclusively besides: the system
//! then refuses every other who asks so, as `mkfs`, `mount` and `mdadm` do, by whichever node. The file
//! behind a loop device is the same data under another name, and is locked with it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use freewheel_units::Bytes;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use thiserror::Error;

use super::{holders, loops};

/// Reasons why a file or device cannot be served.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum OpenError {
    #[error("{}: {source}", path.display())]
    System { path: PathBuf, source: io::Error },
    /// Somebody else has it.
    #[error(
        "{}: another process has it open for itself, as a server has: end that one first; \
         --shared-device does not override a server's lock",
        path.display()
    )]
    InUse { path: PathBuf },
    /// The system has it in use, or another program has claimed it.
    #[error(
        "{}: is in use ({}): two that write to it destroy its data; release it first, or open it all \
         the same with --shared-device",
        path.display(), by.join(", ")
    )]
    Busy {
        /// The device, or the file behind a loop device.
        path: PathBuf,
        /// Users of the device, as far as is known.
        by: Vec<String>,
    },
    /// The ring is wanted, and the system has none or refuses it.
    #[error(
        "{}: the system gives no io_uring ({source}; see kernel.io_uring_disabled, and what a \
         container may do): leave --io away, or give --io threads",
        path.display()
    )]
    NoRing { path: PathBuf, source: io::Error },
    /// The device takes no writes.
    #[error(
        "{}: the device is read-only, and it is to be written: have the system offer it for writing \
         (blockdev --setrw, losetup without --read-only, the write protection of a card or drive)",
        path.display()
    )]
    ReadOnly { path: PathBuf },
    /// The file system is full or read-only for the file's holes.
    #[error(
        "{}: its file system has no room left, and writes to the file's holes may take {}: make room, \
         or move the file to another (cp --sparse=always)",
        path.display(),
        wanted.human_decimal()
    )]
    NoRoom {
        path: PathBuf,
        /// Room that the holes may take.
        wanted: Bytes,
    },
    /// There is no whole block in it.
    #[error(
        "{}: has {bytes} B, and a drive has blocks of 512 B: make the file as large as the drive, as \
         with truncate --size",
        path.display()
    )]
    NoBlock { path: PathBuf, bytes: u64 },
}

/// Way to open a file or a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// To read and write it, as the only one: a device that is mounted, part of an array or volume, or claimed
    /// by another program is refused, and the system refuses such uses from then on.
    Exclusive,
    /// To read and write it beside its other users.
    Shared,
    /// To read it.
    Read,
}

/// Opens a file or device past the page cache; false if its file system knows only the cache.
pub(super) fn open_past_cache(path: &Path, claim: Claim) -> Result<(File, bool), OpenError> {
    let exclusive = exclusive(path, claim);
    let open = |flags: OFlags| {
        let mut options = OpenOptions::new();
        options.read(true).write(claim != Claim::Read);
        let file = options.custom_flags((flags | exclusive).bits().cast_signed()).open(path)?;
        // A path may have become that of a device after it was looked at.
        let is_device = file.metadata()?.file_type().is_block_device();
        if claim == Claim::Exclusive && is_device && exclusive.is_empty() {
            Err(io::Error::from(Errno::BUSY))
        } else {
            Ok(file)
        }
    };
    let opened = match open(OFlags::DIRECT) {
        Ok(file) => Ok((file, true)),
        // tmpfs and a few others know no direct access.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            open(OFlags::empty()).map(|file| (file, false))
        }
        Err(error) => Err(error),
    };
    opened.map_err(|error| refused(path, error))
}

/// The flag by which the system refuses a second exclusive user of a device, as it does mkfs and mount
/// afterwards: whichever of its nodes, partitions or its disk they are given. Its meaning for others than
/// devices is not defined (open(2)).
fn exclusive(path: &Path, claim: Claim) -> OFlags {
    let is_device = fs::metadata(path).is_ok_and(|there| there.file_type().is_block_device());
    if claim == Claim::Exclusive && is_device { OFlags::EXCL } else { OFlags::empty() }
}

/// Error for a file or device that was not opened.
fn refused(path: &Path, error: io::Error) -> OpenError {
    let path = path.to_owned();
    match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => {
            let number = fs::metadata(&path).map_or(0, |metadata| metadata.rdev());
            OpenError::Busy { path, by: known(holders::holders(number)) }
        }
        Some(Errno::TXTBSY) => {
            OpenError::Busy { path, by: vec!["the system swaps to it, or runs it".into()] }
        }
        _ => OpenError::System { path, source: error },
    }
}

/// Known holders, or possible ones.
fn known(holders: Vec<String>) -> Vec<String> {
    if holders.is_empty() {
        vec!["by another program that has claimed it, as a server does".into()]
    } else {
        holders
    }
}

/// Keeps other servers off.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), OpenError> {
    let locked = flock(file, FlockOperation::NonBlockingLockExclusive);
    locked.map_err(|_| OpenError::InUse { path: path.into() })
}

/// Other users of a file or device, which is an error for exclusive use; and the file behind a loop device,
/// locked, so that no server has the same data by that name.
pub(super) fn other_users(
    file: &File,
    path: &Path,
    claim: Claim,
    is_device: bool,
) -> Result<(Vec<String>, Option<File>), OpenError> {
    if !is_device {
        let behind = loops::loop_of(file);
        let by: Vec<String> =
            behind.iter().map(|device| format!("behind {}", device.display())).collect();
        return if claim == Claim::Exclusive && !by.is_empty() {
            Err(OpenError::Busy { path: path.into(), by })
        } else {
            Ok((by, None))
        };
    }
    let number =
        file.metadata().map_err(|source| OpenError::System { path: path.into(), source })?.rdev();
    // Who claims it exclusively would have been refused.
    let others = match claim {
        Claim::Exclusive => Vec::new(),
        Claim::Shared | Claim::Read => holders::holders(number),
    };
    let Some(behind) = loops::backing_of(&holders::sysfs_of(number)) else {
        return Ok((others, None));
    };
    if claim == Claim::Read {
        return Ok((others, None));
    }
    match loops::open_backing(&behind, exclusive(&behind, claim)) {
        Ok(backing) => {
            lock(&backing, &behind)?;
            Ok((others, Some(backing)))
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(refused(&behind, error)),
        // One that this process cannot reach, as in another container, is not locked.
        Err(_) => Ok((others, None)),
    }
}
