//! What a scan leaves when it goes on for a while as it did.

use std::ops::Range;

use freewheel_model::freeblock::{FreeRun, Planner, Scheduler};
use freewheel_units::{Lbn, Op, Prng, SimTime};

/// A free run: its first block of 512 B, and the one behind its last.
pub(super) type Run = (u64, u64);

/// Runs from which the rate of a region is told. Few, so that regions end where the head's reach
/// does; what is wrong with one rate by chance is made up for by the next burst.
const RUNS_OF_REGION: usize = 6;

/// Part of a group of runs that one distance between them must take for a place where a region ends.
/// Assumed: of six runs that lie anywhere it is one group in 25 where one does; of fewer it is more.
const EMPTY: f64 = 0.7;

/// What is wanted of a region for each block that is to be read there: half of it is left then.
const ENOUGH: f64 = 1.0 / std::f64::consts::LN_2;

/// Looks for a place where as much is wanted as was read: the scheduler takes the best in reach.
const TRIES: u32 = 4;

/// Sweeps over a region until as much is read as should be.
const SWEEPS: u32 = 16;

/// A scan in blocks of `size` x 512 B, the only thing that is wanted.
pub(super) struct Scan<'a> {
    pub scheduler: &'a mut Scheduler,
    pub layer: usize,
    pub size: u64,
    pub now: SimTime,
}

/// How far a leap goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leap {
    /// How many times over the runs of the burst come again.
    pub times: f64,
    /// Part of its length by which a region may grow at either end where too little is wanted of it
    /// for that, and again, of the length that it has then, each time that it becomes one with another.
    pub reach: f64,
}

/// A part of the disk in which the rate is taken to be the same, in blocks of 512 B.
#[derive(Debug, Clone, PartialEq)]
struct Region {
    from: u64,
    to: u64,
    /// The runs that were read in it.
    runs: Range<usize>,
    read: f64,
    wanted: f64,
    has_grown: bool,
}

impl Region {
    /// What is left when its runs have come so many times again: the rate goes down with what there
    /// is.
    fn left_after(&self, times: f64) -> f64 {
        self.wanted * libm::exp(-times * self.read / self.wanted.max(1.0))
    }

    /// Whether less than half would be left of it.
    fn lacks(&self, times: f64) -> bool {
        self.wanted < ENOUGH * times * self.read
    }

    /// It and the next one, which begins where this one ends, become one.
    fn join(&mut self, next: Self) {
        self.to = next.to;
        self.runs.end = next.runs.end;
        self.read += next.read;
        self.wanted += next.wanted;
        self.has_grown = false;
    }
}

