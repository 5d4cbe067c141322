//! Block traces of Tencent Cloud (CBS): `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Source: README of the traces in the SNIA IOTTA repository; Zhang et al., "OSCA: An Online-Model Based
//! Cache Allocation Scheme in Cloud Block Storage Systems", USENIX ATC 2020. `Timestamp` is in whole
//! seconds since 1970, `Offset` and `Size` are in sectors of 512 bytes, `IOType` is 0 for a read and 1
//! for a write. Times are made relative to the first record. A header line is passed over.
//!
//! Mirrors of these traces have offsets and sizes in bytes: `tencent-bytes-csv`. The columns are the
//! same, so detection looks at the first 64 KiB. All values in bytes are multiples of 512. In sectors
//! each such value is on a boundary of 256 KiB, which four random records in a row never are. Where
//! that does not decide, the user is asked.

use super::plausible::most_are_pages;
use super::{Clock, Format, Question, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse, parsed_lines, whole_lines};
use freewheel_units::{BLOCK_BYTES, Op};

/// Records on boundaries of 512 from which on the values count as bytes.
const RECORDS_SURE: usize = 4;

pub(super) const ROW: Row = Row {
    format: Format::TencentCsv,
    name: "tencent-csv",
    description: "CSV: arrival in s, offset and size in sectors of 512 B, 0 read or 1 write, volume",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Seconds,
    unit: None,
    may_be_objects: false,
    detect: |head| unit(head) == Some(Ok(Unit::Sectors)),
    open: Some(|input, _| {
        Ok(Box::new(LineSource::new(input.into_stream(), TencentCsv { unit: Unit::Sectors })))
    }),
};

pub(super) const BYTES_ROW: Row = Row {
    format: Format::TencentBytesCsv,
    name: "tencent-bytes-csv",
    description: "CSV: arrival in s, offset and size in bytes, 0 read or 1 write, volume",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Seconds,
    unit: None,
    may_be_objects: false,
    detect: |head| unit(head) == Some(Ok(Unit::Bytes)),
    open: Some(|input, _| {
        Ok(Box::new(LineSource::new(input.into_stream(), TencentCsv { unit: Unit::Bytes })))
    }),
};

/// Question where the unit cannot be told.
pub(super) const QUESTION: Question = Question {
    is_met: |head| matches!(unit(head), Some(Err(Unclear))),
    says: "are its offsets and sizes in sectors of 512 bytes (tencent-csv) or in bytes \
           (tencent-bytes-csv)",
    choices: [Format::TencentCsv, Format::TencentBytesCsv],
};

/// Unit of offset and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Sectors,
    Bytes,
}

/// The values fit both units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unclear;

struct TencentCsv {
    unit: Unit,
}

impl LineDecoder for TencentCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(is_header(line))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let arrival = fields.next("Timestamp")?.time(TimeUnit::Seconds)?;
        let (offset, size) = (fields.next("Offset")?.number()?, fields.next("Size")?.number()?);
        let extent = match self.unit {
            Unit::Sectors => Extent::of_blocks(offset, size)?,
            Unit::Bytes => Extent::of_bytes(offset, size)?,
        };
        let op = op(fields.next("IOType")?)?;
        let device = fields.next("VolumeID")?.number()?.to_u32()?;
        fields.end()?;
        Ok(extent.request(arrival, op, device))
    }
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"0" => Ok(Op::Read),
        b"1" => Ok(Op::Write),
        _ => Err(token.fault("write 0 for a read or 1 for a write")),
    }
}

fn is_header(line: &[u8]) -> bool {
    line.to_ascii_lowercase().starts_with(b"timestamp,offset,")
}

/// The unit of a trace that begins so; `None` if it is no trace of Tencent's.
fn unit(head: &[u8]) -> Option<Result<Unit, Unclear>> {
    let mut bytes = TencentCsv { unit: Unit::Bytes };
    if !most_lines_parse(head, &mut bytes) {
        return None;
    }
    let records =
        || whole_lines(head).filter(|line| TencentCsv { unit: Unit::Bytes }.parse(line).is_ok());
    Some(match (records().all(|line| is_whole(line, 1)), records().all(|line| is_whole(line, 2))) {
        // Five whole numbers may be anything: without a header most sizes must be those of pages.
        (false, _) if !whole_lines(head).any(is_header) && !most_are_pages(&sectors(head)) => {
            return None;
        }
        (false, _) => Ok(Unit::Sectors),
        (true, true) if records().count() >= RECORDS_SURE => Ok(Unit::Bytes),
        (true, _) => Err(Unclear),
    })
}

fn sectors(head: &[u8]) -> Vec<Record> {
    parsed_lines(head, &mut TencentCsv { unit: Unit::Sectors })
}

/// True if this column of a record is a multiple of 512.
fn is_whole(line: &[u8], column: usize) -> bool {
    let text = line.split(|&byte| byte == b',').nth(column).unwrap_or_default();
    let number = Token { name: "value", text: text.trim_ascii() }.number();
    number.is_ok_and(|number| number.value.is_multiple_of(BLOCK_BYTES))
}
