//! A set of block numbers that takes memory only where it has members.

use freewheel_units::Bytes;
use prefetch_index::prefetch_index;

/// Words of a chunk; a chunk holds 4096 numbers.
const WORDS: usize = 64;

const CHUNK: u64 = 64 * WORDS as u64;

/// A set of numbers below a bound: one bit for each, in chunks that exist while they have members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    chunks: Vec<Option<Box<Chunk>>>,
    count: u64,
    bound: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    words: [u64; WORDS],
    count: u32,
}

/// Members side by side that are a long run.
pub(super) const LONG_RUN: u32 = 16;

/// Takes the first of the runs out of a word that have [`LONG_RUN`] members or more: the number of its
/// first bit, and how many.
#[inline]
pub(super) fn take_long_run(bits: &mut u64) -> Option<(u32, u32)> {
    let mut begins = *bits;
    let mut length = 1;
    while length < LONG_RUN {
        begins &= begins >> length;
        length *= 2;
    }
    if begins == 0 {
        return None;
    }
    let begin = begins.trailing_zeros();
    let count = (*bits >> begin).trailing_ones();
    *bits &= !mask(begin, begin + count);
    Some((begin, count))
}

/// The bits `from..to` of a word; `to` may be 64.
#[inline]
const fn mask(from: u32, to: u32) -> u64 {
    (u64::MAX >> (64 - (to - from))) << from
}

