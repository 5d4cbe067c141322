//! Parts of the drive that clients have written, with the time of the last write.

use std::collections::BTreeMap;

use freewheel_freeblock::tasks::Extent;
use freewheel_units::SimTime;

/// Blocks of 512 B that are remembered as one: 1 MiB.
pub const REGION_BLOCKS: u64 = 2048;

/// Regions whose times are kept together: memory goes by where writes are, and is at most 192 MB
/// for 24 TB.
const PAGE: u64 = 512;

/// Time of the last write of each region, since the server began.
#[derive(Debug, Clone, Default)]
pub struct WrittenRegions {
    /// Nanoseconds; 0 for never.
    pages: BTreeMap<u64, Vec<u64>>,
}

impl WrittenRegions {
    /// `from..to` of 512 B is being written at `now`.
    pub fn mark(&mut self, from: u64, to: u64, now: SimTime) {
        for region in from / REGION_BLOCKS..to.div_ceil(REGION_BLOCKS) {
            let page = self.pages.entry(region / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[(region % PAGE) as usize] = now.ns().max(1);
        }
    }

    /// Regions in which something was written at `since` or later, in ascending order and apart from
    /// each other; on a drive of `capacity` blocks.
    pub fn since(&self, since: SimTime, capacity: u64) -> Vec<Extent> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (page, times) in &self.pages {
            let at_or_later =
                times.iter().enumerate().filter(|(_, at)| **at > 0 && **at >= since.ns());
            for (within, _) in at_or_later {
                let from = (page * PAGE + within as u64) * REGION_BLOCKS;
                let to = (from + REGION_BLOCKS).min(capacity);
                match runs.last_mut().filter(|last| last.1 == from) {
                    Some(last) => last.1 = to,
                    None => runs.push((from, to)),
                }
            }
        }
        runs.into_iter().map(|(from, to)| Extent::new(from, to - from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_regions_keep_last_write_time() {
        let mut written = WrittenRegions::default();
        let at = SimTime::from_ns;
        written.mark(2047, 2049, at(10));
        written.mark(PAGE * REGION_BLOCKS - 1, PAGE * REGION_BLOCKS + 1, at(20));
        written.mark(2047, 2048, at(30));
        let all = PAGE * REGION_BLOCKS;
        let capacity = all + 100;
        assert_eq!(
            written.since(at(0), capacity),
            [Extent::new(0, 4096), Extent::new(all - 2048, 2048 + 100)],
            "cut at the end of the drive"
        );
        assert_eq!(written.since(at(11), capacity)[0], Extent::new(0, 2048));
        assert_eq!(written.since(at(30), capacity), [Extent::new(0, 2048)]);
        assert_eq!(written.since(at(31), capacity), []);
    }
}
