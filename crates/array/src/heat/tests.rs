//! Heats against full histories.

use freewheel_units::{Blocks, Bytes, Lbn, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::*;
use crate::partition::{DiskModel, DiskUse};
use crate::placement::{Extent, ExtentId, FileId, Place, Placement};
use freewheel_model::drive::Drive;

/// All accesses, and the formula as printed.
#[derive(Default)]
struct Naive {
    accesses: Vec<(f64, f64)>,
    aged: f64,
}

impl Naive {
    fn record(&mut self, at_s: f64, amount: f64) {
        self.accesses.push((at_s, amount));
        self.aged = f64::INFINITY;
    }

    /// `times` of the last k accesses, with the mean amount of the last k that were real.
    fn formula(&self, times: &[f64], k: usize) -> f64 {
        let times = &times[times.len().saturating_sub(k)..];
        let real = &self.accesses[self.accesses.len().saturating_sub(k)..];
        let mean = real.iter().map(|(_, amount)| amount).sum::<f64>() / real.len() as f64;
        times.len() as f64 * mean / (times[times.len() - 1] - times[0])
    }

    fn times(&self) -> Vec<f64> {
        self.accesses.iter().map(|(at, _)| *at).collect()
    }

    fn heat(&self, k: usize) -> Option<f64> {
        (self.accesses.len() > 1).then(|| self.formula(&self.times(), k).min(self.aged))
    }

    fn age(&mut self, now_s: f64, k: usize) {
        if self.accesses.len() > 1 {
            let with_pseudo_request = [self.times(), vec![now_s]].concat();
            self.aged = self.aged.min(self.formula(&with_pseudo_request, k));
        }
    }
}

fn seconds(s: f64) -> SimTime {
    SimTime::ZERO + SimDuration::from_ms_f64(s * 1e3)
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * b.abs(),
        (a, b) => a == b,
    }
}

proptest! {
    #[test]
    fn heat_equals_formula_over_whole_history(
        k in 2u32..8, steps in prop::collection::vec((1u32..50, 1u32..100, any::<bool>()), 1..40)
    ) {
        let mut tracker = HeatTracker::new(k);
        let mut naive = Naive::default();
        let mut now = 0.0;
        for (pause, amount, is_pseudo) in steps {
            now += f64::from(pause);
            if is_pseudo {
                tracker.age(seconds(now));
                naive.age(now, k as usize);
            } else {
                tracker.record(seconds(now), amount.into());
                naive.record(now, amount.into());
            }
            prop_assert!(close(tracker.heat(), naive.heat(k as usize)));
        }
        prop_assert_eq!(tracker.accesses() as usize, naive.accesses.len().min(k as usize));
    }

    #[test]
    fn constant_space_heat_is_exact_when_steady(
        k in 2u32..30, pauses in prop::collection::vec(1u32..50, 1..20), amount in 1u32..9
    ) {
        let (mut full, mut constant) = (HeatTracker::new(k), ConstantTracker::new(k));
        let mut now = 0.0;
        for pause in pauses.iter().take(k as usize) {
            now += f64::from(*pause);
            full.record(seconds(now), amount.into());
            constant.record(seconds(now), amount.into());
            prop_assert!(close(constant.heat(), full.heat()));
        }
        let (mut full, mut constant) = (HeatTracker::new(k), ConstantTracker::new(k));
        for number in 0..80 {
            full.record(seconds(f64::from(number * pauses[0])), amount.into());
            constant.record(seconds(f64::from(number * pauses[0])), amount.into());
        }
        prop_assert!(close(constant.heat(), full.heat()));
        let later = seconds(f64::from(200 * pauses[0]));
        full.age(later);
        constant.age(later);
        prop_assert!(close(constant.heat(), full.heat()));
    }
}

