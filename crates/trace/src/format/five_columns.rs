//! The unit of times that stand in five columns: DiskSim's, MQSim's and Heimdall's traces look the same,
//! with times in ms, ns and ms, and people write other units there.
//!
//! A unit is possible if its decimal places do not go below a nanosecond: nine decimals are seconds. It
//! is plausible if it means a rate that some device serves. The format's own unit is taken where it is possible
//! and means the rate of a hard disk. Otherwise the plausible unit is taken, and where there are two
//! the person is asked.
//!
//! Goals: no time is wrong by a factor without a question.
//! Non-goals: a trace with its own units in every line.

use std::ops::RangeInclusive;

use crate::fault::Fault;
use crate::scan::{Fields, TimeUnit, Token, decimal_ns};
use crate::source::whole_lines;
use freewheel_units::Op;

/// Requests a second on each device that traces of hard disks have: a unit that means fewer or more is doubted.
pub(super) const OF_A_DISK: RangeInclusive<f64> = 1.0..=100.0;
/// Units that any device serves.
const OF_ANY_DEVICE: RangeInclusive<f64> = 0.001..=1e6;
/// More decimals are those of a binary fraction, and are no evidence.
const DECIMALS_MAX: usize = 9;

/// A unit that times may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitRate {
    /// The unit.
    pub unit: TimeUnit,
    /// Requests a second on each device, at the beginning of the trace, if it is the unit.
    pub per_second: f64,
}

/// Evidence for the unit at the beginning of a trace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum UnitFound {
    Sure(TimeUnit),
    /// Several are plausible.
    Ask(Vec<UnitRate>),
}

/// Times and devices of the first lines.
struct Beginning {
    /// Gaps between records, per device.
    per_device: f64,
    /// From the least time to the greatest, in any unit: records may lie in any order.
    span: f64,
    decimals: usize,
}

/// The unit of the times of a trace that begins with `head`, in a format whose unit is `own`. `usual` are
/// the rates that speak for it; `is_named` says that the person named the format, and so its unit.
pub(super) fn unit(
    head: &[u8],
    own: TimeUnit,
    usual: &RangeInclusive<f64>,
    is_named: bool,
) -> UnitFound {
    let beginning = Beginning::of(head);
    let own_rate = beginning.rate(own).filter(|_| possible(&own, &beginning));
    if beginning.rate(own).is_none()
        || possible(&own, &beginning) && is_named
        || own_rate.is_some_and(|rate| usual.contains(&rate))
    {
        return UnitFound::Sure(own);
    }
    let units = TimeUnit::ALL
        .into_iter()
        .filter(|unit| possible(unit, &beginning))
        .filter_map(|unit| beginning.rate(unit).map(|per_second| UnitRate { unit, per_second }));
    let plausible: Vec<UnitRate> =
        units.filter(|it| OF_ANY_DEVICE.contains(&it.per_second)).collect();
    match &plausible[..] {
        [] => UnitFound::Sure(own),
        [only] => UnitFound::Sure(only.unit),
        _ => UnitFound::Ask(plausible),
    }
}

fn possible(unit: &TimeUnit, beginning: &Beginning) -> bool {
    !(1..=DECIMALS_MAX).contains(&beginning.decimals) || beginning.decimals <= *unit as usize
}

/// Operation in the last column: 1 for a read, 0 for a write.
#[inline]
pub(super) fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"1" => Ok(Op::Read),
        b"0" => Ok(Op::Write),
        _ => Err(token.fault("write 1 for a read or 0 for a write")),
    }
}

impl Beginning {
    fn of(head: &[u8]) -> Self {
        let mut devices: Vec<&[u8]> = Vec::new();
        let (mut least, mut greatest, mut records, mut decimals) = (f64::MAX, 0f64, 0u64, 0);
        for line in whole_lines(head) {
            let mut fields = Fields::blank(line);
            let (Ok(time), Ok(device)) = (fields.next("time"), fields.next("device")) else {
                continue;
            };
            if decimal_ns(time.text, TimeUnit::Nanoseconds).is_none() {
                continue;
            }
            let number = decimal(time.text);
            (least, greatest) = (least.min(number), greatest.max(number));
            records += 1;
            if !devices.contains(&device.text) {
                devices.push(device.text);
            }
            decimals = decimals.max(decimals_of(time.text));
        }
        Self {
            per_device: records.saturating_sub(1) as f64 / devices.len().max(1) as f64,
            span: greatest - least,
            decimals,
        }
    }

    /// Requests a second on each device; `None` where all times are the same.
    fn rate(&self, unit: TimeUnit) -> Option<f64> {
        (self.span > 0.0).then(|| self.per_device / (self.span * unit.ns() as f64 / 1e9))
    }
}

fn decimals_of(time: &[u8]) -> usize {
    time.iter().position(|&byte| byte == b'.').map_or(0, |point| time.len() - point - 1)
}

/// The number, for a rate.
fn decimal(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};

    /// Eight requests `gap` apart.
    fn found(gap: f64, decimals: usize, own: TimeUnit) -> UnitFound {
        let line = |at: u32| format!("{:.decimals$} 0 8 8 1\n", 1.0 + gap * f64::from(at));
        unit((0..8).map(line).collect::<String>().as_bytes(), own, &OF_A_DISK, false)
    }

    fn asks(found: &UnitFound) -> Vec<(TimeUnit, f64)> {
        let UnitFound::Ask(units) = found else { panic!("{found:?}") };
        let round = |rate: f64| (rate * 1e6).round() / 1e6;
        units.iter().map(|it| (it.unit, round(it.per_second))).collect()
    }

    #[test]
    fn nine_decimals_are_seconds_six_maybe() {
        // 20 requests a second.
        assert_eq!(found(0.05, 9, Milliseconds), UnitFound::Sure(Seconds));
        let units = asks(&found(0.05, 6, Milliseconds));
        assert_eq!(units, [(Seconds, 20.0), (Milliseconds, 20_000.0)]);
    }

    #[test]
    fn own_unit_taken_at_disk_rate() {
        for gap in [12.0, 50.0, 900.0] {
            assert_eq!(found(gap, 3, Milliseconds), UnitFound::Sure(Milliseconds), "{gap}");
        }
        // 200 s between requests.
        let units = asks(&found(200_000.0, 3, Milliseconds));
        assert_eq!(units, [(Milliseconds, 0.005), (Microseconds, 5.0)]);
    }

    #[test]
    fn whole_numbers_fit_any_plausible_unit() {
        // 20 requests a second in us; in ns 20,000; in ms 0.02.
        let units = asks(&found(50_000.0, 0, Nanoseconds));
        assert_eq!(units, [(Milliseconds, 0.02), (Microseconds, 20.0), (Nanoseconds, 20_000.0)]);
    }

    #[test]
    fn records_out_of_order_keep_rate() {
        let line = |at: u32| format!("{:.3} 0 8 8 1\n", 0.05 * f64::from(at));
        let swapped: String = (4..8).chain(0..4).map(line).collect();
        let units = asks(&unit(swapped.as_bytes(), Milliseconds, &OF_A_DISK, false));
        assert_eq!(units, [(Seconds, 20.0), (Milliseconds, 20_000.0)]);
    }

    #[test]
    fn equal_times_say_nothing() {
        assert_eq!(found(0.0, 9, Milliseconds), UnitFound::Sure(Milliseconds));
        assert_eq!(
            unit(b"no time\n", Milliseconds, &OF_A_DISK, false),
            UnitFound::Sure(Milliseconds)
        );
    }
}
