//! The way to the host.

use freewheel_model::electronics::spec::{AfterOp, BusSpec, ElectronicsSpec, WriteCache};
use freewheel_model::sched::PolicySpec;
use freewheel_units::{Op, SimTime};

use super::hand::*;

fn with_bus(bus: BusSpec) -> ElectronicsSpec {
    ElectronicsSpec { bus: Some(bus), ..electronics() }
}

#[test]
fn arbitration_hidden_behind_media() {
    let bus = BusSpec { block_time: us(10), arbitration: us(40), ..BusSpec::default() };
    let mut unit = unit_with(&with_bus(bus));
    assert_eq!(read(&mut unit, SimTime::ZERO, 10, 8).end, at(1810));
    assert_eq!(read(&mut unit, at_ms(40), 10, 8).end, at(40_000 + 20 + 40 + 80));
    assert_eq!(write(&mut unit, at_ms(80), 500, 8).end, at(80_000 + 30 + 40 + 80));
}

#[test]
fn bus_release_time_depends_on_operation() {
    let bus = BusSpec {
        read_disconnect: AfterOp { after_read: us(100), after_write: us(200) },
        write_disconnect: us(300),
        ..BusSpec::default()
    };
    let overheads = |bus| {
        let mut spec = with_bus(bus);
        spec.buffer.as_mut().unwrap().write_cache = WriteCache::Off;
        let wishes = [
            reads(0, 10, 8),
            writes(40_000, 500, 8),
            reads(80_000, 700, 8),
            reads(120_000, 700, 8),
        ];
        let outcomes = run_with(&spec, &wishes);
        outcomes.iter().map(|outcome| outcome.served.overhead).collect::<Vec<_>>()
    };
    // The last is a hit, which keeps the bus.
    assert_eq!(overheads(bus), [us(50 + 100), us(60 + 300), us(50 + 200), us(20)]);
    let held = BusSpec { hold: true, ..bus };
    assert_eq!(overheads(held), [us(50), us(60), us(50), us(20)]);
}

#[test]
fn disconnected_read_transfers_after_reconnect() {
    let bus = BusSpec { block_time: us(150), reconnect: us(100), ..BusSpec::default() };
    let mut unit = unit_with(&with_bus(bus));
    // Media from 1.0 to 1.8 ms; 0.1 and eight times 0.15 from 1.0 on.
    assert_eq!(read(&mut unit, SimTime::ZERO, 10, 8).end, at(2300));
    assert_eq!(read(&mut unit, at_ms(40), 10, 8).end, at(40_000 + 20 + 1200));
}

#[test]
fn read_takes_bus_at_water_mark() {
    let served = |read_water_mark| {
        let (block_time, reconnect) = (us(10), us(100));
        let bus = BusSpec { block_time, reconnect, read_water_mark, ..BusSpec::default() };
        let served = read(&mut unit_with(&with_bus(bus)), SimTime::ZERO, 10, 8);
        (served.end, served.bus)
    };
    // Media from 1.0 to 1.8 ms; the data and the reconnect take 180 us.
    assert_eq!(served(100), (at(1800 + 100 + 80), us(180)));
    // Seven blocks are there at 1.7 ms, six at 1.6 ms: the last block crosses behind the media's part.
    assert_eq!([served(87), served(75)], [(at(1700 + 180), us(80)), (at(1800 + 10), us(10))]);
    assert_eq!(served(0), served(75));
}

#[test]
fn written_blocks_have_own_bus_time() {
    let bus = BusSpec { write_block_time: Some(us(30)), block_time: us(10), ..BusSpec::default() };
    let mut unit = unit_with(&with_bus(bus));
    assert_eq!(write(&mut unit, SimTime::ZERO, 500, 8).end, at(30 + 240));
    assert_eq!(read(&mut unit, at_ms(40), 10, 8).bus, us(10));
}

/// End of a read from the buffer that comes at 40.2 ms, while the media are at block 500 from
/// 40.05 (a read) or 40.06 ms (a write) to 45.1 ms.
fn hit_beside(op: Op, hold: bool) -> u64 {
    let mut spec = with_bus(BusSpec { block_time: us(10), hold, ..BusSpec::default() });
    spec.buffer.as_mut().unwrap().write_cache = WriteCache::Off;
    spec.queue = Some(queue(2, PolicySpec::Fcfs));
    let other = Wish { op, ..reads(40_000, 500, 1) };
    ends_us(&run_with(&spec, &[reads(0, 10, 8), other, reads(40_200, 50, 8)]))[2]
}

#[test]
fn held_bus_excludes_others_until_done() {
    assert_eq!([hit_beside(Op::Read, false), hit_beside(Op::Write, false)], [40_300; 2]);
    // The last block of the read is across at 45.11 ms; the write ends with the media's part.
    assert_eq!(hit_beside(Op::Read, true), 45_190);
    assert_eq!(hit_beside(Op::Write, true), 45_180);
}

#[test]
fn buffered_writes_cross_bus_in_turn() {
    let mut spec = with_bus(BusSpec { block_time: us(150), ..BusSpec::default() });
    spec.queue = Some(queue(2, PolicySpec::Fcfs));
    // From 0.03 to 1.23 ms, then the other.
    assert_eq!(ends_us(&run_with(&spec, &[writes(0, 50, 8), writes(0, 500, 8)])), [1230, 2430]);
}
