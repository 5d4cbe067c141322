//! Behaviour of a drive that its host cannot predict.

use std::collections::BTreeSet;

use freewheel_model::drive::{
    Access, Actuator, Departure, Drive, Latency, Position, Sectors, Target,
};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::seek_errors::SeekErrors;

/// Maintenance that a drive performs on its own, such as thermal recalibration (fast02 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// Mean time between activities; exponentially distributed.
    pub every: SimDuration,
    /// Duration of each; it ends with the arm at the outermost cylinder.
    pub lasts: SimDuration,
}

/// Blocks that cannot be read until they are written again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BadBlocks {
    blocks: BTreeSet<Lbn>,
    recovery: SimDuration,
}

impl BadBlocks {
    /// Marks these blocks as bad; the drive retries each access to one of them for `recovery`.
    pub fn new(blocks: impl IntoIterator<Item = Lbn>, recovery: SimDuration) -> Self {
        Self { blocks: blocks.into_iter().collect(), recovery }
    }

    /// Like [`Self::new`], for blocks given by their numbers.
    pub fn numbered(blocks: impl IntoIterator<Item = u64>, recovery: SimDuration) -> Self {
        Self::new(blocks.into_iter().map(Lbn::new), recovery)
    }

    /// Extends each bad block to its whole sector.
    pub(super) fn in_sectors(self, sectors: Sectors) -> Self {
        Self {
            blocks: self
                .blocks
                .into_iter()
                .flat_map(|block| {
                    let (from, to) = sectors.cover(block, block + Blocks::new(1));
                    (from.get()..to.get()).map(Lbn::new)
                })
                .collect(),
            ..self
        }
    }

    /// The first of the blocks `start..start + blocks` that is bad.
    pub fn first_in(&self, start: Lbn, blocks: u32) -> Option<Lbn> {
        self.first_of(start, Lbn::new(start.get() + u64::from(blocks)))
    }

    /// The first of the blocks `start..end` that is bad.
    fn first_of(&self, start: Lbn, end: Lbn) -> Option<Lbn> {
        self.blocks.range(start..end.max(start)).next().copied()
    }

    /// A write has replaced these blocks by spare ones.
    pub fn written(&mut self, start: Lbn, blocks: u32) {
        while let Some(bad) = self.first_in(start, blocks) {
            self.blocks.remove(&bad);
        }
    }
}

/// Moves the head like a real drive: seeks have errors, activity interrupts, and bad blocks cost
/// retries.
pub(super) struct Firmware {
    jitter: SeekJitter,
    bad: BadBlocks,
    activity: Option<Interruptions>,
}

/// Distribution of seek errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JitterShape {
    /// Evenly, up to the jitter either way.
    #[default]
    Even,
    /// Normally: the jitter is the standard deviation, and few seeks are off by several times that.
    Normal,
}

/// Errors of seeks by distance and direction.
pub(super) struct SeekJitter {
    pub errors: SeekErrors,
    pub shape: JitterShape,
    /// Largest error of a seek over all cylinders, if it differs from that of a short seek.
    pub far_ns: Option<u64>,
    /// Largest error of a seek inward over any distance, if it differs.
    pub inward_ns: Option<u64>,
}

impl SeekJitter {
    /// Error of the next seek in nanoseconds.
    fn draw(&mut self, drive: &Drive, from: u32, to: u32) -> i64 {
        let jitter_ns = self.jitter_ns(drive, from, to);
        match self.shape {
            JitterShape::Even => self.errors.draw_within(jitter_ns),
            JitterShape::Normal => self.errors.draw_normal(jitter_ns),
        }
    }

    fn jitter_ns(&self, drive: &Drive, from: u32, to: u32) -> u64 {
        if let Some(inward_ns) = self.inward_ns.filter(|_| to > from) {
            return inward_ns;
        }
        let near_ns = self.errors.tolerance_ns();
        let Some(far_ns) = self.far_ns else { return near_ns };
        let distance: u64 = from.abs_diff(to).into();
        let most: u64 = drive.seek().distance_max().max(1).into();
        (near_ns * (most - distance) + far_ns * distance) / most
    }
}

struct Interruptions {
    activity: Activity,
    prng: Prng,
    next: SimTime,
}

impl Interruptions {
    fn new(activity: Activity, seed: u64) -> Self {
        let prng = Prng::new(seed, "internal activity");
        let mut interruptions = Self { activity, prng, next: SimTime::ZERO };
        interruptions.next = interruptions.after(SimTime::ZERO);
        interruptions
    }

    fn after(&mut self, time: SimTime) -> SimTime {
        time + SimDuration::from_ns(self.prng.exponential(self.activity.every.ns() as f64) as u64)
    }

    /// Delays a departure until no activity holds the arm.
    fn delay(&mut self, mut departure: Departure) -> Departure {
        // An activity that ended before the departure costs no time but still moved the arm, so `from`
        // changes in either case.
        while self.next <= departure.begin {
            let end = self.next + self.activity.lasts;
            departure.from = Position::default();
            departure.begin = departure.begin.max(end);
            self.next = self.after(end);
        }
        departure
    }
}

