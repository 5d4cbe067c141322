//! The electronics: small cases worked out by hand, and what must hold for any drive.
#![allow(missing_docs)]

mod common;

use std::sync::Arc;

use common::any_drive;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{ByOp, CurveSpec, DriveSpec, Mapping, SeekSpec, Turn, ZoneSpec};
use freewheel_model::onboard::spec::{
    AfterOp, BufferSpec, BusSpec, OnboardSpec, OverheadSpec, ReadAhead, WriteCache,
};
use freewheel_model::onboard::{Served, Unit};
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

/// One surface, 100 sectors a track, a turn of 10 ms: a sector passes in 0.1 ms. Seeks take 1 ms,
/// and so does the skew.
fn drive() -> Drive {
    let tenth = Turn::from_ratio(10, 100).unwrap();
    let zone = ZoneSpec {
        first_cylinder: 0,
        last_cylinder: 99,
        blocks_per_track: 100,
        first_block: Turn::default(),
        reserved_blocks: 0,
        track_skew: tenth,
        cylinder_skew: tenth,
        band_skews: Vec::new(),
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    };
    let spec = DriveSpec {
        name: "hand".into(),
        model: "hand".into(),
        year: 2000,
        actuators: 1,
        surfaces: 1,
        cylinders: 100,
        rotation_period: SimDuration::from_ms(10),
        mapping: Mapping::Cylinder,
        sparing: Default::default(),
        head_switch: SimDuration::ZERO,
        seek: SeekSpec {
            read: CurveSpec::Table { cylinders_ms: vec![(1, 1.0), (2, 1.0)] },
            write: None,
            write_settle: SimDuration::ZERO,
            tolerance: SimDuration::ZERO,
        },
        zero_latency: ByOp::default(),
        overhead: ByOp::default(),
        zones: vec![zone],
        onboard: OnboardSpec::default(),
        zoned: None,
        advertised: Default::default(),
        sources: Default::default(),
    };
    Drive::build(&spec).unwrap()
}

fn unit_with(spec: &OnboardSpec) -> Unit {
    Unit::new(&Arc::new(drive()), spec).unwrap()
}

fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

fn at_ms(ms: u64) -> SimTime {
    SimTime::ZERO + SimDuration::from_ms(ms)
}

/// Four segments of 200 blocks, reading on to the end of the track, every write cached; 20 us for
/// a hit, 50 us for a miss, 10 us a block on the bus.
fn electronics() -> OnboardSpec {
    OnboardSpec {
        buffer: Some(BufferSpec {
            segments: 4,
            segment_blocks: 200,
            write_segments: 2,
            read_ahead: ReadAhead::Track,
            write_cache: WriteCache::On,
            almost_hits: true,
            ..BufferSpec::default()
        }),
        overheads: Some(OverheadSpec {
            read_hit: AfterOp::both(us(20)),
            read_miss: AfterOp::both(us(50)),
            write_hit: AfterOp::both(us(30)),
            write_miss: AfterOp::both(us(60)),
            ..OverheadSpec::default()
        }),
        bus: Some(BusSpec { block_time: us(10), ..BusSpec::default() }),
        ..OnboardSpec::default()
    }
}

fn read(unit: &mut Unit, now: SimTime, start: u64, blocks: u32) -> Served {
    unit.serve(now, Op::Read, Lbn::new(start), blocks)
}

#[test]
fn a_miss_takes_overhead_media_and_the_last_block_on_a_fast_bus() {
    // Block 10 comes by at 1 ms; eight sectors; the last of them over the bus.
    let served = read(&mut unit_with(&electronics()), SimTime::ZERO, 10, 8);
    assert!(!served.hit);
    assert_eq!(served.end, SimTime::ZERO + us(1000 + 800 + 10));
    assert_eq!((served.overhead, served.rotate), (us(50), us(950)));
}

#[test]
fn a_bus_slower_than_the_media_is_busy_from_the_first_block_on() {
    let mut spec = electronics();
    spec.bus = Some(BusSpec { block_time: us(150), ..BusSpec::default() });
    // The first block is under the head at 1 ms, eight times 0.15 ms follow.
    let served = read(&mut unit_with(&spec), SimTime::ZERO, 10, 8);
    assert_eq!(served.end, SimTime::ZERO + us(1000 + 1200));
}

