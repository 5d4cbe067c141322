//! The loop that owns virtual time.

use std::sync::Arc;

use freewheel_freeblock::tasks::Promoted;
use freewheel_model::array::{Piece, Striping};
use freewheel_model::drive::Drive;
use freewheel_model::electronics::{Done, NextEvent, Served};
use freewheel_model::sched::{Moment, Policy, Waiting};
use freewheel_units::{Blocks, Op, SimTime};

use crate::calendar::{Calendar, NEVER};
use crate::completion::Completion;
use crate::device::{Device, Work};
use crate::flush::FlushOrder;
use crate::pending::{Pending, PendingRequests};
use crate::promoted::PromotedRequests;
use crate::result::{RunResult, Tally};
use crate::source::{Request, Source, SourceError};
use crate::zoned::{Refusal, VolumeZones};

/// An arm with its queue outside the drive.
pub struct Arm<D> {
    /// What the policy predicts with.
    pub drive: Arc<Drive>,
    /// The queue.
    pub policy: Box<dyn Policy>,
    /// The arm itself.
    pub device: D,
}

/// Arms in virtual time: arrivals in, completions out.
struct Engine<'a, D, S> {
    striping: &'a Striping,
    zones: Option<VolumeZones>,
    arms: &'a mut [Arm<D>],
    source: &'a mut S,
    observer: &'a mut dyn FnMut(&Completion),
    now: SimTime,
    calendar: Calendar,
    /// Arms that may have work to give out at this instant, each once.
    touched: TouchedArms,
    pending: PendingRequests,
    promoted: PromotedRequests,
    flushes: FlushOrder,
    tally: Tally,
}

/// Runs until the source has nothing more and everything is done.
///
/// Every completion is shown to `observer`, in order of time. `zones` are those of host-managed
/// drives. Panics when there are not as many `arms` as `striping` has.
pub fn run<D: Device, S: Source>(
    striping: &Striping,
    zones: Option<VolumeZones>,
    arms: &mut [Arm<D>],
    source: &mut S,
    observer: &mut dyn FnMut(&Completion),
) -> Result<RunResult, SourceError> {
    tally(striping, zones, arms, source, observer).map(Tally::result)
}

/// As [`run`], for sums over several runs.
pub(crate) fn tally<D: Device, S: Source>(
    striping: &Striping,
    zones: Option<VolumeZones>,
    arms: &mut [Arm<D>],
    source: &mut S,
    observer: &mut dyn FnMut(&Completion),
) -> Result<Tally, SourceError> {
    assert_eq!(striping.arms() as usize, arms.len(), "arms of the array");
    let arms_count = arms.len();
    let mut calendar = Calendar::new(arms_count);
    for (number, arm) in arms.iter().enumerate() {
        calendar.set(number as u32, key(arm.device.next_event()));
    }
    let mut engine = Engine {
        striping,
        zones,
        arms,
        source,
        observer,
        now: SimTime::ZERO,
        calendar,
        touched: TouchedArms::new(arms_count),
        pending: PendingRequests::default(),
        promoted: PromotedRequests::default(),
        flushes: FlushOrder::default(),
        tally: Tally::default(),
    };
    while engine.step()? {}
    let Engine { mut tally, now, arms, .. } = engine;
    let work: Vec<Work> = arms.iter().map(|arm| arm.device.work()).collect();
    let media_rate = arms[0].drive.mean_media_rate_bytes_per_second();
    tally.end(now, &work, media_rate.round() as u64);
    Ok(tally)
}

/// Place of an event in time: at one instant completions come first, then arrivals; then arms are
/// given work, and last of all drives decide from all that is known.
#[inline]
fn key(event: Option<NextEvent>) -> u64 {
    match event {
        None => NEVER,
        Some(NextEvent::Completion(time)) => 2 * time.ns(),
        Some(NextEvent::Decision(time)) => 2 * time.ns() + 1,
    }
}

