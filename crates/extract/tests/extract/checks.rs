//! Comparison of the found values with the hidden ones.

use freewheel_extract::{Confidence, Extraction};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, Mapping, Turn, ZoneSpec};
use freewheel_model::electronics::spec::WriteCache;
use freewheel_model::sched::CommandMark;
use freewheel_sim::black_box::{Behaviour, BlackBox, Command};
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};

use crate::hidden::emulated;

/// Response times of random requests, one after the other; one of two is a write if there are some.
pub fn responses(spec: &DriveSpec, behaviour: &Behaviour, writes: bool) -> Vec<f64> {
    let mut drive = emulated(spec, behaviour, 7);
    let mut prng = Prng::new(11, "reads");
    let sector = drive.sector().physical_blocks();
    let sectors = drive.blocks().get() / u64::from(sector);
    (0..2000)
        .map(|id| {
            let start = Lbn::new(prng.below(sectors) * u64::from(sector));
            // Both drives are asked at the same times.
            drive.sleep_until(SimTime::from_ns(id * 40_000_000));
            let sent = drive.now();
            let op = if writes && prng.below(2) == 0 { Op::Write } else { Op::Read };
            let mark = CommandMark::None;
            drive.submit(Command { id, op, start, blocks: sector, fua: false, mark });
            (drive.next_answer(SimTime::MAX).unwrap().unwrap().at - sent).ns() as f64
        })
        .collect()
}

/// Drive with its platters turned on the spindle: their angle at time zero is arbitrary.
pub fn turned(spec: &DriveSpec, by_ns: u64) -> DriveSpec {
    const STEPS: u64 = 1_000_000_000;
    let mut turned = spec.clone();
    for zone in &mut turned.zones {
        let start = zone.first_block.angle().turns() * STEPS as f64;
        let by = by_ns as f64 / spec.rotation_period.ns() as f64 * STEPS as f64;
        zone.first_block = Turn::from_ratio((start + by) as u64 % STEPS, STEPS).unwrap();
    }
    turned
}

/// Mean absolute difference of response times of random requests, in nanoseconds.
pub fn difference(truth: &DriveSpec, found: &DriveSpec, writes: bool) -> f64 {
    let write_cache = Some(WriteCache::Off);
    let seek_jitter = Some(SimDuration::ZERO);
    let still = Behaviour { seek_jitter, write_cache, ..Behaviour::default() };
    let first = |spec: &DriveSpec| responses(spec, &still, false)[0] as i64;
    let period = truth.rotation_period.ns() as i64;
    let late = (first(truth) - first(found)).rem_euclid(period) as u64;
    let found = turned(found, late);
    let [truth, found] = [truth, &found].map(|spec| responses(spec, &still, writes));
    let off = truth.iter().zip(&found).map(|(truth, found)| (truth - found).abs());
    off.sum::<f64>() / truth.len() as f64
}

pub fn confidence(found: &Extraction, key: &str) -> Confidence {
    found.values.iter().find(|value| value.key == key).unwrap().confidence
}

pub fn check_layout(truth: &DriveSpec, found: &Extraction) {
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

/// The order of heads, where it makes a difference to any time; else the file must say so.
pub fn check_mapping(truth: &DriveSpec, found: &Extraction) {
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

/// Movements over every distance, those that were not measured as well.
pub fn check_seeks(truth: &DriveSpec, found: &Extraction) {
    check_measured_seeks(truth, found);
    let ours = Drive::build(&found.spec).unwrap();
    let time = |distance| ours.seek().time_ns(Op::Read, distance, false);
    check_distances(truth, (1..truth.cylinders).map(|distance| (distance, time(distance))));
}

/// Movements over the distances that were measured. Where a curve has an edge between two of them, what
/// is drawn between them may be off by more.
pub fn check_measured_seeks(truth: &DriveSpec, found: &Extraction) {
    assert!(found.seeks.len() > 10, "{:?}", found.seeks);
    check_distances(truth, found.seeks.iter().copied());
    if truth.surfaces > 1 {
        let off = found.spec.head_switch.ns().abs_diff(truth.head_switch.ns());
        assert!(off < 50_000, "{} for {}", found.spec.head_switch, truth.head_switch);
    }
}

fn check_distances(truth: &DriveSpec, seeks: impl Iterator<Item = (u32, u64)>) {
    let drive = Drive::build(truth).unwrap();
    for (distance, ns) in seeks {
        let hidden = drive.seek().time_ns(Op::Read, distance, false) as f64;
        let off = (ns as f64 - hidden).abs();
        assert!(off < 50_000.0_f64.max(hidden * 0.02), "{distance}: {ns} for {hidden}");
    }
}

/// Checks the file's errors for reads of a block. A drive as small as these serves some of them from the
/// data that longer ones left in its buffer.
pub fn check_held_out(found: &Extraction) {
    let row = found.held_out.iter().find(|row| row.requests.contains("reads of one")).unwrap();
    assert!(row.count > 1000 && row.demerit < SimDuration::from_us(100), "{row:?}");
    assert_eq!(found.spec.held_out, found.held_out);
    let all = &found.held_out[0];
    assert!(all.demerit < SimDuration::from_us(100), "{all:?}");
}

/// Places of blocks on two drives: of random ones the share whose tracks hold the same blocks, in the same
/// cylinders and on the same heads, and the greatest difference of angle in nanoseconds. Their spindles
/// stand as it comes.
pub fn layouts(truth: &DriveSpec, found: &DriveSpec) -> ([usize; 3], f64) {
    let drives = [truth, found].map(|spec| Drive::build(spec).unwrap());
    assert_eq!(drives[0].blocks(), drives[1].blocks());
    let mut prng = Prng::new(5, "places");
    let places = (0..2000).map(|_| Lbn::new(prng.below(drives[0].blocks().get())));
    let (mut same, mut off) = ([0; 3], Vec::new());
    for block in places {
        let [a, b] = [&drives[0], &drives[1]].map(|drive| {
            let (run, layout) = (drive.layout().run(block, 1), drive.layout());
            let start = layout.track_start(run.at.cylinder, run.at.surface).unwrap();
            let sectors = f64::from(layout.zones()[run.zone].blocks_per_track());
            let angle = start.turns() + f64::from(run.at.sector) / sectors;
            (layout.track_bounds(block), run.at.cylinder, run.at.surface, angle)
        });
        for (count, is_same) in same.iter_mut().zip([a.0 == b.0, a.1 == b.1, a.2 == b.2]) {
            *count += usize::from(is_same);
        }
        off.push(b.3 - a.3);
    }
    let signed = |turns: f64| turns - (turns + 0.5).floor();
    let first = off[0];
    let worst = off.iter().map(|off| signed(off - first).abs()).fold(0.0, f64::max);
    (same, worst * truth.rotation_period.ns() as f64)
}
