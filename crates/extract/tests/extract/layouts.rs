//! Blocks that are laid out in other ways than cylinder by cylinder.

use std::ops::RangeInclusive;

use freewheel_extract::{Confidence, Extraction, Journal, extract};
use freewheel_model::drive::spec::{CurveSpec, Direction, DriveSpec, Mapping, SpareUnit};
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_units::{Prng, SimDuration};

use crate::checks::{check_held_out, check_measured_seeks, confidence, layouts};
use crate::hidden::{Hidden, emulated, extracted, hidden, options};

/// A hidden drive in small, without electronics, laid out in another way.
fn laid_out(seed: u64, change: impl Fn(&mut DriveSpec, &mut dyn FnMut(u64, u64) -> u64)) -> Hidden {
    let mut hidden = hidden("atlas10k", seed);
    let mut prng = Prng::new(seed, "layout");
    let spec = &mut hidden.spec;
    spec.electronics = ElectronicsSpec::default();
    (spec.mapping, spec.surfaces) = (Mapping::Cylinder, 2 + prng.below(7) as u32);
    spec.zones.iter_mut().for_each(|zone| zone.slips.clear());
    change(spec, &mut |from, to| from + prng.below(to - from));
    hidden
}

/// All blocks on their tracks, in their cylinders, at their angles to within two sectors.
fn check_blocks(hidden: &Hidden) -> Extraction {
    let found = extracted(hidden, false);
    let (same, worst) = layouts(&hidden.spec, &found.spec);
    assert_eq!(same[..2], [2000; 2], "{:?} for {:?}", found.spec.zones, hidden.spec.zones);
    assert!(worst < 25_000.0, "{worst} ns");
    check_measured_seeks(&hidden.spec, &found);
    check_held_out(&found);
    found
}

fn spares_of(
    unit: SpareUnit,
    spares: u64,
) -> impl Fn(&mut DriveSpec, &mut dyn FnMut(u64, u64) -> u64) {
    move |spec, _| {
        spec.sparing.unit = unit;
        spec.zones.iter_mut().for_each(|zone| zone.spares = spares);
    }
}

/// True if all blocks lie where the file says. If not, there is none, or the report says so.
fn check_or_said(hidden: &Hidden) -> bool {
    let mut drive = emulated(&hidden.spec, &hidden.behaviour, hidden.seed);
    let Ok(found) = extract(&mut drive, &options(), Journal::default(), &|_| {}) else {
        return false;
    };
    let (same, worst) = layouts(&hidden.spec, &found.spec);
    let is_right = worst < 25_000.0 && same[..2] == [2000; 2];
    assert_eq!(is_right, found.misplaced.is_empty(), "{}: {same:?}, {worst} ns", hidden.seed);
    let zones = confidence(&found, "zones");
    assert_eq!(zones == Confidence::Assumed, !is_right, "{}", hidden.seed);
    is_right
}

/// With how many of these seeds all blocks lie where the file says, and what has spares is found.
fn right_of(seeds: RangeInclusive<u64>, hidden: impl Fn(u64) -> Hidden) -> usize {
    seeds.filter(|&seed| check_or_said(&hidden(seed))).count()
}

/// With any seed; and a drive that were refused would have no file, and of one that were wrong this
/// would be said.
#[test]
fn spares_of_each_track_are_found() {
    let spares = |seed: u64| [1, 2, 5][seed as usize % 3];
    let hidden = |seed| laid_out(seed, spares_of(SpareUnit::Track, spares(seed)));
    assert_eq!(right_of(1..=24, hidden), 24);
    for seed in [1, 2, 3] {
        let hidden = hidden(seed);
        assert_eq!(check_blocks(&hidden).spec.sparing, hidden.spec.sparing);
    }
}

#[test]
fn spares_of_each_cylinder_are_found() {
    let spares = |seed: u64| [40, 90][seed as usize % 2];
    let hidden = |seed| laid_out(seed, spares_of(SpareUnit::Cylinder, spares(seed)));
    assert_eq!(right_of(1..=24, hidden), 24);
}

/// Drive with spares of several cylinders each, with a defect that stays in its range.
fn with_spares_of_ranges(seed: u64) -> Hidden {
    let (range, spares) = [(7, 60), (12, 100), (5, 31)][seed as usize % 3];
    laid_out(seed, |spec, between| {
        spares_of(SpareUnit::CylinderRange(range), spares)(spec, between);
        let surfaces = u64::from(spec.surfaces);
        for zone in &mut spec.zones {
            // In the sixth range, far from its ends.
            let sectors = u64::from(range) * surfaces * u64::from(zone.blocks_per_track);
            zone.slips = vec![5 * sectors + between(sectors / 4, sectors / 2)];
        }
    })
}

#[test]
fn range_spares_are_found_with_defects() {
    assert_eq!(right_of(1..=24, with_spares_of_ranges), 24);
    for seed in [1, 2, 3] {
        check_blocks(&with_spares_of_ranges(seed));
    }
}

