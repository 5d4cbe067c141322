//! Every completion of a run as a row of a Parquet file.
//!
//! Goals: DuckDB, Polars and pandas read it as it is; the file says which run it came from; memory
//! holds one row group and no more; the file appears under its name when it is complete.
//! Non-goals: reading it back.
//!
//! | column | type | content |
//! |---|---|---|
//! | `arrival_ns` | int64 | when the request arrived, in virtual time |
//! | `op` | string | `read`, `write`, `flush` or `trim` |
//! | `start_block`, `blocks` | int64 | what it asked for, in blocks of 512 bytes on the drive |
//! | `queue_ns` .. `bus_ns` | int64 | stages, in the order in which they pass |
//! | `response_ns` | int64 | their sum |
//! | `drive_queue_ns` | int64 | the part of `queue_ns` that passed inside the drive |
//! | `refused` | boolean | whether a host-managed drive refused it; then it took no time |
//! | `fua` | boolean | force unit access |
//! | `is_warm_up` | boolean | whether it arrived during the warm-up, which results are without |
//!
//! Rows are in order of completion. Key-value metadata: `freewheel.log.schema_version`,
//! `freewheel.version`, `freewheel.seed`, and `freewheel.config`, the resolved experiment as TOML.

use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use freewheel_trace::PendingFile;
use freewheel_units::Op;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use thiserror::Error;

use crate::completion::Completion;
use crate::config::SimConfig;

/// Rows of a row group. One is held in memory: 92 bytes a row.
const GROUP_ROWS: usize = 1 << 20;
/// Operations handed to the encoder at a time.
const BATCH_ROWS: usize = 8192;
/// Signed, as every reader of Parquet understands.
const INT64_MAX: u64 = i64::MAX as u64;
/// Integer columns. In the schema `op` follows the first; `refused`, `fua` and `is_warm_up` are last.
const INTEGERS: [&str; 11] = [
    "arrival_ns",
    "start_block",
    "blocks",
    "queue_ns",
    "overhead_ns",
    "seek_ns",
    "rotate_ns",
    "transfer_ns",
    "bus_ns",
    "response_ns",
    "drive_queue_ns",
];
const SCHEMA: &str = "
    message completions {
        required int64 arrival_ns;
        required binary op (string);
        required int64 start_block;
        required int64 blocks;
        required int64 queue_ns;
        required int64 overhead_ns;
        required int64 seek_ns;
        required int64 rotate_ns;
        required int64 transfer_ns;
        required int64 bus_ns;
        required int64 response_ns;
        required int64 drive_queue_ns;
        required boolean refused;
        required boolean fua;
        required boolean is_warm_up;
    }";

type FileWriter = SerializedFileWriter<BufWriter<PendingFile>>;

/// Reason why a log could not be written.
#[derive(Debug, Error)]
#[error("{file}: {reason}")]
pub struct LogError {
    /// The log.
    pub file: String,
    /// Reason given by the system or the Parquet library.
    pub reason: String,
}

/// Writes one row a completion. What goes wrong on the way is kept until [`Self::finish`], so that
/// [`Self::record`] can serve as an observer of a run.
pub struct CompletionLog {
    file: FileWriter,
    rows: CompletionRows,
    name: String,
    failure: Option<String>,
}

/// Completions as columns, in the order in which they came.
#[derive(Debug, Default)]
pub struct CompletionRows {
    /// Those of [`Self::INTEGERS`].
    pub integers: [Vec<i64>; INTEGERS.len()],
    /// What was asked for.
    pub ops: Vec<Op>,
    /// Whether a host-managed drive refused it.
    pub refused: Vec<bool>,
    /// Force unit access.
    pub fua: Vec<bool>,
    /// Marks of requests that arrived during the warm-up.
    pub is_warm_up: Vec<bool>,
}

impl CompletionLog {
    /// Starts a log at `path` of a run of `config`. No file appears there until [`Self::finish`].
    pub fn create(path: &Path, config: &SimConfig) -> Result<Self, LogError> {
        let name = path.display().to_string();
        let error = |reason: String| LogError { file: name.clone(), reason };
        let config_text = toml::to_string(config).map_err(|e| error(e.to_string()))?;
        let pending = PendingFile::create(path).map_err(|e| error(e.to_string()))?;
        let file = start(pending, config.seed, config_text).map_err(|e| error(reason(e)))?;
        Ok(Self { file, rows: CompletionRows::default(), name, failure: None })
    }

    /// Appends a row. After a failure it is ignored.
    #[inline]
    pub fn record(&mut self, completion: &Completion) {
        if self.failure.is_some() {
            return;
        }
        if !self.rows.push(completion) {
            self.failure = Some(format!("a time of {} does not fit in int64", completion.end));
            return;
        }
        if self.rows.ops.len() == GROUP_ROWS {
            self.close_group();
        }
    }

