//! Touched blocks of 4 KiB by operation, and accesses to each region of 1 MiB.
//!
//! Goals: memory grows with the footprint (at most about 100 bytes for each touched region of 1 MiB).
//! It does not grow with the length of the trace or the size of the device.
//! Non-goals: order and time of the touches.

use std::collections::BTreeMap;

use freewheel_units::{BLOCK_BYTES, Op};

use crate::Record;

/// The unit in which footprints and reuse are counted.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// The unit in which skew is counted.
pub(crate) const REGION_BYTES: u64 = 1 << 20;
const PAGE_BLOCKS: u64 = PAGE_BYTES / BLOCK_BYTES;
const REGION_PAGES: u64 = REGION_BYTES / PAGE_BYTES;
const WORD_PAGES: u64 = 64;
const WORDS: usize = (REGION_PAGES / WORD_PAGES) as usize;

/// One bit a page.
type PageBits = [u64; WORDS];

#[derive(Debug, Default)]
struct Region {
    read: PageBits,
    written: PageBits,
    accesses: u64,
}

/// Pages that one request covered, and how many of them had been touched before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Touched {
    pub pages: u64,
    /// Read or written before.
    pub seen: u64,
    /// Written before.
    pub written: u64,
}

/// Pages touched so far, all devices together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Footprint {
    pub pages: u64,
    pub read_pages: u64,
    pub written_pages: u64,
}

/// All regions that were read or written.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    by_address: BTreeMap<(u32, u64), Region>,
    footprint: Footprint,
}

impl Regions {
    /// Notes the pages that a read or a write covers.
    pub fn touch(&mut self, record: &Record) -> Touched {
        let first = record.start.get() / PAGE_BLOCKS;
        let end = record.end().get().div_ceil(PAGE_BLOCKS);
        let mut touched = Touched { pages: end - first, ..Touched::default() };
        for region in first / REGION_PAGES..end.div_ceil(REGION_PAGES) {
            let base = region * REGION_PAGES;
            let within = first.max(base) - base..end.min(base + REGION_PAGES) - base;
            let state = self.by_address.entry((record.device, region)).or_default();
            state.touch(record.op, within, &mut touched, &mut self.footprint);
        }
        touched
    }

    /// Pages touched so far.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// How often each touched region was accessed, in ascending order of that.
    pub fn sorted_accesses(&self) -> Vec<u64> {
        let mut accesses: Vec<u64> = self.by_address.values().map(|r| r.accesses).collect();
        accesses.sort_unstable();
        accesses
    }
}

impl Region {
    fn touch(
        &mut self,
        op: Op,
        pages: std::ops::Range<u64>,
        touched: &mut Touched,
        footprint: &mut Footprint,
    ) {
        self.accesses += 1;
        for word in pages.start / WORD_PAGES..pages.end.div_ceil(WORD_PAGES) {
            let (index, mask) = (word as usize, mask(word * WORD_PAGES, &pages));
            let (read, written) = (self.read[index], self.written[index]);
            touched.seen += count(mask & (read | written));
            touched.written += count(mask & written);
            footprint.pages += count(mask & !(read | written));
            if op == Op::Read {
                footprint.read_pages += count(mask & !read);
                self.read[index] |= mask;
            } else {
                footprint.written_pages += count(mask & !written);
                self.written[index] |= mask;
            }
        }
    }
}

/// The bits of `pages` in the word that begins at page `base`.
fn mask(base: u64, pages: &std::ops::Range<u64>) -> u64 {
    let low = pages.start.max(base) - base;
    let high = pages.end.min(base + WORD_PAGES) - base;
    (u64::MAX >> (WORD_PAGES - (high - low))) << low
}

fn count(bits: u64) -> u64 {
    u64::from(bits.count_ones())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use freewheel_units::{Blocks, SimTime, VolumeBlock};
    use proptest::prelude::*;

    fn request(op: Op, device: u32, start: u64, blocks: u64) -> Record {
        let (start, blocks) = (VolumeBlock::new(start), Blocks::new(blocks));
        Record {
            widened: false,
            arrival: SimTime::ZERO,
            op,
            device,
            start,
            blocks,
            completion: None,
            fua: false,
        }
    }

    #[test]
    fn a_page_partly_covered_counts_whole_and_once() {
        let mut regions = Regions::default();
        assert_eq!(regions.touch(&request(Op::Read, 0, 7, 2)).pages, 2);
        let again = regions.touch(&request(Op::Write, 0, 0, 1));
        assert_eq!(again, Touched { pages: 1, seen: 1, written: 0 });
        assert_eq!(regions.footprint(), Footprint { pages: 2, read_pages: 2, written_pages: 1 });
    }

    #[test]
    fn the_same_address_on_two_devices_is_two_pages() {
        let mut regions = Regions::default();
        regions.touch(&request(Op::Read, 0, 0, 8));
        assert_eq!(regions.touch(&request(Op::Read, 1, 0, 8)).seen, 0);
        assert_eq!(regions.sorted_accesses(), [1, 1]);
    }

    proptest! {
        /// Against a set of page numbers.
        #[test]
        fn bits_agree_with_a_set(
            requests in prop::collection::vec((any::<bool>(), 0u64..9000, 1u64..6000), 1..40),
        ) {
            let (mut regions, mut seen) = (Regions::default(), BTreeSet::new());
            for (is_read, start, blocks) in requests {
                let op = if is_read { Op::Read } else { Op::Write };
                let touched = regions.touch(&request(op, 0, start, blocks));
                let pages = start / 8..(start + blocks).div_ceil(8);
                prop_assert_eq!(touched.pages, pages.end - pages.start);
                let old = pages.clone().filter(|page| seen.contains(page)).count();
                prop_assert_eq!(touched.seen, old as u64);
                seen.extend(pages);
                prop_assert_eq!(regions.footprint().pages, seen.len() as u64);
            }
        }
    }
}
