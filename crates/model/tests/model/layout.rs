//! The layout against a slow, obvious one: a list of every sector of the drive.

use std::collections::BTreeMap;

use freewheel_model::drive::spec::{Direction, DriveSpec, Hole, Mapping, SpareUnit, ZoneSpec};
use freewheel_model::drive::{Drive, Layout, Physical};
use freewheel_testkit::drives::{
    SkewKind, Track, any_drive, place_of, sectors_turned, tracks_of, unit_sectors,
};
use freewheel_units::{Angle, Blocks, Lbn, Op, SimTime};
use proptest::prelude::*;

/// Positions of a zone that carry data, in LBN order, remaps left aside: walk the sparing units,
/// keep what is data, drop what slipped.
fn data_positions(spec: &DriveSpec, zone: &ZoneSpec) -> Vec<u64> {
    let per_track = u64::from(zone.blocks_per_track);
    let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
    let total = per_track * u64::from(spec.surfaces) * cylinders;
    let unit = unit_sectors(spec, zone);
    let mut data = Vec::new();
    let mut start = 0;
    while start < total {
        let end = (start + unit).min(total);
        let whole = end - start == unit;
        let spares = if whole { zone.spares } else { 0 };
        let front = if spec.sparing.at_front { spares } else { 0 };
        let room = end - start - spares;
        let candidates = start + front..end;
        if spec.sparing.slip_to_zone_end {
            data.extend(candidates.take(room as usize).filter(|p| !zone.slips.contains(p)));
        } else {
            data.extend(candidates.filter(|p| !zone.slips.contains(p)).take(room as usize));
        }
        start = end;
    }
    data.drain(..zone.reserved_blocks as usize);
    data
}

/// Sectors of a zone whose surfaces differ, in LBN order: track after track, without the holes, and in the
/// end without the spares.
fn surface_places(spec: &DriveSpec, zone: &ZoneSpec) -> Vec<Physical> {
    let in_hole = |track: &Track, sector: u32| {
        zone.holes.iter().any(|hole| {
            let end = hole.blocks.map_or(u32::MAX, |blocks| hole.first_block + blocks);
            hole.surface == track.surface
                && (hole.first_cylinder..=hole.last_cylinder).contains(&track.cylinder)
                && (hole.first_block..end).contains(&sector)
        })
    };
    let mut places = Vec::new();
    for track in tracks_of(&spec.mapping, spec.surfaces, zone) {
        let Track { cylinder, surface, .. } = track;
        let sectors = zone.surface_blocks_per_track[surface as usize];
        let data = (0..sectors).filter(|&sector| !in_hole(&track, sector));
        let cylinder = cylinder + spec.surface_offsets[surface as usize];
        places.extend(data.map(|sector| Physical { cylinder, surface, sector }));
    }
    places.truncate(places.len() - zone.spares as usize);
    places
}

/// Every sector of the drive that holds a block, in LBN order.
fn oracle(spec: &DriveSpec) -> Vec<Physical> {
    if spec.has_surface_zones() {
        return spec.zones.iter().flat_map(|zone| surface_places(spec, zone)).collect();
    }
    let mut places = Vec::new();
    for zone in &spec.zones {
        let stand_ins: BTreeMap<u64, u64> = zone.remaps.iter().copied().collect();
        for position in data_positions(spec, zone) {
            let position = stand_ins.get(&position).copied().unwrap_or(position);
            places.push(place_of(&spec.mapping, spec.surfaces, zone, position));
        }
    }
    places
}

/// Angles at which the tracks of a zone begin, in LBN order: skew added to skew.
fn track_starts(spec: &DriveSpec, zone: &ZoneSpec) -> Vec<Angle> {
    let tracks = tracks_of(&spec.mapping, spec.surfaces, zone);
    let mut at = zone.first_block.angle();
    let mut starts = vec![at];
    for pair in tracks.windows(2) {
        let kind = SkewKind::between(&spec.mapping, &pair[0], &pair[1]);
        at += kind.of(zone, pair[0].band).angle();
        starts.push(at);
    }
    for (at, track) in starts.iter_mut().zip(0..) {
        *at += Angle::from_ratio(sectors_turned(spec, zone, track), zone.blocks_per_track.into());
    }
    starts
}

