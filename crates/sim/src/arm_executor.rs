//! Executor of a simulated arm: accesses with their seek errors, and free work in their rotational gaps.
//!
//! The executor trusts no plan. It performs each planned run from the time and place where the head
//! then is. When the head reaches the foreground's data late, the foreground waits for the next turn,
//! and the delay is counted. When the head is in time, the access equals the access without a planner
//! to the nanosecond. A detour may bring the head to the foreground's track earlier; the access still
//! begins when its data were due.
//!
//! Non-goals: the bus transfer of free data; errors of the seeks to free runs. Gaps before destages,
//! before reads whose passing blocks the drive keeps, and during command processing stay unused.

use std::collections::BTreeMap;

use crate::free_time::FreeTime;
use crate::idle::{Idle, IdleTime};
use crate::seek_errors::SeekErrors;
use freewheel_freeblock::{
    Foreground, ForegroundEvent, FreeRun, GapUse, Opportunity, Planner, PromotionId,
};
use freewheel_host::SameTrack;
use freewheel_model::drive::{
    Access, Actuator, Departure, Drive, Latency, Leg, RemainingAccess, Target,
};
use freewheel_model::sched::Waiting;
use freewheel_units::{Op, SimDuration, SimTime};

/// Moves the head of an arm.
pub struct ArmExecutor<'p> {
    errors: SeekErrors,
    /// Boxed, so that arms without free work stay small.
    freeblock: Option<Box<Freeblock<'p>>>,
}

struct Freeblock<'p> {
    planner: &'p mut dyn Planner,
    /// Foreground requests that are not done, by sequence.
    foreground: BTreeMap<u64, Foreground>,
    /// The plan for the gap at hand.
    runs: Vec<FreeRun>,
    same_track: SameTrack,
    time: FreeTime,
    idle: Idle,
}

impl<'p> ArmExecutor<'p> {
    /// An executor for one arm whose seeks have these `errors`, without free work.
    pub fn new(errors: SeekErrors) -> Self {
        Self { errors, freeblock: None }
    }

    /// Adds free work that `planner` plans.
    #[must_use]
    pub fn with_planner(self, planner: &'p mut dyn Planner) -> Self {
        let mut idle = Idle::default();
        idle.begin(planner, SimTime::ZERO, SimTime::ZERO);
        let freeblock = Freeblock {
            planner,
            idle,
            foreground: BTreeMap::new(),
            runs: Vec::new(),
            same_track: SameTrack::Distinct,
            time: FreeTime::default(),
        };
        Self { freeblock: Some(Box::new(freeblock)), ..self }
    }

    /// Limits free work on the tracks of foreground requests.
    #[must_use]
    pub(crate) fn with_same_track(mut self, same_track: SameTrack) -> Self {
        if let Some(freeblock) = &mut self.freeblock {
            freeblock.same_track = same_track;
        }
        self
    }

    /// True if free work is planned.
    pub(crate) fn has_planner(&self) -> bool {
        self.freeblock.is_some()
    }

    /// A foreground request has arrived for the arm.
    #[inline]
    pub fn foreground_arrived(
        &mut self,
        now: SimTime,
        waiting: &Waiting,
        promotion: Option<PromotionId>,
    ) {
        if let Some(freeblock) = &mut self.freeblock {
            freeblock.foreground_arrived(now, waiting, promotion);
        }
    }

    /// Reports the head time of the foreground request with this sequence.
    #[inline]
    pub fn foreground_took(&mut self, sequence: u64, head: SimDuration) {
        if let Some(freeblock) = &mut self.freeblock
            && let Some(request) = freeblock.foreground.get(&sequence)
        {
            freeblock.planner.foreground(ForegroundEvent::TookHead { request, head });
        }
    }

    /// Reports that a foreground write is on the media, or that a foreground read is done.
    #[inline]
    pub fn foreground_done(&mut self, sequence: u64, now: SimTime) {
        if let Some(freeblock) = &mut self.freeblock
            && let Some(request) = freeblock.foreground.remove(&sequence)
        {
            freeblock.planner.foreground(ForegroundEvent::Done { request: &request, at: now });
            if freeblock.foreground.is_empty() {
                freeblock.idle.begin(freeblock.planner, now, now);
            }
        }
    }

    /// True if a run in idle time is under way.
    #[inline]
    pub(crate) fn is_in_idle_run(&self) -> bool {
        self.freeblock.as_ref().is_some_and(|freeblock| freeblock.idle.is_under_way())
    }

