//! A device behind the cache of a storage system, with queues between the two.
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

use freewheel_model::cache::{CacheRequest, DiskRequest, Purpose, StorageCache};
use freewheel_model::drive::{Drive, Position};
use freewheel_model::electronics::{Done, NextEvent, Served};
use freewheel_model::sched::{Moment, Policy, Waiting};
use freewheel_units::{Blocks, Lbn, SimDuration, SimTime};

use crate::cache_work::CacheWork;
use crate::device::{Device, Work};

/// Disk requests have numbers from here on: requests of the engine never come this far.
const DISK_REQUESTS: u64 = 1 << 62;

/// Head time by what it was spent on.
#[derive(Debug, Clone, Copy, Default)]
struct ServiceTimes {
    read: SimDuration,
    write: SimDuration,
    opportunistic: SimDuration,
}

/// A request on the device.
struct Submitted {
    request: DiskRequest,
    /// Blocks that pass the head on its way.
    passed: Vec<Range<u64>>,
}

/// A device with a cache in front.
pub struct CachedDevice<D> {
    inner: D,
    drive: Arc<Drive>,
    cache: StorageCache,
    depth: u32,
    /// Requests that are not done: sequence, and arrival.
    clients_requests: Vec<(u64, SimTime)>,
    clients: Box<dyn Policy>,
    destages: Box<dyn Policy>,
    /// Requests in either queue.
    queued: Vec<DiskRequest>,
    submitted: Vec<Submitted>,
    /// Requests that are done, and not reported yet.
    answers: VecDeque<Done>,
    /// Flushes that wait for destages.
    flushes: Vec<u64>,
    /// The last block that the head passed.
    last_end: u64,
    service: ServiceTimes,
    /// Something has changed since the device was last offered work.
    must_pick: bool,
    now: SimTime,
}

impl<D: Device> CachedDevice<D> {
    /// Puts `cache` in front of `inner`, which does at most `depth` requests at once. `policies` order
    /// the clients' requests and the destages.
    pub fn new(
        inner: D,
        drive: &Arc<Drive>,
        cache: StorageCache,
        depth: u32,
        policies: [Box<dyn Policy>; 2],
    ) -> Self {
        let [clients, destages] = policies;
        Self {
            inner,
            drive: Arc::clone(drive),
            cache,
            depth,
            clients_requests: Vec::new(),
            clients,
            destages,
            queued: Vec::new(),
            submitted: Vec::new(),
            answers: VecDeque::new(),
            flushes: Vec::new(),
            last_end: 0,
            service: ServiceTimes::default(),
            must_pick: false,
            now: SimTime::ZERO,
        }
    }

    /// Answers requests and queues disk requests, as the cache says.
    fn collect(&mut self, served: Served) {
        let Self { cache, answers, inner, clients, clients_requests, queued, drive, now, .. } =
            self;
        cache.take_answered(|sequence| {
            let at = clients_requests.iter().position(|&(other, _)| other == sequence);
            let (_, arrival) = clients_requests.swap_remove(at.expect("its request was taken"));
            // A read that joined a fetch under way waited for a part of it only.
            let is_own = served.overhead + served.head() <= *now - arrival;
            let served = if is_own { served } else { hit(*now) };
            answers.push_back(Done { sequence, served, flush: false });
        });
        cache.take_issued(|request| {
            let waiting = waiting(drive, &request, *now);
            inner.arrived(*now, &waiting, None);
            queued.push(request);
            clients.push(waiting);
        });
        if !self.flushes.is_empty() && !self.cache.must_drain() {
            self.end_flushes();
        }
    }

    /// The buffer is empty: what remains is the device's own cache.
    fn end_flushes(&mut self) {
        for sequence in std::mem::take(&mut self.flushes) {
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
            self.queued.push(request);
            self.destages.push(waiting);
        }
    }

    /// Gives the device requests while it has room.
    fn pick(&mut self) {
        self.queue_destages();
        while self.inner.has_room() {
            let Some((waiting, request)) = self.next() else { break };
            self.submit_inside(&waiting, request);
        }
    }

    fn next(&mut self) -> Option<(Waiting, DiskRequest)> {
        if let Some(request) = self.cache.next_at_once() {
            return Some(self.at_once(request));
        }
        let (at, head) = self.inner.free_at(self.now);
        let drive = Arc::clone(&self.drive);
        let moment = Moment { now: at, head, drive: &drive };
        if self.cache.is_short() {
            while let Some(destage) = self.destages.pick(&moment) {
                self.clients.push(destage);
            }
        }
        let picked = self.clients.pick(&moment).or_else(|| self.destages.pick(&moment));
        if let Some(waiting) = picked {
            let id = waiting.sequence - DISK_REQUESTS;
            let at = self.queued.iter().position(|request| request.id == id);
            return Some((waiting, self.queued.swap_remove(at.expect("it was queued"))));
        }
        // Reading on stops for everything, so it begins only on a device that has nothing to do.
        if !self.submitted.is_empty() {
            return None;
        }
        self.cache.next_opportunistic().map(|request| self.at_once(request))
    }

    /// A request that was in no queue.
    fn at_once(&mut self, request: DiskRequest) -> (Waiting, DiskRequest) {
        let waiting = waiting(&self.drive, &request, self.now);
        self.inner.arrived(self.now, &waiting, None);
        (waiting, request)
    }

