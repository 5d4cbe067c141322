//! The layout against a slow, obvious one: a list of every sector of the drive.
#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;

use common::{any_drive, place_of};
use freewheel_model::drive::spec::{DriveSpec, SpareUnit, ZoneSpec};
use freewheel_model::drive::{Layout, Physical};
use freewheel_units::Lbn;
use proptest::prelude::*;

/// Positions of a zone that carry data, in LBN order, remaps left aside: walk the sparing units,
/// keep what is data, drop what slipped.
fn data_positions(spec: &DriveSpec, zone: &ZoneSpec) -> Vec<u64> {
    let per_track = u64::from(zone.blocks_per_track);
    let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
    let total = per_track * u64::from(spec.surfaces) * cylinders;
    let unit = match spec.sparing.unit {
        SpareUnit::Zone => total,
        SpareUnit::Track => per_track,
        SpareUnit::Cylinder => per_track * u64::from(spec.surfaces),
        SpareUnit::CylinderRange(n) => per_track * u64::from(spec.surfaces * n),
    };
    let mut data = Vec::new();
    let mut start = 0;
    while start < total {
        let end = (start + unit).min(total);
        let whole = end - start == unit;
        let spares = if whole { zone.spares } else { 0 };
        let front = if spec.sparing.at_front { spares } else { 0 };
        let room = end - start - spares;
        let candidates = start + front..end;
        if spec.sparing.slip_to_zone_end {
            data.extend(candidates.take(room as usize).filter(|p| !zone.slips.contains(p)));
        } else {
            data.extend(candidates.filter(|p| !zone.slips.contains(p)).take(room as usize));
        }
        start = end;
    }
    data.drain(..zone.reserved_blocks as usize);
    data
}

/// Every sector of the drive that holds a block, in LBN order.
fn oracle(spec: &DriveSpec) -> Vec<Physical> {
    let mut places = Vec::new();
    for zone in &spec.zones {
        let stand_ins: BTreeMap<u64, u64> = zone.remaps.iter().copied().collect();
        for position in data_positions(spec, zone) {
            let position = stand_ins.get(&position).copied().unwrap_or(position);
            places.push(place_of(&spec.mapping, spec.surfaces, zone, position));
        }
    }
    places
}

fn check_run(spec: &DriveSpec, layout: &Layout, places: &[Physical], start: usize, wanted: u32) {
    let run = layout.run(Lbn::new(start as u64), wanted);
    assert!(run.blocks >= 1 && run.blocks <= wanted);
    for k in 0..run.blocks {
        let expected = Physical { sector: run.at.sector + k, ..run.at };
        assert_eq!(places[start + k as usize], expected, "block {k} of the run at {start}");
    }
    let zone = &layout.zones()[run.zone];
    if is_plain(&spec.zones[run.zone]) {
        let to_track_end = u64::from(zone.blocks_per_track() - run.at.sector);
        let to_zone_end = (zone.first_lbn() + zone.blocks()).get() - start as u64;
        let longest = u64::from(wanted).min(to_track_end).min(to_zone_end);
        assert_eq!(u64::from(run.blocks), longest, "the run at {start} stops short");
    }
}

/// Without spares, slips and remaps nothing but the end of a track ends a run.
fn is_plain(zone: &ZoneSpec) -> bool {
    zone.spares == 0 && zone.slips.is_empty() && zone.remaps.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn lbn_to_place_is_what_the_list_of_all_sectors_says((spec, drive) in any_drive()) {
        let places = oracle(&spec);
        prop_assert_eq!(drive.blocks().get(), places.len() as u64);
        for (lbn, place) in places.iter().enumerate() {
            prop_assert_eq!(drive.layout().locate(Lbn::new(lbn as u64)), *place, "lbn {}", lbn);
        }
    }

    #[test]
    fn lbn_and_place_are_a_bijection((spec, drive) in any_drive()) {
        let layout = drive.layout();
        let mut found = 0;
        for cylinder in 0..spec.cylinders {
            let sectors =
                layout.zone_at(cylinder).map_or(0, |z| layout.zones()[z].blocks_per_track());
            for surface in 0..spec.surfaces {
                for sector in 0..sectors {
                    let place = Physical { cylinder, surface, sector };
                    if let Some(lbn) = layout.lbn_at(place) {
                        prop_assert_eq!(layout.locate(lbn), place);
                        found += 1;
                    }
                }
            }
        }
        prop_assert_eq!(found, drive.blocks().get());
    }

    #[test]
    fn a_run_is_consecutive_on_its_track_and_no_shorter_than_it_must(
        (spec, drive) in any_drive(), wanted in 1u32..60
    ) {
        let places = oracle(&spec);
        for start in 0..places.len() {
            check_run(&spec, drive.layout(), &places, start, wanted);
        }
    }

    #[test]
    fn places_that_hold_no_block_have_none((_, drive) in any_drive()) {
        let layout = drive.layout();
        let beyond = Physical { cylinder: u32::MAX, surface: 0, sector: 0 };
        prop_assert_eq!(layout.lbn_at(beyond), None);
        let beside = Physical { cylinder: 0, surface: layout.surfaces(), sector: 0 };
        prop_assert_eq!(layout.lbn_at(beside), None);
    }
}
