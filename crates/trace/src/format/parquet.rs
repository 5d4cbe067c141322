//! Freewheel's Parquet: a row a request, a column a field.
//!
//! | column | type | |
//! |---|---|---|
//! | `arrival_ns` | INT64 | |
//! | `op` | string | `read`, `write`, `flush` or `trim` |
//! | `device` | INT32 unsigned | 0 when the column is missing |
//! | `start_block` | INT64 | 512 bytes a block |
//! | `blocks` | INT64 | 0 for a flush |
//! | `completion_ns` | INT64, optional | null where unknown; the column may be missing |
//! | `fua` | BOOLEAN, or INT32 or INT64 of 0 and 1 | force unit access; false when null or when the column is missing |
//!
//! Goals: a record that was written and read is the same. Files of pandas, Polars or DuckDB with these
//! columns are read too, in any order and integer width. Other columns are ignored.
//! Non-goals: nested columns, other names.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use freewheel_units::{Op, SimTime};
use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::input::BytesConsumed;
use crate::record::{Extent, Record, completion_after};
use crate::scan::Number;
use crate::source::{Position, Source, Stop};

const MAGIC: &[u8] = b"PAR1";
/// Rows decoded at a time.
const BATCH_ROWS: usize = 8192;
/// The columns, in the order of [`ParquetSource::columns`].
pub(crate) const COLUMNS: [&str; 7] =
    ["arrival_ns", "op", "device", "start_block", "blocks", "completion_ns", "fua"];
const OP: usize = 1;
const FUA: usize = 6;
/// Columns that a file may lack.
const OPTIONAL: [&str; 3] = ["device", "completion_ns", "fua"];

pub(super) const ROW: Row = Row {
    format: Format::Parquet,
    name: "parquet",
    description: "Parquet: arrival_ns, op, device, start_block, blocks (512 B), completion_ns, fua",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: is_parquet,
    open: None,
};

