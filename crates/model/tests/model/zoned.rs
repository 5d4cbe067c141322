//! Zones of shingled recording: the rules one by one, and random commands against a slow oracle.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::zoned::spec::{ZonedKind, ZonedSpec};
use freewheel_model::zoned::{ZoneCondition, ZoneError, ZoneType, Zones};
use freewheel_units::{Blocks, Lbn, Prng};
use proptest::prelude::*;

/// Five zones of 10 blocks and one of 5; the first two conventional; two may be open.
fn zones(kind: ZonedKind) -> Zones {
    let spec =
        ZonedSpec { kind, zone_blocks: Blocks::new(10), conventional_zones: 2, max_open_zones: 2 };
    Zones::new(&spec, Blocks::new(55))
}

fn managed() -> Zones {
    zones(ZonedKind::HostManaged)
}

fn write(zones: &mut Zones, start: u64, blocks: u64) -> Result<(), ZoneError> {
    zones.write(Lbn::new(start), Blocks::new(blocks))
}

fn condition(zones: &Zones, zone: u32) -> ZoneCondition {
    zones.zone(zone).condition
}

#[test]
fn sequential_zone_written_only_at_pointer() {
    let mut zones = managed();
    write(&mut zones, 20, 4).unwrap();
    assert_eq!(zones.zone(2).write_pointer, Some(Lbn::new(24)));
    for start in [20, 23, 25] {
        let (zone, start, write_pointer) = (2, Lbn::new(start), Lbn::new(24));
        let refused = Err(ZoneError::UnalignedWrite { zone, start, write_pointer });
        assert_eq!(zones.check(start, Blocks::new(1)), refused);
    }
    write(&mut zones, 24, 6).unwrap();
    assert_eq!(condition(&zones, 2), ZoneCondition::Full);
    assert_eq!(write(&mut zones, 20, 1), Err(ZoneError::Full { zone: 2 }));
}

#[test]
fn conventional_zone_written_anywhere() {
    let mut zones = managed();
    for (start, blocks) in [(7, 2), (3, 1), (7, 2), (5, 15)] {
        write(&mut zones, start, blocks).unwrap();
    }
    assert_eq!(condition(&zones, 0), ZoneCondition::NotWritePointer);
    assert_eq!(zones.zone(0).write_pointer, None);
    assert_eq!(zones.reset(0), Err(ZoneError::NoWritePointer { zone: 0 }));
}

#[test]
fn write_stays_within_zone() {
    let mut zones = managed();
    let violation = |zone, end, boundary| {
        let (end, boundary) = (Lbn::new(end), Lbn::new(boundary));
        Err(ZoneError::WriteBoundaryViolation { zone, end, boundary })
    };
    assert_eq!(write(&mut zones, 20, 11), violation(2, 31, 30));
    assert_eq!(write(&mut zones, 15, 6), violation(1, 21, 20));
    assert!(matches!(write(&mut zones, 50, 6), Err(ZoneError::OutOfRange { capacity: 55, .. })));
    assert!(matches!(write(&mut zones, u64::MAX, 6), Err(ZoneError::OutOfRange { .. })));
    write(&mut zones, 50, 5).unwrap();
    assert_eq!(condition(&zones, 5), ZoneCondition::Full);
}

#[test]
fn open_zone_longest_unwritten_closed_first() {
    let mut zones = managed();
    for start in [20, 30, 21, 40] {
        write(&mut zones, start, 1).unwrap();
    }
    assert_eq!(condition(&zones, 2), ZoneCondition::ImplicitlyOpen);
    assert_eq!(condition(&zones, 3), ZoneCondition::Closed);
    assert_eq!(zones.open_count(), 2);
    write(&mut zones, 31, 1).unwrap();
    assert_eq!(condition(&zones, 2), ZoneCondition::Closed);
}

#[test]
fn open_zones_by_command_stay_open() {
    let mut zones = managed();
    zones.open(2).unwrap();
    zones.open(3).unwrap();
    let refused = Err(ZoneError::InsufficientZoneResources { open: 2 });
    assert_eq!(write(&mut zones, 40, 1), refused);
    assert_eq!(zones.open(4), refused);
    zones.close(2).unwrap();
    assert_eq!(condition(&zones, 2), ZoneCondition::Empty);
    write(&mut zones, 40, 1).unwrap();
}

#[test]
fn zone_finish_fills_and_reset_empties() {
    let mut zones = managed();
    write(&mut zones, 20, 3).unwrap();
    zones.finish(2).unwrap();
    assert_eq!((zones.zone(2).write_pointer, zones.open_count()), (None, 0));
    assert_eq!(write(&mut zones, 23, 1), Err(ZoneError::Full { zone: 2 }));
    zones.reset(2).unwrap();
    assert_eq!(condition(&zones, 2), ZoneCondition::Empty);
    write(&mut zones, 20, 3).unwrap();
}

