//! Sequential prefetching: what a read that misses fetches beside the blocks that it asks for.
//!
//! tr03 section 4.2. The problem: once the head stands over the right place, more blocks are nearly free,
//! but every block delays the next request. The schemes differ in how much they read on. A fourth one is
//! in `amp.rs`:
//!
//! ```text
//!                     asked for
//!   large fetch unit  |---####------|        whole aligned units; the read ends with the last block
//!   read-ahead             ####|~~~~~~       a fixed amount behind; the read ends before it
//!   conditional            ####|~~~~~~~~~~   as much as the run that leads here is long
//! ```
//!
//! Worked example of the conditional scheme, with segments of 16 KiB (32 blocks), factor 2: reads of
//! blocks 0, 40 and 70 lie in segments 0, 1 and 2. Each segment finds the one before it in the directory
//! and takes its place with a counter one higher. The third read has counter 3 and prefetches
//! 2 x 3 x 32 = 192 blocks.

use std::ops::{Range, RangeInclusive};

use freewheel_units::{Blocks, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amp::Amp;
use super::queues::{Queue, Queues};

/// Blocks that are prefetched with a read that misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "PrefetchConfig")]
pub enum PrefetchSpec {
    /// Nothing.
    #[default]
    Off,
    /// Whole aligned units.
    LargeFetchUnit {
        /// Length of a unit.
        unit: Bytes,
    },
    /// A fixed amount after the missing blocks.
    ReadAhead {
        /// Length of the read-ahead.
        amount: Bytes,
    },
    /// An amount that grows with the sequential run that the read continues.
    Conditional {
        /// Unit in which runs are detected.
        segment: Bytes,
        /// Least run, in segments, that prefetches.
        #[serde(default = "one")]
        trigger: u32,
        /// Segments to prefetch for each segment of the run.
        #[serde(default = "two")]
        factor: u32,
        /// Most of one prefetch.
        #[serde(default = "conditional_maximum")]
        maximum: Bytes,
        /// True if descending runs prefetch, too.
        #[serde(default)]
        backward: bool,
    },
    /// An amount, and how early it is fetched, that each sequential stream learns (AMP).
    Amp {
        /// The first amount of a stream, at least 4 KiB.
        #[serde(default = "amp_initial")]
        initial: Bytes,
        /// Most of one prefetch.
        #[serde(default = "amp_maximum")]
        maximum: Bytes,
        /// Streams that are known at a time.
        #[serde(default = "amp_streams")]
        streams: u32,
    },
}

const fn one() -> u32 {
    1
}

const fn two() -> u32 {
    2
}

const fn conditional_maximum() -> Bytes {
    Bytes::from_kib(256)
}

/// The read-ahead of tr03.
const fn amp_initial() -> Bytes {
    Bytes::from_kib(32)
}

/// A disk of today reads it in a turn.
const fn amp_maximum() -> Bytes {
    Bytes::from_kib(1024)
}

/// Entries of tr03's directory.
const fn amp_streams() -> u32 {
    DIRECTORY as u32
}

/// Runs that are known at a time (tr03 section 4.2.3).
const DIRECTORY: usize = 64;

impl PrefetchSpec {
    /// Conditional sequential prefetch with segments of this size: trigger 1, factor 2, at most 256 KiB,
    /// forward only (tr03 section 4.2.3).
    pub const fn conditional(segment: Bytes) -> Self {
        let maximum = conditional_maximum();
        Self::Conditional { segment, trigger: one(), factor: two(), maximum, backward: false }
    }

    /// AMP with its defaults.
    pub const fn amp() -> Self {
        Self::Amp { initial: amp_initial(), maximum: amp_maximum(), streams: amp_streams() }
    }
}

/// Blocks of one disk to fetch for a read that misses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPlan {
    /// One access. The read is complete at its end.
    pub fetch: Range<u64>,
    /// End of the read-ahead that follows at once; the fetch's end for none.
    pub ahead_to: u64,
}

/// A prefetcher of one disk.
#[derive(Debug, Clone)]
pub struct Prefetcher {
    spec: PrefetchSpec,
    capacity: u64,
    forward: Directory,
    backward: Directory,
    amp: Option<Amp>,
}

impl Prefetcher {
    /// A prefetcher that has seen no read, for a disk of `capacity` blocks. Panics for units and
    /// segments of no block.
    pub fn new(spec: PrefetchSpec, capacity: Blocks) -> Self {
        let entries = match spec {
            PrefetchSpec::LargeFetchUnit { unit: Bytes::ZERO } => {
                panic!("a fetch unit of no block")
            }
            PrefetchSpec::Conditional { segment, .. } => {
                assert!(segment > Bytes::ZERO, "a segment of no block");
                DIRECTORY
            }
            _ => 0,
        };
        let directory = Directory::new(entries);
        let amp = match spec {
            PrefetchSpec::Amp { initial, maximum, streams } => Some(Amp::new(
                [initial, maximum].map(|bytes| bytes.blocks_rounded_up().get()),
                streams as usize,
                capacity.get(),
            )),
            _ => None,
        };
        let capacity = capacity.get();
        Self { spec, capacity, forward: directory.clone(), backward: directory, amp }
    }

