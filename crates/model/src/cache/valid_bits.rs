//! Sectors of each cache block that are in memory.

use std::ops::Range;

/// A bit for each sector of each slot's cache block.
#[derive(Debug, Clone)]
pub(super) struct ValidBits {
    words_per_slot: usize,
    words: Vec<u64>,
    /// Sectors of a slot.
    sectors: u64,
}

/// Sectors of one word.
struct WordMask {
    word: usize,
    mask: u64,
}

/// Outcome of [`ValidBits::unset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unset {
    /// Number of sectors that were valid.
    pub count: u64,
    /// True if none is left in the slot.
    pub is_empty: bool,
}

const WORD: u64 = 64;

/// The words that hold `sectors`, and which of their bits.
fn parts(sectors: Range<u64>) -> impl Iterator<Item = WordMask> {
    (sectors.start / WORD..sectors.end.div_ceil(WORD)).map(move |word| {
        let from = sectors.start.saturating_sub(word * WORD);
        let end = (sectors.end - word * WORD).min(WORD);
        WordMask { word: word as usize, mask: (u64::MAX >> (WORD - (end - from))) << from }
    })
}

impl ValidBits {
    /// No valid sector; `sectors` are those of a cache block.
    pub fn new(sectors: u64) -> Self {
        Self { words_per_slot: sectors.div_ceil(WORD) as usize, words: Vec::new(), sectors }
    }

    /// Makes these sectors valid and all others of a slot invalid, which may be a new one.
    #[inline(always)]
    pub fn put(&mut self, slot: u32, sectors: Range<u64>) {
        if self.words_per_slot == 1
            && let Some(word) = self.words.get_mut(slot as usize)
        {
            *word = one_word(&sectors);
            return;
        }
        self.clear(slot);
        self.set(slot, sectors);
    }

    /// Clears all sectors of a slot, which may be a new one.
    #[cold]
    fn clear(&mut self, slot: u32) {
        let at = slot as usize * self.words_per_slot;
        let end = at + self.words_per_slot;
        if self.words.len() < end {
            self.words.resize(end, 0);
        }
        self.words[at..end].fill(0);
    }

    /// Calls `each` with each word of a slot that holds some of the sectors, and their bits. Most cache
    /// blocks have one word.
    // Inlined, so that the few steps for one word stand where they are needed.
    #[inline(always)]
    fn words(&mut self, slot: u32, sectors: Range<u64>, mut each: impl FnMut(&mut u64, u64)) {
        if self.words_per_slot == 1 {
            return each(&mut self.words[slot as usize], one_word(&sectors));
        }
        let at = slot as usize * self.words_per_slot;
        parts(sectors).for_each(|part| each(&mut self.words[at + part.word], part.mask));
    }

    /// Makes sectors valid.
    #[inline]
    pub fn set(&mut self, slot: u32, sectors: Range<u64>) {
        self.words(slot, sectors, |word, mask| *word |= mask);
    }

    /// Makes sectors invalid.
    #[inline]
    pub fn unset(&mut self, slot: u32, sectors: Range<u64>) -> Unset {
        let (mut count, mut left) = (0, 0);
        self.words(slot, sectors, |word, mask| {
            count += u64::from((*word & mask).count_ones());
            *word &= !mask;
            left |= *word;
        });
        let at = slot as usize * self.words_per_slot;
        Unset { count, is_empty: left == 0 && (self.words_per_slot == 1 || !self.is_left(at)) }
    }

    fn is_left(&self, at: usize) -> bool {
        self.words[at..at + self.words_per_slot].iter().any(|&word| word != 0)
    }

    /// Makes all sectors of a slot invalid; returns how many were valid.
    #[inline]
    pub fn take_all(&mut self, slot: u32) -> u64 {
        if self.words_per_slot == 1 {
            let word = std::mem::take(&mut self.words[slot as usize]);
            // Most often all of them, which is faster to see than to count.
            let all = one_word(&(0..self.sectors));
            return if word == all { self.sectors } else { word.count_ones().into() };
        }
        let at = slot as usize * self.words_per_slot;
        let words = &mut self.words[at..at + self.words_per_slot];
        words.iter_mut().map(|word| u64::from(std::mem::take(word).count_ones())).sum()
    }

