//! libCacheSim's own format `lcs`, versions 1 to 8: a header of 8 KiB, then packed little-endian records.
//!
//! The header has the magic number at byte 0 and at byte 8184, and the version at byte 8; between them
//! are statistics, which are not read.
//!
//! | field | version 1 | 2 | 3 to 8 | |
//! |---|---|---|---|---|
//! | clock_time | 0..4 | 0..4 | 0..4 | seconds |
//! | obj_id | 4..12 | 4..12 | 4..12 | block of 512 bytes, or number of an object |
//! | obj_size | 12..16 | 12..16 | 12..20 | bytes; a record with 0 holds no request |
//! | op | | 16 | 20 | see `libcachesim` |
//! | tenant | | 17..20 | 21..24 | the device |
//!
//! After these come the time to live (from version 3), the next access, and 1, 2, 4, 8 or 16 features of
//! 4 bytes (versions 4 to 8), which are not read. Source: libCacheSim's `lcs.h`. All requests of version 1
//! are reads. Times are made relative to the first record.

use super::libcachesim::{ObjectRequest, Placer, little_endian, op};
use super::{Clock, Format, Row, Timing};
use crate::Record;
use crate::fault::Fault;
use crate::source::{BinaryDecoder, BinarySource};
use freewheel_units::Op;

const MAGIC: u64 = 0x1234_5678_9abc_def0;
const HEADER_BYTES: usize = 8192;
const VERSION: usize = 8;
/// Bytes of a record by version, from version 1.
const RECORD_BYTES: [usize; 8] = [24, 28, 36, 40, 44, 52, 68, 100];

pub(super) const ROW: Row = Row {
    format: Format::Lcs,
    name: "lcs",
    description: "libCacheSim's lcs versions 1 to 8: header of 8 KiB, records, times in s",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Seconds,
    unit: None,
    may_be_objects: true,
    detect: |head| head.starts_with(&MAGIC.to_le_bytes()),
    open: Some(|input, how| {
        let (head, decoder) = (input.head.clone(), Lcs { version: 1, placer: Placer::of(how) });
        Ok(Box::new(BinarySource::new(&head, input.into_stream(), decoder)?))
    }),
};

struct Lcs {
    version: usize,
    placer: Placer,
}

impl BinaryDecoder for Lcs {
    fn begin(&mut self, head: &[u8]) -> Result<usize, Fault> {
        let magic = MAGIC.to_le_bytes();
        let Some(header) = head.get(..HEADER_BYTES) else {
            return Err(Fault::new(
                "header",
                head,
                "the file ends within the header of 8192 bytes",
            ));
        };
        for (end, name) in
            [(&header[..8], "start_magic"), (&header[HEADER_BYTES - 8..], "end_magic")]
        {
            if end != magic {
                return Err(Fault::new(name, end, "not the magic number of lcs"));
            }
        }
        let version = little_endian(header, VERSION, 8);
        if !(1..=RECORD_BYTES.len() as u64).contains(&version) {
            let reason = "not a version from 1 to 8: convert the trace to oracleGeneral with \
                          libCacheSim";
            return Err(Fault::number("version", version, reason));
        }
        self.version = version as usize;
        Ok(HEADER_BYTES)
    }

    fn record_bytes(&self, _prefix: &[u8; 8]) -> Option<usize> {
        Some(RECORD_BYTES[self.version - 1])
    }

    fn holds_request(&self, bytes: &[u8]) -> bool {
        self.size(bytes) > 0
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Record, Fault> {
        let op_at = if self.version == 2 { 16 } else { 20 };
        let has_op = self.version > 1;
        ObjectRequest {
            clock_time: little_endian(bytes, 0, 4),
            obj_id: little_endian(bytes, 4, 8),
            obj_size: self.size(bytes),
            op: if has_op { op(u64::from(bytes[op_at]))? } else { Op::Read },
            tenant: if has_op { little_endian(bytes, op_at + 1, 3) } else { 0 },
        }
        .record(&mut self.placer)
    }
}

impl Lcs {
    fn size(&self, bytes: &[u8]) -> u64 {
        little_endian(bytes, 12, if self.version < 3 { 4 } else { 8 })
    }
}
