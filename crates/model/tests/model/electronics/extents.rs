//! Written data in extents.

use std::collections::BTreeSet;
use std::sync::Arc;

use freewheel_model::drive::Exact;
use freewheel_model::electronics::spec::{BufferSpec, DirtySpec, ElectronicsSpec, WriteCache};
use freewheel_model::electronics::{DriveUnit, NextEvent};
use freewheel_model::sched::PolicySpec;
use freewheel_testkit::drives::any_drive;
use freewheel_testkit::electronics::*;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::any::any_wishes;
use super::hand::*;

fn dirty(extents: u32, blocks: u64, age_limit: SimDuration) -> Option<DirtySpec> {
    Some(DirtySpec { extents, bytes: Bytes::new(blocks * BLOCK_BYTES), age_limit })
}

/// A buffer of four segments of 200 blocks, up to 600 of them dirty; a queue of 32 in order of position.
fn with_extents(extents: u32, age_limit: SimDuration) -> ElectronicsSpec {
    let mut spec = buffered(|buffer| {
        buffer.write_segments = 1;
        buffer.combine_sequential_writes = true;
        buffer.read_hits_on_written = true;
        buffer.dirty = dirty(extents, 600, age_limit);
    });
    spec.queue = Some(queue(32, PolicySpec::Sptf));
    spec
}

const LONG: SimDuration = SimDuration::from_secs(3600);

#[test]
fn buffer_takes_one_write_per_extent() {
    let wishes: Vec<Wish> = (0..30).map(|k| writes(0, 300 * k, 8)).collect();
    // 30 us and 80 us on the bus each, and the first goes to the media at once.
    let outcomes = run_with(&with_extents(40, LONG), &wishes);
    assert!(outcomes.iter().all(|outcome| outcome.served.hit && outcome.served.end <= at(2500)));
    let outcomes = run_with(&with_extents(10, LONG), &wishes);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.served.end <= at(2500)).count(), 10);
}

#[test]
fn adjoining_writes_destage_in_one_visit() {
    let mut unit = unit_with(&with_extents(40, LONG));
    // While block 0 is written, four others come in any order: blocks 220 to 250.
    for start in [0, 220, 236, 244, 228] {
        write(&mut unit, SimTime::ZERO, start, 8);
    }
    assert_eq!(unit.dirty_blocks(), Blocks::new(40));
    let before = unit.destaging();
    assert!(unit.flush(at_ms(1), 9));
    let mut visits = 0;
    while let Some(next) = unit.next_event() {
        let before = unit.destaging();
        unit.advance(next.time(), &mut Exact);
        visits += u32::from(unit.destaging() > before);
    }
    assert!(unit.destaging() > before && visits <= 2, "{visits} visits");
    assert_eq!(unit.dirty_blocks(), Blocks::ZERO);
}

#[test]
fn extent_reached_first_is_written_first() {
    // Block 0 goes at once. The head is then in cylinder 0, and block 350 passes before block 310.
    let mut unit = unit_with(&with_extents(40, LONG)).with_destage_shares();
    let wishes = [writes(0, 0, 1), writes(0, 310, 1), writes(0, 350, 1), flushes(500)];
    run(&mut unit, &wishes);
    let order: Vec<u64> =
        std::iter::from_fn(|| unit.destage_share()).map(|share| share.0).collect();
    let drive = drive();
    let reach = |start: u64| {
        let target =
            |block| drive.target(freewheel_units::Lbn::new(block), Blocks::new(1), Op::Write);
        let first = drive.media_access(at(40), Default::default(), &target(0));
        let now = at(40) + first.total();
        drive.positioning(now, first.end, &target(start)).total()
    };
    let nearer = if reach(310) < reach(350) { [0, 1, 2] } else { [0, 2, 1] };
    assert_eq!(order, nearer);
}

#[test]
fn reads_served_from_dirty_and_kept_extents() {
    let mut unit = unit_with(&with_extents(40, LONG));
    write(&mut unit, SimTime::ZERO, 0, 8);
    write(&mut unit, SimTime::ZERO, 300, 8);
    write(&mut unit, SimTime::ZERO, 308, 8);
    assert!(read(&mut unit, at(300), 304, 8).hit);
    assert!(!unit.flush(at_ms(100), 0), "all is on the media");
    assert!(read(&mut unit, at_ms(100), 304, 8).hit);
    assert!(!read(&mut unit, at_ms(101), 304, 20).hit, "there is no more of it");
}

#[test]
fn extent_age_limit_overrides_reads() {
    let written = |age_limit| {
        let mut unit = unit_with(&with_extents(40, age_limit)).with_destage_shares();
        // Reads wait all the time, from before the write on.
        let mut wishes: Vec<Wish> = (0..40).map(|k| reads(0, (k * 737) % 9000, 8)).collect();
        wishes.insert(10, writes(0, 5100, 8));
        let (mut at, mut now, mut sequence) = (None, SimTime::ZERO, 0);
        loop {
            if at.is_none() && unit.destage_share().is_some() {
                at = Some(unit.media_free());
            }
            match wishes.get(sequence) {
                Some(wish) if unit.has_room() => {
                    submit(&mut unit, now, wish, sequence as u64);
                    sequence += 1;
                }
                _ => {
                    let Some(next) = unit.next_event() else { return at };
                    now = next.time();
                    unit.advance(now, &mut Exact);
                }
            }
        }
    };
    // One read is under way at the age limit, and after that the extent has its turn.
    let at = written(SimDuration::from_ms(50)).expect("it is written");
    assert!((at_ms(50)..at_ms(90)).contains(&at), "{at}");
    assert_eq!(written(LONG), None, "as long as reads wait");
}