/// Steps of 2^-32 turn between two angles, the shorter way round.
fn apart(a: Angle, b: Angle) -> u32 {
    (a - b).steps().min((b - a).steps())
}

fn check_run(spec: &DriveSpec, layout: &Layout, places: &[Physical], start: usize, wanted: u32) {
    let run = layout.run(Lbn::new(start as u64), wanted);
    assert!(run.blocks >= 1 && run.blocks <= wanted);
    for k in 0..run.blocks {
        let expected = Physical { sector: run.at.sector + k, ..run.at };
        assert_eq!(places[start + k as usize], expected, "block {k} of the run at {start}");
    }
    let zone = &layout.zones()[run.zone];
    if !spec.has_surface_zones() && is_plain(&spec.zones[run.zone]) {
        let to_track_end = u64::from(zone.blocks_per_track() - run.at.sector);
        let to_zone_end = (zone.first_lbn() + zone.blocks()).get() - start as u64;
        let longest = u64::from(wanted).min(to_track_end).min(to_zone_end);
        assert_eq!(u64::from(run.blocks), longest, "the run at {start} stops short");
    }
}

/// Without spares, slips and remaps only the end of a track ends a run.
fn is_plain(zone: &ZoneSpec) -> bool {
    zone.spares == 0 && zone.slips.is_empty() && zone.remaps.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn lbn_to_place_matches_sector_list((spec, drive) in any_drive()) {
        let places = oracle(&spec);
        prop_assert_eq!(drive.blocks().get(), places.len() as u64);
        for (lbn, place) in places.iter().enumerate() {
            prop_assert_eq!(drive.layout().locate(Lbn::new(lbn as u64)), *place, "lbn {}", lbn);
        }
    }

    #[test]
    fn tracks_begin_where_skews_add_up((spec, drive) in any_drive()) {
        for zone in &spec.zones {
            let tracks = tracks_of(&spec.mapping, spec.surfaces, zone);
            for (track, start) in tracks.iter().zip(track_starts(&spec, zone)) {
                let offset = spec.surface_offsets.get(track.surface as usize).unwrap_or(&0);
                let cylinder = track.cylinder + offset;
                let ours = drive.layout().track_start(cylinder, track.surface).unwrap();
                // Each skew of the sum is rounded down by less than a step.
                prop_assert!(apart(ours, start) as usize <= tracks.len(), "{:?}", ours - start);
            }
        }
    }

    #[test]
    fn track_and_cylinder_ends_match_sector_list(
        (spec, drive) in any_drive()
    ) {
        if spec.zones.iter().any(|zone| !zone.remaps.is_empty()) {
            return Ok(());
        }
        let places = oracle(&spec);
        let track = |place: &Physical| (place.cylinder, place.surface);
        for (lbn, place) in places.iter().enumerate() {
            let rest = &places[lbn..];
            let on_track = rest.iter().take_while(|p| track(p) == track(place)).count();
            let on_cylinder = rest.iter().take_while(|p| p.cylinder == place.cylinder).count();
            let first = places.iter().position(|p| track(p) == track(place)).unwrap();
            let (layout, at) = (drive.layout(), |lbn: usize| Lbn::new(lbn as u64));
            prop_assert_eq!(layout.track_bounds(at(lbn)), (at(first), at(lbn + on_track)));
            prop_assert_eq!(layout.cylinder_end(at(lbn)), at(lbn + on_cylinder));
        }
    }

    #[test]
    fn lbn_and_place_are_a_bijection((spec, drive) in any_drive()) {
        let layout = drive.layout();
        let mut found = 0;
        for cylinder in 0..spec.cylinders {
            for surface in 0..spec.surfaces {
                let zone = layout.zone_at(cylinder, surface);
                let sectors = zone.map_or(0, |zone| layout.zones()[zone].blocks_per_track());
                for sector in 0..sectors {
                    let place = Physical { cylinder, surface, sector };
                    if let Some(lbn) = layout.lbn_at(place) {
                        prop_assert_eq!(layout.locate(lbn), place);
                        found += 1;
                    }
                }
            }
        }
        prop_assert_eq!(found, drive.blocks().get());
    }

    #[test]
    fn run_is_consecutive_and_long_enough(
        (spec, drive) in any_drive(), wanted in 1u32..60
    ) {
        let places = oracle(&spec);
        for start in 0..places.len() {
            check_run(&spec, drive.layout(), &places, start, wanted);
        }
    }

    #[test]
    fn places_without_block_have_none((_, drive) in any_drive()) {
        let layout = drive.layout();
        let beyond = Physical { cylinder: u32::MAX, surface: 0, sector: 0 };
        prop_assert_eq!(layout.lbn_at(beyond), None);
        let beside = Physical { cylinder: 0, surface: layout.surfaces(), sector: 0 };
        prop_assert_eq!(layout.lbn_at(beside), None);
    }
}

