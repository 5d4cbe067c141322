//! Tracks of drives whose surfaces differ.

use freewheel_extract::{ExtractOptions, Extraction, Journal, TrackMap, extract, track_map};
use freewheel_model::drive::spec::{CurveSpec, Direction, DriveSpec, Hole, Mapping, Turn};
use freewheel_model::drive::{Drive, spec::ZoneSpec};
use freewheel_sim::black_box::Behaviour;
use freewheel_sim::library;
use freewheel_units::{Lbn, Prng, SimDuration};

use crate::hidden::{emulated, options};

const SURFACES: u32 = 10;

/// Ten densities, bands there and back with surfaces forward, surfaces 20 to 60 tracks out of line, a
/// sixteenth of a turn from track to track, holes of tracks and of parts of them.
fn like_x300(seed: u64, width: u32, cylinders: u32, zones: u32) -> DriveSpec {
    let mut spec = library::spec("toshiba-x300-5tb").unwrap();
    let mut prng = Prng::new(seed, "surfaces");
    let mut between = |from: u64, to: u64| (from + prng.below(to - from)) as u32;
    spec.surfaces = SURFACES;
    spec.mapping = Mapping::Band {
        cylinders: width,
        cylinder_order: Direction::Serpentine,
        surface_order: Direction::Forward,
    };
    spec.surface_offsets =
        (0..SURFACES).map(|s| if s == 0 { 0 } else { between(20, 61) }).collect();
    spec.rotation_period = SimDuration::from_ns(8_333_333);
    let like = spec.zones[0].clone();
    let sectors = spec.electronics.sector.physical_blocks();
    spec.zones = (0..zones)
        .map(|zone| {
            let first_cylinder = zone * cylinders;
            let outer = 500 - zone * 60;
            let densities = (0..SURFACES).map(|_| (outer - between(0, 40)) * sectors);
            let mut zone = ZoneSpec {
                first_cylinder,
                last_cylinder: first_cylinder + cylinders - 1,
                blocks_per_track: outer * sectors,
                surface_blocks_per_track: densities.collect(),
                track_skew: Turn::from_ratio(3, 29).unwrap(),
                cylinder_skew: Turn::from_ratio(1, 16).unwrap(),
                band_skews: Vec::new(),
                spares: 0,
                ..like.clone()
            };
            let at = first_cylinder + between(5, u64::from(cylinders) - 10);
            let surface = between(0, SURFACES.into());
            let tracks = Hole {
                surface,
                first_cylinder: at,
                last_cylinder: at + between(0, 4),
                first_block: 0,
                blocks: None,
            };
            let (begin, length) = (between(20, 150) * sectors, between(1, 200) * sectors);
            let part = Hole {
                surface: (surface + 3) % SURFACES,
                last_cylinder: at,
                first_block: begin,
                blocks: Some(length),
                ..tracks
            };
            zone.holes = vec![tracks, part];
            zone
        })
        .collect();
    spec.cylinders = zones * cylinders + 61;
    spec.seek.read = CurveSpec::ThreePoint { single_ms: 0.6, average_ms: 4.0, full_ms: 8.0 };
    spec.seek.write = None;
    spec
}

/// First block of every track, from the drive itself.
fn true_firsts(drive: &Drive) -> Vec<u64> {
    let (mut at, mut firsts) = (Lbn::new(0), Vec::new());
    while at.get() < drive.blocks().get() {
        firsts.push(at.get());
        at = drive.layout().track_bounds(at).1;
    }
    firsts
}

fn found(spec: &DriveSpec, behaviour: &Behaviour, seed: u64) -> TrackMap {
    let mut drive = emulated(spec, behaviour, seed);
    track_map(&mut drive, &options(), Journal::default(), &|_| {}).unwrap()
}

#[test]
fn track_bounds_with_holes_are_exact() {
    for seed in 1..=2 {
        let spec = like_x300(seed, 120, 480, 2);
        let drive = Drive::build(&spec).unwrap();
        let map = found(&spec, &Behaviour::default(), seed);
        let firsts: Vec<u64> = map.track_firsts().collect();
        let truth = true_firsts(&drive);
        let wrong = firsts.iter().filter(|first| truth.binary_search(first).is_err()).count();
        let missing = truth.iter().filter(|first| firsts.binary_search(first).is_err()).count();
        println!(
            "seed {seed}: {} tracks in {} stretches, {} commands, {:.0} s",
            map.tracks(),
            map.stretches.len(),
            map.commands,
            map.drive_ns as f64 / 1e9
        );
        assert_eq!((wrong, missing), (0, 0), "seed {seed}");
        assert!((map.rotation_ns - 8_333_333.0).abs() < 100.0, "{}", map.rotation_ns);
    }
}

/// Cylinder, head and sector of every block.
fn places(drive: &Drive) -> Vec<[u32; 3]> {
    let at = |block: u64| drive.layout().run(Lbn::new(block), 1).at;
    (0..drive.blocks().get()).map(at).map(|at| [at.cylinder, at.surface, at.sector]).collect()
}

fn file_of(spec: &DriveSpec, behaviour: &Behaviour, seed: u64) -> Extraction {
    let mut drive = emulated(spec, behaviour, seed);
    let options = ExtractOptions { surfaces: true, ..options() };
    extract(&mut drive, &options, Journal::default(), &|_| {}).unwrap()
}