    /// Time at which a run in idle time ends or begins.
    #[inline]
    pub(crate) fn next_idle_event(&self) -> Option<SimTime> {
        self.freeblock.as_ref()?.idle.next_event()
    }

    /// The arm may be idle from `now` on; the caller knows so at `known` or later.
    #[inline]
    pub(crate) fn begin_idle(&mut self, now: SimTime, known: SimTime) {
        if let Some(Freeblock { planner, idle, .. }) = self.freeblock.as_deref_mut() {
            idle.begin(*planner, now, known);
        }
    }

    /// Number of foreground requests that are not done; zero without a planner.
    #[inline]
    pub(crate) fn foreground_count(&self) -> usize {
        self.freeblock.as_ref().map_or(0, |freeblock| freeblock.foreground.len())
    }

    /// Ends the run in idle time that is under way. Begins another from `head` if no request is there
    /// and the drive `is_idle`; returns its access and direction.
    #[cold]
    pub(crate) fn advance_idle(
        &mut self,
        drive: &Drive,
        head: Departure,
        is_idle: bool,
    ) -> Option<(Access, Op)> {
        let Freeblock { planner, foreground, idle, .. } = self.freeblock.as_deref_mut()?;
        idle.advance(*planner, drive, head, is_idle && foreground.is_empty())
    }

    /// Counts the delay that work in idle time caused the first request behind it. That request is done
    /// or its end is known; it waited `waited` for the head.
    #[inline]
    pub(crate) fn count_idle(&mut self, drive: &Drive, waited: SimDuration) {
        if let Some(Freeblock { planner, idle, .. }) = self.freeblock.as_deref_mut() {
            idle.count(*planner, drive, waited);
        }
    }

    /// The drive moves the head on its own account before any request needs it.
    #[inline]
    pub(crate) fn forget_idle(&mut self) {
        if let Some(Freeblock { planner, idle, .. }) = self.freeblock.as_deref_mut() {
            idle.forget(*planner);
        }
    }

    /// Sums of work in idle time so far; None without any.
    pub fn idle_time(&self) -> Option<IdleTime> {
        self.freeblock.as_ref()?.idle.time()
    }

    /// The planner of free work, if there is one.
    #[inline]
    pub fn planner(&mut self) -> Option<&mut dyn Planner> {
        match &mut self.freeblock {
            Some(freeblock) => Some(&mut *freeblock.planner),
            None => None,
        }
    }

    /// The unfinished foreground request with this sequence; None without a planner.
    #[inline]
    pub fn foreground(&self, sequence: u64) -> Option<&Foreground> {
        self.freeblock.as_ref()?.foreground.get(&sequence)
    }

    /// Use of the gaps so far; None without a planner.
    pub fn free_time(&self) -> Option<FreeTime> {
        self.freeblock.as_ref().map(|freeblock| freeblock.time)
    }
}

impl Actuator for ArmExecutor<'_> {
    #[inline]
    fn access(
        &mut self,
        drive: &Drive,
        departure: &Departure,
        target: &Target,
        latency: Latency,
    ) -> Access {
        let error = self.errors.draw();
        let Some(freeblock) = &mut self.freeblock else {
            return drive.media_access_from(departure, target, error);
        };
        let begin = departure.begin;
        let access = if latency == Latency::Free {
            freeblock.access(drive, departure, target, error)
        } else {
            let access = drive.media_access_from(departure, target, error);
            let end = begin + access.total();
            freeblock.planner.foreground(ForegroundEvent::Passed {
                op: target.op,
                start: target.start,
                blocks: target.blocks,
                at: end,
            });
            access
        };
        freeblock.idle.access(begin, begin + access.total(), target, error);
        access
    }
}

/// A request in the form that planners receive.
pub(crate) fn foreground(waiting: &Waiting, promotion: Option<PromotionId>) -> Foreground {
    let Waiting { target, sequence, .. } = *waiting;
    let Target { op, start, blocks, .. } = target;
    Foreground { op, start, blocks, sequence, promotion }
}