#[test]
fn zone_reset_range_empties_whole_zones() {
    let mut zones = managed();
    let fill = |zones: &mut Zones| {
        (2..6).for_each(|zone| zones.reset(zone).unwrap());
        [20, 30, 40].iter().for_each(|&start| write(zones, start, 10).unwrap());
        write(zones, 50, 5).unwrap();
    };
    let emptied = |zones: &Zones| -> Vec<u32> {
        (2..6).filter(|&zone| condition(zones, zone) == ZoneCondition::Empty).collect()
    };
    let ranges: [(u64, u64, &[u32]); 6] = [
        (0, 55, &[2, 3, 4, 5]),
        (21, 33, &[3, 4]),
        (30, 10, &[3]),
        (30, 9, &[]),
        (45, 10, &[5]),
        (0, 20, &[]),
    ];
    for (start, blocks, expected) in ranges {
        fill(&mut zones);
        zones.reset_within(Lbn::new(start), Blocks::new(blocks));
        assert_eq!(emptied(&zones), expected, "{blocks} blocks from {start}");
    }
}

#[test]
fn host_aware_drive_takes_any_write() {
    let mut zones = zones(ZonedKind::HostAware);
    assert_eq!(zones.zone(2).zone_type, ZoneType::SequentialWritePreferred);
    write(&mut zones, 15, 18).unwrap();
    write(&mut zones, 31, 1).unwrap();
    assert_eq!(condition(&zones, 2), ZoneCondition::Full);
    assert_eq!(zones.zone(3).write_pointer, Some(Lbn::new(33)));
    write(&mut zones, 20, 1).unwrap();
    assert_eq!(condition(&zones, 2), ZoneCondition::Full);
}

#[test]
fn drive_managed_shows_only_conventional_zones() {
    let mut zones = zones(ZonedKind::DriveManaged);
    write(&mut zones, 48, 5).unwrap();
    assert!((0..6).all(|zone| zones.zone(zone).zone_type == ZoneType::Conventional));
}

fn buildable() -> DriveSpec {
    (0..)
        .map(freewheel_testkit::drives::random_spec)
        .find(|spec| Drive::build(spec).is_ok())
        .unwrap()
}

#[test]
fn zoned_two_actuators_hold_twice_one() {
    let one = Drive::build(&buildable()).unwrap();
    let two = Drive::build(&DriveSpec { actuators: 2, ..buildable() }).unwrap();
    assert_eq!(two.blocks(), one.blocks());
    assert_eq!(two.total_blocks().get(), 2 * one.total_blocks().get());
}

#[test]
fn zones_not_fitting_drive_refused() {
    let spec = buildable();
    let blocks = Drive::build(&spec).unwrap().blocks().get();
    let refused = |zone_blocks, conventional_zones, max_open_zones| {
        let kind = ZonedKind::HostManaged;
        let zone_blocks = Blocks::new(zone_blocks);
        let zoned = ZonedSpec { kind, zone_blocks, conventional_zones, max_open_zones };
        Drive::build(&DriveSpec { zoned: Some(zoned), ..spec.clone() }).map_err(|error| error.key)
    };
    assert!(refused(1, blocks as u32, 1).is_ok());
    for zone_blocks in [0, blocks + 1] {
        assert_eq!(refused(zone_blocks, 0, 1).unwrap_err(), "zoned.zone_blocks");
    }
    assert_eq!(refused(blocks, 2, 1).unwrap_err(), "zoned.conventional_zones");
    assert_eq!(refused(blocks, 1, 0).unwrap_err(), "zoned.max_open_zones");
    let none = DriveSpec { actuators: 0, ..spec.clone() };
    assert_eq!(Drive::build(&none).unwrap_err().key, "actuators");
}

/// A host-managed drive block by block: which are written, which zones were finished, and the open
/// ones in the order of their last write.
struct Oracle {
    written: Vec<bool>,
    finished: Vec<bool>,
    implicitly_open: Vec<u32>,
    explicitly_open: Vec<u32>,
    zone_blocks: usize,
    conventional: u32,
    max_open: usize,
}

impl Oracle {
    fn blocks_of(&self, zone: u32) -> std::ops::Range<usize> {
        let start = zone as usize * self.zone_blocks;
        start..(start + self.zone_blocks).min(self.written.len())
    }

    fn condition(&self, zone: u32) -> ZoneCondition {
        let mut blocks = self.written[self.blocks_of(zone)].iter();
        if zone < self.conventional {
            ZoneCondition::NotWritePointer
        } else if self.finished[zone as usize] || blocks.clone().all(|&written| written) {
            ZoneCondition::Full
        } else if self.implicitly_open.contains(&zone) {
            ZoneCondition::ImplicitlyOpen
        } else if self.explicitly_open.contains(&zone) {
            ZoneCondition::ExplicitlyOpen
        } else if blocks.any(|&written| written) {
            ZoneCondition::Closed
        } else {
            ZoneCondition::Empty
        }
    }

    fn is_open(&self, zone: u32) -> bool {
        self.implicitly_open.contains(&zone) || self.explicitly_open.contains(&zone)
    }

