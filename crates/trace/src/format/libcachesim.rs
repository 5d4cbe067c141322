//! Common parts of the two binary formats of the cache simulator libCacheSim: objects, tenants, operations.
//!
//! Source: libCacheSim's headers (`lcs.h`, `oracleGeneralBin.h`, `enum.h`). An object's identity is a
//! number. In traces of block devices it is that of the first block of 512 bytes. In others it counts
//! objects, or is the hash of a name: then each object gets a separate place (`how`). The first pass over a
//! trace tells which (`survey`). Numbers at 2^54 and above are folded below that. Times are whole seconds.

use std::collections::BTreeMap;

use super::how::{How, ObjectPlaces, PLACES_BLOCKS};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::Number;
use freewheel_units::{BLOCK_BYTES, Bytes, Op, SimTime, VolumeBlock};

pub(super) const SECOND_NS: u64 = 1_000_000_000;

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
    pub fn record(self, placer: &mut Placer) -> Result<Record, Fault> {
        if placer.is_exact {
            return Ok(self.exact());
        }
        let start = Number { name: "obj_id", value: placer.first_block(self.obj_id) };
        let size = Number { name: "obj_size", value: self.obj_size };
        let extent = Extent::of_block_and_bytes(start, size)?;
        let arrival = SimTime::from_ns(self.clock_time * SECOND_NS);
        Ok(extent.request(arrival, self.op, self.tenant as u32))
    }

    /// The number as it is, and the size in bytes in place of a completion, which no such format has: for a pass over
    /// objects alone.
    fn exact(self) -> Record {
        Record {
            arrival: SimTime::ZERO,
            op: self.op,
            device: self.tenant as u32,
            start: VolumeBlock::new(self.obj_id),
            blocks: Bytes::new(self.obj_size).blocks_rounded_up(),
            widened: !self.obj_size.is_multiple_of(BLOCK_BYTES),
            completion: Some(SimTime::from_ns(self.obj_size)),
            fua: false,
        }
    }
}

/// Gives numbers their places.
#[derive(Debug, Default)]
pub(super) struct Placer {
    /// `None` where numbers are those of blocks.
    objects: Option<ObjectPlaces>,
    /// True if numbers and sizes stay as they are.
    is_exact: bool,
    /// Places, counted, of the objects that have appeared.
    seen: BTreeMap<u64, u64>,
}

impl Placer {
    pub fn new(objects: Option<ObjectPlaces>) -> Self {
        Self { objects, is_exact: false, seen: BTreeMap::new() }
    }

    /// The placer of a source.
    pub fn of(how: &How) -> Self {
        Self { is_exact: how.exact_objects, ..Self::new(how.objects) }
    }

    /// The first block of an object. Where numbers are too large to count places, each object that appears
    /// takes some tens of bytes of memory.
    fn first_block(&mut self, number: u64) -> u64 {
        let Some(ObjectPlaces { blocks, by_number }) = self.objects else {
            return number % PLACES_BLOCKS;
        };
        if by_number && number < PLACES_BLOCKS / blocks {
            return number * blocks;
        }
        // From the end on, where no number of this trace counts a place.
        let next = PLACES_BLOCKS / blocks - 1 - self.seen.len() as u64;
        *self.seen.entry(number).or_insert(next) * blocks
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn objects_of_any_numbers_placed_apart() {
        for largest in [100, u64::MAX / 3] {
            let places = ObjectPlaces::new(1 << 24, largest);
            let mut placer = Placer::new(Some(places));
            let numbers = (0..100).map(|at| largest / 100 * at);
            let found: BTreeSet<u64> = numbers.clone().map(|it| placer.first_block(it)).collect();
            assert_eq!(found.len(), 100, "{largest}");
            assert!(found.iter().all(|place| place.is_multiple_of(1 << 24)));
            // They stay where they are.
            let again: BTreeSet<u64> = numbers.map(|it| placer.first_block(it)).collect();
            assert_eq!(again, found);
        }
    }
}
