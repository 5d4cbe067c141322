//! The way between buffer and host: one transfer at a time.

use std::collections::VecDeque;

use freewheel_units::{SimDuration, SimTime};

/// The transfers that are going on or fixed for later, in order, none overlapping another.
#[derive(Debug, Clone, Default)]
pub(super) struct Bus {
    transfers: VecDeque<Span>,
    /// Time for which it was taken so far.
    used: SimDuration,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: SimTime,
    end: SimTime,
}

impl Bus {
    /// Takes the bus for `length` at the first time from `from` on at which it is free that long, and
    /// returns it. Spans that ended by `now` are forgotten.
    #[inline]
    pub(super) fn take(&mut self, now: SimTime, from: SimTime, length: SimDuration) -> SimTime {
        while self.transfers.front().is_some_and(|span| span.end <= now) {
            self.transfers.pop_front();
        }
        self.used += length;
        // Most begin behind all that are fixed.
        if self.transfers.back().is_none_or(|last| last.end <= from) {
            self.transfers.push_back(Span { start: from, end: from + length });
            return from;
        }
        let mut start = from;
        let mut index = 0;
        for span in &self.transfers {
            if start + length <= span.start {
                break;
            }
            start = start.max(span.end);
            index += 1;
        }
        self.transfers.insert(index, Span { start, end: start + length });
        start
    }

    /// Time for which it was taken so far.
    pub(super) fn used(&self) -> SimDuration {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ns(ns: u64) -> SimTime {
        SimTime::from_ns(ns)
    }

    proptest! {
        #[test]
        fn bus_takes_first_free_span_once(
            wishes in prop::collection::vec((0u64..200, 1u64..20), 1..30)
        ) {
            // The oracle marks every nanosecond.
            let mut marked = vec![false; 2000];
            let mut bus = Bus::default();
            for (from, length) in wishes {
                let fits = |at: &usize| !marked[*at..*at + length as usize].contains(&true);
                let expected = (from as usize..).find(fits).unwrap();
                let start = bus.take(SimTime::ZERO, ns(from), SimDuration::from_ns(length));
                prop_assert_eq!(start, ns(expected as u64));
                marked[expected..expected + length as usize].fill(true);
            }
        }
    }

    #[test]
    fn bus_forgets_finished_transfers() {
        let mut bus = Bus::default();
        for step in 0..100u64 {
            bus.take(ns(step * 10), ns(step * 10), SimDuration::from_ns(10));
        }
        assert_eq!(bus.transfers.len(), 1);
    }
}
