//! Think times of a faster processor (tr03 section 3.2).

use std::fmt;

use freewheel_units::SimDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Think times of a dependent replay: from the completion of the parent to the arrival of the request.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TracedThinkTime {
    /// As traced.
    #[default]
    Kept,
    /// None: a request arrives when its parent completes.
    Removed,
    /// Think times of a processor that is n times as fast, while users think as long as before: x becomes x
    /// (1 - f + f / n) with the processor's share f = 1 / (0.0857 x + 0.0105) per cent, x in seconds. n is
    /// a number, or "inf" for no processing at all.
    Speedup(
        #[serde(serialize_with = "write", deserialize_with = "read")]
        #[schemars(schema_with = "schema")]
        f64,
    ),
}

/// Least n. Below 1 the processor is slower.
pub(crate) const SPEEDUP_MIN: f64 = 0.01;

/// a and b of the paper. The paper gives no unit of x. In seconds, the processor computes for 10 % of a
/// think time of one second; in milliseconds hardly any think time would become shorter.
const SLOPE: f64 = 0.0857;
const OFFSET: f64 = 0.0105;

impl TracedThinkTime {
    /// The think time instead of this traced one.
    #[inline]
    pub(super) fn apply(self, traced: SimDuration) -> SimDuration {
        match self {
            Self::Kept => traced,
            Self::Removed => SimDuration::ZERO,
            Self::Speedup(speedup) => sped_up(traced, speedup),
        }
    }

    /// The largest factor by which a think time grows.
    pub(crate) fn stretch(self) -> f64 {
        match self {
            Self::Speedup(speedup) => (1.0 / speedup).max(1.0),
            Self::Kept | Self::Removed => 1.0,
        }
    }
}

/// The processor's share of a think time: f is per cent, 95 of them for the shortest.
fn processing_share(seconds: f64) -> f64 {
    1.0 / (SLOPE * seconds + OFFSET) / 100.0
}

fn sped_up(traced: SimDuration, speedup: f64) -> SimDuration {
    let share = processing_share(traced.as_secs_f64());
    let factor = 1.0 - share + share / speedup;
    SimDuration::from_ns((traced.ns() as f64 * factor).round() as u64)
}

/// JSON has no infinity.
fn write<S: Serializer>(speedup: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if speedup.is_finite() {
        serializer.serialize_f64(*speedup)
    } else {
        serializer.serialize_str("inf")
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(SpeedupVisitor)
}

fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "number", "minimum": SPEEDUP_MIN }, { "const": "inf" }] })
}

struct SpeedupVisitor;

impl Visitor<'_> for SpeedupVisitor {
    type Value = f64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a number from {SPEEDUP_MIN} on or \"inf\"")
    }

    fn visit_f64<E: Error>(self, speedup: f64) -> Result<f64, E> {
        if speedup >= SPEEDUP_MIN {
            Ok(speedup)
        } else {
            Err(E::invalid_value(Unexpected::Float(speedup), &self))
        }
    }

    fn visit_i64<E: Error>(self, speedup: i64) -> Result<f64, E> {
        self.visit_f64(speedup as f64)
    }

    fn visit_u64<E: Error>(self, speedup: u64) -> Result<f64, E> {
        self.visit_f64(speedup as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        match text {
            "inf" => Ok(f64::INFINITY),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(think_time: TracedThinkTime, traced_ms: u64) -> f64 {
        think_time.apply(SimDuration::from_ms(traced_ms)).as_ms_f64()
    }

    /// Worked out by hand from the formula of tr03 section 3.2.
    #[test]
    fn processor_share_falls_from_95_percent() {
        assert!((processing_share(0.0) - 0.952_381).abs() < 1e-6);
        // 1 / (0.0857 + 0.0105) = 10.395 per cent.
        assert!((processing_share(1.0) - 0.103_950).abs() < 1e-6);
        // 1 / (0.857 + 0.0105) = 1.1527 per cent.
        assert!((processing_share(10.0) - 0.011_527).abs() < 1e-6);
    }

    #[test]
    fn speedup_endless_leaves_user_think_time() {
        let endless = TracedThinkTime::Speedup(f64::INFINITY);
        // 10 ms: f = 1 / 0.011357 = 88.051 per cent.
        assert!((ms(endless, 10) - 1.194_87).abs() < 1e-4, "{}", ms(endless, 10));
        assert!((ms(endless, 1000) - 896.050).abs() < 1e-2);
        assert!((ms(endless, 10_000) - 9884.73).abs() < 1e-2);
        assert_eq!(ms(endless, 0), 0.0);
    }

    #[test]
    fn speedup_divides_processor_share_only() {
        // 1 s: 0.89605 + 0.10395 / 4.
        assert!((ms(TracedThinkTime::Speedup(4.0), 1000) - 922.037).abs() < 1e-2);
        assert_eq!(ms(TracedThinkTime::Speedup(1.0), 1234), 1234.0);
        assert_eq!((ms(TracedThinkTime::Kept, 7), ms(TracedThinkTime::Removed, 7)), (7.0, 0.0));
    }

    proptest! {
        #[test]
        fn think_times_stay_ordered_under_speedup(
            ns in 0u64..100_000_000_000_000, more in 1_000u64..1_000_000_000, speedup in 1.0f64..1e6
        ) {
            let apply = |speedup, ns| {
                TracedThinkTime::Speedup(speedup).apply(SimDuration::from_ns(ns)).ns()
            };
            prop_assert!(apply(speedup, ns) <= apply(speedup, ns + more));
            prop_assert!(apply(2.0 * speedup, ns) <= apply(speedup, ns));
            prop_assert!(apply(f64::INFINITY, ns) <= apply(speedup, ns));
            prop_assert!(apply(speedup, ns) <= ns + 1);
        }
    }
}
