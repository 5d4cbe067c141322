//! A file or a block device, read and written past the page cache: a device by the system's ring, a file,
//! or where there is none, by threads. What both ways share is here.

mod buffer;
mod claim;
mod holders;
mod loops;
mod ring;
mod threads;
mod uring;
mod watch;

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::mem;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use freewheel_units::{BLOCK_BYTES, Blocks};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, ioctl_blkpbszget, ioctl_blksszget};
use rustix::io::Errno;

use self::buffer::Buffer;
use self::claim::{lock, open_past_cache, other_users};
use self::ring::Ringer;
use self::watch::Watch;
use super::{
    Abilities, Back, Backend, BackendCompletion, DeviceCommand, DeviceError, DeviceErrorKind,
    DeviceOp, kind_of_system,
};
use crate::{FreeSpace, zero_range};

pub use self::claim::{Claim, OpenError};

/// Way to ask the system for reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// By its ring (`io_uring`), which one thread of ours has.
    Uring,
    /// By a thread for each command at a time.
    Threads,
}

/// Interval at which the path of a served file is looked at.
const WATCH_EVERY: Duration = Duration::from_secs(5);

/// A file or a block device.
pub struct FileBackend {
    path: PathBuf,
    blocks: Blocks,
    opened: Arc<Opened>,
    _watch: Option<Watch>,
    trims: bool,
    commands: Mutex<Sender<DeviceCommand>>,
    ringer: Option<Ringer>,
}

/// A file that is served, however the system is asked.
struct Opened {
    file: Arc<File>,
    /// Size when it was opened.
    bytes: u64,
    sector_bytes: u32,
    physical_bytes: u32,
    is_direct: bool,
    is_device: bool,
    /// Other users of the file.
    others: Vec<String>,
    /// The file behind a loop device, locked for as long.
    _backing: Option<File>,
}

/// A command that is being done.
struct Work {
    id: u64,
    what: DeviceOp,
    /// The first byte, and how many there are that it is about.
    offset: u64,
    length: u64,
    /// Data to the file or from it.
    buffer: Buffer,
    /// The command's own, where the file takes them from elsewhere.
    data: Vec<u8>,
}

impl FileBackend {
    /// Opens it, for `at_once` commands at a time. It is written past the page cache where its file
    /// system can. Without `io` a device is read and written by the ring where the system has one and
    /// lets us, and all else by threads.
    pub fn open(
        path: &Path,
        claim: Claim,
        io: Option<Io>,
        at_once: u32,
        back: Back,
    ) -> Result<Self, OpenError> {
        let system = |source| OpenError::System { path: path.into(), source };
        let opened = Arc::new(Opened::new(path, claim)?);
        let trims = !opened.is_device || discards(&sysfs_of(&opened.file).map_err(system)?);
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
        let (path, commands) = (path.into(), Mutex::new(commands));
        Ok(Self { path, blocks, opened, _watch: None, trims, commands, ringer })
    }

    /// Device whose path is watched; `notice` is called once if the path does not lead to the file any
    /// more.
    pub fn watching(self, notice: impl FnOnce(&str) + Send + 'static) -> io::Result<Self> {
        if self.opened.is_device {
            // It has its data without a name.
            return Ok(self);
        }
        let file = Arc::downgrade(&self.opened.file);
        let watch = watch::watch(&self.path, file, WATCH_EVERY, notice)?;
        Ok(Self { _watch: Some(watch), ..self })
    }

    /// Other users when it was opened to be shared or read, as far as the system tells: mounts, swap,
    /// arrays and volumes, and the loop device of a file.
    pub fn other_users(&self) -> &[String] {
        &self.opened.others
    }

    /// True if single sectors go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.opened.is_direct
    }

    /// Room of the file system for the holes of a file, if it reports it; None for a device.
    pub fn room(&self) -> Option<FreeSpace> {
        self.opened.room()
    }

    /// Way in which the system is asked.
    pub fn io(&self) -> Io {
        if self.ringer.is_some() { Io::Uring } else { Io::Threads }
    }
}

/// A file or a block device that is written from its beginning to its end, through the page cache.
pub(crate) struct ClaimedFile {
    pub file: Arc<File>,
    /// Size of the file.
    pub bytes: u64,
    /// The file behind a loop device, locked for as long.
    _backing: Option<File>,
}

