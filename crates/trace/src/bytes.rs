//! The bytes of a trace, which are read more than once.
//!
//! Goals: what came on a stream can be read again: from memory, or from a temporary file if it is long.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::TraceError;
use crate::input::{BytesConsumed, Input};
use crate::read_error::{not_a_device, plain};
use crate::spool::SpooledTrace;

/// The most bytes of a stream that stay in memory.
const MEMORY_BYTES_MAX: u64 = 1 << 20;

/// Source of a trace's bytes.
#[derive(Clone)]
pub(crate) enum TraceBytes {
    File(PathBuf),
    Memory(Arc<[u8]>),
    Spooled(Arc<SpooledTrace>),
}

impl TraceBytes {
    /// The bytes at `path`, called `name` in messages. What can be read only once, as a pipe, is read here.
    pub fn at(name: &str, path: &Path) -> Result<Self, TraceError> {
        let is_file =
            path.metadata().map_err(|error| TraceError::io(name, plain(error)))?.is_file();
        if is_file || path.is_dir() {
            return Ok(Self::File(path.to_owned()));
        }
        Self::of_stream(
            name,
            File::open(path)
                .and_then(not_a_device)
                .map_err(|error| TraceError::io(name, plain(error)))?,
        )
    }

    /// Reads a stream, called `name` in messages, to its end.
    pub fn of_stream(name: &str, mut stream: impl Read) -> Result<Self, TraceError> {
        let mut start = Vec::new();
        let read = stream.by_ref().take(MEMORY_BYTES_MAX).read_to_end(&mut start);
        let read = read.map_err(|error| TraceError::io(name, error))?;
        if (read as u64) < MEMORY_BYTES_MAX {
            return Ok(Self::Memory(start.into()));
        }
        let spooled = SpooledTrace::new(name, Cursor::new(start).chain(stream))?;
        Ok(Self::Spooled(Arc::new(spooled)))
    }

    /// The file that they are in.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Memory(_) => None,
            Self::Spooled(spooled) => Some(spooled.path()),
        }
    }

    /// The bytes from the first on. A lenient stream ends at damage; a strict one fails there.
    pub fn open(&self, lenient: bool) -> io::Result<Input> {
        match self {
            Self::File(path) => Input::open(path, lenient),
            Self::Memory(bytes) => {
                let progress = BytesConsumed::of_total(bytes.len() as u64);
                Input::new(Cursor::new(Arc::clone(bytes)), progress, lenient)
            }
            Self::Spooled(spooled) => Input::open(spooled.path(), lenient),
        }
    }
}