impl Firmware {
    pub fn new(jitter: SeekJitter, bad: BadBlocks, activity: Option<Activity>, seed: u64) -> Self {
        let activity = activity.map(|activity| Interruptions::new(activity, seed));
        Self { jitter, bad, activity }
    }

    pub fn bad(&mut self) -> &mut BadBlocks {
        &mut self.bad
    }
}

impl Actuator for Firmware {
    fn access(
        &mut self,
        drive: &Drive,
        departure: &Departure,
        target: &Target,
        _: Latency,
    ) -> Access {
        let error = self.jitter.draw(drive, departure.from.cylinder, target.at.cylinder);
        let delayed = self.activity.as_mut().map_or(*departure, |own| own.delay(*departure));
        let mut access = drive.media_access_from(&delayed, target, error);
        access.seek += delayed.begin - departure.begin;
        if target.op == Op::Read && self.bad.first_in(target.start, target.blocks).is_some() {
            access.rotate += self.bad.recovery;
        }
        access
    }

    fn unreadable(&self, start: Lbn, end: Lbn) -> Option<Lbn> {
        self.bad.first_of(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;

    /// An Atlas 10K whose seeks vary by 10 us over a cylinder, by 250 us over all and by `inward_ns`
    /// inward.
    fn atlas(inward_ns: Option<u64>) -> (Drive, Firmware) {
        let mut spec = library::spec("atlas10k").unwrap();
        spec.seek.tolerance = SimDuration::from_us(10);
        let drive = library::build(&spec, "atlas10k").unwrap();
        let errors = SeekErrors::new(&drive, 1, 0);
        let jitter =
            SeekJitter { errors, shape: JitterShape::Even, far_ns: Some(250_000), inward_ns };
        (drive, Firmware::new(jitter, BadBlocks::default(), None, 1))
    }

    /// The longest error of many movements from a cylinder to another.
    fn longest(drive: &Drive, firmware: &mut Firmware, from: u32, to: u32) -> u64 {
        let at = |block: u64| drive.target(Lbn::new(block), Blocks::new(1), Op::Read);
        let block = (0..drive.blocks().get()).step_by(100);
        let target = block.map(at).find(|target| target.at.cylinder >= to).unwrap();
        let departure = Departure {
            begin: SimTime::ZERO,
            from: Position { cylinder: from, surface: 0 },
            last_op: Op::Read,
            read_write_switch: SimDuration::ZERO,
        };
        let plain = drive.media_access_from(&departure, &target, 0).seek.ns();
        let mut off = || {
            let access = firmware.access(drive, &departure, &target, Latency::Free);
            access.seek.ns().abs_diff(plain)
        };
        (0..2000).map(|_| off()).max().unwrap()
    }

    #[test]
    fn jitter_grows_with_seek_distance() {
        let (drive, mut firmware) = atlas(None);
        let last = drive.seek().distance_max();
        for (to, most_ns) in [(1, 10_000), (last / 2, 130_000), (last - 1, 250_000)] {
            let longest = longest(&drive, &mut firmware, 0, to);
            let around = most_ns * 98 / 100..=most_ns * 102 / 100;
            assert!(around.contains(&longest), "{longest} ns over {to} cylinders");
        }
    }

    #[test]
    fn jitter_normal_exceeds_bounds_as_expected() {
        let (drive, mut firmware) = atlas(None);
        firmware.jitter =
            SeekJitter { shape: JitterShape::Normal, far_ns: None, ..firmware.jitter };
        let errors: Vec<i64> = (0..20_000).map(|_| firmware.jitter.draw(&drive, 0, 9)).collect();
        let beyond = |times: u64| {
            errors.iter().filter(|error| error.unsigned_abs() > times * 10_000).count() as f64 / 2e4
        };
        // 31.7, 4.55 and 0.27 %; the standard deviation of the first is 0.33 points.
        assert!((beyond(1) - 0.317).abs() < 0.012, "{}", beyond(1));
        assert!((beyond(2) - 0.0455).abs() < 0.006, "{}", beyond(2));
        assert!((0.0005..0.005).contains(&beyond(3)), "{}", beyond(3));
        let late = errors.iter().filter(|&&error| error > 0).count() as f64 / 2e4;
        assert!((late - 0.5).abs() < 0.012, "{late}");
    }

    #[test]
    fn jitter_inward_only_on_inward_seeks() {
        let (drive, mut firmware) = atlas(Some(400_000));
        let last = drive.seek().distance_max();
        for (way, most_ns) in [((0, last / 2), 400_000), ((last, last / 2), 130_000)] {
            let longest = longest(&drive, &mut firmware, way.0, way.1);
            let around = most_ns * 98 / 100..=most_ns * 102 / 100;
            assert!(around.contains(&longest), "{longest} ns on {way:?}");
        }
    }
}
