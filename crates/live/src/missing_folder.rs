//! Reasons why no file can be made at a path.

use std::io::{self, ErrorKind};
use std::path::Path;

/// Error of the system for a file that was to be made there. Names its folder if that is missing: the
/// system says the same of a missing file.
pub(crate) fn explain(path: &Path, error: io::Error) -> io::Error {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| error.kind() == ErrorKind::NotFound && !folder.exists()) {
        Some(folder) => {
            let folder = folder.display();
            let says = format!("there is no folder {folder}: create it, or choose another");
            io::Error::new(ErrorKind::NotFound, says)
        }
        None => error,
    }
}
