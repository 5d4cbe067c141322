//! Belady's MIN.

use freewheel_model::cache::KnownFuture;
use freewheel_model::cache::curve::SpatialSample;
use rayon::prelude::*;

use super::counter::{Access, Counter, Use, uses};
use crate::cache_curves::result::MissRatio;
use crate::cache_curves::sizes::{CACHE_BLOCK_BYTES, Share};
use crate::ratio::ratio;

/// Uses of cache blocks by reads, kept until the trace ends: only then is the future known. Writes change nothing
/// there, and a cache block is whole once it was read.
///
/// Memory is 9 bytes a use, and while misses are counted 32 more.
pub(in crate::cache_curves) struct BestPossible {
    capacities: Vec<u32>,
    sample: Option<Share>,
    keys: Vec<u64>,
    /// Blocks of 512 bytes in the lower bits; the first use of a read has [`FIRST`].
    parts: Vec<u8>,
    warm_up: usize,
}

const FIRST: u8 = 1 << 7;

/// Misses after the warm-up.
#[derive(Debug, Clone, Copy, Default)]
struct Misses {
    reads: u64,
    missed_reads: u64,
    blocks: u64,
    missed_blocks: u64,
    uses: u64,
    missed_uses: u64,
    /// True if the read that is under way has missed.
    has_missed: bool,
}

impl BestPossible {
    pub fn new(capacities: &[u32], sample: Option<Share>) -> Self {
        let capacities = capacities.to_vec();
        Self { capacities, sample, keys: Vec::new(), parts: Vec::new(), warm_up: 0 }
    }

    fn misses(&self, future: &KnownFuture, capacity: u32) -> Misses {
        let share = self.sample.map_or(1.0, Share::get);
        let capacity = ((f64::from(capacity) * share).round() as u64).max(1);
        let mut misses = Misses::default();
        future.run(
            capacity,
            |_| 1,
            |at, hit| {
                if at >= self.warm_up {
                    misses.add(self.parts[at], hit);
                }
            },
        );
        misses
    }

    fn ratio(&self, capacity: u32, misses: &Misses) -> MissRatio {
        let by_read = ratio(misses.missed_reads as f64, misses.reads as f64);
        MissRatio {
            size_bytes: u64::from(capacity) * CACHE_BLOCK_BYTES,
            requests: self.sample.is_none().then_some(by_read),
            bytes: match self.sample {
                None => ratio(misses.missed_blocks as f64, misses.blocks as f64),
                Some(_) => ratio(misses.missed_uses as f64, misses.uses as f64),
            },
            standard_error: None,
        }
    }
}

impl Misses {
    fn add(&mut self, part: u8, hit: bool) {
        let (blocks, missed) = (u64::from(part & !FIRST), u64::from(!hit));
        if part & FIRST != 0 {
            self.reads += 1;
            self.has_missed = false;
        }
        if !hit && !self.has_missed {
            self.missed_reads += 1;
            self.has_missed = true;
        }
        self.blocks += blocks;
        self.missed_blocks += blocks * missed;
        self.uses += 1;
        self.missed_uses += missed;
    }
}

impl Counter for BestPossible {
    fn process(&mut self, accesses: &[Access]) {
        let sample = self.sample.map(|share| SpatialSample::new(share.get()));
        for Use { key, blocks, is_first } in uses(accesses) {
            if sample.is_none_or(|sample| sample.contains(key)) {
                self.keys.push(key);
                self.parts.push(blocks | if is_first { FIRST } else { 0 });
            }
        }
    }

    fn begin_counting(&mut self) {
        self.warm_up = self.keys.len();
    }

    fn miss_ratios(&mut self) -> Vec<MissRatio> {
        let future = KnownFuture::new(&std::mem::take(&mut self.keys));
        self.capacities
            .par_iter()
            .map(|&capacity| self.ratio(capacity, &self.misses(&future, capacity)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use freewheel_model::cache::BlockRange;
    use freewheel_units::{Blocks, VolumeBlock};

    use super::*;

    /// Reads and writes of these blocks of 512 bytes.
    fn accesses(of: &[(u64, u64, bool)]) -> Vec<Access> {
        let access = |&(start, blocks, is_read): &(u64, u64, bool)| Access {
            range: BlockRange::new(VolumeBlock::new(start), Blocks::new(blocks)),
            is_read,
        };
        of.iter().map(access).collect()
    }

    /// Shares by read and by byte, at one and at two cache blocks.
    fn ratios(warm_up: &[(u64, u64, bool)], counted: &[(u64, u64, bool)]) -> [(f64, f64); 2] {
        let mut counter = BestPossible::new(&[1, 2], None);
        counter.process(&accesses(warm_up));
        counter.begin_counting();
        counter.process(&accesses(counted));
        let ratios = counter.miss_ratios();
        assert_eq!(ratios.iter().map(|at| at.size_bytes).collect::<Vec<_>>(), [4096, 8192]);
        [0, 1].map(|at| (ratios[at].requests.unwrap(), ratios[at].bytes))
    }

    #[test]
    fn best_possible_misses_match_hand_count() {
        // Blocks 0 and half of 1; then 0, a write, and the half again: in two cache blocks the last two reads hit.
        let reads = [(0, 12, true), (0, 8, true), (8, 8, false), (8, 4, true)];
        assert_eq!(ratios(&[], &reads), [(1.0, 1.0), (1.0 / 3.0, 0.5)]);
        // What was read in the warm-up is there. One cache block keeps what comes again first: of 0 and 1 that is 1,
        // which came last, so the read of 0 misses.
        assert_eq!(ratios(&reads[..1], &reads[1..]), [(1.0, 1.0), (0.0, 0.0)]);
        assert_eq!(ratios(&reads[..2], &reads[3..]), [(1.0, 1.0), (0.0, 0.0)]);
    }
}
