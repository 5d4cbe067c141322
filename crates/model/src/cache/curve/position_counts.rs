//! Number of taken positions below a position.

/// A set of positions that counts quickly: a bit for each, and a Fenwick tree over words of 64 (Fenwick,
/// Software: Practice and Experience 1994).
///
/// ```text
/// words  | 64 bits | 64 bits | 64 bits | 64 bits |
/// tree       w0      w0+w1       w2      w0+...+w3      node n counts the last (n & -n) words up to n
/// ```
#[derive(Debug, Clone)]
pub(super) struct PositionCounts {
    words: Vec<u64>,
    tree: Vec<u32>,
}

const WORD: u32 = 64;

/// The bit of a position in its word.
#[inline]
fn bit(position: u32) -> u64 {
    1 << (position % WORD)
}

impl PositionCounts {
    /// Positions below `size`, those below `taken` taken.
    pub fn with_first(size: u32, taken: u32) -> Self {
        let count = size.div_ceil(WORD);
        let word = |at: u32| match taken.saturating_sub(at * WORD) {
            64.. => u64::MAX,
            bits => (1 << bits) - 1,
        };
        let words: Vec<u64> = (0..count).map(word).collect();
        let mut tree: Vec<u32> = words.iter().map(|word| word.count_ones()).collect();
        // Each node passes its sum on to the next one that covers it.
        for node in 1..=words.len() {
            let parent = node + (node & node.wrapping_neg());
            if parent <= words.len() {
                tree[parent - 1] += tree[node - 1];
            }
        }
        Self { words, tree }
    }

    /// Positions, taken and free.
    #[inline]
    pub fn size(&self) -> u32 {
        self.words.len() as u32 * WORD
    }

    /// Takes a free position.
    #[inline]
    pub fn take(&mut self, position: u32) {
        self.words[(position / WORD) as usize] |= bit(position);
        self.update(position, |count| *count += 1);
    }

    /// Frees a taken position.
    #[inline]
    pub fn free(&mut self, position: u32) {
        self.words[(position / WORD) as usize] &= !bit(position);
        self.update(position, |count| *count -= 1);
    }

    #[inline]
    fn update(&mut self, position: u32, change: impl Fn(&mut u32)) {
        let mut node = (position / WORD) as usize + 1;
        while let Some(count) = self.tree.get_mut(node - 1) {
            change(count);
            node += node & node.wrapping_neg();
        }
    }

    /// True if a position is taken.
    #[inline]
    pub fn is_taken(&self, position: u32) -> bool {
        self.words[(position / WORD) as usize] & bit(position) != 0
    }

    /// Taken positions below one.
    #[inline]
    pub fn below(&self, position: u32) -> u32 {
        let mut node = (position / WORD) as usize;
        let mut count = (self.words[node] & (bit(position) - 1)).count_ones();
        while node > 0 {
            count += self.tree[node - 1];
            node &= node - 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn position_counts_match_plain_list() {
        for (seed, size) in [64, 128, 192, 320, 1024, 4160].into_iter().enumerate() {
            let prng = &mut Prng::new(seed as u64, "positions");
            let taken = prng.below(u64::from(size) + 1) as u32;
            let mut counts = PositionCounts::with_first(size, taken);
            let mut plain: Vec<bool> = (0..size).map(|position| position < taken).collect();
            for _ in 0..1_000 {
                let position = prng.below(size.into()) as u32;
                let below = plain[..position as usize].iter().filter(|&&taken| taken).count();
                assert_eq!(counts.below(position) as usize, below);
                let is_taken = &mut plain[position as usize];
                assert_eq!(counts.is_taken(position), *is_taken);
                if *is_taken {
                    counts.free(position)
                } else {
                    counts.take(position)
                }
                *is_taken = !*is_taken;
            }
        }
    }
}
