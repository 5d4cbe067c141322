//! Zones of single surfaces: for drives whose surfaces differ in density, in place or in holes.
//!
//! A zone of the file becomes one [`Zone`] a surface. LBNs run over them band by band, so each piece of a
//! band on a surface is a segment of that surface's zone, or several with holes between them:
//!
//! ```text
//!   LBN      |  band 0          |  band 1          |
//!   surface  |  0  |  1  |  2   |  2  |  1  |  0   |     surface order: serpentine
//!   zone     |  a  |  b  |  c   |  c  |  b  |  a   |     three segments in two zones of each
//! ```
//!
//! Angles are those of a drive without holes: a track behind a hole begins where its place says.

use std::ops::Range;

use freewheel_units::{Blocks, Lbn};

use super::divide::Divisor;
use super::error::{BuildDriveError, invalid};
use super::track_order::{SurfaceOrder, TrackOrder, sector_steps64};
use super::zone::{FileZone, Segment, SpareUnits, Zone, check_zone};
use crate::spec::drive::{DriveSpec, Hole, Mapping, SpareUnit, ZoneSpec};

/// The zones of every surface: those of the outermost zone of the file, then those of the next.
pub(super) fn build(spec: &DriveSpec) -> Result<Vec<Zone>, BuildDriveError> {
    check_drive(spec)?;
    let (mut zones, mut first_lbn) = (Vec::new(), 0);
    for index in 0..spec.zones.len() {
        check_zone(spec, index)?;
        check_surfaces(spec, index)?;
        let of_file = zones_of(spec, index, first_lbn)?;
        first_lbn += of_file[0].of_file.blocks.get();
        zones.extend(of_file);
    }
    Ok(zones)
}

fn check_drive(spec: &DriveSpec) -> Result<(), BuildDriveError> {
    if !matches!(spec.mapping, Mapping::Band { .. }) {
        let rule = "surfaces that differ need the mapping in bands";
        return Err(invalid("mapping", "without bands", rule));
    }
    if spec.sparing.unit != SpareUnit::Zone || spec.sparing.at_front {
        let rule = "where surfaces differ, spares stand behind the data of a zone";
        return Err(invalid("sparing", "another place", rule));
    }
    let offsets = &spec.surface_offsets;
    if !offsets.is_empty() && offsets.len() != spec.surfaces as usize {
        let rule = format!("{} are needed, one a surface", spec.surfaces);
        return Err(invalid("surface_offsets", format!("{} of them", offsets.len()), rule));
    }
    Ok(())
}

fn check_surfaces(spec: &DriveSpec, index: usize) -> Result<(), BuildDriveError> {
    let zone = &spec.zones[index];
    let refuse = |key: &str, value: String, rule: String| {
        Err(invalid(format!("zones[{index}].{key}"), value, rule))
    };
    let densities = &zone.surface_blocks_per_track;
    if !densities.is_empty() && densities.len() != spec.surfaces as usize {
        let rule = format!("{} are needed, one a surface", spec.surfaces);
        return refuse("surface_blocks_per_track", format!("{} of them", densities.len()), rule);
    }
    if let Some(density) = densities.iter().find(|density| !(2..=65_536).contains(*density)) {
        let rule = "2 to 65536 are allowed".into();
        return refuse("surface_blocks_per_track", density.to_string(), rule);
    }
    let farthest = spec.surface_offsets.iter().max().copied().unwrap_or(0);
    if u64::from(zone.last_cylinder) + u64::from(farthest) >= u64::from(spec.cylinders) {
        let rule = format!("with `surface_offsets` of {farthest} it leaves the drive");
        return refuse("last_cylinder", zone.last_cylinder.to_string(), rule);
    }
    if zone.reserved_blocks > 0 || !zone.slips.is_empty() || !zone.remaps.is_empty() {
        let rule = "where surfaces differ, defects are `holes`, and no block is reserved".into();
        return refuse("slips", "defects by position".into(), rule);
    }
    zone.holes.iter().try_for_each(|hole| check_hole(spec, zone, hole, index))
}

fn check_hole(
    spec: &DriveSpec,
    zone: &ZoneSpec,
    hole: &Hole,
    index: usize,
) -> Result<(), BuildDriveError> {
    let inside = zone.first_cylinder..=zone.last_cylinder;
    let sectors = zone.blocks_per_track_on(hole.surface);
    let end = hole.first_block.saturating_add(hole.blocks.unwrap_or(1));
    let fits = hole.surface < spec.surfaces
        && inside.contains(&hole.first_cylinder)
        && inside.contains(&hole.last_cylinder)
        && hole.first_cylinder <= hole.last_cylinder
        && hole.first_block < end
        && end <= sectors;
    if fits {
        return Ok(());
    }
    let value = format!(
        "surface {}, cylinders {} to {}, from block {}",
        hole.surface, hole.first_cylinder, hole.last_cylinder, hole.first_block
    );
    Err(invalid(format!("zones[{index}].holes"), value, "it must lie within its zone"))
}