/// Any electronics with a buffer in extents.
fn any_extents(prng: &mut Prng) -> ElectronicsSpec {
    let buffer = any_buffer(prng);
    let segments = 2 + prng.below(4) as u32;
    let segment = u64::from(buffer.segment_blocks);
    let blocks = segment + prng.below(segment * u64::from(segments - 2) + 1);
    let buffer = BufferSpec {
        segments,
        write_segments: 1,
        separate_write_segments: false,
        write_cache: WriteCache::On,
        dirty: dirty(1 + prng.below(12) as u32, blocks, up_to_us(prng, 200_000)),
        ..buffer
    };
    ElectronicsSpec { buffer: Some(buffer), ..any_electronics(prng) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn stage_times_add_up_within_buffer_size((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "any extents");
        let spec = any_extents(prng);
        let most = spec.buffer.as_ref().unwrap().written_bytes_max();
        let mut unit = DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap();
        let wishes = any_wishes(prng, &drive, 80, true);
        let outcomes = run(&mut unit, &wishes);
        for (wish, Outcome { submitted, served: s }) in wishes.iter().zip(&outcomes) {
            let sum = s.overhead + s.queue + s.seek + s.rotate + s.transfer + s.bus;
            prop_assert_eq!(sum, s.end - *submitted, "{:?}", wish);
        }
        prop_assert!(unit.dirty_blocks().bytes() <= most);
        prop_assert!(unit.head_time().total() <= unit.busy());
    }

    #[test]
    fn flush_ends_when_older_writes_are_safe((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "flushed extents");
        let drive = Arc::new(drive);
        let mut unit = DriveUnit::new(&drive, &any_extents(prng)).unwrap().with_destage_shares();
        let mut wishes = any_wishes(prng, &drive, 80, true);
        wishes.iter_mut().for_each(|wish| wish.fua = wish.op == Op::Write && prng.chance(0.1));
        let last = wishes.last().unwrap().arrival;
        wishes.push(Wish { arrival: last + SimDuration::from_secs(10), ..flushes(0) });
        let (mut taken, mut on_media) = (BTreeSet::new(), BTreeSet::new());
        let mut older: Vec<(u64, BTreeSet<u64>)> = Vec::new();
        let (mut now, mut sequence) = (SimTime::ZERO, 0);
        loop {
            let next = wishes.get(sequence).filter(|w| w.op == Op::Flush || unit.has_room());
            let arrival = next.map(|wish| wish.arrival.max(now));
            let event = unit.next_event();
            let Some(time) = arrival.into_iter().chain(event.map(NextEvent::time)).min() else { break };
            now = time;
            let completes = matches!(event, Some(NextEvent::Completion(end)) if end == now);
            let mut done = None;
            if arrival == Some(now) && !completes {
                let wish = wishes[sequence];
                let waits = wish.op != Op::Flush || unit.flush(now, sequence as u64);
                if wish.op == Op::Flush && waits {
                    older.push((sequence as u64, taken.clone()));
                } else if wish.op != Op::Flush {
                    submit(&mut unit, now, &wish, sequence as u64);
                }
                sequence += 1;
            } else {
                done = unit.advance(now, &mut Exact);
            }
            while let Some((write, _)) = unit.destage_share() {
                prop_assert!(on_media.insert(write), "write {write} comes to the media once");
            }
            let Some(done) = done else { continue };
            if done.flush {
                let waits_for = older.iter().find(|flush| flush.0 == done.sequence).unwrap();
                prop_assert!(waits_for.1.is_subset(&on_media), "{:?}", waits_for);
            } else if wishes[done.sequence as usize].op == Op::Write && done.served.hit {
                taken.insert(done.sequence);
            }
        }
        prop_assert_eq!(taken, on_media);
        prop_assert_eq!(unit.dirty_blocks(), Blocks::ZERO);
    }

    #[test]
    fn extent_just_written_serves_read((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "dirty hits");
        let mut spec = any_extents(prng);
        (spec.queue, spec.buffer.as_mut().unwrap().read_hits_on_written) = (None, true);
        let mut unit = DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap();
        let mut now = SimTime::ZERO;
        for wish in any_wishes(prng, &drive, 60, false) {
            now = now.max(wish.arrival);
            let served = unit.serve(now, wish.op, freewheel_units::Lbn::new(wish.start), wish.blocks);
            now = served.end;
            if wish.op == Op::Write && served.hit {
                let read = read(&mut unit, now, wish.start, wish.blocks);
                prop_assert!(read.hit, "{wish:?}");
                now = read.end;
            }
        }
    }
}
