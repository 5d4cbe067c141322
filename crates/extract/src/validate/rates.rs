//! A drive beside the rates at which a real one was read in order, by zone.
//!
//! Two texts are taken:
//!
//! ```text
//! ddrescue --log-rates    #Time  Ipos  Current_rate  Average_rate  Bad_areas  Bad_size
//!                         seconds, position in bytes (0x...), bytes a second twice, bad areas, bytes
//! accesses                # lbn ms
//!                         start of a read in blocks of 512 B and its time; a read ends where the next begins
//! ```
//! Either becomes stretches: from one place to another in these seconds. The rate of a zone is the
//! median of the stretches that lie in it, which a pause or a retry does not move. What is not read
//! in order does not measure the media, and is left out.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{Drive, FileZone};
use freewheel_sim::config::ConfigError;
use freewheel_sim::library;
use freewheel_units::{BLOCK_BYTES, grouped};
use serde::Serialize;

use super::ValidateError;

/// Measured rates, and rates of the drive file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateValidation {
    /// Name of the drive.
    pub drive: String,
    /// Path of the measurement.
    pub file: String,
    /// One for each zone with data, in order.
    pub zones: Vec<ZoneRate>,
    /// Stretches that are not compared, and why.
    pub left_out: Vec<LeftOut>,
    /// Changes to the drive file; empty where both agree.
    pub advice: Vec<String>,
}

/// Sequential rates of a zone, in bytes a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ZoneRate {
    /// Number of the zone in the file, from 0.
    pub zone: usize,
    pub first_block: u64,
    pub blocks: u64,
    /// Blocks of a track by the file; their mean where surfaces differ.
    pub blocks_per_track: u32,
    /// Measured stretches in it.
    pub stretches: u64,
    /// Their median rate; null with less than three.
    pub measured: Option<f64>,
    /// The rate by the file, with all head and cylinder switches.
    pub simulated: f64,
    /// The measured rate over that of the file, less one.
    pub difference: Option<f64>,
}

/// Stretches that are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct LeftOut {
    pub stretches: u64,
    pub why: &'static str,
}

/// The first words of a rate log of ddrescue.
const DDRESCUE: &str = "#Time  Ipos  Current_rate";

/// The first line of an access series.
const ACCESSES: &str = "# lbn ms";

/// Fewest stretches of a zone that count.
const FEWEST: usize = 3;

/// Rates that differ by no more count as equal: about what ten stretches of a second can tell.
const NEAR: f64 = 0.03;

/// Differences of zones that are within this of each other have one cause.
const ALIKE: f64 = 0.015;

/// Largest difference between the positions and the rate of a line: they are of about the same second.
const SKIPPED: f64 = 0.2;

/// Least time of a stretch of accesses: over some tracks, with their switches.
const STRETCH_S: f64 = 0.25;

/// Longest read of an access series.
const ACCESS_BLOCKS_MAX: u64 = 1 << 17;

/// Read in order from one byte to another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    from: u64,
    to: u64,
    seconds: f64,
}

/// Stretches, and those that are left out.
#[derive(Debug, Default, PartialEq)]
struct Measured {
    stretches: Vec<Stretch>,
    left_out: Vec<LeftOut>,
}

impl Measured {
    fn leave_out(&mut self, why: &'static str) {
        match self.left_out.iter_mut().find(|left_out| left_out.why == why) {
            Some(there) => there.stretches += 1,
            None => self.left_out.push(LeftOut { stretches: 1, why }),
        }
    }
}

/// True if a text is one of the two.
pub fn is_rates(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(DDRESCUE)) || is_accesses(text)
}

fn is_accesses(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim().eq_ignore_ascii_case(ACCESSES))
}

