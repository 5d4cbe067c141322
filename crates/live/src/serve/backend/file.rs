//! A file or a block device, by threads that read and write it past the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use freewheel_nbd::Errno;
use freewheel_units::{BLOCK_BYTES, Blocks};
use rustix::fs::{FlockOperation, OFlags, flock, ioctl_blksszget};
use thiserror::Error;

use super::{Abilities, Back, Backend, BackendCommand, CameBack, Failed, What};
use crate::holes;

/// Memory that goes to a device directly begins at a multiple of this: the largest sector.
const ALIGNMENT: usize = 4096;

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
    /// There is nothing in it.
    #[error("{}: is empty: make it as large as the drive, as with truncate --size", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// A file or a block device.
pub struct FileBackend {
    blocks: Blocks,
    sector_bytes: u32,
    is_direct: bool,
    is_device: bool,
    trims: bool,
    commands: Mutex<Sender<BackendCommand>>,
}

/// What the threads of a file share.
struct Shared {
    file: File,
    /// Its size when it was opened.
    bytes: u64,
    is_direct: bool,
    is_device: bool,
    back: Back,
}

impl FileBackend {
    /// Opens it, for `at_once` commands at a time. It is written past the page cache where its file
    /// system can.
    pub fn open(path: &Path, at_once: u32, back: Back) -> Result<Self, OpenError> {
        Self::open_for(path, true, at_once, back)
    }

    /// The same for reads alone: writes fail.
    pub fn open_to_read(path: &Path, at_once: u32, back: Back) -> Result<Self, OpenError> {
        Self::open_for(path, false, at_once, back)
    }

    /// Whether single sectors go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    fn open_for(path: &Path, writes: bool, at_once: u32, back: Back) -> Result<Self, OpenError> {
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
        let trims = !is_device || discards(&sysfs_of(metadata.rdev()));
        let bytes = match is_device {
            true => file.seek(SeekFrom::End(0)).map_err(system)?,
            false => metadata.len(),
        };
        if bytes < BLOCK_BYTES {
            return Err(OpenError::Empty { path: path.into() });
        }
        let sector_bytes = match is_device {
            true => ioctl_blksszget(&file).map_err(|error| system(error.into()))?,
            false => BLOCK_BYTES as u32,
        };
        // Where a file system's sectors are larger, single blocks go through the page cache.
        let is_direct = is_direct && takes_single_sectors(&file, sector_bytes, bytes);
        let file = if is_direct { file } else { open(OFlags::empty()).map_err(system)? };
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| OpenError::InUse { path: path.into() })?;
        let (commands, inbox) = mpsc::channel();
        let shared = Arc::new(Shared { file, bytes, is_direct, is_device, back });
        let inbox = Arc::new(Mutex::new(inbox));
        for number in 0..at_once {
            let (shared, inbox) = (Arc::clone(&shared), Arc::clone(&inbox));
            let name = format!("device {number}");
            thread::Builder::new().name(name).spawn(move || shared.work(&inbox)).map_err(system)?;
        }
        let blocks = Blocks::new(bytes / BLOCK_BYTES);
        let commands = Mutex::new(commands);
        Ok(Self { blocks, sector_bytes, is_direct, is_device, trims, commands })
    }
}

impl Backend for FileBackend {
    fn blocks(&self) -> Blocks {
        self.blocks
    }

    fn abilities(&self) -> Abilities {
        let (sector_bytes, trim) = (self.sector_bytes, self.trims);
        let write_zeroes_kept = !self.is_device;
        Abilities {
            sector_bytes,
            flush: true,
            fua: false,
            trim,
            write_zeroes: true,
            write_zeroes_kept,
        }
    }

    fn submit(&self, command: BackendCommand) {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        // Its threads live as long as the sender does.
        let _ = commands.send(command);
    }
}

impl Shared {
    /// Does commands until nobody can send any.
    fn work(&self, inbox: &Mutex<Receiver<BackendCommand>>) {
        let mut aligned = vec![0; ALIGNMENT];
        loop {
            let next = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(BackendCommand { id, what, start, mut data }) = next else { return };
            let offset = start.get() * BLOCK_BYTES;
            let is_inside = offset + data.len() as u64 <= self.bytes;
            let failed = |error| failed(&error, is_inside);
            let done = match what {
                What::Flush => self.file.sync_data().map_err(failed),
                What::Write { .. } => self.write(&data, offset, &mut aligned).map_err(failed),
                What::Read => self.read(&mut data, offset, &mut aligned).map_err(failed),
                What::Trim { blocks } => self.zero(offset, blocks, false),
                What::WriteZeroes { blocks, keep } => self.zero(offset, blocks, keep),
            };
            let at = Instant::now();
            let result = done.map(|()| data);
            (self.back)(CameBack { id, at, result });
        }
    }

