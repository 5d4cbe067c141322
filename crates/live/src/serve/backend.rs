//! Devices that commands are sent to: files, NBD exports, emulated drives.

mod emulated;
mod file;
mod nbd;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use freewheel_nbd::Errno;
use freewheel_units::Blocks;

pub use emulated::EmulatedBackend;
pub(crate) use file::ClaimedFile;
pub use file::{Claim, FileBackend, Io, OpenError};
pub use freewheel_host::device::{
    Abilities, DeviceCommand, DeviceError, DeviceErrorKind, DeviceOp,
};
pub use nbd::{ExportError, NbdBackend};

/// A command that has completed.
#[derive(Debug)]
pub struct BackendCompletion {
    /// The command's.
    pub id: u64,
    /// Earliest time at which this process could know of it.
    pub at: Instant,
    /// The data of a read, and otherwise anything; or why the command failed.
    pub result: Result<Vec<u8>, DeviceError>,
}

/// Called with each completion, by any thread of a device.
pub type Back = Arc<dyn Fn(BackendCompletion) + Send + Sync>;

/// A device behind its block interface.
pub trait Backend: Send + Sync {
    /// Blocks of the device.
    fn blocks(&self) -> Blocks;

    /// Sectors of the device, and its operations in addition to reading and writing.
    fn abilities(&self) -> Abilities;

    /// Takes a command, which completes through the [`Back`] that the device was opened with. Must
    /// not wait for the device.
    fn submit(&self, command: DeviceCommand);
}

/// The class of an error that NBD tells by this number.
pub(crate) fn kind_of(errno: Errno) -> DeviceErrorKind {
    match errno {
        Errno::Perm => DeviceErrorKind::NotPermitted,
        Errno::Io => DeviceErrorKind::Io,
        Errno::NoMem => DeviceErrorKind::NoMemory,
        Errno::Inval => DeviceErrorKind::Invalid,
        Errno::NoSpc => DeviceErrorKind::NoSpace,
        Errno::Overflow => DeviceErrorKind::TooLong,
        Errno::NotSup => DeviceErrorKind::NotSupported,
        Errno::Shutdown => DeviceErrorKind::Gone,
    }
}

/// The number by which NBD tells a client of an error.
pub(crate) fn errno_of(kind: DeviceErrorKind) -> Errno {
    match kind {
        DeviceErrorKind::NotPermitted => Errno::Perm,
        DeviceErrorKind::Io => Errno::Io,
        DeviceErrorKind::NoMemory => Errno::NoMem,
        DeviceErrorKind::Invalid => Errno::Inval,
        DeviceErrorKind::NoSpace => Errno::NoSpc,
        DeviceErrorKind::TooLong => Errno::Overflow,
        DeviceErrorKind::NotSupported => Errno::NotSup,
        DeviceErrorKind::Gone => Errno::Shutdown,
    }
}

/// The class of an error of the operating system.
fn kind_of_system(error: &io::Error) -> DeviceErrorKind {
    kind_of(error.raw_os_error().map_or(Errno::Io, Errno::from_linux))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_unchanged_behind_scheduler() {
        let linux = [1, 5, 12, 22, 28, 108].map(Errno::from_linux);
        for errno in linux.into_iter().chain([Errno::Overflow, Errno::NotSup]) {
            assert_eq!(errno_of(kind_of(errno)), errno);
        }
    }
}
