//! Idle time as a second source of free work: what an arm does while no foreground request is there.
//!
//! The arm waits as long as the planner says, then does run after run until a foreground request
//! arrives. The run under way is finished first, and the head may be elsewhere: that is what the
//! foreground pays, and it is known to the nanosecond for the request that has the head next.
//!
//! A drive with electronics first does what it does on its own account: it writes back and reads on to
//! its limit. Then its head is lent, run by run; what the buffer serves goes on meanwhile.
//!
//! Non-goals: what a write that finds no room in the buffer waits longer for the data before it to be
//! written back; reading ahead that would have gone on at a later hit.

use freewheel_freeblock::{FreeRun, Planner};
use freewheel_model::drive::{Access, Departure, Drive, Target};
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

/// An arm's idle time.
#[derive(Default)]
pub(crate) struct Idle {
    /// Since when the arm has had nothing to do, if that is so.
    since: Option<SimTime>,
    /// When the next run begins, if no request comes before.
    next: Option<SimTime>,
    under_way: Option<(FreeRun, SimTime)>,
    /// Once there has been a run.
    left: Option<InterruptedHead>,
    /// The first access behind it, once there has been one.
    behind: Option<FirstAccessAfter>,
    time: IdleTime,
}

/// The head as the foreground left it.
#[derive(Clone, Copy)]
struct InterruptedHead {
    /// When the first run took it away.
    head: Departure,
    /// When the idle time began.
    since: SimTime,
    /// When a request came.
    until: Option<SimTime>,
}

/// The first foreground access behind runs in idle time.
struct FirstAccessAfter {
    left: InterruptedHead,
    begin: SimTime,
    end: SimTime,
    target: Target,
    seek_error_ns: i64,
}

impl Idle {
    /// The arm has nothing to do from `now` on, for all that is known before `known`.
    pub fn begin(&mut self, planner: &mut dyn Planner, now: SimTime, known: SimTime) {
        self.since.get_or_insert(now);
        let start = planner.idle().and_then(|idle| idle.idle_from(now));
        self.next = start.map(|start| start.max(known));
    }

    /// A foreground request has arrived at `now`.
    pub fn end(&mut self, now: SimTime) {
        (self.since, self.next) = (None, None);
        if let Some(left) = &mut self.left {
            left.until.get_or_insert(now);
        }
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

    /// Ends the run under way, and begins another from `head` on if the arm `is_idle` still: where
    /// that will leave the head, and what it does.
    pub fn advance(
        &mut self,
        planner: &mut dyn Planner,
        drive: &Drive,
        head: Departure,
        is_idle: bool,
    ) -> Option<(Access, Op)> {
        if let Some((run, end)) = self.under_way.take() {
            planner.done(&run, end);
        }
        self.next = None;
        if !is_idle {
            return None;
        }
        let run = planner.idle()?.plan_idle(&head)?;
        let access = run.access(drive, &head);
        let since = self.since.unwrap_or(head.begin);
        let left = self.left.get_or_insert(InterruptedHead { head, since, until: None });
        (left.since, left.until) = (since, None);
        self.under_way = Some((run, head.begin + access.total()));
        self.time.runs += 1;
        self.time.head_ns += access.total().ns();
        let time = &mut self.time;
        let bytes = if run.op == Op::Write { &mut time.write_bytes } else { &mut time.read_bytes };
        *bytes += u64::from(run.blocks) * 512;
        Some((access, run.op))
    }

    /// The foreground has the head again, for an access that begins and ends like this.
    pub fn access(&mut self, begin: SimTime, end: SimTime, target: &Target, seek_error_ns: i64) {
        if let Some(left) = self.left.take() {
            self.behind =
                Some(FirstAccessAfter { left, begin, end, target: *target, seek_error_ns });
        }
    }

    /// The drive has moved the head itself: nobody was kept waiting.
    pub fn forget(&mut self, planner: &mut dyn Planner) {
        if let Some(InterruptedHead { since, until: Some(until), .. }) = self.left.take() {
            idle_used(planner, until - since, SimDuration::ZERO);
        }
    }

    /// The access behind work in idle time, if there has been one, was that of a request that waited
    /// for the head for so long: counts what that work cost it.
    pub fn count(&mut self, planner: &mut dyn Planner, drive: &Drive, waited: SimDuration) {
        let Some(behind) = self.behind.take() else { return };
        let FirstAccessAfter { left, begin, end, target, seek_error_ns } = behind;
        // Waits behind the media's part, for the bus, are none of the head's.
        let earliest = SimTime::from_ns(begin.ns().saturating_sub(waited.ns()));
        let ready = earliest.max(left.until.unwrap_or(earliest));
        let from = Departure { begin: ready, ..left.head };
        let alone = ready + drive.media_access_from(&from, &target, seek_error_ns).total();
        self.time.compare(end, alone);
        let idle = left.until.unwrap_or(ready) - left.since;
        idle_used(planner, idle, end.saturating_since(alone));
    }
}

fn idle_used(planner: &mut dyn Planner, idle: SimDuration, delay: SimDuration) {
    if let Some(planner) = planner.idle() {
        planner.idle_used(idle, delay);
    }
}
