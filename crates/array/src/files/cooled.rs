//! Cooling while clients read and write: the daemon looks every so often, and its moves are real reads and
//! writes in the disks' queues.
//!
//! ```text
//!   clients' requests -> heat -> daemon, step by step -> mover -> reads and writes of the copy
//! ```
//! A read goes to the valid place. A write goes where the mover routes it: to the valid place, to both
//! places, or nowhere yet while its blocks are copied. Then it is held, and its response counts that. The
//! old place stays reserved until the last request that was sent there is done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::config::{CoolingRule, CoolingStep};
use crate::cooling::{
    CoolingCounts, CoolingDaemon, CoolingSpec, CoolingView, MoveAction, Mover, MoverSpec,
    MoverState, Part, Progress, Route, Span, Worth,
};
use crate::heat::{DiskHeats, HeatAmount, HeatSpec, HeatTable};
use crate::placement::{ExtentId, Place, Placement};
use freewheel_model::drive::Drive;
use freewheel_model::sched::CommandMark;
use freewheel_model::striping::Piece;
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::clients::Clients;
use super::disk_loads::DiskLoads;
use super::gap_moves::{Copied, GapCopies, SharedMover};
use super::map::{FileMap, VolumeRequest};
use super::moved_map::MovedMap;
use super::restriping::{RestripeWork, Restriper};

/// Tag of the first copy's reads and writes; further copies have those before, and clients' tags are below.
const COPY: u64 = u64::MAX;

/// Settings of the cooling of an array.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Cooling {
    /// Settings of the daemon that chooses moves.
    pub daemon: CoolingSpec,
    /// Condition under which a move is worth it.
    pub rule: CoolingRule,
    pub heat: HeatSpec,
    /// Unit in which heat is counted.
    pub amount: HeatAmount,
    /// From one step of the daemon to the next.
    pub step: CoolingStep,
    /// True if a moved extent goes near the middle of its target's heat, and not into the shortest free
    /// range.
    pub near_hot: bool,
    /// True if only disks at which clients wait longer than at the mean disk are cooled.
    pub waits: bool,
    /// Arrivals at a mean disk over which the requests present are averaged; 256 are a few seconds of a busy
    /// disk.
    pub waits_arrivals: u32,
    /// True if copies go before all requests that wait for a disk.
    pub copies_first: bool,
    /// Moves at once, 1 to 64. Each has two disks for itself.
    pub moves: u32,
    pub mover: MoverSpec,
}

/// Work of cooling.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CoolingWork {
    /// Steps, moves that the daemon wanted, and refusals.
    pub counts: CoolingCounts,
    /// Moves that came to their end.
    pub moves: u64,
    /// Blocks that they moved.
    pub blocks: Blocks,
    /// Time at which each move ended.
    pub ends: Vec<SimTime>,
    /// Moves of a list to disks without room.
    pub left_out: u64,
    /// Clients' writes that were held for a copy.
    pub held: u64,
    /// Most moves at once.
    pub at_once: u64,
    /// Moves that had begun and were not complete at the end.
    pub unfinished: u64,
    /// Checks of the load, where stripes change.
    pub restriping: RestripeWork,
    /// Time during which a read or a write of a copy was under way; in gaps, a whole copy.
    pub copying: SimDuration,
}

/// Who says what moves next.
pub enum Choice {
    /// The daemon, by heat; with the disks' loads where its rule needs them.
    Daemon(Box<Cooling>, Option<DiskLoads>),
    /// A list, each extent to a disk. One to a disk without room is left out.
    List(VecDeque<(ExtentId, u32)>),
    /// Files to new stripes, when the load has changed.
    Stripes(Box<Restriper>),
}

impl Choice {
    /// The daemon on these disks, of whose requests `read_share` read.
    pub fn daemon(cooling: Cooling, drives: &[Arc<Drive>], map: &FileMap, read_share: f64) -> Self {
        let loads = match cooling.rule {
            CoolingRule::TargetStaysCooler => None,
            CoolingRule::Variance(_) => {
                Some(DiskLoads::new(drives, &map.placement().borrow(), read_share))
            }
        };
        Self::Daemon(Box::new(cooling), loads)
    }
}

/// State of a client's request under way.
#[derive(Debug, Default)]
struct Outstanding {
    /// A bit for each copy whose extent has moved: the request may use its old place.
    at_old_places: u64,
    /// Extents and spans that the request writes.
    writes: Vec<(ExtentId, Span)>,
    /// Disks that it uses, for the view of queues.
    disks: Vec<u32>,
}

