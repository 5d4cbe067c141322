//! A backup's reads of blocks that a foreground write is about to replace.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use freewheel_freeblock::tasks::{BLOCK_SIZE_MAX, Extent, Promoted, Tasks};
use freewheel_freeblock::{Foreground, PromotionId};

use super::running::Running;

/// Copies that are not done.
#[derive(Default)]
pub(super) struct Copies {
    /// Copies that the engine has not taken yet.
    waiting: VecDeque<Promoted>,
    /// The write for which copies were requested; cleared when the write may go.
    write: Option<u64>,
    /// Number of the task of each promotion.
    under_way: BTreeMap<PromotionId, usize>,
    /// Task and first block of 512 B of each block that a copy reads.
    blocks: BTreeSet<(usize, u64)>,
}

impl Copies {
    /// The next read that must precede this write; None when the write may go.
    pub fn before(
        &mut self,
        write: &Foreground,
        running: &[Running],
        tasks: &mut Tasks,
    ) -> Option<Promoted> {
        if self.write != Some(write.sequence) {
            self.write = Some(write.sequence);
            let extent = Extent::new(write.start.get(), write.blocks.into());
            for (number, task) in running.iter().enumerate() {
                for read in task.read_before(tasks, extent, BLOCK_SIZE_MAX) {
                    self.under_way.insert(read.id, number);
                    let extent = Extent::new(read.start.get(), read.blocks.into());
                    let starts = task.blocks_of(extent).map(|block| block.start.get());
                    self.blocks.extend(starts.map(|start| (number, start)));
                    self.waiting.push_back(read);
                }
            }
        }
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.write = None;
        }
        next
    }

    /// Whether a copy delivered the block of `task` that begins at `start`. Forgets the copy.
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
