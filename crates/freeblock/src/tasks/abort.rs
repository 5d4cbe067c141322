//! Blocks and tasks that are wanted no longer.

use freewheel_units::{Op, SimTime};

use super::Tasks;
use super::grid::{BlockRun, runs_in};
use super::spec::{BlockSelection, Extent, REPEATED_EXTENTS_MAX, TaskError, TaskId, merge};
use super::task::TaskPart;

impl Tasks {
    /// Wants these blocks of a task no longer, in no round (table 1: `freeblock_abort`). How many were
    /// still wanted. A task without wanted blocks then is done; with [`BlockSelection::All`] it ends
    /// without a word. Promoted blocks stay foreground requests and are not delivered. Refused where
    /// too many extents would be left to a repeating task.
    pub fn abort(
        &mut self,
        now: SimTime,
        id: TaskId,
        which: BlockSelection<'_>,
    ) -> Result<u64, TaskError> {
        let before = self.task(id).map(|_| self.outstanding(id))?;
        match which {
            BlockSelection::All => self.end(id),
            BlockSelection::In(_) | BlockSelection::Touching(_) => {
                let selected = self.selected(id, which)?;
                let repeats = self.repeats_without(id, &selected)?;
                for (part, repeats) in repeats.into_iter().enumerate() {
                    self.part_mut(id, part).repeats = repeats;
                }
                for (part, run) in selected {
                    self.abort_run(id, part, run);
                }
                self.touched.push(id);
            }
        }
        let after = if self.tasks.contains_key(&id) { self.outstanding(id) } else { 0 };
        self.settle(now);
        Ok(before - after)
    }

    /// Wants the blocks of a task no longer of which a part lies in `extent`, and returns those that were
    /// wanted: in gaps, behind a write, or as promoted blocks. The caller reads or writes them instead.
    /// Refused like [`abort`](Self::abort).
    pub fn withdraw(
        &mut self,
        now: SimTime,
        id: TaskId,
        extent: Extent,
    ) -> Result<Vec<Extent>, TaskError> {
        let which = BlockSelection::Touching(&[extent]);
        let mut wanted = Vec::new();
        for (number, run) in self.selected(id, which)? {
            let part = self.part(id, number);
            let others = [&part.deferred, &part.promoted].into_iter().flatten();
            let sets = others.chain([self.free_blocks(id, number)]);
            let mut runs: Vec<BlockRun> = sets.flat_map(|set| runs_in(set, run)).collect();
            // A write is promoted with old data and wanted with newer ones, so sets may share blocks.
            merge(&mut runs);
            wanted.extend(runs.into_iter().map(|run| Extent::of(&part.grid, run)));
        }
        self.abort(now, id, which)?;
        Ok(wanted)
    }

    /// Next round of a task without these runs, by part.
    fn repeats_without(
        &self,
        id: TaskId,
        gone: &[(usize, BlockRun)],
    ) -> Result<Vec<Vec<BlockRun>>, TaskError> {
        let parts = self.task(id)?.parts.iter().enumerate();
        let left: Vec<Vec<BlockRun>> = parts
            .map(|(number, part)| {
                let gone = gone.iter().filter(|(of, _)| *of == number).map(|&(_, run)| run);
                without(&part.repeats, gone)
            })
            .collect();
        let count = left.iter().map(Vec::len).sum();
        if count > REPEATED_EXTENTS_MAX {
            return Err(TaskError::TooManyExtents { count });
        }
        Ok(left)
    }

    /// Runs that lie in an extent, wholly or as asked for, by part; those of a part in ascending order
    /// and apart from each other.
    pub(super) fn selected(
        &self,
        id: TaskId,
        which: BlockSelection<'_>,
    ) -> Result<Vec<(usize, BlockRun)>, TaskError> {
        let capacity = self.capacity();
        let whole = [(0, capacity.get())];
        let bounds: Vec<(u64, u64)> = match which {
            BlockSelection::All => whole.to_vec(),
            BlockSelection::In(extents) | BlockSelection::Touching(extents) => extents
                .iter()
                .map(|&extent| {
                    let bounds = extent.bounds().filter(|&(_, to)| to <= capacity.get());
                    bounds.ok_or(TaskError::PastEnd { extent, capacity })
                })
                .collect::<Result<_, _>>()?,
        };
        let mut selected = Vec::new();
        for (number, part) in self.task(id)?.parts.iter().enumerate() {
            let mut runs: Vec<BlockRun> = bounds
                .iter()
                .map(|&bounds| match which {
                    BlockSelection::Touching(_) => part.grid.touching(bounds),
                    BlockSelection::All | BlockSelection::In(_) => part.grid.inside(bounds),
                })
                .filter(|run| run.0 < run.1)
                .collect();
            merge(&mut runs);
            selected.extend(runs.into_iter().map(|run| (number, run)));
        }
        Ok(selected)
    }

    fn abort_run(&mut self, id: TaskId, part: usize, run: BlockRun) {
        self.take(id, part, run);
        let is_write = self.tasks[&id].spec.op == Op::Write;
        let part = self.part_mut(id, part);
        for set in [&mut part.promoted, &mut part.deferred].into_iter().flatten() {
            set.remove(run.0, run.1);
        }
        let bounds = part.grid.bounds(run);
        if is_write {
            self.ended.push(bounds);
        }
    }

    /// Ends a task: its layers go to others.
    pub(super) fn end(&mut self, id: TaskId) {
        for part in 0..self.tasks[&id].parts.len() {
            let run = (0, self.part(id, part).grid.blocks);
            self.abort_run(id, part, run);
            let TaskPart { layer, .. } = *self.part(id, part);
            let members = &mut self.layers[layer].members;
            members.retain(|&member| member != id);
            match members[..] {
                // An idle layer must not raise bounds.
                [] => self.scheduler.set_weight(layer, 1),
                [alone] => {
                    let part = self.tasks[&alone].part_on(layer);
                    if let Some(part) = part {
                        self.part_mut(alone, part).own = None;
                    }
                }
                _ => {}
            }
        }
        self.tasks.remove(&id);
    }
}

/// Difference of `runs` and `gone`; both in ascending order and disjoint.
fn without(runs: &[BlockRun], gone: impl Iterator<Item = BlockRun>) -> Vec<BlockRun> {
    let mut gone = gone.peekable();
    let mut left = Vec::new();
    for &(mut from, end) in runs {
        while from < end {
            // One that ends further on may cut the next run, too.
            while gone.next_if(|gone| gone.1 <= from).is_some() {}
            let cut = gone.peek().map_or((end, end), |gone| (gone.0.min(end), gone.1.min(end)));
            if from < cut.0 {
                left.push((from, cut.0));
            }
            from = cut.1;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn runs_of(rows: Vec<(u64, u64)>) -> Vec<BlockRun> {
        let mut runs = rows.into_iter().map(|(from, blocks)| (from, from + blocks)).collect();
        merge(&mut runs);
        runs
    }

    proptest! {
        #[test]
        fn abort_leaves_set_difference(
            runs in prop::collection::vec((0u64..90, 1u64..9), 0..20),
            gone in prop::collection::vec((0u64..90, 1u64..9), 0..20),
        ) {
            let (runs, gone) = (runs_of(runs), runs_of(gone));
            let set = |runs: &[BlockRun]| -> BTreeSet<u64> {
                runs.iter().flat_map(|run| run.0..run.1).collect()
            };
            let left = without(&runs, gone.iter().copied());
            prop_assert_eq!(set(&left), &set(&runs) - &set(&gone));
            prop_assert!(left.iter().all(|run| run.0 < run.1));
            prop_assert!(left.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