/// Clients' requests, with the moves among them.
pub struct CooledRequests<'a, M = FileMap> {
    clients: Clients<'a>,
    map: &'a M,
    chooser: Chooser,
    /// Copies by requests; none in gaps.
    copies: Vec<Copy>,
    /// Copies in gaps.
    gaps: Option<InGaps>,
    /// The client's request that arrives next.
    upcoming: Option<(SimTime, VolumeRequest)>,
    /// Writes that wait for a copy, with their arrivals.
    held: Vec<(SimTime, VolumeRequest)>,
    /// Time at which the request that was taken last arrived: earlier if it was held.
    arrival: SimTime,
    /// Requests for the disks now: copies, and writes that were held, with their arrivals.
    ready: VecDeque<(VolumeRequest, SimTime)>,
    now: SimTime,
    arrived: u64,
    /// Next look of the daemon.
    next_step: NextStep,
    outstanding: BTreeMap<u64, Outstanding>,
    /// Requests under way at each disk.
    at_disks: Vec<u32>,
    /// Present loads, averaged over the last arrivals.
    present: Vec<f64>,
    /// Reads and writes of copies under way; in gaps, copies.
    copying: u32,
    /// Time at which the first of them began.
    copying_since: SimTime,
    work: CoolingWork,
}

/// A copy by requests, one after the other.
struct Copy {
    mover: Mover,
    /// Event that the mover waits for.
    awaited: Option<Awaited>,
}

/// Copies in gaps.
struct InGaps {
    copies: GapCopies,
    /// Disks of each copy under way.
    disks: BTreeMap<ExtentId, [u32; 2]>,
    /// Old places of copies that are complete, with the requests that may still use them.
    old_places: Vec<OldPlace>,
    most: usize,
}

struct OldPlace {
    place: Place,
    blocks: Blocks,
    requests: BTreeSet<u64>,
}

/// Next look of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    At(SimTime),
    /// At this number of arrivals.
    Arrived(u64),
    /// Whenever no move is under way: moves of a list.
    Always,
}

impl NextStep {
    fn after(step: CoolingStep, now: SimTime, arrived: u64) -> Self {
        match step {
            CoolingStep::Time(every) => Self::At(now + every),
            CoolingStep::Requests(every) => Self::Arrived(arrived + every),
        }
    }

    fn is_due(self, now: SimTime, arrived: u64) -> bool {
        match self {
            Self::At(at) => at <= now,
            Self::Arrived(at) => at <= arrived,
            Self::Always => true,
        }
    }
}

/// The state of a [`Choice`].
enum Chooser {
    Daemon(Box<Daemon>),
    List(VecDeque<(ExtentId, u32)>),
    Stripes(Box<Restriper>),
}

/// The daemon with the heats that it looks at.
struct Daemon {
    cooling: Cooling,
    heats: DiskHeats,
    daemon: CoolingDaemon,
    loads: Option<DiskLoads>,
}

#[derive(Debug, Clone, Copy)]
enum Awaited {
    /// The end of clients' writes to these blocks of the extent that moves.
    Writes(ExtentId, Span),
    /// The end of requests to the old place.
    OldPlace,
}

impl<'a, M: MovedMap> CooledRequests<'a, M> {
    /// `choice` says what moves, and `mover` how.
    pub fn new(clients: Clients<'a>, map: &'a M, choice: Choice, mover: MoverSpec) -> Self {
        let (next_step, moves) = match &choice {
            Choice::Daemon(cooling, _) => {
                (NextStep::after(cooling.step, SimTime::ZERO, 0), cooling.moves)
            }
            Choice::List(_) => (NextStep::Always, 1),
            Choice::Stripes(restriper) => (NextStep::At(SimTime::ZERO + restriper.every()), 1),
        };
        let disks = map.file_map().disks();
        let chooser = match choice {
            Choice::Daemon(cooling, loads) => {
                let heats = DiskHeats::new(HeatTable::new(cooling.heat), disks);
                let daemon = CoolingDaemon::new(cooling.daemon);
                Chooser::Daemon(Box::new(Daemon { cooling: *cooling, heats, daemon, loads }))
            }
            Choice::List(moves) => Chooser::List(moves),
            Choice::Stripes(restriper) => Chooser::Stripes(restriper),
        };
        Self {
            clients,
            map,
            chooser,
            copies: (0..moves).map(|_| Copy { mover: Mover::new(mover), awaited: None }).collect(),
            gaps: None,
            upcoming: None,
            held: Vec::new(),
            arrival: SimTime::ZERO,
            ready: VecDeque::new(),
            now: SimTime::ZERO,
            arrived: 0,
            next_step,
            outstanding: BTreeMap::new(),
            at_disks: vec![0; disks as usize],
            present: vec![0.0; disks as usize],
            copying: 0,
            copying_since: SimTime::ZERO,
            work: CoolingWork::default(),
        }
    }

    /// Copies in gaps instead of by requests, as planners that share `mover` find them.
    pub fn in_gaps(self, mover: SharedMover) -> Self {
        let gaps = InGaps {
            copies: GapCopies::new(mover),
            disks: BTreeMap::new(),
            old_places: Vec::new(),
            most: self.copies.len(),
        };
        Self { copies: Vec::new(), gaps: Some(gaps), ..self }
    }

