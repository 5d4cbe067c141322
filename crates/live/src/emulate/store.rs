//! Store of an emulated drive's data: sparse files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use freewheel_units::Bytes;
use thiserror::Error;

use crate::{FreeSpace, missing_folder, zero_range};

/// Data without a name are in files of this size at most: ext4 ends at 16 TiB.
const PIECE_BYTES: u64 = 8 << 40;
/// Zeroes written at once where a file system knows no holes.
const ZEROES_BYTES: usize = 1 << 20;

/// Reason why data cannot be kept there.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum StoreError {
    /// The file belongs to another drive, or to something else.
    #[error(
        "{}: has {found}, and the drive has {wanted}: give the file of this drive, or a path where \
         there is none yet",
        path.display()
    )]
    Size { path: PathBuf, found: Bytes, wanted: Bytes },
    /// Another process has it.
    #[error("{}: another process has it open as its store", path.display())]
    InUse { path: PathBuf },
    /// The store is too large for its file system.
    #[error(
        "{}: its file system holds no file of {wanted} (ext4 ends at 16 TiB): put it on XFS or \
         Btrfs, take a smaller drive, or leave --store out",
        path.display()
    )]
    TooLarge { path: PathBuf, wanted: Bytes },
    /// The store cannot be written.
    #[error(
        "{}: its file system has no room left, and the drive's data may take {}: make room, or choose \
         another with --store FILE or, without it, TMPDIR",
        path.display(),
        wanted.human_decimal()
    )]
    NoRoom {
        /// The file or folder.
        path: PathBuf,
        /// Room that the holes of the files may take.
        wanted: Bytes,
    },
    #[error("{}: {source}", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        source: io::Error,
    },
}

/// The data of a drive. What was never written takes no room and reads as zeroes.
#[derive(Debug)]
pub struct Store {
    /// One after the other, each but the last of `piece` bytes.
    files: Vec<File>,
    piece: u64,
    /// The path at which its file was made, if there was none.
    made_at: Option<PathBuf>,
    /// Set if the file has a name and stays.
    is_kept: bool,
}

impl Store {
    /// The store of a drive of `size` bytes in this file, which is made when there is none. It is
    /// kept, and while it is open no other store has it.
    pub fn open(path: &Path, size: Bytes) -> Result<Self, StoreError> {
        let at = |error| refused(path, missing_folder::explain(path, error));
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        // What is on a disk is its user's alone.
        let create = options.clone().create_new(true).mode(0o600).open(path);
        let (file, is_new) = match create {
            Ok(file) => (file, true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (options.open(path).map_err(at)?, false)
            }
            Err(error) => return Err(at(error)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { path: path.into() });
            }
            Err(fs::TryLockError::Error(error)) => return Err(at(error)),
        }
        let fits = if is_new { lay_out(&file, path, size) } else { ensure_size(&file, path, size) };
        let fits = fits.and_then(|()| ensure_room(&file, path));
        // A flush is worthless if the file itself can be lost.
        let lasts =
            fits.and_then(|()| if is_new { sync_name(&file, path).map_err(at) } else { Ok(()) });
        if let Err(error) = lasts {
            if is_new {
                // What cannot be a store is not left behind.
                let _ = fs::remove_file(path);
            }
            return Err(error);
        }
        let made_at = is_new.then(|| path.into());
        Ok(Self { files: vec![file], piece: size.get().max(1), made_at, is_kept: true })
    }

    /// Removes its file, if this store made it; for a store that no client has used. An older file stays,
    /// and so does one that has replaced it.
    pub fn discard(&self) {
        let (Some(path), [file]) = (&self.made_at, &self.files[..]) else { return };
        let own = file.metadata().map(identity);
        let there = fs::symlink_metadata(path).map(identity);
        if own.is_ok_and(|own| there.is_ok_and(|there| own == there)) {
            // What cannot be removed is a hole.
            let _ = fs::remove_file(path);
        }
    }

    /// Room of the file system for the holes of the first file, if it reports it.
    pub fn room(&self) -> Option<FreeSpace> {
        self.files.first().and_then(FreeSpace::for_holes)
    }

    /// The store of a drive of `size` bytes that is gone with the process.
    pub fn anonymous(size: Bytes) -> Result<Self, StoreError> {
        Self::in_pieces(size, PIECE_BYTES)
    }

    fn in_pieces(size: Bytes, piece: u64) -> Result<Self, StoreError> {
        let folder = std::env::temp_dir();
        let at = |error| refused(&folder, error);
        let mut files = Vec::new();
        let mut begin = 0;
        while begin < size.get() {
            let file = tempfile::tempfile().map_err(at)?;
            file.set_len(piece.min(size.get() - begin)).map_err(at)?;
            ensure_room(&file, &folder)?;
            files.push(file);
            begin += piece;
        }
        Ok(Self { files, piece, made_at: None, is_kept: false })
    }

    /// True if its file stays when the process ends.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Waits until all that was written survives a crash of the machine, if its file is kept.
    pub fn sync(&self) -> io::Result<()> {
        let kept = self.files.iter().filter(|_| self.is_kept);
        kept.into_iter().try_for_each(File::sync_data)
    }

    /// Reads from `offset` on.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let mut data = data;
        self.each(offset, data.len() as u64, |file, offset, length| {
            let (now, rest) = std::mem::take(&mut data).split_at_mut(length as usize);
            data = rest;
            file.read_exact_at(now, offset)
        })
    }

    /// Writes from `offset` on. The data outlive the process when it returns, and the machine when they
    /// are [synced](Self::sync).
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut data = data;
        self.each(offset, data.len() as u64, |file, offset, length| {
            let (now, rest) = data.split_at(length as usize);
            data = rest;
            self.check_length(file, offset + length)?;
            file.write_all_at(now, offset)
        })
    }

    /// Makes zeroes, in a hole unless `keep` asks for the room to be kept.
    pub fn zero(&self, offset: u64, length: u64, keep: bool) -> io::Result<()> {
        self.each(offset, length, |file, offset, length| {
            self.check_length(file, offset + length)?;
            if zero_range::zero(file, offset, length, keep)? {
                Ok(())
            } else {
                write_zeroes(file, offset, length)
            }
        })
    }

    /// Refuses to write up to `end` of a file that was cut short: it would grow again, with a hole that
    /// reads as zeroes.
    fn check_length(&self, file: &File, end: u64) -> io::Result<()> {
        if file.metadata()?.len() < end {
            return Err(io::Error::other("its file was cut short"));
        }
        Ok(())
    }

    /// Calls with each file that has a part of these bytes, and where that is in it.
    fn each(
        &self,
        offset: u64,
        length: u64,
        mut call: impl FnMut(&File, u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let within = at % self.piece;
            let length = (self.piece - within).min(end - at);
            let file = self.files.get((at / self.piece) as usize);
            call(file.ok_or(ErrorKind::UnexpectedEof)?, within, length)?;
            at += length;
        }
        Ok(())
    }
}