impl Bitmap {
    /// No members; all that ever come are below `bound`.
    pub fn new(bound: u64) -> Self {
        let chunks = usize::try_from(bound.div_ceil(CHUNK)).expect("a bitmap that fits memory");
        Self { chunks: vec![None; chunks], count: 0, bound }
    }

    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Above all members.
    #[inline]
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// True if it has no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if `number` is a member.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        let chunk = &self.chunks[(number / CHUNK) as usize];
        let within = (number % CHUNK) as usize;
        chunk.as_ref().is_some_and(|chunk| chunk.words[within / 64] >> (within % 64) & 1 == 1)
    }

    /// The members among 64 numbers, of which `first`, a multiple of 64, is the lowest bit.
    #[inline]
    pub fn word(&self, first: u64) -> u64 {
        let chunk = &self.chunks[(first / CHUNK) as usize];
        chunk.as_ref().map_or(0, |chunk| chunk.words[(first % CHUNK) as usize / 64])
    }

    /// Asks for the memory that says whether `number` is a member.
    #[inline]
    pub fn prefetch(&self, number: u64) {
        if let Some(chunk) = &self.chunks[(number / CHUNK) as usize] {
            prefetch_index(chunk.words.as_slice(), (number % CHUNK) as usize / 64);
        }
    }

    pub fn memory(&self) -> Bytes {
        let chunks = self.chunks.iter().flatten().count();
        let slots = size_of::<Option<Box<Chunk>>>() * self.chunks.capacity();
        Bytes::new((slots + size_of::<Chunk>() * chunks) as u64)
    }

    /// Members in `from..to`.
    #[inline]
    pub fn count_in(&self, from: u64, to: u64) -> u32 {
        if from >= to {
            return 0;
        }
        // Nearly always within two words.
        let (first, last) = (from & !63, (to - 1) & !63);
        if first == last {
            return (self.word(first) & mask((from - first) as u32, (to - first) as u32))
                .count_ones();
        }
        let ends = (self.word(first) & mask((from - first) as u32, 64)).count_ones()
            + (self.word(last) & mask(0, (to - last) as u32)).count_ones();
        if first + 64 == last {
            return ends;
        }
        let mut count = ends;
        self.for_each_word(first + 64, last, |_, bits| count += bits.count_ones());
        count
    }

    /// True if `first`, an even number, or the next one is a member.
    #[inline]
    pub fn has_of_pair(&self, first: u64) -> bool {
        self.word(first & !63) >> (first % 64) & 3 != 0
    }

    /// Shows every word with members in `from..to`: the number of its first bit, and the members.
    #[inline]
    pub fn for_each_word(&self, from: u64, to: u64, mut show: impl FnMut(u64, u64)) {
        let mut at = from;
        while at < to {
            let word_end = (at | 63) + 1;
            let end = word_end.min(to);
            match &self.chunks[(at / CHUNK) as usize] {
                Some(chunk) => {
                    let first = at & !63;
                    let wanted = mask((at - first) as u32, (end - first) as u32);
                    let bits = chunk.words[(first % CHUNK) as usize / 64] & wanted;
                    if bits != 0 {
                        show(first, bits);
                    }
                    at = end;
                }
                None => at = (at / CHUNK + 1) * CHUNK,
            }
        }
    }

    /// Shows the longest runs of members in `from..to`: `first..end`, in ascending order.
    #[inline]
    pub fn for_each_run(&self, from: u64, to: u64, show: impl FnMut(u64, u64)) {
        self.for_each_run_without(&[], from, to, show);
    }

    /// Shows the longest runs of members in `from..to` that are in none of `without`.
    #[inline]
    pub fn for_each_run_without(
        &self,
        without: &[&Self],
        from: u64,
        to: u64,
        mut show: impl FnMut(u64, u64),
    ) {
        let mut open = (from, from);
        self.for_each_word(from, to, |first, mut bits| {
            for other in without {
                bits &= !other.word(first);
            }
            while bits != 0 {
                let begin = bits.trailing_zeros();
                let end = begin + (bits >> begin).trailing_ones();
                if first + u64::from(begin) != open.1 {
                    if open.0 < open.1 {
                        show(open.0, open.1);
                    }
                    open.0 = first + u64::from(begin);
                }
                open.1 = first + u64::from(end);
                bits &= !mask(begin, end);
            }
        });
        if open.0 < open.1 {
            show(open.0, open.1);
        }
    }

    /// Shows every member in `from..to`, in ascending order.
    #[inline]
    pub fn for_each(&self, from: u64, to: u64, mut show: impl FnMut(u64)) {
        self.for_each_word(from, to, |first, mut bits| {
            while bits != 0 {
                show(first + u64::from(bits.trailing_zeros()));
                bits &= bits - 1;
            }
        });
    }

    /// The first members from `from` on that follow on each other: `first..end`. At most `most` of
    /// them.
    pub fn next_run(&self, from: u64, most: u64) -> Option<(u64, u64)> {
        let mut at = from;
        while at < self.bound {
            let Some(chunk) = &self.chunks[(at / CHUNK) as usize] else {
                at = (at / CHUNK + 1) * CHUNK;
                continue;
            };
            let bits = chunk.words[(at % CHUNK) as usize / 64] >> (at % 64);
            if bits != 0 {
                let first = at + u64::from(bits.trailing_zeros());
                let end = (first..first + most)
                    .take_while(|&number| number < self.bound && self.contains(number))
                    .last()?
                    + 1;
                return Some((first, end));
            }
            at = (at | 63) + 1;
        }
        None
    }

    /// Adds `from..to`; how many of them are new. Panics beyond the bound.
    pub fn insert(&mut self, from: u64, to: u64) -> u64 {
        assert!(to <= self.bound, "{to} of a set below {}", self.bound);
        self.change(from, to, |word, wanted| word | wanted)
    }

    /// Removes `from..to`; how many of them were members. Panics beyond the bound.
    pub fn remove(&mut self, from: u64, to: u64) -> u64 {
        assert!(to <= self.bound, "{to} of a set below {}", self.bound);
        self.change(from, to, |word, unwanted| word & !unwanted)
    }

    /// Applies `change(word, bits in range)`; the number of bits that changed.
    fn change(&mut self, from: u64, to: u64, change: impl Fn(u64, u64) -> u64) -> u64 {
        let (mut at, mut added, mut removed) = (from, 0, 0);
        while at < to {
            let slot = &mut self.chunks[(at / CHUNK) as usize];
            let chunk_end = (at / CHUNK + 1) * CHUNK;
            if slot.is_none() && change(0, u64::MAX) == 0 {
                at = chunk_end;
                continue;
            }
            let chunk = slot.get_or_insert_with(|| Box::new(Chunk { words: [0; WORDS], count: 0 }));
            while at < to.min(chunk_end) {
                let first = at & !63;
                let end = (first + 64).min(to);
                let bits = mask((at - first) as u32, (end - first) as u32);
                let word = &mut chunk.words[(first % CHUNK) as usize / 64];
                let changed = change(*word, bits);
                let (more, less) = (changed & !*word, *word & !changed);
                *word = changed;
                chunk.count = chunk.count + more.count_ones() - less.count_ones();
                added += u64::from(more.count_ones());
                removed += u64::from(less.count_ones());
                at = end;
            }
            if chunk.count == 0 {
                *slot = None;
            }
        }
        self.count = self.count + added - removed;
        added + removed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bitmap_takes_only_long_runs(
            ends in prop::collection::vec(0u32..=64, 0..9), noise: u64,
        ) {
            // Members between every two ends, and others where chance says so.
            let mut bits = 0;
            for ends in ends.chunks_exact(2) {
                let (from, to) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
                bits |= if from < to { mask(from, to) } else { noise };
            }
            let (mut left, mut taken) = (bits, 0);
            while let Some((begin, count)) = take_long_run(&mut left) {
                prop_assert!(count >= LONG_RUN);
                let run = mask(begin, begin + count);
                prop_assert_eq!((run & bits, run & (taken | left)), (run, 0), "whole, and once");
                taken |= run;
            }
            prop_assert_eq!(taken | left, bits, "nothing is lost");
            let length = |begin: u32| (left >> begin).trailing_ones();
            prop_assert!((0..64).all(|begin| length(begin) < LONG_RUN), "{:b}", left);
        }

        #[test]
        fn bitmap_agrees_with_set(
            steps in prop::collection::vec((any::<bool>(), 0u64..20_000, 0u64..9_000), 1..40)
        ) {
            let bound = 29_000;
            let (mut bitmap, mut set) = (Bitmap::new(bound), BTreeSet::new());
            for (insert, from, length) in steps {
                let to = from + length;
                let changed = if insert {
                    let changed = bitmap.insert(from, to);
                    let before = set.len();
                    set.extend(from..to);
                    prop_assert_eq!(changed as usize, set.len() - before);
                    changed
                } else {
                    let gone = set.range(from..to).count();
                    set.retain(|number| !(from..to).contains(number));
                    prop_assert_eq!(bitmap.remove(from, to) as usize, gone);
                    gone as u64
                };
                prop_assert!(changed <= length);
                prop_assert_eq!(bitmap.count() as usize, set.len());
                let mut members = Vec::new();
                bitmap.for_each(from / 2, to, |number| members.push(number));
                let expected: Vec<u64> = set.range(from / 2..to).copied().collect();
                prop_assert_eq!(bitmap.count_in(from / 2, to) as usize, expected.len());
                prop_assert_eq!(&members, &expected);
                let mut in_runs = Vec::new();
                bitmap.for_each_run(from / 2, to, |first, end| in_runs.extend(first..end));
                prop_assert_eq!(in_runs, expected);
                let next = set.range(from..).next().copied();
                let run = next.map(|first| {
                    (first, (first..first + 7).take_while(|n| set.contains(n)).count() as u64 + first)
                });
                prop_assert_eq!(bitmap.next_run(from, 7), run);
                prop_assert_eq!(bitmap.contains(from), set.contains(&from));
                let even = from & !1;
                let either = set.contains(&even) || set.contains(&(even + 1));
                prop_assert_eq!(bitmap.has_of_pair(even), either);
            }
            bitmap.remove(0, bound);
            prop_assert_eq!(bitmap, Bitmap::new(bound), "an emptied set keeps no memory");
        }
    }
}
