//! The scan during transactions of fast02 in real time, beside the same in virtual time. Code with
//! a clock runs it; the experiment and its bands are here.

use freewheel_sim::RunResult;
use freewheel_sim::config::ConfigError;
use freewheel_sim::experiment::Experiment;
use serde::Serialize;

use super::fast02::{OutsideSetting, mean_ms};
use super::fast02_scan::{LOST, TOLERANCE, setting};

/// The claim that can be run in real time.
pub const REAL_TIME: &str = "fast02.scan";

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RealTimeRun {
    /// Requests of the clients.
    pub requests: u64,
    /// How many a second.
    pub requests_per_second: f64,
    /// Their mean response in milliseconds.
    pub mean_response_ms: f64,
    /// What the scan had of the drive, in its gaps and in passing, in 10^6 bytes a second; 0 without
    /// one.
    pub scan_mb_per_second: f64,
    /// Median of how late the drive gave its replies, in microseconds; 0 in virtual time.
    pub late_us_p50: f64,
    /// 99 % were no later, in microseconds.
    pub late_us_p99: f64,
}

/// By how much a drive in real time is asked to be late at most, in microseconds: the median and 99 % of
/// its replies, on an idle machine.
const LATE_US_P50: [f64; 2] = [0.0, 5.0];
const LATE_US_P99: [f64; 2] = [0.0, 90.0];

impl RealTimeRun {
    fn simulated(result: &RunResult) -> Self {
        let scanned: u64 = result
            .background
            .iter()
            .flat_map(|arm| &arm.tasks)
            .map(|task| {
                let blocks: u64 = task
                    .all_rounds()
                    .map(|round| round.deliveries.in_gaps + round.deliveries.in_passing)
                    .sum();
                blocks * task.block_bytes
            })
            .sum();
        Self {
            requests: result.requests,
            requests_per_second: result.requests_per_second,
            mean_response_ms: mean_ms(result),
            scan_mb_per_second: scanned as f64 * 1e3 / result.elapsed_ns as f64,
            late_us_p50: 0.0,
            late_us_p99: 0.0,
        }
    }
}

/// A number in real time beside that in virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Comparison {
    pub quantity: &'static str,
    /// Unit of all values of the row.
    pub unit: &'static str,
    pub real: f64,
    pub simulated: f64,
    /// Where the one in real time is to be.
    pub band: [f64; 2],
    /// Whether it is.
    pub inside: bool,
}

/// The experiment, with the scan or without, for this many requests.
pub fn real_time_experiment(
    seed: u64,
    scans: bool,
    requests: u64,
) -> Result<Experiment, ConfigError> {
    let paper = setting(true);
    let free = if scans { paper.free } else { None };
    OutsideSetting { free, requests, ..paper }.experiment(seed)
}

/// Compares the runs without the scan and with it with the same requests in virtual time.
///
/// Rates and responses must be within a tenth of those in virtual time, as the claim's own are to the
/// paper's; the scan's cost for clients must lie in the claim's own band. The drive's replies
/// must be as punctual as asked on an idle machine.
pub fn beside_virtual_time(
    seed: u64,
    without: RealTimeRun,
    with: RealTimeRun,
) -> Result<Vec<Comparison>, ConfigError> {
    let simulated = |seen: RealTimeRun, scans| {
        let result = real_time_experiment(seed, scans, seen.requests)?.run()?;
        Ok::<_, ConfigError>(RealTimeRun::simulated(&result))
    };
    Ok(rows([without, with], [simulated(without, false)?, simulated(with, true)?]))
}

/// Both without the scan and with it.
fn rows([without, with]: [RealTimeRun; 2], [alone, scanned]: [RealTimeRun; 2]) -> Vec<Comparison> {
    let row = |quantity, unit, real: f64, simulated: f64| {
        let band = [(1.0 - TOLERANCE) * simulated, (1.0 + TOLERANCE) * simulated];
        within(quantity, unit, real, simulated, band)
    };
    let (rate, response) = ("requests", "mean response");
    let (rate_with, response_with) = ("requests, with the scan", "mean response, with the scan");
    vec![
        row(rate, "1/s", without.requests_per_second, alone.requests_per_second),
        row(rate_with, "1/s", with.requests_per_second, scanned.requests_per_second),
        row(response, "ms", without.mean_response_ms, alone.mean_response_ms),
        row(response_with, "ms", with.mean_response_ms, scanned.mean_response_ms),
        row("scan", "MB/s", with.scan_mb_per_second, scanned.scan_mb_per_second),
        within("requests lost to the scan", "%", lost(with, without), lost(scanned, alone), LOST),
        within(
            "replies late by, median",
            "us",
            without.late_us_p50,
            alone.late_us_p50,
            LATE_US_P50,
        ),
        within(
            "replies late by, median, with the scan",
            "us",
            with.late_us_p50,
            scanned.late_us_p50,
            LATE_US_P50,
        ),
        within("replies late by, 99 %", "us", without.late_us_p99, alone.late_us_p99, LATE_US_P99),
        within(
            "replies late by, 99 %, with the scan",
            "us",
            with.late_us_p99,
            scanned.late_us_p99,
            LATE_US_P99,
        ),
    ]
}

