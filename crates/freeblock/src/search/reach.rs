//! When the head can be where, within a gap.

use freewheel_units::{Op, SimDuration, SimTime};

use super::arcs::SlotArc;
use super::block_start_mask::{BlockStartMask, Turn};
use super::cylinder_range::CylinderRange;
use crate::opportunity::Opportunity;
use freewheel_model::drive::{Departure, Drive, Position};

/// A stay on a track, in nanoseconds from the beginning of the gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DwellWindow {
    pub from: u64,
    pub to: u64,
}

impl DwellWindow {
    #[inline]
    pub fn length(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// A gap with the drive it is on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<'a> {
    drive: &'a Drive,
    pub gap: Opportunity,
    /// Length of the gap, seek included.
    length: u64,
    period: u64,
    /// Slots of a turn: a power of two.
    slots: usize,
    /// Stays as long as this might seem to end in the slot they begin in.
    slots_told_below: u64,
    /// Phase at the beginning of the gap.
    phase: u64,
    /// Slots a nanosecond, in units of 2^-40, rounded down.
    slots_per_ns: u64,
    turn: Turn,
}

impl<'a> Reach<'a> {
    /// With windows told in so many slots of a turn.
    pub fn new(drive: &'a Drive, gap: &Opportunity, slots: usize) -> Self {
        let rotation = drive.rotation();
        let in_turn = slots as u64;
        Self {
            drive,
            gap: *gap,
            length: (gap.due - gap.begin).ns(),
            period: rotation.period_ns(),
            slots,
            slots_told_below: (rotation.period_ns() * (in_turn - 2)).div_ceil(in_turn),
            phase: rotation.phase_ns(gap.begin),
            slots_per_ns: (in_turn << 40) / rotation.period_ns(),
            turn: Turn::new(rotation.period_ns()),
        }
    }

    pub fn time(&self, ns: u64) -> SimTime {
        SimTime::from_ns(self.gap.begin.ns() + ns)
    }

    /// Length of the gap in nanoseconds.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Moving from the source track until `op` may begin.
    #[inline]
    pub fn enter_ns(&self, at: Position, op: Op) -> u64 {
        self.drive.travel(&self.gap.departure(), at, op, 0).ns()
    }

    /// Moving to the destination track after `op`, until the foreground may begin.
    #[inline]
    pub fn leave_ns(&self, at: Position, op: Op) -> u64 {
        let departure = Departure { from: at, last_op: op, ..self.gap.departure() };
        self.drive.travel(&departure, self.gap.to, self.gap.op, self.gap.seek_error_ns).ns()
    }

    /// Changing to another head on a cylinder, or moving to another cylinder whichever the heads, in
    /// the midst of transfers in direction `op`.
    #[inline]
    pub fn cross_ns(&self, from: u32, to: u32, op: Op) -> u64 {
        self.drive.seek().between_ns(op, from, to, true)
    }

    /// The stay on `at` when nothing else is visited, for transfers in direction `op`:
    /// empty when there is no time for it, and no longer than a turn.
    #[inline]
    pub fn stay(&self, at: Position, op: Op) -> DwellWindow {
        let leave = self.length.saturating_sub(self.leave_ns(at, op));
        let arrive = self.enter_ns(at, op).max(self.opens_ns(at));
        // After a turn the same sectors pass again. Only where a detour is faster than the direct
        // way, or spares a settling, is there more time.
        DwellWindow { from: arrive.min(leave), to: leave.min(arrive + self.period) }
    }

    /// Time on `at` between its ways, however long: the less extra seek, the more. Above zero wherever
    /// there is a stay.
    #[inline]
    pub fn room(&self, at: Position, op: Op) -> u64 {
        self.length.saturating_sub(self.enter_ns(at, op) + self.leave_ns(at, op))
    }

    /// From when on anything may be done on a track that is at an end of the gap.
    #[inline]
    fn opens_ns(&self, at: Position) -> u64 {
        let Opportunity { from, to, ends, .. } = self.gap;
        if ends.source_closed && at == from {
            return self.length;
        }
        let before = ends.destination_before.filter(|_| at == to);
        before.map_or(0, |before| self.length.saturating_sub(before.ns()))
    }

