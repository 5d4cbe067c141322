//! Which sectors of each cache block are in memory.

use std::ops::Range;

/// A bit for each sector of each slot's cache block.
#[derive(Debug, Clone)]
pub(super) struct ValidBits {
    words_per_slot: usize,
    words: Vec<u64>,
}

/// Sectors of one word.
struct Part {
    word: usize,
    mask: u64,
}

const WORD: u64 = 64;

/// The words that hold `sectors`, and which of their bits.
fn parts(sectors: Range<u64>) -> impl Iterator<Item = Part> {
    (sectors.start / WORD..sectors.end.div_ceil(WORD)).map(move |word| {
        let from = sectors.start.saturating_sub(word * WORD);
        let end = (sectors.end - word * WORD).min(WORD);
        Part { word: word as usize, mask: (u64::MAX >> (WORD - (end - from))) << from }
    })
}

impl ValidBits {
    /// No valid sector; `sectors` are those of a cache block.
    pub fn new(sectors: u64) -> Self {
        Self { words_per_slot: sectors.div_ceil(WORD) as usize, words: Vec::new() }
    }

    /// Clears all sectors of a slot, which may be a new one.
    pub fn clear(&mut self, slot: u32) {
        let at = slot as usize * self.words_per_slot;
        let end = at + self.words_per_slot;
        if self.words.len() < end {
            self.words.resize(end, 0);
        }
        self.words[at..end].fill(0);
    }

    /// Makes sectors valid.
    pub fn set(&mut self, slot: u32, sectors: Range<u64>) {
        let at = slot as usize * self.words_per_slot;
        parts(sectors).for_each(|part| self.words[at + part.word] |= part.mask);
    }

    /// Makes sectors invalid; whether any valid one is left in the slot.
    pub fn unset(&mut self, slot: u32, sectors: Range<u64>) -> bool {
        let at = slot as usize * self.words_per_slot;
        parts(sectors).for_each(|part| self.words[at + part.word] &= !part.mask);
        self.words[at..at + self.words_per_slot].iter().any(|&word| word != 0)
    }

    /// How many of the sectors are valid.
    pub fn count(&self, slot: u32, sectors: Range<u64>) -> u64 {
        let at = slot as usize * self.words_per_slot;
        let valid = |part: Part| u64::from((self.words[at + part.word] & part.mask).count_ones());
        parts(sectors).map(valid).sum()
    }

    /// Calls `found` with each run of invalid sectors, in ascending order. A run ends at each 64th
    /// sector at the latest.
    pub fn missing(&self, slot: u32, sectors: Range<u64>, mut found: impl FnMut(Range<u64>)) {
        let at = slot as usize * self.words_per_slot;
        for Part { word, mask } in parts(sectors) {
            let mut missing = !self.words[at + word] & mask;
            while missing != 0 {
                let from = u64::from(missing.trailing_zeros());
                let len = u64::from((missing >> from).trailing_ones());
                let start = word as u64 * WORD + from;
                found(start..start + len);
                missing &= !((u64::MAX >> (WORD - len)) << from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn runs_of_missing_sectors_are_those_found_one_by_one() {
        for (seed, sectors) in [1, 8, 63, 64, 65, 200].into_iter().enumerate() {
            let prng = &mut Prng::new(seed as u64, "valid bits");
            let (mut bits, mut plain) = (ValidBits::new(sectors), vec![false; sectors as usize]);
            bits.clear(2);
            for _ in 0..500 {
                let start = prng.below(sectors);
                let range = start..start + 1 + prng.below(sectors - start);
                let set = prng.chance(0.5);
                match set {
                    true => bits.set(2, range.clone()),
                    false => assert_eq!(bits.unset(2, range.clone()), {
                        plain[range.start as usize..range.end as usize].fill(false);
                        plain.contains(&true)
                    }),
                }
                plain[range.start as usize..range.end as usize].fill(set);
                let start = prng.below(sectors);
                let range = start..start + 1 + prng.below(sectors - start);
                let mut found = Vec::new();
                bits.missing(2, range.clone(), |run| found.extend(run));
                let expected: Vec<u64> =
                    range.clone().filter(|&sector| !plain[sector as usize]).collect();
                assert_eq!(
                    bits.count(2, range.clone()),
                    range.end - range.start - found.len() as u64
                );
                assert_eq!(found, expected);
            }
        }
    }
}
