//! A device below the cache of a storage system, with queues between the two.
//!
//! ```text
//!   engine's queue --> cache --> clients' queue (policy) --\
//!   (beyond queue_depth)  \----> destages (policy) ---------> device
//!                          \---> reading on, when idle ----/
//! ```
//!
//! The engine's queue holds requests beyond the depth of the storage system: there, hits wait too. The
//! cache issues disk requests, which the scheduling policy orders. A destage goes when no client's
//! request waits, or in the clients' queue as long as a write waits for room.
//!
//! Opportunistic reads cost no request more than one piece. Blocks that pass the head while it waits for
//! the first sector are free: they are worked out when the request leaves for the device, from the same
//! positioning time that policies use.
//!
//! Non-goals: promotions of background work, which would pass the cache as clients' requests.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use freewheel_freeblock::Planner;
use freewheel_model::cache::{
    BlockRange, CacheRequest, DiskRequest, FlushPoint, PrefetchKind, Purpose, StorageCache,
};
use freewheel_model::drive::{Drive, Position, Sectors, Target};
use freewheel_model::electronics::{Done, NextEvent, Served};
use freewheel_model::sched::{CommandMark, Moment, Policy, Waiting};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};
use slab::Slab;

use crate::cache_work::{CacheWork, PrefetchWork, ServiceParts};
use crate::device::{Device, Work};

/// Disk requests have numbers from here on: requests of the engine never come this far.
const DISK_REQUESTS: u64 = 1 << 62;

/// Head time with command processing, and its parts.
#[derive(Debug, Clone, Copy, Default)]
struct Service {
    time: SimDuration,
    parts: ServiceParts,
}

impl Service {
    fn add(&mut self, served: &Served) {
        self.time += served.overhead + served.head();
        self.parts.seek_ns += served.seek.ns();
        self.parts.rotate_ns += served.rotate.ns();
        self.parts.transfer_ns += served.transfer.ns();
    }
}

/// Head time by its use.
#[derive(Debug, Clone, Copy, Default)]
struct ServiceTimes {
    read: Service,
    /// Part of it that reads wait for.
    fetch: Service,
    write: Service,
    opportunistic: Service,
    /// Reading on before seeks that are just in time.
    before_seeks: SimDuration,
    /// Part of the time of reads.
    prefetch: SimDuration,
}

/// A client's request in the storage system.
#[derive(Clone, Copy)]
struct ClientsRequest {
    sequence: u64,
    arrival: SimTime,
}

/// Blocks that pass the head before the first data of a fetch.
#[derive(Clone)]
struct Passed {
    /// Cause for which the head reads them.
    kind: PrefetchKind,
    /// Up to two parts of a track; empty ones are none.
    parts: [Range<u64>; 2],
    /// Part of the rotational latency in which the head stays where it is and reads on.
    reading_on: SimDuration,
}

const NONE_PASSED: Passed =
    Passed { kind: PrefetchKind::FreeBlocks, parts: [0..0, 0..0], reading_on: SimDuration::ZERO };

/// The disk request that the device was given last.
#[derive(Clone, Copy)]
struct LastRequest {
    /// End of the range: its last block plus one.
    end: u64,
    sequence: u64,
    is_read: bool,
    /// Time at which it was done; None as long as it is under way.
    done: Option<SimTime>,
}

/// A disk request in a queue or on the device.
#[derive(Clone)]
struct UnderWay {
    request: DiskRequest,
    /// Blocks that pass the head on its way.
    passed: Passed,
    /// Blocks of the write buffer that the head writes on its way.
    in_gap: Vec<Range<u64>>,
}

impl UnderWay {
    fn new(request: DiskRequest) -> Self {
        Self { request, passed: NONE_PASSED, in_gap: Vec::new() }
    }
}

/// A flush that waits for destages.
struct WaitingFlush {
    sequence: u64,
    point: FlushPoint,
}

