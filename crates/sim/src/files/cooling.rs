//! Cooling while clients read: the daemon looks every so many requests, and its moves are real reads and
//! writes in the disks' queues.
//!
//! ```text
//!   clients' reads -> heat -> daemon, every n requests -> mover -> reads and writes of the copy
//! ```
//! Clients only read, so every read goes to the valid place, and no write has to reach two. The old place
//! stays reserved until the last read that was sent there is done.

use std::collections::{BTreeSet, VecDeque};

use freewheel_model::array::cooling::{
    CoolingCounts, CoolingDaemon, CoolingSpec, CoolingView, MoveAction, Mover, MoverSpec,
    MoverState, Part, Progress, Worth,
};
use freewheel_model::array::heat::{DiskHeats, HeatAmount, HeatSpec, HeatTable};
use freewheel_units::{Blocks, Op, SimTime};

use super::requests::FileRequests;
use crate::file_map::FileMap;
use crate::source::{Request, Source, SourceError};

/// Tags of the copies' reads and writes; clients' tags are below.
pub(super) const COPY: u64 = u64::MAX;

/// How an array is cooled.
#[derive(Debug, Clone, Copy)]
pub struct Cooling {
    /// When an extent moves.
    pub daemon: CoolingSpec,
    /// How heat is tracked.
    pub heat: HeatSpec,
    /// What heat counts.
    pub amount: HeatAmount,
    /// Requests from one step of the daemon to the next.
    pub step_requests: u64,
    /// How moves are done.
    pub mover: MoverSpec,
}

/// What cooling did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoolingWork {
    /// Steps, moves that the daemon wanted, and refusals.
    pub counts: CoolingCounts,
    /// Moves that came to their end.
    pub moves: u64,
    /// Blocks that they moved.
    pub blocks: Blocks,
}

/// Clients' requests, with the moves among them.
pub(super) struct CooledRequests<'a> {
    clients: FileRequests<'a>,
    map: &'a FileMap,
    cooling: Cooling,
    heats: DiskHeats,
    daemon: CoolingDaemon,
    mover: Mover,
    /// What the mover wants to read or write now.
    copies: VecDeque<Request>,
    now: SimTime,
    arrived: u64,
    /// Clients' requests that are not done, by tag.
    outstanding: BTreeSet<u64>,
    /// Those of them that may read the old place of the extent that has moved.
    at_old_place: BTreeSet<u64>,
    /// Whether the mover waits for these.
    is_draining: bool,
    work: CoolingWork,
}

impl<'a> CooledRequests<'a> {
    pub(super) fn new(clients: FileRequests<'a>, map: &'a FileMap, cooling: Cooling) -> Self {
        Self {
            clients,
            map,
            cooling,
            heats: DiskHeats::new(HeatTable::new(cooling.heat), map.disks()),
            daemon: CoolingDaemon::new(cooling.daemon),
            mover: Mover::new(cooling.mover),
            copies: VecDeque::new(),
            now: SimTime::ZERO,
            arrived: 0,
            outstanding: BTreeSet::new(),
            at_old_place: BTreeSet::new(),
            is_draining: false,
            work: CoolingWork::default(),
        }
    }

    pub(super) fn work(self) -> CoolingWork {
        CoolingWork { counts: self.daemon.counts().clone(), ..self.work }
    }

    fn heat_up(&mut self, request: &Request) {
        let Self { map, heats, cooling, now, .. } = self;
        let placement = map.placement().borrow();
        map.for_each_extent(request.start, request.blocks, |extent, _, blocks| {
            let amount = cooling.amount.of_access(Blocks::new(blocks));
            heats.record(&placement, extent, *now, amount);
        });
    }

    /// Lets the daemon look, if it is time and no move is under way.
    fn step(&mut self) {
        if !self.arrived.is_multiple_of(self.cooling.step_requests) {
            return;
        }
        let mut placement = self.map.placement().borrow_mut();
        self.heats.age(&placement, self.now);
        if self.mover.current().is_some() {
            return;
        }
        // Queues matter to the veto alone, which is refused.
        let queues = vec![0; self.heats.of_disks().len()];
        let view = CoolingView { placement: &placement, heats: &self.heats, queues: &queues };
        let Ok(wanted) = self.daemon.step(&view, &Worth::TargetStaysCooler) else { return };
        let started = self.mover.start(&mut placement, wanted.extent, wanted.to);
        started.expect("the daemon chooses a disk with room");
    }

    /// Does what the mover wants, up to the next action that takes time.
    fn go_on(&mut self) {
        while let MoverState::Do(action) = self.mover.poll(self.now) {
            match action {
                MoveAction::Read(part) => return self.copy(Op::Read, part),
                MoveAction::Write(part) => return self.copy(Op::Write, part),
                MoveAction::Drain(_) if !self.at_old_place.is_empty() => {
                    self.is_draining = true;
                    return;
                }
                // Clients do not write, a copy's write is on the media when it is done, and the record
                // takes no time here.
                MoveAction::Quiesce(_)
                | MoveAction::Flush(_)
                | MoveAction::Record(_)
                | MoveAction::Drain(_) => self.done(),
            }
        }
    }

    fn copy(&mut self, op: Op, part: Part) {
        let start = self.map.raw_address(part.place.disk, part.place.start);
        self.copies.push_back(Request { op, start, blocks: part.blocks, fua: false, tag: COPY });
    }

    /// The action under way is complete.
    fn done(&mut self) {
        let mut placement = self.map.placement().borrow_mut();
        match self.mover.done(&mut placement) {
            Progress::Relocated(moved) => {
                self.heats.moved(moved.extent, moved.from.disk, moved.to.disk);
                self.at_old_place = self.outstanding.clone();
            }
            Progress::Finished(moved) => {
                self.work.moves += 1;
                self.work.blocks += placement.extent(moved.extent).blocks;
            }
            Progress::Continues | Progress::Cancelled(_) => {}
        }
    }
}

impl Source for CooledRequests<'_> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        match self.copies.is_empty() {
            true => self.clients.next_arrival(),
            false => Ok(Some(self.now)),
        }
    }

    fn take(&mut self) -> Request {
        if let Some(copy) = self.copies.pop_front() {
            return copy;
        }
        self.now = self.clients.arrival();
        let request = self.clients.take();
        self.arrived += 1;
        self.outstanding.insert(request.tag);
        self.heat_up(&request);
        self.step();
        // A move that waits for its rate goes on with the first event after that.
        self.go_on();
        request
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        self.now = now;
        if tag == COPY {
            self.done();
        } else {
            self.outstanding.remove(&tag);
            self.at_old_place.remove(&tag);
        }
        if self.is_draining && self.at_old_place.is_empty() {
            self.is_draining = false;
            self.done();
        }
        self.go_on();
    }

    fn progress(&self) -> (u64, u64) {
        self.clients.progress()
    }
}
