//! The loop that owns virtual time.
//!
//! ```text
//!   source -> map -> cache -> queue -> pick -> gap -> drive -> completion
//! ```
//! source: `crate::source`; map: `map.rs`, with `zoned.rs`; cache: `crate::cached`; queue: `queue.rs`, with
//! `promoted.rs`; pick: `pick.rs`; gap: `crate::arm_executor`; drive: `crate::device`; completion:
//! `crate::completion`, with `pending.rs` and `flush.rs`; warm-up and slices: `parts.rs`. An absent stage costs a test of an `Option`.

mod calendar;
mod flush;
mod map;
mod parts;
mod pending;
mod pick;
mod promoted;
mod queue;
mod zoned;

use freewheel_model::cache::BlockRange;
use freewheel_model::electronics::{Done, LimitEnd, NextEvent, Served};
use freewheel_model::sched::Waiting;
use freewheel_model::striping::{Piece, Striping};
use freewheel_units::{Blocks, Op, SimTime};

use self::calendar::{Calendar, NEVER};
use self::flush::FlushOrder;
use self::map::VolumeMap;
use self::pending::Pending;
use self::pick::TouchedArms;
use self::queue::Requests;
use crate::completion::{Completion, Refusal};
use crate::device::{Device, Work};
use crate::result::{RunResult, Tally};
use crate::source::{Request, Source, SourceError};

pub(crate) use map::VolumeLayout;
pub(crate) use parts::RunParts;
pub use queue::Arm;
pub use zoned::VolumeZones;

/// Arms in virtual time: arrivals in, completions out.
struct Engine<'a, D, S> {
    map: VolumeMap<'a>,
    arms: &'a mut [Arm<D>],
    source: &'a mut S,
    observer: &'a mut dyn FnMut(&Completion),
    now: SimTime,
    calendar: Calendar,
    /// Arms that may have work to give out at this instant, each once.
    touched: TouchedArms,
    requests: Requests,
    flushes: FlushOrder,
    parts: RunParts,
    tally: Tally,
}

/// Runs until the source is exhausted and every request is done.
///
/// The engine shows every completion to `observer`, in order of time. `zones` are those of host-managed
/// drives. Panics when the number of `arms` is not that of `striping`.
pub fn run<D: Device, S: Source>(
    striping: &Striping,
    zones: Option<VolumeZones>,
    arms: &mut [Arm<D>],
    source: &mut S,
    observer: &mut dyn FnMut(&Completion),
) -> Result<RunResult, SourceError> {
    let parts = RunParts::whole();
    let layout = VolumeLayout::Striped(striping);
    tally(layout, zones, arms, source, parts, observer).map(Tally::result)
}

/// Like [`run`], in parts, for sums over several runs, and for any layout.
pub(crate) fn tally<D: Device, S: Source>(
    layout: VolumeLayout<'_>,
    zones: Option<VolumeZones>,
    arms: &mut [Arm<D>],
    source: &mut S,
    parts: RunParts,
    observer: &mut dyn FnMut(&Completion),
) -> Result<Tally, SourceError> {
    assert_eq!(layout.arms() as usize, arms.len(), "arms of the array");
    let arms_count = arms.len();
    let mut calendar = Calendar::new(arms_count);
    for (number, arm) in arms.iter().enumerate() {
        calendar.set(number as u32, key(arm.device.next_event()));
    }
    let mut tally = Tally::with_warm_up(parts.warm_up);
    if matches!(layout, VolumeLayout::Files(_)) {
        tally.count_disks(arms_count);
    }
    let mut engine = Engine {
        map: VolumeMap { layout, zones },
        arms,
        source,
        observer,
        now: SimTime::ZERO,
        calendar,
        touched: TouchedArms::new(arms_count),
        requests: Requests::default(),
        flushes: FlushOrder::default(),
        tally,
        parts,
    };
    engine.begin_parts();
    while engine.step()? {}
    let Engine { mut tally, now, arms, .. } = engine;
    let work: Vec<Work> = arms.iter().map(|arm| arm.device.work(now)).collect();
    let media_rates = arms.iter().map(|arm| arm.drive.mean_media_rate_bytes_per_second());
    let media_rate = media_rates.sum::<f64>() / arms_count as f64;
    tally.end(now, &work, media_rate.round() as u64);
    Ok(tally)
}

