//! Bands of cylinders: tracks that follow one another on a surface before the next surface begins.
//!
//! The angles say how many tracks follow one another. Whether those are the heads of a cylinder or
//! cylinders of a band, movements say: to another head all take as long, to other cylinders they take
//! the longer the further they are. Then the tracks at the same place of one run after the other are
//! in one cylinder, until the next band begins.

use freewheel_model::drive::spec::{Direction, Mapping};

use super::clock::{Clock, fold};
use super::limits::{HEADS_MAX, SAME_NS};
use super::map::{InBands, TrackRuns, ZoneMap};
use super::prober::Prober;
use super::seeks::{Timer, Track};
use super::{ExtractError, no_time};

/// Bands of fewer cylinders look like the heads of a cylinder in every respect.
const WIDTH_MIN: u64 = 3;

/// True if the tracks lie in bands; then all zones have runs that are those of surfaces.
pub(super) fn are_bands(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    zones: &mut [ZoneMap],
) -> Result<bool, ExtractError> {
    let longest = zones
        .iter()
        .filter(|zone| zone.runs.as_ref().is_some_and(|runs| !runs.steps.is_empty()))
        .max_by_key(|zone| zone.blocks);
    let Some(zone) = longest.or_else(|| zones.iter().find(|zone| zone.heads >= WIDTH_MIN)) else {
        return Ok(false);
    };
    if zone.heads > 1 && !grows(prober, clock, zones, zone)? {
        return Ok(false);
    }
    for zone in zones {
        surfaces_as_runs(zone);
    }
    Ok(true)
}