impl Scan<'_> {
    /// Reads in runs like these and where these were, as far as `leap` says. Which part of what such
    /// runs would have read was there to be read.
    pub fn go_on(&mut self, runs: &mut [Run], leap: Leap, prng: &mut Prng) -> f64 {
        runs.sort_unstable();
        let mut regions = self.regions(runs);
        self.grow(&mut regions, leap);
        let (mut there, mut all) = (0.0, 0.0);
        for region in regions {
            let read = region.wanted - region.left_after(leap.times);
            there += read;
            all += leap.times * region.read;
            self.read(
                &region,
                &runs[region.runs.clone()],
                (read / self.size as f64).round() as u64,
                prng,
            );
        }
        if all > 0.0 { there / all } else { 1.0 }
    }

    /// Regions with about as many runs each, which end where their runs do.
    fn regions(&self, runs: &[Run]) -> Vec<Region> {
        let mut groups = Vec::new();
        runs.chunks(RUNS_OF_REGION).for_each(|group| split(group, &mut groups));
        let bound = self.scheduler.drive().blocks().get();
        let (mut least, mut first_run) = (0, 0);
        let mut regions = Vec::with_capacity(groups.len());
        for (number, &group) in groups.iter().enumerate() {
            let (first, end) = outwards(group);
            let next = groups.get(number + 1);
            let most = next.map_or(bound, |next| group[group.len() - 1].1.midpoint(next[0].0));
            let from = first.max(least);
            let to = end.min(most).max(from);
            least = to;
            let read = group.iter().map(|run| (run.1 - run.0) as f64).sum();
            let runs = first_run..first_run + group.len();
            first_run = runs.end;
            let wanted = self.wanted_in(from, to);
            regions.push(Region { from, to, runs, read, wanted, has_grown: false });
        }
        regions
    }

    /// Lets regions grow of which too little is wanted: by their reach, and where that ends at another
    /// one by becoming one with it. The head takes what is near where it would have read.
    fn grow(&self, regions: &mut Vec<Region>, leap: Leap) {
        loop {
            self.extend(regions, leap);
            let count = regions.len();
            let mut joined: Vec<Region> = Vec::with_capacity(count);
            for region in regions.drain(..) {
                let lacks = |of: &Region| of.lacks(leap.times);
                match joined.last_mut() {
                    Some(last) if last.to == region.from && (lacks(last) || lacks(&region)) => {
                        last.join(region);
                    }
                    _ => joined.push(region),
                }
            }
            *regions = joined;
            if regions.len() == count {
                return;
            }
        }
    }

    /// Extends those that have not grown yet, up to the next ones.
    fn extend(&self, regions: &mut [Region], leap: Leap) {
        let bound = self.scheduler.drive().blocks().get();
        for number in 0..regions.len() {
            let least = number.checked_sub(1).map_or(0, |before| regions[before].to);
            let most = regions.get(number + 1).map_or(bound, |next| next.from);
            let region = &mut regions[number];
            if region.has_grown || !region.lacks(leap.times) {
                continue;
            }
            region.has_grown = true;
            let step = ((region.to - region.from) as f64 * leap.reach) as u64;
            let from = region.from.saturating_sub(step).max(least).min(region.from);
            let to = region.to.saturating_add(step).min(most).max(region.to);
            region.wanted += self.wanted_in(from, region.from) + self.wanted_in(region.to, to);
            (region.from, region.to) = (from, to);
        }
    }

    /// What is wanted between two places, in blocks of 512 B.
    fn wanted_in(&self, from: u64, to: u64) -> f64 {
        let blocks = self.scheduler.wanted_in(self.layer, from / self.size, to / self.size);
        (blocks * self.size) as f64
    }

    /// Reads so many blocks of a region, in runs like these of it.
    fn read(&mut self, region: &Region, runs: &[Run], blocks: u64, prng: &mut Prng) {
        let mut missing = blocks;
        for _ in 0..SWEEPS {
            if missing == 0 {
                return;
            }
            let mean = region.read / runs.len() as f64;
            let count = (missing * self.size) as f64 / mean;
            let distance = (region.to - region.from) as f64 / count.max(1.0);
            let mut at = region.from + prng.exponential(distance) as u64;
            while missing > 0 {
                let like = runs[prng.below(runs.len() as u64) as usize];
                let Some(run) = self.wanted_like(like.1 - like.0, (at, region.to)) else { break };
                missing = missing.saturating_sub(self.done(run));
                at = (at + prng.exponential(distance) as u64).max(run.1);
            }
        }
    }

    /// A run on one track with so many wanted blocks of 512 B, or the longest of a few.
    fn wanted_like(&self, length: u64, (from, to): Run) -> Option<Run> {
        let mut longest: Option<Run> = None;
        let mut at = from;
        for _ in 0..TRIES {
            let run = self.scheduler.next_on_track(self.layer, at, length);
            let Some(run) = run.filter(|run| run.0 < to) else { break };
            if longest.is_none_or(|longest| run.1 - run.0 > longest.1 - longest.0) {
                longest = Some(run);
            }
            if run.1 - run.0 >= length {
                break;
            }
            at = run.1;
        }
        longest
    }

    /// The run is read: how many blocks are complete by it.
    fn done(&mut self, (from, to): Run) -> u64 {
        let run = FreeRun { start: Lbn::new(from), blocks: (to - from) as u32, op: Op::Read };
        self.scheduler.done(&run, self.now);
        self.scheduler.deliveries().map(|delivery| delivery.delivered.blocks).sum()
    }
}

/// Divides a group where most of it is empty: nothing says that anything there is reached.
fn split<'r>(group: &'r [Run], groups: &mut Vec<&'r [Run]>) {
    let most = EMPTY * (group[group.len() - 1].1 - group[0].0) as f64;
    let distance = |at: usize| group[at].0.saturating_sub(group[at - 1].1);
    let widest = (1..group.len()).max_by_key(|&at| distance(at));
    match widest.filter(|&at| distance(at) as f64 > most) {
        Some(at) => {
            split(&group[..at], groups);
            split(&group[at..], groups);
        }
        None => groups.push(group),
    }
}