/// 12 cylinders of 2 surfaces in bands of 4: tracks of 100 blocks, skews of 20, 10 and 30 blocks.
const BANDS: &str = r#"
name = "bands"
model = "in bands"
year = 2020
surfaces = 2
cylinders = 12
rotation_period = "10ms"
head_switch = "1ms"
[mapping.band]
cylinders = 4
cylinder_order = "serpentine"
surface_order = "serpentine"
[seek]
read = { form = "table", cylinders_ms = [[1, 2.0], [4, 3.0]] }
[sources]
[[zones]]
first_cylinder = 0
last_cylinder = 11
blocks_per_track = 100
cylinder_skew = "20/100"
track_skew = "10/100"
band_skews = ["30/100"]
"#;

fn bands() -> DriveSpec {
    toml::from_str(BANDS).unwrap()
}

fn refusal(spec: &DriveSpec) -> String {
    Drive::build(spec).unwrap_err().to_string()
}

#[test]
fn mapping_is_word_or_band_table() {
    let mapping = |text: &str| toml::from_str::<BTreeMap<String, Mapping>>(text).map(|m| m["m"]);
    assert_eq!(mapping("m = \"cylinder\"").unwrap(), Mapping::Cylinder);
    assert_eq!(mapping("m = \"serpentine\"").unwrap(), Mapping::Serpentine);
    assert_eq!(mapping("m = \"serpentine-by-zone\"").unwrap(), Mapping::SerpentineByZone);
    let (forward, serpentine) = (Direction::Forward, Direction::Serpentine);
    let band = |cylinder_order, surface_order| Mapping::Band {
        cylinders: 4,
        cylinder_order,
        surface_order,
    };
    assert_eq!(mapping("m = { band = { cylinders = 4 } }").unwrap(), band(forward, forward));
    assert_eq!(bands().mapping, band(serpentine, serpentine));
    assert!(mapping("m = { band = { cylinders = 4, heads = 1 } }").is_err());
    let written = toml::to_string(&bands()).unwrap();
    assert_eq!(toml::from_str::<DriveSpec>(&written).unwrap(), bands());
}

#[test]
fn bands_run_there_and_back_alternately() {
    let drive = Drive::build(&bands()).unwrap();
    let place = |track: u64| {
        let at = drive.layout().locate(Lbn::new(track * 100));
        (at.cylinder, at.surface)
    };
    // In on the first surface, out on the second; the next band begins on the second.
    assert_eq!([0, 3, 4, 7].map(place), [(0, 0), (3, 0), (3, 1), (0, 1)]);
    assert_eq!([8, 11, 12, 15].map(place), [(4, 1), (7, 1), (7, 0), (4, 0)]);
    assert_eq!(place(16), (8, 0));
}