impl<D: Device, S: Source> Engine<'_, D, S> {
    /// Handles the next event; false when there is none.
    #[inline]
    fn step(&mut self) -> Result<bool, SourceError> {
        let arrival = self.source.next_arrival()?;
        let arrival_key = arrival.map_or(NEVER, |arrival| 2 * arrival.ns());
        if arrival_key.min(self.calendar.first().0) > 2 * self.now.ns() {
            self.dispatch(arrival.is_some());
        }
        let (arm_key, arm) = self.calendar.first();
        let next = arrival_key.min(arm_key);
        // What is left then is work in idle time, which goes on for ever.
        if next == NEVER || arrival.is_none() && self.pending.is_empty() {
            return Ok(false);
        }
        let time = SimTime::from_ns(next / 2);
        assert!(time >= self.now, "an event at {time} is in the past at {}", self.now);
        self.now = time;
        if arm_key <= arrival_key {
            self.advance(arm);
        } else {
            self.arrive();
        }
        Ok(true)
    }

    #[inline]
    fn arrive(&mut self) {
        let request = self.source.take();
        self.tally.arrived(self.now);
        // Nothing on the media changes, and no later request waits for it.
        if request.op == Op::Trim {
            if let Some(zones) = &mut self.zones {
                zones.trim(request.start, request.blocks);
            }
            let served = Served { end: self.now, ..Served::default() };
            return self.report(request, self.now, &served);
        }
        if let Some(refusal) = self.refusal(&request) {
            return self.refuse(request, refusal);
        }
        let sequence = self.pending.push(request, self.now);
        if request.op == Op::Flush {
            self.pending.set_pieces(sequence, 1);
            self.flushes.flush_arrived(sequence);
            return self.start_flushes();
        }
        if request.op == Op::Write {
            self.flushes.write_arrived(sequence);
        }
        let now = self.now;
        let mut taken = 0;
        let Self { striping, arms, touched, promoted, pending, .. } = self;
        let mut push = |piece: Piece| {
            let arm = &mut arms[piece.arm as usize];
            let target = arm.drive.target(piece.start, piece.blocks, request.op);
            let waiting = Waiting { target, arrival: now, sequence, fua: request.fua };
            if arm.device.takes(now, &waiting) {
                taken += 1;
                // What memory has no room for any more may have to be written.
                touched.push(piece.arm);
                return;
            }
            if request.op == Op::Write {
                while let Some(read) = arm.device.read_before(now, &waiting) {
                    begin_promoted(arm, piece.arm, pending, promoted, (read, now));
                    touched.push(piece.arm);
                }
            }
            arm.device.arrived(now, &waiting, None);
            if let Some(waiting) = promoted.pass(piece.arm, waiting) {
                arm.policy.push(waiting);
                touched.push(piece.arm);
            }
        };
        let pieces = striping.for_each_piece(request.start, request.blocks, &mut push);
        if taken < pieces {
            return self.pending.set_pieces(sequence, pieces - taken);
        }
        self.pending.set_pieces(sequence, 1);
        let served = Served { end: now, ..Served::default() };
        self.piece_done(&Done { sequence, served, flush: false });
    }

    /// Why the drive refuses the request, if it does.
    #[inline]
    fn refusal(&mut self, request: &Request) -> Option<Refusal> {
        let zones = self.zones.as_mut().filter(|_| request.op == Op::Write)?;
        zones.write(request.start, request.blocks).err()
    }

    /// Nothing of it is written, so no flush waits for it.
    #[cold]
    fn refuse(&mut self, request: Request, refusal: Refusal) {
        let completion = Completion::refused(request, self.now, refusal);
        self.tally.refused(&completion, refusal);
        (self.observer)(&completion);
        self.source.completed(request.tag, self.now);
    }

    /// Gives arms with room their next requests. `more` are known to arrive.
    #[inline]
    fn dispatch(&mut self, more: bool) {
        while let Some(number) = self.touched.pop() {
            // Nothing is promoted when the foreground is over.
            if more || self.tally.is_waiting() {
                self.promote(number);
            }
            let arm = &mut self.arms[number as usize];
            while arm.device.has_room() {
                let (now, head) = arm.device.free_at(self.now);
                let picked = arm.policy.pick(&Moment { now, head, drive: &arm.drive });
                let Some(picked) = picked else { break };
                arm.device.submit(self.now, &picked);
            }
            self.calendar.set(number, key(arm.device.next_event()));
        }
    }

    /// Makes foreground requests of what background work has promoted.
    #[inline]
    fn promote(&mut self, number: u32) {
        let Self { arms, pending, promoted, now, .. } = self;
        let arm = &mut arms[number as usize];
        while let Some(request) = arm.device.promote(*now) {
            begin_promoted(arm, number, pending, promoted, (request, *now));
        }
    }

    #[inline]
    fn advance(&mut self, number: u32) {
        let arm = &mut self.arms[number as usize];
        let done = arm.device.advance(self.now);
        self.calendar.set(number, key(arm.device.next_event()));
        if let Some(done) = done {
            self.touched.push(number);
            self.piece_done(&done);
        } else if arm.device.has_room() {
            // Requests may have waited for the end of work in idle time.
            self.touched.push(number);
        }
    }

    #[inline]
    fn piece_done(&mut self, done: &Done) {
        let Some(pending) = self.pending.piece_done(done.sequence, done.served.hit) else { return };
        let Some(request) = pending.request else {
            for (arm, waiting) in self.promoted.end(done.sequence) {
                self.arms[arm as usize].policy.push(waiting);
                self.touched.push(arm);
            }
            return;
        };
        self.report(request, pending.arrival, &Served { hit: pending.hit, ..done.served });
        if request.op == Op::Write && self.flushes.write_done(done.sequence) {
            self.start_flushes();
        }
    }

    /// Passes on the flushes for which every write before them is done.
    fn start_flushes(&mut self) {
        while let Some(sequence) = self.flushes.next_done() {
            let mut waits = 0;
            for (number, arm) in self.arms.iter_mut().enumerate() {
                if arm.device.flush(self.now, sequence) {
                    waits += 1;
                    self.calendar.set(number as u32, key(arm.device.next_event()));
                }
            }
            if waits > 0 {
                self.pending.set_pieces(sequence, waits);
            } else if let Some(Pending { request: Some(request), arrival, .. }) =
                self.pending.piece_done(sequence, false)
            {
                self.report(request, arrival, &Served { end: self.now, ..Served::default() });
            }
        }
    }

    /// A request is done, its last piece served like this.
    #[inline]
    fn report(&mut self, request: Request, arrival: SimTime, served: &Served) {
        let completion = Completion::new(request, arrival, served);
        self.tally.completed(&completion);
        (self.observer)(&completion);
        self.source.completed(request.tag, self.now);
    }
}

/// Makes a foreground request of an arm's background work, at this moment.
fn begin_promoted<D: Device>(
    arm: &mut Arm<D>,
    number: u32,
    pending: &mut PendingRequests,
    promoted: &mut PromotedRequests,
    (request, now): (Promoted, SimTime),
) {
    let Promoted { id, op, start, blocks, precedes_writes } = request;
    let target = arm.drive.target(start, Blocks::new(blocks.into()), op);
    let sequence = pending.push_promoted(now);
    let waiting = Waiting { target, arrival: now, sequence, fua: false };
    arm.device.arrived(now, &waiting, Some(id));
    if precedes_writes {
        promoted.begin(number, waiting);
    }
    arm.policy.push(waiting);
}

/// Arms in the order they were touched, each once.
struct TouchedArms {
    list: Vec<u32>,
    marked: Vec<bool>,
}

impl TouchedArms {
    fn new(arms: usize) -> Self {
        Self { list: Vec::new(), marked: vec![false; arms] }
    }

    #[inline]
    fn push(&mut self, arm: u32) {
        if !std::mem::replace(&mut self.marked[arm as usize], true) {
            self.list.push(arm);
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        let arm = self.list.pop()?;
        self.marked[arm as usize] = false;
        Some(arm)
    }
}
