//! Writing traces in our own forms.
//!
//! Goals: the file appears under its name when it is complete and not before; the form follows
//! from the name.
//! Non-goals: writing other people's formats.

mod csv;
mod parquet;

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

pub use csv::CsvWriter;
pub use parquet::ParquetWriter;

use crate::error::{TraceError, path_text};
use crate::input::Compression;
use crate::{Record, VOLUME_BLOCKS_MAX};
use tempfile::NamedTempFile;

/// A writer of the form that the name of the file asks for.
pub enum TraceWriter {
    /// For `.parquet`.
    Parquet(Box<ParquetWriter>),
    /// For `.csv`, `.csv.zst` and `.csv.gz`.
    Csv(Box<CsvWriter>),
}

impl TraceWriter {
    /// Starts a trace at `path`. No file appears there until [`finish`](Self::finish).
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        match form(path) {
            Some(Form::Parquet) => Ok(Self::Parquet(Box::new(ParquetWriter::create(path)?))),
            Some(Form::Csv(_)) => Ok(Self::Csv(Box::new(CsvWriter::create(path)?))),
            None => Err(TraceError::UnknownExtension { file: path_text(path) }),
        }
    }

    /// Appends one record.
    pub fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        match self {
            Self::Parquet(writer) => writer.write(record),
            Self::Csv(writer) => writer.write(record),
        }
    }

    /// Completes the file and puts it under its name, replacing what was there.
    pub fn finish(self) -> Result<(), TraceError> {
        match self {
            Self::Parquet(writer) => writer.finish(),
            Self::Csv(writer) => writer.finish(),
        }
    }
}

/// How a file is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Parquet,
    /// Compressed or not.
    Csv(Option<Compression>),
}

/// What the end of the name asks for.
fn form(path: &Path) -> Option<Form> {
    let name = path.file_name()?.as_encoded_bytes();
    let endings = [
        (".parquet", Form::Parquet),
        (".csv", Form::Csv(None)),
        (".csv.gz", Form::Csv(Some(Compression::Gzip))),
        (".csv.zst", Form::Csv(Some(Compression::Zstd))),
    ];
    endings.into_iter().find(|(ending, _)| name.ends_with(ending.as_bytes())).map(|(_, form)| form)
}

/// A file that receives its name when it is complete; dropped before that, it vanishes.
pub struct PendingFile {
    file: NamedTempFile,
    target: PathBuf,
}

impl PendingFile {
    /// Starts a file that is to become `target`.
    pub fn create(target: &Path) -> io::Result<Self> {
        check_replaceable(target)?;
        // Beside the target, for a rename does not cross file systems.
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".").suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As any new file, less the umask; temporary files are otherwise the owner's alone.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let folder = folder.unwrap_or(Path::new("."));
        // The name of the temporary file would not help a reader of the message.
        let plain = |error: io::Error| io::Error::new(error.kind(), reason(folder, &error));
        let file = builder.tempfile_in(folder).map_err(plain)?;
        Ok(Self { file, target: target.to_owned() })
    }

    /// Puts it under its name, replacing what was there.
    pub fn keep(self) -> io::Result<()> {
        let kept = self.file.persist(&self.target);
        kept.map(drop).map_err(|error| plain_write(error.error))
    }
}

/// Err for a folder or a device: the new file would take its place, or not get its name in the end.
fn check_replaceable(target: &Path) -> io::Result<()> {
    let is_folder_name = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    let (kind, says) = match target.metadata() {
        _ if is_folder_name || target.is_dir() => {
            (ErrorKind::IsADirectory, "is a folder, not a file: give the name of a file in it")
        }
        Ok(there) if !there.is_file() => (
            ErrorKind::InvalidInput,
            "is a device or a pipe, which cannot be replaced by a file: give the name of a file",
        ),
        _ => return Ok(()),
    };
    Err(io::Error::new(kind, says))
}

