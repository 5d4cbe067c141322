//! Scaled drives: every factor changes its own values only, and no revolution is lost.

use freewheel_model::drive::scale::{ScaleError, Scaling, YearlyRates};
use freewheel_model::drive::spec::{
    ByOp, CurveSpec, Direction, DriveSpec, Mapping, MeasuringHost, SpareUnit, Sparing, Turn,
    ZoneSpec,
};
use freewheel_model::drive::{Drive, Position};
use freewheel_testkit::drives::{
    SkewKind, Track, any_drive, random_spec, sectors_turned, tracks_of,
};
use freewheel_units::{Angle, Blocks, Bytes, Op, SimDuration, SimTime};
use proptest::prelude::*;

const NONE: Scaling =
    Scaling { seek: 1.0, rpm: 1.0, linear_density: 1.0, track_density: 1.0, surfaces: 1.0 };

fn any_scaling() -> impl Strategy<Value = Scaling> {
    let factor = || prop_oneof![Just(1.0), 0.3..3.0];
    let factors = (factor(), factor(), factor(), factor(), factor());
    factors.prop_map(|(seek, rpm, linear_density, track_density, surfaces)| Scaling {
        seek,
        rpm,
        linear_density,
        track_density,
        surfaces,
    })
}

/// A drive of some size with curves of every form, so that rounding weighs little.
fn large_spec(seed: u64) -> DriveSpec {
    let mut spec = random_spec(seed);
    for zone in &mut spec.zones {
        zone.first_cylinder *= 300;
        zone.last_cylinder = zone.last_cylinder * 300 + 299;
        zone.blocks_per_track *= 50;
        zone.spares *= 50;
        zone.slips.clear();
    }
    spec.cylinders *= 300;
    spec.seek.read = match seed % 4 {
        0 => CurveSpec::Table { cylinders_ms: vec![(1, 0.8), (2, 0.9), (40, 1.5), (200, 3.0)] },
        1 => CurveSpec::ThreePoint { single_ms: 0.8, average_ms: 5.0, full_ms: 10.0 },
        2 => CurveSpec::Hp {
            first_ms: vec![0.8, 0.9],
            break_cylinders: 150,
            short_ms: 0.8,
            short_sqrt_ms: 0.1,
            long_ms: 1.9,
            long_slope_ms: 0.001,
        },
        _ => CurveSpec::PowerLinear {
            single_ms: 0.6,
            break_cylinders: 150,
            break_ms: 3.0,
            full_ms: 10.0,
        },
    };
    spec.seek.write = None;
    spec
}

/// Seeds of large specs that build; a failing test would print a whole drive otherwise.
fn any_large() -> impl Strategy<Value = u64> {
    let builds = |seed: &u64| Drive::build(&large_spec(*seed)).is_ok();
    any::<u64>().prop_filter("spec does not build", builds)
}

fn large_drive(seed: u64) -> (DriveSpec, Drive) {
    let spec = large_spec(seed);
    let drive = build(&spec);
    (spec, drive)
}

/// The spec without what names it.
fn anonymous(spec: &DriveSpec) -> DriveSpec {
    let mut spec = spec.clone();
    (spec.name, spec.model) = Default::default();
    spec.sources.clear();
    spec
}

fn build(spec: &DriveSpec) -> Drive {
    Drive::build(spec).unwrap_or_else(|error| panic!("{}: {error}", spec.name))
}

fn close(ours: f64, wanted: f64, tolerance: f64) -> bool {
    (ours / wanted - 1.0).abs() <= tolerance
}

/// The longer of the switches before a read and before a write, in nanoseconds.
fn switch_ns(drive: &Drive, distance: u32, changes_head: bool) -> f64 {
    // A drive of one cylinder never leaves it.
    let distance = distance.min(drive.seek().distance_max());
    let time = |op| drive.seek().time_ns(op, distance, changes_head);
    time(Op::Read).max(time(Op::Write)) as f64
}

/// The first block of a track.
struct Start {
    /// Number of tracks of the zone before it.
    track: usize,
    sector: u32,
    /// Time at which it passes under the head.
    at: SimTime,
}