    /// Time of the next arrival, as far as known. None when no request follows, or none before a completion.
    pub fn next_arrival(&mut self) -> Option<SimTime> {
        self.end_in_gaps();
        if !self.ready.is_empty() {
            return Some(self.now);
        }
        self.fill();
        // A write to blocks that are being copied steps aside when its time has come, and others go on.
        while let Some((arrival, request)) = self.upcoming {
            if !self.is_held(&request) {
                return Some(arrival);
            }
            if arrival > self.now {
                break;
            }
            self.held.push((arrival, request));
            self.upcoming = None;
            self.fill();
        }
        None
    }

    /// Takes the request that arrives next: a client's, or a copy's.
    pub fn take(&mut self) -> VolumeRequest {
        if let Some((request, arrival)) = self.ready.pop_front() {
            self.arrival = arrival;
            return request;
        }
        let (arrival, request) = self.upcoming.take().expect("a request that was announced");
        self.now = arrival;
        self.arrival = arrival;
        let request = self.admit(request);
        self.step();
        self.go_on();
        request
    }

    /// The request with this tag is done.
    pub fn completed(&mut self, tag: u64, now: SimTime) {
        self.now = now;
        if let Some(number) = self.copy_of(tag) {
            self.copying_ends(now);
            self.done(number);
        } else if let Some(known) = self.outstanding.remove(&tag) {
            known.disks.iter().for_each(|&disk| self.at_disks[disk as usize] -= 1);
            self.leave_old_places(tag);
        }
        for number in 0..self.copies.len() {
            if self.has_come(number) {
                self.go_on_with(number);
            }
        }
    }

    /// Clients' requests so far, and all.
    pub fn progress(&self) -> (u64, u64) {
        self.clients.progress()
    }

    /// Mark for the queue of a drive of the request with this tag.
    pub fn mark(&self, tag: u64) -> CommandMark {
        match self.is_own_work(tag) && self.puts_copies_first() {
            true => CommandMark::HighPriority,
            false => CommandMark::None,
        }
    }

    /// True if the request with this tag is a copy's.
    pub fn is_own_work(&self, tag: u64) -> bool {
        self.copy_of(tag).is_some()
    }

    /// Time at which the request that was taken last arrived: earlier than it was taken if it was held.
    pub fn arrival(&self) -> SimTime {
        self.arrival
    }

    /// Time at which a move has waited for its rate, a write is to be held from its arrival on, or the daemon
    /// looks.
    pub fn timer(&self) -> Option<SimTime> {
        let held = self.upcoming.filter(|(_, next)| self.is_held(next)).map(|(arrival, _)| arrival);
        let pieces = self.copies.iter().filter_map(|copy| copy.mover.next_piece_at());
        let piece = pieces.min().map(|at| at.max(self.now));
        held.into_iter().chain(piece).chain(self.next_look()).min()
    }

    /// The time of [`Self::timer`] has come.
    pub fn timer_due(&mut self, now: SimTime) {
        self.now = now;
        self.step();
        self.go_on();
    }

    /// True if copies go before all requests that wait for a disk.
    pub fn puts_copies_first(&self) -> bool {
        self.chooser.puts_copies_first()
    }

    /// Disks of the moves under way.
    fn moving(&self) -> Vec<[u32; 2]> {
        let by_requests = self.copies.iter().filter_map(|copy| copy.mover.current());
        let by_requests = by_requests.map(|moving| [moving.from.disk, moving.to.disk]);
        let in_gaps = self.gaps.iter().flat_map(|gaps| gaps.disks.values().copied());
        by_requests.chain(in_gaps).collect()
    }

    /// True if another move may begin.
    fn has_room(&self) -> bool {
        let in_gaps = self.gaps.as_ref().is_some_and(|gaps| gaps.disks.len() < gaps.most);
        in_gaps || self.copies.iter().any(|copy| copy.mover.current().is_none())
    }

    /// A read or a write of a copy begins; in gaps, a copy.
    fn copying_begins(&mut self) {
        if self.copying == 0 {
            self.copying_since = self.now;
        }
        self.copying += 1;
    }

    fn copying_ends(&mut self, at: SimTime) {
        self.copying -= 1;
        if self.copying == 0 {
            self.work.copying += at.saturating_since(self.copying_since);
        }
    }

    /// Clients, and the work of cooling, at the end of a run.
    pub fn end(self) -> (Clients<'a>, CoolingWork) {
        let unfinished = self.moving().len() as u64;
        let counts = match &self.chooser {
            Chooser::Daemon(daemon) => daemon.daemon.counts().clone(),
            Chooser::List(_) | Chooser::Stripes(_) => CoolingCounts::default(),
        };
        let restriping = match &self.chooser {
            Chooser::Stripes(restriper) => restriper.work(),
            _ => RestripeWork::default(),
        };
        (self.clients, CoolingWork { counts, unfinished, restriping, ..self.work })
    }

