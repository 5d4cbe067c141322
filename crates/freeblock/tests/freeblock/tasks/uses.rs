//! Uses of tasks keep their limits and serve their purpose.

use std::collections::BTreeMap;

use freewheel_freeblock::tasks::{Event, Extent, TaskError, TaskSpec, Until};
use freewheel_freeblock::uses::{
    Compare, CompareError, Pair, Versions, backup, block_size, sample, scan, scrub,
};
use freewheel_freeblock::{ForegroundEvent, ForegroundObserver};
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Bytes, Lbn, Prng, SimTime};

use super::arm::{Arm, READ, WRITE, delivered, is_done, spec_of};
use freewheel_testkit::drives::random_spec;

const NOW: SimTime = SimTime::ZERO;
/// Size of the blocks that the tests use.
const KIB_4: u64 = 4096;

fn serve_random(arm: &mut Arm, prng: &mut Prng) -> Vec<Event> {
    let start = prng.below(arm.capacity() - 2);
    arm.serve(READ, start, 2);
    arm.events()
}

#[test]
fn scan_reaches_sectors_of_partial_blocks() {
    let mut arm = Arm::new(Drive::build(&spec_of(5, 1, 61)).unwrap());
    let capacity = Blocks::new(arm.capacity());
    let task = arm.tasks.register(NOW, backup(capacity, 8)).unwrap();
    let mut prng = Prng::new(1, "foreground");
    let mut seen = vec![false; arm.capacity() as usize];
    let mut is_over = false;
    while !is_over {
        let events = serve_random(&mut arm, &mut prng);
        for start in delivered(&events, task, 8) {
            seen[start as usize..start as usize + 8].fill(true);
        }
        is_over = is_done(&events, task);
    }
    assert!(seen.into_iter().all(|seen| seen));
}

#[test]
fn scrub_rejects_writes_but_mining_accepts() {
    for (is_scrub, got) in [(true, 0), (false, 8)] {
        let mut arm = Arm::plain();
        let capacity = Blocks::new(arm.capacity());
        let spec = if is_scrub { scrub(capacity, 8) } else { scan(capacity, 8) };
        let task = arm.tasks.register(NOW, spec).unwrap();
        arm.tasks.foreground(ForegroundEvent::Passed {
            op: WRITE,
            start: Lbn::new(0),
            blocks: 64,
            at: NOW,
        });
        assert_eq!(arm.tasks.progress(task, NOW).unwrap().delivered, got);
        arm.tasks.foreground(ForegroundEvent::Passed {
            op: READ,
            start: Lbn::new(64),
            blocks: 64,
            at: NOW,
        });
        assert_eq!(arm.tasks.progress(task, NOW).unwrap().delivered, got + 8);
    }
}

#[test]
fn sample_of_twentieth_ends_with_twentieth() {
    let mut arm = Arm::plain();
    let spec = sample(backup(Blocks::new(arm.capacity()), 8), 50_000);
    let task = arm.tasks.register(NOW, spec).unwrap();
    let mut prng = Prng::new(1, "foreground");
    let mut events = Vec::new();
    while !is_done(&events, task) {
        events.extend(serve_random(&mut arm, &mut prng));
    }
    // 640 blocks.
    assert_eq!(delivered(&events, task, 8).len(), 32);
}

fn versions(current: u64, safe: u64, blocks: u64) -> Versions {
    Versions { current: Extent::new(current, blocks), safe: Lbn::new(safe) }
}

#[test]
fn comparison_sees_each_pair_once() {
    for blocks_in_memory in [1, 5, 40, 1000] {
        let mut arm = Arm::plain();
        let rows = vec![versions(0, 4003, 800), versions(1000, 2400, 160)];
        let memory = Bytes::new(blocks_in_memory * KIB_4 + 100);
        let compare = Compare::begin(&mut arm.tasks, NOW, 8, rows, memory);
        let mut compare = compare.unwrap();
        let mut pairs: Vec<Pair> = Vec::new();
        let mut waiting: BTreeMap<u64, ()> = BTreeMap::new();
        let mut prng = Prng::new(1, "foreground");
        while !compare.is_done() {
            for event in serve_random(&mut arm, &mut prng) {
                let Event::Delivered { extent, .. } = event else { continue };
                let compared = pairs.len();
                compare.event(&mut arm.tasks, &event, &mut pairs).unwrap();
                // By the book: who has come, less both sides of what has been compared.
                waiting.extend(super::arm::blocks(&extent, 8).map(|block| (block, ())));
                for pair in &pairs[compared..] {
                    let sides = [pair.current, pair.safe];
                    assert!(sides.iter().all(|side| waiting.remove(&side.get()).is_some()));
                }
                let unmatched = Bytes::new(waiting.len() as u64 * KIB_4);
                assert_eq!(compare.unmatched(), unmatched);
                assert!(compare.counts().unmatched_bytes_max <= memory.get());
            }
        }
        pairs.sort_unstable();
        let expected = (0..800).step_by(8).map(|at| (at, at + 4003));
        let expected = expected.chain((0..160).step_by(8).map(|at| (at + 1000, at + 2400)));
        let expected: Vec<Pair> = expected
            .map(|(current, safe)| Pair { current: Lbn::new(current), safe: Lbn::new(safe) })
            .collect();
        assert_eq!(pairs, expected);
        assert_eq!(arm.tasks.ids().count(), 0, "its task has ended");
        if blocks_in_memory == 5 {
            assert_eq!(compare.counts().unmatched_bytes_max, 5 * KIB_4, "and it is used");
        }
    }
}