/// True if movements to tracks that come later in a group of this many take longer than to the next.
fn grows(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    zones: &[ZoneMap],
    zone: &ZoneMap,
) -> Result<bool, ExtractError> {
    let index = zones.iter().position(|other| other.first == zone.first).unwrap_or_default();
    let groups = (zone.blocks / zone.per_track / zone.heads).saturating_sub(1).max(1);
    let mut timer = Timer::of_reads(prober, clock, zones);
    let mut lag = |order: u64| {
        let lag = timer.least_lag_between(|prober| {
            let from = prober.below(groups) * zone.heads;
            [from, from + order].map(|track| Track { zone: index, track })
        })?;
        lag.ok_or_else(|| no_time("a movement to the next track"))
    };
    // A bisection may be off by more than is the same; two of them are not, the same way.
    for _ in 0..2 {
        let (next, last) = (lag(1)?, lag(zone.heads - 1)?);
        if last - next <= SAME_NS {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes one run of what was taken for the heads of a cylinder.
fn surfaces_as_runs(zone: &mut ZoneMap) {
    let tracks = if zone.heads > 1 { zone.heads } else { zone.blocks.div_ceil(zone.per_track) };
    let blocks = tracks * zone.per_track;
    let runs = zone.runs.take().filter(|runs| !runs.steps.is_empty());
    if zone.heads == 1 {
        let one = TrackRuns { tracks, blocks, steps: vec![0.0], slips_stay: false };
        zone.runs = Some(runs.unwrap_or(one));
        return;
    }
    let steps = match runs {
        None => vec![zone.cylinder_step],
        Some(runs) => {
            let (within, groups) = (zone.cylinder_step, runs.tracks / tracks);
            runs.steps
                .iter()
                .flat_map(|step| {
                    let last = fold(step - (groups - 1) as f64 * within);
                    (1..groups).map(move |_| within).chain([last])
                })
                .collect()
        }
    };
    zone.runs = Some(TrackRuns { tracks, blocks, steps, slips_stay: false });
    (zone.heads, zone.cylinder_step) = (1, zone.track_skew);
    zone.track_skew = 0.0;
}

/// Finds out how many surfaces there are, and in which order cylinders and surfaces come. Err for bands
/// of several widths, of which a file would say that they are as wide everywhere.
pub(super) fn order(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    zones: &mut [ZoneMap],
) -> Result<(), ExtractError> {
    let found = in_bands(prober, clock, zones)?;
    let width = zones.iter().filter_map(width).max().unwrap_or(1);
    let last = zones.len().saturating_sub(1);
    if let Some((_, other)) =
        zones.iter().enumerate().find(|zone| !is_as_wide(zone, width, &found, last))
    {
        return Err(ExtractError::NarrowerBand { block: other.first, cylinders: width });
    }
    let mut first_cylinder = 0;
    for zone in zones {
        zone.in_bands = Some(found);
        zone.first_cylinder = first_cylinder;
        first_cylinder += zone.cylinders();
    }
    Ok(())
}

/// After the drive's last block its last band may have surfaces without data.
fn is_as_wide((at, zone): &(usize, &ZoneMap), width: u64, found: &InBands, last: usize) -> bool {
    is_whole(zone, width, found.surfaces) || (*at == last && self::width(zone) == Some(width))
}

/// Cylinders of a band.
fn width(zone: &ZoneMap) -> Option<u64> {
    zone.runs.as_ref().map(|runs| runs.tracks)
}

/// True if a zone has bands of this many cylinders on this many surfaces only. A narrower one looks like
/// the beginning of a wider one, and continues as another zone.
fn is_whole(zone: &ZoneMap, cylinders: u64, surfaces: u64) -> bool {
    let runs = (zone.track_of(zone.end() - 1).0 + 1).div_ceil(cylinders);
    width(zone) == Some(cylinders) && runs.is_multiple_of(surfaces)
}

fn in_bands(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    zones: &[ZoneMap],
) -> Result<InBands, ExtractError> {
    let index = (0..zones.len()).max_by_key(|&at| count(&zones[at])).unwrap_or_default();
    let (zone, runs) = (&zones[index], count(&zones[index]));

    let width = width(zone).unwrap_or(1);
    prober.begin("surfaces of a band", runs.min(HEADS_MAX));
    let mut timer = Timer::of_reads(prober, clock, zones);
    // From the beginning of the first run to the same or the mirrored place of another.
    let mut lag = |run: u64, is_mirrored: bool| {
        timer.prober.reached(run);
        let lag = timer.least_lag_between(|prober| {
            let step = prober.below(width.div_ceil(8));
            let there = if is_mirrored { width - 1 - step } else { step };
            [step, run * width + there].map(|track| Track { zone: index, track })
        })?;
        lag.ok_or_else(|| no_time("a movement to another surface of a band"))
    };
    let unclear = || ExtractError::Bands { tracks: runs * width };
    if runs < 2 {
        return Err(unclear());
    }
    let (plain, mirrored) = (lag(1, false)?, lag(1, true)?);
    if (plain - mirrored).abs() < SAME_NS {
        return Err(unclear());
    }
    let cylinders_turn = mirrored < plain;
    let switch = plain.min(mirrored);
    for surfaces in 2..runs.min(HEADS_MAX) {
        let there = lag(surfaces, cylinders_turn && surfaces % 2 == 1)?;
        if (there - switch).abs() > SAME_NS {
            let found = InBands { surfaces, cylinders_turn, surfaces_turn: None };
            let surfaces_turn = surfaces_turn(&mut timer, index, found, runs)?;
            return Ok(InBands { surfaces_turn, ..found });
        }
    }
    Err(unclear())
}

fn count(zone: &ZoneMap) -> u64 {
    zone.blocks / zone.runs.as_ref().map_or(1, |runs| runs.blocks)
}

/// True if the second band begins with the last surface: from the first track of the drive's first surface,
/// the nearest cylinder of the second band is nearer on the same surface. None where that shows in no time,
/// as heads are changed while the arm moves, or there is no second band.
fn surfaces_turn(
    timer: &mut Timer<'_, '_>,
    zone: usize,
    found: InBands,
    runs: u64,
) -> Result<Option<bool>, ExtractError> {
    if runs < 2 * found.surfaces {
        return Ok(None);
    }
    let map = ZoneMap { in_bands: Some(found), ..timer.zones[zone].clone() };
    let width = width(&map).unwrap_or(1);
    let mut lag = |order: u64| {
        let tracks = [width - 1, map.track_at(width, order)];
        let lag = timer.least_lag_between(|_| tracks.map(|track| Track { zone, track }))?;
        lag.ok_or_else(|| no_time("a movement to the next band"))
    };
    let (first, last) = (lag(0)?, lag(found.surfaces - 1)?);
    Ok(Some(first > last).filter(|_| (first - last).abs() > SAME_NS))
}

/// The order of tracks, if they lie in bands.
pub(super) fn mapping(zones: &[ZoneMap]) -> Option<Mapping> {
    let bands = zones.first()?.in_bands?;
    Some(Mapping::Band {
        cylinders: width(zones.first()?)? as u32,
        cylinder_order: order_that(bands.cylinders_turn),
        surface_order: order_that(bands.surfaces_turn == Some(true)),
    })
}

fn order_that(turns: bool) -> Direction {
    if turns { Direction::Serpentine } else { Direction::Forward }
}
