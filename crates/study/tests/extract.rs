//! Drives with hidden parameters, extracted and compared afterwards.
#![allow(missing_docs)]

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{CurveSpec, DriveSpec, Mapping, Turn, ZoneSpec};
use freewheel_sim::black_box::{BadBlocks, BlackBox, Command, EmulatedDrive, Habits, VirtualDrive};
use freewheel_sim::library;
use freewheel_study::{Confidence, ExtractOptions, Extraction, Journal, extract};
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};

/// A drive to be found out.
struct Hidden {
    spec: DriveSpec,
    habits: Habits,
    seed: u64,
}

/// One of the shipped drives in small, with its parameters drawn anew.
fn hidden(base: &str, seed: u64) -> Hidden {
    let mut spec = library::spec(base).unwrap();
    let mut prng = Prng::new(seed, "hidden drive");
    let mut between = |from: u64, to: u64| from + prng.below(to - from);
    spec.rotation_period = SimDuration::from_ns(between(4_000_000, 9_000_000));
    spec.surfaces = between(1, 9) as u32;
    spec.mapping =
        [Mapping::Cylinder, Mapping::Serpentine, Mapping::SerpentineByZone][between(0, 3) as usize];
    spec.head_switch = SimDuration::from_us(between(150, 900));
    let outer = u64::from(spec.zones[0].blocks_per_track);
    let mut first_cylinder = 0;
    let count = between(2, 5);
    spec.zones = (0..count)
        .map(|index| {
            let per_track = outer * (20 - index * between(1, 3)) / 20;
            let cylinders = between(90, 180) as u32;
            // A skew is no less than the time it covers.
            let sectors = |us: u64| us * 1000 * per_track / spec.rotation_period.ns() + 1;
            let track = sectors(spec.head_switch.ns() / 1000) + between(0, per_track / 10);
            let cylinder = sectors(300) + per_track / 5 + between(0, per_track / 2);
            let tracks = u64::from(cylinders * spec.surfaces);
            let slips = if between(0, 2) == 0 {
                Vec::new()
            } else {
                vec![between(0, tracks / 2) * per_track + per_track / 2]
            };
            let first = first_cylinder;
            first_cylinder += cylinders;
            ZoneSpec {
                first_cylinder: first,
                last_cylinder: first_cylinder - 1,
                blocks_per_track: per_track as u32,
                first_block: Turn::from_ratio(between(0, 1000), 1000).unwrap(),
                reserved_blocks: 0,
                track_skew: Turn::from_ratio(track, per_track).unwrap(),
                cylinder_skew: Turn::from_ratio(cylinder % per_track, per_track).unwrap(),
                band_skews: Vec::new(),
                spares: slips.len() as u64 + between(1, per_track),
                slips,
                remaps: Vec::new(),
            }
        })
        .collect();
    spec.cylinders = first_cylinder;
    let full = 2.0 + between(0, 4000) as f64 / 1000.0;
    let single = 0.25 + between(0, 900) as f64 / 1000.0;
    spec.seek.read = CurveSpec::PowerLinear {
        single_ms: single,
        break_cylinders: first_cylinder / 3,
        break_ms: f64::midpoint(single, full),
        full_ms: full,
    };
    spec.seek.write = None;
    if let Some(buffer) = &mut spec.onboard.buffer {
        buffer.segments = between(4, 24) as u32;
        buffer.write_segments = 1;
    }
    let habits = Habits {
        seek_jitter: Some(SimDuration::from_us(between(0, 40))),
        reply_jitter: SimDuration::from_us(between(0, 25)),
        ..Habits::default()
    };
    Hidden { spec, habits, seed }
}

fn emulated(spec: &DriveSpec, habits: &Habits, seed: u64) -> VirtualDrive {
    VirtualDrive::new(
        EmulatedDrive::new(spec, &spec.name, habits, BadBlocks::default(), seed).unwrap(),
    )
}

fn extracted(hidden: &Hidden) -> Extraction {
    let mut drive = emulated(&hidden.spec, &hidden.habits, hidden.seed);
    let options = ExtractOptions { name: "found".into(), seed: 1 };
    extract(&mut drive, &options, Journal::default(), &|_, _, _| {}).unwrap()
}

/// Response times of random reads, one after the other.
fn responses(spec: &DriveSpec, habits: &Habits) -> Vec<f64> {
    let mut drive = emulated(spec, habits, 7);
    let mut prng = Prng::new(11, "reads");
    let blocks = drive.blocks().get();
    (0..2000)
        .map(|id| {
            let start = Lbn::new(prng.below(blocks));
            // Both drives are asked at the same times.
            drive.sleep_until(SimTime::from_ns(id * 40_000_000));
            let sent = drive.now();
            drive.submit(Command { id, op: Op::Read, start, blocks: 1 });
            (drive.next_answer(SimTime::MAX).unwrap().unwrap().at - sent).ns() as f64
        })
        .collect()
}

/// The same drive, its platters turned on the spindle: where they stand at time zero says nothing.
fn turned(spec: &DriveSpec, by_ns: u64) -> DriveSpec {
    const STEPS: u64 = 1_000_000_000;
    let mut turned = spec.clone();
    for zone in &mut turned.zones {
        let start = zone.first_block.angle().turns() * STEPS as f64;
        let by = by_ns as f64 / spec.rotation_period.ns() as f64 * STEPS as f64;
        zone.first_block = Turn::from_ratio((start + by) as u64 % STEPS, STEPS).unwrap();
    }
    turned
}