    /// Completes the file and puts it under its name, or says what went wrong first.
    pub fn finish(mut self) -> Result<(), LogError> {
        self.close_group();
        let error = |reason: String| LogError { file: self.name.clone(), reason };
        if let Some(reason) = self.failure {
            return Err(error(reason));
        }
        let buffer = self.file.into_inner().map_err(|e| error(reason(e)))?;
        let pending = buffer.into_inner().map_err(|e| error(e.error().to_string()))?;
        pending.keep().map_err(|e| error(e.to_string()))
    }

    #[cold]
    fn close_group(&mut self) {
        if self.failure.is_some() || self.rows.ops.is_empty() {
            return;
        }
        if let Err(error) = write_group(&mut self.file, &self.rows) {
            self.failure = Some(reason(error));
        }
        self.rows.clear();
    }
}

impl CompletionRows {
    /// Names of the integer columns.
    pub const INTEGERS: [&str; INTEGERS.len()] = INTEGERS;

    /// No rows, with room for this many.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            integers: std::array::from_fn(|_| Vec::with_capacity(rows)),
            ops: Vec::with_capacity(rows),
            refused: Vec::with_capacity(rows),
            fua: Vec::with_capacity(rows),
            is_warm_up: Vec::with_capacity(rows),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Appends a row; `false` for a time that does not fit. Every value of a row is at most its end, which is
    /// checked; an address is far below.
    #[inline]
    pub fn push(&mut self, completion: &Completion) -> bool {
        if completion.end.ns() > INT64_MAX {
            return false;
        }
        let request = &completion.request;
        let row = [
            completion.arrival.ns(),
            request.start.get(),
            request.blocks.get(),
            completion.queue.ns(),
            completion.overhead.ns(),
            completion.seek.ns(),
            completion.rotate.ns(),
            completion.transfer.ns(),
            completion.bus.ns(),
            completion.response().ns(),
            completion.drive_queue.ns(),
        ];
        for (column, value) in self.integers.iter_mut().zip(row) {
            column.push(value as i64);
        }
        self.ops.push(request.op);
        self.refused.push(completion.refused.is_some());
        self.fua.push(request.fua);
        self.is_warm_up.push(completion.is_warm_up);
        true
    }

    fn clear(&mut self) {
        self.integers.iter_mut().for_each(Vec::clear);
        self.ops.clear();
        self.refused.clear();
        self.fua.clear();
        self.is_warm_up.clear();
    }
}

/// Reason given by the system, where the Parquet library only passes it on.
fn reason(error: ParquetError) -> String {
    match error {
        ParquetError::External(error) => error.to_string(),
        error => error.to_string(),
    }
}

fn start(pending: PendingFile, seed: u64, config: String) -> ParquetResult<FileWriter> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = Arc::new(properties(seed, config)?);
    SerializedFileWriter::new(BufWriter::new(pending), schema, properties)
}

fn properties(seed: u64, config: String) -> ParquetResult<WriterProperties> {
    let metadata = [
        // Raised when a column changes its meaning or goes; a column that is added does not raise it.
        ("freewheel.log.schema_version", "1".to_owned()),
        ("freewheel.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("freewheel.seed", seed.to_string()),
        ("freewheel.config", config),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    // Completions come in order of time, so that arrivals nearly climb.
    let arrivals = ColumnPath::from("arrival_ns");
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(metadata.to_vec()))
        .set_column_dictionary_enabled(arrivals.clone(), false)
        .set_column_encoding(arrivals, Encoding::DELTA_BINARY_PACKED)
        .build())
}

/// The columns in the order of the schema.
fn write_group(file: &mut FileWriter, rows: &CompletionRows) -> ParquetResult<()> {
    let mut group = file.next_row_group()?;
    let (arrivals, others) = rows.integers.split_first().expect("eleven columns");
    write_column::<Int64Type>(&mut group, arrivals)?;
    write_ops(&mut group, &rows.ops)?;
    for values in others {
        write_column::<Int64Type>(&mut group, values)?;
    }
    write_column::<BoolType>(&mut group, &rows.refused)?;
    write_column::<BoolType>(&mut group, &rows.fua)?;
    write_column::<BoolType>(&mut group, &rows.is_warm_up)?;
    group.close().map(drop)
}

type GroupWriter<'a> = SerializedRowGroupWriter<'a, BufWriter<PendingFile>>;

