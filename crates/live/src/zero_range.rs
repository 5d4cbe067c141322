//! Zeroes in files, without writing them.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Flags that make bytes of a file read as zeroes: as a hole, unless `keep` asks for the room to be kept.
pub(crate) fn how(keep: bool) -> FallocateFlags {
    let how = if keep { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
    how | FallocateFlags::KEEP_SIZE
}

/// True if this error of a file means that it has no such call, and zeroes have to be written.
pub(crate) fn are_unknown(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV))
}

/// Makes `length` bytes from `offset` on read as zeroes, [so](how). False when the file cannot do that,
/// and they have to be written.
pub(crate) fn zero(file: &File, offset: u64, length: u64, keep: bool) -> io::Result<bool> {
    match fallocate(file, how(keep), offset, length).map_err(io::Error::from) {
        Ok(()) => Ok(true),
        Err(error) if are_unknown(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
