//! Free prefetching: what follows on foreground reads is read in gaps, in case it is asked for next
//! (osdi00 section 2.2; figure 1 (b) is its best case).

use std::collections::BTreeMap;
use std::ops::Range;

use freewheel_units::{Blocks, Bytes, Lbn, Op, SimTime};
use serde::Serialize;
use thiserror::Error;

use crate::tasks::{
    BlockSelection, Counts, Event, Extent, TaskError, TaskId, TaskSpec, Tasks, Until, Wanted,
};
use freewheel_model::drive::Drive;

/// Reason why prefetching was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PrefetchError {
    /// No block fits memory.
    #[error("a memory of {memory} for blocks of {block}: at least one must fit")]
    Memory {
        /// Memory that may be used.
        memory: Bytes,
        /// Size of a block.
        block: Bytes,
    },
    /// The task interface refused it.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Results of prefetching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PrefetchCounts {
    /// Foreground reads.
    pub reads: u64,
    /// Reads all of whose blocks were in memory or asked for.
    pub predicted_reads: u64,
    /// Reads all of whose blocks were in memory.
    pub hits: u64,
    /// Blocks that were asked for.
    pub predicted_blocks: u64,
    /// Blocks that were read.
    pub prefetched: u64,
    /// Blocks of them that a read found in memory.
    pub used: u64,
}

impl PrefetchCounts {
    /// Sum of two arms' results.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            predicted_reads: self.predicted_reads + other.predicted_reads,
            hits: self.hits + other.hits,
            predicted_blocks: self.predicted_blocks + other.predicted_blocks,
            prefetched: self.prefetched + other.prefetched,
            used: self.used + other.used,
        }
    }
}

/// A block that is in memory or asked for.
#[derive(Debug, Clone, Copy)]
struct Known {
    stamp: u64,
    is_here: bool,
}

/// Predictions, and what of them is in memory.
#[derive(Debug, Clone)]
pub struct Prefetcher {
    task: TaskId,
    block_size: u64,
    /// Blocks that may be in memory or asked for.
    blocks_max: u64,
    /// Whole tracks that follow the one that is being read.
    tracks_ahead: u32,
    /// By number of the block.
    known: BTreeMap<u64, Known>,
    /// Blocks by the number of their prediction.
    by_age: BTreeMap<u64, u64>,
    begun: u64,
    counts: PrefetchCounts,
    /// The most blocks that were known.
    known_max: u64,
}

impl Prefetcher {
    /// After every foreground read the rest of its track and `tracks_ahead` more are predicted, and
    /// `memory` holds the data.
    pub fn new(
        tasks: &mut Tasks,
        now: SimTime,
        block_size: u32,
        memory: Bytes,
        tracks_ahead: u32,
    ) -> Result<Self, PrefetchError> {
        let spec = TaskSpec {
            until: Until::Standing,
            // What passes by anyway was not prefetched.
            counts: Counts::NONE,
            ..TaskSpec::new(Op::Read, block_size, Vec::new())
        };
        let task = tasks.register(now, spec)?;
        let block = Blocks::new(block_size.into()).bytes();
        let blocks_max = memory.get() / block.get();
        if blocks_max == 0 {
            tasks.abort(now, task, BlockSelection::All)?;
            return Err(PrefetchError::Memory { memory, block });
        }
        Ok(Self {
            task,
            block_size: block_size.into(),
            blocks_max,
            tracks_ahead,
            known: BTreeMap::new(),
            by_age: BTreeMap::new(),
            begun: 0,
            counts: PrefetchCounts::default(),
            known_max: 0,
        })
    }

    /// A foreground read arrives: whether all of it is in memory. What is used leaves it, and what
    /// follows is predicted.
    pub fn read(
        &mut self,
        tasks: &mut Tasks,
        now: SimTime,
        start: Lbn,
        blocks: u32,
    ) -> Result<bool, TaskError> {
        let (first, end) = self.touching(start, blocks);
        let known = || (first..end).map(|block| self.known.get(&block));
        let is_predicted = known().all(|known| known.is_some());
        let is_hit = known().all(|known| known.is_some_and(|known| known.is_here));
        self.counts.reads += 1;
        self.counts.predicted_reads += u64::from(is_predicted);
        self.counts.hits += u64::from(is_hit);
        self.counts.used += if is_hit { end - first } else { 0 };
        // Used, or read by the foreground request itself.
        self.drop_known(tasks, now, first..end)?;
        self.predict(tasks, now, start.get() + u64::from(blocks))?;
        Ok(is_hit)
    }

