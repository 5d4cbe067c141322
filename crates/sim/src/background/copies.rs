//! Account of the copies before foreground writes: the deliveries and the head time that are theirs.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_freeblock::tasks::{Extent, Promoted, Tasks};
use freewheel_freeblock::{Foreground, PromotionId};
use freewheel_host::{Backup, ClaimBy, Copies};
use freewheel_units::{Op, SimTime};

use super::running::Running;

/// Copies that are not done.
#[derive(Default)]
pub(super) struct CopyAccount {
    /// Copies for the last write, in the order in which the engine takes them.
    waiting: Copies,
    /// The write for which copies were requested; cleared when the write may go.
    write: Option<u64>,
    /// Number of the task of each copy.
    under_way: BTreeMap<PromotionId, usize>,
    /// Task and first block of 512 B of each block that a copy reads.
    blocks: BTreeSet<(usize, u64)>,
}

impl CopyAccount {
    /// The next read that must precede this write; None when the write may go.
    pub fn before(
        &mut self,
        write: &Foreground,
        running: &[Running],
        tasks: &mut Tasks,
        now: SimTime,
    ) -> Option<Promoted> {
        if self.write != Some(write.sequence) {
            self.write = Some(write.sequence);
            let extent = Extent::new(write.start.get(), write.blocks.into());
            for (number, task) in running.iter().enumerate().filter(|(_, task)| task.is_copied()) {
                let backup = Backup { number: number as u64, task: task.id() };
                let by = ClaimBy::Promotion;
                let claimed = self.waiting.claim(by, tasks, backup, extent, now);
                claimed.expect("a registered task");
            }
        }
        let next = self.next(running);
        if next.is_none() {
            self.write = None;
        }
        next
    }

    fn next(&mut self, running: &[Running]) -> Option<Promoted> {
        let read = self.waiting.next_read()?;
        let (number, id) = (read.backup as usize, read.promotion?);
        self.under_way.insert(id, number);
        let blocks = running[number].blocks_of(read.extent);
        self.blocks.extend(blocks.map(|block| (number, block.start.get())));
        let (start, blocks) = (read.extent.start, read.extent.blocks.get() as u32);
        Some(Promoted { id, op: Op::Read, start, blocks, precedes_writes: true })
    }

    /// True if a copy delivered the block of `task` that begins at `start`. Forgets the copy.
    pub fn has_brought(&mut self, task: usize, start: u64) -> bool {
        self.blocks.remove(&(task, start))
    }

    /// Task for which a request is a copy.
    pub fn task_of(&self, promotion: Option<PromotionId>) -> Option<usize> {
        self.under_way.get(&promotion?).copied()
    }

    /// A foreground request is done.
    pub fn done(&mut self, promotion: Option<PromotionId>) {
        if let Some(promotion) = promotion {
            self.under_way.remove(&promotion);
        }
    }
}
