//! A spindle whose speed drifts with temperature and supply voltage.

use std::fmt;
use std::str::FromStr;

use freewheel_units::{SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Range and period of a spindle's drift: the speed moves evenly from the slowest to the fastest and
/// back. Written as `2.5ppm/30min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpindleDrift {
    /// Largest deviation from the speed in the drive file, in parts of 10^9.
    pub parts_per_billion: u32,
    /// Time from the slowest to the fastest.
    pub within: SimDuration,
}

impl FromStr for SpindleDrift {
    type Err = String;

    /// Parses a text such as `2.5ppm/30min`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: give how much and how fast, as 2.5ppm/30min");
        let (most, within) = text.split_once('/').ok_or_else(wrong)?;
        let ppm: f64 =
            most.strip_suffix("ppm").and_then(|ppm| ppm.parse().ok()).ok_or_else(wrong)?;
        let within = within.parse().map_err(|_| wrong())?;
        let parts = (ppm * 1e3).round();
        let is_number = (0.0..=f64::from(u32::MAX)).contains(&parts);
        is_number.then_some(Self { parts_per_billion: parts as u32, within }).ok_or_else(wrong)
    }
}

impl fmt::Display for SpindleDrift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}ppm/{}", f64::from(self.parts_per_billion) / 1e3, self.within)
    }
}

impl Serialize for SpindleDrift {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SpindleDrift {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for SpindleDrift {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SpindleDrift".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": r"^[0-9.]+ppm/[0-9_.]+ ?(ns|us|ms|s|min|h|d)$",
            "description": "how far and how fast the speed of a spindle wanders, from the slowest to the fastest and back, as 2.5ppm/30min"
        })
    }
}

/// Converts between the spindle's clock and the host's. The whole drive runs by the spindle's clock;
/// for the rest of the drive that is wrong by millionths only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spindle {
    drift: SpindleDrift,
    /// Offset into the period at time zero.
    phase_ns: u64,
}

impl Spindle {
    /// A spindle that begins anywhere in its period; `phase_ns` may exceed it.
    pub fn new(drift: SpindleDrift, phase_ns: u64) -> Self {
        Self { drift, phase_ns }
    }

    /// Lead of the spindle's clock, up to a constant: the integral of its deviation. The deviation is a
    /// triangle wave, so the integral is a parabola in each half of the period.
    fn ahead_ns(&self, ns: u64) -> i128 {
        let half = i128::from(self.drift.within.ns().max(1));
        let at = (i128::from(ns) + i128::from(self.phase_ns)) % (2 * half);
        let (within, sign) = if at < half { (at, -1) } else { (at - half, 1) };
        // The integral of a line from -1 to +1 over `half` is zero at both ends: the halves join
        // without a step.
        let area = within * (half - within) / half;
        sign * area * i128::from(self.drift.parts_per_billion) / 1_000_000_000
    }

    /// The spindle's clock at a time of the host.
    pub fn own(&self, time: SimTime) -> SimTime {
        let ahead = self.ahead_ns(time.ns()) - self.ahead_ns(0);
        let ns = (i128::from(time.ns()) + ahead).clamp(0, i128::from(u64::MAX));
        SimTime::from_ns(ns as u64)
    }

    /// The first time of the host at which the spindle's clock shows `own`.
    pub fn others(&self, own: SimTime) -> SimTime {
        let mut ns = own.ns();
        // The drift is a small part of the time, so each correction shrinks the error about a
        // thousandfold; four leave some nanoseconds.
        for _ in 0..4 {
            let off = i128::from(own.ns()) - i128::from(self.own(SimTime::from_ns(ns)).ns());
            ns = later(ns, off);
        }
        // Single steps find the first of several host times that show `own`.
        while ns < u64::MAX && self.own(SimTime::from_ns(ns)) < own {
            ns += 1;
        }
        while ns > 0 && self.own(SimTime::from_ns(ns - 1)) >= own {
            ns -= 1;
        }
        SimTime::from_ns(ns)
    }
}

fn later(ns: u64, by: i128) -> u64 {
    (i128::from(ns) + by).clamp(0, i128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    fn spindle(phase_ns: u64) -> Spindle {
        Spindle::new("5ppm/30min".parse().unwrap(), phase_ns)
    }

    #[test]
    fn spindle_times_convert_both_ways() {
        for phase in [0, HOUR / 7, HOUR / 2] {
            let spindle = spindle(phase);
            assert_eq!(spindle.own(SimTime::ZERO), SimTime::ZERO);
            for step in 0..1000 {
                let own = SimTime::from_ns(step * HOUR / 250 + step % 7);
                let others = spindle.others(own);
                assert!(spindle.own(others) >= own);
                assert!(
                    others == SimTime::ZERO || spindle.own(SimTime::from_ns(others.ns() - 1)) < own
                );
            }
        }
    }

    #[test]
    fn spindle_speed_swings_within_drift() {
        let spindle = spindle(0);
        let speed = |at: u64| {
            let second = 1_000_000_000;
            let [from, to] = [at, at + second].map(|ns| spindle.own(SimTime::from_ns(ns)).ns());
            (to - from) as i64 - second as i64
        };
        for (at, parts) in
            [(0, -5000), (HOUR / 4, 0), (HOUR / 2, 5000), (HOUR * 3 / 4, 0), (HOUR, -5000)]
        {
            assert!((speed(at) - parts).abs() <= 10, "{} at {at}", speed(at));
        }
    }

    #[test]
    fn drift_parses_as_written() {
        for text in ["2.5ppm/30min", "0.001ppm/1s", "1000ppm/12h"] {
            assert_eq!(text.parse::<SpindleDrift>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn drift_malformed_refused_with_example() {
        for text in ["5ppm", "5/30min", "xppm/30min", "5ppm/x", "-1ppm/30min"] {
            assert!(text.parse::<SpindleDrift>().unwrap_err().contains("2.5ppm/30min"), "{text}");
        }
    }
}