/// A device with a cache in front.
pub struct CachedDevice<D> {
    inner: D,
    drive: Arc<Drive>,
    cache: StorageCache,
    /// Most clients' requests in the storage system.
    depth: u32,
    /// Sectors of the media.
    sectors: Sectors,
    /// Requests that are not done. Their slots are the cache's tags.
    clients_requests: Slab<ClientsRequest>,
    clients: Box<dyn Policy>,
    destages: Box<dyn Policy>,
    /// Disk requests by slot.
    under_way: Vec<Option<UnderWay>>,
    /// Number of requests on the device.
    submitted: u32,
    /// Requests that are done, and not reported yet.
    answers: VecDeque<Done>,
    /// In order of arrival, so that their points rise.
    flushes: VecDeque<WaitingFlush>,
    /// None before the first.
    last: Option<LastRequest>,
    service: ServiceTimes,
    /// Something has changed since the device was last offered work.
    must_pick: bool,
    /// Mark of the request that is arriving: the disk requests that it waits for have it, too.
    mark: CommandMark,
    now: SimTime,
}

impl<D: Device> CachedDevice<D> {
    /// Puts `cache` in front of `inner`, whose media have these sectors. The policies order the clients'
    /// requests, and the destages.
    pub fn new(
        inner: D,
        drive: &Arc<Drive>,
        cache: StorageCache,
        sectors: Sectors,
        [clients, destages]: [Box<dyn Policy>; 2],
    ) -> Self {
        Self {
            inner,
            drive: Arc::clone(drive),
            depth: cache.spec().queue_depth,
            cache,
            sectors,
            clients_requests: Slab::default(),
            clients,
            destages,
            under_way: Vec::new(),
            submitted: 0,
            answers: VecDeque::new(),
            flushes: VecDeque::new(),
            last: None,
            service: ServiceTimes::default(),
            must_pick: false,
            mark: CommandMark::None,
            now: SimTime::ZERO,
        }
    }

    /// Answers requests and queues disk requests, as the cache says.
    fn collect(&mut self, served: Served) {
        let Self {
            cache,
            answers,
            inner,
            clients,
            clients_requests,
            under_way,
            drive,
            mark,
            now,
            ..
        } = self;
        cache.take_answered(|slot| {
            let ClientsRequest { sequence, arrival } = clients_requests.remove(slot as usize);
            // A read that joined a fetch under way waited for a part of it only.
            let is_own = served.overhead + served.head() + served.bus <= *now - arrival;
            let served = if is_own { served } else { hit(*now) };
            answers.push_back(Done { sequence, served, flush: false });
        });
        cache.take_issued(|request| {
            let is_awaited = matches!(request.purpose, Purpose::Fetch | Purpose::WriteThrough);
            let mark = if is_awaited { *mark } else { CommandMark::None };
            let waiting = Waiting { mark, ..waiting(drive, &request, *now) };
            inner.arrived(*now, &waiting, None);
            begin(under_way, request);
            clients.push(waiting);
        });
        if let Some(gaps) = inner.planner().and_then(Planner::gap_writer) {
            cache.take_whole(|blocks| gaps.want(Lbn::new(blocks.start), *now));
        }
        self.end_flushes();
    }

    /// Passes flushes on whose data have left the buffer: what remains is the device's own cache.
    fn end_flushes(&mut self) {
        while let Some(flush) = self.flushes.front()
            && self.cache.is_flushed(flush.point)
        {
            let sequence = flush.sequence;
            self.flushes.pop_front();
            if !self.inner.flush(self.now, sequence) {
                let served = Served { end: self.now, ..Served::default() };
                self.answers.push_back(Done { sequence, served, flush: true });
            }
        }
    }

    /// Queues the destages that the cache wants.
    fn queue_destages(&mut self) {
        while let Some(request) = self.cache.next_destage(self.now) {
            let waiting = waiting(&self.drive, &request, self.now);
            self.inner.arrived(self.now, &waiting, None);
            begin(&mut self.under_way, request);
            self.destages.push(waiting);
        }
    }

    /// Gives the device requests while it has room.
    fn pick(&mut self) {
        self.queue_destages();
        while self.inner.has_room() {
            let Some(waiting) = self.next() else { break };
            self.submit_inside(&waiting);
        }
    }

    fn next(&mut self) -> Option<Waiting> {
        if let Some(request) = self.cache.next_at_once() {
            return Some(self.at_once(request));
        }
        let (at, head) = self.inner.free_at(self.now);
        let Self { drive, cache, clients, destages, .. } = self;
        let moment = Moment { now: at, head, drive };
        if cache.is_short() {
            while let Some(destage) = destages.pick(&moment) {
                clients.push(destage);
            }
        }
        let picked = clients.pick(&moment).or_else(|| destages.pick(&moment));
        if let Some(waiting) = picked {
            return Some(waiting);
        }
        // Reading on stops for everything, so it begins only on a device that is idle.
        if self.submitted > 0 {
            return None;
        }
        self.cache.next_opportunistic().map(|request| self.at_once(request))
    }