/// The zones of a zone of the file, one a surface.
fn zones_of(spec: &DriveSpec, index: usize, first_lbn: u64) -> Result<Vec<Zone>, BuildDriveError> {
    let said = &spec.zones[index];
    let key = format!("zones[{index}]");
    let mut zones = (0..spec.surfaces)
        .map(|surface| surface_zone(spec, said, &key, surface))
        .collect::<Result<Vec<Zone>, _>>()?;
    let mut pieces = pieces(spec, said, &zones);
    drop_spares(&mut pieces, said, &key)?;
    let mut lbn = first_lbn;
    for SurfacePiece { surface, positions } in pieces {
        let zone = &mut zones[surface as usize];
        if zone.segments.is_empty() {
            zone.first_lbn = lbn;
        }
        let (first_position, blocks) = (positions.start, positions.end - positions.start);
        let first_index = first_position;
        zone.segments.push(Segment { first_lbn: lbn, first_index, first_position, after: 0 });
        lbn += blocks;
        zone.segment_ends.push(lbn);
        zone.blocks += blocks;
    }
    let of_file = FileZone {
        index,
        first_lbn: Lbn::new(first_lbn),
        blocks: Blocks::new(lbn - first_lbn),
        period_blocks: zones[0].track_period() / u64::from(spec.surfaces)
            * said.blocks_per_cylinder(spec.surfaces),
    };
    zones.iter_mut().for_each(|zone| zone.of_file = of_file);
    Ok(zones)
}

/// A zone of one surface, without segments.
fn surface_zone(
    spec: &DriveSpec,
    said: &ZoneSpec,
    key: &str,
    surface: u32,
) -> Result<Zone, BuildDriveError> {
    let per_track = u64::from(said.blocks_per_track_on(surface));
    let offset = spec.surface_offsets.get(surface as usize).copied().unwrap_or(0);
    Ok(Zone {
        first_cylinder: said.first_cylinder + offset,
        cylinders: said.cylinders(),
        blocks_per_track: Divisor::new(per_track),
        sector_steps64: sector_steps64(per_track),
        start_steps64: said.first_block.steps64(),
        order: TrackOrder::build(spec, said, key)?.on_surface(surface),
        units: SpareUnits::WITHOUT_SPARES,
        first_lbn: 0,
        blocks: 0,
        segments: Vec::new(),
        segment_ends: Vec::new(),
        of_file: FileZone::EMPTY,
        remaps_from: Vec::new(),
        remaps_to: Vec::new(),
    })
}

/// Consecutive positions of a surface with consecutive LBNs.
struct SurfacePiece {
    surface: u32,
    positions: Range<u64>,
}

/// Data and spares of a zone of the file in LBN order.
fn pieces(spec: &DriveSpec, said: &ZoneSpec, zones: &[Zone]) -> Vec<SurfacePiece> {
    let holes: Vec<Vec<Range<u64>>> =
        (0..).zip(zones).map(|(surface, zone)| holes_of(said, zone, surface)).collect();
    let orders: Vec<&SurfaceOrder> =
        zones.iter().filter_map(|zone| zone.order.of_surface()).collect();
    let mut pieces = Vec::new();
    for band in 0..orders[0].bands() {
        for order in 0..spec.surfaces {
            let surface = orders[0].surface_at(band, order);
            let per_track = zones[surface as usize].blocks_per_track.get();
            let tracks = orders[surface as usize].tracks_of(band);
            let positions = tracks.start * per_track..tracks.end * per_track;
            let between = without(positions, &holes[surface as usize]);
            pieces.extend(between.map(|positions| SurfacePiece { surface, positions }));
        }
    }
    pieces
}

/// Positions of a surface's zone that lie in holes, in order and apart from each other.
fn holes_of(said: &ZoneSpec, zone: &Zone, surface: u32) -> Vec<Range<u64>> {
    let per_track = zone.blocks_per_track.get();
    let on_surface = said.holes.iter().filter(|hole| hole.surface == surface);
    let mut holes: Vec<Range<u64>> = on_surface
        .flat_map(|hole| {
            let from = u64::from(hole.first_block);
            let end = hole.blocks.map_or(per_track, |blocks| from + u64::from(blocks));
            (hole.first_cylinder..=hole.last_cylinder).map(move |cylinder| {
                let track = zone.order.number(cylinder - said.first_cylinder, surface);
                track * per_track + from..track * per_track + end
            })
        })
        .collect();
    holes.sort_unstable_by_key(|hole| hole.start);
    let mut apart: Vec<Range<u64>> = Vec::with_capacity(holes.len());
    for hole in holes {
        match apart.last_mut() {
            Some(last) if hole.start <= last.end => last.end = last.end.max(hole.end),
            _ => apart.push(hole),
        }
    }
    apart
}

/// The parts of `positions` between the holes.
fn without(positions: Range<u64>, holes: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
    let first = holes.partition_point(|hole| hole.end <= positions.start);
    let inside = holes[first..].iter().take_while({
        let end = positions.end;
        move |hole| hole.start < end
    });
    let starts = std::iter::once(positions.start).chain(inside.clone().map(|hole| hole.end));
    let ends = inside.map(|hole| hole.start).chain([positions.end]);
    let parts: Vec<Range<u64>> = starts.zip(ends).map(|(start, end)| start..end).collect();
    parts.into_iter().filter(|part| part.start < part.end)
}

/// Takes the spares of a zone from its end.
fn drop_spares(
    pieces: &mut Vec<SurfacePiece>,
    said: &ZoneSpec,
    key: &str,
) -> Result<(), BuildDriveError> {
    let mut left = said.spares;
    while left > 0 {
        let Some(last) = pieces.last_mut() else {
            let rule = "the zone has fewer blocks";
            return Err(invalid(format!("{key}.spares"), said.spares, rule));
        };
        let length = last.positions.end - last.positions.start;
        let taken = length.min(left);
        last.positions.end -= taken;
        left -= taken;
        if last.positions.is_empty() {
            pieces.pop();
        }
    }
    Ok(())
}
