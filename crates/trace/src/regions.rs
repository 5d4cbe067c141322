//! Touched blocks of 4 KiB by operation, and accesses to each region of 1 MiB.
//!
//! Goals: memory grows with the regions of which parts are touched, and of whole ones with the requests: each
//! adds a run or splits two, however long it is. It does not grow with the size of the device. By
//! `/usr/bin/time freewheel trace info`: 168 B for each of 200,000 regions in order that had one read of
//! 4 KiB, and 65 B for each of 200,000 reads of 4 MiB at random, beside the 10 MB of the program.
//! Non-goals: order and time of the touches.

use std::collections::BTreeMap;
use std::ops::Range;

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

/// Regions one after the other, in each of which all pages were touched, and by the same requests.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// The region after the last.
    end: u64,
    read: bool,
    written: bool,
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
    /// By their first region; apart from each other and from the single ones.
    runs: BTreeMap<(u32, u64), Run>,
    footprint: Footprint,
}

impl Regions {
    /// Notes the pages that a read or a write covers.
    pub fn touch(&mut self, record: &Record) -> Touched {
        let first = record.start.get() / PAGE_BLOCKS;
        let end = record.end().get().div_ceil(PAGE_BLOCKS);
        let mut touched = Touched { pages: end - first, ..Touched::default() };
        let mut region = first / REGION_PAGES;
        while region < end.div_ceil(REGION_PAGES) {
            let base = region * REGION_PAGES;
            let within = first.max(base) - base..end.min(base + REGION_PAGES) - base;
            let whole_end = end / REGION_PAGES;
            region = if within == (0..REGION_PAGES) && region + 1 < whole_end {
                self.touch_whole(record, region..whole_end, &mut touched)
            } else {
                self.touch_single(record, region, within, &mut touched)
            };
        }
        touched
    }

    /// Notes pages of one region; returns the next.
    fn touch_single(
        &mut self,
        record: &Record,
        region: u64,
        pages: Range<u64>,
        touched: &mut Touched,
    ) -> u64 {
        let key = (record.device, region);
        if let Some((first, run)) = self.run_with(key) {
            self.cut(record.device, first, run, region..region + 1);
            self.by_address.insert(key, Region::from(run));
        }
        let state = self.by_address.entry(key).or_default();
        state.touch(record.op, pages, touched, &mut self.footprint);
        region + 1
    }

    /// Notes all pages of the first of these regions, and of those after it that are alike; returns the next.
    fn touch_whole(&mut self, record: &Record, regions: Range<u64>, touched: &mut Touched) -> u64 {
        let (device, first) = (record.device, regions.start);
        if let Some((from, run)) = self.run_with((device, first)) {
            let end = run.end.min(regions.end);
            self.cut(device, from, run, first..end);
            let run = run.touched(record.op, end - first, touched, &mut self.footprint);
            self.runs.insert((device, first), Run { end, ..run });
            return end;
        }
        let within = (device, first)..(device, regions.end);
        let single = self.by_address.range(within.clone()).next().map(|(key, _)| key.1);
        let run = self.runs.range(within).next().map(|(key, _)| key.1);
        let end = single.unwrap_or(regions.end).min(run.unwrap_or(regions.end));
        if end <= first + 1 {
            return self.touch_single(record, first, 0..REGION_PAGES, touched);
        }
        let run = Run { end, ..Run::default() };
        let run = run.touched(record.op, end - first, touched, &mut self.footprint);
        self.runs.insert((device, first), run);
        end
    }

    /// The run that has this region, and its first one.
    fn run_with(&self, (device, region): (u32, u64)) -> Option<(u64, Run)> {
        let (&(of, first), &run) = self.runs.range(..=(device, region)).next_back()?;
        (of == device && region < run.end).then_some((first, run))
    }

    /// Takes regions out of the run that begins at `first`.
    fn cut(&mut self, device: u32, first: u64, run: Run, out: Range<u64>) {
        self.runs.remove(&(device, first));
        if first < out.start {
            self.runs.insert((device, first), Run { end: out.start, ..run });
        }
        if out.end < run.end {
            self.runs.insert((device, out.end), run);
        }
    }

