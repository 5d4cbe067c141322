//! A queue that gives back the earliest of the items in it.
//!
//! Goals: items in order cost a comparison.
//! Non-goals: how many items to wait for, which is `order`.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use freewheel_units::SimTime;

/// Gives back items by time; of equal times the one that came first.
#[derive(Debug)]
pub(crate) struct ReorderBuffer<T> {
    /// Items that came in order, ascending.
    in_order: VecDeque<Entry<T>>,
    /// Items that came after a later one.
    late: BinaryHeap<Reverse<Entry<T>>>,
    pushed: u64,
}

#[derive(Debug)]
struct Entry<T> {
    time: SimTime,
    number: u64,
    item: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (SimTime, u64) {
        (self.time, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Default for ReorderBuffer<T> {
    fn default() -> Self {
        Self { in_order: VecDeque::new(), late: BinaryHeap::new(), pushed: 0 }
    }
}

impl<T> ReorderBuffer<T> {
    pub fn len(&self) -> usize {
        self.in_order.len() + self.late.len()
    }

    #[inline]
    pub fn push(&mut self, time: SimTime, item: T) {
        let entry = Entry { time, number: self.pushed, item };
        self.pushed += 1;
        // Only an item behind its predecessor pays for the heap.
        match self.in_order.back() {
            Some(last) if time < last.time => self.late.push(Reverse(entry)),
            _ => self.in_order.push_back(entry),
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let from_late = match (self.in_order.front(), self.late.peek()) {
            (Some(first), Some(Reverse(late))) => late < first,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if from_late {
            return self.late.pop().map(|Reverse(entry)| entry.item);
        }
        self.in_order.pop_front().map(|entry| entry.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow way: of the first `window` items that are left, the earliest one, again and again.
    fn naive(times: &[u64], window: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..times.len()).collect();
        let mut out = Vec::new();
        while !left.is_empty() {
            let reach = window.min(left.len());
            let at = (0..reach).min_by_key(|&at| (times[left[at]], left[at])).unwrap();
            out.push(left.remove(at));
        }
        out
    }

    fn fast(times: &[u64], window: usize) -> Vec<usize> {
        let mut buffer = ReorderBuffer::default();
        let mut out = Vec::new();
        for (number, &time) in times.iter().enumerate() {
            if buffer.len() == window {
                out.extend(buffer.pop());
            }
            buffer.push(SimTime::from_ns(time), number);
        }
        out.extend(std::iter::from_fn(|| buffer.pop()));
        out
    }

    proptest! {
        #[test]
        fn reorder_matches_search_for_earliest(
            times in prop::collection::vec(0u64..50, 0..60),
            window in 1usize..20,
        ) {
            prop_assert_eq!(fast(&times, window), naive(&times, window));
        }
    }
}
