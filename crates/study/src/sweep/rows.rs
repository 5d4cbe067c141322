//! What a configuration comes to, as a row of numbers.

use freewheel_model::stats::Summary;
use freewheel_sim::RunResult;

use crate::journal::JournalRow;

/// Columns of whole numbers.
pub const WHOLE_COLUMNS: [&str; 11] = [
    "requests",
    "elapsed_ns",
    "response_ns_p50",
    "response_ns_p95",
    "response_ns_p99",
    "response_ns_p999",
    "response_ns_max",
    "read_response_ns_p99",
    "write_response_ns_p99",
    "outstanding_max",
    "queue_ns_max",
];

/// Columns of other numbers.
pub const REAL_COLUMNS: [&str; 14] = [
    "requests_per_second",
    "bytes_per_second",
    "utilisation",
    "outstanding_mean",
    "response_ns_mean",
    "read_response_ns_mean",
    "write_response_ns_mean",
    "queue_ns_mean",
    "overhead_ns_mean",
    "seek_ns_mean",
    "rotate_ns_mean",
    "transfer_ns_mean",
    "bus_ns_mean",
    "free_bytes_per_second",
];

/// The result of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRow {
    /// Number of the configuration, from 0.
    pub configuration: usize,
    /// Values of [`WHOLE_COLUMNS`].
    pub whole: [u64; WHOLE_COLUMNS.len()],
    /// Values of [`REAL_COLUMNS`].
    pub real: [f64; REAL_COLUMNS.len()],
    /// Hash over every completion: equal runs have equal hashes.
    pub result_hash: String,
}

impl SweepRow {
    pub(super) fn new(configuration: usize, result: &RunResult) -> Self {
        let Summary { count, mean_ns, p50_ns, p95_ns, p99_ns, p999_ns, max_ns, .. } =
            result.response;
        let stages = &result.stages;
        let whole = [
            result.requests,
            result.elapsed_ns,
            p50_ns,
            p95_ns,
            p99_ns,
            p999_ns,
            max_ns,
            result.read_response.p99_ns,
            result.write_response.p99_ns,
            result.outstanding_max,
            result.queue_ns_max,
        ];
        let real = [
            result.requests_per_second,
            result.bytes_per_second,
            result.utilisation,
            result.outstanding_mean,
            mean_ns,
            result.read_response.mean_ns,
            result.write_response.mean_ns,
            mean(stages.queue_ns, count),
            mean(stages.overhead_ns, count),
            mean(stages.seek_ns, count),
            mean(stages.rotate_ns, count),
            mean(stages.transfer_ns, count),
            mean(stages.bus_ns, count),
            free_bytes_per_second(result),
        ];
        Self { configuration, whole, real, result_hash: result.result_hash.clone() }
    }
}

fn mean(sum: u128, count: u64) -> f64 {
    sum as f64 / count.max(1) as f64
}

impl JournalRow for SweepRow {
    const JOB: &'static str = "sweep";

    fn number(&self) -> usize {
        self.configuration
    }

    fn text(&self) -> String {
        let whole = self.whole.iter().map(u64::to_string);
        let real = self.real.iter().map(|value| format!("{:x}", value.to_bits()));
        let words = std::iter::once(self.configuration.to_string()).chain(whole).chain(real);
        words.chain([self.result_hash.clone()]).collect::<Vec<_>>().join(" ")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let configuration = words.next()?.parse().ok()?;
        let mut whole = [0; WHOLE_COLUMNS.len()];
        for value in &mut whole {
            *value = words.next()?.parse().ok()?;
        }
        let mut real = [0.0; REAL_COLUMNS.len()];
        for value in &mut real {
            *value = f64::from_bits(u64::from_str_radix(words.next()?, 16).ok()?);
        }
        let result_hash = words.next()?.to_owned();
        words.next().is_none().then_some(Self { configuration, whole, real, result_hash })
    }
}

/// What was delivered to background tasks; 0 without any.
fn free_bytes_per_second(result: &RunResult) -> f64 {
    crate::FreeWork::new(result).map_or(0.0, |work| work.delivered_bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_numbers_come_back_exactly() {
        let mut row = SweepRow {
            configuration: 3,
            whole: [7; WHOLE_COLUMNS.len()],
            real: [0.1; REAL_COLUMNS.len()],
            result_hash: "abc".into(),
        };
        row.whole[1] = u64::MAX;
        row.real[2] = f64::MIN_POSITIVE;
        assert_eq!(SweepRow::parse(&row.text()), Some(row));
    }
}
