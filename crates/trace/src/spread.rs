//! Spreads requests over the granule of their trace's clock.
//!
//! A log by the second has all requests of a second at its beginning. A disk would serve them as one burst that
//! never was. Spread evenly, the first of n requests comes in the first nth of the granule, the second in the
//! next, and so on, each at a random moment of its part.
//!
//! Goals: order and response times stay; the same seed gives the same times.
//! Non-goals: bursts within a granule, which the trace does not tell.

use std::collections::VecDeque;

use freewheel_units::{Prng, SimDuration, SimTime};

use crate::Record;
use crate::source::{LeftOutRows, Position, Source, Stop};
use crate::timed::Timed;

/// A source whose requests of one time are spread over the granule that begins there.
pub(crate) struct Spread<S> {
    inner: S,
    granule: SimDuration,
    prng: Prng,
    /// Requests of one granule, spread.
    due: VecDeque<(Record, Position)>,
    /// The first request of the next one.
    next: Option<(Record, Position)>,
    at: Position,
}

impl<S: Source> Spread<S> {
    /// Records of `inner` come in order, and those of one granule have the same arrival.
    pub fn new(inner: S, granule: SimDuration, seed: u64) -> Self {
        let (at, prng) = (inner.position(), Prng::new(seed, "arrivals within a granule"));
        Self { inner, granule, prng, due: VecDeque::new(), next: None, at }
    }

    fn read(&mut self) -> Result<Option<(Record, Position)>, Stop> {
        let record = self.inner.next()?;
        Ok(record.map(|record| (record, self.inner.position())))
    }

    /// Collects the requests of the next granule.
    fn fill(&mut self) -> Result<(), Stop> {
        if self.next.is_none() && self.due.is_empty() {
            self.next = self.read()?;
        }
        let Some(first) = self.next.take() else { return Ok(()) };
        let arrival = first.0.arrival;
        self.due.push_back(first);
        while let Some(next) = self.read()? {
            if next.0.arrival > arrival {
                self.next = Some(next);
                break;
            }
            self.due.push_back(next);
        }
        self.spread();
        Ok(())
    }

    fn spread(&mut self) {
        let requests = self.due.len() as f64;
        for (number, (record, _)) in self.due.iter_mut().enumerate() {
            let part = (number as f64 + self.prng.unit()) / requests;
            let later = (part * self.granule.ns() as f64) as u64;
            *record = record.shifted(|time| SimTime::from_ns(time.ns().saturating_add(later)));
        }
    }
}

impl<S: Source> Source for Spread<S> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        if self.due.is_empty() {
            let filled = self.fill();
            // An error, and the end, are where the trace was read; a record is where it was found.
            self.at = self.inner.position();
            filled?;
        }
        Ok(self.due.pop_front().map(|(record, at)| {
            self.at = at;
            record
        }))
    }

    fn position(&self) -> Position {
        self.at
    }

    fn left_out(&self) -> LeftOutRows {
        self.inner.left_out()
    }

    fn holds(&self) -> Option<String> {
        self.inner.holds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Extent;
    use freewheel_units::Op;
    use std::vec;

    struct List(vec::IntoIter<Record>);

    impl Source for List {
        fn next(&mut self) -> Result<Option<Record>, Stop> {
            Ok(self.0.next())
        }

        fn position(&self) -> Position {
            Position::default()
        }
    }

    fn spread(seconds: &[u64], seed: u64) -> Vec<Record> {
        let record = |&second: &u64| {
            let arrival = SimTime::from_ns(second * 1_000_000_000);
            let completion = Some(arrival + SimDuration::from_ms(5));
            Record { completion, ..Extent::NONE.request(arrival, Op::Flush, 0) }
        };
        let records: Vec<Record> = seconds.iter().map(record).collect();
        let list = List(records.into_iter());
        let mut spread = Spread::new(list, SimDuration::from_secs(1), seed);
        std::iter::from_fn(|| spread.next().unwrap()).collect()
    }

    #[test]
    fn each_request_lies_in_its_part_of_the_granule_and_keeps_its_response() {
        let seconds = [0, 0, 0, 0, 3, 4, 4];
        let records = spread(&seconds, 1);
        // The slow way: the number of a request within its second, and how many there are.
        for (at, record) in records.iter().enumerate() {
            let second = seconds[at];
            let of_second = seconds.iter().filter(|&&other| other == second).count() as u64;
            let number = seconds[..at].iter().filter(|&&other| other == second).count() as u64;
            let part = 1_000_000_000 / of_second;
            let since = record.arrival.ns() - second * 1_000_000_000;
            assert!((number * part..=(number + 1) * part).contains(&since), "{at}: {since}");
            assert_eq!(record.completion.unwrap().ns() - record.arrival.ns(), 5_000_000);
        }
        assert!(records.is_sorted_by_key(|record| record.arrival));
        assert_eq!(records, spread(&seconds, 1));
        assert_ne!(records, spread(&seconds, 2));
    }
}
