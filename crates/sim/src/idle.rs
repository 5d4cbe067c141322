//! Idle time as a second source of free work: runs of an arm without foreground requests.
//!
//! The arm waits as long as the planner says, then performs run after run until a foreground request
//! arrives. The run under way finishes first and leaves the head elsewhere. That delay is the price for
//! the foreground. It is exact to the nanosecond for the request that has the head next.
//!
//! A drive with electronics first finishes its own work: destages, and reading ahead up to its limit.
//! Then it lends its head, run by run; meanwhile its buffer continues to serve hits.
//!
//! Non-goals: the longer wait of a write that finds the buffer full; reading ahead that a later hit
//! would have continued.

use freewheel_freeblock::{FreeRun, Planner};
use freewheel_model::drive::{Access, Departure, Drive, Target};
use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

/// Sums over idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[allow(missing_docs)]
pub struct IdleTime {
    pub runs: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Time of the head: movements, waits, and transfers.
    pub head_ns: u64,
    /// Foreground requests that were the first behind such work.
    pub requests_behind: u64,
    /// Requests among them that ended later than without idle work.
    pub requests_delayed: u64,
    /// Time by which they ended later.
    pub delay_ns: u64,
    /// Time by which others ended earlier, because the head happened to be nearer.
    pub gain_ns: u64,
}

impl IdleTime {
    /// Sums of both.
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

    /// Compares the end of a foreground request with its end `alone`, without work in idle time.
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
    /// Start of the idle time that is under way.
    since: Option<SimTime>,
    /// Start of the next run, if no request arrives before.
    next: Option<SimTime>,
    under_way: Option<(FreeRun, SimTime)>,
    /// Set by the first run of an idle time.
    left: Option<InterruptedHead>,
    /// Set by the first foreground access after a run.
    behind: Option<FirstAccessAfter>,
    time: IdleTime,
}

/// The head as the foreground left it.
#[derive(Clone, Copy)]
struct InterruptedHead {
    /// Place and time at which the first run took the head away.
    head: Departure,
    /// Start of the idle time.
    since: SimTime,
    /// Arrival of the request that ended it.
    until: Option<SimTime>,
}

/// The first foreground access after runs in idle time.
struct FirstAccessAfter {
    left: InterruptedHead,
    begin: SimTime,
    end: SimTime,
    target: Target,
    seek_error_ns: i64,
}

impl Idle {
    /// The arm is idle from `now` on; no run may begin before `known`, when the caller knows so.
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

    /// End of the run under way, or else start of the next.
    pub fn next_event(&self) -> Option<SimTime> {
        self.under_way.map(|(_, end)| end).or(self.next)
    }

    /// Sums so far; None without any run.
    pub fn time(&self) -> Option<IdleTime> {
        (self.time.runs > 0).then_some(self.time)
    }

    /// Ends the run under way. Begins another from `head` if the arm still `is_idle`; returns its
    /// access and direction.
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
        // Later runs must not replace the position in which the foreground left the head.
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

    /// The foreground has the head again, for this access.
    pub fn access(&mut self, begin: SimTime, end: SimTime, target: &Target, seek_error_ns: i64) {
        if let Some(left) = self.left.take() {
            self.behind =
                Some(FirstAccessAfter { left, begin, end, target: *target, seek_error_ns });
        }
    }

    /// The drive has moved the head itself, so the runs delayed no request.
    pub fn forget(&mut self, planner: &mut dyn Planner) {
        if let Some(InterruptedHead { since, until: Some(until), .. }) = self.left.take() {
            idle_used(planner, until - since, SimDuration::ZERO);
        }
    }

    /// Counts the cost of work in idle time for the request that made the first access behind it. That
    /// request waited `waited` for the head.
    pub fn count(&mut self, planner: &mut dyn Planner, drive: &Drive, waited: SimDuration) {
        let Some(behind) = self.behind.take() else { return };
        let FirstAccessAfter { left, begin, end, target, seek_error_ns } = behind;
        // The request could have had the head this much earlier. Bus waits after the media access do
        // not count.
        let earliest = SimTime::from_ns(begin.ns().saturating_sub(waited.ns()));
        // Without the runs, the access begins then, but not within the idle time.
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
