//! What the two binary formats of the cache simulator libCacheSim share: objects, tenants, operations.
//!
//! Source: libCacheSim's headers (`lcs.h`, `oracleGeneralBin.h`, `enum.h`). An object's identity is a
//! number: in its traces of block devices, the block's. It is taken for a block of 512 bytes here. Other
//! traces have hashes of names there: those at 2^54 and above are folded below that, so that they are
//! blocks of some device. Times are whole seconds, in which a disk serves hundreds of requests: no
//! response time of a disk can be told from them.

use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::Number;
use freewheel_units::{Op, SimTime};

const SECOND_NS: u64 = 1_000_000_000;
/// Objects that are told apart.
const OBJECTS: u64 = 1 << 54;

/// A request for an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectRequest {
    pub clock_time: u64,
    pub obj_id: u64,
    pub obj_size: u64,
    pub op: Op,
    pub tenant: u64,
}

impl ObjectRequest {
    /// The request as one to a device.
    pub fn record(self) -> Result<Record, Fault> {
        let start = Number { name: "obj_id", value: self.obj_id % OBJECTS };
        let size = Number { name: "obj_size", value: self.obj_size };
        let extent = Extent::of_block_and_bytes(start, size)?;
        let arrival = SimTime::from_ns(self.clock_time * SECOND_NS);
        Ok(extent.request(arrival, self.op, self.tenant as u32))
    }
}

/// The unsigned little-endian number of `width` bytes at `at`.
pub(super) fn little_endian(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// An operation by its number: those that fetch, those that store, and the deletion.
pub(super) fn op(code: u64) -> Result<Op, Fault> {
    match code {
        // No operation, get, gets, read.
        0..=2 | 12 => Ok(Op::Read),
        // Set, add, cas, replace, append, prepend, incr, decr, write, update.
        3..=8 | 10 | 11 | 13 | 14 => Ok(Op::Write),
        9 => Ok(Op::Trim),
        _ => Err(Fault::number("op", code, "not the number of an operation, 0 to 14")),
    }
}
