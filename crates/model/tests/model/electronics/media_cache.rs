//! The media cache of a drive that manages shingled tracks itself: cases by hand, and what must hold for any.

use std::sync::Arc;

use freewheel_model::drive::Drive;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_model::electronics::{DriveUnit, MediaCacheSpec, MediaCacheWork};
use freewheel_model::sched::PolicySpec;
use freewheel_testkit::drives::any_drive;
use freewheel_testkit::electronics::{any_electronics, up_to_us};
use freewheel_units::{BLOCK_BYTES, Bytes, Prng, SimDuration};
use proptest::prelude::*;

use super::any::any_wishes;
use super::hand::*;

fn blocks(count: u64) -> Bytes {
    Bytes::new(count * BLOCK_BYTES)
}

/// Bands of 104 blocks, and a cache of two of them beside the blocks from 8000 on.
fn cache(clean_after_idle: Option<SimDuration>) -> MediaCacheSpec {
    MediaCacheSpec {
        band: blocks(104),
        size: blocks(208),
        start: blocks(8000),
        extents: 1000,
        clean_after_idle,
        safe_rewrite: false,
    }
}

fn shingled(cache: MediaCacheSpec) -> ElectronicsSpec {
    ElectronicsSpec { media_cache: Some(cache), ..ElectronicsSpec::default() }
}

fn work(unit: &DriveUnit) -> MediaCacheWork {
    unit.media_cache_work().unwrap()
}

#[test]
fn media_cache_appends_and_reads_right_place() {
    let mut unit = unit_with(&shingled(cache(None)));
    // Block 8000 comes by at whole turns, and 8008 as the first write ends.
    assert_eq!(write(&mut unit, at(0), 1000, 8).end, at(10_800));
    assert_eq!(write(&mut unit, at(10_800), 3000, 8).end, at(11_600));
    // Blocks 996 to 999 at 28.6 ms, 8000 to 8007 at 30.0, blocks 1008 to 1011 at 40.8.
    let read = read(&mut unit, at(20_000), 996, 16);
    assert_eq!(read.end, at(41_200));
    assert_eq!((read.seek, read.transfer), (us(3000), us(1600)));
    let MediaCacheWork { cached_writes, bands_cleaned, cached_bytes, .. } = work(&unit);
    assert_eq!((cached_writes, bands_cleaned, cached_bytes), (2, 0, 16 * BLOCK_BYTES));
}

#[test]
fn media_cache_bypassed_from_band_start() {
    let mut unit = unit_with(&shingled(cache(None)));
    // Block 104 is at 1.4 ms of the turn, on the next track.
    assert_eq!(write(&mut unit, at(0), 104, 8).end, at(2200));
    assert_eq!(write(&mut unit, at(2200), 112, 8).end, at(3000));
    assert_eq!(work(&unit).straight_writes, 2);
}

#[test]
fn media_cache_emptied_when_idle_unless_lazy() {
    for after in [Some(us(50_000)), None] {
        let mut unit = unit_with(&shingled(cache(after)));
        write(&mut unit, at(0), 1000, 8);
        // From 60.8 ms on: blocks 936 to 1039 from 62.6 to 74.0, 8000 to 8007 from 80.0 to 80.8, and the
        // band again from 82.6 to 94.0.
        let begin = at(150_000);
        read(&mut unit, begin, 5000, 1);
        let MediaCacheWork { bands_cleaned, cleaning_ns, cached_bytes, .. } = work(&unit);
        let expected = if after.is_some() { (1, 33_200_000, 0) } else { (0, 0, 8 * BLOCK_BYTES) };
        assert_eq!((bands_cleaned, cleaning_ns, cached_bytes), expected);
    }
}

#[test]
fn command_during_band_rewrite_waits() {
    let mut unit = unit_with(&shingled(cache(Some(us(50_000)))));
    write(&mut unit, at(0), 1000, 8);
    // Free at 94.0 ms; block 8000 comes by at 100.
    assert_eq!(read(&mut unit, at(70_000), 8000, 1).end, at(100_100));
}

#[test]
fn band_staged_elsewhere_takes_another_pass() {
    let spec = MediaCacheSpec { safe_rewrite: true, ..cache(Some(us(50_000))) };
    let mut unit = unit_with(&shingled(spec));
    write(&mut unit, at(0), 1000, 8);
    read(&mut unit, at(200_000), 5000, 1);
    // After 80.8 ms: blocks 8000 to 8103 from 90.0 to 101.4, the band from 102.6 to 114.0.
    assert_eq!(work(&unit).cleaning_ns, 53_200_000);
}

