//! Writes that the buffer takes, and their way to the media.

use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::{AfterOp, BufferSpec, ElectronicsSpec};
use freewheel_model::sched::PolicySpec;
use freewheel_units::{SimDuration, SimTime};

use super::hand::*;

/// No write reaches the media before the drive has been idle for 100 ms.
fn lazy(change: impl FnOnce(&mut BufferSpec)) -> ElectronicsSpec {
    buffered(|buffer| {
        buffer.destage_after_idle = SimDuration::from_ms(100);
        change(buffer);
    })
}

#[test]
fn write_segment_free_when_on_media() {
    let mut unit = unit_with(&buffered(|buffer| buffer.write_segments = 1));
    write(&mut unit, SimTime::ZERO, 50, 8);
    // Destaged from 0.11 to 5.8 ms; then eight blocks on the bus.
    let second = write(&mut unit, at_ms(1), 1000, 8);
    assert_eq!((second.queue, second.end), (us(5800 - 1030), at(5880)));
}

#[test]
fn write_segments_full_third_waits_for_destage() {
    let wishes = [writes(0, 50, 8), writes(1000, 1000, 8), writes(2000, 2000, 8)];
    assert_eq!(ends_us(&run_with(&electronics(), &wishes)), [110, 1110, 5880]);
}

#[test]
fn write_skips_segment_being_read_into() {
    let spec = ElectronicsSpec {
        queue: Some(queue(2, PolicySpec::Fcfs)),
        ..buffered(|buffer| (buffer.segments, buffer.write_segments) = (1, 1))
    };
    // The media are done at 1.8 ms, the bus at 1.81.
    assert_eq!(ends_us(&run_with(&spec, &[reads(0, 10, 8), writes(1000, 500, 8)])), [1810, 1890]);
}

#[test]
fn write_does_not_overtake_waiting_one() {
    let spec = ElectronicsSpec {
        queue: Some(queue(3, PolicySpec::Fcfs)),
        ..lazy(|buffer| buffer.write_segments = 1)
    };
    // The third would find room in what the first wrote. Block 50 until 5.8 ms, block 1000 from
    // 10.0 to 10.8.
    let wishes = [writes(0, 50, 8), writes(1000, 1000, 8), writes(1010, 52, 4)];
    assert_eq!(ends_us(&run_with(&spec, &wishes)), [110, 5880, 10_840]);
}

#[test]
fn commands_and_destages_take_turns() {
    let spec = ElectronicsSpec {
        queue: Some(queue(5, PolicySpec::Fcfs)),
        ..lazy(|buffer| buffer.write_segments = 1)
    };
    let wishes = [
        writes(0, 50, 8),
        reads(1000, 10, 1),
        reads(2000, 20, 1),
        writes(2000, 1000, 8),
        writes(2000, 2000, 8),
    ];
    // Block 10 until 11.1 ms, block 50 until 15.8, block 20 until 22.1, block 1000 until 30.8.
    assert_eq!(ends_us(&run_with(&spec, &wishes)), [110, 11_110, 22_110, 15_880, 30_880]);
}

#[test]
fn destage_waits_for_joined_writes() {
    // In the buffer at 5.02 ms, when block 50 has begun to pass.
    let wishes = [writes(0, 50, 8), writes(4950, 52, 4), flushes(4960)];
    assert_eq!(ends_us(&run_with(&lazy(|_| ()), &wishes)), [110, 5020, 15_800]);
}

#[test]
fn overwrite_takes_place_of_waiting_write() {
    let wishes = [writes(0, 50, 8), writes(1000, 52, 4)];
    let outcomes = run_with(&lazy(|buffer| buffer.write_segments = 1), &wishes);
    assert_eq!(ends_us(&outcomes), [110, 1070]);
}

