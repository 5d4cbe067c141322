//! Moves in rotational gaps: an extent is read and written for free, by freeblock requests on both disks.
//!
//! ```text
//!   source arm: gaps read wanted blocks  ->  memory  ->  target arm: gaps write them
//!   a client's write to the extent       ->  its blocks are wanted again when it is done
//!   no block is missing any more          ->  the copy becomes the valid place
//! ```
//! Until that instant clients' requests go to the same blocks as without a move, and a gap delays no
//! request. So clients see no difference to the nanosecond.
//!
//! **Outside the drive** (`[host]`) a run is at the drive from when it is sent to when it comes back, and two
//! commands may come back in another order than they were done in. So a read that a client's write overlaps in
//! time is not believed, and its blocks are read again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::placement::{ExtentId, Place, Placement};
use freewheel_freeblock::tasks::{CADENCE, Event, Extent, TaskId, TaskSpec, Tasks, Until};
use freewheel_freeblock::{
    Foreground, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, IdlePlanner, IdleTimer,
    Opportunity, Options, Planner,
};
use freewheel_model::drive::{Departure, Drive};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::clients::Clients;
use super::map::{FileMap, VolumeRequest};

/// Blocks of 512 bytes that are read and written at once: 4 KiB, as gaps near a few files are short. One
/// for extents that are no multiple of that.
const SIZES: [u64; 2] = [8, 1];

/// Work of moves in gaps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GapWork {
    /// Time at which each move ended, in order.
    pub ends: Vec<SimTime>,
    /// Blocks of these moves.
    pub blocks: Blocks,
    /// Moves to disks without room.
    pub left_out: u64,
}

/// Moves under way, all at once, and the tasks of all arms. Many wanted blocks fill more gaps than few.
pub struct GapMover {
    tasks: Vec<Tasks>,
    /// By arm, operation, and blocks at once.
    ids: BTreeMap<(usize, bool, u64), TaskId>,
    moves: Vec<GapMove>,
    /// Moves by disk and first block of their old places.
    sources: BTreeMap<(u32, u64), usize>,
    /// Moves by their new places.
    targets: BTreeMap<(u32, u64), usize>,
    /// Clients' writes that are not done, by arm and sequence.
    writes: BTreeMap<(usize, u64), Extent>,
    /// Reads at drives that report ends late, by arm.
    reads: Vec<(usize, Extent)>,
    /// Moves whose copy is complete, and when it was. The source of requests makes it the valid place.
    complete: BTreeMap<usize, SimTime>,
}

/// A move; its blocks are counted in blocks of the tasks.
struct GapMove {
    from: Place,
    to: Place,
    blocks: u64,
    size: u64,
    /// Blocks whose newest data are not in memory.
    unread: BTreeSet<u64>,
    /// Blocks whose newest data are not on the target.
    missing: BTreeSet<u64>,
    /// Blocks that a run is writing to the target, as memory had them when it was planned.
    under_way: BTreeSet<u64>,
    /// Blocks read again meanwhile: the run writes data that are no longer the newest.
    outdated: BTreeSet<u64>,
    /// Clients' writes under way: their blocks, by sequence.
    overwritten: BTreeMap<u64, Vec<u64>>,
    /// Reads at a drive that reports ends late: how many of each block.
    at_drive: BTreeMap<u64, u32>,
    /// Blocks that clients were writing at some time of such a read: it may have older data.
    stale: BTreeSet<u64>,
}

/// The mover as every arm's planner and the source of requests share it.
pub type SharedMover = Arc<Mutex<GapMover>>;