impl Freeblock<'_> {
    #[inline(never)]
    fn foreground_arrived(
        &mut self,
        now: SimTime,
        waiting: &Waiting,
        promotion: Option<PromotionId>,
    ) {
        let request = foreground(waiting, promotion);
        self.foreground.insert(waiting.sequence, request);
        // Idle time ends first: the planner may plan gaps from the moment it hears of the request.
        self.idle.end(now);
        self.planner.foreground(ForegroundEvent::Arrived { request: &request, at: now });
    }

    #[inline(never)]
    fn access(
        &mut self,
        drive: &Drive,
        departure: &Departure,
        target: &Target,
        seek_error_ns: i64,
    ) -> Access {
        let (mut at, mut rest, mut error) =
            (*departure, RemainingAccess::whole(target), seek_error_ns);
        let mut sum = Access { end: departure.from, ..Access::default() };
        let mut late = false;
        while let Some(leg) = drive.next_leg(&at, &rest, error) {
            let executed = self.fill_gap(drive, &at, &rest, &leg, error);
            late |= executed.is_some();
            let leg = executed.unwrap_or(leg);
            let access = leg.access();
            sum.seek += access.seek;
            sum.rotate += access.rotate;
            sum.transfer += access.transfer;
            sum.end = access.end;
            // Only the first seek has an error.
            (at, rest, error) = (at.after(&access, target.op), leg.rest, 0);
            self.planner.foreground(ForegroundEvent::Passed {
                op: leg.target.op,
                start: leg.target.start,
                blocks: leg.target.blocks,
                at: at.begin,
            });
        }
        if late {
            // The whole access is compared, as a leg that begins late may still catch up on a later
            // track.
            let end = end_alone(drive, departure, target, seek_error_ns);
            let delay = (departure.begin + sum.total()).saturating_since(end);
            self.time.foreground_delay_ns += u128::from(delay.ns());
        }
        sum
    }

    /// Performs the planner's runs before `leg`. Returns the leg that is served instead when the head
    /// arrives late. The wait of that leg is all the time beyond the direct seek.
    fn fill_gap(
        &mut self,
        drive: &Drive,
        departure: &Departure,
        rest: &RemainingAccess,
        leg: &Leg,
        seek_error_ns: i64,
    ) -> Option<Leg> {
        let mut gap = Opportunity::before(departure, leg, seek_error_ns);
        gap.ends = self.same_track.ends(drive, leg.target.op, leg.target.start);
        let latency_ns = gap.latency().ns();
        if latency_ns == 0 {
            return None;
        }
        self.runs.clear();
        self.planner.plan(&gap, &mut self.runs);
        self.same_track.limit(drive, &mut self.runs);
        self.time.gaps += 1;
        self.time.potential_ns += u128::from(latency_ns);
        if self.runs.is_empty() {
            self.time.unused_ns += u128::from(latency_ns);
            self.planner.filled(&gap, &GapUse::default());
            return None;
        }
        self.time.gaps_used += 1;
        let mut at = *departure;
        let mut gap_use = GapUse::default();
        // Each run starts from where the last one really left the head, so an optimistic plan shows as
        // lateness instead of free time.
        for run in &self.runs {
            let access = run.access(drive, &at);
            at = at.after(&access, run.op);
            self.time.count(run, &access);
            gap_use.transfer += access.transfer;
            gap_use.extra_seek_ns += access.seek.ns() as i64;
            self.planner.done(run, at.begin);
        }
        let arrival = gap.arrival(drive, &at);
        // The way back to the target replaces the foreground's own seek; only the difference is extra.
        let back_ns = (arrival - at.begin).ns() as i64 - gap.seek.ns() as i64;
        self.time.extra_seek_ns += i128::from(back_ns);
        gap_use.extra_seek_ns += back_ns;
        self.planner.filled(&gap, &gap_use);
        if arrival <= gap.due {
            self.time.unused_ns += u128::from((gap.due - arrival).ns());
            return None;
        }
        self.time.gaps_late += 1;
        let late = drive.next_leg(&at, rest, seek_error_ns)?;
        // `Leg` keeps the direct seek, so that seek sums are those without free work; detour and missed
        // turn go to the wait.
        let wait = (arrival - departure.begin - leg.seek) + late.wait;
        Some(Leg { seek: leg.seek, wait, ..late })
    }
}

/// End of the same access without free work.
fn end_alone(drive: &Drive, from: &Departure, target: &Target, seek_error_ns: i64) -> SimTime {
    let (mut at, mut rest, mut error) = (*from, RemainingAccess::whole(target), seek_error_ns);
    while let Some(leg) = drive.next_leg(&at, &rest, error) {
        (at, rest, error) = (at.after(&leg.access(), target.op), leg.rest, 0);
    }
    at.begin
}
