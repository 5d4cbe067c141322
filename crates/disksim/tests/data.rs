//! The importer on DiskSim's own validated drives and on a modern G4 sample. The files may not be
//! redistributed.
#![allow(missing_docs)]

#[path = "disksim/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;

use common::G4;
use freewheel_disksim::{Imported, import};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{Direction, DriveSpec, Mapping, Turn};
use freewheel_testkit::data;
use freewheel_units::{Lbn, Op, Prng, SimDuration};

fn unpacked(path: &Path) -> String {
    String::from_utf8(zstd::decode_all(fs::File::open(path).unwrap()).unwrap()).unwrap()
}

/// The text of a file that the importer asks for, unpacked if it is there packed only.
fn text(name: &str) -> Option<String> {
    let name = format!("validate/{name}");
    let plain = data::find(&name).map(|path| fs::read_to_string(path).unwrap());
    plain.or_else(|| Some(unpacked(&data::find(&format!("{name}.zst"))?)))
}

/// Imports from `NAME.parv` alone; everything else comes through the resolver.
fn imported(name: &str) -> Imported {
    let file = format!("{name}.parv");
    let parv = fs::read_to_string(data::file(&format!("validate/{file}"))).unwrap();
    import(&[(&file, &parv)], &text).unwrap_or_else(|error| panic!("{error}"))
}

/// DiskSim's validated drives and the ones that ship.
const SAME: [(&str, &str); 4] = [
    ("atlas10k", "atlas10k"),
    ("cheetah4LP", "cheetah4lp"),
    ("cheetah9LP", "cheetah9lp"),
    ("ibm18es", "ultrastar9es"),
];

