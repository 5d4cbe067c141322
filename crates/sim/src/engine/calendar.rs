//! Calendar of many arms: the next one to act.

/// The next time of each arm, and the earliest of all. Of equal times the arm with the smallest
/// number comes first. A winner tree (Knuth, TAOCP 3, 5.4.1): a change costs one comparison a level.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// Keys of the arms, filled up with [`NEVER`].
    keys: Vec<u64>,
    /// Winners: the root at 1, the children of n at 2n and 2n + 1, last the arms themselves.
    winners: Vec<u32>,
    /// The earliest key and its arm.
    first: (u64, u32),
}

/// Later than every event.
pub(crate) const NEVER: u64 = u64::MAX;

impl Calendar {
    pub(crate) fn new(arms: usize) -> Self {
        let leaves = arms.next_power_of_two();
        let mut winners = vec![0; leaves];
        winners.extend(0..leaves as u32);
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Self { keys: vec![NEVER; leaves], winners, first: (NEVER, 0) }
    }

    /// The earliest key and its arm.
    #[inline]
    pub(crate) fn first(&self) -> (u64, u32) {
        self.first
    }

    #[inline]
    pub(crate) fn set(&mut self, arm: u32, key: u64) {
        self.keys[arm as usize] = key;
        let mut node = (self.keys.len() + arm as usize) / 2;
        while node >= 1 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let later = self.keys[right as usize] < self.keys[left as usize];
            let winner = if later { right } else { left };
            let before = std::mem::replace(&mut self.winners[node], winner);
            if winner == before && winner != arm {
                // Another arm wins here as before, and its key is the same: so it is further up.
                return;
            }
            node /= 2;
        }
        let winner = self.winners[1];
        self.first = (self.keys[winner as usize], winner);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn calendar_first_matches_linear_search(
            arms in 1usize..40, changes in prop::collection::vec((any::<prop::sample::Index>(), 0u64..9), 1..200)
        ) {
            let mut calendar = Calendar::new(arms);
            let mut keys = vec![NEVER; arms];
            for (arm, key) in changes {
                let (arm, key) = (arm.index(arms), if key == 8 { NEVER } else { key });
                calendar.set(arm as u32, key);
                keys[arm] = key;
                let expected = (0..arms).min_by_key(|&arm| keys[arm]).unwrap();
                let (first, found) = calendar.first();
                prop_assert_eq!(first, keys[expected]);
                prop_assert!(first == NEVER || found as usize == expected);
            }
        }
    }
}
