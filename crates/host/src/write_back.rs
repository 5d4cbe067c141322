//! A memory that takes foreground writes, and writes them to the media in gaps.

use std::collections::{BTreeSet, VecDeque};

use freewheel_freeblock::tasks::{Event, Promoted, TaskError, TaskId, Tasks};
use freewheel_freeblock::uses::Prewriter;
use freewheel_freeblock::{Foreground, FreeRun, PromotionId};
use freewheel_units::{Bytes, Lbn, Op, SimTime};
use serde::Serialize;

/// Quarters of the memory that may wait for gaps; promoted requests write from the rest. Assumed.
const WAITING_QUARTERS: u64 = 3;

/// Most bytes in a promoted request. Assumed: the largest block in osdi00's experiments.
const MERGED_MAX: Bytes = Bytes::new(64 << 10);

/// Write-back of one arm: which foreground requests memory answers, and when it writes dirty blocks.
#[derive(Debug, Clone)]
pub struct WriteBack {
    prewriter: Prewriter,
    block_size: u64,
    /// Blocks for which memory has room.
    blocks_max: u64,
    /// Promoted requests that the engine has not taken yet, and those that are not done.
    waiting: VecDeque<Promoted>,
    under_way: BTreeSet<PromotionId>,
    writes: u64,
    taken: u64,
    reads_answered: u64,
    dirtied: u64,
    /// In blocks of 512 B.
    free_blocks: u64,
}

/// Results of write-back. A block that became dirty leaves memory in one of these ways: a gap, idle
/// time or a promoted request writes it; newer data replace it; or it is left at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct WriteBackResult {
    /// Foreground writes without FUA; memory takes none with FUA.
    pub writes: u64,
    /// Writes that memory took. The others went to the drive, for lack of room or because they were not
    /// whole blocks.
    pub taken: u64,
    /// Foreground reads that memory answered.
    pub reads_answered: u64,
    /// Blocks that became dirty.
    pub dirtied: u64,
    /// Blocks that gaps and idle time wrote.
    pub free: u64,
    /// Bytes that gaps and idle time wrote: those of `free` blocks, and of parts of others. Each part
    /// of a block on two tracks is written separately. A promotion, or newer data, before the second
    /// part cause a write of the whole block. At the end such a block is left.
    pub free_bytes: u64,
    /// Blocks that promoted requests wrote.
    pub promoted: u64,
    /// Blocks that became dirty again before they were written; each saved a write.
    pub absorbed: u64,
    /// Blocks that a foreground write without room in memory replaced.
    pub superseded: u64,
    /// Largest number of blocks that waited for a gap.
    pub waiting_max: u64,
    /// Blocks in memory only, at the end.
    pub left: u64,
    /// Size of the memory.
    pub memory_bytes: u64,
}

impl WriteBack {
    /// Registers the task that writes dirty blocks of `block_size` x 512 B. Err like [`Prewriter::new`].
    pub fn begin(tasks: &mut Tasks, block_size: u32, memory: Bytes) -> Result<Self, TaskError> {
        let blocks_max = memory.get() / 512 / u64::from(block_size);
        let waiting_max = blocks_max * WAITING_QUARTERS / 4;
        let request_max = block_size.max((MERGED_MAX.get() / 512) as u32);
        Ok(Self {
            prewriter: Prewriter::new(tasks, SimTime::ZERO, block_size, waiting_max, request_max)?,
            block_size: block_size.into(),
            blocks_max,
            waiting: VecDeque::new(),
            under_way: BTreeSet::new(),
            writes: 0,
            taken: 0,
            reads_answered: 0,
            dirtied: 0,
            free_blocks: 0,
        })
    }

    /// The task that writes dirty blocks.
    pub fn task(&self) -> TaskId {
        self.prewriter.task()
    }

    /// True if memory answers an arriving foreground request.
    pub fn takes(
        &mut self,
        tasks: &mut Tasks,
        request: &Foreground,
        now: SimTime,
    ) -> Result<bool, TaskError> {
        match request.op {
            Op::Read => {
                let is_here =
                    self.touched(request.start, request.blocks).all(|at| self.is_dirty(at));
                self.reads_answered += u64::from(is_here);
                Ok(is_here)
            }
            Op::Write => {
                self.writes += 1;
                let is_taken = self.parts(request).next().is_none() && self.has_room(request);
                if is_taken {
                    self.taken += 1;
                    let blocks: Vec<u64> = self.touched(request.start, request.blocks).collect();
                    self.keep(tasks, &blocks, now)?;
                }
                Ok(is_taken)
            }
            Op::Flush | Op::Trim => Ok(false),
        }
    }

