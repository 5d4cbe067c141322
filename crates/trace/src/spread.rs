//! Spreads requests over the granule of their trace's clock.
//!
//! A log by the second has all requests of a second at its beginning. A disk would serve them as one burst that
//! never was. Spread evenly, the first of n requests comes in the first nth of the granule, the second in the
//! next, and so on, each at a random moment of its part.
//!
//! Goals: order and response times stay; the same seed gives the same times.
//! Non-goals: bursts within a granule, which the trace does not tell; memory for fewer requests than those
//! of one granule.

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
    /// Requests of one granule that are read, and not yet spread: more may follow.
    read: VecDeque<(Record, Position)>,
    /// Requests of one granule, spread.
    due: VecDeque<(Record, Position)>,
    has_ended: bool,
    at: Position,
}

impl<S: Source> Spread<S> {
    /// Records of `inner` come in order, and those of one granule have the same arrival.
    pub fn new(inner: S, granule: SimDuration, seed: u64) -> Self {
        let (at, prng) = (inner.position(), Prng::new(seed, "arrivals within a granule"));
        let (read, due) = (VecDeque::new(), VecDeque::new());
        Self { inner, granule, prng, read, due, has_ended: false, at }
    }

    /// Collects the requests of the next granule. After an error the next call continues to collect.
    fn fill(&mut self) -> Result<(), Stop> {
        while !self.has_ended {
            let Some(record) = self.inner.next()? else {
                self.has_ended = true;
                break;
            };
            let is_next =
                self.read.front().is_some_and(|(first, _)| record.arrival > first.arrival);
            if is_next {
                std::mem::swap(&mut self.due, &mut self.read);
            }
            self.read.push_back((record, self.inner.position()));
            if is_next {
                break;
            }
        }
        if self.has_ended {
            std::mem::swap(&mut self.due, &mut self.read);
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
    use crate::fault::Fault;
    use crate::record::Extent;
    use freewheel_units::Op;
    use std::vec;

    /// Records, and faults between them.
    struct List(vec::IntoIter<Option<Record>>);

    impl Source for List {
        fn next(&mut self) -> Result<Option<Record>, Stop> {
            match self.0.next() {
                Some(None) => Err(Fault::new("line", b"", "a fault").into()),
                record => Ok(record.flatten()),
            }
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
        collect(seconds.iter().map(record).map(Some).collect(), seed)
    }

    /// The records that come, passing over faults.
    fn collect(records: Vec<Option<Record>>, seed: u64) -> Vec<Record> {
        let list = List(records.into_iter());
        let mut spread = Spread::new(list, SimDuration::from_secs(1), seed);
        let mut out = Vec::new();
        loop {
            match spread.next() {
                Ok(Some(record)) => out.push(record),
                Ok(None) => return out,
                Err(_) => {}
            }
        }
    }

    #[test]
    fn fault_within_granule_changes_no_arrival() {
        let seconds = [0, 0, 0, 0, 3, 4, 4];
        let record = |second: u64| {
            let arrival = SimTime::from_ns(second * 1_000_000_000);
            Some(Extent::NONE.request(arrival, Op::Flush, 0))
        };
        let clean: Vec<_> = seconds.into_iter().map(record).collect();
        let expected = collect(clean.clone(), 1);
        for at in 0..=clean.len() {
            let mut damaged = clean.clone();
            damaged.insert(at, None);
            assert_eq!(collect(damaged, 1), expected, "{at}");
        }
    }

    #[test]
    fn spread_request_keeps_part_and_response() {
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