/// In the first and in the last sector of a track, two and four of one track, and two in a row.
#[test]
fn defects_of_track_are_found_exactly() {
    let hidden = laid_out(4, |spec, _| {
        for zone in &mut spec.zones {
            let track = u64::from(zone.blocks_per_track);
            let of = |at: u64, sectors: &[u64]| -> Vec<u64> {
                sectors.iter().map(|sector| at * track + sector).collect()
            };
            let last = track - 1;
            zone.slips = [
                of(20, &[0]),
                of(35, &[last]),
                of(50, &[0, last]),
                of(70, &[17, 18]),
                of(90, &[11, track / 2]),
                of(110, &[40, 41, 42, track / 2]),
            ]
            .concat();
            zone.spares += zone.slips.len() as u64;
        }
    });
    let found = check_blocks(&hidden);
    for (zone, hidden) in found.spec.zones.iter().zip(&hidden.spec.zones) {
        assert_eq!(zone.slips, hidden.slips);
    }
    assert!(found.verified > 1000 && found.misplaced.is_empty(), "{:?}", found.misplaced);
}

/// In bands of this many cylinders.
fn banded(seed: u64, width: u64, orders: [Direction; 2]) -> Hidden {
    banded_and(seed, (width, 0), orders)
}

/// And this many cylinders in a narrower one at each zone's end.
fn banded_and(seed: u64, (width, rest): (u64, u64), orders: [Direction; 2]) -> Hidden {
    laid_out(seed, |spec, between| {
        let [cylinder_order, surface_order] = orders;
        let cylinders = width as u32;
        spec.mapping = Mapping::Band { cylinders, cylinder_order, surface_order };
        // Far shorter than a seek over a band.
        spec.head_switch = SimDuration::from_us(150);
        let mut first = 0;
        for zone in &mut spec.zones {
            let count = (width * between(3, 6) + rest) as u32;
            (zone.first_cylinder, zone.last_cylinder) = (first, first + count - 1);
            (zone.spares, first) = (zone.spares.min(17), first + count);
        }
        spec.cylinders = first;
    })
}

#[test]
fn cylinder_bands_are_found_with_orders() {
    let (on, back) = (Direction::Forward, Direction::Serpentine);
    for (seed, width, orders) in
        [(1, 24, [back, back]), (2, 100, [on, on]), (3, 57, [back, on]), (5, 12, [on, back])]
    {
        let hidden = banded(seed, width, orders);
        let found = check_blocks(&hidden);
        let Mapping::Band { cylinders, cylinder_order, .. } = found.spec.mapping else {
            panic!("{:?}", found.spec.mapping);
        };
        assert_eq!((u64::from(cylinders), cylinder_order), (width, orders[0]));
        assert_eq!(found.spec.surfaces, hidden.spec.surfaces);
        // Heads are changed while the arm moves.
        assert_eq!(confidence(&found, "mapping.surface_order"), Confidence::Unobservable);
    }
}

#[test]
fn surface_order_is_found_despite_slow_switch() {
    let (on, back) = (Direction::Forward, Direction::Serpentine);
    for (seed, width, orders) in
        [(1, 80, [back, back]), (2, 100, [on, on]), (3, 57, [back, on]), (5, 70, [on, back])]
    {
        let mut hidden = banded(seed, width, orders);
        let spec = &mut hidden.spec;
        spec.head_switch = SimDuration::from_us(450);
        let break_cylinders = spec.cylinders / 3;
        spec.seek.read =
            CurveSpec::PowerLinear { single_ms: 0.3, break_cylinders, break_ms: 2.0, full_ms: 4.0 };
        let found = extracted(&hidden, false);
        assert_eq!(found.spec.mapping, hidden.spec.mapping);
        assert_eq!(confidence(&found, "mapping.surface_order"), Confidence::Measured);
        let (same, worst) = layouts(&hidden.spec, &found.spec);
        assert!(same == [2000; 3] && worst < 25_000.0, "{seed}: {same:?}, {worst} ns");
    }
}

/// Narrower bands are not understood, but no wrong file passes without a message.
#[test]
fn narrow_end_bands_are_found_or_reported() {
    let (on, back) = (Direction::Forward, Direction::Serpentine);
    for (seed, width, rest, orders) in [
        (1, 24, 7, [back, back]),
        (2, 100, 31, [on, on]),
        (3, 57, 20, [back, on]),
        (4, 40, 39, [on, on]),
        (5, 12, 1, [on, back]),
        (6, 30, 15, [back, back]),
        // All angles are right if these are taken for beginnings of whole bands.
        (35, 86, 16, [on, back]),
        (36, 84, 38, [back, on]),
        (78, 87, 23, [back, back]),
    ] {
        check_or_said(&banded_and(seed, (width, rest), orders));
    }
}
