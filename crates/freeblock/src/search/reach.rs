//! Places that the head can reach within a gap, and times.
//!
//! **Problem.** For a track, a cylinder or a group of cylinders: how long can the head stay there, when,
//! and which part of the turn passes meanwhile? For groups the answer must hold for all of them.
//!
//! ```text
//!  begin                                                              due
//!    |--enter: seek there--|------- stay -------|--leave: seek to dest.--|
//!    0                    2.1                  6.4                      8.0 ms
//! ```
//!
//! A gap of 8.0 ms, 2.1 ms to a track and 1.6 ms from there to the destination leave a stay of 4.3 ms, from
//! 2.1 to 6.4. With a turn of 6.0 ms in 16 slots, and slot 3 at the head when the gap begins, the stay
//! lasts from slot 3 + 5.6 = 8.6 to slot 3 + 17.07 = 20.07: the arc of 13 slots from slot 8 on.
//!
//! For a group of cylinders the seeks are those to its nearest cylinder, as no seek over more cylinders is
//! taken to be faster: a stay on any of them lies within this one.

use freewheel_units::{Op, SimDuration, SimTime};

use super::arcs::SlotArc;
use super::block_start_mask::{BlockStartMask, Turn};
use super::cylinder_range::CylinderRange;
use crate::opportunity::Opportunity;
use freewheel_model::drive::{Departure, Drive, Position};

/// A stay on a track, in ns from the beginning of the gap.
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
    /// Length of the gap in ns, seek included.
    length: u64,
    period: u64,
    /// Slots of a turn: a power of two.
    slots: usize,
    /// Longer stays might end in the slot in which they begin, and seem to have one slot.
    slots_told_below: u64,
    /// In ns at the beginning of the gap.
    phase: u64,
    /// In units of 2^-40, rounded down.
    slots_per_ns: u64,
    turn: Turn,
}

impl<'a> Reach<'a> {
    /// `slots` is the number of slots in a turn: a power of two.
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

    /// Length of the gap in ns, seek included.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Time in ns from the source track to `at` until `op` may begin.
    #[inline]
    pub fn enter_ns(&self, at: Position, op: Op) -> u64 {
        self.drive.travel(&self.gap.departure(), at, op, 0).ns()
    }

    /// Time in ns from `at` to the destination track after `op`, until the foreground may begin.
    #[inline]
    pub fn leave_ns(&self, at: Position, op: Op) -> u64 {
        let departure = Departure { from: at, last_op: op, ..self.gap.departure() };
        self.drive.travel(&departure, self.gap.to, self.gap.op, self.gap.seek_error_ns).ns()
    }

    /// Time in ns between transfers in direction `op` to another head of a cylinder, or to another cylinder
    /// with a change of heads.
    #[inline]
    pub fn cross_ns(&self, from: u32, to: u32, op: Op) -> u64 {
        self.drive.seek().between_ns(op, from, to, true)
    }

    /// The stay on `at` for transfers in direction `op` if no other track is visited: empty without time
    /// for it, a turn at most.
    #[inline]
    pub fn stay(&self, at: Position, op: Op) -> DwellWindow {
        // Both ways depend on the direction: writes settle longer, and a change of direction takes
        // time.
        let leave = self.length.saturating_sub(self.leave_ns(at, op));
        let arrive = self.enter_ns(at, op).max(self.opens_ns(at));
        // After a turn the same sectors pass again. Only where a detour is faster than the direct
        // way, or spares a settling, is there more time.
        DwellWindow { from: arrive.min(leave), to: leave.min(arrive + self.period) }
    }

    /// Time in ns on `at` between both seeks, without a limit: the less extra seek, the more. Above zero
    /// wherever there is a stay.
    #[inline]
    pub fn room(&self, at: Position, op: Op) -> u64 {
        self.length.saturating_sub(self.enter_ns(at, op) + self.leave_ns(at, op))
    }

    /// Earliest transfer in ns on `at`; later than the arrival only on tracks at the ends of the gap.
    #[inline]
    fn opens_ns(&self, at: Position) -> u64 {
        let Opportunity { from, to, ends, .. } = self.gap;
        if ends.source_closed && at == from {
            return self.length;
        }
        let before = ends.destination_before.filter(|_| at == to);
        before.map_or(0, |before| self.length.saturating_sub(before.ns()))
    }

