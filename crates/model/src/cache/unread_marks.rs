//! Sectors of each cache block that were prefetched and not read yet, and the kind of the prefetch.

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
    slots: Vec<Marked>,
    /// Marks of each slot and kind.
    marks: ValidBits,
    /// Cache blocks evicted in vain, if somebody asks for them.
    in_vain: Option<Vec<Evicted>>,
    tally: PrefetchTally,
}

/// Marks of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Marked {
    /// The key of its cache block; with marks only.
    key: u64,
    /// Kinds with marks, as bits.
    kinds: u8,
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
        Self {
            slots: Vec::new(),
            marks: ValidBits::new(sectors),
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
    #[inline(always)]
    pub fn brought(&mut self, slot: Option<Slot>, kind: PrefetchKind, sectors: Range<u64>) {
        let counts = &mut self.tally[kind];
        counts.brought += sectors.end - sectors.start;
        let Some(Slot { slot, key }) = slot else {
            counts.wasted += sectors.end - sectors.start;
            return;
        };
        if self.slots.len() <= slot as usize {
            self.grow(slot);
        }
        let marked = &mut self.slots[slot as usize];
        marked.key = key;
        let (before, place) = (marked.kinds, place(slot, kind as u8));
        marked.kinds |= 1 << kind as u8;
        if before == marked.kinds {
            self.marks.set(place, sectors);
        } else {
            self.marks.put(place, sectors);
        }
    }

    #[cold]
    fn grow(&mut self, slot: u32) {
        self.slots.resize(slot as usize + 1, Marked::default());
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
    #[inline(always)]
    pub fn evicted(&mut self, slot: u32) {
        let Some(marked) = self.slots.get_mut(slot as usize) else { return };
        let (kinds, key) = (std::mem::take(&mut marked.kinds), marked.key);
        for kind in kinds_in(kinds) {
            let sectors = self.marks.take_all(place(slot, kind as u8));
            self.tally[kind].wasted += sectors;
            if kind == PrefetchKind::WithReads
                && sectors > 0
                && let Some(in_vain) = &mut self.in_vain
            {
                in_vain.push(Evicted { key, sectors });
            }
        }
    }

    #[inline]
    fn is_marked(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|marked| marked.kinds != 0)
    }

    fn unmark(
        &mut self,
        slot: u32,
        sectors: Range<u64>,
        mut count: impl FnMut(&mut PrefetchTally, PrefetchKind, u64),
    ) {
        let Self { slots, marks, tally, .. } = self;
        let kinds = &mut slots[slot as usize].kinds;
        for kind in kinds_in(*kinds) {
            let unset = marks.unset(place(slot, kind as u8), sectors.clone());
            count(tally, kind, unset.count);
            if unset.is_empty {
                *kinds &= !(1 << kind as u8);
            }
        }
    }
}

/// Index of the marks of a kind.
#[inline]
fn place(slot: u32, kind: u8) -> u32 {
    slot * KINDS + u32::from(kind)
}

const KINDS: u32 = PrefetchKind::ALL.len() as u32;

/// The kinds whose bits are set.
#[inline]
fn kinds_in(mut bits: u8) -> impl Iterator<Item = PrefetchKind> {
    std::iter::from_fn(move || {
        let kind = *PrefetchKind::ALL.get(bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(kind)
    })
}
