//! One request of a trace, and the limits that keep later arithmetic from overflowing.
//!
//! Goals: sums, maps and simulations of delivered records need no checks for overflow.
//! Non-goals: fields of a single format (hosts, queue lengths, cylinders).

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Op, SimTime, VolumeBlock};

use crate::fault::Fault;
use crate::scan::{Number, TOO_LONG, TimeUnit, Token};
use crate::timed::{Spill, Timed};

/// The most blocks that one request may cover: 2^32 - 1, just below 2 TiB, as a trim may. A longer one is
/// malformed.
pub const REQUEST_BLOCKS_MAX: u64 = u32::MAX as u64;

/// The most blocks that a read or a write may move: 2^23, 4 GiB. The bytes of one request have 32 bits in
/// Linux, Windows and NBD, and a command of ATA has at most 32 MiB. A longer one is malformed.
pub const DATA_BLOCKS_MAX: u64 = 1 << 23;

/// The most blocks of a device: its last byte still has a 64-bit address.
pub const VOLUME_BLOCKS_MAX: u64 = u64::MAX / BLOCK_BYTES;

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Arrival at the traced device. The format defines time zero: see
    /// [`Format::is_rebased`](crate::Format::is_rebased).
    pub arrival: SimTime,
    /// Operation.
    pub op: Op,
    /// Number of the disk or volume in the trace; 0 in formats without devices.
    pub device: u32,
    /// The first block; 0 for a flush.
    pub start: VolumeBlock,
    /// Number of blocks, at most [`REQUEST_BLOCKS_MAX`], and [`DATA_BLOCKS_MAX`] if it reads or writes; 0 for
    /// a flush only.
    pub blocks: Blocks,
    /// True if `start` and `blocks` were widened to whole blocks of 512 bytes.
    pub widened: bool,
    /// Completion at the traced device, on the clock of `arrival` and never before it; `None` where
    /// unknown.
    pub completion: Option<SimTime>,
    /// Force unit access: a write is done once its data are on the media, and a read comes from the
    /// media. False where unknown.
    pub fua: bool,
}

impl Record {
    /// First block after the request; at most [`VOLUME_BLOCKS_MAX`].
    #[inline]
    pub fn end(&self) -> VolumeBlock {
        self.start + self.blocks
    }

    /// Err for one that moves more data than any device takes in a request.
    #[inline]
    pub(crate) fn checked(self) -> Result<Self, Fault> {
        if self.op.moves_data() && self.blocks.get() > DATA_BLOCKS_MAX {
            Err(Fault::number(
                "blocks",
                self.blocks.get(),
                "a read or a write may move at most 2^23 blocks of 512 bytes (4 GiB), as no device takes \
                 more at once",
            ))
        } else {
            Ok(self)
        }
    }

    /// Size in bytes; 0 for a flush.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.blocks.bytes()
    }
}

impl Timed for Record {
    #[inline]
    fn time(&self) -> SimTime {
        self.arrival
    }

    fn end(&self) -> Option<SimTime> {
        self.completion
    }

    fn device(&self) -> u32 {
        self.device
    }

    fn shifted(self, shift: impl Fn(SimTime) -> SimTime) -> Self {
        let (arrival, completion) = (shift(self.arrival), self.completion.map(&shift));
        Self { arrival, completion, ..self }
    }
}

impl Spill for Record {
    fn to_words(&self) -> [u64; 5] {
        let marks = [self.fua, self.widened, self.completion.is_some()];
        let flags = marks.into_iter().rev().fold(0, |bits, mark| bits << 1 | u64::from(mark));
        let flags = flags << 2 | op_code(self.op);
        let completion = self.completion.map_or(0, SimTime::ns);
        let blocks_and_device = self.blocks.get() | u64::from(self.device) << u32::BITS;
        [self.arrival.ns(), completion, self.start.get(), blocks_and_device, flags]
    }

    fn from_words([arrival, completion, start, blocks_and_device, flags]: [u64; 5]) -> Self {
        Self {
            arrival: SimTime::from_ns(arrival),
            op: op_of(flags),
            device: (blocks_and_device >> u32::BITS) as u32,
            start: VolumeBlock::new(start),
            blocks: Blocks::new(blocks_and_device & u64::from(u32::MAX)),
            widened: flags >> 3 & 1 == 1,
            completion: (flags >> 4 & 1 == 1).then(|| SimTime::from_ns(completion)),
            fua: flags >> 2 & 1 == 1,
        }
    }
}

/// An operation as two bits.
pub(crate) fn op_code(op: Op) -> u64 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Trim => 3,
    }
}

/// The operation in the lowest two bits.
pub(crate) fn op_of(code: u64) -> Op {
    [Op::Read, Op::Write, Op::Flush, Op::Trim][(code & 3) as usize]
}

/// The blocks of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub start: VolumeBlock,
    pub blocks: Blocks,
    /// True if the request was widened to whole blocks.
    pub widened: bool,
}

