//! The blocks that a scan leaves when it continues for a while at its rate.

use std::ops::Range;

use freewheel_freeblock::{FreeRun, Planner, Scheduler};
use freewheel_units::{Lbn, Op, Prng, SimTime};

/// A free run: its first block of 512 B, and the one behind its last.
pub(super) type Run = (u64, u64);

/// Runs from which the rate of a region follows. Few, so that regions are as small as the head's reach;
/// what is wrong with one rate by chance is made up for by the next burst.
const RUNS_OF_REGION: usize = 6;

/// Part of a group of runs that one distance between them must take for a place where a region ends.
/// Assumed: of six runs that lie anywhere it is one group in 25 where one does; the two or three that
/// are left of a divided group mostly fall apart.
const EMPTY: f64 = 0.7;

/// A region of which less than this part would be left is emptied at once: a sixth of the time of runs.
const EMPTY_BELOW: f64 = 0.02;

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
    /// Mean distances of its runs by which a region reaches beyond them: gaps go further as what is near
    /// runs out. With one, leaps on 24 TB end where a hundredth of the possible reads is read.
    pub reach: u64,
}

/// A part of the disk in which the rate is taken to be the same, in blocks of 512 B.
#[derive(Debug, Clone, PartialEq)]
struct ScanRegion {
    from: u64,
    to: u64,
    /// The runs that were read in it.
    runs: Range<usize>,
    read: f64,
    wanted: f64,
}

impl ScanRegion {
    /// The rest when its runs have come this many times again: the rate goes down with the wanted
    /// blocks.
    fn left_after(&self, times: f64) -> f64 {
        self.wanted * libm::exp(-times * self.read / self.wanted.max(1.0))
    }
}