fn lost(with: RealTimeRun, without: RealTimeRun) -> f64 {
    100.0 * (1.0 - with.requests_per_second / without.requests_per_second)
}

fn within(
    quantity: &'static str,
    unit: &'static str,
    real: f64,
    simulated: f64,
    band: [f64; 2],
) -> Comparison {
    let inside = (band[0]..=band[1]).contains(&real);
    Comparison { quantity, unit, real, simulated, band, inside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_numbers_are_inside() {
        let seen = |scans| {
            let result = real_time_experiment(3, scans, 600).unwrap().run().unwrap();
            assert_eq!(result.requests, 600);
            RealTimeRun::simulated(&result)
        };
        let (without, with) = (seen(false), seen(true));
        assert_eq!(without.scan_mb_per_second, 0.0);
        assert!(with.scan_mb_per_second > 1.0, "{with:?}");
        let rows = beside_virtual_time(3, without, with).unwrap();
        assert!(rows[..5].iter().all(|row| row.inside && row.real == row.simulated), "{rows:?}");
    }

    /// The clients alone, and with the scan, in virtual time.
    const SIMULATED: [RealTimeRun; 2] = [seen(100.0, 10.0, 0.0), seen(99.0, 11.0, 4.0)];

    const fn seen(rate: f64, response: f64, scan: f64) -> RealTimeRun {
        RealTimeRun {
            requests: 600,
            requests_per_second: rate,
            mean_response_ms: response,
            scan_mb_per_second: scan,
            late_us_p50: 0.0,
            late_us_p99: 0.0,
        }
    }

    /// Which rows are outside.
    fn outside(without: RealTimeRun, with: RealTimeRun) -> Vec<&'static str> {
        let rows = rows([without, with], SIMULATED);
        rows.iter().filter(|row| !row.inside).map(|row| row.quantity).collect()
    }

    #[test]
    fn numbers_out_of_band_are_outside() {
        let [without, with] = SIMULATED;
        assert_eq!(outside(without, with), [""; 0]);
        for factor in [0.89, 1.11] {
            let response = |seen: RealTimeRun| RealTimeRun {
                mean_response_ms: factor * seen.mean_response_ms,
                ..seen
            };
            assert_eq!(outside(response(without), with), ["mean response"], "{factor}");
            let expected = ["mean response, with the scan"];
            assert_eq!(outside(without, response(with)), expected, "{factor}");
            let scanned =
                RealTimeRun { scan_mb_per_second: factor * with.scan_mb_per_second, ..with };
            assert_eq!(outside(without, scanned), ["scan"], "{factor}");
            let rate = |seen: RealTimeRun| RealTimeRun {
                requests_per_second: factor * seen.requests_per_second,
                ..seen
            };
            // Both, so that none are lost to the scan beyond those in virtual time.
            let expected = ["requests", "requests, with the scan"];
            assert_eq!(outside(rate(without), rate(with)), expected, "{factor}");
        }
    }

    #[test]
    fn scan_cost_bounded_by_claim() {
        let [without, with] = SIMULATED;
        let lost = |percent: f64| RealTimeRun { requests_per_second: 100.0 - percent, ..with };
        for percent in [-4.9, 1.9] {
            assert_eq!(outside(without, lost(percent)), [""; 0], "{percent}");
        }
        for percent in [-5.1, 2.1] {
            assert_eq!(outside(without, lost(percent)), ["requests lost to the scan"], "{percent}");
        }
    }

    #[test]
    fn late_drive_is_outside() {
        let [without, with] = SIMULATED;
        let late = |seen: RealTimeRun, p50, p99| RealTimeRun {
            late_us_p50: p50,
            late_us_p99: p99,
            ..seen
        };
        assert_eq!(outside(late(without, 4.9, 89.0), late(with, 4.9, 89.0)), [""; 0]);
        let all = outside(late(without, 5.1, 91.0), late(with, 5.1, 91.0));
        assert_eq!(all.len(), 4, "{all:?}");
        let expected = ["replies late by, median"];
        assert_eq!(outside(late(without, 5.1, 89.0), with), expected);
        let expected = ["replies late by, 99 %, with the scan"];
        assert_eq!(outside(without, late(with, 4.9, 91.0)), expected);
    }
}
