//! Cooling while clients read and write: the daemon looks every so often, and its moves are real reads and
//! writes in the disks' queues.
//!
//! ```text
//!   clients' requests -> heat -> daemon, step by step -> mover -> reads and writes of the copy
//! ```
//! A read goes to the valid place. A write goes where the mover routes it: to the valid place, to both
//! places, or nowhere yet while its blocks are copied. Then it is held, and its response counts that. The
//! old place stays reserved until the last request that was sent there is done.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use freewheel_model::array::Piece;
use freewheel_model::array::cooling::{
    CoolingCounts, CoolingDaemon, CoolingSpec, CoolingView, MoveAction, Mover, MoverSpec,
    MoverState, Part, Progress, Route, Span, Worth,
};
use freewheel_model::array::heat::{DiskHeats, HeatAmount, HeatSpec, HeatTable};
use freewheel_model::array::placement::{ExtentId, Placement};
use freewheel_model::drive::Drive;
use freewheel_model::sched::CommandMark;
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::disk_loads::DiskLoads;
use crate::file_map::FileMap;
use crate::source::{Request, Source, SourceError};

/// Tags of the copies' reads and writes; clients' tags are below.
pub(super) const COPY: u64 = u64::MAX;

/// Condition under which a move is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoolingRule {
    /// The target stays cooler than the source was (tr96 figure 5).
    #[default]
    TargetStaysCooler,
    /// Within this time the disks' heat variance falls by more than the move itself costs. The queueing
    /// model says how long the move takes under the recent load.
    Variance(SimDuration),
}

/// From one step of the daemon to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoolingStep {
    /// By time (tr96 section 3.2), also while clients are idle, up to their last request.
    Time(SimDuration),
    /// By clients' requests, as in tr96's tables.
    Requests(u64),
}

/// Settings of the cooling of an array.
#[derive(Debug, Clone, Copy)]
pub struct Cooling {
    /// Settings of the daemon that chooses moves.
    pub daemon: CoolingSpec,
    /// Condition under which a move is worth it.
    pub rule: CoolingRule,
    /// Tracking of heat.
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
    /// Settings of moves.
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
    /// Time during which a read or a write of a copy was under way.
    pub copying: SimDuration,
}

/// Who says what moves next.
pub(crate) enum Choice {
    /// The daemon, by heat; with the disks' loads where its rule needs them.
    Daemon(Cooling, Option<DiskLoads>),
    /// A list, each extent to a disk. One to a disk without room is left out.
    List(VecDeque<(ExtentId, u32)>),
}

impl Choice {
    /// The daemon on these disks, of whose requests `read_share` read.
    pub(crate) fn daemon(
        cooling: Cooling,
        drives: &[Arc<Drive>],
        map: &FileMap,
        read_share: f64,
    ) -> Self {
        let loads = match cooling.rule {
            CoolingRule::TargetStaysCooler => None,
            CoolingRule::Variance(_) => {
                Some(DiskLoads::new(drives, &map.placement().borrow(), read_share))
            }
        };
        Self::Daemon(cooling, loads)
    }
}

/// State of a client's request under way.
#[derive(Debug, Default)]
struct Outstanding {
    /// True if it may use the old place of the extent that has moved.
    is_at_old_place: bool,
    /// Extents and spans that the request writes.
    writes: Vec<(ExtentId, Span)>,
    /// Disks that it uses, for the view of queues.
    disks: Vec<u32>,
}