    /// Pages touched so far.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Numbers of accesses of touched regions in ascending order, and the number of regions with each.
    pub fn sorted_accesses(&self) -> Vec<(u64, u64)> {
        let single = self.by_address.values().map(|region| (region.accesses, 1));
        let runs = self.runs.iter().map(|((_, first), run)| (run.accesses, run.end - first));
        let mut accesses: Vec<(u64, u64)> = single.chain(runs).collect();
        accesses.sort_unstable();
        accesses.dedup_by(|next, last| {
            let is_same = next.0 == last.0;
            last.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        accesses
    }
}

impl Run {
    /// The run after a request that covers these many regions of it.
    fn touched(self, op: Op, regions: u64, touched: &mut Touched, all: &mut Footprint) -> Self {
        let pages = regions * REGION_PAGES;
        let of = |counts: bool| if counts { pages } else { 0 };
        touched.seen += of(self.read || self.written);
        touched.written += of(self.written);
        all.pages += of(!self.read && !self.written);
        let accesses = self.accesses + 1;
        if op == Op::Read {
            all.read_pages += of(!self.read);
            Self { read: true, accesses, ..self }
        } else {
            all.written_pages += of(!self.written);
            Self { written: true, accesses, ..self }
        }
    }
}

impl From<Run> for Region {
    fn from(run: Run) -> Self {
        Self { read: bits(run.read), written: bits(run.written), accesses: run.accesses }
    }
}

fn bits(all: bool) -> [u64; 4] {
    if all { [u64::MAX; WORDS] } else { [0; WORDS] }
}

impl Region {
    fn touch(
        &mut self,
        op: Op,
        pages: Range<u64>,
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
fn mask(base: u64, pages: &Range<u64>) -> u64 {
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
    fn page_partly_covered_counts_once() {
        let mut regions = Regions::default();
        assert_eq!(regions.touch(&request(Op::Read, 0, 7, 2)).pages, 2);
        let again = regions.touch(&request(Op::Write, 0, 0, 1));
        assert_eq!(again, Touched { pages: 1, seen: 1, written: 0 });
        assert_eq!(regions.footprint(), Footprint { pages: 2, read_pages: 2, written_pages: 1 });
    }

    #[test]
    fn pages_differ_by_device() {
        let mut regions = Regions::default();
        regions.touch(&request(Op::Read, 0, 0, 8));
        assert_eq!(regions.touch(&request(Op::Read, 1, 0, 8)).seen, 0);
        assert_eq!(regions.sorted_accesses(), [(1, 2)]);
    }

    #[test]
    fn long_request_takes_no_more_memory() {
        let mut regions = Regions::default();
        // Of 4 GiB each, half over the one before, and then a page in each second one.
        for at in 0..200 {
            regions.touch(&request(Op::Write, 0, at << 22, 1 << 23));
        }
        for at in 0..100 {
            regions.touch(&request(Op::Read, 0, at << 23, 8));
        }
        assert_eq!(regions.footprint().pages, 201 << 19);
        assert_eq!(regions.footprint().read_pages, 100);
        let regions = (regions.by_address.len(), regions.runs.len());
        assert!(regions.0 <= 100 && regions.1 <= 400, "{regions:?}");
    }

    proptest! {
        /// Against counters of each page and region; requests of many regions beside short ones.
        #[test]
        fn runs_agree_with_single_pages(
            requests in prop::collection::vec(
                (any::<bool>(), 0u64..60_000, prop_oneof![1u64..40, 1u64..40_000]), 1..40),
        ) {
            let (mut regions, mut pages) = (Regions::default(), BTreeMap::new());
            let mut accesses = BTreeMap::new();
            for (is_read, start, blocks) in requests {
                let op = if is_read { Op::Read } else { Op::Write };
                let touched = regions.touch(&request(op, 0, start, blocks));
                let (first, end) = (start / 8, (start + blocks).div_ceil(8));
                let (mut seen, mut written) = (0, 0);
                for page in first..end {
                    let state: &mut (bool, bool) = pages.entry(page).or_default();
                    seen += u64::from(state.0 || state.1);
                    written += u64::from(state.1);
                    if is_read { state.0 = true } else { state.1 = true }
                }
                prop_assert_eq!(touched, Touched { pages: end - first, seen, written });
                for region in first / REGION_PAGES..end.div_ceil(REGION_PAGES) {
                    *accesses.entry(region).or_insert(0u64) += 1;
                }
            }
            let count = |is: fn(&(bool, bool)) -> bool| pages.values().filter(|it| is(it)).count();
            let footprint = Footprint {
                pages: pages.len() as u64,
                read_pages: count(|page| page.0) as u64,
                written_pages: count(|page| page.1) as u64,
            };
            prop_assert_eq!(regions.footprint(), footprint);
            let mut each: Vec<u64> = accesses.into_values().collect();
            each.sort_unstable();
            let counted = regions.sorted_accesses().into_iter();
            let counted: Vec<u64> =
                counted.flat_map(|(often, many)| std::iter::repeat_n(often, many as usize)).collect();
            prop_assert_eq!(counted, each);
        }

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
