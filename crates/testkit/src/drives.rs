//! Random small drives: every mapping, every sparing scheme, slips, remaps, skews.

use std::collections::BTreeSet;

use freewheel_model::drive::spec::{
    Advertised, ByOp, CurveSpec, Direction, DriveSpec, Hole, Mapping, SeekSpec, SpareUnit, Sparing,
    Turn, ZoneSpec,
};
use freewheel_model::drive::{Departure, Drive, Position, Target};
use freewheel_units::{Angle, Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

pub fn turn(prng: &mut Prng, sectors: u64) -> Turn {
    Turn::from_ratio(prng.below(sectors), sectors).unwrap()
}

fn mapping(prng: &mut Prng) -> Mapping {
    match prng.below(6) {
        0 => Mapping::Cylinder,
        1 => Mapping::Serpentine,
        2 => Mapping::SerpentineByZone,
        _ => Mapping::Band {
            cylinders: 1 + prng.below(4) as u32,
            cylinder_order: order(prng),
            surface_order: order(prng),
        },
    }
}

fn order(prng: &mut Prng) -> Direction {
    if prng.chance(0.5) { Direction::Forward } else { Direction::Serpentine }
}

fn spare_unit(prng: &mut Prng, mapping: &Mapping) -> SpareUnit {
    // In bands, a unit of cylinders is a whole number of bands.
    let (whole, alone) = match mapping {
        Mapping::Band { cylinders, .. } => (*cylinders, *cylinders == 1),
        _ => (1, true),
    };
    match prng.below(4) {
        0 => SpareUnit::Track,
        1 if alone => SpareUnit::Cylinder,
        1 | 2 => SpareUnit::CylinderRange(whole * (1 + prng.below(3) as u32)),
        _ => SpareUnit::Zone,
    }
}

fn zone(
    prng: &mut Prng,
    first_cylinder: u32,
    sparing: &Sparing,
    mapping: &Mapping,
    surfaces: u32,
) -> ZoneSpec {
    let blocks_per_track = 2 + prng.below(40) as u32;
    let cylinders = 1 + prng.below(9) as u32;
    let per_track = u64::from(blocks_per_track);
    let unit = match sparing.unit {
        SpareUnit::Track => per_track,
        SpareUnit::Cylinder => per_track * u64::from(surfaces),
        SpareUnit::CylinderRange(n) => per_track * u64::from(surfaces * n),
        SpareUnit::Zone => per_track * u64::from(surfaces * cylinders),
    };
    let total = per_track * u64::from(surfaces * cylinders);
    let spares = prng.below(unit.min(6));
    let slips = (0..prng.below(4)).map(|_| prng.below(total)).collect();
    let bands = if matches!(mapping, Mapping::Band { .. }) { prng.below(4) } else { 0 };
    ZoneSpec {
        first_cylinder,
        last_cylinder: first_cylinder + cylinders - 1,
        blocks_per_track,
        first_block: turn(prng, per_track),
        reserved_blocks: prng.below(total.min(5)),
        track_skew: turn(prng, per_track),
        cylinder_skew: turn(prng, per_track),
        surface_blocks_per_track: Vec::new(),
        holes: Vec::new(),
        band_skews: (0..bands).map(|_| turn(prng, per_track)).collect(),
        spares,
        slips: if spares > 0 || sparing.slip_to_zone_end { slips } else { Vec::new() },
        remaps: Vec::new(),
    }
}

/// A random spec; it may be one that `Drive::build` refuses.
pub fn random_spec(seed: u64) -> DriveSpec {
    let prng = &mut Prng::new(seed, "random drive");
    let surfaces = 1 + prng.below(5) as u32;
    let mapping = mapping(prng);
    let unit = spare_unit(prng, &mapping);
    let sparing = Sparing {
        unit,
        at_front: prng.chance(0.3),
        slip_to_zone_end: prng.chance(0.3),
        slips_turn_tracks: prng.chance(0.3),
    };
    let mut zones: Vec<ZoneSpec> = Vec::new();
    for _ in 0..1 + prng.below(4) {
        let gap = prng.below(2) as u32;
        let first = zones.last().map_or(0, |zone| zone.last_cylinder + 1) + gap;
        zones.push(zone(prng, first, &sparing, &mapping, surfaces));
    }
    let cylinders = zones.last().unwrap().last_cylinder + 1 + prng.below(2) as u32;
    DriveSpec {
        name: format!("random-{seed}"),
        model: "random".into(),
        year: Some(2000),
        actuators: 1,
        surfaces,
        cylinders,
        rotation_period: SimDuration::from_ns(3_000_000 + prng.below(9_000_000)),
        mapping,
        sparing,
        surface_offsets: Vec::new(),
        head_switch: us(prng, 2000),
        seek: SeekSpec {
            read: random_curve(prng),
            write: prng.chance(0.5).then(|| random_curve(prng)),
            write_settle: us(prng, 500),
            tolerance: SimDuration::ZERO,
        },
        zero_latency: ByOp { read: prng.chance(0.5), write: prng.chance(0.5) },
        overhead: ByOp { read: us(prng, 300), write: us(prng, 300) },
        zones,
        electronics: Default::default(),
        measured_on: None,
        zoned: None,
        advertised: Advertised::default(),
        held_out: Vec::new(),
        sources: Default::default(),
    }
}

fn us(prng: &mut Prng, max: u64) -> SimDuration {
    SimDuration::from_us(prng.below(max))
}

/// A curve that is not monotone, like measured curves.
fn random_curve(prng: &mut Prng) -> CurveSpec {
    let points = 2 + prng.below(4) as u32;
    let cylinders_ms =
        (0..points).map(|i| (1 + 3 * i, 0.1 + f64::from(i) + prng.unit() * 2.0)).collect();
    CurveSpec::Table { cylinders_ms }
}

/// Adds up to `wanted` remaps from data blocks to unused sectors.
pub fn with_remaps(mut spec: DriveSpec, wanted: usize, seed: u64) -> DriveSpec {
    let Ok(drive) = Drive::build(&spec) else { return spec };
    let prng = &mut Prng::new(seed, "remaps");
    for (index, zone) in spec.zones.iter_mut().enumerate() {
        let per_track = u64::from(zone.blocks_per_track);
        let tracks =
            u64::from(zone.last_cylinder - zone.first_cylinder + 1) * u64::from(spec.surfaces);
        let (mut data, mut unused): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for position in 0..tracks * per_track {
            if zone.slips.contains(&position) {
                continue;
            }
            let place = place_of(&spec.mapping, spec.surfaces, zone, position);
            let list = if drive.layout().lbn_at(place).is_some() { &mut data } else { &mut unused };
            list.push(position);
        }
        if drive.layout().zones()[index].blocks().get() == 0 {
            continue;
        }
        for _ in 0..wanted.min(unused.len()).min(data.len()) {
            let from = data.swap_remove(prng.below(data.len() as u64) as usize);
            let to = unused.swap_remove(prng.below(unused.len() as u64) as usize);
            zone.remaps.push((from, to));
        }
    }
    spec
}

/// The sector at a position of a zone, worked out step by step.
pub fn place_of(
    mapping: &Mapping,
    surfaces: u32,
    zone: &ZoneSpec,
    position: u64,
) -> freewheel_model::drive::Physical {
    let per_track = u64::from(zone.blocks_per_track);
    let (track, sector) = ((position / per_track) as usize, (position % per_track) as u32);
    let Track { cylinder, surface, .. } = tracks_of(mapping, surfaces, zone)[track];
    freewheel_model::drive::Physical { cylinder, surface, sector }
}

/// A track in the list of all tracks.
pub struct Track {
    pub cylinder: u32,
    pub surface: u32,
    /// Number of its cylinder or band.
    pub band: usize,
    /// True if the track before is on the same surface of the same band.
    pub same_surface: bool,
}

/// The tracks of a zone in LBN order, written down one after the other.
pub fn tracks_of(mapping: &Mapping, surfaces: u32, zone: &ZoneSpec) -> Vec<Track> {
    let in_zone: Vec<u32> = (zone.first_cylinder..=zone.last_cylinder).collect();
    let (width, cylinder_order, surface_order) = match *mapping {
        Mapping::Band { cylinders, cylinder_order, surface_order } => {
            (cylinders as usize, cylinder_order, surface_order)
        }
        Mapping::Cylinder => (1, Direction::Forward, Direction::Forward),
        Mapping::Serpentine | Mapping::SerpentineByZone => {
            (1, Direction::Forward, Direction::Serpentine)
        }
    };
    // The first cylinder of all is even, the first of the zone need not be.
    let late = *mapping == Mapping::Serpentine && zone.first_cylinder % 2 == 1;
    let mut tracks = Vec::new();
    for (band, cylinders) in in_zone.chunks(width).enumerate() {
        let mut heads: Vec<u32> = (0..surfaces).collect();
        if surface_order == Direction::Serpentine && (band + usize::from(late)) % 2 == 1 {
            heads.reverse();
        }
        for (nth, &surface) in heads.iter().enumerate() {
            let mut along = cylinders.to_vec();
            if cylinder_order == Direction::Serpentine && nth % 2 == 1 {
                along.reverse();
            }
            for (step, &cylinder) in along.iter().enumerate() {
                tracks.push(Track { cylinder, surface, band, same_surface: step > 0 });
            }
        }
    }
    tracks
}

/// Kind of skew between two tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkewKind {
    Track,
    Cylinder,
    Band,
}

