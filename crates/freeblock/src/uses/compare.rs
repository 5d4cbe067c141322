//! Two versions of each datum, both of which must be in memory to be compared: tamper detection
//! (osdi00 section 2.2).
//!
//! Blocks come in any order, so each block waits for its other version. Open pairs are limited by
//! memory for one version of each.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_units::{Blocks, Bytes, Lbn, Op, SimTime};
use serde::Serialize;
use thiserror::Error;

use crate::tasks::{BlockSelection, Event, Extent, TaskError, TaskId, TaskSpec, Tasks, Until};

/// Two versions of some data, block by block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// Version of now.
    pub current: Extent,
    /// The first block of 512 B of the safe version.
    pub safe: Lbn,
}

/// Two versions of a block: where each begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Version of now.
    pub current: Lbn,
    /// The safe version.
    pub safe: Lbn,
}

/// Reason why a comparison was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CompareError {
    /// No block fits memory.
    #[error("a memory of {memory} for blocks of {block}: at least one must fit")]
    Memory {
        /// Memory that may be used.
        memory: Bytes,
        /// Size of a block.
        block: Bytes,
    },
    /// Something is to be compared with two others, or with itself.
    #[error("{at} is in more than one version")]
    Overlap {
        /// The first such block.
        at: Lbn,
    },
    /// The task interface refused it.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Results of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CompareCounts {
    /// Pairs of blocks that were in memory together.
    pub compared: u64,
    /// The most that waited for its other version.
    pub unmatched_bytes_max: u64,
}

impl CompareCounts {
    /// Sum of two arms' results.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            compared: self.compared + other.compared,
            unmatched_bytes_max: self.unmatched_bytes_max.max(other.unmatched_bytes_max),
        }
    }
}

/// A comparison under way.
#[derive(Debug, Clone)]
pub struct Compare {
    task: TaskId,
    block_size: u64,
    /// Most pairs that may be open.
    pairs_max: u64,
    rows: Vec<Versions>,
    /// The next pair to ask for: its row, and the block of 512 B in it.
    next: (usize, u64),
    /// Blocks of open pairs, by the first block of 512 B: the pair.
    open: BTreeMap<u64, Pair>,
    /// Blocks of pairs of which one block has come.
    unmatched: BTreeSet<u64>,
    counts: CompareCounts,
}

impl Compare {
    /// Asks for the first pairs. Unmatched data take `memory` at most.
    pub fn begin(
        tasks: &mut Tasks,
        now: SimTime,
        block_size: u32,
        rows: Vec<Versions>,
        memory: Bytes,
    ) -> Result<Self, CompareError> {
        let spec =
            TaskSpec { until: Until::Standing, ..TaskSpec::new(Op::Read, block_size, Vec::new()) };
        let task = tasks.register(now, spec)?;
        let block = Blocks::new(block_size.into()).bytes();
        let mut compare = Self {
            task,
            block_size: block_size.into(),
            pairs_max: memory.get() / block.get(),
            rows,
            next: (0, 0),
            open: BTreeMap::new(),
            unmatched: BTreeSet::new(),
            counts: CompareCounts::default(),
        };
        let checked = compare.check(tasks.drive().blocks(), memory);
        let reserved = checked.and_then(|()| compare.reserve(tasks, now));
        let begun = reserved.and_then(|()| compare.ask(tasks, now));
        if begun.is_err() || compare.is_done() {
            tasks.abort(now, task, BlockSelection::All)?;
        }
        begun.map(|()| compare)
    }

    fn check(&self, capacity: Blocks, memory: Bytes) -> Result<(), CompareError> {
        if self.pairs_max == 0 {
            let block = Blocks::new(self.block_size).bytes();
            return Err(CompareError::Memory { memory, block });
        }
        let both = self.rows.iter().flat_map(|row| [row.current, safe(row)]);
        let mut extents: Vec<Extent> = both.collect();
        for &extent in &extents {
            let end = extent.start.get().checked_add(extent.blocks.get());
            if end.is_none_or(|end| end > capacity.get()) {
                return Err(TaskError::PastEnd { extent, capacity }.into());
            }
            if !extent.blocks.get().is_multiple_of(self.block_size) {
                let size = self.block_size as u32;
                return Err(TaskError::PartBlock { extent, size }.into());
            }
        }
        extents.sort_unstable();
        match extents.windows(2).find(|pair| pair[1].start < pair[0].start + pair[0].blocks) {
            Some(pair) => Err(CompareError::Overlap { at: pair[1].start }),
            None => Ok(()),
        }
    }