    /// A request that was in no queue.
    fn at_once(&mut self, request: DiskRequest) -> Waiting {
        let waiting = waiting(&self.drive, &request, self.now);
        self.inner.arrived(self.now, &waiting, None);
        begin(&mut self.under_way, request);
        waiting
    }

    fn under_way(&mut self, sequence: u64) -> &mut Option<UnderWay> {
        &mut self.under_way[DiskRequest::slot(sequence - DISK_REQUESTS) as usize]
    }

    fn submit_inside(&mut self, waiting: &Waiting) {
        let request = self.under_way(waiting.sequence).as_ref().expect("it was queued").request;
        let passed = match request.purpose {
            Purpose::Fetch => self.passed(waiting),
            Purpose::ReadAhead | Purpose::Opportunistic => NONE_PASSED,
            Purpose::WriteThrough | Purpose::Destage => {
                self.cache.end_read_on();
                NONE_PASSED
            }
        };
        self.last = Some(LastRequest {
            end: (request.start + request.blocks).get(),
            sequence: waiting.sequence,
            is_read: request.op() == Op::Read,
            done: None,
        });
        self.submitted += 1;
        *self.under_way(waiting.sequence) = Some(UnderWay { passed, ..UnderWay::new(request) });
        self.inner.submit(self.now, waiting);
        self.begin_in_gaps(waiting.sequence);
    }

    /// The device has planned the gaps of the request that it has just taken.
    fn begin_in_gaps(&mut self, sequence: u64) {
        let Some(gaps) = self.inner.planner().and_then(Planner::gap_writer) else { return };
        let size = self.cache.spec().cache_block().get();
        let written: Vec<_> =
            gaps.take_written().into_iter().map(|start| start.get()..start.get() + size).collect();
        written.iter().for_each(|blocks| self.cache.begin_in_gap(blocks.clone()));
        if let Some(under_way) = self.under_way(sequence) {
            under_way.in_gap = written;
        }
    }

    /// Blocks that pass the head before the first data of a fetch. A head that reads on behind its last
    /// block arrives only just in time, and has no blocks before its target: an access has one or the other.
    fn passed(&self, waiting: &Waiting) -> Passed {
        let spec = self.cache.spec().opportunistic;
        if !spec.free_blocks && !spec.just_in_time_seek {
            return NONE_PASSED;
        }
        let (at, head) = self.inner.free_at(self.now);
        // The head waits for the whole sector that the target begins in.
        let first = self.sectors.first(&self.drive, &waiting.target);
        let rotate = self.drive.positioning(at, head, &first).rotate;
        let reads_on =
            if spec.just_in_time_seek { self.passed_at_source(at, head, rotate) } else { None };
        match reads_on {
            Some(passed) => passed,
            None if spec.free_blocks => self.passed_at_target(waiting.target.start, rotate),
            None => NONE_PASSED,
        }
    }

    /// The head stays where it is as long as it can, and reads on behind its last block. None where no
    /// block is to be read there: that block was written, another block has passed since, the track has
    /// ended, or memory holds what would pass.
    fn passed_at_source(
        &self,
        at: SimTime,
        head: Position,
        latency: SimDuration,
    ) -> Option<Passed> {
        let last =
            self.last.filter(|last| last.is_read && last.done.is_none_or(|done| done == at))?;
        let block = Lbn::new(last.end.checked_sub(1)?);
        let place = self.drive.layout().locate(block);
        if (place.cylinder, place.surface) != (head.cylinder, head.surface) {
            return None;
        }
        let Passing { track, blocks } = self.passing(block, latency);
        // The sector of the last block has passed the head already.
        let start = last.end.next_multiple_of(self.sectors.blocks().into());
        let end = (start + blocks).min(track.end);
        if end <= start || self.cache.holds_all(last.end..end) {
            return None;
        }
        let turn_ns = self.drive.rotation().period_ns();
        let reading_on_ns = turn_ns * (end - start) / (track.end - track.start);
        Some(Passed {
            kind: PrefetchKind::JustInTimeSeek,
            parts: [last.end..end, 0..0],
            reading_on: SimDuration::from_ns(reading_on_ns),
        })
    }