#[test]
fn pseudo_request_matches_papers_example() {
    // k = 3; accesses at 0, 1 and 2 s: 3 / 2 a second.
    let mut tracker = HeatTracker::new(3);
    (0..3).for_each(|second| tracker.record(seconds(f64::from(second)), 1.0));
    assert_eq!(tracker.heat(), Some(1.5));
    // At 2.5 s the window would begin at 1 s: 2 a second, which is not lower.
    tracker.age(seconds(2.5));
    assert_eq!(tracker.heat(), Some(1.5));
    tracker.age(seconds(7.0));
    assert_eq!(tracker.heat(), Some(0.5));
    // History does not keep pseudo-requests: the heat falls on towards zero.
    tracker.age(seconds(301.0));
    assert_eq!(tracker.heat(), Some(0.01));
    tracker.record(seconds(302.0), 1.0);
    assert!(close(tracker.heat(), Some(3.0 / 301.0)));
}

#[test]
fn histories_find_random_access_rate() {
    let prng = &mut Prng::new(8, "heat");
    let (mut full, mut constant) = (HeatTracker::new(25), ConstantTracker::new(25));
    let (mut now, mut sums) = (0.0, [0.0; 4]);
    let samples = 40_000;
    for _ in 0..samples {
        now += prng.exponential(0.02);
        let amount = 1.0 + prng.below(9) as f64;
        full.record(seconds(now), amount);
        constant.record(seconds(now), amount);
        if let (Some(full), Some(constant)) = (full.heat(), constant.heat()) {
            let both = [full, constant, full * full, constant * constant];
            sums.iter_mut().zip(both).for_each(|(sum, value)| *sum += value);
        }
    }
    // 50 a second of 5 blocks; k/(k-1) and the mean of a reciprocal, k-1 / k-2, raise the mean: 272.
    let [full, constant, full_square, constant_square] = sums.map(|sum| sum / f64::from(samples));
    assert!((full - 272.0).abs() < 8.0, "{full}");
    assert!((constant - full).abs() < 0.05 * full, "{constant} {full}");
    // The exponential average remembers twice as long in the mean of squares: it varies less.
    let deviation = |mean: f64, square: f64| (square - mean * mean).sqrt() / mean;
    assert!(deviation(full, full_square) < 0.3);
    assert!(deviation(constant, constant_square) < deviation(full, full_square));
}

fn spec(extents_max: usize) -> HeatSpec {
    HeatSpec { accesses: 5, accesses_min: 3, history: History::Accesses, extents_max }
}

/// Extents 0 to 9 of one block, on disk number modulo 3.
fn ten_extents() -> Placement {
    let mut placement = Placement::new(3, Blocks::new(40));
    for id in 0..10 {
        let place = Place { disk: id % 3, start: Lbn::new(u64::from(id / 3) * 10) };
        placement.reserve_at(place, Blocks::new(10));
        let blocks = Blocks::new(10);
        placement.insert(ExtentId(id), Extent { file: FileId(id), blocks, place });
    }
    placement
}

proptest! {
    #[test]
    fn heat_table_keeps_recent_extents_and_sums(
        seed: u64, extents_max in 1usize..12, constant: bool
    ) {
        let prng = &mut Prng::new(seed, "table");
        let mut placement = ten_extents();
        let history = if constant { History::Constant } else { History::Accesses };
        let table = HeatTable::new(HeatSpec { history, ..spec(extents_max) });
        let mut heats = DiskHeats::new(table, 3);
        let mut used: Vec<ExtentId> = Vec::new();
        let mut now = 0.0;
        for _ in 0..100 {
            now += prng.exponential(1.0) + 1e-3;
            let extent = ExtentId(prng.below(10) as u32);
            match prng.below(12) {
                0 => heats.age(&placement, seconds(now)),
                1 => {
                    let known = *placement.extent(extent);
                    let to = (known.place.disk + 1) % 3;
                    if let Some(place) = placement.reserve(to, known.blocks) {
                        let from = placement.relocate(extent, place);
                        placement.release(from, known.blocks);
                        heats.moved(extent, from.disk, to);
                    }
                }
                2 => {
                    heats.forget(&placement, extent);
                    used.retain(|other| *other != extent);
                }
                _ => {
                    heats.record(&placement, extent, seconds(now), 1.0 + prng.below(5) as f64);
                    used.retain(|other| *other != extent);
                    used.push(extent);
                }
            }
            used = used.split_off(used.len().saturating_sub(extents_max));
            prop_assert_eq!(heats.table().len(), used.len());
            let mut expected = [0.0; 3];
            for (extent, known) in placement.extents() {
                let heat = heats.table().heat(extent);
                prop_assert!(heat.is_none() || used.contains(&extent));
                expected[known.place.disk as usize] += heat.unwrap_or(0.0);
            }
            for (found, expected) in heats.of_disks().iter().zip(expected) {
                prop_assert!((found - expected).abs() < 1e-6 * (1.0 + expected), "{} {}", found, expected);
            }
        }
    }
}