fn write_column<T: DataType>(group: &mut GroupWriter<'_>, values: &[T::T]) -> ParquetResult<()> {
    let mut column = group.next_column()?.ok_or_else(missing_column)?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn write_ops(group: &mut GroupWriter<'_>, ops: &[Op]) -> ParquetResult<()> {
    let mut column = group.next_column()?.ok_or_else(missing_column)?;
    let names = [Op::Read, Op::Write, Op::Flush, Op::Trim]
        .map(|op| ByteArray::from(op.to_string().into_bytes()));
    for batch in ops.chunks(BATCH_ROWS) {
        let texts: Vec<ByteArray> = batch.iter().map(|&op| names[op as usize].clone()).collect();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
    }
    column.close()
}

fn missing_column() -> ParquetError {
    ParquetError::General("the schema has fewer columns than are written".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Row;

    const EXPERIMENT: &str = r#"
        drive = "atlas10k"
        seed = 7
        workload = { kind = "closed", outstanding = 4, requests = 500 }
    "#;

    fn logged(path: &Path) -> SimConfig {
        logged_with(path, &[])
    }

    fn logged_with(path: &Path, overrides: &[String]) -> SimConfig {
        let config = SimConfig::parse(EXPERIMENT, "test", overrides).unwrap();
        let mut log = CompletionLog::create(path, &config).unwrap();
        let experiment = Experiment::new(config.clone()).unwrap();
        experiment.new_run().with_observer(&mut |c| log.record(c)).simulate().unwrap();
        log.finish().unwrap();
        config
    }

    fn integer(row: &Row, name: &str) -> i64 {
        use parquet::record::RowAccessor;
        let at = row.get_column_iter().position(|(column, _)| column == name).unwrap();
        row.get_long(at).unwrap()
    }

    fn boolean(row: &Row, name: &str) -> bool {
        let value = row.get_column_iter().find(|(column, _)| *column == name).unwrap().1;
        *value == parquet::record::Field::Bool(true)
    }

    #[test]
    fn log_stages_add_up_to_response() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        logged(&path);
        let reader = SerializedFileReader::try_from(path.as_path()).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 500);
        let stages = ["queue_ns", "overhead_ns", "seek_ns", "rotate_ns", "transfer_ns", "bus_ns"];
        for row in &rows {
            let sum: i64 = stages.iter().map(|stage| integer(row, stage)).sum();
            assert_eq!(sum, integer(row, "response_ns"));
            assert!((0..=integer(row, "queue_ns")).contains(&integer(row, "drive_queue_ns")));
        }
        assert!(rows.iter().any(|row| integer(row, "drive_queue_ns") > 0));
    }

    #[test]
    fn writes_that_were_refused_are_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        logged_with(&path, &["drive=ultrastar-hc620-14tb".into()]);
        let reader = SerializedFileReader::try_from(path.as_path()).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let refused = |row: &Row| boolean(row, "refused");
        let marked: Vec<&Row> = rows.iter().filter(|row| refused(row)).collect();
        // A third are writes, and one in a hundred of them lies in a conventional zone.
        assert!((120..220).contains(&marked.len()), "{}", marked.len());
        assert!(marked.iter().all(|row| integer(row, "response_ns") == 0));
    }

    #[test]
    fn log_marks_fua_writes_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        logged_with(&path, &["workload.pattern.fua_share=0.5".into()]);
        let reader = SerializedFileReader::try_from(path.as_path()).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let is_write = |row: &&Row| {
            let op = row.get_column_iter().find(|(column, _)| *column == "op").unwrap().1;
            *op == parquet::record::Field::Str("write".into())
        };
        let (writes, reads): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(is_write);
        let forced = |rows: &[&Row]| rows.iter().filter(|row| boolean(row, "fua")).count();
        let share = forced(&writes) as f64 / writes.len() as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
        assert_eq!(forced(&reads), 0);
    }

    #[test]
    fn requests_of_the_warm_up_are_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        logged_with(&path, &["warm_up=0.2".into()]);
        let reader = SerializedFileReader::try_from(path.as_path()).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let (before, after): (Vec<&Row>, Vec<&Row>) =
            rows.iter().partition(|row| boolean(row, "is_warm_up"));
        assert_eq!((before.len(), after.len()), (100, 400));
        let arrivals = |rows: &[&Row]| -> Vec<i64> {
            rows.iter().map(|row| integer(row, "arrival_ns")).collect()
        };
        assert!(arrivals(&before).iter().max() <= arrivals(&after).iter().min());
    }

    #[test]
    fn log_metadata_identifies_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        let config = logged(&path);
        let reader = SerializedFileReader::try_from(path.as_path()).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let value = |key: &str| {
            let found = metadata.iter().find(|pair| pair.key == key);
            found.and_then(|pair| pair.value.clone()).unwrap()
        };
        assert_eq!(value("freewheel.seed"), "7");
        assert_eq!(value("freewheel.version"), env!("CARGO_PKG_VERSION"));
        let again = SimConfig::parse(&value("freewheel.config"), "metadata", &[]).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn log_unfinished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let config = SimConfig::parse(EXPERIMENT, "test", &[]).unwrap();
        drop(CompletionLog::create(&folder.path().join("log.parquet"), &config).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
