//! Idle time as a second source of free work: what an arm does while no foreground request is there.
//!
//! The arm waits as long as the planner says, then does run after run until a foreground request
//! arrives. The run under way is finished first, and the head may be elsewhere: that is what the
//! foreground pays, and it is known to the nanosecond for the request that is served next.

use freewheel_model::drive::{Departure, Drive, Position};
use freewheel_model::freeblock::{FreeRun, Planner};
use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

/// Sums over idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct IdleTime {
    /// Runs.
    pub runs: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time of the head's: movements, waits, and transfers.
    pub head_ns: u64,
    /// Foreground requests that were the first to be served behind such work.
    pub requests_behind: u64,
    /// Of them, those that ended later than without it.
    pub requests_delayed: u64,
    /// How much later they ended.
    pub delay_ns: u64,
    /// How much earlier others ended, for the head happened to be nearer.
    pub gain_ns: u64,
}

impl IdleTime {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
            head_ns: self.head_ns + other.head_ns,
            requests_behind: self.requests_behind + other.requests_behind,
            requests_delayed: self.requests_delayed + other.requests_delayed,
            delay_ns: self.delay_ns + other.delay_ns,
            gain_ns: self.gain_ns + other.gain_ns,
        }
    }

    /// A foreground request has ended here and not there.
    fn compare(&mut self, end: SimTime, alone: SimTime) {
        self.requests_behind += 1;
        self.requests_delayed += u64::from(end > alone);
        self.delay_ns += end.saturating_since(alone).ns();
        self.gain_ns += alone.saturating_since(end).ns();
    }
}

/// Where the head is, and what it did last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub at: Position,
    pub last_op: Op,
}

impl Head {
    pub fn departure(self, begin: SimTime) -> Departure {
        let Self { at, last_op } = self;
        Departure { begin, from: at, last_op, read_write_switch: SimDuration::ZERO }
    }
}

/// An arm's idle time.
#[derive(Default)]
pub(crate) struct Idle {
    /// When the next run begins, if no request comes before.
    next: Option<SimTime>,
    under_way: Option<(FreeRun, SimTime)>,
    /// The head as the foreground left it, once there has been a run.
    left_at: Option<Head>,
    time: IdleTime,
}

impl Idle {
    /// The arm has nothing to do from `now` on.
    pub fn begin(&mut self, planner: &mut dyn Planner, now: SimTime) {
        self.next = planner.idle_from(now);
    }

    /// A foreground request has arrived.
    pub fn end(&mut self) {
        self.next = None;
    }

    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// When a run ends or begins.
    pub fn next_event(&self) -> Option<SimTime> {
        self.under_way.map(|(_, end)| end).or(self.next)
    }

    /// Sums so far; None when there was nothing.
    pub fn time(&self) -> Option<IdleTime> {
        (self.time.runs > 0).then_some(self.time)
    }

    /// Ends the run under way, and begins another if the arm `is_idle` still. The head is then where
    /// that will leave it.
    pub fn advance(
        &mut self,
        planner: &mut dyn Planner,
        drive: &Drive,
        head: &mut Head,
        now: SimTime,
        is_idle: bool,
    ) {
        if let Some((run, end)) = self.under_way.take() {
            planner.done(&run, end);
        }
        self.next = None;
        if !is_idle {
            return;
        }
        let departure = head.departure(now);
        let Some(run) = planner.plan_idle(&departure) else { return };
        let access = run.access(drive, &departure);
        self.left_at.get_or_insert(*head);
        *head = Head { at: access.end, last_op: run.op };
        self.under_way = Some((run, now + access.total()));
        self.time.runs += 1;
        self.time.head_ns += access.total().ns();
        let time = &mut self.time;
        let bytes = if run.op == Op::Write { &mut time.write_bytes } else { &mut time.read_bytes };
        *bytes += u64::from(run.blocks) * 512;
    }

    /// The head as the foreground left it, if it has been elsewhere since.
    pub fn take_left(&mut self) -> Option<Head> {
        self.left_at.take()
    }

    /// The first request behind idle work ends at `end`; without that work at `alone`.
    pub fn count(&mut self, end: SimTime, alone: SimTime) {
        self.time.compare(end, alone);
    }
}
