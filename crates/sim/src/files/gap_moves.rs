//! Moves in rotational gaps: an extent is read and written for free, by freeblock requests on both disks.
//!
//! ```text
//!   source arm: gaps read wanted blocks  ->  memory  ->  target arm: gaps write them
//!   a client's write to the extent       ->  its blocks are wanted again when it is done
//!   nothing is missing any more          ->  the copy becomes the valid place
//! ```
//! Until that instant clients' requests go to the same blocks as without a move, and a gap delays no
//! request. So clients see no difference to the nanosecond.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freewheel_freeblock::tasks::Until;
use freewheel_freeblock::tasks::{BlockSelection, CADENCE, Event, Extent, TaskId, TaskSpec, Tasks};
use freewheel_freeblock::{
    Foreground, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options, Planner,
};
use freewheel_model::array::placement::{ExtentId, Place};
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Op, SimTime};

use crate::file_map::FileMap;
use crate::source::{Request, Source, SourceError};

/// Largest block that is read and written at once: 64 KiB.
const BLOCK_SIZE_MAX: u64 = 128;

/// What moves in gaps did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GapWork {
    /// When each move came to its end, in order.
    pub ends: Vec<SimTime>,
    /// Blocks of these moves.
    pub blocks: Blocks,
}

/// The move under way and the tasks of all arms.
pub(super) struct GapMover {
    tasks: Vec<Tasks>,
    current: Option<Current>,
    /// Set when the copy is complete; the source of requests makes it the valid place.
    complete_at: Option<SimTime>,
}

/// A move under way; its blocks are counted in blocks of the tasks.
struct Current {
    from: Place,
    to: Place,
    blocks: u64,
    size: u64,
    reads: TaskId,
    writes: TaskId,
    /// Blocks whose newest data are not in memory.
    unread: BTreeSet<u64>,
    /// Blocks whose newest data are not on the target.
    missing: BTreeSet<u64>,
    /// Clients' writes under way: their blocks, by sequence.
    overwritten: BTreeMap<u64, Vec<u64>>,
}

/// The mover as every arm's planner and the source of requests share it.
pub(super) type SharedMover = Arc<Mutex<GapMover>>;

fn locked(mover: &SharedMover) -> MutexGuard<'_, GapMover> {
    mover.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GapMover {
    pub(super) fn shared(drives: &[Arc<Drive>]) -> SharedMover {
        let tasks = |drive| Tasks::new(drive, Options::default(), CADENCE);
        let tasks = drives.iter().map(tasks).collect();
        Arc::new(Mutex::new(Self { tasks, current: None, complete_at: None }))
    }

    /// Begins to copy `blocks` blocks.
    fn begin(&mut self, now: SimTime, from: Place, to: Place, blocks: u64) {
        // The largest power of two that leaves no rest.
        let size = BLOCK_SIZE_MAX.min(1 << blocks.trailing_zeros());
        let whole = Extent { start: from.start, blocks: Blocks::new(blocks) };
        let spec = |op, extents| TaskSpec {
            until: Until::Standing,
            ..TaskSpec::new(op, size as u32, extents)
        };
        let reads = self.tasks[from.disk as usize].register(now, spec(Op::Read, vec![whole]));
        let writes = self.tasks[to.disk as usize].register(now, spec(Op::Write, Vec::new()));
        self.current = Some(Current {
            from,
            to,
            blocks,
            size,
            reads: reads.expect("blocks of the disk"),
            writes: writes.expect("a task without blocks yet"),
            unread: (0..blocks / size).collect(),
            missing: (0..blocks / size).collect(),
            overwritten: BTreeMap::new(),
        });
    }

    /// Events of an arm's tasks, and those that follow from them on the other arm.
    fn take_events(&mut self, arm: usize) {
        let mut arms = VecDeque::from([arm]);
        while let Some(arm) = arms.pop_front() {
            let events: Vec<Event> = self.tasks[arm].events().collect();
            for event in events {
                let Event::Delivered { task, extent, at, .. } = event else { continue };
                let Some(current) = &mut self.current else { continue };
                let is_source = arm == current.from.disk as usize && task == current.reads;
                if is_source {
                    let target = current.to.disk as usize;
                    let wanted = current.read(&extent);
                    let writes = current.writes;
                    let extended = self.tasks[target].extend(at, writes, &wanted);
                    extended.expect("blocks of the disk");
                    arms.push_back(target);
                } else if arm == current.to.disk as usize && task == current.writes {
                    current.written(&extent);
                    if current.missing.is_empty() {
                        self.complete_at = Some(at);
                    }
                }
            }
        }
    }

    /// A client's write has arrived at an arm, or is done there.
    fn client_writes(&mut self, arm: usize, request: &Foreground, done: Option<SimTime>) {
        let Some(current) = &mut self.current else { return };
        if request.op != Op::Write || arm != current.from.disk as usize {
            return;
        }
        match done {
            None => current.overwrites(request),
            Some(at) => {
                let again = current.overwritten(request.sequence);
                let reads = current.reads;
                let extended = self.tasks[arm].extend(at, reads, &again);
                extended.expect("blocks of the disk");
            }
        }
        // What was complete and has not been made valid yet is not complete any more.
        if self.current.as_ref().is_some_and(|current| !current.missing.is_empty()) {
            self.complete_at = None;
        }
    }

    /// The copy is the valid place: its tasks end.
    fn end(&mut self, now: SimTime) -> u64 {
        let current = self.current.take().expect("a copy that is complete");
        for (disk, task) in [(current.from.disk, current.reads), (current.to.disk, current.writes)]
        {
            let aborted = self.tasks[disk as usize].abort(now, task, BlockSelection::All);
            aborted.expect("a task that has not ended");
        }
        self.complete_at = None;
        current.blocks
    }
}

