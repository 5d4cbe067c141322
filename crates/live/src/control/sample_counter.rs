//! Results of a sample for the whole drive, from its data as they come.

use freewheel_host::tasks::{DeliveryBias, Proportion, Stratum, delivery_bias, proportion};
use freewheel_units::BLOCK_BYTES;
use serde::Serialize;

use super::sample::SampleReport;
use super::stream::Record;

/// Blocks of a sample in one tenth of its range.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    delivered: u64,
    zero: u64,
    unreadable: u64,
}

/// Counts of a sample's blocks by tenth.
#[derive(Debug, Clone)]
pub struct SampleCounter {
    report: SampleReport,
    counts: Vec<Counts>,
}

/// Estimated share of a drive's blocks, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ShareEstimate {
    /// The share; null where a tenth of the drive has nothing that came.
    pub share: Option<f64>,
    /// Ends of its 95 % interval. Of an incomplete sample it takes what came of each tenth for the rest of
    /// that tenth.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Ends of the interval whatever the missing blocks are.
    pub least: f64,
    pub most: f64,
}

/// Difference of what came of a sample from the sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleBias {
    /// Chance of a unit of each tenth to have come, relative to the mean; null where none was drawn.
    pub relative: Vec<Option<f64>>,
    /// Chi-square of delivered and missing units by tenth.
    pub chi_square: f64,
    /// Value of chi-square that chance exceeds in 5 % of all cases.
    pub chi_square_by_chance: f64,
}

/// Result of a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleResult {
    /// Blocks of the sample.
    pub drawn_blocks: u64,
    /// Sampled blocks that came.
    pub delivered_blocks: u64,
    /// Blocks of 512 B that are all zero.
    pub zero: ShareEstimate,
    /// Blocks that cannot be read.
    pub unreadable: ShareEstimate,
    /// Bias of an incomplete sample.
    pub bias: Option<SampleBias>,
}

impl SampleCounter {
    /// No block of this sample has come.
    pub fn new(report: SampleReport) -> Self {
        Self { counts: vec![Counts::default(); report.tenths.len()], report }
    }

    /// Counts the blocks of a record.
    pub fn take(&mut self, record: &Record) {
        match record {
            Record::Data { first_block, data, .. } => {
                for (block, bytes) in (*first_block..).zip(data.chunks(BLOCK_BYTES as usize)) {
                    let is_zero = bytes.iter().all(|&byte| byte == 0);
                    let Some(counts) = self.at(block) else { continue };
                    counts.delivered += 1;
                    counts.zero += u64::from(is_zero);
                }
            }
            Record::Unreadable { first_block, blocks } => {
                for block in *first_block..first_block.saturating_add(*blocks) {
                    let Some(counts) = self.at(block) else { continue };
                    counts.delivered += 1;
                    counts.unreadable += 1;
                }
            }
            Record::End(_) => {}
        }
    }

    fn at(&mut self, block: u64) -> Option<&mut Counts> {
        let after = self.report.tenths.partition_point(|tenth| tenth.first_block <= block);
        self.counts.get_mut(after.checked_sub(1)?)
    }

    /// Results of the sample so far. Units count, and not blocks: blocks of a unit may all be alike.
    pub fn result(&self) -> Option<SampleResult> {
        let unit = (self.report.unit_bytes / BLOCK_BYTES).max(1) as f64;
        let strata = |hits: fn(&Counts) -> u64| -> Vec<Stratum> {
            let rows = self.report.tenths.iter().zip(&self.counts);
            rows.map(|(tenth, counts)| Stratum {
                drawn: tenth.drawn_blocks as f64 / unit,
                delivered: counts.delivered as f64 / unit,
                hits: hits(counts) as f64 / unit,
            })
            .collect()
        };
        let population = self.report.population as f64;
        let share = |hits| proportion(&strata(hits), population).map(ShareEstimate::from);
        Some(SampleResult {
            drawn_blocks: self.report.tenths.iter().map(|tenth| tenth.drawn_blocks).sum(),
            delivered_blocks: self.counts.iter().map(|counts| counts.delivered).sum(),
            zero: share(|counts| counts.zero)?,
            unreadable: share(|counts| counts.unreadable)?,
            bias: delivery_bias(&strata(|_| 0)).map(SampleBias::from),
        })
    }
}

impl From<Proportion> for ShareEstimate {
    fn from(Proportion { estimate, bounds }: Proportion) -> Self {
        Self {
            share: estimate.map(|(share, _)| share),
            low: estimate.map(|(_, interval)| interval.low),
            high: estimate.map(|(_, interval)| interval.high),
            least: bounds.low,
            most: bounds.high,
        }
    }
}

impl From<DeliveryBias> for SampleBias {
    fn from(DeliveryBias { relative, chi_square, critical }: DeliveryBias) -> Self {
        Self { relative, chi_square, chi_square_by_chance: critical }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::SampleTenth;
    use super::*;

    #[test]
    fn sample_counter_counts_zeros_and_unreadable() {
        let tenths = (0..10).map(|tenth| SampleTenth {
            first_block: 100 + tenth * 80,
            drawn_blocks: if tenth < 2 { 16 } else { 0 },
            delivered_blocks: 0,
        });
        let report = SampleReport {
            seed: 1,
            unit_bytes: 4096,
            population: 1 << 40,
            drawn: 4,
            tenths: tenths.collect(),
        };
        let mut counter = SampleCounter::new(report);
        let record =
            |first_block, byte| Record::Data { first_block, at_ns: 0, data: vec![byte; 4096] };
        counter.take(&record(100, 0));
        counter.take(&record(120, 1));
        counter.take(&Record::Unreadable { first_block: 180, blocks: 8 });
        let result = counter.result().unwrap();
        assert_eq!((result.drawn_blocks, result.delivered_blocks), (32, 24));
        // The first tenth has half of the sample, and half of it is zeros; of the second one of two came.
        assert_eq!(result.zero.share, Some(0.25));
        assert_eq!(result.unreadable.share, Some(0.5));
        let bias = result.bias.unwrap();
        assert_eq!(bias.relative[..3], [Some(4.0 / 3.0), Some(2.0 / 3.0), None]);
        // 2 x 0.5^2 x (1 / 1.5 + 1 / 0.5), by hand.
        assert!((bias.chi_square - 4.0 / 3.0).abs() < 1e-9, "{}", bias.chi_square);
        counter.take(&record(200, 1));
        let result = counter.result().unwrap();
        assert_eq!((result.zero.share, result.bias), (Some(0.25), None), "it is complete");
        assert_eq!(result.zero.low, Some(result.zero.least));
    }
}
