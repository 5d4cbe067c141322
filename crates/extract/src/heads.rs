//! In which order heads come, and how long it takes to change them.

use freewheel_model::drive::spec::Mapping;

use super::bands;
use super::clock::{Clock, fold};
use super::limits::{HEADS_MAX, SAME_NS};
use super::map::{ZoneMap, zone_of};
use super::prober::Prober;
use super::seeks::Timer;
use super::{ExtractError, no_time};

/// More than any drive has on a surface; what a drive file takes.
const CYLINDERS_MAX: u64 = 4_000_000;

/// Cylinders of zones in which skews are all alike, so that only the time of movements says
/// how many tracks make a cylinder. Other zones stay as they are.
pub(super) fn regroup(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    mut zones: Vec<ZoneMap>,
) -> Result<Vec<ZoneMap>, ExtractError> {
    if bands::are_bands(prober, clock, &mut zones)? {
        bands::order(prober, clock, &mut zones)?;
        return Ok(zones);
    }
    if zones.iter().any(|zone| zone.heads > 1) {
        return Ok(zones);
    }
    let tracks = zones.iter().map(ZoneMap::cylinders).min().unwrap_or_default();
    let count = (2 * HEADS_MAX).min(tracks.saturating_sub(1));
    prober.begin("heads", count);
    let mut timer = Timer::of_reads(prober, clock, &zones);
    let mut lags = Vec::new();
    for track in 1..=count {
        let lag = timer.least_lag_ns(|prober| {
            let zone = &zones[prober.below(zones.len() as u64) as usize];
            (zone.first_cylinder, 0, zone.first_cylinder + track, 0)
        })?;
        lags.push(lag.ok_or_else(|| no_time("a movement near the start of a zone"))?);
        timer.prober.reached(track);
    }
    let heads = heads_of(&lags);
    let mut first_cylinder = 0;
    for zone in &mut zones {
        zone.heads = heads;
        zone.first_cylinder = first_cylinder;
        zone.track_skew = zone.cylinder_step;
        zone.cylinder_step = fold(zone.cylinder_step * heads as f64);
        first_cylinder += zone.cylinders();
    }
    if first_cylinder > CYLINDERS_MAX {
        Err(ExtractError::Bands { tracks: first_cylinder })
    } else {
        Ok(zones)
    }
}

/// Surfaces, from the times of movements from the first track of a zone to those behind it: the
/// number with which those times need the least explanation. One where they all need their own.
fn heads_of(lags_ns: &[f64]) -> u64 {
    let is_flat = spread(lags_ns) < SAME_NS;
    let candidates = (2..=HEADS_MAX.min(lags_ns.len() as u64 / 2)).flat_map(|heads| {
        [false, true].map(|turns_back| (explanations(lags_ns, heads, turns_back), heads))
    });
    let known = candidates.filter_map(|(count, heads)| Some((count?, heads)));
    known.min().filter(|_| !is_flat).map_or(1, |(_, heads)| heads)
}

fn spread(times: &[f64]) -> f64 {
    let (least, most) =
        times.iter().fold((f64::MAX, f64::MIN), |(a, b), &time| (a.min(time), b.max(time)));
    most - least
}

/// Times that explain those to all tracks, on a drive with this many heads: that of a change of heads, and
/// those of the seeks of which there is one in each cylinder without such a change. Both overlap. None when
/// they do not explain them, or hardly better than times that grow from track to track, as they do on a
/// single surface.
fn explanations(lags_ns: &[f64], heads: u64, turns_back: bool) -> Option<usize> {
    let lag = |track: u64| lags_ns.get(track as usize - 1).copied();
    let switch = lag(1)?;
    let mut times = vec![switch];
    let mut off = Vec::new();
    for cylinder in 0..lags_ns.len() as u64 / heads {
        let seek =
            if cylinder == 0 { switch } else { lag(like_first(cylinder, turns_back, heads))? };
        times.push(seek);
        let others =
            (0..heads).map(|order| cylinder * heads + order).skip(usize::from(cylinder == 0));
        let others =
            others.filter(|track| *track != like_first(cylinder, turns_back, heads) && *track > 1);
        off.extend(others.filter_map(lag).map(|lag| (lag - seek.max(switch)).abs()));
    }
    let steps: Vec<f64> = times.windows(2).skip(1).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let is_like = !off.is_empty() && off.iter().all(|off| *off < SAME_NS);
    (is_like && mean(&steps) > STEPS_DIFFER * mean(&off)).then_some(times.len())
}

