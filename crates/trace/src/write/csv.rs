//! Our CSV, plain or compressed by the ending of its name.
//!
//! Goals: reading gives back what was written.
//! Non-goals: devices: the form has no column for them, so a trace of several is refused.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use freewheel_units::{BLOCK_BYTES, Op, SimTime};

use super::{Form, Target, form};
use crate::error::TraceError;
use crate::format::freewheel_csv::HEADER;
use crate::input::Compression;
use crate::{PendingFile, Record};

/// Text gathered before it is handed on.
const CHUNK_BYTES: usize = 64 << 10;
const ZSTD_LEVEL: i32 = 3;

/// Writes a trace as Freewheel CSV; see [`Format::FreewheelCsv`](crate::Format::FreewheelCsv).
pub struct CsvWriter {
    sink: Sink,
    text: Vec<u8>,
    device: Option<u32>,
    target: Target,
}

impl CsvWriter {
    /// Starts a trace at `path`, compressed when the name ends in `.zst` or `.gz`.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let target = Target::new(path);
        let compression = match form(path) {
            Some(Form::Csv(compression)) => compression,
            _ => None,
        };
        let sink = Sink::create(path, compression).map_err(|error| target.io(error))?;
        let mut text = Vec::with_capacity(2 * CHUNK_BYTES);
        text.extend_from_slice(HEADER.as_bytes());
        text.push(b'\n');
        Ok(Self { sink, text, device: None, target })
    }

    /// Appends one record. A second device is an error, as is an address past 2^64 bytes.
    pub fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        self.target.check_extent(record)?;
        self.check_device(record.device)?;
        self.device = Some(record.device);
        append_line(&mut self.text, record).map_err(|error| self.target.io(error))?;
        self.target.records += 1;
        if self.text.len() >= CHUNK_BYTES { self.write_chunk() } else { Ok(()) }
    }

    /// Completes the file and puts it under its name.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.write_chunk()?;
        self.sink.finish().map_err(|error| self.target.io(error))
    }

    fn check_device(&self, device: u32) -> Result<(), TraceError> {
        let first = self.device.unwrap_or(device);
        if first == device {
            return Ok(());
        }
        let file = self.target.file.clone();
        Err(TraceError::NeedsOneDevice { file, first, second: device })
    }

    fn write_chunk(&mut self) -> Result<(), TraceError> {
        self.sink.write_all(&self.text).map_err(|error| self.target.io(error))?;
        self.text.clear();
        Ok(())
    }
}

/// Appends the line of a record, without its device.
pub(crate) fn append_line(text: &mut Vec<u8>, record: &Record) -> io::Result<()> {
    let (arrival, op) = (record.arrival.ns(), letter(record.op));
    let (offset, length) = (record.start.get() * BLOCK_BYTES, record.bytes().get());
    let fua = u8::from(record.fua);
    write!(text, "{arrival},{op},{offset},{length},{fua},")?;
    match record.completion.map(SimTime::ns) {
        Some(completion) => writeln!(text, "{completion}"),
        None => writeln!(text),
    }
}

fn letter(op: Op) -> char {
    match op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Flush => 'F',
        Op::Trim => 'T',
    }
}

/// The file, with or without a compressor before it.
enum Sink {
    Plain(BufWriter<PendingFile>),
    Gzip(GzEncoder<BufWriter<PendingFile>>),
    Zstd(zstd::Encoder<'static, BufWriter<PendingFile>>),
}

impl Sink {
    fn create(path: &Path, compression: Option<Compression>) -> io::Result<Self> {
        let file = BufWriter::new(PendingFile::create(path)?);
        Ok(match compression {
            None => Self::Plain(file),
            Some(Compression::Gzip) => {
                Self::Gzip(GzEncoder::new(file, flate2::Compression::default()))
            }
            Some(Compression::Zstd) => Self::Zstd(zstd::Encoder::new(file, ZSTD_LEVEL)?),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(|error| error.into_error())?.keep()
    }
}
