//! Spindles whose speed wanders.

use freewheel_sim::black_box::Habits;
use freewheel_sim::library;
use freewheel_study::{Journal, extract};

use crate::checks::{check_held_out, check_layout, check_seeks, layouts};
use crate::hidden::{emulated, extracted, hidden, options};

/// Over the time it takes the speed changes by several parts of a million, which is more than the angle
/// of a block in a few minutes.
#[test]
fn a_spindle_that_wanders_is_followed_and_its_drift_is_told() {
    for (base, seed, drift) in [("exos-7e8-8tb", 4, "4ppm/20min"), ("atlas10k", 10, "2ppm/7min")] {
        let mut hidden = hidden(base, seed);
        hidden.habits.spindle_drift = Some(drift.parse().unwrap());
        let found = extracted(&hidden, false);
        let mut truth = hidden.spec.clone();
        // The mean of the time it took is within the extremes.
        let ppm = found.spec.rotation_period.ns() as f64 / truth.rotation_period.ns() as f64 - 1.0;
        assert!((ppm * 1e6).abs() < 4.0, "{ppm}");
        truth.rotation_period = found.spec.rotation_period;
        check_layout(&truth, &found);
        check_seeks(&truth, &found);
        check_held_out(&found);
    }
}

/// Its ranges are told apart by less than the angle by which such a spindle has moved on in some minutes.
#[test]
fn the_cheetah_4lp_is_found_as_it_is_though_its_spindle_wanders() {
    let drift = Some("2ppm/30min".parse().unwrap());
    let truth = library::spec("cheetah4lp").unwrap();
    let mut drive = emulated(&truth, &Habits { spindle_drift: drift, ..Habits::default() }, 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
    let (same, _) = layouts(&truth, &found.spec);
    assert!(same[0] == 2000 && same[2] == 2000, "{same:?}");
    assert_eq!(found.spec.zones.len(), truth.zones.len());
}

#[test]
fn how_fast_a_spindle_changes_is_told_where_it_takes_an_hour() {
    // Over ten hours by 10 ppm.
    let drift = Some("5ppm/10h".parse().unwrap());
    let truth = library::spec("cheetah9lp").unwrap();
    let mut drive = emulated(&truth, &Habits { spindle_drift: drift, ..Habits::default() }, 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
    let period = found.values.iter().find(|value| value.key == "rotation_period").unwrap();
    let (before, _) = period.source.split_once(" ppm an hour").unwrap();
    let (_, an_hour) = before.rsplit_once(' ').unwrap();
    let an_hour: f64 = an_hour.parse().unwrap();
    assert!((an_hour.abs() - 1.0).abs() < 0.05, "{}", period.source);
}
