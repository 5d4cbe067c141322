//! The loop that owns virtual time.

use std::collections::VecDeque;

use freewheel_model::drive::{Access, Drive, Position};
use freewheel_model::sched::{Moment, Policy, Waiting};
use freewheel_units::{Op, Prng, SimDuration, SimTime};

use crate::completion::Completion;
use crate::result::{RunResult, Tally};
use crate::source::{Request, Source, SourceError};

/// One drive in virtual time: arrivals in, completions out.
struct Engine<'a, S> {
    drive: &'a Drive,
    policy: &'a mut dyn Policy,
    source: &'a mut S,
    observer: &'a mut dyn FnMut(&Completion),
    seek_errors: Prng,
    now: SimTime,
    head: Position,
    in_service: Option<InService>,
    arrived: u64,
    /// Requests handed to the policy, by position in `slots`.
    slots: Slots,
    flushes: FlushOrder,
    tally: Tally,
}

/// The request at the head.
struct InService {
    waiting: Waiting,
    queue: SimDuration,
    access: Access,
    end: SimTime,
}

/// Tags of waiting requests: the policy carries a sequence number, the source wants its tag back.
#[derive(Default)]
struct Slots {
    first: u64,
    tags: VecDeque<u64>,
}

impl Slots {
    #[inline]
    fn push(&mut self, sequence: u64, tag: u64) {
        if self.tags.is_empty() {
            self.first = sequence;
        }
        // Flushes and trims take sequence numbers too; their places stay unused.
        while self.first + (self.tags.len() as u64) < sequence {
            self.tags.push_back(UNUSED);
        }
        self.tags.push_back(tag);
    }

    #[inline]
    fn take(&mut self, sequence: u64) -> u64 {
        let tag = std::mem::replace(&mut self.tags[(sequence - self.first) as usize], UNUSED);
        while self.tags.front() == Some(&UNUSED) {
            self.tags.pop_front();
            self.first += 1;
        }
        tag
    }
}

const UNUSED: u64 = u64::MAX;

/// Runs until the source has nothing more and everything is done.
///
/// `seed` feeds the seek errors of a drive with a seek tolerance and nothing else here. Every
/// completion is shown to `observer`, in order of time.
pub fn run<S: Source>(
    drive: &Drive,
    policy: &mut dyn Policy,
    source: &mut S,
    seed: u64,
    observer: &mut dyn FnMut(&Completion),
) -> Result<RunResult, SourceError> {
    let mut engine = Engine {
        drive,
        policy,
        source,
        observer,
        seek_errors: Prng::new(seed, "seek errors"),
        now: SimTime::ZERO,
        head: Position::default(),
        in_service: None,
        arrived: 0,
        slots: Slots::default(),
        flushes: FlushOrder::default(),
        tally: Tally::default(),
    };
    while engine.step()? {}
    Ok(engine.tally.finish(engine.now))
}