fn identity(data: fs::Metadata) -> (u64, u64) {
    (data.dev(), data.ino())
}

/// Waits until a new file and its name survive a crash of the machine.
fn sync_name(file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn refused(path: &Path, source: io::Error) -> StoreError {
    StoreError::System { path: path.into(), source }
}

/// Makes a file as large as the drive, all of it a hole.
fn lay_out(file: &File, path: &Path, size: Bytes) -> Result<(), StoreError> {
    file.set_len(size.get()).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge | ErrorKind::InvalidInput => {
            StoreError::TooLarge { path: path.into(), wanted: size }
        }
        _ => refused(path, error),
    })
}

/// That a file is as large as the drive.
fn ensure_size(file: &File, path: &Path, size: Bytes) -> Result<(), StoreError> {
    let metadata = file.metadata().map_err(|error| refused(path, error))?;
    match Bytes::new(metadata.len()) {
        found if found != size => Err(StoreError::Size { path: path.into(), found, wanted: size }),
        _ => Ok(()),
    }
}

/// That something can be written to the holes of a file, if it has any.
fn ensure_room(file: &File, path: &Path) -> Result<(), StoreError> {
    match FreeSpace::for_holes(file).filter(FreeSpace::is_used_up) {
        Some(FreeSpace { wanted, .. }) => Err(StoreError::NoRoom { path: path.into(), wanted }),
        None => Ok(()),
    }
}

fn write_zeroes(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let zeroes = vec![0; ZEROES_BYTES.min(length as usize)];
    let (mut at, end) = (offset, offset + length);
    while at < end {
        let now = zeroes.len().min((end - at) as usize);
        file.write_all_at(&zeroes[..now], at)?;
        at += now as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SIZE: Bytes = Bytes::from_kib(64);

    #[test]
    fn store_reads_back_data_across_files() {
        let store = Store::in_pieces(SIZE, 4096).unwrap();
        let data: Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
        store.write(3000, &data).unwrap();
        let mut back = vec![0; data.len()];
        store.read(3000, &mut back).unwrap();
        assert!(back == data);
        store.zero(4000, 5000, false).unwrap();
        store.read(3000, &mut back).unwrap();
        let zeroed: Vec<u8> = (0..)
            .zip(&data)
            .map(|(at, byte)| if (1000..6000).contains(&at) { 0 } else { *byte })
            .collect();
        assert!(back == zeroed);
    }

    #[test]
    fn store_read_stops_at_end() {
        let store = Store::in_pieces(SIZE, 4096).unwrap();
        assert!(store.read(SIZE.get() - 10, &mut [0; 20]).is_err());
    }

    #[test]
    fn store_cut_short_does_not_grow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path, SIZE).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        store.write(0, b"inside").unwrap();
        for refused in [store.write(8192, b"beyond"), store.zero(4096, 4096, true)] {
            assert_eq!(refused.unwrap_err().to_string(), "its file was cut short");
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 4096);
    }

    #[test]
    fn store_file_made_with_drive_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        Store::open(&path, SIZE).unwrap().write(512, b"kept").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), SIZE.get());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "whatever the umask");
        let mut back = [0; 4];
        Store::open(&path, SIZE).unwrap().read(512, &mut back).unwrap();
        assert_eq!(&back, b"kept");
    }

    #[test]
    fn store_refuses_file_of_other_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        for size in [0, 65_535, 65_537] {
            fs::write(&path, vec![1; size]).unwrap();
            let error = Store::open(&path, SIZE).unwrap_err().to_string();
            let found = Bytes::new(size as u64).to_string();
            assert!(error.contains(&found) && error.contains("64KiB"), "{error}");
            assert_eq!(fs::metadata(&path).unwrap().len(), size as u64);
        }
    }

    #[test]
    fn store_unused_removes_only_file_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        Store::open(&path, SIZE).unwrap().discard();
        assert!(!path.exists());
        drop(Store::open(&path, SIZE).unwrap());
        Store::open(&path, SIZE).unwrap().discard();
        assert!(path.exists(), "it was there before");
        fs::remove_file(&path).unwrap();
        let store = Store::open(&path, SIZE).unwrap();
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        fs::write(&path, "mine").unwrap();
        store.discard();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        Store::anonymous(SIZE).unwrap().discard();
    }

    #[test]
    fn store_file_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let first = Store::open(&path, SIZE).unwrap();
        assert!(matches!(Store::open(&path, SIZE), Err(StoreError::InUse { .. })));
        drop(first);
        assert!(Store::open(&path, SIZE).is_ok());
    }
}