    fn zero(&self, offset: u64, blocks: u64, keep: bool) -> Result<(), Failed> {
        // A device that cannot is written by the system instead, for as long as that takes.
        let may = !(self.is_device && keep);
        let zero = || holes::zero(&self.file, offset, blocks * BLOCK_BYTES, keep);
        match may && zero().map_err(|error| failed(&error, true))? {
            true => Ok(()),
            false => {
                let message = "zeroes have to be written here".into();
                Err(Failed { errno: Errno::NotSup, message })
            }
        }
    }

    fn write(&self, data: &[u8], offset: u64, aligned: &mut Vec<u8>) -> io::Result<()> {
        if !self.is_direct {
            return self.file.write_all_at(data, offset);
        }
        let room = aligned_room(aligned, data.len());
        room.copy_from_slice(data);
        self.file.write_all_at(room, offset)
    }

    fn read(&self, data: &mut [u8], offset: u64, aligned: &mut Vec<u8>) -> io::Result<()> {
        if !self.is_direct {
            return self.file.read_exact_at(data, offset);
        }
        let room = aligned_room(aligned, data.len());
        self.file.read_exact_at(room, offset)?;
        data.copy_from_slice(room);
        Ok(())
    }
}

/// What it means that the system refused; `is_inside` the size that there was at first. A drive that is
/// pulled out ends as an empty one.
fn failed(error: &io::Error, is_inside: bool) -> Failed {
    use rustix::io::Errno as System;
    if error.kind() == io::ErrorKind::UnexpectedEof && is_inside {
        let message = "it ends before the size that it had".into();
        return Failed { errno: Errno::Shutdown, message };
    }
    let errno = match System::from_io_error(error) {
        Some(System::NODEV | System::NXIO) => Errno::Shutdown,
        _ => error.raw_os_error().map_or(Errno::Io, Errno::from_linux),
    };
    Failed { errno, message: error.to_string() }
}

/// Where the system tells of the block device with this number.
fn sysfs_of(number: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    format!("/sys/dev/block/{major}:{minor}").into()
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
    let mut memory = Vec::new();
    let room = aligned_room(&mut memory, sector_bytes as usize);
    let second = u64::from(sector_bytes);
    bytes < 2 * second || file.read_exact_at(room, second).is_ok()
}

/// `length` bytes of `memory`, which grows for it, from an aligned address on.
fn aligned_room(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if memory.len() < length + ALIGNMENT {
        memory.resize(length + ALIGNMENT, 0);
    }
    let begin = memory.as_ptr().align_offset(ALIGNMENT);
    &mut memory[begin..begin + length]
}

#[cfg(test)]
mod tests {
    use freewheel_units::Lbn;

    use super::*;

    fn opened(bytes: u64) -> (FileBackend, Receiver<CameBack>, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(bytes).unwrap();
        let (tell, told) = mpsc::channel();
        let tell = Mutex::new(tell);
        let back: Back = Arc::new(move |came| tell.lock().unwrap().send(came).unwrap());
        (FileBackend::open(file.path(), 2, back).unwrap(), told, file)
    }

    #[test]
    fn what_is_written_is_read_back_at_any_block_and_is_in_the_file() {
        let (device, told, file) = opened(1 << 20);
        assert_eq!(device.blocks(), Blocks::new(2048));
        let mut id = 0;
        let mut call = |what, start: u64, data: Vec<u8>| {
            id += 1;
            device.submit(BackendCommand { id, what, start: Lbn::new(start), data });
            let came = told.recv().unwrap();
            assert_eq!(came.id, id);
            came.result.unwrap()
        };
        for (start, blocks) in [(0u64, 1usize), (3, 5), (1001, 64), (2047, 1)] {
            let data: Vec<u8> = (0..blocks * 512).map(|at| (at as u64 * 7 + start) as u8).collect();
            call(What::Write { fua: false }, start, data.clone());
            call(What::Flush, 0, Vec::new());
            assert!(call(What::Read, start, vec![0; blocks * 512]) == data, "{start}");
            let kept = std::fs::read(file.path()).unwrap();
            assert!(kept[start as usize * 512..][..data.len()] == data, "{start}");
        }
    }