fn locked(mover: &SharedMover) -> MutexGuard<'_, GapMover> {
    mover.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GapMover {
    /// A mover between these disks, as planners see their drives.
    pub fn shared(drives: &[Arc<Drive>]) -> SharedMover {
        let tasks = |drive| Tasks::new(drive, Options::default(), CADENCE);
        Arc::new(Mutex::new(Self {
            tasks: drives.iter().map(tasks).collect(),
            ids: BTreeMap::new(),
            moves: Vec::new(),
            sources: BTreeMap::new(),
            targets: BTreeMap::new(),
            writes: BTreeMap::new(),
            reads: Vec::new(),
            complete: BTreeMap::new(),
        }))
    }

    /// Begins to copy `blocks` blocks. Moves have numbers in their order.
    fn begin(&mut self, now: SimTime, from: Place, to: Place, blocks: u64) {
        let size = SIZES.into_iter().find(|size| blocks.is_multiple_of(*size)).unwrap_or(1);
        let number = self.moves.len();
        self.sources.insert((from.disk, from.start.get()), number);
        self.targets.insert((to.disk, to.start.get()), number);
        let mut of = GapMove::new(from, to, blocks, size);
        // What is under way counts as what comes later does: it may change the blocks after they were read.
        let arm = from.disk as usize;
        for ((_, sequence), extent) in self.writes.range((arm, 0)..=(arm, u64::MAX)) {
            of.overwrites(*sequence, extent);
        }
        self.reads.iter().filter(|read| read.0 == arm).for_each(|read| of.read_begins(&read.1));
        self.moves.push(of);
        let whole = Extent { start: from.start, blocks: Blocks::new(blocks) };
        self.want(now, from.disk as usize, Op::Read, size, &[whole]);
    }

    /// Adds extents to what an arm is to read or write.
    fn want(&mut self, now: SimTime, arm: usize, op: Op, size: u64, extents: &[Extent]) {
        let tasks = &mut self.tasks[arm];
        let id = *self.ids.entry((arm, op == Op::Write, size)).or_insert_with(|| {
            // What clients read or write in passing counts for reads: it is the same data.
            let spec =
                TaskSpec { until: Until::Standing, ..TaskSpec::new(op, size as u32, Vec::new()) };
            tasks.register(now, spec).expect("four tasks an arm fit")
        });
        tasks.extend(now, id, extents).expect("blocks of the disk");
    }

    /// Moves whose old places, or new ones, have blocks of an extent of a disk.
    fn touched(places: &BTreeMap<(u32, u64), usize>, disk: u32, extent: &Extent) -> Vec<usize> {
        let (from, to) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        let before = places.range((disk, 0)..(disk, from)).next_back();
        let within = places.range((disk, from)..(disk, to));
        before.into_iter().chain(within).map(|(_, number)| *number).collect()
    }

    /// Events of an arm's tasks, and those that follow from them on other arms.
    fn take_events(&mut self, arm: usize) {
        let mut arms = VecDeque::from([arm]);
        while let Some(arm) = arms.pop_front() {
            let events: Vec<Event> = self.tasks[arm].events().collect();
            for event in events {
                let Event::Delivered { task, extent, at, .. } = event else { continue };
                let is_write =
                    self.ids.iter().any(|(key, id)| key.0 == arm && key.1 && *id == task);
                if is_write {
                    self.written(arm as u32, &extent, at);
                } else {
                    arms.extend(self.read(arm as u32, &extent, at));
                }
            }
        }
    }

    /// Blocks were read. Returns the arms that are to write them.
    fn read(&mut self, disk: u32, extent: &Extent, at: SimTime) -> Vec<usize> {
        let mut arms = Vec::new();
        for number in Self::touched(&self.sources, disk, extent) {
            let of = &mut self.moves[number];
            let wanted = of.read(extent);
            let (target, size) = (of.to.disk as usize, of.size);
            if !wanted.is_empty() {
                self.want(at, target, Op::Write, size, &wanted);
                arms.push(target);
            }
        }
        arms
    }

    fn written(&mut self, disk: u32, extent: &Extent, at: SimTime) {
        for number in Self::touched(&self.targets, disk, extent) {
            let of = &mut self.moves[number];
            let (again, size) = (of.written(extent), of.size);
            if of.missing.is_empty() {
                self.complete.entry(number).or_insert(at);
            }
            self.want(at, disk as usize, Op::Write, size, &again);
        }
    }

    /// Runs that an arm does next. Those that were planned before are done, or were given up.
    fn planned(&mut self, disk: u32, runs: &[FreeRun]) {
        let to_disk = self.targets.range((disk, 0)..=(disk, u64::MAX));
        for (_, &number) in to_disk {
            self.moves[number].nothing_under_way();
        }
        for run in runs.iter().filter(|run| run.op == Op::Write) {
            self.write_begins(disk, run);
        }
    }

    fn write_begins(&mut self, disk: u32, run: &FreeRun) {
        let extent = Extent { start: run.start, blocks: Blocks::new(u64::from(run.blocks)) };
        for number in Self::touched(&self.targets, disk, &extent) {
            self.moves[number].under_way(&extent);
        }
    }

    /// A run has been sent to a drive that reports its end later.
    fn sent(&mut self, disk: u32, run: &FreeRun) {
        match run.op {
            Op::Write => self.write_begins(disk, run),
            _ => self.read_begins(disk, run.start, run.blocks),
        }
    }

    fn read_begins(&mut self, disk: u32, start: Lbn, blocks: u32) {
        let extent = Extent { start, blocks: Blocks::new(u64::from(blocks)) };
        self.reads.push((disk as usize, extent));
        for number in Self::touched(&self.sources, disk, &extent) {
            self.moves[number].read_begins(&extent);
        }
    }

    /// The read has come back. Blocks that it may have older data of are wanted again.
    fn read_ends(&mut self, arm: usize, start: Lbn, blocks: u32, at: SimTime) {
        let extent = Extent { start, blocks: Blocks::new(u64::from(blocks)) };
        if let Some(read) = self.reads.iter().position(|read| *read == (arm, extent)) {
            self.reads.swap_remove(read);
        }
        for number in Self::touched(&self.sources, arm as u32, &extent) {
            let of = &mut self.moves[number];
            let (again, size) = (of.read_ends(&extent), of.size);
            self.want(at, arm, Op::Read, size, &again);
        }
    }

    /// A client's write has arrived at an arm, or is done there.
    fn client_writes(&mut self, arm: usize, request: &Foreground, done: Option<SimTime>) {
        if request.op != Op::Write {
            return;
        }
        let blocks = Blocks::new(u64::from(request.blocks));
        let extent = Extent { start: request.start, blocks };
        match done {
            None => self.writes.insert((arm, request.sequence), extent),
            Some(_) => self.writes.remove(&(arm, request.sequence)),
        };
        for number in Self::touched(&self.sources, arm as u32, &extent) {
            let of = &mut self.moves[number];
            match done {
                None => of.overwrites(request.sequence, &extent),
                Some(at) => {
                    let (again, size) = (of.overwritten(request.sequence), of.size);
                    self.want(at, arm, Op::Read, size, &again);
                }
            }
            // What was complete and has not been made valid yet is not complete any more.
            if !self.moves[number].missing.is_empty() {
                self.complete.remove(&number);
            }
        }
    }

    /// Takes the moves that are complete, with the blocks of each. Their old places are watched no more.
    fn take_complete(&mut self) -> Vec<(usize, SimTime, u64)> {
        let complete = std::mem::take(&mut self.complete);
        complete
            .into_iter()
            .map(|(number, at)| {
                let GapMove { from, to, blocks, .. } = self.moves[number];
                self.sources.remove(&(from.disk, from.start.get()));
                self.targets.remove(&(to.disk, to.start.get()));
                (number, at, blocks)
            })
            .collect()
    }
}