#[test]
fn heat_is_trusted_after_least_accesses() {
    let mut table = HeatTable::new(spec(4));
    let extent = ExtentId(1);
    assert_eq!(table.record(extent, seconds(0.0), 8.0).change, 0.0);
    assert_eq!(table.record(extent, seconds(1.0), 8.0).change, 0.0);
    assert_eq!(table.heat(extent), None);
    assert_eq!(table.record(extent, seconds(2.0), 8.0).change, 12.0);
    assert_eq!(table.heat(extent), Some(12.0));
}

#[test]
fn fragments_share_heat_by_size() {
    for history in [History::Accesses, History::Constant] {
        let mut table = HeatTable::new(HeatSpec { history, ..spec(3) });
        (0..4).for_each(|second| _ = table.record(ExtentId(0), seconds(f64::from(second)), 30.0));
        let whole = table.heat(ExtentId(0)).unwrap();
        let fragment =
            |extent, blocks| Fragment { extent: ExtentId(extent), blocks: Blocks::new(blocks) };
        assert_eq!(table.split(ExtentId(0), &[fragment(0, 20), fragment(1, 10)]), []);
        assert!(close(table.heat(ExtentId(0)), Some(whole * 2.0 / 3.0)));
        assert!(close(table.heat(ExtentId(1)), Some(whole / 3.0)));
        // Both go on as extents do.
        // 10, 10, 10, 10 and 30 within 3.5 s.
        table.record(ExtentId(1), seconds(3.5), 30.0);
        let steady = history == History::Accesses;
        assert!(!steady || close(table.heat(ExtentId(1)), Some(20.0)));
        // Three more fragments in a table of three: what was unused the longest makes way.
        let parts = [fragment(1, 4), fragment(2, 3), fragment(3, 3)];
        let forgotten = table.split(ExtentId(1), &parts);
        assert_eq!(forgotten.iter().map(|gone| gone.extent).collect::<Vec<_>>(), [ExtentId(0)]);
    }
}

#[test]
fn head_time_sees_small_hot_files() {
    let text = include_str!("../../../../drives/tr96.toml");
    let drive = Drive::build(&toml::from_str(text).unwrap()).unwrap();
    let usage = DiskUse { filled_share: 0.5, read_share: 1.0, block: Bytes::new(1024) };
    let cost = HeadTimeCost::of(&DiskModel::of(&drive, &usage), Blocks::new(2));
    // 8 to 9 ms of seek and 7 of rotation; a track of 70 blocks in a turn and the end of a track.
    assert!((0.014..0.018).contains(&cost.positioning_s), "{}", cost.positioning_s);
    let track_s = cost.access_s(Blocks::new(70)) - cost.positioning_s;
    assert!((0.0145..0.0150).contains(&track_s), "{track_s}");
    let (blocks, time) = (HeatAmount::Blocks, HeatAmount::HeadTime(cost));
    // 50 single blocks against one access of 70: fewer blocks, twenty times the head time.
    let small = |amount: HeatAmount| 50.0 * amount.of_access(Blocks::new(1));
    let large = |amount: HeatAmount| amount.of_access(Blocks::new(70));
    assert!(small(blocks) < large(blocks));
    assert!(small(time) > 20.0 * large(time));
}