#[test]
fn random_writes_fast_until_cache_full() {
    let mut unit = unit_with(&shingled(cache(None)));
    let prng = &mut Prng::new(1, "burst");
    let mut now = at(0);
    let mut means = Vec::new();
    // Twenty-six writes fill it.
    for _ in 0..4 {
        let begin = now;
        for _ in 0..26 {
            let start = 1 + prng.below(70) * 104 + prng.below(90);
            now = write(&mut unit, now, start, 8).end;
        }
        means.push((now - begin).ns() / 26);
    }
    assert!(means[0] < 2_000_000, "{means:?}");
    assert!(means[1..].iter().all(|mean| *mean > 20 * means[0]), "{means:?}");
    assert!(work(&unit).bands_waited_for > 50, "{:?}", work(&unit));
}

#[test]
fn media_cache_outlasts_power_cut() {
    let mut unit = unit_with(&shingled(cache(None)));
    write(&mut unit, at(0), 1000, 8);
    assert_eq!(work(&unit.restarted()), work(&unit));
}

#[test]
fn media_cache_impossible_refused_with_key() {
    let refused = |change: &dyn Fn(&mut MediaCacheSpec)| {
        let mut spec = drive_spec();
        let mut cache = cache(None);
        change(&mut cache);
        spec.electronics.media_cache = Some(cache);
        Drive::build(&spec).unwrap_err().key
    };
    let key = |name: &str| format!("electronics.media_cache.{name}");
    assert_eq!(refused(&|cache| cache.band = Bytes::new(1000)), key("band"));
    assert_eq!(refused(&|cache| cache.size = blocks(96)), key("size"));
    assert_eq!(refused(&|cache| cache.start = Bytes::new(1)), key("start"));
    assert_eq!(refused(&|cache| cache.start = blocks(9800)), key("start"));
    assert_eq!(refused(&|cache| cache.extents = 0), key("extents"));
    let long = Some(SimDuration::from_secs(3601));
    assert_eq!(refused(&|cache| cache.clean_after_idle = long), key("clean_after_idle"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn commands_done_once_whatever_cache_does(
        (_, drive) in any_drive(), seed: u64
    ) {
        let prng = &mut Prng::new(seed, "shingled");
        let capacity = drive.blocks().get();
        let band = 8 * (1 + prng.below(8));
        let size = band + 8 * prng.below(16);
        prop_assume!(size <= capacity);
        let cache = MediaCacheSpec {
            band: blocks(band),
            size: blocks(size),
            start: blocks(8 * prng.below((capacity - size) / 8 + 1)),
            extents: 1 + prng.below(40) as u32,
            clean_after_idle: prng.chance(0.5).then(|| up_to_us(prng, 30_000)),
            safe_rewrite: prng.chance(0.5),
        };
        let spec = ElectronicsSpec { media_cache: Some(cache), ..any_electronics(prng) };
        let mut unit = DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap();
        let wishes = any_wishes(prng, &drive, 80, true);
        for (wish, Outcome { submitted, served: s }) in wishes.iter().zip(run(&mut unit, &wishes)) {
            let sum = s.overhead + s.queue + s.seek + s.rotate + s.transfer + s.bus;
            prop_assert_eq!(sum, s.end - submitted, "{:?}", wish);
        }
        prop_assert!(unit.next_event().is_none());
        let all = work(&unit);
        prop_assert!(all.cached_bytes <= cache.size.get(), "{:?}", all);
    }

    #[test]
    fn media_cache_without_writes_changes_nothing((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "reads alone");
        let plain = any_electronics(prng);
        let cache = MediaCacheSpec { band: blocks(8), size: blocks(8), start: blocks(0), ..cache(None) };
        let with = ElectronicsSpec { media_cache: Some(cache), ..plain.clone() };
        let mut wishes = any_wishes(prng, &drive, 60, false);
        wishes.iter_mut().for_each(|wish| wish.op = freewheel_units::Op::Read);
        let drive = Arc::new(drive);
        let [a, b] = [plain, with].map(|spec| run(&mut DriveUnit::new(&drive, &spec).unwrap(), &wishes));
        prop_assert_eq!(a, b);
    }
}

/// A queue that orders by position does not know where the cache is, and appends all the same.
#[test]
fn queue_reordering_appends_in_service_order() {
    let spec = ElectronicsSpec { media_cache: Some(cache(None)), ..queued(3, PolicySpec::Sptf) };
    let wishes = [writes(0, 9990, 8), writes(0, 4000, 8), writes(0, 1, 8)];
    let outcomes = run_with(&spec, &wishes);
    let mut ends = ends_us(&outcomes);
    ends.sort_unstable();
    // One after the other in the log, from 10.0 ms on.
    assert_eq!(ends, [10_800, 11_600, 12_400]);
}
