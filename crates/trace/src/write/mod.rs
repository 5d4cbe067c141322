//! Writing traces in our own forms.
//!
//! Goals: the file appears under its name when it is complete and not before; the form follows
//! from the name.
//! Non-goals: writing other people's formats.

mod csv;
mod parquet;

use std::io;
use std::path::Path;

pub use csv::CsvWriter;
pub(crate) use csv::append_line;
pub use parquet::ParquetWriter;

use crate::error::{TraceError, path_text};
use crate::input::Compression;
use crate::{Record, VOLUME_BLOCKS_MAX};

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

/// Form of a file to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Parquet,
    /// Compressed or not.
    Csv(Option<Compression>),
}

/// Form that the end of the name asks for.
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

/// The file that is written and how far it is, for messages.
struct Target {
    file: String,
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
    fn name_tells_output_form() {
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
    fn name_with_other_ending_refused() {
        let error = TraceWriter::create(Path::new("out.txt")).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("out.txt") && text.contains(EXTENSIONS)));
    }

    #[test]
    fn writer_dropped_early_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.parquet", "a.csv", "a.csv.gz", "a.csv.zst"] {
            drop(TraceWriter::create(&folder.path().join(name)).unwrap());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
