//! Blocks that become wanted, and the layers they are wanted on.

use freewheel_units::{Op, SimTime};

use super::grid::{BlockGrid, BlockRun, runs_in, runs_in_without};
use super::layer::{Layer, Shape};
use super::spec::{
    Extent, LAYERS_MAX, REPEATED_EXTENTS_MAX, Runs, TaskError, TaskId, Until, merge,
};
use super::task::{Task, TaskPart};
use super::{Event, Tasks};
use crate::bitmap::Bitmap;
use crate::search::LayerKey;

/// Numbers that are taken from a layer at a time, so that lists stay short.
const WINDOW: u64 = 1 << 16;

impl Tasks {
    /// True if there are layers for these blocks of a task, and memory to repeat them.
    pub(super) fn check_room(&self, id: TaskId, task: &Task, runs: &Runs) -> Result<(), TaskError> {
        let in_use = self.layers.iter().filter(|layer| !layer.members.is_empty());
        let is_there = |offset| self.layer_like(&Shape::new(id, task, offset)).is_some();
        let new = runs.keys().filter(|&&offset| !is_there(offset)).count();
        let needed = in_use.count() + new;
        if needed > LAYERS_MAX {
            return Err(TaskError::TooManyLayers { needed });
        }
        let known: usize = task.parts.iter().map(|part| part.repeats.len()).sum();
        let count = known + runs.values().map(Vec::len).sum::<usize>();
        if task.spec.until == Until::Repeated && count > REPEATED_EXTENTS_MAX {
            return Err(TaskError::TooManyExtents { count });
        }
        Ok(())
    }

    fn layer_like(&self, shape: &Shape) -> Option<usize> {
        self.layers.iter().position(|layer| layer.shape == *shape && !layer.members.is_empty())
    }

    /// A layer with this shape: there is room for it.
    fn layer_for(&mut self, shape: Shape, weight: u32) -> usize {
        if let Some(layer) = self.layer_like(&shape) {
            return layer;
        }
        let key = LayerKey { op: shape.op, size: shape.size, offset: shape.offset, weight };
        let new = Layer { shape, members: Vec::new() };
        match self.layers.iter().position(|layer| layer.members.is_empty()) {
            Some(layer) => {
                self.scheduler.replace_layer(layer, key, shape.holds_pieces);
                self.layers[layer] = new;
                layer
            }
            None => {
                self.layers.push(new);
                self.scheduler.add_layer(key, shape.holds_pieces)
            }
        }
    }

    /// The part of a task with this alignment, made if there is none.
    fn part_for(&mut self, id: TaskId, offset: u32) -> usize {
        let task = &self.tasks[&id];
        let grid = BlockGrid::new(task.spec.block_size, offset, self.capacity().get());
        if let Some(part) = task.parts.iter().position(|part| part.grid == grid) {
            return part;
        }
        let shape = Shape::new(id, task, offset);
        let layer = self.layer_for(shape, self.weight(id));
        let members = &mut self.layers[layer].members;
        // A task that was alone on the layer gets its bitmap.
        if let [alone] = members[..]
            && let Some(task) = self.tasks.get_mut(&alone)
            && let Some(part) = task.part_on(layer)
        {
            task.parts[part].own = Some(self.scheduler.blocks(layer).clone());
        }
        let own = (!members.is_empty()).then(|| Bitmap::new(grid.blocks));
        members.push(id);
        let part =
            TaskPart { grid, layer, own, promoted: None, deferred: None, repeats: Vec::new() };
        let task = self.tasks.get_mut(&id).expect("a task that has not ended");
        task.parts.push(part);
        task.parts.len() - 1
    }

    /// Wants blocks for a task. There is room for them.
    pub(super) fn add(&mut self, id: TaskId, runs: Runs, now: SimTime) {
        for (offset, runs) in runs {
            let part = self.part_for(id, offset);
            let spec = &self.tasks[&id].spec;
            if spec.op == Op::Write {
                runs.iter().for_each(|&run| self.want_write(id, part, run, now));
                continue;
            }
            let repeats = spec.until == Until::Repeated;
            self.want_reads(id, part, &runs);
            if repeats {
                let repeats = &mut self.part_mut(id, part).repeats;
                repeats.extend(runs);
                merge(repeats);
            }
        }
    }

