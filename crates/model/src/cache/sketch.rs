//! Number of times that keys were used lately, in a few bits a key.

use super::index::hash;

/// A count-min sketch of counters up to 15 that forgets by halving (Einziger, Friedman and Manes, "TinyLFU",
/// ACM Transactions on Storage 2017, section 3).
///
/// ```text
/// row 0 | . . 3 . . . . . |   A key has a counter in each row and was used at most as often as the
/// row 1 | . 5 . . . . . . |   least of the four says: other keys only add to counters. An increment
/// row 2 | . . . . . . 3 . |   goes to the least ones, so that here 5 stays ("minimal increment").
/// row 3 | . . . . 3 . . . |
/// ```
///
/// Two bytes for each counted key. The paper's doorkeeper, which saves memory for keys that are used
/// once, is left out.
#[derive(Debug, Clone)]
pub(super) struct FrequencySketch {
    /// Row by row, 16 counters of 4 bits a word.
    words: Vec<u64>,
    row_bits: u32,
    additions: u64,
    /// Additions after which all counters are halved.
    sample: u64,
}

const ROWS: u32 = 4;
const COUNTER_MAX: u64 = 15;
/// All counters of a word but their highest bits.
const LOWER_BITS: u64 = 0x7777_7777_7777_7777;
/// Additions between two halvings, for each key of the cache.
const SAMPLE: u64 = 10;

/// Place of a counter.
#[derive(Clone, Copy)]
struct Counter {
    word: usize,
    shift: u32,
}

impl FrequencySketch {
    /// A sketch for a cache of `capacity` keys.
    pub fn new(capacity: u32) -> Self {
        let capacity = u64::from(capacity);
        let row_bits = capacity.next_power_of_two().ilog2().max(4);
        let words = (ROWS as usize) << (row_bits - 4);
        Self { words: vec![0; words], row_bits, additions: 0, sample: SAMPLE * capacity.max(1) }
    }

    /// Counters of a key: its hash, and the hash of that, are halved into four numbers.
    #[inline]
    fn counters(&self, key: u64) -> [Counter; ROWS as usize] {
        let first = hash(key);
        let second = hash(first);
        let mut row = 0;
        [first, first << 32, second, second << 32].map(|bits| {
            let column = (bits >> (64 - self.row_bits)) as usize;
            let at = (row << self.row_bits) + column;
            row += 1;
            Counter { word: at >> 4, shift: (at as u32 & 15) * 4 }
        })
    }

    #[inline]
    fn value(&self, counter: Counter) -> u64 {
        self.words[counter.word] >> counter.shift & COUNTER_MAX
    }

    /// Uses of a key, not less than those since the halvings except beyond 15.
    #[inline]
    pub fn frequency(&self, key: u64) -> u64 {
        self.counters(key).into_iter().map(|counter| self.value(counter)).min().unwrap_or(0)
    }

    /// A key is used once more.
    #[inline]
    pub fn add(&mut self, key: u64) {
        let counters = self.counters(key);
        let least = counters.iter().map(|&counter| self.value(counter)).min().unwrap_or(0);
        if least < COUNTER_MAX {
            for counter in counters {
                let is_least = self.value(counter) == least;
                self.words[counter.word] += u64::from(is_least) << counter.shift;
            }
        }
        self.additions += 1;
        if self.additions == self.sample {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.words.iter_mut().for_each(|word| *word = *word >> 1 & LOWER_BITS);
        self.additions /= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use freewheel_units::Prng;

    use super::*;

    /// Counts of each key, exactly.
    #[derive(Default)]
    struct Exact {
        counts: BTreeMap<u64, u64>,
        additions: u64,
    }

    impl Exact {
        fn add(&mut self, key: u64, sample: u64) {
            let count = self.counts.entry(key).or_default();
            *count = (*count + 1).min(COUNTER_MAX);
            self.additions += 1;
            if self.additions == sample {
                self.counts.values_mut().for_each(|count| *count /= 2);
                self.additions /= 2;
            }
        }
    }

    #[test]
    fn sketch_never_undercounts_rarely_overcounts() {
        let (mut sketch, mut exact) = (FrequencySketch::new(1000), Exact::default());
        let prng = &mut Prng::new(1, "sketch");
        for _ in 0..100_000 {
            // A thousand keys, low numbers more often.
            let key = prng.below(1 + prng.clone().below(1000));
            sketch.add(key);
            exact.add(key, 10_000);
        }
        assert_eq!(sketch.additions, exact.additions);
        let excess = |(&key, &count): (&u64, &u64)| sketch.frequency(key).checked_sub(count);
        let excess: Vec<u64> = exact.counts.iter().map(|row| excess(row).unwrap()).collect();
        let wrong = excess.iter().filter(|&&excess| excess > 0).count();
        assert!(wrong * 50 < excess.len(), "{wrong} of {}", excess.len());
    }

    #[test]
    fn sketch_counters_halve_apart() {
        let mut sketch = FrequencySketch::new(16);
        sketch.words = vec![0x0123_4567_89ab_cdef; 4];
        sketch.halve();
        assert_eq!(sketch.words, [0x0011_2233_4455_6677; 4]);
    }
}