impl SkewKind {
    pub const ALL: [Self; 3] = [Self::Track, Self::Cylinder, Self::Band];

    /// Kind of skew between a track and the next in LBN order.
    pub fn between(mapping: &Mapping, track: &Track, next: &Track) -> Self {
        let in_bands = matches!(mapping, Mapping::Band { .. });
        match (next.same_surface, next.band == track.band) {
            (true, _) => Self::Cylinder,
            (false, true) => Self::Track,
            (false, false) if in_bands => Self::Band,
            (false, false) => Self::Cylinder,
        }
    }

    /// The skew of this kind, after the band `band` where skews differ by band.
    pub fn of(self, zone: &ZoneSpec, band: usize) -> Turn {
        match self {
            Self::Track => zone.track_skew,
            Self::Cylinder => zone.cylinder_skew,
            Self::Band => {
                zone.band_skews.iter().cycle().nth(band).copied().unwrap_or(zone.track_skew)
            }
        }
    }
}

/// Sectors of a whole sparing unit.
pub fn unit_sectors(spec: &DriveSpec, zone: &ZoneSpec) -> u64 {
    let per_track = u64::from(zone.blocks_per_track);
    let cylinders = match spec.sparing.unit {
        SpareUnit::Track => return per_track,
        SpareUnit::Zone => zone.last_cylinder - zone.first_cylinder + 1,
        SpareUnit::Cylinder => 1,
        SpareUnit::CylinderRange(n) => n,
    };
    per_track * u64::from(spec.surfaces) * u64::from(cylinders)
}

