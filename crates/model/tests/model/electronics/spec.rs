//! Electronics that cannot be.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, MeasuringHost};
use freewheel_model::electronics::spec::{BusSpec, ElectronicsSpec};
use freewheel_model::sched::PolicySpec;
use freewheel_units::SimDuration;

use super::hand::*;

/// The key and the value that a drive with this electronics is refused for.
fn refused(electronics: ElectronicsSpec) -> (String, String) {
    let error = Drive::build(&DriveSpec { electronics, ..drive_spec() }).unwrap_err();
    (error.key, error.value)
}

#[test]
fn buffer_impossible_refused_with_key() {
    let key = |name: &str, value: &str| (format!("electronics.buffer.{name}"), value.to_string());
    assert_eq!(refused(buffered(|b| b.segments = 0)), key("segments", "0"));
    assert_eq!(refused(buffered(|b| b.segments = 5000)), key("segments", "5000"));
    assert_eq!(refused(buffered(|b| b.segment_blocks = 0)), key("segment_blocks", "0"));
    assert_eq!(refused(buffered(|b| b.write_segments = 5)), key("write_segments", "5"));
    assert_eq!(refused(buffered(|b| b.write_segments = 0)), key("write_segments", "0"));
    // Separate ones leave at least one for reads.
    let all_for_writes = buffered(|b| (b.separate_write_segments, b.write_segments) = (true, 4));
    assert_eq!(refused(all_for_writes), key("write_segments", "4"));
}

#[test]
fn queue_size_out_of_range_is_refused() {
    for depth in [0, 65_537] {
        let key = ("electronics.queue.depth".to_string(), depth.to_string());
        assert_eq!(refused(queued(depth, PolicySpec::Fcfs)), key);
        let queue = Some(queue(depth, PolicySpec::Fcfs));
        assert_eq!(refused(ElectronicsSpec { queue, ..electronics() }), key);
    }
}

#[test]
fn measuring_host_impossible_refused_with_key() {
    let refused = |host: MeasuringHost, electronics: ElectronicsSpec| {
        let measured_on = Some(host);
        let error =
            Drive::build(&DriveSpec { electronics, measured_on, ..drive_spec() }).unwrap_err();
        (error.key, error.value)
    };
    let bus = BusSpec { block_time: SimDuration::from_secs(5), ..BusSpec::default() };
    let slow = MeasuringHost { bus, ..MeasuringHost::default() };
    let key = |name: &str, value: &str| (format!("measured_on.{name}"), value.to_string());
    assert_eq!(refused(slow, electronics()), key("bus.block_time", &bus.block_time.to_string()));
}

#[test]
fn drive_without_buffer_keeps_measurements() {
    let almost_hits = MeasuringHost { almost_hits: Some(false), ..MeasuringHost::default() };
    let electronics = ElectronicsSpec { buffer: None, ..electronics() };
    let spec = DriveSpec { electronics, measured_on: Some(almost_hits), ..drive_spec() };
    assert!(Drive::build(&spec).is_ok());
}

#[test]
fn electronics_at_the_limits_are_accepted() {
    for electronics in [
        queued(65_536, PolicySpec::Sptf),
        buffered(|b| b.write_segments = 4),
        buffered(|b| (b.separate_write_segments, b.write_segments) = (true, 3)),
    ] {
        Drive::build(&DriveSpec { electronics, ..drive_spec() }).unwrap();
    }
}
