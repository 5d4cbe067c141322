//! Extents of files on mounted file systems, by the system call FS_IOC_FIEMAP. With
//! `serve/backend/file/uring.rs` the only place with unsafe code.
//!
//! The system writes at most the extents for which the buffer has room, behind a header of fixed size, and
//! says how many. The buffer belongs to the call and has no padding.

use std::ffi::c_void;
use std::fs::{self, File};
use std::io;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FsWord, fstatfs, major, minor};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use thiserror::Error;

use super::ranges::{ByteRange, Extents};

/// Extents that are asked for at once.
const AT_ONCE: usize = 256;

/// Flag of FIEMAP that first writes to the media what is not there yet.
const FLAG_SYNC: u32 = 0x1;

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELALLOC: u32 = 0x4;
const ENCODED: u32 = 0x8;
const NOT_ALIGNED: u32 = 0x100;
const INLINE: u32 = 0x200;
const TAIL: u32 = 0x400;
const UNWRITTEN: u32 = 0x800;

/// Flags of data that do not lie in their blocks as they are, and what that means.
const NOT_AS_THEY_ARE: [(u32, &str); 6] = [
    (ENCODED, "they are compressed or encrypted"),
    (INLINE, "they lie in the file's metadata"),
    (TAIL, "they share a block with other files"),
    (DELALLOC, "they are not on the media yet"),
    (UNKNOWN, "their place is unknown"),
    (NOT_ALIGNED, "they share blocks with metadata"),
];

/// Message about a file system whose places are none of one device.
const OWN_ADDRESSES: &str = "its file system is not on one block device, or has addresses of its own, as \
                             Btrfs, overlays and those in memory or behind a network";

const BTRFS_MAGIC: FsWord = 0x9123_683e;

/// Reasons why extents of a file are not known.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum FilesError {
    #[error("{}: {source}", path.display())]
    System { path: PathBuf, source: io::Error },
    /// The file system does not report places.
    #[error("{}: {why}", path.display())]
    NoPlaces { path: PathBuf, why: &'static str },
}

/// Extents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileExtents {
    /// From the beginning of the whole disk, if the device is a partition of one.
    pub extents: Extents,
    /// Reason why some data of the file are in none of them.
    pub left_out: Option<&'static str>,
    /// The device on which its file system is, by its numbers.
    pub device: (u32, u32),
}

/// The header of a request and of its answer.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

#[repr(C)]
struct Request {
    header: Header,
    extents: [Extent; AT_ONCE],
}

/// The call with its buffer.
struct Fiemap<'a>(&'a mut Request);

// SAFETY: the opcode is that of FS_IOC_FIEMAP, whose argument is the header with `room` extents behind it;
// the request has room for AT_ONCE and says no more. The system writes plain numbers into it.
#[allow(unsafe_code, reason = "the system writes into the buffer")]
unsafe impl Ioctl for Fiemap<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Header>(b'f', 11)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut::<Request>(self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// The extents of a file from a byte of it on; none behind its end.
fn extents_from(file: &File, start: u64) -> io::Result<Vec<Extent>> {
    let header = Header {
        start,
        length: u64::MAX - start,
        flags: FLAG_SYNC,
        room: AT_ONCE as u32,
        ..Header::default()
    };
    let mut request = Box::new(Request { header, extents: [Extent::default(); AT_ONCE] });
    // SAFETY: the buffer is exclusively borrowed for the call, and as long as its header says.
    #[allow(unsafe_code, reason = "the system writes into the buffer")]
    unsafe { ioctl(file, Fiemap(&mut request)) }?;
    let count = (request.header.mapped as usize).min(AT_ONCE);
    Ok(request.extents[..count].to_vec())
}

impl FileExtents {
    /// Extents of a file, on the device of its file system.
    pub fn of(path: &Path) -> Result<Self, FilesError> {
        let system = |source: io::Error| FilesError::System { path: path.into(), source };
        let no_places = |why| FilesError::NoPlaces { path: path.into(), why };
        // A pipe would be waited for when it is opened.
        let metadata = fs::metadata(path).map_err(system)?;
        if !metadata.is_file() {
            return Err(no_places("it is no file with data: give files, or folders of files"));
        }
        let file = File::open(path).map_err(system)?;
        let device = (major(metadata.st_dev()), minor(metadata.st_dev()));
        let magic = fstatfs(&file).map_err(|error| system(error.into()))?.f_type;
        if device.0 == 0 || magic == BTRFS_MAGIC {
            return Err(no_places(OWN_ADDRESSES));
        }
        let offset = partition_start(device).map_err(no_places)?;
        let (mut ranges, mut left_out, mut start) = (Vec::new(), None, 0);
        loop {
            let extents = extents_from(&file, start).map_err(|error| {
                if is_unknown(&error) {
                    no_places("its file system does not say where files lie")
                } else {
                    system(error)
                }
            })?;
            for extent in &extents {
                match place(extent) {
                    Ok(range) => ranges.extend(range),
                    Err(why) => left_out = Some(why),
                }
            }
            match extents.last() {
                Some(last) if last.flags & LAST == 0 => {
                    start = last.logical.saturating_add(last.length);
                }
                _ => {
                    let extents = Extents::new(ranges).moved(offset);
                    return Ok(Self { extents, left_out, device });
                }
            }
        }
    }
}

/// True if this error of a file system means that it has no such call.
fn is_unknown(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::NOTTY))
}

