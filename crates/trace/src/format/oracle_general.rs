//! libCacheSim's `oracleGeneral`: packed little-endian records, no header.
//!
//! | bytes | with op | field | |
//! |---|---|---|---|
//! | 0..4 | 0..4 | clock_time | seconds |
//! | 4..12 | 4..12 | obj_id | block of 512 bytes, or number of an object |
//! | 12..16 | 12..16 | obj_size | bytes; a record with 0 holds no request |
//! | | 16 | op | see `libcachesim` |
//! | | 17..19 | ns | name space: the device |
//! | 16..24 | 19..27 | next_access_vtime | number of the next record of the object, or -1 |
//!
//! Source: libCacheSim's `oracleGeneralBin.h`; `oracleReuseTraceGen.h` says what `ns` is. All requests of
//! the short form are reads. Times are made relative to the first record.
//!
//! Detection uses that a next access lies ahead: in the records of the first 64 KiB its number is above
//! that of the record, or says that there is none. And times rise.

use super::libcachesim::{ObjectRequest, Placer, little_endian, op};
use super::{Clock, Format, Row, Timing};
use crate::Record;
use crate::fault::Fault;
use crate::source::{BinaryDecoder, BinarySource};
use freewheel_units::Op;

/// More records than any trace has.
const RECORDS_MAX: u64 = 1 << 40;
/// Larger than any object.
const SIZE_MAX: u64 = 1 << 31;
/// Both mean no further access.
const NEVER: [u64; 2] = [u64::MAX, i64::MAX as u64];

pub(super) const ROW: Row = Row {
    format: Format::OracleGeneral,
    name: "oracle-general",
    description: "libCacheSim's oracleGeneral: records of 24 or 27 bytes, times in s",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Seconds,
    unit: None,
    may_be_objects: true,
    detect: |head| layout(head).is_some(),
    open: Some(|input, how| {
        let (head, decoder) =
            (input.head.clone(), OracleGeneral { layout: SHORT, placer: Placer::of(how) });
        Ok(Box::new(BinarySource::new(&head, input.into_stream(), decoder)?))
    }),
};

/// Lengths of the two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OracleLayout {
    bytes: usize,
    next_access: usize,
    has_op: bool,
}

const SHORT: OracleLayout = OracleLayout { bytes: 24, next_access: 16, has_op: false };
const WITH_OP: OracleLayout = OracleLayout { bytes: 27, next_access: 19, has_op: true };

struct OracleGeneral {
    layout: OracleLayout,
    placer: Placer,
}

impl BinaryDecoder for OracleGeneral {
    fn begin(&mut self, head: &[u8]) -> Result<usize, Fault> {
        self.layout = layout(head).unwrap_or(SHORT);
        Ok(0)
    }

    fn record_bytes(&self, _prefix: &[u8; 8]) -> Option<usize> {
        Some(self.layout.bytes)
    }

    fn holds_request(&self, bytes: &[u8]) -> bool {
        little_endian(bytes, 12, 4) > 0
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Record, Fault> {
        let has_op = self.layout.has_op;
        ObjectRequest {
            clock_time: little_endian(bytes, 0, 4),
            obj_id: little_endian(bytes, 4, 8),
            obj_size: little_endian(bytes, 12, 4),
            op: if has_op { op(u64::from(bytes[16]))? } else { Op::Read },
            tenant: if has_op { little_endian(bytes, 17, 2) } else { 0 },
        }
        .record(&mut self.placer)
    }
}

fn layout(head: &[u8]) -> Option<OracleLayout> {
    [SHORT, WITH_OP].into_iter().find(|&layout| is_layout(head, layout))
}

/// True if at least half of the records are such of this form, so that a dirty trace is recognised.
fn is_layout(head: &[u8], layout: OracleLayout) -> bool {
    let times: Vec<u64> =
        head.chunks_exact(layout.bytes).map(|record| little_endian(record, 0, 4)).collect();
    let back_steps = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let sure = head
        .chunks_exact(layout.bytes)
        .enumerate()
        .filter(|(number, record)| {
            is_ahead(*number, record, &layout)
                && little_endian(record, 12, 4) < SIZE_MAX
                && (!layout.has_op || op(u64::from(record[16])).is_ok())
        })
        .count();
    sure > 0 && sure * 2 >= times.len() && back_steps * 2 <= times.len()
}

fn is_ahead(number: usize, record: &[u8], layout: &OracleLayout) -> bool {
    let next = little_endian(record, layout.next_access, 8);
    NEVER.contains(&next) || (number as u64 + 1..RECORDS_MAX).contains(&next)
}