#[test]
fn what_was_read_ahead_is_served_from_the_buffer_without_the_media() {
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
fn a_slow_sequential_reader_is_not_overrun_by_its_own_read_ahead() {
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
fn what_passed_before_the_wanted_blocks_is_kept_where_the_drive_does_so() {
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
fn a_buffer_gives_up_what_was_used_longest_ago() {
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
fn writes_that_follow_on_each_other_share_a_segment_where_they_are_combined() {
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
fn a_read_of_what_is_being_read_ahead_waits_for_just_that() {
    let mut unit = unit_with(&electronics());
    let first = read(&mut unit, SimTime::ZERO, 10, 8);
    // At 1.81 ms; block 25 has passed at 2.6 ms, its last step over the bus takes 10 us.
    let served = read(&mut unit, first.end, 18, 8);
    assert!(served.hit);
    assert_eq!(served.end, SimTime::ZERO + us(2600 + 10));
}

#[test]
fn a_cached_write_is_done_when_it_is_in_the_buffer_and_a_read_then_waits_for_the_media() {
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
fn a_write_waits_when_all_write_segments_hold_data_that_is_not_on_the_media() {
    let mut unit = unit_with(&electronics());
    let first = unit.serve(SimTime::ZERO, Op::Write, Lbn::new(50), 8);
    let second = unit.serve(first.end, Op::Write, Lbn::new(5000), 8);
    let third = unit.serve(second.end, Op::Write, Lbn::new(2000), 8);
    assert_eq!((first.queue, second.queue), (SimDuration::ZERO, SimDuration::ZERO));
    // The first leaves its segment when it is on the media, at 5.8 ms.
    assert!(third.queue > SimDuration::ZERO);
}

#[test]
fn without_a_write_cache_a_write_is_done_when_it_is_on_the_media() {
    let mut spec = electronics();
    spec.buffer.as_mut().unwrap().write_cache = WriteCache::Off;
    let served = unit_with(&spec).serve(SimTime::ZERO, Op::Write, Lbn::new(50), 8);
    assert!(!served.hit);
    assert_eq!(served.end, SimTime::ZERO + us(5800));
}

#[test]
fn a_write_over_what_the_buffer_holds_makes_the_old_copy_go() {
    let mut unit = unit_with(&electronics());
    read(&mut unit, SimTime::ZERO, 10, 8);
    unit.serve(at_ms(40), Op::Write, Lbn::new(12), 2);
    // Written data does not serve reads on this drive, and the copy read before is stale.
    assert!(!read(&mut unit, at_ms(80), 10, 8).hit);
}

fn any_electronics(prng: &mut Prng) -> OnboardSpec {
    let kinds = [ReadAhead::None, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::Segment];
    let caches = [WriteCache::Off, WriteCache::Sequential, WriteCache::On];
    let segments = 1 + prng.below(5) as u32;
    OnboardSpec {
        buffer: prng.chance(0.8).then(|| BufferSpec {
            segments,
            segment_blocks: 1 + prng.below(120) as u32,
            write_segments: 1 + prng.below(u64::from(segments)) as u32,
            read_ahead: kinds[prng.below(4) as usize],
            read_ahead_min_blocks: if prng.chance(0.3) { prng.below(40) as u32 } else { 0 },
            keep_requested: prng.chance(0.5),
            read_ahead_on_hit: prng.chance(0.5),
            partial_hits: prng.chance(0.5),
            almost_hits: prng.chance(0.5),
            keep_free_blocks_before: prng.chance(0.5),
            read_hits_on_written: prng.chance(0.5),
            write_cache: caches[prng.below(3) as usize],
            combine_sequential_writes: prng.chance(0.5),
            write_stops_read_ahead: prng.chance(0.5),
            ..BufferSpec::default()
        }),
        overheads: prng.chance(0.5).then(|| OverheadSpec {
            read_hit: AfterOp::both(us(prng.below(300))),
            read_miss: AfterOp::both(us(prng.below(300))),
            write_hit: AfterOp::both(us(prng.below(300))),
            write_miss: AfterOp::both(us(prng.below(300))),
            ..OverheadSpec::default()
        }),
        bus: prng
            .chance(0.5)
            .then(|| BusSpec { block_time: us(prng.below(120)), ..BusSpec::default() }),
        ..OnboardSpec::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn stage_times_add_up_for_any_drive_electronics_and_commands((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "commands");
        let mut unit = Unit::new(&Arc::new(drive.clone()), &any_electronics(prng)).unwrap();
        let mut now = SimTime::ZERO;
        for _ in 0..80 {
            let near = prng.below(drive.blocks().get());
            let blocks = 1 + prng.below((drive.blocks().get() - near).min(16)) as u32;
            let op = if prng.chance(0.6) { Op::Read } else { Op::Write };
            let s = unit.serve(now, op, Lbn::new(near), blocks);
            let sum = s.overhead + s.queue + s.seek + s.rotate + s.transfer + s.bus;
            prop_assert_eq!(sum, s.end - now);
            now = s.end + us(prng.below(20_000));
        }
    }

    #[test]
    fn a_drive_without_electronics_is_its_mechanics((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "plain");
        let mut unit = Unit::new(&Arc::new(drive.clone()), &OnboardSpec::default()).unwrap();
        let (mut now, mut head) = (SimTime::ZERO, Default::default());
        for _ in 0..40 {
            let start = prng.below(drive.blocks().get());
            let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
            let target = drive.target(Lbn::new(start), freewheel_units::Blocks::new(1), op);
            let access = drive.access(now, head, &target);
            let served = unit.serve(now, op, Lbn::new(start), 1);
            prop_assert_eq!(served.end, now + access.total());
            (now, head) = (served.end, access.end);
        }
    }
}