/// Place of an extent; none if its blocks have never been written, or the reason why it is of no use.
fn place(extent: &Extent) -> Result<Option<ByteRange>, &'static str> {
    if let Some((_, why)) = NOT_AS_THEY_ARE.iter().find(|(flag, _)| extent.flags & flag != 0) {
        return Err(why);
    }
    let is_written = extent.flags & UNWRITTEN == 0 && extent.length > 0;
    Ok(is_written.then(|| ByteRange::new(extent.physical, extent.length)))
}

/// First byte of a partition on its disk: 0 for a whole disk.
fn partition_start((major, minor): (u32, u32)) -> Result<u64, &'static str> {
    let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    if folder.join("dm").exists() || folder.join("md").exists() {
        return Err(
            "its file system is on a volume of LVM, RAID or encryption, whose blocks lie elsewhere on \
                    the disks",
        );
    }
    match fs::read_to_string(folder.join("start")) {
        Ok(text) => {
            let sectors = text.trim().parse::<u64>().ok();
            let bytes = sectors.and_then(|sectors| sectors.checked_mul(512));
            bytes.ok_or("the system does not say where its partition begins")
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(_) => Err("the system does not say where its partition begins"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn fiemap_leaves_out_unusable_extents() {
        let extent = |flags| Extent { physical: 8192, length: 4096, flags, ..Extent::default() };
        let there = Ok(Some(ByteRange::new(8192, 4096)));
        // Merged for this call, and shared with another file.
        assert_eq!([0, LAST, 0x1000, 0x2000].map(|flags| place(&extent(flags))), [there; 4]);
        assert_eq!(place(&extent(UNWRITTEN | LAST)), Ok(None));
        for (flag, why) in NOT_AS_THEY_ARE {
            assert_eq!(place(&extent(flag | LAST)), Err(why));
        }
        assert_eq!(place(&extent(UNKNOWN | DELALLOC)), Err("they are not on the media yet"));
    }

    #[test]
    fn fiemap_of_local_file_covers_data() {
        let mut file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.write_all(&[7; 300_000]).unwrap();
        match FileExtents::of(file.path()) {
            Ok(FileExtents { extents, left_out: None, .. }) => {
                assert!((300_000..400_000).contains(&extents.bytes()), "{extents:?}");
            }
            Ok(FileExtents { left_out: Some(why), .. }) => {
                assert!(NOT_AS_THEY_ARE.iter().any(|(_, known)| *known == why));
            }
            Err(error) => assert!(matches!(error, FilesError::NoPlaces { .. }), "{error}"),
        }
    }

    #[test]
    fn fiemap_refuses_non_file() {
        let error = FileExtents::of(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null: it is no file with data"), "{error}");
        let error = FileExtents::of(Path::new("/no/such/file")).unwrap_err();
        assert!(matches!(error, FilesError::System { .. }));
    }
}
