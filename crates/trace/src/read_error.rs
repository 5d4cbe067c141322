//! Errors of reading a file, in words for the person who gave its path.
//!
//! Goals: the same words for every file: traces, experiments, drives, manifests.
//! Non-goals: the way out, which depends on the kind of file and is the caller's.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use freewheel_units::Bytes;

/// Message about a text whose first bytes are the byte order mark of UTF-16.
pub(crate) const IN_UTF_16: &str = "is a text in UTF-16, as PowerShell writes it: save it as UTF-8";

/// Longest document that people write: experiments, drives, disks and their files. A parsed one takes
/// about 30 times its length.
const TEXT_BYTES_MAX: Bytes = Bytes::from_kib(64 << 10);

/// The text of the file at `path`, of 64 MiB at most; Err in words for people.
pub fn read_text(path: &Path) -> io::Result<String> {
    read_text_up_to(path, TEXT_BYTES_MAX)
}

/// Reads a text of at most `most` bytes.
pub fn read_text_up_to(path: &Path, most: Bytes) -> io::Result<String> {
    let file = File::open(path).and_then(not_a_device).map_err(plain)?;
    let mut bytes = Vec::new();
    file.take(most.get() + 1).read_to_end(&mut bytes).map_err(plain)?;
    if bytes.len() as u64 > most.get() {
        let says = format!("is longer than {most}, as no such file is");
        return Err(io::Error::new(ErrorKind::FileTooLarge, says));
    }
    String::from_utf8(bytes).map_err(|error| {
        let says = match error.as_bytes() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => IN_UTF_16,
            _ => "is not a text in UTF-8",
        };
        io::Error::new(ErrorKind::InvalidData, says)
    })
}

/// The file, unless it is a device: /dev/zero has no end. A terminal is none here, as one types there.
pub(crate) fn not_a_device(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_block_device() || (kind.is_char_device() && !file.is_terminal()) {
        Err(io::Error::new(ErrorKind::InvalidInput, "is a device, not a file"))
    } else {
        Ok(file)
    }
}

/// Error of the system about a file that was to be read, in words and without its number; of the same kind.
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
    fn unreadable_file_told_in_words() {
        let here = tempfile::tempdir().unwrap();
        let bytes = here.path().join("bytes");
        std::fs::write(&bytes, [0xff, 0xfe]).unwrap();
        let other_bytes = here.path().join("others");
        std::fs::write(&other_bytes, [b'a', 0xff]).unwrap();
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
    #[test]
    fn endless_text_refused_before_memory() {
        let error = read_text("/dev/zero".as_ref()).unwrap_err();
        assert_eq!(error.to_string(), "is a device, not a file");
        let long = tempfile::NamedTempFile::new().unwrap();
        long.as_file().set_len(TEXT_BYTES_MAX.get() + 1).unwrap();
        let error = read_text(long.path()).unwrap_err();
        assert_eq!(error.to_string(), "is longer than 64MiB, as no such file is");
        std::fs::write(long.path(), "four").unwrap();
        assert_eq!(read_text_up_to(long.path(), Bytes::new(4)).unwrap(), "four");
        assert!(read_text_up_to(long.path(), Bytes::new(3)).is_err());
    }

    #[test]
    fn pipe_reads_like_file() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"piped").unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_text(path.as_ref()).unwrap(), "piped");
    }
}