impl Current {
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
            let is_changing = self.overwritten.values().flatten().any(|other| *other == number);
            if !is_changing && self.unread.remove(&number) {
                wanted.push(self.at(self.to, number));
            }
        }
        wanted
    }

    /// Blocks were written. What has been overwritten at the source since is missing all the same.
    fn written(&mut self, extent: &Extent) {
        for number in self.numbers(self.to, extent) {
            if !self.unread.contains(&number) {
                self.missing.remove(&number);
            }
        }
    }

    fn overwrites(&mut self, request: &Foreground) {
        let extent =
            Extent { start: request.start, blocks: Blocks::new(u64::from(request.blocks)) };
        let begin = self.from.start.get();
        let is_here = extent.start.get() < begin + self.blocks
            && extent.start.get() + extent.blocks.get() > begin;
        if is_here {
            let numbers: Vec<u64> = self.numbers(self.from, &extent).collect();
            self.unread.extend(&numbers);
            self.missing.extend(&numbers);
            self.overwritten.insert(request.sequence, numbers);
        }
    }

    /// A client's write is done: its blocks are wanted again.
    fn overwritten(&mut self, sequence: u64) -> Vec<Extent> {
        let numbers = self.overwritten.remove(&sequence).unwrap_or_default();
        numbers.into_iter().map(|number| self.at(self.from, number)).collect()
    }
}

/// The planner of one arm.
pub(super) struct ArmMover {
    arm: usize,
    mover: SharedMover,
}

impl ArmMover {
    pub(super) fn all(mover: &SharedMover) -> Vec<Self> {
        let arms = locked(mover).tasks.len();
        (0..arms).map(|arm| Self { arm, mover: Arc::clone(mover) }).collect()
    }
}

impl Planner for ArmMover {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        locked(&self.mover).tasks[self.arm].plan(gap, runs);
    }

    fn prepare(&mut self, gap: &Opportunity) {
        locked(&self.mover).tasks[self.arm].prepare(gap);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        let mut mover = locked(&self.mover);
        mover.tasks[self.arm].done(run, at);
        mover.take_events(self.arm);
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        locked(&self.mover).tasks[self.arm].filled(gap, gap_use);
    }
}

impl ForegroundObserver for ArmMover {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        let mut mover = locked(&self.mover);
        if let ForegroundEvent::Arrived { request, .. } = event {
            mover.client_writes(self.arm, request, None);
        }
        mover.tasks[self.arm].foreground(event);
        mover.take_events(self.arm);
        if let ForegroundEvent::Done { request, at } = event {
            mover.client_writes(self.arm, request, Some(at));
            mover.take_events(self.arm);
        }
    }
}

/// Clients' requests, between which extents get their new places.
pub(super) struct GapMovedRequests<'a, S> {
    clients: S,
    map: &'a FileMap,
    mover: SharedMover,
    moves: VecDeque<(ExtentId, u32)>,
    current: Option<(ExtentId, Place)>,
    now: SimTime,
    work: GapWork,
}

impl<'a, S: Source> GapMovedRequests<'a, S> {
    /// `moves` in their order, each to a disk. One to a disk without room is left out.
    pub(super) fn new(
        clients: S,
        map: &'a FileMap,
        mover: SharedMover,
        moves: &[(ExtentId, u32)],
    ) -> Self {
        let moves = moves.iter().copied().collect();
        let work = GapWork::default();
        Self { clients, map, mover, moves, current: None, now: SimTime::ZERO, work }
    }

    pub(super) fn work(self) -> GapWork {
        self.work
    }

    /// Makes a complete copy the valid place, and begins the next move. The old place stays reserved to
    /// the end of the run, as requests may be on their way there.
    fn go_on(&mut self) {
        let mut mover = locked(&self.mover);
        let mut placement = self.map.placement().borrow_mut();
        if let Some(at) = mover.complete_at {
            let (extent, to) = self.current.take().expect("a move is complete");
            self.now = self.now.max(at);
            self.work.blocks += Blocks::new(mover.end(self.now));
            self.work.ends.push(self.now);
            placement.relocate(extent, to);
        }
        while self.current.is_none() {
            let Some((extent, disk)) = self.moves.pop_front() else { return };
            let known = *placement.extent(extent);
            if let Some(to) = placement.reserve(disk, known.blocks) {
                mover.begin(self.now, known.place, to, known.blocks.get());
                self.current = Some((extent, to));
            }
        }
    }
}

impl<S: Source> Source for GapMovedRequests<'_, S> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        self.go_on();
        self.clients.next_arrival()
    }

    fn take(&mut self) -> Request {
        self.clients.take()
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        self.now = now;
        self.clients.completed(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        self.clients.progress()
    }
}
