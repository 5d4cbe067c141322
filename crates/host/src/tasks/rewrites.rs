//! Refreshes on the planner and the device: which of their blocks gaps write and read back, and which
//! requests of their own do.

use freewheel_freeblock::tasks::{
    BlockSelection, Counts, Extent, Pace, TaskError, TaskId, TaskSpec, Until,
};
use freewheel_units::{BLOCK_BYTES, Lbn, Op, SimTime};

use super::reads::OwnRead;
use super::refresh::{Pass, Step};
use super::state::TaskState;
use super::task::{ServedTask, split};
use super::{CommandData, ServedTasks};

/// A write that a refresh makes like a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnWrite {
    /// Comes back with its end.
    pub number: u64,
    pub start: Lbn,
    pub data: Vec<u8>,
}

/// A write of a client that has ended, and what the device was asked for before that.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecentWrite {
    from: u64,
    to: u64,
    /// The last command that had been sent.
    last: u64,
}

impl RecentWrite {
    /// True if a command was sent before its end, of blocks that it has a part of.
    pub fn is_behind(&self, extent: Extent, command: u64) -> bool {
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        command <= self.last && self.from < to && from < self.to
    }
}

/// Bytes of a block in the data of an extent around it.
fn place_in(extent: Extent, block: Extent) -> std::ops::Range<usize> {
    let from = (block.start.get() - extent.start.get()) * BLOCK_BYTES;
    from as usize..(from + block.blocks.bytes().get()) as usize
}

/// The next request of a refresh's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnStep {
    Read,
    Write(Extent),
    ReadBack(Extent),
}

impl ServedTask {
    /// Blocks of it on its grid, whole or not, each with whether it is a whole one.
    fn blocks_of(&self, extent: Extent) -> Vec<(Extent, bool)> {
        let (first, size) = (self.order.range().start.get(), u64::from(self.order.size()));
        let (mut left, mut blocks) = (extent, Vec::new());
        while left.blocks.get() > 0 {
            let to_edge = size - (left.start.get() - first) % size;
            let (block, rest) = split(left, to_edge.min(left.blocks.get()));
            blocks.push((block, block.blocks.get() == size));
            left = rest;
        }
        blocks
    }

    /// True if a refresh may read further blocks of this round; `wanted` by the planner.
    fn may_read(&self, wanted: u64) -> bool {
        wanted + self.ahead.blocks() + self.separate_blocks + self.own_blocks > 0
    }
}

impl ServedTasks {
    /// The device needs a flush to bring writes to the media. Its media have sectors of this many blocks of
    /// 512 B, of which gaps write no parts.
    pub(crate) fn writes_by(&mut self, by_flush: bool, media_sector: u32) {
        self.by_flush = by_flush;
        self.media_sector = media_sector.max(self.sector_blocks);
    }