    fn heat_up(&mut self, request: &VolumeRequest) {
        let Self { map, chooser, now, .. } = self;
        let map = map.file_map();
        let daemon = match chooser {
            Chooser::Daemon(daemon) => daemon,
            Chooser::Stripes(restriper) => {
                return restriper.count(map.file_at(request.start), request.blocks);
            }
            Chooser::List(_) => return,
        };
        let Daemon { cooling, heats, loads, .. } = &mut **daemon;
        if let Some(loads) = loads {
            map.for_each_piece(request.start, request.blocks, |piece: Piece| {
                loads.arrived(piece.arm, piece.blocks)
            });
        }
        let placement = map.placement().borrow();
        map.for_each_extent(request.start, request.blocks, |extent, _, blocks| {
            let amount = cooling.amount.of_access(Blocks::new(blocks));
            heats.record(&placement, extent, *now, amount);
        });
    }

    /// Time of the daemon's next timed look: none after the clients' last request, so that runs end.
    fn next_look(&self) -> Option<SimTime> {
        let has_clients = self.upcoming.is_some() || !self.outstanding.is_empty();
        match self.next_step {
            NextStep::At(at) if has_clients => Some(at.max(self.now)),
            _ => None,
        }
    }

    /// Begins the next move, if there is one and room for it.
    fn step(&mut self) {
        let is_due = self.next_step.is_due(self.now, self.arrived);
        let waits_for_room = matches!(self.chooser, Chooser::Stripes(_));
        if !is_due && !waits_for_room {
            return;
        }
        let (moving, has_room) = (self.moving(), self.has_room());
        let mut placement = self.map.places().borrow_mut();
        let wanted = match &mut self.chooser {
            Chooser::Daemon(daemon) => {
                self.next_step = NextStep::after(daemon.cooling.step, self.now, self.arrived);
                daemon.heats.age(&placement, self.now);
                if let Some(loads) = &mut daemon.loads {
                    loads.step(self.now);
                }
                if !has_room {
                    return;
                }
                let mut taken = vec![false; self.at_disks.len()];
                moving.iter().flatten().for_each(|&disk| taken[disk as usize] = true);
                daemon.next(&placement, &self.at_disks, &self.present, &taken)
            }
            Chooser::List(_) if !has_room => return,
            Chooser::List(moves) => moves.pop_front(),
            Chooser::Stripes(restriper) => {
                if is_due {
                    restriper.check(self.map.file_map(), self.now);
                    self.next_step = NextStep::At(self.now + restriper.every());
                }
                if !has_room {
                    return;
                }
                restriper.next(self.map.file_map(), &placement)
            }
        };
        let Some((extent, disk)) = wanted else { return };
        let near = self.chooser.near(&placement, extent, disk);
        if self.gaps.is_some() {
            self.begin_in_gaps(&mut placement, extent, disk, near);
        } else {
            let idle = self.copies.iter_mut().find(|copy| copy.mover.current().is_none());
            let mover = &mut idle.expect("there is room").mover;
            // A disk of a list may have no room; the daemon chooses one with room.
            if mover.start_near(&mut placement, extent, disk, near).is_err() {
                self.work.left_out += 1;
                return;
            }
            let to = mover.current().expect("it has just begun").to;
            self.map.begin(extent, to);
        }
        self.map.file_map().pin(placement.extent(extent).file);
        self.work.at_once = self.work.at_once.max(moving.len() as u64 + 1);
    }

    fn begin_in_gaps(
        &mut self,
        placement: &mut Placement,
        extent: ExtentId,
        disk: u32,
        near: Option<Lbn>,
    ) {
        let known = *placement.extent(extent);
        let to = placement.reserve_room(disk, known.blocks, near);
        let to = to.expect("the daemon chooses a disk with room");
        self.copying_begins();
        let gaps = self.gaps.as_mut().expect("moves in gaps");
        gaps.copies.begin(self.now, placement, extent, to);
        gaps.disks.insert(extent, [known.place.disk, disk]);
    }

    /// Makes copies that are complete in gaps the valid places. Old places become free when no request uses
    /// them any more: a client's write there would have made the copy incomplete, so these are reads.
    fn end_in_gaps(&mut self) {
        let Some(gaps) = &mut self.gaps else { return };
        let mut placement = self.map.places().borrow_mut();
        let complete = gaps.copies.take_complete(&mut placement);
        let ended = complete.len();
        for Copied { extent, from, to, blocks, at } in complete {
            gaps.disks.remove(&extent);
            self.map.file_map().unpin(placement.extent(extent).file);
            let requests: BTreeSet<u64> = self.outstanding.keys().copied().collect();
            if requests.is_empty() {
                placement.release(from, blocks);
            } else {
                gaps.old_places.push(OldPlace { place: from, blocks, requests });
            }
            if let Chooser::Daemon(daemon) = &mut self.chooser {
                daemon.heats.moved(extent, from.disk, to.disk);
            }
            self.work.moves += 1;
            self.work.blocks += blocks;
            self.work.ends.push(at.max(self.now));
        }
        drop(placement);
        let first = self.work.ends.len() - ended;
        (first..self.work.ends.len()).for_each(|end| self.copying_ends(self.work.ends[end]));
    }