    /// A read of these blocks arrives, hit or miss. Prefetched blocks are no reads: the directory follows
    /// what clients ask for.
    pub fn read(&mut self, blocks: &Range<u64>) {
        self.amp.iter_mut().for_each(|amp| amp.read(blocks));
        let PrefetchSpec::Conditional { segment, backward, .. } = self.spec else { return };
        let segments = segments_of(blocks, segment);
        for segment in segments.clone() {
            self.forward.refer(segment, segment.checked_sub(1));
        }
        if backward {
            for segment in segments.rev() {
                self.backward.refer(segment, segment.checked_add(1));
            }
        }
    }

    /// Plan for a read of `blocks` of which `missing` is the part to fetch. Call [`Self::read`] for it
    /// first.
    pub fn plan(&mut self, blocks: &Range<u64>, missing: Range<u64>) -> FetchPlan {
        if let Some(amp) = &mut self.amp {
            return FetchPlan { ahead_to: amp.missed(missing.end), fetch: missing };
        }
        match self.spec {
            PrefetchSpec::Off | PrefetchSpec::Amp { .. } => {
                FetchPlan { ahead_to: missing.end, fetch: missing }
            }
            PrefetchSpec::LargeFetchUnit { unit } => {
                let unit = unit.blocks_rounded_up().get();
                let start = missing.start - missing.start % unit;
                let end = missing.end.next_multiple_of(unit).min(self.capacity);
                FetchPlan { fetch: start..end, ahead_to: end }
            }
            PrefetchSpec::ReadAhead { amount } => {
                let amount = amount.blocks_rounded_up().get();
                FetchPlan { ahead_to: self.behind(amount, &missing), fetch: missing }
            }
            PrefetchSpec::Conditional { segment, backward, .. } => {
                let segments = segments_of(blocks, segment);
                let ahead = self.forward.run(*segments.end());
                // A first read counts as a forward run alone: it leaves open the direction.
                let back = self.backward.run(*segments.start());
                let back = if backward && back > 1 { self.amount(back) } else { 0 };
                FetchPlan {
                    ahead_to: self.behind(self.amount(ahead), &missing),
                    fetch: missing.start.saturating_sub(back)..missing.end,
                }
            }
        }
    }

    fn behind(&self, amount: u64, missing: &Range<u64>) -> u64 {
        (missing.end + amount).min(self.capacity)
    }

    /// Blocks to prefetch at the end of a run of this many segments. The paper's "exceeds the trigger"
    /// contradicts its "a trigger of one prefetches on every miss"; the second is taken.
    fn amount(&self, run: u32) -> u64 {
        let PrefetchSpec::Conditional { segment, trigger, factor, maximum, .. } = self.spec else {
            return 0;
        };
        if run < trigger {
            return 0;
        }
        let segments = u64::from(factor) * u64::from(run);
        segments
            .saturating_mul(segment.blocks_rounded_up().get())
            .min(maximum.blocks_rounded_up().get())
    }
}

impl Prefetcher {
    /// Blocks to prefetch though a read of `blocks` needs no fetch. Call [`Self::read`] for it first.
    pub fn hit(&mut self, blocks: &Range<u64>) -> Option<Range<u64>> {
        self.amp.as_mut()?.hit(blocks.end - blocks.start)
    }

    /// The read of `blocks` that has just arrived waits for prefetched blocks on their way.
    pub fn waited(&mut self, blocks: &Range<u64>) {
        self.amp.iter_mut().for_each(|amp| amp.waited(blocks.end - blocks.start));
    }

    /// True if the prefetcher learns from [`Self::wasted`].
    pub fn learns(&self) -> bool {
        self.amp.is_some()
    }

    /// Prefetched blocks were evicted before a read asked for them.
    pub fn wasted(&mut self, blocks: &Range<u64>) {
        self.amp.iter_mut().for_each(|amp| amp.wasted(blocks));
    }
}

/// Segments of this length that have a part of `blocks`.
fn segments_of(blocks: &Range<u64>, segment: Bytes) -> RangeInclusive<u64> {
    let segment = segment.blocks_rounded_up().get();
    blocks.start / segment..=(blocks.end - 1) / segment
}

/// Ends of sequential runs, by the last segment of each.
#[derive(Debug, Clone)]
struct Directory {
    /// From the run that was not read for longest.
    ends: Queues<1>,
    /// Segments of the run in each slot.
    segments: Vec<u32>,
    entries: usize,
}

const ENDS: Queue = 0;

impl Directory {
    fn new(entries: usize) -> Self {
        Self { ends: Queues::new(), segments: Vec::new(), entries }
    }