    /// Registers what writes and reads back, at the first round.
    pub(super) fn begin_refresh(&mut self, id: u64, now: SimTime) -> Result<(), TaskError> {
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(()) };
        let Some(refresh) = task.refresh.as_mut().filter(|refresh| refresh.writer.is_none()) else {
            return Ok(());
        };
        let size = task.order.size();
        let room = refresh.blocks.room() / u64::from(size);
        let of = |op| TaskSpec {
            priority: task.order.priority,
            pace: Pace::Room(room.max(1)),
            is_rewrite: op == Op::Write,
            until: Until::Standing,
            ..TaskSpec::new(op, size, Vec::new())
        };
        let writer = self.planner.register(now, of(Op::Write))?;
        refresh.writer = Some(writer);
        self.passes.insert(writer, (id, Pass::Write));
        let back = TaskSpec { counts: Counts::READS, ..of(Op::Read) };
        let reader = self.planner.register(now, back)?;
        refresh.reader = Some(reader);
        self.passes.insert(reader, (id, Pass::ReadBack));
        Ok(())
    }

    /// Ends what writes and reads back.
    pub(super) fn end_refresh(&mut self, id: u64, now: SimTime) {
        let Some(refresh) = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut()) else {
            return;
        };
        refresh.blocks.clear();
        for planner_task in [refresh.writer.take(), refresh.reader.take()].into_iter().flatten() {
            self.passes.remove(&planner_task);
            // It is there as long as its refresh.
            let _ = self.planner.abort(now, planner_task, BlockSelection::All);
        }
    }

    /// Keeps what was read of a refresh's blocks, to be written. Without memory they are wanted again.
    pub(super) fn keep_to_write(&mut self, id: u64, extent: Extent, data: &[u8], now: SimTime) {
        let blocks = self.tasks[&id].blocks_of(extent);
        let mut rest = data;
        for (block, is_whole) in blocks {
            let (bytes, behind) = rest.split_at(block.blocks.bytes().get() as usize);
            rest = behind;
            let Some(task) = self.tasks.get_mut(&id) else { return };
            let Some(refresh) = &mut task.refresh else { return };
            if !refresh.blocks.has_room(block.blocks.get()) {
                refresh.blocks.drains = true;
                task.refused += block.blocks.get();
                self.want_again(id, block, now);
                continue;
            }
            task.unreadable.remove(block);
            // Of its first read: its read-back is of what is written.
            let (from, to) = (block.start.get(), block.start.get() + block.blocks.get());
            self.pieces.forget(id, task.order.size(), from, to);
            refresh.blocks.hold(block, bytes.to_vec(), is_whole);
            self.want(id, Pass::Write, block, is_whole, now);
        }
    }

    /// Lets gaps do the next step of a block, if they can.
    fn want(&mut self, id: u64, pass: Pass, block: Extent, in_gaps: bool, now: SimTime) {
        let Some(refresh) = self.tasks.get(&id).and_then(|task| task.refresh.as_ref()) else {
            return;
        };
        let by = if pass == Pass::Write { refresh.writer } else { refresh.reader };
        // Refused where the planner has no room for one more layer.
        let is_taken =
            by.filter(|_| in_gaps).is_some_and(|by| self.planner.extend(now, by, &[block]).is_ok());
        if let Some(refresh) = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut())
            && !is_taken
        {
            refresh.blocks.leave_alone(block.start.get());
        }
    }

    /// Uses gaps no longer to write or read back what touches `extent`.
    fn leave_to_own(&mut self, id: u64, extent: Extent, now: SimTime) {
        let Some(refresh) = self.tasks.get(&id).and_then(|task| task.refresh.as_ref()) else {
            return;
        };
        for by in [refresh.writer, refresh.reader].into_iter().flatten() {
            let which = BlockSelection::Touching(&[extent]);
            let _ = self.planner.abort(now, by, which);
        }
    }

    fn refreshes(&self) -> Vec<u64> {
        let running = self.tasks.iter().filter(|(_, task)| task.state == TaskState::Running);
        running.filter(|(_, task)| task.refresh.is_some()).map(|(&id, _)| id).collect()
    }

    /// A client is about to write `from..to` of 512 B, or has: what refreshes keep of it is old, and its
    /// blocks are read again.
    pub(super) fn forget_read(&mut self, from: u64, to: u64, now: SimTime) {
        for id in self.refreshes() {
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            let Some(refresh) = &mut task.refresh else { continue };
            for block in refresh.blocks.forget(from, to) {
                self.leave_to_own(id, block, now);
                self.restart(id, block, now);
            }
        }
    }

    fn restart(&mut self, id: u64, block: Extent, now: SimTime) {
        let refresh = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut());
        if refresh.is_some_and(|refresh| refresh.blocks.restarts(block)) {
            self.want_again(id, block, now);
        }
    }

    /// A client has written or erased `from..to` of 512 B. `oldest` is the first command at the device: what
    /// the device was asked for until now does not count as read. `is_new` if there are new data on the
    /// media, or in the device's cache, so that blocks of which none has a part need no refresh.
    pub(crate) fn client_wrote(
        &mut self,
        (from, to): (u64, u64),
        oldest: Option<u64>,
        is_new: bool,
        now: SimTime,
    ) {
        self.written(from, to);
        self.recent_writes.retain(|recent| oldest.is_some_and(|oldest| oldest <= recent.last));
        if self.refreshes().is_empty() {
            return;
        }
        if oldest.is_some() {
            self.recent_writes.push(RecentWrite { from, to, last: self.last_command });
        }
        self.forget_read(from, to, now);
        if is_new {
            self.supersede(from, to, now);
        }
        self.settle(now);
    }

    /// Blocks that lie wholly in `from..to` need no refresh in this round.
    fn supersede(&mut self, from: u64, to: u64, now: SimTime) {
        let by_task: Vec<(TaskId, u64)> =
            self.by_planner_task.iter().map(|(&planner_task, &id)| (planner_task, id)).collect();
        for (planner_task, id) in by_task {
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            let Some(refresh) = &mut task.refresh else { continue };
            let (first, size) = (task.order.range().start.get(), u64::from(task.order.size()));
            let end = first + task.order.range().blocks.get();
            let start = first + (from.max(first) - first).next_multiple_of(size);
            let last = to.min(end).max(first);
            let last = last - (last - first) % size;
            if start >= last {
                continue;
            }
            let inside = Extent::new(start, last - start);
            let ahead = task.ahead.take(inside);
            let ahead: u64 = ahead.iter().map(|extent| extent.blocks.get()).sum();
            let which = BlockSelection::In(&[inside]);
            let wanted = self.planner.abort(now, planner_task, which).unwrap_or(0);
            refresh.blocks.superseded(ahead + wanted * size);
        }
    }

    /// True if a command was sent before a client's write to these blocks ended.
    pub(super) fn is_old(&self, extent: Extent, command: u64) -> bool {
        self.recent_writes.iter().any(|write| write.is_behind(extent, command))
    }

    /// Data that a gap may write now to these blocks of 512 B: those of a refresh that has read them.
    pub(crate) fn to_write(&self, start: Lbn, blocks: u32) -> Option<Vec<u8>> {
        let (from, to) = (start.get(), start.get() + u64::from(blocks));
        let refreshes = self.tasks.values().filter_map(|task| task.refresh.as_ref());
        refreshes.into_iter().find_map(|refresh| refresh.blocks.to_write(from, to))
    }

    /// A gap's write of these blocks has failed at the device. They are to be written anew as a whole.
    pub(crate) fn not_written(&mut self, start: Lbn, blocks: u32, now: SimTime) {
        let (from, to) = (start.get(), start.get() + u64::from(blocks));
        for id in self.refreshes() {
            self.retry_writes(id, from, to, now);
        }
    }

    fn retry_writes(&mut self, id: u64, from: u64, to: u64, now: SimTime) {
        let Some(refresh) = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut()) else {
            return;
        };
        for (block, step) in refresh.blocks.not_written(from, to) {
            self.leave_to_own(id, block, now);
            if step == Step::Again {
                let is_whole = block.blocks.get() == u64::from(self.tasks[&id].order.size());
                self.want(id, Pass::Write, block, is_whole, now);
            }
        }
    }

    /// The planner has delivered blocks of a refresh.
    pub(super) fn passed(
        &mut self,
        (id, pass): (u64, Pass),
        extent: Extent,
        source: &CommandData<'_>,
        now: SimTime,
    ) {
        match pass {
            // What becomes of a failed write, `not_written` has seen to.
            Pass::Write if source.has_failed => {}
            Pass::Write => self.wrote(id, extent, now),
            Pass::ReadBack => {
                for (block, _) in self.tasks[&id].blocks_of(extent) {
                    self.came_back(id, block, source);
                }
            }
        }
    }

    /// A refresh has written these blocks.
    fn wrote(&mut self, id: u64, extent: Extent, now: SimTime) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Some(refresh) = &mut task.refresh else { return };
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        self.pieces.forget(id, task.order.size(), from, to);
        for block in refresh.blocks.wrote(extent, self.last_command, self.by_flush) {
            self.want(id, Pass::ReadBack, block, true, now);
        }
    }

    /// A block has been read back in a gap, in passing, or not.
    fn came_back(&mut self, id: u64, block: Extent, source: &CommandData<'_>) {
        let data = self.pieces.gather(id, block, source).filter(|_| !source.has_failed);
        let is_old = self.is_old(block, source.command);
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Some(refresh) = &mut task.refresh else { return };
        let start = block.start.get();
        let data = data.filter(|_| refresh.blocks.is_behind(start, source.command) && !is_old);
        match data {
            Some(data) => self.judge(id, block, &data),
            None => refresh.blocks.not_read_back(start, false),
        }
    }

    fn judge(&mut self, id: u64, block: Extent, data: &[u8]) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Some(refresh) = &mut task.refresh else { return };
        if refresh.blocks.read_back(block, data) == Some(true) {
            self.count(id, block, None);
        }
    }

    /// A client's write of these blocks has begun, which the planner has not had before.
    pub(super) fn superseded(&mut self, extent: Extent, now: SimTime) {
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        self.forget_read(from, to, now);
    }

    /// Next request of a refresh: in idle time or when it is promoted all, otherwise for blocks that gaps
    /// cannot do.
    pub(super) fn own_step(&self, id: u64, planner_task: TaskId, all: bool) -> Option<OwnStep> {
        let task = self.tasks.get(&id)?;
        let refresh = task.refresh.as_ref().filter(|refresh| refresh.own == 0)?;
        let blocks = &refresh.blocks;
        let most = task.most_at_once(self.promoted_max());
        let progress = self.planner.progress(planner_task, SimTime::ZERO).ok()?;
        let has_more = progress.wanted > progress.promoted + progress.deferred;
        let reads = has_more && blocks.has_room(2 * most) && !blocks.drains;
        if all && reads && task.promoted_reads == 0 {
            return Some(OwnStep::Read);
        }
        // What is kept is written and read back together: the drive's buffer may then have lost it.
        let all = all && !reads;
        let write = blocks.next_write(all, most).map(OwnStep::Write);
        write.or_else(|| blocks.next_read_back(all, most).map(OwnStep::ReadBack))
    }

    /// The next write of a refresh's own at `now`, when no client has been there since `idle_since`. Only
    /// what no request that has not been answered touches may be written: `is_free`.
    pub(crate) fn next_write(
        &mut self,
        now: SimTime,
        idle_since: Option<SimTime>,
        is_free: impl Fn(u64, u64) -> bool,
    ) -> Option<OwnWrite> {
        let running: Vec<(TaskId, u64)> =
            self.by_planner_task.iter().map(|(&t, &id)| (t, id)).collect();
        for (planner_task, id) in running {
            let all = self.tasks[&id].may_promote(now, idle_since);
            let Some(OwnStep::Write(block)) = self.own_step(id, planner_task, all) else {
                continue;
            };
            let (from, to) = (block.start.get(), block.start.get() + block.blocks.get());
            if !is_free(from, to) {
                continue;
            }
            let refresh = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut())?;
            let data = refresh.blocks.to_write(from, to)?;
            refresh.own += 1;
            self.leave_to_own(id, block, now);
            let number = self.reads_begun;
            self.reads_begun += 1;
            self.own_writes.insert(number, (id, block));
            return Some(OwnWrite { number, start: block.start, data });
        }
        None
    }

    /// A write of a refresh's own has come back, or has failed.
    pub(crate) fn own_write_done(&mut self, number: u64, is_done: bool, now: SimTime) {
        let Some((id, block)) = self.own_writes.remove(&number) else { return };
        let Some(refresh) = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut()) else {
            return;
        };
        refresh.own -= 1;
        match is_done {
            true => self.wrote(id, block, now),
            false => {
                let (from, to) = (block.start.get(), block.start.get() + block.blocks.get());
                self.retry_writes(id, from, to, now);
            }
        }
        self.settle(now);
    }

    /// A read-back of a refresh's own has come back with its data, or has failed.
    pub(super) fn own_read_back(&mut self, id: u64, extent: Extent, data: Option<&[u8]>) {
        let Some(refresh) = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut()) else {
            return;
        };
        refresh.own -= 1;
        let blocks = refresh.blocks.to_read_back(extent);
        for block in &blocks {
            match data {
                Some(data) => self.judge(id, *block, &data[place_in(extent, *block)]),
                None => self.tasks.get_mut(&id).into_iter().for_each(|task| {
                    let refresh = task.refresh.as_mut().expect("it has read back");
                    let is_alone = block.blocks == extent.blocks;
                    refresh.blocks.not_read_back(block.start.get(), is_alone);
                }),
            }
        }
    }

    /// Takes a block out of the gaps that a separate request reads back.
    pub(super) fn begin_read_back(&mut self, id: u64, block: Extent, now: SimTime) {
        self.leave_to_own(id, block, now);
        let refresh = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut());
        refresh.into_iter().for_each(|refresh| refresh.own += 1);
    }

    /// The next read of a refresh at `now`.
    pub(super) fn next_refresh_read(
        &mut self,
        (planner_task, id): (TaskId, u64),
        idle_since: Option<SimTime>,
        now: SimTime,
    ) -> Option<OwnRead> {
        let most = self.tasks[&id].most_at_once(self.promoted_max());
        let task = self.tasks.get_mut(&id)?;
        let blocks = &mut task.refresh.as_mut()?.blocks;
        let has_room = blocks.has_room(2 * most);
        blocks.drains |= !has_room;
        if has_room
            && task.again_reads == 0
            && let Some(extent) = task.next_again(most)
        {
            return Some(self.begin_again(id, extent));
        }
        let all = task.may_promote(now, idle_since);
        match self.own_step(id, planner_task, all)? {
            OwnStep::Read => self.read_promoted(planner_task, id, most),
            OwnStep::ReadBack(block) => {
                self.begin_read_back(id, block, now);
                Some(self.begin_back(id, block))
            }
            OwnStep::Write(_) => None,
        }
    }

    /// True if refreshes need a flush now, before they read back.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.by_planner_task.iter().any(|(&planner_task, id)| {
            let task = &self.tasks[id];
            let Some(refresh) = &task.refresh else { return false };
            let wanted = self.planner.progress(planner_task, SimTime::ZERO);
            let may_read = task.may_read(wanted.map_or(0, |progress| progress.wanted));
            let has_room = refresh.blocks.has_room(2 * task.most_at_once(self.promoted_max()));
            refresh.blocks.is_flush_due(may_read && has_room)
        })
    }

    /// That flush goes to the device.
    pub(crate) fn flush_begins(&mut self) {
        let refreshes = self.tasks.values_mut().filter_map(|task| task.refresh.as_mut());
        refreshes.for_each(|refresh| refresh.blocks.flush_begins());
    }

    /// Ends a flush with success.
    pub(crate) fn flushed(&mut self, now: SimTime) {
        for id in self.refreshes() {
            let Some(refresh) = self.tasks.get_mut(&id).and_then(|task| task.refresh.as_mut())
            else {
                continue;
            };
            for block in refresh.blocks.flushed(self.last_command) {
                self.want(id, Pass::ReadBack, block, true, now);
            }
        }
    }

    /// No later write is known to last: refreshes fail, and none begins.
    pub(crate) fn refuse_writes(&mut self, why: &str, now: SimTime) {
        self.no_writes.get_or_insert_with(|| why.into());
        let open = self.tasks.iter().filter(|(_, task)| !task.state.is_over());
        let open: Vec<u64> =
            open.filter(|(_, task)| task.refresh.is_some()).map(|(&id, _)| id).collect();
        open.into_iter().for_each(|id| self.end(id, TaskState::Failed, now));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use freewheel_freeblock::Options;
    use freewheel_freeblock::tasks::{CADENCE, TaskKind, Tasks};
    use freewheel_sim::library;
    use freewheel_units::Blocks;

    use super::*;
    use freewheel_freeblock::TaskOrder;

    /// The second block of the refresh that [`refreshing`] begins.
    const BLOCK: Extent = Extent { start: Lbn::new(8), blocks: Blocks::new(8) };

    fn refreshing() -> (ServedTasks, u64) {
        let drive = Arc::new(library::drive("atlas10k").unwrap().1);
        let planner = Tasks::new(&drive, Options::default(), CADENCE);
        let mut tasks = ServedTasks::new(planner, 1, 8);
        tasks.writes_by(false, 1);
        let spec = TaskOrder::served(TaskKind::Refresh, Extent::new(0, 64), 8);
        let id = tasks.create(SimTime::ZERO, spec.into()).unwrap();
        // As if the planner had delivered it.
        let planner_task = tasks.tasks[&id].planner_task.unwrap();
        let which = BlockSelection::In(&[BLOCK]);
        tasks.planner.abort(SimTime::ZERO, planner_task, which).unwrap();
        (tasks, id)
    }

    /// Gives what a command brought, `from..to`.
    fn bring<T>(
        command: u64,
        (from, to): (u64, u64),
        give: impl FnOnce(&CommandData<'_>) -> T,
    ) -> T {
        let data = vec![7; ((to - from) * BLOCK_BYTES) as usize];
        let data = [(Lbn::new(from), &data[..])];
        let spans = [(from, to)];
        give(&CommandData { data: &data, spans: &spans, command, ..CommandData::default() })
    }

    #[test]
    fn piece_before_write_proves_nothing() {
        for is_held_first in [true, false] {
            let (mut tasks, id) = refreshing();
            let early = |tasks: &mut ServedTasks| {
                bring(1, (0, 12), |source| tasks.pieces.keep(id, BLOCK, source));
            };
            let hold = |tasks: &mut ServedTasks| {
                tasks.keep_to_write(id, BLOCK, &[7; 8 * 512], SimTime::ZERO);
            };
            if is_held_first {
                hold(&mut tasks);
                early(&mut tasks);
            } else {
                early(&mut tasks);
                hold(&mut tasks);
            }
            tasks.sent(2);
            let write = CommandData::default();
            tasks.passed((id, Pass::Write), BLOCK, &write, SimTime::ZERO);
            bring(3, (12, 20), |source| tasks.came_back(id, BLOCK, source));
            let report = tasks.report(id, SimTime::ZERO).unwrap().refresh.unwrap();
            assert_eq!(report.refreshed.get(), 0, "the first half was not read back");
        }
    }

    #[test]
    fn failed_write_leaves_block_to_write() {
        let (mut tasks, id) = refreshing();
        tasks.keep_to_write(id, BLOCK, &[7; 8 * 512], SimTime::ZERO);
        for has_failed in [true, false] {
            let write = CommandData { has_failed, ..CommandData::default() };
            tasks.passed((id, Pass::Write), BLOCK, &write, SimTime::ZERO);
            assert_eq!(tasks.to_write(BLOCK.start, 8).is_some(), has_failed);
        }
    }

    #[test]
    fn read_back_keeps_later_pieces() {
        for command in [2, 3] {
            let (mut tasks, id) = refreshing();
            tasks.keep_to_write(id, BLOCK, &[7; 8 * 512], SimTime::ZERO);
            tasks.sent(2);
            tasks.wrote(id, BLOCK, SimTime::ZERO);
            bring(command, (0, 12), |source| tasks.keep_pieces(source));
            bring(4, (12, 20), |source| tasks.came_back(id, BLOCK, source));
            let report = tasks.report(id, SimTime::ZERO).unwrap().refresh.unwrap();
            assert_eq!(report.refreshed.get() > 0, command > 2, "command {command}");
        }
    }
}
