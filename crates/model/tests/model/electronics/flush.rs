//! Flushes.

use freewheel_model::drive::Exact;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_units::{SimDuration, SimTime};

use super::hand::*;

#[test]
fn flush_of_clean_drive_does_nothing() {
    let mut unit = unit_with(&electronics());
    assert!(!unit.flush(SimTime::ZERO, 0));
    write(&mut unit, at_ms(1), 50, 8);
    // Destaged from 1.11 to 5.8 ms.
    assert!(!unit.flush(at(5800), 1));
    assert_eq!(unit.next_event(), None);
}

#[test]
fn flush_joins_running_last_destage() {
    let mut unit = unit_with(&electronics());
    write(&mut unit, SimTime::ZERO, 50, 8);
    assert!(unit.flush(at(3000), 7));
    assert!(unit.has_room(), "a flush takes no place");
    let done = unit.advance(at(5800), &mut Exact).unwrap();
    assert_eq!((done.sequence, done.flush), (7, true));
    assert_eq!((done.served.queue, done.served.end), (us(2800), at(5800)));
    assert!(unit.has_room());
}

#[test]
fn flushes_end_when_earlier_writes_on_media() {
    let wishes = [
        writes(0, 50, 8),
        flushes(50),
        flushes(200),
        writes(1000, 1000, 8),
        flushes(1200),
        flushes(12_000),
    ];
    // Block 50 until 5.8 ms, also for the flush that comes before its data; a seek until 6.8, block
    // 1000 from 10.0 to 10.8.
    let outcomes = run_with(&electronics(), &wishes);
    assert_eq!(ends_us(&outcomes), [110, 5800, 5800, 1110, 10_800, 12_000]);
}

#[test]
fn flush_goes_before_waiting_commands() {
    let mut spec = buffered(|buffer| buffer.destage_after_idle = SimDuration::from_ms(100));
    spec.queue = Some(queue(3, PolicySpec::Fcfs));
    let wishes = [
        writes(0, 50, 8),
        writes(200, 60, 8),
        reads(1000, 10, 8),
        reads(2000, 300, 1),
        flushes(3000),
    ];
    // The media are free at 11.8; block 50 from 15.0, block 60 until 16.8; a seek until 17.8, block
    // 300 at 23.0.
    assert_eq!(ends_us(&run_with(&spec, &wishes)), [110, 310, 11_810, 23_110, 16_800]);
}

#[test]
fn writes_behind_flush_do_not_overtake() {
    let spec = ElectronicsSpec {
        queue: Some(queue(1, PolicySpec::Sptf)),
        ..buffered(|buffer| buffer.write_segments = 4)
    };
    let wishes = [writes(0, 80, 1), writes(100, 95, 1), flushes(1000), writes(2000, 182, 1)];
    // Block 80 until 8.1, block 95 until 9.6. Block 182 would be reached at 9.2.
    assert_eq!(ends_us(&run_with(&spec, &wishes))[2], 9600);
}

#[test]
fn flush_skips_data_still_on_bus() {
    // In the buffer at 0.11 ms; block 1 comes by at 0.1 ms and at 10.1.
    assert_eq!(ends_us(&run_with(&electronics(), &[writes(0, 1, 8), flushes(50)])), [110, 10_900]);
}
