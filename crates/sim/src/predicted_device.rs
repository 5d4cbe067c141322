//! A drive behind a scheduler outside, as an arm of the simulator.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_freeblock::{NoPlanner, Planner, PromotionId};
use freewheel_host::{Account, Command, Finished, PredictiveScheduler};
use freewheel_model::drive::{Position, Sectors};
use freewheel_model::electronics::{Done, NextEvent, Served};
use freewheel_model::sched::{CommandMark, Waiting};
use freewheel_units::{BLOCK_BYTES, Blocks, Lbn, Op, SimTime};

use crate::arm_executor::foreground;
use crate::black_box::{self, EmulatedDrive, Reply};
use crate::device::{Device, Work};
use crate::free_time::FreeTime;

/// A black box with its scheduler. Requests go to the scheduler as they arrive; it decides when the
/// drive receives them.
pub struct PredictedDevice<'p> {
    scheduler: PredictiveScheduler,
    drive: EmulatedDrive,
    planner: Option<&'p mut dyn Planner>,
    promotions: BTreeMap<u64, PromotionId>,
    /// Requests with FUA that are not done.
    forced: BTreeSet<u64>,
    /// Marks of requests that are not done.
    marks: BTreeMap<u64, CommandMark>,
    /// Flushes at the drive, by the number of their command.
    flushes: BTreeMap<u64, u64>,
    /// Set while commands have come back and none was sent since. The drive gets its next commands once
    /// everything of that instant is known.
    came_back: Option<SimTime>,
    /// Sectors of the drive.
    sectors: Sectors,
    observer: Option<CommandObserver<'p>>,
}

/// Receives every command that has come back.
pub type CommandObserver<'p> = &'p mut (dyn FnMut(&Finished) + Send);

/// Command ids of flushes: above those of the scheduler.
const FLUSHES: u64 = 1 << 63;

impl<'p> PredictedDevice<'p> {
    /// A drive with its scheduler and the planner of its free work.
    pub fn new(
        scheduler: PredictiveScheduler,
        drive: EmulatedDrive,
        planner: Option<&'p mut dyn Planner>,
    ) -> Self {
        let sectors = Sectors::of(drive.sector().logical_blocks());
        Self {
            scheduler: scheduler.with_sectors_of(sectors.blocks()),
            drive,
            planner,
            promotions: BTreeMap::new(),
            forced: BTreeSet::new(),
            marks: BTreeMap::new(),
            flushes: BTreeMap::new(),
            came_back: None,
            sectors,
            observer: None,
        }
    }