/// Sectors by which slips turn a track: one for each slip in a unit before that of the track.
pub fn sectors_turned(spec: &DriveSpec, zone: &ZoneSpec, track: u64) -> u64 {
    if !spec.sparing.slips_turn_tracks {
        return 0;
    }
    let (per_track, unit) = (u64::from(zone.blocks_per_track), unit_sectors(spec, zone));
    let slips: BTreeSet<u64> = zone.slips.iter().copied().collect();
    slips.iter().filter(|&slip| slip / unit < track * per_track / unit).count() as u64
}

/// Drive in bands whose surfaces differ in density and place and have holes; other drives as they are.
pub fn with_surface_zones(mut spec: DriveSpec, seed: u64) -> DriveSpec {
    if !matches!(spec.mapping, Mapping::Band { .. }) {
        return spec;
    }
    let prng = &mut Prng::new(seed, "surfaces that differ");
    let surfaces = spec.surfaces as usize;
    spec.sparing = Sparing::default();
    spec.surface_offsets = (0..surfaces).map(|_| prng.below(4) as u32).collect();
    spec.cylinders += 4;
    for zone in &mut spec.zones {
        (zone.reserved_blocks, zone.slips, zone.spares) = (0, Vec::new(), prng.below(6));
        zone.surface_blocks_per_track =
            (0..surfaces).map(|_| zone.blocks_per_track + prng.below(5) as u32).collect();
        zone.holes = (0..prng.below(4)).map(|_| hole(prng, zone, spec.surfaces)).collect();
    }
    spec
}