/// Mean absolute difference of response times of random reads, in nanoseconds.
fn difference(truth: &DriveSpec, found: &DriveSpec) -> f64 {
    let still = Habits { seek_jitter: Some(SimDuration::ZERO), ..Habits::default() };
    let first = |spec: &DriveSpec| responses(spec, &still)[0] as i64;
    let period = truth.rotation_period.ns() as i64;
    let late = (first(truth) - first(found)).rem_euclid(period) as u64;
    let found = turned(found, late);
    let (truth, found) = (responses(truth, &still), responses(&found, &still));
    let off = truth.iter().zip(&found).map(|(truth, found)| (truth - found).abs());
    off.sum::<f64>() / truth.len() as f64
}

fn confidence(found: &Extraction, key: &str) -> Confidence {
    found.values.iter().find(|value| value.key == key).unwrap().confidence
}

fn check_layout(truth: &DriveSpec, found: &Extraction) {
    let spec = &found.spec;
    let ppm = spec.rotation_period.ns() as f64 / truth.rotation_period.ns() as f64 - 1.0;
    assert!((ppm * 1e6).abs() < 1.0, "{} for {}", spec.rotation_period, truth.rotation_period);
    assert_eq!((spec.surfaces, spec.cylinders), (truth.surfaces, truth.cylinders));
    assert_eq!(spec.zones.len(), truth.zones.len());
    for (zone, hidden) in spec.zones.iter().zip(&truth.zones) {
        let exact = |zone: &ZoneSpec| {
            (zone.first_cylinder, zone.last_cylinder, zone.blocks_per_track, zone.spares)
        };
        assert_eq!(exact(zone), exact(hidden));
        assert_eq!(zone.cylinder_skew, hidden.cylinder_skew);
        if truth.surfaces > 1 {
            assert_eq!(zone.track_skew, hidden.track_skew);
        }
        let track = |slip: &u64| slip / u64::from(zone.blocks_per_track);
        let tracks = |zone: &ZoneSpec| zone.slips.iter().map(track).collect::<Vec<_>>();
        assert_eq!(tracks(zone), tracks(hidden), "defects to the track");
    }
}

/// The order of heads, where it makes a difference to any time; else that this is said.
fn check_mapping(truth: &DriveSpec, found: &Extraction) {
    let single = Drive::build(truth).unwrap().seek().time_ns(Op::Read, 1, false);
    let shows = truth.surfaces > 1 && truth.head_switch.ns() > single;
    if !shows {
        assert_eq!(confidence(found, "mapping"), Confidence::Unobservable);
        return;
    }
    let even = truth.zones.iter().all(|zone| zone.first_cylinder % 2 == 0);
    match truth.mapping {
        // The same when no zone begins with an odd cylinder.
        Mapping::SerpentineByZone if even => assert_eq!(found.spec.mapping, Mapping::Serpentine),
        mapping => assert_eq!(found.spec.mapping, mapping),
    }
}

fn check_seeks(truth: &DriveSpec, found: &Extraction) {
    let drive = Drive::build(truth).unwrap();
    for &(distance, ns) in &found.seeks {
        let hidden = drive.seek().time_ns(Op::Read, distance, false) as f64;
        let off = (ns as f64 - hidden).abs();
        assert!(off < 50_000.0_f64.max(hidden * 0.02), "{distance}: {ns} for {hidden}");
    }
    if truth.surfaces > 1 {
        let off = found.spec.head_switch.ns().abs_diff(truth.head_switch.ns());
        assert!(off < 50_000, "{} for {}", found.spec.head_switch, truth.head_switch);
    }
}

fn check(base: &str, seed: u64) {
    let hidden = hidden(base, seed);
    let found = extracted(&hidden);
    check_layout(&hidden.spec, &found);
    check_mapping(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    let segments = found.spec.onboard.buffer.as_ref().map(|buffer| buffer.segments);
    assert_eq!(segments, hidden.spec.onboard.buffer.as_ref().map(|buffer| buffer.segments));
    let off = difference(&hidden.spec, &found.spec);
    println!(
        "{base} {seed}: {} commands, {:.0} s, jitter {:.1} us, responses off by {:.1} us",
        found.commands,
        found.drive_ns as f64 / 1e9,
        found.reply_jitter_ns / 1e3,
        off / 1e3
    );
    assert!(off < 100_000.0, "{off} ns");
}

macro_rules! blind {
    ($($name:ident: $base:literal, $seed:literal;)*) => {
        $(#[test]
        fn $name() {
            check($base, $seed);
        })*
    };
}

blind! {
    a_hidden_drive_is_found_out_1: "atlas10k", 1;
    a_hidden_drive_is_found_out_2: "exos-7e8-8tb", 2;
    a_hidden_drive_is_found_out_3: "atlas10k", 3;
    a_hidden_drive_is_found_out_4: "exos-7e8-8tb", 4;
    a_hidden_drive_is_found_out_5: "exos-7e8-8tb", 5;
    a_hidden_drive_is_found_out_6: "atlas10k", 6;
    a_hidden_drive_is_found_out_7: "atlas10k", 7;
    a_hidden_drive_is_found_out_8: "exos-7e8-8tb", 8;
    a_hidden_drive_is_found_out_9: "exos-7e8-8tb", 9;
    a_hidden_drive_is_found_out_10: "atlas10k", 10;
    a_hidden_drive_is_found_out_11: "atlas10k", 11;
    a_hidden_drive_is_found_out_12: "exos-7e8-8tb", 12;
}