#[test]
fn comparison_that_is_invalid_leaves_nothing() {
    let mut arm = Arm::plain();
    let mut refused = |rows: Vec<Versions>, memory| {
        let error = Compare::begin(&mut arm.tasks, NOW, 8, rows, memory).unwrap_err();
        assert_eq!(arm.tasks.ids().count(), 0);
        error
    };
    let (memory, block) = (Bytes::new(4095), Bytes::new(KIB_4));
    let error = refused(vec![versions(0, 800, 80)], memory);
    assert_eq!(error, CompareError::Memory { memory, block });
    let error = refused(vec![versions(0, 72, 80)], block);
    assert_eq!(error, CompareError::Overlap { at: Lbn::new(72) });
    let error = refused(vec![versions(0, 800, 80), versions(1000, 5100, 80)], block);
    let (extent, capacity) = (Extent::new(5100, 80), Blocks::new(5120));
    assert_eq!(error, CompareError::Task(TaskError::PastEnd { extent, capacity }));
    let error = refused(vec![versions(0, 800, 80), versions(1000, 2000, 12)], block);
    let extent = Extent::new(1000, 12);
    assert_eq!(error, CompareError::Task(TaskError::PartBlock { extent, size: 8 }));
}

#[test]
fn comparison_of_many_alignments_is_refused() {
    let mut arm = Arm::plain();
    // Blocks of 64: the 40 sides have 40 alignments.
    let rows: Vec<Versions> = (0..20).map(|row| versions(row * 65, 2580 + row * 65, 64)).collect();
    let memory = Bytes::new(8 * KIB_4);
    let refused = Compare::begin(&mut arm.tasks, NOW, 64, rows, memory).unwrap_err();
    assert_eq!(refused, CompareError::Task(TaskError::TooManyLayers { needed: 40 }));
    assert_eq!(arm.tasks.ids().count(), 0);
}

#[test]
fn comparison_keeps_layers() {
    let mut arm = Arm::plain();
    let rows: Vec<Versions> = (0..3).map(|row| versions(row * 9, 2500 + row * 9, 8)).collect();
    let memory = Bytes::new(KIB_4);
    let mut compare = Compare::begin(&mut arm.tasks, NOW, 8, rows, memory).unwrap();
    let mut is_free = |size: u32| {
        let extent = Extent::new(4900, size.into());
        let until = Until::Standing;
        let spec = TaskSpec { until, ..TaskSpec::new(READ, size, vec![extent]) };
        arm.tasks.register(NOW, spec).is_ok()
    };
    assert!((9..100).take_while(|&size| is_free(size)).count() > 20);
    let mut pairs = Vec::new();
    let mut prng = Prng::new(1, "foreground");
    while !compare.is_done() {
        for event in serve_random(&mut arm, &mut prng) {
            compare.event(&mut arm.tasks, &event, &mut pairs).unwrap();
        }
    }
    assert_eq!(pairs.len(), 3);
}

#[test]
fn comparison_of_nothing_is_done_at_once() {
    let mut arm = Arm::plain();
    let compare = Compare::begin(&mut arm.tasks, NOW, 8, vec![], Bytes::new(KIB_4)).unwrap();
    assert!(compare.is_done());
    assert_eq!(arm.tasks.ids().count(), 0);
}

#[test]
fn scan_block_is_eighth_of_mean_track() {
    let most = Blocks::new(1 << 20);
    let size = |drive: &Drive| block_size(drive, Blocks::new(1)..=most).get();
    let one_zone = (16..600).map(|per_track| spec_of(5, 1, per_track));
    let specs = one_zone.chain((0..100).map(random_spec));
    let drives: Vec<Drive> = specs.filter_map(|spec| Drive::build(&spec).ok()).collect();
    assert!(drives.len() > 600, "some at random cannot be built: {}", drives.len());
    for drive in drives {
        let turn = drive.rotation().period().as_secs_f64();
        let eighth = drive.mean_media_rate_bytes_per_second() * turn / 512.0 / 8.0;
        let away = |size: &u64| libm::log(*size as f64 / eighth).abs();
        let sizes = (0..20).map(|power| 1_u64 << power);
        let nearest = sizes.min_by(|a, b| away(a).total_cmp(&away(b))).unwrap();
        assert_eq!(size(&drive), nearest, "{eighth}");
        let bounds = Blocks::new(8)..=Blocks::new(16);
        assert_eq!(block_size(&drive, bounds).get(), nearest.clamp(8, 16));
    }
}
