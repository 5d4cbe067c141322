//! Sectors of eight blocks on the media.

use std::sync::Arc;

use freewheel_model::drive::spec::{ByOp, DriveSpec, ZoneSpec};
use freewheel_model::drive::{Drive, Exact};
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::{ElectronicsSpec, SectorFormat, WriteCache};
use freewheel_model::sched::{CommandMark, Waiting};
use freewheel_units::{Blocks, Lbn, Op, SimTime};

use super::hand::*;

/// The drive of the hand with 80 blocks a track: a block passes in 0.125 ms, a sector of eight in 1 ms.
/// Block b is in cylinder b / 80 and comes by at b / 80 turns, and a tenth later each cylinder.
fn spec_of(sector: SectorFormat) -> DriveSpec {
    let mut spec = drive_spec();
    spec.zones[0].blocks_per_track = 80;
    spec.electronics = ElectronicsSpec { sector, ..ElectronicsSpec::default() };
    spec
}

fn unit_of(spec: &DriveSpec) -> DriveUnit {
    DriveUnit::new(&Arc::new(Drive::build(spec).unwrap()), &spec.electronics).unwrap()
}

fn e512() -> DriveUnit {
    unit_of(&spec_of(SectorFormat::Emulated512))
}

#[test]
fn partial_sector_written_turn_after_read() {
    // The sector of block 20 is 16..24: read from 2 to 3 ms, written from 12 to 13 ms.
    let served = write(&mut e512(), SimTime::ZERO, 20, 1);
    assert_eq!(served.end, at(13_000));
    assert_eq!((served.rotate, served.transfer), (us(2000 + 9000), us(1000 + 1000)));
    let whole = write(&mut e512(), SimTime::ZERO, 16, 8);
    assert_eq!((whole.end, whole.transfer), (at(3000), us(1000)));
}

#[test]
fn partial_sector_read_takes_whole() {
    assert_eq!(read(&mut e512(), SimTime::ZERO, 20, 1).end, at(3000));
    assert_eq!(read(&mut e512(), SimTime::ZERO, 20, 5).end, at(4000));
}

#[test]
fn write_with_partial_ends_takes_one_turn() {
    // 16..32 whole takes 2 to 4 ms.
    for (start, blocks) in [(17, 15), (16, 15), (20, 8)] {
        let served = write(&mut e512(), SimTime::ZERO, start, blocks);
        assert_eq!(served.end, at(14_000), "{blocks} from {start} on");
    }
}

#[test]
fn write_over_two_tracks_turns_per_end() {
    // Blocks 72..88 lie on two tracks. The first sector ends at 10 ms, a seek takes 1 ms, and the next
    // begins at a tenth of a turn: the head is there in time, and is done at 12 ms.
    assert_eq!(write(&mut e512(), SimTime::ZERO, 72, 16).end, at(12_000));
    assert_eq!(write(&mut e512(), SimTime::ZERO, 74, 14).end, at(22_000));
    assert_eq!(write(&mut e512(), SimTime::ZERO, 72, 14).end, at(22_000));
    assert_eq!(write(&mut e512(), SimTime::ZERO, 74, 12).end, at(32_000));
}

#[test]
fn zero_latency_writes_rest_before_partial_sector() {
    let mut spec = spec_of(SectorFormat::Emulated512);
    spec.zero_latency = ByOp { read: true, write: true };
    // Sector 16..24 is read from 2 to 3 ms; 24..32 written to 4 ms; 16..24 from 12 to 13 ms.
    assert_eq!(write(&mut unit_of(&spec), SimTime::ZERO, 20, 12).end, at(13_000));
}

#[test]
fn buffer_holds_rest_of_read_sectors() {
    let mut spec = spec_of(SectorFormat::Emulated512);
    spec.electronics = ElectronicsSpec {
        sector: SectorFormat::Emulated512,
        ..buffered(|buffer| buffer.read_ahead = Default::default())
    };
    let mut unit = unit_of(&spec);
    assert!(!read(&mut unit, SimTime::ZERO, 20, 1).hit);
    assert!(read(&mut unit, at_ms(40), 16, 8).hit);
    assert!(!read(&mut unit, at_ms(80), 24, 1).hit);
}

#[test]
fn cached_partial_sector_costs_turn_at_destage() {
    let destaged = |start, blocks| {
        let mut spec = spec_of(SectorFormat::Emulated512);
        spec.electronics = ElectronicsSpec {
            sector: SectorFormat::Emulated512,
            ..buffered(|buffer| buffer.write_cache = WriteCache::On)
        };
        let mut unit = unit_of(&spec);
        let written = write(&mut unit, SimTime::ZERO, start, blocks);
        assert!(written.hit && written.end < at(1000));
        assert!(unit.flush(at(1000), 7));
        let end = unit.next_event().unwrap().time();
        assert!(unit.advance(end, &mut Exact).unwrap().flush);
        end
    };
    assert_eq!(destaged(20, 4), destaged(16, 8) + us(10_000));
}

#[test]
fn drive_4kn_takes_whole_sectors() {
    let of = |sector| write(&mut unit_of(&spec_of(sector)), SimTime::ZERO, 16, 16);
    assert_eq!(of(SectorFormat::Native4096), of(SectorFormat::Native512));
}

#[test]
fn sectors_not_whole_per_zone_are_refused() {
    type Change = fn(&mut ZoneSpec);
    let cases: [(Change, &str); 5] = [
        (|zone| zone.blocks_per_track = 84, "zones[0].blocks_per_track` is 84"),
        (|zone| zone.reserved_blocks = 4, "zones[0].reserved_blocks` is 4"),
        (|zone| zone.spares = 12, "zones[0].spares` is 12"),
        (|zone| (zone.spares, zone.slips) = (8, vec![9]), "zones[0].slips` is 9"),
        (|zone| (zone.spares, zone.remaps) = (8, vec![(16, 7993)]), "zones[0].remaps` is 16"),
    ];
    for (change, fault) in cases {
        let mut spec = spec_of(SectorFormat::Native512);
        change(&mut spec.zones[0]);
        let plain = Drive::build(&spec).err();
        assert_eq!(plain, None, "{fault}");
        spec.electronics.sector = SectorFormat::Emulated512;
        let error = Drive::build(&spec).unwrap_err().to_string();
        assert!(error.contains(fault) && error.contains("512e"), "{error}");
    }
    let mut whole = spec_of(SectorFormat::Emulated512);
    (whole.zones[0].spares, whole.zones[0].slips) = (8, (16..24).collect());
    assert!(Drive::build(&whole).is_ok());
}

#[test]
fn queued_commands_take_sector_turns() {
    let mut unit = unit_of(&DriveSpec {
        electronics: ElectronicsSpec {
            sector: SectorFormat::Emulated512,
            ..queued(2, Default::default())
        },
        ..spec_of(SectorFormat::Emulated512)
    });
    for (sequence, start) in [(0, 20), (1, 40)] {
        let target = unit.drive().target(Lbn::new(start), Blocks::new(1), Op::Write);
        let waiting = Waiting {
            target,
            arrival: SimTime::ZERO,
            sequence,
            fua: false,
            mark: CommandMark::None,
        };
        unit.submit(SimTime::ZERO, &waiting, &mut Exact);
    }
    let mut ends = Vec::new();
    while let Some(event) = unit.next_event() {
        let done = unit.advance(event.time(), &mut Exact);
        ends.extend(done.map(|done| done.served.end));
    }
    // 40..48 passes from 5 to 6 ms: read from 15 ms on, written to 26 ms.
    assert_eq!(ends, [at(13_000), at(26_000)]);
}