impl GapMove {
    fn new(from: Place, to: Place, blocks: u64, size: u64) -> Self {
        Self {
            from,
            to,
            blocks,
            size,
            unread: (0..blocks / size).collect(),
            missing: (0..blocks / size).collect(),
            under_way: BTreeSet::new(),
            outdated: BTreeSet::new(),
            overwritten: BTreeMap::new(),
            at_drive: BTreeMap::new(),
            stale: BTreeSet::new(),
        }
    }

    /// Blocks of the tasks that an extent of a place covers.
    fn numbers(&self, place: Place, extent: &Extent) -> impl Iterator<Item = u64> + use<> {
        let first = extent.start.get().saturating_sub(place.start.get());
        let end = (extent.start.get() + extent.blocks.get()).saturating_sub(place.start.get());
        first / self.size..end.min(self.blocks).div_ceil(self.size)
    }

    fn at(&self, place: Place, number: u64) -> Extent {
        Extent::new(place.start.get() + number * self.size, self.size)
    }

    /// Blocks were read. Returns what is to be written; what a client is about to overwrite is not.
    fn read(&mut self, extent: &Extent) -> Vec<Extent> {
        let mut wanted = Vec::new();
        for number in self.numbers(self.from, extent) {
            let is_old = self.is_changing(number) || self.stale.contains(&number);
            if !is_old && self.unread.remove(&number) {
                if self.under_way.contains(&number) {
                    self.outdated.insert(number);
                }
                wanted.push(self.at(self.to, number));
            }
        }
        wanted
    }

