//! VMware's vSCSI trace, as published by CloudPhysics (Waldspurger et al., FAST 2015).
//!
//! Packed little-endian records, no header. Version 1 has 32 bytes, version 2 has 40:
//!
//! | bytes v1 | bytes v2 | field | |
//! |---|---|---|---|
//! | 0..4 | 4..8 | sn | serial number, not read |
//! | 4..8 | 8..12 | len | bytes |
//! | 8..12 | 12..16 | nsg | scatter-gather segments, not read |
//! | 12..14 | 0..2 | cmd | SCSI operation code |
//! | 14..16 | 2..4 | ver | version in the upper byte |
//! | 16..24 | 16..24 | lbn | block of 512 bytes |
//! | 24..32 | 24..32 | ts | microseconds |
//! | | 32..40 | rt | response time; not read, as its unit and whether `ts` is issue or completion are not documented |
//!
//! Source: the field order of both versions as in the reader of libCacheSim. Version 1 was checked on a
//! published trace, version 2 on none. Times are made relative to the first record. There is no device.
//! Commands that neither read, write nor synchronise the cache are malformed records.

use super::libcachesim::little_endian;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::Number;
use crate::source::{BinaryDecoder, BinarySource};
use freewheel_units::Op;

const MICROSECOND_NS: u64 = 1000;
/// Records that have to agree on the version.
const RECORDS_CHECKED: usize = 8;

pub(super) const ROW: Row = Row {
    format: Format::Vscsi,
    name: "vscsi",
    description: "vSCSI: little-endian records of 32 (version 1) or 40 bytes (version 2)",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| version(head).is_some(),
    open: Some(|input, _| {
        let (head, decoder) = (input.head.clone(), Vscsi { layout: V1 });
        Ok(Box::new(BinarySource::new(&head, input.into_stream(), decoder)?))
    }),
};

/// Offsets of a version's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VscsiLayout {
    version: u16,
    bytes: usize,
    len: usize,
    cmd: usize,
    ver: usize,
}

const V1: VscsiLayout = VscsiLayout { version: 1, bytes: 32, len: 4, cmd: 12, ver: 14 };
const V2: VscsiLayout = VscsiLayout { version: 2, bytes: 40, len: 8, cmd: 0, ver: 2 };
const LBN: usize = 16;
const TS: usize = 24;

struct Vscsi {
    layout: VscsiLayout,
}

impl BinaryDecoder for Vscsi {
    fn begin(&mut self, head: &[u8]) -> Result<usize, Fault> {
        // A named trace may have damage at its start, so that no version is recognised: assume version
        // 1.
        self.layout = version(head).unwrap_or(V1);
        Ok(0)
    }

    fn record_bytes(&self, _prefix: &[u8; 8]) -> Option<usize> {
        Some(self.layout.bytes)
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Record, Fault> {
        let layout = self.layout;
        let number = |name, at, width| Number { name, value: little_endian(bytes, at, width) };
        let ver = number("ver", layout.ver, 2);
        if ver.value >> 8 != u64::from(layout.version) {
            return Err(ver.fault("not the version of the records before"));
        }
        let op = op(number("cmd", layout.cmd, 2))?;
        let extent = extent(op, number("lbn", LBN, 8), number("len", layout.len, 4))?;
        Ok(extent.request(number("ts", TS, 8).time(MICROSECOND_NS)?, op, 0))
    }
}

/// SCSI block commands: the 6, 10, 12 and 16 byte forms.
fn op(cmd: Number) -> Result<Op, Fault> {
    match cmd.value {
        0x08 | 0x28 | 0xa8 | 0x88 => Ok(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Ok(Op::Write),
        0x35 | 0x91 => Ok(Op::Flush),
        _ => Err(cmd.fault("not the SCSI code of a read, a write or a cache synchronisation")),
    }
}

fn extent(op: Op, lbn: Number, len: Number) -> Result<Extent, Fault> {
    if op == Op::Flush { Ok(Extent::NONE) } else { Extent::of_block_and_bytes(lbn, len) }
}

/// The version in which the first records agree, if at least one of their commands is known.
fn version(head: &[u8]) -> Option<VscsiLayout> {
    [V2, V1].into_iter().find(|layout| is_layout(head, *layout))
}

fn is_layout(head: &[u8], layout: VscsiLayout) -> bool {
    // The version alone would accept zeros and other regular data; one known command rules most of them
    // out.
    head.chunks_exact(layout.bytes)
        .take(RECORDS_CHECKED)
        .all(|record| little_endian(record, layout.ver, 2) >> 8 == u64::from(layout.version))
        && head.chunks_exact(layout.bytes).take(RECORDS_CHECKED).any(|record| {
            op(Number { name: "cmd", value: little_endian(record, layout.cmd, 2) }).is_ok()
        })
}