    /// A read of `segment`, which continues the run that ends at `predecessor`.
    fn refer(&mut self, segment: u64, predecessor: Option<u64>) {
        if let Some(slot) = self.ends.keys().find(segment) {
            return self.ends.renew(slot);
        }
        let before = predecessor.and_then(|end| self.ends.keys().find(end));
        let segments = 1 + before.map_or(0, |slot| self.segments[slot as usize]);
        match before {
            Some(slot) => self.ends.remove(slot),
            None if self.ends.len(ENDS) as usize == self.entries => {
                self.ends.remove_oldest(ENDS);
            }
            None => {}
        }
        let slot = self.ends.insert(segment, ENDS) as usize;
        self.segments.resize(self.segments.len().max(slot + 1), 0);
        self.segments[slot] = segments;
    }

    /// Segments of the run that ends at `segment`.
    fn run(&self, segment: u64) -> u32 {
        self.ends.keys().find(segment).map_or(0, |slot| self.segments[slot as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Blocks = Blocks::new(1_000_000);

    fn plan(prefetcher: &mut Prefetcher, blocks: Range<u64>) -> FetchPlan {
        prefetcher.read(&blocks);
        prefetcher.plan(&blocks.clone(), blocks)
    }

    /// Segments of 32 blocks.
    fn conditional(trigger: u32, backward: bool) -> Prefetcher {
        let (segment, maximum) = (Bytes::from_kib(16), conditional_maximum());
        let spec = PrefetchSpec::Conditional { segment, trigger, factor: 2, maximum, backward };
        Prefetcher::new(spec, CAPACITY)
    }

    #[test]
    fn prefetch_large_unit_aligned_within_disk() {
        let spec = PrefetchSpec::LargeFetchUnit { unit: Bytes::from_kib(32) };
        let mut large = Prefetcher::new(spec, Blocks::new(200));
        // The paper's example: a read of blocks 60 to 68 fetches blocks 0 to 127.
        assert_eq!(plan(&mut large, 60..69).fetch, 0..128);
        assert_eq!(plan(&mut large, 195..196), FetchPlan { fetch: 192..200, ahead_to: 200 });
    }

    #[test]
    fn prefetch_read_ahead_is_second_access() {
        let spec = PrefetchSpec::ReadAhead { amount: Bytes::from_kib(32) };
        let mut ahead = Prefetcher::new(spec, Blocks::new(100));
        assert_eq!(plan(&mut ahead, 8..16), FetchPlan { fetch: 8..16, ahead_to: 80 });
        assert_eq!(plan(&mut ahead, 80..90), FetchPlan { fetch: 80..90, ahead_to: 100 });
    }

    #[test]
    fn prefetch_run_doubles_up_to_maximum() {
        let mut prefetcher = conditional(1, false);
        let ahead = |prefetcher: &mut Prefetcher, start: u64| {
            let plan = plan(prefetcher, start..start + 8);
            plan.ahead_to - plan.fetch.end
        };
        // Segments 0, 1, 2: counters 1, 2, 3.
        assert_eq!([0, 40, 70].map(|start| ahead(&mut prefetcher, start)), [64, 128, 192]);
        // A second read of the same segment does not lengthen the run.
        assert_eq!(ahead(&mut prefetcher, 80), 192);
        let long: Vec<u64> = (3..12).map(|segment| ahead(&mut prefetcher, segment * 32)).collect();
        assert_eq!(long[..5], [256, 320, 384, 448, 512]);
        assert!(long[5..].iter().all(|&ahead| ahead == 512));
        // A read elsewhere begins a new run and leaves the others alone.
        assert_eq!(ahead(&mut prefetcher, 500_000), 64);
        assert_eq!(ahead(&mut prefetcher, 12 * 32), 512);
    }

    #[test]
    fn prefetch_trigger_3_waits_for_third_segment() {
        let mut prefetcher = conditional(3, false);
        let ahead: Vec<u64> = (0..4)
            .map(|segment| {
                let plan = plan(&mut prefetcher, segment * 32..segment * 32 + 1);
                plan.ahead_to - plan.fetch.end
            })
            .collect();
        assert_eq!(ahead, [0, 0, 192, 256]);
    }

    #[test]
    fn prefetch_directory_forgets_least_recent_run() {
        let forward = Directory::new(2);
        let mut prefetcher = Prefetcher { forward, ..conditional(1, false) };
        for start in [0, 10_000, 20_000] {
            plan(&mut prefetcher, start..start + 1);
        }
        // Segment 0 is gone, so segment 1 begins a new run; 20_000 / 32 = 625 is still there.
        let ahead = plan(&mut prefetcher, 626 * 32..626 * 32 + 1);
        assert_eq!(ahead.ahead_to - ahead.fetch.end, 128);
        let ahead = plan(&mut prefetcher, 32..33);
        assert_eq!(ahead.ahead_to - ahead.fetch.end, 64);
    }

    #[test]
    fn prefetch_descending_run_fetches_blocks_before() {
        let mut prefetcher = conditional(1, true);
        let starts = [3200, 3200 - 32, 3200 - 64];
        let before =
            starts.map(|start| start - plan(&mut prefetcher, start..start + 8).fetch.start);
        assert_eq!(before, [0, 128, 192]);
        // Block 0 has no block before it.
        let mut prefetcher = conditional(1, true);
        plan(&mut prefetcher, 32..33);
        assert_eq!(plan(&mut prefetcher, 0..8).fetch.start, 0);
    }
}
