//! Loop devices and the files behind them, which are the same data under two names.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The loop device that has this file behind it, if one does. A file that is reached by another path than
/// this process would take, as in a container, is not found.
pub(super) fn loop_of(file: &File) -> Option<PathBuf> {
    let own = file.metadata().ok()?;
    fs::read_dir("/sys/block").ok()?.filter_map(Result::ok).find_map(|entry| {
        let there = fs::metadata(backing_of(&entry.path())?).ok()?;
        let is_same = (there.dev(), there.ino()) == (own.dev(), own.ino());
        is_same.then(|| Path::new("/dev").join(entry.file_name()))
    })
}

/// The file of a loop device, whose directory in /sys this is. For a partition, the file of its disk.
/// None for another device.
pub(super) fn backing_of(sysfs: &Path) -> Option<PathBuf> {
    let mut path = fs::read(sysfs.join("loop/backing_file"))
        .ok()
        .or_else(|| fs::read(sysfs.join("../loop/backing_file")).ok())?;
    path.pop_if(|last| *last == b'\n');
    Some(std::ffi::OsString::from_vec(path).into())
}

/// Opens the file behind a loop device, so that it can be locked for as long; `flags` for a device that is
/// behind one.
pub(super) fn open_backing(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}
