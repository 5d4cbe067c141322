//! Random samples of a served drive, and what they say of all of it.

use std::time::Duration;

use clap::Args;
use freewheel::control::{
    SampleBias, SampleCounter, SampleReport, SampleRequest, SampleResult, ShareEstimate, Task,
    TaskState,
};
use freewheel::measures::{Bytes, SimDuration, Table, Unit, counted, grouped};

use super::control::blocks;
use crate::failure::Failure;

/// Options for a sample, and its time.
#[derive(Args)]
pub struct SampleArgs {
    /// Read a random sample of this share of the blocks instead of all, as 5%
    #[arg(
        long, value_name = "SHARE", value_parser = super::share,
        conflicts_with = "repeat"
    )]
    sample: Option<f64>,
    /// Size of a unit of the sample; if not given, a block
    #[arg(long, value_name = "SIZE", requires = "sample")]
    sample_unit: Option<Bytes>,
    /// Seed of the draw: the same one draws the same units
    #[arg(long, value_name = "N", default_value = "1", value_parser = super::seed, requires = "sample")]
    seed: u64,
    /// End the sample after this time, with what has come
    #[arg(long = "for", value_name = "TIME", requires = "sample", conflicts_with = "detach")]
    limit: Option<SimDuration>,
}

impl SampleArgs {
    /// The sample that the server is asked for.
    pub fn request(&self) -> Option<SampleRequest> {
        let unit_bytes = self.sample_unit.map(Bytes::get);
        self.sample.map(|share| SampleRequest { share, unit_bytes, seed: self.seed })
    }

    /// Longest time of the sample.
    pub fn limit(&self) -> Option<Duration> {
        self.limit.map(|limit| Duration::from_nanos(limit.ns()))
    }

    /// True if a task was ended because its time was over.
    pub fn is_over(&self, task: &Task) -> bool {
        task.state == TaskState::Aborted
            && self.limit.is_some_and(|limit| task.elapsed_ns >= limit.ns())
    }
}

/// A counter for the sample of a task.
pub fn counter(task: &Task) -> Result<SampleCounter, Failure> {
    let report = task.sample.clone();
    report.map(SampleCounter::new).ok_or_else(|| {
        Failure::failed("the server draws no samples: it is of another version of `freewheel`")
            .with_help("use one version of `freewheel` for both")
    })
}

/// Results of a sample, for people.
pub fn in_words(report: &SampleReport, result: &SampleResult) -> String {
    let mut table = Table::new("ll");
    let (units, unit) = (grouped(report.drawn), Bytes::new(report.unit_bytes).human());
    let all = counted(report.population, "unit");
    table.row(["sample", &format!("{units} of {all} of {unit}, seed {}", report.seed)]);
    let is_whole = result.delivered_blocks >= result.drawn_blocks;
    if !is_whole {
        let [came, drawn] = [result.delivered_blocks, result.drawn_blocks].map(blocks);
        table.row(["incomplete", &format!("{came} of {drawn} came")]);
    }
    for row in result.bias.iter().flat_map(bias_in_words) {
        table.row(["by place", &row]);
    }
    for (name, share) in [("all zero", &result.zero), ("unreadable", &result.unreadable)] {
        table.row([name, &estimate_in_words(share, is_whole)]);
        if !is_whole {
            let [least, most] = [share.least, share.most].map(fine);
            table.row(["", &format!("{least} to {most} whatever the missing blocks are")]);
        }
    }
    table.to_string()
}

fn estimate_in_words(estimate: &ShareEstimate, is_whole: bool) -> String {
    let ShareEstimate { share: Some(share), low: Some(low), high: Some(high), .. } = *estimate
    else {
        return "unknown: of a tenth of the drive nothing has come".into();
    };
    let [share, low, high] = [share, low, high].map(fine);
    let of = if is_whole { "" } else { ", where what came of each tenth stands for all of it" };
    format!("{share} of the blocks, 95 % interval {low} to {high}{of}")
}

/// A share that may be very small.
fn fine(share: f64) -> String {
    // Five digits show nothing of a smaller one.
    if (5e-8..0.001).contains(&share) {
        format!("{:.5} %", share * 100.0)
    } else {
        // What is smaller still comes from rounding.
        Unit::Share.text(if share < 5e-8 { 0.0 } else { share })
    }
}

/// Differences between the part that came and the sample.
fn bias_in_words(bias: &SampleBias) -> Vec<String> {
    let chances = bias.relative.iter().map(|chance| match chance {
        Some(chance) => format!("{chance:.2}"),
        None => "-".into(),
    });
    let chances: Vec<String> = chances.collect();
    let (found, limit) = (bias.chi_square, bias.chi_square_by_chance);
    let verdict = if found > limit { "more than" } else { "no more than" };
    let known =
        bias.relative.iter().enumerate().filter_map(|(tenth, chance)| Some((tenth, (*chance)?)));
    let farthest = known.max_by(|(_, one), (_, other)| away(*one).total_cmp(&away(*other)));
    let farthest = farthest.map(|(tenth, chance)| {
        format!("tenth {} is {chance:.2} times as likely to have come as the mean", tenth + 1)
    });
    let tenths =
        format!("chance to have come, by tenth from the first block on: {}", chances.join(" "));
    let test =
        format!("{verdict} chance explains: chi-square {found:.1}, by chance up to {limit:.1}");
    [Some(tenths), farthest, Some(test)].into_iter().flatten().collect()
}

fn away(chance: f64) -> f64 {
    (chance - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_small_shares_keep_digits() {
        let shown = [0.0, 1e-18, 0.000_012_3, 0.25].map(fine);
        assert_eq!(shown, ["0 %", "0 %", "0.00123 %", "25 %"]);
    }

    #[test]
    fn sample_bias_names_farthest_tenth() {
        let bias = SampleBias {
            relative: vec![Some(1.4), None, Some(0.4)],
            chi_square: 83.04,
            chi_square_by_chance: 3.841,
        };
        assert_eq!(
            bias_in_words(&bias),
            [
                "chance to have come, by tenth from the first block on: 1.40 - 0.40",
                "tenth 3 is 0.40 times as likely to have come as the mean",
                "more than chance explains: chi-square 83.0, by chance up to 3.8",
            ]
        );
    }
}
