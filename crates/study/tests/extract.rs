//! Drives with hidden parameters, extracted and compared afterwards.
#![allow(missing_docs)]

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{
    CurveSpec, DriveSpec, Mapping, Order, SpareUnit, Turn, ZoneSpec,
};
use freewheel_model::onboard::spec::{OnboardSpec, WriteCache};
use freewheel_sim::black_box::{
    Activity, Answer, BadBlocks, BlackBox, Command, EmulatedDrive, Gone, Habits, VirtualDrive,
};
use freewheel_sim::library;
use freewheel_study::{
    Confidence, ExtractError, ExtractOptions, Extraction, Journal, JournalEntry, JournalHead,
    extract, read_journal,
};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};

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

fn extracted(hidden: &Hidden, writes: bool) -> Extraction {
    let mut drive = emulated(&hidden.spec, &hidden.habits, hidden.seed);
    let options = ExtractOptions { name: "found".into(), seed: 1, writes };
    extract(&mut drive, &options, Journal::default(), &|_, _, _| {}).unwrap()
}

/// Response times of random requests, one after the other; one of two is a write if there are some.
fn responses(spec: &DriveSpec, habits: &Habits, writes: bool) -> Vec<f64> {
    let mut drive = emulated(spec, habits, 7);
    let mut prng = Prng::new(11, "reads");
    let blocks = drive.blocks().get();
    (0..2000)
        .map(|id| {
            let start = Lbn::new(prng.below(blocks));
            // Both drives are asked at the same times.
            drive.sleep_until(SimTime::from_ns(id * 40_000_000));
            let sent = drive.now();
            let op = if writes && prng.below(2) == 0 { Op::Write } else { Op::Read };
            drive.submit(Command { id, op, start, blocks: 1 });
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

/// Mean absolute difference of response times of random requests, in nanoseconds.
fn difference(truth: &DriveSpec, found: &DriveSpec, writes: bool) -> f64 {
    let write_cache = Some(WriteCache::Off);
    let seek_jitter = Some(SimDuration::ZERO);
    let still = Habits { seek_jitter, write_cache, ..Habits::default() };
    let first = |spec: &DriveSpec| responses(spec, &still, false)[0] as i64;
    let period = truth.rotation_period.ns() as i64;
    let late = (first(truth) - first(found)).rem_euclid(period) as u64;
    let found = turned(found, late);
    let [truth, found] = [truth, &found].map(|spec| responses(spec, &still, writes));
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

/// What the file says it is worth for reads of a block, some of which a drive as small as these serves
/// from what longer ones left in its buffer.
fn check_held_out(found: &Extraction) {
    let row = found.held_out.iter().find(|row| row.requests.contains("one block")).unwrap();
    assert!(row.count > 1000 && row.demerit < SimDuration::from_us(100), "{row:?}");
    assert_eq!(found.spec.held_out, found.held_out);
    let all = &found.held_out[0];
    assert!(all.demerit < SimDuration::from_us(100), "{all:?}");
}

fn check(base: &str, seed: u64) {
    let hidden = hidden(base, seed);
    let found = extracted(&hidden, false);
    check_layout(&hidden.spec, &found);
    check_mapping(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    check_held_out(&found);
    let segments = found.spec.onboard.buffer.as_ref().map(|buffer| buffer.segments);
    assert_eq!(segments, hidden.spec.onboard.buffer.as_ref().map(|buffer| buffer.segments));
    let off = difference(&hidden.spec, &found.spec, false);
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

/// With times of writes that differ from those of reads.
fn hidden_writes(base: &str, seed: u64) -> Hidden {
    let mut hidden = hidden(base, seed);
    let mut prng = Prng::new(seed, "hidden writes");
    let mut us = |from: u64, to: u64| SimDuration::from_us(from + prng.below(to - from));
    hidden.spec.seek.write_settle = us(100, 700);
    hidden.spec.onboard.read_write_switch = us(0, 900);
    hidden.habits.write_cache = Some(WriteCache::Off);
    if let (CurveSpec::PowerLinear { full_ms, .. }, 1) = (&hidden.spec.seek.read, seed % 2) {
        let full_ms = full_ms + 1.0;
        hidden.spec.seek.write =
            Some(CurveSpec::ThreePoint { single_ms: 0.3, average_ms: full_ms / 2.0, full_ms });
    }
    hidden
}

fn check_writes(base: &str, seed: u64) {
    let hidden = hidden_writes(base, seed);
    let found = extracted(&hidden, true);
    check_layout(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    let drive = Drive::build(&hidden.spec).unwrap();
    assert!(!found.write_seeks.is_empty());
    for &(distance, ns) in &found.write_seeks {
        let hidden = drive.seek().time_ns(Op::Write, distance, false) as f64;
        let off = (ns as f64 - hidden).abs();
        assert!(off < 50_000.0_f64.max(hidden * 0.02), "{distance}: {ns} for {hidden}");
    }
    let off = difference(&hidden.spec, &found.spec, true);
    println!("{base} {seed}: {} commands, responses off by {:.1} us", found.commands, off / 1e3);
    let (settle, hidden_settle) = (found.spec.seek.write_settle, hidden.spec.seek.write_settle);
    let (switch, hidden_switch) =
        (found.spec.onboard.read_write_switch, hidden.spec.onboard.read_write_switch);
    println!("settle {settle} for {hidden_settle}, switch {switch} for {hidden_switch}");
    assert!(off < 100_000.0, "{off} ns");
    if hidden.spec.seek.write.is_none() {
        assert!(settle.ns().abs_diff(hidden_settle.ns()) < 50_000, "{settle} for {hidden_settle}");
    }
    assert!(switch.ns().abs_diff(hidden_switch.ns()) < 50_000, "{switch} for {hidden_switch}");
}

#[test]
fn writes_of_a_hidden_drive_are_found_out_1() {
    check_writes("exos-7e8-8tb", 21);
}

#[test]
fn writes_of_a_hidden_drive_are_found_out_2() {
    check_writes("atlas10k", 22);
}

#[test]
fn writes_of_a_hidden_drive_are_found_out_3() {
    check_writes("exos-7e8-8tb", 24);
}

#[test]
fn writes_that_a_cache_answers_are_refused_with_the_way_out() {
    let mut hidden = hidden_writes("atlas10k", 22);
    hidden.habits.write_cache = Some(WriteCache::On);
    let mut drive = emulated(&hidden.spec, &hidden.habits, 1);
    let options = ExtractOptions { name: "found".into(), seed: 1, writes: true };
    let error = extract(&mut drive, &options, Journal::default(), &|_, _, _| {}).unwrap_err();
    assert!(error.to_string().contains("hdparm -W0"), "{error}");
}

/// A drive whose host is busy: one of fifty answers is noticed up to 5 ms late, and one command of
/// fifty is sent late. After so many answers the connection breaks.
struct Troubled {
    drive: VirtualDrive,
    prng: Prng,
    is_busy: bool,
    answers_left: u64,
}

impl Troubled {
    fn late(&mut self) -> SimDuration {
        let is_late = self.is_busy && self.prng.below(50) == 0;
        SimDuration::from_us(if is_late { self.prng.below(5000) } else { 0 })
    }
}

impl BlackBox for Troubled {
    fn blocks(&self) -> Blocks {
        self.drive.blocks()
    }

    fn now(&self) -> SimTime {
        self.drive.now()
    }

    fn submit(&mut self, command: Command) {
        self.drive.submit(command);
    }

    fn next_answer(&mut self, until: SimTime) -> Result<Option<Answer>, Gone> {
        self.answers_left = self.answers_left.checked_sub(1).ok_or(Gone("it broke".into()))?;
        let answer = self.drive.next_answer(until)?;
        let late = self.late();
        Ok(answer.map(|answer| {
            let at = answer.at + late;
            self.drive.sleep_until(at);
            Answer { at, ..answer }
        }))
    }

    fn sleep_until(&mut self, time: SimTime) {
        let late = self.late();
        self.drive.sleep_until(time + late);
    }
}

fn options() -> ExtractOptions {
    ExtractOptions { name: "found".into(), seed: 1, writes: false }
}

/// Of one whose skews are all alike nothing but times tells the heads, and one is full of defects.
#[test]
fn tracks_and_heads_of_hard_drives_of_the_library_are_found() {
    for name in ["exos-x24-24tb", "cheetah9lp"] {
        let truth = library::spec(name).unwrap();
        let mut drive = emulated(&truth, &Habits::default(), 1);
        let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
        assert_eq!(found.spec.surfaces, truth.surfaces);
        let tracks = |spec: &DriveSpec| -> Vec<u32> {
            spec.zones.iter().map(|zone| zone.blocks_per_track).collect()
        };
        assert_eq!(tracks(&found.spec), tracks(&truth));
        check_seeks(&truth, &found);
    }
}

/// Where blocks lie on two drives: of random ones the share whose tracks hold the same blocks, in the same
/// cylinders and on the same heads, and the greatest difference of angle in nanoseconds. Their spindles
/// stand as it comes.
fn layouts(truth: &DriveSpec, found: &DriveSpec) -> ([usize; 3], f64) {
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

/// A hidden drive in small, without electronics, laid out in another way.
fn laid_out(seed: u64, change: impl Fn(&mut DriveSpec, &mut dyn FnMut(u64, u64) -> u64)) -> Hidden {
    let mut hidden = hidden("atlas10k", seed);
    let mut prng = Prng::new(seed, "layout");
    let spec = &mut hidden.spec;
    spec.onboard = OnboardSpec::default();
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
    check_seeks(&hidden.spec, &found);
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

#[test]
fn spares_of_each_track_are_found() {
    for (seed, spares) in [(1, 1), (2, 5), (3, 2)] {
        let hidden = laid_out(seed, spares_of(SpareUnit::Track, spares));
        assert_eq!(check_blocks(&hidden).spec.sparing, hidden.spec.sparing);
    }
}

/// Whether all blocks lie where the file says. If not, there is none, or this is said.
fn check_or_said(hidden: &Hidden) -> bool {
    let mut drive = emulated(&hidden.spec, &hidden.habits, hidden.seed);
    let Ok(found) = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}) else {
        return false;
    };
    let (_, worst) = layouts(&hidden.spec, &found.spec);
    let is_right = worst < 25_000.0;
    assert_eq!(is_right, found.misplaced.is_empty(), "{}: {worst} ns", hidden.seed);
    let zones = confidence(&found, "zones");
    assert_eq!(zones == Confidence::Assumed, !is_right, "{}", hidden.seed);
    is_right
}

/// A drive that is refused has no file, and of one that is wrong this is said: whatever the seed.
#[test]
fn spares_of_each_cylinder_are_found_or_it_is_said_that_they_are_not() {
    let is_right = |seed: &u64| {
        let spares = [40, 90][*seed as usize % 2];
        check_or_said(&laid_out(*seed, spares_of(SpareUnit::Cylinder, spares)))
    };
    let right = (1..=24).filter(is_right).count();
    assert!(right >= 17, "{right} of 24");
}

#[test]
fn spares_of_ranges_of_cylinders_are_found_with_defects_that_stay_in_their_range() {
    for (seed, range, spares) in [(1, 7, 60), (2, 12, 100), (3, 5, 31)] {
        let hidden = laid_out(seed, |spec, between| {
            spares_of(SpareUnit::CylinderRange(range), spares)(spec, between);
            let surfaces = u64::from(spec.surfaces);
            for zone in &mut spec.zones {
                // In the sixth range, far from its ends.
                let sectors = u64::from(range) * surfaces * u64::from(zone.blocks_per_track);
                zone.slips = vec![5 * sectors + between(sectors / 4, sectors / 2)];
            }
        });
        check_blocks(&hidden);
    }
}

#[test]
fn the_cheetah_4lp_with_spares_for_every_12_cylinders_is_found_as_it_is() {
    let truth = library::spec("cheetah4lp").unwrap();
    let mut drive = emulated(&truth, &Habits::default(), 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
    assert_eq!(found.spec.sparing, truth.sparing);
    let slips = |spec: &DriveSpec| -> Vec<Vec<u64>> {
        spec.zones.iter().map(|zone| zone.slips.clone()).collect()
    };
    assert_eq!(slips(&found.spec), slips(&truth));
    let (same, worst) = layouts(&truth, &found.spec);
    assert!(same[0] == 2000 && same[2] == 2000 && worst < 1_000.0, "{same:?} {worst}");
    check_seeks(&truth, &found);
}

/// As made in the 1990s, with slow buses, buffers and reading ahead, and without any of these: what the
/// file is worth for requests of all kinds.
#[test]
fn electronics_of_old_drives_are_found_and_requests_of_all_kinds_are_foretold() {
    for name in ["atlas10k", "cheetah4lp", "cheetah9lp", "cheetah18lp", "ultrastar9es"] {
        let mut truth = library::spec(name).unwrap();
        for onboard in [truth.onboard.clone(), OnboardSpec::default()] {
            truth.onboard = onboard;
            let mut drive = emulated(&truth, &Habits::default(), 1);
            let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
            for row in &found.held_out {
                assert!(row.demerit < SimDuration::from_us(100), "{name}: {row:?}");
            }
            assert!(found.misplaced.is_empty(), "{name}: {:?}", found.misplaced);
            assert_eq!(found.spec.zero_latency.read, truth.zero_latency.read, "{name}");
            let block_time = |spec: &DriveSpec| spec.onboard.bus.unwrap_or_default().block_time;
            let [bus, hidden] = [&found.spec, &truth].map(block_time);
            assert!(bus.ns().abs_diff(hidden.ns()) < 200, "{name}: {bus} for {hidden}");
        }
    }
}

/// In the first and in the last sector of a track, two and four of one track, and two in a row.
#[test]
fn every_one_of_several_defects_of_a_track_is_found_to_the_sector() {
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

/// In bands of so many cylinders.
fn banded(seed: u64, width: u64, orders: [Order; 2]) -> Hidden {
    banded_and(seed, (width, 0), orders)
}

/// And so many cylinders in a narrower one at each zone's end.
fn banded_and(seed: u64, (width, rest): (u64, u64), orders: [Order; 2]) -> Hidden {
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
fn bands_of_cylinders_are_found_with_the_orders_in_them() {
    let (on, back) = (Order::Forward, Order::Serpentine);
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
    }
}

/// They are not understood, but there is no wrong file of which this is not said.
#[test]
fn narrower_bands_at_the_ends_of_zones_are_found_or_it_is_said_that_they_are_not() {
    let (on, back) = (Order::Forward, Order::Serpentine);
    for (seed, width, rest, orders) in [
        (1, 24, 7, [back, back]),
        (2, 100, 31, [on, on]),
        (3, 57, 20, [back, on]),
        (4, 40, 39, [on, on]),
        (5, 12, 1, [on, back]),
        (6, 30, 15, [back, back]),
    ] {
        check_or_said(&banded_and(seed, (width, rest), orders));
    }
}

/// The Ultrastar 9ES has many of the same length, which look like runs that come again.
#[test]
fn zones_one_after_the_other_that_are_alike_stay_what_they_are() {
    let truth = library::spec("ultrastar9es").unwrap();
    let mut drive = emulated(&truth, &Habits::default(), 1);
    let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
    let (same, worst) = layouts(&truth, &found.spec);
    assert!(same[0] == 2000 && same[2] == 2000 && worst < 1_000.0, "{same:?} {worst}");
    assert_eq!(found.spec.zones.len(), truth.zones.len());
}

#[test]
fn a_busy_host_is_stood() {
    for (base, seed) in [
        ("exos-7e8-8tb", 4),
        ("atlas10k", 10),
        ("atlas10k", 7),
        ("exos-7e8-8tb", 9),
        ("exos-7e8-8tb", 12),
    ] {
        let hidden = hidden(base, seed);
        let drive = emulated(&hidden.spec, &hidden.habits, seed);
        let prng = Prng::new(seed, "trouble");
        let mut drive = Troubled { drive, prng, is_busy: true, answers_left: u64::MAX };
        let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
        check_layout(&hidden.spec, &found);
        check_mapping(&hidden.spec, &found);
        check_seeks(&hidden.spec, &found);
    }
}

#[test]
fn what_the_drive_does_for_itself_meanwhile_is_stood() {
    let mut hidden = hidden("exos-7e8-8tb", 4);
    let (every, lasts) = (SimDuration::from_secs(1), SimDuration::from_ms(60));
    hidden.habits.activity = Some(Activity { every, lasts });
    let found = extracted(&hidden, false);
    check_layout(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
}

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

#[test]
fn blocks_that_cannot_be_read_are_told_and_passed_over() {
    let hidden = hidden("exos-7e8-8tb", 4);
    let per_track = u64::from(hidden.spec.zones[0].blocks_per_track);
    // The first ones of the drive, a track's end, and one of two thousand elsewhere.
    let count = emulated(&hidden.spec, &hidden.habits, 1).blocks().get();
    let mut prng = Prng::new(3, "bad blocks");
    let places = [0, 1, per_track - 1, per_track].into_iter();
    let bad: Vec<u64> = places.chain((0..count / 2000).map(|_| prng.below(count))).collect();
    let bad = BadBlocks::new(bad.into_iter().map(Lbn::new), SimDuration::from_ms(300));
    let drive = EmulatedDrive::new(&hidden.spec, "hidden", &hidden.habits, bad.clone(), 4).unwrap();
    let mut drive = VirtualDrive::new(drive);
    let found = extract(&mut drive, &options(), Journal::default(), &|_, _, _| {}).unwrap();
    check_layout(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    assert!(found.unreadable.contains(&0) && found.unreadable.len() > 8);
    let are_bad = |block: &u64| bad.first_in(Lbn::new(*block), 1).is_some();
    assert!(found.unreadable.iter().all(are_bad));
}

#[test]
fn an_extraction_that_breaks_off_again_and_again_goes_on_and_finds_the_same() {
    let hidden = hidden("atlas10k", 10);
    let head = JournalHead { blocks: 1, seed: 1, writes: false };
    let mut text = head.line() + "\n";
    let mut sessions = 0;
    let found = loop {
        sessions += 1;
        // Each time the drive stands at another angle, and its clock begins anew.
        let drive = emulated(&hidden.spec, &hidden.habits, sessions);
        let prng = Prng::new(sessions, "trouble");
        let mut drive = Troubled { drive, prng, is_busy: false, answers_left: 7_001 };
        drive.drive.sleep_until(SimTime::from_ns(sessions * 1_234_567));
        let past = read_journal(&text, &head).unwrap();
        let keep = Box::new(|entry: &JournalEntry| {
            text += &(entry.line() + "\n");
            Ok(())
        });
        match extract(&mut drive, &options(), Journal { past, keep }, &|_, _, _| {}) {
            Ok(found) => break found,
            Err(ExtractError::Gone(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(sessions > 4, "{sessions}");
    check_layout(&hidden.spec, &found);
    check_mapping(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    assert_eq!(found.commands as usize, text.lines().count() - 1, "nothing was asked twice");
}

#[test]
fn a_journal_of_another_drive_is_refused() {
    let hidden = hidden("atlas10k", 10);
    let entry = JournalEntry {
        session: 0,
        op: Op::Read,
        block: u64::MAX,
        blocks: 1,
        sent: SimTime::ZERO,
        end: SimTime::ZERO,
        is_bad: false,
    };
    let journal = Journal { past: [entry].into(), ..Journal::default() };
    let mut drive = emulated(&hidden.spec, &hidden.habits, 1);
    let error = extract(&mut drive, &options(), journal, &|_, _, _| {}).unwrap_err();
    assert!(error.to_string().contains("another drive"), "{error}");
}

#[test]
fn heads_are_counted_by_time_where_all_skews_are_alike() {
    for seed in [4, 8] {
        let mut hidden = hidden("exos-7e8-8tb", seed);
        hidden.spec.surfaces = 6;
        hidden.spec.head_switch = SimDuration::from_us(880);
        for zone in &mut hidden.spec.zones {
            let sectors = u64::from(zone.blocks_per_track);
            zone.cylinder_skew = Turn::from_ratio(sectors / 4, sectors).unwrap();
            zone.track_skew = zone.cylinder_skew;
        }
        let found = extracted(&hidden, false);
        check_layout(&hidden.spec, &found);
        check_mapping(&hidden.spec, &found);
        check_seeks(&hidden.spec, &found);
    }
}