    /// A client's request is done: the last one at an old place frees it.
    fn leave_old_places(&mut self, tag: u64) {
        let Some(gaps) = self.gaps.as_mut().filter(|gaps| !gaps.old_places.is_empty()) else {
            return;
        };
        let mut placement = self.map.places().borrow_mut();
        gaps.old_places.retain_mut(|OldPlace { place, blocks, requests }| {
            let is_last = requests.remove(&tag) && requests.is_empty();
            if is_last {
                placement.release(*place, *blocks);
            }
            !is_last
        });
    }

    fn go_on(&mut self) {
        (0..self.copies.len()).for_each(|number| self.go_on_with(number));
    }

    /// Does what a copy's mover wants, up to the next action that takes time.
    fn go_on_with(&mut self, number: usize) {
        while let MoverState::Do(action) = self.copies[number].mover.poll(self.now) {
            match action {
                MoveAction::Read(part) => return self.copy(number, Op::Read, part),
                MoveAction::Write(part) => return self.copy(number, Op::Write, part),
                MoveAction::Quiesce(span) => {
                    let copy = &mut self.copies[number];
                    let extent = copy.mover.current().expect("a move").extent;
                    copy.awaited = Some(Awaited::Writes(extent, span));
                }
                MoveAction::Drain(_) => self.copies[number].awaited = Some(Awaited::OldPlace),
                // Both take no time here. Behind a drive's write cache a real flush would wait for destages.
                MoveAction::Flush(_) | MoveAction::Record(_) => self.done(number),
            }
            if !self.has_come(number) {
                return;
            }
        }
    }

    /// True if a copy awaits no event any more. What was awaited and is there goes to the mover.
    fn has_come(&mut self, number: usize) -> bool {
        let Some(awaited) = self.copies[number].awaited else { return true };
        let mut requests = self.outstanding.values();
        let is_missing = match awaited {
            Awaited::OldPlace => requests.any(|request| request.at_old_places >> number & 1 == 1),
            Awaited::Writes(extent, span) => requests.any(|request| {
                let writes = request.writes.iter();
                writes.clone().any(|(written, part)| *written == extent && part.overlaps(&span))
            }),
        };
        if !is_missing {
            self.copies[number].awaited = None;
            self.done(number);
        }
        !is_missing
    }

    fn copy(&mut self, number: usize, op: Op, part: Part) {
        let moving = self.copies[number].mover.current().expect("a move");
        let start = self.map.copy_address(moving.extent, part.place);
        let tag = COPY - number as u64;
        let copy = VolumeRequest { op, start, blocks: part.blocks, tag };
        self.ready.push_back((copy, self.now));
        self.copying_begins();
    }

    /// The number of the copy that a read or a write belongs to; None for one of a client.
    fn copy_of(&self, tag: u64) -> Option<usize> {
        let number = (COPY - tag) as usize;
        (number < self.copies.len()).then_some(number)
    }

    /// The action under way of a copy is complete.
    fn done(&mut self, number: usize) {
        let mut placement = self.map.places().borrow_mut();
        match self.copies[number].mover.done(&mut placement) {
            Progress::Relocated(moved) => {
                if let Chooser::Daemon(daemon) = &mut self.chooser {
                    daemon.heats.moved(moved.extent, moved.from.disk, moved.to.disk);
                }
                self.map.relocated(moved.extent);
                for request in self.outstanding.values_mut() {
                    request.at_old_places |= 1 << number;
                }
            }
            Progress::Finished(moved) => {
                self.map.file_map().unpin(placement.extent(moved.extent).file);
                self.map.finished(moved.extent);
                self.work.moves += 1;
                self.work.blocks += placement.extent(moved.extent).blocks;
                self.work.ends.push(self.now);
            }
            Progress::Continues | Progress::Cancelled(_) => {}
        }
        drop(placement);
        self.release();
    }

    /// Lets writes go on that no copy holds any more.
    fn release(&mut self) {
        for (arrival, request) in std::mem::take(&mut self.held) {
            if self.is_held(&request) {
                self.held.push((arrival, request));
                continue;
            }
            self.work.held += 1;
            // From now on the next piece waits for it.
            let request = self.admit(request);
            self.ready.push_back((request, arrival));
        }
    }

