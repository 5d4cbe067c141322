//! What a scan leaves when it goes on for a while as it did.

use freewheel_model::freeblock::{FreeRun, Planner, Scheduler};
use freewheel_units::{Lbn, Op, Prng, SimTime};

/// A free run: its first block of 512 B, and the one behind its last.
pub(super) type Run = (u64, u64);

/// Runs from which the rate of a region is told. Few, so that regions end where the head's reach
/// does; what is wrong with one rate by chance is made up for by the next burst.
const RUNS_OF_REGION: usize = 6;

/// Part that a short leap takes. Assumed: a quarter of the longest leap.
const SHORT: f64 = 1.0 / 8.0;

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

/// A part of the disk in which the rate is taken to be the same, in blocks of 512 B.
struct Region<'a> {
    from: u64,
    to: u64,
    runs: &'a [Run],
    read: f64,
    wanted: f64,
}

impl Region<'_> {
    /// What is left when its runs have come so many times again: the rate goes down with what there
    /// is.
    fn left_after(&self, times: f64) -> f64 {
        self.wanted * libm::exp(-times * self.read / self.wanted.max(1.0))
    }
}

impl Scan<'_> {
    /// Reads in runs like these and where these were, until of what the regions held from which they
    /// come only the part `leave` is left.
    pub fn go_on(&mut self, runs: &mut [Run], leave: f64, prng: &mut Prng) {
        runs.sort_unstable();
        let regions = self.regions(runs, leave);
        let times = leap_length(&regions, leave);
        for region in regions {
            let blocks = (region.wanted - region.left_after(times)) / self.size as f64;
            self.read(&region, blocks.round() as u64, prng);
        }
    }

    /// Regions with about as many runs each. Those of a short leap end where their runs do; a longer
    /// one reaches what is between them.
    fn regions<'r>(&self, runs: &'r [Run], leave: f64) -> Vec<Region<'r>> {
        let is_short = leave > 1.0 - SHORT;
        let mut groups = Vec::new();
        for group in runs.chunks(RUNS_OF_REGION) {
            if is_short { split(group, &mut groups) } else { groups.push(group) }
        }
        let bound = self.scheduler.drive().blocks().get();
        let mut least = 0;
        let mut regions = Vec::with_capacity(groups.len());
        for (number, &group) in groups.iter().enumerate() {
            let (first, end) = outwards(group);
            let next = groups.get(number + 1);
            let most = next.map_or(bound, |next| group[group.len() - 1].1.midpoint(next[0].0));
            let from = if is_short || number == 0 { first.max(least) } else { least };
            let to = if is_short || next.is_none() { end.min(most) } else { most }.max(from);
            least = to;
            let read = group.iter().map(|run| (run.1 - run.0) as f64).sum();
            let blocks = self.scheduler.wanted_in(self.layer, from / self.size, to / self.size);
            let wanted = (blocks * self.size) as f64;
            regions.push(Region { from, to, runs: group, read, wanted });
        }
        regions
    }

    /// Reads so many blocks of a region.
    fn read(&mut self, region: &Region<'_>, blocks: u64, prng: &mut Prng) {
        let mut missing = blocks;
        for _ in 0..SWEEPS {
            if missing == 0 {
                return;
            }
            let mean = region.read / region.runs.len() as f64;
            let runs = (missing * self.size) as f64 / mean;
            let distance = (region.to - region.from) as f64 / runs.max(1.0);
            let mut at = region.from + prng.exponential(distance) as u64;
            while missing > 0 {
                let like = region.runs[prng.below(region.runs.len() as u64) as usize];
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
    let span = group[group.len() - 1].1 - group[0].0;
    let widest = (1..group.len()).max_by_key(|&at| group[at].0.saturating_sub(group[at - 1].1));
    match widest.filter(|&at| group[at].0.saturating_sub(group[at - 1].1) > span / 2) {
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

/// How many times over the runs are to come again.
fn leap_length(regions: &[Region<'_>], leave: f64) -> f64 {
    let target = leave * regions.iter().map(|region| region.wanted + region.read).sum::<f64>();
    let left = |times: f64| regions.iter().map(|region| region.left_after(times)).sum::<f64>();
    if left(0.0) <= target {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while left(high) > target {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if left(middle) > target { low = middle } else { high = middle }
    }
    high
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

    fn region(wanted: f64, share: f64) -> Region<'static> {
        Region { from: 0, to: 1, runs: &[], read: wanted * share, wanted }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

        #[test]
        fn regions_are_apart_and_what_they_want_is_what_is_wanted_there(
            seed: u64, count in 1usize..40, spread in 1u64..1_000_000, leave in 0.5f64..0.99,
        ) {
            let prng = &mut Prng::new(seed, "regions");
            let bound = drive().blocks().get();
            let scheduler = &mut Scheduler::new(drive(), Options::default());
            let (size, op) = (64, Op::Read);
            let key = LayerKey { op, size: size as u32, offset: 0, weight: 1 };
            let layer = scheduler.layer(key);
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
            let scan = Scan { scheduler, layer, size, now: SimTime::ZERO };
            let regions = scan.regions(&runs, leave);
            prop_assert_eq!(regions.iter().map(|region| region.runs.len()).sum::<usize>(), count);
            let mut least = 0;
            for Region { from, to, wanted, .. } in &regions {
                prop_assert!(least <= *from && from <= to && *to <= bound, "{}..{}", from, to);
                least = *to;
                let inside = (from / size..to / size)
                    .filter(|&block| scan.scheduler.wanted_in(layer, block, block + 1) > 0);
                prop_assert_eq!(*wanted, (inside.count() as u64 * size) as f64);
            }
        }

        #[test]
        fn a_leap_is_as_long_as_a_linear_search_says(
            wanted in prop::collection::vec((1e3f64..1e6, 0.02f64..0.6), 1..20),
            leave in 0.4f64..0.99,
        ) {
            const STEP: f64 = 1e-3;
            let regions: Vec<Region<'_>> =
                wanted.iter().map(|&(wanted, share)| region(wanted, share)).collect();
            let before: f64 = wanted.iter().map(|(wanted, share)| wanted * (1.0 + share)).sum();
            let left = |times: f64| -> f64 {
                wanted.iter().map(|(wanted, share)| wanted * libm::exp(-times * share)).sum()
            };
            let steps = (0..).map(|step| f64::from(step) * STEP);
            let linear = steps.into_iter().find(|&times| left(times) <= leave * before).unwrap();
            let times = leap_length(&regions, leave);
            prop_assert!(times <= linear && linear <= times + STEP, "{} for {}", times, linear);
        }
    }
}
