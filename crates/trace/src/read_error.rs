//! Errors of reading a file, in words for the person who gave its path.
//!
//! Goals: the same words for every file: traces, experiments, drives, manifests.
//! Non-goals: the way out, which depends on the kind of file and is the caller's.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// What to say of a text whose first bytes are the byte order mark of UTF-16.
pub(crate) const IN_UTF_16: &str = "is a text in UTF-16, as PowerShell writes it: save it as UTF-8";

/// The text of the file at `path`; Err in words for people.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(fs::read(path).map_err(plain)?).map_err(|error| {
        let says = match error.as_bytes() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => IN_UTF_16,
            _ => "is not a text in UTF-8",
        };
        io::Error::new(ErrorKind::InvalidData, says)
    })
}

/// What the system says of a file that was to be read, in words and without its number; of the same
/// kind.
pub(crate) fn plain(error: io::Error) -> io::Error {
    let says = match error.kind() {
        ErrorKind::NotFound => "there is no such file",
        ErrorKind::IsADirectory => "is a folder, not a file",
        ErrorKind::PermissionDenied => "you are not permitted to read it",
        _ => return error,
    };
    io::Error::new(error.kind(), says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_told_in_words_and_by_its_kind() {
        let here = tempfile::tempdir().unwrap();
        let bytes = here.path().join("bytes");
        fs::write(&bytes, [0xff, 0xfe]).unwrap();
        let other_bytes = here.path().join("others");
        fs::write(&other_bytes, [b'a', 0xff]).unwrap();
        for (path, kind, says) in [
            (here.path().join("a.toml"), ErrorKind::NotFound, "there is no such file"),
            (here.path().join("no/a.toml"), ErrorKind::NotFound, "there is no such file"),
            (here.path().to_owned(), ErrorKind::IsADirectory, "is a folder, not a file"),
            (bytes, ErrorKind::InvalidData, IN_UTF_16),
            (other_bytes, ErrorKind::InvalidData, "is not a text in UTF-8"),
        ] {
            let error = read_text(&path).unwrap_err();
            assert_eq!((error.kind(), &*error.to_string()), (kind, says), "{}", path.display());
        }
    }
}