    fn submit_inside(&mut self, waiting: &Waiting, request: DiskRequest) {
        let passed = match request.purpose {
            Purpose::Fetch => self.passed(waiting),
            Purpose::ReadAhead | Purpose::Opportunistic => Vec::new(),
            Purpose::WriteThrough | Purpose::Destage => {
                self.cache.end_read_on();
                Vec::new()
            }
        };
        self.last_end = (request.start + request.blocks).get();
        self.submitted.push(Submitted { request, passed });
        self.inner.submit(self.now, waiting);
    }

    /// Blocks that pass the head before the first data of a fetch.
    fn passed(&self, waiting: &Waiting) -> Vec<Range<u64>> {
        let spec = self.cache.spec().opportunistic;
        if !spec.free_blocks && !spec.just_in_time_seek {
            return Vec::new();
        }
        let (at, head) = self.inner.free_at(self.now);
        let rotate = self.drive.positioning(at, head, &waiting.target).rotate;
        if spec.just_in_time_seek {
            return self.passed_at_source(head, rotate).into_iter().collect();
        }
        self.passed_at_target(waiting.target.start, rotate)
    }

    /// The head stays where it is for the whole latency, and reads on behind its last block.
    fn passed_at_source(&self, head: Position, latency: SimDuration) -> Option<Range<u64>> {
        let last = self.last_end.checked_sub(1)?;
        let track = Track::of(&self.drive, Lbn::new(last));
        let is_there =
            (track.position.cylinder, track.position.surface) == (head.cylinder, head.surface);
        let blocks = latency.ns() / track.block_ns;
        let end = (self.last_end + blocks).min(track.blocks.end);
        (is_there && end > self.last_end).then_some(self.last_end..end)
    }

    /// The head is on the target's track for the whole latency. Blocks pass in the order of the track,
    /// from its end to its start again.
    fn passed_at_target(&self, target: Lbn, latency: SimDuration) -> Vec<Range<u64>> {
        let track = Track::of(&self.drive, target);
        let count = latency.ns() / track.block_ns;
        let before = target.get() - track.blocks.start;
        let wrapped = count.saturating_sub(before).min(track.blocks.end - target.get());
        let parts = [
            track.blocks.end - wrapped..track.blocks.end,
            target.get() - count.min(before)..target.get(),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect()
    }

    /// A disk request is done.
    fn disk_done(&mut self, done: &Done) {
        let id = done.sequence - DISK_REQUESTS;
        let at = self.submitted.iter().position(|submitted| submitted.request.id == id);
        let Submitted { request, passed } =
            self.submitted.swap_remove(at.expect("it was submitted"));
        let spent = done.served.overhead + done.served.head();
        *match request.purpose {
            Purpose::Fetch | Purpose::ReadAhead => &mut self.service.read,
            Purpose::WriteThrough | Purpose::Destage => &mut self.service.write,
            Purpose::Opportunistic => &mut self.service.opportunistic,
        } += spent;
        self.cache.ended(&request, &passed, self.now);
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

/// A request that memory answered at `now`.
fn hit(now: SimTime) -> Served {
    Served { hit: true, end: now, ..Served::default() }
}

fn waiting(drive: &Drive, request: &DiskRequest, now: SimTime) -> Waiting {
    let target = drive.target(request.start, request.blocks, request.op());
    Waiting { target, arrival: now, sequence: DISK_REQUESTS + request.id, fua: false }
}

/// The track of a block.
struct Track {
    position: Position,
    /// Its blocks. Slipped and spare sectors are left out of account, so the first and the last may lie
    /// on a neighbour.
    blocks: Range<u64>,
    /// Time in which a block passes the head.
    block_ns: u64,
}

impl Track {
    fn of(drive: &Drive, block: Lbn) -> Self {
        let run = drive.layout().run(block, 1);
        let on_track = u64::from(drive.layout().zones()[run.zone].blocks_per_track());
        let start = block.get().saturating_sub(u64::from(run.at.sector));
        Self {
            position: Position { cylinder: run.at.cylinder, surface: run.at.surface },
            blocks: start..(start + on_track).min(drive.blocks().get()),
            block_ns: drive.rotation().period().ns() / on_track,
        }
    }
}

impl<D: Device> Device for CachedDevice<D> {
    fn has_room(&self) -> bool {
        self.clients_requests.len() < self.depth as usize
    }

    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        self.inner.free_at(now)
    }

    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        self.now = now;
        self.clients_requests.push((waiting.sequence, waiting.arrival));
        let target = &waiting.target;
        let request = CacheRequest {
            tag: waiting.sequence,
            op: target.op,
            start: target.start,
            blocks: Blocks::new(target.blocks.into()),
            fua: waiting.fua,
        };
        self.cache.arrive(request, now);
        self.collect(hit(now));
        self.must_pick = true;
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.now = now;
        if !self.cache.must_drain() {
            return self.inner.flush(now, sequence);
        }
        self.cache.drain();
        self.flushes.push(sequence);
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
        let counts = self.cache.counts();
        let bytes = |blocks: u64| blocks * freewheel_units::BLOCK_BYTES;
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
            demand_bytes: bytes(counts.demand_blocks),
            prefetched_bytes: bytes(counts.prefetched_blocks),
            opportunistic_bytes: bytes(counts.opportunistic_blocks),
            at_risk_max_bytes: bytes(buffered.at_risk_max),
            at_risk_byte_ns: buffered.at_risk_ns * u128::from(freewheel_units::BLOCK_BYTES),
            read_service_ns: self.service.read.ns(),
            write_service_ns: self.service.write.ns(),
            opportunistic_ns: self.service.opportunistic.ns(),
        };
        Work { cache: Some(cache), ..self.inner.work(now) }
    }
}
