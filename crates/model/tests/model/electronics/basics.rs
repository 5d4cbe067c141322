//! One command at a time: hits and misses, reading ahead, writes that the buffer takes.

use freewheel_model::electronics::spec::{
    BusSpec, ElectronicsSpec, ExtraDisconnectSpec, ReadAhead, WriteCache, WriteStartSpec,
};
use freewheel_units::{Lbn, Op, SimDuration, SimTime};

use super::hand::*;

#[test]
fn miss_takes_overhead_media_and_last_block() {
    // Block 10 comes by at 1 ms; eight sectors; the last of them over the bus.
    let served = read(&mut unit_with(&electronics()), SimTime::ZERO, 10, 8);
    assert!(!served.hit);
    assert_eq!(served.end, SimTime::ZERO + us(1000 + 800 + 10));
    assert_eq!((served.overhead, served.rotate), (us(50), us(950)));
}

#[test]
fn bus_slower_than_media_busy_throughout() {
    let mut spec = electronics();
    spec.bus = Some(BusSpec { block_time: us(150), ..BusSpec::default() });
    // The first block is under the head at 1 ms, eight times 0.15 ms follow.
    let served = read(&mut unit_with(&spec), SimTime::ZERO, 10, 8);
    assert_eq!(served.end, SimTime::ZERO + us(1000 + 1200));
}

#[test]
fn blocks_read_ahead_served_without_media() {
    let mut unit = unit_with(&electronics());
    read(&mut unit, SimTime::ZERO, 10, 8);
    let served = read(&mut unit, at_ms(40), 50, 8);
    assert!(served.hit);
    assert_eq!(served.end - at_ms(40), us(20 + 80));
}

#[test]
fn reading_ahead_ends_with_the_track() {
    let mut unit = unit_with(&electronics());
    read(&mut unit, SimTime::ZERO, 10, 8);
    assert!(read(&mut unit, at_ms(40), 92, 8).hit);
    assert!(!read(&mut unit, at_ms(80), 100, 8).hit);
}

#[test]
fn read_ahead_never_overruns_slow_reader() {
    let mut spec = electronics();
    let buffer = spec.buffer.as_mut().unwrap();
    (buffer.read_ahead, buffer.segment_blocks) = (ReadAhead::Segment, 50);
    let mut unit = unit_with(&spec);
    assert!(!read(&mut unit, SimTime::ZERO, 0, 8).hit);
    for step in 1..40 {
        assert!(read(&mut unit, at_ms(step * 40), step * 8, 8).hit, "read {step}");
    }
}

#[test]
fn blocks_passed_before_wanted_are_kept() {
    let mut spec = electronics();
    spec.buffer.as_mut().unwrap().keep_free_blocks_before = true;
    let mut unit = unit_with(&spec);
    // From 0.05 ms to block 50 at 5 ms: 49 sectors have passed, from block 1 on.
    read(&mut unit, SimTime::ZERO, 50, 8);
    assert!(read(&mut unit, at_ms(40), 1, 8).hit);
    let mut unit = unit_with(&spec);
    read(&mut unit, SimTime::ZERO, 50, 8);
    assert!(!read(&mut unit, at_ms(40), 0, 8).hit);
}

#[test]
fn buffer_evicts_least_recently_used() {
    let mut unit = unit_with(&electronics());
    for (step, start) in [0u64, 1000, 2000, 3000].into_iter().enumerate() {
        read(&mut unit, at_ms(step as u64 * 40), start, 8);
    }
    // The first is used again, so the fifth takes the place of the second.
    assert!(read(&mut unit, at_ms(200), 0, 8).hit);
    read(&mut unit, at_ms(240), 4000, 8);
    assert!(read(&mut unit, at_ms(280), 0, 8).hit);
    assert!(!read(&mut unit, at_ms(320), 1000, 8).hit);
}

#[test]
fn sequential_writes_share_combined_segment() {
    let mut spec = electronics();
    let buffer = spec.buffer.as_mut().unwrap();
    (buffer.write_segments, buffer.combine_sequential_writes) = (1, true);
    let mut unit = unit_with(&spec);
    // The second waits until the first is on the media; the third joins the second.
    let first = unit.serve(SimTime::ZERO, Op::Write, Lbn::new(50), 8);
    let second = unit.serve(SimTime::ZERO + us(111), Op::Write, Lbn::new(500), 8);
    let third = unit.serve(second.end, Op::Write, Lbn::new(508), 8);
    assert_eq!((first.queue, third.queue), (SimDuration::ZERO, SimDuration::ZERO));
    assert!(second.queue > SimDuration::ZERO);
}

#[test]
fn read_waits_for_running_read_ahead() {
    let mut unit = unit_with(&electronics());
    let first = read(&mut unit, SimTime::ZERO, 10, 8);
    // At 1.81 ms; block 25 has passed at 2.6 ms, its last step over the bus takes 10 us.
    let served = read(&mut unit, first.end, 18, 8);
    assert!(served.hit);
    assert_eq!(served.end, SimTime::ZERO + us(2600 + 10));
}