fn hole(prng: &mut Prng, zone: &ZoneSpec, surfaces: u32) -> Hole {
    let surface = prng.below(surfaces.into()) as u32;
    let cylinders = u64::from(zone.cylinders());
    let mut edges = [0; 2].map(|_| zone.first_cylinder + prng.below(cylinders) as u32);
    edges.sort_unstable();
    let sectors = zone.blocks_per_track_on(surface);
    let first_block = if prng.chance(0.5) { 0 } else { prng.below(sectors.into()) as u32 };
    let rest = u64::from(sectors - first_block);
    let blocks = prng.chance(0.5).then(|| 1 + prng.below(rest) as u32);
    Hole { surface, first_cylinder: edges[0], last_cylinder: edges[1], first_block, blocks }
}

/// Drives that build, with a few remaps; every fourth that is in bands has surfaces that differ.
pub fn any_drive() -> impl Strategy<Value = (DriveSpec, Drive)> {
    any::<u64>().prop_filter_map("spec does not build", |seed| {
        let spec = if seed % 4 == 1 {
            with_surface_zones(random_spec(seed), seed)
        } else {
            with_remaps(random_spec(seed), (seed % 3) as usize, seed)
        };
        Drive::build(&spec).ok().map(|drive| (spec, drive))
    })
}

/// Times at which the sector of `lbn` next begins to pass at or after `now`, and has passed.
pub fn passage(drive: &Drive, lbn: Lbn, now: SimTime) -> (SimTime, SimTime) {
    let place = drive.layout().locate(lbn);
    let zone = drive.layout().zone_at(place.cylinder, place.surface).unwrap();
    let sectors = u64::from(drive.layout().zones()[zone].blocks_per_track());
    let start = drive.layout().track_start(place.cylinder, place.surface).unwrap();
    let begin = now + drive.rotation().wait(now, angle(u64::from(place.sector), start, sectors));
    let end =
        begin + drive.rotation().wait(begin, angle(u64::from(place.sector) + 1, start, sectors));
    (begin, end)
}

fn angle(sector: u64, start: Angle, sectors: u64) -> Angle {
    start + Angle::from_ratio(sector, sectors)
}

pub fn any_position(prng: &mut Prng, spec: &DriveSpec) -> Position {
    Position {
        cylinder: prng.below(u64::from(spec.cylinders)) as u32,
        surface: prng.below(u64::from(spec.surfaces)) as u32,
    }
}

/// A head and where it goes: often on the track already, just when some sector's edge arrives.
pub fn any_departure(
    prng: &mut Prng,
    spec: &DriveSpec,
    drive: &Drive,
    most: u64,
) -> (Departure, Target) {
    let start = prng.below(drive.blocks().get());
    let count = 1 + prng.below((drive.blocks().get() - start).min(most));
    let target = drive.target(Lbn::new(start), Blocks::new(count), op(prng));
    let now = SimTime::from_ns(prng.below(1 << 40));
    let read_write_switch = SimDuration::from_us(if prng.chance(0.5) { 0 } else { 700 });
    let (begin, from) = if prng.chance(0.5) {
        (passage(drive, Lbn::new(start + prng.below(count)), now).0, target.at)
    } else {
        (now, any_position(prng, spec))
    };
    (Departure { begin, from, last_op: op(prng), read_write_switch }, target)
}

fn op(prng: &mut Prng) -> Op {
    if prng.chance(0.5) { Op::Read } else { Op::Write }
}