    fn forget_open(&mut self, zone: u32) {
        self.implicitly_open.retain(|&other| other != zone);
        self.explicitly_open.retain(|&other| other != zone);
    }

    /// Makes room for one more open zone, if that can be done.
    fn make_room(&mut self) -> bool {
        if self.explicitly_open.len() >= self.max_open {
            return false;
        }
        if self.implicitly_open.len() + self.explicitly_open.len() >= self.max_open {
            self.implicitly_open.remove(0);
        }
        true
    }

    fn write(&mut self, start: usize, blocks: usize) -> bool {
        let touched = start..start + blocks;
        if touched.end > self.written.len() {
            return false;
        }
        let zone = (start / self.zone_blocks) as u32;
        let of_sequential = |b: usize| (b / self.zone_blocks) as u32 >= self.conventional;
        if zone < self.conventional {
            return !touched.clone().any(of_sequential);
        }
        let own = self.blocks_of(zone);
        let in_order = touched.end <= own.end
            && self.written[own.start..start].iter().all(|&written| written)
            && self.written[start..own.end].iter().all(|&written| !written);
        if !in_order || self.condition(zone) == ZoneCondition::Full {
            return false;
        }
        if !self.is_open(zone) && !self.make_room() {
            return false;
        }
        self.written[touched].fill(true);
        if !self.explicitly_open.contains(&zone) {
            self.implicitly_open.retain(|&other| other != zone);
            self.implicitly_open.push(zone);
        }
        if self.condition(zone) == ZoneCondition::Full {
            self.forget_open(zone);
        }
        true
    }

    fn manage(&mut self, command: u64, zone: u32) -> bool {
        if zone < self.conventional {
            return false;
        }
        match command {
            0 => return self.open(zone),
            1 => self.forget_open(zone),
            2 => {
                self.forget_open(zone);
                self.finished[zone as usize] = true;
            }
            _ => {
                self.forget_open(zone);
                self.finished[zone as usize] = false;
                let own = self.blocks_of(zone);
                self.written[own].fill(false);
            }
        }
        true
    }

    fn open(&mut self, zone: u32) -> bool {
        if self.condition(zone) == ZoneCondition::Full || self.explicitly_open.contains(&zone) {
            return true;
        }
        if !self.is_open(zone) && !self.make_room() {
            return false;
        }
        self.implicitly_open.retain(|&other| other != zone);
        self.explicitly_open.push(zone);
        true
    }
}

fn random_drive(prng: &mut Prng) -> (Zones, Oracle) {
    let zone_blocks = 1 + prng.below(12);
    let count = 1 + prng.below(9);
    let blocks = zone_blocks * count - prng.below(zone_blocks);
    let spec = ZonedSpec {
        kind: ZonedKind::HostManaged,
        zone_blocks: Blocks::new(zone_blocks),
        conventional_zones: prng.below(count.min(3)) as u32,
        max_open_zones: 1 + prng.below(4) as u32,
    };
    let oracle = Oracle {
        written: vec![false; blocks as usize],
        finished: vec![false; count as usize],
        implicitly_open: Vec::new(),
        explicitly_open: Vec::new(),
        zone_blocks: zone_blocks as usize,
        conventional: spec.conventional_zones,
        max_open: spec.max_open_zones as usize,
    };
    (Zones::new(&spec, Blocks::new(blocks)), oracle)
}

/// First block of a write: often at a write pointer, else there would be hardly any.
fn random_start(prng: &mut Prng, zones: &Zones, oracle: &Oracle) -> u64 {
    let zone = zones.zone(prng.below(u64::from(zones.count())) as u32);
    match zone.write_pointer {
        Some(pointer) if prng.chance(0.8) => pointer.get(),
        _ => prng.below(oracle.written.len() as u64),
    }
}

proptest! {
    #[test]
    fn zoned_random_commands_match_block_model(seed in any::<u64>()) {
        let prng = &mut Prng::new(seed, "zones");
        let (mut zones, mut oracle) = random_drive(prng);
        for _ in 0..200 {
            if prng.chance(0.75) {
                let start = random_start(prng, &zones, &oracle);
                let blocks = 1 + prng.below(6);
                let checked = zones.check(Lbn::new(start), Blocks::new(blocks));
                let written = write(&mut zones, start, blocks);
                prop_assert_eq!(checked, written);
                prop_assert_eq!(written.is_ok(), oracle.write(start as usize, blocks as usize));
            } else {
                let (command, zone) = (prng.below(4), prng.below(u64::from(zones.count())) as u32);
                let done = match command {
                    0 => zones.open(zone),
                    1 => zones.close(zone),
                    2 => zones.finish(zone),
                    _ => zones.reset(zone),
                };
                prop_assert_eq!(done.is_ok(), oracle.manage(command, zone));
            }
            for zone in 0..zones.count() {
                prop_assert_eq!(zones.zone(zone).condition, oracle.condition(zone), "zone {}", zone);
            }
            let open = oracle.implicitly_open.len() + oracle.explicitly_open.len();
            prop_assert_eq!(zones.open_count() as usize, open);
        }
    }
}
