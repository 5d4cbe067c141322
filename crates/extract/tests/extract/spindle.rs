//! Spindles whose speed wanders.

use freewheel_extract::{Journal, extract};
use freewheel_sim::black_box::{Behaviour, SpindleDrift};
use freewheel_sim::library;

use crate::checks::{check_held_out, check_layout, check_mapping, check_seeks, layouts};
use crate::hidden::{emulated, extracted, hidden, options};

/// Over the time it takes the speed changes by several parts of a million, and turns back, which is more
/// than the angle of a block in a few minutes.
fn check_followed(base: &str, seed: u64, drift: &str) {
    let mut hidden = hidden(base, seed);
    let drift: SpindleDrift = drift.parse().unwrap();
    hidden.behaviour.spindle_drift = Some(drift);
    let found = extracted(&hidden, false);
    let mut truth = hidden.spec.clone();
    // The mean of the time it took is within the extremes.
    let ppm = found.spec.rotation_period.ns() as f64 / truth.rotation_period.ns() as f64 - 1.0;
    let most = f64::from(drift.parts_per_billion) / 1e3;
    assert!((ppm * 1e6).abs() < most, "{ppm}");
    // The drift meanwhile is within its stated range.
    let source = &found.values.iter().find(|value| value.key == "rotation_period").unwrap().source;
    let (_, off) = source.split_once("+- ").unwrap();
    let off: f64 = off.split_once(" ppm").unwrap().0.parse().unwrap();
    assert!(off > most / 20.0 && off < 2.0 * most, "{source}");
    truth.rotation_period = found.spec.rotation_period;
    check_layout(&truth, &found);
    check_mapping(&truth, &found);
    check_seeks(&truth, &found);
    check_held_out(&found);
    assert!(found.misplaced.is_empty(), "{base} {seed}: {:?}", found.misplaced);
}

#[test]
fn wandering_spindle_is_followed() {
    (1..=12).for_each(|seed| check_followed("exos-7e8-8tb", seed, "2ppm/7min"));
}

#[test]
fn changing_spindle_is_followed() {
    // The fifth is smaller than its buffer.
    let seeds = (1..=12).filter(|seed| *seed != 5);
    seeds.for_each(|seed| check_followed("atlas10k", seed, "4ppm/20min"));
}

/// A spindle that wanders moves on in some minutes by more than the ranges of the Cheetah differ.
#[test]
fn cheetah_4lp_is_found_despite_wander() {
    let drift = Some("2ppm/30min".parse().unwrap());
    let truth = library::spec("cheetah4lp").unwrap();
    let mut drive =
        emulated(&truth, &Behaviour { spindle_drift: drift, ..Behaviour::default() }, 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
    let (same, _) = layouts(&truth, &found.spec);
    assert!(same[0] == 2000 && same[2] == 2000, "{same:?}");
    assert_eq!(found.spec.zones.len(), truth.zones.len());
}

#[test]
fn spindle_change_is_reported_per_hour() {
    // Over ten hours by 10 ppm.
    let drift = Some("5ppm/10h".parse().unwrap());
    let truth = library::spec("cheetah9lp").unwrap();
    let mut drive =
        emulated(&truth, &Behaviour { spindle_drift: drift, ..Behaviour::default() }, 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
    let period = found.values.iter().find(|value| value.key == "rotation_period").unwrap();
    let (before, _) = period.source.split_once(" ppm an hour").unwrap();
    let (_, an_hour) = before.rsplit_once(' ').unwrap();
    let an_hour: f64 = an_hour.parse().unwrap();
    assert!((an_hour.abs() - 1.0).abs() < 0.05, "{}", period.source);
}
