//! Free prewriting: dirty blocks of a cache leave it in gaps, and as foreground requests only when
//! there are too many of them (osdi00 section 2.2). The more there are, the more they are worth beside
//! what other tasks want.
//!
//! Events may come late: a block can have been written and made dirty again before anybody hears of the
//! first. So an event only tells that a block has changed; the tasks know its state now.

use std::collections::BTreeMap;

use freewheel_units::{Lbn, Op, SimTime};

use crate::tasks::{
    BlockSelection, Event, Extent, Pace, Promoted, TaskError, TaskId, TaskSpec, Tasks, Until,
    Wanted,
};

/// Counts of dirty blocks by outcome.
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

/// Write-back of a cache.
#[derive(Debug, Clone)]
pub struct Prewriter {
    task: TaskId,
    block_size: u32,
    waiting_max: u64,
    request_max: u32,
    /// By first block of 512 B: when it became dirty, counted in blocks; None when a foreground request
    /// is writing it and no gap is awaited.
    dirty: BTreeMap<u64, Option<u64>>,
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
        let spec = TaskSpec {
            until: Until::Standing,
            pace: Pace::Room(waiting_max.max(1)),
            ..TaskSpec::new(Op::Write, block_size, Vec::new())
        };
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
        let was_waiting = tasks.wanted(self.task, start)?.in_gap;
        tasks.extend(now, self.task, &[extent])?;
        let stamp = self.begun;
        self.begun += 1;
        self.counts.absorbed += u64::from(was_waiting);
        if let Some(before) = self.dirty.insert(start.get(), Some(stamp)).flatten() {
            self.by_age.remove(&before);
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
            for request in
                tasks.promote(self.task, BlockSelection::In(&[extent]), self.request_max)?
            {
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
        let row = (block..block + most)
            .step_by(size as usize)
            .take_while(|at| self.dirty.get(at).is_some_and(Option::is_some));
        Extent::new(block, size * row.count() as u64)
    }

    fn promoted(&mut self, request: &Promoted) {
        let from = request.start.get();
        for at in (from..from + u64::from(request.blocks)).step_by(self.block_size as usize) {
            if let Some(stamp) = self.dirty.insert(at, None).flatten() {
                self.by_age.remove(&stamp);
            }
        }
    }

    /// Takes an event of the tasks in, each once; none need have been taken in before a block
    /// becomes dirty again.
    pub fn event(&mut self, tasks: &Tasks, event: &Event) -> Result<(), TaskError> {
        let (extent, count) = match *event {
            Event::Delivered { task, extent, is_promoted, .. } if task == self.task => {
                let PrewriteCounts { free, foreground, .. } = &mut self.counts;
                (extent, if is_promoted { foreground } else { free })
            }
            Event::Superseded { task, extent, .. } if task == self.task => {
                (extent, &mut self.counts.superseded)
            }
            _ => return Ok(()),
        };
        *count += extent.blocks.get() / u64::from(self.block_size);
        let from = extent.start.get();
        for at in (from..from + extent.blocks.get()).step_by(self.block_size as usize) {
            self.look(tasks, at)?;
        }
        Ok(())
    }

    /// Forgets of a block what is wanted no longer.
    fn look(&mut self, tasks: &Tasks, at: u64) -> Result<(), TaskError> {
        let Wanted { in_gap, promoted } = tasks.wanted(self.task, Lbn::new(at))?;
        let Some(waiting) = self.dirty.get_mut(&at).filter(|_| !in_gap) else { return Ok(()) };
        if let Some(stamp) = waiting.take() {
            self.by_age.remove(&stamp);
        }
        if !promoted {
            self.dirty.remove(&at);
        }
        Ok(())
    }

    /// The task that writes them.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// True if the block at `start` is in memory only, as far as events have been taken in.
    pub fn is_dirty(&self, start: Lbn) -> bool {
        self.dirty.contains_key(&start.get())
    }

    /// Blocks that are in memory only, as far as events have been taken in.
    pub fn dirty_blocks(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Counts of dirty blocks by outcome.
    pub fn counts(&self) -> PrewriteCounts {
        self.counts
    }
}
