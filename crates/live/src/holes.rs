//! Zeroes in files that nobody has to write.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// Makes `length` bytes from `offset` on read as zeroes: as a hole, unless `keep` asks for the room to be
/// kept. False when the file cannot do that, and they have to be written.
pub(crate) fn zero(file: &File, offset: u64, length: u64, keep: bool) -> io::Result<bool> {
    let how = if keep { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
    match fallocate(file, how | FallocateFlags::KEEP_SIZE, offset, length) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