#[test]
fn writes_before_and_behind_waiting_join() {
    let wishes = [writes(0, 50, 8), writes(1000, 58, 8), writes(2000, 42, 8), flushes(4000)];
    let combining =
        |on| lazy(|buffer| (buffer.write_segments, buffer.combine_sequential_writes) = (1, on));
    // Blocks 42 to 65 pass from 4.2 to 6.6 ms.
    assert_eq!(ends_us(&run_with(&combining(true), &wishes)), [110, 1110, 2110, 6600]);
    // Each waits for the one before: block 50 from 5 ms on, block 58 from 5.88 ms, a turn later on.
    assert_eq!(ends_us(&run_with(&combining(false), &wishes[..2])), [110, 5880]);
}

#[test]
fn write_joins_no_full_segment() {
    let spec = lazy(|buffer| {
        (buffer.write_segments, buffer.combine_sequential_writes) = (1, true);
        buffer.segment_blocks = 16;
    });
    let outcomes = run_with(&spec, &[writes(0, 50, 8), writes(1000, 58, 8), writes(2000, 66, 8)]);
    // Blocks 50 to 65 are on the media at 6.6 ms.
    assert_eq!(ends_us(&outcomes), [110, 1110, 6680]);
}

#[test]
fn read_of_waiting_blocks_follows_destage() {
    let mut unit = unit_with(&lazy(|_| ()));
    write(&mut unit, SimTime::ZERO, 50, 8);
    // Ready at 1.05 ms; block 50 comes by at 5 ms for the destage and at 15 ms for the read.
    let served = read(&mut unit, at_ms(1), 50, 8);
    assert_eq!((served.hit, served.queue, served.end), (false, us(4750), at(15_810)));
}

#[test]
fn read_of_other_blocks_ignores_buffer() {
    let mut unit = unit_with(&lazy(|_| ()));
    write(&mut unit, SimTime::ZERO, 50, 8);
    assert_eq!(read(&mut unit, at_ms(1), 20, 8).end, at(2810));
}

#[test]
fn read_hits_waiting_data_where_served() {
    let mut unit = unit_with(&lazy(|buffer| buffer.read_hits_on_written = true));
    write(&mut unit, SimTime::ZERO, 50, 8);
    assert_eq!(read(&mut unit, at_ms(1), 50, 8).end, at(1100));
}

#[test]
fn write_through_of_waiting_blocks_follows_destage() {
    let mut unit = unit_with(&lazy(|buffer| buffer.segment_blocks = 8));
    write(&mut unit, SimTime::ZERO, 50, 8);
    // Too large for a segment. Destaged from 5 to 5.8 ms; block 44 comes by at 14.4 ms.
    let served = write(&mut unit, at_ms(1), 44, 16);
    assert_eq!((served.hit, served.end), (false, at(16_000)));
}

#[test]
fn read_waits_for_writes_before_own_data() {
    let mut unit = unit_with(&lazy(|buffer| buffer.write_segments = 3));
    write(&mut unit, SimTime::ZERO, 50, 8);
    write(&mut unit, at_ms(1), 54, 8);
    // Blocks 50 to 57 from 5 ms on, 54 to 61 from 15.4 ms on, then block 60 at 26 ms.
    assert_eq!(read(&mut unit, at_ms(2), 60, 2).end, at(26_210));
}

#[test]
fn blocks_read_ahead_never_mask_waiting_writes() {
    let mut unit = unit_with(&lazy(|_| ()));
    write(&mut unit, SimTime::ZERO, 50, 8);
    // Reads on to the end of the track.
    read(&mut unit, at_ms(1), 10, 8);
    assert!(read(&mut unit, at_ms(30), 20, 8).hit);
    // Destaged from 45 ms on.
    let served = read(&mut unit, at_ms(40), 50, 8);
    assert_eq!((served.hit, served.end), (false, at(55_810)));
}

