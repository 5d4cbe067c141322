//! From any format to one of ours.
//!
//! Goals: flat memory, the form follows from the name of the output.
//! Non-goals: changing requests: choosing a device is the only filter.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::{Serialize, Serializer};

use crate::error::{Damaged, TraceError, path_text};
use crate::reader::REPORT_RECORDS;
use crate::source::LeftOutRows;
use crate::survey::Survey;
use crate::{Format, OpenOptions, TraceReader, TraceWriter};

/// Options of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConvertOptions {
    /// Options that read the input.
    pub open: OpenOptions,
    /// The only device to keep; all when `None`.
    pub device: Option<u32>,
}

/// Result of a conversion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Converted {
    /// The format of the input.
    pub format: Format,
    /// Records written.
    pub records: u64,
    /// Records left out as of another device.
    pub other_devices: u64,
    /// Malformed records left out.
    pub skipped: u64,
    /// Rows left out, as they are no requests to the disk.
    pub left_out: LeftOutRows,
    /// Results of the first pass over the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survey: Option<Survey>,
    /// Damage of the input; records after it are left out.
    #[serde(rename = "damage", serialize_with = "place", skip_serializing_if = "Option::is_none")]
    pub damaged: Option<Damaged>,
}

/// Place of the damage; the document names the file on its own.
fn place<S: Serializer>(damaged: &Option<Damaged>, serializer: S) -> Result<S::Ok, S::Error> {
    damaged.as_ref().map(|damaged| &damaged.damage).serialize(serializer)
}

/// Writes the trace at `input` to `output`, whose name ends in `.parquet`, `.csv`, `.csv.zst` or
/// `.csv.gz`. CSV holds one device: a trace of several needs Parquet or `options.device`. Shows the reader
/// to `report` every 65,536 records, for a progress bar.
pub fn convert(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    mut report: impl FnMut(&TraceReader),
) -> Result<Converted, TraceError> {
    if is_same_file(input, output) {
        return Err(TraceError::SameFile { file: path_text(output) });
    }
    // The writer comes first: it rejects a wrong output name before a long file is read.
    let writer = TraceWriter::create(output)?;
    copy(TraceReader::open(input, &options.open)?, writer, options.device, &mut report)
}

/// Converts a trace from any stream but Parquet; `name` is for messages.
pub fn convert_stream(
    name: &str,
    stream: impl Read,
    output: &Path,
    options: &ConvertOptions,
    mut report: impl FnMut(&TraceReader),
) -> Result<Converted, TraceError> {
    let writer = TraceWriter::create(output)?;
    let reader = TraceReader::from_reader(name, stream, &options.open)?;
    copy(reader, writer, options.device, &mut report)
}

fn copy(
    mut reader: TraceReader,
    mut writer: TraceWriter,
    device: Option<u32>,
    report: &mut dyn FnMut(&TraceReader),
) -> Result<Converted, TraceError> {
    reader.prepare(report)?;
    let mut seen = 0;
    let mut others = BTreeMap::<u32, u64>::new();
    while let Some(record) = reader.next() {
        let record = record?;
        if device.is_none_or(|device| device == record.device) {
            writer.write(&record)?;
        } else {
            *others.entry(record.device).or_default() += 1;
        }
        seen += 1;
        if seen % REPORT_RECORDS == 0 {
            report(&reader);
        }
    }
    let other_devices = others.values().sum();
    if let Some(device) = device.filter(|_| seen > 0 && seen == other_devices) {
        let devices = others.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(TraceError::NoDevice { file: reader.file().to_owned(), device, devices });
    }
    writer.finish()?;
    Ok(Converted {
        format: reader.format(),
        records: seen - other_devices,
        other_devices,
        skipped: reader.skipped(),
        left_out: reader.left_out(),
        survey: reader.surveyed().copied(),
        damaged: reader.damaged(),
    })
}

/// True if both paths lead to one file that is there.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