fn shipped(name: &str) -> DriveSpec {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../drives/{name}.toml"));
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn imported_drives_place_blocks_like_shipped() {
    for (name, ours) in SAME {
        let imported = imported(name);
        let (theirs, spec) = (Drive::build(&imported.spec).unwrap(), shipped(ours));
        let ours = Drive::build(&spec).unwrap();
        assert_eq!(theirs.blocks(), ours.blocks(), "{name}");
        let mut prng = Prng::new(1, name);
        for _ in 0..10_000 {
            let lbn = Lbn::new(prng.below(ours.blocks().get()));
            let place = ours.layout().locate(lbn);
            assert_eq!(theirs.layout().locate(lbn), place, "{name}: {lbn:?}");
            let start = |drive: &Drive| drive.layout().track_start(place.cylinder, place.surface);
            assert_eq!(start(&theirs), start(&ours), "{name}: track of {lbn:?}");
        }
    }
}

#[test]
fn imported_drives_move_like_shipped() {
    for (name, ours) in SAME {
        let imported = imported(name);
        let spec = shipped(ours);
        assert_eq!(imported.spec.rotation_period, spec.rotation_period, "{name}");
        assert_eq!(imported.spec.zero_latency, spec.zero_latency, "{name}");
        let (theirs, ours) = (Drive::build(&imported.spec).unwrap(), Drive::build(&spec).unwrap());
        for distance in 0..spec.cylinders {
            for (op, switch) in [(Op::Read, false), (Op::Write, false), (Op::Write, true)] {
                let time = |drive: &Drive| drive.seek().time_ns(op, distance, switch);
                assert_eq!(time(&theirs), time(&ours), "{name}: {distance} cylinders");
            }
        }
    }
}

#[test]
fn imported_drives_have_shipped_electronics() {
    for (name, ours) in SAME {
        let imported = imported(name);
        let (theirs, ours) = (&imported.spec, shipped(ours));
        assert_eq!(theirs.electronics_as_measured(), ours.electronics_as_measured(), "{name}");
        // The bus is that of the host; the drive's own is not in the parameters.
        assert_eq!(theirs.measured_on, ours.measured_on, "{name}");
        assert_eq!(theirs.electronics.bus.unwrap().block_time, SimDuration::ZERO, "{name}");
        assert!(imported.notes.iter().any(|note| note.contains("slower than the media")), "{name}");
    }
}

#[test]
fn import_lists_surplus_values_with_lines() {
    let imported = imported("cheetah4LP");
    for lost in &imported.not_represented {
        println!("{}:{} {} = {}: {}", lost.file, lost.line, lost.name, lost.value, lost.why);
    }
    println!("{:#?}", imported.notes);
    let find = |name: &str| imported.not_represented.iter().find(|lost| lost.name == name);
    let average = find("Avg sectors per cylinder").unwrap();
    assert_eq!((average.file.as_str(), average.value.as_str()), ("cheetah4LP.diskspecs", "1350"));
    assert!(find("Hold bus entire read xfer").is_none(), "0 means off");
    let says = |text: &str| imported.notes.iter().any(|note| note.contains(text));
    assert!(says("defect 233375 stands in for itself"));
    assert!(says("are not about the drive"));
}

#[test]
fn g4_sample_has_capacity_of_layout() {
    let imported = imported("G4_LBA_64bit_4T");
    let drive = Drive::build(&imported.spec).unwrap();
    // The end of the last run in the file's root, and not the 7725673570 that the model states.
    assert_eq!(drive.blocks().get(), 7_542_225_920);
    assert_eq!((imported.spec.zones.len(), imported.spec.cylinders), (59, 310_194));
    let zone = &imported.spec.zones[58];
    assert_eq!(
        (zone.first_cylinder, zone.last_cylinder, zone.blocks_per_track),
        (298_496, 303_103, 1560)
    );
    let (cylinder_order, surface_order) = (Direction::Serpentine, Direction::Serpentine);
    let mapping = Mapping::Band { cylinders: 128, cylinder_order, surface_order };
    assert_eq!(imported.spec.mapping, mapping);
    let nano = |turn: Turn| turn.to_string().strip_suffix("/1000000000").unwrap().parse::<i64>();
    let each = 141_669_000;
    assert_eq!(nano(zone.cylinder_skew), Ok(each));
    // Every run on a head begins at the angle of its index, which holds two bands.
    let back = |tracks: i64| Ok((-tracks * each).rem_euclid(1_000_000_000));
    assert_eq!(nano(zone.track_skew), back(127));
    assert_eq!(
        zone.band_skews.iter().map(|&skew| nano(skew)).collect::<Vec<_>>(),
        [back(127), back(126)]
    );
    for lost in &imported.not_represented {
        println!("{}:{} {} = {}: {}", lost.file, lost.line, lost.name, lost.value, lost.why);
    }
    println!("{:#?}", imported.notes);
    let find = |name: &str| imported.not_represented.iter().find(|lost| lost.name == name);
    assert!(find("IDX").is_none(), "the order of the tracks is that of the file");
    assert_eq!(find("Bulk sector transfer time").unwrap().value, "-0.015000");
    assert_eq!(imported.spec.electronics.queue.unwrap().depth, 8);
    assert!(imported.notes.iter().any(|note| note.contains("states a block count of 7725673570")));
}

#[test]
fn g4_sample_places_blocks_by_tables() {
    let name = "G4_LBA_64bit_4T";
    let imported = imported(name);
    let drive = Drive::build(&imported.spec).unwrap();
    let tables = G4::new(&unpacked(&data::file(&format!("validate/{name}.layout.zst"))));
    let blocks = drive.blocks().get();
    assert_eq!(tables.blocks(), blocks as i64);
    let mut prng = Prng::new(1, name);
    let anywhere: Vec<u64> = (0..10_000).map(|_| prng.below(blocks)).collect();
    // The ends of the zones are rare among them.
    let zones = drive.layout().zones().iter().map(|zone| zone.first_lbn().get());
    let ends = zones.flat_map(|first| [first, first.saturating_sub(1)]);
    for lbn in anywhere.into_iter().chain(ends).chain([blocks - 1]) {
        tables.check(&drive, lbn);
    }
}

#[test]
fn imported_drive_survives_round_trip() {
    for name in SAME.map(|(name, _)| name).into_iter().chain(["G4_LBA_64bit_4T"]) {
        let imported = imported(name);
        let file = toml::to_string(&imported.spec).unwrap();
        assert_eq!(toml::from_str::<DriveSpec>(&file).unwrap(), imported.spec, "{name}");
        let source = imported.spec.source_of("electronics.buffer").unwrap();
        assert_eq!(
            source,
            format!("measured: imported from {name}.diskspecs (DiskSim parameters)")
        );
    }
}
