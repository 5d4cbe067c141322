//! A trace from a stream, kept as a file for those who read it more than once.
//!
//! Goals: the bytes as they came, compressed or not; no file is left, also of a process that SIGINT or
//! SIGTERM ends.
//! Non-goals: a process that SIGKILL ends: its file stays in the system's folder for such files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::TraceError;
use crate::temporary_names;

/// Name of the file, and of what is made of it.
const FILE_NAME: &str = "stdin";
/// Bytes copied at a time.
const PIECE_BYTES: usize = 64 << 10;

enum Failed {
    Stream(io::Error),
    File(io::Error),
}

/// A trace in a temporary file, which goes away with this value.
#[derive(Debug)]
pub struct SpooledTrace {
    path: PathBuf,
    folder: TempDir,
}

impl Drop for SpooledTrace {
    fn drop(&mut self) {
        temporary_names::forget(self.folder.path());
    }
}

impl SpooledTrace {
    /// Reads `stream`, called `name` in messages, to its end. Err when the stream cannot be read, or the
    /// temporary file not be written.
    pub fn new(name: &str, stream: impl Read) -> Result<Self, TraceError> {
        Self::keep(stream).map_err(|failed| match failed {
            Failed::Stream(error) => TraceError::io(name, error),
            Failed::File(error) => TraceError::temporary_file(name, error),
        })
    }

    fn keep(mut stream: impl Read) -> Result<Self, Failed> {
        let folder =
            temporary_names::make(tempfile::tempdir, TempDir::path).map_err(Failed::File)?;
        let path = folder.path().join(FILE_NAME);
        let mut file = File::create_new(&path).map_err(Failed::File)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Ok(Self { path, folder }),
                Ok(length) => file.write_all(&piece[..length]).map_err(Failed::File)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failed::Stream(error)),
            }
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spooled_bytes_live_with_value() {
        let spooled = SpooledTrace::new("a stream", &b"0,0,512,r,1.0"[..]).unwrap();
        let path = spooled.path().to_owned();
        assert_eq!(std::fs::read(&path).unwrap(), b"0,0,512,r,1.0");
        drop(spooled);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }
}