impl<S: Source> Engine<'_, S> {
    /// Handles the next event; false when there is none. Of events at the same time completions
    /// come first, and the head is given work only when all of them are known.
    #[inline]
    fn step(&mut self) -> Result<bool, SourceError> {
        let arrival = self.source.next_arrival()?;
        let end = self.in_service.as_ref().map(|service| service.end);
        let completes = end.is_some_and(|end| arrival.is_none_or(|arrival| end <= arrival));
        let next = if completes { end } else { arrival };
        if self.in_service.is_none() && next.is_none_or(|next| next > self.now) && self.dispatch() {
            return Ok(true);
        }
        let Some(next) = next else { return Ok(false) };
        assert!(next >= self.now, "an event at {next} is in the past at {}", self.now);
        self.now = next;
        if completes {
            self.complete();
        } else {
            self.arrive();
        }
        Ok(true)
    }

    #[inline]
    fn arrive(&mut self) {
        let request = self.source.take();
        let sequence = self.arrived;
        self.arrived += 1;
        self.tally.arrived(self.now);
        match request.op {
            Op::Read | Op::Write => {
                let target = self.drive.target(request.start, request.blocks, request.op);
                if request.op == Op::Write {
                    self.flushes.write_arrived(sequence);
                }
                self.slots.push(sequence, request.tag);
                self.policy.push(Waiting { target, arrival: self.now, sequence });
            }
            Op::Flush => {
                self.flushes.flush_arrived(sequence, self.now, request);
                self.complete_flushes();
            }
            // Nothing on the media changes and no later request depends on it.
            Op::Trim => self.finish_without_head(self.now, request),
        }
    }

    /// Gives the free head its next request; false when none waits.
    #[inline]
    fn dispatch(&mut self) -> bool {
        let moment = Moment { now: self.now, head: self.head, drive: self.drive };
        let Some(waiting) = self.policy.pick(&moment) else { return false };
        let error = self.draw_seek_error();
        let access = self.drive.access_with_seek_error(self.now, self.head, &waiting.target, error);
        self.head = access.end;
        let queue = self.now - waiting.arrival;
        let end = self.now + access.total();
        self.in_service = Some(InService { waiting, queue, access, end });
        true
    }

    #[inline]
    fn draw_seek_error(&mut self) -> i64 {
        let tolerance = self.drive.seek_tolerance().ns();
        if tolerance == 0 {
            return 0;
        }
        self.seek_errors.below(2 * tolerance + 1) as i64 - tolerance as i64
    }

    #[inline]
    fn complete(&mut self) {
        let service = self.in_service.take().expect("something is in service");
        let Waiting { target, arrival, sequence } = service.waiting;
        let tag = self.slots.take(sequence);
        let blocks = freewheel_units::Blocks::new(u64::from(target.blocks));
        let request = Request { op: target.op, start: target.start, blocks, tag };
        let (queue, access) = (service.queue, service.access);
        self.report(&Completion { request, arrival, queue, access, end: self.now });
        if request.op == Op::Write && self.flushes.write_done(sequence) {
            self.complete_flushes();
        }
    }

    fn complete_flushes(&mut self) {
        while let Some((arrival, request)) = self.flushes.next_done() {
            self.finish_without_head(arrival, request);
        }
    }

    fn finish_without_head(&mut self, arrival: SimTime, request: Request) {
        let access = Access { end: self.head, ..Access::default() };
        let queue = self.now - arrival;
        self.report(&Completion { request, arrival, queue, access, end: self.now });
    }

    #[inline]
    fn report(&mut self, completion: &Completion) {
        self.tally.completed(completion);
        (self.observer)(completion);
        self.source.completed(completion.request.tag, self.now);
    }
}

/// A flush is done when every write that arrived before it is.
#[derive(Default)]
struct FlushOrder {
    /// Writes not done, and done ones behind them, by sequence.
    writes: VecDeque<(u64, bool)>,
    flushes: VecDeque<(u64, SimTime, Request)>,
}

impl FlushOrder {
    #[inline]
    fn write_arrived(&mut self, sequence: u64) {
        self.writes.push_back((sequence, false));
    }

    /// True when flushes may have become complete.
    #[inline]
    fn write_done(&mut self, sequence: u64) -> bool {
        let at = self.writes.partition_point(|(other, _)| *other < sequence);
        self.writes[at].1 = true;
        while self.writes.front().is_some_and(|(_, done)| *done) {
            self.writes.pop_front();
        }
        !self.flushes.is_empty()
    }

    fn flush_arrived(&mut self, sequence: u64, arrival: SimTime, request: Request) {
        self.flushes.push_back((sequence, arrival, request));
    }

    fn next_done(&mut self) -> Option<(SimTime, Request)> {
        let oldest_write = self.writes.front().map_or(u64::MAX, |(sequence, _)| *sequence);
        self.flushes.front().filter(|(sequence, ..)| *sequence < oldest_write)?;
        self.flushes.pop_front().map(|(_, arrival, request)| (arrival, request))
    }
}
