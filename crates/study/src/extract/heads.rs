//! In which order heads come, and how long it takes to change them.

use freewheel_model::drive::spec::Mapping;

use super::map::{ZoneMap, zone_of};
use super::seeks::Timer;
use super::{ExtractError, no_time};

/// Two times that differ by less are the same: four times what bisection leaves open, and seeks vary.
const SAME_NS: f64 = 40_000.0;

/// The head of a cylinder's track that comes `order`-th.
fn head(zones: &[ZoneMap], mapping: Mapping, cylinder: u64, order: u64) -> u64 {
    let zone = &zones[zone_of(zones, cylinder)];
    let turns_back = match mapping {
        Mapping::Serpentine => cylinder % 2 == 1,
        Mapping::SerpentineByZone => (cylinder - zone.first_cylinder) % 2 == 1,
        _ => false,
    };
    if turns_back { zone.heads - 1 - order } else { order }
}

/// The order of tracks; None when it shows in no time, as on a drive that changes heads in less time
/// than it takes to the next cylinder.
pub(super) fn mapping(timer: &mut Timer<'_, '_>) -> Result<Option<Mapping>, ExtractError> {
    let Some(zone) = timer.zones.iter().find(|zone| zone.heads > 1 && zone.cylinders() > 2) else {
        return Ok(None);
    };
    let (first, pairs, last_order) = (zone.first_cylinder, zone.cylinders() - 2, zone.heads - 1);
    let mut lag = |order: u64| {
        let lag = timer.least_lag_ns(|host| {
            let from = first + host.below(pairs);
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

/// Whether heads begin anew in every zone, from the change into a zone where that makes a
/// difference.
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
    let stays =
        |mapping| head(timer.zones, mapping, to - 1, 0) == head(timer.zones, mapping, to, fast);
    Ok(if stays(Mapping::Serpentine) { Mapping::Serpentine } else { Mapping::SerpentineByZone })
}

/// The least lag of a seek over so many cylinders by which no head changes.
pub(super) fn seek_lag_ns(
    timer: &mut Timer<'_, '_>,
    mapping: Option<Mapping>,
    distance: u64,
) -> Result<f64, ExtractError> {
    let cylinders = timer.cylinders();
    let mapping = mapping.unwrap_or_default();
    let (zones, heads) = (timer.zones, timer.zones[0].heads);
    let lag = timer.least_lag_ns(|host| {
        let (near, order) = (host.below(cylinders - distance), host.below(heads));
        let far = near + distance;
        let turned = head(zones, mapping, near, 0) != head(zones, mapping, far, 0);
        let other = if turned { heads - 1 - order } else { order };
        if host.below(2) == 0 { (near, order, far, other) } else { (far, order, near, other) }
    })?;
    lag.ok_or_else(|| no_time(&format!("a seek of {distance} cylinders")))
}

/// The least lag of a change of heads; None on a drive with one.
pub(super) fn switch_lag_ns(timer: &mut Timer<'_, '_>) -> Result<Option<f64>, ExtractError> {
    let (cylinders, heads) = (timer.cylinders(), timer.zones[0].heads);
    if heads == 1 {
        return Ok(None);
    }
    // To a track that comes before: reading on leads away from it.
    let lag = timer.least_lag_ns(|host| {
        let from = 1 + host.below(heads - 1);
        let cylinder = host.below(cylinders);
        (cylinder, from, cylinder, host.below(from))
    })?;
    lag.map(Some).ok_or_else(|| no_time("a change of heads"))
}