    /// A foreground write makes what is in memory of these blocks, or comes to be, worthless.
    pub fn written(
        &mut self,
        tasks: &mut Tasks,
        now: SimTime,
        start: Lbn,
        blocks: u32,
    ) -> Result<(), TaskError> {
        let (first, end) = self.touching(start, blocks);
        self.drop_known(tasks, now, first..end)
    }

    fn drop_known(
        &mut self,
        tasks: &mut Tasks,
        now: SimTime,
        blocks: Range<u64>,
    ) -> Result<(), TaskError> {
        let gone: Vec<u64> = self.known.range(blocks).map(|(&block, _)| block).collect();
        self.drop(tasks, now, gone)
    }

    /// Numbers of the blocks that any of these lie in.
    fn touching(&self, start: Lbn, blocks: u32) -> (u64, u64) {
        let end = start.get() + u64::from(blocks);
        (start.get() / self.block_size, end.div_ceil(self.block_size))
    }

    /// Asks for what follows on `end`.
    fn predict(&mut self, tasks: &mut Tasks, now: SimTime, end: u64) -> Result<(), TaskError> {
        let last = self.prediction_end(tasks.drive(), end);
        let blocks = end.div_ceil(self.block_size)..last / self.block_size;
        let new: Vec<u64> = blocks
            .filter(|block| !self.known.contains_key(block))
            .take(self.blocks_max as usize)
            .collect();
        let room = self.blocks_max - self.known.len() as u64;
        let excess = (new.len() as u64).saturating_sub(room);
        let oldest: Vec<u64> = self.by_age.values().copied().take(excess as usize).collect();
        self.drop(tasks, now, oldest)?;
        let extents: Vec<Extent> = new.iter().map(|&block| self.extent(block)).collect();
        tasks.extend(now, self.task, &extents)?;
        for block in new {
            self.known.insert(block, Known { stamp: self.begun, is_here: false });
            self.by_age.insert(self.begun, block);
            self.begun += 1;
            self.counts.predicted_blocks += 1;
        }
        self.known_max = self.known_max.max(self.known.len() as u64);
        Ok(())
    }

    /// The end of the tracks that are predicted.
    fn prediction_end(&self, drive: &Drive, end: u64) -> u64 {
        let capacity = drive.blocks().get();
        // The read's own track is that of its last block.
        let mut at = drive.layout().track_bounds(Lbn::new(end - 1)).1.get();
        for _ in 0..self.tracks_ahead {
            if at < capacity {
                at = drive.layout().track_bounds(Lbn::new(at)).1.get();
            }
        }
        at
    }

    fn extent(&self, block: u64) -> Extent {
        Extent::new(block * self.block_size, self.block_size)
    }

    /// Forgets blocks, and does not ask for them any longer.
    fn drop(&mut self, tasks: &mut Tasks, now: SimTime, blocks: Vec<u64>) -> Result<(), TaskError> {
        let extents: Vec<Extent> = blocks.iter().map(|&block| self.extent(block)).collect();
        tasks.abort(now, self.task, BlockSelection::In(&extents))?;
        blocks.into_iter().for_each(|block| self.forget(block));
        Ok(())
    }

    fn forget(&mut self, block: u64) {
        if let Some(known) = self.known.remove(&block) {
            self.by_age.remove(&known.stamp);
        }
    }

    /// Takes an event of the tasks in. One that comes late, when a block has been dropped and asked for
    /// again, does not tell what is in memory: the tasks still want the block then.
    pub fn event(&mut self, tasks: &Tasks, event: &Event) -> Result<(), TaskError> {
        let Event::Delivered { task, extent, .. } = *event else { return Ok(()) };
        if task != self.task {
            return Ok(());
        }
        let first = extent.start.get() / self.block_size;
        for block in first..first + extent.blocks.get() / self.block_size {
            let Some(known) = self.known.get_mut(&block).filter(|known| !known.is_here) else {
                continue;
            };
            let Wanted { in_gap, promoted } =
                tasks.wanted(self.task, Lbn::new(block * self.block_size))?;
            if !in_gap && !promoted {
                known.is_here = true;
                self.counts.prefetched += 1;
            }
        }
        Ok(())
    }

    /// Data in memory.
    pub fn memory(&self) -> Bytes {
        let here = self.known.values().filter(|known| known.is_here).count();
        Blocks::new(here as u64 * self.block_size).bytes()
    }

    /// The task that reads what is predicted.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The most blocks that were in memory or asked for.
    pub fn known_max(&self) -> u64 {
        self.known_max
    }

    /// Results of prefetching.
    pub fn counts(&self) -> PrefetchCounts {
        self.counts
    }
}