/// Compares the rates in a text with those of a drive, by zone.
pub fn validate_rates(
    drive: &str,
    file: &str,
    text: &str,
) -> Result<RateValidation, ValidateError> {
    let (spec, built) = library::drive(drive).map_err(ConfigError::from)?;
    if built.actuators() > 1 {
        return Err(wrong(
            "the drive has several actuators; a drive with one is needed".into(),
            file,
        ));
    }
    let measured = if is_accesses(text) { accesses(text) } else { ddrescue(text) };
    let mut measured = measured.map_err(|reason| wrong(reason, file))?;
    let zones = by_zone(&spec, &built, &mut measured).map_err(|reason| wrong(reason, file))?;
    let advice = advice(&spec, &zones);
    let left_out = measured.left_out;
    Ok(RateValidation { drive: spec.name, file: file.into(), zones, left_out, advice })
}

fn wrong(reason: String, file: &str) -> ValidateError {
    ValidateError::Rates { file: file.into(), reason }
}

/// A line of a rate log: seconds, position, rate of the last second, and what is bad.
fn rate_line(line: &str) -> Option<(u64, u64, u64, [u64; 2])> {
    let mut words = line.split_whitespace();
    let time = words.next()?.parse().ok()?;
    let position = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (current, _average) = (number()?, number()?);
    let bad = [number()?, number()?];
    words.next().is_none().then_some((time, position, current, bad))
}

fn ddrescue(text: &str) -> Result<Measured, String> {
    let mut measured = Measured::default();
    let mut before: Option<(u64, u64, [u64; 2])> = None;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let (time, position, current, bad) = rate_line(line).ok_or_else(|| {
            format!(
                "line {}: {line:?}: seconds, position as 0x1000, two rates in bytes a second, bad areas and \
                 bad bytes are expected, as ddrescue writes them with --log-rates",
                number + 1
            )
        })?;
        let last = before.replace((time, position, bad));
        let Some((last_time, from, last_bad)) = last else { continue };
        let seconds = time.saturating_sub(last_time) as f64;
        let rate = position.saturating_sub(from) as f64 / seconds;
        if position <= from || seconds <= 0.0 {
            measured.leave_out("they do not go on to higher places");
        } else if bad != last_bad {
            measured.leave_out("blocks in them cannot be read");
        } else if (rate / current as f64 - 1.0).abs() > SKIPPED {
            measured.leave_out("their distance is not what was read: something was skipped");
        } else {
            measured.stretches.push(Stretch { from, to: position, seconds });
        }
    }
    Ok(measured)
}

fn accesses(text: &str) -> Result<Measured, String> {
    let mut reads = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let read = line.trim().split_once(char::is_whitespace).and_then(|(lbn, ms)| {
            let ms = ms.trim().parse().ok().filter(|ms: &f64| ms.is_finite() && *ms > 0.0)?;
            Some((lbn.parse::<u64>().ok()?, ms))
        });
        reads.push(read.ok_or_else(|| {
            let line_number = number + 1;
            format!("line {line_number}: {line:?}: a block and a time in ms above 0 are expected")
        })?);
    }
    let mut measured = Measured::default();
    let mut open: Option<Stretch> = None;
    for pair in reads.windows(2) {
        let ((lbn, ms), (next, _)) = (pair[0], pair[1]);
        let blocks =
            next.checked_sub(lbn).filter(|blocks| (1..=ACCESS_BLOCKS_MAX).contains(blocks));
        if blocks.is_none() {
            measured.leave_out("the next read is not the one behind it");
            open = None;
            continue;
        }
        let [from, to] = [lbn, next].map(|block| block.saturating_mul(BLOCK_BYTES));
        let stretch = open.get_or_insert(Stretch { from, to, seconds: 0.0 });
        stretch.to = to;
        stretch.seconds += ms / 1e3;
        if stretch.seconds >= STRETCH_S {
            measured.stretches.extend(open.take());
        }
    }
    Ok(measured)
}