#[test]
fn drive_file_of_different_surfaces_places_blocks() {
    for seed in 1..=3 {
        let mut spec = like_x300(seed, 120, 480, 2);
        if seed == 2 {
            spec.mapping = Mapping::Band {
                cylinders: 120,
                cylinder_order: Direction::Forward,
                surface_order: Direction::Serpentine,
            };
        }
        let found = file_of(&spec, &Behaviour::default(), seed);
        let text = toml::to_string(&found.spec).unwrap();
        let file = Drive::build(&toml::from_str(&text).unwrap()).unwrap();
        let truth = Drive::build(&spec).unwrap();
        println!(
            "seed {seed}: {} commands, {:.0} s; offsets {:?} for {:?}; held out {:?}",
            found.commands,
            found.drive_ns as f64 / 1e9,
            found.spec.surface_offsets,
            spec.surface_offsets,
            found.held_out.iter().map(|one| one.demerit.ns() / 1000).collect::<Vec<_>>()
        );
        let (right, own) = (places(&truth), places(&file));
        assert_eq!(own.len(), right.len(), "seed {seed}");
        let wrong: Vec<_> = own.iter().zip(&right).filter(|(a, b)| a != b).take(5).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        assert!(found.misplaced.is_empty(), "seed {seed}: {:?}", found.misplaced);
    }
}

/// A file of a drive whose last band of each zone is narrow, and where spares take the end of the last one.
fn with_narrow_bands(name: &str, mut spec: DriveSpec, seed: u64) {
    let last = spec.zones.last_mut().unwrap();
    last.spares = 100 * u64::from(last.blocks_per_track);
    let found = file_of(&spec, &Behaviour::default(), seed);
    let file = Drive::build(&found.spec).unwrap();
    let (right, own) = (places(&Drive::build(&spec).unwrap()), places(&file));
    let wrong = own.iter().zip(&right).filter(|(a, b)| a != b).count();
    println!("{name}: {} zones, {} commands", found.spec.zones.len(), found.commands);
    assert_eq!((wrong, own.len()), (0, right.len()), "{name}");
    assert_eq!(found.spec.zones.len(), spec.zones.len(), "{name}");
    assert_eq!(found.spec.mapping, spec.mapping, "{name}");
}

#[test]
fn narrow_last_bands_are_placed() {
    with_narrow_bands("forward", like_x300(1, 120, 4 * 120 + 70, 2), 1);
    let mut whole = like_x300(4, 120, 4 * 120 + 70, 2);
    whole.zones.iter_mut().for_each(|zone| zone.holes.clear());
    with_narrow_bands("without holes", whole, 4);
    let mut turning = like_x300(2, 120, 4 * 120 + 70, 2);
    turning.mapping = Mapping::Band {
        cylinders: 120,
        cylinder_order: Direction::Forward,
        surface_order: Direction::Serpentine,
    };
    with_narrow_bands("surfaces turn", turning, 2);
}

#[test]
fn surfaces_of_equal_density_differ_by_steps() {
    let mut spec = like_x300(3, 120, 6 * 120 + 70, 2);
    spec.surface_offsets.clear();
    for zone in &mut spec.zones {
        zone.surface_blocks_per_track.clear();
        zone.holes.clear();
        zone.band_skews = vec![Turn::from_ratio(27, 100).unwrap()];
    }
    spec.cylinders = 2 * (6 * 120 + 70);
    with_narrow_bands("equal", spec, 3);
}

/// The hole moved this many cylinders inwards, in its zone.
fn moved(hole: &Hole, by: u32) -> Hole {
    let [first_cylinder, last_cylinder] =
        [hole.first_cylinder, hole.last_cylinder].map(|cylinder| cylinder + by);
    Hole { first_cylinder, last_cylinder, ..*hole }
}

#[test]
fn samples_share_layout_without_own_defects() {
    let mut of_all = like_x300(5, 60, 180, 2);
    let shared = of_all.zones[0].holes.clone();
    of_all.zones[1].holes.clear();
    let with_own = |by: u32| {
        let mut spec = of_all.clone();
        let zone = &mut spec.zones[0];
        let inside = |hole: &Hole| hole.last_cylinder <= zone.last_cylinder;
        let own: Vec<Hole> = shared.iter().map(|hole| moved(hole, by)).filter(inside).collect();
        zone.holes.extend(own);
        spec
    };
    let samples = [with_own(9), with_own(17)];
    let maps = samples.each_ref().map(|spec| {
        let map = found(spec, &Behaviour::default(), 5);
        TrackMap::from_csv(&map.to_csv()).unwrap()
    });
    let merged = TrackMap::merged(&maps).unwrap();
    let truth = Drive::build(&of_all).unwrap();
    let firsts: Vec<u64> = merged.map.track_firsts().collect();
    assert_eq!(firsts, true_firsts(&truth));
    assert_eq!(merged.map.blocks, truth.blocks().get());
    assert_eq!(merged.shared_holes, shared.len());
    assert!(merged.own_holes.iter().all(|own| *own > 0), "{:?}", merged.own_holes);
    let differ: Vec<&str> =
        merged.rows.iter().filter(|row| !row.agrees).map(|row| row.name.as_str()).collect();
    assert!(differ.is_empty(), "{differ:?}");
    // A table of its own is read again, and merging it with itself changes nothing.
    let twice = TrackMap::merged(&[merged.map.clone(), merged.map.clone()]).unwrap();
    assert_eq!(twice.map.track_firsts().collect::<Vec<_>>(), firsts);

    let mut denser = of_all.clone();
    denser.zones[1].surface_blocks_per_track[3] -= 8;
    let other = found(&denser, &Behaviour::default(), 5);
    let merged = TrackMap::merged(&[maps[0].clone(), other]).unwrap();
    let differ: Vec<&str> =
        merged.rows.iter().filter(|row| !row.agrees).map(|row| row.name.as_str()).collect();
    assert_eq!(differ, ["zone 2: blocks a track"]);
}