#[test]
fn band_reads_seek_tracks_switch_at_turn() {
    let drive = Drive::build(&bands()).unwrap();
    let read = |first_track: u64, tracks: u64| {
        let (start, blocks) = (Lbn::new(first_track * 100), Blocks::new(tracks * 100));
        let target = drive.target(start, blocks, Op::Read);
        let access = drive.access(SimTime::ZERO, target.at, &target);
        let first = drive.positioning(SimTime::ZERO, target.at, &target);
        (access.seek.as_ms_f64(), (access.rotate - first.rotate).as_ms_f64())
    };
    // The skew of 2 ms is what a seek of one cylinder takes, that of 1 ms a change of heads.
    assert_eq!(read(0, 2), (2.0, 0.0));
    assert_eq!(read(3, 2), (1.0, 0.0));
    // To the next band on the same surface: 3 ms for 4 cylinders, as the skew.
    assert_eq!(read(7, 2), (3.0, 0.0));
    assert_eq!(read(0, 24), (18.0 * 2.0 + 3.0 + 2.0 * 3.0, 0.0));
    // A band is 8 turns, 6 seeks, one change of heads.
    let rate = 8.0 * 100.0 * 512.0 / (8.0 * 0.010 + 6.0 * 0.002 + 0.001);
    assert_eq!(drive.sustained_rate_bytes_per_second(0), rate as u64);
}

#[test]
fn bands_of_one_cylinder_are_cylinders() {
    let mut spec = bands();
    let mut one = spec.clone();
    for (surface_order, same) in [
        (Direction::Forward, Mapping::Cylinder),
        (Direction::Serpentine, Mapping::SerpentineByZone),
    ] {
        spec.mapping = same;
        spec.zones[0].band_skews.clear();
        one.mapping =
            Mapping::Band { cylinders: 1, cylinder_order: Direction::Forward, surface_order };
        one.zones[0].band_skews = vec![spec.zones[0].cylinder_skew];
        let (cylinders, bands) = (Drive::build(&spec).unwrap(), Drive::build(&one).unwrap());
        for track in 0..24 {
            let at = cylinders.layout().locate(Lbn::new(track * 100));
            assert_eq!(bands.layout().locate(Lbn::new(track * 100)), at);
            let start = |drive: &Drive| drive.layout().track_start(at.cylinder, at.surface);
            assert_eq!(start(&bands), start(&cylinders), "{at:?}");
        }
    }
}

#[test]
fn bands_impossible_refused_with_key() {
    let with = |change: fn(&mut DriveSpec)| {
        let mut spec = bands();
        change(&mut spec);
        refusal(&spec)
    };
    let none = with(|spec| {
        let (cylinder_order, surface_order) = (Direction::Forward, Direction::Forward);
        spec.mapping = Mapping::Band { cylinders: 0, cylinder_order, surface_order };
        spec.sparing.unit = SpareUnit::Cylinder;
    });
    assert!(none.contains("`mapping.band.cylinders`"), "{none}");
    let unit = with(|spec| spec.sparing.unit = SpareUnit::Cylinder);
    assert!(unit.contains("`sparing.unit`") && unit.contains("bands of 4 cylinders"), "{unit}");
    assert!(with(|spec| spec.sparing.unit = SpareUnit::CylinderRange(6)).contains("6 cylinders"));
    let skews = with(|spec| spec.mapping = Mapping::Serpentine);
    assert!(skews.contains("`zones[0].band_skews`"), "{skews}");
}

/// The bands above with tracks of 100 and 80 blocks, the second surface two cylinders further inwards and
/// with a hole in its first band.
fn two_densities() -> DriveSpec {
    let mut spec = bands();
    spec.cylinders = 14;
    spec.surface_offsets = vec![0, 2];
    spec.zones[0].surface_blocks_per_track = vec![100, 80];
    let hole =
        Hole { surface: 1, first_cylinder: 2, last_cylinder: 3, first_block: 0, blocks: None };
    spec.zones[0].holes =
        vec![hole, Hole { first_cylinder: 1, first_block: 10, blocks: Some(5), ..hole }];
    spec
}

