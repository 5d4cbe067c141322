//! Blocks that shall not wait for a gap any longer.

use freewheel_units::{Lbn, Op, SimTime};

use super::grid::{BlockRun, runs_in};
use super::spec::{BlockSelection, Extent, TaskError, TaskId, TaskSpec};
use super::task::count;
use super::writes::{PromotedWrite, Writer, bounds};
use super::{Event, Tasks};
use crate::foreground::{Promoted, PromotionId};

impl Tasks {
    /// Takes blocks of a task out of the gaps and returns the foreground requests to make for them,
    /// by address (table 1: `freeblock_promote`). Blocks that follow on each other become one
    /// request of at most `limit` blocks of 512 B. What waits for a write is left as it is. Of writes
    /// the caller keeps the order that the [module](super) asks for.
    pub fn promote(
        &mut self,
        id: TaskId,
        which: BlockSelection<'_>,
        limit: u32,
    ) -> Result<Vec<Promoted>, TaskError> {
        let most = self.most_merged(id, limit)?;
        let mut requests = Vec::new();
        for (part, selected) in self.selected(id, which)? {
            for (first, end) in runs_in(self.free_blocks(id, part), selected) {
                for from in (first..end).step_by(most as usize) {
                    let run = (from, (from + most).min(end));
                    requests.push(self.promote_run(id, part, run));
                }
            }
        }
        requests.sort_unstable_by_key(|request| request.start);
        Ok(requests)
    }

    /// Takes the next blocks of a task at `from` or behind it out of the gaps, or the first ones when
    /// there are none, and returns the foreground request to make for them: for blocks that follow on
    /// each other, at most `limit` of 512 B. None when all wanted blocks wait for a write.
    pub fn promote_next(
        &mut self,
        id: TaskId,
        from: Lbn,
        limit: u32,
    ) -> Result<Option<Promoted>, TaskError> {
        let most = self.most_merged(id, limit)?;
        let next_of = |from: u64| {
            let parts = self.tasks[&id].parts.iter().enumerate();
            let runs = parts.filter_map(|(number, part)| {
                let first = part.grid.inside((from, u64::MAX)).0;
                let run = self.free_blocks(id, number).next_run(first, most)?;
                Some((part.grid.start(run.0), number, run))
            });
            runs.min()
        };
        let next = next_of(from.get()).or_else(|| next_of(0));
        Ok(next.map(|(_, part, run)| self.promote_run(id, part, run)))
    }

    /// Number of foreground requests of at most `limit` blocks of 512 B that would promote all promotable
    /// blocks of a task. Looks at all of them.
    pub fn promotable(&self, id: TaskId, limit: u32) -> Result<u64, TaskError> {
        let most = self.most_merged(id, limit)?;
        let mut requests = 0;
        for (number, part) in self.tasks[&id].parts.iter().enumerate() {
            self.free_blocks(id, number).for_each_run(0, part.grid.blocks, |first, end| {
                requests += (end - first).div_ceil(most);
            });
        }
        Ok(requests)
    }

    /// Blocks of a task that make a request of `limit` blocks of 512 B.
    fn most_merged(&self, id: TaskId, limit: u32) -> Result<u64, TaskError> {
        let size = self.task(id)?.spec.block_size;
        if limit < size {
            return Err(TaskError::MergeLimit { limit, size });
        }
        Ok(u64::from(limit / size))
    }

    fn promote_run(&mut self, id: TaskId, part: usize, run: BlockRun) -> Promoted {
        let TaskSpec { op, precedes_writes, .. } = self.tasks[&id].spec;
        let promotion = PromotionId(self.promotions_begun);
        self.promotions_begun += 1;
        self.take(id, part, run);
        self.part_mut(id, part).promote(run);
        let bounds = self.part(id, part).grid.bounds(run);
        if op == Op::Write {
            self.writes.begin(Writer::Promoted(promotion), bounds);
            self.promotions
                .insert(promotion, PromotedWrite { task: id, part, run, start: bounds.0 });
        }
        let blocks = (bounds.1 - bounds.0) as u32;
        let precedes_writes = precedes_writes || op == Op::Write;
        Promoted { id: promotion, op, start: Lbn::new(bounds.0), blocks, precedes_writes }
    }

    /// A promoted write is on the media.
    pub(super) fn promoted_written(&mut self, promotion: PromotionId, at: SimTime) {
        let Some(written) = self.promotions.remove(&promotion) else { return };
        let PromotedWrite { task, part, run, start } = written;
        self.writes.end(Writer::Promoted(promotion), start);
        if self.tasks.contains_key(&task) {
            self.ended.push(self.part(task, part).grid.bounds(run));
            self.deliver_promoted(task, part, run, at);
        }
    }

    /// A foreground request has moved these blocks: what has been promoted of them is in memory.
    pub(super) fn passed_promoted(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        let bounds = bounds(start, blocks);
        let reads = self.tasks.iter().filter(|(_, task)| {
            task.spec.op == Op::Read && (op == Op::Read || task.spec.counts.writes)
        });
        let parts = reads.flat_map(|(&id, task)| {
            task.parts.iter().enumerate().map(move |(number, part)| (id, number, part))
        });
        let moved: Vec<(TaskId, usize, BlockRun)> = parts
            .filter(|(_, _, part)| count(&part.promoted) > 0)
            .map(|(id, number, part)| (id, number, part.grid.inside(bounds)))
            .collect();
        for (id, part, run) in moved {
            self.deliver_promoted(id, part, run, at);
        }
    }

    fn deliver_promoted(&mut self, id: TaskId, part: usize, run: BlockRun, at: SimTime) {
        let Some(promoted) = &mut self.part_mut(id, part).promoted else { return };
        let delivered = runs_in(promoted, run);
        promoted.remove(run.0, run.1);
        for run in delivered {
            self.deliver(id, part, run, true, at);
        }
    }

    /// Counts blocks as delivered and reports them; at most the number that is enough.
    pub(super) fn deliver(
        &mut self,
        id: TaskId,
        part: usize,
        run: BlockRun,
        is_promoted: bool,
        at: SimTime,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let blocks = (run.1 - run.0).min(task.left());
        if blocks == 0 {
            return;
        }
        task.delivered += blocks;
        task.delivered_total += blocks;
        let extent = Extent::of(&task.parts[part].grid, (run.0, run.0 + blocks));
        self.events.push(Event::Delivered { task: id, extent, is_promoted, at });
        self.touched.push(id);
    }
}
