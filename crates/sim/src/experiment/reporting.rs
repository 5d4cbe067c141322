//! Progress of a run.

use freewheel_model::sched::CommandMark;
use freewheel_units::SimTime;

use super::Progress;
use crate::source::{Request, Source, SourceError};

/// Requests between two reports of progress: reports cost little, and come several times a second.
pub(super) const REPORT_EVERY: u32 = 1 << 16;

/// Requests between two reports with free work. A decision takes some microseconds late in a scan, and many
/// milliseconds at the start of one on a modern drive.
pub(super) const REPORT_EVERY_DECIDED: u32 = 1 << 6;

/// A source that reports how far it is.
pub(super) struct Reporting<'a, S> {
    pub source: S,
    pub progress: Progress<'a>,
    pub every: u32,
    pub until_next: u32,
}

impl<S: Source> Reporting<'_, S> {
    pub fn report(&mut self) {
        let (done, total) = self.source.progress();
        (self.progress)(done, total);
    }
}

impl<S: Source> Source for Reporting<'_, S> {
    #[inline]
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        self.source.next_arrival()
    }

    #[inline]
    fn take(&mut self) -> Request {
        self.until_next -= 1;
        if self.until_next == 0 {
            self.until_next = self.every;
            self.report();
        }
        self.source.take()
    }

    #[inline]
    fn completed(&mut self, tag: u64, now: SimTime) {
        self.source.completed(tag, now);
    }

    fn aborted(&mut self, tag: u64, now: SimTime) {
        self.source.aborted(tag, now);
    }

    #[inline]
    fn mark(&self, request: &Request) -> CommandMark {
        self.source.mark(request)
    }

    fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }

    #[inline]
    fn is_own_work(&self, tag: u64) -> bool {
        self.source.is_own_work(tag)
    }

    #[inline]
    fn arrival(&self, now: SimTime) -> SimTime {
        self.source.arrival(now)
    }

    #[inline]
    fn timer(&self) -> Option<SimTime> {
        self.source.timer()
    }

    fn timer_due(&mut self, now: SimTime) {
        self.source.timer_due(now);
    }
}