#[test]
fn surfaces_differing_written_by_band() {
    let drive = Drive::build(&two_densities()).unwrap();
    let layout = drive.layout();
    let place = |lbn: u64| {
        let Physical { cylinder, surface, sector } = layout.locate(Lbn::new(lbn));
        (cylinder, surface, sector)
    };
    // Four tracks of 100 on the first surface; of those of 80 on the second, outwards, the first two are a
    // hole, and a third lacks five blocks.
    assert_eq!([0, 399].map(place), [(0, 0, 0), (3, 0, 99)]);
    assert_eq!([400, 409, 410, 474].map(place), [(3, 1, 0), (3, 1, 9), (3, 1, 15), (3, 1, 79)]);
    assert_eq!([475, 554].map(place), [(2, 1, 0), (2, 1, 79)]);
    // The second band begins on the second surface.
    assert_eq!([555, 555 + 4 * 80].map(place), [(6, 1, 0), (7, 0, 0)]);
    assert_eq!(layout.track_bounds(Lbn::new(450)), (Lbn::new(400), Lbn::new(475)));
    assert_eq!(drive.blocks().get(), 3 * 4 * 180 - 160 - 5);
    // No block where the hole is, nor beside the second surface's first cylinder.
    let none = [(5, 1, 0), (4, 1, 79), (3, 1, 12), (0, 1, 0)];
    for (cylinder, surface, sector) in none {
        assert_eq!(layout.lbn_at(Physical { cylinder, surface, sector }), None);
    }
    let zone = layout.file_zones().next().unwrap().1;
    assert_eq!((zone.blocks, zone.period_blocks), (drive.blocks(), 4 * 180));
}

#[test]
fn surface_change_out_of_line_seeks() {
    let mut spec = two_densities();
    spec.zones[0].holes.clear();
    let drive = Drive::build(&spec).unwrap();
    // From the first surface's last track, cylinder 3, to the second's on cylinder 5, two further inwards.
    let target = drive.target(Lbn::new(399), Blocks::new(2), Op::Read);
    let access = drive.access(SimTime::ZERO, target.at, &target);
    // 2 ms for one cylinder and 3 ms for four, straight between.
    assert_eq!(access.seek.ns(), 2_333_333);
}

#[test]
fn zones_beyond_their_numbers_are_refused() {
    for (mut spec, most) in [(bands(), 65_535), (two_densities(), 32_767)] {
        let zone = spec.zones[0].clone();
        let mut refused = |zones: usize| {
            spec.zones = vec![zone.clone(); zones];
            refusal(&spec)
        };
        let says = format!("at most {most} are allowed");
        assert!(refused(most + 1).contains(&says), "{}", refused(most + 1));
        assert!(!refused(most).contains(&says), "they overlap");
    }
}

#[test]
fn surfaces_impossible_refused_with_key() {
    let with = |change: fn(&mut DriveSpec)| {
        let mut spec = two_densities();
        change(&mut spec);
        refusal(&spec)
    };
    assert!(with(|spec| spec.mapping = Mapping::Serpentine).contains("`mapping`"));
    assert!(with(|spec| spec.surface_offsets.truncate(1)).contains("`surface_offsets`"));
    assert!(with(|spec| spec.cylinders = 13).contains("`zones[0].last_cylinder`"));
    assert!(with(|spec| spec.zones[0].surface_blocks_per_track[1] = 1).contains("65536"));
    assert!(with(|spec| spec.zones[0].slips = vec![1]).contains("`zones[0].slips`"));
    assert!(with(|spec| spec.zones[0].holes[0].blocks = Some(81)).contains("`zones[0].holes`"));
    assert!(with(|spec| spec.zones[0].spares = 5000).contains("`zones[0].spares`"));
    assert!(with(|spec| spec.sparing.unit = SpareUnit::Track).contains("`sparing`"));
}