/// Clients' requests, with the moves among them.
pub(crate) struct CooledRequests<'a, S> {
    clients: S,
    map: &'a FileMap,
    chooser: Chooser,
    mover: Mover,
    /// The client's request that arrives next.
    upcoming: Option<(SimTime, Request)>,
    /// Writes that wait for a copy, with their arrivals.
    held: Vec<(SimTime, Request)>,
    /// Time at which the request that was taken last arrived: earlier if it was held.
    arrival: SimTime,
    /// Requests for the disks now: copies, and writes that were held, with their arrivals.
    ready: VecDeque<(Request, SimTime)>,
    now: SimTime,
    arrived: u64,
    /// Next look of the daemon.
    next_step: NextStep,
    outstanding: BTreeMap<u64, Outstanding>,
    /// Requests under way at each disk.
    at_disks: Vec<u32>,
    /// Present loads, averaged over the last arrivals.
    present: Vec<f64>,
    /// Time at which the copy's read or write under way began.
    copy_began: SimTime,
    /// Event that the mover waits for.
    awaited: Option<Awaited>,
    work: CoolingWork,
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

impl<'a, S: Source> CooledRequests<'a, S> {
    pub(crate) fn new(clients: S, map: &'a FileMap, choice: Choice, mover: MoverSpec) -> Self {
        let next_step = match &choice {
            Choice::Daemon(cooling, _) => NextStep::after(cooling.step, SimTime::ZERO, 0),
            Choice::List(_) => NextStep::Always,
        };
        let chooser = match choice {
            Choice::Daemon(cooling, loads) => {
                let heats = DiskHeats::new(HeatTable::new(cooling.heat), map.disks());
                let daemon = CoolingDaemon::new(cooling.daemon);
                Chooser::Daemon(Box::new(Daemon { cooling, heats, daemon, loads }))
            }
            Choice::List(moves) => Chooser::List(moves),
        };
        Self {
            clients,
            map,
            chooser,
            mover: Mover::new(mover),
            upcoming: None,
            held: Vec::new(),
            arrival: SimTime::ZERO,
            ready: VecDeque::new(),
            now: SimTime::ZERO,
            arrived: 0,
            next_step,
            outstanding: BTreeMap::new(),
            at_disks: vec![0; map.disks() as usize],
            present: vec![0.0; map.disks() as usize],
            copy_began: SimTime::ZERO,
            awaited: None,
            work: CoolingWork::default(),
        }
    }

    pub(super) fn puts_copies_first(&self) -> bool {
        self.chooser.puts_copies_first()
    }

    pub(crate) fn work(self) -> CoolingWork {
        let counts = match &self.chooser {
            Chooser::Daemon(daemon) => daemon.daemon.counts().clone(),
            Chooser::List(_) => CoolingCounts::default(),
        };
        CoolingWork { counts, ..self.work }
    }