fn reason(folder: &Path, error: &io::Error) -> String {
    let name = folder.display();
    match error.kind() {
        ErrorKind::NotFound if !folder.exists() => {
            format!("there is no folder {name}: create it, or choose another")
        }
        ErrorKind::NotADirectory => format!("{name} is not a folder: choose another"),
        ErrorKind::PermissionDenied => {
            format!("you are not permitted to write in the folder {name}: choose another")
        }
        kind => format!("cannot write in the folder {name}: {kind}: choose another"),
    }
}

/// What the system says of a file that is being written, in words with the way out; of the same kind.
fn plain_write(error: io::Error) -> io::Error {
    let says = match error.kind() {
        ErrorKind::StorageFull => {
            "the file system is full: make room, or write to another; no partial file remains"
        }
        ErrorKind::QuotaExceeded => {
            "your quota is used up: make room, or write to another file system; no partial file remains"
        }
        ErrorKind::FileTooLarge => {
            "the file would be larger than is allowed here (`ulimit -f`); no partial file remains"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), says)
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Its own errors name the temporary file, which would not help a reader of the message.
        self.file.as_file_mut().write(bytes).map_err(plain_write)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush().map_err(plain_write)
    }
}

/// The file that is written and how far it is, for messages.
struct Target {
    file: String,
    /// Records written.
    records: u64,
}

impl Target {
    fn new(path: &Path) -> Self {
        Self { file: path_text(path), records: 0 }
    }

    fn io(&self, error: io::Error) -> TraceError {
        TraceError::write(&self.file, error)
    }

    fn check(&self, field: &'static str, value: u64, max: u64) -> Result<(), TraceError> {
        if value <= max {
            return Ok(());
        }
        let (file, record) = (self.file.clone(), self.records + 1);
        Err(TraceError::TooLargeToWrite { file, record, field, value, max })
    }

    /// Checks that byte addresses of the record fit in 64 bits.
    fn check_extent(&self, record: &Record) -> Result<(), TraceError> {
        let (start, blocks) = (record.start.get(), record.blocks.get());
        self.check("start_block", start, VOLUME_BLOCKS_MAX)?;
        self.check("blocks", blocks, VOLUME_BLOCKS_MAX - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::EXTENSIONS;

    #[test]
    fn the_name_tells_the_form() {
        let form_of = |name: &str| form(Path::new(name));
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let latin_1 = std::ffi::OsStr::from_bytes(b"gr\xf6sse.csv.gz");
            assert_eq!(form(Path::new(latin_1)), Some(Form::Csv(Some(Compression::Gzip))));
        }
        assert_eq!(form_of("a/b.parquet"), Some(Form::Parquet));
        assert_eq!(form_of("b.csv"), Some(Form::Csv(None)));
        assert_eq!(form_of("b.csv.zst"), Some(Form::Csv(Some(Compression::Zstd))));
        assert_eq!(form_of("b.csv.gz"), Some(Form::Csv(Some(Compression::Gzip))));
        assert_eq!(form_of("b.txt"), None);
    }

    #[test]
    fn another_name_is_refused_with_the_allowed_endings() {
        let error = TraceWriter::create(Path::new("out.txt")).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("out.txt") && text.contains(EXTENSIONS)));
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_from_one_that_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (missing, file) = (folder.path().join("missing"), folder.path().join("file"));
        std::fs::write(&file, "").unwrap();
        let reason = |folder: &Path| match PendingFile::create(&folder.join("x.csv")) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{} is no folder", folder.display()),
        };
        let named = |folder: &Path| format!("there is no folder {}: create it", folder.display());
        assert!(reason(&missing).starts_with(&named(&missing)), "{}", reason(&missing));
        let none = format!("{} is not a folder: choose another", file.display());
        assert_eq!(reason(&file), none);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_writer_dropped_before_its_end_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.csv", "a.csv.gz", "a.csv.zst"] {
            drop(TraceWriter::create(&folder.path().join(name)).unwrap());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
