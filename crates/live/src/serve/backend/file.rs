//! A file or a block device, read and written past the page cache: a device by the system's ring, a file,
//! or where there is none, by threads. What both ways share is here.

mod buffer;
mod ring;
mod threads;
mod uring;

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::mem;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes};
use rustix::fs::{FlockOperation, OFlags, flock, ioctl_blkpbszget, ioctl_blksszget};
use thiserror::Error;

use self::buffer::Buffer;
use self::ring::Ringer;
use super::{
    Abilities, Back, Backend, BackendCompletion, DeviceCommand, DeviceError, DeviceErrorKind,
    DeviceOp, kind_of_system,
};
use crate::{FreeSpace, zero_range};

/// Why a file or device cannot be served.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system refuses.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody else has it.
    #[error("{}: another process has it open for itself", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The ring is wanted, and the system has none or refuses it.
    #[error(
        "{}: the system gives no io_uring ({source}; see kernel.io_uring_disabled, and what a \
         container may do): leave --io away, or give --io threads",
        path.display()
    )]
    NoRing {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It takes no writes.
    #[error(
        "{}: the device is read-only, and it is to be written: have the system offer it for writing \
         (blockdev --setrw, losetup without --read-only, the write protection of a card or drive)",
        path.display()
    )]
    ReadOnly {
        /// The device.
        path: PathBuf,
    },
    /// Nothing can be written to its holes.
    #[error(
        "{}: its file system has no room left, and writes to the file's holes may take {}: make room, \
         or move the file to another (cp --sparse=always)",
        path.display(),
        wanted.human_decimal()
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// What its holes may take.
        wanted: Bytes,
    },
    /// There is no whole block in it.
    #[error(
        "{}: has {bytes} B, and a drive has blocks of 512 B: make the file as large as the drive, as \
         with truncate --size",
        path.display()
    )]
    NoBlock {
        /// The file.
        path: PathBuf,
        /// What it has.
        bytes: u64,
    },
}

/// How the system is asked to read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// By its ring (`io_uring`), which one thread of ours has.
    Uring,
    /// By a thread for each command at a time.
    Threads,
}

/// A file or a block device.
pub struct FileBackend {
    blocks: Blocks,
    opened: Arc<Opened>,
    trims: bool,
    commands: Mutex<Sender<DeviceCommand>>,
    ringer: Option<Ringer>,
}

/// A file that is served, however the system is asked.
struct Opened {
    file: Arc<File>,
    /// Its size when it was opened.
    bytes: u64,
    sector_bytes: u32,
    physical_bytes: u32,
    is_direct: bool,
    is_device: bool,
}

/// A command that is being done.
struct Work {
    id: u64,
    what: DeviceOp,
    /// The first byte, and how many there are that it is about.
    offset: u64,
    length: u64,
    /// What goes to the file or comes from it.
    buffer: Buffer,
    /// The command's own, where the file takes them from elsewhere.
    data: Vec<u8>,
}

impl FileBackend {
    /// Opens it, for `at_once` commands at a time. It is written past the page cache where its file
    /// system can. Without `io` a device is read and written by the ring where the system has one and
    /// lets us, and all else by threads.
    pub fn open(path: &Path, io: Option<Io>, at_once: u32, back: Back) -> Result<Self, OpenError> {
        Self::open_for(path, true, io, at_once, back)
    }

    /// The same for reads alone: writes fail.
    pub fn open_to_read(
        path: &Path,
        io: Option<Io>,
        at_once: u32,
        back: Back,
    ) -> Result<Self, OpenError> {
        Self::open_for(path, false, io, at_once, back)
    }

    /// Whether single sectors go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.opened.is_direct
    }

    /// What its file system has for the holes of a file, if it says so; None for a device.
    pub fn room(&self) -> Option<FreeSpace> {
        self.opened.room()
    }

    /// How the system is asked.
    pub fn io(&self) -> Io {
        if self.ringer.is_some() { Io::Uring } else { Io::Threads }
    }

    fn open_for(
        path: &Path,
        writes: bool,
        io: Option<Io>,
        at_once: u32,
        back: Back,
    ) -> Result<Self, OpenError> {
        let system = |source| OpenError::System { path: path.into(), source };
        let opened = Arc::new(Opened::new(path, writes)?);
        let trims = !opened.is_device || discards(&sysfs_of(opened.file.as_ref()).map_err(system)?);
        let blocks = Blocks::new(opened.bytes / BLOCK_BYTES);
        let by_ring = match io {
            Some(Io::Threads) => None,
            Some(Io::Uring) => Some(
                ring::start(&opened, at_once, &back)
                    .map_err(|source| OpenError::NoRing { path: path.into(), source })?,
            ),
            // A file system has writes of the ring done by a thread of the system all the same.
            None if !opened.is_device => None,
            None => ring::start(&opened, at_once, &back).ok(),
        };
        let (commands, ringer) = match by_ring {
            Some((commands, ringer)) => (commands, Some(ringer)),
            None => (threads::start(&opened, at_once, &back).map_err(system)?, None),
        };
        Ok(Self { blocks, opened, trims, commands: Mutex::new(commands), ringer })
    }
}