    /// True while a client writes the block.
    fn is_changing(&self, number: u64) -> bool {
        self.overwritten.values().flatten().any(|other| *other == number)
    }

    fn read_begins(&mut self, extent: &Extent) {
        for number in self.numbers(self.from, extent) {
            *self.at_drive.entry(number).or_default() += 1;
            // A write that is under way may be done after the read and still end before it.
            if self.is_changing(number) {
                self.stale.insert(number);
            }
        }
    }

    /// A read has come back, and its blocks have been taken. Returns what is to be read again.
    fn read_ends(&mut self, extent: &Extent) -> Vec<Extent> {
        let mut again = Vec::new();
        for number in self.numbers(self.from, extent) {
            let Some(reads) = self.at_drive.get_mut(&number) else {
                debug_assert!(false, "a read ends that began");
                continue;
            };
            *reads -= 1;
            if *reads > 0 {
                continue;
            }
            self.at_drive.remove(&number);
            // A client that still writes will have the block read again when it is done.
            if self.stale.remove(&number) && !self.is_changing(number) {
                again.push(self.at(self.from, number));
            }
        }
        again
    }

    /// A run that writes these blocks has been planned.
    fn under_way(&mut self, extent: &Extent) {
        let numbers = self.numbers(self.to, extent);
        self.under_way.extend(numbers);
    }

    fn nothing_under_way(&mut self) {
        self.under_way.clear();
        self.outdated.clear();
    }

    /// Blocks were written. What has been overwritten at the source since is missing all the same. Returns
    /// what is to be written again, as the run had older data.
    fn written(&mut self, extent: &Extent) -> Vec<Extent> {
        let mut again = Vec::new();
        for number in self.numbers(self.to, extent) {
            self.under_way.remove(&number);
            if self.outdated.remove(&number) {
                again.push(self.at(self.to, number));
            } else if !self.unread.contains(&number) {
                self.missing.remove(&number);
            }
        }
        again
    }

    /// A client's write to some blocks has arrived.
    fn overwrites(&mut self, sequence: u64, extent: &Extent) {
        let numbers: Vec<u64> = self.numbers(self.from, extent).collect();
        self.unread.extend(&numbers);
        self.missing.extend(&numbers);
        self.stale.extend(numbers.iter().filter(|number| self.at_drive.contains_key(number)));
        self.overwritten.insert(sequence, numbers);
    }

    /// A client's write is done: its blocks are wanted again.
    fn overwritten(&mut self, sequence: u64) -> Vec<Extent> {
        let numbers = self.overwritten.remove(&sequence).unwrap_or_default();
        numbers.into_iter().map(|number| self.at(self.from, number)).collect()
    }
}

/// Use of a disk's idle time.
#[derive(Debug, Clone)]
pub struct IdleGaps {
    /// Timer that starts work in idle time.
    pub timer: IdleTimer,
    /// Blocks of 512 B in a run.
    pub run_blocks: u32,
}

/// The planner of one arm.
pub struct ArmMover {
    arm: usize,
    mover: SharedMover,
    /// Use of idle time, if it is used.
    idle: Option<IdleGaps>,
    /// True if a scheduler outside the drive sends the runs.
    is_outside: bool,
}

impl ArmMover {
    /// One for each arm; they use idle time as well, if it is given.
    pub fn all(mover: &SharedMover, idle: Option<IdleGaps>) -> Vec<Self> {
        let arms = locked(mover).tasks.len();
        (0..arms)
            .map(|arm| Self {
                arm,
                mover: Arc::clone(mover),
                idle: idle.clone(),
                is_outside: false,
            })
            .collect()
    }

    /// The same for drives behind a scheduler outside them.
    pub fn all_outside(mover: &SharedMover) -> Vec<Self> {
        let arms = Self::all(mover, None);
        arms.into_iter().map(|arm| Self { is_outside: true, ..arm }).collect()
    }
}

