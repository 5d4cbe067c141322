//! A request of a trace, as the real drive served it and as ours did.

use freewheel_model::electronics::{Served, Unit};
use freewheel_model::sched::Waiting;
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

/// A request of the trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub op: Op,
    pub start: Lbn,
    pub blocks: u32,
    pub fua: bool,
    pub arrival: SimTime,
    pub completion: SimTime,
}

impl Request {
    /// Its measured response time.
    pub(super) fn measured(&self) -> SimDuration {
        self.completion - self.arrival
    }
}

/// A request and how our drive served it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub request: Request,
    pub served: Served,
    /// Our response time.
    pub simulated: SimDuration,
}

impl Exchange {
    /// Ours less measured.
    pub(super) fn error_ms(&self) -> f64 {
        self.simulated.as_ms_f64() - self.request.measured().as_ms_f64()
    }
}

/// Serves every request as long after our completion of the one before as in the trace.
pub(super) fn replay(mut unit: Unit, requests: &[Request]) -> Vec<Exchange> {
    let mut now = SimTime::ZERO;
    let mut before: Option<SimTime> = None;
    let mut exchanges = Vec::with_capacity(requests.len());
    for request in requests {
        now += before.map_or(SimDuration::ZERO, |before| request.arrival - before);
        let Request { op, start, blocks, fua, .. } = *request;
        let target = unit.drive().target(start, Blocks::new(blocks.into()), op);
        let served = unit.serve_alone(&Waiting { target, arrival: now, sequence: 0, fua });
        exchanges.push(Exchange { request: *request, served, simulated: served.end - now });
        now = served.end;
        before = Some(request.completion);
    }
    exchanges
}