/// True if a file that begins with these bytes is Parquet.
pub(crate) fn is_parquet(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// The records of a Parquet file.
pub(crate) struct ParquetSource {
    file: SerializedFileReader<File>,
    /// Place of each of [`COLUMNS`] in the file.
    columns: [Option<usize>; COLUMNS.len()],
    progress: BytesConsumed,
    next_group: usize,
    readers: Vec<Option<ColumnReader>>,
    numbers: [Vec<Option<i64>>; COLUMNS.len()],
    ops: Vec<Option<ByteArray>>,
    /// Rows in the batch, and how many of them were given.
    batch: (usize, usize),
    record: u64,
}

impl ParquetSource {
    /// Opens the file and finds its columns.
    pub fn open(path: &Path) -> Result<Self, Stop> {
        let handle = File::open(path)?;
        let progress = BytesConsumed::of_total(handle.metadata()?.len());
        let file = guarded(|| SerializedFileReader::new(handle).map_err(without_index))?;
        let columns = find_columns(&file)?;
        check_chunks(&file, progress.total)?;
        Ok(Self {
            file,
            columns,
            progress,
            next_group: 0,
            readers: Vec::new(),
            numbers: Default::default(),
            ops: Vec::new(),
            batch: (0, 0),
            record: 0,
        })
    }

    /// The count of bytes consumed.
    pub fn progress(&self) -> BytesConsumed {
        self.progress.clone()
    }

    /// Opens the next row group; `false` when there is none.
    fn open_group(&mut self) -> Result<bool, Stop> {
        if self.next_group == self.file.num_row_groups() {
            self.progress.finish();
            return Ok(false);
        }
        let group = self.file.get_row_group(self.next_group).map_err(broken)?;
        self.progress.advance(group.metadata().compressed_size().max(0) as u64);
        self.readers = self
            .columns
            .iter()
            .map(|column| column.map(|at| group.get_column_reader(at)).transpose())
            .collect::<Result<_, _>>()
            .map_err(broken)?;
        self.next_group += 1;
        Ok(true)
    }

    /// Decodes the next rows of the row group; `false` when it has none left.
    fn read_batch(&mut self) -> Result<bool, Stop> {
        let mut rows = None;
        for (index, reader) in self.readers.iter_mut().enumerate() {
            let Some(reader) = reader else { continue };
            let read = match index {
                OP => read_texts(reader, &mut self.ops),
                _ => read_numbers(reader, &mut self.numbers[index]),
            };
            let read = read.map_err(|stop| of_column(stop, COLUMNS[index]))?;
            // Columns are decoded in parallel, a batch each: unequal lengths would join values of
            // different rows.
            if *rows.get_or_insert(read) != read {
                return Err(Stop::Broken("the columns differ in length".to_owned()));
            }
        }
        self.batch = (rows.unwrap_or(0), 0);
        Ok(self.batch.0 > 0)
    }

    /// Makes sure that a row is at hand; `false` at the end.
    fn fill(&mut self) -> Result<bool, Stop> {
        while self.batch.1 == self.batch.0 {
            let filled = guarded(|| Ok(self.read_batch()? || self.open_group()?));
            if !filled.map_err(|stop| self.behind_record(stop))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds to an error of the Parquet library where it was met, and the way out.
    fn behind_record(&self, stop: Stop) -> Stop {
        match stop {
            Stop::Broken(reason) => Stop::Broken(format!(
                "is damaged behind record {}: {reason}; copy the file again, or write it anew",
                self.record
            )),
            other => other,
        }
    }

    fn number(&self, column: usize, row: usize) -> Result<Number, Fault> {
        let name = COLUMNS[column];
        let Some(value) = self.numbers[column][row] else {
            return Err(Fault::new(name, b"null", "only completion_ns may be null"));
        };
        Ok(Number {
            name,
            value: u64::try_from(value).map_err(|_| Fault::number(name, value, "negative"))?,
        })
    }

    fn record_at(&self, row: usize) -> Result<Record, Fault> {
        let arrival = SimTime::from_ns(self.number(0, row)?.value);
        let op = op(self.ops[row].as_ref())?;
        let device = self.columns[2].map_or(Ok(0), |_| self.number(2, row)?.to_u32())?;
        let (start, blocks) = (self.number(3, row)?, self.number(4, row)?);
        let extent = if op == Op::Flush { Extent::NONE } else { Extent::of_blocks(start, blocks)? };
        let completion = self.completion(arrival, row)?;
        let Extent { start, blocks, widened } = extent;
        let fua = self.fua(row)?;
        Ok(Record { arrival, op, device, start, blocks, widened, completion, fua })
    }

    fn fua(&self, row: usize) -> Result<bool, Fault> {
        match self.columns[FUA].and_then(|_| self.numbers[FUA][row]) {
            None | Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => {
                Err(Fault::number(COLUMNS[FUA], other, "write true or false, or 1 or 0"))
            }
        }
    }

    fn completion(&self, arrival: SimTime, row: usize) -> Result<Option<SimTime>, Fault> {
        if self.columns[5].is_none() || self.numbers[5][row].is_none() {
            return Ok(None);
        }
        completion_after(arrival, self.number(5, row)?).map(Some)
    }
}

impl Source for ParquetSource {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        if !self.fill()? {
            return Ok(None);
        }
        let row = self.batch.1;
        self.batch.1 += 1;
        self.record += 1;
        Ok(Some(self.record_at(row)?.checked()?))
    }

    fn position(&self) -> Position {
        Position { record: self.record, line: None, offset_bytes: None }
    }
}

/// Performs `work`, which calls the Parquet library. On some damaged pages the library panics instead
/// of returning an error. (A build that aborts on panics is not protected.)
fn guarded<T>(work: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Stop::Broken("a damaged page stopped the Parquet library".to_owned()))
    })
}

/// Error of a file without a readable index.
fn without_index(error: ParquetError) -> Stop {
    Stop::Broken(format!(
        "is cut off or damaged: Parquet has its index at the end of the file, and that is not \
         readable ({error}); copy the file again, or write it anew"
    ))
}

fn of_column(stop: Stop, name: &str) -> Stop {
    match stop {
        Stop::Broken(reason) => Stop::Broken(format!("column `{name}`: {reason}")),
        other => other,
    }
}

fn broken(error: ParquetError) -> Stop {
    Stop::Broken(error.to_string())
}

/// Checks that every column chunk lies within the file. The library panics on some that do not.
fn check_chunks(file: &SerializedFileReader<File>, file_bytes: u64) -> Result<(), Stop> {
    let groups = file.metadata().row_groups();
    let mut chunks = groups.iter().flat_map(|group| group.columns());
    if chunks.all(|chunk| is_within(chunk, file_bytes)) {
        return Ok(());
    }
    Err(Stop::Broken("a column chunk lies outside the file".to_owned()))
}