impl IdlePlanner for ArmMover {
    fn idle_from(&mut self, now: SimTime) -> Option<SimTime> {
        self.idle.as_ref().map(|idle| idle.timer.start(now))
    }

    fn plan_idle(&mut self, head: &Departure) -> Option<FreeRun> {
        let most = self.idle.as_ref()?.run_blocks;
        let mut mover = locked(&self.mover);
        let run = mover.tasks[self.arm].plan_idle(head, most)?;
        mover.planned(self.arm as u32, &[run]);
        Some(run)
    }

    fn idle_used(&mut self, idle: SimDuration, delay: SimDuration) {
        if let Some(IdleGaps { timer, .. }) = &mut self.idle {
            timer.used(idle, delay);
        }
    }
}

impl Planner for ArmMover {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        let mut mover = locked(&self.mover);
        mover.tasks[self.arm].plan(gap, runs);
        if !self.is_outside {
            mover.planned(self.arm as u32, runs);
        }
    }

    fn predict_with(&mut self, drive: &Arc<Drive>) {
        locked(&self.mover).tasks[self.arm].predict_with(drive);
    }

    fn sent(&mut self, run: &FreeRun) {
        let mut mover = locked(&self.mover);
        mover.tasks[self.arm].sent(run);
        mover.sent(self.arm as u32, run);
    }

    fn prepare(&mut self, gap: &Opportunity) {
        locked(&self.mover).tasks[self.arm].prepare(gap);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        let mut mover = locked(&self.mover);
        mover.tasks[self.arm].done(run, at);
        mover.take_events(self.arm);
        if self.is_outside && run.op == Op::Read {
            mover.read_ends(self.arm, run.start, run.blocks, at);
            mover.take_events(self.arm);
        }
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        locked(&self.mover).tasks[self.arm].filled(gap, gap_use);
    }

    fn idle(&mut self) -> Option<&mut dyn IdlePlanner> {
        Some(self)
    }
}

impl ForegroundObserver for ArmMover {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        let mut mover = locked(&self.mover);
        if let ForegroundEvent::Arrived { request, .. } = event {
            mover.client_writes(self.arm, request, None);
            if self.is_outside && request.op == Op::Read {
                mover.read_begins(self.arm as u32, request.start, request.blocks);
            }
        }
        mover.tasks[self.arm].foreground(event);
        mover.take_events(self.arm);
        if let ForegroundEvent::Done { request, at } = event {
            mover.client_writes(self.arm, request, Some(at));
            if self.is_outside && request.op == Op::Read {
                mover.read_ends(self.arm, request.start, request.blocks, at);
            }
            mover.take_events(self.arm);
        }
    }
}

/// Extents that are copied in gaps, by the number of their move.
pub(super) struct GapCopies {
    mover: SharedMover,
    begun: Vec<(ExtentId, Place)>,
}

/// A copy that has become the valid place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    pub extent: ExtentId,
    /// The old place. It stays reserved: requests may be on their way there.
    pub from: Place,
    pub to: Place,
    pub blocks: Blocks,
    /// Time at which the last block was written.
    pub at: SimTime,
}

impl GapCopies {
    pub(super) fn new(mover: SharedMover) -> Self {
        Self { mover, begun: Vec::new() }
    }

    /// Begins to copy an extent to room that is reserved for it.
    pub(super) fn begin(
        &mut self,
        now: SimTime,
        placement: &Placement,
        extent: ExtentId,
        to: Place,
    ) {
        let known = placement.extent(extent);
        locked(&self.mover).begin(now, known.place, to, known.blocks.get());
        self.begun.push((extent, to));
    }

    /// Makes complete copies the valid places.
    pub(super) fn take_complete(&mut self, placement: &mut Placement) -> Vec<Copied> {
        let complete = locked(&self.mover).take_complete();
        complete
            .into_iter()
            .map(|(number, at, blocks)| {
                let (extent, to) = self.begun[number];
                let from = placement.relocate(extent, to);
                Copied { extent, from, to, blocks: Blocks::new(blocks), at }
            })
            .collect()
    }
}