/// The rates of all zones, measured and of the file.
fn by_zone(
    spec: &DriveSpec,
    drive: &Drive,
    measured: &mut Measured,
) -> Result<Vec<ZoneRate>, String> {
    let capacity = drive.blocks().get() * BLOCK_BYTES;
    if measured.stretches.iter().any(|stretch| stretch.to > capacity) {
        return Err(format!(
            "it goes beyond the drive's {capacity} bytes: it is of a larger drive, or its places are not \
             in this unit"
        ));
    }
    let zones: Vec<(usize, FileZone)> = drive.layout().file_zones().collect();
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); zones.len()];
    for stretch in std::mem::take(&mut measured.stretches) {
        match zones.iter().position(|(_, zone)| {
            let from = zone.first_lbn.get() * BLOCK_BYTES;
            from <= stretch.from && stretch.to <= from + zone.blocks.get() * BLOCK_BYTES
        }) {
            Some(zone) => rates[zone].push((stretch.to - stretch.from) as f64 / stretch.seconds),
            None => measured.leave_out("they lie in two zones"),
        }
    }
    if rates.iter().all(|rates| rates.len() < FEWEST) {
        return Err(format!(
            "no zone of the drive has {FEWEST} stretches that were read in order: read the whole drive from \
             its beginning to its end"
        ));
    }
    let with_data = zones.into_iter().zip(rates).filter(|((_, zone), _)| zone.blocks.get() > 0);
    Ok(with_data
        .map(|((of_layout, zone), mut rates)| {
            let simulated = drive.sustained_rate_bytes_per_second(of_layout) as f64;
            let measured = (rates.len() >= FEWEST).then(|| median(&mut rates));
            let cylinder = spec.zones[zone.index].blocks_per_cylinder(spec.surfaces);
            ZoneRate {
                zone: zone.index,
                first_block: zone.first_lbn.get(),
                blocks: zone.blocks.get(),
                blocks_per_track: (cylinder / u64::from(spec.surfaces)) as u32,
                stretches: rates.len() as u64,
                measured,
                simulated,
                difference: measured.map(|measured| measured / simulated - 1.0),
            }
        })
        .collect())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// Spread of values, as a share of the least.
fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().fold(f64::MIN, f64::max);
    most / values.fold(f64::MAX, f64::min) - 1.0
}

/// Sentences on what differs: one for all zones where they have one cause.
fn advice(spec: &DriveSpec, zones: &[ZoneRate]) -> Vec<String> {
    let measured: Vec<(&ZoneRate, f64, f64)> =
        zones.iter().filter_map(|zone| Some((zone, zone.measured?, zone.difference?))).collect();
    let mut rest = &measured[..];
    let mut advice = Vec::new();
    let level = of_one_rate(rest);
    if level > 0 {
        let (first, rate, _) = rest[0];
        let (last, ..) = rest[level - 1];
        advice.push(format!(
            "Zones {} to {} were read at one rate, {:.1} MB/s, where the file has up to {:.1}: that is a limit of \
             bus, host or program, and says nothing of their tracks.",
            first.zone,
            last.zone,
            rate / 1e6,
            first.simulated / 1e6
        ));
        rest = &rest[level..];
    }
    let mut differences: Vec<f64> = rest.iter().map(|(.., difference)| *difference).collect();
    if differences.len() >= FEWEST
        && spread(differences.iter().map(|difference| 1.0 + difference)) <= ALIKE
    {
        let middle = median(&mut differences);
        if middle.abs() > NEAR {
            advice.push(format!(
                "All measured zones are {}: that is not one zone. Look at `rotation_period`, `head_switch` and \
                 the skews, and at what held up the reads.",
                by(middle)
            ));
        }
        return advice;
    }
    advice.extend(rest.iter().filter(|(.., difference)| difference.abs() > NEAR).map(
        |(zone, rate, difference)| {
            let there = f64::from(zone.blocks_per_track) * (1.0 + difference);
            let key = match spec.zones[zone.zone].surface_blocks_per_track[..] {
                [] => "`blocks_per_track`",
                _ => "a mean `surface_blocks_per_track` of",
            };
            format!(
                "Zone {}, {} blocks from {} on, is {}: {:.1} MB/s measured, {:.1} by the file. \
                 {key} {} instead of {} would explain it.",
                zone.zone,
                grouped(zone.blocks),
                grouped(zone.first_block),
                by(*difference),
                rate / 1e6,
                zone.simulated / 1e6,
                there.round(),
                zone.blocks_per_track
            )
        },
    ));
    advice
}