/// The starts of the tracks of a zone as they are read one after the other.
fn track_starts(spec: &DriveSpec, drive: &Drive, zone: usize) -> Vec<Start> {
    let tracks = tracks_of(&spec.mapping, spec.surfaces, &spec.zones[zone]);
    let zone = &drive.layout().zones()[zone];
    let (mut lbn, end) = (zone.first_lbn(), zone.first_lbn() + zone.blocks());
    let (mut now, mut head) = (SimTime::ZERO, Position::default());
    let mut starts = Vec::new();
    while lbn < end {
        let after = drive.layout().track_bounds(lbn).1.min(end);
        let place = drive.layout().locate(lbn);
        let is_here = |t: &Track| (t.cylinder, t.surface) == (place.cylinder, place.surface);
        // Of the first block alone: slipped sectors further on count as rotation, too.
        let first = drive.target(lbn, Blocks::new(1), Op::Write);
        starts.push(Start {
            track: tracks.iter().position(is_here).unwrap(),
            sector: place.sector,
            at: now + drive.overhead(Op::Write) + drive.positioning(now, head, &first).total(),
        });
        let target = drive.target(lbn, Blocks::new(after.get() - lbn.get()), Op::Write);
        let access = drive.access(now, head, &target);
        (now, head, lbn) = (now + access.total(), access.end, after);
    }
    starts
}

/// The longest switch that skews of this kind have to hide in a zone; None where tracks never
/// follow each other in this way.
fn longest_ns(spec: &DriveSpec, zone: &ZoneSpec, drive: &Drive, kind: SkewKind) -> Option<f64> {
    let tracks = tracks_of(&spec.mapping, spec.surfaces, zone);
    let of_kind = tracks.windows(2).filter(|pair| {
        let [track, next] = pair else { unreachable!() };
        SkewKind::between(&spec.mapping, track, next) == kind
    });
    let switches = of_kind.map(|pair| {
        let distance = pair[0].cylinder.abs_diff(pair[1].cylinder);
        switch_ns(drive, distance, pair[0].surface != pair[1].surface)
    });
    switches.max_by(f64::total_cmp)
}

/// A skew in nanoseconds.
fn skew_ns(skew: Turn, drive: &Drive) -> f64 {
    skew.angle().turns() * drive.rotation().period().ns() as f64
}

/// By how much a skew exceeded the longest switch that it had to hide: what scaling keeps.
fn margin_ns(skew: Turn, switch_ns: f64, drive: &Drive) -> f64 {
    // Of a skew without margin a nanosecond is made, for the edges of sectors are rounded.
    (skew_ns(skew, drive) - switch_ns).max(1.0)
}

/// The most that the step from a track to the next may add to a turn: the switch, the margin that
/// the original had over it, the rest of a sector, and what slips have turned the next track by.
fn step_ns_max(
    (old_spec, old): (&DriveSpec, &Drive),
    (new_spec, new): (&DriveSpec, &Drive),
    zone: usize,
    track: usize,
) -> f64 {
    let (before, after) = (&old_spec.zones[zone], &new_spec.zones[zone]);
    let tracks = tracks_of(&new_spec.mapping, new_spec.surfaces, after);
    let kind = SkewKind::between(&new_spec.mapping, &tracks[track], &tracks[track + 1]);
    let switch = longest_ns(new_spec, after, new, kind).unwrap();
    // A drive of one surface may have had no such step, nor a narrow zone: then the time it would have
    // taken.
    let steps = [(old_spec, before), (new_spec, before), (old_spec, after), (new_spec, after)];
    let mut switches = steps.iter().filter_map(|(spec, zone)| longest_ns(spec, zone, old, kind));
    let old_switch = switches.next().unwrap();
    let margin = margin_ns(kind.of(before, tracks[track].band), old_switch, old);
    let turned = |track: usize| sectors_turned(new_spec, after, track as u64);
    let sectors = (1 + turned(track + 1) - turned(track)) as f64;
    let sector = new.rotation().period().ns() as f64 / f64::from(after.blocks_per_track);
    switch + margin + sectors * sector
}

/// The skews of a zone, those of the track and the cylinder once and those of bands in turn.
fn skews(zone: &ZoneSpec) -> impl Iterator<Item = (SkewKind, usize)> {
    let bands = zone.band_skews.len().max(1);
    SkewKind::ALL.into_iter().flat_map(move |kind| {
        let count = if kind == SkewKind::Band { bands } else { 1 };
        (0..count).map(move |band| (kind, band))
    })
}

/// Distance between two parts of a turn, the shorter way round.
fn turns_apart(a: f64, b: f64) -> f64 {
    let apart = (a - b).rem_euclid(1.0);
    apart.min(1.0 - apart)
}

