//! From what a drive file says to a drive that answers: every check of a spec is made here, once.

use super::error::{BuildDriveError, invalid};
use super::layout::Layout;
use super::mechanics::Drive;
use super::rotation::Rotation;
use super::seek::SeekCurve;
use crate::spec::drive::{CurveSpec, DriveSpec, SeekSpec, ZoneSpec};
use freewheel_units::{Blocks, Bytes, Op, SimDuration};

const ACTUATORS_MAX: u32 = 8;
const SURFACES_MAX: u32 = 64;
const CYLINDERS_MAX: u32 = 4_000_000;
/// Largest number of zones: a planner's table of tracks numbers zones with 16 bits and needs one number for
/// none.
const LAYOUT_ZONES_MAX: u64 = u16::MAX as u64;
const SEEK_MS_MAX: f64 = 1000.0;

impl Drive {
    /// Checks a spec and builds the drive it describes.
    pub fn build(spec: &DriveSpec) -> Result<Self, BuildDriveError> {
        check_numbers(spec)?;
        let layout = Layout::build(spec)?;
        if layout.blocks().get() == 0 {
            return Err(invalid("zones", "without a data block", "a drive holds at least one"));
        }
        let rotation = Rotation::new(spec.rotation_period);
        let drive = Drive::new(layout, seek_curve(spec)?, rotation, spec);
        check_zoned(spec, drive.total_blocks())?;
        check_sectors(spec, drive.layout())?;
        check_media_cache(spec, drive.blocks().bytes())?;
        Ok(drive)
    }

    /// True if the drive of `spec` is that of `built`, from which one was built: of electronics, mechanics
    /// know the sector alone. False of a `spec` from which none can be built.
    pub fn is_same(built: &DriveSpec, spec: &DriveSpec) -> bool {
        let electronics = spec.electronics.clone();
        built.electronics.sector == electronics.sector
            && DriveSpec { electronics, ..built.clone() } == *spec
            && check_numbers(spec).is_ok()
    }
}

fn check_numbers(spec: &DriveSpec) -> Result<(), BuildDriveError> {
    if !(1..=ACTUATORS_MAX).contains(&spec.actuators) {
        let rule = format!("1 to {ACTUATORS_MAX} are allowed");
        return Err(invalid("actuators", spec.actuators, rule));
    }
    if !(1..=SURFACES_MAX).contains(&spec.surfaces) {
        return Err(invalid("surfaces", spec.surfaces, format!("1 to {SURFACES_MAX} are allowed")));
    }
    if !(1..=CYLINDERS_MAX).contains(&spec.cylinders) {
        let rule = format!("1 to {CYLINDERS_MAX} are allowed");
        return Err(invalid("cylinders", spec.cylinders, rule));
    }
    check_zone_count(spec)?;
    let period_ms = spec.rotation_period.as_ms_f64();
    if !(0.5..=100.0).contains(&period_ms) {
        let rule = "0.5 ms (120000 rpm) to 100 ms (600 rpm) are allowed";
        return Err(invalid("rotation_period", spec.rotation_period, rule));
    }
    for (key, time) in [
        ("head_switch", spec.head_switch),
        ("seek.write_settle", spec.seek.write_settle),
        ("seek.tolerance", spec.seek.tolerance),
        ("overhead.read", spec.overhead.read),
        ("overhead.write", spec.overhead.write),
    ] {
        if time.as_ms_f64() > SEEK_MS_MAX {
            return Err(invalid(key, time, "at most 1 s is allowed"));
        }
    }
    spec.electronics.check().map_err(|(key, value, rule)| invalid(key, value, rule))?;
    check_measuring_host(spec)?;
    check_sources(spec)
}

/// Checks the number of zones: where surfaces differ, each has separate zones.
fn check_zone_count(spec: &DriveSpec) -> Result<(), BuildDriveError> {
    let of_each = if spec.has_surface_zones() { u64::from(spec.surfaces) } else { 1 };
    let most = LAYOUT_ZONES_MAX / of_each;
    if spec.zones.len() as u64 <= most {
        return Ok(());
    }
    let rule =
        format!("at most {most} are allowed: make one of neighbours with tracks of one length");
    Err(invalid("zones", format!("{} zones", spec.zones.len()), rule))
}

/// The cache's tracks lie beside addresses that one actuator has.
fn check_media_cache(spec: &DriveSpec, capacity: Bytes) -> Result<(), BuildDriveError> {
    let Some(cache) = &spec.electronics.media_cache else { return Ok(()) };
    if cache.end() <= capacity {
        return Ok(());
    }
    let rule = format!("with `size` it may end at {capacity}, the capacity of an actuator");
    Err(invalid("electronics.media_cache.start", cache.start, rule))
}

