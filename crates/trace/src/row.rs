//! A request of a trace as the plain numbers of our Parquet, for programs that hold traces in tables.

use std::path::Path;

use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};

use crate::error::TraceError;
use crate::record::{Record, VOLUME_BLOCKS_MAX};
use crate::write::TraceWriter;

/// A row of a trace, with the columns of our Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRow {
    /// When the request arrived.
    pub arrival_ns: u64,
    /// Operation.
    pub op: Op,
    /// Number of the disk or volume in the trace.
    pub device: u32,
    /// The first block of 512 bytes; 0 for a flush.
    pub start_block: u64,
    /// Number of blocks; 0 for a flush.
    pub blocks: u64,
    /// When it completed; None where unknown.
    pub completion_ns: Option<u64>,
    /// Force unit access.
    pub fua: bool,
}

impl TraceRow {
    /// Names of the columns, in the order of the fields.
    pub const COLUMNS: [&str; 7] = crate::format::parquet::COLUMNS;

    fn record(self) -> Record {
        Record {
            arrival: SimTime::from_ns(self.arrival_ns),
            op: self.op,
            device: self.device,
            start: VolumeBlock::new(self.start_block.min(VOLUME_BLOCKS_MAX + 1)),
            blocks: Blocks::new(self.blocks),
            widened: false,
            completion: self.completion_ns.map(SimTime::from_ns),
            fua: self.fua,
        }
    }
}

impl From<&Record> for TraceRow {
    fn from(record: &Record) -> Self {
        Self {
            arrival_ns: record.arrival.ns(),
            op: record.op,
            device: record.device,
            start_block: record.start.get(),
            blocks: record.blocks.get(),
            completion_ns: record.completion.map(SimTime::ns),
            fua: record.fua,
        }
    }
}

/// Writes these rows to `output`, in the form that its name asks for, and gives their number. A row that is no
/// request is found when the trace is read.
pub fn write_rows<E: From<TraceError>>(
    output: &Path,
    rows: impl Iterator<Item = Result<TraceRow, E>>,
) -> Result<u64, E> {
    let mut writer = TraceWriter::create(output)?;
    let mut count = 0;
    for row in rows {
        writer.write(&row?.record())?;
        count += 1;
    }
    writer.finish()?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, TraceReader};

    #[test]
    fn rows_that_are_written_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let row = |arrival_ns, op, blocks, completion_ns| TraceRow {
            arrival_ns,
            op,
            device: 3,
            start_block: blocks * 8,
            blocks,
            completion_ns,
            fua: op == Op::Write,
        };
        let rows = [
            row(1, Op::Read, 8, Some(900)),
            row(7, Op::Write, 16, None),
            row(9, Op::Flush, 0, Some(10)),
        ];
        let written = write_rows::<TraceError>(&path, rows.into_iter().map(Ok)).unwrap();
        let reader = TraceReader::open(&path, &OpenOptions::default()).unwrap();
        let back: Vec<TraceRow> = reader.map(|record| (&record.unwrap()).into()).collect();
        assert_eq!((written, &back[..]), (3, &rows[..]));
    }
}
