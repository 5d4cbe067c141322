//! Part of a read that the buffer holds, and the extent of reading on.

use freewheel_model::electronics::spec::{BufferSpec, BusSpec, ElectronicsSpec, ReadAhead};
use freewheel_units::SimTime;

use super::hand::*;

fn partial_hits(block_time_us: u64) -> ElectronicsSpec {
    let mut spec =
        buffered(|buffer| (buffer.read_ahead, buffer.partial_hits) = (ReadAhead::None, true));
    spec.bus = Some(BusSpec { block_time: us(block_time_us), ..BusSpec::default() });
    spec
}

#[test]
fn partial_hit_reads_only_rest() {
    let mut unit = unit_with(&partial_hits(10));
    read(&mut unit, SimTime::ZERO, 10, 8);
    // Ready at 40.05 ms; block 18 comes by at 41.8, four sectors.
    let served = read(&mut unit, at_ms(40), 14, 8);
    assert!(!served.hit);
    assert_eq!((served.rotate, served.transfer, served.bus), (us(1750), us(400), us(10)));
    // All of it is in the buffer then.
    assert!(read(&mut unit, at_ms(80), 10, 12).hit);
}

#[test]
fn partial_hit_disabled_reads_all_again() {
    let mut spec = partial_hits(10);
    spec.buffer.as_mut().unwrap().partial_hits = false;
    let mut unit = unit_with(&spec);
    read(&mut unit, SimTime::ZERO, 10, 8);
    let served = read(&mut unit, at_ms(40), 14, 8);
    assert_eq!((served.rotate, served.transfer), (us(1350), us(800)));
}

#[test]
fn partial_hit_transfers_while_rest_is_read() {
    // The media are done at 42.2 ms. A bus of 0.15 ms a block: of the four new blocks 0.6 ms, less
    // the 0.4 that they take to read.
    let mut unit = unit_with(&partial_hits(150));
    read(&mut unit, SimTime::ZERO, 10, 8);
    assert_eq!(read(&mut unit, at_ms(40), 14, 8).end, at(42_400));
    // With 0.5 ms a block it is busy from 40.05 ms on for all eight.
    let mut unit = unit_with(&partial_hits(500));
    read(&mut unit, SimTime::ZERO, 10, 8);
    assert_eq!(read(&mut unit, at_ms(40), 14, 8).end, at(44_050));
}

#[test]
fn almost_hit_on_running_read_ahead() {
    for (almost_hits, end_us) in [(true, 2610), (false, 12_610)] {
        let mut unit = unit_with(&buffered(|buffer| buffer.almost_hits = almost_hits));
        read(&mut unit, SimTime::ZERO, 10, 8);
        // At 1.81 ms block 18 is under the head; it comes by again at 11.8.
        let served = read(&mut unit, at(1810), 18, 8);
        assert_eq!((served.hit, served.end), (almost_hits, at(end_us)));
    }
}

#[test]
fn read_ahead_minimum_delays_next_command() {
    for (least, end_us) in [(0, 3110), (20, 13_110)] {
        let mut unit = unit_with(&buffered(|buffer| {
            (buffer.read_ahead, buffer.read_ahead_min_blocks) = (ReadAhead::None, least);
        }));
        read(&mut unit, SimTime::ZERO, 10, 8);
        // Ready at 1.86 ms, and block 120 comes by at 3 ms. Reading on to block 37 ends at 3.8.
        assert_eq!(read(&mut unit, at(1810), 120, 1).end, at(end_us));
        assert_eq!(read(&mut unit, at_ms(40), 30, 8).hit, least > 0);
    }
}

#[test]
fn reading_ahead_after_two_touching_reads() {
    let mut unit = unit_with(&buffered(|buffer| buffer.read_ahead = ReadAhead::AfterTouching));
    let mut is_hit = |ms, start| read(&mut unit, at_ms(ms), start, 8).hit;
    assert!(!is_hit(0, 10) && !is_hit(40, 18), "one read alone is none");
    assert!(is_hit(80, 26) && is_hit(120, 34));
    assert!(!is_hit(160, 500) && !is_hit(200, 520), "the second does not touch the first");
    write(&mut unit, at_ms(240), 800, 8);
    assert!(!read(&mut unit, at_ms(280), 528, 8).hit);
    assert!(!read(&mut unit, at_ms(320), 536, 8).hit, "the write came between");
}

#[test]
fn blocks_read_ahead_spare_requested_ones() {
    for keep_requested in [false, true] {
        let spec = buffered(|buffer| {
            (buffer.read_ahead, buffer.segment_blocks) = (ReadAhead::Segment, 20);
            buffer.keep_requested = keep_requested;
        });
        // Blocks 10 to 29 with, 18 to 37 without.
        for (start, hit) in [(10, keep_requested), (22, true), (30, !keep_requested)] {
            let mut unit = unit_with(&spec);
            read(&mut unit, SimTime::ZERO, 10, 8);
            assert_eq!(read(&mut unit, at_ms(40), start, 8).hit, hit, "{start} {keep_requested}");
        }
    }
}

fn at_most_ten_ahead(read_ahead_on_hit: bool) -> ElectronicsSpec {
    buffered(|buffer| {
        *buffer = BufferSpec {
            read_ahead: ReadAhead::Segment,
            read_ahead_max_blocks: 10,
            read_ahead_on_hit,
            ..buffer.clone()
        };
    })
}

#[test]
fn hit_restarts_reading_on() {
    for read_ahead_on_hit in [false, true] {
        let mut unit = unit_with(&at_most_ten_ahead(read_ahead_on_hit));
        // Blocks 10 to 27, until a read elsewhere ends reading on.
        read(&mut unit, SimTime::ZERO, 10, 8);
        read(&mut unit, at_ms(40), 500, 1);
        assert!(read(&mut unit, at_ms(80), 20, 8).hit);
        assert_eq!(read(&mut unit, at_ms(120), 28, 8).hit, read_ahead_on_hit);
    }
}

#[test]
fn reads_never_take_separate_write_segments() {
    for (separate, kept) in [(false, true), (true, false)] {
        let mut unit = unit_with(&buffered(|buffer| {
            (buffer.segments, buffer.write_segments) = (2, 1);
            buffer.separate_write_segments = separate;
        }));
        read(&mut unit, SimTime::ZERO, 0, 8);
        read(&mut unit, at_ms(40), 1000, 8);
        assert_eq!(read(&mut unit, at_ms(80), 0, 8).hit, kept);
    }
}

#[test]
fn writes_never_take_foreign_segments() {
    for separate in [false, true] {
        let mut unit = unit_with(&buffered(|buffer| {
            (buffer.segments, buffer.write_segments) = (3, 1);
            buffer.separate_write_segments = separate;
        }));
        read(&mut unit, SimTime::ZERO, 0, 8);
        read(&mut unit, at_ms(40), 1000, 8);
        // The first of these finds the one unused segment, the second not.
        write(&mut unit, at_ms(80), 2000, 8);
        write(&mut unit, at_ms(120), 3000, 8);
        assert_eq!(read(&mut unit, at_ms(160), 0, 8).hit, separate);
    }
}