impl Opened {
    fn new(path: &Path, writes: bool) -> Result<Self, OpenError> {
        let system = |source| OpenError::System { path: path.into(), source };
        let open = |flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(writes).custom_flags(flags.bits() as i32).open(path)
        };
        let (mut file, is_direct) = match open(OFlags::DIRECT) {
            Ok(file) => (file, true),
            // tmpfs and a few others know no direct access.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                (open(OFlags::empty()).map_err(system)?, false)
            }
            Err(error) => return Err(system(error)),
        };
        let metadata = file.metadata().map_err(system)?;
        let is_device = metadata.file_type().is_block_device();
        // The system opens it all the same, and refuses every write.
        if is_device && writes && is_read_only(&sysfs_of(&file).map_err(system)?) {
            return Err(OpenError::ReadOnly { path: path.into() });
        }
        let bytes = match is_device {
            true => file.seek(SeekFrom::End(0)).map_err(system)?,
            false => metadata.len(),
        };
        if bytes < BLOCK_BYTES {
            return Err(OpenError::NoBlock { path: path.into(), bytes });
        }
        let refused = |error: rustix::io::Errno| system(error.into());
        let (sector_bytes, physical_bytes) = match is_device {
            true => (
                ioctl_blksszget(&file).map_err(refused)?,
                ioctl_blkpbszget(&file).map_err(refused)?,
            ),
            false => (BLOCK_BYTES as u32, BLOCK_BYTES as u32),
        };
        // Where a file system's sectors are larger, single blocks go through the page cache.
        let is_direct = is_direct && takes_single_sectors(&file, sector_bytes, bytes);
        let file = if is_direct { file } else { open(OFlags::empty()).map_err(system)? };
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| OpenError::InUse { path: path.into() })?;
        let file = Arc::new(file);
        let opened = Self { file, bytes, sector_bytes, physical_bytes, is_direct, is_device };
        match opened.room().filter(|room| writes && room.is_used_up()) {
            Some(FreeSpace { wanted, .. }) => Err(OpenError::NoRoom { path: path.into(), wanted }),
            None => Ok(opened),
        }
    }

    fn room(&self) -> Option<FreeSpace> {
        if self.is_device { None } else { FreeSpace::for_holes(&self.file) }
    }

    /// Lays a command out for the file, in memory of `spare` where it needs some. What the file cannot
    /// do comes back at once.
    fn begin(
        &self,
        command: DeviceCommand,
        spare: &mut Vec<Vec<u8>>,
    ) -> Result<Work, BackendCompletion> {
        let DeviceCommand { id, what, start, data } = command;
        let length = match what {
            DeviceOp::Trim { blocks } | DeviceOp::WriteZeroes { blocks, .. } => {
                blocks * BLOCK_BYTES
            }
            DeviceOp::Read | DeviceOp::Write { .. } | DeviceOp::Flush => data.len() as u64,
        };
        if let Err(failed) = self.is_still_whole(what) {
            return Err(BackendCompletion { id, at: Instant::now(), result: Err(failed) });
        }
        let offset = start.get() * BLOCK_BYTES;
        let mut work = Work { id, what, offset, length, buffer: Buffer::default(), data };
        // A device that cannot is written by the system instead, for as long as that takes.
        if self.is_device && work.keeps_room() {
            return Err(BackendCompletion {
                id,
                at: Instant::now(),
                result: Err(zeroes_are_to_be_written()),
            });
        }
        if !self.is_direct {
            work.buffer = Buffer::of(mem::take(&mut work.data));
        } else if !work.data.is_empty() {
            work.buffer = Buffer::aligned(spare.pop().unwrap_or_default(), work.data.len());
            if matches!(what, DeviceOp::Write { .. }) {
                work.buffer.bytes_mut().copy_from_slice(&work.data);
            }
        }
        Ok(work)
    }

    /// Whether a command may be given to the file. A file that was cut short would grow again by a write
    /// behind its end, with a hole before it that reads as zeroes. A device has a size of its own.
    fn is_still_whole(&self, what: DeviceOp) -> Result<(), DeviceError> {
        if self.is_device || what == DeviceOp::Read {
            return Ok(());
        }
        match self.file.metadata() {
            Ok(metadata) if metadata.len() < self.bytes => Err(cut_short()),
            // The command itself will tell.
            _ => Ok(()),
        }
    }

    /// What a command has come to, and its memory for another one.
    fn end(
        &self,
        work: Work,
        at: Instant,
        done: io::Result<()>,
        spare: &mut Vec<Vec<u8>>,
    ) -> BackendCompletion {
        let Work { id, what, offset, length, buffer, mut data } = work;
        if !self.is_direct {
            data = buffer.into_memory();
        } else if !data.is_empty() {
            if what == DeviceOp::Read && done.is_ok() {
                data.copy_from_slice(buffer.bytes());
            }
            spare.push(buffer.into_memory());
        }
        let is_inside = offset + length <= self.bytes;
        let erases = matches!(what, DeviceOp::Trim { .. } | DeviceOp::WriteZeroes { .. });
        let result = match done {
            Ok(()) => Ok(data),
            Err(error) if erases && zero_range::are_unknown(&error) => {
                Err(zeroes_are_to_be_written())
            }
            Err(error) => Err(failed(&error, is_inside)),
        };
        BackendCompletion { id, at, result }
    }
}