impl Scan<'_> {
    /// Reads in runs like these and where these were, as if they came this many times again. Regions wear
    /// thin each alone: the next burst finds the blocks that gaps reach beyond them. How many blocks were
    /// read in runs; regions that were emptied at once cost hardly any time.
    pub fn go_on(&mut self, runs: &mut [Run], times: f64, prng: &mut Prng) -> u64 {
        runs.sort_unstable();
        let mut in_runs = 0;
        for region in self.regions(runs) {
            let left = region.left_after(times);
            if left < EMPTY_BELOW * region.wanted {
                let (from, to) = (region.from / self.size, region.to / self.size);
                self.scheduler.unwant(self.layer, from, to);
                continue;
            }
            let blocks = ((region.wanted - left) / self.size as f64).round() as u64;
            self.read(&region, &runs[region.runs.clone()], blocks, prng);
            in_runs += blocks;
        }
        in_runs
    }

    /// Regions with about equally many runs each, which end where their runs do.
    fn regions(&self, runs: &[Run]) -> Vec<ScanRegion> {
        let mut groups = Vec::new();
        runs.chunks(RUNS_OF_REGION).for_each(|group| split(group, &mut groups));
        let bound = self.scheduler.drive().blocks().get();
        let (mut least, mut first_run) = (0, 0);
        let mut regions = Vec::with_capacity(groups.len());
        for (number, &group) in groups.iter().enumerate() {
            let (first, end) = self.outwards(group);
            let next = groups.get(number + 1);
            let most = next.map_or(bound, |next| group[group.len() - 1].1.midpoint(next[0].0));
            let from = first.max(least);
            let to = end.min(most).max(from);
            least = to;
            let read = group.iter().map(|run| (run.1 - run.0) as f64).sum();
            let runs = first_run..first_run + group.len();
            first_run = runs.end;
            let wanted = self.wanted_in(from, to);
            regions.push(ScanRegion { from, to, runs, read, wanted });
        }
        regions
    }

    /// End of a group of runs if `reach` more came at its mean distance.
    fn outwards(&self, group: &[Run]) -> Run {
        let (first, last) = (group[0].0, group[group.len() - 1].1);
        let distance = self.reach * ((last - first) / group.len() as u64);
        (first.saturating_sub(distance), last + distance)
    }

    /// Wanted blocks of 512 B between two places.
    fn wanted_in(&self, from: u64, to: u64) -> f64 {
        let blocks = self.scheduler.wanted_in(self.layer, from / self.size, to / self.size);
        (blocks * self.size) as f64
    }

    /// Reads this many blocks of a region, in runs like these of it.
    fn read(&mut self, region: &ScanRegion, runs: &[Run], blocks: u64, prng: &mut Prng) {
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

    /// A run on one track with this many wanted blocks of 512 B, or the longest of a few.
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

/// Divides a group where most of it is empty: no run shows that gaps reach blocks there.
fn split<'r>(group: &'r [Run], groups: &mut Vec<&'r [Run]>) {
    let most = EMPTY * (group[group.len() - 1].1 - group[0].0) as f64;
    let widest = (1..group.len()).max_by_key(|&at| group[at].0.saturating_sub(group[at - 1].1));
    match widest.filter(|&at| group[at].0.saturating_sub(group[at - 1].1) as f64 > most) {
        Some(at) => {
            split(&group[..at], groups);
            split(&group[at..], groups);
        }
        None => groups.push(group),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use freewheel_freeblock::{LayerKey, Options};
    use freewheel_model::drive::Drive;
    use proptest::prelude::*;

    use super::*;

    fn drive() -> &'static Arc<Drive> {
        static DRIVE: OnceLock<Arc<Drive>> = OnceLock::new();
        DRIVE.get_or_init(|| {
            let spec = freewheel_sim::library::spec("atlas10k").unwrap();
            Arc::new(Drive::build(&spec).unwrap())
        })
    }

    /// A scan of the rest of the drive in some places, and runs that were read near one place.
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
        let reach = 1 + prng.below(32);
        check(&Scan { scheduler, layer, size, now: SimTime::ZERO, reach }, &runs);
    }

    /// That regions are apart, hold all runs in order, and tell what is wanted in them.
    fn check_regions(scan: &Scan<'_>, regions: &[ScanRegion], runs: &[Run]) {
        let (mut least, mut first) = (0, 0);
        for ScanRegion { from, to, runs: these, read, wanted, .. } in regions {
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
        fn depletion_regions_are_apart(
            seed: u64, count in 1usize..40, spread in 1u64..1_000_000,
        ) {
            with_scan(seed, count, spread, |scan, runs| {
                check_regions(scan, &scan.regions(runs), runs);
            });
        }

        #[test]
        fn depletion_leap_reads_only_own_regions(
            seed: u64, spread in 100_000u64..10_000_000, times in 2.0f64..50.0,
        ) {
            with_scan(seed, 200, spread, |scan, runs| {
                let scheduler = &mut Scheduler::new(drive(), Options::default());
                let blocks = drive().blocks().get() / scan.size;
                let key = LayerKey { op: Op::Read, size: scan.size as u32, offset: 0, weight: 1 };
                let layer = scheduler.add_layer(key, false);
                scheduler.want(layer, 0, blocks);
                let Scan { size, reach, now, .. } = *scan;
                let mut whole = Scan { scheduler, layer, size, now, reach };
                let regions = whole.regions(runs);
                let wanted = |scan: &Scan<'_>| -> Vec<f64> {
                    regions.iter().map(|of| scan.wanted_in(of.from, of.to)).collect()
                };
                let before = wanted(&whole);
                whole.go_on(&mut runs.to_vec(), times, &mut Prng::new(seed, "leap"));
                let after = wanted(&whole);
                let mut inside = 0.0;
                for ((region, before), after) in regions.iter().zip(before).zip(after) {
                    let (read, said) = (before - after, before - region.left_after(times));
                    // A run beyond, of 400 blocks of 512 B at most, and pieces that are not complete.
                    let off = (read - said).abs();
                    assert!(off <= 0.05 * said + 600.0, "{read} {said} {region:?}");
                    inside += read;
                }
                let all = ((blocks - whole.scheduler.wanted(layer)) * whole.size) as f64;
                // Only a run at its end leads out of a region.
                let edges = (regions.len() * 600) as f64;
                assert!(all <= inside + edges, "{all} {inside}");
            });
        }
    }
}
