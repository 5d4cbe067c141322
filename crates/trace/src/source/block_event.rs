//! Events of a block layer that are about a request.

use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};

use crate::record::{Extent, op_code, op_of};
use crate::timed::{Spill, Timed};

/// Stage of the event's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Queued,
    /// Joined to a waiting request that ends where it begins.
    MergedBehind,
    /// Joined to a waiting request that begins where it ends.
    MergedBefore,
    /// Handed to the scheduler.
    Inserted,
    Issued,
    Completed,
    /// The end of a request of several commands: it has a place and no blocks.
    Ended,
}

/// An event of a block layer that is about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockEvent {
    pub time: SimTime,
    pub device: u32,
    pub stage: Stage,
    /// Transfer of a read, write or trim; `None` for a flush alone.
    pub data: Option<Transfer>,
    /// True if the drive's cache is flushed before.
    pub flushes: bool,
}

/// The part of a request that has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub op: Op,
    pub extent: Extent,
    pub fua: bool,
}

impl Transfer {
    /// First block of the request.
    pub fn start(&self) -> u64 {
        self.extent.start.get()
    }

    /// The block behind it.
    pub fn end(&self) -> u64 {
        (self.extent.start + self.extent.blocks).get()
    }
}

impl Timed for BlockEvent {
    fn time(&self) -> SimTime {
        self.time
    }

    fn end(&self) -> Option<SimTime> {
        None
    }

    fn device(&self) -> u32 {
        self.device
    }

    fn shifted(self, shift: impl Fn(SimTime) -> SimTime) -> Self {
        Self { time: shift(self.time), ..self }
    }
}

impl Spill for BlockEvent {
    fn to_words(&self) -> [u64; 5] {
        let (stage, flushes) = (self.stage as u64, u64::from(self.flushes));
        let flags = stage << 8 | flushes << 11 | u64::from(self.data.is_some()) << 12;
        let Some(Transfer { op, extent, fua }) = self.data else {
            return [self.time.ns(), u64::from(self.device), 0, 0, flags];
        };
        let of_data = op_code(op) | u64::from(fua) << 2 | u64::from(extent.widened) << 3;
        let (start, blocks) = (extent.start.get(), extent.blocks.get());
        [self.time.ns(), u64::from(self.device), start, blocks, flags | of_data]
    }

    fn from_words([time, device, start, blocks, flags]: [u64; 5]) -> Self {
        use Stage::{Completed, Ended, Inserted, Issued, MergedBefore, MergedBehind, Queued};
        const STAGES: [Stage; 7] =
            [Queued, MergedBehind, MergedBefore, Inserted, Issued, Completed, Ended];
        let (start, blocks) = (VolumeBlock::new(start), Blocks::new(blocks));
        let extent = Extent { start, blocks, widened: is_set(3, flags) };
        Self {
            time: SimTime::from_ns(time),
            device: device as u32,
            stage: STAGES[(flags >> 8 & 7) as usize],
            data: is_set(12, flags).then(|| Transfer {
                op: op_of(flags),
                extent,
                fua: is_set(2, flags),
            }),
            flushes: is_set(11, flags),
        }
    }
}

fn is_set(bit: u32, flags: u64) -> bool {
    flags >> bit & 1 == 1
}