/// Checks the host's replacements for parts of `electronics`, which are checked before.
fn check_measuring_host(spec: &DriveSpec) -> Result<(), BuildDriveError> {
    let checked = spec.electronics_as_measured().check();
    checked.map_err(|(key, value, rule)| invalid(of_host(key), value, rule))
}

fn of_host(key: &str) -> String {
    key.replacen("electronics", "measured_on", 1)
}

/// That sectors of several blocks each lie on one track, with blocks from a multiple of their size on.
fn check_sectors(spec: &DriveSpec, layout: &Layout) -> Result<(), BuildDriveError> {
    let sector = u64::from(spec.electronics.sector.physical_blocks());
    for (said, (_, zone)) in spec.zones.iter().zip(layout.file_zones()) {
        let refuse = |key: &str, value: u64| {
            let rule = format!(
                "with `electronics.sector = \"{}\"` sectors hold {sector} blocks, and a zone has whole ones",
                spec.electronics.sector
            );
            Err(invalid(format!("zones[{}].{key}", zone.index), value, rule))
        };
        for (key, value) in [
            ("blocks_per_track", said.blocks_per_track.into()),
            ("reserved_blocks", said.reserved_blocks),
            ("spares", said.spares),
        ] {
            if !value.is_multiple_of(sector) {
                return refuse(key, value);
            }
        }
        let slips: Vec<(u64, u64)> = said.slips.iter().map(|&slip| (slip, slip)).collect();
        for (key, defects) in [("slips", &slips), ("remaps", &said.remaps)] {
            if let Some(amid) = defects.chunks(sector as usize).find_map(|all| amid(all, sector)) {
                return refuse(key, amid);
            }
        }
        if let Some(amid) = amid_sectors(said, sector) {
            return refuse(amid.0, amid.1);
        }
        if !zone.blocks.get().is_multiple_of(sector) {
            return refuse("last_cylinder", said.last_cylinder.into());
        }
    }
    Ok(())
}

/// A number of one surface that is not of whole sectors, with its key.
fn amid_sectors(zone: &ZoneSpec, sector: u64) -> Option<(&'static str, u64)> {
    let densities = zone.surface_blocks_per_track.iter();
    let densities = densities.map(|&blocks| ("surface_blocks_per_track", blocks));
    let holes = zone
        .holes
        .iter()
        .flat_map(|hole| [hole.first_block, hole.blocks.unwrap_or(0)])
        .map(|blocks| ("holes", blocks));
    let numbers = densities.chain(holes).map(|(key, blocks)| (key, u64::from(blocks)));
    numbers.into_iter().find(|(_, blocks)| !blocks.is_multiple_of(sector))
}

/// The first of these defects, unless they are one whole sector that another stands in for.
fn amid(defects: &[(u64, u64)], sector: u64) -> Option<u64> {
    let (from, to) = defects[0];
    let is_whole = (from | to | defects.len() as u64).is_multiple_of(sector)
        && (0..).zip(defects).all(|(at, &defect)| defect == (from + at, to + at));
    (!is_whole).then_some(from)
}

const ZONES_MAX: u64 = 1 << 24;

fn check_zoned(spec: &DriveSpec, blocks: Blocks) -> Result<(), BuildDriveError> {
    let Some(zoned) = &spec.zoned else { return Ok(()) };
    if !(1..=blocks.get()).contains(&zoned.zone_blocks.get()) {
        let rule = format!("1 to {}, the drive's capacity, are allowed", blocks.get());
        return Err(invalid("zoned.zone_blocks", zoned.zone_blocks.get(), rule));
    }
    let zones = blocks.get().div_ceil(zoned.zone_blocks.get());
    if zones > ZONES_MAX {
        let rule = format!("that makes {zones} zones; at most {ZONES_MAX} are allowed");
        return Err(invalid("zoned.zone_blocks", zoned.zone_blocks.get(), rule));
    }
    if u64::from(zoned.conventional_zones) > zones {
        let rule = format!("0 to {zones}, as many as there are, are allowed");
        return Err(invalid("zoned.conventional_zones", zoned.conventional_zones, rule));
    }
    if zoned.max_open_zones == 0 {
        return Err(invalid("zoned.max_open_zones", 0, "at least 1 is needed"));
    }
    Ok(())
}

/// Allowed beginnings of a source.
const SOURCE_KINDS: [&str; 6] =
    ["data sheet", "paper", "measured", "extracted", "derived", "assumed"];

