//! The records of recordings one after another.

use super::{ClockRuns, EventTimes, Found, LeftOutRows, Position, RunOptions, Source, Stop};
use crate::Record;

/// A source whose recordings follow one another on one clock.
pub(crate) struct Recordings<S> {
    inner: S,
    runs: ClockRuns<Record>,
    at: Position,
}

impl<S: Source> Recordings<S> {
    pub fn new(inner: S, options: RunOptions) -> Self {
        let at = inner.position();
        Self { inner, runs: ClockRuns::new(options), at }
    }
}

impl<S: Source> Source for Recordings<S> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        let inner = &mut self.inner;
        let next = self.runs.next(|| {
            let record = inner.next()?;
            let (at, begins) = (inner.position(), inner.begins_run());
            Ok(record.map(|item| Found { item, at, begins }))
        });
        // An error, and the end, are where the trace was read; a record is where it was found.
        self.at = self.inner.position();
        Ok(next?.map(|(record, at)| {
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

    fn event_times(&self) -> Option<EventTimes> {
        let (runs, second) = (self.runs.runs(), self.runs.second());
        Some(EventTimes { runs, second, needs_merge: false })
    }
}
