//! Things that will happen, in the order they will.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use freewheel_units::SimTime;

/// A queue of future events. Events of the same time leave in the order they came in.
#[derive(Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Reverse<Event<T>>>,
    pushed: u64,
    /// Time of the event that left last.
    now: SimTime,
}

#[derive(Debug)]
struct Event<T> {
    key: (SimTime, u64),
    what: T,
}

impl<T> PartialEq for Event<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Event<T> {}

impl<T> PartialOrd for Event<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Event<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), pushed: 0, now: SimTime::ZERO }
    }
}

impl<T> EventQueue<T> {
    /// Something will happen at `time`. Panics when that lies before an event that has left.
    #[inline]
    pub fn push(&mut self, time: SimTime, what: T) {
        assert!(time >= self.now, "an event at {time} is in the past at {}", self.now);
        self.heap.push(Reverse(Event { key: (time, self.pushed), what }));
        self.pushed += 1;
    }

    /// Time at which the next event happens.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        self.heap.peek().map(|Reverse(event)| event.key.0)
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(SimTime, T)> {
        let Reverse(event) = self.heap.pop()?;
        self.now = event.key.0;
        Some((event.key.0, event.what))
    }

    /// True if no event is left.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_leave_by_time_then_order(
            times in prop::collection::vec(0u64..20, 0..100)
        ) {
            let mut queue = EventQueue::default();
            for (number, &time) in times.iter().enumerate() {
                queue.push(SimTime::from_ns(time), number);
            }
            let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort();
            let left: Vec<(u64, usize)> =
                std::iter::from_fn(|| queue.pop()).map(|(time, n)| (time.ns(), n)).collect();
            prop_assert_eq!(left, expected);
        }
    }

    #[test]
    #[should_panic(expected = "in the past")]
    fn event_in_past_panics() {
        let mut queue = EventQueue::default();
        queue.push(SimTime::from_ns(5), ());
        queue.pop();
        queue.push(SimTime::from_ns(4), ());
    }
}