    fn heat_up(&mut self, request: &Request) {
        let Self { map, chooser, now, .. } = self;
        let Chooser::Daemon(daemon) = chooser else { return };
        let Daemon { cooling, heats, loads, .. } = &mut **daemon;
        if let Some(loads) = loads {
            let arrived = |piece: Piece| loads.arrived(piece.arm, piece.blocks);
            map.for_each_piece(request.start, request.blocks, arrived);
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

    /// Begins the next move, if there is one and none is under way.
    fn step(&mut self) {
        let mut placement = self.map.placement().borrow_mut();
        let wanted = match &mut self.chooser {
            Chooser::Daemon(daemon) => {
                if !self.next_step.is_due(self.now, self.arrived) {
                    return;
                }
                self.next_step = NextStep::after(daemon.cooling.step, self.now, self.arrived);
                daemon.heats.age(&placement, self.now);
                if let Some(loads) = &mut daemon.loads {
                    loads.step(self.now);
                }
                if self.mover.current().is_some() {
                    return;
                }
                daemon.next(&placement, &self.at_disks, &self.present)
            }
            Chooser::List(_) if self.mover.current().is_some() => return,
            Chooser::List(moves) => moves.pop_front(),
        };
        let Some((extent, disk)) = wanted else { return };
        let near = self.chooser.near(&placement, disk);
        // A disk of a list may have no room; the daemon chooses one with room.
        if self.mover.start_near(&mut placement, extent, disk, near).is_err() {
            self.work.left_out += 1;
            return;
        }
        let to = self.mover.current().expect("it has just begun").to;
        self.map.set_second(Some((extent, to)));
    }

    /// Does what the mover wants, up to the next action that takes time.
    fn go_on(&mut self) {
        while let MoverState::Do(action) = self.mover.poll(self.now) {
            match action {
                MoveAction::Read(part) => return self.copy(Op::Read, part),
                MoveAction::Write(part) => return self.copy(Op::Write, part),
                MoveAction::Quiesce(span) => {
                    let extent = self.mover.current().expect("a move").extent;
                    self.awaited = Some(Awaited::Writes(extent, span));
                }
                MoveAction::Drain(_) => self.awaited = Some(Awaited::OldPlace),
                // Both take no time here. Behind a drive's write cache a real flush would wait for destages.
                MoveAction::Flush(_) | MoveAction::Record(_) => self.done(),
            }
            if !self.has_come() {
                return;
            }
        }
    }

    /// True if no event is awaited any more. What was awaited and is there goes to the mover.
    fn has_come(&mut self) -> bool {
        let Some(awaited) = self.awaited else { return true };
        let mut requests = self.outstanding.values();
        let is_missing = match awaited {
            Awaited::OldPlace => requests.any(|request| request.is_at_old_place),
            Awaited::Writes(extent, span) => requests.any(|request| {
                let writes = request.writes.iter();
                writes.clone().any(|(written, part)| *written == extent && part.overlaps(&span))
            }),
        };
        if !is_missing {
            self.awaited = None;
            self.done();
        }
        !is_missing
    }

    fn copy(&mut self, op: Op, part: Part) {
        let start = self.map.raw_address(part.place.disk, part.place.start);
        let copy = Request { op, start, blocks: part.blocks, fua: false, tag: COPY };
        self.ready.push_back((copy, self.now));
        self.copy_began = self.now;
    }

    /// The action under way is complete.
    fn done(&mut self) {
        let mut placement = self.map.placement().borrow_mut();
        match self.mover.done(&mut placement) {
            Progress::Relocated(moved) => {
                if let Chooser::Daemon(daemon) = &mut self.chooser {
                    daemon.heats.moved(moved.extent, moved.from.disk, moved.to.disk);
                }
                self.map.set_second(None);
                for request in self.outstanding.values_mut() {
                    request.is_at_old_place = true;
                }
            }
            Progress::Finished(moved) => {
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
    fn admit(&mut self, request: Request) -> Request {
        self.arrived += 1;
        self.heat_up(&request);
        self.send(request)
    }

    fn is_held(&self, request: &Request) -> bool {
        request.op == Op::Write && self.route(request) == Route::Wait
    }

    /// Route of a write: only the extent that moves has another place.
    fn route(&self, request: &Request) -> Route {
        let Some(moving) = self.mover.current() else { return Route::Valid };
        let part = self.map.part_on(request.start, request.blocks, moving.extent);
        let route = |(first, blocks)| self.mover.route(moving.extent, Span { first, blocks });
        part.map_or(Route::Valid, route)
    }

    /// The next client's request that may go to the disks, with the time at which it may.
    fn fill(&mut self) -> Result<(), SourceError> {
        while self.upcoming.is_none() {
            let Some(arrival) = self.clients.next_arrival()? else { return Ok(()) };
            self.upcoming = Some((arrival, self.clients.take()));
        }
        Ok(())
    }

    /// Notes a client's request, and sends it where it belongs.
    fn send(&mut self, mut request: Request) -> Request {
        let mut known = Outstanding::default();
        if request.op == Op::Write {
            let writes = &mut known.writes;
            self.map.for_each_extent(request.start, request.blocks, |extent, first, blocks| {
                writes.push((extent, Span { first, blocks }));
            });
        }
        if let Some(arrivals) = self.chooser.present_arrivals() {
            let weight = 1.0 / (f64::from(arrivals) * self.present.len() as f64);
            for (mean, &count) in self.present.iter_mut().zip(&self.at_disks) {
                *mean += weight * (f64::from(count) - *mean);
            }
            let disks = &mut known.disks;
            self.map.for_each_piece(request.start, request.blocks, |piece| disks.push(piece.arm));
            disks.iter().for_each(|&disk| self.at_disks[disk as usize] += 1);
        }
        if request.op == Op::Write && matches!(self.route(&request), Route::Both(_)) {
            request.start = self.map.both(request.start);
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
    fn near(&self, placement: &Placement, disk: u32) -> Option<Lbn> {
        match self {
            Self::Daemon(daemon) if daemon.cooling.near_hot => daemon.heats.centre(placement, disk),
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
    ) -> Option<(ExtentId, u32)> {
        // Of the requests at a disk one is being served and the others wait.
        let queues: Vec<u32> = at_disks.iter().map(|count| count.saturating_sub(1)).collect();
        let present = if self.cooling.waits { present } else { &[] };
        let view = CoolingView { placement, heats: &self.heats, queues: &queues, present };
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

impl<S: Source> Source for CooledRequests<'_, S> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        if !self.ready.is_empty() {
            return Ok(Some(self.now));
        }
        self.fill()?;
        // A write to blocks that are being copied steps aside when its time has come, and others go on.
        while let Some((arrival, request)) = self.upcoming {
            if !self.is_held(&request) {
                return Ok(Some(arrival));
            }
            if arrival > self.now {
                break;
            }
            self.held.push((arrival, request));
            self.upcoming = None;
            self.fill()?;
        }
        Ok(None)
    }

    fn take(&mut self) -> Request {
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

    fn completed(&mut self, tag: u64, now: SimTime) {
        self.now = now;
        if tag == COPY {
            self.work.copying += now - self.copy_began;
            self.done();
        } else if let Some(known) = self.outstanding.remove(&tag) {
            known.disks.iter().for_each(|&disk| self.at_disks[disk as usize] -= 1);
        }
        if self.has_come() {
            self.go_on();
        }
    }

    fn progress(&self) -> (u64, u64) {
        self.clients.progress()
    }

    fn mark(&self, request: &Request) -> CommandMark {
        match request.tag == COPY && self.chooser.puts_copies_first() {
            true => CommandMark::HighPriority,
            false => self.clients.mark(request),
        }
    }

    fn is_own_work(&self, tag: u64) -> bool {
        tag == COPY
    }

    fn arrival(&self, _: SimTime) -> SimTime {
        self.arrival
    }

    /// A move waits for its rate, a write is to be held from its arrival on, or the daemon looks.
    fn timer(&self) -> Option<SimTime> {
        let held = self.upcoming.filter(|(_, next)| self.is_held(next)).map(|(arrival, _)| arrival);
        let piece = self.mover.next_piece_at().map(|at| at.max(self.now));
        held.into_iter().chain(piece).chain(self.next_look()).min()
    }

    fn timer_due(&mut self, now: SimTime) {
        self.now = now;
        self.step();
        self.go_on();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use freewheel_model::array::cooling::CoolingUnit;
    use freewheel_model::array::heat::History;
    use freewheel_model::array::placement::{Extent, FileId, Place};
    use freewheel_units::Prng;

    use super::*;
    use crate::file_map::MappedFile;
    use crate::files::FileRequest;
    use crate::files::traced::TracedRequests;

    /// Contents of each disk's blocks: the number of the last write there.
    type Contents = BTreeMap<(u32, u64), u64>;

    /// A request at the disks, with the blocks that it was sent to.
    struct UnderWay {
        request: Request,
        blocks: Vec<(u32, u64)>,
    }

    const FILES: u32 = 4;
    const BLOCKS: u64 = 24;

    /// Files of one extent, all on the first of three disks.
    fn map() -> FileMap {
        let mut placement = Placement::new(3, Blocks::new(200));
        let mut files = Vec::new();
        for file in 0..FILES {
            let blocks = Blocks::new(BLOCKS);
            let place = Place { disk: 0, start: Lbn::new(u64::from(file) * BLOCKS) };
            placement.reserve_at(place, blocks);
            placement.insert(ExtentId(file), Extent { file: FileId(file), blocks, place });
            files.push(MappedFile { blocks, unit: blocks, first_extent: ExtentId(file), width: 1 });
        }
        FileMap::new(files, placement, Blocks::new(200))
    }

    fn cooling(prng: &mut Prng) -> Cooling {
        Cooling {
            rule: CoolingRule::default(),
            daemon: CoolingSpec {
                threshold: 0.05,
                queue_veto: false,
                unit: CoolingUnit::Extents,
                candidates_max: 10,
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
        for (&(file, block), &version) in written {
            let place = map.placement().borrow().extent(ExtentId(file)).place;
            let there = contents.get(&(place.disk, place.start.get() + block)).copied();
            assert_eq!(there.unwrap_or(0), version, "block {block} of file {file}");
        }
        assert!(map.placement().borrow().faults().is_empty());
    }

    /// Disks complete requests in any order of time but one after the other at each block: here in random
    /// order among those under way that share no block with an earlier one.
    #[test]
    fn a_crash_between_any_two_steps_finds_every_completed_write_at_the_valid_place() {
        let mut moves = 0;
        let mut held = 0;
        for seed in 0..60 {
            let prng = &mut Prng::new(seed, "crash while cooling");
            let (map, requests) = (map(), random_requests(prng));
            let cooling = cooling(prng);
            let clients = TracedRequests::new(&map, &requests, 1.0);
            let mut source =
                CooledRequests::new(clients, &map, Choice::Daemon(cooling, None), cooling.mover);
            let (mut contents, mut written) = (Contents::new(), BTreeMap::new());
            let mut under_way: Vec<UnderWay> = Vec::new();
            let (mut now, mut copied) = (SimTime::ZERO, Vec::new());
            loop {
                if source.timer().is_some_and(|timer| timer <= now) {
                    source.timer_due(now);
                }
                let arrival = source.next_arrival().unwrap();
                let arrives = arrival.is_some() && (under_way.is_empty() || prng.chance(0.6));
                if arrives {
                    now = now.max(arrival.unwrap());
                    let request = source.take();
                    let mut blocks = Vec::new();
                    map.for_each_piece(request.start, request.blocks, |piece| {
                        let first = piece.start.get();
                        let piece = (first..first + piece.blocks.get()).map(|at| (piece.arm, at));
                        blocks.extend(piece);
                    });
                    under_way.push(UnderWay { request, blocks });
                } else if under_way.is_empty() {
                    break;
                } else {
                    let is_first = |at: usize| {
                        let earlier = under_way[..at].iter().flat_map(|other| &other.blocks);
                        !earlier.clone().any(|block| under_way[at].blocks.contains(block))
                    };
                    let able: Vec<usize> =
                        (0..under_way.len()).filter(|&at| is_first(at)).collect();
                    let chosen = able[prng.below(able.len() as u64) as usize];
                    let UnderWay { request, blocks } = under_way.remove(chosen);
                    now += SimDuration::from_us(100);
                    match (request.tag == COPY, request.op) {
                        (true, Op::Read) => {
                            copied = blocks.iter().map(|at| contents.get(at).copied()).collect();
                        }
                        (true, _) => {
                            for (at, version) in blocks.iter().zip(&copied) {
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
                assert_nothing_lost(&map, &contents, &written);
            }
            let work = source.work();
            moves += work.moves;
            held += work.held;
        }
        assert!(moves > 60 && held > 10, "{moves} moves, {held} writes held");
    }
}