    /// Arc and length in ns of the longest stay on any of these cylinders but those of source and
    /// destination. None without time for it.
    #[inline]
    pub fn arc(&self, cylinders: CylinderRange) -> Option<(SlotArc, u64)> {
        // Source and destination themselves are left out, so that the nearest lies next to them.
        let distance = |cylinder: u32| cylinders.distance(cylinder).max(1);
        let seek = self.drive.seek();
        // One cylinder: it is that of source and destination.
        if seek.distance_max() == 0 {
            return None;
        }
        let from = seek.floor_ns(distance(self.gap.from.cylinder));
        // The least time over this distance or a longer one: no seek from these cylinders takes less.
        let back = self.back_ns(distance(self.gap.to.cylinder));
        self.slots_between(from, back)
    }

    /// Arc of the longest stay on a cylinder, which may be that of source or destination.
    #[inline]
    pub fn arc_at(&self, cylinder: u32) -> Option<SlotArc> {
        let from = self.drive.seek().floor_ns(self.gap.from.cylinder.abs_diff(cylinder));
        let back = self.back_ns(self.gap.to.cylinder.abs_diff(cylinder));
        Some(self.slots_between(from, back)?.0)
    }

    /// Least time in ns to the destination over `distance` cylinders or more.
    #[inline]
    fn back_ns(&self, distance: u32) -> u64 {
        self.with_error(self.drive.seek().floor_for_ns(self.gap.op, distance))
    }

    #[inline]
    fn with_error(&self, seek: u64) -> u64 {
        // Without a movement there is no error either.
        if seek > 0 { seek.saturating_add_signed(self.gap.seek_error_ns) } else { 0 }
    }

    /// The longest stay on a cylinder, on surfaces neither of source nor of destination if heads are
    /// switched, else on any. None without time for it.
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
        // Stays of zero length hold no sector.
        let length = self.length.checked_sub(from + back).filter(|&length| length > 0)?;
        Some(DwellWindow { from, to: from + length })
    }

    /// Parts of the turn in which a block must begin to pass wholly in a stay; `block_ns` is the least that
    /// any block takes.
    #[inline]
    pub fn begins_in(&self, stay: DwellWindow, block_ns: u64) -> BlockStartMask {
        self.turn.window(self.phase + stay.from, stay.length().saturating_sub(block_ns))
    }

    /// Least time in ns that `sectors` take to pass, of a track of `on_track`.
    #[inline]
    pub fn passing_ns(&self, sectors: u32, on_track: u32) -> u64 {
        self.turn.passing_ns(sectors, on_track)
    }

    /// Arc and length of a stay that begins `from` ns after the gap does and ends `back` ns before it does.
    /// None without time for it.
    #[inline]
    fn slots_between(&self, from: u64, back: u64) -> Option<(SlotArc, u64)> {
        let length = self.length.checked_sub(from + back).filter(|&length| length > 0)?;
        if length >= self.slots_told_below {
            // A window of this length may begin and end in the same slot, and would look short: it is given
            // all slots.
            let slots = self.slots + usize::from(length > self.period);
            return Some((SlotArc { first: 0, slots }, length));
        }
        // A block that begins in this nanosecond may lie up to one before it, as edges are rounded up. A
        // turn more keeps the difference above zero and changes no slot.
        let begin = self.phase + from + self.period - 1;
        let first = self.slot(begin, self.slots_per_ns);
        // The first slot by a rate rounded down, the last by one rounded up: the arc never misses a slot.
        let last = self.slot(begin + 1 + length, self.slots_per_ns + 1);
        Some((SlotArc { first, slots: (last.wrapping_sub(first) & (self.slots - 1)) + 1 }, length))
    }

    /// Most sectors that pass in `length` ns, of a track of `sectors`.
    #[inline]
    pub fn sectors_in(&self, length: u64, sectors: u32) -> u64 {
        // Angles of edges are rounded down, their times up: two nanoseconds more may seem to pass.
        let length = SimDuration::from_ns(length + 2);
        self.drive.rotation().parts_passing(length, sectors)
    }

    /// The slot of a phase, which may count turns.
    #[inline]
    fn slot(&self, phase: u64, slots_per_ns: u64) -> usize {
        ((phase * slots_per_ns) >> 40) as usize & (self.slots - 1)
    }
}
