//! Positioning times of many targets from one place and moment, compared without working out each.
//!
//! A target whose first sector comes round sooner than the head can be there is late by a whole turn.
//! So the time until the sector comes round bounds the positioning time before any seek is looked up,
//! and after it most times are known: only an access that begins within its run takes another.

use freewheel_units::{Op, SimTime};

use super::access::Position;
use super::mechanics::{Drive, Target};

/// First run of a target: the part that a search among many targets looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStart {
    cylinder: u32,
    /// Phase at which the first sector begins.
    edge_ns: u32,
    /// By how much less than the time to the start of the run an access that begins within it takes, at
    /// most. [`SEVERAL_RUNS`] where it is unknown.
    gain_ns: u32,
    surface: u16,
    is_write: bool,
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
            is_write: target.op == Op::Write,
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
    now: SimTime,
    from: Position,
    period_ns: u64,
    /// For reads and for writes.
    ways: [Way<'a>; 2],
}

/// Parameters that differ between reads and writes.
#[derive(Debug, Clone, Copy)]
struct Way<'a> {
    /// Within the turn, when the command has been processed.
    phase_ns: u64,
    /// Least seek times by distance.
    arm_ns: &'a [u32],
}

impl<'a> Positionings<'a> {
    /// From a place, with commands that begin at `now`.
    #[inline]
    pub fn new(drive: &'a Drive, now: SimTime, from: Position) -> Self {
        let ways = [Op::Read, Op::Write].map(|op| {
            let phase_ns = drive.rotation().phase_ns(now + drive.overhead(op));
            Way { phase_ns, arm_ns: drive.seek().arm_ns(op) }
        });
        Self { drive, now, from, period_ns: drive.rotation().period_ns(), ways }
    }

    /// Seek time alone.
    #[inline]
    pub fn seek_ns(&self, start: &RunStart) -> u64 {
        let op = if start.is_write { Op::Write } else { Op::Read };
        let switches_head = self.from.surface != u32::from(start.surface);
        self.drive.seek().between_ns(op, self.from.cylinder, start.cylinder, switches_head)
    }

    /// The time until the first sector comes round. Turns and seeks are below 2^32, so that no sum here
    /// overflows.
    #[inline(always)]
    fn first_ns(&self, start: &RunStart) -> u64 {
        let phase_ns = self.ways[usize::from(start.is_write)].phase_ns;
        let edge_ns = u64::from(start.edge_ns);
        let turned_ns = if edge_ns < phase_ns { self.period_ns } else { 0 };
        edge_ns.wrapping_add(turned_ns).wrapping_sub(phase_ns)
    }

    /// The positioning time is no less: changes of heads and margins are left out, and a run that the head
    /// arrives in counts from its end.
    // Inlined: a search excludes most targets by these few steps, in its own loop.
    #[inline(always)]
    pub fn bound_ns(&self, start: &RunStart) -> u64 {
        let arm_ns = self.ways[usize::from(start.is_write)].arm_ns;
        let arm_ns = u64::from(arm_ns[self.from.cylinder.abs_diff(start.cylinder) as usize]);
        let first_ns = self.first_ns(start);
        let late_ns = if first_ns < arm_ns { self.period_ns } else { 0 };
        first_ns.wrapping_add(late_ns).saturating_sub(start.gain_ns.into()).max(arm_ns)
    }

    /// Total of [`Drive::positioning`] for the target that begins with this run.
    #[inline]
    pub fn total_ns<'t>(&self, start: &RunStart, target: impl FnOnce() -> &'t Target) -> u64 {
        let (first_ns, seek_ns) = (self.first_ns(start), self.seek_ns(start));
        // Whole turns later, where the head is not there before.
        let late_ns = seek_ns.saturating_sub(first_ns).saturating_sub(1);
        let turns = u64::from(first_ns < seek_ns) + self.drive.rotation().turns(late_ns);
        let next_ns = first_ns + turns * self.period_ns;
        // How far the start of the run has passed by when the head arrives.
        let passed_ns = seek_ns + self.period_ns - next_ns;
        if passed_ns < start.gain_ns.into() { self.worked_out_ns(target()) } else { next_ns }
    }

    #[cold]
    fn worked_out_ns(&self, target: &Target) -> u64 {
        self.drive.positioning(self.now, self.from, target).total().ns()
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::{Blocks, Lbn, Prng, SimDuration};

    use super::super::margins::SeekMargins;
    use super::*;

    #[test]
    fn positioning_time_exact_and_above_bound() {
        let specs = [
            include_str!("../../../../drives/atlas10k.toml"),
            include_str!("../../../../drives/cheetah9lp.toml"),
        ];
        for (seed, spec) in specs.into_iter().enumerate() {
            let drive = Drive::build(&toml::from_str(spec).unwrap()).unwrap();
            let slower = drive.with_seek_margins(SeekMargins::constant(SimDuration::from_us(300)));
            let prng = &mut Prng::new(seed as u64, "positionings");
            let (mut several, mut amid) = (0, 0);
            for drive in [&drive, &slower] {
                for _ in 0..20_000 {
                    // Often near, where seeks are short; and of all lengths, so that runs are long.
                    let capacity = drive.blocks().get();
                    let range = if prng.chance(0.5) { 20_000 } else { capacity };
                    let start = prng.below(range.min(capacity - 400));
                    let longest = 1 + prng.below(400);
                    let blocks = Blocks::new(1 + prng.below(longest));
                    let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
                    let target = drive.target(Lbn::new(start), blocks, op);
                    let at = drive.layout().locate(Lbn::new(prng.below(range)));
                    let from = Position { cylinder: at.cylinder, surface: at.surface };
                    let now = SimTime::from_ns(prng.below(1 << 40));
                    let (expected, run) =
                        (drive.positioning(now, from, &target), RunStart::of(&target));
                    let positionings = Positionings::new(drive, now, from);
                    let total_ns = positionings.total_ns(&run, || &target);
                    assert_eq!(total_ns, expected.total().ns(), "{target:?} from {from:?}");
                    assert_eq!(positionings.seek_ns(&run), expected.seek.ns());
                    assert!(positionings.bound_ns(&run) <= total_ns, "{target:?} from {from:?}");
                    several += u32::from(!target.one_run);
                    let edge = total_ns.abs_diff(positionings.first_ns(&run));
                    amid +=
                        u32::from(target.one_run && !edge.is_multiple_of(positionings.period_ns));
                }
            }
            assert!(several > 100, "{several} of several runs");
            assert_eq!(amid > 100, drive.is_zero_latency(Op::Read), "{amid} begun within");
        }
    }
}
