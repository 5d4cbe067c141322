//! CSV of the FlashNet project: a trace as its replay on an SSD went.
//!
//! `ts_record,latency,io_type,size,offset,ts_submit,size_after_replay`, mostly without header. Source: the
//! comments in the project's programs. `ts_record` is the arrival in milliseconds, as in the trace that
//! was replayed; `latency` is in microseconds and gives the completion; `io_type` is 1 for a read and 0
//! for a write; `size` and `offset` are in bytes. The columns after these are not read. There is no
//! device. Times stay as they are.

use super::plausible::most_lines_are_blocks;
use super::{Clock, Format, Row, Timing, UnitFound, five_columns};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_later};
use crate::scan::{Fields, TimeUnit};
use crate::source::{LineDecoder, LineSource};

pub(super) const ROW: Row = Row {
    format: Format::FlashnetCsv,
    name: "flashnet-csv",
    description: "CSV: arrival in ms, latency in us, 1 read or 0 write, size and offset in bytes, two more",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: Some(|_, _| UnitFound::Sure(TimeUnit::Milliseconds)),
    may_be_objects: false,
    detect: |head| most_lines_are_blocks(head, &mut FlashnetCsv { unit: TimeUnit::Milliseconds }),
    open: Some(|input, how| {
        Ok(Box::new(LineSource::new(input.into_stream(), FlashnetCsv { unit: how.unit })))
    }),
};

struct FlashnetCsv {
    /// Unit of the arrivals.
    unit: TimeUnit,
}

impl LineDecoder for FlashnetCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(line.starts_with(b"ts_record,latency,io_type,size,offset"))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let arrival = fields.next("ts_record")?.time(self.unit)?;
        let latency = fields.next("latency")?;
        let op = five_columns::op(fields.next("io_type")?)?;
        let (size, offset) = (fields.next("size")?.number()?, fields.next("offset")?.number()?);
        let extent = Extent::of_bytes(offset, size)?;
        // Both are there in every trace: without them other formats would be taken for this one.
        fields.next("ts_submit")?.time(TimeUnit::Milliseconds)?;
        fields.next("size_after_replay")?;
        let completion = completion_later(arrival, latency, TimeUnit::Microseconds)?;
        Ok(Record { completion: Some(completion), ..extent.request(arrival, op, 0) })
    }
}
