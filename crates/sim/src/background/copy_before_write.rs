//! Reads of what a foreground write is about to write over, for a backup.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use freewheel_freeblock::tasks::{BLOCK_SIZE_MAX, Extent, Promoted, Tasks};
use freewheel_freeblock::{Foreground, PromotionId};

use super::running::Running;

/// Copies that have been asked for and are not done.
#[derive(Default)]
pub(super) struct Copies {
    /// Those that the engine has not heard of yet.
    waiting: VecDeque<Promoted>,
    /// The write for which they have been asked for: asked once, until it is let go.
    write: Option<u64>,
    /// By promotion: the number of the task.
    under_way: BTreeMap<PromotionId, usize>,
    /// First blocks of 512 B of what they read, with the number of the task.
    blocks: BTreeSet<(usize, u64)>,
}

impl Copies {
    /// The next read that must take place before this write; None when the write may go.
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

    /// Whether the block of a task that begins there has come by a copy.
    pub fn has_brought(&mut self, task: usize, start: u64) -> bool {
        self.blocks.remove(&(task, start))
    }

    /// Number of the task for which a request is a copy, if it is one.
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
