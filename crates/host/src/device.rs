//! A block device's commands, errors and abilities: data alone.

use freewheel_units::{BLOCK_BYTES, Lbn};
use thiserror::Error;

/// Operation of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceOp {
    /// Reads into its data.
    Read,
    /// Writes its data.
    Write {
        /// The data are on the media before the command completes. Needs [`Abilities::fua`].
        fua: bool,
    },
    /// All writes that have completed are on the media before the command completes.
    Flush,
    /// The blocks are not needed any more. Needs [`Abilities::trim`]; the device may still answer
    /// [`DeviceErrorKind::NotSupported`].
    Trim {
        /// Number of blocks of 512 B.
        blocks: u64,
    },
    /// The blocks read as zeroes from now on. Needs [`Abilities::write_zeroes`] or
    /// [`Abilities::write_zeroes_kept`]; errors as with [`Self::Trim`].
    WriteZeroes {
        /// Number of blocks of 512 B.
        blocks: u64,
        /// The device keeps their space allocated for later writes.
        keep: bool,
    },
}

/// A command for a device.
#[derive(Debug)]
pub struct DeviceCommand {
    /// Identifies its completion; unique.
    pub id: u64,
    /// The operation.
    pub what: DeviceOp,
    /// First block; of no meaning in a flush.
    pub start: Lbn,
    /// Data to write, or a buffer to read into, in whole sectors. Empty otherwise.
    pub data: Vec<u8>,
}

/// The class of an error. Each class has its own error number in NBD and in the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceErrorKind {
    /// The device may not be written.
    NotPermitted,
    /// Input or output failed.
    Io,
    /// The device had no memory for the command.
    NoMemory,
    /// The device does not know such a command.
    Invalid,
    /// The device has no space left.
    NoSpace,
    /// The command is too long.
    TooLong,
    /// The device cannot do this, though its abilities said so.
    NotSupported,
    /// The device is gone: every further command fails.
    Gone,
}

/// Reason why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct DeviceError {
    /// Class of the error, from which a client's error number follows.
    pub kind: DeviceErrorKind,
    /// Description for people.
    pub message: String,
}

/// Sectors of a device, and its operations in addition to reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Bytes of a logical sector: a power of two, at least 512. Commands have whole logical sectors.
    pub sector_bytes: u32,
    /// Bytes of a physical sector as the device reports it. A write of a part of one reads it first.
    pub physical_bytes: u32,
    /// A flush makes all completed writes durable.
    pub flush: bool,
    /// A single write can be made durable (force unit access).
    pub fua: bool,
    /// Blocks can be given up.
    pub trim: bool,
    /// Zeroes can be written without their data, and may give up space.
    pub write_zeroes: bool,
    /// Zeroes can be written without their data, and keep their space.
    pub write_zeroes_kept: bool,
}

impl Default for Abilities {
    /// Sectors of 512 B; reading and writing only.
    fn default() -> Self {
        let (sector_bytes, physical_bytes) = (BLOCK_BYTES as u32, BLOCK_BYTES as u32);
        let (flush, fua, trim) = (false, false, false);
        let (write_zeroes, write_zeroes_kept) = (false, false);
        Self { sector_bytes, physical_bytes, flush, fua, trim, write_zeroes, write_zeroes_kept }
    }
}

impl Abilities {
    /// A physical sector in blocks of 512 B; 1 where the reported size is no power of two.
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