/// Clients' requests, between which extents get their new places.
pub struct GapMovedRequests<'a> {
    clients: Clients<'a>,
    map: &'a FileMap,
    copies: GapCopies,
    /// Moves that have not begun.
    waiting: Vec<(ExtentId, u32)>,
    now: SimTime,
    work: GapWork,
}

impl<'a> GapMovedRequests<'a> {
    /// All of `moves` at once, each to a disk. One to a disk without room is left out.
    pub fn new(
        clients: Clients<'a>,
        map: &'a FileMap,
        mover: SharedMover,
        moves: &[(ExtentId, u32)],
    ) -> Self {
        let (waiting, work) = (moves.to_vec(), GapWork::default());
        let copies = GapCopies::new(mover);
        Self { clients, map, copies, waiting, now: SimTime::ZERO, work }
    }

    /// Work so far.
    pub fn work(self) -> GapWork {
        self.work
    }

    /// Time of the next arrival. Moves begin and end before it is known.
    pub fn next_arrival(&mut self) -> Option<SimTime> {
        self.go_on();
        self.clients.next_arrival()
    }

    /// Takes the request that arrives next.
    pub fn take(&mut self) -> VolumeRequest {
        self.clients.take()
    }

    /// A request is done.
    pub fn completed(&mut self, now: SimTime) {
        self.now = now;
    }

    /// Requests so far, and all.
    pub fn progress(&self) -> (u64, u64) {
        self.clients.progress()
    }