fn is_within(chunk: &ColumnChunkMetaData, file_bytes: u64) -> bool {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let (start, length) = (u64::try_from(start), u64::try_from(chunk.compressed_size()));
    let (Ok(start), Ok(length)) = (start, length) else { return false };
    chunk.num_values() >= 0 && start.checked_add(length).is_some_and(|end| end <= file_bytes)
}

fn find_columns(file: &SerializedFileReader<File>) -> Result<[Option<usize>; COLUMNS.len()], Stop> {
    let schema = file.metadata().file_metadata().schema_descr();
    let mut found = [None; COLUMNS.len()];
    for (slot, name) in found.iter_mut().zip(COLUMNS) {
        *slot = schema.columns().iter().position(|column| column.path().string() == name);
        let Some(at) = *slot else {
            if OPTIONAL.contains(&name) {
                continue;
            }
            let want = COLUMNS.join(", ");
            return Err(Stop::Broken(format!("it has no column `{name}`; a trace has {want}")));
        };
        let column = schema.column(at);
        if !is_right_type(name, column.physical_type()) || column.max_rep_level() > 0 {
            let kind = column.physical_type();
            return Err(Stop::Broken(format!("column `{name}` has the wrong type {kind}")));
        }
    }
    Ok(found)
}

fn is_right_type(name: &str, physical: PhysicalType) -> bool {
    match physical {
        PhysicalType::INT32 | PhysicalType::INT64 => name != COLUMNS[OP],
        PhysicalType::BOOLEAN => name == COLUMNS[FUA],
        PhysicalType::BYTE_ARRAY => name == COLUMNS[OP],
        _ => false,
    }
}

fn op(text: Option<&ByteArray>) -> Result<Op, Fault> {
    match text.map_or(&b"null"[..], ByteArray::data) {
        b"read" => Ok(Op::Read),
        b"write" => Ok(Op::Write),
        b"flush" => Ok(Op::Flush),
        b"trim" => Ok(Op::Trim),
        other => Err(Fault::new("op", other, "write read, write, flush or trim")),
    }
}

fn read_numbers(reader: &mut ColumnReader, out: &mut Vec<Option<i64>>) -> Result<usize, Stop> {
    match reader {
        ColumnReader::Int32ColumnReader(reader) => {
            // Unsigned, as we write it: the only 32-bit column of ours is the device.
            read_column::<Int32Type, _>(reader, out, |value| i64::from(value as u32))
        }
        ColumnReader::BoolColumnReader(reader) => {
            read_column::<BoolType, _>(reader, out, i64::from)
        }
        ColumnReader::Int64ColumnReader(reader) => {
            read_column::<Int64Type, _>(reader, out, |value| value)
        }
        _ => Err(Stop::Broken("a number column changes its type".to_owned())),
    }
}

fn read_texts(reader: &mut ColumnReader, out: &mut Vec<Option<ByteArray>>) -> Result<usize, Stop> {
    match reader {
        ColumnReader::ByteArrayColumnReader(reader) => {
            read_column::<ByteArrayType, _>(reader, out, |value| value)
        }
        _ => Err(Stop::Broken("the op column changes its type".to_owned())),
    }
}

/// Decodes up to a batch of rows, with nulls in their places.
fn read_column<T: DataType, V>(
    reader: &mut ColumnReaderImpl<T>,
    out: &mut Vec<Option<V>>,
    convert: impl Fn(T::T) -> V,
) -> Result<usize, Stop> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let read = reader.read_records(BATCH_ROWS, Some(&mut levels), None, &mut values);
    let (rows, _, _) = read.map_err(broken)?;
    let mut values = values.into_iter().map(convert);
    out.clear();
    if levels.is_empty() {
        out.extend(values.map(Some));
    } else {
        // A column that is neither nested nor repeated has the levels 0, null, and 1.
        out.extend(levels.iter().map(|&level| if level == 1 { values.next() } else { None }));
    }
    if out.len() == rows { Ok(rows) } else { Err(Stop::Broken("a column ends early".to_owned())) }
}
