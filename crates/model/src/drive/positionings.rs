//! Positioning times of many targets from one place and moment, compared without working out each.
//!
//! A target whose first sector comes round sooner than the head can be there is late by a whole turn.
//! So the time until the sector comes round bounds the positioning time before any seek is looked up,
//! and after it most times are known: only an access that begins within its run takes another.

use freewheel_units::{Op, SimTime};

use super::access::Position;
use super::mechanics::{Drive, Target};
use super::seek::SeekCurve;

/// Where the first run of a target begins: what a search among many targets looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStart {
    cylinder: u32,
    /// Phase at which the first sector begins.
    edge_ns: u32,
    /// By how much less than the time to the start of the run an access that begins within it takes, at
    /// most. [`SEVERAL_RUNS`] where nothing is known of it.
    gain_ns: u32,
    surface: u16,
    op: Op,
}

/// More than any turn.
const SEVERAL_RUNS: u32 = u32::MAX;

impl RunStart {
    /// That of a target.
    #[inline]
    pub fn of(target: &Target) -> Self {
        Self {
            cylinder: target.at.cylinder,
            edge_ns: target.first_run.edge_ns,
            gain_ns: if target.one_run { target.first_run.span_ns } else { SEVERAL_RUNS },
            surface: target.at.surface as u16,
            op: target.op,
        }
    }

    /// The cylinder.
    #[inline]
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }
}

/// The head at a moment, with what is the same for all targets worked out.
#[derive(Debug, Clone, Copy)]
pub struct Positionings<'a> {
    drive: &'a Drive,
    seek: &'a SeekCurve,
    now: SimTime,
    from: Position,
    period_ns: u64,
    /// Within the turn, when the command has been processed: of reads and of writes.
    phases_ns: [u64; 2],
}

impl<'a> Positionings<'a> {
    /// From a place, with commands that begin at `now`.
    #[inline]
    pub fn new(drive: &'a Drive, now: SimTime, from: Position) -> Self {
        let phase = |op| drive.rotation().phase_ns(now + drive.overhead(op));
        let phases_ns = [Op::Read, Op::Write].map(phase);
        let period_ns = drive.rotation().period_ns();
        Self { drive, seek: drive.seek(), now, from, period_ns, phases_ns }
    }

    /// Seek time alone.
    #[inline]
    pub fn seek_ns(&self, start: &RunStart) -> u64 {
        let switches_head = self.from.surface != u32::from(start.surface);
        self.seek.between_ns(start.op, self.from.cylinder, start.cylinder, switches_head)
    }

    /// What [`Drive::positioning`] says in all of the target that begins with this run, if that is at most
    /// `limit_ns`.
    // Inlined, so that a search has the few steps that exclude most targets in its own loop.
    #[inline(always)]
    pub fn total_ns<'t>(
        &self,
        start: &RunStart,
        limit_ns: u64,
        target: impl FnOnce() -> &'t Target,
    ) -> Option<u64> {
        let phase_ns = self.phases_ns[usize::from(start.op == Op::Write)];
        let (edge_ns, gain_ns) = (u64::from(start.edge_ns), u64::from(start.gain_ns));
        // Turns and seeks are below 2^32, so nothing overflows.
        let turned_ns = if edge_ns < phase_ns { self.period_ns } else { 0 };
        let first_ns = edge_ns.wrapping_add(turned_ns).wrapping_sub(phase_ns);
        if first_ns.saturating_sub(gain_ns) > limit_ns {
            return None;
        }
        let seek_ns = self.seek_ns(start);
        let late_ns = if first_ns < seek_ns { self.period_ns } else { 0 };
        let next_ns = first_ns.wrapping_add(late_ns);
        if seek_ns > limit_ns || next_ns.saturating_sub(gain_ns) > limit_ns {
            return None;
        }
        let next_ns = if next_ns < seek_ns { self.later_ns(next_ns, seek_ns) } else { next_ns };
        // How far the start of the run has passed by when the head arrives.
        let passed_ns = seek_ns + self.period_ns - next_ns;
        let is_whole = passed_ns >= gain_ns;
        let total_ns = if is_whole { next_ns } else { self.worked_out_ns(target()) };
        (total_ns <= limit_ns).then_some(total_ns)
    }

    /// The first time whole turns after `first_ns` that is no less than a later one.
    #[cold]
    fn later_ns(&self, first_ns: u64, least_ns: u64) -> u64 {
        first_ns + (1 + self.drive.rotation().turns(least_ns - first_ns - 1)) * self.period_ns
    }

    #[cold]
    fn worked_out_ns(&self, target: &Target) -> u64 {
        self.drive.positioning(self.now, self.from, target).total().ns()
    }
}
