//! Seek curves: time of an arm's movement by distance.

use std::sync::Arc;

use freewheel_units::{Op, SimDuration};

use super::margins::{SeekMargins, seek_class};

/// Seek times of one drive by distance in cylinders, for reads and writes, with head switches.
///
/// Built once from a published curve (see [`super::spec::CurveSpec`]) into one table a direction
/// of transfer, so that a look-up is one load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeekCurve {
    read_ns: Arc<[u32]>,
    write_ns: Arc<[u32]>,
    /// Minimum over both operations.
    floor: Arc<Floor>,
    write_floor: Arc<Floor>,
    read_switch_ns: u32,
    write_switch_ns: u32,
    /// Beside the tables, which may have a million entries: margins change while a drive is used.
    margins: Option<Arc<SeekMargins>>,
    least_margin_ns: u32,
}

impl SeekCurve {
    /// `read` and `write` hold the arm's time for distances `1..cylinders`, settling for writes
    /// not included. Panics when their lengths differ.
    pub(crate) fn new(
        read: &[SimDuration],
        write: &[SimDuration],
        head_switch: SimDuration,
        write_settle: SimDuration,
    ) -> Self {
        assert_eq!(read.len(), write.len(), "one time a distance");
        let read_ns = table(read, SimDuration::ZERO);
        let write_ns = table(write, write_settle);
        let floor = Floor::new(&read_ns, &write_ns).into();
        let write_floor = Floor::new(&write_ns, &write_ns).into();
        Self {
            read_ns: read_ns.into(),
            write_ns: write_ns.into(),
            floor,
            write_floor,
            read_switch_ns: narrow(head_switch),
            write_switch_ns: narrow(head_switch + write_settle),
            margins: None,
            least_margin_ns: 0,
        }
    }

    /// Time to move `distance` cylinders and, if `switches_head`, to another surface, until `op` may
    /// begin. Both overlap: the longer counts. Zero without a movement. A write settles after every
    /// movement. Margins are not in it. Panics beyond the last cylinder.
    #[inline]
    pub fn time_ns(&self, op: Op, distance: u32, switches_head: bool) -> u64 {
        let (table, switch) = match op {
            Op::Write => (&self.write_ns, self.write_switch_ns),
            _ => (&self.read_ns, self.read_switch_ns),
        };
        let arm = table[distance as usize];
        u64::from(if switches_head { arm.max(switch) } else { arm })
    }

    /// Times of the arm alone by distance, until `op` may begin. No movement takes less.
    #[inline]
    pub(super) fn arm_ns(&self, op: Op) -> &[u32] {
        if op == Op::Write { &self.write_ns } else { &self.read_ns }
    }

    /// Seek time from one cylinder to another, with the margin of that movement.
    #[inline]
    pub fn between_ns(&self, op: Op, from: u32, to: u32, switches_head: bool) -> u64 {
        let time = self.time_ns(op, from.abs_diff(to), switches_head);
        match &self.margins {
            Some(margins) if time > 0 => time + margins.of(op, seek_class(from, to)).ns(),
            _ => time,
        }
    }

    /// Seek curve with every movement longer by its margin.
    #[must_use]
    pub(crate) fn with_margins(&self, margins: SeekMargins) -> Self {
        let least_margin_ns = margins.least_ns();
        Self { margins: Some(Arc::new(margins)), least_margin_ns, ..self.clone() }
    }

    /// From the first cylinder to the last.
    pub fn distance_max(&self) -> u32 {
        self.read_ns.len() as u32 - 1
    }

    /// No seek of this distance or a longer one takes less, for any operation.
    #[inline]
    pub fn floor_ns(&self, distance: u32) -> u64 {
        self.with_least(self.floor.of(distance))
    }

    /// No movement over this distance or a longer one and to another surface takes less, for any
    /// operation.
    #[inline]
    pub fn switch_floor_ns(&self, distance: u32) -> u64 {
        let switch = self.read_switch_ns.min(self.write_switch_ns);
        self.with_least(self.floor.of(distance).max(switch))
    }

    /// No such movement that ends with `op` takes less.
    #[inline]
    pub fn switch_floor_for_ns(&self, op: Op, distance: u32) -> u64 {
        match op {
            Op::Write => self.with_least(self.write_floor.of(distance).max(self.write_switch_ns)),
            _ => self.switch_floor_ns(distance),
        }
    }

    /// No seek of this distance or a longer one that ends with `op` takes less.
    #[inline]
    pub fn floor_for_ns(&self, op: Op, distance: u32) -> u64 {
        let floor = if op == Op::Write { &self.write_floor } else { &self.floor };
        self.with_least(floor.of(distance))
    }

    /// Without a movement there is no margin either.
    #[inline]
    fn with_least(&self, floor_ns: u32) -> u64 {
        let margin_ns = if floor_ns > 0 { self.least_margin_ns } else { 0 };
        u64::from(floor_ns) + u64::from(margin_ns)
    }

    /// Mean over uniformly distributed pairs of different cylinders, for the data sheet's
    /// "average seek": distance d of C cylinders has the weight 2(C - d).
    pub fn mean(&self, op: Op) -> SimDuration {
        let cylinders = self.read_ns.len() as u128;
        let (mut sum, mut weights) = (0u128, 0u128);
        for distance in 1..self.read_ns.len() {
            let weight = cylinders - distance as u128;
            sum += weight * u128::from(self.time_ns(op, distance as u32, false));
            weights += weight;
        }
        SimDuration::from_ns(u64::try_from(sum / weights.max(1)).expect("mean of u32"))
    }
}