#[test]
fn cached_write_ends_early_read_waits() {
    let mut unit = unit_with(&electronics());
    let written = unit.serve(SimTime::ZERO, Op::Write, Lbn::new(50), 8);
    assert!(written.hit);
    assert_eq!(written.end, SimTime::ZERO + us(30 + 80));
    // Destaged from 0.11 ms on: block 50 comes by at 5 ms, done at 5.8 ms. The read is ready at
    // 1.05 ms and waits until then; block 0 comes by at 10 ms.
    let served = read(&mut unit, at_ms(1), 0, 1);
    assert_eq!(served.queue, us(5800 - 1050));
    assert_eq!(served.end, SimTime::ZERO + us(10_000 + 100 + 10));
}

#[test]
fn write_waits_when_segments_are_dirty() {
    let mut unit = unit_with(&electronics());
    let first = unit.serve(SimTime::ZERO, Op::Write, Lbn::new(50), 8);
    let second = unit.serve(first.end, Op::Write, Lbn::new(5000), 8);
    let third = unit.serve(second.end, Op::Write, Lbn::new(2000), 8);
    assert_eq!((first.queue, second.queue), (SimDuration::ZERO, SimDuration::ZERO));
    // The first leaves its segment when it is on the media, at 5.8 ms.
    assert!(third.queue > SimDuration::ZERO);
}

#[test]
fn write_without_cache_ends_on_media() {
    let mut spec = electronics();
    spec.buffer.as_mut().unwrap().write_cache = WriteCache::Off;
    let served = unit_with(&spec).serve(SimTime::ZERO, Op::Write, Lbn::new(50), 8);
    assert!(!served.hit);
    assert_eq!(served.end, SimTime::ZERO + us(5800));
}

#[test]
fn write_drops_old_copy_in_buffer() {
    let mut unit = unit_with(&electronics());
    read(&mut unit, SimTime::ZERO, 10, 8);
    unit.serve(at_ms(40), Op::Write, Lbn::new(12), 2);
    // Written data does not serve reads on this drive, and the copy read before is stale.
    assert!(!read(&mut unit, at_ms(80), 10, 8).hit);
}

#[test]
fn read_write_change_costs_within_cylinder_only() {
    let spec = ElectronicsSpec { read_write_switch: us(200), ..ElectronicsSpec::default() };
    let mut unit = unit_with(&spec);
    assert_eq!(read(&mut unit, SimTime::ZERO, 10, 1).seek, us(0));
    // Block 12 comes by at 1.2 ms, before the head has moved over, and at 11.2 ms.
    let changed = write(&mut unit, at(1100), 12, 1);
    assert_eq!((changed.seek, changed.end), (us(200), at(11_300)));
    assert_eq!(write(&mut unit, at_ms(20), 12, 1).seek, us(0));
    assert_eq!(read(&mut unit, at_ms(40), 12, 1).seek, us(200));
    assert_eq!(write(&mut unit, at_ms(60), 500, 1).seek, us(1000));
}

/// Electronics without a write cache whose writes begin in this way.
fn writes_that_begin(write_start: WriteStartSpec) -> ElectronicsSpec {
    let mut spec = ElectronicsSpec { write_start: Some(write_start), ..electronics() };
    spec.buffer.as_mut().unwrap().write_cache = WriteCache::Off;
    spec
}

#[test]
fn write_not_sequential_has_least_movement() {
    let least = WriteStartSpec { seek_at_least: us(4960), ..WriteStartSpec::default() };
    let mut unit = unit_with(&writes_that_begin(least));
    // On the track where the head is, from 0.06 ms on: block 50 comes by at 5 ms, just before the movement
    // would end, and again a turn later.
    let first = unit.serve(SimTime::ZERO, Op::Write, Lbn::new(50), 8);
    assert_eq!(first.end, SimTime::ZERO + us(10_000 + 5800));
    assert_eq!((first.seek, first.rotate), (us(4960), us(9980)));
    let next = unit.serve(at_ms(20), Op::Write, Lbn::new(58), 8);
    assert_eq!(next.end, SimTime::ZERO + us(20_000 + 6600), "it follows on the first");
    // A read is no write.
    let read = read(&mut unit, at_ms(40), 50, 1);
    assert_eq!(read.end, SimTime::ZERO + us(45_000 + 100 + 10));
}

#[test]
fn write_after_write_releases_bus_first() {
    let extra = ExtraDisconnectSpec { movement_after: us(900), data_after: us(2000) };
    let start = WriteStartSpec { extra_disconnect: Some(extra), ..WriteStartSpec::default() };
    let spec = writes_that_begin(start);
    let end = |before: &[(Op, u64)], block: u64| {
        let mut unit = unit_with(&spec);
        for (at, (op, block)) in (0..).zip(before) {
            unit.serve(at_ms(at * 40), *op, Lbn::new(*block), 8);
        }
        unit.serve(at_ms(80), Op::Write, Lbn::new(block), 8)
    };
    // Data come from 2 ms on, ten microseconds a block: block 20 passes at 2 ms, before them.
    let twice = end(&[(Op::Read, 0), (Op::Write, 50)], 20);
    assert_eq!(twice.end, at_ms(80) + us(10_000 + 2800));
    assert_eq!(twice.overhead, us(900));
    let later = end(&[(Op::Read, 0), (Op::Write, 50)], 21);
    assert_eq!(later.end, at_ms(80) + us(2900));
    // After a read, and where it follows on the write before, there is one disconnect as ever.
    assert_eq!(end(&[(Op::Write, 50), (Op::Read, 0)], 20).end, at_ms(80) + us(2800));
    assert_eq!(end(&[(Op::Read, 0), (Op::Write, 12)], 20).end, at_ms(80) + us(2800));
}