#[test]
fn blocks_read_ahead_dropped_when_overwritten() {
    // A drive that serves reads from written data has the newer ones at hand.
    for written_too in [false, true] {
        let mut unit = unit_with(&lazy(|buffer| buffer.read_hits_on_written = written_too));
        write(&mut unit, SimTime::ZERO, 50, 8);
        read(&mut unit, at_ms(1), 10, 8);
        // Destaged after 0.1 s.
        assert_eq!(read(&mut unit, at_ms(200), 48, 4).hit, written_too);
    }
}

#[test]
fn ordering_drive_destages_nearest_first() {
    let wishes = [writes(0, 90, 1), writes(1000, 20, 1), flushes(2000)];
    let flush_us = |scheduler| {
        let spec = ElectronicsSpec { queue: Some(queue(1, scheduler)), ..lazy(|_| ()) };
        ends_us(&run_with(&spec, &wishes))[2]
    };
    assert_eq!(flush_us(PolicySpec::Sptf), 9100);
    // Block 90 at 9 ms, block 20 at 12 ms.
    assert_eq!(flush_us(PolicySpec::Fcfs), 12_100);
}

fn destaging_after_5_ms() -> DriveUnit {
    unit_with(&buffered(|buffer| buffer.destage_after_idle = SimDuration::from_ms(5)))
}

#[test]
fn destaging_begins_after_idle_delay() {
    // Idle from 0.11 ms on; block 52 comes by at 5.2 ms.
    let outcomes = run(&mut destaging_after_5_ms(), &[writes(0, 52, 8), flushes(5500)]);
    assert_eq!(ends_us(&outcomes), [110, 6000]);
    // A read in between is not held up and begins the idle time again, at 4.61 ms.
    let wishes = [writes(0, 52, 8), reads(4000, 45, 1), flushes(10_000)];
    assert_eq!(ends_us(&run(&mut destaging_after_5_ms(), &wishes)), [110, 4610, 16_000]);
}

#[test]
fn buffered_read_keeps_idle_time_running() {
    let wishes = [reads(0, 10, 8), writes(40_000, 1062, 8), reads(43_000, 10, 8), flushes(46_500)];
    // Idle from 40.11 to 45.11 ms, a seek of 1 ms; block 1062 comes by at 46.2 ms.
    let outcomes = run(&mut destaging_after_5_ms(), &wishes);
    assert_eq!(ends_us(&outcomes), [1810, 40_110, 43_100, 47_000]);
}

/// A read of blocks 0 to 7 is at the media from 0.05 to 0.8 ms, and the drive reads on behind it, a
/// block each 0.1 ms, until it has processed a write for 1 ms.
fn read_ahead_stopped_by_a_write() -> DriveUnit {
    let mut spec = buffered(|buffer| {
        buffer.write_stops_read_ahead = true;
        buffer.destage_after_idle = SimDuration::from_ms(100);
    });
    spec.queue = Some(queue(4, PolicySpec::Fcfs));
    spec.overheads.as_mut().unwrap().write_hit = AfterOp::both(us(1000));
    unit_with(&spec)
}

#[test]
fn write_stops_read_ahead_once_processed() {
    let hits = |start| {
        let wishes = [reads(0, 0, 8), writes(12_000, 5000, 8), reads(30_000, start, 1)];
        run(&mut read_ahead_stopped_by_a_write(), &wishes)[2].served.hit
    };
    // The first read ends at 10.8 ms, so that 22 blocks have been read on at 13 ms.
    assert_eq!((hits(29), hits(30)), (true, false));
}

#[test]
fn read_stops_read_ahead_before_write() {
    let hits = |start| {
        let wishes = [
            reads(0, 0, 8),
            reads(12_000, 5000, 1),
            writes(12_000, 7000, 8),
            reads(50_000, start, 1),
        ];
        run(&mut read_ahead_stopped_by_a_write(), &wishes)[3].served.hit
    };
    // The head leaves at 12.05 ms.
    assert_eq!((hits(19), hits(20)), (true, false));
}