impl ClaimedFile {
    /// Opens it; nobody else writes to it meanwhile unless the claim allows that.
    pub fn open(path: &Path, claim: Claim) -> Result<Self, OpenError> {
        let Opened { file, bytes, is_direct, _backing, .. } = Opened::new(path, claim)?;
        if is_direct {
            let flags = fcntl_getfl(&file).map_err(|source| system(source, path))?;
            fcntl_setfl(&file, flags - OFlags::DIRECT).map_err(|source| system(source, path))?;
        }
        Ok(Self { file, bytes, _backing })
    }
}

fn system(source: Errno, path: &Path) -> OpenError {
    OpenError::System { path: path.into(), source: source.into() }
}

impl Opened {
    fn new(path: &Path, claim: Claim) -> Result<Self, OpenError> {
        let system = |source| OpenError::System { path: path.into(), source };
        let refused = |error: Errno| system(error.into());
        let writes = claim != Claim::Read;
        let (mut file, is_direct) = open_past_cache(path, claim)?;
        let metadata = file.metadata().map_err(system)?;
        let is_device = metadata.file_type().is_block_device();
        // The system opens it all the same, and refuses every write.
        if is_device && writes && is_read_only(&sysfs_of(&file).map_err(system)?) {
            return Err(OpenError::ReadOnly { path: path.into() });
        }
        let bytes =
            if is_device { file.seek(SeekFrom::End(0)).map_err(system)? } else { metadata.len() };
        if bytes < BLOCK_BYTES {
            return Err(OpenError::NoBlock { path: path.into(), bytes });
        }
        let (sector_bytes, physical_bytes) = if is_device {
            (ioctl_blksszget(&file).map_err(refused)?, ioctl_blkpbszget(&file).map_err(refused)?)
        } else {
            (BLOCK_BYTES as u32, BLOCK_BYTES as u32)
        };
        // Where a file system's sectors are larger, single blocks go through the page cache. The file stays
        // open: another process could claim a device in between.
        let can = is_direct && takes_single_sectors(&file, sector_bytes, bytes);
        if is_direct && !can {
            let flags = fcntl_getfl(&file).map_err(refused)?;
            fcntl_setfl(&file, flags - OFlags::DIRECT).map_err(refused)?;
        }
        let is_direct = can;
        lock(&file, path)?;
        let (others, _backing) = other_users(&file, path, claim, is_device)?;
        let file = Arc::new(file);
        let opened = Self {
            file,
            bytes,
            sector_bytes,
            physical_bytes,
            is_direct,
            is_device,
            others,
            _backing,
        };
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

    /// Err if a command must not go to the file. A write beyond the end of a truncated file would extend
    /// it, with a hole before it that reads as zeroes. A device keeps its size.
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

    /// Ends a command, and keeps its memory for another one.
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

/// The file is shorter than when it was opened.
fn cut_short() -> DeviceError {
    DeviceError {
        kind: DeviceErrorKind::Gone,
        message: "it ends before the size that it had".into(),
    }
}

/// The meaning of an error of the system; `is_inside` the size at the opening. A drive that is pulled
/// out ends like an empty file.
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

/// Folder in which the system describes this block device.
fn sysfs_of(device: &File) -> io::Result<PathBuf> {
    Ok(holders::sysfs_of(device.metadata()?.rdev()))
}

/// True if a block device takes no writes. `sysfs` is its directory, or one of its partitions.
fn is_read_only(sysfs: &Path) -> bool {
    std::fs::read_to_string(sysfs.join("ro")).is_ok_and(|says| says.trim() == "1")
}

/// True if a block device supports discards. A device without them may still make zeroes, but writes each
/// hole. `sysfs` is its directory, or one of its partitions.
fn discards(sysfs: &Path) -> bool {
    let most = std::fs::read_to_string(sysfs.join("queue/discard_max_bytes"))
        .or_else(|_| std::fs::read_to_string(sysfs.join("../queue/discard_max_bytes")));
    most.is_ok_and(|most| most.trim().parse::<u64>().is_ok_and(|most| most > 0))
}

/// True if a single sector can be read past the page cache.
fn takes_single_sectors(file: &File, sector_bytes: u32, bytes: u64) -> bool {
    let mut sector = Buffer::aligned(Vec::new(), sector_bytes as usize);
    let second = u64::from(sector_bytes);
    bytes < 2 * second || file.read_exact_at(sector.bytes_mut(), second).is_ok()
}

#[cfg(test)]
mod tests;