    /// The head is on the target's track for the whole latency. Blocks pass in the order of the track,
    /// from its end to its start again, and then the rest of the sector that the target begins in.
    fn passed_at_target(&self, target: Lbn, latency: SimDuration) -> Passed {
        let Passing { track, blocks } = self.passing(target, latency);
        let sector = u64::from(self.sectors.blocks());
        let first = target.get() - target.get() % sector;
        let before = first.saturating_sub(track.start);
        let wrapped = blocks.saturating_sub(before).min(track.end - first);
        let from = (track.end - wrapped).next_multiple_of(sector);
        let parts = [from..track.end, first - blocks.min(before)..target.get()];
        Passed { parts, ..NONE_PASSED }
    }

    /// Blocks that pass a head on the track of `block`, in whole sectors.
    fn passing(&self, block: Lbn, time: SimDuration) -> Passing {
        let (first, end) = self.drive.layout().track_bounds(block);
        let sector = self.sectors.blocks();
        // The blocks of a whole track, where slips and spares are few.
        let on_track = (end.get() - first.get()) as u32;
        let sectors = self.drive.rotation().parts_passing(time, on_track / sector);
        Passing { track: first.get()..end.get(), blocks: sectors * u64::from(sector) }
    }

    /// A disk request is done.
    fn disk_done(&mut self, done: &Done) {
        self.submitted -= 1;
        let under_way = self.under_way(done.sequence).take();
        let UnderWay { request, passed, in_gap } = under_way.expect("it was submitted");
        in_gap.into_iter().for_each(|blocks| self.cache.written_in_gap(blocks, self.now));
        if let Some(last) = self.last.as_mut().filter(|last| last.sequence == done.sequence) {
            last.done = Some(self.now);
        }
        let spent = done.served.overhead + done.served.head();
        // While the head reads on, it does not serve the request that waits (tr03 section 3.4).
        let reading_on = passed.reading_on.min(done.served.rotate);
        self.service.before_seeks += reading_on;
        let served = Served { rotate: done.served.rotate - reading_on, ..done.served };
        match request.purpose {
            Purpose::Fetch | Purpose::ReadAhead => &mut self.service.read,
            Purpose::WriteThrough | Purpose::Destage => &mut self.service.write,
            Purpose::Opportunistic => &mut self.service.opportunistic,
        }
        .add(&served);
        if request.purpose == Purpose::Fetch {
            self.service.fetch.add(&served);
        }
        self.service.prefetch += match request.purpose {
            Purpose::ReadAhead => spent,
            Purpose::Fetch => {
                done.served.transfer * request.prefetched.get() / request.blocks.get()
            }
            _ => SimDuration::ZERO,
        };
        let Passed { kind, parts, .. } = passed;
        self.cache.ended(&request, &parts.map(|part| (kind, part)), self.now);
        let served = match request.purpose {
            Purpose::Fetch | Purpose::WriteThrough => done.served,
            _ => hit(self.now),
        };
        self.collect(served);
        self.must_pick = true;
    }

    /// Handles the event of the device at this instant.
    fn advance_inside(&mut self) -> Option<Done> {
        let done = self.inner.advance(self.now);
        self.must_pick = true;
        match done {
            Some(done) if done.sequence >= DISK_REQUESTS => self.disk_done(&done),
            // The end of a flush is the engine's.
            Some(done) => return Some(done),
            None => {}
        }
        self.answers.pop_front()
    }
}

/// A disk request enters a queue or goes to the device at once.
fn begin(under_way: &mut Vec<Option<UnderWay>>, request: DiskRequest) {
    let at = DiskRequest::slot(request.id) as usize;
    under_way.resize(under_way.len().max(at + 1), None);
    under_way[at] = Some(UnderWay::new(request));
}

/// A request that memory answered at `now`.
fn hit(now: SimTime) -> Served {
    Served { hit: true, end: now, ..Served::default() }
}

fn waiting(drive: &Drive, request: &DiskRequest, now: SimTime) -> Waiting {
    let target = drive.target(request.start, request.blocks, request.op());
    Waiting {
        target,
        arrival: now,
        sequence: DISK_REQUESTS + request.id,
        fua: request.fua,
        mark: CommandMark::None,
    }
}

/// Blocks that pass a head.
struct Passing {
    /// All blocks of its track.
    track: Range<u64>,
    /// Number of blocks that pass.
    blocks: u64,
}

