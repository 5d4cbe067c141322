//! Drives whose parameters are hidden from who extracts them.

use freewheel_extract::{ExtractOptions, Extraction, Journal, extract};
use freewheel_model::drive::spec::{CurveSpec, DriveSpec, Mapping, Turn, ZoneSpec};
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive, VirtualDrive};
use freewheel_sim::library;
use freewheel_units::{Prng, SimDuration};

/// A drive to be found out.
pub struct Hidden {
    pub spec: DriveSpec,
    pub behaviour: Behaviour,
    pub seed: u64,
}

/// One of the shipped drives in small, with its parameters drawn anew.
pub fn hidden(base: &str, seed: u64) -> Hidden {
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
                surface_blocks_per_track: Vec::new(),
                holes: Vec::new(),
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
    if let Some(buffer) = &mut spec.electronics.buffer {
        buffer.segments = between(4, 24) as u32;
        (buffer.write_segments, buffer.dirty) = (1, None);
    }
    let behaviour = Behaviour {
        seek_jitter: Some(SimDuration::from_us(between(0, 40))),
        reply_jitter: SimDuration::from_us(between(0, 25)),
        ..Behaviour::default()
    };
    Hidden { spec, behaviour, seed }
}

pub fn emulated(spec: &DriveSpec, behaviour: &Behaviour, seed: u64) -> VirtualDrive {
    VirtualDrive::new(
        EmulatedDrive::new(spec, &spec.name, behaviour, BadBlocks::default(), seed).unwrap(),
    )
}

pub fn extracted(hidden: &Hidden, writes: bool) -> Extraction {
    let mut drive = emulated(&hidden.spec, &hidden.behaviour, hidden.seed);
    let options = ExtractOptions { name: "found".into(), seed: 1, writes, surfaces: false };
    extract(&mut drive, &options, Journal::default(), &|_| {}).unwrap()
}

pub fn options() -> ExtractOptions {
    ExtractOptions { name: "found".into(), seed: 1, writes: false, surfaces: false }
}