/// Orders events of one instant: completions, arrivals, the dispatch of work to arms, and last the
/// decisions of drives. Then policies and drives decide with all that is known at that instant.
#[inline]
fn key(event: Option<NextEvent>) -> u64 {
    match event {
        None => NEVER,
        Some(NextEvent::Completion(time)) => 2 * time.ns(),
        Some(NextEvent::Decision(time)) => 2 * time.ns() + 1,
    }
}

impl<D: Device, S: Source> Engine<'_, D, S> {
    /// Handles the next event; false at the end of the run.
    #[inline]
    fn step(&mut self) -> Result<bool, SourceError> {
        let arrival = self.source.next_arrival()?;
        let arrival_key = arrival.map_or(NEVER, |arrival| 2 * arrival.ns());
        let timer_key = self.source.timer().map_or(NEVER, |timer| 2 * timer.ns());
        // Arms receive work only when every event of this instant is handled, so that a policy sees all
        // arrivals.
        if arrival_key.min(timer_key).min(self.calendar.first().0) > 2 * self.now.ns() {
            self.dispatch(arrival.is_some());
        }
        let (arm_key, arm) = self.calendar.first();
        let next = arrival_key.min(timer_key).min(arm_key);
        // Events that remain are timers and work in idle time, which would never end.
        if arrival.is_none() && self.requests.pending.is_empty() {
            return Ok(false);
        }
        assert!(next != NEVER, "requests wait at {}, and nothing will happen", self.now);
        let time = SimTime::from_ns(next / 2);
        assert!(time >= self.now, "an event at {time} is in the past at {}", self.now);
        self.now = time;
        // Completions, arrivals and timers of the same instant have equal keys, and come in this order.
        if arm_key == next {
            self.advance(arm);
        } else if arrival_key == next {
            self.arrive();
        } else {
            self.source.timer_due(time);
        }
        Ok(true)
    }

    #[inline]
    fn arrive(&mut self) {
        let request = self.source.take();
        if self.source.is_own_work(request.tag) {
            return self.transfer(request, self.now);
        }
        self.begin_parts();
        self.parts.arrive();
        self.tally.arrived(self.now);
        let arrival = self.source.arrival(self.now);
        match request.op {
            Op::Read => self.transfer(request, arrival),
            Op::Write => match self.map.refusal(&request) {
                None => self.transfer(request, arrival),
                Some(refusal) => self.refuse(request, refusal),
            },
            Op::Flush => self.flush(request),
            Op::Trim => self.trim(request),
        }
    }

    /// Begins every part whose first request arrives next.
    #[inline]
    fn begin_parts(&mut self) {
        while self.parts.is_next_first() {
            self.begin_part();
        }
    }

    #[cold]
    fn begin_part(&mut self) {
        self.parts.begun();
        let work = self.arms.iter().map(|arm| arm.device.work(self.now)).collect();
        let first = self.requests.pending.next_sequence();
        self.tally.begin_part(self.now, first, work, self.parts.are_slices);
    }

    /// A read or a write: from the map through the cache to the queues of its arms.
    #[inline]
    fn transfer(&mut self, request: Request, arrival: SimTime) {
        let sequence = self.requests.pending.push(request, arrival);
        if request.op == Op::Write {
            self.flushes.write_arrived(sequence);
        }
        let (now, mark) = (self.now, self.source.mark(&request));
        let Self { map, arms, touched, requests, tally, .. } = self;
        let pieces = map.for_each_piece(&request, |piece: Piece| {
            let arm = &mut arms[piece.arm as usize];
            let target = arm.device.target(&arm.drive, piece.start, piece.blocks, request.op);
            let waiting = Waiting { target, arrival: now, sequence, fua: request.fua, mark };
            tally.piece_arrived(now, &piece);
            if arm.enqueue(piece.arm, &waiting, requests, now) {
                touched.push(piece.arm);
            }
        });
        self.requests.pending.set_pieces(sequence, pieces);
    }

    /// A trim changes no media, and no later request waits for it. Memory in front of the arms forgets
    /// its blocks.
    fn trim(&mut self, request: Request) {
        self.map.trim(&request);
        if request.blocks > Blocks::ZERO {
            let Self { map, arms, touched, now, .. } = self;
            map.for_each_piece(&request, |Piece { arm, start, blocks }| {
                if arms[arm as usize].device.trim(*now, BlockRange::new(start, blocks)) {
                    touched.push(arm);
                }
            });
        }
        let served = Served { end: self.now, ..Served::default() };
        self.report(self.requests.pending.next_sequence(), request, self.now, &served);
    }

    fn flush(&mut self, request: Request) {
        let sequence = self.requests.pending.push(request, self.now);
        self.requests.pending.set_pieces(sequence, 1);
        self.flushes.flush_arrived(sequence);
        self.start_flushes();
    }

    /// A refused request writes no data, so no flush waits for it.
    #[cold]
    fn refuse(&mut self, request: Request, refusal: Refusal) {
        let sequence = self.requests.pending.next_sequence();
        let completion = Completion {
            is_warm_up: self.tally.is_warm_up(sequence),
            ..Completion::refused(request, self.now, refusal)
        };
        self.tally.refused(sequence, &completion, refusal);
        (self.observer)(&completion);
        self.source.completed(request.tag, self.now);
    }

    /// Gives arms with room their next requests. `more` are known to arrive.
    #[inline]
    fn dispatch(&mut self, more: bool) {
        while let Some(number) = self.touched.pop() {
            let arm = &mut self.arms[number as usize];
            // After the last foreground request, no background work may become foreground.
            if more || self.tally.is_waiting() {
                arm.promote(number, &mut self.requests, self.now);
            }
            arm.pick(self.now);
            self.calendar.set(number, key(arm.device.next_event()));
        }
    }

    #[inline]
    fn advance(&mut self, number: u32) {
        let arm = &mut self.arms[number as usize];
        let done = arm.device.advance(self.now);
        self.calendar.set(number, key(arm.device.next_event()));
        if let Some(done) = done {
            self.touched.push(number);
            if self.tally.counts_disks() && self.requests.pending.is_piece(&done) {
                self.tally.piece_done(self.now, number);
            }
            self.piece_done(&done);
        } else if arm.device.has_room() {
            // Requests may have waited for the end of a run in idle time.
            self.touched.push(number);
        }
    }

    #[inline]
    fn piece_done(&mut self, done: &Done) {
        let Some(pending) = self.requests.pending.piece_done(done.sequence, &done.served) else {
            return;
        };
        // Only promoted requests have no request of a source; foreground writes may wait for them.
        let Some(request) = pending.request else {
            for (arm, waiting) in self.requests.promoted.end(done.sequence) {
                self.arms[arm as usize].policy.push(waiting);
                self.touched.push(arm);
            }
            return;
        };
        let Pending { hit, limit, .. } = pending;
        let served = Served { hit, limit, ..done.served };
        self.report(done.sequence, request, pending.arrival, &served);
        if request.op == Op::Write && self.flushes.write_done(done.sequence) {
            self.start_flushes();
        }
    }

    /// Sends every flush whose earlier writes are all done to the drives.
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
                self.requests.pending.set_pieces(sequence, waits);
            } else if let Some(Pending { request: Some(request), arrival, .. }) =
                self.requests.pending.piece_done(sequence, &Served::default())
            {
                let served = Served { end: self.now, ..Served::default() };
                self.report(sequence, request, arrival, &served);
            }
        }
    }

    /// Reports a request whose last piece was served like this.
    #[inline]
    fn report(&mut self, sequence: u64, request: Request, arrival: SimTime, served: &Served) {
        let completion = Completion {
            is_warm_up: self.tally.is_warm_up(sequence),
            ..Completion::new(request, arrival, served)
        };
        if served.limit == LimitEnd::Aborted {
            return self.report_aborted(sequence, &completion);
        }
        if self.source.is_own_work(request.tag) {
            self.tally.own_work(&completion);
            return self.source.completed(request.tag, self.now);
        }
        self.tally.completed(sequence, &completion);
        (self.observer)(&completion);
        self.source.completed(request.tag, self.now);
    }

    /// Reports a request that its duration limit has ended.
    #[cold]
    fn report_aborted(&mut self, sequence: u64, completion: &Completion) {
        let tag = completion.request.tag;
        if self.source.is_own_work(tag) {
            self.tally.own_work(completion);
        } else {
            self.tally.aborted(sequence, completion);
            (self.observer)(completion);
        }
        self.source.aborted(tag, self.now);
    }
}
