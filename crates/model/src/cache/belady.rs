//! MIN: evicts the key whose next use lies farthest ahead (Belady, IBM Systems Journal 1966). Of all policies
//! that admit every key, none misses fewer keys of one size.

use std::collections::BinaryHeap;

/// Uses of keys, each with the next use of the same key.
///
/// Memory is 8 bytes a use here and 8 in a [run](Self::run), and at most 32 for each key in the cache. Building
/// it takes another 8 bytes a use.
#[derive(Debug, Clone)]
pub struct KnownFuture {
    /// Number of the next use. For the last one of a key, that of no use: the number of uses and its own.
    next: Vec<u64>,
}

/// A key in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    next: u64,
    size: u64,
}

/// Size of a key that is not in the cache.
const NOT_HELD: u64 = u64::MAX;
/// Entries that may be out of date before they are looked for.
const SPARE: usize = 64;

impl KnownFuture {
    /// The future of these uses, in O(n log n).
    pub fn new(keys: &[u64]) -> Self {
        let uses = keys.len() as u64;
        let mut order: Vec<u64> = (0..uses).collect();
        order.sort_unstable_by_key(|&at| (key(at, keys), at));
        let mut next: Vec<u64> = (uses..2 * uses).collect();
        for pair in order.windows(2).filter(|pair| key(pair[0], keys) == key(pair[1], keys)) {
            next[pair[0] as usize] = pair[1];
        }
        Self { next }
    }

    /// Goes through the uses with a cache of `capacity`, in O(n log n), and calls `used` with the number of each and
    /// whether its key was in the cache. `size` is that of the key at a use, less than 2^64 - 1. A key keeps the size with which it came;
    /// one that is larger than the cache is not admitted.
    pub fn run(
        &self,
        capacity: u64,
        size: impl Fn(usize) -> u64,
        mut used: impl FnMut(usize, bool),
    ) {
        let uses = self.next.len();
        // Size of the key that is held until this use.
        let mut held_until = vec![NOT_HELD; uses];
        let mut heap: BinaryHeap<Held> = BinaryHeap::new();
        let (mut len, mut filled) = (0, 0);
        for at in 0..uses {
            let is_hit = held_until[at] != NOT_HELD;
            used(at, is_hit);
            let size = if is_hit { held_until[at] } else { size(at) };
            if !is_hit {
                if size > capacity {
                    continue;
                }
                // What is out of date is of the past, and is never the farthest.
                while filled + size > capacity
                    && let Some(farthest) = heap.pop()
                {
                    (len, filled) = (len - 1, filled - farthest.size);
                    if let Some(until) = held_until.get_mut(farthest.next as usize) {
                        *until = NOT_HELD;
                    }
                }
                (len, filled) = (len + 1, filled + size);
            }
            let next = self.next[at];
            if let Some(until) = held_until.get_mut(next as usize) {
                *until = size;
            }
            heap.push(Held { next, size });
            if heap.len() > 2 * len + SPARE {
                heap.retain(|held| held.next > at as u64);
            }
        }
    }

    /// Misses of keys of one size in a cache that holds `capacity` of them.
    pub fn misses(&self, capacity: u32) -> u64 {
        let mut misses = 0;
        self.run(capacity.into(), |_| 1, |_, is_hit| misses += u64::from(!is_hit));
        misses
    }
}

fn key(at: u64, keys: &[u64]) -> u64 {
    keys[at as usize]
}
