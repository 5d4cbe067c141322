//! Zones with more tracks and more blocks on each.

use super::Scaling;
use super::surfaces::Surfaces;
use crate::spec::drive::{DriveSpec, SpareUnit, ZoneSpec};

/// The drive without the zones that are too narrow for a single new cylinder.
pub fn without_lost(spec: &DriveSpec, scaling: &Scaling) -> DriveSpec {
    let mut kept = spec.clone();
    kept.zones.retain(|zone| has_cylinders(zone, scaling));
    kept
}

fn has_cylinders(zone: &ZoneSpec, scaling: &Scaling) -> bool {
    let [first, end] = edges(zone, scaling);
    first < end
}

/// Ends the zones at the cylinder at which this share of their blocks lies outwards. The zones left are the
/// first of those of `spec`.
fn keep_outer(spec: &DriveSpec, used_share: f64) -> DriveSpec {
    if used_share == 1.0 {
        return spec.clone();
    }
    let mut left = used_share
        * spec
            .zones
            .iter()
            .map(|zone| f64::from(zone.cylinders()) * per_cylinder(zone, spec))
            .sum::<f64>();
    let mut kept = DriveSpec { zones: Vec::new(), ..spec.clone() };
    for zone in &spec.zones {
        let wanted = (left / per_cylinder(zone, spec)).round() as u64;
        let inside = wanted.min(zone.cylinders().into()) as u32;
        if inside == 0 {
            break;
        }
        left -= f64::from(inside) * per_cylinder(zone, spec);
        kept.zones.push(cut(spec, zone, inside));
    }
    kept
}

fn per_cylinder(zone: &ZoneSpec, spec: &DriveSpec) -> f64 {
    zone.blocks_per_cylinder(spec.surfaces) as f64
}

/// The outermost cylinders of a zone, with their share of the spares.
fn cut(spec: &DriveSpec, zone: &ZoneSpec, inside: u32) -> ZoneSpec {
    let last_cylinder = zone.first_cylinder + inside - 1;
    let shorter = ZoneSpec { last_cylinder, ..zone.clone() };
    with_shares(spec, zone, spec.surfaces, shorter)
}

/// The zones at the same radii, each at least one cylinder wide, as far as the surfaces hold data; skews
/// are left as they are.
pub fn scale(spec: &DriveSpec, scaling: &Scaling) -> Vec<ZoneSpec> {
    if !scaling.moves_sectors() {
        return spec.zones.clone();
    }
    let outer = keep_outer(spec, Surfaces::of(spec.surfaces, scaling.surfaces).used_share);
    let zones = outer.zones.iter().filter(|zone| has_cylinders(zone, scaling));
    zones.map(|zone| scale_zone(spec, zone, scaling)).collect()
}

/// `count` times `factor`, to the nearest.
pub fn scale_count(count: u32, factor: f64) -> u32 {
    (f64::from(count) * factor).round() as u32
}

/// First cylinder of the scaled zone, and the one behind its last. Both edges are scaled and not
/// the breadth, so that zones that touched still do.
fn edges(zone: &ZoneSpec, scaling: &Scaling) -> [u32; 2] {
    [zone.first_cylinder, zone.last_cylinder + 1]
        .map(|cylinder| scale_count(cylinder, scaling.track_density))
}

fn scale_zone(spec: &DriveSpec, zone: &ZoneSpec, scaling: &Scaling) -> ZoneSpec {
    let [first_cylinder, end] = edges(zone, scaling);
    let surfaces = Surfaces::of(spec.surfaces, scaling.surfaces).count;
    // Further surfaces are like the first ones.
    let densities =
        zone.surface_blocks_per_track.iter().cycle().map(|&blocks| density(blocks, scaling));
    let scaled = ZoneSpec {
        first_cylinder,
        last_cylinder: end - 1,
        blocks_per_track: density(zone.blocks_per_track, scaling),
        surface_blocks_per_track: densities.take(surfaces as usize).collect(),
        ..zone.clone()
    };
    with_shares(spec, zone, surfaces, scaled)
}

fn density(blocks: u32, scaling: &Scaling) -> u32 {
    scale_count(blocks, scaling.linear_density)
}

/// `scaled` with the share of spares and reserved blocks that `zone` has, and without defects.
fn with_shares(spec: &DriveSpec, zone: &ZoneSpec, surfaces: u32, mut scaled: ZoneSpec) -> ZoneSpec {
    let unit = spec.sparing.unit;
    let share = |blocks: u64, positions: &dyn Fn(&ZoneSpec, u32) -> u64| {
        let (now, before) = (positions(&scaled, surfaces), positions(zone, spec.surfaces));
        // Rounded down, so that at least as much is left for data.
        (u128::from(blocks) * u128::from(now) / u128::from(before)) as u64
    };
    let spares = share(zone.spares, &|zone, surfaces| unit_blocks(unit, zone, surfaces));
    let reserved = share(zone.reserved_blocks, &zone_blocks);
    (scaled.spares, scaled.reserved_blocks) = (spares, reserved);
    (scaled.slips, scaled.remaps) = (Vec::new(), Vec::new());
    scaled.holes.clear();
    scaled
}

/// Blocks on a zone, spares and all.
fn zone_blocks(zone: &ZoneSpec, surfaces: u32) -> u64 {
    u64::from(zone.cylinders()) * zone.blocks_per_cylinder(surfaces)
}

/// In proportion to the blocks of a sparing unit; units keep their number of cylinders.
fn unit_blocks(unit: SpareUnit, zone: &ZoneSpec, surfaces: u32) -> u64 {
    match unit {
        SpareUnit::Zone => zone_blocks(zone, surfaces),
        SpareUnit::Track => zone.blocks_per_track.into(),
        SpareUnit::Cylinder | SpareUnit::CylinderRange(_) => zone.blocks_per_cylinder(surfaces),
    }
}