proptest! {
    #[test]
    fn scaling_by_one_gives_spec_back((spec, _) in any_drive()) {
        prop_assert_eq!(Scaling::default().apply(&spec).unwrap(), spec);
    }

    #[test]
    fn scaled_drive_builds_or_names_key((spec, _) in any_drive(),
        scaling in any_scaling()
    ) {
        match scaling.apply(&spec) {
            Ok(scaled) => { build(&scaled); }
            // Spare units stay whole bands at any density.
            Err(ScaleError::Scaled(error)) => {
                prop_assert!(!error.key.is_empty() && error.key != "sparing.unit", "{error}");
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    /// Section 5.1.1: "simply scale the seek profile vertically by a constant factor".
    #[test]
    fn seek_multiplies_the_time_of_every_movement(seed in any_large(),
        factor in 0.3..3.0f64
    ) {
        let (spec, drive) = large_drive(seed);
        let scaled_spec = Scaling { seek: factor, ..NONE }.apply(&spec).unwrap();
        let scaled = build(&scaled_spec);
        for op in [Op::Read, Op::Write] {
            let mean = |drive: &Drive| drive.mean_seek(op).ns() as f64;
            let (before, after) = (mean(&drive), mean(&scaled));
            // Points of a table are whole nanoseconds; its last line extends fifty times as far.
            prop_assert!((after - before * factor).abs() <= 100.0, "{after} of {before}");
            let switch = |drive: &Drive| drive.seek().time_ns(op, 0, true) as f64;
            prop_assert!((switch(&scaled) - switch(&drive) * factor).abs() <= 2.0);
        }
        let mut expected = anonymous(&scaled_spec);
        (expected.seek, expected.head_switch) = (spec.seek.clone(), spec.head_switch);
        restore_skews(&mut expected, &spec);
        prop_assert_eq!(expected, anonymous(&spec));
    }

    #[test]
    fn rpm_divides_turn_changes_only_skews((spec, drive) in any_drive(),
        factor in 0.3..3.0f64
    ) {
        let scaled_spec = Scaling { rpm: factor, ..NONE }.apply(&spec).unwrap();
        let turn = drive.rotation().period().ns() as f64 / factor;
        prop_assert!((scaled_spec.rotation_period.ns() as f64 - turn).abs() <= 0.5);
        let mut expected = anonymous(&scaled_spec);
        expected.rotation_period = spec.rotation_period;
        restore_skews(&mut expected, &spec);
        prop_assert_eq!(expected, anonymous(&spec));
    }

    #[test]
    fn linear_density_multiplies_blocks_at_same_angles(
        seed in any_large(), factor in 0.3..3.0f64
    ) {
        let (spec, drive) = large_drive(seed);
        let scaled_spec = Scaling { linear_density: factor, ..NONE }.apply(&spec).unwrap();
        let scaled = build(&scaled_spec);
        prop_assert_eq!(scaled.seek(), drive.seek());
        prop_assert_eq!(scaled.rotation(), drive.rotation());
        for (before, after) in spec.zones.iter().zip(&scaled_spec.zones) {
            let wanted = f64::from(before.blocks_per_track) * factor;
            prop_assert!((f64::from(after.blocks_per_track) - wanted).abs() <= 0.5);
            let sector = Angle::from_ratio(1, after.blocks_per_track.into()).turns();
            prop_assert_eq!(before.band_skews.len(), after.band_skews.len());
            for (kind, band) in skews(after) {
                let (before, after) = (kind.of(before, band), kind.of(after, band));
                let wider = (after.angle() - before.angle()).turns();
                prop_assert!(wider < sector || wider > 1.0 - 1e-9, "{before} to {after}");
            }
        }
    }

    /// Section 5.2.2: "the physical dimensions of each zone or band remains constant but the number
    /// of tracks within each zone increases".
    #[test]
    fn track_density_keeps_radii_rates_stroke_time(seed in any_large(),
        factor in 1.0..3.0f64
    ) {
        let (spec, drive) = large_drive(seed);
        let scaled_spec = Scaling { track_density: factor, ..NONE }.apply(&spec).unwrap();
        let scaled = build(&scaled_spec);
        prop_assert_eq!(scaled.rotation(), drive.rotation());
        for (before, after) in spec.zones.iter().zip(&scaled_spec.zones) {
            let radii = |zone: &ZoneSpec, spec: &DriveSpec| {
                let radius = |cylinder: u32| f64::from(cylinder) / f64::from(spec.cylinders);
                [radius(zone.first_cylinder), radius(zone.last_cylinder + 1)]
            };
            let (was, is) = (radii(before, &spec), radii(after, &scaled_spec));
            for (was, is) in was.into_iter().zip(is) {
                prop_assert!((was - is).abs() < 2.0 / f64::from(spec.cylinders));
            }
            prop_assert_eq!(before.blocks_per_track, after.blocks_per_track);
            prop_assert_eq!(before.cylinder_skew, after.cylinder_skew);
            for (kind, band) in skews(after) {
                let was = (kind.of(before, band), longest_ns(&spec, before, &drive, kind));
                let is = (kind.of(after, band), longest_ns(&scaled_spec, after, &scaled, kind));
                if was.1 == is.1 {
                    prop_assert_eq!(was.0, is.0);
                    continue;
                }
                // A band keeps its cylinders and becomes narrower: a seek over it takes less.
                prop_assert!(in_bands(&spec), "another switch of {kind:?}");
                let margin = margin_ns(was.0, was.1.unwrap(), &drive);
                let wider = skew_ns(is.0, &scaled) - is.1.unwrap() - margin;
                let turns = (wider / scaled.rotation().period().ns() as f64).rem_euclid(1.0);
                let sectors = turns * f64::from(after.blocks_per_track);
                prop_assert!(sectors <= 1.001, "{kind:?}: {sectors} sectors more margin");
            }
        }
        let mean = |drive: &Drive| drive.mean_seek(Op::Read).as_ms_f64();
        let (before, after) = (mean(&drive), mean(&scaled));
        prop_assert!(close(after, before, 0.01), "a mean of {after}, not {before}");
        let third = spec.cylinders / 3;
        let time = |drive: &Drive, d: f64| drive.seek().time_ns(Op::Read, d as u32, false) as f64;
        let before = time(&drive, third.into());
        let after = time(&scaled, f64::from(third) * factor);
        prop_assert!(close(after, before, 0.01), "{after}, not {before}");
    }

    #[test]
    fn capacity_is_multiplied_by_both_densities(seed in any_large(),
        linear in 0.5..3.0f64, track in 0.5..3.0f64
    ) {
        let (spec, drive) = large_drive(seed);
        let scaling = Scaling { linear_density: linear, track_density: track, ..NONE };
        let scaled = build(&scaling.apply(&spec).unwrap());
        let ratio = scaled.blocks().get() as f64 / drive.blocks().get() as f64;
        // Tracks of 50 blocks, half of them spares, are rounded by a block of data and a spare.
        prop_assert!(close(ratio, linear * track, 0.05), "{ratio} for {}", linear * track);
    }

    /// Section 3.3: members of a family differ in their surfaces. Seeks, rates and radii stay.
    #[test]
    fn surfaces_multiply_capacity_part_ends_early(seed in any_large(),
        factor in 0.2..6.0f64
    ) {
        let mut spec = large_spec(seed);
        // Zones differ in their spares, so that the share of data depends on the zones left.
        spec.sparing = Sparing::default();
        for zone in &mut spec.zones {
            (zone.spares, zone.reserved_blocks) = (0, 0);
        }
        let drive = build(&spec);
        let scaled_spec = Scaling { surfaces: factor, ..NONE }.apply(&spec).unwrap();
        let scaled = build(&scaled_spec);
        prop_assert_eq!(scaled.seek(), drive.seek());
        prop_assert_eq!(scaled.rotation(), drive.rotation());
        prop_assert_eq!(scaled_spec.cylinders, spec.cylinders);
        let wanted = f64::from(spec.surfaces) * factor;
        prop_assert!((0.0..1.0).contains(&(f64::from(scaled_spec.surfaces) - wanted + 0.01)));
        let whole = (f64::from(scaled_spec.surfaces) - wanted).abs() <= 0.01;
        prop_assert!(!whole || scaled_spec.zones.len() == spec.zones.len());
        for (before, after) in spec.zones.iter().zip(&scaled_spec.zones) {
            prop_assert_eq!(before.first_cylinder, after.first_cylinder);
            prop_assert_eq!(before.blocks_per_track, after.blocks_per_track);
            prop_assert!(after.last_cylinder == before.last_cylinder
                || !whole && after.last_cylinder < before.last_cylinder);
        }
        let ratio = scaled.blocks().get() as f64 / drive.blocks().get() as f64;
        // Half a cylinder, or a hundredth of a surface.
        let cylinder = 0.5 * factor / f64::from(spec.cylinders.min(300));
        let surface = 0.01 / f64::from(spec.surfaces);
        prop_assert!((ratio - factor).abs() <= cylinder + surface, "{ratio} for {factor}");
    }

    /// Section 5: the disk must not miss revolutions. Tracks are read one by one; from the first
    /// block of one to the first of the next it takes a turn and a skew. Slips are still there
    /// where densities stay.
    #[test]
    fn scaled_zone_read_loses_no_revolution(seed: u64,
        seek in 0.3..2.0f64, rpm in 0.5..3.0f64,
        linear in prop_oneof![Just(1.0), 1.0..2.0f64], track in prop_oneof![Just(1.0), 1.0..3.0f64],
        surfaces in prop_oneof![Just(1.0), 0.3..3.0f64]
    ) {
        let mut spec = random_spec(seed);
        spec.zero_latency = ByOp { read: false, write: false };
        spec.overhead = Default::default();
        spec.seek.write = None;
        let Ok(original) = Drive::build(&spec) else { return Ok(()) };
        let (linear_density, track_density) = (linear, track);
        let scaling = Scaling { seek, rpm, linear_density, track_density, surfaces };
        let scaled_spec = match scaling.apply(&spec) {
            Err(ScaleError::Scaled(error)) => {
                // A table that falls at its end may fall below zero over more cylinders, and spares may
                // leave a zone of a few blocks fewer than it reserves, or none at all.
                let key = error.key.as_str();
                let is_small = key == "zones" || key.ends_with(".reserved_blocks");
                prop_assert!(key == "seek.read" || is_small, "{}", error);
                return Ok(());
            }
            scaled => scaled.unwrap(),
        };
        let scaled = build(&scaled_spec);
        let turn = scaled.rotation().period().ns() as f64;
        for (zone, ZoneSpec { blocks_per_track, .. }) in scaled_spec.zones.iter().enumerate() {
            for pair in track_starts(&scaled_spec, &scaled, zone).windows(2) {
                let [from, to] = pair else { unreachable!() };
                // Tracks without data, all spares, lie between others.
                if to.track != from.track + 1 {
                    continue;
                }
                let within = f64::from(to.sector) - f64::from(from.sector);
                let most = turn * (1.0 + within / f64::from(*blocks_per_track))
                    + step_ns_max((&spec, &original), (&scaled_spec, &scaled), zone, from.track);
                let took = (to.at - from.at).ns() as f64;
                prop_assert!(took <= most + 4.0, "{took} of {most} from track {}", from.track);
            }
        }
    }

    #[test]
    fn years_in_sequence_equal_years_together(seed in any_large(),
        years in 1u32..5
    ) {
        let mut spec = large_spec(seed);
        // A skew that grows past a turn starts again from zero, which rounds in leaps.
        spec.head_switch = SimDuration::from_us(300);
        spec.seek.write_settle = SimDuration::from_us(100);
        for zone in &mut spec.zones {
            zone.track_skew = Turn::from_ratio(1, 4).unwrap();
            zone.cylinder_skew = zone.track_skew;
            zone.band_skews.fill(zone.track_skew);
        }
        let by_years = |years| Scaling::by_years(years, &YearlyRates::HISTORICAL);
        let year = by_years(1.0);
        let stepwise = (0..years).try_fold(spec.clone(), |spec, _| year.apply(&spec)).unwrap();
        let at_once = by_years(years.into()).apply(&spec).unwrap();
        let apart = |a: u32, b: u32| a.abs_diff(b);
        prop_assert!(stepwise.rotation_period.ns().abs_diff(at_once.rotation_period.ns()) <= 5);
        prop_assert!(apart(stepwise.cylinders, at_once.cylinders) <= 5);
        // Each year a skew may be rounded up by a sector of that year, and those of earlier years
        // are longer; blocks on a track are rounded as well.
        let rates = YearlyRates::HISTORICAL;
        let sector_a_year_before = (1.0 + rates.rpm) * (1.0 + rates.linear_density);
        let rounding: f64 = (0..years).map(|ago| sector_a_year_before.powi(ago as i32)).sum();
        let rounding = rounding * 1.02;
        let drives = [build(&stepwise), build(&at_once)];
        for (a, b) in stepwise.zones.iter().zip(&at_once.zones) {
            prop_assert!(apart(a.blocks_per_track, b.blocks_per_track) <= 5);
            prop_assert!(apart(a.first_cylinder, b.first_cylinder) <= 5);
            let sectors = f64::from(a.blocks_per_track.min(b.blocks_per_track));
            for (kind, band) in skews(a) {
                // Of the skews it is the margin: the curves may differ by what a cylinder makes,
                // and with them the seeks over a band.
                let margin = |spec, zone, drive: &Drive| {
                    let switch = longest_ns(spec, zone, drive, kind).unwrap_or(0.0);
                    let margin = skew_ns(kind.of(zone, band), drive) - switch;
                    margin / drive.rotation().period().ns() as f64
                };
                let (a, b) = (margin(&stepwise, a, &drives[0]), margin(&at_once, b, &drives[1]));
                let wider = turns_apart(a, b);
                prop_assert!(wider <= rounding / sectors, "{kind:?}: {wider} of a turn");
            }
        }
        let mean = |drive: &Drive| drive.mean_seek(Op::Read).as_ms_f64();
        let [stepwise, at_once] = drives.map(|drive| mean(&drive));
        prop_assert!(close(stepwise, at_once, 0.005), "{stepwise} ms and {at_once} ms");
    }
}

fn in_bands(spec: &DriveSpec) -> bool {
    matches!(spec.mapping, Mapping::Band { .. })
}

fn restore_skews(scaled: &mut DriveSpec, original: &DriveSpec) {
    for (scaled, original) in scaled.zones.iter_mut().zip(&original.zones) {
        scaled.track_skew = original.track_skew;
        scaled.cylinder_skew = original.cylinder_skew;
        scaled.band_skews.clone_from(&original.band_skews);
    }
}

fn plain_spec() -> DriveSpec {
    let mut spec = large_spec(3);
    spec.name = "plain".into();
    spec.sparing = Sparing::default();
    spec.sources = [("seek", "measured"), ("seek.read.single_ms", "assumed"), ("zones", "paper")]
        .into_iter()
        .chain([("zones.track_skew", "derived"), ("surfaces", "data sheet")])
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .collect();
    spec
}

#[test]
fn scaled_values_name_origin_others_keep() {
    let scaling = Scaling { seek: 0.8, track_density: 1.24, ..NONE };
    let scaled = scaling.apply(&plain_spec()).unwrap();
    assert_eq!(scaled.name, "plain+seek0.8+track-density1.24");
    let seek = "derived: plain's, times x0.8 (tr03 section 5.1.1), \
                distances x1.24 (tr03 section 5.2.2)";
    assert_eq!(scaled.source_of("seek.read.single_ms"), Some(seek));
    assert_eq!(
        scaled.source_of("zones.last_cylinder"),
        Some("derived: plain's, cylinders x1.24 (tr03 section 5.2.2)")
    );
    assert!(scaled.source_of("zones.track_skew").unwrap().contains("plain's margin"));
    assert_eq!(scaled.source_of("surfaces"), Some("data sheet"));
    assert_eq!(scaled.source_of("rotation_period"), None);
    let denser = Scaling { track_density: 1.24, ..NONE }.apply(&plain_spec()).unwrap();
    assert_eq!(denser.source_of("zones.track_skew"), Some("derived"));
}

#[test]
fn track_density_reaches_capacity_beside_factors() {
    let spec = plain_spec();
    let bytes = |spec: &DriveSpec| build(spec).total_blocks().bytes().get() as f64;
    for factor in [0.4, 1.0, 2.5] {
        let wanted = Bytes::new((bytes(&spec) * factor) as u64);
        let other = Scaling { seek: 0.8, linear_density: 1.5, track_density: 7.0, ..NONE };
        let scaling = other.to_capacity(&spec, wanted).unwrap();
        assert_eq!((scaling.seek, scaling.linear_density), (0.8, 1.5));
        assert!(close(scaling.track_density, factor / 1.5, 0.02), "{scaling:?}");
        let made = bytes(&scaling.apply(&spec).unwrap());
        assert!(close(made, wanted.get() as f64, 0.01), "{made}, not {wanted:?}");
    }
    let error = NONE.to_capacity(&spec, Bytes::new(512)).unwrap_err();
    assert!(error.to_string().contains("`track-density`"), "{error}");
}

#[test]
fn surfaces_added_bring_own_spares() {
    let mut spec = plain_spec();
    spec.surfaces = 3;
    spec.zones.truncate(1);
    let zone = &mut spec.zones[0];
    (zone.spares, zone.reserved_blocks, zone.slips) = (30, 500, vec![70]);
    for (unit, spares) in [(SpareUnit::Zone, 60), (SpareUnit::Track, 30), (SpareUnit::Cylinder, 60)]
    {
        spec.sparing.unit = unit;
        let twice = Scaling { surfaces: 2.0, ..NONE }.apply(&spec).unwrap();
        let zone = &twice.zones[0];
        assert_eq!((twice.surfaces, zone.spares, zone.reserved_blocks), (6, spares, 1000));
        assert_eq!((&zone.slips, &zone.remaps), (&vec![], &vec![]));
        let surfaces = "derived: plain's, number x2 (tr03 section 3.3)";
        assert_eq!(twice.source_of("surfaces"), Some(surfaces));
        assert_eq!((&*twice.name, twice.source_of("cylinders")), ("plain+surfaces2", None));
    }
}

#[test]
fn scaled_drive_drops_promises_and_host() {
    let mut spec = plain_spec();
    spec.advertised.capacity = Some(Bytes::new(1000));
    spec.measured_on = Some(MeasuringHost::default());
    spec.sources.insert("advertised".into(), "data sheet".into());
    spec.sources.insert("measured_on.bus".into(), "measured".into());
    let scaled = Scaling { rpm: 1.5, ..NONE }.apply(&spec).unwrap();
    assert_eq!((scaled.advertised.capacity, scaled.measured_on), (None, None));
    assert!(scaled.source_of("advertised.capacity").is_none());
    assert!(scaled.source_of("measured_on.bus").is_none());
    let same = NONE.apply(&spec).unwrap();
    assert_eq!((&same.advertised, same.measured_on), (&spec.advertised, spec.measured_on));
}

#[test]
fn spares_keep_share_defects_go_with_sectors() {
    let mut spec = plain_spec();
    spec.zones.truncate(1);
    let zone = &mut spec.zones[0];
    (zone.spares, zone.reserved_blocks, zone.slips) = (1000, 500, vec![70]);
    let denser = Scaling { linear_density: 1.5, track_density: 2.0, ..NONE }.apply(&spec).unwrap();
    let zone = &denser.zones[0];
    assert_eq!((zone.spares, zone.reserved_blocks), (3000, 1500));
    assert_eq!(zone.slips, Vec::<u64>::new());
    let faster = Scaling { rpm: 1.5, ..NONE }.apply(&spec).unwrap();
    assert_eq!((faster.zones[0].spares, &faster.zones[0].slips), (1000, &vec![70]));
}

/// Two surfaces in bands of 4 cylinders, out again on the second surface. A change of heads takes
/// 1 ms, a seek of one cylinder 2 ms and the 4 from band to band 3 ms; of tracks of 100 blocks a
/// sector takes 0.1 ms.
fn banded_spec() -> DriveSpec {
    let mut spec = plain_spec();
    let (cylinder_order, surface_order) = (Direction::Serpentine, Direction::Serpentine);
    spec.mapping = Mapping::Band { cylinders: 4, cylinder_order, surface_order };
    spec.surfaces = 2;
    spec.rotation_period = SimDuration::from_ms(10);
    spec.head_switch = SimDuration::from_ms(1);
    spec.seek.read = CurveSpec::Table { cylinders_ms: vec![(1, 2.0), (4, 3.0), (8, 4.0)] };
    spec.seek.write_settle = SimDuration::ZERO;
    spec.zones.truncate(1);
    let zone = &mut spec.zones[0];
    zone.blocks_per_track = 100;
    zone.track_skew = Turn::from_ratio(31, 100).unwrap();
    zone.cylinder_skew = Turn::from_ratio(21, 100).unwrap();
    zone.band_skews.clear();
    spec
}

#[test]
fn track_skew_parts_from_band_skew() {
    let faster = Scaling { seek: 0.5, ..NONE }.apply(&banded_spec()).unwrap();
    let zone = &faster.zones[0];
    // 2.1 ms of margin and half of 1 ms; a tenth and half of 2 ms; a tenth and half of 3 ms.
    assert_eq!(
        (zone.track_skew.to_string(), zone.cylinder_skew.to_string()),
        ("26/100".into(), "11/100".into())
    );
    assert_eq!(zone.band_skews, [Turn::from_ratio(16, 100).unwrap()]);
    let turning = Scaling { rpm: 2.0, ..NONE }.apply(&banded_spec()).unwrap();
    assert_eq!(turning.zones[0].track_skew, Turn::from_ratio(62, 100).unwrap());
    assert_eq!(turning.zones[0].band_skews, []);
}

/// In again from the start of the band on the second surface.
fn forward_spec(cylinders: u32) -> DriveSpec {
    let mut spec = banded_spec();
    let (cylinder_order, surface_order) = (Direction::Forward, Direction::Serpentine);
    spec.mapping = Mapping::Band { cylinders: 4, cylinder_order, surface_order };
    (spec.zones[0].first_cylinder, spec.zones[0].last_cylinder) = (0, cylinders - 1);
    spec
}

#[test]
fn skew_hides_switches_of_zone_bands() {
    let mut narrow = forward_spec(2);
    narrow.zones[0].track_skew = Turn::from_ratio(21, 100).unwrap();
    let denser = Scaling { track_density: 2.0, ..NONE }.apply(&narrow).unwrap();
    // Back over one cylinder in 2 ms; then over 3, which were 1.5, in 2.17. A tenth of margin.
    assert_eq!(denser.zones[0].track_skew, Turn::from_ratio(23, 100).unwrap());
    // On a curve that dips the narrower band at the end of the zone has the longer way back.
    let mut dips = forward_spec(6);
    dips.seek.read = CurveSpec::Table { cylinders_ms: vec![(1, 3.0), (3, 2.0), (9, 2.0)] };
    let faster = Scaling { seek: 0.5, ..NONE }.apply(&dips).unwrap();
    assert_eq!(faster.zones[0].track_skew, Turn::from_ratio(16, 100).unwrap());
}

#[test]
fn band_keeps_cylinders_on_denser_tracks() {
    let mut spec = banded_spec();
    spec.zones[0].band_skews = vec![spec.zones[0].track_skew];
    spec.sparing.unit = SpareUnit::CylinderRange(8);
    spec.sources.insert("zones.band_skews".into(), "measured".into());
    let denser = Scaling { track_density: 4.0, ..NONE }.apply(&spec).unwrap();
    assert_eq!((denser.mapping, denser.sparing), (spec.mapping, spec.sparing));
    let (before, after) = (&spec.zones[0], &denser.zones[0]);
    assert_eq!((after.track_skew, after.cylinder_skew), (before.track_skew, before.cylinder_skew));
    // 4 cylinders are as wide as one was: 2 ms, and the tenth of margin.
    assert_eq!(after.band_skews, [Turn::from_ratio(21, 100).unwrap()]);
    assert!(denser.source_of("zones.band_skews").unwrap().contains("plain's margin"));
    assert_eq!(denser.source_of("zones.track_skew"), Some("derived"));
}

#[test]
fn slips_turning_tracks_dropped_with_densities() {
    let mut spec = banded_spec();
    spec.sparing = Sparing { unit: SpareUnit::CylinderRange(4), ..spec.sparing };
    spec.sparing.slips_turn_tracks = true;
    (spec.zones[0].spares, spec.zones[0].slips) = (10, vec![70, 900]);
    for (linear_density, track_density) in [(1.5, 1.0), (1.0, 1.5)] {
        let denser = Scaling { linear_density, track_density, ..NONE }.apply(&spec).unwrap();
        assert_eq!((denser.sparing, &denser.zones[0].slips), (spec.sparing, &vec![]));
    }
    let faster = Scaling { seek: 0.5, rpm: 2.0, ..NONE }.apply(&spec).unwrap();
    assert_eq!(faster.zones[0].slips, spec.zones[0].slips);
}

#[test]
fn electronics_stay_as_they_are() {
    let spec = plain_spec();
    let scaling = Scaling::by_years(3.0, &YearlyRates::HISTORICAL);
    let scaled = scaling.apply(&spec).unwrap();
    assert_eq!((scaled.electronics, scaled.overhead), (spec.electronics, spec.overhead));
    assert_eq!(scaled.zero_latency, spec.zero_latency);
}

#[test]
fn factor_out_of_range_refused_by_name() {
    for (scaling, name) in [
        (Scaling { seek: 0.0, ..NONE }, "seek"),
        (Scaling { rpm: f64::NAN, ..NONE }, "rpm"),
        (Scaling { linear_density: -1.2, ..NONE }, "linear-density"),
        (Scaling { track_density: 101.0, ..NONE }, "track-density"),
        (Scaling { surfaces: 0.0, ..NONE }, "surfaces"),
    ] {
        let error = scaling.apply(&plain_spec()).unwrap_err();
        assert!(matches!(error, ScaleError::Factor { .. }));
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
}

#[test]
fn scaled_drive_unmodellable_refused_with_key() {
    let too_fast = Scaling { rpm: 50.0, ..NONE }.apply(&plain_spec()).unwrap_err();
    assert!(too_fast.to_string().contains("the scaled drive: `rotation_period`"), "{too_fast}");
    let mut broken = plain_spec();
    broken.surfaces = 0;
    let error = NONE.apply(&broken).unwrap_err();
    assert!(matches!(error, ScaleError::Original(_)), "{error}");
}