    /// Shows every command that has come back to `observer`.
    #[must_use]
    pub fn watched_by(self, observer: CommandObserver<'p>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Observations and decisions of the scheduler.
    pub fn account(&self) -> &Account {
        self.scheduler.account()
    }

    /// Calls the scheduler with the planner.
    fn with_planner<T>(
        &mut self,
        call: impl FnOnce(&mut PredictiveScheduler, &mut dyn Planner) -> T,
    ) -> T {
        match &mut self.planner {
            Some(planner) => call(&mut self.scheduler, *planner),
            None => call(&mut self.scheduler, &mut NoPlanner),
        }
    }

    /// Sends the drive its next commands.
    fn send(&mut self, now: SimTime) {
        self.came_back = None;
        while let Some(command) = self.with_planner(|scheduler, planner| {
            scheduler.decide(now, planner);
            scheduler.next_command(now, planner)
        }) {
            let (start, blocks) = self.whole_sectors(command.op, command.start, command.blocks);
            // A free write ends with the media, as it was predicted to.
            let fua = match command.foreground {
                Some(part) => self.forced.contains(&part.sequence),
                None => command.op == Op::Write,
            };
            // Free work has no mark: it goes when the scheduler says.
            let mark = command.foreground.and_then(|part| self.marks.get(&part.sequence).copied());
            let mark = mark.unwrap_or_default();
            let Command { id, op, .. } = command;
            self.drive.submit(now, black_box::Command { id, op, start, blocks, fua, mark });
        }
    }

    /// Widens a read to whole sectors, as free work may begin and end within a sector.
    fn whole_sectors(&self, op: Op, start: Lbn, blocks: u32) -> (Lbn, u32) {
        if op != Op::Read {
            return (start, blocks);
        }
        let (from, to) = self.sectors.cover(start, start + Blocks::new(blocks.into()));
        (from, (to.get() - from.get()) as u32)
    }

    /// True if the scheduler has a command to send by `now`.
    fn decides_by(&self, now: SimTime) -> bool {
        self.came_back.or(self.scheduler.decides_at()).is_some_and(|time| time <= now)
    }

    /// Ends a command. Returns the foreground request in it, if there is one.
    fn finish(&mut self, reply: &Reply, now: SimTime) -> Option<Done> {
        let inside = reply.served;
        let way = reply.at - inside.end;
        let served = Served { bus: inside.bus + way, end: reply.at, ..inside };
        if let Some(sequence) = self.flushes.remove(&reply.id) {
            return Some(Done { sequence, served, flush: true });
        }
        let finished =
            self.with_planner(|scheduler, planner| scheduler.finished(reply.id, now, now, planner));
        if let Some(observer) = &mut self.observer {
            observer(&finished);
        }
        self.came_back = Some(now);
        let sequence = finished.done?.sequence;
        self.promotions.remove(&sequence);
        self.forced.remove(&sequence);
        self.marks.remove(&sequence);
        Some(Done { sequence, served, flush: false })
    }
}

impl Device for PredictedDevice<'_> {
    fn has_room(&self) -> bool {
        true
    }

    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        (now, Position::default())
    }

    fn arrived(&mut self, _: SimTime, waiting: &Waiting, promotion: Option<PromotionId>) {
        if let Some(promotion) = promotion {
            self.promotions.insert(waiting.sequence, promotion);
        }
    }

    fn planner(&mut self) -> Option<&mut dyn Planner> {
        match &mut self.planner {
            Some(planner) => Some(&mut **planner),
            None => None,
        }
    }

    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        let promotion = self.promotions.get(&waiting.sequence).copied();
        let request = foreground(waiting, promotion);
        if waiting.fua {
            self.forced.insert(waiting.sequence);
        }
        if waiting.mark != CommandMark::None {
            self.marks.insert(waiting.sequence, waiting.mark);
        }
        self.with_planner(|scheduler, planner| scheduler.arrived(request, None, now, planner));
        self.send(now);
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        let id = FLUSHES + sequence;
        self.flushes.insert(id, sequence);
        let mark = CommandMark::None;
        let (op, start) = (Op::Flush, Lbn::ZERO);
        let flush = black_box::Command { id, op, start, blocks: 0, fua: false, mark };
        self.drive.submit(now, flush);
        true
    }

    fn next_event(&self) -> Option<NextEvent> {
        let decision = self.came_back.or(self.scheduler.decides_at()).map(NextEvent::Decision);
        let events = self.drive.next_event().into_iter().chain(decision);
        events.min_by_key(|event| (event.time(), matches!(event, NextEvent::Decision(_))))
    }

    fn advance(&mut self, now: SimTime) -> Option<Done> {
        let inside = self.drive.next_event().filter(|event| event.time() <= now);
        if inside.is_none_or(|event| matches!(event, NextEvent::Decision(_)))
            && self.decides_by(now)
        {
            self.send(now);
            return None;
        }
        let reply = self.drive.advance(now)?;
        self.finish(&reply, now)
    }

    fn work(&self, _: SimTime) -> Work {
        let has_planner = self.planner.is_some();
        Work {
            margins: self.scheduler.margins(),
            cost: self.scheduler.cost_sums().filter(|_| has_planner),
            ..work_outside(&self.drive, self.scheduler.account(), has_planner)
        }
    }
}

/// Sums of a drive and of the scheduler outside it.
pub(crate) fn work_outside(drive: &EmulatedDrive, account: &Account, has_free_work: bool) -> Work {
    let unit = drive.unit();
    let used = account.transfer_ns as i128 + account.extra_seek_ns;
    let free = FreeTime {
        potential_ns: account.potential_ns,
        transfer_ns: account.transfer_ns,
        extra_seek_ns: account.extra_seek_ns,
        unused_ns: (account.potential_ns as i128 - used).max(0) as u128,
        foreground_delay_ns: account.delay_ns,
        gaps: account.gaps,
        gaps_used: account.gaps_used,
        gaps_late: account.delayed,
        runs: account.commands + account.merged,
        read_bytes: (account.free_blocks - account.free_written_blocks) * BLOCK_BYTES,
        write_bytes: account.free_written_blocks * BLOCK_BYTES,
    };
    Work {
        busy: unit.busy(),
        head_time: unit.head_time(),
        processing: unit.processing_time(),
        bus: unit.bus_used(),
        until: unit.media_free(),
        dirty_blocks: unit.dirty_blocks(),
        media_cache: unit.media_cache_work(),
        destaging: unit.destaging(),
        free: has_free_work.then_some(free),
        host: Some(*account),
        ..Work::default()
    }
}