    /// Slots of the longest stay on any of these cylinders but those of source and
    /// destination, and its length. None when there is no time.
    #[inline]
    pub fn arc(&self, cylinders: CylinderRange) -> Option<(SlotArc, u64)> {
        // Source and destination themselves are left out, so that the nearest lies next to them.
        let distance = |cylinder: u32| cylinders.distance(cylinder).max(1);
        let seek = self.drive.seek();
        if seek.distance_max() == 0 {
            return None;
        }
        let from = seek.floor_ns(distance(self.gap.from.cylinder));
        let back = self.back_ns(distance(self.gap.to.cylinder));
        self.slots_between(from, back)
    }

    /// Slots of the longest stay on a cylinder, which may be that of source or destination.
    #[inline]
    pub fn arc_at(&self, cylinder: u32) -> Option<SlotArc> {
        let from = self.drive.seek().floor_ns(self.gap.from.cylinder.abs_diff(cylinder));
        let back = self.back_ns(self.gap.to.cylinder.abs_diff(cylinder));
        Some(self.slots_between(from, back)?.0)
    }

    /// No way to the destination over `distance` cylinders or more takes less.
    #[inline]
    fn back_ns(&self, distance: u32) -> u64 {
        self.with_error(self.drive.seek().floor_for_ns(self.gap.op, distance))
    }

    #[inline]
    fn with_error(&self, seek: u64) -> u64 {
        // Where nothing moves there is no error either.
        if seek > 0 { seek.saturating_add_signed(self.gap.seek_error_ns) } else { 0 }
    }

    /// The longest stay on a cylinder, on surfaces neither of source nor of destination if heads are
    /// switched, or on any. None when there is no time.
    #[inline]
    pub fn longest_at(&self, cylinder: u32, switches: bool) -> Option<DwellWindow> {
        let [from, to] = [self.gap.from, self.gap.to].map(|at| at.cylinder.abs_diff(cylinder));
        let seek = self.drive.seek();
        let (from, back) = if switches {
            let back = seek.switch_floor_for_ns(self.gap.op, to);
            (seek.switch_floor_ns(from), self.with_error(back))
        } else {
            (seek.floor_ns(from), self.back_ns(to))
        };
        let length = self.length.checked_sub(from + back).filter(|&length| length > 0)?;
        Some(DwellWindow { from, to: from + length })
    }

    /// The parts of the turn in which blocks begin that take no less than `block_ns` and pass in a stay.
    #[inline]
    pub fn begins_in(&self, stay: DwellWindow, block_ns: u64) -> BlockStartMask {
        self.turn.window(self.phase + stay.from, stay.length().saturating_sub(block_ns))
    }

    /// How long a block of `sectors` takes to pass, at least, on a track of `on_track`.
    #[inline]
    pub fn passing_ns(&self, sectors: u32, on_track: u32) -> u64 {
        self.turn.passing_ns(sectors, on_track)
    }

    /// Slots of a stay that begins `from` nanoseconds after the gap and ends `back` before its end,
    /// and its length. None when there is no time.
    #[inline]
    fn slots_between(&self, from: u64, back: u64) -> Option<(SlotArc, u64)> {
        let length = self.length.checked_sub(from + back).filter(|&length| length > 0)?;
        if length >= self.slots_told_below {
            let slots = self.slots + usize::from(length > self.period);
            return Some((SlotArc { first: 0, slots }, length));
        }
        // Edges are rounded up to whole nanoseconds: what begins at this one may lie one before it.
        let begin = self.phase + from + self.period - 1;
        let first = self.slot(begin, self.slots_per_ns);
        let last = self.slot(begin + 1 + length, self.slots_per_ns + 1);
        Some((SlotArc { first, slots: (last.wrapping_sub(first) & (self.slots - 1)) + 1 }, length))
    }

    /// No more of a track's `sectors` pass in `length` nanoseconds.
    #[inline]
    pub fn sectors_in(&self, length: u64, sectors: u32) -> u64 {
        // Edges are rounded up to nanoseconds, after their angles were rounded down: that much more
        // may seem to pass.
        let length = SimDuration::from_ns(length + 2);
        self.drive.rotation().parts_passing(length, sectors)
    }

    /// The slot of a phase, whole turns aside.
    #[inline]
    fn slot(&self, phase: u64, slots_per_ns: u64) -> usize {
        ((phase * slots_per_ns) >> 40) as usize & (self.slots - 1)
    }
}
