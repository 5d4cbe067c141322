//! Heats of all extents, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_units::{Blocks, SimTime};

use super::constant::ConstantTracker;
use super::tracker::HeatTracker;
use crate::placement::ExtentId;

/// Settings of the tracking of heat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeatSpec {
    /// k: accesses that the average runs over; 5 to 50 in tr96.
    pub accesses: u32,
    /// Accesses below which a heat is not trusted, at most k. Two are too few: an extent that is read twice
    /// in a row would be the hottest.
    pub accesses_min: u32,
    /// Record kept of an extent's accesses.
    pub history: History,
    /// Extents that are tracked at most. The longest unused one makes way.
    pub extents_max: usize,
}

/// Record kept of an extent's accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// Times and amounts of the last k.
    #[default]
    Accesses,
    /// Two times and a mean.
    Constant,
}

#[derive(Debug, Clone, PartialEq)]
enum Tracker {
    Accesses(HeatTracker),
    Constant(ConstantTracker),
}

impl Tracker {
    fn new(spec: &HeatSpec) -> Self {
        match spec.history {
            History::Accesses => Self::Accesses(HeatTracker::new(spec.accesses)),
            History::Constant => Self::Constant(ConstantTracker::new(spec.accesses)),
        }
    }

    fn record(&mut self, at: SimTime, amount: f64) {
        match self {
            Self::Accesses(tracker) => tracker.record(at, amount),
            Self::Constant(tracker) => tracker.record(at, amount),
        }
    }

    fn age(&mut self, now: SimTime) {
        match self {
            Self::Accesses(tracker) => tracker.age(now),
            Self::Constant(tracker) => tracker.age(now),
        }
    }

    fn scale(&mut self, factor: f64) {
        match self {
            Self::Accesses(tracker) => tracker.scale(factor),
            Self::Constant(tracker) => tracker.scale(factor),
        }
    }

    /// The heat if it rests on `accesses_min` accesses.
    fn trusted(&self, accesses_min: u32) -> Option<f64> {
        let (accesses, heat) = match self {
            Self::Accesses(tracker) => (tracker.accesses(), tracker.heat()),
            Self::Constant(tracker) => (tracker.accesses(), tracker.heat()),
        };
        heat.filter(|_| accesses >= accesses_min)
    }
}

/// Heats of extents.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatTable {
    spec: HeatSpec,
    extents: BTreeMap<ExtentId, Tracked>,
    by_last_use: BTreeSet<LastUse>,
}

#[derive(Debug, Clone, PartialEq)]
struct Tracked {
    last: SimTime,
    tracker: Tracker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LastUse {
    at: SimTime,
    extent: ExtentId,
}

/// Change that an access made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recorded {
    /// Heat of the extent after less heat before; an untrusted heat counts as zero.
    pub change: f64,
    /// An extent that made way.
    pub forgotten: Option<Forgotten>,
}

/// An extent that is not tracked any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forgotten {
    /// The extent.
    pub extent: ExtentId,
    /// The heat that it had; zero if it was not trusted.
    pub heat: f64,
}

impl HeatTable {
    /// An empty table. Panics when k is below 2, the minimum beyond k, or no extent may be tracked.
    pub fn new(spec: HeatSpec) -> Self {
        assert!(spec.accesses >= 2 && spec.accesses_min <= spec.accesses, "{spec:?}");
        assert!(spec.extents_max > 0, "a table for no extents");
        Self { spec, extents: BTreeMap::new(), by_last_use: BTreeSet::new() }
    }

    /// Number of tracked extents.
    pub fn len(&self) -> usize {
        self.extents.len()
    }

    /// True if no extent is tracked.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Counts an access of `amount` to an extent.
    pub fn record(&mut self, extent: ExtentId, at: SimTime, amount: f64) -> Recorded {
        let is_new = !self.extents.contains_key(&extent);
        let forgotten = if is_new { self.make_room() } else { None };
        let tracked = self
            .extents
            .entry(extent)
            .or_insert_with(|| Tracked { last: at, tracker: Tracker::new(&self.spec) });
        let before = tracked.tracker.trusted(self.spec.accesses_min).unwrap_or(0.0);
        self.by_last_use.remove(&LastUse { at: tracked.last, extent });
        self.by_last_use.insert(LastUse { at, extent });
        tracked.last = at;
        tracked.tracker.record(at, amount);
        let after = tracked.tracker.trusted(self.spec.accesses_min).unwrap_or(0.0);
        Recorded { change: after - before, forgotten }
    }

    /// Pseudo-requests to all extents (ageing). Heats of disks must be counted again.
    pub fn age(&mut self, now: SimTime) {
        self.extents.values_mut().for_each(|tracked| tracked.tracker.age(now));
    }

    /// Heat of an extent in amounts a second. None until enough accesses were seen.
    pub fn heat(&self, extent: ExtentId) -> Option<f64> {
        self.extents.get(&extent)?.tracker.trusted(self.spec.accesses_min)
    }

    /// Every tracked extent whose heat is known, by number.
    pub fn heats(&self) -> impl Iterator<Item = (ExtentId, f64)> {
        self.extents.iter().filter_map(|(&extent, tracked)| {
            Some((extent, tracked.tracker.trusted(self.spec.accesses_min)?))
        })
    }

    /// Divides what is known of an extent among the fragments that take its place, by their size.
    /// Returns extents that made way.
    pub fn split(&mut self, extent: ExtentId, fragments: &[Fragment]) -> Vec<Forgotten> {
        let Some(whole) = self.extents.get(&extent).cloned() else { return Vec::new() };
        self.forget(extent);
        let blocks: u64 = fragments.iter().map(|fragment| fragment.blocks.get()).sum();
        let mut forgotten = Vec::new();
        for fragment in fragments {
            forgotten.extend(self.make_room());
            let mut part = whole.clone();
            part.tracker.scale(fragment.blocks.get() as f64 / blocks as f64);
            self.by_last_use.insert(LastUse { at: part.last, extent: fragment.extent });
            self.extents.insert(fragment.extent, part);
        }
        forgotten
    }

    /// Forgets an extent, if it is tracked.
    pub fn forget(&mut self, extent: ExtentId) -> Option<Forgotten> {
        let tracked = self.extents.remove(&extent)?;
        self.by_last_use.remove(&LastUse { at: tracked.last, extent });
        let heat = tracked.tracker.trusted(self.spec.accesses_min).unwrap_or(0.0);
        Some(Forgotten { extent, heat })
    }

    fn make_room(&mut self) -> Option<Forgotten> {
        if self.extents.len() < self.spec.extents_max {
            return None;
        }
        let oldest = self.by_last_use.first()?.extent;
        self.forget(oldest)
    }
}

/// A part of an extent that becomes an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Number of the extent.
    pub extent: ExtentId,
    /// Blocks of the extent.
    pub blocks: Blocks,
}