/// Where a group of runs would end if one more came at its mean distance.
fn outwards(group: &[Run]) -> Run {
    let (first, last) = (group[0].0, group[group.len() - 1].1);
    let distance = (last - first) / group.len() as u64;
    (first.saturating_sub(distance), last + distance)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use freewheel_model::drive::Drive;
    use freewheel_model::freeblock::{LayerKey, Options};
    use proptest::prelude::*;

    use super::*;

    fn drive() -> &'static Arc<Drive> {
        static DRIVE: OnceLock<Arc<Drive>> = OnceLock::new();
        DRIVE.get_or_init(|| {
            let spec = freewheel_sim::library::spec("atlas10k").unwrap();
            Arc::new(Drive::build(&spec).unwrap())
        })
    }

    /// A scan of what is left of the drive in some places, and runs that were read near one place.
    fn with_scan(seed: u64, count: usize, spread: u64, check: impl FnOnce(&Scan<'_>, &[Run])) {
        let prng = &mut Prng::new(seed, "regions");
        let bound = drive().blocks().get();
        let scheduler = &mut Scheduler::new(drive(), Options::default());
        let (size, op) = (64, Op::Read);
        let layer = scheduler.layer(LayerKey { op, size: size as u32, offset: 0, weight: 1 });
        for _ in 0..20 {
            let from = prng.below(bound / size);
            scheduler.want(layer, from, (from + prng.below(5000)).min(bound / size));
        }
        let near = prng.below(bound - 10);
        let mut run = || {
            let from = (near + prng.below(spread)).min(bound - 10);
            (from, (from + 1 + prng.below(400)).min(bound))
        };
        let mut runs: Vec<Run> = (0..count).map(|_| run()).collect();
        runs.sort_unstable();
        check(&Scan { scheduler, layer, size, now: SimTime::ZERO }, &runs);
    }

    /// That regions are apart, hold all runs in order, and tell what is wanted in them.
    fn check_regions(scan: &Scan<'_>, regions: &[Region], runs: &[Run]) {
        let (mut least, mut first) = (0, 0);
        for Region { from, to, runs: these, read, wanted, .. } in regions {
            assert!(least <= *from && from <= to, "{from}..{to}");
            assert!(*to <= scan.scheduler.drive().blocks().get() && these.start == first);
            (least, first) = (*to, these.end);
            let length: u64 = runs[these.clone()].iter().map(|run| run.1 - run.0).sum();
            assert_eq!(*read, length as f64);
            let inside = (from / scan.size..to / scan.size)
                .filter(|&block| scan.scheduler.wanted_in(scan.layer, block, block + 1) > 0);
            assert_eq!(*wanted, (inside.count() as u64 * scan.size) as f64);
        }
        assert_eq!(first, runs.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

        #[test]
        fn regions_are_apart_and_what_they_want_is_what_is_wanted_there(
            seed: u64, count in 1usize..40, spread in 1u64..1_000_000,
            times in 0.1f64..1e4, reach in 0.0f64..0.5,
        ) {
            with_scan(seed, count, spread, |scan, runs| {
                let mut regions = scan.regions(runs);
                check_regions(scan, &regions, runs);
                scan.grow(&mut regions, Leap { times, reach });
                check_regions(scan, &regions, runs);
            });
        }

        #[test]
        fn a_region_grows_until_half_would_be_left_and_no_further_than_its_reach(
            seed: u64, count in 1usize..40, spread in 1u64..1_000_000, times in 0.1f64..1e4,
        ) {
            with_scan(seed, count, spread, |scan, runs| {
                let before = scan.regions(runs);
                let bound = scan.scheduler.drive().blocks().get();
                let all = (0, bound);
                let mut regions = before.clone();
                scan.grow(&mut regions, Leap { times, reach: f64::INFINITY });
                let is_all = |of: &Region| regions.len() == 1 && (of.from, of.to) == all;
                assert!(regions.iter().all(|of| !of.lacks(times) || is_all(of)), "{regions:?}");
                // Without a reach only what touches becomes one.
                let mut still = before.clone();
                scan.grow(&mut still, Leap { times, reach: 0.0 });
                let length = |of: &[Region]| of.iter().map(|of| of.to - of.from).sum::<u64>();
                assert_eq!(length(&still), length(&before));
            });
        }

        #[test]
        fn a_leap_reads_what_its_regions_say(
            seed: u64, spread in 1u64..10_000_000, times in 0.1f64..20.0,
        ) {
            with_scan(seed, 200, spread, |scan, runs| {
                let scheduler = &mut Scheduler::new(drive(), Options::default());
                let blocks = drive().blocks().get() / scan.size;
                let key = LayerKey { op: Op::Read, size: scan.size as u32, offset: 0, weight: 1 };
                let layer = scheduler.add_layer(key, false);
                scheduler.want(layer, 0, blocks);
                let mut whole = Scan { scheduler, layer, size: scan.size, now: SimTime::ZERO };
                let prng = &mut Prng::new(seed, "leap");
                let read: u64 = runs.iter().map(|run| run.1 - run.0).sum();
                let part = whole.go_on(&mut runs.to_vec(), Leap { times, reach: 1.0 }, prng);
                let done = (blocks - whole.scheduler.wanted(layer)) * whole.size;
                let all = times * read as f64;
                let off = (done as f64 - part * all).abs() / whole.size as f64;
                // Less than a run beyond in each region, and blocks that are read in pieces.
                assert!(part <= 1.0 && off < 0.1 * all / whole.size as f64 + 300.0, "{off} {all}");
            });
        }
    }
}
