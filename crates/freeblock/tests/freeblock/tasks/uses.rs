//! Uses of tasks keep their limits and serve their purpose.

use std::collections::BTreeMap;

use freewheel_freeblock::tasks::{Event, Extent, Promoted, TaskError, TaskSpec, Until};
use freewheel_freeblock::uses::{
    Compare, CompareError, Pair, PrefetchError, Prefetcher, Prewriter, Versions, backup,
    block_size, sample, scan, scrub,
};
use freewheel_freeblock::{Foreground, ForegroundEvent, ForegroundObserver, FreeRun, Planner};
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
fn scans_reach_every_sector_of_a_drive_that_is_no_whole_number_of_blocks() {
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
fn a_scrub_does_not_take_a_write_for_a_verification_and_mining_takes_it_for_data() {
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
fn a_sample_of_a_twentieth_ends_with_a_twentieth() {
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
fn a_comparison_sees_every_pair_once_and_keeps_within_its_memory() {
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
fn a_comparison_that_cannot_be_made_is_refused_and_leaves_nothing() {
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
fn a_comparison_of_too_many_alignments_is_refused_at_once() {
    let mut arm = Arm::plain();
    // Blocks of 64: the 40 sides have 40 alignments.
    let rows: Vec<Versions> = (0..20).map(|row| versions(row * 65, 2580 + row * 65, 64)).collect();
    let memory = Bytes::new(8 * KIB_4);
    let refused = Compare::begin(&mut arm.tasks, NOW, 64, rows, memory).unwrap_err();
    assert_eq!(refused, CompareError::Task(TaskError::TooManyLayers { needed: 40 }));
    assert_eq!(arm.tasks.ids().count(), 0);
}

#[test]
fn a_comparison_keeps_its_layers_when_others_take_all_the_rest() {
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
fn an_empty_comparison_is_done_at_once() {
    let mut arm = Arm::plain();
    let compare = Compare::begin(&mut arm.tasks, NOW, 8, vec![], Bytes::new(KIB_4)).unwrap();
    assert!(compare.is_done());
    assert_eq!(arm.tasks.ids().count(), 0);
}

fn tell(prewriter: &mut Prewriter, arm: &Arm, events: &[Event]) {
    events.iter().for_each(|event| prewriter.event(&arm.tasks, event).unwrap());
}

/// Carries promoted writes out.
fn write_out(arm: &mut Arm, requests: &[Promoted]) {
    for &Promoted { id, op, start, blocks, .. } in requests {
        let promotion = Some(id);
        let request = Foreground { op, start, blocks, sequence: 0, promotion };
        arm.tasks.foreground(ForegroundEvent::Arrived { request: &request, at: arm.now });
        arm.serve(op, start.get(), blocks);
        arm.tasks.foreground(ForegroundEvent::Done { request: &request, at: arm.now });
    }
}

#[test]
fn dirty_blocks_leave_in_gaps_as_long_as_there_are_few_of_them() {
    let mut arm = Arm::plain();
    let mut prewriter = Prewriter::new(&mut arm.tasks, NOW, 8, 100, 64).unwrap();
    let mut prng = Prng::new(1, "dirty");
    for _ in 0..300 {
        let start = Lbn::new(prng.below(arm.capacity() / 8) * 8);
        let requests = prewriter.dirty(&mut arm.tasks, arm.now, start).unwrap();
        assert_eq!(requests, [], "no need");
        for _ in 0..10 {
            let events = serve_random(&mut arm, &mut prng);
            tell(&mut prewriter, &arm, &events);
        }
    }
    let counts = prewriter.counts();
    assert_eq!(counts.foreground, 0);
    assert!(counts.free > 250, "{counts:?}");
    assert_eq!(counts.free + counts.absorbed + prewriter.dirty_blocks(), 300);
}

#[test]
fn dirty_blocks_beyond_the_limit_leave_by_foreground_requests_the_oldest_first() {
    let mut arm = Arm::plain();
    let mut prewriter = Prewriter::new(&mut arm.tasks, NOW, 8, 4, 16).unwrap();
    let mut requests = Vec::new();
    for start in [800, 80, 88, 96, 160] {
        assert_eq!(requests, [], "within the limit");
        requests = prewriter.dirty(&mut arm.tasks, NOW, Lbn::new(start)).unwrap();
    }
    let ranges = |requests: &[Promoted]| -> Vec<(u64, u32)> {
        requests.iter().map(|request| (request.start.get(), request.blocks)).collect()
    };
    assert_eq!(ranges(&requests), [(800, 8)]);
    // The next oldest is 80: with 88 it fills a request of 16.
    let more = prewriter.dirty(&mut arm.tasks, NOW, Lbn::new(320)).unwrap();
    assert_eq!(ranges(&more), [(80, 16)]);
    assert_eq!(prewriter.dirty_blocks(), 6, "dirty until they are written");
    write_out(&mut arm, &requests);
    write_out(&mut arm, &more);
    let events = arm.events();
    tell(&mut prewriter, &arm, &events);
    let counts = prewriter.counts();
    assert_eq!((counts.foreground, counts.waiting_max), (3, 4));
    assert_eq!(counts.free + prewriter.dirty_blocks(), 3);
}

#[test]
fn a_block_made_dirty_while_it_is_written_is_written_again() {
    let mut arm = Arm::plain();
    let mut prewriter = Prewriter::new(&mut arm.tasks, NOW, 8, 0, 8).unwrap();
    let requests = prewriter.dirty(&mut arm.tasks, NOW, Lbn::new(0)).unwrap();
    assert_eq!(requests.len(), 1, "none may wait");
    let again = prewriter.dirty(&mut arm.tasks, NOW, Lbn::new(0)).unwrap();
    assert_eq!(again, [], "it waits for the first");
    write_out(&mut arm, &requests);
    let events = arm.events();
    tell(&mut prewriter, &arm, &events);
    assert_eq!(prewriter.dirty_blocks(), 1, "the newer data");
    let mut prng = Prng::new(1, "foreground");
    while prewriter.dirty_blocks() > 0 {
        let events = serve_random(&mut arm, &mut prng);
        tell(&mut prewriter, &arm, &events);
    }
    assert_eq!((prewriter.counts().free, prewriter.counts().foreground), (1, 1));
}

#[test]
fn data_made_dirty_before_the_older_ones_are_heard_of_stay_dirty() {
    let mut arm = Arm::plain();
    let mut prewriter = Prewriter::new(&mut arm.tasks, NOW, 8, 10, 8).unwrap();
    let run = FreeRun { start: Lbn::new(0), blocks: 8, op: WRITE };
    let overwrite =
        Foreground { op: WRITE, start: run.start, blocks: 8, sequence: 1, promotion: None };
    for is_overwritten in [false, true] {
        prewriter.dirty(&mut arm.tasks, NOW, run.start).unwrap();
        if is_overwritten {
            arm.tasks.foreground(ForegroundEvent::Arrived { request: &overwrite, at: NOW });
            arm.tasks.foreground(ForegroundEvent::Done { request: &overwrite, at: NOW });
        } else {
            arm.tasks.done(&run, NOW);
        }
    }
    prewriter.dirty(&mut arm.tasks, NOW, run.start).unwrap();
    let events = arm.events();
    tell(&mut prewriter, &arm, &events);
    assert_eq!(prewriter.dirty_blocks(), 1, "the only copy");
    let counts = prewriter.counts();
    assert_eq!((counts.free, counts.superseded, counts.absorbed), (1, 1, 0));
    arm.tasks.done(&run, NOW);
    let events = arm.events();
    tell(&mut prewriter, &arm, &events);
    assert_eq!((prewriter.dirty_blocks(), prewriter.counts().free), (0, 2));
}

#[test]
fn a_late_word_of_a_gap_does_not_end_the_promoted_write_of_newer_data() {
    let mut arm = Arm::plain();
    let mut prewriter = Prewriter::new(&mut arm.tasks, NOW, 8, 1, 8).unwrap();
    let run = FreeRun { start: Lbn::new(0), blocks: 8, op: WRITE };
    prewriter.dirty(&mut arm.tasks, NOW, run.start).unwrap();
    arm.tasks.done(&run, NOW);
    prewriter.dirty(&mut arm.tasks, NOW, run.start).unwrap();
    let requests = prewriter.dirty(&mut arm.tasks, NOW, Lbn::new(80)).unwrap();
    assert_eq!(requests.iter().map(|request| request.start).collect::<Vec<_>>(), [run.start]);
    let events = arm.events();
    tell(&mut prewriter, &arm, &events);
    assert_eq!((prewriter.dirty_blocks(), prewriter.counts().free), (2, 1));
    write_out(&mut arm, &requests);
    let events = arm.events();
    tell(&mut prewriter, &arm, &events);
    assert_eq!(prewriter.counts().foreground, 1);
}

#[test]
fn blocks_dirtied_again_or_overwritten_are_not_written_for_nothing() {
    let mut arm = Arm::plain();
    let mut prewriter = Prewriter::new(&mut arm.tasks, NOW, 8, 10, 8).unwrap();
    for start in [0, 8, 0] {
        prewriter.dirty(&mut arm.tasks, NOW, Lbn::new(start)).unwrap();
    }
    let (start, blocks) = (Lbn::new(0), 8);
    let request = Foreground { op: WRITE, start, blocks, sequence: 1, promotion: None };
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &request, at: NOW });
    let events = arm.events();
    tell(&mut prewriter, &arm, &events);
    let counts = prewriter.counts();
    assert_eq!((counts.absorbed, counts.superseded, counts.free), (1, 1, 0));
    assert_eq!(prewriter.dirty_blocks(), 1);
}

/// Sequential reads of 8 blocks by one reader, random ones of others between them.
fn read_along(tracks_ahead: u32, memory: u64) -> (Prefetcher, Arm) {
    let mut arm = Arm::plain();
    let memory = Bytes::new(memory * KIB_4);
    let mut prefetcher = Prefetcher::new(&mut arm.tasks, NOW, 8, memory, tracks_ahead).unwrap();
    let mut prng = Prng::new(1, "foreground");
    for nth in 0..300 {
        let is_hit = prefetcher.read(&mut arm.tasks, arm.now, Lbn::new(nth * 8), 8).unwrap();
        if !is_hit {
            arm.serve(READ, nth * 8, 8);
        }
        for _ in 0..3 {
            let start = 2500 + prng.below(arm.capacity() - 2600);
            arm.serve(READ, start, 2);
        }
        let events = arm.events();
        events.iter().for_each(|event| prefetcher.event(&arm.tasks, event).unwrap());
        assert!(prefetcher.memory() <= memory);
        assert!(prefetcher.known_max() <= memory.get() / KIB_4);
    }
    (prefetcher, arm)
}

#[test]
fn a_sequential_reader_finds_in_memory_what_gaps_have_read_ahead() {
    let (prefetcher, _) = read_along(1, 32);
    let counts = prefetcher.counts();
    assert!(counts.hits > 150, "{counts:?}");
    assert_eq!(counts.predicted_reads, counts.reads - 1, "all but the first");
    assert_eq!(counts.used, counts.hits, "each of one block");
    assert!(counts.used <= counts.prefetched && counts.prefetched <= counts.predicted_blocks);
    let here = prefetcher.memory().get() / KIB_4;
    assert!(here + counts.used <= counts.prefetched);
}

#[test]
fn more_tracks_ahead_find_more_and_little_memory_less() {
    let hits = |tracks, memory| read_along(tracks, memory).0.counts().hits;
    assert!(hits(0, 32) < hits(1, 32), "the last block of a track predicts nothing on it");
    assert!(hits(1, 1) < hits(1, 32));
}

#[test]
fn readers_everywhere_push_the_oldest_predictions_out() {
    let mut arm = Arm::plain();
    let memory = Bytes::new(20 * KIB_4);
    let mut prefetcher = Prefetcher::new(&mut arm.tasks, NOW, 8, memory, 1).unwrap();
    let mut prng = Prng::new(1, "foreground");
    for _ in 0..200 {
        let start = prng.below(arm.capacity() / 8) * 8;
        prefetcher.read(&mut arm.tasks, arm.now, Lbn::new(start), 8).unwrap();
        arm.serve(READ, start, 8);
        let events = arm.events();
        events.iter().for_each(|event| prefetcher.event(&arm.tasks, event).unwrap());
        assert!(prefetcher.memory() <= memory);
        let wanted: u64 =
            arm.tasks.ids().map(|id| arm.tasks.progress(id, NOW).unwrap().wanted).sum();
        assert!(wanted + prefetcher.memory().get() / KIB_4 <= 20);
    }
    assert_eq!(prefetcher.known_max(), 20, "and all of it is used");
}

#[test]
fn what_is_overwritten_is_not_used_from_memory() {
    let (mut prefetcher, mut arm) = read_along(1, 32);
    // Everything that is known is ahead of 2400.
    assert!(prefetcher.memory() > Bytes::ZERO);
    prefetcher.written(&mut arm.tasks, arm.now, Lbn::new(2399), 300).unwrap();
    assert_eq!(prefetcher.memory(), Bytes::ZERO);
    let is_hit = prefetcher.read(&mut arm.tasks, arm.now, Lbn::new(2400), 8);
    assert_eq!(is_hit, Ok(false));
}

#[test]
fn what_was_read_before_it_was_overwritten_is_no_hit_when_its_event_comes_late() {
    let mut arm = Arm::plain();
    let memory = Bytes::new(32 * KIB_4);
    let mut prefetcher = Prefetcher::new(&mut arm.tasks, NOW, 8, memory, 0).unwrap();
    let run = FreeRun { start: Lbn::new(8), blocks: 8, op: READ };
    prefetcher.read(&mut arm.tasks, NOW, Lbn::new(0), 8).unwrap();
    arm.tasks.done(&run, NOW);
    prefetcher.written(&mut arm.tasks, NOW, run.start, 8).unwrap();
    prefetcher.read(&mut arm.tasks, NOW, Lbn::new(0), 8).unwrap();
    let tell = |prefetcher: &mut Prefetcher, arm: &mut Arm| {
        let events = arm.events();
        events.iter().for_each(|event| prefetcher.event(&arm.tasks, event).unwrap());
    };
    tell(&mut prefetcher, &mut arm);
    assert_eq!((prefetcher.memory(), prefetcher.counts().prefetched), (Bytes::ZERO, 0));
    arm.tasks.done(&run, NOW);
    tell(&mut prefetcher, &mut arm);
    assert_eq!(prefetcher.counts().prefetched, 1);
    assert_eq!(prefetcher.read(&mut arm.tasks, NOW, run.start, 8), Ok(true));
}

#[test]
fn prefetching_without_memory_is_refused() {
    let mut arm = Arm::plain();
    let (memory, block) = (Bytes::new(KIB_4 - 1), Bytes::new(KIB_4));
    let error = Prefetcher::new(&mut arm.tasks, NOW, 8, memory, 1).unwrap_err();
    assert_eq!(error, PrefetchError::Memory { memory, block });
    assert_eq!(arm.tasks.ids().count(), 0);
}

#[test]
fn blocks_of_a_scan_are_the_power_of_two_next_to_an_eighth_of_a_mean_track() {
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