    pub(super) fn part(&self, id: TaskId, part: usize) -> &TaskPart {
        &self.tasks[&id].parts[part]
    }

    pub(super) fn part_mut(&mut self, id: TaskId, part: usize) -> &mut TaskPart {
        &mut self.tasks.get_mut(&id).expect("a task that has not ended").parts[part]
    }

    /// Blocks of a part that gaps may read or write.
    pub(super) fn free_blocks(&self, id: TaskId, part: usize) -> &Bitmap {
        let part = self.part(id, part);
        part.own.as_ref().unwrap_or_else(|| self.scheduler.blocks(part.layer))
    }

    /// Lets gaps be used for the blocks of `run`.
    pub(super) fn give(&mut self, id: TaskId, part: usize, run: BlockRun) {
        let part = self.part_mut(id, part);
        if let Some(own) = &mut part.own {
            own.insert(run.0, run.1);
        }
        let layer = part.layer;
        self.scheduler.want(layer, run.0, run.1);
    }

    /// Uses gaps for this task's blocks of `run` no longer; others on its layer go on.
    pub(super) fn take(&mut self, id: TaskId, part: usize, run: BlockRun) {
        let layer = self.part(id, part).layer;
        if self.free_blocks(id, part).is_empty() {
            return;
        }
        let mut from = run.0;
        while from < run.1 {
            let window = (from, (from + WINDOW).min(run.1));
            for gone in self.wanted_by_none_else(id, part, window) {
                self.scheduler.unwant(layer, gone.0, gone.1);
            }
            if let Some(own) = &mut self.part_mut(id, part).own {
                own.remove(window.0, window.1);
            }
            from = window.1;
        }
    }

    fn wanted_by_none_else(&self, id: TaskId, part: usize, run: BlockRun) -> Vec<BlockRun> {
        let layer = self.part(id, part).layer;
        let others = self.layers[layer].members.iter().filter(|&&other| other != id);
        let parts = others.filter_map(|other| {
            let task = &self.tasks[other];
            task.part_on(layer).and_then(|part| task.parts[part].own.as_ref())
        });
        let others: Vec<&Bitmap> = parts.collect();
        runs_in_without(self.free_blocks(id, part), &others, run)
    }

    /// Wants reads; those with a freeblock write pending or any write under way must wait.
    pub(super) fn want_reads(&mut self, id: TaskId, part: usize, runs: &[BlockRun]) {
        for &run in runs {
            self.give(id, part, run);
            let TaskPart { promoted, deferred, grid, .. } = self.part(id, part);
            let grid = *grid;
            let aside = [promoted, deferred].into_iter().flatten();
            let waiting: Vec<BlockRun> = aside.flat_map(|set| runs_in(set, run)).collect();
            waiting.into_iter().for_each(|run| self.take(id, part, run));
            for bounds in self.writes_before(grid.bounds(run)) {
                let touched = grid.touching(bounds);
                let touched = (touched.0.max(run.0), touched.1.min(run.1));
                for run in runs_in(self.free_blocks(id, part), touched) {
                    self.take(id, part, run);
                    self.part_mut(id, part).defer(run);
                }
            }
        }
    }

    /// Writes that a read of `from..to` of 512 B blocks must wait for: all that are under way, and
    /// freeblock ones that have not been done.
    fn writes_before(&self, bounds: (u64, u64)) -> Vec<(u64, u64)> {
        let mut pending: Vec<(u64, u64)> = self.writes.overlapping(bounds).collect();
        for (&id, task) in self.tasks.iter().filter(|(_, task)| writes(task)) {
            for (number, part) in task.parts.iter().enumerate() {
                let run = part.grid.touching(bounds);
                let aside = [&part.deferred, &part.promoted].into_iter().flatten();
                for set in aside.chain([self.free_blocks(id, number)]) {
                    let runs = runs_in(set, run).into_iter();
                    pending.extend(runs.map(|run| part.grid.bounds(run)));
                }
            }
        }
        pending
    }