    /// Begins moves, and makes complete copies the valid places. Old places stay reserved to the end of
    /// the run, as requests may be on their way there.
    fn go_on(&mut self) {
        let mut placement = self.map.placement().borrow_mut();
        for (extent, disk) in self.waiting.drain(..) {
            let blocks = placement.extent(extent).blocks;
            let Some(to) = placement.reserve(disk, blocks) else {
                self.work.left_out += 1;
                continue;
            };
            self.copies.begin(self.now, &placement, extent, to);
        }
        for Copied { blocks, at, .. } in self.copies.take_complete(&mut placement) {
            self.work.blocks += blocks;
            self.work.ends.push(self.now.max(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    const BLOCKS: u64 = 12;

    fn gap_move() -> GapMove {
        let place = |disk, start| Place { disk, start: Lbn::new(start) };
        GapMove::new(place(0, 100), place(1, 500), BLOCKS, 1)
    }

    /// A client's write: its sequence, first block, blocks, and whether the source has its data.
    struct ClientWrite {
        sequence: u64,
        first: u64,
        blocks: u64,
        is_on_source: bool,
    }

    /// A copy, its places, and what is on the way to and from them.
    struct Trial {
        of: GapMove,
        source: [u64; BLOCKS as usize],
        memory: [u64; BLOCKS as usize],
        target: [u64; BLOCKS as usize],
        wanted: BTreeSet<u64>,
        run: Option<(u64, Vec<u64>)>,
        clients: Vec<ClientWrite>,
        /// Reads at the drive: their block, and its data once they are there.
        reads: Vec<(u64, Option<u64>)>,
        outdated: usize,
        /// Reads whose data were older than a client's write.
        stale: usize,
    }

    impl Trial {
        fn new() -> Self {
            let none = [0; BLOCKS as usize];
            Self {
                of: gap_move(),
                source: none,
                memory: none,
                target: none,
                wanted: BTreeSet::new(),
                run: None,
                clients: Vec::new(),
                reads: Vec::new(),
                outdated: 0,
                stale: 0,
            }
        }

        fn client_begins(&mut self, sequence: u64, prng: &mut Prng) {
            let first = prng.below(BLOCKS);
            let blocks = 1 + prng.below((BLOCKS - first).min(4));
            self.of.overwrites(sequence, &Extent::new(100 + first, blocks));
            self.clients.push(ClientWrite { sequence, first, blocks, is_on_source: false });
        }

        /// The data reach the source, or the write ends.
        fn client_goes_on(&mut self, prng: &mut Prng) {
            if self.clients.is_empty() {
                return;
            }
            let at = prng.below(self.clients.len() as u64) as usize;
            let ClientWrite { sequence, first, blocks, is_on_source } = self.clients[at];
            if is_on_source {
                self.of.overwritten(sequence);
                self.clients.remove(at);
            } else {
                let all = first as usize..(first + blocks) as usize;
                self.source[all].fill(sequence);
                self.clients[at].is_on_source = true;
            }
        }

        fn take(&mut self, number: u64, data: u64) {
            let read = self.of.read(&Extent::new(100 + number, 1));
            for extent in &read {
                self.memory[number as usize] = data;
                self.wanted.insert(extent.start.get() - 500);
            }
        }

        /// A read inside the drive ends as it is done.
        fn read_inside(&mut self, prng: &mut Prng) {
            let number = prng.below(BLOCKS);
            self.take(number, self.source[number as usize]);
        }

        /// A read from outside begins, gets its data, or ends.
        fn read_outside(&mut self, prng: &mut Prng) {
            if self.reads.len() < 3 && prng.below(2) == 0 {
                let number = prng.below(BLOCKS);
                self.of.read_begins(&Extent::new(100 + number, 1));
                self.reads.push((number, None));
                return;
            }
            if self.reads.is_empty() {
                return;
            }
            let at = prng.below(self.reads.len() as u64) as usize;
            let (number, data) = self.reads[at];
            let Some(data) = data else {
                self.reads[at].1 = Some(self.source[number as usize]);
                return;
            };
            self.stale += usize::from(data != self.source[number as usize]);
            self.take(number, data);
            self.of.read_ends(&Extent::new(100 + number, 1));
            self.reads.remove(at);
        }

        fn write_begins(&mut self, is_outside: bool) {
            if !is_outside {
                self.of.nothing_under_way();
            }
            let Some(&first) = self.wanted.first() else { return };
            let blocks = (first..BLOCKS).take_while(|at| self.wanted.contains(at)).count();
            self.of.under_way(&Extent::new(500 + first, blocks as u64));
            let all = first as usize..first as usize + blocks;
            self.run = Some((first, self.memory[all].to_vec()));
        }

        fn write_ends(&mut self) {
            let Some((first, data)) = self.run.take() else { return };
            let blocks = data.len() as u64;
            self.target[first as usize..][..data.len()].copy_from_slice(&data);
            self.wanted.retain(|at| !(first..first + blocks).contains(at));
            let again = self.of.written(&Extent::new(500 + first, blocks));
            self.outdated += again.len();
            self.wanted.extend(again.iter().map(|extent| extent.start.get() - 500));
        }
    }

    /// Reads, runs of writes and clients' writes in random order. A client's data are on the source at some
    /// instant before its write is done. A run takes its data from memory when it is planned.
    fn a_complete_copy_has_every_write(is_outside: bool) -> [usize; 3] {
        let [mut complete, mut outdated, mut stale] = [0; 3];
        // A read from outside takes three steps.
        let (quiet_from, steps) = if is_outside { (600, 1500) } else { (300, 400) };
        for seed in 0..400 {
            let prng = &mut Prng::new(seed, "moves in gaps");
            let mut trial = Trial::new();
            for step in 1..steps {
                match prng.below(6) {
                    0 if step < quiet_from && trial.clients.len() < 3 => {
                        trial.client_begins(step, prng)
                    }
                    1 => trial.client_goes_on(prng),
                    2 | 3 if is_outside => trial.read_outside(prng),
                    2 | 3 => trial.read_inside(prng),
                    4 if trial.run.is_none() => trial.write_begins(is_outside),
                    5 => trial.write_ends(),
                    _ => {}
                }
                if trial.of.missing.is_empty() {
                    assert_eq!(trial.target, trial.source, "seed {seed}, step {step}");
                    complete += 1;
                }
            }
            outdated += trial.outdated;
            stale += trial.stale;
        }
        [complete, outdated, stale]
    }

    #[test]
    fn inside_copy_has_all_client_writes() {
        let [complete, outdated, _] = a_complete_copy_has_every_write(false);
        assert!(complete > 100 && outdated > 20, "{complete} {outdated}");
    }

    #[test]
    fn outside_copy_has_all_client_writes() {
        let [complete, outdated, stale] = a_complete_copy_has_every_write(true);
        assert!(complete > 100 && outdated > 0 && stale > 100, "{complete} {outdated} {stale}");
    }
}