    /// Calls `found` with each run of invalid sectors, in ascending order. A run ends at each 64th
    /// sector at the latest.
    #[inline]
    pub fn missing(&self, slot: u32, sectors: Range<u64>, mut found: impl FnMut(Range<u64>)) {
        if self.words_per_slot == 1 {
            return runs(!self.words[slot as usize] & one_word(&sectors), 0, found);
        }
        let at = slot as usize * self.words_per_slot;
        for WordMask { word, mask } in parts(sectors) {
            runs(!self.words[at + word] & mask, word as u64 * WORD, &mut found);
        }
    }

    /// True if all of some sectors are valid.
    #[inline]
    pub fn has_all(&self, slot: u32, sectors: Range<u64>) -> bool {
        if self.words_per_slot == 1 {
            return !self.words[slot as usize] & one_word(&sectors) == 0;
        }
        let at = slot as usize * self.words_per_slot;
        parts(sectors).all(|WordMask { word, mask }| !self.words[at + word] & mask == 0)
    }
}

/// The bits of sectors of the first word, at least one.
#[inline]
fn one_word(sectors: &Range<u64>) -> u64 {
    debug_assert!(!sectors.is_empty());
    // Shifts count modulo 64, so that minus a length is what 64 less it is.
    let without = sectors.start.wrapping_sub(sectors.end) as u32;
    u64::MAX.wrapping_shr(without).wrapping_shl(sectors.start as u32)
}

/// Calls `found` with each run of set bits, counted from `first`.
#[inline]
fn runs(mut bits: u64, first: u64, mut found: impl FnMut(Range<u64>)) {
    while bits != 0 {
        let from = u64::from(bits.trailing_zeros());
        let len = u64::from((bits >> from).trailing_ones());
        found(first + from..first + from + len);
        bits &= !((u64::MAX >> (WORD - len)) << from);
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn valid_bits_missing_runs_match_single_lookups() {
        for (seed, sectors) in [1, 8, 63, 64, 65, 200].into_iter().enumerate() {
            let prng = &mut Prng::new(seed as u64, "valid bits");
            let (mut bits, mut plain) = (ValidBits::new(sectors), vec![false; sectors as usize]);
            bits.put(2, 0..1);
            plain[0] = true;
            for _ in 0..500 {
                let start = prng.below(sectors);
                let range = start..start + 1 + prng.below(sectors - start);
                let set = prng.chance(0.5);
                if set {
                    bits.set(2, range.clone())
                } else {
                    let part = &mut plain[range.start as usize..range.end as usize];
                    let count = part.iter().filter(|&&valid| valid).count() as u64;
                    part.fill(false);
                    let is_empty = !plain.contains(&true);
                    assert_eq!(bits.unset(2, range.clone()), Unset { count, is_empty });
                }
                plain[range.start as usize..range.end as usize].fill(set);
                let start = prng.below(sectors);
                let range = start..start + 1 + prng.below(sectors - start);
                let mut found = Vec::new();
                bits.missing(2, range.clone(), |run| found.extend(run));
                let expected: Vec<u64> =
                    range.clone().filter(|&sector| !plain[sector as usize]).collect();
                assert_eq!(bits.has_all(2, range), expected.is_empty());
                assert_eq!(found, expected);
                if prng.chance(0.02) {
                    let count = plain.iter().filter(|&&valid| valid).count() as u64;
                    assert_eq!(bits.take_all(2), count);
                    let start = prng.below(sectors);
                    bits.put(2, start..sectors);
                    plain.fill(false);
                    plain[start as usize..].fill(true);
                }
            }
        }
    }
}