fn table(times: &[SimDuration], settle: SimDuration) -> Vec<u32> {
    std::iter::once(0).chain(times.iter().map(|&t| narrow(t + settle))).collect()
}

fn narrow(time: SimDuration) -> u32 {
    u32::try_from(time.ns()).expect("a seek below 4 s")
}

/// Distances up to which each has its floor.
const NEAR: usize = 2048;

/// Most steps of the floor beyond. Both fit a cache where the tables do not, and a search looks at
/// distances in no order.
const FAR_MAX: usize = 16_384;

/// No seek of a distance or a longer one takes less. Measured curves are not always monotone; a
/// search that prunes by distance needs a bound that is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Floor {
    near_ns: Vec<u32>,
    /// Least distance of each step.
    far_ns: Vec<u32>,
    /// Distances in a step, as a power of two.
    shift: u32,
}

impl Floor {
    /// Minimum of two tables.
    fn new(one_ns: &[u32], other_ns: &[u32]) -> Self {
        let mut floor: Vec<u32> = one_ns.iter().zip(other_ns).map(|(a, b)| *a.min(b)).collect();
        for distance in (1..floor.len().saturating_sub(1)).rev() {
            floor[distance] = floor[distance].min(floor[distance + 1]);
        }
        let steps = floor.len().div_ceil(FAR_MAX).next_power_of_two();
        Self {
            near_ns: floor.iter().take(NEAR).copied().collect(),
            far_ns: floor.iter().step_by(steps).copied().collect(),
            shift: steps.trailing_zeros(),
        }
    }

    #[inline]
    fn of(&self, distance: u32) -> u32 {
        let near = self.near_ns.get(distance as usize);
        near.copied().unwrap_or_else(|| self.far_ns[(distance >> self.shift) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> SeekCurve {
        let us = SimDuration::from_us;
        let arm = [us(1000), us(900), us(1500)];
        SeekCurve::new(&arm, &arm, us(950), us(100))
    }

    #[test]
    fn seek_or_head_switch_longer_counts() {
        assert_eq!(curve().time_ns(Op::Read, 2, true), 950_000);
        assert_eq!(curve().time_ns(Op::Read, 1, true), 1_000_000);
        assert_eq!(curve().time_ns(Op::Read, 0, true), 950_000);
    }

    #[test]
    fn write_settles_only_after_movement() {
        assert_eq!(curve().time_ns(Op::Write, 0, false), 0);
        assert_eq!(curve().time_ns(Op::Write, 0, true), 1_050_000);
        assert_eq!(curve().time_ns(Op::Write, 3, false), 1_600_000);
    }

    #[test]
    fn slower_curve_adds_margins_only_to_movement() {
        let us = SimDuration::from_us;
        let mut margins = SeekMargins::constant(us(4));
        margins.set(Op::Read, 0, us(1));
        margins.set(Op::Write, seek_class(4, 7), us(7));
        margins.set(Op::Write, seek_class(7, 4), us(9));
        let slower = curve().with_margins(margins);
        assert_eq!(slower.between_ns(Op::Read, 5, 5, false), 0);
        assert_eq!(slower.between_ns(Op::Read, 5, 5, true), 951_000);
        assert_eq!(slower.between_ns(Op::Read, 5, 8, true), 1_504_000);
        assert_eq!(slower.between_ns(Op::Write, 5, 8, true), 1_607_000);
        assert_eq!(slower.between_ns(Op::Write, 8, 5, true), 1_609_000);
        // Of any of them no less than the least margin.
        assert_eq!((slower.floor_ns(0), slower.floor_ns(1)), (0, 901_000));
    }

    #[test]
    fn head_switch_movement_never_below_floor() {
        let us = SimDuration::from_us;
        let plain = curve();
        let slower = plain.with_margins(SeekMargins::constant(us(4)));
        for curve in [plain, slower] {
            for (floor_of, of) in (0..=3).flat_map(|floor| (floor..=3).map(move |of| (floor, of))) {
                for op in [Op::Read, Op::Write] {
                    let time = curve.between_ns(op, 0, of, true);
                    assert!(curve.switch_floor_ns(floor_of) <= time, "{op:?} {floor_of} {of}");
                    assert!(curve.switch_floor_for_ns(op, floor_of) <= time, "{floor_of} {of}");
                }
            }
            let write = curve.between_ns(Op::Write, 0, 0, true);
            assert_eq!(
                curve.switch_floor_for_ns(Op::Write, 0),
                write,
                "the change of heads counts"
            );
        }
    }

    #[test]
    fn floor_in_steps_holds_and_is_close() {
        let arm: Vec<SimDuration> =
            (1..100_000).map(|d: u64| SimDuration::from_ns(400_000 + 20_000 * d.isqrt())).collect();
        let curve = SeekCurve::new(&arm, &arm, SimDuration::ZERO, SimDuration::ZERO);
        for distance in 0..100_000 {
            let (floor, time) =
                (curve.floor_ns(distance), curve.time_ns(Op::Read, distance, false));
            assert!(floor <= time && time <= floor + 20_000, "{distance}: {floor} for {time}");
        }
    }

    #[test]
    fn floor_holds_for_dipping_curve() {
        let curve = curve();
        assert_eq!(curve.floor_ns(0), 0);
        assert_eq!(curve.floor_ns(1), 900_000);
        for distance in 1..4u32 {
            for longer in distance..4 {
                assert!(curve.floor_ns(distance) <= curve.time_ns(Op::Read, longer, false));
            }
        }
    }
}
