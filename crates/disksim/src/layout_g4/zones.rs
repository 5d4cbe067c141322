//! Runs of tracks to zones: whole cylinders with one number of sectors a track, the tracks of all zones
//! numbered in one order.

use freewheel_model::drive::spec::{Mapping, Turn, ZoneSpec};

use super::numbering::{Numbering, orders, out_of_order};
use super::pieces::{Group, join, pieces, same_angles};
use super::skews::{Averaged, Skews, skews, start};
use super::unused::{Unused, ZoneUnused};
use super::{Media, TURN};
use crate::error::ImportError;
use crate::fields::Report;
use crate::layout_g1::ImportedLayout;
use crate::parse::Param;

/// Zones into which skews that change within an entry of the root may divide a drive.
const ZONES_MAX: usize = 4096;

/// Zones whose tracks are in the order of a mapping.
struct Ordered<'a> {
    mapping: Mapping,
    zones: Vec<(Group<'a>, Skews)>,
}

/// The zones of a tree's runs. Where no order of tracks fits, cylinder by cylinder, with a line in the
/// report at `index`.
pub(super) fn layout(
    media: &Media<'_>,
    index: &Param,
    report: &mut Report,
) -> Result<ImportedLayout, ImportError> {
    let pieces = pieces(media.runs, media.tracks, media.surfaces)?;
    let groups = join(media.runs, &pieces, |_, _| true);
    let found = match in_order(media, &groups) {
        Ok(Some(found)) => Some(found),
        unfit => {
            let finer = join(media.runs, &pieces, same_angles);
            let finer = if finer.len() <= ZONES_MAX { in_order(media, &finer) } else { Ok(None) };
            match (finer, unfit) {
                (Ok(Some(found)), _) => Some(found),
                (_, Err(error)) => return Err(error),
                (_, Ok(_)) => None,
            }
        }
    };
    match found {
        Some(found) => {
            note_averages(media, &found.zones, report);
            build(media, found, true)
        }
        None => {
            report.lost(index, out_of_order(&groups, media.surfaces));
            build(media, by_cylinder(&groups), false)
        }
    }
}

/// The zones in the first order that has their skews, else in the first that fits with means. None where
/// the tracks are in no order that a mapping has, an error where only the skews do not fit.
fn in_order<'a>(
    media: &Media<'_>,
    groups: &[Group<'a>],
) -> Result<Option<Ordered<'a>>, ImportError> {
    let (mut averaged, mut refused) = (None, None);
    for mapping in orders(groups, media.surfaces) {
        match groups
            .iter()
            .map(|group| {
                let numbering = Numbering::new(mapping, group.span, media.surfaces);
                skews(group.runs, media.tracks, numbering).map(|skews| (*group, skews))
            })
            .collect::<Result<Vec<_>, _>>()
        {
            Ok(zones) if zones.iter().all(|(_, skews)| skews.averaged.is_rounding()) => {
                return Ok(Some(Ordered { mapping, zones }));
            }
            // Bands have skews that cylinders have not.
            Ok(zones) => averaged = averaged.or(Some(Ordered { mapping, zones })),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match (averaged, refused) {
        (None, Some(error)) => Err(error),
        (averaged, _) => Ok(averaged),
    }
}

fn by_cylinder<'a>(groups: &[Group<'a>]) -> Ordered<'a> {
    Ordered {
        mapping: Mapping::Cylinder,
        zones: groups
            .iter()
            .map(|group| {
                let each = group.runs[0].angle_each;
                let averaged = Averaged::default();
                (*group, Skews { cylinder: each, head: each, bands: Vec::new(), averaged })
            })
            .collect(),
    }
}

fn build(
    media: &Media<'_>,
    found: Ordered<'_>,
    in_order: bool,
) -> Result<ImportedLayout, ImportError> {
    let groups: Vec<Group<'_>> = found.zones.iter().map(|(group, _)| *group).collect();
    let unused = Unused::new(media, &groups, in_order)?;
    let zones = found.zones.iter().zip(unused.places);
    Ok(ImportedLayout {
        mapping: found.mapping,
        sparing: unused.sparing,
        zones: zones.map(|((group, skews), place)| zone(media, group, skews, place)).collect(),
    })
}

fn turn(angle: i64) -> Turn {
    Turn::from_ratio(angle.rem_euclid(TURN) as u64, TURN as u64).unwrap_or_default()
}

fn zone(media: &Media<'_>, group: &Group<'_>, skews: &Skews, unused: ZoneUnused) -> ZoneSpec {
    let first = &group.runs[0];
    ZoneSpec {
        first_cylinder: group.span.first as u32,
        last_cylinder: group.span.last as u32,
        blocks_per_track: media.tracks[first.kind].sectors as u32,
        first_block: turn(start(first, media.tracks)),
        reserved_blocks: 0,
        track_skew: turn(skews.head),
        cylinder_skew: turn(skews.cylinder),
        surface_blocks_per_track: Vec::new(),
        holes: Vec::new(),
        band_skews: skews.bands.iter().copied().map(turn).collect(),
        spares: unused.spares,
        slips: unused.slips,
        remaps: Vec::new(),
    }
}

/// Says how far skews were from their means, and where that puts tracks at worst.
fn note_averages(media: &Media<'_>, zones: &[(Group<'_>, Skews)], report: &mut Report) {
    let averaged: Vec<(&Group<'_>, Averaged)> = zones
        .iter()
        .map(|(group, skews)| (group, skews.averaged))
        .filter(|(_, averaged)| !averaged.is_rounding())
        .collect();
    let Some(skew) = averaged.iter().map(|(_, averaged)| averaged.skew).max() else { return };
    let worst = averaged
        .iter()
        .map(|(group, averaged)| {
            (averaged.start * media.tracks[group.runs[0].kind].sectors) as f64 / TURN as f64
        })
        .fold(0.0, f64::max);
    report.note(format!(
        "{} of {} zones: skews that differ by up to {:.3} millionths of a turn from their mean are \
         taken for that mean; a track begins at most {worst:.4} sectors from its angle in the file",
        averaged.len(),
        zones.len(),
        skew as f64 * 1e6 / TURN as f64,
    ));
}