fn like_first(cylinder: u64, turns_back: bool, heads: u64) -> u64 {
    if turns_back && cylinder % 2 == 1 { cylinder * heads + heads - 1 } else { cylinder * heads }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// Times change this many times more from cylinder to cylinder than within one.
const STEPS_DIFFER: f64 = 3.0;

/// The head of a cylinder's track that comes `order`-th.
fn head(zones: &[ZoneMap], mapping: Mapping, cylinder: u64, order: u64) -> u64 {
    let zone = &zones[zone_of(zones, cylinder)];
    let in_band = zone.turns_back_in_band(cylinder - zone.first_cylinder);
    let turns_back = match mapping {
        _ if in_band.is_some() => in_band == Some(true),
        Mapping::Serpentine => cylinder % 2 == 1,
        Mapping::SerpentineByZone => (cylinder - zone.first_cylinder) % 2 == 1,
        _ => false,
    };
    if turns_back { zone.surfaces() - 1 - order } else { order }
}

/// The order of tracks; None when it shows in no time, as on a drive that changes heads in less time
/// than it takes to the next cylinder.
pub(super) fn mapping(timer: &mut Timer<'_, '_>) -> Result<Option<Mapping>, ExtractError> {
    if let Some(mapping) = bands::mapping(timer.zones) {
        return Ok(Some(mapping));
    }
    let Some(zone) = timer.zones.iter().find(|zone| zone.heads > 1 && zone.cylinders() > 2) else {
        return Ok(None);
    };
    let (first, pairs, last_order) = (zone.first_cylinder, zone.cylinders() - 2, zone.heads - 1);
    let mut lag = |order: u64| {
        let lag = timer.least_lag_ns(|prober| {
            let from = first + prober.below(pairs);
            (from, 0, from + 1, order)
        })?;
        lag.ok_or_else(|| no_time("a seek to the next cylinder"))
    };
    let (like, unlike) = (lag(0)?, lag(last_order)?);
    if (like - unlike).abs() < SAME_NS {
        return Ok(None);
    }
    if like < unlike {
        return Ok(Some(Mapping::Cylinder));
    }
    serpentine(timer).map(Some)
}

/// True if heads begin anew in every zone, from the change into a zone where that makes a difference.
fn serpentine(timer: &mut Timer<'_, '_>) -> Result<Mapping, ExtractError> {
    let Some(zone) = timer.zones.iter().find(|zone| zone.first_cylinder % 2 == 1) else {
        return Ok(Mapping::Serpentine);
    };
    let (to, last_order) = (zone.first_cylinder, zone.heads - 1);
    let mut lags = [0.0; 2];
    for (lag, order) in lags.iter_mut().zip([0, last_order]) {
        let found = timer.least_lag_ns(|_| (to - 1, 0, to, order))?;
        *lag = found.ok_or_else(|| no_time("a seek into a zone"))?;
    }
    let fast = if lags[0] < lags[1] { 0 } else { last_order };
    Ok(
        if head(timer.zones, Mapping::Serpentine, to - 1, 0)
            == head(timer.zones, Mapping::Serpentine, to, fast)
        {
            Mapping::Serpentine
        } else {
            Mapping::SerpentineByZone
        },
    )
}

/// The least lag of a seek over this many cylinders by which no head changes.
pub(super) fn seek_lag_ns(
    timer: &mut Timer<'_, '_>,
    mapping: Option<Mapping>,
    distance: u64,
) -> Result<Option<f64>, ExtractError> {
    let cylinders = timer.cylinders();
    let mapping = mapping.unwrap_or_default();
    let (zones, heads) = (timer.zones, timer.zones[0].surfaces());
    timer.least_lag_ns(|prober| {
        let (near, order) = (prober.below(cylinders - distance), prober.below(heads));
        let far = near + distance;
        let turned = head(zones, mapping, near, 0) != head(zones, mapping, far, 0);
        let other = if turned { heads - 1 - order } else { order };
        if prober.below(2) == 0 { (near, order, far, other) } else { (far, order, near, other) }
    })
}

/// The least lag of a change of heads; None on a drive with one.
pub(super) fn switch_lag_ns(timer: &mut Timer<'_, '_>) -> Result<Option<f64>, ExtractError> {
    let (cylinders, heads) = (timer.cylinders(), timer.zones[0].surfaces());
    if heads == 1 {
        return Ok(None);
    }
    // To a track that comes before: reading on leads away from it.
    let lag = timer.least_lag_ns(|prober| {
        let from = 1 + prober.below(heads - 1);
        let cylinder = prober.below(cylinders);
        (cylinder, from, cylinder, prober.below(from))
    })?;
    lag.map(Some).ok_or_else(|| no_time("a change of heads"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of movements from track 0 on a drive with this many heads.
    fn lags(heads: u64, turns_back: bool, switch: f64, seek: impl Fn(u64) -> f64) -> Vec<f64> {
        let lag = |track: u64| {
            let (cylinder, order) = (track / heads, track % heads);
            let is_back = turns_back && cylinder % 2 == 1;
            let head = if is_back { heads - 1 - order } else { order };
            let arm = if cylinder > 0 { seek(cylinder) } else { 0.0 };
            let noise = (track * 7919 % 13) as f64 * 1000.0;
            200_000.0 + noise + if head != 0 { arm.max(switch) } else { arm }
        };
        (1..=80).map(lag).collect()
    }

    #[test]
    fn surfaces_are_counted_by_movement_times() {
        let seek = |distance: u64| 300_000.0 + 150_000.0 * (distance as f64).sqrt();
        for heads in [2, 3, 5, 8, 12, 20] {
            for turns_back in [false, true] {
                for switch in [150_000.0, 900_000.0] {
                    let found = heads_of(&lags(heads, turns_back, switch, seek));
                    assert_eq!(found, heads, "{turns_back} {switch}");
                }
            }
        }
        assert_eq!(heads_of(&lags(1, false, 0.0, seek)), 1);
        assert_eq!(heads_of(&lags(4, false, 9e6, |_| 9e6)), 1, "nothing to tell them by");
    }
}