    #[test]
    fn zeroes_take_no_room_unless_it_is_to_be_kept() {
        let (device, told, file) = opened(1 << 20);
        let call = |what, data: Vec<u8>| {
            device.submit(BackendCommand { id: 1, what, start: Lbn::new(256), data });
            told.recv().unwrap().result
        };
        let room_after = |what| {
            call(What::Write { fua: false }, vec![7; 1 << 19]).unwrap();
            call(What::Flush, Vec::new()).unwrap();
            match call(what, Vec::new()) {
                // A file system that does not know how.
                Err(failed) => assert_eq!(failed.errno, Errno::NotSup),
                Ok(_) => {
                    let kept = std::fs::read(file.path()).unwrap();
                    assert!(kept[(1 << 17) + 512..(1 << 19) + (1 << 17)].iter().all(|&b| b == 0));
                }
            }
            file.as_file().metadata().unwrap().blocks()
        };
        let blocks = (1 << 19) / 512;
        let kept = room_after(What::WriteZeroes { blocks, keep: true });
        assert!(kept >= 1024, "{kept} blocks of 512 B");
        assert!(room_after(What::Trim { blocks }) <= kept);
    }

    #[test]
    fn a_device_that_gives_nothing_up_is_told_by_what_the_system_says_of_it_and_its_partitions() {
        let sysfs = tempfile::tempdir().unwrap();
        let (drive, partition) = (sysfs.path().join("sda"), sysfs.path().join("sda/sda1"));
        std::fs::create_dir_all(drive.join("queue")).unwrap();
        std::fs::create_dir_all(&partition).unwrap();
        assert!(!discards(&drive), "nothing is said");
        for (most, can) in [("0\n", false), ("2147450880\n", true)] {
            std::fs::write(drive.join("queue/discard_max_bytes"), most).unwrap();
            assert_eq!((discards(&drive), discards(&partition)), (can, can), "{most}");
        }
    }

    #[test]
    fn a_read_past_the_end_fails_by_itself() {
        let (device, told, _file) = opened(1 << 20);
        let command = |id, start| BackendCommand {
            id,
            what: What::Read,
            start: Lbn::new(start),
            data: vec![0; 4096],
        };
        device.submit(command(1, 2047));
        assert!(told.recv().unwrap().result.is_err());
        device.submit(command(2, 8));
        assert!(told.recv().unwrap().result.is_ok());
    }

    #[test]
    fn a_device_that_is_gone_is_told_from_one_that_cannot_read_a_block() {
        let (device, told, file) = opened(1 << 20);
        file.as_file().set_len(4096).unwrap();
        let read = |start| {
            let (what, start) = (What::Read, Lbn::new(start));
            device.submit(BackendCommand { id: 1, what, start, data: vec![0; 4096] });
            told.recv().unwrap().result.map(drop).map_err(|failed| failed.errno)
        };
        assert_eq!(read(0), Ok(()));
        assert_eq!(read(1024), Err(Errno::Shutdown), "it had so many");
        assert_eq!(read(2047), Err(Errno::Io), "it never had");
        let says = |code| failed(&io::Error::from_raw_os_error(code), true).errno;
        let (enxio, eio, enodev) = (6, 5, 19);
        assert_eq!([enxio, eio, enodev].map(says), [Errno::Shutdown, Errno::Io, Errno::Shutdown]);
    }

    #[test]
    fn a_file_that_is_empty_or_in_use_or_missing_is_refused_with_its_name() {
        let (_device, _told, file) = opened(1 << 20);
        let back = || -> Back { Arc::new(|_| {}) };
        let error = |path: &Path| FileBackend::open(path, 1, back()).err().unwrap().to_string();
        assert!(error(file.path()).contains("another process has it open"));
        let empty = tempfile::NamedTempFile::new().unwrap();
        assert!(error(empty.path()).contains("truncate --size"));
        assert!(error(Path::new("/nowhere/at/all")).starts_with("/nowhere/at/all: "));
    }
}
