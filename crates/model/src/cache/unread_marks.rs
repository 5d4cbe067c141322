//! Which sectors of each cache block were prefetched and not read yet, and how they came.

use std::ops::Range;

use super::prefetch_counts::{PrefetchKind, PrefetchTally};
use super::valid_bits::ValidBits;

/// A slot, and the key of its cache block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub slot: u32,
    pub key: u64,
}

/// Marks of the sectors in each slot.
///
/// Few cache blocks have marks at a time, so a byte for each slot says which kinds to look at.
#[derive(Debug, Clone)]
pub(super) struct UnreadMarks {
    /// Sectors of a cache block.
    sectors: u64,
    kinds: Vec<u8>,
    marks: [ValidBits; 4],
    /// Of each slot with marks: its key.
    keys: Vec<u64>,
    /// Cache blocks evicted in vain, if somebody asks for them.
    in_vain: Option<Vec<Evicted>>,
    tally: PrefetchTally,
}

/// A cache block that was evicted with marks of prefetching with reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evicted {
    pub key: u64,
    /// Sectors with marks.
    pub sectors: u64,
}

impl UnreadMarks {
    /// No marks; `sectors` are those of a cache block.
    pub fn new(sectors: u64) -> Self {
        let marks = PrefetchKind::ALL.map(|_| ValidBits::new(sectors));
        Self {
            sectors,
            kinds: Vec::new(),
            marks,
            keys: Vec::new(),
            in_vain: None,
            tally: PrefetchTally::default(),
        }
    }

    /// Keeps what is evicted in vain from now on, for [`Self::take_in_vain`].
    pub fn keep_in_vain(&mut self) {
        self.in_vain = Some(Vec::new());
    }

    /// Takes the cache blocks that were evicted in vain since the last call.
    pub fn take_in_vain(&mut self) -> impl Iterator<Item = Evicted> {
        self.in_vain.iter_mut().flat_map(|list| list.drain(..))
    }

    /// Counts so far.
    pub fn tally(&self) -> PrefetchTally {
        self.tally
    }

    /// Sectors that were not in memory have been prefetched; `slot` is None when no cache keeps them.
    pub fn brought(&mut self, slot: Option<Slot>, kind: PrefetchKind, sectors: Range<u64>) {
        let counts = &mut self.tally[kind];
        counts.brought += sectors.end - sectors.start;
        let Some(Slot { slot, key }) = slot else {
            counts.wasted += sectors.end - sectors.start;
            return;
        };
        let at = slot as usize;
        if self.kinds.len() <= at {
            self.kinds.resize(at + 1, 0);
            self.keys.resize(at + 1, 0);
        }
        self.keys[at] = key;
        let marks = &mut self.marks[kind as usize];
        if self.kinds[at] & 1 << kind as u8 == 0 {
            marks.clear(slot);
            self.kinds[at] |= 1 << kind as u8;
        }
        marks.set(slot, sectors);
    }

    /// A read asks for sectors.
    #[inline]
    pub fn used(&mut self, slot: u32, sectors: Range<u64>) {
        if self.is_marked(slot) {
            self.unmark(slot, sectors, |tally, kind, count| tally[kind].used += count);
        }
    }

    /// Sectors leave memory or are overwritten.
    #[inline]
    pub fn lost(&mut self, slot: u32, sectors: Range<u64>) {
        if self.is_marked(slot) {
            self.unmark(slot, sectors, |tally, kind, count| tally[kind].wasted += count);
        }
    }

    /// A cache block leaves memory.
    #[inline]
    pub fn evicted(&mut self, slot: u32) {
        if !self.is_marked(slot) {
            return;
        }
        let before = self.tally[PrefetchKind::WithReads].wasted;
        self.lost(slot, 0..self.sectors);
        let sectors = self.tally[PrefetchKind::WithReads].wasted - before;
        if let Some(in_vain) = self.in_vain.as_mut().filter(|_| sectors > 0) {
            in_vain.push(Evicted { key: self.keys[slot as usize], sectors });
        }
    }

    #[inline]
    fn is_marked(&self, slot: u32) -> bool {
        self.kinds.get(slot as usize).is_some_and(|&kinds| kinds != 0)
    }

    fn unmark(
        &mut self,
        slot: u32,
        sectors: Range<u64>,
        mut count: impl FnMut(&mut PrefetchTally, PrefetchKind, u64),
    ) {
        let Self { kinds, marks, tally, .. } = self;
        let kinds = &mut kinds[slot as usize];
        for kind in PrefetchKind::ALL {
            if *kinds & 1 << kind as u8 == 0 {
                continue;
            }
            let unset = marks[kind as usize].unset(slot, sectors.clone());
            count(tally, kind, unset.count);
            if unset.is_empty {
                *kinds &= !(1 << kind as u8);
            }
        }
    }
}
