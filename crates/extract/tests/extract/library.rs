//! Drives of the library.

use freewheel_extract::{Journal, extract};
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_sim::black_box::Behaviour;
use freewheel_sim::library;
use freewheel_units::SimDuration;

use crate::checks::{check_measured_seeks, layouts};
use crate::hidden::{emulated, options};

/// Skews that are all alike leave only times to tell the heads, and one drive is full of defects.
#[test]
fn library_tracks_and_heads_are_found() {
    for name in ["exos-x24-24tb", "cheetah9lp"] {
        let truth = library::spec(name).unwrap();
        let mut drive = emulated(&truth, &Behaviour::default(), 1);
        let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
        assert_eq!(found.spec.surfaces, truth.surfaces);
        let tracks = |spec: &DriveSpec| -> Vec<u32> {
            spec.zones.iter().map(|zone| zone.blocks_per_track).collect()
        };
        assert_eq!(tracks(&found.spec), tracks(&truth));
        check_measured_seeks(&truth, &found);
    }
}

#[test]
fn cheetah_4lp_with_spares_is_found() {
    let truth = library::spec("cheetah4lp").unwrap();
    let mut drive = emulated(&truth, &Behaviour::default(), 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
    assert_eq!(found.spec.sparing, truth.sparing);
    let slips = |spec: &DriveSpec| -> Vec<Vec<u64>> {
        spec.zones.iter().map(|zone| zone.slips.clone()).collect()
    };
    assert_eq!(slips(&found.spec), slips(&truth));
    let (same, worst) = layouts(&truth, &found.spec);
    assert!(same[0] == 2000 && same[2] == 2000 && worst < 1_000.0, "{same:?} {worst}");
    check_measured_seeks(&truth, &found);
}

/// As made in the 1990s, with slow buses, buffers and reading ahead, and without any of these: what the
/// file is worth for requests of all kinds.
#[test]
fn old_electronics_predict_all_request_kinds() {
    for name in ["atlas10k", "cheetah4lp", "cheetah9lp", "cheetah18lp", "ultrastar9es"] {
        let mut truth = library::spec(name).unwrap();
        for electronics in [truth.electronics.clone(), ElectronicsSpec::default()] {
            truth.electronics = electronics;
            let mut drive = emulated(&truth, &Behaviour::default(), 1);
            let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
            for row in &found.held_out {
                assert!(row.demerit < SimDuration::from_us(100), "{name}: {row:?}");
            }
            assert!(found.misplaced.is_empty(), "{name}: {:?}", found.misplaced);
            assert_eq!(found.spec.zero_latency.read, truth.zero_latency.read, "{name}");
            let block_time = |spec: &DriveSpec| spec.electronics.bus.unwrap_or_default().block_time;
            let [bus, hidden] = [&found.spec, &truth].map(block_time);
            assert!(bus.ns().abs_diff(hidden.ns()) < 200, "{name}: {bus} for {hidden}");
        }
    }
}

/// The Ultrastar 9ES has many of the same length, which look like runs that come again.
#[test]
fn equal_consecutive_zones_stay_separate() {
    let truth = library::spec("ultrastar9es").unwrap();
    let mut drive = emulated(&truth, &Behaviour::default(), 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
    let (same, worst) = layouts(&truth, &found.spec);
    assert!(same[0] == 2000 && same[2] == 2000 && worst < 1_000.0, "{same:?} {worst}");
    assert_eq!(found.spec.zones.len(), truth.zones.len());
}
