//! Several traces at once, as independent streams on one timeline.
//!
//! Each stream has its window and its parents: no request waits for one of another stream (tr03 section
//! 3.2). Streams begin together, each with its first request.

use freewheel_units::SimTime;

use super::{Request, Source, SourceError};

/// The streams, which issue their requests in order of arrival. Of requests that arrive together that of the
/// first stream comes first.
#[derive(Debug)]
pub struct Merged<S> {
    streams: Vec<S>,
    /// The stream with the next arrival.
    next: usize,
}

impl<S: Source> Merged<S> {
    /// Panics without a stream.
    pub fn new(streams: Vec<S>) -> Self {
        assert!(!streams.is_empty(), "a merge has streams");
        Self { streams, next: 0 }
    }
}

impl<S: Source> Source for Merged<S> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        let mut first = None;
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let Some(time) = stream.next_arrival()? else { continue };
            if first.is_none_or(|first| time < first) {
                (first, self.next) = (Some(time), number);
            }
        }
        Ok(first)
    }

    fn take(&mut self) -> Request {
        let request = self.streams[self.next].take();
        // Tags stay unique: the rest of the division is the stream.
        let tag = request.tag * self.streams.len() as u64 + self.next as u64;
        Request { tag, ..request }
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        let count = self.streams.len() as u64;
        self.streams[(tag % count) as usize].completed(tag / count, now);
    }

    fn progress(&self) -> (u64, u64) {
        let both = self.streams.iter().map(Source::progress);
        both.fold((0, 0), |(done, total), (more, of)| (done + more, total + of))
    }
}
