//! Requests to files as sources of the engine.

use freewheel_array::files::{Clients, CooledRequests, GapMovedRequests, MovedMap, VolumeRequest};
use freewheel_model::sched::CommandMark;
use freewheel_units::SimTime;

use crate::source::{Request, Source, SourceError};

fn request(request: VolumeRequest) -> Request {
    let VolumeRequest { op, start, blocks, tag } = request;
    Request { op, start, blocks, fua: false, tag }
}

impl Source for Clients<'_> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(Clients::next_arrival(self))
    }

    fn take(&mut self) -> Request {
        request(Clients::take(self))
    }

    fn completed(&mut self, _: u64, _: SimTime) {}

    fn progress(&self) -> (u64, u64) {
        Clients::progress(self)
    }
}

impl Source for GapMovedRequests<'_> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(GapMovedRequests::next_arrival(self))
    }

    fn take(&mut self) -> Request {
        request(GapMovedRequests::take(self))
    }

    fn completed(&mut self, _: u64, now: SimTime) {
        GapMovedRequests::completed(self, now);
    }

    fn progress(&self) -> (u64, u64) {
        GapMovedRequests::progress(self)
    }
}

impl<M: MovedMap> Source for CooledRequests<'_, M> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(CooledRequests::next_arrival(self))
    }

    fn take(&mut self) -> Request {
        request(CooledRequests::take(self))
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        CooledRequests::completed(self, tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        CooledRequests::progress(self)
    }

    fn mark(&self, request: &Request) -> CommandMark {
        CooledRequests::mark(self, request.tag)
    }

    fn is_own_work(&self, tag: u64) -> bool {
        CooledRequests::is_own_work(self, tag)
    }

    fn arrival(&self, _: SimTime) -> SimTime {
        CooledRequests::arrival(self)
    }

    fn timer(&self) -> Option<SimTime> {
        CooledRequests::timer(self)
    }

    fn timer_due(&mut self, now: SimTime) {
        CooledRequests::timer_due(self, now);
    }
}
