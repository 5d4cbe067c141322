//! Zones with more tracks and more blocks on each.

use super::Scaling;
use crate::spec::drive::{DriveSpec, SpareUnit, ZoneSpec};

/// The drive without the zones that are too narrow for a single new cylinder.
pub fn without_lost(spec: &DriveSpec, scaling: &Scaling) -> DriveSpec {
    let mut kept = spec.clone();
    kept.zones.retain(|zone| {
        let [first, end] = edges(zone, scaling);
        first < end
    });
    kept
}

/// The zones at the same radii, each at least one cylinder wide; skews are left as they are.
pub fn scale(spec: &DriveSpec, scaling: &Scaling) -> Vec<ZoneSpec> {
    if !scaling.moves_sectors() {
        return spec.zones.clone();
    }
    spec.zones.iter().map(|zone| scale_zone(spec, zone, scaling)).collect()
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
    let mut scaled = ZoneSpec {
        first_cylinder,
        last_cylinder: end - 1,
        blocks_per_track: scale_count(zone.blocks_per_track, scaling.linear_density),
        slips: Vec::new(),
        remaps: Vec::new(),
        ..zone.clone()
    };
    let share = |blocks: u64, positions: fn(&DriveSpec, &ZoneSpec) -> u64| {
        let (now, before) = (positions(spec, &scaled), positions(spec, zone));
        // Rounded down, so that at least as much is left for data.
        (u128::from(blocks) * u128::from(now) / u128::from(before)) as u64
    };
    let (spares, reserved) =
        (share(zone.spares, unit_blocks), share(zone.reserved_blocks, zone_blocks));
    scaled.spares = spares;
    scaled.reserved_blocks = reserved;
    scaled
}

/// Blocks on a zone, spares and all.
fn zone_blocks(spec: &DriveSpec, zone: &ZoneSpec) -> u64 {
    let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
    cylinders * u64::from(spec.surfaces) * u64::from(zone.blocks_per_track)
}

/// Blocks of a sparing unit; units keep their number of tracks.
fn unit_blocks(spec: &DriveSpec, zone: &ZoneSpec) -> u64 {
    match spec.sparing.unit {
        SpareUnit::Zone => zone_blocks(spec, zone),
        _ => zone.blocks_per_track.into(),
    }
}