    /// Wants a write of the newest data. Older ones of the same blocks are superseded, and it waits
    /// for those that are under way.
    fn want_write(&mut self, id: TaskId, part: usize, run: BlockRun, now: SimTime) {
        let grid = self.part(id, part).grid;
        self.supersede(grid.bounds(run), Some((id, part)), now);
        // No part of this block has been written yet, even where its older data had been.
        self.take(id, part, run);
        if let Some(deferred) = &mut self.part_mut(id, part).deferred {
            deferred.remove(run.0, run.1);
        }
        self.give(id, part, run);
        let under_way: Vec<(u64, u64)> = self.writes.overlapping(grid.bounds(run)).collect();
        for bounds in under_way {
            let touched = grid.touching(bounds);
            let touched = (touched.0.max(run.0), touched.1.min(run.1));
            for run in runs_in(self.free_blocks(id, part), touched) {
                self.take(id, part, run);
                self.part_mut(id, part).defer(run);
            }
        }
    }

    /// Pending freeblock writes that touch `bounds` count no longer, but for those of one part. A
    /// foreground write takes promoted ones with it; a freeblock write waits for them.
    pub(super) fn supersede(
        &mut self,
        bounds: (u64, u64),
        but_for: Option<(TaskId, usize)>,
        at: SimTime,
    ) {
        let is_foreground = but_for.is_none();
        let writes = self.tasks.iter().filter(|(_, task)| task.spec.op == Op::Write);
        let parts: Vec<(TaskId, usize)> = writes
            .flat_map(|(&id, task)| (0..task.parts.len()).map(move |part| (id, part)))
            .filter(|&part| Some(part) != but_for)
            .collect();
        for (id, part) in parts {
            let grid = self.part(id, part).grid;
            let run = grid.touching(bounds);
            let mut gone = runs_in(self.free_blocks(id, part), run);
            for &run in &gone {
                self.take(id, part, run);
            }
            if let Some(deferred) = &mut self.part_mut(id, part).deferred {
                gone.extend(runs_in(deferred, run));
                deferred.remove(run.0, run.1);
            }
            merge(&mut gone);
            // Of a block both can be pending: the promoted data and newer ones.
            if is_foreground && let Some(promoted) = &mut self.part_mut(id, part).promoted {
                gone.extend(runs_in(promoted, run));
                promoted.remove(run.0, run.1);
            }
            for run in gone {
                let extent = Extent::of(&grid, run);
                self.events.push(Event::Superseded { task: id, extent, at });
                self.ended.push(grid.bounds(run));
                self.touched.push(id);
            }
        }
    }

    /// A write to these blocks is under way no longer: what waited for it waits no longer, unless for
    /// another.
    pub(super) fn release_all(&mut self, bounds: (u64, u64)) {
        self.release(Op::Write, bounds, |tasks, bounds| tasks.writes.overlap(bounds));
        self.release_reads(bounds);
    }

    /// Freeblock reads that waited for a write to these blocks wait no longer, unless for another.
    pub(super) fn release_reads(&mut self, bounds: (u64, u64)) {
        self.release(Op::Read, bounds, |tasks, bounds| !tasks.writes_before(bounds).is_empty());
    }

    fn release(
        &mut self,
        op: Op,
        bounds: (u64, u64),
        must_wait: impl Fn(&Self, (u64, u64)) -> bool,
    ) {
        let mut released = Vec::new();
        for (&id, task) in self.tasks.iter().filter(|(_, task)| task.spec.op == op) {
            for (number, part) in task.parts.iter().enumerate() {
                let Some(deferred) = &part.deferred else { continue };
                let (first, end) = part.grid.touching(bounds);
                deferred.for_each(first, end, |block| {
                    let run = (block, block + 1);
                    if !must_wait(self, part.grid.bounds(run)) {
                        released.push((id, number, run));
                    }
                });
            }
        }
        for (id, part, run) in released {
            if let Some(deferred) = &mut self.part_mut(id, part).deferred {
                deferred.remove(run.0, run.1);
            }
            self.give(id, part, run);
        }
    }
}

fn writes(task: &Task) -> bool {
    task.spec.op == Op::Write && !task.spec.is_rewrite
}
