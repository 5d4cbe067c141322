//! A file or a block device, by threads that read and write it past the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use freewheel_nbd::Errno;
use freewheel_units::{BLOCK_BYTES, Blocks, Op};
use rustix::fs::{FlockOperation, OFlags, flock};
use thiserror::Error;

use super::{Back, Backend, BackendCommand, CameBack, Failed};

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
    commands: Mutex<Sender<BackendCommand>>,
}

/// What the threads of a file share.
struct Shared {
    file: File,
    is_direct: bool,
    back: Back,
}

impl FileBackend {
    /// Opens it, for `at_once` commands at a time. It is written past the page cache where its file
    /// system can.
    pub fn open(path: &Path, at_once: u32, back: Back) -> Result<Self, OpenError> {
        let system = |source| OpenError::System { path: path.into(), source };
        let open = |flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(flags.bits() as i32).open(path)
        };
        let (mut file, is_direct) = match open(OFlags::DIRECT) {
            Ok(file) => (file, true),
            // tmpfs and a few others know no direct access.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                (open(OFlags::empty()).map_err(system)?, false)
            }
            Err(error) => return Err(system(error)),
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| OpenError::InUse { path: path.into() })?;
        let is_device = file.metadata().map_err(system)?.file_type().is_block_device();
        let bytes = match is_device {
            true => file.seek(SeekFrom::End(0)).map_err(system)?,
            false => file.metadata().map_err(system)?.len(),
        };
        if bytes < BLOCK_BYTES {
            return Err(OpenError::Empty { path: path.into() });
        }
        let (commands, inbox) = mpsc::channel();
        let shared = Arc::new(Shared { file, is_direct, back });
        let inbox = Arc::new(Mutex::new(inbox));
        for number in 0..at_once {
            let (shared, inbox) = (Arc::clone(&shared), Arc::clone(&inbox));
            let name = format!("device {number}");
            thread::Builder::new().name(name).spawn(move || shared.work(&inbox)).map_err(system)?;
        }
        let blocks = Blocks::new(bytes / BLOCK_BYTES);
        Ok(Self { blocks, commands: Mutex::new(commands) })
    }
}

impl Backend for FileBackend {
    fn blocks(&self) -> Blocks {
        self.blocks
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
            let Ok(BackendCommand { id, op, start, mut data }) = next else { return };
            let offset = start.get() * BLOCK_BYTES;
            let done = match op {
                Op::Flush => self.file.sync_data(),
                Op::Write => self.write(&data, offset, &mut aligned),
                _ => self.read(&mut data, offset, &mut aligned),
            };
            let at = Instant::now();
            let result = done.map(|()| data).map_err(|error| Failed {
                errno: error.raw_os_error().map_or(Errno::Io, Errno::from_linux),
                message: error.to_string(),
            });
            (self.back)(CameBack { id, at, result });
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

/// `length` bytes of `memory`, which grows for it, from an aligned address on.
fn aligned_room(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if memory.len() < length + ALIGNMENT {
        memory.resize(length + ALIGNMENT, 0);
    }
    let begin = memory.as_ptr().align_offset(ALIGNMENT);
    &mut memory[begin..begin + length]
}