/// Number of zones from the first on that were read at one rate below that of the file, though the file has
/// different ones; 0 if they follow the file.
fn of_one_rate(measured: &[(&ZoneRate, f64, f64)]) -> usize {
    (FEWEST..=measured.len()).rev().find(|&count| is_level(count, measured)).unwrap_or(0)
}

fn is_level(count: usize, measured: &[(&ZoneRate, f64, f64)]) -> bool {
    let zones = &measured[..count];
    spread(zones.iter().map(|(_, rate, _)| *rate)) <= ALIKE
        && zones.iter().all(|(.., difference)| *difference < -ALIKE)
        && spread(zones.iter().map(|(zone, ..)| zone.simulated)) > 2.0 * NEAR
}

fn by(difference: f64) -> String {
    let word = if difference < 0.0 { "slower" } else { "faster" };
    format!("{:.1} % {word} than the file", difference.abs() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: &str = "atlas10k";

    /// The rate log of a drive that is read at `rate` of each zone and its rate by the file.
    fn log(rate: impl Fn(usize, f64) -> f64) -> String {
        log_of(&library::drive(DRIVE).unwrap().1, rate)
    }

    fn log_of(drive: &Drive, rate: impl Fn(usize, f64) -> f64) -> String {
        let mut text = format!("# Rates Logfile\n{DDRESCUE}  Average_rate  Bad_areas  Bad_size\n");
        let (mut at, mut time) = (0, 0);
        for (of_layout, zone) in drive.layout().file_zones() {
            let end = (zone.first_lbn.get() + zone.blocks.get()) * BLOCK_BYTES;
            let by_file = drive.sustained_rate_bytes_per_second(of_layout) as f64;
            let rate = rate(zone.index, by_file) as u64;
            while at + rate <= end {
                text += &format!("{time:2}  0x{at:08X}  {rate:8}  {rate:8}        0         0\n");
                (at, time) = (at + rate, time + 1);
            }
        }
        text
    }

    fn validated(text: &str) -> RateValidation {
        assert!(is_rates(text));
        validate_rates(DRIVE, "rates.log", text).unwrap()
    }

    #[test]
    fn rates_of_own_log_agree() {
        let validation = validated(&log(|_, rate| rate));
        assert_eq!(validation.advice, [] as [String; 0]);
        assert!(validation.zones.len() > 10);
        for zone in &validation.zones {
            let difference = zone.difference.unwrap();
            assert!(difference.abs() < 0.001, "{zone:?}");
        }
    }

    #[test]
    fn zone_of_shorter_tracks_is_named() {
        let (_, drive) = library::drive(DRIVE).unwrap();
        let track = drive.layout().zones()[4].blocks_per_track();
        let validation = validated(&log(|zone, rate| if zone == 4 { rate * 0.93 } else { rate }));
        let [said] = &validation.advice[..] else { panic!("{:?}", validation.advice) };
        assert!(
            said.starts_with("Zone 4, ") && said.contains("7.0 % slower than the file"),
            "{said}"
        );
        let there = (f64::from(track) * 0.93).round();
        let says = format!("`blocks_per_track` {there} instead of {track} would explain it");
        assert!(said.contains(&says), "{said}");
    }

    #[test]
    fn zones_of_different_surfaces_match_file() {
        let mut spec = library::spec("barracuda-7200-11-320gb").unwrap();
        for zone in &mut spec.zones {
            let tracks = (0..spec.surfaces).map(|surface| zone.blocks_per_track - 100 * surface);
            zone.surface_blocks_per_track = tracks.collect();
            (zone.reserved_blocks, zone.slips, zone.remaps) = (0, Vec::new(), Vec::new());
        }
        let drive = library::build(&spec, "two densities").unwrap();
        let text = log_of(&drive, |zone, rate| if zone == 4 { rate * 0.93 } else { rate });
        let zones = by_zone(&spec, &drive, &mut ddrescue(&text).unwrap()).unwrap();
        let numbers: Vec<usize> = zones.iter().map(|zone| zone.zone).collect();
        assert_eq!(numbers, (0..spec.zones.len()).collect::<Vec<_>>());
        assert!(zones.iter().all(|zone| zone.measured.is_some()), "{zones:?}");
        let [said] = &advice(&spec, &zones)[..] else { panic!("{zones:?}") };
        let there = (f64::from(zones[4].blocks_per_track) * 0.93).round();
        let says = format!("mean `surface_blocks_per_track` of {there} instead");
        assert!(said.starts_with("Zone 4, ") && said.contains(&says), "{said}");
    }

    #[test]
    fn common_or_bus_error_blames_no_zone() {
        let slower = validated(&log(|_, rate| rate * 0.9)).advice;
        assert!(
            matches!(&slower[..], [said] if said.contains("All measured zones are 10.0 % slower"))
        );
        let limited = validated(&log(|_, rate| rate.min(16e6))).advice;
        let [said] = &limited[..] else { panic!("{limited:?}") };
        assert!(
            said.starts_with("Zones 0 to ") && said.contains("at one rate, 16.0 MB/s"),
            "{said}"
        );
    }

    #[test]
    fn pauses_skips_and_bad_blocks_are_ignored() {
        let mut lines: Vec<String> = log(|_, rate| rate).lines().map(str::to_owned).collect();
        let bad = |line: &str| line.replace("        0         0", "        1       512");
        lines.iter_mut().skip(20).for_each(|line| *line = bad(line));
        // Another pass begins again, and is much slower where it tries bad blocks.
        lines.push("9999  0x00001000      1000  1000  1  512".into());
        lines.push("10000  0x00002000      100  1000  1  512".into());
        let validation = validated(&lines.join("\n"));
        assert_eq!(validation.advice, [] as [String; 0]);
        let left_out = |why: &str| {
            validation.left_out.iter().find(|there| there.why.contains(why)).unwrap().stretches
        };
        assert_eq!(left_out("cannot be read"), 1);
        assert_eq!(left_out("higher places"), 1);
        assert_eq!(left_out("skipped"), 1);
    }

    #[test]
    fn ordered_accesses_give_zone_rate() {
        let (_, drive) = library::drive(DRIVE).unwrap();
        let rate = drive.sustained_rate_bytes_per_second(0) as f64;
        let ms = 512.0 * 512.0 / rate * 1e3 / 1.05;
        let series: String =
            (0..200).map(|read| format!("{} {ms:.6}\n", 1000 + read * 512)).collect();
        let validation = validated(&format!("# LBN ms\n{series}50 3.5\n9000000 4\n"));
        let zone = &validation.zones[0];
        assert!((zone.difference.unwrap() - 0.05).abs() < 0.001, "{zone:?}");
        assert_eq!(validation.zones[1].measured, None, "it was not measured");
        let [LeftOut { stretches: 2, why }] = validation.left_out[..] else {
            panic!("{:?}", validation.left_out)
        };
        assert!(why.contains("not the one behind it"), "{why}");
    }

    #[test]
    fn unknown_line_is_named_with_expectation() {
        let refused = |text: &str| validate_rates(DRIVE, "a.log", text).unwrap_err().to_string();
        let said = refused(&format!("{DDRESCUE}\n 0:00:01  0x00 1MB/s\n"));
        assert!(said.starts_with("a.log: line 2: ") && said.contains("--log-rates"), "{said}");
        let said = refused("# lbn ms\n100 0\n");
        assert!(said.contains("line 2: \"100 0\": a block and a time in ms above 0"), "{said}");
        let far = log(|_, rate| rate).replace("0x0", "0x90000");
        assert!(refused(&far).contains("beyond the drive's"));
        assert!(refused("# lbn ms\n100 5\n200 5\n").contains("no zone of the drive has 3"));
        assert!(!is_rates("lbn,ms\n1,2\n"));
    }
}
