//! Places of blocks, as a drive file has them.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, SpareUnit, Sparing, Turn, ZoneSpec};

use super::ExtractError;
use super::clock::fold;
use super::map::{TrackRuns, WHOLE_SECTOR, ZoneMap};

/// Angles that are no whole number of sectors are given to this part of a turn.
const ANGLE_STEPS: f64 = 1e9;

/// Skews that have been found to be whole sectors differ from that by no more.
const SAME_SECTOR: f64 = 1e-3;
/// Sectors that all the skews of a zone together may be off at least.
const SLACK_MIN: f64 = 2.0;

/// Most zones that a file is given where it takes one for each piece with spares.
const ZONES_MAX: u64 = 4096;

/// The drive of a file, which must have the number of blocks of the drive that it was made for.
pub(super) fn drive(spec: &DriveSpec, blocks: u64) -> Result<Drive, ExtractError> {
    let drive = Drive::build(spec)?;
    match drive.blocks().get() {
        found if found == blocks => Ok(drive),
        found => Err(ExtractError::OtherCapacity { found, blocks }),
    }
}

/// Unit with its own spares, if one answer holds for all of the drive; else every piece with spares
/// becomes a zone of the file.
pub(super) fn sparing(zones: &[ZoneMap]) -> Sparing {
    let Some(runs) = largest_spared(zones) else { return Sparing::default() };
    let pieces: u64 = zones.iter().map(|zone| ends_of_pieces(zone).len() as u64).sum();
    if !zones.iter().all(|zone| is_of(zone, runs)) && pieces <= ZONES_MAX {
        return Sparing::default();
    }
    let heads = zones[0].heads;
    let unit = match runs.tracks {
        1 => SpareUnit::Track,
        tracks if tracks == heads => SpareUnit::Cylinder,
        tracks => SpareUnit::CylinderRange((tracks / heads) as u32),
    };
    Sparing { unit, slip_to_zone_end: !runs.slips_stay, ..Sparing::default() }
}

fn largest_spared(zones: &[ZoneMap]) -> Option<&TrackRuns> {
    let spared = zones.iter().filter_map(|zone| Some((zone.blocks, zone.spared()?.0)));
    spared.max_by_key(|(blocks, _)| *blocks).map(|(_, runs)| runs)
}

/// True if a zone has the number of blocks that a file states, with spares in runs like these.
fn is_of(zone: &ZoneMap, runs: &TrackRuns) -> bool {
    let places = zone.cylinders() * zone.heads * zone.per_track;
    match zone.spared() {
        None if apart(zone).is_some() => false,
        None => zone.blocks == places && zone.slips.is_empty(),
        Some((own, of_run)) => {
            let slipped: u64 = zone.slips.iter().map(|slip| slip.count).sum();
            let lost = if own.slips_stay { 0 } else { slipped };
            let data = places / of_run * own.blocks + places % of_run;
            own.tracks == runs.tracks
                && own.slips_stay == runs.slips_stay
                && zone.blocks + lost == data
        }
    }
}

/// The runs of a zone that may have to be zones of their own in the file: with spares, or skews that
/// are not those of bands.
fn apart(zone: &ZoneMap) -> Option<&TrackRuns> {
    let turned =
        zone.runs.as_ref().filter(|runs| !runs.steps.is_empty() && zone.in_bands.is_none());
    zone.spared().map(|(runs, _)| runs).or(turned)
}

/// First blocks of a zone's pieces that may have to be zones of their own, without the first, and the
/// zone's end.
fn ends_of_pieces(zone: &ZoneMap) -> Vec<u64> {
    let Some(runs) = apart(zone) else { return vec![zone.end()] };
    let last = zone.track_of(zone.end() - 1).0 / runs.tracks;
    let firsts = (1..=last).map(|run| zone.track_first(run * runs.tracks));
    firsts.chain([zone.end()]).collect()
}

/// All zones. Blocks pass the head this much of a turn before a read of them is answered, and are known
/// to be where they are to `within` a turn.
pub(super) fn zones(zones: &[ZoneMap], before: f64, within: f64) -> Vec<ZoneSpec> {
    let unit = sparing(zones).unit;
    if unit == SpareUnit::Zone {
        let pieces = zones.iter().flat_map(pieces);
        return pieces.map(|zone| zone_spec(&zone, before, within, unit)).collect();
    }
    zones.iter().map(|zone| zone_spec(zone, before, within, unit)).collect()
}

/// A zone for each piece that has to be one; the zone itself where there is none.
fn pieces(zone: &ZoneMap) -> Vec<ZoneMap> {
    let Some(runs) = apart(zone) else { return vec![zone.clone()] };
    let mut first = zone.first;
    let mut pieces = Vec::new();
    for (run, end) in (0..).zip(ends_of_pieces(zone)) {
        let slips = zone.slips.iter().filter(|slip| (first..end).contains(&slip.before));
        pieces.push(ZoneMap {
            first,
            blocks: end - first,
            first_cylinder: zone.first_cylinder + run * (runs.tracks / zone.heads),
            start: zone.track_start(run * runs.tracks),
            slips: slips.copied().collect(),
            runs: None,
            ..zone.clone()
        });
        first = end;
    }
    pieces
}

