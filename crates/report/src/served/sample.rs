//! A random sample of a served drive, and what it says of all of it.

use freewheel_units::{Bytes, grouped};

use super::blocks::amount;
use crate::numbers::{chi_square, counted, fine_percent, fine_ratio};
use crate::table::Table;

/// Numbers of a sample.
#[derive(Debug, Clone, Default)]
pub struct ServedSample {
    /// Seed of the draw.
    pub seed: u64,
    /// Size of a unit.
    pub unit_bytes: u64,
    /// Units that it was drawn from.
    pub population: u64,
    /// Units that were drawn.
    pub drawn: u64,
    /// Blocks of these units.
    pub drawn_blocks: u64,
    /// Blocks of them that came.
    pub delivered_blocks: u64,
    /// Difference of what came from the sample.
    pub tenths: Option<ServedTenths>,
    /// Share of blocks that are all zero.
    pub zero: ServedShare,
    /// Share of blocks that cannot be read.
    pub unreadable: ServedShare,
}

/// An estimate of a share.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServedShare {
    /// The share and the ends of its 95 % interval; None where a tenth of the drive has nothing that came.
    pub estimate: Option<[f64; 3]>,
    /// Ends of the interval whatever the missing blocks are.
    pub bounds: [f64; 2],
}

/// Delivery by tenth of the drive.
#[derive(Debug, Clone, Default)]
pub struct ServedTenths {
    /// Chance of a unit of each tenth to have come, relative to the mean.
    pub relative: Vec<Option<f64>>,
    /// Chi-square of delivered and missing units.
    pub chi_square: f64,
    /// Value that chance exceeds in 5 % of all cases.
    pub chi_square_by_chance: f64,
}

impl ServedSample {
    /// A table of the sample and its estimates.
    pub fn text(&self) -> String {
        let mut table = Table::new("ll");
        let (units, unit) = (grouped(self.drawn), Bytes::new(self.unit_bytes).human());
        let all = counted(self.population, "unit");
        table.row(["sample", &format!("{units} of {all} of {unit}, seed {}", self.seed)]);
        let is_whole = self.delivered_blocks >= self.drawn_blocks;
        if !is_whole {
            let [came, drawn] = [self.delivered_blocks, self.drawn_blocks].map(amount);
            table.row(["incomplete", &format!("{came} of {drawn} came")]);
        }
        for row in self.tenths.iter().flat_map(ServedTenths::words) {
            table.row(["by place", &row]);
        }
        for (name, share) in [("all zero", &self.zero), ("unreadable", &self.unreadable)] {
            table.row([name, &share.words(is_whole)]);
            if !is_whole {
                let [least, most] = share.bounds.map(fine_percent);
                table.row(["", &format!("{least} to {most} whatever the missing blocks are")]);
            }
        }
        table.to_string()
    }
}

impl ServedShare {
    fn words(&self, is_whole: bool) -> String {
        let Some(estimate) = self.estimate else {
            return "unknown: of a tenth of the drive nothing has come".into();
        };
        let [share, low, high] = estimate.map(fine_percent);
        let of = if is_whole { "" } else { ", where what came of each tenth stands for all of it" };
        format!("{share} of the blocks, 95 % interval {low} to {high}{of}")
    }
}

impl ServedTenths {
    /// Differences between the part that came and the sample.
    fn words(&self) -> Vec<String> {
        let chances = self.relative.iter().map(|chance| chance.map_or("-".into(), fine_ratio));
        let chances: Vec<String> = chances.collect();
        let tenths =
            format!("chance to have come, by tenth from the first block on: {}", chances.join(" "));
        let known = self.relative.iter().enumerate();
        let known = known.filter_map(|(tenth, chance)| Some((tenth, (*chance)?)));
        let farthest = known.max_by(|(_, one), (_, other)| away(*one).total_cmp(&away(*other)));
        let farthest = farthest.map(|(tenth, chance)| {
            let times = fine_ratio(chance);
            format!("tenth {} is {times} times as likely to have come as the mean", tenth + 1)
        });
        let is_more = self.chi_square > self.chi_square_by_chance;
        let verdict = if is_more { "more than" } else { "no more than" };
        let [found, limit] = [self.chi_square, self.chi_square_by_chance].map(chi_square);
        let test =
            format!("{verdict} chance explains: chi-square {found}, by chance up to {limit}");
        [Some(tenths), farthest, Some(test)].into_iter().flatten().collect()
    }
}

fn away(chance: f64) -> f64 {
    (chance - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_bias_names_farthest_tenth() {
        let tenths = ServedTenths {
            relative: vec![Some(1.4), None, Some(0.4)],
            chi_square: 83.04,
            chi_square_by_chance: 3.841,
        };
        assert_eq!(
            tenths.words(),
            [
                "chance to have come, by tenth from the first block on: 1.40 - 0.40",
                "tenth 3 is 0.40 times as likely to have come as the mean",
                "more than chance explains: chi-square 83.0, by chance up to 3.8",
            ]
        );
    }

    #[test]
    fn sample_without_a_tenth_estimates_nothing() {
        let sample = ServedSample { drawn_blocks: 2, delivered_blocks: 1, ..Default::default() };
        let text = sample.text();
        assert!(text.contains("all zero    unknown: of a tenth"), "{text}");
        assert!(text.contains("0 % to 0 % whatever the missing blocks are"), "{text}");
    }
}