    /// Takes layers for all alignments, so that none is missing when their rows have their turn: a task
    /// keeps the layers of all blocks that it ever asked for.
    fn reserve(&self, tasks: &mut Tasks, now: SimTime) -> Result<(), CompareError> {
        let rows = self.rows.iter().filter(|row| row.current.blocks > Blocks::ZERO);
        let starts = rows.flat_map(|row| [row.current.start, row.safe]);
        let one_of_each: BTreeMap<u64, Extent> = starts
            .map(|start| start.get())
            .map(|start| (start % self.block_size, Extent::new(start, self.block_size)))
            .collect();
        let extents: Vec<Extent> = one_of_each.into_values().collect();
        tasks.extend(now, self.task, &extents)?;
        tasks.abort(now, self.task, BlockSelection::In(&extents))?;
        Ok(())
    }

    /// Asks for all pairs that memory has room for.
    fn ask(&mut self, tasks: &mut Tasks, now: SimTime) -> Result<(), CompareError> {
        let (mut pairs, mut next) = (Vec::new(), self.next);
        while self.open_pairs() + (pairs.len() as u64) < self.pairs_max
            && let Some(&Versions { current, safe }) = self.rows.get(next.0)
        {
            let (row, at) = next;
            if at >= current.blocks.get() {
                next = (row + 1, 0);
                continue;
            }
            let [current, safe] = [current.start, safe].map(|start| Lbn::new(start.get() + at));
            pairs.push(Pair { current, safe });
            next = (row, at + self.block_size);
        }
        let extents: Vec<Extent> = pairs
            .iter()
            .flat_map(sides)
            .map(|start| Extent::new(start.get(), self.block_size))
            .collect();
        tasks.extend(now, self.task, &extents)?;
        self.next = next;
        for pair in pairs {
            self.open.extend(sides(&pair).map(|side| (side.get(), pair)));
        }
        Ok(())
    }

    /// Takes an event in, adds the pairs that can be compared now to `compared`, and asks for
    /// others in their place. The task ends with the last pair.
    pub fn event(
        &mut self,
        tasks: &mut Tasks,
        event: &Event,
        compared: &mut Vec<Pair>,
    ) -> Result<(), CompareError> {
        let Event::Delivered { task, extent, at, .. } = *event else { return Ok(()) };
        if task != self.task {
            return Ok(());
        }
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        for block in (from..to).step_by(self.block_size as usize) {
            self.arrived(block, compared);
        }
        self.ask(tasks, at)?;
        if self.is_done() {
            tasks.abort(at, self.task, BlockSelection::All)?;
        }
        Ok(())
    }

    fn arrived(&mut self, block: u64, compared: &mut Vec<Pair>) {
        let Some(&pair) = self.open.get(&block) else { return };
        let [current, safe] = [pair.current.get(), pair.safe.get()];
        let other = if block == current { safe } else { current };
        if self.unmatched.remove(&other) {
            self.open.remove(&current);
            self.open.remove(&safe);
            self.counts.compared += 1;
            compared.push(pair);
        } else {
            self.unmatched.insert(block);
        }
        let unmatched = self.unmatched().get();
        self.counts.unmatched_bytes_max = self.counts.unmatched_bytes_max.max(unmatched);
    }

    /// Pairs that have been asked for and are not compared.
    fn open_pairs(&self) -> u64 {
        self.open.len() as u64 / 2
    }

    /// Data that wait for their other version.
    pub fn unmatched(&self) -> Bytes {
        Blocks::new(self.unmatched.len() as u64 * self.block_size).bytes()
    }

    /// The task that reads both versions.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// True if all pairs have been compared.
    pub fn is_done(&self) -> bool {
        self.open.is_empty() && self.next.0 >= self.rows.len()
    }

    /// Results so far.
    pub fn counts(&self) -> CompareCounts {
        self.counts
    }
}

fn safe(row: &Versions) -> Extent {
    Extent { start: row.safe, ..row.current }
}

fn sides(pair: &Pair) -> [Lbn; 2] {
    [pair.current, pair.safe]
}
