//! Hashes of files' content, read once while the files stay as they are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_128;

use crate::table::TableError;

/// Bytes of a file that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Hashes by the paths of their files.
#[derive(Default)]
pub(crate) struct FileHashes {
    known: BTreeMap<PathBuf, (Stamp, u128)>,
}

/// Length and time of a file: another stamp means other content.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stamp {
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl FileHashes {
    /// Hash of a file as a text, and whether the file has changed since it was asked for before.
    pub fn hash(&mut self, path: &Path) -> Result<(String, bool), TableError> {
        let stamp = stamp(path).map_err(|error| wrong(error, path))?;
        let before = self.known.get(path);
        if let Some((_, hash)) = before.filter(|(before, _)| *before == stamp) {
            return Ok((text(*hash), false));
        }
        let has_changed = before.is_some();
        let hash = hash_of(path).map_err(|error| wrong(error, path))?;
        self.known.insert(path.to_owned(), (stamp, hash));
        Ok((text(hash), has_changed))
    }
}

fn wrong(error: io::Error, path: &Path) -> TableError {
    TableError::of(path, &error)
}

fn text(hash: u128) -> String {
    format!("{hash:032x}")
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = fs::metadata(path)?;
    let (modified_s, modified_ns) = (metadata.mtime(), metadata.mtime_nsec());
    Ok(Stamp { bytes: metadata.len(), modified_s, modified_ns })
}

fn hash_of(path: &Path) -> io::Result<u128> {
    let (mut file, mut hasher) = (File::open(path)?, XxHash3_128::new());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish_128()),
            bytes => hasher.write(&buffer[..bytes]),
        }
    }
}