impl<D: Device> Device for CachedDevice<D> {
    fn has_room(&self) -> bool {
        self.clients_requests.len() < self.depth as usize
    }

    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        self.inner.free_at(now)
    }

    /// The queue in front of a cache is a plain one, and most requests never reach the media.
    #[inline]
    fn target(&self, drive: &Drive, start: Lbn, blocks: Blocks, op: Op) -> Target {
        drive.unplaced_target(start, blocks, op)
    }

    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        self.now = now;
        let Waiting { sequence, arrival, .. } = *waiting;
        let slot = self.clients_requests.insert(ClientsRequest { sequence, arrival });
        let target = &waiting.target;
        let request = CacheRequest {
            tag: slot as u64,
            op: target.op,
            start: target.start,
            blocks: Blocks::new(target.blocks.into()),
            fua: waiting.fua,
        };
        self.cache.arrive(request, now);
        self.mark = waiting.mark;
        self.collect(hit(now));
        self.mark = CommandMark::None;
        self.must_pick = true;
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.now = now;
        let Some(point) = self.cache.flush_point() else {
            return self.inner.flush(now, sequence);
        };
        self.flushes.push_back(WaitingFlush { sequence, point });
        self.must_pick = true;
        true
    }

    fn trim(&mut self, now: SimTime, blocks: BlockRange<Lbn>) -> bool {
        self.now = now;
        self.cache.trim(blocks, now);
        if let Some(gaps) = self.inner.planner().and_then(Planner::gap_writer) {
            gaps.forget(blocks.start, blocks.blocks, now);
        }
        self.collect(hit(now));
        self.must_pick = true;
        true
    }

    fn next_event(&self) -> Option<NextEvent> {
        if !self.answers.is_empty() {
            return Some(NextEvent::Completion(self.now));
        }
        let inner = self.inner.next_event();
        if matches!(inner, Some(NextEvent::Completion(time)) if time <= self.now) {
            return inner;
        }
        if self.must_pick {
            return Some(NextEvent::Decision(self.now));
        }
        let due = self.cache.next_due(self.now);
        match (inner, due) {
            (Some(inner), Some(due)) if due < inner.time() => Some(NextEvent::Decision(due)),
            (None, Some(due)) => Some(NextEvent::Decision(due)),
            (inner, _) => inner,
        }
    }

    fn advance(&mut self, now: SimTime) -> Option<Done> {
        self.now = now;
        if let Some(done) = self.answers.pop_front() {
            return Some(done);
        }
        let inner = self.inner.next_event().filter(|event| event.time() <= now);
        match inner {
            // Requests that wait go to the device before the device decides.
            Some(NextEvent::Completion(_)) => self.advance_inside(),
            Some(NextEvent::Decision(_)) if !self.must_pick => self.advance_inside(),
            _ => {
                self.must_pick = false;
                self.pick();
                None
            }
        }
    }

    fn work(&self, now: SimTime) -> Work {
        let counts = self.cache.counts(now);
        let buffered = counts.buffered;
        let unbuffered = counts.writes - buffered.writes;
        let cache = CacheWork {
            reads: counts.reads,
            read_misses: counts.read_misses,
            reads_of_blocks_in_flight: counts.reads_of_blocks_in_flight,
            writes: counts.writes,
            write_misses: buffered.misses + unbuffered,
            stalled_writes: counts.stalled_writes,
            destages: buffered.destages,
            in_gaps_bytes: bytes(buffered.in_gaps_blocks),
            demand_bytes: bytes(counts.demand_blocks),
            prefetched_bytes: bytes(counts.prefetched_blocks),
            opportunistic_bytes: bytes(counts.opportunistic_blocks),
            prefetch: PrefetchWork::new(
                &counts.prefetch,
                self.service.prefetch.ns(),
                self.service.opportunistic.time.ns(),
            ),
            at_risk_max_bytes: bytes(buffered.at_risk_max),
            at_risk_byte_ns: buffered.at_risk_ns * u128::from(freewheel_units::BLOCK_BYTES),
            read_service_ns: self.service.read.time.ns(),
            write_service_ns: self.service.write.time.ns(),
            opportunistic_ns: (self.service.opportunistic.time + self.service.before_seeks).ns(),
            read_head: self.service.read.parts,
            fetch_head: self.service.fetch.parts,
            write_head: self.service.write.parts,
        };
        Work { cache: Some(cache), ..self.inner.work(now) }
    }
}

fn bytes(blocks: u64) -> u64 {
    blocks * freewheel_units::BLOCK_BYTES
}