fn check_sources(spec: &DriveSpec) -> Result<(), BuildDriveError> {
    match spec.sources.iter().find(|(_, text)| !has_kind(text)) {
        Some((key, text)) => {
            let rule = format!("a source begins with one of: {}", SOURCE_KINDS.join(", "));
            Err(invalid(format!("sources.{key}"), text, rule))
        }
        None => Ok(()),
    }
}

fn has_kind(text: &str) -> bool {
    SOURCE_KINDS.iter().any(|kind| text.starts_with(kind))
}

fn seek_curve(spec: &DriveSpec) -> Result<SeekCurve, BuildDriveError> {
    let SeekSpec { read, write, write_settle, .. } = &spec.seek;
    let read_times = curve_times(read, spec.cylinders, "seek.read")?;
    let write_times = match write {
        Some(curve) => curve_times(curve, spec.cylinders, "seek.write")?,
        None => read_times.clone(),
    };
    Ok(SeekCurve::new(&read_times, &write_times, spec.head_switch, *write_settle))
}

/// The arm's time for every distance `1..cylinders`.
fn curve_times(
    curve: &CurveSpec,
    cylinders: u32,
    key: &str,
) -> Result<Vec<SimDuration>, BuildDriveError> {
    let time_at = evaluator(curve, cylinders, key)?;
    (1..cylinders)
        .map(|distance| {
            let ms = time_at(distance);
            if (0.0..=SEEK_MS_MAX).contains(&ms) {
                Ok(SimDuration::from_ms_f64(ms))
            } else {
                let value = format!("{ms} ms at a distance of {distance} cylinders");
                Err(invalid(key, value, "0 to 1000 ms are allowed"))
            }
        })
        .collect()
}

type CurveFunction = Box<dyn Fn(u32) -> f64>;

pub(super) fn evaluator(
    curve: &CurveSpec,
    cylinders: u32,
    key: &str,
) -> Result<CurveFunction, BuildDriveError> {
    match curve.clone() {
        CurveSpec::Table { cylinders_ms } => table(cylinders_ms, key),
        CurveSpec::ThreePoint { single_ms, average_ms, full_ms } => {
            Ok(three_point(single_ms, average_ms, full_ms, cylinders))
        }
        CurveSpec::Hp {
            first_ms,
            break_cylinders,
            short_ms,
            short_sqrt_ms,
            long_ms,
            long_slope_ms,
        } => Ok(Box::new(move |d| {
            if let Some(&ms) = first_ms.get(d as usize - 1) {
                ms
            } else if d < break_cylinders {
                short_ms + short_sqrt_ms * f64::from(d).sqrt()
            } else {
                long_ms + long_slope_ms * f64::from(d)
            }
        })),
        CurveSpec::PowerLinear { single_ms, break_cylinders, break_ms, full_ms } => {
            let bend = CurvePoint { cylinders: break_cylinders, ms: break_ms };
            let full = CurvePoint { cylinders: cylinders - 1, ms: full_ms };
            power_linear(single_ms, bend, full, key)
        }
    }
}

fn table(points: Vec<(u32, f64)>, key: &str) -> Result<CurveFunction, BuildDriveError> {
    let key = format!("{key}.cylinders_ms");
    if points.len() < 2 || points[0].0 != 1 {
        let value = format!("a table of {} points", points.len());
        return Err(invalid(key, value, "two or more are needed, the first at distance 1"));
    }
    if let Some(pair) = points.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        let value = format!("{} after {}", pair[1].0, pair[0].0);
        return Err(invalid(key, value, "distances must ascend"));
    }
    Ok(Box::new(move |distance| {
        let above = points.partition_point(|(d, _)| *d < distance).clamp(1, points.len() - 1);
        let ((d1, t1), (d2, t2)) = (points[above - 1], points[above]);
        t1 + (t2 - t1) * (f64::from(distance) - f64::from(d1)) / f64::from(d2 - d1)
    }))
}

/// Lee and Katz 1993: a·√(d-1) + b·(d-1) + c through the three points.
fn three_point(single: f64, average: f64, full: f64, cylinders: u32) -> CurveFunction {
    let span = f64::from(cylinders.max(2) - 1);
    let a = (-10.0 * single + 15.0 * average - 5.0 * full) / (3.0 * span.sqrt());
    let b = (7.0 * single - 15.0 * average + 8.0 * full) / (3.0 * span);
    Box::new(move |distance| {
        let beyond = f64::from(distance - 1);
        a * beyond.sqrt() + b * beyond + single
    })
}

/// A seek time at one distance.
struct CurvePoint {
    cylinders: u32,
    ms: f64,
}