    /// A client's request goes to the disks: counts it, and sends it where it belongs.
    fn admit(&mut self, request: VolumeRequest) -> VolumeRequest {
        self.arrived += 1;
        self.heat_up(&request);
        self.send(request)
    }

    fn is_held(&self, request: &VolumeRequest) -> bool {
        request.op == Op::Write && self.routes(request).any(|route| route == Route::Wait)
    }

    /// Routes of a write: only extents that move have another place.
    fn routes(&self, request: &VolumeRequest) -> impl Iterator<Item = Route> {
        let (start, blocks) = (request.start, request.blocks);
        self.copies.iter().filter_map(move |copy| {
            let extent = copy.mover.current()?.extent;
            let (first, blocks) = self.map.part_on(start, blocks, extent)?;
            Some(copy.mover.route(extent, Span { first, blocks }))
        })
    }

    /// The next client's request that may go to the disks, with the time at which it may.
    fn fill(&mut self) {
        if self.upcoming.is_none()
            && let Some(arrival) = self.clients.next_arrival()
        {
            self.upcoming = Some((arrival, self.clients.take()));
            self.forget_removed();
        }
    }

    /// Forgets the heat of extents that clients have deleted.
    fn forget_removed(&mut self) {
        let removed = self.map.file_map().take_removed();
        if let Chooser::Daemon(daemon) = &mut self.chooser {
            removed.into_iter().for_each(|(extent, disk)| daemon.heats.removed(extent, disk));
        }
    }

    /// Notes a client's request, and sends it where it belongs.
    fn send(&mut self, mut request: VolumeRequest) -> VolumeRequest {
        let mut known = Outstanding::default();
        if request.op == Op::Write {
            let writes = &mut known.writes;
            let each = &mut |part, first, blocks| writes.push((part, Span { first, blocks }));
            self.map.for_each_part(request.start, request.blocks, each);
        }
        if let Some(arrivals) = self.chooser.present_arrivals() {
            let weight = 1.0 / (f64::from(arrivals) * self.present.len() as f64);
            for (mean, &count) in self.present.iter_mut().zip(&self.at_disks) {
                *mean += weight * (f64::from(count) - *mean);
            }
            let disks = &mut known.disks;
            let map = self.map.file_map();
            map.for_each_piece(request.start, request.blocks, |piece| disks.push(piece.arm));
            disks.iter().for_each(|&disk| self.at_disks[disk as usize] += 1);
        }
        if request.op == Op::Write
            && self.routes(&request).any(|route| matches!(route, Route::Both(_)))
        {
            request.start = self.map.file_map().both(request.start);
        }
        self.outstanding.insert(request.tag, known);
        request
    }
}

impl Chooser {
    /// Arrivals over which the requests at each disk are averaged; None where no rule looks at them.
    fn present_arrivals(&self) -> Option<u32> {
        let Self::Daemon(daemon) = self else { return None };
        let Cooling { daemon: spec, waits, waits_arrivals, .. } = &daemon.cooling;
        (spec.queue_veto || *waits).then_some(*waits_arrivals)
    }

    /// The block of a disk near which a moved extent is to lie.
    fn near(&self, placement: &Placement, extent: ExtentId, disk: u32) -> Option<Lbn> {
        match self {
            Self::Daemon(daemon) if daemon.cooling.near_hot => daemon.heats.centre(placement, disk),
            // A file has the same address in all its layouts.
            Self::Stripes(_) => Some(placement.extent(extent).place.start),
            _ => None,
        }
    }

    fn puts_copies_first(&self) -> bool {
        matches!(self, Self::Daemon(daemon) if daemon.cooling.copies_first)
    }
}

