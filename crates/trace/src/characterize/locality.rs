//! Reuse of blocks, and the skew of accesses.

use freewheel_units::Op;
use serde::Serialize;

use super::share;
use crate::regions::{Footprint, PAGE_BYTES, REGION_BYTES, Touched};

/// Reuse of blocks of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Reuse {
    pub footprint_read_bytes: u64,
    pub footprint_written_bytes: u64,
    /// Blocks read that were read or written before, among all that were read.
    pub read_again_share: f64,
    /// Blocks written that were read or written before, among all that were written.
    pub written_after_touch_share: f64,
    /// Blocks written that were written before, among all that were written.
    pub overwritten_share: f64,
    /// Blocks read that were written before, among all that were read.
    pub read_after_write_share: f64,
}

#[derive(Debug, Default)]
pub(super) struct ReuseCollector {
    read: Touched,
    write: Touched,
}

impl ReuseCollector {
    pub fn observe(&mut self, op: Op, touched: Touched) {
        let sum = if op == Op::Read { &mut self.read } else { &mut self.write };
        sum.pages += touched.pages;
        sum.seen += touched.seen;
        sum.written += touched.written;
    }

    pub fn finish(self, footprint: Footprint) -> Reuse {
        let Self { read, write } = self;
        Reuse {
            footprint_read_bytes: footprint.read_pages * PAGE_BYTES,
            footprint_written_bytes: footprint.written_pages * PAGE_BYTES,
            read_again_share: share(read.seen, read.pages),
            written_after_touch_share: share(write.seen, write.pages),
            overwritten_share: share(write.written, write.pages),
            read_after_write_share: share(read.written, read.pages),
        }
    }
}

/// Skew of accesses over the regions of 1 MiB that were touched at all. A request that covers several
/// regions is an access to each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Skew {
    /// The size of a region.
    pub region_bytes: u64,
    /// Regions touched.
    pub regions: u64,
    /// Accesses to the hottest 1 % of them (rounded up to whole regions), among all.
    pub hottest_1_percent_share: f64,
    /// Share of the hottest 10 %.
    pub hottest_10_percent_share: f64,
    /// Share of the hottest 20 %.
    pub hottest_20_percent_share: f64,
    /// Gini coefficient of the accesses: 0 when all regions are alike, towards 1 when one has all.
    pub gini: f64,
}

impl Skew {
    /// From how often regions were accessed, ascending, and how many so often.
    pub(super) fn of(accesses: &[(u64, u64)]) -> Self {
        Self {
            region_bytes: REGION_BYTES,
            regions: accesses.iter().map(|(_, regions)| regions).sum(),
            hottest_1_percent_share: hottest_share(accesses, 1),
            hottest_10_percent_share: hottest_share(accesses, 10),
            hottest_20_percent_share: hottest_share(accesses, 20),
            gini: gini(accesses),
        }
    }
}

fn hottest_share(ascending: &[(u64, u64)], percent: u64) -> f64 {
    let regions: u64 = ascending.iter().map(|(_, regions)| regions).sum();
    let mut left = (regions * percent).div_ceil(100);
    let (mut hottest, mut all) = (0, 0);
    for (accesses, regions) in ascending.iter().rev() {
        let taken = left.min(*regions);
        hottest += accesses * taken;
        all += accesses * regions;
        left -= taken;
    }
    share(hottest, all)
}

/// G = 2 sum(i x_i) / (n sum(x_i)) - (n + 1) / n, with x ascending and i from 1.
fn gini(ascending: &[(u64, u64)]) -> f64 {
    let (mut n, mut total, mut weighted) = (0u128, 0u128, 0u128);
    for (accesses, regions) in ascending {
        let (x, count) = (u128::from(*accesses), u128::from(*regions));
        // The sum of i from n + 1 to n + count.
        weighted += x * (count * n + count * (count + 1) / 2);
        total += x * count;
        n += count;
    }
    if total == 0 {
        return 0.0;
    }
    let n = n as f64;
    2.0 * weighted as f64 / (n * total as f64) - (n + 1.0) / n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_spread_has_no_skew() {
        let skew = Skew::of(&[(7, 60), (7, 40)]);
        assert!(skew.gini.abs() < 1e-12);
        assert_eq!((skew.hottest_1_percent_share, skew.hottest_20_percent_share), (0.01, 0.2));
    }

    #[test]
    fn single_hot_region_has_highest_skew() {
        let skew = Skew::of(&[(0, 99), (50, 1)]);
        assert!((skew.gini - 0.99).abs() < 1e-12);
        assert_eq!(skew.hottest_1_percent_share, 1.0);
    }

    #[test]
    fn untouched_regions_have_no_skew() {
        assert_eq!(Skew::of(&[]).gini, 0.0);
    }
}