/// A power of the distance through one cylinder's time and the bend, and a line from there to the full
/// stroke.
fn power_linear(
    single: f64,
    bend: CurvePoint,
    full: CurvePoint,
    key: &str,
) -> Result<CurveFunction, BuildDriveError> {
    let CurvePoint { cylinders: break_at, ms: break_ms } = bend;
    let CurvePoint { cylinders: full_at, ms: full_ms } = full;
    if !(2..full_at).contains(&break_at) {
        let rule = format!("it must lie between 2 and the full stroke of {full_at}");
        return Err(invalid(format!("{key}.break_cylinders"), break_at, rule));
    }
    if !(single > 0.0 && break_ms > single) {
        let rule = format!("it must exceed single_ms, {single}, which must exceed zero");
        return Err(invalid(format!("{key}.break_ms"), break_ms, rule));
    }
    // libm and not the platform's functions: the same table on every machine.
    let exponent = libm::log(break_ms / single) / libm::log(f64::from(break_at));
    let slope = (full_ms - break_ms) / f64::from(full_at - break_at);
    Ok(Box::new(move |distance| {
        if distance < break_at {
            single * libm::pow(f64::from(distance), exponent)
        } else {
            break_ms + slope * (f64::from(distance) - f64::from(break_at))
        }
    }))
}

impl Drive {
    /// Mean seek over random pairs of cylinders, settling included for writes.
    pub fn mean_seek(&self, op: Op) -> SimDuration {
        self.seek().mean(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYLINDERS: u32 = 1001;

    fn times(curve: &CurveSpec, distances: [u32; 3]) -> [f64; 3] {
        let all = curve_times(curve, CYLINDERS, "seek.read").unwrap();
        distances.map(|distance| all[distance as usize - 1].as_ms_f64())
    }

    #[test]
    fn seek_table_is_linear_between_points() {
        let table =
            CurveSpec::Table { cylinders_ms: vec![(1, 1.0), (11, 2.0), (21, 1.0), (31, 2.0)] };
        assert_eq!(times(&table, [1, 6, 16]), [1.0, 1.5, 1.5]);
        let rising = CurveSpec::Table { cylinders_ms: vec![(1, 1.0), (101, 2.0)] };
        assert_eq!(times(&rising, [101, 201, 1000]), [2.0, 3.0, 10.99]);
    }

    #[test]
    fn seek_three_points_meet_average() {
        let curve = CurveSpec::ThreePoint { single_ms: 1.0, average_ms: 6.0, full_ms: 11.0 };
        let [single, third, full] = times(&curve, [1, 334, 1000]);
        assert!((single - 1.0).abs() < 1e-6 && (full - 11.0).abs() < 0.02, "{single} {full}");
        assert!((third - 6.0).abs() < 0.4, "{third} at a third of the cylinders");
        let all = curve_times(&curve, CYLINDERS, "seek.read").unwrap();
        let none = SimDuration::ZERO;
        let mean = SeekCurve::new(&all, &all, none, none).mean(Op::Read).as_ms_f64();
        assert!((mean - 6.0).abs() < 0.1, "mean of {mean}");
    }

    #[test]
    fn seek_hp_is_root_then_line() {
        let curve = CurveSpec::Hp {
            first_ms: vec![0.5],
            break_cylinders: 100,
            short_ms: 1.0,
            short_sqrt_ms: 0.1,
            long_ms: 3.0,
            long_slope_ms: 0.01,
        };
        // 1 + 0.1 * sqrt(81); 3 + 0.01 * 100.
        assert_eq!(times(&curve, [1, 81, 100]), [0.5, 1.9, 4.0]);
    }

    #[test]
    fn seek_power_line_meet_at_break() {
        let curve = CurveSpec::PowerLinear {
            single_ms: 1.0,
            break_cylinders: 100,
            break_ms: 10.0,
            full_ms: 19.0,
        };
        // 100^p = 10, so p is a half: 5 at 25. Then 9 ms over 900 cylinders.
        let [power, at_break, beyond] = times(&curve, [25, 100, 200]);
        assert!((power - 5.0).abs() < 1e-6 && at_break == 10.0 && (beyond - 11.0).abs() < 1e-6);
    }

    #[test]
    fn seek_curve_below_zero_is_refused() {
        let falling = CurveSpec::Table { cylinders_ms: vec![(1, 1.0), (2, 0.5)] };
        let error = curve_times(&falling, CYLINDERS, "seek.read").unwrap_err().to_string();
        assert!(error.contains("`seek.read`") && error.contains("at a distance of 4"), "{error}");
    }
}