fn zone_spec(zone: &ZoneMap, before: f64, within: f64, unit: SpareUnit) -> ZoneSpec {
    let positions = zone.cylinders() * zone.surfaces() * zone.per_track;
    let first_cylinder = zone.first_cylinder as u32;
    let (track_skew, cylinder_skew, band_skews) = skews(zone, within);
    let spares = match zone.spared() {
        Some((runs, places)) => places - runs.blocks,
        None if unit == SpareUnit::Zone => positions - zone.blocks,
        // There is no unit to have them.
        None => 0,
    };
    ZoneSpec {
        first_cylinder,
        last_cylinder: first_cylinder + zone.cylinders() as u32 - 1,
        blocks_per_track: zone.per_track as u32,
        first_block: turn(zone.start - before),
        reserved_blocks: 0,
        track_skew,
        cylinder_skew,
        surface_blocks_per_track: Vec::new(),
        holes: Vec::new(),
        band_skews,
        spares,
        slips: slips(zone),
        remaps: Vec::new(),
    }
}

/// Places of the defects. Those before the same block lie side by side.
fn slips(zone: &ZoneMap) -> Vec<u64> {
    zone.slips
        .iter()
        .enumerate()
        .flat_map(|(index, slip)| {
            let later = zone.slips[index + 1..].iter().filter(|other| other.before == slip.before);
            let end = zone.position(slip.before) - later.map(|other| other.count).sum::<u64>();
            end - slip.count..end
        })
        .collect()
}

/// From track to track, from cylinder to cylinder, and from band to band where that differs.
fn skews(zone: &ZoneMap, within: f64) -> (Turn, Turn, Vec<Turn>) {
    let (Some(bands), Some(runs)) = (zone.in_bands, &zone.runs) else {
        // Over all cylinders, sectors that are left out or put in add up.
        let slack = (within * zone.per_track as f64).max(SLACK_MIN) / zone.cylinders() as f64;
        let from_cylinder = skew(zone.cylinder_skew(), zone.per_track, slack);
        return (skew(zone.track_skew, zone.per_track, WHOLE_SECTOR), from_cylinder, Vec::new());
    };
    let surfaces = bands.surfaces as usize;
    let between = |run: usize| {
        let within = (runs.tracks - 1) as f64 * zone.cylinder_step;
        skew(fold(runs.steps[run % runs.steps.len()] - within), zone.per_track, SAME_SECTOR)
    };
    let track_skew = between(0);
    let period = (1..=surfaces).find(|bands| (bands * surfaces).is_multiple_of(runs.steps.len()));
    let behind = |band: usize| between(band * surfaces + surfaces - 1);
    let mut band_skews: Vec<Turn> = (0..period.unwrap_or(1)).map(behind).collect();
    if period.is_none() {
        let seen = runs.steps.len() / surfaces;
        band_skews = (0..seen).map(behind).collect();
    }
    band_skews.retain(|_| runs.steps.len() > 1);
    (track_skew, skew(zone.cylinder_step, zone.per_track, SAME_SECTOR), band_skews)
}

/// An angle, rounded.
pub(super) fn turn(turns: f64) -> Turn {
    let steps = (fold(turns) * ANGLE_STEPS).round() as u64 % ANGLE_STEPS as u64;
    Turn::from_ratio(steps, ANGLE_STEPS as u64).unwrap_or_default()
}

/// Whole sectors where it is some, to this part of a sector.
fn skew(turns: f64, per_track: u64, slack: f64) -> Turn {
    let sectors = turns * per_track as f64;
    if (sectors - sectors.round()).abs() < slack.min(WHOLE_SECTOR) {
        let whole = sectors.round() as u64 % per_track;
        return Turn::from_ratio(whole, per_track).unwrap_or_default();
    }
    turn(turns)
}

#[cfg(test)]
mod tests {
    use freewheel_sim::library;

    use super::*;

    /// A zone with spares of each cylinder and this many cylinders, and one with spares behind its data.
    fn mixed(cylinders: u64) -> [ZoneMap; 2] {
        let runs = TrackRuns { tracks: 2, blocks: 195, steps: Vec::new(), slips_stay: true };
        let spared = ZoneMap {
            first: 0,
            blocks: cylinders * runs.blocks,
            per_track: 100,
            heads: 2,
            first_cylinder: 0,
            start: 0.0,
            track_skew: 0.25,
            cylinder_step: 0.5,
            slips: Vec::new(),
            runs: Some(runs),
            in_bands: None,
        };
        let (first, first_cylinder) = (spared.end(), cylinders);
        let plain = ZoneMap { first, blocks: 970, first_cylinder, runs: None, ..spared.clone() };
        [spared, plain]
    }

    fn spec_of(maps: &[ZoneMap]) -> DriveSpec {
        DriveSpec {
            surfaces: 2,
            cylinders: maps.last().map_or(0, |zone| zone.first_cylinder + zone.cylinders()) as u32,
            zones: zones(maps, 0.0, 0.0),
            sparing: sparing(maps),
            ..library::spec("atlas10k").unwrap()
        }
    }

    #[test]
    fn layout_beyond_zones_is_refused() {
        let few = mixed(4000);
        let blocks = few[1].end();
        assert_eq!(drive(&spec_of(&few), blocks).unwrap().blocks().get(), blocks);
        let many = mixed(5000);
        let blocks = many[1].end();
        // Each unit has spares or none, and these few are not those of any.
        let refused = drive(&spec_of(&many), blocks).unwrap_err();
        let ExtractError::OtherCapacity { found, blocks: of_drive } = refused else {
            panic!("{refused}");
        };
        assert!(found != blocks && of_drive == blocks, "{found} for {blocks}");
    }
}