    /// Blocks that share at least a part with a request, by their starts.
    fn touched(&self, from: Lbn, blocks: u32) -> impl Iterator<Item = u64> + use<> {
        let (size, from) = (self.block_size, from.get());
        let first = from / size * size;
        (first..from + u64::from(blocks)).step_by(size as usize)
    }

    /// Blocks of which the request covers a part only.
    fn parts(&self, request: &Foreground) -> impl Iterator<Item = u64> + use<> {
        let (size, from) = (self.block_size, request.start.get());
        let to = from + u64::from(request.blocks);
        self.touched(request.start, request.blocks).filter(move |&at| at < from || at + size > to)
    }

    /// True if the block that begins at `at` is in memory only.
    pub fn is_dirty(&self, at: u64) -> bool {
        self.prewriter.is_dirty(Lbn::new(at))
    }

    fn has_room(&self, request: &Foreground) -> bool {
        let new =
            self.touched(request.start, request.blocks).filter(|&at| !self.is_dirty(at)).count()
                as u64;
        self.prewriter.dirty_blocks() + new <= self.blocks_max
    }

    /// Keeps these blocks in memory only, from now on.
    pub fn keep(
        &mut self,
        tasks: &mut Tasks,
        blocks: &[u64],
        now: SimTime,
    ) -> Result<(), TaskError> {
        for &at in blocks {
            self.waiting.extend(self.prewriter.dirty(tasks, now, Lbn::new(at))?);
            self.dirtied += 1;
        }
        Ok(())
    }

    /// Blocks that memory has and of which a foreground write on its way to the drive has a part: the
    /// rest of them is nowhere else.
    pub fn parts_kept(&self, request: &Foreground) -> Vec<u64> {
        match request.op {
            Op::Write => self.parts(request).filter(|&at| self.is_dirty(at)).collect(),
            _ => Vec::new(),
        }
    }

    /// The next foreground request to make.
    pub fn promoted(&mut self) -> Option<Promoted> {
        let promoted = self.waiting.pop_front()?;
        self.under_way.insert(promoted.id);
        Some(promoted)
    }

    /// True if a foreground request was made for it.
    pub fn has_promoted(&self, promotion: Option<PromotionId>) -> bool {
        promotion.is_some_and(|id| self.under_way.contains(&id))
    }

    /// A foreground request is done.
    pub fn done(&mut self, promotion: Option<PromotionId>) {
        if let Some(promotion) = promotion {
            self.under_way.remove(&promotion);
        }
    }

    /// A run of a gap or of idle time is planned, which will be done.
    pub fn planned(&mut self, run: &FreeRun) {
        if run.op != Op::Write {
            return;
        }
        let (from, to) = (run.start.get(), run.start.get() + u64::from(run.blocks));
        let its = self.touched(run.start, run.blocks).filter(|&at| self.is_dirty(at));
        let blocks: u64 = its.map(|at| to.min(at + self.block_size) - from.max(at)).sum();
        self.free_blocks += blocks;
    }

    /// Takes an event of the tasks in.
    pub fn event(&mut self, tasks: &Tasks, event: &Event) -> Result<(), TaskError> {
        self.prewriter.event(tasks, event)
    }

    /// Results so far of a memory of this size.
    pub fn result(&self, memory_bytes: u64) -> WriteBackResult {
        let counts = self.prewriter.counts();
        WriteBackResult {
            writes: self.writes,
            taken: self.taken,
            reads_answered: self.reads_answered,
            dirtied: self.dirtied,
            free: counts.free,
            free_bytes: self.free_blocks * 512,
            promoted: counts.foreground,
            absorbed: counts.absorbed,
            superseded: counts.superseded,
            waiting_max: counts.waiting_max,
            left: self.prewriter.dirty_blocks(),
            memory_bytes,
        }
    }
}

impl WriteBackResult {
    /// Two arms together: amounts added up, of what is a most the larger.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            taken: self.taken + other.taken,
            reads_answered: self.reads_answered + other.reads_answered,
            dirtied: self.dirtied + other.dirtied,
            free: self.free + other.free,
            free_bytes: self.free_bytes + other.free_bytes,
            promoted: self.promoted + other.promoted,
            absorbed: self.absorbed + other.absorbed,
            superseded: self.superseded + other.superseded,
            waiting_max: self.waiting_max.max(other.waiting_max),
            left: self.left + other.left,
            memory_bytes: self.memory_bytes,
        }
    }
}