impl Daemon {
    /// The move that a step wants, given the requests under way at each disk, now and recently.
    fn next(
        &mut self,
        placement: &Placement,
        at_disks: &[u32],
        present: &[f64],
        taken: &[bool],
    ) -> Option<(ExtentId, u32)> {
        // Of the requests at a disk one is being served and the others wait.
        let queues: Vec<u32> = at_disks.iter().map(|count| count.saturating_sub(1)).collect();
        let present = if self.cooling.waits { present } else { &[] };
        let view = CoolingView { placement, heats: &self.heats, queues: &queues, present, taken };
        let Cooling { rule, mover, amount, .. } = self.cooling;
        let wanted = match (rule, &self.loads) {
            (CoolingRule::Variance(horizon), Some(loads)) => {
                let costs = loads.costs(mover.piece, amount);
                let horizon_s = horizon.as_secs_f64();
                self.daemon.step(&view, &Worth::Variance { horizon_s, costs: &costs })
            }
            _ => self.daemon.step(&view, &Worth::TargetStaysCooler),
        };
        let wanted = wanted.ok()?;
        Some((wanted.extent, wanted.to))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::cooling::CoolingUnit;
    use crate::heat::History;
    use crate::partition::{Restriped, Stripes};
    use crate::placement::{Extent, FileId, Place};
    use freewheel_units::Prng;

    use super::*;
    use crate::files::map::MappedFile;
    use crate::files::restriping::Layouts;
    use crate::files::traced::{FileRequest, TracedRequests};

    /// Contents of each disk's blocks: the number of the last write there.
    type Contents = BTreeMap<(u32, u64), u64>;

    /// A request at the disks, with the blocks that it was sent to.
    struct UnderWay {
        request: VolumeRequest,
        blocks: Vec<(u32, u64)>,
    }

    const FILES: u32 = 6;
    const BLOCKS: u64 = 24;

    /// Files of one extent, all on the first of three disks, or on the first two of five.
    fn map(sources: u32) -> FileMap {
        let mut placement = Placement::new(2 * sources + 1, Blocks::new(200));
        let mut files = Vec::new();
        for file in 0..FILES {
            let blocks = Blocks::new(BLOCKS);
            let place = Place { disk: file % sources, start: Lbn::new(u64::from(file) * BLOCKS) };
            placement.reserve_at(place, blocks);
            placement.insert(ExtentId(file), Extent { file: FileId(file), blocks, place });
            files.push(MappedFile { blocks, unit: blocks, first_extent: ExtentId(file), width: 1 });
        }
        FileMap::new(files, placement, Blocks::new(200))
    }

    fn cooling(prng: &mut Prng) -> Cooling {
        Cooling {
            rule: CoolingRule::TargetStaysCooler,
            daemon: CoolingSpec {
                threshold: 0.05,
                queue_veto: false,
                unit: CoolingUnit::Extents,
                candidates_max: 10,
                sources_max: 1,
                waits_factor: 1.5,
            },
            heat: HeatSpec {
                accesses: 5,
                accesses_min: 2,
                history: History::Accesses,
                extents_max: 10,
            },
            amount: HeatAmount::Blocks,
            step: match prng.chance(0.5) {
                true => CoolingStep::Requests(1 + prng.below(5)),
                false => CoolingStep::Time(SimDuration::from_us(100 + prng.below(5000))),
            },
            near_hot: prng.chance(0.5),
            waits: prng.chance(0.2),
            waits_arrivals: 256,
            copies_first: false,
            moves: 1 + prng.below(3) as u32,
            mover: MoverSpec { piece: Blocks::new(1 + prng.below(30)), rate: None },
        }
    }

    fn random_requests(prng: &mut Prng) -> Vec<FileRequest> {
        let mut at = SimTime::ZERO;
        let request = |_| {
            at += SimDuration::from_us(prng.below(2000));
            let first = prng.below(BLOCKS);
            FileRequest {
                arrival: at,
                op: if prng.chance(0.5) { Op::Read } else { Op::Write },
                file: prng.below(u64::from(FILES)) as u32,
                first,
                blocks: Blocks::new(1 + prng.below(BLOCKS - first)),
            }
        };
        (0..400).map(request).collect()
    }

    /// Every block's valid place holds the last write that is complete. A crash at this instant keeps the
    /// map and the disks, so no promise to clients is broken.
    fn assert_nothing_lost(
        map: &FileMap,
        contents: &Contents,
        written: &BTreeMap<(u32, u64), u64>,
    ) {
        let placement = map.placement().borrow();
        for (&(number, block), &version) in written {
            let file = map.file(number);
            let (run, within) = (block / file.unit.get(), block % file.unit.get());
            let (row, column) = (run / u64::from(file.width), run % u64::from(file.width));
            let place = placement.extent(ExtentId(file.first_extent.0 + column as u32)).place;
            let at = (place.disk, place.start.get() + row * file.unit.get() + within);
            let there = contents.get(&at).copied();
            assert_eq!(there.unwrap_or(0), version, "block {block} of file {number}");
        }
        assert!(placement.faults().is_empty());
    }

    /// Runs requests with the moves among them, and looks for lost writes between any two steps.
    ///
    /// Disks complete requests in any order of time but one after the other at each block: here in random
    /// order among those under way that share no block with an earlier one.
    fn run<M: MovedMap>(
        source: &mut CooledRequests<'_, M>,
        map: &FileMap,
        requests: &[FileRequest],
        prng: &mut Prng,
    ) {
        let (mut contents, mut written) = (Contents::new(), BTreeMap::new());
        let mut under_way: Vec<UnderWay> = Vec::new();
        let mut now = SimTime::ZERO;
        let mut copied: BTreeMap<u64, Vec<Option<u64>>> = BTreeMap::new();
        loop {
            if source.timer().is_some_and(|timer| timer <= now) {
                source.timer_due(now);
            }
            let arrival = source.next_arrival();
            let arrives = |_: &SimTime| under_way.is_empty() || prng.chance(0.6);
            if let Some(arrival) = arrival.filter(arrives) {
                now = now.max(arrival);
                let request = source.take();
                let mut blocks = Vec::new();
                map.for_each_piece(request.start, request.blocks, |piece| {
                    let first = piece.start.get();
                    blocks.extend((first..first + piece.blocks.get()).map(|at| (piece.arm, at)));
                });
                under_way.push(UnderWay { request, blocks });
            } else if under_way.is_empty() {
                break;
            } else {
                let is_first = |at: usize| {
                    let earlier = under_way[..at].iter().flat_map(|other| &other.blocks);
                    !earlier.clone().any(|block| under_way[at].blocks.contains(block))
                };
                let able: Vec<usize> = (0..under_way.len()).filter(|&at| is_first(at)).collect();
                let chosen = able[prng.below(able.len() as u64) as usize];
                let UnderWay { request, blocks } = under_way.remove(chosen);
                now += SimDuration::from_us(100);
                match (source.is_own_work(request.tag), request.op) {
                    (true, Op::Read) => {
                        let read = in_order(map, &request, &blocks);
                        let read = read.iter().map(|at| contents.get(at).copied());
                        copied.insert(request.tag, read.collect());
                    }
                    (true, _) => {
                        let blocks = in_order(map, &request, &blocks);
                        for (at, version) in blocks.iter().zip(&copied[&request.tag]) {
                            version.map(|version| contents.insert(*at, version));
                        }
                    }
                    (false, Op::Write) => {
                        let version = request.tag + 1;
                        contents.extend(blocks.iter().map(|at| (*at, version)));
                        let FileRequest { file, first, blocks, .. } =
                            requests[request.tag as usize];
                        let all = first..first + blocks.get();
                        written.extend(all.map(|block| ((file, block), version)));
                    }
                    (false, _) => {}
                }
                source.completed(request.tag, now);
            }
            assert_nothing_lost(map, &contents, &written);
        }
    }

    /// The blocks of a copy's request in the order of its addresses: pieces come by extent.
    fn in_order(map: &FileMap, request: &VolumeRequest, blocks: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let one = |block: u64| {
            let mut at = None;
            map.for_each_piece(request.start + Blocks::new(block), Blocks::new(1), |piece| {
                at = Some((piece.arm, piece.start.get()));
            });
            at.expect("a block of one place")
        };
        let all: Vec<(u32, u64)> = (0..request.blocks.get()).map(one).collect();
        assert_eq!(all.len(), blocks.len());
        all
    }

    #[test]
    fn crash_between_steps_keeps_completed_writes() {
        let (mut moves, mut held, mut at_once) = (0, 0, 0);
        for seed in 0..60 {
            let prng = &mut Prng::new(seed, "crash while cooling");
            let (map, requests) = (map(1 + seed as u32 % 2), random_requests(prng));
            let cooling = cooling(prng);
            let clients = Clients::Traced(TracedRequests::new(&map, &requests, 1.0));
            let choice = Choice::Daemon(Box::new(cooling), None);
            let mut source = CooledRequests::new(clients, &map, choice, cooling.mover);
            run(&mut source, &map, &requests, prng);
            let (_, work) = source.end();
            moves += work.moves;
            held += work.held;
            at_once = at_once.max(work.at_once);
        }
        assert!(moves > 60 && held > 10, "{moves} moves, {held} writes held");
        assert_eq!(at_once, 2, "two of five disks have a target each at once");
    }

    #[test]
    fn crash_during_restriping_keeps_completed_writes() {
        let (mut moves, mut held) = (0, 0);
        for seed in 0..60 {
            let prng = &mut Prng::new(seed, "crash while striping anew");
            let (map, requests) = (map(2), random_requests(prng));
            let layouts = Layouts::new(&map);
            let restriped = |_| Restriped {
                file: FileId(prng.below(u64::from(FILES)) as u32),
                stripes: Stripes { unit: 1 + prng.below(BLOCKS), width: 5 },
            };
            let wanted: Vec<Restriped> = (0..30).map(restriped).collect();
            let restriper = Box::new(Restriper::of_list(wanted, 5));
            let piece = Blocks::new(1 + prng.below(30));
            let mover = MoverSpec { piece, rate: None };
            let clients = Clients::Traced(TracedRequests::new(&map, &requests, 1.0));
            let choice = Choice::Stripes(restriper);
            let mut source = CooledRequests::new(clients, &layouts, choice, mover);
            run(&mut source, &map, &requests, prng);
            let room = |disk| map.placement().borrow().space(disk).free().get();
            let used = 5 * 200 - (0..5).map(room).sum::<u64>();
            let (_, work) = source.end();
            // No room is lost: one layout a file is left.
            assert!(work.unfinished > 0 || used == u64::from(FILES) * BLOCKS, "{used}");
            moves += work.moves;
            held += work.held;
        }
        assert!(moves > 60 && held > 10, "{moves} files, {held} writes held");
    }
}
