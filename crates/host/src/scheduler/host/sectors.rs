//! Reads of whole sectors of the device, for blocks that are smaller.

use crate::Command;
use freewheel_units::{Lbn, Op};

use super::{HostScheduler, bytes_of};

impl HostScheduler {
    /// The sectors that hold these blocks of 512 B, as blocks: free work may end inside a sector.
    pub(crate) fn whole_sectors(&self, start: Lbn, blocks: u32) -> (Lbn, u32) {
        let sector = u64::from(self.abilities.sector_blocks());
        let from = start.get() - start.get() % sector;
        let to = (start.get() + u64::from(blocks)).next_multiple_of(sector);
        (Lbn::new(from), (to - from) as u32)
    }

    /// Data of a command, out of the whole sectors that were read.
    pub(crate) fn without_the_rest(&self, command: &Command, mut data: Vec<u8>) -> Vec<u8> {
        let Command { op, start, blocks, .. } = *command;
        let (from, read) = self.whole_sectors(start, blocks);
        if op == Op::Read && read != blocks {
            let here = bytes_of(from, start, blocks);
            data.truncate(here.end);
            data.drain(..here.start);
        }
        data
    }
}
