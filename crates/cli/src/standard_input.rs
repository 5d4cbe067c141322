//! A trace that comes on standard input, given as `-`.

use std::io;
use std::path::{Path, PathBuf};

use freewheel::traces::SpooledTrace;

use crate::failure::Failure;

/// Name of such a trace in messages and results.
pub const NAME: &str = "standard input";

/// True if a trace is given as `-`.
pub fn is_meant(path: &Path) -> bool {
    path == Path::new("-")
}

/// The path that results repeat: of standard input a name without a path.
pub fn path_for_results(given: &Path) -> PathBuf {
    if is_meant(given) { "stdin".into() } else { given.to_owned() }
}

/// A trace that is read more than once: the file that was given, or what came on standard input.
pub enum GivenTrace {
    File(PathBuf),
    Spooled(SpooledTrace),
}

impl GivenTrace {
    /// Reads standard input to its end, if that is meant.
    pub fn new(given: &Path) -> Result<Self, Failure> {
        if !is_meant(given) {
            return Ok(Self::File(given.to_owned()));
        }
        let spooled = SpooledTrace::new(NAME, io::stdin().lock());
        let spooled = spooled.map_err(|error| {
            Failure::from(error).with_help(
                "the trace is kept in a temporary file: TMPDIR names a folder with room for it",
            )
        })?;
        Ok(Self::Spooled(spooled))
    }

    /// The file to read.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Spooled(spooled) => spooled.path(),
        }
    }

    /// Calls the temporary file by the name that people know.
    pub fn naming(&self, failure: Failure) -> Failure {
        match self {
            Self::File(_) => failure,
            Self::Spooled(spooled) => failure.naming(spooled.path(), NAME),
        }
    }
}
