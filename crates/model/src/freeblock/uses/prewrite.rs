//! Free prewriting: dirty blocks of a cache leave it in gaps, and as foreground requests only when
//! there are too many of them (osdi00 section 2.2).

use std::collections::BTreeMap;

use freewheel_units::{Lbn, Op, SimTime};

use crate::freeblock::tasks::{
    Event, Extent, Promoted, TaskError, TaskId, TaskSpec, Tasks, Until, Which,
};

/// What has become of dirty blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrewriteCounts {
    /// Written in gaps.
    pub free: u64,
    /// Written by foreground requests, since there were too many.
    pub foreground: u64,
    /// Made dirty again before they were written: one write less.
    pub absorbed: u64,
    /// Overwritten by foreground requests.
    pub superseded: u64,
    /// The most that waited for a gap.
    pub waiting_max: u64,
}

/// A dirty block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Dirty {
    /// When it became so, counted in blocks; None when nothing waits for a gap.
    waiting: Option<u64>,
    /// A foreground request is writing it.
    is_promoted: bool,
}

/// Write-back of a cache.
#[derive(Debug, Clone)]
pub struct Prewriter {
    task: TaskId,
    block_size: u32,
    waiting_max: u64,
    request_max: u32,
    /// By first block of 512 B.
    dirty: BTreeMap<u64, Dirty>,
    /// Blocks that wait for a gap, the oldest first.
    by_age: BTreeMap<u64, u64>,
    begun: u64,
    counts: PrewriteCounts,
}

impl Prewriter {
    /// Nothing is dirty. At most `waiting_max` blocks wait for a gap, but for those that cannot be
    /// promoted because they wait for a foreground write; foreground requests have at most
    /// `request_max` blocks of 512 B.
    pub fn new(
        tasks: &mut Tasks,
        now: SimTime,
        block_size: u32,
        waiting_max: u64,
        request_max: u32,
    ) -> Result<Self, TaskError> {
        if request_max < block_size {
            return Err(TaskError::MergeLimit { limit: request_max, size: block_size });
        }
        let spec =
            TaskSpec { until: Until::Standing, ..TaskSpec::new(Op::Write, block_size, Vec::new()) };
        Ok(Self {
            task: tasks.register(now, spec)?,
            block_size,
            waiting_max,
            request_max,
            dirty: BTreeMap::new(),
            by_age: BTreeMap::new(),
            begun: 0,
            counts: PrewriteCounts::default(),
        })
    }

    /// The block at `start` has become dirty. Returns the foreground requests to make, oldest blocks
    /// first, each with the dirty blocks that follow on it.
    pub fn dirty(
        &mut self,
        tasks: &mut Tasks,
        now: SimTime,
        start: Lbn,
    ) -> Result<Vec<Promoted>, TaskError> {
        let extent = Extent::new(start.get(), self.block_size.into());
        tasks.extend(now, self.task, &[extent])?;
        let stamp = self.begun;
        self.begun += 1;
        let block = self.dirty.entry(start.get()).or_default();
        if let Some(before) = block.waiting.replace(stamp) {
            self.by_age.remove(&before);
            self.counts.absorbed += 1;
        }
        self.by_age.insert(stamp, start.get());
        let requests = self.relieve(tasks)?;
        self.counts.waiting_max = self.counts.waiting_max.max(self.by_age.len() as u64);
        Ok(requests)
    }

    fn relieve(&mut self, tasks: &mut Tasks) -> Result<Vec<Promoted>, TaskError> {
        let (mut requests, mut looked_at) = (Vec::new(), 0);
        while self.by_age.len() as u64 > self.waiting_max
            && let Some((&stamp, &block)) = self.by_age.range(looked_at..).next()
        {
            looked_at = stamp + 1;
            let extent = self.promotable(block);
            for request in tasks.promote(self.task, Which::In(&[extent]), self.request_max)? {
                self.promoted(&request);
                requests.push(request);
            }
        }
        Ok(requests)
    }

    /// A dirty block and those that follow on it, as long as one request can be.
    fn promotable(&self, block: u64) -> Extent {
        let size = u64::from(self.block_size);
        let most = u64::from(self.request_max) / size * size;
        let waits = |at: &u64| self.dirty.get(at).is_some_and(|dirty| dirty.waiting.is_some());
        let row = (block..block + most).step_by(size as usize).take_while(waits);
        Extent::new(block, size * row.count() as u64)
    }

    fn promoted(&mut self, request: &Promoted) {
        let from = request.start.get();
        for at in (from..from + u64::from(request.blocks)).step_by(self.block_size as usize) {
            let block = self.dirty.entry(at).or_default();
            block.is_promoted = true;
            if let Some(stamp) = block.waiting.take() {
                self.by_age.remove(&stamp);
            }
        }
    }

    /// Takes an event of the tasks in.
    pub fn event(&mut self, event: &Event) {
        let (extent, is_written) = match *event {
            Event::Delivered { task, extent, .. } if task == self.task => (extent, true),
            Event::Superseded { task, extent, .. } if task == self.task => (extent, false),
            _ => return,
        };
        let from = extent.start.get();
        for at in (from..from + extent.blocks.get()).step_by(self.block_size as usize) {
            self.left(at, is_written);
        }
    }

    fn left(&mut self, at: u64, is_written: bool) {
        let Some(block) = self.dirty.get_mut(&at) else { return };
        // Newer data of a promoted block wait: what was written are the promoted ones.
        if is_written && block.is_promoted {
            block.is_promoted = false;
            self.counts.foreground += 1;
        } else if let Some(stamp) = block.waiting.take() {
            self.by_age.remove(&stamp);
            let count =
                if is_written { &mut self.counts.free } else { &mut self.counts.superseded };
            *count += 1;
        }
        if *block == Dirty::default() {
            self.dirty.remove(&at);
        }
    }

    /// Blocks that are in memory only.
    pub fn dirty_blocks(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// What has become of dirty blocks.
    pub fn counts(&self) -> PrewriteCounts {
        self.counts
    }
}