impl Work {
    /// Zeroes for which room is to be kept.
    fn keeps_room(&self) -> bool {
        matches!(self.what, DeviceOp::WriteZeroes { keep: true, .. })
    }
}

fn zeroes_are_to_be_written() -> DeviceError {
    DeviceError {
        kind: DeviceErrorKind::NotSupported,
        message: "zeroes have to be written here".into(),
    }
}

impl Backend for FileBackend {
    fn blocks(&self) -> Blocks {
        self.blocks
    }

    fn abilities(&self) -> Abilities {
        let Opened { sector_bytes, physical_bytes, is_device, .. } = *self.opened;
        let (trim, write_zeroes_kept) = (self.trims, !is_device);
        Abilities {
            sector_bytes,
            physical_bytes,
            flush: true,
            fua: false,
            trim,
            write_zeroes: true,
            write_zeroes_kept,
        }
    }

    fn submit(&self, command: DeviceCommand) {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        // Its threads live as long as the sender does.
        let _ = commands.send(command);
        if let Some(ringer) = &self.ringer {
            ringer.sent();
        }
    }
}

/// The file is not what it was when it was opened.
fn cut_short() -> DeviceError {
    DeviceError {
        kind: DeviceErrorKind::Gone,
        message: "it ends before the size that it had".into(),
    }
}

/// What it means that the system refused; `is_inside` the size that there was at first. A drive that is
/// pulled out ends as an empty one.
fn failed(error: &io::Error, is_inside: bool) -> DeviceError {
    use rustix::io::Errno as System;
    if error.kind() == io::ErrorKind::UnexpectedEof && is_inside {
        return cut_short();
    }
    let kind = match System::from_io_error(error) {
        Some(System::NODEV | System::NXIO) => DeviceErrorKind::Gone,
        _ => kind_of_system(error),
    };
    DeviceError { kind, message: error.to_string() }
}

/// Where the system tells of this block device.
fn sysfs_of(device: &File) -> io::Result<PathBuf> {
    let number = device.metadata()?.rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    Ok(format!("/sys/dev/block/{major}:{minor}").into())
}

/// Whether a block device takes no writes. `sysfs` is its directory, or one of its partitions.
fn is_read_only(sysfs: &Path) -> bool {
    std::fs::read_to_string(sysfs.join("ro")).is_ok_and(|says| says.trim() == "1")
}

/// Whether a block device can give blocks up: one that cannot may still make zeroes by itself, and takes
/// as long for a hole as if they were written. `sysfs` is its directory, or one of its partitions.
fn discards(sysfs: &Path) -> bool {
    let of = |file: &str| std::fs::read_to_string(sysfs.join(file));
    let most = of("queue/discard_max_bytes").or_else(|_| of("../queue/discard_max_bytes"));
    most.is_ok_and(|most| most.trim().parse::<u64>().is_ok_and(|most| most > 0))
}

/// Whether a sector can be read by itself past the page cache.
fn takes_single_sectors(file: &File, sector_bytes: u32, bytes: u64) -> bool {
    let mut sector = Buffer::aligned(Vec::new(), sector_bytes as usize);
    let second = u64::from(sector_bytes);
    bytes < 2 * second || file.read_exact_at(sector.bytes_mut(), second).is_ok()
}

#[cfg(test)]
mod tests;
