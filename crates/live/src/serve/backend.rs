//! What commands go to.

mod emulated;
mod file;
mod nbd;

use std::sync::Arc;
use std::time::Instant;

use freewheel_nbd::Errno;
use freewheel_units::{BLOCK_BYTES, Blocks, Lbn};
use thiserror::Error;

pub use emulated::EmulatedBackend;
pub use file::{FileBackend, Io, OpenError};
pub use nbd::{ExportError, NbdBackend};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendOp {
    /// Reads its data.
    Read,
    /// Writes its data.
    Write {
        /// They are to be on the media before it comes back. Only where the device can do that.
        fua: bool,
    },
    /// What has come back is to be on the media before it does.
    Flush,
    /// So many blocks of 512 B are not needed any more. Only where the device can do that; it may still
    /// say [`Errno::NotSup`] when it is asked.
    Trim {
        /// How many.
        blocks: u64,
    },
    /// So many blocks of 512 B are to read as zeroes. As with [`Self::Trim`].
    WriteZeroes {
        /// How many.
        blocks: u64,
        /// Room for later writes is to be kept.
        keep: bool,
    },
}

/// A command for a device.
#[derive(Debug)]
pub struct BackendCommand {
    /// Comes back with its end.
    pub id: u64,
    /// What it does.
    pub what: BackendOp,
    /// First block; of no meaning in a flush.
    pub start: Lbn,
    /// What is written, or room for what is read: whole blocks. Empty otherwise.
    pub data: Vec<u8>,
}

/// A command that has come back.
#[derive(Debug)]
pub struct BackendCompletion {
    /// The command's.
    pub id: u64,
    /// When it did: as soon as this process could know.
    pub at: Instant,
    /// The data of a read, and otherwise anything; or why it failed.
    pub result: Result<Vec<u8>, Failed>,
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Failed {
    /// What a client is told. [`Errno::Shutdown`]: the device is gone, and nothing will be done any
    /// more.
    pub errno: Errno,
    /// In words.
    pub message: String,
}

/// Is told what has come back, by any thread of a device.
pub type Back = Arc<dyn Fn(BackendCompletion) + Send + Sync>;

/// What a device takes, and what it can do beside reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Bytes of a logical sector, of which all that it is asked is whole ones: a power of two, at least
    /// 512.
    pub sector_bytes: u32,
    /// Bytes of a physical sector, as far as it is known: a write of less is read, changed and written.
    pub physical_bytes: u32,
    /// Everything that has come back is on the media when a flush does.
    pub flush: bool,
    /// A write is on the media when it comes back, if that is asked for.
    pub fua: bool,
    /// It can be told that blocks are not needed any more.
    pub trim: bool,
    /// It makes zeroes by itself where no room need be kept for later writes.
    pub write_zeroes: bool,
    /// It makes zeroes by itself and keeps the room.
    pub write_zeroes_kept: bool,
}

impl Default for Abilities {
    /// Sectors of 512 B, and nothing else.
    fn default() -> Self {
        let (sector_bytes, physical_bytes) = (BLOCK_BYTES as u32, BLOCK_BYTES as u32);
        let (flush, fua, trim) = (false, false, false);
        let (write_zeroes, write_zeroes_kept) = (false, false);
        Self { sector_bytes, physical_bytes, flush, fua, trim, write_zeroes, write_zeroes_kept }
    }
}

impl Abilities {
    /// A physical sector in blocks of 512 B; one where what is said of it cannot be.
    pub fn physical_blocks(&self) -> u32 {
        let is_whole = self.physical_bytes.is_power_of_two();
        let blocks = self.physical_bytes / BLOCK_BYTES as u32;
        if is_whole { blocks.max(1) } else { 1 }
    }

    /// A logical sector in blocks of 512 B.
    pub fn sector_blocks(&self) -> u32 {
        self.sector_bytes / BLOCK_BYTES as u32
    }
}

/// A device behind its block interface.
pub trait Backend: Send + Sync {
    /// Its size.
    fn blocks(&self) -> Blocks;

    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Takes a command; it comes back through the [`Back`] that the device was opened with. Must
    /// not block for the device.
    fn submit(&self, command: BackendCommand);
}