impl Extent {
    /// Extent of a flush.
    pub const NONE: Self = Self { start: VolumeBlock::ZERO, blocks: Blocks::ZERO, widened: false };

    /// A request for these blocks, without completion and without FUA.
    #[inline]
    pub fn request(self, arrival: SimTime, op: Op, device: u32) -> Record {
        let Self { start, blocks, widened } = self;
        Record { arrival, op, device, start, blocks, widened, completion: None, fua: false }
    }

    /// The blocks that hold `length` bytes from byte `offset`, rounded outward.
    #[inline]
    pub fn of_bytes(offset: Number, length: Number) -> Result<Self, Fault> {
        let first = offset.value / BLOCK_BYTES;
        let end = offset.value.checked_add(length.value).ok_or_else(|| offset.too_far())?;
        let covered = Number { value: end.div_ceil(BLOCK_BYTES) - first, ..length };
        if length.value == 0 {
            return Err(length.empty());
        }
        let widened = !(offset.value | length.value).is_multiple_of(BLOCK_BYTES);
        Ok(Self { widened, ..Self::of_blocks(Number { value: first, ..offset }, covered)? })
    }

    /// The blocks from block `start` that hold `length` bytes.
    #[inline]
    pub fn of_block_and_bytes(start: Number, length: Number) -> Result<Self, Fault> {
        let blocks = Bytes::new(length.value).blocks_rounded_up().get();
        let widened = !length.value.is_multiple_of(BLOCK_BYTES);
        Ok(Self { widened, ..Self::of_blocks(start, Number { value: blocks, ..length })? })
    }

    /// `count` blocks from block `start`.
    #[inline]
    pub fn of_blocks(start: Number, count: Number) -> Result<Self, Fault> {
        if count.value == 0 {
            return Err(count.empty());
        }
        if count.value > REQUEST_BLOCKS_MAX {
            return Err(count.fault("a request may cover at most 2^32 blocks of 512 bytes"));
        }
        if start.value > VOLUME_BLOCKS_MAX - count.value {
            return Err(start.too_far());
        }
        let (start, blocks) = (VolumeBlock::new(start.value), Blocks::new(count.value));
        Ok(Self { start, blocks, widened: false })
    }
}

/// Checks that a request does not complete before it arrives.
#[inline]
pub(crate) fn completion_after(arrival: SimTime, completion: Number) -> Result<SimTime, Fault> {
    if completion.value < arrival.ns() {
        return Err(completion.fault("the request would complete before it arrives"));
    }
    Ok(SimTime::from_ns(completion.value))
}

/// The completion a response time after the arrival.
#[inline]
pub(crate) fn completion_later(
    arrival: SimTime,
    response: Token,
    unit: TimeUnit,
) -> Result<SimTime, Fault> {
    let end = arrival.ns().checked_add(response.time(unit)?.ns());
    let end = end.ok_or_else(|| response.fault(TOO_LONG))?;
    completion_after(arrival, Number { name: response.name, value: end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> Number {
        Number { name: "field", value }
    }

    #[test]
    fn bytes_rounded_outward_to_whole_blocks() {
        let extent = Extent::of_bytes(number(1023), number(2)).unwrap();
        assert_eq!((extent.start.get(), extent.blocks.get(), extent.widened), (1, 2, true));
        let whole = Extent::of_bytes(number(1024), number(512)).unwrap();
        assert_eq!((whole.start.get(), whole.blocks.get(), whole.widened), (2, 1, false));
        let cut = Extent::of_block_and_bytes(number(3), number(513)).unwrap();
        assert_eq!((cut.start.get(), cut.blocks.get(), cut.widened), (3, 2, true));
    }

    #[test]
    fn record_round_trips_through_words() {
        let extent = Extent::of_bytes(number(1023), number(2)).unwrap();
        for op in [Op::Read, Op::Write, Op::Flush, Op::Trim] {
            for (completion, fua) in [(None, true), (Some(SimTime::MAX), false)] {
                let record = extent.request(SimTime::from_ns(7), op, u32::MAX);
                let record = Record { completion, fua, ..record };
                assert_eq!(Record::from_words(record.to_words()), record);
            }
        }
        let largest = Extent::of_blocks(number(5), number(REQUEST_BLOCKS_MAX)).unwrap();
        let record = largest.request(SimTime::MAX, Op::Read, 3);
        assert_eq!(Record::from_words(record.to_words()), record);
    }

    #[test]
    fn largest_request_fits_exactly() {
        assert!(Extent::of_blocks(number(0), number(REQUEST_BLOCKS_MAX)).is_ok());
        assert!(Extent::of_blocks(number(0), number(REQUEST_BLOCKS_MAX + 1)).is_err());
    }

    #[test]
    fn request_beyond_address_range_refused() {
        assert!(Extent::of_blocks(number(VOLUME_BLOCKS_MAX - 8), number(8)).is_ok());
        assert!(Extent::of_blocks(number(VOLUME_BLOCKS_MAX - 7), number(8)).is_err());
        assert!(Extent::of_bytes(number(u64::MAX), number(u64::MAX)).is_err());
    }
}
