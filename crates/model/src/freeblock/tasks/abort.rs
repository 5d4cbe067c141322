//! Blocks and tasks that are wanted no longer.

use freewheel_units::{Op, SimTime};

use super::Tasks;
use super::grid::BlockRun;
use super::spec::{TaskError, TaskId, Which};
use super::task::Part;

impl Tasks {
    /// Wants these blocks of a task no longer, in no round (table 1: `freeblock_abort`). How many
    /// were still wanted. A task that has nothing left to want then is done; with [`Which::All`] it
    /// ends without a word. What has been promoted goes on as a foreground request and is not
    /// delivered.
    pub fn abort(&mut self, now: SimTime, id: TaskId, which: Which<'_>) -> Result<u64, TaskError> {
        let before = self.task(id).map(|_| self.outstanding(id))?;
        match which {
            Which::All => self.end(id),
            Which::In(_) => {
                for (part, run) in self.selected(id, which)? {
                    self.abort_run(id, part, run);
                }
                self.touched.push(id);
            }
        }
        let after = if self.tasks.contains_key(&id) { self.outstanding(id) } else { 0 };
        self.settle(now);
        Ok(before - after)
    }

    /// Runs that lie wholly in an extent, by part.
    pub(super) fn selected(
        &self,
        id: TaskId,
        which: Which<'_>,
    ) -> Result<Vec<(usize, BlockRun)>, TaskError> {
        let capacity = self.capacity();
        let whole = [(0, capacity.get())];
        let bounds: Vec<(u64, u64)> = match which {
            Which::All => whole.to_vec(),
            Which::In(extents) => extents
                .iter()
                .map(|&extent| {
                    let bounds = extent.bounds().filter(|&(_, to)| to <= capacity.get());
                    bounds.ok_or(TaskError::PastEnd { extent, capacity })
                })
                .collect::<Result<_, _>>()?,
        };
        let parts = self.task(id)?.parts.iter().enumerate();
        let runs = parts.flat_map(|(number, part)| {
            bounds.iter().map(move |&bounds| (number, part.grid.inside(bounds)))
        });
        Ok(runs.filter(|(_, run)| run.0 < run.1).collect())
    }

    fn abort_run(&mut self, id: TaskId, part: usize, run: BlockRun) {
        self.take(id, part, run);
        let is_write = self.tasks[&id].spec.op == Op::Write;
        let part = self.part_mut(id, part);
        for set in [&mut part.promoted, &mut part.deferred].into_iter().flatten() {
            set.remove(run.0, run.1);
        }
        part.repeat_without(run);
        let bounds = part.grid.bounds(run);
        if is_write {
            self.ended.push(bounds);
        }
    }

    /// Ends a task: nothing more is done for it, and its layers go to others.
    pub(super) fn end(&mut self, id: TaskId) {
        for part in 0..self.tasks[&id].parts.len() {
            let run = (0, self.part(id, part).grid.blocks);
            self.abort_run(id, part, run);
            let Part { layer, .. } = *self.part(id, part);
            let members = &mut self.layers[layer].members;
            members.retain(|&member| member != id);
            match members[..] {
                // An idle layer makes nothing look worth more.
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
